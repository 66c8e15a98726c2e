//! A frontend of its own: logs in, runs a query, and reads replies at the least cost.
//!
//! It holds the idle clients, times large results, and logs the clients of a crowd in; pgbench does
//! the rest. No buffer belongs to a connection, so that ten thousand of them cost this process
//! little.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::cluster::USER;
use crate::error::{Doing, Error, Result};

/// A server or pooler that says nothing for this long is taken for hung.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// The end of every reply that leaves no transaction open: ReadyForQuery with status `I`.
const READY_IDLE: &[u8; 6] = b"Z\0\0\0\x05I";
/// Longer than a CommandComplete and a ReadyForQuery together.
const TAIL: usize = 64;
/// Goodbye.
pub(crate) const TERMINATE: &[u8; 5] = b"X\0\0\0\x04";

/// A logged-in connection between two queries.
pub(crate) struct Frontend {
    stream: TcpStream,
}

/// What is left of a reply that was read and thrown away.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Drained {
    pub(crate) bytes: u64,
    /// The tag of the last CommandComplete, as in `SELECT 1`.
    pub(crate) tag: String,
}

impl Frontend {
    /// Logs in on 127.0.0.1; `source` is an address of this machine to come from, so that one
    /// address does not run out of ports.
    pub(crate) fn log_in(port: u16, source: Ipv4Addr, database: &str) -> Result<Self> {
        Self::log_in_with(port, source, database, &[])
    }

    /// The same, with settings.
    pub(crate) fn log_in_with(
        port: u16,
        source: Ipv4Addr,
        database: &str,
        settings: &[(&str, String)],
    ) -> Result<Self> {
        let stream = connect(port, source).doing(|| format!("connect to port {port}"))?;
        let mut frontend = Self { stream };
        let mut body = format!("\0\x03\0\0user\0{USER}\0database\0{database}\0");
        for (name, value) in settings {
            body.push_str(&format!("{name}\0{value}\0"));
        }
        body.push('\0');
        frontend.send(&[&length_of(&body).to_be_bytes()[..], body.as_bytes()].concat())?;
        let mut said = Vec::new();
        let mut scratch = [0; 4096];
        while !said.ends_with(READY_IDLE) {
            let read = frontend.read(&mut scratch)?;
            said.extend_from_slice(&scratch[..read]);
            if said.first() == Some(&b'E') {
                return Err(Error::unfit(format!("login refused: {}", readable(&said))));
            }
        }
        Ok(frontend)
    }

    /// Runs one statement, as a simple query, and throws its rows away.
    ///
    /// Errors: also when the last thing said before ReadyForQuery is not a CommandComplete.
    pub(crate) fn drain(&mut self, sql: &str, scratch: &mut [u8]) -> Result<Drained> {
        self.send(&query(sql))?;
        let (mut bytes, mut tail) = (0, Vec::with_capacity(2 * TAIL));
        while !tail.ends_with(READY_IDLE) {
            let read = self.read(scratch)?;
            bytes += read as u64;
            tail.extend_from_slice(&scratch[read.saturating_sub(TAIL)..read]);
            tail.drain(..tail.len().saturating_sub(TAIL));
        }
        let tag = tag_of(&tail)
            .ok_or_else(|| Error::unfit(format!("`{sql}` ended with: {}", readable(&tail))))?;
        Ok(Drained { bytes, tag })
    }

    /// Runs one statement, as a simple query, and gives its whole reply.
    ///
    /// Errors: as of [`Self::drain`].
    pub(crate) fn reply(&mut self, sql: &str) -> Result<Vec<u8>> {
        self.send(&query(sql))?;
        let (mut reply, mut scratch) = (Vec::new(), [0; 4096]);
        while !reply.ends_with(READY_IDLE) {
            let read = self.read(&mut scratch)?;
            reply.extend_from_slice(&scratch[..read]);
        }
        match tag_of(&reply) {
            Some(_) => Ok(reply),
            None => Err(Error::unfit(format!("`{sql}` ended with: {}", readable(&reply)))),
        }
    }

    /// Says goodbye.
    pub(crate) fn close(mut self) -> Result<()> {
        self.send(TERMINATE)
    }

    /// The connection, between two queries as it is.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).doing(|| "write to the server".into())
    }

    fn read(&mut self, scratch: &mut [u8]) -> Result<usize> {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return Err(Error::unfit("the server closed the connection")),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read.doing(|| "read from the server".into()),
            }
        }
    }
}

fn connect(port: u16, source: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.set_tcp_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE_LIMIT))?;
    socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket.into())
}

/// The simple query with this text, as a message.
pub(crate) fn query(sql: &str) -> Vec<u8> {
    let body = format!("{sql}\0");
    [b"Q", &length_of(&body).to_be_bytes()[..], body.as_bytes()].concat()
}

/// The length word of a message with this body: it counts itself.
fn length_of(body: &str) -> u32 {
    // Queries of this harness are shorter than a page; the cast cannot cut.
    body.len() as u32 + 4
}

/// The tag of the CommandComplete that ends right before the final ReadyForQuery.
fn tag_of(tail: &[u8]) -> Option<String> {
    let body = tail.strip_suffix(READY_IDLE)?.strip_suffix(b"\0")?;
    (0..body.len().saturating_sub(4)).rev().find_map(|at| {
        let (head, tag) = body[at..].split_at(5);
        let length = u32::from_be_bytes(head[1..].try_into().ok()?);
        (head[0] == b'C' && length as usize == 4 + tag.len() + 1)
            .then(|| String::from_utf8_lossy(tag).into_owned())
    })
}

/// A message as text, for people.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;

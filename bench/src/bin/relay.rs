//! The bare relay: the yardstick beside which poolers are measured.
//!
//! One tokio current-thread runtime, a fixed pool of servers, and no knowledge of the protocol
//! beyond what lending a server takes: the first byte of a client's read (Terminate is not passed
//! on) and the last six bytes of a server's read (ReadyForQuery with status `I` ends the loan).
//! What it costs is what the kernel's sockets cost. It is no pooler: a client's turn must fit one
//! read, errors end the process, and nobody is authenticated.
//!
//! `relay LISTEN SERVER SERVERS USER DATABASE`, the addresses as `127.0.0.1:6432`.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::rc::Rc;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::LocalRuntime;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

/// ReadyForQuery up to its status byte.
const READY: [u8; 5] = [b'Z', 0, 0, 0, 5];

struct Relay {
    /// What a server said at login, from AuthenticationOk to ReadyForQuery: said to every client.
    greeting: Vec<u8>,
    /// As many permits as there are servers in `free`; its queue is first in, first out.
    turns: Semaphore,
    free: RefCell<Vec<TcpStream>>,
    scratch: RefCell<Box<[u8]>>,
}

impl Relay {
    async fn serve(&self, client: TcpStream) -> io::Result<()> {
        self.greet(&client).await?;
        loop {
            client.readable().await?;
            let _turn = self.turns.acquire().await.map_err(io::Error::other)?;
            let server = self.free.borrow_mut().pop().ok_or(ErrorKind::NotConnected)?;
            let stays = self.transaction(&client, &server).await?;
            self.free.borrow_mut().push(server);
            if !stays {
                return Ok(());
            }
        }
    }

    /// Relays turns until the server is idle again; false when the client has said goodbye.
    async fn transaction(&self, client: &TcpStream, server: &TcpStream) -> io::Result<bool> {
        let (mut tail, mut begun) = ([0; 6], false);
        while self.forward(client, server, None).await? {
            begun = true;
            while tail[..5] != READY {
                if !self.forward(server, client, Some(&mut tail)).await? {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            if tail[5] == b'I' {
                return Ok(true);
            }
            tail = [0; 6];
        }
        if begun { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(false) }
    }

    /// Passes one read on, and notes its last six bytes where asked; false at the end of `from`.
    async fn forward(
        &self,
        from: &TcpStream,
        to: &TcpStream,
        tail: Option<&mut [u8; 6]>,
    ) -> io::Result<bool> {
        let mut rest = loop {
            from.readable().await?;
            let mut scratch = self.scratch.borrow_mut();
            let read = match from.try_read(&mut scratch) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) if tail.is_none() && error.kind() == ErrorKind::ConnectionReset => 0,
                read => read?,
            };
            let bytes = &scratch[..read];
            if read == 0 || tail.is_none() && bytes[0] == b'X' {
                return Ok(false);
            }
            if let Some(tail) = tail {
                let kept = &bytes[read.saturating_sub(6)..];
                tail.copy_within(kept.len().., 0);
                tail[6 - kept.len()..].copy_from_slice(kept);
            }
            let written = written(to.try_write(bytes))?;
            break bytes[written..].to_vec();
        };
        while !rest.is_empty() {
            to.writable().await?;
            rest.drain(..written(to.try_write(&rest))?);
        }
        Ok(true)
    }

    /// Answers the startup packet, whatever it says, and refuses encryption before it.
    async fn greet(&self, client: &TcpStream) -> io::Result<()> {
        let mut startup = Box::new([0; 4096]);
        loop {
            client.readable().await?;
            let (read, answer) = match client.try_read(&mut startup[..]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                // SSLRequest and GSSENCRequest are the packets of eight bytes.
                read => (read?, if startup[3] == 8 { &b"N"[..] } else { &self.greeting }),
            };
            client.try_write(if read == 0 { &[] } else { answer })?;
            if read != 8 {
                return Ok(());
            }
        }
    }
}

fn written(result: io::Result<usize>) -> io::Result<usize> {
    result.or_else(|error| if error.kind() == ErrorKind::WouldBlock { Ok(0) } else { Err(error) })
}

/// Logs in to a server that trusts us; returns the connection and what the server said.
fn log_in(server: &str, user: &str, database: &str) -> io::Result<(TcpStream, Vec<u8>)> {
    let mut stream = std::net::TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    let body = format!("\0\x03\0\0user\0{user}\0database\0{database}\0\0");
    let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), body.as_bytes()].concat())?;
    let (mut said, mut scratch) = (Vec::new(), [0; 4096]);
    while !said.ends_with(b"Z\0\0\0\x05I") {
        let read = stream.read(&mut scratch)?;
        if read == 0 {
            return Err(io::Error::other(String::from_utf8_lossy(&said)));
        }
        said.extend_from_slice(&scratch[..read]);
    }
    stream.set_nonblocking(true)?;
    Ok((TcpStream::from_std(stream)?, said))
}

async fn run(args: &[String]) -> io::Result<()> {
    let [listen, server, servers, user, database] = args else {
        return Err(io::Error::other("usage: relay LISTEN SERVER SERVERS USER DATABASE"));
    };
    let servers: usize = servers.parse().map_err(io::Error::other)?;
    let (mut free, mut greeting) = (Vec::new(), Vec::new());
    for _ in 0..servers {
        let (stream, said) = log_in(server, user, database)?;
        free.push(stream);
        greeting = said;
    }
    let scratch = RefCell::new(vec![0; 65_536].into_boxed_slice());
    let turns = Semaphore::new(servers);
    let relay = Rc::new(Relay { greeting, turns, free: RefCell::new(free), scratch });
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (client, _) = listener.accept().await?;
        client.set_nodelay(true)?;
        let relay = Rc::clone(&relay);
        spawn_local(async move {
            if let Err(error) = relay.serve(client).await {
                // A relay that has lost a server is no yardstick any more.
                eprintln!("relay: {error}");
                std::process::exit(1);
            }
        });
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    LocalRuntime::new()?.block_on(run(&args))
}

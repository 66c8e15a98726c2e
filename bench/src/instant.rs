//! A server that answers at once: what is left of PostgreSQL when a query costs nothing.
//!
//! It trusts everybody, and its reply to a query is one row with the query's own text: whoever asks
//! sees whether the reply is the right one. An extended batch is answered message by message, with
//! a row that is always the same. What it does not know ends the connection.
//!
//! Connections are dealt out to the threads in turn. Each is a runtime of its own, in which a
//! connection costs a read and a write for each batch that the other side writes at once.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::LocalRuntime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_local;

/// Room for a connection's messages, without growing.
const BUFFER: usize = 4 << 10;

const SSL_REQUEST: u32 = 80_877_103;
const GSSENC_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// What PostgreSQL 15 reports at login.
const PARAMETERS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "on"),
    ("server_encoding", "UTF8"),
    ("server_version", "15.0"),
    ("session_authorization", "bench"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "GMT"),
];

/// The type `text`.
const TEXT_OID: u32 = 25;

/// Answers on `port` of 127.0.0.1 with so many threads, until it is killed.
pub(crate) fn run(port: u16, threads: u32) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let threads: Vec<_> = (0..threads).map(|_| start_thread()).collect();
    for (stream, thread) in listener.incoming().zip(threads.iter().cycle()) {
        let stream = stream?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        thread.send(stream).map_err(io::Error::other)?;
    }
    Ok(())
}

/// The reply to a query with this text, to the byte.
pub(crate) fn reply_to(text: &str) -> Vec<u8> {
    let mut reply = Vec::new();
    put_result(&mut reply, text.as_bytes());
    reply
}

/// A thread that serves the connections that it is sent.
fn start_thread() -> UnboundedSender<TcpStream> {
    let (sender, streams) = unbounded_channel();
    thread::spawn(move || {
        if let Err(error) = LocalRuntime::new().and_then(|r| r.block_on(serve_all(streams))) {
            // Without one of its threads this is no server to measure with.
            eprintln!("instant: {error}");
            std::process::exit(1);
        }
    });
    sender
}

async fn serve_all(mut streams: UnboundedReceiver<TcpStream>) -> io::Result<()> {
    while let Some(stream) = streams.recv().await {
        let stream = tokio::net::TcpStream::from_std(stream)?;
        spawn_local(async move {
            // A connection that breaks is its client's affair.
            let _ = serve(stream).await;
        });
    }
    Ok(())
}

async fn serve(mut stream: tokio::net::TcpStream) -> io::Result<()> {
    let mut session = Session::default();
    let (mut inbox, mut outbox) = (Vec::with_capacity(BUFFER), Vec::with_capacity(BUFFER));
    while stream.read_buf(&mut inbox).await? > 0 {
        let Some(answered) = session.answer(&inbox, &mut outbox) else { return Ok(()) };
        inbox.drain(..answered);
        stream.write_all(&outbox).await?;
        outbox.clear();
    }
    Ok(())
}

/// What is remembered of a client.
#[derive(Default)]
struct Session {
    /// The startup packet has come: from here on messages have a kind.
    started: bool,
}

impl Session {
    /// Answers the whole messages at the head of `inbox`; their length, or `None` where the
    /// connection ends.
    fn answer(&mut self, inbox: &[u8], outbox: &mut Vec<u8>) -> Option<usize> {
        let mut rest = inbox;
        while let Some((kind, body, behind)) = first_message(rest, self.started) {
            match kind {
                Some(kind) => put_reply(outbox, kind, body)?,
                None => self.greet(body, outbox)?,
            }
            rest = behind;
        }
        Some(inbox.len() - rest.len())
    }

    fn greet(&mut self, packet: &[u8], outbox: &mut Vec<u8>) -> Option<()> {
        match packet.first_chunk().map(|code| u32::from_be_bytes(*code)) {
            Some(SSL_REQUEST | GSSENC_REQUEST) => outbox.push(b'N'),
            Some(CANCEL_REQUEST) | None => return None,
            Some(_) => {
                self.started = true;
                put_greeting(outbox);
            }
        }
        Some(())
    }
}

/// The kind, the body and what is behind; `None` of less than a message.
fn first_message(inbox: &[u8], has_kind: bool) -> Option<(Option<u8>, &[u8], &[u8])> {
    let (kind, rest) = if has_kind {
        let (kind, rest) = inbox.split_first()?;
        (Some(*kind), rest)
    } else {
        (None, inbox)
    };
    let (length, rest) = rest.split_first_chunk()?;
    let length = (u32::from_be_bytes(*length) as usize).checked_sub(4)?;
    let (body, behind) = rest.split_at_checked(length)?;
    Some((kind, body, behind))
}

/// AuthenticationOk, and all that follows it at a login.
fn put_greeting(outbox: &mut Vec<u8>) {
    put(outbox, b'R', &[&[0; 4]]);
    for (name, value) in PARAMETERS {
        put(outbox, b'S', &[name.as_bytes(), b"\0", value.as_bytes(), b"\0"]);
    }
    put(outbox, b'K', &[&[0; 8]]);
    put_ready(outbox);
}

/// What one message is answered with; `None` where the connection ends.
fn put_reply(outbox: &mut Vec<u8>, kind: u8, body: &[u8]) -> Option<()> {
    match kind {
        b'Q' => put_result(outbox, body.strip_suffix(b"\0").unwrap_or(body)),
        b'P' => put(outbox, b'1', &[]),
        b'B' => put(outbox, b'2', &[]),
        b'C' => put(outbox, b'3', &[]),
        b'D' => {
            if body.starts_with(b"S") {
                put(outbox, b't', &[&[0; 2]]);
            }
            put_description(outbox);
        }
        b'E' => put_row(outbox, b"1"),
        b'S' => put_ready(outbox),
        b'H' => {}
        b'X' => return None,
        other => {
            eprintln!("instant: a message of kind {:?}", char::from(other));
            return None;
        }
    }
    Some(())
}

/// One row with this value, described, and the end of the reply.
fn put_result(outbox: &mut Vec<u8>, value: &[u8]) {
    put_description(outbox);
    put_row(outbox, value);
    put_ready(outbox);
}

fn put_description(outbox: &mut Vec<u8>) {
    let (count, table_and_column) = ([0, 1], [0; 6]);
    let (length_and_modifier, format) = ([0xff; 6], [0; 2]);
    let column: [&[u8]; 6] = [
        &count,
        b"?column?\0",
        &table_and_column,
        &TEXT_OID.to_be_bytes(),
        &length_and_modifier,
        &format,
    ];
    put(outbox, b'T', &column);
}

/// DataRow and CommandComplete.
fn put_row(outbox: &mut Vec<u8>, value: &[u8]) {
    // A query that was read into memory is shorter than 4 GB.
    put(outbox, b'D', &[&[0, 1], &(value.len() as u32).to_be_bytes(), value]);
    put(outbox, b'C', &[b"SELECT 1\0"]);
}

fn put_ready(outbox: &mut Vec<u8>) {
    put(outbox, b'Z', &[b"I"]);
}

/// A message: its kind, its length, which counts itself, and its body in parts.
fn put(outbox: &mut Vec<u8>, kind: u8, body: &[&[u8]]) {
    let length: usize = 4 + body.iter().map(|part| part.len()).sum::<usize>();
    outbox.push(kind);
    outbox.extend_from_slice(&(length as u32).to_be_bytes());
    for part in body {
        outbox.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests;

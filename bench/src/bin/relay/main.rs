//! The bare relay: the yardstick beside which poolers are measured.
//!
//! One tokio current-thread runtime, a fixed pool of servers, and no knowledge of the protocol
//! beyond what lending a server takes: the first byte of a client's read (Terminate is not passed
//! on) and the last six bytes of a server's read (ReadyForQuery with status `I` ends the loan).
//! What it costs is what the kernel's sockets cost. It is no pooler: a client's turn must fit one
//! read, errors end the process, and nobody is authenticated.
//!
//! `relay LISTEN SERVER SERVERS USER DATABASE [pipelining]`, the addresses as `127.0.0.1:6432`.

mod pipelining;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::LocalRuntime;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use pipelining::Shared;

struct Relay {
    /// What a server said at login, from AuthenticationOk to ReadyForQuery: said to every client.
    greeting: Vec<u8>,
    /// As many permits as there are servers in `free`; its queue is first in, first out.
    turns: Semaphore,
    free: RefCell<Vec<TcpStream>>,
    scratch: RefCell<Box<[u8]>>,
}

impl Relay {
    /// Serves a client that has been greeted, to its end.
    ///
    /// Errors: those after which a server is lost.
    async fn serve(&self, client: &mut TcpStream) -> io::Result<()> {
        loop {
            let read = self.read(client).await.unwrap_or(0);
            if self.is_goodbye(read) {
                return Ok(());
            }
            let (_turn, kept) = match self.turns.try_acquire() {
                Ok(turn) => (turn, Vec::new()),
                Err(_) => {
                    let kept = self.scratch.borrow()[..read].to_vec();
                    (self.turns.acquire().await.map_err(io::Error::other)?, kept)
                }
            };
            let mut server = self.free.borrow_mut().pop().ok_or(ErrorKind::NotConnected)?;
            let rest = if kept.is_empty() { self.write(&server, read)? } else { kept };
            flush(&server, rest).await?;
            self.transaction(client, &mut server).await?;
            self.free.borrow_mut().push(server);
        }
    }

    /// Relays until the server, which has been asked something, is idle again.
    async fn transaction(&self, client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
        let mut tail = [0; 6];
        while tail != *b"Z\0\0\0\x05I" {
            let read = self.read(server).await?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            {
                let scratch = self.scratch.borrow();
                let last = &scratch[read.saturating_sub(6)..read];
                tail.copy_within(last.len().., 0);
                tail[6 - last.len()..].copy_from_slice(last);
            }
            flush(client, self.write(client, read)?).await?;
            if tail[..5] == *b"Z\0\0\0\x05" && tail[5] != b'I' {
                let read = self.read(client).await?;
                if self.is_goodbye(read) {
                    return Err(ErrorKind::ConnectionAborted.into());
                }
                flush(server, self.write(server, read)?).await?;
            }
        }
        Ok(())
    }

    /// Waits for bytes and reads them into `scratch`, where they stay until the next wait; 0 at
    /// the end of the stream.
    async fn read(&self, from: &mut TcpStream) -> io::Result<usize> {
        poll_fn(|context| {
            let mut scratch = self.scratch.borrow_mut();
            let mut buffer = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut *from).poll_read(context, &mut buffer))?;
            Poll::Ready(Ok(buffer.filled().len()))
        })
        .await
    }

    /// Writes what was read; gives what the socket did not take.
    fn write(&self, to: &TcpStream, read: usize) -> io::Result<Vec<u8>> {
        let bytes = &self.scratch.borrow()[..read];
        Ok(bytes[written(to.try_write(bytes))?..].to_vec())
    }

    /// Whether a client's read is its last: the end of the stream, or Terminate.
    fn is_goodbye(&self, read: usize) -> bool {
        read == 0 || self.scratch.borrow()[0] == b'X'
    }

    /// Answers the startup packet, whatever it says, and refuses encryption before it.
    async fn greet(&self, client: &mut TcpStream) -> io::Result<()> {
        // SSLRequest and GSSENCRequest are the packets of eight bytes.
        while self.read(client).await? == 8 {
            client.try_write(b"N")?;
        }
        client.try_write(&self.greeting).map(drop)
    }
}

async fn flush(to: &TcpStream, mut rest: Vec<u8>) -> io::Result<()> {
    while !rest.is_empty() {
        to.writable().await?;
        rest.drain(..written(to.try_write(&rest))?);
    }
    Ok(())
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

/// Ends the process with an error: a relay that has lost a server is no yardstick any more.
async fn or_exit(task: impl Future<Output = io::Result<()>>) {
    if let Err(error) = task.await {
        eprintln!("relay: {error}");
        std::process::exit(1);
    }
}

async fn run(args: &[String]) -> io::Result<()> {
    let (pipelining, args) = match args {
        [args @ .., last] if last == "pipelining" => (true, args),
        args => (false, args),
    };
    let [listen, server, servers, user, database] = args else {
        let usage = "usage: relay LISTEN SERVER SERVERS USER DATABASE [pipelining]";
        return Err(io::Error::other(usage));
    };
    let servers: usize = servers.parse().map_err(io::Error::other)?;
    let (mut free, mut greeting) = (Vec::new(), Vec::new());
    for _ in 0..servers {
        let (stream, said) = log_in(server, user, database)?;
        free.push(stream);
        greeting = said;
    }
    let shared = Rc::new(Shared::of(if pipelining { free.split_off(0) } else { vec![] }));
    let scratch = RefCell::new(vec![0; 65_536].into_boxed_slice());
    let turns = Semaphore::new(servers);
    let relay = Rc::new(Relay { greeting, turns, free: RefCell::new(free), scratch });
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (mut client, _) = listener.accept().await?;
        client.set_nodelay(true)?;
        let (relay, shared) = (Rc::clone(&relay), Rc::clone(&shared));
        spawn_local(or_exit(async move {
            if relay.greet(&mut client).await.is_err() {
                return Ok(());
            }
            if pipelining {
                shared.serve(client).await;
                return Ok(());
            }
            relay.serve(&mut client).await
        }));
    }
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    LocalRuntime::new()?.block_on(run(&args))
}

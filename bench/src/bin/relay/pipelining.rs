//! The same for clients that stand behind each other: what pipelining costs when it knows nothing.
//!
//! A client belongs to one server from its login to its end. What it sends in one read goes to that
//! server behind what others sent, together with all that is there by then; replies go back in the
//! order of requests, each up to its ReadyForQuery. So no statement is read, and one that is
//! prepared by name is there for all clients of its server: of those only the first may prepare it,
//! and pgbench goes on where the others are told so. A client's read must be one unit, and a unit
//! must not leave a transaction open.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::rc::Rc;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use super::{flush, or_exit, written};

/// The servers, and whose turn it is to get the next client.
pub(super) struct Shared {
    lines: Vec<Rc<Line>>,
    next: Cell<usize>,
}

/// A server, and who waits for it.
#[derive(Default)]
struct Line {
    /// What is to be sent at once.
    outbox: RefCell<Vec<u8>>,
    /// There is something in it.
    filled: Notify,
    /// Whose replies come next, in order. One whose client has left is read and thrown away.
    waiting: RefCell<VecDeque<Rc<OwnedWriteHalf>>>,
}

impl Shared {
    /// Takes servers over that are logged in.
    pub(super) fn of(servers: Vec<TcpStream>) -> Self {
        let start = |server: TcpStream| {
            let line = Rc::new(Line::default());
            let (replies, requests) = server.into_split();
            spawn_local(or_exit(Rc::clone(&line).send(requests)));
            spawn_local(or_exit(Rc::clone(&line).give_back(replies)));
            line
        };
        Self { lines: servers.into_iter().map(start).collect(), next: Cell::new(0) }
    }

    /// Serves a client that has been greeted, to its end.
    pub(super) async fn serve(&self, client: TcpStream) {
        let line = &self.lines[self.next.get() % self.lines.len()];
        self.next.set(self.next.get() + 1);
        let (mut requests, replies) = client.into_split();
        let replies = Rc::new(replies);
        let mut buffer = vec![0; 4096];
        loop {
            // An error is an end too.
            let read = requests.read(&mut buffer).await.unwrap_or(0);
            if read == 0 || buffer[0] == b'X' {
                return;
            }
            line.outbox.borrow_mut().extend_from_slice(&buffer[..read]);
            line.waiting.borrow_mut().push_back(Rc::clone(&replies));
            line.filled.notify_one();
        }
    }
}

impl Line {
    /// Sends what clients put into the outbox: all of a turn of the runtime at once.
    async fn send(self: Rc<Self>, server: OwnedWriteHalf) -> io::Result<()> {
        loop {
            self.filled.notified().await;
            let requests = self.outbox.take();
            let sent = written(server.try_write(&requests))?;
            flush(server.as_ref(), requests[sent..].to_vec()).await?;
        }
    }

    /// Gives replies to those who wait for them.
    async fn give_back(self: Rc<Self>, mut server: OwnedReadHalf) -> io::Result<()> {
        let mut inbox = Vec::with_capacity(1 << 16);
        while server.read_buf(&mut inbox).await? > 0 {
            let mut begin = 0;
            while let Some(length) = reply_in(&inbox[begin..]) {
                let client = self.waiting.borrow_mut().pop_front();
                let client = client.ok_or_else(|| io::Error::other("a reply nobody asked for"))?;
                let reply = &inbox[begin..begin + length];
                // A client that has left does not keep others from their replies.
                if let Ok(sent) = written(client.try_write(reply)) {
                    let _ = flush(client.as_ref().as_ref(), reply[sent..].to_vec()).await;
                }
                begin += length;
            }
            inbox.drain(..begin);
        }
        Err(ErrorKind::UnexpectedEof.into())
    }
}

/// The length of what begins here and ends with a ReadyForQuery; `None` of less.
fn reply_in(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (kind, length) = bytes.get(at..)?.split_first()?;
        let length = u32::from_be_bytes(*length.first_chunk()?) as usize;
        at += 1 + length;
        if *kind == b'Z' {
            return (at <= bytes.len()).then_some(at);
        }
    }
}

#[cfg(test)]
mod tests;

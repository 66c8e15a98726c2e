//! A connection whose far end the test plays.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use pgweir_proxy::Transport;
use pgweir_wire::Header;

/// What both ends of a connection share. Nothing in it waits: the stage asks what is ready.
#[derive(Clone)]
pub(crate) struct Line(Rc<Ends>);

struct Ends {
    /// To pgweir, not yet read.
    incoming: RefCell<VecDeque<u8>>,
    /// From pgweir, not yet looked at.
    outgoing: RefCell<Vec<u8>>,
    /// Bytes that may still be written before there is room again.
    room: Cell<usize>,
    ended: Cell<bool>,
    broken: Cell<bool>,
    deaf: Cell<bool>,
    woken: Cell<bool>,
    shut: Cell<bool>,
    let_go: Cell<bool>,
}

impl Line {
    /// A connection with room for anything.
    pub(crate) fn new() -> Self {
        Self(Rc::new(Ends {
            incoming: RefCell::default(),
            outgoing: RefCell::default(),
            room: Cell::new(usize::MAX),
            ended: Cell::new(false),
            broken: Cell::new(false),
            deaf: Cell::new(false),
            woken: Cell::new(true),
            shut: Cell::new(false),
            let_go: Cell::new(false),
        }))
    }

    /// Whether both are ends of the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// The far end sends.
    pub(crate) fn put(&self, bytes: &[u8]) {
        self.0.incoming.borrow_mut().extend(bytes);
    }

    /// The far end sends no more.
    pub(crate) fn end(&self) {
        self.0.ended.set(true);
    }

    /// Reading fails from now on.
    pub(crate) fn break_off(&self) {
        self.0.broken.set(true);
        self.0.incoming.borrow_mut().clear();
    }

    /// Writing fails from now on.
    pub(crate) fn deafen(&self) {
        self.0.deaf.set(true);
    }

    /// The far end takes this many bytes and no more.
    pub(crate) fn set_room(&self, bytes: usize) {
        self.0.room.set(bytes);
    }

    /// Takes what has come out.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.outgoing.borrow_mut())
    }

    /// Takes what has come out, if all of it is this.
    pub(crate) fn take_if(&self, is_this: impl FnOnce(&[u8]) -> bool) -> bool {
        let mut outgoing = self.0.outgoing.borrow_mut();
        let taken = is_this(&outgoing);
        if taken {
            outgoing.clear();
        }
        taken
    }

    /// Takes the last of the messages that pgweir has written, if it is the one that is meant.
    pub(crate) fn take_last_if(&self, is_this: impl FnOnce(&[u8]) -> bool) -> bool {
        let mut outgoing = self.0.outgoing.borrow_mut();
        let (mut last, mut at) = (0, 0);
        while let Ok(Some(header)) = Header::parse(&outgoing[at..]) {
            (last, at) = (at, at + header.message_len());
            if at > outgoing.len() {
                return false;
            }
        }
        let taken = is_this(&outgoing[last..]);
        if taken {
            outgoing.truncate(last);
        }
        taken
    }

    /// pgweir has dropped its end.
    pub(crate) fn let_go(&self) {
        self.0.let_go.set(true);
    }

    pub(crate) fn is_let_go(&self) -> bool {
        self.0.let_go.get()
    }

    /// Whether pgweir has said that nothing more follows.
    pub(crate) fn is_shut(&self) -> bool {
        self.0.shut.get()
    }

    /// Whether a read would find something.
    pub(crate) fn is_readable(&self) -> bool {
        self.0.broken.get() || self.0.ended.get() || !self.0.incoming.borrow().is_empty()
    }

    /// Whether its far end has reset it.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.broken.get()
    }

    /// Whether a write would find room.
    pub(crate) fn is_writable(&self) -> bool {
        self.0.deaf.get() || self.0.room.get() > 0
    }

    /// Whether pgweir has asked to be looked at since the last time.
    pub(crate) fn take_wake(&self) -> bool {
        self.0.woken.take()
    }
}

impl Transport for Line {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.broken.get() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let mut incoming = self.0.incoming.borrow_mut();
        if incoming.is_empty() && !self.0.ended.get() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = buffer.len().min(incoming.len());
        for (to, byte) in buffer.iter_mut().zip(incoming.drain(..n)) {
            *to = byte;
        }
        Ok(n)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.deaf.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = self.0.room.get();
        let n = bytes.len().min(room);
        if n == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if room < usize::MAX {
            self.0.room.set(room - n);
        }
        self.0.outgoing.borrow_mut().extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn shutdown(&self) {
        self.0.shut.set(true);
    }

    fn wake(&self) {
        self.0.woken.set(true);
    }
}

//! Who is at the other end of a connection, in the words of the tests.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pgweir_engine::Endpoint;
use pgweir_proxy::Interest;
use pgweir_wire::{CancelKey, Header, backend};

use crate::line::Line;
use crate::messages::{from_backend, from_frontend, ready};
use crate::world::World;

/// The far end of a connection.
pub(crate) struct Peer {
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) endpoint: Endpoint,
    pub(crate) line: Line,
    /// A client's own, or a server's.
    pub(crate) key: Cell<Option<CancelKey>>,
}

impl Peer {
    /// Sends messages, all at once.
    pub(crate) fn says(&self, messages: impl IntoIterator<Item: AsRef<[u8]>>) {
        let mut bytes = Vec::new();
        for message in messages {
            bytes.extend_from_slice(message.as_ref());
        }
        self.sends(&bytes);
    }

    /// Sends bytes, all at once.
    pub(crate) fn sends(&self, bytes: &[u8]) {
        self.line.put(bytes);
        self.settle();
    }

    /// Sends no more; it may still read.
    pub(crate) fn ends(&self) {
        self.line.end();
        self.settle();
    }

    /// Sends this, and no more.
    pub(crate) fn says_and_ends(&self, messages: impl IntoIterator<Item: AsRef<[u8]>>) {
        for message in messages {
            self.line.put(message.as_ref());
        }
        self.ends();
    }

    /// Its connection breaks.
    pub(crate) fn breaks(&self) {
        self.line.break_off();
        self.settle();
    }

    /// Nothing can be written to it any more; what it has sent can still be read.
    pub(crate) fn deafens(&self) {
        self.line.deafen();
    }

    /// Sends something that nobody has been told of yet.
    pub(crate) fn has_sent(&self, bytes: &[u8]) {
        self.line.put(bytes);
    }

    /// Has ended its stream, which nobody has been told of yet.
    pub(crate) fn has_ended(&self) {
        self.line.end();
    }

    /// Takes so many bytes from now on.
    pub(crate) fn takes(&self, bytes: usize) {
        self.line.set_room(bytes);
        self.settle();
    }

    /// Takes whatever comes.
    pub(crate) fn takes_all(&self) {
        self.takes(usize::MAX);
    }

    /// What has come since the last call, a word for each message.
    pub(crate) fn heard(&self) -> String {
        let bytes = self.heard_bytes();
        match self.endpoint {
            Endpoint::Client(_) => from_backend(&bytes),
            Endpoint::Cancel(_) | Endpoint::Server(_) => from_frontend(&bytes),
        }
    }

    /// What has come since the last call.
    pub(crate) fn heard_bytes(&self) -> Vec<u8> {
        self.line.take()
    }

    /// Takes the messages of a login's end, if they have come, and notes the key among them.
    pub(crate) fn is_greeted(&self) -> bool {
        let bytes = self.heard_bytes();
        let mut rest = &bytes[..];
        let mut key = None;
        while let Ok(Some(header)) = Header::parse(rest) {
            if header.tag == b'K' {
                key = backend::parse_backend_key_data(&rest[5..header.message_len()]).ok();
            }
            rest = &rest[header.message_len()..];
        }
        let greeted = key.is_some() && bytes.ends_with(&ready());
        self.key.set(key);
        greeted
    }

    /// What a CancelRequest for it carries.
    pub(crate) fn key(&self) -> CancelKey {
        let key = self.key.take();
        self.key.set(key.clone());
        key.expect("it has no key")
    }

    /// Whether pgweir reads what it sends.
    pub(crate) fn is_read(&self) -> bool {
        self.interest().is_some_and(|interest| interest.read)
    }

    /// Whether pgweir has closed the connection in good order: the last words were written.
    pub(crate) fn is_closed(&self) -> bool {
        self.line.is_let_go() && self.line.is_shut()
    }

    /// Whether pgweir has dropped the connection without another word.
    pub(crate) fn is_aborted(&self) -> bool {
        self.line.is_let_go() && !self.line.is_shut()
    }

    /// Whether pgweir has said that it says no more, and still listens.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.is_open() && self.line.is_shut()
    }

    /// A backend whose client vanishes ends. Says whether it was shown that, and whether nothing is
    /// left then.
    pub(crate) fn sees_its_client_vanish(&self) -> bool {
        let sees = self.is_half_closed();
        self.ends();
        sees && !self.is_open()
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.line.is_let_go()
    }

    fn interest(&self) -> Option<Interest> {
        let mut world = self.world.borrow_mut();
        let task = world.tasks.iter().find(|task| task.endpoint == self.endpoint)?;
        let awaited = task.awaited;
        let said = world.driver.interest(self.endpoint);
        assert_eq!(said, Some(awaited), "the interest has changed and nobody was woken");
        said
    }

    fn settle(&self) {
        self.world.borrow_mut().settle();
    }
}

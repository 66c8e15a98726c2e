//! What is kept while a client's unit shares a server: its reply, and its bytes.

use pgweir_engine::{ClientId, Endpoint, Mark};

use super::Driver;
use crate::link::RETAINED_BYTES;
use crate::transport::Transport;

impl<T: Transport> Driver<T> {
    /// A piece of a reply is kept until the engine says what becomes of it.
    pub(super) fn hold(&mut self, client: ClientId, bytes: &[u8]) {
        if let Some(link) = self.clients.find(Endpoint::Client(client)) {
            link.held.extend_from_slice(bytes);
        }
    }

    /// What is kept of a reply goes out.
    pub(super) fn release(&mut self, client: ClientId) {
        let to = Endpoint::Client(client);
        let held = self.clients.find(to).map(|link| std::mem::take(&mut link.held));
        self.write(to, &held.unwrap_or_default(), false);
    }

    /// What is kept of a reply is thrown away.
    pub(super) fn discard(&mut self, client: ClientId) {
        if let Some(link) = self.clients.find(Endpoint::Client(client)) {
            link.held = Vec::new();
        }
    }

    /// So much of what is retained of a client is done with.
    pub(super) fn consume(&mut self, client: ClientId, n: usize) {
        let Some(link) = self.clients.find(Endpoint::Client(client)) else { return };
        let was_full = link.retained.len() >= RETAINED_BYTES;
        if n >= link.retained.len() {
            debug_assert_eq!(n, link.retained.len(), "more is done with than is retained");
            link.retained = Vec::new();
        } else {
            link.retained.drain(..n);
        }
        if was_full {
            Mark::RetainedRead.hit();
            link.io.wake();
        }
    }

    /// What was read of a client is to be read once more, in front of what is retained.
    pub(super) fn restore(&mut self, client: ClientId, bytes: &[u8]) {
        if let Some(link) = self.clients.find(Endpoint::Client(client)) {
            link.retained.splice(..0, bytes.iter().copied());
        }
    }
}

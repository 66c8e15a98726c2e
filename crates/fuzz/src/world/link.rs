//! A connection in memory.

use pgweir_engine::Endpoint;
use pgweir_wire::Initial;

use crate::postgres::Postgres;

/// One connection, also after its end.
pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) peer: Peer,
    /// Sent by the peer and not given to the engine yet.
    pub(super) coming: Vec<u8>,
    /// Given to the engine, which has not consumed it.
    pub(super) retained: Vec<u8>,
    /// Kept for it by the engine, of a reply that is not over.
    pub(super) held: Vec<u8>,
    /// Written by the engine.
    pub(super) written: Vec<u8>,
    pub(super) paused: bool,
    /// The peer sends no more.
    pub(super) ended: bool,
    /// The engine knows.
    pub(super) told: bool,
    pub(super) fate: Fate,
}

/// Who is at the other end.
pub(super) enum Peer {
    Client,
    Cancel,
    Server(Box<Postgres>),
}

/// What the engine has done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Closed,
    Aborted,
}

impl Link {
    /// One that has just been made.
    pub(super) fn open(endpoint: Endpoint, peer: Peer) -> Self {
        Self {
            endpoint,
            peer,
            coming: Vec::new(),
            retained: Vec::new(),
            held: Vec::new(),
            written: Vec::new(),
            paused: false,
            ended: false,
            told: false,
            fate: Fate::Open,
        }
    }

    /// Whether its peer can do something without being asked.
    pub(super) fn has_something_to_say(&self) -> bool {
        if self.fate != Fate::Open || self.paused {
            return false;
        }
        match &self.peer {
            _ if !self.coming.is_empty() || self.ended && !self.told => true,
            Peer::Client => false,
            Peer::Cancel => !self.ended,
            Peer::Server(server) => !server.output.is_empty() || server.closed && !self.ended,
        }
    }

    /// How many of the bytes that are coming can come before an answer. Who asks for encryption
    /// has to wait for it, and who does not wait is treated in another way. When bytes arrive must
    /// make no other difference.
    pub(super) fn unanswerable(&self, coming: &[u8], patient: bool) -> usize {
        let Peer::Client = self.peer else { return usize::MAX };
        if !patient || self.written.iter().any(|byte| *byte != b'N') {
            return usize::MAX;
        }
        let start = [&self.retained[..], coming].concat();
        match Initial::parse(&start) {
            Ok(Some((Initial::SslRequest | Initial::GssEncRequest, length))) => {
                length - self.retained.len()
            }
            _ => usize::MAX,
        }
    }
}

//! What a step of a server process came to.

use pgweir_wire::CancelKey;

use crate::session::{Home, Notification, State};

/// What a process did when it ended.
#[derive(Clone, Debug)]
pub(crate) struct Doing {
    pub(crate) home: Option<Home>,
    /// Whose transaction or batch was open.
    pub(crate) owner: Option<u32>,
    /// It was nobody's.
    pub(crate) clean: bool,
    /// It was being brought to a client's settings.
    pub(crate) prepared: bool,
}

/// A process works for another client than before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub(crate) client: u32,
    /// When it last had a message of somebody else: it was lent after that.
    pub(crate) after: u64,
}

/// What a process asks of the rest of the world.
#[derive(Default)]
pub(crate) struct Outcome {
    /// When it wants to go on, if its connection does not stir before.
    pub(crate) wake_at: Option<u64>,
    /// The process to be cancelled.
    pub(crate) cancels: Option<CancelKey>,
    /// Notifications to all that listen.
    pub(crate) notifies: Vec<Announcement>,
    /// It has given a lock back that others may wait for.
    pub(crate) unlocks: bool,
    /// It has read whose server it is to be.
    pub(crate) introduced: bool,
    /// It has refused a login for want of room.
    pub(crate) full: bool,
    /// It has ended without being asked to.
    pub(crate) died: Option<Doing>,
    /// It stands still until then.
    pub(crate) balks: Option<(Doing, u64)>,
    pub(crate) leases: Vec<Lease>,
    /// A message of this client's has come to it.
    pub(crate) served: Option<u32>,
    /// It has been asked what its server has room for.
    pub(crate) says_room: bool,
    /// It has answered that: bytes of its connection up to the end of the answer, sent or not.
    pub(crate) has_said_room: Option<u64>,
}

/// A notification on its way to the other processes of its server.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    /// The process that has said it, and where.
    pub(super) from: i32,
    pub(super) database: String,
    pub(super) said: Notification,
}

impl Announcement {
    /// The database, and what was said where.
    pub(crate) fn parts(&self) -> (&str, (String, String)) {
        (&self.database, (self.said.channel.clone(), self.said.payload.clone()))
    }
}

/// Whose message a process had last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    pub(super) client: Option<u32>,
    /// When; at first, when it was connected to: it may have been promised then.
    pub(super) at: u64,
    /// Messages so far.
    met: u64,
    /// Whose transaction or batch is open, and since when.
    owner: Option<(u32, u64)>,
}

impl Work {
    pub(super) fn new(now: u64) -> Self {
        Self { at: now, ..Self::default() }
    }

    /// Notes whose message has come, if one has, and whether that is another client.
    pub(super) fn go_on(&mut self, state: &State, now: u64, outcome: &mut Outcome) {
        if state.owner != self.owner.map(|(owner, _)| owner) {
            self.owner = state.owner.map(|owner| (owner, now));
        }
        if state.met == std::mem::replace(&mut self.met, state.met) {
            return;
        }
        let served = state.served.map(|tag| tag.client);
        let before = std::mem::replace(&mut self.client, served);
        let after = std::mem::replace(&mut self.at, now);
        outcome.served = served;
        let other = served.filter(|_| before != served);
        outcome.leases.extend(other.map(|client| Lease { client, after }));
    }

    /// Since when a transaction or batch of this client's has been open, if one is.
    pub(super) fn owned_since(&self, client: u32) -> Option<u64> {
        self.owner.filter(|(owner, _)| *owner == client).map(|(_, since)| since)
    }
}

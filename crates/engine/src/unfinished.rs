//! Units whose end has not come.
//!
//! A client that makes up its mind slowly would hold a server that others wait for. So a unit gets
//! one when it is whole, or when nothing else will do: it is longer than we keep, or its client
//! takes so long that it perhaps waits for us.

use std::time::Duration;

use pgweir_wire::frontend::Tag;

use crate::Engine;
use crate::action::ClientId;
use crate::marks::Mark;
use crate::time::Time;
use crate::timers::TICK;
use crate::units::{UNIT_HELD_BYTES, message};

/// How long a server is not asked for after the first messages of a batch.
const PATIENCE: Duration = TICK;

impl Engine {
    /// Whether the end of a batch has been waited for long enough. Its client may wait in turn, for
    /// what PostgreSQL says without being asked: an error, or that it is ready for COPY data.
    pub(crate) fn is_overdue(&mut self, now: Time, id: ClientId) -> bool {
        let client = &mut self.clients[id];
        if client.scanned == 0 {
            // To a part of a message PostgreSQL says nothing either.
            return false;
        }
        if let Some(since) = client.unfinished {
            let overdue = now - since >= PATIENCE;
            Mark::BatchOverdue.hit_if(overdue);
            return overdue;
        }
        client.unfinished = Some(now);
        self.unfinished.push_back((id, now));
        false
    }

    /// Goes on with batches whose end was waited for in vain.
    pub(crate) fn sweep_unfinished(&mut self, now: Time) {
        while let Some(&(id, since)) = self.unfinished.front() {
            let client = self.clients.find(id);
            if client.is_some_and(|client| client.unfinished == Some(since)) {
                if now - since < PATIENCE {
                    break;
                }
                self.resume(id);
            }
            self.unfinished.pop_front();
        }
    }
}

/// Whether the unit at the front has come up to its end. `scanned` bytes of it are known to be
/// whole messages that do not end it, and are not looked at again.
pub(crate) fn unit_is_whole(rest: &[u8], scanned: &mut usize) -> bool {
    while let Some(next) = rest.get(*scanned..) {
        let (header, tag) = match message(next) {
            Ok(Some(message)) => message,
            Ok(None) => return false,
            // Whoever reads on will see it.
            Err(_) => return true,
        };
        if next.len() < header.message_len() {
            return false;
        }
        match tag {
            Tag::Bind | Tag::Close | Tag::Describe | Tag::Execute | Tag::Parse => {
                *scanned += header.message_len();
            }
            Tag::CopyData
            | Tag::CopyDone
            | Tag::CopyFail
            | Tag::Flush
            | Tag::FunctionCall
            | Tag::Password
            | Tag::Query
            | Tag::Sync
            | Tag::Terminate => return true,
        }
    }
    false
}

/// The unit at the front, if all of it has come, and it is not too long to be kept.
pub(crate) fn whole_unit(rest: &[u8]) -> Option<&[u8]> {
    let mut scanned = 0;
    if !unit_is_whole(rest, &mut scanned) {
        return None;
    }
    let (last, _) = message(&rest[scanned..]).ok()??;
    rest.get(..scanned + last.message_len()).filter(|unit| unit.len() <= UNIT_HELD_BYTES)
}

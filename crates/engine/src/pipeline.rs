//! Pipelining: units of several clients stand one behind the other on one server.
//!
//! PostgreSQL sleeps when it has answered and nothing else is there, and to wake it costs more than
//! most statements do. So units that are *closed*, whole and short are sent to a server that is at
//! work for others, and answered in the order of sending. Whether a text is closed `sql` says
//! ([`pgweir_sql::Sharing`]): it begins and ends by itself, and leaves nothing.
//!
//! - A server that is shared runs with a `statement_timeout` of ours, its *brake*: whatever stands
//!   in front takes no longer than that. What overruns is ended by its own backend, and is run
//!   again alone, with its client's own timeout. So nothing of a reply goes out before its
//!   ReadyForQuery, and the bytes of a unit stay with its client's connection until then.
//! - A read never stands behind a write: to wait for a commit is under no timeout.
//! - Where many units stand on a server, some that only read go under one Sync ([`joined`]).
//! - Nothing is ever cancelled from outside on a server with a second unit on it, and no such
//!   server is closed by us: it is drained.
//! - Whoever needs a server alone waits in the same queue; the server that will run dry first is
//!   *reserved* then, takes no more units, and is lent when it has.
//!
//! A shared server is *hot* from its first unit to its last; in between it is idle like any other,
//! and keeps its brake until it is lent to somebody alone.

mod anew;
mod answer;
mod choice;
mod climb;
mod climbs;
mod heat;
mod joined;
mod lost;
mod place;
mod repute;
mod reserve;
mod send;
mod unit;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use pgweir_config::Pipelining;
use pgweir_sql::{Fingerprint, Loud};

use crate::action::ClientId;
use crate::client::Slot;
use crate::pool::Pool;
use crate::time::Time;

pub(crate) use choice::Choice;
pub(crate) use climbs::Climbs;
pub use joined::Joining;
pub(crate) use repute::Repute;
pub use unit::{Access, Unshared};
pub(crate) use unit::{Need, Unit};

/// The `statement_timeout` of servers that are shared.
pub(crate) const BRAKE: Duration = Duration::from_millis(50);

/// So many bytes of a reply are kept until it is over. A longer one is thrown away, and its unit is
/// run again alone.
pub const REPLY_HELD_BYTES: usize = 256 * 1024;

/// How many servers of a pool are shared at the moment, and by how many units at a time each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depths {
    pub(crate) hot: usize,
    pub(crate) depth: usize,
}

impl Pool {
    /// What holds now for units of a kind; `None`: its servers are not shared.
    pub(crate) fn depths(&self, access: Access) -> Option<Depths> {
        match self.spec.pipelining {
            Pipelining::Off => None,
            Pipelining::Auto => Some(self.climbs.of(access).depths(self.spec.size)),
            Pipelining::Fixed { hot, depth } => {
                Some(Depths { hot: self.spec.size.min(hot as usize), depth: depth as usize })
            }
        }
    }

    /// Whether units that read and units that write have shared servers of their own each.
    pub(crate) fn keeps_apart(&self) -> bool {
        self.spec.pipelining == Pipelining::Auto
    }
}

/// A unit that was sent to a server which it shares.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Whose it is; `None`: of one who is gone.
    pub(crate) client: Option<ClientId>,
    pub(crate) slot: Slot,
    /// So long it is: its bytes stand at the front of its client's input.
    pub(crate) bytes: usize,
    pub(crate) access: Access,
    pub(crate) print: Fingerprint,
    /// By these names it is what it is.
    pub(crate) loud: Arc<Loud>,
    /// It is not known how long it takes: nothing is put behind it.
    pub(crate) trails: bool,
    /// When its client had asked.
    pub(crate) since: Time,
    /// When it was sent.
    pub(crate) sent: Time,
    /// Of its reply so much is kept for its client already.
    pub(crate) held: usize,
    /// What its client is told in place of the reply.
    pub(crate) outcome: Outcome,
    /// It has ended in an error: what it did is undone.
    pub(crate) undone: bool,
    /// Its client has asked for its end.
    pub(crate) cancelled: bool,
    /// A cancel goes to its server for that: it stood there alone.
    pub(crate) may_be_hit: bool,
    /// It begins with what ends the unnamed statement: a Parse, or a Query.
    pub(crate) ends_unnamed: bool,
    /// It was sent as a batch, and is a Query.
    pub(crate) converted: bool,
    /// It was sent without its Sync: that of a later unit ends it too.
    pub(crate) joined: bool,
    /// What of the input that is read now belongs to its reply, and was not passed on.
    pub(crate) fresh: Option<Range<usize>>,
}

/// What becomes of a unit when its reply is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The reply goes to its client.
    Answered,
    /// The brake has ended it.
    Overran,
    /// Its reply is longer than what is kept, and was thrown away.
    TooLong,
    /// Another unit under the same Sync has failed, or this one has, and what its client is told of
    /// that is to come of its own transaction.
    Derailed,
    /// Its server could not be set to what its client has set: it only reads, and nobody hears
    /// what it has read.
    Misset,
}

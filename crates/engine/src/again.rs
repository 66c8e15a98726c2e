//! A unit is run again whose server was lost, though its client had that alone.
//!
//! Of a statement that only reads nobody needs to know whether it was carried out, nor of any
//! that was not begun. So a unit that could share a server, and by chance had one alone, is kept
//! until it is over. If its server is lost before the first byte of its reply has gone out, it is
//! put back to the front of its client's input, once: perhaps servers die of it. Later it is known
//! at least that it has changed nothing. So it is with units that were sent behind it while it was
//! under way: they are not kept, but it is noted whether they do no more than to read.
//!
//! What a name stands for is known as long as nobody changes the schema. Where somebody has, since
//! or shortly before, nothing is known of a unit.

use std::sync::Arc;

use pgweir_config::{Pipelining, PoolMode};
use pgweir_sql::Loud;
use pgweir_wire::backend::ErrorFields;
use pgweir_wire::{HEADER_LEN, SqlState};

use crate::Engine;
use crate::action::{Action, ClientId, ServerId};
use crate::client::{Client, Slot, UnnamedHere};
use crate::errors::CANCELED;
use crate::marks::Mark;
use crate::pipeline::{Access, Choice};
use crate::time::Time;
use crate::unfinished::whole_unit;

/// The unit that a server was sent last, when its client had nothing else under way.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    slot: Option<Slot>,
    /// As it came.
    bytes: Vec<u8>,
    /// The loud names where it runs.
    loud: Option<Arc<Loud>>,
    /// Its client has asked for its end.
    cancelled: bool,
    /// It was lost before, and is not run once more.
    again: bool,
    /// Something of its reply has gone out: it would be answered twice.
    answered: bool,
    behind: Behind,
}

/// What was sent behind it before it was answered, and behind that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behind {
    #[default]
    Nothing,
    /// Whole units that do no more than to read.
    Reads,
    Other,
}

/// So much room stays for the next one.
const ROOM_BYTES: usize = 1024;

impl Kept {
    /// Nothing is kept any more.
    pub(crate) fn clear(&mut self) {
        self.slot = None;
        self.loud = None;
        self.behind = Behind::Nothing;
        self.bytes.clear();
        self.bytes.shrink_to(ROOM_BYTES);
    }

    /// Something of its reply goes out.
    pub(crate) fn answer(&mut self) {
        self.answered = true;
    }

    /// Why it is not run again, if it only reads.
    pub(crate) fn why_not(&self) -> &'static str {
        match self.behind {
            Behind::Reads | Behind::Other => "when more was under way",
            Behind::Nothing if self.again => "for the second time",
            Behind::Nothing => "when its reply had begun",
        }
    }

    /// Its client has asked for its end.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Its client hears that it was cancelled. Behind a part of a reply of the server's it hears
    /// what has become of that.
    pub(crate) fn ends_cancelled(&self) -> bool {
        self.cancelled && !self.answered
    }
}

impl Engine {
    /// Keeps the unit at the front of a client's input, a message of which is about to be sent to a
    /// server that it has alone. Behind others that are not answered it is only looked at: what is
    /// to be noted, by [`Engine::note_behind`], once it is sent.
    pub(crate) fn keep_unit(
        &mut self,
        id: ClientId,
        server: ServerId,
        rest: &[u8],
    ) -> Option<Behind> {
        if !self.clients[id].slots.is_empty() {
            return self.behind(id, server, rest);
        }
        let names = self.names_that_hold(server).cloned();
        let (its, client) = (&mut self.servers[server], &self.clients[id]);
        its.kept.clear();
        let of = &self.pools[its.pool];
        let may_be = of.spec.pipelining != Pipelining::Off
            && its.mode != PoolMode::Session
            && client.choice() == Choice::Auto;
        // In a transaction it rests on what was before: a portal may have more in it than is said.
        if !its.status.in_block()
            && may_be
            && let Some(unit) = whole_unit(rest)
        {
            its.kept.slot = Some(client.coming_slot());
            its.kept.loud = names;
            its.kept.cancelled = client.cancelled == its.kept.slot;
            its.kept.answered = false;
            its.kept.again = client.asked.is_some_and(|asked| asked.again);
            its.kept.bytes.extend_from_slice(unit);
        }
        None
    }

    fn behind(&self, id: ClientId, server: ServerId, rest: &[u8]) -> Option<Behind> {
        let kept = &self.servers[server].kept;
        let loud = kept.loud.as_ref().filter(|_| self.clients[id].open_slot.is_none())?;
        let access = |unit| self.read_unit(id, loud, unit).map(|unit| unit.access);
        let may_follow = match kept.behind {
            _ if !self.still_hold(server, loud) => false,
            // Behind what is not closed a name may mean something else.
            Behind::Nothing => access(&kept.bytes).is_some(),
            Behind::Reads => true,
            Behind::Other => return None,
        };
        let reads =
            may_follow && whole_unit(rest).and_then(access).is_some_and(Access::may_be_repeated);
        Some(if reads { Behind::Reads } else { Behind::Other })
    }

    /// What was looked at was sent, or a part of it.
    pub(crate) fn note_behind(&mut self, server: ServerId, behind: Option<Behind>) {
        if let (Some(behind), Some(server)) = (behind, self.servers.find_mut(server)) {
            server.kept.behind = behind;
        }
    }

    /// Forwards or drops a notice of this length, of which this much is there. That of a crash,
    /// which each process says that ends with the one that has crashed, belongs to no reply.
    pub(crate) fn pass_notice(
        &mut self,
        id: ServerId,
        heard: bool,
        body: &[u8],
        at: usize,
        length: usize,
    ) {
        let n = HEADER_LEN + body.len();
        let of_crash =
            n == length && ErrorFields::start(body).code == Some(SqlState::CRASH_SHUTDOWN);
        if of_crash {
            Mark::CrashWarned.hit_if(heard && self.servers[id].kept.slot.is_some());
            return self.pass_beside(id, heard, at, n, length);
        }
        self.pass(id, heard, at, n, length);
    }

    /// Forwards or drops what belongs to no reply, though it comes in the middle of one.
    pub(crate) fn pass_beside(
        &mut self,
        id: ServerId,
        heard: bool,
        at: usize,
        n: usize,
        length: usize,
    ) {
        let kept = std::mem::take(&mut self.servers[id].kept);
        self.pass(id, heard, at, n, length);
        self.servers[id].kept = kept;
    }

    /// Whether the one unit that a client has under way can be run again. `begun`: it may have been
    /// begun.
    pub(crate) fn may_run_again(&self, id: ServerId, client: ClientId, begun: bool) -> bool {
        let kept = &self.servers[id].kept;
        let access = self.kept_access(id, client).filter(|_| !kept.again && !kept.answered);
        access.is_some_and(|access| !begun || access.may_be_repeated())
    }

    /// Whether all that a client has under way is known to do no more than to read.
    pub(crate) fn only_reads(&self, id: ServerId, client: ClientId) -> bool {
        let (kept, its) = (&self.servers[id].kept, &self.clients[client]);
        let is_first = kept.slot.is_some() && its.slots.first() == kept.slot.as_ref();
        match its.slots.len() - usize::from(is_first) {
            0 => {}
            _ if kept.behind == Behind::Reads
                && self.is_sent(client)
                && kept.loud.as_ref().is_some_and(|loud| self.still_hold(id, loud)) => {}
            _ => return false,
        }
        !is_first || self.kept_access(id, client).is_some_and(Access::may_be_repeated)
    }

    /// What the first unit that a client has under way does, if that is kept.
    fn kept_access(&self, id: ServerId, client: ClientId) -> Option<Access> {
        let (kept, its) = (&self.servers[id].kept, &self.clients[client]);
        let is_it = kept.slot.is_some_and(|slot| its.slots.first() == Some(&slot));
        let is_it = is_it && self.is_sent(client);
        let loud = kept.loud.as_ref().filter(|loud| is_it && self.still_hold(id, loud))?;
        Some(self.read_unit(client, loud, &kept.bytes)?.access)
    }

    /// What names stand for on a server, unless somebody has changed the schema since it was read.
    fn names_that_hold(&self, id: ServerId) -> Option<&Arc<Loud>> {
        let server = &self.servers[id];
        let pool = &self.pools[server.pool];
        Some(server.elsewhere.as_ref().unwrap_or(&pool.loud)).filter(|_| pool.knows_names())
    }

    /// Whether names stand for what they stood for then.
    pub(crate) fn still_hold(&self, id: ServerId, then: &Arc<Loud>) -> bool {
        // They are read anew every few minutes.
        self.names_that_hold(id).is_some_and(|now| Arc::ptr_eq(now, then) || now == then)
    }

    /// Nothing is in the middle of being sent: a unit, or data behind one that nobody reads.
    fn is_sent(&self, client: ClientId) -> bool {
        let its = &self.clients[client];
        its.open_slot.is_none() && its.body.left == 0 && !its.leaving
    }

    /// The server of a client is lost, which has asked for the end of what it does no more than to
    /// read.
    pub(crate) fn end_cancelled(&mut self, now: Time, id: ClientId) {
        Mark::LossOfCancelled.hit();
        self.end_unit(now, id, &CANCELED.report(&[]));
    }

    /// The server of a client is lost, and what it was sent is run again, unless its client has
    /// asked for its end.
    pub(crate) fn run_again(&mut self, now: Time, id: ClientId, kept: &Kept) {
        if kept.cancelled {
            return self.end_cancelled(now, id);
        }
        Mark::LossRunAgain.hit();
        self.clients[id].drop_unit(now);
        let range = self.actions.own(&kept.bytes);
        self.actions.push(Action::Restore(id, range));
        self.run_alone(now, id, now, true);
    }
}

impl Client {
    /// Its one unit is not under way any more.
    pub(crate) fn drop_unit(&mut self, now: Time) {
        self.slots.clear();
        self.encoding_in_doubt = false;
        self.quiet_since = now;
        self.may_commit = false;
        self.may_commit_later = false;
        self.unnamed_here = UnnamedHere::No;
        self.unnamed_names = None;
    }
}

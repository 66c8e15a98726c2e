//! Units that only read, under one Sync.
//!
//! For each Sync PostgreSQL ends a transaction, and sends what it has to say: both cost more than a
//! short statement takes. So where many units stand on a server, some of them that follow each
//! other are sent without their Syncs, but for the last, and are one transaction then. (Measured
//! with selects by key, eight under one Sync: a backend works 7 us for each in place of 11, if they
//! are prepared, and 14 in place of 18, if they are not.)
//!
//! Nobody sees that, but for what the documentation names (`now()`, for one), for these rules:
//! - Only what reads, locks nothing and is closed is joined: it leaves nothing to those behind it,
//!   in the same transaction or not. All were asked for before it begins, so what its snapshot
//!   shows is not too old for any of them.
//! - A Query is sent as the batch that does the same: PostgreSQL ends a transaction behind each.
//!   What is said differs where it fails, and then it is run again, as it came.
//! - Nothing of a reply goes out before ReadyForQuery. Should one unit fail, all are undone, and
//!   each is run again in a transaction of its own: whatever its client hears comes of that.
//! - Only what takes next to no time is joined ([`Repute::is_brief`]): a reply waits for those
//!   behind it, too. The brake is one for each statement, so none of them takes longer.
//! - They are joined while the server is busy for others, a quarter of its units at most, so that
//!   there is something to answer while others are carried out; and nobody is waited for: the Sync
//!   follows when the turn ends, or before any bytes go out.

use std::time::Duration;

use pgweir_wire::frontend;

#[cfg(doc)]
use super::Repute;
use super::{BRAKE, InFlight, Outcome, Unit};
use crate::Engine;
use crate::action::{Endpoint, ServerId};
use crate::marks::Mark;
use crate::reply::{Expected, Kind, Sink};
use crate::server::Server;

/// When units are put under one Sync.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    /// So many are at most: whoever is the first waits for all.
    most: u32,
    /// And one in so many of those that are on the server.
    part: usize,
    /// Where fewer are on it none are: all of them together are answered too soon after each other
    /// for anybody to send more meanwhile. (Measured with 16 clients.)
    from: usize,
    /// Where a statement takes longer, others under the same Sync would wait for it.
    brief: Duration,
}

/// Whose Sync ends a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncOf {
    /// One of its own.
    Itself,
    /// That of a later one, or of the end of the turn.
    Later,
    /// Its own, which those in front share.
    All,
}

/// How long units have run that are over at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    /// Each, if all are alike.
    each: Duration,
    /// All of them, beyond what they are known to take. Whose that is nobody knows, until each has
    /// run by itself: so it counts for all.
    more: Duration,
}

impl Ran {
    /// Of one that is known to take so long.
    pub(super) fn of(self, took: Duration) -> Duration {
        if self.more.is_zero() { self.each } else { self.each.max(took + self.more) }
    }
}

impl Joining {
    /// What is best.
    pub const USUAL: Self = Self { most: 8, part: 4, from: 24, brief: Duration::from_millis(2) };

    /// Wherever it can be.
    pub const EAGER: Self = Self { most: 8, part: 1, from: 2, brief: Duration::from_millis(25) };

    /// Nowhere.
    pub const NEVER: Self = Self { from: usize::MAX, ..Self::USUAL };
}

impl Engine {
    /// A unit is about to be sent to a shared server: says whose Sync ends it. That of those in
    /// front is sent where it does not go with them.
    pub(super) fn joins(&mut self, id: ServerId, unit: &Unit) -> SyncOf {
        let pool = self.servers[id].pool;
        let Joining { most, part, from, brief } = self.plan.joining;
        let its = &self.pools[pool];
        // That of the pool is for the whole transaction.
        let limit = its.spec.transaction_timeout;
        let has_time = limit.is_none_or(|limit| limit > BRAKE * most);
        let may = unit.may_join && has_time && its.repute.is_brief(unit.print, brief);
        // What has failed already skips all that is joined to it.
        let skips = self.servers[id].replies.skips();
        Mark::NotJoinedBehindError.hit_if(may && skips);
        if !may || skips {
            self.end_joined(id);
        }
        if !may {
            return SyncOf::Itself;
        }
        let server = &mut self.servers[id];
        let open = server.open();
        if open > 0 {
            Mark::Joined.hit();
            server.replies.join();
        }
        let with_it = open + 1;
        let units = server.pipeline.len() + 1;
        let goes_on = units >= from && with_it < most as usize && with_it * part <= units;
        match goes_on {
            true if open == 0 => self.open.push(id),
            true => {}
            false => self.open.retain(|open| *open != id),
        }
        match (goes_on, open) {
            (true, _) => SyncOf::Later,
            (false, 0) => SyncOf::Itself,
            (false, _) => SyncOf::All,
        }
    }

    /// Ends what is joined on a server with a Sync.
    pub(crate) fn end_joined(&mut self, id: ServerId) {
        let Some(server) = self.servers.find_mut(id) else { return };
        let Some(last) = server.pipeline.back_mut().filter(|last| last.joined) else { return };
        last.joined = false;
        let sink = Sink::Client(last.slot);
        server.replies.push(Expected { kind: Kind::Sync, sink });
        self.actions.inject(Endpoint::Server(id), |out| out.extend_from_slice(&frontend::SYNC));
        self.open.retain(|open| *open != id);
    }

    /// What came at once has been looked at: nobody else is joined to what is joined now.
    pub fn turn_ends(&mut self) {
        while let Some(id) = self.open.last().copied() {
            Mark::JoinedForTurn.hit();
            self.end_joined(id);
            // One that is lost has taken its units with it.
            self.open.retain(|open| *open != id);
        }
    }

    /// There is room for bytes that wait, in the middle of a turn. The Sync of what is joined is to
    /// go with them: says whether there is one.
    pub fn has_room(&mut self, to: Endpoint) -> bool {
        let Endpoint::Server(id) = to else { return false };
        let is_open = self.open.contains(&id);
        if is_open {
            Mark::JoinedForRoom.hit();
            self.end_joined(id);
        }
        is_open
    }

    /// Whether [`Engine::turn_ends`] has something to do.
    pub fn is_in_turn(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether more goes to a connection before the turn ends.
    pub fn goes_on_writing(&self, to: Endpoint) -> bool {
        self.open.iter().any(|id| Endpoint::Server(*id) == to)
    }

    /// How long so many units at the front have run, which has been so long for all of them.
    pub(super) fn ran(&self, id: ServerId, together: Duration, group: usize) -> Ran {
        let server = &self.servers[id];
        let prints = || server.pipeline.iter().take(group).map(|unit| unit.print);
        let each = together / u32::try_from(group).unwrap_or(u32::MAX).max(1);
        let mut more = Duration::ZERO;
        if prints().any(|print| Some(print) != prints().next()) {
            let repute = &self.pools[server.pool].repute;
            more = together.saturating_sub(prints().map(|print| repute.took(print)).sum());
        }
        Ran { each, more }
    }

    /// So many units at the front are over.
    pub(super) fn note_joined(&mut self, id: ServerId, group: usize) {
        if group < 2 {
            return;
        }
        let server = &self.servers[id];
        let is_answered =
            |unit: &&InFlight| unit.client.is_some() && unit.outcome == Outcome::Answered;
        let answered = server.pipeline.iter().take(group).filter(is_answered).count();
        self.pools[server.pool].stats.joined += answered as u64;
    }

    /// The unit that is answered has failed, and so have those under the same Sync, if there are
    /// any. `in_doubt`: it may be that something was done.
    pub(super) fn derail(&mut self, id: ServerId, in_doubt: bool) {
        let server = &mut self.servers[id];
        let group = server.group();
        let is_its_own = |unit: &InFlight| !unit.joined && !unit.converted;
        if group < 2 && server.pipeline.front().is_none_or(is_its_own) {
            return;
        }
        let (now_answered, pool) = (server.answering().map(|unit| unit.print), server.pool);
        for unit in server.pipeline.iter_mut().take(group) {
            unit.undone = !in_doubt;
            match unit.outcome {
                Outcome::Answered => unit.outcome = Outcome::Derailed,
                Outcome::Derailed | Outcome::Overran | Outcome::TooLong | Outcome::Misset => {}
            }
        }
        Mark::Derailed.hit();
        now_answered.into_iter().for_each(|print| self.pools[pool].repute.derailed(print));
    }
}

impl Server {
    /// So many units at the front are over with the next ReadyForQuery.
    pub(crate) fn group(&self) -> usize {
        let joined = self.pipeline.iter().take_while(|unit| unit.joined).count();
        (joined + 1).min(self.pipeline.len())
    }

    /// The unit whose reply comes next, or has just come.
    pub(crate) fn answering(&self) -> Option<&InFlight> {
        self.pipeline.get(self.replies.joints_passed())
    }

    /// The same.
    pub(super) fn answering_mut(&mut self) -> Option<&mut InFlight> {
        self.pipeline.get_mut(self.replies.joints_passed())
    }

    /// Whether the Sync is still to be sent of those that were sent last.
    pub(crate) fn is_open(&self) -> bool {
        self.pipeline.back().is_some_and(|last| last.joined)
    }

    /// How many those are.
    fn open(&self) -> usize {
        self.pipeline.iter().rev().take_while(|unit| unit.joined).count()
    }
}

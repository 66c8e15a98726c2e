//! Shared servers that are to come free: one that always has something to do never would.

use super::BRAKE;
use crate::Engine;
use crate::action::ServerId;
use crate::marks::Mark;
use crate::pool::{Pool, PoolId};
use crate::server::Server;
use crate::time::Time;

impl Engine {
    /// Keeps as many shared servers from taking more units as are to come free, those that will
    /// soonest. Looked at anew before a unit is given a place: of those that were kept some may
    /// have gone to whoever had asked before, or may stand still.
    pub(crate) fn reserve(&mut self, now: Time, pool: PoolId) {
        let of = &self.pools[pool];
        if of.hot.is_empty() || of.alone() == 0 && of.owes_since.is_none() {
            return;
        }
        let wanted = of.to_come_free(self.promised(pool));
        self.keep(now, pool, wanted);
    }

    /// Sees to it that so many shared servers come free.
    pub(crate) fn keep(&mut self, now: Time, pool: PoolId, wanted: usize) {
        let hot = self.pools[pool].hot.iter();
        let kept = hot.filter(|id| self.servers[**id].comes_free(now)).count();
        for _ in kept..wanted {
            let Some(server) = self.soonest_free(now, pool) else { return };
            Mark::SharedReserved.hit();
            self.servers[server].reserved = true;
        }
    }

    /// A shared server goes once it is free if it has lived for long enough, or if there are more
    /// than there may be, and not as many are about to go.
    pub(super) fn reserve_to_go(&mut self, now: Time, id: ServerId) {
        let server = &self.servers[id];
        let of = &self.pools[server.pool];
        let kept = of.hot.iter().filter(|hot| self.servers[**hot].reserved).count();
        let is_old = server.is_too_old(now, of.spec.server_lifetime);
        if !server.reserved && (is_old || kept < of.surplus()) {
            Mark::SharedTooOld.hit();
            self.servers[id].reserved = true;
        }
    }

    /// The shared server that takes more yet and will run dry first. Of commits nobody knows when.
    fn soonest_free(&self, now: Time, pool: PoolId) -> Option<ServerId> {
        let hot = self.pools[pool].hot.iter().copied();
        let taking = hot.filter(|id| !self.servers[*id].reserved);
        taking.min_by_key(|id| {
            let server = &self.servers[*id];
            (server.stands_still(now), server.has_waiting(), server.load())
        })
    }
}

impl Pool {
    /// So many shared servers are wanted by others: by clients that need one alone, as far as none
    /// is coming for them, or by another pool. `promised`: of those that are coming so many are for
    /// clients out of the queue.
    fn to_come_free(&self, promised: usize) -> usize {
        let is_for_them = self.opening > promised;
        let more_will_come = is_for_them && self.failures == 0 && self.total < self.most();
        let lacking = match more_will_come {
            true => 0,
            false => self.alone().saturating_sub(self.coming() - promised),
        };
        lacking.max(usize::from(self.owes_since.is_some()))
    }

    /// So many connections more it has than it may have: the next ones that are free go.
    pub(crate) fn surplus(&self) -> usize {
        self.total.saturating_sub(self.spec.size + self.spec.reserve + self.listeners())
    }
}

impl Server {
    /// Whether it takes units, or is kept for somebody and comes free for that: it is shared until
    /// then.
    pub(super) fn takes_yet(&self, now: Time) -> bool {
        self.goes_on_taking() || self.comes_free(now)
    }

    /// Whether it is kept, and comes free in a moment.
    fn comes_free(&self, now: Time) -> bool {
        self.reserved && !self.stands_still(now)
    }

    /// Whether the unit at its head takes longer than the brake leaves one: it waits for its
    /// commit, or hangs.
    fn stands_still(&self, now: Time) -> bool {
        let units = u32::try_from(self.group()).unwrap_or(u32::MAX);
        units > 0 && now - self.unit_since > BRAKE * (units + 1)
    }
}

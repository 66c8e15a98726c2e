//! Shared servers that are to come free: one that always has something to do never would.

use crate::Engine;
use crate::action::ServerId;
use crate::marks::Mark;
use crate::pool::{Pool, PoolId};
use crate::time::Time;

impl Engine {
    /// Keeps as many shared servers from taking more units as are to come free, those with the
    /// fewest. Looked at anew before a unit is given a place: of those that were kept some may have
    /// gone to whoever had asked before.
    pub(crate) fn reserve(&mut self, pool: PoolId) {
        let of = &self.pools[pool];
        let wanted = of.to_come_free();
        if wanted == 0 || of.hot.is_empty() {
            return;
        }
        let reserved = of.hot.iter().filter(|id| self.servers[**id].reserved).count();
        for _ in reserved..wanted {
            let hot = self.pools[pool].hot.iter().copied();
            let free = hot.filter(|id| !self.servers[*id].reserved);
            let Some(server) = free.min_by_key(|id| self.servers[*id].load()) else { return };
            Mark::SharedReserved.hit();
            self.servers[server].reserved = true;
        }
    }

    /// One shared server is to come free, unless one will anyway.
    pub(crate) fn reserve_one(&mut self, pool: PoolId) {
        let hot = &self.pools[pool].hot;
        if let Some(&server) = hot.first()
            && !hot.iter().any(|id| self.servers[*id].reserved)
        {
            self.servers[server].reserved = true;
        }
    }

    /// A shared server goes once it is free if it has lived for long enough, or there are too many.
    pub(super) fn reserve_to_go(&mut self, now: Time, id: ServerId) {
        let server = &self.servers[id];
        let of = &self.pools[server.pool];
        if !server.reserved
            && (server.is_too_old(now, of.spec.server_lifetime) || of.is_too_large())
        {
            Mark::SharedTooOld.hit();
            self.servers[id].reserved = true;
        }
    }
}

impl Pool {
    /// So many shared servers are wanted by others: by clients that need one alone, as far as none
    /// is coming for them, or by another pool.
    fn to_come_free(&self) -> usize {
        let more_will_come = self.opening > 0 && self.failures == 0 && self.total < self.most();
        let lacking = match more_will_come {
            true => 0,
            false => self.alone().saturating_sub(self.coming()),
        };
        lacking.max(usize::from(self.owes_since.is_some()))
    }

    /// Whether it has more connections than it may have, so that the next one that is free goes.
    pub(crate) fn is_too_large(&self) -> bool {
        self.total > self.spec.size + self.spec.reserve + self.listeners()
    }
}

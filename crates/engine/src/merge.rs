//! What the engines of a process are doing together.

use crate::memory::{Memory, Usage};
use crate::snapshot::{LimitView, Snapshot};

impl Snapshot {
    /// Puts together what each engine has said; `None` if none has.
    pub fn of_all(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut all = parts.into_iter().reduce(Self::plus)?;
        all.pools.sort_by_key(|pool| pool.order);
        all.limits.sort_by(|a, b| a.address.cmp(&b.address));
        Some(all)
    }

    fn plus(mut self, other: Self) -> Self {
        let Self { now, pools, limits, clients, servers, cancels, logins, louds, memory, .. } =
            other;
        self.now = self.now.max(now);
        self.pools.extend(pools);
        self.clients.extend(clients);
        self.servers.extend(servers);
        self.cancels.extend(cancels);
        self.logins += logins;
        // What one engine has read last is not older than what another has by much.
        louds.into_iter().for_each(|view| {
            if self.louds.iter().all(|its| its.database != view.database) {
                self.louds.push(view);
            }
        });
        self.memory = self.memory.plus(memory);
        for limit in limits {
            match self.limits.iter_mut().find(|its| its.address == limit.address) {
                Some(its) => its.add(&limit),
                None => self.limits.push(limit),
            }
        }
        self
    }
}

impl LimitView {
    /// Adds what the pools of another engine know of the same server. What is used of it is one
    /// count for all.
    fn add(&mut self, other: &Self) {
        self.refused_full += other.refused_full;
        self.used = self.used.max(other.used);
    }
}

impl Memory {
    fn plus(self, other: Self) -> Self {
        Self {
            clients: self.clients.plus(other.clients),
            servers: self.servers.plus(other.servers),
            cancels: self.cancels.plus(other.cancels),
            pools: self.pools.plus(other.pools),
            settings: self.settings.plus(other.settings),
            statements: self.statements.plus(other.statements),
            buffers: self.buffers.plus(other.buffers),
        }
    }
}

impl Usage {
    fn plus(self, other: Self) -> Self {
        let (used, free) = (self.used + other.used, self.free + other.free);
        let total = self.total + other.total;
        if self.size == other.size {
            Self { size: self.size, used, free, total }
        } else {
            Self::of_bytes(total, used, free)
        }
    }
}

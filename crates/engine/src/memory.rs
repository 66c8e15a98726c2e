//! How much there is in memory of what a worker keeps.

use crate::Engine;
use crate::pool::Pool;
use crate::prepared::Registry;

/// What a worker keeps, kind by kind. What hangs from these by a pointer (a login under way, an
/// unnamed statement, replies that are owed) is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Connections of clients.
    pub clients: Usage,
    /// Connections to servers.
    pub servers: Usage,
    /// Cancel requests under way.
    pub cancels: Usage,
    /// Pools.
    pub pools: Usage,
    /// Sets of startup parameters, of which clients share those that are equal.
    pub settings: Usage,
    /// Statements that clients have prepared under names, which share those that are equal.
    pub statements: Usage,
    /// Buffers of bytes on their way, which are the driver's.
    pub buffers: Usage,
}

/// How much there is of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of one; on average, where they differ.
    pub size: usize,
    /// How many are in use.
    pub used: usize,
    /// How many are kept for the next that is needed.
    pub free: usize,
    /// Bytes of all of them.
    pub total: usize,
}

impl Usage {
    /// Of things that are `size` bytes each.
    pub fn of_places(size: usize, used: usize, free: usize) -> Self {
        Self { size, used, free, total: size * (used + free) }
    }

    /// Of things that are `total` bytes together.
    pub fn of_bytes(total: usize, used: usize, free: usize) -> Self {
        Self { size: total.checked_div(used + free).unwrap_or(0), used, free, total }
    }
}

impl Engine {
    /// Statements that the client with most of them has under names, as this engine knows of.
    pub fn names_most(&self) -> usize {
        self.clients.iter().map(|(_, client)| client.names.len()).max().unwrap_or(0)
    }

    /// What this engine keeps. Buffers are none of its own.
    pub(crate) fn memory(&self) -> Memory {
        let registries = || self.pools.iter().map(|(_, pool)| &pool.registry);
        Memory {
            clients: self.clients.usage(),
            servers: self.servers.usage(),
            cancels: self.cancels.usage(),
            pools: Usage::of_places(size_of::<Pool>(), self.pools.len(), 0),
            settings: self.interner.usage(),
            statements: Usage::of_bytes(
                registries().map(Registry::bytes).sum(),
                registries().map(Registry::len).sum(),
                0,
            ),
            buffers: Usage::default(),
        }
    }
}

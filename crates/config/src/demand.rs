//! How many connections a configuration can open, server by server, against what the server has
//! room for.

use std::collections::BTreeMap;

use crate::types::Config;

/// A server, and what a configuration can open there. Two names of one machine are two servers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Demand {
    /// Its address or name, as the file writes it.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// Most connections at a time: the sum of `pool_size` over all users of all pools that lead
    /// here. Zero for a server that is named and not used yet.
    pub connections_max: u64,
}

/// What a PostgreSQL server has room for, by its own settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Room {
    /// Its max_connections.
    pub connections_max: u32,
    /// What it keeps for others: superuser_reserved_connections and, from PostgreSQL 16 on,
    /// reserved_connections.
    pub reserved: u32,
}

impl Config {
    /// Every server that the file names, ordered by name and port.
    pub fn demands(&self) -> Vec<Demand> {
        let mut demands = BTreeMap::<_, u64>::new();
        for pool in &self.pools {
            for server in pool.shards.iter().flat_map(|shard| &shard.servers) {
                demands.entry((&server.host, server.port)).or_default();
            }
            if let Some((_, server)) = pool.served() {
                let sizes = pool.users.iter().map(|user| u64::from(user.pool_size));
                *demands.entry((&server.host, server.port)).or_default() += sizes.sum::<u64>();
            }
        }
        let demand = |((host, port), connections_max): ((&String, u16), u64)| Demand {
            host: host.clone(),
            port,
            connections_max,
        };
        demands.into_iter().map(demand).collect()
    }
}

impl Demand {
    /// Whether the server has room for all of it, if nobody else connects.
    pub fn fits(&self, room: Room) -> bool {
        self.connections_max <= u64::from(room.free())
    }

    /// The setting that is reached first: ours, or the server's.
    pub fn binding(&self, room: Room) -> &'static str {
        if self.fits(room) { "pool_size" } else { "max_connections" }
    }
}

impl Room {
    /// The connections that everybody may have.
    pub fn free(self) -> u32 {
        self.connections_max.saturating_sub(self.reserved)
    }
}

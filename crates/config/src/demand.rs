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
    /// Most connections at a time, but for `limit`: the sum of `pool_size` and `reserve_pool_size`
    /// over all users of all pools that lead here. Zero for a server that is not used yet.
    pub connections_max: u64,
    /// What limits all pools together.
    pub limit: Limit,
}

/// What limits the connections to one server, over all pools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// Nothing.
    None,
    /// A part of what the server has room for, which so many pgweir share.
    OfRoom {
        /// At least 1.
        instances: u32,
    },
    /// `max_server_connections`.
    Set(u32),
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
                let sizes = pool
                    .users
                    .iter()
                    .map(|user| u64::from(user.pool_size) + u64::from(user.reserve_pool_size));
                *demands.entry((&server.host, server.port)).or_default() += sizes.sum::<u64>();
            }
        }
        let demand = |((host, port), connections_max): ((&String, u16), u64)| Demand {
            host: host.clone(),
            port,
            connections_max,
            limit: self.general.server_limit,
        };
        demands.into_iter().map(demand).collect()
    }
}

impl Demand {
    /// The most connections that are opened to a server with this room.
    pub fn most(&self, room: Room) -> u64 {
        let limit = match self.limit {
            Limit::None => return self.connections_max,
            Limit::OfRoom { instances } => room.part(instances),
            Limit::Set(limit) => limit,
        };
        self.connections_max.min(limit.into())
    }

    /// Whether the server has room for all of it, if nobody else connects.
    pub fn fits(&self, room: Room) -> bool {
        self.most(room) <= u64::from(room.free())
    }

    /// The setting that is reached first: one of ours, or the server's.
    pub fn binding(&self, room: Room) -> &'static str {
        match self.most(room) {
            most if most > u64::from(room.free()) => "max_connections",
            most if most < self.connections_max => "max_server_connections",
            _ => "pool_size",
        }
    }
}

impl Room {
    /// The connections that everybody may have.
    pub fn free(self) -> u32 {
        self.connections_max.saturating_sub(self.reserved)
    }

    /// The part of one pgweir, where there are so many: together they leave a tenth to others.
    pub fn part(self, instances: u32) -> u32 {
        (u64::from(self.free()) * 9 / 10 / u64::from(instances.max(1))).max(1) as u32
    }
}

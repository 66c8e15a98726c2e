//! How many connections a configuration can open, server by server, against what the server has
//! room for.
//!
//! SHOW LIMITS, `pgweir check --connect` and the look at file descriptors all go by what is added
//! up here.

use std::collections::BTreeMap;

use crate::types::{ANY_DATABASE, Config, Pool};

/// A server, and what a configuration can open there. Two names of one machine are two servers.
///
/// Each figure is what one kind of limit leaves all pools together. Where several are tight at
/// once, even the least of them may be a little more than what can come to pass; it is never less.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Demand {
    /// Its address or name, as the file writes it.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// By `pool_size` and `reserve_pool_size` of all users of all pools that lead here. Zero for a
    /// server that is not used yet; `None`: without limit, since there is a pool for any database.
    pub of_pools: Option<u64>,
    /// By what each database may have; a pool for any database stands for as many as there are.
    pub of_databases: Option<u64>,
    /// By what each user may have.
    pub of_users: Option<u64>,
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

/// The most connections to a server, and why there are no more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Most {
    /// What the configuration can open, whether the server has room for it or not; `None`: it sets
    /// no limit.
    pub connections: Option<u64>,
    /// What is reached first; `None`: nothing that is known.
    pub binding: Option<Binding>,
}

/// A setting that limits the connections to a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Binding {
    /// `pool_size`, and `reserve_pool_size` with it.
    PoolSize,
    /// `max_db_connections`.
    MaxDbConnections,
    /// `max_user_connections`.
    MaxUserConnections,
    /// `max_server_connections`, or what is made of the server's room in its place.
    MaxServerConnections,
    /// `max_connections` of the server, less what it reserves.
    MaxConnections,
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
        let mut servers = BTreeMap::<_, Vec<&Pool>>::new();
        for pool in &self.pools {
            for server in pool.shards.iter().flat_map(|shard| &shard.servers) {
                servers.entry((&server.host, server.port)).or_default();
            }
            if let Some((_, server)) = pool.served() {
                servers.entry((&server.host, server.port)).or_default().push(pool);
            }
        }
        let demand = |((host, port), pools): ((&String, u16), Vec<&Pool>)| Demand {
            host: host.clone(),
            port,
            of_pools: pools.iter().flat_map(|pool| sizes(pool)).map(|(_, size)| size).sum(),
            of_databases: pools.iter().map(|pool| of_database(pool)).sum(),
            of_users: of_users(&pools, self.general.max_user_connections),
            limit: self.general.server_limit,
        };
        servers.into_iter().map(demand).collect()
    }
}

/// What each user of a pool may open; `None`: that many in each of any number of databases.
fn sizes(pool: &Pool) -> impl Iterator<Item = (&str, Option<u64>)> {
    pool.users.iter().map(|user| {
        let size = u64::from(user.pool_size) + u64::from(user.reserve_pool_size);
        (user.username.as_str(), (pool.name != ANY_DATABASE).then_some(size))
    })
}

fn of_database(pool: &Pool) -> Option<u64> {
    let size = sizes(pool).map(|(_, size)| size).sum::<Option<u64>>()?;
    Some(pool.max_connections.map_or(size, |most| size.min(most.into())))
}

fn of_users(pools: &[&Pool], most: Option<u32>) -> Option<u64> {
    let mut users = BTreeMap::<_, Vec<_>>::new();
    for (user, size) in pools.iter().flat_map(|pool| sizes(pool)) {
        users.entry(user).or_default().push(size);
    }
    let of_user = |sizes: Vec<Option<u64>>| {
        let size = sizes.into_iter().sum::<Option<u64>>();
        size.into_iter().chain(most.map(u64::from)).min()
    };
    users.into_values().map(of_user).sum()
}

impl Demand {
    /// The most connections that are opened to a server with this room, if that is known.
    pub fn most(&self, room: Option<Room>) -> Most {
        // Of equal ones the first is named, which the file is nearest to.
        let limits = [
            (self.of_pools, Binding::PoolSize),
            (self.of_databases, Binding::MaxDbConnections),
            (self.of_users, Binding::MaxUserConnections),
            (self.limit.most(room).map(u64::from), Binding::MaxServerConnections),
        ];
        let known = limits.into_iter().filter_map(|(most, binding)| Some((most?, binding)));
        let least = known.min_by_key(|(most, _)| *most);
        let connections = least.map(|(most, _)| most);
        let binding = match room {
            Some(room) if !fits(connections, room) => Some(Binding::MaxConnections),
            Some(_) | None => least.map(|(_, binding)| binding),
        };
        Most { connections, binding }
    }

    /// Whether the server has room for all of it, if nobody else connects.
    pub fn fits(&self, room: Room) -> bool {
        fits(self.most(Some(room)).connections, room)
    }
}

fn fits(connections: Option<u64>, room: Room) -> bool {
    connections.is_some_and(|most| most <= u64::from(room.free()))
}

impl Limit {
    /// The most connections to a server with this room; `None`: there is no limit, or none yet.
    pub fn most(self, room: Option<Room>) -> Option<u32> {
        match self {
            Self::None => None,
            Self::OfRoom { instances } => room.map(|room| room.part(instances)),
            Self::Set(limit) => Some(limit),
        }
    }
}

impl Binding {
    /// The setting's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PoolSize => "pool_size",
            Self::MaxDbConnections => "max_db_connections",
            Self::MaxUserConnections => "max_user_connections",
            Self::MaxServerConnections => "max_server_connections",
            Self::MaxConnections => "max_connections",
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

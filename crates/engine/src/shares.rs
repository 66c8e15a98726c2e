//! What pools share: the connections that one server, one database and one user may have, and the
//! clients of one database and one user.
//!
//! A connection counts from the attempt until its stream has ended: where a limit is set, a server
//! is told to go and waited for, because PostgreSQL counts it until then. Of pools that want a
//! connection the one whose client has waited longest gets it. A pool with clients that wait takes
//! an idle connection away from another one, and after a while a busy one when its client is done,
//! so that no pool starves beside one that is never idle.

use std::time::Duration;

use pgweir_config::PoolMode;
use pgweir_wire::backend::Report;

use crate::Engine;
use crate::action::{Address, ServerId};
use crate::client::Leg;
use crate::errors::{TOO_MANY_OF_DATABASE, TOO_MANY_OF_USER};
use crate::plan::Plan;
use crate::pool::{Pool, PoolId};
use crate::server::{Server, ServerState};
use crate::store::Key;
use crate::time::Time;

/// How long a client waits before a pool that is busy all the time must give up a connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// What several pools have a part in.
pub(crate) struct Share {
    pub(crate) of: Of,
    /// Most connections.
    pub(crate) most: Option<usize>,
    /// Connections of all its pools.
    pub(crate) used: usize,
    /// As `most`, or as many connections as there were when it was set.
    pub(crate) ceiling: usize,
    /// Those that are being made or log in.
    pub(crate) opening: usize,
    /// Most clients.
    most_clients: Option<usize>,
    /// Clients of all its pools.
    pub(crate) clients: usize,
    pools: Vec<PoolId>,
}

pub(crate) type ShareId = Key<Share>;

/// Whose share it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// The pools whose servers are here.
    Server(Address),
    /// The pools of this database, as clients name it.
    Database(String),
    /// The pools of this user.
    User(String),
}

impl Of {
    fn each(pool: &Pool) -> [Self; 3] {
        let spec = &pool.spec;
        [
            Self::Server(spec.address.clone()),
            Self::Database(spec.database.clone()),
            Self::User(spec.user.clone()),
        ]
    }

    fn most_clients(&self, plan: &Plan, pool: &Pool) -> Option<usize> {
        match self {
            Self::Server(_) => None,
            Self::Database(_) => pool.spec.max_db_client_connections,
            Self::User(_) => plan.max_user_client_connections,
        }
    }
}

impl Share {
    /// The pools that have a part in it.
    pub(crate) fn pools(&self) -> impl Iterator<Item = PoolId> {
        self.pools.iter().copied()
    }

    /// It may have so many connections from now on.
    pub(crate) fn limit(&mut self, most: Option<usize>) {
        self.most = most;
        self.ceiling = most.map_or(usize::MAX, |most| most.max(self.used));
    }

    fn room(&self) -> usize {
        self.most.map_or(usize::MAX, |most| most.saturating_sub(self.used))
    }
}

impl Engine {
    /// A pool takes part in its shares from now on, with all that it has.
    pub(crate) fn join_shares(&mut self, id: PoolId) {
        debug_assert!(self.pools[id].shares.is_empty(), "a pool takes part twice");
        for of in Of::each(&self.pools[id]) {
            let most = match &of {
                Of::Server(address) => self.most_connections(address),
                Of::Database(_) => self.pools[id].spec.max_db_connections,
                Of::User(_) => self.plan.max_user_connections,
            };
            let pool = &mut self.pools[id];
            let share = *self.share_of.entry(of).or_insert_with_key(|of| {
                self.shares.insert(Share {
                    of: of.clone(),
                    most,
                    used: 0,
                    ceiling: most.unwrap_or(usize::MAX),
                    opening: 0,
                    most_clients: of.most_clients(&self.plan, pool),
                    clients: 0,
                    pools: Vec::new(),
                })
            });
            let its = &mut self.shares[share];
            its.used += pool.total;
            its.ceiling = its.ceiling.max(its.used);
            its.opening += pool.opening;
            its.clients += pool.clients;
            its.pools.push(id);
            pool.shares.push(share);
        }
    }

    /// A pool takes part in no share any more.
    pub(crate) fn leave_shares(&mut self, id: PoolId) {
        let pool = &mut self.pools[id];
        for share in std::mem::take(&mut pool.shares) {
            let its = &mut self.shares[share];
            its.used -= pool.total;
            its.opening -= pool.opening;
            its.clients -= pool.clients;
            its.pools.retain(|other| *other != id);
            if its.pools.is_empty()
                && let Some(share) = self.shares.remove(share)
            {
                self.share_of.remove(&share.of);
            }
        }
    }

    /// How many connections more the pool may make now, its own size aside.
    pub(crate) fn room(&self, pool: PoolId) -> usize {
        let shares = self.pools[pool].shares.iter().map(|share| &self.shares[*share]);
        let parallelism = self.plan.connect_parallelism;
        let room = |share: &Share| match share.of {
            Of::Server(_) => share.room().min(parallelism.saturating_sub(share.opening)),
            Of::Database(_) | Of::User(_) => share.room(),
        };
        shares.map(room).min().unwrap_or(usize::MAX)
    }

    /// Counts a connection that a pool makes.
    pub(crate) fn count_opening(&mut self, pool: PoolId) {
        let pool = &mut self.pools[pool];
        pool.total += 1;
        pool.opening += 1;
        for share in &pool.shares {
            let share = &mut self.shares[*share];
            share.used += 1;
            share.opening += 1;
        }
    }

    /// A connection has logged in, or its attempt is over.
    pub(crate) fn count_opened(&mut self, pool: PoolId) {
        let pool = &mut self.pools[pool];
        pool.opening -= 1;
        for share in &pool.shares {
            self.shares[*share].opening -= 1;
        }
    }

    /// A connection is no more.
    pub(crate) fn count_gone(&mut self, pool: PoolId) {
        let pool = &mut self.pools[pool];
        pool.total -= 1;
        for share in &pool.shares {
            self.shares[*share].used -= 1;
        }
    }

    /// A client is admitted to a pool, unless there are too many.
    pub(crate) fn count_client(&mut self, id: PoolId) -> Result<(), Report> {
        let pool = &mut self.pools[id];
        for share in &pool.shares {
            let share = &self.shares[*share];
            let Some(most) = share.most_clients.filter(|most| share.clients >= *most) else {
                continue;
            };
            let report = match &share.of {
                Of::Database(name) => TOO_MANY_OF_DATABASE.report(&[name]),
                Of::User(name) | Of::Server(Address { host: name, .. }) => {
                    TOO_MANY_OF_USER.report(&[name])
                }
            };
            return Err(report.detail(format!("There may be {most}.")));
        }
        pool.clients += 1;
        for share in &pool.shares {
            self.shares[*share].clients += 1;
        }
        Ok(())
    }

    /// A client of a pool is gone.
    pub(crate) fn count_client_gone(&mut self, id: PoolId) {
        let pool = &mut self.pools[id];
        pool.clients -= 1;
        for share in &pool.shares {
            self.shares[*share].clients -= 1;
        }
    }

    /// Whether connections of this pool count beyond it.
    pub(crate) fn is_limited(&self, pool: PoolId) -> bool {
        self.pools[pool].shares.iter().any(|share| self.shares[*share].most.is_some())
    }

    /// There may be room for a connection, of this pool or of one that shares a limit with it.
    pub(crate) fn room_made(&mut self, now: Time, pool: PoolId) {
        let parallelism = self.plan.connect_parallelism;
        let tight = |share: &&Share| share.most.is_some() || share.opening + 1 >= parallelism;
        let shares = self.pools[pool].shares.iter().map(|share| &self.shares[*share]);
        let mut others: Vec<_> = shares
            .filter(tight)
            .flat_map(|share| share.pools.iter())
            .filter(|other| **other != pool)
            .filter_map(|other| Some((self.waits_since(*other)?, *other)))
            .collect();
        if !others.is_empty() {
            others.extend(self.waits_since(pool).map(|since| (since, pool)));
            others.sort_by_key(|(since, id)| (*since, id.index()));
            for (_, other) in others {
                self.refill(now, other);
            }
        }
        self.refill(now, pool);
    }

    /// Since when the client at the head of a pool's queue has waited.
    pub(crate) fn waits_since(&self, pool: PoolId) -> Option<Time> {
        let pool = &self.pools[pool];
        if pool.waiting == 0 {
            return None;
        }
        let head = pool.waiters.iter().find(|waiter| {
            let leg = self.clients.find(waiter.client).map(|client| client.leg);
            leg == Some(Leg::Waiting(waiter.ticket))
        });
        head.map(|waiter| waiter.since)
    }

    /// A pool needs so many connections more than a limit that it shares leaves it: others that do
    /// not need theirs give them up.
    pub(crate) fn make_room(&mut self, now: Time, pool: PoolId, wanted: usize) {
        let full: Vec<_> = self.pools[pool].shares.clone();
        for share in full {
            let missing = wanted.saturating_sub(self.shares[share].room());
            for _ in self.leaving(share)..missing {
                if !self.take_idle_of_others(now, share, pool) {
                    self.take_busy_of_others(now, share, pool);
                    break;
                }
            }
        }
    }

    /// Connections of a share that were told to go.
    fn leaving(&self, share: ShareId) -> usize {
        let servers = self.servers.iter().filter(|(_, server)| {
            let leaves = matches!(server.state, ServerState::Leaving);
            leaves && self.pools[server.pool].shares.contains(&share)
        });
        servers.count()
    }

    /// Whether a server will be free when its client's transaction is over.
    fn comes_free(&self, server: &Server) -> bool {
        let client = server.client().and_then(|client| self.clients.find(client));
        client.is_some_and(|client| !server.dedicated && !self.keeps_server(client, server))
    }

    /// The connection that was idle longest is told to go, rather one of a pool that can spare it:
    /// a smallest size is for those who may come, and nothing to one who is there.
    fn take_idle_of_others(&mut self, now: Time, share: ShareId, pool: PoolId) -> bool {
        let others = self.shares[share].pools.iter().filter(|other| **other != pool);
        let idle = others.flat_map(|other| {
            let its = &self.pools[*other];
            let is_needed = its.total <= its.spec.min_size;
            its.idle.iter().map(move |server| (is_needed, *server))
        });
        let longest: Option<ServerId> = idle
            .min_by_key(|(is_needed, server)| (*is_needed, self.servers[*server].changed))
            .map(|(_, server)| server);
        if let Some(server) = longest {
            self.close_server(now, server);
        }
        longest.is_some()
    }

    /// Where nothing is idle, the pool with most connections gives one up once it is free, one at a
    /// time. Sessions may take for ever.
    fn take_busy_of_others(&mut self, now: Time, share: ShareId, pool: PoolId) {
        if self.waits_since(pool).is_none_or(|since| now - since < PATIENCE) {
            return;
        }
        let is_promised = |server: &Server| server.doomed && self.comes_free(server);
        let of_share = |server: &Server| self.pools[server.pool].shares.contains(&share);
        if self.servers.iter().any(|(_, server)| is_promised(server) && of_share(server)) {
            return;
        }
        let own = self.pools[pool].total;
        let others = self.shares[share]
            .pools
            .iter()
            .filter(|other| **other != pool && self.pools[**other].spec.mode != PoolMode::Session);
        let most = others.max_by_key(|other| (self.pools[**other].total, other.index()));
        let Some(&other) = most.filter(|other| {
            let its = self.pools[**other].total;
            its > own + 1 || own == 0 && its > 0
        }) else {
            return;
        };
        let lent = self
            .servers
            .iter()
            .find(|(_, server)| server.pool == other && !server.doomed && self.comes_free(server));
        if let Some(server) = lent.map(|(server, _)| server) {
            self.servers[server].doomed = true;
        }
    }
}

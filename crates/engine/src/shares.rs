//! What pools share: the connections that one server, one database and one user may have, and the
//! clients of one database and one user.
//!
//! A connection counts from the attempt until its stream has ended: where a limit is set, a server
//! is told to go and waited for, because PostgreSQL counts it until then. What it is counted in is
//! noted with it, and stays so when a reload has its pool lead to another server. Of pools that
//! want a connection the one whose client has waited longest gets it. A pool with clients that wait
//! takes an idle connection away from another one, and after a while the next one that comes free,
//! so that no pool starves beside one that is never idle: nobody knows which one that will be. It
//! takes none that is of no use because another limit keeps it from what that leaves. What is
//! shared with pools of other workers is in `commons.rs`, and what engines give up for each other
//! in `wants.rs`.

use std::sync::Arc;
use std::time::Duration;

use pgweir_wire::backend::Report;

use crate::Engine;
use crate::action::{Address, ServerId};
use crate::client::Leg;
use crate::commons::Count;
use crate::errors::{TOO_MANY_OF_DATABASE, TOO_MANY_OF_USER};
use crate::marks::Mark;
use crate::pool::{Pool, PoolId};
use crate::server::{Server, ServerState};
use crate::store::Key;
use crate::time::Time;

/// How long a client waits before a pool that is busy all the time must give up a connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// What several pools have a part in.
pub(crate) struct Share {
    pub(crate) of: Of,
    /// Of the pools of all workers.
    pub(crate) count: Arc<Count>,
    /// The pools of this worker.
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
}

/// Whom an idle connection is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taker {
    /// Another pool.
    Pool(PoolId),
    /// One of another worker.
    Elsewhere,
    /// A limit is lower than it was.
    Nobody,
}

/// What a pool can have of the connections that it wants, and what keeps it from the others.
pub(crate) struct Shortage {
    /// So many of them can be had: there is room, or others do not need theirs.
    pub(crate) at_hand: usize,
    /// The shares that leave it no more than these, the narrowest first. A connection that is given
    /// up for it has to count in every one: one limit alone is of no use where another keeps the
    /// pool from what that leaves.
    pub(crate) shares: Vec<ShareId>,
}

impl Share {
    /// The pools that have a part in it.
    pub(crate) fn pools(&self) -> impl Iterator<Item = PoolId> {
        self.pools.iter().copied()
    }
}

impl Engine {
    /// A pool takes part in its shares from now on, with all that it has.
    pub(crate) fn join_shares(&mut self, id: PoolId) {
        debug_assert!(self.pools[id].shares.is_empty(), "a pool takes part twice");
        for of in Of::each(&self.pools[id]) {
            let share = match self.share_of.get(&of) {
                Some(share) => *share,
                None => self.begin_share(of),
            };
            self.shares[share].pools.push(id);
            self.pools[id].shares.push(share);
        }
        self.limit_database(id);
    }

    /// A pool says how many connections its database may have: unlike the limits of servers and
    /// users, that is said with each pool. One that is gone has no say beside those that are there,
    /// on whatever worker, or come.
    fn limit_database(&self, id: PoolId) {
        let pool = &self.pools[id];
        if pool.removed {
            return;
        }
        for share in pool.shares.iter().map(|share| &self.shares[*share]) {
            match share.of {
                Of::Server(_) | Of::User(_) => {}
                Of::Database(_) => share.count.limit(pool.spec.max_db_connections),
            }
        }
    }

    /// A share that no pool here has had a part in.
    fn begin_share(&mut self, of: Of) -> ShareId {
        let commons = self.member.commons();
        let count = commons.count(&of, || match &of {
            Of::Server(address) => self.most_connections(commons.room(address), 0),
            Of::Database(_) => None,
            Of::User(_) => self.plan.max_user_connections,
        });
        match &of {
            // Said anew by every reload and by whoever learns what a server has room for.
            Of::Server(_) => {}
            // Each pool says it.
            Of::Database(_) => {}
            Of::User(_) => count.limit(self.plan.max_user_connections),
        }
        let share = Share { of: of.clone(), count, pools: Vec::new() };
        let share = self.shares.insert(share);
        self.share_of.insert(of, share);
        share
    }

    /// All pools are about to join shares anew. What is counted goes on as long as what is given
    /// here lives.
    pub(crate) fn leave_all_shares(&mut self) -> Vec<Arc<Count>> {
        for id in self.pools.keys() {
            self.pools[id].shares.clear();
            self.pools[id].lacks = false;
        }
        self.share_of.clear();
        let shares: Vec<_> = self.shares.keys();
        let gone = shares.into_iter().filter_map(|share| self.shares.remove(share));
        let counts: Vec<_> = gone.map(|share| share.count).collect();
        // Nothing is known to be lacking until pools have said so again.
        counts.iter().for_each(|count| count.withdraw(&self.member));
        counts
    }

    /// All pools have joined their shares anew: how many connections there may be to servers is
    /// known again. That is said of servers without a pool, too: what a pool has left behind there
    /// counts beside those of the next one.
    pub(crate) fn renew_limits(&mut self) {
        for (address, count) in self.member.commons().servers() {
            self.limit_server(&address, &count);
        }
    }

    /// A pool takes part in no share any more. It has no client and no connection left.
    pub(crate) fn leave_shares(&mut self, id: PoolId) {
        for share in std::mem::take(&mut self.pools[id].shares) {
            let its = &mut self.shares[share];
            its.pools.retain(|other| *other != id);
            if its.pools.is_empty()
                && let Some(share) = self.shares.remove(share)
            {
                share.count.withdraw(&self.member);
                self.share_of.remove(&share.of);
            }
        }
    }

    /// How many connections more the pool may make now, its own size aside.
    pub(crate) fn room(&self, pool: PoolId) -> usize {
        let shares = self.pools[pool].shares.iter().map(|share| &self.shares[*share]);
        let parallelism = self.plan.connect_parallelism;
        let room = |share: &Share| match share.of {
            Of::Server(_) => {
                share.count.room().min(parallelism.saturating_sub(share.count.opening()))
            }
            Of::Database(_) | Of::User(_) => share.count.room(),
        };
        shares.map(room).min().unwrap_or(usize::MAX)
    }

    /// Counts a connection that a pool makes, unless another worker has taken the room meanwhile.
    /// Gives what it is counted in.
    pub(crate) fn try_count_opening(&mut self, id: PoolId) -> Option<Vec<Arc<Count>>> {
        let mut counts: Vec<Arc<Count>> = Vec::new();
        for share in &self.pools[id].shares {
            let share = &self.shares[*share];
            let parallelism = match share.of {
                Of::Server(_) => self.plan.connect_parallelism,
                Of::Database(_) | Of::User(_) => usize::MAX,
            };
            if !share.count.try_open(parallelism) {
                Mark::NoRoomToOpen.hit();
                Mark::RoomInPart.hit_if(!counts.is_empty());
                counts.iter().for_each(|count| count.opened());
                counts.iter().for_each(|count| count.gone());
                return None;
            }
            counts.push(Arc::clone(&share.count));
        }
        let pool = &mut self.pools[id];
        pool.total += 1;
        pool.opening += 1;
        Some(counts)
    }

    /// A connection has logged in, and is not asked anything any more.
    pub(crate) fn count_opened(&mut self, id: ServerId) {
        let server = &self.servers[id];
        self.pools[server.pool].opening -= 1;
        server.counts.iter().for_each(|count| count.opened());
    }

    /// A connection is no more.
    pub(crate) fn count_gone(&mut self, server: &Server) {
        let pool = &mut self.pools[server.pool];
        pool.total -= 1;
        server.counts.iter().for_each(|count| count.gone());
        if server.is_opening() {
            pool.opening -= 1;
            server.counts.iter().for_each(|count| count.opened());
        }
    }

    /// A client is admitted to a pool, unless there are too many.
    pub(crate) fn count_client(&mut self, id: PoolId) -> Result<(), Report> {
        let mut entered: Vec<&Count> = Vec::new();
        let pool = &self.pools[id];
        for share in &pool.shares {
            let Share { of, count, .. } = &self.shares[*share];
            let (most, kind, name) = match of {
                Of::Server(_) => continue,
                Of::Database(name) => {
                    (pool.spec.max_db_client_connections, &TOO_MANY_OF_DATABASE, name)
                }
                Of::User(name) => (self.plan.max_user_client_connections, &TOO_MANY_OF_USER, name),
            };
            if !count.try_enter(most) {
                entered.iter().for_each(|count| count.left());
                Mark::TooManyOfDatabase.hit_if(matches!(of, Of::Database(_)));
                Mark::TooManyOfUser.hit_if(matches!(of, Of::User(_)));
                let most = most.unwrap_or_default();
                return Err(kind.report(&[name]).detail(format!("There may be {most}.")));
            }
            entered.push(count);
        }
        self.pools[id].clients += 1;
        Ok(())
    }

    /// A client of a pool is gone.
    pub(crate) fn count_client_gone(&mut self, id: PoolId) {
        self.pools[id].clients -= 1;
        for share in &self.pools[id].shares {
            let share = &self.shares[*share];
            match share.of {
                Of::Server(_) => {}
                Of::Database(_) | Of::User(_) => share.count.left(),
            }
        }
    }

    /// Whether connections of this pool count beyond it.
    pub(crate) fn is_limited(&self, pool: PoolId) -> bool {
        self.pools[pool].shares.iter().any(|share| self.shares[*share].count.most().is_some())
    }

    /// There may be room for a connection, of this pool or of one that shares with it what has
    /// counted one until now.
    pub(crate) fn room_made(&mut self, now: Time, pool: PoolId, counts: &[Arc<Count>]) {
        let others_wait_since = self.others_wait_since(counts);
        for (since, other) in self.wait_for_room(pool, counts) {
            if others_wait_since.is_none_or(|elsewhere| since <= elsewhere) {
                Mark::RoomForOtherPool.hit_if(other != pool);
                self.refill(now, other);
            }
        }
        match others_wait_since {
            // What it does not take is seen here at the next tick.
            Some(_) => {
                Mark::RoomForOtherWorker.hit();
                self.nudge_others();
            }
            None => {
                self.refill(now, pool);
                self.pass_turn_on(counts);
            }
        }
    }

    /// An attempt of a pool is over, that had these counts, and what comes of it may have the pool
    /// make the next one: whoever has waited longer elsewhere comes before that.
    pub(crate) fn pass_turn_to_elders(&mut self, now: Time, pool: PoolId, counts: &[Arc<Count>]) {
        let Some(own) = self.waits_since(pool) else { return };
        for (since, other) in self.wait_for_room(pool, counts) {
            if other != pool && since < own {
                Mark::TurnOfElder.hit();
                self.refill(now, other);
            }
        }
    }

    /// Who waits, and since when, in this pool and in those that share with it what leaves them no
    /// room: they come in this order.
    fn wait_for_room(&self, pool: PoolId, counts: &[Arc<Count>]) -> Vec<(Time, PoolId)> {
        let parallelism = self.plan.connect_parallelism;
        let tight = |share: &&Share| {
            share.count.most().is_some() || share.count.opening() + 1 >= parallelism
        };
        let shares = self.shares.iter().map(|(_, share)| share);
        let mut all: Vec<_> = shares
            .filter(|share| is_among(&share.count, counts))
            .filter(tight)
            .flat_map(|share| share.pools.iter())
            .filter(|other| **other != pool)
            .filter_map(|other| Some((self.waits_since(*other)?, *other)))
            .collect();
        all.extend(self.waits_since(pool).map(|since| (since, pool)));
        all.sort_by_key(|(since, id)| (*since, id.index()));
        all
    }

    /// As many attempts to connect to a server were under way as may be, and one is over that had
    /// these counts: who waits elsewhere for a turn, without a limit that says so, looks again.
    fn pass_turn_on(&mut self, counts: &[Arc<Count>]) {
        let parallelism = self.plan.connect_parallelism;
        // The first of them is the server's.
        let is_left = counts.first().is_some_and(|server| {
            let opening = server.opening();
            opening < parallelism && opening + 1 >= parallelism
        });
        if is_left && self.member.workers() > 1 {
            Mark::TurnPassedOn.hit();
            self.nudge_others();
        }
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

    /// A pool needs so many connections more than the limits that it shares leave it: others that
    /// do not need theirs give them up, and if all do, one that is of use is asked for.
    pub(crate) fn make_room(&mut self, now: Time, pool: PoolId, wanted: usize) {
        let Shortage { at_hand, shares: lacking } = self.shortage(pool, wanted);
        // What counts for a user or a database counts for a server too, and may do for both.
        for share in self.pools[pool].shares.clone().into_iter().rev() {
            let missing = at_hand.saturating_sub(self.shares[share].count.room());
            for _ in self.leaving(share)..missing {
                self.take_idle(now, &[share], Taker::Pool(pool));
            }
        }
        if let Some(since) = self.waits_since(pool) {
            let own = self.pools[pool].total;
            self.ask_busy(now, &lacking, Some(pool), since, own);
        }
    }

    /// How many connections a pool has for those who may come: its smallest size, but no more than
    /// it has where others who wait need what a limit leaves. Who lacks room in two limits is given
    /// it in one after the other, and would find the first one taken again.
    pub(crate) fn least(&self, now: Time, id: PoolId) -> usize {
        let pool = &self.pools[id];
        if pool.total >= pool.spec.min_size {
            return pool.spec.min_size;
        }
        let shares = pool.shares.iter().map(|share| &self.shares[*share]);
        let is_needed = |share: &Share| {
            let others = share.pools().filter(|other| *other != id);
            let here: usize = others.map(|other| self.pools[other].lacking(now)).sum();
            let lacking = here + share.count.wants_of_others(&self.member).len();
            lacking > 0 && share.count.room() <= lacking
        };
        let mut limited = shares.filter(|share| share.count.most().is_some());
        let yields = limited.any(is_needed);
        Mark::SmallestSizeYields.hit_if(yields);
        if yields { 0 } else { pool.spec.min_size }
    }

    /// What keeps a pool from so many connections more.
    pub(crate) fn shortage(&self, pool: PoolId, wanted: usize) -> Shortage {
        let shares = self.pools[pool].shares.iter().rev();
        let shares: Vec<_> = shares.map(|share| (*share, self.at_hand(*share, pool))).collect();
        let at_hand = shares.iter().map(|(_, at_hand)| *at_hand).fold(wanted, usize::min);
        let lacking = shares.into_iter().filter(|(_, its)| *its == at_hand && at_hand < wanted);
        Shortage { at_hand, shares: lacking.map(|(share, _)| share).collect() }
    }

    /// How many connections more a share has for a pool: what its limit leaves, what is about to
    /// go, and what others do not need, here or on another worker.
    fn at_hand(&self, share: ShareId, pool: PoolId) -> usize {
        let its = &self.shares[share];
        let Some(most) = its.count.most() else { return usize::MAX };
        let idle = self.idle(share, Some(pool)) + its.count.idle_of_others(&self.member);
        (most + self.leaving(share) + idle).saturating_sub(its.count.used())
    }

    /// Connections of a share that nobody needs here, those of one pool aside.
    pub(crate) fn idle(&self, share: ShareId, but: Option<PoolId>) -> usize {
        let pools = self.shares[share].pools().filter(|pool| Some(*pool) != but);
        pools.map(|pool| self.pools[pool].spare()).sum()
    }

    /// Connections of a share that were told to go.
    pub(crate) fn leaving(&self, share: ShareId) -> usize {
        let servers = self.servers.iter().filter(|(_, server)| {
            let leaves = matches!(server.state, ServerState::Leaving);
            leaves && is_among(&self.shares[share].count, &server.counts)
        });
        servers.count()
    }

    /// Whether a server will be free when its client's transaction is over.
    fn comes_free(&self, server: &Server) -> bool {
        let client = server.client().and_then(|client| self.clients.find(client));
        client.is_some_and(|client| !server.dedicated && !self.keeps_server(client, server))
    }

    /// Closes what there is beyond limits that are lower than they were: what is idle at once, and
    /// what is busy one by one as it comes free.
    pub(crate) fn shed_surplus(&mut self, now: Time) {
        for share in self.shares.keys() {
            let Some(its) = self.shares.find(share) else { continue };
            let surplus = its.count.most().map_or(0, |most| its.count.used().saturating_sub(most));
            for _ in self.leaving(share)..surplus {
                Mark::SurplusOfShare.hit();
                if !self.take_idle(now, &[share], Taker::Nobody) {
                    Mark::SurplusOwed.hit();
                    let pools = self.shares[share].pools.clone();
                    self.owe(pools, Time::default());
                    break;
                }
            }
        }
    }

    /// The connection of these shares that was idle longest is told to go, rather one of a pool
    /// that can spare it: a smallest size is for those who may come, and nothing to one who is
    /// there. What those count on who wait in its own pool goes only where a limit is lower now.
    pub(crate) fn take_idle(&mut self, now: Time, shares: &[ShareId], taker: Taker) -> bool {
        let others = self.pools_in(shares).filter(|other| taker != Taker::Pool(*other));
        let may_give = |other: &PoolId| taker == Taker::Nobody || self.pools[*other].spare() > 0;
        let idle = others.filter(may_give).flat_map(|other| {
            let its = &self.pools[other];
            let is_needed = its.total <= its.spec.min_size;
            its.idle.iter().map(move |server| (is_needed, *server))
        });
        let longest: Option<(bool, ServerId)> =
            idle.min_by_key(|(is_needed, server)| (*is_needed, self.servers[*server].changed));
        if let Some((is_needed, server)) = longest {
            Mark::IdleTaken.hit_if(matches!(taker, Taker::Pool(_)));
            Mark::NeededIdleTaken.hit_if(is_needed);
            self.close_server(now, server);
        }
        longest.is_some()
    }

    /// The pools that have a part in every one of these.
    pub(crate) fn pools_in(&self, shares: &[ShareId]) -> impl Iterator<Item = PoolId> {
        let first = shares.first().map(|share| &self.shares[*share]);
        let has_part = move |pool: &PoolId| {
            let its = &self.pools[*pool].shares;
            shares.iter().all(|share| its.contains(share))
        };
        first.into_iter().flat_map(Share::pools).filter(has_part)
    }

    /// Where nothing is idle, pools of these shares owe the next connection of theirs that comes
    /// free, to one that has so many of its `own` and has waited `since` then. At first it is the
    /// pool with most connections, of those that have one that comes free at all; when as much time
    /// has passed again, each: a transaction may take for ever, and a session too. A pool that has
    /// hardly more than the one that wants gives nothing up.
    pub(crate) fn ask_busy(
        &mut self,
        now: Time,
        shares: &[ShareId],
        taker: Option<PoolId>,
        since: Time,
        own: usize,
    ) {
        let waited = now - since;
        if waited < PATIENCE || shares.is_empty() {
            return;
        }
        if self.give_up_listener(now, shares, taker, waited >= 3 * PATIENCE && own == 0) {
            return;
        }
        let may_owe = |pool: &PoolId| {
            let its = self.pools[*pool].total;
            Some(*pool) != taker && (its > own + 1 || own == 0 && its > 0)
        };
        let debtors: Vec<PoolId> = if waited >= 2 * PATIENCE {
            Mark::AllOwe.hit();
            self.pools_in(shares).filter(may_owe).collect()
        } else {
            Mark::LargestOwes.hit();
            let counts_in = |server: &Server| {
                shares.iter().all(|share| is_among(&self.shares[*share].count, &server.counts))
            };
            let servers = self.servers.iter().map(|(_, server)| server);
            let busy = servers
                .filter(|server| counts_in(server) && !server.doomed && self.comes_free(server));
            let pools = busy.map(|server| server.pool).filter(may_owe);
            pools.max_by_key(|pool| (self.pools[*pool].total, pool.index())).into_iter().collect()
        };
        self.owe(debtors, since);
    }

    fn owe(&mut self, debtors: Vec<PoolId>, since: Time) {
        for debtor in debtors {
            let owes_since = &mut self.pools[debtor].owes_since;
            *owes_since = Some(owes_since.map_or(since, |other| other.min(since)));
        }
    }

    /// Whoever still lacks something will say so.
    pub(crate) fn forget_debts(&mut self) {
        for pool in self.pools.keys() {
            self.pools[pool].owes_since = None;
        }
    }

    /// Whether a connection of a pool that is free goes to others. If so, nobody owes them one any
    /// more: the rest is asked for again when that has gone.
    pub(crate) fn pays(&mut self, pool: PoolId) -> bool {
        let Some(since) = self.pools[pool].owes_since else { return false };
        // Its place would be given to whoever has waited longest.
        if self.waits_since(pool).is_some_and(|own| own <= since) {
            Mark::DebtPutOff.hit();
            return false;
        }
        Mark::DebtPaid.hit();
        for share in self.pools[pool].shares.clone() {
            for other in self.shares[share].pools.clone() {
                self.pools[other].owes_since = None;
            }
        }
        true
    }
}

/// Whether it is one of these.
pub(crate) fn is_among(count: &Arc<Count>, counts: &[Arc<Count>]) -> bool {
    counts.iter().any(|one| Arc::ptr_eq(one, count))
}

use std::rc::Rc;
use std::sync::Arc;

use pgweir_wire::TransactionStatus;

use crate::Engine;
use crate::client::{Client, Fate, Leg, Phase};
use crate::commons::{Count, Member};
use crate::pipeline::Access;
use crate::pool::{Pool, PoolId, Waiter};
use crate::prepared::{Names, Registry};
use crate::server::Server;
use crate::server::{Cleaning, ServerState};
use crate::shares::{Of, is_among};

impl Member {
    /// Panics if a client is still counted. To be asked when no engine has one any more.
    pub fn check_empty(&self) {
        let commons = self.commons();
        let counted = (commons.clients.value(), commons.logins.value());
        assert_eq!(counted, (0, 0), "clients and logins that are no more");
    }
}

impl Engine {
    /// Panics if the engine's state breaks one of its invariants. Costs time in proportion to
    /// everything there is: for tests and the simulator.
    pub fn check(&self) {
        self.check_servers();
        self.check_clients();
        self.check_pools();
        self.check_shares();
        let hot: usize = self.pools.iter().map(|(_, pool)| pool.hot.len()).sum();
        assert_eq!(self.hot, hot, "servers that are shared");
    }

    /// Panics if anything is left of clients and servers. To be asked when none is there any more.
    pub fn check_empty(&self) {
        let there = (self.clients.len(), self.servers.len(), self.cancels.len());
        assert_eq!(there, (0, 0, 0), "clients, servers and cancels that are no more");
        let timers = (self.logins.len(), self.leaving_clients, self.quiet.len());
        assert_eq!(timers, (0, 0, 0), "logins, last words and silences of nobody");
        assert!(self.unfinished.is_empty(), "a batch of nobody is waited for");
        for (_, pool) in self.pools.iter() {
            let held = (pool.total, pool.idle.len(), pool.opening, pool.waiting, pool.clients);
            assert_eq!(held, (0, 0, 0, 0, 0), "{}: held by nobody", pool.spec.name());
            assert_eq!(pool.registry.len(), 0, "{}: statements of nobody", pool.spec.name());
        }
        for (_, share) in self.shares.iter() {
            let count = &share.count;
            let held = [count.used(), count.opening(), count.clients()];
            assert_eq!(held, [0; 3], "{:?}: held by nobody", share.of);
        }
        self.member.check_empty();
    }

    /// Panics if what all engines of a process count together is not what they have. So many
    /// clients are on their way from one to another.
    pub fn check_together(engines: &[&Self], under_way: usize) {
        let Some(first) = engines.first() else { return };
        let commons = first.member.commons();
        let sum = |count: fn(&Self) -> usize| engines.iter().map(|engine| count(engine)).sum();
        let clients: usize = sum(Self::clients);
        let logins: usize = sum(|engine| engine.logins.len());
        let counted = (commons.clients.value(), commons.logins.value());
        assert_eq!(counted, (clients + under_way, logins + under_way), "clients and logins");
        assert_eq!(commons.cancellers.value(), sum(Self::cancellers), "waiting for a cancel");
        assert_eq!(commons.held.value(), sum(Self::held), "bytes of replies that are kept");
        if engines.len() == 1 {
            // What one engine counts for itself it has checked.
            return;
        }
        for (_, share) in engines.iter().flat_map(|engine| engine.shares.iter()) {
            let count = &share.count;
            let all = engines
                .iter()
                .map(|engine| engine.has_of(count))
                .fold([0; 3], |sum, its| std::array::from_fn(|at| sum[at] + its[at]));
            let counted = [count.used(), count.opening(), count.clients()];
            assert_eq!(counted, all, "{:?}: miscounted", share.of);
        }
    }

    fn held(&self) -> usize {
        let units = self.servers.iter().flat_map(|(_, server)| &server.pipeline);
        let piled = self.clients.iter().map(|(_, client)| client.piled);
        units.map(|unit| unit.held).chain(piled).sum()
    }

    fn cancellers(&self) -> usize {
        let cancels = |client: &Client| matches!(client.phase, Phase::Cancelling);
        self.clients.iter().filter(|(_, client)| cancels(client)).count()
    }

    fn check_servers(&self) {
        for (id, server) in self.servers.iter() {
            let over = server.stands_in && !server.status.in_block();
            assert!(!over, "{id:?}: stands in for a transaction that is over");
            let held = server.pipeline.is_empty() || server.brake.is_some();
            assert!(held, "{id:?}: shared without a brake");
            if let ServerState::Idle = server.state {
                assert!(server.replies.is_empty(), "{id:?}: idle with replies owed");
                assert!(server.shelf.is_settled(), "{id:?}: idle, and a statement is in doubt");
                let doubt = server.replies.may_be_ready_twice();
                assert!(!doubt, "{id:?}: idle, and may say ReadyForQuery once more");
                assert!(!server.status.in_block(), "{id:?}: idle in a transaction");
                let heard = server.body.left > 0 && server.body.fate == Fate::Forward;
                assert!(!heard, "{id:?}: idle inside a message of a client's");
                assert!(server.cancel.is_none(), "{id:?}: idle with a cancel under way");
                assert!(!server.doomed, "{id:?}: idle though it is to be closed");
                assert!(!server.read_paused, "{id:?}: idle and not read");
                assert!(server.replaying.is_none(), "{id:?}: idle with settings in flight");
                assert!(server.answer.is_none(), "{id:?}: idle while it says what it is set to");
                assert!(server.outdated.is_none(), "{id:?}: idle with news that nobody has seen");
            }
            if let Some(client) = server.promised_to {
                let leg = self.clients.find(client).map(|client| client.leg);
                assert_eq!(leg, Some(Leg::Preparing(id)), "{id:?}: promised to {client:?}");
                let to_come = match server.state {
                    ServerState::Connecting
                    | ServerState::Login(_)
                    | ServerState::Leaving
                    | ServerState::Cleaning {
                        step: Cleaning::Asking | Cleaning::Reading, ..
                    } => true,
                    ServerState::Idle
                    | ServerState::Lent(_)
                    | ServerState::Pipelined
                    | ServerState::Cleaning { .. }
                    | ServerState::Listening
                    | ServerState::AwaitingCancel
                    | ServerState::Forsaken => false,
                };
                assert!(to_come, "{id:?}: could be lent to {client:?}, and is not");
            }
            if let Some(client) = server.client() {
                let fits = server.dedicated || self.is_born_for(id, client);
                assert!(fits, "{id:?}: started otherwise than {client:?} has asked for");
                let leg = self.clients.find(client).map(|client| client.leg);
                let has_it = |leg| match leg {
                    Leg::Held(held) | Leg::Preparing(held) | Leg::Pipelined(held) => held == id,
                    Leg::None | Leg::Waiting(_) | Leg::Granted(_) => false,
                };
                assert!(
                    leg.is_some_and(has_it),
                    "{id:?}: lent to {client:?}, whose leg is {leg:?}"
                );
            }
        }
    }

    fn check_clients(&self) {
        for (id, client) in self.clients.iter() {
            let names = client.names.len();
            assert!(names <= Names::MOST, "{id:?} has {names} statements under names");
            if let Leg::Held(server) | Leg::Preparing(server) = client.leg {
                let held = self.servers.find(server).and_then(|server| match client.leg {
                    Leg::Preparing(_) => server.client().or(server.promised_to),
                    Leg::Held(_)
                    | Leg::None
                    | Leg::Waiting(_)
                    | Leg::Granted(_)
                    | Leg::Pipelined(_) => server.client(),
                });
                assert_eq!(held, Some(id), "{id:?} believes that it holds {server:?}");
            }
            if client.unit.is_some() {
                let may_share = matches!(client.leg, Leg::Waiting(_) | Leg::Granted(_));
                assert!(may_share, "{id:?}: a unit that waits for no place");
            }
            if client.changes.is_some() {
                assert!(client.server().is_some(), "{id:?}: settings in doubt on no server");
            }
            if let (Leg::Held(server), Phase::Ready(_)) = (client.leg, &client.phase) {
                let reported = &self.servers[server].parameters;
                let told = client.told.as_ref().is_some_and(|told| Rc::ptr_eq(told, reported));
                let aside = client.is_reset() || self.servers[server].replies.is_ours();
                assert!(told || aside, "{id:?} was not told what {server:?} reports");
            }
            if !matches!(client.leg, Leg::Held(_) | Leg::Pipelined(_)) {
                assert!(client.slots.is_empty(), "{id:?}: replies owed by no server");
                assert!(client.open_slot.is_none(), "{id:?}: a batch open on no server");
            }
            if client.server().is_none() && !matches!(client.leg, Leg::Preparing(_)) {
                assert!(!client.read_paused, "{id:?}: nobody would ever read it again");
            }
            let unsettled = client.deallocates.iter().map(|its| its.slot());
            for slot in unsettled.chain(client.names.unsettled()) {
                assert!(client.slots.contains(&slot), "{id:?}: a name in doubt for no unit");
            }
            if client.asked.is_some() {
                let sent = client.server().is_some_and(|server| self.servers[server].used);
                assert!(!sent && client.slots.is_empty(), "{id:?}: a unit asks that was sent");
            }
            if let (Some(_), Leg::Held(server)) = (client.lost, client.leg) {
                let server = &self.servers[server];
                let failed = server.status == TransactionStatus::Failed && !server.used;
                assert!(failed, "{id:?}: served in a lost transaction");
            }
            if let Some(open) = client.open_slot {
                assert_eq!(client.slots.last(), Some(&open), "{id:?}: the open batch is the last");
            }
            assert!(
                client.slots.windows(2).all(|pair| pair[0] != pair[1]),
                "{id:?}: two units with one slot"
            );
        }
    }

    fn check_pools(&self) {
        for (pool_id, pool) in self.pools.iter() {
            let of_pool = || self.servers.iter().filter(move |(_, s)| s.pool == pool_id);
            // Made only when it is to be said.
            let name = || pool.spec.name();
            assert_eq!(pool.total, of_pool().count(), "{}: servers are miscounted", name());
            assert!(pool.total <= pool.ceiling, "{}: more servers than its size", name());
            let clients = self.clients.iter().filter(|(_, c)| c.pool() == Some(pool_id)).count();
            assert_eq!(pool.clients, clients, "{}: clients are miscounted", name());
            let opening = of_pool().filter(|(_, server)| server.is_opening());
            assert_eq!(pool.opening, opening.count(), "{}: attempts are miscounted", name());
            let idle = of_pool().filter(|(_, s)| matches!(s.state, ServerState::Idle)).count();
            assert_eq!(pool.idle.len(), idle, "{}: idle servers are miscounted", name());
            let waiting = self.clients.iter().filter(|(id, client)| {
                let Leg::Waiting(ticket) = client.leg else { return false };
                let in_this = match client.phase {
                    Phase::Ready(pool) => pool == pool_id,
                    Phase::Welcome(ref welcome) => welcome.pool == pool_id,
                    Phase::Startup | Phase::Cancelling | Phase::Login(_) | Phase::Console => false,
                };
                if in_this {
                    let entries = pool.waiters.iter();
                    let own = entries.filter(|w| w.ticket == ticket && w.client == *id);
                    assert_eq!(own.count(), 1, "{id:?} waits but is not in the queue");
                }
                in_this
            });
            assert_eq!(pool.waiting, waiting.count(), "{}: waiters are miscounted", name());
            let bytes = pool.registry.bytes();
            assert!(bytes <= Registry::MOST_BYTES, "{}: {bytes} bytes of statements", name());
            let places = pool.waiters.len();
            assert!(places <= pool.most_places(), "{}: {places} places in its queue", name());
            let reading = of_pool().filter(|(_, server)| {
                matches!(server.state, ServerState::Cleaning { step: Cleaning::Reading, .. })
            });
            assert_eq!(pool.reading, reading.count(), "{}: readers are miscounted", name());
            self.check_shared(pool_id, pool);
            let in_vain = if pool.hot.is_empty() { 0 } else { pool.sharing };
            let waits_in_vain = pool.waiting > in_vain && idle > 0 && pool.names_known;
            assert!(!waits_in_vain, "{}: one waits while a server is idle", name());
            let in_order = pool.waiters.iter().is_sorted_by_key(|waiter| waiter.since);
            assert!(in_order, "{}: some wait behind others that have asked after them", name());
            self.check_turns(pool_id, pool);
            self.check_attempts(pool_id, pool);
        }
    }

    /// Nobody waits alone for a server where there is room for one more: all that wait are served
    /// as fast as the server lets somebody in.
    fn check_attempts(&self, id: PoolId, pool: &Pool) {
        // What another worker leaves is heard of later.
        let is_put_off = self.member.workers() > 1 || pool.failures > 0;
        if pool.waiting == 0 || pool.total >= pool.spec.size || is_put_off {
            return;
        }
        // Of those who wait to share one is made for each that has none of use to it.
        let unserved = pool.alone() + usize::from(self.lacks_hot(id));
        let unserved = unserved.saturating_sub(pool.coming() - self.promised(id));
        let is_held = unserved > 0 && self.room(id) > 0;
        assert!(!is_held, "{}: {unserved} wait, and no attempt is made", pool.spec.name());
    }

    /// Servers that are shared, and who shares them.
    fn check_shared(&self, id: PoolId, pool: &Pool) {
        let name = || pool.spec.name();
        let of_pool = || self.clients.iter().filter(move |(_, its)| its.pool() == Some(id));
        let waiting = of_pool().filter(|(_, its)| matches!(its.leg, Leg::Waiting(_)));
        let units: Vec<_> = waiting.filter_map(|(_, its)| its.unit.as_deref()).collect();
        let reads = units.iter().filter(|unit| !unit.access.waits()).count();
        let counted = (pool.sharing, pool.sharing_reads);
        assert_eq!(counted, (units.len(), reads), "{}: who may share is miscounted", name());
        let is_hot = |server: &Server| matches!(server.state, ServerState::Pipelined);
        for (id, server) in self.servers.iter().filter(|(_, server)| server.pool == id) {
            let times = pool.hot.iter().filter(|hot| **hot == id).count();
            assert_eq!(times, usize::from(is_hot(server)), "{id:?}: shared or not");
            assert!(is_hot(server) || server.load() == 0, "{id:?}: has units and is not shared");
            if !is_hot(server) {
                continue;
            }
            let granted = of_pool().filter(|(_, its)| its.leg == Leg::Granted(id));
            let units: Vec<_> = granted.filter_map(|(_, its)| its.unit.as_deref()).collect();
            let writes = units.iter().filter(|unit| unit.access.waits()).count();
            let counted = (server.granted, server.granted_writes);
            assert_eq!(counted, (units.len(), writes), "{id:?}: places are miscounted");
            let idles = server.load() == 0 && server.replies.is_empty();
            assert!(!idles, "{id:?}: shared by nobody");
            let is_listed = self.open.contains(&id);
            assert_eq!(server.is_open(), is_listed, "{id:?}: its units lack a Sync, or do not");
            let passed = server.replies.joints_passed();
            assert!(passed <= server.group(), "{id:?}: says more than one ReadyForQuery is for");
            for unit in &server.pipeline {
                let only_reads = unit.access == Access::Read;
                assert!(only_reads || !unit.joined, "{id:?}: what does not only read is joined");
                let Some(client) = unit.client else { continue };
                let its = &self.clients[client];
                assert_eq!(its.leg, Leg::Pipelined(id), "{client:?} is on {id:?}");
                assert_eq!(its.slots[..], [unit.slot], "{client:?}: what it is owed");
            }
        }
        let is_free = pool.idle.iter().any(|id| self.servers[*id].birth.is_empty());
        let in_vain = pool.names_known && is_free && self.lacks_hot(id);
        assert!(!in_vain, "{}: one waits to share while a server is idle", name());
        for (id, client) in of_pool() {
            if let Leg::Pipelined(server) = client.leg {
                let mut units = self.servers[server].pipeline.iter();
                assert!(units.any(|unit| unit.client == Some(id)), "{id:?} is not on {server:?}");
            }
        }
    }

    /// Whoever has been given a server, and has not used it yet, had asked before all who wait for
    /// one alone; but
    /// for those that had been given one, too, and have lost it, or had to wait before they were in
    /// the queue.
    fn check_turns(&self, id: PoolId, pool: &Pool) {
        let waits = |waiter: &&Waiter| {
            let client = self.clients.find(waiter.client);
            client.is_some_and(|client| {
                let late = client.asked.is_some_and(|asked| asked.lost > 0 || asked.held);
                client.leg == Leg::Waiting(waiter.ticket) && waiter.shares.is_none() && !late
            })
        };
        let Some(first) = pool.waiters.iter().find(waits) else { return };
        for (client_id, client) in self.clients.iter().filter(|(_, its)| its.pool() == Some(id)) {
            let served = matches!(client.leg, Leg::Held(_) | Leg::Preparing(_));
            // One that is made for its client is in no queue.
            let own = client.replication.is_some() || !client.birth.is_empty();
            if let Some(asked) = client.asked.filter(|_| served && !own) {
                let name = pool.spec.name();
                assert!(asked.since <= first.since, "{name}: {client_id:?} was served out of turn");
            }
        }
    }

    fn check_shares(&self) {
        let logging_in = self
            .clients
            .iter()
            .filter(|(_, client)| matches!(client.phase, Phase::Startup | Phase::Login(_)))
            .map(|(id, client)| (client.since, id.index()));
        assert_eq!(self.logins, logging_in.collect(), "who logs in");
        for (_, share) in self.shares.iter() {
            let count = &share.count;
            let counted = [count.used(), count.opening(), count.clients()];
            let here = self.has_of(count);
            if self.member.workers() == 1 {
                assert_eq!(counted, here, "{:?}: miscounted", share.of);
            } else {
                let covered = here.iter().zip(&counted).all(|(here, all)| here <= all);
                assert!(covered, "{:?}: {here:?} here, {counted:?} in all", share.of);
            }
            assert!(count.used() <= count.ceiling(), "{:?}: more than the limit", share.of);
        }
    }

    /// Connections, those of them that are being made, and clients that are counted there.
    fn has_of(&self, count: &Arc<Count>) -> [usize; 3] {
        let servers = || self.servers.iter().filter(|(_, its)| is_among(count, &its.counts));
        let opening = servers().filter(|(_, server)| server.is_opening());
        let shares = self.shares.iter().filter(|(_, share)| Arc::ptr_eq(&share.count, count));
        let clients = shares.map(|(id, share)| {
            let pools = self.pools.iter().filter(|(_, pool)| pool.shares.contains(&id));
            match share.of {
                Of::Server(_) => 0,
                Of::Database(_) | Of::User(_) => pools.map(|(_, pool)| pool.clients).sum(),
            }
        });
        [servers().count(), opening.count(), clients.sum()]
    }
}

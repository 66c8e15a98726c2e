//! Another configuration while clients are connected.
//!
//! Nobody is dropped whose pool is still there. A pool keeps its clients, its queue and its
//! figures; if its servers are other ones now, each old one is closed when its client is done with
//! it, and the next unit goes to a new one. Who is logged in stays so, whatever password is asked
//! of the next one. Clients of a pool that is gone are told when their transaction is over.

use std::collections::BTreeSet;

use crate::Engine;
use crate::action::{Action, Endpoint};
use crate::client::Phase;
use crate::errors::TERMINATED;
use crate::marks::Mark;
use crate::plan::Plan;
use crate::pool::{Pool, PoolId, PoolSpec};
use crate::server::{Cleaning, ServerState};
use crate::time::Time;

/// The DETAIL for clients of a pool that is gone.
pub(crate) const REMOVED: &str = "The pool was taken out of the configuration.";

impl Engine {
    /// Goes on with another configuration.
    pub fn reload(&mut self, now: Time, plan: Plan) {
        let admin = self.plan.admin.as_ref().map(|admin| admin.username.clone());
        self.plan = plan;
        let counts = self.leave_all_shares();
        let before = self.pools.keys();
        let (mut kept, mut moved) = (BTreeSet::new(), Vec::new());
        for spec in self.take_own_specs() {
            match self.pool_named(&spec.database, &spec.user) {
                Some(id) => {
                    kept.insert(id.index());
                    if self.change_pool(id, spec) {
                        moved.push(id);
                    }
                }
                None => drop(self.add_pool(spec)),
            }
        }
        let others = before.iter().copied().filter(|id| !kept.contains(&id.index()));
        let mut removed = Vec::new();
        for id in others.collect::<Vec<_>>() {
            let spec = &self.pools[id].spec;
            let tame = self.plan.tame(&spec.database, &spec.user);
            match tame.filter(|_| spec.wild && !self.pools[id].removed) {
                Some(spec) => {
                    Mark::WildPoolKept.hit();
                    if self.change_pool(id, spec) {
                        moved.push(id);
                    }
                }
                None => {
                    self.remove_pool(id);
                    removed.push(id);
                }
            }
        }
        // What a pool may have is known now that all have said what they have.
        self.renew_limits();
        drop(counts);
        for id in moved {
            self.replace_servers(now, id);
        }
        for id in before {
            self.close_surplus(now, id);
        }
        for id in removed {
            self.close_clients(now, id);
        }
        for id in self.pools.keys() {
            self.end_sharing(id);
            if self.knows_names(id) {
                self.grant(now, id);
                self.serve_waiters(now, id);
            } else if self.pools[id].clients > 0 {
                self.want_names(now, id);
            }
            self.refill(now, id);
        }
        self.renew_quiet();
        if admin != self.plan.admin.as_ref().map(|admin| admin.username.clone()) {
            self.close_consoles(now);
        }
    }

    /// Makes a pool.
    pub(crate) fn add_pool(&mut self, spec: PoolSpec) -> PoolId {
        let (database, user) = (spec.database.clone(), spec.user.clone());
        let id = self.pools.insert(Pool::new(spec));
        self.pool_of.entry(database).or_default().insert(user, id);
        self.join_shares(id);
        id
    }

    /// The pool for a database and a user.
    pub(crate) fn pool_named(&self, database: &str, user: &str) -> Option<PoolId> {
        self.pool_of.get(database)?.get(user).copied()
    }

    /// A pool goes on as another configuration has it. Says whether its servers are other ones.
    fn change_pool(&mut self, id: PoolId, spec: PoolSpec) -> bool {
        let pool = &mut self.pools[id];
        let same_servers = pool.spec.has_same_servers(&spec);
        let same_catalogue = pool.spec.catalogue() == spec.catalogue();
        pool.spec = spec;
        let most = pool.spec.size + pool.spec.reserve + pool.listeners();
        pool.ceiling = pool.total.max(most);
        if !same_servers {
            Mark::PoolMoved.hit();
            pool.forget_servers();
        }
        self.join_shares(id);
        if !same_catalogue {
            self.forget_names(id);
        }
        !same_servers
    }

    /// Closes what a pool has that is smaller now, as far as it is idle.
    fn close_surplus(&mut self, now: Time, id: PoolId) {
        let most = self.pools[id].most();
        let surplus = self.pools[id].total.saturating_sub(most);
        for server in self.pools[id].idle.iter().take(surplus).copied().collect::<Vec<_>>() {
            Mark::SurplusClosed.hit();
            self.close_server(now, server);
        }
    }

    /// No server of a pool is lent again.
    fn replace_servers(&mut self, now: Time, id: PoolId) {
        for key in self.servers.keys() {
            let Some(server) = self.servers.find_mut(key).filter(|server| server.pool == id) else {
                continue;
            };
            match server.state {
                ServerState::Listening => {
                    Mark::ListenerReplaced.hit();
                    self.close_server(now, key);
                }
                ServerState::Idle => {
                    Mark::IdleReplaced.hit();
                    self.close_server(now, key);
                }
                ServerState::Connecting
                | ServerState::Login(_)
                | ServerState::Cleaning { step: Cleaning::Asking, .. } => {
                    Mark::OpeningReplaced.hit();
                    self.actions.push(Action::Abort(Endpoint::Server(key)));
                    self.forget_server(now, key);
                }
                ServerState::Lent(_)
                | ServerState::Pipelined
                | ServerState::Cleaning { .. }
                | ServerState::AwaitingCancel
                | ServerState::Forsaken
                | ServerState::Leaving => {
                    Mark::BusyReplaced.hit();
                    server.doomed = true;
                }
            }
        }
    }

    /// A pool is no longer in the configuration.
    fn remove_pool(&mut self, id: PoolId) {
        let pool = &mut self.pools[id];
        pool.removed = true;
        pool.spec.min_size = 0;
        self.forget_name(id);
        self.join_shares(id);
    }

    /// Nobody finds a pool by its name any more.
    fn forget_name(&mut self, id: PoolId) {
        let PoolSpec { database, user, .. } = &self.pools[id].spec;
        let Some(of_database) = self.pool_of.get_mut(database) else { return };
        if of_database.get(user) == Some(&id) {
            of_database.remove(user);
        }
        if of_database.is_empty() {
            self.pool_of.remove(database);
        }
    }

    /// Tells the clients of a pool that is gone, as far as they are idle.
    pub(crate) fn close_clients(&mut self, now: Time, id: PoolId) {
        for client in self.clients.keys() {
            let its = self.clients.find(client).and_then(|client| client.pool());
            if its == Some(id) && self.is_between_units(client) {
                Mark::ClosedWithPool.hit();
                self.expel(now, client, TERMINATED.report(&[]).detail(REMOVED));
            }
        }
    }

    /// Once nobody is left in a pool that was removed, its servers go, and then the pool. One that
    /// was made for a client goes when its servers have had their time.
    pub(crate) fn dissolve(&mut self, now: Time, id: PoolId) {
        let pool = &self.pools[id];
        if pool.clients > 0 || !pool.removed && !pool.spec.wild {
            return;
        }
        if pool.removed {
            for server in pool.idle.clone() {
                self.close_server(now, server);
            }
        }
        let pool = &self.pools[id];
        if pool.total == 0 {
            Mark::WildPoolGoes.hit_if(!pool.removed);
            self.forget_name(id);
            self.leave_shares(id);
            self.pools.remove(id);
        }
    }

    /// The limit of silence may be a new one.
    fn renew_quiet(&mut self) {
        self.quiet.clear();
        if self.plan.client_idle_timeout.is_some() {
            for id in self.clients.keys() {
                let client = &self.clients[id];
                // Others will be noted when their login is over.
                if matches!(client.phase, Phase::Ready(_)) {
                    Mark::SilenceRenewed.hit();
                    self.watch_silence(id, client.quiet_since);
                }
            }
        }
    }

    /// Whoever is at the console may not be its user any more.
    fn close_consoles(&mut self, now: Time) {
        for id in self.clients.keys() {
            let client = self.clients.find(id);
            let there = client.is_some_and(|client| match &client.phase {
                Phase::Console => true,
                Phase::Login(login) => login.is_for_console(),
                Phase::Startup | Phase::Cancelling | Phase::Welcome(_) | Phase::Ready(_) => false,
            });
            if there {
                Mark::ConsoleClosed.hit();
                self.expel(now, id, TERMINATED.report(&[]));
            }
        }
    }
}

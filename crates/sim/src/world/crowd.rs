//! How many there are, counted from outside: what no limit allows must not be, and who is refused
//! must have come when there were that many.
//!
//! Counts grow only when somebody comes, so that is when they are looked at. What was decided under
//! a limit that has been changed since is held against the largest that was in force meanwhile.

use std::collections::BTreeMap;

use pgweir_engine::Endpoint;
use pgweir_proxy::Interest;

use super::World;
use super::order::TURN_US;
use super::wires::Outside;
use crate::configuration::{Configuration, Limits};
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::postgres::Backend;
use crate::process::Place;
use crate::session::Home;

/// When there were last more clients than a limit allows, so that one of them may be refused.
#[derive(Default)]
pub(crate) struct Crowd {
    pub(crate) clients: Option<u64>,
    pub(crate) databases: BTreeMap<String, u64>,
    pub(crate) users: BTreeMap<String, u64>,
}

impl World {
    /// Whether pgweir's end of a connection is open, and not only for last words.
    pub(super) fn is_attended(&mut self, wire: WireId) -> bool {
        self.interest(wire).is_some_and(is_attended)
    }

    /// What pgweir waits for on a connection, if its end is open: nothing between two workers.
    pub(super) fn interest(&mut self, wire: WireId) -> Option<Interest> {
        let its = &self.wires[wire.0];
        match its.place {
            Some(place) => self.process.interest(place),
            None if its.is_under_way() => {
                Some(Interest { read: false, write: false, reset: false })
            }
            None => None,
        }
    }

    /// Whether it is open at all.
    pub(super) fn is_open(&mut self, wire: WireId) -> bool {
        self.interest(wire).is_some()
    }

    /// Notes which limits of clients one that is there may have found reached.
    pub(super) fn note_crowd(&mut self) {
        let least = |limit: fn(&Limits) -> Option<u64>| {
            self.site.rules.least(self.now(), |rules| limit(&rules.limits))
        };
        let limits = Limits {
            clients: least(|limits| limits.clients),
            database_clients: least(|limits| limits.database_clients),
            user_clients: least(|limits| limits.user_clients),
            ..Limits::default()
        };
        let limited = [limits.clients, limits.database_clients, limits.user_clients];
        if limited.iter().all(Option::is_none) {
            return;
        }
        let mut all = 0;
        let (mut databases, mut users) = (BTreeMap::new(), BTreeMap::new());
        for number in 0..self.wires.len() {
            if self.wires[number].guest.is_none() || !self.is_open(WireId(number)) {
                continue;
            }
            all += 1;
            if let Some(home) = self.home_of_guest(number) {
                *databases.entry(home.database).or_insert(0) += 1;
                *users.entry(home.user).or_insert(0) += 1;
            }
        }
        let now = self.now();
        let crowd = &mut self.site.crowd;
        let above = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count > limit);
        if above(limits.clients, all) {
            crowd.clients = Some(now);
        }
        databases.retain(|_, count| above(limits.database_clients, *count));
        users.retain(|_, count| above(limits.user_clients, *count));
        crowd.databases.extend(databases.into_keys().map(|database| (database, now)));
        crowd.users.extend(users.into_keys().map(|user| (user, now)));
    }

    /// Somebody has come, and has said nothing yet.
    pub(super) fn check_logins(&mut self, wire: WireId) {
        let least = self.site.rules.least(self.now(), |rules| rules.limits.logins);
        let Some(least) = least else { return };
        let most = self.most_now(|limits| limits.logins);
        let turn_before = self.now().saturating_sub(TURN_US);
        let (mut open, mut attended) = (0, 0);
        for number in (0..self.wires.len()).filter(|number| *number != wire.0) {
            let Some(guest) = &self.wires[number].guest else { continue };
            if guest.is_before_login() {
                open += u64::from(self.is_open(WireId(number)));
                attended += u64::from(self.is_attended(WireId(number)));
            } else if guest.pool.is_none() && guest.contact.read_at >= turn_before {
                // A request for a cancel may wait until its client has been looked at.
                open += u64::from(self.is_open(WireId(number)));
            }
        }
        if let Some(most) = most.filter(|most| attended >= *most)
            && self.is_attended(wire)
        {
            let text = format!("one more may log in beside {attended}, of {most}");
            self.site.ledger.fail(Invariant::LimitsHold, text);
        }
        if let Outside::Client(client) = &mut self.wires[wire.0].outside {
            client.turned_away = open >= least;
        }
    }

    /// A client was let in.
    pub(super) fn check_clients(&mut self, wire: WireId) {
        let Some(own) = self.home_of_guest(wire.0) else { return };
        let (mut all, mut of_database, mut of_user) = (0, 0, 0);
        for number in (0..self.wires.len()).filter(|number| *number != wire.0) {
            let ready = match &self.wires[number].outside {
                Outside::Client(client) => client.is_ready(),
                Outside::Admin(_) | Outside::Backend(_) | Outside::Canceller(_) | Outside::Gone => {
                    false
                }
            };
            if ready
                && self.is_attended(WireId(number))
                && let Some(home) = self.home_of_guest(number)
            {
                all += 1;
                of_database += u64::from(home.database == own.database);
                of_user += u64::from(home.user == own.user);
            }
        }
        let since = self.wires[wire.0].asked_at;
        self.check(since, "clients", all, |rules| rules.limits.clients);
        self.check(since, "clients of a database", of_database, |rules| {
            rules.limits.database_clients
        });
        self.check(since, "clients of a user", of_user, |rules| rules.limits.user_clients);
    }

    /// A client was let in: nobody else who is there has its number.
    pub(super) fn check_number(&mut self, wire: WireId) {
        let Some(own) = self.number_of(wire.0) else { return };
        for number in (0..self.wires.len()).filter(|number| *number != wire.0) {
            if self.number_of(number) == Some(own) && self.is_attended(WireId(number)) {
                self.site
                    .ledger
                    .fail(Invariant::OwnNumber, format!("two clients have the number {own}"));
            }
        }
    }

    /// A client or server of a pool has come to a worker: all others do, before and after it, as
    /// long as the pool is in the configuration.
    pub(super) fn check_worker(&mut self, wire: WireId, home: Home) {
        let Some(place) = self.wires[wire.0].place else { return };
        if self.has_lacked(&home) {
            return;
        }
        let worker = *self.homes.entry(home.clone()).or_insert(place.worker);
        if worker != place.worker {
            let text = format!("{home:?} is on worker {worker} and on worker {}", place.worker);
            self.site.ledger.fail(Invariant::OneWorker, text);
        }
    }

    /// Whether a pool was missing at some time: when it comes back it is another one than that
    /// which was there before.
    pub(super) fn has_lacked(&self, home: &Home) -> bool {
        let mut pools = self.topology.pools.iter().filter(|pool| pool.home() == *home);
        pools.any(|pool| self.site.rules.lacked(0, pool.draft))
    }

    /// From when on limits count that pools share. One that is out of the configuration keeps those
    /// that it had.
    fn shared_since(&self, wire: WireId) -> u64 {
        let mut pools = self.topology.pools.iter();
        match pools.any(|pool| self.site.rules.lacked(0, pool.draft)) {
            true => 0,
            false => self.wires[wire.0].asked_at,
        }
    }

    /// A server process has read whose it is to be.
    pub(super) fn check_shares(&mut self, wire: WireId) {
        let Outside::Backend(process) = &self.wires[wire.0].outside else { return };
        let Some(own) = process.home.clone() else { return };
        self.check_worker(wire, own.clone());
        self.check_new_place(wire, &own);
        if !self.is_attended(wire) {
            return;
        }
        let mut count = |is_alike: fn(&Home, &Home) -> bool| {
            let alike = |home: &Home| is_alike(home, &own);
            self.count_servers(wire, |process| process.home.as_ref().is_some_and(alike))
        };
        let of_database = count(|home, own| home.database == own.database);
        let of_user = count(|home, own| home.user == own.user);
        let of_pool = count(|home, own| home == own);
        let shared_since = self.shared_since(wire);
        self.check(shared_since, "connections of a database", of_database, |rules| {
            rules.limits.database
        });
        self.check(shared_since, "connections of a user", of_user, |rules| rules.limits.user);
        let pool = self.topology.pools.iter().find(|pool| pool.home() == own);
        let constant = !self.has_lacked(&own);
        if let Some(draft) = pool.map(|pool| pool.draft).filter(|_| constant) {
            let since = self.wires[wire.0].asked_at;
            // One that listens for the pool's clients comes on top.
            let of_pool = of_pool.saturating_sub(u64::from(self.listened.contains(&own)));
            self.check(since, "connections of a pool", of_pool, |rules| Some(rules.most(draft)));
            self.check_reserve(wire, &own, draft);
        }
    }

    /// pgweir wants one more connection.
    pub(super) fn check_parallelism(&mut self, place: Place, cluster: usize) {
        let Endpoint::Server(_) = place.endpoint else { return };
        let logging_in =
            |process: &Backend| process.cluster == cluster && process.is_before_login();
        let others = self.attempts_at(cluster) + self.count_servers(WireId(usize::MAX), logging_in);
        let most = self.most_now(|limits| Some(limits.parallelism)).unwrap_or(u64::MAX);
        if others >= most {
            let text = format!("{place:?} is opened beside {others}, of {most}");
            self.site.ledger.fail(Invariant::LimitsHold, text);
        }
    }

    /// An attempt to connect that began then is over: it must not have been waited for too long.
    pub(super) fn check_attempt(&mut self, place: Place, asked_at: u64) {
        let Endpoint::Server(_) = place.endpoint else { return };
        let most = self.site.rules.most_kept(asked_at, |rules| Some(rules.times.connect));
        let over = most.is_some_and(|most| self.now() > asked_at + most + self.site.slack_us());
        if over && self.process.awaits(place) {
            self.site
                .ledger
                .fail(Invariant::TimesHold, format!("{place:?} outlasts connect_timeout"));
        }
    }

    /// All is quiet: the smallest size of each pool is there, if nothing that it shares limits it
    /// and nothing ends its servers.
    pub(super) fn check_least(&mut self) -> Result<(), String> {
        let rules = self.site.rules.current().clone();
        let shared = [rules.limits.server, rules.limits.database, rules.limits.user];
        // What a server has room for may be less than the smallest sizes of its pools.
        let is_full: Vec<_> = (0..self.clusters.len())
            .map(|cluster| {
                let there = self.count_to(cluster);
                self.most_to(cluster).is_some_and(|most| there >= most)
            })
            .collect();
        let bound = shared.iter().any(Option::is_some) || rules.times.lifetime.is_some();
        if bound || self.site.draining {
            return Ok(());
        }
        for pool in rules.pools.iter().filter(|pool| pool.here && pool.database != "*") {
            let own = Home { database: pool.database.clone(), user: pool.user.clone() };
            let is_its = |process: &Backend| process.home.as_ref() == Some(&own);
            let there = self.count_servers(WireId(usize::MAX), is_its);
            if there < pool.least && !is_full[pool.cluster] {
                return Err(format!("{own:?} has {there} servers, of {} at least", pool.least));
            }
        }
        Ok(())
    }

    /// The largest of a kind of limits that are in force now.
    fn most_now(&self, limit: impl Fn(&Limits) -> Option<u64>) -> Option<u64> {
        self.site.rules.most(self.now(), |rules| limit(&rules.limits))
    }

    /// pgweir says that it has given up a server of this pool: what its process does is not counted
    /// any more, though PostgreSQL counts it.
    pub(super) fn note_given_up(&mut self, pool: &str) {
        for number in 0..self.wires.len() {
            let Outside::Backend(process) = &self.wires[number].outside else { continue };
            let home = process.home.as_ref();
            let its = home.is_some_and(|home| format!("{}/{}", home.database, home.user) == pool);
            if its && !self.is_attended(WireId(number)) {
                self.wires[number].given_up = true;
            }
        }
    }

    /// Server connections like that, the one named aside, as PostgreSQL counts them: a process that
    /// still runs a client's statement is there, whether or not anybody waits for it.
    pub(super) fn count_servers(&mut self, but: WireId, is_like: impl Fn(&Backend) -> bool) -> u64 {
        let mut count = 0;
        for number in (0..self.wires.len()).filter(|number| *number != but.0) {
            let wire = &self.wires[number];
            let Outside::Backend(process) = &wire.outside else { continue };
            if !wire.is_server() || !is_like(process) {
                continue;
            }
            let at_work = process.running().is_some() && !wire.given_up;
            count += u64::from(at_work || self.is_attended(WireId(number)));
        }
        count
    }

    /// Somebody has come who was let in beside so many others.
    fn check(
        &mut self,
        since: u64,
        what: &str,
        others: u64,
        limit: impl Fn(&Configuration) -> Option<u64>,
    ) {
        let most = self.site.rules.most(since, limit);
        if let Some(most) = most.filter(|most| others >= *most) {
            self.site.ledger.fail(
                Invariant::LimitsHold,
                format!("{what}: one more beside {others}, of {most}"),
            );
        }
    }

    fn number_of(&self, wire: usize) -> Option<i32> {
        match &self.wires[wire].outside {
            Outside::Client(client) => client.process_id(),
            Outside::Admin(_) | Outside::Backend(_) | Outside::Canceller(_) | Outside::Gone => None,
        }
    }

    /// What a guest asks for.
    pub(super) fn home_of_guest(&self, wire: usize) -> Option<Home> {
        let pool = self.wires[wire].guest.as_ref()?.pool?;
        Some(self.topology.pools[pool].home())
    }
}

/// Whether an end that is waited for like this is open not only for last words.
pub(super) fn is_attended(interest: Interest) -> bool {
    interest.read || !interest.write
}

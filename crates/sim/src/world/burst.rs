//! A burst of clients is connected for as fast as servers let pgweir in, not one after the other.
//!
//! It shows when an attempt to connect comes to its end, and whenever pgweir looks who waits: as
//! many as have waited until then have a connection of their pool's each, made or under way, up to
//! its size. All that could be one is counted for one, whatever it is for, and whoever may have had
//! a server for its own is left out. Where something else may hold pgweir back that is not looked
//! at: a limit that pools share, attempts that fail, as many attempts as may be made at a time.

use pgweir_engine::{ClientState, ClientView, Time};

use super::World;
use super::order::TURN_US;
use super::wires::{Outside, Wire};
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::session::Home;

/// By then a worker has seen that there is room for another attempt, if it was one of another
/// worker's that has come to its end.
const HEARD_US: u64 = 400_000;

/// Two clients wait at least where one of them could wait for the other's attempt.
const SOME: u64 = 2;

impl World {
    /// As [`Self::check_burst`], of all servers.
    pub(super) fn check_bursts(&mut self) {
        if self.seats_taken > 0 {
            (0..self.clusters.len()).for_each(|cluster| self.check_burst(cluster));
        }
    }

    /// Looks at all pools of a server.
    pub(super) fn check_burst(&mut self, cluster: usize) {
        if self.may_be_held_back(cluster) {
            return;
        }
        let waiting = self.who_waits_at(cluster);
        for (pool, waits) in waiting.into_iter().enumerate() {
            if waits >= SOME {
                self.check_pool(cluster, pool, waits);
            }
        }
    }

    /// Whether a limit may keep pgweir from one more attempt to connect to a server, whatever pool
    /// it is for, or whether those who wait may wait for something else.
    fn may_be_held_back(&mut self, cluster: usize) -> bool {
        if self.topology.pipelines() || self.site.shut_down {
            // Several may share one connection.
            return true;
        }
        // Whatever else holds pgweir back now.
        self.note_tight(cluster);
        let now = self.now();
        let limited = self.site.rules.least(now, |rules| {
            let limits = &rules.limits;
            limits.server.or(limits.database).or(limits.user).or(rules.instances)
        });
        if limited.is_some() {
            return true;
        }
        // A worker hears at its next look what another one leaves.
        let then = if self.process.workers() > 1 { now.saturating_sub(HEARD_US) } else { now };
        self.clusters[cluster].tight_at.is_some_and(|at| at >= then)
    }

    /// Notes if as many attempts to connect to a server are under way as may be: that may be over
    /// before anybody looks, and before it is heard.
    pub(super) fn note_tight(&mut self, cluster: usize) {
        let now = self.now();
        let most = self.site.rules.least(now, |rules| Some(rules.limits.parallelism));
        let opening = self.attempts_at(cluster) + self.unused_at(cluster);
        if most.is_none_or(|most| opening >= most) {
            self.clusters[cluster].tight_at = Some(now);
        }
    }

    /// Connections to a server that nobody has had yet: for pgweir they may still be in the making.
    fn unused_at(&mut self, cluster: usize) -> u64 {
        let is_unused = |wire: &Wire| match &wire.outside {
            Outside::Backend(process) => process.cluster == cluster && process.is_unused(),
            // It has come to its end, which pgweir may not have heard.
            Outside::Gone => true,
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) => false,
        };
        self.count_open(is_unused)
    }

    /// Connections to servers like that whose end pgweir has not seen.
    fn count_open(&mut self, is_like: impl Fn(&Wire) -> bool) -> u64 {
        let mut count = 0;
        for number in 0..self.wires.len() {
            let wire = &self.wires[number];
            count += u64::from(wire.is_server() && is_like(wire) && self.is_open(WireId(number)));
        }
        count
    }

    /// Clients of each pool of a server whose login or unit pgweir has read a while ago, and that
    /// wait for a server.
    fn who_waits_at(&mut self, cluster: usize) -> Vec<u64> {
        let then = self.now().saturating_sub(TURN_US);
        let mut waiting = vec![0; self.topology.pools.len()];
        for number in 0..self.wires.len() {
            let wire = &self.wires[number];
            let (Outside::Client(client), Some(guest)) = (&wire.outside, &wire.guest) else {
                continue;
            };
            let Some(pool) = guest.pool else { continue };
            if guest.contact.read_at < then
                && !guest.is_before_login()
                && client.lacks_server(&self.site.ledger)
                && wire.pipes[0].borrow().unread() == 0
                && self.site.rules.clusters(self.now(), client.draft()).all(|its| its == cluster)
                && !client.has_lacked_pool(&self.site)
                && !client.may_have_waited(&self.site)
                && self.is_attended(WireId(number))
            {
                waiting[pool] += 1;
            }
        }
        waiting
    }

    fn check_pool(&mut self, cluster: usize, pool: usize, waits: u64) {
        let (home, draft) = (self.topology.pools[pool].home(), self.topology.pools[pool].draft);
        let size = self.site.rules.least(self.now(), |rules| Some(rules.pools[draft].size));
        let most = size.unwrap_or(0).min(waits);
        let there = self.attempts_at(cluster) + self.connections_of(cluster, &home);
        if there >= most || self.has_failed(&home) {
            return;
        }
        // Who has left the queue may still look as if it waited.
        let waits = self.queue_of(&home);
        if there < most.min(waits) {
            let text = format!("{waits} clients of {home:?} wait for {there} servers, of {size:?}");
            self.site.ledger.fail(Invariant::ColdBurst, text);
        }
    }

    /// Connections that are a pool's, or may be: whose some are is not said yet.
    fn connections_of(&mut self, cluster: usize, home: &Home) -> u64 {
        let may_be = |wire: &Wire| match &wire.outside {
            Outside::Backend(process) => match &process.home {
                Some(its) => its == home,
                None => process.cluster == cluster,
            },
            Outside::Gone => true,
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) => false,
        };
        self.count_open(may_be)
    }

    /// Whether attempts for a pool may be put off, or made one at a time: one has failed, and none
    /// that was begun since has brought a server that somebody has had.
    fn has_failed(&self, home: &Home) -> bool {
        let Some(failed_at) = self.lost_at(home) else { return false };
        !self.wires.iter().any(|wire| match &wire.outside {
            Outside::Backend(process) => {
                let is_its = process.home.as_ref() == Some(home) && !process.is_unused();
                is_its && wire.asked_at > failed_at
            }
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => false,
        })
    }

    /// Clients that pgweir has in the queue of a pool.
    fn queue_of(&self, home: &Home) -> u64 {
        let Some(snapshot) = self.process.snapshot(Time(self.now())) else { return 0 };
        let waits = |its: &&ClientView| {
            let names = its.database == home.database && its.user == home.user;
            names && its.state == ClientState::Waiting
        };
        snapshot.clients.iter().filter(waits).count() as u64
    }
}

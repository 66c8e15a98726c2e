//! The clients of a pool are served in the order in which they have asked.
//!
//! It shows when a server process has a message of another client than before. That one has asked
//! when it sent what it is now served with, at the earliest, if it was not lent this server before:
//! somebody else had it since the client heard its last reply. Nobody may be left in the queue then
//! whose unit pgweir had read before that.
//!
//! Who has left the queue may still look as if it waited: a server is brought to its settings, or
//! its unit is under way. Of that nothing is to be seen outside, so pgweir is asked, as by its
//! console. And whoever loses such a server is back in the queue, in its old place, when pgweir
//! says that it has lost one. A pool that was taken out of the configuration has a queue of its own
//! for those who were there, beside that of the pool which came in its place.
//!
//! Where servers are shared some wait for a place, and others for a server alone, in one queue. Who
//! waits for one alone is seen where it can be nothing else: a block shares no server.

use pgweir_engine::{ClientState, Time};

use super::World;
use super::wires::{Outside, Wire};
use crate::client::Client;
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::postgres::Lease;
use crate::session::Home;

/// By then whoever has asked, or has lost a server, is in the queue: at the end of a turn at most.
pub(super) const TURN_US: u64 = 1_000;

impl World {
    /// pgweir says that a pool, by its name, has lost a server or was not let in.
    pub(super) fn note_server_lost(&mut self, pool: String) {
        self.lost_at.insert(pool, self.now());
    }

    /// A server process has ended, or pgweir has seen that. One that was started as a client had
    /// asked for makes way for whoever is at the head of the queue, if need be, and who is that one
    /// is out of the queue until then: back in its old place if it gets no server of its own.
    pub(super) fn note_made_way(&mut self, wire: WireId) {
        if let Outside::Backend(process) = &self.wires[wire.0].outside
            && process.is_born()
            && let Some(home) = process.home.clone()
        {
            self.made_way_at.insert(home, self.now());
        }
    }

    /// A server process works for another client than before.
    pub(super) fn check_order(&mut self, wire: WireId, lease: Lease) {
        let Outside::Backend(process) = &self.wires[wire.0].outside else { return };
        let Some(home) = process.home.clone() else { return };
        // A statement of pgweir's own may be ended by statement_timeout: then its client waits for
        // another server, before those in the queue.
        if self.topology.limits_statements() || self.was_lost(&home, lease.after) {
            return;
        }
        // Where servers are shared, some wait for another kind of place, or have one.
        let shares = self.may_share(&home);
        if shares && process.is_braked() {
            return;
        }
        // A server that was started for somebody serves nobody else, who waits for another.
        let is_like_others =
            |its: &&Client| !its.has_lacked_pool(&self.site) && !its.is_born() && !its.replicates();
        let client = self.client(lease.client).filter(is_like_others);
        let Some(asked_at) = client.and_then(|client| client.asked_for_server(lease.after)) else {
            return;
        };
        let mut before = self.in_line(&home, asked_at.saturating_sub(TURN_US), shares);
        before.retain(|(number, _)| !self.may_have_held(*number, lease.after));
        if let Some((number, read_at)) = self.first_in_queue(before) {
            let client = lease.client;
            let text = format!(
                "c{client}, which asked at {asked_at}, was served before c{number}, whose unit was \
                 read at {read_at}"
            );
            self.site.ledger.fail(Invariant::FirstComeFirstServed, text);
        }
    }

    /// Whether a client may have been out of the queue until after then, since its last server was
    /// asked something behind a unit: what it has sent since waits for the answer. It is in the
    /// queue, in the place of when it asked, once that server has gone without it.
    fn may_have_held(&self, client: u32, then: u64) -> bool {
        let is_last = |wire: &Wire| match &wire.outside {
            Outside::Backend(process) => process.last_client() == Some(client),
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => false,
        };
        self.wires.iter().any(is_last)
            || self.parted_at.get(&client).is_some_and(|at| then <= at + TURN_US)
    }

    /// Whether a pool has lost a server since then, or just before, or one has made way, or a
    /// reload may have given one up that was being made for somebody: who asks anew does so when
    /// the turn ends.
    fn was_lost(&self, home: &Home, then: u64) -> bool {
        let lost = [self.lost_at(home), self.made_way_at.get(home).copied(), self.reloaded_at];
        lost.into_iter().flatten().any(|at| then <= at + TURN_US)
    }

    /// When pgweir last said of a pool that it has lost a server or was not let in.
    pub(super) fn lost_at(&self, home: &Home) -> Option<u64> {
        self.lost_at.get(&format!("{}/{}", home.database, home.user)).copied()
    }

    /// Whether the servers of a pool are shared, or were.
    fn may_share(&self, home: &Home) -> bool {
        let pool = self.topology.pools.iter().find(|pool| pool.home() == *home);
        let shares =
            |draft: usize| self.site.rules.all().any(|rules| rules.pools[draft].shared.is_some());
        pool.is_none_or(|pool| shares(pool.draft))
    }

    /// Clients that wait for a server of a pool and were read before then, and when. `alone`: it
    /// has to be one that they have alone.
    fn in_line(&mut self, home: &Home, then: u64, alone: bool) -> Vec<(u32, u64)> {
        let mut line = Vec::new();
        for number in 0..self.wires.len() {
            // Who was let go, and has not heard it yet, may have left its number to another one.
            if !self.is_attended(WireId(number)) {
                continue;
            }
            let wire = &self.wires[number];
            let (Outside::Client(client), Some(guest)) = (&wire.outside, &wire.guest) else {
                continue;
            };
            let read_at = guest.contact.read_at;
            let all_read = wire.pipes[0].borrow().unread() == 0;
            if read_at < then
                && all_read
                && self.home_of_guest(number).as_ref() == Some(home)
                && client.waits_in_line(&self.site.ledger)
                && (!alone || client.begins_block())
                // It is out of the queue, and back, while a server makes way for one of its own.
                && !client.is_born()
                && !client.replicates()
                && !client.has_lacked_pool(&self.site)
                // It may have been refused by now, and asks with what it has sent behind that.
                && !client.may_have_waited(&self.site)
            {
                line.push((client.number, read_at));
            }
        }
        line
    }

    /// One of these that pgweir has in a queue.
    fn first_in_queue(&self, clients: Vec<(u32, u64)>) -> Option<(u32, u64)> {
        if clients.is_empty() {
            return None;
        }
        let snapshot = self.process.snapshot(Time(self.now()))?;
        let queue = snapshot.clients.iter().filter(|its| its.state == ClientState::Waiting);
        let queue: Vec<i32> = queue.map(|its| its.id).collect();
        let is_in_queue = |number| {
            let id = self.client(number).and_then(Client::process_id);
            id.is_some_and(|id| queue.contains(&id))
        };
        clients.into_iter().find(|(number, _)| is_in_queue(*number))
    }

    pub(super) fn client(&self, number: u32) -> Option<&Client> {
        self.wires.iter().find_map(|wire| match &wire.outside {
            Outside::Client(client) if client.number == number => Some(&**client),
            Outside::Admin(_)
            | Outside::Backend(_)
            | Outside::Canceller(_)
            | Outside::Client(_)
            | Outside::Gone => None,
        })
    }
}

use super::wires::Outside;
use super::{Occasion, UNANSWERED_US, World};
use crate::client::Wish;
use crate::diet::Sitting;
use crate::network::WireId;
use crate::postgres::{Backend, Outcome};
use crate::rows::Row;
use crate::trace::Who;

/// What is long to stand still, when a server is asked for.
const LONG_US: u64 = 2_000_000;

impl World {
    pub(super) fn step_outside(&mut self, wire: WireId) {
        let now = self.now();
        let contact = self.contact(wire);
        let its = &mut self.wires[wire.0];
        if its.wake_at.is_none_or(|at| at > now) {
            return;
        }
        its.wake_at = None;
        let mut outside = std::mem::replace(&mut its.outside, Outside::Gone);
        let mut over = false;
        match &mut outside {
            Outside::Backend(process) => {
                let patient = process.thaws(now, LONG_US);
                let health = self.clusters[process.cluster].health;
                let outcome = process.step(&mut self.site, health);
                let room = process.room();
                over = process.is_gone();
                if let Some(client) = process.last_client().filter(|_| over) {
                    self.parted_at.insert(client, now);
                }
                let cluster = process.cluster;
                self.wires[wire.0].outside = outside;
                if let Some(client) = patient {
                    self.note_still(wire, client);
                }
                if outcome.says_room || outcome.has_said_room.is_some() {
                    self.note_room(wire, room, cluster, outcome.has_said_room);
                }
                self.after_backend(wire, cluster, outcome);
                if over {
                    self.note_made_way(wire);
                }
            }
            Outside::Admin(admin) => {
                let stepped = admin.step(&mut self.site);
                over = stepped.over;
                self.wires[wire.0].outside = outside;
                if let Some(at) = stepped.wake_at {
                    self.wake_outside(wire, at);
                }
                self.seats_taken -= usize::from(over);
            }
            Outside::Canceller(canceller) => {
                over = canceller.step();
                let request = canceller.request_over();
                self.wires[wire.0].outside = outside;
                request.into_iter().for_each(|request| self.request_over(request));
            }
            Outside::Client(client) => {
                let quiet = client.is_quiet();
                let wish = client.step(&mut self.site, contact);
                over = client.is_over();
                if client.has_left() {
                    self.site.ledger.leaves(client.number, quiet);
                }
                let waited = client.may_wait_since(&self.site.ledger);
                self.wires[wire.0].left = waited.filter(|_| over).map(|since| (now, since));
                if client.vanished {
                    let at = now + self.wires[wire.0].dice.magnitude(UNANSWERED_US);
                    self.schedule(at, Occasion::Break(wire));
                }
                let sitting = client.sitting;
                self.wires[wire.0].outside = outside;
                self.after_client(wire, &wish);
                if over {
                    self.next_turn(sitting);
                }
            }
            Outside::Gone => {}
        }
        if over {
            self.wires[wire.0].outside = Outside::Gone;
        }
    }

    /// A server process that has stood still goes on with a statement of this client's.
    fn note_still(&mut self, wire: WireId, client: u32) {
        let rules = &self.site.rules;
        let limited = rules.least(0, |rules| rules.times.statement.or(rules.times.transaction));
        let left = self.site.ledger.has_left(client);
        if left && limited.is_none() && self.is_attended(wire) {
            self.site.ledger.reach(Row::LeftStill);
        }
    }

    /// What was sent to somebody who has vanished was not answered for too long.
    pub(super) fn break_off(&mut self, wire: WireId) {
        self.site.trace.note(Who('w', wire.0), || "is not answered any more");
        self.wires[wire.0].pipes.iter().for_each(|pipe| pipe.borrow_mut().break_off());
        if self.wires[wire.0].guest.is_none() {
            self.site.ledger.find_out();
        }
        self.put(wire, true);
    }

    /// A seat is free, for whoever comes next.
    pub(super) fn next_turn(&mut self, last: Sitting) {
        let pause = self.seats[last.seat as usize].magnitude(1_000_000);
        let next = Sitting { turn: last.turn + 1, ..last };
        if u64::from(next.turn) < self.topology.turns {
            self.schedule(self.now() + pause, Occasion::Arrive(next));
        } else {
            self.seats_taken -= 1;
        }
    }

    fn after_client(&mut self, wire: WireId, wish: &Wish) {
        // It may read this after pgweir has said more, and the last.
        if wish.greeted && self.is_attended(wire) {
            self.check_clients(wire);
            self.check_number(wire);
            if let Some(home) = self.home_of_guest(wire.0) {
                self.check_worker(wire, home);
            }
        }
        if let Some((request, key)) = &wish.cancel {
            self.send_cancel(wire, *request, key);
        }
        if let Some(at) = wish.wake_at {
            self.wake_outside(wire, at);
        }
    }

    fn after_backend(&mut self, wire: WireId, cluster: usize, outcome: Outcome) {
        if let Some(at) = outcome.wake_at {
            self.wake_outside(wire, at);
        }
        if let Some(key) = &outcome.cancels {
            self.site.trace.note(Who('b', wire.0), || format!("cancels {}", key.process_id));
            self.each_backend(cluster, |process| process.cancel(key));
        }
        if let Outside::Backend(process) = &self.wires[wire.0].outside
            && process.listens()
            && let Some(home) = &process.home
        {
            self.listened.insert(home.clone());
        }
        if outcome.introduced {
            self.check_shares(wire);
        }
        if outcome.full {
            self.note_full(wire);
        }
        for lease in outcome.leases {
            self.check_place(wire, lease.client);
            self.check_order(wire, lease);
        }
        if let Some(client) = outcome.served {
            self.check_place(wire, client);
        }
        if let Some(doing) = &outcome.died {
            self.note_loss(wire, doing);
        }
        if let Some((doing, until)) = &outcome.balks {
            self.note_still_until(cluster, doing, *until);
        }
        let now = self.now();
        for announcement in &outcome.notifies {
            let (database, said) = announcement.parts();
            self.site.ledger.notices.announce(cluster, database, said, now);
            self.each_backend(cluster, |process| process.notified(announcement));
        }
        if outcome.unlocks {
            // Whoever waits looks again.
            self.each_backend(cluster, |_| {});
        }
    }

    /// Does something to every process of a server, and lets it go on from there.
    pub(super) fn each_backend(&mut self, cluster: usize, mut act: impl FnMut(&mut Backend)) {
        let now = self.now();
        for index in 0..self.wires.len() {
            if let Outside::Backend(process) = &mut self.wires[index].outside
                && process.cluster == cluster
            {
                act(process);
                self.wake_outside(WireId(index), now);
            }
        }
    }
}

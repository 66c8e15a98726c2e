use crate::client::Wish;
use crate::network::WireId;
use crate::postgres::{Backend, Outcome};

use super::wires::Outside;
use super::{Occasion, Who, World};

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
                let health = self.clusters[process.cluster].health;
                let outcome = process.step(&mut self.site, health);
                over = process.is_gone();
                let cluster = process.cluster;
                self.wires[wire.0].outside = outside;
                self.after_backend(wire, cluster, outcome);
            }
            Outside::Canceller(canceller) => {
                over = canceller.step();
                self.wires[wire.0].outside = outside;
            }
            Outside::Client { client, turns_left } => {
                let quiet = client.is_quiet();
                let wish = client.step(&mut self.site, contact);
                over = client.is_over();
                if client.has_left() {
                    self.site.ledger.leaves(client.number, quiet);
                }
                let turns_left = *turns_left;
                self.wires[wire.0].outside = outside;
                self.after_client(wire, &wish);
                if over {
                    self.next_turn(turns_left);
                }
            }
            Outside::Gone => {}
        }
        if over {
            self.wires[wire.0].outside = Outside::Gone;
        }
    }

    fn next_turn(&mut self, turns_left: u64) {
        match turns_left.checked_sub(1) {
            Some(turns_left) => {
                let at = self.now() + self.dice.magnitude(1_000_000);
                self.schedule(at, Occasion::Arrive { turns_left });
            }
            None => self.seats_taken -= 1,
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
        if let Some(key) = &wish.cancel {
            self.send_cancel(key);
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
            self.site.trace.note(Who('b', wire), || format!("cancels {}", key.process_id));
            self.each_backend(cluster, |process| process.cancel(key));
        }
        if outcome.introduced {
            self.check_shares(wire);
        }
        if outcome.full {
            self.note_full(wire);
        }
        if let Some(doing) = &outcome.died {
            self.note_loss(wire, doing);
        }
        for tag in outcome.notifies {
            self.each_backend(cluster, |process| process.notified(tag));
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

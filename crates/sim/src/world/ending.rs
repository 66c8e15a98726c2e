//! How pgweir itself ends, in some simulations.

use super::mail::MAIL_US;
use super::{BUSY_US, Occasion, World};
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::random::{Dice, Part};
use crate::topology::Ending;

/// How long clients that were told that this is the end may take to read it, a little more than
/// the driver gives them. A worker may hear of it late, and send a client to another until then.
const LINGER_US: u64 = 10_000_000 + 2 * MAIL_US;

impl World {
    pub(super) fn schedule_end(&mut self) {
        let at = Dice::of(self.seed, Part::Ending, 0).below(BUSY_US);
        match self.topology.ending {
            Ending::None => {}
            Ending::Drain { bound } => self.schedule(at, Occasion::Drain(bound)),
            Ending::Now => self.schedule(at, Occasion::ShutDown),
        }
    }

    pub(super) fn drain(&mut self, bound: Option<u64>) {
        self.site.trace.note("world", || "pgweir asks its clients to leave");
        self.site.draining = true;
        let workers = self.process.drain();
        self.post(workers);
        if let Some(bound) = bound {
            self.schedule(self.now() + bound, Occasion::ShutDown);
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.site.trace.note("world", || "pgweir tells its clients that this is the end");
        self.site.draining = true;
        self.site.shut_down = true;
        let workers = self.process.shut_down();
        self.post(workers);
        let at = self.now() + LINGER_US + self.site.slack_us();
        self.schedule(at, Occasion::AllGone(self.wires.len()));
    }

    /// Whoever was there at the end, on one of the first `wires`, was told or cut off; or reads on.
    pub(super) fn check_all_gone(&mut self, wires: usize) {
        let open = (0..wires).map(WireId).filter(|wire| self.wires[wire.0].guest.is_some());
        let open: Vec<_> = open.collect();
        for wire in open {
            if !self.is_open(wire) {
                continue;
            }
            let looks_again = self.contact(wire).wrote_at + LINGER_US + self.site.slack_us();
            if looks_again <= self.now() {
                let text = format!("connection {} outlasts the end of pgweir", wire.0);
                return self.site.ledger.fail(Invariant::AllEnds, text);
            }
            self.schedule(looks_again, Occasion::AllGone(wire.0 + 1));
        }
    }
}

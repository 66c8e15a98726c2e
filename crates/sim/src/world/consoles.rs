//! Clients of the console, and what answers them.

use pgweir_engine::ClientId;

use super::wires::Outside;
use super::{BUSY_US, Occasion, World};
use crate::admin::{Admin, echo};
use crate::diet::Item;
use crate::random::{Dice, Part};
use crate::trace::Who;

/// How many there are at most, in some simulations.
const MOST: u64 = 3;

impl World {
    pub(super) fn schedule_admins(&mut self) {
        for number in 0..self.admins() {
            let at = Dice::of(self.seed, Part::Admin, u64::from(number)).below(BUSY_US);
            if !self.site.diet.lacks(Item::Admin(number)) {
                self.seats_taken += 1;
                self.schedule(at, Occasion::Admit(number));
            }
        }
    }

    /// How many clients of the console there are.
    pub(super) fn admins(&self) -> u32 {
        let mut dice = Dice::of(self.seed, Part::Admin, MOST);
        if dice.chance(0.25) { dice.between(1..=MOST) as u32 } else { 0 }
    }

    /// A client of the console comes.
    pub(super) fn admit(&mut self, number: u32) {
        let mut dice = Dice::of(self.seed, Part::Admin, MOST + 1 + u64::from(number));
        let (of_wire, own) = (dice.fork(), dice.fork());
        let wire = self.wires.len();
        self.site
            .trace
            .note(Who('a', number as usize), || format!("comes to the console on w{wire}"));
        self.receive(of_wire, Admin::login_bytes(), |world, stream| {
            Outside::Admin(Box::new(Admin::new(number, stream, own, &world.site)))
        });
    }

    /// A worker has a command carried out, and will be told of it.
    pub(super) fn carry_out(&mut self, worker: usize, client: ClientId, text: &[u8]) {
        // The same whatever others ask: no two texts are alike.
        let number = text
            .iter()
            .fold(0, |number: u64, byte| number.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let reply = echo(text, &mut Dice::of(self.seed, Part::Console, number % (1 << 48)));
        let workers = self.process.tell_console(worker, client, &reply);
        self.post(workers);
    }
}

//! Who loses a server, or gets none, and is not to notice: the rows of docs/failures.md that end
//! with "nothing". Whether that is so the client will see.

use pgweir_config::PoolMode;

use super::World;
use super::wires::Outside;
use crate::client::Struck;
use crate::network::WireId;
use crate::postgres::Doing;
use crate::session::Home;

impl World {
    /// A server process is gone.
    pub(super) fn note_loss(&mut self, wire: WireId, doing: &Doing) {
        self.note_strike(doing, self.now());
        let Some(home) = &doing.home else { return };
        let owners = self.owners(wire, home);
        for number in self.clients_of(home) {
            let all_read = self.wires[number].pipes[0].borrow().unread() == 0;
            let Outside::Client(client) = &mut self.wires[number].outside else { continue };
            let waits = all_read && client.waits(&self.site.ledger);
            let others_are_busy =
                owners.iter().all(|owner| owner.is_some_and(|owner| owner != client.number));
            let struck = if doing.owner == Some(client.number) {
                client.is_idle_in_block().then_some(Struck::InBlock)
            } else if doing.prepared && waits {
                Some(Struck::Prepared)
            } else if doing.clean && client.is_quiet() {
                Some(Struck::Idle)
            } else if doing.owner.is_some() && waits && others_are_busy {
                Some(Struck::Waiting)
            } else {
                None
            };
            client.struck = struck.or(client.struck);
        }
    }

    /// A server process is gone, or stands still until then. Who had a transaction there may find
    /// it lost; what is sent there is not begun.
    pub(super) fn note_strike(&mut self, doing: &Doing, until: u64) {
        if let Some(home) = &doing.home {
            let struck = self.site.ledger.struck.entry(home.clone()).or_default();
            *struck = until.max(*struck);
        }
        for wire in &mut self.wires {
            if let Outside::Client(client) = &mut wire.outside
                && doing.owner == Some(client.number)
            {
                client.bereaved = true;
            }
        }
    }

    /// Since when a server that pgweir has for a client has had the transaction that is open there,
    /// if one that the client had was struck.
    pub(super) fn served_since(&mut self, wire: WireId) -> Option<u64> {
        let Outside::Client(client) = &self.wires[wire.0].outside else { return None };
        let number = Some(client.number).filter(|_| client.bereaved)?;
        let serves = |wire: &super::Wire| match &wire.outside {
            Outside::Backend(process) => process.has_transaction_of(number),
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => None,
        };
        let wires = self.wires.iter().enumerate();
        let (server, since) = wires.filter_map(|(at, wire)| Some((at, serves(wire)?))).next()?;
        self.is_attended(WireId(server)).then_some(since)
    }

    /// A login was refused for want of room.
    pub(super) fn note_full(&mut self, wire: WireId) {
        let Outside::Backend(process) = &self.wires[wire.0].outside else { return };
        let Some(home) = process.home.clone() else { return };
        for number in self.clients_of(&home) {
            if let Outside::Client(client) = &mut self.wires[number].outside
                && client.waits(&self.site.ledger)
            {
                client.struck = Some(Struck::Full);
            }
        }
    }

    /// The connections of a pool's clients, if their servers do not stay with them.
    fn clients_of(&self, home: &Home) -> Vec<usize> {
        let of_pool = |number: &usize| {
            let its = &self.wires[*number];
            let guest = its.guest.as_ref().filter(|_| !its.replicates());
            let pool = guest.and_then(|guest| guest.pool).map(|pool| &self.topology.pools[pool]);
            pool.is_some_and(|pool| pool.home() == *home && pool.mode == PoolMode::Transaction)
        };
        (0..self.wires.len()).filter(of_pool).collect()
    }

    /// Whose transactions are open on a pool's servers, the one that is lost aside.
    fn owners(&self, lost: WireId, home: &Home) -> Vec<Option<u32>> {
        let others = self.wires.iter().enumerate().filter(|(number, _)| *number != lost.0);
        let owner = |(_, wire): (usize, &super::Wire)| match &wire.outside {
            Outside::Backend(process) if process.home.as_ref() == Some(home) => {
                Some(process.doing().owner)
            }
            Outside::Admin(_)
            | Outside::Backend(_)
            | Outside::Canceller(_)
            | Outside::Client(_)
            | Outside::Gone => None,
        };
        others.filter_map(owner).collect()
    }
}

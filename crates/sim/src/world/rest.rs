//! How a simulation ends: what may be left, and what is told if it does not end.

use pgweir_engine::{ServerActivity, Time};

use super::wires::Outside;
use super::{Wire, World};
use crate::invariants::Invariant;

impl World {
    /// What is in the way of the end.
    pub(super) fn stuck(&self) -> String {
        let clients = self.wires.iter().filter_map(|wire| match &wire.outside {
            Outside::Admin(admin) => Some(admin.status()),
            Outside::Client(client) => Some(client.status()),
            Outside::Backend(_) | Outside::Canceller(_) | Outside::Gone => None,
        });
        let clients: Vec<_> = clients.collect();
        let snapshot = self.process.snapshot(Time(self.now()));
        let views = snapshot.map(|snapshot| (snapshot.clients, snapshot.servers));
        format!(
            "not everything comes to an end, with {} letters unread:\n{}\n{views:#?}",
            self.process.unread(),
            clients.join("\n"),
        )
    }

    /// Nobody is there any more: only servers at rest may be left.
    pub(super) fn check_rest(&self) -> Result<(), String> {
        let process = &self.process;
        let snapshot = process.snapshot(Time(self.now())).ok_or("there is no worker")?;
        let busy = snapshot.servers.iter().find(|server| server.state != ServerActivity::Idle);
        let (open, servers) = (process.connections(), snapshot.servers.len());
        if process.clients() > 0 {
            Err(format!("{} clients are left: {:#?}", process.clients(), snapshot.clients))
        } else if process.unread() > 0 {
            Err(format!("{} letters are left", process.unread()))
        } else if let Some(server) = busy {
            Err(format!("a server is not at rest: {server:#?}"))
        } else if open != servers {
            Err(format!("{open} connections are open for {servers} servers"))
        } else if self.processes() != servers {
            Err(format!("{} server processes are left for {servers} servers", self.processes()))
        } else {
            Ok(())
        }
    }

    /// Nothing at all may be left.
    pub(super) fn check_empty(&self) -> Result<(), String> {
        match self.process.connections() + self.processes() {
            0 => Ok(()),
            left => Err(format!("{left} connections or server processes are left for ever")),
        }
    }

    /// Nobody may have been told for nothing that something was missed.
    pub(super) fn check_warned(&self) -> Result<(), String> {
        self.site.ledger.notices.warned_in_vain().map_or(Ok(()), |(client, at)| {
            let text = format!("c{client} was told at {at} that it may have missed something");
            Err(Invariant::OwnNotifications.broken(text))
        })
    }

    /// The connections that pgweir has open, as the network sees them.
    pub(super) fn open_wires(&mut self) -> String {
        let mut text = String::new();
        for (number, wire) in self.wires.iter().enumerate() {
            let Some(place) = wire.place else { continue };
            if let Some(interest) = self.process.interest(place) {
                text.push_str(&format!("{number} {place:?} {interest:?} {:?}\n", wire.pipes));
            }
        }
        text
    }

    pub(super) fn processes(&self) -> usize {
        let is_process = |wire: &&Wire| match &wire.outside {
            Outside::Backend(_) | Outside::Canceller(_) => true,
            Outside::Admin(_) | Outside::Client(_) | Outside::Gone => false,
        };
        self.wires.iter().filter(is_process).count()
    }
}

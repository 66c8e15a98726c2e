//! The end of the process, as its clients see it.

use std::time::Duration;

use crate::Engine;
use crate::action::ClientId;
use crate::client::{Client, Leg, Phase};
use crate::errors::TERMINATED;
use crate::marks::Mark;
use crate::time::Time;

/// Fewer clients than this are asked to leave all at once: they do not overrun whatever they
/// connect to next.
const CROWD: usize = 100;

/// The longest time over which idle clients are asked to leave.
const SPREAD_MAX: Duration = Duration::from_secs(5);

/// The DETAIL for a client that is cut off from what a server will not leave off.
const GOES_ON: &str = "What was under way may or may not have been committed.";

impl Engine {
    /// Asks every client to leave when its transaction is over, and takes no new ones. A crowd of
    /// idle ones is asked over a while, in no particular order. A console stays as long as there is
    /// somebody else to look at.
    pub fn drain(&mut self, now: Time) {
        if !self.draining {
            self.draining = true;
            self.spread_farewells(now);
        }
        let consoles = self.clients.iter().filter(|(_, client)| is_console(client)).count();
        let among_themselves = consoles == self.member.commons().clients.value();
        for id in self.clients.keys() {
            let stays = |client: &Client| match client.phase {
                Phase::Console => {
                    Mark::ConsoleStays.hit_if(!among_themselves);
                    !among_themselves
                }
                Phase::Startup
                | Phase::Login(_)
                | Phase::Welcome(_)
                | Phase::Cancelling
                | Phase::Ready(_) => now < client.stays_until,
            };
            if !self.clients.find(id).is_none_or(stays) {
                self.drain_client(now, id);
            }
        }
    }

    /// Tells every client that its connection ends now, whatever it does. PostgreSQL's backends say
    /// the same in a fast shutdown (`ProcessInterrupts`, postgres.c).
    pub fn shut_down(&mut self, now: Time) {
        self.draining = true;
        for id in self.clients.keys() {
            let is_session = |client: &Client| !matches!(client.phase, Phase::Cancelling);
            if self.clients.find(id).is_some_and(is_session) {
                Mark::ShutDown.hit();
                let server = self.clients[id].server();
                let goes_on = self.changes_beside_others(id)
                    || server.is_some_and(|server| {
                        self.may_be_committed(server, id) && !self.only_reads(server, id)
                    });
                Mark::GoesOnBehindShutDown.hit_if(goes_on);
                let report = TERMINATED.report(&[]);
                self.expel(now, id, if goes_on { report.detail(GOES_ON) } else { report });
            }
        }
    }

    /// Whether a client has sent what changes rows to a server that it shares.
    fn changes_beside_others(&self, id: ClientId) -> bool {
        let Leg::Pipelined(server) = self.clients[id].leg else { return false };
        let mut its = self.servers[server].pipeline.iter().filter(|unit| unit.client == Some(id));
        its.any(|unit| !unit.access.may_be_repeated())
    }

    /// Asks a client to leave, if it is between transactions.
    pub(crate) fn drain_client(&mut self, now: Time, id: ClientId) {
        if self.is_between_units(id) {
            Mark::Drained.hit();
            self.expel(now, id, TERMINATED.report(&[]));
        }
    }

    /// Says for each client until when it may stay while it is idle: a tenth of the time that there
    /// is, at most. Who is not logged in yet loses nothing.
    fn spread_farewells(&mut self, now: Time) {
        if self.member.commons().clients.value() < CROWD {
            return;
        }
        Mark::FarewellsSpread.hit();
        let spread = SPREAD_MAX.min(self.plan.shutdown_timeout / 10);
        for id in self.clients.keys() {
            let share = u32::from_be_bytes(self.random.bytes());
            let stay = spread.mul_f64(f64::from(share) / f64::from(u32::MAX));
            let client = &mut self.clients[id];
            if client.phase.is_greeted() {
                client.stays_until = now + stay;
            }
        }
    }
}

fn is_console(client: &Client) -> bool {
    matches!(client.phase, Phase::Console)
}

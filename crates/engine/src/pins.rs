//! Servers that stay with their clients: how many of a pool may, and for what.
//!
//! A statement that would keep its server is looked at before it is sent. Where it is not to be run
//! it is made to fail on the server, in whatever state that is, and the client is told our reason
//! in place of the server's: its transaction is then as failed as it looks, and what stands behind
//! the statement finds what it would find behind any other error.
//!
//! A server that is asked just now what is left may be free in a moment: whoever would be refused
//! waits for the answer.
//!
//! Not looked at is what shows only later: texts that come in pieces, what a reading of the
//! catalogue brings to light, settings that turn out to be too long to be kept. That is a pin
//! beyond the limit, since what is there cannot be taken back.

use std::fmt::Write;
use std::rc::Rc;

use pgweir_config::PoolMode;
use pgweir_sql::{Heard, PinReason, Pins};
use pgweir_wire::backend::{self, Report};

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::ask::Answer;
use crate::client::{Client, Leg};
use crate::errors::{PIN_REFUSED, PINS_FULL};
use crate::marks::Mark;
use crate::pool::{Pool, PoolId, PoolSpec};
use crate::prepared::Shape;
use crate::reply::Sink;
use crate::scan::kept;
use crate::sequences::Uses;
use crate::server::Server;

/// What a message is given for a text that cannot be run, in whatever state the server is.
pub(crate) const FAILS: &[u8] =
    b"SELECT CAST('pgweir refuses a statement that would keep this server' AS pg_catalog.int4)";

/// What the pins of a pool have come to since the start, by reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct PinCounts {
    begun: [u64; PinReason::ALL.len()],
    refused: [u64; PinReason::ALL.len()],
}

/// The pins of a pool for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinView {
    /// Why a server stays with its client, of [`pgweir_config::PIN_KINDS`].
    pub kind: &'static str,
    /// What becomes of a statement that leaves that.
    pub policy: PinPolicy,
    /// Servers that are kept for it, perhaps for others too.
    pub servers: usize,
    /// How often a client has begun to keep its server for it.
    pub begun: u64,
    /// How often a statement was not run because of it.
    pub refused: u64,
}

/// What becomes of a statement that would keep its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinPolicy {
    /// The server stays with its client.
    Pin,
    /// The statement is not run.
    Refuse,
    /// The server goes to others, and with it what is left there.
    Ignore,
}

/// Whether a message may be sent that would keep its server.
pub(crate) enum Verdict {
    Sent,
    /// It is made to fail, and this is why.
    Refused(Box<Report>),
    /// That is known when servers have answered: its client is woken then.
    Later,
}

impl PinPolicy {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pin => "pin",
            Self::Refuse => "refuse",
            Self::Ignore => "ignore",
        }
    }
}

impl Engine {
    /// From now on a client keeps its server for this.
    pub(crate) fn pin(&mut self, id: ClientId, pins: Pins) {
        let new = pins.difference(self.clients[id].pins);
        if new.is_empty() {
            return;
        }
        self.clients[id].pins = self.clients[id].pins.union(new);
        if let Some(server) = self.clients[id].server()
            && self.servers[server].may_be_kept()
        {
            count(&mut self.pools[self.servers[server].pool].pins.begun, new);
        }
    }

    /// What of that is left on a server for whoever comes next.
    pub(crate) fn without_ignored(&self, server: ServerId, pins: Pins) -> Pins {
        let server = &self.servers[server];
        match server.may_be_kept() {
            true => {
                let ignored = self.pools[server.pool].spec.pin_ignore;
                Mark::PinIgnored.hit_if(!pins.intersection(ignored).is_empty());
                pins.difference(ignored)
            }
            false => pins,
        }
    }

    /// Whether a text that was read may be run, by what it would keep its server for. `is_query`:
    /// it is a Query's, not that of a statement in a batch.
    pub(crate) fn judge_text(
        &mut self,
        id: ClientId,
        server: ServerId,
        heard: &Heard,
        text: &[u8],
        is_query: bool,
    ) -> Verdict {
        let may_name = self.names_prepared(server, heard);
        let its = &self.servers[server];
        let keeping = self.pools[its.pool].spec.keeping(its.mode);
        let mut pins = keeping.of_text(heard, text, its.encoding);
        let client = &self.clients[id];
        let is_open = client.open_slot.is_some();
        let removes = || is_query && !is_open && pgweir_sql::deallocated(text).is_some();
        if may_name && !client.names.is_empty() && !removes() {
            // It is shown what its client has prepared.
            pins = pins.union(PinReason::Prepared.into());
        }
        match self.judge_pins(id, server, pins) {
            Verdict::Sent => self.claim_sequences(id, server, Uses::of_text(heard.pins, text)),
            verdict @ (Verdict::Refused(_) | Verdict::Later) => verdict,
        }
    }

    /// Whether a message may be sent that would keep its server for this.
    pub(crate) fn judge_pins(&mut self, id: ClientId, server: ServerId, pins: Pins) -> Verdict {
        let its = &self.servers[server];
        let pins = self.without_ignored(server, pins);
        if pins.is_empty() || !its.may_be_kept() || its.replies.skips() {
            return Verdict::Sent;
        }
        let pool = its.pool;
        let spec = &self.pools[pool].spec;
        let refused = pins.intersection(spec.pin_refuse);
        let (refused, report) = if !refused.is_empty() {
            Mark::PinKindRefused.hit();
            (refused, PIN_REFUSED.report(&[&spec.name(), &refused]))
        } else {
            let pins = match self.is_listened_for(server) {
                true => pins.without(PinReason::Listen),
                false => pins,
            };
            let none = pins.is_empty() || !self.clients[id].pins.is_empty();
            let limit = spec.max_pinned.filter(|_| !none);
            let (servers, reasons) = limit.map(|_| self.holders(pool)).unwrap_or_default();
            if limit.is_none_or(|limit| servers < limit) {
                return Verdict::Sent;
            }
            if self.holders_are_asked(pool) {
                Mark::PinAwaitsAnswer.hit();
                self.pools[pool].await_pins.push(id);
                return Verdict::Later;
            }
            Mark::PinRefused.hit();
            (pins, full(spec, servers, &reasons, pins))
        };
        count(&mut self.pools[pool].pins.refused, refused);
        Verdict::Refused(Box::new(report))
    }

    /// Whether a server of a pool is being asked what keeps it.
    fn holders_are_asked(&self, pool: PoolId) -> bool {
        let of_pool = self.servers.iter().filter(|(_, server)| server.pool == pool);
        of_pool.into_iter().any(|(_, server)| matches!(server.answer, Some(Answer::State(_))))
    }

    /// What keeps a server of a pool may have become known: who waits for that goes on.
    pub(crate) fn wake_for_pins(&mut self, pool: PoolId) {
        let Some(pool) = self.pools.find_mut(pool) else { return };
        for client in std::mem::take(&mut pool.await_pins) {
            if self.clients.find(client).is_some_and(|its| its.holding) {
                Mark::PinsToldToHeld.hit();
                self.wake(client);
            }
        }
    }

    /// How many servers of a pool their clients keep, and for each reason how many.
    fn holders(&self, pool: PoolId) -> (usize, [usize; PinReason::ALL.len()]) {
        let mut reasons = [0; PinReason::ALL.len()];
        let mut servers = 0;
        let of_pool = self.servers.iter().filter(|(_, server)| server.pool == pool);
        for (id, server) in of_pool.filter(|(_, server)| server.may_be_kept()) {
            let client = server.client().and_then(|client| self.clients.find(client));
            let Some(client) = client.filter(|its| its.leg == Leg::Held(id)) else { continue };
            let pins = match self.is_listened_for(id) {
                true => client.pins.without(PinReason::Listen),
                false => client.pins,
            };
            servers += usize::from(!pins.is_empty());
            pins.iter().for_each(|reason| reasons[reason as usize] += 1);
        }
        (servers, reasons)
    }

    /// What keeps servers of a pool, and what has.
    pub(crate) fn pin_views(&self, id: PoolId, pool: &Pool) -> Vec<PinView> {
        if pool.spec.mode == PoolMode::Session {
            return Vec::new();
        }
        let (_, servers) = self.holders(id);
        let of_pool = pool.spec.keeping(pool.spec.mode);
        let view = |reason: PinReason| PinView {
            kind: reason.name(),
            policy: of_pool.policy(reason),
            servers: servers[reason as usize],
            begun: pool.pins.begun[reason as usize],
            refused: pool.pins.refused[reason as usize],
        };
        keeping().map(view).collect()
    }

    /// A message of a client's is about to be sent that is made to fail.
    pub(crate) fn note_refused(&mut self, id: ClientId, server: ServerId, refusal: Refusal) {
        let unit = self.clients[id].coming_slot();
        let refused = &mut self.servers[server].refused;
        // What stands behind the first that fails of a unit is passed over.
        if refused.iter().all(|(other, _)| *other != unit) {
            refused.push((unit, refusal));
        }
    }

    /// What the client is told in place of this error of its server's, if it was provoked.
    pub(crate) fn refused(&mut self, server: ServerId, sink: Sink) -> Option<Refusal> {
        let Sink::Refused(slot) = sink else { return None };
        let refused = &mut self.servers[server].refused;
        let at = refused.iter().position(|(unit, _)| *unit == slot)?;
        Some(refused.remove(at).1)
    }
}

/// What a client is told in place of an error of its server's that was provoked.
#[derive(Debug)]
pub(crate) struct Refusal {
    report: Box<Report>,
    /// The parameters of a statement that it has asked about, of which it is told before: as much
    /// is right, and PostgreSQL looks at the rows later (`exec_describe_statement_message`,
    /// postgres.c).
    described: Option<Rc<Shape>>,
}

impl Refusal {
    /// Of a statement whose rows are not what its client was told: this.
    pub(crate) fn of_rows(report: Box<Report>, told: Rc<Shape>) -> Self {
        Self { report, described: Some(told) }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(told) = &self.described {
            backend::parameter_description(out, told.parameters());
        }
        self.report.write(out);
    }
}

impl From<Box<Report>> for Refusal {
    fn from(report: Box<Report>) -> Self {
        Self { report, described: None }
    }
}

impl Server {
    /// Whether its client keeps it between transactions only for what it leaves there.
    fn may_be_kept(&self) -> bool {
        self.mode != PoolMode::Session && !self.dedicated
    }
}

impl Client {
    /// What running a statement leaves that it has prepared on its server for itself, settings
    /// aside: they are asked for when the server goes back.
    pub(crate) fn prepared_leaves(&self) -> Pins {
        kept(self.prepared).without(PinReason::Prepared).without(PinReason::Setting)
    }
}

/// The reasons that keep servers.
pub(crate) fn keeping() -> impl Iterator<Item = PinReason> {
    let keeps = |reason: &PinReason| {
        *reason == PinReason::Sequence || !kept(Pins::from(*reason)).is_empty()
    };
    PinReason::ALL.into_iter().filter(keeps)
}

/// The limit is reached.
fn full(spec: &PoolSpec, servers: usize, reasons: &[usize], wanted: Pins) -> Report {
    let mut detail = format!("{servers} of {} servers are kept:", spec.size);
    let mut separator = " ";
    for reason in PinReason::ALL {
        let count = reasons[reason as usize];
        if count > 0 {
            // Writing to a String does not fail.
            let _ = write!(detail, "{separator}{reason} {count}");
            separator = ", ";
        }
    }
    let _ = write!(detail, ". This statement would keep one more: {wanted}.");
    PINS_FULL.report(&[&spec.name()]).detail(detail)
}

fn count(counts: &mut [u64], pins: Pins) {
    pins.iter().for_each(|reason| counts[reason as usize] += 1);
}

#[cfg(test)]
mod tests;

//! Ends: of shared servers, and of clients whose units are on one.

use super::{InFlight, Outcome};
use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{Leg, UnnamedStatement};
use crate::errors::OUTCOME_UNKNOWN;
use crate::loss::unknown_outcome;
use crate::marks::Mark;
use crate::time::Time;
use crate::timers::HANGS;

impl Engine {
    /// A shared server that does not answer is given up: to statements of ours, after as long as a
    /// login may take.
    pub(crate) fn sweep_shared(&mut self, now: Time, id: ServerId) {
        let server = &self.servers[id];
        let spec = &self.pools[server.pool].spec;
        let ours = server.replies.answers_us() && now - server.changed > spec.connect_timeout;
        let too_long = spec.transaction_timeout.is_some_and(|limit| {
            !server.pipeline.is_empty() && now - server.transaction_since > limit
        });
        if ours || too_long {
            Mark::SharedInVain.hit();
            self.server_lost(now, id, "the server did not answer in time");
        } else if self.hangs(now, id) {
            Mark::SharedHangs.hit();
            self.server_lost(now, id, HANGS);
        }
    }
}

/// What is known of a unit on a server that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It was not begun.
    NotBegun,
    /// It did no more than to read, if it was.
    OnlyReads,
    /// Nobody knows.
    Unknown,
}

impl Engine {
    /// A shared server is lost. `in_order`: its stream has ended, so all that it has said has come.
    ///
    /// PostgreSQL sends a reply before it begins with the next unit. So where its stream has come
    /// to its end, only the unit at the head may have been begun, and not even that one if the
    /// server was idle for too long; of what was sent to a connection that is broken nothing is
    /// known. What only reads is known to do so as long as nobody changes the schema.
    pub(crate) fn shared_lost(&mut self, now: Time, id: ServerId, cause: &str) {
        self.cool(id);
        let server = &mut self.servers[id];
        let pool = server.pool;
        let in_order = server.says_farewell || server.ended;
        let idled_out = server.idled_out;
        let knows_names = self.pools[pool].knows_names();
        let units: Vec<InFlight> = server.pipeline.drain(..).collect();
        server.fresh = None;
        let granted: Vec<ClientId> = self.granted(id).collect();
        self.forget_server(now, id);
        for (place, unit) in units.into_iter().enumerate() {
            let fate = if in_order && (place > 0 || idled_out) {
                Fate::NotBegun
            } else if knows_names && unit.access.may_be_repeated() {
                Fate::OnlyReads
            } else {
                Fate::Unknown
            };
            self.shared_unit_lost(now, unit, fate, cause);
        }
        self.grant(now, pool);
        for client in granted {
            Mark::GrantLost.hit();
            // It asks again, in its own place.
            let its = &mut self.clients[client];
            its.leg = Leg::None;
            its.unit = None;
            if let Some(asked) = &mut its.asked {
                asked.held = true;
            }
            self.resume(client);
        }
    }

    /// A shared server has said what no unit brings about that may share one: the one at the head
    /// is not shared again for long.
    pub(crate) fn shared_contained(&mut self, now: Time, id: ServerId, cause: &str) {
        let server = &self.servers[id];
        if let Some(head) = server.pipeline.front() {
            Mark::Misbehaved.hit();
            self.pools[server.pool].repute.misbehaved(now, head.print);
        }
        self.lose(now, id, cause);
    }

    fn granted(&self, server: ServerId) -> impl Iterator<Item = ClientId> {
        let clients = self.clients.iter();
        clients.filter(move |(_, its)| its.leg == Leg::Granted(server)).map(|(id, _)| id)
    }

    fn shared_unit_lost(&mut self, now: Time, unit: InFlight, fate: Fate, cause: &str) {
        let Some(client) = unit.client else { return };
        self.discard(client, unit.held);
        self.let_go(unit.held);
        let its = &mut self.clients[client];
        its.slots.clear();
        its.quiet_since = now;
        let again = fate != Fate::Unknown || unit.outcome == Outcome::Overran;
        if again && unit.cancelled {
            Mark::SharedLostCancelled.hit();
            return self.unit_cancelled(now, client, &unit);
        }
        if again {
            Mark::SharedRunAgain.hit();
            return self.run_alone(client, unit.since, true);
        }
        Mark::SharedOutcomeUnknown.hit();
        // As everywhere: it may have been replaced.
        its.unnamed = UnnamedStatement::None;
        let report = OUTCOME_UNKNOWN.report(&[]).detail(unknown_outcome(cause));
        let to = Endpoint::Client(client);
        self.actions.inject(to, |out| {
            report.write(out);
            pgweir_wire::backend::ready_for_query(out, pgweir_wire::TransactionStatus::Idle);
        });
        self.unit_answered(now, client, unit.bytes);
    }

    /// A client is gone whose unit is on a shared server: its reply is for nobody.
    pub(crate) fn leave_shared(&mut self, id: ClientId, server: ServerId) {
        for unit in &mut self.servers[server].pipeline {
            if unit.client == Some(id) {
                Mark::SharerGone.hit();
                unit.client = None;
                self.member.commons().held.sub_many(std::mem::take(&mut unit.held));
            }
        }
    }

    /// Notes that a client has asked for the end of its unit on a shared server. Says whether it
    /// stands there alone, so that a cancel can hit nothing else.
    pub(crate) fn cancels_alone(&mut self, id: ClientId, server: ServerId) -> bool {
        let server = &mut self.servers[server];
        let alone = server.load() == 1 && !server.replies.is_ours();
        Mark::CancelledBesideOthers.hit_if(!alone);
        for unit in server.pipeline.iter_mut().filter(|unit| unit.client == Some(id)) {
            unit.cancelled = true;
            unit.may_be_hit |= alone;
        }
        alone
    }
}

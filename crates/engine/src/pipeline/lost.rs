//! Ends: of shared servers, and of clients whose units are on one.

use pgweir_wire::TransactionStatus;
use pgweir_wire::backend::{self, Report};

use super::InFlight;
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
        // What stands in front of a statement of ours may take its time.
        let since = server.changed.max(server.heard);
        // A query's reply is not kept back until the unit behind it is over.
        let sets = server.replaying.is_some() && server.replies.is_ours();
        let ours = sets || server.replies.answers_us();
        let ours = ours && now - since > spec.connect_timeout;
        let too_long = spec.transaction_timeout.is_some_and(|limit| {
            !server.pipeline.is_empty() && now - server.transaction_since > limit
        });
        if ours || too_long {
            Mark::SharedInVain.hit();
            self.server_lost(now, id, "the server did not answer in time");
        } else if self.hangs(now, id) {
            Mark::SharedHangs.hit();
            self.server_lost(now, id, HANGS);
        } else {
            self.reserve_to_go(now, id);
            self.cancel_last(now, id);
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
    /// A shared server is lost. `in_order`: it has said why, so all that it has said has come.
    ///
    /// PostgreSQL sends a reply before it begins with the next unit, but for those that are joined.
    /// So where it has said why it ends, only the unit at the head, and those joined to it, may
    /// have been begun, and not even these if the server was idle for too long. An end without a
    /// word says nothing: the kernel tells of a reset once, and to whoever writes, so that what is
    /// read then looks like an end; and what stands between, like a proxy, ends its connections
    /// when it is stopped, and PostgreSQL goes on with what it has read. What only reads is known
    /// to do so as long as nobody changes the schema.
    pub(crate) fn shared_lost(&mut self, now: Time, id: ServerId, cause: &str) {
        self.cool(id);
        let server = &mut self.servers[id];
        let pool = server.pool;
        let in_order = server.says_farewell;
        let idled_out = server.idled_out;
        let group = server.group();
        let units: Vec<InFlight> = server.pipeline.drain(..).collect();
        let only_read = units.iter().map(|unit| self.has_only_read(id, unit)).collect::<Vec<_>>();
        let granted: Vec<ClientId> = self.granted(id).collect();
        self.forget_server(now, id);
        for (place, (unit, only_reads)) in units.into_iter().zip(only_read).enumerate() {
            let fate = if in_order && (place >= group || idled_out) {
                Fate::NotBegun
            } else if only_reads {
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
        if let Some(head) = server.answering() {
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
        Mark::SharedLostUndone.hit_if(fate == Fate::Unknown && unit.undone);
        let again = fate != Fate::Unknown || unit.undone;
        if again && unit.cancelled {
            Mark::SharedLostCancelled.hit();
            return self.unit_cancelled(now, client, &unit);
        }
        if again {
            Mark::SharedRunAgain.hit();
            return self.run_alone(now, client, unit.since, true);
        }
        Mark::SharedOutcomeUnknown.hit();
        // As everywhere: it may have been replaced.
        its.unnamed = UnnamedStatement::None;
        let report = OUTCOME_UNKNOWN.report(&[]).detail(unknown_outcome(cause));
        self.answer_unit(now, client, unit.bytes, &report);
    }

    /// A unit that shares a server is answered by us.
    pub(super) fn answer_unit(
        &mut self,
        now: Time,
        client: ClientId,
        bytes: usize,
        report: &Report,
    ) {
        self.actions.inject(Endpoint::Client(client), |out| {
            report.write(out);
            backend::ready_for_query(out, TransactionStatus::Idle);
        });
        self.unit_answered(now, client, bytes);
    }

    /// Whether a unit on a shared server does no more than to read, and could be run again. Nothing
    /// is known of that once somebody changes what its names stand for.
    pub(super) fn has_only_read(&self, id: ServerId, unit: &InFlight) -> bool {
        unit.access.may_be_repeated() && self.still_hold(id, &unit.loud)
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

    /// The unit that a client has asked the end of is the last on a shared server: a cancel can hit
    /// nothing else now. The brake would end it, but for what a commit waits for.
    pub(super) fn cancel_last(&mut self, now: Time, id: ServerId) {
        let Some(server) = self.servers.find_mut(id) else { return };
        let is_last = server.has_one_unit();
        if let Some(unit) = server.pipeline.front_mut()
            && let Some(client) = unit.client
            && is_last
            && unit.cancelled
            && !unit.may_be_hit
        {
            Mark::CancelledAsLast.hit();
            unit.may_be_hit = true;
            self.cancel_on(now, id, Some(client), None);
        }
    }

    /// Notes that a client has asked for the end of its unit on a shared server. Says whether it
    /// stands there alone, so that a cancel can hit nothing else.
    pub(crate) fn cancels_alone(&mut self, id: ClientId, server: ServerId) -> bool {
        let server = &mut self.servers[server];
        let alone = server.has_one_unit();
        Mark::CancelledBesideOthers.hit_if(!alone);
        for unit in server.pipeline.iter_mut().filter(|unit| unit.client == Some(id)) {
            unit.cancelled = true;
            unit.may_be_hit |= alone;
        }
        alone
    }
}

//! What a shared server answers, and what becomes of it.

use std::ops::Range;
use std::time::Duration;

use pgweir_wire::backend::{ErrorFields, Tag};
use pgweir_wire::{SqlState, TransactionStatus};

use super::joined::Ran;
use super::{Access, BRAKE, InFlight, Outcome, REPLY_HELD_BYTES};
use crate::Engine;
use crate::action::{Action, ClientId, Endpoint, ServerId};
use crate::client::{Asked, Leg, UnnamedStatement};
use crate::errors::{CANCELED, REPLY_DROPPED};
use crate::marks::Mark;
use crate::reply::{Sink, Step};
use crate::server::ServerState;
use crate::time::Time;

/// PostgreSQL's words for what its statement_timeout has ended (`ProcessInterrupts`, postgres.c).
const TIMED_OUT: &[u8] = b"canceling statement due to statement timeout";

impl Engine {
    /// Whether a server is shared.
    pub(crate) fn is_pipelined(&self, id: ServerId) -> bool {
        matches!(self.servers[id].state, ServerState::Pipelined)
    }

    /// A piece of what a server says goes to its client, now or when the reply is over.
    pub(crate) fn hand_on(&mut self, id: ServerId, client: ClientId, range: Range<usize>) {
        let server = &mut self.servers[id];
        if !matches!(server.state, ServerState::Pipelined) {
            return self.actions.forward(Endpoint::Client(client), range);
        }
        let Some(unit) = server.answering_mut() else { return };
        match &mut unit.fresh {
            Some(fresh) if fresh.end == range.start => fresh.end = range.end,
            Some(_) => {
                Mark::HeldInParts.hit();
                self.hold_fresh(id);
                if let Some(unit) = self.servers[id].answering_mut() {
                    unit.fresh = Some(range);
                }
            }
            None => unit.fresh = Some(range),
        }
    }

    /// What was kept of the input that is read now is put where it outlives it.
    pub(crate) fn hold_fresh(&mut self, id: ServerId) {
        let Some(server) = self.servers.find(id) else { return };
        for place in 0..server.group() {
            self.hold_fresh_of(id, place);
        }
    }

    fn hold_fresh_of(&mut self, id: ServerId, place: usize) {
        let head = &mut self.servers[id].pipeline[place];
        let Some(fresh) = head.fresh.take() else { return };
        let Some(client) = head.client.filter(|_| head.outcome == Outcome::Answered) else {
            return;
        };
        let n = fresh.len();
        let budget = &self.member.commons().held;
        let most = match head.access {
            // It cannot be run again. It is not long: no rows come of it, and functions that raise
            // notices share no server. An error may be long, and says that nothing was done.
            Access::Write if !head.undone => usize::MAX,
            _ if head.held + n > REPLY_HELD_BYTES => 0,
            _ => self.plan.max_buffer_memory,
        };
        if budget.add_many(n, most) {
            head.held += n;
            self.actions.push(Action::Hold(client, fresh));
        } else {
            Mark::SharedReplyTooLong.hit_if(most == 0);
            Mark::NoRoomForReply.hit_if(most > 0);
            head.outcome = Outcome::TooLong;
            budget.sub_many(std::mem::take(&mut head.held));
            self.actions.push(Action::Discard(client));
        }
    }

    /// Nothing is kept of a reply any more.
    pub(crate) fn let_go(&self, held: usize) {
        self.member.commons().held.sub_many(held);
    }

    /// An ErrorResponse of a shared server.
    pub(crate) fn shared_error(
        &mut self,
        now: Time,
        id: ServerId,
        body: &[u8],
        range: Range<usize>,
        length: usize,
    ) -> Result<(), String> {
        let fields = ErrorFields::start(body);
        let (fatal, code) = (fields.is_fatal(), fields.code);
        let step = self.take_step(id, Tag::ErrorResponse)?;
        if fatal {
            Mark::SharedSaysFarewell.hit();
            let server = &mut self.servers[id];
            server.doomed = true;
            server.says_farewell = fields.is_of_postgres();
            Mark::FarewellOfAnother.hit_if(!server.says_farewell);
            server.idled_out = server.says_farewell && code == Some(SqlState::IDLE_SESSION);
            server.last_words = Some(String::from_utf8_lossy(fields.message).into());
        }
        let n = range.len();
        match step {
            Step::Failed {
                sink: sink @ (Sink::Client(_) | Sink::Converted(_)),
                effect,
                undone,
            } if !fatal => {
                self.settle(id, sink, effect);
                self.undo(id, undone);
                let in_doubt = code.is_some_and(SqlState::is_of_doubt);
                let server = &mut self.servers[id];
                if let Some(head) = server.answering_mut() {
                    head.undone = !in_doubt;
                }
                // No other timeout can be shorter here, so the words say it. In another language
                // than English the time does, since the unit was sent: how long it ran is not
                // known where what was answered before is read at once with this. Where a cancel
                // has gone out it counts as the cancel then.
                let by_brake = fields.message.starts_with(TIMED_OUT);
                if code == Some(SqlState::QUERY_CANCELED)
                    && let Some(head) = server.answering_mut()
                    && head.outcome != Outcome::Misset
                    && (by_brake || !head.may_be_hit && now - head.sent >= BRAKE / 2)
                {
                    Mark::SharedOverran.hit();
                    Mark::OverranByTime.hit_if(!by_brake);
                    head.outcome = Outcome::Overran;
                }
                self.derail(id, in_doubt);
                self.pass(id, true, range.start, n, length);
            }
            Step::Failed { sink, effect, undone } => {
                self.settle(id, sink, effect);
                self.undo(id, undone);
                let server = &mut self.servers[id];
                if !fatal {
                    Mark::SharedOwnFailed.hit();
                    let report = crate::relay::as_report(&fields);
                    server.own_error.get_or_insert_with(|| Box::new(report));
                }
                self.pass(id, false, range.start, n, length);
            }
            Step::Unasked if fatal => {
                Mark::SharedFarewellUnasked.hit();
                self.pass(id, false, range.start, n, length);
            }
            Step::Unasked => return Err("an error came when no reply was owed".to_owned()),
            Step::More { .. } | Step::Settled { .. } | Step::Ready { .. } => {
                return Err("an error was taken for a reply".to_owned());
            }
        }
        Ok(())
    }

    /// ReadyForQuery of a shared server: the unit at the head is over, or one of our own.
    pub(crate) fn shared_ready(
        &mut self,
        now: Time,
        id: ServerId,
        sink: Sink,
        status: TransactionStatus,
        range: Range<usize>,
    ) -> Result<(), String> {
        if status.in_block() {
            return Err("a unit that was shared has left a transaction open".to_owned());
        }
        if sink == Sink::Own {
            let server = &mut self.servers[id];
            server.unit_since = now;
            server.transaction_since = now;
            self.note_head(now, id);
            self.own_unit_over(now, id);
            return Ok(());
        }
        let server = &self.servers[id];
        let group = server.group();
        if group == 0 {
            return Err("ReadyForQuery came for no unit".to_owned());
        }
        let ran = self.ran(id, now - server.unit_since, group);
        self.note_joined(id, group);
        for _ in 0..group {
            self.shared_unit_over(now, id, ran, &range)?;
        }
        self.note_head(now, id);
        if self.servers[id].outdated.is_some() {
            // What stands behind these units may be our own, which hides it.
            self.refresh_welcomes(id);
        }
        self.goes_on(now, id);
        Ok(())
    }

    /// The unit at the head is over, which has run for so long. `range`: its ReadyForQuery.
    fn shared_unit_over(
        &mut self,
        now: Time,
        id: ServerId,
        ran: Ran,
        range: &Range<usize>,
    ) -> Result<(), String> {
        let head = self.servers[id].pipeline.front();
        if let Some((client, slot)) = head.and_then(|unit| Some((unit.client?, unit.slot))) {
            self.fill_slot(now, id, client, slot)?;
        }
        // No mark: whoever calls has counted them.
        let Some(mut unit) = self.servers[id].pipeline.pop_front() else { return Ok(()) };
        let fresh = unit.fresh.take();
        self.let_go(unit.held);
        let runs_again = match unit.outcome {
            Outcome::Answered => false,
            Outcome::Overran => !unit.cancelled,
            Outcome::TooLong | Outcome::Derailed | Outcome::Misset => {
                !unit.cancelled && (unit.undone || self.has_only_read(id, &unit))
            }
        };
        // What is run again is counted when it is over.
        if unit.client.is_some() && !runs_again {
            self.count_unit(now, id);
        }
        let server = &mut self.servers[id];
        server.unit_since = now;
        server.unit_waited = server.pipeline.front().is_some_and(|next| next.since < now);
        server.transaction_since = now;
        let repute = &mut self.pools[server.pool].repute;
        match unit.outcome {
            Outcome::Answered => repute.ran(now, unit.print, ran.of(repute.took(unit.print))),
            Outcome::Overran | Outcome::TooLong => repute.overran(now, unit.print),
            Outcome::Derailed | Outcome::Misset => {}
        }
        if let Some(client) = unit.client {
            let to = Endpoint::Client(client);
            match unit.outcome {
                Outcome::Answered => {
                    self.tell_sharer(client, id);
                    if unit.held > 0 {
                        self.actions.push(Action::Release(client));
                        self.clients[client].handed = unit.held;
                    }
                    fresh.into_iter().for_each(|fresh| self.actions.forward(to, fresh));
                    self.actions.forward(to, range.clone());
                    self.note_shared(id, unit.access, now - unit.since);
                    self.unit_answered(now, client, unit.bytes);
                }
                Outcome::TooLong | Outcome::Derailed | Outcome::Misset
                    if !unit.undone && !self.has_only_read(id, &unit) =>
                {
                    Mark::DerailedInDoubt.hit_if(unit.outcome == Outcome::Derailed);
                    Mark::TooLongInDoubt.hit_if(unit.outcome == Outcome::TooLong);
                    Mark::MissetInDoubt.hit_if(unit.outcome == Outcome::Misset);
                    self.discard(client, unit.held);
                    self.forget_unnamed(client, &unit);
                    self.answer_unit(now, client, unit.bytes, &REPLY_DROPPED.report(&[]));
                }
                Outcome::Overran | Outcome::TooLong | Outcome::Derailed | Outcome::Misset
                    if unit.cancelled =>
                {
                    Mark::OverranCancelled.hit();
                    self.discard(client, unit.held);
                    self.note_shared(id, unit.access, now - unit.since);
                    self.unit_cancelled(now, client, &unit);
                }
                Outcome::Overran | Outcome::TooLong | Outcome::Derailed | Outcome::Misset => {
                    self.discard(client, unit.held);
                    self.run_alone(now, client, unit.since, false);
                }
            }
        }
        Ok(())
    }

    /// A transaction is over that has shared a server, so long after its client had asked.
    fn note_shared(&mut self, id: ServerId, access: Access, took: Duration) {
        let pool = &mut self.pools[self.servers[id].pool];
        pool.stats.shared += 1;
        pool.climbs.of_mut(access).answered(took);
    }

    /// What stood in front of the unit that is at the head now is over, and of those joined to it.
    fn note_head(&mut self, now: Time, id: ServerId) {
        let server = &self.servers[id];
        if server.replies.is_ours() {
            return;
        }
        let delays = &mut self.pools[server.pool].stats.delays;
        for unit in server.pipeline.iter().take(server.group()) {
            delays.count(now - unit.sent);
        }
    }

    /// What was kept for a client is thrown away.
    pub(super) fn discard(&mut self, client: ClientId, held: usize) {
        if held > 0 {
            self.actions.push(Action::Discard(client));
        }
    }

    /// A unit that shared a server is answered.
    pub(super) fn unit_answered(&mut self, now: Time, id: ClientId, bytes: usize) {
        self.actions.push(Action::Consume(id, bytes));
        let client = &mut self.clients[id];
        let pool = client.pool();
        client.leg = Leg::None;
        client.scanned = 0;
        client.asked = None;
        if let Some(pool) = pool {
            self.pools[pool].stats.received += bytes as u64;
        }
        if self.draining || pool.is_some_and(|pool| self.pools[pool].removed) {
            // What it has sent already is served.
            Mark::DrainedBehindShared.hit();
            self.drain_client(now, id);
        }
        if self.clients.find(id).is_some_and(|client| client.holding) {
            self.wake(id);
        }
    }

    /// A unit that is not run again, for its client has asked for its end.
    pub(super) fn unit_cancelled(&mut self, now: Time, client: ClientId, unit: &InFlight) {
        self.forget_unnamed(client, unit);
        self.answer_unit(now, client, unit.bytes, &CANCELED.report(&[]));
    }

    /// A client hears nothing of the unnamed statement that took the place of the one before.
    fn forget_unnamed(&mut self, client: ClientId, unit: &InFlight) {
        if unit.ends_unnamed {
            self.clients[client].unnamed = UnnamedStatement::None;
        }
    }

    /// A unit is run again, on a server that it has alone. `lost`: its server was lost.
    pub(crate) fn run_alone(&mut self, now: Time, id: ClientId, since: Time, lost: bool) {
        Mark::RunAlone.hit();
        let client = &mut self.clients[id];
        client.leg = Leg::None;
        client.scanned = 0;
        client.alone = true;
        client.asked = Some(Asked { again: lost, waits_since: now, ..Asked::new(since, true) });
        self.wake(id);
    }
}

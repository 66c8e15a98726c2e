//! What a client hears when its server is lost; `docs/failures.md` is the table.
//!
//! A statement that was sent may have been carried out, whatever the client saw of it: closing a
//! connection stops nothing that a backend has read. So nothing is claimed that is not known. What
//! is known: an open transaction of which no COMMIT was sent is rolled back.

use pgweir_config::PoolMode;
use pgweir_sql::{chains, rolls_back};
use pgweir_wire::backend::{self, ErrorFields};
use pgweir_wire::frontend::{Bind, Parse, Tag};
use pgweir_wire::{HEADER_LEN, Header, Severity, SqlState};

use crate::Engine;
use crate::action::{Action, ClientId, Endpoint, ServerId};
use crate::again::Kept;
use crate::client::{Client, Fate, LostTransaction, Phase, UnitRest, UnnamedStatement};
use crate::errors::{CANCELED, CUT_OFF, OUTCOME_UNKNOWN, TRANSACTION_LOST, UNIT_LOST};
use crate::marks::Mark;
use crate::relay::words;
use crate::time::Time;
use crate::units::{self, begins_unit, until_nul};

/// Puts a server into a transaction that has failed, as the client's has. Whatever the client says
/// next is then answered by PostgreSQL itself.
const FAIL: &[u8] = b"BEGIN; \
    SELECT CAST('the transaction was lost with its server' AS pg_catalog.int4)";

/// The DETAIL for a client that asks for the like of a transaction that was lost.
pub(crate) const CHAIN_LOST: &str = "The transaction was lost with its server, and with it what it \
    was like: AND CHAIN cannot begin another one.";

/// What a client has lost with its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing: its unit was not sent.
    NotBegun,
    /// Nothing: no unit is under way, and no transaction.
    Nothing,
    /// Its transaction, while no unit was under way.
    Transaction,
    /// Its transaction, with a unit that did not commit it.
    UnitInTransaction,
    /// Its unit, which was sent and provably not begun.
    UnitNotBegun,
    /// Nothing but an answer: its unit only reads, and was run again before.
    UnitThatReads,
    /// Nothing: its unit only reads, or was not begun, and is run again.
    Again,
    /// Nobody knows whether its unit was carried out.
    Unit,
    /// The same, and what the session had on the server besides.
    UnitAndSession,
    /// What the session had on the server, or the rest of a reply that has begun.
    Session,
    /// The rest of a message.
    Message,
    /// The server has said FATAL, and the client has heard it.
    Told,
}

impl Loss {
    fn mark(self) {
        match self {
            Self::NotBegun => Mark::LossNotBegun.hit(),
            Self::Nothing => Mark::LossOfNothing.hit(),
            Self::Transaction => Mark::LossOfTransaction.hit(),
            Self::UnitInTransaction => Mark::LossOfUnitInTransaction.hit(),
            // What becomes of it has marks of its own.
            Self::Again => {}
            Self::Unit => Mark::LossOfUnit.hit(),
            Self::UnitNotBegun => Mark::LossOfUnitNotBegun.hit(),
            Self::UnitThatReads => Mark::LossOfUnitThatReads.hit(),
            Self::UnitAndSession => Mark::LossOfUnitAndSession.hit(),
            Self::Session => Mark::LossOfSession.hit(),
            Self::Message => Mark::LossOfMessage.hit(),
            Self::Told => Mark::LossAlreadyTold.hit(),
        }
    }
}

impl Engine {
    /// What the client that holds a server loses with it.
    pub(crate) fn loss(&self, id: ServerId, client: ClientId) -> Loss {
        let server = &self.servers[id];
        let its = &self.clients[client];
        let in_transaction = server.status.in_block();
        // PostgreSQL begins a message when it has all of it: one of which a part was sent commits
        // nothing.
        let undone = in_transaction && !its.may_commit;
        match its.slots.len() {
            0 if !server.used && !server.dedicated => Loss::NotBegun,
            _ if server.body.left > 0 && server.body.fate == Fate::Forward => Loss::Message,
            _ if server.fatal => Loss::Told,
            0 if !self.is_stateless(id, client) => Loss::Session,
            0 if in_transaction => Loss::Transaction,
            0 => Loss::Nothing,
            _ if server.answered => Loss::Session,
            1 if self.is_stateless(id, client) && !its.mixed => match undone {
                true => Loss::UnitInTransaction,
                false if self.may_run_again(id, client, !server.idled_out) => Loss::Again,
                false if self.only_reads(id, client) && !server.idled_out => Loss::UnitThatReads,
                // More was sent, and waits here: it may rest on what this one was to do.
                false if its.holding || its.began_more => Loss::UnitAndSession,
                // Inside a transaction no server is idle in this sense.
                false if server.idled_out && !in_transaction => Loss::UnitNotBegun,
                false => Loss::Unit,
            },
            1 if undone && !its.mixed => Loss::Session,
            // Which of them were answered in part is not looked at, but nothing is in doubt.
            _ if self.is_stateless(id, client) && !its.mixed && self.only_reads(id, client) => {
                Loss::Session
            }
            _ => Loss::UnitAndSession,
        }
    }

    /// Whether something is under way that may be committed, whatever is done about it now. Of
    /// several units only the last one is known not to commit anything.
    pub(crate) fn may_be_committed(&self, id: ServerId, client: ClientId) -> bool {
        let its = &self.clients[client];
        let commits_nothing = !its.may_commit && its.slots.len() == 1;
        let undone = self.servers[id].status.in_block() && commits_nothing;
        !its.slots.is_empty() && !undone
    }

    /// Whether all that a client has on a server ends with its transaction.
    fn is_stateless(&self, id: ServerId, client: ClientId) -> bool {
        let its = &self.clients[client];
        self.servers[id].mode != PoolMode::Session
            && its.pins.is_empty()
            && its.changes.is_none()
            && !its.may_keep_unknown()
            && self.servers[id].unseen.is_empty()
            && !matches!(its.unnamed, UnnamedStatement::TooLong)
            && matches!(its.phase, Phase::Ready(_))
    }

    /// Whether a FATAL error is the end of the server and not of its client: the server is shut
    /// down, somebody has ended its backend, or it was idle for too long. Notes what that proves:
    /// PostgreSQL counts the time from ReadyForQuery to the first message of the next unit, and
    /// looks whether it is over before it begins with that (`PostgresMain`, postgres.c).
    pub(crate) fn survives_fatal(&mut self, id: ServerId, fields: &ErrorFields<'_>) -> bool {
        let Some(client) = self.servers[id].client() else { return false };
        let Some(code) = fields.code.filter(|_| fields.is_fatal()) else { return false };
        let idled_out = code == SqlState::IDLE_SESSION;
        if !idled_out && ![SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(&code) {
            return false;
        }
        self.servers[id].idled_out = idled_out && fields.is_of_postgres();
        match self.loss(id, client) {
            Loss::Nothing
            | Loss::Transaction
            | Loss::UnitInTransaction
            | Loss::UnitNotBegun
            | Loss::UnitThatReads
            | Loss::Again
            | Loss::Unit => true,
            Loss::NotBegun | Loss::UnitAndSession | Loss::Session | Loss::Message | Loss::Told => {
                false
            }
        }
    }

    /// A FATAL that answers nothing says why the connection will end now. Whoever holds the server
    /// may know, behind what has ended before.
    pub(crate) fn pass_fatal(
        &mut self,
        id: ServerId,
        fields: &ErrorFields<'_>,
        at: usize,
        n: usize,
        length: usize,
    ) {
        Mark::FatalPassedOn.hit();
        let heard = self.hears(id);
        if let Some(client) = self.servers[id].client().filter(|_| heard) {
            self.say_due_at_once(client);
        }
        let server = &mut self.servers[id];
        server.fatal = heard;
        server.last_words = Some(words(fields));
        server.doomed = true;
        self.pass(id, heard, at, n, length);
    }

    /// Tells a client, which has no server any more, what it has lost.
    pub(crate) fn tell_loss(
        &mut self,
        now: Time,
        id: ClientId,
        (loss, kept): (Loss, &Kept),
        cause: &str,
    ) {
        let to = Endpoint::Client(id);
        let unknown = unknown_outcome(cause);
        loss.mark();
        // What it waited for, before more of it could be sent, was that server's answer.
        self.clients[id].holding = false;
        match loss {
            Loss::NotBegun => {
                // What was made again in front of its unit has set nothing.
                self.clients[id].changes = None;
                self.goes_on_behind_loss(now, id);
            }
            Loss::Again => self.run_again(now, id, kept),
            Loss::Nothing | Loss::Transaction => {
                let its = &mut self.clients[id];
                its.body.fate = Fate::Swallow;
                its.lost = (loss == Loss::Transaction).then_some(LostTransaction::Untold);
                self.goes_on_behind_loss(now, id);
            }
            Loss::UnitInTransaction => {
                self.clients[id].lost = Some(LostTransaction::Told);
                self.end_unit(now, id, &TRANSACTION_LOST.report(&[]).detail(cause));
            }
            Loss::UnitNotBegun => {
                let detail = format!("{cause}. The statement was not begun.");
                self.end_unit(now, id, &UNIT_LOST.report(&[]).detail(detail));
            }
            Loss::UnitThatReads if kept.ends_cancelled() => self.end_cancelled(now, id),
            Loss::UnitThatReads => {
                let why = kept.why_not();
                let detail = format!("{cause}, {why}. The statement only reads.");
                self.end_unit(now, id, &UNIT_LOST.report(&[]).detail(detail));
            }
            Loss::Unit => self.end_unit(now, id, &OUTCOME_UNKNOWN.report(&[]).detail(unknown)),
            Loss::UnitAndSession => {
                let report = OUTCOME_UNKNOWN.report(&[]).detail(unknown);
                let severity = Severity::Fatal;
                self.expel(now, id, backend::Report { severity, ..report });
            }
            Loss::Session => self.expel(now, id, CUT_OFF.report(&[]).detail(cause)),
            Loss::Message => {
                let cause = "server lost inside a message";
                self.client_gone(now, id, cause, Action::Close(to));
            }
            Loss::Told => self.client_gone(now, id, "server lost", Action::Close(to)),
        }
    }

    /// A client that is not told of a loss goes on with its next unit, unless that had something in
    /// front of it and it has asked for the end of it then.
    fn goes_on_behind_loss(&mut self, now: Time, id: ClientId) {
        let its = &self.clients[id];
        if its.lost.is_none() && its.cancelled == Some(its.next_slot) {
            Mark::LossOfCancelledAhead.hit();
            return self.refuse_unit(now, id, CANCELED.report(&[]));
        }
        self.resume(id);
    }

    /// The one unit of a client that is under way ends with this error.
    pub(crate) fn end_unit(&mut self, now: Time, id: ClientId, report: &backend::Report) {
        let client = &mut self.clients[id];
        client.drop_unit(now);
        // It may have been replaced, and must not be run in the place of what was to replace it.
        client.unnamed = UnnamedStatement::None;
        // What is still to come of its message has nowhere to go.
        client.body.fate = Fate::Swallow;
        client.body.scan = None;
        let inside = client.body.left > 0 && client.body.ends_unit;
        client.rest = match client.open_slot.take() {
            Some(_) => UnitRest::Batch,
            None if inside => UnitRest::Message,
            None => UnitRest::None,
        };
        // In a transaction that was lost PostgreSQL itself refuses what stands behind.
        client.bears = client.rest != UnitRest::None && client.lost.is_none();
        Mark::LossInBatch.hit_if(client.rest == UnitRest::Batch);
        Mark::LossInsideUnit.hit_if(client.rest == UnitRest::Message);
        let status = (client.rest == UnitRest::None).then(|| client.status());
        self.actions.inject(Endpoint::Client(id), |out| report.write(out));
        if let Some(status) = status {
            // What was notified meanwhile comes before the end of the unit.
            if !status.in_block() {
                self.say_all(id);
            }
            self.actions.inject(Endpoint::Client(id), |out| backend::ready_for_query(out, status));
        }
        if self.clients[id].leaving {
            Mark::LossOfLeaver.hit();
            return self.client_left(now, id);
        }
        self.resume(id);
    }

    /// Whether a client hears of the loss of its transaction in place of an answer to this unit. If
    /// it rolls back anyway, there is nothing to hear.
    pub(crate) fn tells_of_loss(
        &mut self,
        id: ClientId,
        tag: Tag,
        header: Header,
        rest: &[u8],
    ) -> bool {
        let client = &mut self.clients[id];
        if client.lost != Some(LostTransaction::Untold) {
            return false;
        }
        client.lost = Some(LostTransaction::Told);
        if gives_up(tag, header, rest) {
            Mark::LossNotTold.hit();
        } else {
            Mark::LossToldLater.hit();
            client.refusal = Some(Box::new(TRANSACTION_LOST.report(&[])));
            client.unnamed = UnnamedStatement::None;
        }
        client.refusal.is_some()
    }

    /// A client's transaction was lost with another server: this one gets one that has failed.
    pub(crate) fn fail_transaction(&mut self, now: Time, server: ServerId) {
        Mark::StandIn.hit();
        self.servers[server].changed = now;
        self.run_own(server, FAIL);
    }

    /// That is done.
    pub(crate) fn transaction_failed(&mut self, now: Time, server: ServerId, client: ClientId) {
        let its = &mut self.servers[server];
        let failed = its.own_error.take().is_some() && its.status.in_block();
        if !failed {
            // PostgreSQL does as it is told, and nothing else ends this statement.
            Mark::StandInFails.hit();
            return self.server_lost(now, server, "the server did not begin a transaction");
        }
        its.stands_in = true;
        its.unit_since = now;
        its.transaction_since = now;
        // Until its unit is sent the client may lose this server too.
        self.hold(server, client);
        self.resume(client);
    }
}

impl Client {
    /// A message is about to be sent: notes whether it may commit the transaction, as far as that
    /// is no matter of its text. A lone Sync is a unit too, but may still belong to the COPY in
    /// front of it.
    pub(crate) fn note_commit(&mut self, tag: Tag) {
        self.may_commit &= self.open_slot.is_some() || !begins_unit(tag);
        self.may_commit |= tag == Tag::Execute && self.may_commit_later;
    }
}

/// The DETAIL for a statement that may or may not have been carried out.
pub(crate) fn unknown_outcome(cause: &str) -> String {
    format!("{cause}. The statement may or may not have been committed.")
}

/// Whether a message asks for another transaction like the one that was lost, in whose place one
/// was made to fail: of what that was like (its isolation level, whether it was read-only) nothing
/// is known. Where too little of it has come to tell it may.
pub(crate) fn chains_lost(tag: Tag, body: &[u8], whole: bool) -> bool {
    let text = match tag {
        Tag::Query => until_nul(body),
        Tag::Parse => Parse::start(body).map_or(&[][..], |parse| parse.text),
        // Whoever has heard of the loss has no statement of before.
        Tag::Bind
        | Tag::Close
        | Tag::CopyData
        | Tag::CopyDone
        | Tag::CopyFail
        | Tag::Describe
        | Tag::Execute
        | Tag::Flush
        | Tag::FunctionCall
        | Tag::Password
        | Tag::Sync
        | Tag::Terminate => return false,
    };
    chains(text, whole).unwrap_or(true)
}

/// Whether a unit begins with a ROLLBACK of the whole transaction. One that is prepared must also
/// be carried out before anything else can fail.
pub(crate) fn gives_up(tag: Tag, header: Header, rest: &[u8]) -> bool {
    let message = &rest[..rest.len().min(header.message_len())];
    let body = &message[HEADER_LEN..];
    match tag {
        Tag::Query => rolls_back(until_nul(body)),
        Tag::Parse => Parse::start(body).is_ok_and(|parse| {
            rolls_back(parse.text) && executes(parse.name, &rest[message.len()..])
        }),
        Tag::Bind
        | Tag::Close
        | Tag::CopyData
        | Tag::CopyDone
        | Tag::CopyFail
        | Tag::Describe
        | Tag::Execute
        | Tag::Flush
        | Tag::FunctionCall
        | Tag::Password
        | Tag::Sync
        | Tag::Terminate => false,
    }
}

/// Whether messages begin by executing a statement, which may be described before that.
fn executes(statement: &[u8], mut rest: &[u8]) -> bool {
    let mut bound = None;
    while let Ok(Some((header, tag))) = units::message(rest)
        && let Some(body) = rest.get(HEADER_LEN..header.message_len())
    {
        match tag {
            Tag::Bind => match Bind::start(body) {
                Ok(bind) if bind.statement == statement => bound = Some(bind.portal),
                _ => return false,
            },
            Tag::Execute => {
                let gives_up = bound.is_some_and(|portal| until_nul(body) == portal);
                Mark::LossNotToldInBatch.hit_if(gives_up);
                return gives_up;
            }
            Tag::Describe | Tag::Flush => {}
            Tag::Close
            | Tag::CopyData
            | Tag::CopyDone
            | Tag::CopyFail
            | Tag::FunctionCall
            | Tag::Parse
            | Tag::Password
            | Tag::Query
            | Tag::Sync
            | Tag::Terminate => return false,
        }
        rest = &rest[header.message_len()..];
    }
    false
}

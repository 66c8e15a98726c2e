//! From a server's bytes to the clients that are owed them.

mod whole;

use pgweir_config::PoolMode;
use pgweir_sql::PinReason;
use pgweir_wire::backend::{self, ErrorFields, Report, Tag};
use pgweir_wire::{HEADER_LEN, Header, SqlState, TransactionStatus};

use crate::Engine;
use crate::action::{Action, ClientId, Endpoint, Event, ServerId};
use crate::client::{Fate, Leg, Phase, Slot};
use crate::errors::{CONTAINED, STATEMENT_MODE};
use crate::marks::Mark;
use crate::reply::{Sink, Step, is_overture};
use crate::server::ServerState;
use crate::time::Time;
pub use whole::DESCRIPTION_BYTES;
use whole::{comes_whole, is_held, is_kept_whole, malformed, same_messages};

impl Engine {
    /// Bytes of a server that has logged in, from `start` on.
    pub(crate) fn reply_input(
        &mut self,
        now: Time,
        id: ServerId,
        input: &[u8],
        start: usize,
    ) -> usize {
        let mut at = start;
        if let Some(server) = self.servers.find_mut(id) {
            server.heard = now;
        }
        while at < input.len() {
            let Some(server) = self.servers.find_mut(id) else {
                Mark::LostWhileHeard.hit();
                return input.len();
            };
            if matches!(server.state, ServerState::Forsaken) {
                Mark::ForsakenWhileRead.hit();
                self.forsaken_input(now, id, &input[at..]);
                at = input.len();
                break;
            }
            if server.body.left > 0 {
                let n = server.body.left.min(input[at..].len());
                server.body.left -= n;
                match (server.body.fate, server.client()) {
                    (Fate::Forward, Some(client)) => self.hand_on(id, client, at..at + n),
                    (Fate::Forward | Fate::Swallow, _) => server.swallowed += n,
                }
                at += n;
                self.let_go_of_leaver(now, id);
                continue;
            }
            match self.message(now, id, &input[at..], at) {
                Ok(0) => break,
                Ok(n) => at += n,
                Err(cause) => {
                    self.contain(now, id, &cause);
                    return input.len();
                }
            }
        }
        self.hold_fresh(id);
        if let Some(server) = self.servers.find(id) {
            self.pools[server.pool].stats.sent += (at - start) as u64;
            let goes_on = matches!(server.state, ServerState::Forsaken | ServerState::Pipelined);
            if server.says_too_much() && server.client().is_none() && !goes_on {
                self.cut_short(now, id);
                return input.len();
            }
        }
        at
    }

    /// Takes the message at the front, or 0 bytes of it while too little of it is there.
    fn message(
        &mut self,
        now: Time,
        id: ServerId,
        rest: &[u8],
        at: usize,
    ) -> Result<usize, String> {
        let Some(header) = Header::parse(rest).map_err(malformed)? else {
            return Ok(0);
        };
        self.servers[id].replies.begin_message();
        let tag = Tag::of(header).map_err(malformed)?;
        let length = header.message_len();
        let whole = rest.len() >= length;
        if !whole && is_held(tag, length, rest.len()) {
            return Ok(0);
        }
        let n = rest.len().min(length);
        let body = &rest[HEADER_LEN..n];
        match tag {
            Tag::NoticeResponse => {
                let heard = self.hears(id) && !self.servers[id].replies.is_unasked();
                self.pass_notice(id, heard, body, at, length);
            }
            Tag::NotificationResponse => {
                comes_whole(tag, length)?;
                self.notification(now, id, &rest[..n], at).map_err(malformed)?;
            }
            Tag::ParameterStatus => {
                comes_whole(tag, length)?;
                let (name, value) = backend::parse_parameter_status(body).map_err(malformed)?;
                // Whoever shares a server is told with its next unit.
                let heard = self.hears(id) && !self.resets(id) && !self.is_pipelined(id);
                self.reported(id, name, value, heard);
                self.pass_beside(id, heard, at, n, length);
            }
            Tag::ReadyForQuery => {
                comes_whole(tag, length)?;
                let status = backend::parse_ready_for_query(body).map_err(malformed)?;
                self.ready(now, id, status, at, n)?;
            }
            Tag::ErrorResponse => self.error(now, id, body, at, n, length)?,
            Tag::DataRow | Tag::CopyData if whole => {
                let sink = self.step(id, tag)?;
                // Ours are read one by one.
                let ours = self.own_row(now, id, sink, Some(body));
                let run = if ours { n } else { n + same_messages(header.tag, &rest[n..]) };
                self.pass_reply(id, tag, sink, at, run, run);
                return Ok(run);
            }
            Tag::CopyInResponse | Tag::CopyBothResponse => {
                let sink = self.step(id, tag)?;
                if self.is_pipelined(id) {
                    return Err("a unit that was shared waits for COPY data".to_owned());
                }
                if self.servers[id].client().is_none() {
                    // It waits for data that nobody will send.
                    Mark::CopyForNobody.hit();
                    self.forsake(now, id);
                    return Ok(n);
                }
                self.pass_reply(id, tag, sink, at, n, length);
                self.let_go_of_leaver(now, id);
                self.wake_for_copy(id);
            }
            Tag::CommandComplete => {
                let sent = self.servers[id].replies.names_sent();
                let sink = self.step(id, tag)?;
                self.command_complete(id, sink, sent, body);
                self.pass_reply(id, tag, sink, at, n, length);
            }
            Tag::RowDescription | Tag::NoData => {
                let rows = is_kept_whole(tag, length).then_some(body);
                let sink = self.described(id, tag, rows)?;
                self.pass_reply(id, tag, sink, at, n, length);
            }
            Tag::ParameterDescription => {
                let sink = self.step(id, tag)?;
                self.servers[id].parameters_told = is_kept_whole(tag, length).then(|| body.into());
                self.pass_reply(id, tag, sink, at, n, length);
            }
            Tag::Authentication
            | Tag::BackendKeyData
            | Tag::BindComplete
            | Tag::CloseComplete
            | Tag::CopyData
            | Tag::CopyDone
            | Tag::CopyOutResponse
            | Tag::DataRow
            | Tag::EmptyQueryResponse
            | Tag::FunctionCallResponse
            | Tag::NegotiateProtocolVersion
            | Tag::ParseComplete
            | Tag::PortalSuspended => {
                let sink = self.step(id, tag)?;
                if tag == Tag::DataRow {
                    self.own_row(now, id, sink, None);
                }
                self.pass_reply(id, tag, sink, at, n, length);
            }
        }
        Ok(n)
    }

    /// The server waits for something that a client which leaves, or is gone, will not send: COPY
    /// data, or the Sync behind an error.
    fn let_go_of_leaver(&mut self, now: Time, id: ServerId) {
        if self.servers[id].body.left > 0 {
            return;
        }
        match self.servers[id].client() {
            Some(client) if self.clients[client].leaving && self.is_unfinished(client) => {
                Mark::LeaverLetGo.hit();
                self.client_left(now, client);
            }
            Some(_) => {}
            // Where it is shared it skips what is joined, whose Sync comes with the turn's end.
            None if self.servers[id].replies.skips() && !self.is_pipelined(id) => {
                Mark::SkipsForNobody.hit();
                self.forsake(now, id);
            }
            None => {}
        }
    }

    /// What a client holds back until this unit is over is now part of it: the unit does not end
    /// without it.
    fn wake_for_copy(&mut self, id: ServerId) {
        if let Some(client) = self.servers.find(id).and_then(|server| server.client())
            && self.clients[client].holding
        {
            Mark::WokenForCopy.hit();
            self.wake(client);
        }
    }

    /// An ErrorResponse.
    fn error(
        &mut self,
        now: Time,
        id: ServerId,
        body: &[u8],
        at: usize,
        n: usize,
        length: usize,
    ) -> Result<(), String> {
        if self.is_pipelined(id) {
            return self.shared_error(now, id, body, at..at + n, length);
        }
        let fields = ErrorFields::start(body);
        let fatal = fields.is_fatal();
        let sink = match self.take_step(id, Tag::ErrorResponse)? {
            Step::Failed { sink, effect, undone } => {
                self.settle(id, sink, effect);
                self.undo(id, undone);
                if self.servers[id].replies.may_be_ready_twice()
                    && let Some(client) = self.servers[id].client()
                {
                    Mark::SyncInDoubt.hit();
                    self.pin(client, PinReason::Unclear.into());
                }
                sink
            }
            Step::Unasked if fatal && !self.carries_work(id) => {
                // It is as good as gone, and must not be lent before its stream ends. A client
                // that has sent nothing to it asks again, and must not hear of this.
                Mark::FatalBeforeWork.hit();
                self.server_lost(now, id, &String::from_utf8_lossy(fields.message));
                return Ok(());
            }
            Step::Unasked if self.survives_fatal(id, &fields) => {
                Mark::FatalSurvived.hit();
                self.server_lost(now, id, &String::from_utf8_lossy(fields.message));
                return Ok(());
            }
            Step::Unasked if fatal => {
                self.pass_fatal(id, &fields, at, n, length);
                return Ok(());
            }
            Step::Unasked => return Err("an error came when no reply was owed".to_owned()),
            Step::More { .. } | Step::Settled { .. } | Step::Ready { .. } => {
                return Err("an error was taken for a reply".to_owned());
            }
        };
        self.keep_own_error(id, sink, &fields);
        self.sequences_kept(id, sink, &fields);
        if fatal && sink == Sink::Injected && !self.carries_work(id) {
            // What was put in front of its unit is all that was sent: it asks again.
            Mark::FatalBehindInjected.hit();
            self.server_lost(now, id, &String::from_utf8_lossy(fields.message));
            return Ok(());
        }
        if sink != Sink::Own && self.survives_fatal(id, &fields) {
            // What becomes of its statement it hears from us, and goes on with another server:
            // also where something of ours came before it and was still to be answered.
            Mark::FatalInReplySurvived.hit();
            self.server_lost(now, id, &String::from_utf8_lossy(fields.message));
            return Ok(());
        }
        // An error is the client's even if the message that it answers was ours.
        Mark::InjectedMessageFailed.hit_if(sink == Sink::Injected);
        let ours = matches!(sink, Sink::Aside | Sink::Own);
        let heard = !ours && self.servers[id].client().is_some();
        self.servers[id].answered |= heard;
        if let Some(client) = self.servers[id].client().filter(|_| heard) {
            // What it is held back for is part of what has failed.
            self.servers[id].used = true;
            let is_open = self.servers[id].replies.skips();
            let its = &mut self.clients[client];
            (its.asked, its.lost) = (None, None);
            its.schema_failed();
            if sink == Sink::Injected && is_open && its.open_slot.is_none() {
                // The unit that it belongs to has begun with this.
                Mark::UnitBegunByError.hit();
                its.open_slot = Some(its.slot_of_unit());
                self.servers[id].unit_since = now;
            }
        }
        self.servers[id].fatal = fatal && heard;
        if fatal {
            self.servers[id].last_words = Some(words(&fields));
            self.servers[id].doomed = true;
        }
        match (self.refused(id, sink).filter(|_| !fatal), self.servers[id].client()) {
            (Some(refusal), Some(client)) => {
                // In the place of the one that we have asked for.
                self.actions.inject(Endpoint::Client(client), |out| refusal.write(out));
                self.pass(id, false, at, n, length);
            }
            (Some(_) | None, _) => self.pass_error(id, heard, body, at, length),
        }
        if let Some(client) = self.servers[id].client()
            && self.clients[client].holding
        {
            // What it waits for in the middle of its batch does not come any more.
            self.wake(client);
        }
        self.let_go_of_leaver(now, id);
        Ok(())
    }

    /// Of something of ours: whoever has asked for it looks for this.
    fn keep_own_error(&mut self, id: ServerId, sink: Sink, fields: &ErrorFields<'_>) {
        let server = &mut self.servers[id];
        if sink == Sink::Own || sink == Sink::Aside && server.puts_back {
            server.own_error.get_or_insert_with(|| Box::new(as_report(fields)));
        }
    }

    /// ReadyForQuery: a unit is over.
    fn ready(
        &mut self,
        now: Time,
        id: ServerId,
        status: TransactionStatus,
        at: usize,
        n: usize,
    ) -> Result<(), String> {
        let Step::Ready { sink, effect } = self.take_step(id, Tag::ReadyForQuery)? else {
            return Err("ReadyForQuery came in the middle of a reply".to_owned());
        };
        self.settle(id, sink, effect);
        let server = &mut self.servers[id];
        server.status = status;
        server.stands_in &= status.in_block();
        if self.is_pipelined(id) {
            return self.shared_ready(now, id, sink, status, at..at + n);
        }
        match (sink, self.servers[id].client()) {
            (Sink::Client(slot) | Sink::Refused(slot), Some(client)) => {
                self.fill_slot(now, id, client, slot)?;
                self.count_unit(now, id);
                self.sequences_over(id, Some(slot));
                self.hand_over_ready(id, client, at..at + n);
                self.unit_over(now, id, client);
            }
            (Sink::EarlySync, Some(client)) => {
                // If the batch is still open for want of a Sync that counts, this is the one.
                self.sequences_over(id, None);
                let its = &mut self.clients[client];
                if let Some(open) = its.open_slot.take() {
                    Mark::SyncInDoubtEndsBatch.hit();
                    its.slots.retain(|slot| *slot != open);
                }
                self.hand_over_ready(id, client, at..at + n);
                self.unit_over(now, id, client);
            }
            (Sink::Own, Some(client)) if self.servers[id].answer.is_some() => {
                let pool = self.servers[id].pool;
                self.told(now, id, client);
                self.wake_for_pins(pool);
            }
            (Sink::Own, Some(client)) => self.prepared(now, id, client),
            (Sink::Aside, Some(client)) => self.aside_over(now, id, client),
            (_, None) if matches!(self.servers[id].state, ServerState::Listening) => {
                self.listener_answered(now, id);
            }
            (_, None) => {
                Mark::ReplyForNobody.hit_if(sink != Sink::Own);
                if self.servers[id].replies.is_empty() {
                    self.clean_further(now, id);
                }
            }
            (Sink::Converted(_) | Sink::Injected, Some(_)) => {
                return Err("ReadyForQuery answered a message of our own".to_owned());
            }
        }
        Ok(())
    }

    /// The reply to a client's oldest unit is whole.
    pub(crate) fn fill_slot(
        &mut self,
        now: Time,
        id: ServerId,
        client: ClientId,
        slot: Slot,
    ) -> Result<(), String> {
        let slots = &mut self.clients[client].slots;
        if slots.first() != Some(&slot) {
            return Err(format!("{slot:?} was filled when {slots:?} were owed"));
        }
        slots.remove(0);
        let over = slots.is_empty();
        let its = &mut self.clients[client];
        its.may_commit &= !over;
        // A portal lasts as long as the transaction, and so do settings; but what the units say
        // that are still under way is not over with this one.
        let lasts = !over || self.servers[id].status.in_block();
        its.may_commit_later &= lasts;
        its.mixed &= !over;
        its.encoding_in_doubt &= !over;
        its.quiet_since = now;
        its.local_settings &= lasts;
        its.reads_otherwise &= its.has_changed_settings();
        self.listening_goes_on(client, self.servers[id].status.in_block());
        self.deallocation_over(id, client, slot);
        let server = &mut self.servers[id];
        server.refused.retain(|(unit, _)| *unit != slot);
        server.unit_waited = false;
        server.answered = false;
        Ok(())
    }

    /// A server has answered a unit, which is not to be run again.
    pub(crate) fn count_unit(&mut self, now: Time, id: ServerId) {
        let server = &mut self.servers[id];
        let pool = &mut self.pools[server.pool];
        pool.lost_unused = 0;
        let stats = &mut pool.stats;
        stats.queries += 1;
        stats.query_time += now - server.unit_since;
        server.unit_since = now;
        if !server.status.in_block() {
            stats.transactions += 1;
            stats.transaction_time += now - server.transaction_since;
            server.transaction_since = now;
        }
    }

    /// A client's unit is over: the server goes back, unless something keeps it.
    fn unit_over(&mut self, now: Time, id: ServerId, client: ClientId) {
        let server = &self.servers[id];
        let in_block = server.status.in_block() && !server.dedicated;
        if server.mode == PoolMode::Statement && in_block {
            Mark::BlockInStatementMode.hit();
            let pool = self.pools[server.pool].spec.name();
            let detail = format!("pool_mode of pool \"{pool}\" is statement.");
            return self.expel(now, client, STATEMENT_MODE.report(&[]).detail(detail));
        }
        self.lease_over(now, id, client);
        if self.clients.find(client).is_some_and(|client| client.holding) {
            self.wake(client);
        }
    }

    /// If nothing is under way between a client and its server, and nothing keeps them together,
    /// the server goes back.
    pub(crate) fn lease_over(&mut self, now: Time, id: ServerId, client: ClientId) {
        let server = &self.servers[id];
        let pool = server.pool;
        let its = &self.clients[client];
        let settled = server.used
            && server.replies.is_empty()
            && !server.replies.in_batch()
            && its.slots.is_empty()
            && its.body.left == 0;
        if !settled {
            return;
        }
        if its.leaving {
            Mark::LeaverServed.hit();
            // What was to be put back when no cancel can hit it any more nobody needs.
            self.say_due_at_once(client);
            return self.client_left(now, client);
        }
        let between = !server.status.in_block();
        if between
            && !self.look_at_schema(now, client, id)
            && !self.asks(now, id, client)
            && !self.goes_to_listener(now, id, client)
        {
            self.part_or_keep(now, id, client);
        }
        if self.draining || self.pools[pool].removed {
            Mark::DrainedBehindUnit.hit();
            self.drain_client(now, client);
        }
    }

    /// Input that was held back is looked at again.
    pub(crate) fn wake(&mut self, client: ClientId) {
        self.clients[client].holding = false;
        self.resume(client);
    }

    /// Whether a client has sent something to this server since it was lent.
    fn carries_work(&self, id: ServerId) -> bool {
        let server = &self.servers[id];
        let client = server.client().and_then(|client| self.clients.find(client));
        client.is_some_and(|client| server.used || !client.slots.is_empty())
    }

    /// Whether what a server says of its own accord is for a client: one holds it, and it is not
    /// busy with something of ours.
    pub(crate) fn hears(&self, id: ServerId) -> bool {
        let client = self.servers[id].client().and_then(|client| self.clients.find(client));
        // One that waits for its welcome has not been told that it is logged in.
        client.is_some_and(|client| {
            matches!(client.leg, Leg::Held(its) | Leg::Pipelined(its) if its == id)
                && matches!(client.phase, Phase::Ready(_))
        })
    }

    fn pass_reply(
        &mut self,
        id: ServerId,
        tag: Tag,
        sink: Sink,
        at: usize,
        n: usize,
        length: usize,
    ) {
        let heard = match sink {
            Sink::Converted(_)
                if matches!(tag, Tag::ParseComplete | Tag::BindComplete | Tag::NoData) =>
            {
                false
            }
            Sink::Client(_) | Sink::Converted(_) => {
                let heard = self.servers[id].client().is_some();
                self.servers[id].answered |= heard && !is_overture(tag);
                heard
            }
            Sink::Aside | Sink::EarlySync | Sink::Injected | Sink::Own | Sink::Refused(_) => false,
        };
        self.pass(id, heard, at, n, length);
    }

    /// Forwards or drops a message of this length of which `n` bytes are there.
    pub(crate) fn pass(&mut self, id: ServerId, heard: bool, at: usize, n: usize, length: usize) {
        let server = &mut self.servers[id];
        server.body.left = length - n;
        Mark::MessageToClientInPieces.hit_if(heard && length > n);
        Mark::MessageDroppedInPieces.hit_if(!heard && length > n);
        match server.client() {
            Some(client) if heard => {
                server.body.fate = Fate::Forward;
                server.kept.answer();
                self.hand_on(id, client, at..at + n);
            }
            _ => {
                server.body.fate = Fate::Swallow;
                server.swallowed += n;
            }
        }
    }

    /// A server has sent what no expected reply allows. Not a byte more of it is forwarded.
    fn contain(&mut self, now: Time, id: ServerId, cause: &str) {
        Mark::Contained.hit();
        let server = &self.servers[id];
        let pool = &mut self.pools[server.pool];
        pool.stats.contained += 1;
        self.actions.push(Action::Log(Event::Contained {
            server: self.member.server_number(id),
            client: server.client().map(|client| self.member.client_number(client)),
            pool: pool.spec.name(),
            cause: cause.to_owned(),
        }));
        self.servers[id].doomed = true;
        if self.is_pipelined(id) {
            return self.shared_contained(now, id, cause);
        }
        if !self.carries_work(id) {
            // Whoever holds it has sent it nothing yet, and gets another.
            Mark::ContainedBeforeUse.hit();
            return self.lose(now, id, cause);
        }
        if let Some(client) = self.servers[id].client() {
            self.expel(now, client, CONTAINED.report(&[]).detail(cause));
        }
        if self.servers.find(id).is_some() {
            self.abort_server(now, id);
        }
    }
}

/// What a server says, for the log.
pub(crate) fn words(fields: &ErrorFields<'_>) -> Box<str> {
    String::from_utf8_lossy(fields.message).into()
}

/// What we keep of a server's error.
pub(crate) fn as_report(fields: &ErrorFields<'_>) -> Report {
    let code = fields.code.unwrap_or(SqlState::INTERNAL_ERROR);
    let text = |field| String::from_utf8_lossy(field).into_owned();
    let (detail, hint) = (fields.detail.map(text), fields.hint.map(text));
    Report { detail, hint, ..Report::error(code, text(fields.message)) }
}

//! From a client's bytes to units on a server.

mod bring;
mod copying;
mod names;
mod refuse;
mod show;
mod unnamed;

pub(crate) use refuse::{asks_for_more, begins_unit, front, more_follows};

use pgweir_config::PoolMode;
use pgweir_wire::frontend::{self, Tag};
use pgweir_wire::{HEADER_LEN, Header, Malformed, TransactionStatus};

use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{Body, Client, Fate, Leg, UnitRest, UnnamedHere};
use crate::errors::{CUT_OFF, VIOLATION};
use crate::loss::{CHAIN_LOST, chains_lost};
use crate::marks::Mark;
use crate::pins::{FAILS, Verdict};
use crate::pool::PoolId;
use crate::reply::{Expected, Kind, Sink};
use crate::scan::kept;
use crate::sequences::Uses;
use crate::time::Time;
use crate::unfinished::unit_is_whole;
use names::Rename;

/// A unit that is longer is sent to a server piece by piece; a shorter one once it is whole, so
/// that a slow client holds no server while it makes up its mind. The driver must be able to
/// retain at least this much for a client.
pub const UNIT_HELD_BYTES: usize = 16 * 1024;

/// So many units of one client are under way at a time; the others wait for replies. The shortest
/// has five bytes, and what is noted for it is several times as much: without a limit a pipeline
/// of Syncs would fill our memory, though the kernel's buffers hold its bytes.
const UNITS_UNDER_WAY: usize = 1_000;

/// What became of the message at the front of the input.
enum Taken {
    /// This many bytes are consumed; there may be more messages behind.
    Bytes(usize),
    /// Nothing, until more bytes come or something else happens.
    Nothing,
    /// The client is gone.
    Gone,
}

impl Engine {
    /// Input of a client that has logged in.
    pub(crate) fn ready_input(
        &mut self,
        now: Time,
        id: ClientId,
        pool: PoolId,
        input: &[u8],
    ) -> usize {
        self.clients[id].began_more = false;
        if self.clients[id].leaving {
            Mark::InputBehindFarewell.hit_if(!input.is_empty());
            return input.len();
        }
        let mut at = 0;
        loop {
            if self.clients[id].body.left > 0 {
                let n = self.pass_body(now, id, input, at);
                at += n;
                if n == 0 || self.clients[id].body.left > 0 {
                    break;
                }
                if !self.unit_passed(now, id, &input[at..]) {
                    return input.len();
                }
                if !self.keeps_or_parts(now, id) {
                    Mark::GoneBehindMessage.hit();
                    return input.len();
                }
                continue;
            }
            let rest = &input[at..];
            let (header, tag) = match message(rest) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(malformed) => {
                    self.violated(now, id, malformed);
                    return input.len();
                }
            };
            let taken = match self.clients[id].leg {
                Leg::Held(server) if !self.is_refused(id) => {
                    let behind = self.keep_unit(id, server, rest);
                    let may_commit = self.clients[id].may_commit;
                    let taken = self.dispatch(now, id, server, tag, header, rest, at);
                    match taken {
                        // Nothing was sent: the last unit is still the one before.
                        Taken::Nothing => self.clients[id].may_commit |= may_commit,
                        Taken::Bytes(_) | Taken::Gone => self.note_behind(server, behind),
                    }
                    taken
                }
                // One that it has was sent nothing.
                Leg::None | Leg::Granted(_) | Leg::Held(_) => {
                    self.without_server(now, id, pool, tag, header, rest, at)
                }
                Leg::Waiting(_) | Leg::Preparing(_) => Taken::Nothing,
                Leg::Pipelined(_) => {
                    // More has come behind the unit at the front: it is looked at when that is
                    // answered.
                    self.clients[id].holding = true;
                    Taken::Nothing
                }
            };
            match taken {
                Taken::Bytes(n) => {
                    at += n;
                    let scanned = &mut self.clients[id].scanned;
                    *scanned = scanned.saturating_sub(n);
                    if !self.keeps_or_parts(now, id) {
                        // No mark: who may go is asked to when nothing is under way.
                        return input.len();
                    }
                }
                Taken::Nothing => break,
                Taken::Gone => return input.len(),
            }
        }
        self.pools[pool].stats.received += at as u64;
        let client = &mut self.clients[id];
        let more = asks_for_more(&input[at..]);
        client.began_more = more && client.open_slot.is_none() && client.body.left == 0;
        if client.ended && !client.waits() {
            // All that it sent is under way, but for what can never become whole.
            self.client_leaves(now, id);
            return input.len();
        }
        at
    }

    /// What was consumed may have been the rest of something that failed long ago: if nothing else
    /// keeps a client and its server together, they part. Says whether the client is still there.
    fn keeps_or_parts(&mut self, now: Time, id: ClientId) -> bool {
        let client = &self.clients[id];
        if client.slots.is_empty()
            && let Some(server) = client.server()
        {
            self.lease_over(now, server, id);
        }
        self.clients.find(id).is_some()
    }

    /// Passes on what has come of a body that is still coming in; says how many bytes.
    fn pass_body(&mut self, now: Time, id: ClientId, input: &[u8], at: usize) -> usize {
        let client = &mut self.clients[id];
        let n = client.body.left.min(input.len() - at);
        client.body.left -= n;
        if client.body.fate == Fate::Forward
            && let Some(server) = client.server()
        {
            self.servers[server].fed = now;
            self.actions.forward(Endpoint::Server(server), at..at + n);
        } else {
            Mark::BodyDropped.hit();
            self.clients[id].quiet_since = now;
        }
        self.scan_piece(id, &input[at..at + n]);
        n
    }

    /// A message of a client that has no server.
    #[expect(clippy::too_many_arguments, reason = "the parts of one message, split once")]
    fn without_server(
        &mut self,
        now: Time,
        id: ClientId,
        pool: PoolId,
        tag: Tag,
        header: Header,
        rest: &[u8],
        at: usize,
    ) -> Taken {
        let client = &mut self.clients[id];
        match tag {
            Tag::Terminate => {
                self.client_leaves(now, id);
                return Taken::Gone;
            }
            // PostgreSQL passes over COPY data that comes too late, and a Flush with nothing to
            // flush does nothing.
            Tag::CopyData | Tag::CopyDone | Tag::CopyFail | Tag::Flush => {
                Mark::CopyDataWithoutServer.hit_if(tag == Tag::CopyData);
                return swallow(client, header, rest);
            }
            Tag::Password => {
                self.violated(now, id, Malformed::UnknownTag(header.tag));
                return Taken::Gone;
            }
            Tag::Bind
            | Tag::Close
            | Tag::Describe
            | Tag::Execute
            | Tag::FunctionCall
            | Tag::Parse
            | Tag::Query
            | Tag::Sync => {}
        }
        if client.rest != UnitRest::Batch && client.refusal.is_some() {
            self.look_for_cure(id, tag, header, rest);
        }
        if self.is_refused(id) {
            return self.refuse(now, id, tag, header, rest);
        }
        let client = &mut self.clients[id];
        let too_long = rest.len() >= UNIT_HELD_BYTES;
        let ended = unit_is_whole(rest, &mut client.scanned);
        Mark::UnitTooLongToWait.hit_if(too_long && !ended);
        let whole = ended || too_long;
        let asked = client.asked.is_some();
        if !whole && !asked && !self.is_overdue(now, id) {
            return Taken::Nothing;
        }
        if !asked && self.tells_of_loss(id, tag, header, rest) {
            return self.refuse(now, id, tag, header, rest);
        }
        self.clients[id].unfinished = None;
        if !ended || !self.pipeline(now, id, pool, rest, at) {
            self.check_out(now, id, pool);
        }
        // With a server at once the same message is looked at again.
        if self.clients.find(id).is_some_and(|client| client.server().is_some()) {
            Taken::Bytes(0)
        } else {
            Taken::Nothing
        }
    }

    /// A message of a client that has a server: notes what will be answered, and sends it on.
    #[expect(clippy::too_many_arguments, reason = "the parts of one message, split once")]
    fn dispatch(
        &mut self,
        now: Time,
        id: ClientId,
        server: ServerId,
        tag: Tag,
        header: Header,
        rest: &[u8],
        at: usize,
    ) -> Taken {
        let whole = rest.len() >= header.message_len();
        let body = &rest[HEADER_LEN..rest.len().min(header.message_len())];
        if self.must_hold(id, server, tag) || self.tries_copy(now, server, tag, header) {
            let client = &mut self.clients[id];
            client.holding = true;
            if self.servers[server].answer.is_some() {
                client.held_since.get_or_insert(now);
            }
            return Taken::Nothing;
        }
        if !whole && rest.len() < UNIT_HELD_BYTES && is_read(tag) {
            return Taken::Nothing;
        }
        if self.servers[server].stands_in && chains_lost(tag, body, whole) {
            Mark::ChainOfLost.hit();
            self.expel(now, id, CUT_OFF.report(&[]).detail(CHAIN_LOST));
            return Taken::Gone;
        }
        if self.clients[id].subscription.is_some()
            && self.waits_to_listen(now, id, server, tag, rest)
        {
            self.clients[id].holding = true;
            return Taken::Nothing;
        }
        self.servers[server].note_fed(now);
        let text = until_nul(body);
        let text_ended = tag == Tag::Query && (whole || text.len() < body.len());
        let heard = text_ended.then(|| self.read_text(id, text));
        let verdict = match &heard {
            Some(heard) => self.judge_text(id, server, heard, text, true),
            None if tag == Tag::Query => self.claim_sequences(id, server, Uses::unread(text)),
            None => Verdict::Sent,
        };
        let mut refused = match verdict {
            Verdict::Sent => None,
            Verdict::Refused(report) => Some(report.into()),
            Verdict::Later => {
                self.clients[id].holding = true;
                return Taken::Nothing;
            }
        };
        let may_name = tag == Tag::Query && refused.is_none() && !self.clients[id].names.is_empty();
        if may_name && !self.show_names(id, server, text, !text_ended) {
            self.clients[id].holding = true;
            return Taken::Nothing;
        }
        self.clients[id].note_commit(tag);
        let (mut rename, mut describe) = (None, None);
        let kind = match tag {
            Tag::Query => {
                let fails =
                    || Rename { at: HEADER_LEN..HEADER_LEN + text.len(), name: FAILS.to_vec() };
                rename = refused.is_some().then(fails);
                Kind::Query { sent: self.clients[id].names.sent() }
            }
            Tag::FunctionCall => {
                // One that names no function is refused by the server.
                if let Some(oid) = body.first_chunk() {
                    let pins = pgweir_sql::function_call(u32::from_be_bytes(*oid));
                    let verdict = match self.judge_pins(id, server, kept(pins)) {
                        Verdict::Sent => self.claim_sequences(id, server, Uses::of(pins)),
                        verdict @ (Verdict::Refused(_) | Verdict::Later) => verdict,
                    };
                    match verdict {
                        Verdict::Sent => self.leaves(id, pins, None),
                        Verdict::Refused(report) => {
                            rename = Some(Rename::no_function());
                            refused = Some(report.into());
                        }
                        Verdict::Later => {
                            self.clients[id].holding = true;
                            return Taken::Nothing;
                        }
                    }
                }
                Kind::FunctionCall
            }
            Tag::Execute => Kind::Execute { sent: self.clients[id].names.sent() },
            Tag::Sync => Kind::Sync,
            Tag::CopyDone | Tag::CopyFail => {
                if !self.servers[server].replies.takes_copy_data() {
                    Mark::CopyEndTooLate.hit();
                    return swallow(&mut self.clients[id], header, rest);
                }
                Kind::CopyEnd
            }
            Tag::Parse | Tag::Bind | Tag::Describe | Tag::Close => {
                let named =
                    match self.named(id, server, tag, &rest[..HEADER_LEN + body.len()], whole) {
                        Ok(Some(named)) => named,
                        Ok(None) => return Taken::Nothing,
                        Err(_) if header.message_len() <= UNIT_HELD_BYTES => {
                            self.unreadable(id, tag)
                        }
                        Err(malformed) => {
                            Mark::NamesTooLong.hit();
                            self.violated(now, id, malformed);
                            return Taken::Gone;
                        }
                    };
                rename = named.rename;
                describe = named.describe;
                refused = named.refused;
                named.kind
            }
            Tag::CopyData | Tag::Flush => {
                if tag == Tag::CopyData && !self.servers[server].replies.takes_copy_data() {
                    Mark::CopyDataTooLate.hit();
                    return swallow(&mut self.clients[id], header, rest);
                }
                if tag == Tag::Flush {
                    self.servers[server].replies.flush();
                }
                return self.send(id, server, tag, header, rest, at, None);
            }
            Tag::Terminate => {
                self.client_leaves(now, id);
                return Taken::Gone;
            }
            Tag::Password => {
                self.violated(now, id, Malformed::UnknownTag(header.tag));
                return Taken::Gone;
            }
        };
        let is_run = refused.is_none();
        if let Some(refusal) = refused {
            self.note_refused(id, server, refusal);
        }
        self.expect(now, id, server, kind, !is_run);
        let taken = self.send(id, server, tag, header, rest, at, rename);
        if let Some(made) = describe {
            self.describe(server, made);
        }
        if tag == Tag::Query && is_run {
            let slot = self.clients[id].last_slot();
            self.scan_text(id, text, heard, slot);
        }
        taken
    }

    /// Whether a message must wait for replies: many are owed already. Or a new unit, until those
    /// in flight are settled: there are many of them, or others wait for a server, and a client
    /// that keeps its pipeline full must not keep its server for ever.
    fn must_hold(&self, id: ClientId, server: ServerId, tag: Tag) -> bool {
        let client = &self.clients[id];
        if self.servers[server].answer.is_some() {
            // What it is set to is said first.
            Mark::HeldForAnswer.hit();
            return tag != Tag::Terminate;
        }
        if client.awaits_ready() {
            Mark::HeldForReady.hit();
            return tag != Tag::Terminate;
        }
        let may_name = matches!(tag, Tag::Bind | Tag::FunctionCall | Tag::Parse | Tag::Query);
        let of = &self.servers[server];
        let must_know = may_name && of.elsewhere.is_none() && !of.dedicated;
        if must_know && !self.pools[of.pool].names_known {
            // A reload has changed which names matter, and another server is asked for them.
            // This one was promised to its client before that.
            Mark::HeldForCatalogue.hit();
            return true;
        }
        if client.resets().is_some() && client.slots.is_empty() {
            // They are put back once a cancel is over. No mark: PutBackBehindCancel says so.
            return tag != Tag::Terminate;
        }
        // A farewell asks for nothing more.
        let asks_nothing = matches!(
            tag,
            Tag::CopyData | Tag::CopyDone | Tag::CopyFail | Tag::Flush | Tag::Terminate
        );
        if client.slots.is_empty() || asks_nothing {
            return false;
        }
        let server = &self.servers[server];
        if server.replies.is_full() {
            Mark::RepliesFull.hit();
            return true;
        }
        if client.open_slot.is_some() || server.replies.ignores_sync() {
            // Neither a batch nor a COPY ends without what comes now.
            return false;
        }
        if client.slots.len() >= UNITS_UNDER_WAY {
            Mark::UnitsFull.hit();
            return true;
        }
        if client.resets().is_some() {
            // What the client has asked for at its login is put back first.
            Mark::HeldForReset.hit();
            return true;
        }
        if server.mode == PoolMode::Statement {
            Mark::HeldInStatementMode.hit();
            // If the one before begins a transaction there is no next one.
            return true;
        }
        let would_be_given_back =
            server.status == TransactionStatus::Idle && !self.keeps_server(client, server);
        let pool = &self.pools[server.pool];
        let others_wait = pool.waiting > 0 || pool.owes_since.is_some() || server.doomed;
        let must_part = others_wait || server.reset || !server.unseen.is_empty();
        let holds = would_be_given_back && must_part;
        Mark::HeldForOthers.hit_if(holds);
        holds
    }

    /// Notes what a message will be answered with. `fails`: it is made to.
    fn expect(&mut self, now: Time, id: ClientId, server: ServerId, kind: Kind, fails: bool) {
        let client = &mut self.clients[id];
        let server = &mut self.servers[server];
        let inside_copy = matches!(kind, Kind::Sync) && server.replies.ignores_sync();
        if inside_copy || matches!(kind, Kind::CopyEnd) {
            // Only noted: it has no reply and belongs to no unit.
            Mark::SyncInsideCopy.hit_if(inside_copy);
            let sink = Sink::Own;
            server.replies.push(Expected { kind, sink });
            return;
        }
        if client.slots.is_empty() {
            client.held_since = None;
            client.silence_told = false;
            client.requested = client.asked.map_or(now, |asked| asked.since);
            server.unit_since = now;
            server.unit_waited = client.requested < now;
            if !server.status.in_block() {
                server.transaction_since = now;
            }
        }
        let slot = client.slot_of_unit();
        match kind {
            // A Query or a FunctionCall behind an open batch ends it too.
            Kind::Query { .. } | Kind::FunctionCall if client.open_slot.is_some() => {
                Mark::BatchEndedByQuery.hit();
                client.mixed = true;
                client.open_slot = None;
                client.unnamed_here = UnnamedHere::No;
                client.unnamed_names = None;
            }
            Kind::Sync | Kind::Query { .. } | Kind::FunctionCall => {
                client.open_slot = None;
                client.unnamed_here = UnnamedHere::No;
                client.unnamed_names = None;
            }
            _ => client.open_slot = Some(slot),
        }
        let sink = if fails { Sink::Refused(slot) } else { Sink::Client(slot) };
        if !server.replies.push(Expected { kind, sink }) && client.open_slot != Some(slot) {
            Mark::UnitSkippedWhenSent.hit();
            client.unanswered(slot);
        }
    }

    /// Sends a message on, as much of it as has come, with another name in it perhaps.
    #[expect(clippy::too_many_arguments, reason = "the parts of one message, split once")]
    fn send(
        &mut self,
        id: ClientId,
        server: ServerId,
        tag: Tag,
        header: Header,
        rest: &[u8],
        at: usize,
        rename: Option<Rename>,
    ) -> Taken {
        let n = rest.len().min(header.message_len());
        Mark::MessageFromClientInPieces.hit_if(n < header.message_len());
        let to = Endpoint::Server(server);
        let from = match rename {
            None => 0,
            Some(Rename { at: old, name }) => {
                let before = &rest[HEADER_LEN..old.start];
                self.actions.inject(to, |out| {
                    frontend::write_renamed(out, header, before, &name, old.len());
                });
                old.end
            }
        };
        self.actions.forward(to, at + from..at + n);
        self.servers[server].used = true;
        let client = &mut self.clients[id];
        client.asked = None;
        client.alone = false;
        client.lost = None;
        let body = &mut client.body;
        body.left = header.message_len() - n;
        body.fate = Fate::Forward;
        body.ends_unit = matches!(tag, Tag::Query | Tag::FunctionCall);
        Taken::Bytes(n)
    }

    /// A client sent what the protocol does not allow. Like PostgreSQL we end the connection: its
    /// stream cannot be trusted any further.
    pub(crate) fn violated(&mut self, now: Time, id: ClientId, malformed: Malformed) {
        Mark::ProtocolViolated.hit();
        let text = match malformed {
            Malformed::UnknownTag(tag) => format!("invalid frontend message type {tag}"),
            _ => malformed.to_string(),
        };
        self.expel(now, id, VIOLATION.report(&[&text]));
    }
}

/// The header and type of the message at the front.
pub(crate) fn message(rest: &[u8]) -> Result<Option<(Header, Tag)>, Malformed> {
    match Header::parse(rest)? {
        None => Ok(None),
        Some(header) => match Tag::of(header)? {
            // It would be answered with an error; as it is, a Flush has no reply of its own.
            Tag::Flush if header.body_len > 0 => Err(Malformed::TrailingBytes),
            tag => Ok(Some((header, tag))),
        },
    }
}

/// Whether what a message says matters to us: what can be read at once is not read in pieces.
fn is_read(tag: Tag) -> bool {
    match tag {
        Tag::Bind | Tag::Close | Tag::Describe | Tag::FunctionCall | Tag::Parse | Tag::Query => {
            true
        }
        Tag::CopyData
        | Tag::CopyDone
        | Tag::CopyFail
        | Tag::Execute
        | Tag::Flush
        | Tag::Password
        | Tag::Sync
        | Tag::Terminate => false,
    }
}

/// Whether the names of a message lie in what is waited for, however much more has come already.
fn ends_in_time(names: usize) -> Result<(), Malformed> {
    if HEADER_LEN + names > UNIT_HELD_BYTES { Err(Malformed::Truncated) } else { Ok(()) }
}

/// Drops a message, as much of it as has come.
fn swallow(client: &mut Client, header: Header, rest: &[u8]) -> Taken {
    let n = rest.len().min(header.message_len());
    client.body = Body { left: header.message_len() - n, ..Body::NONE };
    Taken::Bytes(n)
}

pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

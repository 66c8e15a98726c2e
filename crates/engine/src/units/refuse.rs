//! Units that are not run but answered by us.

use std::rc::Rc;

use pgweir_sql::{PinReason, Pins, begins, classify, function_call, overrides};
use pgweir_wire::backend::{self, Report};
use pgweir_wire::frontend::{Bind, Parse, Tag};
use pgweir_wire::{HEADER_LEN, Header, Severity};

use super::{Taken, UNIT_HELD_BYTES, message, swallow, until_nul};
use crate::Engine;
use crate::action::{ClientId, Endpoint};
use crate::client::{Client, LostTransaction, UnitRest, UnnamedStatement};
use crate::errors::MORE_BEHIND;
use crate::loss::{chains_lost, gives_up};
use crate::marks::Mark;
use crate::prepared::Names;
use crate::readers::Front;
use crate::time::Time;

impl Engine {
    /// Whether what a client sends next is a unit that is not run, or the rest of one.
    pub(super) fn is_refused(&self, id: ClientId) -> bool {
        let client = &self.clients[id];
        client.rest == UnitRest::Batch || client.refusal.is_some()
    }

    /// A message of a unit that is not run but answered by us. This is sound only where no
    /// transaction is involved: it has no server, or that was kept for it and was sent nothing.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        id: ClientId,
        tag: Tag,
        header: Header,
        rest: &[u8],
    ) -> Taken {
        let client = &mut self.clients[id];
        let whole = rest.len() >= header.message_len();
        let in_batch = client.rest == UnitRest::Batch;
        if !whole && client.refusal.is_none() && rest.len() < UNIT_HELD_BYTES {
            // Whether something may rest on it is asked of the whole.
            Mark::PassedMessageInPieces.hit();
            return Taken::Nothing;
        }
        if client.answer_waits() {
            // Or refusals would pile up, each of which costs its client next to nothing.
            Mark::RefusalUnread.hit();
            return Taken::Nothing;
        }
        client.unfinished = None;
        Mark::RefusedBatchGoesOn.hit_if(client.refusal.is_none());
        // In a transaction that was lost PostgreSQL itself refuses what stands behind.
        let behind = match client.lost {
            Some(LostTransaction::Told | LostTransaction::Untold) => Behind::Nothing,
            None if client.refusal.is_some() => behind(rest, client.unnamed.text(), &client.names),
            None => behind_passed(tag, header, rest, client),
        };
        let refusal = client.refusal.take();
        client.bears = behind == Behind::Unknown;
        client.rest = match (ends_unit(tag, in_batch), whole) {
            (true, true) => UnitRest::None,
            (true, false) => {
                Mark::RefusedInPieces.hit();
                UnitRest::Message
            }
            (false, _) => UnitRest::Batch,
        };
        if behind == Behind::More {
            Mark::RefusedUnitBoreMore.hit();
            let report = refusal.map_or_else(|| MORE_BEHIND.report(&[]), |report| *report);
            self.expel(now, id, Report { severity: Severity::Fatal, ..report });
            return Taken::Gone;
        }
        if let Some(report) = refusal {
            Mark::UnitRefused.hit();
            if replaces_unnamed(tag, header, rest) {
                client.unnamed = UnnamedStatement::None;
            }
            client.quiet_since = now;
            self.actions.inject(Endpoint::Client(id), |out| report.write(out));
        }
        if self.clients[id].rest == UnitRest::None {
            self.tell_ready(now, id);
        }
        swallow(&mut self.clients[id], header, rest)
    }

    /// No server takes what a client has set, and its unit may be what takes it back: on a
    /// connection of its own nothing would keep that from running. So what it overrides is set
    /// aside, and a server is asked for once more.
    pub(super) fn look_for_cure(&mut self, id: ClientId, tag: Tag, header: Header, rest: &[u8]) {
        let client = &mut self.clients[id];
        if !std::mem::take(&mut client.settings_refused) || rest.len() < header.message_len() {
            return;
        }
        let text = text_of(tag, &rest[HEADER_LEN..header.message_len()]);
        let Some(what) = overrides(text) else { return };
        let settings = self.interner.intern(client.settings.without(&what, &client.startup));
        if !Rc::ptr_eq(&settings, &client.settings) {
            Mark::CureTried.hit();
            client.settings = settings;
            client.refusal = None;
        }
    }

    /// The rest of a message has been passed on, or dropped, and this stands behind it. Says
    /// whether its client is still there.
    pub(super) fn unit_passed(&mut self, now: Time, id: ClientId, behind: &[u8]) -> bool {
        let client = &mut self.clients[id];
        if client.rest != UnitRest::Message {
            return true;
        }
        client.rest = UnitRest::None;
        if std::mem::take(&mut client.bears) && more_follows(behind) {
            Mark::PassedUnitBoreMore.hit();
            self.expel(now, id, MORE_BEHIND.report(&[]));
            return false;
        }
        self.tell_ready(now, id);
        true
    }

    /// All of a unit that is answered by us has come.
    fn tell_ready(&mut self, now: Time, id: ClientId) {
        let client = &mut self.clients[id];
        client.quiet_since = now;
        let status = client.status();
        self.actions.inject(Endpoint::Client(id), |out| backend::ready_for_query(out, status));
    }
}

/// Whether a message ends the unnamed statement even where it fails itself: PostgreSQL drops it
/// before it looks at the text (`exec_simple_query`, `exec_parse_message`, postgres.c).
fn replaces_unnamed(tag: Tag, header: Header, rest: &[u8]) -> bool {
    let body = &rest[HEADER_LEN..rest.len().min(header.message_len())];
    match tag {
        Tag::Query => true,
        // A name that does not end in as much as is waited for is not empty, and where it cannot be
        // read PostgreSQL does not come as far as that.
        Tag::Parse => Parse::start(body).is_ok_and(|parse| parse.name.is_empty()),
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

/// Whether a unit may begin with such a message: a Sync alone does nothing.
pub(crate) fn begins_unit(tag: Tag) -> bool {
    match tag {
        Tag::Bind
        | Tag::Close
        | Tag::Describe
        | Tag::Execute
        | Tag::FunctionCall
        | Tag::Parse
        | Tag::Query => true,
        Tag::CopyData
        | Tag::CopyDone
        | Tag::CopyFail
        | Tag::Flush
        | Tag::Password
        | Tag::Sync
        | Tag::Terminate => false,
    }
}

/// Whether a unit that is not run ends with this message: behind an error a Query is passed over
/// like the rest of its batch.
fn ends_unit(tag: Tag, in_batch: bool) -> bool {
    match tag {
        Tag::Sync => true,
        Tag::FunctionCall | Tag::Query => !in_batch,
        Tag::Bind
        | Tag::Close
        | Tag::CopyData
        | Tag::CopyDone
        | Tag::CopyFail
        | Tag::Describe
        | Tag::Execute
        | Tag::Flush
        | Tag::Parse
        | Tag::Password
        | Tag::Terminate => false,
    }
}

/// Tells what stands behind the unit at the front, sent without a look at its answer: what was to
/// be done in a transaction would be done outside of one. `unnamed` is the text of the unnamed
/// statement.
fn behind<'a>(mut rest: &'a [u8], mut unnamed: &'a [u8], names: &Names) -> Behind {
    let mut found = false;
    let mut in_batch = false;
    while let Ok(Some((header, tag))) = message(rest) {
        let whole = rest.len() >= header.message_len();
        let message = &rest[..header.message_len().min(rest.len())];
        if replaces_unnamed(tag, header, rest) {
            unnamed = text_of(tag, &message[HEADER_LEN..]);
        }
        found |= bears(tag, message, whole, unnamed, names);
        rest = &rest[message.len()..];
        if whole && ends_unit(tag, in_batch) {
            return if found && more_follows(rest) { Behind::More } else { Behind::Nothing };
        }
        in_batch = true;
    }
    if found { Behind::Unknown } else { Behind::Nothing }
}

/// The same where messages of a batch that was refused, or lost, are dropped, this one now.
fn behind_passed(tag: Tag, header: Header, rest: &[u8], client: &Client) -> Behind {
    let (message, behind) = rest.split_at(header.message_len().min(rest.len()));
    let whole = message.len() == header.message_len();
    let unnamed = client.unnamed.text();
    let found = client.bears || bears(tag, message, whole, unnamed, &client.names);
    match (found, tag) {
        (false, _) => Behind::Nothing,
        (true, Tag::Sync) if more_follows(behind) => Behind::More,
        (true, Tag::Sync) => Behind::Nothing,
        (true, _) => Behind::Unknown,
    }
}

/// Whether something may rest on what has come of a message: it begins a transaction, or leaves a
/// trace in the session. Of SQL whose end is not there nobody knows. `unnamed` is the text of the
/// unnamed statement.
fn bears(tag: Tag, message: &[u8], whole: bool, unnamed: &[u8], names: &Names) -> bool {
    let body = &message[HEADER_LEN..];
    match tag {
        Tag::Bind => {
            let name = Bind::start(body).map_or(&[][..], |bind| bind.statement);
            bears_more(if name.is_empty() { unnamed } else { names.text(name) })
        }
        Tag::FunctionCall => match body.first_chunk() {
            Some(oid) => !function_call(u32::from_be_bytes(*oid)).is_empty(),
            None => !whole,
        },
        Tag::Parse | Tag::Query => !whole || bears_more(text_of(tag, body)),
        Tag::Close
        | Tag::CopyData
        | Tag::CopyDone
        | Tag::CopyFail
        | Tag::Describe
        | Tag::Execute
        | Tag::Flush
        | Tag::Password
        | Tag::Sync
        | Tag::Terminate => false,
    }
}

/// The same of a text.
fn bears_more(text: &[u8]) -> bool {
    let passing = [
        PinReason::Commit,
        PinReason::Ends,
        PinReason::LastValue,
        PinReason::Names,
        PinReason::Sequence,
        PinReason::Transient,
        PinReason::Unlisten,
    ];
    let left = passing.into_iter().fold(classify(text), Pins::without);
    begins(text) || !left.is_empty()
}

/// The SQL in a message, if it has any.
fn text_of(tag: Tag, body: &[u8]) -> &[u8] {
    match tag {
        Tag::Query => until_nul(body),
        Tag::Parse => Parse::start(body).map_or(&[][..], |parse| parse.text),
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
        | Tag::Terminate => &[],
    }
}

/// What is told from the message at the front of what somebody has sent, whoever that is.
pub(crate) fn front(bytes: &[u8]) -> Option<Front> {
    let (header, tag) = message(bytes).ok()??;
    let message = &bytes[..header.message_len().min(bytes.len())];
    let whole = message.len() == header.message_len();
    Some(Front {
        bears: bears(tag, message, whole, b"", &Names::default()),
        chains: chains_lost(tag, &message[HEADER_LEN..], whole),
        gives_up: gives_up(tag, header, bytes),
    })
}

/// What stands behind a unit that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// Nothing that could rest on it.
    Nothing,
    /// The unit has not come in whole, and something may rest on what has.
    Unknown,
    /// More, which may rest on it.
    More,
}

/// Whether a client has sent anything more than that it leaves. A Flush asks for nothing, nor does
/// a Sync by itself, nor do the data of a COPY and their end, which may be what the unit in front
/// of them is for.
pub(crate) fn more_follows(mut rest: &[u8]) -> bool {
    while let Ok(Some((header, tag))) = message(rest) {
        match tag {
            Tag::CopyData | Tag::CopyDone | Tag::CopyFail | Tag::Flush | Tag::Sync => {
                rest = rest.get(header.message_len()..).unwrap_or_default();
            }
            Tag::Terminate => return false,
            Tag::Bind
            | Tag::Close
            | Tag::Describe
            | Tag::Execute
            | Tag::FunctionCall
            | Tag::Parse
            | Tag::Password
            | Tag::Query => return true,
        }
    }
    // Of the next message there is no more than a part of its header, or it is none: CopyData,
    // CopyDone, CopyFail, Flush, Sync, Terminate.
    rest.first().is_some_and(|tag| !b"dcfHSX".contains(tag))
}

/// Whether there is something that asks for an answer: a Flush, a farewell and what belongs to a
/// COPY do not, but something may stand behind them.
pub(crate) fn asks_for_more(mut rest: &[u8]) -> bool {
    while let Some(tag) = rest.first() {
        if !b"Hcdf".contains(tag) {
            return *tag != b'X';
        }
        let Ok(Some((header, _))) = message(rest) else { return false };
        rest = rest.get(header.message_len()..).unwrap_or_default();
    }
    false
}

//! Units that are not run but answered by us.

use pgweir_sql::{PinReason, Pins, begins, classify};
use pgweir_wire::backend::{self, Report};
use pgweir_wire::frontend::{Bind, Parse, Tag};
use pgweir_wire::{HEADER_LEN, Header, Severity};

use super::{Taken, message, swallow, until_nul};
use crate::Engine;
use crate::action::{ClientId, Endpoint};
use crate::client::{LostTransaction, UnnamedStatement};
use crate::errors::CUT_OFF;
use crate::marks::Mark;
use crate::time::Time;

/// The DETAIL for a client of which more comes behind a batch that was refused.
const BORE: &str = "A statement was refused, and what was sent behind it may rest on it.";

impl Engine {
    /// A message of a unit that is not run but answered by us. This is sound only here, where no
    /// server and so no transaction is involved.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        id: ClientId,
        tag: Tag,
        header: Header,
        rest: &[u8],
    ) -> Taken {
        let client = &mut self.clients[id];
        client.unfinished = None;
        let ready = match tag {
            Tag::Query | Tag::FunctionCall => !client.skipping,
            Tag::Sync => true,
            _ => {
                client.skipping = true;
                false
            }
        };
        Mark::RefusedBatchGoesOn.hit_if(client.refusal.is_none());
        // In a transaction that was lost PostgreSQL itself refuses what stands behind.
        let behind = match client.lost {
            Some(LostTransaction::Told | LostTransaction::Untold) => Behind::Nothing,
            None if client.refusal.is_some() => behind(rest, client.unnamed.text()),
            None => behind_skipped(tag, header, rest, client.bears),
        };
        let refusal = client.refusal.take();
        client.bears = behind == Behind::Unknown;
        if behind == Behind::More {
            Mark::RefusedUnitBoreMore.hit();
            let report = refusal.map_or_else(|| CUT_OFF.report(&[]).detail(BORE), |report| *report);
            self.expel(now, id, Report { severity: Severity::Fatal, ..report });
            return Taken::Gone;
        }
        if let Some(report) = refusal {
            Mark::UnitRefused.hit();
            if replaces_unnamed(tag, header, rest) {
                client.unnamed = UnnamedStatement::None;
            }
            self.actions.inject(Endpoint::Client(id), |out| report.write(out));
        }
        let client = &mut self.clients[id];
        if ready {
            client.skipping = false;
            client.quiet_since = now;
            let status = client.status();
            self.actions.inject(Endpoint::Client(id), |out| backend::ready_for_query(out, status));
        }
        swallow(client, header, rest)
    }
}

/// Whether a message ends the unnamed statement even where it fails itself: PostgreSQL drops it
/// before it looks at the text (`exec_simple_query`, `exec_parse_message`, postgres.c).
fn replaces_unnamed(tag: Tag, header: Header, rest: &[u8]) -> bool {
    let body = &rest[HEADER_LEN..rest.len().min(header.message_len())];
    match tag {
        Tag::Query => true,
        // A name that cannot be read may be none.
        Tag::Parse => Parse::start(body).map_or(true, |parse| parse.name.is_empty()),
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

/// Tells what stands behind the unit at the front, sent without a look at its answer: what was to
/// be done in a transaction would be done outside of one. `unnamed` is the text of the unnamed
/// statement.
fn behind<'a>(mut rest: &'a [u8], mut unnamed: &'a [u8]) -> Behind {
    let mut found = false;
    while let Ok(Some((header, tag))) = message(rest) {
        let whole = rest.len() >= header.message_len();
        let body = &rest[HEADER_LEN..header.message_len().min(rest.len())];
        let ends = matches!(tag, Tag::FunctionCall | Tag::Query | Tag::Sync);
        if replaces_unnamed(tag, header, rest) {
            unnamed = text_of(tag, body);
        }
        found |= match (tag, Bind::start(body)) {
            (Tag::Bind, Ok(bind)) => bind.statement.is_empty() && bears(unnamed),
            (Tag::Bind, Err(_)) => bears(unnamed),
            _ => bears(text_of(tag, body)),
        };
        match (found, ends, whole) {
            (_, false, true) => rest = &rest[header.message_len()..],
            (true, true, true) if more_follows(&rest[header.message_len()..]) => {
                return Behind::More;
            }
            (_, true, true) | (false, true, false) => return Behind::Nothing,
            // Nobody looks at what comes behind the rest of it.
            (true, true, false) => return Behind::More,
            (_, false, false) => break,
        }
    }
    if found { Behind::Unknown } else { Behind::Nothing }
}

/// The same where messages of a batch that was refused are dropped, this one now. `found`:
/// something may rest on one of them.
fn behind_skipped(tag: Tag, header: Header, rest: &[u8], found: bool) -> Behind {
    let end = header.message_len().min(rest.len());
    let found = found || bears(text_of(tag, &rest[HEADER_LEN..end]));
    match (found, tag) {
        (false, _) => Behind::Nothing,
        (true, Tag::Sync) if more_follows(&rest[end..]) => Behind::More,
        (true, Tag::Sync) => Behind::Nothing,
        (true, _) => Behind::Unknown,
    }
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

/// Whether something may rest on a text: it begins a transaction, or leaves a trace in the session.
fn bears(text: &[u8]) -> bool {
    let passing = [PinReason::Commit, PinReason::Sequence];
    let left = passing.into_iter().fold(classify(text), Pins::without);
    begins(text) || !left.is_empty()
}

/// Whether a client has sent anything more than that it leaves.
fn more_follows(rest: &[u8]) -> bool {
    !rest.is_empty() && !matches!(message(rest), Ok(Some((_, Tag::Terminate))))
}

//! Units that are not run but answered by us.

use pgweir_sql::{PinReason, Pins, begins, classify};
use pgweir_wire::backend::{self, Report};
use pgweir_wire::frontend::{Parse, Tag};
use pgweir_wire::{HEADER_LEN, Header, Severity};

use super::{Taken, message, swallow, until_nul};
use crate::Engine;
use crate::action::{ClientId, Endpoint};
use crate::marks::Mark;
use crate::time::Time;

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
        let bears = |_: &mut Box<Report>| client.lost.is_none() && bears_more(rest);
        if let Some(report) = client.refusal.take_if(bears) {
            Mark::RefusedUnitBoreMore.hit();
            self.expel(now, id, Report { severity: Severity::Fatal, ..*report });
            return Taken::Gone;
        }
        if let Some(report) = client.refusal.take() {
            Mark::UnitRefused.hit();
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

/// Whether more units stand behind the one at the front, sent without a look at its answer, that
/// may rest on it: what was to be done in a transaction would be done outside of one.
fn bears_more(mut rest: &[u8]) -> bool {
    let mut found = false;
    while let Ok(Some((header, tag))) = message(rest)
        && let Some(body) = rest.get(HEADER_LEN..header.message_len())
    {
        let (text, ends) = match tag {
            Tag::Query => (until_nul(body), true),
            Tag::Parse => (Parse::start(body).map_or(&[][..], |parse| parse.text), false),
            Tag::FunctionCall | Tag::Sync => (&[][..], true),
            Tag::Bind
            | Tag::Close
            | Tag::CopyData
            | Tag::CopyDone
            | Tag::CopyFail
            | Tag::Describe
            | Tag::Execute
            | Tag::Flush
            | Tag::Password
            | Tag::Terminate => (&[][..], false),
        };
        found |= bears(text);
        rest = &rest[header.message_len()..];
        if ends {
            return found && !rest.is_empty() && !is_farewell(rest);
        }
    }
    false
}

/// Whether something may rest on a text: it begins a transaction, or leaves a trace in the session.
fn bears(text: &[u8]) -> bool {
    let passing = [PinReason::Commit, PinReason::Sequence];
    let left = passing.into_iter().fold(classify(text), Pins::without);
    begins(text) || !left.is_empty()
}

/// Whether a client only says that it leaves.
fn is_farewell(rest: &[u8]) -> bool {
    matches!(message(rest), Ok(Some((_, Tag::Terminate))))
}

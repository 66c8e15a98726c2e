//! What is sent inside of a COPY and is no part of it.
//!
//! Where a server reads COPY data, any message that is none ends the session (`CopyGetData`,
//! copyfromparse.c, which loses its place in the stream). But the COPY may have failed by then, by
//! itself and before it read: of a view, or by a trigger. Then the message is carried out like any
//! other, and what it names has to be there. Nothing shows the one from the other before the error
//! comes, and where data are read none comes but of what is sent now. So an empty query goes ahead,
//! which does the same in the one case and nothing in the other, and the message waits.

use pgweir_wire::backend::ErrorFields;
use pgweir_wire::frontend::{self, Tag};
use pgweir_wire::{HEADER_LEN, Header, SqlState};

use super::begins_unit;
use crate::Engine;
use crate::action::{Endpoint, ServerId};
use crate::marks::Mark;
use crate::reply::{Expected, Kind, Sink};
use crate::time::Time;

/// How PostgreSQL names the query that goes ahead.
const AHEAD: &[u8] = b"0x51";

impl Engine {
    /// Whether a message waits until it shows whether its server reads COPY data.
    pub(super) fn tries_copy(&mut self, now: Time, id: ServerId, tag: Tag, header: Header) -> bool {
        let server = &mut self.servers[id];
        if server.replies.awaits_trial() {
            return true;
        }
        server.tried_for = None;
        if !server.replies.ignores_sync() || !begins_unit(tag) {
            return false;
        }
        Mark::CopyTried.hit();
        server.tried_for = Some(header.tag);
        server.note_fed(now);
        let kind = Kind::Query { sent: 0 };
        server.replies.push(Expected { kind, sink: Sink::Aside });
        self.actions.inject(Endpoint::Server(id), |out| frontend::write_query(out, b""));
        true
    }

    /// Forwards or drops an error of this length, of which this much is there. One that names the
    /// query which went ahead names the message that waits.
    pub(crate) fn pass_error(
        &mut self,
        id: ServerId,
        heard: bool,
        body: &[u8],
        at: usize,
        length: usize,
    ) {
        let n = HEADER_LEN + body.len();
        let server = &self.servers[id];
        let waits = server.tried_for.filter(|_| heard && n == length);
        let (Some(told), Some(client)) =
            (waits.and_then(|tag| told_as(body, tag)), server.client())
        else {
            return self.pass(id, heard, at, n, length);
        };
        self.actions.inject(Endpoint::Client(client), |out| {
            out.push(b'E');
            out.extend_from_slice(&((length - 1) as u32).to_be_bytes());
            out.extend_from_slice(&told);
        });
        self.pass(id, false, at, n, length);
    }
}

/// The body of an error at the query that went ahead as that of one at a message with this tag.
fn told_as(body: &[u8], tag: u8) -> Option<Vec<u8>> {
    let lost = ErrorFields::start(body).code == Some(SqlState::PROTOCOL_VIOLATION);
    let at = body.windows(AHEAD.len()).position(|text| text == AHEAD).filter(|_| lost)?;
    let mut told = body.to_vec();
    told[at..at + AHEAD.len()].copy_from_slice(format!("0x{tag:02X}").as_bytes());
    Some(told)
}

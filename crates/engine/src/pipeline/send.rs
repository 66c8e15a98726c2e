//! A unit is sent to a server that is shared, and what that must have for it is made there first.

use std::rc::Rc;
use std::time::Duration;

use pgweir_wire::frontend::{self, Bind, Tag, Target};
use pgweir_wire::{HEADER_LEN, Header};

use super::joined::SyncOf;
use super::repute::May;
use super::{InFlight, Need, Outcome, Unit};
use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{Leg, Slot};
use crate::marks::Mark;
use crate::prepared::{Rows, Statement, Under};
use crate::reply::{Closes, Described, Expected, Kind, Made, Makes, Sink};
use crate::server::Server;
use crate::time::Time;
use crate::units::{message, until_nul};

impl Engine {
    /// Sends a unit, whole.
    pub(super) fn send_unit(
        &mut self,
        now: Time,
        id: ClientId,
        server: ServerId,
        unit: Unit,
        rest: &[u8],
        at: usize,
    ) {
        Mark::UnitShares.hit();
        let client = &mut self.clients[id];
        let asked = client.asked.take();
        let since = asked.map_or(now, |asked| asked.since);
        client.unit = None;
        client.unfinished = None;
        client.held_since = None;
        client.silence_told = false;
        client.requested = since;
        client.settings_refused = false;
        client.leg = Leg::Pipelined(server);
        client.holding = client.ended || rest.len() > unit.bytes;
        let slot = client.slot_of_unit();
        let its = &mut self.servers[server];
        debug_assert!(unit.access.waits() || !its.has_waiting(), "a read is behind a write");
        its.note_fed(now);
        // Those to which it may be joined are at the head as it is.
        let behind = its.replies.is_ours() || its.pipeline.iter().any(|unit| !unit.joined);
        let trails = self.pools[its.pool].repute.of(now, unit.print) != May::Lead;
        Mark::OnTrial.hit_if(trails && behind);
        let of_pool = its.pool;
        let hot = self.shared_by(of_pool, unit.access);
        let climb = self.pools[of_pool].climbs.of_mut(unit.access);
        let last = &mut self.clients[id].slices[usize::from(unit.access.waits())];
        let its = &mut self.servers[server];
        climb.sent(hot, asked.is_some(), its.pipeline.len(), last);
        if its.pipeline.is_empty() {
            its.unit_since = now;
            its.unit_waited = since < now;
            its.transaction_since = now;
        }
        let stats = &mut self.pools[its.pool].stats;
        stats.assignments += 1;
        if !behind {
            stats.delays.count(Duration::ZERO);
        }
        let sync = self.joins(server, &unit);
        let joined = sync == SyncOf::Later;
        let mut converted = false;
        let mut done = 0;
        while done < unit.bytes {
            // It was read before, message by message.
            let Ok(Some((header, tag))) = message(&rest[done..unit.bytes]) else { break };
            let from = done;
            done += header.message_len();
            if joined && tag == Tag::Sync {
                break;
            }
            if sync != SyncOf::Itself && tag == Tag::Query {
                converted = true;
                let text = until_nul(&rest[from + HEADER_LEN..done]);
                self.send_as_batch(server, slot, text, joined);
                break;
            }
            self.send_message(id, server, slot, (tag, header), &rest[from..done], at + from);
        }
        self.servers[server].pipeline.push_back(InFlight {
            client: Some(id),
            slot,
            bytes: unit.bytes,
            access: unit.access,
            print: unit.print,
            loud: unit.loud,
            trails,
            since,
            sent: now,
            held: 0,
            outcome: Outcome::Answered,
            undone: false,
            cancelled: false,
            ends_unnamed: unit.ends_unnamed,
            may_be_hit: false,
            converted,
            joined,
            fresh: None,
        });
    }

    /// A Query goes to a server as what does the same under a Sync of others.
    fn send_as_batch(&mut self, server: ServerId, slot: Slot, text: &[u8], joined: bool) {
        Mark::QueryConverted.hit();
        let replies = &mut self.servers[server].replies;
        let converted = Sink::Converted(slot);
        replies.push(Expected { kind: Kind::Parse { makes: Makes::Query }, sink: converted });
        replies.push(Expected { kind: Kind::Bind, sink: converted });
        replies.push(Expected { kind: Kind::DescribePortal, sink: converted });
        let client = Sink::Client(slot);
        replies.push(Expected { kind: Kind::Execute { sent: 0 }, sink: client });
        if !joined {
            replies.push(Expected { kind: Kind::Sync, sink: client });
        }
        self.actions.inject(Endpoint::Server(server), |out| {
            frontend::write_parse(out, b"", text, &[]);
            frontend::write_bind(out, b"", b"", &[]);
            frontend::write_describe(out, Target::Portal(b""));
            frontend::write_execute(out, b"", 0);
            if !joined {
                out.extend_from_slice(&frontend::SYNC);
            }
        });
    }

    fn send_message(
        &mut self,
        id: ClientId,
        server: ServerId,
        slot: Slot,
        (tag, header): (Tag, Header),
        whole: &[u8],
        at: usize,
    ) {
        let body = &whole[HEADER_LEN..];
        let mut named = None;
        let kind = match tag {
            Tag::Query => Kind::Query { sent: 0 },
            Tag::Parse => Kind::Parse { makes: Makes::Unnamed(Rc::from(whole)) },
            Tag::Bind => {
                if let Ok(bind) = Bind::start(body) {
                    named = Some((HEADER_LEN + bind.portal.len() + 1, bind.statement));
                }
                Kind::Bind
            }
            Tag::Describe => match Target::parse(body) {
                Ok(Target::Statement(name)) => {
                    named = Some((HEADER_LEN + 1, name));
                    let of = if name.is_empty() { Described::Unnamed } else { Described::Named };
                    Kind::DescribeStatement { of }
                }
                Ok(Target::Portal(_)) | Err(_) => Kind::DescribePortal,
            },
            Tag::Execute => Kind::Execute { sent: 0 },
            Tag::Close => Kind::ClosePortal,
            Tag::Sync => Kind::Sync,
            Tag::CopyData
            | Tag::CopyDone
            | Tag::CopyFail
            | Tag::Flush
            | Tag::FunctionCall
            | Tag::Password
            | Tag::Terminate => return,
        };
        let its = &mut self.servers[server];
        its.replies.push(Expected { kind, sink: Sink::Client(slot) });
        let stats = &mut self.pools[its.pool].stats;
        stats.parses += u64::from(tag == Tag::Parse);
        stats.binds += u64::from(tag == Tag::Bind);
        let to = Endpoint::Server(server);
        let statement = named.filter(|(_, name)| !name.is_empty()).and_then(|(start, name)| {
            let statement = self.clients[id].names.known(name)?;
            its.shelf.touch(&statement);
            Some((start, name.len(), statement.name()))
        });
        match statement {
            None => self.actions.forward(to, at..at + whole.len()),
            Some((start, length, name)) => {
                self.actions.inject(to, |out| {
                    let before = &body[..start - HEADER_LEN];
                    frontend::write_renamed(out, header, before, &name, length);
                });
                self.actions.forward(to, at + start + length..at + whole.len());
            }
        }
    }

    /// Has a shared server make what a unit needs and is not there, by a unit of our own.
    pub(super) fn provide(&mut self, now: Time, id: ServerId, unit: &Unit) {
        let server = &self.servers[id];
        let is_busy = server.replaying.is_some() || server.providing.is_some();
        if is_busy || server.reserved || !server.shelf.is_settled() {
            return;
        }
        let lacks = |need: &&Need| !has(server, need);
        let Some(need) = unit.needs.iter().find(lacks).cloned() else { return };
        let most = self.pools[server.pool].spec.prepared_statements.max(1);
        let statement = need.statement;
        self.end_joined(id);
        let server = &mut self.servers[id];
        let own = |kind| Expected { kind, sink: Sink::Own };
        // What it needs besides stays, however many that are: or one would be made in the place of
        // the other without end.
        unit.needs.iter().for_each(|need| server.shelf.touch(&need.statement));
        let stays = |old: &Rc<Statement>| unit.needs.iter().any(|need| need.is(old));
        let is_there = server.shelf.find(&statement).is_some();
        let old = match is_there {
            true => Some(Rc::clone(&statement)),
            false => server.shelf.surplus(most, OURS).filter(|old| !stays(old)),
        };
        if old.is_some() && server.granted > 0 {
            // It may be what a unit needs that is about to be sent.
            return Mark::MakingPutOff.hit();
        }
        Mark::StatementMadeAhead.hit();
        if let Some(old) = old {
            let (rows, under) = server.shelf.remove(&old, OURS);
            let closes = Closes::Shared(Rc::clone(&old), rows, under);
            server.replies.push(own(Kind::CloseStatement { closes }));
            let name = old.name();
            self.actions.inject(Endpoint::Server(id), |out| {
                frontend::write_close(out, Target::Statement(&name));
            });
        }
        let made = Rc::new(Made { statement: Rc::clone(&statement), name: None });
        server.own_error = None;
        server.changed = now;
        server.note_fed(now);
        server.providing = Some(Rc::clone(&statement));
        let told = need.told.as_deref();
        let parameters = told.map(|told| Rc::from(told.parameters()));
        server.shelf.put(Rc::clone(&statement), OURS, Under::Its, parameters);
        let makes = Makes::Shared(Rc::clone(&made));
        server.replies.push(own(Kind::Parse { makes }));
        server.replies.push(own(Kind::DescribeStatement { of: Described::Shared(made) }));
        server.replies.push(own(Kind::Sync));
        self.pools[server.pool].stats.own_parses += 1;
        let (name, definition) = (statement.name(), statement.definition_for(told));
        self.actions.inject(Endpoint::Server(id), |out| {
            frontend::write_parse_of(out, &name, &definition);
            frontend::write_describe(out, Target::Statement(&name));
            out.extend_from_slice(&frontend::SYNC);
        });
    }
}

/// The unit of our own that makes statements ahead.
const OURS: Slot = Slot(u32::MAX);

/// Whether a server has all statements that a unit needs, as its client was told of them.
pub(super) fn provides(server: &Server, unit: &Unit) -> bool {
    unit.needs.iter().all(|need| has(server, need))
}

/// Whether it has one of them.
pub(super) fn has(server: &Server, need: &Need) -> bool {
    let (shelf, statement) = (&server.shelf, &need.statement);
    let Some(made) = shelf.find(statement) else { return false };
    let is_it = match (&made.rows, need.told.as_deref()) {
        (_, None) => true,
        (_, Some(told)) if !told.has_rows() && shelf.is_made_with(statement, told.parameters()) => {
            true
        }
        (Rows::Known(rows), Some(told)) => told.allows(rows),
        (Rows::Unknown, Some(_)) => true,
        (Rows::Awaited | Rows::Missed, Some(_)) => {
            Mark::NeedUnderWay.hit();
            false
        }
    };
    is_it && shelf.is_known(statement) && shelf.is_read(statement, false)
}

//! Statements that a client has prepared by the protocol and names in SQL.
//!
//! The server knows them by names of ours, so before the text is sent they are given the client's
//! own.

use std::rc::Rc;

use pgweir_sql::{Deallocated, PinReason, Pins};
use pgweir_wire::frontend::{self, Target};

use super::names::held_for_name;
use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{Deallocates, Slot};
use crate::marks::Mark;
use crate::prepared::{self, Meaning, Shown, Statement};
use crate::reply::{Closes, Described, Expected, Kind, Makes, Sink};
use crate::track::Said;

impl Engine {
    /// A client prepares a statement under a name that it has given already. On the server it is
    /// given to nothing, so that PostgreSQL would take it: now it is.
    pub(super) fn make_name_taken(&mut self, server: ServerId, name: &[u8]) {
        let its = &mut self.servers[server];
        // It may have been given there by an earlier message like this one.
        for kind in
            [Kind::CloseStatement { closes: Closes::Own }, Kind::Parse { makes: Makes::Own }]
        {
            if !its.replies.push(Expected { kind, sink: Sink::Injected }) {
                // No mark: nor is this one asked for where what is sent is skipped.
                return;
            }
        }
        // Behind the unit all of the session is thrown away, and so is this.
        its.reset = true;
        let escaped = prepared::escaped(name);
        let name = escaped.as_deref().unwrap_or(name);
        self.actions.inject(Endpoint::Server(server), |out| {
            frontend::write_close(out, Target::Statement(name));
            frontend::write_parse(out, name, b"", &[]);
        });
    }

    /// A text that is about to be sent may name what its client has prepared by the protocol, and
    /// the server knows by other names: it is told the client's. `goes_on`: this is not all that is
    /// sent, or it is not carried out now. `false`: which there are is known when earlier units are
    /// over.
    pub(super) fn show_names(
        &mut self,
        id: ClientId,
        server: ServerId,
        text: &[u8],
        goes_on: bool,
    ) -> bool {
        let client = &self.clients[id];
        if client.names.is_empty() || self.servers[server].replies.skips() {
            return true;
        }
        let names = self.names_prepared(server, &self.read_text(id, text));
        let removed = pgweir_sql::deallocated(text);
        // Of what stands behind it in its batch the server is to judge.
        let names = names || goes_on && removed == Some(Deallocated::All);
        let removed = removed.filter(|_| !goes_on);
        if !names && removed.is_none() {
            return true;
        }
        if self.names_are_under_way(id) {
            return false;
        }
        let in_batch = self.clients[id].open_slot.is_some();
        match removed.filter(|_| !in_batch) {
            // It is refused in any case.
            _ if self.servers[server].has_failed() => {}
            // What it says when it is done tells of it.
            Some(Deallocated::All) => self.clients[id].remove_names(),
            Some(Deallocated::One(name)) => self.show_removed(id, server, name.as_bytes()),
            // When what is parsed is carried out, if ever, is not looked at.
            None => return self.show_all(id, server),
        }
        true
    }

    /// Whether it is known only when earlier units are over which names a client has.
    pub(super) fn names_are_under_way(&self, id: ClientId) -> bool {
        let client = &self.clients[id];
        let under_way = client.has_units_before() || client.deallocates.is_some();
        if under_way {
            held_for_name();
        }
        under_way
    }

    /// A DEALLOCATE is about to be sent: it finds its name, given to nothing.
    pub(super) fn show_removed(&mut self, id: ClientId, server: ServerId, name: &[u8]) {
        let client = &mut self.clients[id];
        let slot = client.coming_slot();
        let Meaning::Known(..) = client.names.meaning(name, slot) else { return };
        let Some((name, was)) = client.names.take(name, slot) else { return };
        Mark::DeallocatedBySql.hit();
        self.show(id, server, &name, b"\0\0\0", Makes::Own, None);
        self.clients[id].deallocates = Some(Box::new(Deallocates::One { slot, name, was }));
    }

    /// From now on all that a client has prepared has its own names, on this server. `false`: as
    /// above.
    pub(super) fn show_all(&mut self, id: ClientId, server: ServerId) -> bool {
        let its = &self.servers[server];
        if its.replies.skips() || its.has_failed() {
            Mark::NotShownInFailed.hit();
            return true;
        }
        if self.names_are_under_way(id) {
            return false;
        }
        Mark::NamesShown.hit();
        let slot = self.clients[id].coming_slot();
        for (name, own) in self.clients[id].names.take_all(slot) {
            if let Some(statement) = own.statement.clone() {
                self.note_shown(id, &statement, slot);
                let definition = statement.definition_for(own.shape().map(|shape| &**shape));
                // Its own batch may have made it, and not have told of any yet.
                let has_rows = own.shape().is_none_or(|shape| shape.has_rows());
                let was = Rc::new((Rc::clone(&name), own));
                // Its rows may not be what they were.
                let asked = self.clients[id].names.asked(&name);
                let of = has_rows.then(|| Described::Shown(Rc::clone(&was), Rc::clone(&asked)));
                if self.show(id, server, &name, &definition, Makes::Shown(was), of) {
                    asked.set(Shown::Awaited);
                }
            }
        }
        self.leaves(id, PinReason::Prepared.into(), None);
        true
    }

    /// A statement is the client's on its server from now on: what running it leaves is noted as
    /// if it were prepared there now, since nothing shows any more which it runs. Settings are
    /// asked for when the server goes back.
    fn note_shown(&mut self, id: ClientId, statement: &Statement, slot: Slot) {
        let heard = self.heard_of(id, statement);
        let sets = [PinReason::Local, PinReason::Reset, PinReason::Setting];
        let sets = sets.into_iter().filter(|reason| heard.pins.contains(*reason));
        let sets = sets.fold(Pins::NONE, |pins, reason| pins.union(reason.into()));
        let said = Said { text: Some(statement.text()), slot, custom: None };
        self.leaves(id, sets, Some(said));
        let client = &mut self.clients[id];
        client.own_resets |= heard.pins.contains(PinReason::Reset);
        client.note_prepared(heard.pins);
    }

    /// Has a server give a client's own name to a statement, in the open batch or in front of the
    /// next unit, and asks it to describe that. Says whether it is asked.
    pub(super) fn show(
        &mut self,
        id: ClientId,
        server: ServerId,
        name: &[u8],
        definition: &[u8],
        makes: Makes,
        describes: Option<Described>,
    ) -> bool {
        let in_batch = self.clients[id].open_slot.is_some();
        let sink = if in_batch { Sink::Injected } else { Sink::Aside };
        let replies = &mut self.servers[server].replies;
        // What was made for the name to be taken may still be there.
        for kind in [Kind::CloseStatement { closes: Closes::Own }, Kind::Parse { makes }] {
            if !replies.push(Expected { kind, sink }) {
                // No mark: nothing is shown where what is sent is skipped.
                return false;
            }
        }
        let kind = describes.map(|of| Kind::DescribeStatement { of });
        let asks = kind.is_some_and(|kind| replies.push(Expected { kind, sink }));
        if !in_batch {
            replies.push(Expected { kind: Kind::Sync, sink });
        }
        let escaped = prepared::escaped(name);
        let name = escaped.as_deref().unwrap_or(name);
        self.actions.inject(Endpoint::Server(server), |out| {
            frontend::write_close(out, Target::Statement(name));
            frontend::write_parse_of(out, name, definition);
            if asks {
                frontend::write_describe(out, Target::Statement(name));
            }
            if !in_batch {
                out.extend_from_slice(&frontend::SYNC);
            }
        });
        asks
    }
}

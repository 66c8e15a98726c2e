//! Statements that clients share are brought to the server that is to run them.

use std::rc::Rc;

use pgweir_wire::frontend::{self, Target};

use super::names::held_for_name;
use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::literals::has_literals;
use crate::marks::Mark;
use crate::prepared::{Rows, Shape, Statement, Told, Under};
use crate::reply::{Closes, Described, Expected, Kind, Made, Makes, Sink};
use crate::server::ServerState;

/// Whether a server has a statement that a message is about to use.
pub(super) enum Brought {
    Yes,
    /// It has one whose rows are not what the client was told.
    Changed,
    /// That is known when replies have come.
    Later,
}

impl Engine {
    /// Sees to it that a server has a statement, with the parameters and the rows that the client
    /// was told of when it prepared it.
    pub(super) fn bring(
        &mut self,
        id: ClientId,
        server: ServerId,
        statement: &Rc<Statement>,
        name: &[u8],
        told: Option<&Shape>,
    ) -> Brought {
        if self.is_unsettled(id, server, statement) {
            held_for_name();
            return Brought::Later;
        }
        let untold = self.clients[id].names.untold(name);
        let told = told.filter(|shape| shape.is_something());
        let changed = self.clients[id].has_changed_settings();
        if !self.servers[server].shelf.is_read(statement, changed) {
            Mark::StatementReadStrangely.hit();
            self.unshelve(id, server, statement);
        }
        let number = statement.number();
        let reads_otherwise = changed && self.clients[id].reads_otherwise;
        let shelf = &mut self.servers[server].shelf;
        if reads_otherwise && !statement.is_private() && has_literals(statement.text()) {
            shelf.used_under_others(statement);
        }
        shelf.touch(statement);
        let made = shelf.find(statement).map(|made| made.rows.clone());
        // From now on these are what it has to be like.
        if let (Some(Rows::Known(rows)), Some((_, its))) = (&made, &untold) {
            Mark::ToldByAnother.hit();
            its.get_or_init(|| Rc::clone(rows));
        }
        // Whatever its rows are like, it is what the client was told.
        let is_it =
            |told: &Shape| !told.has_rows() && shelf.is_made_with(statement, told.parameters());
        let is_it = told.is_some_and(is_it);
        let client = &mut self.clients[id];
        match (made, told) {
            (Some(_), Some(_)) if is_it => return Brought::Yes,
            (Some(Rows::Awaited), Some(_)) => {
                // Made just now, by this unit.
                Mark::HeldForOwnRows.hit();
                if !client.holding {
                    self.ask_for_rows(server);
                }
                return Brought::Later;
            }
            (Some(Rows::Known(rows)), Some(told)) if !told.allows(&rows) => {
                if client.brought.take() == Some(number) {
                    return Brought::Changed;
                }
                // Either of them is out of date: let us see which.
                Mark::RowsOutOfDate.hit();
                self.unshelve(id, server, statement);
            }
            (Some(Rows::Missed), _) if told.is_some() || untold.is_some() => {
                Mark::RowsMissed.hit();
                self.unshelve(id, server, statement);
            }
            (Some(Rows::Awaited | Rows::Known(_) | Rows::Missed | Rows::Unknown), _) => {
                client.brought = None;
                return Brought::Yes;
            }
            (None, _) => {}
        }
        self.make_room_on_shelf(id, server);
        self.make(id, server, statement, told, untold);
        if !told.is_some_and(Shape::has_rows) {
            return Brought::Yes;
        }
        // What its rows are like there is to be known before it is used.
        Mark::HeldForRows.hit();
        self.clients[id].brought = Some(number);
        self.ask_for_rows(server);
        Brought::Later
    }

    /// Whether a server works on what is put in front of a client's unit, of which nothing was sent
    /// yet: what that comes to is the unit's.
    pub(crate) fn works_ahead(&self, id: ServerId, client: ClientId) -> bool {
        let server = &self.servers[id];
        let is_its = matches!(server.state, ServerState::Lent(holder) if holder == client);
        let waits = is_its && self.clients[client].slots.is_empty();
        waits && !server.replies.is_empty() && !server.replies.answers_us()
    }

    /// The server says now what the rows of a statement are like, and not at the end of the unit.
    pub(crate) fn ask_for_rows(&mut self, server: ServerId) {
        self.servers[server].replies.flush();
        let to = Endpoint::Server(server);
        self.actions.inject(to, |out| out.extend_from_slice(&frontend::FLUSH));
    }

    /// Has a server make a statement that its client has prepared elsewhere, with the parameters
    /// that it was told of.
    fn make(
        &mut self,
        id: ClientId,
        server: ServerId,
        statement: &Rc<Statement>,
        told: Option<&Shape>,
        untold: Option<(Rc<[u8]>, Told)>,
    ) {
        let made = Rc::new(Made { statement: Rc::clone(statement), name: None });
        let kind = Kind::Parse { makes: Makes::Shared(made) };
        let its = &mut self.servers[server];
        if !its.replies.push(Expected { kind, sink: Sink::Injected }) {
            // No mark: nothing is brought to a server that skips what it is sent.
            return;
        }
        Mark::StatementMade.hit();
        let client = &self.clients[id];
        let under = match client.has_changed_settings() && !statement.is_private() {
            true => Under::Changed,
            false => Under::Its,
        };
        let parameters = told.map(|told| Rc::from(told.parameters()));
        its.shelf.put(Rc::clone(statement), client.coming_slot(), under, parameters);
        self.pools[its.pool].stats.own_parses += 1;
        let name = statement.name();
        let definition = statement.definition_for(told);
        self.actions.inject(Endpoint::Server(server), |out| {
            frontend::write_parse_of(out, &name, &definition);
        });
        // If the Parse fails the client's name is what it was: only the description notes it.
        Mark::ToldByMaking.hit_if(untold.is_some());
        self.describe(server, Rc::new(Made { statement: Rc::clone(statement), name: untold }));
    }

    /// Asks what the rows of a statement are like that was just made.
    pub(super) fn describe(&mut self, server: ServerId, made: Rc<Made>) {
        let name = made.statement.name();
        let kind = Kind::DescribeStatement { of: Described::Shared(made) };
        let replies = &mut self.servers[server].replies;
        if replies.push(Expected { kind, sink: Sink::Injected }) {
            self.actions.inject(Endpoint::Server(server), |out| {
                frontend::write_describe(out, Target::Statement(&name));
            });
        }
    }

    /// Whether a server has a statement is known when an earlier unit is over.
    pub(super) fn is_unsettled(
        &self,
        id: ClientId,
        server: ServerId,
        statement: &Statement,
    ) -> bool {
        self.servers[server].shelf.is_unsettled(statement, self.clients[id].coming_slot())
    }

    /// The one that was used least lately goes if there are too many.
    pub(super) fn make_room_on_shelf(&mut self, id: ClientId, server: ServerId) {
        let unit = self.clients[id].coming_slot();
        let most = self.pools[self.servers[server].pool].spec.prepared_statements.max(1);
        while let Some(statement) = self.servers[server].shelf.surplus(most, unit) {
            Mark::StatementSurplus.hit();
            self.unshelve(id, server, &statement);
        }
    }

    /// Has a server close a statement that clients share.
    pub(super) fn unshelve(&mut self, id: ClientId, server: ServerId, statement: &Rc<Statement>) {
        let unit = self.clients[id].coming_slot();
        let its = &mut self.servers[server];
        let (rows, under) = its.shelf.remove(statement, unit);
        let closes = Closes::Shared(Rc::clone(statement), rows, under);
        let kind = Kind::CloseStatement { closes };
        if !its.replies.push(Expected { kind, sink: Sink::Injected }) {
            debug_assert!(false, "a server that skips what it is sent is told to close something");
        }
        let name = statement.name();
        self.actions.inject(Endpoint::Server(server), |out| {
            frontend::write_close(out, Target::Statement(&name));
        });
    }
}

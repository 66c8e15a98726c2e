//! What replies say about the statements of clients and servers.

use std::rc::Rc;

use pgweir_wire::HEADER_LEN;
use pgweir_wire::backend::Tag;
use pgweir_wire::frontend;

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::{Deallocates, Slot, UnnamedStatement};
use crate::marks::Mark;
use crate::prepared::{Own, Rows, Shape, Shown, with_parameters};
use crate::reply::{Closes, Described, Effect, Kind, Made, Makes, Sink, Step};

impl Engine {
    /// Holds a message against the expected replies, and settles what it settles.
    pub(crate) fn step(&mut self, id: ServerId, tag: Tag) -> Result<Sink, String> {
        match self.take_step(id, tag)? {
            Step::More { sink } => Ok(sink),
            Step::Settled { sink, effect } => {
                self.settle(id, sink, effect);
                Ok(sink)
            }
            Step::Failed { .. } | Step::Ready { .. } | Step::Unasked => {
                Err(format!("{tag:?} was taken for the end of a reply"))
            }
        }
    }

    pub(crate) fn take_step(&mut self, id: ServerId, tag: Tag) -> Result<Step, String> {
        let server = &mut self.servers[id];
        let client = server.client();
        let clients = &mut self.clients;
        let was_full = server.replies.is_full();
        let mut cleared = false;
        let step = server.replies.step(tag, &mut |slot: Slot| {
            if let Some(client) = client.and_then(|client| clients.find_mut(client)) {
                client.unanswered(slot);
                cleared = true;
            }
        });
        cleared |= was_full && !server.replies.is_full();
        if cleared
            && let Some(client) = client
            && clients.find(client).is_some_and(|client| client.holding)
        {
            Mark::WokenByUnansweredUnit.hit();
            self.wake(client);
        }
        step.map_err(|violation| match violation.expected {
            Some(expected) => format!("{:?} came in the reply to {expected}", violation.came),
            None => format!("{:?} came when no reply was owed", violation.came),
        })
    }

    pub(crate) fn settle(&mut self, id: ServerId, sink: Sink, effect: Effect) {
        let (statement, its) = match effect {
            Effect::None => return,
            Effect::Made(made) => return self.made(id, &made),
            Effect::NameTaken(was) => return self.name_taken(id, &was),
            Effect::Unshelved(statement) => return self.servers[id].shelf.removed(&statement),
            // What they are like is noted where they are read.
            Effect::Described(_) => return,
            Effect::UnnamedMade(message) => {
                let made = UnnamedStatement::Made(message);
                (made.clone(), made)
            }
            Effect::UnnamedMadeTooLong => (UnnamedStatement::TooLong, UnnamedStatement::TooLong),
            Effect::UnnamedGone => (UnnamedStatement::None, UnnamedStatement::None),
            Effect::UnnamedOurs => (UnnamedStatement::None, UnnamedStatement::Unknown),
            Effect::UnnamedUnclear => {
                Mark::UnnamedUnclear.hit();
                (UnnamedStatement::None, UnnamedStatement::Unknown)
            }
        };
        let server = &mut self.servers[id];
        server.unnamed = its;
        let client = server.answers();
        // What we do to a server is nothing that its client did: if the Parse fails that we make
        // again, the client has its statement all the same.
        if matches!(sink, Sink::Client(_) | Sink::Converted(_) | Sink::Refused(_))
            && let Some(client) = client.and_then(|client| self.clients.find_mut(client))
        {
            client.unnamed = statement;
            client.unnamed_shape = None;
        }
    }

    /// A statement that clients share is made.
    pub(crate) fn made(&mut self, id: ServerId, made: &Made) {
        self.servers[id].shelf.made(&made.statement);
        if let Some((name, told)) = &made.name
            && let Some(client) = self.servers[id].client()
        {
            self.clients[client].names.given(name, told);
        }
    }

    /// A client has closed a statement.
    pub(crate) fn name_taken(&mut self, id: ServerId, (name, was): &(Rc<[u8]>, Own)) {
        if let Some(client) = self.servers[id].client() {
            self.clients[client].names.taken(name, was);
        }
    }

    /// A description has come, whole or not: if we have asked for it, it is noted.
    pub(crate) fn described(
        &mut self,
        id: ServerId,
        tag: Tag,
        body: Option<&[u8]>,
    ) -> Result<Sink, String> {
        let (sink, effect) = match self.take_step(id, tag)? {
            Step::More { sink } => return Ok(sink),
            Step::Settled { sink, effect } => (sink, effect),
            Step::Failed { .. } | Step::Ready { .. } | Step::Unasked => {
                return Err(format!("{tag:?} was taken for the end of a reply"));
            }
        };
        let parameters = self.servers[id].parameters_told.take();
        let Effect::Described(of) = effect else { return Ok(sink) };
        let rows = match (tag, parameters, body) {
            (Tag::RowDescription, Some(parameters), Some(body)) => Rows::Known(Rc::new(
                Shape::of_rows(parameters, body).map_err(|malformed| malformed.to_string())?,
            )),
            (Tag::NoData, Some(parameters), _) => Rows::Known(Rc::new(Shape::of_none(parameters))),
            _ => {
                Mark::RowsUnknown.hit();
                Rows::Unknown
            }
        };
        if let Described::Shared(made) = &of {
            self.servers[id].shelf.note_rows(&made.statement, rows.clone());
        }
        let Some(client) = self.servers[id].client() else {
            Mark::DescribedForNobody.hit();
            return Ok(sink);
        };
        let its = &mut self.clients[client];
        match (of, rows) {
            (Described::Shared(made), Rows::Known(shape)) => {
                if let Some((_, told)) = &made.name {
                    told.get_or_init(|| shape);
                }
            }
            (Described::Shown(was, asked), rows) => {
                let (name, own) = &*was;
                let told = own.shape();
                let is_as_told = match (&rows, told) {
                    (Rows::Known(shape), Some(told)) => told.allows(shape),
                    // As wherever else it says too much.
                    (Rows::Unknown, _) | (Rows::Known(_), None) => true,
                    (Rows::Awaited | Rows::Missed, _) => false,
                };
                Mark::ShownRowsChanged.hit_if(!is_as_told);
                its.names.has_rows(name, &asked, is_as_told);
            }
            (Described::Unnamed, Rows::Known(shape)) => {
                // Elsewhere it is made again with the parameters that its client was told of.
                let of = &mut self.servers[id].unnamed;
                if its.unnamed.same(of)
                    && let UnnamedStatement::Made(parse) = &its.unnamed
                {
                    its.unnamed = UnnamedStatement::Made(told_of(parse, &shape));
                    *of = its.unnamed.clone();
                }
                its.unnamed_shape = Some(shape);
            }
            (Described::Unnamed, Rows::Awaited | Rows::Missed | Rows::Unknown) => {
                Mark::UnnamedRowsUnknown.hit();
                its.unnamed_shape = None;
            }
            (Described::UnnamedAgain, Rows::Known(shape)) => {
                its.unnamed_stale = its.unnamed_shape.as_ref().is_some_and(|told| *told != shape);
                if its.unnamed_stale {
                    // Whoever asks for it behind what fails for that finds another one, too.
                    self.servers[id].unnamed = UnnamedStatement::Unknown;
                }
            }
            (Described::Named | Described::Shared(_) | Described::UnnamedAgain, _) => {}
        }
        if its.holding {
            self.wake(client);
        }
        Ok(sink)
    }

    /// What was to be done to names was not done.
    pub(crate) fn undo(&mut self, id: ServerId, kinds: Vec<Kind>) {
        let client = self.servers[id].client();
        // The last of them first: a statement may have been closed and made in one batch.
        for kind in kinds.into_iter().rev() {
            if let Some(client) = client {
                self.undo_for_client(client, &kind);
            }
            let shelf = &mut self.servers[id].shelf;
            match kind {
                Kind::Parse { makes: Makes::Own | Makes::Shown(_) } => {
                    // The server was to be kept for it.
                    if let Some(client) = client {
                        self.clients[client].doubt_prepared();
                    }
                }
                Kind::Parse { makes: Makes::Shared(made) } => {
                    Mark::StatementNotMade.hit();
                    shelf.not_made(&made.statement);
                }
                Kind::DescribeStatement { of: Described::Shared(made) } => {
                    shelf.not_described(&made.statement);
                }
                Kind::CloseStatement { closes: Closes::Shared(statement, rows, under) } => {
                    Mark::StatementNotClosed.hit();
                    shelf.not_removed(statement, rows, under);
                }
                _ => {}
            }
        }
        if let Some(client) = client {
            self.clients[client].brought = None;
        }
    }

    /// The part of it that is the client's.
    pub(crate) fn undo_for_client(&mut self, client: ClientId, kind: &Kind) {
        let names = &mut self.clients[client].names;
        match kind {
            Kind::Parse { makes: Makes::Shared(made) } => {
                if let Some((name, told)) = &made.name {
                    names.not_given(name, told);
                }
            }
            Kind::CloseStatement { closes: Closes::Name(was) } => {
                Mark::NameNotTaken.hit();
                let (name, own) = &**was;
                names.not_taken(Rc::clone(name), own.clone());
            }
            Kind::DescribeStatement { of: Described::Shown(was, asked) } => {
                Mark::ShownNotDescribed.hit();
                asked.set(Shown::No);
                let (name, own) = &**was;
                names.not_taken(Rc::clone(name), own.clone());
            }
            Kind::Parse { makes: Makes::Shown(was) } => {
                Mark::NameNotShown.hit();
                let (name, own) = &**was;
                names.not_taken(Rc::clone(name), own.clone());
            }
            _ => {}
        }
    }

    /// A command is complete that may have removed statements: what it was its tag says. `sent`: so
    /// many of its client's names had been given and taken before.
    pub(crate) fn command_complete(&mut self, id: ServerId, sink: Sink, sent: u64, body: &[u8]) {
        if let (Sink::Client(_), Some(client)) = (sink, self.servers[id].client()) {
            let its = &mut self.clients[client];
            if let Some(own) = &mut its.subscription {
                own.note_tag(body);
            }
            its.schema_rolled_back(body);
        }
        // Within a client's batch nothing else of ours is executed.
        if sink == Sink::Injected || sink == Sink::Aside && !self.servers[id].puts_back {
            self.sequences_forgotten(id);
        }
        match body {
            b"DEALLOCATE ALL\0" | b"DISCARD ALL\0" => {
                self.servers[id].shelf.clear();
                if let (Sink::Client(_), Some(client)) = (sink, self.servers[id].client()) {
                    Mark::NamesCleared.hit_if(!self.clients[client].names.is_empty());
                    self.clients[client].names.clear(sent);
                }
            }
            b"DEALLOCATE\0" => {
                if let (Sink::Client(slot), Some(client)) = (sink, self.servers[id].client())
                    && let Some(gone) =
                        self.clients[client].deallocates.take_if(|its| its.slot() == slot)
                    && let Deallocates::One { name, was, .. } = *gone
                {
                    self.clients[client].names.taken(&name, &was);
                }
            }
            _ => {}
        }
    }

    /// A unit is over. If it was to remove names and has not, they mean what they have meant, and
    /// what was put there for one to be found goes with the session.
    pub(crate) fn deallocation_over(&mut self, id: ServerId, client: ClientId, slot: Slot) {
        let its = &mut self.clients[client];
        let Some(failed) = its.deallocates.take_if(|its| its.slot() == slot) else { return };
        match *failed {
            Deallocates::All { slot } => {
                Mark::AllNamesStay.hit();
                its.names.release(slot);
            }
            Deallocates::One { name, was, .. } => {
                Mark::NameStays.hit();
                its.names.not_taken(name, was);
                self.servers[id].reset = true;
            }
        }
    }

    /// A client's server is lost: what it was told to do to names, and has not answered, counts as
    /// not done, as the client hears.
    pub(crate) fn undo_lost(&mut self, id: ServerId, client: ClientId) {
        for kind in self.servers[id].replies.unsettled().iter().rev() {
            self.undo_for_client(client, kind);
        }
        let its = &mut self.clients[client];
        its.brought = None;
        match its.deallocates.take().map(|lost| *lost) {
            None => {}
            Some(Deallocates::All { slot }) => {
                Mark::NamesNotCleared.hit();
                its.names.release(slot);
            }
            Some(Deallocates::One { name, was, .. }) => {
                Mark::DeallocationLost.hit();
                its.names.not_taken(name, was);
            }
        }
    }
}

/// A Parse of the unnamed statement, with the types of its parameters that it has turned out to
/// have.
fn told_of(parse: &[u8], shape: &Shape) -> Rc<[u8]> {
    let mut told = Vec::with_capacity(parse.len() + shape.parameters().len());
    // The definition stands behind the header and the empty name.
    let definition = with_parameters(&parse[HEADER_LEN + 1..], shape.parameters());
    frontend::write_parse_of(&mut told, b"", &definition);
    told.into()
}

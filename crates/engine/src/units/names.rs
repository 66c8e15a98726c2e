//! Messages of the extended protocol, by the statements that they name.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use pgweir_config::PoolMode;
use pgweir_sql::{Heard, PinReason};
use pgweir_wire::backend::Report;
use pgweir_wire::frontend::{Bind, Parse, Tag, Target};
use pgweir_wire::{HEADER_LEN, Malformed};

use super::bring::Brought;
use super::{UNIT_HELD_BYTES, ends_in_time, until_nul};
use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::UnnamedHere;
use crate::errors::ROWS_CHANGED;
use crate::marks::Mark;
use crate::pins::{FAILS, Refusal, Verdict};
use crate::prepared::{self, Meaning, Names, Shape, Statement, Under};
use crate::reply::{Closes, Described, Kind, Made, Makes};
use crate::sequences::Uses;
use crate::track::Said;

/// A message of the extended protocol as it is to be sent.
pub(super) struct Named {
    pub(super) kind: Kind,
    pub(super) rename: Option<Rename>,
    /// The statement whose rows we ask for behind it.
    pub(super) describe: Option<Rc<Made>>,
    /// It is made to fail, and this is why.
    pub(super) refused: Option<Refusal>,
}

/// A Parse at the front of the input.
#[derive(Clone, Copy)]
struct NewStatement<'a> {
    parse: Parse<'a>,
    message: &'a [u8],
    /// All of the message is there.
    whole: bool,
}

/// A part of a message, mostly the name of a statement, and what the server is told in its place.
pub(super) struct Rename {
    /// Where it stands in the message, without its last NUL.
    pub(super) at: Range<usize>,
    pub(super) name: Vec<u8>,
}

/// A name that no statement has.
pub(super) const NOBODY: &[u8] = b"pgweir_";

impl Named {
    pub(super) fn plain(kind: Kind) -> Self {
        Self { kind, rename: None, describe: None, refused: None }
    }

    pub(super) fn renamed(kind: Kind, rename: Option<Rename>) -> Self {
        Self { rename, ..Self::plain(kind) }
    }

    /// It fails for want of a statement, whose name stands here.
    pub(super) fn refused(kind: Kind, at: Range<usize>, refusal: impl Into<Refusal>) -> Self {
        let rename = Some(Rename { at, name: NOBODY.to_vec() });
        Self { refused: Some(refusal.into()), ..Self::renamed(kind, rename) }
    }

    /// The same of a statement whose rows are not what the client was told.
    pub(super) fn of_changed(kind: Kind, at: Range<usize>, told: Option<Rc<Shape>>) -> Self {
        let report = rows_changed();
        let refusal = match (&kind, told) {
            (Kind::DescribeStatement { .. }, Some(told)) => Refusal::of_rows(report, told),
            (_, _) => report.into(),
        };
        Self::refused(kind, at, refusal)
    }
}

impl NewStatement<'_> {
    /// Whether it is kept, to be made again elsewhere.
    fn may_be_kept(&self) -> bool {
        self.whole && self.message.len() <= UNIT_HELD_BYTES
    }
}

impl Rename {
    /// The client's own name, which has to be told apart from ours.
    fn escape(at: usize, name: &[u8]) -> Option<Self> {
        let escaped = prepared::escaped(name)?;
        Some(Self { at: at..at + name.len(), name: escaped })
    }

    /// What makes a FunctionCall fail: no function has this number.
    pub(super) fn no_function() -> Self {
        Self { at: HEADER_LEN..HEADER_LEN + 4, name: vec![0; 4] }
    }
}

impl Engine {
    /// Reads the names in a message of the extended protocol, and sees to it that the server has
    /// what it uses. `None`: that is not known before replies have come.
    pub(super) fn named(
        &mut self,
        id: ClientId,
        server: ServerId,
        tag: Tag,
        message: &[u8],
        whole: bool,
    ) -> Result<Option<Named>, Malformed> {
        let body = &message[HEADER_LEN..];
        let named = match tag {
            Tag::Parse => {
                let parse = Parse::start(body)?;
                ends_in_time(parse.name.len() + 1)?;
                self.parse(id, server, NewStatement { parse, message, whole })
            }
            Tag::Bind => {
                let bind = Bind::start(body)?;
                ends_in_time(bind.portal.len() + bind.statement.len() + 2)?;
                let at = HEADER_LEN + bind.portal.len() + 1;
                self.use_statement(id, server, Kind::Bind, at, bind.statement)
            }
            Tag::Describe => match Target::parse(body)? {
                Target::Portal(_) => Some(Named::plain(Kind::DescribePortal)),
                Target::Statement(name) => {
                    let of = if name.is_empty() { Described::Unnamed } else { Described::Named };
                    let kind = Kind::DescribeStatement { of };
                    self.use_statement(id, server, kind, HEADER_LEN + 1, name)
                }
            },
            _ => match Target::parse(body)? {
                Target::Portal(_) => Some(Named::plain(Kind::ClosePortal)),
                Target::Statement(name) => self.close_statement(id, server, name),
            },
        };
        if named.is_none() {
            self.clients[id].holding = true;
            return Ok(None);
        }
        let stats = &mut self.pools[self.servers[server].pool].stats;
        stats.parses += u64::from(tag == Tag::Parse);
        stats.binds += u64::from(tag == Tag::Bind);
        Ok(named)
    }

    /// The names in a message cannot be read. The server will refuse it with an error like any
    /// other; in case it does not, nobody else gets that server again.
    pub(super) fn unreadable(&mut self, id: ClientId, tag: Tag) -> Named {
        Mark::NamesUnreadable.hit();
        self.leaves(id, PinReason::Unclear.into(), None);
        Named::plain(match tag {
            Tag::Parse => Kind::Parse { makes: Makes::Own },
            Tag::Bind => Kind::Bind,
            Tag::Describe => Kind::DescribePortal,
            _ => Kind::ClosePortal,
        })
    }

    fn parse(&mut self, id: ClientId, server: ServerId, new: NewStatement<'_>) -> Option<Named> {
        let is_named = !new.parse.name.is_empty();
        if is_named && self.servers[server].replies.skips() {
            // Nothing is made, and so nothing is there that would keep the server.
            Mark::ParsePassedOver.hit();
            return Some(Named::plain(Kind::Parse { makes: Makes::Own }));
        }
        if is_named && new.may_be_kept() && self.may_share(id, server) {
            return self.parse_shared(id, server, new);
        }
        self.parse_own(id, server, new)
    }

    /// A Parse of what is this client's alone.
    fn parse_own(
        &mut self,
        id: ClientId,
        server: ServerId,
        new: NewStatement<'_>,
    ) -> Option<Named> {
        let (name, text) = (new.parse.name, new.parse.text);
        let ended = new.whole || name.len() + text.len() + 2 <= new.message.len() - HEADER_LEN;
        Mark::UnendedParse.hit_if(!ended);
        let heard = ended.then(|| self.read_text(id, text));
        let verdict = match &heard {
            Some(heard) if !name.is_empty() => {
                match self.judge_pins(id, server, PinReason::Prepared.into()) {
                    // As if it were run: then the server is this client's already.
                    Verdict::Sent => self.claim_sequences(id, server, Uses::of(heard.pins)),
                    verdict @ (Verdict::Refused(_) | Verdict::Later) => verdict,
                }
            }
            Some(heard) => self.judge_text(id, server, heard, text, false),
            None => self.claim_sequences(id, server, Uses::unread(text)),
        };
        match verdict {
            Verdict::Sent => {}
            Verdict::Refused(report) => return Some(self.refuse_parse(id, new.parse, report)),
            Verdict::Later => return None,
        }
        let client = &self.clients[id];
        if !client.names.is_empty() {
            let meaning = client.names.meaning(name, client.coming_slot());
            if let Meaning::Unsettled = meaning {
                held_for_name();
                return None;
            }
            // What is put in front of it goes out at once, so nothing may hold it back then.
            if !self.show_names(id, server, text, true) {
                return None;
            }
            // What has been shown just now is taken on the server, too.
            let client = &self.clients[id];
            if let Meaning::Known(..) = client.names.meaning(name, client.coming_slot()) {
                self.make_name_taken(server, name);
            }
        }
        let makes = if !name.is_empty() {
            // It lives on one server: the client stays there.
            self.leaves(id, PinReason::Prepared.into(), None);
            let client = &mut self.clients[id];
            let slot = client.coming_slot();
            match client.names.meaning(name, slot) {
                // If the server makes it, what was there before is gone.
                Meaning::Awaited | Meaning::Changed => match client.names.take(name, slot) {
                    Some(was) => {
                        Mark::ShownNameGivenAnew.hit();
                        Makes::Shown(Rc::new(was))
                    }
                    None => Makes::Own,
                },
                Meaning::Unknown | Meaning::Known(..) | Meaning::Unsettled => Makes::Own,
            }
        } else {
            let client = &mut self.clients[id];
            client.unnamed_here = UnnamedHere::Parsed;
            client.unnamed_stale = false;
            let kept = new.may_be_kept();
            Mark::UnnamedTooLong.hit_if(!kept);
            if kept { Makes::Unnamed(Rc::from(new.message)) } else { Makes::UnnamedTooLong }
        };
        let slot = self.clients[id].coming_slot();
        let names = heard.as_ref().is_none_or(|heard| self.names_prepared(server, heard));
        let when_run = heard.as_ref().map(Heard::when_run);
        let pins = self.scan_text(id, text, heard, slot);
        let client = &mut self.clients[id];
        if !name.is_empty() {
            client.note_prepared(when_run.unwrap_or_else(|| PinReason::Unclear.into()));
        }
        client.own_resets |=
            !name.is_empty() && pins.is_none_or(|pins| pins.contains(PinReason::Reset));
        if name.is_empty() {
            client.unnamed_names = Some(names);
        }
        client.may_commit_later |= client.may_commit || !ended;
        let rename = Rename::escape(HEADER_LEN, name);
        Some(Named::renamed(Kind::Parse { makes }, rename))
    }

    /// A Parse that is not to be run: its text is another, which fails. Like any other that fails,
    /// it ends the unnamed statement if that is what it makes.
    fn refuse_parse(&mut self, id: ClientId, parse: Parse<'_>, report: Box<Report>) -> Named {
        let is_unnamed = parse.name.is_empty();
        let client = &mut self.clients[id];
        if is_unnamed {
            // A Bind behind it in its batch is passed over: nothing is to be brought for it.
            client.unnamed_here = UnnamedHere::Parsed;
            client.unnamed_names = Some(false);
        }
        let makes = if is_unnamed { Makes::UnnamedTooLong } else { Makes::Own };
        let mut name = if is_unnamed { Vec::new() } else { NOBODY.to_vec() };
        name.push(0);
        name.extend_from_slice(FAILS);
        let end = HEADER_LEN + parse.name.len() + 1 + parse.text.len();
        let rename = Rename { at: HEADER_LEN..end, name };
        let refused = Some(report.into());
        Named { refused, ..Named::renamed(Kind::Parse { makes }, Some(rename)) }
    }

    /// Whether what a client prepares may be shared: it is read under no other settings than those
    /// that the client has asked for.
    fn may_share(&self, id: ClientId, server: ServerId) -> bool {
        let client = &self.clients[id];
        let spec = &self.pools[self.servers[server].pool].spec;
        let too_many = client.names.len() >= Names::MOST;
        Mark::TooManyNames.hit_if(too_many);
        self.servers[server].mode != PoolMode::Session
            && spec.prepared_statements > 0
            // A server that only listens for its client goes on to others.
            && client.pins.without(PinReason::Listen).is_empty()
            && client.replication.is_none()
            && !too_many
    }

    /// A Parse of what clients share. The server always reads it, also where it has the statement
    /// already: whether it still can be read, and in this transaction, only PostgreSQL knows.
    fn parse_shared(
        &mut self,
        id: ClientId,
        server: ServerId,
        new: NewStatement<'_>,
    ) -> Option<Named> {
        let client = &self.clients[id];
        let name = new.parse.name;
        let definition = &new.message[HEADER_LEN + name.len() + 1..];
        let slot = client.coming_slot();
        match client.names.meaning(name, slot) {
            // On the server it is taken.
            Meaning::Unknown | Meaning::Awaited | Meaning::Changed => {}
            Meaning::Unsettled => {
                held_for_name();
                return None;
            }
            Meaning::Known(..) => {
                // PostgreSQL will say so, and nothing of ours is to stay behind.
                Mark::NameTakenTwice.hit();
                self.make_name_taken(server, name);
                let rename = Rename::escape(HEADER_LEN, name);
                return Some(Named::renamed(Kind::Parse { makes: Makes::Own }, rename));
            }
        }
        let text = until_nul(definition);
        let heard = self.read_text(id, text);
        if self.names_prepared(server, &heard) {
            return self.parse_own(id, server, new);
        }
        let private = client.has_changed_settings();
        let settings = self.reading_of(id, heard.folds);
        let of = self.servers[server].pool;
        let heard = (Arc::clone(self.loud_for(id, of)), Rc::new(heard));
        let registry = &mut self.pools[of].registry;
        let Some(statement) = registry.intern(definition, &settings, private, heard) else {
            Mark::TooManyStatements.hit();
            return self.parse_own(id, server, new);
        };
        if self.is_unsettled(id, server, &statement) {
            held_for_name();
            return None;
        }
        if self.servers[server].shelf.find(&statement).is_some() {
            Mark::StatementReadAgain.hit();
            self.unshelve(id, server, &statement);
        }
        self.make_room_on_shelf(id, server);
        let at = HEADER_LEN..HEADER_LEN + name.len();
        let name = self.clients[id].names.give(name, Rc::clone(&statement), slot);
        self.servers[server].shelf.put(Rc::clone(&statement), slot, Under::Its, None);
        let rename = Rename { at, name: statement.name() };
        let made = Rc::new(Made { statement, name: Some(name) });
        let kind = Kind::Parse { makes: Makes::Shared(Rc::clone(&made)) };
        Some(Named { describe: Some(made), ..Named::renamed(kind, Some(rename)) })
    }

    /// A Bind, or a Describe, of a statement. `at`: where its name stands in the message.
    fn use_statement(
        &mut self,
        id: ClientId,
        server: ServerId,
        kind: Kind,
        at: usize,
        name: &[u8],
    ) -> Option<Named> {
        if name.is_empty() {
            return self.use_unnamed(id, server, kind, at);
        }
        let is_bind = matches!(kind, Kind::Bind);
        let client = &self.clients[id];
        let meaning = match self.servers[server].replies.skips() {
            // It is not looked at.
            true => Meaning::Unknown,
            false => client.names.meaning(name, client.coming_slot()),
        };
        match meaning {
            Meaning::Unknown => {
                if is_bind {
                    let uses = Uses::of(self.clients[id].prepared);
                    match self.claim_sequences(id, server, uses) {
                        Verdict::Sent => {}
                        Verdict::Refused(report) => {
                            Mark::OwnNameRefused.hit();
                            let at = at..at + name.len();
                            return Some(Named::refused(kind, at, report));
                        }
                        Verdict::Later => return None,
                    }
                }
                self.may_be_commit(id, is_bind);
                if is_bind {
                    self.runs_prepared(id);
                }
                if is_bind && self.clients[id].own_resets {
                    // To take settings back it need not name them.
                    let slot = self.clients[id].coming_slot();
                    let said = Said { text: Some(b""), slot, custom: None };
                    self.leaves(id, PinReason::Reset.into(), Some(said));
                }
                Some(Named::renamed(kind, Rename::escape(at, name)))
            }
            Meaning::Unsettled => {
                held_for_name();
                None
            }
            Meaning::Awaited => self.held_for_shown(id, server),
            Meaning::Changed if self.servers[server].has_failed() => {
                // That is refused in any case.
                Mark::ChangedInFailed.hit();
                Some(Named::renamed(kind, Rename::escape(at, name)))
            }
            Meaning::Changed => {
                let told = self.clients[id].names.shape(name);
                Some(Named::of_changed(kind, at..at + name.len(), told))
            }
            Meaning::Known(_, None) if self.is_described(server, name) => {
                Mark::HeldForDescription.hit();
                if !self.clients[id].holding {
                    self.ask_for_rows(server);
                }
                None
            }
            Meaning::Known(statement, shape) => {
                let statement = self.as_read_now(id, server, statement);
                let at = at..at + name.len();
                let heard = is_bind.then(|| self.heard_of(id, &statement));
                let verdict = match &heard {
                    Some(heard) => self.judge_text(id, server, heard, statement.text(), false),
                    None => Verdict::Sent,
                };
                match verdict {
                    Verdict::Sent => {}
                    Verdict::Refused(report) => return Some(Named::refused(kind, at, report)),
                    Verdict::Later => return None,
                }
                let brought = self.bring(id, server, &statement, name, shape.as_deref());
                let named = match brought {
                    Brought::Later => return None,
                    Brought::Yes => {
                        Named::renamed(kind, Some(Rename { at, name: statement.name() }))
                    }
                    Brought::Changed => {
                        Mark::RowsChanged.hit();
                        Named::of_changed(kind, at, shape)
                    }
                };
                if let Some(heard) = heard {
                    let slot = self.clients[id].coming_slot();
                    let said = Said { text: Some(statement.text()), slot, custom: None };
                    self.has_heard(id, &heard, said);
                    let client = &mut self.clients[id];
                    client.may_commit_later |= client.may_commit;
                }
                Some(named)
            }
        }
    }

    /// A statement as its client reads it now: its settings may be others than when it was made.
    fn as_read_now(
        &mut self,
        id: ClientId,
        server: ServerId,
        statement: Rc<Statement>,
    ) -> Rc<Statement> {
        let client = &self.clients[id];
        let heard = self.heard_of(id, &statement);
        let settings = self.reading_of(id, heard.folds);
        let is_read = statement.is_read_under(&settings, heard.folds);
        if is_read || statement.is_private() || client.has_changed_settings() {
            return statement;
        }
        Mark::StatementReadAnew.hit();
        let pool = self.servers[server].pool;
        let heard = (Arc::clone(self.loud_for(id, pool)), heard);
        let anew =
            self.pools[pool].registry.intern(statement.definition(), &settings, false, heard);
        anew.unwrap_or(statement)
    }

    /// What a shared statement says by what is known now of the names in it.
    pub(crate) fn heard_of(&self, id: ClientId, statement: &Statement) -> Rc<Heard> {
        match self.clients[id].pool() {
            Some(pool) => statement.heard(self.loud_for(id, pool), |text| self.read_text(id, text)),
            // No mark: whoever prepares has logged in.
            None => Rc::default(),
        }
    }

    /// Whether a client is about to be told what a name's statement is like, which it has just
    /// prepared, and the server has no more: where it is made again it has to be the same.
    fn is_described(&self, server: ServerId, name: &[u8]) -> bool {
        let its = &self.servers[server];
        let of_name = |kind: Kind| match kind {
            Kind::DescribeStatement { of: Described::Shared(made) } => {
                made.name.as_ref().is_some_and(|(own, _)| **own == *name)
                    && its.shelf.find(&made.statement).is_none()
            }
            _ => false,
        };
        its.replies.unsettled().into_iter().any(of_name)
    }

    /// A message waits until the server has said what the rows of its statement are like, which has
    /// its client's own name now.
    fn held_for_shown(&mut self, id: ClientId, server: ServerId) -> Option<Named> {
        Mark::HeldForShown.hit();
        if !self.clients[id].holding {
            self.ask_for_rows(server);
        }
        None
    }

    pub(super) fn may_be_commit(&mut self, id: ClientId, it_may: bool) {
        let client = &mut self.clients[id];
        client.may_commit |= it_may;
        client.may_commit_later |= it_may;
    }

    fn close_statement(&mut self, id: ClientId, server: ServerId, name: &[u8]) -> Option<Named> {
        let client = &mut self.clients[id];
        if name.is_empty() {
            client.unnamed_here = UnnamedHere::Parsed;
            return Some(Named::plain(Kind::CloseStatement { closes: Closes::Unnamed }));
        }
        let mut closes = Closes::Own;
        if !self.servers[server].replies.skips() {
            let slot = client.coming_slot();
            match client.names.meaning(name, slot) {
                Meaning::Unknown => {}
                Meaning::Unsettled => {
                    held_for_name();
                    return None;
                }
                Meaning::Awaited => return self.held_for_shown(id, server),
                Meaning::Known(..) | Meaning::Changed => {
                    if let Some(was) = client.names.take(name, slot) {
                        closes = Closes::Name(Rc::new(was));
                    }
                }
            }
        }
        // It may be what the server is kept for.
        self.clients[id].doubt_prepared();
        // The server has nothing of this name, which is no error, unless it was left there by SQL.
        let rename = Rename::escape(HEADER_LEN + 1, name);
        Some(Named::renamed(Kind::CloseStatement { closes }, rename))
    }
}

/// What PostgreSQL says of a prepared statement whose rows have changed. Drivers that prepare it
/// again know it by the function that says so.
fn rows_changed() -> Box<Report> {
    Box::new(Report { routine: Some("RevalidateCachedQuery"), ..ROWS_CHANGED.report(&[]) })
}

/// What a message does waits until earlier units are over.
pub(super) fn held_for_name() {
    Mark::HeldForName.hit();
}

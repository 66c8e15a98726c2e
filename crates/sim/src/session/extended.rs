//! The messages of the extended protocol, each of which makes or uses a statement or a portal.

use std::rc::Rc;

use pgweir_wire::frontend::{Bind, Parse, Target};

use super::execute::CHANGED;
use super::left::STATEMENT;
use super::message::{Message, put, row_description_of};
use super::{Advance, Execution, Portal, Prepared, Session, Transaction, WENT, Witness, Work, of};
use crate::invariants::Invariant;
use crate::language::{self, Line, Tag};
use crate::shapes::{Glance, Seen};

/// Whether a statement has a name of pgweir's, for all of its clients. One of a client that looks
/// like it has another `_` behind it.
pub(super) fn is_of_pgweir(name: &[u8]) -> bool {
    name.strip_prefix(b"pgweir_").is_some_and(|rest| rest.first() != Some(&b'_'))
}

impl Session {
    pub(super) fn parse(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        self.state.start();
        let Ok(parse) = Parse::start(&message.body) else {
            return self.fail(b"08P01", "invalid Parse []", true, witness);
        };
        let tag = message.tags_of_texts().first().copied();
        if let Some(tag) = tag.filter(|tag| !tag.is_common()) {
            self.state.meet(tag, witness);
        }
        if parse.name.is_empty() {
            self.state.statements.remove(&b""[..]);
        }
        let Some(mut lines) = language::parse(parse.text).filter(|lines| lines.len() < 2) else {
            return self.fail(b"42601", &format!("syntax error{}", of(tag)), true, witness);
        };
        let line = lines.pop();
        if line.as_ref().is_some_and(|line| self.state.refuses(line)) {
            return self.aborted(true, witness);
        }
        if self.state.statements.contains_key(parse.name) {
            let name = parse.name.escape_ascii();
            let text = format!("prepared statement \"{name}\" already exists{}", of(tag));
            return self.fail(b"42P05", &text, true, witness);
        }
        if let Some(tag) = tag.filter(|tag| !tag.is_common())
            && !parse.name.is_empty()
            && !is_of_pgweir(parse.name)
        {
            self.state.stain(tag.client, STATEMENT);
        }
        let mut seen = Seen { shape: None, in_doubt: false };
        if line.as_ref().is_some_and(Line::is_shaped)
            && let Some(tag) = tag
        {
            seen = witness.reads(Glance::Text(tag), &self.state);
            // Of one without a name nobody is told before it is described.
            seen.in_doubt |= parse.name.is_empty();
        }
        self.state.statements.insert(parse.name.to_vec(), Rc::new(Prepared { line, tag, seen }));
        self.parsed[0] = Some(parse.name.to_vec());
        put(&mut self.out, b'1', |_| {});
        WENT
    }

    pub(super) fn bind(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        self.state.start();
        let Ok(bind) = Bind::start(&message.body) else {
            return self.fail(b"08P01", "invalid Bind []", true, witness);
        };
        // One without parameters has the tag of its statement.
        let parameter = message.tags().first().copied();
        if let Some(tag) = parameter {
            self.state.meet(tag, witness);
        }
        let Some(statement) = self.state.statements.get(bind.statement).map(Rc::clone) else {
            if let Some(tag) = parameter {
                // pgweir may have it fail because it has seen other rows.
                witness.reads(Glance::Run(tag), &self.state);
            }
            let name = bind.statement.escape_ascii();
            let text = format!("prepared statement \"{name}\" does not exist{}", of(parameter));
            return self.fail(b"26000", &text, true, witness);
        };
        let is_own = matches!(
            statement.line,
            Some(
                Line::DiscardSequences
                    | Line::PutBack(_)
                    | Line::Listen(_)
                    | Line::Mark(..)
                    | Line::Unlisten(_)
            )
        );
        let own = is_own.then(|| Tag::common(0));
        let Some(tag) = parameter.or(statement.tag).or(own) else {
            witness.wrong(Invariant::OwnReplies, "a Bind has no tag".to_owned());
            return Advance::Over;
        };
        if let Some(parsed) = statement.tag
            && parsed.client != tag.client
            && !parsed.is_common()
        {
            witness.wrong(
                Invariant::OwnStatements,
                format!("{tag} was bound to a statement of c{}", parsed.client),
            );
        }
        // In a transaction that has failed no parameter is looked at.
        let failed = self.state.transaction == Transaction::Failed;
        if failed && parameter.is_some()
            || statement.line.as_ref().is_some_and(|line| self.state.refuses(line))
        {
            return self.aborted(true, witness);
        }
        if !bind.portal.is_empty() && self.portals.contains_key(bind.portal) {
            let name = bind.portal.escape_ascii();
            let text = format!("cursor \"{name}\" already exists{}", of(Some(tag)));
            return self.fail(b"42P03", &text, true, witness);
        }
        let is_shaped = statement.line.as_ref().is_some_and(Line::is_shaped);
        let valid = match is_shaped {
            true => witness.revalidates(Glance::Run(tag), statement.seen, &self.state),
            false => Some(None),
        };
        let Some(shape) = valid else {
            return self.fail(b"0A000", &format!("{CHANGED}{}", of(Some(tag))), true, witness);
        };
        let depth = self.state.depth();
        let (suspended, begun, failed) = (None, false, false);
        let portal = Portal { statement, tag, shape, suspended, begun, depth, failed };
        self.portals.insert(bind.portal.to_vec(), portal);
        put(&mut self.out, b'2', |_| {});
        WENT
    }

    pub(super) fn describe(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        self.state.start();
        let (statement, shape, name) = match Target::parse(&message.body) {
            Ok(Target::Statement(name)) => {
                (self.state.statements.get(name).map(Rc::clone), None, Some(name))
            }
            Ok(Target::Portal(name)) => match self.portals.get(name) {
                Some(portal) => (Some(Rc::clone(&portal.statement)), portal.shape, None),
                None => (None, None, None),
            },
            Err(_) => return self.fail(b"08P01", "invalid Describe []", true, witness),
        };
        let Some(statement) = statement else {
            let code = if name.is_some() { b"26000" } else { b"34000" };
            return self.fail(code, "what is to be described does not exist []", true, witness);
        };
        let rows = match &statement.line {
            Some(Line::Client(statement)) => statement.verb.returns_rows(),
            Some(
                Line::Catalogue
                | Line::DiscardAll
                | Line::DiscardPlans
                | Line::DiscardSequences
                | Line::Listen(_)
                | Line::Mark(..)
                | Line::Unlisten(_)
                | Line::FailedTransaction
                | Line::PutBack(_)
                | Line::Rollback
                | Line::Room
                | Line::SetConfig(_)
                | Line::Settings(_)
                | Line::State(_),
            )
            | None => false,
        };
        if rows && self.state.transaction == Transaction::Failed {
            return self.aborted(true, witness);
        }
        let mut shape = shape;
        if let Some(name) = name {
            put(&mut self.out, b't', |out| out.extend_from_slice(&[0, 1, 0, 0, 0, 25]));
            if statement.line.as_ref().is_some_and(Line::is_shaped) {
                self.describing = Some(name.to_vec());
                let seen = statement.seen;
                let Some(its) = witness.revalidates(Glance::Description, seen, &self.state) else {
                    return self.fail(b"0A000", &format!("{CHANGED} []"), true, witness);
                };
                shape = its;
            }
        }
        if rows {
            row_description_of(&mut self.out, shape);
        } else {
            put(&mut self.out, b'n', |_| {});
        }
        WENT
    }

    pub(super) fn execute(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        self.state.start();
        let Some((name, limit)) = message.execute() else {
            return self.fail(b"08P01", "invalid Execute []", true, witness);
        };
        let Some(portal) = self.portals.get_mut(name) else {
            let name = name.escape_ascii();
            return self.fail(b"34000", &format!("portal \"{name}\" is unknown []"), true, witness);
        };
        let tag = portal.tag;
        self.state.several = false;
        if !tag.is_common() {
            self.state.meet(tag, witness);
        }
        let Some(line) = portal.statement.line.clone() else {
            self.say_empty();
            return WENT;
        };
        if self.state.refuses(&line) {
            return self.aborted(true, witness);
        }
        let execution = if portal.failed {
            let text = format!("portal cannot be run{}", of(Some(tag)));
            return self.fail(b"55000", &text, true, witness);
        } else if portal.begun {
            let Some(mut execution) = portal.suspended.take() else {
                let text = format!("portal cannot be run any more{}", of(Some(tag)));
                return self.fail(b"55000", &text, true, witness);
            };
            execution.resume(limit);
            execution
        } else {
            portal.begun = true;
            let text_tag = portal.statement.tag;
            let tag = (!tag.is_common()).then_some(tag);
            let shape = portal.shape;
            let mut execution = Execution::of_portal(line, tag, text_tag, limit, shape);
            execution.begin(&mut self.state, witness);
            execution
        };
        self.work = Work::Execute { portal: name.to_vec(), execution };
        WENT
    }

    pub(super) fn close(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        self.state.start();
        match Target::parse(&message.body) {
            Ok(Target::Statement(name)) => drop(self.state.statements.remove(name)),
            Ok(Target::Portal(name)) => drop(self.portals.remove(name)),
            Err(_) => return self.fail(b"08P01", "invalid Close []", true, witness),
        }
        put(&mut self.out, b'3', |_| {});
        WENT
    }
}

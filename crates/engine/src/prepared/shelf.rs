//! The statements that a server has.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Shape, Statement};
use crate::client::Slot;
use crate::marks::Mark;

/// What a server has of ours, by number.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    statements: BTreeMap<u64, Shelved>,
    /// Those of which a Parse or Close was sent whose reply is awaited.
    pending: BTreeMap<u64, Pending>,
    /// How often it was used.
    uses: u64,
    /// Some may have been read under what the client has changed that has the server.
    changed: bool,
}

/// A statement on a server.
#[derive(Debug)]
pub(crate) struct Shelved {
    pub(crate) statement: Rc<Statement>,
    pub(crate) rows: Rows,
    /// The types of its parameters, where it was made with those that a client was told.
    parameters: Option<Rc<[u8]>>,
    /// The use of the shelf that was its last.
    used: u64,
    under: Under,
}

/// Messages about a statement whose replies are awaited: until they have come no other unit sends
/// one.
#[derive(Debug)]
struct Pending {
    unit: Slot,
    messages: usize,
    /// The server has it no more, nor has made it again since: a Close that is not done leaves
    /// nothing.
    gone: bool,
}

/// The settings under which a statement was read where it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    /// Its own.
    Its,
    /// Its own, but for what the client has changed that has the server: it may use it.
    Changed,
    /// The same of a client that had the server before. It is of no use to anybody.
    Strange,
}

/// What the rows of a statement are like where it was made.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// The server was asked.
    Awaited,
    /// It has said so at more length than is read.
    Unknown,
    /// It was kept from saying so, or has when that was not noted.
    Missed,
    /// Like this.
    Known(Rc<Shape>),
}

impl Shelf {
    /// The statement, if the server has it.
    pub(crate) fn find(&self, statement: &Statement) -> Option<&Shelved> {
        self.statements.get(&statement.number())
    }

    /// Whether it is known of every statement whether the server has it.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether it is known only when another unit than this one is over whether the server has it.
    pub(crate) fn is_unsettled(&self, statement: &Statement, unit: Slot) -> bool {
        self.is_pending(statement.number(), unit)
    }

    /// Whether it is known whether the server has it.
    pub(crate) fn is_known(&self, statement: &Statement) -> bool {
        !self.pending.contains_key(&statement.number())
    }

    /// It is used now.
    pub(crate) fn touch(&mut self, statement: &Statement) {
        self.uses += 1;
        if let Some(made) = self.statements.get_mut(&statement.number()) {
            made.used = self.uses;
        }
    }

    /// What has to go before one more is made in this unit: the one that was used least lately,
    /// where there are `most`, or more since a reload. One that another unit makes may not be
    /// there.
    pub(crate) fn surplus(&self, most: usize, unit: Slot) -> Option<Rc<Statement>> {
        let here = |made: &&Shelved| !self.is_pending(made.statement.number(), unit);
        let least = self.statements.values().filter(here).min_by_key(|made| made.used);
        least.filter(|_| self.statements.len() >= most).map(|made| Rc::clone(&made.statement))
    }

    /// A Parse of it was sent.
    pub(crate) fn put(
        &mut self,
        statement: Rc<Statement>,
        unit: Slot,
        under: Under,
        parameters: Option<Rc<[u8]>>,
    ) {
        self.uses += 1;
        self.changed |= under == Under::Changed;
        let (number, used) = (statement.number(), self.uses);
        self.awaits(number, unit);
        let made = Shelved { statement, rows: Rows::Awaited, parameters, used, under };
        self.statements.insert(number, made);
    }

    /// Another client has the server now.
    pub(crate) fn changes_hands(&mut self) {
        if std::mem::take(&mut self.changed) {
            for made in self.statements.values_mut() {
                if made.under == Under::Changed {
                    Mark::MadeStrangely.hit();
                    made.under = Under::Strange;
                }
            }
        }
    }

    /// A client uses it that has changed settings by which its literals are read: it may be read
    /// anew under those.
    pub(crate) fn used_under_others(&mut self, statement: &Statement) {
        if let Some(made) = self.statements.get_mut(&statement.number())
            && made.under == Under::Its
        {
            Mark::UsedUnderOthers.hit();
            made.under = Under::Changed;
            self.changed = true;
        }
    }

    /// All that there is was perhaps read anew, nobody knows under which settings.
    pub(crate) fn becomes_strange(&mut self) {
        self.statements.values_mut().for_each(|made| made.under = Under::Strange);
    }

    /// Whether it was made here to be read as a client reads it. `changed`: the client has changed
    /// settings that matter to it, for its transaction perhaps. A plan that keeps what is computed
    /// then is for nobody else.
    pub(crate) fn is_read(&self, statement: &Statement, changed: bool) -> bool {
        match self.find(statement).map(|made| made.under) {
            Some(Under::Its) => !(changed && statement.folds()),
            None => true,
            Some(Under::Changed) => changed,
            Some(Under::Strange) => false,
        }
    }

    /// A Close of it was sent. Gives what its rows were like, and how it was read.
    pub(crate) fn remove(&mut self, statement: &Statement, unit: Slot) -> (Rows, Under) {
        self.awaits(statement.number(), unit);
        let made = self.statements.remove(&statement.number());
        made.map_or((Rows::Unknown, Under::Strange), |made| (made.rows, made.under))
    }

    /// The Close is done.
    pub(crate) fn removed(&mut self, statement: &Statement) {
        self.settles(statement.number());
    }

    /// The Parse was not done.
    pub(crate) fn not_made(&mut self, statement: &Statement) {
        self.settles(statement.number());
        self.statements.remove(&statement.number());
    }

    /// The Parse is done.
    pub(crate) fn made(&mut self, statement: &Statement) {
        if let Some(pending) = self.pending.get_mut(&statement.number()) {
            pending.gone = false;
        }
        self.settles(statement.number());
    }

    /// The Close was not done.
    pub(crate) fn not_removed(&mut self, statement: Rc<Statement>, rows: Rows, under: Under) {
        self.changed |= under == Under::Changed;
        let (number, used) = (statement.number(), self.uses);
        let gone = self.pending.get(&number).is_some_and(|pending| pending.gone);
        self.settles(number);
        if gone {
            // Another command has removed all, and an error came behind that.
            Mark::NotRemovedButGone.hit();
            return;
        }
        // It may have been said meanwhile.
        let rows = if let Rows::Awaited = rows {
            Mark::RowsMissedByClose.hit();
            Rows::Missed
        } else {
            rows
        };
        let parameters = None;
        self.statements.insert(number, Shelved { statement, rows, parameters, used, under });
    }

    /// The server does not say what its rows are like.
    pub(crate) fn not_described(&mut self, statement: &Statement) {
        if let Some(made) = self.statements.get_mut(&statement.number())
            && let Rows::Awaited = made.rows
        {
            made.rows = Rows::Missed;
        }
    }

    /// Whether it was made with just these types for its parameters.
    pub(crate) fn is_made_with(&self, statement: &Statement, parameters: &[u8]) -> bool {
        let made = self.find(statement).and_then(|made| made.parameters.as_deref());
        made == Some(parameters)
    }

    /// What its rows are like.
    pub(crate) fn note_rows(&mut self, statement: &Statement, rows: Rows) {
        if let Some(made) = self.statements.get_mut(&statement.number()) {
            made.rows = rows;
        }
    }

    /// The server has none any more, but for what was sent since.
    pub(crate) fn clear(&mut self) {
        self.statements.retain(|number, _| self.pending.contains_key(number));
        self.pending.values_mut().for_each(|pending| pending.gone = true);
    }

    /// Whether another unit than this one has sent something about it that is not answered.
    fn is_pending(&self, number: u64, unit: Slot) -> bool {
        self.pending.get(&number).is_some_and(|pending| pending.unit != unit)
    }

    fn awaits(&mut self, number: u64, unit: Slot) {
        let pending =
            self.pending.entry(number).or_insert(Pending { unit, messages: 0, gone: false });
        debug_assert!(pending.unit == unit, "two units make or close a statement");
        pending.messages += 1;
    }

    fn settles(&mut self, number: u64) {
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.messages -= 1;
            if pending.messages == 0 {
                self.pending.remove(&number);
            }
        }
    }
}

//! The statements that a server has.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Shape, Statement};
use crate::client::Slot;

/// What a server has of ours, by number.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    statements: BTreeMap<u64, Shelved>,
    /// Those of which a Close was sent, in which unit, and its reply is awaited.
    closing: BTreeMap<u64, Slot>,
    /// How often it was used.
    uses: u64,
}

/// A statement on a server.
#[derive(Debug)]
pub(crate) struct Shelved {
    pub(crate) statement: Rc<Statement>,
    pub(crate) rows: Rows,
    /// The unit of the Parse whose reply is awaited, if it is.
    pub(crate) unsettled: Option<Slot>,
    /// The use of the shelf that was its last.
    used: u64,
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
        let settled = self.statements.values().all(|made| made.unsettled.is_none());
        settled && self.closing.is_empty()
    }

    /// Whether it is known only when another unit than this one is over whether the server has it.
    pub(crate) fn is_unsettled(&self, statement: &Statement, unit: Slot) -> bool {
        let made = self.find(statement).and_then(|made| made.unsettled);
        let closed = self.closing.get(&statement.number()).copied();
        made.is_some_and(|slot| slot != unit) || closed.is_some_and(|slot| slot != unit)
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
        let here = |made: &&Shelved| made.unsettled.is_none_or(|slot| slot == unit);
        let least = self.statements.values().filter(here).min_by_key(|made| made.used);
        least.filter(|_| self.statements.len() >= most).map(|made| Rc::clone(&made.statement))
    }

    /// A Parse of it was sent.
    pub(crate) fn put(&mut self, statement: Rc<Statement>, unit: Slot) {
        self.uses += 1;
        let (number, used) = (statement.number(), self.uses);
        let made = Shelved { statement, rows: Rows::Awaited, unsettled: Some(unit), used };
        self.statements.insert(number, made);
    }

    /// A Close of it was sent. Gives what its rows were like.
    pub(crate) fn remove(&mut self, statement: &Statement, unit: Slot) -> Rows {
        self.closing.insert(statement.number(), unit);
        self.statements.remove(&statement.number()).map_or(Rows::Unknown, |made| made.rows)
    }

    /// The Close is done.
    pub(crate) fn removed(&mut self, statement: &Statement) {
        self.closing.remove(&statement.number());
    }

    /// The Parse was not done.
    pub(crate) fn not_made(&mut self, statement: &Statement) {
        self.statements.remove(&statement.number());
    }

    /// The Parse is done.
    pub(crate) fn made(&mut self, statement: &Statement) {
        if let Some(made) = self.statements.get_mut(&statement.number()) {
            made.unsettled = None;
        }
    }

    /// The Close was not done.
    pub(crate) fn not_removed(&mut self, statement: Rc<Statement>, rows: Rows) {
        let (number, used) = (statement.number(), self.uses);
        self.closing.remove(&number);
        // It may have been said meanwhile.
        let rows = if let Rows::Awaited = rows { Rows::Missed } else { rows };
        self.statements.insert(number, Shelved { statement, rows, unsettled: None, used });
    }

    /// The server does not say what its rows are like.
    pub(crate) fn not_described(&mut self, statement: &Statement) {
        if let Some(made) = self.statements.get_mut(&statement.number())
            && let Rows::Awaited = made.rows
        {
            made.rows = Rows::Missed;
        }
    }

    /// What its rows are like.
    pub(crate) fn note_rows(&mut self, statement: &Statement, rows: Rows) {
        if let Some(made) = self.statements.get_mut(&statement.number()) {
            made.rows = rows;
        }
    }

    /// The server has none any more, but for what was sent since.
    pub(crate) fn clear(&mut self) {
        self.statements.retain(|_, made| made.unsettled.is_some());
    }
}

//! What the rows are like of statements whose rows change, and what servers have found of that.
//!
//! What a server found when it read a text, or ran a statement, only it knows: another session may
//! have changed it just before. So it is noted here, and clients are held to that.

use std::collections::BTreeMap;

use crate::language::Tag;

/// The statement that has changed what rows are like, if any has: a column has its tag for a name.
pub(crate) type Shape = Option<Tag>;

/// The key of the lock that whoever changes it has until its transaction is over.
pub(crate) const SHAPE_KEY: u32 = u32::MAX;

/// What rows are like, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) shape: Shape,
    /// Somebody else may have seen it otherwise, or nobody was told.
    pub(crate) in_doubt: bool,
}

/// For what it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glance {
    /// For a text with this tag, which is to be a prepared statement.
    Text(Tag),
    /// For what is run with this tag.
    Run(Tag),
    /// The same where SQL names what was prepared by the protocol: rows are then those of the time
    /// when the server was told that name.
    RunByName(Tag),
    /// For a description of a prepared statement.
    Description,
}

/// What all servers together have seen.
#[derive(Default)]
pub(crate) struct Shapes {
    /// What it is in each database of each server, if it was ever changed.
    now: BTreeMap<(usize, String), Tag>,
    /// All that was seen where a text was read, once each, in order.
    texts: BTreeMap<Tag, Vec<Shape>>,
    /// What was seen last where a statement was run.
    runs: BTreeMap<Tag, Shape>,
    /// Some statement has changed it, and perhaps taken that back.
    is_changed: bool,
}

impl Shapes {
    /// Whether this is, or was, what rows were like.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// A statement has changed it for all.
    pub(crate) fn commit(&mut self, cluster: usize, database: &str, shape: Tag) {
        self.now.insert((cluster, database.to_owned()), shape);
    }

    /// A server looks at it. `own`: what its open transaction has made of it.
    pub(crate) fn look(
        &mut self,
        glance: Glance,
        cluster: usize,
        database: &str,
        own: Shape,
    ) -> Shape {
        let common = self.now.get(&(cluster, database.to_owned())).copied();
        let shape = own.or(common);
        self.is_changed |= shape.is_some();
        match glance {
            Glance::Text(tag) => {
                let seen = self.texts.entry(tag).or_default();
                if !seen.contains(&shape) {
                    seen.push(shape);
                }
            }
            Glance::Run(tag) | Glance::RunByName(tag) => drop(self.runs.insert(tag, shape)),
            Glance::Description => {}
        }
        shape
    }

    /// What a text was read with. In doubt if it was read again since, with other rows.
    pub(crate) fn of_text(&self, tag: Tag) -> Seen {
        let seen = self.texts.get(&tag).map_or(&[][..], Vec::as_slice);
        Seen { shape: seen.first().copied().flatten(), in_doubt: seen.len() > 1 }
    }

    /// What was there when a statement was run, if it was.
    pub(crate) fn of_run(&self, tag: Tag) -> Option<Shape> {
        self.runs.get(&tag).copied()
    }
}

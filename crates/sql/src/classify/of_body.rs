//! What the body of a function says besides.

use super::{Share, State};
use crate::loud::Change;
use crate::sharing::Alone;

impl State {
    /// For a body, of a function. `may_wait`: it makes no difference whether it
    /// does so.
    pub(crate) fn of_body(is_plpgsql: bool, may_wait: bool) -> Self {
        Self { share: Share::of_body(is_plpgsql, may_wait), ..Self::default() }
    }

    /// Whether the last token calls a function that is not known here.
    pub(crate) fn calls_unknown(&mut self) -> bool {
        self.share.calls_unknown()
    }

    /// The rule that what has been read breaks.
    pub(crate) fn breaks(&self) -> Option<Alone> {
        self.share.breaks()
    }

    /// Whether a statement has said so far that it locks rows.
    pub(crate) fn locks(&self) -> bool {
        self.share.locks()
    }

    /// Whether there is an INTO that is not that of INSERT or MERGE.
    pub(crate) fn makes_table(&self) -> bool {
        self.makes_table
    }

    /// How the statements so far have said that they change tables.
    pub(crate) fn changes(&self) -> Change {
        self.change
    }
}

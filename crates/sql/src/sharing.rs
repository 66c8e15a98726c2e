//! Whether a text may stand on a server in front of and behind those of other clients.

use std::fmt;

#[cfg(test)]
mod tests;

/// Whether a unit with this text may share a server with those of other clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// It reads only.
    Read,
    /// It reads, and waits for locks on rows, in a transaction of its own.
    Lock,
    /// It changes rows, in a transaction of its own.
    Write,
    /// It needs a server alone, by this rule.
    Alone(Alone),
}

/// A rule by which a text needs a server alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Alone {
    /// Nobody has read it.
    Unread,
    /// It is no single statement.
    Statements,
    /// It is another command than those that are shared.
    Command,
    /// It makes a table of what it reads.
    Into,
    /// It changes rows and is answered with rows.
    Returning,
    /// It leaves something on the server, or in the catalogue.
    Pin,
    /// It asks for what is another answer on each server.
    Session,
    /// It calls what nobody knows.
    Unknown,
    /// Behind a name in it stands what cannot be read.
    Opaque,
    /// What it reads changes rows.
    Changes,
    /// What it calls is not to be planned for several clients.
    Folds,
    /// The names of its database are not known.
    Catalogue,
    /// What no text names may do anything in its database.
    Unnamed,
    /// There are two ways to read it.
    Ambiguous,
}

impl Alone {
    /// Every rule, in the order in which they are documented.
    pub const ALL: [Self; 14] = [
        Self::Statements,
        Self::Command,
        Self::Into,
        Self::Returning,
        Self::Pin,
        Self::Session,
        Self::Unknown,
        Self::Opaque,
        Self::Changes,
        Self::Folds,
        Self::Catalogue,
        Self::Unnamed,
        Self::Ambiguous,
        Self::Unread,
    ];

    /// The rule in one sentence.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Unread => "The text was not read: it came in pieces, or has no database yet.",
            Self::Statements => {
                "The text is not exactly one statement, which is a transaction of its own."
            }
            Self::Command => {
                "The statement is none of SELECT, VALUES, TABLE, WITH, INSERT, UPDATE, DELETE and \
                 MERGE."
            }
            Self::Into => "SELECT INTO creates a table.",
            Self::Returning => {
                "A statement that changes rows and returns rows cannot be run again, should its \
                 reply be too long to be held."
            }
            Self::Pin => {
                "The text, or what stands behind a name in it, leaves state in the session or \
                 reads it, or is not clear; or it changes a table of the catalogue."
            }
            Self::Session => {
                "A function or view of PostgreSQL is named that tells of the session, acts outside \
                 the database, waits, or runs what it is given as text."
            }
            Self::Unknown => {
                "A function is called that is neither one of PostgreSQL's that do no more than \
                 compute and read, nor one of the database that is known to do no more."
            }
            Self::Opaque => {
                "Behind a name in the text stands a function that cannot be read, or does more \
                 than to compute, read and change rows; or a table that is changed has a rule that \
                 is answered with rows, or a trigger or a constraint that waits for the end of the \
                 transaction."
            }
            Self::Changes => {
                "The statement reads, and a function behind a name in it changes rows, or counts \
                 as one that does: it cannot be run again, should its reply be too long to be held."
            }
            Self::Folds => {
                "A function behind a name in the text calls itself IMMUTABLE, and asks for a \
                 setting or the user, or does more than to compute and read: what it tells one \
                 client may stay in a plan."
            }
            Self::Catalogue => {
                "What stands behind the names of the database is not known; or a name in the text \
                 goes beyond ASCII, and client and database are not both in UTF-8."
            }
            Self::Unnamed => {
                "An operator, a cast or a type of the database runs a function that may change a \
                 session, or cannot be read, and no text shows where that happens."
            }
            Self::Ambiguous => {
                "The text says two things, depending on whether a backslash escapes a quote."
            }
        }
    }
}

impl fmt::Display for Alone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.doc())
    }
}

impl Default for Sharing {
    fn default() -> Self {
        Self::Alone(Alone::Unread)
    }
}

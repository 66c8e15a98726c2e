//! What was sent to a server, and what it does to statements and their names.

use std::rc::Rc;

use crate::prepared::{Asked, Own, Rows, Statement, Told, Under};

/// The message that is answered.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Bind,
    ClosePortal,
    CloseStatement {
        closes: Closes,
    },
    /// CopyDone or CopyFail: has no reply, but ends the stretch in which a Sync is ignored.
    CopyEnd,
    DescribePortal,
    DescribeStatement {
        of: Described,
    },
    Execute {
        /// So many of its client's names had been given and taken before.
        sent: u64,
    },
    FunctionCall,
    Parse {
        makes: Makes,
    },
    Query {
        /// As above.
        sent: u64,
    },
    Sync,
}

/// What is described.
#[derive(Clone, Debug)]
pub(crate) enum Described {
    /// A statement under a name of its client's, for the client.
    Named,
    /// The unnamed one, for its client, who is told what its rows are like.
    Unnamed,
    /// The unnamed one where it was made again, for us: are its rows what the client was told?
    UnnamedAgain,
    /// One that clients share, for us.
    Shared(Rc<Made>),
    /// One that was given its client's own name, for us: are its rows what the client was told?
    Shown(Rc<(Rc<[u8]>, Own)>, Asked),
}

/// What a Parse makes.
#[derive(Clone, Debug)]
pub(crate) enum Makes {
    /// A statement under a name of its client's, for as long as the server is this client's.
    Own,
    /// One of ours, which is closed behind its use.
    Ours,
    /// The unnamed one. This is the whole message, so that it can be made again on another server.
    Unnamed(Rc<[u8]>),
    /// The unnamed one, in the place of a Query, which leaves none.
    Query,
    /// The unnamed one, by a message that was too long to keep.
    UnnamedTooLong,
    /// One that clients share.
    Shared(Rc<Made>),
    /// What is this client's is given the client's own name, for a text that may use it: so it was
    /// known before.
    Shown(Rc<(Rc<[u8]>, Own)>),
}

/// A statement that clients share, and is made on a server.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) statement: Rc<Statement>,
    /// What the client calls it whose Parse this is, and where it is noted what its rows are like.
    /// One of ours is for a name that there is, of which only the description may have to be noted.
    pub(crate) name: Option<(Rc<[u8]>, Told)>,
}

/// What a Close ends.
#[derive(Clone, Debug)]
pub(crate) enum Closes {
    /// A statement under a name of its client's, if there is one, that nobody has noted.
    Own,
    /// The unnamed one.
    Unnamed,
    /// A client's name, of what is shared: this is what it meant.
    Name(Rc<(Rc<[u8]>, Own)>),
    /// A statement that clients share, on this server, and what its rows were like.
    Shared(Rc<Statement>, Rows, Under),
}

impl Kind {
    /// Whether PostgreSQL says ReadyForQuery behind it, and sends all that it has kept back.
    pub(super) fn ends_unit(&self) -> bool {
        match self {
            Self::FunctionCall | Self::Query { .. } | Self::Sync => true,
            Self::Bind
            | Self::ClosePortal
            | Self::CloseStatement { .. }
            | Self::CopyEnd
            | Self::DescribePortal
            | Self::DescribeStatement { .. }
            | Self::Execute { .. }
            | Self::Parse { .. } => false,
        }
    }

    /// Whether it changes which statements have names, on the server or for its client.
    pub(super) fn names_statements(&self) -> bool {
        match self {
            Self::Parse { makes } => {
                matches!(makes, Makes::Own | Makes::Shared(_) | Makes::Shown(_))
            }
            Self::CloseStatement { closes } => {
                matches!(closes, Closes::Name(_) | Closes::Shared(..))
            }
            // What they are like belongs to the statement.
            Self::DescribeStatement { of } => {
                matches!(of, Described::Shared(_) | Described::Shown(..))
            }
            Self::Bind
            | Self::ClosePortal
            | Self::CopyEnd
            | Self::DescribePortal
            | Self::Execute { .. }
            | Self::FunctionCall
            | Self::Query { .. }
            | Self::Sync => false,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Bind => "Bind",
            Self::ClosePortal | Self::CloseStatement { .. } => "Close",
            Self::CopyEnd => "CopyDone",
            Self::DescribePortal | Self::DescribeStatement { .. } => "Describe",
            Self::Execute { .. } => "Execute",
            Self::FunctionCall => "FunctionCall",
            Self::Parse { .. } => "Parse",
            Self::Query { .. } => "Query",
            Self::Sync => "Sync",
        }
    }
}

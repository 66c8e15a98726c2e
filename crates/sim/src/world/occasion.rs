//! What happens in a simulation, one thing after the other.

use crate::diet::Sitting;
use crate::network::WireId;
use crate::postgres::Health;

/// What happens at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Occasion {
    /// The clients of connections up to this one must be gone.
    AllGone(usize),
    /// A connection whose other end has vanished breaks.
    Break(WireId),
    /// A client sits down.
    Arrive(Sitting),
    /// A client of the console comes.
    Admit(u32),
    /// An attempt of pgweir's to connect comes to its end.
    Connect(usize),
    /// Bytes arrive in pgweir (`true`) or outside.
    Deliver(WireId, bool),
    /// pgweir asks its clients to leave, and may tell them after so many microseconds to go.
    Drain(Option<u64>),
    /// pgweir looks at a connection.
    Drive(WireId),
    /// Faults stop.
    Heal,
    /// A line of the log is written, or could not be.
    LineWritten,
    Outside(WireId),
    /// A server comes on, or goes on, with this.
    Turn(usize, Health),
    /// A worker ends its turn.
    Finish(usize),
    /// A worker reads a letter.
    Mail(usize),
    /// pgweir tells its clients that this is the end.
    ShutDown,
    Strike(usize),
    /// A worker is told that time has passed.
    Tick(usize),
}

impl Occasion {
    /// Whether pgweir does it, and not somebody outside.
    pub(super) fn is_of_pgweir(self) -> bool {
        match self {
            Self::Connect(_)
            | Self::Drain(_)
            | Self::Drive(_)
            | Self::Finish(_)
            | Self::Mail(_)
            | Self::ShutDown
            | Self::Tick(_) => true,
            Self::Admit(_)
            | Self::AllGone(_)
            | Self::Arrive(_)
            | Self::Break(_)
            | Self::Deliver(..)
            | Self::Heal
            | Self::LineWritten
            | Self::Outside(_)
            | Self::Turn(..)
            | Self::Strike(_) => false,
        }
    }
}

//! Why a server must stay with its client, and the set of such reasons.

use std::fmt;

/// What a session may be left with under this value of `search_path`: where `pg_temp` stands in it
/// every table may be a temporary one, as whatever stands before it may not exist.
pub fn search_path(value: &[u8]) -> Pins {
    const NAME: &[u8] = b"pg_temp";
    let names_it = value.windows(NAME.len()).any(|name| name.eq_ignore_ascii_case(NAME));
    if names_it { PinReason::TempTable.into() } else { Pins::NONE }
}

#[cfg(test)]
mod tests;

/// A kind of state that a session keeps when its transaction is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PinReason {
    /// A session advisory lock, held until it is unlocked as often as it was taken.
    AdvisoryLock,
    /// A base backup under way: it ends with the session that began it.
    Backup,
    /// A DO block that was not read.
    Block,
    /// COMMIT, END, PREPARE TRANSACTION, or ROLLBACK, behind which something else may be committed.
    /// It leaves nothing in the session; it matters when the server is lost.
    Commit,
    /// What may end something that the session keeps: CLOSE, DROP, UNLISTEN, `pg_advisory_unlock`.
    /// It leaves nothing; it matters where a server is kept for that.
    Ends,
    /// What a well-known extension keeps in the backend's memory, such as a named connection.
    Extension,
    /// A cursor WITH HOLD.
    HoldCursor,
    /// What `currval` and `lastval` answer is asked for. It leaves nothing; it matters to a pool
    /// whose servers are to tell nobody of the sequences of another.
    LastValue,
    /// A shared library that LOAD brought into the backend.
    Library,
    /// A channel that the session listens on.
    Listen,
    /// A setting changed with SET LOCAL. It leaves nothing behind its transaction; it matters to
    /// what is prepared inside, which is read under it.
    Local,
    /// EXECUTE or DEALLOCATE. They leave nothing; they matter to a pool in which statements have
    /// other names than their clients gave them.
    Names,
    /// NOTIFY. It leaves nothing; it matters to a session that listens itself, and hears of that
    /// before the reply is over.
    Notify,
    /// A prepared statement, made with PREPARE or under a name in the extended protocol (which no
    /// text shows).
    Prepared,
    /// A replication origin of the session, or a replication slot that may be temporary.
    Replication,
    /// RESET or DISCARD. It changes nothing on a server whose settings are the ones that its own
    /// startup packet gave it; it matters to a pool that replays settings, since it takes them
    /// away.
    Reset,
    /// CREATE, ALTER or SELECT INTO of what is not temporary, IMPORT, COMMIT PREPARED, what changes
    /// a table of the catalogue itself, or a DO block that may do so. It leaves nothing; what later
    /// statements name may do something else from then on.
    Schema,
    /// The seed of `random()`.
    Seed,
    /// The last value of a sequence, kept for `currval` and `lastval`, by a `nextval` or `setval`
    /// that stands in the text.
    Sequence,
    /// A setting changed with SET or `set_config`, for longer than the transaction.
    Setting,
    /// A temporary table, view or sequence.
    TempTable,
    /// A temporary table that goes with its transaction. It leaves nothing; what is put into it may
    /// advance a sequence, of which no catalogue tells that was read before.
    Transient,
    /// The text cannot be read with certainty: anything may have been done.
    Unclear,
    /// UNLISTEN. It leaves nothing; it matters where somebody else listens for the session.
    Unlisten,
}

impl PinReason {
    /// Every reason, in the order in which a set of them is shown.
    pub const ALL: [Self; 24] = [
        Self::AdvisoryLock,
        Self::Backup,
        Self::Block,
        Self::Commit,
        Self::Ends,
        Self::Extension,
        Self::HoldCursor,
        Self::LastValue,
        Self::Library,
        Self::Listen,
        Self::Local,
        Self::Names,
        Self::Notify,
        Self::Prepared,
        Self::Replication,
        Self::Reset,
        Self::Schema,
        Self::Seed,
        Self::Sequence,
        Self::Setting,
        Self::TempTable,
        Self::Transient,
        Self::Unclear,
        Self::Unlisten,
    ];

    /// Whether DISCARD ALL leaves this state in place, so that the server must be closed when
    /// its client leaves. What DISCARD ALL removes is listed in `DiscardAll`, PostgreSQL's
    /// `src/backend/commands/discard.c`.
    pub const fn spoils(self) -> bool {
        match self {
            Self::Backup
            | Self::Block
            | Self::Extension
            | Self::Library
            | Self::Replication
            | Self::Seed
            | Self::Unclear => true,
            Self::AdvisoryLock
            | Self::Commit
            | Self::Ends
            | Self::HoldCursor
            | Self::LastValue
            | Self::Listen
            | Self::Local
            | Self::Names
            | Self::Notify
            | Self::Prepared
            | Self::Reset
            | Self::Schema
            | Self::Sequence
            | Self::Setting
            | Self::TempTable
            | Self::Transient
            | Self::Unlisten => false,
        }
    }

    /// The reason in words, for logs and the console.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AdvisoryLock => "advisory lock",
            Self::Backup => "backup",
            Self::Block => "block",
            Self::Commit => "commit",
            Self::Ends => "end of state",
            Self::Extension => "extension",
            Self::HoldCursor => "hold cursor",
            Self::LastValue => "last value",
            Self::Library => "library",
            Self::Listen => "listen",
            Self::Local => "local setting",
            Self::Names => "names",
            Self::Notify => "notify",
            Self::Prepared => "prepared statement",
            Self::Replication => "replication",
            Self::Reset => "reset",
            Self::Schema => "schema change",
            Self::Seed => "random seed",
            Self::Sequence => "sequence",
            Self::Setting => "setting",
            Self::TempTable => "temp table",
            Self::Transient => "transient table",
            Self::Unclear => "unclear",
            Self::Unlisten => "unlisten",
        }
    }
}

impl fmt::Display for PinReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of reasons. Shown as `setting, temp table`; the empty set is shown as nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Pins(u32);

impl Pins {
    /// No reason: the server may go to anybody once its transaction is over.
    pub const NONE: Self = Self(0);

    /// The reasons of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set without one reason, for a pool that answers for that state in another way.
    #[must_use]
    pub const fn without(self, reason: PinReason) -> Self {
        Self(self.0 & !Self::of(reason).0)
    }

    /// The reasons that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The reasons of this set that are not in the other.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is no reason at all.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the reason is in the set.
    pub const fn contains(self, reason: PinReason) -> bool {
        self.0 & Self::of(reason).0 != 0
    }

    /// Whether one of the reasons outlives DISCARD ALL ([`PinReason::spoils`]).
    pub fn spoils(self) -> bool {
        self.iter().any(PinReason::spoils)
    }

    /// The reasons, each once, in the order of [`PinReason`].
    pub fn iter(self) -> impl Iterator<Item = PinReason> {
        PinReason::ALL.into_iter().filter(move |&reason| self.contains(reason))
    }

    pub(crate) const fn of(reason: PinReason) -> Self {
        Self(1 << reason as u8)
    }
}

impl From<PinReason> for Pins {
    fn from(reason: PinReason) -> Self {
        Self::of(reason)
    }
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for reason in self.iter() {
            write!(f, "{separator}{reason}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pins({self})")
    }
}

//! What no command removes from a session.

/// What nothing but the end of the session removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// A base backup.
    Backup,
    /// A connection to somewhere else.
    Connection,
    /// A library.
    Library,
    /// The seed of `random()`.
    Seed,
    /// A replication slot.
    Slot,
    /// Whatever SQL in a text may leave.
    Text,
}

impl Keep {
    pub(crate) const EACH: [Self; 6] =
        [Self::Backup, Self::Connection, Self::Library, Self::Seed, Self::Slot, Self::Text];

    /// The words by which pgweir knows it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Backup => "pg_backup_start()",
            Self::Connection => "dblink_connect()",
            Self::Library => "library",
            Self::Seed => "setseed()",
            Self::Slot => "pg_create_physical_replication_slot()",
            Self::Text => "query_to_xml()",
        }
    }

    /// What a session has then.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Backup => "a backup",
            Self::Connection => "a connection to elsewhere",
            Self::Library => "a library",
            Self::Seed => "a seed",
            Self::Slot => "a replication slot",
            Self::Text => "the effect of a text",
        }
    }
}

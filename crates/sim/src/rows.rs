//! The rows of docs/failures.md: each has to be reached by the seeds that every change is tested
//! with. The names stand in that page's column `simulator`.

/// A row of docs/failures.md, or one of several cases in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A server is lost while its clients are between transactions.
    Idle,
    /// A server is lost while a client waits for one.
    Waiting,
    /// A server is lost while it is brought to a client's settings.
    Unsent,
    /// A server is lost with a statement outside a transaction.
    Statement,
    /// A server says that it has not begun a statement outside a transaction.
    NotBegun,
    /// A server is lost with what may have been a COMMIT.
    Commit,
    /// A server is lost with a transaction.
    Transaction,
    /// A server is lost with a transaction that its client then rolls back.
    Rollback,
    /// A server is lost with a transaction after whose like its client then asks.
    Chain,
    /// A server is lost inside a reply.
    Reply,
    /// A server is lost inside a message.
    Message,
    /// A server is lost with several units.
    Pipeline,
    /// A server is lost with what a session has there.
    Session,
    /// All servers are busy for too long.
    Busy,
    /// A server is down for too long.
    Down,
    /// A server refuses the login.
    Refused,
    /// A server has no room, and then it has.
    Full,
    /// A server does not answer a login.
    Silent,
    /// A server's disk is full.
    DiskFull,
    /// A statement takes too long.
    StatementTimeout,
    /// A server does not answer a statement.
    SilentStatement,
    /// A transaction takes too long.
    TransactionTimeout,
    /// A client is silent inside a transaction.
    IdleInTransaction,
    /// A client is silent outside a transaction.
    ClientIdle,
    /// There are too many clients.
    MaxClients,
    /// There are too many clients that log in.
    MaxLogins,
    /// There are too many clients of a database.
    MaxDatabaseClients,
    /// There are too many clients of a user.
    MaxUserClients,
    /// As many servers are kept as may be.
    MaxPinned,
    /// A client has left with nothing under way, and another one has its server.
    Left,
    /// A statement is committed whose client has left.
    LeftStatement,
    /// A transaction whose client has left takes too long: its statement is cancelled.
    LeftTransaction,
    /// A client has left in the middle of a batch or a COPY, and its backend has seen that.
    LeftBatch,
    /// A statement whose client has left says too much, and is cancelled.
    LeftResult,
    /// A server that hangs behind its client is given up.
    LeftSilent,
    /// A server has hung behind its client, and goes on.
    LeftStill,
    /// There is no room for the log, and then there is.
    LogFull,
    /// Nobody takes what the log says, and then somebody does.
    LogStuck,
}

impl Row {
    /// All of them, in their order.
    pub const ALL: [Self; 38] = [
        Self::Idle,
        Self::Waiting,
        Self::Unsent,
        Self::Statement,
        Self::NotBegun,
        Self::Commit,
        Self::Transaction,
        Self::Rollback,
        Self::Chain,
        Self::Reply,
        Self::Message,
        Self::Pipeline,
        Self::Session,
        Self::Busy,
        Self::Down,
        Self::Refused,
        Self::Full,
        Self::Silent,
        Self::DiskFull,
        Self::StatementTimeout,
        Self::SilentStatement,
        Self::TransactionTimeout,
        Self::IdleInTransaction,
        Self::ClientIdle,
        Self::MaxClients,
        Self::MaxLogins,
        Self::MaxDatabaseClients,
        Self::MaxUserClients,
        Self::MaxPinned,
        Self::Left,
        Self::LeftStatement,
        Self::LeftTransaction,
        Self::LeftBatch,
        Self::LeftResult,
        Self::LeftSilent,
        Self::LeftStill,
        Self::LogFull,
        Self::LogStuck,
    ];

    /// What the page calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Unsent => "unsent",
            Self::Statement => "statement",
            Self::NotBegun => "not-begun",
            Self::Commit => "commit",
            Self::Transaction => "transaction",
            Self::Rollback => "rollback",
            Self::Chain => "chain",
            Self::Reply => "reply",
            Self::Message => "message",
            Self::Pipeline => "pipeline",
            Self::Session => "session",
            Self::Busy => "busy",
            Self::Down => "down",
            Self::Refused => "refused",
            Self::Full => "full",
            Self::Silent => "silent",
            Self::DiskFull => "disk-full",
            Self::StatementTimeout => "statement-timeout",
            Self::SilentStatement => "silent-statement",
            Self::TransactionTimeout => "transaction-timeout",
            Self::IdleInTransaction => "idle-in-transaction",
            Self::ClientIdle => "client-idle",
            Self::MaxClients => "max-clients",
            Self::MaxLogins => "max-logins",
            Self::MaxDatabaseClients => "max-db-clients",
            Self::MaxUserClients => "max-user-clients",
            Self::MaxPinned => "max-pinned",
            Self::Left => "left",
            Self::LeftStatement => "left-statement",
            Self::LeftTransaction => "left-transaction",
            Self::LeftBatch => "left-batch",
            Self::LeftResult => "left-result",
            Self::LeftSilent => "left-silent",
            Self::LeftStill => "left-still",
            Self::LogFull => "log-full",
            Self::LogStuck => "log-stuck",
        }
    }
}

/// How often each row was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached([u64; Row::ALL.len()]);

impl Default for Reached {
    fn default() -> Self {
        Self([0; Row::ALL.len()])
    }
}

impl Reached {
    /// How often this one was.
    pub fn times(&self, row: Row) -> u64 {
        self.0[row as usize]
    }

    pub(crate) fn note(&mut self, row: Row) {
        self.0[row as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::delays::Delays;

/// What a pool has done since the start; the columns of SHOW STATS and SHOW PIPELINING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Times a server was lent, or given a unit that shares it.
    pub assignments: u64,
    /// Transactions that clients have finished: their ReadyForQuery said `I`.
    pub transactions: u64,
    /// Units finished: simple queries and batches.
    pub queries: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes from servers.
    pub sent: u64,
    /// Time that those transactions took, from their first unit on.
    pub transaction_time: Duration,
    /// Time that servers had a unit in flight.
    pub query_time: Duration,
    /// Time that clients waited for a server.
    pub wait_time: Duration,
    /// Parse messages of clients.
    pub parses: u64,
    /// Parse messages of our own.
    pub own_parses: u64,
    /// Bind messages of clients.
    pub binds: u64,
    /// Logins.
    pub logins: u64,
    /// Attempts to log in that a server has refused because it had too many connections.
    pub refused_full: u64,
    /// Those of the transactions that have shared a server.
    pub shared: u64,
    /// Those of them that were under one Sync with others.
    pub joined: u64,
    /// How long units stood behind others on servers that they shared.
    pub delays: Delays,
    /// Servers that sent what no expected reply allows: bugs of ours, until proven otherwise.
    pub contained: u64,
}

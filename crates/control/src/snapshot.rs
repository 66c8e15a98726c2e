use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use pgweir_config::PoolMode;

/// Everything that the console can show, as it was at one moment. Snapshots of several workers
/// are joined by joining their lists: a pool lives on one worker.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The moment, as people read it.
    pub now: SystemTime,
    /// The moment, as time since the process started.
    pub uptime: Duration,
    /// The pools, in any order.
    pub pools: Vec<Pool>,
    /// Clients that have logged in, those of the console among them, and cancel requests.
    pub clients: Vec<Client>,
    /// Connections to servers, from the attempt to the close.
    pub servers: Vec<Server>,
}

/// A pool. How many clients and servers it has is counted from the lists of those.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Database that clients ask for.
    pub database: String,
    /// User that clients log in as.
    pub user: String,
    /// How long a client keeps a server.
    pub mode: PoolMode,
    /// What it has done since the process started.
    pub stats: Stats,
}

/// What a pool has done, from some moment to another.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Times that a server was lent.
    pub assignments: u64,
    /// Transactions finished.
    pub transactions: u64,
    /// Units finished: simple queries and batches.
    pub queries: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes from servers.
    pub sent: u64,
    /// Time that servers were lent.
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
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// What it has in common with a server.
    pub connection: Connection,
    /// What it is doing.
    pub state: ClientState,
    /// How long it has been waiting for a server; zero if it is not.
    pub waiting: Duration,
}

/// What a client is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientState {
    /// It has a server.
    Active,
    /// It is no session, but a cancel request that has been passed on.
    ActiveCancel,
    /// It has no server and needs none.
    Idle,
    /// It waits for a server.
    Waiting,
    /// It is no session, but a cancel request that has not been passed on yet.
    WaitingCancel,
}

/// A connection to a server.
#[derive(Clone, Debug)]
pub struct Server {
    /// What it has in common with a client.
    pub connection: Connection,
    /// What it is doing.
    pub state: ServerState,
    /// Process ID of the backend (BackendKeyData); 0 if it is not known.
    pub backend_pid: u32,
    /// Whether it is closed instead of being lent again.
    pub close_needed: bool,
}

/// What a connection to a server is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerState {
    /// It carries a cancel request.
    ActiveCancel,
    /// A client has it.
    Active,
    /// It is free, but a cancel request may still reach it.
    BeingCanceled,
    /// It is free.
    Idle,
    /// It is being opened, or logs in.
    New,
    /// It is being checked or cleaned before it is free.
    Tested,
}

/// What clients and servers have in common.
#[derive(Clone, Debug)]
pub struct Connection {
    /// A number that no other client (or no other server) has had.
    pub id: u64,
    /// Database of the pool it belongs to, or of the console.
    pub database: String,
    /// User of the pool it belongs to, or of the console.
    pub user: String,
    /// Host on the other side: a name if the address is not known.
    pub host: String,
    /// Port on the other side.
    pub port: u16,
    /// This side.
    pub local: Option<SocketAddr>,
    /// How long ago it was opened.
    pub age: Duration,
    /// How long ago it was last given something to do; `None`: never.
    pub request_age: Option<Duration>,
    /// The `id` of the server that a client has, or of the client that has a server.
    pub link: Option<u64>,
    /// What it calls itself.
    pub application_name: String,
    /// Prepared statements that it has.
    pub prepared_statements: u32,
}

//! What a configuration says, once it is known to be valid. Every value here is effective:
//! what a user inherits from its pool and from `[general]` is already resolved.

use std::fmt;
use std::time::Duration;

use crate::demand::Limit;
use crate::report::Warning;

/// A whole configuration.
///
/// Whoever holds one may rely on: at least one pool; in each pool at least one user and one
/// shard; in each shard at least one server and at most one primary; names of pools, and of
/// users within a pool, are unique.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// What holds for the whole process.
    pub general: General,
    /// The databases that clients may ask for, ordered by name.
    pub pools: Vec<Pool>,
    /// What the file says that has no effect, to be shown once at start and at reload.
    pub warnings: Vec<Warning>,
}

/// What holds for the whole process.
///
/// The four timeouts that a pool or a user may override are here as the defaults that they
/// start from; a client that is logged in goes by its [`User`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct General {
    /// Address or name to listen on; empty: not over TCP.
    pub host: String,
    /// TCP port to listen on, and the number in the name of the unix socket; never 0.
    pub port: u16,
    /// Threads that carry traffic, at least 1; `None`: as many as there are processors.
    pub worker_threads: Option<u32>,
    /// Where clients of this machine find us, too.
    pub unix_socket: UnixSocket,
    /// Longest time to open a connection to a server and to log in there; never zero.
    pub connect_timeout: Duration,
    /// Longest time a client waits for a server; `None`: without end.
    pub query_wait_timeout: Option<Duration>,
    /// Longest time from a client's connection to its first ReadyForQuery; `None`: without end.
    pub client_login_timeout: Option<Duration>,
    /// How long an unused server connection is kept; `None`: for ever.
    pub idle_timeout: Option<Duration>,
    /// Age at which a server connection is closed once it is idle; `None`: never.
    pub server_lifetime: Option<Duration>,
    /// How often to look whether the file has changed; `None`: never.
    pub autoreload: Option<Duration>,
    /// How long SIGTERM waits for clients to finish; zero ends them at once.
    pub shutdown_timeout: Duration,
    /// Who may use the console; `None`: nobody.
    pub admin: Option<Admin>,
    /// Most clients at a time, at least 1; `None`: as many as file descriptors allow, which whoever
    /// runs them puts here.
    pub max_clients: Option<u32>,
    /// Most clients at a time that have not logged in yet, at least 1.
    pub max_logins: u32,
    /// Most clients of one user name, over all databases.
    pub max_user_client_connections: Option<u32>,
    /// What limits the connections to one server, over all pools.
    pub server_limit: Limit,
    /// Most server connections of one user name, over all databases.
    pub max_user_connections: Option<u32>,
    /// Most connections to one server that are being made at a time, at least 1.
    pub connect_parallelism: u32,
    /// Most bytes of replies that are kept until they are over, of all who share servers.
    pub max_buffer_memory: u64,
    /// How long a client may be silent outside a transaction; `None`: for ever.
    pub client_idle_timeout: Option<Duration>,
    /// Where metrics are served over HTTP; `None`: nowhere.
    pub exporter: Option<Exporter>,
    /// What is logged, and how.
    pub log: LogOptions,
    /// Log a line for each client that connects.
    pub log_client_connections: bool,
    /// Log a line for each client that leaves.
    pub log_client_disconnections: bool,
    /// Socket options, for clients and for servers.
    pub tcp: TcpOptions,
}

/// The unix socket that is listened on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnixSocket {
    /// Its folder, or the start of an abstract name (see [`crate::SocketName`]); `None`: there is
    /// no unix socket.
    pub folder: Option<String>,
    /// It must be there. Otherwise it is left out where the folder is missing or not ours to write
    /// to: nobody has asked for it.
    pub required: bool,
    /// The permissions of its file.
    pub mode: u32,
    /// The group of its file, by name or number; `None`: that of the process.
    pub group: Option<String>,
}

/// Where metrics are served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exporter {
    /// Address or name to listen on.
    pub host: String,
    /// TCP port to listen on; not that of clients.
    pub port: u16,
}

/// What is logged, and how.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogOptions {
    /// The least that is logged.
    pub level: LogLevel,
    /// What a line looks like.
    pub format: LogFormat,
}

/// How much something concerns an operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogLevel {
    /// Something is broken.
    Error,
    /// Something did not work, and may next time.
    Warn,
    /// Something happened.
    Info,
    /// Something may be of use to whoever looks for a mistake.
    Debug,
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// A JSON object.
    Json,
}

/// The account of the console (databases `pgweir`, `pgcat` and `pgbouncer`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Admin {
    /// Name to log in with.
    pub username: String,
    /// Its password.
    pub password: Secret,
    /// How it proves who it is.
    pub auth: AuthMethod,
}

/// TCP options of every connection. `None` leaves the kernel's own value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpOptions {
    /// Silence before the first keepalive probe (TCP_KEEPIDLE), whole seconds.
    pub keepalives_idle: Option<Duration>,
    /// Time between probes (TCP_KEEPINTVL), whole seconds.
    pub keepalives_interval: Option<Duration>,
    /// Unanswered probes after which the connection is dead (TCP_KEEPCNT).
    pub keepalives_count: Option<u32>,
    /// How long a peer may acknowledge nothing of what it was sent, where it keeps a server busy.
    /// Unlike with TCP_USER_TIMEOUT one that acknowledges need not read.
    pub user_timeout: Option<Duration>,
}

/// The name of the pool for databases that no other pool is named like. Each that somebody logs in
/// to has servers of its own, in the sizes that are set for it.
pub const ANY_DATABASE: &str = "*";

/// A database that clients may ask for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pool {
    /// The database name in the client's startup packet, or [`ANY_DATABASE`].
    pub name: String,
    /// Who may log in; each user has server connections of its own.
    pub users: Vec<User>,
    /// Most clients, over all users.
    pub max_client_connections: Option<u32>,
    /// Most server connections, over all users.
    pub max_connections: Option<u32>,
    /// Where the data is, ordered by shard number.
    pub shards: Vec<Shard>,
}

impl Pool {
    /// The server that work goes to while routing knows one server only: the first shard's
    /// primary, or its first server if it names no primary. `None` only for a pool that was
    /// not made by the parser.
    pub fn served(&self) -> Option<(&Shard, &Server)> {
        let shard = self.shards.first()?;
        let primary = shard.servers.iter().find(|server| server.role == Role::Primary);
        Some((shard, primary.or_else(|| shard.servers.first())?))
    }
}

/// A user of a pool, with everything that it inherits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct User {
    /// Name that the client logs in with.
    pub username: String,
    /// What the client's proof is checked against: the password itself, PostgreSQL's `md5…`
    /// form of it, or a SCRAM verifier. Empty with [`AuthMethod::Trust`] if none is given.
    pub password: Secret,
    /// How the client proves who it is; fits the form of `password`.
    pub auth: AuthMethod,
    /// How long a client keeps a server.
    pub mode: PoolMode,
    /// Most server connections, at least 1.
    pub pool_size: u32,
    /// So many are kept open although nobody needs them; at most `pool_size`.
    pub min_pool_size: u32,
    /// Which of them a client is given.
    pub server_choice: ServerChoice,
    /// What becomes of a server behind what changes its session unseen.
    pub loud_functions: LoudFunctions,
    /// Functions that are believed to change nothing, by name, with commas between.
    pub quiet_functions: String,
    /// Whose `application_name` a server has.
    pub application_name: ApplicationName,
    /// What becomes of a server on which a sequence was advanced.
    pub sequence_affinity: SequenceAffinity,
    /// So many of them clients may keep behind their transactions.
    pub max_pinned: MaxPinned,
    /// How its servers are shared by units of several clients at a time.
    pub pipelining: Pipelining,
    /// What no statement may leave on a server, of [`PIN_KINDS`].
    pub pin_refuse: Vec<&'static str>,
    /// What keeps no server, of the same.
    pub pin_ignore: Vec<&'static str>,
    /// So many prepared statements each of them keeps for all clients; none: a client that prepares
    /// keeps its server.
    pub prepared_statements: u32,
    /// So many more are opened when a client has waited for `reserve_pool_timeout`.
    pub reserve_pool_size: u32,
    /// See `reserve_pool_size`.
    pub reserve_pool_timeout: Duration,
    /// Name to log in to the server with.
    pub server_username: String,
    /// Password for the server; may be empty where the server asks for none.
    pub server_password: Secret,
    /// Sent in session mode to a server whose session has ended and is not known to have left
    /// anything behind; may be empty. What is known to be there goes with DISCARD ALL.
    pub reset_query: String,
    /// As [`General::connect_timeout`].
    pub connect_timeout: Duration,
    /// As [`General::query_wait_timeout`].
    pub query_wait_timeout: Option<Duration>,
    /// As [`General::idle_timeout`].
    pub idle_timeout: Option<Duration>,
    /// As [`General::server_lifetime`].
    pub server_lifetime: Option<Duration>,
    /// How long a client may be silent inside a transaction; `None`: for ever.
    pub idle_in_transaction_timeout: Option<Duration>,
    /// How long a client may keep its server and be silent before the log says so; `None`: for
    /// ever.
    pub pin_idle_timeout: Option<Duration>,
    /// Longest time that a statement may take; `None`: without end.
    pub statement_timeout: Option<Duration>,
    /// Longest time that a transaction may take; `None`: without end.
    pub transaction_timeout: Option<Duration>,
}

/// A part of a pool's data: one database, the same on each of its servers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shard {
    /// Database name on the servers; in a pool for any database, [`ANY_DATABASE`] is the name that
    /// the client gave.
    pub database: String,
    /// At least one, at most one of them the primary.
    pub servers: Vec<Server>,
}

/// A PostgreSQL server.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Server {
    /// Address or name, or the folder of a unix socket (see [`crate::SocketName`]).
    pub host: String,
    /// TCP port, and the number in the name of a unix socket; never 0.
    pub port: u16,
    /// What it is for.
    pub role: Role,
}

/// What a server is for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// Takes reads and writes.
    Primary,
    /// Takes reads.
    Replica,
}

/// How long a client keeps a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PoolMode {
    /// Until it disconnects.
    Session,
    /// For one statement; transaction blocks are refused.
    Statement,
    /// For one transaction.
    Transaction,
}

/// Which of several free servers a client is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerChoice {
    /// The one used last, rather one that is set as the client is than another.
    Recent,
    /// Another than the client had before, if there is one: what works then does not rest on what
    /// is left there.
    NeverSame,
}

/// What becomes of a server when a statement names a function that changes its session, or a table
/// or view behind which there is one: no text shows what they do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoudFunctions {
    /// They are not looked for.
    Ignore,
    /// It stays with its client as if the statement itself did what they do.
    Pin,
    /// It is reset before anybody else gets it.
    Reset,
}

/// Whose `application_name` a server has. The first two are the same as long as no server works for
/// several clients at a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ApplicationName {
    /// That of the client that it is lent to for a transaction.
    Transaction,
    /// That of whoever it works for.
    Always,
    /// Its own.
    Pool,
}

/// What becomes of a server on which a client has advanced a sequence, so that `currval` and
/// `lastval` have something to say there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SequenceAffinity {
    /// It is anybody's behind the transaction, and so is what they say.
    None,
    /// It stays with its client, and then forgets it.
    Pin,
    /// It is anybody's behind the transaction, and is made to forget it before they could tell
    /// somebody else.
    Server,
}

/// What a server may be kept for, as the console calls it.
pub const PIN_KINDS: &[&str] = &[
    "advisory lock",
    "backup",
    "block",
    "extension",
    "hold cursor",
    "library",
    "listen",
    "prepared statement",
    "replication",
    "random seed",
    "sequence",
    "setting",
    "temp table",
    "unclear",
];

/// How many servers of a pool clients may keep behind their transactions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MaxPinned {
    /// All of them.
    Off,
    /// So many.
    Count(u32),
    /// So many of a hundred, rounded up.
    Percent(u32),
}

impl MaxPinned {
    /// The largest number.
    pub const MOST: u32 = i32::MAX as u32;

    /// How many of so many servers: at least one is left for the others, unless there is only one,
    /// which may be kept all the same. `None`: all of them.
    pub fn of(self, pool_size: u32) -> Option<u32> {
        let most = match self {
            Self::Off => return None,
            Self::Count(most) => most,
            // No more than pool_size.
            Self::Percent(percent) => {
                (u64::from(pool_size) * u64::from(percent)).div_ceil(100) as u32
            }
        };
        Some(most.min(pool_size.saturating_sub(1)).max(1))
    }
}

/// As a file has it.
impl fmt::Display for MaxPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("\"off\""),
            Self::Count(most) => write!(f, "{most}"),
            Self::Percent(percent) => write!(f, "\"{percent}%\""),
        }
    }
}

/// How servers of a pool are shared by units of several clients at a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pipelining {
    /// They are not.
    Off,
    /// As many as suit what the pool has to do at the moment.
    Auto,
    /// So many servers are, and so many units stand on each.
    Fixed {
        /// Servers.
        hot: u32,
        /// Units on each.
        depth: u32,
    },
}

impl Pipelining {
    /// The largest number of either.
    pub const MOST: u32 = 1_000;
    /// As many servers are shared where only the number of units is given.
    pub const HOT: u32 = 2;

    /// Reads `off`, `auto`, or two numbers.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Self::Off),
            "auto" => Some(Self::Auto),
            _ => {
                let (hot, depth) = text.split_once('x')?;
                let number = |digits: &str| {
                    let is_one = digits.bytes().all(|byte| byte.is_ascii_digit());
                    digits.parse().ok().filter(|_| is_one)
                };
                Self::fixed(number(hot)?, number(depth)?)
            }
        }
    }

    pub(crate) fn fixed(hot: u32, depth: u32) -> Option<Self> {
        let is_some = |n: u32| (1..=Self::MOST).contains(&n);
        (is_some(hot) && is_some(depth)).then_some(Self::Fixed { hot, depth })
    }
}

/// As a file has it.
impl fmt::Display for Pipelining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("\"off\""),
            Self::Auto => f.write_str("\"auto\""),
            Self::Fixed { hot, depth } => write!(f, "\"{hot}x{depth}\""),
        }
    }
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuthMethod {
    /// AuthenticationMD5Password.
    Md5,
    /// AuthenticationCleartextPassword.
    Password,
    /// AuthenticationSASL with SCRAM-SHA-256.
    ScramSha256,
    /// Not at all.
    Trust,
}

/// A password or something that stands for one. It is never printed.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for whoever has to check or to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The names that an enum's values have in files and on the console.
macro_rules! names {
    ($type:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every name, in the order of messages.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name in files and on the console.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The value of that name, capitals and all.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

names!(AuthMethod {
    Trust = "trust",
    Password = "password",
    Md5 = "md5",
    ScramSha256 = "scram-sha-256",
});
names!(LogFormat { Text = "text", Json = "json" });
names!(LogLevel { Error = "error", Warn = "warn", Info = "info", Debug = "debug" });
names!(PoolMode { Session = "session", Transaction = "transaction", Statement = "statement" });
names!(ServerChoice { Recent = "recent", NeverSame = "never_same" });
names!(ApplicationName { Transaction = "transaction", Always = "always", Pool = "pool" });
names!(SequenceAffinity { None = "none", Pin = "pin", Server = "server" });
names!(LoudFunctions { Ignore = "ignore", Pin = "pin", Reset = "reset" });
names!(Role { Primary = "primary", Replica = "replica" });

//! The table of settings: everything that is known about each of them, said once. The parser,
//! the nearest-name hints and the warnings read it here.

use Effect::{Never, Now};
use Fallback::{Absent, Outer, Required, Same};
use Kind::{
    Any, Flag, Host, Integer, Mode, Name, Period, Pipelining, Secret, Sections, SectionsByNumber,
    Servers, Share, Size, SocketFolder, Sql, Text, Time, Word, Words,
};
use Section::{FlatRoot, General, Pool, Root, Shard, User};

use crate::setting::{
    Changes, Column, Effect, Fallback, Flat, Kind, Ours, Section, Setting, TIME_MAX_MS, Unit, Zero,
};
use crate::types::{
    ApplicationName, AuthMethod, LogFormat, LogLevel, LoudFunctions, PIN_KINDS, PoolMode,
    SequenceAffinity, ServerChoice,
};

/// The databases that are the console, and can therefore be no pool's name.
pub const CONSOLE_DATABASES: [&str; 3] = ["pgweir", "pgcat", "pgbouncer"];

/// Every setting, by section.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    row(Root, "general", Kind::Section(General), is(Absent), Now,
        "What holds for the whole process.")
        .flat(FlatRoot, "general"),
    row(Root, "pools", Sections(Pool), is(Required), Now,
        "The databases that clients may ask for; NAME is the database in the client's request, or \
         \"*\" for all that have no pool of their own."),
    row(Root, "plugins", Any, is(Absent), not_yet("statements are neither changed nor refused"),
        "Plugins for all pools.")
        .flat(FlatRoot, "plugins"),
    row(Root, "config_version", Integer(1, 1), is(Absent), Now,
        "The version of our own format; without it a file is read as PgCat reads it."),
    row(Root, "path", Text, is(Absent), Never("the path is the one on the command line"),
        "Path of the file itself.")
        .not_ours()
        .flat(FlatRoot, "path"),
    row(Root, "pool", Any, is(Absent), Never(NOT_IN_PGCAT),
        "A slip in PgCat's example file, where it stands for `pools`.")
        .not_ours(),

    row(FlatRoot, "query_router", Kind::Section(Pool), is(Absent), Now,
        "The settings of the one pool, which is named like the database of its first shard.")
        .not_ours(),
    row(FlatRoot, "user", Kind::Section(User), is(Required), Now,
        "The one user.")
        .not_ours(),

    row(General, "host", Host, text("0.0.0.0"), Now,
        "Name or address to listen on; with \"\" only a unix socket is.")
        .ours("127.0.0.1"),
    row(General, "port", PORT, text("6432"), Now,
        "TCP port to listen on, and the number in the name of the unix socket."),
    row(General, "unix_socket_dir", SocketFolder, is(Absent), Now,
        "Folder of the unix socket `.s.PGSQL.PORT` to listen on, or with an @ the start of an \
         abstract name; the default holds where that folder is there and can be written to.")
        .ours("/run/pgweir"),
    row(General, "unix_socket_mode", Mode, text("0777"), Now,
        "Who may connect to the unix socket, as the permissions of its file."),
    row(General, "unix_socket_group", Name, is(Absent), Now,
        "Group of the unix socket's file, a name or a number; without it, that of the process."),
    row(General, "worker_threads", Integer(1, 1024), text("4"), Now,
        "Threads that carry traffic, each that of its own pools; without it, as many as there are \
         processors to run on.")
        .ours_absent()
        .at_start(),
    row(General, "max_clients", COUNT, is(Absent), Now,
        "Most clients at a time; without it, as many as leave every server a file descriptor, and \
         100,000 at most."),
    row(General, "max_logins", COUNT, text("1000"), Now,
        "Most clients at a time that have not logged in yet."),
    row(General, "max_db_client_connections", COUNT, is(Absent), Now,
        "Most clients of one database, over all its users."),
    row(General, "max_user_client_connections", COUNT, is(Absent), Now,
        "Most clients of one user name, over all databases."),
    row(General, "max_server_connections", COUNT, is(Absent), Now,
        "Most connections to one server (host and port), over all pools; one that hangs and was \
         given up counts no more. Without it, where the file has a config_version or sets \
         instances: 90% of the server's max_connections less reserved, divided by instances."),
    row(General, "instances", COUNT, text("1"), Now,
        "How many pgweir share the connections of a server."),
    row(General, "max_db_connections", COUNT, is(Absent), Now,
        "Most server connections of one database, over all its users."),
    row(General, "max_user_connections", COUNT, is(Absent), Now,
        "Most server connections of one user name, over all databases."),
    row(General, "reserve_pool_size", Integer(0, MANY), text("0"), Now,
        "Server connections beyond pool_size for clients that have waited too long."),
    row(General, "reserve_pool_timeout", time(Zero::AtOnce), ms("5000"), Now,
        "How long a client has waited when the reserve is used; it never is where \
         query_wait_timeout is not longer."),
    row(General, "connect_parallelism", COUNT, text("64"), Now,
        "Most connections to one server that are being made at a time."),
    row(General, "connect_timeout", time(Zero::Refused), ms("5000"), Now,
        "Longest time to open a connection to a server and to log in there."),
    row(General, "query_wait_timeout", time(Zero::Off), Column {
            unit: Unit::Milliseconds, fallback: Same("connect_timeout") }, Now,
        "Longest time a client waits for a server.")
        .ours("30000"),
    row(General, "client_login_timeout", time(Zero::Off), ms("15000"), Now,
        "Longest time a client may take to log in."),
    row(General, "idle_timeout", time(Zero::Off), ms("600000"), Now,
        "How long an unused server connection is kept."),
    row(General, "server_lifetime", time(Zero::Off), ms("3600000"), Now,
        "Age at which a server connection is closed once it is idle, for each by chance up to a \
         fifth less or more."),
    row(General, "shutdown_timeout", time(Zero::AtOnce), ms("60000"), Now,
        "How long SIGTERM waits for clients to finish; what is set when it comes."),
    row(General, "auth_type", Word(AUTH_METHODS), text("md5"), Now,
        "How clients prove who they are; a SCRAM verifier as password turns md5 into SCRAM.")
        .ours("scram-sha-256"),
    row(General, "allow_trust_anywhere", Flag, text("false"), Now,
        "Allow auth_type trust although the host is not a loopback address; a unix socket is \
         this machine in any case."),
    row(General, "admin_username", Name, is(Absent), Now,
        "User of the console; without it nobody (in pgcat.toml admin, on loopback hosts only) but, \
         over the unix socket and without a password, whoever runs pgweir."),
    row(General, "admin_password", Secret, is(Absent), Now,
        "Password of the console's user."),
    row(General, "admin_auth_type", Word(AUTH_METHODS), text("md5"), Now,
        "How the console's user proves who it is.")
        .ours("scram-sha-256"),
    row(General, "log_level", Word(LogLevel::NAMES), text("info"), Now,
        "The least that is logged; `debug` adds nothing to `info` yet."),
    row(General, "log_format", Word(LogFormat::NAMES), text("text"), Now,
        "How: a line of text for each event, or a JSON object a line."),
    row(General, "log_client_connections", Flag, text("false"), Now,
        "Log a line for each client that connects."),
    row(General, "log_client_disconnections", Flag, text("false"), Now,
        "Log a line for each client that leaves."),
    row(General, "tcp_keepalives_idle", Time(Zero::Off, KEEPALIVE_MAX_MS), seconds("5"), Now,
        "Silence before the first keepalive probe; off: the kernel's value. Connections have what \
         was set when they were made.")
        .ours("60"),
    row(General, "tcp_keepalives_interval", Time(Zero::Off, KEEPALIVE_MAX_MS), seconds("5"), Now,
        "Time between keepalive probes; off: the kernel's value. Connections have what was set \
         when they were made.")
        .ours("10"),
    row(General, "tcp_keepalives_count", Integer(0, 127), text("5"), Now,
        "Unanswered probes after which a connection is dead; 0: the kernel's value. Connections \
         have what was set when they were made.")
        .ours("3"),
    row(General, "tcp_user_timeout", time(Zero::Off), ms("10000"), Now,
        "How long (up to half more) a peer at work may acknowledge nothing; off: the kernel's \
         time.")
        .ours("30000"),
    row(General, "server_round_robin", Flag, text("true"),
        not_yet_unless("false", "the last one used is taken"),
        "Take the idle server connection that was unused longest, not the last one used.")
        .ours("false"),
    row(General, "healthcheck_timeout", time(Zero::Refused), ms("1000"), not_yet(NO_CHECKS),
        "Longest time for a server to answer a health check."),
    row(General, "healthcheck_delay", time(Zero::AtOnce), ms("30000"), not_yet(NO_CHECKS),
        "How long a server connection may be reused without a health check."),
    row(General, "ban_time", time(Zero::AtOnce), seconds("60"), not_yet(NO_CHECKS),
        "How long a server that failed gets no work."),
    row(General, "client_idle_timeout", time(Zero::Off), ms("0"), Now,
        "How long a client may be silent outside a transaction."),
    row(General, "pipelining", Pipelining, text("auto"), Now,
        "How units of several clients share servers, one behind the other: off, auto, which is as \
         many as suit a pool, so many units at a time on each of two servers, or servers and \
         units, such as 3x8.")
        .live(),
    row(General, "max_buffer_memory", Size, Column {
            unit: Unit::Bytes, fallback: Fallback::Text("67108864") }, Now,
        "Most memory for replies that are kept until they are over, of all clients that share \
         servers. A read whose reply finds no room is run again on a server alone."),
    row(General, "max_pinned", Share, text("50%"), Now,
        "Most servers of a pool that clients keep behind their transactions, for what they have \
         left there: a number, a percentage of pool_size, rounded up, or off. At least one is left \
         for the others, and one may be kept in any case. A statement that would keep one more is \
         refused."),
    row(General, "pin_idle_timeout", time(Zero::Off), ms("300000"), Now,
        "How long a client may keep its server outside a transaction, for what it has left there, \
         and be silent before the log says so."),
    row(General, "idle_client_in_transaction_timeout", time(Zero::Off), ms("0"), Now,
        "How long a client may be silent inside a transaction."),
    row(General, "statement_timeout", Time(Zero::Off, STATEMENT_MAX_MS), ms("0"), Now,
        "Longest time that a statement may take; servers are told when they are logged in to."),
    row(General, "transaction_timeout", time(Zero::Off), ms("0"), Now,
        "Longest time that a transaction may take."),
    row(General, "autoreload", Period(15_000), Column {
            unit: Unit::Milliseconds, fallback: Absent }, Now,
        "How often to look whether the file has changed, to reload it; true: every 15 s."),
    row(General, "enable_prometheus_exporter", Flag, text("false"), Now,
        "Serve metrics over HTTP, on the host that clients connect to, or, where that is empty, on \
         127.0.0.1: the path is /metrics, and no password is asked for."),
    row(General, "prometheus_exporter_port", PORT, text("9930"), Now,
        "TCP port of the metrics."),
    row(General, "tls_certificate", Text, is(Absent), not_yet("clients cannot use TLS"),
        "File with the certificate shown to clients."),
    row(General, "tls_private_key", Text, is(Absent), not_yet("clients cannot use TLS"),
        "File with the certificate's key."),
    row(General, "server_tls", Flag, text("false"),
        not_yet_unless("false", "connections to servers are not encrypted"),
        "Encrypt connections to servers."),
    row(General, "verify_server_certificate", Flag, text("false"),
        not_yet_unless("false", "connections to servers are not encrypted"),
        "Check the certificates of servers."),
    row(General, "auth_query", Text, is(Absent), not_yet(NO_AUTH_QUERY),
        "Statement that fetches the password of a user."),
    row(General, "auth_query_user", Text, is(Absent), not_yet(NO_AUTH_QUERY),
        "User that runs auth_query."),
    row(General, "auth_query_password", Secret, is(Absent), not_yet(NO_AUTH_QUERY),
        "Password of that user."),
    row(General, "dns_cache_enabled", Flag, text("false"), not_yet_unless("false", ""),
        "Watch the addresses of server names."),
    row(General, "dns_max_ttl", time(Zero::Refused), seconds("30"), not_yet(""),
        "How long the address of a server name is believed."),
    row(General, "validate_config", Flag, text("true"),
        not_yet_unless("false", "servers are not asked at start"),
        "Connect to every server at start."),
    row(General, "verify_config", Any, is(Absent), Never(NOT_IN_PGCAT),
        "PgCat's manual names validate_config so.")
        .not_ours(),
    row(General, "prepared_statements", Any, is(Absent), Never(NOT_IN_PGCAT),
        "A setting of PgCat 1.1.")
        .not_ours(),
    row(General, "prepared_statements_cache_size", Any, is(Absent), Never(NOT_IN_PGCAT),
        "A setting of PgCat 1.1, which is now in [pools.NAME].")
        .not_ours(),
    row(General, "statsd_address", Any, is(Absent), Never(NOT_IN_PGCAT),
        "A setting of PgCat 0.1.")
        .not_ours(),

    row(Pool, "users", Sections(User), is(Required), Now,
        "Who may log in; N only orders them.")
        .not_flat(),
    row(Pool, "shards", SectionsByNumber(Shard), is(Required), Now,
        "Where the data is; N is the shard's number, from 0.")
        .flat(FlatRoot, "shards"),
    row(Pool, "pool_mode", Word(POOL_MODES), text("transaction"), Now,
        "How long a client keeps a server.")
        .flat(General, "pool_mode"),
    row(Pool, "server_choice", Word(SERVER_CHOICES), text("recent"), Now,
        "Which of several free servers a client is given: recent, the one used last that has its \
         settings; never_same, another than it had before, for tests of what that changes."),
    row(Pool, "loud_functions", Word(LOUD_FUNCTIONS), text("pin"), Now,
        "What becomes of a server when a statement names a function that changes its session, or a \
         table or view behind which there is one: pin, it stays with the client until nothing of \
         that is left; reset, it is reset before anybody else gets it; ignore, they are not looked \
         for."),
    row(Pool, "quiet_functions", Text, text(""), Now,
        "Functions that change nothing in a session, although they look so, with commas between."),
    row(Pool, "application_name", Word(APPLICATION_NAMES), text("transaction"), Now,
        "Whose application_name a server has: transaction and always, that of the client that has \
         it, which is set where it is another one; pool, its own: a client's is not set, and what \
         one sets itself is taken back before the next transaction. In session mode it is always \
         the client's."),
    row(Pool, "sequence_affinity", Word(SEQUENCE_AFFINITIES), text("server"), Now,
        "What becomes of a server on which a client has advanced a sequence, by nextval or by an \
         INSERT with a default: server, it is anybody's behind the transaction, and currval and \
         lastval are an error (55000) where they would say what another client has done there; \
         pin, it stays with the client, for which they say what they would directly; none, they \
         may say what another client has done."),
    row(Pool, "pin_refuse", Words(PIN_KINDS), text(""), Now,
        "What no statement may leave on a server behind its transaction, with commas between; one \
         that would is refused. There are: advisory lock, backup, block, extension, hold cursor, \
         library, listen, prepared statement, replication, random seed, sequence, setting, temp \
         table, unclear."),
    row(Pool, "pin_ignore", Words(PIN_KINDS), text(""), Now,
        "What keeps no server, of the same, with commas between: it is left there, and whoever \
         comes next may meet with it."),
    row(Pool, "server_reset_query", Sql, text("DISCARD ALL"), Now,
        "What runs on a server behind a session that is not known to have left anything there; \
         what is known is always removed."),
    row(Pool, "connect_timeout", time(Zero::Refused), ms_outer(), Now,
        "Longest time to open a connection to a server and to log in there."),
    row(Pool, "query_wait_timeout", time(Zero::Off), ms_outer(), Now,
        "Longest time a client waits for a server."),
    row(Pool, "idle_timeout", time(Zero::Off), ms_outer(), Now,
        "How long an unused server connection is kept."),
    row(Pool, "server_lifetime", time(Zero::Off), ms_outer(), Now,
        "Age at which a server connection is closed once it is idle, for each by chance up to a \
         fifth less or more."),
    row(Pool, "max_db_client_connections", COUNT, is(Outer), Now,
        "Most clients of this database, over all its users."),
    row(Pool, "max_db_connections", COUNT, is(Outer), Now,
        "Most server connections of this database, over all its users."),
    row(Pool, "reserve_pool_size", Integer(0, MANY), is(Outer), Now,
        "Server connections beyond pool_size for clients that have waited too long."),
    row(Pool, "reserve_pool_timeout", time(Zero::AtOnce), ms_outer(), Now,
        "How long a client has waited when the reserve is used; it never is where \
         query_wait_timeout is not longer."),
    row(Pool, "pipelining", Pipelining, is(Outer), Now,
        "How units of several clients share servers, one behind the other: off, auto, which is as \
         many as suit a pool, so many units at a time on each of two servers, or servers and \
         units, such as 3x8.")
        .live(),
    row(Pool, "max_pinned", Share, is(Outer), Now,
        "Most servers of a pool that clients keep behind their transactions, for what they have \
         left there: a number, a percentage of pool_size, rounded up, or off. At least one is left \
         for the others, and one may be kept in any case. A statement that would keep one more is \
         refused."),
    row(Pool, "pin_idle_timeout", time(Zero::Off), ms_outer(), Now,
        "How long a client may keep its server outside a transaction, for what it has left there, \
         and be silent before the log says so."),
    row(Pool, "idle_client_in_transaction_timeout", time(Zero::Off), ms_outer(), Now,
        "How long a client may be silent inside a transaction."),
    row(Pool, "statement_timeout", Time(Zero::Off, STATEMENT_MAX_MS), ms_outer(), Now,
        "Longest time that a statement may take; servers are told when they are logged in to."),
    row(Pool, "transaction_timeout", time(Zero::Off), ms_outer(), Now,
        "Longest time that a transaction may take."),
    row(Pool, "load_balancing_mode", Word(&["random", "loc", "least_outstanding_connections"]),
        text("random"), not_yet(ONE_SERVER),
        "How a server is chosen for a read."),
    row(Pool, "default_role", Word(&["any", "primary", "replica"]), text("any"),
        not_yet_unless("primary", ONE_SERVER),
        "Where statements go that do not say where.")
        .ours("primary"),
    row(Pool, "query_parser_enabled", Flag, text("false"), not_yet_unless("false", ONE_SERVER),
        "Look at statements to decide where they go."),
    row(Pool, "query_parser_read_write_splitting", Flag, text("false"),
        not_yet_unless("false", ONE_SERVER),
        "Send reads to replicas and writes to the primary."),
    row(Pool, "query_parser_max_length", Size, Column {
            unit: Unit::Bytes, fallback: Absent }, not_yet(ONE_SERVER),
        "Longest statement that is looked at."),
    row(Pool, "primary_reads_enabled", Flag, text("true"), not_yet_unless("true", ONE_SERVER),
        "Let the primary take reads too."),
    row(Pool, "checkout_failure_limit", Integer(0, u64::MAX), is(Absent),
        not_yet_unless("0", "clients stay connected"),
        "Waits in vain after which a client is disconnected."),
    row(Pool, "sharding_function", Word(&["pg_bigint_hash", "sha1"]), text("pg_bigint_hash"),
        not_yet(ONE_SHARD),
        "How a sharding key becomes a shard number."),
    row(Pool, "automatic_sharding_key", Text, is(Absent), not_yet(ONE_SHARD),
        "Column that is the sharding key, as table.column."),
    row(Pool, "sharding_key_regex", Text, is(Absent), not_yet(ONE_SHARD),
        "Pattern that finds the sharding key in a statement."),
    row(Pool, "shard_id_regex", Text, is(Absent), not_yet(ONE_SHARD),
        "Pattern that finds the shard number in a statement."),
    row(Pool, "regex_search_limit", Size, Column {
            unit: Unit::Bytes, fallback: Fallback::Text("1000") }, not_yet(ONE_SHARD),
        "How much of a statement those patterns see."),
    row(Pool, "default_shard", Text, text("shard_0"), not_yet_unless("shard_0", ONE_SHARD),
        "Shard of statements that name none: shard_N, random or random_healthy."),
    row(Pool, "no_shard_specified_behavior", Any, is(Absent), Never(NOT_IN_PGCAT),
        "An older name of default_shard.")
        .not_ours(),
    row(Pool, "auth_query", Text, is(Absent), not_yet(NO_AUTH_QUERY),
        "As in [general]."),
    row(Pool, "auth_query_user", Text, is(Absent), not_yet(NO_AUTH_QUERY),
        "As in [general]."),
    row(Pool, "auth_query_password", Secret, is(Absent), not_yet(NO_AUTH_QUERY),
        "As in [general]."),
    row(Pool, "cleanup_server_connections", Flag, text("true"),
        not_yet_unless("true", "server_reset_query says how"),
        "Clean a server connection before somebody else gets it."),
    row(Pool, "log_client_parameter_status_changes", Flag, text("false"),
        not_yet_unless("false", ""),
        "Log when a client changes a setting."),
    // PgCat's default is 0, with which prepared statements do not work in transaction mode.
    row(Pool, "prepared_statements_cache_size", Integer(0, MANY), text("200"), Now,
        "Prepared statements kept on each server connection, the ones used last, whoever prepares \
         them; 0: a client that prepares statements keeps its server."),
    row(Pool, "db_activity_based_routing", Flag, text("false"),
        not_yet_unless("false", ONE_SERVER),
        "Send reads of freshly written tables to the primary."),
    row(Pool, "db_activity_init_delay", time(Zero::Refused), ms("100"), not_yet(ONE_SERVER),
        "How long after start all reads go to the primary."),
    row(Pool, "db_activity_based_ms_init_delay", Any, is(Absent), Never(NOT_IN_PGCAT),
        "PgCat's manual names db_activity_init_delay so.")
        .not_ours(),
    row(Pool, "db_activity_ttl", time(Zero::Refused), seconds("900"), not_yet(ONE_SERVER),
        "How long the activity of a database is remembered."),
    row(Pool, "table_mutation_cache_ms_ttl", time(Zero::Refused), ms("50"), not_yet(ONE_SERVER),
        "How long a table counts as freshly written."),
    row(Pool, "plugins", Any, is(Absent), not_yet("statements are neither changed nor refused"),
        "Plugins for this pool."),

    row(User, "username", Name, is(Required), Now,
        "Name that the client logs in with.")
        .flat(User, "name"),
    row(User, "password", Secret, is(Absent), Now,
        "The client's password, its md5 form, or a SCRAM verifier."),
    row(User, "auth_type", Word(AUTH_METHODS), is(Outer), Now,
        "How this user's clients prove who they are."),
    row(User, "pool_size", Integer(1, MANY), text("15"), Now,
        "Most server connections of this user.")
        .ours("20")
        .flat(General, "pool_size"),
    row(User, "pool_mode", Word(POOL_MODES), is(Outer), Now,
        "How long a client keeps a server."),
    row(User, "server_username", Name, is(Same("username")), Now,
        "Name to log in to the server with."),
    row(User, "server_password", Secret, is(Same("password")), Now,
        "Password for the server."),
    row(User, "connect_timeout", time(Zero::Refused), ms_outer(), Now,
        "Longest time to open a connection to a server and to log in there."),
    row(User, "query_wait_timeout", time(Zero::Off), ms_outer(), Now,
        "Longest time a client waits for a server."),
    row(User, "idle_timeout", time(Zero::Off), ms_outer(), Now,
        "How long an unused server connection is kept."),
    row(User, "server_lifetime", time(Zero::Off), ms_outer(), Now,
        "Age at which a server connection is closed once it is idle, for each by chance up to a \
         fifth less or more."),
    row(User, "min_pool_size", Integer(0, MANY), text("0"), Now,
        "Server connections kept open although nobody needs them; none in [pools.\"*\"], whose \
         databases have servers as long as somebody needs them."),
    row(User, "reserve_pool_size", Integer(0, MANY), is(Outer), Now,
        "Server connections beyond pool_size for clients that have waited too long."),
    row(User, "reserve_pool_timeout", time(Zero::AtOnce), ms_outer(), Now,
        "How long a client has waited when the reserve is used; it never is where \
         query_wait_timeout is not longer."),
    row(User, "pipelining", Pipelining, is(Outer), Now,
        "How units of several clients share servers, one behind the other: off, auto, which is as \
         many as suit a pool, so many units at a time on each of two servers, or servers and \
         units, such as 3x8.")
        .live(),
    row(User, "max_pinned", Share, is(Outer), Now,
        "Most servers of a pool that clients keep behind their transactions, for what they have \
         left there: a number, a percentage of pool_size, rounded up, or off. At least one is left \
         for the others, and one may be kept in any case. A statement that would keep one more is \
         refused."),
    row(User, "pin_idle_timeout", time(Zero::Off), ms_outer(), Now,
        "How long a client may keep its server outside a transaction, for what it has left there, \
         and be silent before the log says so."),
    row(User, "idle_client_in_transaction_timeout", time(Zero::Off), ms_outer(), Now,
        "How long a client may be silent inside a transaction."),
    row(User, "statement_timeout", Time(Zero::Off, STATEMENT_MAX_MS), ms_outer(), Now,
        "Longest time that a statement may take; servers are told when they are logged in to."),
    row(User, "transaction_timeout", time(Zero::Off), ms_outer(), Now,
        "Longest time that a transaction may take."),

    row(Shard, "servers", Servers, is(Required), Now,
        "The servers that have this shard's data, each as [host, port, role]."),
    row(Shard, "database", Name, is(Required), Now,
        "Name of the database on those servers; in [pools.\"*\"], \"*\" is the one that the client \
         asks for."),
    row(Shard, "mirrors", Any, is(Absent), not_yet("no traffic is copied"),
        "Servers that get a copy of the traffic, each as [host, port, index of the original]."),
];

const APPLICATION_NAMES: &[&str] = ApplicationName::NAMES;
const AUTH_METHODS: &[&str] = AuthMethod::NAMES;
const COUNT: Kind = Integer(1, MANY);
/// The most that Linux takes (MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL, include/net/tcp.h).
const KEEPALIVE_MAX_MS: u64 = 32_767_000;
const LOUD_FUNCTIONS: &[&str] = LoudFunctions::NAMES;
const MANY: u64 = i32::MAX as u64;
const NO_AUTH_QUERY: &str = "every user needs its password in the file";
const NO_CHECKS: &str = "there are no health checks";
const NOT_IN_PGCAT: &str = "PgCat 1.2 does not read it either";
const ONE_SERVER: &str = "one server is used for everything";
const ONE_SHARD: &str = "the first shard is used for everything";
const POOL_MODES: &[&str] = PoolMode::NAMES;
const SEQUENCE_AFFINITIES: &[&str] = SequenceAffinity::NAMES;
const SERVER_CHOICES: &[&str] = ServerChoice::NAMES;
const PORT: Kind = Integer(1, 65_535);
/// The most that PostgreSQL takes (statement_timeout, src/backend/utils/misc/guc_tables.c): it
/// refuses a login that asks for more.
const STATEMENT_MAX_MS: u64 = i32::MAX as u64;

const fn row(
    section: Section,
    name: &'static str,
    kind: Kind,
    pgcat: Column,
    effect: Effect,
    doc: &'static str,
) -> Setting {
    let (ours, flat, changes) = (Ours::Same, Flat::Same, Changes::AtReload);
    Setting { section, name, kind, pgcat, ours, flat, effect, changes, doc }
}

/// Any length of time.
const fn time(zero: Zero) -> Kind {
    Time(zero, TIME_MAX_MS)
}

const fn is(fallback: Fallback) -> Column {
    Column { unit: Unit::One, fallback }
}

const fn text(default: &'static str) -> Column {
    is(Fallback::Text(default))
}

const fn ms(default: &'static str) -> Column {
    Column { unit: Unit::Milliseconds, fallback: Fallback::Text(default) }
}

const fn ms_outer() -> Column {
    Column { unit: Unit::Milliseconds, fallback: Outer }
}

const fn seconds(default: &'static str) -> Column {
    Column { unit: Unit::Seconds, fallback: Fallback::Text(default) }
}

const fn not_yet(instead: &'static str) -> Effect {
    Effect::NotYet { unless: None, instead }
}

const fn not_yet_unless(unless: &'static str, instead: &'static str) -> Effect {
    Effect::NotYet { unless: Some(unless), instead }
}

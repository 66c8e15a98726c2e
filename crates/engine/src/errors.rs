//! Every error that a client gets from pgweir itself, as one table; `docs/errors.md` is made from
//! it. What a server says is forwarded and stands in PostgreSQL's own documentation.

use std::fmt::{Display, Write as _};

use pgweir_wire::backend::Report;
use pgweir_wire::{Severity, SqlState};

/// A kind of error: everything about it but what happened in one case.
#[derive(Debug)]
pub struct ErrorKind {
    /// What it ends.
    pub severity: Severity,
    /// The code that drivers decide by.
    pub code: SqlState,
    /// One line, with `{}` where a name or a figure of the case stands.
    pub message: &'static str,
    /// When it comes.
    pub when: &'static str,
    /// What the reader can do about it, with `{}` as above; may be empty.
    pub hint: &'static str,
}

impl ErrorKind {
    /// The error of one case. `names` are put into the message and behind that into the hint, in
    /// their order.
    pub fn report(&self, names: &[&dyn Display]) -> Report {
        let mut names = names.iter().copied();
        let message = filled(self.message, &mut names);
        let report = Report { severity: self.severity, ..Report::error(self.code, message) };
        if self.hint.is_empty() { report } else { report.hint(filled(self.hint, &mut names)) }
    }
}

/// A text with names in its gaps.
fn filled<'a>(text: &str, names: &mut impl Iterator<Item = &'a dyn Display>) -> String {
    let mut filled = String::new();
    for (index, part) in text.split("{}").enumerate() {
        if index > 0 {
            let name = names.next();
            debug_assert!(name.is_some(), "{text:?} lacks a name");
            // Writing to a String cannot fail.
            let _ = name.map(|name| write!(filled, "{name}"));
        }
        filled.push_str(part);
    }
    filled
}

pub(crate) const SHUTTING_DOWN: ErrorKind = fatal(
    SqlState::CANNOT_CONNECT_NOW,
    "the pooler is shutting down",
    "at login, while pgweir drains",
    "",
);
pub(crate) const TERMINATED: ErrorKind = fatal(
    SqlState::ADMIN_SHUTDOWN,
    "terminating connection due to administrator command",
    "between transactions, when pgweir drains or a reload has taken the client's pool away; at any \
     time, when it ends at once: the DETAIL says if what was under way may have been committed",
    "",
);
pub(crate) const NO_USER: ErrorKind = fatal(
    SqlState::INVALID_AUTHORIZATION,
    "no PostgreSQL user name specified in startup packet",
    "at login",
    "",
);
pub(crate) const NO_POOL: ErrorKind = fatal(
    SqlState::INVALID_AUTHORIZATION,
    "no pool for database \"{}\" and user \"{}\"",
    "at login, where everybody is trusted; else an unknown name looks like a wrong password",
    "",
);
pub(crate) const WRONG_PASSWORD: ErrorKind = fatal(
    SqlState::INVALID_PASSWORD,
    "password authentication failed for user \"{}\"",
    "at login; the user or the database may be unknown just as well",
    "",
);
pub(crate) const LOGIN_TOO_SLOW: ErrorKind = fatal(
    SqlState::CONNECTION_FAILURE,
    "login took too long",
    "at login, after client_login_timeout",
    "Prove who it is at once, or raise client_login_timeout.",
);
pub(crate) const REPLICATION: ErrorKind = fatal(
    SqlState::INVALID_PARAMETER_VALUE,
    "invalid value for parameter \"replication\": \"{}\"",
    "at login",
    "Valid values are: \"false\", 0, \"true\", 1, \"database\".",
);
pub(crate) const SWITCH_INVALID: ErrorKind = fatal(
    SqlState::SYNTAX_ERROR,
    "invalid command-line argument for server process: {}",
    "at login with the parameter options, where PostgreSQL says the same",
    "Try \"postgres --help\" for more information.",
);
pub(crate) const SWITCH_WITHOUT_VALUE: ErrorKind = fatal(
    SqlState::SYNTAX_ERROR,
    "{} requires a value",
    "at login with the parameter options, where PostgreSQL says the same",
    "",
);
pub(crate) const CHOICE: ErrorKind = fatal(
    SqlState::INVALID_PARAMETER_VALUE,
    "invalid value for parameter \"pgweir.pipelining\": \"{}\"",
    "at login",
    "Available values: auto, off.",
);
pub(crate) const TOO_MANY_LOGINS: ErrorKind = fatal(
    SqlState::TOO_MANY_CONNECTIONS,
    "sorry, too many clients are logging in",
    "at once, when max_logins others have not logged in yet",
    "Try again, or raise max_logins.",
);
pub(crate) const TOO_MANY_CLIENTS: ErrorKind = fatal(
    SqlState::TOO_MANY_CONNECTIONS,
    "sorry, too many clients already",
    "at login, when there are max_clients others",
    "Raise max_clients, or let clients share connections.",
);
pub(crate) const TOO_MANY_OF_DATABASE: ErrorKind = fatal(
    SqlState::TOO_MANY_CONNECTIONS,
    "too many clients for database \"{}\"",
    "behind a login, when there are max_db_client_connections others",
    "Raise max_db_client_connections, or let clients share connections.",
);
pub(crate) const TOO_MANY_OF_USER: ErrorKind = fatal(
    SqlState::TOO_MANY_CONNECTIONS,
    "too many clients for user \"{}\"",
    "behind a login, when there are max_user_client_connections others",
    "Raise max_user_client_connections, or let clients share connections.",
);
pub(crate) const BUSY: ErrorKind = error(
    SqlState::TOO_MANY_CONNECTIONS,
    "all servers of pool \"{}\" are busy",
    "after query_wait_timeout; the statement was not run. FATAL with 57P03 at login",
    "Shorten transactions, or raise {} or query_wait_timeout.",
);
pub(crate) const NO_SERVER: ErrorKind = error(
    SqlState::TOO_MANY_CONNECTIONS,
    "no server for pool \"{}\" can be reached",
    "after query_wait_timeout; the statement was not run. FATAL with 57P03 at login",
    WHERE_TO_LOOK,
);
pub(crate) const UNREACHABLE: ErrorKind = error(
    SqlState::TOO_MANY_CONNECTIONS,
    "the server cannot be reached",
    "where a new server connection is needed at once; the statement was not run. FATAL with 57P03 \
     at login",
    WHERE_TO_LOOK,
);
pub(crate) const PINS_FULL: ErrorKind = error(
    SqlState::TOO_MANY_CONNECTIONS,
    "too many servers of pool \"{}\" are kept by their clients",
    "when a statement would keep its server behind its transaction and max_pinned others are kept \
     already; it was not run",
    "Raise max_pinned, or end what keeps servers: SHOW CLIENTS on the console says who has what.",
);
pub(crate) const PIN_REFUSED: ErrorKind = error(
    SqlState::FEATURE_NOT_SUPPORTED,
    "pool \"{}\" refuses what keeps a server: {}",
    "when a statement would leave on its server what pin_refuse names; it was not run",
    "Do without it, or take it out of pin_refuse.",
);
pub(crate) const LAST_VALUE_BEHIND_END: ErrorKind = error(
    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    "the last value of a sequence is not known behind a transaction that has failed",
    "when one string ends a transaction that has failed and asks, or may ask, for currval or \
     lastval, on a server that may have those of another client; it was not run",
    "Send ROLLBACK by itself.",
);
pub(crate) const CANCELED: ErrorKind = error(
    SqlState::QUERY_CANCELED,
    "canceling statement due to user request",
    "when a statement is cancelled before a server has got it",
    "",
);
pub(crate) const STATEMENT_MODE: ErrorKind = fatal(
    SqlState::FEATURE_NOT_SUPPORTED,
    "transaction blocks not allowed in statement pooling mode",
    "when pool_mode is statement and a transaction begins",
    "Set pool_mode to transaction for whoever needs transactions.",
);
pub(crate) const ROWS_CHANGED: ErrorKind = error(
    SqlState::FEATURE_NOT_SUPPORTED,
    "cached plan must not change result type",
    "when the rows of a prepared statement are not what they were when its client prepared it, as \
     PostgreSQL says it in one session",
    "",
);
pub(crate) const IDLE: ErrorKind = fatal(
    SqlState::IDLE_SESSION,
    "terminating connection due to idle-session timeout",
    "outside a transaction, after client_idle_timeout",
    "Close connections that are not needed, or raise client_idle_timeout.",
);
pub(crate) const NOTIFIED_TOO_MUCH: ErrorKind = fatal(
    SqlState::PROGRAM_LIMIT_EXCEEDED,
    "terminating connection because too many notifications wait for it",
    "within a transaction, or to a client that does not read, when 8 MiB of what it listens for \
     have come",
    "Listen on a connection that has no long transactions.",
);
pub(crate) const IDLE_IN_TRANSACTION: ErrorKind = fatal(
    SqlState::IDLE_IN_TRANSACTION,
    "terminating connection due to idle-in-transaction timeout",
    "after idle_client_in_transaction_timeout; the transaction is rolled back, or the DETAIL says \
     that it may be over",
    "Wait for nothing else inside a transaction, or raise idle_client_in_transaction_timeout.",
);
pub(crate) const TRANSACTION_TOO_LONG: ErrorKind = fatal(
    SqlState::TRANSACTION_TIMEOUT,
    "terminating connection due to transaction timeout",
    "after transaction_timeout; the transaction is rolled back, or the DETAIL says that it may \
     have been committed",
    "Shorten the transaction, or raise transaction_timeout.",
);
pub(crate) const UNIT_LOST: ErrorKind = error(
    SqlState::SERIALIZATION_FAILURE,
    "the statement was lost with its server",
    "when a server that was sent a statement outside a transaction says, instead of beginning it, \
     that it was idle for too long (57P05); or when a statement that only reads was lost with one \
     server, and then with the next, or behind a notice or the columns of its reply, or with more \
     under way",
    "The statement can be run again. An idle_timeout that is shorter than the server's \
     idle_session_timeout makes the first rare; of the second the server's log may know more.",
);
pub(crate) const OUTCOME_UNKNOWN: ErrorKind = error(
    SqlState::RESOLUTION_UNKNOWN,
    "server closed the connection unexpectedly",
    "when a server is lost that has been sent a statement outside a transaction, or a COMMIT, and \
     no byte of the reply has come, and which is not run again. FATAL where the session is lost \
     with the server",
    "Look whether it was carried out before it is run again.",
);
pub(crate) const REPLY_DROPPED: ErrorKind = error(
    SqlState::RESOLUTION_UNKNOWN,
    "the reply was thrown away, and the schema has changed since",
    "when a statement that shares a server has a reply that is thrown away, since it is too long \
     to be kept, the server has refused what its client has set, or another one under the same \
     Sync has failed with a connection's error, to be asked for again alone, and somebody changes \
     the schema meanwhile: it may do more than to read by then",
    "Look whether it has changed anything before it is run again.",
);
pub(crate) const TRANSACTION_LOST: ErrorKind = error(
    SqlState::SERIALIZATION_FAILURE,
    "the transaction was lost with its server",
    "when a server is lost inside a transaction of which no COMMIT was sent: it is rolled back",
    "The transaction can be run again from its beginning.",
);
pub(crate) const CUT_OFF: ErrorKind = fatal(
    SqlState::ADMIN_SHUTDOWN,
    "server closed the connection unexpectedly",
    "when a server is lost of whose reply a part was forwarded, or with which the client's session \
     is lost, or several statements that only read; and for AND CHAIN behind a transaction that \
     was lost",
    "",
);
pub(crate) const MORE_BEHIND: ErrorKind = fatal(
    SqlState::ADMIN_SHUTDOWN,
    "what was sent behind a failed statement may rest on it",
    "when more was sent behind a unit of which only a part had come when it was refused, or lost \
     with its server: it may have begun a transaction or changed the session, and what stands \
     behind it would run without that",
    "",
);
pub(crate) const CONTAINED: ErrorKind = fatal(
    SqlState::INTERNAL_ERROR,
    "unexpected message from server",
    "when a server says what nothing that was asked allows: a bug of pgweir, please report it",
    "The connection was closed so that no reply reaches the wrong client.",
);
pub(crate) const VIOLATION: ErrorKind = fatal(
    SqlState::PROTOCOL_VIOLATION,
    "{}",
    "when a client sends what the protocol does not allow; the message says what",
    "",
);
pub(crate) const UNSUPPORTED_PROTOCOL: ErrorKind = fatal(
    SqlState::FEATURE_NOT_SUPPORTED,
    "{}",
    "at login with another major version of the protocol, or a second request for encryption",
    "",
);

pub(crate) const SCRAM_UNSUPPORTED: ErrorKind = fatal(
    SqlState::FEATURE_NOT_SUPPORTED,
    "{}",
    "at login, when a client asks of SCRAM what is not spoken here",
    "",
);
pub(crate) const CONSOLE_PROTOCOL: ErrorKind = error(
    SqlState::FEATURE_NOT_SUPPORTED,
    "the console speaks the simple query protocol only",
    "at the console",
    "",
);
pub(crate) const CONSOLE_TOO_LONG: ErrorKind = fatal(
    SqlState::PROTOCOL_VIOLATION,
    "a message to the console has at most {} bytes",
    "at the console",
    "",
);
/// A request that is no command of the console.
pub const CONSOLE_INVALID: ErrorKind = error(
    SqlState::PROTOCOL_VIOLATION,
    "invalid command '{}', use SHOW HELP;",
    "at the console; the hint names the nearest command",
    "",
);
/// A command of PgBouncer's that this console does not have.
pub const CONSOLE_UNSUPPORTED: ErrorKind = error(
    SqlState::FEATURE_NOT_SUPPORTED,
    "{} is not supported by this console",
    "at the console",
    "SHOW HELP lists what is.",
);
/// A process id that none of our backends has.
pub const CONSOLE_NO_BACKEND: ErrorKind = error(
    SqlState::INVALID_PARAMETER_VALUE,
    "no connection to a server has the process id {}",
    "at the console",
    "SHOW SERVERS has them, as remote_pid.",
);
/// A value that a setting cannot have.
pub const CONSOLE_VALUE: ErrorKind = error(
    SqlState::INVALID_PARAMETER_VALUE,
    "invalid value for parameter \"{}\"",
    "at the console, to SET; the detail says what was expected",
    "",
);
/// A command that could not be carried out.
pub const CONSOLE_FAILED: ErrorKind = error(
    SqlState::CONFIG_FILE_ERROR,
    "{} has failed, all stays as it was",
    "at the console; the detail says why",
    "",
);

/// What helps against servers that cannot be had.
const WHERE_TO_LOOK: &str =
    "The DETAIL has the cause; pgweir check --connect CONFIG tries the way to every server.";

/// All of them.
pub const ERRORS: &[ErrorKind] = &[
    SHUTTING_DOWN,
    TERMINATED,
    NO_USER,
    NO_POOL,
    WRONG_PASSWORD,
    LOGIN_TOO_SLOW,
    REPLICATION,
    SWITCH_INVALID,
    SWITCH_WITHOUT_VALUE,
    CHOICE,
    TOO_MANY_LOGINS,
    TOO_MANY_CLIENTS,
    TOO_MANY_OF_DATABASE,
    TOO_MANY_OF_USER,
    BUSY,
    NO_SERVER,
    UNREACHABLE,
    PINS_FULL,
    PIN_REFUSED,
    LAST_VALUE_BEHIND_END,
    CANCELED,
    STATEMENT_MODE,
    ROWS_CHANGED,
    IDLE,
    NOTIFIED_TOO_MUCH,
    IDLE_IN_TRANSACTION,
    TRANSACTION_TOO_LONG,
    UNIT_LOST,
    OUTCOME_UNKNOWN,
    REPLY_DROPPED,
    TRANSACTION_LOST,
    CUT_OFF,
    MORE_BEHIND,
    CONTAINED,
    VIOLATION,
    UNSUPPORTED_PROTOCOL,
    SCRAM_UNSUPPORTED,
    CONSOLE_PROTOCOL,
    CONSOLE_TOO_LONG,
    CONSOLE_INVALID,
    CONSOLE_UNSUPPORTED,
    CONSOLE_NO_BACKEND,
    CONSOLE_VALUE,
    CONSOLE_FAILED,
];

/// `docs/errors.md`.
pub fn errors_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for ErrorKind { severity, code, message, when, hint } in ERRORS {
        let severity = severity.word();
        let message = if *message == "{}" { "(what is wrong)" } else { message };
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| {code} | {severity} | {message} | {when} | {hint} |");
    }
    page
}

const INTRODUCTION: &str = "\
# Errors

Written by `make docs` from the table in `crates/engine/src/errors.rs`.

These are the errors that pgweir itself gives. All others come from PostgreSQL and are forwarded as
they are. ERROR ends the statement and leaves the client connected; FATAL ends the connection. The
DETAIL of an error says what happened in this case: which pool, which server, how long, how many
others wait, how much a limit is. `{}` stands for a name; in a hint, for that of the setting.

An ERROR for a statement that was not run is FATAL where that begins a transaction, or leaves
something in the session, and more was sent behind it without waiting for the answer: that may rest
on it.

| SQLSTATE | severity | message | when | hint |
|---|---|---|---|---|
";

const fn error(
    code: SqlState,
    message: &'static str,
    when: &'static str,
    hint: &'static str,
) -> ErrorKind {
    ErrorKind { severity: Severity::Error, code, message, when, hint }
}

const fn fatal(
    code: SqlState,
    message: &'static str,
    when: &'static str,
    hint: &'static str,
) -> ErrorKind {
    ErrorKind { severity: Severity::Fatal, ..error(code, message, when, hint) }
}

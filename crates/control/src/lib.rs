//! What an operator asks and is told: the console.
//!
//! The console is a database (named in [`pgweir_config::CONSOLE_DATABASES`]) that answers a
//! handful of commands in place of SQL. Its commands, columns, column types and command tags are
//! PgBouncer's, so that what watches PgBouncer watches this as well.
//!
//! [`answer`] is a pure function: a request and an engine's [`Snapshot`] in, the messages of one
//! whole reply out. It is never given a connection, a clock or a lock, so that it can hold up
//! nobody: whoever calls it has copied the state before, and does so away from the threads that
//! carry traffic.
//!
//! Invariants:
//! - Every request gets exactly one ReadyForQuery, and at most one ErrorResponse before it.
//! - No counter is kept twice: SHOW POOLS counts the clients and servers that SHOW CLIENTS and
//!   SHOW SERVERS list.
//! - No secret is in a snapshot, so none can be shown.

mod command;
mod rates;
mod show;
mod table;

#[cfg(test)]
mod tests;

use std::time::SystemTime;

use pgweir_engine::Snapshot;
use pgweir_wire::TransactionStatus;
use pgweir_wire::backend::{command_complete, empty_query_response, ready_for_query};

use command::Command;

pub use rates::Rates;

/// Appends the reply to the simple query `request`, its text without the zero byte. `taken` is
/// [`Snapshot::now`] on the calendar.
pub fn answer(
    request: &[u8],
    snapshot: &Snapshot,
    taken: SystemTime,
    rates: &Rates,
    out: &mut Vec<u8>,
) {
    match command::parse(&String::from_utf8_lossy(request)) {
        Ok(Command::Nothing) => empty_query_response(out),
        Ok(Command::Show(what)) => {
            show::show(what, snapshot, taken, rates, out);
            command_complete(out, "SHOW");
        }
        Ok(Command::ShowSetting(setting)) => {
            show::setting(setting, out);
            command_complete(out, "SHOW");
        }
        Ok(Command::Set(setting)) => {
            table::notice(out, &format!("{} is not set: the console has no session", setting.name));
            command_complete(out, "SET");
        }
        Err(report) => report.write(out),
    }
    ready_for_query(out, TransactionStatus::Idle);
}

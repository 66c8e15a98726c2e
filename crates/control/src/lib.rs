//! What an operator asks and is told: the console, and metrics.
//!
//! The console is a database (named in [`pgweir_config::CONSOLE_DATABASES`]) that answers a
//! handful of commands in place of SQL. Its commands, columns, column types and command tags are
//! PgBouncer's, so that what watches PgBouncer watches this as well.
//!
//! [`answer`] is a pure function: a request and a [`State`] in, the messages of one whole reply
//! out. What a request asks of the process besides, an [`Order`], is told by [`order`]. Neither is
//! given a connection, a clock or a lock, so that they can hold up nobody: whoever calls them has
//! copied the state before, and does so away from the threads that carry traffic. [`metrics`] says
//! the same to machines, in their form.
//!
//! Invariants:
//! - Every request gets exactly one ReadyForQuery, and at most one ErrorResponse before it.
//! - No counter is kept twice: SHOW POOLS counts the clients and servers that SHOW CLIENTS and
//!   SHOW SERVERS list.
//! - No secret is in a state, so none can be shown.

mod census;
mod change;
mod command;
mod explain;
mod metrics;
mod order;
mod rates;
mod show;
mod table;

#[cfg(test)]
mod tests;

use std::time::SystemTime;

use pgweir_config::{Demand, Explained};
use pgweir_engine::{CONSOLE_FAILED, Snapshot};
use pgweir_wire::TransactionStatus;
use pgweir_wire::backend::{command_complete, empty_query_response, ready_for_query};

use command::Command;

pub use metrics::metrics;
pub use order::Order;
pub use rates::Rates;

/// What there is to tell.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// What the engine is doing.
    pub snapshot: &'a Snapshot,
    /// [`Snapshot::now`] on the calendar.
    pub taken: SystemTime,
    /// What pools had done before.
    pub rates: &'a Rates,
    /// Every setting that holds.
    pub config: &'a [Explained],
    /// What the configuration can open at each server.
    pub demands: &'a [Demand],
    /// Bytes of memory that the process has in use, if the kernel tells.
    pub resident_bytes: Option<usize>,
}

/// What the simple query `request`, its text without the zero byte, asks of the process. `config`:
/// as in [`State`].
pub fn order(request: &[u8], config: &[Explained]) -> Option<Order> {
    match command::parse(request, config) {
        Ok(Command::Change(change)) => Some(Order::Set(change)),
        Ok(Command::Order(row)) => Some(row.order.clone()),
        Ok(
            Command::ClientOf(_)
            | Command::ExplainRoute(_)
            | Command::Nothing
            | Command::Show(_)
            | Command::ShowSetting(_)
            | Command::Set(_),
        )
        | Err(_) => None,
    }
}

/// Appends the reply to a request. `done`: why what it asks of the process was not done.
pub fn answer(request: &[u8], state: &State<'_>, done: Result<(), String>, out: &mut Vec<u8>) {
    match command::parse(request, state.config) {
        Ok(Command::ClientOf(process_id)) => match show::client_of(process_id, state, out) {
            Ok(()) => command_complete(out, "SHOW"),
            Err(report) => report.write(out),
        },
        Ok(Command::ExplainRoute(statement)) => {
            explain::routes(statement, state.snapshot, out);
            command_complete(out, "EXPLAIN");
        }
        Ok(Command::Change(_)) => match done {
            Ok(()) => command_complete(out, "SET"),
            Err(why) => CONSOLE_FAILED.report(&[&"SET"]).detail(why).write(out),
        },
        Ok(Command::Nothing) => empty_query_response(out),
        Ok(Command::Order(row)) => match done {
            Ok(()) => command_complete(out, row.command),
            Err(why) => {
                CONSOLE_FAILED.report(&[&row.command]).detail(why).write(out);
            }
        },
        Ok(Command::Show(what)) => {
            show::show(what, state, out);
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

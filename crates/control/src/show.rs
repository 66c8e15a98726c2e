//! The results of SHOW. Columns, their types and their order are those of PgBouncer's sources after
//! 1.25.

mod connections;
mod databases;
mod limits;
mod loud;
mod pins;
mod pipelining;
mod pools;
mod process;
mod stats;

use std::time::Duration;

use pgweir_wire::backend::Report;

use crate::State;
use crate::command::{Setting, Show};
use crate::table::{Table, text};

pub(crate) use process::memory_by_name;

/// Appends RowDescription and DataRows of `what`.
pub(crate) fn show(what: Show, state: &State<'_>, out: &mut Vec<u8>) {
    let snapshot = state.snapshot;
    match what {
        Show::Clients => connections::clients(state, out),
        Show::Config => process::config(state.config, out),
        Show::Databases => databases::databases(snapshot, out),
        Show::Help => process::help(out),
        Show::Limits => limits::limits(state, out),
        Show::Lists => process::lists(snapshot, out),
        Show::Loud => loud::loud(snapshot, out),
        Show::Mem => process::mem(state, out),
        Show::Pins => pins::pins(snapshot, out),
        Show::Pipelining => pipelining::pipelining(snapshot, out),
        Show::Pools => pools::pools(snapshot, state.rates, out),
        Show::Servers => connections::servers(state, out),
        Show::State => process::state(out),
        Show::Stats => stats::stats(snapshot, state.rates, out),
        Show::StatsAverages => stats::averages(snapshot, state.rates, out),
        Show::StatsTotals => stats::totals(snapshot, state.rates, out),
        Show::Totals => stats::sums(snapshot, state.rates, out),
        Show::Users => databases::users(snapshot, out),
        Show::Version => process::version(out),
    }
}

/// Appends RowDescription and DataRows of the client that a backend works for.
pub(crate) fn client_of(
    process_id: i32,
    state: &State<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Report> {
    connections::client_of(process_id, state, out)
}

/// Appends RowDescription and DataRow of a setting that a driver asks for.
pub(crate) fn setting(setting: &Setting, out: &mut Vec<u8>) {
    Table::new(out, &[text(setting.name)]).cell(setting.value).end_row();
}

/// Whole seconds, and the microseconds beyond them.
fn wait(table: &mut Table<'_>, time: Duration) {
    table.cell(time.as_secs()).cell(time.subsec_micros());
}

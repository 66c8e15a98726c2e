//! SHOW STATS and its parts: what each database has done, and all of them together.

use std::collections::BTreeMap;
use std::time::Duration;

use pgweir_engine::{PoolView, Snapshot, Stats};
use pgweir_wire::backend::Column;

use crate::rates::Rates;
use crate::table::{Table, numeric, text};

const STATS: [Column<'_>; 25] = [
    text("database"),
    numeric("total_server_assignment_count"),
    numeric("total_xact_count"),
    numeric("total_query_count"),
    numeric("total_received"),
    numeric("total_sent"),
    numeric("total_xact_time"),
    numeric("total_query_time"),
    numeric("total_wait_time"),
    numeric("total_client_parse_count"),
    numeric("total_server_parse_count"),
    numeric("total_bind_count"),
    numeric("total_client_login_count"),
    numeric("avg_server_assignment_count"),
    numeric("avg_xact_count"),
    numeric("avg_query_count"),
    numeric("avg_recv"),
    numeric("avg_sent"),
    numeric("avg_xact_time"),
    numeric("avg_query_time"),
    numeric("avg_wait_time"),
    numeric("avg_client_parse_count"),
    numeric("avg_server_parse_count"),
    numeric("avg_bind_count"),
    numeric("avg_client_login_count"),
];

const STATS_TOTALS: [Column<'_>; 13] = [
    text("database"),
    numeric("server_assignment_count"),
    numeric("xact_count"),
    numeric("query_count"),
    numeric("bytes_received"),
    numeric("bytes_sent"),
    numeric("xact_time"),
    numeric("query_time"),
    numeric("wait_time"),
    numeric("client_parse_count"),
    numeric("server_parse_count"),
    numeric("bind_count"),
    numeric("client_login_count"),
];

const STATS_AVERAGES: [Column<'_>; 13] = [
    text("database"),
    numeric("server_assignment_count"),
    numeric("xact_count"),
    numeric("query_count"),
    numeric("bytes_received"),
    numeric("bytes_sent"),
    numeric("xact_time"),
    numeric("query_time"),
    numeric("wait_time"),
    numeric("avg_client_parse_count"),
    numeric("avg_server_parse_count"),
    numeric("avg_bind_count"),
    numeric("avg_client_login_count"),
];

/// The rows of SHOW TOTALS, each behind `total_` and behind `avg_`.
const TOTALS: [&str; 12] = [
    "server_assignment_count",
    "xact_count",
    "query_count",
    "client_bytes",
    "server_bytes",
    "xact_time",
    "query_time",
    "wait_time",
    "ps_client_parse_count",
    "ps_server_parse_count",
    "ps_bind_count",
    "client_login_count",
];

/// SHOW STATS: a row for each database, over all its users.
pub(super) fn stats(snapshot: &Snapshot, rates: &Rates, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &STATS);
    for (database, work) in by_database(snapshot, rates) {
        table.cell(database).cells(work.totals()).cells(work.averages(rates.window(snapshot)));
        table.end_row();
    }
}

/// SHOW STATS_TOTALS: the first half of SHOW STATS.
pub(super) fn totals(snapshot: &Snapshot, rates: &Rates, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &STATS_TOTALS);
    for (database, work) in by_database(snapshot, rates) {
        table.cell(database).cells(work.totals()).end_row();
    }
}

/// SHOW STATS_AVERAGES: its second half.
pub(super) fn averages(snapshot: &Snapshot, rates: &Rates, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &STATS_AVERAGES);
    for (database, work) in by_database(snapshot, rates) {
        table.cell(database).cells(work.averages(rates.window(snapshot))).end_row();
    }
}

/// SHOW TOTALS: over all databases, a row for each figure.
pub(super) fn sums(snapshot: &Snapshot, rates: &Rates, out: &mut Vec<u8>) {
    let mut work = Work::default();
    for pool in &snapshot.pools {
        work.add(pool, rates);
    }
    let mut table = Table::new(out, &[text("name"), numeric("value")]);
    let figures = [("total", work.totals()), ("avg", work.averages(rates.window(snapshot)))];
    for (kind, values) in figures {
        for (name, value) in TOTALS.iter().zip(values) {
            table.cell(format_args!("{kind}_{name}")).cell(value).end_row();
        }
    }
    table.cell("total_contained_servers").cell(work.now.contained).end_row();
}

fn by_database<'a>(snapshot: &'a Snapshot, rates: &Rates) -> BTreeMap<&'a str, Work> {
    let mut databases = BTreeMap::<&str, Work>::new();
    for pool in &snapshot.pools {
        databases.entry(&pool.database).or_default().add(pool, rates);
    }
    databases
}

/// What some pools have done, until now and until the moment since when averages are taken.
#[derive(Default)]
struct Work {
    now: Stats,
    before: Stats,
}

impl Work {
    fn add(&mut self, pool: &PoolView, rates: &Rates) {
        add(&mut self.now, &pool.stats);
        add(&mut self.before, &rates.before(&pool.database, &pool.user));
    }

    /// In the order of the columns; times in microseconds.
    fn totals(&self) -> [u128; 12] {
        counts(&self.now)
    }

    /// In the order of the columns: counts for each second, and times for each transaction, query,
    /// and assignment.
    fn averages(&self, window: Duration) -> [u128; 12] {
        let (now, before) = (counts(&self.now), counts(&self.before));
        let grown: [u128; 12] = std::array::from_fn(|n| now[n].saturating_sub(before[n]));
        let window = window.as_micros();
        let a_second = |count: u128| (count * 1_000_000).checked_div(window).unwrap_or(0);
        let [assignments, transactions, queries, ..] = grown;
        let mut averages = grown.map(a_second);
        for (time, times) in [(5, transactions), (6, queries), (7, assignments)] {
            averages[time] = grown[time].checked_div(times).unwrap_or(0);
        }
        averages
    }
}

/// Adds what another pool has done.
fn add(sum: &mut Stats, other: &Stats) {
    sum.assignments += other.assignments;
    sum.transactions += other.transactions;
    sum.queries += other.queries;
    sum.received += other.received;
    sum.sent += other.sent;
    sum.transaction_time += other.transaction_time;
    sum.query_time += other.query_time;
    sum.wait_time += other.wait_time;
    sum.parses += other.parses;
    sum.own_parses += other.own_parses;
    sum.binds += other.binds;
    sum.logins += other.logins;
    sum.refused_full += other.refused_full;
    sum.contained += other.contained;
}

fn counts(stats: &Stats) -> [u128; 12] {
    [
        stats.assignments.into(),
        stats.transactions.into(),
        stats.queries.into(),
        stats.received.into(),
        stats.sent.into(),
        stats.transaction_time.as_micros(),
        stats.query_time.as_micros(),
        stats.wait_time.as_micros(),
        stats.parses.into(),
        stats.own_parses.into(),
        stats.binds.into(),
        stats.logins.into(),
    ]
}

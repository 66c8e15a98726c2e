//! How servers are shared: columns of SHOW POOLS, and SHOW PIPELINING. PgBouncer has neither.

use pgweir_config::Pipelining;
use pgweir_engine::{PoolView, Snapshot};
use pgweir_wire::backend::Column;

use crate::rates::Rates;
use crate::table::{Table, int4, int8, text};

/// What SHOW POOLS has behind PgBouncer's columns.
pub(super) const OF_POOL: [Column<'_>; 10] = [
    text("pipelining"),
    int4("sv_shared_max"),
    int4("depth"),
    int4("sv_shared"),
    int4("shared_percent"),
    int8("hol_p50_us"),
    int8("hol_p99_us"),
    int4("sv_shared_max_writes"),
    int4("depth_writes"),
    int4("joined_percent"),
];

/// Adds the cells of [`OF_POOL`]. What was done counts since averages are taken.
pub(super) fn of_pool(pool: &PoolView, servers_shared: u32, rates: &Rates, table: &mut Table<'_>) {
    let before = rates.before(&pool.database, &pool.user);
    let transactions = pool.stats.transactions.saturating_sub(before.transactions);
    let shared = pool.stats.shared.saturating_sub(before.shared);
    let joined = pool.stats.joined.saturating_sub(before.joined);
    let delays = pool.stats.delays.since(&before.delays);
    table.cell(word(pool.pipelining)).cell(pool.hot_most).cell(pool.depth).cell(servers_shared);
    table.nullable((shared * 100).checked_div(transactions));
    table.nullable(delays.percentile(50)).nullable(delays.percentile(99));
    table.cell(pool.write_hot_most).cell(pool.write_depth);
    table.nullable((joined * 100).checked_div(transactions));
}

const PIPELINING: [Column<'_>; 5] = [
    text("database"),
    text("user"),
    int8("delay_us"),
    int8("total_statements"),
    int8("total_up_to"),
];

/// SHOW PIPELINING: of each pool whose servers are shared, or were, for how long statements stood
/// behind others.
pub(super) fn pipelining(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &PIPELINING);
    for pool in &snapshot.pools {
        let delays = &pool.stats.delays;
        if pool.pipelining == Pipelining::Off && delays.units() == 0 {
            continue;
        }
        let mut up_to = 0;
        for (longest, units) in delays.buckets() {
            up_to += units;
            table.cell(&pool.database).cell(&pool.user).nullable(longest);
            table.cell(units).cell(up_to).end_row();
        }
    }
}

/// As a file has it, without the quotes.
fn word(pipelining: Pipelining) -> String {
    pipelining.to_string().trim_matches('"').to_owned()
}

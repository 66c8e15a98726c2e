//! SHOW POOLS.

use pgweir_engine::Snapshot;
use pgweir_wire::backend::Column;

use super::{pipelining, wait};
use crate::census::Censuses;
use crate::rates::Rates;
use crate::table::{Table, int4, text};

const POOLS: [Column<'_>; 17] = [
    text("database"),
    text("user"),
    int4("cl_active"),
    int4("cl_waiting"),
    int4("cl_active_cancel_req"),
    int4("cl_waiting_cancel_req"),
    int4("sv_active"),
    int4("sv_active_cancel"),
    int4("sv_being_canceled"),
    int4("sv_idle"),
    int4("sv_used"),
    int4("sv_tested"),
    int4("sv_login"),
    int4("maxwait"),
    int4("maxwait_us"),
    text("pool_mode"),
    text("load_balance_hosts"),
];

pub(super) fn pools(snapshot: &Snapshot, rates: &Rates, out: &mut Vec<u8>) {
    let censuses = Censuses::of(snapshot);
    let columns = [&POOLS[..], &pipelining::OF_POOL].concat();
    let mut table = Table::new(out, &columns);
    for pool in &snapshot.pools {
        let census = censuses.of_pool(pool);
        table.cell(&pool.database).cell(&pool.user);
        table.cell(census.clients_active).cell(census.clients_waiting);
        table.cell(census.clients_active_cancel).cell(census.clients_waiting_cancel);
        table.cell(census.servers_active).cell(census.servers_active_cancel);
        table.cell(census.servers_being_canceled).cell(census.servers_idle);
        // PgBouncer's "used" servers are those that it has to check before it lends them.
        table.cell(0).cell(census.servers_tested).cell(census.servers_login);
        wait(&mut table, pool.longest_wait);
        // NULL: no pool has several hosts for one server.
        table.cell(pool.mode.name()).nullable(None::<&str>);
        pipelining::of_pool(pool, census.servers_shared, rates, &mut table);
        table.end_row();
    }
}

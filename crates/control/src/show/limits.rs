//! SHOW LIMITS: how many connections each server can get, and what it has room for. PgBouncer has
//! nothing like it.

use pgweir_engine::{LimitView, Snapshot};
use pgweir_wire::backend::Column;

use crate::table::{Table, int4, int8, text};

const LIMITS: [Column<'_>; 10] = [
    text("host"),
    int4("port"),
    int4("current_connections"),
    int4("pool_sizes"),
    int4("max_server_connections"),
    int4("max_connections"),
    int4("reserved_connections"),
    int4("most"),
    text("binding"),
    int8("refused"),
];

pub(super) fn limits(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &LIMITS);
    for limit in &snapshot.limits {
        let (most, binding) = binding(limit);
        table.cell(&limit.address.host).cell(limit.address.port).cell(limit.used);
        table.cell(limit.wanted).nullable(limit.most);
        table.nullable(limit.room.map(|room| room.connections_max));
        table.nullable(limit.room.map(|room| room.reserved));
        table.cell(most).cell(binding).cell(limit.refused_full).end_row();
    }
}

/// The most connections that there can be, and the setting that is reached first.
fn binding(limit: &LimitView) -> (usize, &'static str) {
    let ours = limit.most.map(|most| (most, "max_server_connections"));
    let theirs = limit.room.map(|room| (room.free() as usize, "max_connections"));
    let limits = [Some((limit.wanted, "pool_size")), ours, theirs];
    let least = limits.into_iter().flatten().min_by_key(|(most, _)| *most);
    least.unwrap_or((limit.wanted, "pool_size"))
}

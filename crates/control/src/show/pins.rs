//! SHOW PINS: why servers stay with their clients, in each pool. PgBouncer has nothing like it.

use pgweir_engine::Snapshot;
use pgweir_wire::backend::Column;

use crate::table::{Table, int4, int8, text};

const PINS: [Column<'_>; 8] = [
    text("database"),
    text("user"),
    text("kind"),
    text("policy"),
    int4("servers"),
    int4("max_pinned"),
    int8("total_begun"),
    int8("total_refused"),
];

pub(super) fn pins(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &PINS);
    for pool in &snapshot.pools {
        for pin in &pool.pins {
            table.cell(&pool.database).cell(&pool.user).cell(pin.kind).cell(pin.policy.name());
            table.cell(pin.servers).nullable(pool.max_pinned).cell(pin.begun).cell(pin.refused);
            table.end_row();
        }
    }
}

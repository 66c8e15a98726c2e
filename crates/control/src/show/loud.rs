//! SHOW LOUD: the names of each database behind which sessions are changed unseen. PgBouncer has
//! nothing like it.

use pgweir_engine::Snapshot;
use pgweir_wire::backend::Column;

use crate::table::{Table, int4, text};

const LOUD: [Column<'_>; 9] = [
    text("host"),
    int4("port"),
    text("database"),
    text("name"),
    text("always"),
    text("when_written"),
    text("when_filled"),
    text("settings"),
    text("why"),
];

pub(super) fn loud(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &LOUD);
    for view in &snapshot.louds {
        let database = &view.database;
        for (name, effect) in view.loud.iter() {
            let settings: Vec<_> =
                effect.custom.iter().map(|name| String::from_utf8_lossy(name)).collect();
            table.cell(&database.address.host).cell(database.address.port).cell(&database.name);
            table.cell(String::from_utf8_lossy(name)).cell(effect.reads);
            table
                .cell(effect.writes)
                .cell(effect.fills)
                .cell(settings.join(", "))
                .cell(&effect.why)
                .end_row();
        }
    }
}

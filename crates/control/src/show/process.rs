//! What there is to show of the process itself: CONFIG, HELP, LISTS, MEM, STATE, VERSION.

use pgweir_config::{Changes, Explained};
use pgweir_engine::{Memory, Snapshot, Usage};
use pgweir_wire::backend::Column;

use super::databases::{count_databases, count_users};
use crate::State;
use crate::change;
use crate::command::{Show, WITH_ARGUMENT};
use crate::order::ORDERS;
use crate::table::{Table, int4, int8, text};

pub(super) fn version(out: &mut Vec<u8>) {
    let version = concat!("pgweir ", env!("CARGO_PKG_VERSION"));
    Table::new(out, &[text("version")]).cell(version).end_row();
}

pub(super) fn help(out: &mut Vec<u8>) {
    let mut table = Table::new(out, &[text("command"), text("about")]);
    for (_, name, about) in Show::ALL {
        table.cell(format_args!("SHOW {name}")).cell(about).end_row();
    }
    for (command, about) in WITH_ARGUMENT {
        table.cell(command).cell(about).end_row();
    }
    table.cell(change::HELP.0).cell(change::HELP.1).end_row();
    for row in &ORDERS {
        match row.argument {
            None => table.cell(row.command),
            Some(argument) => table.cell(format_args!("{} {argument}", row.command)),
        };
        table.cell(row.about).end_row();
    }
}

/// PgBouncer's modes: two of them come of commands that there are none of here.
pub(super) fn state(out: &mut Vec<u8>) {
    let mut table = Table::new(out, &[text("key"), text("value")]);
    for (key, value) in [("active", "yes"), ("paused", "no"), ("suspended", "no")] {
        table.cell(key).cell(value).end_row();
    }
}

const CONFIG: [Column<'_>; 4] = [text("key"), text("value"), text("default"), text("changeable")];

pub(super) fn config(config: &[Explained], out: &mut Vec<u8>) {
    let mut table = Table::new(out, &CONFIG);
    for one in config {
        let changeable = match one.changes {
            Changes::AtReload | Changes::Live => "yes",
            Changes::AtStart => "no",
        };
        table.cell(&one.key).nullable(one.value.as_ref()).nullable(one.default.as_ref());
        table.cell(changeable).end_row();
    }
}

pub(super) fn lists(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &[text("list"), int4("items")]);
    let memory = &snapshot.memory;
    let lists = [
        ("databases", count_databases(snapshot)),
        ("users", count_users(snapshot)),
        ("peers", 0),
        ("pools", snapshot.pools.len()),
        ("peer_pools", 0),
        ("free_clients", memory.clients.free),
        ("used_clients", memory.clients.used),
        ("login_clients", snapshot.logins),
        ("free_servers", memory.servers.free),
        ("used_servers", memory.servers.used),
        // No name is remembered.
        ("dns_names", 0),
        ("dns_zones", 0),
        ("dns_queries", 0),
        ("dns_pending", 0),
    ];
    for (list, items) in lists {
        table.cell(list).cell(items).end_row();
    }
}

/// PgBouncer's are int4, in which a few gigabytes would not fit.
const MEM: [Column<'_>; 5] =
    [text("name"), int8("size"), int8("used"), int8("free"), int8("memtotal")];

pub(super) fn mem(state: &State<'_>, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &MEM);
    let process = state.resident_bytes.map(|bytes| ("process", Usage::of_bytes(bytes, 1, 0)));
    for (name, usage) in memory_by_name(&state.snapshot.memory).into_iter().chain(process) {
        let Usage { size, used, free, total } = usage;
        table.cell(name).cell(size).cell(used).cell(free).cell(total).end_row();
    }
}

/// PgBouncer's names for what it has too, and others for the rest.
pub(crate) fn memory_by_name(memory: &Memory) -> [(&'static str, Usage); 7] {
    [
        ("pool_cache", memory.pools),
        ("client_cache", memory.clients),
        ("server_cache", memory.servers),
        ("cancel_cache", memory.cancels),
        ("settings_cache", memory.settings),
        ("statement_cache", memory.statements),
        ("iobuf_cache", memory.buffers),
    ]
}

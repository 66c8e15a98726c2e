//! SHOW LIMITS: how many connections each server can get, and what it has room for. PgBouncer has
//! nothing like it.

use pgweir_config::{Demand, Limit};
use pgweir_engine::LimitView;
use pgweir_wire::backend::Column;

use crate::State;
use crate::table::{Table, int4, int8, text};

const LIMITS: [Column<'_>; 10] = [
    text("host"),
    int4("port"),
    int4("current_connections"),
    int8("pool_sizes"),
    int4("max_server_connections"),
    int4("max_connections"),
    int4("reserved_connections"),
    int8("most"),
    text("binding"),
    int8("refused"),
];

pub(super) fn limits(state: &State<'_>, out: &mut Vec<u8>) {
    let views = &state.snapshot.limits;
    let is_left = |view: &&LimitView| !state.demands.iter().any(|demand| leads_to(demand, view));
    let mut demands: Vec<_> = state.demands.to_vec();
    demands.extend(views.iter().filter(is_left).map(of_nobody));
    demands.sort_by(|a, b| (&a.host, a.port).cmp(&(&b.host, b.port)));
    let mut table = Table::new(out, &LIMITS);
    for demand in &demands {
        let view = views.iter().find(|view| leads_to(demand, view));
        let room = view.and_then(|view| view.room);
        let most = demand.most(room);
        table.cell(&demand.host).cell(demand.port).cell(view.map_or(0, |view| view.used));
        table.nullable(demand.of_pools).nullable(demand.limit.most(room));
        table.nullable(room.map(|room| room.connections_max));
        table.nullable(room.map(|room| room.reserved));
        table.nullable(most.connections).nullable(most.binding.map(|binding| binding.name()));
        table.cell(view.map_or(0, |view| view.refused_full)).end_row();
    }
}

fn leads_to(demand: &Demand, view: &LimitView) -> bool {
    (&demand.host, demand.port) == (&view.address.host, view.address.port)
}

/// A server that no pool of the configuration leads to: what is there is about to go.
fn of_nobody(view: &LimitView) -> Demand {
    let nothing = Some(0);
    Demand {
        host: view.address.host.clone(),
        port: view.address.port,
        of_pools: nothing,
        of_databases: nothing,
        of_users: nothing,
        limit: Limit::None,
    }
}

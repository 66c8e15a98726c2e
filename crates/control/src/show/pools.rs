//! SHOW POOLS.

use std::collections::BTreeMap;

use pgweir_engine::{
    CancelProgress, CancelView, ClientState, ClientTarget, ClientView, ServerActivity, ServerView,
    Snapshot,
};
use pgweir_wire::backend::Column;

use super::{pipelining, wait};
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
    let mut censuses = BTreeMap::<(&str, &str), Census>::new();
    for client in &snapshot.clients {
        match client.target {
            ClientTarget::Console => {}
            ClientTarget::Pool => {
                let pool = (&*client.database, &*client.user);
                censuses.entry(pool).or_default().count_client(client);
            }
        }
    }
    for server in &snapshot.servers {
        let (database, user) = &server.pool;
        censuses.entry((database, user)).or_default().count_server(server);
    }
    for cancel in &snapshot.cancels {
        let (database, user) = &cancel.pool;
        censuses.entry((database, user)).or_default().count_cancel(cancel);
    }
    let columns = [&POOLS[..], &pipelining::OF_POOL].concat();
    let mut table = Table::new(out, &columns);
    for pool in &snapshot.pools {
        let none = Census::default();
        let census = censuses.get(&(&*pool.database, &*pool.user)).unwrap_or(&none);
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

/// How many of a pool do what.
#[derive(Default)]
struct Census {
    clients_active: u32,
    clients_waiting: u32,
    clients_active_cancel: usize,
    clients_waiting_cancel: usize,
    servers_active: u32,
    servers_active_cancel: u32,
    servers_being_canceled: u32,
    servers_idle: u32,
    servers_tested: u32,
    servers_login: u32,
    /// Of the active ones.
    servers_shared: u32,
}

impl Census {
    fn count_client(&mut self, client: &ClientView) {
        let count = match client.state {
            // A client without work counts as active in SHOW POOLS and as idle in SHOW CLIENTS.
            ClientState::Active | ClientState::Idle => &mut self.clients_active,
            ClientState::Waiting => &mut self.clients_waiting,
        };
        *count += 1;
    }

    /// A connection for a cancel is one of a server, and each client that asked for it counts.
    fn count_cancel(&mut self, cancel: &CancelView) {
        let (clients, servers) = match cancel.progress {
            CancelProgress::HeldBack => (&mut self.clients_waiting_cancel, None),
            CancelProgress::Connecting => {
                (&mut self.clients_waiting_cancel, Some(&mut self.servers_login))
            }
            CancelProgress::Sent => {
                (&mut self.clients_active_cancel, Some(&mut self.servers_active_cancel))
            }
        };
        *clients += cancel.requesters.len();
        servers.into_iter().for_each(|servers| *servers += 1);
    }

    fn count_server(&mut self, server: &ServerView) {
        let count = match server.state {
            ServerActivity::Active => &mut self.servers_active,
            ServerActivity::BeingCanceled => &mut self.servers_being_canceled,
            ServerActivity::Idle => &mut self.servers_idle,
            ServerActivity::Login => &mut self.servers_login,
            ServerActivity::Tested => &mut self.servers_tested,
        };
        *count += 1;
        self.servers_shared += u32::from(server.queue.is_some());
    }
}

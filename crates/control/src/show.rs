//! The results of SHOW. Columns, their types and their order are PgBouncer's (1.25).

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use pgweir_wire::backend::Column;

use crate::command::{Setting, Show};
use crate::rates::Rates;
use crate::snapshot::{Client, ClientState, Connection, Server, ServerState, Snapshot, Stats};
use crate::table::{Table, int4, numeric, text};

/// Appends RowDescription and DataRows of `what`.
pub(crate) fn show(what: Show, snapshot: &Snapshot, rates: &Rates, out: &mut Vec<u8>) {
    match what {
        Show::Clients => clients(snapshot, out),
        Show::Help => help(out),
        Show::Pools => pools(snapshot, out),
        Show::Servers => servers(snapshot, out),
        Show::Stats => stats(snapshot, rates, out),
        Show::Version => version(out),
    }
}

/// Appends RowDescription and DataRow of a setting that a driver asks for.
pub(crate) fn setting(setting: &Setting, out: &mut Vec<u8>) {
    Table::new(out, &[text(setting.name)]).cell(setting.value).end_row();
}

fn version(out: &mut Vec<u8>) {
    let version = concat!("pgweir ", env!("CARGO_PKG_VERSION"));
    Table::new(out, &[text("version")]).cell(version).end_row();
}

fn help(out: &mut Vec<u8>) {
    let mut table = Table::new(out, &[text("command"), text("shows")]);
    for (_, name, shows) in Show::ALL {
        table.cell(format_args!("SHOW {name}")).cell(shows).end_row();
    }
}

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

fn pools(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut censuses = BTreeMap::new();
    for pool in &snapshot.pools {
        let key = (pool.database.as_str(), pool.user.as_str());
        censuses.insert(key, (pool, Census::default()));
    }
    for client in &snapshot.clients {
        if let Some((_, census)) = censuses.get_mut(&pool_of(&client.connection)) {
            census.count_client(client);
        }
    }
    for server in &snapshot.servers {
        if let Some((_, census)) = censuses.get_mut(&pool_of(&server.connection)) {
            census.count_server(server);
        }
    }
    let mut table = Table::new(out, &POOLS);
    for ((database, user), (pool, census)) in censuses {
        table.cell(database).cell(user);
        table.cell(census.clients_active).cell(census.clients_waiting);
        table.cell(census.cancels_active).cell(census.cancels_waiting);
        table.cell(census.servers_active).cell(census.servers_active_cancel);
        table.cell(census.servers_being_canceled).cell(census.servers_idle);
        // PgBouncer's "used" servers are those that it has to check before it lends them.
        table.cell(0).cell(census.servers_tested).cell(census.servers_new);
        wait(&mut table, census.waiting_max);
        // NULL: no pool has several hosts for one server.
        table.cell(pool.mode.name()).nullable(None::<&str>).end_row();
    }
}

/// How many of a pool do what.
#[derive(Default)]
struct Census {
    clients_active: u32,
    clients_waiting: u32,
    cancels_active: u32,
    cancels_waiting: u32,
    servers_active: u32,
    servers_active_cancel: u32,
    servers_being_canceled: u32,
    servers_idle: u32,
    servers_tested: u32,
    servers_new: u32,
    waiting_max: Duration,
}

impl Census {
    fn count_client(&mut self, client: &Client) {
        let count = match client.state {
            // A client without work counts as active in SHOW POOLS and as idle in SHOW CLIENTS.
            ClientState::Active | ClientState::Idle => &mut self.clients_active,
            ClientState::ActiveCancel => &mut self.cancels_active,
            ClientState::Waiting => &mut self.clients_waiting,
            ClientState::WaitingCancel => &mut self.cancels_waiting,
        };
        *count += 1;
        self.waiting_max = self.waiting_max.max(client.waiting);
    }

    fn count_server(&mut self, server: &Server) {
        let count = match server.state {
            ServerState::Active => &mut self.servers_active,
            ServerState::ActiveCancel => &mut self.servers_active_cancel,
            ServerState::BeingCanceled => &mut self.servers_being_canceled,
            ServerState::Idle => &mut self.servers_idle,
            ServerState::New => &mut self.servers_new,
            ServerState::Tested => &mut self.servers_tested,
        };
        *count += 1;
    }
}

fn pool_of(connection: &Connection) -> (&str, &str) {
    (&connection.database, &connection.user)
}

const CONNECTIONS: [Column<'_>; 21] = [
    text("type"),
    text("user"),
    text("database"),
    text("replication"),
    text("state"),
    text("addr"),
    int4("port"),
    text("local_addr"),
    int4("local_port"),
    text("connect_time"),
    text("request_time"),
    int4("wait"),
    int4("wait_us"),
    int4("close_needed"),
    text("ptr"),
    text("link"),
    int4("remote_pid"),
    text("tls"),
    text("application_name"),
    int4("prepared_statements"),
    int4("id"),
];

fn clients(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &CONNECTIONS);
    for client in &snapshot.clients {
        let state = match client.state {
            ClientState::Active => "active",
            ClientState::ActiveCancel => "active_cancel_req",
            ClientState::Idle => "idle",
            ClientState::Waiting => "waiting",
            ClientState::WaitingCancel => "waiting_cancel_req",
        };
        let row = Row {
            kind: 'C',
            linked: 'S',
            state,
            waiting: client.waiting,
            close_needed: false,
            backend_pid: 0,
        };
        row.write(&client.connection, snapshot.now, &mut table);
    }
}

fn servers(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &CONNECTIONS);
    for server in &snapshot.servers {
        let state = match server.state {
            ServerState::Active => "active",
            ServerState::ActiveCancel => "active_cancel",
            ServerState::BeingCanceled => "being_canceled",
            ServerState::Idle => "idle",
            ServerState::New => "new",
            ServerState::Tested => "tested",
        };
        let row = Row {
            kind: 'S',
            linked: 'C',
            state,
            waiting: Duration::ZERO,
            close_needed: server.close_needed,
            backend_pid: server.backend_pid,
        };
        row.write(&server.connection, snapshot.now, &mut table);
    }
}

/// What a row of SHOW CLIENTS and one of SHOW SERVERS take from different places.
struct Row {
    kind: char,
    linked: char,
    state: &'static str,
    waiting: Duration,
    close_needed: bool,
    backend_pid: u32,
}

impl Row {
    fn write(&self, connection: &Connection, now: SystemTime, table: &mut Table<'_>) {
        let Connection { id, database, user, host, port, local, .. } = connection;
        table.cell(self.kind).cell(user).cell(database).cell("none").cell(self.state);
        table.cell(host).cell(port);
        table.cell(local.map(|local| local.ip().to_string()).unwrap_or_default());
        table.cell(local.map_or(0, |local| local.port()));
        table.cell(Timestamp(now, connection.age));
        table.cell(Timestamp(now, connection.request_age.unwrap_or(connection.age)));
        wait(table, self.waiting);
        table.cell(u8::from(self.close_needed)).cell(format_args!("{}{id}", self.kind));
        let link = connection.link.map(|id| format!("{}{id}", self.linked));
        table.cell(link.unwrap_or_default()).cell(self.backend_pid);
        // No connection is encrypted.
        table.cell("").cell(&connection.application_name);
        table.cell(connection.prepared_statements).cell(id);
        table.end_row();
    }
}

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

/// One row for each database, over all its users.
fn stats(snapshot: &Snapshot, rates: &Rates, out: &mut Vec<u8>) {
    let mut databases = BTreeMap::<&str, (Stats, Stats)>::new();
    for pool in &snapshot.pools {
        let (now, before) = databases.entry(&pool.database).or_default();
        now.add(&pool.stats);
        before.add(&rates.before(&pool.database, &pool.user));
    }
    let window = rates.window(snapshot);
    let mut table = Table::new(out, &STATS);
    for (database, (now, before)) in databases {
        table.cell(database);
        for total in counts(&now) {
            table.cell(total);
        }
        for average in averages(&now, &before, window) {
            table.cell(average);
        }
        table.end_row();
    }
}

/// In the order of the columns; times in microseconds.
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

/// In the order of the columns: counts for each second, and times for each transaction, query,
/// and assignment.
fn averages(now: &Stats, before: &Stats, window: Duration) -> [u128; 12] {
    let (now, before) = (counts(now), counts(before));
    let grown: [u128; 12] = std::array::from_fn(|n| now[n].saturating_sub(before[n]));
    let a_second = |count: u128| (count * 1_000_000).checked_div(window.as_micros()).unwrap_or(0);
    let [assignments, transactions, queries, ..] = grown;
    let mut averages = grown.map(a_second);
    for (time, times) in [(5, transactions), (6, queries), (7, assignments)] {
        averages[time] = grown[time].checked_div(times).unwrap_or(0);
    }
    averages
}

/// Whole seconds, and the microseconds beyond them.
fn wait(table: &mut Table<'_>, time: Duration) {
    table.cell(time.as_secs()).cell(time.subsec_micros());
}

/// A moment that long before another, as in `2026-11-21 17:52:03 UTC`.
struct Timestamp(SystemTime, Duration);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;

        let moment = self.0.checked_sub(self.1).ok_or(fmt::Error)?;
        let mut rfc3339 = String::new();
        // Fails for years that have not four digits.
        write!(rfc3339, "{}", humantime::format_rfc3339_seconds(moment))?;
        f.write_str(&rfc3339.replace('T', " ").replace('Z', " UTC"))
    }
}

//! The results of SHOW. Columns, their types and their order are PgBouncer's (1.25).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use pgweir_engine::{
    ClientState, ClientTarget, ClientView, ServerActivity, ServerView, Snapshot, Stats, Time,
};
use pgweir_wire::backend::Column;

use crate::command::{Setting, Show};
use crate::rates::Rates;
use crate::table::{Table, int4, numeric, text};

/// Appends RowDescription and DataRows of `what`.
pub(crate) fn show(
    what: Show,
    snapshot: &Snapshot,
    taken: SystemTime,
    rates: &Rates,
    out: &mut Vec<u8>,
) {
    let calendar = Calendar { now: snapshot.now, taken };
    match what {
        Show::Clients => clients(snapshot, calendar, out),
        Show::Help => help(out),
        Show::Pools => pools(snapshot, out),
        Show::Servers => servers(snapshot, calendar, out),
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
    let mut table = Table::new(out, &POOLS);
    for pool in &snapshot.pools {
        let none = Census::default();
        let census = censuses.get(&(&*pool.database, &*pool.user)).unwrap_or(&none);
        table.cell(&pool.database).cell(&pool.user);
        table.cell(census.clients_active).cell(census.clients_waiting);
        // A cancel request is passed on at once, on a connection of its own.
        table.cell(pool.clients_cancelling).cell(0);
        table.cell(census.servers_active).cell(pool.clients_cancelling);
        table.cell(census.servers_being_canceled).cell(census.servers_idle);
        // PgBouncer's "used" servers are those that it has to check before it lends them.
        table.cell(0).cell(census.servers_tested).cell(census.servers_login);
        wait(&mut table, pool.longest_wait);
        // NULL: no pool has several hosts for one server.
        table.cell(pool.mode.name()).nullable(None::<&str>).end_row();
    }
}

/// How many of a pool do what.
#[derive(Default)]
struct Census {
    clients_active: u32,
    clients_waiting: u32,
    servers_active: u32,
    servers_being_canceled: u32,
    servers_idle: u32,
    servers_tested: u32,
    servers_login: u32,
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

    fn count_server(&mut self, server: &ServerView) {
        let count = match server.state {
            ServerActivity::Active => &mut self.servers_active,
            ServerActivity::BeingCanceled => &mut self.servers_being_canceled,
            ServerActivity::Idle => &mut self.servers_idle,
            ServerActivity::Login => &mut self.servers_login,
            ServerActivity::Tested => &mut self.servers_tested,
        };
        *count += 1;
    }
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

fn clients(snapshot: &Snapshot, calendar: Calendar, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &CONNECTIONS);
    for client in &snapshot.clients {
        let row = Row {
            kind: 'C',
            database: &client.database,
            user: &client.user,
            state: match client.state {
                ClientState::Active => "active",
                ClientState::Idle => "idle",
                ClientState::Waiting => "waiting",
            },
            host: client.ends.map(|ends| ends.peer.ip().to_string()).unwrap_or_default(),
            port: client.ends.map_or(0, |ends| ends.peer.port()),
            local: client.ends.map(|ends| ends.local),
            connected: calendar.moment(client.since),
            requested: calendar.moment(client.requested),
            wait: client.wait,
            close_needed: false,
            id: client.id.into(),
            link: client.server.map(|id| format!("S{id}")).unwrap_or_default(),
            backend_pid: 0,
            application_name: &client.application_name,
        };
        row.write(&mut table);
    }
}

fn servers(snapshot: &Snapshot, calendar: Calendar, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &CONNECTIONS);
    for server in &snapshot.servers {
        let (database, user) = &server.pool;
        let row = Row {
            kind: 'S',
            database,
            user,
            state: match server.state {
                ServerActivity::Active => "active",
                ServerActivity::BeingCanceled => "being_canceled",
                ServerActivity::Idle => "idle",
                ServerActivity::Login => "new",
                ServerActivity::Tested => "tested",
            },
            host: server.address.host.clone(),
            port: server.address.port,
            local: None,
            connected: calendar.moment(server.since),
            requested: calendar.moment(server.changed),
            wait: Duration::ZERO,
            close_needed: server.close_needed,
            id: server.id.into(),
            link: server.client.map(|id| format!("C{id}")).unwrap_or_default(),
            backend_pid: server.process_id.unwrap_or(0),
            application_name: "",
        };
        row.write(&mut table);
    }
}

/// A row of SHOW CLIENTS or SHOW SERVERS.
struct Row<'a> {
    kind: char,
    database: &'a str,
    user: &'a str,
    state: &'static str,
    host: String,
    port: u16,
    local: Option<SocketAddr>,
    connected: Option<String>,
    requested: Option<String>,
    wait: Duration,
    close_needed: bool,
    id: i64,
    link: String,
    backend_pid: i32,
    application_name: &'a str,
}

impl Row<'_> {
    fn write(&self, table: &mut Table<'_>) {
        table.cell(self.kind).cell(self.user).cell(self.database).cell("none").cell(self.state);
        table.cell(&self.host).cell(self.port);
        match self.local {
            Some(local) => table.cell(local.ip()).cell(local.port()),
            None => table.cell("").cell(0),
        };
        table.nullable(self.connected.as_ref()).nullable(self.requested.as_ref());
        wait(table, self.wait);
        table.cell(u8::from(self.close_needed));
        table.cell(format_args!("{}{}", self.kind, self.id)).cell(&self.link);
        table.cell(self.backend_pid).cell("").cell(self.application_name).cell(0).cell(self.id);
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
        add(now, &pool.stats);
        add(before, &rates.before(&pool.database, &pool.user));
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

/// Where the engine's time stands on the calendar.
#[derive(Clone, Copy)]
struct Calendar {
    now: Time,
    taken: SystemTime,
}

impl Calendar {
    /// A moment as in `2026-11-21 17:52:03 UTC`; `None` before 1970, when a clock is wrong, and
    /// for years that have not four digits.
    fn moment(self, time: Time) -> Option<String> {
        let moment = self.taken.checked_sub(self.now - time)?;
        moment.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let mut text = String::new();
        write!(text, "{}", humantime::format_rfc3339_seconds(moment)).ok()?;
        Some(text.replace('T', " ").replace('Z', " UTC"))
    }
}

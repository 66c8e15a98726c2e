//! SHOW CLIENTS and SHOW SERVERS.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use pgweir_engine::{
    Address, CONSOLE_NO_BACKEND, CancelProgress, ClientState, ClientView, Ends, ReplicationKind,
    ServerActivity, ServerView, Time,
};
use pgweir_wire::backend::{Column, Report};

use super::wait;
use crate::State;
use crate::table::{Table, int4, text};

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

pub(super) fn clients(state: &State<'_>, out: &mut Vec<u8>) {
    let (snapshot, calendar) = (state.snapshot, Calendar::of(state));
    let mut table = Table::new(out, &with_ours("pins"));
    for client in &snapshot.clients {
        Row::of_client(client, calendar).write(&mut table);
    }
    for cancel in &snapshot.cancels {
        let (database, user) = &cancel.pool;
        let connection = format!("S{}", cancel.id);
        let (state, link) = match cancel.progress {
            CancelProgress::HeldBack => ("waiting_cancel_req", ""),
            CancelProgress::Connecting => ("waiting_cancel_req", &*connection),
            CancelProgress::Sent => ("active_cancel_req", &*connection),
        };
        for requester in &cancel.requesters {
            let (remote, local) = sides(requester.ends);
            let since = calendar.moment(requester.since);
            let row = Row {
                kind: 'C',
                database,
                user,
                replication: None,
                state,
                remote,
                local,
                connected: since.clone(),
                requested: since,
                wait: Duration::ZERO,
                close_needed: false,
                id: requester.id.into(),
                link: link.to_owned(),
                backend_pid: 0,
                application_name: "",
                ours: Some(""),
            };
            row.write(&mut table);
        }
    }
}

/// The rows of SHOW CLIENTS of those whose statements backends with this process id run, of which
/// each server may have one; an error if no backend of ours has it.
pub(super) fn client_of(
    process_id: i32,
    state: &State<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Report> {
    let (snapshot, calendar) = (state.snapshot, Calendar::of(state));
    let is_it = |server: &&ServerView| server.process_id == Some(process_id);
    let mut servers = snapshot.servers.iter().filter(is_it).peekable();
    if servers.peek().is_none() {
        return Err(CONSOLE_NO_BACKEND.report(&[&process_id]));
    }
    let clients: Vec<_> = servers.flat_map(served).collect();
    let mut table = Table::new(out, &with_ours("pins"));
    for client in snapshot.clients.iter().filter(|client| clients.contains(&client.id)) {
        Row::of_client(client, calendar).write(&mut table);
    }
    Ok(())
}

pub(super) fn servers(state: &State<'_>, out: &mut Vec<u8>) {
    let (snapshot, calendar) = (state.snapshot, Calendar::of(state));
    let mut table = Table::new(out, &with_ours("queue"));
    for server in &snapshot.servers {
        let (database, user) = &server.pool;
        let queue = server.queue.as_deref().map(queue);
        let row = Row {
            kind: 'S',
            database,
            user,
            replication: server.replication,
            state: match server.state {
                ServerActivity::Active => "active",
                ServerActivity::BeingCanceled => "being_canceled",
                ServerActivity::Idle => "idle",
                ServerActivity::Login => "new",
                ServerActivity::Tested => "tested",
            },
            remote: place(&server.address),
            local: local_place(&server.address, server.local),
            connected: calendar.moment(server.since),
            requested: calendar.moment(server.changed),
            wait: Duration::ZERO,
            close_needed: server.close_needed,
            id: server.id.into(),
            link: server.client.map(|id| format!("C{id}")).unwrap_or_default(),
            backend_pid: server.process_id.unwrap_or(0),
            application_name: "",
            ours: queue.as_deref(),
        };
        row.write(&mut table);
    }
    for cancel in &snapshot.cancels {
        let state = match cancel.progress {
            // There is no connection for it yet.
            CancelProgress::HeldBack => continue,
            CancelProgress::Connecting => "new",
            CancelProgress::Sent => "active_cancel",
        };
        let (database, user) = &cancel.pool;
        let since = calendar.moment(cancel.since);
        let link = cancel.requesters.first().map(|requester| format!("C{}", requester.id));
        let row = Row {
            kind: 'S',
            database,
            user,
            replication: None,
            state,
            remote: place(&cancel.address),
            local: local_place(&cancel.address, cancel.local),
            connected: since.clone(),
            requested: since,
            wait: Duration::ZERO,
            close_needed: false,
            id: cancel.id.into(),
            link: link.unwrap_or_default(),
            backend_pid: 0,
            application_name: "",
            ours: None,
        };
        row.write(&mut table);
    }
}

/// The columns, with one of ours behind PgBouncer's.
fn with_ours(name: &str) -> Vec<Column<'_>> {
    [&CONNECTIONS[..], &[text(name)]].concat()
}

/// Whom a server works for: one of these.
fn served(server: &ServerView) -> impl Iterator<Item = i32> {
    let joined = server.queue.iter().flatten().take(server.joined).flatten();
    server.client.into_iter().chain(joined.copied())
}

/// The clients on a shared server, the one first whose unit is at the head.
fn queue(clients: &[Option<i32>]) -> String {
    let name = |client: &Option<i32>| match client {
        Some(id) => format!("C{id}"),
        None => "gone".to_owned(),
    };
    clients.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// One side of a connection: its columns of address and port.
type Side = (String, u16);

/// What PgBouncer has in place of an address, with the port of the socket's name.
const UNIX: &str = "unix";

/// Where a client is, and where it was accepted.
fn sides(ends: Option<Ends>) -> (Side, Side) {
    match ends {
        Some(Ends::Tcp { peer, local }) => {
            ((peer.ip().to_string(), peer.port()), (local.ip().to_string(), local.port()))
        }
        Some(Ends::Unix { port, .. }) => ((UNIX.to_owned(), port), (UNIX.to_owned(), port)),
        None => Default::default(),
    }
}

/// Where a server is.
fn place(address: &Address) -> Side {
    match address.unix_socket() {
        Some(_) => (UNIX.to_owned(), address.port),
        None => (address.host.clone(), address.port),
    }
}

/// Where a connection to a server begins.
fn local_place(address: &Address, local: Option<SocketAddr>) -> Side {
    match (address.unix_socket(), local) {
        (Some(_), _) => place(address),
        (None, Some(local)) => (local.ip().to_string(), local.port()),
        (None, None) => Side::default(),
    }
}

/// A row of SHOW CLIENTS or SHOW SERVERS.
struct Row<'a> {
    kind: char,
    database: &'a str,
    user: &'a str,
    replication: Option<ReplicationKind>,
    state: &'static str,
    remote: Side,
    local: Side,
    connected: Option<String>,
    requested: Option<String>,
    wait: Duration,
    close_needed: bool,
    id: i64,
    link: String,
    backend_pid: i32,
    application_name: &'a str,
    /// The column of ours: of a client, why its server stays with it; of a server that is shared,
    /// by whom.
    ours: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of_client(client: &'a ClientView, calendar: Calendar) -> Self {
        let (remote, local) = sides(client.ends);
        Self {
            kind: 'C',
            database: &client.database,
            user: &client.user,
            replication: client.replication,
            state: match client.state {
                ClientState::Active => "active",
                ClientState::Idle => "idle",
                ClientState::Waiting => "waiting",
            },
            remote,
            local,
            connected: calendar.moment(client.since),
            requested: calendar.moment(client.requested),
            wait: client.wait,
            close_needed: false,
            id: client.id.into(),
            link: client.server.map(|id| format!("S{id}")).unwrap_or_default(),
            backend_pid: 0,
            application_name: &client.application_name,
            ours: Some(&client.pins),
        }
    }

    fn write(&self, table: &mut Table<'_>) {
        let replication = match self.replication {
            Some(ReplicationKind::Logical) => "logical",
            Some(ReplicationKind::Physical) => "physical",
            None => "none",
        };
        table.cell(self.kind).cell(self.user).cell(self.database);
        table.cell(replication).cell(self.state);
        for (address, port) in [&self.remote, &self.local] {
            table.cell(address).cell(port);
        }
        table.nullable(self.connected.as_ref()).nullable(self.requested.as_ref());
        wait(table, self.wait);
        table.cell(u8::from(self.close_needed));
        table.cell(format_args!("{}{}", self.kind, self.id)).cell(&self.link);
        table.cell(self.backend_pid).cell("").cell(self.application_name).cell(0).cell(self.id);
        table.nullable(self.ours).end_row();
    }
}

/// Where the engine's time stands on the calendar.
#[derive(Clone, Copy)]
struct Calendar {
    now: Time,
    taken: SystemTime,
}

impl Calendar {
    fn of(state: &State<'_>) -> Self {
        Self { now: state.snapshot.now, taken: state.taken }
    }

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

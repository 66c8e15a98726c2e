//! The console, by psql.

use std::process::Output;

use pgweir_testkit::frames::{cancel_request, query};
use pgweir_testkit::postgres::tool;
use pgweir_testkit::{Cluster, WireClient, eventually};

use crate::stage::Stage;
use crate::stopped::Stopped;

pub(crate) fn psql(stage: &Stage, database: &str, password: &str, command: &str) -> Output {
    tool("psql")
        .args(["-XA", "-h", "127.0.0.1", "-U", "admin", "-d", database, "-c", command])
        .args(["-p", &stage.pgweir.port().to_string()])
        .env("PGPASSWORD", password)
        .output()
        .unwrap()
}

/// A row of a result, as (column, value) pairs.
pub(crate) type Row = Vec<(String, String)>;

/// The rows of a SHOW.
pub(crate) fn show(stage: &Stage, what: &str) -> Vec<Row> {
    let output = psql(stage, "pgweir", "admin", &format!("SHOW {what}"));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('('));
    let columns: Vec<_> = lines.next().unwrap().split('|').collect();
    let row = |line: &str| {
        let values = line.split('|').map(str::to_owned);
        columns.iter().map(|column| (*column).to_owned()).zip(values).collect()
    };
    lines.map(row).collect()
}

pub(crate) fn cell<'a>(row: &'a [(String, String)], column: &str) -> &'a str {
    let (_, value) = row.iter().find(|(name, _)| name == column).unwrap();
    value
}

/// The commands of SHOW HELP that show something and want nothing of the caller's, which would be
/// in small letters.
pub(crate) fn shows(help: &str) -> impl Iterator<Item = &str> {
    let commands = help.lines().filter_map(|line| line.split('|').next());
    let is_whole = |command: &&str| !command.chars().any(char::is_lowercase);
    commands.filter(|command| command.starts_with("SHOW ")).filter(is_whole)
}

#[test]
fn every_name_of_the_console() {
    let stage = Stage::new("console_names", 1);
    for database in ["pgweir", "pgcat", "pgbouncer"] {
        let help = psql(&stage, database, "admin", "SHOW HELP;");
        let help = String::from_utf8(help.stdout).unwrap();
        let commands: Vec<_> = shows(&help).collect();
        assert!(commands.len() > 10, "{help}");
        for command in commands {
            let output = psql(&stage, database, "admin", &format!("{command};"));
            assert!(output.status.success(), "{output:?}");
            assert!(!output.stdout.is_empty());
        }
        assert!(!psql(&stage, database, "wrong", "SHOW POOLS").status.success());
        let unknown = psql(&stage, database, "admin", "SHOW NOTHING");
        assert!(String::from_utf8_lossy(&unknown.stderr).contains("invalid command"));
    }
}

#[test]
fn what_it_shows() {
    let stage = Stage::new("console_rows", 2);
    let login = stage.login().parameter("application_name", "shown");
    let (mut client, mut idle) = (stage.client_as(&login), stage.client());
    idle.query("SELECT 1");
    client.query("BEGIN");
    let pid = client.query("SELECT pg_backend_pid()").concat();

    let pools = show(&stage, "POOLS");
    let pool = pools.iter().find(|row| cell(row, "database") == stage.name).unwrap();
    assert_eq!(cell(pool, "user"), stage.name);
    assert_eq!((cell(pool, "sv_active"), cell(pool, "cl_waiting")), ("1", "0"));
    assert_eq!(cell(pool, "pool_mode"), "transaction");

    let clients = show(&stage, "CLIENTS");
    let shown = clients.iter().find(|row| cell(row, "application_name") == "shown").unwrap();
    let servers = show(&stage, "SERVERS");
    let server = servers.iter().find(|row| cell(row, "remote_pid") == pid).unwrap();
    assert_eq!((cell(shown, "state"), cell(server, "state")), ("active", "active"));
    let local = (cell(shown, "local_addr"), cell(shown, "local_port"));
    assert_eq!(local, ("127.0.0.1", stage.pgweir.port().to_string().as_str()));
    assert!(cell(shown, "request_time") >= cell(shown, "connect_time"));
    let own = clients.iter().find(|row| cell(row, "database") == "pgweir").unwrap();
    assert_eq!(cell(own, "user"), "admin");
    assert_eq!(cell(shown, "link"), cell(server, "ptr"));
    assert_eq!(cell(server, "link"), cell(shown, "ptr"));

    client.query("COMMIT");
    let stats = show(&stage, "STATS");
    let row = stats.iter().find(|row| cell(row, "database") == stage.name).unwrap();
    // SELECT 1; BEGIN, SELECT, COMMIT.
    assert_eq!(cell(row, "total_query_count"), "4");
    let version = show(&stage, "VERSION");
    assert!(version[0][0].1.contains(env!("CARGO_PKG_VERSION")));
}

/// PostgreSQL sees each connection begin where the console says that it does.
#[test]
fn servers_are_told_apart_by_where_they_begin() {
    let stage = Stage::new("console_local", 1);
    let mut client = stage.client();
    let ports = client.query("SELECT client_port FROM pg_stat_activity WHERE usename = USER");
    let servers = show(&stage, "SERVERS");
    assert_eq!(servers.len(), 1);
    assert_eq!(cell(&servers[0], "local_addr"), "127.0.0.1");
    assert_eq!([cell(&servers[0], "local_port")], *ports);
}

/// A postmaster that hangs takes the cancel in and does nothing about it for a while.
#[test]
fn cancels_are_listed() {
    let cluster = Cluster::start();
    let stage = Stage::on(&cluster, "console_cancel", 1, |config| config);
    let mut client = stage.client();
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_servers_in_use(1);
    let key = client.cancel_key().unwrap();
    let stopped = Stopped::postmaster(&cluster);
    let _requesters = [(); 2].map(|()| {
        let mut requester = WireClient::open(stage.address()).unwrap();
        requester.send(&cancel_request(key.pid, &key.secret)).unwrap();
        requester
    });
    let states = |what: &str| -> Vec<String> {
        show(&stage, what).iter().map(|row| cell(row, "state").to_owned()).collect()
    };
    eventually("the cancel to be sent", || {
        states("SERVERS") == ["active", "active_cancel"]
            && states("CLIENTS").iter().any(|state| state == "active_cancel_req")
    });
    let pools = show(&stage, "POOLS");
    assert_eq!(cell(&pools[0], "sv_active_cancel"), "1");
    drop(stopped);
    assert_eq!(client.read_until_ready().unwrap().last().unwrap().to_string(), "ReadyForQuery I");
    eventually("the cancel to be over", || states("SERVERS") == ["idle"]);
}

//! Several pools that lead to one database, each with a user, a mode and limits of its own.

use pgweir_testkit::frames::query;
use pgweir_testkit::{Cluster, Login, Pgweir, WireClient, eventually};

use crate::stage::{PROGRAM, assert_sound, superuser};

/// One connection less than the pools would have together.
const MOST: usize = 3;

fn config(port: u16, server_port: u16) -> String {
    let pool = |name: &str, mode: &str, user: &str, role: &str| {
        format!(
            "[pools.{name}]\npool_mode = '{mode}'\n\
             [pools.{name}.users.0]\nusername = '{user}'\npool_size = 2\n\
             server_username = '{role}'\nserver_password = 'secret of {role}'\n\
             [pools.{name}.shards.0]\ndatabase = 'several'\n\
             servers = [['127.0.0.1', {server_port}, 'primary']]\n"
        )
    };
    let (web, batch) = (
        pool("web", "transaction", "visitor", "reader"),
        pool("batch", "session", "worker", "writer"),
    );
    format!(
        "config_version = 1\n[general]\nport = {port}\nauth_type = 'trust'\n\
         unix_socket_dir = ''\nconnect_timeout = '30s'\nmax_server_connections = {MOST}\n\
         admin_username = 'admin'\nadmin_auth_type = 'trust'\n{web}{batch}"
    )
}

/// A PostgreSQL that asks both roles for their passwords.
fn cluster() -> Cluster {
    let line = |role: &str| format!("host all {role} 127.0.0.1/32 scram-sha-256");
    let cluster = Cluster::builder().hba(&line("reader")).hba(&line("writer")).start();
    let mut watcher = superuser(&cluster, "postgres");
    watcher.query("CREATE DATABASE several");
    for role in ["reader", "writer"] {
        watcher.query(&format!("CREATE ROLE {role} LOGIN PASSWORD 'secret of {role}'"));
    }
    cluster
}

const WHO: &str = "SELECT current_database(), current_user";

#[test]
fn each_has_its_own_limits_and_the_server_one_for_both() {
    let cluster = cluster();
    let pgweir = Pgweir::start(PROGRAM, |port| config(port, cluster.port()));
    let client = |pool: &str, user: &str| {
        WireClient::login(pgweir.address(), &Login::new(user).database(pool)).unwrap()
    };
    let mut web = [0; 3].map(|_| client("web", "visitor"));
    let mut batch = [0; 2].map(|_| client("batch", "worker"));
    let mut admin = client("pgweir", "admin");
    let mut watcher = superuser(&cluster, "several");
    let mut backends = || {
        let all = "FROM pg_stat_activity WHERE usename IN ('reader', 'writer')";
        watcher.query(&format!("SELECT count(*) {all}")).concat().parse::<usize>().unwrap()
    };
    let waits = |admin: &mut WireClient, pool: &str| {
        let pools = admin.query("SHOW POOLS");
        let row = pools.iter().find(|row| row.starts_with(pool)).unwrap();
        row.split('|').nth(3).unwrap() == "1"
    };

    // The pool is full, though the server is not.
    for client in &mut web[..2] {
        client.query("BEGIN");
        assert_eq!(client.query(WHO), ["several|reader"]);
    }
    web[2].send(&query(WHO)).unwrap();
    eventually("the third visitor to wait", || waits(&mut admin, "web|"));
    assert_eq!(batch[0].query(WHO), ["several|writer"]);
    // The server is full, though the pool is not.
    batch[1].send(&query(WHO)).unwrap();
    eventually("the second worker to wait", || waits(&mut admin, "batch|"));
    assert_eq!(backends(), MOST);

    let columns = |rows: Vec<String>, columns: &[usize]| -> Vec<String> {
        let row = |row: &String| {
            let cells: Vec<_> = row.split('|').collect();
            columns.iter().map(|column| cells[*column]).collect::<Vec<_>>().join("|")
        };
        let mut rows: Vec<_> = rows.iter().map(row).collect();
        rows.sort();
        rows
    };
    // Name, user, clients at work and waiting, servers at work, mode.
    let pools = columns(admin.query("SHOW POOLS"), &[0, 1, 2, 3, 6, 15]);
    assert_eq!(pools, ["batch|worker|1|1|1|session", "web|visitor|2|1|2|transaction"]);
    // Name, database, user, size, mode, connections.
    let databases = columns(admin.query("SHOW DATABASES"), &[0, 3, 4, 5, 9, 12]);
    let expected = ["batch|several|writer|2|session|1", "web|several|reader|2|transaction|2"];
    assert_eq!(databases, expected);
    let limits = format!("127.0.0.1|{}|3|4|3|100|3|3|max_server_connections|0", cluster.port());
    assert_eq!(admin.query("SHOW LIMITS"), [limits]);

    // What one pool does not need any more the other one gets.
    let who = |client: &mut WireClient| client.read_until_ready().unwrap()[1].to_string();
    web[0].query("COMMIT");
    assert_eq!(who(&mut web[2]), "DataRow \"several\" \"reader\"");
    assert_eq!(who(&mut batch[1]), "DataRow \"several\" \"writer\"");
    assert_eq!(backends(), MOST);
    web[1].query("COMMIT");
    assert_eq!(web[0].query(WHO), ["several|reader"]);
    let log = pgweir.log();
    assert!(!log.contains("no connection to"), "{log}");
    assert_sound(&pgweir);
}

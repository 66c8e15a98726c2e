//! The flat form of pgcat.toml, which is older than PgCat's pools: one user and one database.

use pgweir_testkit::{AuthMethod, Cluster, Login, Pgweir, WireClient};

use crate::stage::{PROGRAM, assert_sound};

const PASSWORD: &str = "open sesame";

fn config(port: u16, server_port: u16) -> String {
    format!(
        r#"
        [general]
        host = "127.0.0.1"
        port = {port}
        admin_username = "keeper"
        admin_password = "of the keys"
        connect_timeout = 30000
        pool_size = 2
        pool_mode = "session"

        [user]
        name = "visitor"
        password = "{PASSWORD}"

        [query_router]
        idle_client_in_transaction_timeout = 90000

        [shards.0]
        database = "museum"
        servers = [["127.0.0.1", {server_port}, "primary"]]
        "#
    )
}

/// A PostgreSQL that asks the one user for the password, too.
fn cluster() -> Cluster {
    let builder = Cluster::builder().hba("host all visitor 127.0.0.1/32 scram-sha-256");
    let cluster = builder.user("visitor", PASSWORD).start();
    cluster.psql("CREATE DATABASE museum OWNER visitor");
    cluster
}

/// These columns of a row.
fn cells(row: &str, columns: &[usize]) -> String {
    let cells: Vec<_> = row.split('|').collect();
    columns.iter().map(|column| cells[*column]).collect::<Vec<_>>().join("|")
}

#[test]
fn its_one_user_and_one_database_are_served() {
    let cluster = cluster();
    let pgweir = Pgweir::start(PROGRAM, |port| config(port, cluster.port()));
    let log_in = |user: &str, password: &str, database: &str| {
        let login = Login::new(user).password(password).database(database);
        WireClient::login(pgweir.address(), &login)
    };

    let mut clients = [0; 2].map(|_| log_in("visitor", PASSWORD, "museum").unwrap());
    for (user, password, database) in [
        ("visitor", "open barley", "museum"),
        ("stranger", PASSWORD, "museum"),
        ("visitor", PASSWORD, "postgres"),
    ] {
        let refused = log_in(user, password, database).unwrap_err().to_string();
        assert!(refused.contains("C=\"28P01\""), "{refused}");
    }
    let [first, second] = &mut clients;
    assert_eq!(first.auth_method(), AuthMethod::Md5);
    first.query("BEGIN");
    first.query("CREATE TABLE visits AS SELECT current_database(), session_user");
    first.query("COMMIT");
    assert_eq!(second.query("TABLE visits"), ["museum|visitor"]);
    // Each keeps a server: they are sessions.
    let pid = "SELECT pg_backend_pid()";
    assert_ne!(first.query(pid), second.query(pid));

    let mut admin = log_in("keeper", "of the keys", "pgweir").unwrap();
    // Name, host, port, database, size, mode, connections.
    let databases = admin.query("SHOW DATABASES");
    let databases: Vec<_> =
        databases.iter().map(|row| cells(row, &[0, 1, 2, 3, 5, 9, 12])).collect();
    let port = cluster.port();
    assert_eq!(databases, [format!("museum|127.0.0.1|{port}|museum|2|session|2")]);
    let settings = admin.query("SHOW CONFIG");
    let settings: Vec<_> = settings.iter().map(|row| cells(row, &[0, 1])).collect();
    for row in [
        "general.connect_timeout|\"30s\"".to_owned(),
        "general.pool_size|2".to_owned(),
        "general.pool_mode|\"session\"".to_owned(),
        "user.name|\"visitor\"".to_owned(),
        "user.password|(a secret)".to_owned(),
        "query_router.idle_client_in_transaction_timeout|\"90s\"".to_owned(),
        "shards.0.database|\"museum\"".to_owned(),
        format!("shards.0.servers|[[\"127.0.0.1\", {port}, \"primary\"]]"),
    ] {
        assert!(settings.contains(&row), "no {row} in {settings:#?}");
    }
    assert_sound(&pgweir);
}

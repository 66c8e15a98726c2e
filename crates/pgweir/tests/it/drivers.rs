//! Drivers of other languages, and frameworks, each with the program of its folder in `drivers/`.
//! What they need is brought by `make drivers`, which runs these tests; psycopg and PostgreSQL's
//! own programs are in [`super::clients`].

use std::process::{Command, Stdio};

use pgweir_testkit::{Cluster, HostAuth, Pgweir, PoolerConfig};

use crate::stage::{PROGRAM, assert_sound};

const NAME: &str = "app";
const PASSWORD: &str = "open, sesame";

/// Far fewer than the clients of any program.
const SERVERS: u32 = 2;

#[test]
#[ignore = "needs what `make drivers` brings"]
fn asyncpg() {
    passes("asyncpg");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn node_postgres() {
    passes("node-postgres");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn pgx() {
    passes("pgx");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn pgjdbc() {
    passes("pgjdbc");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn rails() {
    as_directly("rails");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn sqlx() {
    as_directly("sqlx");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn django() {
    as_directly("django");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn sqlalchemy() {
    as_directly("sqlalchemy");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn hibernate() {
    as_directly("hibernate");
}

#[test]
#[ignore = "needs what `make drivers` brings"]
fn prisma() {
    as_directly("prisma");
}

/// What the program of a framework says in the end is the same directly and through pgweir.
#[track_caller]
fn as_directly(framework: &str) {
    let cluster = cluster();
    let directly = run(framework, cluster.port());
    assert_eq!(passes(framework), directly);
}

/// Runs a program with transactions that share [`SERVERS`] servers, and SCRAM on both sides of
/// pgweir. Returns what it says in the end.
#[track_caller]
fn passes(driver: &str) -> String {
    let cluster = cluster();
    let config = PoolerConfig::new("postgres", &cluster)
        .general("auth_type", "\"scram-sha-256\"")
        // Clients wait for others to leave, and a loaded machine is no reason for a timeout.
        .general("connect_timeout", "120000")
        // They wait for locks of each other's sessions.
        .general("max_pinned", "\"off\"")
        .user(NAME, PASSWORD, SERVERS);
    let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let said = run(driver, pgweir.port());
    assert_sound(&pgweir);
    let servers = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{NAME}'");
    let servers: u32 = cluster.psql(&servers).parse().unwrap();
    // The listener is one more, and may be there for a moment behind the last that listens.
    assert!((1..=SERVERS + 1).contains(&servers), "{servers}");
    said
}

fn cluster() -> Cluster {
    Cluster::builder().auth(HostAuth::ScramSha256).user(NAME, PASSWORD).start()
}

/// Runs a program against what listens at `port`, and returns its last line.
#[track_caller]
fn run(driver: &str, port: u16) -> String {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/drivers.sh"))
        .args(["run", driver])
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port.to_string())
        .env("PGUSER", NAME)
        .env("PGPASSWORD", PASSWORD)
        .env("PGDATABASE", "postgres")
        .env("SERVERS", SERVERS.to_string())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    print!("{said}");
    assert!(output.status.success(), "{driver}: {}", output.status);
    said.lines().last().unwrap().to_owned()
}

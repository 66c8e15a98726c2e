//! Drivers that are not Rust's or libpq's, each with the program of its folder in `drivers/`. What
//! they need is brought by `make drivers`, which runs these tests; psycopg and PostgreSQL's own
//! programs are in [`super::clients`].

use std::process::Command;

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

/// Runs the program of a driver with transactions that share [`SERVERS`] servers, and SCRAM on both
/// sides of pgweir.
#[track_caller]
fn passes(driver: &str) {
    let cluster = Cluster::builder().auth(HostAuth::ScramSha256).user(NAME, PASSWORD).start();
    let config = PoolerConfig::new("postgres", &cluster)
        .general("auth_type", "\"scram-sha-256\"")
        // Clients wait for others to leave, and a loaded machine is no reason for a timeout.
        .general("connect_timeout", "120000")
        .user(NAME, PASSWORD, SERVERS);
    let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let status = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/drivers.sh"))
        .args(["run", driver])
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", pgweir.port().to_string())
        .env("PGUSER", NAME)
        .env("PGPASSWORD", PASSWORD)
        .env("PGDATABASE", "postgres")
        .env("SERVERS", SERVERS.to_string())
        .status()
        .unwrap();
    assert!(status.success(), "{driver}: {status}");
    assert_sound(&pgweir);
    let servers = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{NAME}'");
    let servers: u32 = cluster.psql(&servers).parse().unwrap();
    assert!((1..=SERVERS).contains(&servers), "{servers}");
}

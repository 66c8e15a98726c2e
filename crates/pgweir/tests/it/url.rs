//! `pgweir postgres://…`: a server to try it with, and no file.

use std::net::TcpListener;
use std::process::Command;

use pgweir_testkit::postgres::tool;
use pgweir_testkit::{AuthMethod, Cluster, HostAuth, Login, Pgweir, WireClient, eventually_some};

use crate::check::pgweir;
use crate::stage::{CLUSTER, PROGRAM, assert_sound};

pub(crate) const PASSWORD: &str = "open: sesame";
const ENCODED: &str = "open:%20sesame";

/// A server that asks the role `app` for its password, and has a database with an odd name.
pub(crate) fn guarded(max_connections: u32) -> Cluster {
    let cluster = Cluster::builder()
        .auth(HostAuth::ScramSha256)
        .setting("max_connections", &max_connections.to_string())
        .user("app", PASSWORD)
        .start();
    cluster.psql("CREATE DATABASE \"it's odd\" OWNER app");
    cluster
}

/// The URL of its role `app`; `password` may be empty.
pub(crate) fn url(cluster: &Cluster, password: &str, database: &str) -> String {
    let colon = if password.is_empty() { "" } else { ":" };
    format!("postgres://app{colon}{password}@127.0.0.1:{}/{database}", cluster.port())
}

/// That URL with the right password.
pub(crate) fn with_password(cluster: &Cluster, database: &str) -> String {
    url(cluster, ENCODED, database)
}

fn start(url: &str) -> Pgweir {
    Pgweir::start_with(PROGRAM, |port| {
        vec![url.to_owned(), "--listen".to_owned(), format!("127.0.0.1:{port}")]
    })
}

/// What it says to try is tried.
#[test]
fn clients_log_in_as_the_url_does() {
    let cluster = guarded(30);
    let pgweir = start(&with_password(&cluster, "it's%20odd"));
    let arguments = eventually_some("the line to try", || {
        let log = pgweir.log();
        log.lines().find_map(|line| line.strip_prefix("To try it:  psql ").map(str::to_owned))
    });
    let psql = tool("psql").get_program().to_str().unwrap().to_owned();
    let line = format!("'{psql}' -XAtqwc 'SELECT current_database(), current_user' {arguments}");
    let psql = |password: &str| {
        Command::new("sh").args(["-c", &line]).env("PGPASSWORD", password).output().unwrap()
    };
    let output = psql(PASSWORD);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "it's odd|app\n", "{output:?}");
    assert!(!psql("wrong").status.success());
    let log = pgweir.log();
    assert!(!log.contains(PASSWORD) && !log.contains(ENCODED), "{log}");
    assert_sound(&pgweir);
}

#[test]
fn without_a_password_this_machine_is_trusted() {
    let url = format!("postgresql://postgres@localhost:{}/postgres?sslmode=prefer", CLUSTER.port());
    let pgweir = start(&url);
    let mut client = WireClient::login(pgweir.address(), &Login::new("postgres")).unwrap();
    assert_eq!(client.auth_method(), AuthMethod::Trust);
    assert_eq!(client.query("SELECT current_user"), ["postgres"]);

    let (code, _, said) = self::pgweir(&[&url, "--listen", "0.0.0.0:6432"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("has no password") && said.contains("--listen with a"), "{said}");
}

#[test]
fn the_name_of_the_console_is_no_database() {
    let (code, _, said) = pgweir(&["postgres://app@127.0.0.1/pgbouncer"]);
    assert_eq!(code, Some(2));
    let expected = "postgres://app@127.0.0.1:5432/pgbouncer: this database is the console; \
                    expected another one\n";
    assert_eq!(said, expected);
}

#[test]
fn a_port_that_is_taken_is_told_with_the_way_out() {
    const URL: &str = "postgres://app@127.0.0.1/app";
    const USUAL: &str = "127.0.0.1:6432";
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = other.local_addr().unwrap().to_string();
    // If it cannot be taken it is somebody else's, which is as good here.
    let _usual = TcpListener::bind(USUAL);
    for (arguments, place) in [(&[URL, "--listen", &place][..], place.as_str()), (&[URL], USUAL)] {
        let (code, out, said) = pgweir(arguments);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        let expected = format!("cannot listen on {place}: Address already in use");
        assert!(said.contains(&expected) && said.contains("--listen HOST:PORT"), "{said}");
    }
}

#[test]
fn what_is_wrong_with_a_url_is_told_without_its_password() {
    let wrong: &[(&[&str], &str)] = &[
        (&["postgres://app:hunter2@db/app?sslmod=disable"], "did you mean \"sslmode\"?"),
        (&["postgress://app:hunter2@db/app"], "expected postgres:// or postgresql://"),
        (&["postgres://app:hunter2@db/pgbouncer"], "this database is the console"),
        (&["check", "postgres://app:hunter2@db/app"], "pgweir init writes one for a URL"),
        (&["init", "postgres://app:hunter2@db:0/app"], "expected a port from 1 to 65535"),
        (&["init", "postgres://app:hunter2@a b/app"], "expected a host name, an IP address"),
        (&["postgres://app:hunter2@db/app", "--listen", "6432"], "expected HOST:PORT"),
        (&["pgweir.toml", "--listen", "127.0.0.1:6432"], "--listen goes with a URL"),
    ];
    for (arguments, expected) in wrong {
        let (code, out, said) = pgweir(arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}: {said}");
        assert!(said.contains(expected) && !said.contains("hunter2"), "{arguments:?}: {said}");
    }
}

//! Starting, watching and ending the program, with a small stand-in for it.

use std::{io::Write, net::TcpStream, path::PathBuf};

use pgweir_testkit::{Cluster, Pgweir, PoolerConfig, Signal, eventually};

const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_in.py");

fn start() -> Pgweir {
    Pgweir::start(STAND_IN, |port| format!("port = {port}\n"))
}

#[test]
fn it_is_up_when_start_returns_and_leaves_nothing() {
    let pgweir = start();
    let (address, config) = (pgweir.address(), pgweir.config_path());
    assert_eq!(address.port(), pgweir.port());
    assert!(TcpStream::connect(address).is_ok());
    let process = PathBuf::from(format!("/proc/{}", pgweir.pid()));
    assert!(process.exists() && config.exists() && pgweir.is_running());

    drop(pgweir);
    assert!(TcpStream::connect(address).is_err());
    assert!(!process.exists() && !config.exists());
}

#[test]
fn signals_and_the_log() {
    let pgweir = start();
    pgweir.signal(Signal::HUP);
    eventually("the reload", || pgweir.log() == "listening\nreloaded\n");
    pgweir.terminate();
    assert!(pgweir.wait().success());
    assert!(!pgweir.is_running());
}

#[test]
fn quitting_is_no_surprise() {
    let pgweir = start();
    pgweir.quit();
    assert!(!pgweir.wait().success());
}

#[test]
#[should_panic(expected = "ended unasked with exit status: 3")]
fn an_end_that_nobody_asked_for_fails_the_test() {
    let pgweir = start();
    TcpStream::connect(pgweir.address()).unwrap().write_all(b"crash").unwrap();
    eventually("the end", || !pgweir.is_running());
}

#[test]
#[should_panic(expected = "refused: no such key")]
fn a_refused_configuration_fails_the_test() {
    let _pgweir = Pgweir::start(STAND_IN, |_| "refuse\n".to_owned());
}

#[test]
fn a_refusal_can_be_looked_at() {
    let (status, said) = Pgweir::start_refused(STAND_IN, |_| "refuse\n".to_owned());
    assert_eq!((status.code(), said.as_str()), (Some(1), "refused: no such key\n"));
}

#[test]
fn the_usual_configuration() {
    let cluster = Cluster::start();
    let config = PoolerConfig::new("shop", &cluster)
        .general("worker_threads", "1")
        .pool("pool_mode", "\"session\"")
        .user("alice", "qu\"ote", 5)
        .user("bob", "b", 1)
        .user_setting("statement_timeout", "1000");
    let expected = r#"[general]
host = "127.0.0.1"
port = 6432
worker_threads = 1

[pools."shop"]
pool_mode = "session"

[pools."shop".users.0]
username = "alice"
password = "qu\"ote"
pool_size = 5

[pools."shop".users.1]
username = "bob"
password = "b"
pool_size = 1
statement_timeout = 1000

[pools."shop".shards.0]
database = "shop"
servers = [["127.0.0.1", PORT, "primary"]]
"#;
    assert_eq!(config.text(6432), expected.replace("PORT", &cluster.port().to_string()));
}

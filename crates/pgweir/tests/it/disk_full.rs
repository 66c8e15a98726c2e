//! The server's disk is full: PostgreSQL says so (53100), and its client hears just that.

use pgweir_testkit::Script;
use pgweir_testkit::frames::{bind, execute, parse, query, sync};

use crate::stage::{CLUSTER, Stage};

/// Writes to a device that never has room: more than is buffered, so that writing fails, and not
/// only the close.
const FULL: &str = "COPY (SELECT repeat('x', 1000000)) TO '/dev/full'";

/// A stage whose role may write files of the server.
fn stage(name: &str) -> Stage {
    let stage = Stage::new(name, 1);
    stage.ask(&format!("GRANT pg_write_server_files TO {name}"));
    stage
}

/// Every field of it, and what follows, inside a transaction and outside.
#[test]
fn its_error_is_passed_on_as_it_is() {
    let stage = stage("disk_full_error");
    let batch = [parse("", FULL, &[]), bind("", "", &[]), execute("", 0), sync()].concat();
    let script = Script::new(stage.login())
        .ask(&query(FULL))
        .ask(&batch)
        .ask(&query("SELECT 1"))
        .ask(&query("BEGIN"))
        .ask(&query(FULL))
        .ask(&query("SELECT 2"))
        .ask(&batch)
        .ask(&query("ROLLBACK"))
        .ask(&query("SELECT 3"));
    script.assert_same(CLUSTER.address(), stage.address());
    let transcript = script.run(stage.address());
    let codes = transcript.iter().filter(|line| line.starts_with("ErrorResponse"));
    let codes: Vec<_> = codes.map(|line| &line[line.find("C=").unwrap()..][3..8]).collect();
    assert_eq!(codes, ["53100", "53100", "53100", "25P02", "25P02"]);
}

#[test]
fn client_and_server_go_on() {
    let stage = stage("disk_full_after");
    let [mut client, mut other] = [stage.client(), stage.client()];
    let server = client.query("SELECT pg_backend_pid()");
    assert_eq!(client.try_query(FULL).unwrap_err().sqlstate(), "53100");
    assert_eq!(other.query("SELECT pg_backend_pid()"), server);
    client.query("BEGIN");
    assert_eq!(client.try_query(FULL).unwrap_err().sqlstate(), "53100");
    assert_eq!(client.try_query("SELECT 1").unwrap_err().sqlstate(), "25P02");
    client.query("ROLLBACK");
    assert_eq!(client.query("SELECT pg_backend_pid()"), server);
    assert_eq!(other.query("SELECT pg_backend_pid()"), server);
}

//! What a cancel leaves of a statement is PostgreSQL's to say: through pgweir it is the same.

use std::net::SocketAddr;

use pgweir_testkit::frames::{extended, query};
use pgweir_testkit::{WireClient, assert_same_transcript};

use crate::stage::{CLUSTER, Stage};

/// What the client asks when its statement has ended: what was done, and what it still holds.
const AFTERWARDS: &str = "SELECT (SELECT string_agg(what, ' ' ORDER BY at) FROM done), \
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())";

const SCHEMA: &str = "
    CREATE TABLE done (at serial, what text);
    CREATE PROCEDURE halves() LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO done (what) VALUES ('first');
        COMMIT;
        INSERT INTO done (what) VALUES ('second');
        PERFORM pg_sleep(600);
    END $$;
    CREATE FUNCTION stubborn() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO done (what) VALUES ('undone');
        PERFORM pg_sleep(600);
        RETURN 'slept';
    EXCEPTION WHEN query_canceled THEN
        INSERT INTO done (what) VALUES ('caught');
        RETURN 'caught';
    END $$;
    GRANT ALL ON done, done_at_seq TO public;
";

/// Cancels what `frames` run as soon as it sleeps, on a direct connection and through pgweir, and
/// compares everything that the client is told. Gives what it is told.
#[track_caller]
fn same_when_cancelled(name: &str, frames: &[u8]) -> Vec<String> {
    let stage = Stage::new(name, 1);
    stage.ask(SCHEMA);
    let [direct, pooled] =
        [CLUSTER.address(), stage.address()].map(|address| cancelled(&stage, address, frames));
    assert_same_transcript(&direct, &pooled);
    pooled
}

fn cancelled(stage: &Stage, address: SocketAddr, frames: &[u8]) -> Vec<String> {
    stage.ask("TRUNCATE done RESTART IDENTITY");
    let mut client = WireClient::login(address, &stage.login()).unwrap();
    client.send(&[frames, &query(AFTERWARDS), &query("SELECT 'over'")].concat()).unwrap();
    stage.wait_for_backends(1, "wait_event = 'PgSleep'");
    client.cancel_key().unwrap().cancel(address).unwrap();
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "DataRow \"over\"") {
        told.push(client.read().unwrap().unwrap().to_string());
    }
    assert_eq!(client.read_until_ready().unwrap().len(), 2);
    told
}

/// The client has been told of the cancel, once, or never; and then this row.
#[track_caller]
fn assert_told(told: &[String], canceled: bool, row: &str) {
    let errors: Vec<_> = told.iter().filter(|message| message.starts_with("Error")).collect();
    assert_eq!(errors.len(), usize::from(canceled), "{told:#?}");
    assert!(errors.iter().all(|error| error.contains("C=\"57014\"")), "{told:#?}");
    assert!(told.iter().any(|message| message == row), "{told:#?}");
}

#[test]
fn a_call_that_committed_keeps_its_first_half() {
    let told = same_when_cancelled("effects_call", &query("CALL halves()"));
    assert_told(&told, true, "DataRow \"first\" \"0\"");
}

#[test]
fn a_call_in_a_batch_keeps_its_first_half() {
    let told = same_when_cancelled("effects_batch", &extended("CALL halves()", &[]));
    assert_told(&told, true, "DataRow \"first\" \"0\"");
}

#[test]
fn a_function_that_catches_it_goes_on() {
    let told = same_when_cancelled("effects_caught", &query("SELECT stubborn()"));
    assert_told(&told, false, "DataRow \"caught\"");
    assert_told(&told, false, "DataRow \"caught\" \"0\"");
}

#[test]
fn a_session_lock_stays() {
    let sleep = "SELECT pg_advisory_lock(1), pg_sleep(600)";
    let told = same_when_cancelled("effects_lock", &query(sleep));
    assert_told(&told, true, "DataRow NULL \"1\"");
}

#[test]
fn statements_before_it_in_the_same_query_are_undone() {
    let text = "INSERT INTO done (what) VALUES ('before'); SELECT pg_sleep(600)";
    let told = same_when_cancelled("effects_several", &query(text));
    assert_told(&told, true, "DataRow NULL \"0\"");
}

#[test]
fn units_behind_it_are_run() {
    let units = [
        extended("INSERT INTO done (what) VALUES ('before')", &[]),
        extended("SELECT pg_sleep(600)", &[]),
        extended("INSERT INTO done (what) VALUES ('behind')", &[]),
    ];
    let told = same_when_cancelled("effects_pipeline", &units.concat());
    assert_told(&told, true, "DataRow \"before behind\" \"0\"");
}

//! What a cancel leaves of a statement is PostgreSQL's to say: through pgweir it is the same.

use std::net::SocketAddr;

use pgweir_testkit::frames::{extended, query};
use pgweir_testkit::{WireClient, assert_same_transcript};

use crate::stage::{CLUSTER, Stage};

/// How often a cancel is tried that must hit nothing else.
const TRIES: usize = 30;

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
        PERFORM pg_sleep(0.5);
        RETURN 'caught';
    END $$;
    GRANT ALL ON done, done_at_seq TO public;
";

/// Cancels what `frames` run as soon as it sleeps, on a direct connection and through pgweir, and
/// compares everything that the client is told. It is told of the cancel, once, or never if its
/// statement catches it, and then this row.
#[track_caller]
fn same_when_cancelled(name: &str, frames: &[u8], errors: usize, row: &str) {
    let stage = Stage::new(name, 1);
    stage.ask(SCHEMA);
    let [direct, pooled] = [CLUSTER.address(), stage.address()]
        .map(|address| cancelled_once(&stage, address, frames, errors));
    assert_same_transcript(&direct, &pooled);
    assert_eq!(errors_in(&pooled), errors, "{pooled:#?}");
    assert!(pooled.iter().any(|message| message == row), "{pooled:#?}");
}

/// PostgreSQL signals a backend and, right behind it, the backend's process group
/// (`signal_child`, postmaster.c). On a busy machine the second signal may find the next statement:
/// then it is tried again.
fn cancelled_once(stage: &Stage, address: SocketAddr, frames: &[u8], errors: usize) -> Vec<String> {
    for _ in 1..TRIES {
        let told = cancelled(stage, address, frames);
        if errors_in(&told) <= errors {
            return told;
        }
    }
    cancelled(stage, address, frames)
}

fn errors_in(told: &[String]) -> usize {
    let is_error = |message: &&String| message.starts_with("Error") && message.contains("57014");
    told.iter().filter(is_error).count()
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

#[test]
fn a_call_that_committed_keeps_its_first_half() {
    same_when_cancelled("effects_call", &query("CALL halves()"), 1, "DataRow \"first\" \"0\"");
}

#[test]
fn a_call_in_a_batch_keeps_its_first_half() {
    same_when_cancelled(
        "effects_batch",
        &extended("CALL halves()", &[]),
        1,
        "DataRow \"first\" \"0\"",
    );
}

#[test]
fn a_function_that_catches_it_goes_on() {
    same_when_cancelled(
        "effects_caught",
        &query("SELECT stubborn()"),
        0,
        "DataRow \"caught\" \"0\"",
    );
}

#[test]
fn a_session_lock_stays() {
    let sleep = "SELECT pg_advisory_lock(1), pg_sleep(600)";
    same_when_cancelled("effects_lock", &query(sleep), 1, "DataRow NULL \"1\"");
}

#[test]
fn statements_before_it_in_the_same_query_are_undone() {
    let text = "INSERT INTO done (what) VALUES ('before'); SELECT pg_sleep(600)";
    same_when_cancelled("effects_several", &query(text), 1, "DataRow NULL \"0\"");
}

#[test]
fn units_behind_it_are_run() {
    let units = [
        extended("INSERT INTO done (what) VALUES ('before')", &[]),
        extended("SELECT pg_sleep(600)", &[]),
        extended("INSERT INTO done (what) VALUES ('behind')", &[]),
    ];
    same_when_cancelled("effects_pipeline", &units.concat(), 1, "DataRow \"before behind\" \"0\"");
}

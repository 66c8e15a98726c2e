//! What keeps a server with its client in transaction mode, and is gone with that client; and what
//! goes with the client to whatever server it is given.

use pgweir_testkit::frames::{bind, close_statement, execute, parse, query, sync};
use pgweir_testkit::{PoolerConfig, WireClient};

use crate::stage::{self, CLUSTER, Stage};

/// A client makes state; a second one has to wait for the only server, until the first one left,
/// and then sees nothing of it. Says whether the second one got the same backend.
fn pinned(name: &str, make: impl FnOnce(&mut WireClient), state: &str) -> bool {
    pinned_on(&Stage::new(name, 1), make, state)
}

fn pinned_on(stage: &Stage, make: impl FnOnce(&mut WireClient), state: &str) -> bool {
    keeps_from_others(stage, stage.client(), make, state)
}

fn keeps_from_others(
    stage: &Stage,
    mut owner: WireClient,
    make: impl FnOnce(&mut WireClient),
    state: &str,
) -> bool {
    let mut other = stage.client();
    let pid = owner.query("SELECT pg_backend_pid()");
    let before = owner.query(state);
    make(&mut owner);
    let made = owner.query(state);
    assert_ne!(made, before, "{state:?} shows nothing");

    other.send(&query(state)).unwrap();
    stage.wait_for_waiters(1);
    assert_eq!(owner.query(state), made);
    drop(owner);
    let reply = other.read_until_ready().unwrap();
    assert!(reply.iter().all(|message| message.tag != b'E'), "{:?}", reply[0].to_string());
    assert_eq!(other.query(state), before);
    other.query("SELECT pg_backend_pid()") == pid
}

#[track_caller]
fn pinned_by(name: &str, sql: &str, state: &str) {
    assert!(pinned(name, |client| drop(client.query(sql)), state), "the server is used again");
}

/// A client makes state that goes with it: others have the only server in turn with it, and each
/// finds what is its own.
#[track_caller]
fn goes_with_its_client(stage: &Stage, make: &str, state: &str) {
    let (mut owner, mut other) = (stage.client(), stage.client());
    let before = other.query(state);
    owner.query(make);
    let made = owner.query(state);
    assert_ne!(made, before, "{state:?} shows nothing");
    for _ in 0..2 {
        assert_eq!(other.query(state), before, "{make}");
        assert_eq!(owner.query(state), made, "{make}");
    }
    let pid = "SELECT pg_backend_pid()";
    assert_eq!(owner.query(pid), other.query(pid), "{make}");
}

#[test]
fn settings() {
    let stage = Stage::new("pin_set", 1);
    goes_with_its_client(&stage, "SET work_mem = '77MB'", "SHOW work_mem");
    goes_with_its_client(&stage, "SET work_mem = '78MB'", "SHOW work_mem");
}

#[test]
fn settings_by_function() {
    let stage = Stage::new("pin_config", 1);
    let state = "SELECT coalesce(nullif(current_setting('a.b', true), ''), 'none')";
    goes_with_its_client(&stage, "SELECT set_config('a.b', 'c', false)", state);
}

/// A rule of PostgreSQL's view calls set_config.
#[test]
fn settings_by_update_of_their_view() {
    let stage = Stage::new("pin_update", 1);
    for update in [
        "UPDATE pg_settings",
        "UPDATE ONLY (pg_catalog.\"pg_settings\") AS s",
        "EXPLAIN ANALYZE UPDATE pin_update.pg_catalog . pg_settings *",
        "WITH w AS (SELECT 1) UPDATE /* SET */ \"pg_settings\"",
    ] {
        let sql = format!("{update} SET setting = '77MB' WHERE name = 'work_mem'");
        goes_with_its_client(&stage, &sql, "SHOW work_mem");
    }
    let escaped = r#"UPDATE U&"pg\005fsettings" SET setting = '77MB' WHERE name = 'work_mem'"#;
    let make = |client: &mut WireClient| drop(client.query(escaped));
    assert!(!pinned_on(&stage, make, "SHOW work_mem"), "what is unclear ends its server");
}

#[test]
fn temporary_tables() {
    pinned_by("pin_temp", "CREATE TEMP TABLE t (a int)", "SELECT to_regclass('pg_temp.t')");
}

/// Every table is a temporary one, and no text says so.
#[test]
fn temporary_tables_by_search_path() {
    let stage = Stage::new("pin_path", 1);
    for options in ["-c search_path=nowhere,\"pg_temp\"", "--search-path=PG_TEMP"] {
        let owner = stage.client_as(&stage.login().parameter("options", options));
        let make = |client: &mut WireClient| drop(client.query("SELECT 1 AS a INTO t"));
        let state = "SELECT to_regclass('pg_temp.t')";
        assert!(keeps_from_others(&stage, owner, make, state), "the server is used again");
    }
}

#[test]
fn advisory_locks() {
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                 AND pid = pg_backend_pid()";
    pinned_by("pin_lock", "SELECT pg_advisory_lock(5)", locks);
}

#[test]
fn cursors() {
    let declare = "DECLARE c CURSOR WITH HOLD FOR SELECT 1";
    pinned_by("pin_cursor", declare, "SELECT count(*) FROM pg_cursors");
}

#[test]
fn statements_prepared_by_sql() {
    let count = "SELECT count(*) FROM pg_prepared_statements";
    pinned_by("pin_prepare", "PREPARE p AS SELECT 1", count);
}

/// Once what a client has begun is ended, or undone, others have its server in turn with it.
#[test]
fn a_server_goes_back_when_nothing_is_left() {
    let stage = Stage::new("pin_ends", 1);
    let (mut owner, mut other) = (stage.client(), stage.client());
    for (begins, ends) in [
        ("SELECT pg_advisory_lock(5)", "SELECT pg_advisory_unlock(5)"),
        (
            "SELECT pg_try_advisory_lock_shared(5), pg_advisory_lock(6)",
            "SELECT pg_advisory_unlock_all()",
        ),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "CLOSE c"),
        ("LISTEN a; LISTEN b", "UNLISTEN *"),
        ("PREPARE p AS SELECT 1", "DEALLOCATE p"),
        ("CREATE TEMP TABLE t (a serial, b text)", "DROP TABLE t"),
        ("CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DISCARD TEMP"),
        ("CREATE TYPE pg_temp.e AS ENUM (); LISTEN a; SELECT pg_advisory_lock(1)", "DISCARD ALL"),
    ] {
        owner.query(begins);
        other.send(&query("SELECT 'other'")).unwrap();
        stage.wait_for_waiters(1);
        owner.query("SELECT 'it stays'");
        owner.query(ends);
        assert!(other.read_until_ready().is_ok(), "{ends}");

        owner.query("BEGIN");
        owner.query(begins);
        owner.query("ROLLBACK");
        if begins.contains("lock") || begins.contains("PREPARE") {
            // No rollback undoes these.
            owner.query("DISCARD ALL");
        }
        assert_eq!(other.query("SELECT 'other'"), ["other"], "{begins}");
    }
}

#[test]
fn what_nothing_removes_ends_its_server() {
    // The seed is no state that could be looked at; this table is, and shows that it pins.
    let make = "SELECT setseed(0.5); CREATE TEMP TABLE t (a int)";
    let state = "SELECT to_regclass('pg_temp.t')";
    assert!(!pinned("pin_seed", |client| drop(client.query(make)), state), "the server must end");
}

#[test]
fn transactions_leave_no_pin() {
    let stage = Stage::new("pin_none", 1);
    let (mut client, mut other) = (stage.client(), stage.client());
    for sql in [
        "BEGIN; SET LOCAL work_mem = '77MB'; COMMIT",
        "BEGIN; SELECT pg_advisory_xact_lock(1); COMMIT",
        "BEGIN; DECLARE c CURSOR FOR SELECT 1; COMMIT",
        "NOTIFY c",
    ] {
        client.query(sql);
        let shown = other.try_query("SHOW work_mem").unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(shown, [[Some("4MB".to_owned())]], "after {sql}");
    }
}

/// PostgreSQL does not show every role what these are set to, so nobody can ask for it.
#[test]
fn settings_that_are_not_shown_to_everybody() {
    let stage = Stage::new("pin_hidden", 1);
    stage.ask("GRANT SET ON PARAMETER dynamic_library_path TO pin_hidden");
    let mut owner = stage.client();
    owner.query("SET dynamic_library_path = '/tmp/x'");
    let mut other = stage.client();
    stage.ask("GRANT pg_read_all_settings TO pin_hidden");
    other.send(&query("SHOW dynamic_library_path")).unwrap();
    stage.wait_for_waiters(1);
    assert_eq!(owner.query("SHOW dynamic_library_path"), ["/tmp/x"]);
    drop(owner);
    let reply = other.read_until_ready().unwrap();
    assert!(reply.iter().any(|message| message.to_string() == "DataRow \"$libdir\""), "{reply:?}");
}

/// Where an application lives on `currval` and `lastval`, they say what they would directly.
#[test]
fn sequences_for_those_who_ask_for_their_last_value() {
    let pin = |config: PoolerConfig| config.pool("sequence_affinity", "\"pin\"");
    let stage = Stage::with("pin_sequence", 1, pin);
    let mut maker = stage::superuser(&CLUSTER, "pin_sequence");
    maker.query("SET ROLE pin_sequence; CREATE TABLE t (id serial, a int); CREATE TABLE u (a int)");
    drop(maker);
    for (advance, shown) in [
        ("INSERT INTO t (a) VALUES (1)", "SELECT lastval() = max(id) FROM t"),
        ("SELECT nextval('t_id_seq')", "SELECT currval('t_id_seq') = last_value FROM t_id_seq"),
        ("SELECT setval('t_id_seq', 40)", "SELECT currval('t_id_seq') = 40"),
    ] {
        let (mut owner, mut other) = (stage.client(), stage.client());
        other.query("SELECT 1");
        owner.query(advance);
        other.send(&query("SELECT lastval()")).unwrap();
        stage.wait_for_waiters(1);
        owner.query("INSERT INTO u VALUES (1)");
        assert_eq!(owner.query(shown), ["t"], "{advance}");
        drop(owner);
        let reply = other.read_until_ready().unwrap();
        let error = reply.iter().find(|message| message.tag == b'E').unwrap();
        assert_eq!(error.sqlstate(), "55000", "{advance}");
    }
    // Who advances none shares the server.
    let (mut one, mut two) = (stage.client(), stage.client());
    for _ in 0..2 {
        one.query("INSERT INTO u VALUES (1)");
        two.query("SELECT count(*) FROM t");
    }
}

/// What a statement leaves it leaves whenever it is run, not when it is prepared.
#[test]
fn statements_that_are_run_later() {
    let stage = Stage::new("pin_later", 1);
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                 AND pid = pg_backend_pid()";
    let lock = "SELECT pg_advisory_lock(5)";
    let run = |name: &str| [bind("", name, &[]), execute("", 0), sync()].concat();
    let temp = query("CREATE TEMP TABLE kept (a int)");
    for (prepared, runs, over) in [
        (query(&format!("PREPARE p AS {lock}")), query("EXECUTE p"), query("DEALLOCATE p")),
        ([parse("", lock, &[]), sync()].concat(), run(""), query("SELECT 1")),
        ([parse("s", lock, &[]), sync()].concat(), run("s"), query("SELECT 1")),
        // While it is kept for something else, what is prepared is its own.
        (
            [temp, parse("s", lock, &[]), sync()].concat(),
            run("s"),
            [query("DROP TABLE kept"), close_statement("s"), sync()].concat(),
        ),
    ] {
        let (mut owner, mut other) = (stage.client(), stage.client());
        for frames in [prepared, runs, over] {
            owner.send(&frames).unwrap();
            let replies = frames.iter().filter(|byte| **byte == b'Q').count();
            let reply = owner.read_until_ready().unwrap();
            assert!(reply.iter().all(|message| message.tag != b'E'), "{}", reply[0]);
            if replies > 0 && frames[0] == b'Q' && frames.ends_with(&sync()) {
                owner.read_until_ready().unwrap();
            }
        }
        other.send(&query(locks)).unwrap();
        stage.wait_for_waiters(1);
        drop(owner);
        let reply = other.read_until_ready().unwrap();
        let count = reply.iter().find(|message| message.tag == b'D').unwrap();
        assert_eq!(count.values(), [Some(b"0".to_vec())]);
    }
}

/// A driver may wait for a statement's description before it runs it.
#[test]
fn settings_that_are_changed_later_than_they_are_read() {
    let stage = Stage::new("pin_described", 1);
    let (mut owner, mut other) = (stage.client(), stage.client());
    let set = "SET work_mem = '77MB'";
    for frames in [
        [parse("", set, &[]), sync()].concat(),
        [bind("", "", &[]), execute("", 0), sync()].concat(),
    ] {
        owner.send(&frames).unwrap();
        owner.read_until_ready().unwrap();
        assert_eq!(other.query("SHOW work_mem"), ["4MB"]);
    }
    assert_eq!(owner.query("SHOW work_mem"), ["77MB"]);
}

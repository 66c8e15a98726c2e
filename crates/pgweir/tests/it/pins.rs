//! What keeps a server with its client in transaction mode, and is gone with that client; and what
//! goes with the client to whatever server it is given.

use pgweir_testkit::frames::{
    bind, close_statement, execute, extended, function_call, parse, query, sync,
};
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
        // Its server is not used again: it has made what its next statement names.
        keeps_from_others(&stage, owner, make, "SELECT to_regclass('pg_temp.t')");
    }
}

/// Of a role, or the database, the catalogue says so; and even `current_schema` makes something
/// then.
#[test]
fn temporary_tables_by_a_search_path_of_a_role() {
    for (name, of) in [("pin_role_path", "ROLE"), ("pin_database_path", "DATABASE")] {
        let stage = Stage::new(name, 1);
        stage::superuser(&CLUSTER, "postgres")
            .query(&format!("ALTER {of} {name} SET search_path = nowhere, pg_temp, public"));
        for make in ["CREATE TABLE t (a int)", "SELECT 1 AS a INTO t"] {
            let make = |client: &mut WireClient| drop(client.query(make));
            pinned_on(&stage, make, "SELECT to_regclass('pg_temp.t')");
        }
        let route = stage.console("EXPLAIN ROUTE SELECT current_schema").join("\n");
        assert!(route.contains("search_path of a role or the database"), "{route}");
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

/// A library stays in its server until that ends.
#[test]
fn libraries() {
    let stage = Stage::new("pin_load", 1);
    stage.ask("ALTER ROLE pin_load SUPERUSER");
    let loaded = "SELECT count(*) FROM pg_settings WHERE name = 'auto_explain.log_format'";
    let make = |client: &mut WireClient| drop(client.query("LOAD 'auto_explain'"));
    assert!(!pinned_on(&stage, make, loaded), "the server must end");
    // Nor is it known whether one was loaded, where that is an error.
    let (mut owner, mut other) = (stage.client(), stage.client());
    let pid = owner.query("SELECT pg_backend_pid()");
    owner.try_query("LOAD 'nothing'").unwrap_err();
    other.send(&query("SELECT pg_backend_pid()")).unwrap();
    stage.wait_for_waiters(1);
    drop(owner);
    other.read_until_ready().unwrap();
    assert_ne!(other.query("SELECT pg_backend_pid()"), pid);
}

/// What goes with its transaction keeps no server.
#[test]
fn temporary_tables_of_a_transaction() {
    let stage = Stage::new("pin_commit_drop", 1);
    let (mut one, mut two) = (stage.client(), stage.client());
    for (number, create) in [
        "CREATE TEMP TABLE t (a int) ON COMMIT DROP",
        "CREATE TEMPORARY TABLE t ON COMMIT DROP AS SELECT 1 AS a",
        "CREATE LOCAL TEMP TABLE t (a) ON COMMIT DROP AS SELECT 1",
    ]
    .into_iter()
    .enumerate()
    {
        // Whoever comes next finds the only server free, and nothing there of that name.
        for client in [&mut one, &mut two] {
            client.query("BEGIN");
            client.query(create);
            client.query("INSERT INTO t VALUES (1)");
            let count = if number == 0 { "1" } else { "2" };
            assert_eq!(client.query("SELECT count(*) FROM t"), [count], "{create}");
            client.query("COMMIT");
            assert_eq!(client.query("SELECT to_regclass('t') IS NULL"), ["t"], "{create}");
        }
        one.query(&format!("BEGIN; {create}; ROLLBACK"));
        assert_eq!(two.query("SELECT to_regclass('t') IS NULL"), ["t"], "{create}");
    }
    let pins = stage.console("SHOW PINS");
    let row = "pin_commit_drop|pin_commit_drop|temp table|pin|0|1|0|0";
    assert!(pins.iter().any(|its| its == row), "{pins:?}");
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

/// A stage of two servers, of which one may be kept, and a client that keeps that one.
fn crowded(name: &str) -> (Stage, WireClient, WireClient) {
    let stage = Stage::new(name, 2);
    let (mut holder, other) = (stage.client(), stage.client());
    holder.query("DECLARE c CURSOR WITH HOLD FOR SELECT 1; CREATE TEMP TABLE kept (a int)");
    (stage, holder, other)
}

/// What a client hears: the letters of the messages, and in place of an error its SQLSTATE; of
/// ReadyForQuery the status of the transaction.
fn hears(client: &mut WireClient, frames: &[u8]) -> Vec<String> {
    client.send(frames).unwrap();
    let said = client.read_until_ready().unwrap();
    let word = |message: &pgweir_testkit::Message| match message.tag {
        b'E' => message.sqlstate(),
        b'Z' => format!("Z({})", char::from(message.body[0])),
        tag => char::from(tag).to_string(),
    };
    said.iter().map(word).collect()
}

/// A statement that would keep one server more, in every way in which it can be sent.
#[test]
fn more_servers_than_may_be_kept() {
    let (stage, mut holder, mut other) = crowded("pin_most");
    let lock = "SELECT pg_advisory_lock(5)";
    let error = other.try_query(lock).unwrap_err();
    let said = error.to_string();
    let kept = "1 of 2 servers are kept: hold cursor 1, temp table 1.";
    assert!(said.contains("53300") && said.contains(kept), "{said}");
    assert_eq!(hears(&mut other, &query(lock)), ["53300", "Z(I)"]);
    assert_eq!(hears(&mut other, &extended(lock, &[])), ["53300", "Z(I)"]);
    let named = [parse("s", lock, &[]), sync()].concat();
    assert_eq!(hears(&mut other, &named), ["1", "Z(I)"]);
    let run = [bind("", "s", &[]), execute("", 0), sync()].concat();
    assert_eq!(hears(&mut other, &run), ["53300", "Z(I)"]);
    // pg_advisory_lock(int8)
    let call = function_call(2880, 1, &[Some(&5u64.to_be_bytes())]);
    assert_eq!(hears(&mut other, &call), ["53300", "Z(I)"]);
    // A batch is undone with it.
    stage.ask("CREATE TABLE t (a int); GRANT ALL ON t TO pin_most");
    let insert = extended("INSERT INTO t VALUES (1)", &[]);
    let insert = &insert[..insert.len() - sync().len()];
    let batch = [insert, &extended(lock, &[])].concat();
    assert_eq!(hears(&mut other, &batch), ["1", "2", "n", "C", "53300", "Z(I)"]);
    assert_eq!(stage.value("SELECT count(*) FROM t"), "0");

    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND \
                 database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(stage.value(locks), "0");
    assert_eq!(other.query("SELECT 'it goes on'"), ["it goes on"]);
    let row = |kind: &str| {
        let rows = stage.console("SHOW PINS");
        let start = format!("pin_most|pin_most|{kind}|");
        let row = rows.iter().find_map(|row| row.strip_prefix(&start));
        row.unwrap().to_owned()
    };
    assert_eq!(row("hold cursor"), "pin|1|1|1|0");
    assert_eq!(row("advisory lock"), "pin|0|1|0|5");
    // Who keeps a server may keep it for more.
    holder.query(lock);
    assert_eq!(row("advisory lock"), "pin|1|1|1|5");
    holder.query("DISCARD ALL");
    other.query(lock);
}

/// Inside a transaction PostgreSQL itself has failed it: nothing of it can be committed.
#[test]
fn a_refused_pin_fails_its_transaction() {
    let (stage, _holder, mut other) = crowded("pin_block");
    stage.ask("CREATE TABLE t (a int); GRANT ALL ON t TO pin_block");
    let lock = "SELECT pg_advisory_lock(5)";
    let extended_lock = extended(lock, &[]);
    for refused in [query(lock), extended_lock] {
        for end in ["ROLLBACK", "COMMIT"] {
            other.query("BEGIN; INSERT INTO t VALUES (1)");
            assert_eq!(hears(&mut other, &refused), ["53300", "Z(E)"]);
            assert_eq!(hears(&mut other, &query("SELECT 1")), ["25P02", "Z(E)"]);
            assert_eq!(hears(&mut other, &query(end)), ["C", "Z(I)"]);
            assert_eq!(stage.value("SELECT count(*) FROM t"), "0");
        }
    }
    // A savepoint goes on behind it, as behind any other error.
    other.query("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s");
    assert_eq!(hears(&mut other, &query(lock)), ["53300", "Z(E)"]);
    other.query("ROLLBACK TO s; COMMIT");
    assert_eq!(stage.value("SELECT count(*) FROM t"), "1");
}

/// What a text only names counts as well.
#[test]
fn a_function_that_would_keep_one_server_more() {
    let stage = Stage::new("pin_most_loud", 2);
    stage.ask("CREATE FUNCTION take() RETURNS void LANGUAGE sql AS 'SELECT pg_advisory_lock(5)'");
    let (mut holder, mut other) = (stage.client(), stage.client());
    holder.query("CREATE TEMP TABLE kept (a int)");
    assert_eq!(hears(&mut other, &query("SELECT take()")), ["53300", "Z(I)"]);
}

/// A statement of each kind for which a server may be kept. Only a block is none: it is read, and
/// leaves what it does. All databases share their replication slots: this one is called so.
fn kinds(slot: &str) -> Vec<(&'static str, String)> {
    let connect = format!(
        "SELECT dblink_connect('d', 'host=127.0.0.1 port={} dbname=postgres user=postgres')",
        CLUSTER.port()
    );
    // Of a name that is longer it is not known which it is.
    let set = format!("SET {0}.{0}.{0}.{0} = 1", "a".repeat(60));
    vec![
        ("advisory lock", "SELECT pg_advisory_lock(5)".to_owned()),
        ("backup", "SELECT pg_backup_start('b', true)".to_owned()),
        ("extension", connect),
        ("hold cursor", "DECLARE c CURSOR WITH HOLD FOR SELECT 1".to_owned()),
        ("library", "LOAD 'plpgsql'".to_owned()),
        ("listen", "LISTEN a".to_owned()),
        ("prepared statement", "PREPARE p AS SELECT 1".to_owned()),
        (
            "replication",
            format!("SELECT pg_create_physical_replication_slot('{slot}', false, true)"),
        ),
        ("random seed", "SELECT setseed(0.5)".to_owned()),
        ("sequence", "SELECT nextval('s')".to_owned()),
        ("setting", set),
        ("temp table", "CREATE TEMP TABLE t (a int)".to_owned()),
        ("unclear", "SELECT 1 AS U&\"a\"".to_owned()),
    ]
}

/// A stage on which a setting says something of all kinds; its client may do what they need.
fn stage_of_kinds(name: &str, setting: &str, kinds: &str) -> Stage {
    let stage = Stage::with(name, 1, |config| {
        config.pool("sequence_affinity", "\"pin\"").pool(setting, &format!("\"{kinds}\""))
    });
    stage.ask(&format!(
        "ALTER ROLE {name} SUPERUSER; CREATE EXTENSION dblink; CREATE SEQUENCE s; \
         ALTER SEQUENCE s OWNER TO {name}"
    ));
    stage
}

/// The names of all kinds but this one.
fn kinds_without(kind: &str) -> String {
    let names = kinds("").into_iter().map(|(name, _)| name).filter(|name| *name != kind);
    names.collect::<Vec<_>>().join(", ")
}

#[test]
fn kinds_that_are_refused() {
    let stage = stage_of_kinds("pin_refuse", "pin_refuse", &kinds_without(""));
    let mut client = stage.client();
    for (kind, refused) in kinds("pin_refuse") {
        client.send(&query(&refused)).unwrap();
        let reply = client.read_until_ready().unwrap();
        let error = reply.iter().find(|message| message.tag == b'E');
        let said = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("0A000") && said.contains(kind), "{refused}: {said}");
    }
    assert_eq!(client.query("SELECT 'it goes on'"), ["it goes on"]);
    assert_eq!(hears(&mut client, &extended("LISTEN a", &[])), ["0A000", "Z(I)"]);

    let stage = Stage::with("pin_refuse_some", 1, |config| config.pool("pin_refuse", "\"LISTEN\""));
    let mut client = stage.client();
    client.query("SELECT pg_advisory_lock(5)");
    assert_eq!(hears(&mut client, &query("LISTEN a")), ["0A000", "Z(I)"], "also of who keeps one");
}

/// As other poolers have it: what is left is there for whoever comes next.
#[test]
fn kinds_that_are_ignored() {
    let stage = stage_of_kinds("pin_ignore", "pin_ignore", &kinds_without(""));
    let (mut one, mut two) = (stage.client(), stage.client());
    for (kind, ignored) in kinds("pin_ignore") {
        one.query(&ignored);
        // Nobody has to wait for the only server.
        assert_eq!(two.query("SELECT 'it is free'"), ["it is free"], "{kind}");
    }
    assert_eq!(two.query("SELECT to_regclass('pg_temp.t')"), ["t"]);
    assert_eq!(two.query("EXECUTE p"), ["1"]);
    assert_eq!(two.query("FETCH c"), ["1"]);
    one.query("SELECT pg_backup_stop(); SELECT pg_drop_replication_slot('pin_ignore')");
}

/// What somebody has left is not taken for another one's, who is asked what is left of its own.
#[test]
fn kinds_that_are_ignored_are_nobodys() {
    let stage = stage_of_kinds("pin_nobodys", "pin_ignore", &kinds_without("temp table"));
    let (mut one, mut two) = (stage.client(), stage.client());
    one.query("SELECT pg_advisory_lock(1)");
    two.query("CREATE TEMP TABLE t ()");
    two.query("DROP TABLE t");
    assert_eq!(one.query("SELECT 'it is free'"), ["it is free"]);
}

/// Nor does a path that makes tables temporary keep a server for what is ignored.
#[test]
fn kinds_that_are_ignored_keep_nothing_by_a_setting() {
    let stage = stage_of_kinds("pin_path_ignored", "pin_ignore", "temp table");
    let (mut one, mut two) = (stage.client(), stage.client());
    one.query("SET search_path = pg_temp, public");
    one.query("PREPARE q AS SELECT 1");
    one.query("DEALLOCATE q");
    assert_eq!(two.query("SELECT 'it is free'"), ["it is free"]);
}

/// Nobody waits for the server of a client whose pins are of another kind than those that are
/// ignored, or refused.
#[test]
fn kinds_that_pin() {
    for (kind, pins) in kinds("pin_kind") {
        let name = format!("pin_kind_{}", kind.replace(' ', "_"));
        let stage = stage_of_kinds(&name, "pin_ignore", &kinds_without(kind));
        let (mut owner, mut other) = (stage.client(), stage.client());
        owner.query(&pins);
        let row = |column: usize| {
            let rows = stage.console("SHOW PINS");
            let start = format!("{name}|{name}|{kind}|");
            let row = rows.iter().find_map(|row| row.strip_prefix(&start)).unwrap();
            row.split('|').nth(column).unwrap().to_owned()
        };
        assert_eq!(row(3), "1", "{kind}");
        if kind == "listen" {
            // The pool's listener listens for it.
            assert_eq!(other.query("SELECT 'other'"), ["other"]);
            continue;
        }
        other.send(&query("SELECT 'other'")).unwrap();
        stage.wait_for_waiters(1);
        assert_eq!(row(1), "1", "{kind}");
        drop(owner);
        other.read_until_ready().unwrap();
    }
}

/// A client that has prepared by the protocol and names that in SQL keeps a server for it.
#[test]
fn names_that_are_used_in_sql_where_no_more_may_be_kept() {
    let (stage, _holder, mut other) = crowded("pin_names");
    let named = [parse("s", "SELECT 1", &[]), sync()].concat();
    assert_eq!(hears(&mut other, &named), ["1", "Z(I)"]);
    assert_eq!(hears(&mut other, &query("EXECUTE s")), ["53300", "Z(I)"]);
    let run = [bind("", "s", &[]), execute("", 0), sync()].concat();
    assert_eq!(hears(&mut other, &run), ["2", "D", "C", "Z(I)"], "it is still there");
    drop(stage);
}

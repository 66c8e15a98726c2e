//! Simple queries, function calls, and what comes unasked.

use pgweir_testkit::Script;
use pgweir_testkit::frames::{self, query};

use super::{same, script};

/// Sends each text as a Query of its own and reads its reply.
fn asking(texts: &[&str]) -> Script {
    texts.iter().fold(script(), |script, text| script.ask(&query(text)))
}

#[test]
fn every_kind_of_result() {
    same(&asking(&[
        "SELECT 1 AS one, NULL AS nothing, 'x' AS text, ARRAY[1, 2] AS array, true",
        "SELECT * FROM kept ORDER BY a",
        "SELECT FROM kept",
        "SELECT a FROM kept WHERE false",
        "VALUES (1, 'a'), (2, 'b')",
        "EXPLAIN (COSTS OFF) SELECT * FROM kept",
        "SHOW server_version",
        "TABLE kept",
        "INSERT INTO sink SELECT WHERE false",
        "WITH gone AS (DELETE FROM sink WHERE false RETURNING a) SELECT * FROM gone",
        "UPDATE kept SET b = b WHERE false RETURNING *",
        "DO $$ BEGIN END $$",
        "CHECKPOINT",
        "SET LOCAL work_mem = '1MB'",
    ]));
}

#[test]
fn nothing_to_do() {
    same(&asking(&["", ";", " ;; ", "-- comment", "/* a /* nested */ comment */", "\n"]));
}

#[test]
fn several_statements_in_one_query() {
    same(&asking(&[
        "SELECT 1; SELECT 2, 3; SELECT 'a;b'",
        "SELECT 1;; -- comment ; \n SELECT 2 /* ; */;",
        "BEGIN; INSERT INTO sink VALUES (1, 'one'); SELECT * FROM sink; ROLLBACK; SELECT 7",
        "SELECT 1; SELECT 1/0; SELECT 2",
        "SELECT 1; SELECT no_such_column; SELECT 2",
        "SELECT 1; SYNTAX error here; SELECT 2",
        "SELECT 1",
    ]));
}

#[test]
fn errors_and_notices() {
    same(&asking(&[
        "SELECT 1/0",
        "SELECT * FROM no_such_table",
        "SELEC 1",
        "SELECT noisy(1), noisy(2)",
        "SELECT noisy(3) / 0",
        "DO $$ BEGIN RAISE WARNING 'careful' USING DETAIL = 'd', HINT = 'h'; END $$",
        "INSERT INTO kept VALUES (1, 'twice')",
        "SELECT a / (a - 3) FROM kept ORDER BY a",
        "DROP TABLE IF EXISTS no_such_table",
    ]));
}

#[test]
fn transactions() {
    same(&asking(&[
        "BEGIN",
        "SELECT 1",
        "SELECT 1/0",
        "SELECT 2",
        "COMMIT",
        "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
        "INSERT INTO sink VALUES (1)",
        "ROLLBACK",
        "ROLLBACK",
        "BEGIN; SAVEPOINT s; SELECT 1/0",
        "ROLLBACK TO s",
        "SELECT 3",
        "BEGIN",
        "COMMIT AND CHAIN",
        "END",
        "SAVEPOINT outside",
    ]));
}

/// What is begun by AND CHAIN is like what it ends, whether or not that has failed.
#[test]
fn chained_transactions() {
    let like = ["SHOW transaction_isolation", "SHOW transaction_read_only"];
    let texts =
        ["BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", "SELECT 1/0", "ROLLBACK AND CHAIN"]
            .iter()
            .chain(&like)
            .chain(&["SELECT 1/0", "SELECT 1", "COMMIT AND CHAIN"])
            .chain(&like)
            .chain(&["COMMIT AND CHAIN", "ROLLBACK AND NO CHAIN", "ROLLBACK AND CHAIN"])
            .chain(&like);
    same(&asking(&texts.copied().collect::<Vec<_>>()));
}

#[test]
fn deferred_constraints_fail_at_commit() {
    same(&asking(&[
        "INSERT INTO child VALUES (77)",
        "BEGIN",
        "INSERT INTO child VALUES (77)",
        "SELECT 1",
        "COMMIT",
        "SELECT 2",
        "BEGIN; INSERT INTO child VALUES (77); SET CONSTRAINTS ALL IMMEDIATE",
        "ROLLBACK",
    ]));
}

#[test]
fn settings_are_reported() {
    same(&asking(&[
        "SET TimeZone = 'Asia/Kathmandu'",
        "SET application_name = 'new name'; SET DateStyle = 'German'",
        "SELECT '2026-02-01 12:00Z'::timestamptz",
        "BEGIN; SET client_encoding = 'LATIN1'; ROLLBACK",
        "RESET TimeZone",
        "SELECT set_config('standard_conforming_strings', 'off', false)",
        "SELECT 'a\\'b'",
    ]));
}

#[test]
fn notifications() {
    same(&asking(&[
        "LISTEN one; LISTEN two",
        "NOTIFY one, 'at once'",
        "BEGIN; NOTIFY one, 'later'; NOTIFY two; NOTIFY one, 'later'",
        "SELECT 1",
        "COMMIT",
        "BEGIN; NOTIFY one, 'never'; ROLLBACK",
        "UNLISTEN one",
        "NOTIFY one; NOTIFY two, 'last'",
    ]));
}

#[test]
fn function_calls() {
    // int4pl, and a function that fails: int4div; then an OID that is no function's.
    let call =
        |function, arguments: &[Option<&[u8]>]| frames::function_call(function, 0, arguments);
    let binary = frames::function_call(177, 1, &[Some(&[0, 0, 0, 7]), Some(&[0, 0, 0, 8])]);
    same(
        &script()
            .ask(&call(177, &[Some(b"20"), Some(b"22")]))
            .ask(&binary)
            .ask(&call(177, &[None, Some(b"22")]))
            .ask(&call(154, &[Some(b"1"), Some(b"0")]))
            .ask(&call(177, &[Some(b"20")]))
            .ask(&call(1, &[]))
            .ask(&query("BEGIN"))
            .ask(&call(154, &[Some(b"1"), Some(b"0")]))
            .ask(&call(177, &[Some(b"20"), Some(b"22")]))
            .ask(&query("ROLLBACK")),
    );
}

#[test]
fn queries_sent_at_once() {
    let texts = ["SELECT 1", "SELECT 1/0", "BEGIN", "SELECT 2", "SELECT 1/0", "COMMIT", "SELECT 3"];
    let all = texts.map(query).concat();
    let script = texts.iter().fold(script().send(&all), |script, _| script.read_until_ready());
    same(&script.send(&frames::terminate()).read_to_end());
}

#[test]
fn a_query_glued_to_its_terminate() {
    same(&script().send(&[query("SELECT 1"), frames::terminate()].concat()).read_to_end());
    same(&script().send(&query("SELECT 1")).half_close().read_to_end());
    same(&script().send(&query("SELECT pg_sleep(0.1)")).half_close().read_to_end());
    same(&script().half_close().read_to_end());
}

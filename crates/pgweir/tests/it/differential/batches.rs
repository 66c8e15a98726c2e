//! The extended query protocol.

use pgweir_testkit::frames::{
    bind, bind_with_formats, close_portal, close_statement, describe_portal, describe_statement,
    execute, extended, flush, function_call, parse, query, sync,
};

use super::{same, script};

/// A batch of the unnamed statement with its Sync.
fn batch(sql: &str) -> Vec<u8> {
    extended(sql, &[])
}

#[test]
fn the_unnamed_statement() {
    same(
        &script()
            .ask(&batch("SELECT 1 AS a"))
            .ask(&extended("SELECT $1::int + $2::int, $3::text", &[Some("1"), Some("2"), None]))
            // The last row, which an UPDATE leaves in its place: see `SCHEMA`.
            .ask(&batch("UPDATE kept SET b = b WHERE a = 5"))
            .ask(&batch(""))
            .ask(&batch("SELECT * FROM kept ORDER BY a"))
            .ask(&batch("SELECT noisy(1)"))
            .ask(&batch("BEGIN"))
            .ask(&batch("SELECT 2"))
            .ask(&batch("COMMIT")),
    );
}

#[test]
fn named_statements_and_portals() {
    let types = [23, 25];
    same(
        &script()
            .ask(&[parse("s1", "SELECT $1 + 1, $2", &types), sync()].concat())
            .ask(&[describe_statement("s1"), sync()].concat())
            .ask(
                &[
                    bind("p1", "s1", &[Some("1"), Some("x")]),
                    describe_portal("p1"),
                    execute("p1", 0),
                    close_portal("p1"),
                    sync(),
                ]
                .concat(),
            )
            .ask(&[parse("s1", "SELECT 1", &[]), sync()].concat())
            .ask(&[close_statement("s1"), close_statement("s1"), sync()].concat())
            .ask(&[bind("", "s1", &[]), sync()].concat())
            .ask(
                &[parse("s2", "SELECT a FROM kept", &[]), parse("s3", "SELECT 3", &[])]
                    .concat()
                    .into_iter()
                    .chain(sync())
                    .collect::<Vec<_>>(),
            )
            .ask(
                &[bind("", "s3", &[]), execute("", 0), bind("", "s2", &[]), execute("", 0), sync()]
                    .concat(),
            )
            .ask(&query("DEALLOCATE s2"))
            .ask(&[describe_statement("s2"), sync()].concat())
            .ask(&query("DEALLOCATE ALL"))
            .ask(&[describe_statement("s3"), sync()].concat()),
    );
}

#[test]
fn statements_prepared_by_sql() {
    same(
        &script()
            .ask(&query("PREPARE p (int) AS SELECT $1 * 2"))
            .ask(&query("EXECUTE p (21)"))
            .ask(
                &[describe_statement("p"), bind("", "p", &[Some("4")]), execute("", 0), sync()]
                    .concat(),
            )
            .ask(&batch("EXECUTE p (1)"))
            .ask(&query("DISCARD ALL"))
            .ask(&query("EXECUTE p (21)")),
    );
}

#[test]
fn portals_with_row_limits() {
    let first = [
        parse("", "SELECT a, b FROM kept ORDER BY a", &[]),
        bind("p", "", &[]),
        execute("p", 2),
        flush(),
    ]
    .concat();
    same(
        &script()
            // In one batch, with every portion asked for by a Flush: two rows and the suspension.
            .send(&first)
            .read(5)
            .send(&[execute("p", 2), flush()].concat())
            .read(3)
            .send(&[execute("p", 2), flush()].concat())
            .read(2)
            .ask(&sync())
            // Over several batches, inside a transaction.
            .ask(&query("BEGIN"))
            .ask(
                &[parse("", "SELECT a FROM kept ORDER BY a", &[]), bind("c", "", &[])]
                    .concat()
                    .into_iter()
                    .chain(execute("c", 3))
                    .chain(sync())
                    .collect::<Vec<_>>(),
            )
            .ask(&[execute("c", 1), sync()].concat())
            .ask(&[describe_portal("c"), execute("c", 0), execute("c", 0), sync()].concat())
            .ask(&[close_portal("c"), execute("c", 0), sync()].concat())
            .ask(&query("ROLLBACK"))
            // Without a transaction the portal does not outlive the Sync.
            .ask(&[execute("c", 1), sync()].concat()),
    );
}

#[test]
fn formats() {
    let values: [Option<&[u8]>; 3] = [Some(&[0, 0, 0, 41]), Some(b"text"), None];
    same(
        &script()
            .ask(
                &[
                    parse("", "SELECT $1::int + 1, $2::text, $3::bytea, now() IS NULL", &[]),
                    bind_with_formats("", "", &[1, 0, 1], &values, &[1, 0, 1, 1]),
                    describe_portal(""),
                    execute("", 0),
                    sync(),
                ]
                .concat(),
            )
            .ask(
                &[
                    parse("", "SELECT $1::int, 2.5::float8", &[]),
                    bind_with_formats("", "", &[1], &[Some(&[0, 1])], &[1]),
                    execute("", 0),
                    sync(),
                ]
                .concat(),
            )
            .ask(
                &[parse("", "SELECT 1", &[]), bind_with_formats("", "", &[7], &[], &[]), sync()]
                    .concat(),
            ),
    );
}

#[test]
fn errors_at_every_step() {
    let good = [parse("", "SELECT $1::int", &[]), bind("", "", &[Some("1")])].concat();
    let rest = [describe_portal(""), execute("", 0), sync()].concat();
    same(
        &script()
            // Parse, Bind (a bad value, too few values), Describe, Execute, Close never fails.
            .ask(&[parse("", "SELECT nothing", &[]), bind("", "", &[]), rest.clone()].concat())
            .ask(
                &[parse("", "SELECT $1::int", &[]), bind("", "", &[Some("x")]), rest.clone()]
                    .concat(),
            )
            .ask(&[parse("", "SELECT $1::int", &[]), bind("", "", &[]), rest.clone()].concat())
            .ask(&[good.clone(), describe_portal("no"), execute("", 0), sync()].concat())
            .ask(&[good.clone(), describe_statement("no"), execute("", 0), sync()].concat())
            .ask(&[good.clone(), execute("no", 0), sync()].concat())
            .ask(&batch("SELECT 1/(a - 3) FROM kept ORDER BY a"))
            .ask(&[close_portal("no"), close_statement("no"), sync()].concat())
            .ask(&batch("SELECT 1; SELECT 2"))
            .ask(&[good, rest].concat()),
    );
}

#[test]
fn a_failed_batch_is_skipped_to_its_sync() {
    let failed = [parse("", "SELECT nothing", &[]), flush()].concat();
    same(
        &script()
            .send(&failed)
            .read(1)
            .ask(
                &[
                    query("SELECT 'skipped'"),
                    function_call(177, 0, &[Some(b"1"), Some(b"2")]),
                    parse("gone", "SELECT 1", &[]),
                    sync(),
                ]
                .concat(),
            )
            .ask(&[describe_statement("gone"), sync()].concat())
            // All of it at once.
            .ask(
                &[
                    parse("", "SELECT nothing", &[]),
                    query("SELECT 'skipped'"),
                    bind("", "", &[]),
                    function_call(177, 0, &[Some(b"1"), Some(b"2")]),
                    sync(),
                ]
                .concat(),
            )
            .ask(&query("SELECT 'run'")),
    );
}

#[test]
fn a_query_inside_an_open_batch() {
    let open = [parse("", "SELECT 1", &[]), bind("", "", &[]), execute("", 0)].concat();
    same(
        &script()
            // The Query brings a ReadyForQuery of its own, and the Sync another.
            .ask(&[open.clone(), query("SELECT 2")].concat())
            .ask(&sync())
            .ask(&[open.clone(), query("SELECT 1/0")].concat())
            .ask(&[execute("", 0), sync()].concat())
            .send(&[open, function_call(177, 0, &[Some(b"1"), Some(b"2")]), sync()].concat())
            .read_until_ready()
            .read_until_ready(),
    );
}

#[test]
fn syncs() {
    let syncs = [sync(), sync(), sync()].concat();
    let batches = [batch("SELECT 1"), batch("SELECT 1/0"), batch("SELECT 2"), sync()].concat();
    same(
        &script()
            .ask(&sync())
            .send(&syncs)
            .read_until_ready()
            .read_until_ready()
            .read_until_ready()
            .send(&batches)
            .read_until_ready()
            .read_until_ready()
            .read_until_ready()
            .read_until_ready(),
    );
}

#[test]
fn flushes() {
    same(
        &script()
            .send(&[parse("", "SELECT $1::text", &[]), describe_statement(""), flush()].concat())
            .read(3)
            .send(&[bind("", "", &[Some("x")]), flush()].concat())
            .read(1)
            .send(&[describe_portal(""), flush(), flush()].concat())
            .read(1)
            .send(&[execute("", 0), flush()].concat())
            .read(2)
            .ask(&sync())
            .send(&flush())
            .ask(&[flush(), sync(), flush()].concat())
            .ask(&query("SELECT 1")),
    );
}

#[test]
fn transactions_in_batches() {
    let part = |sql: &str| [parse("", sql, &[]), bind("", "", &[]), execute("", 0)].concat();
    same(
        &script()
            .ask(
                &[part("BEGIN"), part("INSERT INTO sink VALUES (1)"), part("ROLLBACK"), sync()]
                    .concat(),
            )
            .ask(&[part("BEGIN"), part("SELECT 1"), sync()].concat())
            .ask(&[part("SELECT 1/0"), part("COMMIT"), sync()].concat())
            .ask(&[part("COMMIT"), sync()].concat())
            .ask(&[part("BEGIN"), part("SELECT 1/0"), part("ROLLBACK"), sync()].concat())
            .ask(&[part("ROLLBACK"), sync()].concat())
            // Rolled back with the error behind it: a batch is one implicit transaction.
            .ask(&[part("INSERT INTO sink VALUES (5)"), part("SELECT 1/0"), sync()].concat())
            .ask(&query("SELECT count(*) FROM sink")),
    );
}

#[test]
fn deferred_constraints_fail_at_sync() {
    let insert = [parse("", "INSERT INTO child VALUES (77)", &[]), bind("", "", &[])].concat();
    same(
        &script()
            .ask(&[insert.clone(), execute("", 0), sync()].concat())
            .send(&[insert, execute("", 0), flush()].concat())
            .read(3)
            .ask(&sync())
            .ask(&query("SELECT count(*) FROM child")),
    );
}

#[test]
fn pipelines() {
    let insert = |value: &str| extended("INSERT INTO kept VALUES ($1::int)", &[Some(value)]);
    let all = [
        query("BEGIN"),
        insert("100"),
        batch("SELECT 1/0"),
        insert("101"),
        query("ROLLBACK"),
        batch("SELECT count(*) FROM kept"),
        batch("SELECT pg_sleep(0.01)"),
        query("SELECT 'last'"),
    ];
    let script =
        all.iter().fold(script().send(&all.concat()), |script, _| script.read_until_ready());
    same(&script);
}

#[test]
fn the_unnamed_statement_lives_until_it_is_replaced() {
    let run = [bind("", "", &[]), describe_portal(""), execute("", 0), sync()].concat();
    same(
        &script()
            .ask(&[parse("", "SELECT 'first'", &[]), sync()].concat())
            .ask(&run)
            .ask(&run)
            // A Parse that fails ends it, and so does a simple Query.
            .ask(&[parse("", "SELECT nothing", &[]), sync()].concat())
            .ask(&run)
            .ask(&[parse("", "SELECT 'second'", &[]), sync()].concat())
            .ask(&[describe_statement(""), sync()].concat())
            .ask(&query("SELECT 'between'"))
            .ask(&run)
            .ask(&[parse("", "SELECT 'third'", &[]), sync()].concat())
            .ask(&[close_statement(""), sync()].concat())
            .ask(&run)
            // A portal made of it outlives it inside the batch.
            .ask(
                &[
                    parse("", "SELECT 'old'", &[]),
                    bind("old", "", &[]),
                    parse("", "SELECT 'new'", &[]),
                    bind("new", "", &[]),
                    execute("old", 0),
                    execute("new", 0),
                    sync(),
                ]
                .concat(),
            ),
    );
}

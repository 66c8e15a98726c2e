//! COPY, in both directions and in all its failures.

use pgweir_testkit::Script;
use pgweir_testkit::frames::{
    bind, copy_data, copy_done, copy_fail, execute, flush, function_call, parse, query, sync,
    terminate,
};

use super::{Difference, same, same_but, script};

const IN: &str = "COPY sink FROM STDIN";

/// Everything in a transaction that leaves nothing.
fn undone(script: impl FnOnce(Script) -> Script) -> Script {
    script(self::script().ask(&query("BEGIN"))).ask(&query("ROLLBACK")).ask(&query("SELECT 'on'"))
}

#[test]
fn out() {
    same(
        &script()
            .ask(&query("COPY kept TO STDOUT"))
            .ask(&query("COPY (SELECT a FROM kept WHERE false) TO STDOUT (FORMAT csv, HEADER)"))
            .ask(&query("COPY kept TO STDOUT (FORMAT binary)"))
            .ask(&query("COPY (SELECT 1/(a - 3) FROM kept ORDER BY a) TO STDOUT"))
            .ask(&query("SELECT 1; COPY kept TO STDOUT; SELECT 2"))
            .ask(
                &[parse("", "COPY kept TO STDOUT", &[]), bind("", "", &[])]
                    .concat()
                    .into_iter()
                    .chain(execute("", 0))
                    .chain(sync())
                    .collect::<Vec<_>>(),
            ),
    );
}

#[test]
fn in_simple() {
    same(&undone(|script| {
        script
            .send(&query(IN))
            .read(1)
            .send(&copy_data(b"1\tone\n2\t"))
            .ask(&[copy_data(b"two\n"), copy_done()].concat())
            .ask(&query("SELECT * FROM sink"))
            // All at once, an empty piece among them.
            .ask(&[query(IN), copy_data(b"3\tx\n"), copy_data(b""), copy_done()].concat())
            .ask(&[query(IN), copy_done()].concat())
            .ask(&query("SELECT count(*) FROM sink"))
            // Two in one Query, with other statements around them.
            .send(&query(&format!("SELECT 1; {IN}; SELECT 2; {IN}; SELECT 3")))
            .ask(&[copy_data(b"4\tx\n"), copy_done(), copy_data(b"5\tx\n"), copy_done()].concat())
            .ask(&query("SELECT count(*) FROM sink"))
    }));
}

#[test]
fn in_simple_outside_a_transaction() {
    same(
        &script()
            .ask(
                &[query("COPY sink FROM STDIN WHERE a < 0"), copy_data(b"1\tx\n"), copy_done()]
                    .concat(),
            )
            .ask(&query("SELECT count(*) FROM sink")),
    );
}

#[test]
fn binary() {
    let rows = [
        &b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..],
        b"\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x01x",
        b"\0\x02\0\0\0\x04\0\0\0\x08\xff\xff\xff\xff",
        b"\xff\xff",
    ];
    same(&undone(|script| {
        script
            .ask(
                &[
                    query("COPY sink FROM STDIN (FORMAT binary)"),
                    copy_data(&rows.concat()),
                    copy_done(),
                ]
                .concat(),
            )
            .ask(&query("COPY sink TO STDOUT (FORMAT binary)"))
            .ask(&query("SELECT * FROM sink"))
    }));
}

#[test]
fn in_extended() {
    let copy = [parse("", IN, &[]), bind("", "", &[]), execute("", 0)].concat();
    same(&undone(|script| {
        script
            // libpq sends the Sync right behind the Execute, and another behind CopyDone; the
            // first is read as part of the COPY and ignored.
            .send(&[copy.clone(), sync()].concat())
            .read(3)
            .ask(&[copy_data(b"1\tone\n"), copy_done(), sync()].concat())
            .ask(&query("SELECT 'between'"))
            // All at once.
            .ask(&[copy.clone(), sync(), copy_data(b"2\ttwo\n"), copy_done(), sync()].concat())
            // Without the Sync in front.
            .ask(&[copy.clone(), copy_data(b"3\tthree\n"), copy_done(), sync()].concat())
            // With a Flush and with a Sync in the middle of the data.
            .send(&[copy.clone(), flush()].concat())
            .read(3)
            .send(&[copy_data(b"4\t"), sync(), flush(), copy_data(b"four\n")].concat())
            .ask(&[copy_done(), sync()].concat())
            .ask(&query("SELECT * FROM sink ORDER BY a"))
    }));
}

#[test]
fn in_extended_outside_a_transaction() {
    let copy = [
        parse("", "COPY sink FROM STDIN WHERE a < 0", &[]),
        bind("", "", &[]),
        execute("", 0),
        sync(),
    ]
    .concat();
    same(
        &script()
            .send(&copy)
            .read(3)
            .ask(&[copy_data(b"1\tone\n"), copy_done(), sync()].concat())
            .ask(&query("SELECT count(*) FROM sink"))
            .send(&copy)
            .read(3)
            .ask(&[copy_fail("no"), sync()].concat())
            .ask(&query("SELECT 'on'")),
    );
}

#[test]
fn copy_fail_ends_it() {
    let copy = [parse("", IN, &[]), bind("", "", &[]), execute("", 0), sync()].concat();
    same(
        &script()
            .ask(&[query(IN), copy_data(b"1\tx\n"), copy_fail("changed my mind")].concat())
            .ask(&query("SELECT 1"))
            .send(&copy)
            .read(3)
            .ask(&[copy_data(b"1\tx\n"), copy_fail("again"), sync()].concat())
            .ask(&query("SELECT count(*) FROM sink")),
    );
}

#[test]
fn late_data_after_an_error_of_the_server() {
    let copy = [parse("", IN, &[]), bind("", "", &[]), execute("", 0), sync()].concat();
    let late = [copy_data(b"1\tx\n"), copy_data(b"2\tx\n")].concat();
    same(
        &script()
            // The data is bad; more of it and the CopyDone come after PostgreSQL gave up.
            .ask(&[query(IN), copy_data(b"bad\tx\n")].concat())
            .send(&[late.clone(), copy_done()].concat())
            .ask(&query("SELECT 1"))
            .ask(&[query(IN), copy_data(b"bad\tx\n"), late.clone(), copy_done()].concat())
            .ask(&query("SELECT 2"))
            .send(&[late.clone(), copy_fail("late")].concat())
            .ask(&query("SELECT 3"))
            // The same with the extended protocol: the batch is skipped to the last Sync.
            .send(&copy)
            .read(3)
            .send(&copy_data(b"bad\tx\n"))
            .read(1)
            .ask(&[late.clone(), copy_done(), sync()].concat())
            .ask(&[copy, copy_data(b"bad\tx\n"), late, copy_done(), sync()].concat())
            .ask(&query("SELECT count(*) FROM sink")),
    );
}

#[test]
fn a_failed_copy_reads_no_data() {
    same(
        &script()
            .ask(&[query("COPY no_such FROM STDIN"), copy_data(b"1\n"), copy_done()].concat())
            .ask(&query("SELECT 1"))
            .ask(
                &[copy_done(), copy_data(b"stray"), copy_fail("stray"), query("SELECT 2")].concat(),
            ),
    );
}

#[test]
fn something_else_in_the_middle_of_the_data() {
    for stranger in [
        query("SELECT 'in the way'"),
        function_call(177, 0, &[Some(b"1"), Some(b"2")]),
        parse("", "SELECT 1", &[]),
    ] {
        let data = [copy_data(b"1\tx\n"), stranger].concat();
        same(&script().send(&query(IN)).read(1).send(&data).read_to_end());
        same(&script().ask(&[query(IN), data].concat()).read_to_end());
    }
}

/// It says that it reads, and then does not.
#[test]
fn what_follows_a_copy_that_fails_before_it_reads() {
    let refused = query("COPY pg_tables FROM STDIN");
    let run = [bind("", "s", &[]), execute("", 0), sync()].concat();
    same(
        &script()
            .ask(&[parse("s", "SELECT 'prepared'", &[]), sync()].concat())
            .ask(&[refused.clone(), run].concat())
            .read_until_ready()
            .ask(&[refused, query("EXECUTE s")].concat())
            .read_until_ready()
            .ask(&query("EXECUTE s")),
    );
}

#[test]
fn a_goodbye_in_the_middle_of_the_data() {
    let glued = [query(IN), copy_data(b"1\tx\n"), terminate()].concat();
    let extended = [parse("", IN, &[]), bind("", "", &[]), execute("", 0), flush()].concat();
    for script in [
        script().send(&glued),
        script().send(&query(IN)).read(1).send(&terminate()),
        script().send(&extended).read(3).send(&terminate()),
    ] {
        same_but(&[Difference::GoodbyeInCopy], &script.read_to_end());
    }
    same(&script().ask(&query("SELECT count(*) FROM sink")));
}

/// Nothing is asked for: PostgreSQL says it by itself.
#[test]
fn what_is_said_before_the_sync() {
    let copy = [parse("", IN, &[]), bind("", "", &[]), execute("", 0)].concat();
    same(
        &script()
            .send(&copy)
            .read(3)
            .ask(&[copy_data(b"1\tone\n"), copy_fail("no"), sync()].concat())
            .send(&parse("", "SELEC", &[]))
            .read(1)
            .ask(&sync())
            .send(&[parse("", "SELECT 1/0", &[]), bind("", "", &[]), execute("", 0)].concat())
            .read(2)
            .ask(&sync()),
    );
}

//! Portals and cursors, read in portions, inside transactions and beyond their end.

use pgweir_testkit::frames::{
    bind, close_portal, close_statement, describe_portal, describe_statement, execute, parse, query,
};

use super::{batch, part, same_units};

const ROWS: &str = "SELECT a, b FROM kept WHERE a <= 5 ORDER BY a";

/// Portions of a portal, each with its Sync.
fn portions(portal: &str, limits: &[u32]) -> Vec<Vec<u8>> {
    limits.iter().map(|limit| batch(&[execute(portal, *limit)])).collect()
}

#[test]
fn portions_of_a_portal() {
    for portal in ["", "p"] {
        let open = [parse("", ROWS, &[]), bind(portal, "", &[])].concat();
        let first = batch(&[open.clone(), execute(portal, 2)]);
        let units = [
            &[query("BEGIN"), first.clone()][..],
            &portions(portal, &[1, 1, 1, 1, 0]),
            &[batch(&[describe_portal(portal)]), batch(&[close_portal(portal)])],
            &portions(portal, &[1]),
            &[query("ROLLBACK")],
            // Without a transaction the Sync ends it.
            std::slice::from_ref(&first),
            &portions(portal, &[1, 0]),
            &[batch(&[describe_portal(portal)]), batch(&[close_portal(portal)])],
            &[batch(&[open.clone(), execute(portal, 2), execute(portal, 2), execute(portal, 2)])],
            &[query("BEGIN"), first.clone(), query("COMMIT")],
            &portions(portal, &[1]),
            &[query("BEGIN"), first.clone(), query("SELECT 1/0")],
            &portions(portal, &[1]),
            &[query("ROLLBACK"), query("SELECT 1")],
        ];
        same_units(&units.concat());
    }
}

#[test]
fn limits_of_every_size() {
    let units = [0, 1, 5, 6, 0x7fff_ffff, 0x8000_0000, u32::MAX].map(|limit| {
        let open = [parse("", ROWS, &[]), bind("p", "", &[])].concat();
        batch(&[open, execute("p", limit), execute("p", limit)])
    });
    same_units(&units);
}

/// What else than a query a portal may be: what is not a SELECT is run whole by its first portion.
#[test]
fn portions_of_other_statements() {
    for text in [
        "INSERT INTO kept SELECT n FROM generate_series(6, 9) AS n RETURNING a",
        "UPDATE kept SET b = b WHERE a <= 5",
        "WITH gone AS (DELETE FROM kept WHERE a <= 3 RETURNING a) SELECT a FROM gone",
        "SHOW work_mem",
        "EXPLAIN (COSTS OFF) SELECT a FROM kept",
        "VALUES (1), (2), (3)",
        "SET LOCAL work_mem = '77MB'",
        "COPY (SELECT a FROM kept WHERE a <= 5 ORDER BY a) TO STDOUT",
        "",
    ] {
        let open = [parse("", text, &[]), bind("p", "", &[]), describe_portal("p")].concat();
        let units = [
            query("BEGIN"),
            batch(&[open, execute("p", 2)]),
            batch(&[execute("p", 1)]),
            batch(&[execute("p", 0)]),
            query("ROLLBACK"),
            query("SELECT count(*) FROM kept WHERE a <= 5"),
        ];
        same_units(&units);
    }
}

#[test]
fn several_portals_at_once() {
    let open = |portal: &str, first: &str| {
        [parse("", "SELECT $1::int + n FROM generate_series(1, 4) AS n", &[]), {
            bind(portal, "", &[Some(first)])
        }]
        .concat()
    };
    let units = [
        query("BEGIN"),
        batch(&[open("p", "10"), open("q", "20"), open("", "30")]),
        batch(&[execute("p", 1), execute("q", 2), execute("", 3), execute("p", 1)]),
        batch(&[open("p", "40")]),
        query("ROLLBACK"),
        query("BEGIN"),
        batch(&[open("p", "10"), open("", "20"), execute("", 1)]),
        // The next unnamed one takes the place of the last, and so does a simple Query.
        batch(&[open("", "50"), execute("", 1), execute("p", 1)]),
        query("SELECT 1"),
        batch(&[execute("p", 1)]),
        batch(&[execute("", 1)]),
        query("COMMIT"),
    ];
    same_units(&units);
}

/// The statement was prepared on another server, and may be closed while its portal is open.
#[test]
fn portals_of_statements_of_other_servers() {
    let units = [
        batch(&[parse("s", ROWS, &[]), describe_statement("s")]),
        query("SELECT 'another server'"),
        query("BEGIN"),
        batch(&[bind("p", "s", &[]), execute("p", 2)]),
        batch(&[close_statement("s"), parse("s", "SELECT 'other'", &[])]),
        batch(&[execute("p", 2), bind("q", "s", &[]), execute("q", 1), execute("p", 2)]),
        query("COMMIT"),
        batch(&[bind("", "s", &[]), describe_portal(""), execute("", 1)]),
        batch(&[bind("", "s", &[]), execute("", 1), execute("", 1)]),
    ];
    same_units(&units);
}

/// A portal and a cursor are the same thing.
#[test]
fn portals_are_cursors() {
    let units = [
        query("BEGIN"),
        query(&format!("DECLARE c SCROLL CURSOR FOR {ROWS}")),
        batch(&[describe_portal("c"), execute("c", 2)]),
        query("FETCH c"),
        batch(&[part("FETCH BACKWARD 2 FROM c"), part("MOVE LAST c"), execute("c", 1)]),
        batch(&[parse("", ROWS, &[]), bind("p", "", &[]), execute("p", 1)]),
        query("FETCH 2 FROM p; MOVE p; FETCH ALL p"),
        query("SELECT name, statement, is_holdable, is_scrollable FROM pg_cursors ORDER BY name"),
        query("CLOSE p"),
        batch(&[execute("p", 1)]),
        query("ROLLBACK"),
        batch(&[execute("c", 1)]),
    ];
    same_units(&units);
}

#[test]
fn cursors() {
    let texts = [
        "BEGIN",
        "DECLARE c SCROLL CURSOR FOR SELECT a FROM kept WHERE a <= 5 ORDER BY a",
        "FETCH c; FETCH FORWARD 2 c; FETCH PRIOR c; FETCH ABSOLUTE 5 c; FETCH RELATIVE -2 c",
        "MOVE FIRST c; FETCH BACKWARD ALL c; FETCH FIRST c; FETCH LAST c; FETCH NEXT c",
        "DECLARE c CURSOR FOR SELECT 1",
        "ROLLBACK",
        "FETCH c",
        "DECLARE c CURSOR FOR SELECT 1",
        "BEGIN",
        "DECLARE u CURSOR FOR SELECT a FROM kept WHERE a = 2 FOR UPDATE",
        "FETCH u; UPDATE kept SET b = 'it' WHERE CURRENT OF u RETURNING a, b",
        "DECLARE n NO SCROLL CURSOR FOR SELECT a FROM kept; FETCH 2 n; FETCH BACKWARD n",
        "COMMIT",
        "CLOSE u",
        "BEGIN; DECLARE b BINARY CURSOR FOR SELECT 1::int4; FETCH b; COMMIT; SELECT 1",
    ];
    same_units(&texts.map(query));
    same_units(&texts.iter().map(|text| batch(&[part(text)])).collect::<Vec<_>>());
}

#[test]
fn cursors_beyond_their_transaction() {
    let declare = |name: &str| {
        query(&format!(
            "DECLARE {name} SCROLL CURSOR WITH HOLD FOR SELECT a FROM kept WHERE a <= 5"
        ))
    };
    let units = [
        declare("h"),
        query("FETCH 2 h"),
        batch(&[execute("h", 1), execute("h", 1)]),
        batch(&[execute("h", 1)]),
        query("BEGIN"),
        declare("i"),
        query("ROLLBACK"),
        query("FETCH i"),
        query("BEGIN"),
        declare("i"),
        query("FETCH i; SELECT 1/0"),
        query("COMMIT"),
        query("FETCH FIRST h"),
        query("BEGIN; CLOSE h; ROLLBACK"),
        query("FETCH h"),
        query("SET work_mem = '77MB'"),
        declare("h"),
        query("CLOSE ALL"),
        query("SHOW work_mem"),
        query("FETCH h"),
        declare("h"),
        query("DISCARD ALL"),
        query("FETCH h"),
    ];
    same_units(&units);
}

#[test]
fn portals_and_savepoints() {
    let open = |portal: &str| [parse("", ROWS, &[]), bind(portal, "", &[])].concat();
    let units = [
        query("BEGIN"),
        batch(&[open("outer"), execute("outer", 1)]),
        query("SAVEPOINT s"),
        batch(&[open("inner"), execute("inner", 1), execute("outer", 1)]),
        query("ROLLBACK TO s"),
        batch(&[execute("outer", 1)]),
        batch(&[execute("inner", 1)]),
        query("ROLLBACK TO s"),
        batch(&[execute("outer", 1), open("kept"), execute("kept", 1)]),
        query("RELEASE s"),
        batch(&[execute("kept", 1), execute("outer", 0)]),
        query("COMMIT"),
    ];
    same_units(&units);
}

/// What a batch ends in its middle ends portals too.
#[test]
fn transactions_that_end_inside_a_batch() {
    let open = [parse("", ROWS, &[]), bind("p", "", &[]), execute("p", 1)].concat();
    for end in ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN"] {
        let units = [
            batch(&[part("BEGIN"), open.clone(), part(end), execute("p", 1)]),
            query("ROLLBACK"),
            batch(&[open.clone(), part(end), execute("p", 1)]),
            query("ROLLBACK"),
        ];
        same_units(&units);
    }
}

/// No name of a client's meets one of the pooler's own.
#[test]
fn names_like_the_poolers_own() {
    for name in ["pgweir_", "pgweir_1", "pgweir_back", "pgweir__1"] {
        let units = [
            batch(&[parse(name, ROWS, &[]), bind(name, name, &[]), execute(name, 2)]),
            query("BEGIN"),
            batch(&[bind(name, name, &[]), execute(name, 1)]),
            query(&format!("FETCH {name}; SET work_mem = '77MB'; RESET ALL")),
            batch(&[execute(name, 1), describe_portal(name)]),
            query("COMMIT; SHOW work_mem"),
            batch(&[execute(name, 1)]),
            batch(&[describe_statement(name), close_statement(name)]),
            query("SELECT 1"),
        ];
        same_units(&units);
    }
}

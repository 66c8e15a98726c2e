//! Batches, pipelines of them, strings of several statements, and savepoints: what is an
//! implicit transaction, what an error takes back, and what goes on behind it.

use pgweir_testkit::frames::{
    bind, close_statement, copy_data, copy_done, copy_fail, describe_portal, describe_statement,
    execute, extended, flush, parse, query,
};

use super::{batch, part, same, same_units, simple};

/// Rows of these tests have numbers from here on, each test its own, and none is left behind.
const FIRST: u32 = 1000;

fn insert(number: u32) -> Vec<u8> {
    part(&format!("INSERT INTO kept VALUES ({})", FIRST + number))
}

fn count() -> Vec<u8> {
    query(&format!("SELECT a FROM kept WHERE a >= {FIRST} AND a < {} ORDER BY a", FIRST + 10))
}

fn clear() -> Vec<u8> {
    query(&format!("DELETE FROM kept WHERE a >= {FIRST} AND a < {}", FIRST + 10))
}

/// An error at every place of a batch, of every kind.
#[test]
fn errors_at_every_place() {
    let mut units = Vec::new();
    for wrong in [
        part("SELECT 1/0"),
        part("SELECT nothing"),
        part("SELEC"),
        bind("", "no_such", &[]),
        describe_portal("no_such"),
        describe_statement("no_such"),
        execute("no_such", 0),
        part("SET no_such = 1"),
    ] {
        for place in 0..4 {
            let mut parts: Vec<_> = (0..3).map(insert).collect();
            parts.insert(place, wrong.clone());
            units.extend([batch(&parts), count()]);
            parts.insert(place, part("COMMIT"));
            units.extend([batch(&parts), count(), clear()]);
        }
    }
    same_units(&units);
}

/// A name that an error has kept from being given is not there in the batches behind.
#[test]
fn names_across_a_pipeline() {
    let run = |name: &str| [bind("", name, &[]), describe_portal(""), execute("", 0)].concat();
    let units = [
        batch(&[parse("s", "SELECT 's', $1::int", &[]), describe_statement("s")]),
        batch(&[bind("", "s", &[Some("1")]), execute("", 0)]),
        batch(&[part("SELECT 1/0"), parse("t", "SELECT 't'", &[]), run("t")]),
        batch(&[run("t")]),
        batch(&[parse("t", "SELECT 't'", &[]), part("SELECT 1/0")]),
        batch(&[run("t")]),
        batch(&[close_statement("t"), parse("t", "SELECT 'u'", &[]), run("t")]),
        batch(&[close_statement("t"), part("SELECT 1/0"), parse("t", "SELECT 'v'", &[])]),
        batch(&[run("t")]),
        batch(&[parse("t", "SELECT 'w'", &[]), run("t")]),
        batch(&[run("t"), close_statement("t"), run("t")]),
        query("DEALLOCATE ALL"),
        batch(&[run("s")]),
        query("SELECT 'on'"),
    ];
    same_units(&units);
}

/// Settings change in a pipeline, and are taken back in it.
#[test]
fn settings_across_a_pipeline() {
    let show = || query("SELECT current_setting('work_mem'), current_setting('DateStyle')");
    let units = [
        query("SET work_mem = '71MB'"),
        show(),
        batch(&[part("SET work_mem = '72MB'"), part("SHOW work_mem"), part("SELECT 1/0")]),
        show(),
        batch(&[part("SET DateStyle = German"), part("SELECT DATE '2020-02-01'")]),
        query("BEGIN"),
        batch(&[part("SET LOCAL work_mem = '73MB'"), part("SET DateStyle = SQL")]),
        show(),
        query("ROLLBACK"),
        show(),
        query("BEGIN; SET LOCAL work_mem = '74MB'; SET DateStyle = 'ISO, DMY'"),
        show(),
        query("COMMIT"),
        show(),
        batch(&[part("SET work_mem = '75MB'"), part("COMMIT"), part("SELECT 1/0")]),
        show(),
        batch(&[part("RESET work_mem"), flush(), part("SHOW work_mem")]),
        show(),
        query("SET work_mem = '76MB'; SELECT 1/0"),
        show(),
        query("SET work_mem = '76MB'; COMMIT; SELECT 1/0"),
        show(),
    ];
    same_units(&units);
}

#[test]
fn strings_of_several_statements() {
    let one = "INSERT INTO kept VALUES (1050)";
    let texts = [
        format!("{one}; SELECT 1/0"),
        format!("{one}; COMMIT; SELECT 1/0"),
        format!("{one}; SELECT 1/0; ROLLBACK"),
        format!("BEGIN; {one}; SELECT 1/0; COMMIT"),
        "SELECT 'inside'".to_owned(),
        "ROLLBACK; SELECT 'outside'; BEGIN; SELECT 'inside'".to_owned(),
        "COMMIT; BEGIN READ ONLY; SHOW transaction_read_only".to_owned(),
        "SHOW transaction_read_only; COMMIT; SHOW transaction_read_only".to_owned(),
        format!("SELECT 1; BEGIN; {one}; ROLLBACK; SELECT 2"),
        "SELECT 1; SAVEPOINT s; SELECT 2".to_owned(),
        "SET LOCAL work_mem = '77MB'; SHOW work_mem".to_owned(),
        "SET LOCAL work_mem = '77MB'; COMMIT; SHOW work_mem".to_owned(),
        "SET work_mem = '77MB'; ROLLBACK; SHOW work_mem".to_owned(),
        "BEGIN; SET work_mem = '77MB'; SAVEPOINT s; SET work_mem = '78MB'; SELECT 1/0".to_owned(),
        "ROLLBACK TO s; SHOW work_mem; COMMIT; SHOW work_mem".to_owned(),
        "SELECT 1; VACUUM kept".to_owned(),
        "VACUUM kept".to_owned(),
        "BEGIN; BEGIN; COMMIT; COMMIT".to_owned(),
        "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SHOW transaction_isolation"
            .to_owned(),
        "COMMIT AND CHAIN; SHOW transaction_isolation".to_owned(),
        "ABORT; SHOW transaction_isolation; SHOW work_mem".to_owned(),
        "DELETE FROM kept WHERE a = 1050".to_owned(),
    ];
    let units = texts.iter().flat_map(|text| [query(text), query("SELECT 'between'")]);
    same_units(&units.collect::<Vec<_>>());
    same_units(&texts.map(|text| query(&text)));
}

/// A step of a transaction with savepoints.
const STEPS: [&str; 12] = [
    "SAVEPOINT a",
    "SAVEPOINT b",
    "RELEASE a",
    "RELEASE b",
    "ROLLBACK TO a",
    "ROLLBACK TO b",
    "SET work_mem = '71MB'",
    "SET work_mem = '72MB'; SET app.n = '2'",
    "SET LOCAL work_mem = '73MB'",
    "SET LOCAL app.n = '3'",
    "RESET work_mem",
    "SELECT 1/0",
];

const ENDS: [&str; 5] = ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "END"];

/// Transactions with settings and nested savepoints in any order, the same in every run.
#[test]
fn settings_and_savepoints() {
    let mut dice = 7_u32;
    let mut pick = |words: &[&'static str]| {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words[(dice >> 16) as usize % words.len()]
    };
    let show = "SELECT current_setting('work_mem'), current_setting('app.n')";
    for number in 0..150 {
        let mut texts = vec!["SET app.n = '1'"];
        for _ in 0..3 {
            texts.extend(["BEGIN", show]);
            texts.extend((0..8).map(|_| pick(&STEPS)));
            texts.extend([show, pick(&ENDS), show, "ROLLBACK", show]);
        }
        match number % 3 {
            0 => same(&simple(&texts)),
            1 => same_units(&texts.iter().map(|text| query(text)).collect::<Vec<_>>()),
            _ => {
                let single = texts.iter().flat_map(|text| text.split("; "));
                same_units(&single.map(|text| extended(text, &[])).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn copies_in_pipelines() {
    let rows = copy_data(format!("{}\tx\n{}\ty\n", FIRST + 60, FIRST + 61).as_bytes());
    let own = "FROM kept WHERE a >= 1060 AND a < 1070 ORDER BY a";
    let [into, out] =
        ["COPY kept FROM STDIN".to_owned(), format!("COPY (SELECT a {own}) TO STDOUT")];
    let good = [rows.clone(), copy_done()].concat();
    let bad = [copy_data(b"nonsense\n"), copy_done()].concat();
    let failed = [rows, copy_fail("no")].concat();
    let look = || query(&format!("SELECT a {own}"));
    let mut units = Vec::new();
    for data in [&good, &bad, &failed] {
        units.extend([
            query("SET work_mem = '77MB'"),
            [query(&into), data.clone()].concat(),
            look(),
            query("DELETE FROM kept WHERE a >= 1060 AND a < 1070"),
            query("BEGIN"),
            [query(&into), data.clone()].concat(),
            query(&out),
            query("ROLLBACK"),
            batch(&[part(&into), data.clone()]),
            batch(&[part(&out), part("SELECT 1")]),
            query("DELETE FROM kept WHERE a >= 1060 AND a < 1070"),
            batch(&[part(&into), data.clone(), part("SELECT 1/0")]),
            look(),
            [query(&format!("SELECT 1; {into}; SELECT 2; SELECT 1/0")), data.clone()].concat(),
            look(),
            query(&format!("{out}; SHOW work_mem; {out}")),
        ]);
    }
    same_units(&units);
}

//! Sessions whose transactions each land on another server than the last: every message is that of
//! a session that PostgreSQL itself serves.

use std::sync::LazyLock;

use pgweir_testkit::frames::{bind, execute, extended, parse, query, sync};
use pgweir_testkit::{Login, Pgweir, Script, assert_same_transcript};

use crate::stage::{self, CLUSTER, PROGRAM};

mod batches;
mod drivers;
mod encodings;
mod portals;
mod prepared;
mod set_grammar;
mod settings;

/// Role and database of all scripts. The role may become others.
const NAME: &str = "sessions";

/// Nine servers, of which each transaction gets another than the last of its client.
static POOLER: LazyLock<Pgweir> = LazyLock::new(|| {
    stage::create_database(&CLUSTER, NAME);
    stage::superuser(&CLUSTER, NAME).query(SCHEMA);
    let config = stage::trusting(&CLUSTER, NAME)
        .pool("server_choice", "\"never_same\"")
        .user(NAME, "", 9)
        .user_setting("min_pool_size", "9");
    Pgweir::start(PROGRAM, |port| config.text(port))
});

const SCHEMA: &str = "
    ALTER ROLE sessions SUPERUSER;
    CREATE ROLE sessions_low;
    CREATE ROLE sessions_other;
    GRANT sessions_low TO sessions_other;
    CREATE SCHEMA \"Odd one\";
    CREATE SCHEMA plain;
    CREATE TABLE kept (a int PRIMARY KEY, b text);
    INSERT INTO kept SELECT n, 'row ' || n FROM generate_series(1, 5) AS n;
    CREATE TABLE child (a int CONSTRAINT child_kept REFERENCES kept DEFERRABLE);
    GRANT ALL ON kept, child TO public;
";

/// What a client says.
#[derive(Clone, Debug)]
enum Step {
    /// A Query.
    Simple(String),
    /// A batch of the unnamed statement.
    Extended(String),
}

fn login() -> Login {
    stage::login(NAME)
}

/// Every text as a Query.
fn simple(texts: &[&str]) -> Vec<Step> {
    texts.iter().map(|text| Step::Simple((*text).to_owned())).collect()
}

fn script(login: Login, steps: &[Step]) -> Script {
    steps.iter().fold(Script::new(login), |script, step| match step {
        Step::Simple(text) => script.ask(&query(text)),
        Step::Extended(text) => script.ask(&extended(text, &[])),
    })
}

/// The unnamed statement, without its Sync.
fn part(text: &str) -> Vec<u8> {
    [parse("", text, &[]), bind("", "", &[]), execute("", 0)].concat()
}

/// Parts with one Sync behind them.
fn batch(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), sync()].concat()
}

/// Every unit is sent before its predecessor's reply is read.
fn pipeline(script: Script, units: &[Vec<u8>]) -> Script {
    units.iter().fold(script.send(&units.concat()), |script, _| script.read_until_ready())
}

/// Each unit is sent when the reply of the one before has been read.
fn in_turn(script: Script, units: &[Vec<u8>]) -> Script {
    units.iter().fold(script, |script, unit| script.ask(unit))
}

/// The same units in turn, and in one pipeline.
#[track_caller]
fn same_units(units: &[Vec<u8>]) {
    same_script(&in_turn(Script::new(login()), units));
    same_script(&pipeline(Script::new(login()), units));
}

/// The messages are those of a session on a server of its own.
#[track_caller]
fn same_as(login: Login, steps: &[Step]) {
    same_script(&script(login, steps));
}

/// As [`same_as`], for whatever frames.
#[track_caller]
fn same_script(script: &Script) {
    // It makes the role and the database, too.
    let pooler = POOLER.address();
    let direct = reports_sorted(script.run(CLUSTER.address()));
    let pooled = reports_sorted(script.run(pooler));
    if direct != pooled {
        eprintln!("{script:?}");
    }
    assert_same_transcript(&direct, &pooled);
    stage::assert_sound(&POOLER);
}

/// PostgreSQL reports what a unit has changed in no order of any meaning.
fn reports_sorted(mut transcript: Vec<String>) -> Vec<String> {
    let is_report = |line: &str| line.starts_with("ParameterStatus");
    transcript
        .chunk_by_mut(|a, b| is_report(a) && is_report(b))
        .for_each(|reports| reports.sort_unstable());
    transcript
}

#[track_caller]
fn same(steps: &[Step]) {
    same_as(login(), steps);
}

#[test]
fn every_transaction_lands_on_another_server() {
    let mut client = pgweir_testkit::WireClient::login(POOLER.address(), &login()).unwrap();
    let mut last = String::new();
    for _ in 0..20 {
        let pid = client.query("SELECT pg_backend_pid()").concat();
        assert_ne!(pid, last);
        last = pid;
    }
}

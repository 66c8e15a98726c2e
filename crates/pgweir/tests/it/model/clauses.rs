//! The statements that clients say.

use super::dice::Dice;
use super::op::{Leaves, Part, Text, Unit};

/// Names of prepared statements, and of cursors and portals.
pub(super) const STATEMENTS: [&str; 4] = ["p1", "p2", "p3", "p4"];
const PORTALS: [&str; 2] = ["c1", "c2"];

pub(super) const CHANNELS: [&str; 3] = ["one", "two", "Three"];

/// Advisory locks that all clients want; each has another one to itself, which it waits for.
pub(super) const LOCKS: usize = 6;

/// Settings with values, some of which are refused.
pub(super) const SETTINGS: [(&str, &[&str]); 12] = [
    ("work_mem", &["1MB", "77MB", "many"]),
    ("DateStyle", &["German", "ISO, DMY", "SQL", "Roman"]),
    ("TimeZone", &["Asia/Tokyo", "UTC", "America/New_York"]),
    ("application_name", &["some", "other", "it''s"]),
    ("search_path", &["public", "plain", "\"Odd one\""]),
    ("extra_float_digits", &["0", "3", "9"]),
    ("IntervalStyle", &["sql_standard", "iso_8601"]),
    ("statement_timeout", &["1h", "2h", "0"]),
    ("default_transaction_isolation", &["serializable", "repeatable read"]),
    ("client_min_messages", &["warning", "error", "notice"]),
    ("client_encoding", &["LATIN1", "UTF8", "WIN1252"]),
    ("bytea_output", &["escape", "hex"]),
];

/// Settings that are nobody's but the application's.
pub(super) const CUSTOM: [&str; 2] = ["app.tenant", "App.Users"];

/// What its client knows of a session, and bends the choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mood {
    pub(super) number: usize,
    pub(super) in_block: bool,
    pub(super) failed: bool,
    /// It may keep its server.
    pub(super) keeps: bool,
}

/// What a client says in one write.
pub(super) fn units(dice: &mut Dice, mood: Mood) -> Vec<Unit> {
    let count = if dice.chance(12) { 2 + dice.below(3) } else { 1 };
    (0..count).map(|_| unit(dice, mood)).collect()
}

fn unit(dice: &mut Dice, mood: Mood) -> Unit {
    if dice.chance(55) {
        return Unit::Query(texts(dice, mood, |text| text));
    }
    if dice.chance(50) {
        return Unit::Batch(texts(dice, mood, run));
    }
    let count = 1 + dice.below(4);
    Unit::Batch((0..count).flat_map(|_| parts(dice, mood)).collect())
}

/// What has to be the last of its unit is none that stays the unnamed one, and may be run again.
fn run(text: Text) -> Part {
    Part::Run(match text.leaves {
        Leaves::Reset => Text::new("SELECT 1", Leaves::Nothing),
        Leaves::Encoding
        | Leaves::Names
        | Leaves::NamesUnlessAlone
        | Leaves::Nothing
        | Leaves::State
        | Leaves::Subscription => text,
    })
}

/// One statement, mostly; what has to be the last is.
fn texts<T>(dice: &mut Dice, mood: Mood, make: impl Fn(Text) -> T) -> Vec<T> {
    let count = if dice.chance(25) { 2 + dice.below(3) } else { 1 };
    let mut made = Vec::new();
    while made.len() < count {
        let text = text(dice, mood);
        let is_last = text.leaves == Leaves::Reset;
        made.push(make(text));
        if is_last {
            break;
        }
    }
    made
}

fn parts(dice: &mut Dice, mood: Mood) -> Vec<Part> {
    let name = *dice.pick(&STATEMENTS);
    let portal = *dice.pick(&PORTALS);
    match dice.below(9) {
        0 | 1 => vec![Part::Parse(name, prepared(dice, mood))],
        2 => vec![Part::Parse(name, prepared(dice, mood)), Part::Describe(name)],
        3 => vec![Part::Bind("", name), Part::Execute("", 0)],
        4 => vec![Part::Close(name)],
        5 => vec![Part::Bind(portal, name), Part::Execute(portal, 2), Part::Execute(portal, 2)],
        6 => vec![Part::Execute(portal, dice.below(3) as u32)],
        7 => vec![Part::Parse("", prepared(dice, mood))],
        _ => vec![Part::Bind("", ""), Part::Execute("", 0)],
    }
}

/// What is worth being prepared: its rows show under which settings it is run.
fn prepared(dice: &mut Dice, mood: Mood) -> Text {
    match dice.below(8) {
        0 => Text::new("SELECT current_setting('work_mem')", Leaves::Nothing),
        1 => Text::new("SELECT '2026-02-01'::date::text, now() > '1.2.2020'", Leaves::Nothing),
        2 => Text::new("SELECT count(*) FROM public.t1", Leaves::Nothing),
        3 => Text::new("SELECT n, 1.0 / n FROM generate_series(1, 5) AS n", Leaves::Nothing),
        4 => Text::new(format!("SELECT 'of {}'::text", mood.number), Leaves::Nothing),
        5 => Text::new("SELECT 1 / (n - 3) FROM generate_series(1, 5) AS n", Leaves::Nothing),
        6 => Text::new("SELECT count(*) FROM only_plain", Leaves::Nothing),
        _ => match text(dice, mood) {
            // It would be run before others of its unit.
            text if text.leaves == Leaves::Reset => Text::new("SELECT 1", Leaves::Nothing),
            // PostgreSQL ends a session that has EXECUTE run it outside of a transaction.
            text if ["SAVEPOINT", "RELEASE", "ROLLBACK"]
                .iter()
                .any(|it| text.sql.starts_with(it)) =>
            {
                Text::new("SELECT 2", Leaves::Nothing)
            }
            text => text,
        },
    }
}

/// A statement.
pub(super) fn text(dice: &mut Dice, mood: Mood) -> Text {
    if mood.failed && dice.chance(60) || mood.in_block && dice.chance(25) {
        return Text::new(*dice.pick(&ENDINGS), Leaves::Nothing);
    }
    if mood.keeps && dice.chance(25) {
        return lets_go(dice);
    }
    match dice.below(100) {
        0..14 => sets(dice),
        14..24 => shows(dice),
        24..30 => begins(dice),
        30..38 => within(dice),
        38..48 => prepares(dice, mood),
        48..62 => listens(dice, mood),
        62..72 => locks(dice, mood),
        72..82 => tables(dice),
        82..89 => cursors(dice),
        89..92 => becomes(dice),
        92..95 => lets_go(dice),
        _ => Text::new(*dice.pick(&FAILING), Leaves::Nothing),
    }
}

const ENDINGS: [&str; 8] = [
    "COMMIT",
    "COMMIT",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "ROLLBACK TO s1",
];

const FAILING: [&str; 5] = [
    "SELECT 1 / 0",
    "SELEC",
    "SELECT * FROM nowhere",
    "SELECT 'x'::int",
    "DO $$ BEGIN RAISE NOTICE 'a notice'; END $$",
];

fn sets(dice: &mut Dice) -> Text {
    let (name, values) = *dice.pick(&SETTINGS);
    let (name, value) = if dice.chance(25) {
        (*dice.pick(&CUSTOM), format!("'{}'", dice.below(4)))
    } else if name == "search_path" {
        (name, (*dice.pick(values)).to_owned())
    } else {
        (name, format!("'{}'", dice.pick(values)))
    };
    let quoted = value.replace('\'', "");
    let set = if name == "client_encoding" { Leaves::Encoding } else { Leaves::Nothing };
    let (sql, leaves) = match dice.below(17) {
        0..4 => (format!("SET {name} = {value}"), set),
        4 => (format!("SET SESSION {name} TO {value}"), set),
        5 | 6 => (format!("SET LOCAL {name} TO {value}"), set),
        7 => (format!("SELECT set_config('{name}', '{quoted}', false)"), set),
        8 => (format!("SELECT set_config('{name}', '{quoted}', true)"), set),
        9 | 10 => (format!("RESET {name}"), Leaves::Reset),
        11 => (format!("SET {name} TO DEFAULT"), Leaves::Reset),
        12 => (format!("SET LOCAL {name} = DEFAULT"), Leaves::Reset),
        13 => (format!("SELECT set_config('{name}', NULL, false) IS NULL"), Leaves::Reset),
        14 => (format!("SELECT set_config('{name}', NULL, true) IS NULL"), Leaves::Reset),
        15 => ((*dice.pick(&["SET TIME ZONE LOCAL", "SET NAMES"])).to_owned(), Leaves::Reset),
        _ => ("RESET ALL".to_owned(), Leaves::Reset),
    };
    Text::new(sql, leaves)
}

fn shows(dice: &mut Dice) -> Text {
    let (name, _) = *dice.pick(&SETTINGS);
    let custom = *dice.pick(&CUSTOM);
    let sql = match dice.below(3) {
        0 => format!("SHOW {name}"),
        1 => format!("SELECT current_setting('{name}')"),
        _ => format!("SELECT coalesce(current_setting('{custom}', true), '')"),
    };
    Text::new(sql, Leaves::Nothing)
}

fn begins(dice: &mut Dice) -> Text {
    let all = [
        "BEGIN",
        "BEGIN",
        "START TRANSACTION",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "BEGIN READ ONLY",
        "START TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    ];
    Text::new(*dice.pick(&all), Leaves::Nothing)
}

fn within(dice: &mut Dice) -> Text {
    let all = [
        "SAVEPOINT s1",
        "SAVEPOINT s1",
        "SAVEPOINT s2",
        "RELEASE s1",
        "RELEASE s2",
        "ROLLBACK TO s1",
        "ROLLBACK TO s2",
        "ROLLBACK AND CHAIN",
    ];
    Text::new(*dice.pick(&all), Leaves::Nothing)
}

fn prepares(dice: &mut Dice, mood: Mood) -> Text {
    let name = *dice.pick(&STATEMENTS);
    let number = mood.number;
    match dice.below(8) {
        // That it is taken already shows where all names stand.
        0 => {
            let sql = format!("PREPARE {name} AS SELECT 'in SQL by {number}'::text");
            Text::new(sql, Leaves::Names)
        }
        1 => {
            let sql = format!("PREPARE {name} AS SELECT n FROM generate_series(1, 3) AS n");
            Text::new(sql, Leaves::Names)
        }
        2..5 => Text::new(format!("EXECUTE {name}"), Leaves::Names),
        5 | 6 => Text::new(format!("DEALLOCATE {name}"), Leaves::NamesUnlessAlone),
        _ => Text::new("DEALLOCATE ALL", Leaves::NamesUnlessAlone),
    }
}

fn listens(dice: &mut Dice, mood: Mood) -> Text {
    let channel = *dice.pick(&CHANNELS);
    let said = format!("{} {}", mood.number, dice.below(3));
    let sql = match dice.below(10) {
        0..4 => format!("LISTEN \"{channel}\""),
        4 => format!("UNLISTEN \"{channel}\""),
        5 => "UNLISTEN *".to_owned(),
        6..8 => format!("NOTIFY \"{channel}\", '{said}'"),
        8 => format!("NOTIFY \"{channel}\""),
        _ => format!("SELECT pg_notify('{channel}', '{said}')"),
    };
    let leaves = match sql.starts_with("LISTEN") {
        true => Leaves::Subscription,
        false => Leaves::Nothing,
    };
    Text::new(sql, leaves)
}

fn locks(dice: &mut Dice, mood: Mood) -> Text {
    let wanted = 1 + dice.below(LOCKS);
    let own = 1 + LOCKS + mood.number;
    match dice.below(9) {
        0 | 1 => Text::new(format!("SELECT pg_try_advisory_lock({wanted})"), Leaves::State),
        2 => Text::new(format!("SELECT pg_try_advisory_lock_shared({wanted})"), Leaves::State),
        3 => Text::new(format!("SELECT pg_advisory_lock({own})"), Leaves::State),
        4 => Text::new(format!("SELECT pg_try_advisory_xact_lock({wanted})"), Leaves::Nothing),
        5 => Text::new(format!("SELECT pg_advisory_xact_lock({own})"), Leaves::Nothing),
        6 => Text::new(format!("SELECT pg_advisory_unlock({own})"), Leaves::Nothing),
        7 => Text::new(format!("SELECT pg_advisory_unlock({wanted})"), Leaves::Nothing),
        _ => Text::new("SELECT pg_advisory_unlock_all()", Leaves::Nothing),
    }
}

fn tables(dice: &mut Dice) -> Text {
    let name = *dice.pick(&["t1", "t2"]);
    let (sql, leaves) = match dice.below(9) {
        0 => (format!("CREATE TEMP TABLE {name} (a int)"), Leaves::State),
        1 => (format!("CREATE TEMPORARY TABLE {name} AS SELECT 1 AS a"), Leaves::State),
        2 => (format!("CREATE TEMP TABLE {name} (a int) ON COMMIT DROP"), Leaves::Nothing),
        3 => (format!("CREATE TEMP TABLE {name} (a int) ON COMMIT DELETE ROWS"), Leaves::State),
        4 => (format!("INSERT INTO {name} VALUES (2)"), Leaves::Nothing),
        // Which of two tables of a name a statement means is settled where it is prepared, and not
        // again when a temporary one comes to stand in front of the other.
        5 => (format!("SELECT count(*) FROM {}", name.replace("t1", "public.t1")), Leaves::Nothing),
        6 => (format!("SELECT 3 AS a INTO TEMP {name}"), Leaves::State),
        // Not the one of that name that everybody sees. Whether there is a schema of temporary
        // tables without any is a server's affair, so its name does not occur.
        _ => ("DROP TABLE t2".to_owned(), Leaves::State),
    };
    // A row in the table that everybody sees would be a lock that others wait for.
    Text::new(sql.replace("INTO t1 VALUES", "INTO t2 VALUES"), leaves)
}

fn cursors(dice: &mut Dice) -> Text {
    let name = *dice.pick(&PORTALS);
    let rows = "SELECT n FROM generate_series(1, 9) AS n";
    match dice.below(6) {
        0 => Text::new(format!("DECLARE {name} CURSOR WITH HOLD FOR {rows}"), Leaves::State),
        1 => Text::new(format!("DECLARE {name} CURSOR FOR {rows}"), Leaves::Nothing),
        2..4 => Text::new(format!("FETCH 2 FROM {name}"), Leaves::Nothing),
        4 => Text::new(format!("CLOSE {name}"), Leaves::Nothing),
        _ => Text::new("CLOSE ALL", Leaves::Nothing),
    }
}

fn becomes(dice: &mut Dice) -> Text {
    match dice.below(6) {
        0 => Text::new("SET ROLE model_low", Leaves::Nothing),
        1 => Text::new("SET LOCAL ROLE model_low", Leaves::Nothing),
        2 => Text::new("SET SESSION AUTHORIZATION model_low", Leaves::Nothing),
        3 => Text::new("SET ROLE NONE", Leaves::Reset),
        4 => Text::new("RESET ROLE", Leaves::Reset),
        _ => Text::new("RESET SESSION AUTHORIZATION", Leaves::Reset),
    }
}

/// What ends that for which a server is kept.
fn lets_go(dice: &mut Dice) -> Text {
    match dice.below(7) {
        0 => Text::new("DISCARD ALL", Leaves::Reset),
        1 => Text::new("DISCARD TEMP", Leaves::Nothing),
        2 => Text::new("DISCARD PLANS", Leaves::Nothing),
        3 => Text::new("DEALLOCATE ALL", Leaves::NamesUnlessAlone),
        4 => Text::new("CLOSE ALL", Leaves::Nothing),
        5 => Text::new("DROP TABLE IF EXISTS t2", Leaves::State),
        _ => Text::new("SELECT pg_advisory_unlock_all()", Leaves::Nothing),
    }
}

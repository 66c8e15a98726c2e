//! Attempts to change a session by a text that is said to be closed, and so to be fit to stand
//! between the statements of others: the session's state before and after is compared.
//!
//! The texts are all commands of PostgreSQL's reference and whatever has been thought of to get
//! past the classification, written in many ways. What is alone is not run, but for some texts that
//! show that the comparison sees what they change.

mod builtins;
mod reach;
mod texts;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use pgweir_sql::{
    Alone, COMPUTING_EXTENSIONS, Catalogue, EXCEPTIONS, Encoding, Loud, Sharing, hear,
};
use pgweir_testkit::WireClient;
use pgweir_testkit::frames::message;

use self::texts::{ATTEMPTS, CHANGES, COMMANDS, ENDS, FOREIGN, ORDINARY, SCHEMA, UNNAMED};
use crate::stage::{CLUSTER, Stage, superuser};

/// What the catalogue of a database says in which nobody has made a function.
static NOTHING: LazyLock<Arc<Loud>> = LazyLock::new(|| Arc::new(Catalogue::default().loud()));

/// What a session may keep, as text. What is not set reads otherwise than what is empty.
const STATE: &str = "
    SELECT string_agg(name || '=' || setting, ',' ORDER BY name) FROM pg_settings
    UNION ALL SELECT coalesce(current_setting('app.a', true), 'unset')
    UNION ALL SELECT coalesce(current_setting('app.b', true), 'unset')
    UNION ALL SELECT concat(current_user, session_user, current_schemas(true))
    UNION ALL SELECT concat(string_agg(lock, ',' ORDER BY lock)) FROM
        (SELECT concat_ws(' ', locktype, classid, objid, objsubid, mode) AS lock FROM pg_locks
        WHERE pid = pg_backend_pid() AND locktype IN ('advisory', 'transactionid', 'object')) AS l
    UNION ALL SELECT concat(string_agg(name, ',' ORDER BY name)) FROM pg_prepared_statements
    UNION ALL SELECT concat(string_agg(name, ',')) FROM pg_cursors WHERE name <> ''
    UNION ALL SELECT concat(string_agg(c, ',')) FROM pg_listening_channels() AS c
    UNION ALL SELECT concat(pg_my_temp_schema(), string_agg(relname, ',' ORDER BY relname))
        FROM pg_class
        WHERE relnamespace = pg_my_temp_schema()";

/// What a transaction has besides, but for locks of tables: those of `STATE`, and whether it has a
/// number.
static WITHIN: LazyLock<String> =
    LazyLock::new(|| format!("{STATE} UNION ALL SELECT concat(pg_current_xact_id_if_assigned())"));

/// What changes its transaction, and nothing behind that.
const WITHIN_ITS_TRANSACTION: [&str; 7] = [
    "SET LOCAL work_mem = '5MB'",
    "SELECT set_config('app.a', 'b', true)",
    "SELECT pg_advisory_xact_lock(1)",
    "DECLARE a CURSOR FOR SELECT 1",
    "SELECT txid_current()",
    "SET TRANSACTION READ ONLY",
    "CREATE TEMP TABLE a (b int) ON COMMIT DROP",
];

/// A session that has something of all that: a text that ends some of it changes it too.
const FURNISHED: &str = "
    PREPARE held AS SELECT 1; LISTEN held; DECLARE held CURSOR WITH HOLD FOR SELECT 1;
    SELECT pg_advisory_lock(91), pg_advisory_lock_shared(92); SET work_mem = '5MB';
    SET app.a = 'held'; SET app.b = 'held'; CREATE TEMP TABLE held (a int);
    CREATE TEMP SEQUENCE held_too; SELECT nextval('held_too')";

fn state(session: &mut WireClient) -> Vec<String> {
    let mut state = session.query(STATE);
    state.push(match session.try_query("SELECT lastval()") {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => error.to_string(),
    });
    state
}

/// The first number of a session that was seeded as the texts here do it.
static SEEDED: LazyLock<String> = LazyLock::new(|| {
    let mut session = superuser(&CLUSTER, "postgres");
    session.query("SELECT setseed(0.5); SELECT random()").pop().unwrap()
});

/// How a text is sent.
#[derive(Clone, Copy, Debug)]
enum Protocol {
    Simple,
    Extended,
}

impl Protocol {
    fn messages(self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Simple => message(b'Q', &[text, b"\0"].concat()),
            Self::Extended => [
                message(b'P', &[b"\0", text, b"\0\0\0"].concat()),
                message(b'B', &[0; 8]),
                message(b'E', &[0; 5]),
                message(b'S', &[]),
            ]
            .concat(),
        }
    }
}

/// What has come of a text.
struct Outcome {
    /// What it has changed, if anything.
    change: Option<String>,
    /// PostgreSQL has carried all of it out.
    succeeds: bool,
}

/// What comes of a text that is sent behind `first`, in one protocol or the other.
fn outcome(database: &str, first: &str, text: &[u8]) -> Outcome {
    Trials::of(database).outcome(first, text)
}

/// Texts that are tried one after the other: what changes nothing leaves a session as good as new,
/// which is most of what a try costs.
struct Trials<'a> {
    database: &'a str,
    /// The session of the last one, what it was like, and behind what.
    session: Option<(WireClient, Vec<String>, String)>,
}

impl<'a> Trials<'a> {
    fn of(database: &'a str) -> Self {
        Self { database, session: None }
    }

    fn outcome(&mut self, first: &str, text: &[u8]) -> Outcome {
        let simple = self.outcome_by(first, text, Protocol::Simple);
        let extended = self.outcome_by(first, text, Protocol::Extended);
        Outcome {
            change: simple.change.or(extended.change),
            succeeds: simple.succeeds || extended.succeeds,
        }
    }

    fn outcome_by(&mut self, first: &str, text: &[u8], protocol: Protocol) -> Outcome {
        let used = self.session.take().filter(|(_, _, behind)| behind == first);
        let was_used = used.is_some();
        let (mut session, before, behind) = used.unwrap_or_else(|| self.fresh(first));
        let outcome = change_by(&mut session, &before, text, protocol);
        match &outcome.change {
            None => self.session = Some((session, before, behind)),
            // Was it this text?
            Some(change) if was_used => {
                drop(session);
                let alone = self.outcome_by(first, text, protocol);
                let change = format!("{change}, though not by this text alone");
                return Outcome { change: alone.change.or(Some(change)), ..alone };
            }
            Some(_) => {}
        }
        outcome
    }

    fn fresh(&self, first: &str) -> (WireClient, Vec<String>, String) {
        let mut session = begun(self.database, first);
        let before = state(&mut session);
        (session, before, first.to_owned())
    }
}

fn begun(database: &str, first: &str) -> WireClient {
    let mut session = superuser(&CLUSTER, database);
    session.query(first);
    session
}

/// What a text changes for its transaction, if anything, and whether it was carried out. The
/// session is as it was behind that.
fn change_within(session: &mut WireClient, text: &[u8]) -> (Option<String>, bool) {
    session.query("BEGIN");
    let before = session.query(&WITHIN);
    session.send(&Protocol::Extended.messages(text)).unwrap();
    let reply = session.read_until_ready().unwrap();
    let is_whole = reply.last().unwrap().body == b"T";
    let after = if is_whole { session.query(&WITHIN) } else { before.clone() };
    session.query("ROLLBACK");
    let change = before.iter().zip(&after).find(|(before, after)| before != after);
    let change = change.map(|(before, after)| format!("{before} is {after} in its transaction"));
    (change, is_whole)
}

/// What comes of a text in a session that is so before.
fn change_by(
    session: &mut WireClient,
    before: &[String],
    text: &[u8],
    protocol: Protocol,
) -> Outcome {
    session.send(&protocol.messages(text)).unwrap();
    let reply = session.read_until_ready().unwrap();
    let succeeds = reply.iter().all(|message| message.tag != b'E');
    if reply.last().unwrap().body != b"I" {
        let change = Some("it leaves a transaction open".to_owned());
        return Outcome { change, succeeds };
    }
    let after = state(session);
    let change = before.iter().zip(&after).find(|(before, after)| before != after);
    let change = change.map(|(before, after)| format!("{before} is {after} now"));
    let seed = session.query("SELECT random()") == [SEEDED.as_str()];
    let change = change.or_else(|| seed.then(|| "it seeds random()".to_owned()));
    Outcome { change, succeeds }
}

/// How a text is said, in which encoding, and behind which settings.
fn ways(text: &str) -> Vec<(&'static str, String, Vec<u8>)> {
    const OFF: &str = "SET standard_conforming_strings = off";
    let plain = [
        text.to_owned(),
        text.to_lowercase(),
        text.to_uppercase(),
        text.replace(' ', "\t/* ( */\x0c"),
        text.replace(' ', "\x0b"),
        text.replace('(', " -- '\n("),
        text.replace('(', " -- '\r("),
        quoted(text),
        format!(";; {text} ;"),
        format!("SELECT 1; {text}"),
        format!("{text}; SELECT 1"),
        format!("SELECT '\\'; {text} --'"),
        format!("SELECT '\\\\'; {text} --'"),
        format!("SELECT E'\\'; {text} --'"),
        format!("SELECT $a$ $$ $a$; {text}"),
        format!("SELECT U&'\\0061' , $$'$$; {text}"),
        format!("SELECT \"a\"\"\"; {text}"),
        format!("/* /* */ {text} */ {text}"),
        format!("({text})"),
        format!("WITH x AS ({text}) SELECT 1"),
        format!("SELECT ({text})"),
        format!("SELECT 1 FROM ({text}) AS x"),
        format!("EXPLAIN ANALYZE {text}"),
        format!("DO $do$ BEGIN {text}; END $do$"),
        format!("COPY ({text}) TO STDOUT"),
    ];
    let mut ways: Vec<_> = Vec::new();
    for way in plain {
        ways.push(("UTF8", String::new(), way.clone().into_bytes()));
        ways.push(("UTF8", OFF.to_owned(), way.into_bytes()));
    }
    // Characters whose last byte is that of a backslash, with which nothing is closed where that is
    // ambiguous, or of anything else in ASCII. In JOHAB it never is (`pg_johab_verifychar`,
    // wchar.c), in UHC a letter.
    for (encoding, character) in [
        ("SJIS", b"\x95\x5c".as_slice()),
        ("SJIS", b"\x83\x7c"),
        ("BIG5", b"\xa5\x5c"),
        ("BIG5", b"\xa5\x7c"),
        ("GBK", b"\x81\x5c"),
        ("GBK", b"\x81\x7c"),
        ("GB18030", b"\x81\x5c"),
        ("GB18030", b"\x81\x30\x84\x36"),
        ("UHC", b"\x8cc"),
        ("JOHAB", b"\xd9\xa1"),
        ("SHIFT_JIS_2004", b"\x81\x5f"),
        ("SHIFT_JIS_2004", b"\x83\x5c"),
    ] {
        let first = format!("SET client_encoding = '{encoding}'");
        for (before, behind) in [
            ("SELECT E'", "'; "),
            ("SELECT '", "'; "),
            ("SELECT '", "''; "),
            ("SELECT U&'", "'; "),
            ("SELECT 1 AS ", "$a$; "),
            ("SELECT 1 AS \"", "\"; "),
            ("SELECT $", "$'$; "),
            ("/*", "*/ "),
            ("--", "\n"),
        ] {
            let parts: [&[u8]; 4] =
                [before.as_bytes(), character, behind.as_bytes(), text.as_bytes()];
            for settings in [first.clone(), format!("{first}; {OFF}")] {
                ways.push((encoding, settings, parts.concat()));
            }
        }
    }
    ways
}

/// The same text with all names in quotes: the texts here have them in small letters.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for (number, part) in text.split('\'').enumerate() {
        if number > 0 {
            quoted.push('\'');
        }
        // What stands between the first one and the second is a string, and so on.
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
        let mut rest = if number % 2 == 0 { part } else { "" };
        while let Some(at) = rest.find(|c: char| c.is_ascii_lowercase()) {
            let (before, name) = rest.split_at(at);
            let (name, behind) = name.split_at(name.find(|c| !is_name(c)).unwrap_or(name.len()));
            quoted.extend([before, "\"", name, "\""]);
            rest = behind;
        }
        quoted.push_str(if number % 2 == 0 { rest } else { part });
    }
    // Some are in quotes there, too.
    quoted.replace("\"\"", "\"")
}

fn is_closed(encoding: &str, text: &[u8]) -> bool {
    !matches!(sharing(encoding, text), Sharing::Alone(_))
}

fn sharing(encoding: &str, text: &[u8]) -> Sharing {
    hear(text, Encoding::named(encoding.as_bytes()), &NOTHING).sharing
}

fn database(name: &str) -> String {
    let mut session = superuser(&CLUSTER, "postgres");
    session.query(&format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"));
    superuser(&CLUSTER, name).query(SCHEMA);
    name.to_owned()
}

/// Texts that change a session: the comparison sees that, and none is called closed.
#[test]
fn what_changes_a_session_is_alone() {
    let database = database("closed_changes");
    superuser(&CLUSTER, &database).query(UNNAMED);
    for (text, first) in CHANGES {
        assert!(!is_closed("UTF8", text.as_bytes()), "{text} is called closed");
        let change = outcome(&database, first, text.as_bytes()).change;
        assert!(change.is_some(), "{text} changes nothing that is seen here");
    }
    for text in ENDS {
        assert!(!is_closed("UTF8", text.as_bytes()), "{text} is called closed");
        let change = outcome(&database, FURNISHED, text.as_bytes()).change;
        assert!(change.is_some(), "{text} ends nothing that is seen here");
    }
}

#[test]
fn no_text_that_is_closed_changes_a_session() {
    let database = database("closed_attempts");
    let changes = CHANGES.iter().map(|(text, _)| *text);
    let all = COMMANDS.iter().chain(ATTEMPTS).chain(ORDINARY).chain(ENDS).copied();
    let mut runs: BTreeMap<_, usize> = BTreeMap::new();
    let mut closed = Vec::new();
    for (encoding, first, way) in all.chain(changes).flat_map(ways) {
        runs.entry(encoding).or_default();
        if is_closed(encoding, &way) {
            // What ends something does so in every encoding.
            let furnished = (encoding == "UTF8").then(|| format!("{FURNISHED}; {first}"));
            let firsts = furnished.into_iter().chain([first]);
            closed.extend(firsts.map(|first| (first, encoding, way.clone())));
        }
    }
    closed.sort_by(|(first, ..), (other, ..)| first.cmp(other));
    let mut trials = Trials::of(&database);
    for (first, encoding, way) in closed {
        let outcome = trials.outcome(&first, &way);
        let way = String::from_utf8_lossy(&way);
        assert_eq!(outcome.change, None, "{way} in {encoding} behind {first:?}");
        *runs.entry(encoding).or_default() += usize::from(outcome.succeeds);
    }
    // Of an encoding that is not known nothing is closed that is not ASCII.
    assert_eq!(runs.remove("SHIFT_JIS_2004"), Some(0));
    assert!(runs.values().all(|runs| *runs > 100), "few closed texts were run: {runs:?}");
}

/// Others that read may be in the transaction of what only reads.
#[test]
fn nor_does_one_that_reads_change_its_transaction() {
    let database = database("closed_within");
    let changes = CHANGES.iter().map(|(text, _)| *text);
    let mut runs = 0;
    let mut sessions = BTreeMap::new();
    for text in COMMANDS.iter().chain(ATTEMPTS).chain(ORDINARY).copied().chain(changes) {
        for (encoding, first, way) in ways(text).into_iter().filter(|way| way.0 == "UTF8") {
            if sharing(encoding, &way) == Sharing::Read {
                let begun = || begun(&database, &first);
                let session = sessions.entry(first.clone()).or_insert_with(begun);
                let (change, succeeds) = change_within(session, &way);
                let way = String::from_utf8_lossy(&way);
                assert_eq!(change, None, "{way} behind {first:?}");
                runs += usize::from(succeeds);
            }
        }
    }
    assert!(runs > 100, "few were run: {runs}");
    for text in WITHIN_ITS_TRANSACTION {
        let (change, _) = change_within(&mut begun(&database, ""), text.as_bytes());
        assert!(change.is_some(), "{text} changes nothing that is seen here");
        assert_ne!(sharing("UTF8", text.as_bytes()), Sharing::Read, "{text}");
    }
}

/// The commands of the reference that psql brings along. It prints them in columns, as wide as the
/// longest.
fn reference() -> Vec<String> {
    let output = CLUSTER.tool("psql").args(["-X", "-c", "\\h"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let behind_first = lines[0].strip_prefix("ABORT").unwrap();
    let width = lines[0].len() - behind_first.trim_start().len();
    let columns = lines.iter().flat_map(|line| line.as_bytes().chunks(width));
    columns.map(|command| String::from_utf8(command.trim_ascii().to_vec()).unwrap()).collect()
}

/// The command of the reference that a text is: the one of the most words.
fn command_of<'a>(reference: &'a [String], text: &str) -> Option<&'a String> {
    let is_it = |command: &&String| {
        // Something stands between the words of these.
        let (first, then) = match command.as_str() {
            "CREATE TABLE AS" => ("CREATE TABLE", " AS "),
            "SELECT INTO" => ("SELECT", " INTO "),
            whole => (whole, ""),
        };
        let rest = text.strip_prefix(first);
        rest.is_some_and(|rest| (rest.is_empty() || rest.starts_with(' ')) && rest.contains(then))
    };
    reference.iter().filter(is_it).max_by_key(|command| command.len())
}

/// Whoever runs this with a newer PostgreSQL is told of the commands that it brings along.
#[test]
fn each_command_of_the_reference_is_tried() {
    let reference = reference();
    for known in ["ALTER SYSTEM", "CREATE TEXT SEARCH CONFIGURATION", "SELECT", "TABLE", "WITH"] {
        assert!(reference.iter().any(|command| command == known), "{known}: {reference:?}");
    }
    let tried: Vec<_> = COMMANDS.iter().filter_map(|text| command_of(&reference, text)).collect();
    let missing: Vec<_> = reference.iter().filter(|command| !tried.contains(command)).collect();
    assert!(missing.is_empty(), "COMMANDS has no statement of these: {missing:?}");
}

/// Most of those that are tried do nothing where they are: none of another command is closed.
#[test]
fn commands_of_a_few_kinds_are_closed() {
    let kinds = ["DELETE", "INSERT", "MERGE", "SELECT", "TABLE", "UPDATE", "VALUES", "WITH"];
    let reference = reference();
    for text in COMMANDS {
        let command = command_of(&reference, text).map(String::as_str).unwrap_or_default();
        let is_closed = is_closed("UTF8", text.as_bytes());
        assert!(!is_closed || kinds.contains(&command), "{text} is called closed");
    }
}

/// What a name stands for that is not in UTF-8, and not in ASCII, is not known.
#[test]
fn names_in_other_encodings_are_alone() {
    let database = database("closed_names");
    let act = "CREATE FUNCTION act() RETURNS text LANGUAGE sql AS
               'SELECT set_config(''app.a'', ''x'', false)'";
    superuser(&CLUSTER, &database).query(act);
    for (encoding, made, text) in FOREIGN {
        superuser(&CLUSTER, &database).query(made);
        let first = format!("SET client_encoding = '{encoding}'");
        let change = outcome(&database, &first, text).change;
        assert!(change.is_some(), "{text:?} in {encoding} changes nothing that is seen here");
        assert!(!is_closed(encoding, text), "{text:?} in {encoding} is called closed");
    }
}

/// Whether a pool whose names were read shares a text. Its own answer: nothing is run.
fn is_shared(stage: &Stage, text: &str) -> bool {
    shared_as(stage, text) != "no"
}

/// As what it shares one, or `no`.
fn shared_as(stage: &Stage, text: &str) -> String {
    let rows = stage.console(&format!("EXPLAIN ROUTE {text}"));
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(!rows[0].contains("of the database is not known"), "{rows:?}");
    rows[0].split('|').nth(2).unwrap().to_owned()
}

/// Extensions whose code does no more than compute keep nobody alone, nor do their types.
#[test]
fn extensions_that_compute_are_in_nobodys_way() {
    let stage = Stage::new("closed_extensions", 2);
    let mut superuser = superuser(&CLUSTER, &stage.name);
    let available = superuser.query("SELECT name FROM pg_available_extensions");
    let computing =
        COMPUTING_EXTENSIONS.iter().filter(|name| available.iter().any(|one| one == *name));
    let made = computing.map(|name| {
        superuser.query(&format!("CREATE EXTENSION \"{name}\" SCHEMA public CASCADE"));
    });
    assert!(made.count() > 20, "PostgreSQL's own are not all there");
    superuser.query("CREATE TABLE t (a citext, b hstore, c ltree, d cube, e seg)");
    stage.client().query("SELECT 1");
    for text in [
        "SELECT 1",
        "SELECT * FROM t WHERE a = 'x'",
        "SELECT b -> 'x', c || 'x', d, e FROM t",
        "SELECT similarity('abc', a::text), levenshtein('a', 'b'), digest('x', 'md5') FROM t",
    ] {
        let rows = stage.console(&format!("EXPLAIN ROUTE {text}"));
        assert!(rows[0].contains("|read|"), "{rows:?}");
    }
}

/// In a database with a schema that is as loud as can be its catalogue says what acts: no text that
/// is shared there changes a session.
#[test]
fn no_text_that_is_closed_reaches_what_acts() {
    let stage = Stage::new("closed_reach", 2);
    let become_owner = "SET ROLE closed_reach";
    superuser(&CLUSTER, &stage.name).query(&reach::schema(become_owner));
    superuser(&CLUSTER, &stage.name).query(reach::AS_BEFORE_15);
    stage.client().query("SELECT 1");
    let alone: Vec<_> = reach::QUIET.iter().filter(|text| !is_shared(&stage, text)).collect();
    assert!(alone.is_empty(), "alone: {alone:?}");
    // The settings of a language are there from its first function on.
    let with_language = format!("LOAD 'plpgsql'; {become_owner}");
    let mut done = 0;
    for text in reach::QUIET {
        let outcome = outcome(&stage.name, &with_language, text.as_bytes());
        assert_eq!(outcome.change, None, "{text}");
        done += usize::from(outcome.succeeds);
    }
    assert!(done > 20, "only {done} were done");
    let all = reach::ACTS.iter().chain(reach::UNSEEN);
    let shared: Vec<_> = all.filter(|text| is_shared(&stage, text)).collect();
    assert!(shared.is_empty(), "shared: {shared:?}");
    let mut runs = 0;
    for text in reach::ACTS {
        let change = outcome(&stage.name, become_owner, text.as_bytes()).change;
        assert!(change.is_some(), "{text} changes nothing that is seen here");
        for (encoding, first, way) in ways(text).into_iter().filter(|way| way.0 == "UTF8") {
            let way = String::from_utf8(way).unwrap();
            let kind = shared_as(&stage, &way);
            let first = format!("{become_owner}; {first}");
            if kind != "no" {
                runs += 1;
                let change = outcome(&stage.name, &first, way.as_bytes()).change;
                assert_eq!(change, None, "{way} in {encoding} behind {first:?}");
            }
            if kind == "read" {
                let mut session = begun(&stage.name, &first);
                let (change, _) = change_within(&mut session, way.as_bytes());
                assert_eq!(change, None, "{way} behind {first:?}");
            }
        }
    }
    assert!(runs > 10, "only {runs} texts were shared");
}

/// What is said to leave nothing behind may act before that: it does not count as what only reads,
/// which may be run twice, and in one transaction with others.
#[test]
fn what_acts_reads_nothing_whoever_believes_it() {
    let become_owner = "SET ROLE closed_believed";
    let schema = reach::schema(become_owner);
    let made = ["CREATE FUNCTION ", "CREATE PROCEDURE "].map(|made| schema.split(made).skip(1));
    let names = made.into_iter().flatten().filter_map(|rest| rest.split_once('(')).map(|it| it.0);
    let acting = names.filter(|name| *name != "quiet").collect::<Vec<_>>().join(", ");
    let stage = Stage::with("closed_believed", 2, |config| {
        config.pool("quiet_functions", &format!("'{acting}'"))
    });
    superuser(&CLUSTER, &stage.name).query(&schema);
    superuser(&CLUSTER, &stage.name).query(reach::AS_BEFORE_15);
    stage.client().query("SELECT 1");
    let kinds: Vec<_> = reach::ACTS.iter().map(|text| shared_as(&stage, text)).collect();
    let read: Vec<_> = reach::ACTS.iter().zip(&kinds).filter(|(_, kind)| *kind == "read").collect();
    assert!(read.is_empty(), "{read:?}");
    assert!(kinds.iter().any(|kind| kind == "write"), "nothing is believed: {kinds:?}");
    assert_eq!(shared_as(&stage, "SELECT quiet(1)"), "read");
}

/// Machine code that nobody has read, and what runs SQL somewhere else, shares nothing. What is
/// left there no look at this session shows.
#[test]
fn no_text_that_is_closed_reaches_unknown_machine_code() {
    let stage = Stage::new("closed_foreign", 2);
    superuser(&CLUSTER, &stage.name).query(reach::EXTENSIONS);
    stage.client().query("SELECT 1");
    assert!(is_shared(&stage, "SELECT lower('A')"));
    for text in reach::FOREIGN {
        assert!(!is_shared(&stage, text), "{text} is shared");
    }
}

/// What no text names keeps all of a database from being shared.
#[test]
fn nothing_is_closed_where_what_acts_has_no_name() {
    for (number, (unnamed, acts)) in reach::UNNAMED.iter().enumerate() {
        let stage = Stage::new(&format!("closed_unnamed_{number}"), 2);
        let become_owner = format!("SET ROLE {}", stage.name);
        let schema = reach::schema(&become_owner);
        superuser(&CLUSTER, &stage.name).query(&format!("{schema}; {unnamed}"));
        stage.client().query("SELECT 1");
        for text in *acts {
            let change = outcome(&stage.name, &become_owner, text.as_bytes()).change;
            assert!(change.is_some(), "{text} changes nothing that is seen here");
        }
        for text in acts.iter().chain(reach::QUIET) {
            assert!(!is_shared(&stage, text), "{text} is shared");
        }
    }
}

/// What applications send all day is shared, and does what it says.
#[test]
fn ordinary_statements_are_closed() {
    let database = database("closed_ordinary");
    let mut session = superuser(&CLUSTER, &database);
    for text in ORDINARY {
        assert!(is_closed("UTF8", text.as_bytes()), "{text} is alone");
        let reply = session.try_query(text).map_err(|error| error.to_string());
        assert!(reply.is_ok(), "{text}: {reply:?}");
    }
}

#[test]
fn the_page_has_each_rule() {
    let page = include_str!("../../../../docs/pipelining.md");
    for rule in Alone::ALL {
        assert!(page.contains(&format!("| {rule} |")), "{rule}");
    }
    for exception in EXCEPTIONS {
        assert!(page.contains(exception.why), "{}", exception.why);
    }
}

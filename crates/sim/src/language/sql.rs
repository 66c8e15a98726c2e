//! The made-up language in SQL, and a PostgreSQL that it is put to: what the fake says, that must
//! say.

use std::sync::LazyLock;

use pgweir_testkit::Cluster;
use pgweir_wire::backend::ErrorFields;
use pgweir_wire::frontend::{self, Parse};

use super::{Keep, Line, Tag, Verb, parse};
use crate::session::{Message, put};

/// What the statements need.
pub(crate) const TABLES: &str = "
    CREATE TABLE written (client int, number int);
    CREATE TABLE deferred (a int UNIQUE DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO deferred VALUES (1);
    CREATE TABLE copied (a text);
    CREATE SEQUENCE counted;
    CREATE TABLE locked (client int, key int, PRIMARY KEY (client, key));
    INSERT INTO locked
        SELECT client, key FROM generate_series(0, 99) client, generate_series(0, 9) key;
    CREATE FUNCTION shaped(int) RETURNS TABLE (value int) LANGUAGE sql STABLE
        AS 'SELECT generate_series(1, $1)';
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
    CREATE TABLE refused (a text);
    CREATE TRIGGER refuse BEFORE INSERT ON refused EXECUTE FUNCTION refuse();";

/// One for all scripts that leave its configuration alone.
pub(crate) static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let cluster = Cluster::start();
    cluster.psql(TABLES);
    cluster
});

/// Appends a message in short: its type, with the code of an error or a warning, and the status
/// behind each ReadyForQuery.
pub(crate) fn in_short(said: &mut String, tag: u8, body: &[u8]) {
    said.push(char::from(tag));
    let warning = b"VWARNING\0";
    let warns = tag == b'N' && body.windows(warning.len()).any(|field| field == warning);
    if tag == b'Z' {
        said.push(char::from(body[0]));
    } else if tag == b'E' || warns {
        let code = ErrorFields::parse(body).ok().and_then(|fields| fields.code);
        said.push_str(&format!("({})", code.expect("it has a code")));
    }
}

/// Messages of a frontend, with SQL in place of the made-up language.
pub(crate) fn translate(messages: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = messages;
    // Which row of the COPY that is about to come has to be wrong, and how many came before.
    let (mut wrong_row, mut rows) = (None, 0);
    while let Ok(Some((message, length))) = Message::parse(rest) {
        rest = &rest[length..];
        match message.tag {
            b'Q' => {
                let text = message.body.strip_suffix(b"\0").expect("the text has its end");
                (wrong_row, rows) = (wrong(text), 0);
                frontend::write_query(&mut out, sql(text).as_bytes());
            }
            b'P' => {
                let parse = Parse::start(&message.body).expect("it is whole");
                (wrong_row, rows) = (wrong(parse.text), 0);
                // The number of types is behind both texts.
                let untyped = message.body.ends_with(&[0, 0, 0]);
                let types: &[u32] = if untyped { &[] } else { &[25] };
                frontend::write_parse(&mut out, parse.name, sql(parse.text).as_bytes(), types);
            }
            b'd' => {
                rows += 1;
                let row: &[u8] = if wrong_row == Some(rows) { b"a\tb\n" } else { b"a\n" };
                frontend::write_copy_data(&mut out, row);
            }
            tag => put(&mut out, tag, |out| out.extend_from_slice(&message.body)),
        }
    }
    out
}

/// The row that a COPY of this text does not understand.
fn wrong(text: &[u8]) -> Option<u32> {
    let lines = parse(text)?;
    lines.iter().find_map(|line| match line {
        Line::Client(statement) => match statement.verb {
            Verb::CopyIn { fails_at } => fails_at,
            _ => None,
        },
        _ => None,
    })
}

/// A text that the language does not know stays what it is: PostgreSQL does not know it either.
fn sql(text: &[u8]) -> String {
    let Some(lines) = parse(text) else {
        return String::from_utf8_lossy(text).into_owned();
    };
    let statements = lines.iter().map(|line| match line {
        Line::Client(statement) => {
            let tag = statement.tag;
            let row = row_lock(text, &statement.verb, tag);
            format!("/*{tag}*/ {}", row.unwrap_or_else(|| of_verb(&statement.verb, tag)))
        }
        other => panic!("{other:?} is none of a client's"),
    });
    statements.collect::<Vec<_>>().join("; ")
}

/// What takes a lock takes that of a row, where its text reads or changes one.
fn row_lock(text: &[u8], verb: &Verb, tag: Tag) -> Option<String> {
    let Verb::Lock { key, session: false } = verb else { return None };
    let text = std::str::from_utf8(text).ok()?;
    let row = format!("client = {} AND key = {key}", tag.client);
    let statement = if text.contains(&format!("select {tag} lock {key} for update")) {
        format!("PERFORM FROM locked WHERE {row} FOR UPDATE")
    } else if text.contains(&format!("update {tag} lock {key}")) {
        format!("UPDATE locked SET key = key WHERE {row}")
    } else {
        return None;
    };
    Some(format!("DO $$ BEGIN {statement}; END $$"))
}

fn of_verb(verb: &Verb, tag: Tag) -> String {
    let block = |code: &str| format!("DO $$ BEGIN {code}; END $$");
    let call = |function: &str| format!("DO $$ BEGIN PERFORM {function}; END $$");
    let Tag { client, number } = tag;
    match verb {
        // What reads it waits for nobody who changes it, and those wait for each other.
        Verb::Alter => format!(
            "DO $$ BEGIN DROP FUNCTION shaped(int); CREATE FUNCTION shaped(int) RETURNS TABLE \
             ({tag} int) LANGUAGE sql STABLE AS 'SELECT generate_series(1, $1)'; END $$"
        ),
        Verb::Begin => "BEGIN".to_owned(),
        Verb::Big(bytes) => format!("SELECT repeat('b', {bytes})"),
        Verb::Chain => "ROLLBACK AND CHAIN".to_owned(),
        Verb::Commit => "COMMIT".to_owned(),
        Verb::Create => format!("CREATE VIEW thing_{client}_{number} AS SELECT 1"),
        Verb::CopyIn { fails_at: Some(0) } => "COPY refused FROM STDIN".to_owned(),
        Verb::CopyIn { .. } => "COPY copied FROM STDIN".to_owned(),
        Verb::CopyOut(rows) => format!("COPY (SELECT generate_series(1, {rows})) TO STDOUT"),
        Verb::Deallocate { name } => format!("DEALLOCATE {name}"),
        Verb::Declare { name } => {
            format!("DECLARE {name} CURSOR WITH HOLD FOR SELECT generate_series(1, 100)")
        }
        Verb::Defer => "INSERT INTO deferred VALUES (1)".to_owned(),
        Verb::Discard(kind) => format!("DISCARD {}", kind.name()),
        Verb::Execute { name } => format!("EXECUTE {name}"),
        Verb::Fail => block("RAISE division_by_zero"),
        Verb::Fetch { name } => format!("FETCH {name}"),
        Verb::Fill => block("RAISE disk_full"),
        Verb::Keep(keep) => match keep {
            Keep::Backup => call("pg_backup_start('kept', true)"),
            Keep::Connection => call("dblink_connect('kept', 'dbname=postgres')"),
            Keep::Library => "LOAD 'plpgsql'".to_owned(),
            Keep::Seed => call("setseed(0.5)"),
            Keep::Slot => {
                call("pg_create_physical_replication_slot('kept' || pg_backend_pid(), false, true)")
            }
            Keep::Text => call("query_to_xml('SELECT 1', false, false, '')"),
        },
        Verb::Listen { channel } => format!("LISTEN {channel}"),
        Verb::Lock { key, session: true } => call(&format!("pg_advisory_lock({client}, {key})")),
        Verb::Lock { key, session: false } => {
            call(&format!("pg_advisory_xact_lock({client}, {key})"))
        }
        Verb::Notice(count) => {
            block(&format!("FOR i IN 1..{count} LOOP RAISE NOTICE 'said'; END LOOP"))
        }
        Verb::Notify { channel } => format!("NOTIFY {channel}, '{tag}'"),
        Verb::Prepare { name, rows: Some(rows) } => {
            format!("PREPARE {name} AS SELECT generate_series(1, {rows})")
        }
        Verb::Prepare { name, rows: None } => {
            format!("PREPARE {name} AS INSERT INTO written VALUES ({client}, {number})")
        }
        Verb::Release { name } => format!("RELEASE {name}"),
        Verb::Reset { name } => format!("RESET {}", name.as_deref().unwrap_or("ALL")),
        Verb::Rollback => "ROLLBACK".to_owned(),
        Verb::RollbackTo { name } => format!("ROLLBACK TO {name}"),
        Verb::Rows(rows) => format!("SELECT generate_series(1, {rows})"),
        Verb::Savepoint { name } => format!("SAVEPOINT {name}"),
        Verb::Sequence => call("nextval('counted')"),
        Verb::LastValue => {
            block("PERFORM lastval(); EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL")
        }
        Verb::Set { name, value, local } => {
            format!("SET {} {name} TO '{value}'", if *local { "LOCAL" } else { "SESSION" })
        }
        Verb::Shaped(rows) => format!("SELECT * FROM shaped({rows})"),
        Verb::Show { name } => format!("SHOW {name}"),
        Verb::Sleep(ms) => call(&format!("pg_sleep({ms} / 1000.0)")),
        Verb::Temp => "CREATE TEMP TABLE kept ()".to_owned(),
        Verb::Unlisten { channel } => format!("UNLISTEN {}", channel.as_deref().unwrap_or("*")),
        Verb::Unlock { key } => call(&format!("pg_advisory_unlock({client}, {key})")),
        Verb::Write => format!("INSERT INTO written VALUES ({client}, {number})"),
    }
}

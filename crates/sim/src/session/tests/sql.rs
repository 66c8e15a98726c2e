//! The made-up language in SQL, so that a script for the fake can be put to PostgreSQL too.

use pgweir_wire::frontend::{self, Parse};

use crate::language::{self, Line, Verb};
use crate::session::{Message, put};

/// What the statements need.
pub(super) const TABLES: &str = "
    CREATE TABLE written (a int);
    CREATE TABLE deferred (a int UNIQUE DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO deferred VALUES (1);
    CREATE TABLE copied (a text);
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
    CREATE TABLE refused (a text);
    CREATE TRIGGER refuse BEFORE INSERT ON refused EXECUTE FUNCTION refuse();";

/// Messages of a frontend, with SQL in place of the made-up language.
pub(super) fn translate(messages: &[u8]) -> Vec<u8> {
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
                frontend::write_parse(&mut out, parse.name, sql(parse.text).as_bytes(), &[25]);
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
    let lines = language::parse(text)?;
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
    let Some(lines) = language::parse(text) else {
        return String::from_utf8_lossy(text).into_owned();
    };
    let statements = lines.iter().map(|line| match line {
        Line::Client(statement) => of_verb(&statement.verb),
        other => panic!("{other:?} is none of a client's"),
    });
    statements.collect::<Vec<_>>().join("; ")
}

fn of_verb(verb: &Verb) -> String {
    let block = |code: &str| format!("DO $$ BEGIN {code}; END $$");
    match verb {
        Verb::Begin => "BEGIN".to_owned(),
        Verb::Big(bytes) => format!("SELECT repeat('b', {bytes})"),
        Verb::Chain => "ROLLBACK AND CHAIN".to_owned(),
        Verb::Commit => "COMMIT".to_owned(),
        Verb::CopyIn { fails_at: Some(0) } => "COPY refused FROM STDIN".to_owned(),
        Verb::CopyIn { .. } => "COPY copied FROM STDIN".to_owned(),
        Verb::CopyOut(rows) => format!("COPY (SELECT generate_series(1, {rows})) TO STDOUT"),
        Verb::Defer => "INSERT INTO deferred VALUES (1)".to_owned(),
        Verb::Fail => block("RAISE division_by_zero"),
        Verb::Fill => block("RAISE disk_full"),
        Verb::Listen => "LISTEN channel".to_owned(),
        Verb::Load => "LOAD 'plpgsql'".to_owned(),
        Verb::Notice(count) => {
            block(&format!("FOR i IN 1..{count} LOOP RAISE NOTICE 'said'; END LOOP"))
        }
        Verb::Notify => "NOTIFY channel".to_owned(),
        Verb::Rollback => "ROLLBACK".to_owned(),
        Verb::Rows(rows) => format!("SELECT generate_series(1, {rows})"),
        Verb::Set { name, value } => format!("SET {name} TO '{value}'"),
        Verb::Show { name } => format!("SHOW {name}"),
        Verb::Sleep(ms) => block(&format!("PERFORM pg_sleep({ms} / 1000.0)")),
        Verb::Temp => "CREATE TEMP TABLE kept ()".to_owned(),
        Verb::Write => "INSERT INTO written VALUES (1)".to_owned(),
    }
}

//! Statements that are prepared once and run on one server after the other.

use pgweir_testkit::frames::{
    bind, bind_with_formats, close_statement, describe_statement, execute, parse, query,
};

use pgweir_testkit::{Script, assert_same_transcript};

use super::{POOLER, batch, in_turn, login, part, pipeline, same_units};
use crate::stage::{self, CLUSTER};

/// Runs what was prepared.
fn run(name: &str, values: &[Option<&str>]) -> Vec<u8> {
    batch(&[bind("", name, values), execute("", 0)])
}

/// A statement is made, and described.
fn prepare(name: &str, text: &str) -> Vec<u8> {
    batch(&[parse(name, text, &[]), describe_statement(name)])
}

/// PostgreSQL warns of a text when it reads it, and reads it once.
#[test]
fn warnings_come_once() {
    let text = r"SELECT 'a\\b', $1::int";
    for name in ["", "s"] {
        let mut units = vec![
            query("SET standard_conforming_strings = off; SET escape_string_warning = on"),
            prepare(name, text),
        ];
        units.extend((0..4).map(|_| run(name, &[Some("1")])));
        units.extend([
            batch(&[close_statement(name), parse(name, text, &[])]),
            run(name, &[Some("2")]),
            query("RESET ALL"),
        ]);
        same_units(&units);
    }
}

/// What a client was told of its parameters holds, whatever a new reading would take them for.
#[test]
fn parameters_whose_columns_change() {
    let value = 1_i32.to_be_bytes();
    let sends = |name: &str| {
        batch(&[bind_with_formats("", name, &[1], &[Some(&value)], &[0]), execute("", 0)])
    };
    let update = "UPDATE typed SET b = 'it' WHERE a = $1";
    let returning = format!("{update} RETURNING b || ''");
    for kind in ["int8", "float4", "numeric", "text", "int2"] {
        let changes = query(&format!("ALTER TABLE typed ALTER a TYPE {kind}"));
        let units = [
            query(
                "CREATE TABLE typed (a int, b text); INSERT INTO typed VALUES (1, 'x'), (2, 'y')",
            ),
            prepare("s", update),
            prepare("r", &returning),
            sends("s"),
            sends("r"),
            changes,
            sends("s"),
            sends("r"),
            sends("s"),
            batch(&[describe_statement("r")]),
            sends("r"),
            // What is prepared now is another, though its text is the same.
            prepare("n", update),
            run("n", &[Some("2")]),
            sends("s"),
            run("n", &[Some("2")]),
            batch(&[close_statement("s"), part("SELECT 'between'")]),
            prepare("s", update),
            run("s", &[Some("1")]),
            query("DEALLOCATE ALL; DROP TABLE typed"),
        ];
        same_units(&units);
    }
}

/// The units in turn and in one pipeline, where errors may be pgweir's own, and have no place in
/// PostgreSQL's source.
#[track_caller]
fn same_but_for_places(units: &[Vec<u8>]) {
    let placeless = |transcript: Vec<String>| -> Vec<String> {
        let cut = |mut line: String| {
            let place = line.find(" F=\"").or_else(|| line.find(" R=\""));
            line.truncate(place.unwrap_or(line.len()));
            line
        };
        transcript.into_iter().map(cut).collect()
    };
    let login = || Script::new(login());
    for script in [in_turn(login(), units), pipeline(login(), units)] {
        let pooler = POOLER.address();
        let direct = placeless(script.run(CLUSTER.address()));
        assert_same_transcript(&direct, &placeless(script.run(pooler)));
        stage::assert_sound(&POOLER);
    }
}

/// Whoever asks about a statement whose rows have changed is told of its parameters, and then that
/// it cannot be used.
#[test]
fn descriptions_of_rows_that_have_changed() {
    let by_itself = |text: &str| batch(&[part(text)]);
    let named = |text: &str| {
        batch(&[
            parse("ddl", text, &[]),
            bind("", "ddl", &[]),
            execute("", 0),
            close_statement("ddl"),
        ])
    };
    for (table, name) in [("changing_named", "s"), ("changing_unnamed", "")] {
        let text = format!("SELECT coalesce(a, a) AS a FROM {table} WHERE b = $1");
        // The unnamed statement lasts until the next Query, or Parse of it.
        let alter = |kind: &str| {
            let text = format!("ALTER TABLE {table} ALTER a TYPE {kind}");
            if name.is_empty() { named(&text) } else { by_itself(&text) }
        };
        let describe = || batch(&[describe_statement(name)]);
        let run = || run(name, &[Some("x")]);
        let units = [
            query(&format!(
                "CREATE TABLE {table} (a int, b text); INSERT INTO {table} VALUES (1, 'x')"
            )),
            prepare(name, &text),
            run(),
            describe(),
            alter("bigint"),
            describe(),
            describe(),
            run(),
            describe(),
            run(),
            batch(&[describe_statement(name), bind("", name, &[Some("x")])]),
            batch(&[bind("", name, &[Some("x")]), describe_statement(name)]),
            alter("int"),
            describe(),
            run(),
            alter("text"),
            batch(&[parse("begin", "BEGIN", &[]), bind("", "begin", &[]), execute("", 0)]),
            describe(),
            describe(),
            batch(&[parse("end", "ROLLBACK", &[]), bind("", "end", &[]), execute("", 0)]),
            describe(),
            prepare(if name.is_empty() { "" } else { "again" }, &text),
            query(&format!("DROP TABLE {table}")),
        ];
        same_but_for_places(&units);
    }
}

/// A Close behind it, which an error has kept from being done, leaves nothing either.
#[test]
fn what_is_deallocated_is_gone_whatever_fails_behind_it() {
    let run_text = |text: &str| [parse("", text, &[]), bind("", "", &[]), execute("", 0)].concat();
    for gone in ["DISCARD ALL", "DEALLOCATE ALL", "DEALLOCATE s"] {
        let fails = [run_text("SELECT 1 / 0"), close_statement("s")].concat();
        let within = batch(&[run_text(gone), fails.clone()]);
        for removes in [vec![within], vec![query(gone), batch(&[fails])]] {
            let mut units = vec![prepare("s", "SELECT 'kept'"), run("s", &[])];
            units.extend(removes);
            units.extend([run("s", &[]), prepare("s", "SELECT 'new'"), run("s", &[])]);
            same_units(&units);
        }
    }
}

/// What is prepared behind it, in the same batch, is there.
#[test]
fn what_is_prepared_behind_its_removal_stays() {
    let run_text = |text: &str| [parse("", text, &[]), bind("", "", &[]), execute("", 0)].concat();
    for gone in ["DISCARD ALL", "DEALLOCATE ALL"] {
        for before in [vec![], vec![prepare("s", "SELECT 'old'"), prepare("t", "SELECT 'gone'")]] {
            let within = batch(&[run_text(gone), parse("s", "SELECT 'new'", &[])]);
            let closes =
                batch(&[run_text(gone), parse("s", "SELECT 'newer'", &[]), close_statement("s")]);
            let mut units = before;
            units.extend([within, run("s", &[]), run("t", &[]), closes, run("s", &[])]);
            same_units(&units);
        }
    }
}

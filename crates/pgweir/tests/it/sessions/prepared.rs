//! Statements that are prepared once and run on one server after the other.

use pgweir_testkit::frames::{
    bind, bind_with_formats, close_statement, describe_statement, execute, parse, query,
};

use super::{batch, part, same_units};

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

use super::*;

fn name(text: &str) -> Option<String> {
    match deallocated(text.as_bytes())? {
        Deallocated::All => Some("all of them".to_owned()),
        Deallocated::One(name) => Some(String::from_utf8_lossy(name.as_bytes()).into_owned()),
    }
}

#[test]
fn a_name_is_read_as_postgresql_reads_it() {
    for (text, expected) in [
        ("DEALLOCATE pdo_stmt_00000001", "pdo_stmt_00000001"),
        ("deallocate Prepare _PG3_0 ;", "_pg3_0"),
        ("/* x */ ; DEALLOCATE\n\"A \"\"b\" -- y", "A \"b"),
        ("DEALLOCATE \"all\"", "all"),
        ("DEALLOCATE ALL;", "all of them"),
        ("deallocate prepare all", "all of them"),
        ("Discard all", "all of them"),
    ] {
        assert_eq!(name(text).as_deref(), Some(expected), "{text}");
    }
}

/// A name is cut off where PostgreSQL cuts it.
#[test]
fn a_long_name_is_cut_off() {
    let long = "x".repeat(NAME_BYTES + 7);
    assert_eq!(name(&format!("DEALLOCATE {long}")), Some("x".repeat(NAME_BYTES)));
    // Between two characters, of an encoding that is not known here.
    assert_eq!(name(&format!("DEALLOCATE \"{}\"", "\u{e4}".repeat(32))), None);
}

#[test]
fn what_is_more_or_unclear_is_left_alone() {
    for text in [
        "",
        "DEALLOCATE",
        "DEALLOCATE a; SELECT 1",
        "SELECT 1; DEALLOCATE a",
        "DEALLOCATE a b",
        "DEALLOCATE U&\"a\"",
        "DEALLOCATE é",
        "DEALLOCATE 'a'",
        "DISCARD PLANS",
        "DISCARD \"all\"",
        "EXECUTE a",
        "PREPARE a AS SELECT 1",
    ] {
        assert_eq!(name(text), None, "{text}");
    }
}

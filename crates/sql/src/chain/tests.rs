use super::{begins, chains, exits, rolls_back};

#[test]
fn the_first_statement_is_read() {
    for text in [
        "ROLLBACK AND CHAIN",
        "commit and chain;",
        "END TRANSACTION AND CHAIN",
        "abort work and chain; select 1",
        ";; /* a /* b */ */ Rollback -- c\n and/**/chain",
    ] {
        assert_eq!(chains(text.as_bytes(), true), Some(true), "{text}");
    }
    for text in [
        "",
        "ROLLBACK",
        "ROLLBACK AND NO CHAIN",
        "ROLLBACK TO chain",
        "rollback; begin; rollback and chain",
        "SELECT 1; ROLLBACK AND CHAIN",
        "rollback \"and\" chain",
        "rollback 'and' chain",
        "'\\' and chain",
        "commit prepared 'x'",
        "/* rollback and chain",
    ] {
        assert_eq!(chains(text.as_bytes(), true), Some(false), "{text}");
    }
}

/// Whatever may follow, nothing is said that it could change.
#[test]
fn a_text_that_goes_on_is_not_judged_too_early() {
    let text = b"/* why */ ROLLBACK AND CHAIN ";
    for length in 0..text.len() {
        assert_eq!(chains(&text[..length], false), None, "{length}");
    }
    assert_eq!(chains(text, false), Some(true));
    assert_eq!(chains(b"SELECT ", false), Some(false));
    assert_eq!(chains(b"INSERT INTO t VALUES ('x", false), Some(false));
}

#[test]
fn a_rollback_of_the_whole_transaction_is_told_from_others() {
    for text in [
        "ROLLBACK",
        " -- why\n rollback work",
        "Abort transaction;",
        "rollback and no chain",
        ";rollback; insert into t values ('\\')",
        "rollback; commit and chain",
    ] {
        assert!(rolls_back(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "roll",
        "COMMIT",
        "COMMIT; ROLLBACK",
        "SELECT 'rollback'",
        "ROLLBACK TO work",
        "rollback work to savepoint a",
        "ROLLBACK PREPARED 'x'",
        "ROLLBACK AND/**/CHAIN",
        "rollback and no",
        "rollback \"work\"",
        "/* rollback",
    ] {
        assert!(!rolls_back(text.as_bytes()), "{text}");
    }
}

#[test]
fn a_statement_that_begins_a_transaction_is_found() {
    for text in [
        "BEGIN",
        " -- why\n begin isolation level serializable",
        "Start Transaction read only;",
        "SELECT 1; /* now */ BEGIN",
        "COMMIT;begin",
        // It depends on a setting where the literal ends.
        "SELECT '\\'; BEGIN; SELECT '",
    ] {
        assert!(begins(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "COMMIT",
        "SELECT 'begin'",
        "SELECT begin FROM t",
        "\"begin\"",
        "/* begin",
        "SELECT $$; BEGIN; $$",
    ] {
        assert!(!begins(text.as_bytes()), "{text}");
    }
}

#[test]
fn what_a_failed_transaction_takes() {
    for text in [
        "rollback",
        " ;; /* */ ROLLBACK TO a; select 1",
        "End",
        "abort; select 'a\\'",
        "commit",
        "prepare transaction 'x'",
    ] {
        assert!(exits(text.as_bytes()), "{text}");
    }
    for text in ["", ";", "select 1; rollback", "\"rollback\"", "'rollback'", "rollbacks", "begin"]
    {
        assert!(!exits(text.as_bytes()), "{text}");
    }
}

//! `docs/errors.md` is what the table of errors says. `make docs` writes it.

use std::path::Path;

use pgweir_engine::ERRORS;

#[test]
fn the_page_of_errors_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let text = pgweir_engine::errors_page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("the folder is there");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/errors.md is out of date: `make docs` writes it");
}

/// Drivers take 57014 for a cancel, or for a statement_timeout, of which PostgreSQL itself tells.
#[test]
fn what_is_called_cancelled_was_cancelled() {
    let named = ERRORS.iter().filter(|error| error.code.to_string() == "57014");
    let messages: Vec<_> = named.map(|error| error.message).collect();
    assert_eq!(messages, ["canceling statement due to user request"]);
}

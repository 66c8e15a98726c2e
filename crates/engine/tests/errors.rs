//! `docs/errors.md` is what the table of errors says. `make docs` writes it.

use std::path::Path;

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

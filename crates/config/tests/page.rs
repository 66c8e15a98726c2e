//! `docs/settings.md` and `docs/pgweir.schema.json` are what the table of settings says.
//! `make docs` writes them.

use std::path::Path;

#[test]
fn the_page_of_settings_is_up_to_date() {
    check("settings.md", &pgweir_config::settings_page());
}

#[test]
fn the_schema_of_settings_is_up_to_date() {
    check("pgweir.schema.json", &pgweir_config::settings_schema());
}

fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect("the folder is there");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/{name} is out of date: `make docs` writes it");
}

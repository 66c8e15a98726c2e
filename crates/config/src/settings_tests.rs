//! The table of settings against itself and against the parser: no row that lies.

use std::collections::BTreeSet;
use std::path::Path;

use crate::setting::{Changes, Dialect, Effect, Fallback, Flat, Kind, Section, Setting, Unit};
use crate::settings::SETTINGS;
use crate::types::Config;
use crate::value::Value;

#[test]
fn names_are_unique_within_a_section() {
    let names: BTreeSet<_> = SETTINGS.iter().map(|row| (row.section, row.name)).collect();
    assert_eq!(names.len(), SETTINGS.len());
}

#[test]
fn docs_are_sentences() {
    for row in SETTINGS {
        let first = row.doc.chars().next().expect("a doc is not empty");
        assert!(!first.is_lowercase() && row.doc.ends_with('.'), "{}: {}", row.name, row.doc);
    }
}

#[test]
fn fallbacks_fit_their_kind() {
    let dialects = [Dialect::Own, Dialect::Pgcat];
    let rows = dialects.iter().flat_map(|dialect| SETTINGS.iter().map(move |row| (*dialect, row)));
    for (dialect, row) in rows {
        match row.fallback(dialect) {
            Fallback::Absent | Fallback::Required => {}
            Fallback::Outer => {
                let outer = [Section::Pool, Section::General].into_iter();
                let found = outer
                    .filter(|section| *section < row.section)
                    .any(|section| Setting::find(dialect, section, row.name).is_some());
                assert!(found, "{}: no outer section has it", row.name);
            }
            Fallback::Same(other) => {
                let other = Setting::find(dialect, row.section, other);
                let other = other.expect("the other setting exists");
                let same = std::mem::discriminant(&other.kind);
                assert_eq!(std::mem::discriminant(&row.kind), same, "{}", row.name);
            }
            Fallback::Text(text) => {
                let value = Value::from_text(row.kind, row.pgcat.unit, text);
                assert!(value.is_ok(), "{}: {value:?}", row.name);
            }
        }
        if let Effect::NotYet { unless: Some(text), .. } = row.effect {
            let value = Value::from_text(row.kind, row.pgcat.unit, text);
            assert!(value.is_ok(), "{}: {value:?}", row.name);
        }
    }
}

#[test]
fn only_threads_take_a_restart() {
    let at_start = SETTINGS.iter().filter(|row| row.changes == Changes::AtStart);
    assert_eq!(at_start.map(|row| row.name).collect::<Vec<_>>(), ["worker_threads"]);
}

/// A change is read without its section.
#[test]
fn what_is_changed_at_once_is_the_same_everywhere() {
    let live: Vec<_> = SETTINGS.iter().filter(|row| row.changes == Changes::Live).collect();
    for row in &live {
        let namesakes = SETTINGS.iter().filter(|other| other.name == row.name);
        for other in namesakes {
            assert_eq!((other.kind, other.pgcat.unit), (row.kind, row.pgcat.unit), "{}", row.name);
            assert_eq!((other.changes, other.flat), (row.changes, row.flat), "{}", row.name);
        }
        assert_eq!((row.effect, row.flat), (Effect::Now, Flat::Same), "{}", row.name);
    }
    assert_eq!(live.len(), 3);
}

#[test]
fn what_takes_a_restart_says_so() {
    let page = crate::settings_page();
    let line = |name: &str| page.lines().find(|line| line.starts_with(&format!("| `{name}`")));
    let schema = crate::settings_schema();
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("it is JSON");
    let general = &schema["properties"]["general"]["properties"];
    for row in Setting::all(Dialect::Own, Section::General) {
        let says = |text: &str| text.contains("A change takes a restart.");
        let line = line(row.name).expect("it is on the page");
        let description = general[row.name]["description"].as_str().expect("it is described");
        let expected = row.changes == Changes::AtStart;
        assert_eq!((says(line), says(description)), (expected, expected), "{}", row.name);
    }
}

#[test]
fn only_times_and_sizes_have_a_unit() {
    for row in SETTINGS {
        let has_unit = row.pgcat.unit != Unit::One;
        let is_time = matches!(row.kind, Kind::Time(..) | Kind::Period(_));
        assert_eq!(is_time || row.kind == Kind::Size, has_unit, "{}", row.name);
        assert_eq!(row.kind == Kind::Size, row.pgcat.unit == Unit::Bytes, "{}", row.name);
        // One that counts bytes or time and has no unit would be taken for a bare number.
        let words: Vec<_> = row.doc.split(' ').collect();
        let counts = ["bytes.", "milliseconds.", "seconds."].iter().any(|it| words.contains(it));
        assert!(has_unit || !counts, "{}", row.name);
    }
}

/// A setting that is said to have an effect changes the result; any other changes nothing and is
/// warned of in its line.
#[test]
fn effects_are_as_the_table_says() {
    // One lifts a refusal, one decides how all the others are read, one needs another beside it:
    // `tests.rs` looks at each.
    let without_own_trace = ["allow_trust_anywhere", "config_version", "prometheus_exporter_port"];
    let plain = parse(&file(Section::General, ""));
    for row in SETTINGS.iter().filter(|row| !without_own_trace.contains(&row.name)) {
        let Some(value) = unusual(row.kind) else { continue };
        let mut config = parse(&file(row.section, &format!("{} = {value}", row.name)));
        let warnings: Vec<_> =
            config.warnings.drain(..).map(|warning| warning.to_string()).collect();
        if row.effect == Effect::Now {
            assert_ne!(config, plain, "{:?}.{} changes nothing", row.section, row.name);
            assert_eq!(warnings, [""; 0], "{:?}.{}", row.section, row.name);
        } else {
            assert_eq!(config, plain, "{:?}.{} changes something", row.section, row.name);
            let [warning] = &warnings[..] else { panic!("{}: {warnings:?}", row.name) };
            assert!(warning.contains(&format!("{}: has no effect", row.name)), "{warning}");
        }
    }
}

/// A value that is neither the default nor what happens anyway.
fn unusual(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Any => Some("[1, 'two', { three = 3 }]"),
        Kind::Flag => None,
        Kind::Host => Some("'127.0.0.9'"),
        Kind::Integer(..) => Some("7"),
        Kind::Mode => Some("'0700'"),
        Kind::Name | Kind::Secret | Kind::Sql | Kind::Text => Some("'other'"),
        Kind::SocketFolder => Some("'/other'"),
        Kind::Servers => Some("[['other', 1, 'replica']]"),
        Kind::Time(..) | Kind::Period(_) | Kind::Size => Some("1234"),
        Kind::Share => Some("'off'"),
        Kind::Pipelining => Some("'3x8'"),
        Kind::Words(_) => Some("'listen'"),
        Kind::Word(words) if words.contains(&"session") => Some("'session'"),
        Kind::Word(words) if words.contains(&"password") => Some("'password'"),
        Kind::Word(words) if words.contains(&"debug") => Some("'debug'"),
        Kind::Word(words) if words.contains(&"json") => Some("'json'"),
        Kind::Word(words) if words.contains(&"sha1") => Some("'sha1'"),
        Kind::Word(words) if words.contains(&"replica") => Some("'replica'"),
        Kind::Word(words) if words.contains(&"loc") => Some("'loc'"),
        Kind::Word(words) if words.contains(&"never_same") => Some("'never_same'"),
        Kind::Word(words) if words.contains(&"reset") => Some("'reset'"),
        Kind::Word(words) if words.contains(&"always") => Some("'pool'"),
        Kind::Word(words) if words.contains(&"none") => Some("'pin'"),
        Kind::Word(words) => panic!("a new set of words: {words:?}"),
        Kind::Section(_) | Kind::Sections(_) | Kind::SectionsByNumber(_) => None,
    }
}

#[test]
fn flags_have_the_effect_that_the_table_says() {
    let flags = SETTINGS.iter().filter(|row| row.kind == Kind::Flag);
    for row in flags.filter(|row| row.name != "allow_trust_anywhere") {
        let [(off, off_warns), (on, on_warns)] = ["false", "true"].map(|value| {
            let mut config = parse(&file(row.section, &format!("{} = {value}", row.name)));
            let warns = !std::mem::take(&mut config.warnings).is_empty();
            (config, warns)
        });
        let now = row.effect == Effect::Now;
        assert_eq!(off != on, now, "{}", row.name);
        assert_eq!(off_warns || on_warns, !now, "{}", row.name);
    }
}

/// A whole file with `line` in `section`, in place of what that setting says otherwise.
fn file(section: Section, line: &str) -> String {
    let name = line.split(' ').next().unwrap_or_default();
    let lines = [
        (Section::General, "[general]"),
        (Section::General, "host = '127.0.0.1'"),
        (Section::General, "query_wait_timeout = 30000"),
        (Section::General, "admin_username = 'admin'"),
        (Section::General, "admin_password = 'secret'"),
        (Section::Pool, "[pools.app]"),
        (Section::User, "[pools.app.users.0]"),
        (Section::User, "username = 'alice'"),
        (Section::User, "password = 'secret'"),
        (Section::User, "server_username = 'bob'"),
        (Section::User, "server_password = 'secret'"),
        (Section::Shard, "[pools.app.shards.0]"),
        (Section::Shard, "servers = [['127.0.0.1', 5432, 'primary']]"),
        (Section::Shard, "database = 'app'"),
    ];
    let mut text = if section == Section::Root { format!("{line}\n") } else { String::new() };
    for (place, default) in lines {
        let replaced = place == section && default.starts_with(&format!("{name} ="));
        text += if replaced { "" } else { default };
        text += "\n";
        if place == section && default.starts_with('[') {
            text += &format!("{line}\n");
        }
    }
    text
}

fn parse(text: &str) -> Config {
    Config::parse(text, Path::new("test.toml")).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

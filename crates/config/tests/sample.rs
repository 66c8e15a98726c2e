//! The file that users start from, `config/pgweir.toml`, says what is true, and so does the one in
//! the README.

use std::path::Path;

use pgweir_config::{Config, Effect, SETTINGS, Section};

const SAMPLE: &str = include_str!("../../../config/pgweir.toml");
const README: &str = include_str!("../../../README.md");

#[test]
fn it_is_read_without_a_word() {
    assert_eq!(parse(SAMPLE).warnings, []);
}

#[test]
fn the_first_configuration_of_the_readme_is_read_without_a_word() {
    let (_, behind) = README.split_once("\n```toml\n").expect("it shows one");
    let (first, _) = behind.split_once("\n```\n").expect("it has an end");
    let config = parse(first);
    assert_eq!((config.warnings, config.pools.len()), (vec![], 1));
}

/// What is shown commented out is its default: to uncomment it changes nothing, and is known.
#[test]
fn what_is_commented_out_is_the_default() {
    // Without them there is no limit, or as many as there are file descriptors for: no number says
    // that. The group of the process: no name does. A folder that is asked for must be there, the
    // default need not.
    let without_default = [
        "max_clients",
        "max_db_client_connections",
        "max_user_client_connections",
        "max_server_connections",
        "max_db_connections",
        "max_user_connections",
        "unix_socket_group",
        "unix_socket_dir",
        "worker_threads",
    ];
    let plain = parse(SAMPLE);
    let mut shown = 0;
    for (n, line) in SAMPLE.lines().enumerate() {
        let Some(setting) = line.strip_prefix("# ").filter(|line| key(line).is_some()) else {
            continue;
        };
        let mut lines: Vec<_> = SAMPLE.lines().collect();
        lines[n] = setting;
        let config = parse(&lines.join("\n"));
        if without_default.iter().any(|name| key(setting) == Some(name)) {
            assert_eq!(config.warnings, [], "{setting}");
            assert_ne!(config, plain, "{setting}");
        } else {
            assert_eq!(config, plain, "{setting}");
        }
        shown += 1;
    }
    assert!(shown > 20, "{shown} settings are commented out");
}

#[test]
fn every_setting_with_an_effect_is_shown() {
    let header = |line: &str| line.strip_prefix('[').map(str::to_owned);
    let headers: Vec<_> = SAMPLE.lines().filter_map(header).collect();
    let keys: Vec<_> =
        SAMPLE.lines().filter_map(|line| key(line.strip_prefix("# ").unwrap_or(line))).collect();
    let is_ours = |section| section != Section::FlatRoot;
    let in_effect = SETTINGS.iter().filter(|setting| setting.effect == Effect::Now);
    for setting in in_effect.filter(|setting| is_ours(setting.section)) {
        let is_section = headers.iter().any(|header| header.contains(setting.name));
        assert!(is_section || keys.contains(&setting.name), "{}", setting.name);
    }
}

/// The key of a line that sets something.
fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(" = ")?;
    key.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()).then_some(key)
}

fn parse(text: &str) -> Config {
    Config::parse(text, Path::new("pgweir.toml")).unwrap_or_else(|errors| panic!("{errors}"))
}

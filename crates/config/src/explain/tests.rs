use std::path::Path;

use crate::tests::{SCRAM, SMALL};
use crate::{Config, Explained};

#[track_caller]
fn explain(text: &str) -> Vec<Explained> {
    let explained = Config::parse_explained(text, Path::new("f.toml"));
    explained.unwrap_or_else(|errors| panic!("{errors}")).1
}

/// What is printed of a key, and the line.
#[track_caller]
fn told(explained: &[Explained], key: &str) -> (String, Option<usize>) {
    let one = explained.iter().find(|one| one.key == key).expect(key);
    (one.to_string().split_off(key.len()).trim_start().to_owned(), one.line)
}

#[test]
fn what_holds_comes_from_the_nearest_section() {
    let text = format!("[general]\nidle_timeout = 90000\n{SMALL}");
    let text = text.replace("[pools.app.shards.0]", "pool_size = 3\n[pools.app.shards.0]");
    let explained = explain(&text);
    let find = |key: &str| {
        let found = explained.iter().find(|one| one.key == key);
        let one = found.unwrap_or_else(|| panic!("{key} is not explained"));
        (one.to_string().split_off(key.len()), one.line)
    };
    assert_eq!(find("general.idle_timeout"), (" = \"90s\"".to_owned(), Some(2)));
    assert_eq!(find("pools.app.users.0.idle_timeout"), (" = \"90s\"".to_owned(), Some(2)));
    assert_eq!(find("pools.app.users.0.pool_size"), (" = 3".to_owned(), Some(7)));
    assert_eq!(find("pools.app.users.0.server_username"), (" = \"alice\"".to_owned(), Some(5)));
    assert_eq!(find("pools.app.users.0.password"), (" = (a secret)".to_owned(), Some(6)));
    assert_eq!(find("general.connect_timeout"), (" = \"5s\"".to_owned(), None));
    assert_eq!(find("general.max_clients"), (" is not set".to_owned(), None));
    let servers = " = [[\"10.0.0.1\", 5432, \"primary\"]]".to_owned();
    assert_eq!(find("pools.app.shards.0.servers"), (servers, Some(9)));

    let default = |key: &str| {
        let one = explained.iter().find(|one| one.key == key).expect("it is explained");
        one.default.as_deref()
    };
    assert_eq!(default("general.idle_timeout"), Some("\"10min\""));
    assert_eq!(default("pools.app.users.0.idle_timeout"), Some("\"10min\""));
    assert_eq!(default("pools.app.users.0.pool_size"), Some("15"));
    assert_eq!(default("general.query_wait_timeout"), Some("\"5s\""), "that of connect_timeout");
    assert_eq!(default("pools.app.users.0.server_username"), None, "it is that of the file");
    assert_eq!(default("general.max_clients"), None);
}

#[test]
fn the_account_that_everybody_knows_is_shown() {
    let explained = explain(&format!("[general]\nhost = '127.0.0.1'\n{SMALL}"));
    let told = |key: &str| told(&explained, key);
    assert_eq!(told("general.admin_username"), ("= \"admin\"".to_owned(), None));
    assert_eq!(told("general.admin_password"), ("= (a secret)".to_owned(), None));
    let explained = explain(SMALL);
    let none = ("is not set".to_owned(), None);
    assert_eq!(self::told(&explained, "general.admin_username"), none);
    assert_eq!(self::told(&explained, "general.admin_password"), none);
}

#[test]
fn a_verifier_decides_the_method_and_is_no_password_for_servers() {
    let admin = format!("[general]\nadmin_username = 'root'\nadmin_password = '{SCRAM}'\n");
    let explained = explain(&format!("{admin}{}", SMALL.replace("secret", SCRAM)));
    let told = |key: &str| told(&explained, key);
    let scram = |line| ("= \"scram-sha-256\"".to_owned(), Some(line));
    assert_eq!(told("general.auth_type"), ("= \"md5\"".to_owned(), None));
    assert_eq!(told("general.admin_auth_type"), scram(3));
    assert_eq!(told("pools.app.users.0.auth_type"), scram(7));
    let none = ("is not set".to_owned(), Some(7));
    assert_eq!(told("pools.app.users.0.server_password"), none);
    assert_eq!(told("pools.app.users.0.password"), ("= (a secret)".to_owned(), Some(7)));
}

#[test]
fn a_limit_that_the_server_decides_is_shown() {
    let limit = |general: &str| {
        let explained = explain(&format!("{general}\n{SMALL}"));
        let key = "general.max_server_connections";
        let default = explained.iter().find(|one| one.key == key).expect(key).default.clone();
        (told(&explained, key), default)
    };
    let part = "(90% of what each server has room for)".to_owned();
    let own = "config_version = 1\n[general]\n";
    assert_eq!(limit(own), ((format!("= {part}"), None), Some(part.clone())));
    let set = limit(&format!("{own}max_server_connections = 7"));
    assert_eq!(set, (("= 7".to_owned(), Some(3)), Some(part)));
    let half = "(90% of what each server has room for, divided by 2)".to_owned();
    let shared = limit("[general]\ninstances = 2");
    assert_eq!(shared, ((format!("= {half}"), Some(2)), Some(half)));
    assert_eq!(limit(""), (("is not set".to_owned(), None), None));
}

/// Every key that is told can be written where it is told.
#[test]
fn the_flat_form_is_explained_with_its_own_keys() {
    let text = r#"
[general]
pool_size = 5
[user]
name = "alice"
password = "secret"
[shards.0]
servers = [["10.0.0.1", 5432, "primary"]]
database = "app_db"
"#;
    let explained = explain(text);
    let told = |key: &str| told(&explained, key);
    assert_eq!(told("general.pool_size"), ("= 5".to_owned(), Some(3)));
    assert_eq!(told("general.pool_mode"), ("= \"transaction\"".to_owned(), None));
    assert_eq!(told("user.name"), ("= \"alice\"".to_owned(), Some(5)));
    assert_eq!(told("user.server_username"), ("= \"alice\"".to_owned(), Some(5)));
    assert_eq!(told("user.pool_mode"), ("= \"transaction\"".to_owned(), None));
    assert_eq!(told("shards.0.database"), ("= \"app_db\"".to_owned(), Some(9)));
    assert_eq!(told("query_router.idle_timeout"), ("= \"10min\"".to_owned(), None));
    for one in &explained {
        let (section, name) = one.key.rsplit_once('.').expect("a section and a name");
        let header = format!("[{section}]\n");
        let with = match text.contains(&header) {
            true => text.replace(&header, &format!("{header}{name} = []\n")),
            false => format!("{text}[{section}]\n{name} = []\n"),
        };
        let errors = Config::parse(&with, Path::new("f.toml")).expect_err(&one.key).to_string();
        assert!(!errors.contains("unknown"), "{}: {errors}", one.key);
    }
}

/// What is printed of the whole process is a file of our own dialect, with the same meaning.
#[test]
fn what_is_explained_can_be_read_again() {
    let zeros = "[general]\nhost = '127.0.0.1'\nidle_timeout = 0\nautoreload = false\n\
                 tcp_user_timeout = 0\nreserve_pool_timeout = 0\nshutdown_timeout = 0\n";
    let general = |explained: &[Explained]| {
        let values = explained.iter().filter(|one| one.key.starts_with("general."));
        let is_read = |one: &&Explained| one.value.as_ref().is_some_and(|it| !it.starts_with('('));
        // A name without its password, which is not printed, is half of an account; where no folder
        // is set our own dialect has a default.
        let is_whole = |key: &str| !key.contains("admin_") && key != "general.unix_socket_dir";
        let values = values.filter(is_read).filter(|one| is_whole(&one.key));
        values.map(ToString::to_string).collect::<Vec<_>>()
    };
    for head in [zeros, "config_version = 1\n"] {
        let said = general(&explain(&format!("{head}{SMALL}")));
        assert!(said.contains(&"general.statement_timeout = \"off\"".to_owned()), "{said:?}");
        let again = format!("config_version = 1\n{}\n{SMALL}", said.join("\n"));
        assert_eq!(general(&explain(&again)), said);
    }
}

//! What the console says is there, held against what is.

use std::fs;
use std::process::Command;

use pgweir_testkit::frames::query;
use pgweir_testkit::{WireClient, eventually};

use crate::console::{Row, cell, show};
use crate::stage::{CLUSTER, PROGRAM, Stage};
use crate::usage::{MB, Memory};

/// The row of a result that says `value` in its first column.
#[track_caller]
fn named<'a>(rows: &'a [Row], value: &str) -> &'a Row {
    match rows.iter().find(|row| row[0].1 == value) {
        Some(row) => row,
        None => panic!("no {value} in {rows:?}"),
    }
}

fn number(row: &[(String, String)], column: &str) -> usize {
    cell(row, column).parse().unwrap()
}

#[test]
fn databases_and_users() {
    let stage = Stage::new("console_databases", 3);
    let [mut first, mut second] = [stage.client(), stage.client()];
    first.query("BEGIN");
    second.query("BEGIN");
    let databases = show(&stage, "DATABASES");
    let [row] = &databases[..] else { panic!("{databases:?}") };
    let text = ["name", "host", "port", "database", "force_user", "pool_mode", "paused"];
    let port = CLUSTER.port().to_string();
    let name = stage.name.as_str();
    let expected = [name, "127.0.0.1", &port, name, "", "transaction", "0"];
    assert_eq!(text.map(|column| cell(row, column)), expected);
    let numbers = ["pool_size", "server_lifetime", "current_connections", "max_connections"];
    assert_eq!(numbers.map(|column| number(row, column)), [3, 3_600, 2, 0]);
    assert_eq!(number(row, "current_client_connections"), 2, "the console is no database");

    let users = show(&stage, "USERS");
    let row = named(&users, &stage.name);
    assert_eq!((cell(row, "pool_size"), cell(row, "pool_mode")), ("3", "transaction"));
    let current = ["current_connections", "current_client_connections"];
    assert_eq!(current.map(|column| number(row, column)), [2, 2]);
}

#[test]
fn lists() {
    let stage = Stage::new("console_lists", 2);
    let items = |list: &str| number(named(&show(&stage, "LISTS"), list), "items");
    let mut client = stage.client();
    client.query("SELECT 1");
    assert_eq!([items("databases"), items("users"), items("pools")], [1, 1, 1]);
    assert_eq!([items("used_servers"), items("login_clients")], [1, 0]);
    let silent = WireClient::open(stage.address()).unwrap();
    // Beside psql, which is there to ask.
    eventually("a login to begin", || [items("used_clients"), items("login_clients")] == [3, 1]);
    drop(silent);
    eventually("it to be given up", || items("login_clients") == 0);
    assert!(items("free_clients") > 0);
}

#[test]
fn memory() {
    let stage = Stage::new("console_memory", 2);
    let row = |name: &str| named(&show(&stage, "MEM"), name).clone();
    let used = |name: &str| number(&row(name), "used");
    // One is psql, which is there to ask.
    eventually("nobody else to be there", || used("client_cache") == 1);
    let crowd: Vec<_> = (0..20).map(|_| stage.client()).collect();
    eventually("the crowd to be counted", || used("client_cache") == 21);
    let clients = row("client_cache");
    let places = number(&clients, "used") + number(&clients, "free");
    assert_eq!(number(&clients, "memtotal"), number(&clients, "size") * places);

    let buffers = used("iobuf_cache");
    let mut slow = stage.client();
    slow.send(&query(&"x".repeat(5_000))[..4_000]).unwrap();
    eventually("the half of a message to be kept", || used("iobuf_cache") == buffers + 1);
    assert!(number(&row("iobuf_cache"), "memtotal") >= 4_000);

    let resident = number(&row("process"), "memtotal");
    let memory = Memory::of(&stage.pgweir);
    assert!(resident.abs_diff(memory.resident()) < 8 * MB, "{resident}");
    drop(crowd);
}

/// SHOW CONFIG, `pgweir check --explain` and the file say the same.
#[test]
fn settings() {
    let stage = Stage::with("console_settings", 7, |config| {
        config
            .general("idle_timeout", "90000")
            .general("admin_username", "\"admin\"")
            .general("admin_password", "\"admin\"")
    });
    let rows = show(&stage, "CONFIG");
    let setting = |key: &str| {
        let row = named(&rows, key);
        ["value", "default", "changeable"].map(|column| cell(row, column).to_owned())
    };
    let port = stage.pgweir.port().to_string();
    assert_eq!(setting("general.port"), [port.as_str(), "6432", "yes"]);
    assert_eq!(setting("general.idle_timeout"), ["\"90s\"", "\"10min\"", "yes"]);
    let user = "pools.console_settings.users.0";
    assert_eq!(setting(&format!("{user}.pool_size")), ["7", "15", "yes"]);
    assert_eq!(setting(&format!("{user}.idle_timeout")), ["\"90s\"", "\"10min\"", "yes"]);
    let [clients, default, _] = setting("general.max_clients");
    assert!(clients == default && clients.parse::<u32>().is_ok(), "{clients}");
    assert_eq!(setting("general.admin_password"), ["(a secret)", "", "yes"]);

    let path = stage.pgweir.config_path();
    let output = Command::new(PROGRAM).args(["check", "--explain"]).arg(&path).output().unwrap();
    let explained = String::from_utf8(output.stdout).unwrap();
    let lines = explained.lines().filter(|line| !line.starts_with("warning: "));
    let explained: Vec<_> =
        lines.map(|line| line.rsplit_once("  # ").unwrap().0.trim_end().to_owned()).collect();
    let shown = rows.iter().map(|row| match (cell(row, "key"), cell(row, "value")) {
        (key, "") => format!("{key} is not set"),
        (key, value) => format!("{key} = {value}"),
    });
    assert_eq!(shown.collect::<Vec<_>>(), explained);

    // What holds is shown, not what the file says by now.
    fs::write(&path, "nonsense").unwrap();
    assert_eq!(show(&stage, "CONFIG"), rows);
}

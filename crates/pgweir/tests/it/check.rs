//! `pgweir check`, and what the program says to a wrong command line or file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A file of this test with that text.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("check_{name}.toml"));
    fs::write(&path, text).unwrap();
    path
}

/// Runs pgweir, and gives its exit code, its output and what it complains of.
fn pgweir(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pgweir")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const SAMPLE: &str = include_str!("../../../../config/pgweir.toml");

#[test]
fn a_good_file_can_be_used() {
    let path = file("good", SAMPLE);
    let path = path.to_str().unwrap();
    let said = format!("{path} can be used\n");
    assert_eq!(pgweir(&["check", path]), (Some(0), said, String::new()));
}

#[test]
fn a_wrong_file_is_refused_with_all_its_mistakes() {
    let text =
        SAMPLE.replace("port = 6432", "prot = 6432").replace("pool_size = 10", "pool_size = 0");
    let line = |key: &str| 1 + text.lines().position(|line| line.starts_with(key)).unwrap();
    let path = file("wrong", &text);
    let path = path.to_str().unwrap();
    let complaint = format!(
        "{path}:{}: general.prot: unknown; did you mean \"port\"?\n\
         {path}:{}: pools.app.users.0.pool_size: expected a whole number from 1 to 2147483647, \
         found 0\n",
        line("prot"),
        line("pool_size"),
    );
    for arguments in [&["check", path][..], &[path]] {
        assert_eq!(pgweir(arguments), (Some(2), String::new(), complaint.clone()));
    }
    let (code, _, complaint) = pgweir(&["check", "/no/such/file.toml"]);
    assert_eq!(code, Some(2));
    assert!(complaint.starts_with("/no/such/file.toml: cannot be read: "), "{complaint}");
}

#[test]
fn what_holds_is_explained() {
    let path = file("explained", SAMPLE);
    let path = path.to_str().unwrap();
    let (code, said, _) = pgweir(&["check", "--explain", path]);
    assert_eq!(code, Some(0));
    let found = |key: &str| {
        let line = said.lines().find(|line| line.starts_with(key)).unwrap();
        let (what, origin) = line.split_once('#').unwrap();
        (what.trim().to_owned(), origin.trim().to_owned())
    };
    let port = 1 + SAMPLE.lines().position(|line| line.starts_with("port")).unwrap();
    let expected = ("general.port = 6432".to_owned(), format!("{path}:{port}"));
    assert_eq!(found("general.port "), expected);
    let (value, origin) = found("pools.app.users.0.idle_timeout");
    assert_eq!(value, "pools.app.users.0.idle_timeout = \"10min\"");
    assert_eq!(origin, "default");
    assert_eq!(found("general.max_clients").0, "general.max_clients is not set");
    assert_eq!(found("pools.app.users.0.password").0, "pools.app.users.0.password = (a secret)");
    assert!(!said.contains("\"secret\"") && !said.contains("change me"), "{said}");
}

#[test]
fn a_wrong_command_line_is_told_how_it_is_done() {
    let (code, _, said) = pgweir(&[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("Examples:") && said.contains("pgweir check"), "{said}");
    let (code, _, said) = pgweir(&["check"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("<CONFIG>"), "{said}");
    let (code, said, _) = pgweir(&["check", "--help"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("--explain") && said.contains("Examples:"), "{said}");
}

//! `pgweir init`: what it writes can be used, and says where its figures come from.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use pgweir_testkit::postgres::version;
use pgweir_testkit::{Login, Pgweir, WireClient};

use crate::check::pgweir;
use crate::stage::{CLUSTER, PROGRAM, assert_sound};
use crate::url::{PASSWORD, guarded, url, with_password};

/// A path of this test that nothing is at.
fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("init_{name}.toml"));
    let _was_not_there = fs::remove_file(&path);
    path
}

#[test]
fn what_it_writes_can_be_run() {
    let cluster = guarded(30);
    cluster.psql("CREATE DATABASE closed ALLOW_CONNECTIONS false");
    let (code, text, said) = pgweir(&["init", &with_password(&cluster, "it's%20odd")]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(text.contains("It allows 30 (max_connections) and keeps back 3"), "{text}");
    // Half of 27.
    assert!(text.contains("pool_size = 13\n") && text.contains(version()), "{text}");
    assert!(text.contains("\n# [pools.postgres]\n") && text.contains("[pools.\"it's odd\"]"));
    assert!(!text.contains("closed") && !text.contains("template"), "{text}");

    let file = path("run");
    fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(pgweir(&["check", "--connect", file]).0, Some(0));
    let pgweir =
        Pgweir::start(PROGRAM, |port| text.replace("port = 6432\n", &format!("port = {port}\n")));
    let login = Login::new("app").password(PASSWORD).database("it's odd");
    let mut client = WireClient::login(pgweir.address(), &login).unwrap();
    assert_eq!(client.query("SELECT current_database()"), ["it's odd"]);
    assert_sound(&pgweir);
}

#[test]
fn a_file_with_a_password_is_for_its_owner_alone() {
    let cluster = guarded(30);
    let file = path("secret");
    let file = file.to_str().unwrap();
    let url = with_password(&cluster, "postgres");
    let (code, out, said) = pgweir(&["init", &url, "-o", file]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("holds the password: mode 0600") && !said.contains(PASSWORD), "{said}");
    let mode = || fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    assert_eq!(pgweir(&["check", file]).0, Some(0));

    // Nothing is overwritten unless that is asked for, and then its mode is not inherited.
    fs::write(file, "mine").unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, said) = pgweir(&["init", &url, "-o", file]);
    assert_eq!(code, Some(1));
    assert!(said.contains("is there already; --force replaces it"), "{said}");
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
    assert_eq!(pgweir(&["init", &url, "--output", file, "--force"]).0, Some(0));
    assert_eq!(mode(), 0o600);
    assert!(fs::read_to_string(file).unwrap().contains("config_version = 1"));

    let (code, _, said) = pgweir(&["init", &url, "-o", "/no/such/folder/pgweir.toml"]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with("/no/such/folder/pgweir.toml: cannot be written: "), "{said}");
}

#[test]
fn without_a_password_there_is_no_secret_to_keep() {
    let file = path("open");
    let file = file.to_str().unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", CLUSTER.port());
    let (code, _, said) = pgweir(&["init", &url, "-o", file]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("password"), "{said}");
    assert!(fs::read_to_string(file).unwrap().contains("\nauth_type = \"trust\"\n"));
    assert_eq!(pgweir(&["check", "--connect", file]).0, Some(0));
}

#[test]
fn the_password_may_be_in_the_environment() {
    let cluster = guarded(30);
    let init = |password: &str| {
        let mut command = Command::new(PROGRAM);
        command.arg("init").arg(url(&cluster, "", "postgres")).env("PGPASSWORD", password);
        command.output().unwrap()
    };
    let output = init(PASSWORD);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("password = \"{PASSWORD}\"")), "{output:?}");
    let output = init("hunter2");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "password authentication failed for user \"app\" (SQLSTATE 28P01)\n";
    assert!(said.ends_with(expected) && !said.contains("hunter2"), "{said}");
    let said = String::from_utf8_lossy(&init("").stderr).into_owned();
    assert!(said.ends_with("put it into the URL, or into PGPASSWORD\n"), "{said}");
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let mut cluster = guarded(30);
    cluster.stop();
    let (code, out, said) = pgweir(&["init", &with_password(&cluster, "postgres")]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let place = format!("postgres://app@127.0.0.1:{}/postgres: ", cluster.port());
    assert!(said.starts_with(&place) && said.contains("Connection refused"), "{said}");
}

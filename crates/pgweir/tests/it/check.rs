//! `pgweir check`, and what the program says to a wrong command line or file.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;

use pgweir_testkit::postgres::version;
use pgweir_testkit::{Cluster, PoolerConfig};

use crate::stage::PROGRAM;
use crate::url::{PASSWORD, guarded};

/// A file of this test with that text.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("check_{name}.toml"));
    fs::write(&path, text).unwrap();
    path
}

/// Runs pgweir, and gives its exit code, its output and what it complains of.
pub(crate) fn pgweir(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(PROGRAM);
    let output = command.args(arguments).env_remove("PGPASSWORD").output().unwrap();
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
fn what_only_the_machine_can_know_is_refused_where_it_is_named() {
    let cases = [
        (
            "host = \"127.0.0.1\"",
            "host = \"no.such.invalid\"",
            "\"no.such.invalid\" has no address: ",
        ),
        (
            "# unix_socket_group = \"app\"",
            "unix_socket_group = \"no such\"",
            "there is no group \"no such\" on this machine\n",
        ),
    ];
    for (before, after, why) in cases {
        assert!(SAMPLE.contains(before));
        let text = SAMPLE.replace(before, after);
        let line = 1 + text.lines().position(|line| line == after).unwrap();
        let path = file("names", &text);
        let path = path.to_str().unwrap();
        let (key, _) = after.split_once(' ').unwrap();
        let expected = format!("{path}:{line}: general.{key}: {why}");
        for arguments in [&["check", path][..], &[path]] {
            let (code, said, complaint) = pgweir(arguments);
            assert_eq!((code, said.as_str()), (Some(2), ""));
            assert!(complaint.starts_with(&expected), "{complaint}");
        }
    }
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
    let processors = available_parallelism().unwrap();
    let expected = (format!("general.worker_threads = {processors}"), "default".to_owned());
    assert_eq!(found("general.worker_threads "), expected);
    assert_eq!(found("pools.app.users.0.password").0, "pools.app.users.0.password = (a secret)");
    assert!(!said.contains("\"secret\"") && !said.contains("change me"), "{said}");
}

/// The default of our own dialect is listened on only where the folder is there.
#[test]
fn a_folder_that_is_not_there_is_not_what_holds() {
    let value = |name: &str, line: &str| {
        let path = file(name, &SAMPLE.replace("# unix_socket_dir = \"/run/pgweir\"", line));
        let (code, said, _) = pgweir(&["check", "--explain", path.to_str().unwrap()]);
        assert_eq!(code, Some(0));
        let line = said.lines().find(|line| line.starts_with("general.unix_socket_dir ")).unwrap();
        line.split("  ").next().unwrap().to_owned()
    };
    let expected = match fs::exists("/run/pgweir").unwrap() {
        true => "general.unix_socket_dir = \"/run/pgweir\"",
        false => "general.unix_socket_dir is not set",
    };
    assert_eq!(value("folder", ""), expected);
    let asked = value("folder_asked", "unix_socket_dir = \"/no/such\"");
    assert_eq!(asked, "general.unix_socket_dir = \"/no/such\"");
}

/// The configuration of one pool on that cluster, whose one user is `app`.
fn on(cluster: &Cluster, database: &str, password: &str, pool_size: u32) -> PoolerConfig {
    let account = [("admin_username", "\"admin\""), ("admin_password", "\"deep\"")];
    let config = PoolerConfig::new(database, cluster).user("app", password, pool_size);
    account.into_iter().fold(config, |config, (key, value)| config.general(key, value))
}

/// Runs `check --connect` on that file, and gives its exit code and the lines that it prints.
fn connect(name: &str, text: &str) -> (Option<i32>, Vec<String>) {
    let path = file(name, text);
    let (code, said, complaint) = pgweir(&["check", "--connect", path.to_str().unwrap()]);
    assert_eq!(complaint, "");
    let said = said.replace(path.to_str().unwrap(), "FILE");
    assert!(!said.contains(PASSWORD), "{said}");
    (code, said.lines().map(str::to_owned).collect())
}

#[test]
fn servers_are_logged_in_to_and_have_room() {
    let cluster = guarded(30);
    // Two users who are one at the server, and one who is the same once more.
    let config = on(&cluster, "postgres", PASSWORD, 20)
        .user("other", PASSWORD, 6)
        .user_setting("server_username", "\"app\"")
        .user("third", PASSWORD, 1)
        .user_setting("server_username", "\"app\"");
    let port = cluster.port();
    let (code, said) = connect("room", &config.text(6432));
    let expected = [
        format!("127.0.0.1:{port} postgres as app: ok, PostgreSQL {}", version()),
        format!(
            "127.0.0.1:{port}: all pools together may open 27, there is room for 27 \
             (max_connections 30 less 3 reserved): pool_size binds"
        ),
        "FILE can be used".to_owned(),
    ];
    assert_eq!((code, said), (Some(0), expected.to_vec()));

    let (code, said) = connect("no_room", &config.user("fourth", PASSWORD, 1).text(6432));
    assert_eq!(code, Some(1));
    let expected = format!(
        "warning: 127.0.0.1:{port}: all pools together may open 28, there is room for 27 \
         (max_connections 30 less 3 reserved): max_connections binds; lower pool_size, set \
         max_server_connections, or raise max_connections"
    );
    assert_eq!(said.last(), Some(&expected));
}

/// Whatever limits the connections of several pools counts, and is named.
#[test]
fn limits_that_pools_share_are_added_up() {
    let cluster = guarded(30);
    let port = cluster.port();
    let config = on(&cluster, "postgres", PASSWORD, 100)
        .user("other", PASSWORD, 100)
        .user_setting("server_username", "\"app\"");
    let sum = |name: &str, text: &str| {
        let (code, said) = connect(name, text);
        let sums = said.iter().filter(|line| line.contains("all pools together"));
        let [sum] = &sums.collect::<Vec<_>>()[..] else { panic!("{said:?}") };
        (code, sum.replace(&format!("127.0.0.1:{port}: all pools together may open "), ""))
    };
    let room = "there is room for 27 (max_connections 30 less 3 reserved)";
    let by_database = config.clone().pool("max_db_connections", "20").text(6432);
    let expected = format!("20, {room}: max_db_connections binds");
    assert_eq!(sum("by_database", &by_database), (Some(0), expected));
    let by_user = config.general("max_user_connections", "11").text(6432);
    let expected = format!("22, {room}: max_user_connections binds");
    assert_eq!(sum("by_user", &by_user), (Some(0), expected));

    // Each database that somebody asks for has servers of its own.
    let any = on(&cluster, "*", PASSWORD, 1);
    let (code, said) = sum("any", &any.text(6432));
    let expected = format!("warning: connections without limit, {room}: max_connections binds; ");
    assert!(code == Some(1) && said.starts_with(&expected), "{said}");
    let limited = any.clone().general("max_server_connections", "9").text(6432);
    let expected = format!("9, {room}: max_server_connections binds");
    assert_eq!(sum("any_limited", &limited), (Some(0), expected));
    let share = any.general("instances", "2").text(6432);
    let expected = format!("12, {room}: max_server_connections binds");
    assert_eq!(sum("any_of_room", &share), (Some(0), expected));
}

/// Where the server says nothing, the file still does.
#[test]
fn a_server_that_is_not_there_is_counted_too() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cluster = guarded(30);
    let sum = |name: &str, database: &str, limit: Option<(&str, &str)>| {
        let config = on(&cluster, database, PASSWORD, 5).server_port(closed);
        let config = limit.into_iter().fold(config, |config, (key, is)| config.general(key, is));
        let (code, said) = connect(name, &config.text(6432));
        assert_eq!(code, Some(1));
        let sum = said.iter().find_map(|line| line.split_once(" may open "));
        sum.unwrap_or_else(|| panic!("{said:?}")).1.to_owned()
    };
    let unknown = "its room is not known";
    assert_eq!(sum("gone", "a", None), format!("5, {unknown}: pool_size binds"));
    assert_eq!(
        sum("gone_limited", "a", Some(("max_server_connections", "2"))),
        format!("2, {unknown}: max_server_connections binds")
    );
    assert_eq!(
        sum("gone_of_room", "a", Some(("instances", "2"))),
        format!("5, {unknown}: pool_size binds, or max_server_connections, which is made of it")
    );
    assert_eq!(
        sum("gone_any", "*", None),
        format!("connections without limit, {unknown}: nothing binds")
    );
    assert_eq!(
        sum("gone_any_of_room", "*", Some(("instances", "1"))),
        format!(
            "connections without limit, {unknown}: max_server_connections binds, which is made of \
             it"
        )
    );
}

#[test]
fn a_login_that_fails_is_told_and_hides_no_other() {
    let cluster = guarded(30);
    let config = on(&cluster, "postgres", "hunter2", 1)
        .user("hashed", "md5d41d8cd98f00b204e9800998ecf8427e", 1)
        .user("good", PASSWORD, 1)
        .user_setting("server_username", "\"app\"");
    let port = cluster.port();
    let (code, said) = connect("logins", &config.text(6432));
    assert_eq!((code, said.len()), (Some(1), 4), "{said:?}");
    let refused = "FATAL: password authentication failed for user \"app\" (SQLSTATE 28P01)";
    assert_eq!(said[0], format!("127.0.0.1:{port} postgres as app: {refused}"));
    assert!(said[1].contains(" as hashed: not tried, the password is an md5 hash"), "{said:?}");
    assert!(said[2].ends_with(&format!(" postgres as app: ok, PostgreSQL {}", version())));
    assert!(said[3].contains("may open 3, there is room for 27"), "{said:?}");

    let (code, said) = connect("database", &on(&cluster, "nowhere", PASSWORD, 1).text(6432));
    assert_eq!(code, Some(1));
    let refused = "FATAL: database \"nowhere\" does not exist (SQLSTATE 3D000)";
    assert_eq!(said[0], format!("127.0.0.1:{port} nowhere as app: {refused}"));
    assert!(said[1].ends_with("may open 1, its room is not known: pool_size binds"), "{said:?}");
}

#[test]
fn a_server_that_does_not_answer_is_waited_for_as_long_as_connect_timeout_says() {
    // The kernel accepts, and then nobody says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let cluster = guarded(30);
    let config = on(&cluster, "postgres", PASSWORD, 1).server_port(port);
    let config = config.general("connect_timeout", "100");
    let (code, said) = connect("silent", &config.text(6432));
    assert_eq!(code, Some(1));
    assert_eq!(said[0], format!("127.0.0.1:{port} postgres as app: no answer within 100ms"));
    drop(silent);
    let (code, said) = connect("closed", &config.text(6432));
    assert_eq!(code, Some(1));
    assert!(said[0].contains("Connection refused"), "{said:?}");
}

#[test]
fn a_wrong_file_is_refused_before_anybody_connects() {
    let path = file("unconnected", &SAMPLE.replace("port = 6432", "prot = 6432"));
    let (code, said, complaint) = pgweir(&["check", "--connect", path.to_str().unwrap()]);
    assert_eq!((code, said.as_str()), (Some(2), ""));
    assert!(complaint.contains("did you mean \"port\"?"), "{complaint}");
}

#[test]
fn a_wrong_command_line_is_told_how_it_is_done() {
    let (code, _, said) = pgweir(&[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("Examples:") && said.contains("pgweir check"), "{said}");
    let (code, _, said) = pgweir(&["check"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("<CONFIG>"), "{said}");
    let pages: &[(&[&str], &str)] = &[
        (&["--help"], "--listen"),
        (&["check", "--help"], "--connect"),
        (&["init", "--help"], "--force"),
    ];
    for (arguments, expected) in pages {
        let (code, said, _) = pgweir(arguments);
        assert_eq!(code, Some(0));
        assert!(said.contains(expected) && said.contains("Examples:"), "{said}");
    }
}

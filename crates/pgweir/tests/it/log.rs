//! The log is for operators: what it says, in which form, and that nobody waits for it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use pgweir_testkit::frames::{bind, execute, parse, sync};
use pgweir_testkit::{Login, Pgweir, WireClient, eventually, eventually_some};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Resource, getrlimit, prlimit};
use serde_json::Value;

use crate::program::program;
use crate::stage::{self, CLUSTER, PROGRAM, Stage};

/// A login that is refused, and how much of the log it takes at least.
const REFUSED_BYTES: usize = 10_000;

fn refused_login() -> Login {
    Login::new(&"x".repeat(REFUSED_BYTES / 2 - 100)).database(&"y".repeat(REFUSED_BYTES / 2 - 100))
}

/// The login of the console.
fn admin() -> Login {
    Login::new("admin").password("admin").database("pgweir")
}

#[test]
fn lines_of_json() {
    let stage = Stage::with("log_json", 1, |config| {
        let config = config.general("log_format", "\"json\"");
        config
            .general("log_client_connections", "true")
            .general("log_client_disconnections", "true")
    });
    let client = stage.client();
    let id = client.cancel_key().unwrap().pid;
    drop(client);
    WireClient::login(stage.address(), &Login::new("no\nbody")).unwrap_err();
    let lines = || -> Vec<Value> {
        stage.pgweir.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let with = |message: &str| lines().into_iter().find(|line| line["message"] == message);
    eventually("the client to be gone", || with("left").is_some());
    eventually("the refusal", || with("login refused").is_some());
    for line in lines() {
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
    let (came, left) = (with("logged in").unwrap(), with("left").unwrap());
    for line in [&came, &left] {
        assert_eq!((&line["client"], &line["level"]), (&id.into(), &"INFO".into()));
        assert_eq!(line["pool"], "log_json/log_json");
    }
    assert!(came["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{came}");
    assert_eq!(left["cause"], "client disconnected");
    let refused = with("login refused").unwrap();
    assert_eq!(refused["level"], "WARN");
    assert!(refused["cause"].as_str().unwrap().contains("user \"no\nbody\""), "{refused}");
}

#[test]
fn the_least_that_is_logged() {
    let stage = Stage::with("log_level", 1, |config| {
        config.general("log_level", "\"warn\"").general("log_client_connections", "true")
    });
    stage.client();
    WireClient::login(stage.address(), &Login::new("nobody")).unwrap_err();
    eventually("the refusal", || stage.pgweir.log().contains("WARN login refused: "));
    assert!(!stage.pgweir.log().contains("INFO"), "{}", stage.pgweir.log());
}

/// Whatever queries do, they are no news: there may be 100,000 of them in a second.
#[test]
fn queries_add_no_line() {
    let stage = Stage::with("log_queries", 2, |config| config.general("log_level", "\"debug\""));
    let (mut client, mut waiter) = (stage.client(), stage.client());
    eventually("the server's room", || stage.pgweir.log().contains("there is room for"));
    let before = stage.pgweir.log().lines().count();
    for _ in 0..20 {
        client.query("BEGIN");
        client.try_query("SELECT 1/0").unwrap_err();
        client.query("ROLLBACK");
        client
            .send(&[parse("", "SELECT 1", &[]), bind("", "", &[]), execute("", 0)].concat())
            .unwrap();
        client.send(&sync()).unwrap();
        client.read_until_ready().unwrap();
        waiter.query("SET search_path TO public");
        waiter.query("SELECT pg_sleep(0.001)");
    }
    // What was told before it is in the log before it.
    WireClient::login(stage.address(), &Login::new("nobody")).unwrap_err();
    eventually("the refusal", || stage.pgweir.log().contains("login refused"));
    let log = stage.pgweir.log();
    assert_eq!(log.lines().count(), before + 1, "{log}");
}

/// What an operator acts on has a line, whether clients that come and go have one or not.
#[test]
fn limits_that_strike_are_told_of() {
    let stage = Stage::with("log_limits", 1, |config| {
        let config = config.pool("query_wait_timeout", "100");
        config.general("idle_client_in_transaction_timeout", "4000")
    });
    let (mut holder, mut waiter) = (stage.client(), stage.client());
    holder.query("BEGIN");
    for _ in 0..3 {
        assert_eq!(waiter.try_query("SELECT 1").unwrap_err().sqlstate(), "53300");
    }
    holder.read_to_end().unwrap();
    WireClient::login(stage.address(), &stage.login().database("nowhere")).unwrap_err();
    eventually("the refusal", || stage.pgweir.log().contains("login refused"));
    let log = stage.pgweir.log();
    let lines = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        lines(" WARN no server within query_wait_timeout: all servers of pool "),
        1,
        "{log}"
    );
    let ended = "client ended: terminating connection due to idle-in-transaction timeout: \
                 idle_client_in_transaction_timeout is 4 s; the transaction is rolled back.";
    assert_eq!(lines(ended), 1, "{log}");
    assert_eq!(lines(" pool=log_limits/log_limits"), 2, "{log}");
    assert_eq!(lines(" pool=nowhere/log_limits"), 1, "{log}");
}

/// The line leads to the rows of SHOW CLIENTS and SHOW SERVERS.
#[test]
fn a_server_that_is_lost_is_told_with_whom_it_served() {
    let stage = Stage::with("log_lost", 1, |config| config.general("log_format", "\"json\""));
    let mut client = stage.client();
    client.query("BEGIN");
    let server: u32 = stage.console("SHOW SERVERS")[0].rsplit('|').next().unwrap().parse().unwrap();
    stage.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'log_lost'");
    let lost = eventually_some("the loss to be told", || {
        let log = stage.pgweir.log();
        let line = log.lines().find(|line| line.contains("a server connection was lost"))?;
        serde_json::from_str::<Value>(line).ok()
    });
    assert_eq!(lost["client"], client.cancel_key().unwrap().pid);
    assert_eq!((&lost["server"], &lost["pool"]), (&server.into(), &"log_lost/log_lost".into()));
    let cause = lost["cause"].as_str().unwrap();
    assert!(cause.contains("terminating connection due to administrator command"), "{lost}");
}

/// A script that reloads over psql leaves a trace of what is wrong with the file, and of itself.
#[test]
fn reloads_over_the_console_are_told_of() {
    let stage = Stage::with("log_reload", 1, |config| {
        config.general("log_format", "\"json\"").general("worker_threads", "2")
    });
    let mut admin = stage.client_as(&admin());
    let client = admin.cancel_key().unwrap().pid;
    let told = |what: &str| {
        eventually_some(what, || {
            let log = stage.pgweir.log();
            let line = log.lines().find(|line| line.contains(what))?;
            serde_json::from_str::<Value>(line).ok()
        })
    };
    admin.query("RELOAD");
    let loaded = told("the configuration was loaded again");
    assert_eq!((&loaded["client"], &loaded["level"]), (&client.into(), &"INFO".into()));
    fs::write(stage.pgweir.config_path(), "[general]\nlog_formatt = \"text\"\n").unwrap();
    assert_eq!(admin.try_query("RELOAD").unwrap_err().sqlstate(), "F0000");
    let refused = told("the configuration was not loaded, all stays as it was");
    assert_eq!((&refused["client"], &refused["level"]), (&client.into(), &"ERROR".into()));
    let cause = refused["cause"].as_str().unwrap();
    assert!(cause.contains("pgweir.toml:2") && cause.contains("log_format"), "{refused}");
}

/// A pipe that holds no more than the kernel gives it, and that nobody reads before it is time.
#[test]
fn a_log_that_nobody_reads_holds_up_nobody() {
    let name = "log_pipe";
    stage::create_database(&CLUSTER, name);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    // For reading and writing: an end that nobody writes to is one that can be opened.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe =
        File::options().read(true).write(true).custom_flags(nonblocking).open(&path).unwrap();

    let script = format!("exec '{PROGRAM}' \"$@\" 2>'{}'", path.display());
    let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
    let pgweir = Pgweir::start(program(name, &script), |port| config.text(port));
    for _ in 0..2 * 1024 * 1024 / REFUSED_BYTES {
        WireClient::login(pgweir.address(), &refused_login()).unwrap_err();
    }
    let mut client = WireClient::login(pgweir.address(), &stage::login(name)).unwrap();
    assert_eq!(client.query("SELECT 'served'"), ["served"]);
    // It is answered by the thread that tells the log.
    let mut console = WireClient::login(pgweir.address(), &admin()).unwrap();
    assert_eq!(console.query("SHOW VERSION").len(), 1);

    let mut said = Vec::new();
    eventually("the log to say what it lacks", || {
        let mut bytes = vec![0; 1024 * 1024];
        while let Ok(n @ 1..) = pipe.read(&mut bytes) {
            said.extend_from_slice(&bytes[..n]);
        }
        String::from_utf8_lossy(&said).contains("could not be written and are lost lines=")
    });
}

/// As on a disk that is full.
#[test]
fn a_log_that_cannot_be_written_holds_up_nobody() {
    let name = "log_full";
    stage::create_database(&CLUSTER, name);
    let script = format!("exec '{PROGRAM}' \"$@\" 2>/dev/full");
    let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
    let pgweir = Pgweir::start(program(name, &script), |port| config.text(port));
    let mut client = WireClient::login(pgweir.address(), &stage::login(name)).unwrap();
    for _ in 0..10 {
        WireClient::login(pgweir.address(), &refused_login()).unwrap_err();
        assert_eq!(client.query("SELECT 'served'"), ["served"]);
    }
    pgweir.terminate();
    assert!(pgweir.wait().success());
}

/// A file that may not grow until somebody makes room: what it lacks is said there, line for line.
#[test]
fn lines_for_which_there_was_no_room_are_counted() {
    const REFUSED: usize = 10;
    let name = "log_counted";
    stage::create_database(&CLUSTER, name);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    // Without the trap a write beyond the limit would end the process.
    let limits = "trap '' XFSZ; ulimit -S -f 8";
    let script = format!("{limits}; exec '{PROGRAM}' \"$@\" 2>'{}'", path.display());
    let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
    let pgweir = Pgweir::start(program(name, &script), |port| config.text(port));
    let mut client = WireClient::login(pgweir.address(), &stage::login(name)).unwrap();
    for _ in 0..REFUSED {
        WireClient::login(pgweir.address(), &refused_login()).unwrap_err();
        assert_eq!(client.query("SELECT 'served'"), ["served"]);
        eventually("the file to be full", || fs::metadata(&path).unwrap().len() >= 4_096);
    }

    let pid = Pid::from_raw(pgweir.pid().cast_signed()).unwrap();
    prlimit(Some(pid), Resource::Fsize, getrlimit(Resource::Fsize)).unwrap();
    WireClient::login(pgweir.address(), &refused_login()).unwrap_err();
    // One of those that are lost was written in part: it lacks its last words. What is lost may be
    // said in two lines.
    let user = "x".repeat(REFUSED_BYTES / 2 - 100);
    eventually("the log to say what it lacks", || {
        let text = fs::read_to_string(&path).unwrap();
        let losses = text.split("could not be written and are lost lines=").skip(1);
        let lost = losses.filter_map(|text| text.lines().next()?.trim().parse::<usize>().ok());
        let whole = text.lines().filter(|line| line.contains(&format!("/{user} from="))).count();
        let lost: usize = lost.sum();
        lost > 0 && lost + whole == REFUSED + 1
    });
    pgweir.terminate();
    assert!(pgweir.wait().success());
}

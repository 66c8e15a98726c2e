//! The log is for operators: what it says, in which form, and that nobody waits for it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;

use pgweir_testkit::frames::{bind, cancel_request, execute, message, parse, query, sync};
use pgweir_testkit::{Login, Pgweir, Signal, WireClient, eventually, eventually_some};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Resource, getrlimit, prlimit};
use serde_json::Value;

use crate::program::program;
use crate::stage::{self, CLUSTER, PROGRAM, Stage, patient};
use crate::stand_in::StandIn;

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

/// A line: how bad it is, what it says first, and what else.
type Line<'a> = (&'a str, &'a str, &'a [(&'a str, Value)]);

/// The lines of a log in JSON that say this first.
fn lines(pgweir: &Pgweir, message: &str) -> Vec<Value> {
    let log = pgweir.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message).collect()
}

/// Each of these lines comes, once at first.
#[track_caller]
fn assert_told(pgweir: &Pgweir, expected: &[Line<'_>]) {
    for (level, message, fields) in expected {
        let line = eventually_some(message, || lines(pgweir, message).into_iter().next());
        assert_eq!(line["level"], *level, "{line}");
        for (name, value) in *fields {
            assert_eq!(line[name], *value, "{line}");
        }
    }
}

/// What the log calls a client.
fn number_of(client: &WireClient) -> Value {
    client.cancel_key().unwrap().pid.into()
}

/// The number of each server. Behind it stands only who shares it.
fn servers(pgweir: &Pgweir) -> Vec<u32> {
    let mut admin = WireClient::login(pgweir.address(), &admin()).unwrap();
    let rows = admin.query("SHOW SERVERS");
    rows.iter().map(|row| row.rsplit('|').nth(1).unwrap().parse().unwrap()).collect()
}

/// What an operator acts on has a line, whether clients that come and go have one or not.
#[test]
fn limits_that_strike_are_told_of() {
    let stage = Stage::with("log_limits", 1, |config| {
        let config = patient(config).general("log_format", "\"json\"");
        config.general("idle_client_in_transaction_timeout", "4000")
    });
    let (mut holder, mut waiter) = (stage.client(), stage.client());
    stage.limit_waits(100);
    let [held, waited] = [&holder, &waiter].map(number_of);
    holder.query("BEGIN");
    for _ in 0..3 {
        assert_eq!(waiter.try_query("SELECT 1").unwrap_err().sqlstate(), "53300");
    }
    holder.read_to_end().unwrap();
    WireClient::login(stage.address(), &stage.login().database("nowhere")).unwrap_err();
    let pool = || Value::from("log_limits/log_limits");
    let ended = "terminating connection due to idle-in-transaction timeout: \
                 idle_client_in_transaction_timeout is 4 s; the transaction is rolled back.";
    let wait_over = "no server within query_wait_timeout";
    assert_told(
        &stage.pgweir,
        &[
            ("WARN", wait_over, &[("client", waited), ("pool", pool()), ("times", 1.into())]),
            (
                "WARN",
                "client ended",
                &[("client", held), ("pool", pool()), ("cause", ended.into())],
            ),
            ("WARN", "login refused", &[("pool", "nowhere/log_limits".into())]),
        ],
    );
    let waits = lines(&stage.pgweir, wait_over);
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert!(waits[0]["cause"].as_str().unwrap().starts_with("all servers of pool "), "{waits:?}");
    let refused = &lines(&stage.pgweir, "login refused")[0];
    assert!(refused["client"].is_number(), "{refused}");
    assert!(refused["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{refused}");
}

/// A server that knows less than PostgreSQL, answers what nobody has asked, and goes.
#[test]
fn what_servers_do_is_told_of() {
    let stand_in =
        StandIn::with(|config| config.general("log_format", "\"json\"").general("instances", "1"));
    let pool = || Value::from("stand_in/stand_in");
    let mut client = stand_in.newcomer();
    let mut server = stand_in.server();
    let address = Value::from(server.local_addr().unwrap().to_string());
    let greeting = client.read_until_ready().unwrap();
    let key = greeting.iter().find(|message| message.tag == b'K').unwrap();
    let (pid, secret) = key.body.split_first_chunk().unwrap();
    let pid = u32::from_be_bytes(*pid);
    let number = servers(&stand_in.pgweir)[0];
    let of_server = || [("server", Value::from(number)), ("client", pid.into()), ("pool", pool())];
    let hear = |server: &mut TcpStream| {
        server.read_exact(&mut vec![0; query("SELECT").len()]).unwrap();
    };

    // It takes the cancel, and says nothing of it.
    client.send(&query("SELECT")).unwrap();
    hear(&mut server);
    let mut requester = WireClient::open(stand_in.pgweir.address()).unwrap();
    requester.send(&cancel_request(pid, secret)).unwrap();
    let _cancel = stand_in.bare_server();
    assert!(requester.read_to_end().unwrap().is_empty());
    server.write_all(&[message(b'I', b""), message(b'Z', b"I")].concat()).unwrap();
    client.read_until_ready().unwrap();
    client.send(&query("SELECT")).unwrap();
    let mut server = stand_in.server();
    hear(&mut server);
    // A description, and then a greeting.
    server.write_all(&[message(b'T', &[0; 2]), message(b'R', &[0; 4])].concat()).unwrap();
    assert_eq!(client.read_to_end().unwrap().last().unwrap().sqlstate(), "XX000");
    let mut next = stand_in.newcomer();
    next.read_until_ready().unwrap();
    let pgweir = stand_in.goes();
    next.send(&query("SELECT")).unwrap();
    let contained = "a server connection was closed, because its replies do not fit what was \
                     asked; this is a bug of pgweir, please report it";
    let refused = [("server", number.into()), ("pool", pool()), ("address", address.clone())];
    assert_told(
        &pgweir,
        &[
            ("WARN", "the server does not say what it has room for", &[("address", address)]),
            (
                "WARN",
                "a cancel may still hit a server connection, which is not used again",
                &of_server(),
            ),
            ("ERROR", contained, &of_server()),
            ("WARN", "no connection to the server", &refused),
        ],
    );
}

/// Asks for an end, as a client of the console if need be.
type Ask = fn(&Pgweir, &mut WireClient);

/// How the end is asked for, and what is told of it: how bad, what, and whose doing it is.
type End<'a> = (&'a [Ask], &'a [(&'a str, &'a str, Whose)]);

/// Who has asked for something, as the log has it.
enum Whose {
    Signal(&'static str),
    Console,
    Nobody,
}

/// Whoever looks for the reason of an end finds whether it was asked for, and by whom.
#[test]
fn ends_are_told_of() {
    const DRAINS: &str = "ending: clients may finish their transactions";
    const ENDS: &str = "ending: clients are disconnected";
    const OVER: &str = "shutdown_timeout is over: clients are disconnected";
    let name = "log_ends";
    stage::create_database(&CLUSTER, name);
    let ends: [End<'_>; 5] = [
        (&[|pgweir, _| pgweir.quit()], &[("INFO", ENDS, Whose::Signal("SIGQUIT"))]),
        (
            &[|pgweir, _| pgweir.terminate(), |pgweir, _| pgweir.signal(Signal::INT)],
            &[("INFO", DRAINS, Whose::Signal("SIGTERM")), ("INFO", ENDS, Whose::Signal("SIGINT"))],
        ),
        (
            &[|pgweir, _| pgweir.signal(Signal::INT), |_, admin| drop(admin.query("SHUTDOWN"))],
            &[("INFO", DRAINS, Whose::Signal("SIGINT")), ("INFO", ENDS, Whose::Console)],
        ),
        (&[|_, admin| drop(admin.query("SHUTDOWN"))], &[("INFO", ENDS, Whose::Console)]),
        (
            &[|_, admin| drop(admin.query("SHUTDOWN WAIT_FOR_CLIENTS"))],
            &[("INFO", DRAINS, Whose::Console), ("WARN", OVER, Whose::Nobody)],
        ),
    ];
    for (asks, told) in ends {
        let times_out = told.iter().any(|(_, message, _)| *message == OVER);
        let timeout = if times_out { "100" } else { "600000" };
        let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
        let config = config.general("log_format", "\"json\"").general("worker_threads", "2");
        let config = config.general("shutdown_timeout", timeout);
        let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
        let mut client = WireClient::login(pgweir.address(), &stage::login(name)).unwrap();
        client.query("BEGIN");
        let mut admin = WireClient::login(pgweir.address(), &admin()).unwrap();
        let number = number_of(&admin);
        let mut lines = Vec::new();
        for (level, message, whose) in told {
            let (client, signal) = match whose {
                Whose::Signal(name) => (Value::Null, Value::from(*name)),
                Whose::Console => (number.clone(), Value::Null),
                Whose::Nobody => (Value::Null, Value::Null),
            };
            lines.push((*level, *message, [("client", client), ("signal", signal)]));
        }
        for (ask, (level, message, fields)) in asks.iter().zip(&lines) {
            ask(&pgweir, &mut admin);
            assert_told(&pgweir, &[(level, message, fields)]);
        }
        assert!(pgweir.wait().success());
        for (level, message, fields) in &lines {
            assert_told(&pgweir, &[(level, message, fields)]);
        }
        assert_told(&pgweir, &[("INFO", "pgweir has ended", &[])]);
    }
}

/// A script that reloads over psql leaves a trace of what is wrong with the file, and of itself.
#[test]
fn reloads_over_the_console_are_told_of() {
    let stage = Stage::with("log_reload", 1, |config| {
        config.general("log_format", "\"json\"").general("worker_threads", "2")
    });
    let mut admin = stage.client_as(&admin());
    let client = [("client", number_of(&admin))];
    admin.query("RELOAD");
    assert_told(&stage.pgweir, &[("INFO", "the configuration was loaded again", &client)]);
    fs::write(stage.pgweir.config_path(), "[general]\nlog_formatt = \"text\"\n").unwrap();
    assert_eq!(admin.try_query("RELOAD").unwrap_err().sqlstate(), "F0000");
    let refused = "the configuration was not loaded, all stays as it was";
    assert_told(&stage.pgweir, &[("ERROR", refused, &client)]);
    let refused = &lines(&stage.pgweir, refused)[0];
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

//! File descriptors: clients do not take those of servers, and a process that has none left goes on
//! with those that it has.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use pgweir_testkit::frames::query;
use pgweir_testkit::{Login, Pgweir, Signal, WireClient, eventually};
use socket2::{Domain, Socket, Type};

use crate::check;
use crate::program::program;
use crate::shutdown::{assert_told, at_the_door};
use crate::stage::{self, CLUSTER, PROGRAM};
use crate::usage::descriptors;

/// What one worker's process needs for itself.
const OWN: usize = 104;
const SERVERS: usize = 3;
const CLIENTS: usize = 12;

/// A pgweir that may have so many descriptors.
fn limited(name: &str, pool_size: usize, soft: usize, hard: usize) -> Pgweir {
    stage::create_database(&CLUSTER, name);
    let pool_size = u32::try_from(pool_size).unwrap();
    let config = stage::trusting(&CLUSTER, name).general("worker_threads", "1");
    let config = config.user(name, "", pool_size);
    let few = format!("exec prlimit --nofile={soft}:{hard} '{PROGRAM}' \"$@\"");
    Pgweir::start(program(name, &few), |port| config.text(port))
}

#[test]
fn clients_leave_servers_their_descriptors() {
    let name = "descriptors_cold";
    // The soft limit is not enough for anything.
    let pgweir = limited(name, SERVERS, 20, OWN + SERVERS + CLIENTS);
    let limits = fs::read_to_string(format!("/proc/{}/limits", pgweir.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let figures: Vec<_> = line.split_whitespace().skip(3).take(2).collect();
    let hard = (OWN + SERVERS + CLIENTS).to_string();
    assert_eq!(figures, [&hard, &hard], "it is raised");

    // More than there are descriptors for, and no server is there yet.
    let login = stage::login(name);
    let mut crowd: Vec<_> = (0..3 * (OWN + SERVERS + CLIENTS))
        .map(|_| {
            let mut client = WireClient::open(pgweir.address()).unwrap();
            // One that is refused at once may be gone by now.
            let _ = client.send(&login.startup_message());
            client
        })
        .collect();
    let mut served = Vec::new();
    for mut client in crowd.drain(..) {
        let first = client.read().unwrap().expect("an answer");
        if first.tag == b'R' {
            client.read_until_ready().unwrap();
            served.push(client);
        } else {
            assert_eq!(first.sqlstate(), "53300", "{first}");
        }
    }
    assert_eq!(served.len(), CLIENTS);

    // Those that say nothing take no more.
    let silent: Vec<_> = (0..100).map(|_| WireClient::open(pgweir.address()).unwrap()).collect();
    for client in &mut served[..SERVERS] {
        assert_eq!(client.query("BEGIN; SELECT 'on a server'"), ["on a server"]);
    }
    drop(silent);
    stage::assert_sound(&pgweir);
    let log = pgweir.log();
    let lacks = log.lines().find(|line| line.contains("Too many open files"));
    assert_eq!(lacks, None);

    // Some leave, and others come in.
    drop(served);
    eventually("room for a client", || WireClient::login(pgweir.address(), &login).is_ok());
}

/// The kernel goes on for two minutes behind an attempt that nobody waits for any more: where a
/// packet filter drops what comes, one descriptor after the other went beyond all limits.
#[test]
fn an_attempt_that_is_given_up_is_ended() {
    // Where the queue is full a newcomer is not answered.
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap().as_socket().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200));
    let _queue: Vec<_> = std::iter::from_fn(|| connect().ok()).collect();

    let name = "descriptors_dropped";
    let config = stage::trusting(&CLUSTER, name).pool("connect_timeout", "100");
    let config = config.pool("query_wait_timeout", "60000");
    let config = config.server_port(address.port()).user(name, "", 1);
    let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let mut client = WireClient::open(pgweir.address()).unwrap();
    client.send(&stage::login(name).startup_message()).unwrap();
    eventually("attempts to fail", || pgweir.log().matches("no connection to").count() >= 4);
    eventually("one attempt at most", || attempts(address.port()) <= 1);
}

/// Connections to a port of this machine that are not answered, whoever wants to make them.
fn attempts(port: u16) -> usize {
    const SYN_SENT: &str = "02";
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let peer = format!(":{port:04X} {SYN_SENT}");
    table.lines().filter(|line| line.contains(&peer)).count()
}

#[test]
fn what_holds_is_shown() {
    let name = "descriptors_shown";
    let pgweir = limited(name, SERVERS, 20, OWN + SERVERS + CLIENTS);
    let admin = Login::new("admin").password("admin").database("pgweir");
    let shown = WireClient::login(pgweir.address(), &admin).unwrap().query("SHOW CONFIG");
    let expected = format!("general.max_clients|{CLIENTS}|{CLIENTS}|yes");
    assert!(shown.contains(&expected), "{shown:?}");
}

/// What would not start is said before.
#[test]
fn a_check_counts_descriptors() {
    let config = stage::trusting(&CLUSTER, "app").general("worker_threads", "1");
    let config = config.user("app", "", u32::try_from(SERVERS).unwrap());
    let check = |name: &str, text: &str, hard: usize| {
        let path = check::file(name, text);
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={hard}:{hard}")).args([PROGRAM, "check", "--explain"]);
        let output = command.arg(&path).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let enough = OWN + SERVERS + CLIENTS;
    let (code, said) = check("derived", &config.text(6432), enough);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("\ngeneral.max_clients = {CLIENTS} ")), "{said}");
    let promises = config.general("max_clients", "12").text(6432);
    assert_eq!(check("promised", &promises, enough).0, Some(0));
    let (code, said) = check("too_few", &promises, enough - 1);
    let expected = "max_clients (12), up to 3 server connections and 104 of its own take 119 file \
                    descriptors, and there are 118";
    assert!(code == Some(1) && said.contains(expected), "{said}");
    let few = format!("exec prlimit --nofile=118:118 '{PROGRAM}' \"$@\"");
    let (status, log) = Pgweir::start_refused(program("refused", &few), |_| promises);
    assert!(status.code() == Some(1) && log.contains(expected), "{log}");
}

/// Something else has taken all descriptors but a few. Gives the limit.
fn leave_few(pgweir: &Pgweir) -> usize {
    let limit = descriptors(pgweir) + 20;
    let mut taking = Command::new("prlimit");
    taking.arg(format!("--pid={}", pgweir.pid())).arg(format!("--nofile={limit}:{limit}"));
    assert!(taking.status().unwrap().success());
    limit
}

#[test]
fn running_out_of_descriptors_holds_up_nobody_else() {
    let name = "descriptors";
    let pgweir = limited(name, 1, 1_000, 1_000);
    let login = stage::login(name);
    let mut client = WireClient::login(pgweir.address(), &login).unwrap();
    let before = descriptors(&pgweir);
    let limit = leave_few(&pgweir);

    // More than there are descriptors for: the kernel takes them, pgweir cannot.
    let mut crowd: Vec<_> = (0..2 * limit)
        .map(|_| {
            let mut client = WireClient::open(pgweir.address()).unwrap();
            client.send(&[login.startup_message(), query("SELECT 'late'")].concat()).unwrap();
            client
        })
        .collect();
    eventually("a client that cannot be taken", || pgweir.log().contains("cannot accept a client"));
    for _ in 0..100 {
        assert_eq!(client.query("SELECT 'on time'"), ["on time"]);
    }

    // When some leave, those behind them get their turn.
    while !crowd.is_empty() {
        for mut served in crowd.drain(..crowd.len().min(10)) {
            served.read_until_ready().unwrap();
            assert_eq!(served.read_until_ready().unwrap()[1].to_string(), "DataRow \"late\"");
        }
    }
    eventually("all descriptors to be given back", || descriptors(&pgweir) == before);
    stage::assert_sound(&pgweir);
}

/// Who is refused gives its descriptor back: all behind the first few were reset.
#[test]
fn few_descriptors_are_enough_to_tell_all_at_the_door_of_the_end() {
    let name = "descriptors_door";
    let pgweir = limited(name, 1, 1_000, 1_000);
    let login = stage::login(name);
    WireClient::login(pgweir.address(), &login).unwrap();
    leave_few(&pgweir);
    let clients = at_the_door(&pgweir, 200, &login.startup_message());
    pgweir.terminate();
    pgweir.signal(Signal::CONT);
    assert_told(clients);
    assert!(pgweir.wait().success());
}

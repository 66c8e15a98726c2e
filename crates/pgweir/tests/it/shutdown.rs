//! SIGTERM lets clients finish, SIGQUIT does not.

use std::net::TcpStream;

use pgweir_testkit::frames::{query, ssl_request};
use pgweir_testkit::{Login, Pgweir, Signal, WireClient, eventually};

use crate::reload::change;
use crate::stage::Stage;

/// The SQLSTATEs of what a connection still says.
fn last_words(client: &mut WireClient) -> Vec<String> {
    client.read_to_end().unwrap().iter().map(|message| message.sqlstate()).collect()
}

#[test]
fn sigterm_waits_for_transactions() {
    let stage = Stage::new("shutdown_drain", 1);
    stage.ask("CREATE TABLE t (a int); ALTER TABLE t OWNER TO shutdown_drain");
    let [mut working, mut idle, mut queued] = [stage.client(), stage.client(), stage.client()];
    working.query("BEGIN");
    queued.send(&query("SELECT 'still served'")).unwrap();
    stage.wait_for_waiters(1);

    stage.pgweir.terminate();
    assert_eq!(last_words(&mut idle), ["57P01"]);
    eventually("no new client to be taken", || TcpStream::connect(stage.address()).is_err());
    working.query("INSERT INTO t VALUES (1)");
    assert!(stage.pgweir.is_running());
    // Its own answer comes first, then the farewell.
    working.query("COMMIT");
    assert_eq!(last_words(&mut working), ["57P01"]);
    let reply = queued.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"still served\"");
    assert_eq!(last_words(&mut queued), ["57P01"]);
    assert!(stage.pgweir.wait().success());
    assert_eq!(stage.value("SELECT count(*) FROM t"), "1");
    stage.wait_for_backends(0, "true");
}

/// When it started, or with the last reload.
#[test]
fn sigterm_waits_no_longer_than_it_is_told() {
    for (name, at_start) in [("shutdown_started", "100"), ("shutdown_reloaded", "600000")] {
        let stage = Stage::with(name, 1, |config| config.general("shutdown_timeout", at_start));
        let [from, to] = [at_start, "100"].map(|time| format!("shutdown_timeout = {time}\n"));
        change(&stage, &from, &to);
        let mut client = stage.client();
        client.query("BEGIN");
        stage.pgweir.terminate();
        assert_eq!(last_words(&mut client), ["57P01"]);
        assert!(stage.pgweir.wait().success());
        stage.wait_for_backends(0, "true");
    }
}

/// Whether there is something to read.
fn has_been_told(client: &WireClient) -> bool {
    let stream = client.stream();
    stream.set_nonblocking(true).unwrap();
    let told = stream.peek(&mut [0]).is_ok();
    stream.set_nonblocking(false).unwrap();
    told
}

/// All of them leave within five seconds, though not all at once: when the first has been told
/// others are still answered, and leave behind that.
#[test]
fn sigterm_ends_a_crowd() {
    let stage = Stage::new("shutdown_crowd", 1);
    let mut clients: Vec<_> = (0..120).map(|_| stage.client()).collect();
    stage.pgweir.terminate();
    eventually("the first to be told", || clients.iter().any(has_been_told));
    let mut answered = 0;
    for client in &mut clients {
        // Whoever was told before may be reset for asking, behind what it was told.
        let _told_before = client.send(&query("SELECT 'still there'"));
        let mut heard = Vec::new();
        while let Ok(Some(message)) = client.read() {
            heard.push(message);
        }
        assert_eq!(heard.last().unwrap().sqlstate(), "57P01");
        answered += usize::from(heard.len() > 1);
    }
    assert!(answered > 0);
    assert!(stage.pgweir.wait().success());
    stage.wait_for_backends(0, "true");
}

/// So many who have connected, and said this, to a pgweir that stands still.
pub(crate) fn at_the_door(pgweir: &Pgweir, count: usize, first: &[u8]) -> Vec<WireClient> {
    pgweir.signal(Signal::STOP);
    let come = |_| {
        let mut client = WireClient::open(pgweir.address()).unwrap();
        client.send(first).unwrap();
        client
    };
    (0..count).map(come).collect()
}

/// Each was told that this is the end, whether or not it was let in before.
#[track_caller]
pub(crate) fn assert_told(clients: Vec<WireClient>) {
    for mut client in clients {
        let heard = last_words(&mut client);
        let words = heard.last().map(String::as_str);
        assert!(matches!(words, Some("57P01" | "57P03")), "{heard:?}");
    }
}

/// Who has connected and was not taken yet was reset, without a word of why.
#[test]
fn sigterm_tells_those_at_the_door() {
    let stage = Stage::new("shutdown_door", 1);
    let clients = at_the_door(&stage.pgweir, 200, &stage.login().startup_message());
    stage.pgweir.terminate();
    stage.pgweir.signal(Signal::CONT);
    assert_told(clients);
    assert!(stage.pgweir.wait().success());
}

/// So did those of whom there was no startup packet yet, when an admin had asked for the end.
#[test]
fn shutdown_tells_those_at_the_door() {
    for (name, ssl) in [("shutdown_silent", false), ("shutdown_ssl", true)] {
        let stage = Stage::new(name, 1);
        let admin = Login::new("admin").password("admin").database("pgweir");
        let mut admin = stage.client_as(&admin);
        let first = if ssl { ssl_request() } else { Vec::new() };
        let mut clients = at_the_door(&stage.pgweir, 900, &first);
        admin.send(&query("SHUTDOWN")).unwrap();
        stage.pgweir.signal(Signal::CONT);
        if ssl {
            clients.iter_mut().for_each(|client| assert_eq!(client.read_byte().unwrap(), b'N'));
        }
        assert_told(clients);
        assert!(stage.pgweir.wait().success());
    }
}

#[test]
fn sigquit_ends_at_once() {
    let stage = Stage::new("shutdown_quit", 1);
    let mut client = stage.client();
    client.query("BEGIN");
    stage.pgweir.quit();
    assert!(stage.pgweir.wait().success());
    // Whether as a close or as a reset: nothing follows.
    assert!(client.read_to_end().unwrap_or_default().is_empty());
    stage.wait_for_backends(0, "true");
}

//! What the operator is told.

use std::time::Duration;

use pgweir_engine::Event;

use crate::messages::{done, fatal, password, query, ready, startup};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// Somewhat more than query_wait_timeout.
const LONG: Duration = Duration::from_millis(5_100);

/// That an application keeps transactions open is found out by somebody who reads the log.
#[test]
fn clients_that_a_timeout_ends_are_told_of() {
    let cases = [
        ("client_idle_timeout", "", "terminating connection due to idle-session timeout"),
        (
            "idle_client_in_transaction_timeout",
            "BEGIN",
            "terminating connection due to idle-in-transaction timeout",
        ),
        ("transaction_timeout", "BEGIN", "terminating connection due to transaction timeout"),
    ];
    for (setting, first, message) in cases {
        let (stage, alice) = Stage::timed_out(setting, first);
        let log = stage.log();
        let [Event::ClientEnded { client, pool, cause }] = &log[..] else { panic!("{log:?}") };
        assert_eq!((*client, pool.as_str()), (alice.key().process_id, "db/user"));
        assert!(cause.starts_with(&format!("{message}: {setting} is 5 s")), "{cause}");
    }
}

/// A pool that is too small is what an operator acts on first; a line for each client that waits
/// would bury everything else.
#[test]
fn waits_that_are_over_are_told_of_now_and_then() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    let clients: Vec<Peer> = (0..3).map(|_| stage.client()).collect();
    alice.says([query("slow")]);
    let mut told = Vec::new();
    for round in 0..5 {
        if round < 3 {
            clients.iter().for_each(|client| client.says([query("SELECT")]));
        }
        stage.wait(LONG);
        for event in stage.log() {
            let Event::WaitOver { pool, cause, times, .. } = event else { panic!("{event:?}") };
            assert_eq!(pool, "db/user");
            let start = "all servers of pool \"db/user\" are busy: Waited 5.0 s ";
            assert!(cause.starts_with(start) && cause.ends_with(" pool_size is 1."), "{cause}");
            told.push(times);
        }
    }
    assert_eq!(told, [1, 5, 3], "the first at once, and every ten seconds the others");
}

/// The end of a burst is told of too, and each cause by itself.
#[test]
fn a_wait_that_is_over_is_told_of_within_ten_seconds() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    let waits = |since: usize| {
        let told = stage.log().into_iter().filter_map(|event| match event {
            Event::WaitOver { cause, times, .. } => Some((cause, times)),
            _ => None,
        });
        let told = told.map(|(cause, times)| (cause[..since].to_owned(), times));
        told.collect::<Vec<_>>()
    };
    bob.says([query("SELECT")]);
    stage.wait(LONG);
    assert_eq!(waits(15), [("all servers of ".to_owned(), 1)]);
    bob.says([query("SELECT")]);
    stage.wait(LONG);
    assert_eq!(waits(15), []);
    server.ends();
    bob.says([query("SELECT")]);
    stage.refuse_server();
    stage.wait(LONG);
    let (busy, gone) = ("all servers of ".to_owned(), "no server for p".to_owned());
    assert_eq!(waits(15), [(busy, 1), (gone, 1)]);
    stage.wait(4 * LONG);
    assert_eq!(waits(15), []);
}

/// One that waits for its greeting is refused, which is told of once.
#[test]
fn a_login_that_waits_in_vain_is_told_of_once() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    alice.says([query("slow")]);
    stage.newcomer(&[("application_name", "new")]);
    stage.wait(LONG);
    let log = stage.log();
    let [Event::LoginRefused { pool, cause, .. }] = &log[..] else { panic!("{log:?}") };
    assert_eq!(pool.as_deref(), Some("db/user"));
    assert!(cause.ends_with("pool_size is 1."), "{cause}");
}

/// Whichever way a login is refused, the line says what it was for and why.
#[test]
fn logins_that_are_refused_name_the_pool() {
    let refusal = |stage: &Stage| {
        let log = stage.log();
        let [Event::LoginRefused { pool, cause, .. }] = &log[..] else { panic!("{log:?}") };
        (pool.clone().unwrap_or_default(), cause.clone())
    };
    let asks = |stage: &Stage, parameters: &[(&str, &str)]| {
        let stranger = stage.stranger();
        stranger.says([startup(parameters)]);
        stranger
    };

    let (stage, _server, _alice) = Stage::ready(&Setup::with("max_clients = 1"));
    stage.newcomer(&[]);
    let cause = "sorry, too many clients already: max_clients is 1.".to_owned();
    assert_eq!(refusal(&stage), ("db/user".to_owned(), cause));

    let (stage, _server, _alice) = Stage::ready(&Setup::with("max_db_client_connections = 1"));
    stage.newcomer(&[]);
    let cause = "too many clients for database \"db\": There may be 1.".to_owned();
    assert_eq!(refusal(&stage), ("db/user".to_owned(), cause));

    let stage = Stage::new(&Setup::default());
    asks(&stage, &[("user", "nobody")]);
    assert_eq!(refusal(&stage).0, "nobody/nobody");
    asks(&stage, &[]);
    assert_eq!(refusal(&stage).0, "", "it has named none");

    let stage = Stage::new(&Setup { auth: "password", ..Setup::default() });
    stage.newcomer(&[]).says([password("wrong")]);
    assert_eq!(refusal(&stage).0, "db/user");
}

/// What a server has said before it went is why it went.
#[test]
fn a_server_that_said_why_it_ends_is_logged_with_that() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("SET a = 1")]);
    server.says([done(), ready()]);
    server.says([fatal("57P01")]);
    server.ends();
    assert!(alice.heard().ends_with("E(FATAL 57P01)"));
    let log = stage.log();
    let [Event::ServerLost { cause, .. }] = &log[..] else { panic!("{log:?}") };
    assert_eq!(cause, "as the server says");
}

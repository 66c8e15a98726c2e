//! A server that is kept for what its client has begun there is asked what is left of it.

use std::time::Duration;

use pgweir_engine::{Event, Mark, ServerActivity};

use crate::messages::{
    close_complete, close_statement, done, error, in_block, left, notification, parse_as,
    parse_complete, query, ready, set_to, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// A text that begins something, the letter that stands for it, and one that may end it.
const STATE: [(&str, &str, &str); 4] = [
    ("SELECT pg_advisory_lock(1)", "a", "SELECT pg_advisory_unlock(1)"),
    ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "h", "CLOSE c"),
    ("PREPARE p AS SELECT 1", "p", "DEALLOCATE p"),
    ("CREATE TEMP TABLE t (a int)", "t", "DROP TABLE t"),
];

/// The client runs a query, and hears of nothing else.
fn run(client: &Peer, server: &Peer, text: &str, status: Vec<u8>) {
    client.says([query(text)]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), status]);
    let heard = client.heard();
    assert!(["C Z", "C Z(T)"].contains(&heard.as_str()), "{heard}");
}

/// The server is asked, and says this.
fn is_left(server: &Peer, letters: &str) {
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left(letters)]);
}

#[test]
fn a_server_goes_back_when_nothing_is_left() {
    for (begins, letter, ends) in STATE {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        run(&alice, &server, begins, ready());
        is_left(&server, letter);
        assert_eq!(stage.servers(), [ServerActivity::Active], "{begins}");
        run(&alice, &server, "SELECT 1", ready());
        assert_eq!(server.heard(), "", "nothing has ended it");
        let bob = stage.client();
        bob.says([query("bob")]);
        run(&alice, &server, ends, ready());
        is_left(&server, "");
        assert_eq!(server.heard(), "Q(bob)", "{ends}");
    }
}

/// What was begun was undone, or has failed.
#[test]
fn what_never_came_about_keeps_no_server() {
    for (begins, ..) in STATE {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        run(&alice, &server, "BEGIN", in_block());
        run(&alice, &server, begins, in_block());
        assert_eq!(server.heard(), "", "its transaction goes on");
        run(&alice, &server, "ROLLBACK", ready());
        is_left(&server, "");
        assert_eq!(stage.servers(), [ServerActivity::Idle]);

        alice.says([query(begins)]);
        server.says([error("42501"), ready()]);
        assert_eq!(server.heard(), format!("Q({begins}) Q(left?)"));
        server.says([left("")]);
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
        assert_eq!(alice.heard(), "E(42501) Z");
    }
}

/// One end of many.
#[test]
fn what_is_left_keeps_the_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "CREATE TEMP TABLE t (); SELECT pg_advisory_lock(1)", ready());
    is_left(&server, "at");
    run(&alice, &server, "DROP TABLE t", ready());
    is_left(&server, "a");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    run(&alice, &server, "SELECT pg_advisory_unlock_all()", ready());
    is_left(&server, "");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What is prepared by the protocol where a server is kept is its client's own there.
#[test]
fn a_statement_of_its_own_that_is_closed_keeps_no_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    is_left(&server, "a");
    alice.says([parse_as("s", "SELECT 1"), sync()]);
    assert_eq!(server.heard(), "P(s=SELECT 1) S");
    server.says([parse_complete(), ready()]);
    assert_eq!(alice.heard(), "1 Z");
    run(&alice, &server, "SELECT pg_advisory_unlock(1)", ready());
    is_left(&server, "p");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    alice.says([close_statement("s"), sync()]);
    assert_eq!(server.heard(), "C(s) S");
    server.says([close_complete(), ready()]);
    assert_eq!(alice.heard(), "3 Z");
    is_left(&server, "");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What nobody can be asked for keeps it anyway.
#[test]
fn nothing_is_asked_where_that_changes_nothing() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "LOAD 'lib'", ready());
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    run(&alice, &server, "SELECT pg_advisory_unlock(1)", ready());
    assert_eq!(server.heard(), "");

    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    run(&alice, &server, "SELECT pg_advisory_unlock(1)", ready());
    assert_eq!(server.heard(), "");

    let (_stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "DROP TABLE t", ready());
    assert_eq!(server.heard(), "");
}

/// What its client has set meanwhile is asked for when it goes back.
#[test]
fn settings_are_asked_for_when_nothing_is_left() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    is_left(&server, "a");
    run(&alice, &server, "SET work_mem = '1MB'", ready());
    assert_eq!(server.heard(), "");
    run(&alice, &server, "SELECT pg_advisory_unlock(1)", ready());
    is_left(&server, "");
    assert_eq!(server.heard(), "Q(set to?)");
    server.says([set_to(&[("work_mem", "1MB")])]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert_eq!(alice.heard(), "");
}

/// A timeout of the client's, or a right that it lacks.
#[test]
fn a_server_that_does_not_say_is_kept_and_asked_again_behind_the_next_unit() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(server.heard(), "Q(left?)");
            server.says([error("57014"), ready()]);
        }
        assert_eq!(server.heard(), "");
        assert_eq!(stage.servers(), [ServerActivity::Active]);
        run(&alice, &server, "SELECT 1", ready());
    }
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("?")]);
    assert_eq!(stage.servers(), [ServerActivity::Active], "that is no answer");
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("", ""));
}

/// Whoever listens is told, whatever the server is asked for.
#[test]
fn a_notification_in_front_of_the_answer_is_heard() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "LISTEN a", ready());
    assert_eq!(server.heard(), "Q(left?)");
    server.says([notification(), left("l")]);
    assert_eq!(alice.heard(), "A");
}

#[test]
fn the_next_unit_waits_for_the_answer() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT pg_advisory_lock(1)")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT pg_advisory_lock(1)) Q(left?)");
    let bob = stage.client();
    alice.says([query("SELECT 1")]);
    stage.wait(Duration::from_millis(1));
    bob.says([query("bob")]);
    assert_eq!(server.heard(), "");
    server.says([left("a")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

#[test]
fn a_client_may_leave_while_its_server_is_asked() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("a")]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Of whom it was told since then that they keep a server and are silent: what for.
fn told(stage: &Stage) -> Vec<String> {
    let pins = stage.log().into_iter().filter_map(|event| match event {
        Event::PinIdle { pins, .. } => Some(pins),
        _ => None,
    });
    pins.collect()
}

/// A client that keeps a server and is silent is told of, once.
#[test]
fn silence_on_a_kept_server_is_news() {
    let setup = Setup::with("pin_idle_timeout = 60000\nlog_client_disconnections = false");
    let (stage, server, alice) = Stage::ready(&setup);
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    is_left(&server, "a");
    for _ in 0..2 {
        stage.wait(Duration::from_secs(59));
        assert_eq!(told(&stage), [""; 0]);
        run(&alice, &server, "SELECT 1", ready());
    }
    stage.wait(Duration::from_secs(200));
    assert_eq!(told(&stage), ["advisory lock"]);
    run(&alice, &server, "SELECT 1", ready());
    stage.wait(Duration::from_secs(61));
    assert_eq!(told(&stage), ["advisory lock"], "it was silent again");
    assert!(took(Mark::PinIdle));
}

/// It is no news of who waits for its server, or within a transaction, for which there are
/// other limits; nor where the pool's mode is that clients keep their servers.
#[test]
fn silence_that_has_a_reason_is_no_news() {
    let general = "pin_idle_timeout = 60000\nlog_client_disconnections = false";
    let (stage, server, alice) = Stage::ready(&Setup::with(general));
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    is_left(&server, "a");
    alice.says([query("SELECT pg_sleep(200)")]);
    stage.wait(Duration::from_secs(200));
    assert_eq!(told(&stage), [""; 0]);
    assert_eq!(server.heard(), "Q(SELECT pg_sleep(200))");
    server.says([done(), ready()]);
    alice.heard();
    run(&alice, &server, "BEGIN", in_block());
    stage.wait(Duration::from_secs(200));
    assert_eq!(told(&stage), [""; 0]);
    let (stage, server, alice) = Stage::ready(&Setup { general, ..Setup::of_mode("session") });
    run(&alice, &server, "SELECT 1", ready());
    stage.wait(Duration::from_secs(200));
    assert_eq!(told(&stage), [""; 0]);
}

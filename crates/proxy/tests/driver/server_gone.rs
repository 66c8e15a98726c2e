//! A server is lost, at any point: its client hears that its unit may or may not have been
//! carried out, or, if nothing of it was sent, nothing at all.

use pgweir_engine::{ClientState, Event};

use crate::messages::{
    columns, copy_data, copy_in, done, fatal, in_block, one_row, query, ready, row, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// The ways to be lost.
const WAYS: [fn(&Peer); 2] = [Peer::ends, Peer::breaks];

fn lost(stage: &Stage) -> bool {
    stage.log().iter().any(|event| matches!(event, Event::ServerLost { .. }))
}

/// The end of an idle server was never read: its connection leaked, and its place in the pool.
#[test]
fn an_idle_server_that_is_lost_is_replaced_when_it_is_needed() {
    for lose in WAYS {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        lose(&server);
        assert!(lost(&stage));
        assert!(server.is_aborted());
        assert_eq!((stage.servers(), stage.connections()), (vec![], 1));
        alice.says([query("SELECT")]);
        let next = stage.server();
        assert_eq!(next.heard(), "Q(SELECT)");
        next.says([one_row("1")]);
        assert_eq!(alice.heard(), "T D(1) C Z");
    }
}

/// Nobody knows whether the statement was carried out: it must not be run again.
#[test]
fn a_server_lost_with_a_unit_ends_its_client() {
    for lose in WAYS {
        for reply in [vec![], [columns(), row(b"1")].concat()] {
            let (stage, server, alice) = Stage::ready(&Setup::default());
            alice.says([query("INSERT")]);
            server.says([reply]);
            lose(&server);
            assert!(alice.heard().ends_with("E(FATAL 08006)"));
            assert!(alice.is_closed());
            assert_eq!((stage.servers(), stage.attempts()), (vec![], 0));
        }
    }
}

/// A transaction is gone with its server, also between two statements.
#[test]
fn a_server_lost_inside_a_transaction_ends_its_client() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert_eq!(alice.heard(), "C Z(T)");
    server.ends();
    assert_eq!(alice.heard(), "E(FATAL 08006)");
    assert!(alice.is_closed());
}

/// There is no place for an error inside of a message.
#[test]
fn a_server_lost_inside_a_message_aborts_its_client() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    server.sends(&row(&[b'x'; 100_000])[..50_000]);
    server.ends();
    assert_eq!(alice.heard_bytes().len(), 50_000);
    assert!(alice.is_aborted());
}

/// The server has said why it goes: a second reason would only confuse.
#[test]
fn a_server_that_says_goodbye_speaks_for_itself() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    server.says([fatal("57P01")]);
    server.ends();
    assert_eq!(alice.heard(), "E(FATAL 57P01)");
    assert!(alice.is_closed());
}

/// A server says why and closes; the next write to it failed before its words were read, and they
/// were lost.
#[test]
fn last_words_are_read_although_writing_has_failed() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("a")]);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    server.deafens();
    server.has_sent(&fatal("57P01"));
    server.has_ended();
    alice.says([query("b")]);
    assert_eq!(alice.heard(), "E(FATAL 57P01)");
    assert!(alice.is_closed());
}

/// The same, when it was not read because its client was slow.
#[test]
fn last_words_are_read_although_the_server_was_paused() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.takes(0);
    alice.says([query("a")]);
    server.says([row(&[b'x'; 100_000])]);
    assert!(!server.is_read());
    server.deafens();
    server.has_sent(&fatal("57P01"));
    server.has_ended();
    alice.says([query("b")]);
    assert!(server.is_aborted());
    alice.takes_all();
    let heard = alice.heard();
    assert!(heard.ends_with("E(FATAL 57P01)"), "{heard}");
    assert!(alice.is_closed());
}

/// A server that is lost while it is cleaned is nobody's loss.
#[test]
fn a_server_lost_while_it_is_cleaned_is_replaced() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    bob.says([query("bob")]);
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(BEGIN) Q(ROLLBACK)");
    server.ends();
    assert_eq!(stage.clients(), [ClientState::Waiting]);
    assert_eq!(stage.server().heard(), "Q(bob)");
}

/// Losing the server inside of a COPY ends the client, whatever it sends on.
#[test]
fn a_server_lost_inside_a_copy_ends_its_client() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN")]);
    server.says([copy_in()]);
    alice.says([copy_data(b"1\n")]);
    server.ends();
    alice.says([copy_data(b"2\n")]);
    assert_eq!(alice.heard(), "G E(FATAL 08006)");
    assert!(alice.is_closed());
}

/// The next query after a loss gets a new server, and others in the queue do too.
#[test]
fn who_waits_gets_another_server_than_the_one_that_is_lost() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("bob")]);
    server.ends();
    assert!(alice.is_closed());
    assert_eq!(stage.attempts(), 1);
    assert_eq!(stage.server().heard(), "Q(bob)");
}

/// A server that is lost during its login is an attempt that has failed.
#[test]
fn a_server_lost_during_its_login_is_tried_again() {
    for lose in WAYS {
        let stage = Stage::new(&Setup::default());
        let newcomer = stage.newcomer(&[]);
        let server = stage.bare_server();
        lose(&server);
        assert!(server.is_aborted());
        assert!(!lost(&stage));
        stage.wait(std::time::Duration::from_millis(51));
        stage.server();
        assert!(newcomer.is_greeted());
    }
}

/// A server that said FATAL right behind its greeting had been lent by then: its client, which
/// had sent nothing to it, was ended, with bytes that were taken from the wrong place.
#[test]
fn a_server_lost_right_behind_its_login_is_replaced() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    server.ends();
    alice.says([query("SELECT")]);
    let next = stage.bare_server();
    next.says([stage.welcome(&next), fatal("57P01")]);
    assert!(next.is_aborted());
    let last = stage.server();
    assert_eq!((last.heard().as_str(), alice.heard().as_str()), ("Q(SELECT)", ""));
}

/// The same, when it went to the next client in the call in which it was given back.
#[test]
fn a_server_lost_right_behind_a_unit_is_replaced_for_the_next_client() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    server.says([done(), ready(), fatal("57P01")]);
    assert_eq!((alice.heard().as_str(), bob.heard().as_str()), ("C Z", ""));
    assert!(server.is_aborted());
    assert_eq!(stage.server().heard(), "Q(b)");
}

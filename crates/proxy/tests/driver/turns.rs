//! What is ready together: units go to servers, and output goes out, at the end of a turn, and
//! whatever comes before that must find them as good as done.

use crate::messages::{columns, done, one_row, query, ready, row, terminate};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// Bob waits for the server that alice has; the turn in which she is done is not over.
fn granted() -> (Stage, Peer, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    assert_eq!(server.heard(), "Q(a)");
    stage.keep_turn_open();
    server.says([done(), ready()]);
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("", ""));
    (stage, server, alice, bob)
}

#[test]
fn the_end_of_a_turn_sends_what_was_gathered() {
    let (stage, server, alice, _bob) = granted();
    stage.end_turn();
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(b)", "C Z"));
}

/// The unit was not sent: a cancel must not pass it by and let it run.
#[test]
fn a_cancel_finds_a_unit_that_is_about_to_be_sent() {
    let (stage, server, alice, bob) = granted();
    let requester = stage.cancel(&bob);
    stage.end_turn();
    assert!(requester.is_closed());
    assert_eq!((alice.heard().as_str(), bob.heard().as_str()), ("C Z", "E(57014) Z"));
    assert_eq!(server.heard(), "", "what was cancelled is not run");
    bob.says([query("again")]);
    assert_eq!(server.heard(), "Q(again)");
}

/// The unit was taken: a client that is asked to leave leaves behind it.
#[test]
fn a_unit_that_is_about_to_be_sent_is_run_before_its_client_is_asked_to_leave() {
    let (stage, server, alice, bob) = granted();
    stage.drain();
    stage.end_turn();
    assert_eq!(alice.heard(), "C Z E(FATAL 57P01)");
    assert_eq!(server.heard(), "Q(b)");
    server.says([done(), ready()]);
    assert_eq!(bob.heard(), "C Z E(FATAL 57P01)");
}

/// Whoever waits next gets the server of a client that is gone before its unit was sent.
#[test]
fn a_client_that_is_gone_before_its_unit_is_sent_leaves_the_server_clean() {
    let (stage, server, alice, bob) = granted();
    bob.breaks();
    alice.says([query("next")]);
    stage.end_turn();
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(next)", "C Z"));
}

/// Its bytes were written before it left, as far as anybody can tell.
#[test]
fn a_client_that_leaves_gets_what_was_gathered_for_it() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("a")]);
    assert_eq!(server.heard(), "Q(a)");
    stage.keep_turn_open();
    server.says([one_row("1")]);
    alice.says([terminate()]);
    assert_eq!(alice.heard(), "T D(1) C Z");
    assert!(alice.is_closed());
    stage.end_turn();
}

/// What is long does not wait for the end of the turn, but for what was gathered before it; and
/// nothing is sent twice.
#[test]
fn long_and_short_output_keep_their_order() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("a")]);
    assert_eq!(server.heard(), "Q(a)");
    stage.keep_turn_open();
    let pieces = [columns(), row(&[b'x'; 10_000]), row(b"y"), row(&[b'z'; 10_000])];
    for piece in &pieces {
        server.says([piece]);
    }
    server.says([done(), ready()]);
    stage.end_turn();
    let heard = alice.heard_bytes();
    assert!(heard == [pieces.concat(), done(), ready()].concat(), "{} bytes", heard.len());
}

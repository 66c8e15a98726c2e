//! Peers that vanish without a word: no end of the stream comes, and nothing is acknowledged.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{done, in_block, query, ready};
use crate::stage::{Setup, Stage, took};

/// Its transaction is undone and its server is for others.
#[test]
fn a_client_that_has_vanished_is_gone() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    server.heard();
    for _ in 0..2 {
        stage.look_for_silence(&[&alice]);
        assert!(alice.is_open());
    }
    stage.look_for_silence(&[&alice]);
    assert!(alice.is_aborted());
    assert_eq!(server.heard(), "Q(ROLLBACK)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert!(took(Mark::SilentGivenUp));
}

/// Its client is told, as of every server that is lost.
#[test]
fn a_server_that_has_vanished_is_lost() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    for _ in 0..3 {
        assert!(server.is_open());
        stage.look_for_silence(&[&server]);
    }
    assert!(server.is_aborted());
    assert_eq!(alice.heard(), "E(08007) Z");
    assert_eq!(stage.servers(), []);
}

/// So is one that works for nobody any more.
#[test]
fn a_server_that_has_vanished_behind_its_client_is_lost() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    alice.breaks();
    for _ in 0..3 {
        assert_eq!(stage.servers(), [ServerActivity::Tested]);
        stage.look_for_silence(&[&server]);
    }
    assert!(server.is_aborted());
    assert_eq!(stage.servers(), []);
}

/// A network that is bad for a while is not the end.
#[test]
fn who_answers_in_between_is_there() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    for silent in [&[&alice, &server][..], &[&alice], &[&server], &[&alice], &[&alice], &[]] {
        stage.look_for_silence(silent);
    }
    assert!(alice.is_open() && server.is_open());
    // Nor does what was before the last transaction count.
    stage.look_for_silence(&[&alice]);
    stage.look_for_silence(&[&alice]);
    server.says([done(), ready()]);
    stage.look_for_silence(&[&alice]);
    alice.says([query("SELECT")]);
    stage.look_for_silence(&[&alice]);
    assert!(alice.is_open());
}

/// A silence that began behind the last look is another one, however long it may have been before.
#[test]
fn who_has_answered_between_two_looks_is_there() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    // How long she has been silent at the first look is all the same: that is the beginning.
    for (silence, gone) in [(0, false), (11, false), (9, false), (11, false), (11, true)] {
        stage.wait(Duration::from_secs(10));
        stage.look_at_silence(&alice, Duration::from_secs(silence));
        assert_eq!(alice.is_aborted(), gone);
    }
}

/// Who keeps nothing from others is not looked at: that is what keepalive is for.
#[test]
fn who_is_idle_may_be_silent() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    for _ in 0..9 {
        stage.look_for_silence(&[&alice, &server]);
    }
    assert!(alice.is_open() && server.is_open());
}

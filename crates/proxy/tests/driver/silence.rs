//! Peers that vanish without a word: no end of the stream comes, and nothing is acknowledged.

use pgweir_engine::ServerActivity;

use crate::messages::{done, in_block, query, ready};
use crate::stage::{Setup, Stage};

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
    assert_eq!(alice.heard(), "E(FATAL 08006)");
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

/// Who keeps nothing from others is not looked at: that is what keepalive is for.
#[test]
fn who_is_idle_may_be_silent() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    for _ in 0..9 {
        stage.look_for_silence(&[&alice, &server]);
    }
    assert!(alice.is_open() && server.is_open());
}

//! Cancels of what waits while a client's server does something of pgweir's.

use std::time::Duration;

use pgweir_engine::Mark;

use crate::messages::{
    bind, cancel_request, copy_data, copy_done, done, execute, flush, one_row, parse, query, ready,
    set_to, sync,
};
use crate::peer::Peer;
use crate::pipelining::{braked, shared};
use crate::stage::{Setup, Stage, took};

const MEMORY: (&str, &str) = ("work_mem", "1024");

/// A stage with a client whose server is asked what the client has set it to.
fn asked() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SET work_mem = '1MB'")]);
    assert_eq!(server.heard(), "Q(SET work_mem = '1MB')");
    server.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("C Z", "Q(set to?)"));
    (stage, server, alice)
}

/// The simulator's: nothing of its client's runs, so the request came to nothing, and the statement
/// was run.
#[test]
fn a_unit_that_is_held_is_cancelled_by_us() {
    let (stage, server, alice) = asked();
    alice.says([query("SELECT pg_sleep(60)"), query("next")]);
    let requester = stage.cancel(&alice);
    assert!(requester.is_closed());
    assert_eq!((alice.heard().as_str(), stage.cancels()), ("E(57014) Z", 0));
    assert_eq!(server.heard(), "");
    server.says([set_to(&[MEMORY])]);
    assert_eq!(server.heard(), "Q(next)");
}

/// It was refused once.
#[test]
fn what_comes_behind_such_a_unit_is_run() {
    let (stage, server, alice) = asked();
    alice.says([query("first")]);
    stage.cancel(&alice);
    stage.cancel(&alice);
    assert_eq!(alice.heard(), "E(57014) Z");
    alice.says([query("second")]);
    server.says([set_to(&[MEMORY])]);
    assert_eq!(server.heard(), "Q(second)");
    server.says([one_row("1")]);
    assert_eq!(alice.heard(), "T D(1) C Z");
}

/// What its server was asked is not cancelled.
#[test]
fn who_has_sent_nothing_more_has_nothing_cancelled() {
    let (stage, server, alice) = asked();
    let requester = stage.cancel(&alice);
    assert!(requester.is_closed());
    alice.says([query("SELECT")]);
    server.says([set_to(&[MEMORY])]);
    assert_eq!((server.heard().as_str(), stage.cancels()), ("Q(SELECT)", 0));
}

/// Nor is a message of which only a part has come, which nothing holds back.
#[test]
fn what_has_not_come_whole_is_not_cancelled() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("SELECT 1")]);
    server.says([one_row("1")]);
    let text = query("SELECT 2");
    let (half, rest) = text.split_at(8);
    alice.sends(half);
    assert!(stage.cancel(&alice).is_closed());
    alice.sends(rest);
    assert_eq!((server.heard().as_str(), stage.cancels()), ("Q(SELECT 1) Q(SELECT 2)", 0));
    server.says([one_row("2")]);
    assert_eq!(alice.heard(), "T D(1) C Z T D(2) C Z");
}

/// A batch that was refused, and goes on, is refused once.
#[test]
fn the_rest_of_such_a_unit_is_no_other() {
    let (stage, server, alice) = asked();
    alice.says([parse("INSERT"), bind(), execute(), flush()]);
    stage.cancel(&alice);
    assert_eq!(alice.heard(), "E(57014)");
    alice.says([parse("INSERT")]);
    stage.cancel(&alice);
    alice.says([bind(), execute(), sync()]);
    assert_eq!(alice.heard(), "Z");
    server.says([set_to(&[MEMORY])]);
    assert_eq!((server.heard().as_str(), stage.cancels()), ("", 0));
}

/// The simulator's: the Sync behind the data of a COPY counted as more that rests on it, where the
/// Parse had come in pieces, which cost its client the session.
#[test]
fn a_sync_behind_such_a_unit_rests_on_nothing() {
    let (stage, server, alice) = asked();
    let copy = parse("COPY t FROM STDIN");
    alice.sends(&copy[..8]);
    stage.cancel(&alice);
    assert_eq!(alice.heard(), "E(57014)");
    let data = [copy_data(b"1"), copy_done(), sync()];
    alice.says([copy[8..].to_vec(), bind(), execute(), sync()].into_iter().chain(data));
    assert_eq!(alice.heard(), "Z");
    server.says([set_to(&[MEMORY])]);
    assert_eq!(server.heard(), "S");
    server.says([ready()]);
    assert_eq!(alice.heard(), "Z");
}

/// The simulator's: a Flush in front of what is held hid that there is anything.
#[test]
fn a_unit_behind_a_flush_that_is_held_is_cancelled_by_us() {
    let (stage, server, alice) = asked();
    alice.says([flush(), parse("SELECT pg_sleep(60)"), bind(), execute(), sync()]);
    assert!(stage.cancel(&alice).is_closed());
    assert_eq!((alice.heard().as_str(), stage.cancels()), ("E(57014) Z", 0));
    server.says([set_to(&[MEMORY])]);
    assert_eq!(server.heard(), "");
}

/// It asks for nothing itself, and what comes behind the cancel is run.
#[test]
fn a_flush_that_is_held_is_not_cancelled() {
    let (stage, server, alice) = asked();
    alice.says([flush()]);
    assert!(stage.cancel(&alice).is_closed());
    alice.says([query("next")]);
    server.says([set_to(&[MEMORY])]);
    assert!(server.heard().ends_with("Q(next)"));
}

/// The simulator's: what a unit was held for was over, and the unit not yet looked at again, when
/// the request came, which found nothing.
#[test]
fn a_unit_that_is_about_to_be_sent_is_cancelled_too() {
    let (stage, server, alice) = asked();
    alice.says([query("SELECT pg_sleep(60)")]);
    stage.keep_turn_open();
    server.says([set_to(&[MEMORY])]);
    let requester = stage.cancel(&alice);
    stage.end_turn();
    assert!(took(Mark::CancelBehindWaking));
    assert_eq!(server.heard(), "Q(SELECT pg_sleep(60))");
    stage.wait(Duration::from_millis(100));
    stage.assert_cancels(&server, &alice, &requester);
}

/// A driver that does not wait for the answer has closed its connection by then.
#[test]
fn a_request_that_waits_for_its_turn_outlives_its_connection() {
    let (stage, server, alice) = asked();
    alice.says([query("SELECT pg_sleep(60)")]);
    stage.keep_turn_open();
    server.says([set_to(&[MEMORY])]);
    let requester = stage.stranger();
    requester.says_and_ends([cancel_request(&alice.key())]);
    stage.end_turn();
    assert!(took(Mark::CancelBehindWaking));
    stage.wait(Duration::from_millis(100));
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
}

/// It has no server by then, and shares one with its next unit.
#[test]
fn a_unit_that_is_about_to_share_a_server_is_cancelled_too() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("SELECT 0"), query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    stage.keep_turn_open();
    server.says([one_row("a")]);
    stage.cancel(&clients[0]);
    stage.end_turn();
    assert!(took(Mark::CancelBehindWaking));
    assert_eq!(
        (clients[0].heard().as_str(), server.heard().as_str()),
        ("T D(a) C Z", "Q(SELECT 1)")
    );
    stage.wait(Duration::from_millis(100));
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
}

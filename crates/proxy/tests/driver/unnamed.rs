//! The unnamed statement is the client's, wherever it is served.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    bind, bind_complete, close_complete, close_statement, columns, describe_statement, done, error,
    execute, fatal, no_data, no_parameters, parse, parse_complete, query, ready, set_to, sync,
    terminate,
};
use crate::named::wide;
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// The client makes its unnamed statement.
fn prepare(client: &Peer, server: &Peer, text: &str) {
    client.says([parse(text), sync()]);
    assert_eq!(server.heard(), format!("P({text}) S"));
    server.says([parse_complete(), ready()]);
    assert_eq!(client.heard(), "1 Z");
}

/// The client runs its unnamed statement; the server hears this before the Bind, and answers it.
fn run(client: &Peer, server: &Peer, before: &str, answer: Vec<u8>) {
    client.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), format!("{before}B E S"));
    server.says([answer, bind_complete(), done(), ready()]);
    assert_eq!(client.heard(), "2 C Z");
}

/// The client is told what the rows of its unnamed statement are like, and another takes its place.
fn replaced(client: &Peer, other: &Peer, server: &Peer) {
    client.says([parse("SELECT"), describe_statement(""), sync()]);
    server.says([parse_complete(), no_parameters(), columns(), ready()]);
    server.heard();
    prepare(other, server, "other");
    client.heard();
}

/// It is run: so it is made again, and the server is asked what its rows are like.
fn asked_again(client: &Peer, server: &Peer) {
    client.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(SELECT) D H");
}

/// A stage with one server and two clients.
fn shared() -> (Stage, Peer, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    (stage, server, alice, bob)
}

/// The Bind ran whatever statement the last client had made.
#[test]
fn it_is_made_again_where_another_was_made() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    prepare(&bob, &server, "bob");
    run(&alice, &server, "P(alice) ", parse_complete());
    run(&bob, &server, "P(bob) ", parse_complete());
}

/// A Parse that is not needed costs the server its time.
#[test]
fn it_is_not_made_again_where_it_is() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    bob.says([sync()]);
    server.says([ready()]);
    server.heard();
    run(&alice, &server, "", vec![]);
    run(&alice, &server, "", vec![]);
}

/// Another server of the pool knows nothing of it.
#[test]
fn it_is_made_again_on_another_server() {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
    prepare(&alice, &first, "alice");
    let bob = stage.client();
    bob.says([query("slow")]);
    assert_eq!(first.heard(), "Q(slow)");
    alice.says([bind(), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(alice) B E S");
    second.says([parse_complete(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
}

/// A client that has none must not run a stranger's.
#[test]
fn who_has_none_finds_none() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    bob.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "C B E S");
    server.says([close_complete(), error("26000"), ready()]);
    assert_eq!(bob.heard(), "E(26000) Z");
    // And alice's is not where it was.
    run(&alice, &server, "P(alice) ", parse_complete());
}

/// Each simple query ends the unnamed statement, as PostgreSQL has it.
#[test]
fn a_simple_query_ends_it() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    alice.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    prepare(&bob, &server, "bob");
    alice.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "C B E S");
}

/// Describe asks for it as Bind does.
#[test]
fn a_describe_brings_it_too() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    prepare(&bob, &server, "bob");
    alice.says([describe_statement(""), sync()]);
    assert_eq!(server.heard(), "P(alice) D S");
    server.says([parse_complete(), no_parameters(), no_data(), ready()]);
    assert_eq!(alice.heard(), "t n Z");
}

/// Once it is brought, the rest of the batch has it.
#[test]
fn it_is_brought_once_for_a_batch() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    prepare(&bob, &server, "bob");
    alice.says([describe_statement(""), bind(), execute(), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(alice) D B E B E S");
    let each = [bind_complete(), done()].concat();
    server.says([parse_complete(), no_parameters(), no_data(), each.clone(), each, ready()]);
    assert_eq!(alice.heard(), "t n 2 C 2 C Z");
}

/// Closing it by the protocol ends it for its client only.
#[test]
fn a_close_ends_it() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    prepare(&bob, &server, "bob");
    alice.says([close_statement(""), sync()]);
    assert_eq!(server.heard(), "C S");
    server.says([close_complete(), ready()]);
    assert_eq!(alice.heard(), "3 Z");
    run(&bob, &server, "P(bob) ", parse_complete());
    alice.says([bind(), sync()]);
    assert_eq!(server.heard(), "C B S");
}

/// What its client has closed is not brought back behind the Close.
#[test]
fn it_is_not_made_again_behind_its_close() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    prepare(&bob, &server, "bob");
    alice.says([close_statement(""), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "C B E S");
    server.says([close_complete(), error("26000"), ready()]);
    assert_eq!(alice.heard(), "3 E(26000) Z");
}

/// A Parse that fails when we make it again fails for the client, which knows nothing of it, as
/// the Bind would. It still has its statement: the next try makes it again.
#[test]
fn an_error_in_making_it_again_is_the_clients() {
    let (stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    prepare(&bob, &server, "bob");
    alice.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(alice) B E S");
    server.says([error("42P01"), ready()]);
    assert_eq!(alice.heard(), "E(42P01) Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    run(&alice, &server, "P(alice) ", parse_complete());
}

/// After a Parse that failed nobody knows what the server has: it may be the one before.
#[test]
fn what_a_failed_parse_leaves_is_believed_by_nobody() {
    for its_own in [false, true] {
        let (_stage, server, alice, bob) = shared();
        let (first, text) = if its_own { (&alice, "alice") } else { (&bob, "bob") };
        prepare(first, &server, text);
        alice.says([parse("bad"), sync()]);
        assert_eq!(server.heard(), "P(bad) S");
        server.says([error("42601"), ready()]);
        assert_eq!(alice.heard(), "E(42601) Z");
        alice.says([bind(), sync()]);
        assert_eq!(server.heard(), "C B S");
        server.says([close_complete(), error("26000"), ready()]);
        assert_eq!(alice.heard(), "E(26000) Z");
        if !its_own {
            run(&bob, &server, "P(bob) ", parse_complete());
        }
    }
}

/// A Parse skipped behind an error made nothing.
#[test]
fn a_parse_that_was_skipped_made_nothing() {
    let (_stage, server, alice, bob) = shared();
    prepare(&alice, &server, "alice");
    prepare(&bob, &server, "bob");
    alice.says([describe_statement("unknown"), parse("skipped"), sync()]);
    server.heard();
    server.says([error("26000"), ready()]);
    assert_eq!(alice.heard(), "E(26000) Z");
    run(&alice, &server, "P(alice) ", parse_complete());
}

/// What is too long to keep exists on one server only: the client stays there.
#[test]
fn a_long_one_keeps_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse(&format!("SELECT '{}'", "x".repeat(20_000))), sync()]);
    server.heard_bytes();
    server.says([parse_complete(), ready()]);
    assert_eq!(alice.heard(), "1 Z");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    run(&alice, &server, "", vec![]);
    // It goes with the statement, and leaves nothing that DISCARD ALL were needed for.
    prepare(&alice, &server, "short");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    alice.says([terminate()]);
    assert_eq!(server.heard(), "");
}

/// Whether the statement is there is known only when the units before are settled.
#[test]
fn a_bind_in_a_pipeline_waits_for_the_unit_before() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("a"), bind(), execute(), sync(), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(a) B E S");
    server.says([parse_complete(), bind_complete(), done(), ready()]);
    assert_eq!(server.heard(), "B E S");
    server.says([bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "1 2 C Z 2 C Z");
}

/// What it does to a server it does wherever it is run, and not only where it was made: the next
/// client got a server whose settings had been taken away.
#[test]
fn a_server_is_cleaned_wherever_it_was_reset() {
    for text in ["RESET ALL", "RESET ROLE", "DISCARD ALL"] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        prepare(&alice, &server, text);
        assert_eq!(server.heard(), "Q(set to?)", "it may have been run");
        server.says([set_to(&[])]);
        alice.says([bind(), execute(), sync()]);
        assert_eq!(server.heard(), format!("P({text}) B E S"));
        server.says([parse_complete(), bind_complete(), done(), ready()]);
        assert_eq!(alice.heard(), "2 C Z");
        assert_eq!(server.heard(), "Q(set to?)", "{text}");
        server.says([set_to(&[])]);
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
}

/// Other rows than the client was told of would be taken for them: it gets the error that it would
/// get on a connection of its own, as often as it asks.
#[test]
fn other_rows_than_the_client_knows_are_an_error() {
    let (_stage, server, alice, bob) = shared();
    alice.says([parse("SELECT"), describe_statement(""), sync()]);
    server.says([parse_complete(), no_parameters(), columns(), ready()]);
    assert_eq!(alice.heard(), "1 t T Z");
    server.heard();
    for _ in 0..2 {
        prepare(&bob, &server, "bob");
        alice.says([bind(), execute(), sync()]);
        // What is held back is sent when it is known what it comes to.
        assert_eq!(server.heard(), "P(SELECT) D H");
        server.says([parse_complete(), no_parameters(), no_data()]);
        assert_eq!(server.heard(), "B(pgweir_) E S");
        server.says([error("26000"), ready()]);
        assert_eq!(alice.heard(), "E(0A000) Z");
        // Its parameters are told before.
        alice.says([describe_statement(""), sync()]);
        assert_eq!(server.heard(), "P(SELECT) D H");
        server.says([parse_complete(), no_parameters(), no_data()]);
        assert_eq!(server.heard(), "D(pgweir_) S");
        server.says([error("26000"), ready()]);
        assert_eq!(alice.heard(), "t E(0A000) Z");
    }
    alice.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(SELECT) D H");
    server.says([parse_complete(), no_parameters(), columns()]);
    assert_eq!(server.heard(), "B E S");
    server.says([bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
    prepare(&alice, &server, "SELECT");
    run(&alice, &server, "", vec![]);
}

/// However often the client is looked at before that is known.
#[test]
fn what_its_rows_are_is_asked_once_and_waited_for() {
    let (_stage, server, alice, bob) = shared();
    replaced(&alice, &bob, &server);
    asked_again(&alice, &server);
    for answer in [parse_complete(), no_parameters()] {
        alice.says([query("more")]);
        assert_eq!(server.heard(), "");
        server.says([answer]);
        alice.says([query("more")]);
        assert_eq!(server.heard(), "");
    }
    server.says([no_data()]);
    assert!(server.heard().starts_with("B(pgweir_) E S"));
}

/// That its rows have changed is said of the one that was made again for a unit, and forgotten with
/// that unit.
#[test]
fn what_is_said_of_one_is_not_said_of_the_next() {
    let (stage, server, alice, bob) = shared();
    replaced(&alice, &bob, &server);
    asked_again(&alice, &server);
    stage.keep_turn_open();
    server.says([parse_complete(), no_parameters(), no_data()]);
    let requester = stage.cancel(&alice);
    stage.end_turn();
    assert!(requester.is_closed());
    assert_eq!(alice.heard(), "E(57014) Z");
    assert_eq!(server.heard(), "S");
    server.says([ready()]);
    alice.says([parse("other"), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(other) B E S");
}

/// Nor are the rows that it has by now taken for those that the client knows.
#[test]
fn what_is_said_of_one_that_is_cancelled_is_looked_for_again() {
    let (stage, server, alice, bob) = shared();
    replaced(&alice, &bob, &server);
    asked_again(&alice, &server);
    stage.keep_turn_open();
    server.says([parse_complete(), no_parameters(), no_data()]);
    stage.cancel(&alice);
    stage.end_turn();
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("E(57014) Z", "S"));
    server.says([ready()]);
    asked_again(&alice, &server);
    server.says([parse_complete(), no_parameters(), no_data()]);
    assert!(server.heard().starts_with("B(pgweir_) E S"));
}

/// It counts as a part of the transaction that it stands in front of.
#[test]
fn a_server_that_does_not_say_what_rows_are_like_has_the_time_of_a_transaction() {
    let (stage, server, first) = Stage::ready(&Setup::with("transaction_timeout = 5000"));
    let other = stage.client();
    replaced(&first, &other, &server);
    // This does not count.
    stage.wait(Duration::from_secs(6));
    asked_again(&first, &server);
    stage.wait(Duration::from_millis(4_900));
    assert_eq!(first.heard(), "");
    stage.wait(Duration::from_millis(300));
    assert_eq!(first.heard(), "E(FATAL 25P04)");
}

/// Who waits for that when the server is lost waits for another, and may leave when there is none.
#[test]
fn nobody_waits_for_what_a_lost_server_was_to_say() {
    let (stage, server, alice, bob) = shared();
    replaced(&alice, &bob, &server);
    asked_again(&alice, &server);
    server.breaks();
    stage.bare_server().says([fatal("28P01")]);
    assert_eq!(alice.heard(), "E(28P01) Z");
    alice.ends();
    assert!(alice.is_closed());
}

/// Of one that sets something nothing was run there: it is made again on the next.
#[test]
fn what_was_made_again_on_a_lost_server_has_set_nothing() {
    let (stage, server, alice, bob) = shared();
    let text = "SELECT set_config('work_mem', '1MB', false)";
    alice.says([parse(text), describe_statement(""), sync()]);
    server.says([parse_complete(), no_parameters(), columns(), ready()]);
    assert_eq!(server.heard(), format!("P({text}) D S Q(set to?)"));
    server.says([set_to(&[])]);
    prepare(&bob, &server, "bob");
    alice.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), format!("P({text}) D H"));
    server.breaks();
    let next = stage.server();
    assert_eq!(next.heard(), format!("P({text}) D H"));
    next.says([parse_complete(), no_parameters(), columns()]);
    assert_eq!(next.heard(), "B E S");
    next.says([bind_complete(), done(), ready()]);
    assert_eq!((alice.heard().as_str(), next.heard().as_str()), ("1 t T Z 2 C Z", "Q(set to?)"));
}

/// What was made again cannot be read any more: the client hears that.
#[test]
fn what_cannot_be_made_again_is_an_error() {
    let (_stage, server, alice, bob) = shared();
    replaced(&alice, &bob, &server);
    asked_again(&alice, &server);
    server.says([error("42P01")]);
    assert_eq!(server.heard(), "B E S");
    server.says([ready()]);
    assert_eq!(alice.heard(), "E(42P01) Z");
}

/// What its rows are like may be too long to be kept: then it is believed.
#[test]
fn rows_of_the_unnamed_statement_that_say_too_much_are_not_looked_at() {
    let (_stage, server, client) = Stage::ready(&Setup::default());
    client.says([parse("SELECT"), describe_statement(""), sync()]);
    server.says([parse_complete(), no_parameters(), wide(6_000), ready()]);
    assert!(took(Mark::UnnamedRowsUnknown));
    client.heard();
    server.heard();
    run(&client, &server, "", Vec::new());
}

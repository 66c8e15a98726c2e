//! Whose last values of sequences a server tells of.

use std::sync::Arc;
use std::time::Duration;

use pgweir_engine::{Loud, Mark, ServerActivity};
use pgweir_sql::{Catalogue, Kind, Object, ObjectId, Source, Use, When};

use crate::messages::{
    bind, bind_complete, bind_to, cancel_request, close_complete, describe_statement, done,
    done_with, error, execute, flush, in_block, in_failed_block, left, no_data, no_parameters,
    parse, parse_as, parse_complete, query, ready, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

const ADVANCE: &str = "SELECT nextval('s')";
const ASK: &str = "SELECT currval('s')";

/// What a server hears that is to forget, in front of a unit.
const FORGET: &str = "P(pgweir_sequences=DISCARD SEQUENCES) B(pgweir_sequences) E C \
                      C(pgweir_sequences) S";
/// The same within a batch, of which something waits for that.
const FORGET_NOW: &str = "P(pgweir_sequences=DISCARD SEQUENCES) B(pgweir_sequences) E C \
                          C(pgweir_sequences) H";

/// That it has forgotten, without the end of the unit.
fn forgotten() -> Vec<u8> {
    let done = done_with("DISCARD SEQUENCES");
    [parse_complete(), bind_complete(), done, close_complete(), close_complete()].concat()
}

/// The client runs a query, its server hears no more than that, and answers with this.
fn run(client: &Peer, server: &Peer, text: &str, status: Vec<u8>) {
    client.heard();
    client.says([query(text)]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), status]);
    assert!(client.heard().starts_with("C Z"));
}

/// The client runs a query that asks, in front of which its server forgets.
fn run_forgetting(client: &Peer, server: &Peer, text: &str, status: Vec<u8>) {
    client.heard();
    client.says([query(text)]);
    assert_eq!(server.heard(), FORGET);
    server.says([forgotten(), status.clone()]);
    assert_eq!(client.heard(), "", "that is ours");
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), status]);
    assert!(client.heard().starts_with("C Z"));
}

/// A stage with one server, and two clients.
fn two() -> (Stage, Peer, Peer, Peer) {
    two_with(&Setup::default())
}

fn two_with(setup: &Setup) -> (Stage, Peer, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(setup);
    let bob = stage.client();
    server.heard();
    (stage, server, alice, bob)
}

/// A stage with a server, and a client whose unit waits within its transaction until that has
/// forgotten.
fn waits_in_block() -> (Stage, Peer, Peer) {
    let (stage, server, alice, bob) = two();
    run(&alice, &server, ASK, ready());
    run(&alice, &server, ADVANCE, ready());
    run(&bob, &server, "BEGIN", in_block());
    bob.says([query(ASK)]);
    assert_eq!(server.heard(), FORGET);
    (stage, server, bob)
}

/// A table with a serial column, and a function that asks.
fn serial() -> Arc<Loud> {
    let object = |id: ObjectId, name: &str, source| Object {
        id,
        name: name.to_owned(),
        source,
        is_quiet: false,
        is_immutable: false,
    };
    let (nextval, table) = ((Kind::Function, 1), (Kind::Relation, 2));
    let asks = Source::Sql("SELECT lastval()".to_owned());
    let objects = vec![
        object(nextval, "nextval", Source::Builtin),
        object(table, "serial", Source::None),
        object((Kind::Function, 3), "asks", asks),
    ];
    let by_default =
        Use { by: table, of: nextval, when: When::Written, through: "default".to_owned() };
    Arc::new(Catalogue { objects, uses: vec![by_default] }.loud())
}

#[test]
fn a_last_value_is_told_to_whom_it_belongs() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    run(&alice, &server, ASK, ready());
    run_forgetting(&bob, &server, ASK, ready());
    run(&bob, &server, ASK, ready());
    // There is nothing any more.
    run(&alice, &server, ASK, ready());
}

/// A server that has advanced none has nothing to tell.
#[test]
fn of_a_new_server_anybody_may_ask() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ASK, ready());
    run(&bob, &server, ASK, ready());
    run(&bob, &server, ADVANCE, ready());
    run(&bob, &server, ASK, ready());
}

/// Half of all applications insert all the time, and never ask.
#[test]
fn nothing_is_forgotten_as_long_as_nobody_asks() {
    let (stage, server, alice, bob) = two();
    for client in [&alice, &bob, &alice] {
        run(client, &server, ADVANCE, ready());
    }
    let carol = stage.client();
    run_forgetting(&carol, &server, ASK, ready());
}

/// From then on a client that advances a sequence finds its own value behind that, and an order to
/// forget costs it no round trip.
#[test]
fn once_somebody_has_asked_who_advances_has_the_server_forget() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ASK, ready());
    run(&alice, &server, ADVANCE, ready());
    bob.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    server.heard();
    bob.says([query(ADVANCE)]);
    assert_eq!(server.heard(), format!("{FORGET} Q({ADVANCE})"));
    server.says([forgotten(), in_block(), done(), in_block()]);
    run(&bob, &server, ASK, in_block());
    run(&bob, &server, ADVANCE, in_block());
    run(&bob, &server, "COMMIT", ready());
    run(&bob, &server, ASK, ready());
}

/// Who asks behind something of its own in one unit after the other waits for no more than the
/// order to forget.
#[test]
fn who_asks_waits_until_it_is_forgotten() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ASK, ready());
    run(&alice, &server, ADVANCE, ready());
    bob.says([query("BEGIN"), query(ADVANCE), query(ASK)]);
    assert_eq!(server.heard(), "Q(BEGIN)", "what this comes to is known first");
    server.says([done(), in_block()]);
    assert_eq!(server.heard(), format!("{FORGET} Q({ADVANCE})"));
    server.says([parse_complete(), bind_complete(), done_with("DISCARD SEQUENCES")]);
    assert_eq!(server.heard(), format!("Q({ASK})"));
    let closed = [close_complete(), close_complete()].concat();
    server.says([closed, in_block(), done(), in_block(), done(), in_block()]);
    assert_eq!(bob.heard(), "C Z(T) C Z(T) C Z(T)");
}

/// What it waits for is ours, and is not cancelled; its server is free behind that.
#[test]
fn who_waits_until_it_is_forgotten_is_cancelled_by_us() {
    let (stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    bob.says([query(ASK)]);
    assert_eq!(server.heard(), FORGET);
    took(Mark::CancelOfUnsentBehindOurs);
    let requester = stage.cancel(&bob);
    assert!(took(Mark::CancelOfUnsentBehindOurs) && requester.is_closed());
    assert_eq!((bob.heard().as_str(), stage.cancels()), ("E(57014) Z", 0));
    server.says([forgotten(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    run(&bob, &server, ASK, ready());
}

/// What it has sent waits for us, and not for itself.
#[test]
fn who_waits_within_a_transaction_is_not_idle() {
    let setup = Setup::with("idle_client_in_transaction_timeout = 1000");
    let (stage, server, alice, bob) = two_with(&setup);
    run(&alice, &server, ASK, ready());
    run(&alice, &server, ADVANCE, ready());
    run(&bob, &server, "BEGIN", in_block());
    bob.says([query("slow")]);
    stage.wait(Duration::from_millis(200));
    stage.cancel(&bob);
    let cancel = stage.cancel_line().expect("it has begun");
    server.says([done(), in_block()]);
    bob.says([query(ASK)]);
    assert_eq!((server.heard().as_str(), bob.heard().as_str()), ("Q(slow)", "C Z(T)"));
    stage.wait(Duration::from_secs(3));
    assert!(took(Mark::SequencesAwaitCancel) && bob.is_open());
    cancel.ends();
    assert_eq!(server.heard(), FORGET);
    server.says([forgotten(), in_block()]);
    assert_eq!(server.heard(), format!("Q({ASK})"));
    server.says([done(), in_block()]);
    assert_eq!(bob.heard(), "C Z(T)");
    stage.wait(Duration::from_millis(1_100));
    assert_eq!(bob.heard(), "E(FATAL 25P03)");
}

/// In a transaction the server is to know of the error: the cancel waits for the unit.
#[test]
fn in_a_transaction_a_cancel_waits_until_it_is_forgotten() {
    let (stage, server, bob) = waits_in_block();
    took(Mark::CancelWaitsForOurs);
    let requester = stage.cancel(&bob);
    assert!(took(Mark::CancelWaitsForOurs));
    stage.wait(Duration::from_millis(200));
    assert_eq!((stage.cancels(), requester.is_open()), (0, true), "what is ours is not to be hit");
    server.says([forgotten(), in_block()]);
    assert_eq!((server.heard(), stage.cancels()), (format!("Q({ASK})"), 0));
    stage.wait(Duration::from_millis(100));
    stage.wait(Duration::from_millis(50));
    let cancel = stage.cancel_line().expect("it has begun by now");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
    server.says([error("57014"), in_failed_block()]);
    assert_eq!(bob.heard(), "E(57014) Z(E)");
    cancel.ends();
    assert!(requester.is_closed());
}

/// Time passes when that is over, and before the unit is sent.
#[test]
fn a_cancel_waits_for_a_unit_that_is_about_to_be_sent() {
    let (stage, server, bob) = waits_in_block();
    let requester = stage.cancel(&bob);
    stage.keep_turn_open();
    server.says([forgotten(), in_block()]);
    stage.wait(Duration::from_millis(200));
    stage.end_turn();
    assert!(took(Mark::CancelAwaitsUnit) && requester.is_open());
    assert_eq!(server.heard(), format!("Q({ASK})"));
    stage.wait(Duration::from_millis(200));
    assert_eq!(stage.cancels(), 1);
}

/// It belongs to no unit, and must not end one that is open.
#[test]
fn within_a_batch_it_is_forgotten_there() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    bob.says([parse("SELECT 1"), bind(), execute(), parse(ASK), bind(), execute(), sync()]);
    assert_eq!(server.heard(), format!("P(SELECT 1) B E {FORGET_NOW}"));
    server.says([parse_complete(), bind_complete(), done()]);
    assert_eq!(server.heard(), "", "it has not forgotten yet");
    server.says([forgotten()]);
    assert_eq!(server.heard(), format!("P({ASK}) B E S"));
    server.says([parse_complete(), bind_complete(), error("55000"), ready()]);
    assert_eq!(bob.heard(), "1 2 C 1 2 E(55000) Z");
    run(&alice, &server, ASK, ready());
}

/// What the server does not come to is not forgotten.
#[test]
fn a_batch_that_fails_before_forgets_nothing() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    bob.says([parse("wrong"), bind(), execute(), parse(ASK), bind(), execute(), sync()]);
    assert_eq!(server.heard(), format!("P(wrong) B E {FORGET_NOW}"));
    server.says([error("42601")]);
    assert_eq!(server.heard(), format!("P({ASK}) B E S"), "they are passed over");
    server.says([ready()]);
    assert_eq!(bob.heard(), "E(42601) Z");
    run_forgetting(&bob, &server, ASK, ready());
}

/// One that only advances in a batch, and asks in the next, which is sent at once: what the first
/// has come to is known when it is over.
#[test]
fn what_was_not_forgotten_by_one_unit_is_by_the_next() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ASK, ready());
    run(&alice, &server, ADVANCE, ready());
    let first = [parse("wrong"), bind(), execute(), parse(ADVANCE), bind(), execute(), sync()];
    bob.says(first);
    assert_eq!(
        server.heard(),
        format!("P(wrong) B E {} P({ADVANCE}) B E S", FORGET_NOW.trim_end_matches(" H"))
    );
    bob.says([parse("SELECT 1"), bind(), execute(), parse(ASK), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(SELECT 1) B E H");
    server.says([error("42601"), ready()]);
    assert_eq!(server.heard(), FORGET_NOW);
    server.says([parse_complete(), bind_complete(), done(), forgotten()]);
    assert_eq!(server.heard(), format!("P({ASK}) B E S"));
    server.says([parse_complete(), bind_complete(), error("55000"), ready()]);
    assert_eq!(bob.heard(), "E(42601) Z 1 2 C 1 2 E(55000) Z");
}

/// A statement that was prepared asks when it is run, and not before.
#[test]
fn a_statement_with_a_name_asks_when_it_is_run() {
    let (_stage, server, alice, bob) = two();
    bob.says([parse_as("ask", ASK), sync()]);
    assert_eq!(server.heard(), format!("P(pgweir_1={ASK}) D(pgweir_1) S"));
    server.says([parse_complete(), no_parameters(), no_data(), ready()]);
    run(&alice, &server, ADVANCE, ready());
    bob.heard();
    bob.says([bind_to("ask"), execute(), sync()]);
    assert_eq!(server.heard(), FORGET);
    server.says([forgotten(), ready()]);
    assert_eq!(server.heard(), "B(pgweir_1) E S");
    server.says([bind_complete(), error("55000"), ready()]);
    assert_eq!(bob.heard(), "2 E(55000) Z");
}

/// Nor is it forgotten what a statement without a name does, where it is described before it is run
/// once more.
#[test]
fn a_statement_that_is_described_first_asks_too() {
    let (_stage, server, alice, bob) = two();
    bob.says([parse_as("", ASK), sync()]);
    server.heard();
    server.says([parse_complete(), ready()]);
    bob.heard();
    run(&alice, &server, ADVANCE, ready());
    bob.says([describe_statement(""), bind(), execute(), sync()]);
    let heard = server.heard();
    assert!(
        heard.starts_with(&format!("P({ASK}) D P(pgweir_sequences=DISCARD SEQUENCES)")),
        "{heard}"
    );
}

/// In a transaction that has failed nothing is run but its end, and what stands behind that.
#[test]
fn a_failed_transaction_forgets_nothing() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    bob.says([query("BEGIN; wrong")]);
    server.says([done(), error("42601"), in_failed_block()]);
    server.heard();
    bob.heard();
    bob.says([query(ASK)]);
    assert_eq!(server.heard(), format!("Q({ASK})"));
    server.says([error("25P02"), in_failed_block()]);
    assert_eq!(bob.heard(), "E(25P02) Z(E)");
    // Behind a failed batch the server would skip what ends it.
    bob.says([describe_statement(""), flush()]);
    bob.says([query(ASK)]);
    assert_eq!(server.heard(), format!("C D H Q({ASK})"));
    server.says([close_complete(), no_parameters(), no_data(), error("25P02"), in_failed_block()]);
    assert_eq!(bob.heard(), "t n E(25P02) Z(E)");
    // One that may have ended the transaction is another matter.
    bob.says([parse("ROLLBACK"), bind(), execute(), flush()]);
    assert_eq!(server.heard(), "P(ROLLBACK) B E H");
    server.says([parse_complete(), bind_complete(), done()]);
    bob.says([query(ASK)]);
    let heard = server.heard();
    assert!(heard.starts_with("P(pgweir_sequences="), "{heard}");
    server.says([forgotten()]);
    assert_eq!(server.heard(), format!("Q({ASK})"));
    server.says([done(), ready()]);
    assert_eq!(bob.heard(), "1 2 C C Z");
    run(&alice, &server, ADVANCE, ready());
    bob.says([query("BEGIN; wrong")]);
    server.says([done(), error("42601"), in_failed_block()]);
    server.heard();
    bob.heard();
    bob.says([query("ROLLBACK; SELECT lastval()")]);
    assert!(server.heard().starts_with("Q(SELECT CAST('pgweir refuses"));
    server.says([error("25P02"), in_failed_block()]);
    assert_eq!(bob.heard(), "E(55000) Z(E)");
    run(&bob, &server, "ROLLBACK; SELECT nextval('s')", ready());
    run_forgetting(&bob, &server, ASK, ready());
}

/// What a unit in front of it makes fail is known when that is over: an order to forget would fail
/// in the place of what stands behind it, and that would be passed over.
#[test]
fn a_batch_behind_what_may_fail_forgets_when_that_is_over() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    run(&bob, &server, "BEGIN", in_block());
    bob.says([parse("wrong"), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(wrong) B E S");
    bob.says([parse(""), describe_statement(""), parse(ASK), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P() D", "what the unit before comes to is known first");
    server.says([error("42601"), in_failed_block()]);
    assert_eq!(server.heard(), format!("P({ASK}) B E S"), "that ends the one without a name");
    server.says([parse_complete(), no_parameters(), no_data(), error("25P02"), in_failed_block()]);
    assert_eq!(bob.heard(), "E(42601) Z(E) 1 t n E(25P02) Z(E)");
    bob.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "C B E S", "there is none any more");
}

/// Nor is a string passed over that ends a batch.
#[test]
fn a_query_that_ends_such_a_batch_is_answered() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    run(&bob, &server, "BEGIN", in_block());
    bob.says([parse("wrong"), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(wrong) B E S");
    bob.says([parse(""), query(ASK)]);
    assert_eq!(server.heard(), "P()");
    server.says([error("42601"), in_failed_block()]);
    assert_eq!(server.heard(), format!("Q({ASK})"));
    server.says([parse_complete(), error("25P02"), in_failed_block()]);
    assert_eq!(bob.heard(), "E(42601) Z(E) 1 E(25P02) Z(E)");
}

/// Who cannot have it forgotten is told why, and not somebody else's value.
#[test]
fn what_cannot_be_forgotten_is_not_told() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    bob.says([query(ASK)]);
    assert_eq!(server.heard(), FORGET);
    server.says([error("57014"), ready()]);
    assert!(server.heard().starts_with("Q(SELECT CAST('pgweir refuses"));
    server.says([error("22P02"), ready()]);
    assert_eq!(bob.heard(), "E(57014) Z");
    assert_eq!(server.heard(), "Q(DISCARD ALL)", "something of it may be left");
    server.says([done_with("DISCARD ALL"), ready()]);
    run(&bob, &server, ASK, ready());
    assert!(took(Mark::StuckTold));
}

/// The batch fails where its server was to forget, and what asks behind that is passed over.
#[test]
fn nor_is_it_told_within_a_batch() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    bob.says([parse("SELECT 1"), bind(), execute(), parse(ASK), bind(), execute(), sync()]);
    assert_eq!(server.heard(), format!("P(SELECT 1) B E {FORGET_NOW}"));
    server.says([parse_complete(), bind_complete(), done(), error("57014")]);
    assert_eq!(server.heard(), format!("P({ASK}) B E S"));
    server.says([ready()]);
    assert_eq!(bob.heard(), "1 2 C E(57014) Z");
    assert_eq!(server.heard(), "Q(DISCARD ALL)", "something of it may be left");
    server.says([done_with("DISCARD ALL"), ready()]);
    run(&bob, &server, ASK, ready());
    assert!(took(Mark::StuckInBatch));
}

/// A cancel that has come late would hit what goes unseen, and its transaction with it.
#[test]
fn a_cancel_is_over_before_something_is_forgotten() {
    let (stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    bob.says([query("BEGIN")]);
    let requester = stage.cancel(&bob);
    let cancel = stage.cancel_line().unwrap();
    server.says([done(), in_block()]);
    server.heard();
    bob.says([query(ASK)]);
    assert_eq!(server.heard(), "");
    cancel.ends();
    assert!(requester.is_closed());
    assert_eq!(server.heard(), FORGET);
}

/// What a text does of which only the beginning has come is not known before it is run.
#[test]
fn a_text_in_pieces_may_ask() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    let long = query(&format!("SELECT '{}', currval('s')", "x".repeat(20_000)));
    bob.sends(&long[..17_000]);
    assert_eq!(server.heard(), FORGET);
    server.says([forgotten(), ready()]);
    assert!(server.heard().ends_with("…"));
    bob.sends(&long[17_000..]);
    server.heard();
    server.says([error("55000"), ready()]);
    run_forgetting(&alice, &server, ASK, ready());
}

/// An INSERT shows nothing of its defaults, nor a function of what it asks.
#[test]
fn what_stands_behind_names_counts() {
    let stage = Stage::new(&Setup::default());
    stage.set_loud(Some(serial()));
    let alice = stage.newcomer(&[]);
    let server = stage.server();
    assert!(alice.is_greeted());
    let bob = stage.client();
    server.heard();
    run(&alice, &server, "INSERT INTO serial DEFAULT VALUES", ready());
    run(&alice, &server, "SELECT asks()", ready());
    run_forgetting(&bob, &server, "SELECT asks()", ready());
    run(&bob, &server, "SELECT count(*) FROM serial", ready());
    let block = "DO $$ BEGIN INSERT INTO serial DEFAULT VALUES; END $$";
    run(&alice, &server, block, ready());
    run_forgetting(&bob, &server, ASK, ready());
    assert!(took(Mark::NewsOfSequences));
}

/// What is reset remembers nothing, nor does it of one who is gone.
#[test]
fn a_server_that_was_reset_is_as_new() {
    let (stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    drop(alice);
    let carol = stage.client();
    run_forgetting(&carol, &server, ASK, ready());
    run(&carol, &server, ADVANCE, ready());
    carol.says([query("SELECT setval('s', 5); CREATE TEMP TABLE t ()")]);
    server.heard();
    server.says([done(), done(), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("t")]);
    carol.ends();
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done_with("DISCARD ALL"), ready()]);
    run(&bob, &server, ASK, ready());
}

/// The simulator's: a client that was ended while its server forgot was taken for one that had
/// advanced nothing, and what it had sent goes on.
#[test]
fn what_one_who_is_gone_has_advanced_is_not_anybodys() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ASK, ready());
    run(&alice, &server, ADVANCE, ready());
    bob.says([query(ADVANCE)]);
    assert_eq!(server.heard(), format!("{FORGET} Q({ADVANCE})"));
    bob.sends(b"no message");
    assert!(!bob.is_open());
    server.says([forgotten(), ready(), done(), ready()]);
    run_forgetting(&alice, &server, ASK, ready());
}

/// A client that comes back is given the server that it has left something on, if that is free.
#[test]
fn who_has_advanced_a_sequence_comes_back_to_that_server() {
    let (stage, first, alice, bob) = two_with(&Setup::of_size(2));
    run(&alice, &first, ASK, ready());
    run(&alice, &first, ADVANCE, ready());
    bob.says([query("BEGIN")]);
    first.heard();
    alice.says([query("SELECT 1")]);
    let second = stage.server();
    second.heard();
    second.says([done(), ready()]);
    first.says([done(), in_block()]);
    run(&bob, &first, "COMMIT", ready());
    let carol = stage.client();
    bob.says([query("SELECT 2")]);
    carol.says([query("SELECT 3")]);
    assert_eq!((first.heard(), second.heard()), ("Q(SELECT 2)".into(), "Q(SELECT 3)".into()));
    first.says([done(), ready()]);
    second.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle, ServerActivity::Idle]);
    // The other is the one that was used last.
    run(&alice, &first, ASK, ready());
}

/// It would be taken for the last one.
#[test]
fn nor_is_a_client_told_what_it_has_got_elsewhere_before() {
    let (stage, first, alice, bob) = two_with(&Setup::of_size(2));
    run(&alice, &first, ADVANCE, ready());
    bob.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    alice.says([query(ADVANCE)]);
    let second = stage.server();
    second.heard();
    second.says([done(), ready()]);
    first.heard();
    run(&bob, &first, "COMMIT", ready());
    run_forgetting(&alice, &first, ASK, ready());
    run(&bob, &first, "SELECT 1", ready());
}

/// An operator may want it as it was, at no cost at all.
#[test]
fn a_pool_may_do_without() {
    let none = Setup { pool: "sequence_affinity = 'none'", ..Setup::default() };
    let (stage, server, alice, bob) = two_with(&none);
    for client in [&alice, &bob] {
        run(client, &server, ADVANCE, ready());
        run(client, &server, ASK, ready());
    }
    stage.reload(&Setup::default());
    run_forgetting(&alice, &server, ASK, ready());
    assert!(took(Mark::SequencesLetBe));
}

/// For applications that live on the last value, at the cost of a server each: nobody else comes to
/// it, so that nothing has to be forgotten.
#[test]
fn a_pool_may_keep_a_server_for_whoever_has_advanced_a_sequence() {
    let pin = Setup { pool: "sequence_affinity = 'pin'", ..Setup::default() };
    let (stage, server, alice, bob) = two_with(&pin);
    run(&alice, &server, ADVANCE, ready());
    assert!(took(Mark::SequencesKept));
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    bob.says([query(ASK)]);
    run(&alice, &server, ASK, ready());
    assert_eq!((server.heard(), bob.heard()), (String::new(), String::new()), "it waits");
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done_with("DISCARD ALL"), ready()]);
    assert_eq!(server.heard(), format!("Q({ASK})"));
}

/// A temporary table may be filled from a sequence, and no catalogue has it.
#[test]
fn temporary_tables_are_in_doubt() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ASK, ready());
    run(&alice, &server, ADVANCE, ready());
    let create = "CREATE TEMP TABLE x (LIKE t INCLUDING ALL) ON COMMIT DROP";
    bob.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    server.heard();
    bob.says([query(create)]);
    assert_eq!(server.heard(), format!("{FORGET} Q({create})"));
    server.says([forgotten(), in_block(), done(), in_block()]);
    run(&bob, &server, "INSERT INTO x DEFAULT VALUES", in_block());
    run(&bob, &server, "COMMIT", ready());
    run_forgetting(&alice, &server, ASK, ready());
}

/// Who waits for that when the server is lost waits no longer, and may leave.
#[test]
fn nobody_waits_for_a_lost_server_to_forget() {
    let (_stage, server, alice, bob) = two();
    run(&alice, &server, ADVANCE, ready());
    run(&bob, &server, "BEGIN", in_block());
    bob.says([query(ASK)]);
    assert_eq!(server.heard(), FORGET);
    server.breaks();
    assert_eq!(bob.heard(), "E(40001) Z(E)");
    bob.ends();
    assert!(bob.is_closed());
}

/// What a client has done before it was known that a name advances sequences is in doubt.
#[test]
fn what_was_done_before_a_name_was_known_may_have_advanced() {
    let (stage, server, alice) = Stage::ready(&Setup::of_size(2));
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    let bob = stage.client();
    bob.says([query("INSERT INTO serial DEFAULT VALUES")]);
    let other = stage.server();
    other.says([done(), ready()]);
    other.heard();
    stage.set_loud(Some(serial()));
    stage.wait(Duration::from_secs(1));
    server.heard();
    run(&alice, &server, "CREATE TABLE serial (n serial)", in_block());
    run(&alice, &server, "COMMIT", ready());
    assert!(took(Mark::SequencesInDoubt));
    other.heard();
    alice.says([query("BEGIN")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
    run_forgetting(&bob, &other, ASK, ready());
}

/// The same by a name of the client's own, on the server that it keeps for that.
#[test]
fn what_cannot_be_forgotten_is_not_told_by_a_name() {
    let (stage, server, bob) = Stage::ready(&Setup::of_size(2));
    run(&bob, &server, &format!("PREPARE asks AS {ASK}"), ready());
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("p")]);
    stage.set_loud(Some(serial()));
    stage.wait(Duration::from_secs(1));
    let alice = stage.client();
    alice.says([query("CREATE TABLE serial (n serial)")]);
    stage.server().says([done(), ready()]);
    assert!(took(Mark::SequencesInDoubt));
    bob.says([bind_to("asks"), execute(), sync()]);
    assert_eq!(server.heard(), FORGET);
    server.says([error("57014"), ready()]);
    assert!(took(Mark::OwnNameRefused));
    assert_eq!(server.heard(), "B(pgweir_) E S");
    server.says([error("26000"), ready()]);
    assert!(bob.heard().ends_with("E(57014) Z"));
}

/// The simulator's: the end of a transaction that had failed was answered, and not its Sync; what
/// was sent on behind that heard of another's last value.
#[test]
fn who_asks_behind_the_end_of_a_failed_transaction_hears_of_nobody_elses() {
    let (_stage, server, alice, bob) = two();
    run(&bob, &server, ADVANCE, ready());
    run(&alice, &server, "BEGIN", in_block());
    alice.says([query("SELECT 1 / 0")]);
    server.says([error("22012"), in_failed_block()]);
    server.heard();
    alice.says([parse("COMMIT"), bind(), execute(), sync()]);
    server.says([parse_complete(), bind_complete(), done_with("ROLLBACK")]);
    server.heard();
    alice.says([query(ASK)]);
    assert_eq!(server.heard(), "", "it is not known whether the transaction is over");
    server.says([ready()]);
    assert_eq!(server.heard(), FORGET);
}

//! Statements that clients prepare under names: one on a server, whoever has prepared it, and each
//! client finds its own.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    bind, bind_complete, bind_to, cancel_request, close_complete, close_statement, columns,
    copy_in, describe_statement, done, done_with, error, execute, fatal, flush, in_block,
    in_failed_block, left, message, no_data, no_parameters, parse, parse_as, parse_complete, query,
    ready, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// What a server says of a statement without rows, and of one with a column.
fn no_rows() -> Vec<u8> {
    [no_parameters(), no_data()].concat()
}

pub(crate) fn rows() -> Vec<u8> {
    [no_parameters(), columns()].concat()
}

/// RowDescription of so many columns.
pub(crate) fn wide(count: u16) -> Vec<u8> {
    let column = &columns()[7..];
    message(b'T', &[&count.to_be_bytes()[..], &column.repeat(usize::from(count))].concat())
}

/// The client prepares a statement, of which the server says this; what the server hears for it.
pub(crate) fn prepare(client: &Peer, server: &Peer, name: &str, text: &str, is: Vec<u8>) -> String {
    client.heard();
    server.heard();
    client.says([parse_as(name, text), sync()]);
    let heard = server.heard();
    let closed = if heard.starts_with('C') { close_complete() } else { Vec::new() };
    server.says([closed, parse_complete(), is, ready()]);
    assert_eq!(client.heard(), "1 Z");
    heard
}

/// The client runs its statement; the server hears this for it, and answers it.
fn run(client: &Peer, server: &Peer, name: &str, hears: &str, answer: &[Vec<u8>]) {
    client.heard();
    client.says([bind_to(name), execute(), sync()]);
    assert_eq!(server.heard(), hears);
    server.says([answer.concat(), bind_complete(), done(), ready()]);
    assert_eq!(client.heard(), "2 C Z");
}

/// A stage with two servers and two clients: `alice` has prepared `s` on the first, on which `bob`
/// is in a transaction now.
fn moved(text: &str, is: Vec<u8>) -> (Stage, Peer, Peer, Peer) {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
    prepare(&alice, &first, "s", text, is);
    let bob = stage.client();
    bob.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    first.heard();
    (stage, first, alice, bob)
}

/// The client begins a transaction, on a new server.
fn begun(stage: &Stage, client: &Peer) -> Peer {
    client.says([query("BEGIN")]);
    let server = stage.server();
    assert_eq!(server.heard(), "Q(BEGIN)");
    server.says([done(), in_block()]);
    client.heard();
    server
}

/// A server that stays with whoever has prepared something serves nobody else.
#[test]
fn it_keeps_no_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let heard = prepare(&alice, &server, "s", "SELECT 1", no_rows());
    assert_eq!(heard, "P(pgweir_1=SELECT 1) D(pgweir_1) S");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    run(&alice, &server, "s", "B(pgweir_1) E S", &[]);
}

/// The same name is another statement for each client.
#[test]
fn each_client_finds_its_own() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    prepare(&alice, &server, "s", "alice", no_rows());
    prepare(&bob, &server, "s", "bob", no_rows());
    run(&alice, &server, "s", "B(pgweir_1) E S", &[]);
    run(&bob, &server, "s", "B(pgweir_2) E S", &[]);
}

/// Equal statements are one, and are read again all the same: perhaps they cannot be read any more.
#[test]
fn equal_ones_are_one() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    prepare(&alice, &server, "a", "SELECT 1", rows());
    let heard = prepare(&bob, &server, "b", "SELECT 1", rows());
    assert_eq!(heard, "C(pgweir_1) P(pgweir_1=SELECT 1) D(pgweir_1) S");
    run(&alice, &server, "a", "B(pgweir_1) E S", &[]);
    run(&bob, &server, "b", "B(pgweir_1) E S", &[]);
}

/// Another server has it made in front of the Bind, without a round trip.
#[test]
fn another_server_makes_it() {
    let (stage, _first, alice, _bob) = moved("INSERT", no_rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(pgweir_1=INSERT) D(pgweir_1) B(pgweir_1) E S");
    second.says([parse_complete(), no_rows(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
    run(&alice, &second, "s", "B(pgweir_1) E S", &[]);
}

/// If it returns rows, what they are like is known before it is run.
#[test]
fn the_rows_are_looked_at_first() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
    second.says([parse_complete(), no_parameters()]);
    assert_eq!(second.heard(), "");
    second.says([columns()]);
    assert_eq!(second.heard(), "B(pgweir_1) E S");
    second.says([bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
}

/// If there are so many columns that what they are like is not kept, it is believed.
#[test]
fn rows_that_say_too_much_are_not_looked_at() {
    let long = [no_parameters(), wide(6_000)].concat();
    let (stage, _first, alice, _bob) = moved("SELECT", long.clone());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S");
    second.says([parse_complete(), long.clone(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
    alice.says([describe_statement("s"), sync()]);
    assert_eq!(second.heard(), "D(pgweir_1) S");
    second.says([&long[..], &ready()]);
    assert!(alice.heard_bytes() == [long, ready()].concat(), "it is passed on whole");
    assert!(took(Mark::RowsUnknown));
}

/// How a long description comes does not matter: one that came in pieces was taken for another.
#[test]
fn rows_that_come_in_pieces_are_no_others() {
    for columns in [1, 1_000, 1_600] {
        let is = [no_parameters(), wide(columns)].concat();
        let (stage, _first, alice, _bob) = moved("SELECT", is.clone());
        alice.says([query("EXECUTE s")]);
        let second = stage.server();
        assert_eq!(second.heard(), "C(s) P(s=SELECT) D(s) S Q(EXECUTE s)");
        let (before, behind) = is.split_at(is.len() - 5);
        second.says([close_complete(), parse_complete(), before.to_vec()]);
        second.says([behind, &ready(), &done(), &ready()]);
        assert_eq!(alice.heard(), "C Z");
        second.heard();
        alice.says([bind_to("s"), execute(), sync()]);
        assert_eq!(second.heard(), "B(s) E S", "{columns}");
    }
}

/// Rows of another kind than the client was told of would be read wrongly.
#[test]
fn other_rows_are_refused_as_by_postgresql() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.says([parse_complete(), no_rows()]);
    // A name that nothing has: the server fails, and its transaction with it.
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H B(pgweir_) E S");
    second.says([error("26000"), ready()]);
    assert_eq!(alice.heard(), "E(0A000) Z");
    // Its parameters are as before: PostgreSQL tells of them before it looks at the rows.
    alice.says([describe_statement("s"), sync()]);
    assert_eq!(second.heard(), "C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) H");
    second.says([close_complete(), parse_complete(), no_rows()]);
    assert_eq!(second.heard(), "D(pgweir_) S");
    second.says([error("26000"), ready()]);
    assert_eq!(alice.heard(), "t E(0A000) Z");
    // Prepared again it is what it is now.
    let heard = prepare(&alice, &second, "t", "SELECT", no_rows());
    assert_eq!(heard, "C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) S");
    run(&alice, &second, "t", "B(pgweir_1) E S", &[]);
}

/// What its client was told is not forgotten for a Close that was not carried out and had been sent
/// before.
#[test]
fn rows_are_remembered_behind_a_close_that_fails() {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
    alice.says([parse_as("s", "SELECT"), parse_as("", "x"), close_statement("s"), sync()]);
    first.says([parse_complete(), rows(), error("42601"), ready()]);
    assert_eq!(alice.heard(), "1 E(42601) Z");
    let bob = stage.client();
    bob.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(stage.server().heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
}

/// One that was made before the change is made again for who has prepared it behind it.
#[test]
fn what_is_out_of_date_is_made_again() {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
    let bob = stage.client();
    prepare(&bob, &first, "s", "SELECT", no_rows());
    bob.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    alice.says([parse_as("s", "SELECT"), sync()]);
    let second = stage.server();
    second.says([parse_complete(), rows(), ready()]);
    assert_eq!(alice.heard(), "1 Z");
    alice.says([query("BEGIN")]);
    second.says([done(), in_block()]);
    bob.says([query("COMMIT")]);
    first.says([done(), ready()]);
    first.heard();
    alice.says([query("COMMIT"), terminate()]);
    second.says([done(), ready()]);
    // The same from the other side: a client with the new rows meets the old statement.
    let carol = stage.client();
    prepare(&carol, &second, "s", "SELECT", rows());
    bob.says([query("BEGIN")]);
    second.says([done(), in_block()]);
    first.heard();
    carol.says([bind_to("s"), execute(), sync()]);
    assert_eq!(first.heard(), "C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) H");
    first.says([close_complete(), parse_complete(), rows()]);
    assert_eq!(first.heard(), "B(pgweir_1) E S");
}

/// What fails while the rows are looked at is the client's error, and its batch is passed over.
#[test]
fn what_cannot_be_made_again_is_the_clients_error() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.says([error("42P01")]);
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H B(s) E S");
    second.says([ready()]);
    assert_eq!(alice.heard(), "E(42P01) Z");
    assert_eq!(stage.contained(), None);
    // Nor is it there the next time.
    alice.says([describe_statement("s"), sync()]);
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
}

/// A Parse that failed, or was passed over, has made nothing, and its name is free.
#[test]
fn a_failed_parse_makes_nothing() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse_as("a", "bad"), parse_as("b", "good"), sync()]);
    server.heard();
    server.says([error("42601"), ready()]);
    assert_eq!(alice.heard(), "E(42601) Z");
    for name in ["a", "b"] {
        alice.says([bind_to(name), sync()]);
        assert_eq!(server.heard(), format!("B({name}) S"));
        server.says([error("26000"), ready()]);
    }
    let heard = prepare(&alice, &server, "b", "good", no_rows());
    assert_eq!(heard, "P(pgweir_3=good) D(pgweir_3) S");
    run(&alice, &server, "b", "B(pgweir_3) E S", &[]);
}

/// What comes behind an error is not made, and keeps no server, though the error is known by then.
#[test]
fn a_parse_that_is_passed_over_keeps_no_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN"), parse_as("s", "wrong"), flush()]);
    server.says([done(), in_block(), error("42601")]);
    alice.says([parse_as("t", "SELECT 1"), sync()]);
    server.says([in_failed_block()]);
    alice.says([query("ROLLBACK")]);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z(T) E(42601) Z(E) C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What ends that for which a server is kept may be prepared there itself.
#[test]
fn a_deallocate_that_was_prepared_gives_the_server_back() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse_as("s", "DEALLOCATE ALL"), sync()]);
    assert_eq!(server.heard(), "P(s=DEALLOCATE ALL) S");
    server.says([parse_complete(), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("p")]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "B(s) E S");
    server.says([bind_complete(), done_with("DEALLOCATE ALL"), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("")]);
    assert_eq!(alice.heard(), "1 Z 2 C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A Close of ours that was passed over has closed nothing.
#[test]
fn what_was_to_be_made_anew_is_still_there() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "a", "SELECT", no_rows());
    alice.says([parse("bad"), parse_as("b", "SELECT"), close_statement("a"), sync()]);
    assert_eq!(server.heard(), "P(bad) C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) C(a) S");
    server.says([error("42601"), ready()]);
    assert_eq!(alice.heard(), "E(42601) Z");
    run(&alice, &server, "a", "B(pgweir_1) E S", &[]);
    alice.says([bind_to("b"), sync()]);
    assert_eq!(server.heard(), "B(b) S");
}

/// PostgreSQL itself says that a name is taken, so that its transaction fails.
#[test]
fn a_name_that_is_taken_is_refused_by_the_server() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "first", no_rows());
    alice.says([parse_as("s", "second"), sync()]);
    assert_eq!(server.heard(), "C(s) P(s=) P(s=second) S");
    server.says([close_complete(), parse_complete(), error("42P05"), ready()]);
    assert_eq!(alice.heard(), "E(42P05) Z");
    // And nothing of that name is left to be found by others.
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done_with("DISCARD ALL"), ready()]);
    let made = "P(pgweir_1=first) D(pgweir_1) ";
    let hears = format!("{made}B(pgweir_1) E S");
    run(&alice, &server, "s", &hears, &[parse_complete(), no_rows()]);
}

/// Nor does a client's name ever mean another's statement.
#[test]
fn a_name_like_ours_is_another() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([bind_to("pgweir_1"), describe_statement("pgweir_1"), sync()]);
    assert_eq!(server.heard(), "B(pgweir__1) D(pgweir__1) S");
    server.says([error("26000"), ready()]);
    alice.says([close_statement("pgweir_1"), sync()]);
    assert_eq!(server.heard(), "C(pgweir__1) S");
    server.says([close_complete(), ready()]);
    let heard = prepare(&alice, &server, "pgweir_1", "mine", no_rows());
    assert_eq!(heard, "P(pgweir_2=mine) D(pgweir_2) S");
}

/// A closed name means nothing, and can be given again; others still have the statement.
#[test]
fn a_close_frees_the_name() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    prepare(&alice, &server, "s", "SELECT", no_rows());
    prepare(&bob, &server, "s", "SELECT", no_rows());
    alice.says([close_statement("s"), parse_as("s", "other"), bind_to("s"), sync()]);
    assert_eq!(server.heard(), "C(s) P(pgweir_2=other) D(pgweir_2) B(pgweir_2) S");
    server.says([close_complete(), parse_complete(), no_rows(), bind_complete(), ready()]);
    assert_eq!(alice.heard(), "3 1 2 Z");
    alice.says([close_statement("s"), bind_to("s"), sync()]);
    assert_eq!(server.heard(), "C(s) B(s) S");
    server.says([close_complete(), error("26000"), ready()]);
    assert_eq!(alice.heard(), "3 E(26000) Z");
    run(&bob, &server, "s", "B(pgweir_1) E S", &[]);
}

/// A name that is given and closed in one batch means what it was given for, if the Close is passed
/// over: whoever named it then waited for ever.
#[test]
fn a_close_that_is_passed_over_leaves_a_name_of_the_same_batch() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    let unit = [parse_as("s", "SELECT"), bind_to("s"), execute(), close_statement("s"), sync()];
    alice.says(unit);
    server.says([parse_complete(), no_rows(), bind_complete(), error("22012"), ready()]);
    server.heard();
    run(&alice, &server, "s", "B(pgweir_1) E S", &[]);
}

/// What a name means in the next unit depends on what becomes of this one.
#[test]
fn a_pipeline_waits_for_what_a_name_means() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse_as("s", "SELECT"), sync(), bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "P(pgweir_1=SELECT) D(pgweir_1) S");
    server.says([error("42601"), ready()]);
    assert_eq!(server.heard(), "B(s) E S");
    server.says([error("26000"), ready()]);
    assert_eq!(alice.heard(), "E(42601) Z E(26000) Z");
    alice.says([parse_as("s", "SELECT"), sync(), close_statement("s"), sync()]);
    assert_eq!(server.heard(), "P(pgweir_2=SELECT) D(pgweir_2) S");
    server.says([parse_complete(), no_rows(), ready()]);
    assert_eq!(server.heard(), "C(s) S");
    alice.says([parse_as("s", "other"), sync()]);
    assert_eq!(server.heard(), "");
    server.says([close_complete(), ready()]);
    assert_eq!(server.heard(), "P(pgweir_3=other) D(pgweir_3) S");
}

/// As it is run on a server, whatever it leaves there keeps that server.
#[test]
fn what_it_leaves_is_left_where_it_is_run() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT pg_advisory_lock(1)", no_rows());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    run(&alice, &server, "s", "B(pgweir_1) E S", &[]);
    server.says([left("a")]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    // On a server that is kept it is its client's own.
    let heard = prepare(&alice, &server, "t", "SELECT", Vec::new());
    assert_eq!(heard, "P(t=SELECT) S");
}

/// What is prepared under settings of a transaction no other client has.
#[test]
fn what_is_read_under_other_settings_is_not_shared() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("BEGIN; SET LOCAL TimeZone = 'CET'")]);
    server.says([done(), done(), in_block()]);
    alice.heard();
    alice.says([parse_as("s", "SELECT"), sync()]);
    server.says([parse_complete(), no_rows(), in_block()]);
    alice.says([query("COMMIT")]);
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    server.heard();
    assert_eq!(
        prepare(&bob, &server, "s", "SELECT", no_rows()),
        "P(pgweir_2=SELECT) D(pgweir_2) S"
    );
    alice.heard();
    assert_eq!(
        prepare(&alice, &server, "t", "SELECT", no_rows()),
        "C(pgweir_2) P(pgweir_2=SELECT) D(pgweir_2) S"
    );
}

/// A client uses `s` in its transaction, ends that, and uses it again.
pub(crate) fn uses_again(client: &Peer, server: &Peer) {
    server.heard();
    client.says([bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "B(pgweir_1) E S");
    server.says([bind_complete(), done(), in_block()]);
    client.says([query("COMMIT")]);
    server.says([done(), ready()]);
    server.heard();
    client.says([bind_to("s"), execute(), sync()]);
}

/// PostgreSQL reads literals anew when something has changed about their tables, under the settings
/// of then: behind a transaction that had others it is made again.
#[test]
fn what_one_may_have_had_read_anew_is_made_again() {
    for (text, setting, again) in [
        ("SELECT '1'", "TimeZone = 'CET'", true),
        ("SELECT $1", "TimeZone = 'CET'", false),
        ("SELECT '1'", "work_mem = '1MB'", false),
    ] {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        prepare(&alice, &server, "s", text, no_rows());
        alice.says([query(&format!("BEGIN; SET LOCAL {setting}"))]);
        server.says([done(), done(), in_block()]);
        server.heard();
        uses_again(&alice, &server);
        let made = format!("C(pgweir_1) P(pgweir_1={text}) D(pgweir_1) ");
        let made = if again { &*made } else { "" };
        assert_eq!(server.heard(), format!("{made}B(pgweir_1) E S"), "{text} {setting}");
        assert_eq!(took(Mark::UsedUnderOthers), again);
    }
}

/// That a transaction is over is nothing to the next one, which has begun behind it.
#[test]
fn what_is_under_way_keeps_its_settings_when_what_was_before_is_over() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT '1'", no_rows());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("COMMIT"), query("BEGIN"), query("SET LOCAL TimeZone = 'CET'")]);
    server.says([done(), ready()]);
    server.says([done(), in_block(), done(), in_block()]);
    server.heard();
    uses_again(&alice, &server);
    assert!(server.heard().starts_with("C(pgweir_1) P(pgweir_1=SELECT '1') "));
}

/// So is a portal by which that may be committed.
#[test]
fn a_portal_that_commits_is_remembered_when_what_was_before_is_over() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("COMMIT"), query("BEGIN"), parse("COMMIT"), bind(), sync()]);
    server.says([done(), ready()]);
    server.says([done(), in_block(), parse_complete(), bind_complete(), in_block()]);
    alice.heard();
    alice.says([execute(), sync()]);
    server.breaks();
    assert_eq!(alice.heard(), "E(08007) Z");
}

/// In session mode the server is the client's, and so are the names.
#[test]
fn a_session_has_its_own_names() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    let heard = prepare(&alice, &server, "s", "SELECT", Vec::new());
    assert_eq!(heard, "P(s=SELECT) S");
    run(&alice, &server, "s", "B(s) E S", &[]);
}

/// A text that is too long to be kept is made on one server.
#[test]
fn a_long_one_keeps_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse_as("s", &"x".repeat(20_000)), sync()]);
    server.says([parse_complete(), ready()]);
    assert_eq!(alice.heard(), "1 Z");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    server.heard();
    run(&alice, &server, "s", "B(s) E S", &[]);
}

/// So many statements a server has, and no more: the one that was used least lately goes.
#[test]
fn a_server_has_so_many() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    for number in 1..=200 {
        prepare(&alice, &server, &format!("s{number}"), &number.to_string(), no_rows());
    }
    run(&alice, &server, "s1", "B(pgweir_1) E S", &[]);
    let heard = prepare(&alice, &server, "more", "more", no_rows());
    assert_eq!(heard, "C(pgweir_2) P(pgweir_201=more) D(pgweir_201) S");
    // It is made again where it is wanted, and the next one goes.
    let hears = "C(pgweir_3) P(pgweir_2=2) D(pgweir_2) B(pgweir_2) E S";
    run(&alice, &server, "s2", hears, &[close_complete(), parse_complete(), no_rows()]);
}

/// In the middle of a batch, too, whose replies are asked for by Flush: what it runs stays, and of
/// what we close its client hears nothing.
#[test]
fn room_is_made_inside_of_a_batch() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    for number in 1..=200 {
        prepare(&alice, &server, &format!("s{number}"), &number.to_string(), no_rows());
    }
    alice.heard();
    alice.says([bind_to("s1"), parse_as("more", "more"), bind_to("s2"), flush()]);
    // What is bound behind that may be what has gone: it is made again.
    let hears = "B(pgweir_1) C(pgweir_2) P(pgweir_201=more) D(pgweir_201) \
                 C(pgweir_3) P(pgweir_2=2) D(pgweir_2) B(pgweir_2) H";
    assert_eq!(server.heard(), hears);
    let made = [close_complete(), parse_complete(), no_rows()].concat();
    server.says([bind_complete(), made.clone()]);
    assert_eq!(alice.heard(), "2 1");
    server.says([made, bind_complete()]);
    assert_eq!(alice.heard(), "2");
    alice.says([execute(), bind_to("s1"), execute(), sync()]);
    assert_eq!(server.heard(), "E B(pgweir_1) E S");
    server.says([done(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "C 2 C Z");
}

/// PHP's PDO removes by SQL what it has prepared by the protocol.
#[test]
fn sql_removes_a_name() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("DEALLOCATE s")]);
    assert_eq!(server.heard(), "C(s) P(s=) S Q(DEALLOCATE s)");
    server.says([close_complete(), parse_complete(), ready(), done_with("DEALLOCATE"), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    alice.says([bind_to("s"), sync()]);
    assert_eq!(server.heard(), "B(s) S");
}

/// It has found the name of what all clients share in pg_prepared_statements.
#[test]
fn a_server_from_which_sql_may_have_removed_ours_is_emptied() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    let bob = stage.client();
    bob.says([query("DEALLOCATE PGWEIR_1")]);
    assert_eq!(server.heard(), "Q(DEALLOCATE PGWEIR_1)");
    server.says([done_with("DEALLOCATE"), ready()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done_with("DISCARD ALL"), ready()]);
    assert!(took(Mark::OursNamed));
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S");
}

/// It is longer than what is kept to be prepared elsewhere, and the server has not made it.
#[test]
fn a_server_is_not_kept_for_what_was_not_prepared_there() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let long = format!("SELECT '{}' FROM missing", "x".repeat(20_000));
    alice.says([parse_as("s", &long), sync()]);
    server.heard();
    server.says([error("42P01"), ready()]);
    assert_eq!(alice.heard(), "E(42P01) Z");
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("")]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Inside a transaction statements are sent as they come; these are not.
#[test]
fn a_text_that_names_statements_is_read_before_it_is_sent() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    server.heard();
    let text = query("DEALLOCATE s");
    let (first, rest) = text.split_at(10);
    alice.sends(first);
    assert_eq!(server.heard(), "");
    alice.sends(rest);
    assert_eq!(server.heard(), "C(s) P(s=) S Q(DEALLOCATE s)");
}

/// What the server did not remove means what it has meant.
#[test]
fn a_deallocate_that_fails_removes_nothing() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("DEALLOCATE s")]);
    server.heard();
    server.says([close_complete(), parse_complete(), ready(), error("57014"), ready()]);
    assert_eq!(alice.heard(), "E(57014) Z");
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done_with("DISCARD ALL"), ready()]);
    let hears = "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S";
    run(&alice, &server, "s", hears, &[parse_complete(), no_rows()]);
    assert!(took(Mark::NameStays));
}

/// In a transaction that has failed PostgreSQL refuses it whatever there is.
#[test]
fn a_deallocate_in_a_failed_transaction_is_refused() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("BEGIN; bad")]);
    server.says([done(), error("42601"), in_failed_block()]);
    server.heard();
    alice.says([query("DEALLOCATE s")]);
    assert_eq!(server.heard(), "Q(DEALLOCATE s)");
    server.says([error("25P02"), in_failed_block()]);
    alice.says([query("ROLLBACK")]);
    server.says([done(), ready()]);
    server.heard();
    run(&alice, &server, "s", "B(pgweir_1) E S", &[]);
}

/// What is parsed is carried out at any time, if ever: from then on the names are the server's.
#[test]
fn a_batch_that_may_remove_a_name_by_sql_keeps_the_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([parse("DEALLOCATE s"), bind_to(""), execute(), sync()]);
    assert_eq!(server.heard(), "C(s) P(s=SELECT) S P(DEALLOCATE s) B E S");
    let shown = [close_complete(), parse_complete(), ready()].concat();
    server.says([shown, parse_complete(), bind_complete()]);
    server.says([done_with("DEALLOCATE"), ready()]);
    assert_eq!(alice.heard(), "1 2 C Z");
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("p")]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    alice.says([parse_as("s", "other"), sync()]);
    assert_eq!(server.heard(), "P(s=other) S");
}

/// A text may have been parsed before there was what it names.
#[test]
fn a_name_is_given_before_a_text_that_was_parsed_before_is_run() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("DEALLOCATE s"), sync()]);
    server.says([parse_complete(), ready()]);
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([bind_to(""), execute(), sync()]);
    assert!(server.heard().starts_with("C(s) P(s=SELECT) S "));
}

/// What was to give the names was skipped, so they are ours as before.
#[test]
fn names_that_were_not_given_to_the_server_are_known_on() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([parse("bad"), parse("EXECUTE s"), sync(), bind_to("s"), sync()]);
    assert_eq!(server.heard(), "P(bad) C(s) P(s=SELECT) P(EXECUTE s) S");
    server.says([error("42601"), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("")]);
    assert_eq!(server.heard(), "B(pgweir_1) S");
}

/// Nor is it awaited what their rows are like.
#[test]
fn rows_that_were_not_asked_for_are_not_awaited() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", rows());
    alice.says([parse("bad"), parse("EXECUTE s"), sync(), bind_to("s"), sync()]);
    assert!(server.heard().starts_with("P(bad) C(s) P(s=SELECT) D(s) P(EXECUTE s) S"));
    server.says([error("42601"), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("")]);
    assert_eq!(server.heard(), "B(pgweir_1) S");
}

/// A server that has been told a name does not say what its rows are like: the name is ours again.
#[test]
fn rows_that_are_not_told_are_not_awaited() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", rows());
    alice.says([parse("EXECUTE s"), sync(), bind_to("s"), sync()]);
    assert_eq!(server.heard(), "C(s) P(s=SELECT) D(s) S P(EXECUTE s) S");
    server.says([close_complete(), parse_complete(), error("57014"), ready()]);
    server.says([parse_complete(), ready()]);
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("1 Z", "B(pgweir_1) S"));
}

/// Everything is gone, from the server too.
#[test]
fn all_names_are_removed_at_once() {
    for text in ["DEALLOCATE ALL", "DISCARD ALL"] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        prepare(&alice, &server, "s", "SELECT", no_rows());
        prepare(&alice, &server, "t", "TABLE t", no_rows());
        prepare(&bob, &server, "s", "SELECT", no_rows());
        alice.says([query(text)]);
        server.heard();
        server.says([done_with(text), ready()]);
        if text == "DISCARD ALL" {
            // As what the login has asked for may be gone, too.
            server.says([done_with("DISCARD ALL"), ready()]);
        }
        server.heard();
        alice.says([bind_to("s"), sync()]);
        assert_eq!(server.heard(), "B(s) S", "{text}");
        server.says([error("26000"), ready()]);
        alice.says([bind_to("t"), sync()]);
        assert_eq!(server.heard(), "B(t) S", "{text}");
        server.says([error("26000"), ready()]);
        // What bob has prepared bob still has.
        let hears = "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S";
        run(&bob, &server, "s", hears, &[parse_complete(), no_rows()]);
    }
    assert!(took(Mark::AllNamesStay));
}

/// A Close of ours that is passed over leaves nothing where all was removed before: whoever had
/// prepared that was told that there is no such statement.
#[test]
fn what_was_removed_in_front_of_a_close_that_fails_is_gone() {
    let setup = Setup { pool: "prepared_statements_cache_size = 1", ..Setup::default() };
    let (stage, server, alice) = Stage::ready(&setup);
    let bob = stage.client();
    prepare(&alice, &server, "s", "SELECT", no_rows());
    bob.says([parse("DEALLOCATE ALL"), bind(), execute(), parse("bad")]);
    bob.says([parse_as("t", "TABLE t"), sync()]);
    let removes = "P(DEALLOCATE ALL) B E P(bad)";
    let makes = "C(pgweir_1) P(pgweir_2=TABLE t) D(pgweir_2) S";
    assert_eq!(server.heard(), format!("{removes} {makes}"));
    server.says([parse_complete(), bind_complete(), done_with("DEALLOCATE ALL")]);
    server.says([error("42601"), ready()]);
    assert_eq!(bob.heard(), "1 2 C E(42601) Z");
    let hears = "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S";
    run(&alice, &server, "s", hears, &[parse_complete(), no_rows()]);
    assert!(took(Mark::NotRemovedButGone));
}

/// The simulator's: of a statement that its own batch had made, nobody asked what its rows are like
/// under its client's name, though that batch had changed them.
#[test]
fn what_sql_may_name_in_its_own_batch_has_the_rows_that_its_client_is_told_of() {
    for (is_now, changed) in [(no_rows(), true), (rows(), false)] {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([parse_as("s", "SELECT"), parse("EXECUTE s"), sync()]);
        let shown = "C(s) P(s=SELECT) D(s) P(EXECUTE s) S";
        assert_eq!(server.heard(), format!("P(pgweir_1=SELECT) D(pgweir_1) {shown}"));
        server.says([parse_complete(), rows(), close_complete(), parse_complete(), is_now]);
        server.says([parse_complete(), ready()]);
        assert_eq!(alice.heard(), "1 1 Z");
        alice.says([bind_to("s"), execute(), sync()]);
        assert_eq!(server.heard(), if changed { "B(pgweir_) E S" } else { "B(s) E S" });
    }
}

/// SQL that names statements gives them their own names on the server, with rows as they are then.
/// A client that was told of others would read them wrongly.
#[test]
fn what_sql_may_name_has_the_rows_that_its_client_was_told_of() {
    for (is_now, changed) in [(no_rows(), true), (rows(), false)] {
        let (stage, _first, alice, _bob) = moved("SELECT", rows());
        alice.says([query("EXECUTE t")]);
        let second = stage.server();
        assert_eq!(second.heard(), "C(s) P(s=SELECT) D(s) S Q(EXECUTE t)");
        second.says([close_complete(), parse_complete(), is_now.clone(), ready()]);
        second.says([error("26000"), ready()]);
        second.heard();
        alice.heard();
        alice.says([bind_to("s"), execute(), sync()]);
        if !changed {
            assert_eq!(second.heard(), "B(s) E S");
            continue;
        }
        // As often as it is tried.
        for _ in 0..2 {
            assert_eq!(second.heard(), "B(pgweir_) E S");
            second.says([error("26000"), ready()]);
            assert_eq!(alice.heard(), "E(0A000) Z");
            alice.says([bind_to("s"), execute(), sync()]);
        }
        assert_eq!(second.heard(), "B(pgweir_) E S");
        second.says([error("26000"), ready()]);
        // What it was is gone with its name.
        alice.says([close_statement("s"), parse_as("s", "SELECT"), bind_to("s"), sync()]);
        assert_eq!(second.heard(), "C(s) P(s=SELECT) B(s) S");
    }
}

/// What is closed to make room in the batch that has made it is made again as it was told of.
#[test]
fn what_goes_in_its_own_batch_comes_back_as_it_was() {
    let setup = Setup { pool: "prepared_statements_cache_size = 1", ..Setup::default() };
    for (is_now, hears) in [(rows(), "B(pgweir_1) S"), (no_rows(), "B(pgweir_) S")] {
        let (_stage, server, alice) = Stage::ready(&setup);
        alice.says([parse_as("s", "SELECT"), parse_as("t", "ALTER"), bind_to("s"), sync()]);
        let both = "P(pgweir_1=SELECT) D(pgweir_1) C(pgweir_1) P(pgweir_2=ALTER) D(pgweir_2)";
        assert_eq!(server.heard(), format!("{both} H"));
        server.says([parse_complete(), rows(), close_complete(), parse_complete(), no_rows()]);
        assert_eq!(server.heard(), "C(pgweir_2) P(pgweir_1=SELECT) D(pgweir_1) H");
        server.says([close_complete(), parse_complete(), is_now]);
        assert_eq!(server.heard(), hears);
    }
}

/// In one batch what uses a name waits for that.
#[test]
fn a_bind_waits_for_what_is_behind_a_name_that_sql_may_use() {
    for (is_now, hears) in [(rows(), "B(s) E S"), (no_rows(), "B(pgweir_) E S")] {
        let (stage, _first, alice, _bob) = moved("SELECT", rows());
        alice.says([parse("x"), parse_as("t", "EXECUTE s"), bind_to("s"), execute(), sync()]);
        let second = stage.server();
        assert_eq!(second.heard(), "P(x) C(s) P(s=SELECT) D(s) P(t=EXECUTE s) H");
        second.says([
            parse_complete(),
            close_complete(),
            parse_complete(),
            is_now,
            parse_complete(),
        ]);
        assert_eq!(second.heard(), hears);
        assert_eq!(alice.heard(), "1 1");
    }
}

/// What it sets under its own name is asked for like anything else that it sets: its server went to
/// others as it was.
#[test]
fn what_a_shown_statement_sets_is_asked_for() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SET TimeZone = 'UTC'", no_rows());
    alice.says([query("EXECUTE t")]);
    assert!(server.heard().starts_with("C(s) P(s=SET TimeZone"));
    server.says([close_complete(), parse_complete(), ready(), error("26000"), ready()]);
    assert_eq!(alice.heard(), "E(26000) Z");
    alice.says([bind_to("s"), execute(), close_statement("s"), sync()]);
    assert_eq!(server.heard(), "B(s) E C(s) S");
    server.says([bind_complete(), done(), close_complete(), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("")]);
    assert_eq!(server.heard(), "Q(set to?)");
}

/// What takes the place of something whose rows have changed, or may have, is not refused for that.
#[test]
fn what_is_made_in_the_place_of_other_rows_is_used() {
    for is_now in [rows(), no_rows()] {
        let (stage, _first, alice, _bob) = moved("SELECT", rows());
        let removes = [parse("DEALLOCATE s"), bind(), execute()].concat();
        alice.says([removes, parse_as("s", "OTHER"), bind_to("s"), execute(), sync()]);
        let second = stage.server();
        let shown = "C(s) P(s=SELECT) D(s) S";
        let sent = format!("{shown} P(DEALLOCATE s) B E P(s=OTHER) B(s) E S");
        assert_eq!(second.heard(), sent);
        second.says([close_complete(), parse_complete(), is_now, ready()]);
        second.says([parse_complete(), bind_complete(), done_with("DEALLOCATE")]);
        second.says([parse_complete(), bind_complete(), done(), ready()]);
        assert_eq!(alice.heard(), "1 2 C 1 2 C Z");
    }
}

/// What does not take its place leaves it as it was.
#[test]
fn what_is_not_made_in_the_place_of_other_rows_leaves_them() {
    for (is_now, hears) in [(rows(), "B(s) S"), (no_rows(), "B(pgweir_) S")] {
        let (stage, _first, alice, _bob) = moved("SELECT", rows());
        alice.says([parse("EXECUTE s"), parse_as("s", "OTHER"), sync()]);
        let second = stage.server();
        assert_eq!(second.heard(), "C(s) P(s=SELECT) D(s) S P(EXECUTE s) P(s=OTHER) S");
        second.says([close_complete(), parse_complete(), is_now, ready()]);
        second.says([parse_complete(), error("42P05"), ready()]);
        assert_eq!(alice.heard(), "1 E(42P05) Z");
        second.heard();
        alice.says([bind_to("s"), sync()]);
        second.says([left("p")]);
        assert!(second.heard().ends_with(hears), "{hears}");
    }
}

/// Behind the end of a transaction that has failed, too, in the batch that says so.
#[test]
fn other_rows_are_refused_behind_the_end_of_a_failed_transaction() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([query("EXECUTE t")]);
    let second = stage.server();
    second.says([close_complete(), parse_complete(), no_rows(), ready()]);
    second.says([error("26000"), in_failed_block()]);
    second.heard();
    let ends = [parse("ROLLBACK"), bind(), execute()].concat();
    alice.says([ends, bind_to("s"), execute(), sync()]);
    assert_eq!(second.heard(), "P(ROLLBACK) B E B(pgweir_) E S");
}

/// In a transaction that has failed nothing of ours fails in the place of the client's.
#[test]
fn names_are_not_shown_where_a_transaction_has_failed() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("BEGIN; x")]);
    server.says([done(), error("42601"), in_failed_block()]);
    server.heard();
    alice.says([parse("DEALLOCATE s ?"), sync()]);
    assert_eq!(server.heard(), "P(DEALLOCATE s ?) S");
    server.says([error("42601"), in_failed_block()]);
    // Nor before an unnamed statement that is run again.
    alice.says([bind(), sync()]);
    assert_eq!(server.heard(), "C B S");
}

/// EXECUTE finds what was prepared by the protocol, under the client's own name.
#[test]
fn sql_finds_the_names() {
    for (text, asks) in [
        ("EXECUTE s", false),
        ("PREPARE t AS SELECT 1; EXECUTE s", true),
        ("DEALLOCATE s; SELECT 1", true),
    ] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        prepare(&alice, &server, "s", "SELECT", no_rows());
        alice.says([query(text)]);
        assert_eq!(server.heard(), format!("C(s) P(s=SELECT) S Q({text})"));
        server.says([close_complete(), parse_complete(), ready(), done(), ready()]);
        assert_eq!(alice.heard(), "C Z");
        if asks {
            assert_eq!(server.heard(), "Q(left?)");
            server.says([left("p")]);
        }
        // From now on they are names of this session.
        assert_eq!(stage.servers(), [ServerActivity::Active]);
        run(&alice, &server, "s", "B(s) E S", &[]);
    }
}

/// A session that is kept had something under that name, of what was made for it to be taken:
/// EXECUTE ran that.
#[test]
fn what_made_a_name_taken_is_not_found_by_sql() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("SELECT pg_advisory_lock(1)"), parse_as("s", "other"), sync()]);
    let taken = [close_complete(), parse_complete(), error("42P05"), ready()].concat();
    server.says([done(), ready(), taken, left("a")]);
    server.heard();
    alice.says([query("EXECUTE s")]);
    assert_eq!(server.heard(), "C(s) P(s=SELECT) S Q(EXECUTE s)");
}

/// In a COPY a server expects data, and whatever else comes ends it.
#[test]
fn nothing_is_shown_inside_a_copy() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("COPY t FROM STDIN"), query("EXECUTE s")]);
    assert_eq!(server.heard(), "Q(COPY t FROM STDIN)");
    server.says([copy_in()]);
    assert_eq!(server.heard(), "Q()");
}

/// Of a statement that is lost with its server nobody knows whether it was made: its client hears
/// an error, so it was not.
#[test]
fn a_lost_parse_has_made_nothing() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "kept", "SELECT", no_rows());
    alice.says([parse_as("s", "other"), close_statement("kept"), sync()]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007) Z");
    alice.says([bind_to("s"), sync()]);
    let server = stage.server();
    assert_eq!(server.heard(), "B(s) S");
    server.says([error("26000"), ready()]);
    let hears = "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S";
    run(&alice, &server, "kept", hears, &[parse_complete(), no_rows()]);
}

/// Whoever has prepared nothing loses nothing with an idle server; nor does who has.
#[test]
fn it_outlives_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    server.ends();
    alice.says([bind_to("s"), execute(), sync()]);
    let server = stage.server();
    assert_eq!(server.heard(), "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S");
}

/// What its client did not wait for is known of the server all the same.
#[test]
fn a_server_knows_what_it_has_when_its_client_is_gone() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    prepare(&bob, &server, "s", "bob", no_rows());
    alice.says([parse_as("s", "bad"), sync(), parse_as("t", "good"), sync(), terminate()]);
    server.says([error("42601"), ready(), parse_complete(), no_rows(), ready()]);
    server.heard();
    let heard = prepare(&bob, &server, "t", "good", no_rows());
    assert_eq!(heard, "C(pgweir_3) P(pgweir_3=good) D(pgweir_3) S");
    let heard = prepare(&bob, &server, "u", "bad", no_rows());
    assert_eq!(heard, "P(pgweir_4=bad) D(pgweir_4) S");
}

/// While the server reads COPY data nothing is put in between.
#[test]
fn nothing_is_made_inside_a_copy() {
    let (stage, _first, alice, _bob) = moved("INSERT", no_rows());
    alice.says([query("COPY t FROM STDIN")]);
    let second = stage.server();
    second.says([copy_in()]);
    second.heard();
    alice.says([bind_to("s"), sync()]);
    assert_eq!(second.heard(), "Q()");
}

/// What is put in front of a message that waits would wait with it, for ever if it does not come.
#[test]
fn nothing_is_put_in_front_of_a_text_that_waits_for_earlier_units() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", no_rows());
    alice.says([query("SELECT pg_advisory_lock(1)")]);
    server.says([done(), ready(), left("a")]);
    server.heard();
    alice.says([query("SELECT"), parse_as("s", "EXECUTE s"), sync()]);
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    let shown = "C(s) P(s=SELECT) S ";
    assert_eq!(server.heard(), format!("{shown}P(s=EXECUTE s) S"));
}

/// What was put in front of a message that is never sent ends with a Sync of ours: else the server
/// would be neither clean nor anybody's.
#[test]
fn whoever_is_gone_before_its_unit_was_sent_leaves_a_server_to_others() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
    alice.breaks();
    second.says([parse_complete(), rows()]);
    assert_eq!(second.heard(), "S");
    second.says([ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Active, ServerActivity::Idle]);
}

/// An error is the beginning of the unit that it stands in front of: with the server its client
/// loses the rest of the reply.
#[test]
fn an_error_of_what_is_put_in_front_is_a_part_of_the_reply() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    let second = begun(&stage, &alice);
    alice.says([bind_to("s"), execute(), sync()]);
    second.says([error("25P02")]);
    assert_eq!(alice.heard(), "E(25P02)");
    second.breaks();
    assert_eq!(alice.heard(), "E(FATAL 57P01)");
}

/// A cancel may hit between a Parse of ours and what the rows are like: whoever waited for that
/// would wait for ever.
#[test]
fn what_a_server_was_kept_from_saying_is_asked_again() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.heard();
    second.says([parse_complete(), error("57014")]);
    assert!(second.heard().ends_with("B(s) E S"));
    second.says([ready()]);
    assert_eq!(alice.heard(), "E(57014) Z");
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(second.heard(), "C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) H");
}

/// What is put in front of a unit may wait for a lock, and its client for that.
#[test]
fn what_is_put_in_front_is_cancelled_with_its_unit() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
    let requester = stage.cancel(&alice);
    assert_eq!(stage.cancels(), 0, "the server may not have begun it");
    stage.wait(Duration::from_millis(200));
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(cancel.heard_bytes(), cancel_request(&second.key()));
    second.says([error("57014")]);
    assert!(second.heard().ends_with("B(s) E S"));
    second.says([ready()]);
    assert_eq!(alice.heard(), "E(57014) Z");
    cancel.ends();
    assert!(requester.is_closed());
}

/// A request that comes while a statement is made is for the unit that is to run it.
#[test]
fn a_cancel_that_comes_while_a_statement_is_made_is_for_its_unit() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.heard();
    let requester = stage.cancel(&alice);
    second.says([parse_complete(), rows()]);
    assert!(second.heard().ends_with("B(pgweir_1) E S"));
    stage.wait(Duration::from_millis(200));
    stage.assert_cancels(&second, &alice, &requester);
    // The next one was not meant.
    alice.says([query("SELECT")]);
    second.heard();
    second.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
}

/// In a transaction its client has its server already, and a cancel would come too early all the
/// same.
#[test]
fn a_cancel_is_held_back_behind_what_is_put_in_front_in_a_transaction() {
    let (stage, first, alice, _bob) = moved("SELECT", rows());
    let second = begun(&stage, &alice);
    alice.says([bind_to("s"), execute(), sync()]);
    let requester = stage.cancel(&alice);
    second.heard();
    stage.wait(Duration::from_millis(60));
    second.says([parse_complete(), rows()]);
    assert_eq!(second.heard(), "B(pgweir_1) E S");
    stage.wait(Duration::from_millis(60));
    assert_eq!(stage.cancels(), 0, "the server may not have begun it");
    stage.wait(Duration::from_millis(100));
    let cancel = stage.cancel_line().expect("it is wanted");
    second.says([error("57014"), in_failed_block()]);
    cancel.ends();
    assert!(requester.is_closed() && first.is_open());
}

/// A unit that is to be ended is not run on another server instead.
#[test]
fn what_was_cancelled_before_it_was_sent_is_not_run_when_its_server_is_lost() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.heard();
    let requester = stage.cancel(&alice);
    second.breaks();
    assert_eq!(alice.heard(), "E(57014) Z");
    assert!(requester.is_closed() && took(Mark::LossOfCancelledAhead));
    // The next one was not meant.
    alice.says([query("SELECT 2")]);
    assert_eq!(stage.server().heard(), "Q(SELECT 2)");
}

/// A statement that is made takes a part of its client's time, and not of its silence.
#[test]
fn who_waits_for_what_is_put_in_front_is_not_idle() {
    let setup = Setup { general: "idle_client_in_transaction_timeout = 5000", ..Setup::of_size(2) };
    let (stage, first, alice) = Stage::ready(&setup);
    prepare(&alice, &first, "s", "SELECT", rows());
    let bob = stage.client();
    bob.says([query("SELECT")]);
    let second = begun(&stage, &alice);
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
    stage.wait(Duration::from_millis(6_000));
    assert_eq!(alice.heard(), "");
    second.says([parse_complete(), rows()]);
    assert_eq!(second.heard(), "B(pgweir_1) E S");
}

/// Its client has sent nothing to the server, and is to hear nothing of its end.
#[test]
fn a_server_that_ends_while_a_statement_is_made_is_nobodys_loss() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
    second.says([fatal("58030")]);
    second.ends();
    assert_eq!(alice.heard(), "");
    assert_eq!(stage.server().heard(), "P(pgweir_1=SELECT) D(pgweir_1) H");
}

/// The unit in front of which something has failed is under way: its client is not asked to leave
/// before it is over.
#[test]
fn a_unit_that_has_failed_before_it_was_sent_is_under_way() {
    let (stage, _first, alice, _bob) = moved("SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.heard();
    stage.keep_turn_open();
    second.says([error("42P01")]);
    stage.drain();
    stage.end_turn();
    assert_eq!(second.heard(), "B(s) E S");
    second.says([ready()]);
    assert_eq!(alice.heard(), "E(42P01) Z E(FATAL 57P01)");
}

/// Its client sends values of the types that it was told of, whatever another server would make of
/// the text.
#[test]
fn it_is_made_again_with_the_parameters_that_its_client_knows() {
    let int4 = b"t\0\0\0\x0a\0\x01\0\0\0\x17".to_vec();
    let (stage, _first, alice, _bob) = moved("SELECT $1", [int4, columns()].concat());
    alice.says([bind_to("s"), execute(), sync()]);
    let heard = stage.server().heard_bytes();
    let parse = b"P\0\0\0\x1dpgweir_1\0SELECT $1\0\0\x01\0\0\0\x17";
    assert!(heard.starts_with(parse), "{}", heard.escape_ascii());
}

/// Who was not told of rows when it prepared is held to those that it is told of then.
#[test]
fn what_was_not_said_behind_its_parse_is_noted_later() {
    for code in ["0A000", "57014"] {
        let setup = Setup { pool: "prepared_statements_cache_size = 1", ..Setup::default() };
        let (_stage, server, alice) = Stage::ready(&setup);
        alice.says([parse_as("s", "SELECT"), sync()]);
        server.heard();
        server.says([parse_complete(), error(code), ready()]);
        assert_eq!(alice.heard(), format!("1 E({code}) Z"));
        alice.says([describe_statement("s"), sync()]);
        assert_eq!(server.heard(), "C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) D(pgweir_1) S");
        server.says([close_complete(), parse_complete(), rows(), rows(), ready()]);
        assert_eq!(alice.heard(), "t T Z");
        let no_rows = [no_parameters(), no_data()].concat();
        prepare(&alice, &server, "t", "TABLE t", no_rows.clone());
        alice.says([bind_to("s"), execute(), sync()]);
        assert_eq!(server.heard(), "C(pgweir_2) P(pgweir_1=SELECT) D(pgweir_1) H");
        server.says([close_complete(), parse_complete(), no_rows]);
        assert_eq!(server.heard(), "B(pgweir_) E S");
        server.says([error("26000"), ready()]);
        assert_eq!(alice.heard(), "E(0A000) Z");
    }
    assert!(took(Mark::ToldByMaking));
}

/// Where it is made again in vain its name stays what it was.
#[test]
fn what_was_not_said_is_asked_for_again() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse_as("s", "SELECT"), sync()]);
    server.heard();
    server.says([parse_complete(), error("57014"), ready()]);
    alice.heard();
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S");
    server.says([close_complete(), error("42P01"), ready()]);
    assert_eq!(alice.heard(), "E(42P01) Z");
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S");
}

/// Or it is known already, by what another client was told.
#[test]
fn what_was_not_said_may_be_known() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([parse_as("s", "SELECT"), sync()]);
    server.heard();
    server.says([parse_complete(), error("57014"), ready()]);
    alice.heard();
    prepare(&bob, &server, "b", "SELECT", rows());
    alice.says([bind_to("s"), execute(), sync()]);
    assert!(took(Mark::ToldByAnother));
    assert_eq!(server.heard(), "B(pgweir_1) E S");
}

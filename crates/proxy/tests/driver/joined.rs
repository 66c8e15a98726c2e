//! Units of several clients that only read go under one Sync.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity, Stats};
use pgweir_wire::frontend::{self, Target};

use crate::messages::{
    bind, bind_complete, close_complete, close_portal, columns, done, error, execute, fatal,
    long_error, no_data, notice, one_row, parse, parse_complete, query, ready, row, sync,
};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED, ask, braked, shared, updated};
use crate::stage::{Setup, Stage, took};

/// A batch that reads.
fn read(number: usize) -> Vec<u8> {
    [parse(&format!("SELECT {number}")), bind(), execute(), sync()].concat()
}

/// What is answered to it, but for what ends it.
fn rows(value: &str) -> Vec<u8> {
    [parse_complete(), bind_complete(), row(value.as_bytes()), done()].concat()
}

fn joining(size: usize) -> Setup {
    Setup { joins: true, ..shared(size) }
}

/// So many clients have each sent a read, in a turn that goes on.
fn in_turn(clients: usize) -> (Stage, Peer, Vec<Peer>) {
    let (stage, server, clients) = braked(&joining(1), clients);
    stage.keep_turn_open();
    for (number, client) in clients.iter().enumerate() {
        client.says([read(number)]);
    }
    (stage, server, clients)
}

/// A server with a unit of a client of its own, and behind it those of three others under one Sync.
fn joined() -> (Stage, Peer, Vec<Peer>) {
    let (stage, server, clients) = in_turn(4);
    stage.end_turn();
    assert_eq!(
        server.heard(),
        "P(SELECT 0) B E S P(SELECT 1) B E P(SELECT 2) B E P(SELECT 3) B E S"
    );
    assert!(took(Mark::JoinedForTurn));
    server.says([rows("0"), ready()]);
    assert_eq!(clients[0].heard(), "1 2 D(0) C Z");
    (stage, server, clients)
}

/// Each is run in a transaction of its own, on the one server there is.
fn alone<'a>(server: &Peer, clients: impl IntoIterator<Item = &'a Peer>) {
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    for client in clients {
        let heard = server.heard();
        let number = heard.strip_prefix("P(SELECT ").and_then(|rest| rest.split(')').next());
        let number = number.unwrap_or_else(|| panic!("{heard}")).to_owned();
        assert_eq!(heard, format!("P(SELECT {number}) B E S"));
        server.says([rows(&number), ready()]);
        assert_eq!(client.heard(), format!("1 2 D({number}) C Z"));
    }
}

#[test]
fn reads_of_one_turn_go_under_one_sync() {
    let (stage, server, clients) = joined();
    server.says([rows("1"), rows("2")]);
    assert_eq!(clients[1].heard(), "", "it may yet fail");
    server.says([rows("3"), ready()]);
    for (number, client) in clients.iter().enumerate().skip(1) {
        assert_eq!(client.heard(), format!("1 2 D({number}) C Z"));
    }
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    let Stats { transactions, shared, joined, .. } = stage.snapshot().pools[0].stats;
    assert_eq!((transactions, shared, joined), (6, 6, 3), "each is one");
}

#[test]
fn their_replies_may_come_in_bytes() {
    let (_stage, server, clients) = joined();
    for byte in [rows("1"), rows("2"), rows("3"), ready()].concat() {
        server.says([[byte]]);
    }
    for (number, client) in clients.iter().enumerate().skip(1) {
        assert_eq!(client.heard(), format!("1 2 D({number}) C Z"));
    }
}

/// What is said between two replies is of what is carried out then.
#[test]
fn a_notice_is_for_whose_statement_raises_it() {
    let (_stage, server, clients) = joined();
    server.says([rows("1"), notice(), rows("2"), rows("3"), ready()]);
    assert_eq!(clients[1].heard(), "1 2 D(1) C Z");
    assert_eq!(clients[2].heard(), "N 1 2 D(2) C Z");
    assert_eq!(clients[3].heard(), "1 2 D(3) C Z");
}

/// What was done in front of an error is undone with it, and what stands behind it was not begun.
#[test]
fn where_one_fails_each_is_run_again_for_itself() {
    let (stage, server, clients) = joined();
    server.says([rows("1"), parse_complete(), error("22012"), ready()]);
    assert!(took(Mark::Derailed));
    assert!(clients[1..].iter().all(|client| client.heard().is_empty()));
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "P(SELECT 1) B E S");
    server.says([rows("1"), ready()]);
    assert_eq!(clients[1].heard(), "1 2 D(1) C Z");
    assert_eq!(server.heard(), "P(SELECT 2) B E S");
    server.says([parse_complete(), error("22012"), ready()]);
    assert_eq!(clients[2].heard(), "1 E(22012) Z", "the error is its own");
    assert_eq!(server.heard(), "P(SELECT 3) B E S");
    server.says([rows("3"), ready()]);
    assert_eq!(clients[3].heard(), "1 2 D(3) C Z");
    assert_eq!(stage.snapshot().pools[0].stats.joined, 0, "none counts as joined");
}

/// Their transaction begins when the first bytes go out, and all of it is to have been asked for
/// before.
#[test]
fn nobody_joins_what_goes_out_before_the_turn_ends() {
    let (stage, server, clients) = braked(&joining(1), 4);
    server.takes(0);
    clients[0].says([read(0)]);
    stage.keep_turn_open();
    clients[1].says([read(1)]);
    clients[2].says([read(2)]);
    server.takes_all();
    assert_eq!(server.heard(), "P(SELECT 0) B E S P(SELECT 1) B E P(SELECT 2) B E S");
    clients[3].says([read(3)]);
    stage.end_turn();
    assert_eq!(server.heard(), "P(SELECT 3) B E S");
    for number in 0..4 {
        server.says([rows(&number.to_string()), if number == 1 { vec![] } else { ready() }]);
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(client.heard(), format!("1 2 D({number}) C Z"));
    }
}

/// An error comes at once. What is sent behind it and its Sync is carried out.
#[test]
fn who_comes_when_they_have_failed_is_not_one_of_them() {
    let (stage, server, clients) = braked(&joining(1), 4);
    let other = [parse("SELECT a FROM t"), bind(), execute(), sync()].concat();
    for _ in 0..2 {
        clients[3].says([&other]);
        server.says([rows("3"), ready()]);
    }
    server.heard();
    clients[3].heard();
    stage.keep_turn_open();
    for (number, client) in clients[..3].iter().enumerate() {
        client.says([read(number)]);
    }
    server.says([rows("0"), ready(), error("22012")]);
    clients[3].says([&other]);
    assert!(took(Mark::NotJoinedBehindError));
    stage.end_turn();
    assert_eq!(
        server.heard(),
        "P(SELECT 0) B E S P(SELECT 1) B E P(SELECT 2) B E S P(SELECT a FROM t) B E S"
    );
    server.says([ready(), rows("3"), ready()]);
    assert_eq!(clients[3].heard(), "1 2 D(3) C Z");
    alone(&server, &clients[1..3]);
}

/// One in front has its own transaction, and its own error.
#[test]
fn who_fails_in_front_of_them_is_told_at_once() {
    let (stage, server, clients) = in_turn(3);
    server.says([error("22012"), ready()]);
    stage.end_turn();
    assert_eq!(clients[0].heard(), "E(22012) Z");
    server.says([rows("1"), rows("2"), ready()]);
    assert_eq!(clients[2].heard(), "1 2 D(2) C Z");
}

/// Their server waits for a Sync that comes, though who is told of the error has gone.
#[test]
fn a_long_error_for_one_who_has_left_is_read_to_its_end() {
    let (stage, server, clients) = in_turn(3);
    clients[1].breaks();
    let error = long_error(20_000);
    server.says([&[rows("0"), ready()].concat(), &error[..18_000]]);
    server.says([&error[18_000..]]);
    stage.end_turn();
    assert_eq!(server.heard(), "P(SELECT 0) B E S P(SELECT 1) B E P(SELECT 2) B E S");
    server.says([ready()]);
    alone(&server, &clients[2..]);
}

/// Which of two kinds takes long now nobody knows, so each is run by itself until that is known. Of
/// one kind each has taken its part.
#[test]
fn what_takes_longer_than_it_did_is_not_joined() {
    let (stage, server, clients) = braked(&joining(1), 3);
    let (one, other) = (read(1), [parse("SELECT a FROM t"), bind(), execute(), sync()].concat());
    for _ in 0..2 {
        clients[2].says([&other]);
        server.says([rows(""), ready()]);
    }
    server.heard();
    let are_joined = |third: &[u8]| {
        stage.keep_turn_open();
        clients.iter().zip([&one, &one, third]).for_each(|(client, kind)| client.says([kind]));
        stage.end_turn();
        server.heard().contains("E P")
    };
    let late_together = || {
        server.says([rows(""), ready()]);
        stage.wait(Duration::from_millis(45));
        server.says([rows(""), rows(""), ready()]);
    };
    assert!(are_joined(&one));
    late_together();
    assert!(are_joined(&other), "each of those that were alike has taken half of the time");
    late_together();
    assert!(!are_joined(&other));
    let are_joined_at_last = (0..8).any(|_| {
        (0..3).for_each(|_| server.says([rows(""), ready()]));
        are_joined(&other)
    });
    assert!(are_joined_at_last, "by itself each has taken no time");
}

/// All of those would have to be run again each time.
#[test]
fn what_has_failed_is_not_joined_for_a_while() {
    let (stage, server, clients) = joined();
    server.says([error("22012"), ready()]);
    alone(&server, &clients[1..]);
    let both = |stage: &Stage| {
        stage.keep_turn_open();
        clients[..2].iter().for_each(|client| client.says([read(0)]));
        stage.end_turn();
    };
    both(&stage);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    for _ in 0..500 {
        assert_eq!(server.heard(), "P(SELECT 0) B E S P(SELECT 0) B E S");
        server.says([rows("0"), ready(), rows("0"), ready()]);
        both(&stage);
    }
    stage.keep_turn_open();
    clients[2..].iter().for_each(|client| client.says([read(0)]));
    stage.end_turn();
    assert!(server.heard().ends_with("P(SELECT 0) B E P(SELECT 0) B E S"));
}

/// The brake ends what takes too long, and with it the transaction that it is in.
#[test]
fn where_one_overruns_each_is_run_again_for_itself() {
    let (stage, server, clients) = joined();
    stage.wait(Duration::from_millis(60));
    server.says([rows("1"), error("57014"), ready()]);
    assert!(took(Mark::SharedOverran));
    alone(&server, &clients[1..]);
}

/// A reply that is too long does no harm to the others.
#[test]
fn where_the_reply_to_one_is_too_long_the_others_are_answered() {
    let (_stage, server, clients) = joined();
    let long = row(&vec![b'x'; 400_000]);
    server.says([rows("1"), parse_complete(), bind_complete(), long, done()]);
    server.says([rows("3"), ready()]);
    assert_eq!(clients[1].heard(), "1 2 D(1) C Z");
    assert_eq!(clients[2].heard(), "");
    assert_eq!(clients[3].heard(), "1 2 D(3) C Z");
    alone(&server, &clients[2..3]);
}

/// A server that says why it ends may have been at any of them: each only reads. So it is with one
/// that is cut off behind any byte.
#[test]
fn where_their_server_is_lost_each_is_run_again() {
    let said = ["1", "2", "3"].map(rows).concat();
    let ends = [
        |server: &Peer, said: &[u8]| server.says_and_ends([said]),
        |server: &Peer, said: &[u8]| {
            said.iter().for_each(|byte| server.sends(&[*byte]));
            server.breaks();
        },
    ];
    let whole = [&said[..], &ready()].concat();
    let cuts = ends.iter().flat_map(|end| (0..whole.len()).map(move |at| (end, at)));
    for (end, length) in cuts.map(Some).chain([None]).map(Option::unzip) {
        let (stage, server, clients) = joined();
        match end.zip(length) {
            Some((end, length)) => end(&server, &whole[..length]),
            None => server.says_and_ends([rows("1"), fatal("57P01")]),
        }
        let next = stage.server();
        for (number, client) in clients.iter().enumerate().skip(1) {
            assert_eq!(client.heard(), "", "behind {length:?} bytes");
            assert_eq!(next.heard(), format!("P(SELECT {number}) B E S"));
            next.says([rows("again"), ready()]);
            assert_eq!(client.heard(), "1 2 D(again) C Z");
        }
    }
}

#[test]
fn who_has_left_keeps_nobody_from_an_answer() {
    let (stage, server, clients) = joined();
    clients[2].breaks();
    server.says([rows("1"), rows("2"), rows("3"), ready()]);
    assert_eq!(clients[1].heard(), "1 2 D(1) C Z");
    assert_eq!(clients[3].heard(), "1 2 D(3) C Z");
    stage.check();
}

/// It would hit one of the others.
#[test]
fn none_of_them_is_cancelled() {
    let (stage, server, clients) = joined();
    stage.cancel(&clients[2]);
    assert_eq!(stage.cancels(), 0);
    server.says([rows("1"), rows("2"), rows("3"), ready()]);
    assert_eq!(clients[2].heard(), "1 2 D(2) C Z");

    let (stage, server, clients) = joined();
    stage.cancel(&clients[2]);
    server.says([error("22012"), ready()]);
    assert_eq!(clients[2].heard(), "E(57014) Z", "it is not run again");
    alone(&server, [&clients[1], &clients[3]]);
}

/// For PostgreSQL says ReadyForQuery behind each Query.
#[test]
fn queries_go_there_as_batches_that_do_the_same() {
    let (stage, server, clients) = queries();
    let reply = |value: &str| {
        [parse_complete(), bind_complete(), columns(), row(value.as_bytes()), done()].concat()
    };
    let without_rows = [parse_complete(), bind_complete(), no_data(), done()].concat();
    server.says([reply("1"), notice(), reply("2"), without_rows]);
    assert!(clients[1..].iter().all(|client| client.heard().is_empty()));
    server.says([ready()]);
    assert_eq!(clients[1].heard(), "T D(1) C Z");
    assert_eq!(clients[2].heard(), "N T D(2) C Z");
    assert_eq!(clients[3].heard(), "C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A server with a unit of a client of its own, and behind it queries of three others.
fn queries() -> (Stage, Peer, Vec<Peer>) {
    let (stage, server, clients) = braked(&joining(1), 4);
    stage.keep_turn_open();
    ask(&clients);
    stage.end_turn();
    let batches = [1, 2, 3].map(|number| format!("P(SELECT {number}) B D E"));
    assert_eq!(server.heard(), format!("Q(SELECT 0) {} S", batches.join(" ")));
    assert!(took(Mark::QueryConverted));
    server.says([one_row("0")]);
    assert_eq!(clients[0].heard(), "T D(0) C Z");
    (stage, server, clients)
}

/// Its client hears what is said to the query.
#[test]
fn a_query_that_fails_there_is_run_again_as_it_came() {
    let (_stage, server, clients) = queries();
    server.says([error("42601"), ready()]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([error("42703"), ready()]);
    assert_eq!(clients[1].heard(), "E(42703) Z");
    for (number, client) in clients.iter().enumerate().skip(2) {
        assert_eq!(server.heard(), format!("Q(SELECT {number})"));
        server.says([one_row("again")]);
        assert_eq!(client.heard(), "T D(again) C Z");
    }
}

/// So it is with one for which nobody else came.
#[test]
fn nor_does_its_client_hear_of_that_where_it_was_alone() {
    let (_stage, server, clients) = braked(&joining(1), 2);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) P(SELECT 1) B D E S");
    server.says([one_row("0"), error("42601"), ready()]);
    assert_eq!(clients[1].heard(), "");
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

/// What it says would be part of their transaction, or end what they share.
#[test]
fn what_does_not_only_read_goes_behind_their_sync() {
    let (stage, server, clients) = braked(&joining(1), 4);
    updated(&server, &clients[0]);
    let portal = {
        let mut out = parse("SELECT 2");
        frontend::write_bind(&mut out, b"portal", b"", &[]);
        frontend::write_execute(&mut out, b"portal", 0);
        [out, sync()].concat()
    };
    let update = [parse("UPDATE t SET a = 1"), bind(), execute(), sync()].concat();
    let lock = "SELECT a FROM t FOR UPDATE";
    clients[0].says([query(lock)]);
    server.says([one_row("")]);
    clients[0].says([query(lock)]);
    server.says([one_row("")]);
    server.heard();
    clients[0].heard();
    let described = |middle: Vec<u8>| {
        let mut out = [parse("SELECT 2"), middle].concat();
        frontend::write_describe(&mut out, Target::Portal(b""));
        out
    };
    // There may be a portal in front that is not its own.
    let unbound = [described(Vec::new()), execute(), sync()].concat();
    let bound_late = [described(Vec::new()), bind(), execute(), sync()].concat();
    let closing = [described(bind()), execute(), close_portal(), sync()].concat();
    let refusal = [parse_complete(), error("34000"), ready()].concat();
    let all = [parse_complete(), bind_complete(), columns(), done(), close_complete(), ready()];
    let others = [
        (unbound, "P(SELECT 2) D E S", refusal.clone()),
        (bound_late, "P(SELECT 2) D B E S", refusal),
        (closing, "P(SELECT 2) B D E C S", all.concat()),
        (query(lock), "Q(SELECT a FROM t FOR UPDATE)", one_row("2")),
        (portal, "P(SELECT 2) B E S", [rows("2"), ready()].concat()),
        (update, "P(UPDATE t SET a = 1) B E S", [rows("2"), ready()].concat()),
    ];
    for (other, heard, reply) in others {
        stage.keep_turn_open();
        clients[0].says([read(0)]);
        clients[1].says([read(1)]);
        clients[2].says([other]);
        stage.end_turn();
        assert_eq!(server.heard(), format!("P(SELECT 0) B E S P(SELECT 1) B E S {heard}"));
        server.says([rows("0"), ready(), rows("1"), ready(), reply]);
        assert!(clients[..3].iter().all(|client| client.heard().ends_with(" Z")));
        stage.check();
    }
}

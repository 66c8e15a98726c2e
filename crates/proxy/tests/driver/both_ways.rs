//! A client that writes and does not read, and a server that does the same: each direction waits
//! for its own reader alone, whatever the other one does.

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    bind, bind_complete, close_complete, close_statement, copy_data, copy_done, copy_in, done,
    empty_query, error, execute, flush, long_row, one_row, parse, parse_complete, query, ready,
    sync,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// As much as makes either side stop, in one message.
const LONG: usize = 100_000;

/// More than either side could be sent before it has answered some of it.
const DEEP: usize = 100_000;

fn long_query() -> Vec<u8> {
    query(&"x".repeat(LONG))
}

/// Neither takes anything, and what each has sent stands before the other.
fn full() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("first")]);
    assert_eq!(server.heard(), "Q(first)");
    server.takes(0);
    alice.takes(0);
    alice.says([long_query()]);
    server.says([long_row(LONG)]);
    assert!(!alice.is_read() && !server.is_read());
    (stage, server, alice)
}

/// What is still on its way is answered, and the server goes back.
fn finish(stage: &Stage, server: &Peer, alice: &Peer) {
    assert!(server.heard_bytes() == long_query());
    server.says([done(), ready(), one_row("second")]);
    let replies = [long_row(LONG), done(), ready(), one_row("second")].concat();
    assert!(alice.heard_bytes() == replies);
    assert!(alice.is_read() && server.is_read());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A server that reads again lets its client write, though the client reads nothing.
#[test]
fn the_way_to_the_server_opens_by_itself() {
    let (stage, server, alice) = full();
    server.takes_all();
    assert!(alice.is_read() && !server.is_read());
    alice.takes_all();
    finish(&stage, &server, &alice);
}

/// A client that reads again lets its server write, though the server reads nothing.
#[test]
fn the_way_to_the_client_opens_by_itself() {
    let (stage, server, alice) = full();
    alice.takes_all();
    assert!(server.is_read() && !alice.is_read());
    server.takes_all();
    finish(&stage, &server, &alice);
}

/// Little by little, a step of the one and a step of the other.
#[test]
fn both_ways_open_in_small_steps() {
    let (stage, server, alice) = full();
    for _ in 0..2 * LONG / 1_000 {
        server.takes(1_000);
        alice.takes(1_000);
    }
    server.takes_all();
    alice.takes_all();
    finish(&stage, &server, &alice);
}

/// What is noted for each unit on its way was more than the unit itself, and to strike out the
/// first of a million held up the whole worker.
#[test]
fn a_deep_pipeline_waits_for_its_replies() {
    let (stage, server, alice) = Stage::ready(&Setup { unchecked: true, ..Setup::default() });
    alice.sends(&sync().repeat(DEEP));
    assert!(!alice.is_read());
    let (mut units, mut rounds) = (0, 0);
    loop {
        let under_way = server.heard_bytes().len() / sync().len();
        if under_way == 0 {
            break;
        }
        assert!(under_way < DEEP / 10, "{under_way} units at a time");
        server.sends(&ready().repeat(under_way));
        units += under_way;
        rounds += 1;
    }
    assert_eq!(units, DEEP);
    assert!(rounds > 1);
    assert!(alice.heard_bytes() == ready().repeat(DEEP));
    assert!(alice.is_read());
    stage.check();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert!(took(Mark::UnitsFull));
}

/// Syncs behind a COPY are part of it: if they were held back until it is over it would never be.
#[test]
fn a_copy_with_a_deep_pipeline_behind_it_gets_its_data() {
    let (stage, server, alice) = Stage::ready(&Setup { unchecked: true, ..Setup::default() });
    let data = [copy_data(b"1\n"), copy_done()].concat();
    alice.says([&query("COPY t FROM STDIN"), &sync().repeat(DEEP), &data]);
    assert!(!alice.is_read());
    server.says([copy_in()]);
    assert!(server.heard_bytes().ends_with(&data));
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "G C Z");
    stage.check();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// PostgreSQL's buffer for what it sends: it is sent when it is full, or at a ReadyForQuery.
const SERVER_BUFFER: usize = 8192;

fn deep_batch() -> Vec<u8> {
    close_statement("").repeat(DEEP)
}

/// A client's batch of so many messages and no Sync has been sent as far as it may be: the server
/// answers them as PostgreSQL does, and at last the Sync too.
fn answers_a_deep_batch(server: &Peer, alice: &Peer) {
    assert!(!alice.is_read());
    let replies = close_complete().repeat(DEEP);
    let (mut taken, mut sent, mut rounds) = (0, 0, 0);
    loop {
        let under_way = server.heard_bytes().len() / close_statement("").len();
        assert!(under_way <= DEEP / 10, "{under_way} messages at a time");
        taken += under_way;
        let flushed = close_complete().len() * taken / SERVER_BUFFER * SERVER_BUFFER;
        if flushed == sent {
            break;
        }
        server.sends(&replies[sent..flushed]);
        (sent, rounds) = (flushed, rounds + 1);
    }
    assert_eq!(taken, DEEP);
    assert!(rounds > 1);
    assert!(alice.is_read());
    alice.says([sync()]);
    assert_eq!(server.heard(), "S");
    server.says([&replies[sent..], &ready()]);
    assert!(alice.heard_bytes() == [replies, ready()].concat());
}

/// It is one unit, whatever it holds, and each of its messages leaves a note behind.
#[test]
fn a_deep_batch_waits_for_its_replies() {
    let (stage, server, alice) = Stage::ready(&Setup { unchecked: true, ..Setup::default() });
    alice.says([parse("SELECT pg_sleep(600)"), bind(), execute(), flush()]);
    server.heard();
    alice.sends(&deep_batch());
    assert!(!alice.is_read());
    server.says([parse_complete(), bind_complete(), done()]);
    assert_eq!(alice.heard(), "1 2 C");
    answers_a_deep_batch(&server, &alice);
    stage.check();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert!(took(Mark::RepliesFull));
}

/// What stands behind the error is not answered, so no reply to it wakes the client.
#[test]
fn a_deep_batch_that_fails_goes_on_to_its_sync() {
    let (stage, server, alice) = Stage::ready(&Setup { unchecked: true, ..Setup::default() });
    let batch = [parse("SELEC"), deep_batch(), sync()].concat();
    alice.sends(&batch);
    assert!(!alice.is_read());
    let mut heard = server.heard_bytes();
    assert!(heard.len() < batch.len() / 5);
    server.says([error("42601")]);
    assert!(alice.is_read());
    heard.extend(server.heard_bytes());
    assert!(heard == batch);
    server.says([ready()]);
    assert_eq!(alice.heard(), "E(42601) Z");
    stage.check();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A server that is about to read COPY data may be long in coming to it.
#[test]
fn a_deep_batch_inside_a_copy_waits_too() {
    let (stage, server, alice) = Stage::ready(&Setup { unchecked: true, ..Setup::default() });
    alice.says([query("COPY t FROM STDIN")]);
    server.says([copy_in()]);
    server.heard();
    alice.says([deep_batch()]);
    assert!(!alice.is_read());
    assert_eq!(server.heard(), "Q()");
    server.says([error("08P01"), ready(), empty_query(), ready()]);
    assert_eq!(alice.heard(), "G E(08P01) Z");
    answers_a_deep_batch(&server, &alice);
    stage.check();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

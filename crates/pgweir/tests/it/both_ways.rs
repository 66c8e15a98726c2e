//! A client that goes on writing and does not read: both directions fill up, nobody waits for
//! what cannot come, and what is kept for it stays small.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use pgweir_testkit::frames::{bind, close_statement, execute, flush, parse, query, sync};
use pgweir_testkit::{PATIENCE, WireClient, eventually};

use crate::stage::Stage;
use crate::usage::{MB, Memory};

/// A unit that brings a long value there and back, and the value; each kind in its turn.
fn echo(number: usize) -> (Vec<u8>, String) {
    let text = format!("{number} {}", "x".repeat(100_000));
    let frames = match number % 2 {
        0 => query(&format!("SELECT '{text}'")),
        _ => [parse("", "SELECT $1", &[]), bind("", "", &[Some(&text)]), execute("", 0), sync()]
            .concat(),
    };
    (frames, text)
}

/// The only value of the next reply.
fn value(client: &mut WireClient) -> Vec<u8> {
    let reply = client.read_until_ready().unwrap();
    let mut rows = reply.iter().filter(|message| message.tag == b'D');
    let row = rows.next().unwrap();
    assert_eq!(rows.next(), None);
    row.values().remove(0).unwrap()
}

/// Two clients, and both servers open: neither of them will have to wait. While others wait a
/// client is sent to its server unit by unit, and its pipeline fills up behind the first.
fn served(stage: &Stage) -> (WireClient, WireClient) {
    let (mut client, mut other) = (stage.client(), stage.client());
    client.query("BEGIN");
    other.query("SELECT 'warm'");
    client.query("COMMIT");
    (client, other)
}

/// What a thread of its own writes to; when the test has failed it does not wait for ever.
fn writing_end(client: &WireClient) -> TcpStream {
    let stream = client.stream().try_clone().unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Fills both directions, and calls `meanwhile` when they are full.
fn fill_both_ways(stage: &Stage, meanwhile: impl FnOnce(&Memory<'_>)) {
    let (mut client, mut other) = served(stage);
    let memory = Memory::of(&stage.pgweir);
    let stream = writing_end(&client);
    let (sent, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let send = |frames: &[u8]| {
        for piece in frames.chunks(10_000) {
            (&stream).write_all(piece).unwrap();
            sent.fetch_add(piece.len(), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let more = |_: &usize| !enough.load(Ordering::Relaxed);
            let units = (0..).take_while(more).inspect(|number| send(&echo(*number).0)).count();
            send(&query("SELECT 'end'"));
            units
        });
        eventually("both directions to be full", || {
            let before = sent.load(Ordering::Relaxed);
            for _ in 0..100 {
                assert_eq!(other.query("SELECT 'on time'"), ["on time"]);
            }
            let moves = sent.load(Ordering::Relaxed) != before;
            !moves && stage.backends("wait_event = 'ClientWrite'") == 1
        });
        assert!(!sender.is_finished(), "nobody reads it");
        meanwhile(&memory);
        enough.store(true, Ordering::Relaxed);
        let values = (0..).map(|_| value(&mut client)).take_while(|value| value != b"end");
        let read = values.enumerate().inspect(|(number, value)| {
            assert!(value == echo(*number).1.as_bytes(), "{number}");
        });
        assert_eq!(read.count(), sender.join().unwrap());
    });
    assert_eq!(client.query("SELECT 'on'"), ["on"]);
    let growth = memory.growth();
    assert!(growth < 8 * MB, "{growth} bytes more");
}

#[test]
fn a_long_pipeline_that_is_not_read() {
    let stage = Stage::new("both_pipeline", 2);
    fill_both_ways(&stage, |memory| {
        let growth = memory.growth();
        assert!(growth < 8 * MB, "{growth} bytes more");
    });
}

#[test]
fn a_long_pipeline_of_a_session_that_is_not_read() {
    let stage = Stage::session("both_session", 2);
    fill_both_ways(&stage, |_| {});
}

#[test]
fn one_that_gives_up_costs_its_server_and_no_more() {
    let stage = Stage::new("both_gone", 1);
    let client = stage.client();
    let memory = Memory::of(&stage.pgweir);
    let stream = writing_end(&client);
    thread::scope(|scope| {
        // It writes until its connection is gone.
        scope.spawn(|| (0..).all(|number| (&stream).write_all(&echo(number).0).is_ok()));
        stage.wait_for_backends(1, "wait_event = 'ClientWrite'");
        client.stream().shutdown(Shutdown::Both).unwrap();
    });
    drop(stream);
    client.reset().unwrap();
    assert_eq!(stage.client().query("SELECT 'on'"), ["on"]);
    let growth = memory.growth();
    assert!(growth < 8 * MB, "{growth} bytes more");
}

const MANY: usize = 200_000;
const LOCK: &str = "SELECT pg_advisory_xact_lock_shared(1)";

#[test]
fn the_shortest_units_there_are() {
    let units = sync().repeat(MANY);
    let replies = [&b"TDCZ"[..], &b"Z".repeat(MANY)].concat();
    behind_a_lock("both_short", &query(LOCK), &units, &replies);
}

/// PostgreSQL answers when its buffer is full, or when the Sync has come.
#[test]
fn the_longest_batch_there_is() {
    let first = [parse("", LOCK, &[]), bind("", "", &[]), execute("", 0), flush()].concat();
    let rest = [close_statement("none").repeat(MANY), sync()].concat();
    let replies = [&b"12DC"[..], &b"3".repeat(MANY), b"Z"].concat();
    behind_a_lock("both_batch", &first, &rest, &replies);
}

/// Sends what waits for a lock, and then the rest; `replies` are the types of all that comes.
fn behind_a_lock(name: &str, first: &[u8], rest: &[u8], replies: &[u8]) {
    let stage = Stage::new(name, 2);
    let (mut client, mut other) = served(&stage);
    let memory = Memory::of(&stage.pgweir);
    stage.ask("SELECT pg_advisory_lock(1)");
    client.send(first).unwrap();
    stage.wait_for_backends(1, "wait_event_type = 'Lock'");
    let stream = writing_end(&client);
    thread::scope(|scope| {
        scope.spawn(move || (&stream).write_all(rest).unwrap());
        for _ in 0..1_000 {
            assert_eq!(other.query("SELECT 'on time'"), ["on time"]);
        }
        let growth = memory.growth();
        assert!(growth < 4 * MB, "{growth} bytes more");
        stage.ask("SELECT pg_advisory_unlock(1)");
        for reply in replies {
            assert_eq!(client.read().unwrap().unwrap().tag, *reply);
        }
    });
    assert_eq!(client.query("SELECT 'on'"), ["on"]);
    let growth = memory.growth();
    assert!(growth < 4 * MB, "{growth} bytes more");
}

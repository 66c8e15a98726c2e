//! Nothing that reads waits for a commit: neither on a server, nor in the queue.

use pgweir_engine::Mark;

use crate::messages::{done, in_block, one_row, query, ready};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, braked_automatically, updated};
use crate::stage::{Stage, took};

/// So many that change rows stand on one server at most, where `auto` begins.
const WRITES: usize = 8;
/// And so many that read.
const READS: usize = 64;

fn update(client: &Peer) {
    client.says([query("UPDATE t SET a = 0")]);
}

fn select(client: &Peer) {
    client.says([query("SELECT 0")]);
}

/// A server on which as many writes stand as may, one more that waits, and another server, on which
/// one reads. Clients that have not asked yet are given, too.
struct Full {
    _stage: Stage,
    writes: Peer,
    reads: Peer,
    writers: Vec<Peer>,
    reader: Peer,
    others: Vec<Peer>,
}

fn full(others: usize) -> Full {
    let (stage, writes, mut writers) = braked_automatically(2, WRITES + 2 + others);
    let others = writers.split_off(WRITES + 2);
    let reader = writers.pop().expect("one that reads");
    updated(&writes, &writers[0]);
    writers[..2].iter().for_each(update);
    assert_eq!(writes.heard(), ["Q(UPDATE t SET a = 0)"; 2].join(" "));
    let reads = stage.server();
    select(&reader);
    assert_eq!(reads.heard(), BRAKED);
    reads.says([one_row("")]);
    assert_eq!(reads.heard(), "Q(SELECT 0)");
    writers[2..].iter().for_each(update);
    assert_eq!(writes.heard(), ["Q(UPDATE t SET a = 0)"; WRITES - 2].join(" "));
    Full { _stage: stage, writes, reads, writers, reader, others }
}

/// A write that finds all places taken leaves the servers alone on which others read.
#[test]
fn a_write_waits_for_those_in_front_and_holds_up_no_read() {
    let Full { writes, reads, writers, others, .. } = full(1);
    select(&others[0]);
    assert_eq!(reads.heard(), "Q(SELECT 0)");
    assert!(took(Mark::CommitsPassed));
    writes.says([done(), ready()]);
    assert_eq!(writers[0].heard(), "C Z");
    assert_eq!(writes.heard(), "Q(UPDATE t SET a = 0)", "it has its place");
}

/// Those who wait for a place to read are given one though writes wait in front of them.
#[test]
fn reads_are_given_their_places_ahead_of_writes() {
    let Full { writes, reads, reader, others, .. } = full(READS + 1);
    others.iter().for_each(select);
    assert_eq!(reads.heard(), ["Q(SELECT 0)"; READS - 1].join(" "));
    reads.says([one_row("a")]);
    assert_eq!(reader.heard(), "T D(a) C Z");
    assert_eq!(reads.heard(), "Q(SELECT 0)");
    assert!(took(Mark::CommitsPassedInTurn));
    select(&reader);
    assert_eq!(reads.heard(), "", "one waits still, and has asked before");
    reads.says([one_row("b"), one_row("c")]);
    assert_eq!(reads.heard(), "Q(SELECT 0) Q(SELECT 0)");
    assert_eq!(writes.heard(), "");
}

/// Of the writes whoever has asked first is served first.
#[test]
fn a_write_does_not_pass_another() {
    let Full { writes, writers, others, .. } = full(1);
    others[0].says([query("UPDATE t SET a = 1")]);
    writes.says([done(), ready()]);
    assert_eq!(writers[0].heard(), "C Z");
    assert_eq!(writes.heard(), "Q(UPDATE t SET a = 0)");
    writes.says([done(), ready()]);
    assert_eq!(writes.heard(), "Q(UPDATE t SET a = 1)");
}

/// A server that comes free is for the first that has use of it, which may be a read behind a
/// write: of those that may be shared by writes all are.
#[test]
fn a_server_that_comes_free_is_for_a_read_behind_a_write() {
    const SHARED: usize = 16;
    let (stage, first, clients) = braked_automatically(SHARED + 1, SHARED * WRITES + 3);
    updated(&first, &clients[0]);
    let (writers, others) = clients.split_at(SHARED * WRITES + 1);
    let [owner, reader] = others else { unreachable!() };
    let mut writers = writers.iter();
    let mut servers = vec![first];
    let heard = |servers: &[Peer]| -> usize {
        servers.iter().map(|server| server.heard().matches("UPDATE").count()).sum()
    };
    update(writers.next().expect("the first"));
    assert_eq!(heard(&servers), 1);
    while servers.len() < SHARED {
        update(writers.next().expect("one that wants another server"));
        assert_eq!(heard(&servers), 1, "until there is one more");
        let next = stage.server();
        update(writers.next().expect("one that sets it"));
        assert_eq!(next.heard(), BRAKED);
        assert_eq!(heard(&servers), 1, "until that is ready");
        next.says([one_row("")]);
        servers.push(next);
        update(writers.next().expect("one for which it is there"));
        assert_eq!(heard(&servers), 1);
    }
    let last = writers.next_back().expect("one more than may be there");
    writers.for_each(update);
    heard(&servers);
    owner.says([query("BEGIN")]);
    let alone = stage.server();
    assert_eq!(alone.heard(), "Q(BEGIN)");
    alone.says([done(), in_block()]);
    update(last);
    select(reader);
    assert_eq!((heard(&servers), alone.heard()), (0, String::new()));
    owner.says([query("COMMIT")]);
    assert_eq!(alone.heard(), "Q(COMMIT)");
    alone.says([done(), ready()]);
    assert_eq!(alone.heard(), BRAKED);
    alone.says([one_row("")]);
    assert_eq!(alone.heard(), "Q(SELECT 0)");
    assert_eq!(heard(&servers), 0);
}

/// Where no server has writes on it a write waits for one of those on which others read. Were they
/// let by, it would wait for ever.
#[test]
fn a_write_that_has_no_server_yet_is_not_passed() {
    let (_stage, server, clients) = braked_automatically(1, WRITES + 2);
    updated(&server, &clients[0]);
    clients[..WRITES].iter().for_each(select);
    assert_eq!(server.heard(), ["Q(SELECT 0)"; WRITES].join(" "));
    update(&clients[WRITES]);
    select(&clients[WRITES + 1]);
    assert_eq!(server.heard(), "");
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 0)");
}

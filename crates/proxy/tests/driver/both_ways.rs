//! A client that writes and does not read, and a server that does the same: each direction waits
//! for its own reader alone, whatever the other one does.

use pgweir_engine::ServerActivity;

use crate::messages::{copy_data, copy_done, copy_in, done, one_row, query, ready, row, sync};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

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
    server.says([row(&[b'x'; LONG])]);
    assert!(!alice.is_read() && !server.is_read());
    (stage, server, alice)
}

/// What is still on its way is answered, and the server goes back.
fn finish(stage: &Stage, server: &Peer, alice: &Peer) {
    assert!(server.heard_bytes() == long_query());
    server.says([done(), ready(), one_row("second")]);
    let replies = [row(&[b'x'; LONG]), done(), ready(), one_row("second")].concat();
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

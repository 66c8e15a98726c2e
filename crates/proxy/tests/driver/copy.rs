//! COPY FROM STDIN: the one time when the client sends and the server listens.

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    bind, bind_complete, copy_both, copy_data, copy_done, copy_fail, copy_in, done, empty_query,
    error, execute, fatal, in_block, in_failed_block, message, parse, parse_complete, query, ready,
    sync, terminate,
};
use crate::named::{prepare, rows};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// A client inside of a COPY whose data is awaited.
fn copying() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN")]);
    assert_eq!(server.heard(), "Q(COPY t FROM STDIN)");
    server.says([copy_in()]);
    assert_eq!(alice.heard(), "G");
    (stage, server, alice)
}

/// The data goes to the server as it comes, and the server goes back when it is over.
#[test]
fn data_goes_to_the_server_as_it_comes() {
    for end in [copy_done(), copy_fail()] {
        let (stage, server, alice) = copying();
        alice.says([copy_data(b"1\n"), copy_data(b"2\n")]);
        assert_eq!(server.heard(), "d d");
        alice.says([end]);
        server.says([done(), ready()]);
        assert_eq!(alice.heard(), "C Z");
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
}

/// libpq sends the Sync right behind the Execute: PostgreSQL reads it as part of the COPY, and
/// one reply is owed, not two.
#[test]
fn a_sync_before_the_data_is_part_of_the_copy() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("COPY t FROM STDIN"), bind(), execute(), sync()]);
    server.says([parse_complete(), bind_complete(), copy_in()]);
    assert_eq!(alice.heard(), "1 2 G");
    alice.says([copy_data(b"1\n"), copy_done(), sync()]);
    assert_eq!(server.heard(), "P(COPY t FROM STDIN) B E S d c S");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A client that sends all at once, data and what follows it.
#[test]
fn data_may_come_before_it_is_asked_for() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN"), copy_data(b"1\n"), copy_done(), query("next")]);
    assert_eq!(server.heard(), "Q(COPY t FROM STDIN) d c Q(next)");
    server.says([copy_in(), done(), ready(), done(), ready()]);
    assert_eq!(alice.heard(), "G C Z C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What a client holds back for others' sake, until its unit is over, may be what its COPY waits
/// for: both waited for each other.
#[test]
fn data_that_was_held_back_is_sent_when_the_copy_begins() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("COPY t FROM STDIN")]);
    bob.says([query("bob")]);
    alice.says([sync(), copy_data(b"1\n"), copy_done()]);
    assert_eq!(server.heard(), "Q(COPY t FROM STDIN)");
    server.says([copy_in()]);
    assert_eq!(server.heard(), "S d c");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "G C Z");
    assert_eq!(server.heard(), "Q(bob)");
}

/// The same behind the early Sync of libpq.
#[test]
fn data_that_was_held_back_behind_an_early_sync_is_sent_when_the_copy_begins() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([parse("COPY t FROM STDIN"), bind(), execute(), sync()]);
    bob.says([query("bob")]);
    alice.says([sync(), copy_data(b"1\n"), copy_done(), sync()]);
    assert_eq!(server.heard(), "P(COPY t FROM STDIN) B E S");
    server.says([parse_complete(), bind_complete(), copy_in()]);
    assert_eq!(server.heard(), "S d c S");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "1 2 G C Z");
    assert_eq!(server.heard(), "Q(bob)");
}

/// The COPY failed between its CopyInResponse and the first read: the Sync that was taken for
/// part of it is answered after all, and that answer was taken for a stranger's.
#[test]
fn a_sync_before_a_copy_that_fails_at_once_is_answered() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("COPY v FROM STDIN"), bind(), execute(), sync()]);
    server.says([parse_complete(), bind_complete(), copy_in(), error("42809"), ready()]);
    assert_eq!(alice.heard(), "1 2 G E(42809) Z");
    assert_eq!(stage.contained(), None);
    // Nothing in the stream says whether another answer will come: nobody else gets the server.
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    alice.says([terminate()]);
    assert!(server.is_closed());
}

/// The client had left in the middle of its COPY: the server waited for data for ever.
#[test]
fn who_leaves_inside_a_copy_takes_the_server_with_it() {
    for leave in [Peer::ends, Peer::breaks, |alice: &Peer| alice.says([terminate()])] {
        let (stage, server, alice) = copying();
        alice.says([copy_data(b"1\n")]);
        leave(&alice);
        assert!(server.sees_its_client_vanish());
        assert!(!alice.is_open());
        assert_eq!((stage.servers(), stage.connections()), (vec![], 0));
    }
}

/// The same, when it had said so before the server asked for the data.
#[test]
fn who_has_left_before_a_copy_begins_takes_the_server_with_it() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN"), terminate()]);
    assert!(server.is_open());
    server.says([copy_in()]);
    assert!(server.sees_its_client_vanish());
    alice.ends();
    assert_eq!((stage.servers(), stage.connections()), (vec![], 0));
}

/// The same, when its connection was broken: PostgreSQL would never get its data.
#[test]
fn a_copy_of_a_client_that_is_gone_takes_the_server_with_it() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN")]);
    alice.breaks();
    assert_eq!(stage.servers(), [ServerActivity::Tested]);
    server.says([copy_in()]);
    assert!(server.sees_its_client_vanish());
}

/// The COPY had failed while a CopyData was half sent; with its rest swallowed, nothing gave the
/// server back.
#[test]
fn a_copy_that_fails_inside_of_a_message_gives_its_server_back() {
    let (stage, server, alice) = copying();
    let data = copy_data(&[b'x'; 20_000]);
    alice.sends(&data[..18_000]);
    server.says([error("22P02"), ready()]);
    assert_eq!(alice.heard(), "E(22P02) Z");
    alice.sends(&data[18_000..]);
    assert!(server.heard_bytes() == data);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    // What the client sends on, not knowing better, goes nowhere.
    alice.says([copy_data(b"2\n"), copy_done()]);
    let bob = stage.client();
    bob.says([query("bob")]);
    assert_eq!(server.heard(), "Q(bob)");
}

/// Data that comes after the COPY has failed reaches no server that is another's by now.
#[test]
fn data_that_comes_too_late_goes_nowhere() {
    let (stage, server, alice) = copying();
    server.says([error("22P02"), ready()]);
    let bob = stage.client();
    bob.says([query("bob")]);
    alice.says([copy_data(b"1\n"), copy_data(&[b'x'; 50_000]), copy_done(), query("next")]);
    assert_eq!(server.heard(), "Q(bob)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(next)");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "E(22P02) Z C Z");
}

/// PostgreSQL passes over it, too; but what no server needs to hear is not sent.
#[test]
fn data_that_comes_too_late_inside_a_transaction_goes_nowhere() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([copy_data(b"1\n"), copy_done(), copy_fail(), query("next")]);
    assert_eq!(server.heard(), "Q(BEGIN) Q(next)");
}

/// Another message inside of a COPY is an error, at which PostgreSQL loses its place in the stream
/// (`CopyGetData`). It was held back for others' sake, or until the unit before was over, which
/// waited for it.
#[test]
fn another_message_inside_a_copy_ends_it() {
    for wrong in [query("SELECT"), bind(), parse("x")] {
        let (stage, server, alice) = copying();
        let bob = stage.client();
        bob.says([query("bob")]);
        alice.says([wrong]);
        assert_eq!(server.heard(), "Q()");
        server.says([error("08P01"), fatal("08P01")]);
        server.ends();
        assert_eq!(alice.heard(), "E(08P01) E(FATAL 08P01)");
        assert!(alice.is_closed());
        assert_eq!(stage.server().heard(), "Q(bob)");
    }
}

/// What goes ahead is a query, and its client has sent none.
#[test]
fn the_error_inside_a_copy_names_the_message_that_its_client_has_sent() {
    let (_stage, server, alice) = copying();
    alice.says([bind(), execute(), sync()]);
    let unexpected = |named: &str| {
        let text = format!("SERROR\0C08P01\0Munexpected message type {named} during COPY\0\0");
        message(b'E', text.as_bytes())
    };
    server.says([unexpected("0x51")]);
    assert!(alice.heard_bytes() == unexpected("0x42"));
}

/// The simulator's: a COPY that a trigger refuses had failed by then, and what was sent behind it
/// found none of the statements that its client had prepared.
#[test]
fn what_comes_behind_a_copy_that_has_failed_finds_its_names() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    prepare(&alice, &server, "s", "SELECT", rows());
    alice.says([query("COPY t FROM STDIN")]);
    server.heard();
    server.says([copy_in()]);
    alice.says([query("EXECUTE s"), query("next")]);
    assert_eq!(server.heard(), "Q()");
    server.says([error("P0001"), ready()]);
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("G E(P0001) Z", ""));
    server.says([empty_query(), ready()]);
    assert_eq!(server.heard(), "C(s) P(s=SELECT) D(s) S Q(EXECUTE s) Q(next)");
    assert_eq!(stage.contained(), None);
}

/// In a transaction, too, which has failed with it; and of another client, who has been waiting.
#[test]
fn what_comes_behind_a_copy_that_has_failed_is_carried_out() {
    for status in [ready(), in_failed_block()] {
        let (stage, server, alice) = copying();
        let bob = stage.client();
        bob.says([query("bob")]);
        alice.says([bind(), execute(), sync()]);
        assert_eq!(server.heard(), "Q()");
        let fails = status != ready();
        server.says([error("P0001"), status.clone(), empty_query(), status.clone()]);
        assert_eq!(alice.heard(), if fails { "E(P0001) Z(E)" } else { "E(P0001) Z" });
        if !fails {
            assert_eq!(server.heard(), "Q(bob)");
            server.says([done(), ready()]);
        }
        assert_eq!(server.heard(), "B E S");
        server.says([error("34000"), status]);
        assert_eq!(alice.heard(), if fails { "E(34000) Z(E)" } else { "E(34000) Z" });
        assert_eq!(stage.contained(), None);
    }
}

/// A client that sends no data leaves nothing for the COPY to read, and may wait for the answer to
/// what it sends instead: the data of its next COPY were taken for those of this one, and who had
/// said goodbye was closed at CopyInResponse.
#[test]
fn a_copy_that_fails_before_it_reads_what_is_no_data_leaves_that_to_be_answered() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let copy = || query("COPY t FROM STDIN");
    alice.says([copy(), query("next"), copy(), copy_data(b"1\n"), copy_done(), terminate()]);
    let copy = "Q(COPY t FROM STDIN)";
    assert_eq!(server.heard(), format!("{copy} Q(next) {copy} d c"));
    server.says([copy_in(), error("42809"), ready(), done(), ready(), copy_in(), done(), ready()]);
    assert_eq!(alice.heard(), "G E(42809) Z C Z G C Z");
    assert!(alice.is_closed());
    assert_eq!(stage.contained(), None);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A client and a server that both send, as in START_REPLICATION.
fn copying_both_ways() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("START_REPLICATION")]);
    assert_eq!(server.heard(), "Q(START_REPLICATION)");
    server.says([copy_both(), copy_data(b"wal")]);
    assert_eq!(alice.heard(), "W d");
    (stage, server, alice)
}

#[test]
fn data_goes_both_ways() {
    let (stage, server, alice) = copying_both_ways();
    alice.says([copy_data(b"so far")]);
    assert_eq!(server.heard(), "d");
    server.says([copy_data(b"more"), copy_data(b"wal")]);
    alice.says([copy_data(b"so far"), copy_done()]);
    assert_eq!(server.heard(), "d c");
    server.says([copy_data(b"the last"), copy_done(), done(), ready()]);
    assert_eq!(alice.heard(), "d d d c C Z");
    assert_eq!((stage.servers(), stage.contained()), (vec![ServerActivity::Idle], None));
    assert!(took(Mark::CopiesBothWays));
}

/// Data that a client sends before it learns of the error reaches nobody else's server.
#[test]
fn an_error_ends_data_both_ways() {
    let (stage, server, alice) = copying_both_ways();
    let bob = stage.client();
    bob.says([query("bob")]);
    server.says([error("08P01"), ready()]);
    alice.says([copy_data(b"so far"), copy_done()]);
    assert_eq!(server.heard(), "Q(bob)");
    assert_eq!((alice.heard().as_str(), stage.contained()), ("E(08P01) Z", None));
}

#[test]
fn who_leaves_while_data_goes_both_ways_takes_the_server_with_it() {
    for leave in [Peer::ends, Peer::breaks, |alice: &Peer| alice.says([terminate()])] {
        let (stage, server, alice) = copying_both_ways();
        leave(&alice);
        assert!(server.sees_its_client_vanish());
        assert_eq!((stage.servers(), stage.connections()), (vec![], 0));
    }
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("START_REPLICATION"), terminate()]);
    server.says([copy_both()]);
    assert!(server.sees_its_client_vanish());
    alice.ends();
    assert_eq!(stage.connections(), 0);
}

/// The simulator's: a Sync in doubt of a client that is gone kept the server for the next one that
/// met an error there, and a ReadyForQuery too many would have been that one's.
#[test]
fn a_sync_in_doubt_of_nobody_spoils_the_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("COPY t FROM STDIN"), bind(), execute(), sync()]);
    server.says([parse_complete(), bind_complete(), copy_in()]);
    alice.says([copy_data(b"1\n"), copy_done(), sync()]);
    alice.breaks();
    server.heard();
    server.says([error("22P04"), ready()]);
    assert_eq!((server.heard().as_str(), stage.servers()), ("X", vec![]));
}

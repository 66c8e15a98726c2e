//! How long a client keeps its server, and what is done to the server before the next one has it.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    columns, copy_in, done, error, in_block, in_failed_block, left, long_row, message, query,
    ready, row, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// The client runs a query, and its server answers with this.
fn run(client: &Peer, server: &Peer, text: &str, status: Vec<u8>) {
    client.says([query(text)]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), status]);
    client.heard();
}

/// The client runs a query, and its server tells us what it has left there.
fn leave(client: &Peer, server: &Peer, text: &str, letters: &str) {
    run(client, server, text, ready());
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left(letters)]);
}

/// Pooling: a client between transactions holds no server.
#[test]
fn a_server_goes_back_when_its_unit_is_over() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    for client in [&alice, &bob, &alice] {
        run(client, &server, "SELECT", ready());
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
}

/// A transaction that changed servers would be two halves.
#[test]
fn a_transaction_keeps_its_server() {
    for inside in [in_block(), in_failed_block()] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        run(&alice, &server, "BEGIN", inside);
        bob.says([query("bob")]);
        stage.wait(Duration::from_secs(1));
        assert_eq!(server.heard(), "");
        run(&alice, &server, "INSERT", in_block());
        run(&alice, &server, "COMMIT", ready());
        assert_eq!(server.heard(), "Q(bob)");
    }
}

/// Servers that are used in turn are all kept busy: none is ever idle for long enough to close.
#[test]
fn the_server_used_last_is_lent_first() {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    let second = stage.server();
    assert_eq!((first.heard(), second.heard()), ("Q(a)".to_owned(), "Q(b)".to_owned()));
    first.says([done(), ready()]);
    second.says([done(), ready()]);
    for _ in 0..3 {
        run(&alice, &second, "c", ready());
    }
    assert_eq!(first.heard(), "");
}

/// A connection costs the server memory for as long as it is open.
#[test]
fn an_idle_server_is_closed_after_idle_timeout() {
    let (stage, server, alice) = Stage::ready(&Setup::with("idle_timeout = 60000"));
    stage.wait(Duration::from_secs(59));
    run(&alice, &server, "SELECT", ready());
    stage.wait(Duration::from_secs(59));
    assert!(server.is_open());
    stage.wait(Duration::from_secs(2));
    assert_eq!(server.heard(), "X");
    assert!(server.is_closed());
}

/// A backend's caches grow as long as it lives; a busy one is closed at its next return.
#[test]
fn an_old_server_is_closed_when_it_is_free() {
    let (stage, server, alice) = Stage::ready(&Setup::with("server_lifetime = 60000"));
    alice.says([query("slow")]);
    server.heard();
    // A fifth of it is left to chance.
    stage.wait(Duration::from_secs(73));
    assert!(server.is_open());
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "X");
    assert!(server.is_closed());
    assert_eq!(alice.heard(), "C Z");

    let (stage, server, _alice) = Stage::ready(&Setup::with("server_lifetime = 60000"));
    stage.wait(Duration::from_secs(73));
    assert!(server.is_closed());
    assert_eq!(stage.servers(), []);
}

/// What the next client found open would be committed or rolled back by it.
#[test]
fn a_transaction_left_open_is_rolled_back() {
    for inside in [in_block(), in_failed_block()] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        run(&alice, &server, "BEGIN", inside);
        alice.says([terminate()]);
        assert!(alice.is_closed());
        bob.says([query("bob")]);
        assert_eq!(server.heard(), "Q(ROLLBACK)");
        assert_eq!(stage.servers(), [ServerActivity::Tested]);
        server.says([done(), ready()]);
        assert_eq!(server.heard(), "Q(bob)");
    }
}

/// What cannot be cleaned is not lent.
#[test]
fn a_server_that_does_not_come_clean_is_closed() {
    let answers = [
        (vec![error("XX000"), ready()], false),
        (vec![done(), in_block()], true),
        (vec![error("25P02"), in_failed_block()], false),
    ];
    for (answer, in_vain) in answers {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        run(&alice, &server, "BEGIN", in_block());
        alice.says([terminate()]);
        assert_eq!(server.heard(), "Q(ROLLBACK)");
        server.says(answer);
        assert_eq!(server.heard(), "X");
        assert!(server.is_closed());
        assert_eq!(stage.servers(), []);
        assert_eq!(took(Mark::RollbackInVain), in_vain);
    }
}

/// A server that does not answer our own short statements would be lost to its pool for ever.
#[test]
fn a_server_that_is_not_clean_in_time_is_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "BEGIN", in_block());
    alice.says([terminate()]);
    stage.wait(Duration::from_millis(4_900));
    assert!(server.is_open());
    stage.wait(Duration::from_millis(200));
    assert!(server.is_aborted());
    assert_eq!(stage.servers(), []);
}

/// State that a session keeps is on one server only.
#[test]
fn state_of_the_session_keeps_the_server() {
    for (text, letter) in [
        ("CREATE TEMP TABLE t (a int)", "t"),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "h"),
        ("SELECT pg_advisory_lock(1)", "a"),
        ("PREPARE p AS SELECT 1", "p"),
        ("SELECT pg_advisory_lock(1)", "a"),
        ("LOAD 'lib'", ""),
    ] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        if letter.is_empty() {
            run(&alice, &server, text, ready());
        } else {
            leave(&alice, &server, text, letter);
        }
        assert_eq!(stage.servers(), [ServerActivity::Active], "{text}");
        let bob = stage.client();
        bob.says([query("bob")]);
        run(&alice, &server, "SELECT", ready());
        assert_eq!(server.heard(), "", "{text}");
    }
}

/// The state must not be found by the next client.
#[test]
fn state_of_the_session_is_discarded_when_its_client_leaves() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    leave(&alice, &server, "SELECT pg_advisory_lock(1)", "a");
    bob.says([query("bob")]);
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
}

/// DISCARD ALL cannot run inside of a transaction.
#[test]
fn state_is_discarded_behind_the_rollback() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    leave(&alice, &server, "SELECT pg_advisory_lock(1)", "a");
    run(&alice, &server, "BEGIN", in_block());
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(ROLLBACK)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "");
    assert!(server.is_open());
}

/// A library cannot be unloaded, a seed not unset, and what a function did is not known.
#[test]
fn state_that_nothing_removes_closes_the_server() {
    for text in ["LOAD 'lib'", "SELECT setseed(0.5)"] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        run(&alice, &server, text, ready());
        alice.says([terminate()]);
        assert_eq!(server.heard(), "X", "{text}");
        assert!(server.is_closed());
        assert_eq!(stage.servers(), []);
    }
}

/// A FunctionCall names its function by number: who knows what it did.
#[test]
fn a_function_call_keeps_the_server_unless_its_function_is_known() {
    for (oid, kept) in [(957u32, ServerActivity::Idle), (1, ServerActivity::Active)] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let body = [&oid.to_be_bytes()[..], &[0; 6]].concat();
        alice.says([message(b'F', &body)]);
        assert_eq!(server.heard(), "F");
        server.says([message(b'V', &[0xff; 4]), ready()]);
        assert_eq!(alice.heard(), "V Z");
        assert_eq!(stage.servers(), [kept], "{oid}");
    }
}

/// Inside of a transaction, too, which takes it back or not.
#[test]
fn a_server_that_was_reset_in_a_transaction_is_cleaned_behind_it() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "BEGIN", in_block());
    run(&alice, &server, "RESET ALL", in_block());
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(ROLLBACK)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
}

/// Session mode: one client, one server, for as long as the client is there.
#[test]
fn a_session_keeps_its_server_and_leaves_it_clean() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    let bob = stage.client();
    run(&alice, &server, "SELECT", ready());
    bob.says([query("bob")]);
    assert_eq!(server.heard(), "");
    run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
}

/// An operator whose sessions set nothing saves the time for DISCARD ALL.
#[test]
fn a_session_that_leaves_nothing_is_cleaned_as_the_pool_says() {
    for (reset_query, cleaned) in [("CLOSE ALL", "Q(CLOSE ALL)"), ("", "")] {
        let setup = Setup { reset_query, ..Setup::of_mode("session") };
        let (stage, server, alice) = Stage::ready(&setup);
        run(&alice, &server, "SELECT", ready());
        alice.says([terminate()]);
        assert_eq!(server.heard(), cleaned);
        server.says(if cleaned.is_empty() { [vec![], vec![]] } else { [done(), ready()] });
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
}

/// It may ask for data that nobody sends, or say more than anybody reads: its server would be lost
/// to its pool, and read for ever.
#[test]
fn a_server_whose_reset_query_does_not_end_is_given_up() {
    let much = [columns(), row(&[b'x'; 50_000]).repeat(40)].concat();
    for answer in [copy_in(), much] {
        let setup = Setup { reset_query: "COPY t FROM STDIN", ..Setup::of_mode("session") };
        let (stage, server, alice) = Stage::ready(&setup);
        let bob = stage.client();
        run(&alice, &server, "SELECT", ready());
        alice.says([terminate()]);
        bob.says([query("bob")]);
        assert_eq!(server.heard(), "Q(COPY t FROM STDIN)");
        server.says([answer]);
        assert!(server.is_aborted());
        assert_eq!(stage.server().heard(), "Q(bob)");
        assert_eq!(stage.servers(), [ServerActivity::Active]);
        assert!(took(Mark::GivenUpFree));
    }
}

/// But what is known to be there is removed.
#[test]
fn a_session_that_leaves_something_is_discarded_whatever_the_pool_says() {
    for reset_query in ["CLOSE ALL", ""] {
        let setup = Setup { reset_query, ..Setup::of_mode("session") };
        let (_stage, server, alice) = Stage::ready(&setup);
        run(&alice, &server, "SELECT pg_advisory_lock(1)", ready());
        alice.says([terminate()]);
        assert_eq!(server.heard(), "Q(DISCARD ALL)");
    }
}

/// Nobody reads the replies of a client that is gone: they are thrown away, up to a limit.
#[test]
fn what_nobody_reads_is_thrown_away_up_to_a_limit() {
    for (rows, too_much) in [(10, false), (40, true)] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("SELECT much")]);
        server.says([columns()]);
        assert_eq!(alice.heard(), "T");
        alice.breaks();
        for _ in 0..rows {
            server.says([row(&[b'x'; 50_000])]);
        }
        server.says([done(), ready()]);
        assert_eq!(stage.cancels(), usize::from(too_much), "{rows} rows");
        assert_eq!(server.sees_its_client_vanish(), too_much, "{rows} rows");
    }
}

/// One long row counts as many short ones do.
#[test]
fn what_nobody_reads_of_a_long_row_is_thrown_away_up_to_a_limit() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT much")]);
    alice.breaks();
    let long = long_row(3_000_000);
    server.sends(&long[..1_000_000]);
    assert_eq!((server.is_half_closed(), stage.cancels()), (false, 0));
    server.sends(&long[1_000_000..2_000_000]);
    assert_eq!(stage.cancels(), 1);
    assert!(server.sees_its_client_vanish());
    assert_eq!(stage.servers(), []);
}

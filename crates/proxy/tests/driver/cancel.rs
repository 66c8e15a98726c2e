//! A cancel ends what its client has running, or nothing: never anything of another client.

use std::time::Duration;

use pgweir_engine::{CancelProgress, ClientState, Event, Mark, ServerActivity};
use pgweir_wire::CancelKey;

use crate::messages::{
    authentication_ok, cancel_request, columns, done, error, in_block, message, one_row, query,
    ready, row, startup, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// A client whose query runs.
fn running() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("slow")]);
    assert_eq!(server.heard(), "Q(slow)");
    (stage, server, alice)
}

/// The same, and the server has been sent the cancel that is given back last.
fn cancelled() -> (Stage, Peer, Peer, Peer, Peer) {
    let (stage, server, alice) = running();
    let requester = stage.cancel(&alice);
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
    (stage, server, alice, requester, cancel)
}

/// The whole way: the request goes to the server, the server ends the statement, and only when
/// the request's connection has ended is the server free.
#[test]
fn a_statement_that_runs_is_cancelled() {
    let (stage, server, alice, requester, cancel) = cancelled();
    assert!(requester.is_open());
    let bob = stage.client();
    bob.says([query("bob")]);
    server.says([error("57014"), ready()]);
    assert_eq!(alice.heard(), "E(57014) Z");
    // The signal may still be on its way, and would end bob's statement.
    assert_eq!(
        (server.heard().as_str(), stage.servers()),
        ("", vec![ServerActivity::BeingCanceled])
    );
    cancel.ends();
    assert!(cancel.is_aborted() && requester.is_closed());
    assert_eq!(server.heard(), "Q(bob)");
}

/// Whoever looks at the console sees who waits for what: clients that asked for one cancel, and
/// the connection that it takes.
#[test]
fn cancels_are_listed_with_those_who_asked_for_them() {
    let (stage, _server, alice) = running();
    let requesters = [stage.cancel(&alice), stage.cancel(&alice)];
    let listed = || {
        let cancels = stage.snapshot().cancels;
        let [cancel] = &cancels[..] else { panic!("{cancels:?}") };
        assert_eq!(cancel.pool, ("db".to_owned(), "user".to_owned()));
        (cancel.progress, cancel.requesters.len())
    };
    assert_eq!(listed(), (CancelProgress::Connecting, 2));
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(listed(), (CancelProgress::Sent, 2));
    cancel.ends();
    assert!(requesters.iter().all(Peer::is_closed));
    assert!(stage.snapshot().cancels.is_empty());
}

/// A cancel that nobody asked for counts as no client.
#[test]
fn a_cancel_of_our_own_has_nobody_who_asked_for_it() {
    let (stage, _server, alice) = Stage::ready(&Setup::with("transaction_timeout = 1000"));
    alice.says([query("slow")]);
    stage.wait(Duration::from_millis(1_100));
    let _cancel = stage.cancel_line().expect("it is wanted");
    let cancels = stage.snapshot().cancels;
    let [cancel] = &cancels[..] else { panic!("{cancels:?}") };
    assert_eq!((cancel.progress, cancel.requesters.len()), (CancelProgress::Sent, 0));
}

/// A statement that is over before the request's connection is made must not be cancelled: the
/// next one would be.
#[test]
fn a_statement_that_is_over_is_not_cancelled() {
    let (stage, server, alice) = running();
    let bob = stage.client();
    bob.says([query("bob")]);
    let requester = stage.cancel(&alice);
    server.says([done(), ready()]);
    assert!(requester.is_closed());
    assert_eq!(server.heard(), "Q(bob)");
    assert!(stage.cancel_line().is_none(), "nobody wants it any more");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

/// The same, when the server stays with its client: its next statement is not the one meant.
#[test]
fn a_statement_that_is_over_inside_a_transaction_is_not_cancelled() {
    let (stage, server, alice) = running();
    let requester = stage.cancel(&alice);
    server.says([done(), in_block()]);
    let cancel = stage.cancel_line();
    assert!(cancel.is_none_or(|cancel| cancel.heard_bytes().is_empty()));
    assert!(requester.is_closed());
    assert_eq!(alice.heard(), "C Z(T)");
    assert!(server.is_open());
}

/// What waits in the queue is answered by us: no server knows of it.
#[test]
fn a_unit_that_waits_is_cancelled_by_us() {
    let (stage, server, _alice) = running();
    let bob = stage.client();
    bob.says([query("bob"), query("next")]);
    let requester = stage.cancel(&bob);
    assert!(requester.is_closed());
    assert_eq!((bob.heard().as_str(), stage.cancels()), ("E(57014) Z", 0));
    assert_eq!(stage.clients(), [ClientState::Active, ClientState::Waiting]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(next)");
}

/// While its server is brought to its settings the client's unit is not sent yet: the statement
/// that runs is ours, and is let be.
#[test]
fn a_unit_whose_server_is_prepared_is_cancelled_by_us() {
    let stage = Stage::new(&Setup::default());
    let named = stage.newcomer(&[("application_name", "it")]);
    let server = stage.server();
    server.says([one_row("it")]);
    assert!(named.is_greeted());
    let plain = stage.newcomer(&[]);
    server.says([one_row("")]);
    assert!(plain.is_greeted());
    server.heard();
    named.says([query("INSERT")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY[pg_catalog.set_config("));
    let requester = stage.cancel(&named);
    assert!(requester.is_closed());
    assert_eq!((named.heard().as_str(), stage.cancels()), ("E(57014) Z", 0));
    server.says([one_row("it")]);
    assert_eq!((server.heard().as_str(), stage.servers()), ("", vec![ServerActivity::Idle]));
}

/// A server that has told no key cannot be asked for the end of anything: what it runs goes on, and
/// who waits for a cancel is not kept waiting. What is overdue costs it its connection.
#[test]
fn a_server_without_a_key_is_not_cancelled() {
    let general = "transaction_timeout = 5000\nconnect_timeout = 2000";
    let stage = Stage::new(&Setup::with(general));
    let alice = stage.newcomer(&[]);
    let server = stage.bare_server();
    server.says([authentication_ok(), ready()]);
    assert!(alice.is_greeted());
    alice.says([query("slow")]);
    assert!(stage.cancel(&alice).is_closed());
    assert_eq!((stage.cancels(), stage.servers()), (0, vec![ServerActivity::Active]));
    server.says([one_row("1")]);
    assert_eq!(alice.heard(), "T D(1) C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert!(took(Mark::CancelWithoutKey));
    alice.says([query("slow")]);
    stage.wait(Duration::from_millis(5_100));
    assert_eq!((alice.heard().as_str(), stage.cancels()), ("E(FATAL 25P04)", 0));
    stage.wait(Duration::from_millis(1_800));
    assert_eq!(stage.servers(), [ServerActivity::Tested]);
    stage.wait(Duration::from_millis(200));
    assert_eq!((server.is_aborted(), stage.servers()), (true, vec![]));
}

/// A client that runs nothing has nothing to cancel; PostgreSQL says nothing either.
#[test]
fn a_client_that_runs_nothing_is_not_cancelled() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    assert!(stage.cancel(&alice).is_closed());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert!(stage.cancel(&alice).is_closed());
    assert_eq!((stage.cancels(), server.heard().as_str()), (0, "Q(BEGIN)"));
}

/// Whoever guesses a process id knows no secret.
#[test]
fn a_wrong_key_cancels_nothing_and_is_told_nothing() {
    let (stage, _server, alice) = running();
    let key = alice.key();
    let wrong = [
        CancelKey { secret: Box::new([0; 4]), ..key.clone() },
        CancelKey { secret: [&key.secret[..], &[0]].concat().into(), ..key.clone() },
        CancelKey { process_id: key.process_id + 1, ..key.clone() },
        CancelKey { process_id: -1, ..key.clone() },
        CancelKey { process_id: 0, ..key },
    ];
    for key in wrong {
        let stranger = stage.stranger();
        stranger.says([cancel_request(&key)]);
        assert!(stranger.is_closed());
        assert_eq!((stranger.heard_bytes(), stage.cancels()), (vec![], 0));
    }
}

/// What PostgreSQL does not take for a cancel request it does not answer either.
#[test]
fn a_cancel_request_of_another_length_is_told_nothing() {
    for (length, is_one) in [(0, false), (1, true), (3, true), (256, true), (257, false)] {
        let (stage, _server, alice) = running();
        let stranger = stage.stranger();
        let key = CancelKey { secret: vec![9; length].into(), ..alice.key() };
        stranger.says([cancel_request(&key)]);
        let seen = (stranger.is_closed(), stranger.heard_bytes(), stage.cancels(), stage.log());
        assert_eq!(seen, (true, vec![], 0, vec![]), "{length}");
        assert_eq!(took(Mark::CancelMalformed), !is_one, "{length}");
    }
}

/// A stranger that has not logged in has no secret: none must fit it.
#[test]
fn a_connection_that_has_not_logged_in_cannot_be_cancelled() {
    let stage = Stage::new(&Setup::default());
    let waits = stage.newcomer(&[]);
    for secret in [&[0; 4][..], &[0; 32]] {
        let stranger = stage.stranger();
        stranger.says([cancel_request(&CancelKey { process_id: 1, secret: secret.into() })]);
        assert!(stranger.is_closed());
    }
    stage.server();
    assert!(waits.is_greeted());
}

/// Two requests for one statement: one is sent, both requesters are told by their end.
#[test]
fn a_second_request_joins_the_first() {
    let (stage, server, alice) = running();
    let first = stage.cancel(&alice);
    let second = stage.cancel(&alice);
    assert_eq!(stage.cancels(), 1);
    let cancel = stage.cancel_line().expect("it is wanted");
    assert!(first.is_open() && second.is_open());
    // One that comes when the first is out would only lengthen the wait.
    let third = stage.cancel(&alice);
    assert!(third.is_closed());
    assert_eq!(stage.cancels(), 0);
    cancel.ends();
    assert!(first.is_closed() && second.is_closed());
    server.says([error("57014"), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Nobody knows when a request that hangs will hit: its server is not lent again.
#[test]
fn a_request_that_hangs_costs_its_server() {
    let (stage, server, alice, requester, cancel) = cancelled();
    server.says([error("57014"), ready()]);
    assert_eq!(alice.heard(), "E(57014) Z");
    stage.wait(Duration::from_millis(4_900));
    assert_eq!(stage.servers(), [ServerActivity::BeingCanceled]);
    stage.wait(Duration::from_millis(200));
    assert!(server.is_closed() && cancel.is_aborted() && requester.is_closed());
    assert_eq!(stage.servers(), []);
}

/// What the operator is told of a cancel for this client's statement on the first server.
fn in_doubt(client: &Peer, cause: &str) -> Event {
    let (client, pool) = (Some(client.key().process_id), "db/user".to_owned());
    Event::CancelInDoubt { server: 0, client, pool, cause: cause.to_owned() }
}

/// A server that is in the middle of something when the request is over is not relied upon.
#[test]
fn a_server_inside_of_a_message_is_not_lent_behind_a_cancel() {
    let (stage, server, _alice, _requester, cancel) = cancelled();
    let long = message(b'N', &[b'x'; 50_000]);
    server.says([&error("57014")[..], &ready(), &long[..20_000]]);
    assert_eq!(stage.servers(), [ServerActivity::BeingCanceled]);
    cancel.ends();
    assert!(server.is_closed());
    assert_eq!(stage.servers(), []);
    assert!(took(Mark::AstrayComesFree));
}

/// The same, while the statement still runs: its client keeps the server to the end.
#[test]
fn a_request_that_hangs_costs_its_server_when_the_statement_is_over() {
    let (stage, server, alice, requester, cancel) = cancelled();
    stage.wait(Duration::from_millis(5_001));
    assert!(server.is_open() && cancel.is_aborted() && requester.is_closed());
    assert_eq!(stage.log(), [in_doubt(&alice, "it was not over within 5 s")]);
    server.says([one_row("all the same")]);
    assert_eq!(alice.heard(), "T D(all the same) C Z");
    assert!(server.is_closed());
    assert_eq!(stage.servers(), []);
}

/// A request whose connection breaks may have been delivered or not.
#[test]
fn a_request_whose_connection_breaks_costs_its_server() {
    let (stage, server, alice, requester, cancel) = cancelled();
    cancel.breaks();
    assert!(requester.is_closed());
    assert_eq!(stage.log(), [in_doubt(&alice, "its connection broke")]);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert!(server.is_closed());
    assert_eq!(stage.servers(), []);
}

/// A request that never left harms nobody.
#[test]
fn a_request_that_cannot_be_sent_costs_nothing() {
    let (stage, server, alice) = running();
    let requester = stage.cancel(&alice);
    stage.refuse_cancel();
    assert!(requester.is_closed());
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);

    let (stage, server, alice) = running();
    let requester = stage.cancel(&alice);
    stage.wait(Duration::from_millis(5_001));
    assert!(requester.is_closed());
    assert_eq!(stage.log(), []);
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A client that cancels and leaves at once wants its statement ended all the same.
#[test]
fn a_client_that_is_gone_is_cancelled_all_the_same() {
    let (stage, server, alice) = running();
    stage.cancel(&alice);
    alice.breaks();
    assert_eq!(stage.servers(), [ServerActivity::Tested]);
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
    server.says([error("57014"), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::BeingCanceled]);
    cancel.ends();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// ROLLBACK is ours: a cancel for the client that is gone must not hit it.
#[test]
fn our_own_statements_are_not_cancelled() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("slow")]);
    let requester = stage.cancel(&alice);
    alice.breaks();
    server.heard();
    server.says([done(), in_block()]);
    assert_eq!(server.heard(), "Q(ROLLBACK)");
    assert!(stage.cancel_line().is_none_or(|cancel| cancel.heard_bytes().is_empty()));
    assert!(requester.is_closed());
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A place in the store is used again: the key of who was there before must not fit.
#[test]
fn a_key_is_void_when_its_client_is_gone() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([terminate()]);
    let bob = stage.client();
    assert_eq!(alice.key().process_id, bob.key().process_id);
    bob.says([query("bob")]);
    assert!(stage.cancel(&alice).is_closed());
    assert_eq!((stage.cancels(), server.heard().as_str()), (0, "Q(bob)"));
}

/// The server is lost while a cancel is under way: nothing of it is left over.
#[test]
fn a_server_that_is_lost_takes_its_cancel_with_it() {
    let (stage, server, alice, requester, cancel) = cancelled();
    server.says([columns()]);
    server.ends();
    assert_eq!(alice.heard(), "T E(08007) Z");
    assert!(requester.is_closed() && cancel.is_aborted());
    assert_eq!(stage.connections(), 1);
}

/// A requester that does not wait for the end is no reason to call the request back.
#[test]
fn a_requester_need_not_wait() {
    let (stage, server, alice) = running();
    let requester = stage.cancel(&alice);
    requester.ends();
    assert!(!requester.is_open());
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
    cancel.ends();
    server.says([error("57014"), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Protocol 3.2 has longer secrets, and they count to the last byte.
#[test]
fn a_long_secret_is_compared_whole() {
    let (stage, server, _alice) = Stage::ready(&Setup::default());
    let bob = stage.stranger();
    let mut packet = startup(&[("user", "user"), ("database", "db")]);
    packet[7] = 2;
    bob.sends(&packet);
    assert!(bob.is_greeted());
    let key = bob.key();
    assert_eq!(key.secret.len(), 32);
    bob.says([query("slow")]);
    assert_eq!(server.heard(), "Q(slow)");
    let cut = CancelKey { secret: key.secret[..4].into(), ..key };
    let stranger = stage.stranger();
    stranger.says([cancel_request(&cut)]);
    assert_eq!(stage.cancels(), 0);
    stage.cancel(&bob);
    assert_eq!(stage.cancels(), 1);
}

/// One who asks twice is told twice; one who asks once has sent one signal. The second would end
/// what has caught the first and goes on.
#[test]
fn a_cancel_is_sent_once() {
    let (stage, _server, _alice, requester, cancel) = cancelled();
    cancel.ends();
    assert!(requester.is_closed());
    stage.wait(Duration::from_millis(200));
    stage.wait(Duration::from_secs(1));
    assert_eq!((stage.cancels(), stage.servers()), (0, vec![ServerActivity::Active]));
}

/// A client whose query has stood in the queue and was sent just now.
fn dequeued() -> (Stage, Peer, Peer) {
    let (stage, server, bob) = dequeued_with(&["bob"]);
    assert_eq!(server.heard(), "Q(bob)");
    (stage, server, bob)
}

/// The same, with more that it has said along with it.
fn dequeued_with(queries: &[&str]) -> (Stage, Peer, Peer) {
    let (stage, server, _alice) = running();
    let bob = stage.client();
    bob.says(queries.iter().map(|text| query(text)));
    stage.wait(Duration::from_millis(1));
    server.says([done(), ready()]);
    (stage, server, bob)
}

/// PostgreSQL ignores a cancel that comes when it has not begun what it was sent just before, as a
/// unit from the queue is. Whether it has nobody knows, so nothing is sent before it must have.
#[test]
fn a_cancel_waits_until_a_unit_from_the_queue_has_begun() {
    let (stage, server, bob) = dequeued();
    let requesters = [stage.cancel(&bob), stage.cancel(&bob)];
    stage.wait(Duration::from_millis(50));
    assert_eq!(stage.cancels(), 0);
    assert_eq!(stage.snapshot().cancels[0].progress, CancelProgress::HeldBack);
    assert!(requesters.iter().all(Peer::is_open));
    stage.wait(Duration::from_millis(50));
    assert_eq!(stage.cancels(), 1);
    stage.wait(Duration::from_millis(50));
    let cancel = stage.cancel_line().expect("it is wanted");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
    cancel.ends();
    assert!(requesters.iter().all(Peer::is_closed));
    stage.wait(Duration::from_secs(1));
    assert_eq!((stage.cancels(), stage.servers()), (0, vec![ServerActivity::Active]));
}

/// What PostgreSQL has had for a while, or has said a word about, has begun.
#[test]
fn a_statement_that_has_begun_is_cancelled_at_once() {
    let (stage, _server, bob) = dequeued();
    stage.wait(Duration::from_millis(100));
    stage.cancel(&bob);
    assert_eq!(stage.cancels(), 1);

    let (stage, server, bob) = dequeued();
    server.says([columns(), row(b"a part of it")]);
    assert_eq!(bob.heard(), "T D(a part of it)");
    stage.cancel(&bob);
    assert_eq!(stage.cancels(), 1);

    // Its client knows that it was not: it is the next one in line.
    let (stage, server, bob) = dequeued();
    bob.says([query("next")]);
    server.says([done(), in_block()]);
    stage.cancel(&bob);
    assert_eq!(stage.cancels(), 1);
}

/// A client that did not stay to hear of it wants its statement ended all the same.
#[test]
fn a_cancel_waits_for_a_client_that_is_gone() {
    let (stage, server, bob) = dequeued();
    let requester = stage.cancel(&bob);
    bob.breaks();
    stage.wait(Duration::from_millis(100));
    let cancel = stage.cancel_line().expect("it is wanted");
    server.says([error("57014"), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::BeingCanceled]);
    cancel.ends();
    assert!(requester.is_closed());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A cancel that is held back is for its statement alone, wherever that ends.
#[test]
fn a_cancel_that_waits_does_not_hit_the_next_statement() {
    let next = |gap: u64| {
        let (stage, server, bob) = dequeued();
        let requester = stage.cancel(&bob);
        stage.wait(Duration::from_millis(gap));
        bob.says([query("next")]);
        server.says([done(), in_block()]);
        assert_eq!(server.heard(), "Q(next)");
        (stage, server, bob, requester)
    };
    // Its connection is not made, or is being made.
    for gap in [1, 100] {
        let (stage, _server, _bob, requester) = next(gap);
        stage.wait(Duration::from_millis(100));
        while stage.cancels() > 0 {
            let cancel = stage.cancel_line();
            assert!(cancel.is_none_or(|cancel| cancel.heard_bytes().is_empty()));
        }
        assert!(requester.is_closed());
    }

    // Unless its client asks for that.
    for gap in [1, 100] {
        let (stage, server, bob, _requester) = next(gap);
        stage.cancel(&bob);
        let cancels: Vec<_> = (0..stage.cancels()).filter_map(|_| stage.cancel_line()).collect();
        let [cancel] = &cancels[..] else { panic!("{} are wanted", cancels.len()) };
        assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
    }
}

/// A pipeline is ended where it stands, as far as it was sent before: the cancel was dropped with
/// the first of its units.
#[test]
fn a_cancel_that_waits_is_for_all_that_was_sent_before() {
    for connects in [false, true] {
        let (stage, server, bob) = dequeued_with(&["1", "2"]);
        assert_eq!(server.heard(), "Q(1) Q(2)");
        stage.wait(Duration::from_millis(20));
        let requester = stage.cancel(&bob);
        if connects {
            stage.wait(Duration::from_millis(100));
        }
        assert_eq!((stage.cancels(), requester.is_open()), (usize::from(connects), true));
        server.says([done(), ready()]);
        stage.wait(Duration::from_millis(20));
        let cancel = stage.cancel_line().expect("it is wanted");
        assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
        cancel.ends();
        assert!(requester.is_closed());
    }

    let (stage, server, bob) = dequeued_with(&["1", "2"]);
    let requester = stage.cancel(&bob);
    bob.says([query("3")]);
    server.says([done(), ready(), done(), ready()]);
    assert_eq!(server.heard(), "Q(1) Q(2) Q(3)");
    stage.wait(Duration::from_millis(100));
    assert_eq!((stage.cancels(), requester.is_closed()), (0, true));
}

/// A server whose statement ended while a cancel waited is idle, or somebody else's.
#[test]
fn a_server_that_is_free_is_not_cancelled() {
    for waiting in [false, true] {
        let (stage, server, bob) = dequeued();
        stage.cancel(&bob);
        bob.breaks();
        if waiting {
            stage.client().says([query("carol")]);
        }
        server.says([done(), ready()]);
        stage.wait(Duration::from_secs(1));
        assert_eq!(stage.cancels(), 0);
        stage.check();
    }
}

/// The client is not served further, and knows nothing of our cancel: it may as well come when the
/// statement has begun.
#[test]
fn our_own_cancel_waits_until_a_statement_has_begun() {
    let (stage, server, alice) = Stage::ready(&Setup::with("transaction_timeout = 1000"));
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    stage.wait(Duration::from_millis(950));
    alice.says([query("slow")]);
    stage.wait(Duration::from_millis(60));
    assert_eq!((alice.heard().as_str(), stage.cancels()), ("C Z(T) E(FATAL 25P04)", 0));
    stage.wait(Duration::from_millis(40));
    assert!(stage.cancel_line().is_some());
}

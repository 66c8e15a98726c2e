//! Clients are asked to leave, each when its transaction is over, or told that this is the end.

use pgweir_engine::Mark;
use std::time::Duration;

use crate::messages::{
    bind, bind_complete, done, error, execute, flush, in_block, left, long_row, one_row, parse,
    parse_complete, query, ready, sync,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// A client between transactions loses nothing by leaving.
#[test]
fn who_is_idle_is_asked_to_leave_at_once() {
    for mode in ["transaction", "session"] {
        let (stage, server, alice) = Stage::ready(&Setup::of_mode(mode));
        alice.says([query("SELECT")]);
        server.says([done(), ready()]);
        assert_eq!(alice.heard(), "C Z");
        stage.drain();
        assert_eq!(alice.heard(), "E(FATAL 57P01)", "{mode}");
        assert!(alice.is_closed());
        assert_eq!(stage.clients_left(), 0);
    }
}

/// What was begun is finished.
#[test]
fn who_is_busy_leaves_when_its_transaction_is_over() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    stage.drain();
    server.says([done(), in_block()]);
    stage.wait(Duration::from_secs(1));
    assert_eq!(alice.heard(), "C Z(T)");
    alice.says([query("COMMIT")]);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z E(FATAL 57P01)");
    assert!(alice.is_closed());
    assert_eq!(stage.clients_left(), 0);
}

/// The simulator's: its batch was refused while its server was asked something, and is not over.
#[test]
fn who_is_in_the_middle_of_a_batch_leaves_behind_it() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("CREATE TEMP TABLE t ()")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(CREATE TEMP TABLE t ()) Q(left?)");
    assert_eq!(alice.heard(), "C Z");
    alice.says([parse("a"), bind(), execute(), flush()]);
    stage.cancel(&alice);
    assert_eq!(alice.heard(), "E(57014)");
    stage.drain();
    server.says([left("t")]);
    assert_eq!(alice.heard(), "");
    alice.says([sync()]);
    assert_eq!(alice.heard(), "Z E(FATAL 57P01)");
}

/// A unit that waits has been taken: it is run.
#[test]
fn who_waits_is_served_before_it_leaves() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    stage.drain();
    assert_eq!(stage.clients_left(), 2);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(a) Q(b)");
    server.says([done(), ready()]);
    for client in [&alice, &bob] {
        assert_eq!(client.heard(), "C Z E(FATAL 57P01)");
        assert!(client.is_closed());
    }
}

/// A batch whose Sync has not come is not over.
#[test]
fn who_has_a_batch_open_leaves_behind_its_sync() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("INSERT"), bind(), execute(), flush()]);
    server.says([parse_complete(), bind_complete(), done()]);
    stage.drain();
    stage.wait(Duration::from_secs(1));
    assert_eq!(alice.heard(), "1 2 C");
    alice.says([sync()]);
    server.says([ready()]);
    assert_eq!(alice.heard(), "Z E(FATAL 57P01)");
}

/// Nobody new is taken.
#[test]
fn who_comes_is_sent_away() {
    let (stage, _server, _alice) = Stage::ready(&Setup::default());
    stage.drain();
    let newcomer = stage.newcomer(&[]);
    assert_eq!(newcomer.heard(), "E(FATAL 57P03)");
    assert!(newcomer.is_closed());
    assert_eq!(stage.clients_left(), 0);
}

/// A connection that asks for a cancel is no session to end: draining tripped over it.
#[test]
fn a_cancel_under_way_is_let_be() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("slow")]);
    let requester = stage.cancel(&alice);
    let cancel = stage.cancel_line().expect("it is wanted");
    stage.drain();
    assert!(requester.is_open());
    server.says([error("57014"), ready()]);
    assert_eq!(alice.heard(), "E(57014) Z E(FATAL 57P01)");
    cancel.ends();
    assert!(requester.is_closed());
    assert_eq!(stage.clients_left(), 0);
}

/// The server of a statement that could not be cancelled any more was spoilt by it, so that it
/// closed while its client's cancel still named it.
#[test]
fn a_cancel_whose_server_is_gone_is_let_be() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT setseed(0.5)")]);
    let requester = stage.cancel(&alice);
    server.says([done(), ready()]);
    stage.drain();
    assert_eq!(alice.heard(), "C Z E(FATAL 57P01)");
    assert!(alice.is_closed() && server.is_closed());
    let cancel = stage.cancel_line();
    assert!(cancel.is_none_or(|cancel| cancel.heard_bytes().is_empty()));
    assert!(requester.is_closed());
    assert_eq!((stage.clients_left(), stage.connections()), (0, 0));
}

/// A batch that was refused is answered to its end before its client is told.
#[test]
fn who_is_skipping_a_refused_batch_leaves_behind_its_sync() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([parse("INSERT"), bind(), execute(), flush()]);
    stage.cancel(&bob);
    stage.drain();
    assert_eq!(bob.heard(), "E(57014)");
    assert!(bob.is_open());
    bob.says([sync()]);
    stage.wait(Duration::from_millis(100));
    assert_eq!(bob.heard(), "Z E(FATAL 57P01)");
    assert!(bob.is_closed());
}

/// Who has waited in vain is told so, and is then in the middle of nothing: it was forgotten, and
/// the drain never ended.
#[test]
fn who_waits_in_vain_leaves() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("b")]);
    stage.drain();
    stage.wait(Duration::from_secs(5));
    assert_eq!(bob.heard(), "E(53300) Z");
    stage.wait(Duration::from_millis(100));
    assert_eq!(bob.heard(), "E(FATAL 57P01)");
    assert!(bob.is_closed());
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z E(FATAL 57P01)");
    assert_eq!(stage.clients_left(), 0);
}

/// A client whose greeting waits for its settings is greeted, or told; it does not hang.
#[test]
fn who_waits_for_its_greeting_leaves() {
    let stage = Stage::new(&Setup::default());
    let newcomer = stage.newcomer(&[("application_name", "it")]);
    stage.drain();
    let server = stage.server();
    server.says([one_row("it")]);
    stage.wait(Duration::from_millis(100));
    assert!(newcomer.heard().ends_with("E(FATAL 57P01)"));
    assert!(newcomer.is_closed());
    assert_eq!(stage.clients_left(), 0);
}

/// Who logs in is in the middle of nothing.
#[test]
fn who_logs_in_is_asked_to_leave() {
    let stage = Stage::new(&Setup { auth: "md5", ..Setup::default() });
    let [silent, asked] = [stage.stranger(), stage.newcomer(&[])];
    stage.drain();
    for stranger in [&silent, &asked] {
        assert!(stranger.is_closed());
    }
    assert_eq!(stage.clients_left(), 0);
}

/// A stage with so many idle clients.
fn crowd(size: usize, general: &'static str) -> (Stage, Peer, Vec<Peer>) {
    let setup = Setup { general, unchecked: true, ..Setup::default() };
    let (stage, server, first) = Stage::ready(&setup);
    let others = (1..size).map(|_| stage.client());
    let clients = std::iter::once(first).chain(others).collect();
    (stage, server, clients)
}

/// All that were idle came to the next pooler in the same moment.
#[test]
fn a_crowd_that_is_idle_leaves_over_a_while() {
    let (stage, _server, clients) = crowd(200, "shutdown_timeout = 60000");
    stage.drain();
    assert!(stage.clients_left() > 190, "{} are left", stage.clients_left());
    stage.wait(Duration::from_millis(2_500));
    let left = stage.clients_left();
    assert!((60..140).contains(&left), "{left} are left when half of the time is over");
    stage.wait(Duration::from_millis(2_500));
    for client in &clients {
        assert_eq!(client.heard(), "E(FATAL 57P01)");
        assert!(client.is_closed());
    }
    stage.check();
    assert_eq!(stage.clients_left(), 0);
    assert!(took(Mark::FarewellsSpread));
}

/// What is told over a while is told to those who would not notice the difference.
#[test]
fn who_asks_something_in_a_crowd_leaves_behind_its_answer() {
    let (stage, server, clients) = crowd(200, "");
    stage.drain();
    let asks = clients.iter().find(|client| client.is_open()).expect("somebody is left");
    asks.says([query("SELECT")]);
    server.says([done(), ready()]);
    assert_eq!(asks.heard(), "C Z E(FATAL 57P01)");
    assert!(stage.clients_left() > 100);
    stage.check();
}

/// Who has little time spends a tenth of it, and who has none spends none.
#[test]
fn a_crowd_has_no_more_than_a_tenth_of_the_time() {
    let (stage, _server, _clients) = crowd(100, "shutdown_timeout = 1000");
    stage.drain();
    assert!(stage.clients_left() > 0);
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.clients_left(), 0);

    let (stage, _server, _clients) = crowd(100, "shutdown_timeout = 0");
    stage.drain();
    assert_eq!(stage.clients_left(), 0);
}

/// A few overrun nobody.
#[test]
fn less_than_a_crowd_leaves_at_once() {
    let (stage, _server, _clients) = crowd(99, "");
    stage.drain();
    assert_eq!(stage.clients_left(), 0);
}

/// As in a fast shutdown of PostgreSQL, where drivers know the word for it.
#[test]
fn whoever_is_shut_down_is_told() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let [bob, carol] = [stage.client(), stage.client()];
    let stranger = stage.stranger();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    bob.says([query("waits")]);
    stage.shut_down();
    assert_eq!(alice.heard(), "C Z(T) E(FATAL 57P01)");
    for other in [&bob, &carol, &stranger] {
        assert_eq!(other.heard(), "E(FATAL 57P01)");
    }
    for client in [&alice, &bob, &carol, &stranger] {
        assert!(client.is_closed());
    }
    assert_eq!(stage.clients_left(), 0);
    assert!(!server.heard().contains("waits"), "what waits is not run any more");
}

/// There is no place for an error inside of a message, and none for an answer to a cancel.
#[test]
fn who_cannot_be_told_is_shut_down_without_a_word() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    let requester = stage.cancel(&alice);
    server.sends(&long_row(100_000)[..50_000]);
    let told = alice.heard_bytes().len();
    assert!(told > 0);
    stage.shut_down();
    assert!(alice.is_closed());
    assert_eq!((alice.heard_bytes(), requester.heard_bytes()), (vec![], vec![]));
}

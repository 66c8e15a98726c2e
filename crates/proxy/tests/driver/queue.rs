//! Who gets a server, and when another is opened.

use std::time::Duration;

use pgweir_engine::{ClientState, ServerActivity};

use crate::messages::{
    bind, bind_complete, describe_statement, done, execute, fatal, flush, in_block, parse,
    parse_complete, query, ready, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// A stage whose only server is busy with a query of the client that is given back.
fn busy(setup: &Setup) -> (Stage, Peer, Peer) {
    let (stage, server, client) = Stage::ready(setup);
    client.says([query("slow")]);
    assert_eq!(server.heard(), "Q(slow)");
    (stage, server, client)
}

/// A stage whose only server is gone, and its client.
fn deserted(setup: &Setup) -> (Stage, Peer) {
    let (stage, server, client) = Stage::ready(setup);
    server.ends();
    assert_eq!(stage.servers(), []);
    (stage, client)
}

/// Whoever leaves the queue leaves a place in it; the queue of a pool that nobody reaches grew.
#[test]
fn places_that_were_left_are_cleared_away() {
    let (stage, server, alice) = busy(&Setup::default());
    let mut waiters: Vec<_> = (0..31).map(|_| stage.client()).collect();
    for waiter in &waiters {
        waiter.says([query("SELECT")]);
    }
    stage.check();
    for waiter in waiters.drain(1..) {
        waiter.breaks();
        stage.check();
    }
    server.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("C Z", "Q(SELECT)"));
}

/// A pool that served whom it liked would let some client wait for ever.
#[test]
fn who_asks_first_is_served_first() {
    let (stage, server, _alice) = busy(&Setup::default());
    let waiters: Vec<_> = ["first", "second", "third"]
        .map(|text| {
            let client = stage.client();
            client.says([query(text)]);
            (client, text)
        })
        .into();
    for (client, text) in &waiters {
        server.says([done(), ready()]);
        assert_eq!(server.heard(), format!("Q({text})"));
        assert_eq!(client.heard(), "");
    }
    server.says([done(), ready()]);
    for (client, _) in &waiters {
        assert_eq!(client.heard(), "C Z");
    }
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A client that asks again at once would otherwise starve those that have waited all along.
#[test]
fn who_has_had_a_server_asks_at_the_end_of_the_queue() {
    let (stage, server, alice) = busy(&Setup::default());
    let bob = stage.client();
    bob.says([query("bob")]);
    alice.says([query("again")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(again)");
}

/// Opening one server at a time makes a cold start slow; opening too many breaks the limit that
/// the operator has set.
#[test]
fn a_burst_opens_a_server_for_each_waiter_up_to_the_size() {
    let (stage, server, alice) = Stage::ready(&Setup::of_size(4));
    alice.says([query("has the first")]);
    assert_eq!(server.heard(), "Q(has the first)");
    for (waiters, attempts) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3)] {
        let client = stage.client();
        client.says([query("one more")]);
        assert_eq!(stage.attempts(), attempts, "{waiters} wait");
    }
    for _ in 0..3 {
        assert_eq!(stage.server().heard(), "Q(one more)");
    }
    assert_eq!(stage.attempts(), 0);
    assert_eq!(stage.servers(), [ServerActivity::Active; 4]);
}

/// A server that comes when nobody waits any more is kept for the next one.
#[test]
fn a_waiter_that_was_served_meanwhile_leaves_its_attempt_to_the_pool() {
    let (stage, server, _alice) = busy(&Setup::of_size(2));
    let bob = stage.client();
    bob.says([query("bob")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
    let second = stage.server();
    assert_eq!(second.heard(), "");
    assert_eq!(stage.servers(), [ServerActivity::Active, ServerActivity::Idle]);
}

/// A server that is down must not be asked a thousand times a second, nor by a thousand clients.
#[test]
fn failed_attempts_are_spaced_out_and_one_probes_for_all() {
    let setup = Setup { size: 5, general: "query_wait_timeout = 0", ..Setup::default() };
    let (stage, client) = deserted(&setup);
    let others: Vec<_> = (0..5).map(|_| stage.client()).collect();
    for client in others.iter().chain([&client]) {
        client.says([query("anything")]);
    }
    assert_eq!(stage.attempts(), 5);
    for _ in 0..5 {
        stage.refuse_server();
    }
    assert_eq!(stage.attempts(), 0);
    // Five have failed: 50 ms, doubled for each but the first, of which up to a half is luck.
    for delay_ms in [800, 1_600, 2_000, 2_000, 2_000] {
        stage.wait(Duration::from_millis(delay_ms / 2 - 1));
        assert_eq!(stage.attempts(), 0, "{delay_ms} ms");
        stage.wait(Duration::from_millis(delay_ms / 2 + 1));
        assert_eq!(stage.attempts(), 1, "{delay_ms} ms");
        stage.refuse_server();
    }
    // One success, and all that wait are opened for at once.
    stage.wait(Duration::from_secs(2));
    assert_eq!(stage.server().heard(), "Q(anything)");
    assert_eq!(stage.attempts(), 4);
}

/// Pools that were refused in the same moment must not come back in the same moment.
#[test]
fn attempts_of_several_pools_are_spread() {
    const POOLS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let stage = Stage::new(&Setup { others: &POOLS, ..Setup::default() });
    let _newcomers = POOLS.map(|database| stage.newcomer_to(database));
    assert_eq!(stage.attempts(), 8);
    for _ in POOLS {
        stage.refuse_server();
    }
    stage.wait(Duration::from_millis(24));
    assert_eq!(stage.attempts(), 0);
    stage.wait(Duration::from_millis(13));
    assert!((1..8).contains(&stage.attempts()), "{}", stage.attempts());
    stage.wait(Duration::from_millis(14));
    assert_eq!(stage.attempts(), 8);
}

/// Two whose servers were lost together came back in the opposite order: the one that had waited
/// longer was served behind the other, and was told that it waits in vain far too late.
#[test]
fn who_loses_a_server_goes_back_to_its_own_place() {
    let own = [("application_name", "own")];
    let general = "connect_timeout = 1000\nquery_wait_timeout = 5000";
    let (stage, first, alice) = Stage::ready(&Setup { general, ..Setup::of_size(2) });
    let carol = stage.newcomer(&own);
    first.says([done(), ready()]);
    let dora = stage.newcomer(&own);
    assert!(carol.is_greeted() && dora.is_greeted());
    alice.says([query("slow")]);
    first.says([done(), ready()]);
    let bob = stage.client();
    bob.says([query("slow")]);
    let second = stage.server();
    carol.says([query("carol")]);
    stage.wait(Duration::from_secs(3));
    dora.says([query("dora")]);
    for server in [&first, &second] {
        assert!(server.heard().ends_with("Q(slow)"));
        server.says([done(), ready()]);
        assert!(
            server.heard().starts_with("Q(SELECT ARRAY"),
            "it is brought to the settings of the next"
        );
    }
    stage.wait(Duration::from_millis(1_001));
    assert!(first.is_aborted() && second.is_aborted());
    stage.wait(Duration::from_secs(1));
    assert_eq!((carol.heard().as_str(), dora.heard().as_str()), ("E(53300) Z", ""));
}

/// A client is told that it waits in vain, in the place of its unit's reply, and may ask again.
#[test]
fn a_wait_ends_after_query_wait_timeout() {
    let (stage, server, _alice) = busy(&Setup::default());
    let bob = stage.client();
    bob.says([query("bob")]);
    stage.wait(Duration::from_millis(4_999));
    assert_eq!(bob.heard(), "");
    stage.wait(Duration::from_millis(2));
    assert_eq!(bob.heard(), "E(53300) Z");
    assert_eq!(stage.clients(), [ClientState::Active, ClientState::Idle]);
    bob.says([query("bob, again")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob, again)");
}

/// "All servers are busy" sends the operator to the wrong place when the server is down.
#[test]
fn who_waits_in_vain_is_told_what_the_attempts_failed_of() {
    let (stage, client) = deserted(&Setup::default());
    client.says([query("anything")]);
    stage.refuse_server();
    stage.wait(Duration::from_millis(5_001));
    let told = client.heard_bytes();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("can be reached"), "{told}");
    assert!(told.contains("connection refused"), "{told}");
}

/// A client that waits for its first greeting is in no transaction: it is sent away.
#[test]
fn a_newcomer_that_waits_in_vain_is_sent_away() {
    let stage = Stage::new(&Setup::default());
    let newcomer = stage.newcomer(&[]);
    stage.wait(Duration::from_millis(5_001));
    assert_eq!(newcomer.heard(), "R E(FATAL 57P03)");
    assert!(newcomer.is_closed());
}

/// Each client that was welcomed resumed the next one within its own call: two thousand of them
/// overflowed the worker's stack.
#[test]
fn a_server_that_many_newcomers_wait_for_greets_them_in_bounded_stack() {
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let greeted = small.spawn(|| {
        let stage = Stage::new(&Setup { unchecked: true, ..Setup::default() });
        let newcomers: Vec<_> = (0..2_000).map(|_| stage.newcomer(&[])).collect();
        stage.server();
        stage.check();
        newcomers.iter().filter(|newcomer| newcomer.is_greeted()).count()
    });
    let greeted = greeted.map(std::thread::JoinHandle::join).expect("a thread");
    assert_eq!(greeted.expect("it does not overflow"), 2_000);
}

/// Void entries were counted as waiters when the queue was thinned out: a client behind many that
/// had cancelled was forgotten.
#[test]
fn who_waits_behind_many_that_gave_up_is_not_forgotten() {
    let (stage, server, _alice) = busy(&Setup::default());
    let first = stage.client();
    first.says([query("first")]);
    let between: Vec<_> = (0..18)
        .map(|_| {
            let client = stage.client();
            client.says([query("between")]);
            client
        })
        .collect();
    stage.wait(Duration::from_secs(3));
    let last = stage.client();
    last.says([query("last")]);
    for client in &between {
        stage.cancel(client);
        assert_eq!(client.heard(), "E(57014) Z");
    }
    stage.wait(Duration::from_millis(2_100));
    assert_eq!(first.heard(), "E(53300) Z");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(last)");
}

/// A connection that breaks in the queue must not be lent a server, and must not hold one up.
#[test]
fn who_breaks_off_in_the_queue_is_passed_over() {
    let (stage, server, _alice) = busy(&Setup::default());
    let [bob, carol] = ["bob", "carol"].map(|text| {
        let client = stage.client();
        client.says([query(text)]);
        client
    });
    bob.breaks();
    assert!(bob.is_aborted());
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(carol)");
    server.says([done(), ready()]);
    assert_eq!(carol.heard(), "C Z");
}

/// The same, where nothing more is read: of one that has said its last word, or has sent so much
/// already that it is not read until a part of it is run.
#[test]
fn who_is_reset_in_the_queue_is_passed_over_though_it_is_not_read() {
    let insert = || query("bob");
    let ahead = query(&"x".repeat(100_000));
    for (says, ends) in [(vec![insert()], true), (vec![insert(), ahead], false)] {
        let (stage, server, _alice) = busy(&Setup::default());
        let [bob, carol] = [stage.client(), stage.client()];
        bob.says(says);
        if ends {
            bob.ends();
        }
        carol.says([query("carol")]);
        assert!(bob.is_open(), "it is owed a reply");
        bob.breaks();
        assert!(bob.is_aborted());
        server.says([done(), ready()]);
        assert_eq!(server.heard(), "Q(carol)");
    }
}

/// What had been found whole of a unit was not forgotten with the unit: a shorter one behind it
/// was taken for already seen, and its client waited for ever.
#[test]
fn a_unit_behind_one_that_was_refused_takes_its_own_place_in_the_queue() {
    let (stage, server, _alice) = busy(&Setup::default());
    let bob = stage.client();
    let long = "SELECT 1 -- a text that is longer than all of the unit that stands behind it";
    bob.says([parse(long), bind(), execute(), sync(), query("short")]);
    stage.wait(Duration::from_millis(5_001));
    assert_eq!(bob.heard(), "E(53300) Z");
    assert_eq!(stage.clients(), [ClientState::Active, ClientState::Waiting]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(short)");
}

/// A wrong password in the configuration does not mend itself: who waits is told at once.
#[test]
fn a_login_that_is_refused_for_good_is_told_at_once() {
    let (stage, client) = deserted(&Setup::default());
    client.says([query("anything")]);
    stage.bare_server().says([fatal("28P01")]);
    assert_eq!(client.heard(), "E(28P01) Z");
    assert_eq!(stage.clients(), [ClientState::Idle]);
}

/// All who wait are told by the first: the other attempts will fare no better.
#[test]
fn a_login_that_is_refused_for_good_is_told_to_all_who_wait() {
    let (stage, alice) = deserted(&Setup::of_size(2));
    let bob = stage.client();
    for client in [&alice, &bob] {
        client.says([query("anything")]);
    }
    assert_eq!(stage.attempts(), 2);
    stage.bare_server().says([fatal("28P01")]);
    assert_eq!((alice.heard(), bob.heard()), ("E(28P01) Z".to_owned(), "E(28P01) Z".to_owned()));
}

/// One refused login told everybody that there was no server, while others worked.
#[test]
fn a_login_that_is_refused_for_good_is_nobodys_business_while_others_work() {
    let (stage, server, _alice) = busy(&Setup::of_size(2));
    let bob = stage.client();
    bob.says([query("bob")]);
    stage.bare_server().says([fatal("28P01")]);
    assert_eq!(bob.heard(), "");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
}

/// A server that starts up or is full takes us a little later.
#[test]
fn a_login_that_is_refused_for_now_is_tried_again() {
    for code in ["57P03", "53300", "57P01"] {
        let (stage, client) = deserted(&Setup::default());
        client.says([query("anything")]);
        stage.bare_server().says([fatal(code)]);
        assert_eq!(client.heard(), "");
        stage.wait(Duration::from_millis(51));
        assert_eq!(stage.server().heard(), "Q(anything)", "{code}");
    }
}

/// A host that swallows packets would hold its waiters for the kernel's two minutes.
#[test]
fn an_attempt_is_given_up_after_connect_timeout() {
    let setup = Setup::with("connect_timeout = 1000\nquery_wait_timeout = 10000");
    let (stage, client) = deserted(&setup);
    client.says([query("anything")]);
    assert_eq!(stage.attempts(), 1);
    stage.wait(Duration::from_millis(1_001));
    assert_eq!((stage.attempts(), stage.servers()), (0, vec![]));
    stage.wait(Duration::from_millis(51));
    let silent = stage.bare_server();
    stage.wait(Duration::from_millis(1_001));
    assert!(silent.is_aborted());
    stage.wait(Duration::from_millis(101));
    assert_eq!(stage.server().heard(), "Q(anything)");
}

/// What stood behind a BEGIN that was refused ran on its own, and was committed.
#[test]
fn who_has_sent_more_behind_a_begin_that_is_refused_is_ended() {
    let begin = [parse("START TRANSACTION"), bind(), execute(), sync()].concat();
    for first in [query("BEGIN"), query("SELECT; begin"), begin, query("SET a = 1")] {
        for cancelled in [false, true] {
            let (stage, server, _alice) = busy(&Setup::default());
            let bob = stage.client();
            bob.says([first.clone(), query("INSERT"), query("COMMIT")]);
            if cancelled {
                stage.cancel(&bob);
            }
            stage.wait(Duration::from_millis(5_100));
            let told = if cancelled { "57014" } else { "53300" };
            assert_eq!((bob.heard(), bob.is_closed()), (format!("E(FATAL {told})"), true));
            server.says([done(), ready()]);
            assert_eq!(server.heard(), "");
        }
    }
}

/// The same where the BEGIN is in what an earlier unit has parsed, in a message that is too long to
/// be waited for, or in a batch of which the end comes later.
#[test]
fn a_begin_that_is_refused_is_found_wherever_it_stands() {
    for in_parts in [false, true] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        bob.says([parse("BEGIN"), sync()]);
        server.says([parse_complete(), ready()]);
        assert_eq!(bob.heard(), "1 Z");
        alice.says([query("alice")]);
        let runs_it = [bind(), execute(), sync(), query("INSERT")];
        if in_parts {
            bob.says([describe_statement(""), flush()]);
            stage.wait(Duration::from_millis(5_100));
            assert_eq!(bob.heard(), "E(53300)");
            bob.says(runs_it);
            assert_eq!(bob.heard(), "E(FATAL 57P01)");
        } else {
            bob.says(runs_it);
            stage.wait(Duration::from_millis(5_100));
            assert_eq!(bob.heard(), "E(FATAL 53300)");
        }
    }

    let (stage, _server, _alice) = busy(&Setup::default());
    let bob = stage.client();
    // pg_advisory_lock(1)
    let lock = b"F\0\0\0\x1c\0\0\x0b\x40\0\x01\0\x01\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x01\0\x01";
    bob.says([lock.to_vec(), query("INSERT")]);
    stage.wait(Duration::from_millis(5_100));
    assert_eq!(bob.heard(), "E(FATAL 53300)");

    for (behind, told) in [(query("INSERT"), "E(FATAL 57P01)"), (terminate(), "Z")] {
        let (stage, _server, _alice) = busy(&Setup::default());
        let bob = stage.client();
        let long = [&"INSERT; ".repeat(20_000), "BEGIN"].concat();
        bob.says([query(&long), behind.clone()]);
        stage.wait(Duration::from_millis(5_100));
        assert_eq!(bob.heard(), format!("E(53300) {told}"));

        let query_behind = [parse("BEGIN"), query("SELECT")];
        for begins in [vec![parse("BEGIN"), bind(), execute(), flush()], query_behind.into()] {
            let (stage, _server, _alice) = busy(&Setup::default());
            let bob = stage.client();
            bob.says(begins);
            stage.wait(Duration::from_millis(5_100));
            assert_eq!(bob.heard(), "E(53300)");
            bob.says([sync(), behind.clone()]);
            assert_eq!(bob.heard(), told);
        }

        // What is dropped is read as it comes: a word may come in two parts.
        let (stage, _server, _alice) = busy(&Setup::default());
        let bob = stage.client();
        bob.says([parse("SELECT"), flush()]);
        stage.wait(Duration::from_millis(5_100));
        assert_eq!(bob.heard(), "E(53300)");
        let (begin, end) = (parse("BEGIN"), parse("BEGIN").len() - 6);
        bob.sends(&begin[..end]);
        bob.says([begin[end..].to_vec(), bind(), execute(), sync(), behind]);
        assert_eq!(bob.heard(), told);
    }
}

/// Nothing rests on a text that begins nothing, wherever it is cut.
#[test]
fn where_a_message_behind_a_refusal_is_cut_makes_no_difference() {
    for message in [parse("SELECT 2"), bind()] {
        for cut in 1..message.len() {
            let (stage, _server, _alice) = busy(&Setup::default());
            let bob = stage.client();
            bob.says([parse("SELECT"), flush()]);
            stage.wait(Duration::from_millis(5_100));
            assert_eq!(bob.heard(), "E(53300)");
            bob.sends(&message[..cut]);
            bob.says([message[cut..].to_vec(), sync(), query("SELECT 3")]);
            assert_eq!((bob.heard().as_str(), bob.is_open()), ("Z", true), "cut at {cut}");
        }
    }
}

/// PostgreSQL drops the unnamed statement before it looks at the one in its place: what was run
/// before was run again where the client only believed in the new one.
#[test]
fn behind_a_parse_that_is_refused_there_is_no_unnamed_statement() {
    let unreadable = b"P\0\0\0\x07abc".to_vec();
    for (unit, behind) in [
        (vec![parse("DELETE"), sync()], "B E S"),
        (vec![query("DELETE")], "B E S"),
        // PostgreSQL does not look at what it cannot read.
        (vec![unreadable, sync()], "P(INSERT) B E S"),
    ] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        bob.says([parse("INSERT"), bind(), execute(), sync()]);
        server.says([parse_complete(), bind_complete(), done(), ready()]);
        assert_eq!(bob.heard(), "1 2 C Z");
        alice.says([query("alice")]);
        bob.says(unit);
        stage.wait(Duration::from_millis(5_100));
        assert_eq!(bob.heard(), "E(53300) Z");
        server.says([done(), ready()]);
        server.heard();
        bob.says([bind(), execute(), sync()]);
        assert_eq!(server.heard(), behind);
    }
}

/// Whoever waits for an answer knows what to do, and units that nothing rests on are refused each
/// by itself.
#[test]
fn who_has_sent_nothing_behind_a_begin_that_is_refused_stays() {
    let cases = [
        (vec![query("BEGIN")], "E(53300) Z", true),
        (vec![query("BEGIN"), terminate()], "E(53300) Z", false),
        (vec![query("BEGIN"), terminate()[..2].to_vec()], "E(53300) Z", true),
        (vec![query("BEGIN; INSERT; COMMIT")], "E(53300) Z", true),
        (vec![query("SELECT 'begin'"), query("SELECT")], "E(53300) Z", true),
        (vec![query(&"BEGIN; COMMIT; ".repeat(20_000))], "E(53300) Z", true),
    ];
    for (units, told, stays) in cases {
        let (stage, _server, _alice) = busy(&Setup::default());
        let bob = stage.client();
        bob.says(units);
        stage.wait(Duration::from_millis(5_100));
        assert_eq!((bob.heard().as_str(), bob.is_open()), (told, stays));
    }
}

/// A query takes the time that it takes: only waiting for a server is limited.
#[test]
fn a_query_that_runs_is_not_timed() {
    let (stage, server, alice) = busy(&Setup::default());
    stage.wait(Duration::from_secs(3_000));
    assert!(alice.is_open() && server.is_open());
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
}

/// Of those that it did not have before it gets the one that has been idle for longest.
#[test]
fn a_client_is_given_another_server_where_that_is_wanted() {
    let setup = Setup { pool: "server_choice = 'never_same'", ..Setup::of_size(2) };
    let (stage, first, alice) = Stage::ready(&setup);
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    bob.says([query("b")]);
    let second = stage.server();
    second.says([done(), ready()]);
    alice.says([query("COMMIT")]);
    first.says([done(), ready()]);
    first.heard();
    second.heard();
    let gets = |client: &Peer, server: &Peer| {
        client.says([query("SELECT")]);
        assert_eq!(server.heard(), "Q(SELECT)");
        server.says([done(), ready()]);
    };
    gets(&alice, &second);
    gets(&alice, &first);
    gets(&bob, &first);
    gets(&bob, &second);
    gets(&alice, &second);
}

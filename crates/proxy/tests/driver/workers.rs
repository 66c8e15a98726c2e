//! Several workers: each pool is on one of them, limits hold over all.

use std::collections::BTreeSet;
use std::time::Duration;

use pgweir_engine::Mark;

use crate::limits::two_users;
use crate::messages::{
    done, in_block, one_row, query, ready, set_to, ssl_request, startup, terminate,
};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED, shared};
use crate::stage::{Setup, Stage, took};

/// Two workers: the pool `db` is on the first, `east` on the second.
fn two(general: &'static str) -> (Stage, Stage) {
    let setup = Setup { size: 2, general, others: &["east"], ..Setup::default() };
    let mut workers = Stage::workers(&setup, 2);
    let second = workers.pop().expect("there are two");
    (workers.pop().expect("there are two"), second)
}

/// A client of the second worker's pool, which has a server there.
fn eastern(first: &Stage, second: &Stage) -> (Peer, Peer) {
    let _ = first.newcomer_to("east");
    let alice = first.deliver_to(second).pop().expect("it was handed over");
    let server = second.server();
    assert!(alice.is_greeted());
    (server, alice)
}

/// Nothing is asked of a server where the client does not belong.
#[test]
fn a_client_goes_to_the_worker_that_has_its_pool() {
    let (first, second) = two("");
    let (server, alice) = eastern(&first, &second);
    assert_eq!((first.attempts(), first.clients_left(), second.clients_left()), (0, 0, 1));
    alice.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
}

/// Two workers, of which the second has a client of another user, which shares a server; and a
/// client of the first, and its server.
fn with_another_user() -> (Stage, Stage, [Peer; 2], [Peer; 2]) {
    let user = "[pools.db.users.1]\nusername = 'other'\npassword = 'password'\npool_size = 2";
    let setup = Setup { user, ..shared(2) };
    let mut workers = Stage::workers(&setup, 2);
    let second = workers.pop().expect("there are two");
    let first = workers.pop().expect("there are two");
    let alice = first.newcomer(&[]);
    let changes = first.server();
    let packet = startup(&[("user", "other"), ("database", "db")]);
    first.stranger().says([packet, query("SELECT 1")]);
    let bob = first.deliver_to(&second).pop().expect("it was handed over");
    let server = second.server();
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("a")]);
    bob.heard();
    (first, second, [alice, changes], [bob, server])
}

/// What a client changes of the schema matters to those of other users, on whatever worker.
#[test]
fn nobody_shares_while_the_schema_changes_on_another_worker() {
    let (_first, second, [alice, changes], [bob, server]) = with_another_user();
    alice.says([query("CREATE FUNCTION f()")]);
    assert_eq!(changes.heard(), "Q(CREATE FUNCTION f())");
    bob.says([query("SELECT 1")]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("a")]);
    changes.says([done(), ready()]);
    second.wait(Duration::from_secs(1));
    assert_eq!(bob.heard(), "T D(a) C Z");
    bob.says([query("SELECT 1")]);
    assert_eq!(server.heard(), BRAKED, "it was read again");
}

/// What is read meanwhile is what there was before: that it is over is heard when its client is
/// done, though it may have committed it in the midst of a string.
#[test]
fn nobody_shares_before_a_change_of_the_schema_is_over() {
    let (first, second, [alice, changes], [bob, server]) = with_another_user();
    alice.says([query("BEGIN; CREATE FUNCTION f(); COMMIT; SELECT pg_sleep(9)")]);
    assert!(changes.heard().starts_with("Q(BEGIN; CREATE FUNCTION f()"));
    bob.says([query("SELECT 1")]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    for _ in 0..3 {
        assert_eq!(server.heard(), "Q(SELECT 1)");
        server.says([one_row("a")]);
        second.wait(Duration::from_secs(1));
        bob.says([query("SELECT 1")]);
    }
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("a")]);
    changes.says([done(), done(), done(), done(), ready()]);
    first.wait(Duration::from_secs(1));
    second.wait(Duration::from_secs(1));
    bob.says([query("SELECT 1")]);
    assert_eq!(server.heard(), BRAKED);
}

/// A client of the first worker's pool stays.
#[test]
fn a_client_stays_where_its_pool_is() {
    let (first, _second) = two("");
    let alice = first.newcomer(&[]);
    let _server = first.server();
    assert!(alice.is_greeted());
    assert_eq!(first.departures(), 0);
}

/// What was read behind the startup packet belongs to the client, wherever it goes.
#[test]
fn what_came_with_the_startup_packet_goes_along() {
    let (first, second) = two("");
    let packet = startup(&[("user", "user"), ("database", "east")]);
    first.stranger().says([packet, query("SELECT")]);
    let alice = first.deliver_to(&second).pop().expect("it was handed over");
    let server = second.server();
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert!(alice.heard().ends_with("Z C Z"));
}

/// Nor does the end of what it sends come before that.
#[test]
fn who_says_all_at_once_and_no_more_is_answered_by_another() {
    let (first, second) = two("");
    let packet = startup(&[("user", "user"), ("database", "east")]);
    let stranger = first.stranger();
    stranger.says_and_ends([packet, query("SELECT")]);
    second.keep_turn_open();
    let alice = first.deliver_to(&second).pop().expect("it was handed over");
    second.end_turn();
    let server = second.server();
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert!(alice.heard().ends_with("Z C Z"));
}

/// A packet that comes in pieces goes when it is whole, and all of it.
#[test]
fn a_startup_packet_in_pieces_goes_whole() {
    let (first, second) = two("");
    let stranger = first.stranger();
    let packet = startup(&[("user", "user"), ("database", "east")]);
    for byte in &packet {
        assert_eq!(first.departures(), 0);
        stranger.sends(&[*byte]);
    }
    let alice = first.deliver_to(&second).pop().expect("it was handed over");
    second.server();
    assert!(alice.is_greeted());
}

/// Who asks for encryption first is told before it goes.
#[test]
fn an_answer_that_was_not_written_yet_is_not_lost() {
    let (first, second) = two("");
    let stranger = first.stranger();
    first.keep_turn_open();
    stranger.sends(&[0, 0, 0, 8, 4, 210, 22, 47]);
    stranger.says([startup(&[("user", "user"), ("database", "east")])]);
    first.end_turn();
    let alice = first.deliver_to(&second).pop().expect("it was handed over");
    assert!(alice.heard_bytes().starts_with(b"N"));
    second.server();
    assert!(alice.is_greeted());
}

/// Whoever does not take that one byte is no client of PostgreSQL's: it goes nowhere, and its place
/// is another's.
#[test]
fn who_cannot_be_told_is_not_handed_over() {
    let (first, second) = two("max_clients = 1\nmax_logins = 1");
    let stranger = first.stranger();
    stranger.takes(0);
    stranger.says([ssl_request()]);
    assert!(stranger.is_open());
    stranger.says([startup(&[("user", "user"), ("database", "east")])]);
    assert!(stranger.is_aborted());
    assert_eq!((first.departures(), first.connections(), first.clients_left()), (0, 0, 0));
    eastern(&first, &second);
    assert!(took(Mark::LostOnTheWay));
}

/// A cancel request names a client by a number that says where it is.
#[test]
fn a_cancel_finds_its_client_on_another_worker() {
    let (first, second) = two("");
    let (server, alice) = eastern(&first, &second);
    alice.says([query("slow")]);
    first.cancel(&alice);
    let requester = first.deliver_to(&second).pop().expect("it was handed over");
    second.assert_cancels(&server, &alice, &requester);
}

/// It is for a client of another worker, and its way there took until then.
#[test]
fn a_request_that_has_come_from_another_worker_waits_too() {
    let (first, second) = two("");
    let (server, alice) = eastern(&first, &second);
    alice.says([query("SET work_mem = '1MB'")]);
    server.says([done(), ready()]);
    assert!(server.heard().ends_with("Q(set to?)"));
    alice.says([query("SELECT pg_sleep(60)")]);
    first.cancel(&alice);
    second.keep_turn_open();
    first.deliver_to(&second);
    server.says([set_to(&[("work_mem", "1024")])]);
    second.end_turn();
    assert!(took(Mark::CancelBehindWaking));
    assert_eq!(server.heard(), "Q(SELECT pg_sleep(60))");
    second.wait(Duration::from_millis(100));
    assert!(second.cancel_line().is_some());
}

/// The same number on another worker is another client.
#[test]
fn a_cancel_does_not_reach_a_namesake_on_another_worker() {
    let (first, second) = two("");
    let (_, alice) = eastern(&first, &second);
    let bob = first.newcomer(&[]);
    let server = first.server();
    assert!(bob.is_greeted());
    assert_ne!(alice.key().process_id, bob.key().process_id);
    bob.says([query("slow")]);
    assert_eq!(server.heard(), "Q(slow)");
    first.cancel(&alice);
    let requester = first.deliver_to(&second).pop().expect("it was handed over");
    assert!(requester.is_closed());
    assert_eq!((first.cancels(), second.cancels()), (0, 0));
}

/// Numbers are given by each worker: over all of them they name one client, or one server.
#[test]
fn a_number_names_one_client_and_one_server_of_all_workers() {
    let workers = Stage::workers(&Setup { others: &["east", "west"], ..Setup::of_size(2) }, 3);
    let (mut clients, mut servers) = (BTreeSet::new(), BTreeSet::new());
    for (database, worker) in ["db", "east", "west"].iter().zip(&workers) {
        for _ in 0..2 {
            let own = workers[0].newcomer_to(database);
            let client = workers[0].deliver_to(worker).pop().unwrap_or(own);
            client.says([query("slow")]);
            let _server = worker.server();
            assert!(client.is_greeted());
            workers[0].cancel(&client);
            workers[0].deliver_to(worker);
        }
        worker.wait(Duration::from_millis(100));
        assert_eq!(worker.cancels(), 2, "each was found there");
        let told = worker.snapshot();
        clients.extend(told.clients.iter().map(|client| client.id));
        servers.extend(told.servers.iter().map(|server| server.id));
    }
    assert_eq!((clients.len(), servers.len()), (6, 6), "{clients:?} {servers:?}");
}

/// Whether a name is known does not show in the way that its client goes.
#[test]
fn strangers_are_refused_here_and_there() {
    let (first, second) = two("");
    let mut handed_over = 0;
    for user in ["adam", "eve", "cain", "abel", "seth", "enos", "noah", "ham"] {
        let stranger = first.stranger();
        stranger.says([startup(&[("user", user), ("database", "east")])]);
        let arrived = first.deliver_to(&second).pop();
        handed_over += usize::from(arrived.is_some());
        let refused = arrived.unwrap_or(stranger);
        assert_eq!(refused.heard(), "E(FATAL 28000)");
        assert!(refused.is_closed());
    }
    assert!((1..8).contains(&handed_over), "{handed_over}");
}

#[test]
fn clients_are_limited_over_all_workers() {
    let cases = [
        ("max_clients = 1", "E(FATAL 53300)"),
        ("max_user_client_connections = 1", "R E(FATAL 53300)"),
    ];
    for (limit, refusal) in cases {
        let (first, second) = two(limit);
        let (_, alice) = eastern(&first, &second);
        let bob = first.newcomer(&[]);
        assert_eq!(bob.heard(), refusal, "{limit}");
        alice.says([terminate()]);
        first.newcomer(&[]);
        assert_eq!(first.attempts(), 1, "{limit}: there is room for one");
    }
}

/// Those that have not logged in are counted wherever they are.
#[test]
fn logins_are_limited_over_all_workers() {
    let setup = Setup {
        general: "max_logins = 1",
        auth: "password",
        others: &["east"],
        ..Setup::default()
    };
    let workers = Stage::workers(&setup, 2);
    let (first, second) = (&workers[0], &workers[1]);
    first.newcomer_to("east");
    let alice = first.deliver_to(second).pop().expect("it was handed over");
    assert_eq!(alice.heard(), "R");
    assert_eq!(first.newcomer(&[]).heard(), "E(FATAL 53300)");
    alice.ends();
    assert_eq!(first.newcomer(&[]).heard(), "R");
}

/// The time of a login is that since the client came, whatever way it took: one that was slow to
/// say where it belongs stood behind those that had come later.
#[test]
fn a_login_is_not_longer_for_a_client_that_was_handed_over() {
    let setup = Setup {
        general: "client_login_timeout = 5000",
        auth: "password",
        others: &["east"],
        ..Setup::default()
    };
    let workers = Stage::workers(&setup, 2);
    let (first, second) = (&workers[0], &workers[1]);
    let slow = first.stranger();
    for worker in &workers {
        worker.wait(Duration::from_secs(4));
    }
    first.newcomer_to("east");
    slow.says([startup(&[("user", "user"), ("database", "east")])]);
    let [quick, slow] = &first.deliver_to(second)[..] else { panic!("two were handed over") };
    assert_eq!((quick.heard().as_str(), slow.heard().as_str()), ("R", "R"));
    second.wait(Duration::from_millis(1_100));
    assert_eq!(slow.heard(), "E(FATAL 08006)");
    assert!(slow.is_closed() && quick.is_open());
}

/// A limit, and two of which each alone would be enough: a connection may count in both.
const ONE_OR_TWO_LIMITS: [&str; 2] =
    ["max_server_connections = 1", "max_server_connections = 1\nmax_user_connections = 1"];

/// A server that is idle is given up for a client of another worker, and that takes its place when
/// it has gone: never before.
#[test]
fn an_idle_connection_is_given_up_for_another_worker() {
    for general in ONE_OR_TWO_LIMITS {
        let (first, second) = two(general);
        let alice = first.newcomer(&[]);
        let server = first.server();
        assert!(alice.is_greeted());
        first.newcomer_to("east");
        let bob = first.deliver_to(&second).pop().expect("it was handed over");
        assert_eq!((second.attempts(), server.heard().as_str()), (0, ""));
        second.deliver_to(&first);
        assert_eq!((second.attempts(), server.heard().as_str()), (0, "X"), "{general}");
        server.ends();
        first.deliver_to(&second);
        let next = second.server();
        assert!(bob.is_greeted());
        assert_eq!((first.snapshot().limits[0].used, second.snapshot().limits[0].used), (1, 1));
        // What is lacking later is told at once again.
        first.wait(Duration::from_millis(100));
        alice.says([query("SELECT")]);
        first.deliver_to(&second);
        assert_eq!(next.heard(), "X", "{general}");
    }
}

/// A worker that looks again gave another one up each time, until the other had what it lacked.
#[test]
fn one_connection_is_given_up_for_one_client() {
    let (first, second) = two("max_server_connections = 2");
    let alice = first.newcomer(&[]);
    let hers = first.server();
    assert!(alice.is_greeted());
    let carol = first.client();
    for client in [&alice, &carol] {
        client.says([query("SELECT")]);
    }
    let other = first.server();
    for server in [&hers, &other] {
        server.says([done(), ready()]);
    }
    first.newcomer_to("east");
    let bob = first.deliver_to(&second).pop().expect("it was handed over");
    second.deliver_to(&first);
    assert_eq!(hers.heard(), "Q(SELECT) X");
    first.wait(Duration::from_millis(100));
    assert_eq!(other.heard(), "Q(SELECT)", "one is about to go");
    hers.ends();
    first.wait(Duration::from_millis(100));
    assert_eq!(other.heard(), "", "there is room");
    first.deliver_to(&second);
    second.server();
    assert!(bob.is_greeted());
}

/// Who has found a connection at home needs none of another worker any more.
#[test]
fn nothing_is_given_up_for_who_was_served_meanwhile() {
    let general = "max_server_connections = 2";
    let setup = Setup { general, others: &["east", "north", "west"], ..Setup::of_size(2) };
    let workers = Stage::workers(&setup, 2);
    let (first, second) = (&workers[0], &workers[1]);
    let alice = first.newcomer(&[]);
    let hers = first.server();
    assert!(alice.is_greeted());
    let (his, bob) = eastern(first, second);
    for client in [&alice, &bob] {
        client.says([query("slow")]);
    }
    first.newcomer_to("west");
    let carol = first.deliver_to(second).pop().expect("it was handed over");
    second.wait(Duration::from_millis(100));
    his.ends();
    second.server();
    assert!(carol.is_greeted());
    hers.says([done(), ready()]);
    first.wait(Duration::from_millis(100));
    assert_eq!(hers.heard(), "Q(slow)");
}

/// A pool that is gone lacks nothing: others closed a connection for it again and again.
#[test]
fn nothing_is_given_up_for_a_pool_that_is_gone() {
    let general = "max_server_connections = 1";
    let (first, second) = two(general);
    let alice = first.newcomer(&[]);
    let server = first.server();
    assert!(alice.is_greeted());
    alice.says([query("slow")]);
    first.newcomer_to("east");
    let bob = first.deliver_to(&second).pop().expect("it was handed over");
    bob.breaks();
    second.reload(&Setup { general, ..Setup::of_size(2) });
    second.wait(Duration::from_millis(100));
    server.says([done(), ready()]);
    first.wait(Duration::from_millis(100));
    assert_eq!(server.heard(), "Q(slow)");
}

/// Nor does a smallest size take the place meanwhile.
#[test]
fn the_smallest_size_yields_to_who_waits_on_another_worker() {
    let general = "max_server_connections = 1";
    let user = "min_pool_size = 1";
    let setup = Setup { size: 2, general, user, others: &["east"], ..Setup::default() };
    let mut workers = Stage::workers(&setup, 2);
    let (second, first) = (workers.pop().expect("the second"), workers.pop().expect("the first"));
    first.wait(Duration::from_millis(100));
    let server = first.server();
    first.newcomer_to("east");
    let bob = first.deliver_to(&second).pop().expect("it was handed over");
    second.deliver_to(&first);
    assert_eq!((second.attempts(), server.heard().as_str()), (0, "X"));
    server.ends();
    first.wait(Duration::from_millis(300));
    assert_eq!(first.attempts(), 0, "the place is kept for who waits");
    first.deliver_to(&second);
    second.server();
    assert!(bob.is_greeted());
}

/// Two connections of another worker, neither of which counts in both limits, make room together.
#[test]
fn idle_connections_are_given_up_for_two_limits() {
    const OTHERS: &str = "[pools.db.users.1]\nusername = 'other'\npassword = 'password'\n\
         pool_size = 2\n[pools.east]\npool_mode = 'transaction'\n[pools.east.users.0]\n\
         username = 'user'\npassword = 'password'\npool_size = 2\n[pools.east.shards.0]\n\
         servers = [['127.0.0.1', 5433, 'primary']]\ndatabase = 'east'";
    let general = "max_server_connections = 1\nmax_user_connections = 1";
    let mut workers = Stage::workers(&Setup { general, user: OTHERS, ..Setup::of_size(4) }, 2);
    let (second, first) = (workers.pop().expect("the second"), workers.pop().expect("the first"));
    let idle = [("other", "db"), ("user", "east")].map(|(user, database)| {
        first.stranger().says([startup(&[("user", user), ("database", database)])]);
        let client = first.deliver_to(&second).pop().expect("it was handed over");
        let server = second.server();
        assert!(client.is_greeted());
        server
    });
    second.wait(Duration::from_millis(100));
    let alice = first.newcomer(&[]);
    first.deliver_to(&second);
    for server in idle {
        assert_eq!(server.heard(), "X");
        server.ends();
    }
    second.deliver_to(&first);
    first.server();
    assert!(alice.is_greeted());
}

/// Who lacks a connection of its user takes nothing away where the server has room: others there
/// waited for it, and need not.
#[test]
fn who_needs_room_in_one_limit_holds_nobody_up_in_another() {
    const OTHERS: &str = "[pools.db.users.1]\nusername = 'other'\npassword = 'password'\n\
         pool_size = 1\n[pools.east]\npool_mode = 'transaction'\n[pools.east.users.0]\n\
         username = 'user'\npassword = 'password'\npool_size = 2\n[pools.east.shards.0]\n\
         servers = [['127.0.0.1', 5432, 'primary']]\ndatabase = 'east'";
    let general = "max_server_connections = 3\nmax_user_connections = 1";
    let workers = Stage::workers(&Setup { general, user: OTHERS, ..Setup::of_size(4) }, 2);
    let (first, second) = (&workers[0], &workers[1]);
    let (idle, _eve) = eastern(first, second);
    let of_other = || {
        first.stranger().says([startup(&[("user", "other"), ("database", "db")])]);
        let client = first.deliver_to(second).pop().expect("it was handed over");
        client.says([query("slow")]);
        client
    };
    let _bob = of_other();
    let his = second.server();
    second.wait(Duration::from_millis(100));
    first.newcomer(&[]);
    first.deliver_to(second);
    assert_eq!(idle.heard(), "X");
    let _carol = of_other();
    assert_eq!(second.attempts(), 0);
    his.ends();
    assert_eq!(second.attempts(), 1);
}

/// The other user's connection, on another worker, was taken again and again for a client whose own
/// user may have no other.
#[test]
fn nobody_gives_up_what_another_limit_makes_useless_elsewhere() {
    let mut workers = Stage::workers(&two_users(), 2);
    let (second, first) = (workers.pop().expect("the second"), workers.pop().expect("the first"));
    let alice = first.newcomer(&[]);
    let hers = first.server();
    assert!(alice.is_greeted());
    alice.says([query("BEGIN")]);
    hers.says([done(), in_block()]);
    first.stranger().says([startup(&[("user", "other"), ("database", "db")])]);
    let bob = first.deliver_to(&second).pop().expect("it was handed over");
    let his = second.server();
    assert!(bob.is_greeted());
    let carol = first.newcomer_to("east");
    let go_on = |time| {
        for worker in [&first, &second] {
            worker.wait(Duration::from_millis(time));
            first.deliver_to(&second);
            second.deliver_to(&first);
        }
    };
    go_on(0);
    assert_eq!((his.heard().as_str(), his.is_open()), ("", true), "it is idle");
    for time in [1_100, 1_000] {
        bob.says([query("bob")]);
        go_on(time);
        his.says([done(), ready()]);
        assert_eq!((his.heard().as_str(), second.attempts()), ("Q(bob)", 0));
    }
    alice.says([query("COMMIT")]);
    hers.says([done(), ready()]);
    assert_eq!(hers.heard(), "Q(BEGIN) Q(COMMIT) X");
    hers.ends();
    first.server();
    assert!(carol.is_greeted() && his.is_open());
}

/// A nudge that is lost costs a tick.
#[test]
fn what_another_worker_lacks_is_seen_at_the_next_tick() {
    let (first, second) = two("max_server_connections = 1");
    let alice = first.newcomer(&[]);
    let server = first.server();
    assert!(alice.is_greeted());
    first.newcomer_to("east");
    let bob = first.deliver_to(&second).pop().expect("it was handed over");
    first.wait(Duration::from_millis(100));
    assert_eq!(server.heard(), "X");
    server.ends();
    second.wait(Duration::from_millis(100));
    second.server();
    assert!(bob.is_greeted());
}

/// A pool that is busy all the time gives a connection up once the other has waited for a second.
#[test]
fn a_busy_connection_is_given_up_in_the_end() {
    for general in ONE_OR_TWO_LIMITS {
        let (first, second) = two(general);
        let alice = first.newcomer(&[]);
        let server = first.server();
        assert!(alice.is_greeted());
        alice.says([query("a")]);
        first.newcomer_to("east");
        let bob = first.deliver_to(&second).pop().expect("it was handed over");
        second.deliver_to(&first);
        let carol = first.client();
        carol.says([query("c")]);
        first.wait(Duration::from_millis(1_100));
        server.says([done(), ready()]);
        assert_eq!(server.heard(), "Q(a) X", "{general}");
        server.ends();
        first.deliver_to(&second);
        second.server();
        assert!(bob.is_greeted());
        assert_eq!(first.attempts(), 0, "there may be one");
    }
}

/// What two workers try to take at the same time is taken once.
#[test]
fn the_last_connection_is_given_once() {
    let (first, second) = two("max_server_connections = 1");
    first.newcomer_to("east");
    first.newcomer(&[]);
    assert_eq!(first.attempts(), 1);
    first.deliver_to(&second);
    assert_eq!(second.attempts(), 0);
    first.refuse_server();
    first.deliver_to(&second);
    assert_eq!((first.attempts(), second.attempts()), (0, 1));
}

/// The worker that was told last had only a pool that goes, and set the old limit again.
#[test]
fn a_pool_that_goes_does_not_say_what_those_that_stay_may_have() {
    let other = "[pools.db.users.1]\nusername = 'other'\npassword = 'password'\npool_size = 4";
    let general = "max_db_connections = 1";
    let workers = Stage::workers(&Setup { general, user: other, ..Setup::of_size(4) }, 2);
    let (first, second) = (&workers[0], &workers[1]);
    let alice = first.newcomer(&[]);
    let _server = first.server();
    assert!(alice.is_greeted());
    for worker in [first, second] {
        worker.reload(&Setup { general: "max_db_connections = 2", ..Setup::of_size(4) });
    }
    let bob = first.client();
    for client in [&alice, &bob] {
        client.says([query("slow")]);
    }
    assert_eq!(first.attempts(), 1);
}

/// A database that the configuration does not name has one home.
#[test]
fn an_unnamed_database_has_one_worker() {
    let setup = Setup { others: &["\"*\""], ..Setup::default() };
    let workers = Stage::workers(&setup, 4);
    let home_of = |database: &str| {
        workers[0].newcomer_to(database);
        let target = workers[0].destination()?;
        assert_eq!(workers[0].deliver_to(&workers[target]).len(), 1);
        assert!(workers[target].attempts() > 0, "it is at home there");
        Some(target)
    };
    let names = ["a", "b", "c", "d", "e", "f"];
    let homes = names.map(home_of);
    assert!(homes.iter().any(Option::is_some), "{homes:?}");
    assert_eq!(names.map(home_of), homes);
}

/// What it says of sharing servers is known where its pool is.
#[test]
fn who_shares_no_server_shares_none_on_another_worker() {
    for (choice, alone) in [("auto", false), ("off", true)] {
        let (first, second) = two("pipelining = 8");
        let own = [("user", "user"), ("database", "east"), ("pgweir.pipelining", choice)];
        first.stranger().says([startup(&own)]);
        let client = first.deliver_to(&second).pop().expect("it was handed over");
        let server = second.server();
        assert!(client.is_greeted());
        client.says([query("SELECT 1")]);
        assert_eq!(server.heard() == "Q(SELECT 1)", alone);
    }
}

/// Who replicates a whole cluster names no database that tells the worker: the user does.
#[test]
fn who_replicates_a_cluster_goes_where_all_pools_of_that_user_are() {
    let workers = Stage::workers(&two_users(), 2);
    let stranger = workers[0].stranger();
    stranger.says([startup(&[
        ("user", "other"),
        ("database", "replication"),
        ("replication", "true"),
    ])]);
    let client = workers[0].deliver_to(&workers[1]).pop().expect("it was handed over");
    let _server = workers[1].server();
    assert!(client.is_greeted());
    assert!(took(Mark::ClusterElsewhere));
}

/// The turn to connect that one worker leaves is another's at once, not at its next look.
#[test]
fn who_waits_for_another_workers_attempt_is_connected_for() {
    let (first, second) = two("connect_parallelism = 1");
    let _ = first.newcomer_to("east");
    let _eastern = first.deliver_to(&second);
    assert_eq!(second.attempts(), 1);
    let alice = first.newcomer(&[]);
    assert_eq!(first.attempts(), 0);
    let _theirs = second.server();
    assert!(took(Mark::TurnPassedOn));
    second.deliver_to(&first);
    let _ours = first.server();
    assert!(alice.is_greeted());
}

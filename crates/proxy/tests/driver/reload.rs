//! Another configuration while clients are connected.

use std::time::Duration;

use pgweir_engine::{ClientState, Event, Mark, ServerActivity};

use crate::messages::{done, fatal, in_block, one_row, password, query, ready, terminate};
use crate::stage::{Setup, Stage, took};

/// A reload that changes nothing is not noticed.
#[test]
fn whoever_is_in_a_pool_that_stays_notices_nothing() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("alice")]);
    bob.says([query("bob")]);
    stage.reload(&Setup::default());
    assert_eq!(stage.clients(), [ClientState::Active, ClientState::Waiting]);
    server.says([one_row("1")]);
    assert_eq!(alice.heard(), "T D(1) C Z");
    server.says([one_row("2")]);
    assert_eq!((bob.heard().as_str(), server.heard().as_str()), ("T D(2) C Z", "Q(alice) Q(bob)"));
}

/// Another address: each client finishes where it is, and goes on where the servers are now.
#[test]
fn clients_move_to_other_servers_between_transactions() {
    let (stage, server, alice) = Stage::ready(&Setup::of_size(2));
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    bob.says([query("bob")]);
    let second = stage.server();
    second.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), bob.heard().as_str()), ("C Z(T)", "C Z"));
    let elsewhere = Setup { port: 5433, ..Setup::of_size(2) };
    stage.reload(&elsewhere);
    assert_eq!(second.heard(), "Q(bob) X", "an idle one goes at once");
    assert!(second.is_closed());
    alice.says([query("COMMIT")]);
    assert_eq!(server.heard(), "Q(BEGIN) Q(COMMIT)");
    server.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("C Z", "X"));
    alice.says([query("next")]);
    let new = stage.server();
    assert_eq!(new.heard(), "Q(next)");
    assert_eq!(stage.snapshot().servers[0].address.port, 5433);
}

/// What is left of the old servers is nothing that anybody could wait for.
#[test]
fn a_login_that_the_new_servers_refuse_is_told_at_once() {
    let (stage, server, alice) = Stage::ready(&Setup::of_size(2));
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    stage.reload(&Setup { port: 5433, ..Setup::of_size(2) });
    bob.says([query("next")]);
    stage.bare_server().says([fatal("28P01")]);
    assert_eq!(bob.heard(), "E(28P01) Z");
}

/// A server that was told nothing of a limit, or of another one, ends no statement by it: it is not
/// the server that hangs.
#[test]
fn a_server_keeps_the_statement_timeout_that_it_was_told() {
    for before in ["", "statement_timeout = 60000"] {
        let (stage, server, alice) = Stage::ready(&Setup::with(before));
        alice.says([query("CREATE INDEX")]);
        stage.reload(&Setup::with("statement_timeout = 5000"));
        stage.wait(Duration::from_secs(60));
        assert!(server.is_open() && alice.is_open());
        server.says([done(), ready()]);
        assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("C Z", "Q(CREATE INDEX) X"));
    }
}

/// The new server was said to be full of connections that another one has, and that one got more
/// than it may.
#[test]
fn connections_count_for_the_server_that_they_lead_to() {
    let before =
        Setup { general: "max_server_connections = 1", others: &["east"], ..Setup::of_size(2) };
    let (stage, server, alice) = Stage::ready(&before);
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    stage.reload(&Setup { port: 5433, ..before });
    let bob = stage.newcomer(&[]);
    let new = stage.server();
    assert!(bob.is_greeted());
    bob.says([query("bob")]);
    assert_eq!(new.heard(), "Q(bob)");
    let carol = stage.newcomer_to("east");
    assert_eq!(stage.attempts(), 0, "the old server has one");
    let limits = stage.snapshot().limits;
    let used: Vec<_> = limits.iter().map(|limit| (limit.address.port, limit.used)).collect();
    assert_eq!(used, [(5432, 1), (5433, 1)]);
    alice.says([query("COMMIT")]);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z(T) C Z");
    assert_eq!(server.heard(), "Q(BEGIN) Q(COMMIT) X");
    assert_eq!(stage.attempts(), 0, "it is counted until it has gone");
    server.ends();
    stage.server();
    assert!(carol.is_greeted());
}

/// What is still to go counts where it is, and not where its pool leads now.
#[test]
fn connections_count_at_the_server_that_they_were_made_to() {
    let at = |port| Setup { port, size: 2, ..Setup::with("max_server_connections = 1") };
    let (stage, server, alice) = Stage::ready(&at(5432));
    stage.reload(&at(5433));
    assert_eq!((server.heard().as_str(), server.is_open()), ("X", true));
    alice.says([query("there")]);
    let there = stage.server();
    assert_eq!(there.heard(), "Q(there)");
    there.says([done(), ready()]);
    stage.reload(&at(5432));
    alice.says([query("here again")]);
    assert_eq!((there.heard().as_str(), stage.attempts()), ("X", 0));
    there.ends();
    assert_eq!(stage.attempts(), 0);
    server.ends();
    assert_eq!(stage.server().heard(), "Q(here again)");
}

/// An attempt to reach a server that is not meant any more is given up, and whoever waits for it
/// gets another.
#[test]
fn a_server_that_is_being_opened_elsewhere_is_given_up() {
    let stage = Stage::new(&Setup::default());
    let alice = stage.newcomer(&[]);
    let server = stage.bare_server();
    stage.reload(&Setup { port: 5433, ..Setup::default() });
    assert!(server.is_aborted());
    stage.server();
    assert!(alice.is_greeted());
}

/// A pool that is gone tells its clients when their transaction is over, and lets nobody in.
#[test]
fn clients_of_a_pool_that_is_gone_are_told() {
    let (stage, _server, alice) = Stage::ready(&Setup { others: &["east"], ..Setup::default() });
    let (bob, carol) = (stage.newcomer_to("east"), stage.newcomer_to("east"));
    let server = stage.server();
    assert!(bob.is_greeted() && carol.is_greeted());
    bob.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    stage.reload(&Setup::default());
    assert_eq!(carol.heard(), "E(FATAL 57P01)");
    assert_eq!(bob.heard(), "C Z(T)");
    assert_eq!(stage.newcomer_to("east").heard(), "E(FATAL 28000)");
    bob.says([query("COMMIT")]);
    server.says([done(), ready()]);
    assert_eq!(bob.heard(), "C Z E(FATAL 57P01)");
    assert!(bob.is_closed() && alice.is_open());
    stage.wait(Duration::from_millis(100));
    assert_eq!(server.heard(), "Q(BEGIN) Q(COMMIT) X");
    assert_eq!(stage.snapshot().pools.len(), 1);
    stage.reload(&Setup { others: &["east"], ..Setup::default() });
    let _dora = stage.newcomer_to("east");
    assert_eq!(stage.attempts(), 1, "a pool of the same name is a new one");
}

/// As long as somebody is in the old pool of a database, a new one had the limits of the old.
#[test]
fn the_limits_of_a_database_are_those_of_the_pools_that_stay() {
    let cases = [
        ("max_db_connections = 1", "max_db_connections = 2"),
        ("max_db_client_connections = 1", "max_db_client_connections = 2"),
    ];
    for (before, after) in cases {
        let named = Setup { general: before, others: &["east"], ..Setup::default() };
        let stage = Stage::new(&named);
        let bob = stage.newcomer_to("east");
        let server = stage.server();
        assert!(bob.is_greeted());
        bob.says([query("BEGIN")]);
        server.says([done(), in_block()]);
        stage.reload(&Setup { general: after, others: &["\"*\""], ..Setup::default() });
        let carol = stage.newcomer_to("east");
        assert_eq!((carol.heard().as_str(), stage.attempts()), ("R", 1), "{after}");
        stage.server();
        assert!(carol.is_greeted());
    }
}

/// A login that is under way must not end in a pool that has taken the place of its own.
#[test]
fn a_login_to_a_pool_that_is_gone_fails() {
    let with = |others| Setup { others, auth: "password", ..Setup::default() };
    let stage = Stage::new(&with(&["east"]));
    let bob = stage.newcomer_to("east");
    assert_eq!(bob.heard(), "R");
    stage.reload(&with(&[]));
    stage.wait(Duration::from_millis(100));
    stage.reload(&with(&["west"]));
    bob.says([password("password")]);
    assert_eq!(bob.heard(), "R E(FATAL 57P01)");
    assert_eq!(stage.attempts(), 0);
    assert!(took(Mark::PoolGoneInLogin));
}

/// A smaller pool closes what it has too many of, as it becomes free.
#[test]
fn a_smaller_pool_shrinks() {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(3));
    let others = [stage.client(), stage.client()];
    alice.says([query("a")]);
    others.iter().for_each(|client| client.says([query("b")]));
    let servers = [stage.server(), stage.server()];
    servers[1].says([done(), ready()]);
    stage.reload(&Setup::of_size(1));
    assert_eq!(servers[1].heard(), "Q(b) X");
    servers[0].says([done(), ready()]);
    assert_eq!(servers[0].heard(), "Q(b) X");
    first.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A client that has logged in for a session keeps its server to the end, whatever comes after it.
#[test]
fn a_session_stays_a_session() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("a")]);
    server.says([done(), ready()]);
    stage.reload(&Setup::default());
    let bob = stage.newcomer(&[]);
    bob.says([query("b")]);
    assert_eq!(server.heard(), "Q(a)");
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(b)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle], "a transaction is one");
}

/// A changed password is asked of the next one; whoever is in stays in, and keeps the server that
/// another password may be needed for by now.
#[test]
fn another_password_is_for_those_who_come() {
    for (user, same_servers) in [("server_password = 'other'", true), ("", false)] {
        let with = |password| Setup { auth: "password", password, user, ..Setup::default() };
        let stage = Stage::new(&with("old"));
        let alice = stage.newcomer(&[]);
        alice.says([password("old")]);
        let server = stage.server();
        assert!(alice.is_greeted());
        alice.says([query("BEGIN")]);
        server.says([done(), in_block()]);
        stage.reload(&with("new"));
        for (said, heard) in [("old", "R E(FATAL 28P01)"), ("new", "R R")] {
            let newcomer = stage.newcomer(&[]);
            newcomer.says([password(said)]);
            let all = newcomer.heard();
            assert!(all.starts_with(heard), "{said}: {all}");
        }
        alice.says([query("COMMIT")]);
        server.says([done(), ready()]);
        assert_eq!(alice.heard(), "C Z(T) C Z");
        assert_eq!(server.is_open(), same_servers, "{user}");
    }
}

/// Who is served by a server that was logged in to as somebody else is served by another one next.
#[test]
fn another_login_is_for_new_servers() {
    for after in ["server_username = 'other'", "server_password = 'other'"] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("BEGIN")]);
        server.says([done(), in_block()]);
        stage.reload(&Setup { user: after, ..Setup::default() });
        alice.says([query("COMMIT")]);
        server.says([done(), ready()]);
        assert_eq!(alice.heard(), "C Z(T) C Z");
        assert_eq!((server.heard().as_str(), server.is_open()), ("Q(BEGIN) Q(COMMIT) X", false));
        alice.says([query("next")]);
        let (_, asked) = stage.bare_server_asked();
        let user = if after.contains("username") { "other" } else { "user" };
        assert!(asked.contains(&("user".to_owned(), user.to_owned())), "{asked:?}");
    }
}

/// A limit that is new is over for whoever has been silent, or at work, for so long; one that is
/// gone is over for nobody.
#[test]
fn limits_of_silence_and_of_transactions_hold_for_who_is_there() {
    let cases = [
        ("client_idle_timeout = 5000", "", "57P05"),
        ("idle_client_in_transaction_timeout = 5000", "BEGIN", "25P03"),
        ("transaction_timeout = 5000", "BEGIN", "25P04"),
    ];
    for (limit, first, code) in cases {
        for (before, after) in [("", limit), (limit, "")] {
            let (stage, server, alice) = Stage::ready(&Setup::with(before));
            if !first.is_empty() {
                alice.says([query(first)]);
                server.says([done(), in_block()]);
                alice.heard();
            }
            stage.wait(Duration::from_secs(4));
            stage.reload(&Setup::with(after));
            stage.wait(Duration::from_millis(1_100));
            let expected = if after == limit { format!("E(FATAL {code})") } else { String::new() };
            assert_eq!(alice.heard(), expected, "{before:?}, then {after:?}");
        }
    }
}

/// Limits of those who wait, and of whom they wait for.
#[test]
fn limits_of_waits_hold_for_who_waits() {
    // In the queue.
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("bob")]);
    stage.wait(Duration::from_secs(2));
    stage.reload(&Setup::with("query_wait_timeout = 2000"));
    stage.wait(Duration::from_millis(100));
    assert_eq!(bob.heard(), "E(53300) Z");
    // There for the reserve.
    bob.says([query("bob")]);
    stage.wait(Duration::from_millis(1_500));
    assert_eq!(stage.attempts(), 0);
    stage.reload(&Setup::with("reserve_pool_size = 1\nreserve_pool_timeout = 1000"));
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.server().heard(), "Q(bob)");
    // On the way in.
    let stage = Stage::new(&Setup::default());
    let stranger = stage.stranger();
    stage.wait(Duration::from_secs(2));
    stage.reload(&Setup::with("client_login_timeout = 2000"));
    stage.wait(Duration::from_millis(100));
    assert_eq!(stranger.heard(), "E(FATAL 08006)");
    // For a server that does not answer.
    let stage = Stage::new(&Setup::with("query_wait_timeout = 60000"));
    let _alice = stage.newcomer(&[]);
    assert_eq!(stage.attempts(), 1);
    stage.wait(Duration::from_secs(2));
    stage.reload(&Setup::with("query_wait_timeout = 60000\nconnect_timeout = 2000"));
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.attempts(), 0);
}

/// Servers grow old as the configuration says now, and are opened as it says now.
#[test]
fn limits_of_servers_hold_for_those_that_are_there() {
    for (limit, waits_ms) in [("idle_timeout = 3000", 100), ("server_lifetime = 3000", 700)] {
        let (stage, server, _alice) = Stage::ready(&Setup::default());
        stage.wait(Duration::from_secs(3));
        assert!(server.is_open());
        stage.reload(&Setup::with(limit));
        stage.wait(Duration::from_millis(waits_ms));
        assert_eq!(server.heard(), "X", "{limit}");
    }
    let stage = Stage::new(&Setup::default());
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.attempts(), 0);
    let minimum = |general| Setup { user: "min_pool_size = 4", general, ..Setup::of_size(4) };
    stage.reload(&minimum("connect_parallelism = 1"));
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.attempts(), 1);
    stage.reload(&minimum("connect_parallelism = 3"));
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.attempts(), 3);
}

/// Who comes is counted together with those who are there.
#[test]
fn limits_of_clients_hold_for_who_comes() {
    for limit in ["max_clients = 1", "max_user_client_connections = 1"] {
        let (stage, _server, alice) = Stage::ready(&Setup::default());
        stage.reload(&Setup::with(limit));
        let heard = stage.newcomer(&[]).heard();
        assert!(heard.ends_with("E(FATAL 53300)"), "{limit}: {heard}");
        stage.reload(&Setup::default());
        assert!(stage.newcomer(&[]).is_greeted() && alice.is_open(), "{limit}");
    }
    let stage = Stage::new(&Setup::default());
    let silent = stage.stranger();
    stage.reload(&Setup::with("max_logins = 1"));
    assert_eq!(stage.stranger().heard(), "E(FATAL 53300)");
    stage.reload(&Setup::default());
    assert!(stage.stranger().is_open() && silent.is_open());
}

/// Who is not let in has not connected, however well it has proven who it is.
#[test]
fn who_finds_no_server_has_not_connected() {
    let stage = Stage::new(&Setup::with("log_client_connections = true"));
    let alice = stage.newcomer(&[("application_name", "it")]);
    stage.wait(Duration::from_secs(6));
    assert!(alice.heard().ends_with("E(FATAL 57P03)"));
    let log = stage.log();
    assert!(log.iter().any(|event| matches!(event, Event::LoginRefused { .. })), "{log:?}");
    assert!(!log.iter().any(|event| matches!(event, Event::ClientConnected { .. })), "{log:?}");
}

/// Lines about clients are for those who were there before, too.
#[test]
fn what_is_told_of_clients_holds_for_who_is_there() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    stage.log();
    stage.reload(&Setup::with("log_client_connections = true\nlog_client_disconnections = true"));
    let _bob = stage.client();
    alice.says([terminate()]);
    let log = stage.log();
    let [Event::ClientConnected { database, user, .. }, Event::ClientLeft { .. }] = &log[..] else {
        panic!("{log:?}")
    };
    assert_eq!([&**database, &**user], ["db", "user"]);
}

//! A shared server that always has something to do comes free all the same, for whoever needs one
//! alone, in its pool or in another.

use std::time::Duration;

use pgweir_engine::{Mark, TICK};

use crate::messages::{done, in_block, one_row, query, ready};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED, braked, shared, updated};
use crate::stage::{Setup, Stage, took};

/// Clients, of which the first one has asked, see to it that a server is never idle, for so long at
/// most. What else it hears then.
fn keep_busy(stage: &Stage, server: &Peer, clients: &[Peer], time: Duration) -> String {
    assert_eq!(server.heard(), "Q(SELECT 0)");
    let mut waited = Duration::ZERO;
    for client in clients.iter().cycle().skip(1) {
        client.says([query("SELECT 0")]);
        stage.wait(TICK);
        server.says([one_row("")]);
        let heard = server.heard();
        waited += TICK;
        if heard != "Q(SELECT 0)" || waited > time {
            return heard;
        }
    }
    unreachable!("they never come to an end")
}

/// The one that was kept for it went to somebody who had asked before, and was kept no more.
#[test]
fn what_is_kept_for_one_alone_is_kept_behind_those_who_asked_before() {
    let setup = Setup { general: "pipelining = '2x1'", ..Setup::default() };
    let (_stage, server, clients) = braked(&setup, 4);
    clients[0].says([query("SELECT 0")]);
    clients[1].says([query("SELECT 1")]);
    clients[2].says([query("BEGIN")]);
    clients[3].says([query("SELECT 3")]);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    server.says([one_row("")]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
}

/// The pool could have another server by its own size, and waited for it while a limit is used up.
#[test]
fn where_no_connection_can_be_made_one_is_kept() {
    let setup = Setup { general: "pipelining = 8\nmax_server_connections = 1", ..shared(2) };
    let (_stage, server, clients) = braked(&setup, 3);
    clients[0].says([query("SELECT 0")]);
    clients[1].says([query("BEGIN")]);
    clients[2].says([query("SELECT 2")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("")]);
    assert_eq!(server.heard(), FREED);
}

/// The same where PostgreSQL takes no more.
#[test]
fn where_connections_fail_one_is_kept() {
    let (stage, server, clients) = braked(&shared(2), 3);
    clients[0].says([query("SELECT 0")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    clients[1].says([query("BEGIN")]);
    stage.refuse_server();
    clients[2].says([query("SELECT 2")]);
    assert_eq!(server.heard(), "");
    server.says([one_row("")]);
    assert_eq!(server.heard(), FREED);
}

/// A pool whose servers are shared without a pause must not starve another.
#[test]
fn a_shared_server_that_is_owed_comes_free() {
    let general = "pipelining = 8\nmax_server_connections = 1";
    let setup = Setup { general, others: &["east"], ..shared(1) };
    let (stage, server, clients) = braked(&setup, 2);
    clients[0].says([query("SELECT 0")]);
    let other = stage.newcomer_to("east");
    assert_eq!(keep_busy(&stage, &server, &clients, Duration::from_secs(4)), "X");
    server.ends();
    stage.server();
    assert!(other.is_greeted());
}

/// One that has lived for long enough goes.
#[test]
fn a_shared_server_that_is_too_old_comes_free() {
    let setup = Setup { general: "pipelining = 8\nserver_lifetime = 60000", ..shared(1) };
    let (stage, server, clients) = braked(&setup, 2);
    clients[0].says([query("SELECT 0")]);
    assert_eq!(keep_busy(&stage, &server, &clients, Duration::from_secs(90)), "X");
    assert!(took(Mark::SharedTooOld));
}

/// The names of its database are read again.
#[test]
fn a_shared_server_is_asked_for_names() {
    let (stage, server, clients) = braked(&shared(1), 2);
    stage.tell_no_names();
    clients[0].says([query("SELECT 0")]);
    assert_eq!(keep_busy(&stage, &server, &clients, Duration::from_secs(400)), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(names?)");
}

/// What waits alone stands in front of what comes later on other servers too, one for each.
#[test]
fn as_many_are_kept_as_wait_alone() {
    let setup = Setup { general: "pipelining = '2x8'", ..Setup::of_size(2) };
    let (stage, first, clients) = braked(&setup, 6);
    clients[0].says([query("SELECT 0")]);
    clients[1].says([query("SELECT 1")]);
    assert_eq!(first.heard(), "Q(SELECT 0) Q(SELECT 1)");
    let second = stage.server();
    clients[5].says([query("SELECT 5")]);
    assert_eq!((first.heard(), second.heard()), ("Q(SELECT 5)".into(), BRAKED.into()));
    second.says([one_row("")]);
    first.says([one_row("")]);
    clients[0].says([query("SELECT 0")]);
    assert_eq!((first.heard(), second.heard()), (String::new(), "Q(SELECT 0)".into()));
    for client in &clients[2..4] {
        client.says([query("BEGIN")]);
    }
    clients[4].says([query("SELECT 4")]);
    assert_eq!((first.heard(), second.heard()), (String::new(), String::new()));
    first.says([one_row("")]);
    for (server, client) in [(&first, &clients[2]), (&second, &clients[3])] {
        server.says([one_row("")]);
        assert_eq!(server.heard(), FREED);
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(BEGIN)");
        server.says([done(), in_block()]);
        assert_eq!(client.heard(), "C Z(T)");
    }
}

/// Those who wait for a place while their server is about to go wait for another one to share.
#[test]
fn who_waits_while_a_server_goes_shares_the_next() {
    let general = "pipelining = '1x1'\nserver_lifetime = 60000";
    let (stage, server, clients) = braked(&Setup { general, ..Setup::of_size(4) }, 4);
    clients[0].says([query("SELECT 0")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    stage.wait(Duration::from_secs(90));
    for client in &clients[1..] {
        client.says([query("SELECT 1")]);
    }
    assert_eq!(stage.attempts(), 1, "one is enough");
    let next = stage.server();
    assert_eq!(next.heard(), BRAKED);
    next.says([one_row("")]);
    for client in &clients[1..] {
        assert_eq!(next.heard(), "Q(SELECT 1)");
        next.says([one_row("b")]);
        assert_eq!(client.heard(), "T D(b) C Z");
    }
    server.says([one_row("a")]);
    assert_eq!((clients[0].heard().as_str(), server.heard().as_str()), ("T D(a) C Z", "X"));
}

/// One that waits for its commit may do so for ever, whoever it is kept for.
#[test]
fn none_is_kept_that_stands_still() {
    let setup = Setup { general: "pipelining = '2x8'", ..Setup::of_size(2) };
    let (stage, first, clients) = braked(&setup, 5);
    updated(&first, &clients[0]);
    clients[2].says([query("UPDATE t SET a = 1")]);
    assert_eq!(first.heard(), "Q(UPDATE t SET a = 1)");
    clients[0].says([query("SELECT 0")]);
    let second = stage.server();
    assert_eq!(second.heard(), BRAKED);
    second.says([one_row("")]);
    clients[1].says([query("SELECT 1")]);
    assert_eq!(second.heard(), "Q(SELECT 0) Q(SELECT 1)");
    clients[3].says([query("BEGIN")]);
    clients[4].says([query("SELECT 4")]);
    second.says([one_row(""), one_row("")]);
    assert_eq!((first.heard().as_str(), second.heard().as_str()), ("", FREED));
}

/// That it stands still may show only when it is kept already.
#[test]
fn another_is_kept_if_one_stands_still() {
    let setup = Setup { general: "pipelining = '2x8'", ..Setup::of_size(2) };
    let (stage, first, clients) = braked(&setup, 5);
    clients[0].says([query("SELECT 0")]);
    clients[1].says([query("SELECT 1")]);
    let second = stage.server();
    clients[2].says([query("SELECT 2")]);
    second.says([one_row("")]);
    first.says([one_row("")]);
    clients[0].says([query("SELECT 0")]);
    assert!(second.heard().ends_with("Q(SELECT 0)"));
    clients[3].says([query("BEGIN")]);
    stage.wait(Duration::from_millis(200));
    first.says([one_row("")]);
    clients[4].says([query("SELECT 4")]);
    first.heard();
    first.says([one_row("")]);
    assert_eq!(first.heard(), FREED);
}

/// One that is kept and stands still is no reason to wait for: a server that comes free is for
/// whoever has asked first.
#[test]
fn a_kept_server_that_stands_still_lets_others_share_the_next() {
    let setup = Setup { general: "pipelining = '1x8'", ..shared(2) };
    let (stage, first, clients) = braked(&setup, 5);
    updated(&first, &clients[0]);
    clients[0].says([query("UPDATE t SET a = 0")]);
    assert_eq!(first.heard(), "Q(UPDATE t SET a = 0)");
    clients[1].says([query("BEGIN")]);
    let second = stage.server();
    assert_eq!(second.heard(), "Q(BEGIN)");
    second.says([done(), in_block()]);
    stage.wait(Duration::from_secs(1));
    clients[2].says([query("BEGIN")]);
    clients[3].says([query("SELECT 3")]);
    clients[1].says([query("COMMIT")]);
    clients[4].says([query("BEGIN")]);
    assert_eq!(second.heard(), "Q(COMMIT)");
    second.says([done(), ready()]);
    assert_eq!(second.heard(), "Q(BEGIN)");
    second.says([done(), in_block()]);
    clients[2].says([query("COMMIT")]);
    assert_eq!(second.heard(), "Q(COMMIT)");
    second.says([done(), ready()]);
    assert_eq!(second.heard(), BRAKED);
    second.says([one_row("")]);
    assert_eq!(second.heard(), "Q(SELECT 3)");
    second.says([one_row("3")]);
    assert_eq!(second.heard(), FREED);
}

/// A connection that is being made for a client of its own kind is none of theirs.
#[test]
fn where_the_next_connection_is_another_clients_one_is_kept() {
    let general = "pipelining = 8\nmax_server_connections = 2";
    let (stage, server, clients) = braked(&Setup { general, ..shared(3) }, 3);
    clients[0].says([query("SELECT 0")]);
    let _replicates = stage.newcomer(&[("replication", "database")]);
    assert_eq!(stage.attempts(), 1);
    clients[1].says([query("BEGIN")]);
    clients[2].says([query("SELECT 2")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("")]);
    assert_eq!(server.heard(), FREED);
}

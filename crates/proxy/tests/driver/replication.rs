//! Clients whose startup packet asks for replication: each has a server of its own.

use crate::messages::{
    columns, copy_both, copy_data, copy_done, done, fatal, in_block, query, ready, row, startup,
    terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};
use std::time::Duration;

use pgweir_engine::Mark;

const PHYSICAL: (&str, &str) = ("replication", "true");
const LOGICAL: (&str, &str) = ("replication", "database");

/// Lets the next server in, which must be one for this kind of connection.
fn dedicated(stage: &Stage, kind: (&str, &str)) -> Peer {
    let (server, asked) = stage.bare_server_asked();
    let kind = (kind.0.to_owned(), kind.1.to_owned());
    assert!(asked.contains(&kind), "{asked:?}");
    server.says([stage.welcome(&server)]);
    server
}

/// A client of this kind and its server, in a pool of that size.
fn replicating(size: usize, kind: (&str, &str)) -> (Stage, Peer, Peer) {
    let stage = Stage::new(&Setup::of_size(size));
    let client = stage.newcomer(&[kind]);
    let server = dedicated(&stage, kind);
    assert!(client.is_greeted());
    (stage, server, client)
}

/// What it has exported lasts as long as its session, in which it may say nothing more.
#[test]
fn its_silence_is_no_idleness() {
    let stage = Stage::new(&Setup::with("client_idle_timeout = 5000"));
    let client = stage.newcomer(&[LOGICAL]);
    let server = dedicated(&stage, LOGICAL);
    assert!(client.is_greeted());
    client.says([query("CREATE_REPLICATION_SLOT s LOGICAL pgoutput")]);
    server.says([columns(), row(b"s"), done(), ready()]);
    stage.wait(Duration::from_secs(20));
    assert!(client.is_open() && server.is_open());
}

/// What the client says of itself is for its server alone, which is one for replication from its
/// first byte on.
#[test]
fn its_server_logs_in_as_it_does_itself() {
    let stage = Stage::new(&Setup::of_size(2));
    let own = [("options", "-c wal_sender_timeout=0 -e"), LOGICAL, ("application_name", "sub")];
    let client = stage.newcomer(&own);
    let (server, asked) = stage.bare_server_asked();
    let expected = [&[("user", "user"), ("database", "db")][..], &own].concat();
    let asked: Vec<_> = asked.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(asked, expected);
    server.says([stage.welcome(&server)]);
    assert!(client.is_greeted());
    client.says([query("IDENTIFY_SYSTEM")]);
    assert_eq!(server.heard(), "Q(IDENTIFY_SYSTEM)");
    server.says([columns(), row(b"15"), done(), ready()]);
    assert_eq!(client.heard(), "T D(15) C Z");
}

/// Nor is it refused what is not known here: which switches there are PostgreSQL says.
#[test]
fn its_server_judges_its_switches() {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(&[LOGICAL, ("options", "-z")]);
    let (server, asked) = stage.bare_server_asked();
    assert!(asked.contains(&("options".to_owned(), "-z".to_owned())), "{asked:?}");
    server.says([fatal("42601")]);
    assert_eq!(client.heard(), "R E(FATAL 42601)");
    assert!(client.is_closed());
    assert!(took(Mark::SwitchesPassedOn));
}

/// A RESET leads back to what it was started with, and it would refuse what is of ours: that is of
/// the extended protocol.
#[test]
fn nothing_is_put_back_on_its_server() {
    let stage = Stage::new(&Setup::of_size(2));
    let client = stage.newcomer(&[LOGICAL, ("application_name", "sub")]);
    let server = dedicated(&stage, LOGICAL);
    assert!(client.is_greeted());
    client.says([query("RESET ALL")]);
    assert_eq!(server.heard(), "Q(RESET ALL)");
    server.says([done(), ready()]);
    assert_eq!((client.heard().as_str(), server.heard().as_str()), ("C Z", ""));
}

/// Nobody else gets it, neither meanwhile nor afterwards.
#[test]
fn its_server_is_nobody_elses() {
    let (stage, server, client) = replicating(2, LOGICAL);
    let alice = stage.newcomer(&[]);
    let other = stage.server();
    assert!(alice.is_greeted());
    alice.says([query("SELECT 1")]);
    assert_eq!((server.heard(), other.heard()), (String::new(), "Q(SELECT 1)".to_owned()));
    client.says([terminate()]);
    assert_eq!(server.heard(), "X");
    assert!(server.is_closed());
    assert_eq!(stage.servers().len(), 1);
}

#[test]
fn a_stream_flows_both_ways_and_ends_with_its_client() {
    let (stage, server, client) = replicating(1, PHYSICAL);
    client.says([query("START_REPLICATION 0/0")]);
    assert_eq!(server.heard(), "Q(START_REPLICATION 0/0)");
    server.says([copy_both(), copy_data(b"wal")]);
    client.says([copy_data(b"status")]);
    assert_eq!(client.heard(), "W d");
    assert_eq!(server.heard(), "d");
    client.says([copy_done()]);
    server.says([copy_done(), done(), ready()]);
    assert_eq!(client.heard(), "c C Z");

    client.says([query("START_REPLICATION 0/0")]);
    server.says([copy_both(), copy_data(b"wal")]);
    client.breaks();
    assert!(server.sees_its_client_vanish());
    assert_eq!(stage.servers(), []);
}

/// Whatever the pool does with others: CREATE SUBSCRIPTION copies a table in a transaction.
#[test]
fn the_mode_of_the_pool_does_not_matter() {
    for mode in ["statement", "transaction", "session"] {
        let stage = Stage::new(&Setup::of_mode(mode));
        let client = stage.newcomer(&[LOGICAL]);
        let server = dedicated(&stage, LOGICAL);
        assert!(client.is_greeted());
        client.says([query("BEGIN")]);
        server.says([done(), in_block()]);
        client.says([query("COMMIT")]);
        assert_eq!(server.heard(), "Q(BEGIN) Q(COMMIT)");
        server.says([done(), ready()]);
        assert_eq!(client.heard(), "C Z(T) C Z");
        assert!(client.is_open() && server.is_open());
        client.says([terminate()]);
        assert_eq!(server.heard(), "X");
    }
}

/// It counts in the size of the pool: an idle server makes room for it.
#[test]
fn an_idle_server_makes_room() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let client = stage.newcomer(&[PHYSICAL]);
    assert_eq!((server.heard().as_str(), stage.attempts()), ("X", 0));
    server.ends();
    let server = dedicated(&stage, PHYSICAL);
    assert!(client.is_greeted());
    // Now there is none for others.
    alice.says([query("SELECT 1")]);
    assert_eq!((server.heard().as_str(), stage.attempts()), ("", 0));
    client.says([terminate()]);
    let server = stage.server();
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

#[test]
fn it_waits_in_the_queue_like_others() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT 1")]);
    let client = stage.newcomer(&[PHYSICAL]);
    assert_eq!((server.heard().as_str(), stage.attempts()), ("Q(SELECT 1)", 0));
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "X");
    server.ends();
    dedicated(&stage, PHYSICAL);
    assert!(client.is_greeted());
}

/// Left alone, it would be taken for a server like any other.
/// Where there is room it gets one besides: or it would be out of the queue until the one that
/// makes way has gone, and what is opened meanwhile would make way for the next.
#[test]
fn no_server_makes_way_where_there_is_room() {
    let setup = Setup { general: "connect_parallelism = 1", ..Setup::of_size(4) };
    let (stage, server, alice) = Stage::ready(&setup);
    let (gone, late) = (stage.client(), stage.client());
    alice.says([query("BEGIN")]);
    server.heard();
    server.says([done(), in_block()]);
    gone.says([query("gone")]);
    let bare = stage.bare_server();
    let walkers = [LOGICAL, PHYSICAL].map(|kind| stage.newcomer(&[kind]));
    late.says([query("late")]);
    gone.breaks();
    bare.says([stage.welcome(&bare)]);
    assert_eq!(bare.heard(), "X", "for the second of them, since one is made at a time");
    dedicated(&stage, LOGICAL);
    assert!(walkers[0].is_greeted());
    bare.ends();
    let other = stage.server();
    assert_eq!(other.heard(), "Q(late)");
    dedicated(&stage, PHYSICAL);
    assert!(walkers[1].is_greeted());
}

#[test]
fn who_leaves_during_the_login_takes_the_server_along() {
    for let_in in [false, true] {
        let stage = Stage::new(&Setup::default());
        let client = stage.newcomer(&[PHYSICAL]);
        if let_in {
            let (server, _) = stage.bare_server_asked();
            client.breaks();
            assert!(server.is_aborted());
        } else {
            client.breaks();
            assert_eq!(stage.attempts(), 0);
        }
        assert_eq!(stage.servers(), []);
        let alice = stage.newcomer(&[]);
        stage.server();
        assert!(alice.is_greeted());
    }
}

/// That a role may not replicate says nothing of what else it may.
#[test]
fn a_refusal_is_told_and_concerns_nobody_else() {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(&[PHYSICAL]);
    let server = stage.bare_server();
    server.says([fatal("42501")]);
    assert_eq!(client.heard(), "R E(FATAL 42501)");
    assert!(client.is_closed());
    let alice = stage.newcomer(&[]);
    stage.server();
    assert!(alice.is_greeted());

    let client = stage.newcomer(&[PHYSICAL]);
    assert!(!client.is_greeted());
}

/// Another server in its place would know nothing of what the session had.
#[test]
fn a_server_that_is_lost_is_not_replaced() {
    let (stage, server, client) = replicating(1, LOGICAL);
    server.ends();
    assert_eq!(client.heard(), "E(FATAL 57P01)");
    assert!(client.is_closed());
    assert_eq!(stage.attempts(), 0);
}

/// pg_basebackup asks for a database named `replication`; PostgreSQL does not look at it.
#[test]
fn who_replicates_a_cluster_need_not_name_a_database() {
    let stage = Stage::new(&Setup::default());
    let stranger = stage.stranger();
    stranger.says([startup(&[("user", "user"), ("database", "replication"), PHYSICAL])]);
    dedicated(&stage, PHYSICAL);
    assert!(stranger.is_greeted());
    let stranger = stage.stranger();
    stranger.says([startup(&[("user", "user"), ("database", "replication"), LOGICAL])]);
    assert_eq!(stranger.heard(), "E(FATAL 28000)");
    assert!(took(Mark::ClusterReplicated));
}

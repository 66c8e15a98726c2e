//! What a pool has done, as the console shows it.

use std::time::Duration;

use pgweir_engine::{ClientState, Stats, Time};

use crate::messages::{
    bind, bind_complete, done, execute, in_block, left, parameter_status, parse, parse_complete,
    query, ready, sync,
};
use crate::stage::{Setup, Stage};

fn stats(stage: &Stage) -> Stats {
    stage.snapshot().pools[0].stats
}

/// A transaction is one assignment, however many queries it has.
#[test]
fn transactions_and_queries_are_counted() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let before = stats(&stage);
    let begin = query("BEGIN");
    let batch = [parse("SELECT"), bind(), execute(), sync()].concat();
    alice.says([&begin]);
    server.says([done(), in_block()]);
    alice.says([&batch]);
    let reply = [parse_complete(), bind_complete(), done(), ready()].concat();
    server.says([&reply]);
    let after = stats(&stage);
    assert_eq!(after.logins, 1);
    assert_eq!(after.assignments - before.assignments, 1);
    assert_eq!(after.transactions - before.transactions, 1);
    assert_eq!(after.queries - before.queries, 2);
    assert_eq!((after.parses, after.binds, after.own_parses), (1, 1, 0));
    assert_eq!(after.received - before.received, (begin.len() + batch.len()) as u64);
    let sent = done().len() + in_block().len() + reply.len();
    assert_eq!(after.sent - before.sent, sent as u64);
}

/// What comes along with a server's greeting was sent, too; the greeting itself is for us, in
/// whatever pieces it comes.
#[test]
fn what_stands_behind_a_greeting_is_counted() {
    let sent = |split: usize, behind: &[u8]| {
        let stage = Stage::new(&Setup::default());
        let _alice = stage.newcomer(&[]);
        let server = stage.bare_server();
        let welcome = stage.welcome(&server);
        let (first, rest) = welcome.split_at(split);
        server.says([first]);
        server.says([rest, behind]);
        stats(&stage).sent
    };
    let behind = parameter_status("application_name", "behind");
    let late = sent(9, &[]);
    assert_eq!(sent(0, &[]), late);
    assert_eq!(sent(0, &behind) - late, behind.len() as u64);
}

/// A Parse of ours is work for the server that no client asked for.
#[test]
fn our_own_parses_are_counted_apart() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    for client in [&alice, &bob] {
        client.says([parse("SELECT"), sync()]);
        server.says([parse_complete(), ready()]);
    }
    alice.says([bind(), execute(), sync()]);
    let stats = stats(&stage);
    assert_eq!((stats.parses, stats.own_parses), (2, 1));
}

/// Waiting, being lent and running are three different times.
#[test]
fn times_are_counted_apart() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    let before = stats(&stage);
    stage.wait(Duration::from_secs(1));
    server.says([done(), in_block()]);
    bob.says([query("bob")]);
    stage.wait(Duration::from_secs(2));
    alice.says([query("COMMIT")]);
    stage.wait(Duration::from_secs(1));
    server.says([done(), ready()]);
    let after = stats(&stage);
    let whole = |time: Duration| time.as_secs();
    assert_eq!(whole(after.wait_time - before.wait_time), 3, "bob's, behind alice's");
    assert_eq!(whole(after.transaction_time - before.transaction_time), 4);
    assert_eq!(whole(after.query_time - before.query_time), 2);
}

/// A transaction ends where a ReadyForQuery says so, however long its client keeps the server.
#[test]
fn transactions_are_counted_where_a_client_keeps_its_server() {
    for (mode, keeps) in [("session", false), ("transaction", true)] {
        let (stage, server, alice) = Stage::ready(&Setup::of_mode(mode));
        if keeps {
            alice.says([query("LISTEN a")]);
            server.says([done(), ready(), left("l")]);
        }
        let before = stats(&stage);
        for _ in 0..3 {
            stage.wait(Duration::from_secs(10));
            alice.says([query("SELECT")]);
            stage.wait(Duration::from_secs(1));
            server.says([done(), ready()]);
        }
        // Each of these begins where the one before it ends.
        alice.says([query("a"), query("BEGIN"), query("COMMIT")]);
        stage.wait(Duration::from_secs(1));
        server.says([done(), ready(), done(), in_block()]);
        stage.wait(Duration::from_secs(1));
        server.says([done(), ready()]);
        let counted = stats(&stage).transactions - before.transactions;
        let took = stats(&stage).transaction_time - before.transaction_time;
        assert_eq!((counted, took.as_secs()), (5, 5), "{mode}");
    }
}

/// What is done for a login, or behind a client that is gone, is no transaction of a client.
#[test]
fn what_no_client_asked_for_is_not_counted() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    assert_eq!(stats(&stage).transactions, 0, "a login needs a server");
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.breaks();
    assert!(server.heard().ends_with("Q(ROLLBACK)"));
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert_eq!(stats(&stage).transactions, 0);
}

/// When a client asked last, and how long it has waited since, is told while it waits and after.
#[test]
fn what_a_client_waits_for_is_told() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    let seen = || {
        let clients = stage.snapshot().clients;
        let seconds = |time: Time| time.since(Time(0)).as_secs();
        let seen = clients.iter().map(|c| (c.state, seconds(c.requested), c.wait.as_secs()));
        seen.collect::<Vec<_>>()
    };
    stage.wait(Duration::from_secs(5));
    let (idle, active, waiting) = (ClientState::Idle, ClientState::Active, ClientState::Waiting);
    assert_eq!(seen(), [(idle, 0, 0), (idle, 0, 0)]);
    alice.says([query("SELECT")]);
    stage.wait(Duration::from_secs(1));
    bob.says([query("SELECT")]);
    stage.wait(Duration::from_secs(2));
    assert_eq!(seen(), [(active, 5, 0), (waiting, 6, 2)]);
    server.says([done(), ready()]);
    assert_eq!(seen(), [(idle, 5, 0), (active, 6, 0)]);
}

/// What SHOW MEM and SHOW LISTS count is there, no more and no less.
#[test]
fn memory_is_counted() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    let before = stage.snapshot();
    let memory = before.memory;
    assert_eq!((memory.clients.used, memory.servers.used, memory.pools.used), (1, 1, 1));
    assert_eq!((memory.settings.used, before.logins), (0, 0));
    assert_eq!(memory.buffers.used, 1, "the one that all are read through");

    alice.sends(&query("SELECT")[..7]);
    let stranger = stage.stranger();
    let named = stage.newcomer(&[("application_name", "it")]);
    let after = stage.snapshot();
    assert_eq!((after.memory.clients.used, after.logins), (3, 2));
    assert_eq!((after.memory.settings.used, after.memory.settings.total > 2), (1, true));
    assert_eq!(after.memory.buffers.used, 2);
    assert!(after.memory.buffers.total >= memory.buffers.total + 7);

    stranger.ends();
    named.breaks();
    let clients = stage.snapshot().memory.clients;
    assert_eq!((clients.used, clients.free), (1, 2));
    assert_eq!(clients.total, 3 * clients.size);
}

//! A CancelRequest ends the statement that it is meant for, and no other.

use std::thread;

use pgweir_testkit::frames::{PROTOCOL_3_0, PROTOCOL_3_2, query};
use pgweir_testkit::{CancelKey, WireClient};

use crate::stage::Stage;

const SLEEPS: &str = "query LIKE '%sleep%' AND state = 'active'";

/// Reads one reply: `None`, or the SQLSTATE of its only error.
fn outcome(client: &mut WireClient) -> Option<String> {
    let reply = client.read_until_ready().unwrap();
    let mut errors = reply.iter().filter(|message| message.tag == b'E');
    let error = errors.next().map(|error| error.sqlstate());
    assert!(errors.next().is_none(), "two errors for one request");
    error
}

fn canceled() -> Option<String> {
    Some("57014".to_owned())
}

#[test]
fn a_running_query() {
    let stage = Stage::new("cancel_running", 1);
    let mut client = stage.client();
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, SLEEPS);
    client.cancel_key().unwrap().cancel(stage.address()).unwrap();
    assert_eq!(outcome(&mut client), canceled());
    assert_eq!(client.query("SELECT 'on'"), ["on"]);
}

#[test]
fn a_query_in_a_transaction() {
    let stage = Stage::new("cancel_transaction", 1);
    let mut client = stage.client();
    client.query("BEGIN");
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, SLEEPS);
    client.cancel_key().unwrap().cancel(stage.address()).unwrap();
    assert_eq!(outcome(&mut client), canceled());
    assert_eq!(client.try_query("SELECT 1").unwrap_err().sqlstate(), "25P02");
    client.query("ROLLBACK");
    assert_eq!(client.query("SELECT 'on'"), ["on"]);
}

#[test]
fn a_query_in_the_queue() {
    let stage = Stage::new("cancel_queued", 1);
    stage.ask("CREATE TABLE t (a int); ALTER TABLE t OWNER TO cancel_queued");
    let (mut holder, mut client) = (stage.client(), stage.client());
    holder.query("BEGIN");
    client.send(&query("INSERT INTO t VALUES (1)")).unwrap();
    stage.wait_for_waiters(1);
    client.cancel_key().unwrap().cancel(stage.address()).unwrap();
    assert_eq!(outcome(&mut client), canceled());
    stage.wait_for_waiters(0);
    holder.query("COMMIT");
    assert_eq!(client.query("SELECT count(*) FROM t"), ["0"]);
}

/// All have asked before anybody cancels. A unit that the end of another lets out of the queue is
/// cancelled when its server may not have begun it, which PostgreSQL ignores.
#[test]
fn a_query_that_has_just_left_the_queue() {
    let stage = Stage::new("cancel_dequeued", 2);
    let mut clients: Vec<_> = (0..10).map(|_| stage.client()).collect();
    for round in 0..4 {
        let sleep = format!("SELECT pg_sleep(600 + {round})");
        for client in &mut clients {
            client.send(&query(&sleep)).unwrap();
        }
        stage.wait_for_waiters(8);
        stage.wait_for_backends(2, &format!("query = '{sleep}' AND wait_event = 'PgSleep'"));
        for client in &clients {
            client.cancel_key().unwrap().cancel(stage.address()).unwrap();
        }
        for client in &mut clients {
            assert_eq!(outcome(client), canceled());
        }
    }
}

#[test]
fn a_wrong_key_does_nothing() {
    let stage = Stage::new("cancel_wrong_key", 1);
    let mut client = stage.client();
    let CancelKey { pid, secret } = client.cancel_key().unwrap();
    // The statement ends when it is let, and not before.
    stage.ask("SELECT pg_advisory_lock(1)");
    client.send(&query("SELECT pg_advisory_xact_lock_shared(1)")).unwrap();
    stage.wait_for_backends(1, "wait_event_type = 'Lock'");
    let mut other = secret.clone();
    other[0] ^= 1;
    for (pid, secret) in [
        (pid, other),
        (pid, vec![0; 4]),
        (pid, vec![0; 256]),
        (0, secret.clone()),
        (pid + 1, secret),
    ] {
        CancelKey { pid, secret }.cancel(stage.address()).unwrap();
    }
    stage.ask("SELECT pg_advisory_unlock(1)");
    assert_eq!(outcome(&mut client), None);

    // With the right one it would have ended like this.
    stage.ask("SELECT pg_advisory_lock(1)");
    client.send(&query("SELECT pg_advisory_xact_lock_shared(1)")).unwrap();
    stage.wait_for_backends(1, "wait_event_type = 'Lock'");
    client.cancel_key().unwrap().cancel(stage.address()).unwrap();
    assert_eq!(outcome(&mut client), canceled());
}

#[test]
fn a_late_one_hits_nobody() {
    let stage = Stage::new("cancel_late", 1);
    let (mut canceller, mut victim) = (stage.client(), stage.client());
    let (key, address) = (canceller.cancel_key().unwrap(), stage.address());
    let mut hits = 0;
    for round in 0..300 {
        // The cancel is sent while the statement is about to end, and somebody else's unit has
        // been waiting for the same server all the time.
        let sleep = format!("SELECT pg_sleep({})", 0.000_01 * f64::from(round % 100));
        canceller.send(&query(&sleep)).unwrap();
        victim.send(&query("SELECT pg_sleep(0.001)")).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| key.cancel(address).unwrap());
            hits += usize::from(outcome(&mut canceller).is_some());
            assert_eq!(outcome(&mut victim), None, "round {round}");
        });
    }
    // Otherwise nothing was tried.
    assert!(hits > 0, "no cancel arrived in time");
}

#[test]
fn between_queries_nothing_is_cancelled() {
    let stage = Stage::new("cancel_idle", 1);
    let mut client = stage.client();
    let key = client.cancel_key().unwrap();
    for _ in 0..50 {
        key.cancel(stage.address()).unwrap();
        assert_eq!(client.query("SELECT 1"), ["1"]);
    }
}

#[test]
fn a_storm() {
    let stage = Stage::new("cancel_storm", 2);
    let (mut client, mut other) = (stage.client(), stage.client());
    let (key, address) = (client.cancel_key().unwrap(), stage.address());
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, SLEEPS);
    thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| key.cancel(address).unwrap());
        }
        for _ in 0..100 {
            assert_eq!(other.query("SELECT 'unharmed'"), ["unharmed"]);
        }
    });
    assert_eq!(outcome(&mut client), canceled());
    for _ in 0..10 {
        assert_eq!(client.query("SELECT 'on'"), ["on"]);
    }
}

/// What one run tells its clients says nothing of what another tells those in their places.
#[test]
fn keys_of_another_run_are_others() {
    let runs = ["cancel_first_run", "cancel_second_run"].map(|name| Stage::new(name, 1));
    for (protocol, length) in [(PROTOCOL_3_0, 4), (PROTOCOL_3_2, 32)] {
        let secrets = runs.each_ref().map(|run| {
            let client = run.client_as(&run.login().protocol(protocol));
            client.cancel_key().unwrap().secret
        });
        assert_eq!(secrets.each_ref().map(Vec::len), [length; 2]);
        assert_ne!(secrets[0], secrets[1]);
    }
}

#[test]
fn long_keys_of_protocol_3_2() {
    let stage = Stage::new("cancel_long_keys", 1);
    let mut client = stage.client_as(&stage.login().protocol(PROTOCOL_3_2));
    let key = client.cancel_key().unwrap();
    assert_eq!(key.secret.len(), 32);
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, SLEEPS);
    let short = CancelKey { pid: key.pid, secret: key.secret[..4].to_vec() };
    short.cancel(stage.address()).unwrap();
    stage.wait_for_backends(1, SLEEPS);
    key.cancel(stage.address()).unwrap();
    assert_eq!(outcome(&mut client), canceled());
}

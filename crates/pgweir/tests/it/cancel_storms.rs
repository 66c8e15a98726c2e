//! Many cancels at a time, for many clients and for none: each ends its own client's statement or
//! nothing, and when the storm is over nothing of it is left.

use std::thread;

use pgweir_testkit::frames::query;
use pgweir_testkit::{CancelKey, WireClient, eventually};

use crate::stage::Stage;
use crate::usage::descriptors;

/// Reads one reply: its single value, or the SQLSTATE of its only error.
fn outcome(client: &mut WireClient) -> String {
    let reply = client.read_until_ready().unwrap();
    let mut told = reply.iter().filter(|message| matches!(message.tag, b'D' | b'E'));
    let first = told.next().unwrap();
    let outcome = match first.tag {
        b'E' => first.sqlstate(),
        _ => String::from_utf8(first.values().remove(0).unwrap()).unwrap(),
    };
    // A statement that has sent its row may still be cancelled.
    told.next().map_or(outcome, |error| error.sqlstate())
}

fn keys(clients: &[WireClient]) -> Vec<CancelKey> {
    clients.iter().map(|client| client.cancel_key().unwrap()).collect()
}

/// Keys that are almost, or not at all, like one that is valid.
fn wrong(key: &CancelKey) -> Vec<CancelKey> {
    let CancelKey { pid, secret } = key.clone();
    let mut last = secret.clone();
    *last.last_mut().unwrap() ^= 1;
    let longer = [&secret[..], &[0]].concat();
    let wrong = [(pid, last), (pid, vec![0; 4]), (pid, longer), (pid ^ 1, secret.clone())];
    let far = [(0, secret.clone()), (pid + 1_000_000, secret.clone()), (u32::MAX, secret)];
    wrong.into_iter().chain(far).map(|(pid, secret)| CancelKey { pid, secret }).collect()
}

#[test]
fn many_statements_at_once() {
    const CLIENTS: usize = 16;
    let stage = Stage::new("storm_keys", CLIENTS as u32 + 1);
    let address = stage.address();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| stage.client()).collect();
    let mut other = stage.client();
    let keys = keys(&clients);
    for _round in 0..5 {
        for client in &mut clients {
            client.send(&query("SELECT pg_sleep(600)")).unwrap();
        }
        stage.wait_for_backends(CLIENTS, "wait_event = 'PgSleep'");
        // It takes one more server, whenever the first cancel hits.
        other.query("SELECT 'warm'");
        thread::scope(|scope| {
            for key in &keys {
                for _ in 0..5 {
                    scope.spawn(|| key.cancel(address).unwrap());
                }
            }
            for _ in 0..50 {
                assert_eq!(other.query("SELECT 'unharmed'"), ["unharmed"]);
            }
        });
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(outcome(client), "57014", "{number}");
            assert_eq!(client.query(&format!("SELECT {number}")), [number.to_string()]);
        }
    }
    stage.wait_for_idle_servers(CLIENTS + 1);
}

#[test]
fn nobody_else_is_hit() {
    const CLIENTS: usize = 6;
    const STATEMENTS: usize = 100;
    const CANCELS: usize = 400;
    let stage = Stage::new("storm_others", 3);
    let address = stage.address();
    let mut targets: Vec<_> = (0..CLIENTS).map(|_| stage.client()).collect();
    let mut others: Vec<_> = (0..CLIENTS).map(|_| stage.client()).collect();
    let keys = keys(&targets);
    // Clients of both kinds take turns on the same servers, all the time.
    let ask = |client: &mut WireClient, tag: &str| {
        client.send(&query(&format!("SELECT '{tag}' FROM pg_sleep(0.002)"))).unwrap();
        outcome(client)
    };
    let hits: usize = thread::scope(|scope| {
        for (number, client) in others.iter_mut().enumerate() {
            scope.spawn(move || {
                for turn in 0..STATEMENTS {
                    let tag = format!("other {number} {turn}");
                    assert_eq!(ask(client, &tag), tag);
                }
            });
        }
        for key in &keys {
            scope.spawn(|| (0..CANCELS).for_each(|_| key.cancel(address).unwrap()));
        }
        let run = |(number, client): (usize, &mut WireClient)| {
            let outcomes = (0..STATEMENTS).map(|turn| {
                let tag = format!("target {number} {turn}");
                let told = ask(client, &tag);
                assert!(told == tag || told == "57014", "{tag}: {told}");
                told == "57014"
            });
            outcomes.filter(|hit| *hit).count()
        };
        let numbered = targets.iter_mut().enumerate();
        let running: Vec<_> = numbered.map(|target| scope.spawn(move || run(target))).collect();
        running.into_iter().map(|target| target.join().unwrap()).sum()
    });
    assert!(hits > 0, "otherwise nothing was tried");
    stage.wait_for_idle_servers(3);
}

#[test]
fn wrong_keys() {
    let stage = Stage::new("storm_wrong", 2);
    let address = stage.address();
    let mut clients = [stage.client(), stage.client()];
    let wrong: Vec<_> = keys(&clients).iter().flat_map(wrong).collect();
    // The statements end when they are let, and not before.
    stage.ask("SELECT pg_advisory_lock(1)");
    for client in &mut clients {
        client.send(&query("SELECT 'whole' FROM pg_advisory_xact_lock_shared(1)")).unwrap();
    }
    stage.wait_for_backends(2, "wait_event_type = 'Lock'");
    let before = descriptors(&stage.pgweir);
    thread::scope(|scope| {
        for key in &wrong {
            scope.spawn(|| (0..20).for_each(|_| key.cancel(address).unwrap()));
        }
    });
    stage.ask("SELECT pg_advisory_unlock(1)");
    for client in &mut clients {
        assert_eq!(outcome(client), "whole");
    }
    eventually("the end of all connections", || descriptors(&stage.pgweir) == before);
}

#[test]
fn clients_in_the_queue() {
    const CLIENTS: usize = 30;
    let stage = Stage::new("storm_queue", 1);
    let address = stage.address();
    stage.ask("CREATE TABLE done (who int); ALTER TABLE done OWNER TO storm_queue");
    let mut holder = stage.client();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| stage.client()).collect();
    let keys = keys(&clients);
    holder.query("BEGIN");
    for (who, client) in clients.iter_mut().enumerate() {
        client.send(&query(&format!("INSERT INTO done VALUES ({who})"))).unwrap();
    }
    stage.wait_for_waiters(CLIENTS);
    // Every other one is cancelled, three times over.
    thread::scope(|scope| {
        for key in keys.iter().step_by(2) {
            for _ in 0..3 {
                scope.spawn(|| key.cancel(address).unwrap());
            }
        }
    });
    stage.wait_for_waiters(CLIENTS / 2);
    for client in clients.iter_mut().step_by(2) {
        assert_eq!(outcome(client), "57014");
    }
    holder.query("COMMIT");
    for client in clients.iter_mut().skip(1).step_by(2) {
        let reply = client.read_until_ready().unwrap();
        assert_eq!(reply[0].to_string(), "CommandComplete \"INSERT 0 1\"");
    }
    assert_eq!(stage.value("SELECT count(*) FROM done WHERE who % 2 = 1"), "15");
    assert_eq!(stage.value("SELECT count(*) FROM done WHERE who % 2 = 0"), "0");
}

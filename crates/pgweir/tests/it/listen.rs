//! Many clients listen, and one server listens for all of them.

use std::sync::Barrier;
use std::thread;

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{Message, PoolerConfig, WireClient};

use crate::stage::{self, CLUSTER, Stage};

/// The next notification of a client that waits for one: channel and payload.
fn notified(client: &mut WireClient) -> String {
    said(&client.read().unwrap().unwrap())
}

fn said(message: &Message) -> String {
    assert_eq!(message.tag, b'A', "{message:?}");
    let text = String::from_utf8_lossy(&message.body[4..]);
    text.trim_end_matches('\0').replace('\0', " ")
}

/// What an answer has of notifications, in which places.
fn answer(client: &mut WireClient, sql: &str) -> Vec<String> {
    client.send(&query(sql)).unwrap();
    let reply = client.read_until_ready().unwrap();
    reply
        .iter()
        .map(
            |message| {
                if message.tag == b'A' {
                    said(message)
                } else {
                    char::from(message.tag).to_string()
                }
            },
        )
        .collect()
}

/// Wherever in a batch NOTIFY stands.
#[test]
fn a_batch_that_notifies_its_own_client_hears_of_it_before_its_end() {
    let stage = Stage::new("listen_batch", 2);
    let mut client = stage.client();
    let run = |text: &str| [parse("", text, &[]), bind("", "", &[]), execute("", 0)].concat();
    client.query("LISTEN jobs");
    for other in ["SHOW DateStyle", "SELECT 1 WHERE false"] {
        let batch = [run(other), run("NOTIFY jobs, 'x'"), sync()].concat();
        client.send(&batch).unwrap();
        let reply = client.read_until_ready().unwrap();
        assert!(reply.iter().any(|message| message.tag == b'A'), "{other}: {reply:?}");
    }
}

#[test]
fn who_listens_keeps_no_server() {
    let stage = Stage::new("listen_free", 1);
    let mut clients: Vec<_> = (0..20).map(|_| stage.client()).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        client.query(&format!("LISTEN \"channel {}\"; LISTEN all_of_them", at % 3));
    }
    let mut other = stage.client();
    for at in 0..3 {
        other.query(&format!("NOTIFY \"channel {at}\", 'it''s {at}'; NOTIFY all_of_them"));
    }
    for (at, client) in clients.iter_mut().enumerate() {
        let own = at % 3;
        let mut expected = vec!["all_of_them"; 3];
        let text = format!("channel {own} it's {own}");
        expected.insert(own, &text);
        for one in expected {
            assert_eq!(notified(client).trim_end(), one);
        }
        assert_eq!(client.query("SELECT 1"), ["1"]);
    }
}

#[test]
fn what_a_client_notifies_itself_of_comes_with_the_reply() {
    let stage = Stage::new("listen_self", 2);
    // In a database of its own: it does not hear of the other's.
    stage::create_database(&CLUSTER, "listen_direct");
    let login = stage::login("listen_direct");
    let mut direct = WireClient::login(CLUSTER.address(), &login).unwrap();
    let mut pooled = stage.client();
    for sql in [
        "LISTEN a",
        "NOTIFY a, '1'",
        "BEGIN",
        "NOTIFY a, '2'",
        "SAVEPOINT s",
        "NOTIFY a, '3'",
        "ROLLBACK TO s",
        "LISTEN b",
        "COMMIT",
        "SELECT pg_notify('b', '4')",
        "UNLISTEN a; NOTIFY a; NOTIFY b",
        "NOTIFY a; NOTIFY b",
        "DISCARD ALL",
        "NOTIFY b",
        "LISTEN a",
        "BEGIN",
        "SAVEPOINT s",
        "NOTIFY b",
        "UNLISTEN *",
        "SAVEPOINT t",
        "ROLLBACK TO s",
        "COMMIT",
        "NOTIFY a, '5'",
        "BEGIN",
        "NOTIFY b",
        "UNLISTEN *",
        "SAVEPOINT s",
        "ROLLBACK TO s",
        "COMMIT",
        "NOTIFY a, '6'",
    ] {
        assert_eq!(answer(&mut pooled, sql), answer(&mut direct, sql), "{sql}");
    }
}

/// A rule may say NOTIFY, which no text shows that changes its table.
#[test]
fn what_a_rule_notifies_its_client_of_comes_with_the_reply() {
    let stage = Stage::new("listen_rule", 2);
    stage::superuser(&CLUSTER, &stage.name).query(
        "SET ROLE listen_rule; CREATE TABLE told (a int);
         CREATE RULE r AS ON INSERT TO told DO ALSO NOTIFY a, '1';
         CREATE FUNCTION tells() RETURNS int LANGUAGE sql AS
            'INSERT INTO told VALUES (1); SELECT 1';",
    );
    let direct = WireClient::login(CLUSTER.address(), &stage.login()).unwrap();
    let script = ["LISTEN a", "INSERT INTO told VALUES (1)", "SELECT tells()", "SELECT 1"];
    let said = |mut client: WireClient| script.map(|text| answer(&mut client, text));
    assert_eq!(said(direct), said(stage.client()));
    // Whether the listener would have been as quick is another question.
    let names = stage.console("SHOW LOUD");
    assert!(names.iter().any(|row| row.contains("|told||notify|")), "{names:?}");
    assert!(names.iter().any(|row| row.contains("|tells|notify|")), "{names:?}");
}

/// As PostgreSQL does it: of the same channel with the same words, within one transaction, once.
#[test]
fn what_is_notified_twice_in_a_transaction_is_heard_once() {
    let stage = Stage::new("listen_twice", 2);
    let mut direct = WireClient::login(CLUSTER.address(), &stage::login("listen_twice")).unwrap();
    let (mut client, mut other) = (stage.client(), stage.client());
    for each in [&mut direct, &mut client, &mut other] {
        each.query("LISTEN a");
    }
    let mut heard_itself = Vec::new();
    for sql in [
        "NOTIFY a, '1'; NOTIFY a, '1'",
        "BEGIN; NOTIFY a, '2'; NOTIFY a, '3'",
        "SAVEPOINT s; NOTIFY a, '2'; NOTIFY a",
        "ROLLBACK TO s; NOTIFY a, '3'; SELECT pg_notify('a', '2')",
        "COMMIT",
        "NOTIFY a, '3'",
        "NOTIFY a, '3'",
        "BEGIN; NOTIFY a, '4'; NOTIFY a, '4'; ROLLBACK",
        "NOTIFY a; NOTIFY a; NOTIFY a, 'end'",
    ] {
        client.send(&query(sql)).unwrap();
        let reply = client.read_until_ready().unwrap();
        heard_itself.extend(reply.iter().filter(|message| message.tag == b'A').map(said));
    }
    let all = ["a 1", "a 2", "a 3", "a 3", "a 3", "a", "a end"];
    assert_eq!(heard_itself, all);
    for listener in [&mut direct, &mut other] {
        let heard: Vec<_> = all.iter().map(|_| notified(listener)).collect();
        assert_eq!(heard, all);
    }
}

/// Whoever listens hears the same as a session of its own would, in the same order, whatever it
/// says meanwhile itself.
#[test]
fn everybody_hears_everything_in_one_order() {
    const CLIENTS: usize = 12;
    let stage = Stage::new("listen_order", 3);
    let mut direct = WireClient::login(CLUSTER.address(), &stage::login("listen_order")).unwrap();
    direct.query("LISTEN everything");
    let all_listen = Barrier::new(CLIENTS);
    let heard: Vec<_> = thread::scope(|scope| {
        let one = |number: usize| {
            let (stage, all_listen) = (&stage, &all_listen);
            scope.spawn(move || {
                let mut client = stage.client();
                client.query("LISTEN everything");
                all_listen.wait();
                let mut heard = Vec::new();
                for round in 0..60 {
                    let name = format!("{number}.{round}");
                    for sql in script((number + round) % 6, &name) {
                        client.send(&query(&sql)).unwrap();
                        let reply = client.read_until_ready().unwrap();
                        let told = reply.iter().filter(|message| message.tag == b'A').map(said);
                        heard.extend(told);
                        assert!(reply.iter().all(|message| message.tag != b'E'), "{reply:?}");
                    }
                }
                (client, heard)
            })
        };
        let threads: Vec<_> = (0..CLIENTS).map(one).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    stage.client().query("NOTIFY everything, 'the end'");
    let to_the_end = |client: &mut WireClient, mut heard: Vec<String>| {
        while heard.last().is_none_or(|last| !last.ends_with("the end")) {
            heard.push(notified(client));
        }
        heard
    };
    let expected = to_the_end(&mut direct, Vec::new());
    for (mut client, heard) in heard {
        assert_eq!(to_the_end(&mut client, heard), expected);
    }
}

/// What a client says in one of its rounds.
fn script(kind: usize, name: &str) -> Vec<String> {
    let notify = format!("NOTIFY everything, '{name}'");
    let texts: &[&str] = match kind {
        0 => &["SELECT 1"],
        1 => &[&notify],
        2 => &["BEGIN", &notify, "SELECT 1", "COMMIT"],
        3 => &["BEGIN", "SAVEPOINT s", &notify, "ROLLBACK TO s", "COMMIT"],
        4 => &["LISTEN other", &notify, "UNLISTEN other"],
        _ => &["SELECT pg_sleep(0.001)"],
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A limit of so many servers, over all, of a database or of a user.
fn limited(of: &str, most: &'static str) -> impl Fn(PoolerConfig) -> PoolerConfig {
    let setting = format!("max_{of}_connections");
    move |config| config.general(&setting, most)
}

const LIMITS: [&str; 3] = ["server", "db", "user"];

/// It is a connection like any other.
#[test]
fn the_listener_counts_in_every_limit() {
    for of in LIMITS {
        let stage = Stage::with(&format!("listen_limited_{of}"), 4, limited(of, "2"));
        let mut clients: Vec<_> = (0..6).map(|_| stage.client()).collect();
        clients.iter_mut().for_each(|client| drop(client.query("LISTEN a")));
        thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(client.query("SELECT 1 FROM pg_sleep(0.002)"), ["1"]);
                        assert!(stage.backends("TRUE") <= 2, "{of}");
                    }
                });
            }
        });
        assert_eq!(stage.backends("TRUE"), 2, "{of}: one listens, and the others share one");
        stage.client().query("NOTIFY a, 'told'");
        clients.iter_mut().for_each(|client| assert_eq!(notified(client), "a told", "{of}"));
    }
}

#[test]
fn where_no_limit_leaves_room_for_the_listener_the_server_stays() {
    for of in LIMITS {
        let stage = Stage::with(&format!("listen_crowded_{of}"), 2, limited(of, "1"));
        let (mut client, mut other) = (stage.client(), stage.client());
        client.query("LISTEN a");
        other.send(&query("SELECT 'served'")).unwrap();
        stage.wait_for_waiters(1);
        stage.ask("NOTIFY a, 'told'");
        assert_eq!(notified(&mut client), "a told", "{of}");
        assert_eq!((stage.backends("TRUE"), client.query("SELECT 1").concat()), (1, "1".into()));
        client.query("UNLISTEN a");
        let reply = other.read_until_ready().unwrap();
        assert_eq!(reply[1].to_string(), "DataRow \"served\"", "{of}");
    }
}

/// Whoever is within a transaction is told so behind it.
#[test]
fn behind_a_loss_of_the_listener_all_are_told_so_and_listen_again() {
    let stage = Stage::new("listen_lost", 2);
    let mut clients: Vec<_> = (0..3).map(|_| stage.client()).collect();
    clients.iter_mut().for_each(|client| drop(client.query("LISTEN jobs")));
    let mut others: Vec<_> = (0..2).map(|_| stage.client()).collect();
    let pids: Vec<_> = others
        .iter_mut()
        .map(|other| other.query("BEGIN; SELECT pg_backend_pid()").concat())
        .collect();
    let is_lent = format!("pid IN ({})", pids.join(", "));
    let listens = format!("NOT ({is_lent})");
    assert_eq!((stage.backends(&is_lent), stage.backends(&listens)), (2, 1));
    others.iter_mut().for_each(|other| drop(other.query("COMMIT")));

    clients[2].query("BEGIN");
    let lose = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE usename = '{}' AND {listens}",
        stage.name
    );
    assert_eq!(stage.ask(&lose), ["t"]);
    for client in &mut clients[..2] {
        assert_missed(&client.read().unwrap().unwrap());
    }
    stage.ask("NOTIFY jobs, 'behind it'");
    for client in &mut clients[..2] {
        assert_eq!(notified(client), "jobs behind it");
    }
    assert_eq!(answer(&mut clients[2], "SELECT 1"), ["T", "D", "C", "Z"]);
    clients[2].send(&query("COMMIT")).unwrap();
    let mut told = clients[2].read_until_ready().unwrap();
    while told.len() < 4 {
        told.push(clients[2].read().unwrap().unwrap());
    }
    told.retain(|message| !matches!(message.tag, b'C' | b'Z'));
    assert_missed(&told[0]);
    assert_eq!(said(&told[1]), "jobs behind it");

    // What was heard before, nobody hears again.
    stage.ask("NOTIFY jobs, 'the end'");
    for client in &mut clients {
        assert_eq!(notified(client), "jobs the end");
        assert_eq!(answer(client, "SELECT 1"), ["T", "D", "C", "Z"]);
    }
}

/// A NOTICE says that notifications may have been missed.
#[track_caller]
fn assert_missed(message: &Message) {
    let text = String::from_utf8_lossy(&message.body);
    assert!(message.tag == b'N' && text.contains("may have been missed"), "{message:?}");
}

/// A function has listened that nobody looks into, or somebody whose LISTEN is ignored: that
/// server would tell whoever has it next.
#[test]
fn what_nobody_may_hear_nobody_hears_and_its_server_goes() {
    for (name, setting, value, act) in [
        ("listen_function", "loud_functions", "\"ignore\"", "SELECT listens()"),
        ("listen_ignored", "pin_ignore", "\"listen\"", "LISTEN jobs"),
    ] {
        let stage = Stage::with(name, 1, |config| config.pool(setting, value));
        stage.ask(
            "CREATE FUNCTION listens() RETURNS void LANGUAGE plpgsql \
             AS $$ BEGIN LISTEN jobs; END $$",
        );
        let (mut one, mut other) = (stage.client(), stage.client());
        let is_gone = |pid: &str| stage.wait_for_backends(0, &format!("pid = {pid}"));
        one.query(act);
        let idle = other.query("SELECT pg_backend_pid()").concat();
        stage.ask("NOTIFY jobs, 'while it is idle'");
        is_gone(&idle);

        one.query(act);
        let lent = other.query("BEGIN; SELECT pg_backend_pid()").concat();
        stage.ask("NOTIFY jobs, 'while somebody else has it'");
        assert_eq!(answer(&mut other, "SELECT 1"), ["T", "D", "C", "Z"], "{name}");
        assert_eq!(answer(&mut other, "COMMIT"), ["C", "Z"], "{name}");
        is_gone(&lent);
        for client in [&mut one, &mut other] {
            assert_eq!(answer(client, "SELECT 1"), ["T", "D", "C", "Z"], "{name}");
        }
        assert_eq!(stage.backends("TRUE"), 1, "{name}");
    }
}

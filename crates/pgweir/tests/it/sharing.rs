//! Who shares servers, and what a cancel does there.

use std::thread;

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{Login, Message, WireClient, eventually};

use crate::console::{cell, show};
use crate::course;
use crate::stage::{self, CLUSTER, Stage};
use crate::stopped::Stopped;

/// What a client is answered, without what tells of its session: the tags, and the code of an
/// error.
fn heard(client: &mut WireClient) -> String {
    let reply = client.read_until_ready().unwrap();
    let said =
        reply.iter().filter(|message| message.tag != b'S').map(|message| match message.tag {
            b'E' => message.sqlstate(),
            tag => char::from(tag).to_string(),
        });
    said.collect::<Vec<String>>().join(" ")
}

const ROUNDS: usize = 100;

/// Statements that clients have prepared under the same name, each its own, behind settings of
/// three kinds; and in the same pool one that listens, one that keeps its server, and one that is
/// in transactions.
#[test]
fn names_and_settings_take_part_beside_what_is_alone() {
    let name = "sharing_names";
    let stage = Stage::with(name, 8, |config| {
        let config = config.general("pipelining", "\"3x8\"").user("session", "", 1);
        let config = config.user_setting("pool_mode", "\"session\"");
        config.user_setting("server_username", &format!("{name:?}"))
    });
    let mut in_session = stage.client_as(&Login::new("session").database(name));
    in_session.query("SET TimeZone = 'Asia/Tokyo'; SELECT set_config('app.a', 'kept', false)");
    let mut listener = stage.client();
    listener.query("LISTEN c");
    let mut pinned = stage.client();
    pinned.query("CREATE TEMP TABLE x AS SELECT 7 AS a");
    let mut alice = stage.client();
    thread::scope(|scope| {
        for id in 0..12 {
            let stage = &stage;
            scope.spawn(move || works_in_its_zone(stage, id));
        }
        for round in 0..ROUNDS {
            alice.query("BEGIN");
            assert_eq!(pinned.query("SELECT a FROM x"), ["7"]);
            let kept = in_session.query("SHOW TimeZone; SELECT current_setting('app.a')");
            assert_eq!(kept, ["Asia/Tokyo", "kept"]);
            alice.query(&format!("NOTIFY c, '{round}'"));
            alice.query("COMMIT");
            let told = listener.read().unwrap().unwrap();
            assert_eq!(told.tag, b'A', "{told}");
            assert!(told.body.ends_with(format!("\0{round}\0").as_bytes()), "{told}");
        }
    });
    let shared = course::shared(&stage);
    assert!(shared > 12 * ROUNDS / 4, "{shared} statements have shared a server");
}

fn works_in_its_zone(stage: &Stage, id: usize) {
    let (zone, offset) =
        [("UTC", "00+00"), ("Asia/Tokyo", "09+09"), ("Etc/GMT+5", "19-05")][id % 3];
    let mut client = stage.client();
    client.query(&format!("SET TimeZone = '{zone}'"));
    let text = format!("SELECT $1::int + {id}, ('2026-01-01 00:00+00'::timestamptz)::text");
    client.send(&[parse("s", &text, &[]), sync()].concat()).unwrap();
    assert_eq!(heard(&mut client), "1 Z");
    for round in 0..ROUNDS {
        let value = round.to_string();
        let batch = [bind("", "s", &[Some(&value)]), execute("", 0), sync()].concat();
        client.send(&batch).unwrap();
        let reply = client.read_until_ready().unwrap();
        let row = reply.iter().find(|message| message.tag == b'D').map(Message::values).unwrap();
        let row = row.iter().map(|value| String::from_utf8_lossy(value.as_deref().unwrap()));
        let [sum, time] = &row.collect::<Vec<_>>()[..] else { panic!("{reply:?}") };
        assert_eq!(*sum, (round + id).to_string(), "somebody else's row");
        let (_, hour) = time.split_once(' ').unwrap();
        let short = [&hour[..2], &hour[hour.len() - 3..]].concat();
        assert_eq!(short, offset, "{zone}: {time}");
    }
}

/// What is said of a pool goes before what is said in general, and of a user before both.
#[test]
fn the_file_says_for_whom() {
    for (name, pool, user, shares) in [
        ("sharing_of_pool", "1x8", None, true),
        ("sharing_of_user", "1x8", Some("off"), false),
        ("sharing_of_user_too", "off", Some("1x8"), true),
    ] {
        stage::create_database(&CLUSTER, name);
        let quoted = |value: &str| format!("\"{value}\"");
        let config = stage::trusting(&CLUSTER, name)
            .general("pipelining", "\"off\"")
            .pool("pipelining", &quoted(pool))
            .user(name, "", 2);
        let config = match user {
            Some(value) => config.user_setting("pipelining", &quoted(value)),
            None => config,
        };
        let stage = Stage::of(&CLUSTER, name, &config);
        let mut clients: Vec<_> = (0..4).map(|_| stage.client()).collect();
        for round in 0..20 {
            for client in &mut clients {
                client.send(&query(&format!("SELECT {round}"))).unwrap();
            }
            clients.iter_mut().for_each(|client| assert_eq!(heard(client), "T D C Z"));
        }
        assert_eq!(course::shared(&stage) > 0, shares, "{name}");
    }
}

/// Rows, and a server that all share.
fn shared(name: &str) -> Stage {
    let stage = Stage::with(name, 1, |config| config.general("pipelining", "\"1x8\""));
    stage.ask(&format!(
        "CREATE TABLE t (id int, n int);
         INSERT INTO t SELECT id, 0 FROM generate_series(0, 3) AS id;
         ALTER TABLE t OWNER TO {name}"
    ));
    stage
}

fn update(id: usize) -> Vec<u8> {
    query(&format!("UPDATE t SET n = n + 1 WHERE id = {id}"))
}

/// Two clients whose updates are known to be short, the backend of the server that they share, and
/// a session that locks the row of the second one.
fn two_and_a_lock(stage: &Stage) -> ([WireClient; 2], String, WireClient) {
    let mut clients = [stage.client(), stage.client()];
    for client in &mut clients {
        client.send(&update(3)).unwrap();
        assert_eq!(heard(client), "C Z");
    }
    let backend = stage.value(&format!(
        "SELECT pid FROM pg_stat_activity WHERE usename = '{}' AND query LIKE 'UPDATE%'",
        stage.name
    ));
    let mut locker = stage::superuser(&CLUSTER, &stage.name);
    locker.query("BEGIN; UPDATE t SET n = 7 WHERE id = 1");
    (clients, backend, locker)
}

/// Waits until so many statements stand on the one server that there is.
fn wait_for_queue(stage: &Stage, length: usize) {
    eventually("them to stand there", || {
        let servers = show(stage, "SERVERS");
        cell(&servers[0], "queue").split(", ").filter(|name| !name.is_empty()).count() == length
    });
}

/// Bob's update was ended and hers was not.
fn only_hers_is_there(alice: &mut WireClient, mut locker: WireClient) {
    locker.query("ROLLBACK");
    assert_eq!(alice.query("SELECT n FROM t WHERE id < 2 ORDER BY id"), ["1", "0"]);
}

/// It stands behind somebody else's, which no cancel may hit.
#[test]
fn a_cancel_of_one_among_others_ends_it_alone() {
    let stage = shared("sharing_cancel");
    let ([mut alice, mut bob], backend, locker) = two_and_a_lock(&stage);
    let stopped = Stopped::process(&backend);
    alice.send(&update(0)).unwrap();
    bob.send(&update(1)).unwrap();
    wait_for_queue(&stage, 2);
    bob.cancel_key().unwrap().cancel(stage.address()).unwrap();
    drop(stopped);
    assert_eq!(heard(&mut alice), "C Z");
    assert_eq!(heard(&mut bob), "57014 Z");
    only_hers_is_there(&mut alice, locker);
}

/// Nobody else's is there, so a cancel goes out; and who comes meanwhile is not hit by it.
#[test]
fn a_cancel_of_one_alone_on_a_shared_server_hits_nobody_else() {
    let stage = shared("sharing_cancel_alone");
    let ([mut alice, mut bob], backend, locker) = two_and_a_lock(&stage);
    let stopped = Stopped::process(&backend);
    bob.send(&update(1)).unwrap();
    wait_for_queue(&stage, 1);
    bob.cancel_key().unwrap().cancel(stage.address()).unwrap();
    alice.send(&update(0)).unwrap();
    drop(stopped);
    assert_eq!(heard(&mut bob), "57014 Z");
    assert_eq!(heard(&mut alice), "C Z");
    only_hers_is_there(&mut alice, locker);
}

/// It waits for a place, for the one server is in a transaction.
#[test]
fn a_cancel_of_one_that_waits_to_share_is_answered_at_once() {
    let stage = shared("sharing_cancel_waiting");
    let ([mut alice, mut bob], _, _) = two_and_a_lock(&stage);
    alice.query("BEGIN");
    bob.send(&update(0)).unwrap();
    stage.wait_for_waiters(1);
    bob.cancel_key().unwrap().cancel(stage.address()).unwrap();
    assert_eq!(heard(&mut bob), "57014 Z");
    assert_eq!(alice.query("SELECT n FROM t WHERE id = 0; COMMIT"), ["0"]);
}

/// Whether what changes rows was carried out nobody can say, cancelled or not.
#[test]
fn of_a_cancelled_write_whose_server_ends_nobody_knows() {
    let stage = shared("sharing_cancel_lost");
    let ([mut alice, mut bob], backend, locker) = two_and_a_lock(&stage);
    let stopped = Stopped::process(&backend);
    bob.send(&update(1)).unwrap();
    wait_for_queue(&stage, 1);
    bob.cancel_key().unwrap().cancel(stage.address()).unwrap();
    alice.send(&query("SELECT n FROM t WHERE id = 0")).unwrap();
    stage.ask(&format!("SELECT pg_terminate_backend({backend})"));
    drop(stopped);
    assert_eq!(heard(&mut bob), "08007 Z");
    assert_eq!(heard(&mut alice), "T D C Z");
    drop(locker);
}

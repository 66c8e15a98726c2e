//! Reads of many clients that are one transaction on the server, and nobody sees it.

use std::collections::BTreeSet;

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{Cluster, Message, PoolerConfig, WireClient};

use crate::course::LOST_TWICE;
use crate::stage::{CLUSTER, Stage, superuser};
use crate::stopped::Stopped;

/// Enough of them stand on one server.
const CLIENTS: usize = 48;
const SERVERS: usize = 4;
const ROUNDS: usize = 40;
const PIPELINING: &str = "\"1x64\"";

/// All ask while pgweir hangs: so it finds all that they have asked in one turn.
fn ask_at_once(stage: &Stage, clients: &mut [WireClient], round: usize, also: impl FnOnce()) {
    let _stopped = Stopped::process(&stage.pgweir.pid().to_string());
    for (id, client) in clients.iter_mut().enumerate() {
        ask(client, id, round);
    }
    also();
}

/// In each round what a client asks for is its own.
fn ask(client: &mut WireClient, id: usize, round: usize) {
    let value = (1000 * round + id).to_string();
    let request = match id % 3 {
        0 => query(&format!("SELECT {value} AS a, extract(epoch FROM now()) FROM here")),
        1 => [
            parse("", "SELECT $1::int, extract(epoch FROM now()) FROM here", &[]),
            bind("", "", &[Some(&value)]),
            execute("", 0),
            sync(),
        ]
        .concat(),
        _ => [bind("", "s", &[Some(&value)]), execute("", 0), sync()].concat(),
    };
    client.send(&request).unwrap();
}

/// It hears that, and when the transaction has begun.
fn hear(client: &mut WireClient, id: usize, round: usize) -> String {
    let reply = client.read_until_ready().unwrap();
    judge(&reply, id, round)
}

fn judge(reply: &[Message], id: usize, round: usize) -> String {
    let row = reply.iter().find(|message| message.tag == b'D').map(Message::values);
    let row = row.unwrap_or_else(|| panic!("{reply:?}"));
    let value = String::from_utf8_lossy(row[0].as_deref().unwrap()).into_owned();
    assert_eq!(value, (1000 * round + id).to_string(), "somebody else's row");
    let tags: String = reply.iter().map(|message| char::from(message.tag)).collect();
    assert_eq!(tags.replace('S', ""), ["TDCZ", "12DCZ", "2DCZ"][id % 3], "{reply:?}");
    String::from_utf8_lossy(row[1].as_deref().unwrap()).into_owned()
}

/// The same where the server may be lost, and the next one too. Where that is in the middle of a
/// reply, the connection ends, and the client goes on with another one.
fn hear_of_loss(stage: &Stage, client: &mut WireClient, id: usize, round: usize) {
    let mut reply = Vec::new();
    while reply.last().is_none_or(|last: &Message| last.tag != b'Z') {
        let Some(message) = client.read().unwrap() else { break };
        // A crash is announced.
        if message.tag != b'N' {
            reply.push(message);
        }
    }
    let ends = reply.last().is_none_or(|last| last.tag != b'Z');
    let code = reply.iter().find(|message| message.tag == b'E').map(Message::sqlstate);
    match code.as_deref() {
        None => drop(judge(&reply, id, round)),
        Some(LOST_TWICE) if !ends => {}
        Some("57P01" | "57P02") if ends && reply[0].tag != b'E' => *client = prepared(stage),
        Some(_) => panic!("{reply:?}"),
    }
}

/// A stage on which `CLIENTS` share one server.
fn stage(name: &str) -> (Stage, Vec<WireClient>) {
    crowded(Stage::with(name, SERVERS as u32, |config| config.general("pipelining", PIPELINING)))
}

/// The clients of a stage, each of which has prepared a statement, and a table of one row.
fn crowded(stage: Stage) -> (Stage, Vec<WireClient>) {
    stage.ask(&format!("CREATE TABLE here AS SELECT 1; ALTER TABLE here OWNER TO {}", stage.name));
    let clients = (0..CLIENTS).map(|_| prepared(&stage)).collect();
    (stage, clients)
}

fn prepared(stage: &Stage) -> WireClient {
    let mut client = stage.client();
    prepare(&mut client);
    client
}

fn prepare(client: &mut WireClient) {
    let text = "SELECT $1::int, extract(epoch FROM now()) AS s FROM here";
    client.send(&[parse("s", text, &[]), sync()].concat()).unwrap();
    client.read_until_ready().unwrap();
}

/// Two that begin at the same microsecond are one transaction.
#[test]
fn everybody_is_answered_what_they_have_asked() {
    let (stage, mut clients) = stage("joined_answers");
    let mut times = BTreeSet::new();
    for round in 0..ROUNDS {
        ask_at_once(&stage, &mut clients, round, || {});
        for (id, client) in clients.iter_mut().enumerate() {
            times.insert(hear(client, id, round));
        }
    }
    let statements = CLIENTS * ROUNDS;
    assert!(times.len() < statements / 10 * 9, "{} of {statements} transactions", times.len());
}

/// One of them divides by zero now and then, after it was known to be short: the others hear
/// nothing of that.
#[test]
fn an_error_is_only_its_own_clients() {
    let (stage, mut clients) = stage("joined_errors");
    let mut failing = stage.client();
    for round in 0..ROUNDS {
        let is_wrong = round % 4 == 3;
        // By its letters it is another statement each time.
        let name = char::from(b'a' + u8::try_from(round / 4).unwrap());
        let text = format!("SELECT 1 / $1::int AS {name}");
        let divisor = if is_wrong { "0" } else { "1" };
        ask_at_once(&stage, &mut clients, round, || {
            let batch = [parse("", &text, &[]), bind("", "", &[Some(divisor)])].concat();
            failing.send(&[batch, execute("", 0), sync()].concat()).unwrap();
        });
        let reply = failing.read_until_ready().unwrap();
        let failed = reply.iter().find(|message| message.tag == b'E').map(Message::sqlstate);
        assert_eq!(failed.as_deref(), is_wrong.then_some("22012"), "{reply:?}");
        for (id, client) in clients.iter_mut().enumerate() {
            hear(client, id, round);
        }
    }
}

/// What only reads is run again where its server ends, at whatever it was; but not where the next
/// one ends, too.
#[test]
fn the_end_of_their_server_is_heard_by_nobody() {
    let (stage, mut clients) = stage("joined_ends");
    for round in 0..ROUNDS {
        ask_at_once(&stage, &mut clients, round, || {});
        if round % 4 == 3 {
            stage.ask(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE usename = current_database() AND pid <> pg_backend_pid()",
            );
        }
        for (id, client) in clients.iter_mut().enumerate() {
            hear_of_loss(&stage, client, id, round);
        }
    }
}

/// A crash ends all servers, and whoever asks waits until PostgreSQL is there again.
#[test]
fn nor_is_a_crash() {
    let cluster = Cluster::builder().setting("synchronous_commit", "on").start();
    let name = "joined_crashes";
    let settings = |config: PoolerConfig| config.general("pipelining", PIPELINING);
    let (stage, mut clients) = crowded(Stage::on(&cluster, name, SERVERS as u32, settings));
    for round in 0..ROUNDS / 4 {
        let backends = format!("SELECT pid FROM pg_stat_activity WHERE usename = '{name}' LIMIT 1");
        let backend =
            (round % 4 == 3).then(|| superuser(&cluster, name).query(&backends).remove(0));
        ask_at_once(&stage, &mut clients, round, || {});
        if let Some(backend) = backend {
            cluster.kill_backend(backend.parse().unwrap());
        }
        for (id, client) in clients.iter_mut().enumerate() {
            hear_of_loss(&stage, client, id, round);
        }
    }
    assert!(stage.pgweir.log().contains("a server connection was lost"));
}

/// Who asks for the end of a statement, or goes, is nobody's trouble but its own: while all wait
/// for a lock, together and then each for itself, some do, and all others are answered.
#[test]
fn who_cancels_or_goes_is_alone_in_that() {
    let (stage, mut clients) = stage("joined_goers");
    for round in 0..ROUNDS / 8 {
        let mut owner = superuser(&CLUSTER, &stage.name);
        owner.query("BEGIN; LOCK TABLE here");
        ask_at_once(&stage, &mut clients, round, || {});
        stage.wait_for_backends(SERVERS, "wait_event_type = 'Lock'");
        for (id, client) in clients.iter_mut().enumerate() {
            match (id + round) % 8 {
                3 => *client = stage.client(),
                5 => {
                    client.cancel_key().unwrap().cancel(stage.address()).unwrap();
                    let reply = client.read_until_ready().unwrap();
                    let error = reply.iter().find(|message| message.tag == b'E');
                    assert_eq!(error.map(Message::sqlstate).as_deref(), Some("57014"), "{reply:?}");
                }
                _ => {}
            }
        }
        owner.query("COMMIT");
        for (id, client) in clients.iter_mut().enumerate() {
            match (id + round) % 8 {
                3 => prepare(client),
                5 => {}
                _ => drop(hear(client, id, round)),
            }
        }
    }
}

/// A snapshot is one for a transaction, at that level: it shows what has been acknowledged before a
/// statement was sent, to whomever it is one with.
#[test]
fn each_finds_what_it_has_written() {
    let name = "joined_writers";
    let stage =
        Stage::with(name, SERVERS as u32, |config| config.general("pipelining", PIPELINING));
    stage.ask(&format!(
        "CREATE TABLE own (id int PRIMARY KEY, n int) WITH (fillfactor = 10);
         INSERT INTO own SELECT id, 0 FROM generate_series(0, {CLIENTS}) AS id;
         ALTER TABLE own OWNER TO {name};
         ALTER ROLE {name} SET default_transaction_isolation = 'repeatable read'"
    ));
    let (stage, mut clients) = crowded(stage);
    let mut times = BTreeSet::new();
    for round in 1..=ROUNDS {
        {
            let _stopped = Stopped::process(&stage.pgweir.pid().to_string());
            for (id, client) in clients.iter_mut().enumerate() {
                let read = format!("SELECT n, extract(epoch FROM now()) FROM own WHERE id = {id}");
                let write = format!("UPDATE own SET n = {round} WHERE id = {id}");
                client.send(&[query(&read), query(&write), query(&read)].concat()).unwrap();
            }
        }
        for (id, client) in clients.iter_mut().enumerate() {
            for expected in [Some(round - 1), None, Some(round)] {
                let reply = client.read_until_ready().unwrap();
                let row = reply.iter().find(|message| message.tag == b'D').map(Message::values);
                let text = |at: usize| {
                    let value = row.as_ref().and_then(|row| row[at].as_deref());
                    value.map(|value| String::from_utf8_lossy(value).into_owned())
                };
                let expected = expected.map(|n| n.to_string());
                assert_eq!(text(0), expected, "{id} in {round}: {reply:?}");
                times.extend(text(1));
            }
        }
    }
    let reads = 2 * CLIENTS * ROUNDS;
    assert!(times.len() < reads / 20 * 19, "{} of {reads} transactions", times.len());
}

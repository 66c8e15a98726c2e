//! Reads of many clients that are one transaction on the server, and nobody sees it.

use std::collections::BTreeSet;

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{Message, WireClient};

use crate::course::LOST_TWICE;
use crate::stage::Stage;
use crate::stopped::Stopped;

/// Enough of them stand on one server.
const CLIENTS: usize = 48;
const ROUNDS: usize = 40;

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
        0 => query(&format!("SELECT {value} AS a, extract(epoch FROM now())")),
        1 => [
            parse("", "SELECT $1::int, extract(epoch FROM now())", &[]),
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

/// A stage on which `CLIENTS` share one server.
fn stage(name: &str) -> (Stage, Vec<WireClient>) {
    let stage = Stage::with(name, 4, |config| config.general("pipelining", "\"1x64\""));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| stage.client()).collect();
    for client in &mut clients {
        let text = "SELECT $1::int, extract(epoch FROM now()) AS s";
        client.send(&[parse("s", text, &[]), sync()].concat()).unwrap();
        client.read_until_ready().unwrap();
    }
    (stage, clients)
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
            let reply = client.read_until_ready().unwrap();
            if reply[0].tag != b'E' || reply[0].sqlstate() != LOST_TWICE {
                judge(&reply, id, round);
            }
        }
    }
}

//! Many clients with long pipelines on few servers: every answer is the right client's, and in
//! its place.

use std::thread;

use pgweir_testkit::frames::{bind, execute, flush, parse, query, sync};
use pgweir_testkit::{Message, WireClient};

use crate::stage::Stage;

const CLIENTS: usize = 8;
const ROUNDS: usize = 40;

/// What a unit must bring up to its ReadyForQuery, beside a reply's other messages.
struct Unit {
    frames: Vec<u8>,
    /// Values of rows and SQLSTATEs of errors, in order, and the status at the end.
    expected: String,
}

/// A unit whose rows carry `tag`, of the kind that `dice` says.
fn unit(dice: u32, tag: &str) -> Unit {
    let row = format!("SELECT '{tag}'");
    let run = |sql: &str| [parse("", sql, &[]), bind("", "", &[]), execute("", 0)].concat();
    let (frames, expected) = match dice % 9 {
        0 | 1 => (query(&row), format!("{tag} I")),
        2 => ([run(&row), sync()].concat(), format!("{tag} I")),
        3 => (query(&format!("{row}; SELECT 1/0; {row}")), format!("{tag} 22012 I")),
        4 => ([run(&row), run("SELECT nothing"), run(&row), sync()].concat(), {
            format!("{tag} 42703 I")
        }),
        5 => ([run(&row), flush(), run(&row), flush(), sync()].concat(), format!("{tag} {tag} I")),
        6 => (query(&format!("BEGIN; {row}; COMMIT; {row}")), format!("{tag} {tag} I")),
        7 => (sync(), "I".to_owned()),
        _ => {
            let long = format!("SELECT n FROM (SELECT '{tag}') t (n), generate_series(1, 300)");
            (query(&long), format!("{} I", vec![tag; 300].join(" ")))
        }
    };
    Unit { frames, expected }
}

/// Two units of a transaction.
fn transaction(tag: &str) -> [Unit; 2] {
    let begin = Unit { frames: query("BEGIN"), expected: "T".to_owned() };
    let end = format!("SELECT '{tag}'; ROLLBACK");
    [begin, Unit { frames: query(&end), expected: format!("{tag} I") }]
}

fn outcome(reply: &[Message]) -> String {
    let words = reply.iter().filter_map(|message| match message.tag {
        b'D' => String::from_utf8(message.values().remove(0)?).ok(),
        b'E' => Some(message.sqlstate()),
        b'Z' => Some(char::from(message.body[0]).to_string()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn converse(client: &mut WireClient, number: usize) {
    // Each client has a sequence of its own, the same in every run.
    let mut dice = number as u32;
    let mut roll = move || {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        dice >> 16
    };
    for round in 0..ROUNDS {
        let mut units = Vec::new();
        for place in 0..roll() % 20 {
            let tag = format!("{number}.{round}.{place}");
            match roll() % 8 {
                0 => units.extend(transaction(&tag)),
                _ => units.push(unit(roll(), &tag)),
            }
        }
        let frames: Vec<_> = units.iter().map(|unit| &unit.frames[..]).collect();
        let frames = frames.concat();
        match roll() % 3 {
            0 => client.send_split(&frames, 1 + (roll() % 500) as usize).unwrap(),
            _ => client.send(&frames).unwrap(),
        }
        for unit in &units {
            assert_eq!(outcome(&client.read_until_ready().unwrap()), unit.expected);
        }
    }
}

#[test]
fn pipelines_of_many_clients() {
    for servers in [1, 3] {
        let stage = Stage::new(&format!("mixing_{servers}"), servers);
        let mut clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                // Some share their settings with others, some do not.
                let name = format!("client {}", number % 3);
                stage.client_as(&stage.login().parameter("application_name", &name))
            })
            .collect();
        thread::scope(|scope| {
            for (number, client) in clients.iter_mut().enumerate() {
                scope.spawn(move || converse(client, number));
            }
        });
        assert!(stage.backends("true") <= servers as usize);
        assert_eq!(stage.backends("state <> 'idle'"), 0);
    }
}

//! What `currval` and `lastval` say to clients that share servers: what is a client's own, and the
//! last of it, or that there is nothing.

use std::thread;

use pgweir_testkit::frames::{bind, execute, extended, parse, query, sync};
use pgweir_testkit::{Message, PoolerConfig, WireClient};

use crate::stage::{self, CLUSTER, Stage};

const CLIENTS: usize = 6;
const ROUNDS: usize = 150;

const SCHEMA: &str = "
    CREATE SEQUENCE plain;
    CREATE TABLE parent (id serial, who text);
    CREATE TABLE child (id int GENERATED ALWAYS AS IDENTITY, parent int DEFAULT currval('plain'));
    CREATE FUNCTION adds(text) RETURNS int LANGUAGE sql
        AS 'INSERT INTO parent (who) VALUES ($1) RETURNING id';
    CREATE FUNCTION last() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN lastval(); END';
    CREATE VIEW latest AS SELECT currval('parent_id_seq') AS id;";

/// What a client has got last: of `plain`, of the serial column, of whichever of all.
#[derive(Clone, Copy, Default)]
struct Own {
    plain: Option<i64>,
    serial: Option<i64>,
    any: Option<i64>,
}

/// What a statement has come to.
enum Outcome {
    Value(i64),
    Error(String),
}

impl Own {
    /// A statement that advances a sequence, and what it is the number of.
    fn advance(&mut self, dice: u32, client: &mut WireClient, who: &str) {
        let (text, is_plain) = match dice % 6 {
            0 => ("SELECT nextval('plain')".to_owned(), true),
            1 => (format!("INSERT INTO parent (who) VALUES ('{who}') RETURNING id"), false),
            2 => (format!("SELECT adds('{who}')"), false),
            3 => (format!("SELECT adds(repeat('{who}', 10000))"), false),
            4 => (
                "DO $$ BEGIN PERFORM nextval('plain'); END $$; SELECT currval('plain')".to_owned(),
                true,
            ),
            _ => ("SELECT 1; SELECT nextval('plain')".to_owned(), true),
        };
        let is_string = text.contains(';');
        let frames = if is_string || dice & 64 == 0 { query(&text) } else { extended(&text, &[]) };
        let Some(Outcome::Value(value)) = outcome(client, &frames) else { panic!("{text}") };
        let last = if is_plain { &mut self.plain } else { &mut self.serial };
        (*last, self.any) = (Some(value), Some(value));
    }

    /// A statement that asks, and what it would be told directly.
    fn ask(&self, dice: u32) -> (&'static str, Option<i64>) {
        match dice % 6 {
            0 => ("SELECT currval('plain')", self.plain),
            1 => ("SELECT lastval()", self.any),
            2 => ("SELECT last()", self.any),
            3 => ("SELECT id FROM latest", self.serial),
            4 => ("SELECT currval(pg_get_serial_sequence('parent', 'id'))", self.serial),
            _ => ("SELECT CURRVAL('pla' || 'in'::text)", self.plain),
        }
    }
}

/// The last value in a reply, or its error.
fn outcome(client: &mut WireClient, frames: &[u8]) -> Option<Outcome> {
    client.send(frames).unwrap();
    let reply = client.read_until_ready().unwrap();
    let value = |message: &Message| {
        let value = message.values().remove(0)?;
        String::from_utf8(value).ok()?.parse().ok()
    };
    reply.iter().rev().find_map(|message| match message.tag {
        b'D' => value(message).map(Outcome::Value),
        b'E' => Some(Outcome::Error(message.sqlstate())),
        _ => None,
    })
}

/// The frames of a statement that was prepared as `name`, if it was; else of the text.
fn frames(dice: u32, text: &str, name: &str) -> Vec<u8> {
    match dice % 3 {
        0 => query(text),
        1 => extended(text, &[]),
        _ => [bind("", name, &[]), execute("", 0), sync()].concat(),
    }
}

/// Says how often the client was told a value outside of a transaction.
fn converse(client: &mut WireClient, number: usize) -> usize {
    // Each client has a random sequence of its own, the same in every run.
    let mut dice = number as u32;
    let mut roll = move || {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        dice >> 16
    };
    let mut own = Own::default();
    let prepared = (0..6).map(|at| parse(&format!("ask{at}"), own.ask(at).0, &[]));
    let prepared = [prepared.collect::<Vec<_>>().concat(), sync()].concat();
    assert!(outcome(client, &prepared).is_none());
    let who = format!("client {number}");
    let mut told = 0;
    for round in 0..ROUNDS {
        if roll() % 4 == 0 {
            // Within a transaction it is as directly, once there is something.
            client.query("BEGIN");
            own.advance(roll(), client, &who);
            own.advance(roll(), client, &who);
            let (text, expected) = ("SELECT lastval()", own.any);
            match outcome(client, &frames(roll() % 2, text, "")) {
                Some(Outcome::Value(value)) => assert_eq!(Some(value), expected, "{round} {text}"),
                // The first who asks in the pool.
                Some(Outcome::Error(code)) => assert_eq!((code.as_str(), told), ("55000", 0)),
                None => panic!("{text}"),
            }
            client.query(if roll() % 2 == 0 { "COMMIT" } else { "ROLLBACK" });
        } else if roll() % 2 == 0 {
            own.advance(roll(), client, &who);
        }
        let at = roll() % 6;
        let (text, expected) = own.ask(at);
        match outcome(client, &frames(roll(), text, &format!("ask{at}"))) {
            Some(Outcome::Value(value)) => {
                assert_eq!(Some(value), expected, "client {number}, round {round}: {text}");
                told += 1;
            }
            Some(Outcome::Error(code)) => assert_eq!(code, "55000", "{text}"),
            None => panic!("{text}"),
        }
    }
    told
}

/// Asks all clients, on so many servers, and says how often they were told something.
fn told(name: &str, servers: u32, choice: &str) -> usize {
    let stage = Stage::with(name, servers, |config: PoolerConfig| {
        config.pool("server_choice", &format!("\"{choice}\""))
    });
    stage::superuser(&CLUSTER, name).query(&format!("SET ROLE {name}; {SCHEMA}"));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| stage.client()).collect();
    // Who asks first finds nothing, and from then on all is looked after.
    let error = clients[0].try_query("SELECT lastval()").unwrap_err();
    assert_eq!(error.sqlstate(), "55000");
    thread::scope(|scope| {
        let numbered = clients.iter_mut().enumerate();
        let all: Vec<_> = numbered
            .map(|(number, client)| scope.spawn(move || converse(client, number)))
            .collect();
        all.into_iter().map(|client| client.join().unwrap()).sum()
    })
}

#[test]
fn nobody_is_told_what_another_has_got() {
    for servers in [1, 3] {
        told(&format!("sequences_{servers}"), servers, "recent");
    }
}

#[test]
fn nor_on_another_server_each_time() {
    told("sequences_never", 4, "never_same");
}

/// Where there is a server for each, a client finds the one on which it has advanced a sequence.
#[test]
fn who_is_alone_is_told_what_it_has_got() {
    let stage = Stage::new("sequences_alone", 2);
    stage::superuser(&CLUSTER, "sequences_alone").query("CREATE SEQUENCE public.plain");
    let mut watcher = stage::superuser(&CLUSTER, "sequences_alone");
    watcher.query("GRANT ALL ON SEQUENCE plain TO public");
    let (mut one, mut two) = (stage.client(), stage.client());
    two.try_query("SELECT lastval()").unwrap_err();
    let got = one.query("SELECT nextval('plain')");
    two.query("BEGIN");
    assert_eq!(one.query("SELECT count(*) FROM pg_class WHERE false"), ["0"]);
    two.query("COMMIT");
    assert_eq!(one.query("SELECT currval('plain')"), got);
    // It is not lost behind a transaction that is rolled back, either.
    let got = one.query("BEGIN; SELECT nextval('plain'); ROLLBACK");
    assert_eq!(one.query("SELECT lastval()"), got);
}

//! A shared server is cut off behind each byte of what it answers two clients: each of them hears
//! its whole reply once, or that nobody knows, and never a part.

use pgweir_engine::Mark;

use crate::messages::{
    bind, bind_complete, columns, done, error, execute, fatal, notice, one_row, parse,
    parse_complete, query, ready, row, sync,
};
use crate::peer::Peer;
use crate::pipelining::{braked, shared, updated};
use crate::stage::{Stage, took};

/// What a client sends, and what its server answers.
struct Unit {
    sent: Vec<u8>,
    /// In the words of the server that it comes to.
    seen: &'static str,
    reply: Vec<Vec<u8>>,
    /// In the words of the client.
    heard: &'static str,
    reads: bool,
}

impl Unit {
    /// Whether its server has said that nothing was done.
    fn is_undone(&self, said: &[u8]) -> bool {
        said.starts_with(&error("23505"))
    }
}

fn read() -> Unit {
    Unit {
        sent: query("SELECT 0"),
        seen: "Q(SELECT 0)",
        reply: vec![columns(), row(b"a"), row(b"b"), done(), ready()],
        heard: "T D(a) D(b) C Z",
        reads: true,
    }
}

fn read_batch() -> Unit {
    Unit {
        sent: [parse("SELECT 0"), bind(), execute(), sync()].concat(),
        seen: "P(SELECT 0) B E S",
        reply: vec![parse_complete(), bind_complete(), row(b"c"), done(), ready()],
        heard: "1 2 D(c) C Z",
        reads: true,
    }
}

fn write() -> Unit {
    Unit {
        sent: query("UPDATE t SET a = 1"),
        seen: "Q(UPDATE t SET a = 1)",
        reply: vec![notice(), done(), ready()],
        heard: "N C Z",
        reads: false,
    }
}

fn write_batch() -> Unit {
    Unit {
        sent: [parse("UPDATE t SET a = 2"), bind(), execute(), sync()].concat(),
        seen: "P(UPDATE t SET a = 2) B E S",
        reply: vec![parse_complete(), bind_complete(), done(), ready()],
        heard: "1 2 C Z",
        reads: false,
    }
}

fn write_that_fails() -> Unit {
    Unit { reply: vec![error("23505"), ready()], heard: "E(23505) Z", ..write() }
}

/// How a server is lost that has said this.
struct Way {
    cut: fn(&Peer, &[u8]),
    /// It has said why, so all that it has said has come, and what stands behind another one was
    /// not begun.
    in_order: bool,
    /// Its last words stand between two messages.
    between_messages: bool,
}

fn says_each_byte(server: &Peer, said: &[u8]) {
    said.iter().for_each(|byte| server.sends(&[*byte]));
}

const WAYS: [Way; 5] = [
    Way {
        cut: |server, said| {
            says_each_byte(server, said);
            server.breaks();
        },
        in_order: false,
        between_messages: false,
    },
    Way {
        cut: |server, said| {
            server.sends(said);
            server.breaks();
        },
        in_order: false,
        between_messages: false,
    },
    Way {
        cut: |server, said| {
            says_each_byte(server, said);
            server.ends();
        },
        in_order: false,
        between_messages: false,
    },
    Way {
        cut: |server, said| server.says_and_ends([said]),
        in_order: false,
        between_messages: false,
    },
    Way {
        cut: |server, said| {
            server.sends(said);
            server.says_and_ends([fatal("57P01")]);
        },
        in_order: true,
        between_messages: true,
    },
];

/// Two clients whose units are on one server, which is lost when it has said this.
fn cut(units: &[Unit; 2], way: &Way, said: &[u8]) {
    let (stage, server, clients) = braked(&shared(1), 2);
    updated(&server, &clients[0]);
    for (client, unit) in clients.iter().zip(units) {
        client.sends(&unit.sent);
    }
    assert_eq!(server.heard(), format!("{} {}", units[0].seen, units[1].seen));
    (way.cut)(&server, said);
    let mut next = None;
    let (mut start, mut is_head) = (0, true);
    for (client, unit) in clients.iter().zip(units) {
        let end = start + unit.reply.concat().len();
        if said.len() >= end {
            assert_eq!(client.heard(), unit.heard);
        } else if unit.reads
            || way.in_order && !is_head
            || unit.is_undone(&said[start.min(said.len())..])
        {
            let is_known = unit.reads || way.in_order && !is_head;
            assert_eq!(took(Mark::SharedLostUndone), !is_known);
            let next = next.get_or_insert_with(|| stage.server());
            assert_eq!(client.heard(), "");
            assert_eq!(next.heard(), unit.seen);
            next.says(&unit.reply);
            assert_eq!(client.heard(), unit.heard);
        } else {
            assert_eq!(client.heard(), "E(08007) Z");
        }
        is_head = said.len() >= end;
        start = end;
    }
    if next.is_none() {
        assert_eq!(stage.attempts(), 0, "there is nothing to be run again");
    }
    goes_on(&stage, next, &clients);
}

/// Nothing is left of it: what each client hears next is the answer to what it asks next.
fn goes_on(stage: &Stage, next: Option<Peer>, clients: &[Peer]) {
    let mut next = next;
    for client in clients {
        client.says([query("SELECT 1")]);
        let server = next.get_or_insert_with(|| stage.server());
        let mut heard = server.heard();
        while heard != "Q(SELECT 1)" {
            assert!(heard.contains("statement_timeout"), "{heard}");
            server.says([one_row("")]);
            heard = server.heard();
        }
        // In pieces, so that it is kept where the one before was.
        says_each_byte(server, &one_row("1"));
        assert_eq!(client.heard(), "T D(1) C Z");
    }
    stage.check();
}

/// A read does not stand behind a write.
#[test]
fn a_reply_is_whole_or_none_wherever_its_server_is_cut_off() {
    for units in [
        [read(), read_batch()],
        [read_batch(), write()],
        [write(), write_batch()],
        [write_batch(), write_that_fails()],
        [write_that_fails(), write()],
    ] {
        let replies = units.each_ref().map(|unit| unit.reply.clone()).concat();
        let said = replies.concat();
        let ends = replies.iter().scan(0, |end, message| {
            *end += message.len();
            Some(*end)
        });
        let between: Vec<usize> = std::iter::once(0).chain(ends).collect();
        for way in WAYS {
            let after: Vec<usize> = match way.between_messages {
                true => between.clone(),
                false => (0..=said.len()).collect(),
            };
            for bytes in after {
                cut(&units, &way, &said[..bytes]);
            }
        }
    }
}

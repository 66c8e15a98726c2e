//! An engine, clients that behave, and servers that say anything.
//!
//! What holds: the engine's own invariants after every step; the same bytes to everybody however
//! bytes arrive, but to a client that hurried on behind what was refused; clients are sent whole
//! messages, each of a kind that a server may send to somebody who has logged in, none of them
//! unasked, and no more replies than they have asked for.

use std::time::Duration;

use pgweir_wire::backend::Tag;
use pgweir_wire::frontend::{
    COPY_DONE, FLUSH, SYNC, TERMINATE, Target, write_bind, write_close, write_copy_data,
    write_describe, write_execute, write_parse, write_query,
};

use crate::cut::Cut;
use crate::engine_client::{SCRIPT_MAX, startup};
use crate::postgres::{Login, Manners};
use crate::script::{self, Long, Op, Scene, Step};
use crate::transcript::Transcript;
use crate::world::{ClientLink, Fate, Outcome, Setting, World};

/// See the module.
pub(crate) fn run(script: &[u8]) {
    let script = &script[..script.len().min(SCRIPT_MAX)];
    let whole = play(script, Cut::Whole);
    for cut in [Cut::Bytes, Cut::random(script)] {
        let pieces = play(script, cut);
        if whole.is_comparable(&pieces) {
            assert_eq!(pieces, whole, "cutting the stream makes a difference: {cut:?}");
        }
    }
}

fn play(script: &[u8], cut: Cut) -> Outcome {
    let (scene, steps) = script::parse(script);
    let mut stage = Stage::new(scene, cut);
    for step in steps {
        match step {
            Step::Send(bytes) => stage.world.server_sends(bytes),
            Step::Do(op) => stage.perform(op),
        }
        stage.world.engine().check();
    }
    stage.world.refusing = false;
    stage.world.relieve();
    stage.world.settle();
    while stage.world.has_server() {
        stage.world.lose_server();
        stage.world.refusing = true;
        stage.world.settle();
    }
    let outcome = stage.world.outcome();
    stage.judge();
    outcome
}

/// A client, and how many units it has sent.
#[derive(Clone, Copy)]
struct Client {
    link: ClientLink,
    units: usize,
}

struct Stage {
    world: World,
    clients: [Client; 2],
    current: usize,
    scene: Scene,
    long: Long,
    congested: [bool; 3],
}

impl Stage {
    fn new(scene: Scene, cut: Cut) -> Self {
        let manners = if scene.choice(1, 4) == 3 { Manners::None } else { Manners::AtLogin };
        let mode = scene.choice(0, 3);
        let login = Login::Trust;
        let shared = scene.choice(6, 2) == 1;
        let setting = Setting { mode, shared, login, manners, cut, patient: true };
        let mut world = World::new(setting);
        let mut clients = [(); 2].map(|()| {
            let link = world.connect();
            world.send(link, &startup());
            world.settle();
            Client { link, units: 0 }
        });
        world.begin();
        let (long, congested) = (Long::new(scene), [false; 3]);
        let (bytes, units) = in_flight(4 * scene.choice(2, 4) + scene.choice(3, 4));
        world.send(clients[0].link, &bytes);
        clients[0].units += units;
        let mut stage = Self { world, clients, current: 1, scene, long, congested };
        stage.send(b"SELECT 2");
        stage.current = 0;
        stage.world.settle();
        stage
    }

    /// The current client sends a query.
    fn send(&mut self, text: &[u8]) {
        let mut out = Vec::new();
        write_query(&mut out, text);
        let client = &mut self.clients[self.current];
        client.units += 1;
        self.world.send(client.link, &out);
    }

    fn perform(&mut self, op: Op) {
        let link = self.clients[self.current].link;
        match op {
            Op::Settle | Op::Wake | Op::Cancel => self.world.settle(),
            Op::NextClient => self.current = (self.current + 1) % self.clients.len(),
            Op::End => self.world.end(link),
            Op::Break => self.world.break_off(link),
            Op::BystanderQuery => self.send(b"SELECT 1"),
            Op::BystanderBatch | Op::BystanderSlip => {
                let (bytes, units) = in_flight(9);
                self.clients[self.current].units += units;
                self.world.send(link, &bytes);
            }
            Op::BystanderBlock => self.send(b"BEGIN"),
            Op::Long => {
                let part = match self.scene.choice(4, 4) {
                    0 => self.long.part(b'D', b"\0\x01\0\0\x4e\x15", b""),
                    1 => self.long.part(b'E', b"SERROR\0C42601\0Mno\0D", b"\0\0"),
                    2 => self.long.part(b'E', b"SFATAL\0C57P01\0Mno\0D", b"\0\0"),
                    _ => self.long.part(b'N', b"SNOTICE\0C00000\0Mno\0D", b"\0\0"),
                };
                self.world.server_sends(&part);
            }
            Op::Refuse => self.world.refusing = !self.world.refusing,
            Op::LoseServer => self.world.lose_server(),
            Op::CongestClient => {
                let congested = &mut self.congested[self.current];
                *congested = !*congested;
                self.world.congest_client(link, *congested);
            }
            Op::CongestServer => {
                self.congested[2] = !self.congested[2];
                self.world.congest_server(self.congested[2]);
            }
            Op::Tick => self.world.pass(Duration::from_millis(100)),
            Op::LongTick => self.world.pass(Duration::from_secs(10)),
            Op::Drain => self.world.drain(),
        }
    }

    fn judge(&self) {
        for client in self.clients {
            let (written, fate) = self.world.client(client.link);
            let transcript = Transcript::read(written);
            assert!(transcript.rest.is_empty() || fate != Fate::Open, "half a message");
            assert!(transcript.session.is_empty() || transcript.is_logged_in());
            let mut answered = 0;
            for (tag, _) in transcript.session {
                match tag {
                    Tag::ReadyForQuery => answered += 1,
                    // These may come of a server's own accord.
                    Tag::ErrorResponse
                    | Tag::NoticeResponse
                    | Tag::NotificationResponse
                    | Tag::ParameterStatus => {}
                    _ => assert!(answered < client.units, "{tag:?} was not asked for"),
                }
            }
            assert!(answered <= client.units, "{answered} replies to {} units", client.units);
        }
    }
}

/// What the first client has sent when the servers begin to talk, and how many units it is.
fn in_flight(which: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    let batch = |out: &mut Vec<u8>, name: &[u8], rows: u32| {
        write_parse(out, name, b"SELECT 1", &[]);
        write_bind(out, b"", name, &[Some(b"1")]);
        write_describe(out, Target::Portal(b""));
        write_execute(out, b"", rows);
    };
    let units = match which {
        0 => {
            write_query(&mut out, b"SELECT 1");
            1
        }
        1 => {
            write_query(&mut out, b"SELECT 1; SELECT 2");
            write_query(&mut out, b"SELECT 3");
            2
        }
        2 => {
            batch(&mut out, b"", 0);
            out.extend_from_slice(&SYNC);
            1
        }
        3 => {
            batch(&mut out, b"", 0);
            out.extend_from_slice(&FLUSH);
            1
        }
        4 => {
            write_query(&mut out, b"COPY t FROM STDIN");
            write_copy_data(&mut out, b"1\n");
            out.extend_from_slice(&COPY_DONE);
            1
        }
        5 => {
            write_query(&mut out, b"COPY t FROM STDIN");
            write_copy_data(&mut out, b"1\n");
            1
        }
        6 => {
            write_parse(&mut out, b"s", b"SELECT 1", &[23]);
            write_describe(&mut out, Target::Statement(b"s"));
            out.extend_from_slice(&SYNC);
            1
        }
        7 => {
            out.extend_from_slice(b"F\0\0\0\x0e\0\0\0\x01\0\0\0\0\0\0");
            1
        }
        8 => {
            write_query(&mut out, b"BEGIN");
            1
        }
        9 => {
            batch(&mut out, b"", 0);
            out.extend_from_slice(&SYNC);
            batch(&mut out, b"", 0);
            out.extend_from_slice(&SYNC);
            2
        }
        10 => {
            write_parse(&mut out, b"", b"SELECT 1", &[]);
            out.extend_from_slice(&SYNC);
            write_bind(&mut out, b"", b"", &[]);
            write_execute(&mut out, b"", 0);
            out.extend_from_slice(&SYNC);
            2
        }
        11 => {
            write_close(&mut out, Target::Statement(b""));
            write_close(&mut out, Target::Portal(b"p"));
            out.extend_from_slice(&SYNC);
            1
        }
        12 => {
            batch(&mut out, b"s", 1);
            write_execute(&mut out, b"", 1);
            out.extend_from_slice(&SYNC);
            1
        }
        13 => {
            write_query(&mut out, b"SELECT 1");
            out.extend_from_slice(&TERMINATE);
            1
        }
        14 => {
            batch(&mut out, b"", 0);
            write_query(&mut out, b"SELECT 1");
            out.extend_from_slice(&SYNC);
            2
        }
        _ => {
            out.extend_from_slice(b"Q\0\0\0\x0dSELECT 1\0Q\0\0\0\x0dSEL");
            2
        }
    };
    (out, units)
}

//! An engine, servers that behave, a bystander, and up to three clients that send anything.
//!
//! What holds: the engine's own invariants after every step; the same bytes to everybody however
//! the clients' bytes arrive; no server is ever contained, since none gives a reason; the
//! bystander gets its own rows and finds every session as new; nobody else gets the bystander's;
//! and when all are gone nothing of them is left, and the bystander is served.

mod bystander;

use std::time::Duration;

use pgweir_engine::{Event, ServerActivity};
use pgweir_wire::backend::{Tag, parse_backend_key_data};
use pgweir_wire::{ProtocolVersion, Startup};

use crate::cut::Cut;
use crate::postgres::{BYSTANDER, Login, Manners};
use crate::script::{self, Long, Op, Scene, Step};
use crate::transcript::Transcript;
use crate::world::{ClientLink, Fate, Outcome, Setting, World};
use bystander::Bystander;

/// What is longer says nothing that a shorter one does not, and takes its time.
pub(crate) const SCRIPT_MAX: usize = 4_096;

/// Long enough for every timeout of the world's configuration.
const LONG: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) fn run(script: &[u8]) {
    let script = &script[..script.len().min(SCRIPT_MAX)];
    let whole = play(script, Cut::Whole);
    for cut in [Cut::Bytes, Cut::random(script)] {
        let pieces = play(script, cut);
        if whole.is_comparable(&pieces) && is_patient(script::parse(script).0) {
            assert_eq!(pieces, whole, "cutting the stream makes a difference: {cut:?}");
        }
    }
}

/// Whether clients wait for the answer to a request for encryption. If one does not, it matters
/// what arrives together.
fn is_patient(scene: Scene) -> bool {
    scene.choice(3, 4) < 3
}

fn play(script: &[u8], cut: Cut) -> Outcome {
    let (scene, steps) = script::parse(script);
    let mut stage = Stage::new(scene, cut);
    for step in steps {
        match step {
            Step::Send(bytes) => {
                let client = stage.client();
                stage.world.send(client, bytes);
            }
            Step::Do(op) => stage.perform(op),
        }
        stage.world.engine().check();
    }
    stage.heal();
    let outcome = stage.world.outcome();
    stage.judge(script);
    outcome
}

/// A world with its cast.
struct Stage {
    world: World,
    bystander: Bystander,
    clients: [Option<ClientLink>; 3],
    current: usize,
    /// Every client that ever was, but for the bystander.
    all: Vec<ClientLink>,
    /// Clients begin with a login that is right.
    logged_in: bool,
    scene: Scene,
    long: Long,
    /// By client and for the first server.
    congested: [bool; 4],
    draining: bool,
}

impl Stage {
    fn new(scene: Scene, cut: Cut) -> Self {
        let mut world = World::new(Setting {
            mode: scene.choice(0, 3),
            shared: scene.choice(6, 2) == 1,
            login: Login::ALL[scene.choice(1, 4)],
            manners: Manners::Good,
            cut,
            patient: is_patient(scene),
        });
        let bystander = Bystander::enter(&mut world);
        world.begin();
        Self {
            world,
            bystander,
            clients: [None; 3],
            current: 0,
            all: Vec::new(),
            logged_in: scene.choice(2, 2) == 0,
            scene,
            long: Long::new(scene),
            congested: [false; 4],
            draining: false,
        }
    }

    /// The current client, who connects if it is not there.
    fn client(&mut self) -> ClientLink {
        if let Some(client) = self.clients[self.current] {
            return client;
        }
        let client = self.world.connect();
        self.clients[self.current] = Some(client);
        self.congested[self.current] = false;
        self.all.push(client);
        if self.logged_in {
            self.world.send(client, &startup());
        }
        client
    }

    fn perform(&mut self, op: Op) {
        match op {
            Op::Settle => self.world.settle(),
            Op::NextClient => {
                self.current = (self.current + 1) % self.clients.len();
                if let Some(client) = self.clients[self.current]
                    && self.world.client(client).1 != Fate::Open
                {
                    self.clients[self.current] = None;
                }
            }
            Op::End => {
                if let Some(client) = self.clients[self.current].take() {
                    self.world.end(client);
                }
            }
            Op::Break => {
                if let Some(client) = self.clients[self.current].take() {
                    self.world.break_off(client);
                }
            }
            Op::BystanderQuery => self.bystander.query(&mut self.world),
            Op::BystanderBatch => self.bystander.batch(&mut self.world),
            Op::BystanderBlock => self.bystander.block(&mut self.world),
            Op::BystanderSlip => self.bystander.slip(&mut self.world),
            Op::Cancel => self.cancel(),
            Op::Long => {
                let part = match self.scene.choice(4, 3) {
                    0 => self.long.part(b'Q', b"SELECT ", b"\0"),
                    1 => self.long.part(b'P', b"\0SELECT ", b"\0\0\0"),
                    _ => self.long.part(b'd', b"", b"\n"),
                };
                let client = self.client();
                self.world.send(client, &part);
            }
            Op::Wake => self.world.wake(),
            Op::Refuse => self.world.refusing = !self.world.refusing,
            Op::LoseServer => self.world.lose_server(),
            Op::CongestClient => {
                let client = self.client();
                let congested = &mut self.congested[self.current];
                *congested = !*congested;
                self.world.congest_client(client, *congested);
            }
            Op::CongestServer => {
                self.congested[3] = !self.congested[3];
                self.world.congest_server(self.congested[3]);
            }
            Op::Tick => self.world.pass(Duration::from_millis(100)),
            Op::LongTick => self.world.pass(LONG),
            Op::Drain => {
                self.draining = true;
                self.world.drain();
            }
        }
    }

    /// Asks with the current client's key to cancel what it does.
    fn cancel(&mut self) {
        let client = self.client();
        let (written, _) = self.world.client(client);
        let login = Transcript::read(written).login;
        let key = login.iter().find(|(tag, _)| *tag == Tag::BackendKeyData);
        if let Some((_, body)) = key {
            let mut request = Vec::new();
            let key = parse_backend_key_data(body).expect("clients are sent keys");
            key.write_request(&mut request);
            let requester = self.world.connect();
            self.all.push(requester);
            self.world.send(requester, &request);
        }
    }

    /// All faults end, all clients but the bystander leave, and time passes.
    fn heal(&mut self) {
        self.world.refusing = false;
        self.world.relieve();
        for client in self.clients.into_iter().flatten() {
            self.world.end(client);
        }
        for _ in 0..8 {
            self.world.settle();
            self.world.wake();
            self.world.settle();
            self.world.pass(LONG);
        }
        self.world.settle();
    }

    fn judge(mut self, script: &[u8]) {
        let own_words = script.windows(BYSTANDER.len()).any(|word| word == BYSTANDER);
        for client in &self.all {
            let (written, fate) = self.world.client(*client);
            let transcript = Transcript::read(written);
            assert_ne!(fate, Fate::Open, "{client:?} is still there");
            assert!(transcript.rest.is_empty() || fate == Fate::Aborted, "half a message");
            let shown = written.windows(BYSTANDER.len()).any(|word| word == BYSTANDER);
            assert!(own_words || !shown, "{client:?} was shown a bystander's statement");
        }
        for event in self.world.events() {
            assert!(!matches!(event, Event::Contained { .. }), "{event:?}");
        }
        if !self.draining {
            self.bystander.must_be_served(&mut self.world);
        }
        self.bystander.must_have_got_its_own(&self.world);
        self.bystander.leave(&mut self.world);
        self.must_be_at_rest();
    }

    fn must_be_at_rest(&self) {
        let snapshot = self.world.engine().snapshot(self.world.now());
        for server in &snapshot.servers {
            assert_eq!(server.state, ServerActivity::Idle, "a server is left over: {server:?}");
        }
        let open = self.world.open_servers();
        assert_eq!(open, snapshot.servers.len(), "connections to servers are left over");
        assert_eq!(self.world.engine().clients(), 0, "clients are left over");
    }
}

/// The startup packet of a user who is trusted.
pub(crate) fn startup() -> Vec<u8> {
    let mut out = Vec::new();
    let parameters: [(&[u8], &[u8]); 2] = [(b"user", b"alice"), (b"database", b"app")];
    Startup::write(&mut out, ProtocolVersion::V3_0, parameters);
    out
}

#[cfg(test)]
mod tests;

//! A script with fake server processes, over the fake network.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::rc::Rc;

use pgweir_proxy::Transport;
use pgweir_wire::{CancelKey, ProtocolVersion, Startup, backend};

use super::stage::{Doing, Heard, Peer, Stage};
use crate::diet::Diet;
use crate::faults::Faults;
use crate::ledger::Ledger;
use crate::locks::Locks;
use crate::network::{Loss, Pipe, Stirs, Stream, WireId, connection};
use crate::postgres::{Backend, Health, Limits, Outcome, Phase, Wait};
use crate::random::Dice;
use crate::room::Room;
use crate::rules::Rules;
use crate::session::{Home, Message};
use crate::topology::Topology;
use crate::trace::Trace;
use crate::world::Site;

/// Clients that a script may have: it uses the number of one in all its tags.
const CLIENTS: u32 = 30;

/// Bytes that each direction of a connection holds.
const CAPACITY: usize = 64 * 1024;

pub(super) struct Fake {
    site: Site,
    stirs: Stirs,
    peers: Vec<Client>,
    dice: Dice,
    version: u32,
}

/// A client, and the process that serves it.
struct Client {
    stream: Option<Stream>,
    pipes: [Rc<RefCell<Pipe>>; 2],
    process: Backend,
    /// When that wants to go on.
    wake_at: Option<u64>,
    /// What it has read and not looked at.
    unread: Vec<u8>,
    key: Option<CancelKey>,
}

/// Plays a script, in which nothing goes wrong but what it does itself.
pub(super) fn with_fake<T>(play: impl FnOnce(&mut dyn Stage) -> T) -> T {
    let mut fake = Fake::new();
    let seen = play(&mut fake);
    assert_eq!(fake.site.ledger.failure(), None);
    seen
}

impl Fake {
    fn new() -> Self {
        let mut dice = Dice::new(1);
        let mut configuration =
            Topology::draw(&mut dice, &Diet::default()).configuration(&mut dice);
        configuration.times.transaction = None;
        let mut ledger = Ledger::new();
        for client in 0..CLIENTS {
            let home = Home { database: "postgres".to_owned(), user: "postgres".to_owned() };
            ledger.enrol(BTreeMap::new(), home);
            // The numbers of a script are in any order.
            ledger.divide(client);
        }
        Self {
            site: Site {
                ledger,
                locks: Locks::default(),
                trace: Trace::new(false, false),
                faults: Faults::NONE,
                rules: Rules::new(1, configuration),
                crowd: Default::default(),
                draining: false,
                shut_down: false,
                paused_us: 0,
                customs: Vec::new(),
                diet: Diet::default(),
                roll: BTreeMap::new(),
                frozen_until: 0,
                trap: None,
            },
            stirs: Stirs::default(),
            peers: Vec::new(),
            dice,
            version: 0,
        }
    }

    /// A connection, on which these bytes are sent first.
    fn connect(&mut self, first: &[u8]) -> Peer {
        let number = self.peers.len();
        let (outer, inner, pipes) = connection(WireId(number), [CAPACITY; 2], &self.stirs);
        let mut process =
            Backend::new(0, number, 0, self.version, Room::DEFAULT, outer, self.dice.fork());
        // As PostgreSQL does since version 14, and as it is configured at first.
        process.reports_at_once = false;
        process.limits = Limits { statement: None, lock: None, deadlock: 1_000_000 };
        let (stream, wake_at) = (Some(inner), None);
        self.peers.push(Client { stream, pipes, process, wake_at, unread: Vec::new(), key: None });
        let peer = Peer(number);
        self.write(peer, first);
        peer
    }

    fn write(&mut self, peer: Peer, bytes: &[u8]) {
        let stream = self.peers[peer.0].stream.as_ref().expect("the script has not closed it");
        assert_eq!(stream.try_write(bytes).ok(), Some(bytes.len()), "there is room");
        self.settle();
    }

    /// Lets everything happen that takes no time.
    fn settle(&mut self) {
        loop {
            let mut stirred = !std::mem::take(&mut *self.stirs.borrow_mut()).is_empty();
            for pipe in self.peers.iter().flat_map(|client| &client.pipes) {
                let mut pipe = pipe.borrow_mut();
                let under_way = pipe.under_way();
                pipe.deliver(under_way, Loss::Nothing);
            }
            for index in 0..self.peers.len() {
                stirred |= self.step(index);
            }
            if !stirred && self.stirs.borrow().is_empty() {
                return;
            }
        }
    }

    /// A process does what it can. Says whether others may have to do with that.
    fn step(&mut self, index: usize) -> bool {
        let Outcome { wake_at, cancels, notifies, unlocks, .. } =
            self.peers[index].process.step(&mut self.site, Health::Up);
        self.peers[index].wake_at = wake_at;
        for other in &mut self.peers {
            cancels.iter().for_each(|key| other.process.cancel(key));
            notifies.iter().for_each(|announcement| other.process.notified(announcement));
        }
        cancels.is_some() || !notifies.is_empty() || unlocks
    }

    /// Lets time pass until the next thing happens. False if nothing does.
    fn pass_time(&mut self) -> bool {
        let now = self.site.trace.now;
        let times = self.peers.iter().filter_map(|client| client.wake_at);
        match times.filter(|at| *at > now).min() {
            Some(at) => self.site.trace.now = at,
            None => return false,
        }
        self.settle();
        true
    }

    /// What a client hears next, if that is there.
    fn hear(&mut self, peer: Peer) -> Option<Heard> {
        self.settle();
        let client = &mut self.peers[peer.0];
        let stream = client.stream.as_ref().expect("the script has not closed it");
        loop {
            if let Some((message, length)) = Message::parse(&client.unread).expect("it is one") {
                client.unread.drain(..length);
                return Some(Heard::Message(message.tag, message.body));
            }
            let mut buffer = [0; CAPACITY];
            match stream.try_read(&mut buffer) {
                Ok(0) => return Some(Heard::End { cut: !client.unread.is_empty() }),
                Ok(n) => client.unread.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => return Some(Heard::Reset),
            }
        }
    }

    fn is_doing(&self, peer: Peer, doing: Doing) -> bool {
        let Client { process, pipes: [_, outwards], .. } = &self.peers[peer.0];
        let Phase::Session { session, wait } = &process.phase else { return false };
        let heard = outwards.borrow().unread() == 0 && process.inbox.has_no_message();
        match doing {
            Doing::Reading(_) => heard && (!session.is_busy() || session.reads_copy_data()),
            Doing::Locked(tag) => {
                matches!(wait, Wait::Lock { .. }) && session.running() == Some(tag)
            }
            Doing::Writing => !process.sending.is_empty(),
            Doing::Gone => process.is_gone(),
        }
    }
}

impl Stage for Fake {
    fn login(&mut self, settings: &[(&str, &str)]) -> Peer {
        let identity = [("user", "postgres"), ("database", "postgres")];
        let parameters = identity.iter().chain(settings);
        let mut packet = Vec::new();
        let pairs = parameters.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Startup::write(&mut packet, ProtocolVersion::V3_0, pairs);
        let peer = self.connect(&packet);
        loop {
            match self.next(peer) {
                Heard::Message(b'K', body) => {
                    self.peers[peer.0].key = backend::parse_backend_key_data(&body).ok();
                }
                Heard::Message(b'Z', _) => return peer,
                Heard::Message(..) => {}
                end @ (Heard::End { .. } | Heard::Reset) => panic!("{end:?} at login"),
            }
        }
    }

    fn send(&mut self, peer: Peer, messages: &[u8]) {
        self.write(peer, messages);
    }

    fn half_close(&mut self, peer: Peer) {
        let stream = self.peers[peer.0].stream.as_ref();
        stream.expect("the script has not closed it").shutdown();
        self.settle();
    }

    fn close(&mut self, peer: Peer) {
        self.peers[peer.0].stream = None;
        self.settle();
    }

    fn reset(&mut self, peer: Peer) {
        let stream = self.peers[peer.0].stream.take().expect("the script has not closed it");
        stream.reset();
        self.settle();
    }

    fn cancel(&mut self, peer: Peer) {
        for client in 0..CLIENTS {
            self.site.ledger.cancel_asked(client);
        }
        let mut request = Vec::new();
        self.peers[peer.0].key.as_ref().expect("it has a key").write_request(&mut request);
        let canceller = self.connect(&request);
        while !self.peers[canceller.0].process.is_gone() {
            assert!(self.pass_time(), "the cancel is not acted on");
        }
    }

    fn terminate(&mut self, peer: Peer) {
        self.peers[peer.0].process.kill();
        self.settle();
    }

    fn kill(&mut self, peer: Peer) {
        self.peers[peer.0].process.end(&mut self.site);
        for client in self.peers.iter_mut().filter(|client| !client.process.is_gone()) {
            client.process.quit(&mut self.site);
        }
        self.settle();
    }

    fn reload(&mut self) {
        self.version += 1;
        let version = self.version;
        self.peers.iter_mut().for_each(|client| client.process.reload(version));
        self.settle();
    }

    fn until(&mut self, peer: Peer, doing: Doing) {
        self.settle();
        while !self.is_doing(peer, doing) {
            assert!(self.pass_time(), "{peer:?} will never be {doing:?}");
        }
    }

    fn next(&mut self, peer: Peer) -> Heard {
        loop {
            if let Some(heard) = self.hear(peer) {
                return heard;
            }
            // What it has read may have made room for more.
            let stirred = !self.stirs.borrow().is_empty();
            assert!(stirred || self.pass_time(), "{peer:?} hears nothing more");
        }
    }

    fn has_more(&mut self, peer: Peer) -> bool {
        self.settle();
        let client = &self.peers[peer.0];
        client.pipes[0].borrow().unread() > 0 || !client.unread.is_empty()
    }

    fn written(&mut self, client: u32) -> Vec<u32> {
        self.site.ledger.committed_by(client)
    }
}

use std::cell::RefCell;
use std::rc::Rc;

use pgweir_engine::{Address, Endpoint, Time};
use pgweir_proxy::Read;
use pgweir_wire::CancelKey;

use super::reserve::Waits;
use super::{Occasion, Who, World};
use crate::canceller::{Canceller, stranger};
use crate::client::{Client, Contact};
use crate::network::{Loss, Pipe, Stream, WireId, connection};
use crate::postgres::{Backend, Health};
use crate::process::Place;
use crate::topology::PORT;

/// A connection, as the scheduler sees it.
pub(super) struct Wire {
    pub(super) pipes: [Rc<RefCell<Pipe>>; 2],
    delivering: [bool; 2],
    pub(super) outside: Outside,
    /// When the outside is to be stepped next.
    pub(super) wake_at: Option<u64>,
    /// Where pgweir has it; `None` while it is on its way from one worker to another, too.
    pub(super) place: Option<Place>,
    driving: bool,
    pub(super) guest: Option<Guest>,
    /// When pgweir began to make it, if it did.
    pub(super) asked_at: u64,
    /// When its client has left, and since when that had waited, if it had.
    pub(super) left: Option<(u64, u64)>,
    /// Who was waiting when pgweir began to make it.
    pub(super) waits: Waits,
    /// pgweir has said that it has given up what is behind it.
    pub(super) given_up: bool,
}

/// Who is at the end that is not pgweir's.
pub(super) enum Outside {
    Backend(Box<Backend>),
    Canceller(Canceller),
    Client { client: Box<Client>, turns_left: u64 },
    Gone,
}

/// What the network knows of somebody who has come to pgweir.
pub(super) struct Guest {
    /// Which of the topology's pools it asks for, unless it asks for a cancel.
    pub(super) pool: Option<usize>,
    /// Bytes up to the end of its login.
    login_bytes: u64,
    pub(super) contact: Contact,
    /// Bytes that pgweir has read and written so far.
    read: u64,
    written: u64,
    /// From the worker that has taken it in to another.
    pub(super) journey: Journey,
}

/// How far a client has come on its way to another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journey {
    /// It has not left.
    None,
    UnderWay,
    /// It is there, and nothing that it has said was heard there.
    Arrived,
    Over,
}

/// An attempt of pgweir's to connect.
pub(super) struct Attempt {
    pub(super) place: Place,
    pub(super) cluster: usize,
    asked_at: u64,
    waits: Waits,
    pub(super) over: bool,
}

impl World {
    /// Makes a connection with somebody outside. `thin`: it may hold very little.
    fn wire(
        &mut self,
        thin: bool,
        guest: Option<Guest>,
        outside: impl FnOnce(&mut Self, Stream) -> Outside,
    ) -> (WireId, Stream) {
        let id = WireId(self.wires.len());
        let capacity = [(); 2].map(|()| {
            let small = thin && self.dice.chance(self.site.faults.small_buffer);
            if small { self.dice.magnitude(512) as usize } else { 64 * 1024 }
        });
        let (outer, inner, pipes) = connection(id, capacity, &self.stirs);
        let outside = outside(self, outer);
        self.wires.push(Wire {
            pipes,
            delivering: [false; 2],
            outside,
            wake_at: None,
            place: None,
            driving: false,
            guest,
            asked_at: self.now(),
            left: None,
            waits: Waits::new(),
            given_up: false,
        });
        (id, inner)
    }

    fn accept(&mut self, wire: WireId, stream: Stream) {
        let place = self.process.accept(Time(self.now()), stream);
        self.wires[wire.0].place = Some(place);
        self.note_crowd();
        self.check_logins(wire);
        self.wake_outside(wire, self.now());
        self.wake_driver(wire);
    }

    pub(super) fn arrive(&mut self, turns_left: u64) {
        let pool = self.dice.below(self.topology.pools.len() as u64) as usize;
        let facts = self.topology.pools[pool].clone();
        let client = Client::new(&mut self.site, facts, self.dice.fork());
        let number = client.number;
        self.site.trace.note("world", || format!("c{number} connects"));
        let guest = Guest::new(Some(pool), client.login_bytes());
        let (wire, stream) = self.wire(true, Some(guest), |_, stream| {
            let client = Box::new(client.with(stream));
            Outside::Client { client, turns_left }
        });
        self.accept(wire, stream);
        if self.dice.chance(self.site.faults.client_hostile) {
            let words = stranger(&mut self.dice);
            self.send(words);
        }
    }

    pub(super) fn send_cancel(&mut self, key: &CancelKey) {
        let mut request = Vec::new();
        key.write_request(&mut request);
        self.send(vec![request]);
    }

    /// Somebody comes who will not become a client.
    fn send(&mut self, words: Vec<Vec<u8>>) {
        let guest = Guest::new(None, words.iter().map(Vec::len).sum());
        let (wire, stream) = self.wire(true, Some(guest), |world, stream| {
            let hasty = world.dice.chance(0.2);
            Outside::Canceller(Canceller::new(stream, words, hasty))
        });
        self.accept(wire, stream);
    }

    /// pgweir wants a connection: when it will know.
    pub(super) fn begin_to_connect(&mut self, place: Place, address: &Address) {
        let cluster = usize::from(address.port - PORT);
        self.check_parallelism(place, cluster);
        let slow = self.dice.chance(self.site.faults.connect_slow);
        let limit = self.site.rules.current().times.connect;
        let most = if slow { 2 * limit } else { 1_000 };
        if slow {
            self.site.trouble(cluster);
        }
        let now = self.now();
        let at = now + if slow { self.dice.below(most) } else { self.dice.magnitude(most) };
        let waits = self.known_waits();
        self.attempts.push(Attempt { place, cluster, asked_at: now, waits, over: false });
        self.schedule(at, Occasion::Connect(self.attempts.len() - 1));
    }

    /// Answers an attempt to connect.
    pub(super) fn connect(&mut self, number: usize) {
        let attempt = &mut self.attempts[number];
        attempt.over = true;
        let waits = std::mem::take(&mut attempt.waits);
        let Attempt { place, cluster, asked_at, .. } = *attempt;
        let now = Time(self.now());
        self.check_attempt(place, asked_at);
        let refused = self.dice.chance(self.site.faults.connect_refused);
        if refused || self.clusters[cluster].health == Health::Down {
            self.site.trouble(cluster);
            self.site.trace.note("world", || format!("{place:?} is refused"));
            return self.process.connect_failed(now, place, "connection refused");
        }
        let dice = self.dice.fork();
        // A statement that is long under way may look like one that is not answered.
        let thin = !self.topology.limits_statements();
        let (wire, stream) = self.wire(thin, None, |world, stream| {
            let process_id = world.wires.len() as i32 + 1_000;
            let version = world.clusters[cluster].version;
            Outside::Backend(Box::new(Backend::new(process_id, cluster, version, stream, dice)))
        });
        self.wires[wire.0].asked_at = asked_at;
        self.wires[wire.0].waits = waits;
        self.site.trace.note(Who('b', wire), || format!("serves {place:?}"));
        if self.process.connected(now, place, stream) {
            self.wires[wire.0].place = Some(place);
            self.check_server_limit(wire, cluster);
        }
        self.wake_outside(wire, self.now());
        self.wake_driver(wire);
    }

    pub(super) fn deliver(&mut self, wire: WireId, inwards: bool) {
        let side = usize::from(!inwards);
        self.wires[wire.0].delivering[side] = false;
        let mut pipe = self.wires[wire.0].pipes[side].borrow_mut();
        let under_way = pipe.under_way();
        let n = if under_way > 0 && self.dice.chance(self.site.faults.split) {
            self.dice.magnitude(under_way as u64) as usize
        } else {
            under_way
        };
        self.site.trace.mix(wire.0 as u64 * 2 + side as u64);
        for byte in pipe.next(n) {
            self.site.trace.mix(u64::from(*byte));
        }
        let left = pipe.deliver(n, *self.dice.pick(&Loss::EACH));
        drop(pipe);
        if left > 0 {
            self.put(wire, inwards);
        }
        if inwards {
            self.wake_driver(wire);
        } else {
            self.wake_outside(wire, self.now());
        }
    }

    /// Something is under way: it will arrive.
    pub(super) fn put(&mut self, wire: WireId, inwards: bool) {
        let side = usize::from(!inwards);
        if std::mem::replace(&mut self.wires[wire.0].delivering[side], true) {
            return;
        }
        let stalls = self.dice.chance(self.site.faults.stall);
        if stalls && let Some(cluster) = self.wires[wire.0].logs_in_to() {
            self.site.trouble(cluster);
        }
        let most = if stalls { 200_000 } else { 100 };
        let latency = self.dice.magnitude(most);
        self.schedule(self.now() + latency, Occasion::Deliver(wire, inwards));
    }

    pub(super) fn wake_outside(&mut self, wire: WireId, at: u64) {
        let its = &mut self.wires[wire.0];
        if its.wake_at.is_some_and(|before| before <= at) {
            return;
        }
        its.wake_at = Some(at);
        self.schedule(at, Occasion::Outside(wire));
    }

    pub(super) fn wake_driver(&mut self, wire: WireId) {
        if !std::mem::replace(&mut self.wires[wire.0].driving, true) {
            let delay = self.dice.below(10);
            self.schedule(self.now() + delay, Occasion::Drive(wire));
        }
    }

    /// pgweir does with a connection what it can and wants to do.
    pub(super) fn drive(&mut self, wire: WireId) {
        self.wires[wire.0].driving = false;
        let Some(place) = self.wires[wire.0].place else { return };
        let now = Time(self.now());
        let writes_first = self.dice.chance(0.5);
        for writes in [writes_first, !writes_first] {
            let Some(interest) = self.process.interest(place) else { return };
            let [inwards, outwards] = &self.wires[wire.0].pipes;
            let broken = inwards.borrow().is_broken();
            let writable = broken || outwards.borrow().is_writable();
            let readable = inwards.borrow().is_readable();
            if writes && interest.write && writable {
                self.process.writable(now, place);
            } else if !writes && interest.read && readable {
                let before = inwards.borrow().read;
                let read = self.process.readable(now, place);
                // Behind its end alone a newcomer's words wait for the end of the turn.
                if self.wires[wire.0].pipes[0].borrow().read > before {
                    self.heard(wire);
                }
                // Behind the bytes there may be the end, which is still to be read.
                let inwards = &self.wires[wire.0].pipes[0];
                if read == Read::More || inwards.borrow().is_readable() {
                    self.wake_driver(wire);
                }
            } else if !writes && interest.reset && broken {
                self.process.reset(now, place);
                self.heard(wire);
            }
        }
    }

    /// Notes what pgweir has just read from a guest, or written to it.
    pub(super) fn note_contact(&mut self, wire: WireId) {
        let now = self.now();
        let Wire { guest: Some(guest), pipes: [inwards, outwards], .. } = &mut self.wires[wire.0]
        else {
            return;
        };
        let (read, written) = (inwards.borrow().read, outwards.borrow().written);
        if read > std::mem::replace(&mut guest.read, read) {
            guest.contact.read_at = now;
            guest.contact.answered_at = None;
        }
        if written > std::mem::replace(&mut guest.written, written) {
            let contact = &mut guest.contact;
            if contact.wrote_at < now {
                contact.wrote_before = contact.wrote_at;
            }
            contact.wrote_at = now;
            guest.contact.answered_at.get_or_insert(now);
        }
    }

    /// What has passed between a guest and pgweir.
    pub(super) fn contact(&mut self, wire: WireId) -> Contact {
        let attended = self.is_attended(wire);
        let unsent = self.interest(wire).is_some_and(|interest| interest.write);
        let Wire { guest: Some(guest), pipes: [_, outwards], .. } = &self.wires[wire.0] else {
            return Contact::default();
        };
        let introduced = !guest.is_before_login();
        let heard = !unsent && outwards.borrow().unread() == 0;
        Contact { attended, introduced, heard, ..guest.contact }
    }
}

impl Wire {
    /// Whether it is one of pgweir's connections to servers, not one for a cancel.
    pub(super) fn is_server(&self) -> bool {
        self.place.is_some_and(|place| matches!(place.endpoint, Endpoint::Server(_)))
    }

    /// The server that has not let pgweir in yet.
    fn logs_in_to(&self) -> Option<usize> {
        match &self.outside {
            Outside::Backend(process) => process.is_before_login().then_some(process.cluster),
            Outside::Canceller(_) | Outside::Client { .. } | Outside::Gone => None,
        }
    }

    /// Whether it is between two workers.
    pub(super) fn is_under_way(&self) -> bool {
        self.guest.as_ref().is_some_and(|guest| guest.journey == Journey::UnderWay)
    }
}

impl Guest {
    fn new(pool: Option<usize>, login_bytes: usize) -> Self {
        let (read, written) = (0, 0);
        let contact = Contact::default();
        let (login_bytes, journey) = (login_bytes as u64, Journey::None);
        Self { pool, login_bytes, contact, read, written, journey }
    }

    /// Whether pgweir has not read all that makes up its login, where that is to be read.
    pub(super) fn is_before_login(&self) -> bool {
        let unheard = matches!(self.journey, Journey::UnderWay | Journey::Arrived);
        unheard || self.read < self.login_bytes
    }
}

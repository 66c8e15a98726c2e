use std::cell::RefCell;
use std::rc::Rc;

use pgweir_engine::{Address, Endpoint, Time};
use pgweir_proxy::Read;
use pgweir_wire::CancelKey;

use super::crowd::is_attended;
use super::reserve::Waits;
use super::{Occasion, World};
use crate::admin::Admin;
use crate::canceller::{Canceller, stranger};
use crate::client::{Client, Contact};
use crate::diet::{Item, Sitting};
use crate::ledger::RequestId;
use crate::network::{Loss, Pipe, Stream, WireId, connection};
use crate::postgres::{Backend, Health};
use crate::process::Place;
use crate::random::{Dice, Part};
use crate::topology::PORT;
use crate::trace::Who;

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
    /// How the network treats it, and when those at its ends go on.
    pub(super) dice: Dice,
}

/// Who is at the end that is not pgweir's.
pub(super) enum Outside {
    Admin(Box<Admin>),
    Backend(Box<Backend>),
    Canceller(Canceller),
    Client(Box<Client>),
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
    /// When it came to its end, if pgweir did not want it any more.
    pub(super) missed_at: Option<u64>,
    dice: Dice,
}

/// How long pgweir gives a cancel, whatever its configuration says.
const CANCEL_US: u64 = 5_000_000;

impl World {
    /// Makes a connection with somebody outside. `thin`: it may hold very little.
    fn wire(
        &mut self,
        thin: bool,
        guest: Option<Guest>,
        mut dice: Dice,
        outside: impl FnOnce(&mut Self, Stream) -> Outside,
    ) -> (WireId, Stream) {
        let id = WireId(self.wires.len());
        let capacity = [(); 2].map(|()| {
            let small = dice.chance(self.site.faults.small_buffer) && thin;
            let bytes = dice.magnitude(512) as usize;
            if small { bytes } else { 64 * 1024 }
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
            dice,
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

    /// A client comes, or would have come.
    pub(super) fn arrive(&mut self, sitting: Sitting) {
        let pool = self.topology.draw_pool(&mut self.seats[sitting.seat as usize]);
        self.come_for(pool, sitting);
    }

    /// The same, and for which pool is known.
    fn come_for(&mut self, pool: usize, sitting: Sitting) {
        let mut own = self.seats[sitting.seat as usize].fork();
        if self.site.diet.lacks(Item::Client(sitting)) {
            return self.next_turn(sitting);
        }
        let (of_wire, mut of_stranger) = (own.fork(), own.fork());
        let facts = self.topology.pools[pool].clone();
        let who = self.wires.len();
        let client = Client::new(&mut self.site, facts, sitting, own);
        self.site.roll.insert(sitting, 0);
        self.site.trace.note(client.who(), || client.introduction(who));
        let guest = Guest::new(Some(pool), client.login_bytes());
        let (wire, stream) = self.wire(true, Some(guest), of_wire, |_, stream| {
            Outside::Client(Box::new(client.with(stream)))
        });
        self.accept(wire, stream);
        if of_stranger.chance(self.site.faults.client_hostile) {
            self.send_stranger(of_stranger);
        }
    }

    /// All is healed, and everybody who was there is gone: a client more comes for each pool, who
    /// finds pgweir as others have left it.
    pub(super) fn call_again(&mut self) {
        let (seats, turns) = (self.topology.seats as u32, self.topology.turns as u32);
        for pool in 0..self.topology.pools.len() {
            let sitting = Sitting { seat: pool as u32 % seats, turn: turns + pool as u32 / seats };
            if !self.site.diet.lacks(Item::Seat(sitting.seat)) {
                self.seats_taken += 1;
                self.come_for(pool, sitting);
            }
        }
    }

    /// Many come at once who are not to be let in.
    pub(super) fn rush(&mut self, dice: &mut Dice) {
        for _ in 0..dice.between(1..=40) {
            self.send_stranger(dice.fork());
        }
    }

    fn send_stranger(&mut self, mut dice: Dice) {
        let words = stranger(&mut dice);
        self.send(words, None, dice, || "is not to be let in".to_owned());
    }

    /// A request to cancel what the client on `of` does.
    pub(super) fn send_cancel(&mut self, of: WireId, id: RequestId, key: &CancelKey) {
        let mut request = Vec::new();
        key.write_request(&mut request);
        let dice = self.wires[of.0].dice.fork();
        let text = || format!("asks to cancel what the client on w{} does", of.0);
        self.send(vec![request], Some(id), dice, text);
        self.note_request(of);
    }

    /// Somebody comes who will not become a client. `request`: who asks for a cancel.
    fn send(
        &mut self,
        words: Vec<Vec<u8>>,
        request: Option<RequestId>,
        mut dice: Dice,
        text: impl Fn() -> String,
    ) {
        let hasty = dice.chance(0.2);
        self.site.trace.note(Who('w', self.wires.len()), text);
        self.receive(dice, words.iter().map(Vec::len).sum(), |_, stream| {
            Outside::Canceller(Canceller::new(stream, words, request, hasty))
        });
    }

    /// Somebody comes who asks for no pool. `login_bytes`: how many a login takes.
    pub(super) fn receive(
        &mut self,
        dice: Dice,
        login_bytes: usize,
        outside: impl FnOnce(&mut Self, Stream) -> Outside,
    ) {
        let guest = Guest::new(None, login_bytes);
        let (wire, stream) = self.wire(true, Some(guest), dice, outside);
        self.accept(wire, stream);
    }

    /// pgweir wants a connection: when it will know.
    pub(super) fn begin_to_connect(&mut self, place: Place, address: &Address) {
        let cluster = usize::from(address.port - PORT);
        self.check_parallelism(place, cluster);
        self.check_server_limit(place, cluster);
        let mut dice = Dice::of(self.seed, Part::Attempt, self.attempts.len() as u64);
        let connect_us = self.site.rules.current().times.connect;
        let (fault, limit) = match place.endpoint {
            Endpoint::Cancel(_) => (self.site.faults.cancel_slow, CANCEL_US),
            Endpoint::Server(_) | Endpoint::Client(_) => {
                (self.site.faults.connect_slow, connect_us)
            }
        };
        let slow = dice.chance(fault);
        let most = if slow { 2 * limit } else { 1_000 };
        if slow {
            self.site.trouble(cluster);
        }
        let now = self.now();
        let at = now + if slow { dice.below(most) } else { dice.magnitude(most) };
        let waits = self.known_waits();
        let (asked_at, over, missed_at) = (now, false, None);
        self.attempts.push(Attempt { place, cluster, asked_at, waits, over, missed_at, dice });
        self.schedule(at, Occasion::Connect(self.attempts.len() - 1));
        self.note_tight(cluster);
    }

    /// Answers an attempt to connect.
    pub(super) fn connect(&mut self, number: usize) {
        self.check_burst(self.attempts[number].cluster);
        let attempt = &mut self.attempts[number];
        attempt.over = true;
        let waits = std::mem::take(&mut attempt.waits);
        let Attempt { place, cluster, asked_at, .. } = *attempt;
        let refused = attempt.dice.chance(self.site.faults.connect_refused);
        let (dice, of_wire) = (attempt.dice.fork(), attempt.dice.fork());
        let now = Time(self.now());
        self.check_attempt(place, asked_at);
        if refused || self.clusters[cluster].health == Health::Down {
            self.site.trouble(cluster);
            self.site.trace.note("world", || format!("{place:?} is refused"));
            return self.process.connect_failed(now, place, "connection refused");
        }
        // A statement that is long under way may look like one that is not answered.
        let thin = !self.topology.limits_statements();
        let (wire, stream) = self.wire(thin, None, of_wire, |world, stream| {
            let (number, its) = (world.wires.len(), &world.clusters[cluster]);
            let (version, room) = (its.version, its.room);
            Outside::Backend(Box::new(Backend::new(
                world.now(),
                number,
                cluster,
                version,
                room,
                stream,
                dice,
            )))
        });
        self.wires[wire.0].asked_at = asked_at;
        self.wires[wire.0].waits = waits;
        let Place { worker, endpoint } = place;
        self.site.trace.note(Who('b', wire.0), || {
            format!("of server {cluster} is connected to worker {worker} as {endpoint:?}")
        });
        if self.process.connected(now, place, stream) {
            self.wires[wire.0].place = Some(place);
        } else {
            self.attempts[number].missed_at = Some(self.now());
        }
        self.wake_outside(wire, self.now());
        self.wake_driver(wire);
    }

    pub(super) fn deliver(&mut self, wire: WireId, inwards: bool) {
        let side = usize::from(!inwards);
        let Wire { delivering, pipes, dice, .. } = &mut self.wires[wire.0];
        delivering[side] = false;
        let mut pipe = pipes[side].borrow_mut();
        let under_way = pipe.under_way();
        let (split, some) = (dice.chance(self.site.faults.split), dice.magnitude(under_way as u64));
        let n = if split { some as usize } else { under_way };
        self.site.trace.mix(wire.0 as u64 * 2 + side as u64);
        self.site.trace.mix_all(&pipe.next(n));
        let left = pipe.deliver(n, *dice.pick(&Loss::EACH));
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
        let stalls = self.wires[wire.0].dice.chance(self.site.faults.stall);
        if stalls && let Some(cluster) = self.wires[wire.0].logs_in_to() {
            self.site.trouble(cluster);
        }
        let most = if stalls { 200_000 } else { 100 };
        let latency = self.wires[wire.0].dice.magnitude(most);
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
            let delay = self.wires[wire.0].dice.below(10);
            self.schedule(self.now() + delay, Occasion::Drive(wire));
        }
    }

    /// pgweir does with a connection what it can and wants to do.
    pub(super) fn drive(&mut self, wire: WireId) {
        self.wires[wire.0].driving = false;
        let Some(place) = self.wires[wire.0].place else { return };
        let now = Time(self.now());
        let writes_first = self.wires[wire.0].dice.chance(0.5);
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
                self.note_room_heard(wire);
                if self.process.interest(place).is_none() {
                    self.note_made_way(wire);
                }
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
        if self.wires[wire.0].guest.is_none() {
            return Contact::default();
        }
        let interest = self.interest(wire);
        let attended = interest.is_some_and(is_attended);
        let unsent = interest.is_some_and(|interest| interest.write);
        let Wire { guest: Some(guest), pipes: [_, outwards], .. } = &self.wires[wire.0] else {
            return Contact::default();
        };
        let introduced = !guest.is_before_login();
        let heard = !unsent && outwards.borrow().unread() == 0;
        let contact = Contact { attended, introduced, unsent, heard, ..guest.contact };
        let served_since = self.served_since(wire);
        Contact { served_since, ..contact }
    }
}

impl Wire {
    /// Whether it is one of pgweir's connections to servers, not one for a cancel.
    pub(super) fn is_server(&self) -> bool {
        self.place.is_some_and(|place| matches!(place.endpoint, Endpoint::Server(_)))
    }

    /// The server that has not let pgweir in yet, or has and was not lent since.
    fn logs_in_to(&self) -> Option<usize> {
        match &self.outside {
            Outside::Backend(process) => process.is_unused().then_some(process.cluster),
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => None,
        }
    }

    /// Whether it is a replication client's.
    pub(super) fn replicates(&self) -> bool {
        matches!(&self.outside, Outside::Client(client) if client.replicates())
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

mod rest;
mod strike;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use pgweir_engine::{Address, Endpoint, Engine, Event as LogEvent, TICK, Time};
use pgweir_proxy::{Driver, Piece, Read, Request};
use pgweir_wire::{CancelKey, TransactionStatus, backend};

use crate::canceller::Canceller;
use crate::client::Client;
use crate::faults::Faults;
use crate::ledger::Ledger;
use crate::network::{Direction, Pipe, Stir, Stirs, Stream, WireId, connection};
use crate::postgres::{Backend, Health, Outcome};
use crate::random::Dice;
use crate::topology::{PORT, Topology};
use crate::trace::Trace;
use strike::Blow;

/// The whole simulation: pgweir's driver and engine, and everything around them.
pub(crate) struct World {
    pub(crate) site: Site,
    topology: Topology,
    driver: Driver<Stream>,
    wires: Vec<Wire>,
    clusters: Vec<Cluster>,
    stirs: Stirs,
    queue: BinaryHeap<Reverse<(u64, u64, Occasion)>>,
    /// Ties in time are broken by chance.
    dice: Dice,
    connects: Vec<Option<(Endpoint, Address)>>,
    /// Clients that are still to come, or are there.
    seats_taken: usize,
    healed: bool,
    /// [`Occasion::Finish`] is scheduled.
    finishing: bool,
    /// The engine is checked after each so many events.
    check_every: u64,
    steps: u64,
}

/// What every part of the world may look at and write to.
pub(crate) struct Site {
    pub(crate) ledger: Ledger,
    pub(crate) trace: Trace,
    pub(crate) faults: Faults,
}

/// A connection, as the scheduler sees it.
struct Wire {
    pipes: [Rc<RefCell<Pipe>>; 2],
    delivering: [bool; 2],
    outside: Outside,
    /// When the outside is to be stepped next.
    wake_at: Option<u64>,
    endpoint: Option<Endpoint>,
    driving: bool,
}

/// Who is at the end that is not pgweir's.
enum Outside {
    Backend(Box<Backend>),
    Canceller(Canceller),
    Client { client: Box<Client>, turns_left: u64 },
    Gone,
}

struct Cluster {
    health: Health,
    /// Of its configuration, which has been changed so many times.
    version: u32,
}

/// What happens at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Occasion {
    /// A client sits down; so many follow it.
    Arrive {
        turns_left: u64,
    },
    /// An attempt of pgweir's to connect comes to its end.
    Connect(usize),
    /// Bytes arrive in pgweir (`true`) or outside.
    Deliver(WireId, bool),
    /// pgweir looks at a connection.
    Drive(WireId),
    /// Faults stop.
    Heal,
    Outside(WireId),
    /// A server is well again: it starts, or is up.
    Recover(usize, bool),
    /// pgweir ends its turn.
    Finish,
    Strike(Blow),
    Tick,
}

/// Until when faults strike.
const STORM_US: u64 = 20_000_000;

/// How long everything may take to come to its end once nothing goes wrong any more.
const CALM_US: u64 = 300_000_000;

/// How long after the storm a refusal may still be due to it.
const AFTERMATH_US: u64 = 30_000_000;

impl World {
    pub(crate) fn new(seed: u64, faults: Option<Faults>, trace: Trace) -> Result<Self, String> {
        let mut dice = Dice::new(seed);
        let mut own = dice.fork();
        let topology = Topology::draw(&mut own);
        let config = topology.config(&mut own, false);
        let faults = faults.unwrap_or_else(|| Faults::draw(&mut dice.fork()));
        let engine = Engine::new(Topology::plan_of(&config)?, dice.seed());
        let thorough = trace.is_kept();
        let mut world = Self {
            site: Site { ledger: Ledger::new(), trace, faults },
            driver: Driver::new(engine),
            wires: Vec::new(),
            clusters: (0..topology.clusters)
                .map(|_| Cluster { health: Health::Up, version: 0 })
                .collect(),
            stirs: Rc::default(),
            queue: BinaryHeap::new(),
            connects: Vec::new(),
            seats_taken: topology.seats,
            healed: false,
            finishing: false,
            check_every: if thorough { 1 } else { 5 },
            steps: 0,
            topology,
            dice,
        };
        world.begin(&config);
        Ok(world)
    }

    /// Runs to the end, or to the first thing that is wrong.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        while self.seats_taken > 0 {
            self.step()?;
        }
        self.site.trace.note("world", || "everybody is gone");
        // One that keeps no server that nobody needs.
        let config = self.topology.config(&mut self.dice, true);
        self.configure(&config);
        // Cancels and closing connections come to their end.
        self.run_for(STORM_US.saturating_sub(self.now()) + 15_000_000)?;
        self.check_rest().map_err(|cause| format!("{cause}\n{}", self.open_wires()))?;
        // Servers at rest are closed in the end.
        self.run_for(self.topology.idle_timeout_us + 1_000_000)?;
        self.check_empty()
    }

    /// Virtual time so far, in microseconds.
    pub(crate) fn now(&self) -> u64 {
        self.site.trace.now
    }

    /// The text of what happened.
    pub(crate) fn take_trace(&mut self) -> Vec<String> {
        self.site.trace.take_lines()
    }

    fn begin(&mut self, config: &str) {
        let faults = self.site.faults.clone();
        self.site.trace.note("world", || format!("{config}\n{faults:?}"));
        for _ in 0..self.topology.seats {
            let at = self.dice.magnitude(2_000_000);
            self.schedule(at, Occasion::Arrive { turns_left: self.topology.turns - 1 });
        }
        self.schedule(TICK.as_micros() as u64, Occasion::Tick);
        self.schedule(STORM_US, Occasion::Heal);
        self.schedule_blows();
    }

    fn schedule(&mut self, at: u64, occasion: Occasion) {
        let tie = self.dice.below(u64::MAX);
        self.queue.push(Reverse((at.max(self.now()), tie, occasion)));
    }

    /// The next thing happens.
    fn step(&mut self) -> Result<(), String> {
        let Some(Reverse((at, _, occasion))) = self.queue.pop() else {
            return Err("nothing is left to happen".to_owned());
        };
        self.site.trace.now = at;
        self.steps += 1;
        if at > STORM_US + CALM_US {
            return Err(format!("{}\n{}", self.stuck(), self.open_wires()));
        }
        self.happen(occasion);
        self.pump();
        self.finish_soon();
        self.driver_checks();
        match self.site.ledger.failure() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn run_for(&mut self, micros: u64) -> Result<(), String> {
        let end = self.now() + micros;
        while self.queue.peek().is_some_and(|Reverse((at, ..))| *at <= end) {
            self.step()?;
        }
        Ok(())
    }

    fn finish_soon(&mut self) {
        if self.driver.is_unfinished() && !std::mem::replace(&mut self.finishing, true) {
            let delay = self.dice.below(10);
            self.schedule(self.now() + delay, Occasion::Finish);
        }
    }

    fn driver_checks(&mut self) {
        if self.steps.is_multiple_of(self.check_every) {
            self.driver.engine().check();
        }
    }

    fn happen(&mut self, occasion: Occasion) {
        match occasion {
            Occasion::Arrive { turns_left } => self.arrive(turns_left),
            Occasion::Connect(number) => self.connect(number),
            Occasion::Deliver(wire, inwards) => self.deliver(wire, inwards),
            Occasion::Drive(wire) => self.drive(wire),
            Occasion::Heal => self.heal(),
            Occasion::Outside(wire) => self.step_outside(wire),
            Occasion::Recover(cluster, up) => self.recover(cluster, up),
            Occasion::Finish => {
                self.finishing = false;
                let write =
                    |pieces: &mut [Piece<'_, Stream>]| pieces.iter_mut().for_each(Piece::write);
                self.driver.finish(Time(self.now()), write);
            }
            Occasion::Strike(blow) => self.strike(blow),
            Occasion::Tick => {
                self.driver.tick(Time(self.now()));
                self.schedule(self.now() + TICK.as_micros() as u64, Occasion::Tick);
            }
        }
    }

    /// Makes a connection with somebody outside.
    fn wire(&mut self, outside: impl FnOnce(&mut Self, Stream) -> Outside) -> (WireId, Stream) {
        let id = WireId(self.wires.len());
        let capacity = [(); 2].map(|()| {
            let small = self.dice.chance(self.site.faults.small_buffer);
            if small { self.dice.magnitude(512) as usize } else { 64 * 1024 }
        });
        let (outer, inner, pipes) = connection(id, capacity, &self.stirs);
        let outside = outside(self, outer);
        self.wires.push(Wire {
            pipes,
            delivering: [false; 2],
            outside,
            wake_at: None,
            endpoint: None,
            driving: false,
        });
        (id, inner)
    }

    fn accept(&mut self, wire: WireId, stream: Stream) {
        let endpoint = self.driver.accept(Time(self.now()), stream, None);
        self.wires[wire.0].endpoint = Some(endpoint);
        self.wake_outside(wire, self.now());
        self.wake_driver(wire);
    }

    fn arrive(&mut self, turns_left: u64) {
        let pool = self.dice.pick(&self.topology.pools).clone();
        let dice = self.dice.fork();
        let (wire, stream) = self.wire(|world, stream| {
            let client = Client::new(&mut world.site, pool, stream, dice);
            let number = client.number;
            world.site.trace.note("world", || format!("c{number} connects"));
            Outside::Client { client: Box::new(client), turns_left }
        });
        self.accept(wire, stream);
    }

    fn send_cancel(&mut self, key: &CancelKey) {
        let (wire, stream) = self.wire(|_, stream| Outside::Canceller(Canceller::new(stream, key)));
        self.accept(wire, stream);
    }

    /// Answers an attempt to connect.
    fn connect(&mut self, number: usize) {
        let Some((endpoint, address)) = self.connects[number].take() else { return };
        let now = Time(self.now());
        let cluster = usize::from(address.port - PORT);
        let refused = self.dice.chance(self.site.faults.connect_refused);
        if refused || self.clusters[cluster].health == Health::Down {
            self.site.trouble();
            self.site.trace.note("world", || format!("{endpoint:?} is refused"));
            return self.driver.connect_failed(now, endpoint, "connection refused");
        }
        let dice = self.dice.fork();
        let (wire, stream) = self.wire(|world, stream| {
            let process_id = world.wires.len() as i32 + 1_000;
            let version = world.clusters[cluster].version;
            Outside::Backend(Box::new(Backend::new(process_id, cluster, version, stream, dice)))
        });
        self.site.trace.note(Who('b', wire), || format!("serves {endpoint:?}"));
        if self.driver.connected(now, endpoint, stream).is_ok() {
            self.wires[wire.0].endpoint = Some(endpoint);
        }
        self.wake_outside(wire, self.now());
        self.wake_driver(wire);
    }

    fn deliver(&mut self, wire: WireId, inwards: bool) {
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
        let left = pipe.deliver(n, self.dice.chance(0.5));
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
    fn put(&mut self, wire: WireId, inwards: bool) {
        let side = usize::from(!inwards);
        if std::mem::replace(&mut self.wires[wire.0].delivering[side], true) {
            return;
        }
        let most = if self.dice.chance(self.site.faults.stall) { 200_000 } else { 100 };
        let latency = self.dice.magnitude(most);
        self.schedule(self.now() + latency, Occasion::Deliver(wire, inwards));
    }

    fn wake_outside(&mut self, wire: WireId, at: u64) {
        let its = &mut self.wires[wire.0];
        if its.wake_at.is_some_and(|before| before <= at) {
            return;
        }
        its.wake_at = Some(at);
        self.schedule(at, Occasion::Outside(wire));
    }

    fn wake_driver(&mut self, wire: WireId) {
        if !std::mem::replace(&mut self.wires[wire.0].driving, true) {
            let delay = self.dice.below(10);
            self.schedule(self.now() + delay, Occasion::Drive(wire));
        }
    }

    /// pgweir does with a connection what it can and wants to do.
    fn drive(&mut self, wire: WireId) {
        self.wires[wire.0].driving = false;
        let Some(endpoint) = self.wires[wire.0].endpoint else { return };
        let now = Time(self.now());
        let writes_first = self.dice.chance(0.5);
        for writes in [writes_first, !writes_first] {
            let Some(interest) = self.driver.interest(endpoint) else { return };
            let [inwards, outwards] = &self.wires[wire.0].pipes;
            let broken = inwards.borrow().is_broken();
            let writable = broken || outwards.borrow().is_writable();
            let readable = inwards.borrow().is_readable();
            if writes && interest.write && writable {
                self.driver.writable(now, endpoint);
            } else if !writes && interest.read && readable {
                let read = self.driver.readable(now, endpoint);
                // Behind the bytes there may be the end, which is still to be read.
                let inwards = &self.wires[wire.0].pipes[0];
                if read == Read::More || inwards.borrow().is_readable() {
                    self.wake_driver(wire);
                }
            }
        }
    }

    fn step_outside(&mut self, wire: WireId) {
        let now = self.now();
        let its = &mut self.wires[wire.0];
        if its.wake_at.is_none_or(|at| at > now) {
            return;
        }
        its.wake_at = None;
        let mut outside = std::mem::replace(&mut its.outside, Outside::Gone);
        let mut over = false;
        match &mut outside {
            Outside::Backend(process) => {
                let health = self.clusters[process.cluster].health;
                let outcome = process.step(&mut self.site, health);
                over = process.is_gone();
                let cluster = process.cluster;
                self.wires[wire.0].outside = outside;
                self.after_backend(wire, cluster, outcome);
            }
            Outside::Canceller(canceller) => {
                over = canceller.step();
                self.wires[wire.0].outside = outside;
            }
            Outside::Client { client, turns_left } => {
                let wish = client.step(&mut self.site);
                over = client.is_over();
                let turns_left = *turns_left;
                self.wires[wire.0].outside = outside;
                if let Some(key) = &wish.cancel {
                    self.send_cancel(key);
                }
                if let Some(at) = wish.wake_at {
                    self.wake_outside(wire, at);
                }
                if over {
                    self.next_turn(turns_left);
                }
            }
            Outside::Gone => {}
        }
        if over {
            self.wires[wire.0].outside = Outside::Gone;
        }
    }

    fn next_turn(&mut self, turns_left: u64) {
        match turns_left.checked_sub(1) {
            Some(turns_left) => {
                let at = self.now() + self.dice.magnitude(1_000_000);
                self.schedule(at, Occasion::Arrive { turns_left });
            }
            None => self.seats_taken -= 1,
        }
    }

    fn after_backend(&mut self, wire: WireId, cluster: usize, outcome: Outcome) {
        if let Some(at) = outcome.wake_at {
            self.wake_outside(wire, at);
        }
        if let Some(key) = &outcome.cancels {
            self.site.trace.note(Who('b', wire), || format!("cancels {}", key.process_id));
            self.each_backend(cluster, |process| process.cancel(key));
        }
        for tag in outcome.notifies {
            self.each_backend(cluster, |process| process.notified(tag));
        }
    }

    /// Does something to every process of a server, and lets it go on from there.
    fn each_backend(&mut self, cluster: usize, mut act: impl FnMut(&mut Backend)) {
        let now = self.now();
        for index in 0..self.wires.len() {
            if let Outside::Backend(process) = &mut self.wires[index].outside
                && process.cluster == cluster
            {
                act(process);
                self.wake_outside(WireId(index), now);
            }
        }
    }

    /// Carries on what the last occasion has set in motion.
    fn pump(&mut self) {
        loop {
            let stir = self.stirs.borrow_mut().pop_front();
            match stir {
                Some(Stir::Put(wire, direction)) => self.put(wire, direction == Direction::In),
                Some(Stir::Room(wire, Direction::In)) => self.wake_outside(wire, self.now()),
                Some(Stir::Room(wire, Direction::Out)) | Some(Stir::Wake(wire)) => {
                    self.wake_driver(wire);
                }
                None if self.driver.has_requests() => self.serve_requests(),
                None => return,
            }
        }
    }

    fn serve_requests(&mut self) {
        for request in self.driver.take_requests() {
            match request {
                Request::Connect(endpoint, address) => {
                    let slow = self.dice.chance(self.site.faults.connect_slow);
                    let most = if slow { 2 * self.topology.connect_timeout_us } else { 1_000 };
                    if slow {
                        self.site.trouble();
                    }
                    let at = self.now() + self.dice.magnitude(most);
                    self.connects.push(Some((endpoint, address)));
                    self.schedule(at, Occasion::Connect(self.connects.len() - 1));
                }
                Request::Console(client, _) => {
                    let mut reply = Vec::new();
                    backend::command_complete(&mut reply, "SHOW");
                    backend::ready_for_query(&mut reply, TransactionStatus::Idle);
                    self.driver.console_reply(Time(self.now()), client, &reply);
                }
                Request::HandOver(_) | Request::Nudge => unreachable!("there is one worker"),
                Request::Log(event) => {
                    self.site.trace.note("log", || format!("{event:?}"));
                    if let LogEvent::Contained { cause, .. } = event {
                        self.site.ledger.fail(format!("contained: {cause}"));
                    }
                }
            }
        }
    }
}

impl Site {
    /// A server has failed pgweir in a way that clients may be told of.
    pub(crate) fn trouble(&mut self) {
        self.ledger.trouble = Some(self.trace.now);
    }

    /// Whether a server has failed pgweir lately.
    pub(crate) fn has_trouble(&self) -> bool {
        self.ledger.trouble.is_some_and(|at| self.trace.now - at < AFTERMATH_US)
    }
}

/// Somebody's name in the trace.
struct Who(char, WireId);

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}{}", self.0, self.1.0))
    }
}

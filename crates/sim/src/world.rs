mod burst;
mod cancels;
mod consoles;
mod crowd;
mod ending;
mod journal;
mod losses;
mod mail;
mod menu;
mod occasion;
mod opening;
mod order;
mod outside;
mod places;
mod reserve;
mod rest;
mod room;
mod strike;
mod wires;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use pgweir_engine::{Database, TICK, Time};
use pgweir_proxy::Request;

use crate::client::{Habit, STATEMENT_NAMES};
use crate::diet::{Diet, Item, Sitting};
use crate::faults::Faults;
use crate::invariants::Invariant;
use crate::ledger::Ledger;
use crate::locks::Locks;
use crate::network::{Direction, Stir, Stirs, Stream, WireId};
use crate::postgres::Health;
use crate::process::{Place, Process};
use crate::random::{Dice, Part};
use crate::room::Room;
use crate::rules::Rules;
use crate::run::{Extent, Options};
use crate::session::Home;
use crate::topology::Topology;
use crate::trace::Trace;
use crate::trap::Trap;
use cancels::Request as CancelRequest;
use crowd::Crowd;
use journal::Journal;
use occasion::Occasion;
use reserve::Waits;
use room::Known;
use strike::Strike;
use wires::{Attempt, Wire};

/// The whole simulation: pgweir's drivers and engines, and everything around them.
pub(crate) struct World {
    pub(crate) site: Site,
    seed: u64,
    /// What goes wrong before all is healed.
    drawn_faults: Faults,
    topology: Topology,
    process: Process,
    wires: Vec<Wire>,
    clusters: Vec<Cluster>,
    stirs: Stirs,
    queue: BinaryHeap<Reverse<(u64, u64, Occasion)>>,
    /// On which worker each pool was seen.
    homes: BTreeMap<Home, usize>,
    /// When pgweir last said of a pool that it has lost a server, or was not let in by one.
    lost_at: BTreeMap<String, u64>,
    /// When a server of a pool has gone that was started as a client had asked for.
    made_way_at: BTreeMap<Home, u64>,
    /// When a worker has last read another configuration.
    reloaded_at: Option<u64>,
    /// When a server process has ended that had a client's message last, by the client's number.
    parted_at: BTreeMap<u32, u64>,
    /// For what no part has dice of its own.
    dice: Dice,
    /// Those of each seat, and of each worker.
    seats: Vec<Dice>,
    workers: Vec<Dice>,
    /// How often a worker has had a catalogue read.
    readings: BTreeMap<(usize, Database), u64>,
    attempts: Vec<Attempt>,
    /// Of clients for a cancel, of which it was not looked yet what came of them.
    requests: Vec<CancelRequest>,
    journal: Journal,
    /// Who waited when pgweir looked, not long ago.
    looks: Vec<(u64, Waits)>,
    /// Pools in which somebody has listened.
    listened: BTreeSet<Home>,
    strikes: Vec<Strike>,
    /// Clients that are still to come, or are there.
    seats_taken: usize,
    /// For each worker: [`Occasion::Finish`] is scheduled.
    finishing: Vec<bool>,
    /// Clients that have come to each worker since it last ended a turn.
    newcomers: Vec<Vec<WireId>>,
    /// pgweir stands still, as a process or with its machine, and then finds that time has passed.
    paused_until: u64,
    /// The engines assert what must hold of them.
    asserts: bool,
    steps: u64,
    /// Since time went on last.
    steps_at_once: u64,
}

/// What every part of the world may look at and write to.
pub(crate) struct Site {
    pub(crate) ledger: Ledger,
    pub(crate) locks: Locks,
    pub(crate) trace: Trace,
    pub(crate) faults: Faults,
    pub(crate) rules: Rules,
    pub(crate) crowd: Crowd,
    /// pgweir asks its clients to leave.
    pub(crate) draining: bool,
    /// It has told them that they must.
    pub(crate) shut_down: bool,
    /// For so long it has stood still so far.
    pub(crate) paused_us: u64,
    /// What the simulation goes without.
    pub(crate) diet: Diet,
    /// What most clients do.
    pub(crate) customs: Vec<Habit>,
    /// Who has come, and how many units each has come to.
    pub(crate) roll: BTreeMap<Sitting, u32>,
    /// Until when some server process stands still.
    pub(crate) frozen_until: u64,
    pub(crate) trap: Option<Trap>,
}

struct Cluster {
    health: Health,
    /// Of its configuration, which has been changed so many times.
    version: u32,
    room: Room,
    known: Known,
    /// When as many attempts to connect were last seen as may be made at a time.
    tight_at: Option<u64>,
}

impl Cluster {
    fn new(room: Room) -> Self {
        Self { health: Health::Up, version: 0, room, known: Known::nothing(), tight_at: None }
    }
}

/// So much may happen in no time, and in all: what goes on for ever may take time, too.
const MOST_AT_ONCE: u64 = 1_000_000;
const MOST_IN_ALL: u64 = 3_000_000;

/// More connections than anybody needs.
const MOST_WIRES: usize = 10_000;

/// Until when faults strike, at most.
const STORM_US: u64 = 20_000_000;

/// Until when most simulations have clients.
const BUSY_US: u64 = 4_000_000;

/// How long everything may take to come to its end once nothing goes wrong any more.
const CALM_US: u64 = 300_000_000;

/// How long it takes at most until the network says that somebody has vanished.
const UNANSWERED_US: u64 = 12_000_000;

/// How late a timeout may be, as long as pgweir does not stand still.
const SLACK_US: u64 = 1_000_000;

/// pgweir's words for a server that is silent for longer than its statement may take.
pub(crate) const HANGS: &str = "the server did not end a statement at statement_timeout";

/// How long after the storm a refusal may still be due to it.
const AFTERMATH_US: u64 = 30_000_000;

impl World {
    pub(crate) fn new(seed: u64, options: &Options, trace: Trace) -> Result<Self, String> {
        let diet = options.diet.clone();
        let dice = |part| Dice::of(seed, part, 0);
        let topology = Topology::draw(&mut dice(Part::Topology), &diet);
        let configuration = topology.configuration(&mut dice(Part::Configuration));
        let faults = options.faults.clone();
        let faults = faults.unwrap_or_else(|| Faults::draw(&mut dice(Part::Faults)));
        let faults = diet.faults(faults);
        let plan = configuration.plan()?;
        let process = Process::new(topology.workers, plan, &mut dice(Part::Process));
        let many = |part, count: usize| {
            (0..count).map(|number| Dice::of(seed, part, number as u64)).collect()
        };
        let mut world = Self {
            site: Site {
                ledger: Ledger::new().sharing(topology.sharers()).ignoring(topology.ignores()),
                locks: Locks::default(),
                trace,
                faults: faults.clone(),
                rules: Rules::new(topology.workers, configuration),
                crowd: Crowd::default(),
                draining: false,
                shut_down: false,
                paused_us: 0,
                diet,
                customs: topology.customs.clone(),
                roll: BTreeMap::new(),
                frozen_until: 0,
                trap: options.trap,
            },
            seed,
            drawn_faults: faults,
            process,
            wires: Vec::new(),
            clusters: (0..topology.clusters)
                .map(|cluster| {
                    let mut dice = Dice::of(seed, Part::Room, cluster as u64);
                    Cluster::new(Room::draw(&mut dice))
                })
                .collect(),
            stirs: Rc::default(),
            queue: BinaryHeap::new(),
            attempts: Vec::new(),
            requests: Vec::new(),
            journal: Journal::new(dice(Part::Journal)),
            looks: Vec::new(),
            listened: BTreeSet::new(),
            strikes: Vec::new(),
            homes: BTreeMap::new(),
            lost_at: BTreeMap::new(),
            made_way_at: BTreeMap::new(),
            reloaded_at: None,
            parted_at: BTreeMap::new(),
            seats_taken: 0,
            finishing: vec![false; topology.workers],
            newcomers: vec![Vec::new(); topology.workers],
            paused_until: 0,
            asserts: true,
            steps: 0,
            steps_at_once: 0,
            dice: dice(Part::World),
            seats: many(Part::Seat, topology.seats),
            workers: many(Part::Worker, topology.workers),
            readings: BTreeMap::new(),
            topology,
        };
        world.begin();
        Ok(world)
    }

    /// Runs to the end, or to the first thing that is wrong.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        self.run_while_somebody_is_there()?;
        self.run_for(self.storm_us().saturating_sub(self.now()))?;
        if !self.site.draining && !self.site.shut_down {
            self.call_again();
            self.run_while_somebody_is_there()?;
        }
        // What is frozen goes on, and whatever is kept for nobody is there again.
        self.run_for(UNANSWERED_US + 10_000_000)?;
        self.check_least().map_err(|how| Invariant::SmallestSize.broken(how))?;
        let configuration = self.topology.at_rest(&mut Dice::of(self.seed, Part::Configuration, 1));
        let times = configuration.times;
        self.configure(configuration);
        // Cancels and closing connections come to their end.
        self.run_for(15_000_000)?;
        for _ in 0..=self.processes() {
            // An idle server may have been told to go just now, and be gone already but for the end
            // of its stream; and the next one a tick later.
            if self.check_rest().is_ok() {
                break;
            }
            self.run_for(100_000)?;
        }
        self.check_rest().map_err(|how| {
            Invariant::NothingLeft.broken(format!("{how}\n{}", self.open_wires()))
        })?;
        // Servers at rest are closed in the end.
        self.run_for(times.idle.or(times.lifetime).unwrap_or(0) + 1_000_000)?;
        self.check_warned()?;
        self.journal.check().map_err(|how| Invariant::WholeLog.broken(how))?;
        self.check_empty().map_err(|how| Invariant::NothingLeft.broken(how))?;
        if cfg!(debug_assertions) {
            self.process.check_empty();
        }
        Ok(())
    }

    fn run_while_somebody_is_there(&mut self) -> Result<(), String> {
        while self.seats_taken > 0 {
            self.step()?;
        }
        self.site.trace.note("world", || "everybody is gone");
        Ok(())
    }

    /// Virtual time so far, in microseconds.
    pub(crate) fn now(&self) -> u64 {
        self.site.trace.now
    }

    /// The text of what happened.
    pub(crate) fn take_trace(&mut self) -> Vec<String> {
        self.site.trace.take_lines()
    }

    /// How large it was.
    pub(crate) fn extent(&self) -> Extent {
        Extent {
            events: self.steps,
            micros: self.now(),
            clients: self.site.ledger.clients(),
            faults: self.drawn_faults.all().filter(|(_, often)| *often > 0.0).count() as u64,
        }
    }

    fn begin(&mut self) {
        for seat in 0..self.topology.seats as u32 {
            let at = self.seats[seat as usize].magnitude(2_000_000);
            if self.site.diet.lacks(Item::Seat(seat)) {
                continue;
            }
            self.seats_taken += 1;
            self.schedule(at, Occasion::Arrive(Sitting { seat, turn: 0 }));
        }
        self.schedule_admins();
        for worker in 0..self.process.workers() {
            let at = self.workers[worker].below(TICK.as_micros() as u64);
            self.schedule(at, Occasion::Tick(worker));
        }
        self.schedule(self.storm_us(), Occasion::Heal);
        self.schedule_blows();
        self.schedule_end();
        self.note_opening();
    }

    /// Until when faults strike.
    fn storm_us(&self) -> u64 {
        self.site.diet.storm_ms.map_or(STORM_US, |ms| (ms * 1_000).min(STORM_US))
    }

    /// Ties in time are broken by chance.
    fn schedule(&mut self, at: u64, occasion: Occasion) {
        let dice = match occasion {
            Occasion::Break(wire)
            | Occasion::Deliver(wire, _)
            | Occasion::Drive(wire)
            | Occasion::Outside(wire) => &mut self.wires[wire.0].dice,
            Occasion::Admit(_)
            | Occasion::AllGone(_)
            | Occasion::Arrive(_)
            | Occasion::Connect(_)
            | Occasion::Drain(_)
            | Occasion::Heal
            | Occasion::LineWritten
            | Occasion::Turn(..)
            | Occasion::Finish(_)
            | Occasion::Mail(_)
            | Occasion::ShutDown
            | Occasion::Strike(_)
            | Occasion::Tick(_) => &mut self.dice,
        };
        let tie = dice.below(u64::MAX);
        self.queue.push(Reverse((at.max(self.now()), tie, occasion)));
    }

    /// The next thing happens.
    fn step(&mut self) -> Result<(), String> {
        let Some(Reverse((at, _, occasion))) = self.queue.pop() else {
            return Err(Invariant::AllEnds.broken("nothing is left to happen"));
        };
        self.steps_at_once = if at == self.now() { self.steps_at_once + 1 } else { 0 };
        if self.steps_at_once > MOST_AT_ONCE || self.steps > MOST_IN_ALL {
            return Err(Invariant::AllEnds.broken(format!("there is no end at {occasion:?}")));
        }
        if self.wires.len() > MOST_WIRES {
            return Err(Invariant::AllEnds.broken("connections are made without end"));
        }
        self.site.trace.now = at;
        self.site.ledger.now = at;
        self.site.trace.mix(at);
        self.steps += 1;
        if at > self.storm_us() + CALM_US {
            let how = format!("{}\n{}", self.stuck(), self.open_wires());
            return Err(Invariant::AllEnds.broken(how));
        }
        self.happen(occasion);
        self.pump();
        self.finish_soon();
        self.check_process();
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
        for worker in 0..self.process.workers() {
            let unfinished = self.process.is_unfinished(worker);
            if unfinished && !std::mem::replace(&mut self.finishing[worker], true) {
                let dice = &mut self.workers[worker];
                let (is_late, early) = (dice.chance(self.site.faults.worker_late), dice.below(10));
                let late = dice.below(1_000);
                let delay = if is_late { late } else { early };
                self.schedule(self.now() + delay, Occasion::Finish(worker));
            }
        }
    }

    /// Leaves out what the engines assert of themselves: all of that held in the same simulation.
    pub(crate) fn assert_nothing(&mut self) {
        self.asserts = false;
    }

    /// Without the engines' own assertions only what is seen from outside counts.
    fn check_process(&mut self) {
        if !self.process.was_touched() {
            return;
        }
        if let Some(excess) = self.process.excess() {
            self.site.ledger.fail(Invariant::BoundedMemory, excess);
        }
        if cfg!(debug_assertions) && self.asserts {
            self.process.check();
        }
    }

    /// Of a client's names those are kept that it has given, far fewer than any client may have.
    fn check_names(&mut self, worker: usize) {
        let (kept, most) = (self.process.names_most(worker), STATEMENT_NAMES.len());
        if kept > most {
            let text = format!("{kept} names are kept of a client that has given {most} at most");
            self.site.ledger.fail(Invariant::BoundedMemory, text);
        }
    }

    fn happen(&mut self, occasion: Occasion) {
        if self.now() < self.paused_until && occasion.is_of_pgweir() {
            return self.schedule(self.paused_until, occasion);
        }
        match occasion {
            Occasion::Admit(number) => self.admit(number),
            Occasion::AllGone(wires) => self.check_all_gone(wires),
            Occasion::Arrive(sitting) => self.arrive(sitting),
            Occasion::Break(wire) => self.break_off(wire),
            Occasion::Connect(number) => self.connect(number),
            Occasion::Deliver(wire, inwards) => self.deliver(wire, inwards),
            Occasion::Drain(bound) => self.drain(bound),
            Occasion::Drive(wire) => self.drive(wire),
            Occasion::Heal => self.heal(),
            Occasion::LineWritten => self.line_written(),
            Occasion::Outside(wire) => self.step_outside(wire),
            Occasion::Turn(cluster, health) => self.turn(cluster, health),
            Occasion::Finish(worker) => self.finish(worker),
            Occasion::Mail(worker) => self.read_mail(worker),
            Occasion::ShutDown => self.shut_down(),
            Occasion::Strike(number) => self.strike(number),
            Occasion::Tick(worker) => {
                self.note_waits();
                self.check_cancels();
                self.check_names(worker);
                self.check_bursts();
                self.process.tick(Time(self.now()), worker);
                self.schedule(self.now() + TICK.as_micros() as u64, Occasion::Tick(worker));
            }
        }
    }

    /// Carries on what the last occasion has set in motion.
    fn pump(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let stir = self.stirs.borrow_mut().pop_front();
            match stir {
                Some(Stir::Put(wire, direction)) => {
                    self.note_contact(wire);
                    self.put(wire, direction == Direction::In);
                }
                Some(Stir::Room(wire, Direction::In)) => {
                    self.note_contact(wire);
                    self.note_heard(wire);
                    self.wake_outside(wire, self.now());
                }
                Some(Stir::Room(wire, Direction::Out)) | Some(Stir::Wake(wire)) => {
                    self.wake_driver(wire);
                }
                None => match self.process.with_requests() {
                    Some(worker) => self.serve_requests(worker),
                    None => return,
                },
            }
        }
        self.site.ledger.fail(Invariant::AllEnds, "what one event sets in motion has no end");
    }

    fn serve_requests(&mut self, worker: usize) {
        for request in self.process.take_requests(worker) {
            self.serve(worker, request);
        }
    }

    /// Does something for a worker outside.
    fn serve(&mut self, worker: usize, request: Request<Stream>) {
        match request {
            Request::Connect(endpoint, address) => {
                self.begin_to_connect(Place { worker, endpoint }, &address);
            }
            Request::Console(client, text) => self.carry_out(worker, client, &text),
            Request::JudgeCatalogue(rows) => self.judge_catalogue(worker, &rows),
            Request::HandOver(handover) => self.hand_over(*handover),
            Request::Nudge => {
                let others = self.process.nudge_others(worker);
                self.post(others);
            }
            Request::Log(event) => self.note_event(event),
        }
    }
}

impl Site {
    /// How late a timeout may be.
    pub(crate) fn slack_us(&self) -> u64 {
        SLACK_US + self.paused_us
    }

    /// A server has failed pgweir in a way that clients may be told of.
    pub(crate) fn trouble(&mut self, cluster: usize) {
        self.ledger.trouble.insert(cluster, self.trace.now);
    }

    /// A client of this pool has lost its server. A process that has given up its own connection is
    /// not known by its server.
    pub(crate) fn lost(&mut self, client: u32, pool: usize, how: &str) {
        self.ledger.lost(client, how);
        if !self.has_trouble(pool) && !self.ledger.some_gave_up {
            let text = format!("c{client} lost its server ({how}), and its pool has no trouble");
            self.ledger.fail(Invariant::LossHasCause, text);
        }
    }

    /// Whether a server that had this pool has failed pgweir lately.
    pub(crate) fn has_trouble(&self, pool: usize) -> bool {
        let trouble = |cluster| self.ledger.trouble.get(&cluster).copied();
        self.was_lately(pool, trouble)
    }

    /// A server has answered a login with this code.
    pub(crate) fn login_refused(&mut self, cluster: usize, code: &str) {
        self.trouble(cluster);
        self.ledger.said.insert((cluster, code.to_owned()), self.trace.now);
    }

    /// Whether one that had this pool has done so lately.
    pub(crate) fn was_refused(&self, pool: usize, code: &str) -> bool {
        let said = |cluster| self.ledger.said.get(&(cluster, code.to_owned())).copied();
        self.was_lately(pool, said)
    }

    /// Whether some server process has stood still since then.
    pub(crate) fn was_frozen(&self, since: u64) -> bool {
        since < self.frozen_until
    }

    /// Something has happened that may count as a mistake, if that is asked for.
    pub(crate) fn spring(&mut self, trap: Trap) {
        if self.trap == Some(trap) {
            self.ledger.sprung(trap);
        }
    }

    fn was_lately(&self, pool: usize, at: impl Fn(usize) -> Option<u64>) -> bool {
        let since = self.trace.now.saturating_sub(AFTERMATH_US);
        let mut clusters = self.rules.clusters(since, pool);
        clusters.any(|cluster| at(cluster).is_some_and(|at| at > since))
    }
}

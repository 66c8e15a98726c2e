use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use pgweir_engine::{
    Action, Actions, Address, Bytes, CatalogueRows, ClientId, DESCRIPTION_BYTES, Endpoint, Ends,
    Engine, Event, LOGIN_MESSAGE_BYTES, Mark, Plan, Snapshot, TICK, Time, UNIT_HELD_BYTES, Usage,
};

use crate::link::{Crossed, Interest, Link, RETAINED_BYTES};
use crate::links::Links;
use crate::piece::Piece;
use crate::transport::Transport;

pub use handover::Handover;
use lingering::Lingering;

mod answers;
mod handover;
mod held;
mod kept;
mod lingering;
mod output;

/// Bytes that are read at once. With what is retained in front of them they fill the scratch
/// buffer; it is shared by all connections of a worker.
const SCRATCH_BYTES: usize = 128 * 1024;

/// How often in a row [`Driver::reap`] finds a peer silent before it is taken for gone. The first
/// time says only that the silence has begun, so the others span two calls.
pub(crate) const SILENCES: u32 = 3;

/// A tick so long behind the one before is late.
const LATE: Duration = Duration::from_millis(2 * TICK.as_millis() as u64);

const _: () = assert!(RETAINED_BYTES > UNIT_HELD_BYTES, "a unit must fit what is retained");
const _: () = assert!(RETAINED_BYTES > DESCRIPTION_BYTES, "so must what says what rows are like");
const _: () = assert!(RETAINED_BYTES > LOGIN_MESSAGE_BYTES, "so must a message of a login");
const _: () = assert!(RETAINED_BYTES < SCRATCH_BYTES, "there must be room to read");

/// Moves bytes between connections as the engine says. It holds no policy, and it waits for
/// nothing: whoever owns it (a worker, or the simulator) tells it what is ready.
pub struct Driver<T> {
    engine: Engine,
    clients: Links<T>,
    servers: Links<T>,
    cancels: Links<T>,
    /// Connections that the engine has forgotten, with output that is not out yet.
    lingering: BTreeMap<Endpoint, Lingering<T>>,
    /// Connections that [`Driver::reap`] has found silent, how often in a row, and when last.
    silent: Vec<(Endpoint, u32, Time)>,
    scratch: Box<[u8]>,
    actions: Actions,
    /// Clients to go on with, in this order.
    resumes: VecDeque<ClientId>,
    /// When the last tick was, if there was one.
    ticked: Time,
    /// It was late, and passed over.
    passed_over: bool,
    /// Connections with output for [`Driver::finish`].
    gathered: Vec<Endpoint>,
    /// Writes that do not wait for [`Driver::finish`], because it has little to do.
    ungathered: u32,
    broken: Vec<Endpoint>,
    requests: Vec<Request<T>>,
    draining: bool,
}

/// What a driver cannot do itself.
#[derive(Debug)]
pub enum Request<T> {
    /// Open a connection and give it to [`Driver::connected`], or the cause of failure to
    /// [`Driver::connect_failed`].
    Connect(Endpoint, Address),
    /// Answer a console command by [`Driver::console_reply`].
    Console(ClientId, Box<[u8]>),
    /// Find the loud names in this and give them to [`Driver::catalogue_read`].
    JudgeCatalogue(Box<CatalogueRows>),
    /// Tell the operator.
    Log(Event),
    /// Give this connection to [`Driver::handed_over`] of another worker's driver.
    HandOver(Box<Handover<T>>),
    /// Call [`Driver::nudged`] of all other workers' drivers.
    Nudge,
}

/// What a call to [`Driver::readable`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// There may be more to read.
    More,
    /// There is nothing left to read for now.
    Drained,
}

impl<T: Transport> Driver<T> {
    /// A driver for this engine.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            clients: Links::new(),
            servers: Links::new(),
            cancels: Links::new(),
            lingering: BTreeMap::new(),
            silent: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            actions: Actions::default(),
            resumes: VecDeque::new(),
            ticked: Time::default(),
            passed_over: false,
            gathered: Vec::new(),
            ungathered: 0,
            broken: Vec::new(),
            requests: Vec::new(),
            draining: false,
        }
    }

    /// A client has connected.
    pub fn accept(&mut self, now: Time, io: T, ends: Option<Ends>) -> Endpoint {
        let id = self.engine.client_connected(now, ends);
        let endpoint = Endpoint::Client(id);
        self.clients.insert(endpoint, Link::new(io));
        self.settle(now);
        endpoint
    }

    /// Goes on with another configuration.
    pub fn reload(&mut self, now: Time, plan: Plan) {
        self.engine.reload(now, plan);
        self.settle(now);
    }

    /// A connection that was asked for is made. Gives it back if nobody wants it any more.
    pub fn connected(&mut self, now: Time, endpoint: Endpoint, io: T) -> Result<(), T> {
        if !self.engine.awaits(endpoint) {
            Mark::ConnectedInVain.hit();
            return Err(io);
        }
        let local = io.local();
        self.links(endpoint).insert(endpoint, Link::new(io));
        self.engine.connected(now, endpoint, local);
        self.settle(now);
        Ok(())
    }

    /// A connection that was asked for cannot be made.
    pub fn connect_failed(&mut self, now: Time, endpoint: Endpoint, cause: &str) {
        if !self.engine.awaits(endpoint) {
            return Mark::FailedInVain.hit();
        }
        self.engine.connect_failed(now, endpoint, cause);
        self.settle(now);
    }

    /// A connection may have something to read.
    pub fn readable(&mut self, now: Time, endpoint: Endpoint) -> Read {
        let mut scratch = std::mem::take(&mut self.scratch);
        let read = self.read(now, endpoint, &mut scratch);
        self.scratch = scratch;
        read
    }

    /// A connection has room to write.
    pub fn writable(&mut self, now: Time, endpoint: Endpoint) {
        if self.speak_last(endpoint) {
            return;
        }
        if self.engine.has_room(endpoint) {
            self.settle(now);
        }
        let Some(link) = self.links(endpoint).find(endpoint) else { return };
        match link.flush() {
            Ok(crossed) => self.crossed(endpoint, crossed),
            Err(_) => self.break_off(endpoint),
        }
        self.settle(now);
    }

    /// A connection was reset that is not read now.
    pub fn reset(&mut self, now: Time, endpoint: Endpoint, cause: &str) {
        Mark::ResetUnread.hit();
        self.failed(now, endpoint, cause);
        self.settle(now);
    }

    /// Time has passed: see [`Engine::tick`]. Where this comes late we have stood still ourselves,
    /// as a process or with the machine: what has come meanwhile is read before anybody is blamed
    /// for not having sent it, and the next tick counts.
    pub fn tick(&mut self, now: Time) {
        let is_late = now - std::mem::replace(&mut self.ticked, now) > LATE;
        self.passed_over = is_late && !self.passed_over;
        if self.passed_over {
            Mark::TickLate.hit();
            return;
        }
        self.engine.tick(now);
        self.settle(now);
        self.sweep_lingering(now);
    }

    /// Breaks off peers that have vanished without a word, where they keep a server from others:
    /// `silence` says of a peer that lets what it was sent go unacknowledged how long nothing has
    /// come from it. Who does so [`SILENCES`] times in a row, and in between, is gone.
    pub fn reap(&mut self, now: Time, silence: impl Fn(&T) -> Option<Duration>) {
        let before = std::mem::take(&mut self.silent);
        for endpoint in self.engine.engaged() {
            let link = self.links(endpoint).find(endpoint);
            let Some(silence) = link.and_then(|link| silence(&link.io)) else { continue };
            // That it is silent now says nothing of what came before: it was perhaps sent nothing.
            let known = before.iter().find(|(known, ..)| *known == endpoint);
            let since = known.filter(|(_, _, last)| silence >= now - *last);
            let times = since.map_or(1, |(_, times, _)| times + 1);
            if times < SILENCES {
                self.silent.push((endpoint, times, now));
            } else {
                Mark::SilentGivenUp.hit();
                self.failed(now, endpoint, "it does not answer any more");
                self.settle(now);
            }
        }
    }

    /// See [`Engine::drain`].
    pub fn drain(&mut self, now: Time) {
        self.draining = true;
        self.engine.drain(now);
        self.settle(now);
    }

    /// See [`Engine::shut_down`].
    pub fn shut_down(&mut self, now: Time) {
        self.draining = true;
        self.engine.shut_down(now);
        self.settle(now);
    }

    /// Ends a turn: goes on with the clients whose input had to wait and need not wait any more,
    /// and gives what was gathered for all connections to `write`, which tells of each piece how
    /// much of it there was room for. To be called soon, but behind everything that is ready now.
    ///
    /// Whoever is woken by a write may get the processor instead of us, to find this one piece and
    /// sleep again. The fewer calls the output of a turn takes, the less often that happens.
    /// Servers come first: they work while clients are written to, which find more at once the
    /// later they are woken.
    pub fn finish(&mut self, now: Time, mut write: impl FnMut(&mut [Piece<'_, T>])) {
        loop {
            while let Some(client) = self.resumes.pop_front() {
                self.resume_client(now, client);
                self.settle(now);
            }
            self.engine.turn_ends();
            self.settle(now);
            if !self.resumes.is_empty() {
                continue;
            }
            if self.gathered.is_empty() {
                return;
            }
            self.write_gathered(&mut write);
            self.settle(now);
        }
    }

    /// Whether [`Driver::finish`] has something to do.
    pub fn is_unfinished(&self) -> bool {
        !self.resumes.is_empty() || !self.gathered.is_empty() || self.engine.is_in_turn()
    }

    /// What is to be done outside, oldest first.
    pub fn take_requests(&mut self) -> Vec<Request<T>> {
        std::mem::take(&mut self.requests)
    }

    /// Whether anything is to be done outside.
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// What a connection is waited for; `None` once it is closed and may be let go.
    pub fn interest(&mut self, endpoint: Endpoint) -> Option<Interest> {
        if self.lingering.contains_key(&endpoint) {
            return Some(Interest { read: false, write: true, reset: false });
        }
        let interest = self.links(endpoint).find(endpoint)?.interest();
        // What a server has said before it went is still to be read; what a client still wants
        // when it cannot hear the answer is not to be done.
        let reset = !interest.read && matches!(endpoint, Endpoint::Client(_));
        Some(Interest { reset, ..interest })
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the engine is doing, with the buffers that are not its own but ours.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let mut snapshot = self.engine.snapshot(now);
        let buffered = self.all_links().map(Link::buffered).filter(|bytes| *bytes > 0);
        let sizes: Vec<_> = buffered.chain([self.scratch.len()]).collect();
        snapshot.memory.buffers = Usage::of_bytes(sizes.iter().sum(), sizes.len(), 0);
        snapshot
    }

    /// Connections that are open, those included that have only output left.
    pub fn connections(&self) -> usize {
        self.clients.len() + self.servers.len() + self.cancels.len() + self.lingering.len()
    }

    /// Panics if anything is left of connections that are gone. To be asked when none is open.
    pub fn check_empty(&self) {
        assert_eq!(self.connections(), 0, "connections are open");
        assert!(self.requests.is_empty(), "something is to be done");
        let (resumes, gathered) = (self.resumes.len(), self.gathered.len());
        let to_do = (resumes, gathered, self.broken.len(), self.silent.len());
        assert_eq!(to_do, (0, 0, 0, 0), "kept for nobody");
        self.engine.check_empty();
    }

    fn read(&mut self, now: Time, endpoint: Endpoint, scratch: &mut [u8]) -> Read {
        let Some(link) = self.links(endpoint).find(endpoint) else { return Read::Drained };
        if !link.interest().read {
            return Read::Drained;
        }
        let kept = link.retained.len();
        scratch[..kept].copy_from_slice(&link.retained);
        let room = scratch.len() - kept;
        match link.io.try_read(&mut scratch[kept..]) {
            Ok(0) => {
                link.ended = true;
                self.ended(now, endpoint, "the connection was closed");
                self.settle(now);
                Read::Drained
            }
            Ok(n) => {
                self.input(now, endpoint, &scratch[..kept + n]);
                self.settle(now);
                if n == room { Read::More } else { Read::Drained }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Drained,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Read::More,
            Err(error) => {
                Mark::ReadFailed.hit();
                link.ended = true;
                self.failed(now, endpoint, &error.to_string());
                self.settle(now);
                Read::Drained
            }
        }
    }

    /// Gives input to the engine, keeps what it leaves, and does what it says.
    fn input(&mut self, now: Time, endpoint: Endpoint, input: &[u8]) {
        let consumed = match endpoint {
            Endpoint::Client(id) => self.engine.client_input(now, id, input),
            Endpoint::Server(id) => self.engine.server_input(now, id, input),
            // Nothing is said on it; the end of the stream is what counts.
            Endpoint::Cancel(_) => input.len(),
        };
        if let Some(link) = self.links(endpoint).find(endpoint) {
            let left = &input[consumed..];
            if left.is_empty() {
                link.retained = Vec::new();
            } else {
                link.retained.clear();
                link.retained.extend_from_slice(left);
                Mark::InputFull.hit_if(link.retained.len() >= RETAINED_BYTES);
            }
        }
        self.act(input);
    }

    fn ended(&mut self, now: Time, endpoint: Endpoint, cause: &str) {
        match endpoint {
            Endpoint::Client(id) => self.engine.client_ended(now, id),
            Endpoint::Server(id) => self.engine.server_broken(now, id, cause),
            Endpoint::Cancel(id) => self.engine.cancel_closed(now, id),
        }
    }

    fn failed(&mut self, now: Time, endpoint: Endpoint, cause: &str) {
        match endpoint {
            Endpoint::Cancel(id) => self.engine.cancel_broken(now, id),
            Endpoint::Client(id) => self.engine.client_broken(now, id),
            Endpoint::Server(id) => self.engine.server_broken(now, id, cause),
        }
    }

    /// Does what the engine says until it has nothing more to say but what may wait for
    /// [`Driver::finish`].
    fn settle(&mut self, now: Time) {
        loop {
            if !self.engine.actions.list.is_empty() {
                self.act(&[]);
            } else if let Some(endpoint) = self.broken.pop() {
                self.failed(now, endpoint, "writing to it failed");
            } else {
                return;
            }
        }
    }

    fn resume_client(&mut self, now: Time, client: ClientId) {
        let endpoint = Endpoint::Client(client);
        let Some(link) = self.clients.find(endpoint) else { return };
        let retained = std::mem::take(&mut link.retained);
        let was_full = retained.len() >= RETAINED_BYTES;
        let consumed = self.engine.client_input(now, client, &retained);
        self.act_on(endpoint, retained, consumed, was_full);
    }

    fn act_on(&mut self, endpoint: Endpoint, input: Vec<u8>, consumed: usize, was_full: bool) {
        if consumed == 0 {
            // What was sent of it all the same stays for as long as it may have to be sent again.
            self.act(&input);
            if let Some(link) = self.links(endpoint).find(endpoint) {
                link.retained = input;
            }
            return;
        }
        if let Some(link) = self.links(endpoint).find(endpoint) {
            link.retained.extend_from_slice(&input[consumed..]);
            if was_full {
                Mark::InputFullConsumed.hit();
                link.io.wake();
            }
        }
        self.act(&input);
    }

    /// Carries out the actions of the engine's last call, whose input was `input`.
    fn act(&mut self, input: &[u8]) {
        let mut actions = std::mem::take(&mut self.actions);
        std::mem::swap(&mut actions, &mut self.engine.actions);
        let mut list = actions.list.drain(..).peekable();
        while let Some(action) = list.next() {
            match action {
                Action::Write(to, bytes) => {
                    let bytes = match &bytes {
                        Bytes::Input(range) => &input[range.clone()],
                        Bytes::Own(range) => &actions.own[range.clone()],
                    };
                    let more = matches!(list.peek(), Some(Action::Write(next, _)) if *next == to);
                    self.write(to, bytes, more);
                }
                Action::Hold(client, range) => self.hold(client, &input[range]),
                Action::Release(client) => self.release(client),
                Action::Discard(client) => self.discard(client),
                Action::Consume(client, n) => self.consume(client, n),
                Action::Restore(client, range) => self.restore(client, &actions.own[range]),
                Action::Resume(client) => self.resumes.push_back(client),
                Action::Read(endpoint, on) => {
                    if let Some(link) = self.links(endpoint).find(endpoint) {
                        link.paused = !on;
                        link.io.wake();
                    }
                }
                Action::HalfClose(endpoint) => {
                    if let Some(link) = self.links(endpoint).find(endpoint) {
                        link.half_close();
                    }
                }
                Action::Close(endpoint) => self.close(endpoint),
                Action::Abort(endpoint) => {
                    if let Some(mut link) = self.links(endpoint).remove(endpoint) {
                        // What was written before goes out, if there is room.
                        let _ = link.flush();
                        link.io.wake();
                    }
                    self.engine.closed(endpoint);
                }
                Action::Connect(endpoint, address) => {
                    self.requests.push(Request::Connect(endpoint, address));
                }
                Action::Console(client, text) => {
                    self.requests.push(Request::Console(client, text));
                }
                Action::Log(event) => self.requests.push(Request::Log(event)),
                Action::JudgeCatalogue(rows) => {
                    self.requests.push(Request::JudgeCatalogue(rows));
                }
                Action::HandOver(client, worker, handed) => self.let_go(client, worker, handed),
                Action::Nudge => self.requests.push(Request::Nudge),
            }
        }
        drop(list);
        actions.clear();
        self.actions = actions;
    }

    fn crossed(&mut self, endpoint: Endpoint, crossed: Crossed) {
        match crossed {
            Crossed::Above => self.engine.congested(endpoint, true),
            Crossed::Below => self.engine.congested(endpoint, false),
            Crossed::Neither => {}
        }
    }

    fn break_off(&mut self, endpoint: Endpoint) {
        let Some(link) = self.links(endpoint).find(endpoint) else { return };
        link.break_off();
        match endpoint {
            Endpoint::Client(_) => {
                Mark::WriteToClientFailed.hit();
                self.broken.push(endpoint);
            }
            // What it may have said before it closed is read first, and then its end.
            Endpoint::Cancel(_) | Endpoint::Server(_) => {
                Mark::WriteToServerFailed.hit_if(matches!(endpoint, Endpoint::Server(_)));
                link.paused = false;
                link.io.wake();
            }
        }
    }

    fn link(&self, endpoint: Endpoint) -> Option<&Link<T>> {
        match endpoint {
            Endpoint::Cancel(_) => self.cancels.look(endpoint),
            Endpoint::Client(_) => self.clients.look(endpoint),
            Endpoint::Server(_) => self.servers.look(endpoint),
        }
    }

    fn links(&mut self, endpoint: Endpoint) -> &mut Links<T> {
        match endpoint {
            Endpoint::Cancel(_) => &mut self.cancels,
            Endpoint::Client(_) => &mut self.clients,
            Endpoint::Server(_) => &mut self.servers,
        }
    }
}

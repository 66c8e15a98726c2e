//! One pool, and whoever speaks with it: where each test begins.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pgweir_config::{Config, Room};
use pgweir_engine::{
    ClientState, Endpoint, Ends, Engine, Event, Joining, Loud, Mark, Marks, Member, Placement,
    Plan, ServerActivity, Snapshot, TICK, Time,
};
use pgweir_proxy::{Driver, Handover, Interest};
use pgweir_sql::Catalogue;
use pgweir_wire::{CancelKey, Initial};

use crate::line::Line;
use crate::messages::{
    authentication_ok, cancel_request, done, error, in_block, key_data, parameter_status, query,
    ready, startup,
};
use crate::peer::Peer;
use crate::world::{Task, World};

/// One pool and its limits.
pub(crate) struct Setup {
    pub(crate) mode: &'static str,
    pub(crate) size: usize,
    pub(crate) auth: &'static str,
    pub(crate) password: &'static str,
    /// Whose the console is.
    pub(crate) admin: &'static str,
    /// More lines of the section `general`.
    pub(crate) general: &'static str,
    /// More lines of the section of the pool.
    pub(crate) pool: &'static str,
    /// More lines of the section of the user.
    pub(crate) user: &'static str,
    /// Other pools: their databases.
    pub(crate) others: &'static [&'static str],
    /// Where the servers are.
    pub(crate) port: u16,
    /// Where those of the other pools are.
    pub(crate) others_port: u16,
    /// What cleans a server behind a session.
    pub(crate) reset_query: &'static str,
    /// Look at the engine only where the test asks for it: a look costs as much as there is.
    pub(crate) unchecked: bool,
    /// Units are put under one Sync wherever they may be, or nowhere.
    pub(crate) joins: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: "transaction",
            size: 1,
            auth: "trust",
            password: "password",
            admin: "admin",
            general: "",
            pool: "",
            user: "",
            others: &[],
            port: 5432,
            others_port: 5432,
            reset_query: "DISCARD ALL",
            unchecked: false,
            joins: false,
        }
    }
}

impl Setup {
    pub(crate) fn of_size(size: usize) -> Self {
        Self { size, ..Self::default() }
    }

    pub(crate) fn of_mode(mode: &'static str) -> Self {
        Self { mode, ..Self::default() }
    }

    pub(crate) fn with(general: &'static str) -> Self {
        Self { general, ..Self::default() }
    }

    fn config(&self) -> String {
        let Self { mode, size, auth, password, admin, general, pool, user, .. } = self;
        let Self { others, port, others_port, .. } = self;
        let others = others.iter().map(|database| (database, others_port));
        let pools = std::iter::once((&"db", port)).chain(others).map(|(database, port)| {
            let own_name = database.trim_matches('"');
            format!(
                "[pools.{database}]\npool_mode = '{mode}'\n{pool}\n\
                 [pools.{database}.users.0]\nusername = 'user'\npassword = '{password}'\n\
                 pool_size = {size}\n{user}\n\
                 [pools.{database}.shards.0]\nservers = [['127.0.0.1', {port}, 'primary']]\n\
                 database = '{own_name}'\n"
            )
        });
        let pools: String = pools.collect();
        // What a server hears is told message by message: nobody shares, unless that is the matter.
        let off = if general.contains("pipelining") { "" } else { "pipelining = 'off'\n" };
        format!(
            "[general]\nhost = '127.0.0.1'\nport = 6000\nauth_type = '{auth}'\n\
             admin_username = '{admin}'\nadmin_password = 'secret'\n\
             admin_auth_type = 'password'\n{off}{general}\n{pools}"
        )
    }

    fn plan(&self) -> Plan {
        self.plan_for(&mut Placement::new(1))
    }

    fn plan_for(&self, placement: &mut Placement) -> Plan {
        let mut config = match Config::parse(&self.config(), Path::new("stage.toml")) {
            Ok(config) => config,
            Err(report) => panic!("{report:?}"),
        };
        config.pools[0].users[0].reset_query = self.reset_query.to_owned();
        let plan = Plan::new(&config, "0.1.0", [8; 32]).expect("a plan");
        let joining = if self.joins { Joining::EAGER } else { Joining::NEVER };
        let mut plan = plan.joining(joining);
        placement.place(&mut plan);
        plan
    }
}

/// A driver, and everybody that it speaks with.
pub(crate) struct Stage(Rc<RefCell<World>>);

impl Stage {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self::with(setup, Engine::new(setup.plan(), [7; 32]))
    }

    /// So many workers, the first of which takes clients in. What they tell each other is on its
    /// way until [`Stage::deliver_to`].
    pub(crate) fn workers(setup: &Setup, count: usize) -> Vec<Self> {
        let plan = setup.plan_for(&mut Placement::new(count));
        let engines = Member::all(count)
            .into_iter()
            .map(|member| Engine::with(member, plan.clone(), [7; 32]));
        engines.map(|engine| Self::with(setup, engine)).collect()
    }

    fn with(setup: &Setup, engine: Engine) -> Self {
        // What another test on this thread has counted is none of this one's.
        Marks::take();
        Self(Rc::new(RefCell::new(World {
            driver: Driver::new(engine),
            now: 0,
            unchecked: setup.unchecked,
            turn_goes_on: false,
            tasks: Vec::new(),
            attempts: VecDeque::new(),
            cancels: VecDeque::new(),
            commands: Vec::new(),
            log: Vec::new(),
            loud: Some(Arc::new(Catalogue::default().loud())),
            catalogues: VecDeque::new(),
            departures: Vec::new(),
            nudges: false,
            servers: 0,
            tells_room: !setup.general.contains("instances"),
            written_together: Vec::new(),
            tells_names: true,
            rooms_told: 0,
        })))
    }

    /// A stage, its first server, and a client: nothing happens between them yet.
    pub(crate) fn ready(setup: &Setup) -> (Self, Peer, Peer) {
        let stage = Self::new(setup);
        let client = stage.newcomer(&[]);
        let server = stage.server();
        assert!(client.is_greeted());
        (stage, server, client)
    }

    /// A stage on which a timeout of 5 s has ended a client that has said `first`, if anything,
    /// which began a transaction.
    pub(crate) fn timed_out(setting: &str, first: &str) -> (Self, Peer) {
        let general = format!("{setting} = 5000\nlog_client_disconnections = false");
        let (stage, server, client) = Self::ready(&Setup::with(general.leak()));
        if !first.is_empty() {
            client.says([query(first)]);
            server.says([done(), in_block()]);
        }
        stage.wait(Duration::from_millis(5_100));
        (stage, client)
    }

    /// The loud names of every database that is asked about; `None`: the test says them.
    pub(crate) fn set_loud(&self, loud: Option<Arc<Loud>>) {
        self.0.borrow_mut().loud = loud;
    }

    /// The catalogues that servers have told are judged, or could not be. Says how many.
    pub(crate) fn judge_catalogue(&self, read: Result<Arc<Loud>, String>) -> usize {
        let mut world = self.0.borrow_mut();
        let told = std::mem::take(&mut world.catalogues);
        for rows in &told {
            world.judge_catalogue(rows, read.clone());
        }
        world.settle();
        told.len()
    }

    /// Servers that are asked for their catalogues do not answer by themselves.
    pub(crate) fn tell_no_names(&self) {
        self.0.borrow_mut().tells_names = false;
    }

    /// A connection that has said nothing yet.
    pub(crate) fn stranger(&self) -> Peer {
        self.stranger_from(None)
    }

    /// As [`Self::stranger`]; it is known where it comes from.
    pub(crate) fn stranger_from(&self, ends: Option<Ends>) -> Peer {
        let line = Line::new();
        let io = line.clone();
        let endpoint = self.event(|driver, now| driver.accept(now, io, ends));
        self.peer(endpoint, line)
    }

    /// A client that has sent its startup packet.
    pub(crate) fn newcomer(&self, parameters: &[(&str, &str)]) -> Peer {
        let stranger = self.stranger();
        let own = [("user", "user"), ("database", "db")];
        stranger.says([startup(&[&own[..], parameters].concat())]);
        stranger
    }

    /// A client that has logged in: what servers are set to is known.
    pub(crate) fn client(&self) -> Peer {
        let client = self.newcomer(&[]);
        assert!(client.is_greeted(), "nobody was greeted before");
        client
    }

    /// A client of another pool that has sent its startup packet.
    pub(crate) fn newcomer_to(&self, database: &str) -> Peer {
        let stranger = self.stranger();
        stranger.says([startup(&[("user", "user"), ("database", database)])]);
        stranger
    }

    /// What this worker has for another arrives there: clients, and, if it has something to say
    /// to all, that.
    pub(crate) fn deliver_to(&self, other: &Self) -> Vec<Peer> {
        let departures = std::mem::take(&mut self.0.borrow_mut().departures);
        let arrive = |departure: Handover<Line>| {
            let Handover { io, handed, input, .. } = departure;
            let line = io.clone();
            let endpoint = other.event(|driver, _| driver.handed_over(io, handed, input));
            other.peer(endpoint, line)
        };
        let peers = departures.into_iter().map(arrive).collect();
        if std::mem::take(&mut self.0.borrow_mut().nudges) {
            other.event(Driver::nudged);
        }
        peers
    }

    /// The worker that the oldest client is for that was given away.
    pub(crate) fn destination(&self) -> Option<usize> {
        self.0.borrow().departures.first().map(|departure| departure.worker)
    }

    /// Clients that were given to another worker.
    pub(crate) fn departures(&self) -> usize {
        self.0.borrow().departures.len()
    }

    /// Another configuration is loaded.
    pub(crate) fn reload(&self, setup: &Setup) {
        let plan = setup.plan();
        self.event(|driver, now| driver.reload(now, plan));
    }

    /// Somebody asks for the end of what a client has running.
    pub(crate) fn cancel(&self, client: &Peer) -> Peer {
        let stranger = self.stranger();
        stranger.says([cancel_request(&client.key())]);
        stranger
    }

    /// A cancel is wanted, reaches this server, and ends what its client has asked for, and the
    /// request for it.
    #[track_caller]
    pub(crate) fn assert_cancels(&self, server: &Peer, client: &Peer, requester: &Peer) {
        let cancel = self.cancel_line().expect("it is wanted");
        assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
        server.says([error("57014"), ready()]);
        cancel.ends();
        assert!(requester.is_closed());
        assert_eq!(client.heard(), "E(57014) Z");
    }

    /// Connections to servers that were asked for and neither made nor refused.
    pub(crate) fn attempts(&self) -> usize {
        let mut world = self.0.borrow_mut();
        let World { attempts, driver, .. } = &mut *world;
        attempts.retain(|attempt| driver.engine().awaits(*attempt));
        attempts.len()
    }

    /// The oldest attempt succeeds; the server has said nothing yet.
    pub(crate) fn bare_server(&self) -> Peer {
        self.bare_server_asked().0
    }

    /// As [`Self::bare_server`], and what it is asked for.
    pub(crate) fn bare_server_asked(&self) -> (Peer, Vec<(String, String)>) {
        let server = self.made(self.attempt()).expect("the server is not wanted any more");
        let startup = server.heard_bytes();
        let (initial, _) =
            Initial::parse(&startup).expect("a startup packet").expect("a whole one");
        let Initial::Startup(startup) = initial else { panic!("{initial:?}") };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let asked = startup.parameters().map(|(name, value)| (text(name), text(value)));
        (server, asked.collect())
    }

    /// The oldest attempt succeeds, and so does the login.
    pub(crate) fn server(&self) -> Peer {
        self.server_set_to(&[])
    }

    /// As [`Self::server`]; it reports to be set to this.
    pub(crate) fn server_set_to(&self, settings: &[(&str, &str)]) -> Peer {
        let server = self.bare_server();
        let reports = settings.iter().flat_map(|(name, value)| parameter_status(name, value));
        let welcome = self.welcome(&server);
        // Behind the first message, that all is well with us.
        let (ok, rest) = welcome.split_at(authentication_ok().len());
        server.says([ok, &reports.collect::<Vec<_>>(), rest]);
        server
    }

    /// What a server says when it lets us in.
    pub(crate) fn welcome(&self, server: &Peer) -> Vec<u8> {
        let mut world = self.0.borrow_mut();
        world.servers += 1;
        let key = CancelKey { process_id: 100 + world.servers, secret: Box::new([9, 8, 7, 6]) };
        let version = parameter_status("server_version", "15.1");
        let welcome = [authentication_ok(), version, key_data(&key), ready()].concat();
        server.key.set(Some(key));
        welcome
    }

    /// The oldest attempt fails.
    pub(crate) fn refuse_server(&self) {
        let endpoint = self.attempt();
        self.event(|driver, now| driver.connect_failed(now, endpoint, "connection refused"));
    }

    /// The oldest connection for a cancel is made, if it is still wanted.
    pub(crate) fn cancel_line(&self) -> Option<Peer> {
        let endpoint = self.0.borrow_mut().cancels.pop_front().expect("no cancel is under way");
        self.made(endpoint)
    }

    /// The oldest connection for a cancel cannot be made.
    pub(crate) fn refuse_cancel(&self) {
        let endpoint = self.0.borrow_mut().cancels.pop_front().expect("no cancel is under way");
        self.event(|driver, now| driver.connect_failed(now, endpoint, "connection refused"));
    }

    /// Connections for cancels that were asked for.
    pub(crate) fn cancels(&self) -> usize {
        self.0.borrow().cancels.len()
    }

    /// Time passes.
    pub(crate) fn wait(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(TICK);
            self.stand_still(step);
            left -= step;
        }
    }

    /// Time passes, and only then there is a tick.
    pub(crate) fn stand_still(&self, time: Duration) {
        self.0.borrow_mut().now += u64::try_from(time.as_micros()).expect("a short time");
        self.event(Driver::tick);
    }

    /// pgweir looks for peers that have vanished, and these were silent.
    pub(crate) fn look_for_silence(&self, silent: &[&Peer]) {
        let is_silent = |line: &Line| silent.iter().any(|peer| peer.line.is(line));
        self.event(|driver, now| driver.reap(now, |line| is_silent(line).then_some(Duration::MAX)));
    }

    /// pgweir looks, and nothing has come from this one for so long.
    pub(crate) fn look_at_silence(&self, peer: &Peer, silence: Duration) {
        let silence = |line: &Line| peer.line.is(line).then_some(silence);
        self.event(|driver, now| driver.reap(now, silence));
    }

    pub(crate) fn drain(&self) {
        self.event(Driver::drain);
    }

    pub(crate) fn shut_down(&self) {
        self.event(Driver::shut_down);
    }

    /// What is ready at the same time comes before the turn's end, from now on.
    pub(crate) fn keep_turn_open(&self) {
        self.0.borrow_mut().turn_goes_on = true;
    }

    /// Nothing else is ready: the turn ends.
    pub(crate) fn end_turn(&self) {
        let mut world = self.0.borrow_mut();
        world.turn_goes_on = false;
        world.settle();
    }

    /// The types of the first messages of what the last turn wrote together, in its order.
    pub(crate) fn written_together(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow().written_together).into_owned()
    }

    /// Commands for the console that have come since the last call.
    pub(crate) fn commands(&self) -> Vec<String> {
        let commands = std::mem::take(&mut self.0.borrow_mut().commands);
        commands.into_iter().map(|(_, text)| String::from_utf8_lossy(&text).into_owned()).collect()
    }

    /// The console answers a client.
    pub(crate) fn console_says(&self, to: &Peer, reply: &[u8]) {
        let Endpoint::Client(id) = to.endpoint else { panic!("not a client") };
        self.event(|driver, now| driver.console_reply(now, id, reply));
    }

    /// What the operator was told since the last call.
    /// That a server has said what it has room for, as the first one does, is left out.
    pub(crate) fn log(&self) -> Vec<Event> {
        let mut log = std::mem::take(&mut self.0.borrow_mut().log);
        log.retain(|event| !matches!(event, Event::RoomKnown { .. }));
        log
    }

    /// What the operator was told since the last call that servers have room for.
    pub(crate) fn rooms_known(&self) -> Vec<Option<Room>> {
        let log = std::mem::take(&mut self.0.borrow_mut().log);
        let rooms = log.into_iter().filter_map(|event| match event {
            Event::RoomKnown { room, .. } => Some(room),
            _ => None,
        });
        rooms.collect()
    }

    /// Why a server was contained since the log was looked at last.
    pub(crate) fn contained(&self) -> Option<String> {
        self.log().into_iter().find_map(|event| match event {
            Event::Contained { cause, .. } => Some(cause),
            _ => None,
        })
    }

    /// From now on servers do not say by themselves what they have room for.
    pub(crate) fn keep_rooms_untold(&self) {
        self.0.borrow_mut().tells_room = false;
    }

    /// How often a server was asked what it has room for, and has said it.
    pub(crate) fn rooms_told(&self) -> usize {
        self.0.borrow().rooms_told
    }

    /// What the servers are doing.
    pub(crate) fn servers(&self) -> Vec<ServerActivity> {
        self.snapshot().servers.iter().map(|server| server.state).collect()
    }

    /// What the clients are doing that have logged in, or are about to.
    pub(crate) fn clients(&self) -> Vec<ClientState> {
        self.snapshot().clients.iter().map(|client| client.state).collect()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let world = self.0.borrow();
        world.driver.snapshot(Time(world.now))
    }

    /// Connections that are open, whoever is at their other end.
    pub(crate) fn connections(&self) -> usize {
        self.0.borrow().driver.connections()
    }

    /// Clients that the end of the process would cut off.
    pub(crate) fn clients_left(&self) -> usize {
        self.0.borrow().driver.engine().clients()
    }

    /// Looks whether the engine's state is sound, on a stage that does not look by itself.
    pub(crate) fn check(&self) {
        self.0.borrow().driver.engine().check();
    }

    /// The oldest attempt that is still wanted.
    fn attempt(&self) -> Endpoint {
        assert!(self.attempts() > 0, "no server is asked for");
        self.0.borrow_mut().attempts.pop_front().expect("there is one")
    }

    fn made(&self, endpoint: Endpoint) -> Option<Peer> {
        let line = Line::new();
        let io = line.clone();
        self.event(|driver, now| driver.connected(now, endpoint, io)).ok()?;
        Some(self.peer(endpoint, line))
    }

    fn peer(&self, endpoint: Endpoint, line: Line) -> Peer {
        let idle = Interest { read: false, write: false, reset: false };
        let task = Task { endpoint, line: line.clone(), awaited: idle, moved: false };
        self.0.borrow_mut().tasks.push(task);
        self.0.borrow_mut().settle();
        Peer { world: Rc::clone(&self.0), endpoint, line, key: Cell::new(None) }
    }

    fn event<R>(&self, event: impl FnOnce(&mut Driver<Line>, Time) -> R) -> R {
        let mut world = self.0.borrow_mut();
        let result = world.step(event);
        world.settle();
        result
    }
}

/// Whether this test has taken a rare path since it asked last.
pub(crate) fn took(mark: Mark) -> bool {
    Marks::take().times(mark) > 0
}

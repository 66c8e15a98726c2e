//! An engine with everything around it: connections in memory, servers, and a clock that stands
//! still until it is told to move.

mod link;
mod outcome;

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pgweir_config::Config;
use pgweir_control::{Rates, answer};
use pgweir_engine::{
    Action, Bytes, CatalogueRows, ClientId, Endpoint, Engine, Event, Loud, Marks, Plan, Time,
};
use pgweir_sql::{Catalogue, Kind, Object, Source};
use pgweir_wire::Initial;

use crate::console::state;
use crate::cut::Cut;
use crate::postgres::{Login, Manners, Postgres};
pub(crate) use link::Fate;
use link::{Link, Peer};
pub(crate) use outcome::Outcome;

/// More than this happens in no run at once: an engine that goes on has gone astray.
const STEPS_MAX: usize = 20_000;

/// A statement takes no longer on a server that is shared.
const BRAKE: Duration = Duration::from_millis(50);

/// The name of each pool mode in the configuration.
const MODES: [&str; 3] = ["transaction", "session", "statement"];

/// What a configuration asks for, for each of [`MODES`], without servers that are shared and with
/// them: a user for each way to log in, and a console.
static PLANS: LazyLock<[[Plan; 2]; MODES.len()]> = LazyLock::new(|| {
    MODES.map(|mode| {
        ["off", "2x4"].map(|pipelining| {
            let text = include_str!("world.toml").replace("$MODE", mode);
            let text = text.replace("$PIPELINING", pipelining);
            let config = Config::parse(&text, "world.toml".as_ref());
            let config = config.expect("the configuration is valid");
            Plan::new(&config, "0.0.0", [6; 32]).expect("the secrets are usable")
        })
    })
});

/// Names of one letter behind which a session is changed, each in another way.
static LOUD: LazyLock<Arc<Loud>> = LazyLock::new(|| {
    let bodies = [
        ("l", "SELECT pg_advisory_lock(1)"),
        ("s", "SELECT set_config('a.b', 'c', false)"),
        ("t", "CREATE TEMP TABLE t (a int)"),
        ("u", "LOAD 'x'"),
    ];
    let object = |(oid, (name, body)): (u32, (&str, &str))| Object {
        id: (Kind::Function, oid),
        name: name.to_owned(),
        source: Source::Sql(body.to_owned()),
        is_quiet: false,
        is_immutable: false,
    };
    let objects = (1..).zip(bodies).map(object).collect();
    Arc::new(Catalogue { objects, uses: Vec::new() }.loud())
});

/// What a run is made of, besides its script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Which of [`MODES`].
    pub(crate) mode: usize,
    /// Servers are shared (`pipelining`).
    pub(crate) shared: bool,
    /// How servers are logged in to.
    pub(crate) login: Login,
    /// How servers behave.
    pub(crate) manners: Manners,
    /// How bytes arrive, on both sides.
    pub(crate) cut: Cut,
    /// A request for encryption is answered before its client says more, as the protocol wants.
    pub(crate) patient: bool,
}

impl Setting {
    /// Of a client that is trusted, as its server trusts us, in transaction mode.
    pub(crate) fn plain(manners: Manners, cut: Cut) -> Self {
        Self { mode: 0, shared: false, login: Login::Trust, manners, cut, patient: true }
    }
}

/// See the module.
pub(crate) struct World {
    engine: Engine,
    now: Time,
    setting: Setting,
    cut: Cut,
    links: Vec<Link>,
    resumes: VecDeque<ClientId>,
    connects: VecDeque<Endpoint>,
    commands: VecDeque<(ClientId, Box<[u8]>)>,
    /// What servers have said of their catalogues and nobody has judged yet.
    catalogues: Vec<CatalogueRows>,
    events: Vec<Event>,
    /// Connections to servers are refused.
    pub(crate) refusing: bool,
}

/// Names a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientLink(usize);

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        Marks::take();
        let plan = PLANS[setting.mode % MODES.len()][usize::from(setting.shared)].clone();
        Self {
            engine: Engine::new(plan, [5; 32]),
            now: Time(1_000_000),
            setting,
            cut: Cut::Whole,
            links: Vec::new(),
            resumes: VecDeque::new(),
            connects: VecDeque::new(),
            commands: VecDeque::new(),
            catalogues: Vec::new(),
            events: Vec::new(),
            refusing: false,
        }
    }

    /// From here on bytes arrive as the setting has it: until then whole, so that a run is not long
    /// before it begins.
    pub(crate) fn begin(&mut self) {
        self.cut = self.setting.cut;
    }

    /// A client connects.
    pub(crate) fn connect(&mut self) -> ClientLink {
        let id = self.engine.client_connected(self.now, None);
        self.open(Endpoint::Client(id), Peer::Client);
        ClientLink(self.links.len() - 1)
    }

    /// A client sends, and no other at the same time: of two that do it is open who was first.
    pub(crate) fn send(&mut self, client: ClientLink, bytes: &[u8]) {
        self.now = self.now + Duration::from_micros(1);
        let link = &mut self.links[client.0];
        if !link.ended {
            link.coming.extend_from_slice(bytes);
            self.read(client.0);
            self.follow_up();
        }
    }

    /// A client sends no more.
    pub(crate) fn end(&mut self, client: ClientLink) {
        self.peer_ends(client.0);
        self.follow_up();
    }

    /// A client's connection breaks.
    pub(crate) fn break_off(&mut self, client: ClientLink) {
        if let (Fate::Open, Endpoint::Client(id)) =
            (self.links[client.0].fate, self.links[client.0].endpoint)
        {
            self.engine.client_broken(self.now, id);
            self.act(&[]);
            self.follow_up();
        }
    }

    /// Servers without manners send these bytes: the first of them that is connected.
    pub(crate) fn server_sends(&mut self, bytes: &[u8]) {
        if let Some(at) = self.first_server() {
            self.links[at].coming.extend_from_slice(bytes);
            self.read(at);
            self.follow_up();
        }
    }

    /// The first server's connection breaks.
    pub(crate) fn lose_server(&mut self) {
        if let Some(at) = self.first_server()
            && let Endpoint::Server(id) = self.links[at].endpoint
        {
            self.links[at].ended = true;
            self.links[at].told = true;
            self.engine.server_broken(self.now, id, "connection reset by peer");
            self.act(&[]);
            self.follow_up();
        }
    }

    /// What is written to a client piles up, or no longer does.
    pub(crate) fn congest_client(&mut self, client: ClientLink, congested: bool) {
        self.congest(client.0, congested);
    }

    /// What is written to the first server piles up, or no longer does.
    pub(crate) fn congest_server(&mut self, congested: bool) {
        if let Some(at) = self.first_server() {
            self.congest(at, congested);
        }
    }

    /// No connection is congested any more.
    pub(crate) fn relieve(&mut self) {
        for at in 0..self.links.len() {
            self.congest(at, false);
        }
    }

    /// The statements that servers sleep over are over.
    pub(crate) fn wake(&mut self) {
        for link in &mut self.links {
            if let Peer::Server(server) = &mut link.peer {
                server.wake();
            }
        }
    }

    /// From here on the servers that there are say nothing but what they are told to.
    pub(crate) fn hush(&mut self) {
        for link in &mut self.links {
            if let Peer::Server(server) = &mut link.peer {
                server.manners = Manners::AtLogin;
            }
        }
    }

    /// Time passes, with nothing else in between but the engine's ticks, and the end of statements
    /// that take too long on a server that is shared.
    pub(crate) fn pass(&mut self, time: Duration) {
        let overruns = |link: &Link| matches!(&link.peer, Peer::Server(its) if its.overruns());
        if self.links.iter().any(overruns) {
            self.tick(BRAKE);
            for link in &mut self.links {
                if let Peer::Server(server) = &mut link.peer {
                    server.brake();
                }
            }
            self.settle();
        }
        self.tick(time);
    }

    fn tick(&mut self, time: Duration) {
        self.now = self.now + time;
        self.engine.tick(self.now);
        self.act(&[]);
        self.follow_up();
    }

    /// The engine is asked to drain.
    pub(crate) fn drain(&mut self) {
        self.engine.drain(self.now);
        self.act(&[]);
        self.follow_up();
    }

    /// Everything that can happen without time passing happens.
    pub(crate) fn settle(&mut self) {
        for _ in 0..STEPS_MAX {
            if !self.step() {
                return;
            }
            self.follow_up();
        }
        panic!("this never comes to rest");
    }

    /// The engine, to look at.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The present.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// What was written to a client, and what became of its connection.
    pub(crate) fn client(&self, client: ClientLink) -> (&[u8], Fate) {
        let link = &self.links[client.0];
        (&link.written, link.fate)
    }

    /// What was written to the first server that there was; nothing if there was none.
    pub(crate) fn first_written(&self) -> &[u8] {
        let mut servers = self.links.iter().filter(|link| matches!(link.peer, Peer::Server(_)));
        servers.next().map_or(&[], |link| &link.written)
    }

    /// Connections to servers that the engine has not closed.
    pub(crate) fn open_servers(&self) -> usize {
        let servers = self.links.iter().filter(|link| matches!(link.peer, Peer::Server(_)));
        servers.filter(|link| link.fate == Fate::Open).count()
    }

    /// Whether there is a server that can still say something.
    pub(crate) fn has_server(&self) -> bool {
        self.first_server().is_some()
    }

    /// What the engine has logged.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// What has been written to every connection since this world was made, and what became of it.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::of(&self.links, &self.events, &Marks::take())
    }

    fn open(&mut self, endpoint: Endpoint, peer: Peer) {
        self.links.push(Link::open(endpoint, peer));
    }

    fn first_server(&self) -> Option<usize> {
        let is_open = |link: &Link| link.fate == Fate::Open && !link.ended;
        self.links.iter().position(|link| matches!(link.peer, Peer::Server(_)) && is_open(link))
    }

    fn congest(&mut self, at: usize, congested: bool) {
        if self.links[at].fate == Fate::Open {
            self.engine.congested(self.links[at].endpoint, congested);
            self.act(&[]);
            self.follow_up();
        }
    }

    /// One thing happens; false if there is none left.
    fn step(&mut self) -> bool {
        if let Some(endpoint) = self.connects.pop_front() {
            self.answer_connect(endpoint);
        } else if let Some((client, command)) = self.commands.pop_front() {
            let snapshot = self.engine.snapshot(self.now);
            let mut reply = Vec::new();
            // That the process ends is not the engine's to see.
            answer(&command, &state(&snapshot, &Rates::new()), Ok(()), &mut reply);
            self.engine.console_reply(client, &reply);
            self.act(&[]);
        } else if let Some(at) = self.links.iter().position(Link::has_something_to_say) {
            self.peer_speaks(at);
        } else {
            return false;
        }
        true
    }

    /// Before anything else happens catalogues are judged, and clients are asked again as the
    /// engine wants it. The judge takes his time: all that came at once has come by then, in
    /// however many pieces.
    fn follow_up(&mut self) {
        self.engine.check();
        for rows in std::mem::take(&mut self.catalogues) {
            self.engine.catalogue_read(self.now, rows.database(), Ok(Arc::clone(&LOUD)));
            self.act(&[]);
            self.engine.check();
        }
        for _ in 0..STEPS_MAX {
            let Some(client) = self.resumes.pop_front() else { return };
            let endpoint = Endpoint::Client(client);
            let open = |link: &Link| link.endpoint == endpoint && link.fate == Fate::Open;
            if let Some(at) = self.links.iter().position(open) {
                self.input(at, &[]);
                self.engine.check();
            }
        }
        panic!("a client is resumed again and again");
    }

    fn answer_connect(&mut self, endpoint: Endpoint) {
        if !self.engine.awaits(endpoint) {
            return;
        }
        if self.refusing {
            self.engine.connect_failed(self.now, endpoint, "connection refused");
            return self.act(&[]);
        }
        let peer = match endpoint {
            Endpoint::Cancel(_) => Peer::Cancel,
            Endpoint::Client(_) => panic!("a client is connected to"),
            Endpoint::Server(_) => {
                let process_id = self.links.len() as i32 + 1;
                let Setting { login, manners, .. } = self.setting;
                Peer::Server(Box::new(Postgres::new(process_id, login, manners)))
            }
        };
        self.open(endpoint, peer);
        self.engine.connected(self.now, endpoint, None);
        self.act(&[]);
    }

    /// A peer that has something to say says it.
    fn peer_speaks(&mut self, at: usize) {
        let link = &mut self.links[at];
        match &mut link.peer {
            Peer::Client => {}
            Peer::Cancel => {
                if let Ok(Some((Initial::CancelRequest(key), _))) = Initial::parse(&link.written) {
                    for link in &mut self.links {
                        if let Peer::Server(server) = &mut link.peer {
                            server.cancel(&key);
                        }
                    }
                }
                return self.peer_ends(at);
            }
            Peer::Server(server) => {
                link.coming.append(&mut server.output);
                if server.closed {
                    return self.peer_ends(at);
                }
            }
        }
        self.read(at);
    }

    fn peer_ends(&mut self, at: usize) {
        self.links[at].ended = true;
        self.read(at);
    }

    /// Gives the engine what a peer has sent, as it arrives. If it asks to stop in the middle, what
    /// was sent before is on its way already.
    fn read(&mut self, at: usize) {
        if self.links[at].paused {
            return;
        }
        let coming = std::mem::take(&mut self.links[at].coming);
        let mut rest = &coming[..];
        while self.links[at].fate == Fate::Open && !rest.is_empty() {
            let link = &self.links[at];
            let n = self.cut.next(rest.len().min(link.unanswerable(rest, self.setting.patient)));
            let piece = rest.split_off(..n).expect("no more than there is");
            if self.input(at, piece) {
                self.engine.check();
            }
        }
        let link = &mut self.links[at];
        if link.fate == Fate::Open && link.ended && !link.told {
            link.told = true;
            match link.endpoint {
                Endpoint::Cancel(id) => self.engine.cancel_closed(self.now, id),
                Endpoint::Client(id) => self.engine.client_ended(self.now, id),
                Endpoint::Server(id) => {
                    self.engine.server_broken(self.now, id, "the connection was closed");
                }
            }
            self.act(&[]);
            self.engine.check();
        }
    }

    /// Gives the engine what it has not consumed yet, and `more` behind it. Says whether it has
    /// done anything with it.
    fn input(&mut self, at: usize, more: &[u8]) -> bool {
        let link = &mut self.links[at];
        let mut input = std::mem::take(&mut link.retained);
        input.extend_from_slice(more);
        let consumed = match link.endpoint {
            Endpoint::Cancel(_) => input.len(),
            Endpoint::Client(id) => self.engine.client_input(self.now, id, &input),
            Endpoint::Server(id) => self.engine.server_input(self.now, id, &input),
        };
        assert!(consumed <= input.len(), "more is consumed than there is");
        self.links[at].retained.extend_from_slice(&input[consumed..]);
        let has_acted = consumed > 0 || !self.engine.actions.list.is_empty();
        self.act(&input);
        has_acted
    }

    /// Does what the engine says.
    fn act(&mut self, input: &[u8]) {
        let actions = std::mem::take(&mut self.engine.actions);
        for action in actions.list {
            match action {
                Action::Write(to, bytes) => match bytes {
                    Bytes::Input(range) => self.write(to, &input[range]),
                    Bytes::Own(range) => self.write(to, &actions.own[range]),
                },
                Action::Hold(client, range) => {
                    if let Some(link) = self.link(Endpoint::Client(client)) {
                        link.held.extend_from_slice(&input[range]);
                    }
                }
                Action::Release(client) => {
                    let to = Endpoint::Client(client);
                    let held = self.link(to).map(|link| std::mem::take(&mut link.held));
                    self.write(to, &held.unwrap_or_default());
                }
                Action::Discard(client) => {
                    if let Some(link) = self.link(Endpoint::Client(client)) {
                        link.held.clear();
                    }
                }
                Action::Consume(client, n) => {
                    if let Some(link) = self.link(Endpoint::Client(client)) {
                        assert!(n <= link.retained.len(), "more is done with than is retained");
                        link.retained.drain(..n);
                    }
                }
                Action::Restore(client, range) => {
                    if let Some(link) = self.link(Endpoint::Client(client)) {
                        link.retained.splice(..0, actions.own[range].iter().copied());
                    }
                }
                Action::Resume(client) => self.resumes.push_back(client),
                Action::Read(endpoint, on) => {
                    if let Some(link) = self.link(endpoint) {
                        link.paused = !on;
                    }
                }
                Action::Connect(endpoint, _) => self.connects.push_back(endpoint),
                Action::HalfClose(endpoint) => {
                    let peer = self.link(endpoint).map(|link| &mut link.peer);
                    if let Some(Peer::Server(server)) = peer {
                        server.closed = true;
                    }
                }
                Action::Close(endpoint) => self.close(endpoint, Fate::Closed),
                Action::Abort(endpoint) => self.close(endpoint, Fate::Aborted),
                Action::Console(client, command) => self.commands.push_back((client, command)),
                Action::Log(event) => self.events.push(event),
                Action::JudgeCatalogue(rows) => self.catalogues.push(*rows),
                Action::HandOver(..) | Action::Nudge => unreachable!("there is one worker"),
            }
        }
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) {
        let link = self.link(to);
        let link = link.unwrap_or_else(|| panic!("{to:?} is written to and is not open"));
        link.written.extend_from_slice(bytes);
        if let Peer::Server(server) = &mut link.peer {
            server.input(bytes);
        }
    }

    fn close(&mut self, endpoint: Endpoint, fate: Fate) {
        // A connection that is not made yet can be given up too.
        if let Some(link) = self.link(endpoint) {
            link.fate = fate;
            link.coming = Vec::new();
        }
        self.engine.closed(endpoint);
    }

    /// The connection that the engine calls so; none if it is not open.
    fn link(&mut self, endpoint: Endpoint) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.endpoint == endpoint && link.fate == Fate::Open)
    }
}

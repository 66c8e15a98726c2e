use std::collections::BTreeMap;
use std::io::ErrorKind;

use pgweir_proxy::Transport;
use pgweir_wire::{CancelKey, Initial, Startup, TransactionStatus, backend};

use crate::language::Tag;
use crate::network::Stream;
use crate::random::Dice;
use crate::session::{Advance, Inbox, Session, State, VERSION, write_error, write_fatal};
use crate::world::Site;

/// A process of a fake PostgreSQL server: what is behind one of its connections.
pub(crate) struct Backend {
    pub(crate) process_id: i32,
    /// Which server it belongs to.
    pub(crate) cluster: usize,
    stream: Option<Stream>,
    phase: Phase,
    inbox: Inbox,
    /// Output for which there was no room yet; nothing else is done before it is out.
    sending: Vec<u8>,
    secret: [u8; 4],
    /// The configuration that it is to have read when it is next idle.
    version: u32,
    /// A cancel has arrived and was not looked at yet.
    cancelled: bool,
    /// It has been told to end.
    terminated: bool,
    dice: Dice,
}

enum Phase {
    /// The startup packet is awaited.
    Startup(Vec<u8>),
    /// It was a cancel, which takes effect at this time.
    Cancel {
        key: CancelKey,
        at: u64,
    },
    /// It does nothing, ever.
    Hung,
    Session {
        session: Box<Session>,
        wake_at: Option<u64>,
    },
}

/// Whether a server takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Up,
    /// Nobody listens.
    Down,
    /// It recovers: logins are answered with 57P03.
    Starting,
}

/// What a process asks of the rest of the world.
#[derive(Default)]
pub(crate) struct Outcome {
    /// When it wants to go on, if its connection does not stir before.
    pub(crate) wake_at: Option<u64>,
    /// The process to be cancelled.
    pub(crate) cancels: Option<CancelKey>,
    /// Notifications to all that listen.
    pub(crate) notifies: Vec<Tag>,
}

/// Bytes that a backend collects before it sends them (`PQ_SEND_BUFFER_SIZE`, pqcomm.c).
const SEND_BUFFER_BYTES: usize = 8 * 1024;

/// Steps of a session in one go.
const STEPS: usize = 64;

impl Backend {
    pub(crate) fn new(
        process_id: i32,
        cluster: usize,
        version: u32,
        stream: Stream,
        mut dice: Dice,
    ) -> Self {
        Self {
            process_id,
            cluster,
            stream: Some(stream),
            phase: Phase::Startup(Vec::new()),
            inbox: Inbox::default(),
            sending: Vec::new(),
            secret: (dice.below(1 << 32) as u32).to_be_bytes(),
            version,
            cancelled: false,
            terminated: false,
            dice,
        }
    }

    /// Does what there is to do now.
    pub(crate) fn step(&mut self, site: &mut Site, health: Health) -> Outcome {
        let mut outcome = Outcome::default();
        if self.stream.is_none() {
            return outcome;
        }
        if self.terminated && !matches!(self.phase, Phase::Cancel { .. }) {
            self.terminate(site);
            return outcome;
        }
        match &self.phase {
            Phase::Startup(_) => self.start(site, health, &mut outcome),
            Phase::Cancel { key, at } => {
                if site.trace.now >= *at {
                    outcome.cancels = Some(key.clone());
                    self.stream = None;
                } else {
                    outcome.wake_at = Some(*at);
                }
            }
            Phase::Hung => self.hang(),
            Phase::Session { .. } => self.run(site, &mut outcome),
        }
        outcome
    }

    /// A CancelRequest with this key has been acted on: a signal.
    pub(crate) fn cancel(&mut self, key: &CancelKey) {
        if let Phase::Session { session, .. } = &self.phase
            && key.process_id == self.process_id
            && *key.secret == self.secret
        {
            // A backend that waits for a command ignores it.
            self.cancelled = session.is_busy();
        }
    }

    /// `pg_terminate_backend`, or a fast shutdown.
    pub(crate) fn kill(&mut self) {
        self.terminated = true;
    }

    /// The machine is gone: not a word, and nothing more arrives.
    pub(crate) fn crash(&mut self, site: &mut Site) {
        if let Some(stream) = self.stream.take() {
            stream.reset();
        }
        self.end(site);
    }

    /// The configuration has changed.
    pub(crate) fn reload(&mut self, version: u32) {
        self.version = version;
    }

    /// Somebody has notified.
    pub(crate) fn notified(&mut self, by: Tag) {
        if let Phase::Session { session, .. } = &mut self.phase
            && session.state.listens
        {
            session.notify(self.process_id, by);
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.stream.is_none()
    }

    /// Whether it has got as far as a session.
    pub(crate) fn is_session(&self) -> bool {
        matches!(self.phase, Phase::Session { .. }) && self.stream.is_some()
    }

    fn start(&mut self, site: &mut Site, health: Health, outcome: &mut Outcome) {
        let (Phase::Startup(bytes), Some(stream)) = (&mut self.phase, &self.stream) else {
            return;
        };
        let mut buffer = [0; 1024];
        loop {
            match stream.try_read(&mut buffer) {
                Ok(0) => {
                    self.stream = None;
                    return;
                }
                Ok(n) => bytes.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.stream = None;
                    return;
                }
            }
        }
        let bytes = std::mem::take(bytes);
        match Initial::parse(&bytes) {
            Ok(None) => self.phase = Phase::Startup(bytes),
            Ok(Some((Initial::CancelRequest(key), _))) => {
                let late = site.faults.cancel_late;
                let most = if self.dice.chance(late) { 1_000_000 } else { 100 };
                let at = site.trace.now + self.dice.below(most);
                self.phase = Phase::Cancel { key, at };
                outcome.wake_at = Some(at);
            }
            Ok(Some((Initial::Startup(startup), length))) => {
                self.inbox.put(&bytes[length..]);
                self.log_in(site, health, &startup);
                outcome.wake_at = Some(site.trace.now);
            }
            other => site.ledger.fail(format!("a server was sent {other:?} first")),
        }
    }

    /// Only that the other side gives up is noticed.
    fn hang(&mut self) {
        let ended = |stream: &Stream| match stream.try_read(&mut [0; 64]) {
            Err(error) => error.kind() != ErrorKind::WouldBlock,
            Ok(n) => n == 0,
        };
        if self.stream.as_ref().is_some_and(ended) {
            self.stream = None;
        }
    }

    fn log_in(&mut self, site: &mut Site, health: Health, startup: &Startup<'_>) {
        if self.dice.chance(site.faults.login_hung) {
            site.trouble();
            self.phase = Phase::Hung;
            return;
        }
        let refusal = if health == Health::Starting {
            Some((b"57P03", "the database system is starting up"))
        } else if self.dice.chance(site.faults.login_refused) {
            Some(*self.dice.pick(&[
                (b"28P01", "password authentication failed"),
                (b"57P03", "the database system is shutting down"),
                (b"53300", "sorry, too many clients already"),
            ]))
        } else {
            None
        };
        if let Some((code, text)) = refusal {
            site.trouble();
            write_fatal(&mut self.sending, code, text);
            self.say_farewell();
            return;
        }
        let own = |name: &[u8]| ![&b"user"[..], b"database"].contains(&name);
        let settings = startup.parameters().filter(|(name, _)| own(name)).map(|(name, value)| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            (text(name).to_ascii_lowercase(), text(value))
        });
        let mut session = Session::new(settings.collect());
        session.state.reload(&self.version.to_string());
        greet(&mut self.sending, &mut session, self.process_id, &self.secret);
        self.phase = Phase::Session { session: Box::new(session), wake_at: None };
    }

    fn run(&mut self, site: &mut Site, outcome: &mut Outcome) {
        for _ in 0..STEPS {
            if !self.send(site) {
                return;
            }
            let Phase::Session { session, wake_at } = &mut self.phase else { return };
            if std::mem::take(&mut self.cancelled) && session.is_busy() {
                if session.reads_copy_data() && !self.inbox.has_copy() {
                    self.cancelled = true;
                } else {
                    hit(session, &mut self.inbox, site);
                    self.sending.append(&mut session.out);
                    *wake_at = None;
                }
            }
            if let Some(at) = *wake_at
                && site.trace.now < at
            {
                outcome.wake_at = Some(at);
                return;
            }
            *wake_at = None;
            let advance = session.advance(&mut self.inbox, &mut site.ledger);
            outcome.notifies.append(&mut session.state.announced);
            match advance {
                Advance::Went { flush } => {
                    if flush || session.out.len() >= SEND_BUFFER_BYTES {
                        self.sending.append(&mut session.out);
                    }
                }
                Advance::Sleeps(ms) => *wake_at = Some(site.trace.now + u64::from(ms) * 1_000),
                Advance::Starved => {
                    if session.is_idle() {
                        session.say_notifications();
                        session.read_configuration(&self.version.to_string());
                        self.sending.append(&mut session.out);
                    }
                    if !self.sending.is_empty() {
                        continue;
                    }
                    if !self.read(site) {
                        return;
                    }
                }
                Advance::Over => {
                    self.end(site);
                    return;
                }
            }
        }
        outcome.wake_at = Some(site.trace.now + self.dice.magnitude(50));
    }

    /// Sends what is to be sent. Says whether all of it is out.
    fn send(&mut self, site: &mut Site) -> bool {
        let Some(stream) = &self.stream else { return false };
        while !self.sending.is_empty() {
            match stream.try_write(&self.sending) {
                Ok(n) => drop(self.sending.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => {
                    self.end(site);
                    return false;
                }
            }
        }
        true
    }

    /// Reads what has come. Says whether anything has.
    fn read(&mut self, site: &mut Site) -> bool {
        let Some(stream) = &self.stream else { return false };
        let mut buffer = [0; 8 * 1024];
        match stream.try_read(&mut buffer) {
            Ok(n) if n > 0 => {
                self.inbox.put(&buffer[..n]);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => {
                self.end(site);
                false
            }
        }
    }

    /// It ends because it was told to.
    fn terminate(&mut self, site: &mut Site) {
        if let Phase::Session { session, .. } = &mut self.phase {
            self.sending.append(&mut session.out);
            let text = "terminating connection due to administrator command";
            write_fatal(&mut self.sending, b"57P01", text);
        }
        self.say_farewell();
        self.end(site);
    }

    /// Sends as much as there is room for, and closes.
    fn say_farewell(&mut self) {
        if let Some(stream) = self.stream.take() {
            // A FATAL that finds no room is lost, as on a socket that is closed.
            let _sent = stream.try_write(&self.sending);
        }
    }

    fn end(&mut self, site: &mut Site) {
        self.stream = None;
        if let Phase::Session { session, .. } = &mut self.phase {
            session.end(&mut site.ledger);
        }
    }
}

/// A cancel hits whatever runs.
fn hit(session: &mut Session, inbox: &mut Inbox, site: &mut Site) {
    match session.running() {
        Some(tag) => site.ledger.cancel_hit(tag.client, &tag.to_string()),
        None if session.sets_settings() => {
            site.ledger.fail("a cancel hit the settings that a server is lent with");
        }
        None => {}
    }
    site.trace.note("cancel", || format!("hits {:?}", session.running()));
    session.interrupt(b"57014", CANCELED, inbox, &mut site.ledger);
}

/// PostgreSQL's words for a statement that its client cancelled.
pub(crate) const CANCELED: &str = "canceling statement due to user request";

/// What a server says to a login: that it is accepted, its parameters, and a key.
pub(crate) fn greet(out: &mut Vec<u8>, session: &mut Session, process_id: i32, secret: &[u8]) {
    if let Some(report) = refused_settings(&session.state) {
        write_error(out, b"22023", &report);
        return;
    }
    backend::authentication_ok(out);
    backend::parameter_status(out, b"server_version", b"15.4");
    while let Some((name, value)) = session.state.unreported() {
        backend::parameter_status(out, name.as_bytes(), value.as_bytes());
    }
    let version = session.state.setting(VERSION);
    backend::parameter_status(out, VERSION.as_bytes(), version.as_bytes());
    backend::backend_key_data(out, &CancelKey { process_id, secret: secret.into() });
    backend::ready_for_query(out, TransactionStatus::Idle);
}

fn refused_settings(state: &State) -> Option<String> {
    let (name, value) = state.settings().find(|(name, value)| !State::is_valid(name, value))?;
    Some(format!("invalid value for parameter \"{name}\": \"{value}\""))
}

/// What a login with these settings would be told, apart from [`VERSION`].
pub(crate) fn parameters_of(settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut state = State::new(settings.clone());
    let mut parameters = BTreeMap::from([("server_version".to_owned(), "15.4".to_owned())]);
    while let Some((name, value)) = state.unreported() {
        parameters.insert(name.to_owned(), value);
    }
    parameters
}

mod login;

use std::io::ErrorKind;
use std::ops::Range;

use pgweir_proxy::Transport;
use pgweir_wire::CancelKey;

use crate::language::Tag;
use crate::network::Stream;
use crate::random::Dice;
use crate::rows::Row;
use crate::session::{Advance, Home, Inbox, Session, write_fatal};
use crate::world::Site;

pub(crate) use login::parameters_of;

/// A process of a fake PostgreSQL server: what is behind one of its connections.
pub(crate) struct Backend {
    pub(crate) process_id: i32,
    /// Which server it belongs to.
    pub(crate) cluster: usize,
    /// What it was asked for at its login.
    pub(crate) home: Option<Home>,
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
    /// It stands still, or has, from then on and until then.
    frozen: Range<u64>,
    /// Bytes that it has sent since it was last idle.
    said_bytes: usize,
    /// Its statement_timeout, in microseconds, and when that is over for what runs.
    statement_limit: Option<u64>,
    statement_ends: Option<u64>,
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
    /// It has done nothing since then, and never will. The other side must give it up.
    Hung {
        since: u64,
    },
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
    /// It has no room: logins are answered with 53300.
    Full,
    /// Nobody gets in.
    Refusing,
    /// Logins are not answered.
    Silent,
}

/// What a process did when it ended.
#[derive(Clone, Debug)]
pub(crate) struct Doing {
    pub(crate) home: Option<Home>,
    /// Whose transaction or batch was open.
    pub(crate) owner: Option<u32>,
    /// It was nobody's.
    pub(crate) clean: bool,
    /// It was being brought to a client's settings.
    pub(crate) prepared: bool,
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
    /// It has read whose server it is to be.
    pub(crate) introduced: bool,
    /// It has refused a login for want of room.
    pub(crate) full: bool,
    /// It has ended without being asked to.
    pub(crate) died: Option<Doing>,
}

/// Bytes that a backend collects before it sends them (`PQ_SEND_BUFFER_SIZE`, pqcomm.c).
const SEND_BUFFER_BYTES: usize = 8 * 1024;

/// What a backend may say behind its client before pgweir ends that.
const UNHEARD_BYTES: usize = 1024 * 1024;

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
            home: None,
            stream: Some(stream),
            phase: Phase::Startup(Vec::new()),
            inbox: Inbox::default(),
            sending: Vec::new(),
            secret: (dice.below(1 << 32) as u32).to_be_bytes(),
            version,
            cancelled: false,
            terminated: false,
            frozen: 0..0,
            said_bytes: 0,
            statement_limit: None,
            statement_ends: None,
            dice,
        }
    }

    /// Does what there is to do now.
    pub(crate) fn step(&mut self, site: &mut Site, health: Health) -> Outcome {
        let mut outcome = Outcome::default();
        if self.stream.is_none() {
            return outcome;
        }
        if site.trace.now < self.frozen.end {
            outcome.wake_at = Some(self.frozen.end);
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
            Phase::Hung { since } => {
                let since = *since;
                outcome.wake_at = self.hang(site, since);
            }
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

    /// It is stopped, and goes on at the end of this time.
    pub(crate) fn freeze(&mut self, time: Range<u64>) {
        self.frozen = time;
    }

    /// Whose statement it goes on with, if it goes on now and has stood still for so long.
    pub(crate) fn thaws(&mut self, now: u64, least_us: u64) -> Option<u32> {
        let time = self.frozen.clone();
        if time.is_empty() || now < time.end {
            return None;
        }
        self.frozen = 0..0;
        let client = self.running().map(|tag| tag.client);
        client.filter(|_| time.end - time.start >= least_us)
    }

    /// The statement of a client's that it runs.
    pub(crate) fn running(&self) -> Option<Tag> {
        match &self.phase {
            Phase::Session { session, .. } if self.stream.is_some() => session.running(),
            Phase::Session { .. }
            | Phase::Startup(_)
            | Phase::Cancel { .. }
            | Phase::Hung { .. } => None,
        }
    }

    /// What it is doing.
    pub(crate) fn doing(&self) -> Doing {
        match &self.phase {
            Phase::Session { session, .. } => Doing {
                home: self.home.clone(),
                owner: session.state.owner,
                clean: session.is_at_rest() && session.state.stains.is_empty(),
                prepared: session.is_prepared(),
            },
            Phase::Startup(_) | Phase::Cancel { .. } | Phase::Hung { .. } => {
                Doing { home: self.home.clone(), owner: None, clean: false, prepared: false }
            }
        }
    }

    /// Whether it has not answered a login yet.
    pub(crate) fn is_before_login(&self) -> bool {
        matches!(self.phase, Phase::Startup(_) | Phase::Hung { .. })
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

    fn run(&mut self, site: &mut Site, outcome: &mut Outcome) {
        for _ in 0..STEPS {
            if !self.send(site) {
                return;
            }
            self.check_interrupts(site);
            let Phase::Session { session, wake_at } = &mut self.phase else { return };
            if let Some(at) = *wake_at
                && site.trace.now < at
            {
                outcome.wake_at = Some(self.statement_ends.map_or(at, |ends| ends.min(at)));
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
                    if self.dice.chance(site.faults.server_dies) {
                        return self.die(site, outcome);
                    }
                }
                Advance::Sleeps(ms) => *wake_at = Some(site.trace.now + u64::from(ms) * 1_000),
                Advance::Starved => {
                    if session.is_idle() {
                        self.said_bytes = 0;
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

    /// Ends what runs, if it was cancelled or has taken too long.
    fn check_interrupts(&mut self, site: &mut Site) {
        let Phase::Session { session, wake_at } = &mut self.phase else { return };
        let now = site.trace.now;
        // The time is that of a message: a string of several statements counts as one.
        let limit = self.statement_limit.filter(|_| session.is_busy());
        self.statement_ends = limit.map(|limit| self.statement_ends.unwrap_or(now + limit));
        let too_long = self.statement_ends.is_some_and(|ends| ends <= now);
        let cancelled = std::mem::take(&mut self.cancelled) && session.is_busy();
        if !cancelled && !too_long {
            return;
        }
        if session.reads_copy_data() && !self.inbox.has_copy() {
            self.cancelled = cancelled;
            return;
        }
        if cancelled {
            hit(session, self.said_bytes, &mut self.inbox, site);
        } else {
            site.trace.note("timeout", || format!("hits {:?}", session.running()));
            session.interrupt(b"57014", TIMED_OUT, &mut self.inbox, &mut site.ledger);
        }
        self.statement_ends = None;
        self.sending.append(&mut session.out);
        *wake_at = None;
    }

    /// It ends in the middle of something.
    fn die(&mut self, site: &mut Site, outcome: &mut Outcome) {
        site.trouble(self.cluster);
        site.ledger.kills += 1;
        outcome.died = Some(self.doing());
        self.crash(site);
    }

    /// Sends what is to be sent. Says whether all of it is out.
    fn send(&mut self, site: &mut Site) -> bool {
        let Some(stream) = &self.stream else { return false };
        while !self.sending.is_empty() {
            match stream.try_write(&self.sending) {
                Ok(n) => {
                    self.sending.drain(..n);
                    self.said_bytes += n;
                }
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
            Ok(_) => {
                self.note_deserted(site);
                self.end(site);
                false
            }
            Err(_) => {
                self.end(site);
                false
            }
        }
    }

    /// It has read the end of the stream: perhaps in the middle of what a client has begun.
    fn note_deserted(&self, site: &mut Site) {
        let owner = self.doing().owner;
        if owner.is_some_and(|client| site.ledger.has_left(client)) {
            site.ledger.reach(Row::LeftBatch);
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

/// A cancel hits whatever runs, which has said so many bytes.
fn hit(session: &mut Session, said_bytes: usize, inbox: &mut Inbox, site: &mut Site) {
    let limited = site.rules.least(0, |rules| rules.times.transaction).is_some();
    let unheard = |client| site.ledger.has_left(client) && said_bytes > UNHEARD_BYTES;
    match session.running() {
        // pgweir's own, because there is nobody to hear all that.
        Some(tag) if unheard(tag.client) => site.ledger.reach(Row::LeftResult),
        // pgweir's own, because the transaction has taken too long. Its client must not hear of it.
        Some(tag) if limited && !site.ledger.awaits_cancel(tag.client) => {
            site.ledger.overdue(tag.client);
        }
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

/// PostgreSQL's words for a statement that has taken longer than statement_timeout.
pub(crate) const TIMED_OUT: &str = "canceling statement due to statement timeout";

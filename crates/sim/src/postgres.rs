mod health;
mod interrupt;
mod login;
mod outcome;
mod patience;
mod waits;

use std::io::ErrorKind;
use std::ops::Range;

use pgweir_proxy::Transport;
use pgweir_wire::CancelKey;

use crate::invariants::Invariant;
use crate::language::Tag;
use crate::locks::Lock;
use crate::network::Stream;
use crate::outbox::Outbox;
use crate::random::Dice;
use crate::room::Room;
use crate::rows::Row;
use crate::session::{Advance, BORN, Home, Inbox, Message, Session, State, all_asked, all_told};
use crate::trace::Who;
use crate::world::Site;
use outcome::{Announcement, Work};

pub(crate) use health::Health;
pub(crate) use interrupt::{CANCELED, CRASHED, DEADLOCK, LOCKED, TIMED_OUT};
pub(crate) use login::parameters_of;
pub(crate) use outcome::{Doing, Lease, Outcome};
pub(crate) use patience::READING_US;

/// A process of a fake PostgreSQL server: what is behind one of its connections.
pub(crate) struct Backend {
    pub(crate) process_id: i32,
    /// Which server it belongs to.
    pub(crate) cluster: usize,
    /// Whose it is, by what it was asked for at its login.
    pub(crate) home: Option<Home>,
    /// As whom it was logged in to.
    pub(crate) user: String,
    stream: Option<Stream>,
    phase: Phase,
    inbox: Inbox,
    /// Output for which there was no room yet; nothing else is done before it is out.
    sending: Outbox,
    secret: [u8; 4],
    /// The configuration that it begins with.
    version: u32,
    /// What its server has room for, and whether it is about to say so.
    room: Room,
    says_room: bool,
    /// It reports another configuration as soon as it is idle, not with its next ReadyForQuery.
    reports_at_once: bool,
    /// A cancel has arrived and was not looked at yet.
    cancelled: bool,
    /// It has been told to end.
    terminated: bool,
    /// It has said that it ends: it does when that is out.
    dying: bool,
    /// It stands still, or has, from then on and until then.
    frozen: Range<u64>,
    /// Since when there has been something to be read while it stands still.
    unread_since: Option<u64>,
    /// Bytes that it has sent since it was last idle, and its client there.
    said_bytes: usize,
    limits: Limits,
    /// When its statement_timeout is over for what runs.
    statement_ends: Option<u64>,
    /// How long it has waited since it was idle.
    waited_us: u64,
    /// For whom.
    waited_for: Option<u32>,
    /// It does not read on in the data of a COPY before that.
    reads_on_at: u64,
    /// Something has come to it since its login.
    asked: bool,
    /// It is a walsender.
    replicates: bool,
    work: Work,
    dice: Dice,
}

/// How long something may take in a process, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// A statement.
    statement: Option<u64>,
    /// Waiting for a lock, and how long until it is looked whether that is in vain.
    lock: Option<u64>,
    deadlock: u64,
}

/// What a session waits for.
#[derive(Clone, Debug)]
enum Wait {
    Nothing,
    /// For that to be over.
    Time(Range<u64>),
    /// Since when for this lock, which others may have.
    Lock {
        lock: Lock,
        since: u64,
    },
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
        wait: Wait,
    },
}

/// Bytes that a backend collects before it sends them (`PQ_SEND_BUFFER_SIZE`, pqcomm.c).
const SEND_BUFFER_BYTES: usize = 8 * 1024;

const FIRST_PROCESS_ID: i32 = 1_000;

/// Steps of a session in one go.
const STEPS: usize = 64;

impl Backend {
    /// `number` is that of its connection.
    pub(crate) fn new(
        now: u64,
        number: usize,
        cluster: usize,
        version: u32,
        room: Room,
        stream: Stream,
        mut dice: Dice,
    ) -> Self {
        Self {
            process_id: FIRST_PROCESS_ID + number as i32,
            cluster,
            home: None,
            user: String::new(),
            stream: Some(stream),
            phase: Phase::Startup(Vec::new()),
            inbox: Inbox::default(),
            sending: Outbox::default(),
            secret: (dice.below(1 << 32) as u32).to_be_bytes(),
            version,
            room,
            says_room: false,
            reports_at_once: dice.chance(0.5),
            cancelled: false,
            terminated: false,
            dying: false,
            frozen: 0..0,
            unread_since: None,
            said_bytes: 0,
            limits: Limits {
                statement: None,
                lock: Some(dice.magnitude(2_000_000)),
                deadlock: dice.magnitude(500_000),
            },
            statement_ends: None,
            waited_us: 0,
            waited_for: None,
            reads_on_at: 0,
            asked: false,
            replicates: false,
            work: Work::new(now),
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
            self.note_unread(site.trace.now);
            outcome.wake_at = Some(self.frozen.end);
            return outcome;
        }
        if self.terminated && !matches!(self.phase, Phase::Cancel { .. }) {
            self.terminate(site);
            outcome.wake_at = Some(self.frozen.end).filter(|end| *end > site.trace.now);
            outcome.unlocks = self.sync_locks(site);
            return outcome;
        }
        match &self.phase {
            Phase::Startup(_) => self.start(site, health, &mut outcome),
            Phase::Cancel { key, at } => {
                if site.trace.now >= *at {
                    let process = (self.cluster, key.process_id);
                    site.ledger.cancelled.insert(process, site.trace.now);
                    let breaks = self.dice.chance(site.faults.cancel_broken);
                    let acts = self.dice.chance(0.5) || !breaks;
                    outcome.cancels = acts.then(|| key.clone());
                    let stream = self.stream.take().filter(|_| breaks);
                    stream.into_iter().for_each(|stream| stream.reset());
                } else {
                    outcome.wake_at = Some(*at);
                }
            }
            Phase::Hung { since } => {
                let since = *since;
                outcome.wake_at = self.hang(site, since);
            }
            Phase::Session { .. } => {
                self.run(site, &mut outcome);
                outcome.unlocks |= self.sync_locks(site);
            }
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

    /// The machine is gone: not a word, and nothing more arrives. Says whether that gives locks
    /// back.
    pub(crate) fn crash(&mut self, site: &mut Site) -> bool {
        if let Some(stream) = self.stream.take() {
            stream.reset();
        }
        self.end(site);
        self.sync_locks(site)
    }

    /// The machine is gone, and the network does not say so: nothing is answered any more. Says
    /// whether that gives locks back.
    pub(crate) fn vanish(&mut self, site: &mut Site) -> bool {
        self.stream.take().into_iter().for_each(Stream::vanish);
        self.end(site);
        self.sync_locks(site)
    }

    /// Another process of its server has crashed, so it ends at once (`quickdie`, postgres.c). Says
    /// whether that gives locks back.
    pub(crate) fn quit(&mut self, site: &mut Site) -> bool {
        self.say_crash();
        self.end(site);
        self.sync_locks(site)
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

    /// Whether what runs is ended before long, since others share the server.
    pub(crate) fn is_braked(&self) -> bool {
        matches!(&self.phase, Phase::Session { session, .. } if session.state.braked)
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

    /// Since when it has had an open transaction or batch of this client's, if it has.
    pub(crate) fn has_transaction_of(&self, client: u32) -> Option<u64> {
        self.work.owned_since(client).filter(|_| self.is_session())
    }

    /// Whether it has not answered a login yet.
    pub(crate) fn is_before_login(&self) -> bool {
        matches!(self.phase, Phase::Startup(_) | Phase::Hung { .. })
    }

    /// Whose message it had last.
    pub(crate) fn last_client(&self) -> Option<u32> {
        self.work.client
    }

    /// Whether no message of a client's has come to it yet.
    pub(crate) fn is_unused(&self) -> bool {
        match &self.phase {
            Phase::Session { session, .. } => session.state.met == 0,
            Phase::Startup(_) | Phase::Hung { .. } => true,
            Phase::Cancel { .. } => false,
        }
    }

    /// The configuration has changed.
    pub(crate) fn reload(&mut self, version: u32) {
        match &mut self.phase {
            Phase::Session { session, .. } => session.reconfigure(&version.to_string()),
            Phase::Startup(_) | Phase::Cancel { .. } | Phase::Hung { .. } => {
                self.version = version;
            }
        }
    }

    /// Somebody has notified. Who begins to listen hears of nothing that was committed before that
    /// (`Exec_ListenPreCommit`, async.c).
    pub(crate) fn notified(&mut self, of: &Announcement) {
        if let Phase::Session { session, .. } = &mut self.phase
            && self.process_id != of.from
            && session.state.channels().next().is_some()
            && self.home.as_ref().is_some_and(|home| home.database == of.database)
        {
            session.notify(of.from, of.said.clone());
        }
    }

    /// Its name in the trace.
    pub(crate) fn who(&self) -> Who {
        Who('b', (self.process_id - FIRST_PROCESS_ID) as usize)
    }

    /// What it answers when it is asked what its server has room for.
    pub(crate) fn room(&self) -> Room {
        self.room
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.stream.is_none()
    }

    /// Whether it is a walsender.
    pub(crate) fn replicates(&self) -> bool {
        self.replicates
    }

    /// Whether it was started as a client had asked for.
    pub(crate) fn is_born(&self) -> bool {
        let asks = |state: &State| state.setting(BORN) != State::default_of(BORN);
        matches!(&self.phase, Phase::Session { session, .. } if asks(&session.state))
    }

    /// Whether it listens on any channel.
    pub(crate) fn listens(&self) -> bool {
        matches!(&self.phase, Phase::Session { session, .. } if session.state.listens())
    }

    /// Whether it has got as far as a session.
    pub(crate) fn is_session(&self) -> bool {
        matches!(self.phase, Phase::Session { .. }) && self.stream.is_some()
    }

    fn run(&mut self, site: &mut Site, outcome: &mut Outcome) {
        let who = self.who();
        if !self.inbox.has_no_message() {
            self.check_patience(site);
        }
        for _ in 0..STEPS {
            if !self.send(site) {
                if self.breaks_off(site, self.sending.unsent().len()) {
                    self.die(site, outcome);
                }
                return;
            }
            self.check_interrupts(site);
            if let Some(at) = self.wait(site) {
                outcome.wake_at = Some(at).filter(|at| *at < u64::MAX);
                return;
            }
            let Phase::Session { session, wait } = &mut self.phase else { return };
            let (unread, unsaid) = (self.inbox.left(), session.out.len());
            if session.asks_for_room() {
                self.says_room = true;
                outcome.says_room = true;
            }
            let advance = session.advance(&mut self.inbox, &mut site.ledger);
            if self.inbox.left() < unread {
                let read = self.inbox.taken_since(unread);
                site.trace.note(who, || format!("reads {}", all_asked(read)));
                if self.replicates && Message::all(read).any(|message| message.no_walsender_takes())
                {
                    let text = format!("{who} does not speak it: {}", all_asked(read));
                    site.ledger.fail(Invariant::RightProtocol, text);
                }
            }
            if session.out.len() > unsaid {
                let said = &session.out[unsaid..];
                site.trace.note(who, || format!("answers {}", all_told(said)));
            }
            let database = self.home.as_ref().map_or("", |home| home.database.as_str());
            let announced = session.take_announced().into_iter().map(|said| Announcement {
                from: self.process_id,
                database: database.to_owned(),
                said,
            });
            outcome.notifies.extend(announced);
            self.work.go_on(&session.state, site.trace.now, outcome);
            if session.is_idle() {
                self.waited_us = 0;
            }
            match advance {
                Advance::Went { flush } => {
                    if flush || session.out.len() >= SEND_BUFFER_BYTES {
                        self.sending.end().append(&mut session.out);
                    }
                    if flush && std::mem::take(&mut self.says_room) {
                        let said = self.stream.as_ref().map_or(0, Stream::written);
                        outcome.has_said_room = Some(said + self.sending.unsent().len() as u64);
                    }
                    outcome.unlocks |= self.sync_locks(site);
                    if self.dice.chance(site.faults.server_dies) {
                        return self.die(site, outcome);
                    }
                }
                Advance::Locks(key) => {
                    let database = database.to_owned();
                    let lock = Lock { cluster: self.cluster, database, key };
                    *wait = Wait::Lock { lock, since: site.trace.now };
                }
                Advance::Sleeps(ms) => {
                    let now = site.trace.now;
                    *wait = Wait::Time(now..now + u64::from(ms) * 1_000);
                }
                Advance::Starved => {
                    if session.is_idle() {
                        let unheard = |client| site.ledger.hears_nothing(client);
                        if !self.work.client.is_some_and(unheard) {
                            self.said_bytes = 0;
                        }
                        let notified = session.say_notifications();
                        if self.dice.chance(site.faults.server_mute) && notified {
                            return self.die(site, outcome);
                        }
                        if self.reports_at_once {
                            session.read_configuration();
                        }
                        self.sending.end().append(&mut session.out);
                    }
                    if !self.sending.is_empty() {
                        continue;
                    }
                    let rests = session.is_at_rest();
                    let copies = session.reads_copy_data() || self.inbox.is_in_copy_data();
                    if copies && self.hesitates(site) {
                        outcome.wake_at = Some(self.reads_on_at);
                        return;
                    }
                    if !self.read(site) {
                        return;
                    }
                    self.check_patience(site);
                    if self.inbox.has_no_message() && self.breaks_off(site, self.inbox.left()) {
                        return self.die(site, outcome);
                    }
                    let first = !std::mem::replace(&mut self.asked, true);
                    if self.dice.chance(site.faults.server_stillborn) && first {
                        return self.die(site, outcome);
                    }
                    if rests && self.dice.chance(site.faults.server_idles) {
                        return self.idle_out(site, outcome);
                    }
                    if self.balks(site, outcome) {
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

    /// Lets the others know which locks it has. Says whether it had more before.
    fn sync_locks(&self, site: &mut Site) -> bool {
        let Phase::Session { session, .. } = &self.phase else { return false };
        let database = self.home.as_ref().map_or("", |home| home.database.as_str());
        let held = session.state.locks.iter().map(|held| Lock {
            cluster: self.cluster,
            database: database.to_owned(),
            key: held.key,
        });
        let held = if self.stream.is_some() { held.collect() } else { Vec::new() };
        if self.stream.is_none() {
            site.locks.goes_on(self.process_id);
        }
        site.locks.has(self.process_id, held)
    }

    /// Sends what is to be sent. Says whether all of it is out.
    fn send(&mut self, site: &mut Site) -> bool {
        let Some(stream) = &self.stream else { return false };
        while !self.sending.is_empty() {
            match stream.try_write(self.sending.unsent()) {
                Ok(n) => {
                    self.sending.sent(n);
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

    /// What it is notified of from now on nobody will hear.
    fn hears_no_more(&self, site: &mut Site) {
        if let Some(home) = self.home.as_ref().filter(|_| self.listens()) {
            site.ledger.notices.ends(home, site.trace.now, site.frozen_until);
        }
    }

    fn end(&mut self, site: &mut Site) {
        self.stream = None;
        self.hears_no_more(site);
        if let Phase::Session { session, .. } = &mut self.phase {
            session.end(&mut site.ledger);
        }
    }
}

#[cfg(test)]
mod tests;

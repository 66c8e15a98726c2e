mod cut;
mod facts;
mod login;
mod lost;
mod moments;
mod oracle;
mod script;
mod verdict;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::rc::Rc;

use pgweir_proxy::Transport;
use pgweir_wire::CancelKey;

use crate::diet::{Item, Sitting};
use crate::invariants::Invariant;
use crate::ledger::{Ear, Ledger, RequestId};
use crate::network::Stream;
use crate::outbox::Outbox;
use crate::random::Dice;
use crate::session::{Message, all_asked, told};
use crate::trace::Who;
use crate::world::Site;
use cut::Cut;
use moments::Moments;
use oracle::Oracle;
use script::Script;

pub(crate) use facts::PoolFacts;
pub(crate) use moments::Contact;
pub(crate) use script::{Habit, STATEMENT_NAMES};

/// A fake client: one connection to pgweir, from its startup packet to its end.
pub(crate) struct Client {
    pub(crate) number: u32,
    pub(crate) sitting: Sitting,
    /// pgweir may have found too many others that log in.
    pub(crate) turned_away: bool,
    /// Something has happened that it is not to notice.
    pub(crate) struck: Option<Struck>,
    /// It is gone, and pgweir will see only later that nobody answers any more.
    pub(crate) vanished: bool,
    /// A server that had a transaction of its was struck, or one that it had left running.
    pub(crate) bereaved: bool,
    /// A unit of its was answered by pgweir, and no other one since.
    refused: bool,
    /// Something was rolled back since it was last outside a transaction.
    rolled_back: bool,
    pool: PoolFacts,
    stream: Option<Stream>,
    phase: Phase,
    outgoing: Outbox,
    incoming: Vec<u8>,
    /// It does not say who it is before this time.
    silent_until: u64,
    /// Its own direction is ended as soon as everything is written.
    half_close: bool,
    /// Bytes after which it cuts its connection off, and how.
    cut: Option<(usize, Cut)>,
    /// When it does the same, if it has something under way then, or waits to be let in.
    cut_at: Option<(u64, Cut)>,
    /// It neither reads nor writes any more, and closes its connection at this time.
    deaf_until: Option<u64>,
    oracle: Oracle,
    /// What it was notified of.
    ear: Ear,
    script: Script,
    key: Option<CancelKey>,
    settings: BTreeMap<String, String>,
    dice: Dice,
    /// What it does with each unit.
    whims: Dice,
    think_until: u64,
    cancel_at: Option<u64>,
    /// It has asked for a cancel.
    has_cancelled: bool,
    ending: Ending,
    moments: Moments,
    /// As it was when this step began.
    contact: Contact,
}

/// What has happened to the pool of a client that is not to notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Struck {
    /// A server was full when it waited for one.
    Full,
    /// A server was lost while it was between transactions.
    Idle,
    /// Its server was lost between the statements of a transaction.
    InBlock,
    /// A server that was prepared, for this client perhaps, was lost.
    Prepared,
    /// A server was lost when it waited for one.
    Waiting,
}

/// How long a notification takes at most where nothing is in its way.
const QUICK_US: u64 = 20_000;

/// Where it is in its life.
enum Phase {
    /// It has asked for TLS.
    Tls {
        startup: Vec<u8>,
    },
    /// Its startup packet is under way.
    Login {
        parameters: BTreeMap<String, String>,
        authenticated: bool,
    },
    Ready,
    /// It was told that the connection ends.
    Dismissed,
}

/// Whether a client is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// It has said so: what it is owed is still to come.
    Said,
    /// It has broken off, or has sent what is no message: anything may be lost.
    Rude,
}

/// What a client asks of the rest of the world.
#[derive(Default)]
pub(crate) struct Wish {
    pub(crate) wake_at: Option<u64>,
    /// A cancel of its own.
    pub(crate) cancel: Option<(RequestId, CancelKey)>,
    /// It was let in.
    pub(crate) greeted: bool,
}

impl Client {
    /// One that has no connection yet.
    pub(crate) fn new(site: &mut Site, pool: PoolFacts, sitting: Sitting, mut dice: Dice) -> Self {
        let now = site.trace.now;
        let (mut fate, whims, mut words) = (dice.fork(), dice.fork(), dice.fork());
        let plain = site.diet.lacks(Item::Habit(Habit::Settings));
        let pool = pool.drawn(&mut words.fork(), site);
        let (settings, startup) = login::startup(&pool, &mut dice.fork(), plain, &site.customs);
        let number = site.ledger.enrol(settings.clone(), pool.home());
        let tls = dice.chance(0.1) && !site.diet.lacks(Item::Habit(Habit::Tls));
        let mut client = Self {
            number,
            ear: Ear::default(),
            sitting,
            turned_away: false,
            struck: None,
            vanished: false,
            bereaved: false,
            refused: false,
            rolled_back: false,
            stream: None,
            phase: Phase::Ready,
            outgoing: Outbox::default(),
            incoming: Vec::new(),
            silent_until: 0,
            half_close: false,
            cut: None,
            cut_at: None,
            deaf_until: None,
            oracle: Oracle::new(settings.clone(), Rc::clone(&site.ledger.shapes)),
            script: Script::new(
                number,
                &pool,
                site.faults.is_roomy(),
                &site.customs,
                words,
                &site.diet,
                sitting,
            ),
            key: None,
            settings,
            think_until: 0,
            cancel_at: None,
            has_cancelled: false,
            ending: Ending::No,
            moments: Moments::new(now),
            contact: Contact::default(),
            pool,
            dice,
            whims,
        };
        let (is_cut, bytes) = (fate.chance(site.faults.client_cut), fate.magnitude(2_000));
        let how = Cut::draw(&mut fate);
        client.cut = is_cut.then_some((bytes as usize, how));
        let is_cut = fate.chance(site.faults.client_cut / 4.0);
        // Half of them while they are let in.
        let most = if fate.chance(0.5) { 1_000_000 } else { 1_000 };
        let (at, how) = (now + fate.magnitude(most), Cut::draw(&mut fate));
        client.cut_at = is_cut.then_some((at, how));
        let (is_slow, silence) = (fate.chance(site.faults.slow_login), fate.below(4_000_000));
        if is_slow {
            client.silent_until = now + silence;
        }
        if tls {
            client.outgoing = vec![0, 0, 0, 8, 4, 210, 22, 47].into();
            client.phase = Phase::Tls { startup };
        } else {
            client.outgoing = startup.into();
            client.phase = Phase::Login { parameters: BTreeMap::new(), authenticated: false };
        }
        client
    }

    /// The same with its connection.
    pub(crate) fn with(self, stream: Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Its name in the trace.
    pub(crate) fn who(&self) -> Who {
        Who('c', self.number as usize)
    }

    /// Who it is and what it wants, for the trace.
    pub(crate) fn introduction(&self, wire: usize) -> String {
        let PoolFacts { database, user, mode, replicates, .. } = &self.pool;
        let Sitting { seat, turn } = self.sitting;
        let mode = if *replicates { "replication" } else { mode.name() };
        let settings = &self.settings;
        format!(
            "connects to {database} as {user} on w{wire} (pool_mode {mode}, client.{seat}.{turn}) \
             with {settings:?}"
        )
    }

    /// Bytes up to the end of its startup packet, before any are sent.
    pub(crate) fn login_bytes(&self) -> usize {
        let behind = match &self.phase {
            Phase::Tls { startup } => startup.len(),
            Phase::Login { .. } | Phase::Ready | Phase::Dismissed => 0,
        };
        self.outgoing.unsent().len() + behind
    }

    /// Whether it is no more.
    pub(crate) fn is_over(&self) -> bool {
        self.stream.is_none()
    }

    /// Whether it is no more, and nobody has told it to go.
    pub(crate) fn has_left(&self) -> bool {
        self.is_over() && self.ending != Ending::No && !matches!(self.phase, Phase::Dismissed)
    }

    /// Whether it was let in, and knows of no end.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready) && self.stream.is_some()
    }

    /// What pgweir has told it as its process id.
    pub(crate) fn process_id(&self) -> Option<i32> {
        self.key.as_ref().map(|key| key.process_id)
    }

    /// Whether it is a replication client.
    pub(crate) fn replicates(&self) -> bool {
        self.pool.replicates
    }

    /// Which pool it asks for.
    pub(crate) fn draft(&self) -> usize {
        self.pool.draft
    }

    /// The number of the last statement that a cancel may end which is over by now. What has begun
    /// a batch may wait at pgweir, and with it what is still to come of that.
    pub(crate) fn last_cancelled(&self) -> u32 {
        self.script.statements() + u32::from(self.script.is_in_batch())
    }

    /// Whether it is between transactions.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_ready() && self.is_settled() && !self.oracle.is_in_block()
    }

    /// Whether it is in a transaction, between statements.
    pub(crate) fn is_idle_in_block(&self) -> bool {
        self.is_ready() && self.is_settled() && self.oracle.is_in_block()
    }

    /// Whether all that it has sent is answered, and it is not in the middle of a batch, which may
    /// have begun a transaction.
    fn is_settled(&self) -> bool {
        self.oracle.is_settled() && !self.script.is_in_the_middle()
    }

    /// Whether servers are to be started as it asks for.
    pub(crate) fn is_born(&self) -> bool {
        self.oracle.is_born()
    }

    /// Whether it waits for something that no server has begun.
    pub(crate) fn waits(&self, ledger: &Ledger) -> bool {
        let waits = match self.phase {
            Phase::Login { .. } => self.stream.is_some(),
            Phase::Ready => {
                let mut tags = self.oracle.unbegun().into_iter().peekable();
                self.is_ready() && tags.peek().is_some() && tags.all(|tag| !ledger.has_begun(tag))
            }
            Phase::Tls { .. } | Phase::Dismissed => false,
        };
        waits && self.outgoing.is_empty() && self.ending == Ending::No
    }

    /// Since when it may have been waiting for a server.
    pub(crate) fn may_wait_since(&self, ledger: &Ledger) -> Option<u64> {
        let asked_at = self.moments.asked_at;
        match self.phase {
            Phase::Tls { .. } | Phase::Dismissed => None,
            Phase::Login { .. } => Some(self.moments.since),
            Phase::Ready => {
                let begun = ledger.begun_at(self.number).is_some_and(|at| at >= asked_at);
                // Of several units one may wait behind another that was begun.
                let waits = !begun || self.moments.sends > 1;
                (waits && !self.oracle.is_settled()).then_some(asked_at)
            }
        }
    }

    /// Does what there is to do now.
    pub(crate) fn step(&mut self, site: &mut Site, contact: Contact) -> Wish {
        let mut wish = Wish::default();
        self.contact = contact;
        if let Some(until) = self.deaf_until {
            match site.trace.now < until {
                true => wish.wake(until),
                false => self.stream = None,
            }
            return wish;
        }
        let was_ready = self.is_ready();
        self.read(site, &mut wish);
        self.write(site, &mut wish);
        let now = site.trace.now;
        if self.stream.is_some()
            && matches!(self.phase, Phase::Ready)
            && self.ending == Ending::No
            && self.outgoing.is_empty()
        {
            if now < self.think_until {
                wish.wake(self.think_until);
            } else {
                self.look_back(site);
                self.act(site);
                wish.wake(now + self.dice.below(20));
            }
        }
        if let Some(at) = self.cancel_at {
            if at > now {
                wish.wake(at);
            } else {
                self.cancel_at = None;
                if self.stream.is_some() && self.key.is_some() {
                    let request = site.ledger.cancel_asked(self.number);
                    self.has_cancelled = true;
                    wish.cancel = self.key.clone().map(|key| (request, key));
                }
            }
        }
        self.lose_patience(site, &mut wish);
        wish.greeted = !was_ready && self.is_ready();
        self.check_overdue(site, &mut wish);
        if self.stream.is_none() {
            wish.wake_at = None;
        }
        wish
    }

    /// Between transactions, and with all read that there is, it has heard of all that was said a
    /// while ago.
    fn look_back(&mut self, site: &mut Site) {
        let reads_all = self.stream.as_ref().is_some_and(|stream| !stream.has_more());
        let told = reads_all && self.contact.attended && !self.contact.unsent;
        // What is under way comes at once where the network has room and no stalls.
        let quick = site.faults.is_roomy() && site.faults.stall == 0.0;
        let while_us = if quick { QUICK_US + site.paused_us } else { site.slack_us() };
        let before = site.trace.now.saturating_sub(while_us);
        if told && self.is_quiet() && !site.was_frozen(before) {
            self.check_told(site, |_, at| at < before);
        }
    }

    /// Where it stands, for whoever asks why it does not end.
    pub(crate) fn status(&self) -> String {
        let phase = match self.phase {
            Phase::Tls { .. } => "awaits the answer to its SSLRequest",
            Phase::Login { .. } => "logs in",
            Phase::Ready => "is ready",
            Phase::Dismissed => "is dismissed",
        };
        let owed = self.oracle.is_owed();
        let (unsent, ending) = (self.outgoing.unsent().len(), self.ending);
        format!("c{} {phase}, owed: {owed}, unsent: {unsent}, ending: {ending:?}", self.number)
    }

    fn act(&mut self, site: &mut Site) {
        let owed = self.oracle.is_owed();
        if owed && !self.script.goes_on_unanswered(&mut self.dice) {
            self.think_until = u64::MAX;
            if self.dice.chance(site.faults.client_cut) {
                let patience = self.dice.below(4_000_000);
                self.leave_at(site.trace.now + patience);
            }
            return;
        }
        // What it does with one unit shifts nothing with the next.
        let mut whims = self.whims.fork();
        if whims.chance(site.faults.client_hostile / 10.0) {
            self.outgoing = script::hostile(&mut whims).into();
            self.ending = Ending::Rude;
            site.ledger.breaks_off(self.number);
            site.trace.note(self.who(), || "sends what is no message");
            return;
        }
        let (settled, in_block) = (self.is_settled(), self.oracle.is_in_block());
        let (bytes, farewell) = self.script.next();
        site.roll.insert(self.sitting, self.script.units_so_far());
        if !bytes.is_empty() {
            site.ledger.schema.sends(self.number, site.trace.now, &bytes, settled && !in_block);
            self.moments.sent(site.trace.now, settled, in_block);
            site.trace.note(self.who(), || format!("sends {}", all_asked(&bytes)));
        }
        self.oracle.sent(&bytes);
        self.outgoing = bytes.into();
        if self.script.is_hasty() {
            let patience = whims.magnitude(5_000);
            self.leave_at(site.trace.now + patience);
        }
        self.takes_leave(site, farewell);
        if whims.chance(self.likely(site.faults.cancel)) {
            // A transaction that is to stand in for a lost one is soon there, and then used.
            let most = if self.oracle.is_lost() { 1_000 } else { 1_000_000 };
            self.cancel_at = Some(site.trace.now + whims.magnitude(most));
        }
        self.think_until = site.trace.now + self.script.think(&mut whims);
    }

    /// How likely it is to do something: more so, if it does it at all and has lost a transaction.
    fn likely(&self, chance: f64) -> f64 {
        if self.oracle.is_lost() && chance > 0.0 { 0.5 } else { chance }
    }

    fn write(&mut self, site: &mut Site, wish: &mut Wish) {
        if matches!(self.phase, Phase::Login { .. }) && site.trace.now < self.silent_until {
            return wish.wake(self.silent_until);
        }
        while !self.outgoing.is_empty() {
            let Some(stream) = &self.stream else { return };
            let split = self.dice.chance(self.likely(site.faults.split));
            let most = self.outgoing.unsent().len();
            let mut n = if split { self.dice.magnitude(most as u64) as usize } else { most };
            if let Some((left, how)) = self.cut {
                n = n.min(left);
                if n == 0 {
                    return self.cut_off(site, how);
                }
            }
            match stream.try_write(&self.outgoing.unsent()[..n]) {
                Ok(n) => {
                    self.outgoing.sent(n);
                    if let Some((left, _)) = &mut self.cut {
                        *left -= n;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What the other side had to say before may still be read.
                Err(_) => self.outgoing.clear(),
            }
            let hesitates = self.dice.chance(self.likely(site.faults.client_hesitates));
            let most = if self.script.dozes() { 4_000_000 } else { 500_000 };
            let (short, long) = (self.dice.magnitude(200), self.dice.below(most));
            let cancels = self.dice.chance(self.likely(site.faults.cancel));
            let leaves = self.dice.chance(self.likely(site.faults.client_cut / 4.0));
            if split && !self.outgoing.is_empty() {
                let pause = if hesitates { long } else { short };
                let changes_its_mind = site.trace.now + self.dice.below(pause);
                if hesitates && cancels {
                    self.cancel_at = Some(changes_its_mind);
                } else if hesitates && leaves {
                    self.leave_at(changes_its_mind);
                }
                wish.wake(site.trace.now + pause);
                return;
            }
        }
        if self.half_close
            && let Some(stream) = &self.stream
        {
            stream.shutdown();
        }
    }

    fn read(&mut self, site: &mut Site, wish: &mut Wish) {
        let mut buffer = [0; 4 * 1024];
        let slow = self.dice.chance(site.faults.slow_reader * 0.5);
        let most = if slow { self.dice.magnitude(512) as usize } else { buffer.len() };
        loop {
            let Some(stream) = &self.stream else { return };
            match stream.try_read(&mut buffer[..most]) {
                Ok(0) => return self.closed(site, "closed"),
                Ok(n) => {
                    self.incoming.extend_from_slice(&buffer[..n]);
                    self.hear(site);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.closed(site, "reset"),
            }
            if slow {
                wish.wake(site.trace.now + self.dice.magnitude(20_000));
                return;
            }
        }
    }

    /// Looks at every whole message that has come.
    fn hear(&mut self, site: &mut Site) {
        let mut at = 0;
        while self.stream.is_some() {
            if let Phase::Tls { startup } = &mut self.phase {
                let parameters = BTreeMap::new();
                match &self.incoming[at..] {
                    // It may be asked to leave before it has said who it is.
                    [b'N'] | [b'N', b'E', ..] => {
                        at += 1;
                        self.outgoing = std::mem::take(startup).into();
                        self.phase = Phase::Login { parameters, authenticated: false };
                    }
                    // Who is not let in is told so in the clear.
                    [b'E', ..] => self.phase = Phase::Login { parameters, authenticated: false },
                    _ => {
                        let text = format!("c{} got a wrong answer to SSLRequest", self.number);
                        site.ledger.fail(Invariant::RightLogin, text);
                        break;
                    }
                }
            }
            match Message::parse(&self.incoming[at..]) {
                Ok(Some((message, length))) => {
                    let raw = at..at + length;
                    at += length;
                    site.trace.note(self.who(), || format!("hears {}", told(&message)));
                    self.take(site, &message, raw);
                }
                Ok(None) => break,
                Err(()) => {
                    site.ledger.fail(
                        Invariant::WholeMessages,
                        format!("c{} got bytes that are no message", self.number),
                    );
                    break;
                }
            }
        }
        self.incoming.drain(..at);
    }

    fn take(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        let fatal = message.error().is_some_and(|error| error.is_fatal());
        match self.phase {
            Phase::Tls { .. } => {}
            Phase::Login { .. } => self.take_login(site, message),
            Phase::Ready if fatal => self.dismissed(site, message, raw),
            Phase::Ready => {
                // The next thing to do may have become possible.
                self.think_until = self.think_until.min(site.trace.now);
                self.take_reply(site, message, raw);
            }
            Phase::Dismissed => {
                let text = format!("c{} got more after a FATAL", self.number);
                site.ledger.fail(Invariant::LastWords, text);
            }
        }
    }
}

impl Wish {
    fn wake(&mut self, at: u64) {
        if at < u64::MAX {
            self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
        }
    }
}

//! Clients of the console. Nobody carries their commands out here: each is answered by its own
//! text, so that an answer that goes astray, or comes twice or out of turn, shows.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::ErrorKind;

use pgweir_proxy::Transport;
use pgweir_wire::frontend::{Target, write_copy_data, write_describe, write_parse, write_query};
use pgweir_wire::{ProtocolVersion, Startup, TransactionStatus, backend};

use crate::configuration::Configuration;
use crate::invariants::Invariant;
use crate::network::Stream;
use crate::outbox::Outbox;
use crate::random::Dice;
use crate::session::{Message, put};
use crate::trace::Who;
use crate::world::Site;

/// Who it is in every configuration.
pub(crate) const ADMIN: &str = "admin";

/// More than a command may have.
const TOO_LONG: usize = 33 * 1024;

/// A client of the console.
pub(crate) struct Admin {
    number: u32,
    stream: Stream,
    dice: Dice,
    /// What is to be said yet, one part when the one before is answered.
    turns: VecDeque<Turn>,
    outgoing: Outbox,
    incoming: Vec<u8>,
    owed: VecDeque<Due>,
    phase: Phase,
    /// Its stream ends when all of that is out.
    ends: bool,
    /// It reads little, and seldom.
    is_slow: bool,
    /// It does nothing before.
    rests_until: u64,
}

/// What is said in one go.
#[derive(Default)]
struct Turn {
    bytes: Vec<u8>,
    owed: Vec<Due>,
    end: End,
}

/// What becomes of the connection behind a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    GoesOn,
    /// It says no more, and reads what it is owed.
    Half,
    /// It takes no notice of what it is owed, and breaks its connection off.
    Whole,
    /// pgweir ends it.
    Theirs,
}

/// What it is to hear next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Due {
    /// The answer to this command, and that it may go on.
    Echo(String),
    /// The refusal of a batch or a call.
    Refusal,
    Ready,
    /// A word why it is cut off.
    Farewell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Login,
    Ready,
    /// It has heard its last words.
    Dismissed,
}

/// What comes of a step.
pub(crate) struct Stepped {
    pub(crate) over: bool,
    pub(crate) wake_at: Option<u64>,
}

impl Admin {
    pub(crate) fn new(number: u32, stream: Stream, mut dice: Dice, site: &Site) -> Self {
        let turns = script(number, &mut dice);
        let is_slow = dice.chance(site.faults.slow_reader);
        Self {
            number,
            stream,
            dice,
            turns,
            outgoing: Outbox::from(startup()),
            incoming: Vec::new(),
            owed: VecDeque::new(),
            phase: Phase::Login,
            ends: false,
            is_slow,
            rests_until: 0,
        }
    }

    /// Bytes up to the end of its login.
    pub(crate) fn login_bytes() -> usize {
        startup().len()
    }

    /// Does what there is to do.
    pub(crate) fn step(&mut self, site: &mut Site) -> Stepped {
        let now = site.trace.now;
        if now < self.rests_until {
            return Stepped { over: false, wake_at: Some(self.rests_until) };
        }
        let mut over = self.read(site);
        self.write();
        let answered = self.outgoing.is_empty() && self.owed.is_empty();
        if !over && answered && self.phase == Phase::Ready {
            over = self.act(site);
        }
        let wake_at = (now < self.rests_until && !over).then_some(self.rests_until);
        Stepped { over, wake_at }
    }

    /// Where it stands, for whoever asks why it does not end.
    pub(crate) fn status(&self) -> String {
        let (phase, unsent) = (self.phase, self.outgoing.unsent().len());
        let (owed, left) = (&self.owed, self.turns.len());
        format!("a{} {phase:?}, owed: {owed:?}, unsent: {unsent}, turns left: {left}", self.number)
    }

    /// The next thing that it says. Says whether that is its end.
    fn act(&mut self, site: &mut Site) -> bool {
        // Behind the last turn it waits for the end of the connection.
        let Some(Turn { bytes, owed, end }) = self.turns.pop_front() else { return false };
        site.trace.note(self.who(), || format!("says {} bytes for {owed:?}, {end:?}", bytes.len()));
        self.outgoing = Outbox::from(bytes);
        self.owed = owed.into();
        self.ends = end == End::Half;
        self.write();
        self.rests_until = site.trace.now + self.dice.magnitude(200_000);
        if end == End::Whole {
            self.stream.reset();
        }
        end == End::Whole
    }

    /// Sends what is to be sent.
    fn write(&mut self) {
        while !self.outgoing.is_empty() {
            match self.stream.try_write(self.outgoing.unsent()) {
                Ok(n) => self.outgoing.sent(n),
                // If the connection is gone there may be last words.
                Err(_) => return,
            }
        }
        if std::mem::take(&mut self.ends) {
            self.stream.shutdown();
        }
    }

    /// Reads what there is. Says whether that was the end.
    fn read(&mut self, site: &mut Site) -> bool {
        let most = if self.is_slow { self.dice.magnitude(2_000) as usize } else { 64 * 1024 };
        let mut bytes = vec![0; most];
        loop {
            match self.stream.try_read(&mut bytes) {
                Ok(0) => return self.ended(site, false),
                Ok(n) => self.incoming.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return self.ended(site, true),
            }
            while let Ok(Some((message, length))) = Message::parse(&self.incoming) {
                self.incoming.drain(..length);
                self.hear(site, &message);
            }
            if self.is_slow {
                self.rests_until = site.trace.now + self.dice.magnitude(20_000);
                return false;
            }
        }
    }

    fn hear(&mut self, site: &mut Site, message: &Message) {
        let error = message.error();
        let code = error.as_ref().and_then(|error| error.code).map(|code| *code.as_bytes());
        let is_last = error.is_some_and(|error| error.severity == b"FATAL");
        match (self.phase, message.tag) {
            (Phase::Dismissed, _) => self.fail(site, Invariant::LastWords, "hears more"),
            (Phase::Login, b'R' | b'S' | b'K') => {}
            (Phase::Login, b'Z') => self.phase = Phase::Ready,
            (before, b'E') if is_last => {
                self.phase = Phase::Dismissed;
                self.check_farewell(site, before, &code.unwrap_or_default());
            }
            (Phase::Login, tag) => {
                let what = format!("hears {} at login", char::from(tag));
                self.fail(site, Invariant::RightLogin, what);
            }
            (Phase::Ready, tag) => self.answered(site, tag, &message.body, code),
        }
    }

    fn answered(&mut self, site: &mut Site, tag: u8, body: &[u8], code: Option<[u8; 5]>) {
        let right = match (self.owed.front(), tag) {
            (Some(Due::Echo(text)), b'D') => body.ends_with(text.as_bytes()),
            (Some(Due::Echo(text)), b'C') => {
                let right = body.strip_suffix(b"\0") == Some(text.as_bytes());
                self.owed[0] = Due::Ready;
                right
            }
            (Some(Due::Refusal), b'E') => {
                self.owed.pop_front();
                code == Some(*b"0A000")
            }
            (Some(Due::Ready), b'Z') => {
                self.owed.pop_front();
                body == b"I"
            }
            (_, _) => false,
        };
        if !right {
            let text = format!("hears {} {}", char::from(tag), body.escape_ascii());
            self.fail(site, Invariant::OwnReplies, format!("{text}, and is owed {:?}", self.owed));
        }
    }

    /// It is cut off: for what it has said, or since this is the end; or is not let in.
    fn check_farewell(&self, site: &mut Site, before: Phase, code: &[u8; 5]) {
        let right = match before {
            Phase::Ready => match code {
                b"08P01" => self.owed.front() == Some(&Due::Farewell),
                b"57P01" => site.draining,
                _ => false,
            },
            Phase::Login => match code {
                // However many clients there are, unless there are many more.
                b"53300" => site.rules.least(0, too_many_to_log_in).is_some(),
                b"57P01" | b"57P03" => site.draining,
                b"08006" => site.rules.least(0, |rules| rules.times.login).is_some(),
                _ => false,
            },
            Phase::Dismissed => false,
        };
        if !right {
            let code = code.escape_ascii();
            self.fail(site, Invariant::RightRefusal, format!("is cut off with {code}"));
        }
    }

    /// Its stream has ended. If what it says is more than pgweir has read, that is a reset, and may
    /// take last words away.
    fn ended(&mut self, site: &mut Site, reset: bool) -> bool {
        let asked = self.turns.is_empty() && self.owed.is_empty();
        let is_cut_off = self.phase == Phase::Login || self.owed.contains(&Due::Farewell);
        let unread = reset && (is_cut_off || site.draining);
        if self.phase != Phase::Dismissed && !asked && !unread {
            self.fail(site, Invariant::EndIsSaid, "is cut off without a word");
        }
        if !self.incoming.is_empty() && !reset {
            self.fail(site, Invariant::WholeMessages, "is left with half a message");
        }
        true
    }

    fn fail(&self, site: &mut Site, broken: Invariant, what: impl Display) {
        site.ledger.fail(broken, format!("a{} {what}", self.number));
    }

    fn who(&self) -> Who {
        Who('a', self.number as usize)
    }
}

/// How many may log in at a time, or be there at all.
fn too_many_to_log_in(rules: &Configuration) -> Option<u64> {
    rules.limits.logins.or(rules.limits.clients)
}

/// What a client of the console says in the course of its life.
fn script(number: u32, dice: &mut Dice) -> VecDeque<Turn> {
    let mut asked = 0;
    let turns = (0..dice.between(1..=5)).map(|_| {
        let mut turn = Turn::default();
        for _ in 0..dice.magnitude(8) {
            turn.say(dice, || {
                asked += 1;
                format!("SHOW a{number}q{asked}")
            });
        }
        turn
    });
    let mut turns: VecDeque<_> = turns.collect();
    // What it has asked for is still answered, or it is not there to hear it.
    let mut last = Turn::default();
    last.say(dice, || format!("SHOW a{number}, the last"));
    last.end(dice);
    turns.push_back(last);
    turns
}

impl Turn {
    /// A command, or what is none. `command`: the text of the next one.
    fn say(&mut self, dice: &mut Dice, mut command: impl FnMut() -> String) {
        let Self { bytes, owed, .. } = self;
        match dice.below(10) {
            0 => {
                write_parse(bytes, b"", command().as_bytes(), &[]);
                owed.push(Due::Refusal);
                // In a batch that was refused nothing counts before its Sync.
                for _ in 0..dice.below(3) {
                    match dice.chance(0.5) {
                        true => write_query(bytes, command().as_bytes()),
                        false => write_describe(bytes, Target::Portal(b"")),
                    }
                }
                put(bytes, b'S', |_| {});
                owed.push(Due::Ready);
            }
            1 => {
                put(bytes, b'F', |body| body.extend_from_slice(&[0; 10]));
                owed.extend([Due::Refusal, Due::Ready]);
            }
            2 => {
                put(bytes, b'H', |_| {});
                write_copy_data(bytes, b"nobody asks for it");
            }
            3 => {
                put(bytes, b'S', |_| {});
                owed.push(Due::Ready);
            }
            _ => {
                let text = command();
                write_query(bytes, text.as_bytes());
                owed.push(Due::Echo(text));
            }
        }
    }

    /// It is the last one.
    fn end(&mut self, dice: &mut Dice) {
        let bytes = &mut self.bytes;
        self.end = dice.weighted(&[(3, End::Half), (3, End::Whole), (2, End::Theirs)]);
        match (self.end, dice.below(3)) {
            (End::GoesOn, _) => {}
            (End::Half | End::Whole, 0) => put(bytes, b'X', |_| {}),
            (End::Half | End::Whole, 1) => bytes.extend_from_slice(b"Q\0\0\0\x20half"),
            (End::Half | End::Whole, _) => {}
            (End::Theirs, 0) => put(bytes, b'y', |_| {}),
            (End::Theirs, 1) => write_query(bytes, &vec![b'x'; TOO_LONG]),
            (End::Theirs, _) => put(bytes, b'p', |body| body.extend_from_slice(b"secret\0")),
        }
        if self.end == End::Theirs {
            self.owed.push(Due::Farewell);
        }
    }
}

fn startup() -> Vec<u8> {
    let mut packet = Vec::new();
    let pairs = [("user", ADMIN), ("database", "pgweir")];
    let pairs = pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Startup::write(&mut packet, ProtocolVersion::V3_0, pairs);
    packet
}

/// The answer to a command: its own text, behind some rows, which are many now and then.
pub(crate) fn echo(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut reply = Vec::new();
    if dice.chance(0.3) {
        let value = [&vec![b'x'; dice.magnitude(4_000) as usize], text].concat();
        for _ in 0..dice.magnitude(40) {
            backend::data_row(&mut reply, [Some(&value[..])]);
        }
    }
    backend::command_complete(&mut reply, &String::from_utf8_lossy(text));
    backend::ready_for_query(&mut reply, TransactionStatus::Idle);
    reply
}

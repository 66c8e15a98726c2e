mod oracle;
mod script;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;

use pgweir_config::PoolMode;
use pgweir_proxy::Transport;
use pgweir_wire::{CancelKey, ProtocolVersion, Startup, backend};

use crate::language::Tag;
use crate::network::Stream;
use crate::postgres::{CANCELED, parameters_of};
use crate::random::Dice;
use crate::session::{Message, State, VERSION, describe};
use crate::world::Site;
use oracle::{Heard, Oracle};
use script::Script;

/// A fake client: one connection to pgweir, from its startup packet to its end.
pub(crate) struct Client {
    pub(crate) number: u32,
    pool: PoolFacts,
    stream: Option<Stream>,
    phase: Phase,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// Its own direction is ended as soon as everything is written.
    half_close: bool,
    /// Bytes after which it cuts its connection off, and how.
    cut: Option<(usize, Cut)>,
    oracle: Oracle,
    script: Script,
    key: Option<CancelKey>,
    settings: BTreeMap<String, String>,
    dice: Dice,
    think_until: u64,
    cancel_at: Option<u64>,
    ending: Ending,
}

/// What a client knows of the pool that it connects to.
#[derive(Clone, Debug)]
pub(crate) struct PoolFacts {
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) mode: PoolMode,
    /// Waiting for a server may end in an error.
    pub(crate) impatient: bool,
    /// Being silent for a while may end the connection.
    pub(crate) strict: bool,
}

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

/// How a client ends its connection when nobody expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Close,
    HalfClose,
    Reset,
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
    pub(crate) cancel: Option<CancelKey>,
}

impl Client {
    pub(crate) fn new(site: &mut Site, pool: PoolFacts, stream: Stream, mut dice: Dice) -> Self {
        let (settings, startup) = startup(&pool, &mut dice);
        let number = site.ledger.enrol(settings.clone());
        let tls = dice.chance(0.1);
        let mut client = Self {
            number,
            stream: Some(stream),
            phase: Phase::Ready,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            half_close: false,
            cut: None,
            oracle: Oracle::new(settings.clone()),
            script: Script::new(number, pool.mode, &mut dice),
            key: None,
            settings,
            think_until: 0,
            cancel_at: None,
            ending: Ending::No,
            pool,
            dice,
        };
        if client.dice.chance(site.faults.client_cut) {
            let how = *client.dice.pick(&[Cut::Close, Cut::HalfClose, Cut::Reset]);
            client.cut = Some((client.dice.magnitude(2_000) as usize, how));
        }
        if tls {
            client.outgoing = vec![0, 0, 0, 8, 4, 210, 22, 47];
            client.phase = Phase::Tls { startup };
        } else {
            client.outgoing = startup;
            client.phase = Phase::Login { parameters: BTreeMap::new(), authenticated: false };
        }
        client
    }

    /// Whether it is no more.
    pub(crate) fn is_over(&self) -> bool {
        self.stream.is_none()
    }

    /// Does what there is to do now.
    pub(crate) fn step(&mut self, site: &mut Site) -> Wish {
        let mut wish = Wish::default();
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
                    site.ledger.cancel_asked(self.number);
                    wish.cancel = self.key.clone();
                }
            }
        }
        if self.stream.is_none() {
            wish.wake_at = None;
        }
        wish
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
        let (unsent, ending) = (self.outgoing.len(), self.ending);
        format!("c{} {phase}, owed: {owed}, unsent: {unsent}, ending: {ending:?}", self.number)
    }

    fn act(&mut self, site: &mut Site) {
        let owed = self.oracle.is_owed();
        if owed && !self.script.goes_on_unanswered(&mut self.dice) {
            self.think_until = u64::MAX;
            return;
        }
        if self.dice.chance(site.faults.client_hostile / 10.0) {
            self.outgoing = script::hostile(&mut self.dice);
            self.ending = Ending::Rude;
            let number = self.number;
            site.trace.note(Who(number), || "sends what is no message".to_owned());
            return;
        }
        let mut bytes = Vec::new();
        let farewell = self.script.next(&mut bytes, &mut self.dice);
        self.oracle.sent(&bytes);
        self.outgoing = bytes;
        let (number, outgoing) = (self.number, &self.outgoing);
        site.trace.note(Who(number), || list(outgoing));
        match farewell {
            script::Farewell::None => {}
            script::Farewell::Terminate => self.ending = Ending::Said,
            script::Farewell::HalfClose => {
                self.ending = Ending::Said;
                self.half_close = true;
            }
        }
        if self.dice.chance(site.faults.cancel) {
            self.cancel_at = Some(site.trace.now + self.dice.magnitude(1_000_000));
        }
        self.think_until = site.trace.now + self.script.think(&mut self.dice);
    }

    fn write(&mut self, site: &mut Site, wish: &mut Wish) {
        while !self.outgoing.is_empty() {
            let Some(stream) = &self.stream else { return };
            let split = self.dice.chance(site.faults.split);
            let most = self.outgoing.len();
            let mut n = if split { self.dice.magnitude(most as u64) as usize } else { most };
            if let Some((left, _)) = self.cut {
                n = n.min(left);
            }
            if n == 0 {
                return self.cut_off(site);
            }
            match stream.try_write(&self.outgoing[..n]) {
                Ok(n) => {
                    self.outgoing.drain(..n);
                    if let Some((left, _)) = &mut self.cut {
                        *left -= n;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What the other side had to say before may still be read.
                Err(_) => self.outgoing.clear(),
            }
            if split && !self.outgoing.is_empty() {
                wish.wake(site.trace.now + self.dice.magnitude(200));
                return;
            }
        }
        if self.half_close
            && let Some(stream) = &self.stream
        {
            stream.shutdown();
        }
    }

    /// Ends the connection as nobody expects it.
    fn cut_off(&mut self, site: &mut Site) {
        let Some((_, how)) = self.cut.take() else { return };
        site.trace.note(Who(self.number), || format!("cuts its connection: {how:?}"));
        self.ending = Ending::Rude;
        self.outgoing.clear();
        match how {
            Cut::Close => self.stream = None,
            Cut::HalfClose => {
                if let Some(stream) = &self.stream {
                    stream.shutdown();
                }
            }
            Cut::Reset => {
                if let Some(stream) = self.stream.take() {
                    stream.reset();
                }
            }
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
                if self.incoming[at..] == *b"N" {
                    at += 1;
                    self.outgoing = std::mem::take(startup);
                    let parameters = BTreeMap::new();
                    self.phase = Phase::Login { parameters, authenticated: false };
                    break;
                }
                site.ledger.fail(format!("c{} got a wrong answer to SSLRequest", self.number));
                break;
            }
            match Message::parse(&self.incoming[at..]) {
                Ok(Some((message, length))) => {
                    let raw = at..at + length;
                    at += length;
                    let number = self.number;
                    site.trace.note(Who(number), || format!("<- {}", describe(&message)));
                    self.take(site, &message, raw);
                }
                Ok(None) => break,
                Err(()) => {
                    site.ledger.fail(format!("c{} got bytes that are no message", self.number));
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
                site.ledger.fail(text);
            }
        }
    }

    fn take_login(&mut self, site: &mut Site, message: &Message) {
        let number = self.number;
        let Phase::Login { parameters, authenticated } = &mut self.phase else { return };
        match message.tag {
            b'R' => *authenticated = true,
            b'v' => {}
            b'S' => {
                if let Ok((name, value)) = backend::parse_parameter_status(&message.body) {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    parameters.insert(text(name), text(value));
                }
            }
            b'K' => self.key = backend::parse_backend_key_data(&message.body).ok(),
            b'Z' => {
                let due = parameters_of(&self.settings);
                // That of some time before: if it has changed, the first reply will say so.
                match parameters.remove(VERSION) {
                    Some(version) => self.oracle.told(&version),
                    None => site.ledger.fail(format!("c{number} was not told all at login")),
                }
                if *parameters != due {
                    let text = format!("c{number} was told {parameters:?} at login, not {due:?}");
                    site.ledger.fail(text);
                }
                if !*authenticated || self.key.is_none() || message.body != b"I" {
                    site.ledger.fail(format!("c{number} was let in without all that is due"));
                }
                site.ledger.counts.sessions += 1;
                self.phase = Phase::Ready;
            }
            b'E' => {
                let error = message.error();
                let code = error.as_ref().and_then(|error| error.code).map(|code| code.to_string());
                let code = code.unwrap_or_default();
                let invalid = self.settings.iter().any(|(n, v)| !State::is_valid(n, v));
                if !(invalid && code == "22023") {
                    self.check_refusal(site, &code);
                }
                site.ledger.counts.refusals += 1;
                self.phase = Phase::Dismissed;
            }
            tag => site.ledger.fail(format!("c{number} got message type {tag} at login")),
        }
    }

    fn take_reply(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        if message.tag == b'A' {
            if !self.oracle.listens() {
                site.ledger.fail(format!("c{} was notified and does not listen", self.number));
            }
            return;
        }
        if let Some(version) = version_of(message) {
            return self.oracle.told(&version);
        }
        if let Some(error) = message.error() {
            let text = String::from_utf8_lossy(error.message).into_owned();
            let code = error.code.map(|code| code.to_string()).unwrap_or_default();
            if !text.contains('[') && matches!(&*code, "08007" | "40001") {
                return self.lost_server(site, &code, raw);
            }
            let tag = text.split(['[', ']']).nth(1).and_then(|tag| Tag::parse(tag.as_bytes()));
            match tag {
                Some(tag) if text.starts_with(CANCELED) => {
                    if let Err(text) = self.oracle.interrupt(tag) {
                        return site.ledger.fail(format!("c{}: {text}", self.number));
                    }
                }
                Some(_) => {}
                None if !text.contains('[') && self.oracle.may_be_refused() => {
                    return self.refused(site, &code, raw);
                }
                None => {}
            }
        }
        site.ledger.counts.replies += 1;
        match self.oracle.hear(&self.incoming[raw]) {
            Ok(Heard::Reply) => {}
            Ok(Heard::Ready { committed, undone, idle }) => {
                site.ledger.acknowledged(&committed, &undone);
                site.ledger.counts.transactions += u64::from(idle);
            }
            Err(text) => site.ledger.fail(format!("c{} {text}", self.number)),
        }
    }

    /// The server is lost, and the client stays.
    fn lost_server(&mut self, site: &mut Site, code: &str, raw: Range<usize>) {
        site.ledger.lost(self.number, code);
        if let Err(text) = self.oracle.lose(&self.incoming[raw], code == "40001") {
            site.ledger.fail(format!("c{} was told {code} and {text}", self.number));
        }
    }

    /// pgweir answers a unit itself.
    fn refused(&mut self, site: &mut Site, code: &str, raw: Range<usize>) {
        if code == "57014" {
            site.ledger.cancel_hit(self.number, "a unit that waits");
        } else {
            self.check_refusal(site, code);
        }
        match self.oracle.refuse(&self.incoming[raw]) {
            Ok(tags) => site.ledger.refused(&tags),
            Err(text) => site.ledger.fail(format!("c{}: {text}", self.number)),
        }
    }

    /// Whether there is a reason for pgweir to refuse.
    fn check_refusal(&self, site: &mut Site, code: &str) {
        let busy = self.pool.impatient && matches!(code, "53300" | "57P03");
        let rude = self.ending == Ending::Rude && code == "08P01";
        // Settings that are valid are refused by no server that nobody has spoilt.
        let trouble = site.has_trouble() && code != "22023";
        if !busy && !rude && !trouble {
            site.ledger.fail(format!("c{} was refused with {code} for no reason", self.number));
        }
    }

    /// A FATAL has come.
    fn dismissed(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        let code = message.error().and_then(|error| error.code);
        let code = code.map(|code| code.to_string()).unwrap_or_default();
        self.phase = Phase::Dismissed;
        let rude = self.ending == Ending::Rude && code == "08P01";
        let block =
            self.pool.mode == PoolMode::Statement && code == "0A000" && self.oracle.is_in_block();
        let silent = self.pool.strict && matches!(&*code, "25P03" | "57P05");
        let due = self.oracle.hear(&self.incoming[raw]).is_ok();
        if !rude && !block && !silent && !due {
            site.ledger.lost(self.number, &code);
        }
    }

    /// The stream has come to its end.
    fn closed(&mut self, site: &mut Site, how: &str) {
        site.trace.note(Who(self.number), || how.to_owned());
        self.stream = None;
        // The FATAL for a transaction block is lost if there is more that pgweir did not read.
        let expelled = self.pool.mode == PoolMode::Statement && self.script.has_begun();
        let expected = match (&self.phase, self.ending) {
            _ if expelled => true,
            // What it was told is lost with whatever pgweir has not read by then.
            _ if self.pool.strict => true,
            (Phase::Dismissed, _) | (_, Ending::Rude) => true,
            // To leave in the middle of a COPY is a mistake that a server would answer.
            (_, Ending::Said) if self.oracle.reads_copy_data() => true,
            (_, Ending::Said) => !self.oracle.is_owed() && how == "closed",
            (_, Ending::No) => false,
        };
        if !expected {
            site.ledger.lost(self.number, how);
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

/// A client's name in the trace.
struct Who(u32);

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("c{}", self.0))
    }
}

/// What a report of the server's configuration says.
fn version_of(message: &Message) -> Option<String> {
    let report = (message.tag == b'S').then(|| backend::parse_parameter_status(&message.body));
    let (name, value) = report?.ok()?;
    (name == VERSION.as_bytes()).then(|| String::from_utf8_lossy(value).into_owned())
}

/// Messages in a few words.
fn list(bytes: &[u8]) -> String {
    let mut text = String::from("->");
    let mut rest = bytes;
    while let Ok(Some((message, length))) = Message::parse(rest) {
        text.push_str(&format!(" | {}", describe(&message)));
        rest = &rest[length..];
    }
    text
}

/// Settings to ask for, and the packet that does.
fn startup(pool: &PoolFacts, dice: &mut Dice) -> (BTreeMap<String, String>, Vec<u8>) {
    let mut settings = BTreeMap::new();
    if dice.chance(0.4) {
        let name = *dice.pick(&["web", "batch", r"o'neil \ sons", "café"]);
        settings.insert("application_name".to_owned(), name.to_owned());
    }
    if dice.chance(0.3) {
        let zone = dice.weighted(&[(10, "UTC"), (10, "Asia/Tokyo"), (1, "Nowhere")]);
        settings.insert("timezone".to_owned(), zone.to_owned());
    }
    if dice.chance(0.1) {
        settings.insert("datestyle".to_owned(), "ISO, DMY".to_owned());
    }
    if dice.chance(0.2) {
        settings.insert("temp_buffers".to_owned(), "16MB".to_owned());
    }
    let mut parameters: Vec<(String, String)> = vec![
        ("user".to_owned(), pool.user.clone()),
        ("database".to_owned(), pool.database.clone()),
    ];
    for (name, value) in &settings {
        if name == "timezone" && dice.chance(0.3) {
            parameters.push(("options".to_owned(), format!("-c TimeZone={value}")));
        } else {
            parameters.push((name.clone(), value.clone()));
        }
    }
    let versions =
        [(8, ProtocolVersion::V3_0), (2, ProtocolVersion::V3_2), (1, ProtocolVersion(3 << 16 | 9))];
    let version = dice.weighted(&versions);
    let mut packet = Vec::new();
    let pairs = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Startup::write(&mut packet, version, pairs);
    (settings, packet)
}

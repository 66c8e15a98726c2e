//! A server's side of a login, and of a cancel.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use pgweir_proxy::Transport;
use pgweir_wire::{CancelKey, Initial, Startup, TransactionStatus, backend};

use super::{Backend, Health, Outcome, Phase, Wait};
use crate::configuration::pool_user;
use crate::invariants::Invariant;
use crate::network::Stream;
use crate::session::{Home, Session, State, VERSION, all_told, write_fatal};
use crate::world::Site;

impl Backend {
    pub(super) fn start(&mut self, site: &mut Site, health: Health, outcome: &mut Outcome) {
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
                let is_late = self.dice.chance(late);
                // pgweir waits for five seconds.
                let latest = *self.dice.pick(&[1_000_000, 1_000_000, 1_000_000, 8_000_000]);
                let most = if is_late { latest } else { 100 };
                let at = site.trace.now + self.dice.below(most);
                let process = (self.cluster, key.process_id);
                site.ledger.cancelled.insert(process, site.trace.now);
                self.phase = Phase::Cancel { key, at };
                outcome.wake_at = Some(at);
            }
            Ok(Some((Initial::Startup(startup), length))) => {
                self.inbox.put(&bytes[length..]);
                self.log_in(site, health, &startup, outcome);
                outcome.wake_at = Some(site.trace.now);
            }
            other => site
                .ledger
                .fail(Invariant::RightLogin, format!("a server was sent {other:?} first")),
        }
    }

    /// Only that the other side gives up is noticed. Says when to look whether it has.
    pub(super) fn hang(&mut self, site: &mut Site, since: u64) -> Option<u64> {
        let ended = |stream: &Stream| match stream.try_read(&mut [0; 64]) {
            Err(error) => error.kind() != ErrorKind::WouldBlock,
            Ok(n) => n == 0,
        };
        if self.stream.as_ref().is_some_and(ended) {
            self.stream = None;
            return None;
        }
        let connect = site.rules.most_kept(since, |rules| Some(rules.times.connect))?;
        let until = since + connect + site.slack_us();
        if site.trace.now >= until {
            site.ledger.fail(
                Invariant::TimesHold,
                "a login that is not answered outlasts connect_timeout",
            );
        }
        Some(until)
    }

    fn log_in(
        &mut self,
        site: &mut Site,
        health: Health,
        startup: &Startup<'_>,
        outcome: &mut Outcome,
    ) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut settings: BTreeMap<_, _> = startup
            .parameters()
            .map(|(name, value)| (text(name).to_ascii_lowercase(), text(value)))
            .collect();
        let mut take = |name: &str| settings.remove(name).unwrap_or_default();
        let (database, user) = (take("database"), take("user"));
        self.replicates = !take("replication").is_empty();
        let options = take("options");
        let home = Home { database, user: pool_user(&user).to_owned() };
        let micros = |text: String| Some(text.parse::<u64>().ok().filter(|ms| *ms > 0)? * 1_000);
        self.limits.statement = micros(take("statement_timeout"));
        if let Some(limit) = micros(take("lock_timeout")) {
            self.limits.lock = Some(limit);
        }
        if let Some(limit) = micros(take("deadlock_timeout")) {
            self.limits.deadlock = limit;
        }
        let options = options.split("-c ").filter_map(|option| option.split_once('='));
        for (name, value) in options {
            settings.insert(name.to_ascii_lowercase(), value.trim_end().to_owned());
        }
        site.trace.note(self.who(), || {
            let kind = if self.replicates { " for replication" } else { "" };
            format!("is asked to log {user} in to {}{kind} with {settings:?}", home.database)
        });
        self.user = user;
        self.home = Some(home.clone());
        outcome.introduced = true;
        if health == Health::Silent || self.dice.chance(site.faults.login_hung) {
            site.trouble(self.cluster);
            site.trace.note(self.who(), || "does not answer");
            self.phase = Phase::Hung { since: site.trace.now };
            outcome.wake_at = Some(site.trace.now);
            return;
        }
        if let Some((code, text)) = self.refusal(site, health) {
            site.login_refused(self.cluster, code);
            site.trace.note(self.who(), || format!("refuses the login: {code} {text}"));
            outcome.full = code == "53300";
            let code = code.as_bytes().first_chunk().unwrap_or(b"XX000");
            write_fatal(self.sending.end(), code, text);
            self.say_farewell();
            return;
        }
        let mut session = Session::new(settings).of_process(self.process_id);
        if let Some(text) = refused_settings(&session.state) {
            site.trace.note(self.who(), || format!("refuses the settings: {text}"));
            backend::authentication_ok(self.sending.end());
            write_fatal(self.sending.end(), b"22023", &text);
            if !self.say_farewell() {
                site.trouble(self.cluster);
            }
            return;
        }
        session.state.home = Some(home);
        session.state.cluster = self.cluster;
        session.state.room = self.room;
        session.state.reload(&self.version.to_string());
        greet(self.sending.end(), &mut session, self.process_id, &self.secret);
        site.trace.note(self.who(), || format!("answers {}", all_told(self.sending.unsent())));
        self.phase = Phase::Session { session: Box::new(session), wait: Wait::Nothing };
    }

    /// Why it does not let anybody in.
    fn refusal(&mut self, site: &Site, health: Health) -> Option<(&'static str, &'static str)> {
        const FULL: (&str, &str) = ("53300", "sorry, too many clients already");
        const REFUSED: [(&str, &str); 2] =
            [("28P01", "password authentication failed"), ("3D000", "database does not exist")];
        const SHUTDOWN: (&str, &str) = ("57P03", "the database system is shutting down");
        match health {
            Health::ShuttingDown => Some(SHUTDOWN),
            Health::Starting => Some(("57P03", "the database system is starting up")),
            Health::Full => Some(FULL),
            Health::Refusing => Some(*self.dice.pick(&REFUSED)),
            Health::Up | Health::Down | Health::Silent => {
                let refused = self.dice.chance(site.faults.login_refused);
                refused.then(|| *self.dice.pick(&[REFUSED[0], SHUTDOWN, FULL]))
            }
        }
    }
}

/// What a server says to a login: that it is accepted, its parameters, and a key.
fn greet(out: &mut Vec<u8>, session: &mut Session, process_id: i32, secret: &[u8]) {
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

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use pgweir_testkit::frames::{sync, terminate};
use pgweir_testkit::{Login, Message, WireClient};

/// How the line of a ReadyForQuery begins.
pub(super) const READY: &str = "ReadyForQuery";

/// Far above what anything takes that is said here.
const PATIENCE: Duration = Duration::from_secs(20);

/// A row of which this is the first value shows what differs by right: it is not compared.
pub(super) const UNSEEN: &str = "DataRow \"unseen\"";

/// A client of pgweir, and its twin that PostgreSQL serves itself.
pub(super) struct Pair {
    pooled: Side,
    direct: Side,
}

struct Side {
    client: WireClient,
    /// The process id that it was told at its login.
    pid: u32,
    /// What it was notified of and is not compared yet.
    heard: Vec<String>,
    /// How many of these came with the reply to what it has notified itself.
    heard_of_itself: usize,
    /// The parameters that were reported.
    reports: BTreeMap<String, String>,
    /// Whether it is outside of a transaction, as the last ReadyForQuery says, and nothing of the
    /// next reply has come.
    between: bool,
    /// What it was notified of since the reply that is under way has begun.
    within_reply: Vec<String>,
    /// What it was notified of within a transaction.
    misplaced: Vec<String>,
}

impl Pair {
    pub(super) fn new(pooled: (SocketAddr, &Login), direct: (SocketAddr, &Login)) -> Self {
        let [pooled, direct] = [pooled, direct].map(|(address, login)| Side::new(address, login));
        Self { pooled, direct }
    }

    /// Both say this in one write, and are answered with so many ReadyForQuerys. Gives the
    /// messages, which are the same.
    pub(super) fn say(&mut self, bytes: &[u8], units: usize) -> Result<Vec<String>, String> {
        let direct = self.direct.answer(bytes, units).map_err(|it| format!("the twin: {it}"))?;
        let pooled = self.pooled.answer(bytes, units)?;
        let seen = |lines: &[String]| {
            let seen = lines.iter().filter(|line| !line.starts_with(UNSEEN));
            seen.map(|line| without_place(line).to_owned()).collect::<Vec<_>>()
        };
        if seen(&direct) != seen(&pooled) {
            return Err(format!("direct: {direct:#?}\nthrough pgweir: {pooled:#?}"));
        }
        for side in [&self.direct, &self.pooled] {
            if !side.misplaced.is_empty() {
                return Err(format!("is told within its transaction: {:?}", side.misplaced));
            }
        }
        if self.pooled.heard.len() < self.direct.heard_of_itself {
            let (direct, pooled) = (&self.direct.heard, &self.pooled.heard);
            return Err(format!("its own notification comes late: {pooled:?}, not {direct:?}"));
        }
        Ok(direct)
    }

    /// Both were told the same of their parameters, if nothing of that is under way.
    pub(super) fn compare_reports(&self) -> Result<(), String> {
        let (direct, pooled) = (&self.direct.reports, &self.pooled.reports);
        match direct == pooled {
            true => Ok(()),
            false => Err(format!("reported directly: {direct:?}\nthrough pgweir: {pooled:?}")),
        }
    }

    /// Whatever was notified before the call both are told of, in one order.
    pub(super) fn compare_heard(&mut self) -> Result<(), String> {
        // A backend says all that it was signalled of before it says that it is ready.
        self.direct.answer(&sync(), 1)?;
        while self.pooled.heard.len() < self.direct.heard.len() {
            if let Err(error) = self.pooled.read() {
                let (direct, pooled) = (&self.direct.heard, &self.pooled.heard);
                return Err(format!("{error}: is told of {pooled:?}, its twin of {direct:?}"));
            }
        }
        let [direct, pooled] = [&mut self.direct, &mut self.pooled].map(|side| {
            side.heard_of_itself = 0;
            std::mem::take(&mut side.heard)
        });
        match direct == pooled {
            true => Ok(()),
            false => Err(format!("is told of {pooled:?}, its twin of {direct:?}")),
        }
    }

    /// Both go.
    pub(super) fn leave(mut self, politely: bool) {
        if politely {
            for side in [&mut self.direct, &mut self.pooled] {
                // Whoever cannot say goodbye is gone.
                let _gone = side.client.send(&terminate());
            }
        }
    }
}

impl Side {
    fn new(address: SocketAddr, login: &Login) -> Self {
        let mut client = WireClient::login(address, login).unwrap();
        client.set_patience(PATIENCE);
        let pid = client.cancel_key().unwrap().pid;
        let greeting = client.greeting().to_vec();
        let mut side = Self {
            client,
            pid,
            heard: Vec::new(),
            heard_of_itself: 0,
            reports: BTreeMap::new(),
            between: false,
            within_reply: Vec::new(),
            misplaced: Vec::new(),
        };
        greeting.iter().for_each(|message| drop(side.sort(message)));
        side
    }

    /// Says this and gives the answer, without what comes in between of notifications and reports.
    fn answer(&mut self, bytes: &[u8], units: usize) -> Result<Vec<String>, String> {
        self.client.send(bytes).map_err(|error| error.to_string())?;
        let mut lines = Vec::new();
        let mut left = units;
        while left > 0 {
            match self.read() {
                Ok(line) => {
                    let ready = line.as_ref().is_some_and(|line| line.starts_with(READY));
                    left -= usize::from(ready);
                    lines.extend(line);
                }
                Err(error) => return Err(format!("{error} after {lines:#?}")),
            }
        }
        Ok(lines)
    }

    fn read(&mut self) -> Result<Option<String>, String> {
        match self.client.read() {
            Ok(Some(message)) => Ok(self.sort(&message)),
            Ok(None) => Err("the connection is closed".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives a message that has its place in an answer.
    fn sort(&mut self, message: &Message) -> Option<String> {
        let texts = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let mut parts = text.split('\0').map(str::to_owned);
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
        };
        match message.tag {
            b'A' => {
                let (pid, told) = message.body.split_first_chunk().unwrap();
                let (channel, payload) = texts(told);
                let told = format!("{channel} {payload}");
                if !self.between {
                    self.within_reply.push(told.clone());
                }
                self.heard.push(told);
                if u32::from_be_bytes(*pid) == self.pid {
                    self.heard_of_itself = self.heard.len();
                }
                None
            }
            b'S' => {
                let (name, value) = texts(&message.body);
                self.reports.insert(name, value);
                None
            }
            _ => {
                let line = message.to_string();
                self.between = line.starts_with(READY) && line.ends_with(" I");
                if line.starts_with(READY) {
                    let told = std::mem::take(&mut self.within_reply);
                    if !self.between {
                        self.misplaced.extend(told);
                    }
                }
                Some(line)
            }
        }
    }
}

/// A line without the place in PostgreSQL's source where it refuses what comes in a transaction
/// that has failed (`docs/differences.md`, "No place in PostgreSQL's source").
fn without_place(line: &str) -> &str {
    match line.contains(" C=\"25P02\" ") {
        true => line.split(" L=").next().unwrap_or(line),
        false => line,
    }
}

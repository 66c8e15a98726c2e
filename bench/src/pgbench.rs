//! One run of pgbench, and what its log of transactions says.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::child::{Child, Launch, Stop};
use crate::cluster::{PgBin, SCALE, USER};
use crate::contender::{Contender, database};
use crate::cpus;
use crate::error::{Doing, Error, Result};
use crate::outcome::{Outcome, Tally};
use crate::scratch::Scratch;

/// Longer than this past its time, a run is taken for hung.
pub(crate) const OVERTIME: Duration = Duration::from_secs(120);

/// PostgreSQL itself, forking a process for each, is about this fast with two busy cores.
pub(crate) const CLIENTS_CONNECTED_PER_SECOND: u32 = 200;

/// What pgbench is asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) script: Script,
    pub(crate) protocol: Protocol,
    /// Databases that clients name. Each has a pgbench of its own; all run at the same time.
    pub(crate) pools: u32,
    /// Clients of each database.
    pub(crate) clients: u32,
    /// Transactions a second over all clients (`-R`); as many as they can when there is none.
    pub(crate) rate: Option<f64>,
    /// A new connection for each transaction (`-C`).
    pub(crate) reconnect: bool,
    /// Every transaction is logged, whatever that costs.
    pub(crate) log_all: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Script {
    SelectOnly,
    TpcbLike,
    /// One row of the accounts, by its key, in a transaction of its own.
    Update,
    /// See [`crate::mix`], as for the next two.
    SlowView,
    HoldLock,
    WantLock,
}

impl Script {
    /// pgbench's name for it; that of a file where it is ours.
    fn name(self) -> &'static str {
        match self {
            Self::SelectOnly => "select-only",
            Self::TpcbLike => "tpcb-like",
            Self::Update => "update.sql",
            Self::SlowView => "slow-view.sql",
            Self::HoldLock => "hold-lock.sql",
            Self::WantLock => "want-lock.sql",
        }
    }

    /// What is in the file.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::SelectOnly | Self::TpcbLike => None,
            Self::Update => Some(format!(
                "\\set aid random(1, {})\n\
                 UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n",
                100_000 * SCALE
            )),
            Self::SlowView => Some("SELECT waited FROM bench_slow;\n".into()),
            Self::HoldLock => Some(
                "BEGIN;\n\
                 SELECT changes FROM bench_lock WHERE id = 1 FOR UPDATE;\n\
                 SELECT pg_sleep(0.2);\n\
                 END;\n"
                    .into(),
            ),
            Self::WantLock => {
                Some("UPDATE bench_lock SET changes = changes + 1 WHERE id = 1;\n".into())
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Simple,
    Extended,
    /// A statement under a name, parsed once for each connection.
    Prepared,
}

impl Load {
    /// Each pgbench's arguments, but for where it connects, how long it runs and where it logs to.
    pub(crate) fn args(&self) -> String {
        let option = if self.script.text().is_some() { "-f" } else { "-b" };
        let script = self.script.name();
        let protocol = match self.protocol {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Prepared => "prepared",
        };
        let mut args =
            format!("-n {option} {script} -M {protocol} -c {} -j {}", self.clients, self.jobs());
        if let Some(rate) = self.rate {
            args.push_str(&format!(" -R {rate:.0}"));
        }
        if self.reconnect {
            args.push_str(" -C");
        }
        format!("{args} -l --sampling-rate={} --random-seed=1", self.sampling())
    }

    /// As this contender is asked: PgBouncer 1.18 knows no statements under names in transaction
    /// mode, and is asked by the extended protocol in their place.
    pub(crate) fn of(&self, contender: Contender) -> Self {
        let protocol = match (self.protocol, contender) {
            (Protocol::Prepared, Contender::PgBouncer) => Protocol::Extended,
            (Protocol::Prepared, Contender::SimplePgweir) => Protocol::Simple,
            (protocol, _) => protocol,
        };
        Self { protocol, ..*self }
    }

    /// Threads of each pgbench, which share those of a load generator; never more than clients.
    fn jobs(&self) -> u32 {
        (cpus::load_threads() / self.pools).clamp(1, self.clients)
    }

    /// The part of the transactions that is logged. A line for each of 35,000 a second would cost
    /// the load generator what is being compared; a tenth leaves some 10,000 for each run.
    fn sampling(&self) -> f64 {
        match self.script {
            Script::SelectOnly if !self.reconnect && !self.log_all => 0.1,
            Script::SelectOnly | Script::TpcbLike | Script::Update => 1.0,
            Script::SlowView | Script::HoldLock | Script::WantLock => 1.0,
        }
    }

    /// Starts a run of `seconds` against `port`, and of as long as clients may take to connect:
    /// pgbench's clock runs then too, though its rates leave that time out.
    pub(crate) fn start(
        &self,
        bin: &PgBin,
        scratch: &Scratch,
        port: u16,
        seconds: u32,
    ) -> Result<Running> {
        let seconds = seconds + overhead_seconds(self.clients);
        let start = |pool| Run::start(self, bin, scratch, (port, &database(pool)), seconds);
        (0..self.pools).map(start).collect::<Result<_>>().map(Running)
    }
}

/// What a run of pgbench takes longer than it was asked to.
pub(crate) fn overhead_seconds(clients: u32) -> u32 {
    1 + clients / CLIENTS_CONNECTED_PER_SECOND
}

/// The pgbench of each database, all at the same time.
pub(crate) struct Running(Vec<Run>);

impl Running {
    /// Waits for the end of all.
    pub(crate) fn finish(self) -> Result<Outcome> {
        let mut tally = Tally::default();
        for run in self.0 {
            tally.join(run.finish()?);
        }
        Outcome::of(tally).ok_or_else(|| Error::unfit("pgbench logged no transaction"))
    }
}

/// A pgbench that runs.
struct Run {
    child: Child,
    limit: Duration,
    logs: PathBuf,
}

impl Run {
    /// Starts a load's pgbench on a database at a port of 127.0.0.1.
    fn start(
        load: &Load,
        bin: &PgBin,
        scratch: &Scratch,
        (port, database): (u16, &str),
        seconds: u32,
    ) -> Result<Self> {
        let script = load.script.name();
        let run = format!("pgbench-{script}-{database}");
        let logs = scratch.fresh_folder(&run)?;
        let log = logs.join("log").display().to_string();
        let mut args: Vec<String> = load.args().split(' ').map(str::to_owned).collect();
        if let Some(text) = load.script.text() {
            let file = scratch.write(script, &text)?.display().to_string();
            args.iter_mut().filter(|arg| *arg == script).for_each(|arg| arg.clone_from(&file));
        }
        args.extend(run_args(&seconds.to_string(), &port.to_string(), &log, database));
        let child = Child::start(Launch {
            program: &bin.program("pgbench"),
            args,
            account: None,
            cpus: None,
            stop: Stop::Kill,
            log: scratch.join(&format!("{run}.log")),
        })?;
        Ok(Self { child, limit: Duration::from_secs(seconds.into()) + OVERTIME, logs })
    }

    fn finish(self) -> Result<Tally> {
        let said = self.child.finish(self.limit)?;
        let unfit = || Error::unfit(format!("pgbench said:\n{said}"));
        Ok(Tally {
            tps: number_after(&said, "tps = ").ok_or_else(unfit)?,
            transactions: number_after(&said, "actually processed: ").ok_or_else(unfit)?,
            times_us: read_logs(&self.logs)?,
        })
    }
}

/// The arguments behind those of the load: how long it runs, where it connects and logs to.
pub(crate) fn run_args(seconds: &str, port: &str, log: &str, database: &str) -> Vec<String> {
    let log = format!("--log-prefix={log}");
    let args = ["-T", seconds, "-h", "127.0.0.1", "-p", port, "-U", USER, &log, database];
    args.map(str::to_owned).to_vec()
}

/// The third field of each line of the threads' logs: the transaction's time in microseconds.
fn read_logs(folder: &Path) -> Result<Vec<u32>> {
    let mut times_us = Vec::new();
    let entries = fs::read_dir(folder).doing(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry.doing(|| format!("read {}", folder.display()))?.path();
        let log = fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
        times_us.extend(log.lines().filter_map(time_us_in));
    }
    Ok(times_us)
}

/// `None` for a transaction that failed: its third field is a word.
fn time_us_in(line: &str) -> Option<u32> {
    line.split(' ').nth(2)?.parse().ok()
}

fn number_after(text: &str, label: &str) -> Option<f64> {
    let (_, rest) = text.split_once(label)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests;

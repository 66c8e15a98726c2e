//! One run of pgbench, and what its log of transactions says.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::child::{Child, Launch, Stop};
use crate::cluster::{DATABASE, PgBin, USER};
use crate::error::{Doing, Error, Result};
use crate::scratch::Scratch;
use crate::stats::percentile;

/// Longer than this past its time, a run is taken for hung.
const OVERTIME: Duration = Duration::from_secs(120);

/// PostgreSQL itself, forking a process for each, is about this fast with two busy cores.
const CLIENTS_CONNECTED_PER_SECOND: u32 = 200;

/// What pgbench is asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) script: Script,
    pub(crate) protocol: Protocol,
    pub(crate) clients: u32,
    /// Transactions a second over all clients (`-R`); as many as they can when there is none.
    pub(crate) rate: Option<f64>,
    /// A new connection for each transaction (`-C`).
    pub(crate) reconnect: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Script {
    SelectOnly,
    TpcbLike,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Simple,
    Extended,
}

impl Load {
    /// pgbench's arguments, but for where it connects, how long it runs and where it logs to.
    pub(crate) fn args(&self) -> String {
        let script = match self.script {
            Script::SelectOnly => "select-only",
            Script::TpcbLike => "tpcb-like",
        };
        let protocol = match self.protocol {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
        };
        let mut args =
            format!("-n -b {script} -M {protocol} -c {} -j {}", self.clients, self.jobs());
        if let Some(rate) = self.rate {
            args.push_str(&format!(" -R {rate:.0}"));
        }
        if self.reconnect {
            args.push_str(" -C");
        }
        format!("{args} -l --sampling-rate={} --random-seed=1", self.sampling())
    }

    /// pgbench's threads: two, more where there are cores for it, never more than clients.
    fn jobs(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (cores / 4).max(2).min(self.clients as usize)
    }

    /// The part of the transactions that is logged. A line for each of 35,000 a second would cost
    /// the load generator what is being compared; a tenth leaves some 10,000 for each run.
    fn sampling(&self) -> f64 {
        match self.script {
            Script::SelectOnly if !self.reconnect => 0.1,
            Script::SelectOnly | Script::TpcbLike => 1.0,
        }
    }

    /// Runs for `seconds` against `port`, and for as long as clients may take to connect: pgbench's
    /// clock runs then too, though its rates leave that time out.
    pub(crate) fn run(
        &self,
        bin: &PgBin,
        scratch: &Scratch,
        port: u16,
        seconds: u32,
    ) -> Result<Outcome> {
        let seconds = seconds + 1 + self.clients / CLIENTS_CONNECTED_PER_SECOND;
        let logs = scratch.fresh_folder("pgbench-log")?;
        let prefix = logs.join("log");
        let args = format!("{} -T {seconds} -h 127.0.0.1 -p {port} -U {USER}", self.args());
        let mut args: Vec<String> = args.split(' ').map(str::to_owned).collect();
        args.push(format!("--log-prefix={}", prefix.display()));
        args.push(DATABASE.to_owned());
        let child = Child::start(Launch {
            program: &bin.program("pgbench"),
            args,
            account: None,
            stop: Stop::Kill,
            log: scratch.join("pgbench.log"),
        })?;
        let said = child.finish(Duration::from_secs(seconds.into()) + OVERTIME)?;
        let unfit = || Error::unfit(format!("pgbench said:\n{said}"));
        Ok(Outcome {
            tps: number_after(&said, "tps = ").ok_or_else(unfit)?,
            transactions: number_after(&said, "actually processed: ").ok_or_else(unfit)?,
            latency: Latency::of(read_logs(&logs)?).ok_or_else(unfit)?,
        })
    }
}

/// What a run of pgbench gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Without the time of the first connections, unless each transaction made its own.
    pub(crate) tps: f64,
    pub(crate) transactions: f64,
    pub(crate) latency: Latency,
}

/// Percentiles in milliseconds. With a rate, a transaction's time begins when it was due.
#[derive(Debug, PartialEq)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Latency {
    fn of(mut times_us: Vec<u32>) -> Option<Self> {
        times_us.sort_unstable();
        let at = |percent| Some(f64::from(percentile(&times_us, percent)?) / 1000.0);
        Some(Self { p50_ms: at(50.0)?, p95_ms: at(95.0)?, p99_ms: at(99.0)? })
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.3} p95 {:.3} p99 {:.3} ms", self.p50_ms, self.p95_ms, self.p99_ms)
    }
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

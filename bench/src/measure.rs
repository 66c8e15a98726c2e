//! One contender's turn in one round.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::case::{Case, IDLE_CLIENTS, SELECTS, Workload};
use crate::child::Child;
use crate::clock;
use crate::cluster::DATABASE;
use crate::contender::{Contender, Target};
use crate::cpus::{self, Division};
use crate::crowd::{Ask, Crowd, SETTINGS};
use crate::error::{Error, Result};
use crate::frontend::Frontend;
use crate::lab::{Lab, Reach};
use crate::metric::{Metric, Sample};
use crate::mix::{self, Beside, Mixed};
use crate::outcome::Outcome;
use crate::pgbench::{Load, Script, overhead_seconds};
use crate::procfs;
use crate::stats::Spread;

/// How long idle clients are watched.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(10);
/// Idle clients that come from one source address: a third of its ports.
const CLIENTS_PER_SOURCE: u32 = 2_500;
/// The turn before each turn of a sweep: the five seconds that pgweir has to find its pair. Those
/// that are given one have nothing to find.
const SWEEP_WARM_UP_S: u32 = 5;
const PAIR_WARM_UP_S: u32 = 1;
/// How long there is another load, before it changes.
const BEFORE_CHANGE_S: u32 = 4;
/// What does not count behind a change: the five seconds after which the new load must be served
/// as well as it can be. Those that are given a pair have nothing to find then either.
const SETTLING_S: u32 = 5;
/// What a fetched result is read into.
const FETCH_BUFFER: usize = 256 << 10;

/// A workload with all that it depends on: ready to be run.
pub(crate) enum Task {
    Pgbench(Load),
    Change {
        from: Load,
        to: Load,
    },
    /// With a rate that is a part of direct's maximum.
    Rate {
        load: Load,
        direct_maximum_tps: f64,
    },
    Fetch {
        sql: &'static str,
        tag: &'static str,
    },
    Idle,
    Crowd {
        pools: u32,
        clients: u32,
        division: Division,
    },
    Settings {
        clients: u32,
    },
    Mix(Beside),
}

impl Task {
    /// Settles what a case leaves to the machine (the rate, as a part of direct's maximum), and
    /// makes what it needs in the database.
    pub(crate) fn prepare(case: &Case, lab: &Lab, seconds: u32) -> Result<Self> {
        Ok(match case.workload {
            Workload::Pgbench(load) => Self::Pgbench(load),
            Workload::Change { from, to } => Self::Change { from, to },
            Workload::Rate { percent } => {
                let direct_maximum_tps = lab.direct_maximum(seconds)?;
                let rate = (direct_maximum_tps * f64::from(percent) / 100.0).round();
                Self::Rate { load: Load { rate: Some(rate), ..SELECTS }, direct_maximum_tps }
            }
            Workload::Fetch { sql, tag } => Self::Fetch { sql, tag },
            Workload::Idle => Self::Idle,
            Workload::Crowd { pools, clients } => {
                Self::Crowd { pools, clients, division: lab.division.clone() }
            }
            Workload::Settings { clients } => Self::Settings { clients },
            Workload::Mix(beside) => {
                lab.cluster()?.run(mix::SCHEMA)?;
                Self::Mix(beside)
            }
        })
    }

    /// The load as a reader would type it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Pgbench(load) if load.pools > 1 => {
                format!("{} at once: pgbench {}", load.pools, load.args())
            }
            Self::Pgbench(load) | Self::Rate { load, .. } => format!("pgbench {}", load.args()),
            Self::Change { from, to } => format!("pgbench {}, then {}", from.args(), to.args()),
            Self::Fetch { sql, .. } => (*sql).to_owned(),
            Self::Idle => format!(
                "{IDLE_CLIENTS} connections, SELECT 1 on each, then {} s of silence",
                IDLE_TIME.as_secs()
            ),
            Self::Crowd { pools, clients, division } => {
                format!("SELECT n, {clients} clients on each of {pools} databases; {division}")
            }
            Self::Settings { clients } => format!(
                "SELECT aid, abalance FROM pgbench_accounts WHERE aid = n, {clients} clients with \
                 {SETTINGS} sets of settings"
            ),
            Self::Mix(beside) => beside.describe(),
        }
    }

    /// What the rate is a part of, where there is one.
    pub(crate) fn direct_maximum_tps(&self) -> Option<f64> {
        match self {
            Self::Rate { direct_maximum_tps, .. } => Some(*direct_maximum_tps),
            Self::Pgbench(_) | Self::Change { .. } => None,
            Self::Fetch { .. } | Self::Idle => None,
            Self::Crowd { .. } | Self::Settings { .. } | Self::Mix(_) => None,
        }
    }

    /// The turn that a contender has before each turn that counts, if there is one.
    pub(crate) fn warm_up_s(case: &Case, contender: Contender) -> Option<u32> {
        let is_change = matches!(case.workload, Workload::Change { .. });
        (case.is_sweep && !is_change).then_some(if contender.is_pair() {
            PAIR_WARM_UP_S
        } else {
            SWEEP_WARM_UP_S
        })
    }

    /// How long there is another load before a change, and what does not count behind it.
    fn around_change_s(contender: Contender) -> (u32, u32) {
        if contender.is_pair() {
            (PAIR_WARM_UP_S, PAIR_WARM_UP_S)
        } else {
            (BEFORE_CHANGE_S, SETTLING_S)
        }
    }

    /// What a turn takes before it counts, besides its own start.
    pub(crate) fn before_each_turn_s(case: &Case, contender: Contender) -> u32 {
        if let Workload::Change { from, to } = case.workload {
            let starts = overhead_seconds(from.clients) + overhead_seconds(to.clients);
            let (before, settling) = Self::around_change_s(contender);
            return before + settling + starts;
        }
        let warm_up = Self::warm_up_s(case, contender);
        warm_up.map_or(0, |seconds| seconds + case.overhead_seconds())
    }

    /// Runs for `seconds`, or for as long as the task itself says.
    pub(crate) fn run(
        &self,
        lab: &Lab,
        reach: &Reach,
        target: &mut Target,
        contender: Contender,
        seconds: u32,
    ) -> Result<Sample> {
        let mut sample = match self {
            Self::Pgbench(load) | Self::Rate { load, .. } => {
                pgbench(lab, reach, load, target, seconds)?
            }
            Self::Change { from, to } => {
                let (before, settling) = Self::around_change_s(contender);
                pgbench(lab, reach, from, target, before)?;
                pgbench(lab, reach, to, target, settling)?;
                pgbench(lab, reach, to, target, seconds)?
            }
            Self::Fetch { sql, tag } => fetch(sql, tag, target, seconds)?,
            Self::Idle => idle(lab, target)?,
            Self::Crowd { pools, clients, division } => {
                let (port, threads) = (target.port, division.load_threads);
                let (pools, clients) = (*pools, *clients);
                let (ask, settings) = (Ask::Numbers, 1);
                let crowd = Crowd { port, pools, clients, threads, seconds, ask, settings };
                crowd_turn(lab, reach, &crowd, target)?
            }
            Self::Settings { clients } => settings_turn(lab, *clients, target, seconds)?,
            Self::Mix(beside) => mix_turn(lab, *beside, target, seconds)?,
        };
        if let Some(pooler) = &mut target.pooler {
            pooler.require_running()?;
            let memory = procfs::memory(pooler.id())?;
            sample.insert(Metric::RssMb, memory.rss_kb as f64 / 1024.0);
            sample.insert(Metric::PssMb, memory.pss_kb as f64 / 1024.0);
        }
        Ok(sample)
    }
}

fn pgbench(lab: &Lab, reach: &Reach, load: &Load, target: &Target, seconds: u32) -> Result<Sample> {
    lab.cluster()?.run(tidying(load.script))?;
    let (pooler, forwarder) = (target.pooler.as_ref(), reach.helper.as_ref());
    let load = load.of(target.contender);
    let run = || lab.pgbench(&load, target.port, seconds);
    let ((outcome, cpu), forwarder_cpu) = with_cpu(forwarder, || with_cpu(pooler, run))?;
    let mut sample = sample_of(&outcome, cpu);
    if let Some(cpu) = forwarder_cpu {
        let each_s = cpu.as_secs_f64() / outcome.transactions;
        sample.insert(Metric::ForwarderBusyPercent, each_s * outcome.tps * 100.0);
    }
    Ok(sample)
}

/// What removes old versions of rows that the turn before left, and that would slow this one; as
/// pgbench does by default.
fn tidying(script: Script) -> &'static [&'static str] {
    match script {
        Script::TpcbLike => {
            &["VACUUM pgbench_branches", "VACUUM pgbench_tellers", "TRUNCATE pgbench_history"]
        }
        Script::Update => &["VACUUM pgbench_accounts"],
        Script::SelectOnly | Script::SlowView | Script::HoldLock | Script::WantLock => &[],
    }
}

fn mix_turn(lab: &Lab, beside: Beside, target: &Target, seconds: u32) -> Result<Sample> {
    lab.cluster()?.run(tidying(beside.load().script))?;
    let Mixed { selects, few } = beside.run(lab, target.port, seconds)?;
    // Transactions that differ so have no CPU time each.
    let mut sample = sample_of(&selects, None);
    sample.insert(Metric::MaxMs, selects.latency.max_ms);
    sample.insert(Metric::FewTps, few.tps);
    sample.insert(Metric::FewP99Ms, few.latency.p99_ms);
    Ok(sample)
}

fn settings_turn(lab: &Lab, clients: u32, target: &Target, seconds: u32) -> Result<Sample> {
    let settings = if target.contender == Contender::EqualSettings { 1 } else { SETTINGS };
    let (port, threads, ask) = (target.port, cpus::load_threads(), Ask::Accounts);
    let crowd = Crowd { port, pools: 1, clients, threads, seconds, ask, settings };
    let (said, cpu) = with_cpu(target.pooler.as_ref(), || lab.crowd(&crowd, None))?;
    let mut sample = sample_of(&said.outcome, cpu);
    sample.insert(Metric::LoadBusyPercent, said.busy_percent);
    Ok(sample)
}

fn crowd_turn(lab: &Lab, reach: &Reach, crowd: &Crowd, target: &Target) -> Result<Sample> {
    let (pooler, server) = (target.pooler.as_ref(), reach.helper.as_ref());
    let run = || lab.crowd(crowd, lab.division.others());
    let ((said, cpu), server_cpu) = with_cpu(server, || with_cpu(pooler, run))?;
    let mut sample = sample_of(&said.outcome, cpu);
    sample.insert(Metric::LoadBusyPercent, said.busy_percent);
    if let Some(cpu) = server_cpu {
        let possible = f64::from(lab.division.server_threads * crowd.seconds);
        sample.insert(Metric::ServerBusyPercent, cpu.as_secs_f64() / possible * 100.0);
    }
    Ok(sample)
}

/// What a load gave, and the pooler's CPU time over it.
fn sample_of(outcome: &Outcome, cpu: Option<Duration>) -> Sample {
    let latency = &outcome.latency;
    let mut sample = Sample::from([
        (Metric::Tps, outcome.tps),
        (Metric::P50Ms, latency.p50_ms),
        (Metric::P95Ms, latency.p95_ms),
        (Metric::P99Ms, latency.p99_ms),
        (Metric::Tail, latency.p99_ms / latency.p50_ms),
    ]);
    if let Some(cpu) = cpu {
        sample.insert(Metric::CpuUs, cpu.as_secs_f64() * 1e6 / outcome.transactions);
    }
    sample
}

/// Fetches the result as often as fits; the median is the turn's time.
fn fetch(sql: &str, tag: &str, target: &Target, seconds: u32) -> Result<Sample> {
    let mut frontend = Frontend::log_in(target.port, Ipv4Addr::LOCALHOST, DATABASE)?;
    let mut scratch = vec![0; FETCH_BUFFER];
    let mut walls = Vec::new();
    let begin = clock::now();
    while walls.is_empty() || begin.elapsed() < Duration::from_secs(seconds.into()) {
        clock::check()?;
        let start = clock::now();
        let drained = frontend.drain(sql, &mut scratch)?;
        walls.push(start.elapsed().as_secs_f64());
        if drained.tag != tag {
            return Err(Error::unfit(format!("`{sql}` gave {}, not {tag}", drained.tag)));
        }
    }
    frontend.close()?;
    let spread = Spread::of(walls).ok_or_else(|| Error::unfit("no fetch"))?;
    Ok(Sample::from([(Metric::WallS, spread.median)]))
}

/// Opens the clients, one query each, and watches the pooler while they rest.
fn idle(lab: &Lab, target: &Target) -> Result<Sample> {
    let pooler = target.pooler.as_ref();
    let pooler = pooler.ok_or_else(|| Error::unfit("idle clients are a pooler's"))?;
    // The pool's servers and the pooler's own buffers are not the clients' memory.
    lab.pgbench(&Load { clients: 16, ..SELECTS }, target.port, 1)?;
    let before = procfs::memory(pooler.id())?;
    let mut clients = Vec::new();
    for number in 0..IDLE_CLIENTS {
        clock::check()?;
        clients.push(idle_client(target.port, number)?);
    }
    let (_, cpu) = with_cpu(Some(pooler), || clock::pass(IDLE_TIME))?;
    let after = procfs::memory(pooler.id())?;
    for client in clients {
        client.close()?;
    }
    let grown_kb = after.anonymous_kb.saturating_sub(before.anonymous_kb);
    let mut sample =
        Sample::from([(Metric::ClientBytes, grown_kb as f64 * 1024.0 / f64::from(IDLE_CLIENTS))]);
    if let Some(cpu) = cpu {
        let share = cpu.as_secs_f64() / IDLE_TIME.as_secs_f64();
        sample.insert(Metric::IdleCpuPercent, share * 100.0);
    }
    Ok(sample)
}

/// Logs in and runs the one query.
fn idle_client(port: u16, number: u32) -> Result<Frontend> {
    let host = 2 + (number / CLIENTS_PER_SOURCE) as u8;
    let mut frontend = Frontend::log_in(port, Ipv4Addr::new(127, 0, 0, host), DATABASE)?;
    frontend.drain("SELECT 1", &mut [0; 4096])?;
    Ok(frontend)
}

/// Does the work, and says what time of the processor a process, if there is one, took meanwhile.
fn with_cpu<T>(
    process: Option<&Child>,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, Option<Duration>)> {
    let spent = || process.map(|process| procfs::cpu_time(process.id())).transpose();
    let before = spent()?;
    let done = work()?;
    let cpu = spent()?.zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok((done, cpu))
}

//! What one run of the harness works with: the cluster, the programs, the ports.

use std::cell::{Cell, OnceCell};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use crate::account::Account;
use crate::case::{Case, SELECTS, Server};
use crate::child::{Child, Launch, Stop, own_program};
use crate::cluster::{Cluster, PgBin, await_login};
use crate::contender::{Contender, POOL_SIZE, Place, Programs, Target};
use crate::cpus::{Cpus, Division};
use crate::crowd::{Crowd, CrowdOutcome};
use crate::error::{Doing, Error, Result};
use crate::outcome::Outcome;
use crate::pgbench::{Load, OVERTIME, Running};
use crate::scratch::Scratch;
use crate::stats::Spread;

/// Below the ports that Linux gives to outgoing connections, of which a run makes many.
const FIRST_PORT: u16 = 21_000;
/// Connections of one process, and what it has open besides.
const DESCRIPTORS: u64 = 12_000;
/// Clients with which direct connections are at their best, on one machine or another.
const MAXIMUM_CLIENTS: [u32; 2] = [16, 64];
/// Runs of which a maximum is the median.
const MAXIMUM_RUNS: u32 = 3;
/// What stands before a server, or in its place, needs less than this to be ready.
const HELPER_START_LIMIT: Duration = Duration::from_secs(5);

/// The bench on which contenders are measured. Dropping it ends all that it started.
pub(crate) struct Lab {
    // In this order: the cluster goes before the folder that its data is in.
    cluster: Option<Cluster>,
    programs: Programs,
    pub(crate) division: Division,
    account: Option<Account>,
    next_port: Cell<u16>,
    direct_maximum: OnceCell<f64>,
    pub(crate) scratch: Scratch,
}

impl Lab {
    /// With a PostgreSQL, if its programs are given.
    pub(crate) fn set_up(bin: Option<PgBin>, programs: Programs) -> Result<Self> {
        raise_descriptor_limit()?;
        let account = Account::unprivileged()?;
        let scratch = Scratch::create(account)?;
        let next_port = Cell::new(FIRST_PORT);
        let division = Division::of_this_machine();
        let port = free_port(&next_port)?;
        let cluster = bin.map(|bin| Cluster::start(bin, &scratch, account, port)).transpose()?;
        let direct_maximum = OnceCell::new();
        Ok(Self { cluster, programs, division, account, next_port, direct_maximum, scratch })
    }

    /// Errors: this run has no PostgreSQL.
    pub(crate) fn cluster(&self) -> Result<&Cluster> {
        self.cluster.as_ref().ok_or_else(|| Error::unfit("this run has no PostgreSQL"))
    }

    /// Errors when the cluster, if there is one, has ended.
    pub(crate) fn require_running(&mut self) -> Result<()> {
        self.cluster.as_mut().map_or(Ok(()), Cluster::require_running)
    }

    /// Starts a contender of a case in front of its server.
    pub(crate) fn start(&self, contender: Contender, case: &Case, reach: &Reach) -> Result<Target> {
        let place = Place {
            port: free_port(&self.next_port)?,
            server_port: reach.port,
            pools: case.pools(),
            pool_size: case.pool_size,
            cpus: match case.server {
                Server::Near | Server::Far => None,
                Server::Instant => self.division.pooler(),
            },
        };
        Target::start(contender, &self.programs, &self.scratch, self.account, place)
    }

    /// Makes a server ready for a case.
    pub(crate) fn reach(&self, server: Server) -> Result<Reach> {
        let port = free_port(&self.next_port)?;
        let mut helper = match server {
            Server::Near => return Ok(Reach { port: self.cluster()?.port, helper: None }),
            Server::Far => {
                let server = self.cluster()?.socket.display().to_string();
                self.own("delay", &[port.to_string(), server], None)?
            }
            Server::Instant => {
                let threads = self.division.server_threads;
                let cpus = self.division.others();
                self.own("instant", &[port.to_string(), threads.to_string()], cpus)?
            }
        };
        await_login(&mut helper, port, HELPER_START_LIMIT)?;
        Ok(Reach { port, helper: Some(helper) })
    }

    pub(crate) fn pgbench(&self, load: &Load, port: u16, seconds: u32) -> Result<Outcome> {
        self.start_pgbench(load, port, seconds)?.finish()
    }

    pub(crate) fn start_pgbench(&self, load: &Load, port: u16, seconds: u32) -> Result<Running> {
        load.start(&self.cluster()?.bin, &self.scratch, port, seconds)
    }

    /// Runs a crowd on these processors.
    pub(crate) fn crowd(&self, crowd: &Crowd, cpus: Option<&Cpus>) -> Result<CrowdOutcome> {
        let child = self.own("crowd", &crowd.args(), cpus)?;
        let said = child.finish(Duration::from_secs(crowd.seconds.into()) + OVERTIME)?;
        serde_json::from_str(&said).doing(|| format!("understand what the crowd said: {said}"))
    }

    /// Transactions a second that direct connections reach at their best, measured once in a run:
    /// all rates are parts of the same.
    pub(crate) fn direct_maximum(&self, seconds: u32) -> Result<f64> {
        if let Some(tps) = self.direct_maximum.get() {
            return Ok(*tps);
        }
        let port = self.cluster()?.port;
        let mut best_tps: f64 = 0.0;
        for clients in MAXIMUM_CLIENTS {
            best_tps = best_tps.max(self.median_tps(clients, port, seconds)?);
        }
        Ok(*self.direct_maximum.get_or_init(|| best_tps))
    }

    /// Transactions a second that as many direct connections reach as a pool has servers: about
    /// what a pooler can make of these, where it is the way to them that takes the time.
    pub(crate) fn pool_maximum(&self, reach: &Reach, seconds: u32) -> Result<f64> {
        self.median_tps(POOL_SIZE, reach.port, seconds)
    }

    /// The median of some runs of plain selects.
    fn median_tps(&self, clients: u32, port: u16, seconds: u32) -> Result<f64> {
        let load = Load { clients, ..SELECTS };
        let run = |_| self.pgbench(&load, port, seconds).map(|outcome| outcome.tps);
        let runs: Vec<f64> = (0..MAXIMUM_RUNS).map(run).collect::<Result<_>>()?;
        let spread = Spread::of(runs).ok_or_else(|| Error::unfit("no run of a maximum"))?;
        Ok(spread.median)
    }

    /// Starts this program with one of its subcommands.
    fn own(&self, subcommand: &str, args: &[String], cpus: Option<&Cpus>) -> Result<Child> {
        Child::start(Launch {
            program: &own_program()?,
            args: [&[subcommand.to_owned()][..], args].concat(),
            account: None,
            cpus,
            stop: Stop::Kill,
            log: self.scratch.join(&format!("{subcommand}.log")),
        })
    }
}

/// A port at which a server is reached.
pub(crate) struct Reach {
    pub(crate) port: u16,
    /// What stands before PostgreSQL, or in its place; ends on drop.
    pub(crate) helper: Option<Child>,
}

/// The next port of 127.0.0.1 that nobody listens on.
fn free_port(next: &Cell<u16>) -> Result<u16> {
    while next.get() < u16::MAX {
        let port = next.get();
        next.set(port + 1);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Error::unfit("no free port"))
}

/// Lets this process and its children open as many files as they may.
fn raise_descriptor_limit() -> Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(Resource::Nofile, raised)
        .doing(|| "raise the limit of open files".into())?;
    match limit.maximum {
        Some(maximum) if maximum < DESCRIPTORS => Err(Error::unfit(format!(
            "processes may open {maximum} files here (ulimit -Hn); {DESCRIPTORS} are needed"
        ))),
        Some(_) | None => Ok(()),
    }
}

//! What one run of the harness works with: the cluster, the programs, the ports.

use std::cell::{Cell, OnceCell};
use std::net::{Ipv4Addr, TcpListener};

use rustix::process::{Resource, Rlimit};

use crate::account::Account;
use crate::case::{SELECTS, Server};
use crate::child::{Child, Launch, Stop, own_program};
use crate::cluster::{Cluster, PgBin, await_login};
use crate::contender::{Contender, Programs, Target};
use crate::delay;
use crate::error::{Doing, Error, Result};
use crate::pgbench::{Load, Outcome};
use crate::scratch::Scratch;
use crate::stats::Spread;

/// Below the ports that Linux gives to outgoing connections, of which a run makes many.
const FIRST_PORT: u16 = 21_000;
/// Connections of one process, and what it has open besides.
const DESCRIPTORS: u64 = 12_000;
/// Runs whose median is direct's maximum.
const MAXIMUM_RUNS: u32 = 3;

/// The bench on which contenders are measured. Dropping it ends all that it started.
pub(crate) struct Lab {
    // In this order: the cluster goes before the folder that its data is in.
    pub(crate) cluster: Cluster,
    programs: Programs,
    bin: PgBin,
    account: Option<Account>,
    next_port: Cell<u16>,
    direct_maximum: OnceCell<f64>,
    pub(crate) scratch: Scratch,
}

impl Lab {
    pub(crate) fn set_up(bin: PgBin, programs: Programs) -> Result<Self> {
        raise_descriptor_limit()?;
        let account = Account::unprivileged()?;
        let scratch = Scratch::create(account)?;
        let next_port = Cell::new(FIRST_PORT);
        let cluster = Cluster::start(&bin, &scratch, account, free_port(&next_port)?)?;
        let direct_maximum = OnceCell::new();
        Ok(Self { cluster, programs, bin, account, next_port, direct_maximum, scratch })
    }

    /// Starts a contender in front of `server_port`.
    pub(crate) fn start(&self, contender: Contender, server_port: u16) -> Result<Target> {
        let ports = (free_port(&self.next_port)?, server_port);
        Target::start(contender, &self.programs, &self.scratch, self.account, ports)
    }

    pub(crate) fn reach(&self, server: Server) -> Result<Reach> {
        match server {
            Server::Near => Ok(Reach { port: self.cluster.port, _delay: None }),
            Server::Far => {
                let port = free_port(&self.next_port)?;
                let args = ["delay", &port.to_string(), &self.cluster.port.to_string()];
                let mut delay = Child::start(Launch {
                    program: &own_program()?,
                    args: args.map(str::to_owned).to_vec(),
                    account: None,
                    stop: Stop::Kill,
                    log: self.scratch.join("delay.log"),
                })?;
                await_login(&mut delay, port, delay::START_LIMIT)?;
                Ok(Reach { port, _delay: Some(delay) })
            }
        }
    }

    pub(crate) fn pgbench(&self, load: &Load, port: u16, seconds: u32) -> Result<Outcome> {
        load.run(&self.bin, &self.scratch, port, seconds)
    }

    /// Transactions a second that 64 direct clients reach, measured once in a run.
    pub(crate) fn direct_maximum(&self, seconds: u32) -> Result<f64> {
        if let Some(tps) = self.direct_maximum.get() {
            return Ok(*tps);
        }
        let run = |_| self.pgbench(&SELECTS, self.cluster.port, seconds).map(|outcome| outcome.tps);
        let runs: Vec<f64> = (0..MAXIMUM_RUNS).map(run).collect::<Result<_>>()?;
        let none = || Error::unfit("no run of direct's maximum");
        let tps = Spread::of(runs).ok_or_else(none)?.median;
        Ok(*self.direct_maximum.get_or_init(|| tps))
    }
}

/// A port at which the server is reached; the delay before it ends on drop.
pub(crate) struct Reach {
    pub(crate) port: u16,
    _delay: Option<Child>,
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

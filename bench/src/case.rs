//! The table of cases: what is asked of the contenders.

mod pipelining;

use crate::contender::{Contender, POOL_SIZE};
use crate::mix::Beside;
use crate::pgbench::{Load, Protocol, Script, overhead_seconds};
use crate::rounds::Pace;

/// Clients of the cases `simple-N` and `extended-N`.
pub(crate) const CLIENTS: [u32; 5] = [1, 16, 64, 250, 1000];

/// Connections that the case `idle-10k` holds.
pub(crate) const IDLE_CLIENTS: u32 = 10_000;

/// So many clients always leave somebody waiting for a pool of ten: the pooler sets the pace.
const CROWD: u32 = 64;

/// Means all cases whose pace clients set that stand behind each other on few servers.
pub(crate) const PIPELINING_CASES: &str = "pipelining";

/// One measurement, run for every contender in every round.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) workload: Workload,
    pub(crate) server: Server,
    /// Who takes part; pairs of a grid besides, in a sweep.
    contenders: &'static [Contender],
    /// The contender that ratios are to.
    pub(crate) base: Contender,
    /// Whether a round counts only if the relay is well ahead of PgBouncer: the sign that the
    /// pooler, and nothing else on the machine, set the pace.
    pub(crate) yardstick: bool,
    /// Processors that the machine must have, or the figures say nothing.
    pub(crate) cores: usize,
    /// Server connections that poolers may open for each pool.
    pub(crate) pool_size: u32,
    /// What is measured where nobody says otherwise, and the least for a verdict.
    pub(crate) pace: Pace,
    /// Whether [`PIPELINING_CASES`] means it.
    pipelining: bool,
    /// Whether pairs of a grid take part. Each turn is in a fresh process then, which has a warm-up
    /// of its own: those of a large grid need not stand side by side.
    pub(crate) is_sweep: bool,
}

#[derive(Debug)]
pub(crate) enum Workload {
    Pgbench(Load),
    /// The same, behind another load in the same process, see [`crate::measure::SETTLING_S`].
    Change {
        from: Load,
        to: Load,
    },
    /// Selects at this part of what direct connections reach at their best.
    Rate {
        percent: u32,
    },
    /// One statement with a large result, again and again; the rows it must give.
    Fetch {
        sql: &'static str,
        tag: &'static str,
    },
    /// Connections that ran one query each and then rest.
    Idle,
    /// Many clients on each of several databases, see [`crate::crowd`].
    Crowd {
        pools: u32,
        clients: u32,
    },
    /// Selects of clients that each have a name of their own, and settings that a few others share.
    Settings {
        clients: u32,
    },
    /// Selects with something else beside them, see [`crate::mix`].
    Mix(Beside),
}

/// Where the server stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Server {
    Near,
    /// Behind a delay, see [`crate::delay`].
    Far,
    /// No PostgreSQL, but one that answers at once, see [`crate::instant`].
    Instant,
}

impl Server {
    pub(crate) fn is_postgres(self) -> bool {
        match self {
            Self::Near | Self::Far => true,
            Self::Instant => false,
        }
    }
}

impl Case {
    /// All cases, in the order in which they run and are reported.
    pub(crate) fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for (name, protocol) in [("simple", Protocol::Simple), ("extended", Protocol::Extended)] {
            cases.extend(CLIENTS.into_iter().map(|clients| Self::selects(name, protocol, clients)));
        }
        cases.extend([
            Self {
                title: "Selects, prepared statements, 64 clients; PgBouncer: extended protocol"
                    .into(),
                contenders: &[
                    Contender::Direct,
                    Contender::PgBouncer,
                    Contender::Pgweir,
                    Contender::PgweirOff,
                    Contender::PipeliningRelay,
                    Contender::SimplePgweir,
                ],
                ..Self::pgbench("prepared-64", Load { protocol: Protocol::Prepared, ..SELECTS })
                    .of_pipelining()
            },
            Self::rate(25),
            Self::rate(50),
            Self {
                title: "A new connection for each select, 8 clients".into(),
                ..Self::pgbench("connect", Load { clients: 8, reconnect: true, ..SELECTS })
            },
            Self {
                title: "TPC-B-like transactions, 64 clients".into(),
                ..Self::pgbench("tpcb-64", Load { script: Script::TpcbLike, ..SELECTS })
            },
            Self::fetch("copy-out", "COPY pgbench_accounts TO STDOUT", "COPY 1000000"),
            Self::fetch("select-1m", "SELECT * FROM pgbench_accounts", "SELECT 1000000"),
            Self {
                title: format!("{IDLE_CLIENTS} idle clients"),
                workload: Workload::Idle,
                contenders: &[Contender::PgBouncer, Contender::Pgweir, Contender::Relay],
                ..Self::pgbench("idle-10k", SELECTS)
            },
            Self {
                title: "Selects, simple protocol, 64 clients, server 0.5 ms away".into(),
                server: Server::Far,
                contenders: &[
                    Contender::Direct,
                    Contender::PgBouncer,
                    Contender::Pgweir,
                    Contender::PgweirOff,
                ],
                ..Self::pgbench("remote-64", SELECTS).of_pipelining()
            },
            Self {
                title: "Two databases of 32 clients, one worker and two".into(),
                contenders: &[Contender::PgweirOff, Contender::TwoWorkers],
                base: Contender::PgweirOff,
                ..Self::pgbench("workers-2", Load { pools: 2, clients: 32, ..SELECTS })
            },
            Self {
                title: "16 databases of 16 clients, one worker and four, a server that answers \
                        at once"
                    .into(),
                workload: Workload::Crowd { pools: 16, clients: 16 },
                server: Server::Instant,
                contenders: &[Contender::PgweirOff, Contender::FourWorkers],
                base: Contender::PgweirOff,
                cores: 16,
                ..Self::pgbench("workers-4", SELECTS)
            },
        ]);
        cases.extend(pipelining::cases());
        cases
    }

    /// Whether a name on the command line means this case: its own name, or its group's, as
    /// `simple` for `simple-64`, or [`PIPELINING_CASES`].
    pub(crate) fn is_meant_by(&self, name: &str) -> bool {
        self.name == name
            || self.name.split_once('-').is_some_and(|(group, _)| group == name)
            || self.pipelining && name == PIPELINING_CASES
    }

    /// Whether the contender takes part.
    pub(crate) fn admits(&self, contender: Contender) -> bool {
        self.contenders.contains(&contender) || self.is_sweep && contender.is_pair()
    }

    /// Databases that clients name.
    pub(crate) fn pools(&self) -> u32 {
        match self.workload {
            Workload::Pgbench(load) => load.pools,
            Workload::Change { to, .. } => to.pools,
            Workload::Crowd { pools, .. } => pools,
            Workload::Rate { .. } | Workload::Fetch { .. } | Workload::Idle => 1,
            Workload::Settings { .. } | Workload::Mix(_) => 1,
        }
    }

    /// Whether each turn needs a process that has not run before.
    pub(crate) fn wants_fresh_process(&self) -> bool {
        self.is_sweep
            || match self.workload {
                Workload::Idle => true,
                Workload::Mix(beside) => beside.is_cold(),
                Workload::Pgbench(_) | Workload::Change { .. } => false,
                Workload::Rate { .. } | Workload::Fetch { .. } => false,
                Workload::Crowd { .. } | Workload::Settings { .. } => false,
            }
    }

    /// Whether its slowest transaction is looked at, and not only how most of them are.
    pub(crate) fn counts_the_slowest(&self) -> bool {
        matches!(self.workload, Workload::Mix(beside) if beside.is_cold()) && !self.is_sweep
    }

    /// What a turn takes longer than it is asked to.
    pub(crate) fn overhead_seconds(&self) -> u32 {
        match self.workload {
            Workload::Pgbench(load) => overhead_seconds(load.clients),
            Workload::Change { to, .. } => overhead_seconds(to.clients),
            Workload::Rate { .. } | Workload::Mix(_) => overhead_seconds(CROWD),
            Workload::Fetch { .. } | Workload::Idle => 0,
            Workload::Crowd { .. } | Workload::Settings { .. } => 0,
        }
    }

    fn selects(name: &str, protocol: Protocol, clients: u32) -> Self {
        let plural = if clients == 1 { "client" } else { "clients" };
        Self {
            title: format!("Selects, {name} protocol, {clients} {plural}"),
            // Few clients wait for their own answers: poolers, the relay too, are near each other.
            yardstick: clients >= CROWD,
            contenders: &Contender::WITH_OFF,
            ..Self::pgbench(&format!("{name}-{clients}"), Load { protocol, clients, ..SELECTS })
        }
        .of_pipelining()
    }

    fn rate(percent: u32) -> Self {
        Self {
            title: format!("Selects at {percent}% of direct's maximum, 64 clients"),
            workload: Workload::Rate { percent },
            contenders: &[
                Contender::Direct,
                Contender::PgBouncer,
                Contender::Pgweir,
                Contender::PgweirOff,
            ],
            ..Self::pgbench(&format!("rate-{percent}"), SELECTS).of_pipelining()
        }
    }

    fn fetch(name: &str, sql: &'static str, tag: &'static str) -> Self {
        Self {
            title: format!("`{sql}`, 1,000,000 rows, one client"),
            workload: Workload::Fetch { sql, tag },
            base: Contender::Direct,
            ..Self::pgbench(name, SELECTS)
        }
    }

    fn pgbench(name: &str, load: Load) -> Self {
        Self {
            name: name.to_owned(),
            title: name.to_owned(),
            workload: Workload::Pgbench(load),
            server: Server::Near,
            contenders: &Contender::USUAL,
            base: Contender::PgBouncer,
            yardstick: false,
            cores: 1,
            pool_size: POOL_SIZE,
            pace: Pace::FULL,
            pipelining: false,
            is_sweep: false,
        }
    }

    fn of_pipelining(self) -> Self {
        Self { pace: Pace::BRIEF, pipelining: true, ..self }
    }
}

/// What most cases are variations of.
pub(crate) const SELECTS: Load = Load {
    script: Script::SelectOnly,
    protocol: Protocol::Simple,
    pools: 1,
    clients: 64,
    rate: None,
    reconnect: false,
    log_all: false,
};

#[cfg(test)]
mod tests;

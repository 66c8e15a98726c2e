//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::case::Case;
use crate::contender::Contender;
use crate::cpus::Cpus;
use crate::crowd::Crowd;
use crate::error::{Error, Result};
use crate::grid::Grid;

const EXAMPLES: &str = "\
Examples:
  bench                                   every case, each with rounds enough: about two hours
  bench --case simple-64,connect          two cases; the report keeps what others gave before
  bench --case pipelining                 all that stands or falls with pipelining: 100 minutes
  bench --case simple --rounds 1 --seconds 2    a quick look at a group of cases
  bench --case sweep-64 --grid full       48 pairs of `pipelining` beside what is the default
  bench --contenders direct,pgbouncer,relay     without pgweir
  PGBOUNCER=/opt/pgbouncer bench          another PgBouncer
  bench --case workers-4 --force          on fewer cores than it needs, to see that it runs
  bench report                            writes the report anew from the raw results

Cases (a group's name stands for all of it):
  simple-N, extended-N   selects with N = 1, 16, 64, 250, 1000 clients
  prepared-64            selects by statements that are prepared once
  rate-25, rate-50       selects at a part of what direct connections reach
  connect                a new connection for each select
  tpcb-64                pgbench's own transaction, durable
  copy-out, select-1m    1,000,000 rows to one client
  idle-10k               10,000 clients that rest
  remote-64              a server half a millisecond away
  workers-2              two databases under load, pgweir with one worker and with two
  workers-4              one worker and four before a server that answers at once; needs 16 cores
                         and no PostgreSQL
  settings-64            selects, 64 names of applications and 4 sets of settings
  pool-2, pool-64        selects of 64 clients, other pools than those of ten
  tpcb-pool-64           pgbench's own transaction, durable, pool of 64
  update-64              a row by its key, durable, pool of 64
  mix-view, mix-lock     selects of 60 clients beside 4 that wait, from the pooler's start on
  mix-tpcb               selects of 60 clients beside 4 with pgbench's own transaction
  sweep-…                pgweir beside itself with each pair of the grid as `pipelining`
  pipelining             simple-N, extended-N, prepared-64, rate-N, remote-64, and all from
                         settings-64 on

Rounds and seconds: 7 of 8 s, pipelining 5 of 3 s, mix-view and mix-lock 5 of 10 s, sweep 5 of 2 s
and 3 before that find its best pair.
The report gives no verdict of fewer or shorter ones.";

/// Beside the page that is made of them, so that whoever doubts a figure can look at its rounds.
pub(crate) const RESULTS: &str = "docs/benchmarks/rounds";
/// The folder of documents.
pub(crate) const DOCS: &str = "docs";

/// Compares direct connections, PgBouncer, pgweir and a bare relay on one throw-away PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "bench", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the report from the raw results, without measuring
    Report(Folders),
    /// Forward PORT to a server's unix socket, half a millisecond late
    Delay { port: u16, server: PathBuf },
    /// Answer every query on PORT at once, with so many threads and no PostgreSQL
    Instant {
        port: u16,
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        threads: u32,
    },
    /// Ask with many clients, each as fast as it is answered; what came of it, as JSON
    Crowd(Crowd),
    /// Print the commit that results would be of, for a bundle to carry along
    #[command(hide = true)]
    Commit,
    /// Become a program that ends with the harness
    #[command(hide = true)]
    Child {
        #[arg(long)]
        cpus: Option<Cpus>,
        parent: u32,
        stop: String,
        program: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Run {
    /// Cases or groups of cases, separated by commas [default: all]
    #[arg(long, env = "CASE", hide_env_values = true)]
    case: Option<String>,
    /// Contenders, separated by commas: direct, pgbouncer, pgweir, relay; pgweir-off without
    /// pipelining, pgweir-3x16 with a pair of its own, pgweir-2 and pgweir-4 with so many workers,
    /// pgweir-simple, pgweir-equal, and relay-pipelining [default: all]
    #[arg(long, env = "CONTENDERS", hide_env_values = true)]
    contenders: Option<String>,
    /// Pairs of the sweeps where no contenders are named: thin, full, or as in 1x8,3x16
    #[arg(long, env = "GRID", default_value = "thin", hide_env_values = true)]
    grid: Grid,
    /// Rounds that must count, for each case [default: the case's own]
    #[arg(long, env = "ROUNDS", hide_env_values = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Seconds of one contender's turn [default: the case's own]
    #[arg(long, env = "SECONDS", hide_env_values = true,
        value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) seconds: Option<u32>,
    /// Run cases too that need more cores than there are; the report does not judge them
    #[arg(long)]
    pub(crate) force: bool,
    /// Keep the results apart, as those of another kind of machine than the page is about; the
    /// report gives them a chapter
    #[arg(long)]
    pub(crate) elsewhere: bool,
    /// PgBouncer's program [default: the one in PATH, else Debian's]
    #[arg(long, env = "PGBOUNCER", hide_env_values = true)]
    pub(crate) pgbouncer: Option<PathBuf>,
    /// pgweir's program [default: the one beside this program]
    #[arg(long, env = "PGWEIR", hide_env_values = true)]
    pub(crate) pgweir: Option<PathBuf>,
    /// The folder of initdb, postgres and pgbench [default: the newest in /usr/lib/postgresql]
    #[arg(long, env = "PG_BIN", hide_env_values = true)]
    pub(crate) pg_bin: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) folders: Folders,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Folders {
    /// Where raw results are kept, one file for each case
    #[arg(long, env = "BENCH_RESULTS", default_value = RESULTS, hide_env_values = true)]
    pub(crate) results: PathBuf,
    /// Where the report is written
    #[arg(long, env = "BENCH_DOCS", default_value = DOCS, hide_env_values = true)]
    pub(crate) docs: PathBuf,
}

impl Run {
    /// The cases that are meant, in the table's order.
    ///
    /// Errors: a name that means none.
    pub(crate) fn cases(&self) -> Result<Vec<Case>> {
        let names = names(self.case.as_deref());
        let all = Case::all();
        if let Some(name) = names.iter().find(|name| !all.iter().any(|c| c.is_meant_by(name))) {
            return Err(Error::unfit(format!("no case is named {name}; see --help")));
        }
        let meant = |case: &Case| names.is_empty() || names.iter().any(|n| case.is_meant_by(n));
        Ok(all.into_iter().filter(meant).collect())
    }

    /// The contenders that are meant.
    ///
    /// Errors: a name that means none.
    pub(crate) fn contenders(&self) -> Result<Vec<Contender>> {
        let names = names(self.contenders.as_deref());
        if names.is_empty() {
            let pairs = self.grid.0.iter().copied().map(Contender::Fixed);
            return Ok(Contender::ALL.into_iter().chain(pairs).collect());
        }
        let named = |name: &String| {
            Contender::named(name)
                .ok_or_else(|| Error::unfit(format!("no contender is named {name}; see --help")))
        };
        names.iter().map(named).collect()
    }
}

/// The words between commas.
fn names(list: Option<&str>) -> Vec<String> {
    let words = list.unwrap_or_default().split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

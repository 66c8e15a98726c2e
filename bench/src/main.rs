//! The benchmark: direct connections, PgBouncer, pgweir and a bare relay, side by side.
//!
//! `bench` makes a throw-away PostgreSQL, lets the contenders take turns on it, keeps every raw
//! figure on disk, and writes the report from there. What it claims, it claims of ratios within a
//! round: figures of different minutes, or machines, are never compared.
//!
//! Invariants: every contender has the same server, load, authentication and log settings; a case
//! that fails leaves its older result alone; nothing that the harness started outlives it.

mod account;
mod case;
mod charts;
mod child;
mod cli;
mod clock;
mod cluster;
mod contender;
mod delay;
mod environment;
mod error;
mod frontend;
mod lab;
mod measure;
mod metric;
mod pgbench;
mod procfs;
mod report;
mod results;
mod rounds;
mod scratch;
mod stats;
mod svg;
mod thresholds;

use std::process::ExitCode;

use clap::Parser;

use crate::case::Case;
use crate::cli::{Args, Command, Run};
use crate::contender::{Contender, Programs};
use crate::environment::Environment;
use crate::error::{Doing, Error, Result};
use crate::lab::Lab;
use crate::rounds::Plan;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Some(Command::Child { parent, stop, program, args }) => {
            Err(child::become_child(parent, &stop, &program, &args))
        }
        Some(Command::Delay { port, server_port }) => {
            delay::run(port, server_port).doing(|| "delay".into())
        }
        Some(Command::Report(folders)) => report::write(&folders.results, &folders.docs),
        None => run(args.run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the chosen cases; a case that fails does not keep the others from running.
fn run(run: Run) -> Result<()> {
    clock::hear_signals()?;
    let cases = run.cases()?;
    let bin = cluster::PgBin::find(run.pg_bin.as_deref())?;
    let programs = Programs::find(run.pgbouncer.as_deref(), run.pgweir.as_deref())?;
    let plan = Plan {
        rounds: run.rounds,
        seconds: run.seconds,
        contenders: chosen(&run.contenders()?, &programs),
    };
    announce(&plan, &cases);
    let environment = Environment::look(&bin, &programs);
    let mut lab = Lab::set_up(bin, programs)?;
    let mut failed = Vec::new();
    for case in &cases {
        let stored = plan
            .run(case, &mut lab, &environment)
            .and_then(|result| result.store(&run.folders.results));
        match stored {
            Ok(()) => report::write(&run.folders.results, &run.folders.docs)?,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                eprintln!("  {} failed: {error}", case.name);
                failed.push(case.name.clone());
            }
        }
    }
    println!("report: {}", run.folders.docs.join(report::FILE).display());
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Error::unfit(format!("failed: {}", failed.join(", "))))
    }
}

/// The contenders that were asked for and are there; says who is not.
fn chosen(asked: &[Contender], programs: &Programs) -> Vec<Contender> {
    let (here, missing): (Vec<_>, Vec<_>) =
        asked.iter().copied().partition(|contender| programs.have(*contender));
    for contender in missing {
        println!("without {}: its program is not there", contender.label());
    }
    here
}

fn announce(plan: &Plan, cases: &[Case]) {
    let seconds: u32 = cases.iter().map(|case| plan.estimate(case)).sum();
    println!(
        "{} cases, {} rounds of {} s, about {} min",
        cases.len(),
        plan.rounds,
        plan.seconds,
        seconds.div_ceil(60)
    );
    println!("PostgreSQL, with its defaults but:");
    for (name, value) in cluster::SETTINGS {
        println!("  {name} = {value}");
    }
}

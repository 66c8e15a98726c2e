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
mod commit;
mod contender;
mod cpus;
mod crowd;
mod delay;
mod environment;
mod error;
mod frontend;
mod grid;
mod instant;
mod lab;
mod measure;
mod metric;
mod mix;
mod outcome;
mod pgbench;
mod procfs;
mod report;
mod results;
mod rounds;
mod scheduling;
mod scratch;
mod stats;
mod svg;
mod thresholds;

use std::process::ExitCode;

use clap::Parser;

use crate::case::Case;
use crate::cli::{Args, Command, Run};
use crate::cluster::PgBin;
use crate::contender::{Contender, Programs};
use crate::crowd::Crowd;
use crate::environment::Environment;
use crate::error::{Doing, Error, Result};
use crate::lab::Lab;
use crate::rounds::{Origin, Plan};

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Some(Command::Child { cpus, parent, stop, program, args }) => {
            Err(child::become_child(parent, &stop, cpus.as_ref(), &program, &args))
        }
        Some(Command::Delay { port, server }) => delay::run(port, &server).doing(|| "delay".into()),
        Some(Command::Instant { port, threads }) => {
            instant::run(port, threads).doing(|| "answer at once".into())
        }
        Some(Command::Crowd(crowd)) => ask(&crowd),
        Some(Command::Commit) => {
            println!("{}", commit::in_words(commit::of_this_run().as_deref()));
            Ok(())
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

/// Runs a crowd, and prints as JSON what came of it.
fn ask(crowd: &Crowd) -> Result<()> {
    let outcome = serde_json::to_string(&crowd.run()?).doing(|| "write the outcome".into())?;
    println!("{outcome}");
    Ok(())
}

/// Runs the chosen cases; a case that fails does not keep the others from running.
fn run(run: Run) -> Result<()> {
    clock::hear_signals()?;
    let programs = Programs::find(run.pgbouncer.as_deref(), run.pgweir.as_deref())?;
    let plan = Plan {
        rounds: run.rounds,
        seconds: run.seconds,
        contenders: chosen(&run.contenders()?, &programs),
    };
    let cases = runnable(run.cases()?, &plan, run.force);
    if cases.is_empty() {
        return Ok(());
    }
    let with_postgres = cases.iter().any(|case| case.server.is_postgres());
    let bin = with_postgres.then(|| PgBin::find(run.pg_bin.as_deref())).transpose()?;
    announce(&plan, &cases, with_postgres);
    let origin = Origin {
        environment: Environment::look(bin.as_ref(), &programs),
        commit: commit::of_this_run(),
    };
    let mut lab = Lab::set_up(bin, programs)?;
    let kept_in = match run.elsewhere {
        true => run.folders.results.join(report::ELSEWHERE),
        false => run.folders.results.clone(),
    };
    let mut failed = Vec::new();
    for case in &cases {
        match plan.run(case, &mut lab, &origin).and_then(|result| result.store(&kept_in)) {
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

/// The cases that can be measured here; says which cannot, and why.
fn runnable(asked: Vec<Case>, plan: &Plan, force: bool) -> Vec<Case> {
    let cores = cpus::count();
    let (here, left_out): (Vec<_>, Vec<_>) = asked
        .into_iter()
        .partition(|case| (force || case.cores <= cores) && !plan.contenders_of(case).is_empty());
    for Case { name, cores: needed, .. } in left_out {
        if needed > cores && !force {
            println!("without {name}: it needs {needed} cores, and there are {cores} (--force)");
        } else {
            println!("without {name}: none of its contenders was asked for and is there");
        }
    }
    here
}

fn announce(plan: &Plan, cases: &[Case], with_postgres: bool) {
    let seconds: u32 = cases.iter().map(|case| plan.estimate(case)).sum();
    println!("{} cases, about {} min", cases.len(), seconds.div_ceil(60));
    if !with_postgres {
        return;
    }
    println!("PostgreSQL, with its defaults but:");
    for (name, value) in cluster::SETTINGS {
        println!("  {name} = {value}");
    }
}

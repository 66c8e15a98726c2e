//! The program: command line, start-up, signals.
//!
//! It puts the parts together and owns no idea of its own. The main thread runs the control
//! plane: it logs, answers the console and heeds signals, while the worker's thread carries the
//! traffic.
#![forbid(unsafe_code)]

mod check;
mod cli;
mod file;
mod log;
mod run;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use file::File;

/// Few allocations are made for each client, but they are made and freed in storms; this
/// allocator gives memory back after a storm and keeps what is left dense.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The configuration cannot be used: as PostgreSQL's tools do for a wrong command line.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let path = match Cli::parse() {
        Cli { command: Some(Command::Check(check)), .. } => return check::run(&check),
        Cli { config: Some(path), .. } => path,
        // Without arguments the help was shown already.
        Cli { command: None, config: None } => return ExitCode::from(UNUSABLE),
    };
    log::start();
    die_of_panics();
    let (file, config) = match File::open(path) {
        Ok(opened) => opened,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::from(UNUSABLE);
        }
    };
    log::warn(&config);
    match run::run(&config, file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A panic is an invariant that does not hold. Nothing is promised after that, so the process
/// ends at once, in debug builds too, where a panic of a task would otherwise go unnoticed.
fn die_of_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

//! The program: command line, start-up, signals.
//!
//! It puts the parts together and owns no idea of its own. The main thread runs the control
//! plane: it logs, answers the console and heeds signals, while the worker's thread carries the
//! traffic.
#![forbid(unsafe_code)]

mod ask;
mod check;
mod cli;
mod connect;
mod demand;
mod descriptors;
mod draft;
mod exporter;
mod file;
mod init;
mod listen;
mod log;
mod notify;
mod quick;
mod resident;
mod run;
mod text_fields;
mod url;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use pgweir_config::Url;

use cli::{Cli, Command, Listen};
use file::{File, Loaded};
use log::Log;

/// Few allocations are made for each client, but they are made and freed in storms; this
/// allocator gives memory back after a storm and keeps what is left dense.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The configuration cannot be used: as PostgreSQL's tools do for a wrong command line.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let (path, listen) = match Cli::parse() {
        Cli { command: Some(Command::Check(check)), .. } => return check::run(&check),
        Cli { command: Some(Command::Init(init)), .. } => return init::run(&init),
        Cli { config: Some(path), listen, .. } => (path, listen),
        // Without arguments the help was shown already.
        Cli { command: None, config: None, .. } => return ExitCode::from(UNUSABLE),
    };
    let log = match Log::start() {
        Ok(log) => log,
        Err(error) => {
            eprintln!("cannot start the log: {error}");
            return ExitCode::FAILURE;
        }
    };
    die_of_panics(log.clone());
    let code = serve(&path, listen, &log);
    log.flush();
    code
}

fn serve(path: &Path, listen: Option<Listen>, log: &Log) -> ExitCode {
    let (file, loaded) = match configuration(path, listen) {
        Ok(opened) => opened,
        Err(complaint) => {
            eprintln!("{complaint}");
            return ExitCode::from(UNUSABLE);
        }
    };
    log.set(loaded.config.general.log);
    log::warn(&loaded.config);
    let invited = match &file {
        Some(_) => Ok(()),
        None => quick::invite(&loaded.config),
    };
    match invited.and_then(|()| run::run(loaded, file, log.clone())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What the argument stands for, a file or a URL without one, and what is wrong with it.
fn configuration(
    argument: &Path,
    listen: Option<Listen>,
) -> Result<(Option<File>, Loaded), String> {
    match (Url::in_argument(argument), listen) {
        (Some(text), listen) => {
            Ok((None, quick::config(&url::read(text)?, &listen.unwrap_or_default())?))
        }
        (None, None) => {
            let opened = File::open(argument.to_owned()).map_err(|errors| errors.to_string());
            opened.map(|(file, loaded)| (Some(file), loaded))
        }
        (None, Some(_)) => {
            Err("--listen goes with a URL; a file says it with general.host and general.port"
                .to_owned())
        }
    }
}

/// A panic is an invariant that does not hold. Nothing is promised after that, so the process
/// ends at once, in debug builds too, where a panic of a task would otherwise go unnoticed.
fn die_of_panics(log: Log) {
    std::panic::set_hook(Box::new(move |panic| {
        log.panicked(panic);
        std::process::abort();
    }));
}

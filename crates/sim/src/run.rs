use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pgweir_engine::Marks;

use crate::faults::Faults;
use crate::ledger::Counts;
use crate::trace::Trace;
use crate::world::World;

/// What a simulation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it was made from.
    pub seed: u64,
    /// A hash of all that happened, in order.
    pub hash: u64,
    /// Virtual time, in microseconds.
    pub micros: u64,
    /// What was done in it.
    pub counts: Counts,
}

/// A simulation in which something was wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What it was made from.
    pub seed: u64,
    /// What was wrong.
    pub cause: String,
    /// Everything that happened up to there, a line for each event.
    pub trace: Vec<String>,
}

/// How to run a simulation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What goes wrong by itself; drawn from the seed if it is not given.
    pub faults: Option<Faults>,
    /// Print the trace as it comes.
    pub live: bool,
}

/// Runs the simulation of this seed twice, and compares.
///
/// A failure is run once more to tell what happened, with the engine checked after each event.
pub fn run(seed: u64) -> Result<Report, Box<Failure>> {
    run_with(seed, &Options::default())
}

/// As [`run`], with options.
pub fn run_with(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let result = once(seed, options, Trace::new(options.live, options.live)).and_then(|first| {
        let second = once(seed, options, Trace::new(false, false))?;
        if first == second {
            return Ok(first);
        }
        let cause = "the same seed does not give the same simulation".to_owned();
        Err(Box::new(Failure { seed, cause, trace: Vec::new() }))
    });
    result.map_err(|failure| match once(seed, options, Trace::new(true, false)) {
        Err(told) => told,
        Ok(_) => failure,
    })
}

fn once(seed: u64, options: &Options, trace: Trace) -> Result<Report, Box<Failure>> {
    let fail = |cause, trace| Box::new(Failure { seed, cause, trace });
    // What was counted before is another simulation's.
    Marks::take();
    let mut world = match World::new(seed, options.faults.clone(), trace) {
        Ok(world) => world,
        Err(cause) => return Err(fail(cause, Vec::new())),
    };
    let result = catch_unwind(AssertUnwindSafe(|| world.run()));
    let cause = match result {
        Ok(Ok(())) => {
            return Ok(Report {
                seed,
                hash: world.site.trace.hash(),
                micros: world.now(),
                counts: Counts { marks: Marks::take(), ..world.site.ledger.counts },
            });
        }
        Ok(Err(cause)) => cause,
        Err(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (None, Some(text)) => (*text).to_owned(),
            (None, None) => "a panic without words".to_owned(),
        },
    };
    let mut lines = world.take_trace();
    lines.push(cause.clone());
    Err(fail(cause, lines))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LINES: usize = 60;
        let skipped = self.trace.len().saturating_sub(LINES);
        if skipped > 0 {
            writeln!(f, "({skipped} lines before)")?;
        }
        for line in &self.trace[skipped..] {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {}: {}", self.seed, self.cause)
    }
}

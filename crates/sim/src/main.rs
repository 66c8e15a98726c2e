//! Runs simulations: one seed to look at, a range of them, or new ones until it is stopped.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clap::Parser;
use pgweir_sim::{Counts, Failure, Mark, Options, Row, run_with};

/// pgweir among fake clients, fake servers and a network that fails, all from one number.
#[derive(Parser)]
#[command(after_help = "Examples:
  pgweir-sim                     new seeds on all cores, until something is wrong or Ctrl-C
  pgweir-sim --seeds 0..10000    these seeds, and a line of figures
  pgweir-sim --seed 7            one seed, and what was wrong if something was
  pgweir-sim --seed 7 --trace    one seed, with everything that happens")]
struct Arguments {
    /// Run this seed only.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run the seeds from A to B - 1.
    #[arg(long, value_name = "A..B", value_parser = range)]
    seeds: Option<Range<u64>>,
    /// Print everything that happens; with --seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Go on after a failure, and print one line for each.
    #[arg(long)]
    keep_going: bool,
}

/// What all threads have done together.
#[derive(Default)]
struct Total {
    next: AtomicU64,
    failed: AtomicBool,
    sum: Mutex<(u64, u64, Counts)>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = match (arguments.seed, arguments.seeds) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(seeds)) => seeds,
        (None, None) => fresh()..u64::MAX,
    };
    let options = Options { faults: None, live: arguments.trace };
    let total = Total::default();
    total.next.store(seeds.start, Ordering::Relaxed);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(usize::try_from(seeds.end - seeds.start).unwrap_or(cores));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&total, seeds.end, &options, arguments.keep_going));
        }
    });
    tell(&total);
    match total.failed.load(Ordering::Relaxed) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

fn work(total: &Total, end: u64, options: &Options, keep_going: bool) {
    loop {
        let seed = total.next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || (total.failed.load(Ordering::Relaxed) && !keep_going) {
            return;
        }
        match run_with(seed, options) {
            Ok(report) => {
                let due = {
                    // A thread that panics with the sum in hand ends the program.
                    let Ok(mut sum) = total.sum.lock() else { return };
                    sum.0 += 1;
                    sum.1 += report.micros;
                    sum.2.add(&report.counts);
                    sum.0 % 10_000 == 0
                };
                if due {
                    tell(total);
                }
            }
            Err(failure) => {
                total.failed.store(true, Ordering::Relaxed);
                say(&failure, keep_going);
            }
        }
    }
}

fn say(failure: &Failure, briefly: bool) {
    if briefly {
        let cause = failure.cause.lines().next().unwrap_or_default();
        println!("seed {}: {cause}", failure.seed);
    } else {
        println!("{failure}To see all of it: pgweir-sim --seed {} --trace", failure.seed);
    }
}

fn tell(total: &Total) {
    let Ok(sum) = total.sum.lock() else { return };
    let (seeds, micros, counts) = *sum;
    if seeds == 0 {
        return;
    }
    let Counts { sessions, transactions, statements, replies, .. } = counts;
    let Counts { cancels, losses, refusals, farewells, rows, marks, .. } = counts;
    let Counts { handovers, moved, .. } = counts;
    println!(
        "{seeds} seeds, {:.1} virtual hours: {sessions} sessions, {transactions} transactions, \
         {statements} statements, {replies} replies compared, {cancels} cancels, {losses} losses, \
         {refusals} refusals, {farewells} farewells, {handovers} hand-overs, \
         {moved} connections moved",
        micros as f64 / 3.6e9
    );
    let reached = Row::ALL.map(|row| format!("{} {}", row.name(), rows.times(row)));
    println!("rows of docs/failures.md: {}", reached.join(", "));
    let mut taken: Vec<_> = Mark::ALL.iter().map(|mark| (marks.times(*mark), mark)).collect();
    taken.sort_by_key(|(times, _)| *times);
    let taken: Vec<_> = taken.iter().map(|(times, mark)| format!("{mark:?} {times}")).collect();
    println!("rare paths: {}", taken.join(", "));
}

/// A seed that was not run yet, as far as chance allows.
fn fresh() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() >> 1
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = text.split_once("..").ok_or("expected A..B")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    Ok(number(start)?..number(end)?)
}

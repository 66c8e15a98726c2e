//! Runs simulations: one seed to look at, a range of them, or new ones until it is stopped.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use clap::Parser;
use pgweir_sim::{
    Counts, Diet, Failure, Mark, Options, Progress, Report, Row, may_share, run_with, shrink,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A simulation is many small things that are made and soon forgotten.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// pgweir among fake clients, fake servers and a network that fails, all from one number.
#[derive(Parser)]
#[command(after_help = "Examples:
  pgweir-sim                     new seeds on all cores, until something is wrong or Ctrl-C
  pgweir-sim --seeds 0..10000    these seeds, and a line of figures
  pgweir-sim --seed 7            one seed, and what was wrong if something was
  pgweir-sim --seed 7 --trace    one seed, with everything that happens
  pgweir-sim --once --find WantUnmet,PlaceLost    seeds that take these rare paths
  pgweir-sim --once --sharing --keep-going        where servers are shared, as many as may be")]
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
    /// Run each seed once, not twice: so many more in the same time, and no look at whether all
    /// happens the same again.
    #[arg(long, conflicts_with = "seed")]
    once: bool,
    /// Leave out the seeds in whose configuration nobody shares a server.
    #[arg(long, conflicts_with = "seed")]
    sharing: bool,
    /// Print the first failure as it is, instead of one like it that is as small as possible.
    #[arg(long)]
    no_shrink: bool,
    /// Take these away from the simulation, as in `split,seat.0-3`; with --seed.
    #[arg(long, value_name = "WHAT,…", requires = "seed")]
    without: Option<Diet>,
    /// Let nothing go wrong any more after so many milliseconds; with --seed.
    #[arg(long, value_name = "MS", requires = "seed")]
    storm_ms: Option<u64>,
    /// Say which seeds take these rare paths.
    #[arg(long, value_name = "MARK,…", value_parser = mark, value_delimiter = ',')]
    find: Vec<Mark>,
}

/// What all threads share.
struct Common {
    next: AtomicU64,
    end: u64,
    options: Options,
    /// Only seeds in which servers are shared.
    sharing: bool,
    stopped: Arc<AtomicBool>,
}

/// What all threads have done together.
struct Total {
    began: Instant,
    seeds: u64,
    events: u64,
    micros: u64,
    counts: Counts,
    failures: u64,
}

/// What a thread has done.
type Done = Result<Report, Box<Failure>>;

/// How often there is a line of figures.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// How many simulations may be run to make a failure smaller.
const MOST_RUNS: u32 = 3_000;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stopped = Arc::default();
    if let Err(error) = hear_signals(&stopped) {
        eprintln!("cannot listen for signals: {error}");
        return ExitCode::FAILURE;
    }
    let seeds = match (arguments.seed, &arguments.seeds) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(seeds)) => seeds.clone(),
        (None, None) => fresh()..u64::MAX,
    };
    let mut diet = arguments.without.unwrap_or_default();
    diet.storm_ms = arguments.storm_ms;
    let options =
        Options { diet, live: arguments.trace, once: arguments.once, ..Options::default() };
    let (next, end) = (AtomicU64::new(seeds.start), seeds.end);
    let common = Common { next, end, options, sharing: arguments.sharing, stopped };
    let (total, first) = run_all(&common, arguments.keep_going, &arguments.find);
    total.tell();
    if let Some(failure) = first.filter(|_| !arguments.keep_going) {
        if arguments.no_shrink {
            print!("{failure}");
        } else {
            say_smaller(&failure, &common.options);
        }
    }
    match total.failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs all seeds, on all cores, and says which of them take the paths to find. Gives the first
/// failure, too.
fn run_all(common: &Common, keep_going: bool, find: &[Mark]) -> (Total, Option<Box<Failure>>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let left = common.end - common.next.load(Ordering::Relaxed);
    let threads = cores.min(usize::try_from(left).unwrap_or(cores));
    let (sender, done) = channel();
    let (mut total, mut first) = (Total::new(), None);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(|| work(common, sender));
        }
        drop(sender);
        let mut next_line = now() + TELL_EVERY;
        loop {
            match done.recv_timeout(next_line.saturating_duration_since(now())) {
                Ok(Ok(report)) => {
                    let taken = find.iter().filter(|mark| report.counts.marks.times(**mark) > 0);
                    taken.for_each(|mark| println!("seed {}: {mark:?}", report.seed));
                    total.add(&report);
                }
                Ok(Err(failure)) => {
                    total.failures += 1;
                    if keep_going {
                        let cause = failure.cause.lines().next().unwrap_or_default();
                        println!("seed {}: {cause}", failure.seed);
                    } else {
                        common.stopped.store(true, Ordering::Relaxed);
                    }
                    first.get_or_insert(failure);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if now() >= next_line {
                eprintln!("{}", total.line());
                next_line += TELL_EVERY;
            }
        }
    });
    (total, first)
}

fn work(common: &Common, sender: Sender<Done>) {
    while !common.stopped.load(Ordering::Relaxed) {
        let seed = common.next.fetch_add(1, Ordering::Relaxed);
        if seed >= common.end {
            return;
        }
        let is_wanted = !common.sharing || may_share(seed);
        if is_wanted && sender.send(run_with(seed, &common.options)).is_err() {
            return;
        }
    }
}

/// Makes a failure smaller, and prints it.
fn say_smaller(failure: &Failure, options: &Options) {
    eprintln!("seed {} failed after {}: {}", failure.seed, failure.extent, failure.cause);
    let mut next_line = now();
    let shrunk = shrink(failure, options, MOST_RUNS, |progress| {
        if now() >= next_line {
            next_line = now() + Duration::from_secs(1);
            let Progress { runs, extent } = progress;
            eprintln!("making it smaller: {runs} runs, {extent}");
        }
    });
    print!("{}", shrunk.failure);
    let end = if shrunk.finished { "nothing more can be taken away" } else { "there may be less" };
    println!("of {} ({} runs, {end})", failure.extent, shrunk.runs);
}

impl Total {
    fn new() -> Self {
        Self {
            began: now(),
            seeds: 0,
            events: 0,
            micros: 0,
            counts: Counts::default(),
            failures: 0,
        }
    }

    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.events += report.events;
        self.micros += report.micros;
        self.counts.add(&report.counts);
    }

    /// How far it has come.
    fn line(&self) -> String {
        let Self { began, seeds, micros, counts, failures, .. } = self;
        let seconds = now().saturating_duration_since(*began).as_secs_f64();
        let transactions = counts.transactions;
        format!(
            "{seconds:.0} s: {seeds} seeds, {transactions} transactions ({:.0} a second), {:.1} \
             virtual hours, {failures} failures",
            transactions as f64 / seconds,
            *micros as f64 / 3.6e9
        )
    }

    /// All that was done.
    fn tell(&self) {
        let Counts { sessions, statements, replies, .. } = self.counts;
        let Counts { cancels, losses, refusals, farewells, rows, marks, .. } = self.counts;
        let Counts { handovers, moved, .. } = self.counts;
        println!("{}", self.line());
        println!(
            "{} events, {sessions} sessions, {statements} statements, {replies} replies compared, \
             {cancels} cancels, {losses} losses, {refusals} refusals, {farewells} farewells, \
             {handovers} hand-overs, {moved} connections moved, {} units on shared servers",
            self.events,
            marks.times(Mark::UnitShares),
        );
        let reached = Row::ALL.map(|row| format!("{} {}", row.name(), rows.times(row)));
        println!("rows of docs/failures.md: {}", reached.join(", "));
        let mut taken: Vec<_> = Mark::ALL.iter().map(|mark| (marks.times(*mark), mark)).collect();
        taken.sort_by_key(|(times, _)| *times);
        let taken: Vec<_> = taken.iter().map(|(times, mark)| format!("{mark:?} {times}")).collect();
        println!("rare paths: {}", taken.join(", "));
    }
}

/// Makes Ctrl-C end the run once what is under way is over; a second one ends it at once.
fn hear_signals(stopped: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset, the second finds it set.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(stopped))?;
        flag::register(signal, Arc::clone(stopped))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "how fast it is, is told in real time")]
fn now() -> Instant {
    Instant::now()
}

/// A seed that was not run yet, as far as chance allows.
fn fresh() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() >> 1
}

fn mark(name: &str) -> Result<Mark, &'static str> {
    let found = Mark::ALL.iter().find(|mark| format!("{mark:?}") == name);
    found.copied().ok_or("there is no such mark in crates/engine/src/marks.rs")
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = text.split_once("..").ok_or("expected A..B")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    Ok(number(start)?..number(end)?)
}

//! Inputs of the corpus, changed at random, for half a minute over all targets.
//!
//! `PGWEIR_FUZZ_SECONDS` makes it longer or shorter, `PGWEIR_FUZZ_SEED` repeats a run, and
//! `PGWEIR_FUZZ_TARGET` leaves out all targets but one. An input that fails is written to
//! `target/fuzz-failures` and can be replayed alone (`tests/replay.rs`).

use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::abort;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pgweir_fuzz::{Mutator, TARGETS, Target, corpus, fails, shrink};

const SECONDS: u64 = 30;

/// A run that takes longer than this never ends, as far as a pooler's clients can tell.
const RUN_MAX: Duration = Duration::from_secs(20);

/// Targets take turns of this length times their weight, so that each gets its share of a short
/// time.
const TURN: Duration = Duration::from_millis(50);

#[test]
fn random_inputs_hold() {
    let seed = variable("PGWEIR_FUZZ_SEED").unwrap_or_else(random_seed);
    let time = Duration::from_secs(variable("PGWEIR_FUZZ_SECONDS").unwrap_or(SECONDS));
    let only = std::env::var("PGWEIR_FUZZ_TARGET").ok();
    let chosen = TARGETS.into_iter().filter(|t| only.as_deref().is_none_or(|only| t.name == only));
    let mut runners: Vec<_> = chosen.map(|target| Runner::new(target, seed)).collect();
    assert!(!runners.is_empty(), "no target is called {only:?}");
    println!("PGWEIR_FUZZ_SEED={seed}");

    let watchdog = Watchdog::new();
    let start = now();
    while start.elapsed() < time {
        for runner in &mut runners {
            runner.turn(&watchdog);
        }
    }
    for Runner { target, runs, slowest, .. } in &runners {
        println!("{:<14} {runs:>9} runs, the slowest {slowest:?}", target.name);
        assert!(*runs > 0, "{} was never run", target.name);
    }
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let inputs = |target: Target, seed| -> Vec<Vec<u8>> {
        let mut mutator = mutator(target, seed);
        (0..200).map(|_| mutator.input()).collect()
    };
    for target in TARGETS {
        let first = inputs(target, 1);
        assert_eq!(inputs(target, 1), first, "{}", target.name);
        assert_ne!(inputs(target, 2), first, "{}", target.name);
        for input in &first[..20] {
            (target.run)(input);
        }
    }
}

/// One target and what it has come to.
struct Runner {
    target: Target,
    mutator: Mutator,
    runs: u64,
    slowest: Duration,
}

impl Runner {
    fn new(target: Target, seed: u64) -> Self {
        Self { target, mutator: mutator(target, seed), runs: 0, slowest: Duration::ZERO }
    }

    fn turn(&mut self, watchdog: &Watchdog) {
        let start = now();
        let mut before = Duration::ZERO;
        while before < TURN * self.target.weight {
            let input = self.mutator.input();
            watchdog.begin(self.target, &input);
            if fails(self.target, &input) {
                watchdog.end();
                panic!("{}", failure(self.target, &shrink(self.target, &input)));
            }
            let after = start.elapsed();
            self.slowest = self.slowest.max(after - before);
            self.runs += 1;
            before = after;
        }
        watchdog.end();
    }
}

/// How many runs there were, what runs now, and on what.
type Current = (u64, Option<Target>, Vec<u8>);

/// Ends the process if a run does not end, with the input to repeat it.
struct Watchdog {
    current: Arc<Mutex<Current>>,
    /// Dropped with the watchdog: its thread ends when nobody can send any more.
    _alive: Sender<()>,
}

impl Watchdog {
    fn new() -> Self {
        let current = Arc::new(Mutex::new((0_u64, None, Vec::new())));
        let (alive, ended) = channel();
        let watched = Arc::clone(&current);
        std::thread::spawn(move || {
            let mut last = 0;
            while ended.recv_timeout(RUN_MAX) == Err(RecvTimeoutError::Timeout) {
                let Ok(current) = watched.lock() else { return };
                let (run, target, input) = &*current;
                if let Some(target) = target.filter(|_| *run == last) {
                    eprintln!("this takes for ever: {}", failure(target, input));
                    abort();
                }
                last = *run;
            }
        });
        Self { current, _alive: alive }
    }

    fn begin(&self, target: Target, input: &[u8]) {
        let mut current = self.current.lock().expect("nobody panics with the lock");
        current.0 += 1;
        current.1 = Some(target);
        current.2.clear();
        current.2.extend_from_slice(input);
    }

    fn end(&self) {
        self.current.lock().expect("nobody panics with the lock").1 = None;
    }
}

fn mutator(target: Target, seed: u64) -> Mutator {
    let inputs = corpus::inputs(target.name).expect("each target has a corpus");
    Mutator::new(seed, target, inputs.into_iter().map(|(_, input)| input).collect())
}

/// Keeps an input that failed, and says how to run it again.
fn failure(target: Target, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(input);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("fuzz-failures");
    let path: PathBuf = folder.join(format!("{}-{:016x}", target.name, hasher.finish()));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
    match written {
        Ok(()) => format!(
            "{} does not hold for the input in {path}; once more:\n\
             PGWEIR_FUZZ_INPUT={path} cargo test -p pgweir-fuzz --test replay",
            target.name,
            path = path.display()
        ),
        Err(error) => format!("{} fails, and the input is lost: {error}", target.name),
    }
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Another one for each run: what random inputs find is found over the years.
fn random_seed() -> u64 {
    RandomState::new().hash_one(())
}

#[expect(clippy::disallowed_methods, reason = "a run is as long as it takes")]
fn now() -> Instant {
    Instant::now()
}

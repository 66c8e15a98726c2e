//! Some simulations for every test run. `make sim` runs new ones for as long as it is let.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pgweir_sim::{Counts, Failure, Faults, Mark, Options, Row, run, run_with, shrink};

/// As that of the program: it takes a tenth less time.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// As many as it takes for so many transactions, each of which counts once though each seed is run
/// twice. They take four and a half minutes on two slow cores.
const SEEDS: u64 = 8_000;
const TRANSACTIONS: u64 = 1_000_000;

/// Seeds that take paths which are rarer than that. One that does not any more has become another
/// simulation by a change of the simulator: `pgweir-sim --once --find MARK` finds others.
const RARER: [(Mark, u64); 10] = [
    (Mark::SharedFarewellUnasked, 8_917),
    (Mark::ChangedInFailed, 11_699),
    (Mark::HeardBehindMark, 13_616),
    (Mark::LongMayNotify, 13_873),
    (Mark::MarkSettledBefore, 14_472),
    (Mark::JoinedForRoom, 17_448),
    (Mark::MadeAheadInVain, 18_160),
    (Mark::HeardAheadOfServer, 23_103),
    (Mark::MakingPutOff, 34_538),
    (Mark::FailedLongAgo, 6_003_169),
];

/// Simulations that may be run to make a failure smaller.
const MOST_RUNS: u32 = 1_000;

#[test]
fn no_row_goes_astray() {
    let counts = run_all().unwrap_or_else(|failure| {
        let shrunk = shrink(&failure, &Options::default(), MOST_RUNS, |_| {});
        panic!("\n{failure}\nThe same in small:\n{}", shrunk.failure)
    });
    println!("{SEEDS} seeds: {counts:?}");
    // A simulation in which nothing happens proves nothing.
    assert!(counts.transactions >= TRANSACTIONS, "{counts:?}");
    let rare = [counts.cancels, counts.losses, counts.refusals, counts.farewells];
    let among_workers = [counts.handovers, counts.moved];
    assert!(rare.into_iter().chain(among_workers).all(|times| times > 0), "{counts:?}");
    let missing = Row::ALL.into_iter().filter(|row| counts.rows.times(*row) == 0);
    let missing: Vec<_> = missing.map(Row::name).collect();
    assert!(missing.is_empty(), "rows of docs/failures.md that no seed has reached: {missing:?}");
    // Where assertions are off, nothing is counted.
    let expected = Mark::ALL.iter().filter(|_| cfg!(debug_assertions));
    let is_taken = |mark: &Mark| {
        counts.marks.times(*mark) > 0
            || RARER.iter().any(|(its, _)| its == mark)
            || Mark::NOT_SIMULATED.contains(mark)
    };
    let untaken: Vec<_> = expected.filter(|mark| !is_taken(mark)).collect();
    assert!(untaken.is_empty(), "rare paths that no seed has taken: {untaken:?}");
}

#[test]
fn rarer_paths_have_seeds_of_their_own() {
    for (mark, seed) in RARER.into_iter().filter(|_| cfg!(debug_assertions)) {
        let report = run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
        let times = report.counts.marks.times(mark);
        assert!(times > 0, "seed {seed} does not take {mark:?} any more");
    }
}

/// What all seeds have done, or the first failure.
fn run_all() -> Result<Counts, Box<Failure>> {
    let next = AtomicU64::new(0);
    let total = Mutex::new(Ok(Counts::default()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= SEEDS {
                        return;
                    }
                    let result = run(seed);
                    let mut total = total.lock().expect("no thread has panicked");
                    match (&mut *total, result) {
                        (Ok(counts), Ok(report)) => counts.add(&report.counts),
                        (Ok(_), Err(failure)) => *total = Err(failure),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    total.into_inner().expect("no thread has panicked")
}

#[test]
fn without_faults_nobody_loses_a_server() {
    for seed in 0..20 {
        let options = Options { faults: Some(Faults::NONE), ..Options::default() };
        let report = run_with(seed, &options).unwrap_or_else(|failure| panic!("\n{failure}"));
        assert_eq!((report.counts.losses, report.counts.cancels), (0, 0));
    }
}

#[test]
fn a_seed_is_one_simulation() {
    let hashes = [1, 1, 2].map(|seed| run(seed).map(|report| report.hash).ok());
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
}

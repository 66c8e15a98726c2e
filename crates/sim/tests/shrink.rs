//! What becomes of a simulation that fails, with something that is no mistake and counts as one.

use std::sync::LazyLock;

use pgweir_sim::{Diet, Failure, Options, Trap, run_with, shrink};

/// Far more than it takes to come to the first failure that has much to be taken away.
const SEEDS: u64 = 2_000;

/// So many events are much.
const MANY: u64 = 6_000;

static FAILURE: LazyLock<Box<Failure>> = LazyLock::new(|| {
    let options = trapped(Diet::default());
    let mut failures = (0..SEEDS).filter_map(|seed| run_with(seed, &options).err());
    failures.find(|failure| failure.extent.events >= MANY).expect("some seed fails")
});

fn trapped(diet: Diet) -> Options {
    Options { trap: Some(Trap::CancelInFreeze), diet, ..Options::default() }
}

#[test]
fn a_failing_seed_is_shrunk() {
    let mut runs = 0;
    let options = trapped(Diet::default());
    let shrunk = shrink(&FAILURE, &options, 3_000, |progress| runs = progress.runs);
    let (before, after) = (FAILURE.extent, shrunk.failure.extent);
    println!("{before}\n{}", shrunk.failure);
    assert!(shrunk.finished && shrunk.runs == runs, "{runs} runs");
    assert_eq!(shrunk.failure.kind(), FAILURE.kind());
    assert!(after.events * 3 < before.events, "{before}, then {after}");
    assert!(after.clients * 2 < before.clients, "{before}, then {after}");
    assert!(after.faults * 2 < before.faults, "{before}, then {after}");
    assert!(shrunk.failure.trace.len() * 2 < FAILURE.trace.len());

    // What is printed runs it again.
    let mut diet: Diet = shrunk.failure.diet.to_string().parse().expect("a diet");
    diet.storm_ms = shrunk.failure.diet.storm_ms;
    assert_eq!(diet, shrunk.failure.diet);
    let again = run_with(FAILURE.seed, &trapped(diet)).expect_err("it fails again");
    assert_eq!((&again.cause, again.extent), (&shrunk.failure.cause, after));
    assert_eq!(again.trace, shrunk.failure.trace);
}

#[test]
fn without_runs_nothing_is_taken_away() {
    let shrunk = shrink(&FAILURE, &trapped(Diet::default()), 1, |_| {});
    assert!(!shrunk.finished);
    assert_eq!(shrunk.failure.diet, Diet::default());
    assert_eq!(shrunk.failure.trace, FAILURE.trace);
}

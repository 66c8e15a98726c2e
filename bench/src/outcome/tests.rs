use super::*;

#[test]
fn loads_that_ran_together_are_one() {
    let mut tally = Tally::default();
    tally.join(Tally { tps: 30.0, transactions: 3.0, times_us: vec![1000, 9000, 2000] });
    tally.join(Tally { tps: 20.0, transactions: 2.0, times_us: vec![8000, 3000] });
    let latency = Latency { p50_ms: 3.0, p95_ms: 9.0, p99_ms: 9.0, max_ms: 9.0 };
    assert_eq!(Outcome::of(tally), Some(Outcome { tps: 50.0, transactions: 5.0, latency }));
}

#[test]
fn nothing_has_no_outcome() {
    assert_eq!(Outcome::of(Tally::default()), None);
}

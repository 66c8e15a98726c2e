use std::time::Duration;

use super::*;

const SERVERS: usize = 64;

/// For a minute, and until nothing is tried, there is this load: transactions a second by what
/// holds for reads and for writes.
fn run(climbs: &mut Climbs, load: fn(Depths, Depths) -> f64) -> (Depths, Depths) {
    const TICK: Duration = Duration::from_millis(100);
    let (mut now, mut transactions) = (Time(1_000_000), 0.0);
    let mut last = [[0; 32]; 2];
    let holds = |climbs: &Climbs, access| climbs.of(access).depths(SERVERS);
    for tick in 0.. {
        if tick >= 600 && !climbs.reads.is_trying() && !climbs.writes.is_trying() {
            break;
        }
        assert!(tick < 1_200, "a trial has an end");
        let (reads, writes) = (holds(climbs, Access::Read), holds(climbs, Access::Write));
        let rate = load(reads, writes);
        let both = climbs.reads.is_trying() && climbs.writes.is_trying();
        assert!(!both, "one is tried at a time");
        let of_both = [(Access::Read, reads), (Access::Write, writes)];
        for ((access, depths), last) in of_both.into_iter().zip(&mut last) {
            let climb = climbs.of_mut(access);
            for unit in 0..(rate * TICK.as_secs_f64() / 2.0) as usize {
                climb.sent(depths.hot, true, depths.depth - 1, &mut last[unit % 32]);
                climb.answered(Duration::from_secs_f64(32.0 / rate));
            }
        }
        transactions += rate * TICK.as_secs_f64();
        now = now + TICK;
        climbs.tick(now, transactions as u64, SERVERS);
    }
    (holds(climbs, Access::Read), holds(climbs, Access::Write))
}

/// Each finds its own best, though the rate is that of both.
#[test]
fn reads_and_writes_are_found_apart() {
    let load = |reads: Depths, writes: Depths| {
        let far = |hot: usize, best: f64| (hot as f64 / best).ln().abs();
        10_000.0 / (1.0 + far(reads.hot, 3.0)) + 10_000.0 / (1.0 + far(writes.hot, 40.0))
    };
    let (reads, writes) = run(&mut Climbs::new(), load);
    assert!((2..=4).contains(&reads.hot), "{reads:?}");
    assert!((27..=54).contains(&writes.hot), "{writes:?}");
}

#[test]
fn they_begin_with_as_many_as_there_are() {
    let climbs = Climbs::new();
    assert_eq!(climbs.of(Access::Read).depths(10), READS);
    assert_eq!(climbs.of(Access::Write).depths(10), Depths { hot: 10, ..WRITES });
}

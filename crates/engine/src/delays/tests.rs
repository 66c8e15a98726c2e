use super::*;

fn of(micros: &[u64]) -> Delays {
    let mut delays = Delays::default();
    micros.iter().for_each(|micros| delays.count(Duration::from_micros(*micros)));
    delays
}

#[test]
fn a_unit_is_in_the_first_bucket_that_is_long_enough() {
    let longest = |micros| {
        let delays = of(&[micros]);
        let (longest, _) = delays.buckets().find(|(_, units)| *units > 0).expect("a bucket");
        longest
    };
    for exact in [0, 1, 2, 4, 1024, 1 << 21] {
        assert_eq!(longest(exact), Some(exact));
    }
    assert_eq!([3, 5, 8, 9, 1025].map(longest), [4, 8, 8, 16, 2048].map(Some));
    assert_eq!([(1 << 21) + 1, u64::MAX].map(longest), [None; 2]);
    assert_eq!(of(&[]).buckets().count(), BUCKETS);
}

#[test]
fn all_are_counted_and_summed() {
    let delays = of(&[0, 0, 5, 7, 3_000_000]);
    assert_eq!((delays.units(), delays.sum()), (5, Duration::from_micros(3_000_012)));
    let later = of(&[0, 0, 5, 7, 3_000_000, 9]);
    assert_eq!(later.since(&delays), of(&[9]));
    assert_eq!(delays.since(&later), Delays::default(), "a pool that was made anew");
}

#[test]
fn percentiles_are_the_bounds_of_buckets() {
    assert_eq!(of(&[]).percentile(50), None);
    assert_eq!(of(&[0]).percentile(99), Some(0));
    let mixed = [[0; 50].as_slice(), &[3; 49], &[900]].concat();
    assert_eq!([1, 50, 51, 99, 100].map(|part| of(&mixed).percentile(part)), {
        [0, 0, 4, 4, 1024].map(Some)
    });
    assert_eq!(of(&[10_000_000]).percentile(50), Some(1 << 21));
}

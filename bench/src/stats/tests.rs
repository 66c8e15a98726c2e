use super::*;

#[test]
fn an_even_number_has_its_median_between_two() {
    let spread = Spread { median: 2.5, min: 1.0, max: 4.0 };
    assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Some(spread));
    assert_eq!(Spread::of([]), None);
}

#[test]
fn percentiles_are_values_that_were_seen() {
    let values: Vec<u32> = (1..=100).collect();
    assert_eq!(percentile(&values, 50.0), Some(50));
    assert_eq!(percentile(&values, 99.0), Some(99));
    assert_eq!(percentile(&[7], 99.0), Some(7));
    assert_eq!(percentile(&[], 99.0), None);
}

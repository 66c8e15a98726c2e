use super::*;
use crate::case::Case;
use crate::results::tests::result;

#[test]
fn every_threshold_is_about_cases_that_exist() {
    let all = Case::all();
    for threshold in THRESHOLDS {
        for case in threshold.cases {
            assert!(all.iter().any(|known| known.name == *case), "{case}");
        }
    }
}

#[test]
fn near_equality_is_met_within_three_percent_and_nothing_else_is() {
    let judge =
        |limit, to, value| Threshold { text: "", cases: &[], metrics: &[], to, limit }.judge(value);
    assert_eq!(judge(AtLeast(1.0), PGBOUNCER, 0.975), Verdict::MetWithin);
    assert_eq!(judge(AtLeast(1.0), PGBOUNCER, 0.965), Verdict::Missed);
    assert_eq!(judge(AtLeast(1.15), PGBOUNCER, 1.149), Verdict::Missed);
    assert_eq!(judge(AtMost(1.05), PGBOUNCER, 1.08), Verdict::MetWithin);
    assert_eq!(judge(AtMost(1.0), None, 1.01), Verdict::Missed);
    assert_eq!(judge(AtMost(1.0), None, 1.0), Verdict::Met);
}

#[test]
fn a_finding_takes_the_median_of_the_rounds() {
    let rows = [[9.0, 10.0, 12.0, 20.0], [9.0, 10.0, 11.0, 20.0], [9.0, 10.0, 13.0, 20.0]];
    let findings = THRESHOLDS[0].findings(&[result("simple-64", &rows)]);
    assert_eq!(findings[0].verdict, Verdict::Met);
    assert_eq!(findings[0].measured.unwrap().median, 1.2);
    assert_eq!(findings[1].verdict, Verdict::NotMeasured);
}

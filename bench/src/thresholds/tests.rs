use super::*;
use crate::grid::Pair;
use crate::metric::Sample;
use crate::results::tests::{result, sweep};

#[test]
fn every_threshold_is_about_cases_that_exist() {
    let all = Case::all();
    for threshold in THRESHOLDS {
        for case in threshold.cases {
            assert!(all.iter().any(|known| known.name == *case), "{case}");
        }
    }
}

/// The first threshold of this contender about a case.
fn threshold(case: &str, of: Contender) -> &'static Threshold {
    let of_case = |one: &&Threshold| one.of == of && one.cases.contains(&case);
    THRESHOLDS.iter().find(of_case).unwrap()
}

/// What a result says of it.
fn finding(threshold: &Threshold, result: CaseResult) -> Finding {
    let case = result.case.clone();
    let mut findings = threshold.findings(&Case::all(), &[result]).into_iter();
    findings.find(|finding| finding.case == case).unwrap()
}

#[test]
fn near_equality_is_met_within_three_percent_and_nothing_else_is() {
    let judge = |limit, to, value| Bound(limit, to).judge(&Spread::of([value]).unwrap());
    let pgbouncer = To::Contender(Contender::PgBouncer);
    assert_eq!(judge(AtLeast(1.0), pgbouncer, 0.975), Verdict::MetWithin);
    assert_eq!(judge(AtLeast(1.0), pgbouncer, 0.965), Verdict::Missed);
    assert_eq!(judge(AtLeast(1.15), pgbouncer, 1.149), Verdict::Missed);
    assert_eq!(judge(AtMost(1.05), pgbouncer, 1.08), Verdict::MetWithin);
    assert_eq!(judge(AtMost(0.45), pgbouncer, 0.455), Verdict::Missed);
    assert_eq!(judge(AtMost(1.0), To::Nothing, 1.01), Verdict::Missed);
    assert_eq!(judge(AtMost(1.0), To::Nothing, 1.0), Verdict::Met);
}

#[test]
fn what_never_may_be_is_looked_for_in_all_rounds() {
    let judge =
        |values: [f64; 3]| Bound(NeverOver(100.0), To::Nothing).judge(&Spread::of(values).unwrap());
    assert_eq!(judge([9.0, 100.0, 10.0]), Verdict::Met);
    assert_eq!(judge([9.0, 101.0, 10.0]), Verdict::Missed);
}

#[test]
fn one_of_two_bounds_is_enough_but_both_must_be_measured_to_miss() {
    let threshold = threshold("prepared-64", Contender::Pgweir);
    let verdict = |direct: f64, relay: Option<f64>| {
        let mut measured = result("prepared-64", &[[direct, 1.0, 100.0, 2.0]; 5]);
        for round in &mut measured.rounds {
            round.samples.extend(
                relay.map(|tps| (Contender::PipeliningRelay, Sample::from([(Metric::Tps, tps)]))),
            );
        }
        finding(threshold, measured).verdict
    };
    assert_eq!(verdict(80.0, None), Verdict::Met);
    assert_eq!(verdict(100.0, Some(110.0)), Verdict::Met);
    assert_eq!(verdict(100.0, Some(120.0)), Verdict::Missed);
    assert_eq!(verdict(100.0, None), Verdict::NotMeasured);
}

#[test]
fn a_sweep_is_judged_by_its_best_pair() {
    let threshold = threshold("sweep-64", Contender::Pgweir);
    let verdict = |best: f64| {
        let pairs = [Pair::of(1, 8), Pair::of(3, 16)];
        let swept = sweep("sweep-64", pairs, &[[20.0, 150.0]; 3], &[[best, 100.0]; 5]);
        finding(threshold, swept).verdict
    };
    assert_eq!(verdict(110.0), Verdict::Met);
    assert_eq!(verdict(112.0), Verdict::Missed);
    let unswept = result("sweep-64", &[[1.0, 1.0, 100.0, 2.0]; 5]);
    let finding = finding(threshold, unswept);
    assert_eq!((finding.verdict, threshold.show(&finding).as_str()), (Verdict::NotMeasured, "–"));
}

#[test]
fn a_finding_takes_the_median_of_the_rounds() {
    let tps = [12.0, 11.0, 13.0, 12.5, 11.5, 11.0, 14.0];
    let rows = tps.map(|tps| [9.0, 10.0, tps, 20.0]);
    let threshold = threshold("simple-64", Contender::PgweirOff);
    let findings = threshold.findings(&Case::all(), &[result("simple-64", &rows)]);
    assert_eq!(findings[0].verdict, Verdict::Met);
    assert_eq!(findings[0].measured[0].unwrap().median, 1.2);
    assert_eq!(findings[1].verdict, Verdict::NotMeasured);
}

#[test]
fn few_rounds_say_nothing() {
    let threshold = threshold("simple-64", Contender::PgweirOff);
    let verdict = |result| finding(threshold, result).verdict;
    let row = [9.0, 10.0, 12.0, 20.0];
    assert_eq!(verdict(result("simple-64", &[row; 4])), Verdict::TooFewRounds);
    let short = CaseResult { seconds: 2, ..result("simple-64", &[row; 7]) };
    assert_eq!(verdict(short), Verdict::TooFewRounds);
    // The rounds that do not count do not count here either.
    let mut rows = [row; 5];
    rows[3][3] = 10.5;
    assert_eq!(verdict(result("simple-64", &rows)), Verdict::TooFewRounds);
    assert_eq!(verdict(result("simple-64", &[row; 5])), Verdict::Met);
}

#[test]
fn without_the_relay_or_pgbouncer_a_yardstick_says_nothing() {
    let verdict = |case: &str, missing: Contender| {
        let mut result = result(case, &[[9.0, 10.0, 12.0, 20.0]; 7]);
        result.rounds[3].samples.remove(&missing);
        finding(threshold(case, Contender::PgweirOff), result).verdict
    };
    assert_eq!(verdict("simple-64", Contender::Relay), Verdict::NoYardstick);
    assert_eq!(verdict("simple-64", Contender::PgBouncer), Verdict::NoYardstick);
    assert_eq!(verdict("simple-64", Contender::Direct), Verdict::Met);
    // A case whose pace is set by something else does not ask for it.
    assert_eq!(verdict("simple-1", Contender::Relay), Verdict::Met);
}

#[test]
fn workers_are_compared_with_one_of_them() {
    let mut measured = result("workers-4", &[[9.0, 10.0, 12.0, 20.0]; 7]);
    for round in &mut measured.rounds {
        let faster = Sample::from([(Metric::Tps, 45.0)]);
        round.samples.insert(Contender::FourWorkers, faster);
    }
    let threshold = threshold("workers-4", Contender::FourWorkers);
    let finding = |results: &[CaseResult]| threshold.findings(&Case::all(), results).remove(0);
    assert_eq!(finding(&[]).verdict, Verdict::NeedsCores(16));
    let on_few_cores = finding(std::slice::from_ref(&measured));
    assert_eq!(on_few_cores.verdict, Verdict::NeedsCores(16));
    assert_eq!(on_few_cores.measured, [Spread::of([3.75])]);
    measured.environment.cores = 16;
    assert_eq!(finding(&[measured]).verdict, Verdict::Met);
}

#[test]
fn what_is_missed_stands_beside_what_the_better_relay_reaches() {
    let threshold = threshold("simple-250", Contender::Pgweir);
    let bare = |pgweir: f64, relay: f64| {
        let mut measured = result("simple-250", &[[10.0, 10.0, pgweir, relay]; 7]);
        for round in &mut measured.rounds {
            let sample = Sample::from([(Metric::Tps, 19.0)]);
            round.samples.extend([
                (Contender::Pgweir, Sample::from([(Metric::Tps, pgweir)])),
                (Contender::PipeliningRelay, sample),
            ]);
        }
        finding(threshold, measured).bare
    };
    assert_eq!((bare(18.0, 12.0), bare(26.0, 12.0)), (Some(1.9), None));
    assert_eq!(bare(18.0, 21.0), Some(2.1));
}

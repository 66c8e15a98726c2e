use super::*;
use crate::metric::Sample;
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
    let judge = |limit, to, value| {
        let of = Contender::Pgweir;
        Threshold { text: "", cases: &[], metrics: &[], of, to, limit }.judge(value)
    };
    assert_eq!(judge(AtLeast(1.0), PGBOUNCER, 0.975), Verdict::MetWithin);
    assert_eq!(judge(AtLeast(1.0), PGBOUNCER, 0.965), Verdict::Missed);
    assert_eq!(judge(AtLeast(1.15), PGBOUNCER, 1.149), Verdict::Missed);
    assert_eq!(judge(AtMost(1.05), PGBOUNCER, 1.08), Verdict::MetWithin);
    assert_eq!(judge(AtMost(1.0), None, 1.01), Verdict::Missed);
    assert_eq!(judge(AtMost(1.0), None, 1.0), Verdict::Met);
}

#[test]
fn a_finding_takes_the_median_of_the_rounds() {
    let tps = [12.0, 11.0, 13.0, 12.5, 11.5, 11.0, 14.0];
    let rows = tps.map(|tps| [9.0, 10.0, tps, 20.0]);
    let findings = THRESHOLDS[0].findings(&Case::all(), &[result("simple-64", &rows)]);
    assert_eq!(findings[0].verdict, Verdict::Met);
    assert_eq!(findings[0].measured.unwrap().median, 1.2);
    assert_eq!(findings[1].verdict, Verdict::NotMeasured);
}

#[test]
fn few_rounds_say_nothing() {
    let verdict = |result| THRESHOLDS[0].findings(&Case::all(), &[result])[0].verdict;
    let row = [9.0, 10.0, 12.0, 20.0];
    assert_eq!(verdict(result("simple-64", &[row; 6])), Verdict::TooFewRounds);
    let short = CaseResult { seconds: 7, ..result("simple-64", &[row; 7]) };
    assert_eq!(verdict(short), Verdict::TooFewRounds);
    // The rounds that do not count do not count here either.
    let mut rows = [row; 7];
    rows[3][3] = 10.5;
    assert_eq!(verdict(result("simple-64", &rows)), Verdict::TooFewRounds);
    assert_eq!(verdict(result("simple-64", &[row; 7])), Verdict::Met);
}

#[test]
fn without_the_relay_or_pgbouncer_a_yardstick_says_nothing() {
    let verdict = |case: &str, missing: Contender| {
        let mut result = result(case, &[[9.0, 10.0, 12.0, 20.0]; 7]);
        result.rounds[3].samples.remove(&missing);
        let findings =
            THRESHOLDS.iter().flat_map(|one| one.findings(&Case::all(), &[result.clone()]));
        let of_case: Vec<Finding> = findings.filter(|finding| finding.case == case).collect();
        of_case[0].verdict
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
    let of_workers = |threshold: &&Threshold| threshold.cases == ["workers-4"];
    let threshold = THRESHOLDS.iter().find(of_workers).unwrap();
    let finding = |results: &[CaseResult]| threshold.findings(&Case::all(), results).remove(0);
    assert_eq!(finding(&[]).verdict, Verdict::NeedsCores(16));
    let on_few_cores = finding(std::slice::from_ref(&measured));
    assert_eq!(on_few_cores.verdict, Verdict::NeedsCores(16));
    assert_eq!(on_few_cores.measured, Spread::of([3.75]));
    measured.environment.cores = 16;
    assert_eq!(finding(&[measured]).verdict, Verdict::Met);
}

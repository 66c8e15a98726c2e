use std::path::PathBuf;

use super::*;

/// A folder of one test, removed when it ends, be it by a failure.
pub(crate) struct TestFolder(pub(crate) PathBuf);

impl TestFolder {
    pub(crate) fn of(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pgweir-{test}-{}", std::process::id())))
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A result with these tps, one round for each row: direct, PgBouncer, pgweir, relay.
pub(crate) fn result(case: &str, rows: &[[f64; 4]]) -> CaseResult {
    let round = |row: &[f64; 4]| {
        let sample = |tps: f64| Sample::from([(Metric::Tps, tps)]);
        let samples = Contender::USUAL.into_iter().zip(row.iter().copied().map(sample));
        let mut round = Round { samples: samples.collect(), dropped: false };
        round.dropped = round.under_yardstick() == Some(true);
        round
    };
    CaseResult {
        case: case.to_owned(),
        environment: Environment {
            cpu: "A CPU".into(),
            cores: 2,
            memory_gb: 8,
            kernel: "6.1".into(),
            system: "A system".into(),
            versions: vec!["postgres 15".into()],
        },
        seconds: 8,
        load: "-n -S".into(),
        rounds: rows.iter().map(round).collect(),
    }
}

#[test]
fn a_round_in_which_the_relay_is_not_ahead_does_not_count() {
    let result = result("simple-64", &[[9.0, 4.0, 5.0, 6.0], [9.0, 5.0, 50.0, 5.4]]);
    assert_eq!(result.counted().count(), 1);
    let tps = result.absolute(Contender::Pgweir, Metric::Tps);
    assert_eq!(tps, Spread::of([5.0]));
}

#[test]
fn ratios_are_taken_within_the_round() {
    let result = result("simple-64", &[[0.0, 1.0, 2.0, 9.0], [0.0, 4.0, 4.0, 9.0]]);
    let ratio = result.ratio(Contender::Pgweir, Contender::PgBouncer, Metric::Tps);
    assert_eq!(ratio, Some(Spread { median: 1.5, min: 1.0, max: 2.0 }));
    assert_eq!(result.ratio(Contender::Pgweir, Contender::Direct, Metric::Tps), None);
}

#[test]
fn what_is_stored_is_what_is_read() {
    let folder = TestFolder::of("results");
    let stored = result("simple-1", &[[1.0, 2.0, 3.0, 4.0]]);
    stored.store(&folder.0).unwrap();
    assert_eq!(CaseResult::load(&folder.0, "simple-1").unwrap(), Some(stored));
    assert_eq!(CaseResult::load(&folder.0, "simple-2").unwrap(), None);
}

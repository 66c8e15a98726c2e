use std::path::PathBuf;

use super::*;
use crate::grid::Pair;

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

/// A result with these tps, one round for each row: direct, PgBouncer, pgweir, relay; and pgweir
/// with pipelining off, which has the same as with it.
pub(crate) fn result(case: &str, rows: &[[f64; 4]]) -> CaseResult {
    let round = |row: &[f64; 4]| {
        let sample = |tps: f64| Sample::from([(Metric::Tps, tps)]);
        let samples = Contender::USUAL.into_iter().zip(row.iter().copied().map(sample));
        let mut round = Round { samples: samples.collect(), dropped: false };
        round.samples.insert(Contender::PgweirOff, sample(row[2]));
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
        commit: Some("0123456789".into()),
        measured_at: Some("2026-01-31T23:59:59Z".into()),
        seconds: 8,
        load: "-n -S".into(),
        scheduling: None,
        direct_maximum_tps: None,
        pool_maximum_tps: None,
        search: Vec::new(),
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

#[test]
fn a_result_from_before_its_origin_was_kept_is_read() {
    let folder = TestFolder::of("old-results");
    let stored = result("rate-25", &[[1.0, 2.0, 3.0, 4.0]]);
    stored.store(&folder.0).unwrap();
    let path = folder.0.join("rate-25.json");
    let text = fs::read_to_string(&path).unwrap();
    let new = ["commit", "measured_at", "direct_maximum_tps", "pool_maximum_tps"];
    let is_old = |line: &&str| !new.iter().any(|key| line.contains(&format!("\"{key}\":")));
    let old: Vec<&str> = text.lines().filter(is_old).collect();
    assert_eq!(old.len() + new.len(), text.lines().count());
    fs::write(&path, old.join("\n")).unwrap();
    let unknown = CaseResult { commit: None, measured_at: None, ..stored };
    assert_eq!(CaseResult::load(&folder.0, "rate-25").unwrap(), Some(unknown));
}

/// A sweep of these pairs, one round for each row: their tps in the search, then those of the best
/// of them and pgweir's in the rounds that count.
pub(crate) fn sweep<const PAIRS: usize>(
    case: &str,
    pairs: [Pair; PAIRS],
    searched: &[[f64; PAIRS]],
    counted: &[[f64; 2]],
) -> CaseResult {
    let sample = |tps: f64| Sample::from([(Metric::Tps, tps)]);
    let round = |tps: &[f64; PAIRS]| Round {
        samples: pairs.map(Contender::Fixed).into_iter().zip(tps.map(sample)).collect(),
        dropped: false,
    };
    let search = searched.iter().map(round).collect();
    let mut swept = CaseResult { search, ..result(case, &[]) };
    let best = swept.best_pair().unwrap();
    swept.rounds.extend(counted.iter().map(|[of_best, of_pgweir]| Round {
        samples: [(best, sample(*of_best)), (Contender::Pgweir, sample(*of_pgweir))].into(),
        dropped: false,
    }));
    swept
}

#[test]
fn the_best_pair_is_the_one_with_the_best_median_in_the_search() {
    let unswept = result("sweep-64", &[[0.0, 0.0, 9.0, 0.0]; 3]);
    assert_eq!(unswept.best_pair(), None);
    let pairs = [Pair::of(1, 8), Pair::of(3, 16), Pair::of(8, 4)];
    let searched = [[5.0, 8.0, 1.0], [5.0, 7.0, 9.0], [5.0, 9.0, 2.0]];
    let swept = sweep("sweep-64", pairs, &searched, &[[4.0, 5.0]; 5]);
    let [second, best, last] = pairs.map(Contender::Fixed);
    assert_eq!(swept.pairs(), [(best, 8.0), (second, 5.0), (last, 2.0)]);
    assert_eq!(swept.best_pair(), Some(best));
    let ratio = swept.ratio(Contender::Pgweir, best, Metric::Tps).unwrap();
    assert_eq!(ratio.median, 1.25);
}

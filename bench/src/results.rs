//! Raw results on disk, one file for each case, and the figures that are drawn from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::contender::Contender;
use crate::environment::Environment;
use crate::error::{Doing, Result};
use crate::metric::{Metric, Sample};
use crate::scheduling::Scheduling;
use crate::stats::Spread;

/// A round counts only if the relay has at least this many times PgBouncer's tps.
pub(crate) const YARDSTICK: f64 = 1.1;

/// All rounds of one case.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct CaseResult {
    pub(crate) case: String,
    pub(crate) environment: Environment,
    /// The commit that was measured; `None` where it is not known. See [`crate::commit`].
    pub(crate) commit: Option<String>,
    /// When the first round began, as in `2026-01-31T23:59:59Z`; `None` where it was not kept.
    pub(crate) measured_at: Option<String>,
    /// The length of one contender's turn.
    pub(crate) seconds: u32,
    /// What the load was: pgbench's arguments, SQL, or words.
    pub(crate) load: String,
    /// Where the case looks at it: see [`crate::scheduling`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scheduling: Option<Scheduling>,
    /// What the rate is a part of, where the load has one: see [`crate::lab::Lab::direct_maximum`].
    pub(crate) direct_maximum_tps: Option<f64>,
    /// What a pool's far servers are good for: see [`crate::lab::Lab::pool_maximum`].
    pub(crate) pool_maximum_tps: Option<f64>,
    /// Where the case is a sweep: the rounds that find its best pair. None of them counts for
    /// anything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) search: Vec<Round>,
    pub(crate) rounds: Vec<Round>,
}

/// One turn of every contender, one after the other.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Round {
    pub(crate) samples: BTreeMap<Contender, Sample>,
    /// Dropped by the yardstick: kept on file, left out of every figure.
    pub(crate) dropped: bool,
}

impl Round {
    /// Whether the relay is less than [`YARDSTICK`] times as fast as PgBouncer; `None` when one of
    /// them did not run.
    pub(crate) fn under_yardstick(&self) -> Option<bool> {
        let ratio = self.ratio(Contender::Relay, Contender::PgBouncer, Metric::Tps)?;
        Some(ratio < YARDSTICK)
    }

    fn ratio(&self, of: Contender, to: Contender, metric: Metric) -> Option<f64> {
        let value = |contender| self.samples.get(&contender)?.get(&metric).copied();
        let (of, to) = (value(of)?, value(to)?);
        (to > 0.0).then_some(of / to)
    }
}

impl CaseResult {
    /// Reads the file of a case; `None` where the case has not been run.
    pub(crate) fn load(folder: &Path, case: &str) -> Result<Option<Self>> {
        let path = folder.join(format!("{case}.json"));
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text).map(Some).doing(|| format!("understand {}", path.display()))
    }

    pub(crate) fn store(&self, folder: &Path) -> Result<()> {
        let path = folder.join(format!("{}.json", self.case));
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(folder)?;
            fs::write(&path, serde_json::to_string_pretty(self)?)
        };
        write().doing(|| format!("write {}", path.display()))
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(|round| !round.dropped)
    }

    /// Whether there is a round that counts of which the case's yardstick cannot say whether it
    /// should.
    pub(crate) fn lacks_yardstick(&self, case: &Case) -> bool {
        case.yardstick && self.counted().any(|round| round.under_yardstick().is_none())
    }

    /// The contenders that ran in a round that counts.
    pub(crate) fn contenders(&self) -> Vec<Contender> {
        let ran: BTreeSet<Contender> =
            self.counted().flat_map(|round| round.samples.keys().copied()).collect();
        ran.into_iter().collect()
    }

    /// The metrics that some contender has.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let samples = || self.counted().flat_map(|round| round.samples.values());
        let has = |metric: &Metric| samples().any(|sample| sample.contains_key(metric));
        Metric::ALL.into_iter().filter(has).collect()
    }

    pub(crate) fn absolute(&self, contender: Contender, metric: Metric) -> Option<Spread> {
        let value = |round: &Round| round.samples.get(&contender)?.get(&metric).copied();
        Spread::of(self.counted().filter_map(value))
    }

    /// The pairs that were searched, with their medians of tps, the best first.
    pub(crate) fn pairs(&self) -> Vec<(Contender, f64)> {
        let mut searched: BTreeMap<Contender, Vec<f64>> = BTreeMap::new();
        for (pair, sample) in self.search.iter().flat_map(|round| &round.samples) {
            searched.entry(*pair).or_default().extend(sample.get(&Metric::Tps));
        }
        let median = |(pair, tps)| Some((pair, Spread::of(tps)?.median));
        let mut pairs: Vec<(Contender, f64)> = searched.into_iter().filter_map(median).collect();
        pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
        pairs
    }

    /// The pair with the best median of tps in the search.
    pub(crate) fn best_pair(&self) -> Option<Contender> {
        Some(self.pairs().first()?.0)
    }

    /// Ratios within each round.
    pub(crate) fn ratio(&self, of: Contender, to: Contender, metric: Metric) -> Option<Spread> {
        Spread::of(self.counted().filter_map(|round| round.ratio(of, to, metric)))
    }
}

#[cfg(test)]
pub(crate) mod tests;

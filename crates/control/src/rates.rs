use std::collections::BTreeMap;
use std::time::Duration;

use pgweir_engine::{Snapshot, Stats, Time};

/// What pools had done at two moments in the past. SHOW STATS takes the averages since the older
/// one, so that they cover one to two periods (PgBouncer: `stats_period`, 60 s).
#[derive(Clone, Debug, Default)]
pub struct Rates {
    older: Sample,
    newer: Sample,
}

#[derive(Clone, Debug, Default)]
struct Sample {
    at: Time,
    stats: BTreeMap<(String, String), Stats>,
}

impl Rates {
    /// Without a past: averages are those since the process started.
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers this moment. To be called once in a period.
    pub fn sample(&mut self, snapshot: &Snapshot) {
        let pools = snapshot.pools.iter();
        let stats = pools.map(|pool| ((pool.database.clone(), pool.user.clone()), pool.stats));
        let sample = Sample { at: snapshot.now, stats: stats.collect() };
        self.older = std::mem::replace(&mut self.newer, sample);
    }

    /// How long ago the older moment is.
    pub(crate) fn window(&self, snapshot: &Snapshot) -> Duration {
        snapshot.now - self.older.at
    }

    /// What the pool had done by then.
    pub(crate) fn before(&self, database: &str, user: &str) -> Stats {
        let key = (database.to_owned(), user.to_owned());
        self.older.stats.get(&key).copied().unwrap_or_default()
    }
}

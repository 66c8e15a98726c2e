//! What a run of a load generator gave.

use serde::{Deserialize, Serialize};

use crate::stats::percentile;

/// Counts and times as they were taken, before anything is made of them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Transactions a second.
    pub(crate) tps: f64,
    pub(crate) transactions: f64,
    /// Of single transactions, all or a sample, in µs.
    pub(crate) times_us: Vec<u32>,
}

impl Tally {
    /// Adds what ran at the same time.
    pub(crate) fn join(&mut self, other: Self) {
        self.tps += other.tps;
        self.transactions += other.transactions;
        self.times_us.extend(other.times_us);
    }
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Outcome {
    /// Without the time of the first connections, unless each transaction made its own.
    pub(crate) tps: f64,
    pub(crate) transactions: f64,
    pub(crate) latency: Latency,
}

impl Outcome {
    /// `None` where no transaction's time is known.
    pub(crate) fn of(tally: Tally) -> Option<Self> {
        let Tally { tps, transactions, times_us } = tally;
        Some(Self { tps, transactions, latency: Latency::of(times_us)? })
    }
}

/// Percentiles in milliseconds. With a rate, a transaction's time begins when it was due.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Latency {
    fn of(mut times_us: Vec<u32>) -> Option<Self> {
        times_us.sort_unstable();
        let at = |percent| Some(f64::from(percentile(&times_us, percent)?) / 1000.0);
        let (p50_ms, p95_ms, p99_ms) = (at(50.0)?, at(95.0)?, at(99.0)?);
        Some(Self { p50_ms, p95_ms, p99_ms, max_ms: at(100.0)? })
    }
}

#[cfg(test)]
mod tests;

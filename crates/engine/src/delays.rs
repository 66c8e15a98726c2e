use std::time::Duration;

#[cfg(test)]
mod tests;

/// Units that have shared a server, counted by their *head-of-line delay*: how long each stood
/// behind others, from when it was sent until it was the one that is to be answered next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    counts: [u64; BUCKETS],
    sum: Duration,
}

/// No delay; 1 µs at most, 2 µs, 4 µs, and so on to 2 s; and what is longer.
const BUCKETS: usize = 24;

impl Delays {
    /// How many units had which delay: the longest one in microseconds, and the units that had no
    /// longer one, and a longer one than those before. The last have no longest.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let is_bounded = |bucket: usize| bucket + 1 < BUCKETS;
        let counts = self.counts.into_iter().enumerate();
        counts.map(move |(bucket, units)| (is_bounded(bucket).then(|| longest(bucket)), units))
    }

    /// All units.
    pub fn units(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The delays of all of them together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// What was counted since it was this.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let grown = |bucket: usize| self.counts[bucket].saturating_sub(before.counts[bucket]);
        Self { counts: std::array::from_fn(grown), sum: self.sum.saturating_sub(before.sum) }
    }

    /// So many microseconds at most was the delay of this part of the units, as exactly as buckets
    /// tell; `None`: there are no units. What is longer than all buckets counts as the longest.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let units = self.units();
        let enough = (units * percent).div_ceil(100);
        let mut so_far = 0;
        let bucket = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= enough
        })?;
        (units > 0).then(|| longest(bucket.min(BUCKETS - 2)))
    }

    /// Counts a unit.
    pub fn count(&mut self, delay: Duration) {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        let bucket = match micros.checked_sub(1) {
            None => 0,
            Some(below) => (u64::BITS - below.leading_zeros()) as usize + 1,
        };
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.sum += delay;
    }
}

/// The longest delay that a bucket counts, in microseconds.
fn longest(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => 0,
        Some(doublings) => 1 << doublings,
    }
}

use std::time::Duration;

use pgweir_engine::Time;

/// How long nothing more is told about clients that cannot be taken: attempts follow each other
/// within milliseconds as long as no descriptor is free.
const QUIET: Duration = Duration::from_secs(10);

/// Clients that could not be taken, and what has been told of them.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    untold: u64,
    told: Option<Time>,
}

impl Refusals {
    /// One more. Says how many are to be told of now, if it is time to.
    pub(crate) fn note(&mut self, now: Time) -> Option<u64> {
        self.untold += 1;
        if self.told.is_some_and(|told| now - told < QUIET) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::time::Time;

/// How long nothing more is told: what is lacking to one client is lacking to the next one within
/// milliseconds.
const QUIET: Duration = Duration::from_secs(10);

/// Clients that were refused for one and the same cause, and what the log has been told of them.
#[derive(Debug, Default)]
pub struct Refusals {
    untold: u64,
    told: Option<Time>,
}

impl Refusals {
    /// One more. Says how many are to be told of now, if it is time to.
    pub fn note(&mut self, now: Time) -> Option<u64> {
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

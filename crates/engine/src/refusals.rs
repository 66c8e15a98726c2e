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
        self.due(now)
    }

    /// How many are to be told of now, if there are any and it is time to.
    pub fn due(&mut self, now: Time) -> Option<u64> {
        let early = self.told.is_some_and(|told| now - told < QUIET);
        if self.untold == 0 || early {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests;

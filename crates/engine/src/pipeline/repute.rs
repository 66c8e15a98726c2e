//! What is known of statements by their fingerprints: whether they are as short as those must be
//! that stand in front of others.

use std::collections::BTreeMap;
use std::time::Duration;

use pgweir_sql::Fingerprint;

use super::BRAKE;
use crate::marks::Mark;
use crate::time::Time;

/// So many runs in time, and others may stand behind.
const TRIALS: u32 = 2;

/// What overruns is not shared for so long, and for twice as long each time, up to the last.
const BANNED: Duration = Duration::from_secs(5);
const BANNED_AT_MOST: Duration = Duration::from_secs(320);
/// So often a ban has become longer then.
const BANS_AT_MOST: u32 = 6;

/// One that is trusted may overrun once in so many runs: a disk may be slow for a moment.
const FORGIVEN: u32 = 200;

/// How long one takes is what it has taken lately, if not longer by then.
const LATELY: u32 = 8;

/// One that has failed while others were under the same Sync is not joined for so many runs: all
/// of those had to be run again.
const WARY: u32 = 1_000;

/// So many are known at most.
const KNOWN: usize = 4_096;

/// The fingerprints of a pool's statements, and what is known of each.
#[derive(Debug, Default)]
pub(crate) struct Repute {
    known: BTreeMap<Fingerprint, Standing>,
}

/// Where a statement may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    /// Others may stand behind it.
    Lead,
    /// Nobody may: how long it takes is not known.
    Trail,
    /// It needs a server alone.
    NotShare,
}

#[derive(Clone, Copy, Debug)]
enum Standing {
    /// It has run so often in time, and was banned so often before.
    OnTrial { runs: u32, bans: u32 },
    /// So many runs more in time, and that it has overrun is forgiven. It has taken so long lately,
    /// and is not joined for so many runs.
    Trusted { debt: u32, took: Duration, wary: u32 },
    /// It has overrun.
    Banned { until: Time, bans: u32 },
}

const NEW: Standing = Standing::OnTrial { runs: 0, bans: 0 };

impl Repute {
    /// Where a statement may stand now.
    pub(super) fn of(&self, now: Time, print: Fingerprint) -> May {
        match self.known.get(&print) {
            Some(Standing::Trusted { .. }) => May::Lead,
            Some(Standing::Banned { until, .. }) if now < *until => May::NotShare,
            Some(Standing::Banned { .. } | Standing::OnTrial { .. }) | None => May::Trail,
        }
    }

    /// How long a statement has taken lately, as far as that is known.
    pub(super) fn took(&self, print: Fingerprint) -> Duration {
        match self.known.get(&print) {
            Some(Standing::Trusted { took, .. }) => *took,
            Some(Standing::Banned { .. } | Standing::OnTrial { .. }) | None => Duration::ZERO,
        }
    }

    /// Whether a statement takes no longer, and has not failed of late.
    pub(super) fn is_brief(&self, print: Fingerprint, brief: Duration) -> bool {
        match self.known.get(&print) {
            Some(Standing::Trusted { took, wary, .. }) => *took <= brief && *wary == 0,
            Some(Standing::Banned { .. } | Standing::OnTrial { .. }) | None => false,
        }
    }

    /// A statement has failed while others were under the same Sync.
    pub(super) fn derailed(&mut self, print: Fingerprint) {
        if let Some(Standing::Trusted { wary, .. }) = self.known.get_mut(&print) {
            *wary = WARY;
        }
    }

    /// A statement was at the head for so long, and is answered.
    pub(super) fn ran(&mut self, now: Time, print: Fingerprint, time: Duration) {
        let in_time = time < BRAKE / 2;
        let standing = self.standing(now, print);
        *standing = match *standing {
            Standing::Trusted { debt, took, wary } => Standing::Trusted {
                debt: debt.saturating_sub(1),
                took: time.max(took - took / LATELY),
                wary: wary.saturating_sub(1),
            },
            // Another of its kind was under way.
            banned @ Standing::Banned { until, .. } if now < until => banned,
            Standing::Banned { bans, .. } | Standing::OnTrial { bans, .. } if !in_time => {
                Mark::TrialBeginsAnew.hit();
                // Nothing more is known: perhaps it overruns the next time.
                Standing::OnTrial { runs: 0, bans }
            }
            Standing::Banned { bans, .. } => Standing::OnTrial { runs: 1, bans },
            Standing::OnTrial { runs, .. } if runs + 1 >= TRIALS => {
                Standing::Trusted { debt: 0, took: time, wary: 0 }
            }
            Standing::OnTrial { runs, bans } => Standing::OnTrial { runs: runs + 1, bans },
        };
    }

    /// A statement has taken too long, or its reply was too long to be kept.
    pub(super) fn overran(&mut self, now: Time, print: Fingerprint) {
        let standing = self.standing(now, print);
        let bans = match *standing {
            Standing::Trusted { debt: 0, took, .. } => {
                *standing = Standing::Trusted { debt: FORGIVEN, took, wary: WARY };
                return Mark::OverrunForgiven.hit();
            }
            Standing::Trusted { .. } => 0,
            // Several of one kind were under way.
            Standing::Banned { until, .. } if now < until => return,
            Standing::OnTrial { bans, .. } | Standing::Banned { bans, .. } => bans,
        };
        Mark::StatementBanned.hit();
        let time = (BANNED * 2u32.pow(bans.min(BANS_AT_MOST))).min(BANNED_AT_MOST);
        *standing = Standing::Banned { until: now + time, bans: bans + 1 };
    }

    /// A statement was at the head when its server said what it was not asked.
    pub(super) fn misbehaved(&mut self, now: Time, print: Fingerprint) {
        let until = now + BANNED_AT_MOST;
        *self.standing(now, print) = Standing::Banned { until, bans: BANS_AT_MOST };
    }

    fn standing(&mut self, now: Time, print: Fingerprint) -> &mut Standing {
        if self.known.len() >= KNOWN && !self.known.contains_key(&print) {
            // Who is forgotten is tried again.
            Mark::StandingsForgotten.hit();
            self.known.retain(
                |_, standing| matches!(standing, Standing::Banned { until, .. } if now < *until),
            );
            if self.known.len() >= KNOWN {
                Mark::BansForgotten.hit();
                self.known.clear();
            }
        }
        self.known.entry(print).or_insert(NEW)
    }
}

#[cfg(test)]
mod tests;

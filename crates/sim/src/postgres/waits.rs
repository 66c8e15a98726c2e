//! What a server process waits for: a lock, or some time.

use super::{Backend, Phase, Wait};
use crate::invariants::Invariant;
use crate::session::BRAKE_US;
use crate::world::Site;

impl Wait {
    /// Since when it waits.
    fn since(&self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::Time(time) => Some(time.start),
            Self::Lock { since, .. } => Some(*since),
        }
    }
}

impl Backend {
    /// Until when what it waits for has not come, if so; `u64::MAX` if no time ends that.
    pub(super) fn wait(&mut self, site: &mut Site) -> Option<u64> {
        let Phase::Session { wait, .. } = &mut self.phase else { return None };
        let at = match wait {
            Wait::Nothing => return None,
            Wait::Time(time) => (site.trace.now < time.end).then_some(time.end),
            Wait::Lock { lock, .. } if site.locks.is_free(self.process_id, lock) => None,
            Wait::Lock { lock, since } => {
                site.locks.awaits(self.process_id, lock.clone());
                let looks_at = Some(*since + self.limits.deadlock);
                let looks_at = looks_at.filter(|at| *at > site.trace.now);
                let ends_at = self.limits.lock.map(|limit| *since + limit);
                Some(looks_at.into_iter().chain(ends_at).min().unwrap_or(u64::MAX))
            }
        };
        if at.is_none() {
            self.waits_no_more(site);
        }
        at.map(|at| self.statement_ends.map_or(at, |ends| ends.min(at)))
    }

    /// It goes on. Where others may stand behind it all that a client has sent up to the next
    /// ReadyForQuery has no more time than the brake leaves one statement. While it stands still it
    /// looks at no clock.
    pub(super) fn waits_no_more(&mut self, site: &mut Site) {
        let Phase::Session { session, wait } = &mut self.phase else { return };
        site.locks.goes_on(self.process_id);
        let Some(since) = std::mem::replace(wait, Wait::Nothing).since() else { return };
        let ends = self.statement_ends.unwrap_or(u64::MAX);
        let client = session.state.served.map(|served| served.client);
        if std::mem::replace(&mut self.waited_for, client) != client {
            // Of another client in the same transaction, which has a brake of its own.
            self.waited_us = 0;
        }
        self.waited_us += site.trace.now.min(ends).saturating_sub(since);
        if session.state.braked && self.waited_us > BRAKE_US {
            let text = format!("{} holds others up for {} us", self.who(), self.waited_us);
            site.ledger.fail(Invariant::BrakeHolds, text);
        }
    }
}

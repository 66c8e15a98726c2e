//! Engines that share a limit.
//!
//! As pools of one engine do among themselves (`shares.rs`), engines give up connections to those
//! whose clients have waited longer. Each says on a board what it lacks and nudges the others; each
//! looks at the board when it is nudged, and at every tick, so that a nudge that comes to nothing
//! costs a tenth of a second and no more.

use std::sync::Arc;

use crate::Engine;
use crate::action::Action;
use crate::commons::{Count, Want};
use crate::pool::PoolId;
use crate::shares::ShareId;
use crate::time::Time;

impl Engine {
    /// Another engine lacks connections, or has left some.
    pub fn nudged(&mut self, now: Time) {
        let mut waiting: Vec<_> = self.pools.keys().into_iter().collect();
        waiting.retain(|pool| self.pools[*pool].waiting > 0);
        waiting.sort_by_key(|pool| (self.waits_since(*pool), pool.index()));
        for pool in waiting {
            self.refill(now, pool);
        }
        self.look_at_wants(now);
    }

    /// Says what is lacking here, and gives up what others lack more.
    pub(crate) fn look_at_wants(&mut self, now: Time) {
        if self.member.workers() == 1 {
            return;
        }
        for share in self.shares.keys() {
            if self.shares[share].count.most().is_some() {
                self.post_want(now, share);
                self.answer_want(now, share);
            }
        }
    }

    /// A pool lacks connections that its shares do not leave it, or lacks none. Mostly the board
    /// says so already.
    pub(crate) fn renew_wants(&mut self, now: Time, pool: PoolId, lacks: bool) {
        if self.member.workers() == 1 {
            return;
        }
        for at in 0..self.pools[pool].shares.len() {
            let share = self.pools[pool].shares[at];
            let its = &self.shares[share];
            if its.posted != lacks && its.count.most().is_some() {
                self.post_want(now, share);
            }
        }
    }

    /// Since when others have waited for a connection that would be counted in these.
    pub(crate) fn others_wait_since(&self, counts: &[Arc<Count>]) -> Option<Time> {
        if self.member.workers() == 1 {
            return None;
        }
        let limited = counts.iter().filter(|count| count.most().is_some());
        limited.filter_map(|count| count.want_of_others(&self.member)).map(|want| want.since).min()
    }

    /// Whoever waits elsewhere may find something now.
    pub(crate) fn nudge_others(&mut self) {
        self.actions.push(Action::Nudge);
    }

    fn post_want(&mut self, now: Time, share: ShareId) {
        let its = &self.shares[share];
        let want = match its.count.room() {
            0 => its.pools().filter_map(|pool| self.want_of(now, pool)).min_by_key(|w| w.since),
            _ => None,
        };
        let is_news = its.count.post(&self.member, want);
        self.shares[share].posted = want.is_some();
        if is_news {
            self.nudge_others();
        }
    }

    /// What a pool lacks, its shares aside.
    fn want_of(&self, now: Time, id: PoolId) -> Option<Want> {
        let pool = &self.pools[id];
        let lacks = pool.waiting > pool.opening && pool.openings_due(now, 0) > 0;
        let since = self.waits_since(id).filter(|_| lacks)?;
        Some(Want { since, own: pool.total })
    }

    /// Gives up a connection of a share that is used up, if others lack one: one at a time.
    fn answer_want(&mut self, now: Time, share: ShareId) {
        let count = &self.shares[share].count;
        if count.room() > 0 || self.leaving(share) > 0 {
            return;
        }
        let Some(want) = count.want_of_others(&self.member) else { return };
        if !self.take_idle(now, share, None) {
            self.ask_busy(now, share, None, want);
        }
    }
}

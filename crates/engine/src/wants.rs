//! Engines that share a limit.
//!
//! As pools of one engine do among themselves (`shares.rs`), engines give up connections to those
//! whose clients have waited longer. Each says on a board what it lacks and nudges the others; each
//! looks at the board when it is nudged, and at every tick, so that a nudge that comes to nothing
//! costs a tenth of a second and no more.
//!
//! Where two limits keep a pool from one connection more, each is asked for by itself if there is
//! enough of both, idle here or there. Else what makes room in one of them alone would be of no use
//! and would soon be made again: then only a connection is asked for that counts in both.

use std::sync::Arc;

use crate::Engine;
use crate::action::Action;
use crate::commons::{Count, Want};
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::shares::{Of, ShareId, Shortage, Taker, is_among};
use crate::time::Time;

impl Engine {
    /// Another engine lacks connections, or has left some.
    pub fn nudged(&mut self, now: Time) {
        let pools = self.pools.keys().into_iter();
        let mut waiting: Vec<_> =
            pools.filter_map(|pool| Some((self.waits_since(pool)?, pool))).collect();
        Mark::NudgedWhileWaiting.hit_if(!waiting.is_empty());
        waiting.sort_by_key(|(since, pool)| (*since, pool.index()));
        for (_, pool) in waiting {
            self.refill(now, pool);
        }
        self.look_at_wants(now);
    }

    /// Says what is lacking here, and gives up what others lack more.
    pub(crate) fn look_at_wants(&mut self, now: Time) {
        if self.member.workers() == 1 {
            return;
        }
        for pool in self.pools.keys() {
            self.pools[pool].lacks = self.pools[pool].lacking(now) > 0;
        }
        for share in self.shares.keys() {
            if self.shares[share].count.most().is_some() {
                self.post_wants(now, share);
                self.answer_wants(now, share);
            }
        }
    }

    /// A pool lacks connections that its shares do not leave it, or lacks none. Mostly that has
    /// been said before.
    pub(crate) fn renew_wants(&mut self, now: Time, pool: PoolId, lacks: bool) {
        if self.member.workers() == 1 || self.pools[pool].lacks == lacks {
            return;
        }
        self.pools[pool].lacks = lacks;
        for share in self.pools[pool].shares.clone() {
            if self.shares[share].count.most().is_some() {
                self.post_wants(now, share);
            }
        }
    }

    /// Since when others have waited for a connection that would be counted in these, and in none
    /// that it is not.
    pub(crate) fn others_wait_since(&self, counts: &[Arc<Count>]) -> Option<Time> {
        if self.member.workers() == 1 {
            return None;
        }
        let is_counted = |of: &Of| {
            let share = self.share_of.get(of);
            share.is_some_and(|share| is_among(&self.shares[*share].count, counts))
        };
        let limited = counts.iter().filter(|count| count.most().is_some());
        let wants = limited.flat_map(|count| count.wants_of_others(&self.member));
        let met = wants.filter(|want| want.besides.iter().all(is_counted));
        met.map(|want| want.since).min()
    }

    /// Whoever waits elsewhere may find something now.
    pub(crate) fn nudge_others(&mut self) {
        self.actions.push(Action::Nudge);
    }

    fn post_wants(&mut self, now: Time, share: ShareId) {
        let its = &self.shares[share];
        let wants = its.pools().filter_map(|pool| self.want_of(now, pool, share)).collect();
        if its.count.post(&self.member, wants, self.idle(share, None)) {
            Mark::WantPosted.hit();
            self.nudge_others();
        }
    }

    /// What a pool lacks that is to be asked for in this share.
    fn want_of(&self, now: Time, id: PoolId, share: ShareId) -> Option<Want> {
        let pool = &self.pools[id];
        let lacking = pool.lacking(now);
        if lacking == 0 {
            return None;
        }
        let Shortage { at_hand, shares } = self.shortage(id, lacking);
        let besides = if at_hand > 0 {
            // Each has one at hand, and the one of this share may be idle elsewhere.
            &[]
        } else {
            let (_, besides) = shares.split_first().filter(|(first, _)| **first == share)?;
            besides
        };
        if self.shares[share].count.room() > 0 {
            return None;
        }
        let besides = besides.iter().map(|other| self.shares[*other].of.clone()).collect();
        Some(Want { since: self.waits_since(id)?, own: pool.total, besides })
    }

    /// Gives up a connection of a share that is used up, if it is what others lack: one at a time.
    fn answer_wants(&mut self, now: Time, share: ShareId) {
        let count = &self.shares[share].count;
        if count.room() > 0 || self.leaving(share) > 0 {
            return;
        }
        for Want { since, own, besides } in count.wants_of_others(&self.member) {
            let besides = besides.iter().map(|of| self.share_of.get(of).copied());
            let shares: Option<Vec<_>> = std::iter::once(Some(share)).chain(besides).collect();
            // Where no pool has a part in one of them there is nothing of use.
            let Some(shares) = shares else {
                Mark::WantElsewhere.hit();
                continue;
            };
            if self.take_idle(now, &shares, Taker::Elsewhere) {
                Mark::WantMet.hit();
                return;
            }
            Mark::WantUnmet.hit();
            self.ask_busy(now, &shares, None, since, own);
        }
    }
}

//! Reads and writes have shared servers of their own, each found by a climb of its own.
//!
//! A read ends with a processor, a commit with a disk, for which many servers wait together: four
//! times as many are worth having.

use std::time::Duration;

use super::climb::{Chance, Climb};
use super::{Access, Depths};
use crate::time::Time;

/// Where reads begin. Measured with two processors: one server that never sleeps does 1.15 times
/// what three do for 64 clients, and 1.4 times for 16; where statements take longer, three show at
/// once that they do more. With 16 statements on it the one does 0.9 times what it does with 64,
/// which are as deep as is ever tried: what is as good with fewer is found soon.
pub(super) const READS: Depths = Depths { hot: 1, depth: 64 };

/// What a processor does differs little from one moment to the next.
pub(super) const COMPUTES: Chance =
    Chance { slice: Duration::from_millis(90), spread: 0.12, better: 1.04 };

/// A disk's does.
const COMMITS: Chance = Chance { slice: Duration::from_millis(190), spread: 0.2, better: 1.1 };

/// Where writes begin. Measured with a pool of 64 and 64 clients that update a row by its key
/// (fsync, two processors): 16 servers and 8 statements on each do 1.45 times what 64 servers do,
/// 4 servers and 16 on each 0.93 times.
pub(super) const WRITES: Depths = Depths { hot: 16, depth: 8 };

/// What a pool has found out about sharing its servers.
#[derive(Debug)]
pub(crate) struct Climbs {
    reads: Climb,
    writes: Climb,
}

impl Climbs {
    pub(crate) fn new() -> Self {
        Self { reads: Climb::new(READS, COMPUTES), writes: Climb::new(WRITES, COMMITS) }
    }

    pub(crate) fn of(&self, access: Access) -> &Climb {
        match access {
            Access::Read => &self.reads,
            Access::Lock | Access::Write => &self.writes,
        }
    }

    pub(crate) fn of_mut(&mut self, access: Access) -> &mut Climb {
        match access {
            Access::Read => &mut self.reads,
            Access::Lock | Access::Write => &mut self.writes,
        }
    }

    /// Time has gone by. `transactions`: what the pool has finished since ever. Says whether
    /// something else holds now. While the one tries something the other learns nothing.
    pub(crate) fn tick(&mut self, now: Time, transactions: u64, servers: usize) -> bool {
        let both = |climbs: &Self| [&climbs.reads, &climbs.writes].map(|of| of.depths(servers));
        let before = both(self);
        if self.writes.is_trying() {
            self.reads.pause(now, transactions);
        } else {
            self.reads.tick(now, transactions, servers);
        }
        if self.reads.is_trying() {
            self.writes.pause(now, transactions);
        } else {
            self.writes.tick(now, transactions, servers);
        }
        both(self) != before
    }
}

#[cfg(test)]
mod tests;

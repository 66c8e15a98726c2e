//! Where one unit ends and the next begins though one Sync ends both.

use std::collections::VecDeque;

/// The places between such units, among the entries of the FIFO.
#[derive(Debug, Default)]
pub(super) struct Joints {
    /// So many entries are done with since ever.
    done: usize,
    /// Where the units begin, counted as those.
    places: VecDeque<usize>,
    /// So many of them have begun to be answered since the last ReadyForQuery.
    passed: usize,
}

impl Joints {
    /// Another unit begins behind so many entries.
    pub(super) fn put(&mut self, entries: usize) {
        self.places.push_back(self.done + entries);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn passed(&self) -> usize {
        self.passed
    }

    /// The entry at the head is done with.
    pub(super) fn advance(&mut self) {
        self.done += 1;
    }

    /// A message comes: it is of the next unit if nothing is owed to the one in front.
    #[inline]
    pub(super) fn pass(&mut self) {
        while self.places.front().is_some_and(|place| *place <= self.done) {
            self.places.pop_front();
            self.passed += 1;
        }
    }

    /// The units in front of what is owed now were skipped.
    pub(super) fn skip(&mut self) {
        while self.places.front().is_some_and(|place| *place <= self.done) {
            self.places.pop_front();
        }
    }

    /// ReadyForQuery has come.
    pub(super) fn end(&mut self) {
        self.passed = 0;
    }
}

//! What is owed while a COPY is under way.

use super::{Kind, Progress, Replies, Sink};
use crate::client::Slot;
use crate::marks::Mark;

impl Replies {
    /// The first entry is in its COPY: what was sent behind it is read as part of it, up to its end
    /// or to what is no part of any COPY.
    pub(super) fn begin_copy_in(&mut self, unanswered: &mut impl FnMut(Slot)) {
        let mut open = true;
        let mut flushed = false;
        while let Some(entry) = self.entries.get(1).filter(|_| open) {
            match entry.kind {
                Kind::CopyEnd => {
                    flushed = self.due > 1;
                    Mark::CopyEndAheadFound.hit();
                    self.remove(1);
                    self.copy_ends -= 1;
                    open = false;
                }
                Kind::Sync => {
                    Mark::SyncAheadOfCopy.hit();
                    if let Sink::Client(slot) = entry.sink {
                        unanswered(slot);
                    }
                    self.remove(1);
                    self.early_syncs += 1;
                }
                // Where data are read it is an error, which comes at once. Else it is answered.
                _ => {
                    Mark::CopyEndedByWhatFollows.hit();
                    flushed = true;
                    open = false;
                }
            }
        }
        self.progress = Progress::CopyIn { open };
        let head = self.entries.front().map(|head| &head.kind);
        if self.due == 1 && !flushed && matches!(head, Some(Kind::Execute { .. })) {
            // What it says behind its COPY waits for another Sync, or for a Flush behind its end.
            Mark::CopySaysTheRestLater.hit();
            self.due = 0;
        }
    }

    /// The first entry is in its COPY, both ways: says whether its end was sent before.
    pub(super) fn strike_copy_end(&mut self) -> bool {
        let end = self.entries.iter().position(|entry| matches!(entry.kind, Kind::CopyEnd));
        if let Some(index) = end {
            Mark::CopyBothEndedAhead.hit();
            self.remove(index);
            self.copy_ends -= 1;
        }
        end.is_some()
    }
}

//! The advisory locks of all fake servers: who has them, and who waits for whom.

use std::collections::BTreeMap;

/// A lock: of one database of one server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lock {
    pub(crate) cluster: usize,
    pub(crate) database: String,
    pub(crate) key: u32,
}

/// What each server process has, and the one that it waits for. No two processes have the same id.
#[derive(Default)]
pub(crate) struct Locks {
    held: BTreeMap<i32, Vec<Lock>>,
    awaited: BTreeMap<i32, Lock>,
}

impl Locks {
    /// Whether nobody else has this one.
    pub(crate) fn is_free(&self, process_id: i32, lock: &Lock) -> bool {
        self.holder(lock).is_none_or(|holder| holder == process_id)
    }

    /// A process waits for a lock.
    pub(crate) fn awaits(&mut self, process_id: i32, lock: Lock) {
        self.awaited.insert(process_id, lock);
    }

    /// It does not wait any more.
    pub(crate) fn goes_on(&mut self, process_id: i32) {
        self.awaited.remove(&process_id);
    }

    /// What a process has from now on. Says whether others may go on now.
    pub(crate) fn has(&mut self, process_id: i32, locks: Vec<Lock>) -> bool {
        let before = match locks.is_empty() {
            true => self.held.remove(&process_id),
            false => self.held.insert(process_id, locks),
        };
        let now = self.held.get(&process_id);
        let kept = |lock: &Lock| now.is_some_and(|locks| locks.contains(lock));
        before.is_some_and(|before| !before.iter().all(kept))
    }

    /// Whether a process waits for itself, over others that wait.
    pub(crate) fn is_deadlocked(&self, process_id: i32) -> bool {
        let mut waiting = process_id;
        for _ in 0..self.awaited.len() {
            let holder = self.awaited.get(&waiting).and_then(|lock| self.holder(lock));
            match holder {
                Some(holder) if holder == process_id => return true,
                Some(holder) => waiting = holder,
                None => return false,
            }
        }
        false
    }

    fn holder(&self, lock: &Lock) -> Option<i32> {
        let holder = self.held.iter().find(|(_, locks)| locks.contains(lock));
        holder.map(|(process_id, _)| *process_id)
    }
}

#[cfg(test)]
mod tests;

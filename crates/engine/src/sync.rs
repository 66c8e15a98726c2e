//! What the engines of a process share is made of these: numbers, and locks.
//!
//! In the product they are the standard library's. The tests of `interleave/` build this crate a
//! second time with shuttle's in their place, which lets a test say at each step which thread goes
//! on. It tries orders of steps, not of memory; so a [`Counter`] cannot be asked for less than one
//! order of all its steps that every thread sees.

use std::sync::PoisonError;

use primitives::atomic::AtomicUsize;
use primitives::atomic::Ordering::SeqCst;
pub(crate) use primitives::{Mutex, MutexGuard};
#[cfg(feature = "interleaved")]
use shuttle::sync as primitives;
#[cfg(not(feature = "interleaved"))]
use std::sync as primitives;

/// A number that several threads change.
pub(crate) struct Counter(AtomicUsize);

impl Counter {
    pub(crate) fn new(value: usize) -> Self {
        Self(AtomicUsize::new(value))
    }

    pub(crate) fn value(&self) -> usize {
        self.0.load(SeqCst)
    }

    pub(crate) fn set(&self, value: usize) {
        self.0.store(value, SeqCst);
    }

    /// Adds one. Gives what there was before.
    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, SeqCst)
    }

    /// Adds one, if the sum is `most` at most. Says whether it did.
    pub(crate) fn add_below(&self, most: usize) -> bool {
        let sum = |value| (value < most).then_some(value + 1);
        self.0.fetch_update(SeqCst, SeqCst, sum).is_ok()
    }

    /// Adds so many, if the sum is `most` at most. Says whether it did.
    pub(crate) fn add_many(&self, many: usize, most: usize) -> bool {
        let sum = |value: usize| value.checked_add(many).filter(|sum| *sum <= most);
        self.0.fetch_update(SeqCst, SeqCst, sum).is_ok()
    }

    /// Takes off one that was added before.
    pub(crate) fn sub(&self) {
        self.sub_many(1);
    }

    /// Takes off so many that were added before.
    pub(crate) fn sub_many(&self, many: usize) {
        let before = self.0.fetch_sub(many, SeqCst);
        debug_assert!(before >= many, "what was counted once is taken off twice");
    }
}

/// What is behind these locks is whole after every statement, whoever panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

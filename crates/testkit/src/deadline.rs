//! Waiting for conditions. This is the one place in the project's tests that reads the clock or
//! sleeps: everything else says what it waits for and gets it, or a panic that names it.
//!
//! Where an event can be waited for (a byte on a socket, the end of a child) the waiting is done
//! on it. What only shows itself to a look, such as a row in `pg_stat_activity` or a line in a
//! log, is polled, with a pause that grows from 1 ms to 50 ms.

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long anything may take before a test fails. It is far above what a loaded machine needs,
/// because it is only ever waited for in full by a test that is about to fail.
pub const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE_MAX: Duration = Duration::from_millis(50);

/// A point in time after which waiting is given up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline `patience` from now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "tests of real programs run in real time")]
    pub fn after(patience: Duration) -> Self {
        Self(Instant::now() + patience)
    }

    /// The time left, `None` once it is over. Never zero, which sockets take for "for ever".
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "tests of real programs run in real time")]
    pub fn remaining(&self) -> Option<Duration> {
        self.0.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

/// Waits until `condition` holds.
///
/// # Panics
/// After [`PATIENCE`], naming `what` was waited for.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(what, || condition().then_some(()));
}

/// Waits until `attempt` gives a value.
///
/// # Panics
/// After [`PATIENCE`], naming `what` was waited for.
#[track_caller]
pub fn eventually_some<T>(what: &str, attempt: impl FnMut() -> Option<T>) -> T {
    let Some(value) = within(PATIENCE, attempt) else {
        panic!("waited {PATIENCE:?} in vain for: {what}");
    };
    value
}

/// Tries `attempt` again and again until it gives a value or `patience` is over.
#[expect(clippy::disallowed_methods, reason = "the project's one sleep; see the module's text")]
pub(crate) fn within<T>(patience: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::after(patience);
    let mut pause = Duration::from_millis(1);
    loop {
        let attempted = attempt();
        if attempted.is_some() {
            return attempted;
        }
        thread::sleep(pause.min(deadline.remaining()?));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

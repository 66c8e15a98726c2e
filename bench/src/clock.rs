//! The only place that reads the clock, waits, and hears Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Doing, Error, Result};

/// How long [`rest`] takes.
const LOOK_EVERY: Duration = Duration::from_millis(5);

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Makes SIGINT, SIGTERM and SIGHUP end the run at its next [`check`]; a second one ends the
/// process at once, and the kernel then ends its children.
pub(crate) fn hear_signals() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag unset, the second finds it set.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&INTERRUPTED))
            .and_then(|_| flag::register(signal, Arc::clone(&INTERRUPTED)))
            .doing(|| format!("listen for signal {signal}"))?;
    }
    Ok(())
}

/// Errors: [`Error::Interrupted`] once a signal has come.
pub(crate) fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

/// The time by the monotonic clock.
pub(crate) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "measuring time is what this program does")]
    Instant::now()
}

/// The date and the time by UTC, to the second, as in `2026-01-31T23:59:59Z`.
pub(crate) fn date() -> String {
    #[expect(clippy::disallowed_methods, reason = "results say when they were measured")]
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Waits until `condition` gives a value; `None` when `limit` has passed without one.
///
/// Errors: those of the condition, and [`Error::Interrupted`].
pub(crate) fn until<T>(
    limit: Duration,
    mut condition: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let start = now();
    loop {
        check()?;
        if let Some(value) = condition()? {
            return Ok(Some(value));
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
        rest();
    }
}

/// The pause between two looks at a condition that no event tells of.
pub(crate) fn rest() {
    #[expect(clippy::disallowed_methods, reason = "the only place that waits for time")]
    std::thread::sleep(LOOK_EVERY);
}

/// Lets `time` pass: the length of an idle measurement.
pub(crate) fn pass(time: Duration) -> Result<()> {
    until(time, || Ok(None::<()>)).map(drop)
}

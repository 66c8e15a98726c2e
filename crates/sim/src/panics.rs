//! A panic in a simulation is a failure of it: it is told once, with its place, and not on stderr
//! as well by each run that finds it again.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::invariants::Invariant;

thread_local! {
    /// This thread runs a simulation.
    static SIMULATES: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic of this thread's simulations happened.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a part of a simulation. A panic is an error, in its own words and with its place.
pub(crate) fn caught<T>(part: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if SIMULATES.get() {
                PLACE.set(panic.location().map(ToString::to_string).unwrap_or_default());
            } else {
                before(panic);
            }
        }));
    });
    SIMULATES.set(true);
    let result = catch_unwind(AssertUnwindSafe(part));
    SIMULATES.set(false);
    result.unwrap_or_else(|panic| {
        let text = match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.as_str(),
            (None, Some(text)) => text,
            (None, None) => "a panic without words",
        };
        Err(Invariant::EngineState.broken(format!("{text}\nat {}", PLACE.take())))
    })
}

#[cfg(test)]
mod tests;

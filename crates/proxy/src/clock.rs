use std::time::Instant;

use pgweir_engine::Time;

/// The time of this process. All workers and the console share one, so that their times compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that stands at zero now.
    #[expect(clippy::disallowed_methods, reason = "here, and only here, the engine's time is read")]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Time {
        // 2^64 microseconds are half a million years.
        Time(self.start.elapsed().as_micros() as u64)
    }
}

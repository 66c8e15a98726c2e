//! pgweir in front of a real PostgreSQL, driven by raw protocol clients and by real ones.
//!
//! One test binary, since each links all of pgweir's surroundings; one module for each promise.
//! All tests but those that stop their server share one PostgreSQL ([`stage`]).
#![expect(clippy::unwrap_used, reason = "in a test's helper, too, it is the test that fails")]

mod auth;
mod cancel;
mod clients;
mod console;
mod descriptors;
mod differential;
mod disconnects;
mod mixing;
mod pins;
mod pool;
mod pool_modes;
mod server_loss;
mod shutdown;
mod slow_readers;
mod stage;

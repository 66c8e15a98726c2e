//! The data plane: sockets and threads around the engine.
//!
//! [`Driver`] moves bytes as the engine says, over any [`Transport`], and is as deterministic as
//! the engine itself: the simulator drives it over a simulated network. `worker` puts it on a
//! thread with real sockets.
//!
//! It never decides anything: which server, which client, which bytes are the engine's business.
//!
//! # Invariants
//!
//! - All actions of a call are carried out before the next call.
//! - Input that the engine did not consume is kept, and passed again with what follows it.
//! - A connection at rest owns no buffer. Input is read into one scratch buffer that all
//!   connections share. What is long goes from there straight to the other side's socket; what is
//!   short may be gathered, and goes out with that of other connections at the end of the turn.
//! - A slow reader stops whoever feeds it, after a bounded number of bytes, and nobody else.
#![deny(unsafe_code)]

mod batch;
mod clock;
mod driver;
mod link;
mod links;
mod listener;
mod mail;
mod piece;
mod sock_diag;
mod socket;
mod sync;
#[cfg(test)]
mod tests;
mod transport;
mod worker;
mod workers;

pub use clock::Clock;
pub use driver::{Driver, Handover, Read, Request};
pub use link::Interest;
pub use listener::{Listener, Listeners};
pub use mail::{Arrival, Mail, Mailboxes, News, Renewal};
pub use piece::Piece;
pub use socket::{Detached, configure};
pub use sync::Inbox;
pub use transport::Transport;
pub use workers::Workers;

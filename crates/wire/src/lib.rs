//! The PostgreSQL frontend/backend protocol, versions 3.0 and 3.2, as bytes.
//!
//! This crate knows how messages are framed, what each tag is called, and where the few fields
//! lie that a pooler must read. It finds and it builds; it keeps no state between calls, does no
//! I/O, and decides nothing: what a message *means* for a session is the business of `engine`.
//!
//! Invariants:
//! - A decoder never allocates in proportion to a length field, only to bytes that are there.
//! - A decoder reads untrusted bytes: every one returns [`Malformed`] instead of panicking.
//! - The views borrow. Nothing on the way of a message between two sockets allocates.
//!
//! Names follow PostgreSQL's documentation, chapter "Frontend/Backend Protocol".
#![forbid(unsafe_code)]

pub mod backend;
mod error;
mod fields;
mod frame;
pub mod frontend;
mod startup;
mod status;

pub use error::{Malformed, Severity, SqlState};
pub use frame::{HEADER_LEN, Header};
pub use startup::{
    CancelKey, GSSENC_REQUEST, Initial, MAX_STARTUP_LEN, ProtocolVersion, SSL_REQUEST, Startup,
};
pub use status::TransactionStatus;

#[cfg(test)]
mod tests;

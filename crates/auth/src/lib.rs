//! PostgreSQL authentication, both sides of it: what pgweir asks of a client that logs in to it,
//! and what it answers when it logs in to a server.
//!
//! # What is here
//!
//! A user's configured secret is a [`Verifier`]: a password, an MD5 hash or SCRAM keys, told apart
//! by the rules of PostgreSQL's `pg_authid.rolpassword`. Against it a client is checked with
//! [`Verifier::accepts_cleartext`], [`Verifier::accepts_md5`] or a [`ScramServer`]. To a server,
//! [`Secret::expose`], [`Md5Hash::response`] and [`ScramClient`] give the answers; what SCRAM makes
//! of a password, slowly, is kept for the next login as [`LoginKeys`].
//!
//! # What it never does
//!
//! It does no I/O, reads no clock and draws no random number: nonces and salts are arguments, so
//! the same arguments give the same bytes. It frames no protocol message either: it takes and
//! gives what stands inside one. It decides no policy: which method a client must use is the
//! caller's table.
//!
//! # Invariants
//!
//! - **No step of a login can be skipped or run twice.** Each gives the state that the next one
//!   consumes, so a proof is checked once, against the challenge it was made for, and only a proof
//!   that fits makes an [`Authenticated`].
//! - **Unknown is like wrong.** A user name that is not known gets keys made up by [`MockAuth`]
//!   and from there on walks the same code as a known one. There is no flag to forget.
//! - **No secret is shown.** `Debug` of every type here hides passwords and keys, and errors carry
//!   nothing of a client's message, which may hold a password, or rubbish for the log.
//! - **No secret is compared byte by byte.** Passwords, hashes, keys and signatures are compared
//!   in constant time.
//! - **Hostile bytes cost little.** Messages and nonces have bounds, a server's iteration count
//!   too ([`Iterations::MAX_FROM_SERVER`]), and no bytes make a reader panic.
//!
//! PBKDF2 is the one slow thing here, about a millisecond for 4096 iterations. It runs where keys
//! are made of a password ([`LoginKeys::derive`], [`ScramKeys::derive`], [`Verifier::scram_keys`])
//! and where a cleartext password is checked against SCRAM keys. Checking a SCRAM client takes a
//! few hashes.
//!
//! [`ScramServer`]: scram::ScramServer
//! [`ScramClient`]: scram::ScramClient
//! [`LoginKeys`]: scram::LoginKeys
//! [`LoginKeys::derive`]: scram::LoginKeys::derive
//! [`ScramKeys::derive`]: scram::ScramKeys::derive
//! [`Authenticated`]: scram::Authenticated
//! [`Iterations::MAX_FROM_SERVER`]: scram::Iterations::MAX_FROM_SERVER

mod md5;
mod mock;
pub mod scram;
mod secret;
mod verifier;

pub use self::md5::Md5Hash;
pub use mock::MockAuth;
pub use secret::Secret;
pub use verifier::{Verifier, VerifierError, VerifierKind};

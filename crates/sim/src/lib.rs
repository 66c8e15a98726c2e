//! A deterministic simulator: pgweir's own drivers and engines among fake clients, fake PostgreSQL
//! servers and a network that is as unkind as networks are.
//!
//! One number, the seed, gives everything: pools and their modes, who connects and what is asked
//! for, what goes wrong, and the order in which it all happens. Nothing here reads a clock, opens
//! a socket or starts a thread, so a seed that fails will fail again, on every machine.
//!
//! # What is real
//!
//! `pgweir_proxy::Driver` and `pgweir_engine::Engine`, as they are in the program: one of each for
//! a worker, with mail between them (`process`). Everything around them is fake: `network` moves
//! bytes, in pieces and late; `postgres` is a server process that speaks the protocol and a made-up
//! `language`; `client` talks to pgweir and knows what it is owed; `world` decides what happens
//! next.
//!
//! # How a wrong row is found
//!
//! Every statement carries a tag that is unique to its client, and everything that it causes
//! carries the tag back. Beside each client runs an oracle: a `session` like those of the fake
//! servers, that nobody else uses and that gets the same messages. What the client reads from
//! pgweir has to be, byte for byte, what its oracle says. Errors that pgweir makes itself, cancels
//! and losses are allowed where there is a reason for them, and counted against it.
//!
//! The fake servers look too: a statement that comes into somebody else's transaction, or to a
//! session with somebody else's settings, prepared statements or temporary tables; a statement
//! that is carried out twice; a cancel that hits whom it was not meant for. `ledger` keeps what is
//! true, and clients compare with it what they were told.
//!
//! What limits allow is known outside as well: `configuration` is drawn as data, `rules` says which
//! held when, and both what is counted and how long something took are seen at the network.
//!
//! When the storm is over everything has to come to its end: every client served or told why not,
//! and in the end no connection and no server process left.
//!
//! # What becomes of a failure
//!
//! It is made smaller ([`shrink()`]): whatever a simulation can do without is taken away ([`Diet`])
//! as long as it fails alike. Each part throws dice of its own, so that the rest stays what it was.
//!
//! # Invariants
//!
//! - The same seed gives the same trace: each is run twice, and the hashes are compared.
//! - Faults are named in one place ([`Faults`]), and what they may cost is bounded there too: one
//!   server connection that is taken away costs one client at most.
//! - What docs/failures.md promises is reached: each [`Row`] is marked when a client hears it.
//! - Rare paths of pgweir's code are taken: each has a [`Mark`] there, and is counted here.
#![forbid(unsafe_code)]

mod admin;
mod canceller;
mod client;
mod configuration;
mod diet;
mod faults;
mod invariants;
mod language;
mod ledger;
mod locks;
mod network;
mod outbox;
mod panics;
mod postgres;
mod process;
mod random;
mod room;
mod rows;
mod rules;
mod run;
mod schema;
mod session;
mod shapes;
mod shrink;
mod topology;
mod trace;
mod trap;
mod world;

pub use diet::Diet;
pub use faults::Faults;
pub use invariants::Invariant;
pub use ledger::Counts;
pub use pgweir_engine::{Mark, Marks};
pub use rows::{Reached, Row};
pub use run::{Extent, Failure, Options, Report, may_share, run, run_with};
pub use shrink::{Progress, Shrunk, shrink};
pub use trap::Trap;

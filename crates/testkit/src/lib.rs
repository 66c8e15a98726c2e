//! What pgweir's tests stand on: real PostgreSQL servers, the real pgweir program, and a client
//! that speaks the raw protocol.
//!
//! * [`Cluster`] starts a PostgreSQL of its own for a test, in a few tenths of a second.
//! * [`Pgweir`] starts the program in front of it; [`PoolerConfig`] writes the usual
//!   configuration.
//! * [`WireClient`] sends [`frames`] and shows the [`Message`]s that come back.
//! * [`Script`] holds one conversation with both and compares, message by message.
//! * [`python`] and [`postgres::tool`] are real clients to drive: psycopg, psql, pgbench.
//! * [`eventually`] waits for a condition. There is no other waiting in the project's tests.
//!
//! What it never does: it asserts nothing about pgweir, it shares no code with it (a mistake must
//! not meet itself on the other side of a socket), and it talks to nothing but 127.0.0.1.
//!
//! Invariants:
//! * A server ends with the value that stands for it. If the test process dies without dropping
//!   it, a guard process ends the server and removes its folder.
//! * A port belongs to one test as long as its server's value lives, up or down.
//! * A failure is a panic that says what was being done. Only what a test may want to look at (a
//!   refused login, a broken connection) is a `Result`.

mod client;
mod cluster;
mod deadline;
mod fail;
pub mod frames;
mod message;
mod pgweir;
mod pooler_config;
mod port;
#[cfg(test)]
mod port_tests;
pub mod postgres;
mod process;
mod python;
mod scratch;
mod script;

pub use client::{AuthMethod, CancelKey, Login, LoginError, WireClient};
pub use cluster::{Cluster, ClusterBuilder, HostAuth};
pub use deadline::{Deadline, PATIENCE, eventually, eventually_some};
pub use message::Message;
pub use pgweir::Pgweir;
pub use pooler_config::PoolerConfig;
pub use port::{Port, Stranger};
pub use python::python;
pub use rustix::process::Signal;
pub use script::{Script, assert_same_transcript};

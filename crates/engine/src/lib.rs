//! What to do with every message: sessions, servers, pools.
//!
//! The engine is sans-IO. It is told what happened (bytes came, a connection was made, time
//! passed) and leaves a list of [`Action`]s: write these bytes there, open a connection, stop
//! reading. It has no socket, no clock and no thread, and what is random in it comes from a seed,
//! so the same events give the same actions, byte for byte. That is what lets a simulator drive
//! it through orders of events that no network would bring about twice.
//!
//! # The heart
//!
//! A *unit* is what a server is needed for: a simple Query, or an extended batch up to its Sync.
//! A client has a FIFO of *slots*, one for each reply that it is owed. A server has a FIFO of
//! *expected replies* (`reply.rs`); each names the slot that it fills, what may come, what becomes
//! of it, and what is settled when it has come. Forwarding, replay of settings, ROLLBACK, the
//! reset query and the Parse that is made again on another server are all entries of that FIFO.
//!
//! The engine never owns payload: it reads headers and a few short messages, and forwards ranges
//! of its input. What it keeps is what it may have to send again: the Parse of an unnamed
//! statement.
//!
//! # Several engines
//!
//! A process has an engine for each worker ([`Member`]). A pool lives in one of them; a client
//! comes to the first and is handed over at its startup packet. What is limited over pools is
//! counted in common, and is all that engines share: what they tell each other is an event, like
//! everything else.
//!
//! # Invariants
//!
//! - A message that no expected reply allows reaches no client: its server is contained.
//! - A server is lent only when it owes no reply, its last status was `I`, and no cancel may
//!   still reach it.
//! - A client whose unit has been sent gets its reply from that server, an error that says it was
//!   lost, or a closed connection: never the reply of another.
//! - Errors inside a batch or a transaction come from the server. We answer in its place only
//!   where no server is involved yet.
//! - A client that has a server was told what that server reports to be set to.
//! - Nobody waits while a server of its pool is idle, and no pool opens a server beyond its size
//!   and reserve, nor beyond a limit that it shares with others.
//!
//! `Engine::check` asserts what of this can be seen from the state, and the simulator calls it
//! every few steps.
#![forbid(unsafe_code)]

mod action;
mod again;
mod ask;
mod birth;
mod cancel;
mod catalogue;
mod checkout;
mod client;
mod client_login;
mod commons;
mod console;
mod delays;
mod drain;
mod engine;
mod errors;
mod handover;
mod invariants;
mod keeping;
mod kept_plans;
mod leave;
mod listen;
mod literals;
mod loss;
mod marks;
mod memory;
mod merge;
mod open;
mod parameters;
mod pins;
mod pipeline;
mod placement;
mod plan;
mod pool;
mod prepared;
mod random;
pub mod readers;
mod refusals;
mod relay;
mod reload;
mod replication;
mod reply;
mod room;
mod route;
mod scan;
mod sequences;
mod server;
mod server_login;
mod settings;
mod settle;
mod shares;
mod snapshot;
mod stats;
mod store;
mod sync;
mod time;
mod timers;
mod track;
mod unfinished;
mod units;
mod waits;
mod wants;

pub use action::{Action, Actions, Address, Bytes, CancelId, ClientId, Endpoint, Event, ServerId};
pub use cancel::CancelProgress;
pub use catalogue::{CatalogueRows, Database};
pub use client::Ends;
pub use client_login::NEWCOMERS;
pub use commons::{CANCELLERS, Member};
pub use delays::Delays;
pub use engine::Engine;
pub use errors::{
    CONSOLE_FAILED, CONSOLE_INVALID, CONSOLE_NO_BACKEND, CONSOLE_UNSUPPORTED, CONSOLE_VALUE,
    ERRORS, ErrorKind, errors_page,
};
pub use handover::HandedOver;
pub use marks::{Mark, Marks};
pub use memory::{Memory, Usage};
pub use pgweir_sql::Loud;
pub use pins::{PinPolicy, PinView};
pub use pipeline::{Access, Joining, REPLY_HELD_BYTES, Unshared};
pub use placement::Placement;
pub use plan::Plan;
pub use refusals::Refusals;
pub use relay::DESCRIPTION_BYTES;
pub use replication::ReplicationKind;
pub use route::{Route, Rules};
pub use server_login::LOGIN_MESSAGE_BYTES;
pub use snapshot::{
    CancelView, ClientState, ClientTarget, ClientView, LimitView, LoudView, PoolView,
    RequesterView, ServerActivity, ServerView, Snapshot,
};
pub use stats::Stats;
pub use store::Key;
pub use time::Time;
pub use timers::TICK;
pub use units::UNIT_HELD_BYTES;

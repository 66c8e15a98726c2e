//! What a statement is, told from its text alone.
//!
//! The crate answers one question for every query: does this SQL text leave state in the session
//! that performs it, so that the server must stay with this client (a *pin*)? [`classify()`]
//! answers it for a whole text, [`Classifier`] for a text that arrives in pieces. Both are pure and
//! allocate nothing. [`begins()`] is for a unit that is refused, [`chains()`] and [`rolls_back()`]
//! are for a client whose transaction was lost, and
//! [`overrides()`] for one whose settings have become wrong, [`taken_back()`] for one that takes
//! back what it has asked for at its login,
//! [`deallocated()`] for one that prepares statements by the protocol and removes them by SQL, and
//! [`custom_settings()`] gives the names of settings that a server has to be asked for one by one.
//!
//! # How it reads
//!
//! The lexer follows PostgreSQL's `scan.l`: comments and nested comments, every kind of quoting,
//! literals that continue on the next line, `--` and `/*` inside operators. On top of it stands no
//! grammar but a few words of context for each row of [`RULES`]: `SET` counts as the first word of
//! a statement, `TEMP` behind `CREATE`, a function's name before its `(`. That table is the only
//! place that knows what pins and why, in words for the documentation too.
//!
//! # Invariants
//!
//! - **A pin is never missed because the text is ambiguous.** Where two readings are possible,
//!   both are followed and the answer is their union: `'a\'` ends at its quote or not, depending
//!   on `standard_conforming_strings`. Where no reading is possible, the answer is
//!   [`PinReason::Unclear`]: a name written `U&"…"`, a dollar tag of more than 63 bytes, an
//!   encoding whose characters may contain a backslash ([`Encoding`]).
//! - **A text that PostgreSQL refuses may be judged in any way**: a syntax error anywhere in a
//!   query string keeps all of it from running.
//! - **Cutting the text changes nothing.** Any sequence of pieces gives the answer of the whole.
//! - **Ordinary traffic is not pinned**, nor are transactions, DDL, COPY and CALL themselves.
//!
//! A pin that was not needed costs capacity; a pin that was missed shows a stranger somebody's
//! session. So every approximation here errs towards the pin: `;` ends a statement everywhere,
//! inside `BEGIN ATOMIC … END` and inside the actions of a rule too, where the words that follow
//! are then judged as if they ran at once; a `SET` that is later rolled back still pins.
//!
//! # Sequences
//!
//! `nextval` leaves in the session what `currval` and `lastval` answer with later, and so does an
//! INSERT into a serial column, of which the text says nothing. So a pin alone cannot keep a
//! stranger's value away from `lastval`. [`PinReason::Sequence`] says that one of the functions is
//! named, or a table whose defaults call it; whoever pools for applications that do so all the time
//! takes it out again ([`Pins::without`]). [`PinReason::LastValue`] says that the answer is asked
//! for.
//!
//! # What may be shared
//!
//! [`Sharing`] says whether a text may stand on a server between those of other clients, or by
//! which rule it needs one alone. Here every doubt is a server alone: what begins a statement and
//! what stands in front of a `(` has to be on a list ([`quiet_functions()`]), or known from the
//! catalogue.
//!
//! # What stands behind names
//!
//! A text shows nothing of what functions, triggers, rules, defaults and casts do inside. The
//! catalogue of a database does: [`Catalogue`] makes of it the names that are *loud* ([`Loud`]),
//! and [`hear()`] reads a text with those at hand, and the DO blocks in it. A fast-path call names
//! its function by OID: [`function_call`] knows those that are harmless.

mod builtins;
mod calls;
mod chain;
mod classify;
mod custom;
mod deallocate;
mod encoding;
mod fingerprint;
mod lexer;
mod loud;
mod overrides;
mod pins;
mod rules;
mod sharing;

pub use builtins::{EXCEPTIONS, Exception, quiet_functions};
pub use calls::function_call;
pub use chain::{begins, chains, exits, rolls_back};
pub use classify::{Classifier, Heard, classify};
pub use custom::custom_settings;
pub use deallocate::{Deallocated, NAME_BYTES, Name, deallocated};
pub use encoding::Encoding;
pub use fingerprint::Fingerprint;
pub use loud::{
    COMPUTING_EXTENSIONS, Catalogue, Effect, Kind, Loud, Object, ObjectId, Source, Unseen, Use,
    When, hear,
};
pub use overrides::{Overrides, Scope, overrides, taken_back};
pub use pins::{PinReason, Pins, search_path};
pub use rules::{Form, RULES, Rule, words};
pub use sharing::{Alone, Sharing};

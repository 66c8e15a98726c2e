//! What must hold whatever bytes come: a target for every reader of bytes that are not ours.
//!
//! A target is a plain function of bytes. It panics if something does not hold, and "it did not
//! panic" is the least of what it asks: a prefix never means something else than the whole, what
//! was read is written again as it was, a stream cut anywhere gives what the whole gives, nobody
//! proves a password by guessing, and nobody is shown another's row. So the same function serves
//! three runners: `tests/replay.rs` runs what `corpus/` keeps, `tests/random.rs` changes those
//! inputs at random for a while, and libFuzzer is guided by coverage (`fuzz/` at the root of the
//! repository, `scripts/fuzz.sh`).
//!
//! The engine targets put a whole [`Engine`](pgweir_engine::Engine) into a world of in-memory
//! connections, in which one side says what the input says and the other keeps the protocol. The
//! inputs of two of them are scripts: see [`script`].
//!
//! A target touches no socket, no clock and no PostgreSQL. That the servers in it behave as the
//! real one does is checked by `tests/postgres.rs`.
//!
//! Invariants:
//! - A target's verdict depends on its input alone: the same bytes, the same run.
//! - No input is refused as uninteresting before it has been given to the code under test.
#![forbid(unsafe_code)]

mod backend;
mod catalogue;
mod config;
mod console;
pub mod corpus;
mod cut;
mod engine_client;
mod engine_server;
mod engine_units;
mod frontend;
mod mutate;
pub mod postgres;
mod scram;
pub mod script;
mod secret;
mod server_login;
mod shrink;
mod sql;
mod startup;
mod transcript;
mod units;
mod url;
mod words;
mod world;

pub use mutate::Mutator;
pub use shrink::{fails, shrink};
pub use words::{Language, words};

/// One reader of bytes that are not ours, and what must hold of it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// How runners and folders of the corpus call it.
    pub name: &'static str,
    /// What its input is.
    pub input: &'static str,
    /// How much of the time of random runs it gets, against the others: the more there is to go
    /// wrong, the more.
    pub weight: u32,
    /// Inputs that runners make are no longer. What is said in more bytes can be said in fewer,
    /// and takes its time.
    pub longest: usize,
    /// What its inputs are written in.
    pub language: Language,
    /// Panics if something does not hold.
    pub run: fn(&[u8]),
}

/// Every target, ordered by name.
#[rustfmt::skip]
pub const TARGETS: [Target; 16] = [
    row("backend", "messages of a server", 3, 4_096, Language::Messages, backend::run),
    row("catalogue", "rows of cells of what a server says of its catalogue", 1, 512,
        Language::Catalogue, catalogue::run),
    row("config", "a configuration file", 1, 1_024, Language::Config, config::run),
    row("console", "a console command", 1, 256, Language::Console, console::run),
    row("engine_client", "a script of what clients send", 5, 512, Language::Scripts,
        engine_client::run),
    row("engine_server", "a script of what a server sends", 5, 512, Language::Scripts,
        engine_server::run),
    row("engine_units", "messages of a client that has logged in", 3, 192, Language::Scripts,
        engine_units::run),
    row("frontend", "messages of a client", 3, 4_096, Language::Messages, frontend::run),
    row("scram_client", "server-first and server-final, a line each", 3, 4_096, Language::Scram,
        scram::client),
    row("scram_server", "client-first and client-final, a line each", 3, 4_096, Language::Scram,
        scram::server),
    row("secret", "a user, what is stored for it and what it sends, a line each", 1, 512,
        Language::Scram, secret::run),
    row("server_login", "messages of a server's login", 2, 256, Language::Messages,
        server_login::run),
    row("sql", "the text of a query", 2, 256, Language::Sql, sql::run),
    row("startup", "the first packet of a connection", 3, 4_096, Language::Messages, startup::run),
    row("units", "messages of a client, one unit behind the other", 2, 256, Language::Scripts,
        units::run),
    row("url", "the URL of a server", 1, 512, Language::Url, url::run),
];

const fn row(
    name: &'static str,
    input: &'static str,
    weight: u32,
    longest: usize,
    language: Language,
    run: fn(&[u8]),
) -> Target {
    Target { name, input, weight, longest, language, run }
}

/// The target with this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Runs the target with this name, which has to be one.
pub fn run(name: &str, input: &[u8]) {
    match target(name) {
        Some(target) => (target.run)(input),
        None => panic!("there is no target {name}"),
    }
}

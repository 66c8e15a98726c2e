//! pgweir in front of a real PostgreSQL, driven by raw protocol clients and by real ones.
//!
//! One test binary, since each links all of pgweir's surroundings; one module for each promise.
//! All tests but those that stop their server share one PostgreSQL ([`stage`]).
#![expect(clippy::unwrap_used, reason = "in a test's helper, too, it is the test that fails")]

mod auth;
mod birth;
mod both_ways;
mod cancel;
mod cancel_effects;
mod cancel_storms;
mod check;
mod claims;
mod clients;
mod closed;
mod console;
mod console_inventory;
mod console_pipelining;
mod console_rights;
mod dead_peers;
mod demo;
mod descriptors;
mod differential;
mod disconnects;
mod disk_full;
mod drivers;
mod encodings;
mod endings;
mod fairness;
mod flat;
mod init;
mod large_messages;
mod limits;
mod listen;
mod log;
mod loud;
mod mixing;
mod model;
mod notify;
mod parameters;
mod pins;
mod pipelining;
mod pipelining_choice;
mod pool;
mod pool_modes;
mod prepared_memory;
mod program;
mod refused_settings;
mod regress;
mod reload;
mod replication;
mod scripts;
mod sequences;
mod server_loss;
mod sessions;
mod settings;
mod several_pools;
mod shutdown;
mod slow_readers;
mod stage;
mod stand_in;
mod stopped;
mod timeouts;
mod unix_sockets;
mod url;
mod usage;
mod workers;

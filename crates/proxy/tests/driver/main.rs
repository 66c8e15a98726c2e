//! The driver and the engine in it, between clients and servers that the test plays.
//!
//! No socket, no clock: every test names a rule, brings about the situation that it is for, and
//! says byte for byte or message by message what must come of it. The doc line of a test says what
//! went wrong, or would go wrong, without the rule.

mod line;
mod messages;
mod peer;
mod stage;
mod world;

mod again;
mod application_name;
mod birth;
mod both_ways;
mod buffers;
mod burst;
mod cancel;
mod cancel_held;
mod cancel_many;
mod client_gone;
mod commits;
mod console;
mod copy;
mod counts;
mod drain;
mod errors;
mod fairness;
mod joined;
mod kept_plans;
mod lease;
mod limits;
mod listen;
mod login;
mod loud;
mod named;
mod names_bound;
mod news;
mod parameters;
mod pieces;
mod pins;
mod pipelining;
mod pipelining_cut;
mod pipelining_seen;
mod queue;
mod relay;
mod reload;
mod replication;
mod reserved;
mod sequences;
mod server_gone;
mod server_login;
mod set_anew;
mod settings;
mod sharing;
mod silence;
mod state;
mod statement;
mod timeouts;
mod tracked;
mod turns;
mod units;
mod unnamed;
mod waits_to_share;
mod wild;
mod workers;

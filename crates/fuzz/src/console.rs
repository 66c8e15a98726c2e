//! Commands of the console: text of a user who has proved who it is, but need not mean well.

use std::time::SystemTime;

use pgweir_config::{Changes, Explained};
use pgweir_control::{Rates, State, answer};
use pgweir_engine::{Memory, Snapshot, Time};
use pgweir_wire::backend::Tag;

use crate::transcript::messages;

/// Any text of a simple query.
pub(crate) fn run(request: &[u8]) {
    let snapshot = Snapshot {
        now: Time(1_000_000),
        pools: Vec::new(),
        limits: Vec::new(),
        max_user_connections: None,
        max_user_client_connections: None,
        clients: Vec::new(),
        servers: Vec::new(),
        cancels: Vec::new(),
        louds: Vec::new(),
        logins: 0,
        memory: Memory::default(),
    };
    let mut reply = Vec::new();
    let config = settings();
    let order = pgweir_control::order(request, &config);
    let rates = Rates::new();
    let state = State { config: &config, ..state(&snapshot, &rates) };
    answer(request, &state, Ok(()), &mut reply);
    let (tags, rest) = messages(&reply);
    assert!(rest.is_empty(), "the reply ends inside a message");
    let count = |tag| tags.iter().filter(|(found, _)| *found == tag).count();
    assert_eq!(count(Tag::ReadyForQuery), 1);
    assert_eq!(tags.last().map(|(tag, _)| *tag), Some(Tag::ReadyForQuery));
    let ends = [Tag::CommandComplete, Tag::EmptyQueryResponse, Tag::ErrorResponse];
    assert_eq!(ends.map(count).iter().sum::<usize>(), 1, "one command, one end");
    assert!(order.is_none() || count(Tag::CommandComplete) == 1, "an order that is also refused");
}

/// One that SET changes, and one that it does not.
fn settings() -> [Explained; 2] {
    let one = |key: &str, changes| {
        let key = key.to_owned();
        Explained { key, value: None, line: None, default: None, changes }
    };
    [
        one("pools.\"a.b\".pipelining", Changes::Live),
        one("pools.\"a.b\".pool_size", Changes::AtReload),
    ]
}

/// All that can be told of an engine in a process that tells nothing of itself.
pub(crate) fn state<'a>(snapshot: &'a Snapshot, rates: &'a Rates) -> State<'a> {
    let taken = SystemTime::UNIX_EPOCH;
    State { snapshot, taken, rates, config: &[], demands: &[], resident_bytes: None }
}

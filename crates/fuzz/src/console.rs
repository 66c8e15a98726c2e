//! Commands of the console: text of a user who has proved who it is, but need not mean well.

use std::time::SystemTime;

use pgweir_control::{Rates, answer};
use pgweir_engine::{Snapshot, Time};
use pgweir_wire::backend::Tag;

use crate::transcript::messages;

/// Any text of a simple query.
pub(crate) fn run(request: &[u8]) {
    let snapshot = Snapshot {
        now: Time(1_000_000),
        pools: Vec::new(),
        clients: Vec::new(),
        servers: Vec::new(),
    };
    let mut reply = Vec::new();
    answer(request, &snapshot, SystemTime::UNIX_EPOCH, &Rates::new(), &mut reply);
    let (tags, rest) = messages(&reply);
    assert!(rest.is_empty(), "the reply ends inside a message");
    let count = |tag| tags.iter().filter(|(found, _)| *found == tag).count();
    assert_eq!(count(Tag::ReadyForQuery), 1);
    assert_eq!(tags.last().map(|(tag, _)| *tag), Some(Tag::ReadyForQuery));
    let ends = [Tag::CommandComplete, Tag::EmptyQueryResponse, Tag::ErrorResponse];
    assert_eq!(ends.map(count).iter().sum::<usize>(), 1, "one command, one end");
}

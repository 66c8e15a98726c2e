//! What a client sends behind its login: how its messages are told from each other, its texts are
//! read and its names given while they come. The server says nothing, so that all of it stands in
//! one pipeline.
//!
//! What holds: it comes to the same however the bytes arrive, but for a client that hurried on
//! behind what was refused; and whatever is passed on as it is was sent, and in that order.

use pgweir_wire::Header;
use pgweir_wire::frontend::Tag;

use crate::cut::Cut;
use crate::engine_client::startup;
use crate::postgres::Manners;
use crate::world::{Outcome, Setting, World};

/// Messages of a client, one behind the other.
pub(crate) fn run(data: &[u8]) {
    let (whole, written) = play(data, Cut::Whole);
    passed_on(data, &written);
    let (pieces, _) = play(data, Cut::mostly_once(data));
    if whole.is_comparable(&pieces) {
        assert_eq!(pieces, whole, "cutting the stream makes a difference");
    }
}

/// What everybody is told, and what the server is sent.
fn play(data: &[u8], cut: Cut) -> (Outcome, Vec<u8>) {
    let mut world = World::new(Setting::plain(Manners::Good, cut));
    let client = world.connect();
    world.send(client, &startup());
    world.settle();
    world.hush();
    world.begin();
    let before = world.first_written().len();
    world.send(client, data);
    world.settle();
    (world.outcome(), world.first_written()[before..].to_vec())
}

/// Of that in which nothing is changed the server is sent what was sent, in its order, and perhaps
/// not all.
fn passed_on(sent: &[u8], written: &[u8]) {
    let mut own = as_they_are(sent);
    for message in as_they_are(written) {
        let is_its_own = own.any(|own| own.starts_with(message));
        assert!(is_its_own, "nobody has sent {}", message.escape_ascii());
    }
}

/// The messages in which there is no name, the last one perhaps in part.
fn as_they_are(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let header = Header::parse(rest).ok()??;
            let message = rest.split_off(..header.message_len().min(rest.len()))?;
            match Tag::of(header).ok()? {
                Tag::Query | Tag::FunctionCall | Tag::CopyData | Tag::CopyFail => {
                    return Some(message);
                }
                _ => {}
            }
        }
    })
}

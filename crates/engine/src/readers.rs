//! Readers of what others send, each by itself, for whoever wants to know what they do with any
//! bytes. The engine calls what they call; messages are read by `pgweir-wire`, statements by
//! `pgweir-sql`.

use crate::{ask, listen, room, settings, track, unfinished, units};

/// A name and a value.
pub type Assignment = (Box<[u8]>, Box<[u8]>);

/// What is told from the message at the front of what a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    /// Something may rest on it.
    pub bears: bool,
    /// It may ask for another transaction like one that was lost.
    pub chains: bool,
    /// It gives that up.
    pub gives_up: bool,
}

/// What the `options` of a startup packet set, in order. `None`: a login with them is refused.
pub fn startup_options(options: &[u8]) -> Option<Vec<Assignment>> {
    settings::switches(options).ok()
}

/// How many connections a server has, and how many of them it keeps for some, as the body of a
/// DataRow says.
pub fn room(row: &[u8]) -> Option<(u32, u32)> {
    room::read(row).map(|room| (room.connections_max, room.reserved))
}

/// A setting and its value, as the body of a DataRow says.
pub fn setting(row: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    track::read(row)
}

/// What the body of a DataRow says beside what kind of state there is in a session.
pub fn state(row: &[u8]) -> Option<&[u8]> {
    ask::read(row).map(|(_, behind)| behind)
}

/// Whether the unit at the front of what a client has sent has come up to its end. `scanned` bytes
/// of it are known not to end it.
pub fn unit_is_whole(bytes: &[u8], scanned: &mut usize) -> bool {
    unfinished::unit_is_whole(bytes, scanned)
}

/// Whether behind a unit a client has sent anything more than that it leaves.
pub fn more_follows(bytes: &[u8]) -> bool {
    units::more_follows(bytes)
}

/// Whether something stands there that asks for an answer.
pub fn asks_for_more(bytes: &[u8]) -> bool {
    units::asks_for_more(bytes)
}

/// What is told from the message at the front, or from what has come of it. `None`: it is none.
pub fn front(bytes: &[u8]) -> Option<Front> {
    units::front(bytes)
}

/// A text in SQL of ours.
pub fn literal(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    settings::put_text(&mut out, text);
    out
}

/// A name in SQL of ours.
pub fn name(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    listen::put_name(&mut out, name);
    out
}

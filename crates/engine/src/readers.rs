//! Readers of what others send, each by itself, for whoever wants to know what they do with any
//! bytes. The engine calls what they call; messages are read by `pgweir-wire`, statements by
//! `pgweir-sql`.

use crate::{ask, room, settings, track};

/// A name and a value.
pub type Assignment = (Box<[u8]>, Box<[u8]>);

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

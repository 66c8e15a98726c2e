//! Statements that clients prepare under names, and servers that have them.
//!
//! A client's name means something on the connection that made it, and a pooled client has no
//! connection of its own. So what it prepares is known by what it *is*: its text, the types of its
//! parameters, and the settings under which it was read, each in full. Equal ones are one
//! [`Statement`], which has a name of ours and is made, under that name, on each server that is to
//! run it. What a client calls it is looked up in [`Names`] when the client uses the name.
//!
//! What a message does to either table is noted when the message is sent, since what is sent behind
//! it rests on that, and taken back if the server says that it was not done: the kinds of messages
//! in the queue of replies (`reply/kind.rs`) carry what that takes.

mod names;
mod registry;
mod shape;
mod shelf;

pub(crate) use names::{Asked, Meaning, Names, Own, Shown, Told};
pub(crate) use registry::{Registry, Statement};
pub(crate) use shape::{Shape, with_parameters};
pub(crate) use shelf::{Rows, Shelf, Under};

/// With this begins each name of ours, and none reaches a server that a client's message gives to a
/// statement.
const PREFIX: &[u8] = b"pgweir_";

/// Behind the prefix of a client's own name: none of ours goes on with it.
const ESCAPE: u8 = b'_';

/// A client's own name as a server is told it. What begins like one of ours must not become one.
pub(crate) fn escaped(name: &[u8]) -> Option<Vec<u8>> {
    let rest = name.strip_prefix(PREFIX)?;
    Some([PREFIX, &[ESCAPE], rest].concat())
}

/// Whether a text may name a statement of ours.
pub(crate) fn may_name_ours(text: &[u8]) -> bool {
    text.windows(PREFIX.len()).any(|part| part.eq_ignore_ascii_case(PREFIX))
}

#[cfg(test)]
mod tests;

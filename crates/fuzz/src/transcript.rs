//! What a client was sent, read by eyes other than those that wrote it.

use pgweir_wire::backend::Tag;
use pgweir_wire::{HEADER_LEN, Header};

/// The messages at the front of `bytes`, and what is behind the last whole one.
pub(crate) fn messages(bytes: &[u8]) -> (Vec<(Tag, &[u8])>, &[u8]) {
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Some(header) = Header::parse(rest).expect("a client is sent lengths that are legal") {
        let tag = Tag::of(header).expect("a client is sent tags that exist");
        let Some(body) = rest.get(HEADER_LEN..header.message_len()) else { break };
        found.push((tag, body));
        rest = &rest[header.message_len()..];
    }
    (found, rest)
}

/// What a client has been sent, in the parts of a connection's life.
#[derive(Debug)]
pub(crate) struct Transcript<'a> {
    /// Up to its first ReadyForQuery.
    pub(crate) login: Vec<(Tag, &'a [u8])>,
    /// From there on.
    pub(crate) session: Vec<(Tag, &'a [u8])>,
    /// A part of a message.
    pub(crate) rest: &'a [u8],
}

impl<'a> Transcript<'a> {
    /// Panics if these are not the bytes of a server of PostgreSQL: a byte for each request for
    /// encryption, a login, then replies.
    pub(crate) fn read(bytes: &'a [u8]) -> Self {
        let refusals = bytes.iter().take_while(|byte| **byte == b'N').count();
        // A notice begins with the same letter, but with a length behind it; and none comes first.
        let (mut login, rest) = messages(&bytes[refusals..]);
        let ready = login.iter().position(|(tag, _)| *tag == Tag::ReadyForQuery);
        let session = login.split_off(ready.map_or(login.len(), |ready| ready + 1));
        for (tag, _) in &session {
            let of_login = matches!(
                tag,
                Tag::Authentication | Tag::BackendKeyData | Tag::NegotiateProtocolVersion
            );
            assert!(!of_login, "{tag:?} after the login");
        }
        Self { login, session, rest }
    }

    /// Whether the client was let in.
    pub(crate) fn is_logged_in(&self) -> bool {
        self.login.last().is_some_and(|(tag, _)| *tag == Tag::ReadyForQuery)
    }
}

//! What a script may do with a server, real or fake, and what it sees of it.

use pgweir_wire::frontend;

use crate::language::Tag;
use crate::language::sql::in_short;

/// One of a script's connections, in the order in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer(pub(super) usize);

/// What a server process is doing, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It has read all that it was sent, up to the statement with this tag, and waits for more.
    Reading(Tag),
    /// It waits for a lock, in the statement with this tag.
    Locked(Tag),
    /// It is blocked in writing.
    Writing,
    /// It has ended.
    Gone,
}

/// The next thing that a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Message(u8, Vec<u8>),
    /// The stream has ended, between two messages or in the middle of one.
    End {
        cut: bool,
    },
    Reset,
}

/// A server, real or fake, and its clients.
pub(super) trait Stage {
    /// A client logs in, with these settings.
    fn login(&mut self, settings: &[(&str, &str)]) -> Peer;

    /// It sends messages: statements are in the made-up language.
    fn send(&mut self, peer: Peer, messages: &[u8]);

    /// It says that it sends no more.
    fn half_close(&mut self, peer: Peer);

    /// It closes its connection, having read all that came.
    fn close(&mut self, peer: Peer);

    /// It breaks its connection off.
    fn reset(&mut self, peer: Peer);

    /// It asks for a cancel on a connection of its own, and waits until the server has acted on it.
    fn cancel(&mut self, peer: Peer);

    /// Its process is told to end.
    fn terminate(&mut self, peer: Peer);

    /// Its process is gone all at once, which the server takes for a crash.
    fn kill(&mut self, peer: Peer);

    /// The server's configuration has changed, as far as clients are told of it.
    fn reload(&mut self);

    /// Waits until a client's process does this.
    fn until(&mut self, peer: Peer, doing: Doing);

    /// Waits for the next thing that a client hears.
    fn next(&mut self, peer: Peer) -> Heard;

    /// Whether something has come that it has not read.
    fn has_more(&mut self, peer: Peer) -> bool;

    /// The writes of a script's client that are committed, by the numbers of their statements.
    fn written(&mut self, client: u32) -> Vec<u32>;
}

/// What a client hears up to ReadyForQuery, or to the end.
pub(super) fn reply(stage: &mut dyn Stage, peer: Peer) -> String {
    let mut said = String::new();
    while !hear(stage, peer, &mut said) {}
    said
}

/// What a client hears up to the end.
pub(super) fn rest(stage: &mut dyn Stage, peer: Peer) -> String {
    let mut said = String::new();
    loop {
        hear(stage, peer, &mut said);
        if ["FIN", "RST"].iter().any(|end| said.ends_with(end)) {
            return said;
        }
    }
}

/// What has come by now.
pub(super) fn so_far(stage: &mut dyn Stage, peer: Peer) -> String {
    let mut said = String::new();
    while stage.has_more(peer) {
        hear(stage, peer, &mut said);
    }
    said
}

/// The next thing that a client hears.
pub(super) fn one(stage: &mut dyn Stage, peer: Peer) -> String {
    let mut said = String::new();
    hear(stage, peer, &mut said);
    said
}

/// A query, and what comes back.
pub(super) fn ask(stage: &mut dyn Stage, peer: Peer, text: &str) -> String {
    stage.send(peer, &query(text));
    reply(stage, peer)
}

pub(super) fn query(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_query(&mut out, text.as_bytes());
    out
}

/// Parse, Bind and Execute of a statement.
pub(super) fn batch(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_parse(&mut out, b"", text.as_bytes(), &[]);
    frontend::write_bind(&mut out, b"", b"", &[]);
    frontend::write_execute(&mut out, b"", 0);
    out
}

/// Takes the next thing. Says whether it ends a reply.
fn hear(stage: &mut dyn Stage, peer: Peer, said: &mut String) -> bool {
    match stage.next(peer) {
        Heard::Message(tag, body) => {
            in_short(said, tag, &body);
            tag == b'Z'
        }
        Heard::End { cut } => {
            said.push_str(if cut { "~FIN" } else { " FIN" });
            true
        }
        Heard::Reset => {
            said.push_str(" RST");
            true
        }
    }
}

//! What a run came to.

use std::fmt;

use pgweir_engine::{Endpoint, Event, Mark, Marks};

use super::link::{Fate, Link};

/// What has been written to every connection, and what became of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    connections: Vec<(Endpoint, Written, Fate)>,
    events: Vec<String>,
    /// A statement was refused for what it would leave.
    refuses_pins: bool,
    /// A text was longer than what is held back of it.
    lets_through: bool,
}

impl PartialEq for Outcome {
    fn eq(&self, other: &Self) -> bool {
        (&self.connections, &self.events) == (&other.connections, &other.events)
    }
}

impl Outcome {
    pub(super) fn of(links: &[Link], events: &[Event], marks: &Marks) -> Self {
        let connections = links
            .iter()
            .map(|link| (link.endpoint, Written(without_own(&link.written)), link.fate));
        let events = events.iter().map(|event| match event {
            // What is nobody's may come before the server is lent, or behind that.
            Event::Contained { server, pool, cause, client: _ } => {
                format!("Contained {server} of {pool}: {cause}")
            }
            event => format!("{event:?}"),
        });
        let refused = [Mark::PinRefused, Mark::PinKindRefused];
        Self {
            connections: connections.collect(),
            events: events.collect(),
            refuses_pins: refused.iter().any(|mark| marks.times(*mark) > 0),
            lets_through: marks.times(Mark::TextInPieces) > 0,
        }
    }

    /// Whether this comes to the same as a run in which bytes arrive otherwise. What a long text
    /// leaves shows too late to refuse it, where it does not come whole.
    pub(crate) fn is_comparable(&self, other: &Self) -> bool {
        let limits = |one: &Self, other: &Self| one.refuses_pins && other.lets_through;
        let hurried = self.is_hurried() || other.is_hurried();
        !hurried && !limits(self, other) && !limits(other, self)
    }

    /// Whether a client was told that it has sent more behind a unit that was lost half sent, or
    /// refused: of what comes later nobody knows that it is not the answer to that.
    fn is_hurried(&self) -> bool {
        let is_told = |to: &Endpoint| matches!(to, Endpoint::Client(_));
        let mut told = self.connections.iter().filter(|(to, ..)| is_told(to));
        told.any(|(_, written, _)| written.counts("may rest on it") > 0)
    }

    /// How many times this was written, to whomever.
    #[cfg(test)]
    pub(crate) fn counts(&self, text: &str) -> usize {
        self.connections.iter().map(|(_, written, _)| written.counts(text)).sum()
    }
}

/// Bytes, readable where they are shown.
#[derive(PartialEq, Eq)]
struct Written(Vec<u8>);

impl Written {
    fn counts(&self, text: &str) -> usize {
        self.0.windows(text.len()).filter(|bytes| *bytes == text.as_bytes()).count()
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// What was written to a server, but for what depends on how much of a client's bytes had come: the
/// questions what it has left, of which none is asked behind one that was seen to leave before the
/// reply came; what makes a server forget sequences, in front of a long text of which too little
/// has come to tell; and each Flush, for who waits for that asks for it as often as more comes.
fn without_own(mut written: &[u8]) -> Vec<u8> {
    const QUESTIONS: [&[u8]; 2] = [b"SELECT s.k FROM (", b"SELECT pg_catalog.encode(pg_catalog.c"];
    const SEQUENCES: &[u8] = b"pgweir_sequences\0";
    let mut others = Vec::new();
    let mut forgets = false;
    while let Some((tag, rest)) = written.split_first() {
        // A startup packet has no type.
        let (bytes, tag_len) = if *tag == 0 { (written, 0) } else { (rest, 1) };
        let length = bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes) as usize + tag_len);
        let Some((message, behind)) = length.and_then(|length| written.split_at_checked(length))
        else {
            break;
        };
        let text = message.get(5..).unwrap_or_default();
        let asks = *tag == b'Q' && QUESTIONS.iter().any(|question| text.starts_with(question));
        // The name of a Close stands behind its kind.
        forgets = text.starts_with(SEQUENCES)
            || text.get(1..).is_some_and(|text| text.starts_with(SEQUENCES))
            || forgets && *tag == b'S';
        if !asks && !forgets && *tag != b'H' {
            others.extend_from_slice(message);
        }
        written = behind;
    }
    others.extend_from_slice(written);
    others
}

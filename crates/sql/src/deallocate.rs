//! Which prepared statements a text removes, if it has one statement that does.

use crate::encoding::Encoding;
use crate::lexer::{Lexer, Progress, Sink, Token};

#[cfg(test)]
mod tests;

/// PostgreSQL's names have so many bytes at most (`NAMEDATALEN` - 1).
pub const NAME_BYTES: usize = 63;

/// A name as PostgreSQL reads it in SQL: in small letters, unless it was quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; NAME_BYTES],
    length: usize,
}

impl Name {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn of(bytes: &[u8]) -> Self {
        let length = bytes.len().min(NAME_BYTES);
        let mut name = Self { bytes: [0; NAME_BYTES], length };
        name.bytes[..length].copy_from_slice(&bytes[..length]);
        name
    }
}

/// What a DEALLOCATE or DISCARD ALL removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deallocated {
    /// Every statement.
    All,
    /// This one.
    One(Name),
}

/// What a whole text removes, if it is one DEALLOCATE or DISCARD ALL and nothing else. A name of
/// which the letters are not certain is none.
pub fn deallocated(text: &[u8]) -> Option<Deallocated> {
    let mut lexer = Lexer::new(Encoding::Superset);
    let mut step = Step::Start;
    match lexer.feed(text, &mut step) {
        Progress::All => lexer.finish(&mut step),
        Progress::Ambiguous(_) => return None,
    }
    match step {
        Step::Named(what) | Step::Over(what) => Some(what),
        Step::Start | Step::Deallocate | Step::Discard | Step::Prepare | Step::Other => None,
    }
}

/// How much of it has been read.
#[derive(Clone, Copy)]
enum Step {
    /// Nothing but empty statements.
    Start,
    /// `DEALLOCATE`
    Deallocate,
    /// `DISCARD`
    Discard,
    /// The same and `PREPARE`.
    Prepare,
    /// All of it.
    Named(Deallocated),
    /// All of it, and a semicolon.
    Over(Deallocated),
    /// Something else.
    Other,
}

impl Sink for Step {
    fn token(&mut self, token: Token<'_>) {
        *self = match (*self, token) {
            (Self::Start, Token::Semicolon) => Self::Start,
            (Self::Start, Token::Word(word)) if word.eq_ignore_ascii_case(b"deallocate") => {
                Self::Deallocate
            }
            (Self::Start, Token::Word(word)) if word.eq_ignore_ascii_case(b"discard") => {
                Self::Discard
            }
            (Self::Discard, Token::Word(word)) if word.eq_ignore_ascii_case(b"all") => {
                Self::Named(Deallocated::All)
            }
            (Self::Deallocate, Token::Word(word)) if word.eq_ignore_ascii_case(b"prepare") => {
                Self::Prepare
            }
            (Self::Deallocate | Self::Prepare, token) => named(token),
            (Self::Named(what) | Self::Over(what), Token::Semicolon) => Self::Over(what),
            (Self::Start | Self::Discard | Self::Named(_) | Self::Over(_) | Self::Other, _) => {
                Self::Other
            }
        };
    }
}

fn named(token: Token<'_>) -> Step {
    match token {
        // Of a longer one it is not certain where it is cut off.
        Token::Quoted(name) if name.is_ascii() || name.len() < NAME_BYTES => {
            Step::Named(Deallocated::One(Name::of(name)))
        }
        Token::Word(word) if word.eq_ignore_ascii_case(b"all") => Step::Named(Deallocated::All),
        Token::Word(word) if word.is_ascii() => {
            let mut name = Name::of(word);
            name.bytes.make_ascii_lowercase();
            Step::Named(Deallocated::One(name))
        }
        Token::Comma
        | Token::Dot
        | Token::Literal(_)
        | Token::Open
        | Token::Quoted(_)
        | Token::Semicolon
        | Token::Close
        | Token::Sign
        | Token::Unclear
        | Token::Unicode
        | Token::Word(_) => Step::Other,
    }
}

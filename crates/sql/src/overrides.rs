//! Which setting a text puts another value in the place of, whatever it was.

use crate::encoding::Encoding;
use crate::lexer::{Lexer, Progress, Sink, Token};

#[cfg(test)]
mod tests;

/// What a SET, RESET or DISCARD ALL does not ask the old value of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overrides {
    /// DISCARD ALL: every setting, and the role too.
    All,
    /// RESET ALL: every setting but the role and the session's user.
    AllButRights,
    /// This one, by its name in lower case.
    One(Vec<u8>),
}

/// What a whole text overrides, if it is one such statement and nothing else.
pub fn overrides(text: &[u8]) -> Option<Overrides> {
    let mut reading = Reading { step: Step::Start, name: Vec::new() };
    let mut lexer = Lexer::new(Encoding::Superset);
    match lexer.feed(text, &mut reading) {
        Progress::All => lexer.finish(&mut reading),
        Progress::Ambiguous(_) => return None,
    }
    match reading.step {
        Step::Name | Step::Value | Step::Over => {}
        Step::Start | Step::Sets { .. } | Step::Discards | Step::Two(_) | Step::Other => {
            return None;
        }
    }
    let what = match reading.name.as_slice() {
        b"discard all" => Overrides::All,
        b"all" => Overrides::AllButRights,
        _ => Overrides::One(reading.name),
    };
    Some(what)
}

struct Reading {
    step: Step,
    name: Vec<u8>,
}

/// How much of it has been read.
#[derive(Clone, Copy)]
enum Step {
    /// Nothing.
    Start,
    /// SET or RESET; `session`: and SESSION.
    Sets { session: bool },
    /// DISCARD
    Discards,
    /// The first of two words that name a setting together.
    Two(&'static [u8]),
    /// The name, perhaps not all of it.
    Name,
    /// What it is set to.
    Value,
    /// A `;` behind it.
    Over,
    /// Something else.
    Other,
}

impl Sink for Reading {
    fn token(&mut self, token: Token<'_>) {
        let word = match token {
            Token::Word(word) | Token::Quoted(word) => word.to_ascii_lowercase(),
            _ => Vec::new(),
        };
        self.step = match (self.step, token) {
            (Step::Start, Token::Semicolon) => Step::Start,
            (Step::Start, _) => match word.as_slice() {
                b"set" | b"reset" => Step::Sets { session: false },
                b"discard" => Step::Discards,
                _ => Step::Other,
            },
            (Step::Discards, _) if word == b"all" => self.named(b"discard all"),
            (Step::Sets { session }, Token::Word(_)) => self.setting(session, &word),
            (Step::Sets { .. }, Token::Quoted(_)) => self.named(&word),
            (Step::Two(name), Token::Word(_)) => self.named(name),
            (Step::Name, Token::Dot) => {
                self.name.push(b'.');
                Step::Name
            }
            (Step::Name, Token::Word(_) | Token::Quoted(_)) if self.name.ends_with(b".") => {
                self.name.extend_from_slice(&word);
                Step::Name
            }
            (Step::Name | Step::Value | Step::Over, Token::Semicolon) => Step::Over,
            (Step::Name | Step::Value, _) => Step::Value,
            (Step::Discards | Step::Sets { .. } | Step::Two(_) | Step::Over | Step::Other, _) => {
                Step::Other
            }
        };
    }
}

impl Reading {
    fn named(&mut self, name: &[u8]) -> Step {
        self.name = name.to_vec();
        Step::Name
    }

    /// The word behind SET or RESET, and behind SESSION.
    fn setting(&mut self, session: bool, word: &[u8]) -> Step {
        match word {
            b"session" if !session => Step::Sets { session: true },
            b"authorization" if session => self.named(b"session_authorization"),
            b"characteristics" | b"constraints" | b"local" | b"transaction" => Step::Other,
            b"names" => self.named(b"client_encoding"),
            b"schema" => self.named(b"search_path"),
            b"time" => Step::Two(b"timezone"),
            b"xml" => Step::Two(b"xmloption"),
            _ => self.named(word),
        }
    }
}

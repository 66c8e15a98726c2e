//! Settings that no list of PostgreSQL's shows: those with a dot in their name.

use crate::encoding::Encoding;
use crate::lexer::{Lexer, Progress, Sink, Token};

#[cfg(test)]
mod tests;

/// Three names of 63 bytes, and what joins them.
const NAME_BYTES: usize = 3 * 63 + 2;

/// Gives each name with a dot that a whole text may set, reset or give to `set_config`, as it is
/// written. There may be others among them: every literal that looks like such a name is one.
/// `false`: the text cannot be read with certainty, or a name is too long.
pub fn custom_settings(text: &[u8], encoding: Encoding, each: &mut dyn FnMut(&[u8])) -> bool {
    let mut search = Search::new(each);
    let mut lexer = Lexer::new(encoding);
    match lexer.feed(text, &mut search) {
        Progress::All => lexer.finish(&mut search),
        Progress::Ambiguous(_) => search.unclear = true,
    }
    search.finish()
}

/// Looks for such names in the tokens of a text.
pub(crate) struct Search<'a> {
    each: &'a mut dyn FnMut(&[u8]),
    step: Step,
    /// The names and dots read last, of a statement that sets something.
    name: [u8; NAME_BYTES],
    length: usize,
    /// There is a dot among them.
    dotted: bool,
    unclear: bool,
}

/// Where in its statement a token stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Start,
    /// Behind SET or RESET, where the setting's name comes, and what says for how long.
    Sets,
    /// A dot has been read there: another name follows.
    Dot,
    /// Nowhere where a name would be a setting's.
    Body,
}

impl Sink for Search<'_> {
    fn token(&mut self, token: Token<'_>) {
        let step = self.step;
        self.step = match (step, token) {
            (_, Token::Unclear | Token::Unicode) => {
                self.unclear = true;
                Step::Body
            }
            (_, Token::Semicolon) => {
                self.end_name();
                Step::Start
            }
            (_, Token::Literal(content)) => {
                self.end_name();
                if let Some(content) = content.filter(|content| is_custom(content)) {
                    (self.each)(content);
                }
                Step::Body
            }
            (Step::Start, Token::Word(word))
                if word.eq_ignore_ascii_case(b"set") || word.eq_ignore_ascii_case(b"reset") =>
            {
                Step::Sets
            }
            (Step::Sets, Token::Word(word) | Token::Quoted(word)) => {
                self.end_name();
                self.put(word);
                Step::Sets
            }
            (Step::Dot, Token::Word(word) | Token::Quoted(word)) => {
                self.put(word);
                Step::Sets
            }
            (Step::Sets, Token::Dot) => {
                self.put(b".");
                self.dotted = true;
                Step::Dot
            }
            (
                Step::Sets | Step::Dot,
                Token::Close | Token::Comma | Token::Dot | Token::Open | Token::Sign,
            ) => {
                self.end_name();
                Step::Body
            }
            (Step::Start | Step::Body, _) => Step::Body,
        };
    }
}

impl<'a> Search<'a> {
    pub(crate) fn new(each: &'a mut dyn FnMut(&[u8])) -> Self {
        Self {
            each,
            step: Step::Start,
            name: [0; NAME_BYTES],
            length: 0,
            dotted: false,
            unclear: false,
        }
    }

    /// The text ends here; `false`: it could not be read with certainty.
    pub(crate) fn finish(mut self) -> bool {
        self.end_name();
        !self.unclear
    }

    fn put(&mut self, part: &[u8]) {
        match self.name.get_mut(self.length..self.length + part.len()) {
            Some(place) => {
                place.copy_from_slice(part);
                self.length += part.len();
            }
            None => self.unclear = true,
        }
    }

    fn end_name(&mut self) {
        if self.dotted {
            (self.each)(&self.name[..self.length]);
        }
        self.length = 0;
        self.dotted = false;
    }
}

/// Whether PostgreSQL would take this for the name of a setting of nobody's
/// (`valid_custom_variable_name`, guc.c).
fn is_custom(name: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
        let goes_on = |byte: u8| begins(byte) || byte.is_ascii_digit() || byte == b'$';
        part.first().is_some_and(|&byte| begins(byte)) && part.iter().all(|&byte| goes_on(byte))
    };
    name.contains(&b'.') && name.split(|&byte| byte == b'.').all(is_part)
}

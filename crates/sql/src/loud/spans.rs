//! Tokens with what stands in their quotes, for text that is read once and off the way of queries.

use crate::encoding::Encoding;
use crate::lexer::{Backslash, Lexer, Progress, Sink, Token};

/// The ways in which a text may be read: two, if the same bytes end a literal in one of them only.
pub(super) fn readings(text: &[u8], encoding: Encoding) -> &'static [Backslash] {
    match Lexer::new(encoding).feed(text, &mut Nobody) {
        Progress::All => &[Backslash::Ordinary],
        Progress::Ambiguous(_) => &[Backslash::Ordinary, Backslash::Escapes],
    }
}

/// Hands out each token of a whole text, and of each literal what it says, if that can be told.
///
/// The lexer reads a byte at a time, so that it is known where each token ends.
pub(super) fn each_token(
    text: &[u8],
    encoding: Encoding,
    backslash: Backslash,
    each: &mut dyn FnMut(Token<'_>, Option<Vec<u8>>),
) {
    let mut lexer = Lexer::reading(encoding, backslash);
    let mut spans = Spans { text, literal_at: None, end: 0, each };
    for at in 0..text.len() {
        spans.end = at;
        // Nothing is ambiguous, for that is decided.
        let Progress::All = lexer.feed(&text[at..=at], &mut spans) else { return };
        if !lexer.is_in_literal() {
            spans.literal_at = None;
        } else if spans.literal_at.is_none() {
            spans.literal_at = Some(at);
        }
    }
    spans.end = text.len();
    lexer.finish(&mut spans);
}

/// Hears nothing.
struct Nobody;

impl Sink for Nobody {
    fn token(&mut self, _: Token<'_>) {}
}

struct Spans<'a> {
    text: &'a [u8],
    /// Where the literal begins that is being read.
    literal_at: Option<usize>,
    /// The byte that is read now.
    end: usize,
    each: &'a mut dyn FnMut(Token<'_>, Option<Vec<u8>>),
}

impl Sink for Spans<'_> {
    fn token(&mut self, token: Token<'_>) {
        let is_literal = matches!(token, Token::Literal(_));
        let content = self.literal_at.filter(|_| is_literal).and_then(|at| self.content(at));
        self.literal_at = None;
        (self.each)(token, content);
    }
}

impl Spans<'_> {
    /// What the literal says that begins there, and ends at the byte that is read now or before it.
    fn content(&self, at: usize) -> Option<Vec<u8>> {
        let prefix = at.checked_sub(1).and_then(|before| self.text.get(before));
        let escapes = prefix.is_some_and(|byte| matches!(byte, b'e' | b'E' | b'&'));
        let rest = &self.text[at..];
        if let Some(quoted) = rest.strip_prefix(b"'") {
            let quoted = &quoted[..quoted.len().min(self.end - at - 1)];
            let content = quoted.strip_suffix(b"'")?;
            let is_plain = !escapes && !content.contains(&b'\\');
            return is_plain.then(|| undoubled(content));
        }
        let tag = rest.iter().skip(1).position(|byte| *byte == b'$')? + 2;
        let whole = rest.get(..=self.end - at)?;
        let content = whole.get(tag..whole.len().checked_sub(tag)?)?;
        Some(content.to_vec())
    }
}

/// `''` within quotes is one `'`.
fn undoubled(content: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(content.len());
    let mut bytes = content.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(byte);
        if byte == b'\'' {
            bytes.next();
        }
    }
    plain
}

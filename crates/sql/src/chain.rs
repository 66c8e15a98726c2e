//! Whether the end of a transaction is to be the beginning of another one like it.

use crate::encoding::Encoding;
use crate::lexer::{Lexer, Progress, Sink, Token};

#[cfg(test)]
mod tests;

/// Whether the first statement of a text is COMMIT or ROLLBACK, in any of their spellings, with AND
/// CHAIN. `ended`: the text is all there. `None`: what there is of it does not tell.
///
/// In a transaction that has failed the first statement is the one that matters: any other than
/// these keeps what stands behind it from running.
pub fn chains(text: &[u8], ended: bool) -> Option<bool> {
    // In every encoding of PostgreSQL comments and words of ASCII are what they look like.
    let mut lexer = Lexer::new(Encoding::Superset);
    let mut step = Step::Start;
    match lexer.feed(text, &mut step) {
        Progress::All if ended => lexer.finish(&mut step),
        Progress::All => {}
        Progress::Ambiguous(_) => step.token(Token::Literal(None)),
    }
    match step {
        Step::Chains => Some(true),
        Step::Other => Some(false),
        Step::Start | Step::Ends | Step::And => ended.then_some(false),
    }
}

/// How much of it has been read.
#[derive(Clone, Copy)]
enum Step {
    /// Nothing but empty statements.
    Start,
    /// `COMMIT`, `END`, `ROLLBACK` or `ABORT`, with or without `WORK` or `TRANSACTION`.
    Ends,
    /// The same and `AND`.
    And,
    /// All of it.
    Chains,
    /// Something else.
    Other,
}

impl Sink for Step {
    fn token(&mut self, token: Token<'_>) {
        let word = if let Token::Word(word) = token { word } else { b"" };
        let is = |words: &[&[u8]]| words.iter().any(|it| word.eq_ignore_ascii_case(it));
        *self = match self {
            Self::Start if matches!(token, Token::Semicolon) => Self::Start,
            Self::Start if is(&[b"commit", b"end", b"rollback", b"abort"]) => Self::Ends,
            Self::Ends if is(&[b"work", b"transaction"]) => Self::Ends,
            Self::Ends if is(&[b"and"]) => Self::And,
            Self::And if is(&[b"chain"]) => Self::Chains,
            Self::Start | Self::Ends | Self::And | Self::Other => Self::Other,
            Self::Chains => Self::Chains,
        };
    }
}

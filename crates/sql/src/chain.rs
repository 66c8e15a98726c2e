//! How the first statement of a text ends a transaction, if it does.
//!
//! In a transaction that has failed the first statement is the one that matters: any that does not
//! end it keeps what stands behind from running.

use crate::encoding::Encoding;
use crate::lexer::{Lexer, Progress, Sink, Token};

#[cfg(test)]
mod tests;

/// Whether the first statement of a text is COMMIT or ROLLBACK, in any of their spellings, with AND
/// CHAIN. `ended`: the text is all there. `None`: what there is of it does not tell.
pub fn chains(text: &[u8], ended: bool) -> Option<bool> {
    match read(text, ended) {
        Step::Chains => Some(true),
        Step::No(_) | Step::Plain(_) | Step::Over(_) | Step::Other => Some(false),
        Step::Start | Step::Ends(_) | Step::And(_) => ended.then_some(false),
    }
}

/// Whether the first statement of a whole text is ROLLBACK, in any of its spellings, of all of the
/// transaction and without AND CHAIN.
pub fn rolls_back(text: &[u8]) -> bool {
    match read(text, true) {
        Step::Ends(end) | Step::Plain(end) | Step::Over(end) => end == End::Rollback,
        Step::Start | Step::And(_) | Step::No(_) | Step::Chains | Step::Other => false,
    }
}

/// Whether a text, of which this is the beginning at least, has as its first statement one of those
/// that PostgreSQL takes in a transaction that has failed (`IsTransactionExitStmt`, postgres.c).
pub fn exits(text: &[u8]) -> bool {
    let mut first = First::None;
    let mut lexer = Lexer::new(Encoding::Superset);
    match lexer.feed(text, &mut first) {
        Progress::All => lexer.finish(&mut first),
        Progress::Ambiguous(_) => {}
    }
    first == First::Exits
}

/// The search for the first word of a text.
#[derive(PartialEq, Eq)]
enum First {
    None,
    Exits,
    Other,
}

impl Sink for First {
    fn token(&mut self, token: Token<'_>) {
        if *self != Self::None || matches!(token, Token::Semicolon) {
            return;
        }
        let word = if let Token::Word(word) = token { word } else { b"" };
        let exits: [&[u8]; 5] = [b"abort", b"commit", b"end", b"prepare", b"rollback"];
        let is_exit = exits.iter().any(|exit| word.eq_ignore_ascii_case(exit));
        *self = if is_exit { Self::Exits } else { Self::Other };
    }
}

/// Whether a statement of a whole text begins a transaction. A text that may be read in two ways
/// may have one that does.
pub fn begins(text: &[u8]) -> bool {
    let mut lexer = Lexer::new(Encoding::Superset);
    let mut search = Search { at_start: true, found: false };
    match lexer.feed(text, &mut search) {
        Progress::All => lexer.finish(&mut search),
        Progress::Ambiguous(_) => search.found = true,
    }
    search.found
}

/// The search for a statement that begins a transaction.
struct Search {
    /// No word of the statement has been read.
    at_start: bool,
    found: bool,
}

impl Sink for Search {
    fn token(&mut self, token: Token<'_>) {
        let word = if let Token::Word(word) = token { word } else { b"" };
        let begins = word.eq_ignore_ascii_case(b"begin") || word.eq_ignore_ascii_case(b"start");
        self.found |= self.at_start && begins;
        self.at_start = matches!(token, Token::Semicolon);
    }
}

fn read(text: &[u8], ended: bool) -> Step {
    // In every encoding of PostgreSQL comments and words of ASCII are what they look like.
    let mut lexer = Lexer::new(Encoding::Superset);
    let mut step = Step::Start;
    match lexer.feed(text, &mut step) {
        Progress::All if ended => lexer.finish(&mut step),
        Progress::All => {}
        Progress::Ambiguous(_) => step.token(Token::Literal(None)),
    }
    step
}

/// Which end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// `COMMIT` or `END`.
    Commit,
    /// `ROLLBACK` or `ABORT`.
    Rollback,
}

/// How much of it has been read.
#[derive(Clone, Copy)]
enum Step {
    /// Nothing but empty statements.
    Start,
    /// The first word, with or without `WORK` or `TRANSACTION`.
    Ends(End),
    /// The same and `AND`.
    And(End),
    /// The same and `AND NO`.
    No(End),
    /// The same and `AND NO CHAIN`.
    Plain(End),
    /// All of it, and a semicolon.
    Over(End),
    /// All of it, with `AND CHAIN`.
    Chains,
    /// Something else.
    Other,
}

impl Sink for Step {
    fn token(&mut self, token: Token<'_>) {
        let word = if let Token::Word(word) = token { word } else { b"" };
        let is = |words: &[&[u8]]| words.iter().any(|it| word.eq_ignore_ascii_case(it));
        let semicolon = matches!(token, Token::Semicolon);
        *self = match *self {
            Self::Start if semicolon => Self::Start,
            Self::Start if is(&[b"commit", b"end"]) => Self::Ends(End::Commit),
            Self::Start if is(&[b"rollback", b"abort"]) => Self::Ends(End::Rollback),
            Self::Ends(end) if is(&[b"work", b"transaction"]) => Self::Ends(end),
            Self::Ends(end) if is(&[b"and"]) => Self::And(end),
            Self::Ends(end) | Self::Plain(end) if semicolon => Self::Over(end),
            Self::And(_) if is(&[b"chain"]) => Self::Chains,
            Self::And(end) if is(&[b"no"]) => Self::No(end),
            Self::No(end) if is(&[b"chain"]) => Self::Plain(end),
            Self::Over(end) => Self::Over(end),
            Self::Chains => Self::Chains,
            Self::Start
            | Self::Ends(_)
            | Self::And(_)
            | Self::No(_)
            | Self::Plain(_)
            | Self::Other => Self::Other,
        };
    }
}

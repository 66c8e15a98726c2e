//! The arguments of `set_config`, of which the third says for how long.

use crate::lexer::Token;
use crate::pins::PinReason;

/// A call whose arguments are being read.
#[derive(Clone, Copy)]
pub(crate) struct SettingCall {
    /// What it is unless it is for the transaction only.
    pub(crate) reason: PinReason,
    depth: u32,
    /// No more than matter.
    commas: u8,
    local: Local,
}

/// What the third argument says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Local {
    /// Nothing yet.
    Unread,
    /// `true`, and nothing else.
    True,
    Other,
}

impl SettingCall {
    /// Its `(` has been read.
    pub(crate) fn new(reason: PinReason) -> Self {
        Self { reason, depth: 1, commas: 0, local: Local::Unread }
    }

    /// Reads a token behind the `(`. Gives what the call leaves, once it is over.
    #[inline(never)] // Of few texts a part.
    pub(crate) fn read(&mut self, token: Token<'_>) -> Option<PinReason> {
        let is_true = matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(b"true"));
        match token {
            Token::Open => self.depth = self.depth.saturating_add(1),
            Token::Close if self.depth == 1 => {
                let is_local = self.commas == 2 && self.local == Local::True;
                return Some(if is_local { PinReason::Local } else { self.reason });
            }
            Token::Close => self.depth -= 1,
            Token::Comma if self.depth == 1 => {
                self.commas = self.commas.saturating_add(1);
                return None;
            }
            Token::Comma
            | Token::Dot
            | Token::Literal(_)
            | Token::Quoted(_)
            | Token::Semicolon
            | Token::Sign
            | Token::Unclear
            | Token::Unicode
            | Token::Word(_) => {}
        }
        if self.commas == 2 {
            let is_first = self.local == Local::Unread;
            self.local = if is_first && is_true { Local::True } else { Local::Other };
        }
        None
    }
}

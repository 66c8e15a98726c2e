//! The arguments of `set_config`, of which the third says for how long.

use crate::lexer::Token;
use crate::pins::{PinReason, search_path};

/// A call whose arguments are being read.
#[derive(Clone, Copy)]
pub(crate) struct SettingCall {
    /// What it is unless it is for the transaction only.
    pub(crate) reason: PinReason,
    depth: u32,
    /// No more than matter.
    commas: u8,
    local: Local,
    /// It sets `search_path`.
    is_path: bool,
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
        Self { reason, depth: 1, commas: 0, local: Local::Unread, is_path: false }
    }

    /// Its first argument names `search_path`.
    pub(crate) fn of_search_path(&mut self) {
        self.is_path = true;
    }

    /// Whether a token behind the `(`, before that is read, says that tables may be temporary. Of a
    /// value that is not there to be read that is asked where a table is made
    /// (`pgweir-engine`, scan.rs): most have to do with other schemas.
    pub(crate) fn may_name_pg_temp(&self, token: Token<'_>) -> bool {
        let is_value = self.is_path && self.commas == 1;
        let is_there =
            matches!(token, Token::Literal(Some(content)) if !is_harmless(Some(content)));
        is_value && is_there
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

/// Whether a literal is a value of `search_path` that is there to be read, without `pg_temp`.
pub(super) fn is_harmless(content: Option<&[u8]>) -> bool {
    content.is_some_and(|content| !content.contains(&b'\\') && search_path(content).is_empty())
}

//! What PL/pgSQL takes out of a statement before PostgreSQL reads it: INTO and the variables that
//! are assigned there. What stood around it is read on then as if nothing had been between:
//! `SELECT setseed INTO a (0.5)` calls `setseed`.

use super::body::is_one_of;
use crate::lexer::Token;

/// How far an INTO has come (`read_into_target`, pl_gram.y). A variable may have any name that is
/// no reserved word of PL/pgSQL: one of SQL, say.
#[derive(Clone, Copy, Default)]
pub(super) enum Into {
    #[default]
    Over,
    /// A variable comes next.
    Before,
    /// Its name has been read, or a part of it.
    Named,
    /// What has been read of it is that of a parameter: `$1`.
    Parameter,
}

impl Into {
    /// Whether a token belongs to it, behind this word, if behind one.
    pub(super) fn takes(&mut self, token: Token<'_>, before: &[u8]) -> bool {
        *self = match (*self, token) {
            (Self::Over, Token::Word(word)) if is_into(word, before) => Self::Before,
            (Self::Before, Token::Word(word)) if word.eq_ignore_ascii_case(b"strict") => {
                Self::Before
            }
            (Self::Before, Token::Word(_) | Token::Quoted(_)) => Self::Named,
            (Self::Before | Self::Parameter, Token::Sign) => Self::Parameter,
            (Self::Named | Self::Parameter, Token::Comma | Token::Dot) => Self::Before,
            _ => Self::Over,
        };
        !matches!(self, Self::Over)
    }
}

/// Whether PL/pgSQL takes this word for its INTO: behind INSERT or MERGE, even where that is the
/// name of a column, it does not.
fn is_into(word: &[u8], before: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"into") && !is_one_of(before, &[b"insert", b"merge"])
}

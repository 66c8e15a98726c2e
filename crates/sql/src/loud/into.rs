//! What PL/pgSQL takes out of a statement before PostgreSQL reads it: INTO and the variables that
//! are assigned there. What stood around it is read on then as if nothing had been between:
//! `SELECT setseed INTO a (0.5)` calls `setseed`.
//!
//! It does so where a statement is one of SQL (`make_execsql_stmt`, pl_gram.y), and looks there for
//! the word alone, even behind a dot. Behind PERFORM, IF, `:=` and their like it is the name of a
//! column: `PERFORM x.into > 5, setseed(0.5)`. And what a target is depends on what is declared:
//! `INTO $1 1, setseed(0.5)` ends behind the parameter. So a body with an INTO is read in both
//! ways, and what one of them does not show does the other: a call is in one piece with the INTO,
//! or without it.

use super::body::is_one_of;
use crate::lexer::Token;

/// How far an INTO has come (`read_into_target`, pl_gram.y). A variable may have any name that is
/// no reserved word of PL/pgSQL: one of SQL, say.
#[derive(Clone, Copy)]
pub(super) enum Into {
    /// There is none; the next one is taken out.
    Over,
    /// A variable comes next.
    Before,
    /// Its name has been read, or a part of it.
    Named,
    /// What has been read of it is that of a parameter: `$1`.
    Parameter,
    /// None is taken out.
    LeftIn,
}

/// Whether PL/pgSQL takes a token out.
pub(super) enum Taken {
    No,
    Yes,
    /// No, and the INTO that it is makes no table.
    AsName,
}

impl Into {
    /// Reads a token, which stands behind this word, if behind one.
    pub(super) fn read(&mut self, token: Token<'_>, before: &[u8]) -> Taken {
        let begins = matches!(token, Token::Word(word) if is_into(word, before));
        *self = match (*self, token) {
            (Self::LeftIn, _) if begins => return Taken::AsName,
            (Self::LeftIn, _) => return Taken::No,
            (Self::Over, _) if begins => Self::Before,
            (Self::Before, Token::Word(word)) if word.eq_ignore_ascii_case(b"strict") => {
                Self::Before
            }
            (Self::Before, Token::Word(_) | Token::Quoted(_)) => Self::Named,
            (Self::Before | Self::Parameter, Token::Sign) => Self::Parameter,
            (Self::Named | Self::Parameter, Token::Comma | Token::Dot) => Self::Before,
            _ => Self::Over,
        };
        if matches!(self, Self::Over) { Taken::No } else { Taken::Yes }
    }
}

/// Whether PL/pgSQL takes this word for its INTO: behind INSERT or MERGE, even where that is the
/// name of a column, it does not.
fn is_into(word: &[u8], before: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"into") && !is_one_of(before, &[b"insert", b"merge"])
}

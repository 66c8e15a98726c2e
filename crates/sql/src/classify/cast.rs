//! What calls a function by the name of a type: `TREAT(a AS f)`.

use super::State;
use crate::lexer::Token;
use crate::pins::PinReason;
use crate::rules::{Keyword, Meaning};
use crate::sharing::Alone;

/// Parentheses that are being read, in which an AS would be that of a [`crate::Form::Cast`]. Not
/// every AS in them is: one of a query in there counts too.
#[derive(Clone, Copy)]
pub(super) struct Cast {
    reason: PinReason,
    depth: u16,
}

impl Cast {
    /// Their `(` has been read.
    pub(super) fn new(reason: PinReason) -> Self {
        Self { reason, depth: 1 }
    }
}

impl State {
    /// Reads a token in them; `None`: what comes behind it is of no interest. A `;` ends nothing:
    /// in PL/pgSQL a CASE has what looks like statements in it.
    #[inline(never)] // Of few texts a part.
    pub(super) fn within(
        &mut self,
        mut cast: Cast,
        token: Token<'_>,
        meaning: Meaning,
    ) -> Option<Cast> {
        let is_as = matches!(meaning, Meaning::Keyword(Keyword::As));
        cast.depth = match token {
            // So deep nobody counts.
            Token::Open if cast.depth < u16::MAX => cast.depth + 1,
            Token::Close => cast.depth - 1,
            Token::Open => return self.casts(cast),
            _ if is_as => return self.casts(cast),
            _ => cast.depth,
        };
        (cast.depth > 0).then_some(cast)
    }

    fn casts(&mut self, cast: Cast) -> Option<Cast> {
        self.share.alone(Alone::Unknown);
        self.pin(cast.reason);
        None
    }
}

//! What texts have in common that differ in nothing but values.

use crate::lexer::Token;

/// What a text is like, whatever values stand in it: texts of one fingerprint take about as long.
///
/// Literals and numbers count as equal, and so do lists of them whatever their length; digits in
/// names do not count (`orders_2024_07`, where they are as long), nor comments and spaces, nor in
/// which case a name is written. Different texts may have the
/// same fingerprint by chance, and have it where they differ in signs only (`<` and `>`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// That of a batch with this one in it too.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(mixed(self.0, other.0))
    }
}

/// Makes the fingerprint of a text of its tokens.
#[derive(Clone, Copy, Default)]
pub(crate) struct Likeness {
    hash: u64,
    last: Last,
}

/// What came last.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    /// A literal, a number, or signs.
    Value,
    /// A comma behind one, which is not counted before something else comes.
    Comma,
}

impl Likeness {
    /// A name or a keyword comes.
    #[inline]
    pub(crate) fn name(&mut self, name: &[u8]) {
        self.settle();
        let mut hash = self.hash;
        for chunk in name.chunks(7) {
            // Some bytes at a time, each as if in lower case.
            let letters = chunk.iter().filter(|byte| !byte.is_ascii_digit());
            let word = letters.fold(1, |word, byte| word << 8 | u64::from(byte | 0x20));
            hash = mixed(hash, word);
        }
        self.hash = hash;
    }

    /// Something else comes.
    #[inline]
    pub(crate) fn sign(&mut self, token: Token<'_>) {
        let kind = match token {
            Token::Literal(_) | Token::Sign => {
                if self.last == Last::Other {
                    self.hash = mixed(self.hash, VALUE);
                }
                self.last = Last::Value;
                return;
            }
            Token::Comma if self.last == Last::Value => {
                self.last = Last::Comma;
                return;
            }
            Token::Close => 2,
            Token::Comma => 3,
            Token::Dot => 4,
            Token::Open => 5,
            Token::Semicolon => 6,
            Token::Quoted(_) | Token::Unclear | Token::Unicode | Token::Word(_) => 7,
        };
        self.settle();
        self.hash = mixed(self.hash, kind);
    }

    /// A comma behind a value is one that something else follows.
    fn settle(&mut self) {
        if std::mem::take(&mut self.last) == Last::Comma {
            self.hash = mixed(self.hash, 3);
        }
    }

    pub(crate) fn fingerprint(self) -> Fingerprint {
        Fingerprint(self.hash)
    }
}

const VALUE: u64 = 1;

/// Multiplied and folded, so that each bit counts everywhere.
fn mixed(hash: u64, word: u64) -> u64 {
    let product =
        u128::from(hash.rotate_left(23) ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests;

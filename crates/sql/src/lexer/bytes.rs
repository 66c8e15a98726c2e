//! What single bytes mean to the lexer: the character classes of `scan.l`.

/// What a byte begins, between two tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    Close,
    Comma,
    Digit,
    Dollar,
    Dot,
    DoubleQuote,
    Letter,
    Minus,
    Open,
    Quote,
    Semicolon,
    Sign,
    Slash,
    Space,
}

/// What each byte begins.
pub(super) static BEGINS: [Begins; 256] = {
    let mut begins = [Begins::Sign; 256];
    let mut byte = 0;
    while byte < 256 {
        begins[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | 0x80.. => Begins::Letter,
            b'0'..=b'9' => Begins::Digit,
            // The vertical tab is whitespace from PostgreSQL 16 on, a syntax error before; a zero
            // byte ends the text.
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0 => Begins::Space,
            b',' => Begins::Comma,
            b'$' => Begins::Dollar,
            b'.' => Begins::Dot,
            b'"' => Begins::DoubleQuote,
            b'-' => Begins::Minus,
            b'(' => Begins::Open,
            b')' => Begins::Close,
            b'\'' => Begins::Quote,
            b';' => Begins::Semicolon,
            b'/' => Begins::Slash,
            _ => Begins::Sign,
        };
        byte += 1;
    }
    begins
};

/// Whether each byte may stand in an identifier behind its first: `ident_cont`.
static IN_WORD: [bool; 256] = {
    let mut in_word = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        in_word[byte] = matches!(BEGINS[byte], Begins::Letter | Begins::Digit | Begins::Dollar);
        byte += 1;
    }
    in_word
};

/// How many bytes from the first on belong to an identifier that has begun.
pub(super) fn word_length(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| IN_WORD[byte as usize]).count()
}

/// How many bytes from the first on belong to a dollar tag that has begun: `dolq_cont`.
pub(super) fn tag_length(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| byte != b'$' && IN_WORD[byte as usize]).count()
}

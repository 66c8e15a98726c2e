//! Text into tokens, the way PostgreSQL's `src/backend/parser/scan.l` cuts it.
//!
//! A push lexer: it is fed pieces of any size and holds between them where it stands and at most
//! 63 bytes of the token that the cut went through. It tells apart what the classifier needs and
//! no more: every sign of an operator is a token of its own, `1.5e3` is a handful of them. That is
//! sound as long as literals, comments and names begin and end where PostgreSQL begins and ends
//! them.

use memchr::{memchr, memchr2};

use self::bytes::{BEGINS, Begins, tag_length, word_length};
use self::held::Held;
use crate::encoding::Encoding;

mod bytes;
mod held;
#[cfg(test)]
mod tests;

/// What the lexer has found. Names are as written, cut off behind 63 bytes as PostgreSQL cuts
/// them, where that is known ([`Encoding::Exact`]); whitespace and comments are no tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Token<'a> {
    /// `)`
    Close,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// A literal in quotes or dollars, or the next part of one that continues on another line.
    /// Its content is there if it needs no unescaping and has at most 63 bytes.
    Literal(Option<&'a [u8]>),
    /// `(`
    Open,
    /// A name in double quotes, `""` being one `"`.
    Quoted(&'a [u8]),
    /// `;`
    Semicolon,
    /// Any other sign, or a part of a number.
    Sign,
    /// No token: from here on the text may not mean what the tokens say.
    Unclear,
    /// A name written `U&"…"`.
    Unicode,
    /// An identifier or a keyword.
    Word(&'a [u8]),
}

/// Who receives the tokens.
pub(crate) trait Sink {
    fn token(&mut self, token: Token<'_>);

    /// A `(` may come behind the name that is handed out next. Where this is not said none does.
    fn before_open(&mut self) {}
}

/// How a backslash in a plain literal is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backslash {
    /// Not known yet: no literal so far has been different in the two readings.
    Either,
    /// It escapes the next byte: `standard_conforming_strings` is off.
    Escapes,
    /// It is an ordinary character.
    Ordinary,
}

/// How far a piece was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Progress {
    /// To its end.
    All,
    /// Up to this offset, where a quote ends a literal only if the backslash before it is
    /// [`Backslash::Ordinary`]. The rest has to be fed again once it is decided
    /// ([`Lexer::decide`]).
    Ambiguous(usize),
}

/// The state between two bytes.
#[derive(Clone)]
pub(crate) struct Lexer {
    mode: Mode,
    backslash: Backslash,
    encoding: Encoding,
    /// The last token was a literal of a kind of its own, so that a quote in sight continues it.
    /// (PostgreSQL asks for a line break between; without one, two literals in a row are a syntax
    /// error.)
    continues: Continues,
    held: Held,
}

/// What the next byte belongs to.
#[derive(Clone, Copy)]
enum Mode {
    /// Nothing yet.
    Between,
    /// A `/* … */` with others inside; `last` is the byte before, unless it belongs to a mark.
    BlockComment { depth: u32, last: u8 },
    /// `$tag$ …`, of whose end `matched` bytes are there. The tag is held.
    Dollar { matched: usize },
    /// A `$` that may begin anything.
    DollarSign,
    /// `E'…`, behind a backslash or not.
    Escaped { backslash: bool },
    /// A `'` in `E'…` that ends it, unless another follows.
    EscapedQuote,
    /// A `--` comment.
    LineComment,
    /// Text that cannot be read any more.
    Lost,
    /// A `-`, perhaps the first of two.
    Minus,
    /// A literal or name up to its quote; `odd`: an odd number of backslashes has just been read.
    Run { run: Run, odd: bool },
    /// A quote that ends the run, unless another follows.
    RunQuote { run: Run },
    /// A `/`, perhaps in front of a `*`.
    Slash,
    /// `$` and a part of a tag, which is held.
    Tag,
    /// `u&`, perhaps in front of a quote.
    UnicodePrefix,
    /// An identifier, of which a part may be held.
    Word,
}

/// What a quote continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Continues {
    /// Nothing, or a plain literal.
    Plain,
    /// `E'…'`
    Escaped,
    /// [`Run::Bits`]
    Bits,
}

/// What ends at a quote that is not doubled, and escapes nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    /// `B'…'` and `X'…'`, in which a backslash is an ordinary character whatever
    /// `standard_conforming_strings` says. (A quote that is doubled ends it and begins the next.)
    Bits,
    /// `'…'`
    Literal,
    /// `"…"`
    Name,
    /// `U&'…'`
    UnicodeLiteral,
    /// `U&"…"`
    UnicodeName,
}

impl Lexer {
    pub(crate) fn new(encoding: Encoding) -> Self {
        Self {
            mode: Mode::Between,
            backslash: Backslash::Either,
            encoding,
            continues: Continues::Plain,
            held: Held::default(),
        }
    }

    /// For text in which it is known what a backslash does.
    pub(crate) fn reading(encoding: Encoding, backslash: Backslash) -> Self {
        Self { backslash, ..Self::new(encoding) }
    }

    /// Whether a literal has begun that has not ended yet, or what may be one.
    pub(crate) fn is_in_literal(&self) -> bool {
        match self.mode {
            Mode::Dollar { .. }
            | Mode::DollarSign
            | Mode::Escaped { .. }
            | Mode::EscapedQuote
            | Mode::Tag => true,
            Mode::Run { run, .. } | Mode::RunQuote { run } => {
                matches!(run, Run::Bits | Run::Literal | Run::UnicodeLiteral)
            }
            Mode::Between
            | Mode::BlockComment { .. }
            | Mode::LineComment
            | Mode::Lost
            | Mode::Minus
            | Mode::Slash
            | Mode::UnicodePrefix
            | Mode::Word => false,
        }
    }

    /// Reads the next piece.
    pub(crate) fn feed<S: Sink>(&mut self, text: &[u8], sink: &mut S) -> Progress {
        if self.encoding.obscures(text) {
            sink.token(Token::Unclear);
        }
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at = match self.mode {
                Mode::Between => self.between(text, at, sink),
                Mode::BlockComment { depth, last } => self.block_comment(text, at, depth, last),
                Mode::Dollar { matched } => self.dollar(text, at, matched, sink),
                Mode::DollarSign => self.dollar_sign(byte, at, sink),
                Mode::Escaped { backslash } => self.escaped(text, at, backslash, sink),
                Mode::EscapedQuote if byte == b'\'' => self.go(Mode::ESCAPED, at + 1),
                Mode::EscapedQuote => self.close_escaped(at, sink),
                Mode::LineComment => self.line_comment(text, at),
                Mode::Lost => text.len(),
                Mode::Minus if byte == b'-' => self.go(Mode::LineComment, at + 1),
                Mode::Run { run, odd } => match self.run(text, at, run, odd, sink) {
                    Ok(next) => next,
                    Err(quote) => return Progress::Ambiguous(quote),
                },
                Mode::RunQuote { run } => self.run_quote(byte, at, run, sink),
                Mode::Slash if byte == b'*' => {
                    self.go(Mode::BlockComment { depth: 1, last: 0 }, at + 1)
                }
                Mode::Minus | Mode::Slash => self.close(Token::Sign, at, sink),
                Mode::Tag => self.tag(text, at, sink),
                Mode::UnicodePrefix => self.unicode_prefix(byte, at, sink),
                Mode::Word => self.word(text, at, sink),
            };
        }
        Progress::All
    }

    /// Ends the text: what a space would end is a token. A literal or comment that is still open
    /// is a syntax error.
    pub(crate) fn finish<S: Sink>(mut self, sink: &mut S) {
        // Only a quote is ambiguous, so a space is always read.
        let _ = self.feed(b" ", sink);
    }

    /// Settles what a backslash does, where [`Progress::Ambiguous`] left it open.
    pub(crate) fn decide(&mut self, backslash: Backslash) {
        self.backslash = backslash;
        if backslash == Backslash::Escapes {
            self.mode = Mode::Escaped { backslash: true };
        }
    }

    /// Reads tokens that lie in one piece, until one does not.
    fn between<S: Sink>(&mut self, text: &[u8], mut at: usize, sink: &mut S) -> usize {
        while let Some(&byte) = text.get(at) {
            match BEGINS[byte as usize] {
                Begins::Space => at += 1,
                Begins::Letter => {
                    let end = at + word_length(&text[at..]);
                    let Some(&next) = text.get(end) else { return self.go(Mode::Word, at) };
                    match Mode::behind_prefix(&text[at..end], next) {
                        Some(mode) => return self.go(mode, end + 1),
                        None => {
                            if may_open(&text[end..]) {
                                sink.before_open();
                            }
                            self.emit(Token::Word(Held::clip(&text[at..end], self.encoding)), sink);
                        }
                    }
                    at = end;
                }
                Begins::Quote => return self.go(self.behind_quote(), at + 1),
                Begins::DoubleQuote => return self.go(Run::Name.start(), at + 1),
                Begins::Dollar => return self.go(Mode::DollarSign, at + 1),
                Begins::Minus => return self.go(Mode::Minus, at + 1),
                Begins::Slash => return self.go(Mode::Slash, at + 1),
                Begins::Open => at = self.close(Token::Open, at + 1, sink),
                Begins::Close => at = self.close(Token::Close, at + 1, sink),
                Begins::Comma => at = self.close(Token::Comma, at + 1, sink),
                Begins::Dot => at = self.close(Token::Dot, at + 1, sink),
                Begins::Semicolon => at = self.close(Token::Semicolon, at + 1, sink),
                Begins::Digit => {
                    let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    at = self.close(Token::Sign, at + digits, sink);
                }
                Begins::Sign => at = self.close(Token::Sign, at + 1, sink),
            }
        }
        at
    }

    /// The mode behind a quote that has no prefix.
    fn behind_quote(&self) -> Mode {
        match self.continues {
            Continues::Bits => Run::Bits.start(),
            Continues::Escaped => Mode::ESCAPED,
            Continues::Plain if self.backslash == Backslash::Escapes => Mode::ESCAPED,
            Continues::Plain => Run::Literal.start(),
        }
    }

    /// The first token of a piece, if it is a word, or the last.
    fn word<S: Sink>(&mut self, text: &[u8], at: usize, sink: &mut S) -> usize {
        let end = at + word_length(&text[at..]);
        self.held.push(&text[at..end]);
        let Some(&next) = text.get(end) else { return end };
        if let Some(mode) = Mode::behind_prefix(self.held.clipped(), next) {
            self.held.clear();
            return self.go(mode, end + 1);
        }
        sink.before_open();
        sink.token(Token::Word(self.held.name(self.encoding)));
        self.continues = Continues::Plain;
        self.held.clear();
        self.go(Mode::Between, end)
    }

    fn unicode_prefix<S: Sink>(&mut self, byte: u8, at: usize, sink: &mut S) -> usize {
        match byte {
            b'"' => self.go(Run::UnicodeName.start(), at + 1),
            b'\'' => self.go(Run::UnicodeLiteral.start(), at + 1),
            _ => {
                self.emit(Token::Word(b"u"), sink);
                self.close(Token::Sign, at, sink)
            }
        }
    }

    /// Reads a run up to a quote and looks behind it. The error is the offset of a quote that is
    /// ambiguous.
    fn run<S: Sink>(
        &mut self,
        text: &[u8],
        at: usize,
        run: Run,
        odd: bool,
        sink: &mut S,
    ) -> Result<usize, usize> {
        let rest = &text[at..];
        let Some(length) = memchr(run.quote(), rest) else {
            self.held.push(rest);
            return Ok(self.go(Mode::Run { run, odd: ends_odd(rest, odd) }, text.len()));
        };
        let (content, quote) = (&rest[..length], at + length);
        let undecided = run == Run::Literal && self.backslash == Backslash::Either;
        if undecided && ends_odd(content, odd) {
            self.held.push(content);
            self.mode = Mode::Run { run, odd: true };
            return Err(quote);
        }
        if self.held.is_empty()
            && content.len() <= Held::CAPACITY
            && text.get(quote + 1).is_some_and(|&next| next != run.quote())
        {
            if run == Run::Name && may_open(&text[quote + 1..]) {
                sink.before_open();
            }
            let next = self.close(run.token(Some(content), content), quote + 1, sink);
            self.continues = run.continues();
            return Ok(next);
        }
        self.held.push(content);
        Ok(self.go(Mode::RunQuote { run }, quote + 1))
    }

    fn run_quote<S: Sink>(&mut self, byte: u8, at: usize, run: Run, sink: &mut S) -> usize {
        if byte == run.quote() {
            self.held.push(&[byte]);
            return self.go(run.start(), at + 1);
        }
        if run == Run::Name {
            sink.before_open();
        }
        sink.token(run.token(self.held.whole(), self.held.name(self.encoding)));
        self.continues = run.continues();
        self.held.clear();
        self.go(Mode::Between, at)
    }

    fn escaped<S: Sink>(&mut self, text: &[u8], at: usize, backslash: bool, sink: &mut S) -> usize {
        let mut at = at + usize::from(backslash);
        while let Some(length) = memchr2(b'\'', b'\\', &text[at..]) {
            at += length;
            let Some(&next) = text.get(at + 1) else {
                let backslash = text[at] == b'\\';
                let mode = if backslash { Mode::Escaped { backslash } } else { Mode::EscapedQuote };
                return self.go(mode, text.len());
            };
            if text[at] == b'\'' && next != b'\'' {
                return self.close_escaped(at + 1, sink);
            }
            at += 2;
        }
        self.go(Mode::ESCAPED, text.len())
    }

    fn close_escaped<S: Sink>(&mut self, at: usize, sink: &mut S) -> usize {
        let next = self.close(Token::Literal(None), at, sink);
        self.held.clear();
        self.continues = Continues::Escaped;
        next
    }

    /// Behind a `$`: a tag, the digits of a parameter, or what is a syntax error.
    fn dollar_sign<S: Sink>(&mut self, byte: u8, at: usize, sink: &mut S) -> usize {
        match BEGINS[byte as usize] {
            Begins::Dollar => self.open_dollar(at + 1, sink),
            Begins::Letter => self.go(Mode::Tag, at),
            _ => self.close(Token::Sign, at, sink),
        }
    }

    fn tag<S: Sink>(&mut self, text: &[u8], at: usize, sink: &mut S) -> usize {
        let end = at + tag_length(&text[at..]);
        self.held.push(&text[at..end]);
        match text.get(end) {
            None => end,
            Some(b'$') => self.open_dollar(end + 1, sink),
            // A lone `$`, which is a syntax error, and then a word.
            Some(_) => {
                self.emit(Token::Sign, sink);
                self.go(Mode::Word, end)
            }
        }
    }

    /// Behind the second `$` of an opening tag. A tag that is too long to be held cannot be told
    /// from another one, so that the end of the literal is not found.
    fn open_dollar<S: Sink>(&mut self, at: usize, sink: &mut S) -> usize {
        if self.held.whole().is_none() {
            return self.go_lost(at, sink);
        }
        if self.encoding == Encoding::Overlapping {
            sink.token(Token::Unclear);
        }
        self.go(Mode::Dollar { matched: 0 }, at)
    }

    /// Looks for `$tag$`. As no `$` is in a tag, a `$` that does not match may always begin anew.
    fn dollar<S: Sink>(
        &mut self,
        text: &[u8],
        mut at: usize,
        mut matched: usize,
        sink: &mut S,
    ) -> usize {
        let tag_length = self.held.clipped().len();
        while let Some(&byte) = text.get(at) {
            if matched == 0 {
                match memchr(b'$', &text[at..]) {
                    Some(length) => (at, matched) = (at + length + 1, 1),
                    None => at = text.len(),
                }
                continue;
            }
            let expected = self.held.clipped().get(matched - 1).copied().unwrap_or(b'$');
            matched = match byte {
                _ if byte == expected => matched + 1,
                b'$' => 1,
                _ => 0,
            };
            at += 1;
            if matched == tag_length + 2 {
                self.held.clear();
                return self.close(Token::Literal(None), at, sink);
            }
        }
        self.go(Mode::Dollar { matched }, at)
    }

    fn line_comment(&mut self, text: &[u8], at: usize) -> usize {
        match memchr2(b'\n', b'\r', &text[at..]) {
            Some(length) => self.go(Mode::Between, at + length),
            None => text.len(),
        }
    }

    fn block_comment(&mut self, text: &[u8], at: usize, mut depth: u32, mut last: u8) -> usize {
        for (offset, &byte) in text[at..].iter().enumerate() {
            match (last, byte) {
                (b'/', b'*') => (depth, last) = (depth.saturating_add(1), 0),
                (b'*', b'/') if depth == 1 => return self.go(Mode::Between, at + offset + 1),
                (b'*', b'/') => (depth, last) = (depth - 1, 0),
                _ => last = byte,
            }
        }
        self.go(Mode::BlockComment { depth, last }, text.len())
    }

    /// Takes up a mode. Returns where to go on, so that it ends what reads a token.
    fn go(&mut self, mode: Mode, next: usize) -> usize {
        self.mode = mode;
        next
    }

    fn go_lost<S: Sink>(&mut self, next: usize, sink: &mut S) -> usize {
        sink.token(Token::Unclear);
        self.go(Mode::Lost, next)
    }

    /// Hands a token out, after which another one may begin.
    fn close<S: Sink>(&mut self, token: Token<'_>, next: usize, sink: &mut S) -> usize {
        self.emit(token, sink);
        self.go(Mode::Between, next)
    }

    fn emit<S: Sink>(&mut self, token: Token<'_>, sink: &mut S) {
        self.continues = Continues::Plain;
        sink.token(token);
    }
}

impl Mode {
    const ESCAPED: Self = Self::Escaped { backslash: false };

    /// The mode behind a word and the byte after it, if together they begin something else. `N'`
    /// does not: what follows that word is a plain literal.
    fn behind_prefix(word: &[u8], next: u8) -> Option<Self> {
        match (word, next) {
            ([b'b' | b'B' | b'x' | b'X'], b'\'') => Some(Run::Bits.start()),
            ([b'e' | b'E'], b'\'') => Some(Self::ESCAPED),
            ([b'u' | b'U'], b'&') => Some(Self::UnicodePrefix),
            _ => None,
        }
    }
}

impl Run {
    fn start(self) -> Mode {
        Mode::Run { run: self, odd: false }
    }

    fn quote(self) -> u8 {
        match self {
            Self::Bits | Self::Literal | Self::UnicodeLiteral => b'\'',
            Self::Name | Self::UnicodeName => b'"',
        }
    }

    /// What a quote continues behind it.
    fn continues(self) -> Continues {
        match self {
            Self::Bits => Continues::Bits,
            Self::Literal | Self::Name | Self::UnicodeLiteral | Self::UnicodeName => {
                Continues::Plain
            }
        }
    }

    /// The token of a run: its content if that is known, and what is known of it.
    fn token<'a>(self, whole: Option<&'a [u8]>, clipped: &'a [u8]) -> Token<'a> {
        match self {
            Self::Literal => Token::Literal(whole),
            Self::Name => Token::Quoted(clipped),
            Self::Bits | Self::UnicodeLiteral => Token::Literal(None),
            Self::UnicodeName => Token::Unicode,
        }
    }
}

/// Whether a `(` may be the next token of this text or of what comes behind it.
#[inline]
fn may_open(text: &[u8]) -> bool {
    let begins = |at: usize| text.get(at).map(|&byte| BEGINS[byte as usize]);
    let may = |begins: Option<Begins>| match begins {
        None | Some(Begins::Minus | Begins::Open | Begins::Slash | Begins::Space) => true,
        Some(
            Begins::Close
            | Begins::Comma
            | Begins::Digit
            | Begins::Dollar
            | Begins::Dot
            | Begins::DoubleQuote
            | Begins::Letter
            | Begins::Quote
            | Begins::Semicolon
            | Begins::Sign,
        ) => false,
    };
    match begins(0) {
        // One space stands behind most words.
        Some(Begins::Space) => may(begins(1)),
        other => may(other),
    }
}

/// Whether an odd number of backslashes ends the text, if `odd` says the same of what was before.
fn ends_odd(text: &[u8], odd: bool) -> bool {
    let count = text.iter().rev().take_while(|&&byte| byte == b'\\').count();
    (count % 2 == 1) ^ (odd && count == text.len())
}

//! What the body of a function, or a block, does to the session.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::into::{Into, Taken};
use super::spans::{each_token, readings};
use super::{Change, Effect, Hidden, Loud, SEQUENCES, Unseen};
use crate::classify::{Heard, State};
use crate::custom::Search;
use crate::encoding::Encoding;
use crate::lexer::{Backslash, Sink, Token};
use crate::overrides;
use crate::pins::{PinReason, Pins};

/// What a body says.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) pins: Pins,
    /// The custom settings that it may change, in lower case.
    pub(super) custom: BTreeSet<Box<[u8]>>,
    /// All names in it, in lower case.
    pub(super) names: BTreeSet<Box<[u8]>>,
    /// How it changes tables.
    pub(super) change: Change,
    /// It locks rows.
    pub(super) locks: bool,
    /// It changes the schema.
    pub(super) creates: bool,
    /// The functions that it calls, but for quiet ones of PostgreSQL's, in lower case.
    pub(super) calls: BTreeSet<Box<[u8]>>,
    /// Whatever those do, it does more than to compute, read and change rows: it runs a command,
    /// say.
    pub(super) is_opaque: bool,
    /// It cannot share a server, whoever says that it leaves nothing there: it may go on behind the
    /// end of its statement, or says more than can be kept.
    pub(super) is_unruly: bool,
    /// It makes no difference whether it waits.
    pub(super) may_wait: bool,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Sql,
    Plpgsql,
}

impl Language {
    /// What begins a statement behind it, and ends none. (Of a CASE in PL/pgSQL, THEN and ELSE do
    /// so too: what is taken for a statement there begins with the name of a column.)
    fn begins(self) -> &'static [&'static [u8]] {
        match self {
            Self::Sql => &[b"atomic", b"begin"],
            Self::Plpgsql => &[b"begin", b"declare", b"else", b"loop", b"then"],
        }
    }
}

/// The language of a DO block that names none.
const PLPGSQL: &[u8] = b"plpgsql";

/// The errors by which PL/pgSQL catches the end of a statement that takes too long: OTHERS does
/// not.
const CATCHES: [&[u8]; 2] = [b"operator_intervention", b"query_canceled"];

/// The levels of RAISE behind which a function goes on: it may say as much as it likes. What
/// changes rows and is shared cannot be run again, and what it says is kept until its end.
const SAYS: [&[u8]; 5] = [b"debug", b"info", b"log", b"notice", b"warning"];

/// Words of PL/pgSQL that are no functions in front of a `(`.
const OPENS: [&[u8]; 10] = [
    b"assert", b"cursor", b"elseif", b"elsif", b"if", b"perform", b"query", b"return", b"strict",
    b"while",
];

/// Words of PL/pgSQL behind which a query stands.
const QUERIES: [&[u8]; 4] = [b"for", b"in", b"is", b"query"];

/// Commands that may stand there, since they are answered with rows (`UtilityReturnsTuples`,
/// utility.c). EXECUTE is read like that of PL/pgSQL, and a FETCH finds cursors of its transaction.
const ANSWERED: [&[u8]; 4] = [b"call", b"explain", b"show", b"wait"];

/// By a statement with one of these a block may create or alter something.
const CREATES: [&[u8]; 4] = [b"alter", b"create", b"execute", b"import"];

/// What a procedure may do to its transaction, and what it makes for good, leaves nothing.
const HARMLESS: [PinReason; 3] = [PinReason::Commit, PinReason::Schema, PinReason::Transient];

impl Body {
    /// Reads a body. Where a literal may be read in two ways both are followed, and so they are
    /// where PL/pgSQL may take an INTO out or not. `may_wait`: it makes no difference whether it
    /// does so (`pg_sleep`).
    pub(super) fn read(
        text: &[u8],
        language: Language,
        encoding: Encoding,
        may_wait: bool,
    ) -> Self {
        let mut body = Self { may_wait, ..Self::default() };
        for &backslash in readings(text, encoding) {
            if body.read_as(text, language, (encoding, backslash), Into::Over) {
                body.read_as(text, language, (encoding, backslash), Into::LeftIn);
            }
        }
        body.creates = body.pins.contains(PinReason::Schema);
        let sets = [PinReason::Local, PinReason::Setting].map(|reason| body.pins.contains(reason));
        if body.creates && sets.contains(&true) {
            // That may be `search_path`, whose value no text shows.
            body.pins = body.pins.union(PinReason::TempTable.into());
        }
        body.pins = HARMLESS.into_iter().fold(body.pins, Pins::without);
        body
    }

    /// Says whether an INTO was taken out.
    fn read_as(
        &mut self,
        text: &[u8],
        language: Language,
        (encoding, backslash): (Encoding, Backslash),
        into: Into,
    ) -> bool {
        let custom = &mut self.custom;
        let mut note = |name: &[u8]| {
            custom.insert(name.to_ascii_lowercase().into());
        };
        let mut takes_back = false;
        let mut note_back = |said: overrides::Said| takes_back |= said.takes_back();
        let mut reading = Reading {
            assigns: overrides::Reading::new(&mut note_back),
            state: State::of_body(language == Language::Plpgsql, self.may_wait),
            search: Search::new(&mut note),
            language,
            encoding,
            run: Run::No,
            names: &mut self.names,
            calls: &mut self.calls,
            last: Box::default(),
            before: Box::default(),
            into,
            took_into: false,
            of_query: false,
            catches: false,
            speaks: false,
        };
        each_token(text, encoding, backslash, &mut |token, content| {
            reading.token(token, content);
        });
        let took_into = reading.took_into;
        if reading.state.makes_table() {
            // To an event trigger it is CREATE TABLE AS.
            reading.names.insert(b"create"[..].into());
        }
        self.change = self.change.max(reading.state.changes());
        self.locks |= reading.state.locks();
        self.is_unruly |= reading.catches || reading.speaks;
        self.is_opaque |= self.is_unruly || reading.state.breaks().is_some();
        let mut pins = reading.state.heard().pins;
        if !reading.search.finish() && pins.contains(PinReason::Setting) {
            pins = pins.union(PinReason::Unclear.into());
        }
        reading.assigns.end_statement();
        if takes_back {
            pins = pins.union(PinReason::Reset.into());
        }
        self.pins = self.pins.union(pins);
        took_into
    }

    /// What it does, and what the names in it stand for.
    fn unseen(self, loud: &Loud, name: &str, encoding: Encoding) -> Unseen {
        let mut unseen = Unseen { name: name.to_owned(), pins: self.pins, custom: self.custom };
        let may_be = |name: &[u8]| !name.is_ascii() && loud.may_be(name);
        if encoding != Encoding::Exact && self.names.iter().any(|name| may_be(name)) {
            unseen.pins = unseen.pins.union(PinReason::Unclear.into());
        }
        for place in self.names.iter().filter_map(|name| loud.place(name)) {
            let sequences = loud.pins(place, self.change).intersection(SEQUENCES);
            unseen.pins = unseen.pins.union(sequences);
            if let Some(named) = loud.unseen(place, self.change) {
                unseen.add(named);
            }
        }
        unseen
    }
}

/// A body of which a part has been read.
struct Reading<'a> {
    state: State,
    search: Search<'a>,
    assigns: overrides::Reading<'a>,
    language: Language,
    encoding: Encoding,
    run: Run,
    names: &'a mut BTreeSet<Box<[u8]>>,
    calls: &'a mut BTreeSet<Box<[u8]>>,
    /// The name read last, in lower case.
    last: Box<[u8]>,
    /// The token before, if that is a word, in lower case.
    before: Box<[u8]>,
    /// An INTO of PL/pgSQL.
    into: Into,
    /// There was one that was taken out.
    took_into: bool,
    /// A command is being read that stands for a query: out of that nothing is taken.
    of_query: bool,
    /// It may go on where it is ended from outside: what it comes to is another thing then.
    catches: bool,
    /// It raises notices.
    speaks: bool,
}

/// How far an EXECUTE has come, of PL/pgSQL.
enum Run {
    No,
    /// What it runs comes next.
    Execute,
    /// It is this text, if that is all.
    Text(Vec<u8>),
}

impl Reading<'_> {
    fn token(&mut self, token: Token<'_>, content: Option<Vec<u8>>) {
        let code = content.as_deref().unwrap_or(b"57");
        self.catches |= &*self.last == b"sqlstate"
            && matches!(token, Token::Literal(_))
            && code.starts_with(b"57");
        let is_execute = self.language == Language::Plpgsql
            && matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(b"execute"));
        self.run = match std::mem::replace(&mut self.run, Run::No) {
            Run::No if is_execute => Run::Execute,
            Run::No => Run::No,
            Run::Execute => match (token, content) {
                (Token::Literal(_), Some(text)) => Run::Text(text),
                _ => self.unknown(),
            },
            Run::Text(text) => match token {
                Token::Semicolon => self.runs(&text),
                Token::Word(word) if is_one_of(word, &[b"using", b"into", b"loop"]) => {
                    self.runs(&text)
                }
                _ => self.unknown(),
            },
        };
        let word =
            if let Token::Word(word) = token { word.to_ascii_lowercase() } else { Vec::new() };
        let before = std::mem::replace(&mut self.before, word.into());
        if self.language == Language::Plpgsql {
            if is_one_of(&before, &QUERIES) && is_one_of(&self.before, &ANSWERED) {
                self.read(Token::Semicolon);
                self.of_query = true;
            }
            if !self.of_query {
                match self.into.read(token, &before) {
                    Taken::No => {}
                    Taken::Yes => {
                        self.took_into = true;
                        return;
                    }
                    Taken::AsName => return self.read(Token::Quoted(b"into")),
                }
            }
        }
        // A text that is run is no statement that was prepared.
        self.read(if is_execute { Token::Word(b"perform") } else { token });
        let begins = is_one_of(&self.before, self.language.begins());
        if begins {
            self.read(Token::Semicolon);
        }
        self.of_query &= !(begins || matches!(token, Token::Semicolon));
    }

    fn read(&mut self, token: Token<'_>) {
        if let Token::Word(name) | Token::Quoted(name) = token {
            self.speaks |= &*self.last == b"raise" && is_one_of(name, &SAYS);
            self.last = name.to_ascii_lowercase().into();
            self.names.insert(self.last.clone());
            self.catches |= is_one_of(name, &CATCHES);
            self.state.before_open();
        }
        self.state.token(token);
        if self.state.calls_unknown() && !is_one_of(&self.last, &OPENS) {
            self.calls.insert(self.last.clone());
        }
        self.search.token(token);
        self.assigns.token(token);
    }

    /// It runs what nobody can read here.
    fn unknown(&mut self) -> Run {
        self.state.pin(PinReason::Unclear);
        Run::No
    }

    fn runs(&mut self, text: &[u8]) -> Run {
        if readings(text, self.encoding).len() > 1 {
            // What a backslash means is said by a setting of whoever calls it.
            return self.unknown();
        }
        self.read(Token::Semicolon);
        each_token(text, self.encoding, Backslash::Ordinary, &mut |token, _| self.read(token));
        self.read(Token::Semicolon);
        Run::No
    }
}

pub(super) fn is_one_of(word: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// Reads the DO blocks in a text.
pub(super) fn read_blocks(text: &[u8], encoding: Encoding, loud: &Arc<Loud>, heard: &mut Heard) {
    for &backslash in readings(text, encoding) {
        let (mut begins, mut block) = (true, None);
        each_token(text, encoding, backslash, &mut |token, content| {
            if let Token::Semicolon = token {
                begins = true;
                return block
                    .take()
                    .into_iter()
                    .for_each(|it: Block| it.end(encoding, loud, heard));
            }
            if std::mem::take(&mut begins) {
                let is_do = matches!(token, Token::Word(word) if is_one_of(word, &[b"do"]));
                block = is_do.then(Block::default);
            } else if let Some(block) = &mut block {
                block.token(token, content);
            }
        });
        block.into_iter().for_each(|it| it.end(encoding, loud, heard));
    }
}

/// A DO statement of which a part has been read.
#[derive(Default)]
struct Block {
    /// Its body, once that was there.
    body: Option<Vec<u8>>,
    /// The word before was LANGUAGE: its name comes next, in front of the body or behind it.
    names_language: bool,
    /// It is in another language, or is not there to be read.
    is_unread: bool,
}

impl Block {
    fn token(&mut self, token: Token<'_>, content: Option<Vec<u8>>) {
        if std::mem::take(&mut self.names_language) {
            // A name in quotes is what it is.
            let is_plpgsql = match token {
                Token::Word(word) => word.eq_ignore_ascii_case(PLPGSQL),
                Token::Quoted(name) => name == PLPGSQL,
                Token::Literal(_) => content.as_deref() == Some(PLPGSQL),
                Token::Close
                | Token::Comma
                | Token::Dot
                | Token::Open
                | Token::Semicolon
                | Token::Sign
                | Token::Unclear
                | Token::Unicode => false,
            };
            self.is_unread |= !is_plpgsql;
            return;
        }
        match token {
            Token::Word(word) => self.names_language = is_one_of(word, &[b"language"]),
            Token::Literal(_) => {
                // One in several parts is not put together.
                self.is_unread |= content.is_none() || self.body.is_some();
                self.body = content;
            }
            Token::Close
            | Token::Comma
            | Token::Dot
            | Token::Open
            | Token::Quoted(_)
            | Token::Semicolon
            | Token::Sign
            | Token::Unclear
            | Token::Unicode => {}
        }
    }

    /// All of it has been read.
    fn end(self, encoding: Encoding, loud: &Loud, heard: &mut Heard) {
        if self.is_unread {
            heard.add_own(PinReason::Unclear);
            heard.add_own(PinReason::Schema);
            heard.statements_within += 2;
        } else if let Some(body) = self.body {
            let may_create = has_word(&body, &CREATES);
            let (makes, removes) = (makes(&body), removes(&body));
            // What else there is to be said of an encoding is said of the text.
            let is_exact = encoding == Encoding::Exact;
            let its = if is_exact { Encoding::Exact } else { Encoding::Superset };
            let body = Body::read(&body, Language::Plpgsql, its, false);
            if may_create || body.creates {
                heard.add_own(PinReason::Schema);
                heard.statements_within += u32::from(makes);
            }
            if removes {
                heard.add_own(PinReason::Ends);
                heard.statements_within += 1;
            }
            heard.add(body.unseen(loud, "DO", its));
        }
    }
}

/// Whether one of these words is anywhere in a body, also in what that puts together.
fn has_word(body: &[u8], of: &[&[u8]]) -> bool {
    words(body).any(|word| of.iter().any(|one| word.eq_ignore_ascii_case(one)))
}

/// Whether a body makes something by its words. What is temporary is no part of the schema.
fn makes(body: &[u8]) -> bool {
    let mut pairs = words(body).zip(words(body).skip(1));
    pairs.any(|(word, next)| {
        is_one_of(word, &[b"alter", b"create", b"import"])
            && !is_one_of(next, &[b"temp", b"temporary"])
    })
}

/// Whether it removes something. With ON COMMIT DROP that is no part of the schema either.
fn removes(body: &[u8]) -> bool {
    let before = || std::iter::repeat_n(&b""[..], 2).chain(words(body));
    let mut threes = before().zip(before().skip(1)).zip(words(body));
    threes.any(|((on, commit), word)| {
        let of_temporary = is_one_of(on, &[b"on"]) && is_one_of(commit, &[b"commit"]);
        is_one_of(word, &[b"drop"]) && !of_temporary
    })
}

fn words(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    body.split(move |byte| !is_of_word(byte)).filter(|word| !word.is_empty())
}

impl From<Body> for Effect {
    fn from(body: Body) -> Self {
        let mut hidden = Hidden::NONE;
        if body.is_opaque {
            hidden.add(Hidden::OPAQUE);
        }
        if body.is_unruly {
            hidden.add(Hidden::UNRULY);
        }
        if body.change > Change::Nothing {
            hidden.add(Hidden::CHANGES);
        }
        if body.locks {
            hidden.add(Hidden::LOCKS);
        }
        Self { reads: body.pins, custom: body.custom, hidden, ..Self::default() }
    }
}

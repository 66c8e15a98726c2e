//! Tokens into an answer: which rows of the table apply where their words stand.

use std::sync::Arc;

use self::cast::Cast;
use self::last::Last;
use self::share::{Name, Share};
use self::step::Step;
use crate::encoding::{Encoding, folded};
use crate::fingerprint::Likeness;
use crate::lexer::{Backslash, Lexer, Progress, Sink, Token};
use crate::loud::{Change, Hidden, Loud, SEQUENCES};
use crate::pins::{PinReason, Pins};
use crate::rules::{Form, Keyword, Meaning, meaning};
use crate::sharing::{Alone, Sharing};

mod cast;
mod heard;
mod last;
mod of_body;
mod setting_call;
mod share;
mod step;
#[cfg(test)]
mod tests;

pub use self::heard::Heard;
pub(crate) use self::setting_call::SettingCall;

/// What a whole text leaves in the session, in an encoding that [`Encoding::Superset`] describes.
pub fn classify(text: &[u8]) -> Pins {
    let mut classifier = Classifier::new();
    classifier.feed(text);
    classifier.finish()
}

/// Classifies a text that arrives in pieces, cut anywhere.
#[derive(Clone)]
pub struct Classifier {
    /// The reading in which a backslash in a plain literal is an ordinary character, and the only
    /// one as long as that makes no difference.
    standard: Reading,
    /// The reading in which it escapes the byte behind it.
    escaping: Option<Reading>,
}

impl Classifier {
    /// For text in an encoding that [`Encoding::Superset`] describes.
    pub fn new() -> Self {
        Self::in_encoding(Encoding::Superset)
    }

    /// For text in the client's encoding.
    pub fn in_encoding(encoding: Encoding) -> Self {
        let lexer = Lexer::new(encoding);
        let state = State { is_exact: encoding == Encoding::Exact, ..State::default() };
        Self { standard: Reading { lexer, state }, escaping: None }
    }

    /// For text that may name what changes a session unseen.
    #[must_use]
    pub fn knowing(mut self, loud: &Arc<Loud>) -> Self {
        self.standard.state.loud = Some(Arc::clone(loud));
        self
    }

    /// Takes the next piece of the text, without the zero byte that ends it on the wire (or with
    /// it: it counts as a space).
    pub fn feed(&mut self, text: &[u8]) {
        if let Some(escaping) = &mut self.escaping {
            escaping.feed_decided(text);
        }
        if let Progress::Ambiguous(at) = self.standard.feed(text) {
            let mut escaping = self.standard.clone();
            escaping.lexer.decide(Backslash::Escapes);
            self.standard.lexer.decide(Backslash::Ordinary);
            escaping.feed_decided(&text[at..]);
            self.standard.feed_decided(&text[at..]);
            self.escaping = Some(escaping);
        }
    }

    /// Why the server must stay with this client once the text, now complete, has run.
    pub fn finish(self) -> Pins {
        self.finish_hearing().pins
    }

    /// All that the text, now complete, says. A DO block in it is not read, and may do anything.
    pub fn finish_hearing(self) -> Heard {
        let mut heard = self.finish_but_for_blocks();
        if heard.pins.contains(PinReason::Block) {
            heard.add_own(PinReason::Schema);
            heard.statements_within += 2;
        }
        heard
    }

    /// The same, of which DO blocks are read besides.
    pub(crate) fn finish_but_for_blocks(self) -> Heard {
        let heard = self.standard.finish();
        match self.escaping.map(Reading::finish) {
            Some(other) => heard.or(other),
            None => heard,
        }
    }
}

impl Default for Classifier {
    fn default() -> Self {
        Self::new()
    }
}

/// One way to read the text, as far as it has come.
#[derive(Clone)]
struct Reading {
    lexer: Lexer,
    state: State,
}

impl Reading {
    fn feed(&mut self, text: &[u8]) -> Progress {
        self.lexer.feed(text, &mut self.state)
    }

    /// Feeds a reading for which it is settled what a backslash does: none of it is ambiguous.
    fn feed_decided(&mut self, text: &[u8]) {
        let progress = self.feed(text);
        debug_assert_eq!(progress, Progress::All);
    }

    fn finish(mut self) -> Heard {
        self.lexer.finish(&mut self.state);
        self.state.heard()
    }
}

/// Names in a text that say something, by their places in the list.
#[derive(Clone, Default)]
struct Named {
    places: Vec<usize>,
}

/// What the tokens so far have said.
#[derive(Clone, Default)]
pub(crate) struct State {
    pins: Pins,
    /// Names beyond ASCII are what they are in the catalogue.
    is_exact: bool,
    /// What is known of names.
    loud: Option<Arc<Loud>>,
    /// Those in the text that say something.
    named: Option<Box<Named>>,
    /// Whether it may be shared.
    share: Share,
    likeness: Likeness,
    /// A call of `set_config` that has begun.
    setting_call: Option<SettingCall>,
    /// Parentheses in which what stands behind AS may be called.
    cast: Option<Cast>,
    /// How it changes tables: there is a word for that, or a command that computes what such a
    /// change does.
    change: Change,
    step: Step,
    last: Last,
    /// The statement creates something temporary, and has not said ON COMMIT DROP.
    temporary: Option<PinReason>,
    /// The statement has begun with CREATE, ALTER or IMPORT, of what is not temporary, or makes a
    /// table otherwise.
    creates: bool,
    /// The statement has said UPDATE.
    updates: bool,
    /// There is an INTO that is not that of INSERT or MERGE.
    makes_table: bool,
    /// Statements that have begun.
    statements: u32,
}

impl Sink for State {
    // In every place where the lexer hands a token out: a sign, the most frequent one, is then a
    // comparison and a store.
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) {
        let meaning = match token {
            Token::Semicolon => return self.end_statement(),
            Token::Unclear => return self.pin(PinReason::Unclear),
            Token::Unicode => {
                self.pin(PinReason::Unclear);
                Meaning::Plain
            }
            Token::Word(word) => meaning(word),
            Token::Quoted(name) => meaning(name).quoted(),
            Token::Close
            | Token::Comma
            | Token::Dot
            | Token::Literal(_)
            | Token::Open
            | Token::Sign => Meaning::Plain,
        };
        match token {
            Token::Word(name) => self.named(name, false, meaning),
            Token::Quoted(name) => self.named(name, true, meaning),
            Token::Close
            | Token::Comma
            | Token::Dot
            | Token::Literal(_)
            | Token::Open
            | Token::Semicolon
            | Token::Sign
            | Token::Unclear
            | Token::Unicode => {
                self.share.sign(token);
                self.likeness.sign(token);
            }
        }
        if self.setting_call.is_some() {
            self.argument(token);
        }
        if let Some(cast) = self.cast {
            self.cast = self.within(cast, token, meaning);
        }
        if !matches!(self.step, Step::Body) {
            self.step = self.step(token, meaning);
        }
        self.last = self.last(token, meaning);
    }

    #[inline(always)]
    fn before_open(&mut self) {
        self.share.may_open = true;
    }
}

impl State {
    /// Notes what a name stands for.
    #[inline]
    fn named(&mut self, text: &[u8], quoted: bool, meaning: Meaning) {
        self.likeness.name(text);
        let mut hidden = self.note(text);
        let field = matches!(self.last, Last::Field | Last::Dot);
        if !self.is_exact && !text.is_ascii() {
            self.share.alone(Alone::Catalogue);
            if self.loud.as_ref().is_some_and(|loud| loud.may_fold()) {
                hidden.add(Hidden::FOLDED);
            }
            let is_loud = || self.loud.as_ref().is_some_and(|loud| loud.may_be(text));
            if is_loud() || !quoted && may_be_rule(text) {
                self.pin(PinReason::Unclear);
            }
        }
        let loud = self.loud.as_deref();
        self.share.name(&Name { text, quoted, field, hidden }, meaning, loud);
        if self.share.of_catalogue {
            self.pin(PinReason::Schema);
        }
    }

    /// Notes what a name stands for, and gives what it hides.
    #[inline]
    fn note(&mut self, name: &[u8]) -> Hidden {
        let Some(loud) = self.loud.as_deref() else { return Hidden::NONE };
        let Some(place) = loud.place(name) else { return Hidden::NONE };
        let hidden = loud.hidden(place);
        let named = self.named.get_or_insert_default();
        if !named.places.contains(&place) {
            named.places.push(place);
        }
        hidden
    }

    pub(crate) fn pin(&mut self, reason: PinReason) {
        self.pins = self.pins.union(reason.into());
    }

    /// All that was said, by a text that ends here.
    pub(crate) fn heard(mut self) -> Heard {
        self.end_statement();
        let (pins, own) = (self.pins, self.pins);
        let fingerprint = self.likeness.fingerprint();
        let mut heard =
            Heard { pins, own, statements: self.statements, fingerprint, ..Heard::default() };
        let loud = self.loud.as_deref();
        heard.sharing = match self.statements {
            1 => self.share.sharing(loud, self.change),
            _ => Sharing::Alone(Alone::Statements),
        };
        if let Some(loud) = loud {
            heard.folds = loud.folds() || self.share.folds();
            // What a table is made like may become a default of it.
            let is_like = pins.contains(PinReason::Transient);
            let computes = if is_like { Change::Defaults } else { self.change };
            for place in self.named.map(|named| named.places).unwrap_or_default() {
                let sequences = loud.pins(place, computes).intersection(SEQUENCES);
                heard.own = heard.own.union(sequences);
                heard.pins = heard.pins.union(sequences);
                if let Some(unseen) = loud.unseen(place, self.change) {
                    heard.add(unseen);
                }
            }
        }
        let is_said = match heard.sharing {
            Sharing::Alone(Alone::Unknown | Alone::Opaque) => false,
            Sharing::Read | Sharing::Lock | Sharing::Write => false,
            Sharing::Alone(_) => true,
        };
        if !heard.pins.is_empty() && !is_said {
            heard.sharing = Sharing::Alone(Alone::Pin);
        }
        heard
    }

    fn end_statement(&mut self) {
        if let Last::Member(reason) = self.last {
            self.pin(reason);
        }
        if let Some(call) = self.setting_call.take() {
            self.pin(call.reason);
        }
        if let Some(reason) = self.temporary.take() {
            self.pin(reason);
        }
        if std::mem::take(&mut self.creates) {
            self.pin(PinReason::Schema);
        }
        self.updates = false;
        self.share.end_statement();
        self.step = Step::Start;
        self.last = Last::Sign;
    }

    /// What a token says about the next one. Applies the rows that it completes.
    fn last(&mut self, token: Token<'_>, meaning: Meaning) -> Last {
        match self.last {
            Last::SettingArgument => {
                if let Token::Literal(content) = token {
                    return self.setting_name(content);
                }
                self.pin(PinReason::Unclear);
            }
            Last::SettingName if !matches!(token, Token::Comma) => self.pin(PinReason::Unclear),
            Last::Member(reason) if !matches!(token, Token::Dot) => self.pin(reason),
            _ => {}
        }
        match token {
            Token::Word(_) | Token::Quoted(_) | Token::Unicode => match self.last {
                Last::Field => self.selected(meaning),
                Last::Dot => match self.name(meaning) {
                    Last::Call(reason) => Last::Member(reason),
                    other => other,
                },
                _ => self.name(meaning),
            },
            Token::Open => match self.last {
                Last::Call(reason) => {
                    self.pin(reason);
                    Last::Sign
                }
                Last::SettingCall(reason) => {
                    // One within the arguments of another: that is not looked at further.
                    let outer = self.setting_call.replace(SettingCall::new(reason));
                    if let Some(outer) = outer {
                        self.pin(outer.reason);
                    }
                    Last::SettingArgument
                }
                Last::Cast(reason) => {
                    self.cast.get_or_insert_with(|| Cast::new(reason));
                    Last::Sign
                }
                _ => Last::Sign,
            },
            Token::Dot => match self.last {
                Last::Sign | Last::Selected => Last::Field,
                _ => Last::Dot,
            },
            Token::Literal(_) => Last::Literal,
            Token::Close | Token::Comma | Token::Semicolon | Token::Sign | Token::Unclear => {
                Last::Sign
            }
        }
    }

    /// A token among the arguments of `set_config`.
    #[inline(never)] // Of few texts a part.
    fn argument(&mut self, token: Token<'_>) {
        let Some(call) = &mut self.setting_call else { return };
        let may_name_pg_temp = call.may_name_pg_temp(token);
        if let Some(reason) = call.read(token) {
            self.setting_call = None;
            self.pin(reason);
        }
        if may_name_pg_temp {
            self.pin(PinReason::TempTable);
        }
    }

    /// The first argument of `set_config`. Only a name that is there to be read shows that it is
    /// not `seed`, which no reset undoes.
    fn setting_name(&mut self, content: Option<&[u8]>) -> Last {
        match content {
            Some(name) if !name.contains(&b'\\') => match meaning(name) {
                Meaning::Rule(Form::Variable, reason) => self.pin(reason),
                Meaning::Keyword(Keyword::SearchPath) => {
                    if let Some(call) = &mut self.setting_call {
                        call.of_search_path();
                    }
                }
                Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => {}
            },
            Some(_) | None => self.pin(PinReason::Unclear),
        }
        Last::SettingName
    }

    fn name(&mut self, meaning: Meaning) -> Last {
        match meaning {
            Meaning::Plain => Last::Word,
            Meaning::Keyword(keyword) => self.keyword(keyword),
            Meaning::Rule(form, reason) => self.rule(form, reason),
        }
    }

    /// A name behind [`Last::Field`]: whatever it says elsewhere, here it is a field's or a
    /// function's, and may have further ones behind it.
    fn selected(&mut self, meaning: Meaning) -> Last {
        if let Meaning::Rule(Form::Call | Form::SettingCall | Form::Schema, reason) = meaning {
            self.pin(reason);
        }
        // `1.INTO t`: up to PostgreSQL 14 a number may end there.
        if let Meaning::Keyword(Keyword::Into) = meaning {
            return self.keyword(Keyword::Into);
        }
        Last::Selected
    }

    fn keyword(&mut self, keyword: Keyword) -> Last {
        match (keyword, self.last) {
            (Keyword::Create | Keyword::Replace, _) => Last::Create,
            (Keyword::Global | Keyword::Local, Last::Create) => Last::Create,
            (Keyword::Global | Keyword::Local, Last::Into) => Last::Into,
            (Keyword::Insert | Keyword::Merge, _) => {
                self.change = Change::Defaults;
                if self.share.is_verb { Last::Insert } else { Last::Word }
            }
            (Keyword::Default, _) => {
                // It stands behind the UPDATE whose it is.
                if self.change == Change::Rows {
                    self.change = Change::Defaults;
                }
                Last::Word
            }
            (Keyword::Delete, _) => {
                self.change = self.change.max(Change::Rows);
                Last::Word
            }
            (Keyword::Writes, _) => {
                self.change = Change::Defaults;
                Last::Word
            }
            (Keyword::Into, Last::Insert) => Last::Word,
            (Keyword::Into, _) => {
                self.share.makes_table();
                self.makes_table = true;
                self.creates |= self.share.reads();
                // To an event trigger it is CREATE TABLE AS.
                self.note(b"create");
                Last::Into
            }
            (Keyword::Cursor, _) => Last::Cursor,
            (Keyword::With, Last::Cursor) => Last::CursorWith,
            (Keyword::On, _) => Last::On,
            (Keyword::Commit, Last::On) => Last::OnCommit,
            (Keyword::Drop, Last::OnCommit) => {
                if self.temporary.take().is_some() {
                    self.pin(PinReason::Transient);
                }
                Last::Word
            }
            (Keyword::Update, _) => {
                self.updates = true;
                self.change = self.change.max(Change::Rows);
                Last::Word
            }
            _ => Last::Word,
        }
    }

    fn rule(&mut self, form: Form, reason: PinReason) -> Last {
        match form {
            Form::Call => return Last::Call(reason),
            Form::SettingCall => return Last::SettingCall(reason),
            Form::Cast => {
                if !matches!(self.last, Last::Dot) {
                    return Last::Cast(reason);
                }
            }
            // What is made may be made elsewhere, and only name it.
            Form::Schema => self.pin(reason),
            Form::Hold => {
                if matches!(self.last, Last::CursorWith) {
                    self.pin(reason);
                }
            }
            Form::Temporary => {
                if matches!(self.last, Last::Create | Last::Into) {
                    if matches!(self.last, Last::Into) && self.share.reads() {
                        // It is this INTO that creates something, which is nobody else's.
                        self.creates = false;
                    }
                    if let Some(earlier) = self.temporary.replace(reason) {
                        self.pin(earlier);
                    }
                }
            }
            Form::Updated => {
                if self.updates {
                    self.pin(reason);
                }
            }
            Form::Commit
            | Form::Ends
            | Form::Prepare
            | Form::Set
            | Form::Statement
            | Form::Variable => {}
        }
        Last::Word
    }
}

/// Whether a name beyond ASCII, in no quotes, may be one that a rule has.
#[inline(never)] // Of few texts a part.
fn may_be_rule(name: &[u8]) -> bool {
    folded(name).is_some_and(|name| matches!(meaning(&name), Meaning::Rule(..)))
}

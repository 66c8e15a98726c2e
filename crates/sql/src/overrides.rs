//! What statements that set something say of it: SET, RESET, DISCARD ALL, and `set_config`.

use crate::classify::SettingCall;
use crate::encoding::Encoding;
use crate::lexer::{Lexer, Progress, Sink, Token};
use crate::pins::PinReason;

#[cfg(test)]
mod tests;

/// Settings that a statement gives another value, whatever they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overrides {
    /// DISCARD ALL: every setting, and the role too.
    All,
    /// RESET ALL: every setting but the role and the session's user.
    AllButRights,
    /// This one, by its name in lower case.
    One(Vec<u8>),
}

/// For how long something is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// For the transaction, as SET LOCAL does.
    Transaction,
    /// For the session.
    Session,
}

/// What a whole text overrides for the session, if it is one such statement and nothing else.
pub fn overrides(text: &[u8]) -> Option<Overrides> {
    let (mut what, mut others) = (None, false);
    let is_clear = read(text, Encoding::Superset, &mut |said| match said {
        Said::Assigns(Assigns { what: its, scope: Scope::Session, .. }) if what.is_none() => {
            what = Some(its);
        }
        Said::Assigns(_) | Said::Calls(..) | Said::Other => others = true,
    });
    what.filter(|_| is_clear && !others)
}

/// Gives what a whole text may take back to what it is by default. A call of `set_config` may do so
/// with what it names. `false`: the text cannot be read with certainty.
pub fn taken_back(text: &[u8], encoding: Encoding, each: &mut dyn FnMut(Overrides, Scope)) -> bool {
    read(text, encoding, &mut |said| match said {
        Said::Assigns(Assigns { what, scope, to_default: true }) => each(what, scope),
        Said::Calls(name, scope) => each(Overrides::One(name), scope),
        Said::Assigns(_) | Said::Other => {}
    })
}

/// What a statement says.
pub(crate) enum Said {
    /// It is a SET, a RESET or DISCARD ALL.
    Assigns(Assigns),
    /// It calls `set_config` with this name, in lower case.
    Calls(Vec<u8>, Scope),
    /// It is another one.
    Other,
}

pub(crate) struct Assigns {
    what: Overrides,
    scope: Scope,
    /// It says DEFAULT, in one way or another.
    to_default: bool,
}

impl Said {
    /// Whether it takes a setting of the session back, and says so.
    pub(crate) fn takes_back(&self) -> bool {
        match self {
            Self::Assigns(Assigns { scope, to_default, .. }) => {
                *scope == Scope::Session && *to_default
            }
            Self::Calls(..) | Self::Other => false,
        }
    }
}

fn read(text: &[u8], encoding: Encoding, each: &mut dyn FnMut(Said)) -> bool {
    let mut reading = Reading::new(each);
    let mut lexer = Lexer::new(encoding);
    match lexer.feed(text, &mut reading) {
        Progress::All => lexer.finish(&mut reading),
        Progress::Ambiguous(_) => reading.is_clear = false,
    }
    reading.end_statement();
    reading.is_clear
}

/// Reads the tokens of a text.
pub(crate) struct Reading<'a> {
    each: &'a mut dyn FnMut(Said),
    is_clear: bool,
    step: Step,
    /// It is about more than one setting.
    all: Option<Overrides>,
    name: Vec<u8>,
    scope: Scope,
    value: Value,
    call: Call,
}

/// How much of a statement has been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nothing.
    Start,
    /// SET or RESET, and perhaps SESSION or LOCAL.
    Sets { scoped: bool },
    /// SET LOCAL SESSION or RESET SESSION, which AUTHORIZATION follows.
    Session,
    /// DISCARD
    Discards,
    /// The first of two words that name a setting together.
    Two(&'static [u8]),
    /// The name, perhaps not all of it.
    Name,
    /// What stands behind it.
    Value,
    /// A statement of another kind.
    Other,
}

/// What is known of the value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// The name alone is said: that is a default for NAMES.
    Unsaid {
        is_default: bool,
    },
    /// `=` or TO was read.
    Equals,
    /// It is said to be a default. What stands behind that is an error of syntax.
    Default,
    Given,
}

/// How much of `set_config('name', …)` has been read.
#[derive(Clone)]
enum Call {
    No,
    /// The function's name.
    Named,
    /// Its `(`.
    Open,
    /// The name of a setting, and what the arguments say.
    Reads(Vec<u8>, SettingCall),
}

impl Sink for Reading<'_> {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Semicolon => return self.end_statement(),
            Token::Unclear | Token::Unicode => self.is_clear = false,
            Token::Close
            | Token::Comma
            | Token::Dot
            | Token::Literal(_)
            | Token::Open
            | Token::Quoted(_)
            | Token::Sign
            | Token::Word(_) => {}
        }
        self.call(token);
        self.step = self.step(token);
    }
}

impl<'a> Reading<'a> {
    pub(crate) fn new(each: &'a mut dyn FnMut(Said)) -> Self {
        Self {
            each,
            is_clear: true,
            step: Step::Start,
            all: None,
            name: Vec::new(),
            scope: Scope::Session,
            value: Value::Given,
            call: Call::No,
        }
    }

    /// The statement ends here.
    pub(crate) fn end_statement(&mut self) {
        if let Call::Reads(name, _) = std::mem::replace(&mut self.call, Call::No) {
            (self.each)(Said::Calls(name, Scope::Session));
        }
        let name = std::mem::take(&mut self.name);
        match self.step {
            Step::Start => {}
            Step::Name | Step::Value => {
                let what = self.all.take().unwrap_or(Overrides::One(name));
                let to_default = match self.value {
                    Value::Unsaid { is_default } => is_default,
                    Value::Default => true,
                    Value::Equals | Value::Given => false,
                };
                (self.each)(Said::Assigns(Assigns { what, scope: self.scope, to_default }));
            }
            Step::Sets { .. } | Step::Session | Step::Discards | Step::Two(_) | Step::Other => {
                (self.each)(Said::Other);
            }
        }
        self.step = Step::Start;
        self.scope = Scope::Session;
    }

    fn step(&mut self, token: Token<'_>) -> Step {
        let word = match token {
            Token::Word(word) | Token::Quoted(word) => word.to_ascii_lowercase(),
            _ => Vec::new(),
        };
        match (self.step, token) {
            (Step::Start, Token::Word(_)) => match word.as_slice() {
                b"set" => self.begun(Value::Unsaid { is_default: false }, false),
                b"reset" => self.begun(Value::Default, true),
                b"discard" => {
                    self.value = Value::Default;
                    Step::Discards
                }
                _ => Step::Other,
            },
            (Step::Discards, Token::Word(_)) if word == b"all" => self.all(Overrides::All),
            (Step::Sets { scoped }, Token::Word(_)) => self.setting(scoped, &word),
            (Step::Sets { .. }, Token::Quoted(_)) => self.named(&word),
            // `SET local.name = 1` sets a custom setting.
            (Step::Sets { .. }, Token::Dot) => {
                self.scope = Scope::Session;
                self.name.push(b'.');
                Step::Name
            }
            (Step::Session | Step::Name, Token::Dot) => {
                self.name.push(b'.');
                Step::Name
            }
            (Step::Session, Token::Word(_)) if word == b"authorization" => {
                self.named(b"session_authorization")
            }
            (Step::Two(name), Token::Word(_)) => self.named(name),
            (Step::Name, Token::Word(_) | Token::Quoted(_)) if self.name.ends_with(b".") => {
                self.name.extend_from_slice(&word);
                Step::Name
            }
            (Step::Name | Step::Value, _) => {
                let is_plain = matches!(token, Token::Word(_));
                self.value = self.value.then(token, if is_plain { &word } else { b"" });
                Step::Value
            }
            (
                Step::Start
                | Step::Discards
                | Step::Sets { .. }
                | Step::Session
                | Step::Two(_)
                | Step::Other,
                _,
            ) => Step::Other,
        }
    }

    fn begun(&mut self, value: Value, scoped: bool) -> Step {
        self.value = value;
        Step::Sets { scoped }
    }

    fn all(&mut self, what: Overrides) -> Step {
        self.all = Some(what);
        Step::Name
    }

    fn named(&mut self, name: &[u8]) -> Step {
        self.name = name.to_vec();
        Step::Name
    }

    /// The word behind SET or RESET, and behind SESSION and LOCAL.
    fn setting(&mut self, scoped: bool, word: &[u8]) -> Step {
        match word {
            b"session" | b"local" => {
                self.name = word.to_vec();
                if scoped {
                    return Step::Session;
                }
                if word == b"local" {
                    self.scope = Scope::Transaction;
                }
                Step::Sets { scoped: true }
            }
            // SET SESSION AUTHORIZATION, where SESSION was taken for a scope.
            b"authorization" if self.name == b"session" => self.named(b"session_authorization"),
            b"all" => self.all(Overrides::AllButRights),
            b"characteristics" | b"constraints" | b"transaction" => Step::Other,
            b"names" => {
                self.value = Value::Unsaid { is_default: true };
                self.named(b"client_encoding")
            }
            b"schema" => self.named(b"search_path"),
            b"time" => Step::Two(b"timezone"),
            b"xml" => Step::Two(b"xmloption"),
            _ => self.named(word),
        }
    }

    /// Looks for `set_config('name', …)`.
    fn call(&mut self, token: Token<'_>) {
        let is_name = matches!(token, Token::Word(word) | Token::Quoted(word)
            if word.eq_ignore_ascii_case(b"set_config"));
        self.call = match std::mem::replace(&mut self.call, Call::No) {
            Call::No | Call::Named if is_name => Call::Named,
            Call::Named if matches!(token, Token::Open) => Call::Open,
            Call::Open => match token {
                Token::Literal(Some(name)) => {
                    Call::Reads(name.to_ascii_lowercase(), SettingCall::new(PinReason::Setting))
                }
                _ => Call::No,
            },
            Call::Reads(name, mut call) => match call.read(token) {
                Some(reason) => {
                    let is_local = reason == PinReason::Local;
                    let scope = if is_local { Scope::Transaction } else { Scope::Session };
                    (self.each)(Said::Calls(name, scope));
                    Call::No
                }
                None => Call::Reads(name, call),
            },
            Call::No | Call::Named => Call::No,
        };
    }
}

impl Value {
    /// Another token of it.
    fn then(self, token: Token<'_>, word: &[u8]) -> Self {
        let equals = matches!(token, Token::Sign) || word == b"to";
        match self {
            Self::Unsaid { .. } if equals => Self::Equals,
            // SET TIME ZONE LOCAL is the one form that calls it so.
            Self::Unsaid { .. } | Self::Equals if matches!(word, b"default" | b"local") => {
                Self::Default
            }
            Self::Default => Self::Default,
            Self::Unsaid { .. } | Self::Equals | Self::Given => Self::Given,
        }
    }
}

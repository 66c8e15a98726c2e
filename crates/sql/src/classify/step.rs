//! What the first words of a statement say.

use super::State;
use super::last::Last;
use super::setting_call::is_harmless;
use crate::lexer::Token;
use crate::loud::Change;
use crate::pins::PinReason;
use crate::rules::{Form, Keyword, Meaning};

/// How far the beginning of the statement has been understood. The reasons are those of the word
/// that was read, held back until the next token decides.
#[derive(Clone, Copy, Default)]
pub(super) enum Step {
    /// Its first token is still to come.
    #[default]
    Start,
    /// `SET`
    Set(PinReason),
    /// `SET LOCAL`, or `SET local.name` and the like.
    SetLocal(PinReason),
    /// `SET TRANSACTION` or `SET CONSTRAINTS`, or the prefix of a custom setting's name.
    SetScoped(PinReason),
    /// `SET LOCAL search_path` and its values.
    SearchPath,
    /// `SET SESSION`: a setting's name comes next.
    Variable,
    /// `PREPARE`
    Prepare(PinReason),
    /// `PREPARE TRANSACTION`, or the beginning of a statement of that name.
    PrepareTransaction(PinReason),
    /// `COMMIT`
    Commit,
    /// `EXPLAIN`, which may run what it explains.
    Explain,
    /// `ALTER`
    Alter,
    /// `CREATE`, perhaps with `OR REPLACE`, `GLOBAL` or `LOCAL`, or the INTO of an EXPLAIN: what is
    /// made is temporary if that comes next, and nothing that stands further behind says so.
    Create,
    /// Nothing more to be understood.
    Body,
}

/// Commands that compute what belongs to a table, as a change of its rows does: expressions of its
/// indexes and statistics, checks and defaults. So does ALTER, while CREATE INDEX computes no more
/// than it names.
const COMPUTES: [&[u8]; 7] =
    [b"analyse", b"analyze", b"cluster", b"refresh", b"reindex", b"repack", b"vacuum"];

impl State {
    /// Where a token at the beginning of the statement leads.
    #[inline(never)] // Once a statement, while `token` is inlined everywhere.
    pub(super) fn step(&mut self, token: Token<'_>, meaning: Meaning) -> Step {
        let is_name = matches!(token, Token::Word(_) | Token::Quoted(_) | Token::Unicode);
        if matches!(self.step, Step::Start) {
            self.statements = self.statements.saturating_add(1);
        }
        match self.step {
            Step::Start => match meaning {
                Meaning::Rule(Form::Set, reason) => Step::Set(reason),
                Meaning::Rule(Form::Prepare, reason) => Step::Prepare(reason),
                Meaning::Rule(Form::Statement, reason) => self.body(reason),
                Meaning::Rule(Form::Ends, reason) => {
                    self.pin(PinReason::Ends);
                    self.body(reason)
                }
                Meaning::Keyword(Keyword::Commit) => {
                    self.pin(PinReason::Commit);
                    Step::Commit
                }
                Meaning::Keyword(Keyword::Drop) => self.body(PinReason::Ends),
                Meaning::Keyword(Keyword::Alter) => {
                    self.creates = true;
                    self.change = Change::Defaults;
                    Step::Alter
                }
                Meaning::Keyword(Keyword::Create) => {
                    self.creates = true;
                    Step::Create
                }
                Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => {
                    let word = if let Token::Word(word) = token { word } else { b"" };
                    // IMPORT FOREIGN SCHEMA creates tables.
                    self.creates |= word.eq_ignore_ascii_case(b"import");
                    if COMPUTES.iter().any(|one| word.eq_ignore_ascii_case(one)) {
                        self.change = Change::Defaults;
                    }
                    match word.eq_ignore_ascii_case(b"explain") {
                        true => Step::Explain,
                        false => Step::Body,
                    }
                }
            },
            Step::Set(reason) => match meaning {
                Meaning::Keyword(Keyword::Local) => Step::SetLocal(reason),
                Meaning::Keyword(Keyword::Constraints | Keyword::Transaction) => {
                    Step::SetScoped(reason)
                }
                Meaning::Keyword(Keyword::Session) => {
                    self.pin(reason);
                    Step::Variable
                }
                Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => {
                    self.pin(reason);
                    self.variable(meaning)
                }
            },
            Step::SetLocal(_) if is_name => {
                self.pin(PinReason::Local);
                self.variable(meaning)
            }
            Step::Variable if is_name => self.variable(meaning),
            Step::SetScoped(_) if is_name => Step::Body,
            Step::SetLocal(reason) | Step::SetScoped(reason) => self.body(reason),
            Step::SearchPath => {
                if let Token::Literal(content) = token {
                    self.search_path(content);
                }
                Step::SearchPath
            }
            Step::Prepare(reason) => match meaning {
                Meaning::Keyword(Keyword::Transaction) => Step::PrepareTransaction(reason),
                Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => self.body(reason),
            },
            Step::PrepareTransaction(_) if matches!(token, Token::Literal(_)) => {
                self.body(PinReason::Commit)
            }
            Step::PrepareTransaction(reason) => self.body(reason),
            Step::Commit => match meaning {
                Meaning::Rule(Form::Commit, reason) => self.body(reason),
                Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => Step::Body,
            },
            Step::Explain => match meaning {
                Meaning::Keyword(Keyword::Create | Keyword::Into) => {
                    self.creates = true;
                    Step::Create
                }
                Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => Step::Explain,
            },
            Step::Create => match meaning {
                Meaning::Keyword(Keyword::Global | Keyword::Local | Keyword::Replace) => {
                    Step::Create
                }
                Meaning::Rule(Form::Temporary, _) => {
                    // What is created there is nobody else's.
                    self.creates = false;
                    Step::Body
                }
                Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => match token {
                    Token::Word(word) if word.eq_ignore_ascii_case(b"or") => Step::Create,
                    _ => self.made(token),
                },
            },
            Step::Alter => self.made(token),
            Step::Variable | Step::Body => Step::Body,
        }
    }

    /// What is created or altered for good. The script of an extension may set something, for as
    /// long as the session lasts.
    fn made(&mut self, token: Token<'_>) -> Step {
        if matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(b"extension")) {
            self.pin(PinReason::Setting);
        }
        Step::Body
    }

    fn body(&mut self, reason: PinReason) -> Step {
        self.pin(reason);
        Step::Body
    }

    /// The name of a setting in a SET statement.
    fn variable(&mut self, meaning: Meaning) -> Step {
        match meaning {
            Meaning::Rule(Form::Variable, reason) => self.body(reason),
            Meaning::Keyword(Keyword::Schema | Keyword::SearchPath) => Step::SearchPath,
            Meaning::Rule(..) | Meaning::Keyword(_) | Meaning::Plain => Step::Body,
        }
    }

    /// A value of `search_path` in quotes: what the transaction creates from here on may be
    /// temporary. A literal in several parts is not put together.
    fn search_path(&mut self, content: Option<&[u8]>) {
        let is_whole = !matches!(self.last, Last::Literal);
        if !(is_whole && is_harmless(content)) {
            self.pin(PinReason::TempTable);
        }
    }
}

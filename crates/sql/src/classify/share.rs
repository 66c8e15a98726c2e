//! Whether a statement may stand between those of other clients, as far as its tokens tell.
//!
//! What is shared is on a list: the words a statement may begin with, the functions it may call.
//! There is no grammar here: a name in front of a `(` is taken for that of a function unless the
//! word before it says otherwise, and a word in front of one has to be of the grammar.

use crate::builtins::{Builtin, builtin, only_waits};
use crate::lexer::Token;
use crate::loud::{Change, Hidden, Loud};
use crate::rules::{Form, Keyword, Meaning};
use crate::sharing::{Alone, Sharing};

/// What the tokens so far have said of it.
#[derive(Clone, Copy, Default)]
pub(super) struct Share {
    /// The first rule that it breaks.
    alone: Option<Alone>,
    /// What stands behind the names in it.
    hidden: Hidden,
    begins: Begins,
    before: Before,
    /// What a `(` means if it comes next.
    callee: Callee,
    /// A `(` may come behind the name that comes next.
    pub(super) may_open: bool,
    /// A statement may begin with the word that was read last.
    pub(super) is_verb: bool,
    /// How many `(` are open.
    depth: u16,
    /// It has said DISTINCT ON or OPERATOR: behind the `)` of those a function may be called.
    calls_behind: bool,
    /// It changes rows.
    changes: bool,
    /// It locks rows, or numbers its transaction.
    locks: bool,
    /// What it changes is a table of the catalogue.
    pub(super) of_catalogue: bool,
    /// RETURNING.
    returns: bool,
    /// A statement is over that is answered with rows.
    answers: bool,
    /// It is in the body of a function.
    body: Option<Body>,
}

/// A name in the text.
pub(super) struct Name<'a> {
    pub(super) text: &'a [u8],
    /// It stands in double quotes, and is no keyword.
    pub(super) quoted: bool,
    /// It selects a field of an expression, a row or a table, or calls a function on that.
    pub(super) field: bool,
    /// What stands behind it.
    pub(super) hidden: Hidden,
}

/// What a `(` means behind a name.
#[derive(Clone, Copy, Default)]
enum Callee {
    /// Nothing.
    #[default]
    Harmless,
    /// That of `OPERATOR(…)`.
    Operator,
    /// The transaction gets a number.
    Numbers,
    /// This rule is broken.
    Breaks(Alone),
}

/// How the body of a function is read.
#[derive(Clone, Copy)]
struct Body {
    /// It is in PL/pgSQL. What that takes out of its statements is not in it any more.
    is_plpgsql: bool,
    /// A function was called that is not known here.
    calls: bool,
    /// It makes no difference whether it waits.
    may_wait: bool,
}

/// What a statement is by the words it begins with.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Begins {
    /// Nothing has been read, or some `(`.
    #[default]
    Start,
    /// `WITH`, whose statement comes behind what it names.
    With,
    /// It is answered with rows.
    Reads,
    /// It changes rows, and is answered with rows only if it says RETURNING.
    Changes,
    Other,
}

/// The token before.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Sign,
    Name,
    /// The `.` behind a name.
    Dot,
    /// A `(`
    Open,
    /// A `)`: what has a `(` behind it here is an alias, or a word of the grammar.
    Close,
    /// `DISTINCT`
    Distinct,
    /// `FOR`, or the `NO` and `KEY` behind it.
    For,
    /// `INTO`, and perhaps `ONLY`.
    Into,
    /// The name of the table behind `INTO`, or a part of it.
    IntoName,
    /// The `.` behind that.
    IntoDot,
    /// `DELETE`
    Delete,
    /// What the name of a table that is changed stands behind: `UPDATE`, `DELETE FROM`, `COPY`, and
    /// perhaps `ONLY` and a `(`.
    Changes,
    /// `pg_catalog` there.
    Catalogue,
    /// `AS`, `WITH` and what may follow that, behind which a name is given.
    As,
    Comma,
}

impl Share {
    pub(super) fn of_body(is_plpgsql: bool, may_wait: bool) -> Self {
        let body = Body { is_plpgsql, calls: false, may_wait };
        Self { body: Some(body), ..Self::default() }
    }

    pub(super) fn calls_unknown(&mut self) -> bool {
        self.body.as_mut().is_some_and(|body| std::mem::take(&mut body.calls))
    }

    pub(super) fn breaks(&self) -> Option<Alone> {
        self.alone
    }

    /// What stands behind a name in it may be computed once for a plan, and be another thing for
    /// each client.
    pub(super) fn folds(&self) -> bool {
        self.hidden.folds()
    }

    pub(super) fn locks(&self) -> bool {
        self.locks
    }

    /// A sign, which is all that most tokens are.
    #[inline]
    pub(super) fn sign(&mut self, token: Token<'_>) {
        self.before = match (token, self.before) {
            (Token::Open, before) => {
                self.open(before);
                match before {
                    Before::Changes | Before::Into => before,
                    _ => Before::Open,
                }
            }
            (Token::Close, _) => {
                self.depth = self.depth.saturating_sub(1);
                Before::Close
            }
            (Token::Dot, Before::IntoName) => Before::IntoDot,
            (Token::Dot, Before::Catalogue) => Before::Changes,
            // Some keywords are names too: `ordinality.setseed`.
            (
                Token::Dot,
                Before::Name | Before::As | Before::For | Before::Delete | Before::Changes,
            ) => Before::Dot,
            (Token::Comma, _) => Before::Comma,
            _ => Before::Sign,
        };
        self.callee = Callee::Harmless;
        if self.begins == Begins::Start && !matches!(token, Token::Open) {
            self.begins = self.not_shared();
        }
    }

    fn open(&mut self, before: Before) {
        match (self.callee, &mut self.body) {
            (Callee::Harmless, _) => {}
            (Callee::Operator, _) => self.calls_behind = true,
            (Callee::Numbers, _) => self.locks = true,
            (Callee::Breaks(Alone::Unknown), Some(body)) => body.calls = true,
            (Callee::Breaks(rule), _) => self.alone(rule),
        }
        if self.begins == Begins::With && self.depth == 0 && before == Before::Close {
            self.begins = Begins::Reads;
        }
        self.depth = self.depth.saturating_add(1);
    }

    /// A name, or a word of the grammar.
    #[inline]
    pub(super) fn name(&mut self, name: &Name<'_>, meaning: Meaning, loud: Option<&Loud>) {
        let before = self.before;
        let may_open = std::mem::take(&mut self.may_open);
        self.is_verb = self.may_be_verb();
        self.hidden.add(name.hidden);
        let &Name { text, quoted, field, .. } = name;
        let is_own = field || is_pg(text) || !quoted && is_called_alone(text);
        if is_own && builtin(text) == Some(Builtin::Exception) && !self.may_call(text) {
            self.alone(Alone::Session);
        }
        if field && name.hidden.contains(Hidden::CALLED) {
            self.alone(Alone::Opaque);
        }
        self.before = match before {
            Before::Into | Before::Changes if !quoted && is_of_target(text) => before,
            Before::Into | Before::IntoDot => Before::IntoName,
            Before::Delete if !quoted && text.eq_ignore_ascii_case(b"from") => Before::Changes,
            _ => Before::Name,
        };
        self.target(text, meaning, before);
        if !quoted && before != Before::Dot {
            if let Meaning::Keyword(keyword) = meaning {
                self.keyword(keyword, before);
            }
            match self.begins {
                Begins::Start => self.begins = self.first(text),
                Begins::With if self.depth == 0 => self.behind_with(text, before),
                Begins::With | Begins::Reads | Begins::Changes | Begins::Other => {}
            }
        } else if self.begins == Begins::Start {
            self.begins = self.not_shared();
        }
        self.callee = match may_open {
            true => self.called(name, before, loud),
            false => Callee::Harmless,
        };
    }

    /// Whether this name is that of a table of the catalogue that is changed: everything may be
    /// another thing then. Others' names do not begin with `pg_`, as a rule.
    fn target(&mut self, text: &[u8], meaning: Meaning, before: Before) {
        let is_target = match before {
            Before::Into | Before::Changes => true,
            // Perhaps behind the name of the database.
            Before::IntoDot | Before::Dot => false,
            _ => return,
        };
        if text.eq_ignore_ascii_case(b"pg_catalog") {
            if is_target || self.changes {
                self.before = Before::Catalogue;
            }
        } else if is_target && is_pg(text) {
            // What becomes of these is known.
            if !matches!(meaning, Meaning::Rule(Form::Schema | Form::Updated, _)) {
                self.of_catalogue = true;
                self.alone(Alone::Pin);
            }
        }
    }

    /// Whether a statement may begin with the next word: at its own beginning, behind what WITH
    /// names, or in parentheses. Anywhere else `insert` is a name: of a column, or that a column
    /// is given.
    fn may_be_verb(&self) -> bool {
        match self.begins {
            Begins::Start => true,
            Begins::With if self.depth == 0 => self.before == Before::Close,
            Begins::With | Begins::Reads | Begins::Changes | Begins::Other => {
                self.before == Before::Open
            }
        }
    }

    /// Whether what is read may call one of PostgreSQL's that others must not.
    fn may_call(&self, name: &[u8]) -> bool {
        self.body.is_some_and(|body| body.may_wait) && only_waits(name)
    }

    /// What a `(` behind this name means.
    #[inline(never)] // Of few names a question.
    fn called(&self, name: &Name<'_>, before: Before, loud: Option<&Loud>) -> Callee {
        let is_given = match before {
            Before::Into | Before::IntoDot | Before::As => true,
            // An alias: but what is known as a function is taken for one.
            Before::Close => {
                !self.calls_behind
                    && !name.hidden.contains(Hidden::CALLED)
                    && builtin(name.text) != Some(Builtin::Exception)
            }
            // The next of those that WITH names.
            Before::Comma => self.begins == Begins::With && self.depth == 0,
            Before::Sign
            | Before::Open
            | Before::Delete
            | Before::Changes
            | Before::Catalogue
            | Before::Name
            | Before::Dot
            | Before::Distinct
            | Before::For
            | Before::IntoName => false,
        };
        let calls_nothing = match name.text.eq_ignore_ascii_case(b"operator") {
            true => Callee::Operator,
            false => Callee::Harmless,
        };
        if is_given {
            return calls_nothing;
        }
        if name.hidden.contains(Hidden::CALLED) {
            return Callee::Breaks(Alone::Opaque);
        }
        match builtin(name.text) {
            Some(Builtin::Quiet) => calls_nothing,
            Some(Builtin::Numbers) => Callee::Numbers,
            Some(Builtin::Exception) if self.may_call(name.text) => calls_nothing,
            Some(Builtin::Exception) => Callee::Breaks(Alone::Session),
            Some(Builtin::Grammar) if !name.quoted && before != Before::Dot => calls_nothing,
            Some(Builtin::Grammar) | None => {
                match loud.is_some_and(|loud| loud.is_quiet(name.text)) {
                    true => calls_nothing,
                    false => Callee::Breaks(Alone::Unknown),
                }
            }
        }
    }

    fn keyword(&mut self, keyword: Keyword, before: Before) {
        match keyword {
            Keyword::As | Keyword::With => self.before = Before::As,
            // Anywhere else they are names.
            Keyword::Ordinality | Keyword::Recursive if before == Before::As => {
                self.before = Before::As;
            }
            Keyword::Distinct => self.before = Before::Distinct,
            Keyword::On => self.calls_behind |= before == Before::Distinct,
            Keyword::For => self.before = Before::For,
            Keyword::No | Keyword::Key if before == Before::For => self.before = Before::For,
            Keyword::Share => self.locks |= before == Before::For,
            Keyword::Update => {
                let locks = before == Before::For;
                self.locks |= locks;
                self.changes |= !locks;
                if !locks {
                    self.before = Before::Changes;
                }
            }
            Keyword::Delete => {
                self.changes = true;
                self.before = Before::Delete;
            }
            Keyword::Insert | Keyword::Merge => self.changes = true,
            Keyword::Writes => self.before = Before::Changes,
            Keyword::Into => self.before = Before::Into,
            Keyword::Returning => self.returns = true,
            Keyword::Alter
            | Keyword::Commit
            | Keyword::Constraints
            | Keyword::Create
            | Keyword::Cursor
            | Keyword::Default
            | Keyword::Drop
            | Keyword::Global
            | Keyword::Key
            | Keyword::Local
            | Keyword::No
            | Keyword::Ordinality
            | Keyword::Recursive
            | Keyword::Replace
            | Keyword::Schema
            | Keyword::SearchPath
            | Keyword::Session
            | Keyword::Transaction => {}
        }
    }

    /// An INTO that is not that of INSERT or MERGE.
    pub(super) fn makes_table(&mut self) {
        self.alone(Alone::Into);
    }

    /// Whether the statement is a query.
    pub(super) fn reads(&self) -> bool {
        matches!(self.begins, Begins::Reads | Begins::With)
    }

    /// The first word of the statement.
    #[inline(never)] // Once a statement.
    fn first(&mut self, word: &[u8]) -> Begins {
        match (verb(word), self.body) {
            (Some(begins), _) if begins == Begins::Reads || self.depth == 0 => begins,
            (_, Some(body)) => {
                if body.runs_command(word) {
                    self.alone(Alone::Command);
                }
                Begins::Other
            }
            (_, None) => self.not_shared(),
        }
    }

    /// A word outside of all parentheses behind `WITH`: perhaps the one that says what is done with
    /// what is named there.
    #[inline(never)]
    fn behind_with(&mut self, word: &[u8], before: Before) {
        if before != Before::Close {
            return;
        }
        // What these make up is a name, which may be any word of the grammar.
        if word.eq_ignore_ascii_case(b"search") || word.eq_ignore_ascii_case(b"cycle") {
            self.alone(Alone::Command);
        }
        if let Some(begins) = verb(word) {
            self.begins = begins;
        }
    }

    /// The statement begins with a word of no kind that is shared, or, in a body, with a sign or a
    /// name in quotes, which is no command.
    fn not_shared(&mut self) -> Begins {
        if self.body.is_none() {
            self.alone(Alone::Command);
        }
        Begins::Other
    }

    pub(super) fn alone(&mut self, rule: Alone) {
        self.alone.get_or_insert(rule);
    }

    /// A `;`.
    pub(super) fn end_statement(&mut self) {
        self.answers |= !matches!(self.begins, Begins::Start | Begins::Changes);
        self.begins = Begins::Start;
        self.before = Before::Sign;
        self.callee = Callee::Harmless;
        self.depth = 0;
        self.calls_behind = false;
    }

    /// What a statement is, once it is over, that leaves nothing in the session. `change`: how the
    /// words in it say that it changes tables, or may.
    #[inline(never)] // Once a text.
    pub(super) fn sharing(&self, loud: Option<&Loud>, change: Change) -> Sharing {
        let hidden = |what| self.hidden.contains(what);
        let writes = change > Change::Nothing;
        let rule = if let Some(rule) = self.alone {
            Some(rule)
        } else if !loud.is_some_and(Loud::is_known) {
            Some(Alone::Catalogue)
        } else if loud.is_some_and(|loud| loud.unnamed().is_some()) {
            Some(Alone::Unnamed)
        } else if self.hidden.is_opaque(change) {
            Some(Alone::Opaque)
        } else if self.answers && hidden(Hidden::CHANGES) {
            Some(Alone::Changes)
        } else if hidden(Hidden::FOLDED) || (writes || self.changes) && self.folds() {
            Some(Alone::Folds)
        } else if self.changes && (self.answers || self.returns) {
            Some(Alone::Returning)
        } else {
            None
        };
        match rule {
            Some(rule) => Sharing::Alone(rule),
            None if self.changes => Sharing::Write,
            None if self.locks || hidden(Hidden::LOCKS) => Sharing::Lock,
            None => Sharing::Read,
        }
    }
}

fn verb(word: &[u8]) -> Option<Begins> {
    const READS: [&[u8]; 3] = [b"select", b"table", b"values"];
    const CHANGES: [&[u8]; 4] = [b"delete", b"insert", b"merge", b"update"];
    let is = |words: &[&[u8]]| words.iter().any(|one| word.eq_ignore_ascii_case(one));
    if is(&READS) {
        Some(Begins::Reads)
    } else if is(&CHANGES) {
        Some(Begins::Changes)
    } else {
        word.eq_ignore_ascii_case(b"with").then_some(Begins::With)
    }
}

impl Body {
    /// Whether a statement that begins with this word, and is none that reads or changes rows, is a
    /// command, which no quiet function runs.
    fn runs_command(self, word: &[u8]) -> bool {
        let is = |one: &str| word.eq_ignore_ascii_case(one.as_bytes());
        let is_one_of = |words: &str| words.split_ascii_whitespace().any(is);
        match self.is_plpgsql {
            true => is_one_of(COMMANDS),
            false => !is_one_of(OF_SQL_BODIES),
        }
    }
}

/// What a body in SQL says besides commands.
const OF_SQL_BODIES: &str = "atomic begin end return";

/// Commands that are no statements of PL/pgSQL too, and those with which it uses cursors, which are
/// there for all of the transaction.
const COMMANDS: &str = "\
    abort alter analyse analyze call checkpoint close cluster comment commit copy create \
    deallocate discard do drop explain fetch grant import listen load lock move notify open \
    prepare reassign refresh reindex release repack reset revoke rollback savepoint security set \
    show start truncate unlisten vacuum wait";

/// Whether a word of the grammar is a call, without a `(`, of an exception. (`CURRENT_USER` and its
/// like say what the client has set.)
fn is_called_alone(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"system_user")
}

/// Whether a word of the grammar may stand in front of the name of a table that is changed.
fn is_of_target(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"only") || word.eq_ignore_ascii_case(b"table")
}

/// Whether a name begins like those of PostgreSQL's own.
fn is_pg(name: &[u8]) -> bool {
    matches!(name, [b'p' | b'P', b'g' | b'G', b'_', ..])
}

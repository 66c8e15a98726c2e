//! The made-up statement language that fake clients and fake servers speak instead of SQL.
//!
//! `verb TAG arguments`, several of them joined by `;`. The tag says whose statement it is, and
//! everything that the statement causes carries it back. Verbs that leave state in a session
//! begin with the words by which PostgreSQL's own statements would be known, because pgweir looks
//! for these. What pgweir itself sends is understood too, and has no tag.
//!
//! Long because: each verb has its lines here, in both directions.

use std::fmt;

pub(crate) use keep::Keep;
pub(crate) use unseen::catalogue;
use unseen::{MAKES_TABLE, TAKES_LOCK};

mod keep;
mod unseen;

/// Which statement: of which client's life, and the how-manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag {
    pub(crate) client: u32,
    pub(crate) number: u32,
}

impl Tag {
    /// Of a text that many clients prepare, letter by letter: it is nobody's.
    pub(crate) fn common(number: u32) -> Self {
        Self { client: u32::MAX, number }
    }

    pub(crate) fn is_common(self) -> bool {
        self.client == u32::MAX
    }

    /// Whether what it leaves is done by a function, if that can be: no text shows it.
    fn is_unseen(self) -> bool {
        self.number.is_multiple_of(2)
    }

    /// Whether a statement that is by itself begins with a word by which pgweir knows that it may
    /// share a server.
    pub(crate) fn is_closed(self) -> bool {
        !self.number.is_multiple_of(3)
    }

    /// Whether such a one that takes a lock only reads what it locks.
    fn reads_what_it_locks(self) -> bool {
        self.number % 3 == 1
    }

    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (client, number) = text.strip_prefix('c')?.split_once('s')?;
        Some(Self { client: client.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}s{}", self.client, self.number)
    }
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Changes what the rows of `Shaped` are like: the last column has its tag for a name then.
    Alter,
    /// Opens a transaction block.
    Begin,
    /// One row with a value of so many bytes.
    Big(u32),
    /// As `Rollback`, and opens another transaction block.
    Chain,
    Commit,
    /// Changes the schema: makes what nobody calls.
    Create,
    /// COPY FROM STDIN; fails by itself when it has read so many messages.
    CopyIn {
        fails_at: Option<u32>,
    },
    /// COPY TO STDOUT of so many messages.
    CopyOut(u32),
    /// Removes a statement that `Prepare` has made.
    Deallocate {
        name: String,
    },
    /// A cursor that outlives its transaction.
    Declare {
        name: String,
    },
    /// As `Write`, but with a constraint that fails at the end of the transaction.
    Defer,
    /// Removes what the session has of one kind, or of all.
    Discard(Kind),
    /// Carries out what `Prepare` has made.
    Execute {
        name: String,
    },
    /// An error.
    Fail,
    /// One row of a cursor: the tag of the statement that has declared it.
    Fetch {
        name: String,
    },
    /// A change of the database for which its disk has no room.
    Fill,
    /// Leaves what no DISCARD removes.
    Keep(Keep),
    /// Listens on a channel, from the end of the transaction on.
    Listen {
        channel: String,
    },
    /// Takes a lock that nobody else has at the same time, and waits for it; `session`: beyond the
    /// end of the transaction.
    Lock {
        key: u32,
        session: bool,
    },
    /// So many notices.
    Notice(u32),
    /// Notifies whoever listens on the channel, at the end of the transaction.
    Notify {
        channel: String,
    },
    /// Makes a statement with a name: a write, or so many rows.
    Prepare {
        name: String,
        rows: Option<u32>,
    },
    /// Ends a subtransaction well.
    Release {
        name: String,
    },
    /// Takes a setting back to what it was at the login, or all of them.
    Reset {
        name: Option<String>,
    },
    Rollback,
    /// Undoes what was done since the savepoint.
    RollbackTo {
        name: String,
    },
    /// So many rows.
    Rows(u32),
    /// Begins a subtransaction.
    Savepoint {
        name: String,
    },
    /// Advances a sequence, which changes what `lastval` says.
    Sequence,
    /// Asks for what `lastval` says, and does without where that is nothing.
    LastValue,
    /// Changes a setting of the session; `local`: of the transaction only.
    Set {
        name: String,
        value: String,
        local: bool,
    },
    /// So many rows of a kind that `Alter` changes.
    Shaped(u32),
    /// One row with the value of a setting.
    Show {
        name: String,
    },
    /// Takes so many milliseconds.
    Sleep(u32),
    /// Creates a temporary table.
    Temp,
    /// Listens no more: on this channel, or on any.
    Unlisten {
        channel: Option<String>,
    },
    /// Gives a lock of the session back.
    Unlock {
        key: u32,
    },
    /// Changes the database: counts once it is committed.
    Write,
}

/// What DISCARD removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    All,
    Plans,
    Sequences,
    Temp,
}

impl Kind {
    pub(crate) const EACH: [Self; 4] = [Self::All, Self::Plans, Self::Sequences, Self::Temp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Plans => "plans",
            Self::Sequences => "sequences",
            Self::Temp => "temp",
        }
    }
}

impl Verb {
    /// Whether it returns rows that a Describe tells of. Those of `Execute` and `Fetch` depend on
    /// the session: clients use them in simple queries only.
    pub(crate) fn returns_rows(&self) -> bool {
        match self {
            Self::Big(_)
            | Self::Fetch { .. }
            | Self::Rows(_)
            | Self::Shaped(_)
            | Self::Show { .. } => true,
            Self::Alter
            | Self::Begin
            | Self::Chain
            | Self::Commit
            | Self::CopyIn { .. }
            | Self::CopyOut(_)
            | Self::Create
            | Self::Deallocate { .. }
            | Self::Declare { .. }
            | Self::Defer
            | Self::Discard(_)
            | Self::Execute { .. }
            | Self::Fail
            | Self::Fill
            | Self::Keep(_)
            | Self::Listen { .. }
            | Self::Lock { .. }
            | Self::Notice(_)
            | Self::Notify { .. }
            | Self::Prepare { .. }
            | Self::Release { .. }
            | Self::Reset { .. }
            | Self::Rollback
            | Self::RollbackTo { .. }
            | Self::Savepoint { .. }
            | Self::Sequence
            | Self::LastValue
            | Self::Set { .. }
            | Self::Sleep(_)
            | Self::Temp
            | Self::Unlisten { .. }
            | Self::Unlock { .. }
            | Self::Write => false,
        }
    }

    /// Whether it leaves something in the session, or may.
    pub(crate) fn leaves_state(&self) -> bool {
        !matches!(
            self,
            Self::Begin
                | Self::Big(_)
                | Self::Chain
                | Self::Commit
                | Self::CopyIn { .. }
                | Self::CopyOut(_)
                | Self::Defer
                | Self::Fail
                | Self::Fill
                | Self::Notice(_)
                | Self::Release { .. }
                | Self::Rollback
                | Self::RollbackTo { .. }
                | Self::Rows(_)
                | Self::Savepoint { .. }
                | Self::Shaped(_)
                | Self::Show { .. }
                | Self::Sleep(_)
                | Self::Write
        )
    }

    /// Whether it ends a transaction block or a part of one, and so is allowed in a failed one.
    pub(crate) fn is_exit(&self) -> bool {
        matches!(self, Self::Chain | Self::Commit | Self::Rollback | Self::RollbackTo { .. })
    }
}

/// A statement of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) tag: Tag,
    pub(crate) verb: Verb,
}

impl Statement {
    /// Whether it only reads, as its text shows: then it may be run again where its server is lost.
    pub(crate) fn may_be_repeated(&self) -> bool {
        let reads = match self.verb {
            Verb::Big(_) | Verb::Fail | Verb::Rows(_) | Verb::Shaped(_) | Verb::Sleep(_) => true,
            Verb::Lock { session: false, .. } => self.tag.reads_what_it_locks(),
            _ => false,
        };
        reads && self.tag.is_closed()
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tag = self.tag;
        match &self.verb {
            Verb::Alter => write!(f, "alter {tag} shape"),
            Verb::Begin => write!(f, "begin {tag}"),
            Verb::Big(bytes) if tag.is_closed() => write!(f, "select {tag} big {bytes}"),
            Verb::Big(bytes) => write!(f, "big {tag} {bytes}"),
            Verb::Chain => write!(f, "rollback and chain /*{tag}*/"),
            Verb::Commit => write!(f, "commit {tag}"),
            Verb::Create => write!(f, "create {tag} thing"),
            Verb::CopyIn { fails_at: None } => write!(f, "copy_in {tag}"),
            Verb::CopyIn { fails_at: Some(at) } => write!(f, "copy_in {tag} {at}"),
            Verb::CopyOut(messages) => write!(f, "copy_out {tag} {messages}"),
            Verb::Deallocate { name } => write!(f, "deallocate {name} /*{tag}*/"),
            Verb::Declare { name } => write!(f, "declare {tag} {name} cursor with hold"),
            Verb::Defer => write!(f, "defer {tag}"),
            Verb::Execute { name } => write!(f, "execute {tag} {name}"),
            Verb::Fail if tag.is_closed() => write!(f, "select {tag} fail"),
            Verb::Fail => write!(f, "fail {tag}"),
            Verb::Fetch { name } => write!(f, "fetch {tag} {name}"),
            Verb::Fill => write!(f, "fill {tag}"),
            Verb::Keep(Keep::Library) => write!(f, "load {tag} {}", Keep::Library.words()),
            Verb::Keep(keep) => write!(f, "call {tag} {}", keep.words()),
            Verb::Listen { channel } => write!(f, "listen {tag} {channel}"),
            Verb::Lock { key, session: true } => {
                let name = if tag.is_unseen() { TAKES_LOCK } else { "pg_advisory_lock" };
                write!(f, "call {tag} {name}({key})")
            }
            Verb::Lock { key, session: false } if !tag.is_closed() => {
                write!(f, "call {tag} pg_advisory_xact_lock({key})")
            }
            Verb::Lock { key, session: false } if tag.reads_what_it_locks() => {
                write!(f, "select {tag} lock {key} for update")
            }
            Verb::Lock { key, session: false } => write!(f, "update {tag} lock {key}"),
            Verb::Notice(count) => write!(f, "notice {tag} {count}"),
            Verb::Notify { channel } => write!(f, "notify {tag} {channel}"),
            Verb::Prepare { name, rows: None } => write!(f, "prepare {tag} {name} write"),
            Verb::Prepare { name, rows: Some(rows) } => write!(f, "prepare {tag} {name} {rows}"),
            Verb::Release { name } => write!(f, "release {tag} {name}"),
            // pgweir looks at all of these, and of DEALLOCATE.
            Verb::Reset { name } => {
                write!(f, "reset {} /*{tag}*/", name.as_deref().unwrap_or("all"))
            }
            Verb::Discard(kind) => write!(f, "discard {} /*{tag}*/", kind.name()),
            Verb::Rollback => write!(f, "rollback /*{tag}*/"),
            Verb::RollbackTo { name } => write!(f, "rollback to {name} /*{tag}*/"),
            Verb::Rows(rows) if tag.is_closed() => write!(f, "select {tag} rows {rows}"),
            Verb::Rows(rows) => write!(f, "rows {tag} {rows}"),
            Verb::Savepoint { name } => write!(f, "savepoint {tag} {name}"),
            Verb::Sequence => write!(f, "call {tag} nextval()"),
            Verb::LastValue => write!(f, "call {tag} lastval()"),
            Verb::Set { name, value, local: false } => write!(f, "set {tag} {name} {value}"),
            Verb::Set { name, value, local: true } => write!(f, "set local {tag} {name} {value}"),
            Verb::Shaped(rows) if tag.is_closed() => write!(f, "select {tag} shaped {rows}"),
            Verb::Shaped(rows) => write!(f, "shaped {tag} {rows}"),
            Verb::Show { name } => write!(f, "show {tag} {name}"),
            Verb::Sleep(ms) if tag.is_closed() => write!(f, "select {tag} sleep {ms}"),
            Verb::Sleep(ms) => write!(f, "sleep {tag} {ms}"),
            Verb::Temp if tag.is_unseen() => write!(f, "call {tag} {MAKES_TABLE}()"),
            Verb::Temp => write!(f, "create temp {tag}"),
            Verb::Unlisten { channel } => {
                write!(f, "unlisten {tag} {}", channel.as_deref().unwrap_or("*"))
            }
            Verb::Unlock { key } => write!(f, "call {tag} pg_advisory_unlock({key})"),
            Verb::Write if tag.is_closed() => write!(f, "update {tag}"),
            Verb::Write => write!(f, "write {tag}"),
        }
    }
}

/// A statement as a server finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Client(Statement),
    /// pgweir's: asks what there is in the catalogue.
    Catalogue,
    /// pgweir's: listens on a channel for its clients.
    Listen(String),
    /// pgweir's: listens no more on this channel, or on any.
    Unlisten(Option<String>),
    /// pgweir's: says where one server takes over from another: a channel, and a number.
    Mark(String, String),
    /// pgweir's: removes what a session has left.
    DiscardAll,
    /// pgweir's: has a session forget what functions have planned.
    DiscardPlans,
    /// pgweir's: has a session forget the sequences of its last client.
    DiscardSequences,
    /// pgweir's: a transaction that has failed, for a client that has lost its own.
    FailedTransaction,
    /// pgweir's: ends a transaction whose client is gone.
    Rollback,
    /// pgweir's: sets again what a client has asked for at its login and a RESET has taken back.
    PutBack(Vec<(String, Option<String>)>),
    /// pgweir's: asks what the server has room for.
    Room,
    /// pgweir's: asks what the session is set to, and for these settings that no list shows.
    Settings(Vec<String>),
    /// pgweir's: asks which of these kinds of state there are, by their letters.
    State(String),
    /// pgweir's: brings a server to a client's settings; no value means the default.
    SetConfig(Vec<(String, Option<String>)>),
}

impl Line {
    pub(crate) fn tag(&self) -> Option<Tag> {
        match self {
            Self::Client(statement) => Some(statement.tag),
            Self::Catalogue
            | Self::Listen(_)
            | Self::Mark(..)
            | Self::Unlisten(_)
            | Self::DiscardAll
            | Self::DiscardPlans
            | Self::DiscardSequences
            | Self::FailedTransaction
            | Self::Rollback
            | Self::PutBack(_)
            | Self::Room
            | Self::SetConfig(_)
            | Self::Settings(_)
            | Self::State(_) => None,
        }
    }

    pub(crate) fn is_locking(&self) -> bool {
        matches!(self, Self::Client(Statement { verb: Verb::Alter | Verb::Lock { .. }, .. }))
    }

    /// Whether its rows are of the kind that `Alter` changes.
    pub(crate) fn is_shaped(&self) -> bool {
        matches!(self, Self::Client(Statement { verb: Verb::Shaped(_), .. }))
    }

    /// Whether it is pgweir's, and brings the server to settings that it is lent with.
    pub(crate) fn sets_settings(&self) -> bool {
        matches!(self, Self::SetConfig(_))
    }

    pub(crate) fn is_exit(&self) -> bool {
        match self {
            Self::Client(statement) => statement.verb.is_exit(),
            Self::Rollback => true,
            Self::Catalogue
            | Self::Listen(_)
            | Self::Mark(..)
            | Self::Unlisten(_)
            | Self::DiscardAll
            | Self::DiscardPlans
            | Self::DiscardSequences
            | Self::FailedTransaction
            | Self::PutBack(_)
            | Self::Room
            | Self::SetConfig(_)
            | Self::Settings(_)
            | Self::State(_) => false,
        }
    }
}

/// The statements of a query string, or none of them if one is not understood.
pub(crate) fn parse(text: &[u8]) -> Option<Vec<Line>> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(sets) = text.strip_prefix("DISCARD PLANS; ") {
        return Some([vec![Line::DiscardPlans], parse(sets.as_bytes())?].concat());
    }
    if let Some(calls) = text.strip_prefix("SELECT ARRAY[pg_catalog.set_config(") {
        return Some(vec![Line::SetConfig(set_config(calls.strip_suffix("] IS NULL")?)?)]);
    }
    if text.starts_with("WITH s AS MATERIALIZED (") {
        let calls = text.split(" THEN pg_catalog.set_config(").skip(1);
        let pairs = calls.map(|call| set_config(&call[..call.find(" END")?]));
        return Some(vec![Line::PutBack(pairs.collect::<Option<Vec<_>>>()?.concat())]);
    }
    if text.starts_with("SELECT pg_catalog.encode(pg_catalog.convert_to(s.n, ") {
        let custom = text.split(" UNION ALL SELECT ").skip(3);
        let names = custom.map(|part| argument(part).map(|(name, _)| name));
        return Some(vec![Line::Settings(names.collect::<Option<_>>()?)]);
    }
    if let Some(kinds) = text.strip_prefix("SELECT s.k FROM (") {
        let letters = kinds.split("SELECT '").skip(1).map(|part| part.chars().next());
        return Some(vec![Line::State(letters.collect::<Option<_>>()?)]);
    }
    if text.starts_with("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ") {
        return Some(vec![Line::Catalogue]);
    }
    if text.starts_with("SELECT pg_catalog.current_setting('max_connections')") {
        return Some(vec![Line::Room]);
    }
    if text.starts_with("BEGIN; SELECT CAST('the transaction was lost") {
        return Some(vec![Line::FailedTransaction]);
    }
    let text = without_comments(text);
    let statements = text.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    statements.map(line).collect()
}

/// What stands in quotes.
fn quoted(name: &str) -> Option<String> {
    Some(name.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

fn line(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u32>().ok();
    let (at, verb) = match words[..] {
        ["ROLLBACK"] => return Some(Line::Rollback),
        ["DISCARD", "ALL"] => return Some(Line::DiscardAll),
        ["DISCARD", "PLANS"] => return Some(Line::DiscardPlans),
        ["DISCARD", "SEQUENCES"] => return Some(Line::DiscardSequences),
        ["LISTEN", channel] => return Some(Line::Listen(quoted(channel)?)),
        ["UNLISTEN", "*"] => return Some(Line::Unlisten(None)),
        ["UNLISTEN", channel] => return Some(Line::Unlisten(Some(quoted(channel)?))),
        ["NOTIFY", channel, number] => {
            let number = number.trim_matches('\'').to_owned();
            return Some(Line::Mark(quoted(channel.strip_suffix(',')?)?, number));
        }
        ["create", "temp", _] => (2, Verb::Temp),
        ["create", _, "thing"] => (1, Verb::Create),
        ["rollback", "and", "chain", _] => (3, Verb::Chain),
        ["rollback", "to", name, _] => (3, Verb::RollbackTo { name: name.into() }),
        ["set", "local", _, name, value] => {
            (2, Verb::Set { name: name.into(), value: value.into(), local: true })
        }
        ["call" | "load", _, function] => (1, call(function)?),
        ["alter", _, "shape"] => (1, Verb::Alter),
        ["begin", _] => (1, Verb::Begin),
        ["big", _, _] => (1, Verb::Big(number(2)?)),
        ["commit", _] => (1, Verb::Commit),
        ["copy_in", _] => (1, Verb::CopyIn { fails_at: None }),
        ["copy_in", _, _] => (1, Verb::CopyIn { fails_at: Some(number(2)?) }),
        ["copy_out", _, _] => (1, Verb::CopyOut(number(2)?)),
        ["deallocate", name, _] => (2, Verb::Deallocate { name: name.into() }),
        ["declare", _, name, "cursor", "with", "hold"] => (1, Verb::Declare { name: name.into() }),
        ["defer", _] => (1, Verb::Defer),
        ["discard", what, _] => {
            (2, Verb::Discard(Kind::EACH.into_iter().find(|kind| kind.name() == what)?))
        }
        ["execute", _, name] => (1, Verb::Execute { name: name.into() }),
        ["fail", _] => (1, Verb::Fail),
        ["fetch", _, name] => (1, Verb::Fetch { name: name.into() }),
        ["fill", _] => (1, Verb::Fill),
        ["listen", _, channel] => (1, Verb::Listen { channel: channel.into() }),
        ["notice", _, _] => (1, Verb::Notice(number(2)?)),
        ["notify", _, channel] => (1, Verb::Notify { channel: channel.into() }),
        ["prepare", _, name, "write"] => (1, Verb::Prepare { name: name.into(), rows: None }),
        ["prepare", _, name, _] => (1, Verb::Prepare { name: name.into(), rows: Some(number(3)?) }),
        ["release", _, name] => (1, Verb::Release { name: name.into() }),
        ["reset", "all", _] => (2, Verb::Reset { name: None }),
        ["reset", name, _] => (2, Verb::Reset { name: Some(name.into()) }),
        ["rollback", _] => (1, Verb::Rollback),
        ["rows", _, _] => (1, Verb::Rows(number(2)?)),
        ["savepoint", _, name] => (1, Verb::Savepoint { name: name.into() }),
        ["set", _, name, value] => {
            (1, Verb::Set { name: name.into(), value: value.into(), local: false })
        }
        ["shaped", _, _] => (1, Verb::Shaped(number(2)?)),
        ["show", _, name] => (1, Verb::Show { name: name.into() }),
        ["sleep", _, _] => (1, Verb::Sleep(number(2)?)),
        ["unlisten", _, "*"] => (1, Verb::Unlisten { channel: None }),
        ["unlisten", _, channel] => (1, Verb::Unlisten { channel: Some(channel.into()) }),
        ["select", _, "big", _] => (1, Verb::Big(number(3)?)),
        ["select", _, "fail"] => (1, Verb::Fail),
        ["select", _, "lock", _, "for", "update"] | ["update", _, "lock", _] => {
            (1, Verb::Lock { key: number(3)?, session: false })
        }
        ["select", _, "rows", _] => (1, Verb::Rows(number(3)?)),
        ["select", _, "shaped", _] => (1, Verb::Shaped(number(3)?)),
        ["select", _, "sleep", _] => (1, Verb::Sleep(number(3)?)),
        ["update" | "write", _] => (1, Verb::Write),
        _ => return None,
    };
    let tag = Tag::parse(words[at].as_bytes())?;
    Some(Line::Client(Statement { tag, verb }))
}

/// What a function does.
fn call(function: &str) -> Option<Verb> {
    let kept = Keep::EACH.into_iter().find(|keep| keep.words() == function);
    if let Some(keep) = kept {
        return Some(Verb::Keep(keep));
    }
    let (name, argument) = function.strip_suffix(')')?.split_once('(')?;
    let key = argument.parse::<u32>();
    match name {
        "nextval" => Some(Verb::Sequence),
        "lastval" => Some(Verb::LastValue),
        MAKES_TABLE => Some(Verb::Temp),
        "pg_advisory_lock" | TAKES_LOCK => Some(Verb::Lock { key: key.ok()?, session: true }),
        "pg_advisory_xact_lock" => Some(Verb::Lock { key: key.ok()?, session: false }),
        "pg_advisory_unlock" => Some(Verb::Unlock { key: key.ok()? }),
        _ => None,
    }
}

/// A tag that stands in a comment stays.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        let (comment, behind) = comment.split_once("*/").unwrap_or_default();
        kept.push_str(if Tag::parse(comment.as_bytes()).is_some() { comment } else { "" });
        rest = behind;
    }
    kept.push_str(rest);
    kept
}

/// The arguments of one or more calls of `set_config`, behind the first parenthesis.
fn set_config(calls: &str) -> Option<Vec<(String, Option<String>)>> {
    let mut pairs = Vec::new();
    let mut rest = calls;
    loop {
        let (name, behind) = argument(rest)?;
        let behind = behind.strip_prefix(", ")?;
        let (value, behind) = match behind.strip_prefix("NULL") {
            Some(behind) => (None, behind),
            None => argument(behind).map(|(value, behind)| (Some(value), behind))?,
        };
        pairs.push((name.to_ascii_lowercase(), value));
        let behind = behind.strip_prefix(", false)")?;
        match behind.strip_prefix(", pg_catalog.set_config(") {
            Some(next) => rest = next,
            None if behind.is_empty() => return Some(pairs),
            None => return None,
        }
    }
}

/// The text at the front, and what is behind it. Only plain ASCII is the same in all encodings.
fn argument(text: &str) -> Option<(String, &str)> {
    let Some(hex) = text.strip_prefix("pg_catalog.convert_from(pg_catalog.decode(") else {
        return literal(text).filter(|(value, _)| value.is_ascii());
    };
    let (hex, behind) = literal(hex)?;
    let behind = behind.strip_prefix(", 'hex'), pg_catalog.getdatabaseencoding())")?;
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes = digits.map(|pair| u8::from_str_radix(pair?, 16).ok());
    Some((String::from_utf8(bytes.collect::<Option<_>>()?).ok()?, behind))
}

/// The string literal at the front, and what is behind it.
fn literal(text: &str) -> Option<(String, &str)> {
    let (escapes, text) = match text.strip_prefix('E') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let mut value = String::new();
    let mut chars = text.strip_prefix('\'')?.char_indices().peekable();
    let body = &text[1..];
    while let Some((at, char)) = chars.next() {
        match char {
            '\'' if chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                value.push('\'');
                chars.next();
            }
            '\'' => return Some((value, &body[at + 1..])),
            '\\' if escapes => value.push(chars.next()?.1),
            _ => value.push(char),
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod sql;
#[cfg(test)]
mod tests;

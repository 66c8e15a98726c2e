//! The made-up statement language that fake clients and fake servers speak instead of SQL.
//!
//! `verb TAG arguments`, several of them joined by `;`. The tag says whose statement it is, and
//! everything that the statement causes carries it back. Verbs that leave state in a session
//! begin with the words by which PostgreSQL's own statements would be known, because pgweir looks
//! for these. What pgweir itself sends is understood too, and has no tag.

use std::fmt;

/// Which statement: of which client's life, and the how-manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag {
    pub(crate) client: u32,
    pub(crate) number: u32,
}

impl Tag {
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
    /// Opens a transaction block.
    Begin,
    /// One row with a value of so many bytes.
    Big(u32),
    /// As `Rollback`, and opens another transaction block.
    Chain,
    Commit,
    /// COPY FROM STDIN; fails by itself when it has read so many messages.
    CopyIn {
        fails_at: Option<u32>,
    },
    /// COPY TO STDOUT of so many messages.
    CopyOut(u32),
    /// As `Write`, but with a constraint that fails at the end of the transaction.
    Defer,
    /// An error.
    Fail,
    /// A change of the database for which its disk has no room.
    Fill,
    /// Listens on the one channel that there is.
    Listen,
    /// Loads a library, which nothing unloads.
    Load,
    /// So many notices.
    Notice(u32),
    /// Notifies whoever listens, at the end of the transaction.
    Notify,
    Rollback,
    /// So many rows.
    Rows(u32),
    /// Changes a setting of the session.
    Set {
        name: String,
        value: String,
    },
    /// One row with the value of a setting.
    Show {
        name: String,
    },
    /// Takes so many milliseconds.
    Sleep(u32),
    /// Creates a temporary table.
    Temp,
    /// Changes the database: counts once it is committed.
    Write,
}

impl Verb {
    pub(crate) fn returns_rows(&self) -> bool {
        match self {
            Self::Big(_) | Self::Rows(_) | Self::Show { .. } => true,
            Self::Begin
            | Self::Chain
            | Self::Commit
            | Self::CopyIn { .. }
            | Self::CopyOut(_)
            | Self::Defer
            | Self::Fail
            | Self::Fill
            | Self::Listen
            | Self::Load
            | Self::Notice(_)
            | Self::Notify
            | Self::Rollback
            | Self::Set { .. }
            | Self::Sleep(_)
            | Self::Temp
            | Self::Write => false,
        }
    }

    /// Whether it leaves something in the session.
    pub(crate) fn leaves_state(&self) -> bool {
        matches!(self, Self::Listen | Self::Load | Self::Set { .. } | Self::Temp)
    }

    /// Whether it ends a transaction block, and so is allowed in a failed one.
    pub(crate) fn is_exit(&self) -> bool {
        matches!(self, Self::Chain | Self::Commit | Self::Rollback)
    }
}

/// A statement of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) tag: Tag,
    pub(crate) verb: Verb,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tag = self.tag;
        match &self.verb {
            Verb::Begin => write!(f, "begin {tag}"),
            Verb::Big(bytes) => write!(f, "big {tag} {bytes}"),
            Verb::Chain => write!(f, "rollback and chain /*{tag}*/"),
            Verb::Commit => write!(f, "commit {tag}"),
            Verb::CopyIn { fails_at: None } => write!(f, "copy_in {tag}"),
            Verb::CopyIn { fails_at: Some(at) } => write!(f, "copy_in {tag} {at}"),
            Verb::CopyOut(messages) => write!(f, "copy_out {tag} {messages}"),
            Verb::Defer => write!(f, "defer {tag}"),
            Verb::Fail => write!(f, "fail {tag}"),
            Verb::Fill => write!(f, "fill {tag}"),
            Verb::Listen => write!(f, "listen {tag}"),
            Verb::Load => write!(f, "load {tag}"),
            Verb::Notice(count) => write!(f, "notice {tag} {count}"),
            Verb::Notify => write!(f, "notify {tag}"),
            // pgweir looks at all of these two.
            Verb::Rollback => write!(f, "rollback /*{tag}*/"),
            Verb::Rows(rows) => write!(f, "rows {tag} {rows}"),
            Verb::Set { name, value } => write!(f, "set {tag} {name} {value}"),
            Verb::Show { name } => write!(f, "show {tag} {name}"),
            Verb::Sleep(ms) => write!(f, "sleep {tag} {ms}"),
            Verb::Temp => write!(f, "create temp {tag}"),
            Verb::Write => write!(f, "write {tag}"),
        }
    }
}

/// A statement as a server finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Client(Statement),
    /// pgweir's: removes what a session has left.
    DiscardAll,
    /// pgweir's: a transaction that has failed, for a client that has lost its own.
    FailedTransaction,
    /// pgweir's: ends a transaction whose client is gone.
    Rollback,
    /// pgweir's: asks what the server has room for.
    Room,
    /// pgweir's: brings a server to a client's settings; no value means the default.
    SetConfig(Vec<(String, Option<String>)>),
}

impl Line {
    pub(crate) fn tag(&self) -> Option<Tag> {
        match self {
            Self::Client(statement) => Some(statement.tag),
            Self::DiscardAll
            | Self::FailedTransaction
            | Self::Rollback
            | Self::Room
            | Self::SetConfig(_) => None,
        }
    }

    pub(crate) fn is_exit(&self) -> bool {
        match self {
            Self::Client(statement) => statement.verb.is_exit(),
            Self::Rollback => true,
            Self::DiscardAll | Self::FailedTransaction | Self::Room | Self::SetConfig(_) => false,
        }
    }
}

/// The statements of a query string, or none of them if one is not understood.
pub(crate) fn parse(text: &[u8]) -> Option<Vec<Line>> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(calls) = text.strip_prefix("SELECT ARRAY[pg_catalog.set_config(") {
        return Some(vec![Line::SetConfig(set_config(calls.strip_suffix("] IS NULL")?)?)]);
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

fn line(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u32>().ok();
    let verb = match words[..] {
        ["ROLLBACK"] => return Some(Line::Rollback),
        ["DISCARD", "ALL"] => return Some(Line::DiscardAll),
        ["create", "temp", _] => Verb::Temp,
        ["rollback", "and", "chain", _] => Verb::Chain,
        ["begin", _] => Verb::Begin,
        ["big", _, _] => Verb::Big(number(2)?),
        ["commit", _] => Verb::Commit,
        ["copy_in", _] => Verb::CopyIn { fails_at: None },
        ["copy_in", _, _] => Verb::CopyIn { fails_at: Some(number(2)?) },
        ["copy_out", _, _] => Verb::CopyOut(number(2)?),
        ["defer", _] => Verb::Defer,
        ["fail", _] => Verb::Fail,
        ["fill", _] => Verb::Fill,
        ["listen", _] => Verb::Listen,
        ["load", _] => Verb::Load,
        ["notice", _, _] => Verb::Notice(number(2)?),
        ["notify", _] => Verb::Notify,
        ["rollback", _] => Verb::Rollback,
        ["rows", _, _] => Verb::Rows(number(2)?),
        ["set", _, name, value] => Verb::Set { name: name.into(), value: value.into() },
        ["show", _, name] => Verb::Show { name: name.into() },
        ["sleep", _, _] => Verb::Sleep(number(2)?),
        ["write", _] => Verb::Write,
        _ => return None,
    };
    let at = match verb {
        Verb::Chain => 3,
        Verb::Temp => 2,
        _ => 1,
    };
    let tag = Tag::parse(words[at].as_bytes())?;
    Some(Line::Client(Statement { tag, verb }))
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
mod tests;

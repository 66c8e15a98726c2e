//! What the table of settings says about each of them.

use crate::settings::SETTINGS;

/// One setting: a row of [`SETTINGS`].
#[derive(Debug)]
pub struct Setting {
    /// Where it stands.
    pub section: Section,
    /// Its name in every TOML dialect.
    pub name: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// Its unit and default in pgcat.toml.
    pub pgcat: Column,
    /// Whether it does something.
    pub effect: Effect,
    /// What it is, in one sentence.
    pub doc: &'static str,
}

impl Setting {
    /// The row of `name` in `section`.
    pub fn find(section: Section, name: &str) -> Option<&'static Self> {
        Self::all(section).find(|setting| setting.name == name)
    }

    /// The rows of `section`, in the order of the table.
    pub fn all(section: Section) -> impl Iterator<Item = &'static Self> {
        SETTINGS.iter().filter(move |setting| setting.section == section)
    }

    /// What one dialect says about it.
    pub fn column(&self, dialect: Dialect) -> &Column {
        match dialect {
            Dialect::Pgcat => &self.pgcat,
        }
    }
}

/// A kind of file. It decides names, units and defaults, and nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dialect {
    /// TOML without `config_version`: PgCat's format.
    Pgcat,
}

/// What one dialect says about a setting.
#[derive(Debug)]
pub struct Column {
    /// What a bare number counts.
    pub unit: Unit,
    /// What holds where the file says nothing.
    pub fallback: Fallback,
}

/// What holds where the file says nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fallback {
    /// Nothing: the setting is off.
    Absent,
    /// The setting of the same name in the next section outwards that has it.
    Outer,
    /// Nothing may be missing here: it is an error.
    Required,
    /// Another setting of the same section.
    Same(&'static str),
    /// This value, as it would be written without quotes.
    Text(&'static str),
}

/// A place for settings. The sections contain each other in this order, a user and a shard
/// both standing in a pool.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Section {
    /// The top of the file.
    Root,
    /// `[general]`
    General,
    /// `[pools.NAME]`
    Pool,
    /// `[pools.NAME.users.N]`
    User,
    /// `[pools.NAME.shards.N]`
    Shard,
}

impl Section {
    /// The header as messages write it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Root => "the top of the file",
            Self::General => "[general]",
            Self::Pool => "[pools.NAME]",
            Self::User => "[pools.NAME.users.N]",
            Self::Shard => "[pools.NAME.shards.N]",
        }
    }
}

/// What a setting may hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Anything: nothing reads it.
    Any,
    /// `true` or `false`.
    Flag,
    /// A name or an address to listen on or to connect to, over TCP.
    Host,
    /// A whole number between these two, both included.
    Integer(u64, u64),
    /// A text that is not empty.
    Name,
    /// A text that is never printed.
    Secret,
    /// One section.
    Section(Section),
    /// Sections that have a name each, at least one of them.
    Sections(Section),
    /// Sections that have a number each, at least one of them.
    SectionsByNumber(Section),
    /// Servers: `[["127.0.0.1", 5432, "primary"]]`.
    Servers,
    /// Statements, perhaps none. In ASCII, which means the same in whatever encoding the client
    /// has left its server.
    Sql,
    /// A text, perhaps an empty one.
    Text,
    /// A length of time.
    Time(Zero),
    /// One of these words, in capitals or not.
    Word(&'static [&'static str]),
}

/// What a time of zero says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Zero {
    /// Do not wait at all.
    AtOnce,
    /// There is no limit, or the kernel's own.
    Off,
    /// It is an error.
    Refused,
}

/// What a bare number counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Thousandths of a second.
    Milliseconds,
    /// Whatever the setting is a number of.
    One,
    /// Seconds.
    Seconds,
}

/// Whether a setting does something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// It does not and will not, for this reason.
    Never(&'static str),
    /// It does not, though other versions may: what happens `instead` of it, to be added to
    /// the warning. There is no warning for the value `unless`, which asks for just that.
    NotYet {
        /// The value that is what happens anyway, if there is one.
        unless: Option<&'static str>,
        /// What happens in its place; may be empty.
        instead: &'static str,
    },
    /// It does.
    Now,
}

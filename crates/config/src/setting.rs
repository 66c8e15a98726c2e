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
    /// What a bare number counts in pgcat.toml, and its default there.
    pub pgcat: Column,
    /// How our own dialect differs from that.
    pub ours: Ours,
    /// How the flat form of pgcat.toml differs from that.
    pub flat: Flat,
    /// Whether it does something.
    pub effect: Effect,
    /// When a change of it is heeded.
    pub changes: Changes,
    /// What it is, in one sentence.
    pub doc: &'static str,
}

impl Setting {
    /// The row of `name` in `section`, if that dialect has it.
    pub fn find(dialect: Dialect, section: Section, name: &str) -> Option<&'static Self> {
        Self::all(dialect, section).find(|setting| setting.name == name)
    }

    /// The rows of `section` in one dialect, in the order of the table.
    pub fn all(dialect: Dialect, section: Section) -> impl Iterator<Item = &'static Self> {
        let in_dialect = move |setting: &&Self| match dialect {
            Dialect::Own => setting.ours != Ours::Unknown,
            Dialect::Pgcat => true,
        };
        SETTINGS.iter().filter(move |setting| setting.section == section).filter(in_dialect)
    }

    /// The rows of `section` in the flat form of pgcat.toml, each with the name that it has there.
    pub fn all_flat(section: Section) -> impl Iterator<Item = (&'static str, &'static Self)> {
        let here = move |setting: &'static Self| match setting.flat {
            Flat::Same => (setting.section == section).then_some((setting.name, setting)),
            Flat::At(place, name) => (place == section).then_some((name, setting)),
            Flat::Unknown => None,
        };
        SETTINGS.iter().filter_map(here)
    }

    /// What holds where a file of that dialect says nothing.
    pub fn fallback(&self, dialect: Dialect) -> Fallback {
        match (dialect, self.ours) {
            (Dialect::Own, Ours::Default(fallback)) => fallback,
            (Dialect::Own, Ours::Same | Ours::Unknown) | (Dialect::Pgcat, _) => self.pgcat.fallback,
        }
    }

    /// How a file of that dialect writes its value.
    pub fn unit(&self, dialect: Dialect) -> Unit {
        match (dialect, self.pgcat.unit) {
            (Dialect::Own, Unit::Bytes) => Unit::Written(Least::Byte),
            (Dialect::Own, Unit::Milliseconds) => Unit::Written(Least::Millisecond),
            (Dialect::Own, Unit::Seconds) => Unit::Written(Least::Second),
            (_, unit) => unit,
        }
    }

    /// What it is, and what becomes of a change.
    pub(crate) fn description(&self) -> String {
        match self.changes {
            Changes::AtReload => self.doc.to_owned(),
            Changes::Live => format!("{} SET on the console changes it at once.", self.doc),
            Changes::AtStart => format!("{} A change takes a restart.", self.doc),
        }
    }

    /// The same, but for this default in our own dialect.
    pub(crate) const fn ours(self, default: &'static str) -> Self {
        Self { ours: Ours::Default(Fallback::Text(default)), ..self }
    }

    /// The same, but that it has no default in our own dialect.
    pub(crate) const fn ours_absent(self) -> Self {
        Self { ours: Ours::Default(Fallback::Absent), ..self }
    }

    /// The same, for other dialects than ours.
    pub(crate) const fn not_ours(self) -> Self {
        Self { ours: Ours::Unknown, ..self }
    }

    /// The same, but for its place and name in the flat form.
    pub(crate) const fn flat(self, section: Section, name: &'static str) -> Self {
        Self { flat: Flat::At(section, name), ..self }
    }

    /// The same, for files with pools only.
    pub(crate) const fn not_flat(self) -> Self {
        Self { flat: Flat::Unknown, ..self }
    }

    /// The same, but that it can be changed at once.
    pub(crate) const fn live(self) -> Self {
        Self { changes: Changes::Live, ..self }
    }

    /// The same, but that a change of it takes a restart.
    pub(crate) const fn at_start(self) -> Self {
        Self { changes: Changes::AtStart, ..self }
    }
}

/// A kind of file. It decides names, units and defaults, and nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dialect {
    /// TOML with `config_version = 1`: our own, with safe defaults, where a time has its unit.
    Own,
    /// TOML without `config_version`: PgCat's format.
    Pgcat,
}

/// How our own dialect differs from PgCat's in one setting. Defaults of both are in the unit that a
/// bare number has in pgcat.toml.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ours {
    /// In this default.
    Default(Fallback),
    /// Not at all.
    Same,
    /// It has no such setting.
    Unknown,
}

/// How the flat form of pgcat.toml, which is older than PgCat's pools, differs from the one with
/// pools in one setting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flat {
    /// In its section or its name, which are these there.
    At(Section, &'static str),
    /// Not at all.
    Same,
    /// It has no such setting.
    Unknown,
}

/// What PgCat says about a setting.
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
    /// The top of a file in the flat form of pgcat.toml. There `[query_router]` stands for
    /// [`Section::Pool`], `[user]` for [`Section::User`] and `[shards.N]` for [`Section::Shard`].
    FlatRoot,
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
            Self::Root | Self::FlatRoot => "the top of the file",
            Self::General => "[general]",
            Self::Pool => "[pools.NAME]",
            Self::User => "[pools.NAME.users.N]",
            Self::Shard => "[pools.NAME.shards.N]",
        }
    }

    /// The header as messages about a file in the flat form write it.
    pub const fn flat_title(self) -> &'static str {
        match self {
            Self::Root | Self::FlatRoot => "the top of the file",
            Self::General => "[general]",
            Self::Pool => "[query_router]",
            Self::User => "[user]",
            Self::Shard => "[shards.N]",
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
    /// A name or an address to listen on, over TCP; empty for none.
    Host,
    /// A whole number between these two, both included.
    Integer(u64, u64),
    /// The permissions of a file, in octal.
    Mode,
    /// A text that is not empty.
    Name,
    /// How often something is looked at: a time, of which zero is never, `false` for never, or
    /// `true` for so many milliseconds.
    Period(u64),
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
    /// A size in memory or on a wire.
    Size,
    /// A folder for a unix socket, or with an `@` the start of an abstract name; empty for none.
    SocketFolder,
    /// Statements, perhaps none. In ASCII, which means the same in whatever encoding the client
    /// has left its server.
    Sql,
    /// A text, perhaps an empty one.
    Text,
    /// So many of what there is: a number, a percentage in quotes, or `"off"` for all.
    Share,
    /// How servers are shared: `"off"`, `"auto"`, a number of units, or `"3x8"`, servers and units
    /// on each.
    Pipelining,
    /// A length of time, of at most so many milliseconds.
    Time(Zero, u64),
    /// One of these words, in capitals or not.
    Word(&'static [&'static str]),
    /// Some of these words in quotes, with commas between, in capitals or not; perhaps none.
    Words(&'static [&'static str]),
}

/// The longest time, in milliseconds, where nothing else limits it: enough for anything, and far
/// from overflow in any unit.
pub const TIME_MAX_MS: u64 = u32::MAX as u64 * 1_000;

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

/// What a number counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Thousandths of a second.
    Milliseconds,
    /// Whatever the setting is a number of.
    One,
    /// Seconds.
    Seconds,
    /// What stands behind it, in the same text, down to this.
    Written(Least),
}

/// The least amount that a setting can tell from none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Least {
    /// A byte.
    Byte,
    /// A thousandth of a second.
    Millisecond,
    /// A second: the kernel's own unit for some socket options.
    Second,
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

/// When a changed setting is heeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Changes {
    /// When the process starts.
    AtStart,
    /// When the file is read again.
    AtReload,
    /// Then too, and at once where a [`Change`](crate::Change) is made of it.
    Live,
}

use std::fmt::{self, Display};

use pgweir_testkit::frames::{
    bind, close_statement, describe_portal, describe_statement, execute, parse, query, sync,
};

/// What happens next.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A client says this in one write, and is looked at behind it.
    Say { who: usize, units: Vec<Unit>, look: Look },
    /// A client goes, with a Terminate or without, and another one takes its place.
    Leave { who: usize, politely: bool },
    /// Everybody is looked at.
    LookAround,
}

/// How a client is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Not,
    /// Its settings, and what there is of its state.
    Short,
    /// All that it has prepared is run besides, by the protocol.
    Names,
    /// And by EXECUTE.
    NamesInSql,
}

/// What is answered with one ReadyForQuery.
#[derive(Clone, Debug)]
pub(super) enum Unit {
    Query(Vec<Text>),
    Batch(Vec<Part>),
}

/// A message or some of a batch.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// The unnamed statement and portal, from Parse to Execute.
    Run(Text),
    Parse(&'static str, Text),
    Describe(&'static str),
    Close(&'static str),
    /// Portal and statement.
    Bind(&'static str, &'static str),
    /// Portal and rows.
    Execute(&'static str, u32),
}

/// A statement.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) sql: String,
    pub(super) leaves: Leaves,
}

/// What a statement may leave on its server, as far as the limit for that is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    Nothing,
    /// Something that keeps the server.
    State,
    /// A subscription, which keeps the server where the client has another encoding than new
    /// connections; and perhaps such an encoding.
    Subscription,
    Encoding,
    /// What the client has prepared by the protocol, since the statement names that.
    Names,
    /// The same, but not where it is a Query of its own.
    NamesUnlessAlone,
    /// Nothing; but it has to be the last of its unit (`docs/differences.md`, "What stands behind a
    /// RESET in its unit").
    Reset,
}

impl Text {
    pub(super) fn new(sql: impl Into<String>, leaves: Leaves) -> Self {
        Self { sql: sql.into(), leaves }
    }
}

impl Unit {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Query(texts) => query(&joined(texts)),
            Self::Batch(parts) => {
                let mut bytes: Vec<u8> = parts.iter().flat_map(Part::bytes).collect();
                bytes.extend(sync());
                bytes
            }
        }
    }

    /// Its statements, and whether each is a Query of its own.
    pub(super) fn texts(&self) -> Vec<(&Text, bool)> {
        match self {
            Self::Query(texts) => texts.iter().map(|text| (text, texts.len() == 1)).collect(),
            Self::Batch(parts) => {
                let its = parts.iter().filter_map(|part| match part {
                    Part::Run(text) | Part::Parse(_, text) => Some((text, false)),
                    Part::Describe(_) | Part::Close(_) | Part::Bind(..) | Part::Execute(..) => None,
                });
                its.collect()
            }
        }
    }
}

impl Part {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Run(text) => {
                [parse("", &text.sql, &[]), bind("", "", &[]), describe_portal(""), execute("", 0)]
                    .concat()
            }
            Self::Parse(name, text) => parse(name, &text.sql, &[]),
            Self::Describe(name) => describe_statement(name),
            Self::Close(name) => close_statement(name),
            Self::Bind(portal, name) => bind(portal, name, &[]),
            Self::Execute(portal, rows) => execute(portal, *rows),
        }
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Say { who, units, look } => {
                write!(f, "client {who} ({look:?}):")?;
                units.iter().try_for_each(|unit| write!(f, " {unit}"))
            }
            Self::Leave { who, politely: true } => write!(f, "client {who} leaves"),
            Self::Leave { who, politely: false } => write!(f, "client {who} is gone"),
            Self::LookAround => f.write_str("everybody is looked at"),
        }
    }
}

impl Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(texts) => write!(f, "Query {:?}", joined(texts)),
            Self::Batch(parts) => {
                let parts: Vec<_> = parts.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", parts.join(", "))
            }
        }
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(text) => write!(f, "Run {:?}", text.sql),
            Self::Parse(name, text) => write!(f, "Parse {name:?} {:?}", text.sql),
            Self::Describe(name) => write!(f, "Describe {name:?}"),
            Self::Close(name) => write!(f, "Close {name:?}"),
            Self::Bind(portal, name) => write!(f, "Bind {portal:?} {name:?}"),
            Self::Execute(portal, rows) => write!(f, "Execute {portal:?} {rows}"),
        }
    }
}

fn joined(texts: &[Text]) -> String {
    texts.iter().map(|text| text.sql.as_str()).collect::<Vec<_>>().join("; ")
}

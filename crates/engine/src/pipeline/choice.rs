//! What a client itself says of sharing servers.

use crate::client::Client;
use crate::settings::SHARING;

/// Whether the units of a client may share servers. It says so in its startup packet, of which no
/// server is told, or by a SET, which is one of a custom setting like any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// As its pool has it.
    #[default]
    Auto,
    /// Each gets a server alone.
    Off,
}

impl Choice {
    /// Reads a value as PostgreSQL reads one of a list of words.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let is = |word: &[u8]| value.eq_ignore_ascii_case(word);
        if is(b"auto") {
            return Some(Self::Auto);
        }
        is(b"off").then_some(Self::Off)
    }
}

impl Client {
    /// What holds for its next unit. A value that is none of the words says nothing: a RESET leaves
    /// the empty one.
    pub(crate) fn choice(&self) -> Choice {
        let set = self.settings.value(SHARING).and_then(Choice::parse);
        set.unwrap_or(self.choice_at_login)
    }
}

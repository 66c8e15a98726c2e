//! The `options` of a startup packet, which are switches of PostgreSQL's command line.

use pgweir_wire::backend::Report;

use super::Pair;
use crate::errors::{CHOICE, SWITCH, SWITCH_INVALID, SWITCH_WITHOUT_VALUE};

/// What of a startup packet ends a login: a switch, or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadStartup {
    /// PostgreSQL would take it.
    NotSpoken(Vec<u8>),
    /// PostgreSQL would not.
    Invalid(Vec<u8>),
    /// `-c` or `--` in front of what is no assignment, and that.
    WithoutValue(&'static str, Vec<u8>),
    /// A setting of ours is to be that.
    Choice(Vec<u8>),
}

/// The switches of a backend that PostgreSQL knows (`process_postgres_switches`, postgres.c).
const KNOWN: &[u8] = b"BbCcDdEeFfhijklNnOPprSsTtvW";

impl BadStartup {
    /// In PostgreSQL's words, where it would say so too.
    pub(crate) fn report(&self) -> Report {
        let text = |word| String::from_utf8_lossy(word);
        match self {
            Self::NotSpoken(word) => SWITCH.report(&[&text(word)]),
            Self::Invalid(word) => SWITCH_INVALID.report(&[&text(word)]),
            Self::WithoutValue(switch, rest) => {
                SWITCH_WITHOUT_VALUE.report(&[&format!("{switch}{}", text(rest))])
            }
            Self::Choice(value) => CHOICE.report(&[&text(value)]),
        }
    }

    /// Whether PostgreSQL is the one to judge it.
    pub(crate) fn is_switch(&self) -> bool {
        match self {
            Self::NotSpoken(_) | Self::Invalid(_) | Self::WithoutValue(..) => true,
            Self::Choice(_) => false,
        }
    }
}

/// Takes `options` apart as PostgreSQL does: words are split at white space, a backslash makes
/// the next byte an ordinary one (`pg_split_opts`, postinit.c), and of the switches of a backend
/// the two that set a parameter are understood.
pub(super) fn switches(options: &[u8]) -> Result<Vec<Pair>, BadStartup> {
    let mut words = words(options).into_iter();
    let mut pairs = Vec::new();
    while let Some(word) = words.next() {
        let (switch, assignment) = match &word[..] {
            b"-c" => ("-c ", words.next().ok_or(BadStartup::Invalid(word))?),
            [b'-', b'c', assignment @ ..] => ("-c ", assignment.to_vec()),
            // Behind it PostgreSQL sees no more switches.
            b"--" => return Err(BadStartup::NotSpoken(word)),
            [b'-', b'-', assignment @ ..] => ("--", assignment.to_vec()),
            [b'-', letter, ..] if KNOWN.contains(letter) => {
                return Err(BadStartup::NotSpoken(word));
            }
            _ => return Err(BadStartup::Invalid(word)),
        };
        let Some(equals) = assignment.iter().position(|&b| b == b'=') else {
            return Err(BadStartup::WithoutValue(switch, assignment));
        };
        let (name, value) = assignment.split_at(equals);
        // ParseLongOption: dashes in a name stand for underscores.
        let name = name.iter().map(|b| if *b == b'-' { b'_' } else { b.to_ascii_lowercase() });
        pairs.push((name.collect(), value[1..].into()));
    }
    Ok(pairs)
}

fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => words.extend(word.take()),
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words
}

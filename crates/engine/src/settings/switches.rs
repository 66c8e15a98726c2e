//! The `options` of a startup packet, which are switches of PostgreSQL's command line.

use pgweir_wire::backend::Report;

use super::Pair;
use crate::errors::{CHOICE, SWITCH_INVALID, SWITCH_WITHOUT_VALUE};

/// What of a startup packet ends a login: a switch, or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadStartup {
    /// PostgreSQL does not take it.
    Invalid(Vec<u8>),
    /// `-c` or `--` in front of what is no assignment, and that.
    WithoutValue(&'static str, Vec<u8>),
    /// A setting of ours is to be that.
    Choice(Vec<u8>),
}

impl BadStartup {
    /// In PostgreSQL's words, where it would say so too.
    pub(crate) fn report(&self) -> Report {
        let text = |word| String::from_utf8_lossy(word);
        match self {
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
            Self::Invalid(_) | Self::WithoutValue(..) => true,
            Self::Choice(_) => false,
        }
    }
}

/// What a switch of a backend does.
#[derive(Clone, Copy)]
enum Switch {
    /// Nothing, in a session.
    Nothing,
    /// It gives a setting this value.
    Sets(&'static str, &'static str),
    /// It has an argument, of which something comes.
    Takes(Argument),
}

#[derive(Clone, Copy)]
enum Argument {
    Nothing,
    /// The value of this setting.
    Value(&'static str),
    /// `name=value`, behind this switch.
    Assignment(&'static str),
    /// A way to run queries that is not to be taken.
    Plan,
    /// What statistics are logged of.
    Stats,
    /// How much is logged, and what.
    Debug,
}

/// The switches of a backend that PostgreSQL knows (`process_postgres_switches`, postgres.c).
/// Which settings a session may have it says itself, behind the login.
fn switch(letter: u8) -> Option<Switch> {
    Some(match letter {
        b'b' | b'E' | b'j' | b'n' | b'T' => Switch::Nothing,
        b'C' | b'D' | b'r' | b'v' => Switch::Takes(Argument::Nothing),
        b'e' => Switch::Sets("datestyle", "euro"),
        b'F' => Switch::Sets("fsync", "false"),
        b'i' => Switch::Sets("listen_addresses", "*"),
        b'l' => Switch::Sets("ssl", "true"),
        b'O' => Switch::Sets("allow_system_table_mods", "true"),
        b'P' => Switch::Sets("ignore_system_indexes", "true"),
        b's' => Switch::Sets("log_statement_stats", "true"),
        b'B' => Switch::Takes(Argument::Value("shared_buffers")),
        b'h' => Switch::Takes(Argument::Value("listen_addresses")),
        b'k' => Switch::Takes(Argument::Value("unix_socket_directories")),
        b'N' => Switch::Takes(Argument::Value("max_connections")),
        b'p' => Switch::Takes(Argument::Value("port")),
        b'S' => Switch::Takes(Argument::Value("work_mem")),
        b'W' => Switch::Takes(Argument::Value("post_auth_delay")),
        b'c' => Switch::Takes(Argument::Assignment("-c ")),
        b'-' => Switch::Takes(Argument::Assignment("--")),
        b'd' => Switch::Takes(Argument::Debug),
        b'f' => Switch::Takes(Argument::Plan),
        b't' => Switch::Takes(Argument::Stats),
        _ => return None,
    })
}

/// Takes `options` apart as PostgreSQL does: words are split at white space, a backslash makes
/// the next byte an ordinary one (`pg_split_opts`, postinit.c), and several switches may be one
/// word (`getopt`).
pub(crate) fn switches(options: &[u8]) -> Result<Vec<Pair>, BadStartup> {
    let mut words = words(options).into_iter();
    let mut pairs = Vec::new();
    // What is no switch is complained of behind all that are.
    let mut others: Vec<Vec<u8>> = Vec::new();
    let mut before = b"postgres".to_vec();
    while let Some(word) = words.next() {
        let mut letters = match &word[..] {
            b"--" => {
                others.extend(words);
                break;
            }
            [b'-', letters @ ..] if !letters.is_empty() => letters,
            _ => {
                others.push(word);
                continue;
            }
        };
        let mut argument = None;
        while let [letter, rest @ ..] = letters {
            letters = rest;
            match switch(*letter) {
                Some(Switch::Nothing) => {}
                Some(Switch::Sets(name, value)) => pairs.push(pair(name, value.as_bytes())),
                Some(Switch::Takes(takes)) => {
                    let own = std::mem::take(&mut letters);
                    if own.is_empty() {
                        argument = words.next();
                    }
                    let given = match &argument {
                        None if own.is_empty() => return Err(BadStartup::Invalid(word)),
                        None => own,
                        Some(next) => next,
                    };
                    if !takes.add(given, &mut pairs)? {
                        return Err(BadStartup::Invalid(argument.unwrap_or(word)));
                    }
                }
                None if rest.is_empty() => return Err(BadStartup::Invalid(word)),
                // In the middle of a word, getopt is not through with that.
                None => return Err(BadStartup::Invalid(others.pop().unwrap_or(before))),
            }
        }
        before = argument.unwrap_or(word);
    }
    match others.into_iter().next() {
        Some(word) => Err(BadStartup::Invalid(word)),
        None => Ok(pairs),
    }
}

impl Argument {
    /// Adds the settings that come of it. Says whether it is one.
    fn add(self, given: &[u8], pairs: &mut Vec<Pair>) -> Result<bool, BadStartup> {
        match self {
            Self::Nothing => {}
            Self::Value(name) => pairs.push(pair(name, given)),
            Self::Assignment(switch) => {
                let Some(equals) = given.iter().position(|&b| b == b'=') else {
                    return Err(BadStartup::WithoutValue(switch, given.to_vec()));
                };
                let (name, value) = given.split_at(equals);
                // ParseLongOption: dashes in a name stand for underscores.
                let plain = |b: &u8| if *b == b'-' { b'_' } else { b.to_ascii_lowercase() };
                pairs.push((name.iter().map(plain).collect(), value[1..].into()));
            }
            Self::Plan => {
                // set_plan_disabling_options: the first letter counts.
                let name = match given.first() {
                    Some(b's') => "enable_seqscan",
                    Some(b'i') => "enable_indexscan",
                    Some(b'o') => "enable_indexonlyscan",
                    Some(b'b') => "enable_bitmapscan",
                    Some(b't') => "enable_tidscan",
                    Some(b'n') => "enable_nestloop",
                    Some(b'm') => "enable_mergejoin",
                    Some(b'h') => "enable_hashjoin",
                    _ => return Ok(false),
                };
                pairs.push(pair(name, b"false"));
            }
            Self::Stats => {
                let name = match given {
                    [b'p', b'a', ..] => "log_parser_stats",
                    [b'p', b'l', ..] => "log_planner_stats",
                    [b'e', ..] => "log_executor_stats",
                    _ => return Ok(false),
                };
                pairs.push(pair(name, b"true"));
            }
            Self::Debug => debug(number(given), pairs),
        }
        Ok(true)
    }
}

/// As `set_debug_options`, for a session.
fn debug(level: i32, pairs: &mut Vec<Pair>) {
    let least = match level {
        1.. => format!("debug{level}"),
        _ => "notice".to_owned(),
    };
    pairs.push(pair("log_min_messages", least.as_bytes()));
    for (from, name, value) in [
        (2, "log_statement", "all"),
        (3, "debug_print_parse", "true"),
        (4, "debug_pretty_print", "true"),
        (5, "debug_print_plan", "true"),
        (5, "debug_print_rewritten", "true"),
    ] {
        if level >= from {
            pairs.push(pair(name, value.as_bytes()));
        }
    }
}

/// As `atoi`: what is no number is 0, and what stands behind one does not matter.
fn number(text: &[u8]) -> i32 {
    let text = text.trim_ascii_start();
    let signs = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[signs..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&text[..signs + digits]).unwrap_or_default();
    number.parse().unwrap_or(0)
}

fn pair(name: &str, value: &[u8]) -> Pair {
    (name.as_bytes().into(), value.into())
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

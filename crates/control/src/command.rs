//! The console's language: `COMMAND [ARGUMENT] [;]` and `SET NAME {= | TO} VALUE [;]`, where a
//! word may stand in double quotes, a name has its sections in front, with dots between, and
//! comments are SQL's. `SELECT X` is `SHOW X`. What stands behind EXPLAIN ROUTE is read by nobody
//! here.

use pgweir_config::{Change, Explained, nearest};
use pgweir_engine::{CONSOLE_INVALID, CONSOLE_UNSUPPORTED};
use pgweir_wire::backend::Report;

use crate::change::{Refusal, change};
use crate::explain;
use crate::order::{ORDERS, Row};

/// What to do.
#[derive(Clone)]
pub(crate) enum Command<'a> {
    /// SET of what can be changed at once.
    Change(Change),
    /// SHOW of the client that the backend with this process id works for.
    ClientOf(i32),
    /// EXPLAIN ROUTE of this statement.
    ExplainRoute(&'a [u8]),
    /// The request holds no command, as some drivers' pings.
    Nothing,
    /// Something that the process does.
    Order(&'static Row),
    /// SET of something that a driver sets without being asked to.
    Set(&'static Setting),
    /// SHOW of something of ours.
    Show(Show),
    /// SHOW of something that a driver wants to know.
    ShowSetting(&'static Setting),
}

/// What SHOW can show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Show {
    Clients,
    Config,
    Databases,
    Help,
    Limits,
    Lists,
    Loud,
    Mem,
    Pins,
    Pipelining,
    Pools,
    Servers,
    State,
    Stats,
    StatsAverages,
    StatsTotals,
    Totals,
    Users,
    Version,
}

impl Show {
    /// Each with its name and what SHOW HELP says of it.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 19] = [
        (Self::Pools, "POOLS", "clients and servers of each pool, by what they are doing"),
        (Self::Clients, "CLIENTS", "every client"),
        (Self::Servers, "SERVERS", "every connection to a server"),
        (Self::Databases, "DATABASES", "each database: where it is, and how many use it"),
        (Self::Users, "USERS", "each user, over all databases"),
        (Self::Stats, "STATS", "what each database has done, in all and on average"),
        (Self::StatsTotals, "STATS_TOTALS", "the same, in all"),
        (Self::StatsAverages, "STATS_AVERAGES", "the same, on average"),
        (Self::Totals, "TOTALS", "what all databases have done together"),
        (Self::Config, "CONFIG", "every setting: what holds, and what would without the file"),
        (Self::Limits, "LIMITS", "each server: how many connections there may be, and why"),
        (Self::Loud, "LOUD", "each name behind which sessions are changed unseen, and why"),
        (Self::Pins, "PINS", "why servers stay with their clients, in each pool"),
        (Self::Pipelining, "PIPELINING", "for how long statements stood behind those of others"),
        (Self::Lists, "LISTS", "how many there are of what"),
        (Self::Mem, "MEM", "bytes of memory"),
        (Self::State, "STATE", "whether it is paused"),
        (Self::Version, "VERSION", "the version of pgweir"),
        (Self::Help, "HELP", "this"),
    ];
}

/// What SHOW HELP says of commands that take something of the caller's, which is in small letters.
pub(crate) const WITH_ARGUMENT: [(&str, &str); 2] = [
    ("SHOW CLIENT OF pid", "the client whose statement the backend with this process id runs"),
    ("EXPLAIN ROUTE statement", "whether it shares a server or keeps one, in each pool, and why"),
];

/// A setting of PostgreSQL that drivers ask for or set although it means nothing here.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) value: &'static str,
}

/// The first five as PgBouncer has them.
const SETTINGS: [Setting; 7] = [
    Setting { name: "client_encoding", value: "UTF8" },
    Setting { name: "default_transaction_isolation", value: "read committed" },
    Setting { name: "standard_conforming_strings", value: "on" },
    Setting { name: "datestyle", value: "ISO" },
    Setting { name: "timezone", value: "GMT" },
    Setting { name: "application_name", value: "" },
    Setting { name: "extra_float_digits", value: "1" },
];

/// What PgBouncer has and this console has not: worth another answer than a slip of the finger.
const ELSEWHERE: [&str; 9] = [
    "DISABLE",
    "ENABLE",
    "KILL",
    "KILL_CLIENT",
    "PAUSE",
    "RECONNECT",
    "RESUME",
    "SUSPEND",
    "WAIT_CLOSE",
];
const ELSEWHERE_SHOW: [&str; 7] =
    ["ACTIVE_SOCKETS", "DNS_HOSTS", "DNS_ZONES", "FDS", "PEERS", "PEER_POOLS", "SOCKETS"];

/// Reads one request, in which settings of `config` may be named. The error is what the client
/// gets to see.
pub(crate) fn parse<'a>(request: &'a [u8], config: &[Explained]) -> Result<Command<'a>, Report> {
    match explain::statement(request) {
        Some(statement) => Ok(Command::ExplainRoute(statement)),
        None => read(&String::from_utf8_lossy(request), config),
    }
}

fn read(request: &str, config: &[Explained]) -> Result<Command<'static>, Report> {
    let tokens = tokens(request).ok_or_else(|| invalid(request, None))?;
    let tokens = match &tokens[..] {
        [tokens @ .., Token::Semicolon] => tokens,
        tokens => tokens,
    };
    match tokens {
        [] => Ok(Command::Nothing),
        [Token::Word(show), Token::Word(what)] if is_show(show) => self::show(request, what),
        [Token::Word(show), Token::Word(client), Token::Word(of), Token::Word(process_id)]
            if is_show(show) && is(client, "client") && is(of, "of") =>
        {
            let process_id = process_id.parse().map_err(|_| invalid(request, None))?;
            Ok(Command::ClientOf(process_id))
        }
        [Token::Word(set), assignment @ ..] if is(set, "set") => {
            self::set(request, assignment, config)
        }
        [Token::Word(command)] => order(request, command, None),
        [Token::Word(command), Token::Word(argument)] => order(request, command, Some(argument)),
        _ => Err(invalid(request, None)),
    }
}

fn show(request: &str, what: &str) -> Result<Command<'static>, Report> {
    if let Some((show, ..)) = Show::ALL.iter().find(|(_, name, _)| is(what, name)) {
        return Ok(Command::Show(*show));
    }
    if let Some(setting) = SETTINGS.iter().find(|setting| is(what, setting.name)) {
        return Ok(Command::ShowSetting(setting));
    }
    match ELSEWHERE_SHOW.iter().find(|name| is(what, name)) {
        Some(name) => Err(unsupported(&format!("SHOW {name}"))),
        None => Err(invalid(request, hint("SHOW ", what, Show::ALL.map(|(_, name, _)| name)))),
    }
}

fn order(request: &str, command: &str, argument: Option<&str>) -> Result<Command<'static>, Report> {
    let is_asked = |row: &&Row| {
        let same_argument = match (argument, row.argument) {
            (None, None) => true,
            (Some(argument), Some(name)) => is(argument, name),
            (None, Some(_)) | (Some(_), None) => false,
        };
        is(command, row.command) && same_argument
    };
    if let Some(row) = ORDERS.iter().find(is_asked) {
        return Ok(Command::Order(row));
    }
    if let Some(name) = ELSEWHERE.iter().find(|name| is(command, name)) {
        return Err(unsupported(name));
    }
    let of_command = ORDERS.iter().filter(|row| is(command, row.command));
    let hint = match (of_command.clone().next(), argument) {
        (Some(row), Some(argument)) => {
            let arguments = of_command.filter_map(|row| row.argument);
            hint(&format!("{} ", row.command), argument, arguments)
        }
        _ => hint("", command, ORDERS.iter().map(|row| row.command).chain(["SHOW"])),
    };
    Err(invalid(request, hint))
}

fn set(
    request: &str,
    assignment: &[Token],
    config: &[Explained],
) -> Result<Command<'static>, Report> {
    let [Token::Word(first), rest @ ..] = assignment else { return Err(invalid(request, None)) };
    let (mut name, mut rest) = (vec![first.as_str()], rest);
    while let [Token::Dot, Token::Word(part), behind @ ..] = rest {
        name.push(part);
        rest = behind;
    }
    let value = match rest {
        [to, Token::Word(value) | Token::Text(value)] if to.is_assignment() => value,
        _ => return Err(invalid(request, None)),
    };
    if let Some(setting) =
        SETTINGS.iter().find(|setting| name.len() == 1 && is(first, setting.name))
    {
        return Ok(Command::Set(setting));
    }
    change(config, &name, value).map(Command::Change).map_err(|refusal| match refusal {
        Refusal::Known(report) => report,
        Refusal::Foreign => unsupported("SET"),
        Refusal::Unknown(meant) => invalid(request, meant),
    })
}

/// PgBouncer's words and code for what it does not understand.
fn invalid(request: &str, hint: Option<String>) -> Report {
    const SHOWN_MAX: usize = 80;
    let shown: String = request.trim().chars().take(SHOWN_MAX).collect();
    let report = CONSOLE_INVALID.report(&[&shown]);
    match hint {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

fn unsupported(command: &str) -> Report {
    CONSOLE_UNSUPPORTED.report(&[&command])
}

/// The nearest of `names`, behind `before`, unless it is what was said.
fn hint<'a>(before: &str, word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<_> = names.into_iter().map(str::to_ascii_lowercase).collect();
    let nearest = nearest(word, names.iter().map(String::as_str))?;
    let meant = format!("Perhaps you meant {before}{}.", nearest.to_ascii_uppercase());
    (!is(word, nearest)).then_some(meant)
}

fn is_show(word: &str) -> bool {
    is(word, "show") || is(word, "select")
}

fn is(word: &str, name: &str) -> bool {
    word.eq_ignore_ascii_case(name)
}

enum Token {
    Dot,
    Equals,
    Semicolon,
    /// In single quotes.
    Text(String),
    /// Bare or in double quotes.
    Word(String),
}

impl Token {
    /// What stands between name and value in SET.
    fn is_assignment(&self) -> bool {
        match self {
            Self::Equals => true,
            Self::Word(word) => is(word, "to"),
            Self::Dot | Self::Semicolon | Self::Text(_) => false,
        }
    }
}

/// The tokens of a request; `None` if it has something else in it, or something without its end.
fn tokens(request: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = request.trim_end_matches('\0');
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let Some(first) = rest.chars().next() else {
            return Some(tokens);
        };
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
        } else if first == '\'' || first == '"' {
            let (text, after) = quoted(&rest[1..], first)?;
            tokens.push(if first == '"' { Token::Word(text) } else { Token::Text(text) });
            rest = after;
        } else if let Some(sign) = sign(first) {
            tokens.push(sign);
            rest = &rest[1..];
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            let end = end.unwrap_or(rest.len());
            let (word, after) = rest.split_at(rest.find("--").unwrap_or(end).min(end));
            if word.is_empty() {
                return None;
            }
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        }
    }
}

fn sign(c: char) -> Option<Token> {
    match c {
        '.' => Some(Token::Dot),
        '=' => Some(Token::Equals),
        ';' => Some(Token::Semicolon),
        _ => None,
    }
}

/// The text up to `quote`, which stands for itself where it is doubled, and what follows.
fn quoted(rest: &str, quote: char) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            text.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            text.push(quote);
        } else {
            return Some((text, &rest[at + 1..]));
        }
    }
    None
}

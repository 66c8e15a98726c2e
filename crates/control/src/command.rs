//! The console's language: `COMMAND [ARGUMENT] [;]` and `SET NAME {= | TO} VALUE [;]`, where a
//! word may stand in double quotes and comments are SQL's. `SELECT X` is `SHOW X`.

use pgweir_config::nearest;
use pgweir_wire::SqlState;
use pgweir_wire::backend::Report;

/// What to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    /// The request holds no command, as some drivers' pings.
    Nothing,
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
    Help,
    Pools,
    Servers,
    Stats,
    Version,
}

impl Show {
    /// Each with its name and what SHOW HELP says of it.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::Pools, "POOLS", "clients and servers of each pool, by what they are doing"),
        (Self::Clients, "CLIENTS", "every client"),
        (Self::Servers, "SERVERS", "every connection to a server"),
        (Self::Stats, "STATS", "what each database has done, in all and on average"),
        (Self::Version, "VERSION", "the version of pgweir"),
        (Self::Help, "HELP", "this"),
    ];
}

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
const ELSEWHERE: [&str; 11] = [
    "DISABLE",
    "ENABLE",
    "KILL",
    "KILL_CLIENT",
    "PAUSE",
    "RECONNECT",
    "RELOAD",
    "RESUME",
    "SHUTDOWN",
    "SUSPEND",
    "WAIT_CLOSE",
];
const ELSEWHERE_SHOW: [&str; 16] = [
    "ACTIVE_SOCKETS",
    "CONFIG",
    "DATABASES",
    "DNS_HOSTS",
    "DNS_ZONES",
    "FDS",
    "LISTS",
    "MEM",
    "PEERS",
    "PEER_POOLS",
    "SOCKETS",
    "STATE",
    "STATS_AVERAGES",
    "STATS_TOTALS",
    "TOTALS",
    "USERS",
];

/// Reads one request. The error is what the client gets to see.
pub(crate) fn parse(request: &str) -> Result<Command, Report> {
    let tokens = tokens(request).ok_or_else(|| invalid(request, None))?;
    let tokens = match &tokens[..] {
        [tokens @ .., Token::Semicolon] => tokens,
        tokens => tokens,
    };
    match tokens {
        [] => Ok(Command::Nothing),
        [Token::Word(show), Token::Word(what)] if is(show, "show") || is(show, "select") => {
            self::show(request, what)
        }
        [Token::Word(set), Token::Word(name), to, Token::Word(_) | Token::Text]
            if is(set, "set") && to.is_assignment() =>
        {
            self::set(name)
        }
        [Token::Word(command)] | [Token::Word(command), Token::Word(_)] => {
            match ELSEWHERE.iter().find(|name| is(command, name)) {
                Some(name) => Err(unsupported(name)),
                None => Err(invalid(request, hint("", command, ["SHOW"]))),
            }
        }
        _ => Err(invalid(request, None)),
    }
}

fn show(request: &str, what: &str) -> Result<Command, Report> {
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

fn set(name: &str) -> Result<Command, Report> {
    match SETTINGS.iter().find(|setting| is(name, setting.name)) {
        Some(setting) => Ok(Command::Set(setting)),
        None => Err(unsupported("SET")),
    }
}

/// PgBouncer's words and code for what it does not understand.
fn invalid(request: &str, hint: Option<String>) -> Report {
    const SHOWN_MAX: usize = 80;
    let shown: String = request.trim().chars().take(SHOWN_MAX).collect();
    let message = format!("invalid command '{shown}', use SHOW HELP;");
    let report = Report::error(SqlState::PROTOCOL_VIOLATION, message);
    match hint {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

fn unsupported(command: &str) -> Report {
    let message = format!("{command} is not supported by this console");
    Report::error(SqlState::FEATURE_NOT_SUPPORTED, message).hint("SHOW HELP lists what is.")
}

/// The nearest of `names`, behind `before`, unless it is what was said.
fn hint<const N: usize>(before: &str, word: &str, names: [&str; N]) -> Option<String> {
    let names = names.map(str::to_ascii_lowercase);
    let nearest = nearest(word, names.iter().map(String::as_str))?;
    let meant = format!("Perhaps you meant {before}{}.", nearest.to_ascii_uppercase());
    (!is(word, nearest)).then_some(meant)
}

fn is(word: &str, name: &str) -> bool {
    word.eq_ignore_ascii_case(name)
}

enum Token {
    Equals,
    Semicolon,
    /// In single quotes.
    Text,
    /// Bare or in double quotes.
    Word(String),
}

impl Token {
    /// What stands between name and value in SET.
    fn is_assignment(&self) -> bool {
        match self {
            Self::Equals => true,
            Self::Word(word) => is(word, "to"),
            Self::Semicolon | Self::Text => false,
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
            tokens.push(if first == '"' { Token::Word(text) } else { Token::Text });
            rest = after;
        } else if first == '=' || first == ';' {
            tokens.push(if first == '=' { Token::Equals } else { Token::Semicolon });
            rest = &rest[1..];
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            if word.is_empty() {
                return None;
            }
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        }
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

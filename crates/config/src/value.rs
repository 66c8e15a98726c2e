//! From TOML values to values of a [`Kind`], and the words for what was expected.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use crate::quantity;
use crate::setting::{Kind, Least, TIME_MAX_MS, Unit, Zero};
use crate::socket::SocketName;
use crate::suggest;
use crate::types::{
    ApplicationName, AuthMethod, LogFormat, LogLevel, LoudFunctions, MaxPinned, Pipelining,
    PoolMode, Role, Secret, SequenceAffinity, Server, ServerChoice,
};

/// What is printed for a secret.
pub(crate) const SECRET: &str = "(a secret)";

/// What a setting holds, sections aside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Value {
    Any,
    Flag(bool),
    Integer(u64),
    Mode(u32),
    /// A time of zero, which is no limit, or never.
    Off,
    Secret(Secret),
    Servers(Vec<Server>),
    Pipelining(Pipelining),
    Share(MaxPinned),
    /// In bytes.
    Size(u64),
    Text(String),
    Time(Duration),
    Word(&'static str),
    Words(Vec<&'static str>),
}

impl Value {
    /// Reads `value` as a setting of `kind`; the error says what was expected and what was found.
    ///
    /// [`Kind::Servers`] and the sections are read elsewhere, since their parts have places of
    /// their own; they come out as an error here.
    pub(crate) fn from_toml(kind: Kind, unit: Unit, value: &DeValue<'_>) -> Result<Self, String> {
        let read = match (kind, value) {
            (Kind::Any, _) => Some(Self::Any),
            (Kind::Flag, DeValue::Boolean(flag)) => Some(Self::Flag(*flag)),
            (Kind::Host, DeValue::String(text)) => {
                (text.is_empty() || is_host(text)).then(|| Self::Text(text.to_string()))
            }
            (Kind::Mode, DeValue::String(text)) => mode(text).map(Self::Mode),
            (Kind::Name, DeValue::String(text)) => {
                is_name(text).then(|| Self::Text(text.to_string()))
            }
            (Kind::Secret, DeValue::String(text)) => {
                (!text.contains('\0')).then(|| Self::Secret(Secret::new(text.as_ref())))
            }
            (Kind::SocketFolder, DeValue::String(text)) => {
                let folder = text.is_empty() || SocketName::is_folder(text);
                folder.then(|| Self::Text(text.to_string()))
            }
            (Kind::Sql, DeValue::String(text)) => {
                (text.is_ascii() && !text.contains('\0')).then(|| Self::Text(text.to_string()))
            }
            (Kind::Text, DeValue::String(text)) => Some(Self::Text(text.to_string())),
            (Kind::Word(words), DeValue::String(text)) => {
                words.iter().find(|word| word.eq_ignore_ascii_case(text)).map(|w| Self::Word(w))
            }
            (Kind::Words(known), DeValue::String(text)) => Some(Self::Words(words(known, text)?)),
            (Kind::Share, DeValue::String(text)) => share(text).map(Self::Share),
            (Kind::Share, DeValue::Integer(_)) => {
                let most = natural(value).and_then(|most| u32::try_from(most).ok());
                let most = most.filter(|most| (1..=MaxPinned::MOST).contains(most));
                most.map(MaxPinned::Count).map(Self::Share)
            }
            (Kind::Pipelining, DeValue::String(text)) => {
                Pipelining::parse(text).map(Self::Pipelining)
            }
            // 0x8 would be none by eight, and is no number of them either.
            (Kind::Pipelining, DeValue::Integer(number)) if number.radix() == 10 => {
                let depth = natural(value).and_then(|depth| u32::try_from(depth).ok());
                let fixed = depth.and_then(|depth| Pipelining::fixed(Pipelining::HOT, depth));
                fixed.map(Self::Pipelining)
            }
            (Kind::Integer(least, most), DeValue::Integer(_)) => {
                natural(value).filter(|n| (least..=most).contains(n)).map(Self::Integer)
            }
            (Kind::Period(_), DeValue::Boolean(false)) => Some(Self::Off),
            (Kind::Period(ms), DeValue::Boolean(true)) => {
                Some(Self::Time(Duration::from_millis(ms)))
            }
            (Kind::Period(_), _) => Self::from_toml(PERIOD, unit, value).ok(),
            (Kind::Time(zero, most_ms), DeValue::String(text)) => match unit {
                Unit::Written(least) => {
                    quantity::time(text, zero, least, most_ms).map(|time| Self::time(zero, time))
                }
                Unit::Bytes | Unit::Milliseconds | Unit::One | Unit::Seconds => None,
            },
            (Kind::Time(..), DeValue::Integer(_)) if matches!(unit, Unit::Written(_)) => None,
            (Kind::Size, DeValue::String(text)) if matches!(unit, Unit::Written(_)) => {
                quantity::size(text).map(Self::Size)
            }
            (Kind::Size, DeValue::Integer(_)) if unit == Unit::Bytes => {
                natural(value).map(Self::Size)
            }
            (Kind::Time(zero, most_ms), DeValue::Integer(_)) => natural(value)
                .filter(|n| *n > 0 || zero != Zero::Refused)
                .and_then(|n| n.checked_mul(unit_ms(unit)))
                .filter(|ms| *ms <= most_ms)
                .map(|ms| Self::time(zero, Duration::from_millis(ms))),
            _ => None,
        };
        read.ok_or_else(|| {
            format!("expected {}, found {}", expected(kind, unit), found(kind, unit, value))
        })
    }

    /// Reads `text` as a value of our own dialect, or as a text without its quotes.
    pub(crate) fn from_word(kind: Kind, unit: Unit, text: &str) -> Result<Self, String> {
        let word = DeValue::String(Cow::Borrowed(text));
        let read = Self::from_toml(kind, unit, &word);
        read.or_else(|message| {
            let value = DeValue::parse(text).ok();
            let read = value.and_then(|value| Self::from_toml(kind, unit, value.get_ref()).ok());
            read.ok_or(message)
        })
    }

    fn time(zero: Zero, time: Duration) -> Self {
        if zero == Zero::Off && time.is_zero() { Self::Off } else { Self::Time(time) }
    }

    /// Reads `text` as [`Fallback::Text`](crate::setting::Fallback::Text) writes it.
    pub(crate) fn from_text(kind: Kind, unit: Unit, text: &'static str) -> Result<Self, String> {
        let value = match kind {
            Kind::Flag | Kind::Integer(..) | Kind::Period(_) | Kind::Size | Kind::Time(..) => {
                let parsed = DeValue::parse(text).map_err(|error| error.message().to_owned())?;
                parsed.into_inner()
            }
            _ => DeValue::String(Cow::Borrowed(text)),
        };
        Self::from_toml(kind, unit, &value)
    }
}

/// As our own dialect writes it, but for secrets.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("…"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Mode(mode) => write!(f, "\"{mode:04o}\""),
            Self::Off => f.write_str("\"off\""),
            Self::Secret(_) => f.write_str(SECRET),
            Self::Servers(servers) => {
                let server =
                    |it: &Server| format!("[{:?}, {}, {:?}]", it.host, it.port, it.role.name());
                let servers: Vec<_> = servers.iter().map(server).collect();
                write!(f, "[{}]", servers.join(", "))
            }
            Self::Pipelining(pipelining) => write!(f, "{pipelining}"),
            Self::Share(share) => write!(f, "{share}"),
            Self::Size(bytes) => write!(f, "{:?}", quantity::written_size(*bytes)),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Time(time) => write!(f, "{:?}", quantity::written_time(*time)),
            Self::Word(word) => write!(f, "{word:?}"),
            Self::Words(words) => write!(f, "{:?}", words.join(", ")),
        }
    }
}

/// A type that a [`Value`] can be read as.
pub(crate) trait FromValue: Sized {
    /// `None` if the value is of another kind.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Flag(flag) = value { Some(*flag) } else { None }
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Integer(n) | Value::Size(n) = value { Some(*n) } else { None }
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Mode(mode) = value {
            return Some(*mode);
        }
        u64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for u16 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for usize {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for Duration {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Time(time) => Some(*time),
            Value::Off => Some(Self::ZERO),
            _ => None,
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value { Some(text.clone()) } else { None }
    }
}

impl FromValue for Secret {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Secret(secret) = value { Some(secret.clone()) } else { None }
    }
}

impl FromValue for Pipelining {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Pipelining(pipelining) = value { Some(*pipelining) } else { None }
    }
}

impl FromValue for MaxPinned {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Share(share) = value { Some(*share) } else { None }
    }
}

impl FromValue for Vec<&'static str> {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Words(words) = value { Some(words.clone()) } else { None }
    }
}

impl FromValue for Vec<Server> {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Servers(servers) = value { Some(servers.clone()) } else { None }
    }
}

impl FromValue for AuthMethod {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for LogFormat {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for LogLevel {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for LoudFunctions {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for ApplicationName {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for SequenceAffinity {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for ServerChoice {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for PoolMode {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

impl FromValue for Role {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(word) = value { Self::named(word) } else { None }
    }
}

/// Reads one entry of [`Kind::Servers`].
pub(crate) fn server(value: &DeValue<'_>) -> Result<Server, String> {
    let parts: Vec<_> = value.as_array().into_iter().flatten().map(Spanned::get_ref).collect();
    let [host, port, role] = parts[..] else {
        return Err(format!("expected {SERVER}, found {}", describe(value)));
    };
    Ok(Server {
        host: server_host(host)?,
        port: server_part("PORT", Kind::Integer(1, u16::MAX.into()), port)?,
        role: server_part("ROLE", Kind::Word(Role::NAMES), role)?,
    })
}

/// Where a server is, over TCP or a unix socket.
fn server_host(value: &DeValue<'_>) -> Result<String, String> {
    let text = value.as_str().filter(|text| is_host(text) || SocketName::is_folder(text));
    text.map(str::to_owned).ok_or_else(|| {
        let found = found(Kind::Host, Unit::One, value);
        let folder = folder();
        format!("HOST of {SERVER}: expected a host name, an IP address, or {folder}, found {found}")
    })
}

fn server_part<T: FromValue>(name: &str, kind: Kind, value: &DeValue<'_>) -> Result<T, String> {
    let read = Value::from_toml(kind, Unit::One, value);
    let part = read.map_err(|message| format!("{name} of {SERVER}: {message}"))?;
    T::from_value(&part).ok_or_else(|| format!("expected {SERVER}"))
}

const SERVER: &str = r#"["HOST", PORT, "ROLE"]"#;

/// What a setting of `kind` may be, for an error message.
pub(crate) fn expected(kind: Kind, unit: Unit) -> String {
    match kind {
        Kind::Any => "a value".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Host => "a host name or an IP address".to_owned(),
        Kind::Mode => r#"permissions in octal, such as "0770""#.to_owned(),
        Kind::Integer(least, most) if least == most => least.to_string(),
        Kind::Integer(least, u64::MAX) => format!("a whole number, at least {least}"),
        Kind::Integer(least, most) => format!("a whole number from {least} to {most}"),
        Kind::Name => "a text in quotes that is not empty".to_owned(),
        Kind::Period(_) => format!("{}, or true or false", expected(PERIOD, unit)),
        Kind::Secret | Kind::Text => "a text in quotes".to_owned(),
        Kind::Section(section) => format!("the section {}", section.title()),
        Kind::Sections(section) | Kind::SectionsByNumber(section) => {
            format!("at least one section {}", section.title())
        }
        Kind::Servers => r#"[["HOST", PORT, "ROLE"], …], at least one server"#.to_owned(),
        Kind::Size => match unit {
            Unit::Written(_) => quantity::EXPECTED_SIZE.to_owned(),
            Unit::Bytes | Unit::Milliseconds | Unit::One | Unit::Seconds => {
                "a whole number of bytes".to_owned()
            }
        },
        Kind::Share => {
            r#"a whole number, at least 1, a percentage such as "50%", or "off""#.to_owned()
        }
        Kind::Pipelining => {
            let most = Pipelining::MOST;
            format!(
                r#"a whole number from 1 to {most}, two of them such as "3x8", "auto", or "off""#
            )
        }
        Kind::SocketFolder => format!("{}, or \"\" for none", folder()),
        Kind::Sql => "SQL in quotes, in ASCII".to_owned(),
        Kind::Time(zero, most_ms) => {
            let name = match unit {
                Unit::Milliseconds => "milliseconds",
                Unit::Bytes | Unit::One | Unit::Seconds => "seconds",
                Unit::Written(least) => return quantity::expected_time(least, zero, most_ms),
            };
            let most = match most_ms {
                TIME_MAX_MS => String::new(),
                _ => format!(" up to {}", most_ms / unit_ms(unit)),
            };
            let zero = match zero {
                Zero::AtOnce => " (0: at once)",
                Zero::Off => " (0: off)",
                Zero::Refused => ", at least 1",
            };
            format!("a whole number of {name}{most}{zero}")
        }
        Kind::Word(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            quoted.join(" or ")
        }
        Kind::Words(words) => format!("some of \"{}\", in quotes", words.join(", ")),
    }
}

/// What stands for a unix socket.
fn folder() -> String {
    let most = SocketName::FOLDER_MAX;
    format!("the folder of a unix socket (at most {most} bytes, / or @ first)")
}

/// What stands there instead, without a secret in it.
fn found(kind: Kind, unit: Unit, value: &DeValue<'_>) -> String {
    match (kind, value) {
        (Kind::Time(..) | Kind::Period(_) | Kind::Size, DeValue::Integer(n))
            if matches!(unit, Unit::Written(_)) =>
        {
            let counts = match unit {
                Unit::Written(Least::Byte) => "bytes",
                Unit::Written(Least::Second) => "seconds",
                _ => "milliseconds",
            };
            format!("{n} without one (without config_version it would count {counts})")
        }
        (Kind::Secret, _) => format!("a TOML {}", value.type_str()),
        (Kind::Word(words), DeValue::String(text)) => {
            let hint = suggest::nearest(text, words.iter().copied());
            format!("{}{}", describe(value), suggest::did_you_mean(hint))
        }
        _ => describe(value),
    }
}

fn describe(value: &DeValue<'_>) -> String {
    const SHOWN_MAX: usize = 40;
    match value {
        DeValue::String(text) if may_hold_password(text) => {
            "a text that may hold a password".to_owned()
        }
        DeValue::String(text) if text.chars().count() > SHOWN_MAX => {
            let start: String = text.chars().take(SHOWN_MAX).collect();
            format!("a text that begins with {start:?}")
        }
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Integer(n) => n.to_string(),
        DeValue::Float(n) => n.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(parts) => format!("an array of {}", parts.len()),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

/// Whether a text looks like a connection string, as a URL or as libpq's `name=value`: such a text
/// is in no message, wherever it stands.
fn may_hold_password(text: &str) -> bool {
    let names_one = || text.contains('=') && text.to_ascii_lowercase().contains("password");
    text.contains('@') || text.contains("://") || names_one()
}

fn natural(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A period without `true` and `false`.
const PERIOD: Kind = Kind::Time(Zero::Off, TIME_MAX_MS);

/// How many milliseconds a bare number counts each.
const fn unit_ms(unit: Unit) -> u64 {
    match unit {
        Unit::Milliseconds => 1,
        Unit::Bytes | Unit::One | Unit::Seconds | Unit::Written(_) => 1_000,
    }
}

/// The words of a list with commas between.
fn words(known: &[&'static str], list: &str) -> Result<Vec<&'static str>, String> {
    let mut found = Vec::new();
    for text in list.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        match known.iter().find(|word| word.eq_ignore_ascii_case(text)) {
            Some(word) => found.push(*word),
            None => {
                let hint = suggest::nearest(text, known.iter().copied());
                let hint = suggest::did_you_mean(hint);
                let all = known.join(", ");
                return Err(format!("{text:?} is none of these: {all}{hint}"));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// All, or so many of a hundred.
fn share(text: &str) -> Option<MaxPinned> {
    if text == "off" {
        return Some(MaxPinned::Off);
    }
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let percent = is_number.then(|| digits.parse().ok()).flatten();
    percent.filter(|percent| (1..=100).contains(percent)).map(MaxPinned::Percent)
}

/// The permissions of a file, as chmod(1) reads them.
fn mode(text: &str) -> Option<u32> {
    let octal = !text.is_empty() && text.bytes().all(|b| matches!(b, b'0'..=b'7'));
    octal.then(|| u32::from_str_radix(text, 8).ok())?.filter(|mode| *mode <= 0o777)
}

/// Not a unix socket's path, nor a port or a list stuck to the name.
fn is_host(text: &str) -> bool {
    let name = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    let address = text.parse::<std::net::IpAddr>().is_ok();
    !text.is_empty() && (name || address)
}

/// PostgreSQL's strings end at a zero byte, so none can hold one.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}

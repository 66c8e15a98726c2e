//! Times and sizes as our own dialect writes them: a whole number and its unit.

use std::time::Duration;

use crate::setting::{Least, TIME_MAX_MS, Zero};

/// The units of times, and how many milliseconds each has.
const TIMES: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// The units of sizes, and how many bytes each has: as in PostgreSQL's own configuration.
const SIZES: [(&str, u64); 5] =
    [("B", 1), ("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1 << 40)];

/// Reads a time, as `500ms`, `5s`, `10min`, `1h` or `7d`.
pub(crate) fn time(text: &str, zero: Zero, least: Least, most_ms: u64) -> Option<Duration> {
    if text == "off" {
        return (zero == Zero::Off).then_some(Duration::ZERO);
    }
    let ms = product(text, &TIMES)?;
    let fits = match least {
        Least::Byte | Least::Millisecond => true,
        Least::Second => ms.is_multiple_of(1_000),
    };
    let allowed = fits && ms <= most_ms && (ms > 0 || zero == Zero::AtOnce);
    allowed.then(|| Duration::from_millis(ms))
}

/// Reads a size, as `100B`, `16kB` or `64MB`; the result is in bytes.
pub(crate) fn size(text: &str) -> Option<u64> {
    product(text, &SIZES)
}

/// A time in the largest unit that it is a whole number of.
pub(crate) fn written_time(time: Duration) -> String {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 { "0s".to_owned() } else { written(ms, &TIMES) }
}

/// So many bytes in the largest unit that they are a whole number of.
pub(crate) fn written_size(bytes: u64) -> String {
    if bytes == 0 { "0B".to_owned() } else { written(bytes, &SIZES) }
}

/// What a time may be.
pub(crate) fn expected_time(least: Least, zero: Zero, most_ms: u64) -> String {
    let time = match least {
        Least::Byte | Least::Millisecond => {
            r#"a time with its unit (ms, s, min, h, d), such as "5s" or "500ms""#
        }
        Least::Second => {
            r#"a time in whole seconds with its unit (s, min, h, d), such as "5s" or "1min""#
        }
    };
    let zero = match zero {
        Zero::AtOnce => r#" ("0s": at once)"#,
        Zero::Off => r#" ("off": no limit)"#,
        Zero::Refused => "",
    };
    let most = match most_ms {
        TIME_MAX_MS => String::new(),
        _ => format!(", at most {:?}", written_time(Duration::from_millis(most_ms))),
    };
    format!("{time}{most}{zero}")
}

/// What a size may be.
pub(crate) const EXPECTED_SIZE: &str =
    r#"a size with its unit (B, kB, MB, GB, TB), such as "64MB" or "16kB""#;

fn product(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, each) = units.iter().find(|(known, _)| *known == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*each)
}

fn written(amount: u64, units: &[(&str, u64)]) -> String {
    let whole = units.iter().rev().find(|(_, each)| amount.is_multiple_of(*each));
    whole.map_or_else(|| amount.to_string(), |(unit, each)| format!("{}{unit}", amount / each))
}

//! `postgres://user:password@host:port/database?name=value`, read as libpq reads it (PostgreSQL:
//! src/interfaces/libpq/fe-connect.c, conninfo_uri_parse_options), but for its defaults of user and
//! host.
//!
//! A password in the wrong place must not come out in a message, so a part that cannot be read is
//! named and not repeated, and an `@` counts only in front of the host.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::Path;

use crate::suggest::nearest;
use crate::types::Secret;

/// A server, one of its databases, and who logs in there. `Display` shows no password.
#[derive(Debug, Eq, PartialEq)]
pub struct Url {
    /// Address or name.
    pub host: String,
    /// Never 0.
    pub port: u16,
    /// Where the URL names none, it is named like the user.
    pub database: String,
    /// Who logs in.
    pub user: String,
    /// Never empty.
    pub password: Option<Secret>,
    /// In seconds, at least 1.
    pub connect_timeout_s: Option<u32>,
}

/// The parameters behind the `?`. Those of libpq that say how to connect at all; what a session is
/// to be like is for pgweir's own clients to say.
const PARAMETERS: [&str; 7] =
    ["connect_timeout", "dbname", "host", "password", "port", "sslmode", "user"];

const SSL_MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

impl Url {
    /// The URL that an argument holds, if it is no path of a file: whatever has a `://` in it.
    pub fn in_argument(argument: &Path) -> Option<&str> {
        argument.to_str().filter(|text| text.contains("://"))
    }

    /// Reads a URL, with `password` for one that has none.
    ///
    /// # Errors
    /// Says what is wrong and what would be right.
    pub fn parse(text: &str, password: Option<String>) -> Result<Self, String> {
        let rest = match text.split_once("://") {
            Some(("postgres" | "postgresql", rest)) => rest,
            Some((scheme, _)) if is_word(scheme) => {
                return Err(format!("expected postgres:// or postgresql://, found {scheme}://"));
            }
            _ => return Err("expected postgres:// or postgresql://".to_owned()),
        };
        let (login, place) = rest.split_once('@').unwrap_or(("", rest));
        if login.contains('/') || place.contains('@') {
            return Err("expected one @ at most, in front of the host (in a name or a password, \
                        @ is written %40, / is written %2F)"
                .to_owned());
        }
        let (place, query) = place.split_once('?').unwrap_or((place, ""));
        let (address, database) = place.split_once('/').unwrap_or((place, ""));
        let mut parts = Parts::default();
        let (host, port) = split_address(address)?;
        let (user, in_url) = login.split_once(':').unwrap_or((login, ""));
        parts.set("host", host)?;
        parts.set("port", port)?;
        parts.set("dbname", database)?;
        parts.set("user", user)?;
        parts.set("password", in_url)?;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or_else(name_and_value)?;
            parts.set(name, value)?;
        }
        parts.url(password)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, database, .. } = self;
        write!(f, "postgres://{user}@{}/{database}", address(&self.host, self.port))
    }
}

/// `host:port`, as a URL has it.
pub fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// What the text says so far. A parameter wins over its place in front of the `?`, as in libpq;
/// what is empty is not said.
#[derive(Default)]
struct Parts {
    host: Option<String>,
    port: Option<u16>,
    database: Option<String>,
    user: Option<String>,
    password: Option<String>,
    connect_timeout_s: Option<u32>,
}

impl Parts {
    /// Takes one value as the URL writes it, under the name of its parameter.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(name) = PARAMETERS.iter().find(|known| **known == name) else {
            return Err(unknown(name));
        };
        if value.is_empty() {
            return Ok(());
        }
        let value = decode(name, value)?;
        match *name {
            "connect_timeout" => self.connect_timeout_s = Some(seconds(&value)?),
            "dbname" => self.database = Some(value),
            "host" => self.host = Some(host(value)?),
            "password" => self.password = Some(value),
            "port" => self.port = Some(port(&value)?),
            "sslmode" => check_ssl_mode(&value)?,
            // The one that is left of those.
            _ => self.user = Some(value),
        }
        Ok(())
    }

    fn url(self, password: Option<String>) -> Result<Url, String> {
        let user = self.user.ok_or("expected a user: postgres://USER@HOST/DATABASE")?;
        let password = self.password.or(password).filter(|password| !password.is_empty());
        Ok(Url {
            host: self.host.unwrap_or_else(|| "localhost".to_owned()),
            port: self.port.unwrap_or(5432),
            database: self.database.unwrap_or_else(|| user.clone()),
            user,
            password: password.map(Secret::new),
            connect_timeout_s: self.connect_timeout_s,
        })
    }
}

/// Host and port, either of them perhaps empty.
fn split_address(text: &str) -> Result<(&str, &str), String> {
    let Some(inner) = text.strip_prefix('[') else {
        return Ok(text.split_once(':').unwrap_or((text, "")));
    };
    let (host, rest) = inner.split_once(']').ok_or("expected a ] behind the IPv6 address")?;
    if host.parse::<Ipv6Addr>().is_err() {
        return Err("expected an IPv6 address between [ and ]".to_owned());
    }
    match (rest, rest.strip_prefix(':')) {
        ("", _) => Ok((host, "")),
        (_, Some(port)) => Ok((host, port)),
        (_, None) => Err("expected :PORT or / behind the ]".to_owned()),
    }
}

fn host(text: String) -> Result<String, String> {
    match text.contains(',') {
        true => Err("expected one host, found a list".to_owned()),
        false => Ok(text),
    }
}

fn port(text: &str) -> Result<u16, String> {
    // The text may be a password: `user:password` without a host.
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "expected a port from 1 to 65535 behind the host".to_owned())
}

fn seconds(text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| "connect_timeout: expected whole seconds, at least 1".to_owned())
}

/// Nothing has TLS yet, so only what can do without is taken.
fn check_ssl_mode(mode: &str) -> Result<(), String> {
    match SSL_MODES.iter().position(|known| *known == mode) {
        Some(0..=2) => Ok(()),
        Some(_) => Err(format!(
            "sslmode={mode} asks for TLS, and there is none yet: expected disable, allow or prefer"
        )),
        None => Err(format!("sslmode: expected {}", SSL_MODES[..3].join(", "))),
    }
}

fn unknown(name: &str) -> String {
    if !is_word(name) {
        return name_and_value();
    }
    match nearest(name, PARAMETERS) {
        Some(hint) => format!("unknown parameter {name:?}; did you mean {hint:?}?"),
        None => format!("unknown parameter {name:?}; known are {}", PARAMETERS.join(", ")),
    }
}

fn name_and_value() -> String {
    format!("expected name=value behind the ?; known names are {}", PARAMETERS.join(", "))
}

/// What nobody takes for a password, so that it may be shown.
fn is_word(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    !text.is_empty() && text.len() <= 40 && text.bytes().all(letter)
}

/// `text` with each `%` and its two digits replaced by the byte that they stand for. Stricter than
/// a browser, as libpq is: a `%` without digits would else be part of a password that fails later.
fn decode(name: &str, text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(format!(
                "{name}: expected two hexadecimal digits behind % (% itself is written %25)"
            ));
        };
        // Two digits make a byte.
        bytes.push((high * 16 + low) as u8);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) => Err(format!("{name}: expected no %00")),
        Err(_) => Err(format!("{name}: expected UTF-8")),
    }
}

#[cfg(test)]
mod tests;

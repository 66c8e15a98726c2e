//! `docs/pgweir.schema.json`, written from the table of settings: what an editor needs to complete
//! and to check a file of our own dialect.

use serde_json::{Map, Value as Json, json};

use crate::setting::{Dialect, Fallback, Kind, Least, Section, Setting, TIME_MAX_MS, Unit, Zero};
use crate::types::{MaxPinned, Pipelining, Role};
use crate::value::Value;

/// The schema as text.
pub fn settings_schema() -> String {
    let mut schema = section(Section::Root);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("pgweir.toml");
    format!("{schema:#}\n")
}

fn section(section: Section) -> Json {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for setting in Setting::all(Dialect::Own, section) {
        let name = setting.name;
        // Without it a file would be in another dialect.
        if setting.fallback(Dialect::Own) == Fallback::Required || name == "config_version" {
            required.push(name);
        }
        properties.insert(name.to_owned(), property(setting));
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(setting: &Setting) -> Json {
    let mut schema = values(setting.kind, setting.unit(Dialect::Own));
    schema["description"] = json!(setting.description());
    if let Some(default) = default(setting) {
        schema["default"] = default;
    }
    schema
}

fn values(kind: Kind, unit: Unit) -> Json {
    match kind {
        Kind::Any => json!({}),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Mode => json!({ "type": "string", "pattern": "^0*[0-7]{1,3}$" }),
        Kind::Name => json!({ "type": "string", "minLength": 1 }),
        Kind::Integer(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
        Kind::Integer(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Period(_) => json!({
            "anyOf": [{ "type": "boolean" }, values(Kind::Time(Zero::Off, TIME_MAX_MS), unit)],
        }),
        Kind::Size => json!({ "type": "string", "pattern": "^[0-9]+(B|kB|MB|GB|TB)$" }),
        Kind::SocketFolder => json!({ "type": "string", "pattern": format!("^(|{FOLDER})$") }),
        Kind::Host => json!({ "type": "string", "pattern": format!("^(|{HOST})$") }),
        Kind::Sql => json!({ "type": "string", "pattern": "^[\\x01-\\x7f]*$" }),
        Kind::Secret | Kind::Text | Kind::Words(_) => json!({ "type": "string" }),
        Kind::Section(inner) => section(inner),
        Kind::Sections(inner) => json!({
            "type": "object",
            "minProperties": 1,
            "additionalProperties": section(inner),
        }),
        Kind::SectionsByNumber(inner) => json!({
            "type": "object",
            "minProperties": 1,
            "patternProperties": { "^[0-9]+$": section(inner) },
            "additionalProperties": false,
        }),
        Kind::Servers => json!({
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "array",
                "prefixItems": [
                    { "type": "string", "pattern": format!("^({HOST}|{FOLDER})$") },
                    values(Kind::Integer(1, u16::MAX.into()), unit),
                    values(Kind::Word(Role::NAMES), unit),
                ],
                "minItems": 3,
                "maxItems": 3,
            },
        }),
        Kind::Time(zero, _) => json!({ "type": "string", "pattern": pattern(zero, unit) }),
        Kind::Share => json!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": MaxPinned::MOST },
                { "type": "string", "pattern": "^(off|0*([1-9][0-9]?|100)%)$" },
            ],
        }),
        Kind::Pipelining => json!({
            "anyOf": [
                { "type": "integer", "minimum": 1, "maximum": Pipelining::MOST },
                { "type": "string", "pattern": format!("^(off|auto|{SOME}x{SOME})$") },
            ],
        }),
        // Those are what an editor offers; capitals do as well.
        Kind::Word(words) => json!({
            "anyOf": [{ "enum": words }, { "type": "string", "pattern": in_any_case(words) }],
        }),
    }
}

/// A number from 1 to [`Pipelining::MOST`].
const SOME: &str = "0*([1-9][0-9]{0,2}|1000)";

/// Names and addresses; that an address is one is not looked at.
const HOST: &str = "[0-9A-Za-z._:-]+";
/// Folders of unix sockets, and starts of abstract names.
const FOLDER: &str = "/.*|@.+";

/// The times that are allowed.
fn pattern(zero: Zero, unit: Unit) -> String {
    let (some, any) = match unit {
        // Milliseconds are taken where they are whole seconds.
        Unit::Written(Least::Second) => {
            ("0*[1-9][0-9]*(000ms|s|min|h|d)", "([0-9]*000ms|0+ms|[0-9]+(s|min|h|d))")
        }
        _ => ("0*[1-9][0-9]*(ms|s|min|h|d)", "[0-9]+(ms|s|min|h|d)"),
    };
    match zero {
        Zero::AtOnce => format!("^{any}$"),
        Zero::Off => format!("^(off|{some})$"),
        Zero::Refused => format!("^{some}$"),
    }
}

/// One of these words, whatever of it is in capitals.
fn in_any_case(words: &[&str]) -> String {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase()),
        false => c.to_string(),
    };
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^({})$", words.join("|"))
}

fn default(setting: &Setting) -> Option<Json> {
    let Fallback::Text(text) = setting.fallback(Dialect::Own) else { return None };
    match Value::from_text(setting.kind, setting.pgcat.unit, text).ok()? {
        Value::Flag(flag) => Some(json!(flag)),
        Value::Integer(n) => Some(json!(n)),
        // As a file writes them, in quotes.
        value @ (Value::Mode(_)
        | Value::Off
        | Value::Pipelining(_)
        | Value::Share(_)
        | Value::Size(_)
        | Value::Text(_)
        | Value::Time(_)
        | Value::Word(_)
        | Value::Words(_)) => serde_json::from_str(&value.to_string()).ok(),
        Value::Any | Value::Secret(_) | Value::Servers(_) => None,
    }
}

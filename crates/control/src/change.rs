//! SET of what can be changed at once: which setting is meant, and what it is to be.

use pgweir_config::{Change, Changes, Explained, nearest};
use pgweir_engine::{CONSOLE_UNSUPPORTED, CONSOLE_VALUE};
use pgweir_wire::backend::Report;

/// What SHOW HELP says of it.
pub(crate) const HELP: (&str, &str) =
    ("SET key = value", "change a setting at once, until the file is read again");

/// Why nothing is set.
pub(crate) enum Refusal {
    /// Nothing of that kind can be changed at once.
    Foreign,
    /// There is no such setting, or not in that section; what may be meant.
    Unknown(Option<String>),
    /// Its change takes more than that, or its value is none.
    Known(Report),
}

/// The change that SET asks for, `name` with its sections or, of `[general]`, without. Capitals
/// matter only where they tell two names apart.
pub(crate) fn change(config: &[Explained], name: &[&str], value: &str) -> Result<Change, Refusal> {
    let key = match name {
        // Copied from SHOW CONFIG into quotes.
        [whole] => (*whole).to_owned(),
        parts => pgweir_config::key(parts.iter().copied()),
    };
    let is_meant = |one: &&Explained| {
        one.key.eq_ignore_ascii_case(&key) || short(one).eq_ignore_ascii_case(&key)
    };
    let exact = config.iter().find(|one| one.key == key);
    let Some(one) = exact.or_else(|| config.iter().find(is_meant)) else {
        let live = config.iter().filter(|one| one.changes == Changes::Live);
        let names = live.clone().flat_map(|one| [short(one), one.key.as_str()]);
        let meant = nearest(&key, names).map(|name| format!("Perhaps you meant SET {name}."));
        let is_elsewhere =
            live.map(|one| last(&one.key)).any(|it| it.eq_ignore_ascii_case(last(&key)));
        return Err(match meant.is_some() || is_elsewhere {
            true => Refusal::Unknown(meant),
            false => Refusal::Foreign,
        });
    };
    match one.changes {
        Changes::Live => Change::new(one, value)
            .map_err(|why| Refusal::Known(CONSOLE_VALUE.report(&[&one.key]).detail(why))),
        Changes::AtReload | Changes::AtStart => {
            let command = format!("SET {}", one.key);
            Err(Refusal::Known(CONSOLE_UNSUPPORTED.report(&[&command])))
        }
    }
}

fn short(one: &Explained) -> &str {
    one.key.strip_prefix("general.").unwrap_or(&one.key)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

//! `docs/settings.md`, written from the table of settings.

use std::fmt::Write;
use std::time::Duration;

use crate::setting::{
    Dialect, Effect, Fallback, Flat, Kind, Ours, Section, Setting, TIME_MAX_MS, Unit, Zero,
};
use crate::settings::SETTINGS;
use crate::value::{self, Value};

const HEAD: &str = "\
# Settings

Written from the table in `crates/config/src/settings.rs`: to change this page, change that.

There are two dialects with the same names. A file that says `config_version = 1` is in our own: its
defaults are safe, a time has its unit (`\"500ms\"`, `\"5s\"`, `\"10min\"`, `\"1h\"`, `\"7d\"`,
or `\"off\"`), and so has a size (`\"100B\"`, `\"16kB\"`, `\"64MB\"`, `\"1GB\"`, `\"1TB\"`; a kB is
1024 bytes). Any other TOML file is read as PgCat reads it, where both are bare numbers.

What a section does not say holds as in the section around it, where that has the setting too.
Every change is heeded when the file is loaded again, but for a setting that says otherwise.
`pgweir check --explain` prints what holds in a file, and why.
[configuration.md](configuration.md) has the rest: the dialects, and the tools.
";

/// The text of the page.
pub fn settings_page() -> String {
    let mut page = HEAD.to_owned();
    for section in [Section::Root, Section::General, Section::Pool, Section::User, Section::Shard] {
        let title = section.title();
        let title = if title.starts_with('[') { format!("`{title}`") } else { capital(title) };
        put(&mut page, &format!("\n## {title}\n"));
        put(&mut page, "| setting | what it is | value | default | in pgcat.toml |");
        put(&mut page, "|---|---|---|---|---|");
        for setting in Setting::all(Dialect::Own, section) {
            put(&mut page, &row(setting));
        }
        let others = Setting::all(Dialect::Pgcat, section).filter(|it| it.ours == Ours::Unknown);
        let others: Vec<_> = others.map(|setting| format!("`{}`", setting.name)).collect();
        if !others.is_empty() {
            let text = format!("\nIn pgcat.toml only, without effect: {}.", others.join(", "));
            put(&mut page, &text);
        }
    }
    put(&mut page, &flat_form());
    page
}

/// What the flat form of pgcat.toml calls otherwise.
fn flat_form() -> String {
    let sections = [Section::Pool, Section::User, Section::Shard];
    let headers =
        sections.map(|section| format!("`{}` for `{}`", section.flat_title(), section.title()));
    let moved = SETTINGS.iter().filter_map(|setting| match setting.flat {
        Flat::At(section, name) if section != Section::FlatRoot => {
            let (there, here) = (section.flat_title(), setting.section.title());
            Some(format!("`{name}` in `{there}` for `{}` in `{here}`", setting.name))
        }
        Flat::At(..) | Flat::Same | Flat::Unknown => None,
    });
    let moved: Vec<_> = moved.collect();
    format!(
        "\n## The flat form of pgcat.toml\n\n\
         The same settings for one pool, with other headers: {}. And with another place or name: \
         {}. The pool is named like the database of its first shard.",
        headers.join(", "),
        moved.join(", "),
    )
}

fn row(setting: &Setting) -> String {
    let Setting { name, kind, pgcat, .. } = setting;
    let doc = setting.description();
    let does = match setting.effect {
        Effect::Now => doc,
        Effect::Never(why) => format!("{doc} *No effect: {why}.*"),
        Effect::NotYet { instead: "", .. } => format!("{doc} *No effect yet.*"),
        Effect::NotYet { instead, .. } => format!("{doc} *No effect yet: {instead}.*"),
    };
    let default = default(setting, Dialect::Own, |text| {
        let value = Value::from_text(*kind, pgcat.unit, text);
        value.map_or_else(|_| text.to_owned(), |value| format!("`{value}`"))
    });
    let in_pgcat = self::default(setting, Dialect::Pgcat, |text| match (kind, pgcat.unit) {
        (Kind::Time(..) | Kind::Period(_), Unit::Milliseconds) => format!("{text} ms"),
        (Kind::Time(..) | Kind::Period(_), _) => format!("{text} s"),
        (Kind::Size, _) => format!("{text} bytes"),
        _ => format!("`{text}`"),
    });
    let in_pgcat = if in_pgcat == default { String::new() } else { in_pgcat };
    let cells = [&does, &value(*kind), &default, &in_pgcat].map(|cell| cell.replace('|', "\\|"));
    format!("| `{name}` | {} |", cells.join(" | ")).replace("|  |", "| |")
}

fn default(setting: &Setting, dialect: Dialect, text: impl Fn(&'static str) -> String) -> String {
    match setting.fallback(dialect) {
        Fallback::Absent => "–".to_owned(),
        Fallback::Outer => "as outside".to_owned(),
        Fallback::Required => "**required**".to_owned(),
        Fallback::Same(other) => format!("as `{other}`"),
        Fallback::Text(default) => text(default),
    }
}

fn value(kind: Kind) -> String {
    match kind {
        Kind::Period(_) => "time, `\"off\"`, true or false".to_owned(),
        Kind::Size => "size".to_owned(),
        Kind::Time(zero, TIME_MAX_MS) => time(zero).to_owned(),
        Kind::Time(zero, most_ms) => {
            let most = Value::Time(Duration::from_millis(most_ms));
            format!("{}, at most `{most}`", time(zero))
        }
        Kind::Word(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word:?}`")).collect();
            words.join(", ")
        }
        Kind::Section(section) => format!("section `{}`", section.title()),
        Kind::Sections(section) | Kind::SectionsByNumber(section) => {
            format!("sections `{}`", section.title())
        }
        _ => value::expected(kind, Unit::One),
    }
}

fn time(zero: Zero) -> &'static str {
    match zero {
        Zero::Refused => "time",
        Zero::Off => "time or `\"off\"`",
        Zero::AtOnce => "time, `\"0s\"`: at once",
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn put(page: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "{line}");
}

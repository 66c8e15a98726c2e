//! From text to a tree of sections in which every key is known and every value is of its kind.
//! Everything here follows the table of settings; no setting is named.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::flat::{self, Form};
use crate::report::Report;
use crate::setting::{Dialect, Effect, Fallback, Kind, Section, Setting};
use crate::suggest;
use crate::types::Server;
use crate::value::{self, Value};

/// A file, brought to the sections of one with pools.
pub(crate) struct Tree {
    /// Empty if the syntax of the file is wrong.
    pub(crate) root: Node,
    pub(crate) dialect: Dialect,
    /// How the file itself arranges its sections.
    pub(crate) form: Form,
}

impl Tree {
    /// The tree of `text`. What is wrong goes to `report`.
    pub(crate) fn read(text: &str, report: &mut Report) -> Self {
        let root = Node::empty(Section::Root, String::new(), 1);
        let lines = Lines::new(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let span = error.span().unwrap_or_default();
            // The one message that needs its key to be of use. Other spans may hold a secret.
            let key = &text[span.clone()];
            let is_key = error.message() == "duplicate key" && !key.contains("://");
            let key = if is_key { key } else { "" };
            report.error(lines.at(span.start), key, error.message());
        }
        let table = document.get_ref();
        let dialect = match table.contains_key("config_version") {
            true => Dialect::Own,
            false => Dialect::Pgcat,
        };
        let form = Form::of(dialect, table);
        if !errors.is_empty() {
            return Self { root, dialect, form };
        }
        let mut reader = Reader { dialect, form, lines, report };
        let root = match form {
            Form::Flat => {
                let top = Node::empty(Section::FlatRoot, String::new(), 1);
                flat::with_pools(reader.section(top, table))
            }
            Form::Pools => reader.section(root, table),
        };
        Self { root, dialect, form }
    }
}

/// A section as the file has it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) section: Section,
    /// Its header without brackets, such as `pools.app`; empty for the top of the file.
    pub(crate) path: String,
    /// Line of its header.
    pub(crate) line: usize,
    /// The settings that it holds, by name; without those that are in error.
    pub(crate) entries: BTreeMap<&'static str, Entry>,
    /// Those that are in error, which has been told.
    pub(crate) refused: BTreeSet<&'static str>,
    /// The sections in it, by the name of the setting that holds them.
    pub(crate) children: BTreeMap<&'static str, Vec<Child>>,
}

/// A value and its place.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) line: usize,
}

/// A section in a section.
#[derive(Debug)]
pub(crate) struct Child {
    /// The last part of its header; empty if there can be one only.
    pub(crate) name: String,
    /// The line and the key that say its name.
    pub(crate) named_at: (usize, String),
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn empty(section: Section, path: String, line: usize) -> Self {
        Self {
            section,
            path,
            line,
            entries: BTreeMap::new(),
            refused: BTreeSet::new(),
            children: BTreeMap::new(),
        }
    }

    /// The full name of a setting in this section.
    pub(crate) fn key(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// The sections under `name`, in order.
    pub(crate) fn children(&self, name: &str) -> &[Child] {
        self.children.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Walks the document.
struct Reader<'a> {
    dialect: Dialect,
    form: Form,
    lines: Lines,
    report: &'a mut Report,
}

impl Reader<'_> {
    fn section(&mut self, mut node: Node, table: &DeTable<'_>) -> Node {
        let rows = self.rows(node.section);
        for (name, value) in table {
            let written: &str = name.get_ref();
            match rows.iter().find(|(known, _)| *known == written) {
                Some(&(_, setting)) => self.setting(&mut node, setting, name, value.get_ref()),
                None => {
                    let key = node.key(written);
                    let message = self.unknown(node.section, written);
                    self.report.error(self.lines.of(name), &key, message);
                }
            }
        }
        for (name, setting) in rows {
            let required = setting.fallback(self.dialect) == Fallback::Required;
            if required && !table.contains_key(name) {
                let message = format!("missing: expected {}", self.expected(setting));
                self.report.error(node.line, &node.key(name), message);
            }
        }
        node
    }

    fn setting(
        &mut self,
        node: &mut Node,
        setting: &'static Setting,
        name: &Spanned<DeString<'_>>,
        value: &DeValue<'_>,
    ) {
        let (key, line) = (node.key(name.get_ref()), self.lines.of(name));
        let unit = setting.unit(self.dialect);
        let read = match (setting.kind, value) {
            (Kind::Section(section), DeValue::Table(table)) => {
                let child = self.section(Node::empty(section, key, line), table);
                let named_at = (child.line, child.path.clone());
                let children = vec![Child { name: String::new(), named_at, node: child }];
                node.children.insert(setting.name, children);
                return;
            }
            (Kind::Sections(section) | Kind::SectionsByNumber(section), DeValue::Table(table))
                if !table.is_empty() =>
            {
                let children = self.children(section, setting.kind, &key, table);
                node.children.insert(setting.name, children);
                return;
            }
            (Kind::Section(_) | Kind::Sections(_) | Kind::SectionsByNumber(_), _) => {
                Err(format!("expected {}", self.expected(setting)))
            }
            (Kind::Servers, DeValue::Array(array)) if !array.is_empty() => {
                Ok(Value::Servers(self.servers(&key, array)))
            }
            _ => Value::from_toml(setting.kind, unit, value),
        };
        match read {
            Ok(value) => {
                self.warn_if_idle(setting, &key, line, &value);
                node.entries.insert(setting.name, Entry { value, line });
            }
            Err(message) => {
                self.report.error(line, &key, message);
                node.refused.insert(setting.name);
            }
        }
    }

    /// The sections of `table`, numbers first and by their size.
    fn children(
        &mut self,
        section: Section,
        kind: Kind,
        key: &str,
        table: &DeTable<'_>,
    ) -> Vec<Child> {
        let mut children = Vec::new();
        for (name, value) in table {
            let (path, line) = (join(key, name.get_ref()), self.lines.of(name));
            let DeValue::Table(table) = value.get_ref() else {
                let message = format!("expected the section {}", self.title(section));
                self.report.error(line, &path, message);
                continue;
            };
            if matches!(kind, Kind::SectionsByNumber(_)) && number(name.get_ref()).is_none() {
                let message = "expected a number, from 0, as the name of this section";
                self.report.error(line, &path, message);
            }
            let node = self.section(Node::empty(section, path.clone(), line), table);
            let name = name.get_ref().to_string();
            children.push(Child { name, named_at: (line, path), node });
        }
        children.sort_by_key(|child| number(&child.name).unwrap_or(u32::MAX));
        children
    }

    fn servers(&mut self, key: &str, array: &[Spanned<DeValue<'_>>]) -> Vec<Server> {
        let mut servers = Vec::new();
        for item in array {
            match value::server(item.get_ref()) {
                Ok(server) => servers.push(server),
                Err(message) => {
                    self.report.error(self.lines.at(item.span().start), key, message);
                }
            }
        }
        servers
    }

    fn warn_if_idle(&mut self, setting: &Setting, key: &str, line: usize, value: &Value) {
        let unit = setting.pgcat.unit;
        let message = match setting.effect {
            Effect::Now => return,
            Effect::Never(why) => format!("has no effect: {why}"),
            Effect::NotYet { unless, instead } => {
                let anyway = unless.and_then(|it| Value::from_text(setting.kind, unit, it).ok());
                if anyway.as_ref() == Some(value) {
                    return;
                }
                let colon = if instead.is_empty() { "" } else { ": " };
                format!("has no effect yet{colon}{instead}")
            }
        };
        self.report.warning(line, key, message);
    }

    /// The settings of a section, each with the name that this file has for it.
    fn rows(&self, section: Section) -> Vec<(&'static str, &'static Setting)> {
        match self.form {
            Form::Flat => Setting::all_flat(section).collect(),
            Form::Pools => {
                Setting::all(self.dialect, section).map(|setting| (setting.name, setting)).collect()
            }
        }
    }

    fn title(&self, section: Section) -> &'static str {
        match self.form {
            Form::Flat => section.flat_title(),
            Form::Pools => section.title(),
        }
    }

    /// What a setting may be, for an error message.
    fn expected(&self, setting: &Setting) -> String {
        match (self.form, setting.kind) {
            (Form::Flat, Kind::Section(section)) => format!("the section {}", section.flat_title()),
            (Form::Flat, Kind::Sections(section) | Kind::SectionsByNumber(section)) => {
                format!("at least one section {}", section.flat_title())
            }
            (_, kind) => value::expected(kind, setting.unit(self.dialect)),
        }
    }

    fn unknown(&self, section: Section, name: &str) -> String {
        let places = self.places(name);
        if !places.is_empty() {
            return format!("unknown here; it belongs {places}");
        }
        let renamed = Setting::all_flat(section).find(|(_, setting)| setting.name == name);
        if let Some((here, _)) = renamed.filter(|_| self.form == Form::Flat) {
            return format!("unknown; here its name is {here:?}");
        }
        if let Some(hint) = suggest::nearest(name, self.names(section)) {
            return format!("unknown{}", suggest::did_you_mean(Some(hint)));
        }
        match suggest::nearest(name, SECTIONS.into_iter().flat_map(|other| self.names(other))) {
            Some(hint) => {
                let question = suggest::did_you_mean(Some(hint));
                format!("unknown{question} It belongs {}", self.places(hint))
            }
            None => "unknown".to_owned(),
        }
    }

    fn names(&self, section: Section) -> impl Iterator<Item = &'static str> {
        self.rows(section).into_iter().map(|(name, _)| name)
    }

    /// Where a setting of this name may stand; empty if there is none.
    fn places(&self, name: &str) -> String {
        let has_it = |section: &Section| self.names(*section).any(|known| known == name);
        if has_it(&Section::Root) {
            return format!("at {}", self.title(Section::Root));
        }
        let places = SECTIONS.into_iter().filter(has_it).map(|section| self.title(section));
        let places = places.collect::<Vec<_>>().join(" or ");
        if places.is_empty() { places } else { format!("in {places}") }
    }
}

/// Those in which a key may be meant that stands elsewhere.
const SECTIONS: [Section; 4] = [Section::General, Section::Pool, Section::User, Section::Shard];

/// Where the lines of a text begin.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// The line that holds the byte at `offset`, counted from 1.
    fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    fn of(&self, key: &Spanned<DeString<'_>>) -> usize {
        self.at(key.span().start)
    }
}

fn number(name: &str) -> Option<u32> {
    name.parse().ok()
}

/// The name of a setting with its sections, each given by itself.
pub fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    parts.into_iter().fold(String::new(), |path, name| join(&path, name))
}

/// `name` in the section `path`, quoted where TOML asks for it, and not repeated if it is a URL.
fn join(path: &str, name: &str) -> String {
    let name = if name.contains("://") { "…" } else { name };
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let name = if !name.is_empty() && name.bytes().all(bare) {
        name.to_owned()
    } else {
        format!("{name:?}")
    };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

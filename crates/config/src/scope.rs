//! A section together with the sections around it, which it inherits from.

use crate::setting::{Dialect, Effect, Fallback, Section, Setting};
use crate::tree::{Entry, Node};
use crate::value::{FromValue, Value};

/// A section and, through `outer`, those around it.
pub(crate) struct Scope<'a> {
    node: &'a Node,
    outer: Option<&'a Self>,
    dialect: Dialect,
}

/// A value that holds in a section.
pub(crate) struct Holds {
    pub(crate) value: Value,
    /// The line that says so; `None` for a default.
    pub(crate) line: Option<usize>,
}

impl<'a> Scope<'a> {
    /// The outermost section.
    pub(crate) fn new(node: &'a Node, dialect: Dialect) -> Self {
        Self { node, outer: None, dialect }
    }

    /// A section in this one.
    pub(crate) fn inner<'b>(&'b self, node: &'b Node) -> Scope<'b> {
        Scope { node, outer: Some(self), dialect: self.dialect }
    }

    /// What holds for `name` here: what this section says, else what the table of settings falls
    /// back to. `None` if that is nothing, or if what the file says is in error.
    pub(crate) fn read<T: FromValue>(&self, name: &'static str) -> Option<T> {
        let value = self.holds(name).map(|holds| holds.value);
        debug_assert!(
            value.as_ref().is_none_or(|value| T::from_value(value).is_some()),
            "{name} is read as another type than the table says"
        );
        value.and_then(|value| T::from_value(&value))
    }

    /// Whether the file sets `name` in this very section.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.node.entries.contains_key(name)
    }

    /// Whether the file sets `name` in this very section to something that it cannot be.
    pub(crate) fn refused(&self, name: &str) -> bool {
        self.node.refused.contains(name)
    }

    /// The dialect of the file.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What kind of section it is.
    pub(crate) fn section(&self) -> Section {
        self.node.section
    }

    /// Line of the section's header.
    pub(crate) fn line(&self) -> usize {
        self.node.line
    }

    /// Line that says what holds for `name`, or that of the header if none does.
    pub(crate) fn line_of(&self, name: &str) -> usize {
        self.entry(name).map_or(self.node.line, |(_, entry)| entry.line)
    }

    /// The full name of `name` in this section.
    pub(crate) fn key(&self, name: &str) -> String {
        self.node.key(name)
    }

    /// The full name of `name` in the section that says what holds for it, or in this one.
    pub(crate) fn key_of(&self, name: &str) -> String {
        self.entry(name).map_or(self.node, |(node, _)| node).key(name)
    }

    /// What holds for `name` here, and where that is said.
    pub(crate) fn holds(&self, name: &'static str) -> Option<Holds> {
        if let Some((_, entry)) = self.entry(name) {
            return Some(Holds { value: entry.value.clone(), line: Some(entry.line) });
        }
        let setting = self.setting(name);
        debug_assert!(setting.is_some(), "{name} is not in the table of settings");
        match setting?.fallback(self.dialect) {
            Fallback::Same(other) => self.holds(other),
            Fallback::Text(_) | Fallback::Absent | Fallback::Outer | Fallback::Required => {
                self.default(name).map(|value| Holds { value, line: None })
            }
        }
    }

    /// What would hold for `name` here if the file said nothing.
    pub(crate) fn default(&self, name: &'static str) -> Option<Value> {
        let setting = self.setting(name)?;
        match setting.fallback(self.dialect) {
            Fallback::Text(text) => Value::from_text(setting.kind, setting.pgcat.unit, text).ok(),
            Fallback::Same(other) => self.default(other),
            Fallback::Absent | Fallback::Outer | Fallback::Required => None,
        }
    }

    /// The nearest section that says something about `name` that is heeded.
    fn entry(&self, name: &str) -> Option<(&Node, &Entry)> {
        let setting = Setting::find(self.dialect, self.node.section, name);
        let is_heeded = !setting.is_some_and(|its| matches!(its.effect, Effect::Never(_)));
        match self.node.entries.get(name).filter(|_| is_heeded) {
            Some(entry) => Some((self.node, entry)),
            None => self.outer.and_then(|outer| outer.entry(name)),
        }
    }

    /// The row that decides when no section says anything: the innermost that does not leave it
    /// to the next one.
    fn setting(&self, name: &str) -> Option<&'static Setting> {
        let here = Setting::find(self.dialect, self.node.section, name);
        here.filter(|setting| setting.fallback(self.dialect) != Fallback::Outer)
            .or_else(|| self.outer.and_then(|outer| outer.setting(name)))
    }
}

//! A section together with the sections around it, which it inherits from.

use crate::setting::{Dialect, Fallback, Setting};
use crate::tree::{Entry, Node};
use crate::value::{FromValue, Value};

/// A section and, through `outer`, those around it.
pub(crate) struct Scope<'a> {
    node: &'a Node,
    outer: Option<&'a Self>,
    dialect: Dialect,
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
        let value = self.value(name);
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

    fn value(&self, name: &'static str) -> Option<Value> {
        if let Some((_, entry)) = self.entry(name) {
            return Some(entry.value.clone());
        }
        let setting = self.setting(name);
        debug_assert!(setting.is_some(), "{name} is not in the table of settings");
        let column = setting?.column(self.dialect);
        match column.fallback {
            Fallback::Text(text) => Value::from_text(setting?.kind, column.unit, text).ok(),
            Fallback::Same(other) => self.value(other),
            Fallback::Absent | Fallback::Outer | Fallback::Required => None,
        }
    }

    /// The nearest section that says something about `name`.
    fn entry(&self, name: &str) -> Option<(&Node, &Entry)> {
        match self.node.entries.get(name) {
            Some(entry) => Some((self.node, entry)),
            None => self.outer.and_then(|outer| outer.entry(name)),
        }
    }

    /// The row that decides when no section says anything: the innermost that does not leave it
    /// to the next one.
    fn setting(&self, name: &str) -> Option<&'static Setting> {
        let here = Setting::find(self.node.section, name);
        here.filter(|setting| setting.column(self.dialect).fallback != Fallback::Outer)
            .or_else(|| self.outer.and_then(|outer| outer.setting(name)))
    }
}

//! A setting that is given another value than its file gives it, while pgweir runs.

use std::fmt;

use crate::explain::Explained;
use crate::setting::{Changes, Dialect, Section, Setting};
use crate::settings::SETTINGS;
use crate::tree::{Child, Entry, Node};
use crate::value::Value;

/// A new value for one setting in one section. Prints as a file has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    key: String,
    name: &'static str,
    value: Value,
}

impl Change {
    /// `setting` is to be `text`: a value as our own dialect writes it, or without its quotes. The
    /// error says what was expected.
    pub fn new(setting: &Explained, text: &str) -> Result<Self, String> {
        let key = setting.key.clone();
        let name = key.rsplit('.').next().unwrap_or(&key);
        let is_live = |row: &&Setting| row.name == name && row.changes == Changes::Live;
        let setting = SETTINGS.iter().find(is_live).ok_or("a change takes a reload")?;
        let value = Value::from_word(setting.kind, setting.unit(Dialect::Own), text)?;
        Ok(Self { key, name: setting.name, value })
    }

    /// The setting with its sections, as [`Explained::key`].
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Makes the change in what a file says. A section that is not there is changed by nothing.
    pub(crate) fn make(&self, root: &mut Node) {
        let line = root.line;
        // The one section that a file need not have for its settings to hold.
        root.children.entry("general").or_insert_with(|| {
            let path = "general".to_owned();
            let node = Node::empty(Section::General, path.clone(), line);
            vec![Child { name: String::new(), named_at: (line, path), node }]
        });
        self.make_in(root);
    }

    fn make_in(&self, node: &mut Node) {
        if node.key(self.name) == self.key {
            let (value, line) = (self.value.clone(), node.line);
            node.entries.insert(self.name, Entry { value, line });
        }
        node.children.values_mut().flatten().for_each(|child| self.make_in(&mut child.node));
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}

#[cfg(test)]
mod tests;

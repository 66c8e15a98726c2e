//! What holds, and why.

use std::fmt;

use crate::scope::Scope;
use crate::setting::{Changes, Dialect, Effect, Kind, Section, Setting};
use crate::tree::Node;

/// One value that holds in one section. Prints without its origin, and without a secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Explained {
    /// The setting with its sections, such as `pools.app.users.0.pool_size`.
    pub key: String,
    /// The value as a file would write it; `None` where there is none.
    pub value: Option<String>,
    /// The line of the file that says so, in this section or one around it; `None` for a default.
    pub line: Option<usize>,
    /// The value if the file said nothing, written as `value` is; `None` where there is none.
    pub default: Option<String>,
    /// When a change of it is heeded.
    pub changes: Changes,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value}", self.key),
            None => write!(f, "{} is not set", self.key),
        }
    }
}

/// Every setting that has an effect, section by section.
pub(crate) fn all(root: &Node, dialect: Dialect) -> Vec<Explained> {
    let none = Node::empty(Section::General, "general".to_owned(), root.line);
    let general = root.children("general").first().map_or(&none, |child| &child.node);
    let general = Scope::new(general, dialect);
    let mut explained = section(&general);
    for pool in root.children("pools") {
        let scope = general.inner(&pool.node);
        explained.extend(section(&scope));
        for child in ["users", "shards"].into_iter().flat_map(|kind| pool.node.children(kind)) {
            explained.extend(section(&scope.inner(&child.node)));
        }
    }
    explained
}

fn section(scope: &Scope<'_>) -> Vec<Explained> {
    let is_value = |setting: &&Setting| {
        let is_section = matches!(
            setting.kind,
            Kind::Section(_) | Kind::Sections(_) | Kind::SectionsByNumber(_)
        );
        setting.effect == Effect::Now && !is_section
    };
    let explain = |setting: &Setting| {
        let holds = scope.holds(setting.name);
        let line = holds.as_ref().and_then(|holds| holds.line);
        let value = holds.map(|holds| holds.value.to_string());
        let default = scope.default(setting.name).map(|value| value.to_string());
        let changes = setting.changes;
        Explained { key: scope.key(setting.name), value, line, default, changes }
    };
    Setting::all(scope.dialect(), scope.section()).filter(is_value).map(explain).collect()
}

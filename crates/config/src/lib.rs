//! The configuration: text in, a valid [`Config`] or every mistake of the file out.
//!
//! What is known about a setting (its section, type, unit, default, whether it does anything yet)
//! is said once, in the table [`SETTINGS`]. A file goes through three stages. `tree` walks the TOML
//! document along the table and knows no setting by name: it finds unknown keys, wrong types and
//! settings without effect; `flat` brings PgCat's older form to the same tree. `scope` answers what
//! holds for a setting in a section, with everything it inherits. `effective` names the settings,
//! applies the rules that join several of them (`credentials` those of logins, `sums`
//! those of limits), and fills [`Config`].
//!
//! Invariants:
//! - A [`Config`] that exists is valid; nobody checks it again.
//! - A mistake is never silent and never the only one told: all of them come at once, each with
//!   file, line, key, what was expected, and the nearest known name.
//! - A secret is in no message and in no `Debug` output.
//! - The same text gives the same result. Only [`Config::load`] and [`Config::read`] touch the
//!   world, to read one file.
//!
//! [`Url`] is the other thing that people write: one server and its user in one line.
//!
//! A further dialect is a variant of [`Dialect`], a column of the table, and, if it is not TOML,
//! another way to a tree.

mod change;
mod credentials;
mod demand;
mod effective;
mod explain;
mod flat;
mod page;
mod quantity;
mod report;
mod schema;
mod scope;
mod setting;
mod settings;
mod socket;
mod suggest;
mod sums;
mod tree;
mod types;
mod url;
mod value;

#[cfg(test)]
mod demand_tests;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use change::Change;
pub use demand::{Binding, Demand, Limit, Most, Room};
pub use explain::Explained;
pub use page::settings_page;
pub use report::{Errors, Problem, Warning};
pub use schema::settings_schema;
pub use setting::{
    Changes, Column, Dialect, Effect, Fallback, Flat, Kind, Least, Ours, Section, Setting,
    TIME_MAX_MS, Unit, Zero,
};
pub use settings::{CONSOLE_DATABASES, SETTINGS};
pub use socket::SocketName;
pub use suggest::nearest;
pub use tree::key;
pub use types::{
    ANY_DATABASE, Admin, ApplicationName, AuthMethod, Config, Exporter, General, LogFormat,
    LogLevel, LogOptions, LoudFunctions, MaxPinned, PIN_KINDS, Pipelining, Pool, PoolMode, Role,
    Secret, SequenceAffinity, Server, ServerChoice, Shard, TcpOptions, UnixSocket, User,
};
pub use url::{Url, address};

use report::Report;
use tree::Tree;

impl Config {
    /// Reads the file at `path`. A file that cannot be read is one error without a line.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        let text = Self::read(path)?;
        Self::parse(&text, path)
    }

    /// The text of the file at `path`; errors as [`Config::load`].
    pub fn read(path: &Path) -> Result<String, Errors> {
        std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot be read: {error}");
            Problem { file: path.to_owned(), line: None, key: String::new(), message }.into()
        })
    }

    /// Reads `text`; `file` is its name in messages.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Errors> {
        Self::of_tree(text, file, &[]).map(|(config, _)| config)
    }

    /// As [`Config::parse`], and every value that holds.
    pub fn parse_explained(text: &str, file: &Path) -> Result<(Self, Vec<Explained>), Errors> {
        Self::parse_changed(text, file, &[])
    }

    /// As [`Config::parse_explained`], with changes made to what `text` says, in their order.
    pub fn parse_changed(
        text: &str,
        file: &Path,
        changes: &[Change],
    ) -> Result<(Self, Vec<Explained>), Errors> {
        let (config, tree) = Self::of_tree(text, file, changes)?;
        let explained = explain::all(&tree, &config);
        Ok((config, explained))
    }

    fn of_tree(text: &str, file: &Path, changes: &[Change]) -> Result<(Self, Tree), Errors> {
        let mut report = Report::new(file);
        let mut tree = Tree::read(text, &mut report);
        changes.iter().for_each(|change| change.make(&mut tree.root));
        let config = effective::config(&tree.root, tree.dialect, &mut report);
        let warnings = report.finish()?;
        let (general, pools) = config.ok_or_else(|| Problem {
            file: file.to_owned(),
            line: None,
            key: String::new(),
            message: "is refused for a reason that was not noted: a bug of pgweir".to_owned(),
        })?;
        Ok((Self { general, pools, warnings }, tree))
    }
}

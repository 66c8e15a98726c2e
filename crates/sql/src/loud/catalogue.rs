//! From the catalogue of a database to its loud names.

use std::collections::{BTreeMap, BTreeSet};

use super::body::{Body, Language};
use super::{Effect, Loud};
use crate::classify::classify;
use crate::pins::{PinReason, Pins};

/// What the catalogue of a database says of functions, and of what calls them.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// All objects that matter, in any order.
    pub objects: Vec<Object>,
    /// Which of them uses which.
    pub uses: Vec<Use>,
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A function, procedure or aggregate.
    Function,
    /// A table, view or anything else that has rows.
    Relation,
    /// A type or domain.
    Type,
}

/// An object, by its kind and its OID.
pub type ObjectId = (Kind, u32);

/// One object of the catalogue.
#[derive(Clone, Debug)]
pub struct Object {
    /// Which it is.
    pub id: ObjectId,
    /// Its name, without its schema.
    pub name: String,
    /// Its body, of a function.
    pub source: Source,
    /// It was named as one that leaves nothing behind.
    pub is_quiet: bool,
}

/// What is known of what a function does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is no function, or one whose doings are not looked at.
    None,
    /// PostgreSQL's own, or one in C: what a call of it means is in [`crate::RULES`].
    Builtin,
    /// SQL.
    Sql(String),
    /// PL/pgSQL.
    Plpgsql(String),
    /// Another language, by name.
    Other(String, String),
}

/// One object uses another: what that does it may do itself.
#[derive(Clone, Debug)]
pub struct Use {
    /// Which uses.
    pub by: ObjectId,
    /// Which is used.
    pub of: ObjectId,
    /// At what.
    pub when: When,
    /// By what, in words: `trigger audit`.
    pub through: String,
}

/// When one object uses another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Whenever it is used itself.
    Always,
    /// When it is changed.
    Written,
}

/// What the languages that are not read call to run SQL.
const RUNS_SQL: [&str; 5] = ["plpy", "plv8", "spi_", "pg_", "execute"];

impl Catalogue {
    /// All names behind which a session is changed.
    pub fn loud(&self) -> Loud {
        let mut graph = Graph::new(self);
        graph.settle();
        let mut names: BTreeMap<Box<[u8]>, Effect> = BTreeMap::new();
        for (object, effect) in self.objects.iter().zip(graph.effects) {
            // A text that names one of PostgreSQL's own says what it does itself.
            if !effect.is_empty() && object.source != Source::Builtin {
                names.entry(object.name.as_bytes().into()).or_default().merge(&effect);
            }
        }
        Loud::new(names)
    }
}

/// The objects, what each is known to do so far, and whom each uses.
struct Graph<'a> {
    objects: &'a [Object],
    effects: Vec<Effect>,
    /// For each object, who uses it, when, and how.
    users: Vec<Vec<(usize, When, &'a str)>>,
}

impl<'a> Graph<'a> {
    fn new(catalogue: &'a Catalogue) -> Self {
        let objects = &catalogue.objects[..];
        let mut by_id = BTreeMap::new();
        let mut by_name: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (at, object) in objects.iter().enumerate() {
            by_id.insert(object.id, at);
            if object.source != Source::Builtin {
                by_name.entry(object.name.to_lowercase().into_bytes()).or_default().push(at);
            }
        }
        let mut users = vec![Vec::new(); objects.len()];
        for one in &catalogue.uses {
            let ends = (by_id.get(&one.by), by_id.get(&one.of));
            if let (Some(&by), Some(&of)) = ends
                && !objects[by].is_quiet
            {
                users[of].push((by, one.when, &*one.through));
            }
        }
        let mut effects = Vec::new();
        for (at, object) in objects.iter().enumerate() {
            let (effect, names, writes) = read(object);
            effects.push(effect);
            let when = if writes { When::Written } else { When::Always };
            let named = names.iter().filter_map(|name| by_name.get(&**name)).flatten();
            for &of in named.filter(|of| **of != at) {
                users[of].push((at, when, ""));
            }
        }
        Self { objects, effects, users }
    }

    /// Whoever uses an object does what that does, until all of them do.
    fn settle(&mut self) {
        let mut changed: BTreeSet<usize> = (0..self.objects.len()).collect();
        while let Some(of) = changed.pop_first() {
            if self.effects[of].is_empty() {
                continue;
            }
            for (by, when, through) in self.users[of].clone() {
                let does = self.through(of, by, when, through);
                if self.effects[by].merge(&does) {
                    changed.insert(by);
                }
            }
        }
    }

    /// What an object does that uses another one.
    fn through(&self, of: usize, by: usize, when: When, through: &str) -> Effect {
        let used = &self.effects[of];
        let all = used.reads.union(used.writes);
        let is_function = |at: usize| self.objects[at].id.0 == Kind::Function;
        let (reads, writes) = match when {
            // What a function changes it changes whoever calls it.
            When::Written if is_function(by) => (all, Pins::NONE),
            When::Always if is_function(by) => (used.reads, Pins::NONE),
            When::Written => (Pins::NONE, all),
            When::Always => (used.reads, used.writes),
        };
        let separator = if through.is_empty() { "" } else { ": " };
        let why = format!("{through}{separator}{} ({})", self.objects[of].name, used.why);
        Effect { reads, writes, custom: used.custom.clone(), why }
    }
}

/// What an object does by itself, the names in its body, and whether that changes tables.
fn read(object: &Object) -> (Effect, BTreeSet<Box<[u8]>>, bool) {
    let (mut body, what) = match &object.source {
        _ if object.is_quiet => (Body::default(), ""),
        Source::None => (Body::default(), ""),
        Source::Builtin => (builtin(&object.name), ""),
        Source::Sql(text) => (Body::read(text.as_bytes(), Language::Sql), ""),
        Source::Plpgsql(text) => (Body::read(text.as_bytes(), Language::Plpgsql), ""),
        Source::Other(language, text) => (foreign(text), &**language),
    };
    let names = std::mem::take(&mut body.names);
    let writes = body.writes;
    let separator = if what.is_empty() { "" } else { ": " };
    let why = format!("{what}{separator}{}", body.pins);
    (Effect { why, ..Effect::from(body) }, names, writes)
}

/// What a call of one of PostgreSQL's own functions leaves, whatever its arguments.
fn builtin(name: &str) -> Body {
    let pins = classify(format!("SELECT {name}()").as_bytes());
    Body { pins, ..Body::default() }
}

/// What is in a language that is not read: anything, if it runs SQL.
fn foreign(text: &str) -> Body {
    let text = text.to_lowercase();
    let runs_sql = RUNS_SQL.iter().any(|one| text.contains(one));
    let pins = if runs_sql { PinReason::Unclear.into() } else { Pins::NONE };
    Body { pins, ..Body::default() }
}

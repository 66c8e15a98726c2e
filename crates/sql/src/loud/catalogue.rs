//! From the catalogue of a database to its loud names.

use std::collections::{BTreeMap, BTreeSet};

use super::body::{Body, Language};
use super::{Change, Effect, Hidden, Loud};
use crate::builtins::{Builtin, builtin, only_waits};
use crate::classify::classify;
use crate::encoding::Encoding;
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
    /// What is done by what no text names: operators, casts, types' own functions. There is one
    /// such object, without a name.
    Unnamed,
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
    /// It is a function that says of itself that equal arguments make for equal results: PostgreSQL
    /// may compute it when it makes a plan, once for all who have that.
    pub is_immutable: bool,
}

impl Object {
    /// Adds to what it does, as far as that is known, that a plan may keep what it has computed for
    /// one client. `tells_user`: it says who that is.
    fn fold(&self, does: &mut Effect, tells_user: bool) {
        // What is opaque, and believed, counts as what changes something.
        let acts = [Hidden::OPAQUE, Hidden::CHANGES];
        let acts = acts.into_iter().any(|what| does.hidden.contains(what));
        if self.may_fold() && (acts || tells_user) {
            does.hidden.add(Hidden::FOLDED);
        }
    }

    /// Whether it keeps plans of what it runs for as long as its session lasts: in PL/pgSQL and its
    /// kin it does.
    fn keeps_plans(&self) -> bool {
        let is_procedural = match self.source {
            Source::Plpgsql(_) | Source::Other(..) => true,
            Source::None
            | Source::Builtin
            | Source::Alias(_)
            | Source::Native(_)
            | Source::Sql(_) => false,
        };
        is_procedural && self.id.0 == Kind::Function
    }

    /// Whether a plan may keep what it has computed. Machine code is believed that it is immutable.
    fn may_fold(&self) -> bool {
        let is_believed = match self.source {
            Source::Alias(_) | Source::Sql(_) | Source::Plpgsql(_) | Source::Other(..) => false,
            Source::None | Source::Builtin | Source::Native(_) => true,
        };
        self.is_immutable && !is_believed
    }
}

/// What is known of what a function does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is no function, or does what its parts do: an aggregate.
    None,
    /// PostgreSQL's own: what a call of it means is in [`crate::RULES`] and [`crate::EXCEPTIONS`].
    Builtin,
    /// Another name for those functions of PostgreSQL's own.
    Alias(Vec<String>),
    /// Machine code, of this extension if of any.
    Native(String),
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
    /// When its rows are changed, of which new ones may be made.
    Written,
    /// When its rows are changed, of which none are made.
    Changed,
    /// When columns of it are put to their defaults.
    Filled,
}

/// What is said of what no text names, where nobody keeps a server for it.
const ACTS: &str = "an operator, a cast or a type of which a function changes or locks rows";

/// The languages that are not read, but whose names for SQL are known. Any other one may call it
/// whatever it likes.
const KNOWN: [&str; 9] = [
    "plperl",
    "plperlu",
    "plpython2u",
    "plpython3u",
    "plpythonu",
    "pltcl",
    "pltclu",
    "plv8",
    "plv8u",
];

/// Words that say who the user is, or a client's search_path.
const TELLS_USER: [&[u8]; 6] =
    [b"current_role", b"current_schema", b"current_user", b"session_user", b"system_user", b"user"];

/// What those call to run SQL, in any case.
const RUNS_SQL: [&str; 5] = ["plpy", "plv8", "spi_", "pg_", "execute"];

/// What those call their variables that last as long as the session.
const KEEPS: [&str; 4] = ["GD", "SD", "_SHARED", "globalThis"];

impl Catalogue {
    /// All names behind which a session is changed.
    pub fn loud(&self) -> Loud {
        let mut graph = Graph::new(self);
        graph.settle();
        let mut names: BTreeMap<Box<[u8]>, Effect> = BTreeMap::new();
        let (mut quiet, mut unnamed) = (BTreeSet::new(), None);
        let folds = graph.folds_unnamed();
        let keeps_plans = graph.keeps_plans(Object::keeps_plans);
        let keeps_plans_of_sql =
            graph.keeps_plans(|object| matches!(object.source, Source::Sql(_)));
        for (object, mut effect) in self.objects.iter().zip(graph.effects) {
            effect.hidden = effect.hidden.without(Hidden::UNRULY);
            let is_silent = effect.is_empty() && effect.hidden == Hidden::NONE;
            match (object.id.0, &object.source) {
                // A text that names one of PostgreSQL's own says what it does itself.
                (_, Source::Builtin) => {}
                (Kind::Unnamed, _) if is_silent => {}
                (Kind::Unnamed, _) if effect.why.is_empty() => unnamed = Some(ACTS.into()),
                (Kind::Unnamed, _) => unnamed = Some(effect.why.into()),
                (Kind::Function, source) => {
                    if effect.is_empty() && !effect.hidden.contains(Hidden::OPAQUE) {
                        quiet.insert(object.name.as_bytes().into());
                    }
                    // And one that calls machine code by its name.
                    if let Source::Native(_) = source {
                        effect =
                            Effect { hidden: effect.hidden, why: effect.why, ..Effect::default() };
                    }
                    effect.hidden = effect.hidden.of_function();
                    names.entry(object.name.as_bytes().into()).or_default().merge(&effect);
                }
                (Kind::Relation | Kind::Type, _) => {
                    names.entry(object.name.as_bytes().into()).or_default().merge(&effect);
                }
            }
        }
        names.retain(|_, effect| !effect.is_empty() || effect.hidden != Hidden::NONE);
        Loud { folds, keeps_plans, keeps_plans_of_sql, ..Loud::new(names, quiet, unnamed) }
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
                by_name.entry(object.name.to_ascii_lowercase().into_bytes()).or_default().push(at);
            }
        }
        let mut users = vec![Vec::new(); objects.len()];
        for one in &catalogue.uses {
            let ends = (by_id.get(&one.by), by_id.get(&one.of));
            if let (Some(&by), Some(&of)) = ends {
                users[of].push((by, one.when, &*one.through));
            }
        }
        let mut effects = Vec::new();
        for (at, object) in objects.iter().enumerate() {
            let Read { mut effect, names, calls, change } = read(object);
            if calls.iter().any(|name| !by_name.contains_key(&**name)) {
                effect.hidden.add(Hidden::OPAQUE);
            }
            object.fold(&mut effect, names.iter().any(|name| TELLS_USER.contains(&&**name)));
            effects.push(if object.is_quiet { effect.believed() } else { effect });
            let when = match change {
                Change::Nothing => When::Always,
                Change::Rows => When::Changed,
                Change::Defaults => When::Written,
            };
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
            if self.effects[of].is_empty() && self.effects[of].hidden == Hidden::NONE {
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

    /// Whether a plan may keep, for all who have it, what no text names: because that is immutable
    /// itself, or because something that is may reach it.
    fn folds_unnamed(&self) -> bool {
        let unnamed = |(object, _): &(&Object, &Effect)| object.id.0 == Kind::Unnamed;
        let may_fold = self.objects.iter().any(Object::may_fold);
        self.objects.iter().zip(&self.effects).filter(unnamed).any(|(_, effect)| {
            effect.hidden.folds() || may_fold && effect.hidden.contains(Hidden::OPAQUE)
        })
    }

    /// Whether a function that keeps its plans has one in which something is computed that may be
    /// another thing for each client.
    fn keeps_plans(&self, keeps: impl Fn(&Object) -> bool) -> bool {
        let keeps = |at: usize| keeps(&self.objects[at]);
        let is_planned = |(effect, users): (&Effect, &Vec<(usize, When, &str)>)| {
            let folds = |when| match when {
                When::Always => effect.hidden.contains(Hidden::FOLDED),
                When::Written | When::Changed | When::Filled => effect.hidden.folds(),
            };
            users.iter().any(|(by, when, _)| folds(*when) && keeps(*by))
        };
        self.effects.iter().zip(&self.users).any(is_planned)
            || self.folds_unnamed() && (0..self.objects.len()).any(keeps)
    }

    /// What an object does that uses another one.
    fn through(&self, of: usize, by: usize, when: When, through: &str) -> Effect {
        let used = &self.effects[of];
        let is_function = |at: usize| self.objects[at].id.0 == Kind::Function;
        // What a function changes it changes whoever calls it.
        let (reads, writes, fills) = match when {
            When::Always if is_function(by) => (used.reads, Pins::NONE, Pins::NONE),
            When::Changed if is_function(by) => (used.pins(Change::Rows), Pins::NONE, Pins::NONE),
            When::Written | When::Filled if is_function(by) => {
                (used.pins(Change::Defaults), Pins::NONE, Pins::NONE)
            }
            When::Always => (used.reads, used.writes, used.fills),
            When::Changed => (Pins::NONE, used.pins(Change::Rows), Pins::NONE),
            When::Written => (Pins::NONE, used.pins(Change::Defaults), Pins::NONE),
            When::Filled => (Pins::NONE, Pins::NONE, used.pins(Change::Defaults)),
        };
        let hidden = match when {
            When::Always if is_function(by) => used.hidden.without_what_is_written(),
            When::Changed if is_function(by) => used.hidden.without_what_is_filled().all_at_once(),
            When::Written | When::Filled if is_function(by) => used.hidden.all_at_once(),
            When::Always => used.hidden,
            When::Changed => used.hidden.without_what_is_filled().when_written(),
            When::Written => used.hidden.when_written(),
            When::Filled => used.hidden.when_filled(),
        };
        let separator = if through.is_empty() { "" } else { ": " };
        let why = match used.why.is_empty() {
            // Nobody is kept for it: what somebody is kept for is the reason to be told.
            true => String::new(),
            false => format!("{through}{separator}{} ({})", self.objects[of].name, used.why),
        };
        let custom = used.custom.clone();
        let mut does = Effect { reads, writes, fills, custom, why, hidden };
        self.objects[by].fold(&mut does, false);
        if self.objects[by].is_quiet { does.believed() } else { does }
    }
}

/// What was read of an object.
struct Read {
    /// What it does by itself.
    effect: Effect,
    /// All names in its body.
    names: BTreeSet<Box<[u8]>>,
    /// Those of functions that it calls.
    calls: BTreeSet<Box<[u8]>>,
    /// How it changes tables.
    change: Change,
}

fn read(object: &Object) -> Read {
    let (mut body, what) = match &object.source {
        Source::None => (Body::default(), ""),
        Source::Builtin => (of_postgresql(object.id.0, &object.name), ""),
        Source::Alias(names) => (alias(names), ""),
        Source::Native(extension) => (native(extension, &object.name), ""),
        Source::Sql(text) => (read_body(text, Language::Sql, object.is_quiet), ""),
        Source::Plpgsql(text) => (read_body(text, Language::Plpgsql, object.is_quiet), ""),
        Source::Other(language, text) => (foreign(language, text), &**language),
    };
    let (names, calls) = (std::mem::take(&mut body.names), std::mem::take(&mut body.calls));
    let change = body.change;
    let updated = match (object.id.0, &object.source) {
        (Kind::Relation, Source::Builtin) => updated(&object.name),
        _ => Pins::NONE,
    };
    let separator = if what.is_empty() { "" } else { ": " };
    let why = format!("{what}{separator}{}", body.pins.union(updated));
    let mut effect = Effect { why, writes: updated, ..Effect::from(body) };
    if effect.is_empty() && effect.hidden.contains(Hidden::OPAQUE) {
        effect.why = format!("{what}{separator}not known");
    }
    Read { effect, names, calls, change }
}

/// Reads a body: the catalogue is given in UTF-8.
fn read_body(text: &str, language: Language, may_wait: bool) -> Body {
    Body::read(text.as_bytes(), language, Encoding::Exact, may_wait)
}

/// What a call of one of PostgreSQL's own functions leaves, or a look at one of its views, whatever
/// its arguments.
fn of_postgresql(kind: Kind, name: &str) -> Body {
    let known = builtin(name.as_bytes());
    let is_opaque = match kind {
        Kind::Function => !matches!(known, Some(Builtin::Quiet | Builtin::Numbers)),
        Kind::Relation | Kind::Type | Kind::Unnamed => known == Some(Builtin::Exception),
    };
    // It stands for what waits behind the end of a statement, too, where the catalogue is read.
    let is_unruly = kind == Kind::Function && only_waits(name.as_bytes());
    Body { is_opaque, is_unruly, locks: known == Some(Builtin::Numbers), ..called(name) }
}

/// The same of a function that is one of these under another name: anything, if it is none.
fn alias(names: &[String]) -> Body {
    let mut body = Body { is_opaque: names.is_empty(), ..Body::default() };
    for name in names.iter().filter(|name| !OF_TEXT.contains(&name.as_str())) {
        let of = of_postgresql(Kind::Function, name);
        body.pins = body.pins.union(of.pins);
        body.is_opaque |= of.is_opaque;
        body.locks |= of.locks;
    }
    body
}

/// What reads and writes values of text. The own functions of types are none that are called, so
/// they are not among those that are known; these are those of other types too (`citext`).
const OF_TEXT: [&str; 8] =
    ["byteain", "byteaout", "bytearecv", "byteasend", "textin", "textout", "textrecv", "textsend"];

/// The same of machine code that a database has besides.
fn native(extension: &str, name: &str) -> Body {
    Body {
        is_opaque: !COMPUTING_EXTENSIONS.contains(&extension) || DO_MORE.contains(&name),
        ..called(name)
    }
}

/// What an UPDATE of one of PostgreSQL's own views leaves, through whatever it comes: which setting
/// is changed no text need show then.
fn updated(view: &str) -> Pins {
    let pins = classify(format!("UPDATE {view} SET setting = 1").as_bytes());
    match pins.contains(PinReason::Setting) {
        true => pins.union(PinReason::Unclear.into()),
        false => pins,
    }
}

/// What a text says that calls this.
fn called(name: &str) -> Body {
    let pins = classify(format!("SELECT {name}()").as_bytes());
    Body { pins, ..Body::default() }
}

/// What is in a language that is not read: anything, unless it is seen that it runs no SQL.
fn foreign(language: &str, text: &str) -> Body {
    let in_lower = text.to_lowercase();
    let only_computes = KNOWN.contains(&language)
        && !RUNS_SQL.iter().any(|one| in_lower.contains(one))
        && !KEEPS.iter().any(|one| text.contains(one));
    let pins = if only_computes { Pins::NONE } else { PinReason::Unclear.into() };
    Body { pins, is_opaque: true, ..Body::default() }
}

/// Functions of those extensions that do more: PostGIS's number their transaction, or run SQL, by
/// which one makes a table.
const DO_MORE: [&str; 4] =
    ["checkauth", "checkauthtrigger", "gettransactionid", "st_fromflatgeobuftotable"];

/// Extensions whose machine code does no more than compute and read, but for a few functions of
/// PostGIS's and for what [`crate::RULES`] names.
pub const COMPUTING_EXTENSIONS: [&str; 31] = [
    "bloom",
    "btree_gin",
    "btree_gist",
    "citext",
    "cube",
    "dict_int",
    "dict_xsyn",
    "earthdistance",
    "fuzzystrmatch",
    "h3",
    "hll",
    "hstore",
    "intagg",
    "intarray",
    "ip4r",
    "ltree",
    "moddatetime",
    "pg_bigm",
    "pg_trgm",
    "pg_uuidv7",
    "pgcrypto",
    "postgis",
    "prefix",
    "seg",
    "semver",
    "tdigest",
    "tsm_system_rows",
    "tsm_system_time",
    "unaccent",
    "uuid-ossp",
    "vector",
];

//! What a client asked for in its startup packet beyond user and database, and how a pooled
//! server is brought to it.

mod switches;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use pgweir_sql::{Overrides, Pins, Scope};

use crate::marks::Mark;
use crate::memory::Usage;
use crate::pipeline::Choice;
use crate::track::Names;

pub(crate) use switches::{BadStartup, switches};

/// Run-time parameters that a client wants, by lower-case name.
///
/// Interned: two clients that want the same hold the same `Rc`, so that the question at every
/// checkout, "does this server fit?", is a comparison of pointers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Settings {
    pairs: Pairs,
    /// Those of them that matter to what a statement means, if not all of them do.
    reading: Option<Rc<Self>>,
    /// Those of them that no unit may run under wrongly, if there are others.
    binding: Option<Rc<Self>>,
    /// All but the client's name, if they have one.
    nameless: Option<Rc<Self>>,
    /// All but the client's own timeout, if they have one.
    timeless: Option<Rc<Self>>,
}

/// A name and a value.
pub(crate) type Pair = (Box<[u8]>, Box<[u8]>);
pub(crate) type Pairs = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// Settings that do nothing in a startup packet, and by `set_config` would do something:
/// `check_random_seed` heeds interactive changes only, and the session's user is set with a higher
/// priority than the client's (`InitializeSessionUserId`).
const IN_VAIN: [&[u8]; 2] = [b"seed", b"session_authorization"];

/// What a startup packet names that is no setting.
const NO_SETTINGS: [&[u8]; 3] = [b"user", b"database", b"replication"];

/// The settings that decide what rights the session has. To set the second takes the first back,
/// and the rights of a session to set anything else are those that they give.
const RIGHTS: [&[u8]; 2] = [b"role", b"session_authorization"];

/// Where clients name themselves.
const NAME: &[u8] = b"application_name";

/// In which encoding a session hears and is told.
pub(crate) const ENCODING: &[u8] = b"client_encoding";

/// In which one its database is. Nobody sets it.
pub(crate) const DATABASE_ENCODING: &[u8] = b"server_encoding";

/// Where a statement that takes too long is ended by its server.
pub(crate) const TIMEOUT: &[u8] = b"statement_timeout";

/// What ends a whole connection in its place (PostgreSQL 17).
pub(crate) const TRANSACTION_TIMEOUT: &[u8] = b"transaction_timeout";

/// Where a client says whether it shares servers. It is ours: what a startup packet says of it no
/// server is told.
pub(crate) const SHARING: &[u8] = b"pgweir.pipelining";

/// What statements mean is the same whatever these are. Nor do those matter that have a dot in
/// their names: a statement that asks for one asks when it is run, unless what asks is folded.
const NO_MATTER: [&[u8]; 6] = [
    NAME,
    b"client_min_messages",
    b"idle_in_transaction_session_timeout",
    b"idle_session_timeout",
    b"lock_timeout",
    b"statement_timeout",
];

/// Settings that decide what a unit that only reads says, and neither how its text is read nor what
/// it may do: if it ran under others, no harm is done as long as nobody hears what it said. So are
/// those that have a dot in their names.
const FORESEEN: [&[u8]; 16] = [
    NAME,
    b"bytea_output",
    b"client_min_messages",
    b"datestyle",
    b"default_transaction_isolation",
    b"default_transaction_read_only",
    b"extra_float_digits",
    b"idle_in_transaction_session_timeout",
    b"idle_session_timeout",
    b"intervalstyle",
    b"jit",
    b"lock_timeout",
    b"search_path",
    b"synchronous_commit",
    b"timezone",
    b"work_mem",
];

impl Settings {
    /// Those of them that matter to what a statement means: under equal ones a text is read in the
    /// same way.
    pub(crate) fn reading(this: &Rc<Self>) -> Rc<Self> {
        Rc::clone(this.reading.as_ref().unwrap_or(this))
    }

    /// All of them but the client's name.
    pub(crate) fn nameless(this: &Rc<Self>) -> Rc<Self> {
        Rc::clone(this.nameless.as_ref().unwrap_or(this))
    }

    /// All of them but the time after which a statement is ended.
    pub(crate) fn timeless(this: &Rc<Self>) -> Rc<Self> {
        Rc::clone(this.timeless.as_ref().unwrap_or(this))
    }

    /// Whether a server that is to be set from these to others may be sent units that only read
    /// before it has said that it is.
    pub(crate) fn foresees(these: &Rc<Self>, others: &Rc<Self>) -> bool {
        let of = |settings: &Rc<Self>| Rc::as_ptr(settings.binding.as_ref().unwrap_or(settings));
        of(these) == of(others)
    }

    /// What a client calls itself.
    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.value(NAME)
    }

    /// The statement that takes a server from these settings to `target`, all or nothing.
    ///
    /// `set_config` reads a value as the startup packet does (a list stays a list, where `SET`
    /// would take it for one quoted name), and NULL goes back to the server's default. What
    /// differs is first taken back: a new `DateStyle` keeps of the old one what it does not name.
    /// A role, or another user, comes off before anything else and on behind everything else, since
    /// at login those are not whose rights count. That `set_config` answers with the value is
    /// hidden: the client's new encoding may have no word for it.
    ///
    /// A `statement_timeout` of ours that is there is taken off, and one that is to be there put
    /// on, in the place of the client's; one that is to stay is left alone.
    pub(crate) fn replay(
        &self,
        target: &Self,
        there: Option<Duration>,
        then: Option<Duration>,
    ) -> Vec<u8> {
        let times = |settings: &Self| settings.pairs.contains_key(TIMEOUT);
        let stays = there == then && !times(self) && !times(target);
        let (there, then) = if stays { (None, None) } else { (there, then) };
        let brakes = there.is_some() || then.is_some();
        let differs = |name: &[u8]| {
            rank(name) < RIGHTS.len()
                || self.pairs.get(name) != target.pairs.get(name)
                || brakes && *name == *TIMEOUT
        };
        let mut back: Vec<_> = self.pairs.keys().filter(|name| differs(name)).collect();
        back.sort_by_key(|name| rank(name));
        let mut forth: Vec<_> = target.pairs.iter().filter(|(name, _)| differs(name)).collect();
        forth.sort_by_key(|(name, _)| Reverse(rank(name)));
        let back = back.into_iter().map(|name| (name, None));
        let forth = forth.into_iter().map(|(name, value)| (name, Some(value)));
        // One array, since a target list has at most 1664 entries.
        let mut text = b"SELECT ARRAY[".to_vec();
        for (at, (name, value)) in back.chain(forth).enumerate() {
            text.extend_from_slice(if at == 0 { b"" } else { b", " });
            put_call(&mut text, name, value.map(|value| &**value), Scope::Session);
        }
        if there.is_some() && !times(self) && !times(target) {
            separate(&mut text);
            put_call(&mut text, TIMEOUT, None, Scope::Session);
        }
        if let Some(then) = then {
            separate(&mut text);
            let then = then.as_millis().to_string();
            put_call(&mut text, TIMEOUT, Some(then.as_bytes()), Scope::Session);
        }
        text.extend_from_slice(b"] IS NULL");
        text
    }

    /// Why a server stays with a client that has these settings, whatever it says.
    pub(crate) fn pins(&self) -> Pins {
        self.value(b"search_path").map_or(Pins::NONE, pgweir_sql::search_path)
    }

    /// Notes which of them a statement takes back that overrides this.
    pub(crate) fn taken_back(&self, what: &Overrides, scope: Scope, names: &mut Names) {
        for name in self.pairs.keys() {
            let is_taken = match what {
                Overrides::All => true,
                Overrides::AllButRights => rank(name) == RIGHTS.len(),
                // The session's user takes the role with it.
                Overrides::One(one) if **one == *RIGHTS[1] => rank(name) < RIGHTS.len(),
                Overrides::One(one) => **name == **one,
            };
            if is_taken {
                let known = names.entry(name.clone()).or_insert(scope);
                *known = scope.max(*known);
            }
        }
    }

    /// Whether a role, or a custom setting, is set to nothing among these.
    pub(crate) fn is_nothing(&self, name: &[u8]) -> bool {
        match self.value(name) {
            Some(value) => value.is_empty() && name.contains(&b'.'),
            None => name == RIGHTS[0],
        }
    }

    /// The statement that sets those of them again that have these names and are what they are by
    /// default, if there are any.
    pub(crate) fn put_back(&self, names: &Names) -> Option<Vec<u8>> {
        let named = self
            .pairs
            .iter()
            .filter_map(|(name, value)| names.get(name).map(|scope| (name, value, *scope)));
        let mut pairs: Vec<_> = named.collect();
        if pairs.is_empty() {
            return None;
        }
        pairs.sort_by_key(|(name, ..)| Reverse(rank(name)));
        let mut text = b"WITH s AS MATERIALIZED (SELECT pg_catalog.lower(name) \
            FROM pg_catalog.pg_settings WHERE source = 'session') SELECT ARRAY["
            .to_vec();
        for (at, (name, value, scope)) in pairs.into_iter().enumerate() {
            text.extend_from_slice(if at == 0 { b"CASE WHEN " } else { b", CASE WHEN " });
            if rank(name) < RIGHTS.len() {
                text.extend_from_slice(b"pg_catalog.current_setting(");
                put_text(&mut text, name);
                text.extend_from_slice(b") = 'none'");
            } else if name.contains(&b'.') {
                text.extend_from_slice(b"coalesce(pg_catalog.current_setting(");
                put_text(&mut text, name);
                text.extend_from_slice(b", true), '') = ''");
            } else {
                put_text(&mut text, name);
                text.extend_from_slice(b" NOT IN (TABLE s)");
            }
            text.extend_from_slice(b" THEN ");
            put_call(&mut text, name, Some(value), scope);
            text.extend_from_slice(b" END");
        }
        text.extend_from_slice(b"] IS NULL");
        Some(text)
    }

    /// These without what a statement overrides, of which there is what `startup` has.
    pub(crate) fn without(&self, what: &Overrides, startup: &Self) -> Pairs {
        let mut pairs = self.pairs.clone();
        pairs.retain(|name, _| match what {
            Overrides::All => false,
            Overrides::AllButRights => rank(name) < RIGHTS.len(),
            // The session's user takes the role with it.
            Overrides::One(one) if **one == *RIGHTS[1] => rank(name) >= RIGHTS.len(),
            Overrides::One(one) => **name != **one,
        });
        let gone = |name: &[u8]| self.pairs.contains_key(name);
        for (name, value) in startup.pairs.iter().filter(|(name, _)| gone(name)) {
            pairs.entry(name.clone()).or_insert_with(|| value.clone());
        }
        pairs
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// All of them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The names of all.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.pairs.keys().map(|name| &**name)
    }

    /// The names of those that no list of PostgreSQL's shows.
    pub(crate) fn custom(&self) -> impl Iterator<Item = &[u8]> {
        self.names().filter(|name| name.contains(&b'.'))
    }

    /// The value of a setting, if it is among them.
    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.pairs.get(name).map(|value| &**value)
    }
}

/// What a startup packet asks for.
#[derive(Debug)]
pub(crate) struct Wishes {
    /// Of servers.
    pub(crate) settings: Rc<Settings>,
    /// Of us.
    pub(crate) choice: Choice,
}

/// All settings that are in use.
#[derive(Debug)]
pub(crate) struct Interner {
    known: BTreeMap<Pairs, Rc<Settings>>,
    none: Rc<Settings>,
}

/// Sets that nobody uses any more are dropped when this many are known.
const PRUNE_ABOVE: usize = 1_024;

impl Interner {
    pub(crate) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            none: Rc::new(Settings {
                pairs: Pairs::new(),
                reading: None,
                binding: None,
                nameless: None,
                timeless: None,
            }),
        }
    }

    /// The empty set: what a server has when it is new, or after DISCARD ALL.
    pub(crate) fn none(&self) -> Rc<Settings> {
        Rc::clone(&self.none)
    }

    /// What a startup packet asks for, its `options` taken apart.
    pub(crate) fn of_startup<'a>(
        &mut self,
        parameters: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Wishes, BadStartup> {
        let mut own = Pairs::new();
        let mut options: &[u8] = b"";
        for (name, value) in parameters {
            let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
            if is(b"options") {
                options = value;
            } else if !NO_SETTINGS.iter().any(|no| is(no)) && !name.starts_with(b"_pq_.") {
                own.insert(name.to_ascii_lowercase().into(), value.into());
            }
        }
        // The packet's own parameters win over its options, and of these the last
        // (`process_startup_options`).
        let mut pairs: Pairs = switches(options)?.into_iter().collect();
        pairs.extend(own);
        pairs.retain(|name, _| !IN_VAIN.contains(&&**name));
        let choice = match pairs.remove(SHARING) {
            None => Choice::default(),
            Some(value) => match Choice::parse(&value) {
                Some(choice) => choice,
                None => return Err(BadStartup::Choice(value.into())),
            },
        };
        Ok(Wishes { settings: self.intern(pairs), choice })
    }

    /// What the sets take; one that nobody uses any more is free to go.
    pub(crate) fn usage(&self) -> Usage {
        let pairs = self.known.keys().flatten();
        let sizes = pairs.map(|(name, value)| size_of::<Pair>() + name.len() + value.len());
        // Each lies here twice: to be found, and to be shared.
        let total = sizes.sum::<usize>() * 2;
        let is_used = |settings: &&Rc<Settings>| Rc::strong_count(settings) > 1;
        let used = self.known.values().filter(is_used).count();
        Usage::of_bytes(total, used, self.known.len() - used)
    }

    /// These under another client's name.
    pub(crate) fn named_as(&mut self, these: &Settings, other: &Settings) -> Rc<Settings> {
        let mut pairs = these.pairs.clone();
        pairs.remove(NAME);
        if let Some(name) = other.name() {
            pairs.insert(NAME.into(), name.into());
        }
        self.intern(pairs)
    }

    /// The set of just these.
    pub(crate) fn intern(&mut self, pairs: Pairs) -> Rc<Settings> {
        if pairs.is_empty() {
            return self.none();
        }
        if let Some(known) = self.known.get(&pairs) {
            return Rc::clone(known);
        }
        if self.known.len() >= PRUNE_ABOVE {
            Mark::SettingsForgotten.hit();
            self.known.retain(|_, settings| Rc::strong_count(settings) > 1);
        }
        let reading = self.intern_but(&pairs, &NO_MATTER);
        let binding = self.intern_but(&pairs, &FORESEEN);
        let nameless = self.intern_without(&pairs, NAME);
        let timeless = self.intern_without(&pairs, TIMEOUT);
        let settings = Settings { pairs: pairs.clone(), reading, binding, nameless, timeless };
        let settings = Rc::new(settings);
        self.known.insert(pairs, Rc::clone(&settings));
        settings
    }

    /// All but these, and those that have a dot in their names, if there are such.
    fn intern_but(&mut self, pairs: &Pairs, those: &[&[u8]]) -> Option<Rc<Settings>> {
        let stays = |name: &[u8]| !those.contains(&name) && !name.contains(&b'.');
        (!pairs.keys().all(|name| stays(name))).then(|| {
            let pairs = pairs.iter().filter(|(name, _)| stays(name));
            self.intern(pairs.map(|(name, value)| (name.clone(), value.clone())).collect())
        })
    }

    /// All but this one, if it is among them.
    fn intern_without(&mut self, pairs: &Pairs, name: &[u8]) -> Option<Rc<Settings>> {
        pairs.contains_key(name).then(|| {
            let mut pairs = pairs.clone();
            pairs.remove(name);
            self.intern(pairs)
        })
    }
}

/// In which order settings come off; they go on in the opposite one.
fn rank(name: &[u8]) -> usize {
    RIGHTS.iter().position(|right| *right == name).unwrap_or(RIGHTS.len())
}

/// Appends what stands between two elements of an array.
fn separate(out: &mut Vec<u8>) {
    if !out.ends_with(b"[") {
        out.extend_from_slice(b", ");
    }
}

/// Appends what sets a setting, or takes it back.
fn put_call(out: &mut Vec<u8>, name: &[u8], value: Option<&[u8]>, scope: Scope) {
    out.extend_from_slice(b"pg_catalog.set_config(");
    put_text(out, name);
    out.extend_from_slice(b", ");
    match value {
        Some(value) => put_text(out, value),
        None => out.extend_from_slice(b"NULL"),
    }
    out.extend_from_slice(match scope {
        Scope::Transaction => b", true)",
        Scope::Session => b", false)",
    });
}

/// Appends an expression for a text in plain ASCII. The statement is read in the encoding of
/// whoever was here before, and what a byte above 127 makes of those behind it only that encoding
/// says (in SJIS it may swallow a backslash). The bytes of a startup packet are in none but the
/// database's.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    if text.is_ascii() {
        return put_literal(out, text);
    }
    out.extend_from_slice(b"pg_catalog.convert_from(pg_catalog.decode('");
    for byte in text {
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    out.extend_from_slice(b"', 'hex'), pg_catalog.getdatabaseencoding())");
}

/// Appends a string literal that reads the same whatever standard_conforming_strings says.
fn put_literal(out: &mut Vec<u8>, text: &[u8]) {
    if text.contains(&b'\\') {
        out.push(b'E');
    }
    out.push(b'\'');
    for &byte in text {
        if byte == b'\'' || byte == b'\\' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests;

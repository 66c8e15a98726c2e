//! The names of one database behind which a session is changed unseen: *loud* names.
//!
//! A function may call `set_config`, a table may have a trigger that does. No text shows that, but
//! the catalogue does ([`Catalogue`]). A text that names one of them is judged as if it did itself
//! what stands behind the name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::classify::{Classifier, Heard};
use crate::encoding::{Encoding, folded};
use crate::pins::{PinReason, Pins};

mod body;
mod catalogue;
mod into;
mod spans;
#[cfg(test)]
mod tests;

pub use catalogue::{COMPUTING_EXTENSIONS, Catalogue, Kind, Object, ObjectId, Source, Use, When};

/// What belongs to the last values of sequences.
pub(crate) const SEQUENCES: Pins =
    Pins::of(PinReason::Sequence).union(Pins::of(PinReason::LastValue));

/// What PostgreSQL keeps of a name.
const NAME_BYTES: usize = 63;

/// The bytes of a character, in any encoding.
const LONGEST_CHARACTER: usize = 4;

/// The loud names of a database.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loud {
    /// By name, in lower case.
    names: Vec<(Box<[u8]>, Effect)>,
    /// For what a name looks like, whether there may be one like it.
    looks: [u64; LOOKS],
    /// The functions of the database that do no more than compute, read and change rows, in lower
    /// case and in their order.
    quiet: Vec<Box<[u8]>>,
    /// One of the names goes beyond ASCII, and leaves something.
    beyond_ascii: bool,
    /// The same of one that may be what is left of a longer one.
    long: bool,
    /// The catalogue was read.
    known: bool,
    /// What may be done by what no text names, in words.
    unnamed: Option<Box<str>>,
    /// What no text names may be computed once for a plan, and be another thing for each client.
    folds: bool,
    /// The same of what stands behind one of the names.
    names_fold: bool,
    /// A function keeps a plan in which that is so.
    keeps_plans: bool,
    /// The same of one in SQL.
    keeps_plans_of_sql: bool,
}

/// So many words of bits tell names by their looks.
const LOOKS: usize = 16;

/// What stands behind a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// What is left by whatever names it.
    pub reads: Pins,
    /// What is left besides by a text that changes tables.
    pub writes: Pins,
    /// What is left besides by one that makes rows, or puts columns to their defaults.
    pub fills: Pins,
    /// The custom settings that it may change, in lower case.
    pub custom: BTreeSet<Box<[u8]>>,
    /// What was found, in words.
    pub why: String,
    /// What keeps a text alone that names it, and changes no session.
    pub(crate) hidden: Hidden,
}

/// How a text changes tables, as far as its words say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    #[default]
    Nothing,
    /// Rows that are there: no default is computed.
    Rows,
    /// Rows are made, or columns put to their defaults.
    Defaults,
}

/// What stands behind a name that matters only to whether a text may be shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden(u16);

impl Hidden {
    pub(crate) const NONE: Self = Self(0);
    /// As a function it cannot be read, or does more than to compute, read and change rows.
    pub(crate) const CALLED: Self = Self(1);
    /// The same of what is done whenever it is named.
    pub(crate) const OPAQUE: Self = Self(2);
    /// The same of what is done when it is changed.
    pub(crate) const OPAQUE_WRITTEN: Self = Self(4);
    /// It changes rows, whenever it is named, or may do something else that is not to be done twice
    /// or in a transaction with others.
    pub(crate) const CHANGES: Self = Self(8);
    /// It locks rows, or numbers its transaction, whenever it is named.
    pub(crate) const LOCKS: Self = Self(16);
    /// What makes it opaque is no matter of what it leaves: it shares no server, whoever is
    /// believed.
    pub(crate) const UNRULY: Self = Self(32);
    /// It may be computed once for a plan, and be another thing for each client: it calls itself
    /// immutable, and asks for a setting, for one.
    pub(crate) const FOLDED: Self = Self(64);
    /// The same of what is done when it is changed.
    pub(crate) const FOLDED_WRITTEN: Self = Self(128);
    /// As [`Self::OPAQUE`], of what is done when its columns are put to their defaults.
    pub(crate) const OPAQUE_FILLED: Self = Self(256);
    /// As [`Self::FOLDED`], of the same.
    pub(crate) const FOLDED_FILLED: Self = Self(512);

    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether a text that changes tables in this way cannot be read for it.
    pub(crate) fn is_opaque(self, change: Change) -> bool {
        self.contains(Self::OPAQUE)
            || change >= Change::Rows && self.contains(Self::OPAQUE_WRITTEN)
            || change >= Change::Defaults && self.contains(Self::OPAQUE_FILLED)
    }

    /// What is done to whoever changes a table by what is done here.
    fn when_written(self) -> Self {
        self.when(Self::OPAQUE_WRITTEN, Self::FOLDED_WRITTEN)
    }

    /// The same, to whoever puts columns to their defaults.
    fn when_filled(self) -> Self {
        self.when(Self::OPAQUE_FILLED, Self::FOLDED_FILLED)
    }

    fn when(self, opaque: Self, folded: Self) -> Self {
        let mut when = Self(self.0 & Self::UNRULY.0);
        if self.is_opaque(Change::Defaults) {
            when.add(opaque);
        }
        if self.folds() {
            when.add(folded);
        }
        when
    }

    /// What a function does that changes this.
    fn all_at_once(self) -> Self {
        let mut all = self.without_what_is_written();
        if self.is_opaque(Change::Defaults) {
            all.add(Self::OPAQUE);
        }
        if self.folds() {
            all.add(Self::FOLDED);
        }
        all
    }

    /// What a function does that reads this.
    const fn without_what_is_written(self) -> Self {
        self.without_what_is_filled().without(Self::OPAQUE_WRITTEN).without(Self::FOLDED_WRITTEN)
    }

    /// What is done where no column is put to its default.
    const fn without_what_is_filled(self) -> Self {
        self.without(Self::OPAQUE_FILLED).without(Self::FOLDED_FILLED)
    }

    /// Whether something may be computed once for a plan, and be another thing for each client.
    pub(crate) const fn folds(self) -> bool {
        self.0 & (Self::FOLDED.0 | Self::FOLDED_WRITTEN.0 | Self::FOLDED_FILLED.0) != 0
    }

    /// What the name of a function that does this says of a text: nothing, where nobody calls it.
    const fn of_function(self) -> Self {
        let called = if self.0 & Self::OPAQUE.0 != 0 { Self::CALLED } else { Self::NONE };
        Self(self.0 | called.0).without(Self::OPAQUE)
    }
}

/// What a text does unseen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// The first name that stands for it.
    pub name: String,
    /// What is left.
    pub pins: Pins,
    /// The custom settings that may be changed, in lower case.
    pub custom: BTreeSet<Box<[u8]>>,
}

impl Loud {
    /// What a catalogue says: these names, in lower case or as they are quoted, those of quiet
    /// functions, and what is done by what has none.
    pub(crate) fn new(
        effects: BTreeMap<Box<[u8]>, Effect>,
        quiet: BTreeSet<Box<[u8]>>,
        unnamed: Option<Box<str>>,
    ) -> Self {
        let mut names: BTreeMap<Box<[u8]>, Effect> = BTreeMap::new();
        for (name, effect) in effects {
            names.entry(lower(&name)).or_default().merge(&effect);
        }
        let mut looks = [0; LOOKS];
        for name in names.keys() {
            let (word, bit) = look(name);
            looks[word] |= bit;
        }
        let quiet: BTreeSet<_> = quiet.iter().map(|name| lower(name)).collect();
        let is_quiet = |name: &[u8]| {
            names.get(name).is_none_or(|effect| !effect.hidden.contains(Hidden::CALLED))
        };
        let quiet = quiet.into_iter().filter(|name| is_quiet(name)).collect();
        let leaves = || names.iter().filter(|(_, effect)| !effect.is_empty());
        let beyond_ascii = leaves().any(|(name, _)| !name.is_ascii());
        let long = leaves().any(|(name, _)| is_long(name));
        let names_fold = names.values().any(|effect| effect.hidden.folds());
        let names = names.into_iter().collect();
        Self {
            names,
            looks,
            quiet,
            beyond_ascii,
            long,
            known: true,
            unnamed,
            folds: false,
            names_fold,
            keeps_plans: false,
            keeps_plans_of_sql: false,
        }
    }

    /// Whether a catalogue has said so, and not nobody anything.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// What may be done to a session by what no text names: operators, casts, types.
    pub fn unnamed(&self) -> Option<&str> {
        self.unnamed.as_deref()
    }

    /// Whether what no text names may be computed once for a plan, and be another thing for each
    /// client.
    pub(crate) fn folds(&self) -> bool {
        self.folds
    }

    /// Whether anything may be.
    pub(crate) fn may_fold(&self) -> bool {
        self.folds || self.names_fold
    }

    /// Whether a function keeps for its session a plan in which something is computed that may be
    /// another thing for each client. `DISCARD PLANS` makes it forget that.
    pub fn keeps_plans(&self) -> bool {
        self.keeps_plans
    }

    /// The same of those in SQL, which keep plans since PostgreSQL 18.
    pub fn keeps_plans_of_sql(&self) -> bool {
        self.keeps_plans_of_sql
    }

    /// Whether a name is that of functions of the database that do no more than compute, read and
    /// change rows.
    pub(crate) fn is_quiet(&self, name: &[u8]) -> bool {
        let order = |known: &[u8]| order(known, name);
        self.quiet.binary_search_by(|known| order(known)).is_ok()
    }

    /// What a name hides.
    pub(crate) fn hidden(&self, place: usize) -> Hidden {
        self.names.get(place).map_or(Hidden::NONE, |(_, effect)| effect.hidden)
    }

    /// Whether there is no such name.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// All names, in lower case, and what stands behind each.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Effect)> {
        let is_loud = |effect: &Effect| !effect.is_empty();
        let names = self.names.iter().filter(move |(_, effect)| is_loud(effect));
        names.map(|(name, effect)| (&**name, effect))
    }

    /// What a name stands for here that it did not in another list: whatever was named meanwhile
    /// may have done that.
    #[must_use]
    pub fn news_since(&self, before: &Self) -> Option<Unseen> {
        let mut news: Option<Unseen> = None;
        for (name, effect) in self.iter() {
            let place = before.place(name);
            let known = place.is_some_and(|place| before.names[place].1.leaves_no_less(effect));
            if !known {
                let unseen = effect.unseen(name, Change::Defaults);
                match &mut news {
                    Some(news) => news.add(unseen),
                    None => news = Some(unseen),
                }
            }
        }
        news
    }

    /// The place of a name, in any case: the name of a quoted one that differs only in that counts
    /// too.
    #[inline]
    pub(crate) fn place(&self, name: &[u8]) -> Option<usize> {
        let (word, bit) = look(name);
        if self.looks[word] & bit == 0 {
            return None;
        }
        self.names.binary_search_by(|(known, _)| order(known, name)).ok()
    }

    /// Whether a name beyond ASCII, in another encoding than the catalogue or cut off otherwise,
    /// may be one of these: one that goes beyond ASCII itself, or what is left in front of that
    /// when it is cut off, or what its letters in lower case are.
    pub(crate) fn may_be(&self, name: &[u8]) -> bool {
        let is_folded = || {
            let place = folded(name).and_then(|name| self.place(&name));
            place.is_some_and(|place| !self.names[place].1.is_empty())
        };
        self.beyond_ascii || self.long && is_long(name) || is_folded()
    }

    /// What a text leaves that names this one.
    pub(crate) fn pins(&self, place: usize, change: Change) -> Pins {
        self.names.get(place).map_or(Pins::NONE, |(_, effect)| effect.pins(change))
    }

    /// The same in more words, if it is more than the last value of a sequence: that half of all
    /// tables leave.
    pub(crate) fn unseen(&self, place: usize, change: Change) -> Option<Unseen> {
        let (name, effect) = self.names.get(place)?;
        let is_more = !effect.pins(change).difference(SEQUENCES).is_empty();
        is_more.then(|| effect.unseen(name, change))
    }
}

impl Effect {
    fn pins(&self, change: Change) -> Pins {
        match change {
            Change::Nothing => self.reads,
            Change::Rows => self.reads.union(self.writes),
            Change::Defaults => self.reads.union(self.writes).union(self.fills),
        }
    }

    fn unseen(&self, name: &[u8], change: Change) -> Unseen {
        let name = String::from_utf8_lossy(name).into_owned();
        Unseen { name, pins: self.pins(change), custom: self.custom.clone() }
    }

    /// The same, of who is named as one that leaves nothing behind: it keeps no server. But what it
    /// does in the session is there up to the end of its transaction, at least: so it counts as
    /// what changes rows, which is not run again, and is in no transaction with others.
    pub(crate) fn believed(self) -> Self {
        let is_opaque = self.hidden.contains(Hidden::OPAQUE);
        let mut hidden = self.hidden;
        if is_opaque || !self.is_empty() {
            hidden.add(Hidden::CHANGES);
        }
        if !hidden.contains(Hidden::UNRULY) {
            hidden = hidden.without(Hidden::OPAQUE);
        }
        Self { hidden, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pins(Change::Defaults).is_empty()
    }

    /// Adds what another one does. Says whether that is more.
    pub(crate) fn merge(&mut self, other: &Self) -> bool {
        if self.is_no_less(other) {
            return false;
        }
        if self.why.is_empty() {
            self.why.clone_from(&other.why);
        }
        self.reads = self.reads.union(other.reads);
        self.writes = self.writes.union(other.writes);
        self.fills = self.fills.union(other.fills);
        self.custom.extend(other.custom.iter().cloned());
        self.hidden.add(other.hidden);
        true
    }

    /// Whether another one does nothing that this does not.
    fn is_no_less(&self, other: &Self) -> bool {
        self.hidden.contains(other.hidden) && self.leaves_no_less(other)
    }

    /// Whether another one leaves nothing that this does not.
    fn leaves_no_less(&self, other: &Self) -> bool {
        self.reads.union(other.reads) == self.reads
            && self.writes.union(other.writes) == self.writes
            && self.fills.union(other.fills) == self.fills
            && other.custom.is_subset(&self.custom)
    }
}

impl Unseen {
    pub(crate) fn add(&mut self, other: Self) {
        self.pins = self.pins.union(other.pins);
        self.custom.extend(other.custom);
    }
}

/// Reads a whole text: what it says, what the names in it stand for, and what a DO block in it
/// does.
pub fn hear(text: &[u8], encoding: Encoding, loud: &Arc<Loud>) -> Heard {
    let mut scan = Classifier::in_encoding(encoding).knowing(loud);
    scan.feed(text);
    let mut heard = scan.finish_but_for_blocks();
    if heard.pins.contains(PinReason::Block) {
        heard.pins = heard.pins.without(PinReason::Block);
        heard.own = heard.own.without(PinReason::Block);
        body::read_blocks(text, encoding, loud, &mut heard);
    }
    heard
}

fn lower(name: &[u8]) -> Box<[u8]> {
    name.to_ascii_lowercase().into()
}

/// Whether so much of a name is there that a character beyond ASCII behind it may be cut off.
fn is_long(name: &[u8]) -> bool {
    name.len() > NAME_BYTES - LONGEST_CHARACTER
}

/// How a name in lower case stands to one in any case.
fn order(known: &[u8], name: &[u8]) -> std::cmp::Ordering {
    known.iter().copied().cmp(name.iter().map(u8::to_ascii_lowercase))
}

/// What a name looks like: the word and the bit that stand for it. Names of one look are few.
fn look(name: &[u8]) -> (usize, u64) {
    let fold = |byte: Option<&u8>| usize::from(byte.map_or(0, |byte| byte | 0x20));
    let length = name.len().min(NAME_BYTES);
    let mixed = fold(name.first()) * 7 + fold(name.last()) * 31 + length * 13;
    (mixed / 64 % LOOKS, 1 << (mixed % 64))
}

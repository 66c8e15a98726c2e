//! The names of one database behind which a session is changed unseen: *loud* names.
//!
//! A function may call `set_config`, a table may have a trigger that does. No text shows that, but
//! the catalogue does ([`Catalogue`]). A text that names one of them is judged as if it did itself
//! what stands behind the name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::classify::{Classifier, Heard};
use crate::encoding::Encoding;
use crate::pins::{PinReason, Pins};

mod body;
mod catalogue;
mod spans;
#[cfg(test)]
mod tests;

pub use catalogue::{Catalogue, Kind, Object, ObjectId, Source, Use, When};

/// What belongs to the last values of sequences.
pub(crate) const SEQUENCES: Pins =
    Pins::of(PinReason::Sequence).union(Pins::of(PinReason::LastValue));

/// What PostgreSQL keeps of a name.
const NAME_BYTES: usize = 63;

/// The loud names of a database.
#[derive(Debug, Default)]
pub struct Loud {
    /// By name, in lower case.
    names: Vec<(Box<[u8]>, Effect)>,
    /// For what a name looks like, whether there may be one like it.
    looks: [u64; 4],
}

/// What stands behind a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// What is left by whatever names it.
    pub reads: Pins,
    /// What is left besides by a text that changes tables.
    pub writes: Pins,
    /// The custom settings that it may change, in lower case.
    pub custom: BTreeSet<Box<[u8]>>,
    /// What was found, in words.
    pub why: String,
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
    /// These names, in lower case or as they are quoted.
    pub(crate) fn new(effects: BTreeMap<Box<[u8]>, Effect>) -> Self {
        let mut loud = Self::default();
        let mut names: BTreeMap<Box<[u8]>, Effect> = BTreeMap::new();
        for (name, effect) in effects {
            let key = name.to_ascii_lowercase().into_boxed_slice();
            names.entry(key).or_default().merge(&effect);
        }
        for name in names.keys() {
            let (word, bit) = look(name);
            loud.looks[word] |= bit;
        }
        loud.names = names.into_iter().collect();
        loud
    }

    /// Whether there is no such name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All names, in lower case, and what stands behind each.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Effect)> {
        self.names.iter().map(|(name, effect)| (&**name, effect))
    }

    /// What a name stands for here that it did not in another list: whatever was named meanwhile
    /// may have done that.
    #[must_use]
    pub fn news_since(&self, before: &Self) -> Option<Unseen> {
        let mut news: Option<Unseen> = None;
        for (name, effect) in self.iter() {
            let place = before.place(name);
            let known = place.is_some_and(|place| before.names[place].1.is_no_less(effect));
            if !known {
                let unseen = effect.unseen(name, true);
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
        let lower = |byte: &u8| byte.to_ascii_lowercase();
        let order = |known: &[u8]| known.iter().copied().cmp(name.iter().map(lower));
        self.names.binary_search_by(|(known, _)| order(known)).ok()
    }

    /// What a text leaves that names this one.
    pub(crate) fn pins(&self, place: usize, writes: bool) -> Pins {
        self.names.get(place).map_or(Pins::NONE, |(_, effect)| effect.pins(writes))
    }

    /// The same in more words, if it is more than the last value of a sequence: that half of all
    /// tables leave.
    pub(crate) fn unseen(&self, place: usize, writes: bool) -> Option<Unseen> {
        let (name, effect) = self.names.get(place)?;
        let is_more = !effect.pins(writes).difference(SEQUENCES).is_empty();
        is_more.then(|| effect.unseen(name, writes))
    }
}

impl Effect {
    fn pins(&self, writes: bool) -> Pins {
        if writes { self.reads.union(self.writes) } else { self.reads }
    }

    fn unseen(&self, name: &[u8], writes: bool) -> Unseen {
        let name = String::from_utf8_lossy(name).into_owned();
        Unseen { name, pins: self.pins(writes), custom: self.custom.clone() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
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
        self.custom.extend(other.custom.iter().cloned());
        true
    }

    /// Whether another one does nothing that this does not.
    fn is_no_less(&self, other: &Self) -> bool {
        self.reads.union(other.reads) == self.reads
            && self.writes.union(other.writes) == self.writes
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
    let mut heard = scan.finish_hearing();
    if heard.pins.contains(PinReason::Block) {
        heard.pins = heard.pins.without(PinReason::Block);
        heard.own = heard.own.without(PinReason::Block);
        body::read_blocks(text, encoding, loud, &mut heard);
    }
    heard
}

/// What a name looks like: the word and the bit that stand for it. Names of one look are few.
fn look(name: &[u8]) -> (usize, u64) {
    let fold = |byte: Option<&u8>| usize::from(byte.map_or(0, |byte| byte | 0x20));
    let length = name.len().min(NAME_BYTES);
    let mixed = fold(name.first()) * 7 + fold(name.last()) * 31 + length * 13;
    (mixed / 64 % 4, 1 << (mixed % 64))
}

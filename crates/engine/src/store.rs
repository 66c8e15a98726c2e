use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use crate::memory::Usage;

/// Where a value lies in a [`Store`], and which of the values that lay there it is.
///
/// A key outlives its value harmlessly: the generation tells a new value in the same place from
/// the old one, so that a late event for a closed connection finds nothing.
pub struct Key<T> {
    index: u32,
    generation: u32,
    kind: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// The place, reused after the value is gone: small and dense, good as an array index.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && self.generation == other.generation
    }
}

impl<T> Eq for Key<T> {}

impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By place.
impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.index, self.generation).cmp(&(other.index, other.generation))
    }
}

impl<T> std::fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// Values in dense places, each found by the [`Key`] that [`Store::insert`] gave for it.
pub(crate) struct Store<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Store<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Puts a value in; the key is handed to the maker first, for values that know their own.
    pub(crate) fn insert(&mut self, value: T) -> Key<T> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, value: None });
            // Every value is a socket, and no machine has 2^32 of them.
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        debug_assert!(place.value.is_none(), "a free place holds a value");
        place.value = Some(value);
        Key { index, generation: place.generation, kind: PhantomData }
    }

    pub(crate) fn remove(&mut self, key: Key<T>) -> Option<T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation != key.generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    #[inline]
    pub(crate) fn find(&self, key: Key<T>) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        if place.generation == key.generation { place.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation { place.value.as_mut() } else { None }
    }

    /// The key of whatever lies at a place now.
    pub(crate) fn key_at(&self, index: usize) -> Option<Key<T>> {
        let place = self.places.get(index)?;
        place.value.as_ref()?;
        Some(Key { index: index as u32, generation: place.generation, kind: PhantomData })
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// What the places take, whatever hangs from the values in them.
    pub(crate) fn usage(&self) -> Usage {
        Usage::of_places(size_of::<Place<T>>(), self.len(), self.free.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key<T>, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let key = Key { index: index as u32, generation: place.generation, kind: PhantomData };
            Some((key, place.value.as_ref()?))
        })
    }

    pub(crate) fn keys(&self) -> Vec<Key<T>> {
        self.iter().map(|(key, _)| key).collect()
    }
}

/// Indexing is for keys whose value is known to be there, by an invariant of the engine.
impl<T> Index<Key<T>> for Store<T> {
    type Output = T;

    #[inline]
    fn index(&self, key: Key<T>) -> &T {
        self.find(key).expect("invariant: a key held by the engine names a live value")
    }
}

impl<T> IndexMut<Key<T>> for Store<T> {
    #[inline]
    fn index_mut(&mut self, key: Key<T>) -> &mut T {
        self.find_mut(key).expect("invariant: a key held by the engine names a live value")
    }
}

//! What a client calls the statements that it has prepared.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use pgweir_sql::NAME_BYTES;

use super::{Shape, Statement};
use crate::client::Slot;
use crate::marks::Mark;

/// A client's names. Of a longer one PostgreSQL heeds [`NAME_BYTES`] bytes (`NAMEDATALEN`, the size
/// of a key in its table of prepared statements), and so do these.
#[derive(Debug, Default)]
pub(crate) struct Names {
    own: BTreeMap<Rc<[u8]>, Own>,
    /// So many names were given and taken.
    sent: u64,
    /// So many of them, the first, are removed with all others.
    gone: u64,
}

/// What a name means to its client.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// `None`: it was closed by a message whose reply is awaited.
    pub(crate) statement: Option<Rc<Statement>>,
    shape: Told,
    /// The unit of the message whose reply is awaited, if one is.
    pub(crate) unsettled: Option<Slot>,
    /// Of a name that the server was told: what is known of the rows of what it has there.
    shown: Asked,
    /// As the how-manyth it was sent.
    at: u64,
    /// The same of what the name meant before, if anything.
    before: Option<u64>,
}

/// What the rows of a statement were like when its client prepared it, once that was seen: whatever
/// has become of the name by then.
pub(crate) type Told = Rc<OnceCell<Rc<Shape>>>;

/// What is known of what a server was asked of a name, whatever has become of that by then.
pub(crate) type Asked = Rc<Cell<Shown>>;

/// What is known of a statement that a server was told its client's own name for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing that its client would have to be kept from: or the server was not told.
    #[default]
    No,
    /// The server is asked what its rows are like.
    Awaited,
    /// They are not what the client was told: whatever uses them is refused, as long as the client
    /// has not closed it, or made another.
    Changed,
}

/// What a name means for a message that is to be sent.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// No statement of ours.
    Unknown,
    /// This one.
    Known(Rc<Statement>, Option<Rc<Shape>>),
    /// That is known when an earlier unit is over.
    Unsettled,
    /// The server knows it by that name. What its rows are like there is known when it has said so.
    Awaited,
    /// The same, and they are not what the client was told.
    Changed,
}

impl Names {
    /// So many statements under names a client may have that keeps no server; one that has more
    /// keeps its server, and those are the server's to know.
    pub(crate) const MOST: usize = 10_000;

    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// So many names were given and taken until now.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn len(&self) -> usize {
        self.own.len()
    }

    /// The units that names are in doubt for.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = Slot> {
        self.own.values().filter_map(|own| own.unsettled)
    }

    /// What a name means in the unit with this slot.
    pub(crate) fn meaning(&self, name: &[u8], unit: Slot) -> Meaning {
        match self.own.get(key(name)) {
            None => Meaning::Unknown,
            Some(own) if own.unsettled.is_some_and(|slot| slot != unit) => Meaning::Unsettled,
            Some(own) => match (own.shown.get(), &own.statement) {
                (Shown::Awaited, _) => Meaning::Awaited,
                (Shown::Changed, _) => Meaning::Changed,
                (Shown::No, None) => Meaning::Unknown,
                (Shown::No, Some(statement)) => {
                    Meaning::Known(Rc::clone(statement), own.shape.get().cloned())
                }
            },
        }
    }

    /// The statement that a name means, if any.
    pub(crate) fn known(&self, name: &[u8]) -> Option<Rc<Statement>> {
        self.own.get(key(name)).and_then(|own| own.statement.clone())
    }

    /// Where it is to be noted what the rows of what a name means are like, if its client was not
    /// told when it prepared that: the server was asked in vain.
    pub(crate) fn untold(&self, name: &[u8]) -> Option<(Rc<[u8]>, Told)> {
        let (name, own) = self.own.get_key_value(key(name))?;
        own.shape.get().is_none().then(|| (Rc::clone(name), Rc::clone(&own.shape)))
    }

    /// What its client was told of the rows of what a name means.
    pub(crate) fn shape(&self, name: &[u8]) -> Option<Rc<Shape>> {
        self.own.get(key(name)).and_then(|own| own.shape.get().cloned())
    }

    /// The text of what a name means; of one that means nothing, none.
    pub(crate) fn text(&self, name: &[u8]) -> &[u8] {
        let statement = self.own.get(key(name)).and_then(|own| own.statement.as_ref());
        statement.map_or(&[], |statement| statement.text())
    }

    /// A Parse that gives a name to a statement was sent. Gives the name as it is kept, and where
    /// to note what the rows are like.
    pub(crate) fn give(
        &mut self,
        name: &[u8],
        statement: Rc<Statement>,
        slot: Slot,
    ) -> (Rc<[u8]>, Told) {
        let name: Rc<[u8]> = Rc::from(key(name));
        let told = self.put(Rc::clone(&name), Some(statement), slot);
        (name, told)
    }

    /// A Close of a name was sent. Gives the name, and what it has meant, if anything.
    pub(crate) fn take(&mut self, name: &[u8], slot: Slot) -> Option<(Rc<[u8]>, Own)> {
        let (name, own) = self.own.get_key_value(key(name))?;
        let (name, own) = (Rc::clone(name), own.clone());
        self.put(Rc::clone(&name), None, slot);
        Some((name, own))
    }

    fn put(&mut self, name: Rc<[u8]>, statement: Option<Rc<Statement>>, slot: Slot) -> Told {
        self.sent += 1;
        let (unsettled, at, told) = (Some(slot), self.sent, Told::default());
        let (shape, shown) = (Rc::clone(&told), Rc::new(Cell::new(Shown::No)));
        let before = self.own.get(&name).map(|own| own.at);
        self.own.insert(name, Own { statement, shape, unsettled, shown, at, before });
        told
    }

    /// The Parse is done. The same statement may have been given the same name since.
    pub(crate) fn given(&mut self, name: &[u8], told: &Told) {
        if let Some(own) = self.own.get_mut(name).filter(|own| Rc::ptr_eq(&own.shape, told)) {
            own.unsettled = None;
        }
    }

    /// The Close of what the name was is done. It may have been given since, and closed again.
    pub(crate) fn taken(&mut self, name: &[u8], was: &Own) {
        if self.own.get(name).is_some_and(|own| own.is_taken() && own.before == Some(was.at)) {
            self.own.remove(name);
        }
    }

    /// The server is about to be asked whether the rows of what has a name are what the client was
    /// told: where that is to be noted.
    pub(crate) fn asked(&self, name: &[u8]) -> Asked {
        self.own.get(name).map(|own| Rc::clone(&own.shown)).unwrap_or_default()
    }

    /// It has answered. The name may have been given again since.
    pub(crate) fn has_rows(&mut self, name: &[u8], asked: &Asked, as_told: bool) {
        if asked.get() != Shown::Awaited {
            // No mark: what is asked for is awaited until it is told or will not be.
            return;
        }
        asked.set(if as_told { Shown::No } else { Shown::Changed });
        let Some(own) = self.own.get_mut(name).filter(|own| Rc::ptr_eq(&own.shown, asked)) else {
            Mark::ShownForgotten.hit();
            return;
        };
        match as_told {
            true => drop(self.own.remove(name)),
            false => own.unsettled = None,
        }
    }

    /// The Parse was not done.
    pub(crate) fn not_given(&mut self, name: &[u8], told: &Told) {
        if self.own.get(name).is_some_and(|own| Rc::ptr_eq(&own.shape, told)) {
            self.own.remove(name);
        }
    }

    /// The Close was not done, or nobody else knows the name after all. A Parse that was sent in
    /// front of it in the same unit either is done by now, or is taken back next. What was removed
    /// with all others in between is gone in any case.
    /// And what was sent before that message, and not done either, is taken back already.
    pub(crate) fn not_taken(&mut self, name: Rc<[u8]>, was: Own) {
        if self.own.get(&name).is_some_and(|own| own.at < was.at) {
            Mark::TakenBackBefore.hit();
            return;
        }
        if was.at <= self.gone || was.is_taken() {
            Mark::NotTakenButGone.hit();
            self.own.remove(&name);
        } else {
            self.own.insert(name, Own { unsettled: None, ..was });
        }
    }

    /// All that the client has prepared may be removed by the unit with this slot.
    pub(crate) fn hold(&mut self, unit: Slot) {
        self.own.values_mut().for_each(|own| own.unsettled = Some(unit));
    }

    /// That unit has not done it.
    pub(crate) fn release(&mut self, unit: Slot) {
        let its = self.own.values_mut().filter(|own| own.unsettled == Some(unit));
        its.for_each(|own| own.unsettled = None);
    }

    /// All that the client had prepared is gone, but for what was sent behind the message that has
    /// removed it: so many had been sent before.
    pub(crate) fn clear(&mut self, sent: u64) {
        self.gone = sent;
        self.own.retain(|_, own| own.at > sent);
    }

    /// From the unit with this slot on all names are the server's to know. Gives what they have
    /// meant.
    pub(crate) fn take_all(&mut self, slot: Slot) -> Vec<(Rc<[u8]>, Own)> {
        let is_ours = |own: &Own| own.statement.is_some() && own.shown.get() == Shown::No;
        let ours = self.own.iter().filter(|(_, own)| is_ours(own));
        let names: Vec<_> = ours.map(|(name, _)| Rc::clone(name)).collect();
        names.iter().filter_map(|name| self.take(name, slot)).collect()
    }
}

impl Own {
    /// What its client was told of its rows, if it was.
    pub(crate) fn shape(&self) -> Option<&Rc<Shape>> {
        self.shape.get()
    }

    /// Whether it means nothing to its client, once that is settled.
    fn is_taken(&self) -> bool {
        self.statement.is_none() && self.shown.get() == Shown::No
    }
}

fn key(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME_BYTES)]
}

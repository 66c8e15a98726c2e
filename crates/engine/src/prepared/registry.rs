//! All statements that the clients of a pool have prepared, or its servers have.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use pgweir_sql::{Heard, Loud};

use super::{PREFIX, Shape, with_parameters};
use crate::marks::Mark;
use crate::settings::Settings;

/// A statement that clients have prepared: one, however many of them.
///
/// Two are the same if their texts, the types of their parameters and the settings under which they
/// are read are: PostgreSQL folds literals when it reads a statement, so that of two readings of
/// `'12:00'::timestamptz` under different time zones each is its own. They are compared in full,
/// never by a hash alone: a collision would run another's SQL.
#[derive(Debug)]
pub(crate) struct Statement {
    number: u64,
    identity: Identity,
    /// What it leaves in a session when it is run, and under which loud names that is so.
    heard: RefCell<(Arc<Loud>, Rc<Heard>)>,
    /// Where it is known, until it is dropped.
    known: Weak<RefCell<Known>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    /// What stands behind the name in its Parse: the text, a NUL, and the types.
    definition: Rc<[u8]>,
    settings: Rc<Settings>,
    /// Its plan keeps what is computed, which may be another thing for each client.
    folds: bool,
    /// It was read under further settings, of a transaction: nobody else has it. This is its
    /// number.
    private: Option<u64>,
}

impl Statement {
    /// What servers call it.
    pub(crate) fn name(&self) -> Vec<u8> {
        [PREFIX, self.number.to_string().as_bytes()].concat()
    }

    /// Its number: no other statement has it, or ever had.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Its text.
    pub(crate) fn text(&self) -> &[u8] {
        let definition = &self.identity.definition;
        let end = definition.iter().position(|&b| b == 0).unwrap_or(definition.len());
        &definition[..end]
    }

    /// What it says where these names are loud; `hear` reads it.
    pub(crate) fn heard(&self, loud: &Arc<Loud>, hear: impl FnOnce(&[u8]) -> Heard) -> Rc<Heard> {
        let mut known = self.heard.borrow_mut();
        if !Arc::ptr_eq(&known.0, loud) {
            Mark::StatementHeardAnew.hit();
            *known = (Arc::clone(loud), Rc::new(hear(self.text())));
        }
        Rc::clone(&known.1)
    }

    /// Whether it is that of a client with these settings, as far as they matter.
    pub(crate) fn is_read_under(&self, settings: &Rc<Settings>, folds: bool) -> bool {
        Rc::ptr_eq(&self.identity.settings, settings) && self.identity.folds == folds
    }

    /// Whether its plan keeps what is computed, which may be another thing for each client.
    pub(crate) fn folds(&self) -> bool {
        self.identity.folds
    }

    /// Whether it was read under further settings, and is one client's.
    pub(crate) fn is_private(&self) -> bool {
        self.identity.private.is_some()
    }

    /// What stands behind the name in a Parse that makes it.
    pub(crate) fn definition(&self) -> &[u8] {
        &self.identity.definition
    }

    /// The same in a Parse that makes it for a client that was told what it is like.
    pub(crate) fn definition_for(&self, told: Option<&Shape>) -> Cow<'_, [u8]> {
        match told {
            Some(told) => with_parameters(self.text(), told.parameters()).into(),
            None => self.definition().into(),
        }
    }
}

impl Drop for Statement {
    /// No client and no server has it any more.
    fn drop(&mut self) {
        if let Some(known) = self.known.upgrade() {
            known.borrow_mut().forget(&self.identity);
        }
    }
}

/// The statements of a pool that a client or a server has.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    known: Rc<RefCell<Known>>,
    last: u64,
}

#[derive(Debug, Default)]
struct Known {
    statements: BTreeMap<Identity, Weak<Statement>>,
    /// Bytes of their definitions.
    bytes: usize,
}

impl Registry {
    /// The statements of a pool take so many bytes at most.
    pub(crate) const MOST_BYTES: usize = 64 * 1024 * 1024;

    /// The statement with this definition, read under these settings. `None` if there is no room
    /// for one more. `private`: it is to be no other's. `heard`: what it says, where these names
    /// are loud.
    pub(crate) fn intern(
        &mut self,
        definition: &[u8],
        settings: &Rc<Settings>,
        private: bool,
        heard: (Arc<Loud>, Rc<Heard>),
    ) -> Option<Rc<Statement>> {
        let identity = Identity {
            definition: Rc::from(definition),
            settings: Rc::clone(settings),
            folds: heard.1.folds,
            private: private.then_some(self.last + 1),
        };
        let mut known = self.known.borrow_mut();
        if let Some(statement) = known.statements.get(&identity).and_then(Weak::upgrade) {
            return Some(statement);
        }
        if known.bytes + definition.len() > Self::MOST_BYTES {
            return None;
        }
        self.last += 1;
        let statement = Rc::new(Statement {
            number: self.last,
            identity: identity.clone(),
            heard: RefCell::new(heard),
            known: Rc::downgrade(&self.known),
        });
        known.bytes += definition.len();
        known.statements.insert(identity, Rc::downgrade(&statement));
        Some(statement)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.known.borrow().statements.len()
    }

    /// How many bytes their definitions are.
    pub(crate) fn bytes(&self) -> usize {
        self.known.borrow().bytes
    }
}

impl Known {
    fn forget(&mut self, identity: &Identity) {
        if self.statements.remove(identity).is_some() {
            self.bytes -= identity.definition.len();
        }
    }
}

//! Changes of the schema of a database, by clients of any worker.
//!
//! What is read of a schema while somebody changes it may be what it was before, and so it is until
//! whoever does is done with the server: what a batch or a string has committed in its midst is
//! heard of at its end.

use std::sync::Arc;

use crate::sync::Counter;

/// How often somebody has changed the schema of databases of one name, or may have, and how many
/// are about it.
pub(crate) struct SchemaChanges {
    number: Counter,
    under_way: Counter,
}

impl SchemaChanges {
    pub(crate) fn none() -> Self {
        Self { number: Counter::new(0), under_way: Counter::new(0) }
    }

    /// How many there were: to be compared.
    pub(crate) fn number(&self) -> usize {
        self.number.value()
    }

    /// There may have been one.
    pub(crate) fn add(&self) {
        self.number.add();
    }

    /// Whether the schema may be another one than that which was read when there were so many.
    pub(crate) fn may_differ(&self, since: usize) -> bool {
        // In this order: whoever is done counts first.
        self.under_way.value() > 0 || self.number.value() != since
    }
}

/// Somebody is about to change a schema. When this is dropped that is done, or will not be.
pub(crate) struct UnderWay(Arc<SchemaChanges>);

impl UnderWay {
    pub(crate) fn begin(changes: Arc<SchemaChanges>) -> Self {
        changes.under_way.add();
        changes.number.add();
        Self(changes)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.number.add();
        self.0.under_way.sub();
    }
}

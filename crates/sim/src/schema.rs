//! Whether a name may stand for something else than pgweir has read: then it knows of no statement
//! that it only reads.

use std::collections::BTreeSet;

/// A change of the schema is read so much later at most, mostly: pgweir may stand still meanwhile,
/// and what could not be read is tried again ten seconds later, perhaps on a server that is lost.
const UNREAD_US: u64 = 30_000_000;

/// Who changes the schema.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Clients that may be in a transaction that does.
    changing: BTreeSet<u32>,
    /// When somebody last did, or was over with it.
    changed_at: Option<u64>,
    /// There was no reading it at some time.
    unreadable: bool,
}

impl Schema {
    /// A client sends this; `is_outside`: of a transaction, with nothing under way.
    pub(crate) fn sends(&mut self, client: u32, now: u64, bytes: &[u8], is_outside: bool) {
        if is_outside {
            self.is_over(client, now);
        }
        if [&b"alter "[..], b"create "].iter().any(|word| has(bytes, word)) {
            self.changing.insert(client);
            self.changed_at = Some(now);
        }
    }

    /// Pools are given another configuration, and perhaps another server.
    pub(crate) fn changes(&mut self, now: u64) {
        self.changed_at = Some(now);
    }

    /// What there is now could not be read, and that is tried again: if something has changed, it
    /// takes as long once more.
    pub(crate) fn is_not_read(&mut self, now: u64) {
        self.changed_at = self.changed_at.map(|_| now);
    }

    /// What a client had under way is over, or nobody hears of it any more.
    pub(crate) fn is_over(&mut self, client: u32, now: u64) {
        if self.changing.remove(&client) {
            self.changed_at = Some(now);
        }
    }

    /// pgweir has said that it cannot read the catalogue.
    pub(crate) fn cannot_be_read(&mut self) {
        self.unreadable = true;
    }

    /// Whether pgweir has said so.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Whether pgweir may not know yet what names stand for.
    pub(crate) fn may_be_unread(&self, now: u64) -> bool {
        let lately = |at: u64| now < at + UNREAD_US;
        self.unreadable || !self.changing.is_empty() || self.changed_at.is_some_and(lately)
    }
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|part| part == word)
}

//! What clients have asked to cancel, and what was ended for that.

use super::Ledger;
use crate::invariants::Invariant;
use crate::language::Tag;

/// pgweir looks after a cancel for so long. Behind that it knows no more than its client whether
/// that is still to come.
const LOOKED_AFTER_US: u64 = 5_000_000;

/// Behind that a client has heard of the end of its request, if another one has come to it at the
/// same time.
const HEARD_US: u64 = 1_000_000;

/// The number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(usize);

/// What a client has asked to cancel, and what was ended for that.
#[derive(Debug, Default)]
pub(super) struct Cancels {
    requests: Vec<Request>,
    hits: Vec<Hit>,
}

/// A client's request to cancel what it does.
#[derive(Debug)]
struct Request {
    client: u32,
    asked_at: u64,
    over: Over,
}

/// Whether a request is over, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// Its connection is still there, or nobody knows what has become of it.
    No,
    /// pgweir has closed its connection, when the client's last statement had this number. No later
    /// one is hit.
    Behind { at: u64, last: u32 },
}

/// Something that was ended.
#[derive(Clone, Copy, Debug)]
struct Hit {
    client: u32,
    at: u64,
    /// `None`: what no server has begun.
    tag: Option<Tag>,
}

impl Request {
    fn may_be_for(&self, hit: Hit) -> bool {
        let in_time = match self.over {
            Over::No => true,
            Over::Behind { last, .. } => hit.tag.is_none_or(|tag| tag.number <= last),
        };
        self.client == hit.client && self.asked_at <= hit.at && in_time
    }

    /// Whether it was there for so long at this time that pgweir does not look after it any more,
    /// nor after those that have joined it.
    fn is_in_doubt(&self, now: u64) -> bool {
        let end = match self.over {
            Over::No => now,
            Over::Behind { at, .. } if at + HEARD_US < now => return false,
            Over::Behind { at, .. } => at,
        };
        end >= self.asked_at + LOOKED_AFTER_US
    }
}

impl Cancels {
    /// Whether each hit has a request of its own. Which it is nobody sees from outside.
    fn are_asked_for(&self, hits: &[Hit]) -> bool {
        let mut taken_by = vec![None; self.requests.len()];
        (0..hits.len()).all(|hit| {
            let mut seen = vec![false; self.requests.len()];
            self.finds_one(hits, hit, &mut seen, &mut taken_by)
        })
    }

    /// Finds a request for a hit, for which another one may have to take another.
    fn finds_one(
        &self,
        hits: &[Hit],
        hit: usize,
        seen: &mut [bool],
        taken_by: &mut [Option<usize>],
    ) -> bool {
        for (index, request) in self.requests.iter().enumerate() {
            if !request.may_be_for(hits[hit]) || std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let is_free = match taken_by[index] {
                None => true,
                Some(other) => self.finds_one(hits, other, seen, taken_by),
            };
            if is_free {
                taken_by[index] = Some(hit);
                return true;
            }
        }
        false
    }

    /// What this client's requests have ended, and this besides.
    fn with(&self, hit: Hit) -> Vec<Hit> {
        let its = self.hits.iter().filter(|other| other.client == hit.client).copied();
        its.chain([hit]).collect()
    }
}

impl Ledger {
    pub(crate) fn cancel_asked(&mut self, client: u32) -> RequestId {
        let requests = &mut self.cancels.requests;
        requests.push(Request { client, asked_at: self.now, over: Over::No });
        RequestId(requests.len() - 1)
    }

    /// Whose request it is.
    pub(crate) fn requester(&self, id: RequestId) -> u32 {
        self.cancels.requests[id.0].client
    }

    /// A client sees that the connection of its request is closed, when its last statement has this
    /// number.
    pub(crate) fn cancel_over(&mut self, id: RequestId, last: u32) {
        let (now, client) = (self.now, self.requester(id));
        let requests = &mut self.cancels.requests;
        let mut those = requests.iter().filter(|request| request.client == client);
        if !those.any(|request| request.is_in_doubt(now)) {
            requests[id.0].over = Over::Behind { at: now, last };
        }
    }

    /// Whether a client has asked for a cancel that may end this statement.
    pub(crate) fn awaits_cancel(&self, tag: Tag) -> bool {
        let hit = Hit { client: tag.client, at: self.now, tag: Some(tag) };
        self.cancels.are_asked_for(&self.cancels.with(hit))
    }

    /// Whether a cancel has ended this statement on its server.
    pub(crate) fn is_cancelled(&self, tag: Tag) -> bool {
        self.deeds.get(&tag).is_some_and(|deed| deed.cancelled)
    }

    /// A cancel has ended this statement, or has answered a unit that was not begun.
    pub(crate) fn cancel_hit(&mut self, client: u32, tag: Option<Tag>) {
        let hit = Hit { client, at: self.now, tag };
        if !self.cancels.are_asked_for(&self.cancels.with(hit)) {
            let what = tag.map(|tag| tag.to_string());
            let what = what.as_deref().unwrap_or("a unit that waits");
            let text = format!("a cancel that c{client} did not ask for hit {what}");
            self.fail(Invariant::AskedCancel, text);
        }
        self.cancels.hits.push(hit);
        self.counts.cancels += 1;
    }

    /// A cancel has ended this statement, as its server says or, where the reply was too long to be
    /// kept, pgweir in its place.
    pub(crate) fn cancel_ends(&mut self, tag: Tag) {
        let deed = self.deeds.entry(tag).or_default();
        deed.cancelled = true;
        // A server that was given up may be hit behind that: by the same request.
        if !std::mem::take(&mut deed.told_cancelled) {
            self.cancel_hit(tag.client, Some(tag));
        }
    }

    /// A client hears from pgweir that a cancel has ended these statements, or the wait for them.
    pub(crate) fn cancel_told(&mut self, client: u32, tags: &[Tag]) {
        if !tags.iter().any(|tag| self.is_cancelled(*tag)) {
            self.cancel_hit(client, tags.iter().min().copied());
            for tag in tags {
                self.deeds.entry(*tag).or_default().told_cancelled = true;
            }
        }
    }
}

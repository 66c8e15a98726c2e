//! Whether a pool's reserve is used for those only that have waited long enough.

use std::collections::BTreeMap;

use super::World;
use super::wires::Outside;
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::session::Home;

/// Since when somebody has waited, for each pool, at some moment.
pub(super) type Waits = BTreeMap<Home, u64>;

/// pgweir opens a reserve when it looks who waits, and closes it when it looks again, which it does
/// ten times in a second.
const LOOKS_US: u64 = 200_000;

/// Who leaves is seen to wait so much longer: pgweir hears of it when the network lets it.
const HEARS_US: u64 = 5_000_000;

impl World {
    /// A worker looks who waits.
    pub(super) fn note_waits(&mut self) {
        let oldest = self.now().saturating_sub(LOOKS_US + self.site.paused_us);
        self.looks.retain(|(at, _)| *at >= oldest);
        let waits = self.waits();
        self.looks.push((self.now(), waits));
    }

    /// Since when somebody may have been seen to wait, as pgweir knows now.
    pub(super) fn known_waits(&mut self) -> Waits {
        let mut all = self.waits();
        for (home, since) in self.looks.iter().flat_map(|(_, waits)| waits) {
            let first = all.entry(home.clone()).or_insert(*since);
            *first = (*since).min(*first);
        }
        all
    }

    /// Since when somebody may be waiting now. To take somebody for one who waits does no harm: it
    /// is not what is looked for.
    fn waits(&mut self) -> Waits {
        let mut waits = Waits::new();
        let heard_at = self.now().saturating_sub(HEARS_US + self.site.paused_us);
        for number in 0..self.wires.len() {
            // Most wait for nothing.
            if let Some(since) = self.may_wait_since(number, heard_at)
                && let Some(home) = self.home_of_guest(number)
            {
                let first = waits.entry(home).or_insert(since);
                *first = since.min(*first);
            }
        }
        waits
    }

    /// Since when whoever is on a connection may be waiting. What one who is gone has asked for may
    /// be asked for again, if its server is lost, as long as pgweir's end is open.
    fn may_wait_since(&mut self, number: usize, heard_at: u64) -> Option<u64> {
        let wire = &self.wires[number];
        match &wire.outside {
            Outside::Client(client) => client.may_wait_since(&self.site.ledger),
            Outside::Admin(_) | Outside::Backend(_) | Outside::Canceller(_) => None,
            Outside::Gone => {
                let (left_at, since) = wire.left?;
                let stays = left_at > heard_at || self.interest(WireId(number)).is_some();
                stays.then_some(since)
            }
        }
    }

    /// A pool gets one more: beyond its size only for those who have waited.
    pub(super) fn check_reserve(&mut self, wire: WireId, own: &Home, draft: usize) {
        let asked_at = self.wires[wire.0].asked_at;
        // Later ones may be there sooner.
        let older = (0..self.wires.len()).filter(|number| self.wires[*number].asked_at < asked_at);
        let older: Vec<_> = older.filter(|number| self.is_of_pool(*number, own)).collect();
        let others = older.into_iter().filter(|wire| self.is_attended(WireId(*wire))).count();
        let others = (others as u64).saturating_sub(u64::from(self.listened.contains(own)));
        let its = &self.wires[wire.0];
        let size = self.site.rules.most(asked_at, |rules| Some(rules.pools[draft].size));
        if size.is_none_or(|size| others < size) {
            return;
        }
        let since = its.waits.get(own).copied();
        let least = since
            .and_then(|since| self.site.rules.least(since, |rules| Some(rules.reserve_ms * 1_000)));
        let waited = since.map(|since| asked_at - since);
        if waited.is_none() || waited < least {
            let text = format!(
                "{own:?} has one beside {others}, of {size:?}, and uses its reserve for who has \
                 waited {waited:?} of {least:?} us"
            );
            self.site.ledger.fail(Invariant::ReserveInNeed, text);
        }
    }

    fn is_of_pool(&self, wire: usize, pool: &Home) -> bool {
        let its = &self.wires[wire];
        match &its.outside {
            Outside::Backend(process) => its.is_server() && process.home.as_ref() == Some(pool),
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => false,
        }
    }
}

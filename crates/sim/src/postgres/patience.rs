//! How long pgweir waits for a server process that stands still.

use super::{Backend, Outcome, Phase};
use crate::invariants::Invariant;
use crate::network::Stream;
use crate::world::Site;

/// The question what there is in the catalogue has so much more time than others.
pub(crate) const READING_US: u64 = 60_000_000;

impl Backend {
    /// It stands still, and may have been sent something.
    pub(super) fn note_unread(&mut self, now: u64) {
        if self.stream.as_ref().is_some_and(|stream| stream.has_input()) {
            self.unread_since.get_or_insert(now);
        }
    }

    /// Whether it goes no further for now, at a statement of pgweir's own that it has just read.
    pub(super) fn balks(&mut self, site: &mut Site, outcome: &mut Outcome) -> bool {
        let Phase::Session { session, .. } = &mut self.phase else { return false };
        let is_own = session.is_idle() && self.inbox.begins_with_own();
        if !is_own || !self.dice.chance(site.faults.server_balks) {
            return false;
        }
        if session.state.braked && self.dice.chance(0.4) {
            session.state.refuses = true;
            return false;
        }
        if self.dice.chance(0.3) {
            self.die(site, outcome);
            return true;
        }
        let short_us = self.dice.magnitude(2_000_000);
        let now = site.trace.now;
        let until = now + *self.dice.pick(&[short_us, 3_000_000, 8_000_000]);
        site.trace.note(self.who(), || "stands still".to_owned());
        self.unread_since.get_or_insert(now);
        self.freeze(now..until);
        outcome.balks = Some((self.doing(), until));
        outcome.wake_at = Some(until);
        true
    }

    /// It has just read something, perhaps after it has stood still. pgweir gives the statements
    /// that it sends of its own accord no more time than a login, but for one of them.
    pub(super) fn check_patience(&mut self, site: &mut Site) {
        let Some(since) = self.unread_since.take() else { return };
        let Phase::Session { session, .. } = &self.phase else { return };
        let is_own = session.is_idle() && self.inbox.is_own();
        let waits = |stream: &Stream| !stream.is_left() && !stream.has_input();
        if !is_own || !self.stream.as_ref().is_some_and(waits) {
            return;
        }
        let connect = site.rules.most_kept(since, |rules| Some(rules.times.connect));
        let longer_us = if self.inbox.asks_for_catalogue() { READING_US } else { 0 };
        let most = connect.map(|most| most + longer_us + site.slack_us());
        if most.is_some_and(|most| site.trace.now > since + most) {
            let text = "a statement of pgweir's own that is not answered outlasts connect_timeout";
            site.ledger.fail(Invariant::TimesHold, text);
        }
    }
}

//! How long pgweir waits for a server process that stands still.

use super::{Backend, Phase};
use crate::invariants::Invariant;
use crate::world::Site;

impl Backend {
    /// It stands still, and may have been sent something.
    pub(super) fn note_unread(&mut self, now: u64) {
        if self.stream.as_ref().is_some_and(|stream| stream.has_input()) {
            self.unread_since.get_or_insert(now);
        }
    }

    /// It has just read something, perhaps after it has stood still. pgweir gives the statements
    /// that it sends of its own accord no more time than a login.
    pub(super) fn check_patience(&mut self, site: &mut Site) {
        let Some(since) = self.unread_since.take() else { return };
        let Phase::Session { session, .. } = &self.phase else { return };
        let is_own = session.is_idle() && self.inbox.begins_with_own();
        let waits = self.stream.as_ref().is_some_and(|stream| !stream.is_left());
        if !is_own || !waits {
            return;
        }
        let connect = site.rules.most_kept(since, |rules| Some(rules.times.connect));
        if connect.is_some_and(|most| site.trace.now > since + most + site.slack_us()) {
            let text = "a statement of pgweir's own that is not answered outlasts connect_timeout";
            site.ledger.fail(Invariant::TimesHold, text);
        }
    }
}

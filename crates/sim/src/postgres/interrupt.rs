//! What a server process does when it is told something while it works: to cancel, to end, that
//! another one has crashed; or when what it does has taken too long.

use pgweir_proxy::Transport;

use super::{Backend, Outcome, Phase, Wait};
use crate::invariants::Invariant;
use crate::rows::Row;
use crate::session::{BRAKE_US, Session, Witness, write_fatal, write_warning};
use crate::trap::Trap;
use crate::world::Site;

/// PostgreSQL's words for a statement that its client cancelled.
pub(crate) const CANCELED: &str = "canceling statement due to user request";

/// PostgreSQL's words for a process that ends because another one has crashed.
pub(crate) const CRASHED: &str =
    "terminating connection because of crash of another server process";

/// PostgreSQL's words for a statement that waits for itself.
pub(crate) const DEADLOCK: &str = "deadlock detected";

/// PostgreSQL's words for a session that was idle for too long, and brackets, as in each of its
/// errors here.
const IDLED_OUT: &str = "terminating connection due to idle-session timeout []";

/// PostgreSQL's words for a statement that has waited for a lock for longer than lock_timeout.
pub(crate) const LOCKED: &str = "canceling statement due to lock timeout";

/// PostgreSQL's words for a statement that has taken longer than statement_timeout.
pub(crate) const TIMED_OUT: &str = "canceling statement due to statement timeout";

/// How long a backend may take until it reads on in the data of a COPY.
const SLOW_US: u64 = 20_000;

/// What is long for a message.
const LONG_BYTES: usize = 8 * 1024;

/// What a backend may say behind its client before pgweir ends that.
const UNHEARD_BYTES: usize = 1024 * 1024;

impl Backend {
    /// Ends what runs, if it was cancelled or has taken too long.
    pub(super) fn check_interrupts(&mut self, site: &mut Site) {
        let who = self.who();
        let Phase::Session { session, wait } = &mut self.phase else { return };
        let now = site.trace.now;
        // Since version 13 the time is that of one statement of a query string.
        let brake = Some(BRAKE_US).filter(|_| session.state.braked);
        let limit = self.limits.statement.into_iter().chain(brake).min();
        let limit = limit.filter(|_| session.is_executing());
        self.statement_ends = limit.map(|limit| self.statement_ends.unwrap_or(now + limit));
        let too_long = self.statement_ends.is_some_and(|ends| ends <= now);
        let cancelled = std::mem::take(&mut self.cancelled) && session.is_busy();
        if session.reads_copy_data() && !self.inbox.has_copy() {
            self.cancelled = cancelled;
            return;
        }
        let report = if cancelled {
            hit(session, self.said_bytes, site);
            (b"57014", CANCELED)
        } else if too_long {
            (b"57014", TIMED_OUT)
        } else if let Wait::Lock { since, .. } = wait {
            if self.limits.lock.is_some_and(|limit| *since + limit <= now) {
                (b"55P03", LOCKED)
            } else if *since + self.limits.deadlock <= now
                && site.locks.is_deadlocked(self.process_id)
            {
                (b"40P01", DEADLOCK)
            } else {
                return;
            }
        } else {
            return;
        };
        let (code, text) = report;
        site.trace.note(who, || match session.running() {
            Some(tag) => format!("ends {tag}: {text}"),
            None => format!("ends what it does: {text}"),
        });
        // What has failed is undone, and is run again if its server is lost before that is heard.
        if brake.is_some() && text != CANCELED {
            let undone = session.state.writes.iter().copied().chain(session.running());
            undone.for_each(|tag| site.ledger.overruns(tag));
        }
        session.interrupt(code, text, &mut self.inbox, &mut site.ledger);
        self.sending.end().append(&mut session.out);
        self.waits_no_more(site);
        self.statement_ends = None;
    }

    /// It ends in the middle of something.
    pub(super) fn die(&mut self, site: &mut Site, outcome: &mut Outcome) {
        site.trouble(self.cluster);
        site.ledger.kill();
        outcome.died = Some(self.doing());
        // With its machine, or alone.
        if self.dice.chance(0.5) {
            self.crash(site);
        } else {
            self.end(site);
        }
    }

    /// Whether it takes its time until it reads on in the data of a COPY.
    pub(super) fn hesitates(&mut self, site: &Site) -> bool {
        let (now, slow) = (site.trace.now, self.dice.chance(site.faults.copy_slow));
        let pause_us = self.dice.magnitude(SLOW_US);
        if self.reads_on_at < now && slow {
            self.reads_on_at = now + pause_us;
        }
        self.reads_on_at > now
    }

    /// Whether it ends now, where so many bytes are still to be sent, or were read, of what is to
    /// be one message.
    pub(super) fn breaks_off(&mut self, site: &Site, bytes: usize) -> bool {
        let breaks_off = self.dice.chance(site.faults.server_breaks_off);
        breaks_off && bytes > LONG_BYTES && self.stream.is_some()
    }

    /// It ends because it was told to, as soon as what it has to say is out.
    pub(super) fn terminate(&mut self, site: &mut Site) {
        if !self.dying {
            self.hears_no_more(site);
            // If it stood still when it was told so, it is lost only now.
            site.trouble(self.cluster);
        }
        if let Phase::Session { session, .. } = &mut self.phase
            && !std::mem::replace(&mut self.dying, true)
        {
            if !self.sending.is_empty() {
                // It is blocked in writing, and will not wait for that.
                return self.end(site);
            }
            self.sending.end().append(&mut session.out);
            let text = "terminating connection due to administrator command";
            write_fatal(self.sending.end(), b"57P01", text);
            let lingers = self.dice.chance(site.faults.server_lingers);
            let linger_us = self.dice.below(2_000_000);
            if lingers && self.send(site) {
                return self.freeze(site.trace.now..site.trace.now + linger_us);
            }
        }
        if self.send(site) {
            self.end(site);
        }
    }

    /// It has been idle for too long, which it sees before what has come (`ProcessInterrupts`,
    /// postgres.c).
    pub(super) fn idle_out(&mut self, site: &mut Site, outcome: &mut Outcome) {
        site.trouble(self.cluster);
        site.ledger.kill();
        outcome.died = Some(self.doing());
        write_fatal(self.sending.end(), b"57P05", IDLED_OUT);
        self.say_farewell();
        self.end(site);
    }

    /// Says that another process has crashed, if it can.
    pub(super) fn say_crash(&mut self) {
        if let Phase::Session { session, .. } = &mut self.phase
            && self.sending.is_empty()
            && !self.dying
        {
            self.sending.end().append(&mut session.out);
            write_warning(self.sending.end(), b"57P02", CRASHED);
            self.say_farewell();
        }
    }

    /// Sends as much as there is room for, and closes. Says whether that was all.
    pub(super) fn say_farewell(&mut self) -> bool {
        let Some(stream) = self.stream.take() else { return false };
        let unsent = self.sending.unsent();
        // What finds no room is lost.
        stream.try_write(unsent).is_ok_and(|sent| sent == unsent.len())
    }
}

/// A cancel hits whatever runs, which has said so many bytes.
fn hit(session: &Session, said_bytes: usize, site: &mut Site) {
    let limited = site.rules.least(0, |rules| rules.times.transaction).is_some();
    let unheard = |client| site.ledger.hears_nothing(client) && said_bytes > UNHEARD_BYTES;
    match session.running() {
        Some(tag) if site.ledger.awaits_cancel(tag) => site.ledger.cancel_ends(tag),
        // pgweir's own, because there is nobody to hear all that.
        Some(tag) if unheard(tag.client) => site.ledger.reach(Row::LeftResult),
        // pgweir's own, because the transaction has taken too long. Its client must not hear of it.
        Some(tag) if limited => site.ledger.overdue(tag.client),
        Some(tag) => site.ledger.cancel_ends(tag),
        None if session.sets_settings() => {
            site.ledger.fail(
                Invariant::AskedCancel,
                "a cancel hit the settings that a server is lent with",
            );
        }
        None => {}
    }
    if site.was_frozen(site.trace.now) {
        site.spring(Trap::CancelInFreeze);
    }
}

//! When what happened to a client, and what pgweir has therefore let go on for too long.

use pgweir_config::PoolMode;

use super::{Client, Ending, Phase, Wish};
use crate::configuration::Configuration;
use crate::invariants::Invariant;
use crate::language::{Line, Verb};
use crate::ledger::Ledger;
use crate::postgres::READING_US;
use crate::session::State;
use crate::world::Site;

/// When a limit of time must have shown.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// Its name.
    limit: &'static str,
    at: u64,
    /// It is one of what was sent, and ends nothing if no answer is due.
    of_unit: bool,
}

/// What a configuration says of it.
type Limit<'a> = &'a dyn Fn(&Configuration) -> Option<u64>;

/// What has passed between a client and pgweir, as the network sees it at pgweir's end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Contact {
    /// When pgweir last read something of the client's.
    pub(crate) read_at: u64,
    /// When it first wrote something since.
    pub(crate) answered_at: Option<u64>,
    /// When it last wrote something, and at which other time before that.
    pub(crate) wrote_at: u64,
    pub(crate) wrote_before: u64,
    /// Its end is open, and not only for last words.
    pub(crate) attended: bool,
    /// It has read all that makes up the login.
    pub(crate) introduced: bool,
    /// It has something to say that it could not write.
    pub(crate) unsent: bool,
    /// The client has read all that it has to say.
    pub(crate) heard: bool,
    /// Since when a server that pgweir has for it has had the transaction that is open there, if
    /// one that it had was struck.
    pub(crate) served_since: Option<u64>,
}

/// What a client remembers of its own life.
pub(super) struct Moments {
    /// When it came.
    pub(super) since: u64,
    /// When it last sent something.
    sent_at: u64,
    /// When it sent the last thing that it knows to be answered.
    settled_at: u64,
    /// When it first sent something since all was answered, and how often since.
    pub(super) asked_at: u64,
    pub(super) sends: u32,
    /// When it last heard that something is answered, and when before it asked for this.
    heard_at: u64,
    heard_before: u64,
    /// When it first sent something since it was outside a transaction.
    pub(super) began_at: u64,
    /// Since when it has known that it is in a transaction block.
    in_block_since: Option<u64>,
}

impl Moments {
    pub(super) fn new(now: u64) -> Self {
        Self {
            since: now,
            sent_at: now,
            settled_at: now,
            asked_at: now,
            // The startup packet.
            sends: 1,
            heard_at: now,
            heard_before: now,
            began_at: now,
            in_block_since: None,
        }
    }

    /// It sends something. `settled`: all that it sent before is answered.
    pub(super) fn sent(&mut self, now: u64, settled: bool, in_block: bool) {
        if settled {
            self.settled_at = self.sent_at;
            self.asked_at = now;
            self.heard_before = self.heard_at;
            self.sends = 0;
            if !in_block {
                self.began_at = now;
            }
        }
        self.sends += 1;
        self.sent_at = now;
    }

    /// It has heard ReadyForQuery.
    pub(super) fn ready(&mut self, now: u64, in_block: bool) {
        self.heard_at = now;
        self.in_block_since = in_block.then(|| self.in_block_since.unwrap_or(now));
    }

    /// When it asked for what runs on a server that it was lent behind somebody else, at the
    /// earliest; `None`: it may have had that server before it asked.
    fn asked_for_server(&self, lent_after: u64) -> Option<u64> {
        (self.heard_before <= lent_after).then_some(self.asked_at)
    }

    /// When it sent the last thing that is answered.
    pub(super) fn answered(&self, settled: bool) -> u64 {
        if settled { self.sent_at } else { self.settled_at }
    }
}

impl Client {
    /// As [`Moments::asked_for_server`].
    pub(crate) fn asked_for_server(&self, lent_after: u64) -> Option<u64> {
        self.moments.asked_for_server(lent_after)
    }

    /// Whether all that it is owed is the answer to one thing that it has sent, in whole and
    /// outside a transaction, and that no server has begun; and no server would refuse what it has
    /// asked for at its startup, so that it is not given one that it then does not take.
    pub(crate) fn waits_in_line(&self, ledger: &Ledger) -> bool {
        let one = self.moments.sends == 1 && self.oracle.holds_nothing_back();
        let is_free = !self.may_be_refused_settings() && !self.oracle.is_in_block();
        one && is_free && self.is_ready() && self.waits(ledger)
    }

    /// The same, or it waits to be let in; any server of its pool will do.
    pub(crate) fn lacks_server(&self, ledger: &Ledger) -> bool {
        let waits = match self.phase {
            Phase::Login { .. } => !self.may_be_refused_settings() && self.waits(ledger),
            Phase::Ready => self.waits_in_line(ledger),
            Phase::Tls { .. } | Phase::Dismissed => false,
        };
        waits && !self.is_born() && !self.pool.replicates
    }

    /// Whether a server may refuse what it has asked for at its startup.
    fn may_be_refused_settings(&self) -> bool {
        let mut asked_for = self.settings.iter();
        asked_for.any(|(name, value)| name == "temp_buffers" || !State::is_valid(name, value))
    }

    /// Whether what it has sent begins a transaction block, which no other unit may stand in.
    pub(crate) fn begins_block(&self) -> bool {
        let query = self.oracle.query();
        matches!(query.first(), Some(Line::Client(first)) if first.verb == Verb::Begin)
    }

    /// When it last sent something, and when it last heard that something is answered.
    pub(crate) fn last_contact(&self) -> (u64, u64) {
        (self.moments.sent_at, self.moments.heard_at)
    }

    /// Since when it may have had the server that it works on, and configurations count for that.
    pub(crate) fn lent_since(&self, site: &Site) -> u64 {
        let keeps = self.pool.mode == PoolMode::Session || self.oracle.has_state();
        let lent = if keeps { self.moments.since } else { self.moments.began_at };
        self.ruled_since(site, lent)
    }

    /// Looks whether a limit of time has passed in vain, and looks again when the next one does.
    pub(super) fn check_overdue(&mut self, site: &mut Site, wish: &mut Wish) {
        if self.stream.is_none() || !self.contact.attended || self.ending != Ending::No {
            return;
        }
        for Deadline { limit, at, of_unit } in self.deadlines(site).into_iter().flatten() {
            if site.trace.now <= at {
                wish.wake(at + 1);
            } else if self.contact.heard && (!of_unit || self.oracle.is_owed()) {
                let number = self.number;
                site.ledger.fail(
                    Invariant::TimesHold,
                    format!("{limit} is over for c{number}, which was not told"),
                );
            }
        }
    }

    /// When pgweir must have ended what goes on now, if nothing else happens.
    fn deadlines(&self, site: &Site) -> [Option<Deadline>; 4] {
        if self.pool.replicates && self.is_ready() {
            // To stream is one statement without an end.
            return [None, None, None, None];
        }
        let Contact { read_at, wrote_at, introduced, .. } = self.contact;
        let still_since = read_at.max(wrote_at);
        let alone = |deadline| [deadline, None, None, None];
        // One that is out of the configuration goes on as it was when it was last in there.
        let lacked = self.has_lacked_pool(site);
        let wait = |rules: &Configuration| rules.wait(self.pool.draft).filter(|_| !lacked);
        let limit = |name, since, limit: Limit<'_>| self.limit(site, name, since, limit);
        match &self.phase {
            Phase::Tls { .. } | Phase::Login { .. } if !introduced => {
                let login = |rules: &Configuration| rules.times.login;
                alone(limit("client_login_timeout", self.moments.since, &login))
            }
            Phase::Tls { .. } | Phase::Login { .. } => {
                alone(limit("query_wait_timeout", still_since, &wait))
            }
            Phase::Ready if self.is_quiet() => {
                let silence = limit("client_idle_timeout", still_since, &|its| its.times.silence);
                // Behind its unit the server may be asked how it is set, and hang then.
                let asked = site.rules.most(still_since, |rules| Some(rules.times.connect));
                let hangs = self.pool.lets_go() && site.was_frozen(still_since);
                let asked = asked.filter(|_| hangs).unwrap_or(0);
                // A server that it keeps may be asked for the catalogue, and hang then.
                let unread = site.ledger.schema.may_be_unread(site.trace.now);
                let reads = unread && site.was_frozen(still_since);
                let reading = if reads { READING_US } else { 0 };
                alone(silence.map(|its| Deadline { at: its.at + asked + reading, ..its }))
            }
            Phase::Ready if self.waits_alone(site) => {
                // It may have a server by then, to which its unit is on the way.
                let since = read_at.max(self.moments.sent_at) + site.slack_us();
                alone(limit("query_wait_timeout", since, &wait))
            }
            Phase::Ready => {
                let [transaction, silence] = self.of_transaction(site, still_since);
                let [statement, unit] = self.of_unit(site, still_since);
                [transaction, silence, statement, unit]
            }
            Phase::Dismissed => alone(None),
        }
    }

    /// When its transaction must have been ended, because it takes too long or is silent. One that
    /// was lost with its server has no limit before another server stands in for it.
    fn of_transaction(&self, site: &Site, still_since: u64) -> [Option<Deadline>; 2] {
        let served_since = match self.bereaved {
            true => self.contact.served_since,
            false => self.moments.in_block_since.map(|_| 0),
        };
        let Some(served_since) = served_since else { return [None, None] };
        let since = self.moments.in_block_since.unwrap_or(still_since).max(served_since);
        let most = |rules: &Configuration| rules.times.transaction;
        let transaction = self.limit(site, "transaction_timeout", since, &most);
        // Before the client is told of its end the listener has the time of a login to say what
        // comes first, and so has the server to say how it is set, if it is asked and hangs.
        let login = site.rules.most(since, |rules| Some(rules.times.connect)).unwrap_or(0);
        let waits = u64::from(self.oracle.has_listened()) + u64::from(site.was_frozen(since));
        let transaction = transaction.map(|its| Deadline { at: its.at + waits * login, ..its });
        let silence = self.is_idle_in_block().then(|| {
            let name = "idle_client_in_transaction_timeout";
            self.limit(site, name, still_since, &|rules| rules.times.silence_in_block)
        });
        [transaction, silence.flatten()]
    }

    /// When what it has sent must have been answered, if the wait for a server is limited and so is
    /// the time on it, whatever becomes of the servers: a query of one statement that nothing has
    /// come after may take as long as that may, and whatever it is, as long as a transaction may.
    fn of_unit(&self, site: &Site, still_since: u64) -> [Option<Deadline>; 2] {
        let times = site.rules.current().times;
        let limited = times.statement.is_some() || times.transaction.is_some();
        if !limited || self.has_lacked_pool(site) {
            return [None, None];
        }
        let since = still_since.max(self.moments.sent_at);
        let wait = site.rules.most(still_since, |rules| rules.wait(self.pool.draft));
        let Some(wait) = wait else { return [None, None] };
        let slack = site.slack_us();
        let one_statement = self.oracle.query().len() == 1 && !self.oracle.has_begun();
        let lone = self.moments.sends == 1 && one_statement;
        let on_its_way = site.faults.small_buffer > 0.0;
        // What pgweir asks the server itself comes first, and the server may hang then; so may the
        // listener before that.
        let connect = site.rules.most(still_since, |rules| Some(rules.times.connect));
        let Some(connect) = connect else { return [None, None] };
        // Behind a change of the schema that question may be long.
        let unread = site.ledger.schema.may_be_unread(site.trace.now);
        let reading = if unread { READING_US } else { 0 };
        let begun = since + wait + (1 + u64::from(self.oracle.has_listened())) * connect + reading;
        // A server keeps the limit that it was told when it was logged in to.
        let statement = site.rules.most(0, |rules| rules.times.statement);
        let statement = statement.filter(|_| lone && !on_its_way);
        let statement = statement.map(|most| ("statement_timeout", begun + most + 3 * slack));
        let transaction = site.rules.most(still_since, |rules| rules.times.transaction);
        let unit = transaction.map(|most| ("transaction_timeout", begun + most + 2 * slack));
        let of_unit = |(limit, at)| Deadline { limit, at, of_unit: true };
        [statement, unit].map(|deadline| deadline.map(of_unit))
    }

    /// When a limit that has counted since then must have shown.
    fn limit(
        &self,
        site: &Site,
        name: &'static str,
        since: u64,
        limit: Limit<'_>,
    ) -> Option<Deadline> {
        let most = site.rules.most(self.ruled_since(site, since), limit)?;
        Some(Deadline { limit: name, at: since + most + site.slack_us(), of_unit: false })
    }

    /// Whether it has sent one thing, outside a transaction, that no server has begun, on a network
    /// that takes no long time to bring it there.
    fn waits_alone(&self, site: &Site) -> bool {
        let limited = site.rules.current().wait(self.pool.draft).is_some();
        let quick = site.faults.small_buffer == 0.0 && self.moments.sends == 1;
        // What is sent to a server that stands still is not begun, and waits no more.
        let struck = site.ledger.struck.get(&self.pool.home());
        let struck = struck.is_some_and(|until| *until >= self.moments.asked_at);
        limited && quick && !struck && !self.oracle.is_in_block() && self.waits(&site.ledger)
    }
}

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pgweir_auth::Verifier;
use pgweir_auth::scram::LoginKeys;
use pgweir_config::{
    ApplicationName, AuthMethod, LoudFunctions, Pipelining, PoolMode, Secret, SequenceAffinity,
    ServerChoice,
};
use pgweir_sql::{Loud, Pins};
use pgweir_wire::backend::Report;

use crate::action::{Address, ClientId, ServerId};
use crate::commons::SchemaChanges;
use crate::listen::Listener;
use crate::marks::Mark;
use crate::parameters::{Parameters, Reports};
use crate::pins::PinCounts;
use crate::pipeline::{Access, Climbs, Repute};
use crate::prepared::Registry;
use crate::settings::Settings;
use crate::shares::ShareId;
use crate::stats::Stats;
use crate::store::Key;
use crate::time::Time;
use crate::waits::VainWaits;

/// The servers of one (database, user) pair, and who waits for one.
///
/// Invariants: `idle` holds each server in state Idle once; a client is in `waiters` under its
/// current ticket exactly when its leg is Waiting; `waiters` is not longer than
/// [`Pool::most_places`]; nobody waits while a server is idle; no server is opened beyond
/// [`Pool::most`].
pub(crate) struct Pool {
    pub(crate) spec: PoolSpec,
    /// What it has a part in; empty for a pool that is being taken apart or put together.
    pub(crate) shares: Vec<ShareId>,
    /// Clients that have logged in.
    pub(crate) clients: usize,
    /// Others with whom it shares a limit have lacked a connection since then: the next of its
    /// servers that comes free goes, unless a client of its own has waited as long. Until the next
    /// tick, at which they say so again.
    pub(crate) owes_since: Option<Time>,
    /// Engines with whom it shares a limit were told that its clients lack connections.
    pub(crate) lacks: bool,
    /// A client has waited so long that the reserve may be used.
    pub(crate) reserve_open: bool,
    /// What `most` was at most since the last reload, or how many servers there were then.
    pub(crate) ceiling: usize,
    /// A reload has taken it out of the configuration: nobody new is let in.
    pub(crate) removed: bool,
    /// Free servers; the one used last is lent first, so that the others can grow old.
    pub(crate) idle: Vec<ServerId>,
    /// Clients in the order in which they asked, and so of their deadlines. An entry is void if its
    /// client has another ticket by now, or none.
    pub(crate) waiters: VecDeque<Waiter>,
    /// Entries of `waiters` that are not void.
    pub(crate) waiting: usize,
    /// Those of them that may share a server.
    pub(crate) sharing: usize,
    /// Those of these that only read.
    pub(crate) sharing_reads: usize,
    /// All of those wait for commits, as far as they change rows: who reads need not wait for them.
    pub(crate) behind_commits: bool,
    /// What has been found out about sharing its servers.
    pub(crate) climbs: Climbs,
    /// And about the statements of its clients.
    pub(crate) repute: Repute,
    /// One more is wanted, though nobody waits for it.
    pub(crate) wants_hot: bool,
    /// So many servers were lacking for those who wait for a place, when that was looked at last.
    pub(crate) lacking_hot: usize,
    /// So many units in a row were this client's, and came while nothing was under way.
    pub(crate) quiet: Option<(ClientId, u32)>,
    /// Its servers that are shared now.
    pub(crate) hot: Vec<ServerId>,
    next_ticket: u64,
    /// Connections being made or logging in.
    pub(crate) opening: usize,
    /// All connections, from the attempt to the close.
    pub(crate) total: usize,
    /// After a failed attempt: no other before this time.
    pub(crate) retry_at: Option<Time>,
    /// Failed attempts in a row.
    pub(crate) failures: u32,
    /// So many servers in a row have let us in and were lost before one of them was of any use.
    pub(crate) lost_unused: u32,
    /// What the last attempt failed of.
    pub(crate) last_failure: Option<Box<Report>>,
    /// Settings that a new server has refused, the oldest first.
    refusals: Vec<Refusal>,
    /// What servers report to be set to under settings that a client has logged in with.
    pub(crate) welcomes: Vec<(Rc<Settings>, Rc<Parameters>)>,
    /// What the newest server reported when it logged in.
    pub(crate) at_login: Option<Rc<Parameters>>,
    pub(crate) reports: Reports,
    /// The keys that the server's last SCRAM challenge led to: deriving them takes a millisecond.
    pub(crate) login_keys: Option<LoginKeys>,
    /// What its clients have prepared.
    pub(crate) registry: Registry,
    /// Who listens for its clients, if any of them listens.
    pub(crate) listener: Option<Box<Listener>>,
    /// The names behind which its servers are changed unseen, as far as they are known.
    pub(crate) loud: Arc<Loud>,
    /// They are, or do not matter.
    pub(crate) names_known: bool,
    /// They have changed since, or may have: somebody has changed the schema.
    pub(crate) names_changed: bool,
    /// Changes of the schema, by clients of any worker, and how many there were when they were
    /// read.
    pub(crate) shown: Option<(Arc<SchemaChanges>, usize)>,
    /// Servers of its own that are asked for them and will be free then.
    pub(crate) reading: usize,
    pub(crate) stats: Stats,
    pub(crate) vain_waits: VainWaits,
    /// What its servers were kept for.
    pub(crate) pins: PinCounts,
    /// Clients whose next message waits until it is known what keeps servers.
    pub(crate) await_pins: Vec<ClientId>,
    /// Somebody has asked for the last value of a sequence.
    pub(crate) last_values_asked: bool,
}

/// Welcomes that are remembered for a pool; the oldest goes first.
pub(crate) const WELCOMES: usize = 64;

/// For how long nobody asks another new server about settings that one has refused.
const REFUSAL_HOLDS: Duration = Duration::from_secs(5);
/// Refusals that are remembered for a pool; the oldest goes first.
const REFUSALS: usize = 64;

/// The delay after the first failed attempt; it doubles with each further one.
const BACKOFF: Duration = Duration::from_millis(50);
/// The longest delay between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// For how long after the next attempt was due a failed one says how a server is.
const FAILURE_HOLDS: Duration = Duration::from_secs(20);

/// Which pool.
pub(crate) type PoolId = Key<Pool>;

/// What a pool is by its configuration.
#[derive(Clone)]
pub(crate) struct PoolSpec {
    pub(crate) database: String,
    /// It was made for a database that the configuration does not name, and goes when nobody needs
    /// it.
    pub(crate) wild: bool,
    pub(crate) user: String,
    /// The worker that it lives on.
    pub(crate) home: usize,
    /// Its place in the configuration.
    pub(crate) order: usize,
    pub(crate) auth: AuthMethod,
    pub(crate) verifier: Verifier,
    pub(crate) mode: PoolMode,
    /// How its servers are shared.
    pub(crate) pipelining: Pipelining,
    pub(crate) size: usize,
    pub(crate) min_size: usize,
    /// Which of its free servers a client is given.
    pub(crate) server_choice: ServerChoice,
    /// What becomes of a server that was changed unseen.
    pub(crate) loud_functions: LoudFunctions,
    pub(crate) quiet_functions: String,
    /// Whose `application_name` a server has.
    pub(crate) application_name: ApplicationName,
    /// What becomes of a server on which a sequence was advanced.
    pub(crate) sequence_affinity: SequenceAffinity,
    /// So many of its servers clients may keep behind their transactions; `None`: all of them.
    pub(crate) max_pinned: Option<usize>,
    /// What no statement may leave, and what keeps no server.
    pub(crate) pin_refuse: Pins,
    pub(crate) pin_ignore: Pins,
    /// So many prepared statements each server keeps; none: they are not shared.
    pub(crate) prepared_statements: usize,
    pub(crate) reserve: usize,
    pub(crate) reserve_timeout: Duration,
    pub(crate) max_db_connections: Option<usize>,
    pub(crate) max_db_client_connections: Option<usize>,
    pub(crate) address: Address,
    pub(crate) server_database: String,
    pub(crate) server_user: String,
    pub(crate) server_password: Secret,
    pub(crate) reset_query: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) query_wait_timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) server_lifetime: Option<Duration>,
    pub(crate) idle_in_transaction_timeout: Option<Duration>,
    /// How long a client may keep its server and be silent before that is news.
    pub(crate) pin_idle_timeout: Option<Duration>,
    pub(crate) statement_timeout: Option<Duration>,
    pub(crate) transaction_timeout: Option<Duration>,
}

impl PoolSpec {
    /// How messages name the pool.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.database, self.user)
    }

    /// The database and the user that clients ask for.
    pub(crate) fn names(&self) -> (String, String) {
        (self.database.clone(), self.user.clone())
    }

    /// Whether a server of that pool is one of this pool too.
    pub(crate) fn has_same_servers(&self, other: &Self) -> bool {
        self.address == other.address
            && self.server_database == other.server_database
            && self.server_user == other.server_user
            && self.server_password == other.server_password
            && self.statement_timeout == other.statement_timeout
            // A session that ends now is cleaned as was decided when it began.
            && self.reset_query == other.reset_query
    }

    /// Whether the reset query takes all settings back, which is what is believed after it.
    pub(crate) fn reset_is_thorough(&self) -> bool {
        let ends = |c: char| c == ';' || c.is_ascii_whitespace();
        self.reset_query.trim_matches(ends).eq_ignore_ascii_case("DISCARD ALL")
    }
}

/// A place in a pool's queue; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// A client in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) ticket: Ticket,
    pub(crate) client: ClientId,
    pub(crate) since: Time,
    /// Its unit may share a server, and is of this kind.
    pub(crate) shares: Option<Access>,
}

/// Settings that a server has refused that nobody had had before.
struct Refusal {
    settings: Rc<Settings>,
    at: Time,
    report: Report,
}

impl Pool {
    pub(crate) fn new(spec: PoolSpec) -> Self {
        Self {
            ceiling: spec.size + spec.reserve,
            climbs: Climbs::new(),
            repute: Repute::default(),
            spec,
            shares: Vec::new(),
            clients: 0,
            owes_since: None,
            lacks: false,
            reserve_open: false,
            removed: false,
            idle: Vec::new(),
            waiters: VecDeque::new(),
            waiting: 0,
            sharing: 0,
            sharing_reads: 0,
            behind_commits: false,
            wants_hot: false,
            quiet: None,
            lacking_hot: 0,
            hot: Vec::new(),
            next_ticket: 0,
            opening: 0,
            total: 0,
            retry_at: None,
            failures: 0,
            lost_unused: 0,
            last_failure: None,
            refusals: Vec::new(),
            welcomes: Vec::new(),
            at_login: None,
            reports: Reports::new(),
            login_keys: None,
            registry: Registry::default(),
            listener: None,
            loud: Arc::default(),
            names_known: false,
            names_changed: false,
            shown: None,
            reading: 0,
            stats: Stats::default(),
            vain_waits: VainWaits::default(),
            pins: PinCounts::default(),
            await_pins: Vec::new(),
            last_values_asked: false,
        }
    }

    /// Puts a client into the queue, behind those that have asked before it: at the end, unless it
    /// was there before and has lost the server that it was given.
    pub(crate) fn enqueue(
        &mut self,
        client: ClientId,
        since: Time,
        shares: Option<Access>,
    ) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting += 1;
        if let Some(access) = shares {
            self.sharing += 1;
            self.sharing_reads += usize::from(!access.waits());
        }
        let place = self.waiters.partition_point(|other| other.since <= since);
        Mark::QueuedAhead.hit_if(place < self.waiters.len());
        self.waiters.insert(place, Waiter { ticket, client, since, shares });
        ticket
    }

    /// A client waits no longer, or not to share a server, which it did with such a unit, if any.
    pub(crate) fn shares_no_more(&mut self, access: Option<Access>) {
        let Some(access) = access else { return };
        self.sharing -= 1;
        self.sharing_reads -= usize::from(!access.waits());
    }

    /// So many entries has the queue at most, those that are void included.
    pub(crate) fn most_places(&self) -> usize {
        2 * self.waiting + 16
    }

    /// Takes an idle server that may be had, rather one with the client's settings than another.
    /// `last`: the one that the client had before.
    pub(crate) fn take_idle(
        &mut self,
        last: Option<ServerId>,
        may: impl Fn(ServerId) -> bool,
        fits: impl Fn(ServerId) -> bool,
    ) -> Option<ServerId> {
        let may_be = |server: &ServerId| may(*server);
        let index = match self.spec.server_choice {
            ServerChoice::Recent => {
                self.idle.iter().rposition(|&server| fits(server) && may(server))
            }
            ServerChoice::NeverSame => {
                self.idle.iter().position(|&server| Some(server) != last && may(server))
            }
        };
        let index = index.or_else(|| self.idle.iter().rposition(may_be))?;
        Some(self.idle.remove(index))
    }

    /// How many attempts to connect are due: as many as there are waiters that nothing under way
    /// will serve, or as it lacks of so many at least, within the largest size. `promised`: servers
    /// to come for clients that are not in the queue.
    pub(crate) fn openings_due(&self, now: Time, promised: usize, least: usize) -> usize {
        if self.put_off(now).is_some() {
            Mark::AttemptPutOff.hit_if(self.waiting > 0);
            return 0;
        }
        let lacking = least.saturating_sub(self.total);
        let wanted = match self.failures {
            0 => (self.servers_wanted() + promised + self.listeners_wanted())
                .saturating_sub(self.coming())
                .max(lacking)
                .max(usize::from(self.wants_hot)),
            // While attempts fail one probe is enough.
            _ => {
                Mark::AttemptAlone.hit_if(self.waiting > 1);
                let wanted = self.servers_wanted().max(lacking).max(self.listeners_wanted());
                wanted.min(1).saturating_sub(self.opening)
            }
        };
        wanted.min(self.most().saturating_sub(self.total))
    }

    /// So many servers would serve all its waiters: those that share need as many as are shared.
    fn servers_wanted(&self) -> usize {
        let sharing = self.sharing.min(self.lacking_hot);
        self.alone() + sharing.max(usize::from(self.wants_hot))
    }

    /// So many wait for a server that they have alone.
    pub(crate) fn alone(&self) -> usize {
        self.waiting - self.sharing
    }

    /// How many connections more its waiters need, of those that are due.
    pub(crate) fn lacking(&self, now: Time) -> usize {
        self.servers_wanted().saturating_sub(self.coming()).min(self.openings_due(now, 0, 0))
    }

    /// Servers that will be lent to whoever waits: those that are being made, and those that wait
    /// for the names of their database.
    pub(crate) fn coming(&self) -> usize {
        self.opening + self.reading + self.idle.len()
    }

    /// Whether nobody has a server, but for the one that listens, and nobody waits for one.
    pub(crate) fn is_at_rest(&self) -> bool {
        let listens = self.listener.as_deref().is_some_and(Listener::has_server);
        let lent = self.total - usize::from(listens);
        self.waiting == 0 && self.hot.is_empty() && lent == self.coming()
    }

    /// Free servers that nobody counts on: while names are read some are there for those who wait.
    pub(crate) fn spare(&self) -> usize {
        let wanted = self.servers_wanted().saturating_sub(self.opening + self.reading);
        self.idle.len().saturating_sub(wanted)
    }

    /// How many servers it may have now.
    pub(crate) fn most(&self) -> usize {
        let reserve = if self.reserve_open { self.spec.reserve } else { 0 };
        self.spec.size + reserve + self.listeners()
    }

    /// One that listens comes on top of those that are lent.
    pub(crate) fn listeners(&self) -> usize {
        let is_there = |of: &Listener| of.has_server() || of.wants_server();
        usize::from(self.listener.as_deref().is_some_and(is_there))
    }

    /// One may come from now on.
    pub(crate) fn admit_listener(&mut self) {
        self.ceiling = self.ceiling.max(self.spec.size + self.spec.reserve + 1);
    }

    fn listeners_wanted(&self) -> usize {
        usize::from(self.listener.as_ref().is_some_and(|listener| listener.wants_server()))
    }

    /// Why no attempt to connect is made now: the last one failed a moment ago.
    pub(crate) fn put_off(&self, now: Time) -> Option<&Report> {
        let failure = self.last_failure.as_deref()?;
        self.retry_at.is_some_and(|at| now < at).then_some(failure)
    }

    /// Why no attempt to connect is made besides those under way: after one that has failed there
    /// is one at a time, and only where the pool has room, since the servers that there are must
    /// not go one after the other for one that does not come. One that failed long ago says nothing
    /// of now.
    pub(crate) fn no_attempt(&self, now: Time, room: usize) -> Option<&Report> {
        let failure = self.last_failure.as_deref()?;
        let holds = self.retry_at.is_some_and(|at| now <= at + FAILURE_HOLDS);
        let full = self.total >= self.most() || room == 0;
        Mark::FailedLongAgo.hit_if(full && !holds);
        (self.opening > 0 || holds && full || self.put_off(now).is_some()).then_some(failure)
    }

    /// What a new server said a moment ago to these settings.
    pub(crate) fn refusal(&self, now: Time, settings: &Rc<Settings>) -> Option<&Report> {
        let mut refusals = self.refusals.iter();
        let known = refusals.find(|refusal| Rc::ptr_eq(&refusal.settings, settings))?;
        let holds = now - known.at <= REFUSAL_HOLDS;
        Mark::SettingsRefusedLongAgo.hit_if(!holds);
        holds.then_some(&known.report)
    }

    /// Notes that a new server does not take these settings.
    pub(crate) fn remember_refusal(&mut self, now: Time, settings: &Rc<Settings>, report: &Report) {
        self.forget_refusal(settings);
        self.refusals.retain(|refusal| now - refusal.at <= REFUSAL_HOLDS);
        if self.refusals.len() >= REFUSALS {
            Mark::RefusalForgotten.hit();
            self.refusals.remove(0);
        }
        let settings = Rc::clone(settings);
        self.refusals.push(Refusal { settings, at: now, report: report.clone() });
    }

    /// A server takes these settings, after all.
    pub(crate) fn forget_refusal(&mut self, settings: &Rc<Settings>) {
        self.refusals.retain(|refusal| !Rc::ptr_eq(&refusal.settings, settings));
    }

    /// Notes a failed attempt. `jitter` is a random number: attempts of many pools spread out.
    pub(crate) fn attempt_failed(&mut self, now: Time, why: Report, jitter: u32) {
        let doublings = self.failures.max(self.lost_unused).min(6);
        let delay = (BACKOFF * 2u32.pow(doublings)).min(BACKOFF_MAX);
        Mark::BackoffAtMost.hit_if(delay == BACKOFF_MAX);
        let spread = delay.mul_f64(f64::from(jitter) / f64::from(u32::MAX) / 2.0);
        self.retry_at = Some(now + delay / 2 + spread);
        self.failures += 1;
        self.last_failure = Some(Box::new(why));
    }

    /// Notes a server that was lost before it was of any use: the next one may be, too.
    pub(crate) fn note_lost_unused(&mut self, now: Time, why: Report, jitter: u32) {
        self.attempt_failed(now, why, jitter);
        self.lost_unused = self.lost_unused.saturating_add(1);
    }

    /// Forgets all that is known of its servers: there are others in their place.
    pub(crate) fn forget_servers(&mut self) {
        self.attempt_succeeded();
        self.lost_unused = 0;
        self.refusals.clear();
        self.welcomes.clear();
        self.at_login = None;
        self.login_keys = None;
    }

    /// Notes a server that logged in.
    pub(crate) fn attempt_succeeded(&mut self) {
        self.retry_at = None;
        self.failures = 0;
        self.last_failure = None;
    }

    /// What clients with these settings are told at login, if it is known.
    pub(crate) fn welcome(&self, settings: &Rc<Settings>) -> Option<Rc<Parameters>> {
        let known = self.welcomes.iter().find(|(known, _)| Rc::ptr_eq(known, settings));
        known.map(|(_, parameters)| Rc::clone(parameters))
    }

    /// Remembers what a server reports under these settings.
    pub(crate) fn remember_welcome(
        &mut self,
        settings: &Rc<Settings>,
        parameters: &Rc<Parameters>,
    ) {
        self.welcomes.retain(|(known, _)| !Rc::ptr_eq(known, settings));
        if self.welcomes.len() >= WELCOMES {
            Mark::WelcomeForgotten.hit();
            self.welcomes.remove(0);
        }
        self.welcomes.push((Rc::clone(settings), Rc::clone(parameters)));
    }
}

#[cfg(test)]
mod tests;

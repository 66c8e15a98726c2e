//! The names of a database behind which sessions are changed unseen, and when they are read.
//!
//! What a function does no text shows that calls it, and neither does a table show its triggers.
//! The catalogue does: a server is asked before it is lent, the driver judges what that says, and
//! the result is a list of *loud* names ([`pgweir_sql::Loud`]). No server is lent before it is
//! there, or could not be had. It is read anew when a statement has changed the schema, as far as
//! its text shows, and now and then.
//!
//! The server is one that is free. Where a client keeps it that has changed the schema, and none
//! is free, that one is asked between two of its units: whoever waits for the list holds nothing
//! that is needed to read it.

mod question;
mod rows;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use pgweir_config::LoudFunctions;
use pgweir_sql::{Loud, PinReason};
use pgweir_wire::SqlState;
use pgweir_wire::backend::Report;

use crate::Engine;
use crate::action::{Action, Address, ClientId, Event, ServerId};
use crate::ask::Answer;
use crate::client::Client;
use crate::commons::SchemaChanges;
use crate::marks::Mark;
use crate::pool::{PoolId, PoolSpec};
use crate::server::{Cleaning, Left, ServerState};
use crate::snapshot::LoudView;
use crate::time::Time;

pub(crate) use question::is_since;
pub use rows::CatalogueRows;
pub(crate) use schema::SchemaChange;

/// A database whose catalogue is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Database {
    /// Where it is.
    pub address: Address,
    /// Its name there.
    pub name: String,
    /// Functions that are believed to change nothing, with commas between.
    pub quiet: String,
}

/// What is known of a database's loud names.
pub(crate) struct Names {
    loud: Arc<Loud>,
    /// They were read, or could not be.
    known: bool,
    /// How often a reading has begun.
    begun: u64,
    reading: Reading,
    /// So many readings in a row were in vain.
    failures: u32,
    /// The schema has changed since the last reading began.
    stale: bool,
    began: Time,
    /// Changes of the schema by clients of any worker, and how many there were when the last
    /// reading began.
    changes: Arc<SchemaChanges>,
    seen: usize,
}

/// Where a reading is.
#[derive(Clone, Copy, Default)]
enum Reading {
    #[default]
    None,
    /// This server is asked, if it was not lost meanwhile.
    Asked(ServerId),
    /// The driver judges what a server has said.
    Judged,
}

/// So long a server may be silent that reads its catalogue, besides what any statement of ours may
/// take: the question gives itself this time.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// A server that is lost sooner was not lost for what it was asked: the whole cluster may be down.
const LOST_AT_ONCE: Duration = Duration::from_secs(1);
/// So often the catalogue is read at most, however often the schema changes.
const PAUSE: Duration = Duration::from_millis(500);
/// So much later it is tried again to read one that could not be read.
const RETRY: Duration = Duration::from_secs(10);
/// So often it is read though nobody is seen to have changed the schema.
const PERIOD: Duration = Duration::from_secs(300);
/// After so many failures in a row it counts as one that cannot be read.
const TRIES: u32 = 3;

impl Names {
    fn new(changes: Arc<SchemaChanges>) -> Self {
        Self {
            loud: Arc::default(),
            known: false,
            begun: 0,
            reading: Reading::None,
            failures: 0,
            stale: false,
            began: Time::ZERO,
            seen: changes.number(),
            changes,
        }
    }

    /// The schema has changed: all workers read it anew.
    fn changed(&mut self) {
        self.stale = true;
        self.changes.add();
    }

    /// It is about to, which counts as one change. It is not read here before it has: that would
    /// only come in between.
    fn will_change(&mut self) {
        self.seen += 1;
    }
}

impl PoolSpec {
    /// The database whose loud names matter to the pool, if any do.
    pub(crate) fn catalogue(&self) -> Option<Database> {
        // In session mode too it has to be known what a session has left behind.
        (self.loud_functions != LoudFunctions::Ignore).then(|| Database {
            address: self.address.clone(),
            name: self.server_database.clone(),
            quiet: self.quiet_functions.clone(),
        })
    }
}

impl Engine {
    /// Whether the loud names of a pool are known.
    pub(crate) fn knows_names(&mut self, id: PoolId) -> bool {
        if !self.pools[id].names_known && self.names_are_there(id) {
            self.pools[id].names_known = true;
            // Nobody is asked for them any more, so nobody's answer wakes who waits for them.
            self.wake_holding(id);
        }
        self.pools[id].names_known
    }

    /// Takes over what is known of a pool's database. Says whether that is all that matters.
    fn names_are_there(&mut self, id: PoolId) -> bool {
        let Some(database) = self.pools[id].spec.catalogue() else { return true };
        let Some(names) = self.names.get(&database).filter(|names| names.known) else {
            return false;
        };
        let is_changing = names.stale || self.is_changing(&database, names.begun);
        let pool = &mut self.pools[id];
        pool.loud = Arc::clone(&names.loud);
        pool.names_changed = is_changing;
        pool.shown = Some((Arc::clone(&names.changes), names.seen));
        true
    }

    /// The loud names of a pool are wanted: if one of its servers is free it is asked.
    pub(crate) fn want_names(&mut self, now: Time, id: PoolId) {
        if let Some(&server) = self.pools[id].idle.last()
            && self.is_due(now, id)
        {
            Mark::IdleReadsNames.hit();
            self.pools[id].idle.retain(|idle| *idle != server);
            self.reads_names(now, server);
        } else if self.is_due(now, id) {
            self.keep(now, id, 1);
        }
    }

    /// A server is free. Says whether it is asked for the names of its database first.
    pub(crate) fn reads_names(&mut self, now: Time, id: ServerId) -> bool {
        let pool = self.servers[id].pool;
        if !self.is_due(now, pool) {
            return false;
        }
        let Some(database) = self.pools[pool].spec.catalogue() else { return false };
        self.begin_reading(now, id, &database);
        let none = self.interner.none();
        let server = &mut self.servers[id];
        server.answer = Some(Answer::Catalogue(CatalogueRows::new(database)));
        server.state = ServerState::Cleaning { step: Cleaning::Reading, left: Left::Nothing };
        server.changed = now;
        server.heard = now;
        self.pools[pool].reading += 1;
        if server.is_just(&none) {
            self.ask_for_names(id);
        } else {
            // A short statement_timeout would end it.
            Mark::UnsetToRead.hit();
            self.replay(id, &none);
        }
        true
    }

    fn ask_for_names(&mut self, id: ServerId) {
        let text = question::question(&self.servers[id].parameters);
        self.run_own(id, &text);
    }

    /// A free server that is asked for names has answered.
    pub(crate) fn names_answered(&mut self, now: Time, id: ServerId) {
        let server = &mut self.servers[id];
        if server.replaying.is_some() {
            if self.replayed(id).is_none() {
                return self.ask_for_names(id);
            }
            Mark::ReadingRefused.hit();
            self.end_reading(id);
            return self.close_server(now, id);
        }
        let error = server.own_error.take();
        let rows = self.end_reading(id);
        if let Some(rows) = rows {
            self.names_told(now, rows, error);
        }
        self.offer(now, id);
    }

    /// A server is not asked for names any more.
    pub(crate) fn end_reading(&mut self, id: ServerId) -> Option<CatalogueRows> {
        let server = &mut self.servers[id];
        if let ServerState::Cleaning { step: Cleaning::Reading, .. } = server.state {
            self.pools[server.pool].reading -= 1;
            // As if it had just been cleaned.
            server.state = ServerState::AwaitingCancel;
        }
        match server.answer.take() {
            Some(Answer::Catalogue(rows)) => Some(rows),
            // No mark: this is not rare, for any server may go.
            Some(
                Answer::Settings(_)
                | Answer::State(_)
                | Answer::Shown
                | Answer::Marked
                | Answer::Unlistened,
            )
            | None => None,
        }
    }

    /// A server has said what there is in its catalogue, or an error.
    pub(crate) fn names_told(
        &mut self,
        now: Time,
        rows: CatalogueRows,
        error: Option<Box<Report>>,
    ) {
        let database = rows.database().clone();
        let Some(names) = self.names.get_mut(&database) else { return };
        names.reading = Reading::None;
        if let Some(error) = error {
            names.failures = if is_passing(error.code) { names.failures + 1 } else { TRIES };
            if names.failures < TRIES {
                // The next server is asked again.
                names.stale = true;
                return Mark::CatalogueAskedAgain.hit();
            }
            return self.catalogue_read(now, &database, Err(error.message));
        }
        if rows.is_overlong() {
            Mark::CatalogueTooLong.hit();
            let cause = "there is more in it than is kept".to_owned();
            return self.catalogue_read(now, &database, Err(cause));
        }
        names.reading = Reading::Judged;
        self.actions.push(Action::JudgeCatalogue(Box::new(rows)));
    }

    /// A server is gone that was asked what there is in its catalogue.
    pub(crate) fn reading_lost(&mut self, now: Time, server: ServerId, database: &Database) {
        let Some(names) = self.names.get_mut(database) else { return };
        if !matches!(names.reading, Reading::Asked(asked) if asked == server) {
            return;
        }
        names.reading = Reading::None;
        names.stale = true;
        if now - names.began < LOST_AT_ONCE {
            return Mark::ReadingLostAtOnce.hit();
        }
        names.failures = names.failures.saturating_add(1).min(TRIES);
        if names.failures == TRIES {
            Mark::CatalogueLost.hit();
            let cause = format!("{TRIES} servers in a row were lost that were asked for it");
            self.catalogue_read(now, database, Err(cause));
        }
    }

    /// What [`Action::JudgeCatalogue`] has asked for, or why it is not to be had.
    pub fn catalogue_read(
        &mut self,
        now: Time,
        database: &Database,
        read: Result<Arc<Loud>, String>,
    ) {
        let Some(names) = self.names.get_mut(database) else { return };
        names.reading = Reading::None;
        names.known = true;
        let (reading, is_read) = (names.begun, read.is_ok());
        match read {
            Ok(loud) => {
                names.loud = loud;
                names.failures = 0;
            }
            Err(cause) => {
                Mark::CatalogueUnread.hit();
                names.failures = TRIES;
                let (address, database) = (database.address.clone(), database.name.clone());
                let event = Event::CatalogueUnread { address, database, cause };
                self.actions.push(Action::Log(event));
            }
        }
        let (loud, is_stale) = (Arc::clone(&names.loud), names.stale);
        let shown = is_read.then(|| (Arc::clone(&names.changes), names.seen));
        if is_read {
            let is_changing = is_stale || self.is_changing(database, reading);
            Mark::SchemaStillChanging.hit_if(is_changing);
            self.names_may_change(database, is_changing);
        }
        for id in self.pools.keys() {
            if self.pools[id].spec.catalogue().as_ref() == Some(database) {
                let pool = &mut self.pools[id];
                let before = std::mem::replace(&mut pool.loud, Arc::clone(&loud));
                pool.names_known = true;
                pool.shown = shown.clone().or_else(|| pool.shown.take());
                let news = loud.news_since(&before);
                if news.is_some_and(|news| news.pins.contains(PinReason::Sequence)) {
                    Mark::NewsOfSequences.hit();
                    self.doubt_sequences(id);
                }
                self.names_are_known(now, id, reading, is_read);
            }
        }
    }

    /// The clients of a pool that have waited for that go on.
    fn names_are_known(&mut self, now: Time, id: PoolId, reading: u64, is_read: bool) {
        self.wake_holding(id);
        let is_due = |its: &Client| its.schema.as_ref().is_some_and(|its| its.is_in(reading));
        let of_pool = self.clients.iter().filter(|(_, its)| its.pool() == Some(id));
        let due: Vec<_> = of_pool.filter(|(_, its)| is_due(its)).map(|(id, _)| id).collect();
        due.into_iter().for_each(|client| self.schema_is_read(now, client, is_read));
        self.serve_waiters(now, id);
    }

    /// The clients of a pool whose input is held back have it looked at again.
    fn wake_holding(&mut self, id: PoolId) {
        let of_pool = self.clients.iter().filter(|(_, its)| its.pool() == Some(id));
        let held: Vec<_> = of_pool.filter(|(_, its)| its.holding).map(|(id, _)| id).collect();
        for client in held {
            Mark::NamesKnownToHeld.hit();
            self.wake(client);
        }
    }

    /// The servers that were free, and not lent while names were unknown, are.
    pub(crate) fn serve_waiters(&mut self, now: Time, id: PoolId) {
        for _ in 0..self.pools[id].idle.len() {
            if self.pools[id].waiting > 0
                && let Some(server) = self.pools[id].idle.pop()
            {
                self.offer(now, server);
            }
        }
    }

    /// A pool leads elsewhere now: what was known of names there matters only to whoever is there.
    pub(crate) fn forget_names(&mut self, id: PoolId) {
        Mark::OtherCatalogue.hit();
        let pool = &mut self.pools[id];
        pool.shown = None;
        pool.names_changed = false;
        let was_known = std::mem::take(&mut pool.names_known);
        let before = std::mem::take(&mut pool.loud);
        for key in self.servers.keys() {
            let server = &mut self.servers[key];
            if server.pool == id && server.client().is_some() && was_known {
                Mark::LentElsewhere.hit();
                server.elsewhere.get_or_insert_with(|| Arc::clone(&before));
            }
        }
        for client in self.clients.keys() {
            let its = &mut self.clients[client];
            let was_changed = its.pool() == Some(id) && its.schema.take().is_some();
            // What it has done on a server that is lost is gone with that.
            if was_changed && its.server().is_some() {
                Mark::SchemaLeftBehind.hit();
                self.leaves(client, PinReason::Unclear.into(), None);
            }
        }
    }

    /// What is known of the names in what a client says.
    pub(crate) fn loud_for(&self, client: ClientId, pool: PoolId) -> &Arc<Loud> {
        let server = self.clients[client].server();
        let elsewhere = server.and_then(|server| self.servers[server].elsewhere.as_ref());
        elsewhere.unwrap_or(&self.pools[pool].loud)
    }

    /// The catalogues that were read.
    pub(crate) fn loud_views(&self) -> Vec<LoudView> {
        let view = |(database, names): (&Database, &Names)| LoudView {
            database: database.clone(),
            loud: Arc::clone(&names.loud),
        };
        self.names.iter().map(view).collect()
    }

    /// Reads the catalogues that are due, as far as a server is free; elsewhere the next one that
    /// comes free is asked.
    pub(crate) fn sweep_catalogues(&mut self, now: Time) {
        let pools = || self.pools.iter().filter_map(|(_, pool)| pool.spec.catalogue());
        let used: Vec<_> = pools().collect();
        self.names.retain(|database, names| now - names.began < PERIOD || used.contains(database));
        for id in self.pools.keys() {
            if self.pools[id].clients > 0 {
                self.want_names(now, id);
                self.ask_changers(now, id);
            }
        }
    }

    /// What is known of a database, or nothing.
    fn names_of(&mut self, database: &Database) -> &mut Names {
        let commons = self.member.commons();
        self.names
            .entry(database.clone())
            .or_insert_with(|| Names::new(commons.schema_changes(&database.name)))
    }

    /// Notes that a server is asked now.
    fn begin_reading(&mut self, now: Time, id: ServerId, database: &Database) {
        let names = self.names_of(database);
        Mark::CatalogueReadAgain.hit_if(names.known);
        names.reading = Reading::Asked(id);
        names.stale = false;
        names.seen = names.changes.number();
        names.begun += 1;
        names.began = now;
    }

    /// Whether the catalogue of a pool's database is to be read now.
    fn is_due(&self, now: Time, id: PoolId) -> bool {
        let Some(database) = self.pools[id].spec.catalogue() else { return false };
        let Some(names) = self.names.get(&database) else { return true };
        let is_lost = match names.reading {
            Reading::None => false,
            Reading::Judged => return false,
            Reading::Asked(server) if self.is_asked(server, &database) => return false,
            Reading::Asked(_) => true,
        };
        let age = now - names.began;
        let pause = if names.failures >= TRIES {
            RETRY
        } else if names.stale || names.changes.number() != names.seen || is_lost {
            PAUSE
        } else {
            PERIOD
        };
        !names.known || age >= pause
    }

    /// Whether a server is still about to say what there is in this catalogue.
    fn is_asked(&self, id: ServerId, database: &Database) -> bool {
        self.servers.find(id).is_some_and(|server| {
            let asked = match server.state {
                ServerState::Lent(_) | ServerState::Cleaning { step: Cleaning::Reading, .. } => {
                    server.answer.as_ref()
                }
                ServerState::Connecting
                | ServerState::Login(_)
                | ServerState::Idle
                | ServerState::Cleaning { .. }
                | ServerState::Listening
                | ServerState::Pipelined
                | ServerState::AwaitingCancel
                | ServerState::Forsaken
                | ServerState::Leaving => {
                    Mark::AskedIsGone.hit();
                    None
                }
            };
            matches!(asked, Some(Answer::Catalogue(rows)) if rows.database() == database)
        })
    }
}

/// Whether an error says nothing of what another attempt would come to.
fn is_passing(code: SqlState) -> bool {
    [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(&code)
}

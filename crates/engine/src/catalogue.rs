//! The names of a database behind which sessions are changed unseen, and when they are read.
//!
//! What a function does no text shows that calls it, and neither does a table show its triggers.
//! The catalogue does: the driver reads it, with a login of its own, and gives the engine a list of
//! *loud* names ([`pgweir_sql::Loud`]). No statement runs before it is there, or could not be
//! had. It is read anew when a statement has changed the schema, as far as its text
//! shows, and now and then.
//!
//! A client that has changed the schema keeps its server until the new list is there: what it has
//! done meanwhile may have been done by a function that is in no older one. So all that the new
//! list has and the old one has not counts as done by that client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pgweir_config::{LoudFunctions, Secret};
use pgweir_sql::{Loud, PinReason, Pins};

use crate::Engine;
use crate::action::{Action, Address, ClientId, Event, ServerId};
use crate::client::{Client, Leg};
use crate::marks::Mark;
use crate::pool::{PoolId, PoolSpec};
use crate::snapshot::LoudView;
use crate::time::Time;

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

/// How to read the catalogue of a database.
#[derive(Clone, PartialEq, Eq)]
pub struct CatalogueLogin {
    /// Which.
    pub database: Database,
    /// As whom to log in.
    pub user: String,
    /// Empty where there is none.
    pub password: Secret,
    /// How long a login may take, and then the reading.
    pub timeout: Duration,
}

impl fmt::Debug for CatalogueLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogueLogin").field("database", &self.database).finish_non_exhaustive()
    }
}

/// What is known of a database's loud names.
#[derive(Default)]
pub(crate) struct Names {
    loud: Arc<Loud>,
    /// They were read, or could not be.
    known: bool,
    /// How often a reading has begun.
    begun: u64,
    under_way: bool,
    /// The last reading was in vain.
    failed: bool,
    /// The schema has changed since the last reading began.
    stale: bool,
    began: Time,
}

/// A client has changed the schema, and keeps its server until that is read.
pub(crate) struct SchemaChange {
    /// What was known before.
    before: Arc<Loud>,
    /// The reading that shows it; `None`: it is not committed yet.
    reading: Option<u64>,
    /// Its client has run something since, which may have done what is not known yet.
    followed: bool,
}

/// So often the catalogue is read at most, however often the schema changes.
const PAUSE: Duration = Duration::from_millis(500);
/// So much later it is tried again to read one that could not be read.
const RETRY: Duration = Duration::from_secs(10);
/// So often it is read though nobody is seen to have changed the schema.
const PERIOD: Duration = Duration::from_secs(300);

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
    /// Whether the loud names of a pool are known; if not they are asked for.
    pub(crate) fn knows_names(&mut self, now: Time, id: PoolId) -> bool {
        if self.pools[id].names_known {
            return true;
        }
        let Some(database) = self.pools[id].spec.catalogue() else {
            self.pools[id].names_known = true;
            return true;
        };
        let names = self.names.entry(database.clone()).or_default();
        if names.known {
            let pool = &mut self.pools[id];
            pool.loud = Arc::clone(&names.loud);
            pool.names_known = true;
            return true;
        }
        if !names.under_way {
            self.read_catalogue(now, id, database);
        }
        false
    }

    fn read_catalogue(&mut self, now: Time, id: PoolId, database: Database) {
        let names = self.names.entry(database.clone()).or_default();
        names.under_way = true;
        names.stale = false;
        names.begun += 1;
        names.began = now;
        let spec = &self.pools[id].spec;
        self.actions.push(Action::ReadCatalogue(Box::new(CatalogueLogin {
            database,
            user: spec.server_user.clone(),
            password: spec.server_password.clone(),
            timeout: spec.connect_timeout,
        })));
    }

    /// The catalogue that [`Action::ReadCatalogue`] has asked for is read, or why it is not.
    pub fn catalogue_read(
        &mut self,
        now: Time,
        database: &Database,
        read: Result<Arc<Loud>, String>,
    ) {
        let Some(names) = self.names.get_mut(database) else { return };
        names.under_way = false;
        names.known = true;
        names.failed = read.is_err();
        let (reading, is_read) = (names.begun, read.is_ok());
        match read {
            Ok(loud) => names.loud = loud,
            Err(cause) => {
                Mark::CatalogueUnread.hit();
                let (address, database) = (database.address.clone(), database.name.clone());
                let event = Event::CatalogueUnread { address, database, cause };
                self.actions.push(Action::Log(event));
            }
        }
        let loud = Arc::clone(&names.loud);
        for id in self.pools.keys() {
            if self.pools[id].spec.catalogue().as_ref() == Some(database) {
                let pool = &mut self.pools[id];
                pool.loud = Arc::clone(&loud);
                pool.names_known = true;
                self.names_are_known(now, id, reading, is_read);
            }
        }
    }

    /// The clients of a pool that have waited for that: they go on in the order in which they came.
    fn names_are_known(&mut self, now: Time, id: PoolId, reading: u64, is_read: bool) {
        let (mut held, mut served, mut due) = (Vec::new(), Vec::new(), Vec::new());
        for (client, its) in self.clients.iter().filter(|(_, its)| its.pool() == Some(id)) {
            if its.is_held() {
                held.push((its.held_since, client));
            } else if its.holding {
                served.push(client);
            }
            let number = its.schema.as_ref().and_then(|change| change.reading);
            if number.is_some_and(|number| number <= reading) {
                due.push(client);
            }
        }
        for client in in_order(held) {
            // Nobody whose unit comes now is to overtake it.
            self.clients[client].unfinished = None;
            self.wake(client);
            self.check_out(now, client, id);
        }
        served.into_iter().for_each(|client| self.wake(client));
        due.into_iter().for_each(|client| self.schema_is_read(now, client, is_read));
    }

    /// A pool leads elsewhere now: what was known of names there does not matter any more.
    pub(crate) fn forget_names(&mut self, id: PoolId) {
        Mark::OtherCatalogue.hit();
        let pool = &mut self.pools[id];
        pool.names_known = false;
        pool.loud = Arc::default();
        // Who waits for it asks again.
        let its = self.clients.iter().filter(|(_, its)| its.pool() == Some(id) && its.is_held());
        for client in in_order(its.map(|(client, its)| (its.held_since, client)).collect()) {
            self.wake(client);
        }
        for client in self.clients.keys() {
            let its = &mut self.clients[client];
            if its.pool() == Some(id) && its.schema.take().is_some() {
                self.leaves(client, PinReason::Unclear.into(), None);
            }
        }
    }

    /// What a client has changed of the schema is read: what it may have done unseen meanwhile is
    /// known now.
    fn schema_is_read(&mut self, now: Time, id: ClientId, is_read: bool) {
        let Some(change) = self.clients[id].schema.take() else { return };
        let Some(server) = self.clients[id].server() else { return };
        let loud = Arc::clone(&self.pools[self.servers[server].pool].loud);
        if !is_read {
            self.leaves(id, PinReason::Unclear.into(), None);
        } else if let Some(news) = loud.news_since(&change.before) {
            Mark::SchemaMadeLoud.hit();
            self.unseen(id, news, None);
        }
        if !self.servers[server].status.in_block() {
            self.lease_over(now, server, id);
        }
    }

    /// A statement of a client has changed the schema.
    pub(crate) fn note_schema(&mut self, id: ClientId, server: ServerId) {
        let pool = &self.pools[self.servers[server].pool];
        if pool.spec.catalogue().is_none() {
            return;
        }
        let before = Arc::clone(&pool.loud);
        let its = &mut self.clients[id];
        let new = SchemaChange { before, reading: None, followed: false };
        its.schema.get_or_insert(new).reading = None;
    }

    /// A client is done with a transaction: if that has changed the schema it is read anew.
    pub(crate) fn look_at_schema(&mut self, now: Time, id: ClientId, server: ServerId) {
        let pool = self.servers[server].pool;
        let Some(change) = &mut self.clients[id].schema else { return };
        let Some(database) = self.pools[pool].spec.catalogue() else { return };
        if change.reading.is_some() {
            return;
        }
        Mark::SchemaChanged.hit();
        let names = self.names.entry(database.clone()).or_default();
        change.reading = Some(names.begun + 1);
        if names.under_way || now - names.began < PAUSE {
            names.stale = true;
        } else {
            self.read_catalogue(now, pool, database);
        }
    }

    /// The catalogues that were read.
    pub(crate) fn loud_views(&self) -> Vec<LoudView> {
        let view = |(database, names): (&Database, &Names)| LoudView {
            database: database.clone(),
            loud: Arc::clone(&names.loud),
        };
        self.names.iter().map(view).collect()
    }

    /// Reads the catalogues that are due.
    pub(crate) fn sweep_catalogues(&mut self, now: Time) {
        let mut users = Vec::new();
        for (id, pool) in self.pools.iter() {
            if let Some(database) = pool.spec.catalogue()
                && self.names.contains_key(&database)
                && !users.iter().any(|(known, _)| *known == database)
            {
                users.push((database, id));
            }
        }
        self.names.retain(|database, names| {
            now - names.began < PERIOD || users.iter().any(|(known, _)| known == database)
        });
        for (database, id) in users {
            let is_used = self.pools[id].clients > 0;
            let Some(names) = self.names.get(&database).filter(|names| !names.under_way) else {
                continue;
            };
            let age = now - names.began;
            let period = if names.failed { RETRY } else { PERIOD };
            if names.stale && age >= PAUSE || is_used && age >= period {
                Mark::CatalogueReadAgain.hit();
                self.read_catalogue(now, id, database);
            }
        }
    }
}

impl Client {
    /// Whether its unit waits until names are known.
    fn is_held(&self) -> bool {
        self.holding && self.leg == Leg::None
    }

    /// Whether what it has changed of the schema is still to be read.
    pub(crate) fn awaits_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// Why its server stays, in words.
    pub(crate) fn pins_in_words(&self) -> String {
        let schema = if self.awaits_schema() { PinReason::Schema.into() } else { Pins::NONE };
        let pins = self.pins.union(schema);
        match &self.unseen {
            Some(name) if !self.pins.is_empty() => format!("{pins} (by {name})"),
            Some(_) | None => pins.to_string(),
        }
    }

    /// Whether it may have done something by names that are not known yet.
    pub(crate) fn has_followed_schema(&self) -> bool {
        self.schema.as_ref().is_some_and(|change| change.followed)
    }

    /// Whether something of that may outlive its transaction. Of one that is open still, what it
    /// has made is not there any more when its server is lost, nor what was set by that.
    pub(crate) fn may_keep_unknown(&self) -> bool {
        self.schema.as_ref().is_some_and(|change| change.followed && change.reading.is_some())
    }

    /// A text is sent that may name what another one has made.
    pub(crate) fn follow_schema(&mut self) {
        if let Some(change) = &mut self.schema {
            change.followed = true;
        }
    }

    /// Notes why its server stays, by the name that stands for it.
    pub(crate) fn note_unseen(&mut self, name: &str) {
        self.unseen.get_or_insert_with(|| name.into());
    }
}

/// Clients that wait, those first that have waited longest.
fn in_order(mut held: Vec<(Option<Time>, ClientId)>) -> impl Iterator<Item = ClientId> {
    held.sort_by_key(|(since, client)| (*since, client.index()));
    held.into_iter().map(|(_, client)| client)
}

//! Clients that change the schema.
//!
//! Such a client keeps its server until the new list of names is there: what it has done meanwhile
//! may have been done by a function that is in no older one. So all that the new list has and the
//! old one has not counts as done by that client.

use std::sync::Arc;

use pgweir_sql::{Heard, Loud, PinReason, Pins};

use super::{CatalogueRows, Database, question};
use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::ask::Answer;
use crate::client::{Client, Leg, UnnamedStatement};
use crate::commons::UnderWay;
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::time::Time;

/// A client has changed the schema, and keeps its server until that is read.
pub(crate) struct SchemaChange {
    /// What was known before.
    before: Arc<Loud>,
    /// The reading that shows it; `None`: it is not committed yet.
    reading: Option<u64>,
    /// Its client has run something since, which may have done what is not known yet.
    followed: bool,
    /// And not only the end of its transaction.
    used: bool,
    /// Behind that it has changed the schema again, or has undone what it had changed: what it has
    /// run then may be in no list.
    changed_again: bool,
}

impl SchemaChange {
    /// Whether this reading shows it.
    pub(super) fn is_in(&self, reading: u64) -> bool {
        self.reading.is_some_and(|number| number <= reading)
    }
}

impl Engine {
    /// What a client has changed of the schema is read: what it may have done unseen meanwhile is
    /// known now.
    pub(super) fn schema_is_read(&mut self, now: Time, id: ClientId, is_read: bool) {
        let Some(change) = self.clients[id].schema.take() else { return };
        let Some(server) = self.clients[id].server() else {
            return Mark::SchemaReadForLeaver.hit();
        };
        let loud = Arc::clone(&self.pools[self.servers[server].pool].loud);
        if !is_read {
            Mark::SchemaUnread.hit();
            self.leaves(id, PinReason::Unclear.into(), None);
        } else {
            if let Some(news) = loud.news_since(&change.before) {
                Mark::SchemaMadeLoud.hit();
                self.unseen(id, news, None);
            }
            if change.changed_again {
                // What it has set is asked for; the rest goes with the server, for it may be what
                // no statement removes.
                Mark::SchemaChangedAgain.hit();
                self.clients[id].changes.get_or_insert_default();
                let its = &mut self.servers[server];
                its.unseen = its.unseen.union(PinReason::Unclear.into());
            }
        }
        if !self.servers[server].status.in_block() {
            self.lease_over(now, server, id);
        }
    }

    /// A statement of a client changes the schema. Others hear of it, also where the client's own
    /// pool does not look at it.
    pub(crate) fn note_schema(&mut self, id: ClientId, server: ServerId) {
        let its = &mut self.servers[server];
        let pool = &self.pools[its.pool];
        let is_first = its.alters.is_none();
        if is_first {
            let changes = self.member.commons().schema_changes(&pool.spec.server_database);
            its.alters = Some(UnderWay::begin(changes));
        }
        if pool.spec.catalogue().is_none() || its.elsewhere.is_some() {
            Mark::SchemaOfElsewhere.hit();
            return;
        }
        let before = Arc::clone(&pool.loud);
        let database = pool.spec.catalogue();
        let its = &mut self.clients[id];
        let new = SchemaChange {
            before,
            reading: None,
            followed: false,
            used: false,
            changed_again: false,
        };
        its.schema.get_or_insert(new).reading = None;
        if let Some(database) = database.filter(|_| is_first) {
            self.names_of(&database).will_change();
            self.names_may_change(&database, true);
        }
    }

    /// Whether the names of a database may be others than those that were read. While they may,
    /// nobody shares its servers: what was quiet may change a session now.
    pub(super) fn names_may_change(&mut self, database: &Database, may: bool) {
        for id in self.pools.keys() {
            let pool = &mut self.pools[id];
            if pool.spec.catalogue().as_ref() == Some(database) {
                pool.names_changed = may;
            }
        }
    }

    /// Whether somebody has changed the schema of a database in a way that this reading does not
    /// show.
    pub(super) fn is_changing(&self, database: &Database, reading: u64) -> bool {
        self.clients.iter().any(|(_, its)| {
            let is_later = its.schema.as_ref().is_some_and(|change| !change.is_in(reading));
            let pool = its.pool().filter(|_| is_later).map(|pool| &self.pools[pool]);
            pool.is_some_and(|pool| pool.spec.catalogue().as_ref() == Some(database))
        })
    }

    /// A client is gone that has perhaps changed the schema: that is read anew.
    pub(crate) fn schema_of_leaver(&mut self, client: &Client) {
        let pool = client.pool().filter(|_| client.schema.is_some());
        let database = pool.and_then(|pool| self.pools[pool].spec.catalogue());
        if let Some(database) = database {
            Mark::SchemaChangerGone.hit();
            self.names_of(&database).changed();
        }
    }

    /// A client is done with a transaction: if that has changed the schema it is read anew. Says
    /// whether its own server is asked.
    pub(crate) fn look_at_schema(&mut self, now: Time, id: ClientId, server: ServerId) -> bool {
        let pool = self.servers[server].pool;
        self.servers[server].alters = None;
        let Some(change) = &self.clients[id].schema else { return false };
        let Some(database) = self.pools[pool].spec.catalogue() else { return false };
        if change.reading.is_none() {
            Mark::SchemaChanged.hit();
            let names = self.names_of(&database);
            names.changed();
            let reading = Some(names.begun + 1);
            self.names_may_change(&database, true);
            if let Some(change) = &mut self.clients[id].schema {
                change.reading = reading;
            }
        }
        self.want_names(now, pool);
        self.asks_for_names(now, server)
    }

    /// A server whose client waits for names, and has nothing under way, is asked for them, if
    /// nobody else is.
    pub(super) fn ask_changers(&mut self, now: Time, id: PoolId) {
        let waits = |its: &Client| its.awaits_schema() || its.holding;
        let of_pool = self.clients.iter().filter(|(_, its)| its.pool() == Some(id) && waits(its));
        let quiet = of_pool.filter_map(|(_, its)| {
            let Leg::Held(server) = its.leg else { return None };
            let of = &self.servers[server];
            let is_quiet = of.replies.is_empty() && !of.replies.in_batch() && of.answer.is_none();
            let is_due = its.schema.as_ref().is_none_or(|change| change.reading.is_some());
            let is_between = its.slots.is_empty() && its.body.left == 0 && !of.status.in_block();
            (is_quiet && is_due && is_between).then_some(server)
        });
        for server in quiet.collect::<Vec<_>>() {
            if self.asks_for_names(now, server) {
                break;
            }
        }
    }

    /// A server that its client keeps is asked for the names of its database, if they are due.
    fn asks_for_names(&mut self, now: Time, id: ServerId) -> bool {
        let server = &self.servers[id];
        let pool = server.pool;
        let client = server.client().and_then(|client| self.clients.find(client));
        let may_be = client.is_some_and(|client| {
            // A Query would end a statement that is nowhere else.
            !matches!(client.unnamed, UnnamedStatement::TooLong)
        });
        if !may_be || server.dedicated || server.elsewhere.is_some() || !self.is_due(now, pool) {
            return false;
        }
        let Some(database) = self.pools[pool].spec.catalogue() else { return false };
        Mark::OwnServerReadsNames.hit();
        let text = question::question(&server.parameters);
        self.begin_reading(now, id, &database);
        self.ask(now, id, Answer::Catalogue(CatalogueRows::new(database)), &text);
        true
    }
}

impl Client {
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

    /// A text is sent, which may name what another one has made, and remove it behind that.
    pub(crate) fn follow_schema(&mut self, heard: &Heard) {
        if let Some(change) = &mut self.schema {
            let pins = heard.pins;
            let removes = change.followed && pins.contains(PinReason::Schema);
            let ends = change.used && pins.contains(PinReason::Ends);
            change.changed_again |= removes || ends;
            change.followed = true;
            change.used |= heard.statements != 1 || pins != Pins::from(PinReason::Commit);
        }
    }

    /// A statement that it has prepared is run.
    pub(crate) fn uses_schema(&mut self) {
        if let Some(change) = &mut self.schema {
            (change.followed, change.used) = (true, true);
        }
    }

    /// Something has failed, and what it had made of the schema is undone with it, maybe: what was
    /// run at the end of its transaction, too.
    pub(crate) fn schema_failed(&mut self) {
        if let Some(change) = self.uncommitted_change().filter(|change| change.followed) {
            Mark::SchemaFailed.hit();
            change.changed_again = true;
        }
    }

    /// A command of its is complete. What it had made of the schema may be rolled back, or is not
    /// there before somebody commits what is prepared.
    pub(crate) fn schema_rolled_back(&mut self, tag: &[u8]) {
        let is_gone =
            [&b"ROLLBACK"[..], b"PREPARE TRANSACTION"].iter().any(|verb| tag.starts_with(verb));
        if let Some(change) = self.uncommitted_change().filter(|change| change.used && is_gone) {
            Mark::SchemaUndone.hit();
            change.changed_again = true;
        }
    }

    /// What it has changed of the schema, if that can still be undone.
    fn uncommitted_change(&mut self) -> Option<&mut SchemaChange> {
        self.schema.as_mut().filter(|change| change.reading.is_none())
    }

    /// Notes why its server stays, by the name that stands for it.
    pub(crate) fn note_unseen(&mut self, name: &str) {
        self.unseen.get_or_insert_with(|| name.into());
    }
}

//! Settings that no session can change: they are what a server was started with.
//!
//! A startup packet may ask for some that SET refuses (`ignore_system_indexes`, `log_connections`).
//! No server can be brought to them. So one is started with those of the client that it is made
//! for, and lent only to clients that have asked for just the same. Whoever meets with others only,
//! at the head of the queue or because all that are idle are such, has one of them replaced by one
//! of its own. So the queue keeps its order, and nobody waits while a server is idle.
//!
//! Most clients ask for none of these, and most pools have no server but for them.

use std::rc::Rc;

use pgweir_wire::Severity;
use pgweir_wire::backend::Report;

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::Leg;
use crate::marks::Mark;
use crate::parameters::Parameters;
use crate::pool::{PoolId, Waiter};
use crate::server::{Server, ServerState};
use crate::server_login::Retry;
use crate::settings::{Pairs, Settings, Wishes};
use crate::time::Time;

/// By context (`PGC_BACKEND` and `PGC_SU_BACKEND`, guc_tables.c).
const NAMES: [&[u8]; 6] = [
    b"ignore_system_indexes",
    b"jit_debugging_support",
    b"jit_profiling_support",
    b"log_connections",
    b"log_disconnections",
    DELAY,
];

/// With this a login takes as long as whoever asks for it likes.
const DELAY: &[u8] = b"post_auth_delay";

impl Engine {
    /// Notes what a client's startup packet asks for.
    pub(crate) fn note_startup(&mut self, id: ClientId, wishes: Wishes) {
        let Wishes { settings, choice } = wishes;
        let is_born = |name: &[u8]| NAMES.contains(&name);
        let has_any = settings.names().any(is_born);
        let (birth, settings) = if has_any {
            let part = |born| -> Pairs {
                let pairs = settings.pairs().filter(|(name, _)| is_born(name) == born);
                pairs.map(|(name, value)| (name.into(), value.into())).collect()
            };
            (self.interner.intern(part(true)), self.interner.intern(part(false)))
        } else {
            (self.interner.none(), settings)
        };
        let client = &mut self.clients[id];
        client.pins = settings.pins();
        client.startup = Rc::clone(&settings);
        client.settings = settings;
        client.birth = birth;
        client.choice_at_login = choice;
    }

    /// What a client is told at its login, if that is known: also that servers can be started as
    /// it asks for.
    pub(crate) fn known_welcome(&self, id: ClientId, pool: PoolId) -> Option<Rc<Parameters>> {
        let client = &self.clients[id];
        let is_taken = client.birth.is_empty()
            || self.servers.iter().any(|(_, server)| {
                server.pool == pool
                    && !server.is_opening()
                    && Rc::ptr_eq(&server.birth, &client.birth)
            });
        if client.replication.is_some() || !is_taken {
            return None;
        }
        self.pools[pool].welcome(&self.brought(id))
    }

    /// Whether a server was started as a client asks for.
    pub(crate) fn is_born_for(&self, server: ServerId, client: ClientId) -> bool {
        Rc::ptr_eq(&self.servers[server].birth, &self.clients[client].birth)
    }

    /// All idle servers were started otherwise than a client asks for: it gets one of its own, if
    /// need be in the place of one of them. Says whether that was so.
    pub(crate) fn bear(&mut self, now: Time, client: ClientId, pool: PoolId) -> bool {
        let Some(idle) = self.pools[pool].idle.first().copied() else { return false };
        if self.is_barren(now, client, pool) {
            return true;
        }
        let is_beside = self.open_for(now, client, pool).is_some();
        Mark::BornBeside.hit_if(is_beside);
        if !is_beside {
            Mark::BornInPlace.hit();
            self.exchange(now, idle, client);
        }
        true
    }

    /// Whether no server is closed to make way for one that is started as a client asks for: such a
    /// one was refused a moment ago, or none can be had. The client is told so.
    pub(crate) fn is_barren(&mut self, now: Time, client: ClientId, pool: PoolId) -> bool {
        let its = &self.pools[pool];
        let refused = its.refusal(now, &self.clients[client].birth);
        let is_known = refused.is_some();
        let why = refused.or_else(|| its.no_attempt(now, self.room(pool))).cloned();
        let Some(why) = why else { return false };
        Mark::BarrenLately.hit_if(is_known);
        Mark::BarrenForNow.hit_if(!is_known);
        self.clients[client].leg = Leg::None;
        self.unit_refused(now, client, Report { severity: Severity::Error, ..why });
        true
    }

    /// A server is free and was started otherwise than the client asks for that has come to the
    /// head of the queue. Says whether that one is told that there will be none.
    pub(crate) fn finds_none(&mut self, now: Time, server: ServerId, client: ClientId) -> bool {
        let differs = !self.is_born_for(server, client);
        let wants_own = self.clients[client].replication.is_some();
        differs && !wants_own && self.is_barren(now, client, self.servers[server].pool)
    }

    /// A server is free, but the client at the head of the queue needs one that is started
    /// otherwise, or its own. Says whether it gets another for which nobody has to make way: whom a
    /// server makes way for is out of the queue meanwhile, and what is opened then is another's.
    pub(crate) fn finds_another(&mut self, now: Time, server: ServerId, client: ClientId) -> bool {
        let wants_own = self.clients[client].replication.is_some();
        if !wants_own && self.is_born_for(server, client) {
            return false;
        }
        let (pool, birth) = (self.servers[server].pool, Rc::clone(&self.clients[client].birth));
        let coming = if wants_own { None } else { self.coming_for_any(pool, &birth) };
        match coming {
            Some(coming) => {
                Mark::BornUnderWay.hit();
                self.promise(coming, client);
                true
            }
            None => {
                let is_beside = self.open_for(now, client, pool).is_some();
                Mark::BornBesideFree.hit_if(is_beside);
                is_beside
            }
        }
    }

    /// A pool's connections that are being made, log in, or are asked before they are lent.
    pub(crate) fn openings(&self, pool: PoolId) -> impl Iterator<Item = (ServerId, &Server)> {
        self.servers.iter().filter(move |(_, server)| server.is_opening() && server.pool == pool)
    }

    /// Those of a pool's servers to come that are promised to clients out of the queue.
    pub(crate) fn promised(&self, id: PoolId) -> usize {
        let pool = &self.pools[id];
        if pool.opening + pool.reading == 0 {
            // This is asked for every unit that waits, and mostly nothing is under way.
            return 0;
        }
        let is_promised = |its: &Server| its.promised_to.is_some() && its.is_to_come();
        self.servers.iter().filter(|(_, its)| its.pool == id && is_promised(its)).count()
    }

    /// A connection under way that is promised to nobody and is started in this way.
    pub(crate) fn coming_for_any(&self, pool: PoolId, birth: &Rc<Settings>) -> Option<ServerId> {
        let fits = |its: &Server| its.promised_to.is_none() && Rc::ptr_eq(&its.birth, birth);
        self.openings(pool).find(|(_, server)| fits(server)).map(|(id, _)| id)
    }

    /// Makes a connection, for which the pool has room, for the first in the queue that nothing
    /// under way will serve.
    pub(crate) fn open_for_queue(&mut self, now: Time, pool: PoolId) -> Option<ServerId> {
        let server = self.open(now, pool)?;
        if let Some(waiter) = self.waits_to_be_born(pool) {
            Mark::BornForQueue.hit();
            let its = &mut self.pools[pool];
            its.stats.wait_time += now - waiter.since;
            its.waiting -= 1;
            self.promise(server, waiter.client);
            self.remove_void_places(pool);
        }
        Some(server)
    }

    /// The first in the queue that nothing under way but the newest attempt will serve, if it asks
    /// for a server that is started for it.
    fn waits_to_be_born(&self, pool: PoolId) -> Option<Waiter> {
        let its = &self.pools[pool];
        let mut coming = None;
        for waiter in &its.waiters {
            let client = self.clients.find(waiter.client);
            let Some(client) = client.filter(|its| its.leg == Leg::Waiting(waiter.ticket)) else {
                continue;
            };
            if !client.birth.is_empty() || client.replication.is_some() {
                return Some(*waiter);
            }
            // The new one is not promised yet, and is counted.
            let coming =
                coming.get_or_insert_with(|| its.opening + its.reading - self.promised(pool) - 1);
            *coming = coming.checked_sub(1)?;
        }
        None
    }

    /// Whether a login has failed of what its client has asked for, and not of what all have in
    /// common. What stands in a startup packet is looked at when the user is let in.
    pub(crate) fn dies_of_birth(&self, id: ServerId, report: &Report, retry: Retry) -> bool {
        let server = &self.servers[id];
        let ServerState::Login(login) = &server.state else { return false };
        let refused = login.is_accepted() && matches!(report.code.class(), b"22" | b"42");
        // The delay comes before anything is heard.
        let slow = retry == Retry::Later && server.birth.value(DELAY).is_some();
        Mark::SlowBirth.hit_if(slow);
        !server.birth.is_empty() && (refused || slow)
    }

    /// A server cannot be started as its client has asked for, which says nothing of others: the
    /// client is told so, in the server's own words.
    pub(crate) fn born_dead(&mut self, now: Time, id: ServerId, report: Report) {
        Mark::BornDead.hit();
        let server = &mut self.servers[id];
        let (pool, birth) = (server.pool, Rc::clone(&server.birth));
        let client = server.promised_to.take();
        let report = Report { severity: Severity::Error, detail: None, ..report };
        self.pools[pool].remember_refusal(now, &birth, &report);
        if let Some(client) = client {
            self.clients[client].leg = Leg::None;
        }
        self.abort_server(now, id);
        if let Some(client) = client {
            self.unit_refused(now, client, report);
        }
    }
}

//! Replication connections: pg_basebackup, pg_receivewal, subscriptions, whoever has `replication`
//! in its startup packet.
//!
//! Its backend is of another kind (a walsender), and is what the startup packet says from its first
//! byte to its last. So each such client gets a server of its own, which logs in with the client's
//! own parameters, counts in the size of the pool, and is closed behind its client.

use std::rc::Rc;

use pgweir_config::PoolMode;
use pgweir_sql::PinReason;
use pgweir_wire::backend::Report;
use pgweir_wire::{ProtocolVersion, Startup};

use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{Leg, Phase};
use crate::errors::REPLICATION;
use crate::handover::Elsewhere;
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::server::ServerState;
use crate::settings::{Pair, SHARING};
use crate::time::Time;

/// What a client of this kind has asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replication {
    /// Its startup packet but for user and database.
    parameters: Vec<Pair>,
    pub(crate) kind: ReplicationKind,
}

/// What is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationKind {
    /// Changes of one database (`replication=database`).
    Logical,
    /// The whole cluster (`replication=true`): whatever database is named, it works on none.
    Physical,
}

impl Replication {
    /// What a startup packet asks for; `None`: an ordinary session. The words are those of
    /// `ProcessStartupPacket` (backend_startup.c).
    pub(crate) fn of_startup(startup: &Startup<'_>) -> Result<Option<Self>, Report> {
        let named = startup.parameters().filter(|(name, _)| *name == b"replication");
        let kind = match named.last() {
            None => return Ok(None),
            Some((_, b"database")) => ReplicationKind::Logical,
            Some((_, value)) => match boolean(value) {
                Some(true) => ReplicationKind::Physical,
                Some(false) => return Ok(None),
                None => {
                    return Err(REPLICATION.report(&[&String::from_utf8_lossy(value)]));
                }
            },
        };
        let ours = |name: &[u8]| {
            name == b"user" || name == b"database" || name.eq_ignore_ascii_case(SHARING)
        };
        let theirs = startup.parameters().filter(|(name, _)| !ours(name));
        // Extensions of the protocol that we do not speak ourselves cannot be passed on.
        let spoken = theirs.filter(|(name, _)| !name.starts_with(b"_pq_."));
        let parameters = spoken.map(|(name, value)| (name.into(), value.into())).collect();
        Ok(Some(Self { parameters, kind }))
    }
}

impl Engine {
    /// The pool of a client whose user there is, but not in a database of the name that it gives,
    /// since it needs none: where all pools of that user lead to one server, it is clear which.
    pub(crate) fn pool_of_cluster(&self, user: &str) -> Option<PoolId> {
        let mut pools = self.pool_of.values().filter_map(|of_database| of_database.get(user));
        let first = *pools.next()?;
        let address = |pool: PoolId| &self.pools[pool].spec.address;
        let same = pools.all(|pool| address(*pool) == address(first))
            && self.pools_elsewhere(user).all(|other| other.address == *address(first));
        same.then_some(first)
    }

    /// The worker that has the pool of such a client, if all pools of that user are elsewhere.
    pub(crate) fn worker_of_cluster(&self, user: &str) -> Option<usize> {
        if self.pool_of.values().any(|of_database| of_database.contains_key(user)) {
            return None;
        }
        let mut pools = self.pools_elsewhere(user);
        let first = pools.next()?;
        pools.all(|other| other.address == first.address).then_some(first.worker)
    }

    fn pools_elsewhere(&self, user: &str) -> impl Iterator<Item = &Elsewhere> {
        self.elsewhere.values().filter_map(move |of_database| of_database.get(user))
    }

    /// A client needs a server of its own. Says whether one is coming: a new one, or one in the
    /// place of an idle one.
    pub(crate) fn open_dedicated(&mut self, now: Time, client: ClientId, pool: PoolId) -> bool {
        if self.open_for(now, client, pool).is_some() {
            Mark::DedicatedBeside.hit();
        } else if let Some(server) = self.pools[pool].take_idle(None, |_| true, |_| false) {
            Mark::DedicatedInPlace.hit();
            self.exchange(now, server, client);
        } else {
            return false;
        }
        true
    }

    /// A free server makes way for one that is made for the client.
    pub(crate) fn exchange(&mut self, now: Time, server: ServerId, client: ClientId) {
        self.servers[server].promised_to = Some(client);
        self.clients[client].leg = Leg::Preparing(server);
        self.dismiss(now, server);
    }

    /// A new server is for this client, started as it asks for, and its own if it wants one.
    pub(crate) fn promise(&mut self, server: ServerId, client: ClientId) {
        let its = &mut self.servers[server];
        its.promised_to = Some(client);
        its.dedicated = self.clients[client].replication.is_some();
        its.mode = PoolMode::Session;
        its.birth = Rc::clone(&self.clients[client].birth);
        self.clients[client].leg = Leg::Preparing(server);
    }

    /// The startup packet for a client's own server. Says whether it is one.
    pub(crate) fn start_dedicated(&mut self, id: ServerId) -> bool {
        let server = &self.servers[id];
        let Some(client) = server.promised_to.filter(|_| server.dedicated) else { return false };
        let Some(replication) = self.clients[client].replication.clone() else { return false };
        let spec = &self.pools[server.pool].spec;
        let own: [(&[u8], &[u8]); 2] = [
            (b"user", spec.server_user.as_bytes()),
            (b"database", spec.server_database.as_bytes()),
        ];
        let theirs = replication.parameters.iter().map(|(name, value)| (&**name, &**value));
        self.actions.inject(Endpoint::Server(id), |out| {
            Startup::write(out, ProtocolVersion::V3_0, own.into_iter().chain(theirs));
        });
        true
    }

    /// A client's own server has logged in: from now on the two have each other.
    pub(crate) fn dedicated_logged_in(&mut self, now: Time, id: ServerId) {
        let server = &mut self.servers[id];
        let parameters = Rc::clone(&server.parameters);
        server.touched = true;
        // Its client cannot have gone: this server would have gone with it.
        let Some(client) = server.promised_to.take() else { return };
        server.state = ServerState::Lent(client);
        let pool = server.pool;
        self.pools[pool].stats.assignments += 1;
        let its = &mut self.clients[client];
        its.leg = Leg::Held(id);
        its.pins = its.pins.union(PinReason::Replication.into());
        if let Phase::Welcome(welcome) = &its.phase {
            let long_secret = welcome.long_secret;
            self.welcome(now, client, pool, long_secret, &parameters);
            self.resume(client);
        }
    }

    /// A client's own server cannot be had, which says nothing of others: it is told why.
    pub(crate) fn dedicated_failed(&mut self, now: Time, id: ServerId, report: Report) {
        Mark::DedicatedRefused.hit();
        let client = self.servers[id].promised_to.take();
        if let Some(client) = client {
            self.clients[client].leg = Leg::None;
        }
        self.abort_server(now, id);
        if let Some(client) = client {
            self.unit_refused(now, client, report);
        }
    }
}

/// Reads a truth value as `parse_bool` does: in any case, and short if it is clear what is meant.
fn boolean(value: &[u8]) -> Option<bool> {
    let value = value.to_ascii_lowercase();
    let begins =
        |word: &str, least: usize| value.len() >= least && word.as_bytes().starts_with(&value);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || begins("1", 1) {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || begins("0", 1) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;

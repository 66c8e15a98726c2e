//! From the engine that takes clients in to the one that has their pool.
//!
//! A pool lives on one worker, with all its servers and clients. Whoever connects comes to the
//! first worker, which reads the startup packet, or the cancel request, and hands the connection
//! over, that packet unread, to the worker that it is for. So each worker reads it as if the client
//! had come there; only what is counted of all clients was counted before.

use crate::Engine;
use crate::action::{Action, Address, ClientId};
use crate::client::{Client, Ends};
use crate::marks::Mark;
use crate::placement::home_of_wild;
use crate::replication::ReplicationKind;
use crate::time::Time;

/// A client that changes workers, at its startup packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOver {
    ends: Option<Ends>,
    since: Time,
    asked_tls: bool,
    asked_gss: bool,
}

/// A pool of another engine.
pub(crate) struct Elsewhere {
    pub(crate) worker: usize,
    pub(crate) address: Address,
}

impl Engine {
    /// A client comes from another worker. What it has sent and was not consumed there follows as
    /// its first input.
    pub fn client_handed_over(&mut self, handed: HandedOver) -> ClientId {
        let HandedOver { ends, since, asked_tls, asked_gss } = handed;
        let client = Client::new(since, ends, self.interner.none());
        let id = self.clients.insert(Client { asked_tls, asked_gss, arrived: true, ..client });
        self.logins.insert((since, id.index()));
        id
    }

    /// A client that was given away has not arrived anywhere.
    pub fn client_lost_on_the_way(&mut self) {
        Mark::LostOnTheWay.hit();
        let commons = self.member.commons();
        commons.clients.sub();
        commons.logins.sub();
    }

    /// Gives a client away, unless it has been given away before.
    pub(crate) fn hand_over(&mut self, id: ClientId, worker: usize) {
        let Some(client) = self.clients.remove(id) else { return };
        let Client { ends, since, asked_tls, asked_gss, .. } = client;
        self.logins.remove(&(since, id.index()));
        let handed = HandedOver { ends, since, asked_tls, asked_gss };
        self.actions.push(Action::HandOver(id, worker, handed));
    }

    /// The worker that a client is for who asks for this, if it is not this one. Whoever will be
    /// refused goes where a pool of that name would be made, so that the way there does not tell
    /// which names there are.
    pub(crate) fn home_of(
        &self,
        user: &str,
        database: &str,
        replication: Option<ReplicationKind>,
    ) -> Option<usize> {
        if self.member.workers() == 1 || self.pool_named(database, user).is_some() {
            return None;
        }
        if let Some(elsewhere) = self.elsewhere.get(database).and_then(|users| users.get(user)) {
            return Some(elsewhere.worker);
        }
        if replication == Some(ReplicationKind::Physical) {
            if self.pool_of_cluster(user).is_some() {
                return None;
            }
            if let Some(worker) = self.worker_of_cluster(user) {
                Mark::ClusterElsewhere.hit();
                return Some(worker);
            }
        }
        let home = home_of_wild(database, user, self.member.workers());
        (home != self.member.index()).then_some(home)
    }

    /// A client, which came at that time, is no longer one that has not logged in.
    pub(crate) fn login_over(&mut self, since: Time, id: ClientId) {
        self.logins.remove(&(since, id.index()));
        self.member.commons().logins.sub();
    }

    /// Notes where pools are that are not here.
    pub(crate) fn note_elsewhere(&mut self, database: String, user: String, pool: Elsewhere) {
        self.elsewhere.entry(database).or_default().insert(user, pool);
    }
}

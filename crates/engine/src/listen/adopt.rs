//! Where no limit leaves room for a server that listens, one that a client keeps only to listen
//! does for all; and where it leaves room for nothing else, none listens while somebody waits.
//!
//! If two clients have begun to listen at once, each keeps a server until there is a listener. With
//! no room for that all servers may be kept so, and nobody would ever get one.

use pgweir_sql::{PinReason, Pins};

use super::Source;
use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::Leg;
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::server::Server;
use crate::settings::ENCODING;
use crate::shares::ShareId;
use crate::time::Time;

impl Engine {
    /// A server of a client that keeps it only to listen is the listener from now on. Says whether
    /// there is one that may be.
    pub(super) fn adopt_listener(&mut self, now: Time, id: PoolId) -> bool {
        if self.pools[id].coming() > 0 || self.room(id) > 0 || !self.others_are_lent(id) {
            return false;
        }
        let found = self.who_awaits_listener(id).into_iter().find_map(|client| {
            let Leg::Held(server) = self.clients.find(client)?.leg else { return None };
            self.is_adoptable(server, client).then_some((client, server))
        });
        let Some((client, server)) = found else { return false };
        Mark::ListenerAdopted.hit();
        let its = &mut self.clients[client];
        its.pins = its.pins.without(PinReason::Listen);
        if let Some(own) = &mut its.subscription {
            // The same connection goes on.
            own.source = Source::Listener;
        }
        self.await_listener(client, false);
        self.part(client);
        self.read_server(server, true);
        self.become_listener(now, server);
        true
    }

    /// The one server that a pool has left only listens, besides those that others keep, and a
    /// client of it has waited for one for a while: that is what it gets, and who listens is told
    /// of that. `of_others`: so it is with a client of a pool that has none, in the place of that
    /// of another pool. Says whether one goes.
    pub(crate) fn give_up_listener(
        &mut self,
        now: Time,
        shares: &[ShareId],
        taker: Option<PoolId>,
        of_others: bool,
    ) -> bool {
        let only_listens = |pool: &PoolId| {
            let its = &self.pools[*pool];
            its.listener.as_ref().is_some_and(|listener| listener.has_server())
                && its.total == self.kept(*pool) + 1
        };
        let may_go = |pool: &PoolId| (of_others || Some(*pool) == taker) && only_listens(pool);
        let found = self.pools_in(shares).find(may_go);
        let listener = found.and_then(|pool| self.pools[pool].listener.as_ref()?.server());
        if let Some(server) = listener {
            Mark::ListenerMakesRoom.hit();
            self.close_server(now, server);
        }
        listener.is_some()
    }

    /// Whether it would be the only server of a pool whose clients wait for one, besides those that
    /// others keep, and the pool's size leaves them one.
    pub(super) fn is_needed_to_lend(&self, pool: PoolId) -> bool {
        let its = &self.pools[pool];
        if its.waiting == 0 || self.room(pool) > 0 {
            return false;
        }
        let kept = self.kept(pool);
        its.total == kept + 1 && kept < its.most() - its.listeners()
    }

    /// Whether a pool has two servers that are not kept for anything but to listen: with one less
    /// there is still one for the others.
    fn others_are_lent(&self, pool: PoolId) -> bool {
        self.pools[pool].total >= self.kept(pool) + 2
    }

    /// How many servers of a pool clients keep for anything but to listen until the listener does.
    fn kept(&self, pool: PoolId) -> usize {
        let is_kept = |(id, server): &(ServerId, &Server)| {
            let client = server.client().and_then(|client| self.clients.find(client));
            let but = match self.is_encoded_as_listener(*id) {
                true => PinReason::Listen.into(),
                false => Pins::NONE,
            };
            client.is_some_and(|client| self.keeps_server_beside(client, server, but))
        };
        let of_pool = self.servers.iter().filter(|(_, server)| server.pool == pool);
        of_pool.filter(is_kept).count()
    }

    fn is_adoptable(&self, id: ServerId, client: ClientId) -> bool {
        let (server, its) = (&self.servers[id], &self.clients[client]);
        self.may_leave_to_listener(id, client)
            && !self.keeps_server_beside(its, server, PinReason::Listen.into())
            && its.changes.is_none()
            && server.settings.value(ENCODING).is_none()
            && server.cancel.is_none()
            && server.unseen.is_empty()
            && !(server.doomed || server.reset)
    }
}

//! Making connections to servers: as many as are lacking, where there is room.

use crate::Engine;
use crate::action::{Action, ClientId, Endpoint, ServerId};
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::server::Server;
use crate::time::Time;

impl Engine {
    /// Opens as many connections as the pool's waiters need and its size allows. Of those that are
    /// shared as many are kept for them as do not come.
    pub(crate) fn refill(&mut self, now: Time, id: PoolId) {
        self.open_due(now, id);
        self.reserve(now, id);
    }

    /// Makes the connections that are due.
    pub(crate) fn open_due(&mut self, now: Time, id: PoolId) {
        let promised = self.promised(id);
        self.note_lacking_hot(now, id);
        let least = self.least(now, id);
        let due = self.pools[id].openings_due(now, promised, least);
        if due == 0 {
            return;
        }
        let room = self.room(id);
        for _ in 0..due.min(room) {
            if self.open_for_queue(now, id).is_none() {
                Mark::RoomOfQueueTaken.hit();
                break;
            }
        }
        if due > room && self.pools[id].total == 0 {
            // Nobody in its queue can wait for a server that it has.
            Mark::PoolWithoutRoom.hit();
            self.ask_others(now, id);
        }
        self.renew_wants(now, id, due > room);
    }

    /// Asks others for what the clients in a pool's queue still lack.
    pub(crate) fn ask_others(&mut self, now: Time, id: PoolId) {
        let lacking = self.pools[id].lacking(now);
        if lacking > 0 && self.is_limited(id) {
            self.make_room(now, id, lacking);
        }
    }

    /// Makes a connection, for which the pool has room, unless another worker has taken that.
    pub(crate) fn open(&mut self, now: Time, id: PoolId) -> Option<ServerId> {
        let counts = self.try_count_opening(id)?;
        let address = self.pools[id].spec.address.clone();
        let mut new = Server::new(now, id, address.clone(), self.interner.none());
        new.counts = counts;
        // Servers that were opened together must not all be replaced at the same time.
        new.lifespan_percent = 80 + u32::from(self.random.bytes::<1>()[0]) * 40 / 255;
        let server = self.servers.insert(new);
        self.actions.push(Action::Connect(Endpoint::Server(server), address));
        Some(server)
    }

    /// Makes a connection that is promised to a client, if there is room for one.
    pub(crate) fn open_for(
        &mut self,
        now: Time,
        client: ClientId,
        pool: PoolId,
    ) -> Option<ServerId> {
        let its = &self.pools[pool];
        let may_have_more = its.total < its.most();
        let new = may_have_more.then(|| self.open(now, pool)).flatten();
        if let Some(new) = new {
            self.promise(new, client);
        }
        new
    }
}

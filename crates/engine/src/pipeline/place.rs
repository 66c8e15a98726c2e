//! A place for a unit on a server that others use.

use std::rc::Rc;

use pgweir_config::{ApplicationName, Pipelining};

use super::repute::May;
use super::send::provides;
use super::{Access, BRAKE, Depths, Unit};
use crate::Engine;
use crate::action::{Action, ClientId, ServerId};
use crate::client::{Asked, Client, Leg};
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::server::ServerState;
use crate::settings::Settings;
use crate::time::Time;

/// Where a unit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// To this server.
    On(ServerId),
    /// It waits for a place.
    Later,
    /// It needs a server alone.
    Alone,
}

impl Engine {
    /// Sends the unit at the front of a client's input to a server that is shared, or puts the
    /// client into the queue for a place there. `false`: it needs a server alone.
    pub(crate) fn pipeline(
        &mut self,
        now: Time,
        id: ClientId,
        pool: PoolId,
        rest: &[u8],
        at: usize,
    ) -> bool {
        let granted = match self.clients[id].leg {
            Leg::Granted(server) => Some(server),
            Leg::None | Leg::Waiting(_) | Leg::Preparing(_) | Leg::Held(_) | Leg::Pipelined(_) => {
                None
            }
        };
        let unit = self.shareable(id, pool, rest);
        if let Some(server) = granted {
            self.clients[id].leg = Leg::None;
            self.servers[server].granted -= 1;
        }
        let place = match &unit {
            None => Place::Alone,
            Some(unit) => self.place(now, id, pool, unit, granted),
        };
        match (place, unit) {
            (Place::On(server), Some(unit)) => self.send_unit(now, id, server, unit, rest, at),
            (Place::Later, Some(unit)) => self.queue_unit(now, id, pool, unit),
            (Place::Alone, _) | (_, None) => {
                self.clients[id].unit = None;
                if granted.is_none() {
                    return false;
                }
                // The place that it does not take may be another's, but not before its own turn.
                self.clients[id].waited_to_share();
                self.check_out(now, id, pool);
            }
        }
        granted.into_iter().for_each(|server| self.runs_dry(now, server));
        true
    }

    /// What a server is set to that a client shares: what the client has set, but for its timeout,
    /// in whose place the brake is, and mostly for its name, by which it would share with nobody.
    fn shared_settings(&self, id: ClientId) -> Rc<Settings> {
        let pool = self.clients[id].pool();
        let settings = Settings::timeless(&self.clients[id].settings);
        match pool.map(|pool| self.pools[pool].spec.application_name) {
            Some(ApplicationName::Always) => settings,
            Some(ApplicationName::Pool | ApplicationName::Transaction) | None => {
                Settings::nameless(&settings)
            }
        }
    }

    /// Where a unit goes that has just come, or has been granted a place.
    fn place(
        &mut self,
        now: Time,
        id: ClientId,
        pool: PoolId,
        unit: &Unit,
        granted: Option<ServerId>,
    ) -> Place {
        let settings = self.shared_settings(id);
        if let Some(server) = granted
            && self.takes(server, &settings, unit)
        {
            return Place::On(server);
        }
        // Others have asked before.
        if granted.is_none() && self.pools[pool].sharing > 0 {
            return Place::Later;
        }
        self.find_place(now, pool, &settings, unit)
    }

    fn find_place(
        &mut self,
        now: Time,
        pool: PoolId,
        settings: &Rc<Settings>,
        unit: &Unit,
    ) -> Place {
        let Some(Depths { hot: most, .. }) = self.pools[pool].depths(unit.access) else {
            return Place::Alone;
        };
        if self.pools[pool].repute.of(now, unit.print) == May::NotShare {
            // No mark: simulated clients hardly ever say the same within five seconds again.
            return Place::Alone;
        }
        let is_kin = |server: &ServerId| self.is_kin(*server, unit.access);
        let least = self.least_loaded(pool, most, settings, unit, is_kin);
        let is_due = self.shared_by(pool, unit.access) < most;
        if let Some(server) = least {
            let is_busy = self.servers[server].load() > 0;
            if !(is_due && is_busy) {
                return Place::On(server);
            }
            // Those that are to be shared all are before anybody stands behind another.
            if !self.pools[pool].idle.is_empty()
                && let Some(place @ Place::On(_)) = self.heat_one(now, pool, settings, unit)
            {
                return place;
            }
            self.want_hot(now, pool);
            return Place::On(server);
        }
        let servers = &self.servers;
        let fits = |server: &&ServerId| servers[**server].is_set_to(settings);
        let fitting = self.pools[pool].hot.iter().find(fits).copied();
        // Those of other clients with the same settings have one in any case.
        let may_heat = is_due || fitting.is_none();
        if may_heat && let Some(place) = self.heat_one(now, pool, settings, unit) {
            return place;
        }
        // A write may stand behind reads where it has to.
        if let Some(server) = self.least_loaded(pool, usize::MAX, settings, unit, |_| true) {
            self.want_hot(now, pool);
            return Place::On(server);
        }
        match fitting {
            Some(server) => {
                if self.shared_by(pool, unit.access) == 0 {
                    self.want_hot(now, pool);
                }
                self.provide(now, server, unit);
                Place::Later
            }
            // One that is made, or comes free, will be, unless those that are free are others.
            None if is_due && self.pools[pool].idle.is_empty() => Place::Later,
            None => {
                Mark::NoneHotForSettings.hit();
                Place::Alone
            }
        }
    }

    /// Whether what stands on a shared server is of the same kind, where reads and writes are kept
    /// apart.
    fn is_kin(&self, id: ServerId, access: Access) -> bool {
        let server = &self.servers[id];
        !self.pools[server.pool].keeps_apart()
            || server.pipeline.is_empty()
            || (access == Access::Write) == server.writes()
    }

    /// So many servers are shared by units of a kind, or could be.
    pub(super) fn shared_by(&self, pool: PoolId, access: Access) -> usize {
        let hot = self.pools[pool].hot.iter();
        hot.filter(|server| self.is_kin(**server, access)).count()
    }

    /// Those who wait for a place need no other server than one that is being set for them.
    pub(crate) fn note_heating(&mut self, pool: PoolId) {
        let servers = &self.servers;
        let of = &mut self.pools[pool];
        let is_being_set =
            |id: &&ServerId| servers[**id].replaying.is_some() || servers[**id].providing.is_some();
        of.heating = match of.sharing {
            0 => 0,
            _ => of.hot.iter().filter(is_being_set).count(),
        };
    }

    /// One server more is to be shared, and none is free: it is made.
    fn want_hot(&mut self, now: Time, pool: PoolId) {
        let its = &mut self.pools[pool];
        if its.coming() == 0 && its.total < its.most() && !its.wants_hot {
            Mark::HotWanted.hit();
            its.wants_hot = true;
            self.refill(now, pool);
            self.pools[pool].wants_hot = false;
        }
    }

    /// Of the shared servers that could take a unit now the one with the fewest. More than may be
    /// shared are where fewer may be than before, or where settings have one of their own: those
    /// beyond are not used but for settings that have no other.
    fn least_loaded(
        &self,
        pool: PoolId,
        most: usize,
        settings: &Rc<Settings>,
        unit: &Unit,
        is_kin: impl Fn(&ServerId) -> bool,
    ) -> Option<ServerId> {
        let hot = self.pools[pool].hot.iter().copied().filter(is_kin).enumerate();
        let mut has_one = false;
        let may_be = hot.filter(|(place, server)| {
            self.servers[*server].is_set_to(settings)
                && (!std::mem::replace(&mut has_one, true) || *place < most)
        });
        may_be
            .map(|(_, server)| server)
            .filter(|server| self.takes(*server, settings, unit))
            .min_by_key(|server| self.servers[*server].load())
    }

    /// Whether a shared server could take a unit now.
    fn takes(&self, id: ServerId, settings: &Rc<Settings>, unit: &Unit) -> bool {
        let Some(server) = self.servers.find(id) else { return false };
        let Some(Depths { depth, .. }) = self.pools[server.pool].depths(unit.access) else {
            return false;
        };
        matches!(server.state, ServerState::Pipelined)
            && server.is_set_to(settings)
            && server.replaying.is_none()
            && !server.reserved
            && !server.doomed
            && server.cancel.is_none()
            && server.load() < depth
            && server.pipeline.back().is_none_or(|last| !last.trails)
            && !(server.writes() && unit.access == Access::Read)
            && provides(server, unit)
    }

    /// One more server is shared: one that is free, rather one that has been before.
    fn heat_one(
        &mut self,
        now: Time,
        pool: PoolId,
        settings: &Rc<Settings>,
        unit: &Unit,
    ) -> Option<Place> {
        let servers = &self.servers;
        let idle = &self.pools[pool].idle;
        let is_ready =
            |id: &ServerId| servers[*id].brake.is_some() && servers[*id].is_set_to(settings);
        let is_plain = |id: &ServerId| servers[*id].birth.is_empty();
        let provides_too = |id: &ServerId| is_ready(id) && provides(&servers[*id], unit);
        let is_set = |id: &ServerId| servers[*id].is_set_to(settings);
        let best = |is_it: &dyn Fn(&ServerId) -> bool| {
            idle.iter().rposition(|id| is_plain(id) && is_it(id))
        };
        let found = best(&provides_too)
            .or_else(|| best(&is_ready))
            .or_else(|| best(&is_set))
            .or_else(|| best(&|_| true))?;
        let server = self.pools[pool].idle.remove(found);
        self.heat(now, server, settings);
        if self.takes(server, settings, unit) {
            return Some(Place::On(server));
        }
        self.provide(now, server, unit);
        Some(Place::Later)
    }

    /// A free server is shared from now on, by clients with these settings.
    fn heat(&mut self, now: Time, id: ServerId, settings: &Rc<Settings>) {
        let server = &mut self.servers[id];
        debug_assert!(server.replies.is_empty() && server.pipeline.is_empty());
        server.state = ServerState::Pipelined;
        server.changed = now;
        server.used = true;
        server.answered = false;
        server.swallowed = 0;
        server.overdue = None;
        server.touched = true;
        server.mode = self.pools[server.pool].spec.mode;
        server.shelf.changes_hands();
        self.pools[server.pool].hot.push(id);
        self.pools[server.pool].stats.assignments += 1;
        if server.brake.is_some() && server.is_set_to(settings) {
            return;
        }
        Mark::ServerHeated.hit();
        let text = server.settings.replay(settings, server.brake, Some(BRAKE));
        server.braking = Some(BRAKE);
        server.replaying = Some(Rc::clone(settings));
        self.run_own(id, &text);
    }

    /// A shared server has answered a unit of our own: it is set for that, or refuses, or has made
    /// a statement, or not.
    pub(super) fn own_unit_over(&mut self, now: Time, id: ServerId) {
        let server = &mut self.servers[id];
        let pool = server.pool;
        let (made, settings) = (server.providing.take(), server.replaying.clone());
        let failed = self.replayed(id).is_some();
        if let Some(made) = made {
            // Where its rows are others now, or it cannot be made, its client is to hear of that.
            let server = &self.servers[id];
            let needs = |unit: &Unit| unit.needs.iter().any(|need| need.is(&made));
            let lacks: Vec<_> = self
                .sharers(pool)
                .filter(|(_, unit)| needs(unit) && !provides(server, unit))
                .map(|(index, _)| index)
                .collect();
            self.take_out_sharers(pool, &lacks);
        }
        if let Some(settings) = settings.filter(|_| failed) {
            // Whoever has these settings is told by a server that it has alone.
            Mark::HeatingRefused.hit();
            let waiters = &self.pools[pool].waiters;
            let has_them = |index: &usize| {
                Rc::ptr_eq(&self.shared_settings(waiters[*index].client), &settings)
            };
            let those: Vec<_> =
                self.sharers(pool).map(|(index, _)| index).filter(has_them).collect();
            self.take_out_sharers(pool, &those);
        }
        self.grant(now, pool);
        self.runs_dry(now, id);
    }

    /// Who waits for a place on a shared server: their places in the queue, and their units.
    fn sharers(&self, pool: PoolId) -> impl Iterator<Item = (usize, &Unit)> {
        let waiters = self.pools[pool].waiters.iter().enumerate();
        waiters.filter(|(_, waiter)| waiter.shares).filter_map(|(index, waiter)| {
            let client = self.clients.find(waiter.client)?;
            let waits = client.leg == Leg::Waiting(waiter.ticket);
            Some((index, client.unit.as_deref().filter(|_| waits)?))
        })
    }

    /// Clients that wait for a place need a server alone.
    fn take_out_sharers(&mut self, pool: PoolId, places: &[usize]) {
        for &place in places {
            let waiter = &mut self.pools[pool].waiters[place];
            waiter.shares = false;
            let client = waiter.client;
            self.pools[pool].sharing -= 1;
            let its = &mut self.clients[client];
            its.alone = true;
            its.unit = None;
            its.waited_to_share();
        }
        if !places.is_empty() {
            self.reserve(pool);
        }
    }

    /// A client waits for a place on a server that is shared.
    fn queue_unit(&mut self, now: Time, id: ClientId, pool: PoolId, unit: Unit) {
        Mark::PlaceAwaited.hit();
        let client = &mut self.clients[id];
        let held_since = client.held_since.take();
        let (since, held) = (held_since.unwrap_or(now), held_since.is_some());
        let asked = *client.asked.get_or_insert(Asked { since, lost: 0, held });
        client.unit = Some(Box::new(unit));
        let ticket = self.pools[pool].enqueue(id, asked.since, true);
        self.clients[id].leg = Leg::Waiting(ticket);
        self.refill(now, pool);
    }

    /// Gives free places on shared servers to those who wait for one, in their order.
    pub(crate) fn grant(&mut self, now: Time, pool: PoolId) {
        self.grant_places(now, pool);
        // Some may wait for a server alone now.
        for _ in 0..self.pools[pool].idle.len() {
            let its = &mut self.pools[pool];
            if its.waiting == its.sharing || !its.names_known {
                return;
            }
            if let Some(server) = its.idle.pop() {
                self.offer(now, server);
            }
        }
    }

    fn grant_places(&mut self, now: Time, pool: PoolId) {
        let mut index = 0;
        while self.pools[pool].sharing > 0 {
            let Some(waiter) = self.pools[pool].waiters.get(index).copied() else { return };
            let client = self.clients.find(waiter.client);
            let waits = client.is_some_and(|client| client.leg == Leg::Waiting(waiter.ticket));
            if !waits || !waiter.shares {
                index += 1;
                continue;
            }
            let settings = self.shared_settings(waiter.client);
            let Some(unit) = self.clients[waiter.client].unit.take() else { return };
            let place = self.find_place(now, pool, &settings, &unit);
            self.clients[waiter.client].unit = Some(unit);
            match place {
                Place::Later => return,
                Place::On(server) => {
                    self.servers[server].granted += 1;
                    self.clients[waiter.client].leg = Leg::Granted(server);
                }
                Place::Alone => {
                    // Its turn comes with those who need a server alone.
                    self.take_out_sharers(pool, &[index]);
                    index += 1;
                    continue;
                }
            }
            let of = &mut self.pools[pool];
            of.waiters.remove(index);
            of.waiting -= 1;
            of.sharing -= 1;
            of.stats.wait_time += now - waiter.since;
            self.actions.push(Action::Resume(waiter.client));
        }
    }

    /// Looks at how the servers of a pool are shared, and whether that should be otherwise.
    pub(crate) fn climb(&mut self, now: Time, id: PoolId) {
        let pool = &mut self.pools[id];
        if pool.spec.pipelining != Pipelining::Auto {
            return;
        }
        if pool.climbs.tick(now, pool.stats.transactions, pool.spec.size) {
            // No mark: no simulated pool is that busy.
            self.grant(now, id);
        }
    }

    /// A server has come free: says whether it is shared by those at the head of the queue.
    pub(crate) fn warms(&mut self, now: Time, id: ServerId) -> bool {
        let pool = self.servers[id].pool;
        if self.pools[pool].sharing == 0 {
            return false;
        }
        if self.pools[pool].depths(Access::Read).is_none() {
            // A reload has ended it.
            let all: Vec<_> = self.sharers(pool).map(|(index, _)| index).collect();
            self.take_out_sharers(pool, &all);
            return false;
        }
        if !self.servers[id].birth.is_empty() {
            // It is for others. Where it takes the place of one that could be shared it makes way
            // for those who need one alone.
            if self.pools[pool].hot.is_empty() {
                let all: Vec<_> = self.sharers(pool).map(|(index, _)| index).collect();
                self.take_out_sharers(pool, &all);
            }
            return false;
        }
        let of = &self.pools[pool];
        let clients = &self.clients;
        let mut waits = of.waiters.iter().filter(|waiter| {
            let leg = clients.find(waiter.client).map(|client| client.leg);
            leg == Some(Leg::Waiting(waiter.ticket))
        });
        let Some(first) = waits.next().filter(|first| first.shares) else { return false };
        let access = clients[first.client].unit.as_ref().map(|unit| unit.access);
        let lacks =
            |access| of.depths(access).is_some_and(|its| self.shared_by(pool, access) < its.hot);
        if !access.is_some_and(lacks) {
            return false;
        }
        let settings = self.shared_settings(first.client);
        self.heat(now, id, &settings);
        self.grant(now, pool);
        if let Some(server) = self.servers.find(id)
            && server.load() == 0
            && server.replies.is_empty()
        {
            // What they wait for is not there.
            self.cool(id);
            return false;
        }
        true
    }

    /// A client needs a server alone, and none is free: the shared one with the fewest units is
    /// kept for it.
    pub(crate) fn reserve(&mut self, pool: PoolId) {
        let of = &self.pools[pool];
        let reserved = of.hot.iter().filter(|id| self.servers[**id].reserved).count();
        let whole = of.waiting - of.sharing;
        if whole <= reserved + of.coming() || of.total < of.most() {
            return;
        }
        let free = of.hot.iter().copied().filter(|id| !self.servers[*id].reserved);
        if let Some(server) = free.min_by_key(|id| self.servers[*id].load()) {
            Mark::SharedReserved.hit();
            self.servers[server].reserved = true;
        }
    }

    /// A shared server may take units again, or is free.
    pub(crate) fn goes_on(&mut self, now: Time, id: ServerId) {
        self.grant(now, self.servers[id].pool);
        self.runs_dry(now, id);
    }

    /// If nothing is under way on a shared server, it is free.
    pub(crate) fn runs_dry(&mut self, now: Time, id: ServerId) {
        let Some(server) = self.servers.find(id) else { return };
        let is_dry = matches!(server.state, ServerState::Pipelined)
            && server.load() == 0
            && server.replies.is_empty();
        if is_dry {
            self.cool(id);
            self.offer(now, id);
        }
    }

    /// A server is not shared any more.
    pub(super) fn cool(&mut self, id: ServerId) {
        let server = &mut self.servers[id];
        server.reserved = false;
        let pool = server.pool;
        self.pools[pool].hot.retain(|hot| *hot != id);
    }
}

impl Client {
    /// It has waited for a place on a shared server, and waits for one that it has alone now:
    /// others may have been given theirs meanwhile.
    fn waited_to_share(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.held = true;
        }
    }
}

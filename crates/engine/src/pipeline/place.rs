//! A place for a unit on a server that others use.

use std::rc::Rc;

use pgweir_config::{ApplicationName, Pipelining};

use super::anew::Turns;
use super::repute::May;
use super::send::provides;
use super::unit::Unshared;
use super::{Access, Depths, Unit};
use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::{Asked, Client, Leg};
use crate::marks::Mark;
use crate::pool::{Pool, PoolId, Waiter};
use crate::server::{Server, ServerState};
use crate::settings::Settings;
use crate::time::Time;

/// So many units of a client in a row have met nobody, and the next has a server alone.
const QUIET: u32 = 16;

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
        self.clients[id].handed = 0;
        let granted = match self.clients[id].leg {
            Leg::Granted(server) => Some(server),
            Leg::None | Leg::Waiting(_) | Leg::Preparing(_) | Leg::Held(_) | Leg::Pipelined(_) => {
                None
            }
        };
        if granted.is_none() && self.is_lone(id, pool) {
            return false;
        }
        let unit = self.shareable(id, pool, rest);
        if let Some(server) = granted {
            self.clients[id].leg = Leg::None;
            let had = self.clients[id].unit.as_deref().map(|unit| unit.access);
            self.servers[server].grants_no_more(had);
        }
        let place = match &unit {
            None => Place::Alone,
            Some(unit) => {
                let place = self.place(now, id, pool, unit, granted);
                self.reads_alike(now, place, unit)
            }
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
                Mark::GrantUnused.hit();
                self.clients[id].waited_to_share();
                self.check_out(now, id, pool);
            }
        }
        granted.into_iter().for_each(|server| self.runs_dry(now, server));
        true
    }

    /// A server whose encoding is of another kind would read a unit otherwise than it was read
    /// here: the same settings make another one where its role's or its database's has changed
    /// since others were made. Its client is told of that by one that it has alone.
    fn reads_alike(&mut self, now: Time, place: Place, unit: &Unit) -> Place {
        let Place::On(server) = place else { return place };
        if self.servers[server].encoding == unit.encoding {
            return place;
        }
        Mark::UnsharedForEncoding.hit();
        self.runs_dry(now, server);
        Place::Alone
    }

    /// Whether nobody has been there for a while with whom a client could share a server: what
    /// sharing costs is in vain then. One that others have shared may have to be set anew for it,
    /// but for the first unit only.
    fn is_lone(&mut self, id: ClientId, pool: PoolId) -> bool {
        let of = &mut self.pools[pool];
        if of.spec.pipelining != Pipelining::Auto {
            return false;
        }
        let is_quiet = of.is_at_rest();
        of.quiet = match of.quiet {
            Some((client, units)) if client == id && is_quiet => {
                Some((client, units.saturating_add(1)))
            }
            Some(_) | None => is_quiet.then_some((id, 1)),
        };
        let is_lone = of.quiet.is_some_and(|(_, units)| units > QUIET);
        Mark::UnitLone.hit_if(is_lone);
        is_lone
    }

    /// What a server is set to that a client shares: what the client has set, but for its timeout,
    /// in whose place the brake is, and mostly for its name, by which it would share with nobody.
    pub(super) fn shared_settings(&self, id: ClientId) -> Rc<Settings> {
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
            && self.still_takes(server, &settings, unit)
        {
            return Place::On(server);
        }
        self.reserve(now, pool);
        if granted.is_some() || self.pools[pool].sharing == 0 {
            return self.find_place(now, pool, &settings, unit);
        }
        // Others have asked before.
        let of = &self.pools[pool];
        if unit.access.waits() || of.sharing_reads > 0 || !of.behind_commits {
            return Place::Later;
        }
        let place = self.find_place(now, pool, &settings, unit);
        Mark::CommitsPassed.hit_if(matches!(place, Place::On(_)));
        place
    }

    fn find_place(
        &mut self,
        now: Time,
        pool: PoolId,
        settings: &Rc<Settings>,
        unit: &Unit,
    ) -> Place {
        let Some(Depths { hot: most, .. }) = self.pools[pool].depths(unit.access) else {
            // No mark: without depths nothing is a unit.
            return Place::Alone;
        };
        if self.pools[pool].repute.of(now, unit.print) == May::NotShare {
            Mark::BannedSaidAgain.hit();
            return Place::Alone;
        }
        let is_kin = |server: &ServerId| self.is_kin(*server, unit.access);
        let least = self.least_loaded(pool, most, settings, unit, is_kin);
        let is_due = self.taken_by(pool, unit.access) < most;
        if let Some(server) = least {
            let is_busy = self.servers[server].load() > 0;
            if !(is_due && is_busy) {
                return Place::On(server);
            }
            // Those that are to be shared all are before anybody stands behind another.
            if let Some(place @ Place::On(_)) = self.heat_spare(now, pool, settings, unit) {
                Mark::HeatedInFront.hit();
                return place;
            }
            Mark::BehindForNow.hit();
            self.want_hot(now, pool, settings);
            return Place::On(server);
        }
        let fits = |id: &&ServerId| {
            self.servers[**id].goes_on_taking() && self.serves(**id, settings, unit.access)
        };
        let fitting = self.pools[pool].hot.iter().find(fits).copied();
        if (is_due || fitting.is_none())
            && let Some(place) = self.heat_spare(now, pool, settings, unit)
        {
            return place;
        }
        if let Some(place) = self.set_anew(now, pool, most, settings, unit) {
            if is_due {
                Mark::SetAnewForNow.hit();
                self.want_hot(now, pool, settings);
            }
            return place;
        }
        // Those of other clients with the same settings have one in any case.
        let is_own = fitting.is_some_and(|id| self.servers[id].is_shared_under(settings));
        let is_left_out = fitting.is_none() || is_due && !is_own;
        if is_left_out && !self.pools[pool].idle.is_empty() {
            self.want_hot(now, pool, settings);
            if let Some(place) = self.heat_any(now, pool, settings, unit) {
                Mark::AnyHeated.hit();
                return place;
            }
        }
        // A write may stand behind reads where it has to: nothing that reads goes there then.
        let has_own = self.awaits_commits(pool, settings, unit) && self.pools[pool].keeps_apart();
        if !has_own
            && let Some(server) = self.least_loaded(pool, usize::MAX, settings, unit, |_| true)
        {
            Mark::SharedAnyhow.hit();
            self.want_hot(now, pool, settings);
            return Place::On(server);
        }
        match fitting {
            Some(server) => {
                if self.shared_by(pool, unit.access) == 0 {
                    Mark::WriteLacksHot.hit();
                    self.want_hot(now, pool, settings);
                }
                let own = self.pools[pool].hot.iter().copied().find(|id| {
                    self.is_kin(*id, unit.access) && self.servers[*id].will_take(settings)
                });
                // One that could be set anew for it is not its own.
                let own = own.unwrap_or(server);
                if self.servers[own].is_shared_under(settings) {
                    self.provide(now, own, unit);
                }
                Place::Later
            }
            // One that is made, or comes free, will be, unless those that are free are others.
            None if is_due && self.pools[pool].idle.is_empty() => {
                if self.shared_by(pool, unit.access) >= most {
                    // One that is shared is about to go, or will be another's.
                    Mark::HotAwaited.hit();
                    self.want_hot(now, pool, settings);
                }
                Place::Later
            }
            None => {
                Mark::NoneHotForSettings.hit();
                Place::Alone
            }
        }
    }

    /// Whether a unit that changes rows has a server on which others do: should there be no place
    /// yet, it waits for their commits, and nothing that reads has to wait for it.
    fn awaits_commits(&self, pool: PoolId, settings: &Rc<Settings>, unit: &Unit) -> bool {
        let takes_writes = |id: &ServerId| {
            let server = &self.servers[*id];
            server.is_for_writes() && server.will_take(settings)
        };
        unit.access.waits() && self.pools[pool].hot.iter().any(takes_writes)
    }

    /// Whether what stands on a shared server is of the same kind, where reads and writes are kept
    /// apart.
    pub(super) fn is_kin(&self, id: ServerId, access: Access) -> bool {
        let server = &self.servers[id];
        !self.pools[server.pool].keeps_apart()
            || server.load() == 0
            || access.waits() == server.is_for_writes()
    }

    /// Whether a unit with these settings may stand on a shared server, as long as that takes any.
    /// One that reads waits for none on which others wait for their commits, where it has its own.
    pub(super) fn serves(&self, id: ServerId, settings: &Rc<Settings>, access: Access) -> bool {
        let can_stand_there = access.waits() || self.is_kin(id, access);
        let server = &self.servers[id];
        let may_be_set = access == Access::Read && server.may_be_set_to(settings);
        can_stand_there && (server.is_shared_under(settings) || may_be_set)
    }

    /// Whether no shared server is of use to who is to have the next place on one.
    pub(crate) fn lacks_hot(&self, pool: PoolId) -> bool {
        let of = &self.pools[pool];
        if !of.has_next() {
            return false;
        }
        let mut sharers = self.sharers(pool);
        let next = sharers.find(|(index, _)| !of.passes(&of.waiters[*index]));
        next.is_some_and(|(index, unit)| {
            let settings = self.shared_settings(of.waiters[index].client);
            !of.hot.iter().any(|id| self.serves(*id, &settings, unit.access))
        })
    }

    /// So many servers are shared by units of a kind, or could be.
    pub(super) fn shared_by(&self, pool: PoolId, access: Access) -> usize {
        self.shared_if(pool, access, |_| true)
    }

    /// The same of those that go on taking units.
    pub(super) fn taken_by(&self, pool: PoolId, access: Access) -> usize {
        self.shared_if(pool, access, Server::goes_on_taking)
    }

    /// The same of those that are like this.
    pub(super) fn shared_if(
        &self,
        pool: PoolId,
        access: Access,
        is: impl Fn(&Server) -> bool,
    ) -> usize {
        let hot = self.pools[pool].hot.iter().filter(|id| is(&self.servers[**id]));
        hot.filter(|id| self.is_kin(**id, access)).count()
    }

    /// Of the shared servers that could take a unit now the one with the fewest. More than may be
    /// shared are where fewer may be than before, or where settings have one of their own: those
    /// beyond are not used but for settings that have no other, and for which none can be set anew.
    fn least_loaded(
        &self,
        pool: PoolId,
        most: usize,
        settings: &Rc<Settings>,
        unit: &Unit,
        is_kin: impl Fn(&ServerId) -> bool,
    ) -> Option<ServerId> {
        let hot = self.pools[pool].hot.iter().copied().filter(is_kin).enumerate();
        let mut has_one =
            unit.access == Access::Read && self.settable(pool, most, settings).next().is_some();
        let may_be = hot.filter(|(place, server)| {
            self.servers[*server].is_shared_under(settings)
                && (!std::mem::replace(&mut has_one, true) || *place < most)
        });
        may_be
            .map(|(_, server)| server)
            .filter(|server| self.takes(*server, settings, unit))
            .min_by_key(|server| self.servers[*server].load())
    }

    /// Whether a shared server could take a unit now, behind those that were given places there.
    pub(super) fn takes(&self, id: ServerId, settings: &Rc<Settings>, unit: &Unit) -> bool {
        let is_ahead = unit.access.waits() || self.servers[id].granted_writes == 0;
        is_ahead && !self.servers[id].reserved && self.still_takes(id, settings, unit)
    }

    /// Whether it takes one that was given a place: others that were given one, too, come later,
    /// and so does whoever it is reserved for.
    fn still_takes(&self, id: ServerId, settings: &Rc<Settings>, unit: &Unit) -> bool {
        let Some(server) = self.servers.find(id) else { return false };
        let Some(Depths { depth, .. }) = self.pools[server.pool].depths(unit.access) else {
            // No mark: where there are none any more, nothing is shared.
            return false;
        };
        let is_set = match server.replaying {
            None => server.is_shared_under(settings),
            Some(_) => unit.access == Access::Read && server.is_foreseen(settings),
        };
        matches!(server.state, ServerState::Pipelined)
            && is_set
            && !server.doomed
            && !server.may_be_hit()
            && server.load() < depth
            && server.pipeline.back().is_none_or(|last| !last.trails)
            && (unit.access.waits() || !server.has_waiting())
            && provides(server, unit)
    }

    /// Who waits for a place on a shared server: their places in the queue, and their units.
    pub(super) fn sharers(&self, pool: PoolId) -> impl Iterator<Item = (usize, &Unit)> {
        let waiters = self.pools[pool].waiters.iter().enumerate();
        waiters.filter(|(_, waiter)| waiter.shares.is_some()).filter_map(|(index, waiter)| {
            let client = self.clients.find(waiter.client)?;
            let waits = client.leg == Leg::Waiting(waiter.ticket);
            Some((index, client.unit.as_deref().filter(|_| waits)?))
        })
    }

    /// Whoever waits for a place needs a server alone, where a reload has ended that they share.
    pub(crate) fn end_sharing(&mut self, pool: PoolId) {
        match self.pools[pool].unshared() {
            // What waits for names waits on.
            None | Some(Unshared::Names) => {}
            Some(_) => {
                let all: Vec<_> = self.sharers(pool).map(|(index, _)| index).collect();
                Mark::SharingEnded.hit_if(!all.is_empty());
                self.take_out_sharers(pool, &all);
            }
        }
    }

    /// Clients that wait for a place need a server alone.
    pub(super) fn take_out_sharers(&mut self, pool: PoolId, places: &[usize]) {
        for &place in places {
            let waiter = &mut self.pools[pool].waiters[place];
            let (client, access) = (waiter.client, waiter.shares.take());
            self.pools[pool].shares_no_more(access);
            let its = &mut self.clients[client];
            its.alone = true;
            its.unit = None;
            its.waited_to_share();
        }
    }

    /// A client waits for a place on a server that is shared.
    fn queue_unit(&mut self, now: Time, id: ClientId, pool: PoolId, unit: Unit) {
        Mark::PlaceAwaited.hit();
        let client = &mut self.clients[id];
        let held_since = client.held_since.take();
        let (since, held) = (held_since.unwrap_or(now), held_since.is_some());
        let asked = *client.asked.get_or_insert_with(|| Asked::new(since, held));
        let access = unit.access;
        if self.pools[pool].sharing == 0 {
            let settings = self.shared_settings(id);
            self.pools[pool].behind_commits = self.awaits_commits(pool, &settings, &unit);
        }
        self.clients[id].unit = Some(Box::new(unit));
        let ticket = self.pools[pool].enqueue(id, asked.since, Some(access));
        self.clients[id].leg = Leg::Waiting(ticket);
        if asked.since < now {
            // It may be in front of others, and what they wait for of no use to it.
            self.grant_again(now, pool);
        }
        self.refill(now, pool);
    }

    /// Gives free places on shared servers to those who wait for one, in their order.
    pub(crate) fn grant(&mut self, now: Time, pool: PoolId) {
        let alone = self.pools[pool].alone();
        self.grant_places(now, pool);
        // Void ones stand in front of those that have left.
        self.remove_void_places(pool);
        self.offer_idle(now, pool);
        if self.pools[pool].alone() > alone || self.lacks_hot(pool) {
            self.refill(now, pool);
        }
    }

    fn offer_idle(&mut self, now: Time, pool: PoolId) {
        // Some may wait for a server alone now.
        for _ in 0..self.pools[pool].idle.len() {
            let its = &mut self.pools[pool];
            if its.alone() == 0 || !its.names_known {
                return;
            }
            if let Some(server) = its.idle.pop() {
                Mark::IdleOfferedToAlone.hit();
                self.offer(now, server);
            }
        }
    }

    fn grant_places(&mut self, now: Time, pool: PoolId) {
        self.pools[pool].behind_commits = false;
        let mut turns = Turns::default();
        let mut index = 0;
        while self.pools[pool].has_next() {
            let Some(waiter) = self.pools[pool].waiters.get(index).copied() else { return };
            let client = self.clients.find(waiter.client);
            let waits = client.is_some_and(|client| client.leg == Leg::Waiting(waiter.ticket));
            let behind_commits = self.pools[pool].behind_commits;
            if !waits || waiter.shares.is_none() || self.pools[pool].passes(&waiter) {
                index += 1;
                continue;
            }
            let settings = self.shared_settings(waiter.client);
            if waiter.shares.is_some_and(|access| turns.leaves_out(&settings, access)) {
                index += 1;
                continue;
            }
            let Some(unit) = self.clients[waiter.client].unit.take() else { return };
            let place = self.find_place(now, pool, &settings, &unit);
            let awaits_commits = self.awaits_commits(pool, &settings, &unit);
            self.clients[waiter.client].unit = Some(unit);
            // A connection that is made for others may have taken void ones out in front of it.
            let queue = &self.pools[pool].waiters;
            let is_it = |its: &Waiter| its.ticket == waiter.ticket;
            if !queue.get(index).is_some_and(is_it) {
                let Some(at) = queue.iter().position(is_it) else { return };
                index = at;
            }
            match place {
                Place::Later => {
                    self.pools[pool].behind_commits = awaits_commits;
                    if awaits_commits {
                        continue;
                    }
                    if waiter.shares.is_some_and(|access| turns.go_on(&settings, access)) {
                        index += 1;
                        continue;
                    }
                    return;
                }
                Place::On(server) => {
                    Mark::CommitsPassedInTurn.hit_if(behind_commits);
                    self.servers[server].grants(waiter.shares);
                    turns.granted(&settings);
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
            of.shares_no_more(waiter.shares);
            of.stats.wait_time += now - waiter.since;
            self.resume(waiter.client);
        }
    }

    /// Looks at how the servers of a pool are shared, and whether that should be otherwise.
    pub(crate) fn climb(&mut self, now: Time, id: PoolId) {
        let pool = &mut self.pools[id];
        if pool.spec.pipelining != Pipelining::Auto {
            return;
        }
        if pool.climbs.tick(now, pool.stats.transactions, pool.spec.size) {
            Mark::SharedOtherwise.hit();
            self.grant(now, id);
        }
    }

    /// Who waits to share may have another server, or one alone, should the one that it has waited
    /// for take no more units, or whoever stood in front of it have left.
    pub(crate) fn grant_again(&mut self, now: Time, id: PoolId) {
        if self.pools[id].sharing == 0 {
            return;
        }
        let free = self.pools[id].idle.len();
        self.grant(now, id);
        Mark::GrantedFree.hit_if(self.pools[id].idle.len() < free);
    }

    /// A shared server may take units again, or is free.
    pub(crate) fn goes_on(&mut self, now: Time, id: ServerId) {
        let pool = self.servers[id].pool;
        self.reserve(now, pool);
        self.grant(now, pool);
        self.runs_dry(now, id);
        self.cancel_last(now, id);
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
}

impl Pool {
    /// Whether one of those who may share a server could be given a place.
    fn has_next(&self) -> bool {
        if self.behind_commits { self.sharing_reads > 0 } else { self.sharing > 0 }
    }

    /// Whether others go ahead of one in the queue, since it waits for commits.
    pub(super) fn passes(&self, waiter: &Waiter) -> bool {
        self.behind_commits && waiter.shares.is_some_and(Access::waits)
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

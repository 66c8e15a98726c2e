//! Which servers of a pool are shared: when one becomes it, under whose settings, and until when.

use std::rc::Rc;
use std::time::Duration;

use super::place::Place;
use super::send::provides;
use super::{Access, BRAKE, Unit};
use crate::Engine;
use crate::action::ServerId;
use crate::client::Leg;
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::server::{Server, ServerState};
use crate::settings::Settings;
use crate::time::Time;

/// A server that others have shared is left to them for so long after it has come free.
const SPARE: Duration = Duration::from_millis(50);

impl Engine {
    /// One more server is shared: one that is free and to spare, rather one that has been before.
    pub(super) fn heat_spare(
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
        let provides_too = |id: &ServerId| is_ready(id) && provides(&servers[*id], unit);
        let is_set = |id: &ServerId| servers[*id].is_set_to(settings);
        let best = |is_it: &dyn Fn(&ServerId) -> bool| {
            idle.iter().rposition(|id| self.is_to_spare(now, *id, settings) && is_it(id))
        };
        let found = best(&provides_too)
            .or_else(|| best(&is_ready))
            .or_else(|| best(&is_set))
            .or_else(|| best(&|_| true))?;
        Some(self.heat_idle(now, pool, found, settings, unit))
    }

    /// The same, with one that others will miss: that which was used least lately.
    pub(super) fn heat_any(
        &mut self,
        now: Time,
        pool: PoolId,
        settings: &Rc<Settings>,
        unit: &Unit,
    ) -> Option<Place> {
        let of = &self.pools[pool];
        let found = of.idle.iter().position(|id| self.servers[*id].birth.is_empty())?;
        Mark::SharedSetAnew.hit();
        Some(self.heat_idle(now, pool, found, settings, unit))
    }

    fn heat_idle(
        &mut self,
        now: Time,
        pool: PoolId,
        index: usize,
        settings: &Rc<Settings>,
        unit: &Unit,
    ) -> Place {
        let server = self.pools[pool].idle.remove(index);
        self.heat(now, server, settings);
        if self.pools[pool].alone() > 0 {
            // Who waits for one alone has counted on it. Which of those that are shared is kept for
            // them is asked when the unit has its place.
            Mark::HeatedAheadOfOthers.hit();
            self.open_due(now, pool);
        }
        if self.takes(server, settings, unit) {
            return Place::On(server);
        }
        self.provide(now, server, unit);
        Place::Later
    }

    /// A free server is shared from now on, by clients with these settings.
    pub(super) fn heat(&mut self, now: Time, id: ServerId, settings: &Rc<Settings>) {
        let server = &mut self.servers[id];
        debug_assert!(server.replies.is_empty() && server.pipeline.is_empty());
        server.state = ServerState::Pipelined;
        server.changed = now;
        server.note_fed(now);
        server.used = true;
        server.answered = false;
        server.swallowed = 0;
        server.overdue = None;
        server.touched = true;
        server.elsewhere = None;
        server.mode = self.pools[server.pool].spec.mode;
        server.shelf.changes_hands();
        self.pools[server.pool].hot.push(id);
        self.hot += 1;
        if server.brake.is_some() && server.is_set_to(settings) {
            return;
        }
        Mark::ServerHeated.hit();
        self.set_to(id, settings);
    }

    /// A server is set to what those have set who share it. Behind what it is sent before it has
    /// said that it is nothing may stand but what only reads.
    pub(super) fn set_to(&mut self, id: ServerId, settings: &Rc<Settings>) {
        let text = self.text_to_set(id, settings, Some(BRAKE));
        let server = &mut self.servers[id];
        server.braking = Some(BRAKE);
        server.foresees = server.brake.is_some() && Settings::foresees(&server.settings, settings);
        server.replaying = Some(Rc::clone(settings));
        self.run_own(id, &text);
    }

    /// One server more is to be shared by clients with these settings, and none is to spare: it is
    /// made.
    pub(super) fn want_hot(&mut self, now: Time, pool: PoolId, settings: &Rc<Settings>) {
        let its = &self.pools[pool];
        let is_coming = its.opening + its.reading > 0
            || its.idle.iter().any(|server| self.is_to_spare(now, *server, settings));
        if !is_coming && its.total < its.most() && !its.wants_hot {
            Mark::HotWanted.hit();
            self.pools[pool].wants_hot = true;
            self.refill(now, pool);
            self.pools[pool].wants_hot = false;
        }
    }

    /// Whether a server that is free may be set to these settings: those that were shared under
    /// others, a moment ago, are left to whoever comes next with those. Otherwise few servers that
    /// run dry in turn would be set anew for each unit.
    fn is_to_spare(&self, now: Time, id: ServerId, settings: &Rc<Settings>) -> bool {
        let server = &self.servers[id];
        let is_missed = server.was_shared_by_others(settings) && now - server.changed < SPARE;
        server.birth.is_empty() && !is_missed
    }

    /// A server has come free: says whether it is shared by those at the head of the queue.
    pub(crate) fn warms(&mut self, now: Time, id: ServerId) -> bool {
        let pool = self.servers[id].pool;
        if self.pools[pool].sharing == 0 {
            return false;
        }
        debug_assert!(self.pools[pool].depths(Access::Read).is_some(), "sharers where none may be");
        if !self.servers[id].birth.is_empty() {
            // It is for others. Where it takes the place of one that could be shared it makes way
            // for those who need one alone.
            Mark::BornNotShared.hit();
            if self.pools[pool].hot.is_empty() {
                Mark::SharersMakeWay.hit();
                let all: Vec<_> = self.sharers(pool).map(|(index, _)| index).collect();
                self.take_out_sharers(pool, &all);
            }
            return false;
        }
        let of = &self.pools[pool];
        let clients = &self.clients;
        let mut waits = of.waiters.iter().filter(|waiter| {
            let leg = clients.find(waiter.client).map(|client| client.leg);
            let is_passed = of.sharing_reads > 0 && of.passes(waiter);
            leg == Some(Leg::Waiting(waiter.ticket)) && !is_passed
        });
        let Some(first) = waits.next() else { return false };
        let Some(access) = first.shares else { return false };
        let takes = |server: &Server| match of.alone() {
            0 => server.goes_on_taking(),
            _ => server.takes_yet(now),
        };
        let shared = self.shared_if(pool, access, takes);
        let lacks = of.depths(access).is_some_and(|its| shared < its.hot);
        let settings = self.shared_settings(first.client);
        let has_one = of
            .hot
            .iter()
            .any(|hot| self.serves(*hot, &settings, access) && takes(&self.servers[*hot]));
        // Those of the same settings have one in any case.
        if has_one && !lacks {
            return false;
        }
        let is_own = |hot: &ServerId| self.servers[*hot].is_shared_under(&settings);
        let has_own = has_one && of.hot.iter().any(is_own);
        if has_own && self.servers[id].was_shared_by_others(&settings) {
            // Who comes next with the settings that it has finds it so.
            Mark::LeftToItsLike.hit();
            return false;
        }
        self.heat(now, id, &settings);
        self.grant(now, pool);
        if let Some(server) = self.servers.find(id)
            && server.load() == 0
            && server.replies.is_empty()
        {
            // What they wait for is not there.
            Mark::HeatedInVain.hit();
            self.cool(id);
            return false;
        }
        if self.pools[pool].alone() > 0 {
            // Who waits for one alone may have counted on it.
            Mark::WarmedAheadOfOthers.hit();
            self.refill(now, pool);
        }
        true
    }

    /// Notes how many servers they lack who wait for a place: of each kind as many as there are to
    /// be, but for those that are being set for them.
    pub(crate) fn note_lacking_hot(&mut self, now: Time, pool: PoolId) {
        self.pools[pool].lacking_hot = match self.pools[pool].sharing {
            0 => 0,
            _ => self.lacking_hot(now, pool),
        };
    }

    fn lacking_hot(&self, now: Time, pool: PoolId) -> usize {
        let of = &self.pools[pool];
        let lacking = |access, waiting: usize| {
            let hot = of.depths(access).map_or(0, |depths| depths.hot);
            waiting.min(
                hot.saturating_sub(self.shared_if(pool, access, |server| server.takes_yet(now))),
            )
        };
        let lacking = match of.keeps_apart() {
            true => {
                let writes = lacking(Access::Write, of.sharing - of.sharing_reads);
                lacking(Access::Read, of.sharing_reads) + writes
            }
            false => lacking(Access::Read, of.sharing),
        };
        let is_being_set = |id: &&ServerId| {
            let server = &self.servers[**id];
            server.replaying.is_some() || server.providing.is_some()
        };
        let lacking =
            lacking.min(of.sharing.saturating_sub(of.hot.iter().filter(is_being_set).count()));
        // Those of settings that no other has have one in any case.
        lacking.max(usize::from(self.lacks_hot(pool)))
    }

    /// A server is not shared any more.
    pub(super) fn cool(&mut self, id: ServerId) {
        let server = &mut self.servers[id];
        server.reserved = false;
        // What was thrown away here is nobody's fault.
        server.swallowed = 0;
        let hot = &mut self.pools[server.pool].hot;
        if let Some(place) = hot.iter().position(|hot| *hot == id) {
            hot.remove(place);
            self.hot -= 1;
        }
    }
}

impl Server {
    /// Whether it was shared last, by clients with other settings than these.
    fn was_shared_by_others(&self, settings: &Rc<Settings>) -> bool {
        self.brake.is_some() && !self.is_set_to(settings)
    }

    /// Whether it is shared under these settings, or is being set to them, and will go on taking
    /// units.
    pub(super) fn will_take(&self, settings: &Rc<Settings>) -> bool {
        self.is_shared_under(settings) && self.goes_on_taking()
    }

    /// Whether it is shared under these settings, or is being set to them.
    pub(crate) fn is_shared_under(&self, settings: &Rc<Settings>) -> bool {
        match &self.replaying {
            Some(replaying) => Rc::ptr_eq(replaying, settings),
            // One that has refused to be set to others has no brake.
            None => self.brake.is_some() && self.is_set_to(settings),
        }
    }

    /// Whether it takes units yet.
    pub(super) fn goes_on_taking(&self) -> bool {
        !self.reserved && !self.doomed && !self.may_be_hit()
    }

    /// Whether a cancel may hit what is sent there next. Where its connection has ended PostgreSQL
    /// has given the signal; behind another pooler that says nothing, the end of the unit does.
    pub(super) fn may_be_hit(&self) -> bool {
        self.cancel.is_some() || self.pipeline.iter().any(|unit| unit.may_be_hit)
    }
}

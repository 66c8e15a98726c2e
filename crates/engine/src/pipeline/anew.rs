//! A shared server is set to other settings behind the units that it has.
//!
//! With a server for each set of settings, clients with many sets would want more servers than
//! there are, or than it pays to share. So one takes units of one set, then a statement of ours,
//! then units of the next. What only reads goes out before the statement is answered: replies come
//! in order, so it is known whether the server was set before anything of theirs comes. If it was
//! not, what they say is thrown away, and they are run again, alone. What changes rows never stands
//! there, nor does anything where the settings say what a unit may do or how its text is read
//! ([`Settings::foresees`]).
//!
//! Whoever was in the queue when a server was set anew goes there with the first of their settings;
//! who comes later waits for the next turn of these, so that all settings have theirs.

use std::rc::Rc;

use pgweir_wire::SqlState;
use pgweir_wire::backend::Report;
use smallvec::SmallVec;

use super::place::Place;
use super::send::has;
use super::{Access, Depths, Outcome, Unit};
use crate::Engine;
use crate::action::ServerId;
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::prepared::Statement;
use crate::server::{Server, ServerState};
use crate::settings::Settings;
use crate::time::Time;

/// The settings for which places were given in one pass over the queue: servers are set to them, or
/// are about to be.
#[derive(Default)]
pub(super) struct Turns {
    of: SmallVec<[Rc<Settings>; 2]>,
    /// Somebody waits in front of those whom the pass looks at now.
    passes: bool,
}

impl Turns {
    /// A place was given to a unit with these settings.
    pub(super) fn granted(&mut self, settings: &Rc<Settings>) {
        if !self.has(settings) {
            self.of.push(Rc::clone(settings));
        }
    }

    /// Somebody waits on: whether others may have places all the same. Those do not who stand
    /// behind a write, or behind one with the same settings.
    pub(super) fn go_on(&mut self, settings: &Rc<Settings>, access: Access) -> bool {
        self.passes |= access == Access::Read && !self.of.is_empty();
        self.passes && access == Access::Read && !self.has(settings)
    }

    /// Whether somebody who has such a unit stays in the queue, since others wait in front.
    pub(super) fn leaves_out(&self, settings: &Rc<Settings>, access: Access) -> bool {
        self.passes && (access != Access::Read || !self.has(settings))
    }

    fn has(&self, settings: &Rc<Settings>) -> bool {
        self.of.iter().any(|its| Rc::ptr_eq(its, settings))
    }
}

impl Engine {
    /// Sets a server anew for a unit that only reads, where none that it would share is set to its
    /// settings. Then it has its place, or waits until a statement is made there that it needs.
    pub(super) fn set_anew(
        &mut self,
        now: Time,
        pool: PoolId,
        most: usize,
        settings: &Rc<Settings>,
        unit: &Unit,
    ) -> Option<Place> {
        if unit.access != Access::Read {
            return None;
        }
        let Depths { depth, .. } = self.pools[pool].depths(unit.access)?;
        let shared = || self.settable(pool, most, settings);
        let has_own = |id: ServerId| {
            let server = &self.servers[id];
            server.will_take(settings) && server.load() < depth
        };
        if shared().any(has_own) {
            // What it needs besides is made there, or it has its place when that is known.
            return None;
        }
        let may_be = shared().filter(|id| self.servers[*id].is_set_anew_now(settings, depth));
        let server = may_be.min_by_key(|id| self.servers[*id].load())?;
        Mark::SetAnewBehind.hit_if(self.servers[server].load() > 0);
        let its = &mut self.servers[server];
        its.changed = now;
        its.note_fed(now);
        self.set_to(server, settings);
        Some(if self.takes(server, settings, unit) { Place::On(server) } else { Place::Later })
    }

    /// Those servers that units which read share, and that could be set to these settings behind
    /// what they have, now or later: so many of them as are to be shared.
    pub(super) fn settable<'e>(
        &'e self,
        pool: PoolId,
        most: usize,
        settings: &'e Rc<Settings>,
    ) -> impl Iterator<Item = ServerId> + 'e {
        let hot = self.pools[pool].hot.iter().copied();
        let could_be = move |id: &ServerId| {
            let server = &self.servers[*id];
            server.goes_on_taking()
                && server.may_be_set_to(settings)
                && self.is_kin(*id, Access::Read)
        };
        hot.filter(could_be).take(most)
    }

    /// A shared server has answered a unit of our own: it is set for that, or refuses, or has made
    /// a statement, or not.
    pub(super) fn own_unit_over(&mut self, now: Time, id: ServerId) {
        let server = &mut self.servers[id];
        let pool = server.pool;
        let (made, settings) = (server.providing.take(), server.replaying.clone());
        let error = self.replayed(id);
        let mut alone = made.map_or(0, |made| self.take_out_who_lacks(id, &made));
        // Where it was a statement that could not be made, those behind have nothing to do with it.
        if let (Some(settings), Some(error)) = (settings, error) {
            alone += self.not_set(id, &settings, &error);
        }
        self.grant(now, pool);
        self.runs_dry(now, id);
        self.cancel_last(now, id);
        if alone > 0 {
            // Those that it does not serve need another.
            Mark::RefilledForAlone.hit();
            self.refill(now, pool);
        }
    }

    /// A server has made a statement, or not. Where its rows are others now, or it cannot be made,
    /// whoever waits for it is to hear of that, from a server alone. Says how many they are.
    fn take_out_who_lacks(&mut self, id: ServerId, made: &Rc<Statement>) -> usize {
        let server = &self.servers[id];
        let pool = server.pool;
        let lacks = |unit: &Unit| unit.needs.iter().any(|need| need.is(made) && !has(server, need));
        let sharers = self.sharers(pool).filter(|(_, unit)| lacks(unit));
        let lacks: Vec<_> = sharers.map(|(index, _)| index).collect();
        Mark::MadeAheadInVain.hit_if(!lacks.is_empty());
        self.take_out_sharers(pool, &lacks);
        lacks.len()
    }

    /// A server could not be set to these settings: what it was sent behind that is run again. If
    /// it has refused them, whoever has them is told by a server alone. Says how many wait for one.
    fn not_set(&mut self, id: ServerId, settings: &Rc<Settings>, error: &Report) -> usize {
        let server = &mut self.servers[id];
        let pool = server.pool;
        if !server.pipeline.is_empty() {
            server.plans.made_under_others();
            server.shelf.becomes_strange();
        }
        for unit in &mut server.pipeline {
            debug_assert!(unit.access == Access::Read, "what changes rows was sent behind that");
            Mark::ForeseenInVain.hit();
            unit.outcome = Outcome::Misset;
        }
        // What the brake has ended, or a cancel, is not refused, and is tried again.
        if server.brake.is_some() && error.code == SqlState::QUERY_CANCELED {
            return 0;
        }
        Mark::HeatingRefused.hit();
        let waiters = &self.pools[pool].waiters;
        let has_them =
            |index: &usize| Rc::ptr_eq(&self.shared_settings(waiters[*index].client), settings);
        let those: Vec<_> = self.sharers(pool).map(|(index, _)| index).filter(has_them).collect();
        self.take_out_sharers(pool, &those);
        those.len()
    }
}

impl Server {
    /// Whether it is being set to these settings, and takes units that read meanwhile.
    pub(super) fn is_foreseen(&self, settings: &Rc<Settings>) -> bool {
        let is_it = |replaying: &Rc<Settings>| Rc::ptr_eq(replaying, settings);
        self.foresees && self.replaying.as_ref().is_some_and(is_it)
    }

    /// Whether it could be set to these settings behind what it has, now or later, as long as it
    /// takes any units.
    pub(super) fn may_be_set_to(&self, settings: &Rc<Settings>) -> bool {
        let last = self.replaying.as_ref().unwrap_or(&self.settings);
        let is_braked = self.brake.is_some() || self.replaying.is_some();
        is_braked && !self.is_for_writes() && Settings::foresees(last, settings)
    }

    /// Whether it can be now: nobody has a place there yet to whom it would be strange then.
    fn is_set_anew_now(&self, settings: &Rc<Settings>, depth: usize) -> bool {
        matches!(self.state, ServerState::Pipelined)
            && self.brake.is_some()
            && self.replaying.is_none()
            && self.providing.is_none()
            && self.granted == 0
            && self.goes_on_taking()
            && self.load() < depth
            && self.pipeline.back().is_none_or(|last| !last.trails)
            && !self.is_set_to(settings)
            && self.may_be_set_to(settings)
    }
}

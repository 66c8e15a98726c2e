//! What functions have planned in a session, and for whom.
//!
//! A function in PL/pgSQL keeps the plans of its statements for as long as its session lasts, and a
//! plan keeps what was computed with it: what a function has told that calls itself immutable,
//! though it asks for a setting. Where a database has such functions ([`Loud::keeps_plans`]) a
//! server forgets its plans before somebody else has it, who may set what he likes, and before it
//! is shared under other settings than those under which all of them were made. PostgreSQL makes
//! them again when they are needed (`ResetPlanCache`, plancache.c).
//!
//! [`Loud::keeps_plans`]: pgweir_sql::Loud::keeps_plans

use std::rc::Rc;
use std::time::Duration;

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::marks::Mark;
use crate::server::ServerState;
use crate::settings::Settings;

/// The plans that functions keep in a session.
#[derive(Debug)]
pub(crate) struct KeptPlans {
    whose: Whose,
    /// The settings under which all of them were made, but for the time after which a statement is
    /// ended; `None`: perhaps several.
    under: Option<Rc<Settings>>,
    /// The statement in flight has them forgotten.
    forgets: bool,
}

/// Whose statements they were made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Nobody,
    One(ClientId),
    Several,
}

/// Has a session forget them.
const FORGET: &[u8] = b"DISCARD PLANS";

impl KeptPlans {
    /// Those of a session that has these settings, and has planned nothing.
    pub(crate) fn none(settings: &Rc<Settings>) -> Self {
        let under = Some(Settings::timeless(settings));
        Self { whose: Whose::Nobody, under, forgets: false }
    }

    /// Whether none was made for anybody else.
    pub(crate) fn are_of(&self, client: ClientId) -> bool {
        match self.whose {
            Whose::Nobody => true,
            Whose::One(one) => one == client,
            Whose::Several => false,
        }
    }

    /// Whether all were made under these settings.
    fn are_under(&self, settings: &Rc<Settings>) -> bool {
        let settings = Settings::timeless(settings);
        self.under.as_ref().is_some_and(|under| Rc::ptr_eq(under, &settings))
    }

    /// From now on some are made for this client.
    pub(crate) fn made_for(&mut self, client: ClientId) {
        self.whose = if self.are_of(client) { Whose::One(client) } else { Whose::Several };
    }

    /// The client that has the session changes settings, for its transaction perhaps: which ones
    /// those are under that are made from now on nobody knows.
    pub(crate) fn made_under_several(&mut self) {
        self.under = None;
    }

    /// The statement is answered that sets the session to these settings. Where it is shared some
    /// are made already.
    pub(crate) fn go_on_under(&mut self, settings: &Rc<Settings>, is_shared: bool) {
        if self.forgets {
            *self = Self::none(settings);
        } else if !self.are_under(settings) {
            self.under = None;
        }
        if is_shared {
            self.whose = Whose::Several;
        }
    }
}

impl Engine {
    /// Whether a server is to forget what functions have planned, for whoever has it now, or for
    /// those with these settings who are to share it.
    pub(crate) fn must_forget_plans(&self, id: ServerId, settings: &Rc<Settings>) -> bool {
        let server = &self.servers[id];
        let is_right = match server.state {
            ServerState::Lent(client) => server.plans.are_of(client),
            ServerState::Pipelined => server.plans.are_under(settings),
            // Nothing but statements of our own is run there.
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::Cleaning { .. }
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Forsaken
            | ServerState::Leaving => true,
        };
        !is_right && self.pools[server.pool].loud.keeps_plans()
    }

    /// What sets a server to these settings, with this `statement_timeout` of ours if any, and has
    /// it forget its plans if it must.
    pub(crate) fn text_to_set(
        &mut self,
        id: ServerId,
        settings: &Rc<Settings>,
        brake: Option<Duration>,
    ) -> Vec<u8> {
        let forgets = self.must_forget_plans(id, settings);
        let server = &mut self.servers[id];
        server.plans.forgets = forgets;
        if !forgets {
            return server.settings.replay(settings, server.brake, brake);
        }
        Mark::PlansForgotten.hit();
        if server.is_set_to(settings) && server.brake == brake {
            Mark::PlansAloneForgotten.hit();
            return FORGET.to_vec();
        }
        let mut text = server.settings.replay(settings, server.brake, brake);
        text.extend_from_slice(b"; ");
        text.extend_from_slice(FORGET);
        text
    }
}

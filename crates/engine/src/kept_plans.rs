//! What functions have planned in a session, and for whom.
//!
//! A function in PL/pgSQL keeps the plans of its statements for as long as its session lasts, and a
//! plan keeps what was computed with it: what a function has told that calls itself immutable,
//! though it asks for a setting. Where a database has such functions ([`Loud::keeps_plans`]) a
//! server forgets its plans before another client has it, and behind one that has set something.
//! PostgreSQL makes them again when they are needed (`ResetPlanCache`, plancache.c), and what was
//! prepared is read again then, literals and all.
//!
//! Where servers are shared no statement reaches such a function ([`Alone::Folds`] and others of
//! its rules), so what is planned there is of no matter; only what was read under others' settings
//! is not to be there.
//!
//! [`Loud::keeps_plans`]: pgweir_sql::Loud::keeps_plans
//! [`Alone::Folds`]: pgweir_sql::Alone::Folds

use std::rc::Rc;
use std::time::Duration;

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::catalogue::is_since;
use crate::marks::Mark;
use crate::server::{Server, ServerState};
use crate::settings::Settings;

/// The plans that functions keep in a session.
#[derive(Debug)]
pub(crate) struct KeptPlans {
    whose: Whose,
    /// The statement in flight has them forgotten.
    forgets: bool,
}

/// Whose statements they were made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Nobody,
    /// This client's, which has set nothing on that server since it got it.
    One(ClientId),
    /// Several clients', or one's that has set something.
    Several,
}

/// Has a session forget them.
const FORGET: &[u8] = b"DISCARD PLANS";

impl KeptPlans {
    pub(crate) const NONE: Self = Self { whose: Whose::Nobody, forgets: false };

    /// Whether they are of use to this client.
    fn are_of(&self, client: ClientId) -> bool {
        match self.whose {
            Whose::Nobody => true,
            Whose::One(one) => one == client,
            Whose::Several => false,
        }
    }

    /// From now on some are made for this client.
    pub(crate) fn made_for(&mut self, client: ClientId) {
        self.whose = if self.are_of(client) { Whose::One(client) } else { Whose::Several };
    }

    /// The client that has the session changes settings, for its transaction perhaps: what is
    /// planned from now on may be of no use to itself behind that.
    pub(crate) fn made_under_others(&mut self) {
        self.whose = Whose::Several;
    }

    /// A statement of ours is answered that may have had them forgotten. `is_done`: well.
    pub(crate) fn answered(&mut self, is_done: bool) {
        if std::mem::take(&mut self.forgets) && is_done {
            *self = Self::NONE;
        }
    }
}

impl Engine {
    /// Whether a server is to forget what functions have planned, for the client that has it now or
    /// for those who are to share it.
    pub(crate) fn must_forget_plans(&self, id: ServerId) -> bool {
        let server = &self.servers[id];
        let is_for_another = match server.state {
            ServerState::Lent(client) => !server.plans.are_of(client),
            ServerState::Pipelined => server.plans.whose == Whose::Several,
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::Cleaning { .. }
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Forsaken
            | ServerState::Leaving => false,
        };
        is_for_another && self.keeps_plans(server)
    }

    /// Whether functions keep plans there with something that is not the same for all clients.
    fn keeps_plans(&self, server: &Server) -> bool {
        let loud = server.elsewhere.as_ref().unwrap_or(&self.pools[server.pool].loud);
        // Before that those in SQL are planned anew in each transaction (functions.c).
        let is_18 = || is_since(18, server.parameters.value(b"server_version").unwrap_or_default());
        loud.keeps_plans() || loud.keeps_plans_of_sql() && is_18()
    }

    /// What sets a server to these settings, with this `statement_timeout` of ours if any, and has
    /// it forget its plans if it must: first, under the timeout of before.
    pub(crate) fn text_to_set(
        &mut self,
        id: ServerId,
        settings: &Rc<Settings>,
        brake: Option<Duration>,
    ) -> Vec<u8> {
        let forgets = self.must_forget_plans(id);
        let server = &mut self.servers[id];
        server.plans.forgets = forgets;
        let sets = server.settings.replay(settings, server.brake, brake);
        if !forgets {
            return sets;
        }
        Mark::PlansForgotten.hit();
        if server.is_set_to(settings) && server.brake == brake {
            Mark::PlansAloneForgotten.hit();
            return FORGET.to_vec();
        }
        [FORGET, b"; ", &sets].concat()
    }
}

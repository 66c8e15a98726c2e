//! What servers report to be set to, and what clients have been told of it.
//!
//! A driver reads rows by what it was told by ParameterStatus: `DateStyle`, `TimeZone`,
//! `client_encoding`. The servers of a pool may be set differently: a changed configuration reaches
//! each of them with its next command, ALTER ROLE and ALTER DATABASE only those that log in later,
//! and what a function sets stays where it ran. So a client that is lent a server has always been
//! told what that server reports: at login, by the servers that it held since, or, where all that
//! does not fit, by us, in front of the first reply.

use std::collections::BTreeSet;
use std::rc::Rc;

use pgweir_config::PoolMode;
use pgweir_sql::Encoding;
use pgweir_sql::PinReason;
use pgweir_wire::backend;

use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::marks::Mark;
use crate::server::ServerState;
use crate::settings::{DATABASE_ENCODING, ENCODING};

/// What a server reports by ParameterStatus, in the order in which it was first reported.
///
/// Those of a pool's servers are in its [`Reports`]: two servers that report the same hold the
/// same `Rc`, so that the question at every checkout, "does the client know all this?", is a
/// comparison of pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parameters(Vec<Pair>);

/// A name and a value, which sets share that have it in common.
type Pair = (Rc<[u8]>, Rc<[u8]>);

impl Parameters {
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => *known = value.into(),
            None => self.0.push((name.into(), value.into())),
        }
    }

    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// How the text of whoever has been told this is to be read.
    pub(crate) fn encoding(&self) -> Encoding {
        let value = |name| self.value(name).unwrap_or_default();
        Encoding::named(value(ENCODING)).within(value(DATABASE_ENCODING))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// What of this is news to somebody who knows `told`.
    fn news(&self, told: &Self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter().filter(move |(name, value)| told.value(name) != Some(*value))
    }
}

/// All that servers of a pool report and clients of it have been told.
#[derive(Debug)]
pub(crate) struct Reports {
    known: BTreeSet<Rc<Parameters>>,
    /// What nobody uses any more is dropped when more than this many are known.
    prune_above: usize,
}

/// Fewer than this many are not worth a look at who uses them.
const PRUNE_ABOVE: usize = 64;

impl Reports {
    pub(crate) fn new() -> Self {
        Self { known: BTreeSet::new(), prune_above: PRUNE_ABOVE }
    }

    /// The one of these that is equal to `parameters`, which are added if there is none.
    pub(crate) fn intern(&mut self, parameters: Parameters) -> Rc<Parameters> {
        if let Some(known) = self.known.get(&parameters) {
            return Rc::clone(known);
        }
        if self.known.len() >= self.prune_above {
            Mark::ParametersForgotten.hit();
            self.known.retain(|parameters| Rc::strong_count(parameters) > 1);
            self.prune_above = PRUNE_ABOVE.max(2 * self.known.len());
        }
        let parameters = Rc::new(parameters);
        self.known.insert(Rc::clone(&parameters));
        parameters
    }

    /// As before, but for one parameter, which has this value now.
    fn changed(&mut self, before: &Rc<Parameters>, name: &[u8], value: &[u8]) -> Rc<Parameters> {
        if before.value(name) == Some(value) {
            return Rc::clone(before);
        }
        let mut changed = Parameters::clone(before);
        changed.set(name, value);
        self.intern(changed)
    }
}

impl Engine {
    /// A ParameterStatus of a server that has logged in. `heard`: its client gets the message.
    pub(crate) fn reported(&mut self, id: ServerId, name: &[u8], value: &[u8], heard: bool) {
        let server = &mut self.servers[id];
        let reports = &mut self.pools[server.pool].reports;
        server.reports(reports.changed(&server.parameters, name, value));
        if heard && let Some(client) = server.client() {
            let its = &mut self.clients[client];
            its.told = Some(Rc::clone(&server.parameters));
            // The names of its channels are others in another encoding: its server is asked anew.
            its.in_doubt |= name == ENCODING && its.pins.contains(PinReason::Listen);
        }
        if matches!(server.state, ServerState::Idle) {
            self.refresh_welcomes(id);
        }
    }

    /// A server is lent to this client, which is told what it does not know of it.
    pub(crate) fn tell(&mut self, client: ClientId, server: ServerId) {
        let its = &mut self.clients[client];
        let reported = &self.servers[server].parameters;
        // One that was not greeted yet is told everything by its greeting.
        let Some(told) = &mut its.told else { return };
        if Rc::ptr_eq(told, reported) {
            return;
        }
        Mark::ClientToldNews.hit();
        let told = std::mem::replace(told, Rc::clone(reported));
        for (name, value) in reported.news(&told) {
            self.actions.inject(Endpoint::Client(client), |out| {
                backend::parameter_status(out, name, value);
            });
        }
        // What a session has set nobody notes.
        let of = &self.servers[server];
        if its.changes.is_none() && of.mode != PoolMode::Session {
            self.pools[of.pool].remember_welcome(&of.settings, reported);
        }
    }

    /// A client shares this server, and is told what it does not know of it. Its own name is not
    /// the server's, and stays what it was told last.
    pub(crate) fn tell_sharer(&mut self, client: ClientId, server: ServerId) {
        const NAME: &[u8] = b"application_name";
        let its = &mut self.clients[client];
        let reported = &self.servers[server].parameters;
        let Some(told) = &mut its.told else { return };
        if Rc::ptr_eq(told, reported) {
            return;
        }
        let before = Rc::clone(told);
        let news: Vec<_> = reported.news(&before).filter(|(name, _)| *name != NAME).collect();
        if news.is_empty() {
            return;
        }
        Mark::ReportsTold.hit();
        for (name, value) in news {
            self.actions.inject(Endpoint::Client(client), |out| {
                backend::parameter_status(out, name, value);
            });
        }
        let own_name = before.value(NAME).unwrap_or_default();
        let pool = self.servers[server].pool;
        *told = self.pools[pool].reports.changed(reported, NAME, own_name);
    }

    /// A server is free. If it reports something else than when it was free last, and we have not
    /// set it to anything else, then servers are set differently now: what new clients would be
    /// told is out of date.
    pub(crate) fn refresh_welcomes(&mut self, id: ServerId) {
        let server = &mut self.servers[id];
        let Some(outdated) = server.outdated.take() else { return };
        if !Rc::ptr_eq(&outdated, &server.parameters) {
            Mark::WelcomesOutdated.hit();
            let pool = &mut self.pools[server.pool];
            pool.welcomes.clear();
            pool.remember_welcome(&server.settings, &server.parameters);
        }
    }
}

#[cfg(test)]
mod tests;

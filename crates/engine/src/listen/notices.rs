//! What is notified, and who is told of it when.

use pgweir_config::PoolMode;
use pgweir_sql::PinReason;
use pgweir_wire::{Malformed, TransactionStatus, backend};

use super::Source;
use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{Leg, Phase};
use crate::errors::NOTIFIED_TOO_MUCH;
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::server::ServerState;
use crate::time::Time;

/// So much is kept of what a client is notified of while it is within a transaction, or does not
/// read. PostgreSQL would keep it in a file for all who listen.
const PENDING_BYTES: usize = 8 * 1024 * 1024;

/// What becomes of a notification that a client's server has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notified {
    /// It is for the client, if that listens at all.
    Client,
    /// It was ours, or comes from the listener as well.
    Taken,
}

impl Engine {
    /// A NotificationResponse of a server, which is all there.
    pub(crate) fn notification(
        &mut self,
        now: Time,
        id: ServerId,
        message: &[u8],
        at: usize,
    ) -> Result<(), Malformed> {
        let n = message.len();
        if let ServerState::Listening = self.servers[id].state {
            self.listener_hears(now, id, message)?;
            self.pass(id, false, at, n, n);
            self.servers[id].swallowed = 0;
            return Ok(());
        }
        let heard = self.hears(id);
        if let Notified::Taken = self.server_hears(now, id, message)? {
            self.pass(id, false, at, n, n);
            return Ok(());
        }
        let listens = heard && self.listens(id);
        if listens && self.keeps_behind_pending(now, id, message) {
            // It may have gone with a client for which that was too much.
            if self.servers.find(id).is_some() {
                self.pass(id, false, at, n, n);
            }
            return Ok(());
        }
        // If nobody asked for it, a function did: the server is not fit for others.
        Mark::NotificationUnheard.hit_if(!listens);
        self.servers[id].doomed |= !listens;
        self.pass(id, listens, at, n, n);
        if matches!(self.servers[id].state, ServerState::Idle) {
            // It has come right behind the unit in which a function begins to listen.
            Mark::NotifiedWhileFree.hit();
            self.close_server(now, id);
        }
        Ok(())
    }

    /// The client of this server is to be told something that was said before: now, since a server
    /// tells nothing within a transaction, or this with it. Says whether this is kept for that.
    fn keeps_behind_pending(&mut self, now: Time, id: ServerId, message: &[u8]) -> bool {
        let Some(client) = self.servers[id].client() else { return false };
        self.say_all(client);
        let Some(own) = &mut self.clients[client].subscription else { return false };
        let keeps = !own.pending.is_empty();
        if keeps {
            // A setting is put back meanwhile.
            Mark::NotifiedBehindPending.hit();
            own.pending.extend_from_slice(message);
            if own.pending.len() > PENDING_BYTES {
                Mark::ToldTooMuch.hit();
                self.expel_late(now, client, NOTIFIED_TOO_MUCH.report(&[]));
            }
        }
        keeps
    }

    /// Whether the client of this server may have asked it for notifications.
    fn listens(&self, id: ServerId) -> bool {
        let server = &self.servers[id];
        let session = server.mode == PoolMode::Session;
        let client = server.client().and_then(|client| self.clients.find(client));
        client.is_some_and(|client| {
            let pins = client.pins;
            session || pins.contains(PinReason::Listen) || pins.contains(PinReason::Unclear)
        })
    }

    /// The listener of a pool has heard something.
    fn listener_hears(&mut self, now: Time, id: ServerId, message: &[u8]) -> Result<(), Malformed> {
        let (channel, payload) = backend::parse_notification(&message[5..])?;
        let pool = self.servers[id].pool;
        let Some(listener) = &mut self.pools[pool].listener else { return Ok(()) };
        if channel == listener.own() {
            if let Some(number) = number(payload)
                && let Some(client) = listener.passed(number)
            {
                self.listener_passes(now, client, number);
            }
            return Ok(());
        }
        for client in listener.of(channel) {
            let Some(own) = &mut self.clients[client].subscription else { continue };
            let said = match own.source {
                Source::ToListener { server: false, listener: true, .. } => {
                    Mark::HeardAheadOfServer.hit();
                    &mut own.early
                }
                Source::Listener
                | Source::ToListener { listener: true, .. }
                | Source::ToServer { listener: false, .. } => {
                    own.tell_missed();
                    &mut own.pending
                }
                // Its own server says so.
                Source::Server
                | Source::Awaited
                | Source::ToListener { listener: false, .. }
                | Source::ToServer { listener: true, .. } => continue,
            };
            said.extend_from_slice(message);
            if said.len() > PENDING_BYTES {
                Mark::NotifiedTooMuch.hit();
                self.expel_late(now, client, NOTIFIED_TOO_MUCH.report(&[]));
            } else {
                self.say_pending(client);
            }
        }
        Ok(())
    }

    /// The server of a client says that something was notified.
    fn server_hears(
        &mut self,
        now: Time,
        id: ServerId,
        message: &[u8],
    ) -> Result<Notified, Malformed> {
        let (channel, payload) = backend::parse_notification(&message[5..])?;
        let pool = self.servers[id].pool;
        let Some(listener) = &self.pools[pool].listener else { return Ok(Notified::Client) };
        let is_mark = channel == listener.own();
        let client = self.servers[id].client();
        let own = client.and_then(|client| self.clients.find_mut(client));
        let own = own.and_then(|its| its.subscription.as_mut());
        let (Some(own), Some(client)) = (own, client) else {
            Mark::MarkOfLeaver.hit_if(is_mark);
            return Ok(if is_mark { Notified::Taken } else { Notified::Client });
        };
        match &mut own.source {
            Source::ToListener { server, .. } | Source::ToServer { server, .. } if is_mark => {
                let mark = own.mark;
                if number(payload) == Some(mark) {
                    *server = true;
                    own.heard_mark();
                    if let Some(listener) = &mut self.pools[pool].listener {
                        listener.expect(now, mark);
                    }
                    self.settle_source(client);
                    // Its transaction is over, though its reply is not.
                    self.say_all(client);
                } else {
                    Mark::OlderMark.hit();
                }
                Ok(Notified::Taken)
            }
            _ if is_mark => {
                Mark::MarkOutOfPlace.hit();
                Ok(Notified::Taken)
            }
            Source::ToListener { server: true, .. } => {
                Mark::HeardBehindMark.hit();
                Ok(Notified::Taken)
            }
            // It is about to listen, or a function has begun to.
            Source::Listener | Source::ToServer { server: false, .. }
                if own.channels.contains(channel) =>
            {
                Mark::HeardTwice.hit();
                Ok(Notified::Taken)
            }
            Source::ToServer { server: true, listener: false } => {
                Mark::NotifiedEarly.hit();
                own.early.extend_from_slice(message);
                Ok(Notified::Taken)
            }
            Source::Server
            | Source::Awaited
            | Source::Listener
            | Source::ToListener { .. }
            | Source::ToServer { .. } => Ok(Notified::Client),
        }
    }

    fn listener_passes(&mut self, now: Time, client: ClientId, number: u64) {
        let Some(its) = self.clients.find_mut(client) else { return };
        let Some(own) = its.subscription.as_mut() else { return };
        let is_last = own.mark == number;
        if own.source == Source::Listener || !is_last {
            Mark::MarkSettledBefore.hit();
            return self.doubt_ends(client, is_last);
        }
        match &mut own.source {
            Source::ToListener { listener, .. } | Source::ToServer { listener, .. } => {
                *listener = true;
            }
            Source::Server | Source::Awaited | Source::Listener => return,
        }
        self.settle_behind_listener(now, client);
    }

    /// Tells a client what it was notified of, if it is between transactions.
    pub(crate) fn say_pending(&mut self, client: ClientId) {
        let its = &self.clients[client];
        let says = its.slots.is_empty()
            && its.open_slot.is_none()
            && its.lost.is_none()
            && !its.congested
            && matches!(its.phase, Phase::Ready(_));
        let between = match its.leg {
            Leg::None
            | Leg::Waiting(_)
            | Leg::Preparing(_)
            | Leg::Granted(_)
            | Leg::Pipelined(_) => true,
            Leg::Held(server) => {
                let server = &self.servers[server];
                !server.status.in_block() && server.body.left == 0 && !server.fatal
            }
        };
        if says && between {
            self.say_all(client);
        }
    }

    /// A client's unit is over, outside of any transaction. Says whether its ReadyForQuery waits
    /// for what the listener has to say before that.
    pub(crate) fn delays_ready(&mut self, client: ClientId) -> bool {
        let its = &mut self.clients[client];
        let Some(own) = &mut its.subscription else { return false };
        if let Source::ToServer { server: true, listener: false } = own.source {
            debug_assert!(its.slots.is_empty(), "something went behind an end that may wait");
            if !its.leaving {
                Mark::ReadyDelayed.hit();
                its.ready_due = Some(TransactionStatus::Idle);
                return true;
            }
            // Its client waits for nothing more.
            Mark::ReadyNotDelayed.hit();
            let early = std::mem::take(&mut own.early);
            own.pending.extend(early);
        }
        self.say_all(client);
        false
    }

    /// The listener has said what comes before the end of a client's unit.
    pub(super) fn say_due(&mut self, client: ClientId) {
        let Some(own) = &self.clients[client].subscription else { return };
        let is_over = !matches!(own.source, Source::ToServer { listener: false, .. });
        if is_over && !self.awaits_put_back(client) {
            self.say_ready(client);
        }
    }

    /// A client leaves, or loses its server, and is not told what was yet to be said before the end
    /// of its last unit, nor what its server has said behind that: it would not know of a gap. That
    /// it was the end it is told.
    pub(crate) fn say_due_at_once(&mut self, client: ClientId) {
        if self.clients[client].awaits_ready() {
            Mark::ReadySaidAtOnce.hit();
            self.say_ready(client);
        }
    }

    /// Says the ReadyForQuery that was delayed, if one was, behind what is to be told before.
    fn say_ready(&mut self, client: ClientId) {
        let its = &mut self.clients[client];
        let Some(status) = its.ready_due.take() else { return };
        if !status.in_block() {
            self.say_all(client);
        }
        let to = Endpoint::Client(client);
        self.actions.inject(to, |out| backend::ready_for_query(out, status));
    }

    /// What a client has asked for at its login is put back, for which the end of its unit has
    /// waited, if it has.
    pub(crate) fn say_ready_behind_reset(&mut self, client: ClientId, status: TransactionStatus) {
        let its = &mut self.clients[client];
        if its.ready_due.take().is_some() && (status.in_block() || !self.delays_ready(client)) {
            self.clients[client].ready_due = Some(status);
            self.say_ready(client);
        }
    }

    /// Tells a client what it was notified of: its transaction is over.
    pub(crate) fn say_all(&mut self, client: ClientId) {
        let its = &mut self.clients[client];
        let waits = its.awaits_ready();
        let is_asked = matches!(its.leg, Leg::Held(_));
        if is_asked && its.subscription.as_ref().is_some_and(|own| own.sifts) {
            return;
        }
        let Some(own) = its.subscription.as_mut().filter(|own| !own.pending.is_empty()) else {
            return;
        };
        if waits {
            Mark::PendingBehindReady.hit();
            return;
        }
        Mark::Notified.hit();
        let pending = std::mem::take(&mut own.pending);
        let to = Endpoint::Client(client);
        self.actions.inject(to, |out| out.extend_from_slice(&pending));
    }

    /// Its server is not asked on which channels a client listens yet: it is told of all.
    pub(crate) fn tell_unsifted(&mut self, client: ClientId) {
        if self.clients[client].subscription.as_mut().is_some_and(|own| own.sift_nothing()) {
            self.say_pending(client);
        }
    }

    /// Those who could not be told when it came are told now.
    pub(crate) fn sweep_listener(&mut self, now: Time, pool: PoolId) {
        let Some(listener) = &self.pools[pool].listener else { return };
        for client in listener.clients() {
            self.say_pending(client);
        }
        self.tell_missed(pool);
        self.try_again_to_listen(now, pool);
        self.tend_listener(now, pool);
    }
}

/// The number of a mark.
fn number(payload: &[u8]) -> Option<u64> {
    std::str::from_utf8(payload).ok()?.parse().ok()
}

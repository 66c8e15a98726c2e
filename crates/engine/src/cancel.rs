//! Cancelling: from a CancelRequest to the certainty that it can hit nobody else.
//!
//! A CancelRequest names a connection, not a statement, and it arrives whenever the server's
//! postmaster gets round to it. So a server that a cancel may still reach is lent to nobody:
//! ownership is checked when the request is about to be sent, and the server goes back to the
//! pool only once the cancel's connection has read its end, by which time the signal has been
//! delivered.
//!
//! PostgreSQL ignores a cancel that comes before it has begun what it was sent, and whether it has
//! nobody can tell. A client that cancels a while after it has asked does not know that its unit
//! stood in the queue and was sent just now: so a cancel for such a unit is held back until it has
//! surely been begun. Whatever its client sends later is not what it was meant for. It is never
//! repeated: a statement that has caught the first signal and goes on would be ended by a second
//! one, for which nobody has asked.

use std::net::SocketAddr;
use std::time::Duration;

use pgweir_wire::CancelKey;
use subtle::ConstantTimeEq;

use crate::Engine;
use crate::action::{Action, CancelId, ClientId, Endpoint, Event, ServerId};
use crate::client::{Leg, Phase, Slot, UnitRest};
use crate::errors::CANCELED;
use crate::marks::Mark;
use crate::server::{Cleaning, ServerState};
use crate::time::Time;

/// How long a cancel may take, from the request for it to the end of its connection's stream.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// By then a server has begun what it was sent, or is as busy as PostgreSQL's clients know it.
const BEGUN_AFTER: Duration = Duration::from_millis(100);

/// So many connections are told by their end that their cancel is done. Whoever asks for the same
/// beyond that is told at once, and keeps no descriptor.
const REQUESTERS: usize = 16;

/// A connection to a server that carries, or will carry, a CancelRequest.
pub struct Cancel {
    pub(crate) server: ServerId,
    /// Whose units it is to end, and the first one that is too late for it; `None`: those of one
    /// who is gone.
    target: Option<(ClientId, Slot)>,
    /// Connections that asked for it, told by their end that it is done.
    pub(crate) requesters: Vec<ClientId>,
    pub(crate) progress: CancelProgress,
    /// When it was asked for.
    pub(crate) since: Time,
    /// Where its connection begins, over TCP.
    pub(crate) local: Option<SocketAddr>,
}

impl Cancel {
    /// Whether a request to end what this client runs, or a server runs behind one who is gone, is
    /// the same as this one; the latter is whatever the former was for.
    fn is_joined_by(&self, client: Option<ClientId>) -> bool {
        let same = self.target.map(|(client, _)| client) == client;
        client.is_none() || same && self.requesters.len() < REQUESTERS
    }

    /// Whether the request went out, and may hit at any time.
    pub(crate) fn is_sent(&self) -> bool {
        self.progress == CancelProgress::Sent
    }
}

/// How far a cancel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelProgress {
    /// It would come too early: nothing is done yet.
    HeldBack,
    /// Its connection is being made.
    Connecting,
    /// The request went out.
    Sent,
}

impl Engine {
    /// A CancelRequest has arrived on the connection of `requester`.
    pub(crate) fn cancel_requested(&mut self, now: Time, requester: ClientId, key: &CancelKey) {
        self.clients[requester].phase = Phase::Cancelling;
        self.member.commons().cancellers.add();
        self.login_over(self.clients[requester].since, requester);
        let Some(client) = self.owner_of(key) else {
            // PostgreSQL closes without a word, so that nobody can probe for keys.
            Mark::CancelOfNobody.hit();
            return self.close_client(requester);
        };
        if let Leg::Pipelined(server) = self.clients[client].leg {
            if self.cancels_alone(client, server) {
                return self.cancel_on(now, server, Some(client), Some(requester));
            }
            return self.close_client(requester);
        }
        if let Some(server) = self.busy(client) {
            self.servers[server].kept.cancel();
            return self.cancel_on(now, server, Some(client), Some(requester));
        }
        let its = &self.clients[client];
        if its.asked.is_some() {
            // Its unit has not been sent, though it may have a server by now.
            if let Some(server) = its.server() {
                Mark::CancelOfUnsent.hit();
                // One that has something of ours to do goes back behind that, and with pins it
                // listens for its client already.
                let ours = !self.servers[server].replies.is_empty();
                Mark::CancelOfUnsentBehindOurs.hit_if(ours);
                Mark::CancelOfUnsentPinned.hit_if(!ours && !its.pins.is_empty());
                if ours || !its.pins.is_empty() {
                    self.servers[server].used = true;
                } else {
                    self.give_back(now, server);
                }
            }
            Mark::CancelOfQueued.hit();
            self.refuse_unit(now, client, CANCELED.report(&[]));
        } else if self.holds_unit(client) {
            Mark::CancelOfHeld.hit();
            if let Some(server) = its.server() {
                // It goes back when what is ours is over, whether or not it was sent a unit before.
                self.servers[server].used = true;
            }
            self.refuse_unit(now, client, CANCELED.report(&[]));
        } else {
            Mark::CancelOfNothing.hit();
        }
        self.close_client(requester);
    }

    /// Whether a client's next unit has come and was not sent on: its server has something of ours
    /// to do before, which is not to be cancelled.
    fn has_unit_behind_ours(&self, id: ClientId) -> bool {
        let its = &self.clients[id];
        let is_told = its.rest == UnitRest::None && !its.awaits_ready();
        its.holding && its.began_more && its.slots.is_empty() && is_told
    }

    /// The same outside of a transaction. In one the server would know nothing of the error: there
    /// the cancel waits until the unit was sent.
    fn holds_unit(&self, id: ClientId) -> bool {
        let server = self.clients[id].server();
        server.is_some_and(|server| !self.servers[server].status.in_block())
            && self.has_unit_behind_ours(id)
    }

    /// Whether a client's next unit was cancelled while its server did something in front of it:
    /// that is over, and the unit is looked at in a moment.
    fn is_about_to_send(&self, server: ServerId, client: ClientId) -> bool {
        let Some(its) = self.clients.find(client) else { return false };
        let waits = its.woken || its.holding;
        let is_next = its.slots.is_empty() && its.cancelled == Some(its.next_slot);
        waits && is_next && its.leg == Leg::Held(server) && self.servers[server].replies.is_empty()
    }

    /// Whether a client's next unit waits within its transaction for a statement of our own.
    fn waits_in_block(&self, server: ServerId, client: ClientId) -> bool {
        let its = &self.servers[server];
        let ours = its.replies.answers_us() && its.answer.is_none() && its.status.in_block();
        ours && its.client() == Some(client) && self.has_unit_behind_ours(client)
    }

    /// Whether the client that a request names is about to be looked at, and has nothing under way
    /// yet: its unit is neither held any more nor sent, and would go on as if nobody had asked.
    pub(crate) fn is_early(&self, key: &CancelKey) -> bool {
        let early = self.owner_of(key).is_some_and(|client| {
            let its = &self.clients[client];
            let under_way = its.asked.is_some() || matches!(its.leg, Leg::Pipelined(_));
            let found = under_way || self.busy(client).is_some() || self.holds_unit(client);
            its.woken && !found
        });
        Mark::CancelBehindWaking.hit_if(early);
        early
    }

    /// The server of its own that a client has under way what it has sent.
    fn busy(&self, client: ClientId) -> Option<ServerId> {
        self.clients[client].server().filter(|server| {
            let server = &self.servers[*server];
            // What is asked of it behind the last unit is our own, and so may be what stands in
            // front of the next one.
            let ours = || server.replies.answers_us() && self.holds_unit(client);
            !server.replies.is_empty() && server.answer.is_none() && !ours()
        })
    }

    fn owner_of(&self, key: &CancelKey) -> Option<ClientId> {
        let (worker, index) = self.member.place_of(key.process_id)?;
        let client = self.clients.key_at(index).filter(|_| worker == self.member.index())?;
        let secret = &self.clients[client].secret;
        let fits = !secret.is_empty() && bool::from(secret.ct_eq(&key.secret));
        fits.then_some(client)
    }

    /// Has a server's statement cancelled, for another connection or of our own accord.
    pub(crate) fn cancel_on(
        &mut self,
        now: Time,
        server: ServerId,
        client: Option<ClientId>,
        requester: Option<ClientId>,
    ) {
        let target = client.map(|client| (client, self.too_late_for(server, client)));
        let under_way = self.servers[server].cancel;
        if let Some(id) = under_way
            && let cancel = &mut self.cancels[id]
            && !cancel.is_sent()
            && cancel.is_joined_by(client)
        {
            Mark::CancelJoins.hit();
            cancel.requesters.extend(requester);
            cancel.target = target;
            return self.release_cancel(now, server);
        }
        if under_way.is_some() || self.servers[server].key.is_none() {
            // A cancel that is under way may end this very statement; a second one behind it
            // would only lengthen the time for which the server cannot be lent.
            Mark::CancelWithoutKey.hit_if(under_way.is_none());
            Mark::CancelBehindAnother.hit_if(under_way.is_some());
            requester.into_iter().for_each(|requester| self.close_client(requester));
            return;
        }
        let id = self.cancels.insert(Cancel {
            server,
            target,
            requesters: requester.into_iter().collect(),
            progress: CancelProgress::HeldBack,
            since: now,
            local: None,
        });
        self.servers[server].cancel = Some(id);
        self.release_cancel(now, server);
    }

    /// The first of a client's units that is too late for a cancel that is asked for now. If a
    /// server makes what the next one needs, that one is meant.
    fn too_late_for(&mut self, server: ServerId, client: ClientId) -> Slot {
        let next = self.clients[client].next_slot;
        let waits = self.waits_in_block(server, client);
        Mark::CancelWaitsForOurs.hit_if(waits);
        if !waits && !self.works_ahead(server, client) {
            return next;
        }
        Mark::CancelOfBeginning.hit_if(!waits);
        self.clients[client].cancelled = Some(next);
        next.next()
    }

    /// Goes on with a cancel that is held back, once what it is for has been begun or is over.
    pub(crate) fn release_cancel(&mut self, now: Time, server: ServerId) {
        let Some(its) = self.servers.find(server) else { return };
        let Some(id) = its.cancel else { return };
        let Cancel { target, progress: CancelProgress::HeldBack, ref requesters, .. } =
            self.cancels[id]
        else {
            return;
        };
        if target.is_some_and(|(client, _)| self.is_about_to_send(server, client)) {
            return Mark::CancelAwaitsUnit.hit();
        }
        // A client does not know how long its unit has waited here, or waits for what is put in
        // front of it, and of our own cancels it knows nothing. On a connection straight to
        // PostgreSQL none of these would come too early.
        let client = its.client();
        let begins = client.is_some_and(|client| self.works_ahead(server, client));
        let was_ahead = client.is_some_and(|client| {
            let its = &self.clients[client];
            its.cancelled.is_some() && its.cancelled.as_ref() == its.slots.first()
        });
        let unknown = its.unit_waited || begins || was_ahead || requesters.is_empty();
        let young = match begins {
            true => now - its.fed < BEGUN_AFTER,
            false => now - its.unit_since < BEGUN_AFTER && !its.answered,
        };
        // What is ours is not to be hit.
        let early = client.is_some_and(|client| self.waits_in_block(server, client));
        if !self.is_running(server, target) {
            Mark::CancelHeldBackInVain.hit();
            self.cancel_over(id);
        } else if !(early || unknown && young) {
            Mark::CancelReleased.hit();
            self.connect_for_cancel(id);
        } else {
            Mark::CancelHeldBack.hit();
        }
    }

    /// Has the connection of a cancel made.
    fn connect_for_cancel(&mut self, id: CancelId) {
        let cancel = &mut self.cancels[id];
        cancel.progress = CancelProgress::Connecting;
        let address = self.servers[cancel.server].address.clone();
        self.actions.push(Action::Connect(Endpoint::Cancel(id), address));
    }

    /// The cancel's connection is made: if the statement is still the client's, the request goes
    /// out.
    pub(crate) fn cancel_connected(&mut self, id: CancelId, local: Option<SocketAddr>) {
        let Some(cancel) = self.cancels.find_mut(id) else {
            // No mark: the driver asks whether it is still wanted.
            return self.actions.push(Action::Abort(Endpoint::Cancel(id)));
        };
        cancel.local = local;
        let &mut Cancel { server, target, .. } = cancel;
        let wanted = self.is_running(server, target);
        match &self.servers[server].key {
            Some(key) if wanted => {
                self.cancels[id].progress = CancelProgress::Sent;
                self.actions.inject(Endpoint::Cancel(id), |out| key.write_request(out));
            }
            _ => {
                Mark::CancelTooLate.hit();
                self.cancel_over(id);
            }
        }
    }

    /// Whether a server runs one of these units. A client that is gone may still want them ended.
    fn is_running(&self, server: ServerId, target: Option<(ClientId, Slot)>) -> bool {
        let server = &self.servers[server];
        // What a client has sent behind its request runs on, though it is gone.
        let meant = target.is_none_or(|(_, too_late)| {
            server.replies.first_slot().is_none_or(|slot| slot.is_before(too_late))
        });
        let its = match server.state {
            ServerState::Lent(holder) => target.is_some_and(|(client, too_late)| {
                let its = self.clients.find(client);
                let oldest = its.map(|its| its.slots.first().map_or(its.next_slot, |slot| *slot));
                client == holder && oldest.is_some_and(|oldest| oldest.is_before(too_late))
            }),
            ServerState::Pipelined => target.is_some_and(|(client, _)| {
                let head = server.pipeline.front().filter(|_| server.pipeline.len() == 1);
                head.is_some_and(|unit| unit.client == Some(client))
            }),
            ServerState::Cleaning { step: Cleaning::Draining, .. } => {
                Mark::CancelOfLeft.hit();
                meant
            }
            ServerState::Forsaken => {
                Mark::CancelOfForsaken.hit();
                meant
            }
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::Cleaning { .. }
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Leaving => false,
        };
        its && !server.replies.is_empty()
    }

    /// The cancel's connection has come to its end, or could not be made.
    pub(crate) fn cancel_ended(&mut self, now: Time, id: CancelId) {
        let Some(cancel) = self.cancels.find(id) else { return };
        let server = cancel.server;
        self.cancel_over(id);
        self.no_cancel_left(now, server);
    }

    /// The end of the cancel has not been seen, and is not waited for any more. If it was sent
    /// nobody knows when it will hit, so its server is not lent again.
    pub(crate) fn cancel_in_doubt(&mut self, now: Time, id: CancelId, cause: &str) {
        let cancel = &self.cancels[id];
        let (server, sent) = (cancel.server, cancel.is_sent());
        self.cancel_over(id);
        if sent {
            Mark::CancelTimedOut.hit();
            let its = &mut self.servers[server];
            its.doomed = true;
            let client = its.client().map(|client| self.member.client_number(client));
            let pool = self.pools[its.pool].spec.name();
            let (server, cause) = (self.member.server_number(server), cause.to_owned());
            self.actions.push(Action::Log(Event::CancelInDoubt { server, client, pool, cause }));
        } else {
            Mark::CancelUnsentTimedOut.hit();
        }
        self.no_cancel_left(now, server);
    }

    /// No cancel is under way to a server any more: whoever waited for that goes on.
    fn no_cancel_left(&mut self, now: Time, server: ServerId) {
        if matches!(self.servers[server].state, ServerState::AwaitingCancel) {
            Mark::CancelAwaitedEnds.hit();
            self.offer(now, server);
        } else if self.is_pipelined(server) {
            Mark::CancelOfSharedEnds.hit();
            self.goes_on(now, server);
        } else {
            self.go_on_behind_cancel(now, server);
        }
    }

    /// Forgets a cancel, closing its connection and those of the clients that asked for it.
    pub(crate) fn cancel_over(&mut self, id: CancelId) {
        let Some(cancel) = self.cancels.remove(id) else { return };
        if let Some(server) = self.servers.find_mut(cancel.server) {
            server.cancel = None;
        }
        self.actions.push(Action::Abort(Endpoint::Cancel(id)));
        for requester in cancel.requesters {
            self.close_client(requester);
        }
    }

    /// The server's statement is over. A cancel that was not sent yet is dropped; says whether
    /// one that was sent may still come.
    pub(crate) fn settle_cancel(&mut self, server: ServerId) -> bool {
        let Some(id) = self.servers[server].cancel else { return false };
        if self.cancels[id].is_sent() {
            Mark::CancelAwaited.hit();
            return true;
        }
        Mark::CancelDropped.hit();
        self.cancel_over(id);
        false
    }
}

//! Cancelling: from a CancelRequest to the certainty that it can hit nobody else.
//!
//! A CancelRequest names a connection, not a statement, and it arrives whenever the server's
//! postmaster gets round to it. So a server that a cancel may still reach is lent to nobody:
//! ownership is checked when the request is about to be sent, and the server goes back to the
//! pool only once the cancel's connection has read its end, by which time the signal has been
//! delivered.
//!
//! PostgreSQL ignores a cancel that comes before it has begun what it was sent. A client that
//! cancels a while after it has asked does not know that its unit stood in the queue and was sent
//! just now: so a cancel that may have been early is repeated, once, for that statement alone.

use std::net::SocketAddr;
use std::time::Duration;

use pgweir_wire::CancelKey;
use subtle::ConstantTimeEq;

use crate::Engine;
use crate::action::{Action, CancelId, ClientId, Endpoint, ServerId};
use crate::client::{Leg, Phase};
use crate::errors::CANCELED;
use crate::server::{Cleaning, ServerState};
use crate::time::Time;

/// How long a cancel's connection may take, from the attempt to the end of its stream.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// By then a server has begun what it was sent.
const BEGUN_AFTER: Duration = Duration::from_millis(100);

/// So many connections are told by their end that their cancel is done. Whoever asks for the same
/// beyond that is told at once, and keeps no descriptor.
const REQUESTERS: usize = 16;

/// A connection to a server that carries, or will carry, a CancelRequest.
pub struct Cancel {
    pub(crate) server: ServerId,
    /// Whose statement it is to end; `None`: that of one who is gone.
    client: Option<ClientId>,
    /// Connections that asked for it, told by their end that it is done.
    pub(crate) requesters: Vec<ClientId>,
    pub(crate) sent: bool,
    /// When its statement was sent, if that is so short ago that it may come too early.
    early: Option<Time>,
    /// It is sent once more, for no other statement than the one that was sent then.
    repeats: Option<Time>,
    pub(crate) since: Time,
    /// Where its connection begins, over TCP.
    pub(crate) local: Option<SocketAddr>,
}

impl Engine {
    /// A CancelRequest has arrived on the connection of `requester`.
    pub(crate) fn cancel_requested(&mut self, now: Time, requester: ClientId, key: &CancelKey) {
        self.clients[requester].phase = Phase::Cancelling;
        self.login_over();
        let Some(client) = self.owner_of(key) else {
            // PostgreSQL closes without a word, so that nobody can probe for keys.
            return self.close_client(requester);
        };
        let its = &self.clients[client];
        let busy = its.server().filter(|server| !self.servers[*server].replies.is_empty());
        if let Some(server) = busy {
            return self.cancel_on(now, server, Some(client), Some(requester));
        }
        if its.asked.is_some() {
            // Its unit has not been sent, though it may have a server by now.
            if let Leg::Held(server) = its.leg {
                self.give_back(now, server);
            }
            self.refuse_unit(now, client, CANCELED.report(&[]));
        }
        self.close_client(requester);
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
        let under_way = self.servers[server].cancel;
        if let Some(id) = under_way
            && let cancel = &mut self.cancels[id]
            && cancel.client == client
            && !cancel.sent
            && cancel.requesters.len() < REQUESTERS
        {
            cancel.requesters.extend(requester);
            cancel.repeats = None;
            return;
        }
        if under_way.is_some() || self.servers[server].key.is_none() {
            // A cancel that is under way may end this very statement; a second one behind it
            // would only lengthen the time for which the server cannot be lent.
            requester.into_iter().for_each(|requester| self.close_client(requester));
            return;
        }
        let id = self.cancels.insert(Cancel {
            server,
            client,
            requesters: requester.into_iter().collect(),
            sent: false,
            early: None,
            repeats: None,
            since: now,
            local: None,
        });
        self.servers[server].cancel = Some(id);
        let address = self.servers[server].address.clone();
        self.actions.push(Action::Connect(Endpoint::Cancel(id), address));
    }

    /// The cancel's connection is made: if the statement is still the client's, the request goes
    /// out.
    pub(crate) fn cancel_connected(&mut self, now: Time, id: CancelId, local: Option<SocketAddr>) {
        let Some(cancel) = self.cancels.find_mut(id) else {
            return self.actions.push(Action::Abort(Endpoint::Cancel(id)));
        };
        cancel.local = local;
        let &mut Cancel { server, client, repeats, .. } = cancel;
        let wanted = self.is_running(server, client);
        let server = &self.servers[server];
        let statement = server.unit_since;
        match &server.key {
            Some(key) if wanted && repeats.is_none_or(|repeated| repeated == statement) => {
                let cancel = &mut self.cancels[id];
                cancel.sent = true;
                cancel.early = (now - statement < BEGUN_AFTER).then_some(statement);
                self.actions.inject(Endpoint::Cancel(id), |out| key.write_request(out));
            }
            _ => self.cancel_over(id),
        }
    }

    /// Whether a server runs something for a client. One that is gone may still want it ended.
    fn is_running(&self, server: ServerId, client: Option<ClientId>) -> bool {
        let server = &self.servers[server];
        let its = match server.state {
            ServerState::Lent(holder) => Some(holder) == client,
            ServerState::Cleaning { step, .. } => step == Cleaning::Draining,
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::AwaitingCancel
            | ServerState::Leaving => false,
        };
        its && !server.replies.is_empty()
    }

    /// The cancel's connection has come to its end, or could not be made.
    pub(crate) fn cancel_ended(&mut self, now: Time, id: CancelId) {
        let Some(cancel) = self.cancels.find(id) else { return };
        let (server, client, early) = (cancel.server, cancel.client, cancel.early);
        self.cancel_over(id);
        self.servers[server].cancelled_early = early.map(|sent| (client, sent));
        if matches!(self.servers[server].state, ServerState::AwaitingCancel) {
            self.offer(now, server);
        }
    }

    /// Repeats a cancel that may have come too early, if its statement still runs.
    pub(crate) fn cancel_again(&mut self, now: Time, server: ServerId) {
        let Some(its) = self.servers.find_mut(server) else { return };
        let due = |(_, sent): &mut (Option<ClientId>, Time)| now - *sent >= BEGUN_AFTER;
        let Some((client, sent)) = its.cancelled_early.take_if(due) else { return };
        let same = its.unit_since == sent && !its.answered && its.cancel.is_none();
        if same && self.is_running(server, client) {
            self.cancel_on(now, server, client, None);
            if let Some(id) = self.servers[server].cancel {
                self.cancels[id].repeats = Some(sent);
            }
        }
    }

    /// The cancel has taken too long. If it was sent nobody knows when it will hit, so its server
    /// is not lent again.
    pub(crate) fn cancel_timed_out(&mut self, now: Time, id: CancelId) {
        let cancel = &self.cancels[id];
        let (server, sent) = (cancel.server, cancel.sent);
        self.cancel_over(id);
        if sent {
            self.servers[server].doomed = true;
        }
        if matches!(self.servers[server].state, ServerState::AwaitingCancel) {
            self.offer(now, server);
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
        if self.cancels[id].sent {
            return true;
        }
        self.cancel_over(id);
        false
    }
}

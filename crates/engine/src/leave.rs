//! Ends: of clients, of servers, and what each leaves behind for the other.

use pgweir_config::PoolMode;
use pgweir_wire::backend::Report;
use pgweir_wire::frontend;

use crate::Engine;
use crate::action::{Action, ClientId, Endpoint, Event, ServerId};
use crate::client::{Asked, Client, Fate, Leg, Phase, UnitRest};
use crate::loss::Loss;
use crate::marks::Mark;
use crate::server::{Cleaning, Left, Server, ServerState};
use crate::server_login::{Retry, unreachable_server};
use crate::shares::is_among;
use crate::time::Time;

impl Engine {
    /// Terminate has come, or the stream has ended and all of it was read: whatever was sent
    /// before is still answered, as PostgreSQL does with what it has been sent before a Terminate.
    pub(crate) fn client_leaves(&mut self, now: Time, id: ClientId) {
        if self.clients[id].awaits_ready() {
            // As in PostgreSQL it hears what it was notified of all the same.
            Mark::LeavesBeforePutBack.hit_if(self.awaits_put_back(id));
            Mark::LeavesBeforeReady.hit_if(!self.awaits_put_back(id));
            self.clients[id].leaving = true;
            return;
        }
        let unfinished = self.is_unfinished(id);
        if self.clients[id].slots.is_empty() || unfinished {
            Mark::LeavesUnfinished.hit_if(unfinished);
            return self.client_left(now, id);
        }
        Mark::LeavesWhileOwed.hit();
        self.clients[id].leaving = true;
    }

    /// Whether a client that sends no more has left something that is never going to be whole: a
    /// batch without its Sync, half a message, or a COPY without its end.
    pub(crate) fn is_unfinished(&self, id: ClientId) -> bool {
        let client = &self.clients[id];
        client.open_slot.is_some() || client.body.left > 0 || self.owes_copy_data(id)
    }

    /// Whether a client's server waits for COPY data, of which the end was not sent yet.
    fn owes_copy_data(&self, id: ClientId) -> bool {
        self.clients[id]
            .server()
            .is_some_and(|server| self.servers[server].replies.awaits_copy_data())
    }

    /// A client is done, in good order.
    pub(crate) fn client_left(&mut self, now: Time, id: ClientId) {
        self.client_gone(now, id, "client disconnected", Action::Close(Endpoint::Client(id)));
    }

    /// Whether a client has been sent a part of a message.
    fn reads_message(&self, id: ClientId) -> bool {
        self.clients[id].server().is_some_and(|server| {
            let body = &self.servers[server].body;
            body.left > 0 && body.fate == Fate::Forward
        })
    }

    /// A client is told why and is no longer served.
    pub(crate) fn expel(&mut self, now: Time, id: ClientId, report: Report) {
        match &self.clients[id].phase {
            Phase::Startup => self.log_refusal(id, None, &report),
            Phase::Login(login) => {
                let pool = login.pool_name();
                self.log_refusal(id, Some(pool), &report);
            }
            Phase::Welcome(welcome) => {
                let pool = self.pools[welcome.pool].spec.name();
                self.log_refusal(id, Some(pool), &report);
            }
            Phase::Cancelling | Phase::Ready(_) | Phase::Console => {}
        }
        self.send_away(now, id, report);
    }

    /// A client that asks for this pool, as `database/user`, is told why it is not let in.
    pub(crate) fn refuse_login(&mut self, now: Time, id: ClientId, pool: String, report: Report) {
        self.log_refusal(id, Some(pool), &report);
        self.send_away(now, id, report);
    }

    /// A client took too long, and is no longer served.
    pub(crate) fn expel_late(&mut self, now: Time, id: ClientId, report: Report) {
        if let Some(pool) = self.clients[id].pool() {
            let (pool, cause) = (self.pools[pool].spec.name(), report.cause());
            let client = self.member.client_number(id);
            self.actions.push(Action::Log(Event::ClientEnded { client, pool, cause }));
        }
        self.expel(now, id, report);
    }

    fn log_refusal(&mut self, id: ClientId, pool: Option<String>, report: &Report) {
        let (ends, cause) = (self.clients[id].ends, report.cause());
        let client = self.member.client_number(id);
        self.actions.push(Action::Log(Event::LoginRefused { client, ends, pool, cause }));
    }

    fn send_away(&mut self, now: Time, id: ClientId, report: Report) {
        let to = Endpoint::Client(id);
        self.say_due_at_once(id);
        if self.reads_message(id) {
            // There is no place for an error inside a message.
            Mark::EndedInsideMessage.hit();
            return self.client_gone(now, id, "ended inside a message", Action::Close(to));
        }
        if self.clients[id].server().is_some_and(|server| self.servers[server].fatal) {
            // It knows, from its server, that this is the end.
            Mark::EndedBehindServer.hit();
            return self.client_gone(now, id, "server lost", Action::Close(to));
        }
        self.actions.inject(to, |out| report.write(out));
        self.client_gone(now, id, "ended by pgweir", Action::Close(to));
    }

    /// A client is no more. `end` is what becomes of its connection.
    pub(crate) fn client_gone(
        &mut self,
        now: Time,
        id: ClientId,
        cause: &'static str,
        end: Action,
    ) {
        match self.clients[id].leg {
            Leg::None => {}
            Leg::Waiting(_) | Leg::Preparing(_) | Leg::Granted(_) => self.leave_queue(now, id),
            Leg::Pipelined(server) => self.leave_shared(id, server),
            Leg::Held(server) => self.abandon(now, id, server),
        }
        let Some(client) = self.forget_client(id) else { return };
        let known = matches!(client.phase, Phase::Ready(_) | Phase::Console);
        if known && self.plan.log_disconnections {
            let pool = client.pool().map(|pool| self.pools[pool].spec.name());
            let client = self.member.client_number(id);
            self.actions.push(Action::Log(Event::ClientLeft { client, pool, cause }));
        }
        self.actions.push(end);
    }

    /// A client is done with its transaction, and all that has to be known is.
    pub(crate) fn part_or_keep(&mut self, now: Time, id: ServerId, client: ClientId) {
        let server = &self.servers[id];
        if self.keeps_server(&self.clients[client], server) {
            return;
        }
        let (reset, unseen) = (server.reset, server.unseen);
        self.clients[client].unseen = None;
        if reset || !unseen.is_empty() {
            Mark::CleanedOfUnseen.hit_if(!reset);
            self.part(client);
            let left = if unseen.spoils() { Left::Unremovable } else { Left::Pins };
            return self.clean(now, id, left);
        }
        self.give_back(now, id);
    }

    /// A client leaves the server that it holds.
    fn abandon(&mut self, now: Time, id: ClientId, server: ServerId) {
        let client = &self.clients[id];
        let its = &self.servers[server];
        let half_message = client.body.left > 0 && client.body.fate == Fate::Forward;
        // Without its Sync a batch is not committed, and without CopyDone neither is the COPY: a
        // backend whose client is gone undoes both, so that is what this one must see.
        let undecided = client.open_slot.is_some() || its.replies.awaits_copy_data();
        if half_message || undecided {
            Mark::AbandonedInsideMessage.hit_if(half_message);
            Mark::AbandonedUndecided.hit_if(undecided);
            return self.forsake(now, server);
        }
        let spec = &self.pools[its.pool].spec;
        let pins = client.pins.union(its.unseen);
        let stateful = !pins.is_empty() || its.reset || client.changes.is_some();
        // What it has done by names that are not known yet may be anything.
        let left = if pins.spoils() || client.has_followed_schema() {
            Mark::LeftUnremovable.hit();
            Left::Unremovable
        } else if its.mode == PoolMode::Session && (spec.reset_is_thorough() || !stateful) {
            Mark::LeftSession.hit();
            Left::Session
        } else if stateful {
            // A reset query that leaves settings behind is the operator's choice for sessions
            // that set none.
            Mark::LeftPins.hit();
            Left::Pins
        } else {
            Left::Nothing
        };
        self.clean(now, server, left);
    }

    /// Forgets a client that is no session, and closes its connection.
    pub(crate) fn close_client(&mut self, id: ClientId) {
        if self.forget_client(id).is_some() {
            self.actions.push(Action::Close(Endpoint::Client(id)));
        }
    }

    fn forget_client(&mut self, id: ClientId) -> Option<Client> {
        if self.clients.find(id).is_some() {
            self.unsubscribe(id);
        }
        let client = self.clients.remove(id)?;
        self.schema_of_leaver(&client);
        self.let_go(client.piled);
        self.leaving_clients += 1;
        if let Some(at) = client.watched_at {
            self.quiet.remove(&(at, id.index()));
        }
        match client.phase {
            Phase::Startup | Phase::Login(_) => self.login_over(client.since, id),
            Phase::Welcome(_) | Phase::Ready(_) => {
                client.pool().into_iter().for_each(|pool| self.count_client_gone(pool));
            }
            Phase::Cancelling => self.member.commons().cancellers.sub(),
            Phase::Console => {}
        }
        Some(client)
    }

    /// Whether a client is between transactions. One that has not logged in is too.
    pub(crate) fn is_idle(&self, id: ClientId) -> bool {
        let Some(client) = self.clients.find(id) else { return false };
        // One whose answer waits for its client to read may wait for ever.
        let answered_soon = client.refusal.is_some() && !client.answer_waits();
        let idle = match client.leg {
            // A unit has been taken and is about to be sent, or answered.
            _ if client.asked.is_some() || answered_soon || client.holding => false,
            // What it was notified of in it comes before its end.
            _ if client.awaits_ready() => false,
            // Its transaction is over when it has ended it.
            _ if client.lost.is_some() => false,
            // What is still to come of a message asks for nothing more.
            Leg::None => client.rest != UnitRest::Batch,
            Leg::Held(server) => {
                let server = &self.servers[server];
                server.replies.is_empty()
                    && !server.status.in_block()
                    && client.open_slot.is_none()
                    && client.body.left == 0
            }
            // A unit is under way; it is asked again when that is over.
            Leg::Waiting(_) | Leg::Preparing(_) | Leg::Granted(_) | Leg::Pipelined(_) => {
                Mark::DrainedUnderWay.hit();
                false
            }
        };
        idle && !matches!(client.phase, Phase::Cancelling)
    }

    /// The same of one that is not within a batch that was refused either: of that a server which
    /// stays with its client was sent nothing.
    pub(crate) fn is_between_units(&self, id: ClientId) -> bool {
        let in_batch = |its: &Client| its.rest == UnitRest::Batch;
        self.is_idle(id) && !self.clients.find(id).is_some_and(in_batch)
    }

    /// A server's stream has ended without our asking.
    pub(crate) fn server_lost(&mut self, now: Time, id: ServerId, cause: &str) {
        let server = &self.servers[id];
        let pool = server.pool;
        mark_lost(server);
        if matches!(server.state, ServerState::Leaving) {
            return self.dismissed(now, id);
        }
        if matches!(server.state, ServerState::Connecting | ServerState::Login(_)) {
            let address = &self.pools[pool].spec.address;
            let report = unreachable_server(address, cause);
            return self.login_failed(now, id, report, Retry::Later);
        }
        let event = Event::ServerLost {
            server: self.member.server_number(id),
            client: server.client().map(|client| self.member.client_number(client)),
            pool: self.pools[pool].spec.name(),
            cause: server.last_words.as_deref().unwrap_or(cause).to_owned(),
        };
        self.actions.push(Action::Log(event));
        self.lose(now, id, cause);
    }

    /// A server is no more. Whoever held it gets another, or is told.
    pub(crate) fn lose(&mut self, now: Time, id: ServerId, cause: &str) {
        self.actions.push(Action::Abort(Endpoint::Server(id)));
        let server = &self.servers[id];
        let never_used = match server.state {
            ServerState::Cleaning { step: Cleaning::Asking, .. } => true,
            ServerState::Cleaning { step: Cleaning::Reading, .. } => {
                Mark::LostBeforeNames.hit_if(!self.pools[server.pool].names_known);
                !self.pools[server.pool].names_known
            }
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::Lent(_)
            | ServerState::Pipelined
            | ServerState::Cleaning { .. }
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Forsaken
            | ServerState::Leaving => false,
        };
        if never_used {
            let report = unreachable_server(&server.address, cause);
            let (pool, jitter) = (server.pool, u32::from_be_bytes(self.random.bytes()));
            self.pools[pool].note_lost_unused(now, report, jitter);
        }
        if self.is_pipelined(id) {
            return self.shared_lost(now, id, cause);
        }
        match self.servers[id].client() {
            Some(client) => self.lessee_lost_server(now, id, client, cause),
            None => self.forget_server(now, id),
        }
    }

    fn lessee_lost_server(&mut self, now: Time, id: ServerId, client: ClientId, cause: &str) {
        let loss = self.loss(id, client);
        let pool = self.servers[id].pool;
        Mark::LossBehindAnswer.hit_if(loss == Loss::Session && self.servers[id].answered);
        Mark::LossAheadOfMore.hit_if(loss == Loss::UnitAndSession && self.clients[client].holding);
        self.undo_lost(id, client);
        self.part(client);
        if !matches!(loss, Loss::Told | Loss::Message) {
            // Nothing more can be said to the others.
            self.listen_elsewhere(now, client);
        }
        if loss == Loss::NotBegun {
            let asked = &mut self.clients[client].asked;
            asked.get_or_insert_with(|| Asked::new(now, false)).lost += 1;
        }
        if self.clients[client].asked.is_some_and(|asked| asked.lost > 1) {
            // Perhaps servers die of what it asks for: the next one is not made at once.
            Mark::LostTwice.hit();
            let jitter = u32::from_be_bytes(self.random.bytes());
            let report = unreachable_server(&self.pools[pool].spec.address, cause);
            self.pools[pool].note_lost_unused(now, report, jitter);
        }
        let kept = std::mem::take(&mut self.servers[id].kept);
        self.forget_server(now, id);
        self.tell_loss(now, client, (loss, &kept), cause);
    }

    /// Closes a server that nobody holds, in good order.
    pub(crate) fn close_server(&mut self, now: Time, id: ServerId) {
        if self.servers[id].counts.iter().any(|count| count.most().is_some()) {
            Mark::Dismissed.hit();
            return self.dismiss(now, id);
        }
        self.hang_up(now, id);
    }

    /// Closes a server that nobody holds, and does not wait for its end, whatever counts it.
    pub(crate) fn hang_up(&mut self, now: Time, id: ServerId) {
        self.take_leave(id);
        self.actions.push(Action::Close(Endpoint::Server(id)));
        self.forget_server(now, id);
    }

    /// Tells a server that nobody holds to go. It keeps its place in the pool until it has gone:
    /// PostgreSQL leaves the closing of the connection to the end of the process, when the backend
    /// does not count any more (`socket_close`, pqcomm.c), so that a limit of as many connections
    /// as the pool has leaves room for the next one.
    pub(crate) fn dismiss(&mut self, now: Time, id: ServerId) {
        self.take_leave(id);
        let server = &mut self.servers[id];
        if matches!(server.state, ServerState::Idle) {
            self.pools[server.pool].idle.retain(|idle| *idle != id);
        }
        let (pool, listens) = (server.pool, matches!(server.state, ServerState::Listening));
        server.state = ServerState::Leaving;
        server.changed = now;
        server.doomed = true;
        if listens {
            self.listener_lost(now, pool);
        }
        if self.pools[pool].waiting > 0 {
            // Somebody may have counted on it.
            self.refill(now, pool);
        }
    }

    /// A server that was told to go has gone, or has had its time.
    pub(crate) fn dismissed(&mut self, now: Time, id: ServerId) {
        self.actions.push(Action::Abort(Endpoint::Server(id)));
        let server = &mut self.servers[id];
        let (pool, promised_to) = (server.pool, server.promised_to.take());
        let counts = server.counts.clone();
        let Some(client) = promised_to else {
            return self.forget_server(now, id);
        };
        self.remove_server(now, id);
        if let Some(next) = self.open_for(now, client, pool) {
            Mark::PlaceTaken.hit();
            let taken = &self.servers[next].counts;
            if !counts.iter().all(|count| is_among(count, taken)) {
                // A reload has moved the pool: the place was not what it has taken.
                Mark::PlaceLeft.hit();
                self.room_made(now, pool, &counts);
            }
        } else {
            // A reload has left no room, as many as may be are being made already, or another
            // worker has taken the place.
            Mark::PlaceLost.hit();
            self.ask_again(now, client);
            self.room_made(now, pool, &counts);
        }
    }

    /// Lets a backend see its client vanish. PostgreSQL does not look at its socket while it
    /// executes, and counts the backend for so long: so it keeps its place here, too. What it was
    /// told to do and is not committed is undone when it has come to the end of its stream.
    pub(crate) fn forsake(&mut self, now: Time, id: ServerId) {
        let works = match self.servers[id].state {
            ServerState::Lent(_) | ServerState::Cleaning { step: Cleaning::Draining, .. } => true,
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::Cleaning { .. }
            | ServerState::Pipelined
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Forsaken
            | ServerState::Leaving => false,
        };
        if !works {
            // What was to clean it, or to say something of it, says too much or asks for data.
            Mark::GivenUpFree.hit();
            return self.abort_server(now, id);
        }
        self.read_server(id, true);
        self.actions.push(Action::HalfClose(Endpoint::Server(id)));
        let server = &mut self.servers[id];
        server.state = ServerState::Forsaken;
        server.changed = now;
        server.swallowed = 0;
        // It may have been silent because its client owed it something.
        server.fed = now;
        server.doomed = true;
    }

    /// What such a server says nobody hears.
    pub(crate) fn forsaken_input(&mut self, now: Time, id: ServerId, input: &[u8]) {
        let server = &mut self.servers[id];
        server.heard = now;
        server.swallowed += input.len();
        if server.says_too_much() {
            Mark::ForsakenTalks.hit();
            self.cancel_talker(now, id);
        }
    }

    /// A server says too much that nobody hears. What still runs would end at its next write if its
    /// client's connection were closed; it is cancelled instead, so that its end is seen.
    pub(crate) fn cut_short(&mut self, now: Time, id: ServerId) {
        if self.servers[id].replies.is_empty() {
            Mark::TalkerOwesNothing.hit();
            return self.hang_up(now, id);
        }
        Mark::TalkerForsaken.hit();
        self.forsake(now, id);
        self.cancel_talker(now, id);
    }

    fn cancel_talker(&mut self, now: Time, id: ServerId) {
        let Some(server) = self.servers.find_mut(id) else {
            return Mark::TalkerGone.hit();
        };
        // Its statement has begun, so a cancel does not come too early.
        server.answered = true;
        self.end_overdue(now, id, None);
    }

    fn take_leave(&mut self, id: ServerId) {
        let to = Endpoint::Server(id);
        self.actions.inject(to, |out| out.extend_from_slice(&frontend::TERMINATE));
    }

    /// Closes a server at once: its backend sees its client vanish.
    pub(crate) fn abort_server(&mut self, now: Time, id: ServerId) {
        self.actions.push(Action::Abort(Endpoint::Server(id)));
        self.forget_server(now, id);
    }

    /// Takes a server out of its pool. Whoever waits may need another.
    pub(crate) fn forget_server(&mut self, now: Time, id: ServerId) {
        let server = &self.servers[id];
        let (pool, counts) = (server.pool, server.counts.clone());
        self.remove_server(now, id);
        self.room_made(now, pool, &counts);
    }

    fn remove_server(&mut self, now: Time, id: ServerId) {
        if let Some(cancel) = self.servers[id].cancel {
            Mark::CancelOfLostServer.hit();
            self.cancel_over(cancel);
        }
        let rows = self.end_reading(id);
        let Some(server) = self.servers.remove(id) else { return };
        self.leave_pool(&server, id);
        if server.dedicated {
            self.keep_question(&server.address);
        }
        if let ServerState::Listening = server.state {
            self.listener_lost(now, server.pool);
        }
        self.wake_for_pins(server.pool);
        if let Some(client) = server.promised_to {
            self.ask_again(now, client);
        }
        if let Some(rows) = rows {
            self.reading_lost(now, id, rows.database());
        }
    }

    /// A client gets no server that was promised to it: it asks again, in its own place.
    fn ask_again(&mut self, now: Time, client: ClientId) {
        Mark::PromiseBroken.hit();
        let its = &mut self.clients[client];
        its.leg = Leg::None;
        its.asked.get_or_insert_with(|| Asked::new(now, false)).lost += 1;
        self.resume(client);
    }

    fn leave_pool(&mut self, server: &Server, id: ServerId) {
        self.count_gone(server);
        match server.state {
            ServerState::Idle => self.pools[server.pool].idle.retain(|idle| *idle != id),
            ServerState::Lent(client) => {
                if let Some(client) = self.clients.find_mut(client)
                    && matches!(client.leg, Leg::Held(held) | Leg::Preparing(held) if held == id)
                {
                    client.leg = Leg::None;
                }
            }
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Pipelined
            | ServerState::Cleaning { .. }
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Forsaken
            | ServerState::Leaving => {}
        }
    }
}

/// In which states servers are lost.
fn mark_lost(server: &Server) {
    match server.state {
        ServerState::Connecting | ServerState::Login(_) => Mark::LostAtLogin.hit(),
        ServerState::Idle => Mark::LostIdle.hit(),
        ServerState::Lent(_) if server.used => Mark::LostWhileLent.hit(),
        ServerState::Lent(_) => Mark::LostBeforeUse.hit(),
        ServerState::Cleaning { step: Cleaning::Asking, .. } => Mark::LostWhileAsked.hit(),
        ServerState::Cleaning { step: Cleaning::Reading, .. } => Mark::LostWhileRead.hit(),
        ServerState::Cleaning { .. } => Mark::LostWhileCleaned.hit(),
        ServerState::Listening => {}
        ServerState::Pipelined => Mark::LostWhileShared.hit(),
        ServerState::AwaitingCancel => Mark::LostWhileCancelled.hit(),
        ServerState::Forsaken => Mark::ForsakenGivenUp.hit(),
        ServerState::Leaving => Mark::LeavingEnded.hit(),
    }
}

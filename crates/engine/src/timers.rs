//! What happens because nothing happened.
//!
//! Every queue here is in the order of its deadlines, whatever way its entries came there, so a
//! sweep looks at heads, not at clients: its cost does not grow with the number of clients that
//! wait or idle.

use std::time::Duration;

use pgweir_config::PoolMode;
use pgweir_wire::backend::Report;

use crate::Engine;
use crate::action::{Action, ClientId, Event, ServerId};
use crate::ask::Answer;
use crate::cancel::CANCEL_TIMEOUT;
use crate::catalogue;
use crate::client::{Leg, Phase};
use crate::errors::{IDLE, IDLE_IN_TRANSACTION, LOGIN_TOO_SLOW, TRANSACTION_TOO_LONG};
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::server::{Cleaning, ServerState};
use crate::server_login::{Retry, unreachable_server};
use crate::time::Time;

/// How often [`Engine::tick`] wants to be called while there are connections; timeouts are that
/// much late at most.
pub const TICK: Duration = Duration::from_millis(100);

/// Servers are told the statement_timeout, and end the statement themselves. One that has not
/// answered so much later does not answer any more: its client hears of that within a second.
const STATEMENT_GRACE: Duration = Duration::from_millis(1_000 - TICK.as_millis() as u64);

/// Why such a server is given up.
pub(crate) const HANGS: &str = "the server did not end a statement at statement_timeout";

/// What becomes of a transaction that takes too long.
const ROLLED_BACK: &str = "the transaction is rolled back.";

/// The same, where it may be over by then.
const CANCELLED: &str = "what was under way is cancelled, and may or may not have been committed.";

impl Engine {
    /// Ends what has taken too long.
    pub fn tick(&mut self, now: Time) {
        self.sweep_logins(now);
        self.sweep_unfinished(now);
        self.sweep_quiet(now);
        self.forget_debts();
        for id in self.pools.keys() {
            self.sweep_pool(now, id);
        }
        for id in self.servers.keys() {
            self.release_cancel(now, id);
            self.sweep_server(now, id);
        }
        for id in self.cancels.keys() {
            let since = self.cancels.find(id).map(|cancel| cancel.since);
            if since.is_some_and(|since| now - since > CANCEL_TIMEOUT) {
                let cause = format!("it was not over within {}", in_seconds(CANCEL_TIMEOUT));
                self.cancel_in_doubt(now, id, &cause);
            }
        }
        self.sweep_catalogues(now);
        self.shed_surplus(now);
        self.look_at_wants(now);
        if self.draining {
            self.drain(now);
        }
    }

    /// Ends logins that take too long. Who waits for a server is not among them: in the queue its
    /// own timeout holds.
    fn sweep_logins(&mut self, now: Time) {
        let Some(limit) = self.plan.client_login_timeout else { return };
        while let Some(&(since, place)) = self.logins.first() {
            if now - since <= limit {
                break;
            }
            self.logins.pop_first();
            let Some(id) = self.clients.key_at(place) else { continue };
            Mark::LoginTooSlow.hit();
            let detail = format!("client_login_timeout is {}.", in_seconds(limit));
            self.expel(now, id, LOGIN_TOO_SLOW.report(&[]).detail(detail));
        }
    }

    /// A client is between transactions from now on.
    pub(crate) fn note_quiet(&mut self, now: Time, id: ClientId) {
        self.clients[id].quiet_since = now;
        if self.plan.client_idle_timeout.is_some() {
            self.watch_silence(id, now);
        }
    }

    /// A client's silence is looked at again when it may have lasted too long since `at`.
    pub(crate) fn watch_silence(&mut self, id: ClientId, at: Time) {
        if let Some(before) = self.clients[id].watched_at.replace(at) {
            self.quiet.remove(&(before, id.index()));
        }
        self.quiet.insert((at, id.index()));
        debug_assert!(self.quiet.len() <= self.clients.len(), "one entry for each client");
    }

    /// Ends clients that have been idle for too long. Each has one entry, with a time at which it
    /// was seen to be quiet or busy; most have done something since, and get a later one.
    fn sweep_quiet(&mut self, now: Time) {
        let Some(limit) = self.plan.client_idle_timeout else { return };
        while let Some(&(since, place)) = self.quiet.first() {
            if now - since <= limit {
                break;
            }
            self.quiet.pop_first();
            let Some(id) = self.clients.key_at(place) else { continue };
            let client = &mut self.clients[id];
            client.watched_at = None;
            debug_assert!(matches!(client.phase, Phase::Ready(_)), "only a client that is let in");
            let quiet_since = client.quiet_since;
            // A snapshot that one has exported lasts as long as its session.
            let replicates = client.replication.is_some() && client.server().is_some();
            if replicates || !self.is_idle(id) {
                Mark::ClientIdleButBusy.hit();
                self.watch_silence(id, now);
            } else if now - quiet_since <= limit {
                Mark::ClientIdleForLess.hit();
                self.watch_silence(id, quiet_since);
            } else {
                Mark::ClientIdle.hit();
                self.expel_late(now, id, idle(limit));
            }
        }
    }

    fn sweep_pool(&mut self, now: Time, id: PoolId) {
        let waits_since = self.waits_since(id);
        let pool = &mut self.pools[id];
        let reserve_timeout = pool.spec.reserve_timeout;
        pool.reserve_open = waits_since.is_some_and(|since| now - since >= reserve_timeout);
        Mark::ReserveOpen.hit_if(pool.reserve_open && pool.spec.reserve > 0);
        // Only then do those leave the queue who have waited too long: the reserve may open at that
        // very time, for whoever is behind them.
        self.sweep_queue(now, id);
        self.sweep_vain_waits(now, id);
        if self.pools[id].removed {
            self.close_clients(now, id);
        }
        self.sweep_listener(now, id);
        self.climb(now, id);
        self.grant_again(now, id);
        self.refill(now, id);
        self.ask_others(now, id);
        self.dissolve(now, id);
    }

    fn sweep_queue(&mut self, now: Time, id: PoolId) {
        let Some(limit) = self.pools[id].spec.query_wait_timeout else { return };
        let mut index = 0;
        while let Some(waiter) = self.pools[id].waiters.get(index).copied() {
            let client = self.clients.find(waiter.client);
            let its = client.filter(|client| client.leg == Leg::Waiting(waiter.ticket));
            let since = its.map(|its| its.asked.map_or(waiter.since, |asked| asked.waits_since));
            match since {
                // So do all behind it.
                Some(_) if now - waiter.since <= limit => break,
                Some(since) if now - since <= limit => index += 1,
                Some(since) => {
                    Mark::WaitOver.hit();
                    self.pools[id].waiters.remove(index);
                    self.wait_over(now, id, waiter.client, now - since);
                }
                None => {
                    self.pools[id].waiters.remove(index);
                }
            }
        }
    }

    /// The unit of a client that has a server was not sent yet: it waits like those in the queue.
    fn sweep_preparing(&mut self, now: Time, pool: PoolId, client: ClientId) {
        let Some(limit) = self.pools[pool].spec.query_wait_timeout else { return };
        let asked = self.clients.find(client).and_then(|client| client.asked);
        if let Some(asked) = asked.filter(|asked| now - asked.waits_since > limit) {
            Mark::WaitOverForPrepared.hit();
            self.wait_over(now, pool, client, now - asked.waits_since);
        }
    }

    fn sweep_server(&mut self, now: Time, id: ServerId) {
        let Some(server) = self.servers.find(id) else { return };
        let pool = server.pool;
        let spec = &self.pools[pool].spec;
        let patience = spec.connect_timeout;
        match server.state {
            ServerState::Connecting | ServerState::Login(_) => {
                if now - server.since > patience {
                    Mark::ConnectTooSlow.hit();
                    let seconds = patience.as_secs_f64();
                    let cause = format!("no answer within {seconds} s");
                    let report = unreachable_server(&spec.address, &cause);
                    self.login_failed(now, id, report, Retry::Later);
                } else if let Some(client) = server.promised_to {
                    self.sweep_preparing(now, pool, client);
                }
            }
            ServerState::Idle => {
                let idle_too_long = self.pools[pool].total > spec.min_size
                    && spec.idle_timeout.is_some_and(|limit| now - server.changed > limit);
                let too_old = server.is_too_old(now, spec.server_lifetime);
                Mark::IdleTooLong.hit_if(idle_too_long);
                Mark::IdleTooOld.hit_if(too_old);
                if idle_too_long || too_old {
                    self.close_server(now, id);
                }
            }
            // Our own short statements get no more time than a login does.
            ServerState::Lent(client) => {
                let leg = self.clients.find(client).map(|client| client.leg);
                let prepares = leg == Some(Leg::Preparing(id));
                let is_asked = server.answer.is_some();
                if !prepares && !is_asked && !server.replies.answers_us() {
                    return self.sweep_lease(now, id, client);
                }
                let is_unread = self.servers[id].hears_unread(now);
                let server = &self.servers[id];
                let since = match prepares {
                    _ if is_unread => now,
                    true => server.changed,
                    // The answer may be long.
                    false if is_asked => server.heard.max(server.changed),
                    // In front of what its client waits for, or behind what it had.
                    false => server.heard.max(server.fed),
                };
                let patience = match server.answer {
                    Some(Answer::Catalogue(_)) => patience + catalogue::SILENCE,
                    Some(_) | None => patience,
                };
                if !prepares && self.sweep_transaction(now, id, client) {
                    Mark::TransactionTooLongAside.hit();
                    return;
                }
                if now - since > patience {
                    Mark::PreparingHangs.hit_if(prepares);
                    Mark::AskedInVain.hit_if(!prepares);
                    self.server_lost(now, id, "the server did not answer in time");
                } else if prepares {
                    self.sweep_preparing(now, pool, client);
                }
            }
            ServerState::Cleaning { step, .. } => {
                // The answer may be long.
                let is_long = step == Cleaning::Reading;
                let since = if is_long { server.heard } else { server.changed };
                let patience = match server.replaying {
                    None if is_long => patience + catalogue::SILENCE,
                    None | Some(_) => patience,
                };
                let ours = match step {
                    Cleaning::Asking
                    | Cleaning::Reading
                    | Cleaning::RollingBack
                    | Cleaning::Unsetting
                    | Cleaning::Resetting => true,
                    Cleaning::Draining => server.replies.answers_us(),
                    Cleaning::Done => false,
                };
                if step == Cleaning::Draining && !ours {
                    self.sweep_left(now, id);
                } else if ours && now - since > patience {
                    Mark::CleaningHangs.hit();
                    self.server_lost(now, id, "the server did not answer in time");
                } else if let Some(client) = server.promised_to {
                    self.sweep_preparing(now, pool, client);
                }
            }
            // Without a reply to make, or while it waits for data, it has only to see that its
            // client is gone.
            ServerState::Forsaken => {
                let sees = server.replies.is_empty() || server.replies.awaits_copy_data();
                if sees && now - server.changed > patience {
                    Mark::ForsakenHangs.hit();
                    self.server_lost(now, id, "the server did not end behind its client");
                } else {
                    self.sweep_left(now, id);
                }
            }
            ServerState::Leaving => {
                if now - server.changed > patience {
                    Mark::LeavingHangs.hit();
                    self.dismissed(now, id);
                } else if let Some(client) = server.promised_to {
                    self.sweep_preparing(now, pool, client);
                }
            }
            ServerState::Listening => {
                let listener = self.pools[pool].listener.as_ref();
                let expected = listener.and_then(|listener| listener.expected_since());
                let answers = !server.replies.is_empty() && now - server.changed > patience;
                if answers || expected.is_some_and(|since| now - since > patience) {
                    Mark::ListenerHangs.hit();
                    self.server_lost(now, id, "the server did not answer in time");
                }
            }
            ServerState::Pipelined => self.sweep_shared(now, id),
            ServerState::AwaitingCancel => {}
        }
    }

    /// A client may keep a server from others and do nothing with it: that is told once.
    fn tell_of_silence(&mut self, now: Time, id: ServerId, client: ClientId) {
        let server = &self.servers[id];
        let its = &self.clients[client];
        let spec = &self.pools[server.pool].spec;
        let silent = its.slots.is_empty() && !server.status.in_block();
        let pinned = server.mode != PoolMode::Session && !its.pins.is_empty();
        let Some(limit) = spec.pin_idle_timeout.filter(|_| silent && pinned) else { return };
        if its.silence_told || now - its.quiet_since <= limit {
            return;
        }
        Mark::PinIdle.hit();
        let event = Event::PinIdle {
            server: self.member.server_number(id),
            client: self.member.client_number(client),
            pool: spec.name(),
            pins: its.pins_in_words(),
        };
        self.actions.push(Action::Log(event));
        self.clients[client].silence_told = true;
    }

    /// Limits of what a client does with the server that it holds.
    fn sweep_lease(&mut self, now: Time, id: ServerId, client: ClientId) {
        let server = &self.servers[id];
        if server.dedicated {
            // To stream is one statement without an end.
            return;
        }
        self.tell_of_silence(now, id, client);
        let stalled_since = self.stalled_since(now, id, client);
        if self.sweep_transaction(now, id, client) {
            return;
        }
        let server = &self.servers[id];
        let spec = &self.pools[server.pool].spec;
        let its = &self.clients[client];
        let held = its.holding && its.began_more;
        let busy = held || !its.slots.is_empty() || self.works_ahead(id, client);
        let in_block = server.status.in_block();
        let stalls = stalled_since.is_some();
        let has_begun_nothing = stalls && its.body.ends_unit;
        let silent_since = stalled_since.unwrap_or(server.unit_since);
        let over =
            |limit: Option<Duration>, since: Time| limit.filter(|limit| now - since > *limit);
        let too_idle = over(spec.idle_in_transaction_timeout, silent_since);
        let too_quiet = over(self.plan.client_idle_timeout, silent_since);
        // A server may be silent because its client has not sent all, unless it does not take it.
        if (its.body.left == 0 || server.congested) && self.hangs(now, id) {
            Mark::ServerHangs.hit();
            return self.server_lost(now, id, HANGS);
        }
        let is_over = if in_block { too_idle } else { too_quiet }.is_some();
        Mark::ClientIdleInMessage.hit_if(stalls && is_over);
        if let Some(limit) = too_idle.filter(|_| in_block && (!busy || stalls)) {
            Mark::ClientIdleInTransaction.hit();
            // Of a unit of which only a part was sent nothing is.
            let may_be = self.may_be_committed(id, client) && !has_begun_nothing;
            let end = if may_be { CANCELLED } else { ROLLED_BACK };
            let setting = "idle_client_in_transaction_timeout";
            let detail = format!("{setting} is {}; {end}", in_seconds(limit));
            return self.expel_late(now, client, IDLE_IN_TRANSACTION.report(&[]).detail(detail));
        }
        if let Some(limit) = too_quiet.filter(|_| stalls && !in_block) {
            self.expel_late(now, client, idle(limit));
        }
    }

    /// Ends a client whose transaction takes too long, and says whether it did. `false` where none
    /// is open.
    fn sweep_transaction(&mut self, now: Time, id: ServerId, client: ClientId) -> bool {
        let server = &self.servers[id];
        // What it has sent waits behind a statement of our own.
        let waits = server.answer.is_some();
        let begins = self.works_ahead(id, client);
        let busy = begins || !self.clients[client].slots.is_empty();
        let in_block = server.status.in_block();
        let since = if begins && !in_block { server.fed } else { server.transaction_since };
        let limit = self.pools[server.pool].spec.transaction_timeout;
        let limit = limit.filter(|limit| now - since > *limit);
        let is_open = in_block || (busy && !waits);
        let Some(limit) = limit.filter(|_| is_open) else { return false };
        Mark::TransactionTooLongIdle.hit_if(!busy);
        if busy && !waits {
            Mark::TransactionTooLong.hit();
            self.end_overdue(now, id, Some(client));
        }
        // The cancel may come too late.
        let end = if self.may_be_committed(id, client) { CANCELLED } else { ROLLED_BACK };
        let detail = format!("transaction_timeout is {}; {end}", in_seconds(limit));
        self.expel_late(now, client, TRANSACTION_TOO_LONG.report(&[]).detail(detail));
        true
    }

    /// Since when a client has been silent in the middle of a message that its server reads, if it
    /// is. Data of a COPY come when they are made.
    fn stalled_since(&mut self, now: Time, id: ServerId, client: ClientId) -> Option<Time> {
        let server = &self.servers[id];
        let its = &mut self.clients[client];
        if server.congested {
            // Nobody reads what it says.
            Mark::StallsUnread.hit();
            its.quiet_since = now;
            return None;
        }
        let owed = &server.replies;
        let is_due_more = owed.due() > usize::from(its.body.ends_unit);
        let stalls = its.body.left > 0 && !is_due_more && !owed.awaits_copy_data();
        stalls.then(|| server.fed.max(server.unit_since).max(its.quiet_since))
    }

    /// Limits of what a client that is gone has left running. Where none is set it takes the time
    /// that it takes, as behind a client of PostgreSQL's that has vanished.
    fn sweep_left(&mut self, now: Time, id: ServerId) {
        let server = &self.servers[id];
        let spec = &self.pools[server.pool].spec;
        let over = |limit: Duration, since: Time| now - since > limit;
        let heeds_none = server.overdue.is_some_and(|since| over(spec.connect_timeout, since));
        let limit = spec.transaction_timeout;
        let too_long = limit.is_some_and(|limit| over(limit, server.transaction_since));
        if heeds_none {
            Mark::LeftHeedsNoCancel.hit();
            self.server_lost(now, id, "the server did not end a transaction that was cancelled");
        } else if self.hangs(now, id) {
            Mark::LeftHangs.hit();
            self.server_lost(now, id, HANGS);
        } else if too_long {
            Mark::LeftTooLong.hit();
            self.end_overdue(now, id, None);
        }
    }

    /// Has the statement of a transaction cancelled that has taken too long, once.
    pub(crate) fn end_overdue(&mut self, now: Time, id: ServerId, client: Option<ClientId>) {
        if self.servers[id].overdue.is_none() {
            self.servers[id].overdue = Some(now);
            self.cancel_on(now, id, client, None);
        }
    }

    /// Whether a server has been silent for longer than its statements may take. PostgreSQL
    /// measures each statement of a batch, or of a query string, by itself, and keeps short replies
    /// back until the last is over: of a batch that its client has not ended nothing is due.
    pub(crate) fn hangs(&mut self, now: Time, id: ServerId) -> bool {
        let server = &mut self.servers[id];
        server.hears_unread(now);
        // One that does not read either is busy, or hangs, and behind the end of a stream there is
        // nothing to wait for.
        let waits_for_nobody = server.congested || matches!(server.state, ServerState::Forsaken);
        let owed = &server.replies;
        let due = if waits_for_nobody { owed.owed() } else { owed.due() };
        let silent = now - server.heard.max(server.fed);
        due > 0
            && server.statement_timeout.is_some_and(|limit| {
                let replies = u32::try_from(due).unwrap_or(u32::MAX);
                let statements = replies.saturating_add(owed.further_statements());
                silent > limit.saturating_mul(statements).saturating_add(STATEMENT_GRACE)
            })
    }
}

/// A client was silent for so long outside a transaction.
fn idle(limit: Duration) -> Report {
    IDLE.report(&[]).detail(format!("client_idle_timeout is {}.", in_seconds(limit)))
}

fn in_seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

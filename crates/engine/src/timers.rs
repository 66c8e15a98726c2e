//! What happens because nothing happened.
//!
//! Every queue here is in the order of its deadlines, so a sweep looks at heads, not at clients:
//! its cost does not grow with the number of clients that wait or idle.

use std::time::Duration;

use pgweir_wire::SqlState;
use pgweir_wire::backend::Report;

use crate::Engine;
use crate::action::ServerId;
use crate::cancel::CANCEL_TIMEOUT;
use crate::client::{Leg, Phase};
use crate::pool::PoolId;
use crate::server::{Cleaning, ServerState};
use crate::server_login::{Retry, unreachable_server};
use crate::time::Time;

/// How often [`Engine::tick`] wants to be called while there are connections; timeouts are that
/// much late at most.
pub const TICK: Duration = Duration::from_millis(100);

impl Engine {
    /// Ends what has taken too long.
    pub fn tick(&mut self, now: Time) {
        self.sweep_logins(now);
        self.sweep_unfinished(now);
        for index in 0..self.pools.len() {
            self.sweep_queue(now, PoolId(index));
            self.refill(now, PoolId(index));
        }
        for id in self.servers.keys() {
            self.sweep_server(now, id);
        }
        for id in self.cancels.keys() {
            let since = self.cancels.find(id).map(|cancel| cancel.since);
            if since.is_some_and(|since| now - since > CANCEL_TIMEOUT) {
                self.cancel_timed_out(now, id);
            }
        }
        if self.draining {
            self.drain(now);
        }
    }

    fn sweep_logins(&mut self, now: Time) {
        while let Some(&id) = self.logins.front() {
            let since = self.clients.find(id).and_then(|client| match client.phase {
                Phase::Startup | Phase::Login(_) => Some(client.since),
                // In the queue for a server the queue's own timeout holds.
                Phase::Cancelling | Phase::Welcome(_) | Phase::Ready(_) | Phase::Console => None,
            });
            if let Some(since) = since {
                let limit = self.plan.client_login_timeout;
                if limit.is_none_or(|limit| now - since <= limit) {
                    break;
                }
                let text = "login took too long";
                self.expel(now, id, Report::fatal(SqlState::CONNECTION_FAILURE, text));
            }
            self.logins.pop_front();
        }
    }

    fn sweep_queue(&mut self, now: Time, id: PoolId) {
        let Some(limit) = self.pools[id.0].spec.query_wait_timeout else { return };
        while let Some(waiter) = self.pools[id.0].waiters.front().copied() {
            let leg = self.clients.find(waiter.client).map(|client| client.leg);
            let waits = leg == Some(Leg::Waiting(waiter.ticket));
            if waits && now - waiter.since <= limit {
                break;
            }
            self.pools[id.0].waiters.pop_front();
            if waits {
                let report = self.waited_too_long(id, now - waiter.since);
                match self.clients[waiter.client].phase {
                    Phase::Welcome(_) => {
                        let report = Report {
                            severity: pgweir_wire::Severity::Fatal,
                            code: SqlState::CANNOT_CONNECT_NOW,
                            ..report
                        };
                        self.expel(now, waiter.client, report);
                    }
                    _ => self.refuse_unit(now, waiter.client, report),
                }
            }
        }
    }

    fn waited_too_long(&self, id: PoolId, waited: Duration) -> Report {
        let pool = &self.pools[id.0];
        let name = pool.spec.name();
        let seconds = waited.as_secs_f64();
        let others = pool.waiting.saturating_sub(1);
        match &pool.last_failure {
            Some(failure) => {
                let text = format!("no server for pool \"{name}\" can be reached");
                Report::error(SqlState::TOO_MANY_CONNECTIONS, text).detail(format!(
                    "{} Waited {seconds:.1} s; {others} others wait.",
                    failure.detail.as_ref().unwrap_or(&failure.message)
                ))
            }
            None => {
                let text = format!("all servers of pool \"{name}\" are busy");
                Report::error(SqlState::TOO_MANY_CONNECTIONS, text)
                    .detail(format!(
                        "Waited {seconds:.1} s for one of {}; {others} others wait.",
                        pool.spec.size
                    ))
                    .hint("Shorten transactions, or raise pool_size or query_wait_timeout.")
            }
        }
    }

    fn sweep_server(&mut self, now: Time, id: ServerId) {
        let Some(server) = self.servers.find(id) else { return };
        let spec = &self.pools[server.pool.0].spec;
        match server.state {
            ServerState::Connecting | ServerState::Login(_) => {
                if now - server.since > spec.connect_timeout {
                    let seconds = spec.connect_timeout.as_secs_f64();
                    let cause = format!("no answer within {seconds} s");
                    let report = unreachable_server(&spec.address, &cause);
                    self.login_failed(now, id, report, Retry::Later);
                }
            }
            ServerState::Idle => {
                let idle_too_long =
                    spec.idle_timeout.is_some_and(|limit| now - server.changed > limit);
                let too_old = spec.server_lifetime.is_some_and(|limit| now - server.since > limit);
                if idle_too_long || too_old {
                    self.close_server(now, id);
                }
            }
            // Our own short statements get no more time than a login does. What a client has left
            // running is not ours, and takes the time that it takes.
            ServerState::Lent(client) => {
                let leg = self.clients.find(client).map(|client| client.leg);
                if leg == Some(Leg::Preparing(id)) && now - server.changed > spec.connect_timeout {
                    self.server_lost(now, id, "it did not answer in time");
                }
            }
            ServerState::Cleaning { step, .. } => {
                let ours = match step {
                    Cleaning::RollingBack | Cleaning::Unsetting | Cleaning::Resetting => true,
                    Cleaning::Draining | Cleaning::Done => false,
                };
                if ours && now - server.changed > spec.connect_timeout {
                    self.server_lost(now, id, "it did not answer in time");
                }
            }
            ServerState::Leaving => {
                if now - server.changed > spec.connect_timeout {
                    self.dismissed(now, id);
                }
            }
            ServerState::AwaitingCancel => {}
        }
    }
}

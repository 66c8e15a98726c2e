//! Lending servers: the queue, the pool, and the way back.

use std::rc::Rc;

use pgweir_config::PoolMode;
use pgweir_sql::Pins;
use pgweir_wire::backend::Report;
use pgweir_wire::{Severity, SqlState, frontend};

use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{Asked, Client, Leg, UnnamedStatement};
use crate::kept_plans::KeptPlans;
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::reply::{Expected, Kind, Sink};
use crate::sequences::Sequences;
use crate::server::{Cleaning, Left, Server, ServerState};
use crate::server_login::is_lasting;
use crate::settings::Settings;
use crate::time::Time;

impl Engine {
    /// A client's unit needs a server: it gets an idle one, or a place in the queue.
    pub(crate) fn check_out(&mut self, now: Time, id: ClientId, pool: PoolId) {
        debug_assert_eq!(self.clients[id].leg, Leg::None);
        let its = &mut self.clients[id];
        let held_since = its.held_since.take();
        let (since, held) = (held_since.unwrap_or(now), held_since.is_some());
        let asked = *its.asked.get_or_insert_with(|| Asked::new(since, held));
        let settings = self.brought(id);
        let last = self.clients[id].last_server;
        let knows_names = self.knows_names(pool);
        let servers = &self.servers;
        let birth = Rc::clone(&self.clients[id].birth);
        let may = |server| Rc::ptr_eq(&servers[server].birth, &birth);
        let fits = |server| servers[server].is_just(&settings);
        if self.clients[id].replication.is_some() {
            if self.open_dedicated(now, id, pool) {
                return;
            }
        } else if !knows_names {
            Mark::WaitsForNames.hit();
            self.want_names(now, pool);
        } else if let Some(server) = self.idle_with_sequences(id, pool) {
            Mark::LentForSequences.hit();
            self.pools[pool].idle.retain(|idle| *idle != server);
            return self.lend(now, server, id);
        } else if let Some(server) = self.pools[pool].take_idle(last, may, fits) {
            self.lend(now, server, id);
            if self.pools[pool].sharing > 0 {
                // Who waits to share may have counted on it.
                self.refill(now, pool);
            }
            return;
        } else if self.bear(now, id, pool) {
            return;
        }
        let ticket = self.pools[pool].enqueue(id, asked.since, None);
        self.clients[id].leg = Leg::Waiting(ticket);
        self.refill(now, pool);
    }

    /// Gives a free server to a client, and brings it to the client's settings.
    fn lend(&mut self, now: Time, server: ServerId, client: ClientId) {
        let is_own = self.clients[client].replication.is_some();
        let differs = !self.is_born_for(server, client);
        if is_own || differs {
            Mark::BornForWaiter.hit_if(!is_own);
            Mark::DedicatedFromQueue.hit_if(is_own);
            return self.exchange(now, server, client);
        }
        let its = &mut self.servers[server];
        debug_assert!(its.replies.is_empty(), "a server with replies owed is lent");
        debug_assert!(!its.status.in_block(), "a server in a transaction is lent");
        its.state = ServerState::Lent(client);
        its.changed = now;
        its.used = false;
        its.kept.clear();
        its.answered = false;
        its.swallowed = 0;
        its.overdue = None;
        its.unseen = Pins::NONE;
        its.refused.clear();
        its.elsewhere = None;
        its.mode = self.pools[its.pool].spec.mode;
        let settings = self.brought(client);
        if !self.is_ready_for(server, &settings) {
            self.clients[client].leg = Leg::Preparing(server);
            self.replay(server, &settings);
        } else if self.clients[client].lost.is_some() {
            Mark::LentToFail.hit();
            self.clients[client].leg = Leg::Preparing(server);
            self.fail_transaction(now, server);
        } else {
            self.hold(server, client);
        }
        self.pools[self.servers[server].pool].stats.assignments += 1;
    }

    /// Whether a server is as it should be for its client, who has these settings.
    fn is_ready_for(&self, server: ServerId, settings: &Rc<Settings>) -> bool {
        self.servers[server].is_just(settings) && !self.must_forget_plans(server)
    }

    /// From now on what the client sends goes to this server.
    pub(crate) fn hold(&mut self, server: ServerId, client: ClientId) {
        self.clients[client].leg = Leg::Held(server);
        self.clients[client].last_server = Some(server);
        self.clients[client].settings_refused = false;
        self.clients[client].handed = 0;
        self.servers[server].touched = true;
        self.servers[server].shelf.changes_hands();
        self.servers[server].plans.made_for(client);
        self.tell(client, server);
        if self.clients[client].congested {
            // It has not read its last replies yet: those of this server wait too.
            Mark::LentToCongested.hit();
            self.read_server(server, false);
        }
        if self.servers[server].congested {
            Mark::LentWhileCongested.hit();
            self.read_client(client, false);
        }
    }

    /// What the client sends goes nowhere until it has another server.
    pub(crate) fn part(&mut self, client: ClientId) {
        self.clients[client].leg = Leg::None;
        // The server may have been slow to read; the client must not stay unread for that.
        self.read_client(client, true);
    }

    /// A statement that prepares the server for its client is answered.
    pub(crate) fn prepared(&mut self, now: Time, server: ServerId, client: ClientId) {
        if self.servers[server].replaying.is_none() {
            return self.transaction_failed(now, server, client);
        }
        if let Some(error) = self.replayed(server) {
            if self.tries_unbraked(server, &error) {
                return;
            }
            return self.settings_failed(now, server, client, *error);
        }
        let brought = self.brought(client);
        if !self.is_ready_for(server, &brought) {
            return self.replay(server, &brought);
        }
        let settings = Rc::clone(&self.servers[server].settings);
        let parameters = Rc::clone(&self.servers[server].parameters);
        let pool = self.servers[server].pool;
        let its = &mut self.pools[pool];
        its.forget_refusal(&settings);
        its.remember_welcome(&settings, &parameters);
        if self.clients[client].lost.is_some() {
            Mark::PreparedToFail.hit();
            return self.fail_transaction(now, server);
        }
        self.hold(server, client);
        self.resume(client);
    }

    /// What brings a server to other settings has failed. If the brake has ended it nothing of it
    /// was refused: it took longer than what shares a server may, and the brake is taken off before
    /// it is tried again. Says whether it is.
    pub(crate) fn tries_unbraked(&mut self, server: ServerId, error: &Report) -> bool {
        let its = &self.servers[server];
        let is_braked = error.code == SqlState::QUERY_CANCELED && its.brake.is_some();
        if is_braked {
            Mark::SettingsBraked.hit();
            let settings = Rc::clone(&its.settings);
            self.replay(server, &settings);
        }
        is_braked
    }

    /// A server does not take a client's settings. If somebody has had it, what that one has left
    /// may be why: a short statement_timeout, a role, a temporary table, after which temp_buffers
    /// stays as it is. So a new one is asked, in its place where there is none under way, and only
    /// what that says is what the client would have been told on a connection of its own.
    fn settings_failed(&mut self, now: Time, server: ServerId, client: ClientId, error: Report) {
        self.clients[client].settings_refused = true;
        let pool = self.servers[server].pool;
        let settings = self.brought(client);
        if !self.servers[server].touched {
            Mark::SettingsRefusedByNew.hit();
            if is_lasting(error.code) {
                self.pools[pool].remember_refusal(now, &settings, &error);
            }
            self.give_back(now, server);
            return self.unit_refused(now, client, error);
        }
        let its = &self.pools[pool];
        let birth = Rc::clone(&self.clients[client].birth);
        let coming = self.coming_for_any(pool, &birth);
        let lately = its.refusal(now, &settings);
        Mark::SettingsRefusedLately.hit_if(lately.is_some());
        let no_new = lately.or_else(|| match coming {
            Some(_) => None,
            None => its.no_attempt(now, self.room(pool)),
        });
        if let Some(why) = no_new {
            Mark::SettingsWithoutNew.hit_if(lately.is_none());
            let why = Report { severity: Severity::Error, ..why.clone() };
            self.give_back(now, server);
            return self.unit_refused(now, client, why);
        }
        let promised = match coming {
            Some(coming) => {
                Mark::SettingsForComing.hit();
                coming
            }
            // The last attempt failed, and so may this one: the server that there is stays.
            None if its.last_failure.is_some() && its.total < its.most() => {
                let new = self.open(now, pool);
                Mark::RoomForAnotherTaken.hit_if(new.is_none());
                new.unwrap_or(server)
            }
            None => server,
        };
        self.servers[promised].promised_to = Some(client);
        if promised != server {
            self.servers[promised].birth = birth;
        }
        Mark::SettingsForAnother.hit_if(promised != server && coming.is_none());
        if promised == server {
            Mark::SettingsForReplacement.hit();
            self.part(client);
            self.dismiss(now, server);
        } else {
            self.give_back(now, server);
        }
        self.clients[client].leg = Leg::Preparing(promised);
        // If what was under way for a waiter is this client's now, the waiter needs another.
        self.refill(now, pool);
    }

    /// Brings a server to these settings.
    pub(crate) fn replay(&mut self, server: ServerId, settings: &Rc<Settings>) {
        let text = self.text_to_set(server, settings, None);
        let its = &mut self.servers[server];
        its.braking = None;
        its.replaying = Some(Rc::clone(settings));
        self.run_own(server, &text);
    }

    /// What brings a server to a client's settings is answered. It is one query string: all of them
    /// are set, or none.
    pub(crate) fn replayed(&mut self, server: ServerId) -> Option<Box<Report>> {
        let its = &mut self.servers[server];
        let error = its.own_error.take();
        its.plans.answered(error.is_none());
        if let Some(settings) = its.replaying.take()
            && error.is_none()
        {
            its.settings = settings;
            its.brake = its.braking;
            its.touched = true;
            its.outdated = None;
        }
        its.braking = None;
        error
    }

    /// Whether a client keeps its server between transactions.
    pub(crate) fn keeps_server(&self, client: &Client, server: &Server) -> bool {
        self.keeps_server_beside(client, server, Pins::NONE)
    }

    /// Whether it keeps it for anything but these.
    pub(crate) fn keeps_server_beside(&self, client: &Client, server: &Server, but: Pins) -> bool {
        server.mode == PoolMode::Session
            || !client.pins.difference(but).is_empty()
            || client.awaits_schema()
            || matches!(client.unnamed, UnnamedStatement::TooLong)
    }

    /// Ends the lease of a server that is clean: no reply owed, no transaction, no state.
    pub(crate) fn give_back(&mut self, now: Time, server: ServerId) {
        if let Some(client) = self.servers[server].client()
            && self.clients.find(client).is_some()
        {
            self.part(client);
        }
        // Its client may have stopped it; the next one must not inherit that.
        self.read_server(server, true);
        let its = &self.servers[server];
        if its.status.in_block() || its.replies.in_batch() {
            // One that was made to fail for a client that has not sent anything, or is in the
            // middle of a batch of ours.
            Mark::StandInUnused.hit_if(its.status.in_block());
            return self.clean(now, server, Left::Nothing);
        }
        self.offer(now, server);
    }

    /// A server is free: the client at the head of the queue gets it, or the pool.
    pub(crate) fn offer(&mut self, now: Time, server: ServerId) {
        debug_assert!(
            self.servers[server].replies.is_empty(),
            "a server with replies owed is free"
        );
        let pool = self.servers[server].pool;
        self.servers[server].alters = None;
        if self.settle_cancel(server) {
            self.servers[server].state = ServerState::AwaitingCancel;
            // Who has waited for a place on it lacks a server that is shared.
            return self.refill(now, pool);
        }
        self.refresh_welcomes(server);
        let its = &self.servers[server];
        let of = &self.pools[pool];
        let too_old = its.is_too_old(now, of.spec.server_lifetime);
        let too_many = of.surplus() > 0;
        // One that is in the middle of a message, or of a transaction, that nobody asked for is no
        // server to rely on.
        let astray = its.body.left > 0 || its.status.in_block();
        Mark::AstrayComesFree.hit_if(astray);
        Mark::DoomedComesFree.hit_if(its.doomed);
        Mark::OldComesFree.hit_if(too_old);
        Mark::SurplusComesFree.hit_if(too_many);
        let to_go = its.doomed || too_old || too_many || astray;
        if to_go || its.promised_to.is_none() && self.pays(pool) {
            self.close_server(now, server);
            return;
        }
        if self.becomes_listener(now, server) || self.reads_names(now, server) {
            return;
        }
        if self.servers[server].promised_to.is_none()
            && self.knows_names(pool)
            && self.warms(now, server)
        {
            return;
        }
        let promised_to = self.servers[server].promised_to.take();
        Mark::PromiseKept.hit_if(promised_to.is_some());
        let mut next = match promised_to {
            None if self.knows_names(pool) => self.next_waiter(now, pool),
            None | Some(_) => promised_to,
        };
        while let Some(client) = next
            && (self.finds_none(now, server, client) || self.finds_another(now, server, client))
        {
            if self.warms(now, server) {
                Mark::WarmsBehindPassed.hit();
                return;
            }
            next = self.next_waiter(now, pool);
        }
        match next {
            Some(client) => {
                self.lend(now, server, client);
                if let Leg::Held(_) = self.clients[client].leg {
                    self.resume(client);
                }
            }
            None => {
                let its = &mut self.servers[server];
                its.state = ServerState::Idle;
                its.changed = now;
                self.pools[pool].idle.push(server);
            }
        }
    }

    /// Takes the client at the head of the queue out of it.
    fn next_waiter(&mut self, now: Time, pool: PoolId) -> Option<ClientId> {
        let mut index = 0;
        while let Some(waiter) = self.pools[pool].waiters.get(index).copied() {
            let current = self.clients.find(waiter.client).map(|client| client.leg);
            let waits = current == Some(Leg::Waiting(waiter.ticket));
            if waits && waiter.shares.is_some() {
                index += 1;
                continue;
            }
            self.pools[pool].waiters.remove(index);
            if !waits {
                Mark::VoidPlacePassed.hit();
                continue;
            }
            let its = &mut self.pools[pool];
            its.waiting -= 1;
            its.stats.wait_time += now - waiter.since;
            self.remove_void_places(pool);
            return Some(waiter.client);
        }
        None
    }

    /// Void entries are taken out before there are many more of them than others.
    pub(crate) fn remove_void_places(&mut self, pool: PoolId) {
        let pool = &mut self.pools[pool];
        if pool.waiters.len() > pool.most_places() {
            Mark::VoidPlacesRemoved.hit();
            let clients = &self.clients;
            pool.waiters.retain(|waiter| {
                let leg = clients.find(waiter.client).map(|client| client.leg);
                leg == Some(Leg::Waiting(waiter.ticket))
            });
        }
    }

    /// A client no longer waits. Its entry in the queue is void from now on.
    pub(crate) fn leave_queue(&mut self, now: Time, client: ClientId) {
        let Some(pool) = self.clients[client].pool() else { return };
        match self.clients[client].leg {
            Leg::Waiting(_) => {
                Mark::QueueLeft.hit();
                let its = &mut self.clients[client];
                its.leg = Leg::None;
                let access = its.unit.take().map(|unit| unit.access);
                self.pools[pool].waiting -= 1;
                self.pools[pool].shares_no_more(access);
                self.remove_void_places(pool);
                // What the next one may have is not what this one has waited for.
                self.grant_again(now, pool);
            }
            Leg::Preparing(server) => {
                self.part(client);
                let promised = self.servers[server].promised_to.take().is_some();
                if self.servers[server].dedicated {
                    Mark::DedicatedLeft.hit();
                    self.abort_server(now, server);
                } else if !promised {
                    // Its settings are on their way: the server goes on alone.
                    Mark::PreparedServerLeft.hit();
                    self.clean(now, server, Left::Nothing);
                } else {
                    Mark::PromiseLeft.hit();
                }
            }
            Leg::Granted(server) => {
                Mark::GrantLeft.hit();
                let its = &mut self.clients[client];
                its.leg = Leg::None;
                let access = its.unit.take().map(|unit| unit.access);
                self.servers[server].grants_no_more(access);
                self.grant(now, pool);
                self.runs_dry(now, server);
            }
            Leg::None | Leg::Held(_) | Leg::Pipelined(_) => {}
        }
    }

    /// Sends a query of our own, whose reply nobody else sees.
    pub(crate) fn run_own(&mut self, server: ServerId, text: &[u8]) {
        self.end_joined(server);
        let its = &mut self.servers[server];
        its.own_error = None;
        its.replies.push(Expected { kind: Kind::Query { sent: 0 }, sink: Sink::Own });
        self.actions.inject(Endpoint::Server(server), |out| frontend::write_query(out, text));
    }

    /// The client of a server is gone, or is done with it. What it left is removed step by step,
    /// then the server is free.
    pub(crate) fn clean(&mut self, now: Time, server: ServerId, left: Left) {
        self.wake_for_pins(self.servers[server].pool);
        self.end_batch(server);
        let its = &mut self.servers[server];
        its.state = ServerState::Cleaning { step: Cleaning::Draining, left };
        its.answer = None;
        its.puts_back = false;
        its.swallowed = 0;
        Mark::CleanedUnread.hit_if(its.read_paused);
        let quiet = its.replies.is_empty();
        self.read_server(server, true);
        if quiet {
            self.clean_further(now, server);
        }
    }

    /// Ends a batch of which all that was sent is ours, put in front of a message that was not.
    fn end_batch(&mut self, server: ServerId) {
        let replies = &mut self.servers[server].replies;
        if replies.in_batch() {
            Mark::BatchOfOursEnded.hit();
            replies.push(Expected { kind: Kind::Sync, sink: Sink::Own });
            let to = Endpoint::Server(server);
            self.actions.inject(to, |out| out.extend_from_slice(&frontend::SYNC));
        }
    }

    /// Nothing is owed by a server that is being cleaned: the next step.
    pub(crate) fn clean_further(&mut self, now: Time, server: ServerId) {
        let its = &self.servers[server];
        let ServerState::Cleaning { step, left } = its.state else {
            return Mark::SettledUncleaned.hit();
        };
        debug_assert!(its.replies.is_empty());
        match step {
            Cleaning::Asking => return self.room_asked(now, server),
            Cleaning::Reading => return self.names_answered(now, server),
            Cleaning::Draining
            | Cleaning::RollingBack
            | Cleaning::Unsetting
            | Cleaning::Resetting
            | Cleaning::Done => {}
        }
        let replays = its.replaying.is_some();
        let refused = self.replayed(server).is_some();
        // What its client did not wait for is no part of the cleaning.
        let drained = step == Cleaning::Draining;
        Mark::SettingsRefusedForNobody.hit_if(drained && refused && replays);
        let failed = refused && !drained;
        Mark::CleaningRefused.hit_if(failed);
        let must_unset = left == Left::Session && self.must_unset(server);
        let its = &mut self.servers[server];
        let next = match step {
            _ if failed => None,
            _ if its.replies.may_be_ready_twice() => {
                Mark::SyncInDoubtOfNobody.hit();
                None
            }
            Cleaning::Draining if its.status.in_block() => Some(Cleaning::RollingBack),
            // PostgreSQL's ROLLBACK ends a transaction.
            _ if its.status.in_block() => {
                Mark::RollbackInVain.hit();
                None
            }
            Cleaning::Draining | Cleaning::RollingBack => match left {
                Left::Nothing => Some(Cleaning::Done),
                Left::Session if must_unset => Some(Cleaning::Unsetting),
                Left::Session | Left::Pins => Some(Cleaning::Resetting),
                Left::Unremovable => {
                    Mark::Unremovable.hit();
                    None
                }
            },
            Cleaning::Unsetting => Some(Cleaning::Resetting),
            Cleaning::Resetting => {
                if left != Left::Session || self.pools[its.pool].spec.reset_is_thorough() {
                    its.settings = self.interner.none();
                    its.plans = KeptPlans::NONE;
                    its.brake = None;
                    its.reset = false;
                    its.sequences = Sequences::Nobody;
                }
                // What it reports now is our doing, and no news of the server's.
                its.outdated = None;
                Some(Cleaning::Done)
            }
            Cleaning::Asking | Cleaning::Reading | Cleaning::Done => Some(Cleaning::Done),
        };
        let Some(step) = next else {
            return self.close_server(now, server);
        };
        its.state = ServerState::Cleaning { step, left };
        its.changed = now;
        match step {
            Cleaning::RollingBack => {
                Mark::RolledBack.hit();
                self.run_own(server, b"ROLLBACK");
            }
            Cleaning::Unsetting => {
                Mark::SettingsTakenBack.hit();
                let none = self.interner.none();
                self.replay(server, &none);
            }
            Cleaning::Resetting => {
                let spec = &self.pools[its.pool].spec;
                let reset = match left {
                    Left::Session => spec.reset_query.clone(),
                    Left::Nothing | Left::Pins | Left::Unremovable => "DISCARD ALL".to_owned(),
                };
                if reset.is_empty() {
                    Mark::NoResetQuery.hit();
                    self.give_back(now, server);
                } else {
                    Mark::Reset.hit();
                    self.run_own(server, reset.as_bytes());
                }
            }
            Cleaning::Asking | Cleaning::Reading | Cleaning::Draining | Cleaning::Done => {
                self.give_back(now, server);
            }
        }
    }

    /// Whether the pool's reset query could change settings that the server is believed to have:
    /// what it does to them its text does not show. Taken back before, they are not believed in
    /// any more, and what the reset query sets is where the next client's settings begin.
    fn must_unset(&self, server: ServerId) -> bool {
        let its = &self.servers[server];
        let spec = &self.pools[its.pool].spec;
        let opaque = !spec.reset_query.is_empty() && !spec.reset_is_thorough();
        opaque && !Rc::ptr_eq(&its.settings, &self.interner.none())
    }
}

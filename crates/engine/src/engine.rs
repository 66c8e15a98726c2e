use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use crate::action::{Action, Actions, CancelId, ClientId, Endpoint, ServerId};
use crate::cancel::Cancel;
use crate::catalogue::{Database, Names};
use crate::client::{Client, Ends, Phase};
use crate::client_login::{NEWCOMERS, too_many_clients};
use crate::commons::Member;
use crate::errors::TOO_MANY_LOGINS;
use crate::handover::Elsewhere;
use crate::marks::Mark;
use crate::plan::Plan;
use crate::pool::{Pool, PoolId, PoolSpec};
use crate::random::Random;
use crate::server::{Server, ServerState};
use crate::server_login::{Retry, unreachable_server};
use crate::settings::Interner;
use crate::shares::{Of, Share, ShareId};
use crate::store::Store;
use crate::time::Time;

/// Everything that decides what to do with a message, for one worker.
///
/// Each method that takes an event leaves in [`Engine::actions`] what the driver has to do; the
/// driver carries it out before it calls again. See the crate's documentation.
pub struct Engine {
    /// What to do. The driver takes it after every call.
    pub actions: Actions,
    /// Which engine of the process it is.
    pub(crate) member: Member,
    pub(crate) plan: Plan,
    pub(crate) clients: Store<Client>,
    pub(crate) servers: Store<Server>,
    pub(crate) cancels: Store<Cancel>,
    pub(crate) pools: Store<Pool>,
    /// By database and user.
    pub(crate) pool_of: BTreeMap<String, BTreeMap<String, PoolId>>,
    /// Servers of all pools that clients share.
    pub(crate) hot: usize,
    /// Servers that are to be sent a Sync yet, for units that are joined.
    pub(crate) open: Vec<ServerId>,
    pub(crate) shares: Store<Share>,
    pub(crate) share_of: BTreeMap<Of, ShareId>,
    /// The pools of other engines, by database and user.
    pub(crate) elsewhere: BTreeMap<String, BTreeMap<String, Elsewhere>>,
    /// What is known of the loud names of databases.
    pub(crate) names: BTreeMap<Database, Names>,
    pub(crate) interner: Interner,
    pub(crate) random: Random,
    /// When clients have come that have not logged in yet, wherever that was, and their places.
    pub(crate) logins: BTreeSet<(Time, usize)>,
    /// Clients that are no more, and whose connections are still open: they count.
    pub(crate) leaving_clients: usize,
    /// When clients were seen between transactions last, and their places, where that has a limit.
    pub(crate) quiet: BTreeSet<(Time, usize)>,
    /// Clients with a batch without its end, and since when, oldest first.
    pub(crate) unfinished: VecDeque<(ClientId, Time)>,
    /// Clients are asked to leave; nobody new is taken.
    pub(crate) draining: bool,
}

impl Engine {
    /// The only engine of a process. All that is random in it comes from `seed`.
    pub fn new(plan: Plan, seed: [u8; 32]) -> Self {
        Self::with(Member::alone(), plan, seed)
    }

    /// One of the engines of a process, for the pools that live there.
    pub fn with(member: Member, plan: Plan, seed: [u8; 32]) -> Self {
        let mut engine = Self {
            actions: Actions::default(),
            member,
            clients: Store::new(),
            servers: Store::new(),
            cancels: Store::new(),
            pools: Store::new(),
            pool_of: BTreeMap::new(),
            hot: 0,
            open: Vec::new(),
            shares: Store::new(),
            share_of: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            names: BTreeMap::new(),
            interner: Interner::new(),
            random: Random::new(seed),
            logins: BTreeSet::new(),
            leaving_clients: 0,
            quiet: BTreeSet::new(),
            unfinished: VecDeque::new(),
            draining: false,
            plan,
        };
        for spec in engine.take_own_specs() {
            engine.add_pool(spec);
        }
        engine
    }

    /// Whether clients share a server now.
    pub fn is_sharing(&self) -> bool {
        self.hot > 0
    }

    /// The pools of the plan that live here. Of the others it is noted where.
    pub(crate) fn take_own_specs(&mut self) -> Vec<PoolSpec> {
        let here = self.member.index();
        let (own, others): (Vec<_>, Vec<_>) =
            self.plan.take_specs().into_iter().partition(|spec| spec.home == here);
        self.elsewhere.clear();
        for PoolSpec { database, user, home, address, .. } in others {
            self.note_elsewhere(database, user, Elsewhere { worker: home, address });
        }
        own
    }

    /// What the log and the console call a client, and it was told as its process id.
    pub fn client_number(&self, id: ClientId) -> i32 {
        self.member.client_number(id)
    }

    /// A client has connected; without `ends` it is not known from where to where.
    pub fn client_connected(&mut self, now: Time, ends: Option<Ends>) -> ClientId {
        let id = self.clients.insert(Client::new(now, ends, self.interner.none()));
        self.logins.insert((now, id.index()));
        self.member.commons().clients.add();
        let crowd = self.member.commons().crowd();
        let exceeded = |most: &u32| crowd > *most as usize + NEWCOMERS;
        let most = self.plan.max_logins;
        if self.member.commons().logins.add() >= most {
            Mark::TooManyLogins.hit();
            let report = TOO_MANY_LOGINS.report(&[]).detail(format!("max_logins is {most}."));
            self.expel(now, id, report);
        } else if let Some(most) = self.plan.max_clients.filter(exceeded) {
            Mark::TooManyNewcomers.hit();
            self.expel(now, id, too_many_clients(most));
        }
        id
    }

    /// Bytes of a client: all that it sent and that was not consumed yet, in order. Says how many
    /// are consumed; the driver retains the others and passes them again, with what has come
    /// since, when more comes or [`Action::Resume`] asks for it.
    pub fn client_input(&mut self, now: Time, id: ClientId, input: &[u8]) -> usize {
        let Some(client) = self.clients.find_mut(id) else {
            return input.len();
        };
        client.woken = false;
        let was_greeted = client.phase.is_greeted();
        let consumed = match client.phase {
            Phase::Startup => self.startup_input(now, id, input),
            Phase::Login(_) => self.login_input(now, id, input),
            Phase::Ready(pool) => self.ready_input(now, id, pool, input),
            Phase::Console => self.console_input(now, id, input),
            Phase::Cancelling => input.len(),
            Phase::Welcome(_) => {
                self.await_welcome(now, id);
                0
            }
        };
        let Some(client) = self.clients.find(id) else {
            return consumed;
        };
        let goes_on = match client.phase {
            _ if client.woken => false,
            Phase::Startup | Phase::Login(_) if client.ended && consumed == 0 => {
                // What is left can never become whole.
                Mark::LoginCutOff.hit();
                self.client_left(now, id);
                return input.len();
            }
            Phase::Startup => client.ended,
            // A client that knows what it will be asked has answered already.
            Phase::Login(_) => consumed > 0,
            Phase::Ready(_) | Phase::Console => !was_greeted,
            Phase::Cancelling | Phase::Welcome(_) => false,
        };
        if goes_on && (consumed < input.len() || client.ended) {
            Mark::LoginGoesOn.hit();
            self.resume(id);
        }
        consumed
    }

    /// A client will send no more: its stream has ended. It may still read.
    pub fn client_ended(&mut self, now: Time, id: ClientId) {
        let Some(client) = self.clients.find_mut(id) else { return };
        client.ended = true;
        match client.phase {
            // Input that is retained comes first: a Query just before the end is still run, and so
            // is one whose client knew what it would be asked at its login.
            Phase::Startup
            | Phase::Login(_)
            | Phase::Ready(_)
            | Phase::Welcome(_)
            | Phase::Console => {
                self.resume(id);
            }
            Phase::Cancelling => {
                Mark::CancelRequesterGone.hit();
                self.client_left(now, id);
            }
        }
    }

    /// A client's connection is broken.
    pub fn client_broken(&mut self, now: Time, id: ClientId) {
        if self.clients.find(id).is_some() {
            Mark::ClientBroken.hit();
            self.client_gone(now, id, "connection broken", Action::Abort(Endpoint::Client(id)));
        }
    }

    /// The connection that [`Action::Connect`] asked for is made. `local`: where it begins, over
    /// TCP, if that is known.
    pub fn connected(&mut self, now: Time, endpoint: Endpoint, local: Option<SocketAddr>) {
        match endpoint {
            Endpoint::Server(id) => self.server_connected(now, id, local),
            Endpoint::Cancel(id) => self.cancel_connected(id, local),
            Endpoint::Client(_) => {}
        }
    }

    /// The connection that [`Action::Connect`] asked for could not be made.
    pub fn connect_failed(&mut self, now: Time, endpoint: Endpoint, cause: &str) {
        match endpoint {
            Endpoint::Server(id) => {
                if let Some(server) = self.servers.find(id) {
                    Mark::ConnectFailed.hit();
                    let address = &self.pools[server.pool].spec.address;
                    let report = unreachable_server(address, cause);
                    self.login_failed(now, id, report, Retry::Later);
                }
            }
            Endpoint::Cancel(id) => {
                Mark::CancelConnectFailed.hit();
                self.cancel_ended(now, id);
            }
            Endpoint::Client(_) => {}
        }
    }

    /// Whether the connection that [`Action::Connect`] asked for is still wanted.
    pub fn awaits(&self, endpoint: Endpoint) -> bool {
        match endpoint {
            Endpoint::Server(id) => {
                let server = self.servers.find(id);
                server.is_some_and(|server| matches!(server.state, ServerState::Connecting))
            }
            Endpoint::Cancel(id) => self.cancels.find(id).is_some(),
            Endpoint::Client(_) => false,
        }
    }

    /// A connection is closed that [`Action::Close`] or [`Action::Abort`] has named. It may have
    /// stayed open for a while: a client that does not read its last words keeps a descriptor.
    pub fn closed(&mut self, endpoint: Endpoint) {
        match endpoint {
            Endpoint::Client(_) => {
                self.leaving_clients -= 1;
                self.member.commons().clients.sub();
            }
            Endpoint::Cancel(_) | Endpoint::Server(_) => {}
        }
    }

    /// Bytes of a server; as [`Engine::client_input`].
    pub fn server_input(&mut self, now: Time, id: ServerId, input: &[u8]) -> usize {
        let Some(server) = self.servers.find(id) else {
            return input.len();
        };
        match server.state {
            ServerState::Login(_) => self.server_login_input(now, id, input),
            ServerState::Forsaken => {
                self.pools[server.pool].stats.sent += input.len() as u64;
                self.forsaken_input(now, id, input);
                input.len()
            }
            ServerState::Connecting
            | ServerState::Idle
            | ServerState::Lent(_)
            | ServerState::Pipelined
            | ServerState::Cleaning { .. }
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Leaving => self.reply_input(now, id, input, 0),
        }
    }

    /// A server's connection is broken, or has ended: what it has said may not have come.
    pub fn server_broken(&mut self, now: Time, id: ServerId, cause: &str) {
        let Some(server) = self.servers.find(id) else { return };
        if matches!(server.state, ServerState::Forsaken) {
            Mark::ForsakenEnded.hit();
            return self.abort_server(now, id);
        }
        self.server_lost(now, id, cause);
    }

    /// The stream of a cancel's connection has ended: whatever it carried is done.
    pub fn cancel_closed(&mut self, now: Time, id: CancelId) {
        self.cancel_ended(now, id);
    }

    /// A cancel's connection is broken: whether it did its work is not known.
    pub fn cancel_broken(&mut self, now: Time, id: CancelId) {
        if self.cancels.find(id).is_some() {
            Mark::CancelBroken.hit();
            self.cancel_in_doubt(now, id, "its connection broke");
        }
    }

    /// What was written to a connection piles up in the driver, or no longer does: whoever feeds
    /// it is not read meanwhile.
    pub fn congested(&mut self, endpoint: Endpoint, congested: bool) {
        match endpoint {
            Endpoint::Client(id) => {
                let Some(client) = self.clients.find_mut(id) else {
                    return Mark::CongestedLeft.hit();
                };
                Mark::ClientCongested.hit_if(congested);
                let answer_waits = client.answer_waits();
                client.congested = congested;
                let held = &self.member.commons().held;
                if congested {
                    let handed = std::mem::take(&mut client.handed);
                    Mark::ReplyPilesUp.hit_if(handed > 0);
                    held.add_many(handed, usize::MAX);
                    client.piled += handed;
                } else {
                    held.sub_many(std::mem::take(&mut client.piled));
                }
                if let Some(server) = client.server() {
                    self.read_server(server, !congested);
                } else if !congested && matches!(client.phase, Phase::Console) {
                    Mark::ConsoleReadOn.hit();
                    self.resume(id);
                }
                if !congested && answer_waits {
                    self.resume(id);
                }
            }
            Endpoint::Server(id) => {
                let Some(server) = self.servers.find_mut(id) else { return };
                Mark::ServerCongested.hit_if(congested);
                server.congested = congested;
                // Those who share it are few, and their units short.
                if let ServerState::Lent(client) = server.state {
                    self.read_client(client, !congested);
                } else {
                    Mark::CongestedUnlent.hit();
                }
            }
            Endpoint::Cancel(_) => {}
        }
    }

    /// Clients that are connected, those included that only have to read their last words.
    pub fn clients(&self) -> usize {
        self.clients.len() + self.leaving_clients
    }

    /// The connections that a transaction is under way on: servers that are not free, and the
    /// clients that hold them. A peer that has vanished there keeps a server from others.
    pub fn engaged(&self) -> Vec<Endpoint> {
        let mut engaged = Vec::new();
        for (id, server) in self.servers.iter() {
            match server.state {
                ServerState::Lent(client) => {
                    engaged.extend([Endpoint::Server(id), Endpoint::Client(client)]);
                }
                ServerState::Cleaning { .. }
                | ServerState::Listening
                | ServerState::Pipelined
                | ServerState::Forsaken => {
                    engaged.push(Endpoint::Server(id));
                }
                // Logins and cancels have limits of their own; a server without work is in
                // nobody's way.
                ServerState::Connecting
                | ServerState::Login(_)
                | ServerState::Idle
                | ServerState::AwaitingCancel
                | ServerState::Leaving => {}
            }
        }
        engaged
    }

    /// A client's input is looked at again, soon.
    pub(crate) fn resume(&mut self, id: ClientId) {
        if let Some(client) = self.clients.find_mut(id) {
            client.woken = true;
        }
        self.actions.push(Action::Resume(id));
    }

    pub(crate) fn read_server(&mut self, id: ServerId, on: bool) {
        let server = &mut self.servers[id];
        if server.read_paused == on {
            server.read_paused = !on;
            server.was_unread = true;
            self.actions.push(Action::Read(Endpoint::Server(id), on));
        }
    }

    pub(crate) fn read_client(&mut self, id: ClientId, on: bool) {
        let client = &mut self.clients[id];
        if client.read_paused == on {
            client.read_paused = !on;
            self.actions.push(Action::Read(Endpoint::Client(id), on));
        }
    }
}

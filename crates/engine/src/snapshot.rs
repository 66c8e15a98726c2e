//! What an engine is doing, as plain values: for the console and, later, for metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pgweir_config::{CONSOLE_DATABASES, Pipelining, PoolMode, Room};
use pgweir_sql::{Encoding, Loud};

use crate::Engine;
use crate::action::Address;
use crate::cancel::CancelProgress;
use crate::catalogue::Database;
use crate::client::{Client, Ends, Leg, Phase};
use crate::commons::Answer;
use crate::memory::Memory;
use crate::pins::PinView;
use crate::pipeline::{Access, InFlight};
use crate::pool::Pool;
use crate::replication::ReplicationKind;
use crate::route::Rules;
use crate::server::{Server, ServerState};
use crate::settings::DATABASE_ENCODING;
use crate::shares::{Of, Share};
use crate::stats::Stats;
use crate::time::Time;

/// One moment of one engine, or of all of a process.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub now: Time,
    /// Each pool, in the order of the configuration.
    pub pools: Vec<PoolView>,
    /// Each server that pools lead to.
    pub limits: Vec<LimitView>,
    /// Most server connections of one user.
    pub max_user_connections: Option<usize>,
    /// Most clients of one user.
    pub max_user_client_connections: Option<usize>,
    /// Each client that has logged in, or is about to.
    pub clients: Vec<ClientView>,
    /// Each server connection.
    pub servers: Vec<ServerView>,
    /// Each cancel.
    pub cancels: Vec<CancelView>,
    /// How many clients are logging in.
    pub logins: usize,
    /// Each database whose catalogue was read.
    pub louds: Vec<LoudView>,
    /// What is in memory.
    pub memory: Memory,
}

/// A pool.
#[derive(Clone, Debug)]
pub struct PoolView {
    /// Its place in the configuration.
    pub order: usize,
    /// The database that clients ask for.
    pub database: String,
    /// Their user name.
    pub user: String,
    /// It is in the configuration no more, and goes with its last client. There may be another of
    /// the same name by then.
    pub removed: bool,
    /// How long they keep a server.
    pub mode: PoolMode,
    /// Most servers.
    pub size: usize,
    /// Servers that are kept although nobody needs them.
    pub min_size: usize,
    /// Servers beyond `size` for those who have waited long.
    pub reserve: usize,
    /// Most servers of its database, over all users.
    pub max_db_connections: Option<usize>,
    /// Most clients of its database, over all users.
    pub max_db_client_connections: Option<usize>,
    /// Where they are.
    pub address: Address,
    /// The database's name there.
    pub server_database: String,
    /// Whom pgweir logs in there as.
    pub server_user: String,
    /// Age at which a server is closed once it is idle; `None`: never.
    pub server_lifetime: Option<Duration>,
    /// How long the client at the head of the queue has waited.
    pub longest_wait: Duration,
    /// So many of its servers clients may keep behind their transactions; `None`: all of them.
    pub max_pinned: Option<usize>,
    /// How its servers are shared, as far as its mode allows that.
    pub pipelining: Pipelining,
    /// So many of them may be shared now by what reads.
    pub hot_most: usize,
    /// So many units that read may stand on each of those.
    pub depth: usize,
    /// So many of them may be shared now by what changes or locks rows.
    pub write_hot_most: usize,
    /// So many units that do so may stand on each of those.
    pub write_depth: usize,
    /// What decides where a text of its clients goes.
    pub rules: Rules,
    /// What keeps its servers, for each reason that may; none in session mode.
    pub pins: Vec<PinView>,
    /// What it has done.
    pub stats: Stats,
}

/// A server, and how many connections there are.
#[derive(Clone, Debug)]
pub struct LimitView {
    /// Which.
    pub address: Address,
    /// Connections that there are.
    pub used: usize,
    /// What the server has said that it has room for.
    pub room: Option<Room>,
    /// Attempts that it has refused because it had too many.
    pub refused_full: u64,
}

/// A client.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// What it was told as its process id; unique among the clients of its time.
    pub id: i32,
    /// Database that it asked for.
    pub database: String,
    /// Its user name.
    pub user: String,
    /// What it was let in to.
    pub target: ClientTarget,
    /// What it is doing.
    pub state: ClientState,
    /// What it replicates.
    pub replication: Option<ReplicationKind>,
    /// From where to where it is connected, if that is known.
    pub ends: Option<Ends>,
    /// When it connected.
    pub since: Time,
    /// When it asked for its oldest unit that is not answered yet, or for its last one; when it
    /// connected if there was none.
    pub requested: Time,
    /// How long it has waited for a server until now.
    pub wait: Duration,
    /// The `application_name` of its startup packet.
    pub application_name: String,
    /// Id of the server that it holds.
    pub server: Option<u32>,
    /// Why that server stays with it, in words.
    pub pins: String,
}

/// The names of a database behind which sessions are changed unseen.
#[derive(Clone, Debug)]
pub struct LoudView {
    /// Of which database.
    pub database: Database,
    /// What they are.
    pub loud: Arc<Loud>,
}

/// What a client speaks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTarget {
    /// The console.
    Console,
    /// Servers of the pool that is named like its database and user.
    Pool,
}

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// It holds a server.
    Active,
    /// It holds none and waits for none.
    Idle,
    /// It waits for a server.
    Waiting,
}

/// A server connection.
#[derive(Clone, Debug)]
pub struct ServerView {
    /// Its place among the server connections.
    pub id: u32,
    /// Database and user of its pool.
    pub pool: (String, String),
    /// What its client replicates, which has it for itself.
    pub replication: Option<ReplicationKind>,
    /// Where it leads.
    pub address: Address,
    /// Where it begins, over TCP, if that is known.
    pub local: Option<SocketAddr>,
    /// What it is doing.
    pub state: ServerActivity,
    /// When it was opened, or has logged in.
    pub since: Time,
    /// When its state last changed.
    pub changed: Time,
    /// The backend's process id, if it told one.
    pub process_id: Option<i32>,
    /// Id of the client that holds it, or whose unit it runs.
    pub client: Option<i32>,
    /// Of a server that is shared, ids of the clients whose units are on it, in the order of
    /// sending; `None` for one who is gone.
    pub queue: Option<Vec<Option<i32>>>,
    /// So many of those at the front are under one Sync, and any of them may be the one that runs;
    /// none is, while one of ours is.
    pub joined: usize,
    /// It will be closed instead of being lent again.
    pub close_needed: bool,
}

/// What a server connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerActivity {
    /// A client holds it.
    Active,
    /// A cancel request of its last client may still reach it.
    BeingCanceled,
    /// It is in the pool.
    Idle,
    /// It connects or logs in.
    Login,
    /// Its last client is gone: what that left is being removed, or it is to end when what that
    /// left running is over.
    Tested,
}

/// A cancel, for which there is, or will be, a connection to a server besides those that are lent.
#[derive(Clone, Debug)]
pub struct CancelView {
    /// Its number, which is none of those of [`ServerView::id`].
    pub id: u32,
    /// Database and user of the pool whose server it is for.
    pub pool: (String, String),
    /// Where it leads.
    pub address: Address,
    /// Where it begins, over TCP, if that is known.
    pub local: Option<SocketAddr>,
    /// How far it has come.
    pub progress: CancelProgress,
    /// When it was asked for.
    pub since: Time,
    /// Who asked for it; nobody, where it was pgweir itself.
    pub requesters: Vec<RequesterView>,
}

/// A client that has asked for a cancel, and waits until that is done.
#[derive(Clone, Debug)]
pub struct RequesterView {
    /// As [`ClientView::id`].
    pub id: i32,
    /// From where to where it is connected, if that is known.
    pub ends: Option<Ends>,
    /// When it connected.
    pub since: Time,
}

/// The first number of a connection for a cancel. A process has fewer connections to servers.
const FIRST_CANCEL: u32 = 1 << 30;

impl Engine {
    /// What this engine is doing.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            now,
            pools: self.pool_views(now),
            limits: self.limit_views(),
            max_user_connections: self.plan.max_user_connections,
            max_user_client_connections: self.plan.max_user_client_connections,
            clients: self.client_views(now),
            servers: self.server_views(),
            cancels: self.cancel_views(),
            logins: self.clients.iter().filter(|(_, client)| logs_in(client)).count(),
            louds: self.loud_views(),
            memory: self.memory(),
        }
    }

    fn limit_views(&self) -> Vec<LimitView> {
        let servers = self.shares.iter().filter_map(|(_, share)| match &share.of {
            Of::Server(address) => Some((address, share)),
            Of::Database(_) | Of::User(_) => None,
        });
        let view = |(address, share): (&Address, &Share)| {
            let pools = share.pools().map(|pool| &self.pools[pool]);
            LimitView {
                address: address.clone(),
                used: share.count.used(),
                room: match self.member.commons().room(address) {
                    Answer::Room(room) => Some(room),
                    Answer::Awaited | Answer::Useless => None,
                },
                refused_full: pools.map(|pool| pool.stats.refused_full).sum(),
            }
        };
        let mut views: Vec<_> = servers.map(view).collect();
        views.sort_by(|a, b| a.address.cmp(&b.address));
        views
    }

    fn pool_views(&self, now: Time) -> Vec<PoolView> {
        let views = self.pools.iter().map(|(id, pool)| {
            let waits = |waiter: &&crate::pool::Waiter| {
                let leg = self.clients.find(waiter.client).map(|client| client.leg);
                leg == Some(Leg::Waiting(waiter.ticket))
            };
            let of = |access| pool.depths(access).filter(|_| pool.spec.mode != PoolMode::Session);
            let (depths, write_depths) = (of(Access::Read), of(Access::Write));
            PoolView {
                order: pool.spec.order,
                database: pool.spec.database.clone(),
                user: pool.spec.user.clone(),
                removed: pool.removed,
                mode: pool.spec.mode,
                size: pool.spec.size,
                min_size: pool.spec.min_size,
                reserve: pool.spec.reserve,
                max_db_connections: pool.spec.max_db_connections,
                max_db_client_connections: pool.spec.max_db_client_connections,
                address: pool.spec.address.clone(),
                server_database: pool.spec.server_database.clone(),
                server_user: pool.spec.server_user.clone(),
                server_lifetime: pool.spec.server_lifetime,
                longest_wait: pool
                    .waiters
                    .iter()
                    .find(waits)
                    .map_or(Duration::ZERO, |waiter| now - waiter.since),
                max_pinned: pool.spec.max_pinned,
                pipelining: depths.map_or(Pipelining::Off, |_| pool.spec.pipelining),
                hot_most: depths.map_or(0, |depths| depths.hot),
                depth: depths.map_or(0, |depths| depths.depth),
                write_hot_most: write_depths.map_or(0, |depths| depths.hot),
                write_depth: write_depths.map_or(0, |depths| depths.depth),
                rules: rules(pool),
                pins: self.pin_views(id, pool),
                stats: pool.stats,
            }
        });
        views.collect()
    }

    fn client_views(&self, now: Time) -> Vec<ClientView> {
        let views = self.clients.iter().filter_map(|(id, client)| {
            let (target, database, user) = match client.phase {
                Phase::Startup | Phase::Login(_) | Phase::Cancelling => return None,
                Phase::Console => {
                    let admin = self.plan.admin.as_ref().map(|admin| admin.username.as_str());
                    (ClientTarget::Console, CONSOLE_DATABASES[0], admin.unwrap_or_default())
                }
                Phase::Welcome(_) | Phase::Ready(_) => {
                    let spec = &self.pools[client.pool()?].spec;
                    (ClientTarget::Pool, &*spec.database, &*spec.user)
                }
            };
            let asked = client.asked.map(|asked| asked.since);
            let name = client.settings.name().unwrap_or_default();
            let (state, server) = match client.leg {
                Leg::None => (ClientState::Idle, None),
                Leg::Waiting(_) => (ClientState::Waiting, None),
                Leg::Preparing(server)
                | Leg::Held(server)
                | Leg::Granted(server)
                | Leg::Pipelined(server) => (ClientState::Active, Some(server)),
            };
            Some(ClientView {
                id: self.member.client_number(id),
                database: database.to_owned(),
                user: user.to_owned(),
                target,
                state,
                replication: client.replication.as_ref().map(|replication| replication.kind),
                ends: client.ends,
                since: client.since,
                requested: asked.unwrap_or(client.requested),
                wait: match (state, asked) {
                    (ClientState::Waiting, Some(asked)) => now - asked,
                    _ => Duration::ZERO,
                },
                application_name: String::from_utf8_lossy(name).into_owned(),
                server: server.map(|server| self.member.server_number(server)),
                pins: client.pins_in_words(),
            })
        });
        views.collect()
    }

    fn replicates(&self, server: &Server) -> Option<ReplicationKind> {
        let client = server.client().or(server.promised_to).filter(|_| server.dedicated)?;
        Some(self.clients.find(client)?.replication.as_ref()?.kind)
    }

    /// Whose units are on a server, if it is shared.
    fn queue(&self, server: &Server) -> Option<Vec<Option<i32>>> {
        let number = |unit: &InFlight| Some(self.member.client_number(unit.client?));
        let is_shared = matches!(server.state, ServerState::Pipelined);
        is_shared.then(|| server.pipeline.iter().map(number).collect())
    }

    fn server_views(&self) -> Vec<ServerView> {
        let views = self.servers.iter().map(|(id, server)| {
            let spec = &self.pools[server.pool].spec;
            ServerView {
                id: self.member.server_number(id),
                pool: (spec.database.clone(), spec.user.clone()),
                replication: self.replicates(server),
                address: server.address.clone(),
                local: server.local,
                state: match server.state {
                    ServerState::Connecting | ServerState::Login(_) => ServerActivity::Login,
                    ServerState::Idle => ServerActivity::Idle,
                    ServerState::Lent(_) | ServerState::Listening | ServerState::Pipelined => {
                        ServerActivity::Active
                    }
                    ServerState::Cleaning { .. } | ServerState::Forsaken | ServerState::Leaving => {
                        ServerActivity::Tested
                    }
                    ServerState::AwaitingCancel => ServerActivity::BeingCanceled,
                },
                since: server.since,
                changed: server.changed,
                process_id: server.key.as_ref().map(|key| key.process_id),
                client: server.client().map(|client| self.member.client_number(client)),
                queue: self.queue(server),
                joined: if server.replies.is_ours() { 0 } else { server.group() },
                close_needed: server.doomed,
            }
        });
        views.collect()
    }

    fn cancel_views(&self) -> Vec<CancelView> {
        let views = self.cancels.iter().filter_map(|(id, cancel)| {
            let server = self.servers.find(cancel.server)?;
            let spec = &self.pools[server.pool].spec;
            let requesters = cancel.requesters.iter().filter_map(|id| {
                let client = self.clients.find(*id)?;
                let number = self.member.client_number(*id);
                Some(RequesterView { id: number, ends: client.ends, since: client.since })
            });
            // Every one is a socket, and a process has fewer than 2^30 of them.
            let number = (id.index() * self.member.workers() + self.member.index()) as u32;
            Some(CancelView {
                id: FIRST_CANCEL + number,
                pool: (spec.database.clone(), spec.user.clone()),
                address: server.address.clone(),
                local: cancel.local,
                progress: cancel.progress,
                since: cancel.since,
                requesters: requesters.collect(),
            })
        });
        views.collect()
    }
}

fn rules(pool: &Pool) -> Rules {
    let (spec, loud) = (&pool.spec, Arc::clone(&pool.loud));
    let keeping = (spec.mode != PoolMode::Session).then(|| spec.keeping(spec.mode));
    let database = pool.at_login.as_ref().and_then(|its| its.value(DATABASE_ENCODING));
    let encoding = Encoding::Exact.within(database.unwrap_or_default());
    Rules { unshared: pool.unshared(), loud, encoding, keeping }
}

/// Whether a client has not been greeted yet.
fn logs_in(client: &Client) -> bool {
    match client.phase {
        Phase::Startup | Phase::Login(_) | Phase::Welcome(_) => true,
        Phase::Cancelling | Phase::Ready(_) | Phase::Console => false,
    }
}

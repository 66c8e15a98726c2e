//! What the clients and the servers of each pool are doing, counted once for all who tell it.

use std::collections::BTreeMap;

use pgweir_engine::{
    CancelProgress, CancelView, ClientState, ClientTarget, ClientView, PoolView, ServerActivity,
    ServerView, Snapshot,
};

/// A census of each pool.
pub(crate) struct Censuses<'a>(BTreeMap<(&'a str, &'a str), Census>);

impl<'a> Censuses<'a> {
    /// Counts all that there are.
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        let mut censuses = BTreeMap::<(&str, &str), Census>::new();
        for client in &snapshot.clients {
            match client.target {
                ClientTarget::Console => {}
                ClientTarget::Pool => {
                    let pool = (&*client.database, &*client.user);
                    censuses.entry(pool).or_default().count_client(client);
                }
            }
        }
        for server in &snapshot.servers {
            let (database, user) = &server.pool;
            censuses.entry((database, user)).or_default().count_server(server);
        }
        for cancel in &snapshot.cancels {
            let (database, user) = &cancel.pool;
            censuses.entry((database, user)).or_default().count_cancel(cancel);
        }
        Self(censuses)
    }

    /// Of this pool.
    pub(crate) fn of_pool(&self, pool: &PoolView) -> Census {
        self.0.get(&(&*pool.database, &*pool.user)).copied().unwrap_or_default()
    }
}

/// How many of a pool do what.
#[derive(Clone, Copy, Default)]
pub(crate) struct Census {
    pub(crate) clients_active: u32,
    pub(crate) clients_waiting: u32,
    pub(crate) clients_active_cancel: usize,
    pub(crate) clients_waiting_cancel: usize,
    pub(crate) servers_active: u32,
    pub(crate) servers_active_cancel: u32,
    pub(crate) servers_being_canceled: u32,
    pub(crate) servers_idle: u32,
    pub(crate) servers_tested: u32,
    pub(crate) servers_login: u32,
    /// Of the active ones.
    pub(crate) servers_shared: u32,
}

impl Census {
    fn count_client(&mut self, client: &ClientView) {
        let count = match client.state {
            // A client without work counts as active in SHOW POOLS and as idle in SHOW CLIENTS.
            ClientState::Active | ClientState::Idle => &mut self.clients_active,
            ClientState::Waiting => &mut self.clients_waiting,
        };
        *count += 1;
    }

    /// A connection for a cancel is one of a server, and each client that asked for it counts.
    fn count_cancel(&mut self, cancel: &CancelView) {
        let (clients, servers) = match cancel.progress {
            CancelProgress::HeldBack => (&mut self.clients_waiting_cancel, None),
            CancelProgress::Connecting => {
                (&mut self.clients_waiting_cancel, Some(&mut self.servers_login))
            }
            CancelProgress::Sent => {
                (&mut self.clients_active_cancel, Some(&mut self.servers_active_cancel))
            }
        };
        *clients += cancel.requesters.len();
        servers.into_iter().for_each(|servers| *servers += 1);
    }

    fn count_server(&mut self, server: &ServerView) {
        let count = match server.state {
            ServerActivity::Active => &mut self.servers_active,
            ServerActivity::BeingCanceled => &mut self.servers_being_canceled,
            ServerActivity::Idle => &mut self.servers_idle,
            ServerActivity::Login => &mut self.servers_login,
            ServerActivity::Tested => &mut self.servers_tested,
        };
        *count += 1;
        self.servers_shared += u32::from(server.queue.is_some());
    }
}

use std::fmt::Write;
use std::path::Path;

use pgweir_config::{Config, PoolMode};
use pgweir_engine::Plan;

use crate::topology::PORT;

/// A configuration, as it was drawn.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) limits: Limits,
    pub(crate) times: Times,
    pub(crate) pools: Vec<Pool>,
    /// Connections beyond a pool's size, for clients that have waited for so many milliseconds.
    pub(crate) reserve: u64,
    pub(crate) reserve_ms: u64,
    /// Servers are asked what they have room for.
    pub(crate) asks_for_room: bool,
}

/// How many there may be, if there is a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Connections to a server, of a database, of a user.
    pub(crate) server: Option<u64>,
    pub(crate) database: Option<u64>,
    pub(crate) user: Option<u64>,
    /// Connections to a server that are being made.
    pub(crate) parallelism: u64,
    /// Clients: all, those before their login, of a database, of a user.
    pub(crate) clients: Option<u64>,
    pub(crate) logins: Option<u64>,
    pub(crate) database_clients: Option<u64>,
    pub(crate) user_clients: Option<u64>,
}

/// How long it may take, in microseconds, if there is a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// A connection to a server, up to the end of the login.
    pub(crate) connect: u64,
    /// A server may be idle, and may live.
    pub(crate) idle: Option<u64>,
    pub(crate) lifetime: Option<u64>,
    pub(crate) statement: Option<u64>,
    pub(crate) transaction: Option<u64>,
    /// A client may be silent, inside and outside a transaction, and before its login is over.
    pub(crate) silence_in_block: Option<u64>,
    pub(crate) silence: Option<u64>,
    pub(crate) login: Option<u64>,
}

/// The pool of a database and a user.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// Whether the configuration has it.
    pub(crate) here: bool,
    /// The database, or "*" for all that have no pool of their own.
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) mode: PoolMode,
    /// A client may wait so long for a server, in microseconds.
    pub(crate) wait: Option<u64>,
    pub(crate) size: u64,
    /// So many servers are kept.
    pub(crate) least: u64,
    /// Which server.
    pub(crate) cluster: usize,
    /// What is run behind a session.
    pub(crate) reset_query: &'static str,
}

impl Configuration {
    /// How long a client of that pool may wait, if there is a limit and the pool.
    pub(crate) fn wait(&self, pool: usize) -> Option<u64> {
        self.pools[pool].wait.filter(|_| self.pools[pool].here)
    }

    /// Most connections of one of its pools.
    pub(crate) fn most(&self, pool: usize) -> u64 {
        self.pools[pool].size + self.reserve
    }

    /// The file that a user would write.
    pub(crate) fn text(&self) -> String {
        let ms = |micros: Option<u64>| micros.unwrap_or(0) / 1_000;
        let Times { connect, idle, lifetime, statement, transaction, .. } = self.times;
        let Times { silence_in_block, silence, login, .. } = self.times;
        let mut text = format!(
            "[general]\nhost = \"127.0.0.1\"\nport = 6432\nauth_type = \"trust\"\n\
             connect_timeout = {}\nidle_timeout = {}\nserver_lifetime = {}\n\
             statement_timeout = {}\ntransaction_timeout = {}\n\
             idle_client_in_transaction_timeout = {}\nclient_idle_timeout = {}\n\
             client_login_timeout = {}\nquery_wait_timeout = 0\nconnect_parallelism = {}\n\
             reserve_pool_size = {}\nreserve_pool_timeout = {}\n",
            ms(Some(connect)),
            ms(idle),
            ms(lifetime),
            ms(statement),
            ms(transaction),
            ms(silence_in_block),
            ms(silence),
            ms(login),
            self.limits.parallelism,
            self.reserve,
            self.reserve_ms,
        );
        if self.asks_for_room {
            text.push_str("instances = 1\n");
        }
        let limits = &self.limits;
        for (name, limit) in [
            ("max_server_connections", limits.server),
            ("max_db_connections", limits.database),
            ("max_user_connections", limits.user),
            ("max_clients", limits.clients),
            ("max_logins", limits.logins),
            ("max_db_client_connections", limits.database_clients),
            ("max_user_client_connections", limits.user_clients),
        ] {
            if let Some(limit) = limit {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name} = {limit}");
            }
        }
        self.pools.iter().filter(|pool| pool.here).for_each(|pool| pool.write(&mut text));
        text
    }

    /// What pgweir makes of it.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        let config = Config::parse(&self.text(), Path::new("sim.toml"))
            .map_err(|errors| errors.to_string())?;
        Plan::new(&config, "0.0.0", [6; 32]).map_err(|error| error.to_string())
    }
}

impl Pool {
    fn write(&self, text: &mut String) {
        let Self { database, user, mode, wait, size, least, cluster, reset_query, .. } = self;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n[pools.\"{database}\"]\npool_mode = \"{}\"\nquery_wait_timeout = {}\n\
             server_reset_query = \"{reset_query}\"\n\
             [pools.\"{database}\".users.0]\nusername = \"{user}\"\npool_size = {size}\n\
             min_pool_size = {least}\n\
             [pools.\"{database}\".shards.0]\ndatabase = \"{database}\"\n\
             servers = [[\"127.0.0.1\", {}, \"primary\"]]",
            mode.name(),
            wait.unwrap_or(0) / 1_000,
            usize::from(PORT) + cluster,
        );
    }
}

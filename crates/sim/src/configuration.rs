use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;

use pgweir_config::{Config, PoolMode};
use pgweir_engine::{Joining, Plan};

use crate::admin::ADMIN;
use crate::topology::PORT;

/// A configuration, as it was drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) limits: Limits,
    pub(crate) times: Times,
    pub(crate) pools: Vec<Pool>,
    /// Connections beyond a pool's size, for clients that have waited for so many milliseconds.
    pub(crate) reserve: u64,
    pub(crate) reserve_ms: u64,
    /// Servers are asked what they have room for, and so many pgweir share it.
    pub(crate) instances: Option<u64>,
}

/// How many there may be, if there is a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pool {
    /// Whether the configuration has it.
    pub(crate) here: bool,
    /// The database, or "*" for all that have no pool of their own.
    pub(crate) database: String,
    pub(crate) user: String,
    /// As whom servers are logged in to, if that is another user.
    pub(crate) server_user: Option<String>,
    pub(crate) mode: PoolMode,
    /// Its mode in most configurations.
    pub(crate) usual: PoolMode,
    /// A client may wait so long for a server, in microseconds.
    pub(crate) wait: Option<u64>,
    pub(crate) size: u64,
    /// So many servers are kept.
    pub(crate) least: u64,
    /// Which server.
    pub(crate) cluster: usize,
    /// What is run behind a session, if it is not what it would be.
    pub(crate) reset_query: Option<&'static str>,
    /// So many prepared statements a server keeps, if not as many as it would.
    pub(crate) prepared: Option<u64>,
    /// Clients may keep so many of its servers, if there is a limit.
    pub(crate) pinned: Option<u64>,
    /// What nobody may leave on its servers, and what keeps none of them.
    pub(crate) refuses: &'static str,
    pub(crate) ignores: &'static str,
    /// So many of its servers are shared, each by so many units at a time, if any are.
    pub(crate) shared: Option<&'static str>,
}

/// Where a configuration keeps one of its settings.
type Field = fn(&mut Configuration) -> &mut Option<u64>;

/// Timeouts that may be there or not, in microseconds.
const TIMEOUTS: [(&str, Field); 6] = [
    ("server_lifetime", |its| &mut its.times.lifetime),
    ("statement_timeout", |its| &mut its.times.statement),
    ("transaction_timeout", |its| &mut its.times.transaction),
    ("idle_client_in_transaction_timeout", |its| &mut its.times.silence_in_block),
    ("client_idle_timeout", |its| &mut its.times.silence),
    ("client_login_timeout", |its| &mut its.times.login),
];

/// Limits that may be there or not.
const LIMITS: [(&str, Field); 7] = [
    ("max_server_connections", |its| &mut its.limits.server),
    ("max_db_connections", |its| &mut its.limits.database),
    ("max_user_connections", |its| &mut its.limits.user),
    ("max_clients", |its| &mut its.limits.clients),
    ("max_logins", |its| &mut its.limits.logins),
    ("max_db_client_connections", |its| &mut its.limits.database_clients),
    ("max_user_client_connections", |its| &mut its.limits.user_clients),
];

const RESERVE: &str = "reserve_pool_size";
const LEAST: &str = "min_pool_size";
const WAIT: &str = "query_wait_timeout";
const RESET_QUERY: &str = "server_reset_query";
const PREPARED: &str = "prepared_statements_cache_size";
const PINNED: &str = "max_pinned";
const REFUSES: &str = "pin_refuse";
const IGNORES: &str = "pin_ignore";
const PIPELINING: &str = "pipelining";
const INSTANCES: &str = "instances";
const SERVER_USER: &str = "server_username";

/// No settings of pgweir's: that pools may be missing, and that they may have another mode.
const MISSING: &str = "missing_pools";
const MODES: &str = "other_pool_modes";

/// Whatever else may be there or not.
const OTHERS: [&str; 13] = [
    RESERVE,
    LEAST,
    WAIT,
    RESET_QUERY,
    PREPARED,
    PINNED,
    REFUSES,
    IGNORES,
    PIPELINING,
    INSTANCES,
    SERVER_USER,
    MISSING,
    MODES,
];

/// The users of servers that a pool may have are called like its own with a number behind.
const NUMBERED: char = '_';

/// The user of a pool that is this one at servers.
pub(crate) fn pool_user(server_user: &str) -> &str {
    server_user.split(NUMBERED).next().unwrap_or(server_user)
}

impl Configuration {
    /// How long a client of that pool may wait, if there is a limit and the pool.
    pub(crate) fn wait(&self, pool: usize) -> Option<u64> {
        self.pools[pool].wait.filter(|_| self.pools[pool].here)
    }

    /// The names of the settings that it can do without.
    pub(crate) fn optional() -> impl Iterator<Item = &'static str> {
        let fields = TIMEOUTS.into_iter().chain(LIMITS);
        fields.map(|(name, _)| name).chain(OTHERS)
    }

    /// Takes the setting of this name away.
    pub(crate) fn take_away(&mut self, name: &str) {
        for (known, field) in TIMEOUTS.into_iter().chain(LIMITS) {
            if known == name {
                *field(self) = None;
            }
        }
        match name {
            RESERVE => self.reserve = 0,
            LEAST => self.pools.iter_mut().for_each(|pool| pool.least = 0),
            WAIT => self.pools.iter_mut().for_each(|pool| pool.wait = None),
            RESET_QUERY => self.pools.iter_mut().for_each(|pool| pool.reset_query = None),
            PREPARED => self.pools.iter_mut().for_each(|pool| pool.prepared = None),
            PINNED => self.pools.iter_mut().for_each(|pool| pool.pinned = None),
            REFUSES => self.pools.iter_mut().for_each(|pool| pool.refuses = ""),
            IGNORES => self.pools.iter_mut().for_each(|pool| pool.ignores = ""),
            PIPELINING => self.pools.iter_mut().for_each(|pool| pool.shared = None),
            INSTANCES => self.instances = None,
            SERVER_USER => self.pools.iter_mut().for_each(|pool| pool.server_user = None),
            MISSING => self.pools.iter_mut().for_each(|pool| pool.here = true),
            MODES => self.pools.iter_mut().for_each(|pool| pool.mode = pool.usual),
            _ => {}
        }
    }

    /// Whether it has the setting of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        let mut without = self.clone();
        without.take_away(name);
        without != *self
    }

    /// Most connections of one of its pools.
    pub(crate) fn most(&self, pool: usize) -> u64 {
        self.pools[pool].size + self.reserve
    }

    /// The file that a user would write.
    pub(crate) fn text(&self) -> String {
        let ms = |micros: Option<u64>| micros.unwrap_or(0) / 1_000;
        let mut text = format!(
            "[general]\nhost = \"127.0.0.1\"\nport = 6432\nauth_type = \"trust\"\n\
             admin_username = \"{ADMIN}\"\nadmin_auth_type = \"trust\"\n\
             connect_timeout = {}\nidle_timeout = {}\n{WAIT} = 0\nconnect_parallelism = {}\n\
             {RESERVE} = {}\nreserve_pool_timeout = {}\nmax_pinned = \"off\"\n\
             max_buffer_memory = {}\n",
            ms(Some(self.times.connect)),
            ms(self.times.idle),
            self.limits.parallelism,
            self.reserve,
            self.reserve_ms,
            // It is not worth a number of its own.
            if self.limits.parallelism == 1 { 300 } else { 64 * 1024 * 1024 },
        );
        if let Some(instances) = self.instances {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{INSTANCES} = {instances}");
        }
        let mut fields = self.clone();
        for (name, timeout) in TIMEOUTS {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} = {}", ms(*timeout(&mut fields)));
        }
        for (name, limit) in LIMITS {
            if let Some(limit) = limit(&mut fields) {
                let _ = writeln!(text, "{name} = {limit}");
            }
        }
        self.pools.iter().filter(|pool| pool.here).for_each(|pool| pool.write(&mut text));
        text
    }

    /// What pgweir makes of it.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        let text = self.text();
        let known = READ.with_borrow(|read| {
            read.iter().find(|(its, _)| *its == text).map(|(_, plan)| plan.clone())
        });
        if let Some(plan) = known {
            return Ok(plan);
        }
        let config =
            Config::parse(&text, Path::new("sim.toml")).map_err(|errors| errors.to_string())?;
        let plan = Plan::new(&config, "0.0.0", [6; 32]).map_err(|error| error.to_string())?;
        // It is not worth a number of its own either.
        let is_eager = self.limits.parallelism.is_multiple_of(2);
        let plan = if is_eager { plan.joining(Joining::EAGER) } else { plan };
        READ.with_borrow_mut(|read| {
            read.truncate(READ_MOST - 1);
            read.push_front((text, plan.clone()));
        });
        Ok(plan)
    }
}

/// More than most simulations have, so that the second run of a seed reads none again.
const READ_MOST: usize = 16;

thread_local! {
    /// What configurations were read of late, the last one first, and what was made of them.
    static READ: RefCell<VecDeque<(String, Plan)>> = const { RefCell::new(VecDeque::new()) };
}

impl Pool {
    /// Whether nobody may leave this on its servers.
    pub(crate) fn refuses(&self, kind: &str) -> bool {
        self.refuses.split(", ").any(|refused| refused == kind)
    }

    /// Another user of servers that it may have.
    pub(crate) fn other_user(user: &str, number: u64) -> String {
        format!("{user}{NUMBERED}{number}")
    }

    /// As whom servers are logged in to.
    pub(crate) fn server_user(&self) -> &str {
        self.server_user.as_ref().unwrap_or(&self.user)
    }

    fn write(&self, text: &mut String) {
        let Self { database, user, mode, wait, size, least, cluster, reset_query, .. } = self;
        let server_user = self.server_user.as_ref();
        let server_user = server_user.map(|user| format!("{SERVER_USER} = \"{user}\"\n"));
        let server_user = server_user.unwrap_or_default();
        let reset = reset_query.map(|query| format!("{RESET_QUERY} = \"{query}\"\n"));
        let prepared = self.prepared.map(|most| format!("{PREPARED} = {most}\n"));
        let reset = reset.unwrap_or_default() + &prepared.unwrap_or_default();
        let pinned = self.pinned.map(|most| format!("{PINNED} = {most}\n")).unwrap_or_default();
        let Self { refuses, ignores, .. } = self;
        let kinds = format!("{REFUSES} = \"{refuses}\"\n{IGNORES} = \"{ignores}\"\n");
        let shared = self.shared.map_or_else(|| "off".to_owned(), ToString::to_string);
        let shared = format!("{PIPELINING} = \"{shared}\"\n");
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n[pools.\"{database}\"]\npool_mode = \"{}\"\n{WAIT} = {}\n{reset}{kinds}\
             [pools.\"{database}\".users.0]\nusername = \"{user}\"\n{server_user}\
             pool_size = {size}\n{LEAST} = {least}\n{pinned}{shared}\
             [pools.\"{database}\".shards.0]\ndatabase = \"{database}\"\n\
             servers = [[\"127.0.0.1\", {}, \"primary\"]]",
            mode.name(),
            wait.unwrap_or(0) / 1_000,
            usize::from(PORT) + cluster,
        );
    }
}

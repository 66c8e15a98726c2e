//! What tests stand on: one PostgreSQL for all, and for each a database, a role and a pgweir.

use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};
use std::thread;

use pgweir_testkit::{Cluster, Login, Pgweir, PoolerConfig, WireClient, eventually};

use crate::reload;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_pgweir");

/// The PostgreSQL of all tests that do not stop it.
pub(crate) static CLUSTER: LazyLock<Cluster> =
    LazyLock::new(|| Cluster::builder().setting("max_connections", "300").start());

/// A pgweir in front of a database of its own, which belongs to a role of its own: everything in
/// `pg_stat_activity` and `pg_locks` under that name is this test's.
pub(crate) struct Stage {
    pub(crate) pgweir: Pgweir,
    pub(crate) name: String,
    /// A session of the superuser, straight to PostgreSQL.
    watcher: Mutex<WireClient>,
}

impl Stage {
    /// A stage on which transactions share `pool_size` servers.
    pub(crate) fn new(name: &str, pool_size: u32) -> Self {
        Self::with(name, pool_size, |config| config)
    }

    /// As [`Self::new`], where every statement has its server alone.
    pub(crate) fn alone(name: &str, pool_size: u32) -> Self {
        Self::with(name, pool_size, |config| config.general("pipelining", "\"off\""))
    }

    /// As [`Self::new`], with sessions that keep their server.
    pub(crate) fn session(name: &str, pool_size: u32) -> Self {
        Self::with(name, pool_size, |config| config.pool("pool_mode", "\"session\""))
    }

    /// A stage with more to say in its configuration.
    pub(crate) fn with(
        name: &str,
        pool_size: u32,
        settings: impl FnOnce(PoolerConfig) -> PoolerConfig,
    ) -> Self {
        Self::on(&CLUSTER, name, pool_size, settings)
    }

    /// A stage on another cluster.
    pub(crate) fn on(
        cluster: &Cluster,
        name: &str,
        pool_size: u32,
        settings: impl FnOnce(PoolerConfig) -> PoolerConfig,
    ) -> Self {
        create_database(cluster, name);
        let config = settings(trusting(cluster, name)).user(name, "", pool_size);
        Self::of(cluster, name, &config)
    }

    /// A stage whose configuration says all, on a database that is there.
    pub(crate) fn of(cluster: &Cluster, name: &str, config: &PoolerConfig) -> Self {
        let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
        Self { pgweir, name: name.to_owned(), watcher: Mutex::new(superuser(cluster, name)) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.pgweir.address()
    }

    /// How this stage's role logs in.
    pub(crate) fn login(&self) -> Login {
        login(&self.name)
    }

    /// A client of pgweir.
    #[track_caller]
    pub(crate) fn client(&self) -> WireClient {
        self.client_as(&self.login())
    }

    /// A client of pgweir with startup parameters of its own.
    #[track_caller]
    pub(crate) fn client_as(&self, login: &Login) -> WireClient {
        match WireClient::login(self.address(), login) {
            Ok(client) => client,
            Err(error) => panic!("{error}"),
        }
    }

    /// Rows of a query that the superuser asks PostgreSQL directly.
    #[track_caller]
    pub(crate) fn ask(&self, sql: &str) -> Vec<String> {
        self.watcher.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).query(sql)
    }

    /// As [`Self::ask`], for a single value.
    #[track_caller]
    pub(crate) fn value(&self, sql: &str) -> String {
        self.ask(sql).concat()
    }

    /// Rows of a command to pgweir's console.
    #[track_caller]
    pub(crate) fn console(&self, command: &str) -> Vec<String> {
        let login = Login::new("admin").password("admin").database("pgweir");
        self.client_as(&login).query(command)
    }

    /// From now on a client waits for a server for so long at most. Of a stage made by
    /// [`patient`]: before that logins, too, take the time that they take on a busy machine.
    #[track_caller]
    pub(crate) fn limit_waits(&self, query_wait_timeout_ms: u32) {
        let limit = format!("query_wait_timeout = {query_wait_timeout_ms}\n");
        reload::change(self, &format!("query_wait_timeout = {LONG_WAIT_MS}\n"), &limit);
    }

    /// Waits until so many clients stand in the queue for a server.
    #[track_caller]
    pub(crate) fn wait_for_waiters(&self, count: usize) {
        self.wait_for_pool("clients to wait", 3, count);
    }

    /// Waits until so many servers are lent to clients.
    #[track_caller]
    pub(crate) fn wait_for_servers_in_use(&self, count: usize) {
        self.wait_for_pool("servers to be in use", 6, count);
    }

    /// Waits until so many servers are idle.
    #[track_caller]
    pub(crate) fn wait_for_idle_servers(&self, count: usize) {
        self.wait_for_pool("servers to be idle", 9, count);
    }

    /// Waits until so many servers are being logged in to.
    #[track_caller]
    pub(crate) fn wait_for_logins(&self, count: usize) {
        self.wait_for_pool("logins to be under way", 12, count);
    }

    /// Waits until a column of SHOW POOLS has this value.
    #[track_caller]
    fn wait_for_pool(&self, what: &str, column: usize, count: usize) {
        eventually(&format!("{count} {what}"), || {
            let pools = self.console("SHOW POOLS");
            let own = format!("{0}|{0}|", self.name);
            let row = pools.iter().find(|row| row.starts_with(&own)).unwrap();
            row.split('|').nth(column).unwrap() == count.to_string()
        });
    }

    /// Sessions of this stage's role in PostgreSQL that `condition` holds for.
    #[track_caller]
    pub(crate) fn backends(&self, condition: &str) -> usize {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = '{}' AND ({condition})",
            self.name
        );
        self.value(&sql).parse().unwrap()
    }

    /// Waits until so many sessions of this stage's role fulfil a condition.
    #[track_caller]
    pub(crate) fn wait_for_backends(&self, count: usize, condition: &str) {
        let what = format!("{count} backends with {condition}");
        eventually(&what, || self.backends(condition) == count);
    }
}

/// Longer than any test waits for a server.
const LONG_WAIT_MS: u32 = 60_000;

/// For [`Stage::limit_waits`].
pub(crate) fn patient(config: PoolerConfig) -> PoolerConfig {
    config.pool("query_wait_timeout", &LONG_WAIT_MS.to_string())
}

/// The usual start of a configuration: nobody needs a password, and a loaded machine is no reason
/// for a timeout.
pub(crate) fn trusting(cluster: &Cluster, database: &str) -> PoolerConfig {
    PoolerConfig::new(database, cluster)
        .general("auth_type", "\"trust\"")
        .general("connect_timeout", "30000")
}

/// A role and a database of this name, which it owns.
pub(crate) fn create_database(cluster: &Cluster, name: &str) {
    let mut client = superuser(cluster, "postgres");
    client.query(&format!("CREATE ROLE {name} LOGIN"));
    client.query(&format!("CREATE DATABASE {name} OWNER {name}"));
}

/// A session of the superuser, straight to PostgreSQL.
pub(crate) fn superuser(cluster: &Cluster, database: &str) -> WireClient {
    let login = Login::new("postgres").database(database);
    WireClient::login(cluster.address(), &login).unwrap()
}

/// The login of the role that owns the database of the same name.
pub(crate) fn login(name: &str) -> Login {
    Login::new(name).database(name)
}

/// Nothing in the log says that pgweir is wrong: no panic, and no reply that it did not expect.
#[track_caller]
pub(crate) fn assert_sound(pgweir: &Pgweir) {
    let log = pgweir.log();
    let wrong = log.lines().find(|line| line.contains("panicked") || line.contains("a bug of"));
    assert_eq!(wrong, None);
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_sound(&self.pgweir);
        }
    }
}

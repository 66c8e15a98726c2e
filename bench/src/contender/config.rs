//! What each contender is told when it starts.

use crate::cluster::{DATABASE, USER};
use crate::mix::QUIET;

/// Client connections that a pooler must take.
const CLIENTS_MAX: u32 = 15_000;
/// How long a client may wait for a server.
const QUERY_WAIT_S: u32 = 120;
/// Servers that the pipelining relay shares among all clients.
pub(crate) const SHARED_SERVERS: u32 = 3;

/// Where a pooler stands; in words, so that the report can have placeholders.
pub(crate) struct Address<'a> {
    pub(crate) port: &'a str,
    pub(crate) server_port: &'a str,
    /// Servers of each pool.
    pub(crate) pool_size: u32,
}

/// The database that clients name for a pool. All of them are [`DATABASE`] at the server.
pub(crate) fn database(pool: u32) -> String {
    if pool == 0 { DATABASE.to_owned() } else { format!("{DATABASE}_{}", pool + 1) }
}

/// The relay's configuration.
pub(crate) fn relay_args(address: &Address<'_>) -> Vec<String> {
    let Address { port, server_port, pool_size } = address;
    let args = format!("127.0.0.1:{port} 127.0.0.1:{server_port} {pool_size} {USER} {DATABASE}");
    args.split(' ').map(str::to_owned).collect()
}

/// The same of the one that lets clients stand behind each other.
pub(crate) fn pipelining_relay_args(address: &Address<'_>) -> Vec<String> {
    let mut args = relay_args(&Address { pool_size: SHARED_SERVERS, ..*address });
    args.push("pipelining".to_owned());
    args
}

/// PgBouncer's configuration. Its keepalive is what it is by default, and pgweir's the same.
pub(crate) fn pgbouncer_ini(address: &Address<'_>, users: &str) -> String {
    let Address { port, server_port, pool_size } = address;
    format!(
        "[databases]\n\
         {DATABASE} = host=127.0.0.1 port={server_port} dbname={DATABASE}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = trust\n\
         auth_file = {users}\n\
         pool_mode = transaction\n\
         default_pool_size = {pool_size}\n\
         max_client_conn = {CLIENTS_MAX}\n\
         query_wait_timeout = {QUERY_WAIT_S}\n\
         log_connections = 0\n\
         log_disconnections = 0\n\
         log_stats = 0\n\
         tcp_keepalive = 1\n\
         tcp_keepidle = 0\n\
         tcp_keepintvl = 0\n\
         tcp_keepcnt = 0\n\
         tcp_user_timeout = 0\n\
         server_tls_sslmode = disable\n\
         ignore_startup_parameters = extra_float_digits\n"
    )
}

/// pgweir's configuration. Keepalive is on at the kernel's times, and no peer is looked after
/// besides: as PgBouncer has it.
pub(crate) fn pgweir_toml(
    address: &Address<'_>,
    workers: u32,
    pools: u32,
    pipelining: &str,
) -> String {
    let Address { port, server_port, pool_size } = address;
    let general = format!(
        "[general]\n\
         host = \"127.0.0.1\"\n\
         port = {port}\n\
         worker_threads = {workers}\n\
         pipelining = \"{pipelining}\"\n\
         auth_type = \"trust\"\n\
         admin_username = \"{USER}\"\n\
         admin_password = \"{USER}\"\n\
         query_wait_timeout = {QUERY_WAIT_S}000\n\
         tcp_keepalives_idle = 0\n\
         tcp_keepalives_interval = 0\n\
         tcp_keepalives_count = 0\n\
         tcp_user_timeout = 0\n\
         log_client_connections = false\n\
         log_client_disconnections = false\n"
    );
    let pool = |pool| {
        let name = database(pool);
        format!(
            "\n\
             [pools.{name}]\n\
             pool_mode = \"transaction\"\n\
             quiet_functions = \"{QUIET}\"\n\
             \n\
             [pools.{name}.users.0]\n\
             username = \"{USER}\"\n\
             pool_size = {pool_size}\n\
             \n\
             [pools.{name}.shards.0]\n\
             servers = [[\"127.0.0.1\", {server_port}, \"primary\"]]\n\
             database = \"{DATABASE}\"\n"
        )
    };
    general + &(0..pools).map(pool).collect::<String>()
}

//! Who is compared, and how each of them is configured: the same authentication (trust), the same
//! logging (none for connections), a pool of ten, transaction mode, one thread.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::child::{Child, Launch, Stop, own_program};
use crate::cluster::{DATABASE, USER, await_login};
use crate::error::{Error, Result};
use crate::scratch::{Scratch, require_readable};

/// Server connections that a pooler may open.
pub(crate) const POOL_SIZE: u32 = 10;
/// Client connections that a pooler must take.
const CLIENTS_MAX: u32 = 15_000;
/// How long a client may wait for a server.
const QUERY_WAIT_S: u32 = 120;
const START_LIMIT: Duration = Duration::from_secs(15);

/// A way from a client to the server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Contender {
    Direct,
    PgBouncer,
    Pgweir,
    Relay,
}

impl Contender {
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::PgBouncer, Self::Pgweir, Self::Relay];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PgBouncer => "PgBouncer",
            Self::Pgweir => "pgweir",
            Self::Relay => "bare relay",
        }
    }

    /// As written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PgBouncer => "pgbouncer",
            Self::Pgweir => "pgweir",
            Self::Relay => "relay",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|contender| contender.name() == name)
    }
}

/// Where the contenders' programs are; `None` for one that is not there.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) pgbouncer: Option<PathBuf>,
    pub(crate) pgweir: Option<PathBuf>,
    pub(crate) relay: Option<PathBuf>,
}

impl Programs {
    /// A path that was given must be a file; others are looked for: PgBouncer where Debian
    /// installs it, pgweir and the relay beside this program.
    pub(crate) fn find(pgbouncer: Option<&Path>, pgweir: Option<&Path>) -> Result<Self> {
        let own = own_program()?;
        let beside = |name: &str| own.with_file_name(name);
        Ok(Self {
            pgbouncer: file(pgbouncer, &PathBuf::from("/usr/sbin/pgbouncer"))?,
            pgweir: file(pgweir, &beside("pgweir"))?,
            relay: file(None, &beside("relay"))?,
        })
    }

    pub(crate) fn have(&self, contender: Contender) -> bool {
        match contender {
            Contender::Direct => true,
            Contender::PgBouncer => self.pgbouncer.is_some(),
            Contender::Pgweir => self.pgweir.is_some(),
            Contender::Relay => self.relay.is_some(),
        }
    }
}

fn file(given: Option<&Path>, usual: &Path) -> Result<Option<PathBuf>> {
    let path = given.unwrap_or(usual);
    match (std::fs::canonicalize(path), given) {
        (Ok(path), _) if path.is_file() => Ok(Some(path)),
        (Ok(_) | Err(_), Some(given)) => {
            Err(Error::unfit(format!("{} is no program", given.display())))
        }
        (Ok(_) | Err(_), None) => Ok(None),
    }
}

/// A contender that takes clients.
pub(crate) struct Target {
    /// Where clients connect, on 127.0.0.1.
    pub(crate) port: u16,
    /// The pooler's process; a direct connection has none.
    pub(crate) pooler: Option<Child>,
}

impl Target {
    /// Connections straight to `server_port`.
    pub(crate) fn direct(server_port: u16) -> Self {
        Self { port: server_port, pooler: None }
    }

    /// Starts a pooler on `port` in front of `server_port`, and waits until a login succeeds.
    pub(crate) fn start(
        contender: Contender,
        programs: &Programs,
        scratch: &Scratch,
        account: Option<Account>,
        (port, server_port): (u16, u16),
    ) -> Result<Self> {
        let (program, args, account) = match contender {
            Contender::Direct => return Ok(Self::direct(server_port)),
            Contender::PgBouncer => {
                scratch.write("userlist.txt", &format!("\"{USER}\" \"\"\n"))?;
                let users = scratch.join("userlist.txt").display().to_string();
                let ini = pgbouncer_ini(&port.to_string(), &server_port.to_string(), &users);
                let config = scratch.write("pgbouncer.ini", &ini)?;
                (&programs.pgbouncer, vec![config.display().to_string()], account)
            }
            Contender::Pgweir => {
                let config = pgweir_toml(&port.to_string(), &server_port.to_string());
                let config = scratch.write("pgweir.toml", &config)?;
                (&programs.pgweir, vec![config.display().to_string()], None)
            }
            Contender::Relay => {
                let args = format!(
                    "127.0.0.1:{port} 127.0.0.1:{server_port} {POOL_SIZE} {USER} {DATABASE}"
                );
                (&programs.relay, args.split(' ').map(str::to_owned).collect(), None)
            }
        };
        let missing = || Error::unfit(format!("{} is not installed", contender.label()));
        let program = program.as_deref().ok_or_else(missing)?;
        require_readable(program, account)?;
        let log = scratch.join(&format!("{}.log", contender.name()));
        let mut pooler = Child::start(Launch { program, args, account, stop: Stop::Kill, log })?;
        await_login(&mut pooler, port, START_LIMIT)?;
        Ok(Self { port, pooler: Some(pooler) })
    }
}

/// PgBouncer's configuration.
pub(crate) fn pgbouncer_ini(port: &str, server_port: &str, users: &str) -> String {
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
         default_pool_size = {POOL_SIZE}\n\
         max_client_conn = {CLIENTS_MAX}\n\
         query_wait_timeout = {QUERY_WAIT_S}\n\
         log_connections = 0\n\
         log_disconnections = 0\n\
         log_stats = 0\n\
         server_tls_sslmode = disable\n\
         ignore_startup_parameters = extra_float_digits\n"
    )
}

/// pgweir's configuration. Keepalive is left to the kernel, as PgBouncer leaves it.
pub(crate) fn pgweir_toml(port: &str, server_port: &str) -> String {
    format!(
        "[general]\n\
         host = \"127.0.0.1\"\n\
         port = {port}\n\
         worker_threads = 1\n\
         auth_type = \"trust\"\n\
         admin_username = \"{USER}\"\n\
         admin_password = \"{USER}\"\n\
         query_wait_timeout = {QUERY_WAIT_S}000\n\
         tcp_keepalives_idle = 0\n\
         tcp_keepalives_interval = 0\n\
         tcp_keepalives_count = 0\n\
         tcp_user_timeout = 0\n\
         log_client_connections = false\n\
         log_client_disconnections = false\n\
         \n\
         [pools.{DATABASE}]\n\
         pool_mode = \"transaction\"\n\
         \n\
         [pools.{DATABASE}.users.0]\n\
         username = \"{USER}\"\n\
         pool_size = {POOL_SIZE}\n\
         \n\
         [pools.{DATABASE}.shards.0]\n\
         servers = [[\"127.0.0.1\", {server_port}, \"primary\"]]\n\
         database = \"{DATABASE}\"\n"
    )
}

#[cfg(test)]
mod tests;

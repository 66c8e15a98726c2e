//! Who is compared, and how each of them is configured: the same authentication (trust), the same
//! logging (none for connections), pools of ten, transaction mode; one thread where the name does
//! not say otherwise.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::child::{Child, Launch, Stop, own_program};
use crate::cluster::{DATABASE, USER, await_login};
use crate::cpus::Cpus;
use crate::error::{Error, Result};
use crate::scratch::{Scratch, require_readable};

/// Server connections that a pooler may open for each pool.
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
    #[serde(rename = "pgweir-2")]
    TwoWorkers,
    #[serde(rename = "pgweir-4")]
    FourWorkers,
    /// Asked by the simple protocol where others are asked to prepare.
    #[serde(rename = "pgweir-simple")]
    SimplePgweir,
}

impl Contender {
    pub(crate) const ALL: [Self; 7] = [
        Self::Direct,
        Self::PgBouncer,
        Self::Pgweir,
        Self::Relay,
        Self::TwoWorkers,
        Self::FourWorkers,
        Self::SimplePgweir,
    ];

    /// Those of most cases.
    pub(crate) const USUAL: [Self; 4] = [Self::Direct, Self::PgBouncer, Self::Pgweir, Self::Relay];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PgBouncer => "PgBouncer",
            Self::Pgweir => "pgweir",
            Self::Relay => "bare relay",
            Self::TwoWorkers => "pgweir, 2 workers",
            Self::FourWorkers => "pgweir, 4 workers",
            Self::SimplePgweir => "pgweir, simple protocol",
        }
    }

    /// As written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PgBouncer => "pgbouncer",
            Self::Pgweir => "pgweir",
            Self::Relay => "relay",
            Self::TwoWorkers => "pgweir-2",
            Self::FourWorkers => "pgweir-4",
            Self::SimplePgweir => "pgweir-simple",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|contender| contender.name() == name)
    }

    /// Threads that carry its traffic.
    fn threads(self) -> u32 {
        match self {
            Self::Direct | Self::PgBouncer | Self::Pgweir | Self::Relay | Self::SimplePgweir => 1,
            Self::TwoWorkers => 2,
            Self::FourWorkers => 4,
        }
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
    /// A path that was given must be a file; others are looked for: PgBouncer in `PATH` and where
    /// Debian installs it, pgweir and the relay beside this program.
    pub(crate) fn find(pgbouncer: Option<&Path>, pgweir: Option<&Path>) -> Result<Self> {
        let own = own_program()?;
        let beside = |name: &str| own.with_file_name(name);
        Ok(Self {
            pgbouncer: file(pgbouncer, &usual_pgbouncer(env::var_os("PATH").as_deref()))?,
            pgweir: file(pgweir, &beside("pgweir"))?,
            relay: file(None, &beside("relay"))?,
        })
    }

    pub(crate) fn have(&self, contender: Contender) -> bool {
        match contender {
            Contender::Direct => true,
            Contender::PgBouncer => self.pgbouncer.is_some(),
            Contender::Pgweir
            | Contender::TwoWorkers
            | Contender::FourWorkers
            | Contender::SimplePgweir => self.pgweir.is_some(),
            Contender::Relay => self.relay.is_some(),
        }
    }
}

/// Where PgBouncer is if nobody says: where `path`, a list as in `PATH`, leads to, else where
/// Debian installs it, which a user's list often lacks. `pgbouncer_program` of scripts/lib.sh has
/// the same rule.
fn usual_pgbouncer(path: Option<&OsStr>) -> PathBuf {
    let folders = path.map(env::split_paths).into_iter().flatten();
    let mut programs = folders.map(|folder| folder.join("pgbouncer"));
    let found = programs.find(|program| is_program(program));
    found.unwrap_or_else(|| "/usr/sbin/pgbouncer".into())
}

fn is_program(path: &Path) -> bool {
    let executable = |meta: fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o111 != 0;
    fs::metadata(path).is_ok_and(executable)
}

fn file(given: Option<&Path>, usual: &Path) -> Result<Option<PathBuf>> {
    let path = given.unwrap_or(usual);
    match (fs::canonicalize(path), given) {
        (Ok(path), _) if path.is_file() => Ok(Some(path)),
        (Ok(_) | Err(_), Some(given)) => {
            Err(Error::unfit(format!("{} is no program", given.display())))
        }
        (Ok(_) | Err(_), None) => Ok(None),
    }
}

/// Where a contender stands.
pub(crate) struct Place<'a> {
    /// Where it takes clients, on 127.0.0.1.
    pub(crate) port: u16,
    /// Where the server is.
    pub(crate) server_port: u16,
    /// Databases that clients name; several are for pgweir alone.
    pub(crate) pools: u32,
    /// Processors that a pooler keeps to.
    pub(crate) cpus: Option<&'a Cpus>,
}

/// A contender that takes clients.
pub(crate) struct Target {
    pub(crate) contender: Contender,
    /// Where clients connect, on 127.0.0.1.
    pub(crate) port: u16,
    /// The pooler's process; a direct connection has none.
    pub(crate) pooler: Option<Child>,
}

impl Target {
    /// Starts a pooler, and waits until a login succeeds. A direct connection starts nothing.
    pub(crate) fn start(
        contender: Contender,
        programs: &Programs,
        scratch: &Scratch,
        account: Option<Account>,
        place: Place<'_>,
    ) -> Result<Self> {
        let Place { port, server_port, pools, cpus } = place;
        let (program, args, account) = match contender {
            Contender::Direct => return Ok(Self { contender, port: server_port, pooler: None }),
            Contender::PgBouncer => {
                scratch.write("userlist.txt", &format!("\"{USER}\" \"\"\n"))?;
                let users = scratch.join("userlist.txt").display().to_string();
                let ini = pgbouncer_ini(&port.to_string(), &server_port.to_string(), &users);
                let config = scratch.write("pgbouncer.ini", &ini)?;
                (&programs.pgbouncer, vec![config.display().to_string()], account)
            }
            Contender::Pgweir
            | Contender::TwoWorkers
            | Contender::FourWorkers
            | Contender::SimplePgweir => {
                let (port, server_port) = (port.to_string(), server_port.to_string());
                let config = pgweir_toml(&port, &server_port, contender.threads(), pools);
                // Each has a file of its own: they stand side by side.
                let config = scratch.write(&format!("{}.toml", contender.name()), &config)?;
                (&programs.pgweir, vec![config.display().to_string()], None)
            }
            Contender::Relay => {
                (&programs.relay, relay_args(&port.to_string(), &server_port.to_string()), None)
            }
        };
        let missing = || Error::unfit(format!("{} is not installed", contender.label()));
        let program = program.as_deref().ok_or_else(missing)?;
        require_readable(program, account)?;
        let log = scratch.join(&format!("{}.log", contender.name()));
        let launch = Launch { program, args, account, cpus, stop: Stop::Kill, log };
        let mut pooler = Child::start(launch)?;
        await_login(&mut pooler, port, START_LIMIT)?;
        Ok(Self { contender, port, pooler: Some(pooler) })
    }
}

/// The database that clients name for a pool. All of them are [`DATABASE`] at the server.
pub(crate) fn database(pool: u32) -> String {
    if pool == 0 { DATABASE.to_owned() } else { format!("{DATABASE}_{}", pool + 1) }
}

/// The relay's configuration.
pub(crate) fn relay_args(port: &str, server_port: &str) -> Vec<String> {
    let args = format!("127.0.0.1:{port} 127.0.0.1:{server_port} {POOL_SIZE} {USER} {DATABASE}");
    args.split(' ').map(str::to_owned).collect()
}

/// PgBouncer's configuration. Its keepalive is what it is by default, and pgweir's the same.
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
pub(crate) fn pgweir_toml(port: &str, server_port: &str, workers: u32, pools: u32) -> String {
    let general = format!(
        "[general]\n\
         host = \"127.0.0.1\"\n\
         port = {port}\n\
         worker_threads = {workers}\n\
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
             \n\
             [pools.{name}.users.0]\n\
             username = \"{USER}\"\n\
             pool_size = {POOL_SIZE}\n\
             \n\
             [pools.{name}.shards.0]\n\
             servers = [[\"127.0.0.1\", {server_port}, \"primary\"]]\n\
             database = \"{DATABASE}\"\n"
        )
    };
    general + &(0..pools).map(pool).collect::<String>()
}

#[cfg(test)]
mod tests;

//! Who is compared, and how each of them is started: the same authentication (trust), the same
//! logging (none for connections), the same pools, transaction mode; one thread where the name does
//! not say otherwise.

mod config;

use std::borrow::Cow;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::child::{Child, Launch, Stop, own_program};
use crate::cluster::{USER, await_login};
use crate::cpus::Cpus;
use crate::error::{Error, Result};
use crate::grid::Pair;
use crate::scratch::{Scratch, require_readable};

pub(crate) use config::{
    Address, database, pgbouncer_ini, pgweir_toml, pipelining_relay_args, relay_args,
};

/// Server connections that a pooler may open for each pool, where the case does not say otherwise.
pub(crate) const POOL_SIZE: u32 = 10;
/// What `pipelining` is by default.
pub(crate) const PIPELINING: &str = "auto";
const START_LIMIT: Duration = Duration::from_secs(15);

/// A way from a client to the server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Contender {
    Direct,
    PgBouncer,
    /// As it is by default.
    Pgweir,
    /// The plain pooler: every unit has a server alone.
    PgweirOff,
    Relay,
    /// Lets clients stand behind each other on few servers.
    PipeliningRelay,
    /// Without pipelining, as is the next.
    TwoWorkers,
    FourWorkers,
    /// Asked by the simple protocol where others are asked to prepare; without pipelining.
    SimplePgweir,
    /// Its clients have the same settings where those of others have several.
    EqualSettings,
    /// With a pair that somebody chose.
    Fixed(Pair),
}

impl Contender {
    /// All but the pairs.
    pub(crate) const ALL: [Self; 10] = [
        Self::Direct,
        Self::PgBouncer,
        Self::Pgweir,
        Self::PgweirOff,
        Self::Relay,
        Self::PipeliningRelay,
        Self::TwoWorkers,
        Self::FourWorkers,
        Self::SimplePgweir,
        Self::EqualSettings,
    ];

    /// What lending and sharing servers cost where nothing else is done.
    pub(crate) const RELAYS: [Self; 2] = [Self::Relay, Self::PipeliningRelay];

    /// Those of most cases.
    pub(crate) const USUAL: [Self; 4] = [Self::Direct, Self::PgBouncer, Self::Pgweir, Self::Relay];

    /// Those where the plain pooler is of interest too.
    pub(crate) const WITH_OFF: [Self; 6] = [
        Self::Direct,
        Self::PgBouncer,
        Self::Pgweir,
        Self::PgweirOff,
        Self::Relay,
        Self::PipeliningRelay,
    ];

    pub(crate) fn label(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Direct => "direct",
            Self::PgBouncer => "PgBouncer",
            Self::Pgweir => "pgweir",
            Self::PgweirOff => "pgweir, pipelining off",
            Self::Relay => "bare relay",
            Self::PipeliningRelay => "pipelining relay",
            Self::TwoWorkers => "pgweir, 2 workers",
            Self::FourWorkers => "pgweir, 4 workers",
            Self::SimplePgweir => "pgweir, simple protocol",
            Self::EqualSettings => "pgweir, equal settings",
            Self::Fixed(pair) => return Cow::Owned(format!("pgweir, {pair}")),
        })
    }

    /// As written on the command line and in raw results.
    pub(crate) fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Direct => "direct",
            Self::PgBouncer => "pgbouncer",
            Self::Pgweir => "pgweir",
            Self::PgweirOff => "pgweir-off",
            Self::Relay => "relay",
            Self::PipeliningRelay => "relay-pipelining",
            Self::TwoWorkers => "pgweir-2",
            Self::FourWorkers => "pgweir-4",
            Self::SimplePgweir => "pgweir-simple",
            Self::EqualSettings => "pgweir-equal",
            Self::Fixed(pair) => return Cow::Owned(format!("pgweir-{pair}")),
        })
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        let pair = || name.strip_prefix("pgweir-")?.parse().ok().map(Self::Fixed);
        Self::ALL.into_iter().find(|contender| contender.name() == name).or_else(pair)
    }

    /// Whether it is pgweir with a pair of a grid.
    pub(crate) fn is_pair(self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    fn kind(self) -> Kind {
        let pgweir = |workers, pipelining| Kind::Pgweir { workers, pipelining };
        match self {
            Self::Direct => Kind::Direct,
            Self::PgBouncer => Kind::PgBouncer,
            Self::Relay => Kind::Relay { pipelining: false },
            Self::PipeliningRelay => Kind::Relay { pipelining: true },
            Self::Pgweir | Self::EqualSettings => pgweir(1, PIPELINING.into()),
            Self::PgweirOff | Self::SimplePgweir => pgweir(1, "off".into()),
            Self::TwoWorkers => pgweir(2, "off".into()),
            Self::FourWorkers => pgweir(4, "off".into()),
            Self::Fixed(pair) => pgweir(1, pair.to_string().into()),
        }
    }
}

/// The program that a contender is, and what it is told of itself.
enum Kind {
    Direct,
    PgBouncer,
    Relay { pipelining: bool },
    Pgweir { workers: u32, pipelining: Cow<'static, str> },
}

impl From<Contender> for String {
    fn from(contender: Contender) -> Self {
        contender.name().into_owned()
    }
}

impl TryFrom<String> for Contender {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        Self::named(&name).ok_or_else(|| format!("no contender is named {name}"))
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
        match contender.kind() {
            Kind::Direct => true,
            Kind::PgBouncer => self.pgbouncer.is_some(),
            Kind::Relay { .. } => self.relay.is_some(),
            Kind::Pgweir { .. } => self.pgweir.is_some(),
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
    /// Server connections that a pooler may open for each of them.
    pub(crate) pool_size: u32,
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
        let Place { port, server_port, pools, pool_size, cpus } = place;
        let (at, server_at) = (port.to_string(), server_port.to_string());
        let address = Address { port: &at, server_port: &server_at, pool_size };
        let (program, args, account) = match contender.kind() {
            Kind::Direct => return Ok(Self { contender, port: server_port, pooler: None }),
            Kind::PgBouncer => {
                scratch.write("userlist.txt", &format!("\"{USER}\" \"\"\n"))?;
                let users = scratch.join("userlist.txt").display().to_string();
                let config = scratch.write("pgbouncer.ini", &pgbouncer_ini(&address, &users))?;
                (&programs.pgbouncer, vec![config.display().to_string()], account)
            }
            Kind::Pgweir { workers, pipelining } => {
                let config = pgweir_toml(&address, workers, pools, &pipelining);
                // Each has a file of its own: they stand side by side.
                let config = scratch.write(&format!("{}.toml", contender.name()), &config)?;
                (&programs.pgweir, vec![config.display().to_string()], None)
            }
            Kind::Relay { pipelining: false } => (&programs.relay, relay_args(&address), None),
            Kind::Relay { pipelining: true } => {
                (&programs.relay, pipelining_relay_args(&address), None)
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

#[cfg(test)]
mod tests;

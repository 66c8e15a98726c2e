//! The throw-away PostgreSQL that every contender stands in front of.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::account::Account;
use crate::child::{Child, Launch, Stop};
use crate::clock;
use crate::error::{Error, Result};
use crate::frontend::Frontend;
use crate::scratch::{Scratch, require_readable};

/// The superuser that initdb makes and every client logs in as, trusted.
pub(crate) const USER: &str = "bench";
/// The database that initdb makes; pgbench's tables are in it.
pub(crate) const DATABASE: &str = "postgres";
/// pgbench's scale: 10 branches and 1,000,000 accounts, about 150 MB.
pub(crate) const SCALE: u32 = 10;

const START_LIMIT: Duration = Duration::from_secs(60);
const FILL_LIMIT: Duration = Duration::from_secs(600);

/// What differs from PostgreSQL's defaults. Commits are durable; what would come and go between
/// rounds (checkpoints, autovacuum, parallel plans) is kept out of them.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", "."),
    ("max_connections", "1200"),
    ("shared_buffers", "256MB"),
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("checkpoint_timeout", "1h"),
    ("max_wal_size", "8GB"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("log_checkpoints", "off"),
];

/// Where PostgreSQL's programs are.
#[derive(Clone, Debug)]
pub(crate) struct PgBin(PathBuf);

impl PgBin {
    /// The given folder, or the newest below /usr/lib/postgresql.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self> {
        let folder = match given {
            Some(folder) => Some(folder.to_owned()),
            None => newest_installed(Path::new("/usr/lib/postgresql")),
        };
        let bin = folder
            .and_then(|folder| fs::canonicalize(folder).ok())
            .map(Self)
            .ok_or_else(|| Error::unfit("no PostgreSQL found: name its bin folder (--pg-bin)"))?;
        for name in ["initdb", "postgres", "pgbench"] {
            if !bin.program(name).is_file() {
                return Err(Error::unfit(format!("{} is missing", bin.program(name).display())));
            }
        }
        Ok(bin)
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// `bin` of the highest version below `root`.
fn newest_installed(root: &Path) -> Option<PathBuf> {
    let version = |name: &str| name.parse::<u32>().ok();
    let folders = fs::read_dir(root).ok()?.flatten();
    let versions = folders.filter_map(|entry| version(&entry.file_name().to_string_lossy()));
    Some(root.join(versions.max()?.to_string()).join("bin"))
}

/// A running PostgreSQL with pgbench's tables; stopped on drop.
pub(crate) struct Cluster {
    pub(crate) port: u16,
    pub(crate) socket: PathBuf,
    pub(crate) bin: PgBin,
    server: Child,
}

impl Cluster {
    /// Makes the cluster in `scratch`, starts it on `port`, and fills it.
    pub(crate) fn start(
        bin: PgBin,
        scratch: &Scratch,
        account: Option<Account>,
        port: u16,
    ) -> Result<Self> {
        require_readable(&bin.program("initdb"), account)?;
        let run = |name: &str, args: Vec<String>| {
            Child::start(Launch {
                program: &bin.program(name),
                args,
                account,
                cpus: None,
                stop: Stop::Quit,
                log: scratch.join(&format!("{name}.log")),
            })
        };
        let folder = scratch.join("data");
        let data = folder.display().to_string();
        run("initdb", initdb_args(&data))?.finish(START_LIMIT)?;
        let mut postgres = vec!["-D".to_owned(), data, "-p".to_owned(), port.to_string()];
        for (name, value) in SETTINGS {
            postgres.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
        let mut server = run("postgres", postgres)?;
        await_login(&mut server, port, START_LIMIT)?;
        run("pgbench", fill_args(&port.to_string()))?.finish(FILL_LIMIT)?;
        let socket = folder.join(format!(".s.PGSQL.{port}"));
        let cluster = Self { port, socket, bin, server };
        // Every page in memory and on disk before the first round.
        cluster.run(&["SELECT sum(abalance) FROM pgbench_accounts", "CHECKPOINT"])?;
        Ok(cluster)
    }

    /// Runs statements directly on the server.
    pub(crate) fn run(&self, statements: &[&str]) -> Result<()> {
        let mut frontend = Frontend::log_in(self.port, Ipv4Addr::LOCALHOST, DATABASE)?;
        for sql in statements {
            frontend.drain(sql, &mut [0; 4096])?;
        }
        frontend.close()
    }

    /// The process that all backends are children of.
    pub(crate) fn id(&self) -> u32 {
        self.server.id()
    }

    pub(crate) fn require_running(&mut self) -> Result<()> {
        self.server.require_running()
    }
}

pub(crate) fn initdb_args(data: &str) -> Vec<String> {
    let args = ["-D", data, "-U", USER, "-A", "trust", "--no-locale", "-E", "UTF8", "-N"];
    args.map(str::to_owned).to_vec()
}

/// What pgbench is to be told to make its tables.
pub(crate) fn fill_args(port: &str) -> Vec<String> {
    let args = format!("-i -q -s {SCALE} -h 127.0.0.1 -p {port} -U {USER} {DATABASE}");
    args.split(' ').map(str::to_owned).collect()
}

/// Waits until a login on `port` succeeds, as long as `child` runs.
pub(crate) fn await_login(child: &mut Child, port: u16, limit: Duration) -> Result<()> {
    let mut last = None;
    let logged_in = clock::until(limit, || {
        child.require_running()?;
        match Frontend::log_in(port, Ipv4Addr::LOCALHOST, DATABASE).and_then(Frontend::close) {
            Ok(()) => Ok(Some(())),
            Err(error) => {
                last = Some(error);
                Ok(None)
            }
        }
    })?;
    match (logged_in, last) {
        (Some(()), _) => Ok(()),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::unfit(format!("no login on port {port}"))),
    }
}

//! The PostgreSQL that is installed on this machine, and the user it may run as.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use rustix::process::geteuid;

use crate::fail::OrFail;

/// The command for a program of the installed PostgreSQL, such as `psql`, `pgbench`, `pg_dump`.
///
/// No `PG…` variable of the surroundings reaches it: it goes where its arguments say.
///
/// # Panics
/// When no PostgreSQL server is installed.
#[must_use]
pub fn tool(name: &str) -> Command {
    let mut command = Command::new(bindir().join(name));
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with("PG") {
            command.env_remove(variable);
        }
    }
    command
}

/// The version of the installed server as it writes it, such as `15.18`.
///
/// # Panics
/// When no PostgreSQL server is installed.
#[must_use]
pub fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let output = run(tool("postgres").arg("--version"));
        // `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`
        let word = output.split_whitespace().nth(2).or_fail("read the version of postgres");
        word.to_owned()
    })
}

/// Whom the server runs as when the tests are root's: `postgres` refuses to run as root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl ServiceUser {
    /// The user `postgres`, or `nobody` where there is none; `None` when the tests are not root's
    /// and the server runs as the same user.
    pub(crate) fn when_root() -> Option<Self> {
        static FOUND: OnceLock<Option<ServiceUser>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            if !geteuid().is_root() {
                return None;
            }
            let user = ["postgres", "nobody"].into_iter().find_map(Self::named);
            Some(user.or_fail("find the user postgres or nobody"))
        })
    }

    fn named(name: &str) -> Option<Self> {
        let id = |option: &str| {
            let output = Command::new("id").args([option, name]).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self { uid: id("-u")?, gid: id("-g")? })
    }
}

/// Runs `command` to its end and gives its standard output.
///
/// # Panics
/// When it cannot be started or does not succeed, with its standard error.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().or_fail(format!("start {command:?}"));
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The folder of the server's programs: `$PG_BINDIR`, else where `PATH` leads to, else the newest
/// under /usr/lib/postgresql, where Debian puts them outside of `PATH`.
pub(crate) fn bindir() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        if let Some(folder) = env::var_os("PG_BINDIR") {
            let folder = PathBuf::from(folder);
            assert!(has_server(&folder), "no initdb and postgres in PG_BINDIR={folder:?}");
            return folder;
        }
        on_path().or_else(newest_of_debian).or_fail(
            "no PostgreSQL server found: install the package postgresql, or set PG_BINDIR to the \
             folder of initdb and postgres",
        )
    })
}

/// `PATH` may hold links to the server alone: psql and pgbench lie beside what they point to.
fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let server = env::split_paths(&path).find(|folder| has_server(folder))?.join("postgres");
    let folder = server.canonicalize().ok()?.parent()?.to_owned();
    has_server(&folder).then_some(folder)
}

fn newest_of_debian() -> Option<PathBuf> {
    let versions = Path::new("/usr/lib/postgresql").read_dir().ok()?;
    versions
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let major: u32 = entry.file_name().to_str()?.parse().ok()?;
            let folder = entry.path().join("bin");
            has_server(&folder).then_some((major, folder))
        })
        .max()
        .map(|(_, folder)| folder)
}

fn has_server(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file())
}

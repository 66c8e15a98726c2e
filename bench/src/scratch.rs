//! The folder of one run: the cluster's data, logs and pgbench's files. Gone when the run ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::error::{Doing, Error, Result};

/// A folder's name before its process's id.
const NAME: &str = "pgweir-bench-";

/// A folder below the system's one for temporary files, removed on drop.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes `pgweir-bench-PID`, owned by `account` where there is one; removes those of runs that
    /// were killed.
    pub(crate) fn create(account: Option<Account>) -> Result<Self> {
        sweep();
        let path = std::env::temp_dir().join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&path).doing(|| format!("make {}", path.display()))?;
        let scratch = Self { path };
        open_to_all(&scratch.path, 0o755)?;
        if let Some(account) = account {
            account.own(&scratch.path)?;
        }
        Ok(scratch)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that every user may read, and gives its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.join(name);
        fs::write(&path, text).doing(|| format!("write {}", path.display()))?;
        open_to_all(&path, 0o644)?;
        Ok(path)
    }

    /// Makes an empty folder, in place of one of that name.
    pub(crate) fn fresh_folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).doing(|| format!("remove {}", path.display()))?;
        }
        fs::create_dir(&path).doing(|| format!("make {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("bench: could not remove {}: {error}", self.path.display());
        }
    }
}

/// Whatever the umask is: the unprivileged user must be able to enter and to read.
fn open_to_all(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .doing(|| format!("open {}", path.display()))
}

/// Removes folders whose process is no more. Those that cannot be removed belong to another user.
fn sweep() {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        let gone =
            |id: u32| id == std::process::id() || !Path::new(&format!("/proc/{id}")).exists();
        if process.is_some_and(gone) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Refuses paths that `account` cannot run: a folder above them may be closed to it.
pub(crate) fn require_readable(path: &Path, account: Option<Account>) -> Result<()> {
    let Some(account) = account else { return Ok(()) };
    let open = |at: &Path| fs::metadata(at).is_ok_and(|meta| meta.permissions().mode() & 1 != 0);
    match path.ancestors().find(|at| !open(at)) {
        None => Ok(()),
        Some(closed) => Err(Error::unfit(format!(
            "{} cannot be run by user {}: {} is closed to it; put the files where every user may \
             enter, as below /tmp",
            path.display(),
            account.uid,
            closed.display()
        ))),
    }
}

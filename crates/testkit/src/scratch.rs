use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{fail::OrFail, postgres::ServiceUser};

/// A folder for one server process, gone with it.
///
/// Dropping removes the folder. When the test process ends without dropping (a kill -9, an abort,
/// a value in a static) a guard process does it, and first ends the process whose id was given to
/// [`Scratch::watch`]. The parent-death signal of Linux would not do: it follows the *thread* that
/// spawned, and a test's thread ends before its process.
#[derive(Debug)]
pub(crate) struct Scratch {
    // Fields are dropped in this order: the folder goes first, so that the guard, which wakes
    // when its standard input closes, finds nothing left to do.
    folder: TempDir,
    _guard: Guard,
}

impl Scratch {
    /// A new folder under the system's temporary folder, owned by `owner`.
    pub(crate) fn new(owner: Option<ServiceUser>) -> Self {
        // A short prefix: the path of a unix socket holds 107 bytes.
        let folder = tempfile::Builder::new()
            .prefix("pgweir-")
            .tempdir()
            .or_fail("create a temporary folder");
        if let Some(owner) = owner {
            chown(folder.path(), Some(owner.uid), Some(owner.gid))
                .or_fail("give the temporary folder to the service user");
        }
        let guard = Guard::spawn(folder.path());
        Self { folder, _guard: guard }
    }

    /// Has the guard end process `pid` too. The process must work in this folder or below it: by
    /// that the guard knows it from a stranger that got its id.
    pub(crate) fn watch(&self, pid: u32) {
        fs::write(self.join("pid"), format!("{pid}\n")).or_fail("tell the guard a process id");
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[derive(Debug)]
struct Guard(Child);

impl Guard {
    fn spawn(folder: &Path) -> Self {
        let child = Command::new("sh")
            .args(["-c", include_str!("guard.sh"), "pgweir-guard"])
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C ends the foreground group: the guard must be there afterwards.
            .process_group(0)
            .spawn()
            .or_fail("start a guard process");
        Self(child)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Closes its standard input, then reaps it.
        let _ended = self.0.wait();
    }
}

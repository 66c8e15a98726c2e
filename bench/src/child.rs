//! Programs that the harness starts, and that never outlive it.
//!
//! A child is started through this program's own hidden subcommand `child`, which asks the kernel
//! for a signal when the harness dies, and then becomes the program. So a child ends with the
//! harness even where the harness is killed and runs no destructor.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::account::Account;
use crate::clock;
use crate::cpus::Cpus;
use crate::error::{Doing, Error, Result};

/// After this long without an end, a child that was asked to stop is killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Names the file that starts this program where the kernel's idea of it is another one: a bundle
/// starts it through the dynamic loader.
const SELF: &str = "PGWEIR_BENCH_SELF";

/// What to start, and how.
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: Vec<String>,
    /// Run as this user; as our own where there is none.
    pub(crate) account: Option<Account>,
    /// Run on these processors; wherever the kernel likes where there are none.
    pub(crate) cpus: Option<&'a Cpus>,
    pub(crate) stop: Stop,
    /// Takes standard output and standard error.
    pub(crate) log: PathBuf,
}

/// How a program is told that it is no longer wanted.
#[derive(Clone, Copy)]
pub(crate) enum Stop {
    /// SIGKILL: for programs that leave nothing behind.
    Kill,
    /// SIGQUIT: PostgreSQL's immediate shutdown, which takes its shared memory with it.
    Quit,
}

impl Stop {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Quit => "quit",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Kill, Self::Quit].into_iter().find(|stop| stop.name() == name)
    }

    fn signal(self) -> Signal {
        match self {
            Self::Kill => Signal::KILL,
            Self::Quit => Signal::QUIT,
        }
    }
}

/// A running program; dropping it stops it and waits for its end.
pub(crate) struct Child {
    name: String,
    process: std::process::Child,
    stop: Stop,
    log: PathBuf,
}

impl Child {
    pub(crate) fn start(launch: Launch<'_>) -> Result<Self> {
        let name = launch.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = || -> std::io::Result<(File, File)> {
            let file = File::create(&launch.log)?;
            Ok((file.try_clone()?, file))
        };
        let (stdout, stderr) = log().doing(|| format!("write {}", launch.log.display()))?;
        // The link to our own executable works even where the other user could not reach its path.
        let way_in = std::env::var_os(SELF).unwrap_or_else(|| "/proc/self/exe".into());
        let mut command = Command::new(way_in);
        command
            .arg("child")
            .args(launch.cpus.map(|cpus| format!("--cpus={cpus}")))
            .args([std::process::id().to_string().as_str(), launch.stop.name()])
            .arg(launch.program)
            .args(&launch.args)
            // Without encryption, and without a time zone that initdb would search the system for.
            .envs([("PGSSLMODE", "disable"), ("PGGSSENCMODE", "disable"), ("TZ", "GMT")])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            // A Ctrl-C at the terminal is for the harness, which then stops its children in order.
            .process_group(0);
        if let Some(account) = launch.account {
            command.uid(account.uid).gid(account.gid);
        }
        let process = command.spawn().doing(|| format!("start {name}"))?;
        Ok(Self { name, process, stop: launch.stop, log: launch.log })
    }

    /// Waits for the program's own end within `limit`; what it wrote, if it ended well.
    pub(crate) fn finish(mut self, limit: Duration) -> Result<String> {
        match clock::until(limit, || self.ended())? {
            Some(status) if status.success() => self.said(),
            Some(status) => Err(self.failed(&status.to_string())),
            None => Err(self.failed(&format!("did not end within {} s", limit.as_secs()))),
        }
    }

    /// Errors when the program has ended, with what it wrote last.
    pub(crate) fn require_running(&mut self) -> Result<()> {
        match self.ended()? {
            Some(status) => Err(self.failed(&format!("ended unasked ({status})"))),
            None => Ok(()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.process.try_wait().doing(|| format!("wait for {}", self.name))
    }

    fn said(&self) -> Result<String> {
        let bytes = std::fs::read(&self.log).doing(|| format!("read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn failed(&self, how: &str) -> Error {
        let said = self.said().unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n  ");
        Error::unfit(format!("{} {how}\n  {last}", self.name))
    }

    fn take_down(&mut self) -> std::io::Result<()> {
        if self.process.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = Pid::from_child(&self.process);
        rustix::process::kill_process(pid, self.stop.signal())?;
        let start = clock::now();
        // Not by `clock::until`: this must also work after an interrupt.
        while self.process.try_wait()?.is_none() {
            if start.elapsed() > STOP_LIMIT {
                self.process.kill()?;
                self.process.wait()?;
                break;
            }
            clock::rest();
        }
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Err(error) = self.take_down() {
            eprintln!("bench: could not stop {}: {error}", self.name);
        }
    }
}

/// The file that starts this program.
pub(crate) fn own_program() -> Result<PathBuf> {
    match std::env::var_os(SELF) {
        Some(path) => Ok(path.into()),
        None => std::env::current_exe().doing(|| "find this program's own file".into()),
    }
}

/// The hidden subcommand: ties this process to the harness `parent` and to its processors, then
/// becomes `program`. Returns only if that fails.
pub(crate) fn become_child(
    parent: u32,
    stop: &str,
    cpus: Option<&Cpus>,
    program: &Path,
    args: &[String],
) -> Error {
    let tied = Stop::named(stop)
        .ok_or(rustix::io::Errno::INVAL)
        .and_then(|stop| rustix::process::set_parent_process_death_signal(Some(stop.signal())))
        .and_then(|()| cpus.map_or(Ok(()), Cpus::hold));
    if let Err(error) = tied {
        return Error::Io { doing: "tie a child to the harness".into(), source: error.into() };
    }
    // The harness may have died before it was being watched.
    let alive = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if alive.and_then(|pid| u32::try_from(pid).ok()) != Some(parent) {
        return Error::unfit("the harness has ended");
    }
    let source = Command::new(program).args(args).exec();
    Error::Io { doing: format!("run {}", program.display()), source }
}

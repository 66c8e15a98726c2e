use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{deadline::eventually_some, fail::OrFail, scratch::Scratch};

/// Lines of the log that a failing test shows.
const LOG_LINES_SHOWN: usize = 40;

/// A server that runs as a child: its output goes to a log file, and it ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    // Behind a lock so that nobody signals a process that another thread has just reaped, and
    // whose id may by now be a stranger's.
    child: Mutex<Child>,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, which must work in `scratch` or below it, with its output appended to
    /// `scratch`/log.
    pub(crate) fn spawn(name: &'static str, command: &mut Command, scratch: &Scratch) -> Self {
        let log = scratch.join("log");
        let output = File::options().create(true).append(true).open(&log).or_fail("open a log");
        let errors = output.try_clone().or_fail("open a log");
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C is for the test runner; the guard then ends this process.
            .process_group(0)
            .spawn()
            .or_fail(format!("start {name}"));
        scratch.watch(child.id());
        Self { name, child: Mutex::new(child), log }
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&self) -> ExitStatus {
        let what = format!("the end of {}", self.name);
        eventually_some(&what, || self.ended())
    }

    /// How it ended, `None` while it runs.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.child().try_wait().or_fail(format!("wait for {}", self.name))
    }

    /// Kills it and waits for its end, which cannot be far.
    pub(crate) fn kill(&self) -> ExitStatus {
        let mut child = self.child();
        child.kill().or_fail(format!("kill {}", self.name));
        child.wait().or_fail(format!("wait for {}", self.name))
    }

    /// Sends a signal. It is no error if the process has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let mut child = self.child();
        if let Ok(None) = child.try_wait() {
            kill_process(Pid::from_child(&child), signal).or_fail(format!("signal {}", self.name));
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child())
    }

    /// What it wrote since its first start in this folder.
    pub(crate) fn log(&self) -> String {
        let bytes = fs::read(&self.log).or_fail(format!("read the log of {}", self.name));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A thread that panicked with the lock held left the child as it was.
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = fs::read(&self.log).unwrap_or_default();
            eprintln!("--- end of the log of {} ---\n{}", self.name, tail(&log));
        }
        let mut child = self.child();
        let _killed = child.kill();
        let _reaped = child.wait();
    }
}

fn tail(log: &[u8]) -> String {
    let log = String::from_utf8_lossy(log);
    let skipped = log.lines().count().saturating_sub(LOG_LINES_SHOWN);
    log.lines().skip(skipped).map(|line| format!("{line}\n")).collect()
}

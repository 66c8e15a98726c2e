//! Processes that hang.

use std::fs;

use pgweir_testkit::Cluster;
use rustix::process::{Pid, Signal, kill_process};

/// A process that is stopped, which goes on with this value.
pub(crate) struct Stopped(String);

impl Stopped {
    pub(crate) fn process(pid: &str) -> Self {
        signal(Signal::STOP, pid);
        Self(pid.to_owned())
    }

    /// Whether one of its timers has run out, of which it hears when it goes on.
    pub(crate) fn has_an_alarm(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
        let pending = u64::from_str_radix(pending.trim(), 16).unwrap();
        pending & 1 << (Signal::ALARM.as_raw() - 1) != 0
    }

    /// The process that takes connections in.
    pub(crate) fn postmaster(cluster: &Cluster) -> Self {
        Self::process(&postmaster(cluster))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(Signal::CONT, &self.0);
    }
}

pub(crate) fn signal(signal: Signal, pid: &str) {
    kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), signal).unwrap();
}

/// The process id of a cluster's first process.
pub(crate) fn postmaster(cluster: &Cluster) -> String {
    let file = fs::read_to_string(cluster.data_dir().join("postmaster.pid")).unwrap();
    file.lines().next().unwrap().to_owned()
}

//! Processes that hang.

use pgweir_testkit::Cluster;

/// A process that is stopped, which goes on with this value.
pub(crate) struct Stopped(String);

impl Stopped {
    pub(crate) fn process(pid: &str) -> Self {
        signal("-STOP", pid);
        Self(pid.to_owned())
    }

    /// The process that takes connections in.
    pub(crate) fn postmaster(cluster: &Cluster) -> Self {
        Self::process(&postmaster(cluster))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

pub(crate) fn signal(name: &str, pid: &str) {
    let sent = std::process::Command::new("kill").args([name, pid]).status().unwrap();
    assert!(sent.success());
}

/// The process id of a cluster's first process.
pub(crate) fn postmaster(cluster: &Cluster) -> String {
    let file = std::fs::read_to_string(cluster.data_dir().join("postmaster.pid")).unwrap();
    file.lines().next().unwrap().to_owned()
}

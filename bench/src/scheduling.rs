//! One scheduling group for all that a case runs.
//!
//! Each backend of PostgreSQL begins a session of its own (`setsid`), and of processes that are in
//! no cgroup for processors Linux makes each session a scheduling group (autogroup in sched(7)).
//! Now and then a backend that has slept then gets no processor for hundreds of milliseconds, while
//! others of the same kind run. In a cgroup, where services of systemd and containers are, the
//! kernel does not do so. To medians that is little; where the slowest transaction counts it is
//! all that would be measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;

/// How long children that have been told to end are waited for.
const END_LIMIT: Duration = Duration::from_secs(10);

/// How the kernel divides its processors among what is measured.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scheduling {
    /// Among all processes and threads alike.
    Together,
    /// Among sessions, of which each backend is one.
    BySession,
}

impl Scheduling {
    /// A sentence of the report.
    pub(crate) fn says(self) -> &'static str {
        match self {
            Self::Together => "All that runs is in one scheduling group.",
            Self::BySession => {
                "Each backend of PostgreSQL is a scheduling group: no other could be made."
            }
        }
    }
}

/// A cgroup for this process, what it starts, and some others. Dropping it puts them back where
/// they were, and removes it.
pub(crate) struct Group {
    path: PathBuf,
    root: PathBuf,
    members: Vec<u32>,
}

impl Group {
    /// Puts this process and `others` into a group where sessions would be groups, and says how it
    /// is then: without a group where none can be made, which takes root.
    pub(crate) fn join(others: &[u32]) -> (Option<Self>, Scheduling) {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let is_on = read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1";
        if !is_on || !is_at_root(&read("/proc/self/cgroup")) {
            return (None, Scheduling::Together);
        }
        let members = [&[std::process::id()][..], others].concat();
        match root(&read("/proc/self/mounts")).and_then(|root| Self::make(root, members)) {
            Some(group) => (Some(group), Scheduling::Together),
            None => (None, Scheduling::BySession),
        }
    }

    fn make(root: PathBuf, members: Vec<u32>) -> Option<Self> {
        let path = root.join(format!("pgweir-bench-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self { path, root, members };
        group.members.iter().all(|id| enter(&group.path, *id)).then_some(group)
    }

    /// Backends whose clients have left take a moment to end.
    fn remove(&self) -> std::io::Result<()> {
        let begin = clock::now();
        loop {
            match fs::remove_dir(&self.path) {
                Err(_) if begin.elapsed() < END_LIMIT => clock::rest(),
                done => return done,
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for id in &self.members {
            enter(&self.root, *id);
        }
        if let Err(error) = self.remove() {
            eprintln!("bench: could not remove {}: {error}", self.path.display());
        }
    }
}

/// Puts a process, and with it all children that it will have, into a cgroup.
fn enter(group: &Path, id: u32) -> bool {
    fs::write(group.join("cgroup.procs"), id.to_string()).is_ok()
}

/// Whether the process with this `/proc/PID/cgroup` is in no cgroup for processors: in the root of
/// the hierarchy with the controller `cpu` (version 1), or of the only one (version 2).
fn is_at_root(cgroups: &str) -> bool {
    let lines = cgroups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let of_version_1 = lines.clone().find(|(controllers, _)| has_cpu(controllers));
    let of_version_2 = || lines.clone().find(|(controllers, _)| controllers.is_empty());
    of_version_1.or_else(of_version_2).is_some_and(|(_, path)| path == "/")
}

/// The root of all cgroups for processors, by the text of `/proc/self/mounts`. Of version 2 only
/// where it gives its children the controller already: the machine is left as it is.
fn root(mounts: &str) -> Option<PathBuf> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let mut of_version_1 =
        mounted.clone().filter(|(_, kind, options)| *kind == "cgroup" && has_cpu(options));
    let gives_cpu = |at: &str| {
        let given = fs::read_to_string(Path::new(at).join("cgroup.subtree_control"));
        given.is_ok_and(|given| given.split_whitespace().any(|name| name == "cpu"))
    };
    let of_version_2 = || mounted.clone().find(|(at, kind, _)| *kind == "cgroup2" && gives_cpu(at));
    of_version_1.next().or_else(of_version_2).map(|(at, ..)| PathBuf::from(at))
}

fn has_cpu(list: &str) -> bool {
    list.split(',').any(|name| name == "cpu")
}

#[cfg(test)]
mod tests;

//! The machine and the versions that a result belongs to.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::cluster::PgBin;
use crate::contender::Programs;
use crate::cpus;

/// What a reader must know to compare a result with another machine's.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Environment {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gb: u64,
    pub(crate) kernel: String,
    pub(crate) system: String,
    /// What each program says of its version, one for each that takes part.
    pub(crate) versions: Vec<String>,
}

impl Environment {
    pub(crate) fn look(bin: Option<&PgBin>, programs: &Programs) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let after = |text: &str, label: &str, separator: char| {
            let line = text.lines().find(|line| line.starts_with(label)).unwrap_or_default();
            let value = line.split_once(separator).map_or("unknown", |(_, value)| value.trim());
            value.trim_matches('"').to_owned()
        };
        let memory = after(&read("/proc/meminfo"), "MemTotal", ':');
        let memory_kb: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
        let of_postgres = ["postgres", "pgbench"].map(|name| Some(bin?.program(name)));
        let poolers = [programs.pgbouncer.clone(), programs.pgweir.clone()];
        let found = of_postgres.into_iter().chain(poolers).flatten();
        Self {
            cpu: after(&read("/proc/cpuinfo"), "model name", ':'),
            cores: cpus::count(),
            memory_gb: memory_kb.div_ceil(1 << 20),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            system: after(&read("/etc/os-release"), "PRETTY_NAME", '='),
            versions: found.filter_map(|program| version(&program)).collect(),
        }
    }
}

/// The first line of what `--version` prints; `None` where it prints nothing.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().filter(|_| output.status.success()).map(str::to_owned)
}

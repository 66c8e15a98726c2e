//! What a process has used, as the kernel tells it.

use std::fs;
use std::time::Duration;

use crate::error::{Doing, Error, Result};

/// User and system time of all threads of a process since its start; steps of 10 ms on most
/// kernels.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).doing(|| format!("read {path}"))?;
    let ticks = ticks_in(&stat).ok_or_else(|| Error::unfit(format!("{path}: {stat}")))?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// utime and stime in the text of proc_pid_stat(5).
fn ticks_in(stat: &str) -> Option<u64> {
    // The second field is the program's name, which may hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let utime: u64 = fields.next()?.parse().ok()?;
    let stime: u64 = fields.next()?.parse().ok()?;
    Some(utime + stime)
}

/// Memory of a process, in KiB, as in `/proc/PID/smaps_rollup`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Memory {
    /// Pages in memory, shared ones counted whole.
    pub(crate) rss_kb: u64,
    /// Pages in memory, shared ones counted in parts.
    pub(crate) pss_kb: u64,
    /// Pages that no file backs: heap and stacks.
    pub(crate) anonymous_kb: u64,
}

pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let rollup = fs::read_to_string(&path).doing(|| format!("read {path}"))?;
    memory_in(&rollup).ok_or_else(|| Error::unfit(format!("{path}: {rollup}")))
}

fn memory_in(rollup: &str) -> Option<Memory> {
    let field = |name: &str| {
        let value = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some(Memory { rss_kb: field("Rss")?, pss_kb: field("Pss")?, anonymous_kb: field("Anonymous")? })
}

#[cfg(test)]
mod tests;

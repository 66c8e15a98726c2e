//! The machine's processors, and who runs where on a machine that has enough of them.
//!
//! Where load, pooler and server are busy at the same time, what the kernel's scheduler thinks of
//! it differs from second to second. So the pooler gets one half of the processors and all others
//! share the second; a half is made of whole cores, so that nobody's sibling is in the other.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How many processors this process may keep busy: by its affinity, and by its group's quota.
pub(crate) fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Threads of a load generator that shares the machine with all others: two, more where there are
/// cores for it.
pub(crate) fn load_threads() -> u32 {
    u32::try_from(count() / 4).unwrap_or(u32::MAX).max(2)
}

/// Who gets how much of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    pub(crate) load_threads: u32,
    pub(crate) server_threads: u32,
    /// `None` where the kernel places everybody: on one core, or where a quota and not a set of
    /// processors is what this process has.
    halves: Option<Halves>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Halves {
    pooler: Cpus,
    others: Cpus,
}

impl Division {
    pub(crate) fn of_this_machine() -> Self {
        let count = count();
        let allowed = Cpus::allowed().filter(|allowed| allowed.0.len() == count);
        let part = |share: usize| u32::try_from(share).unwrap_or(u32::MAX).max(1);
        Self {
            // A client costs a little more than a server.
            load_threads: part(count * 3 / 8),
            server_threads: part(count / 4),
            halves: allowed.and_then(|allowed| Halves::of(allowed.cores())),
        }
    }

    /// Where the pooler runs.
    pub(crate) fn pooler(&self) -> Option<&Cpus> {
        self.halves.as_ref().map(|halves| &halves.pooler)
    }

    /// Where load and server run.
    pub(crate) fn others(&self) -> Option<&Cpus> {
        self.halves.as_ref().map(|halves| &halves.others)
    }
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { load_threads, server_threads, halves } = self;
        write!(f, "threads of the load: {load_threads}, of the server: {server_threads}; ")?;
        match halves {
            Some(Halves { pooler, others }) => {
                write!(f, "pooler on CPUs {pooler}, load and server on CPUs {others}")
            }
            None => f.write_str("all on any CPU"),
        }
    }
}

impl Halves {
    /// The halves of a machine with these cores; `None` of fewer than two.
    fn of(mut cores: Vec<Vec<usize>>) -> Option<Self> {
        if cores.len() < 2 {
            return None;
        }
        let others = cores.split_off(cores.len() / 2);
        Some(Self { pooler: Cpus::of(cores), others: Cpus::of(others) })
    }
}

/// Processors by the kernel's numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Cpus(Vec<usize>);

impl Cpus {
    fn of(cores: Vec<Vec<usize>>) -> Self {
        let mut all = cores.concat();
        all.sort_unstable();
        Self(all)
    }

    /// Those that this process may run on; `None` where the kernel does not say.
    fn allowed() -> Option<Self> {
        let set = sched_getaffinity(None).ok()?;
        Some(Self((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()))
    }

    /// Keeps this thread, and whatever it starts or becomes, on these processors.
    pub(crate) fn hold(&self) -> rustix::io::Result<()> {
        let mut set = CpuSet::new();
        for cpu in &self.0 {
            set.set(*cpu);
        }
        sched_setaffinity(None, &set)
    }

    /// The processors of each core together; each alone where the kernel does not tell siblings.
    fn cores(&self) -> Vec<Vec<usize>> {
        let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cpu in &self.0 {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            let siblings = fs::read_to_string(path).unwrap_or_default();
            cores.entry(first_in(&siblings).unwrap_or(*cpu)).or_default().push(*cpu);
        }
        cores.into_values().collect()
    }
}

/// The first number of a list as the kernel writes it: `0-1` or `0,8`.
fn first_in(list: &str) -> Option<usize> {
    list.trim().split([',', '-']).next()?.parse().ok()
}

/// As in `0,1,2`.
impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let number = |word: &str| word.parse::<usize>().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
        let numbers: Option<Vec<usize>> = list.split(',').map(number).collect();
        numbers.map(Self).ok_or_else(|| format!("no list of processors: {list}"))
    }
}

#[cfg(test)]
mod tests;

//! What pgweir's process takes of its machine.

use std::fs;

use pgweir_testkit::Pgweir;

pub(crate) const MB: usize = 1024 * 1024;

/// Connections, files, and whatever else a descriptor stands for.
pub(crate) fn descriptors(pgweir: &Pgweir) -> usize {
    fs::read_dir(format!("/proc/{}/fd", pgweir.pid())).unwrap().count()
}

/// The memory of a process since a moment of its life.
pub(crate) struct Memory<'a> {
    pgweir: &'a Pgweir,
    resident: usize,
    reserved: usize,
}

impl<'a> Memory<'a> {
    /// From now on.
    pub(crate) fn of(pgweir: &'a Pgweir) -> Self {
        let [resident, reserved] = ["VmRSS:", "VmSize:"].map(|name| status(pgweir, name));
        Self { pgweir, resident, reserved }
    }

    /// How much it was then.
    pub(crate) fn resident(&self) -> usize {
        self.resident
    }

    /// By how many bytes it grew at most, even if only for a moment.
    pub(crate) fn growth(&self) -> usize {
        status(self.pgweir, "VmHWM:").saturating_sub(self.resident)
    }

    /// By how many bytes its address space grew at most: memory that was asked for, used or not.
    pub(crate) fn reservation(&self) -> usize {
        status(self.pgweir, "VmPeak:").saturating_sub(self.reserved)
    }
}

/// A size in /proc/PID/status, in bytes.
fn status(pgweir: &Pgweir, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", pgweir.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

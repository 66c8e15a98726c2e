//! Which commit a run measures: that of the checkout that it runs in, or that a bundle was packed
//! from. The programs are taken to be built from it, as `make bench` does.

use std::env;
use std::path::Path;
use std::process::Command;

/// Names the commit where there is no checkout: a bundle carries it along.
const CARRIED: &str = "PGWEIR_BENCH_COMMIT";
/// Digits of a hash, so that every clone writes the same.
const SHORT: &str = "--short=10";
/// What stands for a commit that is not known.
const UNKNOWN: &str = "unknown";

/// The commit's short hash, with a `+` where the checkout has changes that are in no commit;
/// `None` where it is not known.
pub(crate) fn of_this_run() -> Option<String> {
    match env::var(CARRIED) {
        Ok(carried) => Some(carried).filter(|carried| carried != UNKNOWN),
        Err(_) => of_checkout(Path::new(".")),
    }
}

/// A commit in words.
pub(crate) fn in_words(commit: Option<&str>) -> &str {
    commit.unwrap_or(UNKNOWN)
}

fn of_checkout(folder: &Path) -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").current_dir(folder).args(args).output().ok()?;
        let said = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| said.trim().to_owned())
    };
    let hash = git(&["rev-parse", SHORT, "HEAD"])?;
    // Documents change no figure, and the report, written after every case, is one of them.
    let changes = git(&["status", "--porcelain", "--", ":(top)", ":(top,exclude)docs"])?;
    Some(if changes.is_empty() { hash } else { hash + "+" })
}

#[cfg(test)]
mod tests;

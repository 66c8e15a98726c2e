//! The chapter of another machine: what pgweir must reach, as it was measured there.
//!
//! Ratios hold for a machine of one kind: where system calls or misses of caches cost several
//! times as much, every program spends its time on other things. So the page is about one kind of
//! machine, and what another one says stands apart, with words about it.

use std::fs;
use std::path::Path;

use crate::case::Case;
use crate::error::{Doing, Result};

use super::{Report, Shown, load, put};

/// The folder of the raw results, below that of the others'.
pub(crate) const FOLDER: &str = "elsewhere";
/// What kind of machine it is, in the words of whoever measured; lies in the same folder.
const ABOUT: &str = "about.md";

/// The chapter; nothing where nothing was measured elsewhere. `results` is the folder of the
/// page's own results.
pub(super) fn chapter(cases: &[Case], results: &Path) -> Result<String> {
    let folder = results.join(FOLDER);
    let results = load(cases, &folder)?;
    let mut text = String::new();
    if results.is_empty() {
        return Ok(text);
    }
    put(&mut text, "## On another machine\n");
    let about = folder.join(ABOUT);
    if about.exists() {
        let about = fs::read_to_string(&about).doing(|| format!("read {}", about.display()))?;
        put(&mut text, &about);
    }
    let report = Report::of(cases, &results);
    report.environments(&mut text);
    report.commits(&mut text);
    report.table_of_thresholds(&mut text, Shown::Measured);
    put(&mut text, "");
    Ok(text)
}

//! The chapter of another machine: what pgweir must reach, as it was measured there.
//!
//! Ratios hold for a machine of one kind: where system calls or misses of caches cost several
//! times as much, every program spends its time on other things. So the page is about one kind of
//! machine, and what another one says stands apart, with words about it.

use std::fs;
use std::path::Path;

use crate::case::Case;
use crate::contender::Contender;
use crate::error::{Doing, Result};
use crate::metric::Metric;
use crate::results::CaseResult;

use super::{Report, Shown, load, put, sweep};

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
    table_of_rates(&mut text, &report.measured(|case| !case.is_sweep));
    sweep::table(&mut text, &report.measured(|case| case.is_sweep));
    Ok(text)
}

/// Whose transactions a second the chapter names, so that it is seen what kind of machine it is.
const NAMED: [Contender; 6] = [
    Contender::Direct,
    Contender::PgBouncer,
    Contender::Relay,
    Contender::PipeliningRelay,
    Contender::PgweirOff,
    Contender::Pgweir,
];

fn table_of_rates(text: &mut String, cases: &[(&Case, &CaseResult)]) {
    put(text, &format!("| median tps | {} |", NAMED.map(Contender::label).join(" | ")));
    put(text, &format!("|---|{}", "---:|".repeat(NAMED.len())));
    for (case, result) in cases {
        let rates = NAMED.map(|contender| match result.absolute(contender, Metric::Tps) {
            Some(spread) => Metric::Tps.show(spread.median),
            None => "–".to_owned(),
        });
        put(text, &format!("| {} | {} |", case.name, rates.join(" | ")));
    }
    put(text, "");
}

//! docs/benchmarks.md and its pictures, from the raw results alone.

mod elsewhere;
mod method;
mod sweep;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::case::{Case, Workload};
use crate::charts;
use crate::commit;
use crate::contender::{Contender, POOL_SIZE};
use crate::environment::Environment;
use crate::error::{Doing, Result};
use crate::metric::Metric;
use crate::results::CaseResult;
use crate::stats::Spread;
use crate::thresholds::{Finding, THRESHOLDS, Verdict};

pub(crate) use elsewhere::FOLDER as ELSEWHERE;

/// The report's name below the folder of documents.
pub(crate) const FILE: &str = "benchmarks.md";
/// The folder of the pictures, beside the report.
const PICTURES: &str = "benchmarks";

/// Writes the report of all results in `results` into `docs`.
pub(crate) fn write(results: &Path, docs: &Path) -> Result<()> {
    let cases = Case::all();
    let elsewhere = elsewhere::chapter(&cases, results)?;
    let results = load(&cases, results)?;
    let folder = docs.join(PICTURES);
    fs::create_dir_all(&folder).doing(|| format!("make {}", folder.display()))?;
    let pictures = charts::draw(&results);
    for picture in &pictures {
        let path = folder.join(picture.file);
        fs::write(&path, &picture.svg).doing(|| format!("write {}", path.display()))?;
    }
    let text = Report::of(&cases, &results).text(&pictures, &elsewhere);
    let path = docs.join(FILE);
    fs::write(&path, text).doing(|| format!("write {}", path.display()))
}

/// The results of the cases that were run, in the cases' order.
fn load(cases: &[Case], folder: &Path) -> Result<Vec<CaseResult>> {
    cases.iter().filter_map(|case| CaseResult::load(folder, &case.name).transpose()).collect()
}

/// The environments of the results, each once.
fn machines(results: &[CaseResult]) -> Vec<&Environment> {
    let mut machines: Vec<&Environment> = Vec::new();
    for result in results {
        if !machines.contains(&&result.environment) {
            machines.push(&result.environment);
        }
    }
    machines
}

/// Which thresholds a table names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shown {
    All,
    /// Those of which something was measured.
    Measured,
}

struct Report<'a> {
    cases: &'a [Case],
    results: &'a [CaseResult],
    machines: Vec<&'a Environment>,
}

impl<'a> Report<'a> {
    fn of(cases: &'a [Case], results: &'a [CaseResult]) -> Self {
        Self { cases, results, machines: machines(results) }
    }

    /// The whole page; `elsewhere` is the chapter of another machine.
    fn text(&self, pictures: &[charts::Picture], elsewhere: &str) -> String {
        let mut text = String::from(INTRODUCTION);
        self.commits(&mut text);
        self.thresholds(&mut text);
        for picture in pictures {
            put(&mut text, &format!("![{}]({PICTURES}/{})\n", picture.says, picture.file));
        }
        put(&mut text, "## Machine and versions\n");
        self.environments(&mut text);
        text.push_str(elsewhere);
        sweep::write(&mut text, &self.measured(|case| case.is_sweep));
        put(&mut text, "## Cases\n");
        for (case, result) in self.measured(|case| !case.is_sweep) {
            self.case(&mut text, case, result);
        }
        method::write(&mut text);
        text
    }

    /// The cases of a kind that have a result.
    fn measured(&self, is_of_kind: impl Fn(&Case) -> bool) -> Vec<(&Case, &CaseResult)> {
        let of_kind = self.cases.iter().filter(|case| is_of_kind(case));
        let with_result = of_kind.filter_map(|case| {
            let result = self.results.iter().find(|result| result.case == case.name)?;
            Some((case, result))
        });
        with_result.collect()
    }

    /// Whether all cases are of one commit, and if not, which are of which.
    fn commits(&self, text: &mut String) {
        let mut cases: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
        for result in self.results {
            cases.entry(result.commit.as_deref()).or_default().push(&result.case);
        }
        let named = |commit: &Option<&str>| match commit {
            Some(hash) => format!("commit `{hash}`"),
            None => format!("an {} commit", commit::in_words(None)),
        };
        let mut commits: Vec<String> = cases.keys().map(named).collect();
        match &mut commits[..] {
            [] => return,
            [one] => put(text, &format!("All cases are of {one}.")),
            many => {
                for (commit, cases) in many.iter_mut().zip(cases.values()) {
                    commit.push_str(&format!(" ({})", cases.join(", ")));
                }
                let which = many.join("; of ");
                put(text, &format!("**The cases are of different commits**: of {which}."));
            }
        }
        if cases.keys().flatten().any(|commit| commit.ends_with('+')) {
            put(text, "A `+` says that there were changes besides, which are in no commit.");
        }
        put(text, "");
    }

    fn thresholds(&self, text: &mut String) {
        put(text, "## What pgweir must reach\n");
        put(
            text,
            "\"Within 3%\": the limit is one of near equality (0.95 to 1.05), and is missed by \
             less than two rounds of the same program differ. A **no** stands here until a \
             measurement says yes; behind one of a rate stands what the better of the two relays \
             reached in the same rounds, one of which does no more than to lend servers, the other \
             than to share them.\n",
        );
        self.table_of_thresholds(text, Shown::All);
    }

    fn table_of_thresholds(&self, text: &mut String, shown: Shown) {
        put(
            text,
            "| threshold | limit | case | measured (min–max) | met? |\n|---|---|---|---|---|",
        );
        for threshold in THRESHOLDS {
            let (text_of, limit) = (threshold.text, threshold.limit());
            let mut row = |case: &str, measured: &str, verdict: &str| {
                put(text, &format!("| {text_of} | {limit} | {case} | {measured} | {verdict} |"));
            };
            let mut findings = threshold.findings(self.cases, self.results);
            if shown == Shown::Measured {
                findings.retain(|finding| finding.measured.iter().any(Option::is_some));
            }
            let is_open = |finding: &Finding| finding.verdict == Verdict::NotMeasured;
            if shown == Shown::All && findings.iter().all(is_open) {
                // One row is enough to say so.
                let mut cases: Vec<&str> =
                    findings.iter().map(|finding| finding.case.as_str()).collect();
                cases.dedup();
                row(&cases.join(", "), "–", &in_words(Verdict::NotMeasured));
                continue;
            }
            for finding in findings {
                let case = format!("{}, {}", finding.case, finding.metric.label());
                let bare = finding.bare.map(|bare| format!("; the relay: {bare:.2}"));
                let verdict = in_words(finding.verdict) + bare.as_deref().unwrap_or_default();
                row(&case, &threshold.show(&finding), &verdict);
            }
        }
        put(text, "");
    }

    fn environments(&self, text: &mut String) {
        for (at, machine) in self.machines.iter().enumerate() {
            let Environment { cpu, cores, memory_gb, kernel, system, versions } = machine;
            let name = self.machine_name(at);
            let name = if name.is_empty() { name } else { format!("{name}: ") };
            put(
                text,
                &format!(
                    "- {name}{cpu}, {cores} cores, {memory_gb} GB, Linux {kernel}, {system}; {}",
                    versions.join(", ")
                ),
            );
        }
        put(text, "");
    }

    /// A letter for each machine, where there are several.
    fn machine_name(&self, at: usize) -> String {
        if self.machines.len() < 2 {
            return String::new();
        }
        // Machines are few; past `Z` the letters would only repeat.
        char::from(b'A' + (at % 26) as u8).to_string()
    }

    fn case(&self, text: &mut String, case: &Case, result: &CaseResult) {
        put(text, &format!("### {}: {}\n", case.name, case.title));
        let (counted, all) = (result.counted().count(), result.rounds.len());
        let at = self.machines.iter().position(|machine| **machine == result.environment);
        let machine = self.machine_name(at.unwrap_or_default());
        let machine = if machine.is_empty() { machine } else { format!(", machine {machine}") };
        let CaseResult { load, seconds, .. } = result;
        let rate = in_words_of_rate(case, result);
        let origin = in_words_of_origin(result);
        let rounds = format!("{counted} of {all} rounds of {seconds} s count");
        put(text, &format!("`{load}`{rate}; {rounds}{machine}; {origin}.\n"));
        if let Some(tps) = result.pool_maximum_tps {
            let tps = Metric::Tps.show(tps);
            put(text, &format!("{POOL_SIZE} direct connections reach {tps} tps.\n"));
        }
        if case.pool_size != POOL_SIZE {
            put(text, &format!("Poolers have {} servers.\n", case.pool_size));
        }
        if let Some(scheduling) = result.scheduling {
            put(text, &format!("{}\n", scheduling.says()));
        }
        if result.lacks_yardstick(case) {
            put(text, "No yardstick: the relay or PgBouncer did not run in every round.\n");
        }
        if counted == 0 {
            return;
        }
        let metrics = result.metrics();
        table(text, "median", result, &metrics, |contender, metric| {
            let spread = result.absolute(contender, metric)?;
            Some(metric.show(spread.median))
        });
        let with_ratio: Vec<Metric> = metrics.into_iter().filter(|m| m.has_ratio()).collect();
        let head = format!("ratio to {} (min–max)", case.base.label());
        table(text, &head, result, &with_ratio, |contender, metric| {
            if contender == case.base {
                return None;
            }
            let Spread { median, min, max } = result.ratio(contender, case.base, metric)?;
            Some(format!("{median:.2} ({min:.2}–{max:.2})"))
        });
    }
}

/// What the rate is a part of; nothing where the load has none.
fn in_words_of_rate(case: &Case, result: &CaseResult) -> String {
    match (&case.workload, result.direct_maximum_tps) {
        (Workload::Rate { percent }, Some(tps)) => {
            format!(", {percent}% of {}", Metric::Tps.show(tps))
        }
        (Workload::Rate { percent }, None) => format!(", {percent}% of an unknown maximum"),
        (
            Workload::Pgbench(_)
            | Workload::Change { .. }
            | Workload::Fetch { .. }
            | Workload::Idle
            | Workload::Crowd { .. }
            | Workload::Settings { .. }
            | Workload::Mix(_),
            _,
        ) => String::new(),
    }
}

/// When a case was measured, and of which commit.
fn in_words_of_origin(result: &CaseResult) -> String {
    let when = result.measured_at.as_deref().unwrap_or("at an unknown time");
    match &result.commit {
        Some(commit) => format!("measured {when} of `{commit}`"),
        None => format!("measured {when} of an {} commit", commit::in_words(None)),
    }
}

fn in_words(verdict: Verdict) -> String {
    match verdict {
        Verdict::Met => "yes".into(),
        Verdict::MetWithin => "yes, within 3%".into(),
        Verdict::Missed => "**no**".into(),
        Verdict::TooFewRounds => "too few rounds to say".into(),
        Verdict::NoYardstick => "no yardstick".into(),
        Verdict::NeedsCores(cores) => format!("needs {cores} cores"),
        Verdict::NotMeasured => "not measured".into(),
    }
}

/// A table of contenders and metrics; contenders of which nothing is known are left out.
fn table(
    text: &mut String,
    head: &str,
    result: &CaseResult,
    metrics: &[Metric],
    cell: impl Fn(Contender, Metric) -> Option<String>,
) {
    let labels: Vec<&str> = metrics.iter().map(|metric| metric.label()).collect();
    let rows: Vec<String> = result
        .contenders()
        .into_iter()
        .filter_map(|contender| {
            let cells: Vec<Option<String>> = metrics.iter().map(|m| cell(contender, *m)).collect();
            let known = cells.iter().any(Option::is_some);
            let cells: Vec<String> =
                cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".into())).collect();
            known.then(|| format!("| {} | {} |", contender.label(), cells.join(" | ")))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    put(text, &format!("| {head} | {} |", labels.join(" | ")));
    put(text, &format!("|---|{}", "---:|".repeat(labels.len())));
    put(text, &(rows.join("\n") + "\n"));
}

const INTRODUCTION: &str = "\
# Benchmarks

Written by `make bench` from its raw results: to change this page, measure, or edit `bench/`.

Direct connections, PgBouncer, pgweir and a bare relay take turns on the same PostgreSQL. `pgweir`
is what it is by default, with [pipelining](pipelining.md); `pgweir, pipelining off` is the plain
pooler beside it. The relay (`bench/src/bin/relay/main.rs`) is a pool that forwards bytes and
looks only at the first of each client's read and the last six of each server's: what a proxy
costs when it does no work. The pipelining relay does as little, and lets clients stand one behind
the other on three servers. Figures are medians over rounds; ratios are taken within a round and
then their median, so that a machine's good and bad minutes cancel out.

";

fn put(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests;

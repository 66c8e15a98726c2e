//! docs/benchmarks.md and its pictures, from the raw results alone.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::case::Case;
use crate::charts;
use crate::cluster::{SCALE, SETTINGS};
use crate::contender::{Contender, POOL_SIZE, pgbouncer_ini, pgweir_toml};
use crate::environment::Environment;
use crate::error::{Doing, Result};
use crate::metric::Metric;
use crate::results::{CaseResult, YARDSTICK};
use crate::stats::Spread;
use crate::thresholds::{THRESHOLDS, Verdict};

/// The report's name below the folder of documents.
pub(crate) const FILE: &str = "benchmarks.md";
/// The folder of the pictures, beside the report.
const PICTURES: &str = "benchmarks";

/// Writes the report of all results in `results` into `docs`.
pub(crate) fn write(results: &Path, docs: &Path) -> Result<()> {
    let cases = Case::all();
    let load = |case: &Case| CaseResult::load(results, &case.name).transpose();
    let results: Vec<CaseResult> = cases.iter().filter_map(load).collect::<Result<_>>()?;
    let folder = docs.join(PICTURES);
    fs::create_dir_all(&folder).doing(|| format!("make {}", folder.display()))?;
    let pictures = charts::draw(&results);
    for picture in &pictures {
        let path = folder.join(picture.file);
        fs::write(&path, &picture.svg).doing(|| format!("write {}", path.display()))?;
    }
    let report = Report { cases: &cases, results: &results, machines: machines(&results) };
    let path = docs.join(FILE);
    fs::write(&path, report.text(&pictures)).doing(|| format!("write {}", path.display()))
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

struct Report<'a> {
    cases: &'a [Case],
    results: &'a [CaseResult],
    machines: Vec<&'a Environment>,
}

impl Report<'_> {
    fn text(&self, pictures: &[charts::Picture]) -> String {
        let mut text = String::from(INTRODUCTION);
        self.thresholds(&mut text);
        for picture in pictures {
            put(&mut text, &format!("![{}]({PICTURES}/{})\n", picture.says, picture.file));
        }
        self.environments(&mut text);
        put(&mut text, "## Cases\n");
        for case in self.cases {
            if let Some(result) = self.results.iter().find(|result| result.case == case.name) {
                self.case(&mut text, case, result);
            }
        }
        method(&mut text);
        text
    }

    fn thresholds(&self, text: &mut String) {
        put(text, "## What pgweir must reach\n");
        put(
            text,
            "| threshold | limit | case | measured (min–max) | met? |\n|---|---|---|---|---|",
        );
        for threshold in THRESHOLDS {
            for finding in threshold.findings(self.cases, self.results) {
                let verdict = in_words(finding.verdict);
                put(
                    text,
                    &format!(
                        "| {} | {} | {}, {} | {} | {verdict} |",
                        threshold.text,
                        threshold.limit(),
                        finding.case,
                        finding.metric.label(),
                        threshold.show(&finding)
                    ),
                );
            }
        }
        put(text, "");
    }

    fn environments(&self, text: &mut String) {
        put(text, "## Machine and versions\n");
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
        let (load, seconds) = (&result.load, result.seconds);
        put(text, &format!("`{load}`; {counted} of {all} rounds of {seconds} s count{machine}.\n"));
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

Direct connections, PgBouncer, pgweir and a bare relay take turns on the same PostgreSQL. The relay
(`bench/src/bin/relay.rs`) is a pool that forwards bytes and looks only at the first of each
client's read and the last six of each server's: what a proxy costs when it does no work. Figures
are medians over rounds; ratios are taken within a round and then their median, so that a machine's
good and bad minutes cancel out.

";

/// How figures come about, with what the run was configured by.
fn method(text: &mut String) {
    text.push_str(METHOD);
    put(text, &format!("A round that does not count: the relay is under {YARDSTICK} × PgBouncer."));
    put(text, &format!("Poolers have {POOL_SIZE} servers for each pool."));
    put(text, &format!("pgbench's tables are of scale {SCALE}.\n"));
    put(text, "PostgreSQL has its defaults but:\n\n```ini");
    for (name, value) in SETTINGS {
        put(text, format!("{name} = {value}").trim_end());
    }
    put(text, "```\n\nPgBouncer:\n\n```ini");
    text.push_str(&pgbouncer_ini("PORT", "SERVER_PORT", "userlist.txt"));
    put(text, "```\n\npgweir:\n\n```toml");
    text.push_str(&pgweir_toml("PORT", "SERVER_PORT", 1, 1));
    put(text, "```");
}

const METHOD: &str = "\
## How it is measured

- `make bench` runs all of it; `make bench CASE=simple-64,connect` runs two cases and keeps the
  others' figures, so that the cases on this page may be of different builds of pgweir and of
  different days: only ratios within a case compare. `make bench-bundle` packs it for a bare
  machine.
- A round is one turn of each contender, in an order that changes from round to round, after a
  warm-up of each. Where many clients ask as fast as they can (`simple-N` and `extended-N` from 64
  clients on), a round counts only if the relay is well ahead of PgBouncer: otherwise something else
  on the machine set the pace. Such a round is repeated, at most as often as rounds are wanted. In
  the other cases something else sets the pace by design, and a relay is never so far ahead: the
  rate that is asked for, the round trips of 1 or 16 clients, connects, commits, the way to a remote
  server. All their rounds count.
- All speak TCP on 127.0.0.1 without encryption, trust authentication, and log no connections.
  Poolers run in transaction mode, on one thread but for `workers-N`.
- Percentiles are of single transactions, from pgbench's logs. Of plain selects a tenth is logged
  (`--sampling-rate`, the same for all): at their rate a line for each would slow the load
  generator. With a rate (`-R`) a transaction's time begins when it was due, so that waiting counts;
  with `-C` it begins when the connection stands.
- CPU per transaction is the pooler's user and system time over the turn, divided by the load's
  count of transactions. Memory of an idle client is the growth of the pooler's anonymous memory
  (`/proc/PID/smaps_rollup`) over 10,000 clients that ran one query each; then their pooler's CPU is
  watched for ten seconds of silence.
- Large results are read into one buffer by the harness itself, again and again for the length of
  a turn, and thrown away; the figure is the median.
- For `remote-64` a forwarder holds every request back for 0.5 ms, direct connections' too.
- `workers-N` compare pgweir with itself: the same file but for `worker_threads`, with a pool for
  each of several databases, which all are the server's one. A pool lives on one worker; clients are
  handed over to it. For `workers-2` each database has a pgbench of its own, all at the same time,
  and tps is their sum.
- For `workers-4` PostgreSQL and pgbench would be what is measured. So the server is one that
  answers at once (`bench instant`), and the load (`bench crowd`) has clients that each ask for a
  number of their own, one query after the other, and compare the reply with theirs byte by byte.
  All transactions' times count. The pooler keeps to one half of the machine's cores, load and
  server share the other; without that, figures depend on whom the scheduler puts beside whom. How
  busy the threads of load and server were is in the table: near 100% it is they who set the pace.

";

fn put(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests;

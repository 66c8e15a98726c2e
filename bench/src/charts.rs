//! The report's pictures.

use crate::case::CLIENTS;
use crate::contender::Contender;
use crate::metric::{Metric, grouped};
use crate::results::CaseResult;
use crate::stats::Spread;
use crate::svg::{Bar, BarChart, LineChart, Series};

/// What all pictures but the first show: medians of the ratios within the rounds, so that a
/// machine's good and bad minutes cancel out. The figures themselves are in the tables.
const UNIT: &str = "× PgBouncer";

/// Who is in pictures, and in which colour.
const SHOWN: [(Contender, usize); 5] = [
    (Contender::Direct, 0),
    (Contender::PgBouncer, 1),
    (Contender::Pgweir, 2),
    (Contender::PgweirOff, 4),
    (Contender::Relay, 3),
];

/// A picture of the report: its file, what it shows in words, and its text.
pub(crate) struct Picture {
    pub(crate) file: &'static str,
    pub(crate) says: &'static str,
    pub(crate) svg: String,
}

/// All pictures that the results are enough for.
pub(crate) fn draw(results: &[CaseResult]) -> Vec<Picture> {
    let says = "Transactions a second against clients, simple protocol";
    let tps = [("tps-clients.svg", says, tps_over_clients(says, results).draw())];
    let lines = [
        ("tps-simple.svg", "Transactions a second, simple protocol", "simple", Metric::Tps),
        ("tps-extended.svg", "Transactions a second, extended protocol", "extended", Metric::Tps),
        ("p50-simple.svg", "p50 latency, simple protocol", "simple", Metric::P50Ms),
        ("p50-extended.svg", "p50 latency, extended protocol", "extended", Metric::P50Ms),
        ("p95-simple.svg", "p95 latency, simple protocol", "simple", Metric::P95Ms),
        ("p95-extended.svg", "p95 latency, extended protocol", "extended", Metric::P95Ms),
        ("p99-simple.svg", "p99 latency, simple protocol", "simple", Metric::P99Ms),
        ("p99-extended.svg", "p99 latency, extended protocol", "extended", Metric::P99Ms),
    ];
    let lines = lines.into_iter().map(|(file, says, group, metric)| {
        (file, says, over_clients(says, group, metric, results).draw())
    });
    let says = ["Pooler CPU per transaction", "Memory for each idle client"];
    let cpu_cases = ["simple-64", "extended-64", "connect"];
    let bars = [
        ("cpu.svg", says[0], bars(says[0], &cpu_cases, Metric::CpuUs, results).draw()),
        ("memory.svg", says[1], bars(says[1], &["idle-10k"], Metric::ClientBytes, results).draw()),
    ];
    let all = tps.into_iter().chain(lines).chain(bars);
    all.filter_map(|(file, says, svg)| Some(Picture { file, says, svg: svg? })).collect()
}

/// The figures themselves. Each step's are of the same rounds; those of two steps are not.
fn tps_over_clients(title: &str, results: &[CaseResult]) -> LineChart {
    let value = |result: &CaseResult, contender| result.absolute(contender, Metric::Tps);
    let shown = SHOWN.into_iter().filter(|(contender, _)| *contender != Contender::Relay);
    let mut chart = lines(title, "simple", results, shown, value);
    chart.y_label = "tps";
    chart.show = grouped;
    chart
}

fn over_clients(title: &str, group: &str, metric: Metric, results: &[CaseResult]) -> LineChart {
    let value =
        |result: &CaseResult, contender| result.ratio(contender, Contender::PgBouncer, metric);
    lines(title, group, results, SHOWN.into_iter(), value)
}

/// A line for each contender that has a value.
fn lines(
    title: &str,
    group: &str,
    results: &[CaseResult],
    shown: impl Iterator<Item = (Contender, usize)>,
    value: impl Fn(&CaseResult, Contender) -> Option<Spread>,
) -> LineChart {
    let at_step = |clients: u32, contender| {
        let case = format!("{group}-{clients}");
        let result = results.iter().find(|result| result.case == case)?;
        Some(value(result, contender)?.median)
    };
    let line = |(contender, colour): (Contender, usize)| Series {
        colour,
        name: contender.label().into_owned(),
        values: CLIENTS.into_iter().map(|clients| at_step(clients, contender)).collect(),
    };
    let is_known = |series: &Series| series.values.iter().any(Option::is_some);
    LineChart {
        title: title.to_owned(),
        y_label: UNIT,
        x_label: "clients",
        steps: CLIENTS.iter().map(|clients| clients.to_string()).collect(),
        series: shown.map(line).filter(is_known).collect(),
        show: times,
    }
}

fn bars(title: &str, cases: &[&str], metric: Metric, results: &[CaseResult]) -> BarChart {
    let of_case = |case: &&str| {
        let result = results.iter().find(|result| result.case == **case)?;
        let bar = |(contender, colour): (Contender, usize)| {
            let value = result.ratio(contender, Contender::PgBouncer, metric)?.median;
            Some(Bar { colour, name: contender.label().into_owned(), value })
        };
        let bars: Vec<Bar> = SHOWN.into_iter().filter_map(bar).collect();
        (!bars.is_empty()).then(|| ((*case).to_owned(), bars))
    };
    BarChart {
        title: title.to_owned(),
        unit: UNIT,
        groups: cases.iter().filter_map(of_case).collect(),
        show: times,
    }
}

fn times(value: f64) -> String {
    format!("{value:.2}")
}

#[cfg(test)]
mod tests;

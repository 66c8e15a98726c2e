//! The report's pictures.

use crate::case::CLIENTS;
use crate::contender::Contender;
use crate::metric::Metric;
use crate::results::CaseResult;
use crate::svg::{Bar, BarChart, LineChart, Series};

/// What all pictures show: medians of the ratios within the rounds, so that a machine's good and
/// bad minutes cancel out. The figures themselves are in the tables.
const UNIT: &str = "× PgBouncer";

/// A picture of the report: its file, what it shows in words, and its text.
pub(crate) struct Picture {
    pub(crate) file: &'static str,
    pub(crate) says: &'static str,
    pub(crate) svg: String,
}

/// All pictures that the results are enough for.
pub(crate) fn draw(results: &[CaseResult]) -> Vec<Picture> {
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
    let all = lines.chain(bars);
    all.filter_map(|(file, says, svg)| Some(Picture { file, says, svg: svg? })).collect()
}

fn over_clients(title: &str, group: &str, metric: Metric, results: &[CaseResult]) -> LineChart {
    let values = |contender| {
        let value = |clients: &u32| {
            let case = format!("{group}-{clients}");
            let result = results.iter().find(|result| result.case == case)?;
            Some(result.ratio(contender, Contender::PgBouncer, metric)?.median)
        };
        CLIENTS.iter().map(value).collect()
    };
    let series = Contender::USUAL.into_iter().enumerate();
    LineChart {
        title: title.to_owned(),
        y_label: UNIT,
        x_label: "clients",
        steps: CLIENTS.iter().map(|clients| clients.to_string()).collect(),
        series: series
            .map(|(colour, contender)| Series {
                colour,
                name: contender.label(),
                values: values(contender),
            })
            .collect(),
        show: times,
    }
}

fn bars(title: &str, cases: &[&str], metric: Metric, results: &[CaseResult]) -> BarChart {
    let of_case = |case: &&str| {
        let result = results.iter().find(|result| result.case == **case)?;
        let bar = |(colour, contender): (usize, Contender)| {
            let value = result.ratio(contender, Contender::PgBouncer, metric)?.median;
            Some(Bar { colour, name: contender.label(), value })
        };
        let bars: Vec<Bar> = Contender::USUAL.into_iter().enumerate().filter_map(bar).collect();
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

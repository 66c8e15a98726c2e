//! What pgweir must reach, and whether it does.

use crate::case::Case;
use crate::contender::Contender;
use crate::metric::Metric;
use crate::results::CaseResult;
use crate::rounds::{ROUNDS, SECONDS};
use crate::stats::Spread;

/// Near equality is met within this part: rounds of one program against itself differ as much.
const TOLERANCE: f64 = 0.03;
/// Limits of ratios up to this one have the tolerance.
const TOLERATED_UP_TO: f64 = 1.05;

/// A promise about pgweir in some cases.
pub(crate) struct Threshold {
    pub(crate) text: &'static str,
    cases: &'static [&'static str],
    metrics: &'static [Metric],
    /// Whose figure it is: pgweir with as many workers as it says.
    of: Contender,
    /// The contender that it is compared with in the round; `None` for a figure of its own.
    to: Option<Contender>,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

use Limit::{AtLeast, AtMost};

const PGBOUNCER: Option<Contender> = Some(Contender::PgBouncer);
const ONE_WORKER: Option<Contender> = Some(Contender::Pgweir);

/// With pools of ten.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Threshold {
        text: "tps, 64 and 250 clients, simple and extended",
        cases: &["simple-64", "simple-250", "extended-64", "extended-250"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        to: PGBOUNCER,
        limit: AtLeast(1.15),
    },
    Threshold {
        text: "tps, 1 client",
        cases: &["simple-1", "extended-1"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        to: PGBOUNCER,
        limit: AtLeast(1.0),
    },
    Threshold {
        text: "tps, 64 clients",
        cases: &["simple-64", "extended-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        to: Some(Contender::Relay),
        limit: AtLeast(0.95),
    },
    Threshold {
        text: "CPU per transaction, 64 clients",
        cases: &["simple-64", "extended-64"],
        metrics: &[Metric::CpuUs],
        of: Contender::Pgweir,
        to: PGBOUNCER,
        limit: AtMost(0.8),
    },
    Threshold {
        text: "tps, prepared statements against PgBouncer's extended protocol, 64 clients",
        cases: &["prepared-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        to: PGBOUNCER,
        limit: AtLeast(1.15),
    },
    Threshold {
        text: "tps, prepared statements against the simple protocol, 64 clients",
        cases: &["prepared-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        to: Some(Contender::SimplePgweir),
        limit: AtLeast(0.95),
    },
    Threshold {
        text: "tps, a connection for each transaction, 8 clients",
        cases: &["connect"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        to: PGBOUNCER,
        limit: AtLeast(1.0),
    },
    Threshold {
        text: "p50 and p99 at 25% and 50% of direct's maximum",
        cases: &["rate-25", "rate-50"],
        metrics: &[Metric::P50Ms, Metric::P99Ms],
        of: Contender::Pgweir,
        to: PGBOUNCER,
        limit: AtMost(1.05),
    },
    Threshold {
        text: "COPY out and SELECT of 1,000,000 rows, wall",
        cases: &["copy-out", "select-1m"],
        metrics: &[Metric::WallS],
        of: Contender::Pgweir,
        to: Some(Contender::Direct),
        limit: AtMost(1.05),
    },
    Threshold {
        text: "user memory for each idle client",
        cases: &["idle-10k"],
        metrics: &[Metric::ClientBytes],
        of: Contender::Pgweir,
        to: None,
        limit: AtMost(2048.0),
    },
    Threshold {
        text: "10,000 idle clients, CPU",
        cases: &["idle-10k"],
        metrics: &[Metric::IdleCpuPercent],
        of: Contender::Pgweir,
        to: None,
        limit: AtMost(1.0),
    },
    Threshold {
        text: "p99 / p50 at 1000 clients",
        cases: &["simple-1000", "extended-1000"],
        metrics: &[Metric::Tail],
        of: Contender::Pgweir,
        to: PGBOUNCER,
        limit: AtMost(1.2),
    },
    Threshold {
        text: "tps, two workers instead of one, two pools",
        cases: &["workers-2"],
        metrics: &[Metric::Tps],
        of: Contender::TwoWorkers,
        to: ONE_WORKER,
        limit: AtLeast(0.97),
    },
    Threshold {
        text: "CPU per transaction, two workers instead of one, two pools",
        cases: &["workers-2"],
        metrics: &[Metric::CpuUs],
        of: Contender::TwoWorkers,
        to: ONE_WORKER,
        limit: AtMost(1.15),
    },
    Threshold {
        text: "tps, four workers instead of one, a server that answers at once",
        cases: &["workers-4"],
        metrics: &[Metric::Tps],
        of: Contender::FourWorkers,
        to: ONE_WORKER,
        limit: AtLeast(3.6),
    },
];

/// What one case says of a threshold.
pub(crate) struct Finding {
    pub(crate) case: String,
    pub(crate) metric: Metric,
    /// The ratio, or the figure itself; `None` where the case has not been run with all it takes.
    pub(crate) measured: Option<Spread>,
    pub(crate) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Met,
    /// On the wrong side by no more than the tolerance.
    MetWithin,
    Missed,
    /// In too few rounds, or too short ones, to say.
    TooFewRounds,
    /// In rounds of which some lack the relay or PgBouncer, where the case asks for both.
    NoYardstick,
    /// Measured on fewer cores than these, or not at all.
    NeedsCores(usize),
    NotMeasured,
}

impl Threshold {
    /// The limit in words, as in "at least 1.15 × PgBouncer".
    pub(crate) fn limit(&self) -> String {
        let (side, limit) = match self.limit {
            AtLeast(limit) => ("at least", limit),
            AtMost(limit) => ("at most", limit),
        };
        match (self.to, self.metrics) {
            (Some(to), _) => format!("{side} {limit} × {}", to.label()),
            (None, [metric]) => format!("{side} {} {}", metric.show(limit), metric.label()),
            (None, _) => format!("{side} {limit}"),
        }
    }

    /// One finding for each case and metric.
    pub(crate) fn findings(&self, cases: &[Case], results: &[CaseResult]) -> Vec<Finding> {
        let named = |name: &&str| cases.iter().find(|case| case.name == *name);
        let cases = self.cases.iter().filter_map(named);
        let pairs = cases.flat_map(|case| self.metrics.iter().map(move |metric| (case, *metric)));
        pairs.map(|(case, metric)| self.finding(case, metric, results)).collect()
    }

    /// The measured value in words.
    pub(crate) fn show(&self, finding: &Finding) -> String {
        let Some(Spread { median, min, max }) = finding.measured else {
            return "–".to_owned();
        };
        match self.to {
            Some(_) => format!("**{median:.2}** ({min:.2}–{max:.2})"),
            None => {
                let show = |value| finding.metric.show(value);
                format!("**{}** ({}–{})", show(median), show(min), show(max))
            }
        }
    }

    fn finding(&self, case: &Case, metric: Metric, results: &[CaseResult]) -> Finding {
        let result = results.iter().find(|result| result.case == case.name);
        let measured = result.and_then(|result| match self.to {
            Some(to) => result.ratio(self.of, to, metric),
            None => result.absolute(self.of, metric),
        });
        let enough = result.is_some_and(|result| {
            result.counted().count() as u32 >= ROUNDS && result.seconds >= SECONDS
        });
        let cores = result.map_or(1, |result| result.environment.cores);
        let verdict = match measured {
            _ if case.cores > cores => Verdict::NeedsCores(case.cores),
            Some(_) if result.is_some_and(|result| result.lacks_yardstick(case)) => {
                Verdict::NoYardstick
            }
            Some(spread) if enough => self.judge(spread.median),
            Some(_) => Verdict::TooFewRounds,
            None => Verdict::NotMeasured,
        };
        Finding { case: case.name.clone(), metric, measured, verdict }
    }

    fn judge(&self, value: f64) -> Verdict {
        let (exact, limit, loosened) = match self.limit {
            AtLeast(limit) => (value >= limit, limit, value >= limit * (1.0 - TOLERANCE)),
            AtMost(limit) => (value <= limit, limit, value <= limit * (1.0 + TOLERANCE)),
        };
        if exact {
            Verdict::Met
        } else if self.to.is_some() && limit <= TOLERATED_UP_TO && loosened {
            Verdict::MetWithin
        } else {
            Verdict::Missed
        }
    }
}

#[cfg(test)]
mod tests;

//! What pgweir must reach, and whether it does.

mod table;

use std::ops::RangeInclusive;

use crate::case::Case;
use crate::contender::Contender;
use crate::metric::Metric;
use crate::results::CaseResult;
use crate::stats::Spread;

pub(crate) use table::THRESHOLDS;

/// Near equality is met within this part: rounds of one program against itself differ as much.
const TOLERANCE: f64 = 0.03;
/// Limits of ratios that have the tolerance.
const NEAR_EQUALITY: RangeInclusive<f64> = 0.95..=1.05;

/// A promise about pgweir in some cases.
pub(crate) struct Threshold {
    pub(crate) text: &'static str,
    cases: &'static [&'static str],
    metrics: &'static [Metric],
    /// Whose figure it is: pgweir, with as many workers and with the pipelining that it says.
    of: Contender,
    /// One of them is enough.
    bounds: &'static [Bound],
}

/// A limit, and what a figure is compared with.
struct Bound(Limit, To);

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtLeast(f64),
    AtMost(f64),
    /// Of the worst round, not of the median of all.
    NeverOver(f64),
}

use Limit::{AtLeast, AtMost, NeverOver};

/// What a figure is compared with in its round.
#[derive(Clone, Copy, Debug)]
enum To {
    Contender(Contender),
    /// The best of a sweep: see [`CaseResult::best_pair`].
    BestPair,
    /// The limit is one of the figure itself.
    Nothing,
}

/// What one case says of a threshold.
pub(crate) struct Finding {
    pub(crate) case: String,
    pub(crate) metric: Metric,
    /// The ratio to what each bound compares with, or the figure itself; `None` where the case has
    /// not been run with all it takes.
    pub(crate) measured: Vec<Option<Spread>>,
    pub(crate) verdict: Verdict,
    /// What the better of the two relays reaches of a rate that is missed, in the same rounds: a
    /// program that does nothing but to lend servers, or to share them.
    pub(crate) bare: Option<f64>,
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
    /// The limits in words, as in "at least 1.15 × PgBouncer".
    pub(crate) fn limit(&self) -> String {
        let words: Vec<String> = self.bounds.iter().map(|bound| bound.says(self.metrics)).collect();
        words.join(", or ")
    }

    /// One finding for each case and metric.
    pub(crate) fn findings(&self, cases: &[Case], results: &[CaseResult]) -> Vec<Finding> {
        let named = |name: &&str| cases.iter().find(|case| case.name == *name);
        let cases = self.cases.iter().filter_map(named);
        let pairs = cases.flat_map(|case| self.metrics.iter().map(move |metric| (case, *metric)));
        pairs.map(|(case, metric)| self.finding(case, metric, results)).collect()
    }

    /// The measured values in words.
    pub(crate) fn show(&self, finding: &Finding) -> String {
        let measured = self.bounds.iter().zip(&finding.measured);
        let show = |(Bound(_, to), spread): (&Bound, &Option<Spread>)| {
            let Some(Spread { median, min, max }) = *spread else { return "–".to_owned() };
            match to {
                To::Contender(_) | To::BestPair => format!("**{median:.2}** ({min:.2}–{max:.2})"),
                To::Nothing => {
                    let show = |value| finding.metric.show(value);
                    format!("**{}** ({}–{})", show(median), show(min), show(max))
                }
            }
        };
        measured.map(show).collect::<Vec<String>>().join(", or ")
    }

    fn finding(&self, case: &Case, metric: Metric, results: &[CaseResult]) -> Finding {
        let result = results.iter().find(|result| result.case == case.name);
        let of_bound = |Bound(_, to): &Bound| match to {
            To::Contender(to) => result?.ratio(self.of, *to, metric),
            To::BestPair => result?.ratio(self.of, result?.best_pair()?, metric),
            To::Nothing => result?.absolute(self.of, metric),
        };
        let measured: Vec<Option<Spread>> = self.bounds.iter().map(of_bound).collect();
        let enough = result.is_some_and(|result| {
            result.counted().count() as u32 >= case.pace.rounds
                && result.seconds >= case.pace.seconds
        });
        let cores = result.map_or(1, |result| result.environment.cores);
        let verdict = if case.cores > cores {
            Verdict::NeedsCores(case.cores)
        } else if measured.iter().all(Option::is_none) {
            Verdict::NotMeasured
        } else if result.is_some_and(|result| result.lacks_yardstick(case)) {
            Verdict::NoYardstick
        } else if enough {
            self.verdict(&measured)
        } else {
            Verdict::TooFewRounds
        };
        let bare = |Bound(_, to): &Bound| match to {
            To::Contender(to) => Contender::RELAYS
                .into_iter()
                .filter_map(|relay| result?.ratio(relay, *to, metric))
                .map(|spread| spread.median)
                .max_by(f64::total_cmp),
            To::BestPair | To::Nothing => None,
        };
        let is_missed_rate = verdict == Verdict::Missed && metric == Metric::Tps;
        let bare = self.bounds.iter().find_map(bare).filter(|_| is_missed_rate);
        Finding { case: case.name.clone(), metric, measured, verdict, bare }
    }

    /// The best that a bound gives.
    fn verdict(&self, measured: &[Option<Spread>]) -> Verdict {
        let judge = |(bound, spread): (&Bound, &Option<Spread>)| {
            spread.as_ref().map_or(Verdict::NotMeasured, |spread| bound.judge(spread))
        };
        let verdicts: Vec<Verdict> = self.bounds.iter().zip(measured).map(judge).collect();
        let from_best = [Verdict::Met, Verdict::MetWithin, Verdict::NotMeasured];
        let best = from_best.into_iter().find(|verdict| verdicts.contains(verdict));
        best.unwrap_or(Verdict::Missed)
    }
}

impl Bound {
    fn says(&self, metrics: &[Metric]) -> String {
        let Self(limit, to) = self;
        let (side, limit) = match limit {
            AtLeast(limit) => ("at least", limit),
            AtMost(limit) => ("at most", limit),
            NeverOver(limit) => ("never over", limit),
        };
        match (to, metrics) {
            (To::Contender(to), _) => format!("{side} {limit} × {}", to.label()),
            (To::BestPair, _) => format!("{side} {limit} × the best pair"),
            (To::Nothing, [metric]) => format!("{side} {} {}", metric.show(*limit), metric.label()),
            (To::Nothing, _) => format!("{side} {limit}"),
        }
    }

    fn judge(&self, spread: &Spread) -> Verdict {
        let Self(limit, to) = self;
        let value = spread.median;
        let (exact, limit, loosened) = match *limit {
            AtLeast(limit) => (value >= limit, limit, value >= limit * (1.0 - TOLERANCE)),
            AtMost(limit) => (value <= limit, limit, value <= limit * (1.0 + TOLERANCE)),
            NeverOver(limit) => (spread.max <= limit, limit, false),
        };
        let is_ratio = matches!(to, To::Contender(_) | To::BestPair);
        if exact {
            Verdict::Met
        } else if is_ratio && NEAR_EQUALITY.contains(&limit) && loosened {
            Verdict::MetWithin
        } else {
            Verdict::Missed
        }
    }
}

#[cfg(test)]
mod tests;

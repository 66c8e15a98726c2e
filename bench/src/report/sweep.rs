//! What pgweir finds by itself, beside the pairs of a grid.

use super::{in_words_of_origin, put};
use crate::case::Case;
use crate::contender::Contender;
use crate::metric::Metric;
use crate::results::CaseResult;
use crate::stats::Spread;

/// Appends the chapter, if there is a sweep.
pub(super) fn write(text: &mut String, sweeps: &[(&Case, &CaseResult)]) {
    if sweeps.is_empty() {
        return;
    }
    text.push_str(INTRODUCTION);
    for (case, result) in sweeps {
        let tps = |contender| Some(result.absolute(contender, Metric::Tps)?.median);
        let pairs = result.contenders().into_iter().filter(|one| *one != Contender::Pgweir);
        let mut pairs: Vec<(Contender, f64)> =
            pairs.filter_map(|pair| Some((pair, tps(pair)?))).collect();
        pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named = |at: Option<&(Contender, f64)>| match at {
            Some((pair, tps)) => format!("{}: {}", pair.label(), Metric::Tps.show(*tps)),
            None => "–".to_owned(),
        };
        let own = tps(Contender::Pgweir).map(|tps| Metric::Tps.show(tps));
        let own = own.unwrap_or_else(|| "–".to_owned());
        let ratio = result.best_pair().and_then(|best| {
            let Spread { median, min, max } = result.ratio(Contender::Pgweir, best, Metric::Tps)?;
            Some(format!("**{median:.2}** ({min:.2}–{max:.2})"))
        });
        let ratio = ratio.unwrap_or_else(|| "–".to_owned());
        let (best, worst) = (named(pairs.first()), named(pairs.last()));
        let (name, load, origin) = (&case.name, &result.load, in_words_of_origin(result));
        let rounds = result.counted().count();
        let (count, servers, seconds) = (pairs.len(), case.pool_size, result.seconds);
        let how = format!("`{load}`, pool of {servers}; {rounds} rounds of {seconds} s; {origin}");
        put(text, &format!("| {name} | {own} | {best} | {ratio} | {worst} | {count} | {how} |"));
    }
    put(text, "");
}

const INTRODUCTION: &str = "\
## Pipelining beside fixed pairs

pgweir as it is by default, and with each pair of a grid as its `pipelining`: so many servers, and
so many units on each. The ratio is to the pair with the best median, taken within the rounds.

| case | pgweir, tps | best pair | ratio (min–max) | worst pair | pairs | how |
|---|---:|---|---|---|---:|---|
";

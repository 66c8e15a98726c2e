//! What pgweir finds by itself, beside the pairs of a grid.

use super::{in_words_of_origin, put};
use crate::case::Case;
use crate::contender::Contender;
use crate::grid::THIN;
use crate::metric::Metric;
use crate::results::CaseResult;
use crate::stats::Spread;

/// Appends the chapter, if there is a sweep.
pub(super) fn write(text: &mut String, sweeps: &[(&Case, &CaseResult)]) {
    if sweeps.is_empty() {
        return;
    }
    put(text, "## Pipelining beside fixed pairs\n");
    put(text, &introduction());
    table(text, sweeps);
}

/// Appends a row for each.
pub(super) fn table(text: &mut String, sweeps: &[(&Case, &CaseResult)]) {
    if sweeps.is_empty() {
        return;
    }
    put(
        text,
        "| case | pgweir, tps | best pair | ratio (min–max) | pairs | first of them | last | how |",
    );
    put(text, "|---|---:|---|---|---:|---|---|---|");
    for (case, result) in sweeps {
        let tps = |contender| Some(result.absolute(contender, Metric::Tps)?.median);
        let pairs = result.pairs();
        let named = |at: Option<(Contender, f64)>| match at {
            Some((pair, tps)) => format!("{}: {}", pair.label(), Metric::Tps.show(tps)),
            None => "–".to_owned(),
        };
        let own = tps(Contender::Pgweir).map(|tps| Metric::Tps.show(tps));
        let own = own.unwrap_or_else(|| "–".to_owned());
        let best = named(result.best_pair().and_then(|pair| Some((pair, tps(pair)?))));
        let ratio = result.best_pair().and_then(|best| {
            let Spread { median, min, max } = result.ratio(Contender::Pgweir, best, Metric::Tps)?;
            Some(format!("**{median:.2}** ({min:.2}–{max:.2})"))
        });
        let ratio = ratio.unwrap_or_else(|| "–".to_owned());
        let (first, last) = (named(pairs.first().copied()), named(pairs.last().copied()));
        let (name, load, origin) = (&case.name, &result.load, in_words_of_origin(result));
        let (search, rounds) = (result.search.len(), result.counted().count());
        let (count, servers, seconds) = (pairs.len(), case.pool_size, result.seconds);
        let how = format!(
            "`{load}`, pool of {servers}; {search} and {rounds} rounds of {seconds} s; {origin}"
        );
        let row = [name, &own, &best, &ratio, &count.to_string(), &first, &last, &how];
        put(text, &format!("| {} |", row.map(String::as_str).join(" | ")));
    }
    put(text, "");
}

/// What is compared. Where eight pairs were tried, they are the thin grid's.
fn introduction() -> String {
    let thin: Vec<String> = THIN.iter().map(ToString::to_string).collect();
    format!(
        "\
pgweir as it is by default, beside the best pair of a grid as its `pipelining`: so many servers,
and so many units on each. All pairs have rounds of their own before, and the best is the one with
the best median there. The ratio is of the rounds after that, which pgweir and that pair share: of
pairs that are much alike one is ahead by chance in rounds that choose it, and not in others.

A grid of 48 pairs has 1, 2, 3, 4, 6, 8, 12 and 16 servers, and 1, 2, 4, 8, 16 and 32 units on
each. Where there are eight pairs, they are {}: those of the 48 that were the best
somewhere, and their neighbours.
",
        thin.join(", ")
    )
}

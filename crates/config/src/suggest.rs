//! What somebody probably meant.

/// The candidate nearest to `text`, if it is near: at most one slip for every three letters. A
/// slip is a letter too many, missing, wrong, or swapped with its neighbour
/// (Damerau-Levenshtein).
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_ascii_lowercase();
    let length = text.chars().count();
    let slips_max = (length / 3).max(1);
    // Each letter that the one has more is a slip: most candidates need no closer look.
    let may_be_near = |candidate: &&str| candidate.chars().count().abs_diff(length) <= slips_max;
    candidates
        .into_iter()
        .filter(may_be_near)
        .map(|candidate| (strsim::damerau_levenshtein(&text, candidate), candidate))
        .filter(|(slips, _)| *slips <= slips_max)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// The end of a message: `; did you mean "port"?`, or nothing.
pub(crate) fn did_you_mean(hint: Option<&str>) -> String {
    hint.map(|hint| format!("; did you mean {hint:?}?")).unwrap_or_default()
}

use super::Invariant;

#[test]
fn a_failure_begins_with_the_name_of_what_was_broken() {
    assert_eq!(Invariant::RunOnce.broken("c1.2 ran twice"), "RunOnce: c1.2 ran twice");
}

/// docs/simulation.md has them all, in this order and these words.
#[test]
fn the_page_lists_them() {
    let page = include_str!("../../../../docs/simulation.md");
    let listed: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let rows: Vec<_> =
        Invariant::ALL.iter().map(|its| format!("| `{its}` | {} |", its.says())).collect();
    let found = listed.windows(rows.len()).any(|lines| lines == rows);
    assert!(found, "docs/simulation.md lacks this table:\n{}", rows.join("\n"));
}

/// docs/traps.md names those that stand against each trap, in the middle column.
#[test]
fn the_traps_name_invariants_that_there_are() {
    let page = include_str!("../../../../docs/traps.md");
    let middle = |line: &'static str| line.split('|').nth(2).unwrap_or_default();
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`"));
    let mut named: Vec<_> =
        rows.flat_map(|line| middle(line).split('`').skip(1).step_by(2)).collect();
    assert!(!named.is_empty());
    named.retain(|name| !Invariant::ALL.iter().any(|its| its.to_string() == *name));
    assert!(named.is_empty(), "docs/traps.md names {named:?}");
}

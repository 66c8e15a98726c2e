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

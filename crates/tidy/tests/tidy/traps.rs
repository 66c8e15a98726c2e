use crate::tree::Tree;

const PAGES: [&str; 2] = ["docs/traps.md", "docs/failures.md"];

/// A page with tables of other things, too: of these no row names a file in its last column.
const MIXED_PAGE: &str = "docs/simulation.md";

/// The tests that these pages name are there: in the last column of a table stand files, and behind
/// each of them tests of that file.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let pages = PAGES.iter().filter_map(|page| Some((*page, tree.text(page)?)));
    let held = pages.flat_map(|(name, page)| check_page(tree, name, page, |_| true));
    let mixed = tree.text(MIXED_PAGE).unwrap_or_default();
    let names_file = |last: &str| last.contains(".rs` ");
    held.chain(check_page(tree, MIXED_PAGE, mixed, names_file)).collect()
}

/// Of the rows of which this says so by their last column.
fn check_page(tree: &Tree, name: &str, page: &str, is_held: fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(page.lines()).filter(|(_, line)| line.starts_with('|')) {
        let mut file: Option<(&str, &str)> = None;
        let last = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        if !is_held(last) {
            continue;
        }
        for word in last.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                let ending = format!("/{word}");
                file = tree.texts().find(|(path, _)| path.ends_with(&ending));
            }
            let found = file.is_some_and(|(_, text)| word.ends_with(".rs") || has_test(text, word));
            if !found {
                complaints.push(format!("{name}:{number}: {word}"));
            }
        }
    }
    complaints
}

/// Whether a file has a function of this name that is run as a test: one attribute in the lines
/// above it says so.
fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    lines.iter().enumerate().filter(|(_, line)| line.starts_with(&head)).any(|(at, _)| {
        let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        attributes.any(|attribute| *attribute == "#[test]")
    })
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    fn complaints(row: &str) -> Vec<String> {
        let page = format!("Prose with `words`.\n{row}\n");
        let test = "fn it_helps() {}\n#[test]\n#[ignore]\nfn it_holds() {}\nfn it_lacks() {}\n";
        check(&Tree::sample(&[("docs/traps.md", &page), ("crates/a/tests/it/b.rs", test)]))
    }

    #[test]
    fn a_test_that_is_not_there_is_found() {
        assert_eq!(complaints("| x | `it/b.rs` `it_hold` |"), ["docs/traps.md:2: it_hold"]);
        let expected = ["docs/traps.md:2: it/c.rs", "docs/traps.md:2: it_holds"];
        assert_eq!(complaints("| x | `it/c.rs` `it_holds` |"), expected);
        assert_eq!(complaints("| x | `it_holds` |"), ["docs/traps.md:2: it_holds"]);
        let no_tests = ["docs/traps.md:2: it_helps", "docs/traps.md:2: it_lacks"];
        assert_eq!(complaints("| x | `it/b.rs` `it_helps` `it_lacks` |"), no_tests);
    }

    #[test]
    fn a_row_without_tests_among_those_with_some_is_let_be() {
        let page = "| x | `words` |\n| x | `it/b.rs` `it_holds` `it_hold` |\n";
        let test = ("crates/a/tests/it/b.rs", "#[test]\nfn it_holds() {}\n");
        let complaints = check(&Tree::sample(&[("docs/simulation.md", page), test]));
        assert_eq!(complaints, ["docs/simulation.md:2: it_hold"]);
    }

    #[test]
    fn a_test_that_is_there_is_fine() {
        assert_eq!(complaints("| x | `it/b.rs` `it_holds` · `it/b.rs` `it_holds` |"), [""; 0]);
    }
}

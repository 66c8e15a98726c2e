use crate::tree::Tree;

const LINES_MAX: usize = 600;

/// What a longer file says in its head, followed by the reason.
const REASON: &str = "//! Long because: ";

/// A source file is one concept, at most 600 lines of it, or it says why not. Tests are not
/// counted: neither files of tests nor what follows the first inline module of tests.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let sources = tree.texts().filter(|(path, _)| path.ends_with(".rs") && !is_test(path));
    sources.filter_map(|(path, text)| complaint(path, text)).collect()
}

fn is_test(path: &str) -> bool {
    let folders = ["tests/", "benches/"];
    folders.iter().any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

fn complaint(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().take_while(|line| !line.starts_with("mod tests {")).count();
    let mut head = text.lines().take_while(|line| line.starts_with("//!"));
    let explained = head.any(|line| line.starts_with(REASON) && line.len() > REASON.len());
    (lines > LINES_MAX && !explained).then(|| format!("{path}: {lines} lines, and no reason"))
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    fn complaints(path: &str, head: &str, lines: usize) -> Vec<String> {
        let text = format!("{head}{}", "x\n".repeat(lines));
        check(&Tree::sample(&[(path, &text)]))
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        assert_eq!(complaints("src/a.rs", "", 600), [""; 0]);
        assert_eq!(complaints("src/a.rs", "", 601), ["src/a.rs: 601 lines, and no reason"]);
        let head = "//! A table.\n//! Long because: it has a row for each word.\n";
        assert_eq!(complaints("src/a.rs", head, 700), [""; 0]);
    }

    #[test]
    fn a_reason_is_a_sentence_in_the_head() {
        for head in ["//! Long because: \n", "use x;\n//! Long because: late\n"] {
            assert_eq!(complaints("src/a.rs", head, 700).len(), 1, "{head}");
        }
    }

    #[test]
    fn tests_do_not_count() {
        for path in ["src/a/tests.rs", "src/a_tests.rs", "tests/a.rs", "crates/x/tests/a/b.rs"] {
            assert_eq!(complaints(path, "", 700), [""; 0]);
        }
        let inline = format!("{}mod tests {{\n", "x\n".repeat(500));
        assert_eq!(complaints("src/a.rs", &inline, 500), [""; 0]);
    }
}

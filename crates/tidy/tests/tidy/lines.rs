use crate::tree::Tree;

const COLUMNS_MAX: usize = 100;

/// Endings of the files that are read side by side: prose in Markdown wraps where it is shown.
const NARROW: &[&str] =
    &[".go", ".java", ".mjs", ".py", ".rs", ".sh", ".toml", ".xml", "Makefile", ".ci/run"];

/// Lines end where their text ends, files end with a line, and code is at most 100 columns wide,
/// apart from lines with an address that cannot be broken.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts() {
        if !text.is_empty() && !text.ends_with('\n') {
            complaints.push(format!("{path}: no newline at its end"));
        }
        if text.ends_with("\n\n") {
            complaints.push(format!("{path}: an empty line at its end"));
        }
        let narrow = NARROW.iter().any(|ending| path.ends_with(ending));
        for (number, line) in (1..).zip(text.split('\n')) {
            if line.ends_with([' ', '\t', '\r']) {
                complaints.push(format!("{path}:{number}: white space at its end"));
            }
            let columns = line.chars().count();
            if narrow && columns > COLUMNS_MAX && !line.contains("://") {
                complaints.push(format!("{path}:{number}: {columns} columns"));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::{NARROW, Tree, check};

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&Tree::sample(&[(path, text)]))
    }

    #[test]
    fn ends_are_clean() {
        assert_eq!(complaints("a.md", "one\n\ntwo\n"), [""; 0]);
        assert_eq!(complaints("a.md", ""), [""; 0]);
        assert_eq!(complaints("a.md", "one"), ["a.md: no newline at its end"]);
        assert_eq!(complaints("a.md", "one\n\n"), ["a.md: an empty line at its end"]);
        for end in [" ", "\t", "\r"] {
            let text = format!("one\ntwo{end}\n");
            assert_eq!(complaints("a.md", &text), ["a.md:2: white space at its end"]);
        }
    }

    #[test]
    fn code_is_narrow() {
        let wide = format!("{}\n", "é".repeat(101));
        for path in NARROW.iter().map(|ending| format!("a{ending}")) {
            assert_eq!(complaints(&path, &wide), [format!("{path}:1: 101 columns")]);
        }
        assert_eq!(complaints("a.md", &wide), [""; 0]);
        assert_eq!(complaints("a.rs", &format!("{}\n", "é".repeat(100))), [""; 0]);
        assert_eq!(complaints("a.rs", &format!("// https://{wide}")), [""; 0]);
    }
}

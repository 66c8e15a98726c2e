use crate::tree::Tree;

/// Words for work left undone: allowed with the number of the issue that will do it, as in `#12`.
/// They are cut in two here so that this file passes its own check.
const UNDONE: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

/// Places on somebody's machine.
const PLACES: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];

/// No undone work without an issue, and no path of the machine that a text was written on.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts() {
        for (number, line) in (1..).zip(text.lines()) {
            let undone = UNDONE.iter().filter(|word| has_word(line, word) && !names_issue(line));
            let places = PLACES.iter().filter(|place| line.contains(*place));
            for word in undone.chain(places) {
                complaints.push(format!("{path}:{number}: {word}"));
            }
        }
    }
    complaints
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|char: char| !char.is_alphanumeric() && char != '_').any(|found| found == word)
}

/// Whether there is a `#` with a digit behind it.
fn names_issue(line: &str) -> bool {
    line.split('#').skip(1).any(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{PLACES, Tree, UNDONE, check};

    fn complaints(line: &str) -> Vec<String> {
        check(&Tree::sample(&[("a.rs", &format!("\n{line}\n"))]))
    }

    #[test]
    fn undone_work_names_its_issue() {
        for word in UNDONE {
            let expected = [format!("a.rs:2: {word}")];
            assert_eq!(complaints(&format!("// {word}: later")), expected);
            assert_eq!(complaints(&format!("// ({word}) #later")), expected);
            assert_eq!(complaints(&format!("// {word}(#12): later")), [""; 0]);
            assert_eq!(complaints(&format!("mktemp {word}{word}")), [""; 0]);
        }
    }

    #[test]
    fn no_place_on_a_machine_is_named() {
        for place in PLACES {
            let expected = [format!("a.rs:2: {place}")];
            assert_eq!(complaints(&format!("see {place}notes.md")), expected);
        }
        assert_eq!(complaints("see docs/notes.md and /usr/lib/"), [""; 0]);
    }
}

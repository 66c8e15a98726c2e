use crate::tree::Tree;

/// Links in Markdown to files of the project lead to one. Addresses and anchors are not followed.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (number, line) in prose(text) {
            for target in targets(line) {
                if !leads(tree, path, target) {
                    complaints.push(format!("{path}:{number}: {target}"));
                }
            }
        }
    }
    complaints
}

/// The lines outside of fenced code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of `[text](target "title")` and of `[label]: target`.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let label = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    inline.chain(label.map(|(_, target)| target.trim())).collect()
}

/// Whether a link in the file at `from` leads to something.
fn leads(tree: &Tree, from: &str, target: &str) -> bool {
    let file = target.split('#').next().unwrap_or_default();
    if file.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let mut place: Vec<_> = from.split('/').collect();
    place.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." if place.pop().is_none() => return false,
            ".." => {}
            name => place.push(name),
        }
    }
    place.is_empty() || tree.exists(&place.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    fn complaints(line: &str) -> Vec<String> {
        let text = format!("# Title\n{line}\n");
        check(&Tree::sample(&[("docs/a.md", &text), ("docs/b.md", ""), ("src/lib.rs", "")]))
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        for target in ["c.md", "../b.md", "../../src/lib.rs", "b.md.md", "c.md#title"] {
            let expected = [format!("docs/a.md:2: {target}")];
            assert_eq!(complaints(&format!("see [b](b.md), [it]({target}).")), expected);
            assert_eq!(complaints(&format!("![it]({target} \"title\")")), expected);
            assert_eq!(complaints(&format!("[it]: {target}")), expected);
        }
    }

    #[test]
    fn a_link_to_something_is_fine() {
        for target in ["b.md", "./b.md#title", "#title", "../src/lib.rs", "../src/", "../", ".."] {
            assert_eq!(complaints(&format!("[it]({target})")), [""; 0]);
        }
        assert_eq!(complaints("[it](https://example.org/x) [us](mailto:us@example.org)"), [""; 0]);
        assert_eq!(complaints("```\n[it](c.md)\n```"), [""; 0]);
    }
}

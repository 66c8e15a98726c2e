use crate::tree::Tree;

/// Where the marks of rare paths are listed, each on a line of its own.
const LIST: &str = "crates/engine/src/marks.rs";

/// Where they stand, each as `Mark::Name`.
const CODE: &[&str] = &["crates/engine/src/", "crates/proxy/src/"];

/// Where those begin in the list that no simulation takes.
const NOT_SIMULATED: &str = "    not_simulated:";

/// Where tests may say that they take one of these, as `took(Mark::Name)`: those of the driver, and
/// of the worker, with sockets or among other threads.
const TESTS: &[&str] = &["crates/engine/src/", "crates/proxy/", "interleave/"];

/// Each mark stands at one place in the code, so that its count tells of one path; and if no
/// simulation takes that, a test does.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    [astray(tree), untaken(tree)].concat()
}

fn astray(tree: &Tree) -> Vec<String> {
    let list = tree.text(LIST).unwrap_or_default();
    let is_code = |path: &str| {
        path != LIST && !path.contains("/tests") && CODE.iter().any(|code| path.starts_with(code))
    };
    let code = tree.texts().filter(|(path, _)| is_code(path));
    let placed: Vec<&str> = code.flat_map(|(_, text)| names_in(text)).collect();
    let times = |name: &str| placed.iter().filter(|other| **other == name).count();
    let listed = list.lines().filter_map(name_in_list).map(|name| (name, times(name)));
    let astray = listed.filter(|(_, times)| *times != 1);
    astray.map(|(name, times)| format!("{LIST}: {name} stands at {times} places")).collect()
}

fn untaken(tree: &Tree) -> Vec<String> {
    let list = tree.text(LIST).unwrap_or_default();
    let not_simulated = list.lines().skip_while(|line| *line != NOT_SIMULATED);
    let is_test =
        |path: &str| path.contains("/tests") && TESTS.iter().any(|tests| path.starts_with(tests));
    let tests: Vec<&str> =
        tree.texts().filter(|(path, _)| is_test(path)).map(|(_, text)| text).collect();
    let is_taken = |name: &str| {
        let words = format!("took(Mark::{name})");
        tests.iter().any(|text| text.contains(&words))
    };
    let untaken = not_simulated.filter_map(name_in_list).filter(|name| !is_taken(name));
    untaken.map(|name| format!("{LIST}: no test takes {name}")).collect()
}

fn name_in_list(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    ")?.strip_suffix(',')?;
    name.chars().all(|char| char.is_ascii_alphanumeric()).then_some(name)
}

fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("Mark::").skip(1);
    behind.filter_map(|rest| rest.split(|char: char| !char.is_ascii_alphanumeric()).next())
}

#[cfg(test)]
mod tests {
    use super::{LIST, Tree, check};

    /// What is said about code like this, where the list has `Full` and `FullAgain`.
    fn complaints(code: &str) -> Vec<String> {
        let list = "marks! {\n    /// It is.\n    Full,\n    /// Again.\n    FullAgain,\n}\n";
        let tests = "Mark::Full Mark::FullAgain";
        check(&Tree::sample(&[
            (LIST, list),
            ("crates/engine/src/a.rs", code),
            ("crates/engine/src/a/tests.rs", tests),
            ("crates/sim/src/b.rs", tests),
        ]))
    }

    #[test]
    fn each_mark_stands_at_one_place() {
        assert_eq!(complaints("Mark::Full.hit(); Mark::FullAgain.hit_if(x);"), [""; 0]);
        let missing = complaints("Mark::FullAgain.hit();");
        assert_eq!(missing, [format!("{LIST}: Full stands at 0 places")]);
        let twice = complaints("Mark::Full.hit(); Mark::FullAgain.hit(); Mark::Full.hit();");
        assert_eq!(twice, [format!("{LIST}: Full stands at 2 places")]);
    }

    #[test]
    fn what_is_not_simulated_is_tested() {
        let names = ["Lost", "Again", "Twice", "Often", "Seldom"];
        let lines: String = names.map(|name| format!("    {name},\n")).concat();
        let list = format!("marks! {{\n    Full,\n    not_simulated:\n{lines}}}\n");
        let code: String = names.map(|name| format!("Mark::{name}.hit(); ")).concat();
        let took = names.map(|name| format!("assert!(took(Mark::{name}));"));
        let tree = Tree::sample(&[
            (LIST, &list),
            ("crates/engine/src/a.rs", &format!("{code} Mark::Full.hit();")),
            // No test, or one of something else.
            ("crates/proxy/src/a.rs", "assert!(took(Mark::Lost))"),
            ("crates/sim/tests/a.rs", &took[0]),
            ("crates/proxy/tests/driver/a.rs", &took[1]),
            ("crates/proxy/src/a/tests.rs", &took[2]),
            ("crates/engine/src/a/tests.rs", &took[3]),
            ("interleave/proxy/tests/a/main.rs", &took[4]),
        ]);
        let expected = ["Lost stands at 2 places", "no test takes Lost"];
        assert_eq!(check(&tree), expected.map(|complaint| format!("{LIST}: {complaint}")));
    }
}

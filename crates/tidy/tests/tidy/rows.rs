use crate::tree::Tree;

const PAGE: &str = "docs/failures.md";

/// The column of each of the page's tables with the simulator's names for a row.
const COLUMN: &str = "simulator";

/// Where the simulator has them, each as `=> "name"`.
const LIST: &str = "crates/sim/src/rows.rs";

/// Where the engine's marks are, each on a line of its own. The seeds, or a test, have to take them
/// all, and several rows may be told by one.
const MARKS: &str = "crates/engine/src/marks.rs";

/// Where the tests of the program are, in front of PostgreSQL.
const TESTS: &str = "it/";

/// Each row of a table is one that the simulator has to reach, whose names stand there once, and
/// one that a test has with PostgreSQL.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let (page, list) = (tree.text(PAGE).unwrap_or_default(), tree.text(LIST).unwrap_or_default());
    let known: Vec<&str> = list.lines().filter_map(name_in_list).collect();
    let marks = tree.text(MARKS).unwrap_or_default();
    let is_mark = |name: &str| {
        marks.lines().any(|line| line.trim().strip_suffix(',').is_some_and(|mark| mark == name))
    };
    let mut complaints = Vec::new();
    let mut named = Vec::new();
    // Of the table that the line before belongs to.
    let mut column = None;
    for (number, line) in (1..).zip(page.lines()) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            column = None;
            continue;
        }
        let Some(column) = column else {
            column = Some(cells.iter().position(|cell| *cell == COLUMN));
            if column == Some(None) {
                complaints.push(format!("{PAGE}:{number}: a table without the simulator's column"));
            }
            continue;
        };
        if !line.starts_with("|---") {
            let Some(column) = column else { continue };
            let cell = cells.get(column).copied().unwrap_or_default();
            let names: Vec<&str> = names_in_cell(cell).collect();
            if names.is_empty() {
                complaints.push(format!("{PAGE}:{number}: a row without a name"));
            }
            if !cells.last().is_some_and(|tests| names_test_of_program(tests)) {
                complaints.push(format!("{PAGE}:{number}: a row without a test in {TESTS}"));
            }
            for name in names.into_iter().filter(|name| !is_mark(name)) {
                if !known.contains(&name) || named.contains(&name) {
                    complaints.push(format!("{PAGE}:{number}: {name}"));
                }
                named.push(name);
            }
        }
    }
    let missing = known.iter().filter(|name| !named.contains(name));
    complaints.extend(missing.map(|name| format!("{LIST}: {name} is no row of {PAGE}")));
    complaints
}

fn name_in_list(line: &str) -> Option<&str> {
    line.split_once("=> \"")?.1.split('"').next()
}

/// Whether a cell has a file of those tests, and behind it a function.
fn names_test_of_program(cell: &str) -> bool {
    let words: Vec<&str> = names_in_cell(cell).collect();
    words.windows(2).any(|pair| pair[0].starts_with(TESTS) && !pair[1].ends_with(".rs"))
}

fn names_in_cell(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::{LIST, MARKS, PAGE, Tree, check};

    /// A test of the program.
    const TEST: &str = "`it/a.rs` `b`";

    /// What is said about a page with these rows, each a cell for the simulator and one for tests,
    /// where the list has `idle` and `full`.
    fn complaints(rows: &[(&str, &str)]) -> Vec<String> {
        let row = |(names, tests): &(&str, &str)| format!("| a | {names} | {tests} |");
        complaints_of(&rows.iter().map(row).collect::<Vec<_>>().join("\n"))
    }

    fn complaints_of(rows: &str) -> Vec<String> {
        let page = format!("Prose.\n| cause | simulator | test |\n|---|---|---|\n{rows}\n");
        let list = "Self::Idle => \"idle\",\nSelf::Full => \"full\",\n";
        check(&Tree::sample(&[(PAGE, &page), (LIST, list)]))
    }

    #[test]
    fn each_name_stands_in_one_row() {
        assert_eq!(complaints(&[("`idle`", TEST), ("`full`", TEST)]), [""; 0]);
        assert_eq!(complaints(&[("`idle` `full`", TEST)]), [""; 0]);
        let twice = complaints(&[("`idle`", TEST), ("`idle` `full`", TEST)]);
        assert_eq!(twice, [format!("{PAGE}:5: idle")]);
        let missing = complaints(&[("`idle`", TEST)]);
        assert_eq!(missing, [format!("{LIST}: full is no row of {PAGE}")]);
    }

    #[test]
    fn each_row_has_a_name_that_is_known() {
        let unknown = complaints(&[("`idle` `full` `other`", TEST)]);
        assert_eq!(unknown, [format!("{PAGE}:4: other")]);
        for none in ["", "–"] {
            let nameless = complaints(&[("`idle` `full`", TEST), (none, TEST)]);
            assert_eq!(nameless, [format!("{PAGE}:5: a row without a name")]);
        }
        let no_column =
            format!("| a | `idle` `full` | {TEST} |\n\n| c | d |\n|---|---|\n| e | f |");
        let no_column = complaints_of(&no_column);
        assert_eq!(no_column, [format!("{PAGE}:6: a table without the simulator's column")]);
    }

    #[test]
    fn marks_of_the_engine_may_stand_in_several_rows() {
        let rows = format!("| a | `Lost` `idle` | {TEST} |\n| a | `Lost` `full` | {TEST} |");
        let page = format!("| cause | simulator | test |\n|---|---|---|\n{rows}\n");
        let list = "Self::Idle => \"idle\",\nSelf::Full => \"full\",\n";
        let sample = |marks| Tree::sample(&[(PAGE, &page), (LIST, list), (MARKS, marks)]);
        assert_eq!(check(&sample("    /// A server.\n    Lost,\n")), [""; 0]);
        let unknown = check(&sample("    Loss,\n"));
        assert_eq!(unknown, [format!("{PAGE}:3: Lost"), format!("{PAGE}:4: Lost")]);
    }

    #[test]
    fn each_row_has_a_test_with_postgresql() {
        assert_eq!(complaints(&[("`idle` `full`", "`driver/c.rs` `d` · `it/a.rs` `b`")]), [""; 0]);
        for tests in ["x", "`it/a.rs`", "`driver/c.rs` `d`", "`it/a.rs` · `driver/c.rs` `d`"] {
            let untested = complaints(&[("`idle` `full`", tests)]);
            assert_eq!(untested, [format!("{PAGE}:4: a row without a test in it/")], "{tests}");
        }
    }
}

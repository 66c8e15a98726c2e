use crate::tree::Tree;

const PAGE: &str = "docs/failures.md";

/// The column of each of the page's tables with the simulator's names for a row.
const COLUMN: &str = "simulator";

/// Where the simulator has them, each as `=> "name"`.
const LIST: &str = "crates/sim/src/rows.rs";

/// Each row of a table is one that the simulator has to reach, or says by a dash that it is none;
/// each of those stands there once.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let (page, list) = (tree.text(PAGE).unwrap_or_default(), tree.text(LIST).unwrap_or_default());
    let known: Vec<&str> = list.lines().filter_map(name_in_list).collect();
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
            if names.is_empty() && cell != "–" {
                complaints.push(format!("{PAGE}:{number}: a row without a name"));
            }
            for name in names {
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

fn names_in_cell(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::{LIST, PAGE, Tree, check};

    /// What is said about a page with these rows, where the list has `idle` and `full`.
    fn complaints(rows: &str) -> Vec<String> {
        let page = format!("Prose.\n| cause | simulator | test |\n|---|---|---|\n{rows}\n");
        let list = "Self::Idle => \"idle\",\nSelf::Full => \"full\",\n";
        check(&Tree::sample(&[(PAGE, &page), (LIST, list)]))
    }

    #[test]
    fn each_name_stands_in_one_row() {
        assert_eq!(complaints("| a | `idle` | x |\n| b | `full` | `y` |"), [""; 0]);
        assert_eq!(complaints("| a | `idle` `full` | x |"), [""; 0]);
        let twice = complaints("| a | `idle` | x |\n| b | `idle` `full` | x |");
        assert_eq!(twice, [format!("{PAGE}:5: idle")]);
        let missing = complaints("| a | `idle` | x |");
        assert_eq!(missing, [format!("{LIST}: full is no row of {PAGE}")]);
    }

    #[test]
    fn each_row_has_a_name_that_is_known() {
        let unknown = complaints("| a | `idle` `full` `other` | x |");
        assert_eq!(unknown, [format!("{PAGE}:4: other")]);
        let nameless = complaints("| a | `idle` `full` | x |\n| b | | `full` |");
        assert_eq!(nameless, [format!("{PAGE}:5: a row without a name")]);
        assert_eq!(complaints("| a | `idle` `full` | x |\n| b | – | x |"), [""; 0]);
        let no_column = complaints("| a | `idle` `full` | x |\n\n| c | d |\n|---|---|\n| e | f |");
        assert_eq!(no_column, [format!("{PAGE}:6: a table without the simulator's column")]);
    }
}

//! The house rules that a machine can check, over every file that git knows or would add.
//!
//! One module is one rule. It holds the rule, and tests that show it a bad tree and a good one: a
//! check that cannot fail checks nothing. The tests below hold the project itself to the rules.
//! What is left to rustfmt and clippy is not repeated here.

mod edges;
mod heads;
mod length;
mod lines;
mod links;
mod marks;
mod modules;
mod rows;
mod traps;
mod tree;
mod words;

use tree::Tree;

#[test]
fn lines_are_clean() {
    hold(lines::check);
}

#[test]
fn files_are_short() {
    hold(length::check);
}

#[test]
fn no_word_is_out_of_place() {
    hold(words::check);
}

#[test]
fn crates_open_with_what_they_are_for() {
    hold(heads::check);
}

#[test]
fn no_file_is_dead() {
    hold(modules::check);
}

#[test]
fn dependencies_point_down() {
    hold(edges::check);
}

#[test]
fn links_lead_somewhere() {
    hold(links::check);
}

#[test]
fn traps_have_tests() {
    hold(traps::check);
}

#[test]
fn failures_are_simulated() {
    hold(rows::check);
}

#[test]
fn marks_stand_once() {
    hold(marks::check);
}

/// Holds the project to a rule.
#[track_caller]
fn hold(rule: fn(&Tree) -> Vec<String>) {
    let complaints = rule(&Tree::of_project());
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

use std::collections::BTreeSet;

use crate::tree::Tree;

/// Where cargo finds the roots of a package's targets by itself.
const TARGET_FOLDERS: &[&str] = &["benches/", "examples/", "src/bin/", "tests/"];

/// Every .rs file belongs to a target: a chain of `mod` leads to it. A file at a place of its own
/// choosing (`#[path]`) would be found by nobody.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in tree.packages() {
        let own = |(path, _): &(&str, &str)| path.starts_with(package) && path.ends_with(".rs");
        let mut reached = BTreeSet::new();
        for (path, text) in tree.texts().filter(own) {
            if is_root(&path[package.len()..]) {
                reach(tree, path.to_owned(), &mut reached);
            }
            if text.lines().any(|line| line.trim_start().starts_with("#[path")) {
                complaints.push(format!("{path}: a module with a path of its own"));
            }
        }
        let dead = tree.texts().filter(own).filter(|(path, _)| !reached.contains(*path));
        complaints.extend(dead.map(|(path, _)| format!("{path}: no `mod` leads to it")));
    }
    complaints
}

/// Whether cargo takes the file, given by its path in its package, for the root of a target.
fn is_root(path: &str) -> bool {
    let in_target_folder = TARGET_FOLDERS.iter().any(|folder| {
        let Some(rest) = path.strip_prefix(folder) else { return false };
        match rest.split_once('/') {
            None => true,
            Some((_, file)) => file == "main.rs",
        }
    });
    in_target_folder || ["build.rs", "src/lib.rs", "src/main.rs"].contains(&path)
}

fn reach(tree: &Tree, path: String, reached: &mut BTreeSet<String>) {
    let Some(text) = tree.text(&path) else { return };
    let folder = submodule_folder(&path);
    if !reached.insert(path) {
        return;
    }
    for module in text.lines().filter_map(declared) {
        reach(tree, format!("{folder}/{module}.rs"), reached);
        reach(tree, format!("{folder}/{module}/mod.rs"), reached);
    }
}

/// The folder that holds the modules that the file at `path` declares.
fn submodule_folder(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or((".", path));
    let is_target_folder = || {
        let ends = |name: &&&str| format!("{folder}/").ends_with(&format!("/{name}"));
        TARGET_FOLDERS.iter().any(|name| ends(&name))
    };
    match file {
        "lib.rs" | "main.rs" | "mod.rs" | "build.rs" => folder.to_owned(),
        _ if is_target_folder() => folder.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    }
}

/// The module that a line declares to be in another file.
fn declared(line: &str) -> Option<&str> {
    let mut line = line.trim();
    while line.starts_with("#[") {
        line = line.split_once("] ")?.1;
    }
    if let Some(public) = line.strip_prefix("pub") {
        line = public.trim_start();
        if line.starts_with('(') {
            line = line.split_once(") ")?.1;
        }
    }
    line.strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::{Tree, check, declared};

    #[test]
    fn a_file_without_a_mod_is_dead() {
        let tree = Tree::sample(&[
            ("a/Cargo.toml", ""),
            ("a/src/lib.rs", "pub mod one;\n#[cfg(test)] mod one_tests;\n"),
            ("a/src/one.rs", "mod deep;\n"),
            ("a/src/one/deep.rs", ""),
            ("a/src/one_tests.rs", ""),
            ("a/src/deep.rs", ""),
            ("a/src/main.rs", "mod two;\n// mod three;\n"),
            ("a/src/two/mod.rs", ""),
            ("a/src/three.rs", ""),
        ]);
        let dead = ["deep", "three"].map(|name| format!("a/src/{name}.rs: no `mod` leads to it"));
        assert_eq!(check(&tree), dead);
    }

    #[test]
    fn targets_are_roots_of_their_own() {
        let tree = Tree::sample(&[
            ("a/Cargo.toml", ""),
            ("a/build.rs", ""),
            ("a/src/bin/tool.rs", ""),
            ("a/tests/one.rs", "mod shared;\n"),
            ("a/tests/shared/mod.rs", ""),
            ("a/tests/two/main.rs", "mod part;\n"),
            ("a/tests/two/part.rs", ""),
            ("a/tests/two/lost.rs", ""),
            ("a/tests/shared/lost.rs", ""),
        ]);
        let dead = ["shared", "two"]
            .map(|folder| format!("a/tests/{folder}/lost.rs: no `mod` leads to it"));
        assert_eq!(check(&tree), dead);
    }

    #[test]
    fn modules_lie_where_their_name_says() {
        let text = "#[path = \"elsewhere.rs\"]\nmod x;\n";
        let tree = Tree::sample(&[("a/Cargo.toml", ""), ("a/src/lib.rs", text)]);
        assert_eq!(check(&tree), ["a/src/lib.rs: a module with a path of its own"]);
    }

    #[test]
    fn declarations() {
        for line in ["mod x;", "  pub mod x;", "pub(crate) mod x;", "#[cfg(test)] mod x;"] {
            assert_eq!(declared(line), Some("x"), "{line}");
        }
        for line in ["mod x {", "// mod x;", "model x;", "use x;", ""] {
            assert_eq!(declared(line), None, "{line}");
        }
    }
}

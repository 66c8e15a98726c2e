use crate::tree::Tree;

/// Each crate's lib.rs and main.rs open with what the crate is for.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let roots = tree
        .packages()
        .flat_map(|folder| ["src/lib.rs", "src/main.rs"].map(|name| format!("{folder}{name}")));
    let bare = roots.filter(|path| tree.text(path).is_some_and(|text| !text.starts_with("//! ")));
    bare.map(|path| format!("{path}: does not open with `//! ` and what it is for")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Tree, check};

    #[test]
    fn a_crate_opens_with_its_purpose() {
        let manifest = ("crates/a/Cargo.toml", "");
        let said = "//! What it is for.\n";
        for name in ["crates/a/src/lib.rs", "crates/a/src/main.rs"] {
            assert_eq!(check(&Tree::sample(&[manifest, (name, said)])), [""; 0]);
            for text in ["", "mod x;\n", "// A remark.\n", "\n//! Late.\n"] {
                let complaints = check(&Tree::sample(&[manifest, (name, text)]));
                assert_eq!(complaints.len(), 1, "{text:?}");
                assert!(complaints[0].starts_with(name));
            }
        }
        assert_eq!(check(&Tree::sample(&[manifest, ("crates/a/src/x.rs", "")])), [""; 0]);
    }
}

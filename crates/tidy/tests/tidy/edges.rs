use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::tree::Tree;

/// Every package of the project, and which others its code may use. Arrows point down: a row
/// names only rows below it. Tests may use [`FOR_TESTS`] besides.
const ALLOWED: &[(&str, &[&str])] = &[
    ("pgweir-drivers-sqlx", &[]),
    ("pgweir-bench", &["pgweir-config"]),
    ("pgweir-fuzz-guided", &["pgweir-fuzz"]),
    (
        "pgweir-fuzz",
        &[
            "pgweir-control",
            "pgweir-engine",
            "pgweir-sql",
            "pgweir-auth",
            "pgweir-wire",
            "pgweir-config",
        ],
    ),
    (
        "pgweir",
        &[
            "pgweir-control",
            "pgweir-proxy",
            "pgweir-sink",
            "pgweir-engine",
            "pgweir-sql",
            "pgweir-auth",
            "pgweir-wire",
            "pgweir-config",
        ],
    ),
    ("pgweir-control", &["pgweir-engine", "pgweir-auth", "pgweir-wire", "pgweir-config"]),
    (
        "pgweir-sim",
        &[
            "pgweir-proxy",
            "pgweir-sink",
            "pgweir-engine",
            "pgweir-sql",
            "pgweir-wire",
            "pgweir-config",
        ],
    ),
    (
        "pgweir-proxy",
        &["pgweir-engine", "pgweir-sql", "pgweir-auth", "pgweir-wire", "pgweir-config"],
    ),
    ("pgweir-proxy-interleaved", &["pgweir-engine-interleaved", "pgweir-wire", "pgweir-config"]),
    ("pgweir-engine-interleaved", &["pgweir-sql", "pgweir-auth", "pgweir-wire", "pgweir-config"]),
    ("pgweir-engine", &["pgweir-sql", "pgweir-auth", "pgweir-wire", "pgweir-config"]),
    ("pgweir-sql", &[]),
    ("pgweir-config", &["pgweir-auth"]),
    ("pgweir-auth", &[]),
    ("pgweir-wire", &[]),
    ("pgweir-sink", &[]),
    ("pgweir-testkit", &[]),
    ("pgweir-tidy", &[]),
];

/// What only tests may use.
const FOR_TESTS: &[&str] = &["pgweir-sim", "pgweir-testkit"];

/// Dependencies between the project's packages are those of the table.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut complaints = Vec::new();
    for folder in tree.packages() {
        let path = format!("{folder}Cargo.toml");
        let Some(manifest) = tree.text(&path).and_then(|text| text.parse::<Table>().ok()) else {
            complaints.push(format!("{path}: no TOML"));
            continue;
        };
        let name = manifest.get("package").and_then(|package| package.get("name"));
        let Some(allowed) = name.and_then(Value::as_str).and_then(|name| allowed.get(name)) else {
            complaints.push(format!("{path}: a package that the table of edges does not know"));
            continue;
        };
        for (section, used) in uses(&manifest) {
            let for_tests = section == "dev-dependencies" && FOR_TESTS.contains(&used);
            if !allowed.contains(&used) && !for_tests {
                complaints.push(format!("{path}: [{section}] {used}"));
            }
        }
    }
    complaints
}

/// The project's packages that a manifest names, with the section it names them in.
fn uses(manifest: &Table) -> Vec<(&'static str, &str)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let of_targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut uses = Vec::new();
    for table in of_targets.chain([manifest]) {
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let named = table.get(section).and_then(Value::as_table);
            let names = named.into_iter().flatten().map(|(key, how)| package_of(key, how));
            uses.extend(
                names.filter(|name| name.starts_with("pgweir")).map(|used| (section, used)),
            );
        }
    }
    uses
}

/// The package that a dependency is: it may go by another name.
fn package_of<'a>(key: &'a str, how: &'a Value) -> &'a str {
    how.get("package").and_then(Value::as_str).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED, Tree, check};

    fn complaints(manifest: &str) -> Vec<String> {
        check(&Tree::sample(&[("x/Cargo.toml", manifest)]))
    }

    fn package(name: &str, section: &str, used: &str) -> String {
        format!("[package]\nname = \"{name}\"\n[{section}]\n{used}.workspace = true\n")
    }

    #[test]
    fn the_table_itself_points_down() {
        for (row, (name, below)) in ALLOWED.iter().enumerate() {
            for used in *below {
                let lower = ALLOWED[row + 1..].iter().any(|(known, _)| known == used);
                assert!(lower, "{name} -> {used}");
            }
        }
    }

    #[test]
    fn an_arrow_up_is_found_wherever_it_is() {
        for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let up = package("pgweir-wire", section, "pgweir-engine");
            assert_eq!(complaints(&up), [format!("x/Cargo.toml: [{section}] pgweir-engine")]);
        }
        let up = package("pgweir-wire", "target.'cfg(unix)'.dependencies", "pgweir-engine");
        assert_eq!(complaints(&up), ["x/Cargo.toml: [dependencies] pgweir-engine"]);
        assert_eq!(complaints(&package("pgweir-engine", "dependencies", "pgweir-wire")), [""; 0]);
    }

    /// The second build of the engine is for tests, and must not come into the program as it.
    #[test]
    fn a_package_under_another_name_is_found() {
        let other = "[package]\nname = \"pgweir-proxy\"\n[dependencies]\n\
            pgweir-engine = { package = \"pgweir-engine-interleaved\", path = \"y\" }\n";
        assert_eq!(complaints(other), ["x/Cargo.toml: [dependencies] pgweir-engine-interleaved"]);
    }

    #[test]
    fn what_is_for_tests_is_used_by_tests() {
        let kit = "pgweir-testkit";
        assert_eq!(complaints(&package("pgweir-proxy", "dev-dependencies", kit)), [""; 0]);
        assert_eq!(complaints(&package("pgweir-proxy", "dependencies", kit)).len(), 1);
    }

    #[test]
    fn every_package_is_in_the_table() {
        assert_eq!(complaints(&package("pgweir-new", "dependencies", "libc")).len(), 1);
        assert_eq!(complaints("[package").len(), 1);
    }
}

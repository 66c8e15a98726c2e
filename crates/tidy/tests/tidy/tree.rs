use std::{collections::BTreeMap, fs, path::Path, process::Command};

/// Endings of the files that people write. Others (figures, test vectors) are no one's prose.
const WRITTEN: &[&str] = &[
    ".ci/run",
    ".gitattributes",
    ".gitignore",
    ".go",
    ".ini",
    ".java",
    ".md",
    ".mjs",
    ".prisma",
    ".py",
    ".rb",
    ".rs",
    ".sh",
    ".sql",
    ".toml",
    ".txt",
    ".xml",
    ".yaml",
    ".yml",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Makefile",
];

/// The project's files: path from its root, with `/`, to the text of those that people write.
pub(crate) struct Tree(BTreeMap<String, Option<String>>);

impl Tree {
    /// The files that git tracks or would add. What is deleted but not committed yet is left out.
    pub(crate) fn of_project() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let output = Command::new("git")
            // The checkout may belong to another user than the one who tests.
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .args(["--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output();
        let listed = match output {
            Ok(output) if output.status.success() => output.stdout,
            other => panic!("tidy needs git and a git checkout: {other:?}"),
        };
        let listed = String::from_utf8_lossy(&listed);
        let mut files = BTreeMap::new();
        for path in listed.split('\0').filter(|path| root.join(path).is_file()) {
            let written = WRITTEN.iter().any(|ending| path.ends_with(ending));
            let text = written.then(|| match fs::read_to_string(root.join(path)) {
                Ok(text) => text,
                Err(error) => panic!("{path}: {error}"),
            });
            files.insert(path.to_owned(), text);
        }
        assert!(files.contains_key("Cargo.toml"), "git listed no Cargo.toml in {root:?}");
        Self(files)
    }

    /// A tree to show to a rule.
    pub(crate) fn sample(files: &[(&str, &str)]) -> Self {
        let files = files.iter();
        Self(files.map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect())
    }

    /// The written files and their text, in the order of their paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// The text of the file at `path`, if it is a written one.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path)?.as_deref()
    }

    /// Whether there is a file, written or not, or a folder at `path`.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.0.keys().any(|known| known == path || known.starts_with(&folder))
    }

    /// The folders with a Cargo.toml, each with a `/` at its end. The root's, which has no code of
    /// its own, is left out.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &str> {
        let manifests = self.0.keys().filter_map(|path| path.strip_suffix("Cargo.toml"));
        manifests.filter(|folder| folder.ends_with('/'))
    }
}

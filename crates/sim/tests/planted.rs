//! The bugs that `make planted` plants fit the sources as they are. That each is found is for
//! `make planted` to show.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgweir_sim::Invariant;

/// What may have a bug planted in it: what is simulated, and not the simulator.
const PLANTED_IN: [&str; 3] = ["crates/engine/src/", "crates/proxy/src/", "crates/wire/src/"];

#[test]
fn each_bug_can_be_planted() {
    for patch in patches() {
        let output = Command::new("git")
            // The checkout may belong to another user than the one who tests.
            .args(["-c", "safe.directory=*", "apply", "--check", "--whitespace=nowarn"])
            .arg(&patch)
            .current_dir(root())
            .output()
            .expect("git is there, as for every checkout");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaints}", patch.display());
    }
}

#[test]
fn each_bug_is_said_in_a_sentence() {
    for patch in patches() {
        let (name, text) = (patch.display(), fs::read_to_string(&patch).expect("a patch is text"));
        let first = text.lines().next().unwrap_or_default();
        let sentence = first.starts_with(char::is_uppercase) && first.ends_with('.');
        assert!(sentence, "{name} begins with {first:?}");
        let second = text.lines().nth(1).unwrap_or_default();
        let seen = second.strip_prefix("Seen as: ").and_then(|names| names.strip_suffix('.'));
        let is_known = |name: &str| Invariant::ALL.iter().any(|its| format!("{its:?}") == name);
        let known = seen.is_some_and(|names| names.split(", ").all(is_known));
        assert!(known, "{name} is to be seen as {second:?}");
        let changed: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
        let fits = |path: &&str| PLANTED_IN.iter().any(|folder| path.starts_with(folder));
        assert!(!changed.is_empty() && changed.iter().all(fits), "{name} changes {changed:?}");
    }
}

fn patches() -> Vec<PathBuf> {
    let folder = root().join("crates/sim/planted");
    let entries = fs::read_dir(folder).expect("the folder of planted bugs is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let patches: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "patch")).collect();
    assert!(!patches.is_empty(), "there is no patch");
    patches
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

//! What the corpus keeps, and every input that once failed, still holds.

use std::path::Path;

use pgweir_fuzz::{TARGETS, Target, corpus, target};

/// A file to replay instead of the corpus, in a folder that is called as the target is or with a
/// name that begins with it, as in `target/fuzz-failures/sql-0123456789abcdef`.
const INPUT: &str = "PGWEIR_FUZZ_INPUT";

#[test]
fn kept_inputs_hold() {
    if let Some(path) = std::env::var_os(INPUT) {
        let path = Path::new(&path);
        let target = target_of(path).unwrap_or_else(|| panic!("no target is named by {path:?}"));
        let input = std::fs::read(path).expect("the input can be read");
        return (target.run)(&input);
    }
    for target in TARGETS {
        let inputs = corpus::inputs(target.name).expect("each target has a corpus");
        assert!(!inputs.is_empty(), "the corpus of {} is empty", target.name);
        for (path, input) in inputs {
            // Shown only if it fails.
            println!("{}", path.display());
            (target.run)(&input);
        }
    }
}

#[test]
fn the_corpus_is_small_and_has_no_strangers() {
    let mut bytes = 0;
    let mut folders = 0;
    let root = corpus::folder("");
    for entry in root.read_dir().expect("the corpus is there") {
        let name = entry.expect("it can be read").file_name();
        let name = name.to_str().expect("a name of letters");
        assert!(target(name).is_some(), "corpus/{name} belongs to no target");
        let inputs = corpus::inputs(name).expect("it can be read");
        bytes += inputs.iter().map(|(_, input)| input.len()).sum::<usize>();
        folders += 1;
    }
    assert_eq!(folders, TARGETS.len());
    assert!(bytes < 300 * 1024, "the corpus has {bytes} bytes");
}

/// The programs of libFuzzer are a workspace of their own, which nothing here builds.
#[test]
fn each_target_has_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("it is there");
    let entries = folder.join("src/bin").read_dir().expect("it is there");
    for target in TARGETS {
        let program = folder.join(format!("src/bin/{}.rs", target.name));
        let text = std::fs::read_to_string(program).expect("each target has a program");
        assert!(text.contains(&format!("\"{}\"", target.name)), "{}: {text}", target.name);
        assert!(manifest.contains(&format!("name = \"{}\"\n", target.name)), "{}", target.name);
    }
    assert_eq!(entries.count(), TARGETS.len());
}

fn target_of(path: &Path) -> Option<Target> {
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let names = TARGETS.into_iter().filter(|target| {
        let rest = file.strip_prefix(target.name);
        folder == Some(target.name) || rest.is_some_and(|rest| rest.starts_with('-'))
    });
    names.max_by_key(|target| target.name.len())
}

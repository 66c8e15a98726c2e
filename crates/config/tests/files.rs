//! Every file in `tests/files` is a configuration with what has to be said about it, written
//! below the line that it is about: `#! key: message` is an error, `#? key: message` a warning,
//! and `#|` goes on with the message of the line before. Nothing else may be said.

use std::path::Path;

use pgweir_config::{Config, Problem};

#[test]
fn files_are_judged_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let mut files = 0;
    for entry in folder.read_dir().expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let (said, loaded) = match Config::load(&path) {
            Ok(config) => (config.warnings.into_iter().map(|warning| warning.0).collect(), true),
            Err(errors) => (errors.problems().to_vec(), false),
        };
        let mark = if loaded { "#?" } else { "#!" };
        assert_eq!(lines(&said, mark), expected(&text), "{}", path.display());
        files += 1;
    }
    assert!(files > 5, "the folder holds the files");
}

/// What the file asks for, a line each: where, the mark, and the message.
fn expected(text: &str) -> Vec<String> {
    let mut expected = Vec::<String>::new();
    let mut place = 0;
    for (n, line) in text.lines().enumerate() {
        let line = line.trim_start();
        match line.get(..3) {
            Some("#! " | "#? ") => expected.push(format!("{place} {line}")),
            Some("#| ") => {
                let last = expected.last_mut().expect("a message to go on with");
                last.push_str(&line[2..]);
            }
            _ => place = n + 1,
        }
    }
    expected.sort();
    expected
}

fn lines(said: &[Problem], mark: &str) -> Vec<String> {
    let line = |problem: &Problem| {
        let place = problem.line.unwrap_or_default();
        let key = if problem.key.is_empty() { String::new() } else { problem.key.clone() + ": " };
        format!("{place} {mark} {key}{}", problem.message)
    };
    let mut lines: Vec<_> = said.iter().map(line).collect();
    lines.sort();
    lines
}

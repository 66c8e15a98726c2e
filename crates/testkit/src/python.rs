use std::{path::Path, process::Command};

/// The command for a Python that has psycopg 3: the one of the virtual environment in the
/// project's root, which `make deps` builds.
///
/// # Panics
/// When it was not built.
#[must_use]
pub fn python() -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join(".venv/bin/python");
    assert!(program.is_file(), "{program:?} is missing: run `make deps` once");
    Command::new(program)
}

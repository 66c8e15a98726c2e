//! The inputs that are kept: `corpus/TARGET/NAME`, small files of one input each.
//!
//! Those with a name that says what they are were made by `examples/seeds.rs`; those named by a
//! hash were found by libFuzzer to reach code that no other does, or to have failed once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the inputs of a target lie.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a target with their files, in the order of their names.
pub fn inputs(target: &str) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder(target))? {
        paths.push(entry?.path());
    }
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).map(|input| (path, input))).collect()
}

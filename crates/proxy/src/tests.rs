//! What tests of several files need: which rare paths were taken, and a process for themselves.

use std::cell::RefCell;
use std::process::Command;

use pgweir_engine::{Mark, Marks};

/// Says that this process is a test's own.
const ALONE: &str = "PGWEIR_ALONE";

thread_local! {
    static TAKEN: RefCell<Marks> = RefCell::default();
}

/// What another test on this thread has counted is none of this one's.
pub(crate) fn begin() {
    Marks::take();
    TAKEN.take();
}

/// How often a rare path was taken since this test has begun.
pub(crate) fn times(mark: Mark) -> u64 {
    TAKEN.with_borrow_mut(|taken| {
        taken.add(&Marks::take());
        taken.times(mark)
    })
}

/// Whether it was.
pub(crate) fn took(mark: Mark) -> bool {
    times(mark) > 0
}

/// Runs a test in a process of its own, for it takes away what others need. `name`: that of the
/// test, which calls this and nothing else.
pub(crate) fn alone(name: &str, test: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let program = std::env::current_exe().expect("a program");
    let run = Command::new(program).args(["--exact", name]).env(ALONE, "yes").output();
    let run = run.expect("it runs");
    let said = [run.stdout, run.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

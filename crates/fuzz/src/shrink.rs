use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use crate::Target;

/// Attempts to make an input smaller; one that takes them all is small enough to be read.
const ATTEMPTS: usize = 5_000;

/// An input that fails too, and of which no byte can be left out.
///
/// While it runs, no panic of the process is printed.
pub fn shrink(target: Target, input: &[u8]) -> Vec<u8> {
    let print = take_hook();
    set_hook(Box::new(|_| {}));
    let mut input = input.to_vec();
    let mut left = ATTEMPTS;
    let mut length = input.len().div_ceil(2);
    while length > 0 && left > 0 {
        let before = input.len();
        let mut at = 0;
        while at < input.len() && left > 0 {
            let mut shorter = input.clone();
            shorter.drain(at..input.len().min(at + length));
            left -= 1;
            if fails(target, &shorter) {
                input = shorter;
            } else {
                at += length;
            }
        }
        // At the end as long as single bytes go: each may let another one go.
        if length > 1 || input.len() == before {
            length /= 2;
        }
    }
    set_hook(print);
    input
}

/// Whether a target does not hold for an input.
pub fn fails(target: Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err()
}

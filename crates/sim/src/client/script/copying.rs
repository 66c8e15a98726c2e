use pgweir_wire::frontend;

use crate::language::Tag;
use crate::random::Dice;

/// A COPY whose data are to be sent.
pub(super) struct Copying {
    pub(super) tag: Tag,
    pub(super) extended: bool,
    /// It sends a Sync in front of them.
    pub(super) syncs: bool,
    /// How likely each part of them is to be long.
    pub(super) much: f64,
    pub(super) dice: Dice,
}

impl Copying {
    /// The data, and their end.
    pub(super) fn go_on(mut self, out: &mut Vec<u8>) {
        let Self { tag, extended, syncs, much, dice } = &mut self;
        if *syncs {
            // As good as nothing, while the server reads data.
            out.extend_from_slice(&frontend::SYNC);
        }
        for _ in 0..dice.below(5) {
            let (is_long, bytes) = (dice.chance(*much), dice.between(1..=120_000) as usize);
            let bytes = if is_long { bytes } else { 1 };
            let data = format!("{tag}{}", " ".repeat(bytes));
            frontend::write_copy_data(out, data.as_bytes());
        }
        if dice.chance(0.15) {
            frontend::write_copy_fail(out, b"no more");
        } else {
            out.extend_from_slice(&frontend::COPY_DONE);
        }
        if *extended {
            out.extend_from_slice(&frontend::SYNC);
        }
    }
}

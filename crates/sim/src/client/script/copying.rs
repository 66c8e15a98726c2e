use pgweir_wire::frontend;

use super::Script;
use crate::language::{Statement, Tag, Verb};
use crate::random::Dice;

/// A COPY whose data are to be sent.
pub(super) struct Copying {
    pub(super) tag: Tag,
    pub(super) extended: bool,
    /// It sends a Sync in front of them.
    pub(super) syncs: bool,
    /// It sends a Query instead, which is the end of the session where data are read.
    pub(super) strays: bool,
    /// How likely each part of them is to be long.
    pub(super) much: f64,
    pub(super) dice: Dice,
}

impl Copying {
    /// The data, and their end.
    pub(super) fn go_on(mut self, out: &mut Vec<u8>) {
        let Self { tag, extended, syncs, much, dice, strays: _ } = &mut self;
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

impl Script {
    /// A COPY in either protocol, with its data right behind it or as soon as they are wanted.
    pub(super) fn copy(&mut self, out: &mut Vec<u8>, dice: &mut Dice) {
        // Few that are in bulk are to be read to their end.
        let (fails, most) = if self.habits.bulk { (0.5, 2) } else { (0.2, 4) };
        let mut fails_at = dice.chance(fails).then(|| dice.below(most) as u32);
        let extended = dice.chance(self.habits.extended);
        let strays = dice.chance(self.habits.abandons);
        // As libpq does it: a Sync that counts only if there is no COPY. What stands behind it
        // should be data, or nobody knows what it was.
        let synced = dice.chance(0.5) && extended && !strays;
        if extended && self.habits.pipelines > 0.0 {
            // Whether that Sync was read before the COPY failed would be anybody's guess. And so
            // would that of a later unit be, if the one that makes another statement is refused.
            fails_at = fails_at.map(|at| at.max(1));
        }
        self.doubted |= synced && fails_at == Some(0);
        // A Sync that may have been taken for data keeps the server.
        self.pinned |= extended;
        let tag = self.tag();
        let text = Statement { tag, verb: Verb::CopyIn { fails_at } }.to_string();
        // Not to be executed again, where no data would follow.
        self.unnamed = false;
        if extended {
            frontend::write_parse(out, b"", text.as_bytes(), &[25]);
            let tag = tag.to_string();
            frontend::write_bind(out, b"", b"", &[Some(tag.as_bytes())]);
            frontend::write_execute(out, b"", 0);
            if synced {
                out.extend_from_slice(&frontend::SYNC);
            }
        } else {
            frontend::write_query(out, text.as_bytes());
        }
        let much = match (self.habits.bulk, self.habits.copies > 0.1) {
            (true, _) => 0.6,
            (false, true) => 0.08,
            (false, false) => 0.02,
        };
        // Few bulk copies are waited for.
        self.hasty = dice.chance(0.2) && self.habits.bulk;
        let syncs = dice.chance(0.1) && extended && self.habits.pipelines == 0.0;
        self.doubted |= syncs;
        let copying = Copying { tag, extended, syncs, strays, much, dice: dice.fork() };
        if dice.chance(if self.habits.bulk { 0.6 } else { 0.3 }) && !strays {
            return copying.go_on(out);
        }
        if extended {
            out.extend_from_slice(&frontend::FLUSH);
        }
        self.copying = Some(copying);
    }
}

//! Units that may share a server, one right behind the other.

use pgweir_wire::frontend;

use super::Script;
use crate::language::{Statement, Tag, Verb};
use crate::random::Dice;

/// Microseconds that are thought between two of them, at most.
pub(super) const THINKS_US: u64 = 2_000;

impl Script {
    /// One statement by itself that is closed, by one protocol or the other.
    pub(super) fn share(&mut self, out: &mut Vec<u8>, dice: &mut Dice) {
        let statement = Statement { tag: self.closed_tag(), verb: closed(dice) };
        let text = statement.to_string();
        self.unnamed = dice.chance(0.4);
        if !self.unnamed {
            return frontend::write_query(out, text.as_bytes());
        }
        frontend::write_parse(out, b"", text.as_bytes(), &[25]);
        let execution = self.closed_tag().to_string();
        frontend::write_bind(out, b"", b"", &[Some(execution.as_bytes())]);
        if dice.chance(0.4) {
            frontend::write_describe(out, frontend::Target::Portal(b""));
        }
        frontend::write_execute(out, b"", 0);
        out.extend_from_slice(&frontend::SYNC);
    }

    fn closed_tag(&mut self) -> Tag {
        loop {
            let tag = self.tag();
            if tag.is_closed() {
                return tag;
            }
        }
    }
}

/// What most applications do, and now and then something slow, long or wrong.
fn closed(dice: &mut Dice) -> Verb {
    match dice.weighted(&[(30, 0), (15, 1), (4, 2), (1, 3), (1, 4), (1, 5)]) {
        0 => Verb::Rows(dice.weighted(&[(1, 0), (8, 1), (4, 3), (1, 40)])),
        1 => Verb::Write,
        2 => Verb::Lock { key: dice.below(3) as u32, session: false },
        3 => Verb::Sleep(dice.magnitude(200) as u32),
        4 => Verb::Big(dice.magnitude(100_000) as u32),
        _ => Verb::Fail,
    }
}

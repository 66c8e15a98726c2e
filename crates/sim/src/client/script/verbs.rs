//! What clients say, some more often than others.

use super::Way;
use crate::language::{Keep, Kind, Statement, Tag, Verb};
use crate::random::Dice;
use crate::session::HASTY;

/// A statement that only means something in a transaction block.
pub(super) fn in_block(dice: &mut Dice) -> Verb {
    let name = pick(dice, &["s0", "s1"]);
    match dice.weighted(&[(4, 0), (3, 1), (2, 2), (2, 3)]) {
        0 => Verb::Savepoint { name },
        1 => Verb::RollbackTo { name },
        2 => Verb::Release { name },
        _ => {
            let value = pick(dice, &["Asia/Tokyo", "UTC"]);
            Verb::Set { name: "TimeZone".to_owned(), value, local: true }
        }
    }
}

/// A statement that changes settings, or looks at one.
pub(super) fn setting(way: Way, dice: &mut Dice) -> Verb {
    let names = ["TimeZone", "DateStyle", "application_name", "sim.a", "statement_timeout"];
    let name = pick(dice, &names);
    let values: &[&str] = match name.as_str() {
        "TimeZone" => &["Asia/Tokyo", "Europe/Berlin", "GMT"],
        "DateStyle" => &["German", "ISO"],
        "statement_timeout" => &[HASTY, "1h"],
        _ => &["1", "2"],
    };
    let resets = if way == Way::Extended { 0 } else { 1 };
    match dice.weighted(&[(4, 0), (3, 1), (2 * resets, 2), (resets, 3)]) {
        0 => Verb::Set { name, value: pick(dice, values), local: dice.chance(0.2) },
        1 => Verb::Show { name },
        2 => Verb::Reset { name: Some(name) },
        _ => Verb::Reset { name: None },
    }
}

/// A statement that leaves state in the session, or that looks at it.
pub(super) fn stateful(way: Way, dice: &mut Dice) -> Verb {
    let channel = pick(dice, &["a", "b"]);
    let cursor = pick(dice, &["k0", "k1"]);
    let prepared = pick(dice, &["q0", "q1"]);
    let key = dice.below(3) as u32;
    // What returns rows or does not, depending on the session, is not described.
    let kinds = if way == Way::Extended { 14 } else { 18 };
    match dice.below(kinds) {
        0 => Verb::Temp,
        1 => Verb::Listen { channel },
        2 => Verb::Notify { channel },
        3 => Verb::Unlisten { channel: dice.chance(0.7).then_some(channel) },
        4 => Verb::Keep(*dice.pick(&Keep::EACH)),
        5 => {
            let value = "Europe/Berlin".to_owned();
            Verb::Set { name: "TimeZone".to_owned(), value, local: false }
        }
        6 => {
            let value = dice.below(9).to_string();
            Verb::Set { name: "sim.a".to_owned(), value, local: dice.chance(0.3) }
        }
        7 => Verb::Reset { name: Some("sim.a".to_owned()) },
        8 => Verb::Lock { key, session: true },
        9 => Verb::Unlock { key },
        10 => Verb::Declare { name: cursor },
        11 => Verb::Prepare { name: prepared, rows: dice.chance(0.5).then_some(2) },
        12 => Verb::Deallocate { name: prepared },
        13 => Verb::Discard(*dice.pick(&[Kind::Plans, Kind::Sequences, Kind::Temp])),
        14 | 15 => Verb::Fetch { name: cursor },
        _ => Verb::Execute { name: prepared },
    }
}

/// One of the texts that many clients prepare.
pub(super) fn common_text(number: u32) -> String {
    let verb = if number == 0 { Verb::Write } else { Verb::Rows(number) };
    Statement { tag: Tag::common(number), verb }.to_string()
}

pub(super) fn pick(dice: &mut Dice, choices: &[&str]) -> String {
    (*dice.pick(choices)).to_owned()
}

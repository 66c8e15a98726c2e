use pgweir_config::PoolMode;

use super::{Farewell, PoolFacts, Script};
use crate::diet::{Diet, Sitting};
use crate::random::Dice;

/// What a client sends, unit by unit.
fn units(seed: u64, diet: &str) -> Vec<Vec<u8>> {
    let diet: Diet = diet.parse().expect("a diet");
    let sitting = Sitting { seat: 1, turn: 2 };
    let dice = Dice::new(seed);
    let facts = PoolFacts::draw(&mut Dice::new(0), "db0".to_owned(), "app", 0);
    let pool = PoolFacts { mode: PoolMode::Transaction, ..facts };
    let mut script = Script::new(0, &pool, true, &[], dice, &diet, sitting);
    let mut units = Vec::new();
    loop {
        let (mut bytes, farewell) = script.next();
        if script.copying.is_some() {
            bytes.extend(script.next().0);
        }
        units.push(bytes);
        if farewell != Farewell::None {
            return units;
        }
    }
}

#[test]
fn a_unit_that_is_left_out_changes_no_other() {
    for seed in 0..50 {
        let all = units(seed, "extended,copies");
        // An end that is glued to it stays.
        if all.len() > 3 {
            let less = units(seed, "extended,copies,unit.1.2.1");
            assert_eq!((&less[..1], &less[2..]), (&all[..1], &all[2..]));
            assert!(less[1].is_empty());
        }
        assert_eq!(units(seed, "unit.0.2.1"), units(seed, ""));
    }
}

#[test]
fn all_units_can_be_left_out() {
    for seed in 0..50 {
        let sent: usize = units(seed, "unit.1.2.0-200").iter().map(Vec::len).sum();
        // A Terminate is left, and perhaps a Sync that nobody reads.
        assert!(sent <= 10, "{sent}");
    }
}

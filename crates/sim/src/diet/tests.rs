use std::collections::BTreeSet;

use super::{Diet, Item, Sitting};
use crate::client::Habit;
use crate::configuration::Configuration;
use crate::faults::Faults;

fn diet(text: &str) -> Diet {
    text.parse().expect("a diet")
}

#[test]
fn a_diet_is_read_as_it_is_written() {
    for text in [
        "",
        "split,server_frozen.0-2,server_frozen.4,max_clients,query_wait_timeout,pipelines,ending",
        "worker.1-2,server.1,pool.0,seat.0-3,seat.5,client.4.0,unit.4.1.0,unit.4.1.2-9,unit.4.2.3",
    ] {
        assert_eq!(diet(text).to_string(), text);
    }
    assert_eq!(diet("seat.3,seat.1,split,seat.2").to_string(), "split,seat.1-3");
}

#[test]
fn what_is_not_known_is_refused() {
    for text in ["nothing", "seat", "seat.x", "seat.1.2", "split.1.2", "unit.1.2", "seat.1-"] {
        assert!(text.parse::<Diet>().is_err(), "{text}");
    }
}

#[test]
fn what_is_gone_anyway_is_not_mentioned() {
    let text = "split,server_frozen,server_frozen.1,seat.1,client.1.2,unit.1.0.3,client.2.0,\
                unit.2.0.1,unit.2.1.0";
    let fewer = "server_frozen,split,seat.1,client.2.0,unit.2.1.0";
    assert_eq!(diet(text).simplified(), diet(fewer));
}

#[test]
fn units_are_those_of_their_client() {
    let diet = diet("unit.0.1.9,unit.1.0.2-3,unit.1.1.0");
    let client = Sitting { seat: 1, turn: 0 };
    assert_eq!(diet.units_of(client), BTreeSet::from([2, 3]));
}

#[test]
fn no_two_things_have_one_name() {
    let mut names: Vec<&str> = Faults::NAMES.to_vec();
    names.extend(Configuration::optional());
    names.extend(Habit::ALL.map(Habit::name));
    let count = names.len();
    assert_eq!(names.into_iter().collect::<BTreeSet<_>>().len(), count);
}

#[test]
fn the_command_says_what_there_is_to_say() {
    let mut diet = diet("split");
    diet.storm_ms = Some(500);
    assert_eq!(diet.command(7), "make sim SEED=7 WITHOUT=split STORM_MS=500");
    assert_eq!(Diet::default().command(7), "make sim SEED=7");
    assert!(diet.lacks(Item::Fault("split")));
}

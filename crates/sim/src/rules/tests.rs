use super::Rules;
use crate::configuration::Configuration;
use crate::random::Dice;
use crate::topology::Topology;

/// Configurations from second 0, 10 and 20 on, with these limits.
fn rules(limits: [Option<u64>; 3]) -> Rules {
    let mut dice = Dice::new(1);
    let topology = Topology::draw(&mut dice);
    let mut with = |limit| {
        let mut configuration = topology.configuration(&mut dice);
        configuration.limits.clients = limit;
        configuration
    };
    let mut rules = Rules::new(with(limits[0]));
    rules.replace(10, with(limits[1]));
    rules.replace(20, with(limits[2]));
    rules
}

fn clients(configuration: &Configuration) -> Option<u64> {
    configuration.limits.clients
}

#[test]
fn what_holds_is_what_was_in_force_since() {
    let rules = rules([Some(1), Some(7), Some(5)]);
    assert_eq!((rules.least(5, clients), rules.most(5, clients)), (Some(1), Some(7)));
    assert_eq!((rules.least(15, clients), rules.most(15, clients)), (Some(5), Some(7)));
    assert_eq!((rules.least(25, clients), rules.most(25, clients)), (Some(5), Some(5)));
    assert_eq!(rules.current().limits.clients, Some(5));
}

/// What happens at the very time of a change may have happened before it.
#[test]
fn at_the_time_of_a_change_both_hold() {
    let rules = rules([Some(1), Some(7), Some(5)]);
    assert_eq!((rules.least(10, clients), rules.most(20, clients)), (Some(1), Some(7)));
}

#[test]
fn without_a_limit_there_is_no_longest() {
    let rules = rules([Some(1), None, Some(5)]);
    assert_eq!((rules.least(15, clients), rules.most(15, clients)), (Some(5), None));
    assert_eq!(rules.most(25, clients), Some(5));
}

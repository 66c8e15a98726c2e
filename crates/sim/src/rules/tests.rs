use super::Rules;
use crate::configuration::Configuration;
use crate::diet::Diet;
use crate::random::Dice;
use crate::topology::Topology;

/// Configurations from microsecond 0, 10 and 20 on, with these limits, that one worker reads at
/// once.
fn rules(limits: [Option<u64>; 3]) -> Rules {
    let mut dice = Dice::new(1);
    let topology = Topology::draw(&mut dice, &Diet::default());
    let mut with = |limit| {
        let mut configuration = topology.configuration(&mut dice);
        configuration.limits.clients = limit;
        configuration
    };
    let mut rules = Rules::new(1, with(limits[0]));
    for (at, limit) in [(10, limits[1]), (20, limits[2])] {
        rules.replace(with(limit));
        rules.read_by(0, at);
    }
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

/// One of two workers may still go by what the other has replaced.
#[test]
fn one_holds_until_all_workers_have_read_the_next() {
    let mut rules = rules([Some(9), Some(9), Some(1)]);
    rules.read.push(2);
    let mut next = rules.current().clone();
    next.limits.clients = Some(7);
    rules.replace(next);
    rules.read_by(1, 30);
    assert_eq!((rules.least(40, clients), rules.most(40, clients)), (Some(1), Some(7)));
    rules.read_by(0, 50);
    assert_eq!((rules.least(50, clients), rules.most(50, clients)), (Some(1), Some(7)));
    assert_eq!((rules.least(51, clients), rules.most(51, clients)), (Some(7), Some(7)));
}

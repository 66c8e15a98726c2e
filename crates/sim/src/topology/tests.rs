use super::{Ending, Topology};
use crate::configuration::{Configuration, Pool};
use crate::diet::Diet;
use crate::random::Dice;

fn draw(seed: u64, diet: &str) -> Topology {
    Topology::draw(&mut Dice::new(seed), &diet.parse::<Diet>().expect("a diet"))
}

fn configuration(topology: &Topology) -> Configuration {
    topology.configuration(&mut Dice::new(1))
}

/// What there is to know of a pool, apart from where it is.
fn facts(pool: &Pool) -> impl PartialEq + std::fmt::Debug {
    // The first one is always there.
    Pool { cluster: 0, here: true, ..pool.clone() }
}

#[test]
fn what_is_left_is_what_it_was() {
    for seed in 0..100 {
        let (all, less) = (draw(seed, ""), draw(seed, "worker.1-2,server.1,pool.0,ending"));
        assert_eq!((less.workers, less.clusters, less.ending), (1, 1, Ending::None));
        assert_eq!((less.seats, less.turns), (all.seats, all.turns));
        let (before, after) = (configuration(&all), configuration(&less));
        assert_eq!((after.limits, after.times), (before.limits, before.times));
        let all_before: Vec<_> = before.pools.iter().map(facts).collect();
        assert!(after.pools.iter().all(|pool| all_before.contains(&facts(pool))));
        assert!(all.pools.len() == 1 || less.pools.len() == all.pools.len() - 1);
        assert!(less.pools.iter().all(|pool| after.pools[pool.draft].usual == pool.mode));
    }
}

#[test]
fn clients_ask_for_the_pool_that_they_asked_for_if_it_is_there() {
    for seed in 0..100 {
        let (all, less) = (draw(seed, ""), draw(seed, "pool.0-1"));
        let home = |topology: &Topology, seed| {
            topology.pools[topology.draw_pool(&mut Dice::new(seed))].home()
        };
        for client in 0..20 {
            let (wanted, asked) = (home(&all, client), home(&less, client));
            let is_left = less.pools.iter().any(|pool| pool.home() == wanted);
            assert!(!is_left || asked == wanted);
        }
    }
}

#[test]
fn limits_that_are_taken_away_are_gone() {
    let names: Vec<_> = Configuration::optional().collect();
    let diet = names.join(",");
    for seed in 0..100 {
        let (before, after) = (configuration(&draw(seed, "")), configuration(&draw(seed, &diet)));
        assert!(names.iter().all(|name| !after.has(name)));
        assert_eq!(before.pools.len(), after.pools.len());
        assert!(after.plan().is_ok());
    }
    let drawn = |seed| draw(seed, "").configuration(&mut Dice::new(seed));
    let before: Vec<_> = (0..100).map(drawn).collect();
    assert!(names.iter().all(|name| before.iter().any(|its| its.has(name))));
}

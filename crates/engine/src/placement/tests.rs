use std::path::Path;

use pgweir_config::Config;

use crate::placement::{Placement, home_of_wild};
use crate::plan::Plan;

/// Where each pool of a configuration lives.
fn homes(placement: &mut Placement, pools: &str) -> Vec<(String, usize)> {
    let text = format!("config_version = 1\n[general]\nport = 6432\n{pools}");
    let config = Config::parse(&text, Path::new("test")).expect("the configuration is right");
    let mut plan = Plan::new(&config, "0", [1; 32]).expect("the secrets are usable");
    placement.place(&mut plan);
    plan.specs_mut().iter().map(|spec| (spec.database.clone(), spec.home)).collect()
}

fn pool(name: &str, size: u32) -> String {
    format!(
        "[pools.{name}.users.0]\nusername = \"u\"\npassword = \"p\"\npool_size = {size}\n\
         [pools.{name}.shards.0]\nservers = [[\"127.0.0.1\", 5432, \"primary\"]]\n\
         database = \"d\"\n"
    )
}

fn named(homes: &[(&str, usize)]) -> Vec<(String, usize)> {
    homes.iter().map(|(name, home)| ((*name).to_owned(), *home)).collect()
}

#[test]
fn pools_go_where_the_fewest_servers_are() {
    let mut placement = Placement::new(2);
    let pools = [pool("a", 10), pool("b", 4), pool("c", 4), pool("d", 5)].concat();
    let expected = named(&[("a", 0), ("b", 1), ("c", 1), ("d", 1)]);
    assert_eq!(homes(&mut placement, &pools), expected);
}

/// Its clients and servers are there.
#[test]
fn a_pool_stays_where_it_is() {
    let mut placement = Placement::new(2);
    homes(&mut placement, &[pool("b", 4), pool("c", 4)].concat());
    let pools = [pool("a", 10), pool("b", 4), pool("c", 40)].concat();
    assert_eq!(homes(&mut placement, &pools), named(&[("a", 0), ("b", 0), ("c", 1)]));
}

/// A database that clients have used before it was named has a pool already.
#[test]
fn a_pool_that_is_named_now_stays_where_it_was_made() {
    let mut placement = Placement::new(3);
    homes(&mut placement, &pool("\"*\"", 4));
    for name in ["shop", "blog", "wiki", "mail"] {
        let pools = [pool("\"*\"", 4), pool(name, 4)].concat();
        let home = home_of_wild(name, "u", 3);
        assert_eq!(homes(&mut placement, &pools), named(&[(name, home)]));
    }
}

#[test]
fn names_are_spread_over_all_workers() {
    for workers in 1..=7 {
        let mut counts = vec![0; workers];
        for n in 0..700 {
            counts[home_of_wild(&format!("tenant_{n}"), "app", workers)] += 1;
        }
        let fair = 700 / workers;
        assert!(counts.iter().all(|count| *count > fair / 2), "{counts:?}");
    }
}

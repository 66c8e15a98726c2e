use std::path::Path;

use pgweir_config::{Config, Role, Room};

use super::text;
use crate::ask::Told;
use crate::cli::Listen;
use crate::{quick, url};

/// What is written for a server with these connections and databases, and what it is read as.
fn written(url: &str, room: (u32, u32), in_recovery: bool, databases: &[&str]) -> (String, Config) {
    let url = url::read(url).unwrap_or_else(|error| panic!("{error}"));
    let usual = quick::config(&url, &Listen::default()).unwrap_or_else(|error| panic!("{error}"));
    let usual = usual.config;
    let told = Told {
        version: "17.2".to_owned(),
        room: Room { connections_max: room.0, reserved: room.1 },
        in_recovery,
        databases: databases.iter().map(|name| (*name).to_owned()).collect(),
    };
    let text = text(&url, &usual, &told);
    let config = read(&text);
    (text, config)
}

fn read(text: &str) -> Config {
    let config = Config::parse(text, Path::new("pgweir.toml"));
    let config = config.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    assert_eq!(config.warnings, [], "{text}");
    config
}

#[test]
fn the_pool_takes_half_of_the_room_and_no_more_than_usual() {
    let cases = [((100, 3), 20), ((30, 3), 13), ((13, 3), 5), ((4, 3), 1), ((3, 3), 1)];
    for (room, expected) in cases {
        let (text, config) = written("postgres://app:secret@db/shop", room, false, &[]);
        assert_eq!(config.pools[0].users[0].pool_size, expected, "{text}");
        let why = format!("It allows {} (max_connections)", room.0);
        assert!(text.contains(&why) && text.contains("PostgreSQL 17.2"), "{text}");
    }
}

#[test]
fn a_replica_is_written_down_as_one() {
    for (in_recovery, role) in [(true, Role::Replica), (false, Role::Primary)] {
        let (_, config) = written("postgres://app:secret@db/shop", (100, 3), in_recovery, &[]);
        assert_eq!(config.pools[0].shards[0].servers[0].role, role);
    }
}

#[test]
fn other_databases_are_commented_out_and_can_be_used() {
    let databases = ["postgres", "shop", "pgbouncer", "my \"odd\"\nname"];
    let (text, config) = written("postgres://a%0Ab:p%0Aw@db/shop", (100, 3), false, &databases);
    assert_eq!(config.pools.len(), 1);
    let (head, others) = text.split_once("# Other databases").expect("there are some");
    let sections = others.split_once("\n\n").map_or("", |(_, sections)| sections);
    let sections = sections.lines().map(|line| line.trim_start_matches('#').trim_start());
    let all = read(&format!("{head}{}", sections.collect::<Vec<_>>().join("\n")));
    let names: Vec<_> = all.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["my \"odd\"\nname", "postgres", "shop"]);
    for pool in &all.pools {
        assert_eq!(pool.users, config.pools[0].users);
        assert_eq!(pool.shards[0].servers, config.pools[0].shards[0].servers);
    }
}

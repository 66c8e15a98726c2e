//! Sums over all pools that lead to a server, and what limits them.

use std::path::Path;

use crate::{Binding, Config, Demand, Limit, Most, Room};

const FILE: &str = r#"
config_version = 1
[general]
GENERAL
[pools.a]
POOL
[pools.a.users]
0 = { username = "alice", password = "x", pool_size = 5 }
1 = { username = "bob", password = "x", pool_size = 7 }
[pools.a.shards.0]
servers = [["db1", 5432, "primary"], ["db2", 5432, "replica"]]
database = "a"

[pools.b.users.0]
username = "alice"
password = "x"
[pools.b.shards.0]
servers = [["db1", 5432, "replica"]]
database = "b"

[pools.c.users.0]
username = "alice"
password = "x"
pool_size = 1
reserve_pool_size = 2
[pools.c.shards.0]
servers = [["db1", 5433, "primary"]]
database = "a"
"#;

/// A pool for the databases that have none.
const ANY: &str = r#"
[pools."*".users.0]
username = "alice"
password = "x"
pool_size = 4
[pools."*".shards.0]
servers = [["db1", 5432, "primary"]]
database = "*"
"#;

const ROOM: Room = Room { connections_max: 100, reserved: 3 };

fn demands(general: &str, pool: &str, more: &str) -> Vec<Demand> {
    let text = FILE.replace("GENERAL", general).replace("POOL", pool) + more;
    Config::parse(&text, Path::new("f.toml")).unwrap_or_else(|e| panic!("{e}")).demands()
}

/// Of the server that two pools lead to.
fn first(general: &str, pool: &str, more: &str) -> Demand {
    demands(general, pool, more).swap_remove(0)
}

fn most(connections: impl Into<Option<u64>>, binding: impl Into<Option<Binding>>) -> Most {
    Most { connections: connections.into(), binding: binding.into() }
}

#[test]
fn a_server_is_counted_once_for_each_user_of_each_pool() {
    let limit = Limit::OfRoom { instances: 1 };
    let demand = |host: &str, port, sum| {
        let host = host.to_owned();
        let sum = Some(sum);
        Demand { host, port, of_pools: sum, of_databases: sum, of_users: sum, limit }
    };
    // 20 is the default of our own dialect. The replica is not used yet.
    let expected =
        [demand("db1", 5432, 5 + 7 + 20), demand("db1", 5433, 1 + 2), demand("db2", 5432, 0)];
    assert_eq!(demands("", "", ""), expected);
}

#[test]
fn the_limits_of_databases_and_users_count() {
    let of = |general, pool| first(general, pool, "").most(None);
    assert_eq!(of("", ""), most(32, Binding::PoolSize));
    assert_eq!(of("", "max_db_connections = 9"), most(9 + 20, Binding::MaxDbConnections));
    assert_eq!(of("max_db_connections = 9", ""), most(9 + 9, Binding::MaxDbConnections));
    assert_eq!(of("max_db_connections = 20", ""), most(32, Binding::PoolSize));
    assert_eq!(of("max_user_connections = 6", ""), most(6 + 6, Binding::MaxUserConnections));
    assert_eq!(of("max_user_connections = 10", ""), most(10 + 7, Binding::MaxUserConnections));
    let both = "max_user_connections = 10\nmax_db_connections = 5";
    assert_eq!(of(both, ""), most(5 + 5, Binding::MaxDbConnections));
    let all = "max_user_connections = 6\nmax_db_connections = 6\nmax_server_connections = 3";
    assert_eq!(of(all, ""), most(3, Binding::MaxServerConnections));
}

#[test]
fn a_pool_for_any_database_has_no_limit_of_its_own() {
    let of = |general| first(general, "", ANY);
    let unlimited = of("max_db_connections = 2");
    assert_eq!(
        (unlimited.of_pools, unlimited.of_databases, unlimited.of_users),
        (None, None, None)
    );
    assert_eq!(unlimited.most(None), most(None, None));
    let users = of("max_user_connections = 50");
    assert_eq!(users.most(None), most(50 + 7, Binding::MaxUserConnections));
    let limit = of("max_server_connections = 70");
    assert_eq!(limit.most(None), most(70, Binding::MaxServerConnections));
    // Nothing else is led astray by it.
    let others = demands("", "", ANY);
    assert_eq!(others[1].most(None), most(3, Binding::PoolSize));

    assert_eq!(unlimited.most(Some(ROOM)), most(87, Binding::MaxServerConnections));
    let pgcat = Demand { limit: Limit::None, ..unlimited };
    assert_eq!(pgcat.most(Some(ROOM)), most(None, Binding::MaxConnections));
    assert!(!pgcat.fits(ROOM));
}

#[test]
fn the_lower_limit_binds() {
    let limited = |sum, limit| {
        let host = "db".to_owned();
        let sum = Some(sum);
        Demand { host, port: 1, of_pools: sum, of_databases: sum, of_users: sum, limit }
    };
    let demand = |sum| limited(sum, Limit::None);
    let bound = |sum, limit| limited(sum, limit).most(Some(ROOM));
    assert_eq!(ROOM.free(), 97);
    assert!(demand(97).fits(ROOM) && !demand(98).fits(ROOM));
    assert_eq!(bound(97, Limit::None), most(97, Binding::PoolSize));
    assert_eq!(bound(98, Limit::None), most(98, Binding::MaxConnections));
    assert_eq!(bound(98, Limit::Set(97)), most(97, Binding::MaxServerConnections));
    assert_eq!(bound(99, Limit::Set(98)), most(98, Binding::MaxConnections));
    assert_eq!(bound(50, Limit::Set(98)), most(50, Binding::PoolSize));
    let of_room = Limit::OfRoom { instances: 2 };
    assert_eq!(bound(98, of_room), most(43, Binding::MaxServerConnections));
    assert_eq!(limited(98, of_room).most(None), most(98, Binding::PoolSize));
    assert_eq!(Room { connections_max: 1, reserved: 3 }.free(), 0);
    assert_eq!(Room { connections_max: 4, reserved: 3 }.part(2), 1);
}

/// The names are those that files and PostgreSQL have for them.
#[test]
fn a_limit_is_named_like_its_setting() {
    let ours = [
        Binding::PoolSize,
        Binding::MaxDbConnections,
        Binding::MaxUserConnections,
        Binding::MaxServerConnections,
    ];
    for binding in ours {
        assert!(crate::SETTINGS.iter().any(|it| it.name == binding.name()), "{binding:?}");
    }
    assert_eq!(Binding::MaxConnections.name(), "max_connections");
}

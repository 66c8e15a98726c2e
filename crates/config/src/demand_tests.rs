//! Sums over all pools that lead to a server.

use std::path::Path;

use crate::{Config, Demand, Limit, Room};

const FILE: &str = r#"
config_version = 1
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
[pools.c.shards.0]
servers = [["db1", 5433, "primary"]]
database = "a"
"#;

#[test]
fn a_server_is_counted_once_for_each_user_of_each_pool() {
    let config = Config::parse(FILE, Path::new("f.toml")).unwrap_or_else(|e| panic!("{e}"));
    let limit = Limit::OfRoom { instances: 1 };
    let demand = |host: &str, port, connections_max| {
        let host = host.to_owned();
        Demand { host, port, connections_max, limit }
    };
    // 20 is the default of our own dialect. The replica is not used yet.
    let expected =
        [demand("db1", 5432, 5 + 7 + 20), demand("db1", 5433, 1), demand("db2", 5432, 0)];
    assert_eq!(config.demands(), expected);
}

#[test]
fn the_lower_limit_binds() {
    let limited = |connections_max, limit| {
        let host = "db".to_owned();
        Demand { host, port: 1, connections_max, limit }
    };
    let demand = |connections_max| limited(connections_max, Limit::None);
    let room = Room { connections_max: 100, reserved: 3 };
    assert_eq!(room.free(), 97);
    assert!(demand(97).fits(room) && !demand(98).fits(room));
    assert_eq!(demand(97).binding(room), "pool_size");
    assert_eq!(demand(98).binding(room), "max_connections");
    assert_eq!(limited(98, Limit::Set(97)).binding(room), "max_server_connections");
    assert_eq!(limited(98, Limit::Set(98)).binding(room), "max_connections");
    assert_eq!(limited(50, Limit::Set(98)).binding(room), "pool_size");
    let of_room = limited(98, Limit::OfRoom { instances: 2 });
    assert_eq!((of_room.most(room), of_room.binding(room)), (43, "max_server_connections"));
    assert_eq!(Room { connections_max: 1, reserved: 3 }.free(), 0);
    assert_eq!(Room { connections_max: 4, reserved: 3 }.part(2), 1);
}

//! Databases that the configuration does not name.

use std::time::Duration;

use crate::messages::{done, fatal, password, query, ready};
use crate::stage::{Setup, Stage};

/// The usual pool, and one for all other databases.
fn wild() -> Setup {
    Setup { others: &["\"*\""], ..Setup::default() }
}

/// Each database has a pool of its own, which leads to the database of that name.
#[test]
fn each_database_gets_a_pool_of_its_own() {
    let stage = Stage::new(&wild());
    let (alice, bob) = (stage.newcomer_to("north"), stage.newcomer_to("south"));
    for (client, database) in [(&alice, "north"), (&bob, "south")] {
        let (server, asked) = stage.bare_server_asked();
        assert!(asked.contains(&("database".to_owned(), database.to_owned())), "{asked:?}");
        server.says([stage.welcome(&server)]);
        assert!(client.is_greeted());
        client.says([query(database)]);
        assert_eq!(server.heard(), format!("Q({database})"));
        server.says([done(), ready()]);
    }
    let databases: Vec<_> =
        stage.snapshot().pools.iter().map(|pool| pool.database.clone()).collect();
    assert_eq!(databases, ["db", "north", "south"]);
}

/// Names that somebody tries would fill our memory.
#[test]
fn a_pool_that_nobody_needs_is_forgotten() {
    let stage = Stage::new(&wild());
    let alice = stage.newcomer_to("nowhere");
    let server = stage.bare_server();
    server.says([fatal("3D000")]);
    assert_eq!(alice.heard(), "R E(FATAL 3D000)");
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.snapshot().pools.len(), 1);
    let bob = stage.newcomer_to("north");
    let server = stage.server();
    assert!(bob.is_greeted());
    bob.breaks();
    stage.wait(Duration::from_secs(599));
    assert_eq!((server.is_open(), stage.snapshot().pools.len()), (true, 2));
    stage.wait(Duration::from_secs(2));
    stage.wait(Duration::from_millis(100));
    assert_eq!((server.heard().as_str(), stage.snapshot().pools.len()), ("X", 1));
}

/// Before its login nobody makes a pool, and the console's names are none.
#[test]
fn a_pool_is_made_for_those_who_may_use_it() {
    let stage = Stage::new(&Setup { auth: "password", ..wild() });
    let alice = stage.newcomer_to("north");
    alice.says([password("wrong")]);
    assert_eq!(alice.heard(), "R E(FATAL 28P01)");
    let bob = stage.newcomer_to("pgbouncer");
    bob.says([password("password")]);
    assert_eq!(bob.heard(), "R E(FATAL 28P01)");
    assert_eq!((stage.snapshot().pools.len(), stage.attempts()), (1, 0));
}

/// A reload goes for these pools, too; one that is named from then on keeps its clients.
#[test]
fn a_reload_changes_pools_that_it_does_not_name() {
    let elsewhere = || Setup { port: 5433, others_port: 5433, ..Setup::default() };
    let stage = Stage::new(&wild());
    let (alice, bob) = (stage.newcomer_to("north"), stage.newcomer_to("south"));
    let servers = [stage.server(), stage.server()];
    assert!(alice.is_greeted() && bob.is_greeted());
    stage.reload(&Setup { others: &["\"*\"", "north"], ..elsewhere() });
    assert!(servers.iter().all(|server| server.heard() == "X"));
    alice.says([query("a")]);
    assert_eq!(stage.server().heard(), "Q(a)");
    stage.reload(&Setup { others: &["north"], ..elsewhere() });
    assert_eq!((bob.heard().as_str(), alice.is_open()), ("E(FATAL 57P01)", true));
}

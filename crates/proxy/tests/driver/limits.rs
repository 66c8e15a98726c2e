//! How many connections there may be, of servers and of clients, and who gets those that there are.

use std::time::Duration;

use pgweir_config::Room;
use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    done, error, fatal, in_block, left, password, query, ready, room, startup, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// One connection to a server for two pools that could use two each.
fn shared(general: &'static str) -> Setup {
    Setup { size: 2, general, others: &["east"], ..Setup::default() }
}

/// A client of each pool; the one connection that they may have is the first one's, and idle.
fn neighbours(general: &'static str) -> (Stage, Peer, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&shared(general));
    let bob = stage.newcomer_to("east");
    // PostgreSQL counts a connection until it has gone, and so is it counted here.
    assert_eq!((server.heard().as_str(), stage.attempts()), ("X", 0));
    server.ends();
    let server = stage.server();
    assert!(bob.is_greeted());
    (stage, server, alice, bob)
}

/// A pool that holds what it does not need must not keep another from working.
#[test]
fn a_connection_that_is_idle_is_given_up_for_another_pool() {
    let (stage, server, alice, _bob) = neighbours("max_server_connections = 1");
    alice.says([query("SELECT")]);
    assert_eq!((server.heard().as_str(), stage.attempts()), ("X", 0));
    server.ends();
    let next = stage.server();
    assert_eq!(next.heard(), "Q(SELECT)");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

/// Whoever may wait for a server of its own pool does so for a moment.
#[test]
fn a_pool_that_has_a_server_takes_no_other_pools_at_once() {
    let (stage, first, alice) = Stage::ready(&shared("max_server_connections = 2"));
    let _bob = stage.newcomer_to("east");
    let second = stage.server();
    alice.says([query("slow")]);
    let carol = stage.client();
    carol.says([query("SELECT")]);
    assert_eq!((second.heard().as_str(), stage.attempts()), ("", 0));
    stage.wait(Duration::from_millis(100));
    assert_eq!(second.heard(), "X");
    assert_eq!(first.heard(), "Q(slow)");
}

/// A user has a limit over all databases just so.
#[test]
fn a_users_connections_are_limited_over_all_databases() {
    let (stage, server, alice, _bob) = neighbours("max_user_connections = 1");
    alice.says([query("SELECT")]);
    assert_eq!((server.heard().as_str(), stage.attempts()), ("X", 0));
}

/// A database's connections are limited over its users; here it has one.
#[test]
fn a_databases_connections_are_limited() {
    let (stage, _server, alice) = Stage::ready(&shared("max_db_connections = 1"));
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    assert_eq!(stage.attempts(), 0);
    let _carol = stage.newcomer_to("east");
    assert_eq!(stage.attempts(), 1, "another database has a limit of its own");
}

/// A pool that is never idle would starve the others: once it has had its way for a second, it
/// gives up a server when its client is done, in the middle of nothing.
#[test]
fn a_pool_that_is_always_busy_gives_a_connection_up_in_the_end() {
    let (stage, server, alice, bob) = neighbours("max_server_connections = 1");
    bob.says([query("bob")]);
    assert_eq!(server.heard(), "Q(bob)");
    alice.says([query("alice")]);
    stage.wait(Duration::from_millis(900));
    server.says([done(), in_block()]);
    bob.says([query("more")]);
    assert_eq!((bob.heard().as_str(), server.heard().as_str()), ("C Z(T)", "Q(more)"));
    stage.wait(Duration::from_millis(200));
    let carol = stage.newcomer_to("east");
    assert!(carol.is_greeted());
    carol.says([query("carol")]);
    assert_eq!(server.heard(), "", "a transaction is not broken off");
    server.says([done(), ready()]);
    assert_eq!((bob.heard().as_str(), server.heard().as_str()), ("C Z", "X"));
    server.ends();
    assert_eq!(stage.server().heard(), "Q(alice)");
}

/// A server that stays with its client is no connection that anybody could wait for.
#[test]
fn a_connection_is_not_awaited_from_a_client_that_keeps_it() {
    let setup = Setup { size: 2, general: "max_server_connections = 2", ..shared("") };
    let (stage, first, alice) = Stage::ready(&setup);
    alice.says([query("SELECT pg_advisory_lock(1)")]);
    first.says([done(), ready(), left("a")]);
    let bob = stage.client();
    bob.says([query("bob")]);
    let second = stage.server();
    let carol = stage.newcomer_to("east");
    stage.wait(Duration::from_millis(1_100));
    second.says([done(), ready()]);
    assert_eq!(
        (first.heard().as_str(), second.heard().as_str()),
        ("Q(SELECT pg_advisory_lock(1)) Q(left?)", "Q(bob) X")
    );
    second.ends();
    stage.server();
    assert!(carol.is_greeted());
}

/// Three pools share three connections. Two clients of one keep a server each, with a statement
/// that is answered so; carol, of the next, has the third, and that is given.
fn two_keep_theirs(statement: &str, answer: [Vec<u8>; 2]) -> (Stage, Peer, Peer) {
    let setup = Setup {
        general: "max_server_connections = 3\nmax_pinned = 'off'",
        others: &["east", "west"],
        ..Setup::of_size(2)
    };
    let (stage, first, alice) = Stage::ready(&setup);
    let bob = stage.client();
    alice.says([query(statement)]);
    bob.says([query(statement)]);
    let second = stage.server();
    for server in [&first, &second] {
        server.says(&answer);
    }
    let carol = stage.newcomer_to("east");
    let third = stage.server();
    assert!(carol.is_greeted());
    (stage, third, carol)
}

/// The pool with most connections was asked, and no other: where its clients keep them all, the
/// others kept theirs too, and whoever waited did so in vain.
#[test]
fn a_pool_whose_clients_keep_all_it_has_is_passed_over() {
    let (stage, third, carol) = two_keep_theirs("SELECT pg_advisory_lock(1)", [done(), ready()]);
    carol.says([query("carol")]);
    let dora = stage.newcomer_to("west");
    stage.wait(Duration::from_millis(1_100));
    third.says([done(), ready()]);
    assert_eq!(third.heard(), "Q(carol) X");
    third.ends();
    stage.server();
    assert!(dora.is_greeted());
}

/// One server was chosen to go, and nobody knew when it would come free: it is the next one that
/// does.
#[test]
fn the_next_connection_that_comes_free_is_given_up() {
    let general = "max_server_connections = 2";
    let (stage, first, alice) = Stage::ready(&Setup { size: 2, ..shared(general) });
    alice.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    let bob = stage.client();
    bob.says([query("bob")]);
    let second = stage.server();
    let carol = stage.newcomer_to("east");
    stage.wait(Duration::from_millis(1_100));
    second.says([done(), ready()]);
    assert_eq!(second.heard(), "Q(bob) X");
    second.ends();
    stage.server();
    assert!(carol.is_greeted());
    alice.says([query("COMMIT")]);
    first.says([done(), ready()]);
    assert!(first.is_open(), "one was enough");
}

/// A pool whose transactions take for ever would keep the whole limit, though others end theirs all
/// the time: those are asked when it has had its chance.
#[test]
fn any_pool_gives_a_connection_up_when_the_largest_one_does_not() {
    let (stage, third, carol) = two_keep_theirs("BEGIN", [done(), in_block()]);
    let dora = stage.newcomer_to("west");
    assert_eq!(third.heard(), "X", "it is idle");
    third.ends();
    let third = stage.server();
    assert!(dora.is_greeted());
    dora.says([query("dora")]);
    carol.says([query("carol")]);
    stage.wait(Duration::from_millis(1_100));
    third.says([done(), ready()]);
    dora.says([query("more")]);
    assert_eq!(third.heard(), "Q(dora) Q(more)", "the largest pool has a second");
    stage.wait(Duration::from_secs(1));
    third.says([done(), ready()]);
    assert_eq!(third.heard(), "X");
    third.ends();
    assert_eq!(stage.server().heard(), "Q(carol)");
}

/// Two pools that have about as much as each other would take it in turns to log in.
#[test]
fn a_pool_with_hardly_more_than_another_gives_nothing_up() {
    let cases = [
        (2, "max_server_connections = 3", "Q(slow)"),
        (3, "max_server_connections = 4", "Q(slow) X"),
    ];
    for (size, general, heard) in cases {
        let (stage, first, alice) = Stage::ready(&Setup { size, ..shared(general) });
        let more: Vec<_> = (1..size).map(|_| stage.client()).collect();
        let bob = stage.newcomer_to("east");
        let _his = stage.server();
        let carol = stage.newcomer_to("east");
        assert!(bob.is_greeted() && carol.is_greeted());
        for client in more.iter().chain([&alice, &bob, &carol]) {
            client.says([query("slow")]);
        }
        let _others: Vec<_> = more.iter().map(|_| stage.server()).collect();
        stage.wait(Duration::from_millis(1_100));
        first.says([done(), ready()]);
        assert_eq!(first.heard(), heard);
    }
}

/// A server that was told to go takes its time, and a second one would have gone for nothing.
#[test]
fn one_that_goes_is_enough_however_long_it_takes() {
    let (stage, first, alice) = Stage::ready(&shared("max_server_connections = 2"));
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("bob")]);
    let second = stage.server();
    second.says([done(), ready()]);
    let carol = stage.newcomer_to("east");
    assert_eq!(second.heard(), "Q(bob) X");
    stage.wait(Duration::from_millis(1_100));
    first.says([done(), ready()]);
    assert_eq!(first.heard(), "Q(slow)");
    second.ends();
    stage.server();
    assert!(carol.is_greeted());
}

/// Who has given up waiting is owed nothing: a connection would go for nobody.
#[test]
fn nothing_is_given_up_for_who_waits_no_more() {
    let (stage, server, alice, bob) = neighbours("max_server_connections = 1");
    bob.says([query("bob")]);
    alice.says([query("alice")]);
    stage.wait(Duration::from_millis(1_100));
    alice.breaks();
    stage.wait(Duration::from_millis(100));
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
}

/// What all are asked for was asked of those, too, that had nothing: the first connection that such
/// a pool got was closed as soon as it had logged in.
#[test]
fn a_pool_that_has_no_connection_owes_none() {
    let setup = Setup { others: &["east", "west"], ..shared("max_server_connections = 2") };
    let (stage, first, alice) = Stage::ready(&setup);
    let bob = stage.client();
    for client in [&alice, &bob] {
        client.says([query("slow")]);
    }
    let second = stage.server();
    let carol = stage.newcomer_to("east");
    stage.wait(Duration::from_millis(2_100));
    let dora = stage.newcomer_to("west");
    first.ends();
    second.ends();
    let _servers = [stage.server(), stage.server()];
    assert!(carol.is_greeted() && dora.is_greeted());
}

/// A client that asks without a pause leaves its server no moment in which nothing is under way.
#[test]
fn a_pipeline_is_interrupted_for_clients_of_other_pools() {
    let (stage, server, alice) = Stage::ready(&shared("max_server_connections = 1"));
    alice.says([query("1"), query("2")]);
    let bob = stage.newcomer_to("east");
    stage.wait(Duration::from_millis(1_100));
    alice.says([query("3")]);
    server.says([done(), ready(), done(), ready()]);
    assert_eq!(server.heard(), "Q(1) Q(2) X");
    server.ends();
    stage.server();
    assert!(bob.is_greeted());
}

/// A connection that goes to another pool's client, and comes back for one that has waited longer,
/// is two logins for nothing.
#[test]
fn a_connection_is_not_given_up_before_who_has_waited_longer() {
    let (stage, server, alice) = Stage::ready(&shared("max_server_connections = 1"));
    alice.says([query("slow")]);
    let bob = stage.client();
    bob.says([query("bob")]);
    stage.wait(Duration::from_millis(100));
    let carol = stage.newcomer_to("east");
    stage.wait(Duration::from_millis(1_100));
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(slow) Q(bob)");
    alice.says([query("again")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "X");
    server.ends();
    stage.server();
    assert!(carol.is_greeted());
}

/// The operator is shown what a server has room for, whatever limits its connections; it costs one
/// question.
#[test]
fn a_server_is_asked_once_what_it_has_room_for() {
    for general in ["", "max_server_connections = 4"] {
        let setup = Setup { others: &["east"], general, ..Setup::of_size(2) };
        let (stage, server, alice) = Stage::ready(&setup);
        let [limit] = &stage.snapshot().limits[..] else { panic!("one server") };
        assert_eq!(limit.room, Some(Room { connections_max: 100, reserved: 3 }), "{general}");
        alice.says([query("alice")]);
        assert_eq!(server.heard(), "Q(alice)");
        let _bob = stage.newcomer_to("east");
        let _second = stage.server();
        assert_eq!((stage.servers().len(), stage.rooms_told()), (2, 1), "{general}");
    }
}

/// Where nothing is made of the answer nobody else waits for it, and nobody makes a connection in
/// the place of one that is asked.
#[test]
fn a_question_whose_answer_limits_nothing_holds_up_nobody() {
    for general in ["", "max_server_connections = 4"] {
        let stage = Stage::new(&Setup { general, ..Setup::of_size(5) });
        stage.keep_rooms_untold();
        let [alice, bob] = [stage.newcomer(&[]), stage.newcomer(&[])];
        assert_eq!(stage.attempts(), 2, "{general}");
        let server = stage.server();
        assert!(server.heard().contains("max_connections"));
        assert_eq!(stage.attempts(), 1, "the one that is asked is on its way");
        server.says([error("42704"), ready()]);
        assert!(alice.is_greeted() && bob.is_greeted());
        alice.says([query("alice")]);
        assert_eq!(server.heard(), "Q(alice)");
        bob.says([query("bob")]);
        assert_eq!(stage.server().heard(), "Q(bob)", "it is not asked again");
    }
}

/// Of pools that want the same connection the one gets it that has waited longest.
#[test]
fn who_has_waited_longest_gets_what_is_free() {
    let setup = Setup {
        general: "max_server_connections = 1",
        others: &["east", "west"],
        ..Setup::default()
    };
    let (stage, server, alice) = Stage::ready(&setup);
    alice.says([query("alice")]);
    let west = stage.newcomer_to("west");
    stage.wait(Duration::from_millis(10));
    let _east = stage.newcomer_to("east");
    server.ends();
    stage.server();
    assert!(west.is_greeted());
}

/// The simulator's: a pool gave the connection that it had just made up for another one, and took
/// the turn to make the next itself, without end.
#[test]
fn the_turn_behind_an_attempt_is_theirs_who_have_waited_longest() {
    let general = "max_user_connections = 2\nconnect_parallelism = 1";
    let stage = Stage::new(&Setup { general, others: &["east"], ..Setup::of_size(2) });
    let first = stage.newcomer(&[]);
    let elders = [(); 2].map(|()| stage.newcomer_to("east"));
    first.breaks();
    stage.wait(Duration::from_millis(1));
    let last = stage.newcomer(&[]);
    assert_eq!(stage.attempts(), 1);
    stage.wait(Duration::from_millis(2_500));
    let server = stage.server();
    assert_eq!(server.heard(), "X", "it makes way");
    let (_, asked) = stage.bare_server_asked();
    let database = asked.iter().find(|(name, _)| name == "database").map(|(_, of)| of.as_str());
    assert_eq!(database, Some("east"));
    assert!(took(Mark::TurnOfElder));
    assert!(!last.is_greeted() && elders.iter().all(|elder| !elder.is_greeted()));
}

/// A server that is asked for too many connections at a time refuses some of them.
#[test]
fn so_many_connections_are_made_at_a_time() {
    let setup = Setup { general: "connect_parallelism = 2", ..Setup::of_size(5) };
    let (stage, _first, alice) = Stage::ready(&setup);
    alice.says([query("1")]);
    let others: Vec<_> = (2..5).map(|_| stage.client()).collect();
    others.iter().for_each(|client| client.says([query("more")]));
    assert_eq!(stage.attempts(), 2);
    assert_eq!(stage.server().heard(), "Q(more)");
    assert_eq!(stage.attempts(), 2, "the next one may be made now");
    stage.refuse_server();
    assert_eq!(stage.servers().len(), 3);
}

/// Pools of one server share that limit, and each server has its own.
#[test]
fn connections_made_at_a_time_are_those_of_a_server() {
    for (others_port, attempts) in [(5432, 1), (5433, 2)] {
        let general = "connect_parallelism = 1";
        let others = Setup { others: &["east"], others_port, ..Setup::default() };
        let stage = Stage::new(&Setup { general, ..others });
        let (alice, bob) = (stage.newcomer(&[]), stage.newcomer_to("east"));
        assert_eq!(stage.attempts(), attempts, "{others_port}");
        let _servers = [stage.server(), stage.server()];
        assert!(alice.is_greeted() && bob.is_greeted());
    }
}

/// The reserve is for those who have waited, and not for a burst.
#[test]
fn the_reserve_is_used_when_a_client_has_waited() {
    let setup = Setup {
        general: "reserve_pool_size = 1\nreserve_pool_timeout = 3000",
        ..Setup::of_size(1)
    };
    let (stage, server, alice) = Stage::ready(&setup);
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("bob")]);
    stage.wait(Duration::from_secs(2));
    assert_eq!(stage.attempts(), 0);
    stage.wait(Duration::from_secs(1));
    assert_eq!(stage.server().heard(), "Q(bob)");
    let carol = stage.client();
    carol.says([query("carol")]);
    stage.wait(Duration::from_secs(4));
    assert_eq!((stage.attempts(), server.heard().as_str()), (0, "Q(slow)"));
}

/// PgCat's two defaults are the same time: whoever waits behind the one that is sent away then
/// would be sent away just so, and the reserve used by nobody.
#[test]
fn a_reserve_that_opens_when_a_wait_is_over_is_for_those_behind() {
    let setup = Setup::with("reserve_pool_size = 1\nreserve_pool_timeout = 5000");
    let (stage, _server, alice) = Stage::ready(&setup);
    let [bob, carol] = [stage.client(), stage.client()];
    alice.says([query("slow")]);
    bob.says([query("bob")]);
    stage.wait(Duration::from_secs(2));
    carol.says([query("carol")]);
    stage.wait(Duration::from_millis(3_100));
    assert_eq!((bob.heard().as_str(), stage.attempts()), ("E(53300) Z", 1));
    assert_eq!(stage.server().heard(), "Q(carol)");
}

/// Connections are there before anybody asks, and are neither closed for being idle nor missed
/// when one is lost.
#[test]
fn the_smallest_size_is_kept() {
    let setup = Setup { user: "min_pool_size = 2", ..Setup::of_size(3) };
    let stage = Stage::new(&setup);
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.attempts(), 2);
    let servers = [stage.server(), stage.server()];
    stage.wait(Duration::from_secs(3_000));
    assert!(servers.iter().all(Peer::is_open));
    servers[0].ends();
    assert_eq!(stage.attempts(), 1);
    stage.refuse_server();
    assert_eq!(stage.attempts(), 0, "not again at once");
    stage.wait(Duration::from_secs(3));
    assert_eq!(stage.attempts(), 1);
}

/// The simulator's: a pool that keeps a connection for nobody starved its neighbour for ever.
#[test]
fn the_smallest_size_yields_to_clients_of_others() {
    let setup = Setup { user: "min_pool_size = 1", ..shared("max_server_connections = 1") };
    let stage = Stage::new(&setup);
    stage.wait(Duration::from_millis(100));
    let server = stage.server();
    let of_db = stage.snapshot().servers[0].pool.0 == "db";
    let (idle, waiting) = if of_db { ("db", "east") } else { ("east", "db") };
    let alice = stage.newcomer_to(waiting);
    assert_eq!((server.heard().as_str(), stage.attempts()), ("X", 0), "{idle} gives it up");
    server.ends();
    let next = stage.server();
    assert!(alice.is_greeted());
    for _ in 0..20 {
        stage.wait(Duration::from_secs(1));
    }
    assert!(next.is_open(), "and takes none away for nobody");
}

/// Nor is it touched where another pool has more than its own: who comes there would wait for a
/// login.
#[test]
fn a_pool_that_has_no_more_than_its_smallest_size_is_spared() {
    let general = "max_server_connections = 4";
    let others = &["east", "west"];
    let setup = Setup { user: "min_pool_size = 1", general, others, ..Setup::of_size(2) };
    let (stage, _first, alice) = Stage::ready(&setup);
    let [east, west] = [stage.server(), stage.server()];
    let [bob, carol] = [stage.newcomer_to("east"), stage.newcomer_to("east")];
    for client in [&alice, &bob, &carol] {
        client.says([query("SELECT")]);
    }
    let another = stage.server();
    for server in [&east, &another] {
        server.says([done(), ready()]);
    }
    stage.client().says([query("SELECT")]);
    stage.wait(Duration::from_millis(100));
    assert_eq!((west.heard().as_str(), east.heard().as_str()), ("", "Q(SELECT) X"));
    assert!(another.is_open());
}

/// Servers that were opened together are not replaced together.
#[test]
fn servers_grow_old_one_by_one() {
    let setup = Setup { user: "min_pool_size = 20", ..Setup::of_size(20) };
    let stage = Stage::new(&setup);
    stage.wait(Duration::from_millis(100));
    let servers: Vec<_> = (0..20).map(|_| stage.server()).collect();
    let open = || servers.iter().filter(|server| server.is_open()).count();
    stage.wait(Duration::from_secs(3_600 * 79 / 100));
    assert_eq!(open(), 20);
    stage.wait(Duration::from_secs(3_600 * 21 / 100));
    assert!((1..20).contains(&open()), "{}", open());
    stage.wait(Duration::from_secs(3_600 * 21 / 100));
    assert_eq!(open(), 0);
}

/// Nor is it counted any more: whatever it failed of, its place is another's in the same moment.
#[test]
fn a_login_that_fails_gives_its_place_up() {
    let ways: [fn(&Stage); 4] = [
        Stage::refuse_server,
        |stage| stage.bare_server().says([fatal("28P01")]),
        |stage| stage.bare_server().says([fatal("53300")]),
        |stage| stage.bare_server().breaks(),
    ];
    for limit in ["max_server_connections = 1", "max_user_connections = 1"] {
        for fail in ways {
            let stage = Stage::new(&shared(limit));
            let _alice = stage.newcomer(&[]);
            let bob = stage.newcomer_to("east");
            assert_eq!(stage.attempts(), 1);
            fail(&stage);
            assert_eq!(stage.attempts(), 1, "{limit}");
            let (server, asked) = stage.bare_server_asked();
            assert!(asked.contains(&("database".to_owned(), "east".to_owned())), "{asked:?}");
            server.says([stage.welcome(&server)]);
            assert!(bob.is_greeted());
        }
    }
}

/// PostgreSQL's own limit: it is asked again, but not in a hurry, and that is counted.
#[test]
fn a_server_that_is_full_is_asked_again() {
    let stage = Stage::new(&Setup::default());
    let newcomer = stage.newcomer(&[]);
    let server = stage.bare_server();
    server.says([fatal("53300")]);
    assert!(server.is_aborted());
    assert_eq!((stage.attempts(), newcomer.heard().as_str()), (0, "R"));
    stage.wait(Duration::from_millis(51));
    stage.server();
    assert!(newcomer.is_greeted());
    assert_eq!(stage.snapshot().pools[0].stats.refused_full, 1);
}

/// Whoever logs in behind the last one that there is place for hears which limit that is.
#[test]
fn clients_are_limited_for_each_database_and_each_user() {
    for (general, elsewhere) in
        [("max_db_client_connections = 1", true), ("max_user_client_connections = 1", false)]
    {
        let (stage, _server, alice) = Stage::ready(&shared(general));
        let bob = stage.newcomer(&[]);
        assert_eq!(bob.heard(), "R E(FATAL 53300)", "{general}");
        let carol = stage.newcomer_to("east");
        assert_eq!(!carol.heard().contains("53300"), elsewhere, "{general}");
        alice.says([terminate()]);
        assert!(!stage.newcomer(&[]).heard().contains("53300"), "{general}");
    }
}

/// Who is not let in takes nobody's place, however often it tries.
#[test]
fn who_is_refused_is_not_counted() {
    for general in [
        "max_clients = 1",
        "max_logins = 1",
        "max_db_client_connections = 1",
        "max_user_client_connections = 1",
    ] {
        let stage = Stage::new(&Setup { auth: "password", ..Setup::with(general) });
        for _ in 0..3 {
            let stranger = stage.newcomer(&[]);
            stranger.says([password("guess")]);
            assert_eq!(stranger.heard(), "R E(FATAL 28P01)", "{general}");
        }
        let alice = stage.newcomer(&[]);
        alice.says([password("password")]);
        stage.server();
        assert!(alice.is_greeted(), "{general}");
    }
}

/// Connections that say nothing keep nobody out but others like them.
#[test]
fn clients_before_their_login_are_limited() {
    let (stage, _server, _alice) = Stage::ready(&Setup::with("max_logins = 2"));
    let silent = [stage.stranger(), stage.stranger()];
    let third = stage.stranger();
    assert_eq!(third.heard(), "E(FATAL 53300)");
    assert!(third.is_closed());
    silent[0].breaks();
    assert!(stage.newcomer(&[]).is_greeted());
}

/// A crowd that comes before the server has said what it has room for.
fn crowd(general: &'static str) -> (Stage, Peer, Vec<Peer>) {
    let stage = Stage::new(&Setup { size: 8, general, ..Setup::default() });
    let clients: Vec<_> = (0..8).map(|_| stage.newcomer(&[])).collect();
    assert_eq!(stage.attempts(), 1, "nobody knows yet how many there may be");
    let server = stage.server();
    assert!(server.heard().contains("max_connections"));
    assert_eq!(stage.attempts(), 0);
    (stage, server, clients)
}

/// Too many connections is the outage that a pooler is there to prevent.
#[test]
fn one_connection_finds_out_how_many_there_may_be() {
    let (stage, server, clients) = crowd("instances = 1");
    server.says([room(4, 0), done(), ready()]);
    assert!(clients.iter().all(Peer::is_greeted), "what servers are set to is known");
    clients.iter().for_each(|client| client.says([query("SELECT")]));
    assert_eq!(stage.attempts(), 2, "nine tenths of four are three");
}

/// Every server of a pool says it, and the log would be full of it.
#[test]
fn what_a_server_has_room_for_is_told_where_it_is_news() {
    let (stage, server, clients) = crowd("instances = 1");
    server.says([room(4, 0), done(), ready()]);
    let told = |connections_max| vec![Some(Room { connections_max, reserved: 0 })];
    assert_eq!(stage.rooms_known(), told(4));
    clients.iter().for_each(|client| client.says([query("SELECT")]));
    for (max, news) in [(4, vec![]), (10, told(10))] {
        stage.server().says([room(max, 0), done(), ready()]);
        assert_eq!(stage.rooms_known(), news);
    }
}

/// A server that is no PostgreSQL of a kind that we know is not limited.
#[test]
fn a_server_that_gives_no_answer_has_no_limit() {
    let (stage, server, clients) = crowd("instances = 1");
    server.says([error("42704"), ready()]);
    clients.iter().for_each(|client| client.says([query("SELECT")]));
    assert_eq!(stage.attempts(), 7);
    assert!(took(Mark::RoomNotTold));
}

/// One that is lost before it has answered leaves nobody waiting for the answer.
#[test]
fn a_question_that_is_lost_is_asked_again() {
    let (stage, server, clients) = crowd("instances = 1");
    server.ends();
    stage.wait(Duration::from_millis(200));
    assert_eq!(stage.attempts(), 1);
    let next = stage.server();
    assert!(next.heard().contains("max_connections"));
    next.says([room(4, 0), done(), ready()]);
    assert!(clients.iter().all(Peer::is_greeted));
}

/// What a reload leaves too many is closed: what is idle at once, the rest as it comes free.
#[test]
fn a_lower_limit_closes_what_is_too_many() {
    let setup = Setup { size: 3, general: "max_server_connections = 3", ..Setup::default() };
    let (stage, first, alice) = Stage::ready(&setup);
    let (bob, carol) = (stage.client(), stage.client());
    for client in [&alice, &bob, &carol] {
        client.says([query("SELECT")]);
    }
    let (second, third) = (stage.server(), stage.server());
    third.says([done(), ready()]);
    stage.reload(&Setup { general: "max_server_connections = 1", ..setup });
    stage.wait(Duration::from_millis(100));
    assert!(third.heard().ends_with('X'));
    for server in [&first, &second] {
        server.says([done(), ready()]);
    }
    stage.wait(Duration::from_millis(100));
    let gone = [&first, &second].iter().filter(|server| server.heard().ends_with('X')).count();
    assert_eq!(gone, 1);
}

/// A pool that can give nothing up hides no other one that can.
#[test]
fn a_lower_limit_holds_beside_clients_that_keep_their_servers() {
    let before =
        Setup { general: "max_server_connections = 3", pool: "max_pinned = 'off'", ..shared("") };
    let (stage, first, alice) = Stage::ready(&before);
    let bob = stage.client();
    alice.says([query("SELECT pg_advisory_lock(1)")]);
    bob.says([query("SELECT pg_advisory_lock(1)")]);
    let second = stage.server();
    for server in [&first, &second] {
        server.says([done(), ready()]);
    }
    let carol = stage.newcomer_to("east");
    let third = stage.server();
    assert!(carol.is_greeted());
    carol.says([query("carol")]);
    stage.reload(&Setup { general: "max_server_connections = 2", ..before });
    stage.wait(Duration::from_millis(100));
    third.says([done(), ready()]);
    assert_eq!(third.heard(), "Q(carol) X");
}

/// Nor does a pool hide connections that had to stay when it moved away from their server: a limit
/// that is new holds for the next pool there, too.
#[test]
fn a_new_limit_holds_where_there_is_no_pool_for_now() {
    let before = Setup { others: &["\"*\""], port: 5433, others_port: 5433, ..Setup::default() };
    let (stage, first, alice) = Stage::ready(&before);
    alice.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    stage.reload(&Setup { port: 5432, general: "max_server_connections = 1", ..before });
    let bob = stage.newcomer_to("north");
    assert_eq!(stage.attempts(), 0);
    alice.says([query("COMMIT")]);
    first.says([done(), ready()]);
    assert_eq!(first.heard(), "Q(BEGIN) Q(COMMIT) X");
    first.ends();
    stage.server();
    assert!(bob.is_greeted());
}

/// A connection that one client has for itself, and that is not asked what its server has room for,
/// kept everybody else waiting for the answer.
#[test]
fn who_comes_behind_a_replication_client_finds_out_how_many_there_may_be() {
    let stage = Stage::new(&Setup { general: "instances = 1", ..Setup::of_size(3) });
    let walker = stage.newcomer(&[("replication", "database")]);
    let early = stage.newcomer(&[]);
    assert_eq!(stage.attempts(), 1);
    let server = stage.bare_server();
    server.says([stage.welcome(&server)]);
    assert!(walker.is_greeted());
    assert_eq!(stage.attempts(), 1, "for the one who has come meanwhile");
    let asked = stage.server();
    assert!(asked.heard().contains("max_connections"));
    asked.says([room(4, 0), done(), ready()]);
    assert!(early.is_greeted());
}

/// Such a connection stays where it is when its pool moves to another server: what the next pool
/// there may have is what the reload has said.
#[test]
fn a_replication_client_that_stays_behind_hides_no_limit() {
    for (general, clients) in [("max_server_connections = 1", 1), ("", 2)] {
        let setup =
            Setup { others: &["\"*\""], port: 5433, others_port: 5433, ..Setup::of_size(3) };
        let before = Setup { general, ..setup };
        let stage = Stage::new(&before);
        let walker = stage.newcomer(&[("replication", "database")]);
        let server = stage.bare_server();
        server.says([stage.welcome(&server)]);
        assert!(walker.is_greeted());
        stage.reload(&Setup { port: 5432, general: "instances = 1", ..before });
        let _crowd: Vec<_> = (0..clients).map(|_| stage.newcomer_to("north")).collect();
        assert_eq!(stage.attempts(), 1, "{general}");
    }
}

/// Three pools: two of one user, who may have one connection, and one of another user.
pub(crate) fn two_users() -> Setup {
    const OTHERS: &str = "[pools.db.users.1]\nusername = 'other'\npassword = 'password'\n\
         pool_size = 2\n[pools.east]\npool_mode = 'transaction'\n[pools.east.users.0]\n\
         username = 'user'\npassword = 'password'\npool_size = 2\n[pools.east.shards.0]\n\
         servers = [['127.0.0.1', 5432, 'primary']]\ndatabase = 'east'";
    let general = "max_server_connections = 2\nmax_user_connections = 1";
    Setup { general, user: OTHERS, ..Setup::of_size(2) }
}

/// The first user is in a transaction; the connection of the other one is idle.
fn two_users_at_work() -> (Stage, [Peer; 2], [Peer; 2]) {
    let (stage, first, alice) = Stage::ready(&two_users());
    alice.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    let bob = stage.stranger();
    bob.says([startup(&[("user", "other"), ("database", "db")])]);
    let second = stage.server();
    assert!(bob.is_greeted());
    (stage, [first, second], [alice, bob])
}

/// A neighbour lost its idle connection again and again for a client whose user may have no other.
#[test]
fn nobody_gives_up_what_another_limit_makes_useless() {
    let (stage, [first, second], [alice, _bob]) = two_users_at_work();
    let carol = stage.newcomer_to("east");
    stage.wait(Duration::from_millis(1_100));
    assert_eq!((second.heard().as_str(), stage.attempts()), ("", 0));
    alice.says([query("COMMIT")]);
    first.says([done(), ready()]);
    assert_eq!(first.heard(), "Q(BEGIN) Q(COMMIT) X");
    first.ends();
    stage.server();
    assert!(carol.is_greeted() && second.is_open());
}

/// Nor does one that is busy: each of its transactions cost a login, as long as somebody waited for
/// what its own user or database may have.
#[test]
fn nobody_who_is_busy_gives_up_what_another_limit_makes_useless() {
    let (stage, [first, second], [alice, bob]) = two_users_at_work();
    let carol = stage.newcomer_to("east");
    for time in [1_100, 1_000, 1_000] {
        bob.says([query("bob")]);
        stage.wait(Duration::from_millis(time));
        second.says([done(), ready()]);
        assert_eq!((second.heard().as_str(), stage.attempts()), ("Q(bob)", 0));
    }
    bob.says([query("bob")]);
    alice.says([query("COMMIT")]);
    first.says([done(), ready()]);
    assert_eq!(first.heard(), "Q(BEGIN) Q(COMMIT) X");
    first.ends();
    stage.server();
    assert!(carol.is_greeted());
    second.says([done(), ready()]);
    assert_eq!(second.heard(), "Q(bob)");
}

/// One connection that is idle makes room in all the limits that it counts in.
#[test]
fn one_idle_connection_is_enough_for_two_limits() {
    let (stage, [first, second], [alice, _bob]) = two_users_at_work();
    alice.says([query("COMMIT")]);
    first.says([done(), ready()]);
    let carol = stage.newcomer_to("east");
    assert_eq!((first.heard().as_str(), second.heard().as_str()), ("Q(BEGIN) Q(COMMIT) X", ""));
    first.ends();
    stage.server();
    assert!(carol.is_greeted() && second.is_open());
}

/// Who needs a place of two limits gets one after the other, and a smallest size takes none of them
/// meanwhile: two pools lost their connections to such a client again and again, and each made its
/// own anew before the other's was gone.
#[test]
fn the_smallest_size_yields_to_who_needs_room_in_two_limits() {
    const OTHERS: &str = "min_pool_size = 1\n\
        [pools.west]\npool_mode = 'transaction'\n[pools.west.users.0]\nusername = 'other'\n\
        password = 'password'\npool_size = 1\nmin_pool_size = 1\n[pools.west.shards.0]\n\
        servers = [['127.0.0.1', 5432, 'primary']]\ndatabase = 'west'\n\
        [pools.east]\npool_mode = 'transaction'\n[pools.east.users.0]\nusername = 'user'\n\
        password = 'password'\npool_size = 1\n[pools.east.shards.0]\n\
        servers = [['127.0.0.1', 5432, 'primary']]\ndatabase = 'east'";
    let general = "max_server_connections = 1\nmax_user_connections = 1";
    for first in [0, 1] {
        let setup = Setup { general, user: OTHERS, port: 5433, ..Setup::default() };
        let stage = Stage::new(&setup);
        stage.wait(Duration::from_millis(100));
        let idle = [stage.server(), stage.server()];
        let carol = stage.newcomer_to("east");
        assert_eq!((idle[0].heard().as_str(), idle[1].heard().as_str()), ("X", "X"));
        idle[first].ends();
        stage.wait(Duration::from_millis(300));
        assert_eq!(stage.attempts(), 0, "the place is kept for who waits");
        idle[1 - first].ends();
        let server = stage.server();
        assert!(carol.is_greeted());
        stage.wait(Duration::from_secs(5));
        assert_eq!(stage.attempts(), 0);
        assert!(server.is_open());
    }
}

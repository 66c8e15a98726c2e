//! What is to be seen of servers that are shared.

use std::time::Duration;

use pgweir_config::Pipelining;
use pgweir_engine::{ServerView, Stats};

use crate::messages::{
    bind_to, columns, describe_statement, done, error, execute, in_block, no_parameters, one_row,
    parse_as, parse_complete, query, ready, sync,
};
use crate::pipelining::{ask, braked, shared};
use crate::stage::{Setup, Stage};

/// The one server that there is.
fn seen(stage: &Stage) -> ServerView {
    let mut servers = stage.snapshot().servers;
    assert_eq!(servers.len(), 1);
    servers.remove(0)
}

/// The numbers of clients in the order in which they have come.
fn numbers(stage: &Stage) -> Vec<i32> {
    stage.snapshot().clients.iter().map(|client| client.id).collect()
}

#[test]
fn a_shared_server_says_whose_units_are_on_it() {
    let (stage, server, clients) = braked(&shared(1), 3);
    let ids = numbers(&stage);
    assert_eq!(seen(&stage).queue, None, "nobody is on it");
    ask(&clients);
    let here = seen(&stage);
    assert_eq!(here.queue, Some(ids.iter().copied().map(Some).collect()));
    assert_eq!(here.client, Some(ids[0]), "whose unit it runs");
    clients[1].breaks();
    server.says([one_row("a")]);
    let here = seen(&stage);
    assert_eq!(here.queue, Some(vec![None, Some(ids[2])]), "a unit is run though its client left");
    assert_eq!(here.client, None);
    server.says([one_row("b")]);
    assert_eq!(seen(&stage).client, Some(ids[2]));
}

#[test]
fn a_server_that_is_lent_is_not_shared() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("BEGIN")]);
    server.says([one_row("")]);
    server.says([done(), in_block()]);
    let here = seen(&stage);
    assert_eq!((here.queue, here.client), (None, Some(numbers(&stage)[0])));
}

/// What the one pool has done.
fn stats(stage: &Stage) -> Stats {
    stage.snapshot().pools[0].stats
}

/// The delays that were counted: at most so many microseconds, and how often.
fn delays(stage: &Stage) -> Vec<(u64, u64)> {
    let delays = stats(stage).delays;
    let some = delays.buckets().filter(|(_, units)| *units > 0);
    some.map(|(longest, units)| (longest.expect("no long one"), units)).collect()
}

#[test]
fn how_long_units_stand_behind_others_is_counted() {
    let (stage, server, clients) = braked(&shared(1), 3);
    assert_eq!(delays(&stage), [(0, 2)], "what a server is set to first is no other's");
    let assigned = stats(&stage).assignments;
    ask(&clients);
    assert_eq!(delays(&stage), [(0, 3)], "nobody stands in front of the first");
    stage.wait(Duration::from_millis(1));
    server.says([one_row("a")]);
    assert_eq!(delays(&stage), [(0, 3), (1024, 1)]);
    stage.wait(Duration::from_millis(1));
    server.says([one_row("b"), one_row("c")]);
    assert_eq!(delays(&stage), [(0, 3), (1024, 1), (2048, 1)]);
    assert_eq!(stats(&stage).delays.sum().as_millis(), 3, "1 ms and 2 ms");
    assert_eq!((stats(&stage).shared, stats(&stage).transactions), (5, 5));
    assert_eq!(stats(&stage).assignments, assigned + 3, "each was given a place");
}

#[test]
fn who_has_left_stood_in_front_all_the_same() {
    let (stage, server, clients) = braked(&shared(1), 3);
    ask(&clients);
    clients[0].breaks();
    clients[1].breaks();
    stage.wait(Duration::from_millis(1));
    server.says([one_row("a"), one_row("b"), one_row("c")]);
    assert_eq!(delays(&stage), [(0, 3), (1024, 2)]);
    assert_eq!(stats(&stage).shared, 3, "nobody was told of the others");
}

/// A statement that is made ahead stands in front of those that need it.
#[test]
fn units_of_ours_stand_in_front_too() {
    let (stage, first, clients) = braked(&shared(2), 2);
    clients[0].says([parse_as("s", "SELECT 1"), describe_statement("s"), sync()]);
    first.says([one_row("")]);
    let described = [no_parameters(), columns()].concat();
    first.says([parse_complete(), described.clone(), described.clone(), ready()]);
    clients[1].says([query("BEGIN")]);
    first.says([done(), in_block()]);
    clients[0].says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.says([one_row("")]);
    clients[1].says([query("COMMIT")]);
    assert_eq!(delays(&stage), [(0, 2)], "it waits in the queue, and stands behind nobody");
    second.says([parse_complete(), described, ready()]);
    assert_eq!(delays(&stage), [(0, 3)]);
}

/// It has shared a server, and not in vain for those who stood behind it, but did not end there.
#[test]
fn what_is_run_again_alone_is_no_transaction_that_was_shared() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("SELECT 1")]);
    stage.wait(Duration::from_millis(60));
    server.says([error("57014"), ready()]);
    server.says([one_row("")]);
    server.says([one_row("a")]);
    assert!(clients[0].heard().ends_with("T D(a) C Z"));
    assert_eq!(delays(&stage), [(0, 3)]);
    assert_eq!((stats(&stage).shared, stats(&stage).transactions), (2, 3));
    assert_eq!(stats(&stage).queries, 3, "it counts once");
}

#[test]
fn a_pool_says_how_its_servers_are_shared() {
    let shown = |setup: &Setup| {
        let snapshot = Stage::ready(setup).0.snapshot();
        let pool = &snapshot.pools[0];
        let of_writes = (pool.write_hot_most, pool.write_depth);
        (pool.pipelining, (pool.hot_most, pool.depth), of_writes)
    };
    let fixed = Pipelining::Fixed { hot: 3, depth: 5 };
    let setup = Setup { size: 4, general: "pipelining = '3x5'", ..Setup::default() };
    assert_eq!(shown(&setup), (fixed, (3, 5), (3, 5)));
    let small = Setup { size: 2, ..setup };
    assert_eq!(shown(&small), (fixed, (2, 5), (2, 5)), "there are no more servers");
    let session = Setup { mode: "session", ..setup };
    assert_eq!(shown(&session), (Pipelining::Off, (0, 0), (0, 0)), "nothing is shared there");
}

//! Who shares which server, and what comes of it.

use std::time::Duration;

use pgweir_config::Pipelining;
use pgweir_engine::Snapshot;

use super::{says_with, snapshot};
use crate::Rates;

/// The first server is shared by three clients, the second of whom is gone.
fn shared() -> Snapshot {
    let mut snapshot = snapshot();
    snapshot.servers[0].client = Some(2);
    snapshot.servers[0].queue = Some(vec![Some(2), None, Some(1)]);
    for (server, process_id) in snapshot.servers.iter_mut().zip(4711..) {
        server.process_id = Some(process_id);
    }
    snapshot
}

/// What is asked says of the rows that it gets.
fn rows(request: &str, snapshot: &Snapshot) -> Vec<String> {
    let reply = says_with(request.as_bytes(), snapshot, &Rates::new());
    assert!(reply.ends_with("\nC SHOW\nZ I\n"), "{reply}");
    let rows = reply.lines().filter(|line| line.starts_with("D "));
    rows.map(str::to_owned).collect()
}

#[test]
fn a_shared_server_lists_its_clients_in_their_order() {
    let servers = rows("SHOW SERVERS", &shared());
    assert!(servers[0].ends_with("|S11|C2|4711|||0|11|C2, gone, C1"), "{}", servers[0]);
    assert!(servers[1].ends_with("|S12||4712|||0|12|NULL"), "{}", servers[1]);
    assert!(servers[0].contains("|active|"), "PgBouncer has no other word");
}

#[test]
fn who_works_on_a_backend_is_told_by_its_process_id() {
    let mut snapshot = shared();
    let clients = rows("SHOW CLIENTS", &snapshot);
    assert_eq!(rows("SHOW CLIENT OF 4711", &snapshot), clients[1..2]);
    assert_eq!(rows("select client of 4711;", &snapshot), clients[1..2]);
    assert_eq!(rows("SHOW CLIENT OF 4712", &snapshot), [""; 0], "it works for nobody");

    // Where some are under one Sync it may be any of those.
    snapshot.servers[0].joined = 2;
    assert_eq!(rows("SHOW CLIENT OF 4711", &snapshot), clients[1..2], "one has left");
    snapshot.servers[0].joined = 3;
    assert_eq!(rows("SHOW CLIENT OF 4711", &snapshot), clients[..2]);
    snapshot.servers[0].client = None;
    assert_eq!(rows("SHOW CLIENT OF 4711", &snapshot), clients[..2], "it has just answered");
    (snapshot.servers[0].client, snapshot.servers[0].joined) = (Some(2), 1);

    // On two machines two backends may have the same one.
    snapshot.servers[1].process_id = Some(4711);
    snapshot.servers[1].client = Some(1);
    assert_eq!(rows("SHOW CLIENT OF 4711", &snapshot), clients[..2]);
}

#[test]
fn a_backend_that_is_none_of_ours_is_an_error() {
    let told = |request: &str| says_with(request.as_bytes(), &shared(), &Rates::new());
    assert_eq!(
        told("SHOW CLIENT OF 7"),
        "E ERROR 22023 no connection to a server has the process id 7 \
         H SHOW SERVERS has them, as remote_pid.\nZ I\n"
    );
    for request in ["SHOW CLIENT OF x", "SHOW CLIENT OF 99999999999", "SHOW CLIENT BY 4711"] {
        assert!(told(request).starts_with("E ERROR 08P01 invalid command"), "{request}");
    }
}

/// Alice's pool has shared its servers for some of its 10 transactions.
fn busy() -> Snapshot {
    let mut snapshot = shared();
    let alice = &mut snapshot.pools[1];
    alice.pipelining = Pipelining::Fixed { hot: 3, depth: 24 };
    (alice.hot_most, alice.depth) = (3, 24);
    (alice.write_hot_most, alice.write_depth) = (16, 8);
    (alice.stats.shared, alice.stats.joined) = (7, 5);
    for micros in [0, 0, 0, 0, 0, 0, 6, 7, 300, 9_000_000] {
        alice.stats.delays.count(Duration::from_micros(micros));
    }
    snapshot
}

#[test]
fn pools_say_how_their_servers_are_shared() {
    let mut snapshot = busy();
    let shown = |snapshot: &Snapshot, rates: &Rates| {
        let reply = says_with(b"SHOW POOLS", snapshot, rates);
        let rows = reply.lines().filter(|line| line.starts_with("D "));
        rows.map(|row| row.splitn(18, '|').last().unwrap_or_default().to_owned()).collect()
    };
    let rows: Vec<String> = shown(&snapshot, &Rates::new());
    assert_eq!(rows, ["off|0|0|0|0|NULL|NULL|0|0|0", "3x24|3|24|1|70|0|2097152|16|8|50"]);

    snapshot.pools[1].pipelining = Pipelining::Auto;
    let mut rates = Rates::new();
    rates.sample(&snapshot);
    rates.sample(&snapshot);
    let idle: Vec<String> = shown(&snapshot, &rates);
    assert_eq!(idle[1], "auto|3|24|1|NULL|NULL|NULL|16|8|NULL", "nothing since the older sample");
    snapshot.pools[1].stats.transactions += 4;
    snapshot.pools[1].stats.shared += 3;
    snapshot.pools[1].stats.joined += 1;
    snapshot.pools[1].stats.delays.count(Duration::from_micros(100));
    let later: Vec<String> = shown(&snapshot, &rates);
    assert_eq!(later[1], "auto|3|24|1|75|128|128|16|8|25");
}

#[test]
fn delays_are_listed_for_each_pool_that_shares_servers() {
    assert_eq!(rows("SHOW PIPELINING", &snapshot()), [""; 0]);
    let mut snapshot = busy();
    let shown = rows("SHOW PIPELINING", &snapshot);
    assert_eq!(shown.len(), 24);
    assert_eq!(shown[0], "D app|alice|0|6|6");
    assert_eq!(shown[1], "D app|alice|1|0|6");
    assert_eq!(shown[4], "D app|alice|8|2|8");
    assert_eq!(shown[10], "D app|alice|512|1|9");
    assert_eq!(shown[22], "D app|alice|2097152|0|9");
    assert_eq!(shown[23], "D app|alice|NULL|1|10", "whatever is longer");
    snapshot.pools[1].pipelining = Pipelining::Off;
    assert_eq!(rows("SHOW PIPELINING", &snapshot), shown, "what was counted stays");
}

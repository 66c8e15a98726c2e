//! What there is: databases, users, lists, settings, memory.

use std::time::Duration;

use pgweir_config::{Changes, Explained, PoolMode};
use pgweir_engine::{PoolView, Snapshot};

use super::{read, said, says_with, snapshot, state};
use crate::{Rates, State, answer};

#[test]
fn databases_put_the_pools_of_their_users_together() {
    let columns = "T name/s host/s port/i database/s force_user/s pool_size/i min_pool_size/i \
                   reserve_pool_size/i server_lifetime/i pool_mode/s load_balance_hosts/s \
                   max_connections/i current_connections/i max_client_connections/i \
                   current_client_connections/i paused/i disabled/i";
    let shows = |snapshot: &Snapshot, row: &str| {
        let expected = format!("{columns}\nD {row}\nC SHOW\nZ I\n");
        assert_eq!(says_with(b"SHOW DATABASES", snapshot, &Rates::new()), expected);
    };
    // One user is in session mode, the other in transaction mode.
    let mut snapshot = snapshot();
    shows(&snapshot, "app|db.example.com|5432|app_db|NULL|10|1|2|3600|NULL|NULL|0|5|500|4|0|0");

    for pool in &mut snapshot.pools {
        pool.mode = PoolMode::Session;
        pool.server_user = "service".to_owned();
    }
    snapshot.pools[0].size = 30;
    snapshot.pools[1].server_lifetime = Some(Duration::from_secs(7_200));
    let row = "app|db.example.com|5432|app_db|service|30|1|2|7200|session|NULL|0|5|500|4|0|0";
    shows(&snapshot, row);

    snapshot.pools[0].server_lifetime = None;
    snapshot.pools[1].server_user = "alice".to_owned();
    let row = "app|db.example.com|5432|app_db|NULL|30|1|2|0|session|NULL|0|5|500|4|0|0";
    shows(&snapshot, row);
}

#[test]
fn users_put_the_pools_of_their_databases_together() {
    let mut snapshot = snapshot();
    let mut reports = PoolView { size: 3, ..snapshot.pools[0].clone() };
    reports.database = "reports".to_owned();
    snapshot.pools.push(reports);
    let expected = "T name/s pool_size/s reserve_pool_size/s pool_mode/s max_user_connections/i \
                    current_connections/i max_user_client_connections/i \
                    current_client_connections/i\n\
                    D alice|10|2|transaction|7|5|0|4\n\
                    D bob||2|session|7|0|0|0\nC SHOW\nZ I\n";
    assert_eq!(says_with(b"SHOW USERS", &snapshot, &Rates::new()), expected);
}

#[test]
fn pins_are_listed_for_each_pool_that_has_them() {
    let expected = "T database/s user/s kind/s policy/s servers/i max_pinned/i total_begun/q \
                    total_refused/q\n\
                    D app|alice|listen|pin|2|5|17|3\n\
                    D app|alice|temp table|refuse|0|5|0|1\nC SHOW\nZ I\n";
    assert_eq!(said("SHOW PINS"), expected);
}

#[test]
fn lists_count() {
    let expected = "T list/s items/i\nD databases|1\nD users|2\nD peers|0\nD pools|2\n\
                    D peer_pools|0\nD free_clients|3\nD used_clients|7\nD login_clients|2\n\
                    D free_servers|1\nD used_servers|5\nD dns_names|0\nD dns_zones|0\n\
                    D dns_queries|0\nD dns_pending|0\nC SHOW\nZ I\n";
    assert_eq!(said("SHOW LISTS"), expected);
}

#[test]
fn memory_is_told_kind_by_kind() {
    let mut expected = String::from(
        "T name/s size/q used/q free/q memtotal/q\n\
         D pool_cache|400|2|0|800\nD client_cache|300|7|3|3000\nD server_cache|200|5|1|1200\n\
         D cancel_cache|100|0|0|0\nD settings_cache|33|2|1|100\n\
         D statement_cache|30|3|0|90\n\
         D iobuf_cache|131072|1|0|131072\n",
    );
    assert_eq!(said("SHOW MEM"), format!("{expected}C SHOW\nZ I\n"), "the kernel told nothing");

    let (snapshot, rates) = (snapshot(), Rates::new());
    let state = State { resident_bytes: Some(3_000_000_000), ..state(&snapshot, &rates) };
    let mut out = Vec::new();
    answer(b"SHOW MEM", &state, Ok(()), &mut out);
    expected += "D process|3000000000|1|0|3000000000\nC SHOW\nZ I\n";
    assert_eq!(read(&out), expected);
}

#[test]
fn settings_are_shown_as_they_hold() {
    let one = |key: &str, value: Option<&str>, default: Option<&str>, changes| Explained {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        line: None,
        default: default.map(str::to_owned),
        changes,
    };
    let config = [
        one("general.worker_threads", Some("2"), Some("4"), Changes::AtStart),
        one("general.max_clients", None, None, Changes::AtReload),
        one("pools.app.users.0.password", Some("(a secret)"), None, Changes::AtReload),
    ];
    let (snapshot, rates) = (snapshot(), Rates::new());
    let state = State { config: &config, ..state(&snapshot, &rates) };
    let mut out = Vec::new();
    answer(b"SHOW CONFIG", &state, Ok(()), &mut out);
    let expected = "T key/s value/s default/s changeable/s\n\
                    D general.worker_threads|2|4|no\n\
                    D general.max_clients|NULL|NULL|yes\n\
                    D pools.app.users.0.password|(a secret)|NULL|yes\nC SHOW\nZ I\n";
    assert_eq!(read(&out), expected);
}

#[test]
fn nothing_is_ever_paused() {
    let expected = "T key/s value/s\nD active|yes\nD paused|no\nD suspended|no\nC SHOW\nZ I\n";
    assert_eq!(said("SHOW STATE"), expected);
}

/// The parts of SHOW STATS are its columns.
#[test]
fn parts_of_the_statistics_are_those_of_the_whole() {
    let row = |request: &str| {
        let reply = said(request);
        let row = reply.lines().nth(1).expect("a row")[2..].to_owned();
        row.split('|').map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = row("SHOW STATS");
    assert_eq!(row("SHOW STATS_TOTALS"), whole[..13]);
    assert_eq!(row("SHOW STATS_AVERAGES")[1..], whole[13..]);

    let reply = said("SHOW TOTALS");
    let rows = reply.lines().filter_map(|line| line.strip_prefix("D ")?.split_once('|'));
    let (names, values): (Vec<_>, Vec<_>) = rows.unzip();
    assert_eq!(values[..24], whole[1..], "there is one database");
    assert_eq!(names[..2], ["total_server_assignment_count", "total_xact_count"]);
    assert_eq!(names[12..14], ["avg_server_assignment_count", "avg_xact_count"]);
    let ours: Vec<_> = names[24..].iter().zip(&values[24..]).collect();
    assert_eq!(ours, [(&"total_contained_servers", &"3")]);
}

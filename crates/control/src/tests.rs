//! Requests and the messages that answer them.

mod changes;
mod columns;
mod explain;
mod inventory;
mod metrics;
mod orders;
mod pipelining;

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use pgweir_config::{Demand, Limit, Pipelining, PoolMode, Room};
use pgweir_engine::{
    Address, CancelProgress, CancelView, ClientState, ClientTarget, ClientView, Ends, LimitView,
    Memory, PinPolicy, PinView, PoolView, ReplicationKind, RequesterView, Rules, ServerActivity,
    ServerView, Snapshot, Stats, Time, Usage,
};
use pgweir_wire::Header;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use crate::{Rates, State, answer};

#[test]
fn commands_are_understood_in_every_spelling() {
    let version = format!("T version/s\nD pgweir {}\nC SHOW\nZ I\n", env!("CARGO_PKG_VERSION"));
    for request in [
        "SHOW VERSION",
        "show version;",
        " \n\tShow\r\n Version ; ",
        "SELECT version",
        r#""show" "VERSION""#,
        "-- which one?\nSHOW /* the */ VERSION -- of it",
        "SHOW VERSION\0",
    ] {
        assert_eq!(said(request), version, "{request}");
    }
    for request in ["", ";", " \n ", "-- ping", "/* ping */;"] {
        assert_eq!(said(request), "I\nZ I\n", "{request}");
    }
}

#[test]
fn drivers_get_what_they_ask_for_at_start() {
    assert_eq!(said("SHOW client_encoding"), "T client_encoding/s\nD UTF8\nC SHOW\nZ I\n");
    let isolation = "T default_transaction_isolation/s\nD read committed\nC SHOW\nZ I\n";
    assert_eq!(said("show DEFAULT_TRANSACTION_ISOLATION;"), isolation);
    let ignored = "N NOTICE 00000 timezone is not set: the console has no session\nC SET\nZ I\n";
    for request in ["SET timezone = 'it''s'", "set TimeZone to utc;", r#"SET "timezone"=UTC"#] {
        assert_eq!(said(request), ignored, "{request}");
    }
}

#[test]
fn what_is_no_command_is_refused_with_a_hint() {
    let cases = [
        ("SHOW", "E ERROR 08P01 invalid command 'SHOW', use SHOW HELP;"),
        (
            "SHOW POLS",
            "E ERROR 08P01 invalid command 'SHOW POLS', use SHOW HELP; H Perhaps you meant SHOW \
             POOLS.",
        ),
        (
            "sow pools;",
            "E ERROR 08P01 invalid command 'sow pools;', use SHOW HELP; H Perhaps you meant SHOW.",
        ),
        ("SELECT 1", "E ERROR 08P01 invalid command 'SELECT 1', use SHOW HELP;"),
        (
            "SHOW POOLS; SHOW STATS",
            "E ERROR 08P01 invalid command 'SHOW POOLS; SHOW STATS', use SHOW HELP;",
        ),
        ("SHOW 'pools'", "E ERROR 08P01 invalid command 'SHOW 'pools'', use SHOW HELP;"),
        ("SHOW \"pools", "E ERROR 08P01 invalid command 'SHOW \"pools', use SHOW HELP;"),
        ("/* SHOW POOLS", "E ERROR 08P01 invalid command '/* SHOW POOLS', use SHOW HELP;"),
        ("x timezone = 1", "E ERROR 08P01 invalid command 'x timezone = 1', use SHOW HELP;"),
        ("x timezone to 1", "E ERROR 08P01 invalid command 'x timezone to 1', use SHOW HELP;"),
        ("SET timezone", "E ERROR 08P01 invalid command 'SET timezone', use SHOW HELP;"),
        (
            "SET pool_size = 5",
            "E ERROR 0A000 SET is not supported by this console H SHOW HELP lists what is.",
        ),
        (
            "pause app",
            "E ERROR 0A000 PAUSE is not supported by this console H SHOW HELP lists what is.",
        ),
        (
            "SHOW FDS;",
            "E ERROR 0A000 SHOW FDS is not supported by this console H SHOW HELP lists what is.",
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(said(request), format!("{expected}\nZ I\n"), "{request}");
    }
    let long = "x".repeat(10_000);
    assert!(said(&long).len() < 200, "a long request is not echoed whole");
    assert!(says(b"SHOW \xff\xfe").starts_with("E ERROR 08P01"), "nor are broken characters");
}

#[test]
fn help_names_every_command() {
    let help = said("SHOW HELP");
    let is_fixed = |line: &&str| line.starts_with("D ") && !line.starts_with("D SET ");
    for row in help.lines().filter(is_fixed) {
        let (command, about) = row[2..].split_once('|').expect("two columns");
        assert!(!about.is_empty(), "{row}");
        let tag = command.split(' ').next().expect("a word");
        // A process id that a server has.
        let command = command.replace("pid", "4711");
        assert!(said(&command).ends_with(&format!("C {tag}\nZ I\n")), "{command}");
    }
    for name in [
        "CLIENT OF pid",
        "CLIENTS",
        "CONFIG",
        "DATABASES",
        "HELP",
        "LISTS",
        "LOUD",
        "MEM",
        "PIPELINING",
        "POOLS",
        "SERVERS",
        "STATE",
        "STATS",
        "STATS_AVERAGES",
        "STATS_TOTALS",
        "TOTALS",
        "USERS",
        "VERSION",
    ] {
        assert!(help.contains(&format!("D SHOW {name}|")), "{name}\n{help}");
    }
    assert!(help.contains("D EXPLAIN ROUTE statement|"), "{help}");
}

#[test]
fn pools_count_what_clients_and_servers_list() {
    let mut expected = String::from(
        "T database/s user/s cl_active/i cl_waiting/i cl_active_cancel_req/i \
         cl_waiting_cancel_req/i sv_active/i sv_active_cancel/i sv_being_canceled/i sv_idle/i \
         sv_used/i sv_tested/i sv_login/i maxwait/i maxwait_us/i pool_mode/s \
         load_balance_hosts/s pipelining/s sv_shared_max/i depth/i sv_shared/i shared_percent/i \
         hol_p50_us/q hol_p99_us/q sv_shared_max_writes/i depth_writes/i joined_percent/i\n",
    );
    expected += "D app|bob|0|0|0|0|0|0|0|0|0|0|0|0|0|session|NULL|off|0|0|0|0|NULL|NULL|0|0|0\n";
    expected +=
        "D app|alice|2|2|2|2|1|1|1|1|0|1|2|3|250000|transaction|NULL|off|0|0|0|0|NULL|NULL|0|0|0\n";
    expected += "C SHOW\nZ I\n";
    assert_eq!(said("SHOW POOLS"), expected);
}

#[test]
fn clients_are_listed_with_their_servers() {
    let expected = "T type/s user/s database/s replication/s state/s addr/s port/i local_addr/s \
        local_port/i connect_time/s request_time/s wait/i wait_us/i close_needed/i ptr/s link/s \
        remote_pid/i tls/s application_name/s prepared_statements/i id/i pins/s\n\
        D C|alice|app|none|active|10.0.0.9|1001|10.0.0.1|6432|2026-11-21 10:00:00 UTC|\
        2026-11-21 10:00:50 UTC|0|0|0|C1|S11|0||psql|0|1|\n\
        D C|alice|app|none|idle|10.0.0.9|1002|10.0.0.1|6432|2026-11-21 10:00:00 UTC|\
        2026-11-21 10:00:50 UTC|0|0|0|C2||0||psql|0|2|\n\
        D C|alice|app|none|waiting|10.0.0.9|1003|10.0.0.1|6432|2026-11-21 10:00:00 UTC|\
        2026-11-21 10:00:50 UTC|3|250000|0|C3||0||psql|0|3|\n\
        D C|alice|app|none|waiting|10.0.0.9|1004|10.0.0.1|6432|2026-11-21 10:00:00 UTC|\
        2026-11-21 10:00:50 UTC|0|0|0|C4||0||psql|0|4|\n\
        D C|root|pgweir|none|idle||0||0|2026-11-21 10:00:00 UTC|\
        2026-11-21 10:00:50 UTC|0|0|0|C5||0||psql|0|5|\n\
        D C|alice|app|none|active_cancel_req|10.0.0.9|1006|10.0.0.1|6432|\
        2026-11-21 10:00:55 UTC|2026-11-21 10:00:55 UTC|0|0|0|C6|S1073741824|0|||0|6|\n\
        D C|alice|app|none|active_cancel_req|10.0.0.9|1007|10.0.0.1|6432|\
        2026-11-21 10:00:55 UTC|2026-11-21 10:00:55 UTC|0|0|0|C7|S1073741824|0|||0|7|\n\
        D C|alice|app|none|waiting_cancel_req|10.0.0.9|1008|10.0.0.1|6432|\
        2026-11-21 10:00:55 UTC|2026-11-21 10:00:55 UTC|0|0|0|C8|S1073741825|0|||0|8|\n\
        D C|alice|app|none|waiting_cancel_req|10.0.0.9|1009|10.0.0.1|6432|\
        2026-11-21 10:00:55 UTC|2026-11-21 10:00:55 UTC|0|0|0|C9||0|||0|9|\n\
        C SHOW\nZ I\n";
    assert_eq!(said("SHOW CLIENTS"), expected);
}

#[test]
fn servers_are_listed_with_their_clients() {
    let reply = said("SHOW SERVERS");
    let states: Vec<_> = reply.lines().filter_map(|row| row.split('|').nth(4)).collect();
    let own = ["active", "being_canceled", "idle", "new", "tested"];
    assert_eq!(states, [&own[..], &["active_cancel", "new"]].concat());
    let first = reply.lines().nth(1).expect("a row");
    assert_eq!(
        first,
        "D S|alice|app|none|active|db.example.com|5432|10.0.0.1|40000|2026-11-21 10:00:00 UTC|\
         2026-11-21 10:00:55 UTC|0|0|1|S11|C1|4711|||0|11|NULL"
    );
    let cancel = reply.lines().nth(6).expect("a row");
    assert_eq!(
        cancel,
        "D S|alice|app|none|active_cancel|db.example.com|5432|10.0.0.1|40001|\
         2026-11-21 10:00:55 UTC|2026-11-21 10:00:55 UTC|0|0|0|S1073741824|C6|0|||0|1073741824|NULL"
    );
}

#[test]
fn who_replicates_is_told_apart() {
    let mut snapshot = snapshot();
    snapshot.clients[0].replication = Some(ReplicationKind::Physical);
    snapshot.servers[0].replication = Some(ReplicationKind::Logical);
    let shown = |request: &[u8]| says_with(request, &snapshot, &Rates::new());
    assert!(shown(b"SHOW CLIENTS").contains("\nD C|alice|app|physical|active|"));
    assert!(shown(b"SHOW SERVERS").contains("\nD S|alice|app|logical|active|"));
}

/// What the configuration can open is put beside what there is and what the server has said.
#[test]
fn limits_say_which_of_them_binds() {
    let demand = |host: &str, port, of_pools, limit| Demand {
        host: host.to_owned(),
        port,
        of_pools,
        of_databases: of_pools,
        of_users: of_pools,
        limit,
    };
    let demands = [
        demand("any", 1, None, Limit::OfRoom { instances: 1 }),
        demand("db.example.com", 5432, Some(24), Limit::Set(20)),
        demand("replica", 5432, Some(0), Limit::Set(20)),
    ];
    let (snapshot, rates) = (snapshot(), Rates::new());
    let state = State { demands: &demands, ..state(&snapshot, &rates) };
    let mut out = Vec::new();
    answer(b"SHOW LIMITS", &state, Ok(()), &mut out);
    let shown = read(&out);
    let rows: Vec<_> = shown.lines().filter(|line| line.starts_with("D ")).collect();
    let expected = [
        "D any|1|0|NULL|NULL|NULL|NULL|NULL|NULL|0",
        "D db.example.com|5432|5|24|20|25|3|20|max_server_connections|1",
        // Its pools are gone, and a connection is still there.
        "D other|5433|1|0|NULL|NULL|NULL|0|pool_size|0",
        "D replica|5432|0|0|20|NULL|NULL|0|pool_size|0",
    ];
    assert_eq!(rows, expected);
}

/// As PgBouncer has it (`pga_ntop`).
#[test]
fn a_unix_socket_is_no_address() {
    let mut snapshot = snapshot();
    snapshot.clients[0].ends = Some(Ends::Unix { port: 6432, own: false });
    snapshot.servers[0].address = Address { host: "/run/postgresql".to_owned(), port: 5433 };
    let first = |request: &[u8]| {
        let shown = says_with(request, &snapshot, &Rates::new());
        shown.lines().nth(1).expect("a row").to_owned()
    };
    let (client, server) = (first(b"SHOW CLIENTS"), first(b"SHOW SERVERS"));
    assert!(client.contains("|active|unix|6432|unix|6432|"), "{client}");
    assert!(server.contains("|active|unix|5433|unix|5433|"), "{server}");
}

#[test]
fn moments_that_no_calendar_has_are_null() {
    let mut out = Vec::new();
    let (snapshot, rates) = (snapshot(), Rates::new());
    let state = State { taken: SystemTime::UNIX_EPOCH, ..state(&snapshot, &rates) };
    answer(b"SHOW CLIENTS", &state, Ok(()), &mut out);
    assert!(read(&out).contains("|NULL|NULL|"), "{}", read(&out));
}

#[test]
fn averages_cover_the_time_since_the_older_sample() {
    let mut snapshot = snapshot();
    let mut rates = Rates::new();
    let stats = |rates: &Rates, snapshot: &Snapshot| {
        let reply = says_with(b"SHOW STATS", snapshot, rates);
        reply.lines().nth(1).expect("a row").to_owned()
    };
    // 60 s after the start, and over both users of the database.
    let total = "D app|21|11|31|4100|5100|6000000|3000000|1000000|1|2|3|5|";
    assert_eq!(stats(&rates, &snapshot), format!("{total}0|0|0|68|85|545454|96774|47619|0|0|0|0"));

    rates.sample(&snapshot);
    snapshot.now = Time(120_000_000);
    snapshot.pools[1].stats.transactions += 600;
    assert_eq!(
        stats(&rates, &snapshot),
        "D app|21|611|31|4100|5100|6000000|3000000|1000000|1|2|3|5|\
         0|5|0|34|42|9819|96774|47619|0|0|0|0",
        "the older sample is still the start"
    );

    rates.sample(&snapshot);
    snapshot.now = Time(130_000_000);
    snapshot.pools[1].stats.transactions += 140;
    snapshot.pools[1].stats.transaction_time += Duration::from_millis(1480);
    assert_eq!(
        stats(&rates, &snapshot),
        "D app|21|751|31|4100|5100|7480000|3000000|1000000|1|2|3|5|\
         0|10|0|0|0|2000|0|0|0|0|0|0",
        "740 transactions in 70 s, of 2 ms each"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked: whole messages, one ReadyForQuery at the end, one error at most.
    #[test]
    fn every_request_gets_one_reply(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "show", "set", "select", "explain", "route", "pools", "stats", "clients",
                "timezone", "to", "=", ";", ".", "'", "\"", "--", "\n", "/*", "*/", " ", "é",
                "x", "shutdown", "wait_for_clients",
            ]),
            0..8,
        ),
        tail in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut request = words.join(" ").into_bytes();
        request.extend(tail);
        let reply = says(&request);
        prop_assert!(reply.ends_with("Z I\n"));
        prop_assert_eq!(reply.lines().filter(|line| line.starts_with("Z")).count(), 1);
        prop_assert!(reply.lines().filter(|line| line.starts_with("E ")).count() <= 1);
    }
}

fn said(request: &str) -> String {
    says(request.as_bytes())
}

fn says(request: &[u8]) -> String {
    says_with(request, &snapshot(), &Rates::new())
}

fn says_with(request: &[u8], snapshot: &Snapshot, rates: &Rates) -> String {
    let mut out = Vec::new();
    answer(request, &state(snapshot, rates), Ok(()), &mut out);
    read(&out)
}

fn state<'a>(snapshot: &'a Snapshot, rates: &'a Rates) -> State<'a> {
    // 2026-11-21 10:01:00 UTC
    let taken = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_255_260);
    State { snapshot, taken, rates, config: &[], demands: &[], resident_bytes: None }
}

/// A line for each message.
fn read(mut rest: &[u8]) -> String {
    let mut lines = String::new();
    while !rest.is_empty() {
        let header = Header::parse(rest).expect("a legal header").expect("a whole header");
        let (message, after) = rest.split_at(header.message_len());
        let body = &mut &message[5..];
        let told = match header.tag {
            b'T' => " ".to_owned() + &columns(body).join(" "),
            b'D' => " ".to_owned() + &cells(body).join("|"),
            b'C' => " ".to_owned() + &string(body),
            b'E' | b'N' => fields(body),
            b'Z' => format!(" {}", char::from(take::<1>(body)[0])),
            b'I' => String::new(),
            tag => panic!("message {}", char::from(tag)),
        };
        assert!(body.is_empty(), "{} bytes behind the last field", body.len());
        let told = told.replace('\n', "\\n");
        writeln!(lines, "{}{told}", char::from(header.tag)).expect("a string takes it");
        rest = after;
    }
    lines
}

/// Each column as `name/type`, with PgBouncer's letters for the types.
fn columns(body: &mut &[u8]) -> Vec<String> {
    let count = u16::from_be_bytes(take(body));
    let column = |_| {
        let name = string(body);
        assert_eq!(take::<6>(body), [0; 6], "a column of no table");
        let oid = u32::from_be_bytes(take(body));
        let (letter, len) = match oid {
            20 => ('q', 8),
            23 => ('i', 4),
            25 => ('s', -1),
            1700 => ('N', -1),
            oid => panic!("type {oid}"),
        };
        assert_eq!(i16::from_be_bytes(take(body)), len, "{name}");
        assert_eq!(take::<6>(body), [255, 255, 255, 255, 0, 0], "no modifier, text format");
        format!("{name}/{letter}")
    };
    (0..count).map(column).collect()
}

fn cells(body: &mut &[u8]) -> Vec<String> {
    let count = u16::from_be_bytes(take(body));
    let cell = |_| match i32::from_be_bytes(take(body)) {
        -1 => "NULL".to_owned(),
        len => {
            let (cell, rest) = body.split_at(usize::try_from(len).expect("a length"));
            *body = rest;
            String::from_utf8(cell.to_vec()).expect("text")
        }
    };
    (0..count).map(cell).collect()
}

/// Severity, code and message; then detail and hint, if there is one.
fn fields(body: &mut &[u8]) -> String {
    let mut told = String::new();
    loop {
        match take::<1>(body)[0] {
            0 => return told,
            b'V' => drop(string(body)),
            field @ (b'D' | b'H') => told += &format!(" {} {}", char::from(field), string(body)),
            b'S' | b'C' | b'M' => told += &format!(" {}", string(body)),
            field => panic!("field {}", char::from(field)),
        }
    }
}

fn string(body: &mut &[u8]) -> String {
    let end = body.iter().position(|b| *b == 0).expect("a zero byte");
    let (string, rest) = body.split_at(end);
    *body = &rest[1..];
    String::from_utf8(string.to_vec()).expect("text")
}

fn take<const N: usize>(body: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = body.split_first_chunk().expect("enough bytes");
    *body = rest;
    *taken
}

/// A minute after the start: a pool with clients and servers of each kind, and one with none.
fn snapshot() -> Snapshot {
    use ClientState::{Active, Idle, Waiting};

    let alice = Stats {
        assignments: 20,
        transactions: 10,
        queries: 30,
        received: 4_000,
        sent: 5_000,
        transaction_time: Duration::from_secs(6),
        query_time: Duration::from_secs(3),
        wait_time: Duration::from_secs(1),
        parses: 1,
        own_parses: 2,
        binds: 3,
        logins: 4,
        contained: 2,
        ..Stats::default()
    };
    let bob = Stats {
        assignments: 1,
        transactions: 1,
        queries: 1,
        received: 100,
        sent: 100,
        logins: 1,
        contained: 1,
        ..Stats::default()
    };
    let mut clients: Vec<_> =
        [Active, Idle, Waiting, Waiting, Idle].into_iter().zip(1..).map(client).collect();
    clients[0].server = Some(11);
    clients[2].wait = Duration::from_millis(3_250);
    clients[4] = ClientView {
        database: "pgweir".to_owned(),
        user: "root".to_owned(),
        target: ClientTarget::Console,
        ends: None,
        ..clients[4].clone()
    };
    let states = [
        ServerActivity::Active,
        ServerActivity::BeingCanceled,
        ServerActivity::Idle,
        ServerActivity::Login,
        ServerActivity::Tested,
    ];
    let mut servers: Vec<_> = states.into_iter().zip(11..).map(server).collect();
    servers[0].client = Some(1);
    servers[0].close_needed = true;
    Snapshot {
        now: Time(60_000_000),
        pools: vec![
            pool("bob", PoolMode::Session, bob),
            PoolView {
                longest_wait: Duration::from_millis(3_250),
                max_pinned: Some(5),
                pins: vec![
                    PinView {
                        kind: "listen",
                        policy: PinPolicy::Pin,
                        servers: 2,
                        begun: 17,
                        refused: 3,
                    },
                    PinView {
                        kind: "temp table",
                        policy: PinPolicy::Refuse,
                        servers: 0,
                        begun: 0,
                        refused: 1,
                    },
                ],
                ..pool("alice", PoolMode::Transaction, alice)
            },
        ],
        limits: vec![
            LimitView {
                address: Address { host: "db.example.com".to_owned(), port: 5432 },
                used: 5,
                room: Some(Room { connections_max: 25, reserved: 3 }),
                refused_full: 1,
            },
            LimitView {
                address: Address { host: "other".to_owned(), port: 5433 },
                used: 1,
                room: None,
                refused_full: 0,
            },
        ],
        max_user_connections: Some(7),
        max_user_client_connections: None,
        clients,
        servers,
        cancels: vec![
            cancel(1 << 30, CancelProgress::Sent, &[6, 7]),
            cancel((1 << 30) + 1, CancelProgress::Connecting, &[8]),
            cancel((1 << 30) + 2, CancelProgress::HeldBack, &[9]),
        ],
        louds: Vec::new(),
        logins: 2,
        memory: Memory {
            clients: Usage::of_places(300, 7, 3),
            servers: Usage::of_places(200, 5, 1),
            cancels: Usage::of_places(100, 0, 0),
            pools: Usage::of_places(400, 2, 0),
            settings: Usage::of_bytes(100, 2, 1),
            statements: Usage::of_bytes(90, 3, 0),
            buffers: Usage::of_bytes(131_072, 1, 0),
        },
    }
}

fn pool(user: &str, mode: PoolMode, stats: Stats) -> PoolView {
    PoolView {
        removed: false,
        order: 0,
        database: "app".to_owned(),
        user: user.to_owned(),
        mode,
        size: 10,
        min_size: 1,
        reserve: 2,
        max_db_connections: None,
        max_db_client_connections: Some(500),
        address: Address { host: "db.example.com".to_owned(), port: 5432 },
        server_database: "app_db".to_owned(),
        server_user: user.to_owned(),
        server_lifetime: Some(Duration::from_secs(3_600)),
        longest_wait: Duration::ZERO,
        max_pinned: None,
        pipelining: Pipelining::Off,
        hot_most: 0,
        depth: 0,
        write_hot_most: 0,
        write_depth: 0,
        rules: Rules::default(),
        pins: Vec::new(),
        stats,
    }
}

fn client((state, id): (ClientState, i32)) -> ClientView {
    let port = 1000 + u16::try_from(id).expect("a small number");
    ClientView {
        id,
        database: "app".to_owned(),
        user: "alice".to_owned(),
        target: ClientTarget::Pool,
        state,
        replication: None,
        ends: Some(Ends::Tcp {
            peer: ([10, 0, 0, 9], port).into(),
            local: ([10, 0, 0, 1], 6432).into(),
        }),
        since: Time(0),
        requested: Time(50_000_000),
        wait: Duration::ZERO,
        application_name: "psql".to_owned(),
        server: None,
        pins: String::new(),
    }
}

fn server((state, id): (ServerActivity, u32)) -> ServerView {
    ServerView {
        id,
        pool: ("app".to_owned(), "alice".to_owned()),
        replication: None,
        address: Address { host: "db.example.com".to_owned(), port: 5432 },
        local: Some(([10, 0, 0, 1], 40_000).into()),
        state,
        since: Time(0),
        changed: Time(55_000_000),
        process_id: Some(4711),
        client: None,
        queue: None,
        joined: 0,
        close_needed: false,
    }
}

fn cancel(id: u32, progress: CancelProgress, requesters: &[i32]) -> CancelView {
    let requester = |id: &i32| RequesterView {
        id: *id,
        ends: client((ClientState::Idle, *id)).ends,
        since: Time(55_000_000),
    };
    CancelView {
        id,
        pool: ("app".to_owned(), "alice".to_owned()),
        address: Address { host: "db.example.com".to_owned(), port: 5432 },
        local: (progress == CancelProgress::Sent).then_some(([10, 0, 0, 1], 40_001).into()),
        progress,
        since: Time(55_000_000),
        requesters: requesters.iter().map(requester).collect(),
    }
}

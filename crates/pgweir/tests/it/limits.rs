//! Limits of connections, as PostgreSQL sees them.

use pgweir_testkit::frames::{bind, execute, flush, parse, query};
use pgweir_testkit::{
    Cluster, Login, Pgweir, PoolerConfig, WireClient, eventually, eventually_some,
};

use crate::reload::change;
use crate::stage::{CLUSTER, PROGRAM, Stage, create_database, login, patient, superuser, trusting};
use crate::stopped::Stopped;

/// Clients of two databases on one pgweir that may open three connections to their server.
struct Neighbours {
    pgweir: Pgweir,
    names: [String; 2],
}

impl Neighbours {
    fn new(cluster: &Cluster, name: &str, limit: &str) -> Self {
        let names = ["a", "b"].map(|suffix| format!("{name}_{suffix}"));
        names.iter().for_each(|name| create_database(cluster, name));
        let config = trusting(cluster, &names[0]).general(limit, "3").user(&names[0], "", 3);
        let other = format!(
            "\n[pools.{0}.users.0]\nusername = '{0}'\npool_size = 3\n\
             [pools.{0}.shards.0]\ndatabase = '{0}'\n\
             servers = [['127.0.0.1', {1}, 'primary']]\n",
            names[1],
            cluster.port()
        );
        let pgweir = Pgweir::start(PROGRAM, |port| config.text(port) + &other);
        Self { pgweir, names }
    }

    fn client(&self, of: usize) -> WireClient {
        WireClient::login(self.pgweir.address(), &login(&self.names[of])).unwrap()
    }
}

/// PostgreSQL has room for no more, so each connection beyond the limit would be an error.
#[test]
fn a_server_never_gets_more_connections_than_it_may() {
    // Three are left beside those that are reserved for the superuser, and that of this test.
    let cluster = Cluster::builder()
        .setting("max_connections", "7")
        .setting("superuser_reserved_connections", "3")
        .setting("max_wal_senders", "0")
        .start();
    let mut watcher = superuser(&cluster, "postgres");
    let neighbours = Neighbours::new(&cluster, "hard", "max_server_connections");
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    eventually("those that made the databases to be gone", || watcher.query(others) == ["0"]);
    for _ in 0..3 {
        for of in [0, 1] {
            let mut clients = [0; 3].map(|_| neighbours.client(of));
            clients.iter_mut().for_each(|client| {
                client.send(&query("SELECT pg_sleep(0.01)")).unwrap();
            });
            for client in &mut clients {
                let reply = client.read_until_ready().unwrap();
                assert_eq!(reply.last().unwrap().to_string(), "ReadyForQuery I");
            }
        }
    }
    let log = neighbours.pgweir.log();
    assert!(!log.contains("no connection to"), "{log}");
}

/// A backend counts until its statement is over, whatever has become of its client.
#[test]
fn a_batch_that_runs_on_behind_its_client_is_counted() {
    let stage =
        Stage::with("left_running", 2, |config| config.general("max_server_connections", "1"));
    let mut client = stage.client();
    let slow = "SELECT pg_sleep(1) -- left running";
    let batch = [parse("", slow, &[]), bind("", "", &[]), execute("", 0), flush()];
    client.send(&batch.concat()).unwrap();
    stage.wait_for_backends(1, "query LIKE '%left running' AND state = 'active'");
    client.reset().unwrap();
    let backends = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'left_running'";
    assert_eq!(stage.client().query(backends), ["1"]);
}

/// When a backend that hangs will have ended nobody can know: others are served meanwhile, with one
/// connection more than the limit says. A PostgreSQL without room for that is asked again.
#[test]
fn a_server_that_is_given_up_counts_no_more() {
    let name = "limit_given_up";
    let stage = Stage::with(name, 1, |config| {
        let config = config.general("pipelining", "\"off\"");
        config.general("max_server_connections", "1").general("statement_timeout", "100")
    });
    let mut client = stage.client();
    let pid = client.query("SELECT pg_backend_pid()").concat();
    stage.ask(&format!("ALTER ROLE {name} CONNECTION LIMIT 1"));
    let stopped = Stopped::process(&pid);
    assert_eq!(client.try_query("SELECT 'too late'").unwrap_err().sqlstate(), "08007");
    client.send(&query("SELECT 'served'")).unwrap();
    let full = format!("too many connections for role \"{name}\"");
    eventually("PostgreSQL to refuse another", || stage.pgweir.log().contains(&full));
    drop(stopped);
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"served\"");
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

/// One that cannot be had is asked less and less often, up to two seconds apart.
#[test]
fn attempts_that_fail_are_made_again_after_growing_pauses() {
    let stage = Stage::with("limit_pauses", 1, |config| config.server_host("/nonexistent"));
    let mut client = WireClient::open(stage.address()).unwrap();
    client.send(&stage.login().startup_message()).unwrap();
    // In seconds of the day, which may end just now.
    let time = |line: &str| -> Option<f64> {
        let (time, _) = line.split_once('T')?.1.split_once('Z')?;
        time.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
    };
    let attempts = eventually_some("the sixth attempt", || {
        let log = stage.pgweir.log();
        let failed = log.lines().filter(|line| line.contains("no connection to the server"));
        let times: Vec<f64> = failed.map(|line| time(line).unwrap()).collect();
        (times.len() >= 6).then_some(times)
    });
    // The fifth is 0.4 s at least, and the time of a line that of its writing.
    let pause = (attempts[5] - attempts[4]).rem_euclid(86_400.0);
    assert!(pause > 0.2, "{attempts:?}");
}

/// A database whose clients always have something to do leaves another one its part.
#[test]
fn no_database_starves_beside_a_busy_one() {
    let cluster = Cluster::start();
    let neighbours = Neighbours::new(&cluster, "fair", "max_server_connections");
    let mut busy = [0; 6].map(|_| neighbours.client(0));
    let pause = query("SELECT pg_sleep(0.05)");
    busy.iter_mut().for_each(|client| client.send(&pause).unwrap());
    let mut other = WireClient::open(neighbours.pgweir.address()).unwrap();
    other.send(&login(&neighbours.names[1]).startup_message()).unwrap();
    other.send(&query("SELECT 'served'")).unwrap();
    let served = std::thread::spawn(move || {
        other.read_until_ready().unwrap();
        other.read_until_ready().unwrap()[1].to_string()
    });
    while !served.is_finished() {
        for client in &mut busy {
            client.read_until_ready().unwrap();
            client.send(&pause).unwrap();
        }
    }
    assert_eq!(served.join().unwrap(), "DataRow \"served\"");
}

#[test]
fn the_smallest_size_is_open_before_anybody_asks() {
    let stage = Stage::with("minimum", 5, |config| config.general("max_server_connections", "9"));
    drop(stage);
    let cluster = Cluster::start();
    create_database(&cluster, "minimum");
    let config = trusting(&cluster, "minimum").user("minimum", "", 5);
    let config = config.user_setting("min_pool_size", "3");
    let _pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let mut watcher = superuser(&cluster, "postgres");
    eventually("three backends", || {
        watcher.query("SELECT count(*) FROM pg_stat_activity WHERE usename = 'minimum'") == ["3"]
    });
}

#[test]
fn clients_of_a_database_are_limited() {
    let stage =
        Stage::with("client_limit", 1, |config| config.pool("max_db_client_connections", "2"));
    let first = stage.client();
    let _second = stage.client();
    let refused = WireClient::login(stage.address(), &stage.login()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("53300"), "{refused}");
    drop(first);
    eventually("room for another", || WireClient::login(stage.address(), &stage.login()).is_ok());
    // The console is no pool.
    let admin = Login::new("admin").password("admin").database("pgweir");
    stage.client_as(&admin);
}

/// Whatever limits the connections to a server, SHOW LIMITS says what it has room for, and names
/// the limit that is reached first.
#[test]
fn a_servers_room_is_shown_whatever_the_limit_is() {
    let port = CLUSTER.port();
    let row = |name: &str, settings: fn(PoolerConfig) -> PoolerConfig| {
        let stage = Stage::with(name, 500, settings);
        let _client = stage.client();
        let [row] = &stage.console("SHOW LIMITS")[..] else { panic!("one server") };
        row.replace(&format!("127.0.0.1|{port}|1|500|"), "")
    };
    let room = "300|3";
    let none = row("room_unlimited", |config| config);
    assert_eq!(none, format!("|{room}|500|max_connections|0"));
    let set = row("room_limited", |config| config.general("max_server_connections", "20"));
    assert_eq!(set, format!("20|{room}|20|max_server_connections|0"));
    let database = row("room_database", |config| config.pool("max_db_connections", "30"));
    assert_eq!(database, format!("|{room}|30|max_db_connections|0"));
    let user = row("room_user", |config| config.general("max_user_connections", "40"));
    assert_eq!(user, format!("|{room}|40|max_user_connections|0"));
}

/// In pgcat.toml nothing keeps pools from more than their server has room for: at least it is told.
#[test]
fn a_configuration_that_may_open_too_much_is_told_of() {
    let place = CLUSTER.address();
    let opens = |count: u32| {
        format!(
            "{place}: all pools together may open {count}, there is room for 297 \
             (max_connections 300 less 3 reserved): "
        )
    };
    let cases = [
        (297, format!("INFO {}pool_size binds\n", opens(297))),
        (298, format!("WARN {}max_connections binds; lower pool_size, ", opens(298))),
    ];
    for (size, line) in cases {
        let stage = Stage::new(&format!("told_{size}"), size);
        for _ in 0..2 {
            stage.client();
        }
        eventually("the line", || stage.pgweir.log().contains(&line));
        assert_eq!(stage.pgweir.log().matches("there is room for").count(), 1);
    }
}

/// Databases that nobody has named are as many as clients ask for.
#[test]
fn a_pool_for_any_database_is_without_limit() {
    let cluster = Cluster::start();
    create_database(&cluster, "any_room");
    let config = trusting(&cluster, "*").user("any_room", "", 2);
    let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let limits = || {
        let admin = Login::new("admin").password("admin").database("pgweir");
        let rows = WireClient::login(pgweir.address(), &admin).unwrap().query("SHOW LIMITS");
        rows.concat().replace(&format!("127.0.0.1|{}|", cluster.port()), "")
    };
    assert_eq!(limits(), "0|||||||0");
    let _client = WireClient::login(pgweir.address(), &login("any_room")).unwrap();
    assert_eq!(limits(), "1|||100|3||max_connections|0");
}

/// Where nobody has set a limit, the server is asked: nine tenths of its room are ours, also of a
/// crowd that comes before anything is known.
#[test]
fn a_server_is_asked_what_it_has_room_for() {
    let cluster = Cluster::builder()
        .setting("max_connections", "13")
        .setting("superuser_reserved_connections", "3")
        .setting("max_wal_senders", "0")
        .start();
    create_database(&cluster, "room");
    let pgweir = Pgweir::start(PROGRAM, |port| {
        format!(
            "config_version = 1\n[general]\nport = {port}\nauth_type = 'trust'\n\
             unix_socket_dir = ''\ninstances = 2\n\
             admin_username = 'admin'\nadmin_auth_type = 'trust'\n\
             [pools.room.users.0]\nusername = 'room'\npool_size = 50\n\
             [pools.room.shards.0]\ndatabase = 'room'\n\
             servers = [['127.0.0.1', {}, 'primary']]\n",
            cluster.port()
        )
    });
    let first = [login("room").startup_message(), query("SELECT pg_sleep(0.2)")].concat();
    let mut clients: Vec<_> = (0..30)
        .map(|_| {
            let mut client = WireClient::open(pgweir.address()).unwrap();
            client.send(&first).unwrap();
            client
        })
        .collect();
    for client in &mut clients {
        client.read_until_ready().unwrap();
        let reply = client.read_until_ready().unwrap();
        assert_eq!(reply.last().unwrap().to_string(), "ReadyForQuery I");
    }
    let mut watcher = superuser(&cluster, "postgres");
    let backends = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'room'";
    assert_eq!(watcher.query(backends), ["4"]);
    let admin = Login::new("admin").database("pgweir");
    let limits = WireClient::login(pgweir.address(), &admin).unwrap().query("SHOW LIMITS");
    let expected = format!("127.0.0.1|{}|4|50|4|13|3|4|max_server_connections|0", cluster.port());
    assert_eq!(limits, [expected]);
    // One too many would be refused, and that would be logged.
    assert!(!pgweir.log().contains("no connection to"), "{}", pgweir.log());
}

/// PostgreSQL's own limit: who waits is served once there is room, and the refusals are counted.
#[test]
fn a_server_that_is_full_is_waited_for() {
    // Two are left beside those that are reserved for the superuser, who counts too.
    let cluster = Cluster::builder()
        .setting("max_connections", "5")
        .setting("superuser_reserved_connections", "3")
        .setting("max_wal_senders", "0")
        .start();
    let stage = Stage::on(&cluster, "limit_full", 1, |config| config);
    let stranger = superuser(&cluster, "postgres");
    let mut client = WireClient::open(stage.address()).unwrap();
    let first = [stage.login().startup_message(), query("SELECT 'served'")].concat();
    client.send(&first).unwrap();
    eventually("a refusal", || {
        let log = stage.pgweir.log();
        log.contains("no connection to the server") && log.contains("slots are reserved")
    });
    drop(stranger);
    client.read_until_ready().unwrap();
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"served\"");
    let limits = stage.console("SHOW LIMITS").concat();
    let refused: u32 = limits.rsplit('|').next().unwrap().parse().unwrap();
    assert!(refused > 0, "{limits}");
}

/// One of two that have a connection each gives it up for a third.
fn the_third_waits_for_the_second(pgweir: &Pgweir, role: &str, logins: [Login; 3]) {
    let [mut first, mut second, mut third] =
        logins.map(|login| WireClient::login(pgweir.address(), &login).unwrap());
    let admin = Login::new("admin").password("admin").database("pgweir");
    let mut admin = WireClient::login(pgweir.address(), &admin).unwrap();
    let mut watcher = superuser(&CLUSTER, "postgres");
    let backends = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{role}'");
    first.query("BEGIN");
    second.query("BEGIN");
    third.send(&query("SELECT 'served'")).unwrap();
    eventually("the third to wait", || {
        let pools = admin.query("SHOW POOLS");
        pools.iter().any(|row| row.split('|').nth(3) == Some("1"))
    });
    assert_eq!(watcher.query(&backends), ["2"]);
    second.query("COMMIT");
    let reply = third.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"served\"");
    assert_eq!(watcher.query(&backends), ["2"]);
}

#[test]
fn connections_of_a_database_are_limited_over_its_users() {
    let stage = Stage::with("limit_database", 2, |config| {
        let config = config.pool("max_db_connections", "2").user("guest", "", 2);
        config.user_setting("server_username", "\"limit_database\"")
    });
    let guest = Login::new("guest").database(&stage.name);
    let logins = [stage.login(), guest, stage.login()];
    the_third_waits_for_the_second(&stage.pgweir, &stage.name, logins);
}

/// A pgweir on which a user has two databases, the second with `_too` behind its name, and there is
/// a limit of two over both.
fn two_databases(name: &str, limit: &str) -> Pgweir {
    create_database(&CLUSTER, name);
    let config = trusting(&CLUSTER, name).general(limit, "2").user(name, "", 2);
    let other = format!(
        "\n[pools.{name}_too.users.0]\nusername = '{name}'\npool_size = 2\n\
         [pools.{name}_too.shards.0]\ndatabase = '{name}'\n\
         servers = [['127.0.0.1', {}, 'primary']]\n",
        CLUSTER.port()
    );
    Pgweir::start(PROGRAM, |port| config.text(port) + &other)
}

#[test]
fn connections_of_a_user_are_limited_over_its_databases() {
    let name = "limit_user";
    let pgweir = two_databases(name, "max_user_connections");
    let logins = [name, "limit_user_too", name].map(|database| Login::new(name).database(database));
    the_third_waits_for_the_second(&pgweir, name, logins);
}

/// Before that it is closed to them, like every other place.
#[test]
fn the_reserve_is_for_those_who_have_waited() {
    let stage = Stage::with("limit_reserve", 1, |config| {
        let config = patient(config).general("reserve_pool_size", "1");
        config.general("reserve_pool_timeout", "600000")
    });
    let [mut holder, mut other] = [stage.client(), stage.client()];
    stage.limit_waits(500);
    holder.query("BEGIN");
    assert_eq!(other.try_query("SELECT 1").unwrap_err().sqlstate(), "53300");
    assert_eq!(stage.backends("true"), 1);
    change(&stage, "query_wait_timeout = 500", "query_wait_timeout = 60000");
    change(&stage, "reserve_pool_timeout = 600000", "reserve_pool_timeout = 100");
    assert_eq!(other.query("SELECT 'served'"), ["served"]);
    stage.wait_for_backends(2, "true");
}

#[test]
fn clients_are_limited_over_all_databases() {
    for (limit, message, detail) in [
        ("max_clients", "M=\"sorry, too many clients already\"", "D=\"max_clients is 2.\""),
        ("max_user_client_connections", "M=\"too many clients for user ", "D=\"There may be 2.\""),
    ] {
        let name = format!("limit_{}", limit.len());
        let pgweir = two_databases(&name, limit);
        let databases = [name.clone(), format!("{name}_too")];
        let log_in = |of: usize| {
            WireClient::login(pgweir.address(), &Login::new(&name).database(&databases[of]))
        };
        // Whoever looked whether it is up may still be counted.
        let [first, _second] = [0, 1].map(|of| eventually_some("its place", || log_in(of).ok()));
        for of in [0, 1] {
            let refused = log_in(of).map(drop).unwrap_err().to_string();
            let expected = ["S=\"FATAL\"", "C=\"53300\"", message, detail];
            assert!(expected.iter().all(|part| refused.contains(part)), "{refused}");
        }
        drop(first);
        eventually("room for another", || log_in(1).is_ok());
    }
}

/// Those who say nothing keep out others who have said nothing yet.
#[test]
fn clients_before_their_login_are_limited() {
    let stage = Stage::with("limit_logins", 1, |config| config.general("max_logins", "2"));
    let admin = Login::new("admin").password("admin").database("pgweir");
    let log_in = || WireClient::login(stage.address(), &admin).ok();
    let mut admin = eventually_some("the console", log_in);
    let mut logging_in = |count: usize| {
        let row = format!("login_clients|{count}");
        eventually(&row, || admin.query("SHOW LISTS").contains(&row));
    };
    logging_in(0);
    let silent = [0; 2].map(|_| WireClient::open(stage.address()).unwrap());
    logging_in(2);
    let mut third = WireClient::open(stage.address()).unwrap();
    assert_eq!(third.read_to_end().unwrap()[0].sqlstate(), "53300");
    drop(silent);
    logging_in(0);
    assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
}

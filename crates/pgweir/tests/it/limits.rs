//! Limits of connections, as PostgreSQL sees them.

use pgweir_testkit::frames::query;
use pgweir_testkit::{Cluster, Login, Pgweir, WireClient, eventually};

use crate::stage::{PROGRAM, Stage, create_database, login, superuser, trusting};

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
    // Three are left beside those that are reserved for the superuser.
    let cluster = Cluster::builder()
        .setting("max_connections", "6")
        .setting("superuser_reserved_connections", "3")
        .setting("max_wal_senders", "0")
        .start();
    let neighbours = Neighbours::new(&cluster, "hard", "max_server_connections");
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

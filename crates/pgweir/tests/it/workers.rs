//! Several workers: pools are spread over them, and clients come to the one that has theirs.

use std::collections::BTreeSet;
use std::fs;

use pgweir_testkit::frames::query;
use pgweir_testkit::{Cluster, Login, Pgweir, Signal, WireClient, eventually};

use crate::stage::{CLUSTER, PROGRAM, assert_sound, create_database, login};

/// A pgweir with so many workers, and a pool for each of these databases.
struct Crew {
    pgweir: Pgweir,
    names: Vec<String>,
}

impl Crew {
    fn new(workers: usize, names: &[&str], general: &str) -> Self {
        for name in names {
            create_database(&CLUSTER, name);
        }
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let pgweir = Pgweir::start(PROGRAM, |port| text(port, workers, &names, general));
        Self { pgweir, names }
    }

    fn client(&self, of: usize) -> WireClient {
        match WireClient::login(self.pgweir.address(), &login(&self.names[of])) {
            Ok(client) => client,
            Err(error) => panic!("{error}"),
        }
    }

    fn console(&self, command: &str) -> Vec<String> {
        let login = Login::new("admin").password("secret").database("pgweir");
        WireClient::login(self.pgweir.address(), &login).unwrap().query(command)
    }

    /// The threads of the process that carry traffic.
    fn threads(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pgweir.pid())).unwrap();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
        let names = tasks.filter_map(|task| name(task.unwrap()).ok());
        names.filter(|name| name.starts_with("worker ")).count()
    }
}

/// A configuration of our own dialect.
fn text(port: u16, workers: usize, names: &[String], general: &str) -> String {
    let pool = |name: &String| {
        format!(
            "[pools.{name}.users.0]\nusername = '{name}'\npool_size = 2\n\
             [pools.{name}.shards.0]\nservers = [['127.0.0.1', {}, 'primary']]\n\
             database = '{name}'\n",
            CLUSTER.port()
        )
    };
    let pools: String = names.iter().map(pool).collect();
    format!(
        "config_version = 1\n[general]\nport = {port}\nauth_type = 'trust'\n\
         worker_threads = {workers}\nadmin_username = 'admin'\nadmin_password = 'secret'\n\
         admin_auth_type = 'password'\nconnect_timeout = '30s'\n{general}\n{pools}"
    )
}

/// All pools serve at the same time, and every row is its client's.
#[test]
fn each_pool_serves_its_clients() {
    let crew = Crew::new(3, &["crew_a", "crew_b", "crew_c", "crew_d"], "");
    let mut clients: Vec<_> = (0..24).map(|n| (n, crew.client(n % 4))).collect();
    for round in 0..20 {
        for (n, client) in &mut clients {
            let tag = query(&format!("SELECT current_database(), '{n}/{round}'"));
            client.send(&tag).unwrap();
        }
        for (n, client) in &mut clients {
            let reply = client.read_until_ready().unwrap();
            let expected = format!("DataRow \"{}\" \"{n}/{round}\"", crew.names[*n % 4]);
            assert_eq!(reply[1].to_string(), expected);
        }
    }
    assert_eq!(crew.threads(), 3);
    let pools = crew.console("SHOW POOLS");
    let first = |row: &String| row.split('|').next().unwrap().to_owned();
    let named: Vec<_> = pools.iter().map(first).collect();
    assert_eq!(named, ["crew_a", "crew_b", "crew_c", "crew_d"]);
    assert_eq!(crew.console("SHOW CLIENTS").len(), 25);
    assert_sound(&crew.pgweir);
}

/// A number that is told to clients names one of them, on whatever worker.
#[test]
fn a_cancel_reaches_its_client_and_no_other() {
    let crew = Crew::new(2, &["crew_cancel_a", "crew_cancel_b"], "");
    let mut clients: Vec<_> = (0..4).map(|n| crew.client(n % 2)).collect();
    let numbers: BTreeSet<_> =
        clients.iter().map(|client| client.cancel_key().unwrap().pid).collect();
    assert_eq!(numbers.len(), clients.len());
    for client in &mut clients {
        client.send(&query("SELECT pg_sleep(60)")).unwrap();
    }
    eventually("all of them to run", || {
        let servers = crew.console("SHOW SERVERS");
        servers.iter().filter(|row| row.contains("|active|")).count() == clients.len()
    });
    for at in (0..clients.len()).rev() {
        clients[at].cancel_key().unwrap().cancel(crew.pgweir.address()).unwrap();
        let reply = clients[at].read_until_ready().unwrap();
        assert_eq!(reply[1].sqlstate(), "57014", "{reply:?}");
    }
    assert_sound(&crew.pgweir);
}

/// A limit of the server's holds over all workers, and nobody starves beside a busy neighbour.
#[test]
fn a_limit_holds_over_all_workers() {
    let names = ["crew_limit_a", "crew_limit_b"];
    let crew = Crew::new(2, &names, "max_server_connections = 2");
    // One too many would be refused here.
    let mut watcher = crate::stage::superuser(&CLUSTER, "postgres");
    for _ in 0..10 {
        let mut clients: Vec<_> = (0..8).map(|n| crew.client(n % 2)).collect();
        for client in &mut clients {
            client.send(&query("SELECT pg_sleep(0.01)")).unwrap();
        }
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE usename LIKE 'crew_limit%'";
        let used: usize = watcher.query(sql)[0].parse().unwrap();
        assert!(used <= 2, "{used} connections");
        for client in &mut clients {
            let reply = client.read_until_ready().unwrap();
            assert_eq!(reply.last().unwrap().to_string(), "ReadyForQuery I");
        }
    }
    assert_sound(&crew.pgweir);
}

/// Pools come and go; those that stay keep their clients, and those that are new are served.
#[test]
fn a_reload_reaches_all_workers() {
    let crew = Crew::new(2, &["crew_reload_a", "crew_reload_b"], "");
    let mut clients = [crew.client(0), crew.client(1)];
    clients.iter_mut().for_each(|client| drop(client.query("BEGIN")));
    create_database(&CLUSTER, "crew_reload_c");
    let names = ["crew_reload_c".to_owned(), crew.names[0].clone(), crew.names[1].clone()];
    let config = text(crew.pgweir.port(), 2, &names, "");
    fs::write(crew.pgweir.config_path(), config).unwrap();
    crew.pgweir.signal(Signal::HUP);
    eventually("the file to be loaded", || crew.pgweir.log().contains("was loaded again"));
    let mut new = WireClient::login(crew.pgweir.address(), &login(&names[0])).unwrap();
    assert_eq!(new.query("SELECT current_database()"), [names[0].clone()]);
    for (client, name) in clients.iter_mut().zip(&crew.names) {
        assert_eq!(&client.query("SELECT current_database()"), std::slice::from_ref(name));
        client.query("COMMIT");
    }
    let kept = [names[0].clone(), names[2].clone()];
    fs::write(crew.pgweir.config_path(), text(crew.pgweir.port(), 2, &kept, "")).unwrap();
    crew.pgweir.signal(Signal::HUP);
    let [mut gone, mut stays] = clients;
    let farewell = gone.read_to_end().unwrap();
    assert_eq!(farewell[0].sqlstate(), "57P01", "{farewell:?}");
    assert_eq!(stays.query("SELECT 1"), ["1"]);
    assert_sound(&crew.pgweir);
}

/// The process ends when the last client of the last worker has finished.
#[test]
fn sigterm_waits_for_the_clients_of_all_workers() {
    let crew = Crew::new(3, &["crew_drain_a", "crew_drain_b", "crew_drain_c"], "");
    let mut clients: Vec<_> = (0..3).map(|of| crew.client(of)).collect();
    clients.iter_mut().for_each(|client| drop(client.query("BEGIN")));
    crew.pgweir.terminate();
    for client in &mut clients {
        assert!(crew.pgweir.is_running());
        assert_eq!(client.query("SELECT 1"), ["1"]);
        client.query("COMMIT");
        let farewell = client.read_to_end().unwrap();
        assert_eq!(farewell[0].sqlstate(), "57P01", "{farewell:?}");
    }
    assert!(crew.pgweir.wait().success());
}

/// All databases of a cluster, each on the worker that its name says.
#[test]
fn unnamed_databases_are_spread_over_the_workers() {
    let cluster = Cluster::start();
    let names: Vec<_> = (0..6).map(|n| format!("crew_wild_{n}")).collect();
    crate::stage::superuser(&cluster, "postgres").query("CREATE ROLE crew_wild LOGIN");
    names.iter().for_each(|name| create_database(&cluster, name));
    let pgweir = Pgweir::start(PROGRAM, |port| {
        text(port, 3, &[], "")
            + &format!(
                "[pools.\"*\".users.0]\nusername = 'crew_wild'\npool_size = 2\n\
                 [pools.\"*\".shards.0]\nservers = [['127.0.0.1', {}, 'primary']]\n\
                 database = '*'\n",
                cluster.port()
            )
    });
    let login = |name: &str| Login::new("crew_wild").database(name);
    let mut clients: Vec<_> = names
        .iter()
        .chain(&names)
        .map(|name| (name, WireClient::login(pgweir.address(), &login(name)).unwrap()))
        .collect();
    for (name, client) in &mut clients {
        assert_eq!(client.query("SELECT current_database()"), [(*name).clone()]);
    }
    assert_sound(&pgweir);
}

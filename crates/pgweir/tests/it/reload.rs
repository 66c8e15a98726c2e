//! SIGHUP and `autoreload`: another configuration while clients are connected.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;

use pgweir_testkit::frames::query;
use pgweir_testkit::{
    Cluster, Login, Pgweir, PoolerConfig, Signal, Stranger, WireClient, eventually, eventually_some,
};

use crate::stage::{
    CLUSTER, PROGRAM, Stage, assert_sound, create_database, login, superuser, trusting,
};

/// Puts something else into the configuration of a stage, which goes on with that.
pub(crate) fn change(stage: &Stage, from: &str, to: &str) {
    let text = fs::read_to_string(stage.pgweir.config_path()).unwrap();
    assert!(text.contains(from), "no {from:?} in {text}");
    reload(&stage.pgweir, &text.replace(from, to));
    // All workers are asked, each behind what it was told before.
    stage.console("SHOW VERSION");
}

/// Writes another configuration and asks pgweir to load it.
pub(crate) fn reload(pgweir: &Pgweir, text: &str) {
    let before = loaded(pgweir);
    fs::write(pgweir.config_path(), text).unwrap();
    pgweir.signal(Signal::HUP);
    eventually("the file to be loaded again", || loaded(pgweir) > before);
}

/// How often it was loaded again, or could not be.
fn loaded(pgweir: &Pgweir) -> usize {
    pgweir.log().matches("was loaded again").count() + pgweir.log().matches("not loaded").count()
}

fn config(name: &str, pool_size: u32) -> PoolerConfig {
    trusting(&CLUSTER, name).user(name, "", pool_size)
}

/// A transaction, a queue and an idle client go through it; the pool is larger behind it.
#[test]
fn nobody_is_dropped_whose_pool_stays() {
    let stage = Stage::new("reload_stays", 1);
    let (mut holder, mut waiter, mut idle) = (stage.client(), stage.client(), stage.client());
    idle.query("SELECT 1");
    holder.query("BEGIN");
    let own = holder.query("SELECT pg_backend_pid()");
    waiter.send(&query("SELECT 'served'")).unwrap();
    stage.wait_for_waiters(1);
    reload(&stage.pgweir, &config(&stage.name, 2).text(stage.pgweir.port()));
    let reply = waiter.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"served\"");
    assert_eq!(holder.query("SELECT pg_backend_pid()"), own);
    holder.query("COMMIT");
    assert_eq!(idle.query("SELECT 2"), ["2"]);
}

/// A configuration of pools that lead to the databases of their names, with one user for all.
fn pools(names: &[&str], server_port: u16, port: u16) -> String {
    let pool = |name: &&str| {
        format!(
            "[pools.'{name}'.users.0]\nusername = 'reload_north'\npool_size = 1\n\
             [pools.'{name}'.shards.0]\ndatabase = '{name}'\n\
             servers = [['127.0.0.1', {server_port}, 'primary']]\n"
        )
    };
    let pools: String = names.iter().map(pool).collect();
    format!(
        "[general]\nhost = '127.0.0.1'\nport = {port}\nauth_type = 'trust'\n\
         connect_timeout = 30000\n{pools}"
    )
}

/// Databases that the configuration does not name: their clients move like others, stay when their
/// database is named, and are told when they are served no more.
#[test]
fn clients_of_a_pool_for_any_database_stay_as_long_as_it_does() {
    let other = Cluster::start();
    for cluster in [&*CLUSTER, &other] {
        ["reload_north", "reload_south"].iter().for_each(|name| create_database(cluster, name));
    }
    let pgweir = Pgweir::start(PROGRAM, |port| pools(&["*"], CLUSTER.port(), port));
    let load = |names: &[&str]| reload(&pgweir, &pools(names, other.port(), pgweir.port()));
    let log_in = |database| {
        let login = login("reload_north").database(database);
        WireClient::login(pgweir.address(), &login)
    };
    let place = |client: &mut WireClient| {
        client.query("SELECT current_database(), current_setting('port')").concat()
    };
    let north = |cluster: &Cluster| format!("reload_north|{}", cluster.port());
    let south = |cluster: &Cluster| format!("reload_south|{}", cluster.port());

    let [mut alice, mut bob] =
        ["reload_north", "reload_south"].map(|database| log_in(database).unwrap());
    alice.query("BEGIN");
    assert_eq!((place(&mut alice), place(&mut bob)), (north(&CLUSTER), south(&CLUSTER)));
    load(&["*"]);
    assert_eq!((place(&mut alice), place(&mut bob)), (north(&CLUSTER), south(&other)));
    alice.query("COMMIT");
    assert_eq!(place(&mut alice), north(&other));

    load(&["*", "reload_north"]);
    alice.query("BEGIN");
    assert_eq!((place(&mut alice), place(&mut bob)), (north(&other), south(&other)));
    load(&["reload_north"]);
    assert_eq!(bob.read_to_end().unwrap()[0].sqlstate(), "57P01");
    assert!(log_in("reload_south").is_err());
    assert_eq!(place(&mut alice), north(&other));
    alice.query("COMMIT");
    assert_eq!(place(&mut alice), north(&other));
    assert_sound(&pgweir);
}

/// Clients go on where the servers are now, between two transactions.
#[test]
fn clients_move_to_another_server() {
    let other = Cluster::start();
    let stage = Stage::new("reload_moves", 1);
    create_database(&other, &stage.name);
    let mut client = stage.client();
    client.query("BEGIN");
    let moved = config(&stage.name, 1).server_port(other.port());
    reload(&stage.pgweir, &moved.text(stage.pgweir.port()));
    assert_eq!(client.query("SHOW port"), [CLUSTER.port().to_string()]);
    client.query("COMMIT");
    assert_eq!(client.query("SHOW port"), [other.port().to_string()]);
    stage.wait_for_backends(0, "true");
}

/// A mistake changes nothing, and is told with file and line.
#[test]
fn a_file_that_is_wrong_leaves_all_as_it_was() {
    let stage = Stage::new("reload_wrong", 1);
    let mut client = stage.client();
    let text = config(&stage.name, 2).pool("pool_modus", "1").text(stage.pgweir.port());
    reload(&stage.pgweir, &text);
    let log = stage.pgweir.log();
    assert!(log.contains("pgweir.toml:") && log.contains("pool_mode"), "{log}");
    assert_eq!(client.query("SELECT 1"), ["1"]);
    assert_eq!(stage.client().query("SELECT 2"), ["2"]);
}

/// A user that is taken out is told, and is let in no more.
#[test]
fn clients_of_a_user_that_is_gone_are_told() {
    let stage = Stage::new("reload_gone", 1);
    let mut client = stage.client();
    reload(
        &stage.pgweir,
        &config(&stage.name, 1)
            .text(stage.pgweir.port())
            .replace(&format!("username = \"{}\"", stage.name), "username = \"somebody\""),
    );
    let last_words = client.read_to_end().unwrap();
    assert_eq!(last_words[0].sqlstate(), "57P01");
    assert!(WireClient::login(stage.address(), &stage.login()).is_err());
}

/// Who comes proves who it is by what holds now; who is in stays in, on the server that there is.
#[test]
fn another_password_is_for_those_who_come() {
    let name = "reload_password";
    create_database(&CLUSTER, name);
    // As PostgreSQL stores one.
    let mut watcher = superuser(&CLUSTER, "postgres");
    watcher.query(&format!("ALTER ROLE {name} PASSWORD 'third'"));
    let stored = "SELECT rolpassword FROM pg_authid WHERE rolname = 'reload_password'";
    let stored = watcher.query(stored).concat();
    let config = |password: &str| {
        PoolerConfig::new(name, &CLUSTER)
            .general("auth_type", "\"scram-sha-256\"")
            .general("connect_timeout", "30000")
            .user(name, password, 1)
            .user_setting("server_password", "\"nobody asks for it\"")
    };
    let pgweir = Pgweir::start(PROGRAM, |port| config("first").text(port));
    let log_in = |password| WireClient::login(pgweir.address(), &login(name).password(password));
    let mut client = log_in("first").unwrap();
    let own = client.query("SELECT pg_backend_pid()");
    for (written, password, before) in
        [("second", "second", "first"), (stored.as_str(), "third", "second")]
    {
        reload(&pgweir, &config(written).text(pgweir.port()));
        let refused = eventually_some("a refusal", || log_in(before).err()).to_string();
        assert!(refused.contains("C=\"28P01\""), "{refused}");
        assert_eq!(log_in(password).unwrap().query("SELECT pg_backend_pid()"), own);
        assert_eq!(client.query("SELECT pg_backend_pid()"), own);
    }
}

/// The same on the console. If it is somebody else's now, who is there is told.
#[test]
fn another_account_of_the_console_is_for_those_who_come() {
    let stage = Stage::new("reload_admin", 1);
    let log_in = |name: &str, password: &str| {
        let login = Login::new(name).password(password).database("pgweir");
        WireClient::login(stage.address(), &login)
    };
    let account = |name: &str, password: &str| {
        let config = config(&stage.name, 1).general("admin_username", &format!("{name:?}"));
        config.general("admin_password", &format!("{password:?}")).text(stage.pgweir.port())
    };
    let mut admin = log_in("admin", "admin").unwrap();
    reload(&stage.pgweir, &account("admin", "other"));
    assert_eq!(admin.query("SHOW VERSION").len(), 1);
    assert!(log_in("admin", "admin").unwrap_err().to_string().contains("28P01"));
    log_in("admin", "other").unwrap();
    reload(&stage.pgweir, &account("chief", "other"));
    assert_eq!(admin.read_to_end().unwrap()[0].sqlstate(), "57P01");
    assert!(log_in("admin", "other").unwrap_err().to_string().contains("C=\"28"));
    log_in("chief", "other").unwrap();
}

/// What is logged, and how.
#[test]
fn the_log_goes_on_in_another_way() {
    let stage = Stage::with("reload_log", 1, |config| {
        config.general("log_client_connections", "true").general("log_level", "\"error\"")
    });
    let lines = |what: &str| {
        let log = stage.pgweir.log();
        let its = |line: &&str| line.contains(what) && line.contains("reload_log/");
        log.lines().filter(its).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut logged_in = 0;
    for (form, level) in [("json", "info"), ("text", "warn"), ("text", "info")] {
        let text = config(&stage.name, 1)
            .general("log_client_connections", "true")
            .general("log_format", &format!("{form:?}"))
            .general("log_level", &format!("{level:?}"));
        fs::write(stage.pgweir.config_path(), text.text(stage.pgweir.port())).unwrap();
        // The line that says so is one that may be left out.
        stage.console("RELOAD");
        stage.client();
        logged_in += usize::from(level == "info");
        eventually("clients to be told of", || lines("logged in").len() == logged_in);
        let stranger = format!("{form}_{level}");
        WireClient::login(stage.address(), &login(&stage.name).parameter("user", &stranger))
            .unwrap_err();
        let refusal = eventually_some("the refusal", || lines(&stranger).pop());
        assert!(refusal.contains("login refused"), "{refusal}");
        assert_eq!(refusal.starts_with('{'), form == "json", "{refusal}");
    }
}

/// Kubernetes changes a file by leading a link on the way to it elsewhere.
#[test]
fn a_file_behind_a_link_is_looked_at() {
    create_database(&CLUSTER, "reload_link");
    let config = |size| config("reload_link", size).general("autoreload", "50");
    let pgweir = Pgweir::start(PROGRAM, |port| config(1).text(port));
    let path = pgweir.config_path();
    let folder = path.parent().unwrap();
    for version in ["1", "2"] {
        let text = config(version.parse().unwrap()).text(pgweir.port());
        fs::create_dir(folder.join(version)).unwrap();
        fs::write(folder.join(version).join("pgweir.toml"), text).unwrap();
    }
    symlink("1", folder.join("..data")).unwrap();
    fs::remove_file(&path).unwrap();
    symlink("..data/pgweir.toml", &path).unwrap();
    assert_eq!(loaded(&pgweir), 0);
    symlink("2", folder.join("..next")).unwrap();
    fs::rename(folder.join("..next"), folder.join("..data")).unwrap();
    eventually("the file to be loaded again", || loaded(&pgweir) == 1);
    let mut clients =
        [0; 2].map(|_| WireClient::login(pgweir.address(), &login("reload_link")).unwrap());
    // Two at a time are served now.
    clients.iter_mut().for_each(|client| drop(client.query("BEGIN")));
}

/// The console reloads too, and says what is wrong with the file.
#[test]
fn the_console_reloads() {
    let stage = Stage::new("reload_console", 1);
    let login = Login::new("admin").password("admin").database("pgweir");
    let mut admin = stage.client_as(&login);
    let tag = |admin: &mut WireClient| {
        admin.send(&query("RELOAD")).unwrap();
        admin.read_until_ready().unwrap().remove(0)
    };
    let size = |admin: &mut WireClient| admin.query("SHOW DATABASES").concat();
    fs::write(stage.pgweir.config_path(), config(&stage.name, 7).text(stage.pgweir.port()))
        .unwrap();
    assert_eq!(tag(&mut admin).to_string(), "CommandComplete \"RELOAD\"");
    eventually("the new size", || size(&mut admin).contains("|7|"));
    fs::write(stage.pgweir.config_path(), "[genral]\n").unwrap();
    let refused = tag(&mut admin);
    assert_eq!(refused.sqlstate(), "F0000");
    assert!(refused.to_string().contains("pgweir.toml:1"), "{refused}");
    assert!(size(&mut admin).contains("|7|"));
}

/// Only SIGHUP began to look: with RELOAD the setting was shown, and nothing was done.
#[test]
fn the_console_takes_autoreload_up() {
    let stage = Stage::new("reload_looks", 1);
    let config = |size| config(&stage.name, size).general("autoreload", "50");
    let write = |size| {
        fs::write(stage.pgweir.config_path(), config(size).text(stage.pgweir.port())).unwrap();
    };
    write(2);
    stage.console("RELOAD");
    write(3);
    eventually("the file to be looked at", || loaded(&stage.pgweir) == 2);
    assert!(stage.console("SHOW DATABASES").concat().contains("|3|"));
}

/// The one setting that takes a restart says so, and what holds is shown.
#[test]
fn other_workers_take_a_restart() {
    let threads =
        |name: &str, count: u32| config(name, 1).general("worker_threads", &count.to_string());
    let stage = Stage::with("reload_workers", 1, |config| config.general("worker_threads", "2"));
    let warning = "general.worker_threads: 3 takes a restart: there are 2 until then";
    for (count, warnings) in [(3, 1), (2, 1), (3, 2)] {
        reload(&stage.pgweir, &threads(&stage.name, count).text(stage.pgweir.port()));
        let log = stage.pgweir.log();
        assert_eq!(log.matches(warning).count(), warnings, "{log}");
        let shown = stage.console("SHOW CONFIG");
        let row = shown.iter().find(|row| row.starts_with("general.worker_threads|")).unwrap();
        assert_eq!(row, "general.worker_threads|2|4|no");
    }
}

/// Whoever is connected stays, wherever clients come in from now on.
#[test]
fn another_port_is_listened_on() {
    let stage = Stage::new("reload_port", 1);
    let mut client = stage.client();
    let elsewhere = Pgweir::start(PROGRAM, |port| config(&stage.name, 1).text(port));
    let port = elsewhere.port();
    elsewhere.quit();
    elsewhere.wait();
    reload(&stage.pgweir, &config(&stage.name, 1).text(port));
    let moved = SocketAddr::from(([127, 0, 0, 1], port));
    let mut newcomer = WireClient::login(moved, &stage.login()).unwrap();
    assert_eq!(newcomer.query("SELECT 'came in elsewhere'"), ["came in elsewhere"]);
    assert_eq!(client.query("SELECT 'still here'"), ["still here"]);
    eventually("the old port to be closed", || TcpStream::connect(stage.address()).is_err());
    reload(&stage.pgweir, &config(&stage.name, 1).text(stage.pgweir.port()));
    assert_eq!(stage.client().query("SELECT 'and back'"), ["and back"]);
}

/// The configuration of a stage that is listened on at all addresses of this machine.
fn everywhere(stage: &Stage, pool_size: u32) -> String {
    let config = config(&stage.name, pool_size)
        .general("allow_trust_anywhere", "true")
        .general("admin_username", "\"admin\"")
        .general("admin_password", "\"admin\"");
    let text = config.text(stage.pgweir.port());
    text.replacen("host = \"127.0.0.1\"", "host = \"0.0.0.0\"", 1)
}

/// Another address of this machine with the stage's port.
fn neighbour(stage: &Stage) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 2], stage.pgweir.port()))
}

/// The old address is in the way of the new one, and nobody who is in notices that it goes.
#[test]
fn another_address_of_the_same_port_is_listened_on() {
    let stage = Stage::new("reload_address", 1);
    let [mut holder, mut waiter, mut idle] = [stage.client(), stage.client(), stage.client()];
    TcpStream::connect(neighbour(&stage)).unwrap_err();
    for (text, reachable) in
        [(everywhere(&stage, 1), true), (config(&stage.name, 1).text(stage.pgweir.port()), false)]
    {
        holder.query("BEGIN");
        let own = holder.query("SELECT pg_backend_pid()");
        waiter.send(&query("SELECT 'served'")).unwrap();
        stage.wait_for_waiters(1);
        let mut silent = WireClient::open(stage.address()).unwrap();
        reload(&stage.pgweir, &text);
        assert!(!stage.pgweir.log().contains("not loaded"), "{}", stage.pgweir.log());
        assert_eq!(holder.query("SELECT pg_backend_pid()"), own);
        holder.query("COMMIT");
        assert_eq!(waiter.read_until_ready().unwrap()[1].to_string(), "DataRow \"served\"");
        assert_eq!(idle.query("SELECT 'same session'"), ["same session"]);
        silent.send(&stage.login().startup_message()).unwrap();
        let greeting = silent.read_until_ready().unwrap();
        assert_eq!(greeting.last().unwrap().to_string(), "ReadyForQuery I");
        assert_eq!(stage.client().query("SELECT 'here'"), ["here"]);
        let elsewhere = WireClient::login(neighbour(&stage), &stage.login());
        assert_eq!(elsewhere.is_ok(), reachable, "{elsewhere:?}");
    }
}

/// Who has connected when the old address is closed, and has not been taken yet, is taken then.
#[test]
fn who_is_at_the_door_is_let_in() {
    let stage = Stage::new("reload_door", 2);
    for text in [everywhere(&stage, 2), config(&stage.name, 2).text(stage.pgweir.port())] {
        let before = loaded(&stage.pgweir);
        stage.pgweir.signal(Signal::STOP);
        let mut clients = [0; 20].map(|_| WireClient::open(stage.address()).unwrap());
        let first = [stage.login().startup_message(), query("SELECT 'in'")].concat();
        clients.iter_mut().for_each(|client| client.send(&first).unwrap());
        fs::write(stage.pgweir.config_path(), text).unwrap();
        stage.pgweir.signal(Signal::HUP);
        stage.pgweir.signal(Signal::CONT);
        for client in &mut clients {
            client.read_until_ready().unwrap();
            assert_eq!(client.read_until_ready().unwrap()[1].to_string(), "DataRow \"in\"");
        }
        eventually("the file to be loaded again", || loaded(&stage.pgweir) > before);
        assert!(!stage.pgweir.log().contains("not loaded"), "{}", stage.pgweir.log());
    }
}

/// Where it had to be closed in vain the old address is opened again.
#[test]
fn an_address_that_cannot_be_had_changes_nothing() {
    let stage = Stage::new("reload_taken", 1);
    let mut client = stage.client();
    let stranger = Stranger::at(neighbour(&stage));
    reload(&stage.pgweir, &everywhere(&stage, 7));
    let expected = format!("cannot listen on 0.0.0.0:{}: Address", stage.pgweir.port());
    assert!(stage.pgweir.log().contains(&expected), "{}", stage.pgweir.log());
    assert_eq!(client.query("SELECT 'still here'"), ["still here"]);
    assert_eq!(stage.client().query("SELECT 'came in'"), ["came in"]);
    assert!(!stage.console("SHOW DATABASES").concat().contains("|7|"));
    drop(stranger);
    reload(&stage.pgweir, &everywhere(&stage, 7));
    assert!(WireClient::login(neighbour(&stage), &stage.login()).is_ok());
    assert_eq!(client.query("SELECT 'still here'"), ["still here"]);
}

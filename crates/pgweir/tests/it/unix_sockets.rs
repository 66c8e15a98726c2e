//! Unix sockets on both sides: clients of this machine, and servers of this machine.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{self, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use pgweir_testkit::frames::query;
use pgweir_testkit::{
    PATIENCE, Pgweir, PoolerConfig, Signal, WireClient, eventually, eventually_some,
};
use rustix::process::{Pid, geteuid, kill_process};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

use crate::check::pgweir;
use crate::clients::{self, run};
use crate::reload::change;
use crate::stage::{self, CLUSTER, PROGRAM, Stage};

/// A folder whose path is short enough for a socket.
fn folder() -> TempDir {
    tempfile::Builder::new().prefix("pgweir-").tempdir_in("/tmp").unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A stage that can be reached through a folder too, or through a name.
fn reachable(name: &str, pool_size: u32, host: &str) -> Stage {
    let stage = Stage::with(name, pool_size, |config| {
        config.general("unix_socket_dir", &format!("{host:?}"))
    });
    wait_for_socket(&stage);
    stage
}

/// That it can be reached over TCP does not say that the other socket is there yet.
fn wait_for_socket(stage: &Stage) {
    eventually("all sockets to be there", || stage.pgweir.log().contains(" listens on "));
}

/// A stage whose server is reached through its unix socket.
fn reaching(name: &str, pool_size: u32) -> Stage {
    Stage::with(name, pool_size, |config| config.server_host(text(CLUSTER.socket_dir())))
}

/// A program of PostgreSQL that connects as the stage's role.
fn client(stage: &Stage, name: &str, host: &str) -> Command {
    let mut command = clients::client(stage, name);
    command.env("PGHOST", host);
    command
}

#[test]
fn clients_of_this_machine() {
    let folder = folder();
    let stage = reachable("unix_clients", 2, text(folder.path()));
    let socket = folder.path().join(format!(".s.PGSQL.{}", stage.pgweir.port()));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o777);

    // Both ways in at the same time.
    let psql = |sql: &str| run(client(&stage, "psql", text(folder.path())).args(["-XAtqc", sql]));
    assert_eq!(psql("SELECT 'through a file'"), "through a file\n");
    assert_eq!(stage.client().query("SELECT 'through a port'"), ["through a port"]);
    let long = psql("SELECT repeat('x', 20000000)");
    assert_eq!(long.trim_end().len(), 20_000_000);

    // Enough of them that replies go out in one call.
    let pgbench =
        |arguments: &[&str]| run(client(&stage, "pgbench", text(folder.path())).args(arguments));
    pgbench(&["-i", "-q", "-s", "1"]);
    let said = pgbench(&["-n", "-j", "2", "-c", "16", "-t", "50", "-M", "extended"]);
    assert!(said.contains("number of failed transactions: 0 (0.000%)"), "{said}");

    let mut idle = UnixStream::connect(&socket).unwrap();
    idle.write_all(&stage.login().startup_message()).unwrap();
    let port = stage.pgweir.port();
    let row = format!("|unix|{port}|unix|{port}|");
    eventually("a client without an address", || {
        stage.console("SHOW CLIENTS").iter().any(|client| client.contains(&row))
    });

    stage.pgweir.terminate();
    assert!(stage.pgweir.wait().success());
    assert!(!socket.exists());
}

#[test]
fn a_name_without_a_file() {
    let name = format!("@pgweir-it-{}", std::process::id());
    let stage = reachable("unix_abstract", 1, &name);
    let said = run(client(&stage, "psql", &name).args(["-XAtqc", "SELECT 'through a name'"]));
    assert_eq!(said, "through a name\n");

    // Servers may have such a name too: here it is another pgweir's.
    let config = stage::trusting(&CLUSTER, &stage.name).server_port(stage.pgweir.port());
    let config = config.server_host(&name).user(&stage.name, "", 1);
    let front = Pgweir::start(PROGRAM, |port| config.text(port));
    let mut client = WireClient::login(front.address(), &stage.login()).unwrap();
    assert_eq!(client.query("SELECT 'through two'"), ["through two"]);
}

#[test]
fn servers_of_this_machine() {
    let stage = reaching("unix_servers", 2);
    let mut client = stage.client();
    assert_eq!(
        client.query("SELECT client_addr FROM pg_stat_activity WHERE pid = pg_backend_pid()"),
        [""]
    );
    assert_eq!(client.query("SELECT length(repeat('x', 20000000))"), ["20000000"]);
    let mut clients: Vec<_> = (0..20).map(|_| stage.client()).collect();
    for _ in 0..20 {
        for client in &mut clients {
            client.send(&query("SELECT 'its turn'")).unwrap();
        }
        for client in &mut clients {
            let reply = client.read_until_ready().unwrap();
            assert_eq!(reply[1].to_string(), "DataRow \"its turn\"");
        }
    }
    let unix = format!("|unix|{}|", CLUSTER.port());
    let servers = stage.console("SHOW SERVERS");
    assert!(!servers.is_empty() && servers.iter().all(|row| row.contains(&unix)), "{servers:?}");
}

/// Whoever came through the old folder stays; its file goes.
#[test]
fn another_folder_is_listened_in() {
    let folders = [folder(), folder()];
    let [first, second] = folders.each_ref().map(|folder| text(folder.path()));
    let stage = reachable("unix_moves", 1, first);
    let file = |folder: &str| Path::new(folder).join(format!(".s.PGSQL.{}", stage.pgweir.port()));
    let mut early = UnixStream::connect(file(first)).unwrap();
    early.set_read_timeout(Some(PATIENCE)).unwrap();
    early.write_all(&stage.login().startup_message()).unwrap();
    wait_for_ready(&mut early);
    change(&stage, &format!("{first:?}"), &format!("{second:?}"));
    assert!(!file(first).exists());
    let said = run(client(&stage, "psql", second).args(["-XAtqc", "SELECT 'through the new one'"]));
    assert_eq!(said, "through the new one\n");
    early.write_all(&query("SELECT 1")).unwrap();
    wait_for_ready(&mut early);
    // With none there is only the port.
    change(&stage, &format!("{second:?}"), "\"\"");
    assert!(!file(second).exists());
    assert_eq!(stage.client().query("SELECT 'through a port'"), ["through a port"]);
}

/// Reads up to the end of a reply.
fn wait_for_ready(client: &mut UnixStream) {
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(b"Z\0\0\0\x05I") {
        client.read_exact(&mut byte).unwrap();
        said.extend(byte);
    }
}

/// And nobody else, whatever name they give.
#[test]
fn who_runs_it_may_use_the_console() {
    let folder = folder();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let stage = reachable("unix_console", 1, text(folder.path()));
    let psql = || {
        let mut psql = client(&stage, "psql", text(folder.path()));
        psql.args(["-XAtwc", "SHOW VERSION"]).env("PGDATABASE", "pgweir").env("PGUSER", "any");
        psql
    };
    assert!(run(&mut psql()).starts_with("pgweir "));
    if geteuid().is_root() {
        let said = psql().uid(65_534).output().unwrap();
        let complaint = String::from_utf8_lossy(&said.stderr);
        assert!(complaint.contains("no pool for database \"pgweir\""), "{complaint}");
    }
}

#[test]
fn cancels_take_the_same_way() {
    let folder = folder();
    let stage = Stage::with("unix_cancel", 1, |config| {
        let config = config.general("unix_socket_dir", &format!("{:?}", folder.path()));
        config.server_host(text(CLUSTER.socket_dir()))
    });
    wait_for_socket(&stage);
    let mut sleeper = client(&stage, "psql", text(folder.path()));
    let sleeper = sleeper.args(["-XAtqc", "SELECT pg_sleep(600)"]);
    let sleeper = sleeper.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    stage.wait_for_backends(1, "wait_event = 'PgSleep'");
    kill_process(Pid::from_child(&sleeper), Signal::INT).unwrap();
    let said = sleeper.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(complaint.contains("canceling statement due to user request"), "{complaint}");
}

/// `check --connect` and `init` reach a server through a folder and through a name; here the server
/// is another pgweir.
#[test]
fn tools_take_the_same_way() {
    let folder = folder();
    let abstract_name = format!("@pgweir-tools-{}", std::process::id());
    let hosts = [("tools_file", text(folder.path())), ("tools_name", &abstract_name)];
    for (name, host) in hosts {
        let stage = reachable(name, 1, host);
        let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
        let config = config.server_host(host).server_port(stage.pgweir.port());
        let file = folder.path().join("pgweir.toml");
        fs::write(&file, config.text(6432)).unwrap();
        let (code, said, _) = pgweir(&["check", "--connect", text(&file)]);
        assert!(said.contains(&format!(" {name} as {name}: ok, PostgreSQL ")), "{said}");
        assert_eq!(code, Some(0), "{said}");

        let (port, encoded) = (stage.pgweir.port(), host.replace('@', "%40"));
        let url = format!("postgres://{name}@/{name}?host={encoded}&port={port}");
        let (code, written, said) = pgweir(&["init", &url]);
        assert_eq!(code, Some(0), "{said}");
        assert!(written.contains(&format!("servers = [[\"{host}\", {port}, ")), "{written}");
    }
}

/// Where TCP would let a connection wait, the kernel refuses one over a unix socket for a moment.
#[test]
fn a_server_whose_queue_is_full_is_waited_for() {
    let name = format!("pgweir-queue-{}", std::process::id());
    let address = format!("\0{name}/.s.PGSQL.5432");
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(&address).unwrap()).unwrap();
    // One connection fits in a queue of none.
    listener.listen(0).unwrap();
    let address = net::SocketAddr::from_abstract_name(&address[1..]).unwrap();
    let stranger = UnixStream::connect_addr(&address).unwrap();

    let stage = Stage::with("unix_queue", 1, |config| {
        config.server_host(&format!("@{name}")).server_port(5432)
    });
    let mut client = WireClient::open(stage.address()).unwrap();
    client.send(&stage.login().startup_message()).unwrap();
    stage.wait_for_logins(1);
    listener.set_nonblocking(true).unwrap();
    drop((stranger, listener.accept().unwrap()));
    let (mut server, _) = eventually_some("a connection", || listener.accept().ok());
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    server.read_exact(&mut [0; 8]).unwrap();
    assert!(!stage.pgweir.log().contains("no connection to"), "{}", stage.pgweir.log());
}

#[test]
fn a_socket_that_is_missing_is_named() {
    let stage = Stage::with("unix_missing", 1, |config: PoolerConfig| {
        config.server_host("/nonexistent").server_port(5432).general("query_wait_timeout", "300")
    });
    let mut client = WireClient::open(stage.address()).unwrap();
    client.send(&stage.login().startup_message()).unwrap();
    let refusal = client.read_to_end().unwrap().pop().unwrap();
    assert_eq!(refusal.sqlstate(), "57P03");
    let detail = refusal.field(b'D').unwrap();
    assert!(detail.contains("/nonexistent/.s.PGSQL.5432 failed: No such file"), "{detail}");
}

#[test]
fn what_cannot_be_listened_on_is_refused() {
    let folder = folder();
    let first = reachable("unix_taken", 1, text(folder.path()));
    let port = first.pgweir.port();
    let refused = |host: &str| {
        let config = stage::trusting(&CLUSTER, "unix_taken").user("unix_taken", "", 1);
        let config = config.general("unix_socket_dir", &format!("{host:?}"));
        // Another address, so that only the file is in the way.
        let text = config.text(port).replace("\"127.0.0.1\"\nport", "\"127.0.0.2\"\nport");
        let (status, log) = Pgweir::start_refused(PROGRAM, |_| text);
        assert!(!status.success());
        log
    };
    let log = refused(text(folder.path()));
    let name = format!("{}/.s.PGSQL.{port}", text(folder.path()));
    let expected = format!("cannot listen on {name}: another process listens there");
    assert!(log.contains(&expected), "{log}");
    let log = refused("/nonexistent");
    assert!(log.contains("cannot listen on /nonexistent/.s.PGSQL."), "{log}");

    // The one that is there is none the worse.
    let said = run(client(&first, "psql", text(folder.path())).args(["-XAtqc", "SELECT 'here'"]));
    assert_eq!(said, "here\n");
}

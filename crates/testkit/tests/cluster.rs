//! The clusters themselves: each of these tests starts its own.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::PathBuf,
    process::{Command, Stdio},
};

use pgweir_testkit::{
    AuthMethod, Cluster, HostAuth, Login, LoginError, WireClient, eventually, postgres,
};

#[test]
fn a_cluster_runs_sql_and_leaves_nothing() {
    let cluster = Cluster::start();
    assert_eq!(cluster.psql("SELECT 1, NULL, 'a'; SELECT 2"), "1||a\n2");
    assert!(cluster.psql("SHOW server_version").starts_with(postgres::version()));
    let (address, folder) = (cluster.address(), cluster.socket_dir().to_owned());
    assert!(TcpStream::connect(address).is_ok());

    drop(cluster);
    assert!(TcpStream::connect(address).is_err());
    assert!(!folder.exists());
}

#[test]
#[should_panic(expected = "division by zero")]
fn psql_fails_with_the_servers_message() {
    Cluster::start().psql("SELECT 1/0");
}

#[test]
fn settings_of_a_test_win() {
    let cluster = Cluster::builder().setting("max_connections", "7").setting("fsync", "on").start();
    assert_eq!(cluster.psql("SHOW max_connections"), "7");
    assert_eq!(cluster.psql("SHOW fsync"), "on");
    assert_eq!(cluster.psql("SHOW synchronous_commit"), "off");
}

#[test]
#[should_panic(expected = "PostgreSQL did not start")]
fn a_cluster_that_cannot_start_says_so() {
    let _cluster = Cluster::builder().setting("max_connections", "many").start();
}

#[test]
fn every_way_to_log_in() {
    for (auth, method) in [
        (HostAuth::Trust, AuthMethod::Trust),
        (HostAuth::Password, AuthMethod::Password),
        (HostAuth::Md5, AuthMethod::Md5),
        (HostAuth::ScramSha256, AuthMethod::ScramSha256),
    ] {
        let cluster = Cluster::builder().auth(auth).user("alice", "it's \"me\"").start();
        let login = Login::new("alice").password("it's \"me\"");
        let mut client = WireClient::login(cluster.address(), &login).unwrap();
        assert_eq!(client.auth_method(), method);
        assert_eq!(client.query("SELECT current_user"), ["alice"]);

        let wrong = WireClient::login(cluster.address(), &login.password("wrong"));
        match (auth, wrong) {
            (HostAuth::Trust, Ok(_)) => {}
            (_, Err(LoginError::Refused(error))) => assert_eq!(error.sqlstate(), "28P01"),
            (_, other) => panic!("{auth:?}: {other:?}"),
        }
    }
}

#[test]
fn a_line_of_pg_hba_comes_before_the_general_one() {
    let cluster = Cluster::builder()
        .hba("host all bob 127.0.0.1/32 scram-sha-256")
        .user("alice", "a")
        .user("bob", "b")
        .start();
    let method = |user, password| {
        let login = Login::new(user).password(password);
        WireClient::login(cluster.address(), &login).unwrap().auth_method()
    };
    assert_eq!(method("alice", ""), AuthMethod::Trust);
    assert_eq!(method("bob", "b"), AuthMethod::ScramSha256);
}

#[test]
fn down_and_up_again_on_the_same_port_with_the_same_data() {
    let mut cluster = Cluster::start();
    let address = cluster.address();
    cluster.psql("CREATE TABLE kept AS SELECT 42 AS answer");

    cluster.stop();
    assert!(TcpStream::connect(address).is_err());
    cluster.restart();
    assert_eq!(cluster.address(), address);
    assert_eq!(cluster.psql("TABLE kept"), "42");
    cluster.restart();
    assert_eq!(cluster.psql("TABLE kept"), "42");
}

#[test]
fn a_kill_takes_the_backends_along() {
    let mut cluster = Cluster::start();
    let mut client = WireClient::login(cluster.address(), &Login::new("postgres")).unwrap();
    client.query("SELECT 1");
    let pid = client.cancel_key().unwrap().pid;

    cluster.kill();
    eventually("the backend to be gone", || !PathBuf::from(format!("/proc/{pid}")).exists());
    assert!(!matches!(client.read(), Ok(Some(_))));
    cluster.restart();
    assert_eq!(cluster.psql("SELECT 1"), "1");
    assert!(cluster.log().contains("not properly shut down"));
}

#[test]
fn pgbench_runs() {
    let cluster = Cluster::start();
    let mut init = cluster.tool("pgbench");
    assert!(init.args(["-i", "-q", "-s", "1"]).output().unwrap().status.success());
    let output = cluster.tool("pgbench").args(["-S", "-t", "5", "-c", "2"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("tps = "));
}

/// Not a test of its own: the next one runs it in a process that it kills.
#[test]
#[ignore = "waits to be killed"]
fn hold_a_cluster() {
    let cluster = Cluster::start();
    println!("\n{} {}", cluster.address(), cluster.data_dir().display());
    let pid_file = fs::read_to_string(cluster.data_dir().join("postmaster.pid")).unwrap();
    println!("{}", pid_file.lines().next().unwrap());
    println!("up");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_test_leaves_nothing() {
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_a_cluster", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let lines: Vec<_> = lines.take_while(|line| line != "up").collect();
    let [.., where_, server] = &lines[..] else { panic!("{lines:?}") };
    let (address, data) = where_.split_once(' ').unwrap();
    let data = PathBuf::from(data);
    assert!(TcpStream::connect(address).is_ok());
    assert!(data.exists());

    holder.kill().unwrap();
    holder.wait().unwrap();
    let server = PathBuf::from("/proc").join(server);
    eventually("the server to end", || !server.exists());
    eventually("its data to go", || !data.exists());
    assert!(TcpStream::connect(address).is_err());
}

//! Replication through pgweir, by PostgreSQL's own programs.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use pgweir_testkit::postgres::tool;
use pgweir_testkit::{Cluster, LoginError, Signal, WireClient, eventually};
use rustix::process::{Pid, kill_process};

use crate::clients::run;
use crate::stage::Stage;

/// One that keeps its WAL: the checkpoint of a base backup throws away what another test wants.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    Cluster::builder().setting("wal_level", "logical").setting("wal_keep_size", "1GB").start()
});

/// A stage whose role may replicate.
fn stage(name: &str, pool_size: u32) -> Stage {
    let stage = Stage::on(&CLUSTER, name, pool_size, |config| config);
    stage.ask(&format!("ALTER ROLE {name} REPLICATION"));
    stage
}

/// A program of PostgreSQL that connects through pgweir as the stage's role.
fn program(stage: &Stage, name: &str) -> Command {
    let mut command = tool(name);
    let port = stage.pgweir.port().to_string();
    command.args(["-h", "127.0.0.1", "-p", &port, "-U", &stage.name]);
    command
}

/// A program that runs until it is told to end, or until the test fails.
struct Running(Child);

impl Running {
    /// Asks it to end, as Ctrl-C does, and waits until it has.
    fn interrupt(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_system_is_identified() {
    let stage = stage("repl_identify", 2);
    for replication in ["database", "true", "on", "yes", "1"] {
        let login = stage.login().parameter("replication", replication);
        let direct = WireClient::login(CLUSTER.address(), &login).unwrap().query("IDENTIFY_SYSTEM");
        let mut client = stage.client_as(&login.clone().parameter("application_name", "walrus"));
        let said = client.query("IDENTIFY_SYSTEM");
        assert_eq!(said[0].split('|').next(), direct[0].split('|').next());
        let walsenders = "backend_type = 'walsender' AND application_name = 'walrus'";
        assert_eq!(stage.backends(walsenders), 1);
        let kind = if replication == "database" { "logical" } else { "physical" };
        for (letter, what) in [("C", "CLIENTS"), ("S", "SERVERS")] {
            let row = format!("{letter}|repl_identify|repl_identify|{kind}|active|");
            let shown = stage.console(&format!("SHOW {what}"));
            assert!(shown.iter().any(|shown| shown.starts_with(&row)), "{shown:?}");
        }
        // Others go on as if nothing were.
        assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
        drop(client);
        stage.wait_for_backends(0, walsenders);
    }
}

#[test]
fn what_the_server_refuses_is_told_in_its_words() {
    let stage = stage("repl_refused", 1);
    stage.ask("ALTER ROLE repl_refused NOREPLICATION");
    let login = stage.login().parameter("replication", "true");
    let refusal = |address| match WireClient::login(address, &login) {
        Err(LoginError::Refused(error)) => (error.sqlstate(), error.field(b'M')),
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal(stage.address()), refusal(CLUSTER.address()));
    assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
}

/// Two connections, one for the files and one for the WAL that is written meanwhile.
#[test]
fn pg_basebackup() {
    let stage = stage("repl_basebackup", 2);
    let folder = tempfile::tempdir().unwrap();
    for (format, method) in [("plain", "stream"), ("tar", "fetch")] {
        let to = folder.path().join(method);
        let mut backup = program(&stage, "pg_basebackup");
        backup.args(["-c", "fast", "-F", format, "-X", method, "-D", to.to_str().unwrap()]);
        run(&mut backup);
        if format == "plain" {
            run(tool("pg_verifybackup").arg("-n").arg(&to));
            assert!(to.join("pg_wal").read_dir().unwrap().next().is_some());
        } else {
            assert!(to.join("base.tar").is_file());
        }
    }
    stage.wait_for_backends(0, "backend_type = 'walsender'");
}

#[test]
fn pg_receivewal() {
    let stage = stage("repl_receivewal", 1);
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = program(&stage, "pg_receivewal");
    let receiver = Running(receiver.arg("-D").arg(folder.path()).spawn().unwrap());
    stage.wait_for_backends(1, "backend_type = 'walsender'");
    let complete = |path: &Path| path.extension().is_none();
    stage.ask("CREATE TABLE t (a int)");
    eventually("a segment of WAL", || {
        // The one that it begins with may be a later one than the last that was completed.
        stage.ask("INSERT INTO t VALUES (1)");
        stage.ask("SELECT pg_switch_wal()");
        let mut files = folder.path().read_dir().unwrap();
        files.any(|file| complete(&file.unwrap().path()))
    });
    receiver.interrupt();
    stage.wait_for_backends(0, "backend_type = 'walsender'");
}

#[test]
fn pg_recvlogical() {
    let stage = stage("repl_recvlogical", 1);
    let recvlogical = || {
        let mut command = program(&stage, "pg_recvlogical");
        command.args(["-d", &stage.name, "-S", "repl_slot"]);
        command
    };
    run(recvlogical().args(["--create-slot", "-P", "test_decoding"]));
    let mut start = recvlogical();
    let start = start.args(["--start", "-f", "-"]).stdout(Stdio::piped());
    let mut receiver = Running(start.spawn().unwrap());
    stage.ask("CREATE TABLE t (a int); INSERT INTO t VALUES (42)");
    let (mut said, mut output) = (String::new(), receiver.0.stdout.take().unwrap());
    while !said.contains("table public.t: INSERT: a[integer]:42") {
        let mut bytes = [0; 1000];
        let n = output.read(&mut bytes).unwrap();
        assert_ne!(n, 0, "{said}");
        said += &String::from_utf8_lossy(&bytes[..n]);
    }
    receiver.interrupt();
    // It belongs to nobody any more.
    eventually("the slot to be free", || {
        stage.value("SELECT active FROM pg_replication_slots WHERE slot_name = 'repl_slot'") == "f"
    });
    run(recvlogical().arg("--drop-slot"));
}

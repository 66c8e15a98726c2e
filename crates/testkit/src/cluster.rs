use std::{
    fs,
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    deadline::{PATIENCE, eventually_some, within},
    fail::OrFail,
    port::Port,
    postgres::{ServiceUser, run, tool},
    process::Process,
    scratch::Scratch,
};

mod builder;
mod template;

pub use builder::{ClusterBuilder, HostAuth};

/// A PostgreSQL server of its own for a test: 127.0.0.1, a free port, an empty data folder.
///
/// It ends, and its folder goes, when this value is dropped, and also when the test process is
/// killed. The superuser is `postgres`; [`Cluster::psql`] works whatever the clients must do to
/// log in. Tests may share one through a `LazyLock`.
#[derive(Debug)]
pub struct Cluster {
    server: Process,
    port: Port,
    scratch: Scratch,
}

impl Cluster {
    /// Starts one with which clients need no password.
    ///
    /// # Panics
    /// When PostgreSQL is missing or does not come up, with its log.
    #[must_use]
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A cluster to be described further.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// Shuts down, ending the sessions (`pg_ctl stop -m fast`). The port stays reserved.
    ///
    /// # Panics
    /// When it does not end.
    pub fn stop(&mut self) {
        self.server.signal(Signal::INT);
        self.server.wait();
    }

    /// Kills every process of the server at once, as a crash of its machine would: clients see
    /// their connections reset or closed in the middle of what they did.
    pub fn kill(&mut self) {
        // A stopped postmaster starts no further backend, and those there are have no time to
        // notice its end and say goodbye.
        self.server.signal(Signal::STOP);
        for backend in children(self.server.pid()) {
            let _ended_already = kill_process(backend, Signal::KILL);
        }
        self.server.kill();
    }

    /// Kills a backend, whose process id its client was told. The server takes that for a crash: it
    /// ends all others, and recovers.
    ///
    /// # Panics
    /// When it is none of this server's.
    pub fn kill_backend(&self, pid: u32) {
        let is_it = |backend: &Pid| u32::try_from(backend.as_raw_nonzero().get()).ok() == Some(pid);
        let backend = children(self.server.pid()).into_iter().find(is_it);
        let backend = backend.or_fail(format!("find the backend {pid}"));
        kill_process(backend, Signal::KILL).or_fail(format!("kill the backend {pid}"));
    }

    /// Starts it again on the same port and data, after stopping it if it runs.
    ///
    /// # Panics
    /// When it does not come up, with its log.
    pub fn restart(&mut self) {
        if self.server.ended().is_none() {
            self.stop();
        }
        // After a kill the old backends may hold the shared memory for a moment, and another
        // program's outgoing connection the port.
        self.server =
            eventually_some("PostgreSQL to start again", || launch(&self.scratch, &self.port));
    }

    /// Runs `sql` as the superuser in the database `postgres` and gives what psql prints:
    /// rows as lines, columns with `|` between them.
    ///
    /// # Panics
    /// On an error, with psql's message.
    #[track_caller]
    pub fn psql(&self, sql: &str) -> String {
        let output = run(self.tool("psql").args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]));
        output.trim_end().to_owned()
    }

    /// The command for one of PostgreSQL's programs that connects here, as the superuser, through
    /// the unix socket, unless its arguments say otherwise.
    #[must_use]
    pub fn tool(&self, name: &str) -> Command {
        let mut command = tool(name);
        command
            .env("PGHOST", self.socket_dir())
            .env("PGPORT", self.port().to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres");
        command
    }

    /// Its TCP port, and the number in the name of its unix socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its address for TCP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The folder of its unix socket, for this user and root alone.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        self.scratch.path()
    }

    /// Its data folder.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.scratch.join("data")
    }

    /// What it logged so far, in all its runs.
    #[must_use]
    pub fn log(&self) -> String {
        self.server.log()
    }
}

impl Drop for Cluster {
    /// SIGQUIT ends the backends too, which a SIGKILL would leave behind for a moment.
    fn drop(&mut self) {
        self.server.signal(Signal::QUIT);
        let _ended = within(PATIENCE, || self.server.ended());
    }
}

/// Starts the server in `scratch`, `None` if it did not come up because it cannot have its port
/// or the shared memory of the run before it.
fn launch(scratch: &Scratch, port: &Port) -> Option<Process> {
    let data = scratch.join("data");
    let logged_before = fs::metadata(scratch.join("log")).map_or(0, |log| log.len());
    let mut command = tool("postgres");
    command
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.number().to_string()])
        .arg("-c")
        .arg(format!("unix_socket_directories={}", scratch.path().display()))
        .args(["-c", "listen_addresses=127.0.0.1"])
        .current_dir(scratch.path());
    if let Some(user) = ServiceUser::when_root() {
        command.uid(user.uid).gid(user.gid);
    }
    let server = Process::spawn("PostgreSQL", &mut command, scratch);
    let ready = eventually_some("PostgreSQL to be ready", || {
        if server.ended().is_some() {
            return Some(false);
        }
        is_ready(&data, server.pid()).then_some(true)
    });
    if ready {
        return Some(server);
    }
    let log = server.log();
    let said = log.get(logged_before as usize..).unwrap_or(&log);
    let may_pass = ["Address already in use", "is still in use", "another postmaster"];
    assert!(may_pass.iter().any(|cause| said.contains(cause)), "PostgreSQL did not start:\n{said}");
    None
}

/// What `pg_ctl -w` looks at: the first line of postmaster.pid is the server's process id, the
/// eighth its state. The file of a run that was killed stays behind.
fn is_ready(data: &Path, pid: Pid) -> bool {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else {
        return false;
    };
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
}

fn children(pid: Pid) -> Vec<Pid> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(&path).or_fail(format!("read {path}"));
    text.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

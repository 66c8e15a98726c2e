//! `make demo`, with the program under test: it works, and leaves nothing behind however it ends.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pgweir_testkit::eventually;
use pgweir_testkit::postgres::tool;
use rustix::process::{Pid, Signal, kill_process};

/// Each takes the usual port if that is free: what one has left another would have.
static TURN: Mutex<()> = Mutex::new(());

/// A demo of one test, in a place of its own, and no other at the same time.
struct Demo {
    state: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Demo {
    fn new(name: &str) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("demo_{name}"));
        Self { state, _turn: turn }
    }

    fn script(&self, action: &str) -> Command {
        // Where these tests run in the background Ctrl-C may be ignored.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/demo.sh"))
            .arg(action)
            .env("DEMO_STATE", &self.state)
            .env("PGWEIR", env!("CARGO_BIN_EXE_pgweir"))
            .env("DEPS", "no");
        command
    }

    /// Starts it, to stay up until it is ended, and waits until it is up.
    fn stays_up(&self) -> (Child, Up) {
        let log = self.state.with_extension("log");
        let output = File::create(&log).unwrap();
        let errors = output.try_clone().unwrap();
        let child = self.script("up").stdout(output).stderr(errors).spawn().unwrap();
        let said = || fs::read_to_string(&log).unwrap();
        eventually("the demo to be up", || said().contains("Ctrl-C ends it."));
        let up = self.up(&said());
        fs::remove_file(log).unwrap();
        (child, up)
    }

    /// What is up, by what it said.
    fn up(&self, said: &str) -> Up {
        let rates = said.lines().filter(|line| line.ends_with("transactions a second"));
        assert_eq!(rates.count(), 2, "{said}");
        let url = said.split('\'').find(|word| word.starts_with("postgres://")).unwrap();
        let asked = tool("psql").args(["-XAtq", "-c", "SELECT 40 + 2", url]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&asked.stdout), "42\n", "{said}");
        let port = url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0;
        let place = fs::read_to_string(self.state.join("place")).unwrap();
        let place = PathBuf::from(place.trim());
        assert!(processes_in(&place) > 2, "PostgreSQL is many processes, and pgweir is one");
        Up { place, port: port.parse().unwrap() }
    }

    /// Nothing of it is left, or will be before long.
    fn is_gone(&self, up: &Up) {
        let Up { place, port } = up;
        eventually("the end of the demo's processes", || processes_in(place) == 0);
        eventually("the end of the demo's data", || !place.exists() && !self.state.exists());
        assert!(TcpStream::connect(("127.0.0.1", *port)).is_err());
    }
}

impl Drop for Demo {
    /// After a failure there may be something to end.
    fn drop(&mut self) {
        let _ = self.script("stop").status();
    }
}

/// Where a demo's processes work, and where pgweir listens.
struct Up {
    place: PathBuf,
    port: u16,
}

fn processes_in(place: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let folders = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    folders.filter(|folder| folder.starts_with(place)).count()
}

#[test]
fn detached_it_stays_up_until_it_is_stopped() {
    let demo = Demo::new("detached");
    let output = demo.script("up").env("DETACH", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let up = demo.up(&said);
    let again = demo.script("up").output().unwrap();
    assert!(!again.status.success());
    let complaint = String::from_utf8_lossy(&again.stderr);
    assert!(complaint.contains("A demo is up already"), "{complaint}");
    assert!(demo.script("stop").status().unwrap().success());
    demo.is_gone(&up);
}

#[test]
fn a_signal_ends_all_of_it() {
    assert_eq!(ended_by(Signal::TERM, "terminated").code(), Some(143));
    // As Ctrl-C does.
    assert_eq!(ended_by(Signal::INT, "interrupted").code(), Some(0));
}

/// Nobody can clean up behind a kill -9 but the guard.
#[test]
fn even_a_kill_ends_all_of_it() {
    assert_eq!(ended_by(Signal::KILL, "killed").code(), None);
}

/// How a demo ends that is sent this signal; nothing of it is left.
fn ended_by(signal: Signal, demo: &str) -> ExitStatus {
    let demo = Demo::new(demo);
    let (mut child, up) = demo.stays_up();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    demo.is_gone(&up);
    status
}

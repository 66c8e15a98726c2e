use std::{
    ffi::OsString,
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::process::Signal;

use crate::{deadline::eventually, fail::OrFail, port::Port, process::Process, scratch::Scratch};

const CONFIG_NAME: &str = "pgweir.toml";

/// A running pgweir, the real program, on a free port of 127.0.0.1.
///
/// It is killed when this value is dropped, and also when the test process is killed. A pgweir
/// that ended unasked fails the test, even one that had all its answers by then.
#[derive(Debug)]
pub struct Pgweir {
    process: Process,
    /// Whether the test asked for its end.
    end_asked: AtomicBool,
    port: Port,
    scratch: Scratch,
}

impl Pgweir {
    /// Starts `program` (a test of the crate `pgweir` has its path in
    /// `env!("CARGO_BIN_EXE_pgweir")`) with the configuration that `config` writes for a port,
    /// and waits until it accepts connections.
    ///
    /// # Panics
    /// When it does not come up, with its log.
    #[must_use]
    pub fn start(program: impl AsRef<Path>, config: impl FnOnce(u16) -> String) -> Self {
        Self::spawn(program.as_ref(), config_file(config)).up()
    }

    /// Starts `program` with the arguments that `arguments` gives for a port, in place of a
    /// configuration, and waits until it accepts connections.
    ///
    /// # Panics
    /// When it does not come up, with its log.
    #[must_use]
    pub fn start_with(
        program: impl AsRef<Path>,
        arguments: impl FnOnce(u16) -> Vec<String>,
    ) -> Self {
        let arguments = |port: u16, _: &Path| {
            arguments(port).into_iter().map(OsString::from).collect::<Vec<_>>()
        };
        Self::spawn(program.as_ref(), arguments).up()
    }

    /// Starts `program` with a configuration that it must refuse, and gives how it ended and what
    /// it said.
    ///
    /// # Panics
    /// When it does not end.
    pub fn start_refused(
        program: impl AsRef<Path>,
        config: impl FnOnce(u16) -> String,
    ) -> (ExitStatus, String) {
        let pgweir = Self::spawn(program.as_ref(), config_file(config));
        (pgweir.wait(), pgweir.log())
    }

    /// `arguments` are for a port, and may be the path of a file to write, which is given too.
    fn spawn(program: &Path, arguments: impl FnOnce(u16, &Path) -> Vec<OsString>) -> Self {
        let scratch = Scratch::new(None);
        let port = Port::take();
        let arguments = arguments(port.number(), &scratch.join(CONFIG_NAME));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(scratch.path()).env("RUST_BACKTRACE", "1");
        // Else the C library reserves 128 MB of address space for each thread, when that first
        // asks it for something: in the midst of a test that measures what clients can claim.
        command.env("MALLOC_ARENA_MAX", "1");
        let process = Process::spawn("pgweir", &mut command, &scratch);
        Self { process, end_asked: AtomicBool::new(false), port, scratch }
    }

    fn up(self) -> Self {
        eventually("pgweir to accept connections", || {
            assert!(self.process.ended().is_none(), "pgweir ended:\n{}", self.log());
            TcpStream::connect(self.address()).is_ok()
        });
        self
    }

    /// Asks it to drain: SIGTERM.
    pub fn terminate(&self) {
        self.end_asked.store(true, Ordering::Relaxed);
        self.signal(Signal::TERM);
    }

    /// Asks it to end at once: SIGQUIT.
    pub fn quit(&self) {
        self.end_asked.store(true, Ordering::Relaxed);
        self.signal(Signal::QUIT);
    }

    /// Sends a signal that does not ask for its end, such as SIGHUP.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    #[track_caller]
    pub fn wait(&self) -> ExitStatus {
        self.end_asked.store(true, Ordering::Relaxed);
        self.process.wait()
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process.ended().is_none()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its process id, for a look into /proc.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// Its configuration file, which it works beside.
    #[must_use]
    pub fn config_path(&self) -> PathBuf {
        self.scratch.join(CONFIG_NAME)
    }

    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }
}

/// The arguments that name a configuration, which is written first.
fn config_file(config: impl FnOnce(u16) -> String) -> impl FnOnce(u16, &Path) -> Vec<OsString> {
    |port, path| {
        fs::write(path, config(port)).or_fail("write the configuration of pgweir");
        vec![path.into()]
    }
}

impl Drop for Pgweir {
    fn drop(&mut self) {
        let asked = self.end_asked.load(Ordering::Relaxed);
        if let (false, false, Some(status)) = (asked, thread::panicking(), self.process.ended()) {
            panic!("pgweir ended unasked with {status}:\n{}", self.log());
        }
    }
}

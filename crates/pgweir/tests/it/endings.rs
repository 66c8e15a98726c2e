//! The end of the process: asked for in every way, in every order, with clients at work and admins
//! on the console, and with other configurations that are loaded meanwhile.

use std::fs;
use std::net::{SocketAddr, TcpStream};

use pgweir_testkit::frames::query;
use pgweir_testkit::{Login, Pgweir, Stranger, WireClient, eventually};
use rustix::process::Signal;

use crate::stage::{CLUSTER, PROGRAM, Stage, assert_sound, create_database, login, trusting};

/// A way to ask for the end, or for another configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Terminate,
    Interrupt,
    Quit,
    ShutDown,
    WaitForClients,
    WaitForServers,
    HangUp,
    Reload,
}

impl Way {
    const ALL: [Self; 8] = [
        Self::Terminate,
        Self::Interrupt,
        Self::Quit,
        Self::ShutDown,
        Self::WaitForClients,
        Self::WaitForServers,
        Self::HangUp,
        Self::Reload,
    ];

    fn signal(self) -> Option<Signal> {
        match self {
            Self::Terminate => Some(Signal::TERM),
            Self::Interrupt => Some(Signal::INT),
            Self::Quit => Some(Signal::QUIT),
            Self::HangUp => Some(Signal::HUP),
            Self::ShutDown | Self::WaitForClients | Self::WaitForServers | Self::Reload => None,
        }
    }

    fn is_reload(self) -> bool {
        match self {
            Self::HangUp | Self::Reload => true,
            Self::Terminate
            | Self::Interrupt
            | Self::Quit
            | Self::ShutDown
            | Self::WaitForClients
            | Self::WaitForServers => false,
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::WaitForClients => "SHUTDOWN WAIT_FOR_CLIENTS",
            Self::WaitForServers => "SHUTDOWN WAIT_FOR_SERVERS",
            Self::HangUp | Self::Reload => "RELOAD",
            Self::ShutDown | Self::Terminate | Self::Interrupt | Self::Quit => "SHUTDOWN",
        }
    }

    /// What comes of it alone, or of it and what was asked before; `None`: it is not the end.
    fn outcome(self, before: Option<Outcome>) -> Option<Outcome> {
        match (before, self) {
            (_, Self::HangUp | Self::Reload) => before,
            (Some(Outcome::Told), _) | (None | Some(Outcome::Drained), Self::ShutDown) => {
                Some(Outcome::Told)
            }
            (Some(Outcome::Untold), _) | (None | Some(Outcome::Drained), Self::Quit) => {
                Some(Outcome::Untold)
            }
            // The second signal is meant.
            (Some(Outcome::Drained), Self::Terminate | Self::Interrupt) => Some(Outcome::Untold),
            (None, Self::Terminate | Self::Interrupt)
            | (None | Some(Outcome::Drained), Self::WaitForClients | Self::WaitForServers) => {
                Some(Outcome::Drained)
            }
        }
    }
}

/// How a client at work sees the end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// It finishes its transaction, and is told.
    Drained,
    /// It is told in the middle of it.
    Told,
    /// Its connection is closed.
    Untold,
}

/// A pgweir with a client in a transaction, an idle one, and two admins: one who asks for the end
/// and one who looks on.
struct Scene {
    pgweir: Pgweir,
    /// Where a reload has clients come in, and the configuration that says so.
    elsewhere: SocketAddr,
    moved: String,
    working: WireClient,
    idle: WireClient,
    asking: WireClient,
    watching: WireClient,
}

impl Scene {
    fn new(database: &str, elsewhere: SocketAddr) -> Self {
        let config = trusting(&CLUSTER, database).user(database, "", 2);
        let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
        let client = || WireClient::login(pgweir.address(), &login(database)).unwrap();
        let admin = Login::new("admin").password("admin").database("pgweir");
        let admin = || WireClient::login(pgweir.address(), &admin).unwrap();
        let (mut working, idle) = (client(), client());
        working.query("BEGIN");
        let (asking, watching) = (admin(), admin());
        let moved = config.text(elsewhere.port());
        Self { working, idle, asking, watching, pgweir, elsewhere, moved }
    }

    /// Asks for it, and waits until that is understood, if there is somebody to understand it.
    fn ask(&mut self, way: Way) {
        let before = self.reloads();
        if way.is_reload() {
            fs::write(self.pgweir.config_path(), &self.moved).unwrap();
        }
        match way.signal() {
            Some(signal) => self.pgweir.signal(signal),
            None => {
                let asked = self.asking.send(&query(way.command()));
                let reply = asked.and_then(|()| self.asking.read_until_ready());
                let tags = reply.map(|reply| reply.iter().map(|it| it.tag).collect::<Vec<_>>());
                // Whoever has ended before answers nothing any more.
                assert!(tags.is_err() || tags.is_ok_and(|tags| tags == b"CZ"), "{way:?}");
            }
        }
        match way.is_reload() {
            true => eventually("the file to be loaded again", || {
                self.reloads() > before || !self.pgweir.is_running()
            }),
            false => eventually("no new client to be taken", || {
                !is_open(self.pgweir.address()) && !is_open(self.elsewhere)
            }),
        }
    }

    fn reloads(&self) -> usize {
        self.pgweir.log().matches("was loaded again").count()
    }
}

fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

/// The SQLSTATEs of what a connection still says, which is nothing if it is reset.
fn last_words(client: &mut WireClient) -> Vec<String> {
    let messages = client.read_to_end().unwrap_or_default();
    messages.iter().map(|message| message.sqlstate()).collect()
}

#[test]
fn asked_for_twice_in_any_order() {
    const FAREWELL: [&str; 1] = ["57P01"];
    create_database(&CLUSTER, "endings");
    // As long as this value is there its port is nobody else's.
    let gone = Pgweir::start(PROGRAM, |port| {
        trusting(&CLUSTER, "endings").user("endings", "", 2).text(port)
    });
    gone.quit();
    gone.wait();
    let pairs = Way::ALL.iter().flat_map(|first| Way::ALL.map(|second| (*first, second)));
    for (first, second) in pairs {
        let mut scene = Scene::new("endings", gone.address());
        scene.ask(first);
        let of_first = first.outcome(None);
        if of_first == Some(Outcome::Drained) {
            assert_eq!(last_words(&mut scene.idle), FAREWELL, "{first:?}");
            assert_eq!(scene.working.query("SELECT 'goes on'"), ["goes on"]);
            assert!(scene.pgweir.is_running());
        }
        // Where nobody is let in any more nothing is in the way.
        let reloads_late = second.is_reload() && of_first.is_some();
        let stranger = reloads_late.then(|| Stranger::at(scene.elsewhere));
        scene.ask(second);
        drop(stranger);
        let asked = format!("{first:?}, then {second:?}");
        let Some(outcome) = second.outcome(of_first) else {
            assert!(is_open(scene.elsewhere), "{asked}");
            assert_eq!(scene.idle.query("SELECT 'goes on'"), ["goes on"]);
            scene.pgweir.quit();
            scene.pgweir.wait();
            continue;
        };
        assert!(!is_open(scene.elsewhere), "{asked}");
        if outcome == Outcome::Drained {
            scene.working.query("COMMIT");
        }
        for client in [&mut scene.working, &mut scene.watching] {
            let expected = match outcome {
                Outcome::Drained | Outcome::Told => &FAREWELL[..],
                Outcome::Untold => &[],
            };
            assert_eq!(last_words(client), expected, "{asked}");
        }
        assert!(scene.pgweir.wait().success(), "{asked}");
        assert_sound(&scene.pgweir);
    }
}

/// The console stays open to those who are there, and takes nobody new.
#[test]
fn a_drain_can_be_watched_and_ended() {
    let stage = Stage::new("endings_watched", 1);
    let admin = Login::new("admin").password("admin").database("pgweir");
    let [mut first, mut second] = [stage.client_as(&admin), stage.client_as(&admin)];
    let [mut working, mut queued] = [stage.client(), stage.client()];
    working.query("BEGIN");
    let unit = query("SELECT 'never run'");
    queued.send(&unit.repeat(80_000 / unit.len())).unwrap();
    stage.wait_for_waiters(1);
    // More than is read of a client that waits: a close with that unread would be a reset.
    queued.send(&unit.repeat(20_000 / unit.len())).unwrap();
    assert_eq!(first.query("SHUTDOWN WAIT_FOR_CLIENTS"), [""; 0]);
    eventually("no new client to be taken", || TcpStream::connect(stage.address()).is_err());
    let clients = second.query("SHOW CLIENTS");
    let column = |at: usize| clients.iter().map(move |row| row.split('|').nth(at).unwrap());
    assert_eq!(column(2).filter(|database| *database == stage.name).count(), 2, "{clients:?}");
    assert_eq!(column(2).filter(|database| *database == "pgweir").count(), 2, "{clients:?}");

    // The one who waits is told that it is not served, the one at work that it is not done.
    assert_eq!(second.query("SHUTDOWN"), [""; 0]);
    for client in [&mut working, &mut queued, &mut first, &mut second] {
        assert_eq!(last_words(client), ["57P01"]);
    }
    assert!(stage.pgweir.wait().success());
    stage.wait_for_backends(0, "true");
}

/// A client is told while its statement is still running.
#[test]
fn a_statement_does_not_hold_up_a_shutdown() {
    let stage = Stage::new("endings_running", 1);
    let mut client = stage.client();
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, "state = 'active'");
    assert_eq!(stage.console("SHUTDOWN"), [""; 0]);
    assert_eq!(last_words(&mut client), ["57P01"]);
    assert!(stage.pgweir.wait().success());
    // PostgreSQL notices when it wants to answer.
    let of_stage = format!("FROM pg_stat_activity WHERE usename = '{}'", stage.name);
    stage.ask(&format!("SELECT pg_terminate_backend(pid) {of_stage}"));
    stage.wait_for_backends(0, "true");
}

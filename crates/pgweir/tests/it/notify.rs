//! Whoever has started pgweir is told how it is (sd_notify), if it has asked to be.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;

use pgweir_testkit::{Login, PATIENCE, Pgweir, Signal, WireClient, eventually};

use crate::program::program;
use crate::stage::{self, CLUSTER, PROGRAM};

const NAME: &str = "notify";

/// Asks a pgweir for its end.
type Ask = fn(&Pgweir);

#[test]
fn who_has_started_it_is_told_how_it_is() {
    stage::create_database(&CLUSTER, NAME);
    let folder = tempfile::tempdir().unwrap();
    let (file, abstract_name) =
        (folder.path().join("notify"), format!("pgweir-notify-{}", std::process::id()));
    let addresses = [
        (file.to_str().unwrap().to_owned(), SocketAddr::from_pathname(&file)),
        (format!("@{abstract_name}"), SocketAddr::from_abstract_name(&abstract_name)),
    ];
    for (name, address) in addresses {
        let listener = listener(&address.unwrap());
        let config = stage::trusting(&CLUSTER, NAME).user(NAME, "", 1);
        let pgweir = Pgweir::start(told_to(NAME, &name), |port| config.text(port));
        assert_eq!(heard(&listener), "READY=1");
        pgweir.terminate();
        assert_eq!(heard(&listener), "STOPPING=1");
        assert!(pgweir.wait().success());
    }
}

/// However the end is asked for, and once, also where it is asked for again.
#[test]
fn who_has_started_it_is_told_of_the_end() {
    let name = "notify_end";
    stage::create_database(&CLUSTER, name);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notify");
    let listener = listener(&SocketAddr::from_pathname(&file).unwrap());
    let program = told_to(name, file.to_str().unwrap());
    let ways: [&[Ask]; 5] = [
        &[|pgweir| pgweir.signal(Signal::INT), Pgweir::quit],
        &[Pgweir::terminate, Pgweir::terminate],
        &[Pgweir::quit],
        &[|pgweir| drop(admin(pgweir).query("SHUTDOWN"))],
        &[|pgweir| drop(admin(pgweir).query("SHUTDOWN WAIT_FOR_CLIENTS")), Pgweir::quit],
    ];
    for way in ways {
        let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
        let pgweir = Pgweir::start(&program, |port| config.text(port));
        assert_eq!(heard(&listener), "READY=1");
        let mut client = WireClient::login(pgweir.address(), &stage::login(name)).unwrap();
        client.query("BEGIN");
        way[0](&pgweir);
        assert_eq!(heard(&listener), "STOPPING=1");
        way[1..].iter().for_each(|ask| ask(&pgweir));
        assert!(pgweir.wait().success());
        listener.set_nonblocking(true).unwrap();
        assert!(listener.recv(&mut [0; 100]).is_err(), "it was told twice");
        listener.set_nonblocking(false).unwrap();
    }
}

/// However a reload is asked for, and however it goes.
#[test]
fn who_has_started_it_is_told_of_reloads() {
    let name = "notify_reload";
    stage::create_database(&CLUSTER, name);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notify");
    let listener = listener(&SocketAddr::from_pathname(&file).unwrap());
    let config = |size| stage::trusting(&CLUSTER, name).user(name, "", size);
    let program = told_to(name, file.to_str().unwrap());
    let pgweir = Pgweir::start(program, |port| config(1).text(port));
    assert_eq!(heard(&listener), "READY=1");
    let mut admin = admin(&pgweir);
    let write = |text: &str| fs::write(pgweir.config_path(), text).unwrap();

    let mut times = Vec::new();
    let mut is_told = || {
        let begun = heard(&listener);
        let time = begun.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        times.push(time.unwrap().parse::<u64>().unwrap());
        assert_eq!(heard(&listener), "READY=1");
    };
    pgweir.signal(Signal::HUP);
    is_told();
    assert_eq!(admin.query("RELOAD"), [""; 0]);
    is_told();
    write("nonsense");
    pgweir.signal(Signal::HUP);
    is_told();
    assert_eq!(admin.try_query("RELOAD").unwrap_err().sqlstate(), "F0000");
    is_told();
    write(&config(1).general("autoreload", "50").text(pgweir.port()));
    pgweir.signal(Signal::HUP);
    is_told();
    write(&config(2).text(pgweir.port()));
    is_told();
    // Microseconds since the machine was started, and not since 1970.
    assert!(times.is_sorted() && times[5] < 1_000_000_000_000_000, "{times:?}");
}

/// A client of the console.
fn admin(pgweir: &Pgweir) -> WireClient {
    let login = Login::new("admin").password("admin").database("pgweir");
    WireClient::login(pgweir.address(), &login).unwrap()
}

/// A socket that hears what is told.
fn listener(address: &SocketAddr) -> UnixDatagram {
    let listener = UnixDatagram::bind_addr(address).unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    listener
}

/// The next message.
fn heard(listener: &UnixDatagram) -> String {
    let mut message = [0; 100];
    let n = listener.recv(&mut message).unwrap();
    String::from_utf8_lossy(&message[..n]).into_owned()
}

/// A pgweir that tells this socket.
fn told_to(name: &str, socket: &str) -> PathBuf {
    program(name, &format!("NOTIFY_SOCKET='{socket}' exec '{PROGRAM}' \"$@\""))
}

#[test]
fn nobody_need_listen() {
    let name = "notify_nobody";
    stage::create_database(&CLUSTER, name);
    let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
    let pgweir = Pgweir::start(told_to(name, "/nonexistent"), |port| config.text(port));
    eventually("a warning", || {
        pgweir.log().contains("NOTIFY_SOCKET was not told that we are Ready")
    });
    pgweir.terminate();
    assert!(pgweir.wait().success());
}

//! Whoever has started pgweir is told how it is (sd_notify), if it has asked to be.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use pgweir_testkit::{PATIENCE, Pgweir, eventually};

use crate::program::program;
use crate::stage::{self, CLUSTER, PROGRAM};

const NAME: &str = "notify";

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
        let listener = UnixDatagram::bind_addr(&address.unwrap()).unwrap();
        listener.set_read_timeout(Some(PATIENCE)).unwrap();
        let heard = || {
            let mut message = [0; 100];
            let n = listener.recv(&mut message).unwrap();
            String::from_utf8_lossy(&message[..n]).into_owned()
        };
        let script = format!("NOTIFY_SOCKET='{name}' exec '{PROGRAM}' \"$@\"");
        let config = stage::trusting(&CLUSTER, NAME).user(NAME, "", 1);
        let pgweir = Pgweir::start(program(NAME, &script), |port| config.text(port));
        assert_eq!(heard(), "READY=1");
        pgweir.terminate();
        assert_eq!(heard(), "STOPPING=1");
        assert!(pgweir.wait().success());
    }
}

#[test]
fn nobody_need_listen() {
    let name = "notify_nobody";
    stage::create_database(&CLUSTER, name);
    let script = format!("NOTIFY_SOCKET=/nonexistent exec '{PROGRAM}' \"$@\"");
    let config = stage::trusting(&CLUSTER, name).user(name, "", 1);
    let pgweir = Pgweir::start(program(name, &script), |port| config.text(port));
    eventually("a warning", || {
        pgweir.log().contains("NOTIFY_SOCKET was not told that we are Ready")
    });
    pgweir.terminate();
    assert!(pgweir.wait().success());
}

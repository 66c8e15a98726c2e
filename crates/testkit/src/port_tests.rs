use std::{
    collections::BTreeSet,
    net::{TcpListener, TcpStream},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::port::{Port, Stranger};

#[test]
fn a_port_is_taken_once() {
    let ports: Vec<_> = (0..300).map(|_| Port::take()).collect();
    let numbers: BTreeSet<_> = ports.iter().map(Port::number).collect();
    assert_eq!(numbers.len(), ports.len());
}

#[test]
fn nobody_is_met_before_the_server_is_up() {
    let port = Port::take();
    assert!(TcpStream::connect(port.address()).is_err());
}

#[test]
fn a_look_at_a_port_is_no_server() {
    let port = Port::take();
    let _look = port.bound().unwrap();
    assert!(TcpStream::connect(port.address()).is_err());
    let _server = TcpListener::bind(port.address()).unwrap();
    assert!(TcpStream::connect(port.address()).is_ok());
    assert!(port.bound().is_err());
}

#[test]
fn a_stranger_that_is_gone_is_gone_whatever_is_started_meanwhile() {
    let (port, done) = (Port::take(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(Command::new("true").status().unwrap().success());
                }
            });
        }
        let gone = (0..500).all(|_| {
            drop(Stranger::at(port.address()));
            TcpStream::connect(port.address()).is_err()
        });
        done.store(true, Ordering::Relaxed);
        assert!(gone);
    });
}

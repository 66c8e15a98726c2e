use std::{
    collections::BTreeSet,
    net::{TcpListener, TcpStream},
};

use crate::port::Port;

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

use std::{
    collections::BTreeSet,
    net::{TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
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
    let port = Port::take();
    let _busy: Vec<_> = (0..4).map(|_| Starter::new()).collect();
    for _ in 0..500 {
        drop(Stranger::at(port.address()));
        assert!(TcpStream::connect(port.address()).is_err());
    }
}

/// Starts one program after the other until it is dropped.
struct Starter {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Starter {
    fn new() -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&done);
        let thread = thread::spawn(move || {
            while !its.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        Self { done, thread: Some(thread) }
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

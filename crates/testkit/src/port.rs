use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::{linux::net::SocketAddrExt, unix},
};

use crate::fail::OrFail;

/// A TCP port of 127.0.0.1 that no other test has, in this process or another.
///
/// The kernel names a free port; a unix socket with an abstract name that holds the number keeps
/// it ours until this value is dropped, also while nothing listens on it (a server that is down
/// for a moment gets its port back). A program that is no test of ours may still take it: who
/// starts a server on it must be ready for that.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: unix::net::UnixListener,
}

impl Port {
    /// Takes a free port.
    pub(crate) fn take() -> Self {
        loop {
            let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).or_fail("bind a free port");
            let number = probe.local_addr().or_fail("read the bound port").port();
            let name = format!("pgweir-testkit-port-{number}");
            let name = unix::net::SocketAddr::from_abstract_name(name)
                .or_fail("make the name of a port's claim");
            // It fails when another test has claimed the port and is not up.
            if let Ok(claim) = unix::net::UnixListener::bind_addr(&name) {
                return Self { number, _claim: claim };
            }
        }
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

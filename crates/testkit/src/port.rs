use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::{linux::net::SocketAddrExt, unix},
};

use socket2::{Domain, Socket, Type};

use crate::{deadline::eventually, fail::OrFail};

/// Below it lie the ports that services are known by.
const FIRST: u16 = 10_000;

/// Where Linux begins with the ports that it gives to connections, unless it was told otherwise.
const USUAL_EPHEMERAL: u16 = 32_768;

/// A TCP port of 127.0.0.1 that no other test has, in this process or another.
///
/// A unix socket with an abstract name that holds the number makes it ours until this value is
/// dropped, also while nothing listens on it (a server that is down for a moment gets its port
/// back). No test binds a number, not even to see if it is free, that it has not claimed so:
/// whoever connects before the server is up is refused. Nor has a client the number, or a listener
/// that asked for port 0: those are given others. A program that is no test of ours may still take
/// it: who starts a server on it must be ready for that.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _claim: unix::net::UnixListener,
}

impl Port {
    /// Takes a free port.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn take() -> Self {
        let numbers: Vec<_> = (FIRST..ephemeral()).collect();
        let begin = RandomState::new().hash_one(()) as usize % numbers.len();
        let tried = numbers[begin..].iter().chain(&numbers[..begin]).copied();
        tried.filter_map(Self::claim).find(Self::is_free).or_fail("find a free port")
    }

    /// `None` if another test has it.
    fn claim(number: u16) -> Option<Self> {
        let name = format!("pgweir-testkit-port-{number}");
        let name = unix::net::SocketAddr::from_abstract_name(name)
            .or_fail("make the name of a port's claim");
        let claim = unix::net::UnixListener::bind_addr(&name).ok()?;
        Some(Self { number, _claim: claim })
    }

    /// Whether no program that makes no claims has it.
    fn is_free(&self) -> bool {
        self.bound().is_ok()
    }

    /// A socket that has the number and never listens.
    ///
    /// A process that another thread starts at this moment has it too, until it runs its program.
    /// Did it listen, whoever waits for a server to be up would take it for that; and the server
    /// could not have the number meanwhile.
    pub(crate) fn bound(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&self.address().into())?;
        Ok(socket)
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Where a server with it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

/// Somebody else who listens where a server of a test wants to.
///
/// A process that another thread starts at this moment listens too, until it runs its program. So
/// its end is waited for: behind that the address is free.
#[derive(Debug)]
pub struct Stranger {
    address: SocketAddr,
    listener: Option<TcpListener>,
}

impl Stranger {
    /// Listens there.
    ///
    /// # Panics
    /// When somebody else does.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).or_fail("listen where a server wants to");
        Self { address, listener: Some(listener) }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.listener = None;
        if !std::thread::panicking() {
            eventually("a stranger to be gone", || TcpStream::connect(self.address).is_err());
        }
    }
}

/// The first port that a connection, or a listener that names none, is given.
fn ephemeral() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    // Where all ports are given to connections, some of them are still the best to take.
    first.filter(|&first| first > FIRST + 1_000).unwrap_or(USUAL_EPHEMERAL)
}

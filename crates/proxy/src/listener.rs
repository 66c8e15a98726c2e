use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;

use pgweir_config::TcpOptions;
use pgweir_engine::Ends;
use socket2::SockRef;
use tokio::net;

use crate::socket::{Stream, configure};

/// A socket that clients connect to. It must not block.
#[derive(Debug)]
pub enum Listener {
    /// One of TCP.
    Tcp(TcpListener),
    /// A unix socket, and the number in its name.
    Unix(UnixListener, u16),
}

/// All that a worker listens on, each under a name; without a socket where it has it already.
pub type Listeners = Vec<(String, Option<Listener>)>;

/// A [`Listener`] of the current thread's runtime.
pub(crate) enum Accepting {
    /// With its address, where connections are known to have no other.
    Tcp(net::TcpListener, Option<SocketAddr>),
    /// With the number in its name, and the user that this process runs as.
    Unix(net::UnixListener, u16, u32),
}

impl Accepting {
    /// Takes over a listener.
    pub(crate) fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                let listener = net::TcpListener::from_std(listener)?;
                let address = listener.local_addr().ok();
                let address = address.filter(|address| !address.ip().is_unspecified());
                Self::Tcp(listener, address)
            }
            Listener::Unix(listener, port) => {
                let listener = net::UnixListener::from_std(listener)?;
                Self::Unix(listener, port, rustix::process::geteuid().as_raw())
            }
        })
    }

    /// Sets what connections inherit that are accepted from now on.
    pub(crate) fn configure(&self, options: &TcpOptions) -> io::Result<()> {
        match self {
            Self::Tcp(listener, _) => configure(&SockRef::from(listener), options),
            Self::Unix(..) => Ok(()),
        }
    }

    /// The next connection, and what is known of its ends.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Option<Ends>)> {
        match self {
            Self::Tcp(listener, address) => {
                let (stream, peer) = listener.accept().await?;
                Ok(over_tcp(stream, Some(peer), *address))
            }
            Self::Unix(listener, port, user) => {
                let (stream, _) = listener.accept().await?;
                Ok(over_unix(stream, *port, *user))
            }
        }
    }

    /// A connection that is there already, whether or not the runtime has heard of it; an error
    /// where there is none.
    pub(crate) fn accept_now(&self) -> io::Result<(Stream, Option<Ends>)> {
        match self {
            Self::Tcp(listener, address) => {
                let (socket, peer) = SockRef::from(listener).accept()?;
                socket.set_nonblocking(true)?;
                let stream = net::TcpStream::from_std(socket.into())?;
                Ok(over_tcp(stream, peer.as_socket(), *address))
            }
            Self::Unix(listener, port, user) => {
                let (socket, _) = SockRef::from(listener).accept()?;
                socket.set_nonblocking(true)?;
                Ok(over_unix(net::UnixStream::from_std(socket.into())?, *port, *user))
            }
        }
    }
}

fn over_tcp(
    stream: net::TcpStream,
    peer: Option<SocketAddr>,
    address: Option<SocketAddr>,
) -> (Stream, Option<Ends>) {
    // The kernel is asked only where it may say more than is known.
    // No mark: it knows both ends of whatever it has accepted.
    let local = address.or_else(|| stream.local_addr().ok());
    let ends = peer.zip(local).map(|(peer, local)| Ends::Tcp { peer, local });
    (Stream::Tcp(stream), ends)
}

fn over_unix(stream: net::UnixStream, port: u16, user: u32) -> (Stream, Option<Ends>) {
    let own = stream.peer_cred().is_ok_and(|peer| peer.uid() == user);
    (Stream::Unix(stream), Some(Ends::Unix { port, own }))
}

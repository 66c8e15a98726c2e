//! A server that the test plays itself, to say what no PostgreSQL can be brought to say.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use pgweir_testkit::frames::message;
use pgweir_testkit::{PATIENCE, Pgweir, PoolerConfig, WireClient, eventually_some};

use crate::stage::{self, CLUSTER, PROGRAM};

const NAME: &str = "stand_in";

/// A pgweir, and the place of the one server that it may open.
pub(crate) struct StandIn {
    pub(crate) pgweir: Pgweir,
    listener: TcpListener,
}

impl StandIn {
    pub(crate) fn new() -> Self {
        Self::with(|config| config)
    }

    /// One with more to say in its configuration.
    pub(crate) fn with(settings: impl FnOnce(PoolerConfig) -> PoolerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        // It has no catalogue.
        let config = stage::trusting(&CLUSTER, NAME).pool("loud_functions", "\"ignore\"");
        let config = settings(config);
        // Whose memory is looked at starts no more threads while that is done.
        let config = config.general("worker_threads", "1").server_port(port).user(NAME, "", 1);
        Self { pgweir: Pgweir::start(PROGRAM, |port| config.text(port)), listener }
    }

    /// A client that has sent its startup packet.
    pub(crate) fn newcomer(&self) -> WireClient {
        let mut client = WireClient::open(self.pgweir.address()).unwrap();
        client.send(&stage::login(NAME).startup_message()).unwrap();
        client
    }

    /// The next connection that pgweir makes, when its startup packet has come.
    pub(crate) fn bare_server(&self) -> TcpStream {
        let (mut server, _) = eventually_some("a connection", || self.listener.accept().ok());
        server.set_nonblocking(false).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        server.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut length = [0; 4];
        server.read_exact(&mut length).unwrap();
        server.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4]).unwrap();
        server
    }

    /// The same, and it is let in. What it has room for it does not say.
    pub(crate) fn server(&self) -> TcpStream {
        let mut server = self.bare_server();
        let welcome = [
            message(b'R', &[0; 4]),
            message(b'S', b"server_version\x0015.0\0"),
            message(b'K', &[1; 8]),
            message(b'Z', b"I"),
        ];
        server.write_all(&welcome.concat()).unwrap();
        let mut header = [0; 5];
        server.read_exact(&mut header).unwrap();
        let [b'Q', length @ ..] = header else { panic!("{header:?}") };
        server.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4]).unwrap();
        let nothing = [message(b'C', b"SELECT 0\0"), message(b'Z', b"I")];
        server.write_all(&nothing.concat()).unwrap();
        server
    }

    /// Nobody listens there any more.
    pub(crate) fn goes(self) -> Pgweir {
        self.pgweir
    }

    /// A server, and a client that it has greeted.
    pub(crate) fn ready(&self) -> (TcpStream, WireClient) {
        let mut client = self.newcomer();
        let server = self.server();
        client.read_until_ready().unwrap();
        (server, client)
    }
}

//! A script with a real PostgreSQL.

use std::io::ErrorKind;

use pgweir_testkit::{Cluster, Login, WireClient, eventually};

use super::stage::{Doing, Heard, Peer, Stage};
use crate::language::sql::{CLUSTER, TABLES, translate};

pub(super) struct Real<'a> {
    cluster: &'a Cluster,
    /// A session beside the script, to look and to act with.
    monitor: WireClient,
    peers: Vec<Client>,
}

struct Client {
    wire: Option<WireClient>,
    process_id: u32,
}

/// With the server that scripts share.
pub(super) fn with_shared<T>(play: impl FnOnce(&mut dyn Stage) -> T) -> T {
    play(&mut Real::new(&CLUSTER))
}

/// With a server that nobody else uses, for what all of its sessions notice.
pub(super) fn with_own<T>(play: impl FnOnce(&mut dyn Stage) -> T) -> T {
    let cluster = Cluster::start();
    cluster.psql(TABLES);
    play(&mut Real::new(&cluster))
}

impl<'a> Real<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, monitor: monitor(cluster), peers: Vec::new() }
    }

    fn wire(&mut self, peer: Peer) -> &mut WireClient {
        self.peers[peer.0].wire.as_mut().expect("the script has not closed it")
    }

    fn is_doing(&mut self, peer: Peer, doing: Doing) -> bool {
        let process_id = self.peers[peer.0].process_id;
        let condition = match doing {
            Doing::Reading(tag) => {
                format!("wait_event = 'ClientRead' AND query LIKE '%/*{tag}*/%'")
            }
            Doing::Locked(tag) => {
                format!("wait_event_type = 'Lock' AND query LIKE '%/*{tag}*/%'")
            }
            Doing::Writing => "wait_event = 'ClientWrite'".to_owned(),
            Doing::Gone => "true".to_owned(),
        };
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {process_id} AND {condition}"
        );
        let found = self.monitor.query(&sql) == ["1"];
        found != (doing == Doing::Gone)
    }
}

impl Stage for Real<'_> {
    fn login(&mut self, settings: &[(&str, &str)]) -> Peer {
        let login = Login::new("postgres").database("postgres");
        let login =
            settings.iter().fold(login, |login, (name, value)| login.parameter(name, value));
        let wire = WireClient::login(self.cluster.address(), &login).expect("it is let in");
        let process_id = wire.cancel_key().expect("it has a key").pid;
        self.peers.push(Client { wire: Some(wire), process_id });
        Peer(self.peers.len() - 1)
    }

    fn send(&mut self, peer: Peer, messages: &[u8]) {
        self.wire(peer).send(&translate(messages)).expect("it reads");
    }

    fn half_close(&mut self, peer: Peer) {
        self.wire(peer).half_close().expect("it is open");
    }

    fn close(&mut self, peer: Peer) {
        self.peers[peer.0].wire = None;
    }

    fn reset(&mut self, peer: Peer) {
        let wire = self.peers[peer.0].wire.take().expect("the script has not closed it");
        wire.reset().expect("it is open");
    }

    fn cancel(&mut self, peer: Peer) {
        let address = self.cluster.address();
        let key = self.wire(peer).cancel_key().expect("it has a key");
        key.cancel(address).expect("the server closes the connection");
    }

    fn terminate(&mut self, peer: Peer) {
        let process_id = self.peers[peer.0].process_id;
        self.monitor.query(&format!("SELECT pg_terminate_backend({process_id})"));
    }

    fn kill(&mut self, peer: Peer) {
        self.cluster.kill_backend(self.peers[peer.0].process_id);
    }

    fn reload(&mut self) {
        self.monitor.query("ALTER SYSTEM SET TimeZone TO 'Asia/Tokyo'");
        self.monitor.query("SELECT pg_reload_conf()");
    }

    fn until(&mut self, peer: Peer, doing: Doing) {
        eventually(&format!("{peer:?} to be {doing:?}"), || self.is_doing(peer, doing));
    }

    fn next(&mut self, peer: Peer) -> Heard {
        match self.wire(peer).read() {
            Ok(Some(message)) => Heard::Message(message.tag, message.body),
            Ok(None) => Heard::End { cut: false },
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Heard::End { cut: true },
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Heard::Reset,
            Err(error) => panic!("{peer:?}: {error}"),
        }
    }

    fn has_more(&mut self, peer: Peer) -> bool {
        let wire = self.wire(peer);
        if wire.has_read_ahead() {
            return true;
        }
        let stream = wire.stream();
        stream.set_nonblocking(true).expect("it is a socket");
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).expect("it is a socket");
        // On one host a byte that was sent is there.
        peeked.is_ok()
    }

    fn written(&mut self, client: u32) -> Vec<u32> {
        let sql = format!("SELECT number FROM written WHERE client = {client} ORDER BY number");
        let rows = self.monitor.query(&sql);
        rows.iter().map(|number| number.parse().expect("it is a number")).collect()
    }
}

fn monitor(cluster: &Cluster) -> WireClient {
    let login = Login::new("postgres").database("postgres");
    WireClient::login(cluster.address(), &login).expect("it is let in")
}

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use pgweir_testkit::eventually_some;
use socket2::{SockFilter, SockRef};

use super::*;
use crate::tests::{begin, took};

const V4: (&str, &str) = ("127.0.0.1:0", "127.0.0.1");

/// Where to listen, and whom to dial then: a host may lack IPv6, but not all of these.
const FAMILIES: [(&str, &str); 4] =
    [V4, ("0.0.0.0:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")];

/// A connection to an address of this host: our end and the peer's.
fn connection(listen: &str, dial: &str) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(listen)?;
    let peer = TcpStream::connect((dial, listener.local_addr()?.port()))?;
    Ok((listener.accept()?.0, peer))
}

/// As [`connection`], of each family that this host has.
fn connections() -> impl Iterator<Item = (&'static str, (TcpStream, TcpStream))> {
    FAMILIES.into_iter().filter_map(|(listen, dial)| match connection(listen, dial) {
        Ok(both) => Some((listen, both)),
        Err(_) if listen.starts_with('[') => None,
        Err(error) => panic!("{listen}: {error}"),
    })
}

impl SockDiag {
    /// One that is not the kernel, and says nothing.
    pub(crate) fn mute() -> Self {
        Self { kernel: std::fs::File::open("/dev/null").unwrap().into(), asked: Cell::new(0) }
    }
}

fn opened() -> SockDiag {
    begin();
    let listener = TcpListener::bind(V4.0).unwrap();
    SockDiag::open(listener.local_addr().unwrap()).unwrap()
}

fn ends(connection: &TcpStream) -> (SocketAddr, SocketAddr) {
    (connection.local_addr().unwrap(), connection.peer_addr().unwrap())
}

fn silence_of(connection: &TcpStream) -> Option<Duration> {
    let (local, peer) = ends(connection);
    opened().silence(local, peer).unwrap()
}

/// From now on no segment reaches this socket, so it acknowledges none. What it sends arrives.
fn deafen(peer: &TcpStream) {
    // BPF_RET | BPF_K: of every segment zero bytes are let through.
    SockRef::from(peer).attach_filter(&[SockFilter::new(0x06, 0, 0, 0)]).unwrap();
}

#[test]
fn a_peer_that_acknowledges_nothing_is_silent() {
    for (listen, (mut connection, peer)) in connections() {
        connection.write_all(b"arrives").unwrap();
        assert_eq!(silence_of(&connection), None, "{listen}");
        deafen(&peer);
        connection.write_all(b"does not").unwrap();
        let silence = eventually_some("a segment to be sent again", || silence_of(&connection));
        assert!(silence >= Duration::from_millis(100), "{listen}: {silence:?}");
        SockRef::from(&peer).detach_filter().unwrap();
        let answered = || silence_of(&connection).is_none().then_some(());
        eventually_some("it to arrive", answered);
    }
}

/// Its data acknowledges nothing new, and is a sign of life all the same.
#[test]
fn a_peer_that_sends_is_not_silent() {
    let (mut connection, mut peer) = connection(V4.0, V4.1).unwrap();
    deafen(&peer);
    connection.write_all(b"does not arrive").unwrap();
    let long = Duration::from_secs(1);
    eventually_some("a long silence", || silence_of(&connection).filter(|so_far| *so_far > long));
    for _ in 0..3 {
        peer.write_all(b"arrives").unwrap();
        let silence = silence_of(&connection);
        assert!(silence.is_none_or(|silence| silence < long), "{silence:?}");
    }
}

#[test]
fn a_connection_that_is_closed_is_not_silent() {
    let (connection, peer) = connection(V4.0, V4.1).unwrap();
    let (local, remote) = ends(&connection);
    drop((connection, peer));
    let kernel = opened();
    assert_eq!(kernel.silence(local, remote).unwrap(), None);
    assert_eq!(kernel.silence(remote, "127.0.0.1:1".parse().unwrap()).unwrap(), None);
    assert!(took(Mark::ConnectionUnknown));
}

/// The kernel answers for the socket that listens, with what is no connection's.
#[test]
fn a_connection_that_was_never_made_is_not_there() {
    let listener = TcpListener::bind(V4.0).unwrap();
    let local = listener.local_addr().unwrap();
    begin();
    let kernel = SockDiag::open(local).unwrap();
    assert_eq!(kernel.ask(request(local, "127.0.0.1:1".parse().unwrap())).unwrap(), None);
    assert!(took(Mark::AnswerOfListener));
}

#[test]
fn every_listener_can_be_asked_about() {
    for (listen, _) in FAMILIES {
        let Ok(listener) = TcpListener::bind(listen) else { continue };
        SockDiag::open(listener.local_addr().unwrap()).unwrap();
    }
}

/// A kernel without tcp_diag answers as if no connection existed at all.
#[test]
fn a_kernel_that_does_not_know_the_listener_is_not_believed() {
    begin();
    let gone = TcpListener::bind(V4.0).unwrap().local_addr().unwrap();
    assert!(SockDiag::open(gone).is_err());
    assert!(took(Mark::ListenerUnknown));
}

#[test]
fn a_question_that_is_refused_is_an_error() {
    let (connection, _peer) = connection(V4.0, V4.1).unwrap();
    let (local, peer) = ends(&connection);
    let mut question = request(local, peer);
    let no_family = 255;
    question[NLMSG_HDR_LEN] = no_family;
    let kernel = opened();
    assert_eq!(kernel.ask(question).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert!(took(Mark::QuestionRefused));
    assert!(kernel.ask(request(local, peer)).unwrap().is_some());
}

/// An answer that nobody has read is not taken for the next one, nor does it stay in the way.
#[test]
fn each_question_has_its_own_answer() {
    let (connection, _peer) = connection(V4.0, V4.1).unwrap();
    let (local, peer) = ends(&connection);
    let kernel = opened();
    let nobody = "127.0.0.1:1".parse().unwrap();
    for unread in [request(local, peer), request(local, nobody)] {
        let kernel_itself = SocketAddrNetlink::new(0, 0);
        sendto(&kernel.kernel, &unread, SendFlags::empty(), &kernel_itself).unwrap();
        assert_eq!(kernel.ask(request(local, nobody)).unwrap(), None);
        assert!(took(Mark::AnswerToBefore));
        assert!(kernel.ask(request(local, peer)).unwrap().is_some());
    }
}

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use pgweir_testkit::eventually_some;
use socket2::{SockFilter, SockRef};

use super::*;

/// A connection to an address of this host: our end and the peer's.
fn connection(listen: &str, dial: &str) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(listen)?;
    let peer = TcpStream::connect((dial, listener.local_addr()?.port()))?;
    Ok((listener.accept()?.0, peer))
}

fn silence_of(connection: &TcpStream) -> Option<Duration> {
    let (local, peer) = (connection.local_addr().unwrap(), connection.peer_addr().unwrap());
    SockDiag::open().unwrap().silence(local, peer).unwrap()
}

#[test]
fn a_peer_that_acknowledges_nothing_is_silent() {
    let v4 = ("127.0.0.1:0", "127.0.0.1");
    for (listen, dial) in [v4, ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")] {
        let (mut connection, peer) = match connection(listen, dial) {
            Ok(both) => both,
            // A host without IPv6.
            Err(_) if listen != v4.0 => continue,
            Err(error) => panic!("{error}"),
        };
        connection.write_all(b"arrives").unwrap();
        assert_eq!(silence_of(&connection), None, "{listen}");
        // BPF_RET | BPF_K: of every segment zero bytes are let through.
        SockRef::from(&peer).attach_filter(&[SockFilter::new(0x06, 0, 0, 0)]).unwrap();
        connection.write_all(b"does not").unwrap();
        let silence = eventually_some("a segment to be sent again", || silence_of(&connection));
        assert!(silence >= Duration::from_millis(100), "{listen}: {silence:?}");
        SockRef::from(&peer).detach_filter().unwrap();
        let answered = || silence_of(&connection).is_none().then_some(());
        eventually_some("it to arrive", answered);
    }
}

#[test]
fn a_connection_that_is_closed_is_not_silent() {
    let (connection, peer) = connection("127.0.0.1:0", "127.0.0.1").unwrap();
    let (local, remote) = (connection.local_addr().unwrap(), connection.peer_addr().unwrap());
    drop((connection, peer));
    let kernel = SockDiag::open().unwrap();
    assert_eq!(kernel.silence(local, remote).unwrap(), None);
    assert_eq!(kernel.silence(remote, "127.0.0.1:1".parse().unwrap()).unwrap(), None);
}

use std::net::{TcpListener, TcpStream as Peer};

use socket2::{Domain, SockRef, Type};
use tokio::runtime::{Builder, LocalOptions};

use super::*;
use crate::tests::{begin, took};

/// A connection that its peer has reset.
fn reset() -> Rc<Socket> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = Peer::connect(listener.local_addr().expect("it listens")).expect("it listens");
    let (stream, _) = listener.accept().expect("it has come");
    SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("it takes it");
    drop(peer);
    stream.set_nonblocking(true).expect("it does not block");
    Socket::new(Stream::Tcp(TcpStream::from_std(stream).expect("it can be waited for")))
}

fn on_a_worker(test: impl Future<Output = ()>) {
    begin();
    let runtime = Builder::new_current_thread().enable_io().build_local(LocalOptions::default());
    runtime.expect("a runtime").block_on(test);
}

/// There is nothing to ask about, nor to wait for: the worker hears of it by itself.
#[test]
fn a_peer_that_is_gone_is_not_silent() {
    on_a_worker(async {
        let kernel =
            TcpListener::bind("127.0.0.1:0").and_then(|it| SockDiag::open(it.local_addr()?));
        assert_eq!(reset().silence(&kernel.expect("it can be asked")), None);
        assert!(took(Mark::SilenceOfGone));
    });
}

/// Nobody is broken off for that.
#[test]
fn a_peer_is_not_silent_of_whom_the_kernel_says_nothing() {
    on_a_worker(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let peer = Peer::connect(listener.local_addr().expect("it listens")).expect("it listens");
        peer.set_nonblocking(true).expect("it does not block");
        let peer = Stream::Tcp(TcpStream::from_std(peer).expect("it can be waited for"));
        assert_eq!(Socket::new(peer).silence(&SockDiag::mute()), None);
        assert!(took(Mark::SilenceUntold));
    });
}

/// The kernel says it once, and whoever has read or written may have been told.
#[test]
fn a_connection_is_broken_though_the_cause_was_told_before() {
    on_a_worker(async {
        let socket = reset();
        for _ in 0..2 {
            assert_eq!(socket.broken().await.kind(), io::ErrorKind::ConnectionReset);
        }
        assert!(took(Mark::BrokenUnsaid));
    });
}

/// What follows finds the end of the connection, as it would have without.
#[test]
fn a_stream_that_is_broken_is_not_ended() {
    on_a_worker(async {
        let socket = reset();
        socket.half_close();
        assert!(took(Mark::HalfCloseInVain));
        let reset = socket.try_read(&mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(reset, Err(io::ErrorKind::ConnectionReset));
    });
}

/// A client may be sent away in the turn in which it has come, before the runtime has asked the
/// kernel about it: closed with its startup packet unread, it found a reset behind our error.
#[test]
fn input_is_discarded_that_the_runtime_does_not_know_of() {
    on_a_worker(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it listens");
        let mut peer = Peer::connect(address).expect("it listens");
        io::Write::write_all(&mut peer, b"startup packet").expect("there is room");
        let (stream, _) = listener.accept().expect("it has come");
        stream.set_nonblocking(true).expect("it does not block");
        let stream = TcpStream::from_std(stream).expect("it can be waited for");
        let socket = Socket::new(Stream::Tcp(stream));
        assert!(!socket.discard_input() && took(Mark::InputDiscarded));
        drop(socket);
        let end = io::Read::read(&mut peer, &mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(end, Ok(0), "no reset");
    });
}

#[test]
fn input_without_an_end_is_not_discarded_for_ever() {
    begin();
    let mut discarded = 0;
    let more = discard(|buffer| {
        discarded += buffer.len();
        assert!(discarded <= DISCARDED_BYTES, "it goes on");
        Ok(buffer.len())
    });
    assert!(more && took(Mark::MuchDiscarded));
}

#[test]
fn input_is_discarded_until_there_is_none() {
    let none = [|| Ok(0), || Err(io::ErrorKind::WouldBlock.into())];
    for none in none {
        let mut reads = 0;
        let more = discard(|_| {
            reads += 1;
            if reads < 3 { Ok(1) } else { none() }
        });
        assert_eq!((more, reads), (false, 3));
    }
}

/// A listener that stays over a reload kept what it had been told before.
#[test]
fn options_that_are_taken_back_are_the_kernels_own() {
    let socket = || Socket2::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let options_of = |socket: &Socket2| TcpOptions {
        keepalives_idle: socket.tcp_keepalive_time().ok(),
        keepalives_interval: socket.tcp_keepalive_interval().ok(),
        keepalives_count: socket.tcp_keepalive_retries().ok(),
        user_timeout: None,
    };
    let asked = TcpOptions {
        keepalives_idle: Some(Duration::from_secs(61)),
        keepalives_interval: Some(Duration::from_secs(62)),
        keepalives_count: Some(63),
        user_timeout: None,
    };
    let none = TcpOptions {
        keepalives_idle: None,
        keepalives_interval: None,
        keepalives_count: None,
        user_timeout: None,
    };
    let listener = socket();
    configure(&listener, &asked).expect("the kernel takes it");
    assert_eq!(options_of(&listener), asked);
    configure(&listener, &none).expect("the kernel takes it");
    assert_eq!(options_of(&listener), options_of(&socket()));
}

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use tokio::net;
use tokio::runtime::{Builder, LocalOptions};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::socket::Stream;
use crate::tests::{alone, begin, took};
use crate::transport::Transport;

/// Our end, as the worker has it, and the peer's.
type Connection = (Rc<Socket>, Box<dyn Read>);

/// Connections of each kind.
const KINDS: [fn() -> Connection; 2] = [over_tcp, over_a_unix_socket];

fn over_tcp() -> Connection {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let stream = listener.accept().unwrap().0;
    stream.set_nonblocking(true).unwrap();
    let stream = net::TcpStream::from_std(stream).unwrap();
    (Socket::new(Stream::Tcp(stream)), Box::new(peer))
}

fn over_a_unix_socket() -> Connection {
    let (stream, peer) = UnixStream::pair().unwrap();
    stream.set_nonblocking(true).unwrap();
    let stream = net::UnixStream::from_std(stream).unwrap();
    (Socket::new(Stream::Unix(stream)), Box::new(peer))
}

fn on_a_worker(test: impl AsyncFn(&mut Batch)) {
    begin();
    let runtime =
        Builder::new_current_thread().enable_io().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let mut batch = Batch::new();
        assert!(batch.context.is_some(), "this kernel has no io_submit");
        test(&mut batch).await;
        test(&mut Batch { context: None }).await;
    });
}

/// Writes a text to each, and gives what became of it.
fn write(batch: &mut Batch, to: &[(&Rc<Socket>, &[u8])]) -> Vec<io::Result<usize>> {
    let mut pieces: Vec<_> =
        to.iter().map(|(io, bytes)| Piece { io: *io, bytes, written: Ok(0) }).collect();
    batch.write(&mut pieces);
    pieces.into_iter().map(|piece| piece.written).collect()
}

#[test]
fn each_gets_its_own() {
    on_a_worker(async |batch| {
        // More than one call takes, and a few left over.
        let kinds = KINDS.iter().cycle().take(PIECES + 3);
        let connections: Vec<_> = kinds.map(|connection| connection()).collect();
        let texts: Vec<_> = (0..PIECES + 3).map(|n| format!("text {n}")).collect();
        let to: Vec<_> =
            connections.iter().zip(&texts).map(|((io, _), text)| (io, text.as_bytes())).collect();
        for (written, text) in write(batch, &to).into_iter().zip(&texts) {
            assert_eq!(written.unwrap(), text.len());
        }
        for ((_, mut peer), text) in connections.into_iter().zip(texts) {
            let mut heard = vec![0; text.len()];
            peer.read_exact(&mut heard).unwrap();
            assert_eq!(heard, text.as_bytes());
        }
    });
}

#[test]
fn one_without_room_or_peer_does_not_concern_the_others() {
    on_a_worker(async |batch| {
        for connection in KINDS {
            let [full, gone, well, fine] = [(); 4].map(|()| connection());
            while full.0.try_write(&[0; 64 * 1024]).is_ok() {}
            drop(gone.1);
            // What is sent first only makes the peer's kernel say that nobody is there.
            while gone.0.try_write(b"?").is_ok() {}
            let written = write(
                batch,
                &[(&full.0, b"full"), (&gone.0, b"gone"), (&well.0, b"well"), (&fine.0, b"fine")],
            );
            let kinds: Vec<_> =
                written.into_iter().map(|written| written.map_err(|e| e.kind())).collect();
            assert_eq!(kinds[0], Err(io::ErrorKind::WouldBlock));
            assert!(matches!(
                kinds[1],
                Err(io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
            ));
            assert_eq!(kinds[2..], [Ok(4), Ok(4)]);
        }
    });
}

/// As where a container forbids it from now on: each piece goes out by itself.
#[test]
fn what_the_kernel_does_not_take_together_goes_out_one_by_one() {
    on_a_worker(async |batch| {
        // It knows no such context.
        batch.context = Some(Context { id: 1, blocks: Vec::new() });
        let connections = KINDS.map(|connection| connection());
        let to: Vec<_> = connections.iter().map(|(io, _)| (io, &b"text"[..])).collect();
        for written in write(batch, &to) {
            assert_eq!(written.unwrap(), 4);
        }
        assert!(batch.context.is_none(), "it will be refused again");
        assert!(took(Mark::IoSubmitForbidden));
        for (_, mut peer) in connections {
            let mut heard = [0; 4];
            peer.read_exact(&mut heard).unwrap();
            assert_eq!(&heard, b"text");
        }
    });
}

/// A context needs a page of memory that is the kernel's, too.
#[test]
fn a_kernel_that_takes_nothing_together_is_not_asked_to() {
    alone("batch::tests::a_kernel_that_takes_nothing_together_is_not_asked_to", || {
        begin();
        let limit = getrlimit(Resource::As);
        let no_more = Rlimit { current: Some(0), maximum: limit.maximum };
        setrlimit(Resource::As, no_more).unwrap();
        let batch = Batch::new();
        setrlimit(Resource::As, limit).unwrap();
        assert!(batch.context.is_none() && took(Mark::NoIoSubmit));
    });
}

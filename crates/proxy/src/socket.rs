use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pgweir_config::TcpOptions;
use pgweir_engine::Mark;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use socket2::{Domain, Socket as Socket2, TcpKeepalive, Type};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::sock_diag::SockDiag;
use crate::transport::Transport;

/// So much input is thrown away at once, before others have their turn.
const DISCARDED_BYTES: usize = 256 * 1024;

/// A connection of a worker: the worker's driver reads and writes, its own task waits.
///
/// Reading and writing go straight to the kernel, whatever readiness the runtime believes in, and
/// not through libc, whose calls may be points of cancellation and pay for it. So
/// readiness is cleared by hand, after a read that got less than there was room for, which saves
/// the second read that would only say so.
pub(crate) struct Socket {
    stream: Stream,
    /// The task, while it waits.
    waker: RefCell<Option<Waker>>,
    /// It goes on under another descriptor.
    detached: Cell<bool>,
}

impl Socket {
    /// Takes over a connection of the current thread's runtime.
    pub(crate) fn new(stream: Stream) -> Rc<Self> {
        Rc::new(Self { stream, waker: RefCell::new(None), detached: Cell::new(false) })
    }

    /// The connection, to be used by another thread. Nothing is to be read from this one any more.
    pub(crate) fn detach(&self) -> io::Result<Detached> {
        let descriptor = self.stream.as_fd().try_clone_to_owned()?;
        self.detached.set(true);
        Ok(match &self.stream {
            Stream::Tcp(_) => Detached::Tcp(descriptor.into()),
            Stream::Unix(_) => Detached::Unix(descriptor.into()),
        })
    }

    /// Whether [`Socket::detach`] was called.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.get()
    }

    /// How long nothing has come from the peer, although the kernel repeats itself.
    ///
    /// `TCP_USER_TIMEOUT` is not the same: it also ends connections whose peer answers every probe
    /// and does not read (tcp_probe_timer, Linux). A backend that waits for a lock with a full
    /// buffer is such a peer, and so is an application that stands still in a debugger.
    ///
    /// A peer on a unix socket cannot vanish without the kernel closing its end.
    pub(crate) fn silence(&self, kernel: &SockDiag) -> Option<Duration> {
        match &self.stream {
            Stream::Tcp(stream) => {
                let (local, peer) = (stream.local_addr(), stream.peer_addr());
                Mark::SilenceOfGone.hit_if(peer.is_err());
                let silence = kernel.silence(local.ok()?, peer.ok()?);
                Mark::SilenceUntold.hit_if(silence.is_err());
                silence.ok()?
            }
            Stream::Unix(_) => None,
        }
    }

    /// Waits for bytes.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.stream {
            Stream::Tcp(stream) => stream.poll_read_ready(cx),
            Stream::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Waits for room to write.
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.stream {
            Stream::Tcp(stream) => stream.poll_write_ready(cx),
            Stream::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    /// Waits until the connection is broken, though nobody reads it, and says why.
    pub(crate) async fn broken(&self) -> io::Error {
        let (ready, cause) = match &self.stream {
            Stream::Tcp(stream) => (stream.ready(Interest::ERROR).await, stream.take_error()),
            Stream::Unix(stream) => (stream.ready(Interest::ERROR).await, stream.take_error()),
        };
        let unknown = io::ErrorKind::ConnectionReset.into();
        match (ready, cause) {
            // The runtime is shutting down.
            (Err(error), _) | (Ok(_), Err(error) | Ok(Some(error))) => error,
            (Ok(_), Ok(None)) => {
                Mark::BrokenUnsaid.hit();
                unknown
            }
        }
    }

    /// All bytes were read.
    pub(crate) fn clear_read_ready(&self) {
        self.clear(Interest::READABLE);
    }

    /// The room was filled.
    pub(crate) fn clear_write_ready(&self) {
        self.clear(Interest::WRITABLE);
    }

    /// Notes whom [`Transport::wake`] wakes.
    pub(crate) fn wait(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Throws away what the peer has sent: a close with input left unread would reset the
    /// connection, and the peer might lose our last words to it. The kernel is asked, since what
    /// was accepted in this turn the runtime knows nothing of. Says whether there may be more: a
    /// peer that never stops is not read for ever.
    pub(crate) fn discard_input(&self) -> bool {
        discard(|buffer| Ok(recv(&self.stream, buffer, RecvFlags::empty())?.0))
    }

    fn clear(&self, interest: Interest) {
        let would_block = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        // Its result is what the closure says.
        let _ = self.stream.try_io(interest, would_block);
    }
}

/// What a connection goes over. It is told apart where it is waited for only: the kernel reads and
/// writes both alike.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn try_io<R>(&self, interest: Interest, io: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        match self {
            Self::Tcp(stream) => stream.try_io(interest, io),
            Self::Unix(stream) => stream.try_io(interest, io),
        }
    }
}

/// A connection of no thread's runtime, on its way from one worker to another.
#[derive(Debug)]
pub enum Detached {
    /// One over TCP.
    Tcp(std::net::TcpStream),
    /// One over a unix socket.
    Unix(std::os::unix::net::UnixStream),
}

impl Detached {
    /// Takes it over to the current thread's runtime.
    pub(crate) fn attach(self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Self::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_fd().as_raw_fd()
    }
}

impl Transport for Rc<Socket> {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.stream, buffer, RecvFlags::empty())?.0)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.stream, bytes, SendFlags::NOSIGNAL)?)
    }

    /// Nothing: the close that follows at once says it too.
    fn shutdown(&self) {}

    fn half_close(&self) {
        // It fails where there is nobody left to tell.
        Mark::HalfCloseInVain.hit_if(shutdown(&self.stream, Shutdown::Write).is_err());
    }

    fn local(&self) -> Option<SocketAddr> {
        match &self.stream {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Reads until nothing is left, or [`DISCARDED_BYTES`]: says whether it is the latter.
fn discard(mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> bool {
    let mut buffer = [0; 16 * 1024];
    let mut discarded = 0;
    while discarded < DISCARDED_BYTES {
        match read(&mut buffer) {
            Ok(0) | Err(_) => {
                Mark::InputDiscarded.hit_if(discarded > 0);
                return false;
            }
            Ok(n) => discarded += n,
        }
    }
    Mark::MuchDiscarded.hit();
    true
}

/// Sets the options of a connection, or of a listener for all that it accepts from now on.
///
/// Nagle off, since every write is a whole answer; keepalive as configured, so that a peer that
/// vanished without a word is noticed.
///
/// # Errors
/// When the kernel refuses a value.
pub fn configure(socket: &Socket2, options: &TcpOptions) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    let mut keepalive = TcpKeepalive::new();
    if let Some(idle) = due(options.keepalives_idle, socket, Socket2::tcp_keepalive_time)? {
        keepalive = keepalive.with_time(idle);
    }
    let interval = due(options.keepalives_interval, socket, Socket2::tcp_keepalive_interval)?;
    if let Some(interval) = interval {
        keepalive = keepalive.with_interval(interval);
    }
    if let Some(count) = due(options.keepalives_count, socket, Socket2::tcp_keepalive_retries)? {
        keepalive = keepalive.with_retries(count);
    }
    socket.set_tcp_keepalive(&keepalive)
}

/// What to set an option to. Where nothing is asked for it is the kernel's own value, which a
/// listener that was told another before a reload has lost, and a new socket shows.
fn due<T: PartialEq>(
    asked: Option<T>,
    socket: &Socket2,
    option: fn(&Socket2) -> io::Result<T>,
) -> io::Result<Option<T>> {
    if asked.is_some() {
        return Ok(asked);
    }
    let kernels = option(&Socket2::new(Domain::IPV4, Type::STREAM, None)?)?;
    Ok((option(socket)? != kernels).then_some(kernels))
}

#[cfg(test)]
mod tests;

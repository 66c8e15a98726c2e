//! A server half a millisecond away: a forwarder that holds back what goes to the server.
//!
//! Every chunk of a request waits [`DELAY`] from its arrival; replies pass at once. To a client
//! that waits for replies this is the same as half of it each way, at half the work. The delay is
//! the same for all chunks, so one queue for all connections is in order of time, and one timer
//! serves it. The timer is a timerfd: those of the runtime are a millisecond coarse.
//!
//! A server that is away would leave all processors to those before it. So what the forwarder takes
//! of them is to be little: it reaches the server through its unix socket.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream, tcp, unix};
use tokio::runtime::LocalRuntime;
use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::clock;

/// What the way to the server and back takes longer than without us.
pub(crate) const DELAY: Duration = Duration::from_micros(500);
/// The most that one read takes.
const BUFFER: usize = 16 << 10;

/// Forwards connections on `port` of 127.0.0.1 to the unix socket `server`, until it is killed.
pub(crate) fn run(port: u16, server: &Path) -> io::Result<()> {
    LocalRuntime::new()?.block_on(async {
        let line = Rc::new(Line::default());
        spawn_local(Rc::clone(&line).release());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        loop {
            let (client, _) = listener.accept().await?;
            let server = UnixStream::connect(server).await?;
            client.set_nodelay(true)?;
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            spawn_local(Rc::clone(&line).hold(from_client, Rc::new(to_server)));
            spawn_local(pass(from_server, to_client));
        }
    })
}

/// What is on its way to servers.
#[derive(Default)]
struct Line {
    /// In order of `due`.
    chunks: RefCell<VecDeque<Chunk>>,
    arrived: Notify,
}

/// The bytes of one read. Dropping the last handle of `server` ends the stream to it: after the
/// last chunk of a client that has left.
struct Chunk {
    due: Instant,
    server: Rc<unix::OwnedWriteHalf>,
    bytes: Vec<u8>,
}

impl Line {
    /// Puts what the client sends on the line.
    async fn hold(
        self: Rc<Self>,
        mut client: tcp::OwnedReadHalf,
        server: Rc<unix::OwnedWriteHalf>,
    ) {
        let mut buffer = vec![0; BUFFER];
        // An error is an end too.
        while let read @ 1.. = client.read(&mut buffer).await.unwrap_or(0) {
            let (due, server) = (clock::now() + DELAY, Rc::clone(&server));
            self.chunks.borrow_mut().push_back(Chunk { due, server, bytes: buffer[..read].into() });
            self.arrived.notify_one();
        }
    }

    /// Hands chunks to their servers when they are due.
    async fn release(self: Rc<Self>) -> io::Result<()> {
        let timer = Timer::new()?;
        loop {
            let due = self.chunks.borrow().front().map(|chunk| chunk.due);
            match due {
                None => self.arrived.notified().await,
                Some(due) => timer.wait_until(due).await?,
            }
            while let Some(Chunk { server, bytes, .. }) = self.take_due(clock::now()) {
                // A server that has left is noticed by the client, whose replies end.
                let _ = write(&server, &bytes).await;
            }
        }
    }

    fn take_due(&self, now: Instant) -> Option<Chunk> {
        let mut chunks = self.chunks.borrow_mut();
        if chunks.front()?.due <= now { chunks.pop_front() } else { None }
    }
}

/// Passes what the server sends straight on, to its end.
async fn pass(mut server: unix::OwnedReadHalf, mut client: tcp::OwnedWriteHalf) {
    let mut buffer = vec![0; BUFFER];
    while let read @ 1.. = server.read(&mut buffer).await.unwrap_or(0) {
        if client.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn write(stream: &unix::OwnedWriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A timer that keeps microseconds.
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(deprecated, reason = "unsound only for types that may change their descriptor")]
        let timer = AsyncFd::new(timer)?;
        Ok(Self(timer))
    }

    async fn wait_until(&self, due: Instant) -> io::Result<()> {
        let left = due.saturating_duration_since(clock::now());
        if left.is_zero() {
            return Ok(());
        }
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() },
        };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0; 8])?));
            if let Ok(read) = read {
                return read.map(drop);
            }
        }
    }
}

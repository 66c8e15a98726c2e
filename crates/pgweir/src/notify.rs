use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// What whoever has started us may want to know (sd_notify(3)).
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// Clients are taken, and no reload is under way.
    Ready,
    /// The configuration is being loaded again; Ready follows, however that goes.
    Reloading,
    /// No more are taken; we end, at once or when those that there are have finished.
    Stopping,
}

impl State {
    fn message(self) -> String {
        match self {
            Self::Ready => "READY=1".to_owned(),
            // By its time `Type=notify-reload` tells this reload from one that came before.
            Self::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_micros()),
            Self::Stopping => "STOPPING=1".to_owned(),
        }
    }
}

/// Tells it, if somebody wants to know: systemd, or who else has set `NOTIFY_SOCKET`. Nothing is
/// waited for.
pub(crate) fn notify(state: State) {
    let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    if let Err(error) = send(&name, state) {
        tracing::warn!("NOTIFY_SOCKET was not told that we are {state:?}: {error}");
    }
}

/// Sends one datagram. A name that begins with `@` is abstract.
fn send(name: &OsStr, state: State) -> io::Result<()> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.message().as_bytes(), &address)?;
    Ok(())
}

/// The time of `CLOCK_MONOTONIC`, which services share with whoever has started them.
fn monotonic_micros() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

use std::io;
use std::net::SocketAddr;

/// What the data plane needs of a connection: TCP, a unix socket, TLS, a simulated network.
///
/// Nothing here waits. When a call would block, whoever awaits readiness for the connection (a
/// task, or the simulator's scheduler) tells the [`crate::Driver`] later.
pub trait Transport {
    /// Reads what there is; 0 bytes mean that the stream has ended.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes what there is room for.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Says that nothing more will be written: the peer reads to the end and sees it.
    fn shutdown(&self);

    /// The same for a connection that is still read.
    fn half_close(&self) {
        self.shutdown();
    }

    /// Where it begins, over TCP, if that is known.
    fn local(&self) -> Option<SocketAddr> {
        None
    }

    /// What [`crate::Driver::interest`] says for this connection has changed.
    fn wake(&self);
}

//! How a server is, whatever its processes do.

/// Whether a server takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Health {
    Up,
    /// Nobody listens.
    Down,
    /// It recovers, or shuts down: logins are answered with 57P03.
    Starting,
    ShuttingDown,
    /// It has no room: logins are answered with 53300.
    Full,
    /// Nobody gets in.
    Refusing,
    /// Logins are not answered.
    Silent,
}

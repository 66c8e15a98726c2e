//! What the console can ask of the process, beside its reply.

use pgweir_config::Change;

/// Something to be done by whoever runs the process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Order {
    /// As SIGTERM: take no more clients, and end when those that are there have finished.
    Drain,
    /// As SIGHUP: go on with what the configuration's file says now. The reply says how that went,
    /// so it is carried out before; the others after it.
    Reload,
    /// Go on with this change, until the file is read again. The reply says how that went, too.
    Set(Change),
    /// Tell every client that this is the end, and end.
    ShutDown,
}

/// How an order is given, and what SHOW HELP says of it.
pub(crate) struct Row {
    pub(crate) order: Order,
    /// The command, which is also the tag of its CommandComplete.
    pub(crate) command: &'static str,
    pub(crate) argument: Option<&'static str>,
    pub(crate) about: &'static str,
}

/// Every way to give one that is said in fixed words.
pub(crate) static ORDERS: [Row; 4] = [
    Row {
        order: Order::Reload,
        command: "RELOAD",
        argument: None,
        about: "read the configuration's file again",
    },
    Row {
        order: Order::ShutDown,
        command: "SHUTDOWN",
        argument: None,
        about: "end at once; clients are told",
    },
    Row {
        order: Order::Drain,
        command: "SHUTDOWN",
        argument: Some("WAIT_FOR_CLIENTS"),
        about: "end when clients have finished their transactions, or after shutdown_timeout",
    },
    Row {
        order: Order::Drain,
        command: "SHUTDOWN",
        argument: Some("WAIT_FOR_SERVERS"),
        about: "the same",
    },
];

use std::fmt;
use std::ops::Range;

use pgweir_config::{Room, SocketName};

use crate::cancel::Cancel;
use crate::catalogue::CatalogueRows;
use crate::client::{Client, Ends};
use crate::handover::HandedOver;
use crate::server::Server;
use crate::store::Key;

/// A client's connection.
pub type ClientId = Key<Client>;
/// A connection to a server.
pub type ServerId = Key<Server>;
/// A connection to a server that carries a CancelRequest.
pub type CancelId = Key<Cancel>;

/// One of the connections that the engine speaks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// To a server, for a cancel.
    Cancel(CancelId),
    /// From a client.
    Client(ClientId),
    /// To a server.
    Server(ServerId),
}

/// Something that the driver has to do, in the order given.
///
/// The engine never owns payload: what is forwarded is named as a range of the bytes that the
/// driver passed in, so a driver must carry out all actions of a call before it lets go of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write these bytes to this connection, behind all that was written there before.
    Write(Endpoint, Bytes),
    /// Keep these bytes of the input for this client behind those that are kept already.
    Hold(ClientId, Range<usize>),
    /// Write what is kept for this client.
    Release(ClientId),
    /// Throw away what is kept for this client.
    Discard(ClientId),
    /// So many of the bytes at the front of what this client's driver has retained are done with.
    Consume(ClientId, usize),
    /// Put these bytes of [`Actions::own`] in front of what this client's driver has retained: they
    /// are to be read once more.
    Restore(ClientId, Range<usize>),
    /// Call [`crate::Engine::client_input`] again with the bytes that this client's driver has
    /// retained, even if there are none: something they waited for has happened.
    Resume(ClientId),
    /// Stop or go on reading from this connection.
    Read(Endpoint, bool),
    /// Open a connection to this address; answered by `connected` or `connect_failed`.
    Connect(Endpoint, Address),
    /// Say on this connection that nothing follows, and drop what there is no room for at once; it
    /// is still read, up to its end.
    HalfClose(Endpoint),
    /// Close this connection once what was written to it is out. The engine has forgotten it.
    Close(Endpoint),
    /// Close this connection now; what there is no room for at once is dropped.
    Abort(Endpoint),
    /// Give this client's connection, with all that it has sent and that was not consumed, to
    /// another worker, whose engine is told by `client_handed_over`. This one has forgotten it.
    HandOver(ClientId, usize, HandedOver),
    /// Call [`crate::Engine::nudged`] of the engines of all other workers.
    Nudge,
    /// A console command; answered by `console_reply`.
    Console(ClientId, Box<[u8]>),
    /// Something that an operator acts on happened.
    Log(Event),
    /// Find the loud names in this, which may take a while, and give them to
    /// [`Engine::catalogue_read`].
    JudgeCatalogue(Box<CatalogueRows>),
}

/// Where the bytes of a write lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// In the input of the call that caused the write.
    Input(Range<usize>),
    /// In [`Actions::own`]: the engine made them.
    Own(Range<usize>),
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Name or IP address, or the folder of a unix socket.
    pub host: String,
    /// TCP port, or the number in the name of the unix socket.
    pub port: u16,
}

impl Address {
    /// The unix socket that it names; `None`: it is one for TCP.
    pub fn unix_socket(&self) -> Option<SocketName> {
        SocketName::in_folder(&self.host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.unix_socket() {
            write!(f, "{name}")
        } else if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// What the log says. Nothing here happens for each query. Clients and servers have the numbers
/// that the console shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client has logged in.
    ClientConnected {
        /// Which.
        client: i32,
        /// From where, if that is known.
        ends: Option<Ends>,
        /// Database asked for.
        database: String,
        /// User name.
        user: String,
    },
    /// A logged-in client is gone.
    ClientLeft {
        /// Which.
        client: i32,
        /// Of which pool, as `database/user`; `None`: of the console.
        pool: Option<String>,
        /// Why.
        cause: &'static str,
    },
    /// A login was refused.
    LoginRefused {
        /// Which.
        client: i32,
        /// From where, if that is known.
        ends: Option<Ends>,
        /// What it asked for, as `database/user`, if it has said that.
        pool: Option<String>,
        /// What the client was told.
        cause: String,
    },
    /// A client was ended because something took it longer than a limit allows.
    ClientEnded {
        /// Which.
        client: i32,
        /// Of which pool, as `database/user`.
        pool: String,
        /// What it was told, if there was a place for it.
        cause: String,
    },
    /// Clients have waited for a server in vain, and go on. Told of a pool now and then only.
    WaitOver {
        /// The last of them.
        client: i32,
        /// Of which pool, as `database/user`.
        pool: String,
        /// What it was told.
        cause: String,
        /// How many clients have since the last such event.
        times: u64,
    },
    /// A client keeps a server from others, outside of transactions, and is silent.
    PinIdle {
        /// Which server.
        server: u32,
        /// Which client.
        client: i32,
        /// Of which pool, as `database/user`.
        pool: String,
        /// What it keeps it for.
        pins: String,
    },
    /// A server connection could not be opened.
    ServerRefused {
        /// Which.
        server: u32,
        /// Of which pool, as `database/user`.
        pool: String,
        /// Where.
        address: Address,
        /// Why.
        cause: String,
    },
    /// A server's connection has ended without our asking, or the server was given up.
    ServerLost {
        /// Which.
        server: u32,
        /// Who held it.
        client: Option<i32>,
        /// Of which pool, as `database/user`.
        pool: String,
        /// Why.
        cause: String,
    },
    /// A cancel went out, and nobody knows whether it is still to hit: its server connection is
    /// closed instead of being lent again.
    CancelInDoubt {
        /// Which.
        server: u32,
        /// Who held it.
        client: Option<i32>,
        /// Of which pool, as `database/user`.
        pool: String,
        /// Why.
        cause: String,
    },
    /// The catalogue of a database could not be read: what functions do there is not known.
    CatalogueUnread {
        /// Where.
        address: Address,
        /// Which database there.
        database: String,
        /// Why.
        cause: String,
    },
    /// A server has said what it has room for: for the first time, or not the same as before.
    RoomKnown {
        /// Which.
        address: Address,
        /// How much; `None`: it has given no answer to go by.
        room: Option<Room>,
    },
    /// A server sent what no expected reply allows. This is a bug of ours until proven
    /// otherwise: the connection was contained.
    Contained {
        /// Which.
        server: u32,
        /// Who held it.
        client: Option<i32>,
        /// Of which pool, as `database/user`.
        pool: String,
        /// What came, and what was expected.
        cause: String,
    },
}

/// The actions of one call, and the bytes that the engine made for them.
#[derive(Default)]
pub struct Actions {
    /// What to do, in order.
    pub list: Vec<Action>,
    /// What [`Bytes::Own`] and [`Action::Restore`] point into.
    pub own: Vec<u8>,
}

impl Actions {
    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.own.clear();
    }

    pub(crate) fn push(&mut self, action: Action) {
        self.list.push(action);
    }

    /// Forwards a piece of the input; pieces that touch become one write.
    #[inline]
    pub(crate) fn forward(&mut self, to: Endpoint, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        if let Some(Action::Write(last, Bytes::Input(before))) = self.list.last_mut()
            && *last == to
            && before.end == range.start
        {
            before.end = range.end;
            return;
        }
        self.push(Action::Write(to, Bytes::Input(range)));
    }

    /// Bytes of our own that an action points to.
    pub(crate) fn own(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.own.len();
        self.own.extend_from_slice(bytes);
        start..self.own.len()
    }

    /// Writes bytes of our own; pieces that touch become one write.
    pub(crate) fn inject(&mut self, to: Endpoint, build: impl FnOnce(&mut Vec<u8>)) {
        let start = self.own.len();
        build(&mut self.own);
        let end = self.own.len();
        if let Some(Action::Write(last, Bytes::Own(before))) = self.list.last_mut()
            && *last == to
            && before.end == start
        {
            before.end = end;
            return;
        }
        self.push(Action::Write(to, Bytes::Own(start..end)));
    }
}

impl fmt::Debug for Actions {
    /// Without `own`, in which passwords are sent to servers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Actions").field("list", &self.list).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

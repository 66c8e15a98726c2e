use std::rc::Rc;

use pgweir_sql::Encoding;
use pgweir_wire::backend::Report;
use pgweir_wire::{CancelKey, TransactionStatus};

use crate::action::{CancelId, ClientId};
use crate::client::{Body, UnnamedStatement};
use crate::pool::PoolId;
use crate::reply::Replies;
use crate::server_login::ServerLogin;
use crate::settings::{Pair, Settings};
use crate::time::Time;

/// A connection to a server.
pub struct Server {
    pub(crate) pool: PoolId,
    pub(crate) state: ServerState,
    pub(crate) since: Time,
    /// When the state last changed, for idle and connect timeouts.
    pub(crate) changed: Time,
    pub(crate) replies: Replies,
    /// Of the last ReadyForQuery.
    pub(crate) status: TransactionStatus,
    /// The message whose body is still coming in.
    pub(crate) body: Body,
    /// What cancels a statement here; some servers send none.
    pub(crate) key: Option<CancelKey>,
    /// What it was told to be set to.
    pub(crate) settings: Rc<Settings>,
    /// What it is being set to by a statement in flight.
    pub(crate) replaying: Option<Rc<Settings>>,
    /// What it reports to be set to.
    pub(crate) parameters: Rc<Parameters>,
    /// Of the text that it is sent now.
    pub(crate) encoding: Encoding,
    /// RESET or DISCARD was run on it since it was lent: its settings are not what they were.
    pub(crate) reset: bool,
    pub(crate) unnamed: UnnamedStatement,
    /// When the oldest unit in flight was sent.
    pub(crate) unit_since: Time,
    /// A client's bytes went here since it was lent.
    pub(crate) used: bool,
    /// A FATAL has been forwarded: the end of the stream is no news.
    pub(crate) fatal: bool,
    /// The error that a unit of our own was answered with.
    pub(crate) own_error: Option<Box<Report>>,
    /// It is closed instead of being lent again.
    pub(crate) doomed: bool,
    /// Bytes thrown away for a client that is gone.
    pub(crate) swallowed: usize,
    /// A cancel that may still reach it.
    pub(crate) cancel: Option<CancelId>,
    pub(crate) read_paused: bool,
    pub(crate) congested: bool,
}

impl Server {
    pub(crate) fn new(now: Time, pool: PoolId, settings: Rc<Settings>) -> Self {
        Self {
            pool,
            state: ServerState::Connecting,
            since: now,
            changed: now,
            replies: Replies::new(),
            status: TransactionStatus::Idle,
            body: Body::NONE,
            key: None,
            settings,
            replaying: None,
            parameters: Rc::new(Parameters::default()),
            encoding: Encoding::default(),
            reset: false,
            unnamed: UnnamedStatement::None,
            unit_since: now,
            used: false,
            fatal: false,
            own_error: None,
            doomed: false,
            swallowed: 0,
            cancel: None,
            read_paused: false,
            congested: false,
        }
    }

    /// Notes a ParameterStatus.
    pub(crate) fn reports(&mut self, name: &[u8], value: &[u8]) {
        Rc::make_mut(&mut self.parameters).set(name, value);
        self.note_encoding();
    }

    /// Brings `encoding` up to date with what is reported.
    pub(crate) fn note_encoding(&mut self) {
        let name = self.parameters.value(b"client_encoding").unwrap_or_default();
        self.encoding = Encoding::named(name);
    }

    /// The client that it is lent to.
    pub(crate) fn client(&self) -> Option<ClientId> {
        match self.state {
            ServerState::Lent(client) => Some(client),
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::Cleaning { .. }
            | ServerState::AwaitingCancel => None,
        }
    }
}

/// What a server connection is doing.
pub(crate) enum ServerState {
    /// The connection is being made.
    Connecting,
    /// It logs in.
    Login(Box<ServerLogin>),
    /// It is in the pool.
    Idle,
    /// It works for a client, or is being prepared for it.
    Lent(ClientId),
    /// Its client is gone: it is brought back to a clean state.
    Cleaning {
        /// What runs now.
        step: Cleaning,
        /// What is to be removed.
        left: Left,
    },
    /// Clean, but a cancel may still reach it.
    AwaitingCancel,
}

/// The steps from "its client is gone" to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleaning {
    /// Replies that nobody reads any more are thrown away.
    Draining,
    /// ROLLBACK.
    RollingBack,
    /// The reset query.
    Resetting,
    /// Nothing is left to do.
    Done,
}

/// What a client has left on the server that it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing but perhaps a transaction.
    Nothing,
    /// State that it was pinned for, which DISCARD ALL removes.
    Pins,
    /// A session of session mode: the pool's reset query removes what the operator cares for.
    Session,
    /// Something that no command removes, such as a loaded library.
    Unremovable,
}

/// What a server reports by ParameterStatus, in the order in which it was first reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<Pair>);

impl Parameters {
    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => *known = value.into(),
            None => self.0.push((name.into(), value.into())),
        }
    }

    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether both are of servers of the same version: it is what a client decides its dialect
    /// by.
    pub(crate) fn same_server(&self, other: &Self) -> bool {
        self.value(b"server_version") == other.value(b"server_version")
    }
}

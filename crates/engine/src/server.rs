use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pgweir_config::PoolMode;
use pgweir_sql::{Encoding, Loud, Pins};
use pgweir_wire::backend::Report;
use pgweir_wire::{CancelKey, TransactionStatus};

use crate::action::{Address, CancelId, ClientId};
use crate::again::Kept;
use crate::ask::Answer;
use crate::client::{Body, Slot, UnnamedStatement};
use crate::commons::{Count, UnderWay};
use crate::kept_plans::KeptPlans;
use crate::parameters::Parameters;
use crate::pins::Refusal;
use crate::pipeline::{Access, InFlight};
use crate::pool::PoolId;
use crate::prepared::{Shelf, Statement};
use crate::reply::Replies;
use crate::sequences::Sequences;
use crate::server_login::ServerLogin;
use crate::settings::Settings;
use crate::time::Time;

/// What is thrown away for a client that is gone before its server is made to end. A backend whose
/// client is gone would end at its next write; ours reads on only for what is small.
const SWALLOWED_BYTES: usize = 1024 * 1024;

/// A connection to a server.
pub struct Server {
    pub(crate) pool: PoolId,
    /// What it is counted in, from the attempt to its end.
    pub(crate) counts: Vec<Arc<Count>>,
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
    /// The statement_timeout that it was told at its login: its pool may have another one by now.
    pub(crate) statement_timeout: Option<Duration>,
    /// What it was started with, for the clients that have asked for that.
    pub(crate) birth: Rc<Settings>,
    /// What it was told to be set to.
    pub(crate) settings: Rc<Settings>,
    /// What it is being set to by a statement in flight.
    pub(crate) replaying: Option<Rc<Settings>>,
    /// What it has said, while it is being asked.
    pub(crate) answer: Option<Answer>,
    /// It is being set to what its client has asked for at its login.
    pub(crate) puts_back: bool,
    /// A client has had it, or its settings: it may not be what a new one would be, for there are
    /// things that no command takes back.
    pub(crate) touched: bool,
    /// The client that gets it once it has logged in, or the one that replaces it, before those
    /// in the queue.
    pub(crate) promised_to: Option<ClientId>,
    /// It is for the replication of that client, logs in as such, and goes with it.
    pub(crate) dedicated: bool,
    /// What it reports to be set to.
    pub(crate) parameters: Rc<Parameters>,
    /// What it reported when it was free last and was set as it is now, if it has reported
    /// anything since.
    pub(crate) outdated: Option<Rc<Parameters>>,
    /// Of the text that it is sent now.
    pub(crate) encoding: Encoding,
    /// RESET or DISCARD was run on it since it was lent: its settings are not what they were.
    pub(crate) reset: bool,
    /// What is known of the names where it is, if its pool leads elsewhere since it was lent.
    pub(crate) elsewhere: Option<Arc<Loud>>,
    /// Its client changes the schema, or has, and is not done with the server since.
    pub(crate) alters: Option<UnderWay>,
    /// What its client has left on it unseen, which is removed when it parts from it.
    pub(crate) unseen: Pins,
    /// Whose sequences it remembers.
    pub(crate) sequences: Sequences,
    pub(crate) unnamed: UnnamedStatement,
    /// The statements of clients that it has.
    pub(crate) shelf: Shelf,
    /// What functions have planned there.
    pub(crate) plans: KeptPlans,
    /// When the oldest unit in flight was sent.
    pub(crate) unit_since: Time,
    /// Its client had asked for it a while before.
    pub(crate) unit_waited: bool,
    /// When something of it came last, or could have.
    pub(crate) heard: Time,
    /// It was not read for a while, since its client did not read either: nobody has looked since
    /// then for how long it is silent.
    pub(crate) was_unread: bool,
    /// When a further piece of a long message last went to it, or anything while nothing was due.
    pub(crate) fed: Time,
    /// Where it was connected to: its pool may lead elsewhere by now.
    pub(crate) address: Address,
    /// Where its connection begins, over TCP.
    pub(crate) local: Option<SocketAddr>,
    /// When the first unit of the transaction in flight was sent.
    pub(crate) transaction_since: Time,
    /// A client's bytes went here since it was lent.
    pub(crate) used: bool,
    /// What it was sent last.
    pub(crate) kept: Kept,
    /// The tag of the message that waits while an empty query shows whether COPY data are read.
    pub(crate) tried_for: Option<u8>,
    /// A FATAL has been forwarded: the end of the stream is no news.
    pub(crate) fatal: bool,
    /// Its words, for the log.
    pub(crate) last_words: Option<Box<str>>,
    /// It has ended because it was idle for too long: what it was sent since then it has not begun.
    pub(crate) idled_out: bool,
    /// Why messages were made to fail that it has not answered, by their units, in the order of
    /// sending.
    pub(crate) refused: Vec<(Slot, Refusal)>,
    /// The error that a unit of our own was answered with.
    pub(crate) own_error: Option<Box<Report>>,
    /// The ParameterDescription of the statement whose further description comes next, unless that
    /// is too long to be read.
    pub(crate) parameters_told: Option<Box<[u8]>>,
    /// At this part of the lifetime of its pool's servers it is closed.
    pub(crate) lifespan_percent: u32,
    /// How its client keeps it: as the pool's mode was when it was lent.
    pub(crate) mode: PoolMode,
    /// A part of what was asked for first has gone to its client: more than a description.
    pub(crate) answered: bool,
    /// The transaction on it was made to fail, in the place of one that its client has lost.
    pub(crate) stands_in: bool,
    /// It is closed instead of being lent again.
    pub(crate) doomed: bool,
    /// Bytes thrown away for a client that is gone.
    pub(crate) swallowed: usize,
    /// A cancel that may still reach it.
    pub(crate) cancel: Option<CancelId>,
    /// When we had its client's transaction cancelled, which had taken too long.
    pub(crate) overdue: Option<Time>,
    pub(crate) read_paused: bool,
    pub(crate) congested: bool,
    /// The units on it while it is shared, in the order of sending.
    pub(crate) pipeline: VecDeque<InFlight>,
    /// Clients that were given a place there, and have not sent their unit yet.
    pub(crate) granted: usize,
    /// Those of them whose units may wait for others or for their commits.
    pub(crate) granted_writes: usize,
    /// It takes no more units: somebody waits for it who needs it alone.
    pub(crate) reserved: bool,
    /// The statement_timeout that was set there because it is, or was, shared.
    pub(crate) brake: Option<Duration>,
    /// What `brake` is when the statement in flight has set it.
    pub(crate) braking: Option<Duration>,
    /// Units that only read go out behind that statement before it is answered.
    pub(crate) foresees: bool,
    /// The statement that it is told to make, shared as it is, for units that wait.
    pub(crate) providing: Option<Rc<Statement>>,
    /// It has said FATAL while it was shared.
    pub(crate) says_farewell: bool,
}

impl Server {
    pub(crate) fn new(now: Time, pool: PoolId, address: Address, settings: Rc<Settings>) -> Self {
        Self {
            pool,
            counts: Vec::new(),
            state: ServerState::Connecting,
            since: now,
            changed: now,
            replies: Replies::new(),
            status: TransactionStatus::Idle,
            body: Body::NONE,
            key: None,
            statement_timeout: None,
            birth: Rc::clone(&settings),
            plans: KeptPlans::NONE,
            settings,
            replaying: None,
            answer: None,
            puts_back: false,
            touched: false,
            promised_to: None,
            dedicated: false,
            parameters: Rc::new(Parameters::default()),
            outdated: None,
            encoding: Encoding::default(),
            reset: false,
            elsewhere: None,
            alters: None,
            unseen: Pins::NONE,
            sequences: Sequences::default(),
            unnamed: UnnamedStatement::None,
            shelf: Shelf::default(),
            unit_since: now,
            unit_waited: false,
            transaction_since: now,
            heard: now,
            was_unread: false,
            fed: now,
            address,
            local: None,
            used: false,
            kept: Kept::default(),
            tried_for: None,
            fatal: false,
            last_words: None,
            idled_out: false,
            refused: Vec::new(),
            own_error: None,
            parameters_told: None,
            lifespan_percent: 100,
            mode: PoolMode::Transaction,
            answered: false,
            stands_in: false,
            doomed: false,
            swallowed: 0,
            cancel: None,
            overdue: None,
            read_paused: false,
            congested: false,
            pipeline: VecDeque::new(),
            granted: 0,
            granted_writes: 0,
            reserved: false,
            brake: None,
            braking: None,
            foresees: false,
            providing: None,
            says_farewell: false,
        }
    }

    /// How many places on it are taken.
    pub(crate) fn load(&self) -> usize {
        self.pipeline.len() + self.granted
    }

    /// A client is given a place there, for a unit of that kind.
    pub(crate) fn grants(&mut self, access: Option<Access>) {
        let Some(access) = access else { return };
        self.granted += 1;
        self.granted_writes += usize::from(access.waits());
    }

    /// It has taken its place, or never will.
    pub(crate) fn grants_no_more(&mut self, access: Option<Access>) {
        let Some(access) = access else { return };
        self.granted -= 1;
        self.granted_writes -= usize::from(access.waits());
    }

    /// Whether one unit is on it, and nothing else: a cancel can hit no other.
    pub(crate) fn has_one_unit(&self) -> bool {
        self.load() == 1 && !self.replies.is_ours()
    }

    /// Whether a unit is on it that may wait for others or for its commit.
    pub(crate) fn has_waiting(&self) -> bool {
        self.pipeline.iter().any(|unit| unit.access.waits())
    }

    /// Whether one is on it, or will be.
    pub(crate) fn is_for_writes(&self) -> bool {
        self.granted_writes > 0 || self.has_waiting()
    }

    /// Whether its transaction has failed, and nothing was sent since that may end that.
    pub(crate) fn has_failed(&self) -> bool {
        self.status == TransactionStatus::Failed && !self.replies.runs()
    }

    /// Whether it is set to these settings, its brake aside.
    pub(crate) fn is_set_to(&self, settings: &Rc<Settings>) -> bool {
        Rc::ptr_eq(&self.settings, settings)
    }

    /// Whether it is set to these settings and to nothing else.
    pub(crate) fn is_just(&self, settings: &Rc<Settings>) -> bool {
        self.is_set_to(settings) && self.brake.is_none()
    }

    /// Whether it is being made, logs in, or is asked what it has room for: it was never free to be
    /// lent.
    pub(crate) fn is_opening(&self) -> bool {
        match self.state {
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Cleaning { step: Cleaning::Asking, .. } => true,
            ServerState::Idle
            | ServerState::Lent(_)
            | ServerState::Cleaning { .. }
            | ServerState::Pipelined
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Forsaken
            | ServerState::Leaving => false,
        }
    }

    /// The same, or whether it is asked for the names of its database before it is lent.
    pub(crate) fn is_to_come(&self) -> bool {
        let reads = matches!(self.state, ServerState::Cleaning { step: Cleaning::Reading, .. });
        reads || self.is_opening()
    }

    /// A message goes to it. If nothing is due, what it may take its time for begins now.
    pub(crate) fn note_fed(&mut self, now: Time) {
        if self.replies.due() == 0 {
            self.fed = now;
        }
    }

    /// Whether more was thrown away for a client that is gone than is worth it.
    pub(crate) fn says_too_much(&self) -> bool {
        self.swallowed > SWALLOWED_BYTES
    }

    /// Whether it has lived long enough.
    pub(crate) fn is_too_old(&self, now: Time, lifetime: Option<Duration>) -> bool {
        lifetime.is_some_and(|lifetime| now - self.since > lifetime * self.lifespan_percent / 100)
    }

    /// Notes what it reports from now on.
    pub(crate) fn reports(&mut self, parameters: Rc<Parameters>) {
        let before = std::mem::replace(&mut self.parameters, parameters);
        self.outdated.get_or_insert(before);
        self.note_encoding();
    }

    /// Brings `encoding` up to date with what is reported.
    pub(crate) fn note_encoding(&mut self) {
        self.encoding = self.parameters.encoding();
    }

    /// Looks whether what it says was left unread since the last look, or is now, for its client
    /// does not read either: then it is not silent, and counts as heard.
    pub(crate) fn hears_unread(&mut self, now: Time) -> bool {
        let is_unread = std::mem::take(&mut self.was_unread) || self.read_paused;
        if is_unread {
            self.heard = now;
        }
        is_unread
    }

    /// The client that it is lent to, or whose reply comes next.
    pub(crate) fn client(&self) -> Option<ClientId> {
        let is_ours = matches!(self.state, ServerState::Pipelined) && self.replies.is_ours();
        self.answers().filter(|_| !is_ours)
    }

    /// The client that it is lent to, or whose reply comes first, though that has just come to its
    /// end and one of ours is next.
    pub(crate) fn answers(&self) -> Option<ClientId> {
        match self.state {
            ServerState::Lent(client) => Some(client),
            ServerState::Pipelined => self.answering().and_then(|unit| unit.client),
            ServerState::Connecting
            | ServerState::Login(_)
            | ServerState::Idle
            | ServerState::Cleaning { .. }
            | ServerState::Listening
            | ServerState::AwaitingCancel
            | ServerState::Forsaken
            | ServerState::Leaving => None,
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
    /// It is shared: units of several clients are on it.
    Pipelined,
    /// It listens for clients, and is lent to nobody.
    Listening,
    /// Clean, but a cancel may still reach it.
    AwaitingCancel,
    /// It was shown the end of our stream, since its client is gone and has left something that is
    /// never going to be whole. It keeps its place until it has ended.
    Forsaken,
    /// It was told to go, and keeps its place until it has gone.
    Leaving,
}

/// The steps from "its client is gone" to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleaning {
    /// A new one is asked what it has room for.
    Asking,
    /// One that is free is asked for the names of its database.
    Reading,
    /// Replies that nobody reads any more are thrown away.
    Draining,
    /// ROLLBACK.
    RollingBack,
    /// The settings of its last client are taken back, since the reset query may change them.
    Unsetting,
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

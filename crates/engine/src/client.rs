use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

use pgweir_sql::{Classifier, Pins};
use pgweir_wire::backend::Report;
use pgweir_wire::frontend::Parse;
use pgweir_wire::{HEADER_LEN, TransactionStatus};
use smallvec::SmallVec;

use crate::action::ServerId;
use crate::catalogue::SchemaChange;
use crate::client_login::Login;
use crate::listen::Subscription;
use crate::marks::Mark;
use crate::parameters::Parameters;
use crate::pipeline::{Choice, Unit};
use crate::pool::{PoolId, Ticket};
use crate::prepared::{Names, Own, Shape};
use crate::replication::Replication;
use crate::settings::Settings;
use crate::time::Time;
use crate::track::Changes;

/// A client's connection, from its first byte to its last.
pub struct Client {
    pub(crate) phase: Phase,
    pub(crate) ends: Option<Ends>,
    /// It came from another worker, which has counted it.
    pub(crate) arrived: bool,
    /// It has asked for TLS, which may be asked for once.
    pub(crate) asked_tls: bool,
    /// It has asked for encryption by GSSAPI.
    pub(crate) asked_gss: bool,
    /// When it connected.
    pub(crate) since: Time,
    /// When the oldest unit in flight, or the last one, was sent; at first as `since`.
    pub(crate) requested: Time,
    /// Since when it has been between transactions, if it is.
    pub(crate) quiet_since: Time,
    /// The time of its entry among those whose silence is looked at, if it has one.
    pub(crate) watched_at: Option<Time>,
    /// What it has asked for at its login, of what can be set.
    pub(crate) startup: Rc<Settings>,
    /// What it has said there of sharing servers.
    pub(crate) choice_at_login: Choice,
    /// What its servers have to be started with, since it cannot be set ([`crate::birth`]).
    pub(crate) birth: Rc<Settings>,
    /// What it has set, as far as that is known.
    pub(crate) settings: Rc<Settings>,
    /// What it may have set since.
    pub(crate) changes: Option<Box<Changes>>,
    /// It asked for a connection of this kind, which takes a server of its own.
    pub(crate) replication: Option<Rc<Replication>>,
    /// What it was told that its servers report; `None` before its greeting.
    pub(crate) told: Option<Rc<Parameters>>,
    /// What a CancelRequest for this client must carry, besides its place in the store.
    pub(crate) secret: Box<[u8]>,
    /// Replies owed, oldest first: one for each unit that was sent and has no ReadyForQuery yet.
    pub(crate) slots: SmallVec<[Slot; 2]>,
    pub(crate) next_slot: Slot,
    /// The unit that it has asked for the end of while something was put in front of it.
    pub(crate) cancelled: Option<Slot>,
    /// The slot of the extended batch whose Sync has not come yet.
    pub(crate) open_slot: Option<Slot>,
    pub(crate) leg: Leg,
    /// The server that it was given last.
    pub(crate) last_server: Option<ServerId>,
    /// The message whose body is still coming in.
    pub(crate) body: Body,
    /// Why the server stays with this client.
    pub(crate) pins: Pins,
    /// It was told of that it keeps a server and is silent.
    pub(crate) silence_told: bool,
    /// The first name of those behind which something is that keeps the server.
    pub(crate) unseen: Option<Box<str>>,
    /// What it listens on, behind the transaction that has begun that.
    pub(crate) subscription: Option<Box<Subscription>>,
    /// What it has changed of the schema, until that is read.
    pub(crate) schema: Option<SchemaChange>,
    /// It is owed a ReadyForQuery with this status, in front of which something is still to be
    /// said: what its server reports once its own settings are put back, or what the listener has
    /// not heard yet.
    pub(crate) ready_due: Option<TransactionStatus>,
    /// A unit in flight may change the encoding of the text that comes behind it.
    pub(crate) encoding_in_doubt: bool,
    /// The server on which it has advanced a sequence last.
    pub(crate) advanced_on: Option<ServerId>,
    /// What may be left by statements that it has prepared on its server for itself.
    pub(crate) prepared: Pins,
    /// What it has sent since the server was asked may have begun or ended some of that.
    pub(crate) in_doubt: bool,
    /// How often in a row a server has not said what it was asked.
    pub(crate) refusals: u32,
    /// What it calls the statements that it shares with others.
    pub(crate) names: Names,
    /// Among the statements with names that are its own is one that takes settings back.
    pub(crate) own_resets: bool,
    /// The statement, by number, whose rows on its server were asked for just now.
    pub(crate) brought: Option<u64>,
    /// The unit in flight that may remove a name by SQL, and what the name has meant.
    pub(crate) deallocates: Option<Box<Deallocates>>,
    /// Settings of the transaction have been changed: what is prepared now is read under them.
    pub(crate) local_settings: bool,
    /// Among what it has changed, for its transaction or longer, may be a setting by which literals
    /// are read.
    pub(crate) reads_otherwise: bool,
    /// The unnamed statement that this client believes to have.
    pub(crate) unnamed: UnnamedStatement,
    /// What the batch that is open has done about it.
    pub(crate) unnamed_here: UnnamedHere,
    /// What its rows were like when the client was told of them, if it was.
    pub(crate) unnamed_shape: Option<Rc<Shape>>,
    /// Where it was made again they are not: the message that is held back is to fail.
    pub(crate) unnamed_stale: bool,
    /// Whether what this batch has parsed as the unnamed statement names others, if it has.
    pub(crate) unnamed_names: Option<bool>,
    /// Input was left unread until a unit in flight is settled.
    pub(crate) holding: bool,
    /// Its input is about to be looked at again: what was said of it before may not be true now.
    pub(crate) woken: bool,
    /// A part of its next unit has come, and waits for the rest.
    pub(crate) began_more: bool,
    /// Bytes of the unit at the front of the retained input that were found to be whole
    /// messages already.
    pub(crate) scanned: usize,
    /// Since when there is a batch without its end, for which no server was asked yet.
    pub(crate) unfinished: Option<Time>,
    /// The next unit is not run but answered with this.
    pub(crate) refusal: Option<Box<Report>>,
    /// That is because no server takes what it has set.
    pub(crate) settings_refused: bool,
    /// What is still to come of a unit that was answered without it.
    pub(crate) rest: UnitRest,
    /// What is sent behind that unit may rest on what was not run of it.
    pub(crate) bears: bool,
    /// Its stream has ended: it leaves once what is retained of it is run.
    pub(crate) ended: bool,
    /// It has said that it leaves, or all of its stream was read: the connection is closed once
    /// every slot is filled.
    pub(crate) leaving: bool,
    pub(crate) read_paused: bool,
    /// What is written to it piles up.
    pub(crate) congested: bool,
    /// Bytes of its last reply that were held, and are handed on to it.
    pub(crate) handed: usize,
    /// Those that pile up, as long as they do: they count as held still.
    pub(crate) piled: usize,
    /// In which slices of its pool's climbs it has last shared a server: to read, and to write.
    pub(crate) slices: [u32; 2],
    /// Since when a unit waits for what its client's last server says of its settings.
    pub(crate) held_since: Option<Time>,
    /// A unit has asked for a server and was not sent yet.
    pub(crate) asked: Option<Asked>,
    /// The unit that waits for a place on a server which it may share.
    pub(crate) unit: Option<Box<Unit>>,
    /// Its next unit does not share a server: it was tried.
    pub(crate) alone: bool,
    /// The unit that was sent last may commit the transaction, if it is still in flight. Those
    /// before it do not count: with more than one in flight a client loses its session anyway.
    pub(crate) may_commit: bool,
    /// So may a later one that executes a portal of this transaction.
    pub(crate) may_commit_later: bool,
    /// A Query or FunctionCall in flight has ended an open batch: whether a ReadyForQuery follows
    /// an error depends on which of them it is in.
    pub(crate) mixed: bool,
    /// Its transaction was lost with its server, and it has not ended it yet.
    pub(crate) lost: Option<LostTransaction>,
    /// While the engine drains: it is not asked to leave before this, if it is idle.
    pub(crate) stays_until: Time,
}

impl Client {
    pub(crate) fn new(now: Time, ends: Option<Ends>, settings: Rc<Settings>) -> Self {
        Self {
            phase: Phase::Startup,
            ends,
            arrived: false,
            asked_tls: false,
            asked_gss: false,
            since: now,
            requested: now,
            quiet_since: now,
            watched_at: None,
            startup: Rc::clone(&settings),
            choice_at_login: Choice::default(),
            birth: Rc::clone(&settings),
            settings,
            changes: None,
            replication: None,
            told: None,
            secret: Box::default(),
            slots: SmallVec::new(),
            next_slot: Slot(0),
            cancelled: None,
            open_slot: None,
            leg: Leg::None,
            last_server: None,
            body: Body::NONE,
            pins: Pins::default(),
            silence_told: false,
            advanced_on: None,
            prepared: Pins::NONE,
            unseen: None,
            encoding_in_doubt: false,
            subscription: None,
            ready_due: None,
            schema: None,
            in_doubt: false,
            refusals: 0,
            names: Names::default(),
            own_resets: false,
            brought: None,
            deallocates: None,
            local_settings: false,
            reads_otherwise: false,
            unnamed: UnnamedStatement::None,
            unnamed_here: UnnamedHere::No,
            unnamed_shape: None,
            unnamed_stale: false,
            unnamed_names: None,
            holding: false,
            woken: false,
            began_more: false,
            scanned: 0,
            unfinished: None,
            refusal: None,
            settings_refused: false,
            rest: UnitRest::None,
            bears: false,
            ended: false,
            leaving: false,
            read_paused: false,
            congested: false,
            handed: 0,
            piled: 0,
            slices: [0; 2],
            held_since: None,
            asked: None,
            unit: None,
            alone: false,
            stays_until: Time::default(),
            may_commit: false,
            may_commit_later: false,
            mixed: false,
            lost: None,
        }
    }

    /// What a ReadyForQuery of ours says while it has no server.
    pub(crate) fn status(&self) -> TransactionStatus {
        match self.lost {
            None => TransactionStatus::Idle,
            Some(LostTransaction::Untold | LostTransaction::Told) => TransactionStatus::Failed,
        }
    }

    /// The server that this client's bytes go to, if it has one.
    pub(crate) fn server(&self) -> Option<ServerId> {
        match self.leg {
            Leg::Held(server) => Some(server),
            Leg::None
            | Leg::Preparing(_)
            | Leg::Waiting(_)
            | Leg::Granted(_)
            | Leg::Pipelined(_) => None,
        }
    }

    /// Whether its input is looked at again without its asking: it waits for a server, or its unit
    /// was refused, or lost its server, a moment ago.
    pub(crate) fn waits(&self) -> bool {
        let comes = match self.leg {
            Leg::Waiting(_) | Leg::Preparing(_) | Leg::Granted(_) | Leg::Pipelined(_) => true,
            Leg::None | Leg::Held(_) => false,
        };
        comes || self.holding || self.refusal.is_some() || self.asked.is_some()
    }

    /// Whether its next unit is to be answered by us once it has read what was written to it.
    pub(crate) fn answer_waits(&self) -> bool {
        self.refusal.is_some() && self.congested
    }

    /// The pool of a client that has logged in.
    pub(crate) fn pool(&self) -> Option<PoolId> {
        match self.phase {
            Phase::Ready(pool) => Some(pool),
            Phase::Welcome(ref welcome) => Some(welcome.pool),
            Phase::Startup | Phase::Login(_) | Phase::Cancelling | Phase::Console => None,
        }
    }

    /// Whether units are under way besides the one that the next message belongs to.
    pub(crate) fn has_units_before(&self) -> bool {
        self.slots.len() > usize::from(self.open_slot.is_some())
    }

    /// Whether its server may be set to something else now than what is known.
    pub(crate) fn has_changed_settings(&self) -> bool {
        self.local_settings || self.changes.is_some()
    }

    /// All names are to be removed by the unit that is sent next.
    pub(crate) fn remove_names(&mut self) {
        let slot = self.coming_slot();
        self.names.hold(slot);
        self.deallocates = Some(Box::new(Deallocates::All { slot }));
    }

    /// The slot of the unit that the last message belongs to.
    pub(crate) fn last_slot(&self) -> Slot {
        let last = self.open_slot.or_else(|| self.slots.last().copied());
        last.unwrap_or(self.next_slot)
    }

    /// The slot of the unit that the next message belongs to, there already or not.
    pub(crate) fn coming_slot(&self) -> Slot {
        self.open_slot.unwrap_or(self.next_slot)
    }

    /// The slot of the unit that the next message belongs to; a new one if no batch is open.
    pub(crate) fn slot_of_unit(&mut self) -> Slot {
        if let Some(slot) = self.open_slot {
            return slot;
        }
        let slot = self.next_slot;
        self.next_slot = slot.next();
        self.slots.push(slot);
        slot
    }

    /// A unit will not be answered under this slot: the server skips it, or reads its Sync as
    /// part of COPY data. In the latter case the unit goes on until the Sync that counts.
    pub(crate) fn unanswered(&mut self, slot: Slot) {
        let Some(index) = self.slots.iter().position(|s| *s == slot) else {
            // No mark: each slot is given up once.
            return;
        };
        if index == 0 && self.slots.len() == 1 && self.open_slot.is_none() {
            Mark::UnitGoesOn.hit();
            self.open_slot = Some(slot);
        } else {
            self.slots.remove(index);
        }
    }
}

/// A DEALLOCATE that is under way.
pub(crate) enum Deallocates {
    /// Of every name.
    All {
        /// Of the unit that it is.
        slot: Slot,
    },
    /// Of one name.
    One {
        slot: Slot,
        name: Rc<[u8]>,
        /// What the name has meant.
        was: Own,
    },
}

impl Deallocates {
    /// The slot of the unit that it is.
    pub(crate) fn slot(&self) -> Slot {
        match self {
            Self::All { slot } | Self::One { slot, .. } => *slot,
        }
    }
}

/// The two ends of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Over TCP.
    Tcp {
        /// Where it comes from.
        peer: SocketAddr,
        /// Where it was accepted.
        local: SocketAddr,
    },
    /// Over a unix socket of this machine.
    Unix {
        /// The number in the socket's name.
        port: u16,
        /// The process at its other end is of the user that we run as.
        own: bool,
    },
}

/// Where it comes from.
impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { peer, .. } => write!(f, "{peer}"),
            Self::Unix { .. } => f.write_str("unix"),
        }
    }
}

/// What is still to come of a unit that was refused, or lost with its server: it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitRest {
    None,
    /// Messages, up to a Sync.
    Batch,
    /// A part of its only message. ReadyForQuery stands behind it, where the client looks for it.
    Message,
}

/// A transaction that was rolled back because its server is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostTransaction {
    /// Its client does not know yet.
    Untold,
    /// Its client was told, as by an error inside the transaction.
    Told,
}

/// A unit that needs a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Since when: whoever has asked before is served before.
    pub(crate) since: Time,
    /// Since when it waits: it may have been on a server meanwhile.
    pub(crate) waits_since: Time,
    /// How many servers it was given that were lost before it could be sent.
    pub(crate) lost: u32,
    /// It had waited before it was in the queue, until its client's last server had said something.
    pub(crate) held: bool,
    /// It was sent before, to a server that was lost.
    pub(crate) again: bool,
}

impl Asked {
    pub(crate) fn new(since: Time, held: bool) -> Self {
        Self { since, waits_since: since, lost: 0, held, again: false }
    }
}

/// A reply that a client is owed. Slots of one client count up in the order of its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u32);

impl Slot {
    /// That of the next unit.
    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Whether it is of an earlier unit, of fewer than 2^31 that are told apart at a time.
    pub(crate) fn is_before(self, other: Self) -> bool {
        let units = other.0.wrapping_sub(self.0);
        units != 0 && units < 1 << 31
    }
}

/// Where a connection is in its life.
pub(crate) enum Phase {
    /// The startup packet, or a request that comes before it, is awaited.
    Startup,
    /// It was a CancelRequest; the connection is closed when that is done.
    Cancelling,
    /// The password, or whatever proves the identity, is awaited.
    Login(Box<Login>),
    /// Logged in; the server's parameters are awaited.
    Welcome(Box<Welcome>),
    /// Queries.
    Ready(PoolId),
    /// Queries to the console.
    Console,
}

impl Phase {
    /// Whether it was told that it may send queries.
    pub(crate) fn is_greeted(&self) -> bool {
        match self {
            Self::Ready(_) | Self::Console => true,
            Self::Startup | Self::Cancelling | Self::Login(_) | Self::Welcome(_) => false,
        }
    }
}

/// A login that waits for the parameters of a server.
pub(crate) struct Welcome {
    pub(crate) pool: PoolId,
    /// Protocol 3.2 was agreed on: the cancel secret may be long.
    pub(crate) long_secret: bool,
}

/// The server that a client works on. With shards there will be several legs, one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// None, and none is needed.
    None,
    /// A unit waits in the pool's queue.
    Waiting(Ticket),
    /// A server is being brought to this client's settings, or is opened for it.
    Preparing(ServerId),
    /// A server.
    Held(ServerId),
    /// A place on a server that is shared, for a unit that is not sent yet.
    Granted(ServerId),
    /// A unit is on a server that is shared.
    Pipelined(ServerId),
}

/// A message whose header has been read and whose body has not yet come in whole.
pub(crate) struct Body {
    pub(crate) left: usize,
    pub(crate) fate: Fate,
    /// Its unit has no other message, or ends with it.
    pub(crate) ends_unit: bool,
    /// Reads the query text as it passes; boxed, because few messages come in pieces.
    pub(crate) scan: Option<Box<Classifier>>,
}

impl Body {
    pub(crate) const NONE: Self =
        Self { left: 0, fate: Fate::Swallow, ends_unit: false, scan: None };
}

/// What becomes of the rest of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes to the other side.
    Forward,
    /// It is dropped.
    Swallow,
}

/// Whether the server's unnamed statement is known to be the client's, for the rest of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnnamedHere {
    No,
    /// It was made again, or was there. What it does is still to be noted when it is run.
    Brought,
    /// The client has made it, or closed it, in this batch: what it does was noted then.
    Parsed,
}

/// The statement with the empty name: each Parse of it replaces it, each simple Query ends it.
/// A pooled server's may be anybody's, so that of a client is kept to be made again.
#[derive(Clone, Debug)]
pub(crate) enum UnnamedStatement {
    /// There is none.
    None,
    /// This Parse message made it.
    Made(Rc<[u8]>),
    /// A Parse that was too long to keep made it: it exists on the server that saw it only.
    TooLong,
    /// A server's, after an error: a text in a wrong encoding, for one, is refused before the
    /// statement that it would replace is dropped (`pq_getmsgstring`).
    Unknown,
}

impl UnnamedStatement {
    /// Its text, as far as that was kept.
    pub(crate) fn text(&self) -> &[u8] {
        match self {
            Self::Made(parse) => {
                Parse::start(&parse[HEADER_LEN..]).map_or(&[][..], |parse| parse.text)
            }
            Self::None | Self::TooLong | Self::Unknown => &[],
        }
    }

    /// Whether both are the same statement, or both are none.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Made(a), Self::Made(b)) => Rc::ptr_eq(a, b),
            (Self::None | Self::Made(_) | Self::TooLong | Self::Unknown, _) => false,
        }
    }
}

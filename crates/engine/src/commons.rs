//! What the engines of a process count together.
//!
//! Each worker has an engine of its own, and a pool lives in one of them. Limits do not: a server's
//! connections, a database's clients are those of all workers. They are counted here, when a
//! connection is made and when it is gone, and never on the way of a query. Whoever takes what is
//! left of a limit takes it in one step, so that two workers cannot both take the last of it.
//!
//! An engine whose pools lack connections says so on a board ([`Want`]), which the others look at,
//! and so does one that has some to spare.

mod schema;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use pgweir_config::Room;

use crate::action::{Address, ClientId, ServerId};
use crate::marks::Mark;
use crate::shares::Of;
use crate::sync::{Counter, Mutex, lock};
use crate::time::Time;

pub(crate) use schema::{SchemaChanges, UnderWay};

/// So many connections more than there may be clients may wait for the end of a cancel: clients and
/// cancels do not take each other's room, however many come at once.
pub const CANCELLERS: usize = 32;

/// One of the engines of a process.
#[derive(Clone)]
pub struct Member {
    index: usize,
    commons: Arc<Commons>,
}

impl Member {
    /// The members of a process with so many workers. The first takes all clients in.
    pub fn all(workers: usize) -> Vec<Self> {
        let commons = Arc::new(Commons {
            workers,
            clients: Counter::new(0),
            logins: Counter::new(0),
            cancellers: Counter::new(0),
            held: Counter::new(0),
            counts: Mutex::default(),
            rooms: Mutex::default(),
            schemas: Mutex::default(),
        });
        (0..workers).map(|index| Self { index, commons: Arc::clone(&commons) }).collect()
    }

    /// The only engine of a process.
    pub fn alone() -> Self {
        let mut all = Self::all(1);
        all.swap_remove(0)
    }

    /// Its place among all.
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many there are.
    pub(crate) fn workers(&self) -> usize {
        self.commons.workers
    }

    /// What all of them count.
    pub(crate) fn commons(&self) -> &Commons {
        &self.commons
    }

    /// What a client is told as its process id, and is called in the log: its place, which a
    /// CancelRequest brings back, and the member that has it. Zero would be no process.
    pub(crate) fn client_number(&self, id: ClientId) -> i32 {
        // Every client is a socket, and a process has fewer than 2^31 of them.
        (id.index() * self.workers() + self.index) as i32 + 1
    }

    /// What a server connection is called.
    pub(crate) fn server_number(&self, id: ServerId) -> u32 {
        (id.index() * self.workers() + self.index) as u32
    }

    /// The member that has the client of this number, and its place there.
    pub(crate) fn place_of(&self, client_number: i32) -> Option<(usize, usize)> {
        let number = usize::try_from(client_number).ok()?.checked_sub(1)?;
        Some((number % self.workers(), number / self.workers()))
    }
}

/// What all engines of a process have in common.
pub(crate) struct Commons {
    workers: usize,
    /// Connections of clients, whatever they do, until they are closed.
    pub(crate) clients: Counter,
    /// Those of them that have not logged in yet.
    pub(crate) logins: Counter,
    /// Those of them that wait for the end of a cancel.
    pub(crate) cancellers: Counter,
    /// Bytes of replies that are kept until they are over.
    pub(crate) held: Counter,
    /// What is counted as long as some engine has a pool that it counts.
    counts: Mutex<BTreeMap<Of, Weak<Count>>>,
    /// What servers have said that they have room for.
    rooms: Mutex<BTreeMap<Address, Answer>>,
    /// Changes of the schema of each database.
    schemas: Mutex<BTreeMap<String, Weak<SchemaChanges>>>,
}

/// What a server has said that it has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing yet.
    Awaited,
    /// Nothing to go by.
    Useless,
    Room(Room),
}

impl Commons {
    /// The count of a share, which begins with the first engine that asks for it, and with that
    /// one's limit: another engine may count something at once.
    pub(crate) fn count(&self, of: &Of, most: impl FnOnce() -> Option<usize>) -> Arc<Count> {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get(of).and_then(Weak::upgrade) {
            return count;
        }
        counts.retain(|_, count| count.strong_count() > 0);
        let count = Arc::new(Count::new(self.workers));
        count.limit(most());
        counts.insert(of.clone(), Arc::downgrade(&count));
        count
    }

    /// Connections that `max_clients` limits: those that wait for the end of a cancel have room of
    /// their own, as far as it goes.
    pub(crate) fn crowd(&self) -> usize {
        self.clients.value().saturating_sub(self.cancellers.value().min(CANCELLERS))
    }

    /// The servers of which some engine counts connections, or has a pool that would.
    pub(crate) fn servers(&self) -> Vec<(Address, Arc<Count>)> {
        let server = |(of, count): (&Of, &Weak<Count>)| match of {
            Of::Server(address) => Some((address.clone(), count.upgrade()?)),
            Of::Database(_) | Of::User(_) => None,
        };
        lock(&self.counts).iter().filter_map(server).collect()
    }

    /// Changes of the schema of a database of this name. Of what different addresses lead to nobody
    /// knows whether it is the same: a name and a number, a socket, a standby.
    pub(crate) fn schema_changes(&self, database: &str) -> Arc<SchemaChanges> {
        let mut schemas = lock(&self.schemas);
        schemas.retain(|_, changes| changes.strong_count() > 0);
        let known = schemas.get(database).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let changes = Arc::new(SchemaChanges::none());
            schemas.insert(database.to_owned(), Arc::downgrade(&changes));
            changes
        })
    }

    /// What a server has said that it has room for.
    pub(crate) fn room(&self, address: &Address) -> Answer {
        lock(&self.rooms).get(address).copied().unwrap_or(Answer::Awaited)
    }

    /// Notes what a server says that it has room for. Says whether that is news.
    pub(crate) fn set_room(&self, address: Address, answer: Answer) -> bool {
        lock(&self.rooms).insert(address, answer) != Some(answer)
    }

    /// Limits the connections to a server: `most` makes the limit of what that has said and of how
    /// many there are.
    pub(crate) fn limit_by_room(
        &self,
        address: &Address,
        count: &Count,
        most: impl Fn(Answer, usize) -> Option<usize>,
    ) {
        loop {
            let answer = self.room(address);
            count.limit(most(answer, count.used()));
            // If another worker has been told something meanwhile, its limit came before this one.
            if self.room(address) == answer {
                return;
            }
            Mark::RoomToldMeanwhile.hit();
        }
    }
}

/// What is counted of one share.
pub(crate) struct Count {
    /// Most connections; `usize::MAX`: there is no limit.
    most: Counter,
    /// As `most`, or as many connections as there were when it was set.
    ceiling: Counter,
    used: Counter,
    opening: Counter,
    clients: Counter,
    /// What each engine has said last.
    notices: Mutex<Vec<Notice>>,
}

/// What an engine lacks of a share, and what it does not need.
#[derive(Clone, Debug, Default)]
struct Notice {
    wants: Vec<Want>,
    /// So many connections were idle then.
    idle: usize,
}

/// A pool of an engine lacks connections that a limit does not leave it.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    /// Since when the client has waited that has waited longest.
    pub(crate) since: Time,
    /// How many connections the pool has.
    pub(crate) own: usize,
    /// What a connection has to count in too that is given up for it.
    pub(crate) besides: Vec<Of>,
}

impl Count {
    fn new(workers: usize) -> Self {
        Self {
            most: Counter::new(usize::MAX),
            ceiling: Counter::new(usize::MAX),
            used: Counter::new(0),
            opening: Counter::new(0),
            clients: Counter::new(0),
            notices: Mutex::new(vec![Notice::default(); workers]),
        }
    }

    /// There may be so many connections from now on, and what there is beyond that already.
    pub(crate) fn limit(&self, most: Option<usize>) {
        let most = most.unwrap_or(usize::MAX);
        // Another engine may open one as soon as it may.
        self.ceiling.set(usize::MAX);
        self.most.set(most);
        self.ceiling.set(most.max(self.used()));
    }

    /// The limit, if there is one.
    pub(crate) fn most(&self) -> Option<usize> {
        let most = self.most.value();
        (most < usize::MAX).then_some(most)
    }

    pub(crate) fn ceiling(&self) -> usize {
        self.ceiling.value()
    }

    /// Connections of all its pools.
    pub(crate) fn used(&self) -> usize {
        self.used.value()
    }

    /// Those of them that are being made, log in, or are asked before they are lent.
    pub(crate) fn opening(&self) -> usize {
        self.opening.value()
    }

    /// Clients of all its pools.
    pub(crate) fn clients(&self) -> usize {
        self.clients.value()
    }

    /// How many connections more there may be.
    pub(crate) fn room(&self) -> usize {
        match self.most.value() {
            usize::MAX => usize::MAX,
            most => most.saturating_sub(self.used()),
        }
    }

    /// Counts a connection that is made, unless there are too many, or too many that are being
    /// made. Says whether it is counted.
    pub(crate) fn try_open(&self, parallelism: usize) -> bool {
        let most = self.most.value();
        if !self.used.add_below(most) {
            return false;
        }
        let opens = self.opening.add_below(parallelism);
        if !opens {
            self.used.sub();
        }
        opens
    }

    /// A connection has logged in, or its attempt is over.
    pub(crate) fn opened(&self) {
        self.opening.sub();
    }

    /// A connection is no more.
    pub(crate) fn gone(&self) {
        self.used.sub();
    }

    /// Counts a client, unless there are too many. Says whether it is counted.
    pub(crate) fn try_enter(&self, most: Option<usize>) -> bool {
        self.clients.add_below(most.unwrap_or(usize::MAX))
    }

    /// A client is no more.
    pub(crate) fn left(&self) {
        self.clients.sub();
    }

    /// Notes what an engine lacks now, and how many connections are idle there. Says whether it
    /// lacked nothing before.
    pub(crate) fn post(&self, member: &Member, wants: Vec<Want>, idle: usize) -> bool {
        let lacks = !wants.is_empty();
        let notice = &mut lock(&self.notices)[member.index];
        let before = std::mem::replace(notice, Notice { wants, idle });
        lacks && before.wants.is_empty()
    }

    /// An engine has no pool any more that could lack anything.
    pub(crate) fn withdraw(&self, member: &Member) {
        self.post(member, Vec::new(), 0);
    }

    /// What the engines lack that are not this one, in the order in which they have lacked it.
    pub(crate) fn wants_of_others(&self, member: &Member) -> Vec<Want> {
        let notices = lock(&self.notices);
        let wants = of_others(&notices, member).flat_map(|notice| notice.wants.iter().cloned());
        let mut wants: Vec<_> = wants.collect();
        wants.sort_by_key(|want| want.since);
        wants
    }

    /// Connections that were idle a moment ago in the engines that are not this one.
    pub(crate) fn idle_of_others(&self, member: &Member) -> usize {
        of_others(&lock(&self.notices), member).map(|notice| notice.idle).sum()
    }
}

fn of_others<'a>(notices: &'a [Notice], member: &Member) -> impl Iterator<Item = &'a Notice> {
    let own = member.index;
    notices.iter().enumerate().filter(move |(index, _)| *index != own).map(|(_, notice)| notice)
}

#[cfg(all(test, not(feature = "interleaved")))]
mod alone;
#[cfg(all(test, feature = "interleaved"))]
mod tests;

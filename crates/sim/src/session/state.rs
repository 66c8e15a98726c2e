//! What a session keeps, and what statements, rollbacks and their like make of it.
//!
//! Long because: whatever changes one part of it may take another one back.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Prepared;
use super::left::CHANNEL;
use super::settings::{BORN, SETTINGS, UNREPORTED, VERSION};
use crate::invariants::Invariant;
use crate::language::{Keep, Kind, Line, Tag};
use crate::room::Room;
use crate::shapes::{Glance, Seen, Shape};

/// What a session remembers from one message to the next.
#[derive(Clone)]
pub(crate) struct State {
    /// Where it is, and on which server; an oracle's is nowhere.
    pub(crate) home: Option<Home>,
    pub(crate) cluster: usize,
    /// What its server has room for; an oracle is never asked.
    pub(crate) room: Room,
    /// So often its catalogue was read, on top of a number of its own.
    pub(crate) readings: u64,
    pub(crate) transaction: Transaction,
    /// The client whose transaction or batch is open.
    pub(crate) owner: Option<u32>,
    /// Others have come into it, whose statements only read as its owner's do.
    pub(crate) has_guests: bool,
    /// The latest tag of the client whose message came last, and how many messages have come.
    pub(crate) served: Option<Tag>,
    pub(crate) met: u64,
    /// What the open transaction has changed.
    pub(crate) writes: Vec<Tag>,
    /// The statement that has changed what rows are like, last in the open transaction.
    pub(crate) altered: Shape,
    /// pgweir has told it to end whatever takes longer than it may where a server is shared.
    pub(crate) braked: bool,
    /// It refuses what it is to be set to next where it is shared.
    pub(crate) refuses: bool,
    /// It has done so: those that were to come behind that may have come already.
    pub(crate) misset: bool,
    /// The clients for whom functions have planned something.
    planned: BTreeSet<u32>,
    /// Whose the last value is that a sequence has given.
    pub(crate) last_value: Option<u32>,
    /// A statement whose constraint fails when the transaction ends.
    pub(crate) deferred: Option<Tag>,
    /// What clients have left in the session.
    pub(crate) stains: Vec<Stain>,
    /// Statements with a name, and the one without.
    pub(super) statements: BTreeMap<Vec<u8>, Rc<Prepared>>,
    /// Cursors that outlive their transaction, with the statements that have declared them.
    pub(super) cursors: BTreeMap<String, Tag>,
    /// The locks that it has, each as often as it was taken.
    pub(crate) locks: Vec<Held>,
    /// It has listened, whatever became of that.
    pub(crate) has_listened: bool,
    /// The channels that it listens on.
    listening: BTreeSet<String>,
    /// What the end of the transaction changes about them.
    subscriptions: Vec<Subscription>,
    /// Notifications that go out when the transaction is committed.
    pub(super) notifications: Vec<Notification>,
    /// Notifications that have gone out, and were not taken yet.
    pub(crate) announced: Vec<Notification>,
    /// What temp_buffers was when a temporary table was used first: it stays that.
    buffers: Option<String>,
    /// The query string that runs has several statements.
    pub(super) several: bool,
    settings: Settings,
    /// Those of them that somebody has set.
    chosen: Rc<BTreeSet<String>>,
    /// The transaction has taken some back, which pgweir is to put back.
    was_reset: bool,
    /// What of them is something else up to the end of the transaction.
    local: Settings,
    /// What RESET goes back to.
    startup: Settings,
    /// What a rollback goes back to: first the start of the transaction, then its savepoints.
    marks: Vec<Mark>,
    /// It has gone back to a savepoint: portals that were made since are to go.
    pub(super) went_back: bool,
    reported: Settings,
}

/// How everything stood that a rollback takes back.
#[derive(Clone)]
struct Mark {
    /// None has the start of a transaction.
    name: String,
    settings: Settings,
    chosen: Rc<BTreeSet<String>>,
    local: Settings,
    cursors: BTreeMap<String, Tag>,
    locks: Vec<Held>,
    deferred: Option<Tag>,
    altered: Shape,
    /// How many of them there were.
    writes: usize,
    subscriptions: usize,
    notifications: usize,
}

/// A lock that a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) key: u32,
    /// It outlives its transaction.
    pub(crate) session: bool,
}

/// What a transaction changes about the channels that its session listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subscription {
    Listen(String),
    Unlisten(String),
    UnlistenAll,
}

/// What somebody has said on a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    pub(crate) channel: String,
    pub(crate) payload: String,
}

/// The SQLSTATE of an error, and its text.
pub(super) type Failure = (&'static [u8; 5], String);

/// Shared until one is changed: they are saved with each transaction, and seldom changed in it.
pub(crate) type Settings = Rc<BTreeMap<String, String>>;

/// Whether a transaction is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    None,
    /// That of a single statement, of a query string, or of a batch up to its Sync.
    Implicit,
    Block,
    /// A block in which something has failed.
    Failed,
}

/// What a session was logged in to, and as whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Home {
    pub(crate) database: String,
    pub(crate) user: String,
}

/// State that outlives its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stain {
    pub(crate) client: u32,
    pub(crate) what: &'static str,
    /// No DISCARD removes it.
    pub(crate) stays: bool,
}

/// Whether a statement may be carried out once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It only reads, and may share a server.
    May,
    MayNot,
}

/// Who is told what a session does.
pub(crate) trait Witness {
    /// The session looks at a message with this tag.
    fn meets(&mut self, tag: Tag, state: &State);
    /// A statement begins to be carried out.
    fn executes(&mut self, tag: Tag, again: Again);
    /// What it calls has been planned for another client.
    fn finds_plan(&mut self, tag: Tag, of: u32);
    /// A statement that shares a server took too long, and is undone.
    fn overruns(&mut self, tag: Tag);
    /// What these statements have changed is there to stay.
    fn committed(&mut self, tags: &[Tag]);
    /// What these statements have changed is undone.
    fn undone(&mut self, tags: &[Tag]);
    /// These are a client's settings behind its transaction, which has ended with this statement;
    /// `None`: pgweir has something to put back.
    fn settled(&mut self, last: Tag, settings: Option<&Settings>);
    /// What the transaction has changed rows to is there for all from now on.
    fn reshaped(&mut self, state: &State);
    /// A text is read, or a query of one is run, whose rows may change: what they are like. Of an
    /// oracle's: as far as that is certain.
    fn reads(&mut self, glance: Glance, state: &State) -> Seen;
    /// A statement is to be used that was read before: what its rows are like, unless they are not
    /// what they were then.
    fn revalidates(&mut self, glance: Glance, known: Seen, state: &State) -> Option<Shape>;
    /// A COPY reads data.
    fn copies(&mut self, tag: Tag, data: &[u8]);
    /// The session ends, because it was sent what makes no sense.
    fn gives_up(&mut self);
    /// Something came that nobody sends, or that is not its client's.
    fn wrong(&mut self, broken: Invariant, how: String);
}

/// The statement_timeout of servers that are shared, in milliseconds.
pub(super) const BRAKE: &str = "50";
pub(crate) const BRAKE_US: u64 = 50_000;

/// The database whose functions keep in their plans what settings were.
const KEEPS_PLANS: &str = "db1";

const SETTINGS_CHANGED: &str = "changed settings";
pub(super) const TABLE: &str = "a temporary table";

impl State {
    pub(crate) fn new(startup: BTreeMap<String, String>) -> Self {
        let mut settings: BTreeMap<_, _> =
            SETTINGS.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).into();
        settings.extend(startup);
        let settings = Settings::new(settings);
        Self {
            home: None,
            cluster: 0,
            readings: 0,
            room: Room::DEFAULT,
            transaction: Transaction::None,
            owner: None,
            has_guests: false,
            served: None,
            met: 0,
            writes: Vec::new(),
            altered: None,
            braked: false,
            refuses: false,
            misset: false,
            planned: BTreeSet::new(),
            last_value: None,
            deferred: None,
            stains: Vec::new(),
            statements: BTreeMap::new(),
            cursors: BTreeMap::new(),
            locks: Vec::new(),
            has_listened: false,
            listening: BTreeSet::new(),
            subscriptions: Vec::new(),
            notifications: Vec::new(),
            announced: Vec::new(),
            buffers: None,
            several: false,
            chosen: Rc::default(),
            was_reset: false,
            local: Settings::default(),
            startup: settings.clone(),
            marks: Vec::new(),
            went_back: false,
            reported: Settings::default(),
            settings,
        }
    }

    /// A message with a tag has come.
    pub(crate) fn meet(&mut self, tag: Tag, witness: &mut impl Witness) {
        witness.meets(tag, self);
        let owner = *self.owner.get_or_insert(tag.client);
        self.has_guests |= owner != tag.client;
        // A statement that is made once more, behind what its client has sent since, has the tag
        // of its text.
        let earlier = self.served.filter(|served| served.client == tag.client);
        self.served = Some(earlier.map_or(tag, |earlier| earlier.max(tag)));
        self.met += 1;
    }

    /// Whether functions of its database keep in their plans what settings were.
    pub(super) fn keeps_plans(&self) -> bool {
        self.home.as_ref().is_some_and(|home| home.database == KEEPS_PLANS)
    }

    /// A statement begins to be carried out.
    pub(super) fn executes(&mut self, tag: Tag, again: Again, witness: &mut impl Witness) {
        witness.executes(tag, again);
        self.plan(tag, witness);
    }

    /// It calls a function, which plans what it runs if it has not before, and keeps that. What
    /// shares a server calls none.
    fn plan(&mut self, tag: Tag, witness: &mut impl Witness) {
        if !self.keeps_plans() || self.braked {
            return;
        }
        if let Some(of) = self.planned.iter().find(|client| **client != tag.client) {
            witness.finds_plan(tag, *of);
        }
        self.planned.insert(tag.client);
    }

    /// Whether somebody else's statement may come into the transaction that is open: where a server
    /// is shared, as long as that does no more than to read, in a batch.
    pub(crate) fn may_have_guests(&self) -> bool {
        let is_of_batch = matches!(self.transaction, Transaction::None | Transaction::Implicit);
        let has_done_nothing = self.writes.is_empty()
            && self.locks.is_empty()
            && self.local.is_empty()
            && self.subscriptions.is_empty()
            && self.notifications.is_empty()
            && self.deferred.is_none()
            && self.altered.is_none();
        self.braked && is_of_batch && has_done_nothing
    }

    /// Whether the open transaction has failed and this is not its end.
    pub(crate) fn refuses(&self, line: &Line) -> bool {
        self.transaction == Transaction::Failed && !line.is_exit()
    }

    /// Opens an implicit transaction if none is open.
    pub(crate) fn start(&mut self) {
        if self.transaction == Transaction::None {
            self.transaction = Transaction::Implicit;
            self.mark("");
        }
    }

    /// Ends the implicit transaction, if there is one.
    pub(super) fn commit_implicit(&mut self, witness: &mut impl Witness) -> Result<(), Failure> {
        match self.transaction {
            Transaction::Implicit => self.commit(witness),
            Transaction::None | Transaction::Block | Transaction::Failed => Ok(()),
        }
    }

    /// Ends the transaction well, unless a constraint fails.
    pub(super) fn commit(&mut self, witness: &mut impl Witness) -> Result<(), Failure> {
        if let Some(tag) = self.deferred {
            self.abort(witness);
            return Err((b"23505", format!("a deferred constraint is violated [{tag}]")));
        }
        witness.committed(&self.writes);
        if self.altered.is_some() {
            witness.reshaped(self);
        }
        // What is shared changes no settings, and shows not all that its client has.
        if let Some(last) = self.served.filter(|_| self.owner.is_some() && !self.braked) {
            witness.settled(last, Some(&self.settings).filter(|_| !self.was_reset));
        }
        for subscription in std::mem::take(&mut self.subscriptions) {
            match subscription {
                Subscription::Listen(channel) => drop(self.listening.insert(channel)),
                Subscription::Unlisten(channel) => drop(self.listening.remove(&channel)),
                Subscription::UnlistenAll => {
                    self.listening.clear();
                    self.stains.retain(|stain| stain.what != CHANNEL);
                }
            }
        }
        self.announced.append(&mut self.notifications);
        self.over();
        Ok(())
    }

    /// Undoes the transaction, if one is open.
    pub(crate) fn abort(&mut self, witness: &mut impl Witness) {
        witness.undone(&self.writes);
        self.forget();
    }

    /// An error: a block has failed, back to its last savepoint, anything less is over.
    pub(crate) fn error(&mut self, witness: &mut impl Witness) {
        match self.transaction {
            Transaction::Block | Transaction::Failed => {
                self.go_back(self.depth(), witness);
                self.transaction = Transaction::Failed;
            }
            Transaction::None | Transaction::Implicit => self.abort(witness),
        }
    }

    /// The transaction is undone, and if it is a block its end is still to come.
    pub(crate) fn lose(&mut self, witness: &mut impl Witness) {
        let owner = self.owner;
        let block = matches!(self.transaction, Transaction::Block | Transaction::Failed);
        self.abort(witness);
        if block {
            self.open_block(owner);
            self.transaction = Transaction::Failed;
        }
    }

    /// The transaction is over, and nobody knows how it has ended.
    pub(crate) fn forget(&mut self) {
        if let Some(start) = self.marks.first().cloned() {
            self.restore(start);
        }
        self.over();
    }

    /// Another transaction block begins, right behind the last one.
    pub(super) fn open_block(&mut self, owner: Option<u32>) {
        self.transaction = Transaction::Block;
        self.owner = owner;
        self.mark("");
    }

    /// A subtransaction begins.
    pub(super) fn savepoint(&mut self, name: &str) {
        self.mark(name);
    }

    /// How many subtransactions are open.
    pub(super) fn depth(&self) -> usize {
        self.marks.len().saturating_sub(1)
    }

    /// Undoes what was done since this savepoint, which stays. False if there is none.
    pub(super) fn roll_back_to(&mut self, name: &str, witness: &mut impl Witness) -> bool {
        let Some(depth) = self.savepoint_named(name) else { return false };
        self.marks.truncate(depth + 1);
        self.go_back(depth, witness);
        self.transaction = Transaction::Block;
        self.went_back = true;
        true
    }

    /// Ends the subtransaction of this savepoint well. False if there is none.
    pub(super) fn release(&mut self, name: &str) -> bool {
        let Some(depth) = self.savepoint_named(name) else { return false };
        self.marks.truncate(depth);
        true
    }

    /// The last one of that name.
    fn savepoint_named(&self, name: &str) -> Option<usize> {
        (1..self.marks.len()).rev().find(|depth| self.marks[*depth].name == name)
    }

    fn mark(&mut self, name: &str) {
        self.marks.push(Mark {
            name: name.to_owned(),
            settings: Rc::clone(&self.settings),
            chosen: Rc::clone(&self.chosen),
            local: Rc::clone(&self.local),
            cursors: self.cursors.clone(),
            locks: self.locks.clone(),
            deferred: self.deferred,
            altered: self.altered,
            writes: self.writes.len(),
            subscriptions: self.subscriptions.len(),
            notifications: self.notifications.len(),
        });
    }

    /// Undoes what was done since that mark.
    fn go_back(&mut self, depth: usize, witness: &mut impl Witness) {
        if let Some(mark) = self.marks.get(depth).cloned() {
            witness.undone(&self.writes[mark.writes..]);
            self.restore(mark);
        }
    }

    fn restore(&mut self, mark: Mark) {
        self.settings = mark.settings;
        self.chosen = mark.chosen;
        self.local = mark.local;
        self.cursors = mark.cursors;
        self.deferred = mark.deferred;
        self.altered = mark.altered;
        self.writes.truncate(mark.writes);
        self.subscriptions.truncate(mark.subscriptions);
        self.notifications.truncate(mark.notifications);
        // A lock of the session, taken or given back, is not undone.
        self.locks.retain(|lock| lock.session);
        self.locks.extend(mark.locks.iter().filter(|lock| !lock.session));
    }

    pub(crate) fn stain(&mut self, client: u32, what: &'static str) {
        self.stain_with(Stain { client, what, stays: false });
    }

    /// A client leaves what no DISCARD removes.
    pub(super) fn keep(&mut self, client: u32, what: Keep) {
        self.stain_with(Stain { client, what: what.name(), stays: true });
    }

    fn stain_with(&mut self, stain: Stain) {
        if !self.stains.contains(&stain) {
            self.stains.push(stain);
        }
    }

    /// A client makes a temporary table.
    pub(super) fn make_temporary(&mut self, client: u32) {
        self.stain(client, TABLE);
        self.buffers = self.buffers.take().or_else(|| self.settings.get("temp_buffers").cloned());
    }

    /// A client changes a setting; `local`: up to the end of the transaction.
    pub(super) fn set(&mut self, client: u32, name: &str, value: &str, local: bool) {
        let name = name.to_ascii_lowercase();
        if local {
            Rc::make_mut(&mut self.local).insert(name, value.to_owned());
        } else {
            if self.home.is_none() {
                // On a server it is no stain: pgweir takes it back.
                self.stain(client, SETTINGS_CHANGED);
            }
            Rc::make_mut(&mut self.local).remove(&name);
            Rc::make_mut(&mut self.chosen).insert(name.clone());
            Rc::make_mut(&mut self.settings).insert(name, value.to_owned());
        }
    }

    /// A client takes a setting back, or all of them.
    pub(super) fn reset(&mut self, name: Option<&str>) {
        self.was_reset = true;
        let Some(name) = name.map(str::to_ascii_lowercase) else {
            self.chosen = Rc::default();
            self.local = Settings::default();
            self.settings = Rc::clone(&self.startup);
            return;
        };
        Rc::make_mut(&mut self.local).remove(&name);
        Rc::make_mut(&mut self.chosen).remove(&name);
        match self.startup.get(&name) {
            Some(value) => drop(Rc::make_mut(&mut self.settings).insert(name, value.clone())),
            None => drop(Rc::make_mut(&mut self.settings).remove(&name)),
        }
    }

    /// Changes, at the end of the transaction, what is listened to.
    pub(super) fn subscribe(&mut self, subscription: Subscription) {
        self.has_listened |= subscription.is_listen();
        self.subscriptions.push(subscription);
    }

    /// Whether it listens on any channel, or will when its transaction is committed.
    pub(crate) fn listens(&self) -> bool {
        !self.listening.is_empty() || self.subscriptions.iter().any(Subscription::is_listen)
    }

    /// The channels that it listens on.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &String> {
        self.listening.iter()
    }

    pub(crate) fn listens_on(&self, channel: &str) -> bool {
        self.listening.contains(channel)
    }

    /// Whether it listens on this channel, and still will when its transaction is committed.
    pub(crate) fn must_hear(&self, channel: &str) -> bool {
        let leaves = |subscription: &Subscription| match subscription {
            Subscription::Listen(_) => false,
            Subscription::Unlisten(left) => left == channel,
            Subscription::UnlistenAll => true,
        };
        self.listens_on(channel) && !self.subscriptions.iter().any(leaves)
    }

    /// Whether it listens on this channel, or will when its transaction is committed.
    pub(crate) fn may_hear(&self, channel: &str) -> bool {
        let listen = Subscription::Listen(channel.to_owned());
        self.listens_on(channel) || self.subscriptions.contains(&listen)
    }

    /// pgweir changes settings: all of them, or none.
    pub(crate) fn configure(&mut self, pairs: &[(String, Option<String>)]) -> Result<(), String> {
        let is_shared = self.braked && pairs.iter().all(|(name, _)| name != "statement_timeout");
        self.misset = is_shared && std::mem::take(&mut self.refuses);
        if self.misset {
            return Err("out of memory".to_owned());
        }
        for (name, value) in pairs {
            if name == BORN {
                return Err(format!("parameter \"{name}\" cannot be set after connection start"));
            }
            let Some(value) = value else { continue };
            if !Self::is_valid(name, value) {
                return Err(format!("invalid value for parameter \"{name}\": \"{value}\""));
            }
            if name == "temp_buffers" && self.buffers.as_ref().is_some_and(|fixed| fixed != value) {
                return Err(format!("parameter \"{name}\" cannot be changed any more"));
            }
        }
        for (name, value) in pairs {
            if name == "statement_timeout" {
                // Of the client's own nothing is simulated but what it makes of questions.
                let brake = value.as_deref().filter(|value| *value == BRAKE);
                self.braked = brake.is_some();
                if self.braked {
                    continue;
                }
            }
            let chosen = Rc::make_mut(&mut self.chosen);
            match value {
                Some(_) => drop(chosen.insert(name.clone())),
                None => drop(chosen.remove(name)),
            }
            let value = value.as_ref().or_else(|| self.startup.get(name));
            let value = value.cloned().unwrap_or_default();
            Rc::make_mut(&mut self.settings).insert(name.clone(), value);
        }
        Ok(())
    }

    /// pgweir sets again what is not set by anybody.
    pub(super) fn put_back(&mut self, pairs: &[(String, Option<String>)]) -> Result<(), String> {
        let is_set = |name: &String| self.chosen.contains(name) || self.local.contains_key(name);
        let pairs: Vec<_> = pairs.iter().filter(|(name, _)| !is_set(name)).cloned().collect();
        self.configure(&pairs)?;
        self.was_reset = false;
        Ok(())
    }

    /// What is set by somebody, and these, with their values.
    pub(super) fn chosen(&self, custom: &[String]) -> Vec<(String, String)> {
        let asked = custom.iter().filter(|name| !self.chosen.contains(*name));
        let names = self.chosen.iter().chain(asked);
        names.filter_map(|name| Some((name.clone(), self.settings.get(name)?.clone()))).collect()
    }

    /// The server has a new configuration, or says so.
    pub(crate) fn reload(&mut self, version: &str) {
        let marks = self.marks.iter_mut().map(|mark| &mut mark.settings);
        for settings in marks.chain([&mut self.settings, &mut self.startup]) {
            Rc::make_mut(settings).insert(VERSION.to_owned(), version.to_owned());
        }
    }

    /// DISCARD. Of a temporary table something stays behind, and so does a library.
    pub(super) fn discard(&mut self, kind: Kind) {
        match kind {
            Kind::All => {
                self.reset(None);
                self.braked = false;
                self.planned.clear();
                self.last_value = None;
                self.stains.retain(|stain| stain.stays);
                self.statements.retain(|name, _| name.is_empty());
                self.cursors.clear();
                self.locks.clear();
                self.subscribe(Subscription::UnlistenAll);
            }
            Kind::Temp => self.stains.retain(|stain| stain.what != TABLE),
            Kind::Sequences => self.last_value = None,
            Kind::Plans => self.planned.clear(),
        }
    }

    pub(crate) fn setting(&self, name: &str) -> &str {
        let is_it = |(known, _): &(&String, &String)| known.eq_ignore_ascii_case(name);
        let mut all = self.local.iter().chain(self.settings.iter());
        all.find(is_it).map_or("", |(_, value)| value)
    }

    /// The settings that clients may change, as they are between transactions.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let settings = self.settings.iter().filter(|(name, _)| *name != VERSION);
        settings.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The frontend is told that its transaction, which is lost, has taken this setting back. False
    /// if a rollback would not do so.
    pub(crate) fn told_early(&mut self, name: &str, value: &str) -> bool {
        let known = SETTINGS.iter().find(|(known, _)| *known == name);
        let start =
            self.marks.first().and_then(|start| start.settings.get(&name.to_ascii_lowercase()));
        match known {
            Some((name, _)) if start.is_some_and(|before| before == value) => {
                Rc::make_mut(&mut self.reported).insert((*name).to_owned(), value.to_owned());
                true
            }
            _ => false,
        }
    }

    /// A setting that the frontend has to be told of; it counts as told from now on.
    pub(crate) fn unreported(&mut self) -> Option<(&'static str, String)> {
        for (name, _) in SETTINGS.into_iter().filter(|(name, _)| !UNREPORTED.contains(name)) {
            let value = self.setting(name);
            if self.reported.get(name).map(String::as_str) != Some(value) {
                let value = value.to_owned();
                Rc::make_mut(&mut self.reported).insert(name.to_owned(), value.clone());
                return Some((name, value));
            }
        }
        None
    }

    fn over(&mut self) {
        self.was_reset = false;
        self.transaction = Transaction::None;
        self.owner = None;
        self.has_guests = false;
        self.writes.clear();
        self.notifications.clear();
        self.subscriptions.clear();
        self.deferred = None;
        self.altered = None;
        if !self.local.is_empty() {
            self.local = Settings::default();
        }
        self.locks.retain(|lock| lock.session);
        self.marks.clear();
    }
}

impl Subscription {
    fn is_listen(&self) -> bool {
        matches!(self, Self::Listen(_))
    }
}

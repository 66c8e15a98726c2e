mod cancels;
mod notices;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::rc::Rc;

use pgweir_engine::Marks;

use crate::invariants::Invariant;
use crate::language::{Keep, Tag};
use crate::rows::{Reached, Row};
use crate::schema::Schema;
use crate::session::{Again, Home, Settings, Stain, State, Transaction, Witness};
use crate::shapes::{Glance, Seen, Shape, Shapes};
use crate::trap::Trap;

use cancels::Cancels;
pub(crate) use cancels::RequestId;
pub(crate) use notices::{Ear, Notices};

/// What all servers together have seen: the truth that replies are held against.
pub(crate) struct Ledger {
    pub(crate) now: u64,
    deeds: BTreeMap<Tag, Deed>,
    /// When a server last began something for each client.
    begun_at: BTreeMap<u32, u64>,
    /// The statement that was begun last for each client.
    last_begun: BTreeMap<u32, u32>,
    /// Clients that have had two servers at a time: one that they have lost goes on with what it
    /// has read.
    divided: BTreeSet<u32>,
    /// What each client asked for in its startup packet: settings, database and user.
    startups: Vec<BTreeMap<String, String>>,
    /// What each client's last transaction has made of its settings, if that is known.
    settings: BTreeMap<u32, Option<Settings>>,
    homes: Vec<Home>,
    cancels: Cancels,
    /// When a request for a cancel last came to a server, or was acted on, for each process there.
    pub(crate) cancelled: BTreeMap<(usize, i32), u64>,
    /// Clients that have ended their connection of their own accord, and those of them that had
    /// nothing under way.
    left: BTreeSet<u32>,
    left_in_peace: BTreeSet<u32>,
    /// Clients that hear nothing more, whether or not their connection is there.
    deaf: BTreeSet<u32>,
    /// What was notified.
    pub(crate) notices: Notices,
    /// What rows are like that statements change.
    pub(crate) shapes: Rc<RefCell<Shapes>>,
    /// Who changes the schema.
    pub(crate) schema: Schema,
    /// When connections to servers were taken away, and how many clients this has cost theirs.
    kills: Vec<u64>,
    /// When the network said of those that had vanished that they are not there.
    found_out: Vec<u64>,
    pub(crate) losses: u32,
    /// Some process has ended because of what it was sent.
    pub(crate) some_gave_up: bool,
    /// When each server was last unreachable, or refused a login.
    pub(crate) trouble: BTreeMap<usize, u64>,
    /// When it last refused a login with this code.
    pub(crate) said: BTreeMap<(usize, String), u64>,
    /// Up to when a server of these was struck, or stood still.
    pub(crate) struck: BTreeMap<Home, u64>,
    /// Where servers are shared: by so many clients at most.
    sharers: Option<u32>,
    /// Whoever comes next may find a library.
    ignores: bool,
    failure: Option<String>,
    pub(crate) counts: Counts,
}

/// What a simulation has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions of clients that got as far as their first ReadyForQuery.
    pub sessions: u64,
    /// ReadyForQuery messages that reached their client outside of a transaction block.
    pub transactions: u64,
    /// Statements that a server began to carry out.
    pub statements: u64,
    /// Messages that clients compared with what they were owed.
    pub replies: u64,
    /// Cancels that ended a statement.
    pub cancels: u64,
    /// Clients that lost their server.
    pub losses: u64,
    /// Units or logins that pgweir refused.
    pub refusals: u64,
    /// Clients that were asked to leave because pgweir ends.
    pub farewells: u64,
    /// Clients, and requests for a cancel, that went from one worker to another.
    pub handovers: u64,
    /// Connections that a worker made when another one had left them to it.
    pub moved: u64,
    /// Rows of docs/failures.md.
    pub rows: Reached,
    /// Rare paths of pgweir's.
    pub marks: Marks,
}

impl Counts {
    /// Adds what another simulation has done.
    pub fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.transactions += other.transactions;
        self.statements += other.statements;
        self.replies += other.replies;
        self.cancels += other.cancels;
        self.losses += other.losses;
        self.refusals += other.refusals;
        self.farewells += other.farewells;
        self.handovers += other.handovers;
        self.moved += other.moved;
        self.rows.add(&other.rows);
        self.marks.add(&other.marks);
    }
}

/// What has become of a statement.
#[derive(Clone, Copy, Debug, Default)]
struct Deed {
    executed: bool,
    committed: bool,
    undone: bool,
    refused: bool,
    /// Its client was told that it is undone.
    told_undone: bool,
    /// A cancel has ended it.
    cancelled: bool,
    /// Its client was told so by pgweir, before any server that has it was hit.
    told_cancelled: bool,
    /// It took too long where it shared a server: it is undone, and may be run again.
    overran: bool,
    /// It only reads, and may be run again: what is heard of it may be of a later time.
    reads: bool,
    /// It was run last under settings that are not its client's, behind a statement that was to
    /// set them and was refused.
    astray: bool,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            deeds: BTreeMap::new(),
            begun_at: BTreeMap::new(),
            last_begun: BTreeMap::new(),
            divided: BTreeSet::new(),
            startups: Vec::new(),
            settings: BTreeMap::new(),
            homes: Vec::new(),
            cancels: Cancels::default(),
            cancelled: BTreeMap::new(),
            left: BTreeSet::new(),
            left_in_peace: BTreeSet::new(),
            deaf: BTreeSet::new(),
            notices: Notices::default(),
            shapes: Rc::default(),
            schema: Schema::default(),
            kills: Vec::new(),
            found_out: Vec::new(),
            losses: 0,
            some_gave_up: false,
            trouble: BTreeMap::new(),
            said: BTreeMap::new(),
            struck: BTreeMap::new(),
            sharers: None,
            ignores: false,
            failure: None,
            counts: Counts::default(),
        }
    }

    /// One of servers that are shared by so many clients at most, or not at all.
    pub(crate) fn sharing(self, sharers: Option<u32>) -> Self {
        Self { sharers, ..self }
    }

    /// One of pools that let a library be, or do not.
    pub(crate) fn ignoring(self, ignores: bool) -> Self {
        Self { ignores, ..self }
    }

    /// A client begins its life. Says its number.
    pub(crate) fn enrol(&mut self, startup: BTreeMap<String, String>, home: Home) -> u32 {
        self.startups.push(startup);
        self.homes.push(home);
        (self.startups.len() - 1) as u32
    }

    /// Clients so far.
    pub(crate) fn clients(&self) -> u64 {
        self.startups.len() as u64
    }

    /// The first invariant that is broken ends the simulation.
    pub(crate) fn fail(&mut self, broken: Invariant, how: impl Display) {
        self.failure.get_or_insert_with(|| broken.broken(how));
    }

    /// What counts as a mistake on demand has happened.
    pub(crate) fn sprung(&mut self, trap: Trap) {
        self.failure.get_or_insert_with(|| trap.cause().to_owned());
    }

    pub(crate) fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// What a client heard shows a row of docs/failures.md.
    pub(crate) fn reach(&mut self, row: Row) {
        self.counts.rows.note(row);
    }

    /// Whether a server has begun to carry this statement out.
    pub(crate) fn has_begun(&self, tag: Tag) -> bool {
        self.deeds.get(&tag).is_some_and(|deed| deed.executed)
    }

    /// When a server last began something for this client.
    pub(crate) fn begun_at(&self, client: u32) -> Option<u64> {
        self.begun_at.get(&client).copied()
    }

    /// The statements of a client that are committed, by their numbers.
    #[cfg(test)]
    pub(crate) fn committed_by(&self, client: u32) -> Vec<u32> {
        let committed =
            self.deeds.iter().filter(|(tag, deed)| tag.client == client && deed.committed);
        committed.map(|(tag, _)| tag.number).collect()
    }

    /// A client has ended its connection; `in_peace`: with nothing under way.
    pub(crate) fn leaves(&mut self, client: u32, in_peace: bool) {
        self.left.insert(client);
        self.schema.is_over(client, self.now);
        if in_peace {
            self.left_in_peace.insert(client);
        }
    }

    /// pgweir has cancelled a statement of a client, because its transaction takes too long.
    pub(crate) fn overdue(&mut self, client: u32) {
        if self.has_left(client) {
            self.reach(Row::LeftTransaction);
        }
    }

    /// A client breaks off what it has begun, or is told that it has come to its end.
    pub(crate) fn breaks_off(&mut self, client: u32) {
        self.deaf.insert(client);
    }

    /// Whether nobody needs to hear what a client is owed.
    pub(crate) fn hears_nothing(&self, client: u32) -> bool {
        self.deaf.contains(&client) || self.has_left(client)
    }

    /// Whether a client has ended its connection.
    pub(crate) fn has_left(&self, client: u32) -> bool {
        self.left.contains(&client)
    }

    /// A connection to a server is taken away, or may have to be given up.
    pub(crate) fn kill(&mut self) {
        self.kills.push(self.now);
    }

    /// A server that had vanished is not answered for any more.
    pub(crate) fn find_out(&mut self) {
        self.found_out.push(self.now);
    }

    /// So many were since then, or have shown since then.
    pub(crate) fn kills_since(&self, at: u64) -> usize {
        let since = |times: &[u64]| times.iter().rev().take_while(|time| **time >= at).count();
        since(&self.kills) + since(&self.found_out)
    }

    /// A client has lost its server.
    pub(crate) fn lost(&mut self, client: u32, how: &str) {
        self.losses += 1;
        self.counts.losses += 1;
        self.divide(client);
        self.notices.ends(&self.homes[client as usize], self.now, 0);
        // Those who share a server lose it together.
        let each = self.sharers.unwrap_or(1);
        if self.losses > self.kills.len() as u32 * each {
            self.fail(
                Invariant::LossHasCause,
                format!("c{client} lost its server ({how}) when none had failed it"),
            );
        }
    }

    /// What a client has sent may be carried out by two servers at a time from now on.
    pub(crate) fn divide(&mut self, client: u32) {
        self.divided.insert(client);
    }

    /// Whether a client has had two servers at a time.
    pub(crate) fn is_divided(&self, client: u32) -> bool {
        self.divided.contains(&client)
    }

    /// The same of one that may have been told so without hearing it.
    fn may_be_divided(&self, client: u32) -> bool {
        self.is_divided(client) || self.deaf.contains(&client)
    }

    /// Whether this is run late, by a server that was given up: its client may have other settings
    /// by now. What only reads may have been run again meanwhile, or refused where nobody could.
    fn is_late(&self, tag: Tag) -> bool {
        let is_before = |last: &u32| *last > tag.number;
        let is_again = |deed: &Deed| deed.executed && deed.reads || deed.refused;
        let is_again = self.deeds.get(&tag).is_some_and(is_again);
        (self.may_be_divided(tag.client) || is_again)
            && self.last_begun.get(&tag.client).is_some_and(is_before)
    }

    /// pgweir has answered this client's unit itself instead of running it.
    pub(crate) fn refused(&mut self, tags: &[Tag]) {
        self.counts.refusals += 1;
        for tag in tags {
            let deed = self.deeds.entry(*tag).or_default();
            deed.refused = true;
            if deed.executed && !deed.overran && !deed.reads {
                self.fail(
                    Invariant::RefusedIsNotRun,
                    format!("{tag} was refused and is carried out all the same"),
                );
            }
        }
    }

    /// A client was told that what these statements have changed is undone, and will stay so.
    pub(crate) fn undone_for_good(&mut self, tags: &[Tag]) {
        for tag in tags {
            let deed = self.deeds.entry(*tag).or_default();
            deed.told_undone = true;
            if deed.committed {
                self.fail(
                    Invariant::ToldIsTrue,
                    format!("{tag} was reported as undone and is committed"),
                );
            }
        }
    }

    /// A client has heard the reply to all that it has sent.
    pub(crate) fn heard_out(&mut self, client: u32) {
        let Some(&number) = self.last_begun.get(&client) else { return };
        let last = Tag { client, number };
        let is_astray = |deed: &Deed| deed.astray && !deed.refused && !deed.told_cancelled;
        if self.deeds.get(&last).is_some_and(is_astray) {
            let text = format!("{last} is answered as it ran under settings that were refused");
            self.fail(Invariant::OwnSettings, text);
        }
    }

    /// A client was told that the reply to all that it has sent was thrown away: of what that came
    /// to it hears nothing.
    pub(crate) fn reply_dropped(&mut self, client: u32) {
        if let Some(&number) = self.last_begun.get(&client) {
            self.deeds.entry(Tag { client, number }).or_default().astray = false;
        }
    }

    /// A client was told that these statements are committed, and those undone.
    pub(crate) fn acknowledged(&mut self, committed: &[Tag], undone: &[Tag]) {
        for tag in committed {
            if !self.deeds.get(tag).is_some_and(|deed| deed.committed) {
                self.fail(
                    Invariant::ToldIsTrue,
                    format!("{tag} was acknowledged and is not committed"),
                );
            }
        }
        self.undone_for_good(undone);
    }
}

impl Witness for Ledger {
    fn meets(&mut self, tag: Tag, state: &State) {
        let is_guest = state.owner.is_some_and(|owner| owner != tag.client);
        if let Some(owner) = state.owner
            && is_guest
            && !state.may_have_guests()
        {
            self.fail(
                Invariant::OwnTransaction,
                format!("{tag} came into a transaction of c{owner}"),
            );
        }
        if let Some(last) = state.served.filter(|last| last.client != tag.client)
            && self.left_in_peace.contains(&last.client)
        {
            self.reach(Row::Left);
        }
        let own = &self.homes[tag.client as usize];
        if let Some(home) = state.home.as_ref().filter(|home| *home != own) {
            let text = format!("{tag} came to {home:?}, not to {own:?}");
            return self.fail(Invariant::OwnHome, text);
        }
        let counts = |stain: &&Stain| !(self.ignores && stain.what == Keep::Library.name());
        let mut strange = state.stains.iter().filter(counts);
        if let Some(stain) = strange.find(|stain| stain.client != tag.client) {
            self.fail(
                Invariant::CleanServer,
                format!("{tag} came to a session with {} of c{}", stain.what, stain.client),
            );
        }
        // A guest has found it so when it came.
        let comes = is_guest && state.served.is_none_or(|last| last.client != tag.client);
        if state.transaction != Transaction::None && !comes {
            // What it has changed is its own.
            return;
        }
        if self.is_late(tag) {
            return;
        }
        let wanted = match self.settings.get(&tag.client) {
            Some(None) => return,
            Some(Some(settings)) => settings,
            None => &self.startups[tag.client as usize],
        };
        for (name, value) in state.settings() {
            if state.braked && ["application_name", "statement_timeout"].contains(&name) {
                // Where servers are shared they keep their own name, and have the brake.
                continue;
            }
            let default = State::default_of(name);
            let wanted = wanted.get(name).map_or(default, String::as_str);
            if value != wanted && state.misset {
                self.deeds.entry(tag).or_default().astray = true;
                return;
            }
            if value != wanted {
                let text = format!("{tag} found {name} set to {value:?}, not to {wanted:?}");
                return self.fail(Invariant::OwnSettings, text);
            }
        }
        if let Some(deed) = self.deeds.get_mut(&tag) {
            deed.astray = false;
        }
    }

    fn settled(&mut self, last: Tag, settings: Option<&Settings>) {
        if !self.is_late(last) {
            self.settings.insert(last.client, settings.map(Rc::clone));
        }
    }

    fn executes(&mut self, tag: Tag, again: Again) {
        self.counts.statements += 1;
        let last = self.last_begun.get(&tag.client).copied();
        self.last_begun.insert(tag.client, last.map_or(tag.number, |last| last.max(tag.number)));
        let may_again = again == Again::May && self.sharers.is_some();
        if !may_again {
            // Whoever has asked for it does not wait for a server any more.
            self.begun_at.insert(tag.client, self.now);
        }
        // What is read again elsewhere may still be read by a server that was lost.
        let is_one = !self.may_be_divided(tag.client) && !may_again;
        if let Some(last) = last.filter(|last| *last > tag.number && is_one) {
            self.fail(Invariant::OwnOrder, format!("{tag} was begun behind statement {last}"));
        }
        let deed = self.deeds.entry(tag).or_default();
        if deed.astray && !may_again {
            let text = format!("{tag} was carried out under settings that were refused");
            return self.fail(Invariant::OwnSettings, text);
        }
        deed.reads = may_again;
        if std::mem::take(&mut deed.overran) {
            deed.undone = false;
            deed.executed = false;
        }
        if deed.executed && !may_again {
            self.fail(Invariant::RunOnce, format!("{tag} was carried out twice"));
        } else if deed.refused && !deed.reads {
            self.fail(
                Invariant::RefusedIsNotRun,
                format!("{tag} was carried out after it had been refused"),
            );
        } else {
            deed.executed = true;
        }
    }

    fn finds_plan(&mut self, tag: Tag, of: u32) {
        // What nobody could read may have such functions or not.
        if !self.schema.is_unreadable() {
            let text = format!("{tag} found what functions have planned for c{of}");
            self.fail(Invariant::OwnPlans, text);
        }
    }

    fn overruns(&mut self, tag: Tag) {
        self.deeds.entry(tag).or_default().overran = true;
    }

    fn committed(&mut self, tags: &[Tag]) {
        if tags.iter().any(|tag| self.has_left(tag.client)) {
            self.reach(Row::LeftStatement);
        }
        for tag in tags {
            let deed = self.deeds.entry(*tag).or_default();
            deed.committed = true;
            if deed.told_undone || deed.undone {
                self.fail(
                    Invariant::ToldIsTrue,
                    format!("{tag} is committed, and was undone, or reported as undone"),
                );
            }
        }
    }

    fn undone(&mut self, tags: &[Tag]) {
        for tag in tags {
            self.deeds.entry(*tag).or_default().undone = true;
        }
    }

    fn reshaped(&mut self, state: &State) {
        if let Some(shape) = state.altered {
            self.shapes.borrow_mut().commit(state.cluster, database_of(state), shape);
        }
    }

    fn reads(&mut self, glance: Glance, state: &State) -> Seen {
        let (database, own) = (database_of(state), state.altered);
        let shape = self.shapes.borrow_mut().look(glance, state.cluster, database, own);
        Seen { shape, in_doubt: false }
    }

    fn revalidates(&mut self, glance: Glance, known: Seen, state: &State) -> Option<Shape> {
        let now = self.reads(glance, state).shape;
        (now == known.shape).then_some(now)
    }

    fn copies(&mut self, tag: Tag, data: &[u8]) {
        if Tag::parse(data.trim_ascii()) != Some(tag) {
            let data = data.escape_ascii();
            self.fail(
                Invariant::OwnCopyData,
                format!("{tag} was fed with COPY data that is not its own: {data}"),
            );
        }
    }

    fn gives_up(&mut self) {
        // What it has to say about it may be lost with its unread input.
        self.kill();
        self.some_gave_up = true;
    }

    fn wrong(&mut self, broken: Invariant, how: String) {
        self.fail(broken, how);
    }
}

fn database_of(state: &State) -> &str {
    state.home.as_ref().map_or("", |home| &home.database)
}

#[cfg(test)]
mod tests;

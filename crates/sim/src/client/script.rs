mod copying;
mod habits;
mod sharing;
mod verbs;

use std::collections::BTreeSet;

use pgweir_config::PoolMode;
use pgweir_wire::frontend::{self, Target};

use super::PoolFacts;
use crate::diet::{Diet, Sitting};
use crate::language::{Kind, Statement, Tag, Verb};
use crate::random::Dice;
use crate::session::{VERSION, put};
use copying::Copying;
use habits::Habits;
use verbs::{common_text, in_block, pick, setting, stateful};

pub(crate) use habits::Habit;

/// What a client does with its life.
pub(crate) struct Script {
    client: u32,
    mode: PoolMode,
    /// The number of its next statement.
    number: u32,
    /// Units until it leaves.
    units: u32,
    /// Units so far.
    begun_units: u32,
    /// Those of them that are not sent.
    left_out: BTreeSet<u32>,
    /// Statements until the transaction block is closed.
    block: Option<u32>,
    /// It has opened one at some time.
    begun: bool,
    /// It has asked for another like the last one, at some time, or may have: its first word came
    /// behind more than pgweir waits for.
    chained: bool,
    /// It has sent a Sync in front of the data of a COPY that fails before it reads any.
    doubted: bool,
    /// A batch is open: its Sync is still to be sent.
    batch: bool,
    /// It has made an unnamed statement.
    unnamed: bool,
    /// The names of prepared statements that it has made.
    named: [bool; STATEMENT_NAMES.len()],
    /// What it uses next under a name is prepared again: the rows of something were not what they
    /// were.
    renews: bool,
    /// The rest of that batch is not run.
    passed_over: bool,
    /// It sends a Query in the middle of a batch at once, and does not wait for long for what comes
    /// of it.
    presses: bool,
    /// A COPY has begun: its data are still to be sent.
    copying: Option<Copying>,
    /// It does not wait for long for what it has just asked for.
    hasty: bool,
    /// It may have done what keeps its server with it.
    pinned: bool,
    /// It speaks the simple protocol only.
    simple: bool,
    habits: Habits,
    dice: Dice,
}

/// What clients call the statements that they prepare.
pub(crate) const STATEMENT_NAMES: [&str; 3] = ["n0", "n1", "n2"];

/// By which protocol a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Simple,
    /// The same, in a string whose transaction one of its statements may have ended.
    SimpleBehindEnd,
    Extended,
}

/// How the connection goes on after this unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    None,
    Terminate,
    HalfClose,
    /// Terminate, and more behind it.
    Rude,
}

impl Script {
    /// `roomy`: it may ask for much. `customs`: what most clients do.
    pub(crate) fn new(
        client: u32,
        pool: &PoolFacts,
        roomy: bool,
        customs: &[Habit],
        mut dice: Dice,
        diet: &Diet,
        sitting: Sitting,
    ) -> Self {
        let (mode, simple) = (pool.mode, pool.replicates);
        let habits = Habits::draw(&mut dice, roomy, customs).without(diet);
        let habits = if simple { habits.of_replication() } else { habits };
        Self {
            client,
            mode,
            number: 0,
            units: dice.magnitude(40) as u32 * if habits.shares { 4 } else { 1 },
            begun_units: 0,
            left_out: diet.units_of(sitting),
            block: None,
            begun: false,
            chained: false,
            doubted: false,
            batch: false,
            passed_over: false,
            presses: false,
            unnamed: false,
            named: [false; STATEMENT_NAMES.len()],
            renews: false,
            copying: None,
            hasty: false,
            pinned: mode == PoolMode::Session,
            simple,
            habits,
            dice,
        }
    }

    /// How many units it has come to.
    pub(crate) fn units_so_far(&self) -> u32 {
        self.begun_units
    }

    /// Whether it sends more although it is owed replies.
    pub(crate) fn goes_on_unanswered(&self, dice: &mut Dice) -> bool {
        dice.chance(self.habits.pipelines) || self.presses
    }

    /// Whether it has ever opened a transaction block.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether it has ever asked for another transaction like the last one, or may have.
    pub(crate) fn has_chained(&self) -> bool {
        self.chained
    }

    /// Whether it does not wait for long for the answer to its last unit.
    pub(crate) fn is_hasty(&mut self) -> bool {
        std::mem::take(&mut self.hasty)
    }

    /// Whether it is in the middle of a batch or of a COPY.
    pub(crate) fn is_in_the_middle(&self) -> bool {
        self.batch || self.copying.is_some()
    }

    /// Whether a Sync of its may have been taken for data, and another one behind it be owed.
    pub(crate) fn has_doubted(&self) -> bool {
        self.doubted
    }

    /// A unit was not run: what its Parse would have made is not there, nor what one of the rest of
    /// its batch would.
    pub(crate) fn not_run(&mut self) {
        self.unnamed = false;
        self.passed_over = self.batch;
    }

    /// It has heard that rows are not what they were when it prepared them.
    pub(crate) fn finds_changed(&mut self) {
        self.renews = true;
    }

    /// Microseconds until it does the next thing.
    pub(crate) fn think(&self, dice: &mut Dice) -> u64 {
        let most = if self.habits.shares { sharing::THINKS_US } else { self.habits.thinks };
        let thinks = dice.magnitude(most);
        if self.presses { 0 } else { thinks }
    }

    /// Whether it takes its time now and then.
    pub(crate) fn dozes(&self) -> bool {
        self.habits.dozes
    }

    /// Microseconds of rest in the middle of a batch or of a COPY, when nothing more is to come.
    pub(crate) fn ponder(&self, dice: &mut Dice) -> u64 {
        match self.dozes() && dice.chance(0.3) {
            true => dice.below(4_000_000),
            false => 0,
        }
    }

    /// Microseconds of rest when all is answered.
    pub(crate) fn pause(&self, in_block: bool, dice: &mut Dice) -> u64 {
        match self.habits.dozes && dice.chance(if in_block { 0.3 } else { 0.1 }) {
            true => dice.magnitude(4_000_000),
            false => 0,
        }
    }

    /// Gives the messages of its next unit, or of a part of one.
    pub(crate) fn next(&mut self) -> (Vec<u8>, Farewell) {
        let mut out = Vec::new();
        if let Some(mut copying) = self.copying.take() {
            if copying.dice.chance(self.habits.abandons) {
                return (abandon(), Farewell::Rude);
            }
            if copying.strays {
                // If the COPY has failed, its batch is still to be ended.
                self.batch = copying.extended;
                self.query(&mut out, &mut copying.dice);
            } else {
                copying.go_on(&mut out);
            }
            return (out, Farewell::None);
        }
        // What one unit draws shifts nothing in the next.
        let mut dice = self.dice.fork();
        let farewell = self.unit(&mut out, &mut dice);
        (out, farewell)
    }

    fn unit(&mut self, out: &mut Vec<u8>, dice: &mut Dice) -> Farewell {
        if dice.chance(self.habits.abandons) && self.batch {
            *out = abandon();
            return Farewell::Rude;
        }
        if self.units == 0 && !self.batch {
            return self.leave(out, dice);
        }
        self.units = self.units.saturating_sub(1);
        let unit = self.begun_units;
        self.begun_units += 1;
        if self.habits.shares && self.is_between() && dice.chance(0.9) {
            self.share(out, dice);
        } else if self.batch && (dice.chance(0.1) || self.presses) {
            // In the middle of a batch: it ends it, or is passed over with it.
            self.hasty = std::mem::take(&mut self.presses);
            if dice.chance(0.8) { self.query(out, dice) } else { self.call(out, dice) }
        } else if self.batch || dice.chance(self.habits.extended) {
            self.batch_goes_on(out, dice);
        } else if dice.chance(0.05) && !self.simple {
            self.call(out, dice);
        } else if dice.chance(self.habits.copies) {
            self.copy(out, dice);
        } else if self.may_reset() && dice.chance(0.03) {
            self.reset(out, dice);
        } else {
            self.query(out, dice);
        }
        if self.left_out.contains(&unit) {
            out.clear();
            self.copying = None;
            self.hasty = false;
            self.unnamed = false;
        }
        // A last unit may have its farewell glued to it.
        if self.units == 0 && !self.batch && self.copying.is_none() && dice.chance(0.3) {
            return self.leave(out, dice);
        }
        Farewell::None
    }

    fn leave(&self, out: &mut Vec<u8>, dice: &mut Dice) -> Farewell {
        if dice.chance(0.2) {
            return Farewell::HalfClose;
        }
        out.extend_from_slice(&frontend::TERMINATE);
        if dice.chance(self.habits.babbles) {
            // Nobody is there any more to read it.
            out.extend_from_slice(&frontend::SYNC);
            return Farewell::Rude;
        }
        Farewell::Terminate
    }

    /// Whether a batch is open: its Sync is still to be sent.
    pub(super) fn is_in_batch(&self) -> bool {
        self.batch
    }

    /// The number of its last statement.
    pub(super) fn statements(&self) -> u32 {
        self.number
    }

    fn tag(&mut self) -> Tag {
        self.number += 1;
        Tag { client: self.client, number: self.number }
    }

    /// A simple query of some statements.
    fn query(&mut self, out: &mut Vec<u8>, dice: &mut Dice) {
        let statements = dice.weighted(&[(1, 0), (14, 1), (2, 2), (2, 3)]);
        let mut text = String::new();
        let mut way = Way::Simple;
        for _ in 0..statements {
            let verb = self.verb(way, dice);
            if let Verb::Chain | Verb::Commit | Verb::Rollback = verb {
                way = Way::SimpleBehindEnd;
            }
            let tag = self.tag();
            let resets = matches!(verb, Verb::Reset { .. });
            text.push_str(&Statement { tag, verb }.to_string());
            text.push(';');
            if resets {
                // What the client has asked for at its login is put back behind the string.
                break;
            }
        }
        let (is_long, bytes) = (dice.chance(self.habits.long), dice.below(130_000) as usize);
        if is_long {
            // Longer than what pgweir waits for in whole.
            self.pinned = true;
            self.chained |= statements == 0;
            text.push_str(&format!("/*{}*/", "x".repeat(bytes)));
        }
        self.unnamed = false;
        frontend::write_query(out, text.as_bytes());
    }

    /// Whether it may take back all settings now, in a query of its own between transactions.
    fn may_reset(&self) -> bool {
        self.is_between()
    }

    fn is_between(&self) -> bool {
        self.block.is_none() && !self.batch
    }

    fn reset(&mut self, out: &mut Vec<u8>, dice: &mut Dice) {
        let all = [Verb::Reset { name: None }, Verb::Discard(Kind::All)];
        let statement = Statement { tag: self.tag(), verb: dice.pick(&all).clone() };
        self.unnamed = false;
        self.named = Default::default();
        frontend::write_query(out, statement.to_string().as_bytes());
    }

    /// Any statement but a COPY.
    fn verb(&mut self, way: Way, dice: &mut Dice) -> Verb {
        match &mut self.block {
            Some(0) => {
                let [chain, commit] = [dice.chance(0.05), dice.chance(0.6)];
                self.block = chain.then(|| dice.below(4) as u32);
                self.chained |= chain;
                return match (chain, commit) {
                    (true, _) => Verb::Chain,
                    (false, true) => Verb::Commit,
                    (false, false) => Verb::Rollback,
                };
            }
            Some(left) => {
                *left -= 1;
                if dice.chance(0.15) {
                    return in_block(dice);
                }
            }
            // Where transactions are not allowed they are tried seldom.
            None if dice.chance(if self.mode == PoolMode::Statement { 0.005 } else { 0.25 }) => {
                self.block = Some(dice.below(4) as u32);
                self.begun = true;
                return Verb::Begin;
            }
            None => {}
        }
        if self.habits.gossips && dice.chance(0.4) {
            let channel = pick(dice, &["a", "b"]);
            let listens = dice.chance(0.3);
            self.pinned |= listens;
            return if listens { Verb::Listen { channel } } else { Verb::Notify { channel } };
        }
        if self.habits.alters && dice.chance(0.5) {
            if dice.chance(0.15) {
                self.pinned = true;
                return Verb::Alter;
            }
            return Verb::Shaped(dice.below(3) as u32);
        }
        if self.habits.contends && dice.chance(0.4) {
            return Verb::Lock { key: dice.below(2) as u32, session: false };
        }
        // In a transaction that has failed pgweir cannot give a statement the name that stands
        // behind its end.
        if self.habits.names && dice.chance(0.03) && way != Way::SimpleBehindEnd {
            return self.by_sql(way, dice);
        }
        if self.habits.sets && dice.chance(0.2) {
            return setting(way, dice);
        }
        if self.habits.stateful && dice.chance(0.15) {
            self.pinned = true;
            return stateful(way, dice);
        }
        if self.habits.vast && dice.chance(0.1) {
            // It is more than anybody would wait for.
            self.hasty = dice.chance(0.7);
            return Verb::Big(1_500_000);
        }
        let common = [(30, 0), (12, 1), (3, 2), (2, 3), (2, 4), (2, 5), (2, 6), (2, 7)];
        let rare = [(1, 8), (1, 9), (2, 10), (1, 11), (1, 12), (1, 13)];
        match dice.weighted(&[&common[..], &rare].concat()) {
            0 => Verb::Rows(dice.weighted(&[(1, 0), (8, 1), (4, 3), (1, 40)])),
            1 => Verb::Write,
            2 => {
                let names = ["TimeZone", "application_name", VERSION];
                Verb::Show { name: (*dice.pick(&names)).to_owned() }
            }
            3 => Verb::Sleep(dice.magnitude(1_000) as u32),
            4 if self.habits.bulk => Verb::Big(dice.between(40_000..=140_000) as u32),
            4 => Verb::Big(dice.magnitude(100_000) as u32),
            5 => Verb::Fail,
            6 => Verb::Notice(dice.below(3) as u32),
            7 => Verb::Defer,
            8 => Verb::Fill,
            9 => Verb::CopyOut(dice.below(6) as u32),
            10 => Verb::Lock { key: dice.below(3) as u32, session: false },
            11 if dice.chance(0.3) => Verb::LastValue,
            11 => Verb::Sequence,
            12 => {
                // Until it is known what else that has made.
                self.pinned = true;
                Verb::Create
            }
            _ => Verb::Notify { channel: pick(dice, &["a", "b"]) },
        }
    }

    /// SQL that removes, or runs, what was prepared by the protocol.
    fn by_sql(&mut self, way: Way, dice: &mut Dice) -> Verb {
        let index = dice.below(3) as usize;
        let name = STATEMENT_NAMES[index].to_owned();
        if way != Way::Extended && dice.chance(0.3) {
            // From now on its names are those of a session.
            self.pinned = true;
            return Verb::Execute { name };
        }
        self.named[index] = false;
        Verb::Deallocate { name }
    }

    /// A part of an extended batch, as a rule with its end.
    fn batch_goes_on(&mut self, out: &mut Vec<u8>, dice: &mut Dice) {
        for _ in 0..dice.weighted(&[(1, 0), (10, 1), (4, 2), (2, 4)]) {
            self.extended(out, dice);
        }
        if dice.chance(0.005) {
            // A string that does not end: refused, but not the end of the session. What it is
            // nobody can tell, so the server is kept.
            self.pinned = true;
            out.extend_from_slice(b"P\0\0\0\x07abc");
        }
        if dice.chance(if self.hasty { 0.5 } else { 0.9 }) {
            out.extend_from_slice(&frontend::SYNC);
            self.unnamed &= !std::mem::take(&mut self.passed_over);
            self.batch = false;
        } else {
            if dice.chance(0.7) {
                out.extend_from_slice(&frontend::FLUSH);
            }
            self.presses = dice.chance(self.habits.abandons);
            self.batch = true;
        }
    }

    /// One statement by the extended protocol: what of Parse, Describe, Bind, Execute and Close
    /// it takes.
    fn extended(&mut self, out: &mut Vec<u8>, dice: &mut Dice) {
        let index = (self.habits.names && dice.chance(0.6)).then(|| dice.below(3) as usize);
        let (name, known) = match index {
            Some(index) => (STATEMENT_NAMES[index].as_bytes(), self.named[index]),
            None => (&b""[..], self.unnamed),
        };
        self.pinned |= index.is_some();
        let mut known = known;
        if let Some(index) = index.filter(|_| known && self.renews) {
            self.renews = dice.chance(0.5);
            frontend::write_close(out, Target::Statement(name));
            self.named[index] = false;
            known = false;
        }
        let portal: &[u8] = if dice.chance(0.2) { b"p" } else { b"" };
        // To make a name again that exists is an error, and wanted now and then.
        if !known || dice.chance(if name.is_empty() { 0.5 } else { 0.1 }) {
            let verb = self.verb(Way::Extended, dice);
            if verb.is_exit() {
                return self.exit(verb, out);
            }
            match index {
                Some(index) => self.named[index] = true,
                None => self.unnamed = true,
            }
            let common = dice.chance(0.4).then(|| dice.below(4) as u32);
            let text = match common.filter(|_| index.is_some() && verb == Verb::Rows(1)) {
                Some(number) => common_text(number),
                None => Statement { tag: self.tag(), verb }.to_string(),
            };
            let (is_empty, is_long) = (dice.chance(0.03), dice.chance(self.habits.long / 2.0));
            let is_wrong = dice.chance(0.03);
            let bytes = dice.magnitude(60_000) as usize;
            let text = match (is_empty, is_long) {
                (true, _) => String::new(),
                // No such statement is made, and it may be used all the same.
                (false, false) if is_wrong => format!("{text} ?"),
                (false, false) => text,
                // Longer than what pgweir keeps to make it again, so it keeps its server.
                (false, true) => {
                    self.pinned = true;
                    format!("{text}/*{}*/", "x".repeat(bytes))
                }
            };
            frontend::write_parse(out, name, text.as_bytes(), &[25]);
        }
        if dice.chance(0.2) {
            frontend::write_describe(out, Target::Statement(name));
        }
        if dice.chance(0.05) {
            // Only made, and used in another batch perhaps.
            return;
        }
        let execution = self.tag().to_string();
        frontend::write_bind(out, portal, name, &[Some(execution.as_bytes())]);
        if dice.chance(0.4) {
            frontend::write_describe(out, Target::Portal(portal));
        }
        let limit = if dice.chance(0.2) { dice.between(1..=4) as u32 } else { 0 };
        frontend::write_execute(out, portal, limit);
        if limit > 0 && dice.chance(0.5) {
            frontend::write_execute(out, portal, dice.below(3) as u32);
        }
        if dice.chance(0.1) {
            frontend::write_close(out, Target::Portal(portal));
        }
        if dice.chance(0.05) {
            frontend::write_close(out, Target::Statement(name));
            match index {
                Some(index) => self.named[index] = false,
                None => self.unnamed = false,
            }
        }
        if dice.chance(0.05) {
            out.extend_from_slice(&frontend::FLUSH);
        }
    }

    /// The end of a transaction by the extended protocol. In one that has failed PostgreSQL takes
    /// no parameters, and the tag is that of the text: so it is carried out once, and has no portal
    /// of which nobody knows whether it was lost with its transaction.
    fn exit(&mut self, verb: Verb, out: &mut Vec<u8>) {
        let text = Statement { tag: self.tag(), verb }.to_string();
        self.unnamed = false;
        frontend::write_parse(out, b"", text.as_bytes(), &[]);
        frontend::write_bind(out, b"", b"", &[]);
        frontend::write_execute(out, b"", 0);
    }

    /// A fast-path function call.
    fn call(&mut self, out: &mut Vec<u8>, dice: &mut Dice) {
        self.pinned = true;
        let tag = self.tag().to_string();
        let oid: u32 = if dice.chance(0.1) { 0 } else { 42 };
        put(out, b'F', |out| {
            out.extend_from_slice(&oid.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 1]);
            out.extend_from_slice(&(tag.len() as u32).to_be_bytes());
            out.extend_from_slice(tag.as_bytes());
            out.extend_from_slice(&[0, 0]);
        });
    }
}

/// A farewell where none is due.
fn abandon() -> Vec<u8> {
    frontend::TERMINATE.to_vec()
}

/// Bytes that no frontend sends.
pub(crate) fn hostile(dice: &mut Dice) -> Vec<u8> {
    match dice.below(5) {
        // A type that there is not, and one that belongs to a login.
        0 => b"!\0\0\0\x04".to_vec(),
        1 => b"p\0\0\0\x05\0".to_vec(),
        // Lengths below four, and above the limit of a Sync.
        2 => b"Q\0\0\0\x03".to_vec(),
        3 => b"P\xff\xff\xff\xff".to_vec(),
        _ => b"S\0\x01\0\0".to_vec(),
    }
}

#[cfg(test)]
mod tests;

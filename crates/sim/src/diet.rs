//! What is taken away from a simulation, as data: a seed and a diet are a simulation again.
//!
//! Each [`Item`] is a name and numbers, as in `split`, `seat.3` or `unit.3.0.4`, and a diet is a
//! list of them: `split,seat.0-3,unit.4.0.2-5`. All that a seed gives is drawn as ever, and then
//! what the diet says is left out, so that the rest stays what it was as far as it can.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::client::Habit;
use crate::configuration::Configuration;
use crate::faults::Faults;

/// What a simulation goes without. See the module's documentation for how it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diet {
    without: BTreeSet<Item>,
    /// When everything is healed, in milliseconds, if that is to be sooner than it would be.
    pub storm_ms: Option<u64>,
}

/// Something that a simulation can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// A fault, by its name.
    Fault(&'static str),
    /// The how-manieth time that it strikes, for one that comes so often in a minute.
    Blow(&'static str, u32),
    /// A limit or a timeout, by its name in pgweir's configuration, or how its pools change.
    Setting(&'static str),
    /// Something that clients do.
    Habit(Habit),
    /// That pgweir ends while clients are there.
    Ending,
    /// A worker of pgweir's, but not the first.
    Worker(u32),
    /// A server, but not the first. Whoever would be served there is served by another.
    Server(u32),
    /// A pool. Clients that would ask for it ask for another one. If all are named the first stays.
    Pool(u32),
    /// A seat, with all clients that would sit on it.
    Seat(u32),
    Client(Sitting),
    /// A unit of a client's script, in their order.
    Unit(Sitting, u32),
    /// A client of the console.
    Admin(u32),
}

/// Which client: the how-manieth on which seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sitting {
    pub(crate) seat: u32,
    pub(crate) turn: u32,
}

const ENDING: &str = "ending";
const WORKER: &str = "worker";
const SERVER: &str = "server";
const POOL: &str = "pool";
const SEAT: &str = "seat";
const CLIENT: &str = "client";
const UNIT: &str = "unit";
const ADMIN: &str = "admin";

impl Diet {
    pub(crate) fn lacks(&self, item: Item) -> bool {
        self.without.contains(&item)
    }

    /// The same without these, too.
    pub(crate) fn and(&self, items: &[Item]) -> Self {
        let mut diet = self.clone();
        diet.without.extend(items);
        diet
    }

    /// Units of a client's script that it does not send.
    pub(crate) fn units_of(&self, client: Sitting) -> BTreeSet<u32> {
        let units = self.without.range(Item::Unit(client, 0)..=Item::Unit(client, u32::MAX));
        let number = |item: &Item| match item {
            Item::Unit(_, unit) => Some(*unit),
            Item::Fault(_)
            | Item::Blow(..)
            | Item::Setting(_)
            | Item::Habit(_)
            | Item::Ending
            | Item::Worker(_)
            | Item::Server(_)
            | Item::Pool(_)
            | Item::Seat(_)
            | Item::Client(_)
            | Item::Admin(_) => None,
        };
        units.filter_map(number).collect()
    }

    /// The faults that are left of these.
    pub(crate) fn faults(&self, faults: Faults) -> Faults {
        let taken = Faults::NAMES.iter().filter(|name| self.lacks(Item::Fault(name)));
        taken.fold(faults, |faults, name| faults.without(name))
    }

    /// Takes the limits and timeouts away that it goes without.
    pub(crate) fn reduce(&self, configuration: &mut Configuration) {
        for name in Configuration::optional() {
            if self.lacks(Item::Setting(name)) {
                configuration.take_away(name);
            }
        }
    }

    /// The same, said in fewer words: what is gone anyway needs no mention.
    pub(crate) fn simplified(mut self) -> Self {
        let all = self.clone();
        self.without.retain(|item| match item {
            Item::Blow(fault, _) => !all.lacks(Item::Fault(fault)),
            Item::Client(client) => !all.lacks(Item::Seat(client.seat)),
            Item::Unit(client, _) => {
                !all.lacks(Item::Seat(client.seat)) && !all.lacks(Item::Client(*client))
            }
            Item::Fault(_)
            | Item::Setting(_)
            | Item::Habit(_)
            | Item::Ending
            | Item::Worker(_)
            | Item::Server(_)
            | Item::Pool(_)
            | Item::Seat(_)
            | Item::Admin(_) => true,
        });
        self
    }

    /// What runs this seed with it.
    pub(crate) fn command(&self, seed: u64) -> String {
        let mut command = format!("make sim SEED={seed}");
        if !self.without.is_empty() {
            command.push_str(&format!(" WITHOUT={self}"));
        }
        if let Some(ms) = self.storm_ms {
            command.push_str(&format!(" STORM_MS={ms}"));
        }
        command
    }
}

impl Item {
    /// How it is written, the numbers aside.
    fn name(self) -> &'static str {
        match self {
            Self::Fault(name) | Self::Blow(name, _) | Self::Setting(name) => name,
            Self::Habit(habit) => habit.name(),
            Self::Ending => ENDING,
            Self::Worker(_) => WORKER,
            Self::Server(_) => SERVER,
            Self::Pool(_) => POOL,
            Self::Seat(_) => SEAT,
            Self::Client(_) => CLIENT,
            Self::Unit(..) => UNIT,
            Self::Admin(_) => ADMIN,
        }
    }

    fn numbers(self) -> Vec<u32> {
        match self {
            Self::Fault(_) | Self::Setting(_) | Self::Habit(_) | Self::Ending => Vec::new(),
            Self::Blow(_, number)
            | Self::Worker(number)
            | Self::Server(number)
            | Self::Pool(number)
            | Self::Seat(number)
            | Self::Admin(number) => vec![number],
            Self::Client(Sitting { seat, turn }) => vec![seat, turn],
            Self::Unit(Sitting { seat, turn }, unit) => vec![seat, turn, unit],
        }
    }

    fn parse(name: &str, numbers: &[u32]) -> Option<Self> {
        let fault = Faults::NAMES.iter().copied().find(|known| *known == name);
        match (name, numbers) {
            (ENDING, []) => Some(Self::Ending),
            (WORKER, [number]) => Some(Self::Worker(*number)),
            (SERVER, [number]) => Some(Self::Server(*number)),
            (POOL, [number]) => Some(Self::Pool(*number)),
            (SEAT, [number]) => Some(Self::Seat(*number)),
            (ADMIN, [number]) => Some(Self::Admin(*number)),
            (CLIENT, [seat, turn]) => Some(Self::Client(Sitting { seat: *seat, turn: *turn })),
            (UNIT, [seat, turn, unit]) => {
                Some(Self::Unit(Sitting { seat: *seat, turn: *turn }, *unit))
            }
            (_, [number]) => fault.map(|name| Self::Blow(name, *number)),
            (_, []) => {
                let setting = Configuration::optional().find(|known| *known == name);
                let habit = Habit::ALL.into_iter().find(|habit| habit.name() == name);
                let named = fault.map(Self::Fault).or_else(|| setting.map(Self::Setting));
                named.or_else(|| habit.map(Self::Habit))
            }
            (_, _) => None,
        }
    }
}

impl fmt::Display for Diet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = self.without.iter().map(|item| (item.name(), item.numbers())).peekable();
        let mut separator = "";
        while let Some((name, numbers)) = items.next() {
            f.write_str(separator)?;
            separator = ",";
            f.write_str(name)?;
            numbers.iter().try_for_each(|number| write!(f, ".{number}"))?;
            // Those that follow, up to the last.
            let Some((first, before)) = numbers.split_last() else { continue };
            let mut last = *first;
            while let Some((next_name, next)) = items.peek()
                && *next_name == name
                && next.split_last() == Some((&(last + 1), before))
            {
                last += 1;
                items.next();
            }
            if last > *first {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Diet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut diet = Self::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let items = parse(word);
            diet.without.extend(items.ok_or_else(|| format!("nothing is called {word:?}"))?);
        }
        Ok(diet)
    }
}

/// A name and numbers, the last of which may be a range of them.
fn parse(word: &str) -> Option<Vec<Item>> {
    let mut parts = word.split('.');
    let name = parts.next()?;
    let mut numbers: Vec<&str> = parts.collect();
    let Some(last) = numbers.pop() else { return Some(vec![Item::parse(name, &[])?]) };
    let before: Result<Vec<u32>, _> = numbers.into_iter().map(str::parse).collect();
    let before = before.ok()?;
    let (first, last) = last.split_once('-').unwrap_or((last, last));
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let item = |last| Item::parse(name, &[&before[..], &[last]].concat());
    (first..=last).map(item).collect()
}

#[cfg(test)]
mod tests;

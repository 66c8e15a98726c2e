//! What there is in a simulation that could be taken away from it.

use super::World;
use crate::client::Habit;
use crate::configuration::Configuration;
use crate::diet::{Item, Sitting};
use crate::topology::Ending;

impl World {
    /// Everything that is there so far, in groups of what is alike: large things first.
    pub(crate) fn menu(&self) -> Vec<Vec<Item>> {
        let drawn = self.topology.drawn();
        let others = |all: u32, item: fn(u32) -> Item| (1..all).map(item);
        let parts = others(drawn.workers, Item::Worker).chain(others(drawn.clusters, Item::Server));
        let pools = (0..drawn.pools).map(Item::Pool);
        let ending = (self.topology.ending != Ending::None).then_some(Item::Ending);
        let groups = vec![
            (0..self.topology.seats as u32).map(Item::Seat).collect(),
            (0..self.admins()).map(Item::Admin).collect(),
            self.site.roll.keys().copied().map(Item::Client).collect(),
            self.faults(),
            self.strikes.iter().map(|its| Item::Blow(its.blow.fault(), its.number)).collect(),
            parts.chain(pools).chain(ending).collect(),
            self.settings(),
            Habit::ALL.map(Item::Habit).to_vec(),
            self.units(),
        ];
        let is_there = |item: &Item| !self.site.diet.lacks(*item);
        let left = |group: Vec<Item>| group.into_iter().filter(is_there).collect();
        groups.into_iter().map(left).collect()
    }

    /// Those that are on, or were before everything was healed.
    fn faults(&self) -> Vec<Item> {
        let on = self.drawn_faults.all().filter(|(_, often)| *often > 0.0);
        on.map(|(name, _)| Item::Fault(name)).collect()
    }

    /// Limits and timeouts that some configuration has.
    fn settings(&self) -> Vec<Item> {
        let is_there = |name: &&str| self.site.rules.all().any(|its| its.has(name));
        Configuration::optional().filter(is_there).map(Item::Setting).collect()
    }

    /// The units of all scripts.
    fn units(&self) -> Vec<Item> {
        let roll = self.site.roll.iter();
        let units = |(client, units): (&Sitting, &u32)| {
            let client = *client;
            (0..*units).map(move |unit| Item::Unit(client, unit))
        };
        roll.flat_map(units).collect()
    }
}

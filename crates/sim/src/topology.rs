use std::collections::BTreeSet;

use pgweir_config::PoolMode;

use crate::client::{Habit, PoolFacts};
use crate::configuration::{Configuration, Limits, Pool, Times};
use crate::diet::{Diet, Item};
use crate::random::{Dice, Part};

/// What a simulation is made of.
pub(crate) struct Topology {
    /// What clients ask for.
    pub(crate) pools: Vec<PoolFacts>,
    /// Servers, each with a port of its own: [`PORT`] and those above.
    pub(crate) clusters: usize,
    /// Of pgweir.
    pub(crate) workers: usize,
    /// Clients at a time.
    pub(crate) seats: usize,
    /// There are many of them, and most ask for the same pool.
    crowded: bool,
    /// Clients in all that sit on one seat one after the other.
    pub(crate) turns: u64,
    pub(crate) ending: Ending,
    /// What most clients do.
    pub(crate) customs: Vec<Habit>,
    /// Each configuration has times of its own for connections, too.
    restless: bool,
    connections: ConnectionTimes,
    reset_query: Option<&'static str>,
    asks_for_room: bool,
    limited: Limited,
    /// Pools may be missing in a configuration.
    inconstant: bool,
    /// They may log in to servers as other users.
    renamed: bool,
    drafts: Vec<Draft>,
    drawn: Drawn,
    diet: Diet,
    /// Servers are shared.
    pipelines: bool,
    /// Pools refuse kinds of what is left on a server, or let it be there.
    refuses: bool,
    ignores: bool,
}

/// How many there were before some were taken away.
#[derive(Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) clusters: u32,
    pub(crate) workers: u32,
    pub(crate) pools: u32,
}

/// A pool of the configuration.
#[derive(Clone, Copy)]
struct Draft {
    /// Its number before some were taken away.
    number: u64,
    /// Its clients wait only so long for a server, in some configuration at least.
    waits: bool,
}

/// How pgweir ends while clients are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It does not.
    None,
    /// It asks its clients to leave, and may tell them after so many microseconds that they must.
    Drain { bound: Option<u64> },
    /// At once.
    Now,
}

/// What has limits in this simulation: a limit that is always there hides what happens without it.
struct Limited {
    clients: bool,
    silence: bool,
    statements: bool,
    transactions: bool,
    logins: bool,
}

/// How long connections may take to be made, and may be kept, in microseconds.
#[derive(Clone, Copy)]
struct ConnectionTimes {
    connect: u64,
    idle: u64,
    lifetime: Option<u64>,
}

impl ConnectionTimes {
    fn draw(dice: &mut Dice) -> Self {
        let connect = *dice.pick(&[500_000, 2_000_000, 5_000_000]);
        let idle = *dice.pick(&[300_000, 5_000_000, 60_000_000]);
        let lifetime = *dice.pick(&[None, None, Some(400_000), Some(10_000_000)]);
        Self { connect, idle, lifetime }
    }
}

/// The port of the first fake server.
pub(crate) const PORT: u16 = 5_432;

impl Topology {
    /// What a seed gives, without what is taken away from it.
    pub(crate) fn draw(dice: &mut Dice, diet: &Diet) -> Self {
        let mut topology = Self::draw_all(dice);
        let left = |all: u32, item: fn(u32) -> Item| {
            let others = (1..all).filter(|number| !diet.lacks(item(*number)));
            1 + others.count()
        };
        topology.clusters = left(topology.drawn.clusters, Item::Server);
        topology.workers = left(topology.drawn.workers, Item::Worker);
        if diet.lacks(Item::Ending) {
            topology.ending = Ending::None;
        }
        topology.diet = diet.clone();
        topology.take_pools_away();
        topology
    }

    fn draw_all(dice: &mut Dice) -> Self {
        let clusters = dice.between(1..=2) as usize;
        let named = dice.between(1..=3) as usize;
        let users = dice.between(1..=2);
        let mut pools = Vec::new();
        for draft in 0..named {
            let user = *dice.pick(&["app", "web"][..users as usize]);
            pools.push(PoolFacts::draw(dice, format!("db{draft}"), user, draft));
        }
        if dice.chance(0.25) {
            let wild = PoolFacts::draw(dice, "*".to_owned(), "app", named);
            for number in 0..dice.between(1..=3) {
                pools.push(PoolFacts { database: format!("wild{number}"), ..wild.clone() });
            }
        }
        let crowded = dice.chance(0.06);
        // Where the databases of a missing pool would not be anybody else's.
        let inconstant = dice.chance(0.3) && pools.len() == named;
        // What one worker does must stay well covered.
        let workers = *dice.pick(&[1, 1, 2, 3]);
        let drawn =
            Drawn { clusters: clusters as u32, workers: workers as u32, pools: pools.len() as u32 };
        let mut topology = Self {
            inconstant,
            clusters,
            workers,
            seats: dice.between(if crowded { 18..=24 } else { 1..=12 }) as usize,
            crowded,
            turns: dice.between(1..=4),
            ending: Ending::draw(dice),
            customs: Habit::ALL
                .into_iter()
                .filter(|habit| *habit != Habit::Shares && dice.chance(0.1))
                .collect(),
            restless: dice.chance(0.3),
            connections: ConnectionTimes::draw(dice),
            // What the fourth one does its text does not show, and the last one does nothing.
            reset_query: *dice.pick(&[
                None,
                None,
                None,
                None,
                Some(""),
                Some(""),
                Some("/* all */ DISCARD ALL"),
                Some("/* all */ DISCARD ALL"),
                Some("DISCARD NOTHING"),
            ]),
            asks_for_room: dice.chance(0.3),
            renamed: dice.chance(0.25),
            limited: Limited {
                clients: dice.chance(0.3),
                silence: dice.chance(0.25),
                statements: dice.chance(0.2),
                transactions: dice.chance(0.2),
                logins: dice.chance(0.2),
            },
            drafts: (0..=named as u64)
                .map(|number| Draft { number, waits: dice.chance(0.4) })
                .collect(),
            pools,
            drawn,
            diet: Diet::default(),
            pipelines: dice.chance(0.4),
            refuses: dice.chance(0.2),
            ignores: dice.chance(0.1),
        };
        if topology.pipelines && dice.chance(0.5) {
            topology.customs.push(Habit::Shares);
        }
        topology
    }

    /// How many there were before some were taken away.
    pub(crate) fn drawn(&self) -> Drawn {
        self.drawn
    }

    /// Which pool a client asks for.
    pub(crate) fn draw_pool(&self, dice: &mut Dice) -> usize {
        let wanted = dice.below(u64::from(self.drawn.pools)) as u32;
        let wanted = if dice.chance(0.9) && self.crowded { 0 } else { wanted };
        let left = self.pools_left();
        // Who would ask for one that was taken away asks for another one.
        left.iter().position(|pool| *pool == wanted).unwrap_or(wanted as usize % left.len())
    }

    /// Those of the pools that were drawn that are left: the first one if none would be.
    fn pools_left(&self) -> Vec<u32> {
        let is_left = |pool: &u32| !self.diet.lacks(Item::Pool(*pool));
        let left: Vec<u32> = (0..self.drawn.pools).filter(is_left).collect();
        if left.is_empty() { vec![0] } else { left }
    }

    fn take_pools_away(&mut self) {
        let left = self.pools_left().into_iter().map(|pool| self.pools[pool as usize].clone());
        self.pools = left.collect();
        let drafts: BTreeSet<usize> = self.pools.iter().map(|pool| pool.draft).collect();
        for pool in &mut self.pools {
            pool.draft = drafts.range(..pool.draft).count();
        }
        self.drafts = drafts.into_iter().map(|draft| self.drafts[draft]).collect();
    }

    /// Whether servers are told a statement_timeout, in some configuration at least.
    pub(crate) fn limits_statements(&self) -> bool {
        self.limited.statements
    }

    /// Whether pools may let be what somebody has left on a server.
    pub(crate) fn ignores(&self) -> bool {
        self.ignores
    }

    /// Whether servers are shared, in some configuration at least.
    pub(crate) fn pipelines(&self) -> bool {
        self.pipelines
    }

    /// Where they are, by so many clients at most: each may have a unit on one and the same.
    pub(crate) fn sharers(&self) -> Option<u32> {
        self.pipelines.then_some(self.seats as u32)
    }

    /// Whether pools have several users at servers, as configurations have it.
    pub(crate) fn is_renamed(&self) -> bool {
        self.renamed
    }

    /// A configuration for it: sizes, limits and who is served where are drawn each time.
    pub(crate) fn configuration(&self, dice: &mut Dice) -> Configuration {
        let rarely = |dice: &mut Dice, on: bool, most: u64| {
            (on && dice.chance(0.3)).then(|| dice.between(1..=most))
        };
        let crowded = self.limited.clients;
        let limits = Limits {
            server: rarely(dice, true, 4),
            database: rarely(dice, true, 4),
            user: rarely(dice, true, 4),
            parallelism: *dice.pick(&[1, 2, 64]),
            clients: rarely(dice, crowded, 8),
            logins: rarely(dice, crowded, 3),
            database_clients: rarely(dice, crowded, 5),
            user_clients: rarely(dice, crowded, 6),
        };
        let time = |dice: &mut Dice, on: bool, choices: &[u64]| {
            let ms = *dice.pick(choices);
            (on && ms > 0).then_some(ms * 1_000)
        };
        let limited = &self.limited;
        let other = self.restless.then(|| ConnectionTimes::draw(dice));
        let ConnectionTimes { connect, idle, lifetime } = other.unwrap_or(self.connections);
        let times = Times {
            connect,
            idle: Some(idle),
            lifetime,
            statement: time(dice, limited.statements, &[0, 300, 300, 1_000]),
            transaction: time(dice, limited.transactions, &[0, 200, 200, 2_000]),
            silence_in_block: time(dice, limited.silence, &[0, 20, 200, 2_000]),
            silence: time(dice, limited.silence, &[0, 20, 200, 2_000]),
            login: time(dice, limited.logins, &[0, 300, 1_500]),
        };
        let (reserve, reserve_ms) = (*dice.pick(&[0, 0, 2]), *dice.pick(&[0, 100, 1_000]));
        let seed = dice.below(u64::MAX);
        let pools = self.drafts().map(|facts| {
            let mut dice = Dice::of(seed, Part::Pool, self.drafts[facts.draft].number);
            self.pool(facts, &mut dice)
        });
        let pools = pools.collect();
        let asks = dice.chance(0.8) && self.asks_for_room;
        let instances = *dice.pick(&[1, 1, 1, 2]);
        let instances = asks.then_some(instances);
        let mut configuration =
            Configuration { limits, times, reserve, reserve_ms, instances, pools };
        self.diet.reduce(&mut configuration);
        configuration
    }

    /// One for the end: nothing is kept that nobody needs. What is idle goes, or what is old.
    pub(crate) fn at_rest(&self, dice: &mut Dice) -> Configuration {
        let mut configuration = self.configuration(dice);
        configuration.pools.iter_mut().for_each(|pool| pool.least = 0);
        if dice.chance(0.3) {
            configuration.times.lifetime = configuration.times.idle.take();
        }
        configuration
    }

    /// One client of each pool that the configuration has.
    fn drafts(&self) -> impl Iterator<Item = &PoolFacts> {
        let first = |draft| self.pools.iter().find(move |facts| facts.draft == draft);
        (0..=self.pools.len()).filter_map(first)
    }

    fn pool(&self, facts: &PoolFacts, dice: &mut Dice) -> Pool {
        let wild = facts.database.starts_with("wild");
        let waits = self.drafts[facts.draft].waits;
        let wait_us = *dice.pick(&[300_000, 3_000_000]);
        let server_user = *dice.pick(&[None, None, Some(1), Some(2)]);
        let server_user = server_user.map(|number| Pool::other_user(&facts.user, number));
        let pool = Pool {
            // A configuration has at least one.
            here: dice.chance(0.7) || facts.draft == 0 || !self.inconstant,
            database: if wild { "*".to_owned() } else { facts.database.clone() },
            user: facts.user.clone(),
            server_user: server_user.filter(|_| self.renamed),
            mode: if dice.chance(0.5) && facts.fickle { PoolMode::Transaction } else { facts.mode },
            usual: facts.mode,
            wait: waits.then_some(wait_us),
            size: dice.between(1..=4),
            least: dice.below(2),
            cluster: dice.below(self.clusters as u64) as usize,
            reset_query: self.reset_query,
            prepared: *dice.pick(&[None, None, Some(0), Some(1), Some(2), Some(3)]),
            pinned: None,
            refuses: "",
            ignores: "",
            shared: None,
        };
        let shared = *dice.pick(&[None, Some("1x1"), Some("1x3"), Some("2x2"), Some("auto")]);
        let refuses = *dice.pick(&REFUSED);
        // Of two servers one may be kept, of four two.
        let even = pool.size.is_multiple_of(2);
        Pool {
            pinned: even.then_some(pool.size / 2),
            shared: shared.filter(|_| self.pipelines),
            refuses: if self.refuses { refuses } else { "" },
            ignores: if self.ignores { IGNORED } else { "" },
            ..pool
        }
    }
}

/// What pools refuse where they refuse something.
const REFUSED: [&str; 4] =
    ["temp table, hold cursor", "prepared statement", "advisory lock, random seed", "listen"];

/// What they let be where they do: whoever comes next cannot tell.
const IGNORED: &str = "library";

impl Ending {
    fn draw(dice: &mut Dice) -> Self {
        let bound = dice.magnitude(5_000_000);
        dice.weighted(&[
            (85, Self::None),
            (5, Self::Drain { bound: None }),
            (6, Self::Drain { bound: Some(bound) }),
            (4, Self::Now),
        ])
    }
}

#[cfg(test)]
mod tests;

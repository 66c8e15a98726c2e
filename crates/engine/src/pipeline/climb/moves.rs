//! What a climb can try: one step of servers or of depth.

use std::time::Duration;

use super::Chance;
use crate::pipeline::Depths;

/// Deeper is nothing tried: whoever stands behind so many waits too long, should they all be slow.
const DEEPEST: usize = 64;

/// With another number of servers slices are no shorter than that, and begin so late. Measured with
/// 16 clients that select, two processors: a quarter of a second after one server is shared in
/// place of three there are still as many transactions as before, and then half as many again; the
/// other way they become fewer at once.
const OF_SERVERS: Duration = Duration::from_millis(180);
const SETTLING: Duration = Duration::from_millis(190);

/// Where the rate says nothing, so much less time is better.
const SOONER: f64 = 0.95;

/// What can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    MoreServers,
    FewerServers,
    Deeper,
    Shallower,
}

impl Move {
    pub(super) const ALL: [Self; 4] =
        [Self::MoreServers, Self::FewerServers, Self::Deeper, Self::Shallower];

    pub(super) fn next(self) -> Self {
        match self {
            Self::MoreServers => Self::FewerServers,
            Self::FewerServers => Self::Deeper,
            Self::Deeper => Self::Shallower,
            Self::Shallower => Self::MoreServers,
        }
    }

    fn is_of_servers(self) -> bool {
        match self {
            Self::MoreServers | Self::FewerServers => true,
            Self::Deeper | Self::Shallower => false,
        }
    }

    /// So long it takes before what it is worth shows.
    pub(super) fn settling(self) -> Duration {
        if self.is_of_servers() { SETTLING } else { Duration::ZERO }
    }

    /// So long each of the two holds where this is tried.
    pub(super) fn length(self, chance: Chance) -> Duration {
        if self.is_of_servers() { chance.slice.max(OF_SERVERS) } else { chance.slice }
    }

    /// So many times as many transactions are better, where one takes so many times as long. What
    /// is as good with less is better too: less of the servers, or of the patience of those who
    /// stand behind others.
    pub(super) fn wants(self, time: f64, chance: Chance) -> f64 {
        let is_less = match self {
            Self::FewerServers | Self::Shallower => true,
            Self::MoreServers | Self::Deeper => false,
        };
        if time <= SOONER {
            return 1.0 / chance.better;
        }
        if is_less && time <= 1.0 / SOONER { 1.0 } else { chance.better }
    }

    /// Where it leads, if anywhere.
    pub(super) fn from(self, at: Depths, servers: usize) -> Option<Depths> {
        let hot = at.hot.min(servers).max(1);
        let there = match self {
            Self::MoreServers => Depths { hot: more(hot).min(servers), ..at },
            Self::FewerServers => Depths { hot: less(hot), ..at },
            Self::Deeper => Depths { hot, depth: (at.depth * 2).min(DEEPEST) },
            Self::Shallower => Depths { hot, depth: (at.depth / 2).max(1) },
        };
        (there != Depths { hot, ..at }).then_some(there)
    }
}

/// The next number of servers worth a try. Steps are so wide that chance hides no difference: of
/// one, two and three servers two are hardly ever the best.
fn more(hot: usize) -> usize {
    if hot == 1 { 3 } else { hot * 2 }
}

fn less(hot: usize) -> usize {
    (hot / 2).max(1)
}

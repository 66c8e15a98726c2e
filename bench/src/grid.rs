//! The grid: fixed pairs of `pipelining`, beside which what pgweir finds by itself is measured.

use std::fmt;
use std::str::FromStr;

/// Shared servers of a full grid.
const SERVERS: [u8; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Units on each server of a full grid.
const DEPTHS: [u8; 6] = [1, 2, 4, 8, 16, 32];

/// Those that have been best somewhere, and one on each side of them.
pub(crate) const THIN: [Pair; 8] = [
    Pair::of(1, 8),
    Pair::of(1, 16),
    Pair::of(1, 32),
    Pair::of(2, 16),
    Pair::of(3, 16),
    Pair::of(4, 8),
    Pair::of(8, 4),
    Pair::of(16, 8),
];

/// Servers that are shared, and units at a time on each: as in `3x16`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Pair {
    servers: u8,
    depth: u8,
}

impl Pair {
    pub(crate) const fn of(servers: u8, depth: u8) -> Self {
        Self { servers, depth }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.servers, self.depth)
    }
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| word.parse::<u8>().ok().filter(|number| *number > 0);
        let pair = text.split_once('x').and_then(|(servers, depth)| {
            Some(Self { servers: number(servers)?, depth: number(depth)? })
        });
        pair.ok_or_else(|| format!("no pair as 3x16: {text}"))
    }
}

/// The pairs of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid(pub(crate) Vec<Pair>);

/// `thin`, `full`, or pairs between commas.
impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let full =
            SERVERS.into_iter().flat_map(|servers| DEPTHS.map(|depth| Pair { servers, depth }));
        match text {
            "thin" => Ok(Self(THIN.to_vec())),
            "full" => Ok(Self(full.collect())),
            pairs => {
                pairs.split(',').map(|pair| pair.trim().parse()).collect::<Result<_, _>>().map(Self)
            }
        }
    }
}

#[cfg(test)]
mod tests;

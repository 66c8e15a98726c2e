use std::collections::BTreeMap;

use crate::plan::Plan;

/// Which worker each pool lives on.
///
/// A pool stays where it is as long as it is in the configuration: its clients and servers are
/// there. A new one goes to the worker whose pools may have the fewest servers.
#[derive(Debug)]
pub struct Placement {
    workers: usize,
    /// By database and user.
    homes: BTreeMap<(String, String), usize>,
    /// There were pools for databases that are not named: one that is named now may be there
    /// already.
    was_wild: bool,
}

impl Placement {
    /// So many workers, without pools.
    pub fn new(workers: usize) -> Self {
        Self { workers, homes: BTreeMap::new(), was_wild: false }
    }

    /// Says in a plan where its pools live.
    pub fn place(&mut self, plan: &mut Plan) {
        let before = std::mem::take(&mut self.homes);
        let name = |database: &str, user: &str| (database.to_owned(), user.to_owned());
        let mut loads = vec![0; self.workers];
        for spec in plan.specs_mut() {
            if let Some(home) = before.get(&name(&spec.database, &spec.user)) {
                loads[*home] += spec.size;
            }
        }
        for spec in plan.specs_mut() {
            let key = name(&spec.database, &spec.user);
            let home = match before.get(&key) {
                Some(home) => *home,
                None => {
                    let home = if self.was_wild {
                        home_of_wild(&spec.database, &spec.user, self.workers)
                    } else {
                        idlest(&loads)
                    };
                    loads[home] += spec.size;
                    home
                }
            };
            spec.home = home;
            self.homes.insert(key, home);
        }
        self.was_wild = plan.has_wild();
    }
}

/// The worker with the least load; of equals the first.
fn idlest(loads: &[usize]) -> usize {
    let least = loads.iter().enumerate().min_by_key(|(_, load)| **load);
    least.map_or(0, |(index, _)| index)
}

/// Where the pool of a database lives that the configuration does not name: told from the names
/// alone (FNV-1a), so that no table grows with what clients ask for.
pub(crate) fn home_of_wild(database: &str, user: &str, workers: usize) -> usize {
    let bytes = database.bytes().chain([0]).chain(user.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The high half is mixed better than the low one; the remainder fits.
    ((hash >> 32) % workers as u64) as usize
}

#[cfg(test)]
mod tests;

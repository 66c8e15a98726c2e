//! What a client asks for.

use pgweir_config::PoolMode;

use super::Habit;
use crate::diet::Item;
use crate::random::Dice;
use crate::session::Home;
use crate::world::Site;

/// What a client knows of the pool that it connects to.
#[derive(Clone, Debug)]
pub(crate) struct PoolFacts {
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) mode: PoolMode,
    /// In some configurations it is transaction mode instead.
    pub(crate) fickle: bool,
    /// It is a replication client, and has a server of its own, whatever the mode of its pool.
    pub(crate) replicates: bool,
    /// Which of the configuration's pools it is, or is made after.
    pub(crate) draft: usize,
}

impl PoolFacts {
    pub(crate) fn draw(dice: &mut Dice, database: String, user: &str, draft: usize) -> Self {
        let mode = dice.weighted(&[
            (6, PoolMode::Transaction),
            (2, PoolMode::Session),
            (1, PoolMode::Statement),
        ]);
        let fickle = mode == PoolMode::Session && dice.chance(0.3);
        Self { database, user: user.to_owned(), mode, fickle, replicates: false, draft }
    }

    /// The same, of a replication client perhaps: the server of one is its own to its end.
    pub(super) fn drawn(self, dice: &mut Dice, site: &Site) -> Self {
        let often = if site.customs.contains(&Habit::Replicates) { 0.3 } else { 0.01 };
        match dice.chance(often) && !site.diet.lacks(Item::Habit(Habit::Replicates)) {
            true => Self { mode: PoolMode::Session, fickle: false, replicates: true, ..self },
            false => self,
        }
    }

    /// Whether its clients may come to another server between two transactions.
    pub(super) fn lets_go(&self) -> bool {
        self.mode != PoolMode::Session || self.fickle
    }

    pub(crate) fn home(&self) -> Home {
        Home { database: self.database.clone(), user: self.user.clone() }
    }
}

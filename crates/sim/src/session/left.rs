//! What is left in a session of what clients have begun there.

use super::extended::is_of_pgweir;
use super::state::{State, TABLE};

pub(super) const CHANNEL: &str = "a channel";
pub(super) const CURSOR: &str = "a cursor";
pub(super) const LOCK: &str = "an advisory lock";
pub(super) const STATEMENT: &str = "a prepared statement";

impl State {
    /// The letters of what is left, with the name behind that of a channel. What is not does not
    /// stain the session any more.
    pub(super) fn left(&mut self) -> impl Iterator<Item = String> + use<> {
        let named = |name: &Vec<u8>| !name.is_empty() && !is_of_pgweir(name);
        let left = [
            ('a', LOCK, self.locks.iter().any(|lock| lock.session)),
            ('h', CURSOR, !self.cursors.is_empty()),
            ('l', CHANNEL, self.listens()),
            ('p', STATEMENT, self.statements.keys().any(named)),
            ('t', TABLE, self.stains.iter().any(|stain| stain.what == TABLE)),
        ];
        let is_left = |it: &str| left.iter().all(|(_, what, there)| it != *what || *there);
        self.stains.retain(|stain| is_left(stain.what));
        let channels: Vec<_> = self.channels().map(|channel| format!("l{channel}")).collect();
        let others = left.into_iter().filter(|(_, what, there)| *there && *what != CHANNEL);
        others.map(|(letter, ..)| letter.to_string()).chain(channels)
    }
}

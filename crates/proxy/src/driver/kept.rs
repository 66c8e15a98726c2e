//! How much of what it passes on may be kept of a connection, however long a message is and
//! however slow its reader.

use pgweir_engine::{REPLY_HELD_BYTES, UNIT_HELD_BYTES};

use super::{Driver, SCRATCH_BYTES};
use crate::link::{CONGESTED_ABOVE, Link};
use crate::links::Links;
use crate::transport::Transport;

/// Input that the engine has not consumed yet: all that is read at once, and a unit that was put
/// back in front of it.
const INPUT_BYTES: usize = SCRATCH_BYTES + UNIT_HELD_BYTES;

/// Output that there is no room for: what it takes until whoever feeds the connection is read no
/// more, what was read of that at last, and the reply that was kept for it. What pgweir says by
/// itself is far less than a reply, or waits until there is room, as notifications, refusals and
/// the answers of the console do.
const OUTPUT_BYTES: usize = CONGESTED_ABOVE + SCRATCH_BYTES + REPLY_HELD_BYTES;

impl<T: Transport> Driver<T> {
    /// What is kept of some connection beyond what may be.
    pub fn excess(&self) -> Option<String> {
        self.all_links().find_map(excess_of)
    }

    /// The connections that are open.
    pub(super) fn all_links(&self) -> impl Iterator<Item = &Link<T>> {
        let links = [&self.clients, &self.servers, &self.cancels].into_iter().flat_map(Links::iter);
        links.chain(self.lingering.values().map(|lingering| &lingering.link))
    }
}

fn excess_of<T: Transport>(link: &Link<T>) -> Option<String> {
    let kept = [
        ("input", link.retained.len(), INPUT_BYTES),
        ("a reply", link.held.len(), REPLY_HELD_BYTES),
        ("output", link.unsent(), OUTPUT_BYTES),
    ];
    let (what, n, most) = kept.into_iter().find(|(_, n, most)| n > most)?;
    Some(format!("{n} bytes of {what} are kept, of {most} that may be"))
}

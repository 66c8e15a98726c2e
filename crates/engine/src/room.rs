//! How many connections a server has room for, by its own settings.
//!
//! Where the configuration sets no limit and leaves it to us, each server is asked when it is
//! logged in to. Too many connections is the outage that a pooler is there to prevent, so nine
//! tenths of what the server leaves everybody are shared by all pgweir that lead to it.

use pgweir_config::{Limit, Room};

use crate::Engine;
use crate::action::{Address, ServerId};
use crate::reply::Sink;
use crate::server::{Cleaning, Left, ServerState};
use crate::shares::Of;
use crate::time::Time;

/// Asks for [`Room`]. The last setting is not there before PostgreSQL 16.
const QUESTION: &[u8] = b"SELECT pg_catalog.current_setting('max_connections'), \
    pg_catalog.current_setting('superuser_reserved_connections'), \
    pg_catalog.current_setting('reserved_connections', true)";

impl Engine {
    /// The most connections to a server, if there is a limit.
    pub(crate) fn most_connections(&self, address: &Address) -> Option<usize> {
        match self.plan.server_limit {
            Limit::None => None,
            Limit::OfRoom { instances } => {
                self.rooms.get(address).map(|room| room.part(instances) as usize)
            }
            Limit::Set(limit) => Some(limit as usize),
        }
    }

    /// A server has logged in. Says whether it is asked what it has room for before it is lent.
    pub(crate) fn ask_for_room(&mut self, now: Time, id: ServerId) -> bool {
        match self.plan.server_limit {
            Limit::OfRoom { .. } => {}
            Limit::None | Limit::Set(_) => return false,
        }
        let server = &mut self.servers[id];
        server.state = ServerState::Cleaning { step: Cleaning::Asking, left: Left::Nothing };
        server.changed = now;
        self.run_own(id, QUESTION);
        true
    }

    /// A row of something of our own.
    pub(crate) fn own_row(&mut self, id: ServerId, sink: Sink, body: &[u8]) {
        let server = &self.servers[id];
        let asked = matches!(server.state, ServerState::Cleaning { step: Cleaning::Asking, .. });
        if sink != Sink::Own || !asked {
            return;
        }
        // A server that gives no answer to go by has no limit of ours.
        let Some(room) = read(body) else { return };
        let address = server.address.clone();
        self.rooms.insert(address.clone(), room);
        let most = self.most_connections(&address);
        if let Some(share) = self.share_of.get(&Of::Server(address)) {
            self.shares[*share].limit(most);
        }
    }
}

/// Reads the body of the DataRow that answers [`QUESTION`].
fn read(row: &[u8]) -> Option<Room> {
    let (count, mut rest) = row.split_first_chunk()?;
    let mut cells = [None; 3];
    if u16::from_be_bytes(*count) != 3 {
        return None;
    }
    for cell in &mut cells {
        let (length, behind) = rest.split_first_chunk()?;
        rest = behind;
        if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
            let (text, behind) = rest.split_at_checked(length)?;
            rest = behind;
            *cell = Some(std::str::from_utf8(text).ok()?.parse::<u32>().ok()?);
        }
    }
    let [max, superuser, reserved] = cells;
    let reserved = superuser?.saturating_add(reserved.unwrap_or(0));
    Some(Room { connections_max: max?, reserved })
}

#[cfg(test)]
mod tests;

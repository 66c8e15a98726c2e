//! How many connections a server has room for, by its own settings.
//!
//! Where the configuration sets no limit and leaves it to us, each server is asked when it is
//! logged in to; elsewhere only the first one, so that the operator can be told. Too many
//! connections is the outage that a pooler is there to prevent, so nine tenths of what the server
//! leaves everybody are shared by all pgweir that lead to it. Until one has answered there is one
//! connection more at a time, so that a crowd that comes first does not take more than it may.

use pgweir_config::{Limit, Room};

use crate::Engine;
use crate::action::{Action, Address, Event, ServerId};
use crate::ask::Answer as Answered;
use crate::commons::{Answer, Count};
use crate::marks::Mark;
use crate::reply::Sink;
use crate::server::{Cleaning, Left, ServerState};
use crate::shares::Of;
use crate::time::Time;

/// Asks for [`Room`]. The last setting is not there before PostgreSQL 16.
const QUESTION: &[u8] = b"SELECT pg_catalog.current_setting('max_connections'), \
    pg_catalog.current_setting('superuser_reserved_connections'), \
    pg_catalog.current_setting('reserved_connections', true)";

impl Engine {
    /// The most connections to a server that has said this, if there is a limit, of which there are
    /// so many now.
    pub(crate) fn most_connections(&self, answer: Answer, used: usize) -> Option<usize> {
        match self.plan.server_limit {
            Limit::None => None,
            Limit::OfRoom { instances } => match answer {
                Answer::Awaited => {
                    Mark::RoomAwaited.hit();
                    Some(used + 1)
                }
                Answer::Useless => None,
                Answer::Room(room) => Some(room.part(instances) as usize),
            },
            Limit::Set(limit) => Some(limit as usize),
        }
    }

    /// Says how many connections to a server there may be, by what is known of it now.
    pub(crate) fn limit_server(&self, address: &Address, count: &Count) {
        let most = |answer, used| self.most_connections(answer, used);
        self.member.commons().limit_by_room(address, count, most);
    }

    /// A server has logged in. Says whether it is asked what it has room for before it is lent.
    pub(crate) fn ask_for_room(&mut self, now: Time, id: ServerId) -> bool {
        let is_known = self.member.commons().room(&self.servers[id].address) != Answer::Awaited;
        match self.plan.server_limit {
            Limit::None | Limit::Set(_) if is_known => return false,
            Limit::None | Limit::Set(_) | Limit::OfRoom { .. } => {}
        }
        let server = &mut self.servers[id];
        server.state = ServerState::Cleaning { step: Cleaning::Asking, left: Left::Nothing };
        server.changed = now;
        Mark::RoomAsked.hit();
        self.run_own(id, QUESTION);
        true
    }

    /// A server that is its client's alone has logged in, and is not asked. If nobody else is about
    /// to be, the next one may be made: or else all others would wait for this one's end.
    pub(crate) fn pass_question_on(&mut self, id: ServerId) {
        let address = &self.servers[id].address;
        let Some(share) = self.share_of.get(&Of::Server(address.clone())) else { return };
        let count = &self.shares[*share].count;
        if count.opening() == 0 {
            Mark::QuestionPassedOn.hit();
            self.limit_server(address, count);
        }
    }

    /// Such a one is gone. The one that is about to be asked is the only one again.
    pub(crate) fn keep_question(&self, address: &Address) {
        let Some(share) = self.share_of.get(&Of::Server(address.clone())) else {
            return Mark::QuestionOfNobody.hit();
        };
        let count = &self.shares[*share].count;
        let is_limit_ours = matches!(self.plan.server_limit, Limit::OfRoom { .. });
        if is_limit_ours && self.member.commons().room(address) == Answer::Awaited {
            Mark::QuestionKept.hit();
            let asked = count.opening().min(1);
            let most =
                |answer, used: usize| self.most_connections(answer, used.saturating_sub(asked));
            self.member.commons().limit_by_room(address, count, most);
        }
    }

    /// A row, if it is of something of our own, which it says; `None`: one that did not come in one
    /// piece.
    pub(crate) fn own_row(
        &mut self,
        now: Time,
        id: ServerId,
        sink: Sink,
        body: Option<&[u8]>,
    ) -> bool {
        if sink != Sink::Own {
            return false;
        }
        let server = &mut self.servers[id];
        if let Some(answer) = &mut server.answer
            && server.replaying.is_none()
        {
            answer.row(body);
            if let Answered::Catalogue(_) = answer {
                // It is kept, so it is not what nobody hears.
                server.swallowed = 0;
            }
        }
        let asked = matches!(server.state, ServerState::Cleaning { step: Cleaning::Asking, .. });
        if let Some(room) = body.filter(|_| asked).and_then(read) {
            let address = server.address.clone();
            self.answered(now, address, Answer::Room(room));
        }
        true
    }

    /// The question is over. A server that gave no answer to go by has no limit of ours, unless one
    /// was known before. Whoever has waited for the answer goes on.
    pub(crate) fn room_asked(&mut self, now: Time, id: ServerId) {
        let server = &mut self.servers[id];
        server.own_error = None;
        // As if it had just been cleaned.
        server.state = ServerState::AwaitingCancel;
        let address = server.address.clone();
        if self.member.commons().room(&address) == Answer::Awaited {
            Mark::RoomNotTold.hit();
            self.answered(now, address.clone(), Answer::Useless);
        }
        self.opened(now, id);
        self.refill_at(now, &address);
        if self.member.workers() > 1 {
            self.nudge_others();
        }
    }

    /// All pools of a server may have room for attempts now.
    fn refill_at(&mut self, now: Time, address: &Address) {
        let share = self.share_of.get(&Of::Server(address.clone())).copied();
        let pools: Vec<_> = share.map_or(Vec::new(), |share| self.shares[share].pools().collect());
        for pool in pools {
            self.refill(now, pool);
        }
    }

    fn answered(&mut self, now: Time, address: Address, answer: Answer) {
        let news = self.member.commons().set_room(address.clone(), answer);
        if let Some(share) = self.share_of.get(&Of::Server(address.clone())) {
            self.limit_server(&address, &self.shares[*share].count);
        }
        if news {
            // The rest of the answer may be long in coming.
            self.refill_at(now, &address);
            let room = if let Answer::Room(room) = answer { Some(room) } else { None };
            self.actions.push(Action::Log(Event::RoomKnown { address, room }));
        }
    }
}

/// Reads the body of the DataRow that answers [`QUESTION`].
pub(crate) fn read(row: &[u8]) -> Option<Room> {
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

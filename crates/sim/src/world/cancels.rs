//! Whether the cancels that clients ask for arrive: soon behind a request what it is for is over,
//! or the request has come to its server, or a fault has kept it from that.

use pgweir_engine::Endpoint;

use super::World;
use super::wires::Outside;
use crate::client::Client;
use crate::invariants::Invariant;
use crate::language::Tag;
use crate::ledger::RequestId;
use crate::network::WireId;
use crate::postgres::Backend;

/// A request of a client's for a cancel.
pub(super) struct Request {
    /// The connection that it comes on, and that of its client.
    by: WireId,
    of: WireId,
    /// `None`: pgweir has not read all of it.
    heard: Option<Heard>,
}

/// What a request has met when pgweir had read it.
#[derive(Clone, Copy)]
struct Heard {
    at: u64,
    aim: Aim,
    /// When its client had last sent something, and heard that something is answered.
    contact: (u64, u64),
}

/// What is to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// A statement that a server process runs.
    Running(WireId, Tag),
    /// What no server has begun.
    Waiting,
}

/// By then a request has come from one worker to another, has been held back, and gone out.
const LATE_US: u64 = 500_000;

impl World {
    /// A client asks for a cancel, on the last connection that was made.
    pub(super) fn note_request(&mut self, of: WireId) {
        let by = WireId(self.wires.len() - 1);
        self.requests.push(Request { by, of, heard: None });
    }

    /// pgweir has closed the connection on which a client has asked for a cancel.
    pub(super) fn request_over(&mut self, request: RequestId) {
        let number = self.site.ledger.requester(request);
        let mut clients = self.wires.iter().filter_map(|wire| client(&wire.outside));
        // Who is gone sends nothing more.
        if let Some(client) = clients.find(|client| client.number == number) {
            let last = client.last_cancelled();
            self.site.ledger.cancel_over(request, last);
        }
    }

    /// pgweir has read something of a guest's: if it is a request, all of it perhaps.
    pub(super) fn note_heard(&mut self, by: WireId) {
        let unheard = |its: &Request| its.by == by && its.heard.is_none();
        let Some(index) = self.requests.iter().position(unheard) else { return };
        if self.wires[by.0].guest.as_ref().is_some_and(|guest| guest.is_before_login()) {
            return;
        }
        let Request { of, .. } = self.requests.swap_remove(index);
        let (at, aim) = (self.now(), self.aim(of));
        if let (Some(aim), Some(client)) = (aim, self.client_on(of)) {
            let heard = Some(Heard { at, aim, contact: client.last_contact() });
            self.requests.push(Request { by, of, heard });
        }
    }

    /// Looks at requests that were read so long ago that what they are for must be over.
    pub(super) fn check_cancels(&mut self) {
        let latest = self.now().saturating_sub(LATE_US + self.site.paused_us);
        let is_due = |its: &Request| its.heard.is_some_and(|heard| heard.at < latest);
        while let Some(index) = self.requests.iter().position(is_due) {
            let Request { by, of, heard } = self.requests.swap_remove(index);
            if let Some(heard) = heard
                && let Some(what) = self.goes_on(of, heard)
                && !self.is_turned_away(by)
                && !self.is_hindered(of, heard, what)
            {
                let micros = self.now() - heard.at;
                let what = match what {
                    Aim::Running(_, tag) => tag.to_string(),
                    Aim::Waiting => format!("what w{} waits for", of.0),
                };
                let text = format!("{what} goes on {micros} us behind w{}, as if unasked", by.0);
                self.site.ledger.fail(Invariant::CancelArrives, text);
            }
        }
    }

    /// What a client has under way, as far as pgweir knows of it.
    fn aim(&mut self, of: WireId) -> Option<Aim> {
        let client = self.client_on(of).filter(|client| client.is_ready())?;
        let (number, waits) = (client.number, client.waits(&self.site.ledger));
        let running = self.wires.iter().enumerate().find_map(|(wire, its)| {
            let tag = backend(&its.outside)?.running()?;
            (tag.client == number).then_some(Aim::Running(WireId(wire), tag))
        });
        // A client that goes from one worker to another is heard there.
        let its = &self.wires[of.0];
        let is_read = its.guest.as_ref().is_some_and(|guest| !guest.is_before_login());
        let waits = waits && is_read && its.pipes[0].borrow().unread() == 0;
        running.or_else(|| waits.then_some(Aim::Waiting))
    }

    /// What goes on of what a request was for, if its client still waits for it.
    fn goes_on(&mut self, of: WireId, heard: Heard) -> Option<Aim> {
        let now = self.aim(of).filter(|_| self.is_attended(of))?;
        let silent = self.client_on(of)?.last_contact() == heard.contact && self.contact(of).heard;
        match (heard.aim, now) {
            // Where servers are shared it may have been run again, on another one.
            (Aim::Running(_, then), Aim::Running(_, tag)) => Some(now).filter(|_| then == tag),
            (Aim::Running(..), Aim::Waiting) => None,
            (Aim::Waiting, _) => Some(now).filter(|_| silent),
        }
    }

    /// Whether pgweir had a word for whoever has brought a request, and so has not looked at it.
    fn is_turned_away(&self, by: WireId) -> bool {
        self.site.shut_down || self.wires[by.0].pipes[1].borrow().written > 0
    }

    /// Whether a cancel has come to what goes on, or is on its way, or a fault is in its way.
    fn is_hindered(&mut self, of: WireId, heard: Heard, what: Aim) -> bool {
        // pgweir sends none behind one that is not over, though what that was for may be.
        let since = heard.at.saturating_sub(self.site.slack_us());
        let Some(draft) = self.client_on(of).map(Client::draft) else { return true };
        let mut clusters: Vec<_> = self.site.rules.clusters(since, draft).collect();
        let process = match what {
            Aim::Running(wire, _) => {
                let process = backend(&self.wires[wire.0].outside);
                // pgweir has given it up, or the brake ends what it runs.
                let Some(process) = process.filter(|its| !its.is_braked()) else { return true };
                clusters.push(process.cluster);
                let process_id = process.process_id;
                if !self.is_attended(wire) {
                    return true;
                }
                Some(process_id)
            }
            // It may have been sent to a server that stands still, or behind others to one.
            Aim::Waiting if self.site.was_frozen(heard.at) => return true,
            Aim::Waiting => None,
        };
        let is_there = |cluster: &usize| clusters.contains(cluster);
        let of_cancel = |endpoint| matches!(endpoint, Endpoint::Cancel(_));
        let mut arrivals = self.site.ledger.cancelled.iter().filter(|(_, at)| **at >= since);
        let has_come = arrivals
            .any(|((cluster, id), _)| is_there(cluster) && process.is_none_or(|its| its == *id));
        let is_made = self.attempts.iter().any(|its| {
            let pending = !its.over || its.missed_at.is_some_and(|at| at >= since);
            pending && of_cancel(its.place.endpoint) && is_there(&its.cluster)
        });
        let is_under_way = self.wires.iter().any(|wire| {
            let its = wire.place.is_some_and(|place| of_cancel(place.endpoint));
            its && backend(&wire.outside).is_some_and(|its| is_there(&its.cluster))
        });
        // Attempts that are refused, and crashes, are troubles.
        let trouble = &self.site.ledger.trouble;
        let troubled = trouble.iter().any(|(cluster, at)| is_there(cluster) && *at >= since);
        has_come || is_made || is_under_way || troubled
    }

    fn client_on(&self, wire: WireId) -> Option<&Client> {
        client(&self.wires[wire.0].outside)
    }
}

fn client(outside: &Outside) -> Option<&Client> {
    match outside {
        Outside::Client(client) => Some(client),
        Outside::Admin(_) | Outside::Backend(_) | Outside::Canceller(_) | Outside::Gone => None,
    }
}

fn backend(outside: &Outside) -> Option<&Backend> {
    match outside {
        Outside::Backend(process) => Some(process),
        Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => None,
    }
}

#[cfg(test)]
mod tests;

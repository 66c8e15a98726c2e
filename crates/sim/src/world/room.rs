//! What servers have said that they have room for, as far as pgweir has heard it, and how many
//! connections that allows.

use pgweir_engine::Endpoint;

use super::World;
use super::wires::{Attempt, Outside, Wire};
use crate::configuration::Configuration;
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::postgres::Backend;
use crate::process::Place;
use crate::room::Room;

/// What pgweir knows of the room of one server.
pub(super) struct Known {
    /// What it goes by, if it has read no other answer.
    heard: Option<Room>,
    /// Answers that it may have read.
    under_way: Vec<UnderWay>,
    /// As long as it has read none there is one connection more at a time: so many, since it was
    /// last given a configuration.
    unheard_most: u64,
}

/// An answer of the process on this connection.
struct UnderWay {
    wire: WireId,
    room: Room,
    /// Bytes of that connection up to its end, once it is known.
    ends_at: Option<u64>,
}

impl Known {
    pub(super) fn nothing() -> Self {
        Self { heard: None, under_way: Vec::new(), unheard_most: 1 }
    }

    /// Most connections of one pgweir, of so many, if there is a limit. Of answers that it may or
    /// may not have read it goes by the one that allows more.
    fn most(&self, instances: u64) -> Option<u64> {
        let heard = match self.heard {
            None => self.unheard_most,
            Some(room) => room.most(instances)?,
        };
        // One that says nothing changes nothing before it has come to its end.
        let others = self.under_way.iter().filter_map(|its| its.room.most(instances));
        Some(others.fold(heard, u64::max))
    }
}

impl World {
    /// A server process answers what its server has room for, or has done so and that answer ends
    /// there.
    pub(super) fn note_room(&mut self, wire: WireId, room: Room, cluster: usize, end: Option<u64>) {
        let under_way = &mut self.clusters[cluster].known.under_way;
        let before = under_way.iter().position(|its| its.wire == wire);
        let at = before.unwrap_or(under_way.len());
        if before.is_none() {
            under_way.push(UnderWay { wire, room, ends_at: None });
        }
        under_way[at].ends_at = end;
    }

    /// pgweir has read something of a connection.
    pub(super) fn note_room_heard(&mut self, wire: WireId) {
        let read = self.wires[wire.0].pipes[0].borrow().read;
        let over = |its: &UnderWay| its.wire == wire && its.ends_at.is_some_and(|end| end <= read);
        let clusters = 0..self.clusters.len();
        let its = clusters.filter_map(|cluster| {
            let under_way = &self.clusters[cluster].known.under_way;
            Some((cluster, under_way.iter().position(over)?))
        });
        let Some((cluster, at)) = its.take(1).next() else { return };
        let known = &mut self.clusters[cluster].known;
        let room = known.under_way.remove(at).room;
        if room.is_said() || known.heard.is_none() {
            known.heard = Some(room);
        }
        if room.is_said() {
            // What came in part before, and will not come in whole, is forgotten.
            let others = std::mem::take(&mut self.clusters[cluster].known.under_way);
            let open = others.into_iter().filter(|its| self.is_open(its.wire));
            let open: Vec<_> = open.collect();
            self.clusters[cluster].known.under_way = open;
        }
    }

    /// Connections to each server, made or not, before a worker reads another configuration: as
    /// pgweir counts them, whose they are until it has read that they have ended.
    pub(super) fn server_counts(&mut self) -> Vec<u64> {
        (0..self.clusters.len()).map(|cluster| self.count_kept_to(cluster)).collect()
    }

    fn count_kept_to(&mut self, cluster: usize) -> u64 {
        let may_be_to = |wire: &Wire| match &wire.outside {
            Outside::Backend(process) => wire.is_server() && process.cluster == cluster,
            // Whose it was nobody knows any more.
            Outside::Gone => wire.is_server(),
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) => false,
        };
        let wires = self.wires.iter().enumerate();
        let wires = wires.filter(|(_, wire)| may_be_to(wire)).map(|(at, _)| WireId(at));
        let wires: Vec<_> = wires.collect();
        let open = wires.into_iter().filter(|wire| self.is_open(*wire)).count() as u64;
        self.count_to(cluster).max(open + self.attempts_at(cluster))
    }

    /// A worker has read another configuration when there were so many connections to each server.
    pub(super) fn note_unheard(&mut self, counts: &[u64]) {
        for (cluster, count) in self.clusters.iter_mut().zip(counts) {
            let most = &mut cluster.known.unheard_most;
            *most = (*most).max(count + 1);
        }
    }

    /// pgweir wants one more connection to a server.
    pub(super) fn check_server_limit(&mut self, place: Place, cluster: usize) {
        let Endpoint::Server(_) = place.endpoint else { return };
        // One that is a client's own is not asked, so another is opened that is.
        let is_asked = self.clusters[cluster].known.heard.is_some()
            || self.site.rules.most(self.now(), |rules| rules.limits.server).is_some();
        let counts =
            |process: &Backend| process.cluster == cluster && (is_asked || !process.replicates());
        let made = self.count_servers(WireId(usize::MAX), counts);
        let others = made + self.attempts_at(cluster);
        let most = self.most_to(cluster);
        if let Some(most) = most.filter(|most| others >= *most) {
            let text = format!("connections to a server: one more beside {others}, of {most}");
            self.site.ledger.fail(Invariant::LimitsHold, text);
        }
    }

    /// Most connections to a server, by the configurations that are in force and what it has said.
    pub(super) fn most_to(&self, cluster: usize) -> Option<u64> {
        let known = &self.clusters[cluster].known;
        let most = |rules: &Configuration| match (rules.limits.server, rules.instances) {
            (Some(most), _) => Some(most),
            (None, Some(instances)) => known.most(instances),
            (None, None) => None,
        };
        self.site.rules.most(self.now(), most)
    }

    /// Connections to a server, made or not.
    pub(super) fn count_to(&mut self, cluster: usize) -> u64 {
        let made = self.count_servers(WireId(usize::MAX), |process| process.cluster == cluster);
        made + self.attempts_at(cluster)
    }

    /// Connections to a server that are being made.
    pub(super) fn attempts_at(&self, cluster: usize) -> u64 {
        let is_wanted = |attempt: &&Attempt| {
            let same =
                matches!(attempt.place.endpoint, Endpoint::Server(_)) && attempt.cluster == cluster;
            same && !attempt.over && self.process.awaits(attempt.place)
        };
        self.attempts.iter().filter(is_wanted).count() as u64
    }
}

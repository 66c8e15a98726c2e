//! Which servers pgweir lends, and as whom it is logged in there: as its configuration has it. A
//! server that a pool had before is not lent again; whoever has it keeps it until it is given back.

use super::World;
use super::wires::Outside;
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::session::Home;

impl World {
    /// A server process has read who is to be logged in.
    pub(super) fn check_new_place(&mut self, wire: WireId, own: &Home) {
        // A pool that is out of the configuration goes on with what it had.
        let since = if self.has_lacked(own) { 0 } else { self.wires[wire.0].asked_at };
        let pool = self.topology.pools.iter().find(|pool| pool.home() == *own);
        let Some(draft) = pool.map(|pool| pool.draft) else { return };
        self.check_place_since(wire, draft, since, "is logged in");
    }

    /// A message of this client's has come to a server process.
    pub(super) fn check_place(&mut self, wire: WireId, client: u32) {
        let moves = self.topology.is_renamed() || self.clusters.len() > 1;
        // One that was given up may still read what it was sent.
        if !moves || !self.is_attended(wire) {
            return;
        }
        let Some(client) = self.client(client) else { return };
        let (draft, since) = (client.draft(), client.lent_since(&self.site));
        self.check_place_since(wire, draft, since, "is lent");
    }

    fn check_place_since(&mut self, wire: WireId, draft: usize, since: u64, what: &str) {
        let Outside::Backend(process) = &self.wires[wire.0].outside else { return };
        let (cluster, user) = (process.cluster, &process.user);
        if !self.site.rules.allows(since, draft, cluster, user) {
            let (who, place) = (process.who(), format!("on server {cluster} as {user}"));
            let text = format!("{who} {what} {place}, where its pool is not");
            self.site.ledger.fail(Invariant::OwnHome, text);
        }
    }
}

use pgweir_engine::Time;

use super::{Occasion, Outside, STORM_US, Who, World};
use crate::network::WireId;
use crate::postgres::Health;
use crate::topology::Topology;

/// A fault that comes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blow {
    /// No fault: pgweir is given another configuration.
    Configure,
    Crash,
    Kill,
    /// No fault: its configuration has changed, and it reads it again.
    Reload,
    Reset,
}

impl World {
    /// Each of them comes at some time before the storm is over, or never.
    pub(super) fn schedule_blows(&mut self) {
        for (blow, each_minute) in [
            (Blow::Configure, self.site.faults.reconfigured),
            (Blow::Crash, self.site.faults.server_crash),
            (Blow::Kill, self.site.faults.server_killed),
            (Blow::Reload, self.site.faults.server_reload),
            (Blow::Reset, self.site.faults.server_reset),
        ] {
            let expected = each_minute * STORM_US as f64 / 60_000_000.0;
            let blows = expected as u64 + u64::from(self.dice.chance(expected.fract()));
            for _ in 0..blows {
                let at = self.dice.below(STORM_US);
                self.schedule(at, Occasion::Strike(blow));
            }
        }
    }

    pub(super) fn strike(&mut self, blow: Blow) {
        if blow == Blow::Configure {
            let config = self.topology.config(&mut self.dice, self.seats_taken == 0);
            return self.configure(&config);
        }
        let sessions: Vec<usize> = (0..self.wires.len())
            .filter(|index| match &self.wires[*index].outside {
                Outside::Backend(process) => process.is_session(),
                Outside::Canceller(_) | Outside::Client { .. } | Outside::Gone => false,
            })
            .collect();
        if sessions.is_empty() {
            return;
        }
        let victim = *self.dice.pick(&sessions);
        let Outside::Backend(process) = &mut self.wires[victim].outside else { return };
        let cluster = process.cluster;
        self.site.trace.note(Who('b', WireId(victim)), || format!("is struck: {blow:?}"));
        match blow {
            // Above.
            Blow::Configure => {}
            Blow::Kill => {
                self.site.trouble();
                self.site.ledger.kills += 1;
                process.kill();
                self.wake_outside(WireId(victim), self.now());
            }
            Blow::Reload => {
                self.clusters[cluster].version += 1;
                let version = self.clusters[cluster].version;
                self.each_backend(cluster, |process| process.reload(version));
            }
            Blow::Reset => {
                self.site.trouble();
                self.site.ledger.kills += 1;
                process.crash(&mut self.site);
                self.wires[victim].outside = Outside::Gone;
            }
            Blow::Crash => {
                self.site.trouble();
                self.crash(cluster);
            }
        }
    }

    /// pgweir reads another configuration.
    pub(super) fn configure(&mut self, config: &str) {
        self.site.trace.note("world", || format!("another configuration:\n{config}"));
        match Topology::plan_of(config) {
            Ok(plan) => self.driver.reload(Time(self.now()), plan),
            Err(cause) => self.site.ledger.fail(cause),
        }
    }

    /// A whole server is gone, and comes back.
    fn crash(&mut self, cluster: usize) {
        self.clusters[cluster].health = Health::Down;
        for index in 0..self.wires.len() {
            if let Outside::Backend(process) = &mut self.wires[index].outside
                && process.cluster == cluster
            {
                self.site.ledger.kills += 1;
                process.crash(&mut self.site);
                self.wires[index].outside = Outside::Gone;
            }
        }
        let starts = self.now() + self.dice.magnitude(2_000_000);
        let up = starts + self.dice.magnitude(1_000_000);
        self.schedule(starts, Occasion::Recover(cluster, false));
        self.schedule(up, Occasion::Recover(cluster, true));
    }

    pub(super) fn recover(&mut self, cluster: usize, up: bool) {
        let health = if up { Health::Up } else { Health::Starting };
        self.clusters[cluster].health = health;
        self.site.trace.note("world", || format!("server {cluster} is {health:?}"));
    }

    pub(super) fn heal(&mut self) {
        self.healed = true;
        self.site.faults = self.site.faults.healed();
        self.site.trace.note("world", || "nothing goes wrong any more");
    }
}

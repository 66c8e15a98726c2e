use super::wires::Outside;
use super::{BUSY_US, Occasion, STORM_US, Who, World};
use crate::configuration::Configuration;
use crate::network::WireId;
use crate::postgres::Health;

/// A fault that comes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blow {
    /// No fault: pgweir is given another configuration.
    Configure,
    Crash,
    Freeze,
    Full,
    Kill,
    /// Nobody takes what pgweir writes into its log.
    LogHeld,
    /// The disk of its log is full.
    LogFull,
    /// pgweir stands still.
    Pause,
    Refuse,
    /// No fault: a server's configuration has changed, and it reads it again.
    Reload,
    Reset,
    Silence,
}

impl World {
    /// Each of them comes at some time before the storm is over, or never.
    pub(super) fn schedule_blows(&mut self) {
        for (blow, each_minute) in [
            (Blow::Configure, self.site.faults.reconfigured),
            (Blow::Crash, self.site.faults.server_crash),
            (Blow::Freeze, self.site.faults.server_frozen),
            (Blow::Full, self.site.faults.server_full),
            (Blow::Kill, self.site.faults.server_killed),
            (Blow::LogHeld, self.site.faults.log_held),
            (Blow::LogFull, self.site.faults.log_full),
            (Blow::Pause, self.site.faults.paused),
            (Blow::Refuse, self.site.faults.server_refusing),
            (Blow::Reload, self.site.faults.server_reload),
            (Blow::Reset, self.site.faults.server_reset),
            (Blow::Silence, self.site.faults.server_silent),
        ] {
            let expected = each_minute * STORM_US as f64 / 60_000_000.0;
            let blows = expected as u64 + u64::from(self.dice.chance(expected.fract()));
            for _ in 0..blows {
                let most = if self.dice.chance(0.5) { BUSY_US } else { STORM_US };
                let at = self.dice.below(most);
                self.schedule(at, Occasion::Strike(blow));
            }
        }
    }

    pub(super) fn strike(&mut self, blow: Blow) {
        match blow {
            Blow::Configure => {
                let configuration = self.topology.configuration(&mut self.dice);
                self.configure(configuration);
            }
            Blow::Full => self.ail(Health::Full),
            Blow::LogHeld => self.hold_log(),
            Blow::LogFull => self.fill_log(),
            Blow::Pause => self.pause(),
            Blow::Refuse => self.ail(Health::Refusing),
            Blow::Silence => self.ail(Health::Silent),
            Blow::Crash | Blow::Freeze | Blow::Kill | Blow::Reload | Blow::Reset => {
                self.strike_session(blow);
            }
        }
    }

    /// Some session's server process is struck, or the whole server of one.
    fn strike_session(&mut self, blow: Blow) {
        let busy = self.dice.chance(0.5);
        let mut sessions = self.sessions(busy);
        if sessions.is_empty() {
            sessions = self.sessions(false);
        }
        if sessions.is_empty() {
            return;
        }
        let victim = *self.dice.pick(&sessions);
        let short_us = self.dice.magnitude(2_000_000);
        let freeze_us = *self.dice.pick(&[short_us, 3_000_000, 8_000_000]);
        let now = self.now();
        let Outside::Backend(process) = &mut self.wires[victim.0].outside else { return };
        let (cluster, doing) = (process.cluster, process.doing());
        self.site.trace.note(Who('b', victim), || format!("is struck: {blow:?}"));
        match blow {
            Blow::Freeze => {
                process.freeze(now..now + freeze_us);
                self.failed(cluster);
                self.note_strike(&doing, now + freeze_us);
                if self.dice.chance(0.6) {
                    self.desert(doing.owner, freeze_us);
                }
            }
            Blow::Kill => {
                process.kill();
                self.failed(cluster);
                self.note_loss(victim, &doing);
                self.wake_outside(victim, now);
            }
            Blow::Reload => {
                self.clusters[cluster].version += 1;
                let version = self.clusters[cluster].version;
                self.each_backend(cluster, |process| process.reload(version));
            }
            Blow::Reset => {
                let unlocks = process.crash(&mut self.site);
                if unlocks {
                    self.each_backend(cluster, |_| {});
                }
                self.failed(cluster);
                self.note_loss(victim, &doing);
                self.wires[victim.0].outside = Outside::Gone;
            }
            Blow::Crash => {
                self.site.trouble(cluster);
                self.crash(cluster);
            }
            // Above.
            Blow::Configure
            | Blow::Full
            | Blow::LogHeld
            | Blow::LogFull
            | Blow::Pause
            | Blow::Refuse
            | Blow::Silence => {}
        }
    }

    /// A client leaves within this time, if it still waits for a reply.
    fn desert(&mut self, number: Option<u32>, within_us: u64) {
        let at = self.now() + self.dice.below(within_us);
        let wires = self.wires.iter_mut().enumerate();
        let its = wires.filter_map(|(wire, its)| match &mut its.outside {
            Outside::Client { client, .. } => (Some(client.number) == number).then(|| {
                client.leave_at(at);
                WireId(wire)
            }),
            Outside::Backend(_) | Outside::Canceller(_) | Outside::Gone => None,
        });
        let its: Vec<_> = its.collect();
        its.into_iter().for_each(|wire| self.wake_outside(wire, self.now()));
    }

    /// The sessions of servers; `busy`: only those in somebody's transaction.
    fn sessions(&self, busy: bool) -> Vec<WireId> {
        let wires = self.wires.iter().enumerate();
        let sessions = wires.filter(|(_, wire)| match &wire.outside {
            Outside::Backend(process) => {
                process.is_session() && (!busy || process.doing().owner.is_some())
            }
            Outside::Canceller(_) | Outside::Client { .. } | Outside::Gone => false,
        });
        sessions.map(|(number, _)| WireId(number)).collect()
    }

    /// One server connection is taken away, or may have to be given up.
    fn failed(&mut self, cluster: usize) {
        self.site.trouble(cluster);
        self.site.ledger.kills += 1;
    }

    /// pgweir is given another configuration.
    pub(super) fn configure(&mut self, configuration: Configuration) {
        let text = configuration.text();
        self.site.trace.note("world", || format!("another configuration:\n{text}"));
        match configuration.plan() {
            Ok(plan) => {
                self.site.rules.replace(configuration);
                let workers = self.process.reload(plan);
                self.post(workers);
                self.note_crowd();
            }
            Err(cause) => self.site.ledger.fail(cause),
        }
    }

    /// pgweir stands still for a while.
    fn pause(&mut self) {
        let until = (self.now() + self.dice.magnitude(4_000_000)).max(self.paused_until);
        self.site.paused_us += until - self.paused_until.max(self.now());
        self.paused_until = until;
        self.site.trace.note("world", || format!("pgweir stands still until {until}"));
    }

    /// A whole server is gone, and comes back: with its machine, or because one of its processes
    /// has crashed, of which the others tell.
    fn crash(&mut self, cluster: usize) {
        let machine = self.dice.chance(0.5);
        self.clusters[cluster].health = Health::Down;
        for index in 0..self.wires.len() {
            if let Outside::Backend(process) = &mut self.wires[index].outside
                && process.cluster == cluster
            {
                self.site.ledger.kills += 1;
                let doing = process.doing();
                // All of them end, so nobody is left who waits for a lock.
                let _unlocks = match machine {
                    true => process.crash(&mut self.site),
                    false => process.quit(&mut self.site),
                };
                self.wires[index].outside = Outside::Gone;
                self.note_strike(&doing, self.now());
            }
        }
        let starts = self.now() + self.dice.magnitude(2_000_000);
        let up = starts + self.dice.magnitude(1_000_000);
        self.schedule(starts, Occasion::Recover(cluster, false));
        self.schedule(up, Occasion::Recover(cluster, true));
    }

    /// A server that is up lets nobody in for a while.
    fn ail(&mut self, how: Health) {
        let cluster = self.dice.below(self.clusters.len() as u64) as usize;
        if self.clusters[cluster].health == Health::Up {
            self.clusters[cluster].health = how;
            self.site.trace.note("world", || format!("server {cluster} is {how:?}"));
            let well = self.now() + self.dice.magnitude(5_000_000);
            self.schedule(well.min(STORM_US), Occasion::Recover(cluster, true));
        }
    }

    pub(super) fn recover(&mut self, cluster: usize, up: bool) {
        let health = if up { Health::Up } else { Health::Starting };
        self.clusters[cluster].health = health;
        self.site.trace.note("world", || format!("server {cluster} is {health:?}"));
    }

    pub(super) fn heal(&mut self) {
        self.site.faults = self.site.faults.healed();
        self.site.trace.note("world", || "nothing goes wrong any more");
    }
}

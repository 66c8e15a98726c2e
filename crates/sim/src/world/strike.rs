use pgweir_engine::TICK;

use super::wires::Outside;
use super::{BUSY_US, Occasion, STORM_US, UNANSWERED_US, World};
use crate::client::Client;
use crate::configuration::Configuration;
use crate::diet::Item;
use crate::invariants::Invariant;
use crate::network::WireId;
use crate::postgres::{Backend, Doing, Health};
use crate::random::{Dice, Part};
use crate::room::Room;

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
    /// Many come at once who are not to be let in.
    Rush,
    /// A whole server is told to restart.
    Restart,
}

/// A blow that is to come.
pub(super) struct Strike {
    pub(super) blow: Blow,
    /// The how-manieth of its kind.
    pub(super) number: u32,
    pub(super) at: u64,
    dice: Dice,
}

impl Blow {
    const ALL: [Self; 14] = [
        Self::Configure,
        Self::Crash,
        Self::Freeze,
        Self::Full,
        Self::Kill,
        Self::LogHeld,
        Self::LogFull,
        Self::Pause,
        Self::Refuse,
        Self::Reload,
        Self::Reset,
        Self::Silence,
        Self::Rush,
        Self::Restart,
    ];

    /// The fault that says how often it comes.
    pub(super) fn fault(self) -> &'static str {
        match self {
            Self::Configure => "reconfigured",
            Self::Crash => "server_crash",
            Self::Freeze => "server_frozen",
            Self::Full => "server_full",
            Self::Kill => "server_killed",
            Self::LogHeld => "log_held",
            Self::LogFull => "log_full",
            Self::Pause => "paused",
            Self::Refuse => "server_refusing",
            Self::Reload => "server_reload",
            Self::Reset => "server_reset",
            Self::Silence => "server_silent",
            Self::Rush => "rush",
            Self::Restart => "server_restart",
        }
    }
}

impl World {
    /// Each of them comes at some time before the storm is over, or never.
    pub(super) fn schedule_blows(&mut self) {
        for (kind, blow) in (0..).zip(Blow::ALL) {
            let dice = |number: u64| Dice::of(self.seed, Part::Blow, kind << 32 | number);
            let fault = self.site.faults.all().find(|(name, _)| *name == blow.fault());
            let each_minute = fault.map_or(0.0, |(_, often)| often);
            let expected = each_minute * STORM_US as f64 / 60_000_000.0;
            let blows = expected as u32 + u32::from(dice(0).chance(expected.fract()));
            for number in 0..blows {
                let mut dice = dice(u64::from(number) + 1);
                let most = if dice.chance(0.5) { BUSY_US } else { STORM_US };
                let at = dice.below(most);
                let lacks = self.site.diet.lacks(Item::Blow(blow.fault(), number));
                if at < self.storm_us() && !lacks {
                    self.strikes.push(Strike { blow, number, at, dice });
                }
            }
        }
        for number in 0..self.strikes.len() {
            self.schedule(self.strikes[number].at, Occasion::Strike(number));
        }
    }

    pub(super) fn strike(&mut self, number: usize) {
        let strike = &mut self.strikes[number];
        let (blow, dice) = (strike.blow, &mut strike.dice.fork());
        match blow {
            Blow::Configure => {
                let configuration = self.topology.configuration(dice);
                self.configure(configuration);
            }
            Blow::Full => self.ail(Health::Full, dice),
            Blow::LogHeld => self.hold_log(dice),
            Blow::LogFull => self.fill_log(dice),
            Blow::Pause => self.pause(dice),
            Blow::Refuse => self.ail(Health::Refusing, dice),
            Blow::Rush => self.rush(dice),
            Blow::Restart => self.restart(dice),
            Blow::Silence => self.ail(Health::Silent, dice),
            Blow::Crash | Blow::Freeze | Blow::Kill | Blow::Reload | Blow::Reset => {
                self.strike_session(blow, dice);
            }
        }
    }

    /// Some session's server process is struck, or the whole server of one.
    fn strike_session(&mut self, blow: Blow, dice: &mut Dice) {
        let busy = |process: &Backend| process.doing().owner.is_some();
        let wishes: [fn(&Backend) -> bool; 4] = [busy, busy, Backend::listens, |_| true];
        let mut sessions = self.sessions(dice.pick(&wishes));
        if sessions.is_empty() {
            sessions = self.sessions(|_| true);
        }
        if sessions.is_empty() {
            return;
        }
        let victim = *dice.pick(&sessions);
        let short_us = dice.magnitude(2_000_000);
        let freeze_us = *dice.pick(&[short_us, 3_000_000, 8_000_000]);
        let now = self.now();
        let Outside::Backend(process) = &mut self.wires[victim.0].outside else { return };
        let (cluster, doing) = (process.cluster, process.doing());
        self.site.trace.note(process.who(), || format!("is struck: {blow:?}"));
        match blow {
            Blow::Freeze => {
                process.freeze(now..now + freeze_us);
                self.note_still_until(cluster, &doing, now + freeze_us);
                let cancels = dice.chance(0.5) && self.site.faults.cancel > 0.0;
                let cancel_at = now + dice.magnitude(freeze_us);
                if dice.chance(0.6) {
                    let leave_at = now + dice.below(freeze_us);
                    self.each_client(doing.owner, |client| client.leave_at(leave_at));
                }
                if cancels {
                    self.each_client(doing.owner, |client| client.cancel_at(cancel_at));
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
                self.crash(cluster, dice);
            }
            // Above.
            Blow::Configure
            | Blow::Full
            | Blow::LogHeld
            | Blow::LogFull
            | Blow::Pause
            | Blow::Refuse
            | Blow::Restart
            | Blow::Rush
            | Blow::Silence => {}
        }
    }

    /// Does something to the client of this number, if it is there, and lets it go on.
    fn each_client(&mut self, number: Option<u32>, act: impl Fn(&mut Client)) {
        let wires = self.wires.iter_mut().enumerate();
        let its = wires.filter_map(|(wire, its)| match &mut its.outside {
            Outside::Client(client) => (Some(client.number) == number).then(|| {
                act(client);
                WireId(wire)
            }),
            Outside::Admin(_) | Outside::Backend(_) | Outside::Canceller(_) | Outside::Gone => None,
        });
        let its: Vec<_> = its.collect();
        its.into_iter().for_each(|wire| self.wake_outside(wire, self.now()));
    }

    /// The sessions of servers that are like this.
    fn sessions(&self, is_wished: impl Fn(&Backend) -> bool) -> Vec<WireId> {
        let wires = self.wires.iter().enumerate();
        let sessions = wires.filter(|(_, wire)| match &wire.outside {
            Outside::Backend(process) => process.is_session() && is_wished(process),
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => false,
        });
        sessions.map(|(number, _)| WireId(number)).collect()
    }

    /// A server process stands still.
    pub(super) fn note_still_until(&mut self, cluster: usize, doing: &Doing, until: u64) {
        self.site.frozen_until = self.site.frozen_until.max(until);
        self.failed(cluster);
        self.note_strike(doing, until);
    }

    /// One server connection is taken away, or may have to be given up.
    fn failed(&mut self, cluster: usize) {
        self.site.trouble(cluster);
        self.site.ledger.kill();
    }

    /// pgweir is given another configuration.
    pub(super) fn configure(&mut self, configuration: Configuration) {
        let text = configuration.text();
        self.site.trace.note("world", || format!("another configuration:\n{text}"));
        match configuration.plan() {
            Ok(plan) => {
                self.site.rules.replace(configuration);
                self.site.ledger.schema.changes(self.site.trace.now);
                let workers = self.process.reload(plan);
                self.post(workers);
                self.note_crowd();
                (0..self.clusters.len()).for_each(|cluster| self.note_tight(cluster));
            }
            Err(cause) => self.site.ledger.fail(Invariant::RightIsAccepted, cause),
        }
    }

    /// pgweir stands still for a while.
    fn pause(&mut self, dice: &mut Dice) {
        let most = *dice.pick(&[4_000_000, 4_000_000, 4_000_000, 20_000_000]);
        let latest = self.storm_us() + 4_000_000;
        let until = (self.now() + dice.magnitude(most)).min(latest).max(self.paused_until);
        // The first tick behind it only sees that it is late.
        self.site.paused_us += until - self.paused_until.max(self.now()) + TICK.as_micros() as u64;
        self.paused_until = until;
        self.site.trace.note("world", || format!("pgweir stands still until {until}"));
    }

    /// A whole server is gone, and comes back: with its machine, of which the network tells or does
    /// not, or because one of its processes has crashed, of which the others tell.
    fn crash(&mut self, cluster: usize, dice: &mut Dice) {
        let (machine, silently) = (dice.chance(0.5), dice.chance(0.5));
        let unanswered_us = dice.magnitude(UNANSWERED_US);
        self.clusters[cluster].health = Health::Down;
        let (now, until) = match machine && silently {
            true => (self.now(), self.now() + unanswered_us),
            false => (self.now(), self.now()),
        };
        for wire in self.processes_of(cluster) {
            let Outside::Backend(process) = &mut self.wires[wire.0].outside else { continue };
            self.site.ledger.kill();
            let doing = process.doing();
            // All of them end, so nobody is left who waits for a lock.
            let _unlocks = match machine {
                true if silently => process.vanish(&mut self.site),
                true => process.crash(&mut self.site),
                false => process.quit(&mut self.site),
            };
            self.wires[wire.0].outside = Outside::Gone;
            self.note_strike(&doing, until);
            if until > now {
                self.schedule(until, Occasion::Break(wire));
            }
        }
        self.site.frozen_until = self.site.frozen_until.max(until);
        self.come_back(cluster, now, dice);
    }

    /// A whole server is told to shut down at once and to start again: each of its processes is
    /// told to end (`pg_ctl restart -m fast`).
    fn restart(&mut self, dice: &mut Dice) {
        let cluster = dice.below(self.clusters.len() as u64) as usize;
        if self.clusters[cluster].health != Health::Up {
            return;
        }
        self.site.trouble(cluster);
        self.turn(cluster, Health::ShuttingDown);
        for wire in self.processes_of(cluster) {
            let Outside::Backend(process) = &mut self.wires[wire.0].outside else { continue };
            self.site.ledger.kill();
            process.kill();
            let doing = process.doing();
            self.note_strike(&doing, self.now());
            self.wake_outside(wire, self.now());
        }
        let ended = self.now() + dice.magnitude(1_000_000);
        self.schedule(ended, Occasion::Turn(cluster, Health::Down));
        self.come_back(cluster, ended, dice);
    }

    /// A server that is down from `since` on will be up again.
    fn come_back(&mut self, cluster: usize, since: u64, dice: &mut Dice) {
        let starts = since + dice.magnitude(2_000_000);
        let up = starts + dice.magnitude(1_000_000);
        if dice.chance(0.5) {
            let room = Room::draw(dice);
            self.clusters[cluster].room = room;
            self.site.trace.note("world", || format!("server {cluster} will have {room:?}"));
        }
        self.schedule(starts, Occasion::Turn(cluster, Health::Starting));
        self.schedule(up, Occasion::Turn(cluster, Health::Up));
    }

    fn processes_of(&self, cluster: usize) -> Vec<WireId> {
        let wires = self.wires.iter().enumerate();
        let its = wires.filter(|(_, wire)| match &wire.outside {
            Outside::Backend(process) => process.cluster == cluster,
            Outside::Admin(_) | Outside::Canceller(_) | Outside::Client(_) | Outside::Gone => false,
        });
        its.map(|(number, _)| WireId(number)).collect()
    }

    /// A server that is up lets nobody in for a while.
    fn ail(&mut self, how: Health, dice: &mut Dice) {
        let cluster = dice.below(self.clusters.len() as u64) as usize;
        if self.clusters[cluster].health == Health::Up {
            self.clusters[cluster].health = how;
            self.site.trace.note("world", || format!("server {cluster} is {how:?}"));
            let well = self.now() + dice.magnitude(5_000_000);
            self.schedule(well.min(self.storm_us()), Occasion::Turn(cluster, Health::Up));
        }
    }

    pub(super) fn turn(&mut self, cluster: usize, health: Health) {
        self.clusters[cluster].health = health;
        self.site.trace.note("world", || format!("server {cluster} is {health:?}"));
    }

    pub(super) fn heal(&mut self) {
        self.site.faults = self.site.faults.healed();
        self.site.trace.note("world", || "nothing goes wrong any more");
    }
}

#[cfg(test)]
mod tests;

//! How many servers are shared, and how deep: found by trying (`pipelining = "auto"`).
//!
//! Few servers that never sleep beat many that do, but how few depends on processors, on what
//! statements do and on how far away the servers are: commits that wait for a disk want many. So a
//! little more or less of either is tried for a moment, and kept if more transactions come to their
//! end, or as many in less time. Where nothing is better, the next tries come later and later,
//! until there is another load.
//!
//! What is counted is the pool's affair: transactions of all kinds, so that what is won where
//! servers are shared is not lost where they are not, nor by reads what is won by writes.

use std::time::Duration;

use super::Depths;
use crate::time::Time;

/// Deeper is nothing tried: whoever stands behind so many waits too long, should they all be slow.
const DEEPEST: usize = 64;

/// How much of what is counted may be chance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    /// So long is counted before it is judged.
    pub(super) window: Duration,
    /// So much more is better.
    pub(super) better: f64,
}

/// In a window with fewer transactions chance would judge: it is made longer, up to this.
const FEW: u64 = 60;
const WINDOW_AT_MOST: Duration = Duration::from_secs(1);

/// Of so many units one must have met with others: where hardly any does, it does not matter how
/// many may.
const MEETING: u64 = 10;

/// Where the rate says nothing, so much less time is better.
const SOONER: f64 = 0.95;

/// So much better need not be seen twice.
const MUCH_BETTER: f64 = 1.25;

/// What is so much slower in the first half of its window is not looked at for the other half.
const HOPELESS: f64 = 0.85;

/// A rate or a time that differs so much from what it was is another load.
const ANOTHER_LOAD: f64 = 1.25;

/// So long nothing is tried when nothing was better; twice as long each time, up to the last.
const REST: Duration = Duration::from_secs(2);
const REST_AT_MOST: Duration = Duration::from_secs(16);

/// Finds how the servers of a pool are best shared.
#[derive(Debug)]
pub(crate) struct Climb {
    chance: Chance,
    /// The best so far.
    best: Depths,
    /// What the best was like when it was looked at last.
    score: Option<Score>,
    /// What is tried in its place.
    trial: Option<Move>,
    /// What is to be tried next.
    next: Move,
    /// It was better the last time, by so little that it may have been chance.
    seemed_better: bool,
    /// So many tries in a row were no better.
    in_vain: usize,
    /// Nothing is tried before this.
    rests_until: Option<Time>,
    rest: Duration,
    /// What it was like when that began, and how many windows in a row were otherwise.
    rested: Option<Score>,
    others: u32,
    /// What is under way was sent under other depths.
    settles: bool,
    since: Time,
    window: Window,
}

/// What has been seen since [`Climb::since`].
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Transactions that the pool had finished when it began.
    transactions: u64,
    /// Units that were sent to shared servers; that stood behind others, or had waited; and that
    /// had waited because all those servers were full.
    sent: u64,
    met: u64,
    waited: u64,
    /// So many servers were shared at once.
    widest: usize,
    /// Units that were answered, and the time that they took since their clients had asked.
    answered: u64,
    took: Duration,
}

/// What can be judged of a window.
#[derive(Clone, Copy, Debug)]
struct Score {
    /// Transactions a second.
    rate: f64,
    /// Seconds from asking to the answer, of units that share.
    time: f64,
}

/// What a score is beside another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// By more than chance does.
    MuchBetter,
    /// It may have been chance.
    Better,
    NotBetter,
}

/// What can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    MoreServers,
    FewerServers,
    Deeper,
    Shallower,
}

impl Climb {
    /// One that begins here.
    pub(super) fn new(best: Depths, chance: Chance) -> Self {
        Self {
            chance,
            best,
            score: None,
            trial: None,
            next: Move::MoreServers,
            seemed_better: false,
            in_vain: 0,
            rests_until: None,
            rest: REST,
            rested: None,
            others: 0,
            settles: true,
            since: Time::ZERO,
            window: Window::default(),
        }
    }

    /// What holds now in a pool of so many servers.
    pub(crate) fn depths(&self, servers: usize) -> Depths {
        let holds = match self.trial {
            Some(trial) => trial.from(self.best, servers).unwrap_or(self.best),
            None => self.best,
        };
        Depths { hot: holds.hot.min(servers).max(1), ..holds }
    }

    /// A unit was sent to a shared server, of so many. `waited`: since all of them were full;
    /// `behind`: it stands behind others there.
    pub(crate) fn sent(&mut self, hot: usize, waited: bool, behind: bool) {
        self.window.widest = self.window.widest.max(hot);
        self.window.sent += 1;
        self.window.met += u64::from(waited || behind);
        self.window.waited += u64::from(waited);
    }

    /// A unit was answered, so long after its client had asked.
    pub(crate) fn answered(&mut self, took: Duration) {
        self.window.answered += 1;
        self.window.took += took;
    }

    /// Time has gone by. `transactions`: what the pool has finished since ever.
    pub(crate) fn tick(&mut self, now: Time, transactions: u64, servers: usize) {
        if std::mem::take(&mut self.settles) {
            return self.begin(now, transactions);
        }
        let elapsed = now - self.since;
        let done = transactions.saturating_sub(self.window.transactions);
        let has_seen_enough = elapsed >= self.chance.window && done >= FEW;
        if !has_seen_enough && elapsed < WINDOW_AT_MOST && !self.is_hopeless(elapsed, done) {
            return;
        }
        let window = self.window;
        self.begin(now, transactions);
        if done < FEW || window.answered == 0 {
            // Too little is shared to learn from.
            self.trial = None;
            self.score = None;
            return;
        }
        let score = Score {
            rate: done as f64 / elapsed.as_secs_f64(),
            time: window.took.as_secs_f64() / window.answered as f64,
        };
        match self.trial.take() {
            Some(trial) => self.judge(now, trial, score, servers),
            None => {
                self.score = Some(score);
                if !self.rests(now, score) {
                    self.try_next(&window, servers);
                }
            }
        }
    }

    /// Whether something else holds for a moment, and is counted.
    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// What has been seen says nothing, since something else was tried beside it.
    pub(super) fn pause(&mut self, now: Time, transactions: u64) {
        self.begin(now, transactions);
    }

    /// From now on is counted.
    fn begin(&mut self, now: Time, transactions: u64) {
        self.since = now;
        self.window = Window { transactions, ..Window::default() };
    }

    /// Whether nothing is to be tried now: all was, and it is the same load.
    fn rests(&mut self, now: Time, score: Score) -> bool {
        let Some(until) = self.rests_until else { return false };
        let is_other = self.rested.is_some_and(|rested| rested.is_another(score));
        self.others = if is_other { self.others + 1 } else { 0 };
        if self.others >= 2 {
            self.rest = REST;
        } else if now < until {
            return true;
        }
        self.rests_until = None;
        self.in_vain = 0;
        false
    }

    /// Whether what is tried need not be looked at any longer.
    fn is_hopeless(&self, elapsed: Duration, done: u64) -> bool {
        let (Some(_), Some(was)) = (self.trial, self.score) else { return false };
        let rate = done as f64 / elapsed.as_secs_f64();
        done >= FEW && elapsed >= self.chance.window / 2 && rate < HOPELESS * was.rate
    }

    /// A trial was counted: it is the best now, or not. What is a little better once is tried
    /// again before it is believed: otherwise chance alone would lead away from the best.
    fn judge(&mut self, now: Time, trial: Move, score: Score, servers: usize) {
        let tried = trial.from(self.best, servers);
        let was = self.score;
        let verdict = was.map_or(Verdict::NotBetter, |was| score.against(was, self.chance, trial));
        let had_seemed_better = std::mem::take(&mut self.seemed_better);
        let is_believed = match verdict {
            Verdict::MuchBetter => true,
            Verdict::Better => had_seemed_better,
            Verdict::NotBetter => false,
        };
        if let Some(tried) = tried.filter(|_| is_believed) {
            self.best = tried;
            self.score = Some(score);
            self.in_vain = 0;
            self.rest = REST;
            // The same way once more.
            self.next = trial;
            if trial.from(self.best, servers).is_some() {
                self.trial = Some(trial);
                self.settles = true;
            }
            return;
        }
        self.settles = true;
        if verdict == Verdict::Better {
            self.seemed_better = true;
            self.next = trial;
            return;
        }
        self.in_vain += 1;
        self.next = trial.next();
        if self.in_vain >= Move::ALL.len() {
            self.rests_until = Some(now + self.rest);
            self.rest = (self.rest * 2).min(REST_AT_MOST);
            self.rested = was;
            self.others = 0;
        }
    }

    /// Something else holds for a moment.
    fn try_next(&mut self, window: &Window, servers: usize) {
        for _ in Move::ALL {
            let trial = self.next;
            if window.shows(trial, self.best) && trial.from(self.best, servers).is_some() {
                self.trial = Some(trial);
                self.settles = true;
                return;
            }
            self.in_vain += 1;
            self.next = trial.next();
        }
    }
}

impl Window {
    /// Whether it would make a difference to what has been seen.
    fn shows(&self, trial: Move, best: Depths) -> bool {
        match trial {
            Move::MoreServers | Move::Shallower => self.met * MEETING >= self.sent,
            Move::FewerServers => self.widest >= best.hot,
            Move::Deeper => self.waited * MEETING >= self.sent,
        }
    }
}

impl Score {
    /// What it is beside another, when `trial` has led to it. What is as good with less is better
    /// too.
    fn against(self, other: Self, chance: Chance, trial: Move) -> Verdict {
        let rate = self.rate / other.rate;
        let time = self.time / other.time;
        if rate >= MUCH_BETTER {
            return Verdict::MuchBetter;
        }
        let is_same = rate > 1.0 / chance.better;
        let is_sooner = is_same && time <= SOONER;
        let is_as_good = trial.is_less() && rate >= 1.0 && time <= 1.0 / SOONER;
        if rate >= chance.better || is_sooner || is_as_good {
            return Verdict::Better;
        }
        Verdict::NotBetter
    }

    /// Whether it is of another load.
    fn is_another(self, other: Self) -> bool {
        let far = |one: f64, other: f64| {
            let ratio = one / other;
            !(1.0 / ANOTHER_LOAD..ANOTHER_LOAD).contains(&ratio)
        };
        far(self.rate, other.rate) || far(self.time, other.time)
    }
}

impl Move {
    const ALL: [Self; 4] = [Self::MoreServers, Self::FewerServers, Self::Deeper, Self::Shallower];

    fn next(self) -> Self {
        match self {
            Self::MoreServers => Self::FewerServers,
            Self::FewerServers => Self::Deeper,
            Self::Deeper => Self::Shallower,
            Self::Shallower => Self::MoreServers,
        }
    }

    /// It takes less of the servers, or of the patience of those who stand behind others.
    fn is_less(self) -> bool {
        match self {
            Self::FewerServers | Self::Shallower => true,
            Self::MoreServers | Self::Deeper => false,
        }
    }

    /// Where it leads, if anywhere.
    fn from(self, at: Depths, servers: usize) -> Option<Depths> {
        let hot = at.hot.min(servers).max(1);
        let there = match self {
            Self::MoreServers => Depths { hot: more(hot).min(servers), ..at },
            Self::FewerServers => Depths { hot: less(hot), ..at },
            Self::Deeper => Depths { hot, depth: (at.depth * 2).min(DEEPEST) },
            Self::Shallower => Depths { hot, depth: (at.depth / 2).max(1) },
        };
        (there != Depths { hot, ..at }).then_some(there)
    }
}

/// The next number of servers worth a try.
fn more(hot: usize) -> usize {
    hot * 2
}

fn less(hot: usize) -> usize {
    (hot * 2).div_ceil(3).min(hot - 1).max(1)
}

#[cfg(test)]
mod tests;

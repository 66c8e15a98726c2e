//! How many servers are shared, and how deep: found by trying (`pipelining = "auto"`).
//!
//! Few servers that never sleep beat many that do, but how few depends on processors, on what
//! statements do and on how far away the servers are: commits that wait for a disk want many. So
//! more or less of either is tried, and kept if more transactions come to their end, or as many in
//! less time. Where nothing is better, the next tries come later and later, until there is another
//! load. A time in which next to nothing is asked for does not count for that.
//!
//! A machine has good and bad moments, which differ by more than most tries do. So the best and
//! what is tried hold in turn, a moment each, and are compared as often as it takes to tell them
//! apart: once where they differ by far, up to [`PAIRS`] times where they hardly do. The first
//! step of a way is compared twice at least before it is believed, but if it is better by far:
//! while caches fill each moment is better than the one before, whatever holds. Each time that it
//! was in vain under this load it has to be compared once more. With another number of servers
//! processors first have to be shared out anew: what that is worth shows only then.
//!
//! What is counted is the pool's affair: transactions of all kinds, so that what is won where
//! servers are shared is not lost where they are not, nor by reads what is won by writes.

mod moves;

use std::time::Duration;

use self::moves::Move;
use super::Depths;
use crate::time::Time;

/// How much of what is counted may be chance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    /// So long each of the two holds.
    pub(super) slice: Duration,
    /// Two slices that are alike differ by such a part, however many transactions there are.
    pub(super) spread: f64,
    /// So much more is better.
    pub(super) better: f64,
}

/// Two that have been compared so often, or as long with longer slices, and are still much alike
/// are told apart by what has been seen.
const PAIRS: u32 = 6;

/// So often the first step of a way is compared, and once more for each time it was in vain.
const FIRST: u32 = 2;

/// What is so much worse by then is not tried on.
const HOPELESS: f64 = 0.75;

/// By so many times what may be chance the tried one has to be better, to be believed at once. It
/// is given up sooner: there is another try.
const SURE: f64 = 1.5;

/// The first step of a way is believed when it has held once only if it is so many times as good,
/// and was never in vain.
const BY_FAR: f64 = 1.5;

/// From fewer transactions in a slice nothing is learnt: it is made longer, up to this.
const FEW: u64 = 20;
const SLICE_AT_MOST: Duration = Duration::from_secs(1);

/// Where statements take more than such a part of a slice, many of those that end in it were sent
/// before: another goes by first.
const SLOW: u32 = 10;

/// Of so many units one must have met with others: where hardly any does, it does not matter how
/// many may.
const MEETING: u64 = 10;

/// Clients ask again as soon as they are answered where so many of those that ask have something
/// under way. Others come when they come, as many with less as with more, until it is too little:
/// then they pile up, which lasts longer than a try. So nothing is tried with those. (Measured with
/// 64 clients at half of what their pool can do: 12% to 25%; with 16 that ask at once: 60%.)
const ASK_AT_ONCE: f64 = 0.4;

/// Clients that do not have no fewer servers than that, for each is awake only now and then.
/// Measured with the same: of one in a hundred the answer takes 40 ms with one server, 4 ms with
/// three.
const OF_OTHERS: Depths = Depths { hot: 3, depth: 16 };

/// A rate, or how many units are under way, that differs so much from what it was is another load,
/// if that is seen so often in a row: chance does as much now and then, and would have everything
/// tried anew.
const ANOTHER_LOAD: f64 = 1.5;
const OTHERS: u32 = 8;
/// The same, if it is seen twice. Once is enough to give up a comparison.
const QUITE_ANOTHER_LOAD: f64 = 2.0;

/// While a load begins each moment is so much better than the one before: nothing is learnt then.
/// Nor is it where one is so much worse: what is tried next would be compared with a bad moment.
const BEGINS: f64 = 1.25;

/// So long nothing is tried when nothing was better; twice as long each time, up to the last.
const REST: Duration = Duration::from_secs(4);
const REST_AT_MOST: Duration = Duration::from_secs(32);
/// And so many times as long as what the tries before it have cost.
const DEAR: f64 = 50.0;

/// Finds how the servers of a pool are best shared.
#[derive(Debug)]
pub(crate) struct Climb {
    chance: Chance,
    /// The best so far.
    best: Depths,
    /// What the best was like when it was looked at last.
    score: Option<Score>,
    /// What is tried in its place.
    trial: Option<Trial>,
    /// What is to be tried next.
    next: Move,
    /// So often each has been no better under this load.
    failures: Failures,
    /// So many moves in a row were no better, or would have made no difference.
    in_vain: usize,
    /// What it was like when the first of those was tried, and how many slices in a row were
    /// otherwise, of which those that were so by far count for more.
    in_vain_under: Option<Score>,
    others: u32,
    /// Nothing is tried before this.
    rests_until: Option<Time>,
    rest: Duration,
    /// What those have cost: the seconds in which the best does as much as was not done.
    lost_s: f64,
    /// Until then is not counted what goes by: it is of other depths.
    settles_until: Option<Time>,
    since: Time,
    slice: Slice,
    /// What the slice is called.
    number: u32,
    /// What part of its clients has had something under way lately.
    under_way: f64,
}

/// What has been seen since [`Climb::since`].
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    /// Transactions that the pool had finished when it began.
    transactions: u64,
    /// Units that were sent to shared servers; that stood behind others, or had waited; and that
    /// had waited because all those servers were full.
    sent: u64,
    met: u64,
    waited: u64,
    /// Clients that have sent them.
    clients: u64,
    /// So many servers were shared at once, and so many units were on one of them.
    widest: usize,
    deepest: usize,
    /// Units that were answered, and the time that they took since their clients had asked.
    answered: u64,
    took: Duration,
}

/// Something that is compared with the best.
#[derive(Clone, Copy, Debug)]
struct Trial {
    since: Time,
    what: Move,
    /// So often it has to be compared before it is believed.
    least: u32,
    /// It holds now, and not the best.
    holds: bool,
    /// So often both have held.
    pairs: u32,
    of_best: Total,
    of_tried: Total,
}

/// How often moves were in vain, in the order of [`Move::ALL`].
#[derive(Clone, Copy, Debug, Default)]
struct Failures([u32; Move::ALL.len()]);

/// What slices have given, taken together.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    transactions: u64,
    elapsed: Duration,
    answered: u64,
    took: Duration,
}

/// What can be judged of that.
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
    Better,
    /// It may yet be either.
    Open,
    NotBetter,
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
            failures: Failures::default(),
            in_vain: 0,
            in_vain_under: None,
            others: 0,
            rests_until: None,
            rest: REST,
            lost_s: 0.0,
            settles_until: Some(Time::ZERO),
            since: Time::ZERO,
            slice: Slice::default(),
            number: 0,
            under_way: 1.0,
        }
    }

    /// What holds now in a pool of so many servers.
    pub(crate) fn depths(&self, servers: usize) -> Depths {
        let tried = self.trial.filter(|trial| trial.holds);
        let tried = tried.and_then(|trial| trial.what.from(self.best, servers));
        let mut holds = tried.unwrap_or(self.best);
        if !self.ask_at_once() {
            let Depths { hot, depth } = OF_OTHERS;
            holds = Depths { hot: holds.hot.max(hot), depth: holds.depth.max(depth) };
        }
        Depths { hot: holds.hot.min(servers).max(1), ..holds }
    }

    /// A unit was sent to a shared server, of so many. `waited`: since all of them were full;
    /// `behind`: so many others, there. `last`: in which slice its client has sent one last.
    pub(crate) fn sent(&mut self, hot: usize, waited: bool, behind: usize, last: &mut u32) {
        self.slice.clients += u64::from(std::mem::replace(last, self.number) != self.number);
        self.slice.widest = self.slice.widest.max(hot);
        self.slice.sent += 1;
        self.slice.deepest = self.slice.deepest.max(behind + 1);
        self.slice.met += u64::from(waited || behind > 0);
        self.slice.waited += u64::from(waited);
    }

    /// A unit was answered, so long after its client had asked.
    pub(crate) fn answered(&mut self, took: Duration) {
        self.slice.answered += 1;
        self.slice.took += took;
    }

    /// Time has gone by. `transactions`: what the pool has finished since ever.
    pub(crate) fn tick(&mut self, now: Time, transactions: u64, servers: usize) {
        let elapsed = now - self.since;
        let done = transactions.saturating_sub(self.slice.transactions);
        if let Some(until) = self.settles_until {
            if now >= until {
                self.settles(now, elapsed, done);
                self.begin(now, transactions);
            }
            return;
        }
        let seen = done.min(self.slice.answered);
        let has_seen_enough = elapsed >= self.length() && seen >= FEW;
        if !has_seen_enough && elapsed < SLICE_AT_MOST {
            return;
        }
        let slice = self.slice;
        self.begin(now, transactions);
        if seen < FEW {
            // Too little is shared to learn from. Nor is that a time to rest: where the same load
            // comes back, nothing is known to be otherwise.
            self.trial = None;
            self.score = None;
            self.others = 0;
            self.rests_until = self.rests_until.map(|until| until + elapsed);
            return;
        }
        let Slice { answered, took, .. } = slice;
        let total = Total { transactions: done, elapsed, answered, took };
        let under_way = took.div_duration_f64(elapsed) / slice.clients.max(1) as f64;
        self.under_way = f64::midpoint(self.under_way, under_way.min(1.0));
        if !self.ask_at_once() {
            self.trial = None;
            self.score = None;
            return;
        }
        match self.trial.take() {
            Some(trial) => self.compare(now, trial, total, servers),
            None => {
                let score = total.score();
                let was = self.score.replace(score);
                let is_steady = was.is_some_and(|was| is_within(score.rate / was.rate, BEGINS));
                if is_steady && !self.is_otherwise(score) && !self.rests(now) {
                    self.try_next(now, &slice, total, servers);
                }
            }
        }
    }

    /// Whether its clients ask again as soon as they are answered.
    fn ask_at_once(&self) -> bool {
        self.under_way >= ASK_AT_ONCE
    }

    /// Whether something else holds for a moment, and is counted.
    pub(super) fn is_trying(&self) -> bool {
        self.trial.is_some() || self.settles_until.is_some_and(|until| until > self.since)
    }

    /// What has been seen says nothing, since something else was tried beside it.
    pub(super) fn pause(&mut self, now: Time, transactions: u64) {
        self.begin(now, transactions);
    }

    /// From now on is counted.
    fn begin(&mut self, now: Time, transactions: u64) {
        self.since = now;
        self.slice = Slice { transactions, ..Slice::default() };
        self.number = self.number.wrapping_add(1);
    }

    /// So long a slice is.
    fn length(&self) -> Duration {
        self.trial.map_or(self.chance.slice, |trial| trial.what.length(self.chance))
    }

    /// Another holds from now on: the next slice is its own.
    fn switches(&mut self, now: Time, what: Move, time: f64) {
        let is_slow = Duration::from_secs_f64(time) * SLOW > self.chance.slice;
        let of_before = if is_slow { self.chance.slice } else { Duration::ZERO };
        let until = now + what.settling().max(of_before);
        self.settles_until = (until > now).then_some(until);
    }

    /// What holds is counted from now on, unless it has been so much worse already.
    fn settles(&mut self, now: Time, elapsed: Duration, done: u64) {
        self.settles_until = None;
        let Some(trial) = self.trial.filter(|trial| trial.holds && done >= FEW) else { return };
        let rate = done as f64 / elapsed.as_secs_f64();
        self.loses(elapsed, rate, &trial);
        if rate < HOPELESS * trial.of_best.score().rate {
            self.trial = None;
            self.is_in_vain(now, trial);
        }
    }

    /// What is tried has held for so long, and done so much.
    fn loses(&mut self, elapsed: Duration, rate: f64, trial: &Trial) {
        self.lost_s += elapsed.as_secs_f64() * (1.0 - rate / trial.of_best.score().rate);
    }

    /// Whether it is otherwise than when tries began to be in vain, which chance does now and
    /// then. All is open where that lasts: it is another load.
    fn is_otherwise(&mut self, score: Score) -> bool {
        let under = self.in_vain_under;
        let is_beyond = |times| under.is_some_and(|under| under.is_beyond(score, times));
        self.others = match (is_beyond(ANOTHER_LOAD), is_beyond(QUITE_ANOTHER_LOAD)) {
            (false, _) => 0,
            (true, false) => self.others + 1,
            (true, true) => self.others + OTHERS.div_ceil(2),
        };
        if self.others >= OTHERS {
            self.rest = REST;
            self.rests_until = None;
            self.failures = Failures::default();
            self.all_is_open();
        }
        self.others > 0
    }

    /// Whether nothing is to be tried now: all was, and not long ago.
    fn rests(&mut self, now: Time) -> bool {
        let Some(until) = self.rests_until else { return false };
        if now < until {
            return true;
        }
        self.rests_until = None;
        self.all_is_open();
        false
    }

    /// One of the two that are compared has held for a slice.
    fn compare(&mut self, now: Time, mut trial: Trial, total: Total, servers: usize) {
        let score = total.score();
        if !trial.holds {
            if score.is_beyond(trial.of_best.score(), QUITE_ANOTHER_LOAD) {
                // What has been compared is of no use any more.
                self.score = Some(score);
                return;
            }
            trial.of_best.add(total);
            trial.holds = true;
            self.trial = Some(trial);
            return self.switches(now, trial.what, score.time);
        }
        self.loses(total.elapsed, score.rate, &trial);
        trial.of_tried.add(total);
        trial.pairs += 1;
        trial.holds = false;
        match trial.verdict(now, self.chance) {
            Verdict::Open => {
                self.trial = Some(trial);
                self.switches(now, trial.what, score.time);
            }
            Verdict::Better => self.is_better(now, trial, total, servers),
            Verdict::NotBetter => self.is_in_vain(now, trial),
        }
    }

    /// What was tried is the best now.
    fn is_better(&mut self, now: Time, trial: Trial, total: Total, servers: usize) {
        let what = trial.what;
        self.best = what.from(self.best, servers).unwrap_or(self.best);
        self.score = Some(total.score());
        self.all_is_open();
        self.rest = REST;
        let (tried, best) = (trial.of_tried.score(), trial.of_best.score());
        if tried.rate < best.rate * self.chance.better {
            self.next = what.next();
            return;
        }
        // The same way once more.
        self.next = what;
        if what.from(self.best, servers).is_some() {
            self.tries(now, Trial::new(now, what, total, 1));
        }
    }

    fn is_in_vain(&mut self, now: Time, trial: Trial) {
        let of_best = trial.of_best.score();
        self.score = Some(of_best);
        self.switches(now, trial.what, of_best.time);
        self.failures.count(trial.what);
        self.in_vain += 1;
        self.in_vain_under.get_or_insert(of_best);
        self.next = trial.what.next();
        if self.has_tried_all() {
            self.begins_to_rest(now);
        }
    }

    /// What was in vain was so with other depths, under another load, or long ago.
    fn all_is_open(&mut self) {
        self.in_vain = 0;
        self.in_vain_under = None;
        self.others = 0;
        self.lost_s = 0.0;
    }

    fn has_tried_all(&self) -> bool {
        self.in_vain_under.is_some() && self.in_vain >= Move::ALL.len()
    }

    fn begins_to_rest(&mut self, now: Time) {
        let most = REST_AT_MOST.as_secs_f64();
        let dear = Duration::from_secs_f64((self.lost_s * DEAR).clamp(0.0, most));
        self.rests_until = Some(now + self.rest.max(dear));
        self.rest = (self.rest * 2).min(REST_AT_MOST);
    }

    /// Something else holds for a moment.
    fn try_next(&mut self, now: Time, slice: &Slice, of_best: Total, servers: usize) {
        for _ in Move::ALL {
            if self.has_tried_all() {
                return self.begins_to_rest(now);
            }
            let what = self.next;
            if what.from(self.best, servers).is_some_and(|there| slice.shows(what, there)) {
                return self.tries(now, Trial::new(now, what, of_best, self.failures.least(what)));
            }
            self.in_vain += 1;
            self.next = what.next();
        }
        // None has been tried.
        self.in_vain = 0;
    }

    fn tries(&mut self, now: Time, trial: Trial) {
        self.trial = Some(trial);
        self.switches(now, trial.what, trial.of_best.score().time);
    }
}

impl Slice {
    /// Whether what has been seen would have been otherwise there, where the move leads.
    fn shows(&self, what: Move, there: Depths) -> bool {
        match what {
            Move::MoreServers => self.met * MEETING >= self.sent,
            Move::FewerServers => self.widest > there.hot,
            Move::Deeper => self.waited * MEETING >= self.sent,
            Move::Shallower => self.deepest > there.depth,
        }
    }
}

impl Failures {
    fn count(&mut self, what: Move) {
        self.0[what as usize] = self.0[what as usize].saturating_add(1);
    }

    /// So often a move is to be compared.
    fn least(&self, what: Move) -> u32 {
        self.0[what as usize].saturating_add(FIRST).min(PAIRS)
    }
}

impl Total {
    fn add(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.elapsed += other.elapsed;
        self.answered += other.answered;
        self.took += other.took;
    }

    fn score(self) -> Score {
        Score {
            rate: self.transactions as f64 / self.elapsed.as_secs_f64(),
            time: self.took.as_secs_f64() / self.answered as f64,
        }
    }
}

impl Trial {
    /// One that begins, with the first slice of the best.
    fn new(now: Time, what: Move, of_best: Total, least: u32) -> Self {
        let of_tried = Total::default();
        Self { since: now, what, least, holds: true, pairs: 0, of_best, of_tried }
    }

    /// Whether what is tried is better than the best, as far as that can be told by now.
    fn verdict(&self, now: Time, chance: Chance) -> Verdict {
        let (tried, best) = (self.of_tried.score(), self.of_best.score());
        let rate = tried.rate / best.rate;
        let wanted = self.what.wants(tried.time / best.time, chance);
        let counted = |total: Total| 1.0 / total.transactions as f64;
        let may_be_chance = (chance.spread.powi(2) / f64::from(self.pairs)
            + counted(self.of_tried)
            + counted(self.of_best))
        .sqrt();
        let is_last = now - self.since >= 2 * PAIRS * self.what.length(chance);
        if rate < wanted * (-may_be_chance).exp() || is_last && rate < wanted {
            return Verdict::NotBetter;
        }
        let is_sure = rate >= wanted * (SURE * may_be_chance).exp();
        let is_by_far = self.least <= FIRST && rate >= BY_FAR;
        if (is_last || is_sure) && (self.pairs >= self.least || is_by_far) {
            return Verdict::Better;
        }
        Verdict::Open
    }
}

impl Score {
    /// Whether it is of a load that differs by so many times. The time alone says nothing: under
    /// the same load units take longer where a machine gives less.
    fn is_beyond(self, other: Self, times: f64) -> bool {
        let far = |one: f64, other: f64| !is_within(one / other, times);
        far(self.rate, other.rate) || far(self.under_way(), other.under_way())
    }

    /// So many are under way at once.
    fn under_way(self) -> f64 {
        self.rate * self.time
    }
}

/// Whether what is so many times as much differs by less than that, either way.
fn is_within(ratio: f64, times: f64) -> bool {
    (1.0 / times..times).contains(&ratio)
}

#[cfg(test)]
mod tests;

//! A simulation that fails is made smaller as long as it fails alike.
//!
//! Whatever there is in it is taken away: all of a kind at first, then halves of it, then smaller
//! parts, down to single things; and again from the start until nothing more can be taken away.
//! What is left is the least that the failure needs, as far as this finds it.

use crate::diet::{Diet, Item};
use crate::run::{Extent, Failure, Look, Options, once, twice};

/// A simulation that fails as another did, and needs less for it.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// What it came to, with its trace.
    pub failure: Box<Failure>,
    /// Simulations that were run to find it.
    pub runs: u32,
    /// Whether nothing more can be taken away; if not, the runs came to their end before.
    pub finished: bool,
}

/// How far the search has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulations that were run.
    pub runs: u32,
    /// How large the smallest of those was that failed alike.
    pub extent: Extent,
}

/// Makes a failure smaller, with so many runs at most, and tells of each of them.
///
/// `options` are those that it was found with.
pub fn shrink(
    failure: &Failure,
    options: &Options,
    most_runs: u32,
    tell: impl FnMut(Progress),
) -> Shrunk {
    let options = Options { diet: failure.diet.clone(), live: false, ..options.clone() };
    let best = Box::new(failure.clone());
    let mut search = Search {
        kind: failure.kind(),
        most_events: u64::MAX,
        options,
        best,
        runs: 0,
        most_runs,
        tell,
    };
    // As it is, looked at as all others will be.
    let found_again = search.attempt(failure.diet.clone());
    search.most_events = search.best.extent.events;
    while found_again && search.pass() {}
    search.end()
}

struct Search<T> {
    /// What kind of failure it has to be.
    kind: String,
    /// A failure that comes later is none that is easier to understand.
    most_events: u64,
    options: Options,
    /// The smallest failure so far.
    best: Box<Failure>,
    runs: u32,
    most_runs: u32,
    tell: T,
}

impl<T: FnMut(Progress)> Search<T> {
    /// Tries to take away whatever there is, once. Says whether anything was.
    fn pass(&mut self) -> bool {
        let before = self.best.diet.clone();
        for group in 0..self.best.menu.len() {
            self.take_from(group);
        }
        self.shorten();
        self.best.diet != before && !self.is_spent()
    }

    /// Takes away what it can of one kind.
    fn take_from(&mut self, group: usize) {
        let mut size = self.left_of(group).len();
        while size > 0 {
            for some in self.left_of(group).chunks(size) {
                // Others may have taken it with them.
                let left = self.left_of(group);
                let some: Vec<_> = some.iter().copied().filter(|it| left.contains(it)).collect();
                if !some.is_empty() {
                    self.attempt(self.best.diet.and(&some));
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    /// Lets everything be healed sooner, where it fails only after that.
    fn shorten(&mut self) {
        const CHOICES_MS: [u64; 6] = [100, 500, 1_000, 2_000, 5_000, 10_000];
        let now = self.best.diet.storm_ms.unwrap_or(u64::MAX);
        for ms in CHOICES_MS.into_iter().filter(|ms| *ms < now) {
            let mut sooner = self.best.diet.clone();
            sooner.storm_ms = Some(ms);
            let late = self.best.extent.micros > ms * 1_000;
            if late && self.attempt(sooner) {
                return;
            }
        }
    }

    /// Runs it with this diet, which is kept if it fails alike.
    fn attempt(&mut self, diet: Diet) -> bool {
        if self.is_spent() {
            return false;
        }
        self.runs += 1;
        let options = Options { diet, ..self.options.clone() };
        let failure = run(&self.best, &options, Look::Passing);
        let alike = failure.filter(|failure| {
            failure.kind() == self.kind && failure.extent.events <= self.most_events
        });
        let is_alike = alike.is_some();
        if let Some(alike) = alike {
            self.best = alike;
        }
        (self.tell)(Progress { runs: self.runs, extent: self.best.extent });
        is_alike
    }

    fn left_of(&self, group: usize) -> Vec<Item> {
        self.best.menu.get(group).cloned().unwrap_or_default()
    }

    fn is_spent(&self) -> bool {
        self.runs >= self.most_runs
    }

    /// The smallest, told.
    fn end(self) -> Shrunk {
        let finished = !self.is_spent();
        let diet = self.best.diet.clone().simplified();
        let options = Options { diet, ..self.options };
        let failure = run(&self.best, &options, Look::Told).unwrap_or(self.best);
        Shrunk { failure, runs: self.runs, finished }
    }
}

/// Runs a simulation as it takes to see a failure like that.
fn run(like: &Failure, options: &Options, look: Look) -> Option<Box<Failure>> {
    let seed = like.seed;
    if like.is_difference() {
        return twice(seed, options, look).err();
    }
    once(seed, options, look).err()
}

use std::fmt;

use pgweir_engine::Marks;

use crate::diet::{Diet, Item};
use crate::faults::Faults;
use crate::invariants::Invariant;
use crate::ledger::Counts;
use crate::panics;
use crate::random::{Dice, Part};
use crate::topology::Topology;
use crate::trace::Trace;
use crate::trap::Trap;
use crate::world::World;

/// What a simulation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it was made from.
    pub seed: u64,
    /// A hash of all that happened, in order.
    pub hash: u64,
    /// Times that something happened.
    pub events: u64,
    /// Virtual time, in microseconds.
    pub micros: u64,
    /// What was done in it.
    pub counts: Counts,
}

/// A simulation in which something was wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What it was made from, and what was taken away from that.
    pub seed: u64,
    /// As above.
    pub diet: Diet,
    /// What was wrong.
    pub cause: String,
    /// Everything that happened up to there, a line for each event; empty if that was not kept.
    pub trace: Vec<String>,
    /// How large it was up to there.
    pub extent: Extent,
    /// What could still be taken away from it.
    pub(crate) menu: Vec<Vec<Item>>,
}

/// How large a simulation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Times that something happened.
    pub events: u64,
    /// Virtual time, in microseconds.
    pub micros: u64,
    /// Clients that have come.
    pub clients: u64,
    /// Kinds of faults that may strike.
    pub faults: u64,
}

/// How to run a simulation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What goes wrong by itself; drawn from the seed if it is not given.
    pub faults: Option<Faults>,
    /// What is taken away from what the seed gives.
    pub diet: Diet,
    /// What is to count as a mistake besides.
    pub trap: Option<Trap>,
    /// Print the trace as it comes.
    pub live: bool,
    /// Do not run it again to see that it is the same.
    pub once: bool,
}

/// How closely a simulation is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// For the second time: whether it is the same, and nothing that was asserted before.
    Again,
    /// Only what is wrong is told.
    Passing,
    /// The text of the trace is kept.
    Told,
    /// It is printed besides, as it comes.
    Live,
}

/// Runs the simulation of this seed twice, and compares.
///
/// A failure is run once more to tell what happened.
pub fn run(seed: u64) -> Result<Report, Box<Failure>> {
    run_with(seed, &Options::default())
}

/// As [`run`], with options; [`Options::once`] is one of them.
pub fn run_with(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let look = if options.live { Look::Live } else { Look::Passing };
    let run = if options.once { once } else { twice };
    run(seed, options, look).map_err(|failure| match once(seed, options, Look::Told) {
        Err(told) => told,
        Ok(_) => failure,
    })
}

/// Whether some pools may have shared servers in the simulation of a seed.
#[must_use]
pub fn may_share(seed: u64) -> bool {
    Topology::draw(&mut Dice::of(seed, Part::Topology, 0), &Diet::default()).pipelines()
}

/// Runs the simulation twice, and compares.
pub(crate) fn twice(seed: u64, options: &Options, look: Look) -> Result<Report, Box<Failure>> {
    let (first, mut world) = play(seed, options, look)?;
    let second = once(seed, options, if look == Look::Told { look } else { Look::Again })?;
    if first == second {
        return Ok(first);
    }
    let cause = Invariant::SameAgain.broken("two runs of it differ");
    Err(failure(seed, options, cause, Some(&mut world)))
}

/// Runs the simulation.
pub(crate) fn once(seed: u64, options: &Options, look: Look) -> Result<Report, Box<Failure>> {
    play(seed, options, look).map(|(report, _)| report)
}

fn play(seed: u64, options: &Options, look: Look) -> Result<(Report, World), Box<Failure>> {
    let (text, live) = (matches!(look, Look::Told | Look::Live), look == Look::Live);
    // What was counted before is another simulation's.
    Marks::take();
    let mut world = World::new(seed, options, Trace::new(text, live))
        .map_err(|how| failure(seed, options, Invariant::RightIsAccepted.broken(how), None))?;
    if look == Look::Again {
        world.assert_nothing();
    }
    if let Err(cause) = panics::caught(|| world.run()) {
        return Err(failure(seed, options, cause, Some(&mut world)));
    }
    let report = Report {
        seed,
        hash: world.site.trace.hash(),
        events: world.extent().events,
        micros: world.now(),
        counts: Counts { marks: Marks::take(), ..world.site.ledger.counts },
    };
    Ok((report, world))
}

fn failure(seed: u64, options: &Options, cause: String, world: Option<&mut World>) -> Box<Failure> {
    let (trace, extent, menu) =
        world.map(|world| (world.take_trace(), world.extent(), world.menu())).unwrap_or_default();
    Box::new(Failure { seed, diet: options.diet.clone(), cause, trace, extent, menu })
}

impl Failure {
    /// What kind of failure it is: its cause without numbers, tags, and bytes.
    pub fn kind(&self) -> String {
        let first = self.cause.lines().next().unwrap_or_default();
        let is_plain =
            |word: &&str| !word.contains(|c: char| c.is_ascii_digit() || "\\\"".contains(c));
        first.split_whitespace().filter(is_plain).collect::<Vec<_>>().join(" ")
    }

    /// Whether it is that two runs were not the same, which no single run shows.
    pub(crate) fn is_difference(&self) -> bool {
        self.cause.starts_with(&Invariant::SameAgain.broken(""))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, micros, clients, faults } = self;
        let seconds = *micros as f64 / 1e6;
        write!(f, "{events} events in {seconds:.3} s, {clients} clients, {faults} kinds of faults")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LINES: usize = 60;
        let skipped = self.trace.len().saturating_sub(LINES);
        if skipped > 0 {
            writeln!(f, "({skipped} lines before)")?;
        }
        for line in &self.trace[skipped..] {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {} failed after {}: {}", self.seed, self.extent, self.cause)?;
        writeln!(f, "to see all of it: {}", self.diet.command(self.seed))
    }
}

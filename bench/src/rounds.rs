//! The order of a case: warm-up, then rounds in which every contender has its turn.
//!
//! Contenders alternate, so that what changes on the machine in minutes meets all of them alike;
//! the order turns by one each round, so that nobody always follows the same neighbour.
//!
//! In a sweep the pairs of the grid have rounds of their own before, to find the best of them, and
//! that one takes part in all others. Of many that are alike one is ahead by chance in rounds that
//! choose it: in rounds that it was not chosen by, chance is as good to both sides.

use crate::case::{Case, Server};
use crate::clock;
use crate::contender::{Contender, Target};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::lab::{Lab, Reach};
use crate::measure::Task;
use crate::metric::{Metric, Sample};
use crate::results::{CaseResult, Round};
use crate::scheduling::Group;

/// How much of a case is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Rounds that must count.
    pub(crate) rounds: u32,
    /// The length of one contender's turn.
    pub(crate) seconds: u32,
}

impl Pace {
    pub(crate) const FULL: Self = Self { rounds: 7, seconds: 8 };
    /// For a group of many cases with many contenders.
    pub(crate) const BRIEF: Self = Self { rounds: 5, seconds: 3 };
    /// For what is of interest from the start on.
    pub(crate) const COLD: Self = Self { rounds: 5, seconds: 10 };
    /// For grids.
    pub(crate) const SWEEP: Self = Self { rounds: 5, seconds: 2 };
    /// Rounds that find the best pair of a grid.
    pub(crate) const SEARCH_ROUNDS: u32 = 3;
}

/// What the results of a run belong to.
pub(crate) struct Origin {
    pub(crate) environment: Environment,
    /// See [`crate::commit`].
    pub(crate) commit: Option<String>,
}

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// In place of the cases' own.
    pub(crate) rounds: Option<u32>,
    /// In place of the cases' own.
    pub(crate) seconds: Option<u32>,
    pub(crate) contenders: Vec<Contender>,
}

impl Plan {
    /// How much of a case is measured.
    pub(crate) fn pace(&self, case: &Case) -> Pace {
        let Pace { rounds, seconds } = case.pace;
        Pace { rounds: self.rounds.unwrap_or(rounds), seconds: self.seconds.unwrap_or(seconds) }
    }

    /// Seconds that a case takes when no round is dropped, not counting starts and stops.
    pub(crate) fn estimate(&self, case: &Case) -> u32 {
        let Pace { rounds, seconds } = self.pace(case);
        let before_all = match case.wants_fresh_process() {
            true => 0,
            false => warm_up_seconds(seconds) + case.overhead_seconds(),
        };
        let turn = |contender| {
            seconds + case.overhead_seconds() + Task::before_each_turn_s(case, contender)
        };
        let (pairs, others) = self.pairs_and_others(case);
        let of_best = pairs.first().map_or(0, |pair| rounds * turn(*pair));
        let search: u32 = pairs.into_iter().map(|pair| search_rounds(rounds) * turn(pair)).sum();
        let of = |contender| rounds * turn(contender) + before_all;
        search + of_best + others.into_iter().map(of).sum::<u32>()
    }

    /// The pairs of a grid that take part in a case, and who takes part besides.
    fn pairs_and_others(&self, case: &Case) -> (Vec<Contender>, Vec<Contender>) {
        self.contenders_of(case).into_iter().partition(|one| one.is_pair())
    }

    /// Who takes part in a case.
    pub(crate) fn contenders_of(&self, case: &Case) -> Vec<Contender> {
        self.contenders.iter().copied().filter(|contender| case.admits(*contender)).collect()
    }

    /// Runs the case. Poolers are started for it and ended after it.
    pub(crate) fn run(&self, case: &Case, lab: &mut Lab, origin: &Origin) -> Result<CaseResult> {
        println!("{}: {}", case.name, case.title);
        // First, for it is left when all that the case has started is gone.
        let group = if case.counts_the_slowest() {
            Some(Group::join(&[lab.cluster()?.id()]))
        } else {
            None
        };
        let reach = lab.reach(case.server)?;
        let pace = self.pace(case);
        let task = Task::prepare(case, lab, pace.seconds)?;
        println!("  {}", task.describe());
        let pool_maximum_tps = match case.server {
            Server::Far => Some(lab.pool_maximum(&reach, pace.seconds)?),
            Server::Near | Server::Instant => None,
        };
        let stage = Stage { case, task: &task, lab, reach: &reach };
        let (pairs, others) = self.pairs_and_others(case);
        let mut stands: Vec<Stand> = Vec::new();
        for mut stand in others.into_iter().map(Stand::of) {
            if !case.wants_fresh_process() {
                stand.run(&stage, warm_up_seconds(pace.seconds))?;
            }
            stands.push(stand);
        }
        let mut result = CaseResult {
            case: case.name.clone(),
            environment: origin.environment.clone(),
            commit: origin.commit.clone(),
            measured_at: Some(clock::date()),
            seconds: pace.seconds,
            load: task.describe(),
            scheduling: group.as_ref().map(|(_, scheduling)| *scheduling),
            pool_maximum_tps,
            direct_maximum_tps: task.direct_maximum_tps(),
            search: Vec::new(),
            rounds: Vec::new(),
        };
        let mut pairs: Vec<Stand> = pairs.into_iter().map(Stand::of).collect();
        if !pairs.is_empty() {
            println!("  to find the best pair:");
            for _ in 0..search_rounds(pace.rounds) {
                result.search.push(round(&stage, &mut pairs, pace.seconds)?);
                pairs.rotate_left(1);
            }
        }
        if let Some(best) = result.best_pair() {
            println!("  beside the best, {}:", best.label());
            stands.push(Stand::of(best));
        }
        // After twice as many a case ends with those that count, be they too few.
        while (result.counted().count() as u32) < pace.rounds
            && (result.rounds.len() as u32) < pace.rounds * 2
        {
            let round = round(&stage, &mut stands, pace.seconds)?;
            result.rounds.push(round);
            stands.rotate_left(1);
        }
        lab.require_running()?;
        Ok(result)
    }
}

/// The length of the turn before the first round, which nobody looks at.
fn warm_up_seconds(seconds: u32) -> u32 {
    seconds.div_ceil(4).max(2)
}

/// So many rounds find the best pair, where it then takes part in so many.
fn search_rounds(rounds: u32) -> u32 {
    rounds.min(Pace::SEARCH_ROUNDS)
}

fn round(stage: &Stage<'_>, stands: &mut [Stand], seconds: u32) -> Result<Round> {
    let mut round = Round::default();
    let mut words = Vec::new();
    for stand in stands {
        let sample = stand.run(stage, seconds)?;
        words.push(format!("{} {}", stand.contender.label(), headline(&sample)));
        round.samples.insert(stand.contender, sample);
    }
    let under = round.under_yardstick();
    round.dropped = stage.case.yardstick && under == Some(true);
    let verdict = match under {
        Some(true) if stage.case.yardstick => "  (dropped: the relay is not ahead)",
        None if stage.case.yardstick => "  (no yardstick: it takes the relay and PgBouncer)",
        Some(_) | None => "",
    };
    println!("  {}{verdict}", words.join(" · "));
    Ok(round)
}

/// What all turns of a case have in common.
struct Stage<'a> {
    case: &'a Case,
    task: &'a Task,
    lab: &'a Lab,
    reach: &'a Reach,
}

/// A contender's place in a case.
struct Stand {
    contender: Contender,
    /// `None` before the first turn, and after a turn whose process must not be used again.
    target: Option<Target>,
}

impl Stand {
    fn of(contender: Contender) -> Self {
        Self { contender, target: None }
    }

    fn run(&mut self, stage: &Stage<'_>, seconds: u32) -> Result<Sample> {
        self.turn(stage, seconds).map_err(|error| match error {
            Error::Interrupted => error,
            error => Error::unfit(format!("{}: {error}", self.contender.label())),
        })
    }

    fn turn(&mut self, stage: &Stage<'_>, seconds: u32) -> Result<Sample> {
        let Stage { case, task, lab, reach } = stage;
        let mut target = match self.target.take() {
            Some(target) => target,
            None => lab.start(self.contender, case, reach)?,
        };
        if let Some(seconds) = Task::warm_up_s(case, self.contender) {
            task.run(lab, reach, &mut target, self.contender, seconds)?;
        }
        let sample = task.run(lab, reach, &mut target, self.contender, seconds)?;
        if !case.wants_fresh_process() {
            self.target = Some(target);
        }
        Ok(sample)
    }
}

/// The figure that tells most, for the progress line.
fn headline(sample: &Sample) -> String {
    let first = [Metric::Tps, Metric::WallS, Metric::ClientBytes].into_iter().find_map(|metric| {
        Some(format!("{} {}", metric.show(*sample.get(&metric)?), metric.label()))
    });
    first.unwrap_or_default()
}

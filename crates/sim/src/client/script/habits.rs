//! What clients like to do, each its own.

use crate::diet::{Diet, Item};
use crate::random::Dice;

/// What this client likes to do.
pub(super) struct Habits {
    /// Sends its next unit before the last one is answered.
    pub(super) pipelines: f64,
    /// Uses the extended protocol.
    pub(super) extended: f64,
    /// Uses named statements.
    pub(super) names: bool,
    /// Leaves state in its session.
    pub(super) stateful: bool,
    /// Changes settings.
    pub(super) sets: bool,
    pub(super) copies: f64,
    /// Asks for results of more than 1 MB.
    pub(super) vast: bool,
    /// Sends and asks for as much as a connection holds.
    pub(super) bulk: bool,
    /// Sends texts that are longer than what pgweir waits for in whole.
    pub(super) long: f64,
    /// Says more behind its farewell.
    pub(super) babbles: f64,
    /// Leaves in the middle of a batch, or of a COPY, or goes on with something else.
    pub(super) abandons: f64,
    /// Has much to say to other sessions, and listens to them.
    pub(super) gossips: bool,
    /// Changes what rows are like, and prepares what has such rows.
    pub(super) alters: bool,
    /// Wants what others have, too.
    pub(super) contends: bool,
    /// Thinks up to so many microseconds.
    pub(super) thinks: u64,
    /// Rests now and then when all is answered.
    pub(super) dozes: bool,
    /// Does hardly anything but what may share a server.
    pub(super) shares: bool,
}

/// Something that clients do, and that a simulation can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Habit {
    /// To send the next unit before the last one is answered.
    Pipelines,
    /// To use the extended protocol.
    Extended,
    /// To use named statements.
    Names,
    /// To leave state in the session.
    Stateful,
    /// To change settings.
    Sets,
    /// To do more than the odd COPY.
    Copies,
    /// To ask for results of more than 1 MB.
    Vast,
    /// To send and to ask for as much as a connection holds.
    Bulk,
    /// To send long texts.
    Long,
    /// To say more behind a farewell.
    Babbles,
    /// To leave in the middle of a batch or of a COPY, or to go on with something else.
    Abandons,
    /// To notify others, and to listen to them.
    Gossips,
    /// To change what rows are like, and to prepare what has such rows.
    Alters,
    /// To take locks, of which there are few.
    Contends,
    /// To rest now and then.
    Dozes,
    /// To ask for TLS first.
    Tls,
    /// To ask for settings at login.
    Settings,
    /// To be a replication client, which has a server of its own.
    Replicates,
    /// To do what may share a server, and hardly anything else.
    Shares,
}

impl Habit {
    pub(crate) const ALL: [Self; 19] = [
        Self::Pipelines,
        Self::Extended,
        Self::Names,
        Self::Stateful,
        Self::Sets,
        Self::Copies,
        Self::Vast,
        Self::Bulk,
        Self::Long,
        Self::Babbles,
        Self::Abandons,
        Self::Gossips,
        Self::Alters,
        Self::Contends,
        Self::Dozes,
        Self::Tls,
        Self::Settings,
        Self::Replicates,
        Self::Shares,
    ];

    /// What the command line calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pipelines => "pipelines",
            Self::Extended => "extended",
            Self::Names => "names",
            Self::Stateful => "stateful",
            Self::Sets => "sets",
            Self::Copies => "copies",
            Self::Vast => "vast",
            Self::Bulk => "bulk",
            Self::Long => "long",
            Self::Babbles => "babbles",
            Self::Abandons => "abandons",
            Self::Gossips => "gossips",
            Self::Alters => "alters",
            Self::Contends => "contends",
            Self::Dozes => "dozes",
            Self::Tls => "tls",
            Self::Settings => "settings",
            Self::Replicates => "replicates",
            Self::Shares => "shares",
        }
    }
}

impl Habits {
    /// `roomy`: it may ask for much. `customs`: what most clients do.
    pub(super) fn draw(dice: &mut Dice, roomy: bool, customs: &[Habit]) -> Self {
        let is_custom = |habit| customs.contains(&habit);
        let often = |habit, else_: f64| if is_custom(habit) { 0.7 } else { else_ };
        let common = |habit| if is_custom(habit) { 0.2 } else { 0.02 };
        let alters = dice.chance(often(Habit::Alters, 0.02));
        let bulk = dice.chance(often(Habit::Bulk, 0.1));
        Self {
            pipelines: if dice.chance(often(Habit::Pipelines, 0.4)) { 0.7 } else { 0.0 },
            extended: *dice.pick(&[0.0, 0.3, 0.6, 1.0]),
            names: dice.chance(often(Habit::Names, 0.15)) || alters,
            stateful: dice.chance(often(Habit::Stateful, 0.15)),
            sets: dice.chance(often(Habit::Sets, 0.3)),
            copies: if dice.chance(often(Habit::Copies, 0.3)) || bulk { 0.3 } else { 0.02 },
            vast: dice.chance(often(Habit::Vast, 0.03)) && roomy,
            bulk,
            long: common(Habit::Long),
            babbles: common(Habit::Babbles),
            abandons: common(Habit::Abandons),
            gossips: dice.chance(often(Habit::Gossips, 0.02)),
            alters,
            contends: dice.chance(often(Habit::Contends, 0.02)),
            thinks: *dice.pick(&[10, 1_000, 100_000]),
            dozes: dice.chance(often(Habit::Dozes, 0.3)),
            // No die is thrown elsewhere.
            shares: is_custom(Habit::Shares) && dice.chance(0.8),
        }
    }

    /// The same of a replication client: its backend speaks the simple protocol only
    /// (`forbidden_in_wal_sender`, postgres.c).
    pub(super) fn of_replication(self) -> Self {
        Self { extended: 0.0, abandons: 0.0, shares: false, ..self }
    }

    /// The same without those that are taken away.
    pub(super) fn without(self, diet: &Diet) -> Self {
        let has = |habit| !diet.lacks(Item::Habit(habit));
        Self {
            pipelines: if has(Habit::Pipelines) { self.pipelines } else { 0.0 },
            extended: if has(Habit::Extended) { self.extended } else { 0.0 },
            names: self.names && has(Habit::Names),
            stateful: self.stateful && has(Habit::Stateful),
            sets: self.sets && has(Habit::Sets),
            copies: if has(Habit::Copies) { self.copies } else { 0.02 },
            vast: self.vast && has(Habit::Vast),
            bulk: self.bulk && has(Habit::Bulk),
            long: if has(Habit::Long) { self.long } else { 0.0 },
            babbles: if has(Habit::Babbles) { self.babbles } else { 0.0 },
            gossips: self.gossips && has(Habit::Gossips),
            alters: self.alters && has(Habit::Alters),
            contends: self.contends && has(Habit::Contends),
            abandons: if has(Habit::Abandons) { self.abandons } else { 0.0 },
            thinks: self.thinks,
            dozes: self.dozes && has(Habit::Dozes),
            shares: self.shares && has(Habit::Shares),
        }
    }
}

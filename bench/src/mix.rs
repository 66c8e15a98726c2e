//! Two loads at the same time: sixty clients that select, and a few that do something else.
//!
//! What the few do takes long or waits. It must not hold up the selects, and must get its servers
//! though selects could keep them all.

use crate::case::SELECTS;
use crate::error::Result;
use crate::lab::Lab;
use crate::outcome::Outcome;
use crate::pgbench::{Load, Script};

/// Clients that select. All their transactions are logged: the slowest one counts.
pub(crate) const SELECTING: Load = Load { clients: 60, log_all: true, ..SELECTS };

/// Clients that do something else.
const FEW: u32 = 4;

/// The function that waits, of which pgweir is told that it changes nothing: else what calls it
/// would have a server alone from the start on.
pub(crate) const QUIET: &str = "bench_wait";

/// Made before the first turn, for all mixes.
pub(crate) const SCHEMA: &[&str] = &[
    "CREATE OR REPLACE FUNCTION bench_wait() RETURNS integer LANGUAGE plpgsql AS \
     $$ BEGIN PERFORM pg_sleep(0.2); RETURN 1; END $$",
    "CREATE OR REPLACE VIEW bench_slow AS SELECT bench_wait() AS waited",
    "DROP TABLE IF EXISTS bench_lock",
    "CREATE TABLE bench_lock (id integer PRIMARY KEY, changes integer NOT NULL)",
    "INSERT INTO bench_lock VALUES (1, 0)",
];

/// What the few do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Beside {
    /// A view over a function that waits, and is shared until the brake ends it ([`QUIET`]).
    SlowView,
    /// An update of a row that a connection besides, straight to the server, has locked for most
    /// of the time.
    RowLock,
    TpcbLike,
}

impl Beside {
    /// Behind "selects, and".
    pub(crate) fn says(self) -> &'static str {
        match self {
            Self::SlowView => {
                "4 that read a view whose function waits for 200 ms, from the start on"
            }
            Self::RowLock => "4 that wait for the lock of a row, from the start on",
            Self::TpcbLike => "4 with TPC-B-like transactions",
        }
    }

    /// Whether each turn has a process that has not run before, and knows nothing of the database.
    pub(crate) fn is_cold(self) -> bool {
        match self {
            Self::SlowView | Self::RowLock => true,
            Self::TpcbLike => false,
        }
    }

    /// The load as a reader would type it.
    pub(crate) fn describe(self) -> String {
        let mut words = format!("pgbench {}, and pgbench {}", SELECTING.args(), self.load().args());
        if let Some(locker) = self.locker() {
            words.push_str(&format!(", and directly pgbench {}", locker.args()));
        }
        words
    }

    /// What the few run.
    pub(crate) fn load(self) -> Load {
        let script = match self {
            Self::SlowView => Script::SlowView,
            Self::RowLock => Script::WantLock,
            Self::TpcbLike => Script::TpcbLike,
        };
        Load { script, clients: FEW, ..SELECTS }
    }

    /// Runs all of it against `port`.
    pub(crate) fn run(self, lab: &Lab, port: u16, seconds: u32) -> Result<Mixed> {
        let direct = lab.cluster()?.port;
        let locker = self.locker().map(|load| lab.start_pgbench(&load, direct, seconds));
        let locker = locker.transpose()?;
        let few = lab.start_pgbench(&self.load(), port, seconds)?;
        let selecting = lab.start_pgbench(&SELECTING, port, seconds)?;
        let mixed = Mixed { selects: selecting.finish()?, few: few.finish()? };
        locker.map(|locker| locker.finish()).transpose()?;
        Ok(mixed)
    }

    /// Who holds what the few wait for.
    fn locker(self) -> Option<Load> {
        match self {
            Self::RowLock => Some(Load { script: Script::HoldLock, clients: 1, ..SELECTS }),
            Self::SlowView | Self::TpcbLike => None,
        }
    }
}

/// What a mix gave.
pub(crate) struct Mixed {
    pub(crate) selects: Outcome,
    pub(crate) few: Outcome,
}

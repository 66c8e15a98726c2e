use std::net::SocketAddr;

use pgweir_testkit::Login;
use pgweir_testkit::frames::{bind, execute, extended, parse, query, sync};

use super::check::{self, Has};
use super::clauses::{Mood, SETTINGS, STATEMENTS};
use super::op::{Leaves, Look, Part, Text, Unit};
use super::pair::{Pair, READY};

/// A client with its twin, and what is known of them without asking.
pub(super) struct Speaker {
    pub(super) number: usize,
    pub(super) pair: Pair,
    /// Within a transaction block, and one that has failed.
    pub(super) in_block: bool,
    failed: bool,
    /// It may keep its server between transactions.
    pub(super) keeps: bool,
    /// What it has prepared by the protocol may stand on its server under its own names.
    shown: bool,
    /// What it has prepared may keep a server when it is run; and the unnamed statement may.
    prepared_keeps: bool,
    unnamed_keeps: bool,
    /// It may have a subscription, and another encoding than new connections.
    listens: bool,
    is_odd: bool,
}

/// What says of a client what it has, in one of three ways.
const PROBE: &str = "probe";

impl Speaker {
    pub(super) fn new(
        number: usize,
        pooled: (SocketAddr, Login),
        direct: (SocketAddr, Login),
    ) -> Self {
        let pair = Pair::new((pooled.0, &pooled.1), (direct.0, &direct.1));
        Self {
            number,
            pair,
            in_block: false,
            failed: false,
            keeps: false,
            shown: false,
            prepared_keeps: false,
            unnamed_keeps: false,
            listens: false,
            is_odd: false,
        }
    }

    /// It may have a server that others cannot get.
    pub(super) fn holds(&self) -> bool {
        self.in_block || self.keeps
    }

    pub(super) fn mood(&self) -> Mood {
        let Self { number, in_block, failed, keeps, .. } = *self;
        Mood { number, in_block, failed, keeps }
    }

    /// Whether this may keep its server.
    pub(super) fn would_keep(&self, units: &[Unit]) -> bool {
        let leaves = |it| units.iter().flat_map(Unit::texts).any(|(text, _)| text.leaves == it);
        let (listens, is_odd) = (leaves(Leaves::Subscription), leaves(Leaves::Encoding));
        let by_encoding = listens && (is_odd || self.is_odd) || is_odd && self.listens;
        let mut texts = units.iter().flat_map(Unit::texts);
        let by_text = texts.any(|(text, is_alone)| match text.leaves {
            Leaves::Encoding | Leaves::Nothing | Leaves::Reset | Leaves::Subscription => false,
            Leaves::State | Leaves::Names => true,
            Leaves::NamesUnlessAlone => !is_alone,
        });
        let mut parts = units.iter().flat_map(|unit| match unit {
            Unit::Query(_) => &[][..],
            Unit::Batch(parts) => parts,
        });
        let by_name = parts.any(|part| match part {
            Part::Bind(_, "") => self.unnamed_keeps,
            Part::Bind(..) => self.prepared_keeps,
            _ => false,
        });
        by_text || by_encoding || by_name
    }

    /// Whether the answers would differ by right: for what one unit says behind the end of a
    /// transaction that has failed, or behind ROLLBACK and ROLLBACK TO, of temporary tables, names
    /// (`docs/compatibility.md`, "currval and lastval"; `docs/differences.md`, "Prepared
    /// statements") and channels ("Who listens").
    pub(super) fn differs(&self, units: &[Unit]) -> bool {
        let differs = |(text, _): (&Text, bool)| match text.leaves {
            Leaves::Names | Leaves::NamesUnlessAlone => true,
            Leaves::State => text.sql.contains("TEMP"),
            Leaves::Encoding | Leaves::Nothing | Leaves::Reset | Leaves::Subscription => {
                ["UNLISTEN", "NOTIFY", "pg_notify"].iter().any(|word| text.sql.contains(word))
            }
        };
        (self.in_block || units.len() > 1)
            && units.iter().enumerate().any(|(at, unit)| {
                // A unit before may have failed.
                let ends: &[&str] = match self.failed || at > 0 {
                    true => &["ROLLBACK", "COMMIT", "END"],
                    false => &["ROLLBACK"],
                };
                let is_end =
                    |(text, _): &(&Text, bool)| ends.iter().any(|word| text.sql.starts_with(word));
                unit.texts().into_iter().skip_while(|it| !is_end(it)).any(differs)
            })
    }

    /// Says this, and compares the answers.
    pub(super) fn say(&mut self, units: &[Unit]) -> Result<Vec<String>, String> {
        self.keeps |= self.would_keep(units);
        for (text, _) in units.iter().flat_map(Unit::texts) {
            let names = matches!(text.leaves, Leaves::Names | Leaves::NamesUnlessAlone);
            self.shown |= names && self.keeps;
            self.listens |= text.leaves == Leaves::Subscription;
            self.is_odd |= text.leaves == Leaves::Encoding;
        }
        for unit in units {
            let Unit::Batch(parts) = unit else { continue };
            for part in parts {
                match part {
                    Part::Parse("", text) | Part::Run(text) => {
                        self.unnamed_keeps = text.leaves != Leaves::Nothing;
                    }
                    Part::Bind(..) if self.prepared_keeps || self.unnamed_keeps => {
                        self.listens = true;
                        self.is_odd = true;
                    }
                    Part::Parse(_, text) => {
                        self.prepared_keeps |= text.leaves != Leaves::Nothing;
                        self.shown |= self.keeps;
                    }
                    _ => {}
                }
            }
        }
        let bytes: Vec<u8> = units.iter().flat_map(Unit::bytes).collect();
        self.say_bytes(&bytes, units.len())
    }

    fn say_bytes(&mut self, bytes: &[u8], units: usize) -> Result<Vec<String>, String> {
        let lines = self.pair.say(bytes, units)?;
        let status = lines.last().and_then(|line| line.strip_prefix(READY)).unwrap();
        self.in_block = status != " I";
        self.failed = status == " E";
        Ok(lines)
    }

    /// It shows what its twin does.
    pub(super) fn is_looked_at(&mut self, look: Look) -> Result<(), String> {
        if look == Look::Not || self.failed {
            return Ok(());
        }
        if !self.in_block {
            let names = matches!(look, Look::Names | Look::NamesInSql);
            if names {
                let one = |name: &&str| [bind("", name, &[]), execute("", 0), sync()].concat();
                self.keeps |= self.prepared_keeps;
                let bytes: Vec<u8> = STATEMENTS.iter().flat_map(one).collect();
                self.say_bytes(&bytes, STATEMENTS.len())?;
            }
            if look == Look::NamesInSql && !self.in_block {
                self.keeps = true;
                self.shown = true;
                for name in STATEMENTS {
                    self.say_bytes(&query(&format!("EXECUTE {name}")), 1)?;
                }
            }
            if self.in_block {
                // What it has prepared may be a BEGIN.
                return Ok(());
            }
        }
        let (name, _) = SETTINGS[self.number % SETTINGS.len()];
        let has = match self.number % 3 {
            0 => {
                let shown = format!("SHOW {name}");
                self.say_bytes(&[query(&check::question()), query(&shown)].concat(), 2)?
            }
            1 => self.say_bytes(&extended(&check::question(), &[]), 1)?,
            _ if self.in_block => return Ok(()),
            _ => self.is_probed()?,
        };
        // What was reported behind the unit before has come by now.
        self.pair.compare_reports()?;
        if let (Some(has), false) = (check::has(&has), self.in_block) {
            self.note(has);
        }
        Ok(())
    }

    /// Asked by a statement of its own, which leaves the unnamed one alone.
    fn is_probed(&mut self) -> Result<Vec<String>, String> {
        let ask = [bind("", PROBE, &[]), execute("", 0), sync()].concat();
        let lines = self.say_bytes(&ask, 1)?;
        if lines.iter().all(|line| !line.starts_with("ErrorResponse")) {
            return Ok(lines);
        }
        self.shown |= self.keeps;
        self.say_bytes(&[parse(PROBE, &check::question(), &[]), sync()].concat(), 1)?;
        self.say_bytes(&ask, 1)
    }

    /// Its twin says what it has.
    fn note(&mut self, has: Has) {
        if has.statements == 0 {
            self.shown = false;
            self.prepared_keeps = false;
            self.listens = false;
            self.is_odd = false;
        }
        self.listens |= has.channels > 0;
        self.is_odd |= has.encoding;
        self.keeps =
            has.state > 0 || self.shown && has.statements > 0 || has.channels > 0 && has.encoding;
    }
}

//! What would become of a text, for whoever asks. It is judged as one that a client sends.

use std::sync::Arc;

use pgweir_sql::{Alone, Encoding, Heard, Loud, Pins, Sharing};
use pgweir_wire::HEADER_LEN;

use crate::keeping::Keeping;
use crate::pins::PinPolicy;
use crate::pipeline::{Access, Unshared};
use crate::units::UNIT_HELD_BYTES;

#[cfg(test)]
mod tests;

/// What decides in a pool where a text goes.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Why nothing shares a server, whatever it says.
    pub unshared: Option<Unshared>,
    pub(crate) loud: Arc<Loud>,
    /// How text in UTF-8 is to be read in its database.
    pub(crate) encoding: Encoding,
    /// `None`: its clients keep their servers whatever they do.
    pub(crate) keeping: Option<Keeping>,
}

/// Where a text goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Whether it may share a server, or by which rules it may not, in words.
    pub sharing: Result<Access, String>,
    /// What would keep its server, and what becomes of that.
    pub pins: Vec<(&'static str, PinPolicy)>,
    /// The name behind which that is, and what is there, where the text does not say it itself. Of
    /// what keeps no server and yet is not shared, what it leaves or asks for.
    pub because: Option<String>,
}

/// The rule that is no rule of texts, but of units: see [`UNIT_HELD_BYTES`].
const TOO_LONG: &str = "The statement is longer than 16 KiB.";

impl Rules {
    /// Where a text goes that a client of the pool sends in UTF-8, outside of a transaction.
    pub fn route(&self, text: &[u8]) -> Route {
        let encoding = self.encoding;
        let heard = pgweir_sql::hear(text, encoding, &self.loud);
        let keeping = self.keeping.as_ref();
        let pins = keeping.map_or(Pins::NONE, |it| it.of_text(&heard, text, encoding));
        let policy = |keeping: &Keeping| {
            pins.iter().map(|reason| (reason.name(), keeping.policy(reason))).collect()
        };
        Route {
            sharing: self.sharing(&heard, text),
            pins: keeping.map(policy).unwrap_or_default(),
            because: self.because(&heard, pins),
        }
    }

    fn sharing(&self, heard: &Heard, text: &[u8]) -> Result<Access, String> {
        let is_long = query_len(text) > UNIT_HELD_BYTES;
        let own = match Access::of(heard.sharing) {
            Ok(_) if is_long => Err(TOO_LONG),
            Ok(access) => Ok(access),
            Err(rule) => Err(rule.doc()),
        };
        let Some(unshared) = self.unshared else {
            return own.map_err(str::to_owned);
        };
        match own {
            Err(rule) if unshared != Unshared::Names => Err(format!("{} {rule}", unshared.doc())),
            // What its names stand for will be known only then.
            Err(_) | Ok(_) => Err(unshared.doc().to_owned()),
        }
    }

    fn because(&self, heard: &Heard, pins: Pins) -> Option<String> {
        let unseen = heard.unseen.as_ref();
        if let Some(unseen) = unseen.filter(|its| !its.pins.intersection(pins).is_empty()) {
            let of_name = self.loud.iter().find(|(name, _)| *name == unseen.name.as_bytes());
            return Some(match of_name {
                Some((_, effect)) => format!("{}: {}", unseen.name, effect.why),
                None => unseen.name.clone(),
            });
        }
        match heard.sharing {
            Sharing::Alone(Alone::Pin) if pins.is_empty() => Some(heard.pins.to_string()),
            Sharing::Alone(Alone::Unnamed) => self.loud.unnamed().map(str::to_owned),
            Sharing::Alone(_) | Sharing::Read | Sharing::Lock | Sharing::Write => None,
        }
    }
}

/// The length of a Query with this text.
fn query_len(text: &[u8]) -> usize {
    HEADER_LEN + text.len() + 1
}

use pgweir_sql::{Encoding, Heard, PinReason, Pins};

use pgweir_config::{LoudFunctions, PoolMode, SequenceAffinity};

use crate::pins::PinPolicy;
use crate::pool::PoolSpec;
use crate::scan::kept;

/// For what the servers of a pool are kept by their clients between transactions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keeping {
    /// A client that advances a sequence keeps its server.
    pub(crate) sequences: bool,
    /// A server is reset behind what was done there unseen, and not kept for it.
    pub(crate) resets_unseen: bool,
    pub(crate) refuse: Pins,
    pub(crate) ignore: Pins,
}

impl PoolSpec {
    /// What its configuration says of that, of servers that are kept as `mode` says.
    pub(crate) fn keeping(&self, mode: PoolMode) -> Keeping {
        let resets = self.loud_functions == LoudFunctions::Reset;
        Keeping {
            sequences: self.keeps_sequences(),
            resets_unseen: resets && mode != PoolMode::Session,
            refuse: self.pin_refuse,
            ignore: self.pin_ignore,
        }
    }

    /// Whether a client that advances a sequence keeps its server.
    pub(crate) fn keeps_sequences(&self) -> bool {
        self.sequence_affinity == SequenceAffinity::Pin
    }
}

impl Keeping {
    /// What a text keeps its server for that was read, if nothing of that is ignored.
    pub(crate) fn of_text(&self, heard: &Heard, text: &[u8], encoding: Encoding) -> Pins {
        let own = self.settled(heard.own, text, encoding);
        match &heard.unseen {
            Some(unseen) if !self.resets_unseen => {
                own.union(self.settled(unseen.pins, text, encoding))
            }
            Some(_) | None => own,
        }
    }

    /// What becomes of a statement that would keep its server for this.
    pub(crate) fn policy(&self, reason: PinReason) -> PinPolicy {
        if self.refuse.contains(reason) {
            PinPolicy::Refuse
        } else if self.ignore.contains(reason) {
            PinPolicy::Ignore
        } else {
            PinPolicy::Pin
        }
    }

    /// What of that keeps a server: settings are followed where their names are known.
    fn settled(&self, pins: Pins, text: &[u8], encoding: Encoding) -> Pins {
        let sets = pins.contains(PinReason::Setting) || pins.contains(PinReason::Reset);
        let is_clear = || pgweir_sql::custom_settings(text, encoding, &mut |_| {});
        let mut keeps = kept(pins).without(PinReason::Setting);
        if sets && !is_clear() {
            keeps = keeps.union(PinReason::Setting.into());
        }
        if pins.contains(PinReason::Sequence) && self.sequences {
            keeps = keeps.union(PinReason::Sequence.into());
        }
        keeps
    }
}

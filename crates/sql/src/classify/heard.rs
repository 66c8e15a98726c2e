//! What was heard of a text.

use crate::fingerprint::Fingerprint;
use crate::loud::Unseen;
use crate::pins::{PinReason, Pins};
use crate::sharing::{Alone, Sharing};

/// What a text is, once it is all there.
#[derive(Debug, Default)]
pub struct Heard {
    /// Why the server must stay with this client once the text has run.
    pub pins: Pins,
    /// What of that it says itself.
    pub own: Pins,
    /// How many statements it has; empty ones are none.
    pub statements: u32,
    /// As so many statements more counts what its DO blocks do, which may use what they have made,
    /// and remove it.
    pub statements_within: u32,
    /// What of it is done unseen, by what the text only names.
    pub unseen: Option<Box<Unseen>>,
    /// What it is like, whatever values stand in it.
    pub fingerprint: Fingerprint,
    /// Whether it may stand between those of other clients.
    pub sharing: Sharing,
    /// Its plan may keep what was computed for one client, and is another thing for others: by any
    /// of their settings.
    pub folds: bool,
}

impl Heard {
    /// What a text is that may be read in two ways.
    pub(super) fn or(mut self, other: Self) -> Self {
        self.statements = self.statements.max(other.statements);
        self.statements_within = self.statements_within.max(other.statements_within);
        self.pins = self.pins.union(other.pins);
        self.own = self.own.union(other.own);
        self.folds |= other.folds;
        if self.sharing != other.sharing {
            self.sharing = Sharing::Alone(Alone::Ambiguous);
        }
        if let Some(unseen) = other.unseen {
            self.add(*unseen);
        }
        self
    }

    /// What of that is done whenever a statement is run that it has prepared: names in a text are
    /// looked at where that stands.
    pub fn when_run(&self) -> Pins {
        let unseen = self.unseen.as_ref().map_or(Pins::NONE, |unseen| unseen.pins);
        self.own.without(PinReason::Names).union(unseen)
    }

    /// Something that it says itself besides.
    pub(crate) fn add_own(&mut self, reason: PinReason) {
        self.pins = self.pins.union(reason.into());
        self.own = self.own.union(reason.into());
    }

    /// Something that is done unseen besides.
    pub(crate) fn add(&mut self, unseen: Unseen) {
        self.pins = self.pins.union(unseen.pins);
        match &mut self.unseen {
            Some(known) => known.add(unseen),
            None => self.unseen = Some(Box::new(unseen)),
        }
    }
}

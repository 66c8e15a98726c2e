//! Whose sequences a server remembers: what `currval` and `lastval` say there.
//!
//! A session remembers what it has got of each sequence, and here sessions change hands. So a
//! server knows whose that is, and before a client's statement could tell it of another's the
//! server is made to forget all of it (DISCARD SEQUENCES, which may stand within a transaction):
//! what PostgreSQL says then is what it says in a session that has advanced no sequence (55000).
//!
//! The same holds for what a client has got itself and is not what it has got last: that is on
//! another server.
//!
//! A statement that asks waits until the server has said that it has forgotten. One that only
//! advances a sequence goes out behind the order to forget; and as long as nobody in the pool has
//! ever asked, nothing is forgotten for it, and what the server remembers is then of several.

use pgweir_config::SequenceAffinity;
use pgweir_sql::{PinReason, Pins};
use pgweir_wire::backend::{ErrorFields, Report};

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::Slot;
use crate::errors::LAST_VALUE_BEHIND_END;
use crate::marks::Mark;
use crate::pins::Verdict;
use crate::pool::PoolId;
use crate::relay::as_report;
use crate::reply::Sink;
use crate::server::{Server, ServerState};

/// Whose sequences a server remembers.
#[derive(Debug, Default)]
pub(crate) enum Sequences {
    /// It remembers none: so it is when it is new, and behind DISCARD ALL.
    #[default]
    Nobody,
    /// Nobody's but this client's, which may be gone, or have advanced others elsewhere since.
    Of(ClientId),
    /// It is told to forget all others', in front of what this client does, or within this unit.
    Forgetting(ClientId, Slot),
    /// Anybody's.
    Several,
    /// Anybody's: this is what it has said when it was to forget them.
    Stuck(Box<Report>),
}

/// What a statement may do with what its session remembers of sequences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses<'a> {
    /// It may advance one.
    advances: bool,
    /// It may ask for what was got last.
    asks: bool,
    /// It says that it asks, or does what nobody can read.
    tells: bool,
    /// Its own session may forget all that it has got.
    forgets: bool,
    /// Its text, or the beginning of that.
    text: &'a [u8],
}

/// The statement that makes a server forget, and its portal; see
/// [`Engine::run_beside`] for the name.
const NAME: &[u8] = b"pgweir_sequences";

impl<'a> Uses<'a> {
    /// Of a text of which too little has come to tell.
    pub(crate) fn unread(text: &'a [u8]) -> Self {
        Self { advances: true, asks: true, tells: false, forgets: false, text }
    }

    /// Of a text that leaves this.
    pub(crate) fn of_text(pins: Pins, text: &'a [u8]) -> Self {
        let word = b"discard";
        // RESET is one, too.
        let forgets = pins.contains(PinReason::Reset)
            && text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
        Self { forgets, text, ..Self::of(pins) }
    }

    /// Of what leaves this.
    pub(crate) fn of(pins: Pins) -> Self {
        use PinReason::{Block, LastValue, Names, Schema, Sequence, TempTable, Transient, Unclear};
        let any = |of: &[PinReason]| of.iter().any(|reason| pins.contains(*reason));
        // What a statement runs that was prepared before, and what is made now and used in one
        // string, is not looked at here.
        let anything = any(&[Block, Names, Schema, TempTable, Unclear]);
        Self {
            advances: anything || any(&[Sequence, Transient]),
            asks: anything || pins.contains(LastValue),
            tells: any(&[Block, LastValue, Unclear]),
            forgets: false,
            text: b"",
        }
    }
}

impl Engine {
    /// A client's statement is about to be sent: sees to it that its server tells it of nobody
    /// else's sequences.
    pub(crate) fn claim_sequences(
        &mut self,
        id: ClientId,
        server: ServerId,
        uses: Uses<'_>,
    ) -> Verdict {
        if uses.forgets && !uses.advances {
            self.clients[id].advanced_on = None;
        }
        if !uses.advances && !uses.asks {
            return Verdict::Sent;
        }
        let its = &mut self.servers[server];
        if its.dedicated || its.replies.skips() {
            return Verdict::Sent;
        }
        let pool = &mut self.pools[its.pool];
        if pool.spec.sequence_affinity == SequenceAffinity::None {
            Mark::SequencesLetBe.hit();
            if uses.advances {
                its.sequences = Sequences::Several;
            }
            return Verdict::Sent;
        }
        pool.last_values_asked |= uses.tells;
        let all_forget = pool.last_values_asked;
        let client = &mut self.clients[id];
        let was_here = client.advanced_on == Some(server);
        if uses.advances {
            client.advanced_on = Some(server);
        }
        match &its.sequences {
            Sequences::Of(owner) if *owner == id && was_here => return Verdict::Sent,
            // What it has got elsewhere since is newer.
            Sequences::Of(owner) if *owner == id => its.sequences = Sequences::Several,
            Sequences::Nobody => {
                if uses.advances {
                    its.sequences = Sequences::Of(id);
                }
                return Verdict::Sent;
            }
            Sequences::Forgetting(owner, _) if *owner == id && !its.replies.is_empty() => {
                return self.await_forgetting(id, server, uses);
            }
            Sequences::Stuck(why) if uses.asks => {
                // PostgreSQL forgets sequences, unless somebody keeps it from that.
                Mark::StuckTold.hit();
                let why = why.clone();
                its.sequences = Sequences::Several;
                return Verdict::Refused(why);
            }
            Sequences::Of(_)
            | Sequences::Forgetting(..)
            | Sequences::Several
            | Sequences::Stuck(_) => {}
        }
        if !uses.asks && !all_forget {
            Mark::SequencesOfSeveral.hit();
            its.sequences = Sequences::Several;
            return Verdict::Sent;
        }
        self.forget_sequences(id, server, uses)
    }

    /// Has a server forget what it remembers of others, in front of a client's statement.
    fn forget_sequences(&mut self, id: ClientId, server: ServerId, uses: Uses<'_>) -> Verdict {
        let its = &self.servers[server];
        if its.has_failed() {
            return self.claim_in_failed(server, uses);
        }
        let in_batch = self.clients[id].open_slot.is_some() || its.replies.in_batch();
        if in_batch {
            // In a transaction that they make fail the order would fail, too, and what stands
            // behind it would be passed over: a Parse that ends the unnamed statement all the same,
            // or a Query, whose end is awaited.
            if self.clients[id].has_units_before() {
                Mark::BatchHeldForSequences.hit();
                return Verdict::Later;
            }
        } else {
            if !self.clients[id].slots.is_empty() || !its.replies.is_empty() {
                Mark::HeldForSequences.hit();
                return Verdict::Later;
            }
            if its.status.in_block() && self.settle_cancel(server) {
                // It would hit what is meant to go unseen, and the transaction with it.
                Mark::SequencesAwaitCancel.hit();
                return Verdict::Later;
            }
        }
        Mark::SequencesForgotten.hit();
        let sink = if in_batch { Sink::Injected } else { Sink::Aside };
        let slot = self.clients[id].coming_slot();
        self.servers[server].sequences = Sequences::Forgetting(id, slot);
        self.run_beside(server, NAME, b"DISCARD SEQUENCES", sink);
        self.await_forgetting(id, server, uses)
    }

    /// A server has been told to forget: whoever asks waits until it has.
    fn await_forgetting(&mut self, id: ClientId, server: ServerId, uses: Uses<'_>) -> Verdict {
        if !uses.asks {
            Mark::SentBehindForgetting.hit();
            return Verdict::Sent;
        }
        if self.clients[id].open_slot.is_some() || self.servers[server].replies.in_batch() {
            Mark::SequencesForgottenInBatch.hit();
            self.ask_for_rows(server);
        }
        Verdict::Later
    }

    /// In a transaction that has failed nothing is forgotten, and nothing is run but its end and
    /// what stands behind that in the same string.
    fn claim_in_failed(&mut self, server: ServerId, uses: Uses<'_>) -> Verdict {
        if !pgweir_sql::exits(uses.text) {
            Mark::FailedForgetsNothing.hit();
            return Verdict::Sent;
        }
        if uses.asks {
            Mark::SequencesBehindFailed.hit();
            return Verdict::Refused(Box::new(LAST_VALUE_BEHIND_END.report(&[])));
        }
        Mark::SeveralBehindFailed.hit();
        self.servers[server].sequences = Sequences::Several;
        Verdict::Sent
    }

    /// A server has forgotten what it was told to.
    pub(crate) fn sequences_forgotten(&mut self, server: ServerId) {
        let its = &mut self.servers[server];
        let Sequences::Forgetting(owner, _) = its.sequences else {
            return Mark::ForgottenUnasked.hit();
        };
        // What one who is gone has sent behind that goes on.
        let advances = self.clients.find(owner).is_none_or(|its| its.advanced_on == Some(server));
        its.sequences = match advances {
            true => Sequences::Of(owner),
            false => {
                Mark::ForgottenForNobody.hit();
                Sequences::Nobody
            }
        };
        if let Some(client) = its.client()
            && self.clients.find(client).is_some_and(|client| client.holding)
        {
            self.wake(client);
        }
    }

    /// Something has failed that may be the order to forget.
    pub(crate) fn sequences_kept(&mut self, server: ServerId, sink: Sink, error: &ErrorFields<'_>) {
        let its = &mut self.servers[server];
        let Sequences::Forgetting(..) = its.sequences else { return };
        // What the statement was prepared as may be there still, and goes with the session.
        match sink {
            Sink::Aside => {
                Mark::SequencesStuck.hit();
                its.reset = true;
                its.sequences = Sequences::Stuck(Box::new(as_report(error)));
            }
            // The client is told.
            Sink::Injected => {
                Mark::StuckInBatch.hit();
                its.reset = true;
            }
            Sink::Client(_)
            | Sink::Converted(_)
            | Sink::EarlySync
            | Sink::Own
            | Sink::Refused(_) => {}
        }
    }

    /// A unit is over. If sequences were to be forgotten in it and it has not come to that, they
    /// are not.
    pub(crate) fn sequences_over(&mut self, server: ServerId, slot: Option<Slot>) {
        let its = &mut self.servers[server];
        let Sequences::Forgetting(_, within) = its.sequences else { return };
        if slot.is_none_or(|slot| slot == within) {
            Mark::SequencesNotForgotten.hit();
            its.sequences = Sequences::Several;
        }
    }

    /// A client has advanced a sequence on its server, perhaps by what nobody has looked at before.
    pub(crate) fn note_advanced(&mut self, id: ClientId, server: ServerId) {
        let its = &mut self.servers[server];
        let was_here = self.clients[id].advanced_on.replace(server) == Some(server);
        match its.sequences {
            Sequences::Forgetting(owner, _) if owner == id => {}
            Sequences::Of(owner) if owner == id && was_here => {}
            Sequences::Nobody => its.sequences = Sequences::Of(id),
            Sequences::Of(_)
            | Sequences::Forgetting(..)
            | Sequences::Several
            | Sequences::Stuck(_) => {
                Mark::AdvancedBesideOthers.hit();
                its.sequences = Sequences::Several;
            }
        }
    }

    /// Sequences of a pool's database may have been advanced that nobody knew of.
    pub(crate) fn doubt_sequences(&mut self, pool: PoolId) {
        for server in self.servers.keys() {
            let its = &mut self.servers[server];
            if its.pool == pool && its.touched && !its.remembers_its_own() {
                Mark::SequencesInDoubt.hit();
                its.sequences = Sequences::Several;
            }
        }
    }

    /// The free server that remembers this client's sequences, where that matters to its pool.
    pub(crate) fn idle_with_sequences(&self, id: ClientId, pool: PoolId) -> Option<ServerId> {
        let last = self.clients[id].advanced_on.filter(|_| self.pools[pool].last_values_asked)?;
        let its = self.servers.find(last)?;
        let is_free = matches!(its.state, ServerState::Idle) && its.pool == pool;
        let is_own = matches!(its.sequences, Sequences::Of(owner) if owner == id);
        (is_free && is_own).then_some(last)
    }
}

impl Server {
    /// Whether it remembers nobody's but those of the client that it is lent to.
    fn remembers_its_own(&self) -> bool {
        let holder = self.client();
        match self.sequences {
            Sequences::Of(owner) | Sequences::Forgetting(owner, _) => holder == Some(owner),
            Sequences::Nobody | Sequences::Several | Sequences::Stuck(_) => false,
        }
    }
}

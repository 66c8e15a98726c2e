//! What became of the listening that a client's server was told to take over, within a block.
//!
//! It goes by the tags of what the client says. ROLLBACK is that of the whole block, or of what
//! came behind a savepoint, and which one it does not say.

use pgweir_wire::backend::{self, Tag};
use pgweir_wire::{HEADER_LEN, Header};

use super::{Source, Subscription};
use crate::Engine;
use crate::action::ClientId;
use crate::marks::Mark;

/// What its client has done since its server was told to listen, within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SinceShown {
    /// Nothing that changes that.
    Nothing,
    /// It has ended to listen, on the channel of the marks as well, maybe.
    Unlistened,
    /// The same, and can come back to that.
    Saved,
    /// It has come back to that, or to what was before.
    InDoubt,
    /// It has changed nothing of that, and has committed, though the block may go on (AND CHAIN).
    Committed,
    /// The same, and that it has ended to listen is committed, on some channel or on all.
    UnlistenCommitted,
    /// What is in doubt is committed: if the mark is, then so is that it listens no more.
    CommittedInDoubt,
}

impl Subscription {
    /// Its client was answered with this tag.
    pub(crate) fn note_tag(&mut self, tag: &[u8]) {
        if !matches!(self.source, Source::ToServer { server: false, .. }) {
            return;
        }
        let verb = tag.split(|&byte| byte == b' ' || byte == 0).next();
        self.since_shown = match (self.since_shown, verb) {
            (SinceShown::Nothing, Some(b"UNLISTEN")) => SinceShown::Unlistened,
            (SinceShown::Unlistened, Some(b"SAVEPOINT")) => SinceShown::Saved,
            (SinceShown::Nothing | SinceShown::Unlistened, Some(b"ROLLBACK")) => {
                // Maybe it is not, and still listens: to tell it again, when that is needed, would
                // undo nothing but what surely is rolled back.
                Mark::ShownRolledBack.hit();
                self.listens_elsewhere();
                SinceShown::Nothing
            }
            (SinceShown::Saved, Some(b"ROLLBACK")) => {
                Mark::UnlistenInDoubt.hit();
                SinceShown::InDoubt
            }
            (SinceShown::Nothing, Some(b"COMMIT")) => {
                Mark::ShownCommitted.hit();
                SinceShown::Committed
            }
            (SinceShown::Unlistened | SinceShown::Saved, Some(b"COMMIT")) => {
                Mark::UnlistenCommitted.hit();
                SinceShown::UnlistenCommitted
            }
            (SinceShown::InDoubt, Some(b"COMMIT")) => SinceShown::CommittedInDoubt,
            (same, _) => same,
        };
    }

    /// Its unit is over, outside of any block. Says whether it is in doubt that it listens still.
    fn settle_block(&mut self) -> bool {
        let Source::ToServer { server: false, listener } = self.source else { return false };
        // One that was not ready has passed nothing.
        let passed = listener && !self.missed;
        let in_doubt = self.since_shown == SinceShown::CommittedInDoubt;
        let committed =
            matches!(self.since_shown, SinceShown::Committed | SinceShown::UnlistenCommitted);
        if in_doubt && passed || committed {
            // It has not heard the mark, since it listens no more; nor is it to hear of
            // anything but what it has listened on since, which its server is asked.
            Mark::ListensNoMore.hit();
            self.source = Source::Server;
            self.pending.clear();
            self.early.clear();
            self.missed = true;
            return false;
        }
        self.listens_elsewhere();
        in_doubt
    }

    /// Its client runs what ends to listen, and no tag tells of it: a function does so.
    pub(crate) fn note_untold(&mut self) {
        self.may_unlisten = true;
    }

    /// Its server has heard the mark, so it listens on some channel yet. On others it may not any
    /// more, and of those it is told nothing, though it was notified when it still did: PostgreSQL
    /// looks at that when it tells. Which ones these are its server is asked.
    pub(super) fn heard_mark(&mut self) {
        if !matches!(self.source, Source::ToServer { .. }) {
            return;
        }
        self.sifts = match self.since_shown {
            SinceShown::UnlistenCommitted | SinceShown::CommittedInDoubt => true,
            SinceShown::Nothing
            | SinceShown::Unlistened
            | SinceShown::Saved
            | SinceShown::InDoubt
            | SinceShown::Committed => self.may_unlisten,
        };
    }

    /// Nobody will say on what it listens yet. Says whether something was held back for that.
    pub(super) fn sift_nothing(&mut self) -> bool {
        Mark::NothingSifted.hit_if(self.sifts);
        std::mem::take(&mut self.sifts)
    }

    /// It is known on what it listens: nothing else is to be told.
    pub(super) fn sift(&mut self) {
        self.may_unlisten = false;
        if !std::mem::take(&mut self.sifts) {
            return;
        }
        let said = std::mem::take(&mut self.pending);
        let mut rest = &said[..];
        while let Ok(Some(header)) = Header::parse(rest) {
            let (message, behind) = rest.split_at(header.message_len().min(rest.len()));
            rest = behind;
            let channel = backend::parse_notification(&message[HEADER_LEN..]).map(|told| told.0);
            let is_told = match Tag::of(header) {
                Ok(Tag::NotificationResponse) => {
                    channel.is_ok_and(|channel| self.channels.contains(channel))
                }
                // A notice of ours.
                Ok(_) | Err(_) => true,
            };
            Mark::PendingSifted.hit_if(!is_told);
            if is_told {
                self.pending.extend_from_slice(message);
            }
        }
    }

    /// Whether it is not known yet if it listens at all.
    pub(super) fn in_doubt(&self) -> bool {
        self.source == Source::Listener && self.since_shown == SinceShown::CommittedInDoubt
    }

    /// Nobody will ever know: it does.
    pub(super) fn no_doubt(&mut self) {
        self.since_shown = SinceShown::Nothing;
    }

    /// That its server was to listen is rolled back, and so is the mark.
    fn listens_elsewhere(&mut self) {
        Mark::ListeningUndone.hit();
        self.source = Source::Listener;
    }
}

impl Engine {
    /// A unit of a client is over, within a transaction block or not.
    pub(crate) fn listening_goes_on(&mut self, client: ClientId, in_block: bool) {
        let its = &mut self.clients[client];
        let pool = its.pool();
        let Some(own) = &mut its.subscription else { return };
        own.forgoes = false;
        if !in_block && own.settle_block() {
            // Which of its two marks the listener passes first says so.
            let listener = pool.and_then(|pool| self.pools[pool].listener.as_mut());
            match listener.and_then(|listener| listener.mark_loss(client)) {
                Some(number) => own.mark = number,
                None => {
                    Mark::DoubtUnheard.hit();
                    own.no_doubt();
                }
            }
        }
    }

    /// The listener passes a mark of a client for which it listens, the last one or not. If it was
    /// in doubt whether that client listens still, it is not any more.
    pub(super) fn doubt_ends(&mut self, client: ClientId, is_last: bool) {
        let its = &mut self.clients[client];
        let Some(own) = &mut its.subscription else { return };
        if !own.in_doubt() {
            return;
        }
        own.since_shown = SinceShown::Nothing;
        if !is_last {
            // The sweep tells the listener.
            Mark::DoubtEndsListening.hit();
            self.unsubscribe(client);
        }
        if self.clients[client].holding {
            self.wake(client);
        }
    }
}

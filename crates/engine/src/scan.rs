//! The texts of a client's statements are read: for what they leave on the server, and for how many
//! of them there are.

use pgweir_sql::{Classifier, Encoding, Heard, PinReason, Pins, Unseen};

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::{Client, Slot};
use crate::marks::Mark;
use crate::prepared;
use crate::track::Said;
use crate::units::until_nul;

/// What keeps no server. What RESET and DISCARD take away is put back before the next transaction,
/// and in session mode behind the session.
/// To keep the server for every nextval would keep it for half of all applications: only a pool for
/// those that live on the last value does so. The others leave nothing.
const PASSING: [PinReason; 11] = [
    PinReason::Commit,
    PinReason::Ends,
    PinReason::LastValue,
    PinReason::Local,
    PinReason::Names,
    PinReason::Notify,
    PinReason::Reset,
    PinReason::Schema,
    PinReason::Sequence,
    PinReason::Transient,
    PinReason::Unlisten,
];

impl Engine {
    /// Looks for state that a statement leaves behind, and gives it if the text is all there, and
    /// was `heard`.
    pub(crate) fn scan_text(
        &mut self,
        id: ClientId,
        text: &[u8],
        heard: Option<Heard>,
        slot: Slot,
    ) -> Option<Pins> {
        let server = self.clients[id].server()?;
        if let Some(heard) = heard {
            return Some(self.has_read(id, heard, Said { text: Some(text), slot, custom: None }));
        }
        Mark::TextInPieces.hit();
        let loud = self.loud_for(id, self.servers[server].pool);
        let mut scan = Classifier::in_encoding(self.encoding_of(id, server)).knowing(loud);
        scan.feed(text);
        self.clients[id].body.scan = Some(Box::new(scan));
        None
    }

    /// The same for a piece of a message whose text has begun before.
    pub(crate) fn scan_piece(&mut self, id: ClientId, piece: &[u8]) {
        let body = &mut self.clients[id].body;
        let Some(mut scan) = body.scan.take() else { return };
        let text = until_nul(piece);
        scan.feed(text);
        if text.len() < piece.len() || body.left == 0 {
            let slot = self.clients[id].last_slot();
            let said = Said { text: None, slot, custom: None };
            self.has_read(id, scan.finish_hearing(), said);
        } else {
            body.scan = Some(scan);
        }
    }

    /// A text is all there: of a Query, if that is what the client has sent last.
    fn has_read(&mut self, id: ClientId, heard: Heard, said: Said<'_>) -> Pins {
        if let Some(server) = self.clients[id].server() {
            self.servers[server].replies.note_statements(heard.statements);
        }
        self.has_heard(id, &heard, said);
        heard.pins
    }

    /// What a text leaves that is sent now, or what it was prepared as.
    pub(crate) fn has_heard(&mut self, id: ClientId, heard: &Heard, said: Said<'_>) {
        let client = &mut self.clients[id];
        client.follow_schema(heard);
        if !heard.own.contains(PinReason::Unlisten) {
            client.runs_untold(heard.pins);
        }
        let ends = heard.pins.contains(PinReason::Commit) && client.has_changed_settings();
        client.encoding_in_doubt |= ends || may_change_encoding(heard, said.text);
        let own = heard.own.union(client.temporary_by_path(heard));
        self.leaves(id, own, Some(said));
        // Each of its statements may have used what the one before it has made.
        for _ in 1..(heard.statements + heard.statements_within).min(3) {
            self.clients[id].follow_schema(heard);
        }
        if heard.pins.contains(PinReason::Prepared) {
            self.clients[id].note_prepared(heard.when_run());
        }
        if heard.pins.contains(PinReason::Names) {
            self.runs_prepared(id);
            let server = self.clients[id].server();
            // It finds ours in pg_prepared_statements, and may remove what all clients share.
            let ours = said.text.is_none_or(prepared::may_name_ours);
            if let Some(server) = server.filter(|_| ours) {
                Mark::OursNamed.hit();
                self.servers[server].reset = true;
            }
        }
        if let Some(unseen) = &heard.unseen {
            Mark::Unseen.hit();
            self.unseen(id, (**unseen).clone(), Some(said));
        }
    }

    /// A client runs a statement that it has prepared on its server for itself, whichever: what
    /// that leaves may be there again, though it was not when it was asked for last. Settings that
    /// may be changed are asked for in any case, when the server goes back.
    pub(crate) fn runs_prepared(&mut self, id: ClientId) {
        let Some(server) = self.clients[id].server() else { return };
        let pins = self.without_ignored(server, self.clients[id].prepared_leaves());
        if !pins.is_empty() {
            Mark::PreparedIsRun.hit();
            self.pin(id, pins);
        }
        let client = &mut self.clients[id];
        client.uses_schema();
        client.local_settings |= client.prepared.contains(PinReason::Local);
        client.reads_otherwise |= client.has_changed_settings();
        self.servers[server].reset |= client.prepared.contains(PinReason::Names);
        self.servers[server].plans.made_under_others();
        client.runs_untold(client.prepared);
        // A DEALLOCATE leaves nothing, and may end what the server is kept for.
        client.doubt(client.prepared);
    }

    /// This is left on the client's server by what it has only named.
    pub(crate) fn unseen(&mut self, id: ClientId, unseen: Unseen, said: Option<Said<'_>>) {
        let Some(server) = self.clients[id].server() else { return };
        if unseen.pins.contains(PinReason::Names) {
            // A DEALLOCATE of which no reply tells: what is there for all clients may be gone.
            Mark::NamesGoneUnseen.hit();
            self.servers[server].reset = true;
        }
        if self.resets_unseen(server) {
            let left = self.without_ignored(server, kept(unseen.pins));
            let its = &mut self.servers[server];
            its.plans.made_under_others();
            its.unseen = its.unseen.union(left);
            let client = &mut self.clients[id];
            let sets_here = unseen.pins.contains(PinReason::Local);
            client.local_settings |= sets_here;
            client.reads_otherwise |= sets_here;
            return;
        }
        let slot = self.clients[id].last_slot();
        let said = said.unwrap_or(Said { text: Some(b""), slot, custom: None });
        self.leaves(id, unseen.pins, Some(Said { custom: Some(&unseen.custom), ..said }));
        if !self.without_ignored(server, kept(unseen.pins)).is_empty() {
            self.clients[id].note_unseen(&unseen.name);
        }
    }

    /// Whether a text may name what its client has prepared, or something else that is prepared on
    /// this server, also within what it only names.
    pub(crate) fn names_prepared(&self, server: ServerId, heard: &Heard) -> bool {
        let pins = if self.resets_unseen(server) { heard.own } else { heard.pins };
        pins.contains(PinReason::Names) || pins.contains(PinReason::Prepared)
    }

    /// Whether a server is reset behind what was done there unseen, and not kept for it.
    pub(crate) fn resets_unseen(&self, server: ServerId) -> bool {
        let server = &self.servers[server];
        self.pools[server.pool].spec.keeping(server.mode).resets_unseen
    }

    /// The encoding of what a client sends now. What a server will report of a unit that it has not
    /// answered is not known.
    fn encoding_of(&self, id: ClientId, server: ServerId) -> Encoding {
        let in_doubt = self.clients[id].encoding_in_doubt;
        Mark::EncodingInDoubt.hit_if(in_doubt);
        if in_doubt { Encoding::Opaque } else { self.servers[server].encoding }
    }

    /// Reads a text that is all there.
    pub(crate) fn read_text(&self, id: ClientId, text: &[u8]) -> Heard {
        let server = self.clients[id].server();
        let encoding = server.map(|server| self.encoding_of(id, server)).unwrap_or_default();
        match self.clients[id].pool() {
            Some(pool) => pgweir_sql::hear(text, encoding, self.loud_for(id, pool)),
            // No mark: whoever sends text has logged in.
            None => Heard::default(),
        }
    }

    /// A statement leaves this on the client's server. `said`: which it is.
    pub(crate) fn leaves(&mut self, id: ClientId, mut pins: Pins, said: Option<Said<'_>>) {
        if pins.is_empty() {
            return;
        }
        if let Some(server) = self.clients[id].server() {
            pins = self.note_changes(id, server, pins, said);
            if pins.contains(PinReason::Schema) {
                self.note_schema(id, server);
            }
            if pins.contains(PinReason::Sequence) {
                self.note_advanced(id, server);
            }
            self.servers[server].reset |= pins.contains(PinReason::Reset);
        }
        let mut kept = kept(pins);
        let pool = self.clients[id].pool();
        let keeps_sequences = pool.is_some_and(|id| self.pools[id].spec.keeps_sequences());
        if pins.contains(PinReason::Sequence) && keeps_sequences {
            Mark::SequencesKept.hit();
            kept = kept.union(PinReason::Sequence.into());
        }
        if let Some(server) = self.clients[id].server() {
            kept = self.without_ignored(server, kept);
        }
        self.pin(id, kept);
        let client = &mut self.clients[id];
        client.local_settings |= pins.contains(PinReason::Local);
        client.may_commit |= pins.contains(PinReason::Commit);
        if said.is_some() {
            client.doubt(pins);
        }
    }
}

impl Client {
    /// What a text leaves besides if it creates something while `search_path` may be what no text
    /// says, so that this may be temporary: settings were changed since they were known last, or
    /// are by what the text does or names before.
    fn temporary_by_path(&mut self, heard: &Heard) -> Pins {
        let runs = heard.pins.contains(PinReason::Names);
        let prepared = if runs { self.prepared } else { Pins::NONE };
        let pins = heard.pins.union(prepared);
        self.local_settings |= pins.contains(PinReason::Local);
        let sets = pins.contains(PinReason::Setting) || self.has_changed_settings();
        let is_temporary = sets && heard.own.contains(PinReason::Schema);
        Mark::TemporaryByPath.hit_if(is_temporary);
        if is_temporary { PinReason::TempTable.into() } else { Pins::NONE }
    }

    /// It runs what leaves this, and no tag tells of it. What may do anything is not taken for
    /// UNLISTEN: what its client notifies itself of would come late for that.
    fn runs_untold(&mut self, pins: Pins) {
        if let Some(own) = &mut self.subscription
            && pins.contains(PinReason::Unlisten)
        {
            own.note_untold();
        }
    }

    /// A statement that it prepares for itself may leave this when it is run.
    pub(crate) fn note_prepared(&mut self, pins: Pins) {
        self.prepared = self.prepared.union(pins);
    }
}

/// What of that keeps a server.
pub(crate) fn kept(pins: Pins) -> Pins {
    PASSING.into_iter().fold(pins, Pins::without)
}

/// Whether a text may change the encoding of those behind it.
pub(crate) fn may_change_encoding(heard: &Heard, text: Option<&[u8]>) -> bool {
    let pins = heard.pins;
    // Nor does it name what is set by what it only names.
    let text = text.filter(|_| heard.unseen.is_none());
    let whatever = [PinReason::Names, PinReason::Reset, PinReason::Unclear];
    let some = [PinReason::Local, PinReason::Setting];
    let names_it = |text: &[u8]| {
        let names = |name: &[u8]| text.windows(name.len()).any(|it| it.eq_ignore_ascii_case(name));
        names(b"encoding") || names(b"names")
    };
    whatever.iter().any(|reason| pins.contains(*reason))
        || some.iter().any(|reason| pins.contains(*reason)) && text.is_none_or(names_it)
}

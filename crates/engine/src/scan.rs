//! The texts of a client's statements are read: for what they leave on the server, and for how many
//! of them there are.

use pgweir_sql::{Classifier, PinReason, Pins};

use crate::Engine;
use crate::action::ClientId;
use crate::client::Slot;
use crate::marks::Mark;
use crate::track::Said;
use crate::units::until_nul;

/// What keeps no server. What RESET and DISCARD take away is put back before the next transaction,
/// and in session mode behind the session.
/// A sequence's last value is not tracked yet, and to keep the server for every nextval would keep
/// it for half of all applications. The others leave nothing.
const PASSING: [PinReason; 6] = [
    PinReason::Commit,
    PinReason::Ends,
    PinReason::Local,
    PinReason::Names,
    PinReason::Reset,
    PinReason::Sequence,
];

impl Engine {
    /// Looks for state that a statement leaves behind, and gives it if the text is all there, which
    /// is `ended` then.
    pub(crate) fn scan_text(
        &mut self,
        id: ClientId,
        text: &[u8],
        ended: bool,
        slot: Slot,
    ) -> Option<Pins> {
        let server = self.clients[id].server()?;
        let mut scan = Classifier::in_encoding(self.servers[server].encoding);
        scan.feed(text);
        if ended {
            return Some(self.has_read(id, scan, Said { text: Some(text), slot }));
        }
        Mark::TextInPieces.hit();
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
            self.has_read(id, *scan, Said { text: None, slot });
        } else {
            body.scan = Some(scan);
        }
    }

    /// A text is all there: of a Query, if that is what the client has sent last.
    fn has_read(&mut self, id: ClientId, scan: Classifier, said: Said<'_>) -> Pins {
        let (pins, statements) = scan.finish_and_count();
        if let Some(server) = self.clients[id].server() {
            self.servers[server].replies.note_statements(statements);
        }
        self.leaves(id, pins, Some(said));
        pins
    }

    /// The same of a text that is all there and was not sent yet: gives what it leaves, and how
    /// many statements it has.
    pub(crate) fn read_text(&self, id: ClientId, text: &[u8]) -> (Pins, u32) {
        let server = self.clients[id].server().and_then(|server| self.servers.find(server));
        let encoding = server.map(|server| server.encoding).unwrap_or_default();
        let mut scan = Classifier::in_encoding(encoding);
        scan.feed(text);
        scan.finish_and_count()
    }

    /// A statement leaves this on the client's server. `said`: which it is.
    pub(crate) fn leaves(&mut self, id: ClientId, mut pins: Pins, said: Option<Said<'_>>) {
        if pins.is_empty() {
            return;
        }
        if let Some(server) = self.clients[id].server() {
            pins = self.note_changes(id, server, pins, said);
            self.servers[server].reset |= pins.contains(PinReason::Reset);
        }
        let kept = PASSING.into_iter().fold(pins, Pins::without);
        let client = &mut self.clients[id];
        client.local_settings |= pins.contains(PinReason::Local);
        client.may_commit |= pins.contains(PinReason::Commit);
        client.pins = client.pins.union(kept);
        if said.is_some() {
            client.doubt(pins);
        }
    }
}

//! The unnamed statement, which each client has one of, and each server.

use std::rc::Rc;

use pgweir_sql::Heard;
use pgweir_wire::HEADER_LEN;
use pgweir_wire::frontend::{self, Parse, Target};

use super::names::Named;
use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::client::{UnnamedHere, UnnamedStatement};
use crate::marks::Mark;
use crate::pins::Verdict;
use crate::reply::{Closes, Described, Expected, Kind, Makes, Sink};
use crate::track::Said;

impl Engine {
    /// The same of the unnamed statement.
    pub(super) fn use_unnamed(
        &mut self,
        id: ClientId,
        server: ServerId,
        kind: Kind,
        at: usize,
    ) -> Option<Named> {
        let is_bind = matches!(kind, Kind::Bind);
        // What an earlier unit has parsed may be a COMMIT.
        let here = self.clients[id].unnamed_here;
        let parsed_now = here == UnnamedHere::Parsed;
        let again = if is_bind && !parsed_now { self.unnamed_again(id) } else { None };
        let verdict = match &again {
            Some((parse, heard)) => self.judge_text(id, server, heard, text_of(parse), false),
            None => Verdict::Sent,
        };
        match verdict {
            Verdict::Sent => {}
            Verdict::Refused(report) => {
                self.clients[id].unnamed_stale = false;
                return Some(Named::refused(kind, at..at, report));
            }
            Verdict::Later => return None,
        }
        let client = &self.clients[id];
        if is_bind && !client.names.is_empty() {
            let names = client.unnamed_names.unwrap_or_else(|| match &client.unnamed {
                UnnamedStatement::TooLong | UnnamedStatement::Unknown => {
                    Mark::LongMayName.hit();
                    true
                }
                UnnamedStatement::Made(_) | UnnamedStatement::None => {
                    self.names_prepared(server, &self.read_text(id, client.unnamed.text()))
                }
            });
            if names && !self.show_all(id, server) {
                return None;
            }
        }
        self.may_be_commit(id, is_bind && !parsed_now);
        let client = &mut self.clients[id];
        client.may_commit_later |= is_bind && client.may_commit;
        if here == UnnamedHere::No && !self.bring_unnamed(id, server) {
            Mark::HeldForUnnamed.hit();
            return None;
        }
        if let Some((parse, heard)) = again {
            Mark::UnnamedIsRunAgain.hit_if(!heard.pins.is_empty());
            let slot = self.clients[id].coming_slot();
            let said = Said { text: Some(text_of(&parse)), slot, custom: None };
            self.has_heard(id, &heard, said);
        }
        if !std::mem::take(&mut self.clients[id].unnamed_stale) {
            return Some(Named::plain(kind));
        }
        Mark::UnnamedRowsChanged.hit();
        let told = self.clients[id].unnamed_shape.clone();
        Some(Named::of_changed(kind, at..at, told))
    }

    /// The unnamed statement of an earlier batch, which is run now: the Parse that made it, and
    /// what its text does to its server.
    fn unnamed_again(&self, id: ClientId) -> Option<(Rc<[u8]>, Heard)> {
        let UnnamedStatement::Made(parse) = &self.clients[id].unnamed else { return None };
        Some((Rc::clone(parse), self.read_text(id, text_of(parse))))
    }

    /// Makes the server's unnamed statement this client's. If the client has none, that of whoever
    /// was here before must go, or the client would run a stranger's.
    pub(super) fn bring_unnamed(&mut self, id: ClientId, server: ServerId) -> bool {
        let is_asked = self.servers[server].replies.tells_unnamed_rows();
        if self.clients[id].has_units_before() || is_asked {
            return false;
        }
        self.clients[id].unnamed_here = UnnamedHere::Brought;
        let is_told = self.clients[id].unnamed_stale;
        if is_told || self.clients[id].unnamed.same(&self.servers[server].unnamed) {
            return true;
        }
        let sink = Sink::Injected;
        let to = Endpoint::Server(server);
        match self.clients[id].unnamed.clone() {
            UnnamedStatement::Made(parse) => {
                let makes = Makes::Unnamed(Rc::clone(&parse));
                let replies = &mut self.servers[server].replies;
                if replies.push(Expected { kind: Kind::Parse { makes }, sink }) {
                    Mark::UnnamedMadeAgain.hit();
                    self.actions.inject(to, |out| out.extend_from_slice(&parse));
                    self.pools[self.servers[server].pool].stats.own_parses += 1;
                    // What it does to a server, it did to another when it was made.
                    let heard = self.read_text(id, text_of(&parse));
                    let slot = self.clients[id].coming_slot();
                    self.scan_text(id, text_of(&parse), Some(heard), slot);
                    let client = &mut self.clients[id];
                    client.may_commit_later |= client.may_commit;
                    return !self.asks_for_unnamed_rows(id, server);
                }
            }
            UnnamedStatement::None => {
                let kind = Kind::CloseStatement { closes: Closes::Unnamed };
                if self.servers[server].replies.push(Expected { kind, sink }) {
                    Mark::UnnamedOfOtherClosed.hit();
                    let target = Target::Statement(b"");
                    self.actions.inject(to, |out| {
                        frontend::write_close(out, target);
                    });
                }
            }
            // It exists on this server only, and the server has stayed for its sake.
            UnnamedStatement::TooLong | UnnamedStatement::Unknown => Mark::UnnamedInDoubt.hit(),
        }
        true
    }

    /// The unnamed statement was made again for a client that knows what its rows are like: asks
    /// whether they still are. Says whether there is something to wait for.
    fn asks_for_unnamed_rows(&mut self, id: ClientId, server: ServerId) -> bool {
        let told = &self.clients[id].unnamed_shape;
        let kind = Kind::DescribeStatement { of: Described::UnnamedAgain };
        let replies = &mut self.servers[server].replies;
        if !told.as_ref().is_some_and(|shape| shape.has_rows())
            || !replies.push(Expected { kind, sink: Sink::Injected })
        {
            return false;
        }
        Mark::HeldForUnnamedRows.hit();
        self.actions.inject(Endpoint::Server(server), |out| {
            frontend::write_describe(out, Target::Statement(b""));
        });
        self.ask_for_rows(server);
        self.clients[id].unnamed_here = UnnamedHere::No;
        true
    }
}

/// The text of a Parse that is kept, and so was read before.
fn text_of(parse: &[u8]) -> &[u8] {
    Parse::start(&parse[HEADER_LEN..]).map_or(&[][..], |parse| parse.text)
}

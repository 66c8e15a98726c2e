//! Clients of the console: the engine reads their queries and leaves the answers to others.

use pgweir_wire::backend;
use pgweir_wire::frontend::Tag;
use pgweir_wire::{CancelKey, HEADER_LEN, Header, TransactionStatus};

use crate::Engine;
use crate::action::{Action, ClientId, Endpoint};
use crate::client::{Phase, UnitRest};
use crate::errors::CONSOLE_PROTOCOL;

/// The longest console command.
const MAX_COMMAND_LEN: usize = 16 * 1024;

impl Engine {
    /// What a client of the console is told at login: PostgreSQL's clients ask for these.
    pub(crate) fn greet_console(&mut self, id: ClientId) {
        let secret: [u8; 4] = self.random.bytes();
        let process_id = self.member.client_number(id);
        let key = CancelKey { process_id, secret: Box::new(secret) };
        let version = format!("{}/pgweir", self.plan.version);
        self.actions.inject(Endpoint::Client(id), |out| {
            for (name, value) in [
                ("server_version", version.as_str()),
                ("client_encoding", "UTF8"),
                ("server_encoding", "UTF8"),
                ("DateStyle", "ISO"),
                ("TimeZone", "GMT"),
                ("standard_conforming_strings", "on"),
                ("is_superuser", "on"),
            ] {
                backend::parameter_status(out, name.as_bytes(), value.as_bytes());
            }
            backend::backend_key_data(out, &key);
            backend::ready_for_query(out, TransactionStatus::Idle);
        });
    }

    /// Input of a client of the console: one command at a time.
    pub(crate) fn console_input(&mut self, id: ClientId, input: &[u8]) -> usize {
        let mut at = 0;
        // Its answers must not pile up either.
        while !self.clients[id].holding && !self.clients[id].congested {
            let rest = &input[at..];
            let (header, tag) = match Header::parse(rest) {
                Ok(None) => break,
                Ok(Some(header)) if header.body_len > MAX_COMMAND_LEN => {
                    self.close_client(id);
                    return input.len();
                }
                Ok(Some(header)) => (header, Tag::of(header)),
                Err(_) => {
                    self.close_client(id);
                    return input.len();
                }
            };
            let length = header.message_len();
            if rest.len() < length {
                break;
            }
            let body = &rest[HEADER_LEN..length];
            let to = Endpoint::Client(id);
            match tag {
                Ok(Tag::Query) => {
                    self.clients[id].holding = true;
                    let text = body.strip_suffix(b"\0").unwrap_or(body);
                    self.actions.push(Action::Console(id, text.into()));
                }
                Ok(Tag::Sync) => {
                    self.clients[id].rest = UnitRest::None;
                    self.actions.inject(to, |out| {
                        backend::ready_for_query(out, TransactionStatus::Idle);
                    });
                }
                Ok(Tag::Terminate) | Err(_) => {
                    self.close_client(id);
                    return input.len();
                }
                Ok(_) if self.clients[id].rest == UnitRest::Batch => {}
                Ok(_) => {
                    self.clients[id].rest = UnitRest::Batch;
                    self.actions.inject(to, |out| CONSOLE_PROTOCOL.report(&[]).write(out));
                }
            }
            at += length;
        }
        let client = &self.clients[id];
        if client.ended && !client.holding && !client.congested {
            // What is left of its stream is never going to be whole.
            self.close_client(id);
            return input.len();
        }
        at
    }

    /// The answer to [`Action::Console`]: messages up to and including ReadyForQuery.
    pub fn console_reply(&mut self, id: ClientId, reply: &[u8]) {
        let Some(client) = self.clients.find_mut(id) else { return };
        if !matches!(client.phase, Phase::Console) {
            return;
        }
        client.holding = false;
        self.actions.inject(Endpoint::Client(id), |out| out.extend_from_slice(reply));
        self.actions.push(Action::Resume(id));
    }
}

//! Clients of the console: the engine reads their queries and leaves the answers to others.

use pgweir_wire::backend;
use pgweir_wire::frontend::Tag;
use pgweir_wire::{CancelKey, HEADER_LEN, Malformed, TransactionStatus};

use crate::Engine;
use crate::action::{Action, ClientId, Endpoint};
use crate::client::{Phase, UnitRest};
use crate::errors::{CONSOLE_PROTOCOL, CONSOLE_TOO_LONG};
use crate::marks::Mark;
use crate::time::Time;
use crate::units::message;

/// The longest message to the console, which is a command or is refused anyway.
const MAX_MESSAGE_LEN: usize = 32 * 1024;

/// So much is said to a client of the console, and the next message is not looked at before it is
/// known whether that piles up: a message of five bytes may be refused with two hundred.
const SAID_AT_ONCE: usize = 16 * 1024;

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
    pub(crate) fn console_input(&mut self, now: Time, id: ClientId, input: &[u8]) -> usize {
        let mut at = 0;
        let mut says_much = false;
        // Its answers must not pile up either.
        while !self.clients[id].holding && !self.clients[id].congested && !says_much {
            let rest = &input[at..];
            let (tag, length) = match first(rest) {
                First::Whole(tag, length) => (tag, length),
                First::InPart => break,
                First::TooLong => {
                    Mark::ConsoleTooLong.hit();
                    self.expel(now, id, CONSOLE_TOO_LONG.report(&[&MAX_MESSAGE_LEN]));
                    return input.len();
                }
                First::Malformed(malformed) => {
                    self.violated(now, id, malformed);
                    return input.len();
                }
            };
            self.console_message(now, id, tag, &rest[HEADER_LEN..length]);
            if self.clients.find(id).is_none() {
                return input.len();
            }
            at += length;
            says_much = self.actions.own.len() >= SAID_AT_ONCE;
        }
        if says_much {
            Mark::ConsoleSaysMuch.hit();
            self.resume(id);
            return at;
        }
        let client = &self.clients[id];
        let has_more = at < input.len();
        Mark::ConsoleAwaited.hit_if(has_more && client.holding);
        Mark::ConsoleCongested.hit_if(has_more && client.congested);
        if client.ended && !client.holding && !client.congested {
            // What is left of its stream is never going to be whole.
            Mark::ConsoleCutOff.hit_if(has_more);
            self.client_left(now, id);
            return input.len();
        }
        at
    }

    fn console_message(&mut self, now: Time, id: ClientId, tag: Tag, body: &[u8]) {
        let client = &mut self.clients[id];
        let to = Endpoint::Client(id);
        match tag {
            Tag::Terminate => self.client_left(now, id),
            Tag::Password => self.violated(now, id, Malformed::UnknownTag(b'p')),
            Tag::Sync => {
                client.rest = UnitRest::None;
                self.actions.inject(to, |out| {
                    backend::ready_for_query(out, TransactionStatus::Idle);
                });
            }
            // As behind any error, up to the end of the batch.
            _ if client.rest == UnitRest::Batch => Mark::ConsoleSkipped.hit(),
            Tag::Query => {
                client.holding = true;
                let text = body.strip_suffix(b"\0").unwrap_or(body);
                self.actions.push(Action::Console(id, text.into()));
            }
            Tag::Bind | Tag::Close | Tag::Describe | Tag::Execute | Tag::Parse => {
                Mark::ConsoleBatchRefused.hit();
                client.rest = UnitRest::Batch;
                self.actions.inject(to, |out| CONSOLE_PROTOCOL.report(&[]).write(out));
            }
            // This one no Sync follows.
            Tag::FunctionCall => {
                Mark::ConsoleCallRefused.hit();
                self.actions.inject(to, |out| {
                    CONSOLE_PROTOCOL.report(&[]).write(out);
                    backend::ready_for_query(out, TransactionStatus::Idle);
                });
            }
            // Nothing waits to be flushed, and outside a COPY its messages mean nothing.
            Tag::Flush | Tag::CopyData | Tag::CopyDone | Tag::CopyFail => {}
        }
    }

    /// The answer to [`Action::Console`]: messages up to and including ReadyForQuery.
    pub fn console_reply(&mut self, id: ClientId, reply: &[u8]) {
        let Some(client) = self.clients.find_mut(id) else {
            return Mark::ConsoleLeft.hit();
        };
        debug_assert!(matches!(client.phase, Phase::Console) && client.holding, "it has asked");
        client.holding = false;
        self.actions.inject(Endpoint::Client(id), |out| out.extend_from_slice(reply));
        self.resume(id);
    }
}

/// What stands at the front of the input.
enum First {
    /// A message of this type and length, all of it.
    Whole(Tag, usize),
    /// The beginning of one.
    InPart,
    /// One that is longer than any may be.
    TooLong,
    Malformed(Malformed),
}

fn first(input: &[u8]) -> First {
    match message(input) {
        Err(malformed) => First::Malformed(malformed),
        Ok(Some((header, _))) if header.body_len > MAX_MESSAGE_LEN => First::TooLong,
        Ok(Some((header, tag))) if header.message_len() <= input.len() => {
            First::Whole(tag, header.message_len())
        }
        Ok(Some(_) | None) => First::InPart,
    }
}

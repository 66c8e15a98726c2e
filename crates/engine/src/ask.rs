//! What a server is asked behind a transaction of its client, before anybody else may have it.
//!
//! Its client waits for the answer, and never sees it. A pin was read in a text, and what a text
//! begins may fail, be rolled back, or be ended by another one: so behind a transaction that may
//! have begun or ended something, the server is asked what there is. Where nothing is left it goes
//! back to the others; settings are asked for then ([`crate::track`]).

use std::collections::BTreeSet;
use std::fmt::Write;

use pgweir_config::PoolMode;
use pgweir_sql::{PinReason, Pins};

use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::catalogue::CatalogueRows;
use crate::client::{Client, Leg, UnnamedStatement};
use crate::listen::Channel;
use crate::marks::Mark;
use crate::time::Time;
use crate::track::Told;

/// What a server says while it is asked.
#[derive(Debug)]
pub(crate) enum Answer {
    /// What its session is set to.
    Settings(Box<Told>),
    /// What there is in its session, of all that it was asked for; `None`: it said something else.
    State(Option<Left>),
    /// What there is in the catalogue of its database.
    Catalogue(CatalogueRows),
    /// That it listens on what its client does ([`crate::listen`]).
    Shown,
    /// That the listener takes over from here on.
    Marked,
    /// That it does not listen any more.
    Unlistened,
}

/// What there is in a session.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pins: Pins,
    channels: BTreeSet<Channel>,
}

/// So often a server is asked in a row.
const TRIES: u32 = 3;

/// What a server can be asked for, a letter that stands for it, and the condition under which it is
/// there, outside of transactions. A statement is not the client's if it bears a name of ours; no
/// temporary object is without a dependency on its schema (`RemoveTempRelations`, namespace.c).
const STATE: [(PinReason, char, &str); 5] = [
    (
        PinReason::AdvisoryLock,
        'a',
        "EXISTS (SELECT FROM pg_catalog.pg_locks \
         WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid())",
    ),
    (PinReason::HoldCursor, 'h', "EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable)"),
    // A row for each, in which its name stands behind the letter.
    (PinReason::Listen, 'l', ""),
    (
        PinReason::Prepared,
        'p',
        "EXISTS (SELECT FROM pg_catalog.pg_prepared_statements \
         WHERE from_sql OR name !~ '^pgweir_[0-9]+$')",
    ),
    (
        PinReason::TempTable,
        't',
        "EXISTS (SELECT FROM pg_catalog.pg_depend \
         WHERE refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass \
         AND refobjid = pg_catalog.pg_my_temp_schema())",
    ),
];

impl Answer {
    /// A row of the answer; `None`: one that is too long to be read.
    pub(crate) fn row(&mut self, body: Option<&[u8]>) {
        match self {
            Self::Settings(told) => told.row(body),
            Self::Catalogue(rows) => rows.row(body),
            Self::State(found) => {
                let both = found.take().zip(body.and_then(read));
                *found = both.map(|(found, (reason, channel))| found.with(reason, channel));
            }
            Self::Shown | Self::Marked | Self::Unlistened => {}
        }
    }
}

impl Left {
    fn with(mut self, reason: PinReason, channel: &[u8]) -> Self {
        self.pins = self.pins.union(reason.into());
        if reason == PinReason::Listen {
            self.channels.insert(channel.into());
        }
        self
    }
}

impl Client {
    /// The end of its last unit waits for what is to be said before that.
    pub(crate) fn awaits_ready(&self) -> bool {
        self.ready_due.is_some()
    }

    /// What keeps its server may be gone, and the server knows.
    fn is_in_doubt(&self) -> bool {
        let known = STATE.iter().fold(self.pins, |pins, (reason, ..)| pins.without(*reason));
        self.in_doubt
            && known.is_empty()
            && !self.pins.is_empty()
            && !matches!(self.unnamed, UnnamedStatement::TooLong)
    }

    /// Notes what a text of this client's may have begun or ended.
    pub(crate) fn doubt(&mut self, pins: Pins) {
        let mut begins = STATE.iter().map(|(reason, ..)| *reason);
        self.in_doubt |=
            pins.contains(PinReason::Ends) || begins.any(|reason| pins.contains(reason));
    }

    /// A statement that it has prepared for itself is removed, or was not made.
    pub(crate) fn doubt_prepared(&mut self) {
        self.in_doubt |= self.pins.contains(PinReason::Prepared);
    }
}

impl Engine {
    /// Asks a server what has to be known before its client, which is done with its transaction,
    /// can part from it. Says whether there is anything.
    pub(crate) fn asks(&mut self, now: Time, id: ServerId, client: ClientId) -> bool {
        let its = &self.clients[client];
        let server = &self.servers[id];
        if server.mode == PoolMode::Session {
            self.tell_unsifted(client);
            return false;
        }
        if its.awaits_ready() {
            // Whether it listens on is asked when it has heard all that comes before.
            Mark::AskedBehindReady.hit();
            return false;
        }
        if its.is_in_doubt() {
            self.ask_for_state(now, id, client);
            return true;
        }
        self.tell_unsifted(client);
        let (its, server) = (&self.clients[client], &self.servers[id]);
        if its.changes.is_some() && !self.keeps_server(its, server) {
            self.ask_for_settings(now, id, client);
            return true;
        }
        false
    }

    /// Asks what is left of that for which a client keeps its server.
    fn ask_for_state(&mut self, now: Time, id: ServerId, client: ClientId) {
        Mark::StateAsked.hit();
        let pins = self.clients[client].pins;
        // What its temporary views and triggers have done no text has shown. What keeps no server
        // may be there of others.
        let hidden = STATE.iter().filter(|_| pins.contains(PinReason::TempTable));
        let hidden = hidden.fold(Pins::NONE, |pins, (reason, ..)| pins.union((*reason).into()));
        let ignored = self.pools[self.servers[id].pool].spec.pin_ignore;
        let text = question(pins.union(hidden.difference(ignored)));
        self.ask(now, id, Answer::State(Some(Left::default())), &text);
    }

    /// Asks a server, which its client has to wait for.
    pub(crate) fn ask(&mut self, now: Time, id: ServerId, answer: Answer, text: &[u8]) {
        let server = &mut self.servers[id];
        server.answer = Some(answer);
        server.changed = now;
        self.run_own(id, text);
    }

    /// A server has answered what it was asked.
    pub(crate) fn told(&mut self, now: Time, id: ServerId, client: ClientId) {
        let server = &mut self.servers[id];
        let error = server.own_error.take();
        let Some(answer) = server.answer.take() else { return };
        // It may have reported something meanwhile.
        self.tell(client, id);
        let failed = error.is_some();
        match answer {
            Answer::Catalogue(rows) => {
                self.names_told(now, rows, error);
                if self.clients.find(client).is_none_or(|its| its.leg != Leg::Held(id)) {
                    // What it has waited for was judged at once.
                    Mark::NamesToldToLeaver.hit();
                    return;
                }
            }
            Answer::Shown if failed && self.servers[id].status.in_block() => {
                return self.lose_unshown(now, id, client);
            }
            Answer::Shown => self.shown(id, client, failed),
            Answer::Marked => self.marked(now, id, client, failed),
            Answer::Unlistened => self.unlistened(id, client, failed),
            Answer::Settings(_) | Answer::State(_) if failed => {
                return self.not_told(now, id, client);
            }
            Answer::Settings(told) => {
                self.clients[client].refusals = 0;
                self.settings_told(id, client, *told);
            }
            Answer::State(found) => {
                self.clients[client].refusals = 0;
                self.state_told(now, id, client, found);
            }
        }
        match self.has_asked_first(id, client) {
            true => Mark::AskedFirst.hit(),
            false => self.lease_over(now, id, client),
        }
        if self.clients.find(client).is_some_and(|its| its.holding) {
            self.wake(client);
        }
    }

    /// A server was asked in vain. Nothing was changed by that. If it was a cancel that has come
    /// late there is no other one; if not it is asked again behind the next unit.
    fn not_told(&mut self, now: Time, id: ServerId, client: ClientId) {
        Mark::NotTold.hit();
        let its = &mut self.clients[client];
        its.refusals += 1;
        if !its.refusals.is_multiple_of(TRIES) {
            self.asks(now, id, client);
        } else {
            Mark::AskedEnough.hit();
            self.tell_unsifted(client);
            if self.clients[client].holding {
                Mark::HeldWhileAsked.hit();
                self.wake(client);
            }
        }
    }

    /// The server has said what is left of its client's state.
    fn state_told(&mut self, now: Time, id: ServerId, client: ClientId, found: Option<Left>) {
        let by_settings = self.without_ignored(id, self.clients[client].settings.pins());
        let its = &mut self.clients[client];
        its.in_doubt = false;
        let Some(mut found) = found else { return };
        let others = STATE.iter().fold(its.pins, |pins, (reason, ..)| pins.without(*reason));
        its.pins = others.union(found.pins).union(by_settings);
        Mark::StateGone.hit_if(its.pins.is_empty());
        Mark::StateThere.hit_if(!found.pins.is_empty());
        if let Some(listener) = &self.pools[self.servers[id].pool].listener {
            found.channels.retain(|channel| **channel != *listener.own());
        }
        self.channels_told(now, id, client, found.channels);
        let its = &self.clients[client];
        if its.subscription.is_none() && its.pins.contains(PinReason::Listen) {
            Mark::ListensForUs.hit();
            self.unlisten(now, id);
        }
    }

    /// Whether a client has a unit ready that waited for its server's answer, and had asked before
    /// all who wait for one.
    fn has_asked_first(&self, id: ServerId, client: ClientId) -> bool {
        let server = &self.servers[id];
        let pool = &self.pools[server.pool];
        let mut queue = pool.waiters.iter().filter(|waiter| {
            let its = self.clients.find(waiter.client);
            its.is_some_and(|its| its.leg == Leg::Waiting(waiter.ticket))
        });
        let goes_on = !server.doomed && !server.reset && pool.owes_since.is_none();
        let since = self.clients[client].held_since.filter(|_| goes_on);
        since.is_some_and(|since| queue.next().is_none_or(|first| since <= first.since))
    }
}

/// Asks for those of these reasons that are there, a row for each.
fn question(pins: Pins) -> Vec<u8> {
    let mut text = String::from("SELECT s.k FROM (");
    let asked = STATE.iter().filter(|(reason, ..)| pins.contains(*reason));
    for (at, (reason, letter, condition)) in asked.enumerate() {
        let union = if at == 0 { "" } else { " UNION ALL " };
        // Writing to a String does not fail.
        let _ = match reason {
            PinReason::Listen => write!(
                text,
                "{union}SELECT '{letter}' || c, true FROM pg_catalog.pg_listening_channels() AS c"
            ),
            _ => write!(text, "{union}SELECT '{letter}', {condition}"),
        };
    }
    text.push_str(") AS s(k, there) WHERE s.there");
    text.into_bytes()
}

/// Reads the body of a DataRow with one letter, and what stands behind it.
pub(crate) fn read(row: &[u8]) -> Option<(PinReason, &[u8])> {
    let (length, text) = row.strip_prefix(b"\0\x01")?.split_first_chunk()?;
    let text = text.get(..usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
    let (letter, behind) = text.split_first()?;
    let mut rows = STATE.iter();
    let found = |(reason, its, _): &(_, char, _)| (*its == char::from(*letter)).then_some(*reason);
    rows.find_map(found).map(|reason| (reason, behind))
}

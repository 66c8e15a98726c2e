//! Settings that clients change.
//!
//! What SET does is not worked out from its text: a transaction may be rolled back, to a savepoint
//! or as a whole, a value may be computed, and PostgreSQL writes many of them in its own way. So
//! when a client that may have changed settings is done with its transaction, the server is asked
//! what they are now, and until it has said so it stays with its client. From then on both have the
//! same interned settings, and the client's are replayed on whatever server it is given next.
//!
//! RESET, and what else means a default, takes a pooled server back to its own start, and its
//! client means what it has asked for at its login. So that is put back behind the unit, within the
//! transaction if one is open, before anything else is sent. The client is not told what the server
//! reports meanwhile, and what it reports then stands before the ReadyForQuery that has waited.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use pgweir_config::{ApplicationName, PoolMode};
use pgweir_sql::{Overrides, PinReason, Pins, Scope};

use pgweir_wire::TransactionStatus;
use pgweir_wire::frontend::{self, Target};

use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::ask::Answer;
use crate::client::{Client, Leg, Slot};
use crate::literals::may_change_reading;
use crate::marks::Mark;
use crate::reply::{Closes, Expected, Kind, Makes, Sink};
use crate::settings::{Pairs, Settings, put_text};
use crate::time::Time;

/// Settings that a client may have changed since they were known last.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Those with a dot in their names, by lower-case name.
    custom: BTreeSet<Box<[u8]>>,
    /// Some are taken back to what they are by default.
    resets: Option<Resets>,
}

/// A unit takes back what its client has asked for at its login.
#[derive(Debug)]
struct Resets {
    slot: Slot,
    names: Names,
}

/// The names of settings, in lower case, and for how long each is taken back.
pub(crate) type Names = BTreeMap<Box<[u8]>, Scope>;

/// What a server has said so far of its settings.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pairs: Pairs,
    bytes: usize,
    /// It is not what was asked for, or too much to be kept.
    useless: bool,
}

/// The statement that puts settings back, and its portal; see [`Engine::run_beside`] for the name.
const PUT_BACK: &[u8] = b"pgweir_back";

/// A client's settings may take so many bytes. One that has more keeps its server.
const BYTES: usize = 16 * 1024;

/// What a client has said that may change settings.
#[derive(Clone, Copy)]
pub(crate) struct Said<'a> {
    /// Its text, if all of it is there.
    pub(crate) text: Option<&'a [u8]>,
    /// The unit that runs it.
    pub(crate) slot: Slot,
    /// Custom settings that it may change besides those that it names.
    pub(crate) custom: Option<&'a BTreeSet<Box<[u8]>>>,
}

impl Changes {
    /// Some of them are custom settings that this text names. `false`: which they are is not known.
    fn note(&mut self, text: &[u8], encoding: pgweir_sql::Encoding) -> bool {
        pgweir_sql::custom_settings(text, encoding, &mut |name| {
            self.custom.insert(name.to_ascii_lowercase().into());
        })
    }
}

impl Told {
    /// A row of the answer; `None`: one that is too long to be read.
    pub(crate) fn row(&mut self, body: Option<&[u8]>) {
        match body.and_then(read) {
            Some((name, value)) => {
                self.bytes += name.len() + value.len();
                self.useless |= self.bytes > BYTES;
                if !self.useless {
                    self.pairs.insert(name.to_ascii_lowercase().into(), value.into());
                }
            }
            None => self.useless = true,
        }
    }
}

impl Client {
    /// The unit that may take back what it has asked for at its login, until that is put back.
    pub(crate) fn resets(&self) -> Option<Slot> {
        let resets = self.changes.as_ref().and_then(|changes| changes.resets.as_ref());
        resets.map(|resets| resets.slot)
    }

    /// Whether that unit is the one that is answered now, or was.
    pub(crate) fn is_reset(&self) -> bool {
        let head = self.slots.first();
        self.resets().is_some_and(|slot| head.is_none_or(|head| *head == slot))
    }
}

impl Engine {
    /// What servers are brought to for a client: what it has set, but for its name where the pool's
    /// servers keep theirs.
    pub(crate) fn brought(&self, id: ClientId) -> Rc<Settings> {
        let client = &self.clients[id];
        self.but_for_name(client, &client.settings)
    }

    /// The settings under which a client's statement is one with those of others: where its plan
    /// keeps what is computed ([`folds`](pgweir_sql::Heard::folds)) any of them may matter.
    pub(crate) fn reading_of(&self, id: ClientId, folds: bool) -> Rc<Settings> {
        if folds { self.brought(id) } else { Settings::reading(&self.clients[id].settings) }
    }

    /// What of these settings of a client its servers get.
    fn but_for_name(&self, client: &Client, settings: &Rc<Settings>) -> Rc<Settings> {
        match settings.name() {
            Some(_) if self.servers_keep_names(client) => Settings::nameless(settings),
            Some(_) | None => Rc::clone(settings),
        }
    }

    /// Whether the servers that a client works on keep their own names.
    fn servers_keep_names(&self, client: &Client) -> bool {
        let Some(pool) = client.pool() else { return false };
        let spec = &self.pools[pool].spec;
        let mode = client.server().map_or(spec.mode, |server| self.servers[server].mode);
        spec.application_name == ApplicationName::Pool && mode != PoolMode::Session
    }

    /// A client's statement may change settings for longer than its transaction. Gives what it
    /// leaves besides.
    pub(crate) fn note_changes(
        &mut self,
        id: ClientId,
        server: ServerId,
        pins: Pins,
        said: Option<Said<'_>>,
    ) -> Pins {
        let changes = [PinReason::Setting, PinReason::Reset].map(|reason| pins.contains(reason));
        let [sets, resets] = changes;
        if !(sets || resets || pins.contains(PinReason::Local)) {
            return pins;
        }
        self.servers[server].plans.made_under_others();
        let text = said.filter(|said| said.custom.is_none()).and_then(|said| said.text);
        let is_shown = !resets && !pins.contains(PinReason::Unclear);
        self.clients[id].reads_otherwise |= !is_shown || text.is_none_or(may_change_reading);
        if self.servers[server].dedicated {
            // It was started with what its client has asked for, and a RESET leads back to that.
            return pins;
        }
        self.note_resets(id, server, resets, said);
        if self.servers[server].mode == PoolMode::Session {
            return pins;
        }
        let encoding = self.servers[server].encoding;
        let client = &mut self.clients[id];
        let mut noted = Changes::default();
        let text = said.and_then(|said| said.text);
        if !text.is_some_and(|text| noted.note(text, encoding)) {
            // It cannot be asked for what nobody knows the name of.
            Mark::ChangesUnclear.hit();
            return if sets || resets { pins.union(PinReason::Setting.into()) } else { pins };
        }
        if let Some(custom) = said.and_then(|said| said.custom) {
            noted.custom.extend(custom.iter().cloned());
        }
        // Once used, such a name means something to its session, whatever becomes of its value.
        let settings = &client.settings;
        let is_new = noted.custom.iter().any(|name| settings.value(name).is_none());
        if sets || resets || is_new {
            let changes = client.changes.get_or_insert_default();
            changes.custom.append(&mut noted.custom);
        }
        pins.without(PinReason::Setting).without(PinReason::Reset)
    }

    /// Notes what a statement may take back of what its client has asked for at its login.
    /// `resets`: if its text does not show what, that may be anything.
    fn note_resets(
        &mut self,
        id: ClientId,
        server: ServerId,
        resets: bool,
        said: Option<Said<'_>>,
    ) {
        let client = &self.clients[id];
        let startup = self.but_for_name(client, &client.startup);
        if startup.is_empty() {
            return;
        }
        let mut names = Names::new();
        let encoding = self.servers[server].encoding;
        let mut each = |what: Overrides, scope| startup.taken_back(&what, scope, &mut names);
        // What is behind a name, or was prepared in SQL, no text shows.
        let text = said.filter(|said| said.custom.is_none()).and_then(|said| said.text);
        let text = text.filter(|text| !text.is_empty());
        let is_shown = text.is_some_and(|text| pgweir_sql::taken_back(text, encoding, &mut each));
        if resets && !is_shown {
            each(Overrides::All, Scope::Session);
            // Of what it has set to nothing itself no server says whether it is by default.
            names.retain(|name, _| !client.settings.is_nothing(name));
        }
        if names.is_empty() {
            return;
        }
        let slot = said.map_or_else(|| client.coming_slot(), |said| said.slot);
        let changes = self.clients[id].changes.get_or_insert_default();
        let resets = changes.resets.get_or_insert_with(|| Resets { slot, names: Names::new() });
        resets.slot = slot;
        for (name, scope) in names {
            let known = resets.names.entry(name).or_insert(scope);
            *known = scope.max(*known);
        }
    }

    /// A client's unit is over: it gets its ReadyForQuery, unless that waits.
    pub(crate) fn hand_over_ready(&mut self, id: ServerId, client: ClientId, at: Range<usize>) {
        let waits = self.put_back(id, client);
        if !waits && (self.servers[id].status.in_block() || !self.delays_ready(client)) {
            self.actions.forward(Endpoint::Client(client), at);
        }
    }

    /// A unit is over that may have taken back what its client has asked for at its login. Says
    /// whether its ReadyForQuery waits until that is put back.
    fn put_back(&mut self, id: ServerId, client: ClientId) -> bool {
        let its = &mut self.clients[client];
        if its.resets().is_none_or(|slot| its.slots.contains(&slot)) {
            return false;
        }
        let status = self.servers[id].status;
        // Where more is under way its replies cannot wait.
        let waits = its.slots.is_empty();
        if status.in_block() && self.settle_cancel(id) {
            // It would hit what is meant to go unseen, and the transaction with it.
            Mark::SettingsAwaitCancel.hit();
        } else {
            let its = &mut self.clients[client];
            let resets = its.changes.as_mut().and_then(|changes| changes.resets.take());
            let names = resets.map(|resets| resets.names).unwrap_or_default();
            let its = &self.clients[client];
            // Where it has failed what it has done is undone. Or a reload has changed whether its
            // name is among what servers get.
            let done = status != TransactionStatus::Failed;
            let startup = self.but_for_name(its, &its.startup);
            let Some(text) = startup.put_back(&names).filter(|_| done) else {
                Mark::NothingPutBack.hit();
                self.tell(client, id);
                return false;
            };
            Mark::SettingsPutBack.hit();
            let server = &mut self.servers[id];
            server.puts_back = true;
            server.own_error = None;
            self.run_beside(id, PUT_BACK, &text, Sink::Aside);
        }
        if waits {
            self.clients[client].ready_due = Some(status);
        }
        waits
    }

    /// Runs a statement of our own beside a client's: in front of its next unit, or within the
    /// batch that is open ([`Sink::Injected`]). A Query would end the unnamed statement, which may
    /// be the client's. No client's name reaches a server that begins as `name` does, with
    /// "pgweir_", and goes on without another underscore.
    pub(crate) fn run_beside(&mut self, id: ServerId, name: &[u8], text: &[u8], sink: Sink) {
        let kinds = [
            Kind::Parse { makes: Makes::Ours },
            Kind::Bind,
            Kind::Execute { sent: 0 },
            Kind::ClosePortal,
            Kind::CloseStatement { closes: Closes::Own },
        ];
        let is_unit = sink == Sink::Aside;
        let replies = &mut self.servers[id].replies;
        for kind in kinds.into_iter().chain(is_unit.then_some(Kind::Sync)) {
            replies.push(Expected { kind, sink });
        }
        self.actions.inject(Endpoint::Server(id), |out| {
            frontend::write_parse(out, name, text, &[]);
            frontend::write_bind(out, name, name, &[]);
            frontend::write_execute(out, name, 0);
            frontend::write_close(out, Target::Portal(name));
            frontend::write_close(out, Target::Statement(name));
            if is_unit {
                out.extend_from_slice(&frontend::SYNC);
            }
        });
    }

    /// Whether the end of a client's unit waits for what is put back behind it.
    pub(crate) fn awaits_put_back(&self, id: ClientId) -> bool {
        let its = &self.clients[id];
        let puts_back = || its.server().is_some_and(|server| self.servers[server].puts_back);
        its.awaits_ready() && (its.resets().is_some() || puts_back())
    }

    /// Whether what a server reports is not told its client: it is about to be set to what that has
    /// asked for at its login.
    pub(crate) fn resets(&self, id: ServerId) -> bool {
        let server = &self.servers[id];
        let client = server.client().and_then(|client| self.clients.find(client));
        client.is_some_and(Client::is_reset) || server.replies.is_ours()
    }

    /// What was put behind a unit is answered.
    pub(crate) fn aside_over(&mut self, now: Time, id: ServerId, client: ClientId) {
        let server = &mut self.servers[id];
        let puts_back = std::mem::take(&mut server.puts_back);
        if puts_back && server.own_error.take().is_some() {
            // So it is put back where a value that is wrong by now is an error.
            Mark::PutBackRefused.hit();
            server.reset = true;
        }
        if !self.clients[client].is_reset() {
            self.tell(client, id);
        }
        if puts_back {
            self.say_ready_behind_reset(client, self.servers[id].status);
        }
        self.lease_over(now, id, client);
        if self.clients.find(client).is_some_and(|client| client.holding) {
            self.wake(client);
        }
    }

    /// No cancel may reach a server any more: what has waited for that is put back.
    pub(crate) fn go_on_behind_cancel(&mut self, now: Time, id: ServerId) {
        let Some(client) = self.servers[id].client() else { return };
        let its = &self.clients[client];
        let waits = its.changes.is_some() && its.slots.is_empty() && its.leg == Leg::Held(id);
        Mark::PutBackBehindCancel.hit_if(waits && its.resets().is_some());
        self.servers[id].note_fed(now);
        if waits && self.servers[id].replies.is_empty() && !self.put_back(id, client) {
            Mark::ReadyBehindCancel.hit();
            self.say_ready_behind_reset(client, self.servers[id].status);
            if self.clients[client].leaving {
                Mark::LeaverBehindCancel.hit();
                return self.lease_over(now, id, client);
            }
        }
        if self.clients[client].holding {
            Mark::HeldBehindCancel.hit();
            self.wake(client);
        }
    }

    /// Asks what a client has set, which may have changed that.
    pub(crate) fn ask_for_settings(&mut self, now: Time, id: ServerId, client: ClientId) {
        let Some(changes) = &self.clients[client].changes else { return };
        Mark::SettingsAsked.hit();
        let mut custom = changes.custom.clone();
        custom.extend(self.clients[client].settings.custom().map(Box::from));
        custom.extend(self.servers[id].settings.custom().map(Box::from));
        self.ask(now, id, Answer::Settings(Box::default()), &question(&custom));
    }

    /// The server has said what its settings are.
    pub(crate) fn settings_told(&mut self, id: ServerId, client: ClientId, told: Told) {
        if told.useless {
            Mark::SettingsUnreadable.hit();
            self.clients[client].changes = None;
            self.leaves(client, PinReason::Setting.into(), None);
        } else {
            self.adopt(id, client, told.pairs);
        }
    }

    /// These are the settings of a server and of the client that holds it.
    fn adopt(&mut self, id: ServerId, client: ClientId, mut pairs: Pairs) {
        let server = &mut self.servers[id];
        let user = &self.pools[server.pool].spec.server_user;
        let is_default = |name: &[u8]| pairs.get(name).is_some_and(|v| **v == *user.as_bytes());
        if is_default(b"session_authorization") {
            pairs.remove(&b"session_authorization"[..]);
        }
        server.settings = self.interner.intern(pairs);
        // What it reports since was its client's doing.
        server.outdated = None;
        let told = Rc::clone(&server.settings);
        let its = &self.clients[client];
        // Where its name is nothing to its servers, it keeps the one that it came with.
        let settings = match self.servers_keep_names(its) {
            true => self.interner.named_as(&told, &its.startup),
            false => told,
        };
        let its = &mut self.clients[client];
        its.settings = settings;
        its.changes = None;
        let pins = its.settings.pins();
        self.leaves(client, pins, None);
    }
}

/// Asks for all settings that are not what they are by default, in hexadecimal digits: the client's
/// encoding may have no word for them. `role` is in no list, and is told where it is one, or may be
/// one by default.
fn question(custom: &BTreeSet<Box<[u8]>>) -> Vec<u8> {
    const HEX: &str = "pg_catalog.encode(pg_catalog.convert_to(s.v, \
        pg_catalog.getdatabaseencoding()), 'hex')";
    let mut text = format!(
        "SELECT {}, {HEX} FROM (\
         SELECT name, setting FROM pg_catalog.pg_settings \
         WHERE source = 'session' AND name NOT IN ('transaction_deferrable', \
         'transaction_isolation', 'transaction_read_only') \
         UNION ALL SELECT 'role', pg_catalog.current_setting('role') \
         WHERE pg_catalog.current_setting('role') <> 'none' OR EXISTS (\
         SELECT FROM pg_catalog.pg_db_role_setting, pg_catalog.unnest(setconfig) AS c(c) \
         WHERE c LIKE 'role=%') \
         UNION ALL SELECT 'session_authorization', \
         pg_catalog.current_setting('session_authorization')",
        HEX.replace("s.v", "s.n"),
    )
    .into_bytes();
    for name in custom {
        text.extend_from_slice(b" UNION ALL SELECT ");
        put_text(&mut text, name);
        text.extend_from_slice(b", pg_catalog.current_setting(");
        put_text(&mut text, name);
        text.extend_from_slice(b", true)");
    }
    text.extend_from_slice(b") AS s(n, v) WHERE s.v IS NOT NULL");
    text
}

/// Reads the body of a DataRow with a name and a value.
pub(crate) fn read(row: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (count, mut rest) = row.split_first_chunk()?;
    if u16::from_be_bytes(*count) != 2 {
        return None;
    }
    let mut cell = || {
        let (length, behind) = rest.split_first_chunk()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (digits, behind) = behind.split_at_checked(length)?;
        rest = behind;
        from_hex(digits)
    };
    Some((cell()?, cell()?))
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_chunks();
    let bytes = pairs.iter().map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8));
    bytes.collect::<Option<_>>().filter(|_| rest.is_empty())
}

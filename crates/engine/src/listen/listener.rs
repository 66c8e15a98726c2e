//! The server of a pool that listens for its clients.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use pgweir_wire::SqlState;
use pgweir_wire::backend::Report;

use super::{Channel, Source, listen, notify, put_name};
use crate::Engine;
use crate::action::{ClientId, ServerId};
use crate::client::Leg;
use crate::marks::Mark;
use crate::parameters::Parameters;
use crate::pool::PoolId;
use crate::server::ServerState;
use crate::settings::ENCODING;
use crate::time::Time;

/// Who listens in a pool.
pub(crate) struct Listener {
    /// The server that listens, if there is one.
    server: Option<ServerId>,
    /// When one has refused to: nobody is asked again until somebody else listens, or those who
    /// have no other have waited for a while.
    refused: Option<Time>,
    /// The channel of our marks.
    own: Channel,
    next_mark: u64,
    /// Whose marks are under way.
    marks: BTreeMap<u64, UnderWay>,
    /// Who listens on which channel.
    channels: BTreeMap<Channel, BTreeSet<ClientId>>,
    clients: BTreeSet<ClientId>,
    /// Those among them whose servers still listen for them.
    awaited: BTreeSet<ClientId>,
    /// The channels that the server listens on.
    told: BTreeSet<Channel>,
    /// Those that it is to be told, and those that nobody listens on any more.
    new: BTreeSet<Channel>,
    over: BTreeSet<Channel>,
    /// Those that it is about to.
    asked: Vec<Channel>,
    /// The marks that it is to make itself.
    due: Vec<u64>,
}

/// One that has refused to listen is tried again when so much time has passed, where somebody hears
/// nothing without it: a standby may be promoted by then.
const PAUSE: Duration = Duration::from_secs(1);

/// A mark that the listener has not passed.
struct UnderWay {
    client: ClientId,
    /// When the other server has passed it.
    since: Option<Time>,
}

impl Listener {
    fn new(random: u64) -> Self {
        Self {
            server: None,
            refused: None,
            own: format!("pgweir_{random:016x}").into_bytes().into(),
            next_mark: 1,
            marks: BTreeMap::new(),
            channels: BTreeMap::new(),
            clients: BTreeSet::new(),
            awaited: BTreeSet::new(),
            told: BTreeSet::new(),
            new: BTreeSet::new(),
            over: BTreeSet::new(),
            asked: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Whether it hears all marks that are made from now on.
    pub(super) fn is_ready(&self) -> bool {
        self.told.contains(&self.own)
    }

    pub(crate) fn has_server(&self) -> bool {
        self.server.is_some()
    }

    pub(super) fn server(&self) -> Option<ServerId> {
        self.server
    }

    /// Whether it lacks a server, and somebody listens.
    pub(crate) fn wants_server(&self) -> bool {
        self.server.is_none() && self.refused.is_none() && !self.clients.is_empty()
    }

    /// The channel of our marks.
    pub(crate) fn own(&self) -> &[u8] {
        &self.own
    }

    /// Who listens on a channel.
    pub(super) fn of(&self, channel: &[u8]) -> Vec<ClientId> {
        self.channels.get(channel).into_iter().flatten().copied().collect()
    }

    /// All who listen.
    pub(super) fn clients(&self) -> Vec<ClientId> {
        self.clients.iter().copied().collect()
    }

    /// A new mark: the channel, and its number. One of the same client that was rolled back is
    /// none any more.
    pub(super) fn mark(&mut self, client: ClientId) -> (Channel, u64) {
        self.marks.retain(|_, mark| mark.client != client);
        (Rc::clone(&self.own), self.number(client))
    }

    fn number(&mut self, client: ClientId) -> u64 {
        let number = self.next_mark;
        self.next_mark += 1;
        self.marks.insert(number, UnderWay { client, since: None });
        number
    }

    /// A new mark, which it makes itself; none if there is no server for that. It passes one
    /// before that was not rolled back.
    pub(super) fn mark_loss(&mut self, client: ClientId) -> Option<u64> {
        if self.server.is_none() {
            Mark::MarkWithoutServer.hit();
            return None;
        }
        let number = self.number(client);
        self.due.push(number);
        Some(number)
    }

    /// Whose mark it is.
    pub(super) fn passed(&mut self, number: u64) -> Option<ClientId> {
        self.marks.remove(&number).map(|mark| mark.client)
    }

    /// The other server has passed a mark: this one is about to.
    pub(super) fn expect(&mut self, now: Time, number: u64) {
        if let Some(mark) = self.marks.get_mut(&number) {
            mark.since = Some(now);
        }
    }

    /// Since when it has a mark to pass, if it has.
    pub(crate) fn expected_since(&self) -> Option<Time> {
        self.marks.values().filter_map(|mark| mark.since).min()
    }

    /// A client listens on these channels, and its server does for it.
    fn add<'a>(&mut self, client: ClientId, channels: impl Iterator<Item = &'a Channel>) {
        self.clients.insert(client);
        self.awaited.insert(client);
        for channel in channels {
            let clients = self.channels.entry(Rc::clone(channel)).or_default();
            clients.insert(client);
            let is_told = self.told.contains(channel) || self.asked.contains(channel);
            if !self.over.remove(channel) && !is_told {
                self.new.insert(Rc::clone(channel));
            }
        }
    }

    /// It listens on these no more.
    fn remove(&mut self, client: ClientId, channels: &BTreeSet<Channel>) {
        self.clients.remove(&client);
        self.awaited.remove(&client);
        for channel in channels {
            let Some(clients) = self.channels.get_mut(channel) else { continue };
            clients.remove(&client);
            if clients.is_empty() {
                self.channels.remove(channel);
                if !self.new.remove(channel) {
                    self.over.insert(Rc::clone(channel));
                }
            }
        }
    }

    /// Another server listens, or none.
    fn begin(&mut self, server: Option<ServerId>) {
        self.server = server;
        self.told.clear();
        self.asked.clear();
        self.due.clear();
        self.over.clear();
        self.new = self.channels.keys().cloned().collect();
        self.new.insert(Rc::clone(&self.own));
    }

    /// What the server is still to be told.
    fn news(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        self.asked = std::mem::take(&mut self.new).into_iter().collect();
        for channel in &self.asked {
            text.extend(listen(channel));
            text.extend_from_slice(b"; ");
        }
        for channel in std::mem::take(&mut self.over) {
            Mark::ChannelOver.hit();
            text.extend_from_slice(b"UNLISTEN ");
            put_name(&mut text, &channel);
            text.extend_from_slice(b"; ");
            self.told.remove(&channel);
        }
        for number in std::mem::take(&mut self.due) {
            Mark::ListenerMarks.hit();
            text.extend(notify(&self.own, number));
            text.extend_from_slice(b"; ");
        }
        text
    }
}

impl Engine {
    /// Notes on which channels a client listens now, and on which it has before.
    pub(super) fn register(&mut self, client: ClientId, before: &BTreeSet<Channel>) {
        let Some(pool) = self.clients[client].pool() else { return };
        let Some(own) = &self.clients[client].subscription else { return };
        // In another encoding it would be another name, or none, of which all would hear nothing.
        let server = self.clients[client].server();
        let is_like_it = server.is_none_or(|server| self.is_encoded_as_listener(server));
        let is_same = |channel: &&Channel| is_like_it || channel.is_ascii();
        let random = u64::from_be_bytes(self.random.bytes());
        let pool = &mut self.pools[pool];
        pool.admit_listener();
        let listener = pool.listener.get_or_insert_with(|| Box::new(Listener::new(random)));
        listener.refused = None;
        listener.remove(client, before);
        listener.add(client, own.channels.iter().filter(is_same));
    }

    /// A client listens no more, or is gone.
    pub(crate) fn unsubscribe(&mut self, client: ClientId) {
        let its = &mut self.clients[client];
        if let Some(own) = its.subscription.take()
            && let Some(pool) = its.pool()
            && let Some(listener) = &mut self.pools[pool].listener
        {
            listener.remove(client, &own.channels);
            listener.marks.retain(|_, mark| mark.client != client);
        }
    }

    /// The server of a client listens for it, until the listener takes over.
    pub(super) fn await_listener(&mut self, client: ClientId, awaits: bool) {
        let Some(pool) = self.clients[client].pool() else { return };
        if let Some(listener) = &mut self.pools[pool].listener {
            match awaits {
                true => listener.awaited.insert(client),
                false => listener.awaited.remove(&client),
            };
        }
    }

    /// Sees to it that a pool has a listener if it needs one, and that this listens on what is
    /// wanted.
    pub(crate) fn tend_listener(&mut self, now: Time, id: PoolId) {
        let Some(listener) = &mut self.pools[id].listener else { return };
        if listener.clients.is_empty() {
            let server = listener.server;
            self.pools[id].listener = None;
            if let Some(server) = server {
                Mark::ListenerGoes.hit();
                self.close_server(now, server);
            }
            return;
        }
        let Some(server) = listener.server else {
            if listener.refused.is_none() {
                self.find_listener(now, id);
            }
            return;
        };
        if !self.servers[server].replies.is_empty() {
            Mark::ListenerBusy.hit();
            return;
        }
        let text = listener.news();
        if text.is_empty() {
            return self.hand_over_to_listener(now, id);
        }
        self.servers[server].changed = now;
        self.run_own(server, &text);
    }

    /// Some who listen have nobody who does so for them, since the last one that was asked has
    /// refused: another one is asked, after a while.
    pub(super) fn try_again_to_listen(&mut self, now: Time, pool: PoolId) {
        let clients = &self.clients;
        let hears_nothing = |client: &ClientId| {
            let own = clients.find(*client).and_then(|its| its.subscription.as_ref());
            own.is_some_and(|own| own.source == Source::Listener)
        };
        if let Some(listener) = &mut self.pools[pool].listener
            && listener.refused.is_some_and(|refused| now - refused >= PAUSE)
            && listener.clients.iter().any(hears_nothing)
        {
            Mark::ListenerTriedAgain.hit();
            listener.refused = None;
            self.pools[pool].admit_listener();
        }
    }

    /// Whether a server stays with a client that listens only until the listener of its pool does.
    pub(crate) fn is_listened_for(&self, id: ServerId) -> bool {
        let pool = self.servers[id].pool;
        let is_like_it = self.is_encoded_as_listener(id);
        let Some(listener) = self.pools[pool].listener.as_ref() else { return is_like_it };
        let may_come = listener.server.is_some() || self.room(pool) > 0;
        listener.refused.is_none() && may_come && is_like_it
    }

    /// Whether a server has the encoding of its pool's listener, or of the next one: that of new
    /// connections.
    pub(super) fn is_encoded_as_listener(&self, id: ServerId) -> bool {
        let server = &self.servers[id];
        let pool = &self.pools[server.pool];
        let listener = pool.listener.as_ref().filter(|listener| listener.is_ready());
        match (listener.and_then(|listener| listener.server), &pool.at_login) {
            (Some(listener), _) => self.is_encoded_as(listener, &server.parameters),
            (None, Some(new)) => new.value(ENCODING) == server.parameters.value(ENCODING),
            (None, None) => server.settings.value(ENCODING).is_none(),
        }
    }

    fn find_listener(&mut self, now: Time, id: PoolId) {
        match self.pools[id].idle.first().copied() {
            Some(idle) => {
                Mark::ListenerWasFree.hit();
                self.pools[id].idle.retain(|server| *server != idle);
                self.become_listener(now, idle);
            }
            None if self.adopt_listener(now, id) => {}
            None => self.refill(now, id),
        }
    }

    /// Those whose servers listen for them until the listener of their pool does.
    pub(super) fn who_awaits_listener(&self, pool: PoolId) -> Vec<ClientId> {
        let listener = self.pools[pool].listener.as_ref();
        listener.into_iter().flat_map(|listener| listener.awaited.iter().copied()).collect()
    }

    /// A server is free. Says whether it listens from now on.
    pub(crate) fn becomes_listener(&mut self, now: Time, id: ServerId) -> bool {
        let pool = self.servers[id].pool;
        let listener = self.pools[pool].listener.as_ref();
        let wanted = listener.is_some_and(|listener| listener.wants_server());
        if wanted && self.servers[id].promised_to.is_none() && !self.is_needed_to_lend(pool) {
            self.become_listener(now, id);
            return true;
        }
        false
    }

    pub(super) fn become_listener(&mut self, now: Time, id: ServerId) {
        Mark::BecomesListener.hit();
        let none = self.interner.none();
        let server = &mut self.servers[id];
        let pool = server.pool;
        server.state = ServerState::Listening;
        server.changed = now;
        server.touched = true;
        let is_set = !server.is_just(&none);
        if let Some(listener) = &mut self.pools[pool].listener {
            listener.begin(Some(id));
        }
        if is_set {
            Mark::ListenerCleared.hit();
            // A short statement_timeout, another encoding: all that is its last client's.
            self.replay(id, &none);
        } else {
            self.tend_listener(now, pool);
        }
        self.refill(now, pool);
    }

    /// The listener has answered what it was told.
    pub(crate) fn listener_answered(&mut self, now: Time, id: ServerId) {
        let pool = self.servers[id].pool;
        let replays = self.servers[id].replaying.is_some();
        let error = self.replayed(id);
        if let Some(error) = error.as_ref().filter(|_| replays)
            && self.tries_unbraked(id, error)
        {
            return;
        }
        let none = self.interner.none();
        if replays && error.is_none() && !self.servers[id].is_just(&none) {
            return self.replay(id, &none);
        }
        let Some(listener) = &mut self.pools[pool].listener else { return };
        let asked = std::mem::take(&mut listener.asked);
        if error.is_some() {
            // A standby, for one, has nothing to listen to: clients that have a server keep it.
            Mark::ListenerRefused.hit();
            listener.refused = Some(now);
            return self.close_server(now, id);
        }
        if !replays {
            listener.told.extend(asked);
            self.tell_missed(pool);
        }
        self.tend_listener(now, pool);
    }

    /// The listener is lost: what was notified until the next one listens nobody has heard.
    pub(crate) fn listener_lost(&mut self, now: Time, pool: PoolId) {
        let Some(listener) = &mut self.pools[pool].listener else { return };
        Mark::ListenerLost.hit();
        listener.begin(None);
        listener.marks.clear();
        for client in listener.clients() {
            let Some(its) = self.clients.find_mut(client) else { continue };
            let Some(own) = &mut its.subscription else { continue };
            match &mut own.source {
                Source::Server | Source::Awaited => continue,
                Source::ToListener { server: false, .. } => {
                    // It says all of it still: the next listener may listen before the mark.
                    Mark::ListenerLostAheadOfMark.hit();
                    own.early.clear();
                    own.source = Source::Awaited;
                    continue;
                }
                Source::Listener => own.no_doubt(),
                Source::ToListener { listener, .. } | Source::ToServer { listener, .. } => {
                    Mark::ListenerLostBehindMark.hit();
                    *listener = true;
                }
            }
            own.missed = true;
            self.settle_behind_listener(now, client);
        }
        self.tend_listener(now, pool);
    }

    /// The listener listens on everything again: those who may have missed something are told.
    pub(super) fn tell_missed(&mut self, pool: PoolId) {
        let listener = self.pools[pool].listener.as_ref().filter(|listener| listener.is_ready());
        let Some(listener) = listener else { return };
        for client in listener.clients() {
            let Some(own) = &mut self.clients[client].subscription else { continue };
            if own.missed && own.source == Source::Listener {
                Mark::MissedWhileAway.hit();
                own.tell_missed();
                self.say_pending(client);
            }
        }
    }

    /// Whether the listener of a pool listens on these channels, in the encoding of a server.
    pub(super) fn listener_has(
        &self,
        pool: PoolId,
        channels: &BTreeSet<Channel>,
        parameters: &Parameters,
    ) -> bool {
        let Some(listener) = &self.pools[pool].listener else { return false };
        let Some(server) = listener.server else { return false };
        listener.is_ready()
            && channels.is_subset(&listener.told)
            && self.is_encoded_as(server, parameters)
    }

    /// Whether a server has reported the same encoding.
    fn is_encoded_as(&self, server: ServerId, parameters: &Parameters) -> bool {
        self.servers[server].parameters.value(ENCODING) == parameters.value(ENCODING)
    }

    /// The listener takes over from the servers of those who wait for that.
    fn hand_over_to_listener(&mut self, now: Time, pool: PoolId) {
        for client in self.who_awaits_listener(pool) {
            if let Leg::Held(server) = self.clients[client].leg {
                self.goes_to_listener(now, server, client);
            }
        }
    }
}

/// What clients are told behind a loss of the listener.
pub(super) fn missed() -> Report {
    Report::error(
        SqlState::WARNING,
        "the connection that listens was lost, and another one listens now",
    )
    .detail("Notifications may have been missed in between.")
}

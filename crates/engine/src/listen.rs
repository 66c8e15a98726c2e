//! Notifications: many clients listen, and one server listens for all of them.
//!
//! LISTEN is carried out where any statement is: on the server that its client holds. What has
//! come of it that server is asked behind the transaction ([`crate::ask`]). Then the pool's
//! *listener*, a server that nobody is lent, listens on the same channels, and the client's goes
//! back to the others.
//!
//! Notifications have one order for all who listen. So the point at which one server takes over
//! from another is a notification, too: one of our own, on a channel of our own, which both hear
//! (the *mark*). What stands before it the client is told by the one, and what stands behind it by
//! the other: nothing twice, and nothing not at all.
//!
//! Before a statement that may notify, or listen, or not listen any more, it goes the other way:
//! the client's server listens on all that the client does. So it is PostgreSQL that says what
//! comes of that statement, savepoints and all, and what a client notifies itself of comes before
//! its reply is over.

mod adopt;
mod listener;
mod notices;
mod since;

use std::collections::BTreeSet;
use std::rc::Rc;

use pgweir_config::PoolMode;
use pgweir_sql::{PinReason, Pins};
use pgweir_wire::HEADER_LEN;
use pgweir_wire::frontend::{self, Bind, Parse, Tag, Target};

use crate::Engine;
use crate::action::{ClientId, Endpoint, ServerId};
use crate::ask::Answer;
use crate::client::{Leg, UnnamedStatement};
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::prepared::Meaning;
use crate::reply::{Closes, Expected, Kind, Makes, Sink};
use crate::scan::may_change_encoding;
use crate::time::Time;
use crate::units::{begins_unit, message, until_nul};

pub(crate) use listener::Listener;
use since::SinceShown;

/// The name of a channel, as its client writes it.
pub(crate) type Channel = Rc<[u8]>;

/// What a client listens on.
pub(crate) struct Subscription {
    channels: BTreeSet<Channel>,
    source: Source,
    /// The number of the mark that is under way, or was.
    mark: u64,
    /// What the listener has heard and the client is still to be told, between transactions.
    pending: Vec<u8>,
    /// What one of the two has said behind the mark, before the other had come to that.
    early: Vec<u8>,
    /// The listener was lost, and nobody knows what was notified meanwhile.
    missed: bool,
    /// A unit goes without its server's listening, which that has refused.
    forgoes: bool,
    since_shown: SinceShown,
    /// Since then something was run that may have ended to listen, and no tag tells of it.
    may_unlisten: bool,
    /// What is pending may be of channels on which it listens no more.
    sifts: bool,
}

/// Who says what a client is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Its server.
    Server,
    /// The same, until the listener listens too and the server has time for the mark.
    Awaited,
    /// Its server up to the mark, which it has passed or not, as the listener has. `silent`: it
    /// does not listen any more.
    ToListener { server: bool, listener: bool, silent: bool },
    /// The listener.
    Listener,
    /// The listener up to the mark, which the two have passed or not.
    ToServer { server: bool, listener: bool },
}

/// The name of what we prepare on a client's server.
const ASIDE: &[u8] = b"pgweir_aside";

impl Subscription {
    fn new(channels: BTreeSet<Channel>) -> Self {
        Self {
            channels,
            source: Source::Server,
            mark: 0,
            pending: Vec::new(),
            early: Vec::new(),
            missed: false,
            forgoes: false,
            since_shown: SinceShown::Nothing,
            may_unlisten: false,
            sifts: false,
        }
    }

    /// Both have come to the mark: what one has said behind it is to be told.
    fn tell_early(&mut self) {
        self.pending.append(&mut self.early);
    }

    /// If it may have missed something it is to be told so.
    fn tell_missed(&mut self) {
        if std::mem::take(&mut self.missed) {
            Mark::ToldOfMissed.hit();
            let told = self.pending.len();
            listener::missed().write_notice(&mut self.pending);
            let (before, again) = self.pending.split_at(told);
            if before.ends_with(again) {
                Mark::ToldOnce.hit();
                self.pending.truncate(told);
            }
        }
    }
}

impl Engine {
    /// Whether the message at the front of `rest` waits until its client's server listens on all
    /// that the client does, since its unit may notify, or change that.
    pub(crate) fn waits_to_listen(
        &mut self,
        now: Time,
        id: ClientId,
        server: ServerId,
        tag: Tag,
        rest: &[u8],
    ) -> bool {
        let client = &self.clients[id];
        let Some(own) = &client.subscription else { return false };
        let its = &self.servers[server];
        let begins = begins_unit(tag);
        let is_unit = begins || tag == Tag::Sync && !its.replies.ignores_sync();
        if !is_unit || client.open_slot.is_some() || own.forgoes {
            return false;
        }
        let in_block = its.status.in_block();
        match own.source {
            Source::Server | Source::Awaited => return false,
            // What is under way may take back that its server is to listen, or end its
            // transaction: that end may have to wait for the listener.
            Source::ToServer { .. } if in_block => {
                let waits = !its.replies.is_empty();
                Mark::HeldUntilAgreed.hit_if(waits);
                return waits;
            }
            Source::ToServer { .. } => {
                Mark::HeldUntilShown.hit_if(begins);
                return begins;
            }
            Source::Listener | Source::ToListener { .. } if !begins => return false,
            Source::Listener | Source::ToListener { .. } => {}
        }
        // What it says in a transaction that has failed comes to nothing, mostly.
        if its.has_failed() || !self.unit_may_notify(id, rest) {
            return false;
        }
        let is_quiet = its.replies.is_empty() && its.answer.is_none();
        let goes = own.source == Source::Listener && is_quiet && !own.in_doubt();
        // A cancel that has come late would hit what goes unseen, and its transaction with it.
        let waits = goes && in_block && self.settle_cancel(server);
        Mark::ListenAwaitsCancel.hit_if(waits);
        if goes && !waits {
            self.go_to_server(now, server, id);
        }
        Mark::HeldToListen.hit();
        true
    }

    /// Whether a message of the unit at the front may notify: what begins a batch is where its
    /// server is still free to listen. One whose end is not there may say anything later.
    fn unit_may_notify(&self, id: ClientId, mut rest: &[u8]) -> bool {
        while let Some((header, tag)) = message(rest).ok().flatten() {
            let (n, whole) = (header.message_len(), rest.len() >= header.message_len());
            let body = &rest[HEADER_LEN..rest.len().min(n)];
            match tag {
                Tag::Bind | Tag::FunctionCall | Tag::Parse | Tag::Query => {
                    if self.may_notify(id, tag, body, whole) {
                        return true;
                    }
                    if !matches!(tag, Tag::Bind | Tag::Parse) {
                        return false;
                    }
                }
                Tag::Sync | Tag::Terminate => return false,
                Tag::Flush => return true,
                Tag::Close
                | Tag::CopyData
                | Tag::CopyDone
                | Tag::CopyFail
                | Tag::Describe
                | Tag::Execute
                | Tag::Password => {}
            }
            rest = &rest[rest.len().min(n)..];
        }
        Mark::BatchMayNotify.hit();
        true
    }

    /// Whether a message may notify, or change what is listened on, or in which encoding that is
    /// said.
    fn may_notify(&self, id: ClientId, tag: Tag, body: &[u8], whole: bool) -> bool {
        let client = &self.clients[id];
        let (heard, text) = match tag {
            Tag::Query if whole => {
                let text = until_nul(body);
                (Rc::new(self.read_text(id, text)), Some(text))
            }
            Tag::Parse => match Parse::start(body) {
                Ok(parse) if whole => (Rc::new(self.read_text(id, parse.text)), Some(parse.text)),
                Ok(_) | Err(_) => {
                    Mark::ParseMayNotify.hit();
                    return true;
                }
            },
            Tag::Bind => match Bind::start(body) {
                Ok(bind) if bind.statement.is_empty() => match &client.unnamed {
                    UnnamedStatement::Made(_) => {
                        (Rc::new(self.read_text(id, client.unnamed.text())), None)
                    }
                    UnnamedStatement::None => return false,
                    UnnamedStatement::TooLong | UnnamedStatement::Unknown => {
                        Mark::LongMayNotify.hit();
                        return true;
                    }
                },
                Ok(bind) => match client.names.meaning(bind.statement, client.coming_slot()) {
                    Meaning::Known(statement, _) => (self.heard_of(id, &statement), None),
                    Meaning::Unknown | Meaning::Changed => return notifies(client.prepared),
                    // It waits for that in any case.
                    Meaning::Unsettled | Meaning::Awaited => return false,
                },
                Err(_) => return false,
            },
            Tag::FunctionCall => return true,
            _ => {
                Mark::QueryMayNotify.hit();
                return true;
            }
        };
        let runs = heard.pins.contains(PinReason::Names) && notifies(client.prepared);
        runs || notifies(heard.pins) || may_change_encoding(&heard, text)
    }

    /// A client's server has said on which channels it listens.
    pub(crate) fn channels_told(
        &mut self,
        now: Time,
        id: ServerId,
        client: ClientId,
        channels: BTreeSet<Channel>,
    ) {
        let its = &mut self.clients[client];
        let Some(own) = &mut its.subscription else {
            if !channels.is_empty() {
                its.subscription = Some(Box::new(Subscription::new(channels)));
                self.subscribed(now, client, &BTreeSet::new());
            }
            return;
        };
        match own.source {
            Source::Listener
            | Source::ToListener { .. }
            | Source::ToServer { server: false, .. } => {
                if !channels.is_empty() && own.source == Source::Listener && !own.in_doubt() {
                    // It has listened in the middle of a batch: now it does on the others, too.
                    Mark::ListensBesides.hit();
                    self.go_to_server(now, id, client);
                }
            }
            Source::Server | Source::Awaited | Source::ToServer { server: true, .. } => {
                if channels.is_empty() {
                    Mark::Unsubscribed.hit();
                    return self.unsubscribe(client);
                }
                let before = std::mem::replace(&mut own.channels, channels);
                own.sift();
                self.subscribed(now, client, &before);
                self.say_pending(client);
            }
        }
    }

    /// A client listens on other channels than before.
    fn subscribed(&mut self, now: Time, client: ClientId, before: &BTreeSet<Channel>) {
        Mark::Subscribed.hit();
        self.register(client, before);
        if let Some(own) = &mut self.clients[client].subscription
            && own.source == Source::Server
        {
            own.source = Source::Awaited;
        }
        if let Some(pool) = self.clients[client].pool() {
            self.tend_listener(now, pool);
        }
    }

    /// A client is done with its transaction: if the listener is ready it takes over. Says whether
    /// the client's server is asked for that.
    pub(crate) fn goes_to_listener(&mut self, now: Time, id: ServerId, client: ClientId) -> bool {
        if !self.may_go_to_listener(id, client) {
            return false;
        }
        let Some(texts) = self.new_mark(client, Vec::new()) else { return false };
        if let Some(own) = &mut self.clients[client].subscription {
            own.source = Source::ToListener { server: false, listener: false, silent: false };
        }
        Mark::ToListener.hit();
        self.await_listener(client, false);
        self.ask_aside(now, id, Answer::Marked, &texts);
        true
    }

    fn may_go_to_listener(&self, id: ServerId, client: ClientId) -> bool {
        let Some(own) = &self.clients[client].subscription else { return false };
        let server = &self.servers[id];
        self.may_leave_to_listener(id, client)
            && self.listener_has(server.pool, &own.channels, &server.parameters)
    }

    /// Whether a client waits for nothing but a listener, with its server.
    fn may_leave_to_listener(&self, id: ServerId, client: ClientId) -> bool {
        let its = &self.clients[client];
        if its.subscription.as_ref().is_none_or(|own| own.source != Source::Awaited) {
            return false;
        }
        let server = &self.servers[id];
        let is_quiet = server.replies.is_empty()
            && !server.replies.in_batch()
            && server.answer.is_none()
            && !server.status.in_block()
            && server.used;
        let is_between = its.slots.is_empty() && its.body.left == 0 && !its.leaving;
        // What it has set is asked for once nothing else keeps its server.
        let is_settled = !its.in_doubt && its.leg == Leg::Held(id);
        let of_pool = server.mode != PoolMode::Session && server.elsewhere.is_none();
        is_quiet && is_between && is_settled && of_pool
    }

    /// The server of a client is to listen on all that the client does.
    fn go_to_server(&mut self, now: Time, id: ServerId, client: ClientId) {
        let Some(own) = &self.clients[client].subscription else { return };
        let texts = own.channels.iter().map(|channel| listen(channel)).collect();
        let Some(texts) = self.new_mark(client, texts) else { return };
        let pool = self.servers[id].pool;
        let passes_mark = self.pools[pool].listener.as_ref().is_some_and(|of| of.is_ready());
        Mark::ToServerUnheard.hit_if(!passes_mark);
        let its = &mut self.clients[client];
        its.pins = its.pins.union(PinReason::Listen.into());
        its.in_doubt = true;
        if let Some(own) = &mut its.subscription {
            own.source = Source::ToServer { server: false, listener: !passes_mark };
            own.since_shown = SinceShown::Nothing;
            own.may_unlisten = false;
            own.missed |= !passes_mark;
        }
        Mark::ToServer.hit();
        self.ask_aside(now, id, Answer::Shown, &texts);
    }

    /// A client's server was asked to listen on all that the client does, and has answered.
    pub(crate) fn shown(&mut self, id: ServerId, client: ClientId, failed: bool) {
        let in_block = self.servers[id].status.in_block();
        let Some(own) = &mut self.clients[client].subscription else { return };
        let Source::ToServer { server, .. } = own.source else { return };
        if failed || !server && !in_block {
            // A cancel has come late, or it took too long.
            Mark::ToServerInVain.hit();
            own.source = Source::Listener;
            own.forgoes = true;
        }
    }

    /// A client's server could not be told to listen, and the client's transaction has failed with
    /// that, of which nobody has heard: it is lost, as with its server, and that is told.
    pub(crate) fn lose_unshown(&mut self, now: Time, id: ServerId, client: ClientId) {
        Mark::LostUnshown.hit();
        let its = &mut self.clients[client];
        its.pins = its.pins.without(PinReason::Listen);
        if let Some(own) = &mut its.subscription {
            own.source = Source::Listener;
        }
        self.server_lost(now, id, "the server could not be told to listen");
    }

    /// The mark has gone out on a client's server.
    pub(crate) fn marked(&mut self, now: Time, id: ServerId, client: ClientId, failed: bool) {
        let Some(own) = &mut self.clients[client].subscription else { return };
        match own.source {
            Source::ToListener { server: true, .. } if !failed => self.unlisten(now, id),
            _ => {
                Mark::MarkInVain.hit();
                own.source = Source::Awaited;
                self.await_listener(client, true);
            }
        }
    }

    /// A client's server is not to listen any more.
    pub(crate) fn unlisten(&mut self, now: Time, id: ServerId) {
        self.ask_aside(now, id, Answer::Unlistened, &[b"UNLISTEN *".to_vec()]);
    }

    /// A client's server does not listen any more.
    pub(crate) fn unlistened(&mut self, id: ServerId, client: ClientId, failed: bool) {
        // One that still does goes once its client parts from it.
        Mark::StillListens.hit_if(failed);
        self.servers[id].doomed |= failed;
        let its = &mut self.clients[client];
        its.pins = its.pins.without(PinReason::Listen);
        if let Some(own) = &mut its.subscription
            && let Source::ToListener { silent, .. } = &mut own.source
        {
            *silent = true;
        }
        self.settle_source(client);
    }

    /// One or the other has passed the mark: if both have, that is over.
    fn settle_source(&mut self, client: ClientId) {
        let its = &mut self.clients[client];
        let Some(own) = &mut its.subscription else {
            return Mark::SettledUnsubscribed.hit();
        };
        match own.source {
            Source::ToListener { server: false, .. }
            | Source::ToServer { server: false, .. }
            | Source::ToServer { listener: false, .. } => {}
            Source::ToListener { server: true, .. } | Source::Listener => own.tell_early(),
            Source::Server | Source::Awaited | Source::ToServer { .. } => {
                // It lies in front of the mark.
                own.tell_missed();
                own.tell_early();
            }
        }
        own.source = match own.source {
            Source::ToListener { server: true, listener: true, silent: true } => Source::Listener,
            Source::ToServer { server: true, listener: true } if its.in_doubt => Source::Server,
            Source::ToServer { server: true, listener: true } => Source::Awaited,
            other => other,
        };
        if own.source == Source::Awaited {
            Mark::BackToAwaited.hit();
            self.await_listener(client, true);
        }
        self.say_due(client);
        self.say_pending(client);
        if self.clients[client].holding {
            self.wake(client);
        }
    }

    /// The listener has passed a mark, or never will: a unit whose end waited for that is over.
    fn settle_behind_listener(&mut self, now: Time, client: ClientId) {
        let awaited = self.clients[client].awaits_ready();
        self.settle_source(client);
        if awaited && let Leg::Held(server) = self.clients[client].leg {
            Mark::ReadyBehindListener.hit();
            self.lease_over(now, server, client);
        }
    }

    /// A client has lost its server: if that has listened for it, the listener does.
    pub(crate) fn listen_elsewhere(&mut self, now: Time, client: ClientId) {
        let its = &mut self.clients[client];
        its.pins = its.pins.without(PinReason::Listen);
        let Some(pool) = its.pool() else { return };
        let Some(own) = &mut its.subscription else { return };
        match own.source {
            Source::Listener => return,
            Source::ToListener { server: true, listener, .. } => {
                Mark::LostBehindMark.hit();
                own.source = Source::ToListener { server: true, listener, silent: true };
            }
            Source::ToListener { listener: true, .. } | Source::ToServer { listener: true, .. } => {
                Mark::LostBetweenMarks.hit();
                own.missed = true;
                own.source = Source::Listener;
            }
            Source::ToServer { .. } => {
                // The listener says the same.
                Mark::LostAheadOfMark.hit();
                own.early.clear();
                own.source = Source::Listener;
            }
            Source::Server | Source::Awaited | Source::ToListener { .. } => {
                own.missed = true;
                own.source = Source::Listener;
                self.mark_loss(pool, client);
            }
        }
        self.await_listener(client, false);
        self.settle_source(client);
        self.tend_listener(now, pool);
    }

    /// The listener, if there is one, is to make a mark itself: in front of it stands all that the
    /// lost server of a client has said.
    fn mark_loss(&mut self, pool: PoolId, client: ClientId) {
        let Some(listener) = &mut self.pools[pool].listener else { return };
        let Some(number) = listener.mark_loss(client) else {
            return Mark::LossUnmarked.hit();
        };
        Mark::LossMarked.hit();
        if let Some(own) = &mut self.clients[client].subscription {
            own.mark = number;
            own.source = Source::ToListener { server: true, listener: false, silent: true };
        }
    }

    /// The statements that make the next mark of a client, behind these.
    fn new_mark(&mut self, client: ClientId, mut texts: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
        let pool = self.clients[client].pool()?;
        let listener = self.pools[pool].listener.as_mut()?;
        let (channel, number) = listener.mark(client);
        self.clients[client].subscription.as_mut()?.mark = number;
        texts.push(listen(&channel));
        texts.push(notify(&channel, number));
        Some(texts)
    }

    /// Has a client's server carry these out, all or none: not by a Query, which would end the
    /// unnamed statement.
    fn ask_aside(&mut self, now: Time, id: ServerId, answer: Answer, texts: &[Vec<u8>]) {
        let server = &mut self.servers[id];
        server.answer = Some(answer);
        server.changed = now;
        server.own_error = None;
        let mut expect = |kind| {
            server.replies.push(Expected { kind, sink: Sink::Own });
        };
        for _ in texts {
            let closes = Kind::CloseStatement { closes: Closes::Own };
            let kinds = [Kind::Bind, Kind::Execute { sent: 0 }, Kind::ClosePortal, closes];
            expect(Kind::Parse { makes: Makes::Ours });
            kinds.into_iter().for_each(&mut expect);
        }
        expect(Kind::Sync);
        self.actions.inject(Endpoint::Server(id), |out| {
            for text in texts {
                frontend::write_parse(out, ASIDE, text, &[]);
                frontend::write_bind(out, ASIDE, ASIDE, &[]);
                frontend::write_execute(out, ASIDE, 0);
                frontend::write_close(out, Target::Portal(ASIDE));
                frontend::write_close(out, Target::Statement(ASIDE));
            }
            out.extend_from_slice(&frontend::SYNC);
        });
    }
}

/// Whether a statement may notify, or change what is listened on. Those that do not are left alone:
/// what has been told to listen, or to notify, PREPARE TRANSACTION refuses.
fn notifies(pins: Pins) -> bool {
    use PinReason::{Listen, Notify, Reset, Unclear, Unlisten};
    // DISCARD ALL is a reset.
    [Listen, Notify, Reset, Unclear, Unlisten].iter().any(|reason| pins.contains(*reason))
}

fn listen(channel: &[u8]) -> Vec<u8> {
    let mut text = b"LISTEN ".to_vec();
    put_name(&mut text, channel);
    text
}

/// Makes a mark.
fn notify(channel: &[u8], number: u64) -> Vec<u8> {
    let mut text = b"NOTIFY ".to_vec();
    put_name(&mut text, channel);
    text.extend_from_slice(format!(", '{number}'").as_bytes());
    text
}

/// Appends a name in quotes.
pub(crate) fn put_name(out: &mut Vec<u8>, name: &[u8]) {
    out.push(b'"');
    for byte in name {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

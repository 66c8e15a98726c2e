//! Whether what a client hears is what it is owed, and where it is an error of pgweir's, whether
//! the configuration and what has gone wrong allow it.

use std::ops::Range;

use pgweir_config::PoolMode;
use pgweir_wire::backend;

use super::oracle::Heard;
use super::{Client, Ending, Phase, Struck};
use crate::configuration::Configuration;
use crate::invariants::Invariant;
use crate::language::Tag;
use crate::postgres::{CANCELED, CRASHED, DEADLOCK, LOCKED, TIMED_OUT};
use crate::rows::Row;
use crate::session::{CHANGED, Message, VERSION};
use crate::world::Site;

/// The codes of a FATAL that says something else than that a unit was refused.
const NOT_REFUSALS: [&str; 7] = ["08007", "08P01", "0A000", "25P03", "25P04", "57P01", "57P05"];

/// What those hear who listen and may have missed something.
const LISTENER_LOST: &str = "the connection that listens was lost, and another one listens now";

/// Why something is not allowed.
pub(super) type Refuted = Result<(), String>;

impl Client {
    pub(super) fn take_reply(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        if message.tag == b'A' {
            let channel = channel_of(message);
            if !self.oracle.may_hear(&channel) && !self.ear.may_overhear(&channel) {
                let number = self.number;
                site.ledger.fail(
                    Invariant::OwnNotifications,
                    format!("c{number} was notified on {channel}: it does not listen"),
                );
            }
            return self.notified(site, message);
        }
        if message.tag == b'N' && says(message, CRASHED) {
            // What becomes of it, the end of the server's stream will say.
            if site.ledger.kills_since(0) == 0 {
                site.ledger.fail(
                    Invariant::LossHasCause,
                    format!("c{} heard of a crash that was none", self.number),
                );
            }
            return;
        }
        if message.tag == b'N' && says(message, LISTENER_LOST) {
            let (home, now) = (self.pool.home(), site.trace.now);
            site.ledger.notices.warns(&mut self.ear, &home, self.number, now);
            if !self.oracle.has_listened() {
                site.ledger.fail(
                    Invariant::OwnNotifications,
                    format!("c{} missed no notification", self.number),
                );
            }
            return;
        }
        let did = |verb: &[u8]| message.tag == b'C' && message.body.starts_with(verb);
        self.rolled_back |= did(b"ROLLBACK");
        // Its server may say what it hears there, and the listener all the rest.
        self.ear.mix(self.rolled_back && did(b"LISTEN"));
        self.ear.unlistens(did(b"UNLISTEN"), self.rolled_back, self.oracle.channels());
        if let Some(version) = version_of(message) {
            return self.oracle.told(&version);
        }
        let lost = site.ledger.kills_since(0) > 0;
        if lost && message.tag == b'S' && self.oracle.told_early(&message.body) {
            return;
        }
        if message.tag == b'E' {
            let (code, text) = (code_of(message), text_of(message));
            let ours = !text.contains('[');
            if ours && matches!(&*code, "08007" | "40001") {
                return self.lost_server(site, message, raw);
            }
            if ours && code == "53300" && text.starts_with("too many servers of pool") {
                return self.pin_refused(site, raw);
            }
            if ours && code == "0A000" && text.starts_with("pool ") {
                return self.kind_refused(site, &text, raw);
            }
            if ours && code == "55000" {
                return self.last_value_refused(site, raw);
            }
            if code == "0A000" && text.starts_with(CHANGED) {
                self.script.finds_changed();
                return self.compare(site, raw);
            }
            if ours && self.oracle.may_be_refused() {
                return self.refused(site, message, raw);
            }
            if ours && self.oracle.is_in_block() && !self.oracle.has_begun() {
                return self.rollback_refused(site, message, raw);
            }
            let tag = text.split(['[', ']']).nth(1).and_then(|tag| Tag::parse(tag.as_bytes()));
            if let Some(tag) = tag
                && let Err(text) = self.interrupted(site, tag, &text)
            {
                return site
                    .ledger
                    .fail(Invariant::RightInterrupt, format!("c{}: {text}", self.number));
            }
            if code == "53100" {
                site.ledger.reach(Row::DiskFull);
            }
        }
        self.compare(site, raw);
    }

    /// It has to hear all that is said where it listens, in order.
    fn notified(&mut self, site: &mut Site, message: &Message) {
        let mut texts = message.body.get(4..).unwrap_or_default().split(|byte| *byte == 0);
        let mut text = || String::from_utf8_lossy(texts.next().unwrap_or_default()).into_owned();
        let said = (text(), text());
        let database = self.pool.home().database;
        self.ear.listens_still(|channel| self.oracle.must_hear(channel));
        if let Err(wrong) = site.ledger.notices.heard(&mut self.ear, &database, said) {
            let text = format!("c{} was notified of {wrong}", self.number);
            site.ledger.fail(Invariant::OwnNotifications, text);
        }
    }

    /// The message has to be the one that is due.
    fn compare(&mut self, site: &mut Site, raw: Range<usize>) {
        site.ledger.counts.replies += 1;
        match self.oracle.hear(&self.incoming[raw]) {
            Ok(Heard::Reply) => self.ponder(site),
            Ok(Heard::Ready { committed, undone, idle }) => {
                self.refused = false;
                site.ledger.acknowledged(&committed, &undone);
                site.ledger.counts.transactions += u64::from(idle);
                self.moments.ready(site.trace.now, !idle);
                self.survived(site, idle);
                if idle && self.oracle.is_settled() {
                    site.ledger.heard_out(self.number);
                    self.check_own(site);
                    // Behind one that has rolled back its server is still to take over.
                    self.ear.is_mixed &= self.rolled_back;
                }
                self.rolled_back &= !idle;
                self.ear_for(site, idle);
                if self.oracle.is_settled() {
                    self.think_until = site.trace.now + self.script.pause(!idle, &mut self.dice);
                }
            }
            Err(text) => {
                site.ledger.fail(Invariant::OwnReplies, format!("c{} {text}", self.number))
            }
        }
    }

    /// What it has notified itself of comes before its unit is over, but behind a ROLLBACK there,
    /// which may undo that its server was to listen, or an UNLISTEN (docs/compatibility.md).
    fn check_own(&mut self, site: &mut Site) {
        let (own, asked_at) = (format!("c{}s", self.number), self.moments.asked_at);
        // What a lost server goes on with may notify at any time.
        if !self.rolled_back && !self.ear.has_unlistened && !site.ledger.is_divided(self.number) {
            self.check_told(site, |text, at| at >= asked_at && text.starts_with(&own));
        }
    }

    /// It must have heard what is due of all that is said where it listens. On which server that is
    /// nobody knows if its pool has moved.
    pub(super) fn check_told(&mut self, site: &mut Site, is_due: impl Fn(&str, u64) -> bool) {
        let mut clusters = site.rules.clusters(self.moments.since, self.draft());
        let Some(server) = clusters.next().filter(|one| clusters.all(|other| other == *one)) else {
            return;
        };
        self.ear.listens_still(|channel| self.oracle.must_hear(channel));
        let unheard = site.ledger.notices.unheard(&self.ear, &self.pool.home(), server, is_due);
        if let Some((channel, text)) = unheard {
            let text = format!("c{} was not notified of {channel} {text}", self.number);
            site.ledger.fail(Invariant::OwnNotifications, text);
        }
    }

    /// It knows what it listens on, as far as nothing that was sent may change that.
    fn ear_for(&mut self, site: &Site, idle: bool) {
        if idle && self.oracle.is_settled() {
            let (database, now) = (self.pool.home().database, site.trace.now);
            site.ledger.notices.listens(&mut self.ear, &database, self.oracle.channels(), now);
        } else if idle {
            self.ear.forget();
        }
    }

    /// In the middle of something it may take its time when nothing more is to come.
    fn ponder(&mut self, site: &Site) {
        if self.script.is_in_the_middle() && !self.oracle.is_owed() {
            self.think_until = site.trace.now + self.script.ponder(&mut self.dice);
        }
    }

    /// It is served, after something that it was not to notice.
    pub(super) fn survived(&mut self, site: &mut Site, idle: bool) {
        let row = match self.struck {
            None => return,
            // Not before it has given the transaction up.
            Some(Struck::InBlock) if !idle => return,
            Some(Struck::InBlock) => Row::Rollback,
            Some(Struck::Full) => Row::Full,
            Some(Struck::Idle) => Row::Idle,
            Some(Struck::Prepared) => Row::Unsent,
            Some(Struck::Waiting) => Row::Waiting,
        };
        site.ledger.reach(row);
        self.struck = None;
    }

    /// A statement was ended from outside, if that is what this error of a server says.
    fn interrupted(&mut self, site: &mut Site, tag: Tag, text: &str) -> Refuted {
        if text.starts_with(CANCELED) {
            if !site.ledger.is_cancelled(tag) {
                return Err(format!("{tag} was cancelled, which nobody has asked for"));
            }
            return self.oracle.interrupt(tag, b"57014", CANCELED);
        }
        if text.starts_with(LOCKED) {
            return self.oracle.interrupt(tag, b"55P03", LOCKED);
        }
        if text.starts_with(DEADLOCK) {
            return self.oracle.interrupt(tag, b"40P01", DEADLOCK);
        }
        if !text.starts_with(TIMED_OUT) {
            return Ok(());
        }
        // A server keeps the limit that it was told when it was logged in to.
        let least = site.rules.least(0, |rules| rules.times.statement);
        if least.is_none_or(|least| site.trace.now - self.moments.asked_at < least) {
            return Err(format!("{tag} was ended by statement_timeout before its time"));
        }
        site.ledger.reach(Row::StatementTimeout);
        self.oracle.interrupt(tag, b"57014", TIMED_OUT)
    }

    /// A statement that would keep one server more has failed on the server.
    fn pin_refused(&mut self, site: &mut Site, raw: Range<usize>) {
        let pool = self.pool.draft;
        let since = self.ruled_since(site, self.moments.asked_at);
        let limit = site.rules.least(since, |rules| rules.pools[pool].pinned);
        let refused = match self.pool.lets_go() && limit.is_some() {
            true => self.oracle.refuse_pin(&self.incoming[raw]),
            false => Err("there is no such limit".to_owned()),
        };
        match refused {
            Ok(()) => {
                self.refused = true;
                site.ledger.reach(Row::MaxPinned);
            }
            Err(text) => {
                site.ledger.fail(Invariant::RightRefusal, format!("c{}: {text}", self.number));
            }
        }
    }

    /// A statement that would leave what its pool refuses has failed on the server.
    fn kind_refused(&mut self, site: &mut Site, text: &str, raw: Range<usize>) {
        let pool = self.pool.draft;
        let since = self.ruled_since(site, self.moments.asked_at);
        let kinds = text.rsplit(": ").next().unwrap_or_default();
        let refuses = |rules: &Configuration| {
            let is_refused = |kind| rules.pools[pool].refuses(kind);
            kinds.split(", ").all(is_refused).then_some(0)
        };
        let refused = match self.pool.lets_go() && site.rules.least(since, refuses).is_some() {
            true => self.oracle.refuse_pin(&self.incoming[raw]),
            false => Err(format!("its pool does not refuse {kinds}")),
        };
        match refused {
            Ok(()) => self.refused = true,
            Err(text) => {
                site.ledger.fail(Invariant::RightRefusal, format!("c{}: {text}", self.number));
            }
        }
    }

    /// pgweir answers a unit itself.
    fn refused(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        let is_cancel = code_of(message) == "57014";
        if !is_cancel {
            self.check_refusal(site, message);
        }
        self.refused = true;
        self.script.not_run();
        self.oracle.forget_unnamed();
        match self.oracle.refuse(&self.incoming[raw]) {
            Ok(tags) => {
                if is_cancel {
                    site.ledger.cancel_told(self.number, &tags);
                }
                site.ledger.refused(&tags);
            }
            Err(text) => {
                site.ledger.fail(Invariant::RightRefusal, format!("c{}: {text}", self.number))
            }
        }
    }

    /// Whether there is a reason for pgweir to refuse a unit.
    pub(super) fn check_refused_unit(&mut self, site: &mut Site, message: &Message) {
        if code_of(message) == "57014" {
            site.ledger.cancel_hit(self.number, None);
        } else {
            self.check_refusal(site, message);
        }
    }

    /// Whether there is a reason for pgweir to refuse a unit or a login.
    pub(super) fn check_refusal(&mut self, site: &mut Site, message: &Message) {
        let (code, text) = (code_of(message), text_of(message));
        if self.ending == Ending::Rude && code == "08P01" {
            return;
        }
        match self.reason(site, message, &code, &text) {
            Ok(row) => row.into_iter().for_each(|row| site.ledger.reach(row)),
            Err(why) => {
                let number = self.number;
                site.ledger.fail(
                    Invariant::RightRefusal,
                    format!("c{number} was refused with {code} {text:?}: {why}"),
                );
            }
        }
    }

    /// The row of docs/failures.md that a refusal belongs to, if it is due.
    fn reason(
        &self,
        site: &Site,
        message: &Message,
        code: &str,
        text: &str,
    ) -> Result<Option<Row>, String> {
        let logs_in = !matches!(self.phase, Phase::Ready);
        let draft = self.pool.draft;
        let busy = if logs_in { "57P03" } else { "53300" };
        let since = self.moments.since;
        let crowded = |at: Option<u64>| at.is_some_and(|at| at >= since);
        let crowd = &site.crowd;
        let (due, row) = match (code, text) {
            ("53300", "sorry, too many clients are logging in") => {
                (logs_in && self.turned_away, Some(Row::MaxLogins))
            }
            ("53300", "sorry, too many clients already") if logs_in => {
                (crowded(crowd.clients), Some(Row::MaxClients))
            }
            ("53300", _) if text.starts_with("too many clients for database") => {
                let at = crowd.databases.get(&self.pool.database).copied();
                (logs_in && crowded(at), Some(Row::MaxDatabaseClients))
            }
            ("53300", _) if text.starts_with("too many clients for user") => {
                let at = crowd.users.get(&self.pool.user).copied();
                (logs_in && crowded(at), Some(Row::MaxUserClients))
            }
            ("57P03", "the pooler is shutting down") => (logs_in && site.draining, None),
            ("57P01", "terminating connection due to administrator command") => {
                (logs_in && (site.draining || self.has_lacked_pool(site)), None)
            }
            ("28000", _) if text.starts_with("no pool for database") => {
                (logs_in && self.has_lacked_pool(site), None)
            }
            ("08006", "login took too long") => {
                self.is_over_for(site, since, |rules| rules.times.login)?;
                (logs_in && !self.contact.introduced, None)
            }
            (code, _) if code == busy && text.starts_with("all servers of pool") => {
                self.has_waited(site)?;
                (true, Some(Row::Busy))
            }
            (code, _) if code == busy && text.starts_with("no server for pool") => {
                self.has_waited(site)?;
                let silent = says(message, "no answer within");
                (site.has_trouble(draft), Some(if silent { Row::Silent } else { Row::Down }))
            }
            (code, "the server cannot be reached") if code == busy => {
                (site.has_trouble(draft), None)
            }
            // A server's own words. That it is full is no reason to doubt the client's identity.
            (code, _) => {
                let full = logs_in && code == "57P03" && site.was_refused(draft, "53300");
                let row = matches!(code, "28P01" | "3D000").then_some(Row::Refused);
                (full || site.was_refused(draft, code), row)
            }
        };
        if due { Ok(row) } else { Err("there is no reason".to_owned()) }
    }

    /// Whether query_wait_timeout may be over for what it has sent last.
    pub(crate) fn may_have_waited(&self, site: &Site) -> bool {
        let wait = |rules: &Configuration| rules.wait(self.pool.draft);
        self.is_over_for(site, self.moments.asked_at, wait).is_ok()
    }

    /// Whether query_wait_timeout is over, and not for long.
    fn has_waited(&self, site: &Site) -> Refuted {
        if self.has_lacked_pool(site) {
            return Ok(());
        }
        let asked_at = self.moments.asked_at;
        let wait = |rules: &Configuration| rules.wait(self.pool.draft);
        self.is_over_for(site, asked_at, wait)?;
        let ruled_since = self.ruled_since(site, asked_at);
        // Its last server may not have said what it is set to: it has the time of a login for that.
        let held =
            site.was_frozen(asked_at).then_some(|rules: &Configuration| Some(rules.times.connect));
        let held = held.and_then(|connect| site.rules.most(ruled_since, connect)).unwrap_or(0);
        // So may the listener before.
        let held = if self.oracle.has_listened() { 2 * held } else { held };
        let most = site.rules.most(ruled_since, wait).map(|most| most + held);
        let since = self.asks_again_at(site);
        // Of several units sent together the last one waited from when the others were answered.
        if let (1, Some(most), Some(answered_at)) =
            (self.moments.sends, most, self.contact.answered_at)
            && answered_at > since + most + site.slack_us()
        {
            return Err(format!("it came {} us late", answered_at - since - most));
        }
        Ok(())
    }

    /// Whether a limit of time, of which there must have been one, has passed since then.
    pub(super) fn is_over_for(
        &self,
        site: &Site,
        since: u64,
        limit: impl Fn(&Configuration) -> Option<u64>,
    ) -> Refuted {
        match site.rules.least(self.ruled_since(site, since), limit) {
            None => Err("there is no such limit".to_owned()),
            Some(least) if site.trace.now - since < least => {
                Err(format!("after {} of {least} us", site.trace.now - since))
            }
            Some(_) => Ok(()),
        }
    }

    /// A FATAL has come.
    pub(super) fn dismissed(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        let (code, text) = (code_of(message), text_of(message));
        site.ledger.breaks_off(self.number);
        let is_other = NOT_REFUSALS.contains(&&*code) || text.contains('[');
        if !is_other && self.may_have_borne_more() {
            self.check_refused_unit(site, message);
            self.phase = Phase::Dismissed;
            return;
        }
        self.phase = Phase::Dismissed;
        let in_block = self.oracle.is_in_block();
        let settled = self.oracle.is_settled();
        let (began_at, answered_at) = (self.moments.began_at, self.moments.answered(settled));
        let verdict = match &*code {
            "08P01" if self.ending == Ending::Rude => Ok(None),
            "0A000" if self.pool.mode == PoolMode::Statement && in_block => Ok(None),
            "25P03" => self
                .is_over_for(site, answered_at, |rules| rules.times.silence_in_block)
                .and_then(|()| self.ends_in(true))
                .map(|()| Some(Row::IdleInTransaction)),
            "25P04" => self
                .is_over_for(site, began_at, |rules| rules.times.transaction)
                .map(|()| Some(Row::TransactionTimeout)),
            "57P05" if text.contains('[') => return self.lost_session(site, message, raw),
            "57P05" => self
                .is_over_for(site, answered_at, |rules| rules.times.silence)
                .and_then(|()| self.ends_in(false))
                .and_then(|()| self.was_idle(site, settled))
                .map(|()| Some(Row::ClientIdle)),
            "57P01" if says(message, "AND CHAIN cannot begin another one") => {
                match in_block && self.bereaved {
                    true => Ok(Some(Row::Chain)),
                    false => Err("its transaction was not lost".to_owned()),
                }
            }
            "57P01" if says(message, "what was sent behind a failed statement") => {
                match self.refused && self.may_have_borne_more() {
                    true => Ok(None),
                    false => Err("nothing of it was refused".to_owned()),
                }
            }
            "57P01"
                if self.may_be_sent_away(site) && text.starts_with("terminating connection") =>
            {
                if !self.may_be_asked_to_leave(site) {
                    // A server that is told to end has the same words.
                    return self.lost_session(site, message, raw);
                }
                site.ledger.counts.farewells += 1;
                Ok(None)
            }
            _ => return self.lost_session(site, message, raw),
        };
        match verdict {
            Ok(row) => row.into_iter().for_each(|row| site.ledger.reach(row)),
            Err(why) => {
                let number = self.number;
                site.ledger.fail(
                    Invariant::RightRefusal,
                    format!("c{number} was dismissed with {code} {text:?}: {why}"),
                );
            }
        }
    }

    /// Whether a unit may have been refused with more behind it that may rest on it.
    pub(super) fn may_have_borne_more(&self) -> bool {
        self.has_sent_more() && (self.refused || self.oracle.may_be_refused())
    }

    /// Whether more may stand behind the unit that is due, be it what is no message.
    pub(super) fn has_sent_more(&self) -> bool {
        self.moments.sends > 1 || self.ending == Ending::Rude
    }

    /// Whether it is in a transaction block, or is not. What it believes may have been lost.
    fn ends_in(&self, block: bool) -> Refuted {
        match self.oracle.is_in_block() == block || self.bereaved {
            true => Ok(()),
            false => Err(format!("in a transaction: {}", !block)),
        }
    }

    /// Whether pgweir had said nothing for as long as a client may be idle, where the network
    /// takes at once what it says.
    fn was_idle(&self, site: &Site, settled: bool) -> Refuted {
        let faults = &site.faults;
        let hindered = faults.small_buffer > 0.0 || faults.slow_reader > 0.0 || faults.stall > 0.0;
        // What its server reports meanwhile is no reply.
        let hindered = hindered || faults.server_reload > 0.0;
        let since = self.ruled_since(site, self.contact.wrote_before);
        let least = site.rules.least(since, |rules| rules.times.silence);
        let idle = self.contact.wrote_at - self.contact.wrote_before;
        let listens = self.oracle.listens() || !self.ear.overheard.is_empty();
        // What is written goes out at the end of the turn.
        match least.filter(|least| idle + 1_000 < *least) {
            Some(least) if settled && !hindered && !listens => {
                Err(format!("idle for {idle} of {least} us"))
            }
            _ => Ok(()),
        }
    }

    /// From when on configurations count for what has begun at this time. A pool that is out of the
    /// configuration goes on as it was when it was last in there.
    pub(super) fn ruled_since(&self, site: &Site, began_at: u64) -> u64 {
        match self.has_lacked_pool(site) {
            true => began_at.min(self.moments.since),
            false => began_at,
        }
    }

    /// Whether its pool was taken out of the configuration since it came.
    pub(crate) fn has_lacked_pool(&self, site: &Site) -> bool {
        site.rules.lacked(self.moments.since, self.pool.draft)
    }

    /// Whether pgweir may want it to go.
    pub(super) fn may_be_sent_away(&self, site: &Site) -> bool {
        site.draining || self.has_lacked_pool(site)
    }

    /// Whether it is between transactions, as it has to be while pgweir only asks.
    fn may_be_asked_to_leave(&self, site: &Site) -> bool {
        let between = !self.oracle.is_in_block() && !self.oracle.has_begun();
        between || site.shut_down || self.bereaved
    }
}

/// The SQLSTATE of an error.
pub(super) fn code_of(message: &Message) -> String {
    let code = message.error().and_then(|error| error.code);
    code.map(|code| code.to_string()).unwrap_or_default()
}

/// Its first line.
fn text_of(message: &Message) -> String {
    let error = message.error();
    error.map(|error| String::from_utf8_lossy(error.message).into_owned()).unwrap_or_default()
}

/// Whether some field of an error has these words.
pub(super) fn says(message: &Message, words: &str) -> bool {
    message.body.windows(words.len()).any(|window| window == words.as_bytes())
}

/// The channel of a notification: behind the process id.
fn channel_of(message: &Message) -> String {
    let behind = message.body.get(4..).unwrap_or_default();
    let name = behind.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// What a report of the server's configuration says.
fn version_of(message: &Message) -> Option<String> {
    let report = (message.tag == b'S').then(|| backend::parse_parameter_status(&message.body));
    let (name, value) = report?.ok()?;
    (name == VERSION.as_bytes()).then(|| String::from_utf8_lossy(value).into_owned())
}

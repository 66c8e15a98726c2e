//! Whether a client hears what docs/failures.md says when its server is lost.

use std::ops::Range;

use pgweir_config::PoolMode;

use super::verdict::{Refuted, code_of, says};
use super::{Client, Ending, Phase};
use crate::configuration::Configuration;
use crate::invariants::Invariant;
use crate::language::Line;
use crate::rows::Row;
use crate::session::{BRAKE_US, Message};
use crate::world::{HANGS, Site};

/// A server that was taken away is missed so much later at most, mostly.
const LATE_US: u64 = 1_000_000;

/// Of a server that is not lost, and of a reply that was to be asked for again.
const REPLY_DROPPED: &str = "the reply was thrown away, and the schema has changed since";

/// Of a server that has not answered within a limit.
const SILENT: &str = "the server did not answer in time";

/// What pgweir says that it knows of a statement that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    NotBegun,
    OnlyReads,
    Nothing,
}

impl Known {
    fn of(message: &Message) -> Self {
        if says(message, "The statement was not begun.") {
            Self::NotBegun
        } else if says(message, "The statement only reads.") {
            Self::OnlyReads
        } else {
            Self::Nothing
        }
    }
}

impl Client {
    /// The server is lost, and the client stays.
    pub(super) fn lost_server(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        let code = code_of(message);
        let known = Known::of(message);
        match self.row_of_error(&code, known, site.faults.is_roomy()) {
            Ok(row)
                if (row == Some(Row::Statement) || known == Known::OnlyReads)
                    && self.may_ask_again(site) =>
            {
                return self.wrongly_told(site, &code, "what only reads is run again");
            }
            Ok(Some(Row::Statement)) if self.is_lone_read(site) => {
                return self.wrongly_told(site, &code, "what only reads has no outcome");
            }
            Ok(_) if says(message, REPLY_DROPPED) => {
                if !site.ledger.schema.may_be_unread(site.trace.now) {
                    return self.wrongly_told(site, &code, "the schema has not changed");
                }
                site.ledger.reply_dropped(self.number);
            }
            Ok(row) => self.lose(site, &code, row, message),
            Err(why) => return self.wrongly_told(site, &code, &why),
        }
        self.script.not_run();
        let begun = known != Known::NotBegun;
        let undone = code == "40001" && known == Known::Nothing;
        self.refused = true;
        self.oracle.lose_unnamed();
        match self.oracle.lose(&self.incoming[raw], undone) {
            Ok(tags) if !begun => site.ledger.refused(&tags),
            Ok(tags) if undone => site.ledger.undone_for_good(&tags),
            Ok(_) => {}
            Err(why) => self.wrongly_told(site, &code, &why),
        }
    }

    /// pgweir answers a unit itself, inside a transaction: it was lost, and the unit a ROLLBACK,
    /// which tells nobody of that.
    pub(super) fn rollback_refused(
        &mut self,
        site: &mut Site,
        message: &Message,
        raw: Range<usize>,
    ) {
        self.struck = None;
        site.lost(self.number, self.draft(), "between statements");
        self.check_refused_unit(site, message);
        self.script.not_run();
        self.oracle.forget_unnamed();
        match self.oracle.lose(&self.incoming[raw], true) {
            Ok(tags) => site.ledger.undone_for_good(&tags),
            Err(why) => self.wrongly_told(site, "an error in a lost transaction", &why),
        }
    }

    /// A string that ends a transaction that has failed, and asks for what another may have got,
    /// has failed on the server.
    pub(super) fn last_value_refused(&mut self, site: &mut Site, raw: Range<usize>) {
        match self.oracle.refuse_pin(&self.incoming[raw]) {
            Ok(()) => self.refused = true,
            Err(text) => {
                site.ledger.fail(Invariant::RightRefusal, format!("c{}: {text}", self.number));
            }
        }
    }

    /// A FATAL that no limit explains.
    pub(super) fn lost_session(&mut self, site: &mut Site, message: &Message, raw: Range<usize>) {
        // To look for what is due takes the Flush by which alone a batch shows within a block.
        let settled = self.oracle.is_settled();
        if self.oracle.hear(&self.incoming[raw]).is_ok() {
            return;
        }
        let code = code_of(message);
        match self.row_of_fatal(&code, settled) {
            Ok(row) => self.lose(site, &code, row, message),
            Err(why) => self.wrongly_told(site, &code, &why),
        }
    }

    /// The row that an ERROR belongs to which tells of a lost server, if the code is the one that
    /// is due: 40001 in a transaction, unless something may have committed it, and for what was not
    /// begun, or only reads and was lost twice; else 08007. `whole`: messages come in one piece, of
    /// which the rest is no COMMIT.
    fn row_of_error(&self, code: &str, known: Known, whole: bool) -> Result<Option<Row>, String> {
        let in_block = self.oracle.is_in_block();
        match code {
            _ if self.oracle.is_answered() => Err("a part of the reply was forwarded".to_owned()),
            _ if !self.pool.lets_go() => Err("its session has ended".to_owned()),
            "40001" if known == Known::NotBegun && !in_block => Ok(Some(Row::NotBegun)),
            "40001" if known == Known::OnlyReads && !in_block && self.may_only_read() => Ok(None),
            _ if known == Known::OnlyReads => Err("it may do more than to read".to_owned()),
            _ if known == Known::NotBegun => Err("a transaction is open".to_owned()),
            "40001" if in_block => Ok(Some(Row::Transaction)),
            "40001" => Err("it is in no transaction".to_owned()),
            _ if !in_block => Ok(Some(Row::Statement)),
            // Of what it has heard a notice of, what is still to be run is not seen here.
            _ if self.oracle.has_begun() => Ok(None),
            _ if whole && self.oracle.unit_commits_nothing() => Err("nothing commits".to_owned()),
            _ => Ok(self.oracle.unit_commits().then_some(Row::Commit)),
        }
    }

    /// Whether what it has sent, if its server is lost, is run again without a word: one statement
    /// that only reads, of a client that stays, where servers are shared, and one loss since. A
    /// server that was given up because the network held it up is a loss that nobody has counted.
    fn may_ask_again(&self, site: &Site) -> bool {
        let since = self.moments.asked_at.saturating_sub(LATE_US);
        let once = site.ledger.kills_since(since) <= 1 && !self.may_be_held_up(site);
        self.is_lone_read(site) && !self.oracle.has_begun() && once
    }

    /// Whether what it has sent is one statement that only reads, of a client that stays, where
    /// servers are shared.
    fn is_lone_read(&self, site: &Site) -> bool {
        let draft = self.pool.draft;
        let shares = |rules: &Configuration| {
            let pool = &rules.pools[draft];
            let limits = [rules.times.statement, rules.times.transaction];
            let brake = limits.into_iter().flatten().all(|most| most > BRAKE_US);
            pool.shared.is_some() && pool.mode != PoolMode::Session && brake
        };
        let reads = self.only_reads().unwrap_or(false);
        // And nothing too long to be kept.
        let reads = reads && self.oracle.unit_commits_nothing();
        let stays = self.ending == Ending::No && !self.has_cancelled;
        let is_lone = self.moments.sends == 1 && stays;
        let is_known = !site.ledger.schema.may_be_unread(site.trace.now);
        reads && is_lone && is_known && site.rules.all().all(shares)
    }

    /// Whether the query that is due does no more than to read; `None`: it is a batch.
    fn only_reads(&self) -> Option<bool> {
        match &self.oracle.query()[..] {
            [] => None,
            [Line::Client(statement)] => Some(statement.may_be_repeated()),
            _ => Some(false),
        }
    }

    /// What a batch is about is not looked at, and of what it has heard something of no more is
    /// there than what comes behind it.
    fn may_only_read(&self) -> bool {
        self.oracle.has_begun() || self.only_reads().unwrap_or(true)
    }

    /// The same of a FATAL: 08007 where nothing of a reply was forwarded, and else 57P01.
    fn row_of_fatal(&self, code: &str, settled: bool) -> Result<Option<Row>, String> {
        let stateful = self.pool.mode == PoolMode::Session || self.oracle.has_state();
        let several = self.has_sent_more() || self.oracle.has_prepared();
        match code {
            "08007" if self.oracle.is_answered() => {
                Err("a part of the reply was forwarded".to_owned())
            }
            "08007" if settled => Err("nothing was under way".to_owned()),
            "08007" if stateful => Ok(None),
            "08007" => Ok(Some(Row::Pipeline)),
            "57P01" if self.oracle.is_answered() => Ok(Some(Row::Reply)),
            "57P01" if stateful => Ok(Some(Row::Session)),
            "57P01" if several => Ok(None),
            "57P01" => Err("it has nothing that a server keeps".to_owned()),
            // The server's own words.
            "57P05" if several || stateful || self.oracle.is_answered() => Ok(None),
            _ => Err("no limit and no loss explains it".to_owned()),
        }
    }

    /// Up to when it may have waited from: where servers are shared, what was lost with one may be
    /// run again, and has its time anew.
    pub(super) fn asks_again_at(&self, site: &Site) -> u64 {
        let (draft, read_at) = (self.pool.draft, self.contact.read_at);
        let clusters = site.rules.clusters(read_at, draft);
        let troubles = clusters.filter_map(|cluster| site.ledger.trouble.get(&cluster).copied());
        match site.rules.all().any(|rules| rules.pools[draft].shared.is_some()) {
            true => troubles.fold(read_at, u64::max),
            false => read_at,
        }
    }

    fn lose(&mut self, site: &mut Site, how: &str, row: Option<Row>, message: &Message) {
        self.struck = None;
        row.into_iter().for_each(|row| site.ledger.reach(row));
        if says(message, HANGS) {
            site.ledger.reach(Row::SilentStatement);
        }
        if says(message, SILENT) && self.may_be_held_up(site) {
            let clusters: Vec<_> = site.rules.clusters(0, self.draft()).collect();
            clusters.into_iter().for_each(|cluster| site.trouble(cluster));
            site.ledger.kill();
        }
        site.lost(self.number, self.draft(), how);
    }

    /// Whether a shared server may be given up for what the network holds up: for longer than a
    /// transaction may take.
    fn may_be_held_up(&self, site: &Site) -> bool {
        let limit = site.rules.least(0, |rules| rules.times.transaction);
        let shares = |rules: &Configuration| rules.pools[self.draft()].shared.is_some();
        limit.is_some() && site.faults.stall > 0.0 && site.rules.all().any(shares)
    }

    fn wrongly_told(&self, site: &mut Site, what: &str, why: &str) {
        site.ledger.fail(Invariant::RightLoss, format!("c{} was told {what}: {why}", self.number));
    }

    /// The stream has come to its end.
    pub(super) fn closed(&mut self, site: &mut Site, how: &'static str) {
        site.trace.note(self.who(), || format!("finds its connection {how}"));
        self.stream = None;
        // Nobody hears what it is owed.
        site.ledger.breaks_off(self.number);
        if self.may_close(site, how) {
            return;
        }
        self.struck = None;
        if !self.incoming.is_empty() {
            site.ledger.reach(Row::Message);
        } else if how == "closed" && matches!(self.phase, Phase::Ready) {
            let text = format!("c{} was closed between two messages, without a word", self.number);
            return site.ledger.fail(Invariant::EndIsSaid, text);
        }
        site.lost(self.number, self.draft(), how);
    }

    /// Whether the end of the stream needs no lost server to explain it.
    fn may_close(&self, site: &Site, how: &str) -> bool {
        // A last word is lost only with what pgweir has not read, or has no place inside a message.
        let unheard = how == "reset" || !self.incoming.is_empty();
        // The FATAL for a transaction block, for AND CHAIN in one that was lost, or for a unit that
        // was refused with more behind it.
        let expelled = self.pool.mode == PoolMode::Statement && self.script.has_begun()
            || self.script.has_chained() && self.bereaved
            || self.may_have_borne_more()
            || how == "reset" && self.may_have_missed_more(site);
        match (&self.phase, self.ending) {
            (Phase::Tls { .. } | Phase::Login { .. }, _) if self.may_be_turned_away(site) => true,
            (Phase::Dismissed, _) | (_, Ending::Rude) => true,
            _ if unheard && (expelled || self.may_be_expelled(site)) => true,
            // To leave in the middle of a COPY is a mistake that a server would answer.
            (_, Ending::Said) if self.oracle.reads_copy_data() => true,
            // Whoever says goodbye behind a Sync in doubt may miss the answer to the last one.
            (_, Ending::Said) if self.script.has_doubted() => true,
            (_, Ending::Said) if self.oracle.was_asked_for_data() => true,
            (_, Ending::Said) => !self.oracle.is_owed() && how == "closed",
            (_, Ending::No) => false,
        }
    }

    /// Whether a unit behind the one that is due may have been answered with a last word: of a
    /// reset it does not know how many replies were lost with it in front of that.
    fn may_have_missed_more(&self, site: &Site) -> bool {
        self.has_sent_more() && (self.has_cancelled || site.has_trouble(self.draft()))
    }

    /// Whether it may be closed before it has logged in, unheard: where there are many too many,
    /// they are closed before they are read.
    fn may_be_turned_away(&self, site: &Site) -> bool {
        let crowded = site.crowd.clients.is_some_and(|at| at >= self.moments.since);
        let limited = site.rules.least(self.moments.since, |rules| rules.times.login).is_some();
        crowded || self.turned_away || limited || self.may_be_sent_away(site)
    }

    /// Whether pgweir may have had a reason to end it.
    fn may_be_expelled(&self, site: &Site) -> bool {
        let answered_at = self.moments.answered(self.oracle.is_settled());
        let began_at = self.moments.began_at;
        let late = [
            self.is_over_for(site, answered_at, |rules| rules.times.silence),
            self.is_over_for(site, answered_at, |rules| rules.times.silence_in_block),
            self.is_over_for(site, began_at, |rules| rules.times.transaction),
        ];
        late.iter().any(Refuted::is_ok) || self.may_be_sent_away(site)
    }
}

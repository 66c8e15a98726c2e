use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use pgweir_wire::backend;

use crate::invariants::Invariant;
use crate::language::{Line, Tag, Verb};
use crate::session::{
    Advance, Again, BORN, CHANGED, Inbox, Message, Session, Settings, State, Witness, shape_of,
    told,
};
use crate::shapes::{Glance, Seen, Shape, Shapes};

/// What a client is owed: the replies of a session that nobody else uses, to the same messages.
///
/// It is run only as far as replies have come, because a cancel decides on the way what follows.
pub(crate) struct Oracle {
    session: Session,
    inbox: Inbox,
    /// Messages that no Flush or Sync has followed yet: nothing is due for them, but may come.
    held: Vec<u8>,
    deeds: Deeds,
    in_block: bool,
    /// That has failed.
    has_failed: bool,
    /// Something of the reply that is due was heard.
    begun: bool,
    /// It was more than that something will be done.
    answered: bool,
    /// It was asked for COPY data just now.
    asked_for_data: bool,
    /// It has sent what may keep it on its server, though nothing shows.
    pinned: bool,
    /// Its transaction was lost, and no server has answered since.
    lost: bool,
    /// Settings that were taken back when its server was lost: another one may have to say so.
    untold: Vec<Vec<u8>>,
    /// It was not told what its unit has changed: the end has to follow.
    unreported: bool,
}

/// A message that was due.
#[derive(Debug)]
pub(crate) enum Heard {
    Reply,
    /// ReadyForQuery, and what it acknowledges.
    Ready {
        committed: Vec<Tag>,
        undone: Vec<Tag>,
        idle: bool,
    },
}

/// A query of so many bytes is there in whole before any of it is sent on.
const PLAIN_BYTES: usize = 8 * 1024;

/// What the session has done since the last ReadyForQuery.
#[derive(Default)]
struct Deeds {
    committed: Vec<Tag>,
    undone: Vec<Tag>,
    wrong: Option<String>,
    /// What servers have seen, and others cannot know.
    shapes: Rc<RefCell<Shapes>>,
    /// What is to be heard now says that rows are not what they were.
    hears_of_change: bool,
}

impl Oracle {
    pub(crate) fn new(settings: BTreeMap<String, String>, shapes: Rc<RefCell<Shapes>>) -> Self {
        let mut session = Session::new(settings);
        // The login has told them.
        while session.state.unreported().is_some() {}
        Self {
            session,
            inbox: Inbox::default(),
            held: Vec::new(),
            deeds: Deeds { shapes, ..Deeds::default() },
            in_block: false,
            has_failed: false,
            begun: false,
            answered: false,
            asked_for_data: false,
            pinned: false,
            lost: false,
            untold: Vec::new(),
            unreported: false,
        }
    }

    /// The client is told of the server's configuration: from now on that is the oracle's, too.
    pub(crate) fn told(&mut self, version: &str) {
        self.session.state.reload(version);
    }

    /// The client is told of a setting of another server, because its own is lost, and its
    /// transaction with it: before it ends that, which is what it will not hear then. False if that
    /// is not so.
    pub(crate) fn told_early(&mut self, report: &[u8]) -> bool {
        let Ok((name, value)) = backend::parse_parameter_status(report) else { return false };
        let [name, value] = [name, value].map(String::from_utf8_lossy);
        let early = self.in_block && !self.begun && self.session.state.told_early(&name, &value);
        self.untold.retain(|untold| !early || !untold.ends_with(report));
        early
    }

    /// The client sends these messages.
    pub(crate) fn sent(&mut self, bytes: &[u8]) {
        let mut at = 0;
        let mut pushed = None;
        while let Ok(Some((message, length))) = Message::parse(&bytes[at..]) {
            // A batch that is left before its end may not be begun.
            let whole = pushed.unwrap_or(0) == at && (at > 0 || self.held.is_empty());
            at += length;
            self.pinned |= may_pin(&message);
            if matches!(message.tag, b'Q' | b'F' | b'S' | b'H' | b'c' | b'f')
                || message.tag == b'X' && whole
            {
                pushed = Some(at);
            }
        }
        if let Some(pushed) = pushed {
            self.release();
            self.inbox.put(&bytes[..pushed]);
        }
        self.held.extend_from_slice(&bytes[pushed.unwrap_or(0)..]);
    }

    /// The client hears this message: is it the one that is due?
    pub(crate) fn hear(&mut self, raw: &[u8]) -> Result<Heard, String> {
        if let Some(told) = self.untold.iter().position(|report| report == raw) {
            self.untold.remove(told);
            return Ok(Heard::Reply);
        }
        self.deeds.hears_of_change = is_of_change(raw);
        while self.session.out.is_empty() {
            match self.session.advance(&mut self.inbox, &mut self.deeds) {
                Advance::Went { .. } | Advance::Locks(_) | Advance::Sleeps(_) => {}
                Advance::Starved if !self.held.is_empty() => self.release(),
                Advance::Starved | Advance::Over => {
                    return Err(format!("got {} when nothing was due", in_words(raw)));
                }
            }
            if let Some(text) = self.deeds.wrong.take() {
                return Err(text);
            }
        }
        if self.unreported && !(raw[0] == b'E' && raw.windows(5).any(|part| part == b"FATAL")) {
            return Err(format!("got {} and never what was reported before", in_words(raw)));
        }
        self.report_first(raw);
        if raw[0] == b'Z' && self.withhold_reports() {
            let heard = self.hear(raw);
            self.unreported = true;
            return heard;
        }
        let Ok(Some((due, length))) = Message::parse(&self.session.out) else {
            return Err("is owed what is no message".to_owned());
        };
        // What is put in front of a message may be what the server finds in the place of data.
        let both_stray = strays(raw) && strays(&self.session.out[..length]);
        let both_changed = is_of_change(raw) && is_of_change(&self.session.out[..length]);
        // pgweir looks at the rows before it is seen that a portal exists, or that the transaction
        // has failed.
        let code = code_of(&self.session.out[..length]);
        let exists = is_of_change(raw) && matches!(&*code, "26000" | "42P03" | "25P02");
        let both_changed = both_changed || exists && self.deeds.shapes.borrow().is_changed();
        // What is put in front of what fails in any case fails there.
        let both_aborted = code_of(raw) == "25P02" && code == "42601" && self.has_failed;
        let told_now = self.is_told_now(raw);
        let same = self.session.out[..length] == *raw;
        if !(same || both_stray || both_changed || both_aborted || told_now) {
            // A known difference.
            if due.tag == b't' && code_of(raw) == "25P02" && self.session.take_back() {
                return Ok(Heard::Reply);
            }
            if b"2tTZ".contains(&due.tag) && is_of_change(raw) && self.finds_changed(&due) {
                self.session.told_nothing();
                self.begun = true;
                return Ok(Heard::Reply);
            }
            return Err(format!("got {} when {} was due", in_words(raw), told(&due)));
        }
        self.session.out.drain(..length);
        self.begun = due.tag != b'Z';
        // What has failed may say more, or be skipped.
        self.asked_for_data = due.tag == b'G' || self.asked_for_data && due.tag == b'E';
        self.answered = self.begun && (self.answered || !b"123TtnNSA".contains(&due.tag));
        // The ReadyForQuery behind an error of pgweir's own is no answer of a server.
        self.lost &= !self.begun;
        if due.tag != b'Z' {
            return Ok(Heard::Reply);
        }
        let idle = due.body == b"I";
        self.in_block = !idle;
        self.has_failed = due.body == b"E";
        let Deeds { committed, undone, .. } = &mut self.deeds;
        let (committed, undone) = (std::mem::take(committed), std::mem::take(undone));
        Ok(Heard::Ready { committed, undone, idle })
    }

    /// Whether it says what the rows of a statement are like of which nobody knew that: from now
    /// on that is what they have to be.
    fn is_told_now(&mut self, raw: &[u8]) -> bool {
        let message = Message::parse(raw).ok().flatten();
        let shape = message.and_then(|(message, _)| shape_of(&message));
        let may_be = |shape: &Shape| shape.is_none() || self.deeds.shapes.borrow().is_changed();
        shape.filter(may_be).is_some_and(|shape| self.session.tells(shape))
    }

    /// What was to be described, or bound, is not what it was, if that can be. Where SQL may name
    /// what is bound it may have been so for a moment, in a transaction that was undone; and what
    /// was changed between a Parse and our question for its rows is found by that.
    fn finds_changed(&mut self, due: &Message) -> bool {
        let can_be = self.deeds.shapes.borrow().is_changed();
        match due.tag {
            b'2' => can_be && self.pinned && self.session.binds_changed(&mut self.deeds),
            b'Z' => can_be && !self.answered && due.body == b"I",
            _ => can_be && self.session.finds_changed(&mut self.deeds),
        }
    }

    /// A client that loses its server, and with that its session, while its settings are put back
    /// does not hear what a RESET has changed. Says whether something was due to be told.
    fn withhold_reports(&mut self) -> bool {
        let mut reports = false;
        while let Ok(Some((due, length))) = Message::parse(&self.session.out)
            && due.tag == b'S'
        {
            self.session.out.drain(..length);
            reports = true;
        }
        reports
    }

    /// What a unit has changed is reported in no order of any meaning: this comes first, if it is
    /// among what is due.
    fn report_first(&mut self, raw: &[u8]) {
        let mut at = 0;
        while let Ok(Some((due, length))) = Message::parse(&self.session.out[at..])
            && due.tag == b'S'
        {
            if self.session.out[at..at + length] == *raw {
                self.session.out[..at + length].rotate_right(length);
                return;
            }
            at += length;
        }
    }

    /// The statement with this tag was ended from outside, in these words: from here on the session
    /// goes that way. Whether a lock has to be waited for depends on others.
    pub(crate) fn interrupt(&mut self, tag: Tag, code: &[u8; 5], text: &str) -> Result<(), String> {
        while self.session.running() != Some(tag) {
            let advance = match self.session.out.is_empty() {
                true => self.session.advance(&mut self.inbox, &mut self.deeds),
                false => Advance::Over,
            };
            match advance {
                Advance::Went { .. } | Advance::Locks(_) | Advance::Sleeps(_) => {}
                Advance::Starved if !self.held.is_empty() => self.release(),
                Advance::Starved | Advance::Over => {
                    return Err(format!("{tag} was ended when its reply was not due"));
                }
            }
        }
        if code != b"57014" && !self.session.is_locking() {
            return Err(format!("{tag} takes no lock, and was ended as if it did"));
        }
        self.session.interrupt(code, text, &mut self.inbox, &mut self.deeds);
        Ok(())
    }

    /// Whether pgweir may answer the next unit in the server's place: no server is involved yet.
    pub(crate) fn may_be_refused(&self) -> bool {
        let sent = !self.inbox.has_no_message() || !self.held.is_empty();
        let free = self.session.is_at_rest() || self.lost && self.session.is_idle();
        self.session.out.is_empty() && free && sent
    }

    /// pgweir does answer it. Says which statements are not run.
    pub(crate) fn refuse(&mut self, report: &[u8]) -> Result<Vec<Tag>, String> {
        if self.inbox.begins_nothing() {
            self.release();
        }
        let tags = self.session.refuse(report, &mut self.inbox);
        let lost = self.lost;
        self.hear(report)?;
        self.lost = lost;
        Ok(tags)
    }

    /// The message that is due fails with this error: it would keep a server.
    pub(crate) fn refuse_pin(&mut self, report: &[u8]) -> Result<(), String> {
        while self.session.out.is_empty() {
            if self.session.fail_next(report, &mut self.inbox, &mut self.deeds) {
                return self.hear(report).map(drop);
            }
            match self.session.advance(&mut self.inbox, &mut self.deeds) {
                Advance::Went { .. } | Advance::Locks(_) | Advance::Sleeps(_) => {}
                Advance::Starved if !self.held.is_empty() => self.release(),
                Advance::Starved | Advance::Over => break,
            }
        }
        Err("was refused what keeps no server".to_owned())
    }

    /// The client's server is lost, which this error tells: the transaction is undone, or nobody
    /// knows what has become of the unit.
    /// Says which statements of the unit that gives an answer to are not there any more.
    pub(crate) fn lose(&mut self, report: &[u8], undone: bool) -> Result<Vec<Tag>, String> {
        if undone && !self.in_block {
            return Err("lost a transaction that it had not begun".to_owned());
        }
        if self.inbox.begins_nothing() {
            self.release();
        }
        let begun = self.begun;
        let tags = self.inbox.tags_of_unit();
        self.session.lose(report, begun, undone, &mut self.inbox, &mut self.deeds);
        while let Some((name, value)) = self.session.state.unreported() {
            let mut report = Vec::new();
            backend::parameter_status(&mut report, name.as_bytes(), value.as_bytes());
            if !self.untold.contains(&report) {
                self.untold.push(report);
            }
        }
        self.deeds.committed.clear();
        self.hear(report)?;
        self.lost = undone;
        Ok(tags)
    }

    /// Whether something is due that the server does not keep back.
    pub(crate) fn is_owed(&self) -> bool {
        // Nothing is looked for where nothing was sent.
        if self.inbox.is_empty() && self.session.out.is_empty() && self.session.is_waiting() {
            return false;
        }
        let mut session = self.session.clone();
        let mut inbox = self.inbox.clone();
        let shapes = Rc::clone(&self.deeds.shapes);
        let mut deeds = Deeds { shapes, ..Deeds::default() };
        loop {
            if session.out.len() > 8 * 1024 {
                return true;
            }
            match session.advance(&mut inbox, &mut deeds) {
                Advance::Went { flush: true } if !session.out.is_empty() => return true,
                Advance::Went { .. } | Advance::Locks(_) | Advance::Sleeps(_) => {}
                Advance::Starved | Advance::Over => return false,
            }
        }
    }

    /// Whether all that was sent is answered, and no batch is open.
    pub(crate) fn is_settled(&self) -> bool {
        let said = self.session.out.is_empty() && self.session.is_idle();
        said && self.held.is_empty() && self.inbox.is_empty()
    }

    /// Whether a Flush, or the end of a unit, has followed all that was sent.
    pub(crate) fn holds_nothing_back(&self) -> bool {
        self.held.is_empty()
    }

    /// The statements of what was sent, if nothing of it was answered yet.
    pub(crate) fn unbegun(&self) -> Vec<Tag> {
        match self.session.out.is_empty() && self.session.is_idle() && !self.begun {
            true => self.inbox.tags(),
            false => Vec::new(),
        }
    }

    /// Whether something of the reply that is due was heard.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether the last that was heard asks for COPY data, which the server need not read.
    pub(crate) fn was_asked_for_data(&self) -> bool {
        self.asked_for_data
    }

    /// Whether something of it was heard that tells what was done.
    pub(crate) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Whether the session has, or may have, something that outlives its transactions.
    pub(crate) fn has_state(&self) -> bool {
        !self.session.state.stains.is_empty() || self.pinned
    }

    /// If the unit that is due begins by making the unnamed statement, that is not made; and the
    /// one before it is gone rather than taken for the one that its client meant to make. A query
    /// ends it, too.
    pub(crate) fn forget_unnamed(&mut self) {
        // Neither a Flush between two units nor what is left of a COPY is a part of one.
        let first = self.inbox.unit().find(|message| !b"Hdcf".contains(&message.tag));
        let ends = |message: Message| match message.tag {
            b'P' => message.body.first() == Some(&0),
            tag => tag == b'Q',
        };
        if first.is_some_and(ends) {
            self.session.forget_unnamed();
        }
    }

    /// A unit was lost: whatever it was, there is no unnamed statement any more.
    pub(crate) fn lose_unnamed(&mut self) {
        self.session.forget_unnamed();
    }

    /// Whether it has prepared statements with names, which stay on a server.
    pub(crate) fn has_prepared(&self) -> bool {
        self.session.has_named()
    }

    /// Whether a COMMIT is in the unit that is due.
    pub(crate) fn unit_commits(&self) -> bool {
        let mut unit = self.inbox.unit();
        let commits =
            |line: &Line| matches!(line, Line::Client(statement) if statement.verb == Verb::Commit);
        unit.any(|message| message.lines().iter().flatten().any(commits))
    }

    /// Whether the unit that is due is plain to see, and neither ends a transaction nor could.
    pub(crate) fn unit_commits_nothing(&self) -> bool {
        let mut unit = self.inbox.unit();
        let plain = |message: Message| {
            let short = message.body.len() < PLAIN_BYTES;
            let harmless = |lines: Vec<Line>| !lines.iter().any(may_commit);
            message.tag == b'Q' && short && message.lines().is_some_and(harmless)
        };
        let first = unit.next();
        first.is_some_and(plain) && unit.next().is_none()
    }

    /// The statements of the query that is due, if one is.
    pub(crate) fn query(&self) -> Vec<Line> {
        let query = self.inbox.unit().next().filter(|message| message.tag == b'Q');
        query.and_then(|message| message.lines()).unwrap_or_default()
    }

    fn release(&mut self) {
        self.inbox.put(&std::mem::take(&mut self.held));
    }

    /// Whether it waits for COPY data.
    pub(crate) fn reads_copy_data(&self) -> bool {
        self.session.reads_copy_data()
    }

    pub(crate) fn listens(&self) -> bool {
        self.session.state.listens()
    }

    /// The channels that it listens on.
    pub(crate) fn channels(&self) -> impl Iterator<Item = String> {
        self.session.state.channels().cloned()
    }

    /// Whether it listens on this channel, whatever becomes of its transaction.
    pub(crate) fn must_hear(&self, channel: &str) -> bool {
        self.session.state.must_hear(channel)
    }

    /// Whether it has listened on any channel, or does.
    pub(crate) fn has_listened(&self) -> bool {
        self.session.state.has_listened
    }

    /// Whether it may be notified on this channel.
    pub(crate) fn may_hear(&self, channel: &str) -> bool {
        self.session.state.may_hear(channel)
    }

    /// Whether it has asked at its login for what only a server's start can set.
    pub(crate) fn is_born(&self) -> bool {
        self.session.state.setting(BORN) != State::default_of(BORN)
    }

    /// Whether its transaction was lost, and no server has answered since.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether the last ReadyForQuery said so.
    pub(crate) fn is_in_block(&self) -> bool {
        self.in_block
    }
}

impl Witness for Deeds {
    fn meets(&mut self, _: Tag, _: &State) {}
    fn executes(&mut self, _: Tag, _: Again) {}
    fn finds_plan(&mut self, _: Tag, _: u32) {}
    fn overruns(&mut self, _: Tag) {}

    fn committed(&mut self, tags: &[Tag]) {
        self.committed.extend_from_slice(tags);
    }

    fn settled(&mut self, _: Tag, _: Option<&Settings>) {}

    fn undone(&mut self, tags: &[Tag]) {
        self.undone.extend_from_slice(tags);
    }

    fn reshaped(&mut self, _: &State) {}

    fn reads(&mut self, glance: Glance, _: &State) -> Seen {
        let shapes = self.shapes.borrow();
        match glance {
            Glance::Text(tag) => shapes.of_text(tag),
            Glance::Run(tag) | Glance::RunByName(tag) => {
                Seen { shape: shapes.of_run(tag).unwrap_or_default(), in_doubt: false }
            }
            Glance::Description => Seen { shape: None, in_doubt: true },
        }
    }

    fn revalidates(&mut self, glance: Glance, known: Seen, _: &State) -> Option<Shape> {
        let shapes = self.shapes.borrow();
        let (tag, in_doubt) = match glance {
            Glance::Run(tag) => (tag, known.in_doubt),
            Glance::RunByName(tag) => (tag, true),
            Glance::Text(_) | Glance::Description => return Some(known.shape),
        };
        let found = shapes.of_run(tag).unwrap_or(known.shape);
        let is_valid = match in_doubt {
            true => !self.hears_of_change || !shapes.is_changed(),
            false => found == known.shape,
        };
        is_valid.then_some(found)
    }

    fn copies(&mut self, _: Tag, _: &[u8]) {}

    fn gives_up(&mut self) {}

    fn wrong(&mut self, _: Invariant, how: String) {
        self.wrong.get_or_insert(how);
    }
}

/// Whether a message may leave something behind, whatever becomes of it: what functions do is not
/// known, nor what a long text says, or one that does not end; whether a statement is carried out
/// is not known either when it is sent on; and behind the end of a COPY that has failed may
/// stand a Sync that counts, or does not.
fn may_pin(message: &Message) -> bool {
    let stays = |line: &Line| matches!(line, Line::Client(its) if its.verb.leaves_state());
    let named = |message: &Message| message.body.first() != Some(&0);
    match message.tag {
        _ if message.body.len() > PLAIN_BYTES => !message.is_copy(),
        b'F' => true,
        b'P' if named(message) => true,
        b'P' => {
            let lines = message.lines();
            lines.is_none_or(|lines| lines.iter().any(|line| stays(line) || copies(line)))
        }
        b'Q' => message.lines().is_none_or(|lines| lines.iter().any(stays)),
        _ => false,
    }
}

fn copies(line: &Line) -> bool {
    matches!(line, Line::Client(statement) if matches!(statement.verb, Verb::CopyIn { .. }))
}

/// Whether a statement may be part of what commits: COPY data may be, as far as they are not there.
fn may_commit(line: &Line) -> bool {
    line.is_exit() || copies(line)
}

/// Whether it says that a message is no COPY data.
fn strays(raw: &[u8]) -> bool {
    let text = b"Munexpected message type ";
    raw.starts_with(b"E") && raw.windows(text.len()).any(|part| part == text)
}

/// Whether it says that rows are not what they were.
fn is_of_change(raw: &[u8]) -> bool {
    raw.starts_with(b"E") && raw.windows(CHANGED.len()).any(|part| part == CHANGED.as_bytes())
}

fn code_of(raw: &[u8]) -> String {
    let message = Message::parse(raw).ok().flatten();
    let code = message.and_then(|(message, _)| message.error()?.code);
    code.map(|code| code.to_string()).unwrap_or_default()
}

fn in_words(raw: &[u8]) -> String {
    match Message::parse(raw) {
        Ok(Some((message, _))) => told(&message),
        Ok(None) | Err(()) => raw.escape_ascii().to_string(),
    }
}

//! A PostgreSQL session as a state machine without I/O: what a backend does with the messages of
//! its frontend (`PostgresMain`, postgres.c), for the made-up language.
//!
//! The fake servers run it; and each client runs one of its own beside its connection, as the
//! oracle: what the client gets through pgweir must be what this session, which nobody shares,
//! says to the same messages.

mod effect;
mod execute;
mod extended;
mod intervene;
mod left;
mod message;
mod settings;
mod state;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use pgweir_wire::{TransactionStatus, backend};

use crate::invariants::Invariant;
use crate::language::{self, Line, Tag};
use crate::shapes::{Seen, Shape};

pub(crate) use execute::{CHANGED, Execution};
pub(crate) use message::{Inbox, Message, put, shape_of, write_error, write_fatal, write_warning};
pub(crate) use settings::{BORN, HASTY, VERSION};
pub(crate) use state::{
    Again, BRAKE_US, Home, Notification, Settings, Stain, State, Transaction, Witness,
};
pub(crate) use words::{all_asked, all_told, told};

/// A session. See the module's documentation.
#[derive(Clone)]
pub(crate) struct Session {
    /// What was said and not taken yet.
    pub(crate) out: Vec<u8>,
    pub(crate) state: State,
    portals: BTreeMap<Vec<u8>, Portal>,
    /// The name of the statement that the last message describes, if its rows may change.
    describing: Option<Vec<u8>>,
    /// The names of the statements that the last message has made, and the one before that.
    parsed: [Option<Vec<u8>>; 2],
    /// A batch has failed: everything up to its Sync is passed over.
    skipping: bool,
    work: Work,
    /// Notifications that are not said yet, and the processes that they are from.
    notifications: Vec<(i32, Notification)>,
    /// Whose process it is: what it notifies itself of is said at once. An oracle is nobody's.
    process_id: Option<i32>,
    /// The server's configuration, if that is to be read and was not yet.
    configuration: Option<String>,
}

/// A prepared statement.
struct Prepared {
    /// `None` is the empty statement.
    line: Option<Line>,
    tag: Option<Tag>,
    /// What its rows were like, if a statement may change that.
    seen: Seen,
}

/// A portal: a statement with its parameters.
#[derive(Clone)]
struct Portal {
    statement: Rc<Prepared>,
    /// The tag that its Bind brought: that of this execution.
    tag: Tag,
    shape: Shape,
    /// What is left of a statement that returns rows; nothing before it has begun.
    suspended: Option<Execution>,
    begun: bool,
    /// In how many subtransactions it was made.
    depth: usize,
    /// It cannot be run any more: its transaction has failed.
    failed: bool,
}

/// What the session is doing.
#[derive(Clone)]
enum Work {
    /// Waiting for a message.
    None,
    /// A simple query: the statement that runs, and those behind it.
    Query {
        execution: Option<Execution>,
        lines: VecDeque<Line>,
    },
    /// An Execute.
    Execute {
        portal: Vec<u8>,
        execution: Execution,
    },
    /// ReadyForQuery is due.
    Ready,
    /// Where the next message begins is not known any more.
    Lost,
    Over,
}

/// What a step of a session came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// It went on, perhaps with a message. `flush`: that is sent at once.
    Went { flush: bool },
    /// It waits for a lock that nobody else may have, and goes on with it.
    Locks(u32),
    /// It waits for so many milliseconds.
    Sleeps(u32),
    /// It waits for a message.
    Starved,
    /// It is over.
    Over,
}

const WENT: Advance = Advance::Went { flush: false };
const FLUSH: Advance = Advance::Went { flush: true };

impl Session {
    /// A session that has logged in with these settings.
    pub(crate) fn new(settings: BTreeMap<String, String>) -> Self {
        Self {
            out: Vec::new(),
            state: State::new(settings),
            portals: BTreeMap::new(),
            describing: None,
            parsed: [None, None],
            skipping: false,
            work: Work::None,
            notifications: Vec::new(),
            process_id: None,
            configuration: None,
        }
    }

    /// The same as the session of a process.
    pub(crate) fn of_process(mut self, process_id: i32) -> Self {
        self.state.readings = u64::from(process_id.unsigned_abs()) << 32;
        Self { process_id: Some(process_id), ..self }
    }

    /// Goes on by one step, which says one message at most (a description: two).
    pub(crate) fn advance(&mut self, inbox: &mut Inbox, witness: &mut impl Witness) -> Advance {
        match std::mem::replace(&mut self.work, Work::None) {
            Work::None => match inbox.take() {
                None => Advance::Starved,
                Some(message) => self.receive(&message, witness),
            },
            Work::Query { execution, lines } => self.go_on(execution, lines, inbox, witness),
            Work::Execute { portal, execution } => {
                self.go_on_executing(portal, execution, inbox, witness)
            }
            Work::Ready => self.ready(),
            Work::Lost => {
                let text = "terminating connection because protocol synchronization was lost []";
                write_fatal(&mut self.out, b"08P01", text);
                self.work = Work::Over;
                FLUSH
            }
            Work::Over => Advance::Over,
        }
    }

    /// Whether a statement runs.
    pub(crate) fn is_busy(&self) -> bool {
        match &self.work {
            Work::Query { execution, lines } => execution.is_some() || !lines.is_empty(),
            Work::Execute { .. } => true,
            Work::None | Work::Ready | Work::Lost | Work::Over => false,
        }
    }

    /// Whether a statement is being carried out; not between those of a query string.
    pub(crate) fn is_executing(&self) -> bool {
        match &self.work {
            Work::Query { execution, .. } => execution.is_some(),
            Work::Execute { .. } => true,
            Work::None | Work::Ready | Work::Lost | Work::Over => false,
        }
    }

    /// Whether it is at the start of a unit, outside of any transaction.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.work, Work::None)
            && !self.skipping
            && self.state.transaction == Transaction::None
    }

    /// Whether it waits for a message.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.work, Work::None)
    }

    /// Whether it waits for a message, and has no batch open.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.work, Work::None)
            && !self.skipping
            && self.state.transaction != Transaction::Implicit
    }

    /// Whether what runs is pgweir's and brings the session to what a client has asked for.
    pub(crate) fn is_prepared(&self) -> bool {
        let asked = |line: &Line| match line {
            Line::SetConfig(pairs) => pairs.iter().any(|(_, value)| value.is_some()),
            Line::Catalogue
            | Line::Client(_)
            | Line::Listen(_)
            | Line::Mark(..)
            | Line::Unlisten(_)
            | Line::DiscardAll
            | Line::DiscardPlans
            | Line::DiscardSequences
            | Line::FailedTransaction
            | Line::PutBack(_)
            | Line::Rollback
            | Line::Room
            | Line::Settings(_)
            | Line::State(_) => false,
        };
        match &self.work {
            Work::Query { execution, lines } => {
                execution.as_ref().is_some_and(|execution| asked(execution.line()))
                    || lines.iter().any(asked)
            }
            Work::Execute { .. } | Work::None | Work::Ready | Work::Lost | Work::Over => false,
        }
    }

    /// The tag of the statement that runs.
    pub(crate) fn running(&self) -> Option<Tag> {
        match &self.work {
            Work::Query { execution, lines } => match execution {
                Some(execution) => execution.tag(),
                None => lines.front().and_then(Line::tag),
            },
            Work::Execute { execution, .. } => execution.tag(),
            Work::None | Work::Ready | Work::Lost | Work::Over => None,
        }
    }

    /// Whether it has prepared statements with names.
    pub(crate) fn has_named(&self) -> bool {
        self.state.statements.keys().any(|name| !name.is_empty())
    }

    /// The unnamed statement is gone.
    pub(crate) fn forget_unnamed(&mut self) {
        self.state.statements.remove(&b""[..]);
    }

    /// Whether it reads COPY data.
    pub(crate) fn reads_copy_data(&self) -> bool {
        match &self.work {
            Work::Query { execution, .. } => {
                execution.as_ref().is_some_and(Execution::reads_copy_data)
            }
            Work::Execute { execution, .. } => execution.reads_copy_data(),
            Work::None | Work::Ready | Work::Lost | Work::Over => false,
        }
    }

    /// Whether what runs, or is about to, takes a lock.
    pub(crate) fn is_locking(&self) -> bool {
        let line = match &self.work {
            Work::Query { execution: Some(execution), .. } | Work::Execute { execution, .. } => {
                Some(execution.line())
            }
            Work::Query { execution: None, lines } => lines.front(),
            Work::None | Work::Ready | Work::Lost | Work::Over => None,
        };
        line.is_some_and(|line| self.state.means(line).is_locking())
    }

    /// Whether what runs is pgweir's, and sets settings.
    pub(crate) fn sets_settings(&self) -> bool {
        match &self.work {
            Work::Query { execution, lines } => {
                execution.as_ref().is_some_and(Execution::sets_settings)
                    || lines.iter().any(Line::sets_settings)
            }
            Work::Execute { .. } | Work::None | Work::Ready | Work::Lost | Work::Over => false,
        }
    }

    /// Whether what runs is pgweir's, and asks what the server has room for.
    pub(crate) fn asks_for_room(&self) -> bool {
        match &self.work {
            Work::Query { execution, lines } => {
                execution.as_ref().is_some_and(|execution| *execution.line() == Line::Room)
                    || lines.contains(&Line::Room)
            }
            Work::Execute { .. } | Work::None | Work::Ready | Work::Lost | Work::Over => false,
        }
    }

    /// What it has notified others of since it was last asked. A process hears of its own before it
    /// says that it is ready.
    pub(crate) fn take_announced(&mut self) -> Vec<Notification> {
        let announced = std::mem::take(&mut self.state.announced);
        if let Some(process_id) = self.process_id {
            let own = announced.iter().cloned();
            self.notifications.extend(own.map(|notification| (process_id, notification)));
        }
        announced
    }

    /// A process has notified a channel.
    pub(crate) fn notify(&mut self, process_id: i32, notification: Notification) {
        self.notifications.push((process_id, notification));
    }

    /// Says what it was notified of, outside of transactions only. Whether there was anything.
    pub(crate) fn say_notifications(&mut self) -> bool {
        let unsaid = self.out.len();
        if self.state.transaction != Transaction::None {
            return false;
        }
        for (process_id, Notification { channel, payload }) in
            std::mem::take(&mut self.notifications)
        {
            if self.state.listens_on(&channel) {
                put(&mut self.out, b'A', |out| {
                    out.extend_from_slice(&process_id.to_be_bytes());
                    out.extend_from_slice(format!("{channel}\0{payload}\0").as_bytes());
                });
            }
        }
        self.out.len() > unsaid
    }

    /// The server has another configuration, which is read and reported with the next
    /// ReadyForQuery.
    pub(crate) fn reconfigure(&mut self, version: &str) {
        self.configuration = Some(version.to_owned());
    }

    /// Reads the configuration again, and reports what has changed.
    pub(crate) fn read_configuration(&mut self) {
        if let Some(version) = self.configuration.take()
            && self.state.setting(VERSION) != version
        {
            self.state.reload(&version);
            backend::parameter_status(&mut self.out, VERSION.as_bytes(), version.as_bytes());
        }
    }

    /// What is over when the session ends.
    pub(crate) fn end(&mut self, witness: &mut impl Witness) {
        self.state.abort(witness);
    }

    fn receive(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        self.describing = None;
        if self.skipping && message.tag != b'S' && message.tag != b'X' {
            return WENT;
        }
        self.parse_is_past(message);
        match message.tag {
            b'Q' => self.query(message, witness),
            b'P' => self.parse(message, witness),
            b'B' => self.bind(message, witness),
            b'D' => self.describe(message, witness),
            b'E' => self.execute(message, witness),
            b'C' => self.close(message, witness),
            b'F' => self.call(message, witness),
            b'H' => FLUSH,
            b'S' => self.sync(witness),
            b'X' => Advance::Over,
            b'd' | b'c' | b'f' => WENT,
            tag => {
                witness.wrong(
                    Invariant::WholeMessages,
                    format!("a server was sent message type {tag}"),
                );
                Advance::Over
            }
        }
    }

    fn query(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        self.state.statements.remove(&b""[..]);
        let text = message.body.strip_suffix(b"\0").unwrap_or(&message.body);
        let Some(lines) = language::parse(text) else {
            let tags: Vec<_> = message.tags().iter().map(Tag::to_string).collect();
            let text = format!("syntax error [{}]", tags.join(" "));
            return self.fail(b"42601", &text, false, witness);
        };
        if lines.is_empty() {
            if let Err((code, text)) = self.state.commit_implicit(witness) {
                return self.fail(code, &text, false, witness);
            }
            self.drop_portals();
            self.say_empty();
            self.work = Work::Ready;
            return WENT;
        }
        self.state.several = lines.len() > 1;
        self.work = Work::Query { execution: None, lines: lines.into() };
        WENT
    }

    /// A simple query goes on: with the statement that runs, or with the next one.
    fn go_on(
        &mut self,
        execution: Option<Execution>,
        mut lines: VecDeque<Line>,
        inbox: &mut Inbox,
        witness: &mut impl Witness,
    ) -> Advance {
        let Some(mut execution) = execution else {
            let Some(line) = lines.pop_front() else {
                self.work = Work::Ready;
                return WENT;
            };
            if let Some(tag) = line.tag() {
                self.state.meet(tag, witness);
            }
            if self.state.refuses(&line) {
                return self.aborted(false, witness);
            }
            // It has a portal, which is the one without a name.
            self.portals.remove(&b""[..]);
            let mut execution = Execution::of_query(line);
            execution.begin(&mut self.state, witness);
            self.work = Work::Query { execution: Some(execution), lines };
            return WENT;
        };
        let last = lines.is_empty();
        match execution.advance(&mut self.state, &mut self.out, inbox, last, witness) {
            execute::Step::Goes(advance) => {
                self.work = Work::Query { execution: Some(execution), lines };
                advance
            }
            execute::Step::Done => {
                self.drop_portals();
                self.work = Work::Query { execution: None, lines };
                WENT
            }
            execute::Step::Suspended => unreachable!("a simple query has no row limit"),
            execute::Step::Failed(code, text) => self.fail(code, &text, false, witness),
            execute::Step::Lost(text) => self.lose_track(&text, witness),
        }
    }

    fn go_on_executing(
        &mut self,
        name: Vec<u8>,
        mut execution: Execution,
        inbox: &mut Inbox,
        witness: &mut impl Witness,
    ) -> Advance {
        match execution.advance(&mut self.state, &mut self.out, inbox, false, witness) {
            execute::Step::Goes(advance) => {
                self.work = Work::Execute { portal: name, execution };
                return advance;
            }
            execute::Step::Suspended => {
                if let Some(portal) = self.portals.get_mut(&name) {
                    portal.suspended = Some(execution);
                }
            }
            execute::Step::Done => {
                if execution.returns_rows()
                    && let Some(portal) = self.portals.get_mut(&name)
                {
                    portal.suspended = Some(execution);
                }
                self.drop_portals();
            }
            execute::Step::Failed(code, text) => return self.fail(code, &text, true, witness),
            execute::Step::Lost(text) => return self.lose_track(&text, witness),
        }
        WENT
    }

    /// A fast-path function call. Its function is a write; a number of 0 is unknown.
    fn call(&mut self, message: &Message, witness: &mut impl Witness) -> Advance {
        let Some(&tag) = message.tags().first() else {
            witness.wrong(Invariant::OwnReplies, "a function call has no tag".to_owned());
            return Advance::Over;
        };
        self.state.meet(tag, witness);
        if self.state.transaction == Transaction::Failed {
            return self.aborted(false, witness);
        }
        self.state.start();
        if message.body.starts_with(&[0; 4]) {
            let text = format!("function with OID 0 does not exist{}", of(Some(tag)));
            return self.fail(b"42883", &text, false, witness);
        }
        self.state.executes(tag, Again::MayNot, witness);
        self.state.writes.push(tag);
        put(&mut self.out, b'V', |out| {
            let value = tag.to_string();
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value.as_bytes());
        });
        if let Err((code, text)) = self.state.commit_implicit(witness) {
            return self.fail(code, &text, false, witness);
        }
        self.drop_portals();
        self.work = Work::Ready;
        WENT
    }

    fn sync(&mut self, witness: &mut impl Witness) -> Advance {
        self.skipping = false;
        if let Err((code, text)) = self.state.commit_implicit(witness) {
            return self.fail(code, &text, false, witness);
        }
        self.drop_portals();
        self.work = Work::Ready;
        WENT
    }

    /// Notifications, ParameterStatus for each reported setting that has changed, ReadyForQuery.
    fn ready(&mut self) -> Advance {
        self.say_notifications();
        self.read_configuration();
        if let Some((name, value)) = self.state.unreported() {
            backend::parameter_status(&mut self.out, name.as_bytes(), value.as_bytes());
            self.work = Work::Ready;
            return WENT;
        }
        let status = match self.state.transaction {
            Transaction::None | Transaction::Implicit => TransactionStatus::Idle,
            Transaction::Block => TransactionStatus::Active,
            Transaction::Failed => TransactionStatus::Failed,
        };
        backend::ready_for_query(&mut self.out, status);
        FLUSH
    }

    /// The transaction has failed before. Which message is refused for it does not show, nor whose:
    /// it may be a Parse that pgweir makes again, of a text that is nobody's.
    fn aborted(&mut self, extended: bool, witness: &mut impl Witness) -> Advance {
        self.fail(b"25P02", "current transaction is aborted []", extended, witness)
    }

    /// An error ends the message, and with it the batch and the transaction.
    fn fail(
        &mut self,
        code: &[u8; 5],
        text: &str,
        extended: bool,
        witness: &mut impl Witness,
    ) -> Advance {
        write_error(&mut self.out, code, text);
        self.state.error(witness);
        self.drop_portals();
        self.skipping = extended;
        self.work = if extended { Work::None } else { Work::Ready };
        FLUSH
    }

    /// A COPY was sent something else than data (`CopyGetData`): the error comes before the rest
    /// of that message is read.
    fn lose_track(&mut self, text: &str, witness: &mut impl Witness) -> Advance {
        let advance = self.fail(b"08P01", text, false, witness);
        self.work = Work::Lost;
        witness.gives_up();
        advance
    }

    /// Portals end with their transaction or subtransaction. One of a transaction that has failed
    /// keeps its name up to the end of that.
    fn drop_portals(&mut self) {
        let depth = self.state.depth();
        match self.state.transaction {
            Transaction::None => self.portals.clear(),
            Transaction::Failed => {
                let failed = self.portals.values_mut().filter(|portal| portal.depth >= depth);
                failed.for_each(|portal| portal.failed = true);
            }
            Transaction::Implicit | Transaction::Block => {
                if std::mem::take(&mut self.state.went_back) {
                    self.portals.retain(|_, portal| portal.depth < depth);
                }
                // Those of a subtransaction that has ended well are its parent's.
                let portals = self.portals.values_mut();
                portals.for_each(|portal| portal.depth = portal.depth.min(depth));
            }
        }
    }

    fn say_empty(&mut self) {
        backend::empty_query_response(&mut self.out);
    }
}

/// The tag as errors carry it. Brackets are in every error of a server, and in none of pgweir's.
fn of(tag: Option<Tag>) -> String {
    tag.map_or_else(|| " []".to_owned(), |tag| format!(" [{tag}]"))
}

#[cfg(test)]
mod tests;

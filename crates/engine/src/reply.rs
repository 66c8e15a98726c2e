//! What a server still owes: the FIFO of expected replies.
//!
//! Every message that goes to a server and will be answered leaves an [`Expected`] here, in the
//! order of sending. Every message that comes from the server is held against the first entry,
//! and what no entry allows is a [`Violation`]: the stream has been miscounted, and nothing more
//! of it may reach a client.
//!
//! The rules are those of PostgreSQL's main loop (`PostgresMain`, postgres.c):
//! - After an error in an extended batch everything up to the Sync is skipped without a reply,
//!   simple queries and function calls included.
//! - While the server reads COPY data it ignores Sync and Flush (`CopyGetData`).
//! - A Sync can fail (a deferred constraint): error first, then its ReadyForQuery.

mod allowed;
mod copying;
mod joints;
mod kind;

use std::collections::VecDeque;
use std::rc::Rc;

use pgweir_wire::backend::Tag;

use crate::client::Slot;
use crate::marks::Mark;
use crate::prepared::{Own, Statement};
use allowed::{Allowed, allowed};
use joints::Joints;

pub(crate) use allowed::is_overture;
pub(crate) use kind::{Closes, Described, Kind, Made, Makes};

/// As many replies may be owed before the queue is full. A message of a batch has seven bytes, and
/// what is noted for it is several times as much: without a limit a batch without an end would fill
/// our memory, though the kernel's buffers hold its bytes.
///
/// Within a batch PostgreSQL sends replies only when it has 8 KB of them (`PQ_SEND_BUFFER_SIZE`,
/// pqcomm.c), which may be 1,638 of the shortest. Whoever waits for a few of so many more to come
/// does not wait in vain.
const OWED: usize = 10_000;

/// A message on its way to a server, and what will come of its reply.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) kind: Kind,
    pub(crate) sink: Sink,
}

/// Whom a reply is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// The client that holds the server: goes out.
    Client(Slot),
    /// The client that holds the server, for a Sync that was taken for part of COPY data and was
    /// none: see [`Replies::may_be_ready_twice`].
    EarlySync,
    /// The client that holds the server, for a message that we put into its batch: success is
    /// swallowed, an error is the client's.
    Injected,
    /// As `Client`, for a message of ours in the place of a Query: what is not said to a Query is
    /// swallowed.
    Converted(Slot),
    /// Nobody: we have put this in front of a client's unit, and go on whatever comes of it.
    Aside,
    /// As `Client`, for a message that was made to fail: the client is told our reason in place of
    /// the server's ([`crate::server::Server::refused`]).
    Refused(Slot),
    /// Us.
    Own,
}

/// What a message of the server means for the entry that it answers.
#[derive(Debug)]
pub(crate) enum Step {
    /// More of this reply follows.
    More { sink: Sink },
    /// The reply is whole, and its effect is settled.
    Settled { sink: Sink, effect: Effect },
    /// An error: neither did the effect named happen nor what this and the rest of its batch were
    /// to do to names, in the order in which they were sent.
    Failed { sink: Sink, effect: Effect, undone: Vec<Kind> },
    /// ReadyForQuery: the unit is over.
    Ready { sink: Sink, effect: Effect },
    /// An error with no entry to belong to: a FATAL that announces the end.
    Unasked,
}

/// What has become of the statements of a server and of the client that holds it.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    None,
    /// What clients share is made.
    Made(Rc<Made>),
    /// A client's name means nothing any more.
    NameTaken(Rc<(Rc<[u8]>, Own)>),
    /// What clients share is closed.
    Unshelved(Rc<Statement>),
    /// What the rows of a statement are like has come.
    Described(Described),
    UnnamedMade(Rc<[u8]>),
    UnnamedMadeTooLong,
    UnnamedGone,
    /// One was made that is nobody's, where the client has none any more.
    UnnamedOurs,
    /// What replaces or ends it has failed, perhaps before it was even read.
    UnnamedUnclear,
}

/// A message that the entry at the head does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) came: Tag,
    pub(crate) expected: Option<&'static str>,
}

/// How far the entry at the head has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing of it has come, or nothing that limits what may follow.
    Open,
    /// Rows have been announced, and come until CommandComplete, or until others are announced: a
    /// rule may add a SELECT to a statement (`PortalRunMulti`).
    Rows,
    /// ParameterDescription has come, the rest of the description follows.
    HalfDescribed,
    /// CopyInResponse has come. `open`: what is sent may still be part of the COPY, for neither its
    /// end was sent nor what ends it with an error.
    CopyIn { open: bool },
    /// CopyOutResponse has come.
    CopyOut,
    /// CopyBothResponse has come. `open`: as above; `sends`: no CopyDone has come yet.
    CopyBoth { open: bool, sends: bool },
    /// An error has come, only ReadyForQuery is left.
    Failed,
}

/// The FIFO.
#[derive(Debug)]
pub(crate) struct Replies {
    entries: VecDeque<Expected>,
    /// Entries that are a [`Kind::CopyEnd`]: nothing is owed for them.
    copy_ends: usize,
    /// For each Query among the entries: how many statements its string has behind the first.
    strings: VecDeque<u32>,
    /// So many of the entries are answered without the client's doing any more: PostgreSQL keeps
    /// the replies of a batch back until a Sync or a Flush.
    due: usize,
    progress: Progress,
    /// The entry at the head, a Query or FunctionCall, has been answered: it is over when
    /// ReadyForQuery comes, and not before. One that comes earlier is another's.
    answered: bool,
    /// A batch has failed and its Sync has not been sent yet: what is sent is skipped.
    skipping: bool,
    /// Syncs that were sent before or in the COPY at the head, and were taken for part of it.
    early_syncs: u32,
    /// Such Syncs of COPYs that have failed: each may be answered after all.
    doubtful_syncs: u32,
    /// What was sent last is of a batch that a Sync is still to end.
    in_batch: bool,
    /// Something is executed in that batch.
    executes: bool,
    /// A query of ours is to show whether the COPY at the head reads data.
    tries: bool,
    /// Where units begin that stand behind others under the same Sync.
    joints: Joints,
}

impl Replies {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            copy_ends: 0,
            strings: VecDeque::new(),
            due: 0,
            progress: Progress::Open,
            answered: false,
            skipping: false,
            early_syncs: 0,
            doubtful_syncs: 0,
            in_batch: false,
            executes: false,
            tries: false,
            joints: Joints::default(),
        }
    }

    /// What is sent next is of another unit than what was sent before, and one Sync ends both.
    pub(crate) fn join(&mut self) {
        debug_assert!(self.in_batch || self.skipping, "joined to what has its Sync");
        if !self.skipping {
            self.joints.put(self.entries.len());
        }
    }

    /// The server's next message comes: it is of the next unit where that of the one in front,
    /// under the same Sync, is whole.
    #[inline]
    pub(crate) fn begin_message(&mut self) {
        self.joints.pass();
    }

    /// So many units have been answered since the last ReadyForQuery, under the same Sync as the
    /// one that is answered now.
    pub(crate) fn joints_passed(&self) -> usize {
        self.joints.passed()
    }

    /// Whether what was sent last is of a batch that a Sync is still to end.
    pub(crate) fn in_batch(&self) -> bool {
        self.in_batch
    }

    /// Whether something was sent that is not answered for good and may end a transaction, or may
    /// have: that it has says the answer to its Sync.
    pub(crate) fn runs(&self) -> bool {
        let runs =
            |kind: &Kind| matches!(kind, Kind::Execute { .. } | Kind::Query { .. } | Kind::Sync);
        self.in_batch && self.executes || self.entries.iter().any(|entry| runs(&entry.kind))
    }

    /// Whether nothing is owed.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many replies are owed.
    pub(crate) fn owed(&self) -> usize {
        self.entries.len() - self.copy_ends
    }

    /// So many names of its client had been given and taken before what is answered now.
    pub(crate) fn names_sent(&self) -> u64 {
        match self.entries.front().map(|head| &head.kind) {
            Some(Kind::Execute { sent } | Kind::Query { sent }) => *sent,
            _ => 0,
        }
    }

    /// How many replies are owed whatever the client does: it has asked for them, and the server
    /// does not wait for COPY data.
    pub(crate) fn due(&self) -> usize {
        if self.awaits_copy_data() { 0 } else { self.due.min(self.owed()) }
    }

    /// How many statements stand behind the first of their query string, in all those that are
    /// owed.
    pub(crate) fn further_statements(&self) -> u32 {
        self.strings.iter().fold(0, |sum: u32, more| sum.saturating_add(*more))
    }

    /// The string of the Query that was noted last has so many statements. A Parse has one at most,
    /// so it makes no difference to one that was noted before.
    pub(crate) fn note_statements(&mut self, statements: u32) {
        if let Some(Kind::Query { .. }) = self.entries.back().map(|entry| &entry.kind)
            && let Some(more) = self.strings.back_mut()
        {
            *more = statements.saturating_sub(1).max(*more);
        }
    }

    /// No reply to what was sent is kept back any more: a Flush has gone out, or what ends a unit.
    pub(crate) fn flush(&mut self) {
        // A server that reads COPY data passes over it.
        if !self.ignores_sync() {
            self.due = self.entries.len();
        }
    }

    /// Whether all that is owed answers statements of our own. Not only the first of it: PostgreSQL
    /// keeps a short reply back until the statement behind it is over.
    pub(crate) fn answers_us(&self) -> bool {
        let ours = |entry: &Expected| matches!(entry.sink, Sink::Aside | Sink::Own);
        !self.entries.is_empty() && self.entries.iter().all(ours)
    }

    /// Whether what is owed first answers something of our own, and not of a client's unit.
    pub(crate) fn is_ours(&self) -> bool {
        self.entries.front().is_some_and(|head| matches!(head.sink, Sink::Aside | Sink::Own))
    }

    /// Whether what is owed first answers a message that no client has sent: of a statement that is
    /// made again its client was warned when it made it.
    pub(crate) fn is_unasked(&self) -> bool {
        self.is_ours() || self.entries.front().is_some_and(|head| head.sink == Sink::Injected)
    }

    /// The client's slot that is filled first by what is owed, if any is.
    pub(crate) fn first_slot(&self) -> Option<Slot> {
        self.entries.iter().find_map(|entry| match entry.sink {
            Sink::Client(slot) | Sink::Converted(slot) | Sink::Refused(slot) => Some(slot),
            Sink::Aside | Sink::EarlySync | Sink::Injected | Sink::Own => None,
        })
    }

    /// What was sent to do something to names and is not answered, in the order of sending.
    pub(crate) fn unsettled(&self) -> Vec<Kind> {
        let kinds = self.entries.iter().map(|entry| &entry.kind);
        kinds.filter(|kind| kind.names_statements()).cloned().collect()
    }

    /// Whether what the rows of an unnamed statement are like that was made again is awaited.
    pub(crate) fn tells_unnamed_rows(&self) -> bool {
        let is_it =
            |kind: &Kind| matches!(kind, Kind::DescribeStatement { of: Described::UnnamedAgain });
        self.entries.iter().any(|entry| is_it(&entry.kind))
    }

    /// Whether so much is owed that nothing more is to be asked for, until some of it has come.
    pub(crate) fn is_full(&self) -> bool {
        self.owed() >= OWED
    }

    /// Whether a Sync that is sent now would be read as part of the COPY data, and ignored.
    pub(crate) fn ignores_sync(&self) -> bool {
        self.progress == (Progress::CopyIn { open: true })
    }

    /// Whether the server waits for COPY data, of which the end was not sent yet.
    pub(crate) fn awaits_copy_data(&self) -> bool {
        matches!(
            self.progress,
            Progress::CopyIn { open: true } | Progress::CopyBoth { open: true, .. }
        )
    }

    /// Whether the server reads, or may be about to read, COPY data.
    pub(crate) fn takes_copy_data(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Whether a ReadyForQuery may come that no entry is for.
    ///
    /// libpq sends the Sync right behind the Execute of a COPY. PostgreSQL passes over it if it
    /// comes to read the data. If the COPY fails between its CopyInResponse and the first read
    /// (a view, a BEFORE STATEMENT trigger), the Sync is answered, and nothing in the stream tells
    /// the one from the other beforehand. The server then stays with its client for good.
    pub(crate) fn may_be_ready_twice(&self) -> bool {
        self.doubtful_syncs > 0
    }

    /// Whether the server skips what it is sent, and will until a Sync that was not sent yet.
    pub(crate) fn skips(&self) -> bool {
        self.skipping
    }

    /// Whether a query of ours is to show whether a COPY reads data.
    pub(crate) fn awaits_trial(&self) -> bool {
        self.tries
    }

    /// Notes a message that goes to the server. Says whether it will be answered: no, if the
    /// server skips it.
    pub(crate) fn push(&mut self, expected: Expected) -> bool {
        match expected.kind {
            Kind::CopyEnd => {
                if let Progress::CopyIn { open } | Progress::CopyBoth { open, .. } =
                    &mut self.progress
                    && *open
                {
                    *open = false;
                } else if !self.entries.is_empty() && !self.skipping && self.copy_ends < OWED {
                    // One string may hold several COPYs, but not so many.
                    Mark::CopyEndAhead.hit();
                    self.entries.push_back(expected);
                    self.copy_ends += 1;
                }
                return false;
            }
            Kind::Sync if self.ignores_sync() => {
                // If the COPY has failed before the server reads it, it is answered after all.
                self.early_syncs += 1;
                return false;
            }
            Kind::Sync => self.skipping = false,
            Kind::Bind
            | Kind::ClosePortal
            | Kind::CloseStatement { .. }
            | Kind::DescribePortal
            | Kind::DescribeStatement { .. }
            | Kind::Execute { .. }
            | Kind::FunctionCall
            | Kind::Parse { .. }
            | Kind::Query { .. } => {
                if self.skipping {
                    Mark::MessageSkippedWhenSent.hit();
                    return false;
                }
                if let Progress::CopyIn { open } = &mut self.progress {
                    // Where data are read this is the end of the session. Else it is answered, and
                    // so is what stands behind it.
                    *open = false;
                }
            }
        }
        let ends_unit = expected.kind.ends_unit();
        self.in_batch = !ends_unit;
        self.executes =
            !ends_unit && (self.executes || matches!(expected.kind, Kind::Execute { .. }));
        if matches!(expected.kind, Kind::Query { .. }) {
            self.strings.push_back(0);
            self.tries |= expected.sink == Sink::Aside;
        }
        self.entries.push_back(expected);
        if ends_unit {
            self.flush();
        }
        true
    }

    /// Takes a message of the server, other than the asynchronous ones (notices, notifications
    /// and ParameterStatus may come at any time and belong to no entry).
    ///
    /// `unanswered` is told the slot of each unit that will not be answered after all.
    #[inline]
    pub(crate) fn step(
        &mut self,
        tag: Tag,
        unanswered: &mut impl FnMut(Slot),
    ) -> Result<Step, Violation> {
        let Some(head) = self.entries.front() else {
            return match tag {
                Tag::ErrorResponse => Ok(Step::Unasked),
                Tag::ReadyForQuery if self.doubtful_syncs > 0 => {
                    Mark::SyncInDoubtAnswered.hit();
                    self.doubtful_syncs -= 1;
                    self.skipping = false;
                    Ok(Step::Ready { sink: Sink::EarlySync, effect: Effect::None })
                }
                _ => Err(Violation { came: tag, expected: None }),
            };
        };
        let sink = head.sink;
        match (allowed(&head.kind, self.progress, self.answered, tag), tag) {
            (Allowed::No, Tag::ReadyForQuery)
                if self.doubtful_syncs > 0
                    && (matches!(head.sink, Sink::Aside | Sink::Own)
                        || self.entries.len() == 1
                            && matches!(head.kind, Kind::Query { .. } | Kind::FunctionCall)) =>
            {
                // Of ours nothing was read yet; or of a client's that has not waited for it.
                Mark::SyncInDoubtAhead.hit();
                self.doubtful_syncs -= 1;
                Ok(Step::Ready { sink: Sink::EarlySync, effect: Effect::None })
            }
            (Allowed::No, came) => Err(Violation { came, expected: Some(head.kind.name()) }),
            (Allowed::More, Tag::CopyInResponse) => {
                self.begin_copy_in(unanswered);
                Ok(Step::More { sink })
            }
            (Allowed::More, tag) => {
                self.answered |= matches!(
                    tag,
                    Tag::CommandComplete | Tag::EmptyQueryResponse | Tag::FunctionCallResponse
                );
                self.progress = match tag {
                    Tag::RowDescription => Progress::Rows,
                    Tag::CopyOutResponse => Progress::CopyOut,
                    Tag::CopyBothResponse => {
                        Mark::CopiesBothWays.hit();
                        Progress::CopyBoth { open: !self.strike_copy_end(), sends: true }
                    }
                    Tag::ParameterDescription => Progress::HalfDescribed,
                    // A string of several statements goes on behind each.
                    Tag::CommandComplete => Progress::Open,
                    Tag::CopyDone => match self.progress {
                        Progress::CopyBoth { open, .. } => {
                            Progress::CopyBoth { open, sends: false }
                        }
                        // So does BASE_BACKUP, without a CommandComplete in between.
                        _ => Progress::Open,
                    },
                    _ => self.progress,
                };
                Ok(Step::More { sink })
            }
            (Allowed::Last, Tag::ReadyForQuery) => {
                let effect = match head.kind {
                    Kind::Query { .. } if self.progress == Progress::Failed => {
                        Effect::UnnamedUnclear
                    }
                    Kind::Query { .. } => Effect::UnnamedGone,
                    _ => Effect::None,
                };
                self.pop();
                self.joints.end();
                Ok(Step::Ready { sink, effect })
            }
            (Allowed::Last, _) => {
                Mark::PortalSuspended.hit_if(tag == Tag::PortalSuspended);
                let effect = match &head.kind {
                    Kind::Parse { makes: Makes::Unnamed(message) } => {
                        Effect::UnnamedMade(Rc::clone(message))
                    }
                    Kind::Parse { makes: Makes::UnnamedTooLong } => Effect::UnnamedMadeTooLong,
                    Kind::Parse { makes: Makes::Query } => Effect::UnnamedOurs,
                    Kind::Parse { makes: Makes::Shared(made) } => Effect::Made(Rc::clone(made)),
                    Kind::CloseStatement { closes: Closes::Unnamed } => Effect::UnnamedGone,
                    Kind::CloseStatement { closes: Closes::Name(was) }
                    | Kind::Parse { makes: Makes::Shown(was) } => Effect::NameTaken(Rc::clone(was)),
                    Kind::CloseStatement { closes: Closes::Shared(statement, ..) } => {
                        Effect::Unshelved(Rc::clone(statement))
                    }
                    Kind::DescribeStatement { of: Described::Named } => Effect::None,
                    Kind::DescribeStatement { of } => Effect::Described(of.clone()),
                    _ => Effect::None,
                };
                self.pop();
                Ok(Step::Settled { sink, effect })
            }
            (Allowed::Error, _) => {
                let effect = match head.kind {
                    Kind::Parse {
                        makes: Makes::Unnamed(_) | Makes::UnnamedTooLong | Makes::Query,
                    } => Effect::UnnamedUnclear,
                    _ => Effect::None,
                };
                let undone = self.fail(unanswered);
                Ok(Step::Failed { sink, effect, undone })
            }
        }
    }

    /// Takes out an entry that will not be answered.
    fn remove(&mut self, index: usize) {
        if let Some(Expected { kind: Kind::Query { .. }, sink }) = self.entries.remove(index) {
            self.strings.pop_front();
            self.tries &= sink != Sink::Aside;
        }
        self.due -= usize::from(index < self.due);
        debug_assert!(index == 0 || self.joints.is_empty(), "a COPY is joined to others");
        if index == 0 {
            self.joints.advance();
        }
    }

    /// The entry at the head has failed. Gives what it and those behind it, which are skipped, were
    /// to do to names.
    fn fail(&mut self, unanswered: &mut impl FnMut(Slot)) -> Vec<Kind> {
        self.doubtful_syncs += std::mem::take(&mut self.early_syncs);
        let mut undone = Vec::new();
        let mut undo = |kind: &Kind| {
            if kind.names_statements() {
                undone.push(kind.clone());
            }
        };
        match self.entries.front().map(|head| &head.kind) {
            Some(head @ (Kind::Query { .. } | Kind::FunctionCall | Kind::Sync)) => {
                Mark::SyncFailed.hit_if(matches!(head, Kind::Sync));
                self.progress = Progress::Failed;
                return undone;
            }
            Some(head) => undo(head),
            None => {}
        }
        self.pop();
        while let Some(next) = self.entries.front() {
            match &next.kind {
                Kind::Sync => break,
                Kind::Query { .. } | Kind::FunctionCall => {
                    Mark::QueryBehindFailedBatch.hit();
                    if let Sink::Client(slot) | Sink::Refused(slot) = next.sink {
                        unanswered(slot);
                    }
                }
                kind => undo(kind),
            }
            self.pop();
        }
        // The units behind it under the same Sync are skipped, too.
        self.joints.skip();
        if self.entries.is_empty() {
            Mark::BatchFailedWithoutSync.hit();
            self.skipping = true;
        }
        undone
    }

    /// The entry at the head, which is not a [`Kind::CopyEnd`], is done with.
    fn pop(&mut self) {
        self.remove(0);
        self.progress = Progress::Open;
        self.answered = false;
        self.early_syncs = 0;
        // The end of a COPY that the server had ended by itself.
        while matches!(self.entries.front(), Some(Expected { kind: Kind::CopyEnd, .. })) {
            Mark::CopyEndOfFailedCopy.hit();
            self.remove(0);
            self.copy_ends -= 1;
        }
    }
}

#[cfg(test)]
mod tests;

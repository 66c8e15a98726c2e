use pgweir_wire::backend;

use super::effect::{carry_out, no_statement};
use super::message::{put, row_description, row_description_of, write_notice};
use super::state::{Notification, Subscription};
use super::{Advance, Again, FLUSH, HASTY, Inbox, State, Transaction, WENT, Witness};
use crate::invariants::Invariant;
use crate::language::{Kind, Line, Statement, Tag, Verb, catalogue};
use crate::shapes::{Glance, SHAPE_KEY, Shape};

/// A statement that is being carried out.
#[derive(Clone)]
pub(crate) struct Execution {
    line: Line,
    /// The tag of this execution; that of the statement in a simple query.
    tag: Option<Tag>,
    /// The tag of the statement's text.
    text_tag: Option<Tag>,
    /// What its rows are like, if a statement may change that.
    shape: Shape,
    /// A simple query describes its rows by itself.
    described: bool,
    stage: Stage,
    /// Rows that the Execute allows; `None`: all of them.
    limit: Option<u32>,
    /// Rows of this Execute.
    rows: u32,
}

/// What is said where rows are not what they were when a statement was prepared
/// (`RevalidateCachedQuery`, plancache.c).
pub(crate) const CHANGED: &str = "cached plan must not change result type";

/// What stands behind the name of a prepared statement.
enum Unfolded {
    Line,
    /// An empty text.
    Nothing,
    Unknown,
    /// Its rows are not what they were when it was prepared.
    Changed,
}

/// How far an execution has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    /// So many rows, notices or messages are out.
    Saying(u32),
    /// So many messages of COPY data have been read.
    Reading(u32),
    Finished,
}

/// What a step of an execution came to.
pub(crate) enum Step {
    Goes(Advance),
    /// Its CommandComplete is out.
    Done,
    /// Its row limit is reached.
    Suspended,
    Failed(&'static [u8; 5], String),
    /// It was sent what is no COPY data.
    Lost(String),
}

impl Execution {
    pub(crate) fn of_query(line: Line) -> Self {
        let tag = line.tag();
        let (described, stage) = (false, Stage::Begun);
        Self { line, tag, text_tag: tag, shape: None, described, stage, limit: None, rows: 0 }
    }

    pub(crate) fn of_portal(
        line: Line,
        tag: Option<Tag>,
        text_tag: Option<Tag>,
        limit: u32,
        shape: Shape,
    ) -> Self {
        let stage = Stage::Begun;
        let limit = (limit > 0).then_some(limit);
        Self { line, tag, text_tag, shape, described: true, stage, limit, rows: 0 }
    }

    /// Says that it begins.
    pub(crate) fn begin(&mut self, state: &mut State, witness: &mut impl Witness) {
        state.start();
        if let Some(tag) = self.tag {
            if self.line.is_shaped() && !self.described {
                self.shape = witness.reads(Glance::Run(tag), state).shape;
            }
            let reads = match &self.line {
                Line::Client(statement) => statement.may_be_repeated(),
                _ => false,
            };
            if state.has_guests && (!reads || self.line.is_locking()) {
                let text = format!("{tag} does more than to read in a transaction of several");
                witness.wrong(Invariant::OwnTransaction, text);
            }
            state.executes(tag, if reads { Again::May } else { Again::MayNot }, witness);
        }
    }

    /// Another Execute of the same portal.
    pub(crate) fn resume(&mut self, limit: u32) {
        self.limit = (limit > 0).then_some(limit);
        self.rows = 0;
    }

    pub(crate) fn tag(&self) -> Option<Tag> {
        self.tag
    }

    pub(crate) fn returns_rows(&self) -> bool {
        matches!(&self.line, Line::Client(statement) if statement.verb.returns_rows())
    }

    pub(crate) fn reads_copy_data(&self) -> bool {
        matches!(self.stage, Stage::Reading(_))
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    pub(crate) fn sets_settings(&self) -> bool {
        self.line.sets_settings()
    }

    /// One step. `last`: it is the last of its query string, whose transaction ends with it.
    pub(crate) fn advance(
        &mut self,
        state: &mut State,
        out: &mut Vec<u8>,
        inbox: &mut Inbox,
        last: bool,
        witness: &mut impl Witness,
    ) -> Step {
        let line = self.line.clone();
        match line {
            Line::Client(Statement { verb, .. }) => {
                let Some(tag) = self.tag else { return Step::Done };
                self.client_step(&verb, tag, state, out, inbox, last, witness)
            }
            Line::DiscardAll => {
                if state.transaction != Transaction::Implicit {
                    return Step::Failed(b"25001", "DISCARD ALL inside a transaction".to_owned());
                }
                state.discard(Kind::All);
                self.complete("DISCARD ALL", state, out, last, witness)
            }
            Line::DiscardPlans => {
                state.discard(Kind::Plans);
                self.complete("DISCARD PLANS", state, out, last, witness)
            }
            Line::DiscardSequences => {
                state.discard(Kind::Sequences);
                self.complete("DISCARD SEQUENCES", state, out, last, witness)
            }
            Line::FailedTransaction => {
                state.transaction = Transaction::Block;
                Step::Failed(b"22P02", "the transaction was lost []".to_owned())
            }
            Line::Rollback => {
                state.abort(witness);
                self.complete("ROLLBACK", state, out, last, witness)
            }
            Line::Room => match state.room.row() {
                Ok(cells) => {
                    row_description(out);
                    backend::data_row(
                        out,
                        cells.each_ref().map(|cell| cell.as_deref().map(str::as_bytes)),
                    );
                    self.complete("SELECT 1", state, out, last, witness)
                }
                Err(text) => Step::Failed(b"42501", text),
            },
            Line::Catalogue | Line::Settings(_) | Line::State(_)
                if state.setting("statement_timeout") == HASTY =>
            {
                let text = "canceling statement due to statement timeout".to_owned();
                Step::Failed(b"57014", text)
            }
            Line::Catalogue => {
                state.readings += 1;
                row_description(out);
                let keeps_plans = state.keeps_plans();
                for row in catalogue(state.readings, keeps_plans) {
                    backend::data_row(out, row.each_ref().map(|cell| Some(cell.as_bytes())));
                }
                self.complete("SELECT 1", state, out, last, witness)
            }
            Line::Listen(channel) => {
                state.subscribe(Subscription::Listen(channel));
                self.complete("LISTEN", state, out, last, witness)
            }
            Line::Unlisten(channel) => {
                state.subscribe(match channel {
                    Some(channel) => Subscription::Unlisten(channel),
                    None => Subscription::UnlistenAll,
                });
                self.complete("UNLISTEN", state, out, last, witness)
            }
            Line::Mark(channel, payload) => {
                state.notifications.push(Notification { channel, payload });
                self.complete("NOTIFY", state, out, last, witness)
            }
            Line::Settings(custom) => {
                row_description(out);
                for (name, value) in state.chosen(&custom) {
                    let cells = [name, value].map(|text| in_hex(&text));
                    backend::data_row(out, cells.each_ref().map(|cell| Some(cell.as_bytes())));
                }
                self.complete("SELECT 1", state, out, last, witness)
            }
            Line::State(ref asked) => {
                row_description(out);
                for left in state.left().filter(|left| left.starts_with(|it| asked.contains(it))) {
                    backend::data_row(out, [Some(left.as_bytes())]);
                }
                self.complete("SELECT 1", state, out, last, witness)
            }
            Line::PutBack(ref pairs) | Line::SetConfig(ref pairs) => match match line {
                Line::PutBack(_) => state.put_back(pairs),
                _ => state.configure(pairs),
            } {
                Ok(()) => {
                    if !self.described {
                        row_description(out);
                    }
                    backend::data_row(out, [None, None, None]);
                    self.complete("SELECT 1", state, out, last, witness)
                }
                Err(text) => Step::Failed(b"22023", text),
            },
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the session, taken apart to be borrowed")]
    fn client_step(
        &mut self,
        verb: &Verb,
        tag: Tag,
        state: &mut State,
        out: &mut Vec<u8>,
        inbox: &mut Inbox,
        last: bool,
        witness: &mut impl Witness,
    ) -> Step {
        match (self.stage, verb) {
            (Stage::Begun, Verb::Execute { name }) => {
                match self.unfold(name, tag, state, witness) {
                    Unfolded::Line => Step::Goes(WENT),
                    Unfolded::Nothing => {
                        self.complete(&format!("EXECUTE {tag}"), state, out, last, witness)
                    }
                    Unfolded::Unknown => {
                        let (code, text) = no_statement(name, tag);
                        Step::Failed(code, text)
                    }
                    Unfolded::Changed => Step::Failed(b"0A000", format!("{CHANGED} [{tag}]")),
                }
            }
            (Stage::Begun, Verb::Fetch { name }) if !state.cursors.contains_key(name) => {
                Step::Failed(b"34000", format!("cursor {name} does not exist [{tag}]"))
            }
            (
                Stage::Begun,
                Verb::Big(_)
                | Verb::Fetch { .. }
                | Verb::Rows(_)
                | Verb::Shaped(_)
                | Verb::Show { .. },
            ) => {
                if !self.described {
                    row_description_of(out, self.shape);
                }
                self.stage = Stage::Saying(0);
                Step::Goes(WENT)
            }
            (Stage::Begun, Verb::CopyIn { fails_at }) => {
                put(out, b'G', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
                self.stage = Stage::Reading(0);
                if *fails_at == Some(0) {
                    return Step::Failed(b"P0001", format!("a trigger refuses the COPY [{tag}]"));
                }
                Step::Goes(FLUSH)
            }
            (Stage::Begun, Verb::CopyOut(_)) => {
                put(out, b'H', |out| out.extend_from_slice(&[0, 0, 1, 0, 0]));
                self.stage = Stage::Saying(0);
                Step::Goes(WENT)
            }
            (Stage::Begun, Verb::Sleep(ms)) => {
                self.stage = Stage::Finished;
                Step::Goes(Advance::Sleeps(*ms))
            }
            (Stage::Begun, Verb::Lock { key, .. }) => {
                self.stage = Stage::Finished;
                Step::Goes(Advance::Locks(*key))
            }
            (Stage::Begun, Verb::Alter) => {
                self.stage = Stage::Finished;
                Step::Goes(Advance::Locks(SHAPE_KEY))
            }
            (Stage::Begun, Verb::Notice(_)) => {
                self.stage = Stage::Saying(0);
                Step::Goes(WENT)
            }
            (Stage::Begun, Verb::Fail) => {
                Step::Failed(b"22012", format!("division by zero [{tag}]"))
            }
            (Stage::Begun, Verb::Fill) => {
                Step::Failed(b"53100", format!("no space left on device [{tag}]"))
            }
            (
                Stage::Saying(said),
                Verb::Big(_)
                | Verb::Fetch { .. }
                | Verb::Rows(_)
                | Verb::Shaped(_)
                | Verb::Show { .. },
            ) => self.row(verb, tag, said, state, out, last, witness),
            (Stage::Saying(said), Verb::CopyOut(messages)) => {
                if said == *messages {
                    put(out, b'c', |_| {});
                    return self.complete(&format!("COPY {said} {tag}"), state, out, last, witness);
                }
                put(out, b'd', |out| out.extend_from_slice(format!("{tag} {said}\n").as_bytes()));
                self.stage = Stage::Saying(said + 1);
                Step::Goes(WENT)
            }
            (Stage::Saying(said), Verb::Notice(count)) => {
                if said == *count {
                    return self.complete(&format!("NOTICE {tag}"), state, out, last, witness);
                }
                write_notice(out, &format!("notice {said} [{tag}]"));
                self.stage = Stage::Saying(said + 1);
                Step::Goes(FLUSH)
            }
            (Stage::Reading(read), _) => {
                self.read(verb, tag, read, state, out, inbox, last, witness)
            }
            (Stage::Begun | Stage::Saying(_) | Stage::Finished, _) => {
                match carry_out(verb, tag, state, out, witness) {
                    Ok(words) => {
                        // pgweir heeds these, to the letter.
                        let said = match words {
                            "DEALLOCATE" | "DISCARD ALL" => words.to_owned(),
                            words => format!("{words} {tag}"),
                        };
                        self.complete(&said, state, out, last, witness)
                    }
                    Err((code, text)) => Step::Failed(code, text),
                }
            }
        }
    }

    /// From here on it is the statement that was prepared under this name.
    fn unfold(
        &mut self,
        name: &str,
        tag: Tag,
        state: &State,
        witness: &mut impl Witness,
    ) -> Unfolded {
        let Some(prepared) = state.statements.get(name.as_bytes()) else {
            return Unfolded::Unknown;
        };
        if let Some(by) = prepared.tag.filter(|by| by.client != tag.client && !by.is_common()) {
            witness.wrong(
                Invariant::OwnStatements,
                format!("{tag} has carried out a statement of c{}", by.client),
            );
        }
        let Some(line) = &prepared.line else { return Unfolded::Nothing };
        if line.is_shaped() {
            let glance = Glance::RunByName(tag);
            let Some(shape) = witness.revalidates(glance, prepared.seen, state) else {
                return Unfolded::Changed;
            };
            self.shape = shape;
        }
        self.line = line.clone();
        self.text_tag = prepared.tag;
        Unfolded::Line
    }

    #[expect(clippy::too_many_arguments, reason = "the session, taken apart to be borrowed")]
    fn row(
        &mut self,
        verb: &Verb,
        tag: Tag,
        said: u32,
        state: &mut State,
        out: &mut Vec<u8>,
        last: bool,
        witness: &mut impl Witness,
    ) -> Step {
        let rows = match verb {
            Verb::Big(_) | Verb::Fetch { .. } | Verb::Show { .. } => 1,
            Verb::Rows(rows) | Verb::Shaped(rows) => *rows,
            _ => 0,
        };
        if self.limit == Some(self.rows) {
            put(out, b's', |_| {});
            return Step::Suspended;
        }
        if said == rows {
            let command = format!("SELECT {} {tag}", self.rows);
            self.rows = 0;
            return self.complete(&command, state, out, last, witness);
        }
        let value = match verb {
            Verb::Big(bytes) => Some("b".repeat(*bytes as usize)),
            Verb::Fetch { name } => state.cursors.get(name).map(Tag::to_string),
            Verb::Show { name } => Some(state.setting(name).to_owned()),
            _ => Some(said.to_string()),
        };
        let (tag, text_tag) = (tag.to_string(), self.text_tag.map(|tag| tag.to_string()));
        let text_tag = text_tag.as_ref().map(String::as_bytes);
        backend::data_row(
            out,
            [Some(tag.as_bytes()), text_tag, value.as_ref().map(String::as_bytes)],
        );
        self.stage = Stage::Saying(said + 1);
        self.rows += 1;
        Step::Goes(WENT)
    }

    #[expect(clippy::too_many_arguments, reason = "the session, taken apart to be borrowed")]
    fn read(
        &mut self,
        verb: &Verb,
        tag: Tag,
        read: u32,
        state: &mut State,
        out: &mut Vec<u8>,
        inbox: &mut Inbox,
        last: bool,
        witness: &mut impl Witness,
    ) -> Step {
        let Some(message) = inbox.take() else { return Step::Goes(Advance::Starved) };
        match message.tag {
            b'd' => {
                witness.copies(tag, &message.body);
                self.stage = Stage::Reading(read + 1);
                if *verb == (Verb::CopyIn { fails_at: Some(read + 1) }) {
                    let text = format!("COPY data {read} are not understood [{tag}]");
                    return Step::Failed(b"22P04", text);
                }
                Step::Goes(WENT)
            }
            b'c' => {
                state.writes.push(tag);
                self.complete(&format!("COPY {read} {tag}"), state, out, last, witness)
            }
            b'f' => Step::Failed(b"57014", format!("COPY from stdin failed [{tag}]")),
            b'H' | b'S' => Step::Goes(WENT),
            other => {
                let text = format!("unexpected message type {other} during COPY [{tag}]");
                Step::Lost(text)
            }
        }
    }

    /// CommandComplete. The end of a query string's transaction comes first, and may fail.
    fn complete(
        &mut self,
        command: &str,
        state: &mut State,
        out: &mut Vec<u8>,
        last: bool,
        witness: &mut impl Witness,
    ) -> Step {
        if last && let Err((code, text)) = state.commit_implicit(witness) {
            return Step::Failed(code, text);
        }
        backend::command_complete(out, command);
        Step::Done
    }
}

fn in_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

impl State {
    /// The statement that EXECUTE carries out, or any other itself.
    pub(super) fn means<'s>(&'s self, line: &'s Line) -> &'s Line {
        let prepared = match line {
            Line::Client(Statement { verb: Verb::Execute { name }, .. }) => {
                self.statements.get(name.as_bytes())
            }
            _ => None,
        };
        prepared.and_then(|prepared| prepared.line.as_ref()).unwrap_or(line)
    }
}

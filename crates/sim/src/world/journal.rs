//! pgweir's log: the queue of its lines is the program's own, the disk behind it is not. Which line
//! it is says its number; what it says is not needed here.

use pgweir_engine::Event as LogEvent;
use pgweir_sink::{Next, Queue};

use super::{HANGS, Occasion, World};
use crate::invariants::Invariant;
use crate::random::Dice;
use crate::rows::Row;

/// A log that is being written.
pub(super) struct Journal {
    dice: Dice,
    queue: Queue,
    /// What is being written.
    next: Option<Next>,
    /// Lines that there were so far.
    lines: u64,
    /// Lines that are written, and lines of which is written that they are lost.
    written: u64,
    lost: u64,
    /// The number of the line that was written last.
    last: Option<u64>,
    /// There is no room on the disk up to this time.
    full_until: u64,
    /// Nothing comes of a write up to this time.
    stuck_until: u64,
    /// What has cost lines that it was not told of yet.
    causes: Vec<Row>,
}

impl Journal {
    pub(super) fn new(mut dice: Dice) -> Self {
        Self {
            queue: Queue::new(*dice.pick(&[500, 4_000, 1 << 20])),
            next: None,
            lines: 0,
            written: 0,
            lost: 0,
            last: None,
            full_until: 0,
            stuck_until: 0,
            causes: Vec::new(),
            dice,
        }
    }

    /// There is one line more.
    fn put(&mut self, bytes: usize) {
        let mut line = self.lines.to_le_bytes().to_vec();
        line.resize(line.len() + bytes, 0);
        self.lines += 1;
        let lost = self.queue.lost();
        self.queue.put(&line);
        if self.queue.lost() > lost {
            self.causes.push(Row::LogStuck);
        }
    }

    /// Begins to write what is next. Says whether anything is.
    fn begin(&mut self) -> bool {
        let begins = self.next.is_none();
        if begins {
            self.next = self.queue.take();
        }
        begins && self.next.is_some()
    }

    /// What was begun is written, or could not be. Gives what that shows, or what is wrong.
    fn end(&mut self, whole: bool) -> Result<Vec<Row>, String> {
        let next = self.next.take();
        self.queue.written(whole);
        if !whole {
            self.causes.push(Row::LogFull);
            return Ok(Vec::new());
        }
        match next {
            None => Err("what was not begun is written".to_owned()),
            Some(Next::Lost(lines)) => {
                self.lost += lines;
                Ok(std::mem::take(&mut self.causes))
            }
            Some(Next::Line(line)) => {
                self.written += 1;
                let number = line.first_chunk().copied().map(u64::from_le_bytes);
                let before = std::mem::replace(&mut self.last, number);
                match before < number {
                    true => Ok(Vec::new()),
                    false => Err(format!("line {number:?} of the log is behind {before:?}")),
                }
            }
        }
    }

    /// Every line is written, or counted.
    pub(super) fn check(&self) -> Result<(), String> {
        let known = self.written + self.lost + self.queue.lost();
        match self.queue.is_settled() && known == self.lines {
            true => Ok(()),
            false => Err(format!("of {} lines of the log {known} are known of", self.lines)),
        }
    }
}

/// pgweir's words for a server that does not heed the cancel of a transaction that has taken too
/// long, and is given up.
const HEEDS_NO_CANCEL: &str = "the server did not end a transaction that was cancelled";

impl World {
    /// pgweir has something to tell.
    pub(super) fn note_event(&mut self, event: LogEvent) {
        self.site.trace.note("log", || format!("{event:?}"));
        self.write_line();
        match event {
            LogEvent::Contained { cause, .. } => {
                self.site.ledger.fail(Invariant::RepliesAreOwed, cause);
            }
            LogEvent::ServerLost { client, pool, cause, .. } => {
                self.note_given_up(&pool);
                let row = match &*cause {
                    HEEDS_NO_CANCEL => Some(Row::LeftTransaction),
                    HANGS => Some(Row::LeftSilent),
                    _ => None,
                };
                if let Some(row) = row.filter(|_| client.is_none()) {
                    self.site.ledger.reach(row);
                }
                self.note_server_lost(pool);
            }
            LogEvent::CatalogueUnread { .. } => self.site.ledger.schema.cannot_be_read(),
            LogEvent::ServerRefused { pool, .. } => self.note_server_lost(pool),
            _ => {}
        }
    }

    /// pgweir writes a line.
    pub(super) fn write_line(&mut self) {
        let bytes = self.journal.dice.below(300) as usize;
        self.journal.put(bytes);
        self.go_on_writing();
    }

    /// The disk of the log is full for a while.
    pub(super) fn fill_log(&mut self, dice: &mut Dice) {
        self.journal.full_until = self.now() + dice.magnitude(5_000_000);
    }

    /// Nobody takes what is written.
    pub(super) fn hold_log(&mut self, dice: &mut Dice) {
        self.journal.stuck_until = self.now() + dice.magnitude(5_000_000);
    }

    /// What was begun to be written comes to its end.
    pub(super) fn line_written(&mut self) {
        let now = self.now();
        if now < self.journal.stuck_until {
            return self.schedule(self.journal.stuck_until, Occasion::LineWritten);
        }
        match self.journal.end(now >= self.journal.full_until) {
            Ok(rows) => rows.into_iter().for_each(|row| self.site.ledger.reach(row)),
            Err(cause) => self.site.ledger.fail(Invariant::WholeLog, cause),
        }
        self.go_on_writing();
    }

    fn go_on_writing(&mut self) {
        if self.journal.begin() {
            let at = self.now() + self.journal.dice.magnitude(100);
            self.schedule(at, Occasion::LineWritten);
        }
    }
}

use std::collections::VecDeque;

/// Lines that wait to be written, and how many were lost. See the crate's documentation.
#[derive(Debug)]
pub struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// Of all lines that wait.
    bytes: usize,
    /// So many bytes wait at most.
    room: usize,
    /// Lines that were lost and that nobody has been told of.
    lost: u64,
    /// The last line could not be written.
    failing: bool,
    /// What is being written stands for so many lines.
    writing: Option<u64>,
}

/// What is to be written next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// This line.
    Line(Vec<u8>),
    /// That so many lines were lost.
    Lost(u64),
}

impl Queue {
    /// A queue of so many bytes at most.
    pub fn new(room: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, room, lost: 0, failing: false, writing: None }
    }

    /// Takes a line, or counts it as lost if there is no room for it.
    pub fn put(&mut self, line: &[u8]) {
        if self.bytes + line.len() <= self.room {
            self.bytes += line.len();
            self.lines.push_back(line.to_owned());
        } else {
            self.lost += 1;
        }
    }

    /// What to write now, if anything is. That lines were lost is told when no other line waits:
    /// they came behind those. [`Queue::written`] must follow.
    pub fn take(&mut self) -> Option<Next> {
        debug_assert!(self.writing.is_none(), "one line is written at a time");
        if let Some(line) = self.lines.pop_front() {
            self.bytes -= line.len();
            self.writing = Some(1);
            return Some(Next::Line(line));
        }
        if self.lost == 0 || self.failing {
            return None;
        }
        let lost = std::mem::take(&mut self.lost);
        self.writing = Some(lost);
        Some(Next::Lost(lost))
    }

    /// What was taken last is written, or could not be.
    pub fn written(&mut self, whole: bool) {
        let stands_for = self.writing.take().unwrap_or(0);
        self.failing = !whole;
        if self.failing {
            self.lost += stands_for;
        }
    }

    /// Whether nothing is to be written: what was lost while nothing can be is told later.
    pub fn is_settled(&self) -> bool {
        let tells = self.lost > 0 && !self.failing;
        self.lines.is_empty() && self.writing.is_none() && !tells
    }

    /// Whether something was taken that is not written yet.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Lines that were lost and that nobody has been told of.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests;

//! What is done to a session from outside: a statement is ended, a unit is refused in its place,
//! its server is lost.

use std::rc::Rc;

use super::message::{Inbox, Message};
use super::{CHANGED, Execution, Prepared, Session, Transaction, Witness, Work};
use crate::language::Tag;
use crate::shapes::{Seen, Shape};

impl Session {
    /// Ends the statement that runs with an error.
    pub(crate) fn interrupt(
        &mut self,
        code: &[u8; 5],
        text: &str,
        inbox: &mut Inbox,
        witness: &mut impl Witness,
    ) {
        let tag = self.running().map(|tag| format!(" [{tag}]")).unwrap_or_default();
        let text = format!("{text}{tag}");
        let work = std::mem::replace(&mut self.work, Work::None);
        let (extended, execution) = match &work {
            Work::Query { execution, .. } => (false, execution.as_ref()),
            Work::Execute { execution, .. } => (true, Some(execution)),
            Work::None | Work::Ready | Work::Lost | Work::Over => (self.skipping, None),
        };
        // A backend that reads COPY data looks for interrupts when some has come.
        if execution.is_some_and(Execution::reads_copy_data) {
            while let Some(message) = inbox.take()
                && !message.is_copy()
            {}
        }
        self.fail(code, &text, extended, witness);
    }

    /// Takes back what was said last: the message has failed. True in a transaction that has
    /// failed, where pgweir cannot make a statement again that is only described.
    pub(crate) fn take_back(&mut self) -> bool {
        if self.state.transaction != Transaction::Failed {
            return false;
        }
        self.out.clear();
        self.skipping = true;
        true
    }

    /// Takes back the description of a statement that was said last: its rows are not what they
    /// were when it was prepared. False if none was described of which that could be so.
    pub(crate) fn finds_changed(&mut self, witness: &mut impl Witness) -> bool {
        if self.describing.take().is_none() {
            return false;
        }
        self.fail(b"0A000", CHANGED, true, witness);
        self.out.clear();
        true
    }

    /// Takes back the Bind that was answered last, for the same.
    pub(crate) fn binds_changed(&mut self, witness: &mut impl Witness) -> bool {
        self.fail(b"0A000", CHANGED, true, witness);
        self.out.clear();
        true
    }

    /// Another message has come. A Flush is none that stands behind a Parse.
    pub(super) fn parse_is_past(&mut self, message: &Message) {
        if message.tag != b'H' {
            self.parsed = [None, self.parsed[0].take()];
        }
    }

    /// What the rows are like of what was parsed just before nobody was told: the server was asked
    /// in vain.
    pub(crate) fn told_nothing(&mut self) {
        let Some(name) = self.parsed[1].take() else { return };
        if let Some(its) = self.state.statements.get(&name).map(Rc::clone) {
            let seen = Seen { in_doubt: true, ..its.seen };
            let its = Prepared { line: its.line.clone(), tag: its.tag, seen };
            self.state.statements.insert(name, Rc::new(its));
        }
    }

    /// The client is told now what the rows of a statement are like of which nobody knew that.
    /// False if that was known.
    pub(crate) fn tells(&mut self, shape: Shape) -> bool {
        let Some(name) = self.describing.as_ref() else { return false };
        let prepared = self.state.statements.get(name).filter(|prepared| prepared.seen.in_doubt);
        let Some(prepared) = prepared else { return false };
        let (line, tag) = (prepared.line.clone(), prepared.tag);
        let seen = Seen { shape, in_doubt: false };
        let told = Rc::new(Prepared { line, tag, seen });
        self.state.statements.insert(name.clone(), told);
        true
    }

    /// Lets the next message fail instead of being carried out, as pgweir does with a unit that
    /// it refuses. Says which statements that takes away.
    pub(crate) fn refuse(&mut self, report: &[u8], inbox: &mut Inbox) -> Vec<Tag> {
        self.out.extend_from_slice(report);
        let mut tags = Vec::new();
        while let Some(message) = inbox.take() {
            tags.extend(message.tags());
            match message.tag {
                b'd' | b'c' | b'f' | b'H' => {}
                b'Q' | b'F' => {
                    self.work = Work::Ready;
                    return tags;
                }
                _ => {
                    self.skipping = message.tag != b'S';
                    if !self.skipping {
                        self.work = Work::Ready;
                        return tags;
                    }
                    break;
                }
            }
        }
        tags.extend(inbox.tags_up_to_sync());
        tags
    }

    /// If a message comes next that may keep a server, it fails with this error.
    pub(crate) fn fail_next(
        &mut self,
        report: &[u8],
        inbox: &mut Inbox,
        witness: &mut impl Witness,
    ) -> bool {
        let next = inbox.unit().next().filter(|message| b"QPBF".contains(&message.tag));
        let is_due = matches!(self.work, Work::None) && !self.skipping;
        let Some(message) = next.filter(|_| is_due) else { return false };
        inbox.take();
        let extended = matches!(message.tag, b'P' | b'B');
        if extended {
            self.state.start();
        }
        if message.tag == b'Q' || message.tag == b'P' && message.body.first() == Some(&0) {
            self.forget_unnamed();
        }
        self.out.extend_from_slice(report);
        self.state.error(witness);
        self.drop_portals();
        self.skipping = extended;
        self.work = if extended { Work::None } else { Work::Ready };
        true
    }

    /// The server is gone, and with it the transaction: it is undone, if that is certain. The unit
    /// that was under way, or, if none is `begun`, the next one, ends with this error.
    pub(crate) fn lose(
        &mut self,
        report: &[u8],
        begun: bool,
        undone: bool,
        inbox: &mut Inbox,
        witness: &mut impl Witness,
    ) {
        let work = std::mem::replace(&mut self.work, Work::None);
        self.out.clear();
        if undone {
            self.state.lose(witness);
        } else {
            self.state.forget();
        }
        self.portals.clear();
        match work {
            Work::None if !begun => drop(self.refuse(report, inbox)),
            Work::Query { .. } | Work::Ready => {
                self.out.extend_from_slice(report);
                self.work = Work::Ready;
            }
            Work::None | Work::Execute { .. } | Work::Lost | Work::Over => {
                self.out.extend_from_slice(report);
                self.skipping = true;
            }
        }
    }
}

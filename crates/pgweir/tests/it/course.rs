//! Clients that work while their servers are ended, and what becomes of what they read.

use std::array;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pgweir_testkit::frames::query;
use pgweir_testkit::{Message, WireClient, eventually};

use crate::stage::Stage;

/// How many clients there are.
pub(crate) const CLIENTS: usize = 16;

/// So much is done before the next end.
const DONE_BETWEEN: usize = 160;

/// How far they have come.
pub(crate) struct Course {
    done: [AtomicUsize; CLIENTS],
    ends: AtomicUsize,
    is_over: AtomicBool,
    lost_read: &'static str,
}

/// What a client hears of a read that was run again, and lost again.
pub(crate) const LOST_TWICE: &str = "40001";
/// What it hears of any that is lost, where none is run again.
pub(crate) const NOT_RUN_AGAIN: &str = "08007";

impl Course {
    /// `lost_read`: what a client hears of a read whose server is lost, if anything.
    pub(crate) fn new(lost_read: &'static str) -> Self {
        Self {
            lost_read,
            done: array::from_fn(|_| AtomicUsize::new(0)),
            ends: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(crate) fn lost_read(&self) -> &'static str {
        self.lost_read
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// A client has done one thing more.
    pub(crate) fn did_one(&self, client: usize) {
        self.done[client].fetch_add(1, Ordering::Relaxed);
    }

    /// Which end was the last: what a client hears of a loss is of that one.
    pub(crate) fn last_end(&self) -> usize {
        self.ends.load(Ordering::Relaxed)
    }

    pub(crate) fn done(&self) -> usize {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }

    /// Ends servers so often while clients work, the next ones when nobody has anything to do with
    /// the last any more. `end` comes back when the backends are gone.
    pub(crate) fn runs(&self, ends: usize, mut end: impl FnMut(usize)) {
        let _over = Over(&self.is_over);
        for number in 1..=ends {
            let enough = self.done() + DONE_BETWEEN;
            eventually("more to be done", || self.done() >= enough);
            self.ends.store(number, Ordering::Relaxed);
            end(number);
            self.settles();
        }
    }

    /// Waits until each client has done one thing that it began behind this moment, and begun
    /// another one: what was sent to servers that had ended by now is answered then.
    fn settles(&self) {
        let done = || self.done.each_ref().map(|done| done.load(Ordering::Relaxed));
        let before = done();
        eventually("each client to go on", || {
            done().iter().zip(&before).all(|(done, before)| *done >= before + 2)
        });
    }
}

/// Clients do not work for ever when a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Row = Vec<Option<Vec<u8>>>;

/// What has become of a read.
#[derive(Debug)]
pub(crate) enum Read {
    /// It was answered, with these rows.
    Done(Vec<Row>),
    /// Its server was lost, and the next one too, or it was not run again.
    Lost,
    /// Its server was lost in the middle of its reply, so that it cannot be run again.
    InPart,
}

/// Reads. Whatever else the client could hear is wrong, but for the warning of a crash. Where that
/// ends its connection, it goes on with a successor.
pub(crate) fn read(
    client: &mut WireClient,
    text: &str,
    lost: &str,
    successor: impl FnOnce() -> WireClient,
) -> Read {
    client.send(&query(text)).unwrap();
    let mut reply = Vec::new();
    while reply.last().is_none_or(|last: &Message| last.tag != b'Z') {
        let Some(message) = client.read().unwrap() else { break };
        if message.tag != b'N' || message.sqlstate() != "57P02" {
            reply.push(message);
        }
    }
    let tags: String = reply.iter().map(|message| char::from(message.tag)).collect();
    let code = reply.iter().find(|message| message.tag == b'E').map(Message::sqlstate);
    let rows: Vec<_> =
        reply.iter().filter(|message| message.tag == b'D').map(Message::values).collect();
    let is_begun = tags.starts_with('T');
    match (tags.trim_start_matches(['T', 'D']), code.as_deref()) {
        ("CZ", None) if is_begun => Read::Done(rows),
        ("EZ", Some(code)) if !is_begun && code == lost => Read::Lost,
        // Columns alone are no reason to end it.
        ("EZ", Some(code)) if is_begun && rows.is_empty() && code == lost => Read::InPart,
        ("E" | "CE", Some("57P01" | "57P02")) if is_begun => {
            *client = successor();
            Read::InPart
        }
        _ => panic!("{text}: {tags} {code:?}"),
    }
}

/// So many statements were sent to servers that are shared.
pub(crate) fn shared(stage: &Stage) -> usize {
    let rows = stage.console("SHOW PIPELINING");
    rows.last().map_or(0, |row| row.rsplit('|').next().unwrap().parse().unwrap())
}

/// So many servers were lost.
pub(crate) fn losses(stage: &Stage) -> usize {
    stage.pgweir.log().matches("a server connection was lost").count()
}

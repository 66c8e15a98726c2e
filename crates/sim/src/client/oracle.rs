use std::collections::BTreeMap;

use crate::language::Tag;
use crate::session::{Advance, Inbox, Message, Session, State, Witness, describe};

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
    /// Something of the reply that is due was heard.
    begun: bool,
    /// Its transaction was lost, and no server has answered since.
    lost: bool,
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

/// What the session has done since the last ReadyForQuery.
#[derive(Default)]
struct Deeds {
    committed: Vec<Tag>,
    undone: Vec<Tag>,
    wrong: Option<String>,
}

impl Oracle {
    pub(crate) fn new(settings: BTreeMap<String, String>) -> Self {
        let mut session = Session::new(settings);
        // The login has told them.
        while session.state.unreported().is_some() {}
        Self {
            session,
            inbox: Inbox::default(),
            held: Vec::new(),
            deeds: Deeds::default(),
            in_block: false,
            begun: false,
            lost: false,
        }
    }

    /// The client is told of the server's configuration: from now on that is the oracle's, too.
    pub(crate) fn told(&mut self, version: &str) {
        self.session.state.reload(version);
    }

    /// The client sends these messages.
    pub(crate) fn sent(&mut self, bytes: &[u8]) {
        let mut at = 0;
        let mut pushed = None;
        while let Ok(Some((message, length))) = Message::parse(&bytes[at..]) {
            at += length;
            if matches!(message.tag, b'Q' | b'F' | b'S' | b'H' | b'X' | b'c' | b'f') {
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
        while self.session.out.is_empty() {
            match self.session.advance(&mut self.inbox, &mut self.deeds) {
                Advance::Went { .. } | Advance::Sleeps(_) => {}
                Advance::Starved if !self.held.is_empty() => self.release(),
                Advance::Starved | Advance::Over => {
                    return Err(format!("got {} when nothing was due", in_words(raw)));
                }
            }
            if let Some(text) = self.deeds.wrong.take() {
                return Err(text);
            }
        }
        let Ok(Some((due, length))) = Message::parse(&self.session.out) else {
            return Err("is owed what is no message".to_owned());
        };
        if self.session.out[..length] != *raw {
            // A known difference.
            if due.tag == b't' && code_of(raw) == "25P02" && self.session.take_back() {
                return Ok(Heard::Reply);
            }
            return Err(format!("got {} when {} was due", in_words(raw), describe(&due)));
        }
        self.session.out.drain(..length);
        self.begun = due.tag != b'Z';
        // The ReadyForQuery behind an error of pgweir's own is no answer of a server.
        self.lost &= !self.begun;
        if due.tag != b'Z' {
            return Ok(Heard::Reply);
        }
        let idle = due.body == b"I";
        self.in_block = !idle;
        let Deeds { committed, undone, .. } = std::mem::take(&mut self.deeds);
        Ok(Heard::Ready { committed, undone, idle })
    }

    /// The statement with this tag was ended from outside, in these words: from here on the session
    /// goes that way.
    pub(crate) fn interrupt(&mut self, tag: Tag, text: &str) -> Result<(), String> {
        while self.session.running() != Some(tag) {
            let advance = match self.session.out.is_empty() {
                true => self.session.advance(&mut self.inbox, &mut self.deeds),
                false => Advance::Over,
            };
            match advance {
                Advance::Went { .. } | Advance::Sleeps(_) => {}
                Advance::Starved if !self.held.is_empty() => self.release(),
                Advance::Starved | Advance::Over => {
                    return Err(format!("{tag} was ended when its reply was not due"));
                }
            }
        }
        self.session.interrupt(b"57014", text, &mut self.inbox, &mut self.deeds);
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

    /// The client's server is lost, which this error tells: the transaction is undone, or nobody
    /// knows what has become of the unit.
    pub(crate) fn lose(&mut self, report: &[u8], undone: bool) -> Result<(), String> {
        if undone && !self.in_block {
            return Err("lost a transaction that it had not begun".to_owned());
        }
        if self.inbox.begins_nothing() {
            self.release();
        }
        let begun = self.begun;
        self.session.lose(report, begun, undone, &mut self.inbox, &mut self.deeds);
        self.deeds.committed.clear();
        self.hear(report)?;
        self.lost = undone;
        Ok(())
    }

    /// Whether something is due that the server does not keep back.
    pub(crate) fn is_owed(&self) -> bool {
        let mut session = self.session.clone();
        let mut inbox = self.inbox.clone();
        let mut deeds = Deeds::default();
        loop {
            if session.out.len() > 8 * 1024 {
                return true;
            }
            match session.advance(&mut inbox, &mut deeds) {
                Advance::Went { flush: true } if !session.out.is_empty() => return true,
                Advance::Went { .. } | Advance::Sleeps(_) => {}
                Advance::Starved | Advance::Over => return false,
            }
        }
    }

    /// Whether all that was sent is answered, and no batch is open.
    pub(crate) fn is_settled(&self) -> bool {
        let said = self.session.out.is_empty() && self.session.is_idle();
        said && self.held.is_empty() && self.inbox.is_empty()
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

    /// Whether the session has something that outlives its transactions.
    pub(crate) fn has_state(&self) -> bool {
        !self.session.state.stains.is_empty()
    }

    fn release(&mut self) {
        self.inbox.put(&std::mem::take(&mut self.held));
    }

    /// Whether it waits for COPY data.
    pub(crate) fn reads_copy_data(&self) -> bool {
        self.session.reads_copy_data()
    }

    pub(crate) fn listens(&self) -> bool {
        self.session.state.listens
    }

    /// Whether the last ReadyForQuery said so.
    pub(crate) fn is_in_block(&self) -> bool {
        self.in_block
    }
}

impl Witness for Deeds {
    fn meets(&mut self, _: Tag, _: &State) {}

    fn executes(&mut self, _: Tag) {}

    fn committed(&mut self, tags: &[Tag]) {
        self.committed.extend_from_slice(tags);
    }

    fn undone(&mut self, tags: &[Tag]) {
        self.undone.extend_from_slice(tags);
    }

    fn copies(&mut self, _: Tag, _: &[u8]) {}

    fn gives_up(&mut self) {}

    fn wrong(&mut self, text: String) {
        self.wrong.get_or_insert(text);
    }
}

fn code_of(raw: &[u8]) -> String {
    let message = Message::parse(raw).ok().flatten();
    let code = message.and_then(|(message, _)| message.error()?.code);
    code.map(|code| code.to_string()).unwrap_or_default()
}

fn in_words(raw: &[u8]) -> String {
    match Message::parse(raw) {
        Ok(Some((message, _))) => describe(&message),
        Ok(None) | Err(()) => raw.escape_ascii().to_string(),
    }
}

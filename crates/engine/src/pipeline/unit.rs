//! Whether what stands at the front of a client's input is a unit that may share a server.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pgweir_config::{Pipelining, PoolMode};
use pgweir_sql::{Alone, Encoding, Fingerprint, Heard, Loud, Sharing};
use pgweir_wire::HEADER_LEN;
use pgweir_wire::frontend::{Bind, Parse, Tag, Target};
use smallvec::SmallVec;

use super::{BRAKE, Choice};
use crate::Engine;
use crate::action::ClientId;
use crate::client::{UnitRest, UnnamedStatement};
use crate::marks::Mark;
use crate::pool::{Pool, PoolId};
use crate::prepared::{Meaning, Shape, Statement};
use crate::settings::{TIMEOUT, TRANSACTION_TIMEOUT};
use crate::units::{UNIT_HELD_BYTES, message, until_nul};

/// A unit that may share a server.
#[derive(Debug)]
pub(crate) struct Unit {
    /// So many bytes it has.
    pub(crate) bytes: usize,
    pub(crate) access: Access,
    pub(crate) print: Fingerprint,
    /// `access` is that of a statement of its own.
    begun: bool,
    /// It has another unnamed statement, or none behind it.
    pub(super) ends_unnamed: bool,
    /// It only reads, by a statement that is bound and executed without a name for either, or by a
    /// Query, so that it may be under one Sync with others.
    pub(super) may_join: bool,
    /// In which encoding it was read.
    pub(super) encoding: Encoding,
    /// The statements that a server must have for it, and what its client was told of their rows.
    pub(crate) needs: SmallVec<[Need; 1]>,
    /// The loud names by which it was judged.
    pub(super) loud: Arc<Loud>,
}

/// A statement that a server must have.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) statement: Rc<Statement>,
    pub(crate) told: Option<Rc<Shape>>,
}

impl Need {
    pub(crate) fn is(&self, statement: &Rc<Statement>) -> bool {
        Rc::ptr_eq(&self.statement, statement)
    }
}

/// What a unit does to the rows of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads them.
    Read,
    /// It reads them, and locks them until its end, for which it may have to wait.
    Lock,
    /// It changes them.
    Write,
}

/// Why no unit of a pool's clients shares a server, whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unshared {
    /// It is not asked for.
    Off,
    /// A client has its server for its whole session.
    Session,
    /// Servers may end a statement sooner than our brake.
    Timeout,
    /// What stands behind names was not read yet, or is read again.
    Names,
    /// The pool is not there any more, but for those who are in it.
    Removed,
}

impl Access {
    /// That of a text, if it may share a server, or else the rule.
    pub(crate) fn of(sharing: Sharing) -> Result<Self, Alone> {
        match sharing {
            Sharing::Read => Ok(Self::Read),
            Sharing::Lock => Ok(Self::Lock),
            Sharing::Write => Ok(Self::Write),
            Sharing::Alone(rule) => Err(rule),
        }
    }

    /// Whether it may wait for others, or for its commit: nothing that reads stands behind it.
    pub(crate) const fn waits(self) -> bool {
        match self {
            Self::Read => false,
            Self::Lock | Self::Write => true,
        }
    }

    /// Whether it leaves nothing behind, and may be carried out more than once.
    pub(crate) const fn may_be_repeated(self) -> bool {
        match self {
            Self::Read | Self::Lock => true,
            Self::Write => false,
        }
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Lock => "lock",
            Self::Write => "write",
        }
    }
}

impl Unshared {
    /// The rule in one sentence.
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Off => "pipelining is off.",
            Self::Session => "pool_mode is session.",
            Self::Timeout => {
                "statement_timeout or transaction_timeout of the pool is 50 ms or less."
            }
            Self::Names => {
                "What stands behind the names of the database was not read yet, or somebody has \
                 changed its schema since: then it is read again, in half a second at the earliest."
            }
            Self::Removed => "The pool is not in the configuration any more.",
        }
    }
}

impl Pool {
    /// Why no unit shares one of its servers now.
    pub(crate) fn unshared(&self) -> Option<Unshared> {
        if self.removed {
            Some(Unshared::Removed)
        } else if self.spec.pipelining == Pipelining::Off {
            Some(Unshared::Off)
        } else if self.spec.mode == PoolMode::Session {
            Some(Unshared::Session)
        } else if self.has_shorter_limit() {
            Some(Unshared::Timeout)
        } else if !self.knows_names() {
            Some(Unshared::Names)
        } else {
            None
        }
    }

    /// Whether a limit of its own ends a statement sooner than the brake.
    fn has_shorter_limit(&self) -> bool {
        let limits = [self.spec.statement_timeout, self.spec.transaction_timeout];
        limits.into_iter().flatten().any(|limit| limit <= BRAKE)
    }

    /// Whether its names were read, and nobody has changed the schema since.
    pub(crate) fn knows_names(&self) -> bool {
        self.names_known && !self.names_changed && !self.are_others()
    }

    /// Whether somebody, on any worker, has changed the schema since its names were read, or is
    /// about to.
    fn are_others(&self) -> bool {
        self.shown.as_ref().is_some_and(|(changes, seen)| changes.may_differ(*seen))
    }
}

impl Unit {
    /// It has a statement of this kind. `None`: then it cannot share a server. What reads and
    /// writes may have a reply that is too long to be kept, and cannot be run again for that.
    fn add(&mut self, heard: &Heard) -> Option<()> {
        let access = Access::of(heard.sharing).ok()?;
        let is_first = !std::mem::replace(&mut self.begun, true);
        if is_first {
            self.access = access;
        }
        self.print = self.print.and(heard.fingerprint);
        (self.access == access).then_some(())
    }

    /// It uses a statement, of which its client was told this. `None`: under another
    /// name its client was told that it is like something else, and not both can be true.
    fn need(&mut self, statement: Rc<Statement>, told: Option<Rc<Shape>>) -> Option<()> {
        match self.needs.iter().find(|need| need.is(&statement)) {
            Some(need) if need.told != told => {
                Mark::UnsharedForTold.hit();
                return None;
            }
            Some(_) => {}
            None => self.needs.push(Need { statement, told }),
        }
        Some(())
    }
}

impl Engine {
    /// The unit at the front of a client's input, if it may share a server.
    pub(crate) fn shareable(&self, id: ClientId, pool: PoolId, rest: &[u8]) -> Option<Unit> {
        if !self.may_pipeline(id, pool) {
            return None;
        }
        if let Some(unit) = &self.clients[id].unit {
            if Arc::ptr_eq(&unit.loud, &self.pools[pool].loud) {
                // It was read before it came into the queue.
                return Some(unit.again());
            }
            Mark::UnitReadAnew.hit();
        }
        self.read_unit(id, &self.pools[pool].loud, rest)
    }

    /// Whether a client has nothing that would have to be on a server of its own.
    fn may_pipeline(&self, id: ClientId, pool: PoolId) -> bool {
        let client = &self.clients[id];
        let of = &self.pools[pool];
        let is_plain = client.pins.is_empty()
            && client.prepared.is_empty()
            && client.changes.is_none()
            && client.subscription.is_none()
            && client.schema.is_none()
            && client.replication.is_none()
            && client.birth.is_empty()
            && client.deallocates.is_none()
            && !client.local_settings;
        let is_between = client.lost.is_none()
            && client.refusal.is_none()
            && client.rest == UnitRest::None
            && client.slots.is_empty()
            && client.body.left == 0
            && !client.congested;
        // One of the client's own may be smaller than ours.
        let limits = [TIMEOUT, TRANSACTION_TIMEOUT];
        let own = limits.into_iter().filter_map(|name| client.settings.value(name));
        let times_itself = own.into_iter().any(may_be_sooner);
        // Then PostgreSQL says much of its own about a statement, of which all has to be kept.
        let messages = client.settings.value(b"client_min_messages").unwrap_or_default();
        let debugs = messages.get(..5).is_some_and(|it| it.eq_ignore_ascii_case(b"debug"));
        Mark::UnsharedForDebugging.hit_if(debugs);
        of.unshared().is_none()
            && !times_itself
            && !debugs
            && client.choice() == Choice::Auto
            && is_plain
            && is_between
            && !client.alone
            && !matches!(client.unnamed, UnnamedStatement::TooLong)
    }

    /// The unit at the front of an input, if its text may share a server.
    pub(crate) fn read_unit(&self, id: ClientId, loud: &Arc<Loud>, rest: &[u8]) -> Option<Unit> {
        let mut unit = Unit {
            bytes: 0,
            access: Access::Read,
            print: Fingerprint::default(),
            begun: false,
            ends_unnamed: false,
            // PostgreSQL's is for the whole transaction.
            may_join: self.clients[id].settings.value(TRANSACTION_TIMEOUT).is_none(),
            encoding: self.told_encoding(id),
            needs: SmallVec::new(),
            loud: Arc::clone(loud),
        };
        let (mut bound, mut executed) = (false, false);
        loop {
            let (header, tag) = message(&rest[unit.bytes..]).ok()??;
            let message = rest[unit.bytes..].get(..header.message_len())?;
            let is_first = unit.bytes == 0;
            unit.bytes += message.len();
            if unit.bytes > UNIT_HELD_BYTES {
                Mark::UnsharedForLength.hit();
                return None;
            }
            let body = &message[HEADER_LEN..];
            match tag {
                Tag::Query if is_first => {
                    let text = until_nul(body);
                    if text.len() + 1 != body.len() {
                        return None;
                    }
                    unit.add(&pgweir_sql::hear(text, unit.encoding, &unit.loud))?;
                    unit.ends_unnamed = true;
                    unit.may_join &= unit.access == Access::Read;
                    return Some(unit);
                }
                // The brake is one for all of it up to the end of its Execute: what is behind that
                // would have another.
                Tag::Parse | Tag::Bind | Tag::Describe if executed => return None,
                Tag::Parse => {
                    let parse = Parse::start(body).ok()?;
                    if !parse.name.is_empty() {
                        return None;
                    }
                    unit.add(&pgweir_sql::hear(parse.text, unit.encoding, &unit.loud))?;
                    unit.ends_unnamed = true;
                }
                Tag::Bind => {
                    let bind = Bind::start(body).ok()?;
                    unit.may_join &= bind.portal.is_empty();
                    bound = true;
                    match bind.statement {
                        b"" if !unit.ends_unnamed => return None,
                        b"" => {}
                        name => self.needs(id, name, &mut unit)?,
                    }
                }
                Tag::Describe => match Target::parse(body).ok()? {
                    Target::Statement(b"") if !unit.ends_unnamed => return None,
                    // There may be one of a unit in front.
                    Target::Portal(name) => unit.may_join &= bound && name.is_empty(),
                    Target::Statement(b"") => {}
                    Target::Statement(name) => self.needs(id, name, &mut unit)?,
                },
                // A row limit may leave the portal open.
                Tag::Execute if body.ends_with(&[0; 5]) && !executed => {
                    unit.may_join &= bound && body.len() == 5;
                    executed = true;
                }
                Tag::Close => match Target::parse(body).ok()? {
                    Target::Portal(_) => unit.may_join = false,
                    Target::Statement(_) => return None,
                },
                Tag::Sync => {
                    unit.may_join &= executed && unit.access == Access::Read;
                    return Some(unit);
                }
                Tag::CopyData
                | Tag::CopyDone
                | Tag::CopyFail
                | Tag::Execute
                | Tag::Flush
                | Tag::FunctionCall
                | Tag::Password
                | Tag::Query
                | Tag::Terminate => return None,
            }
        }
    }

    /// The encoding of what a client says that has no server: the one that it was told last.
    fn told_encoding(&self, id: ClientId) -> Encoding {
        self.clients[id].told.as_ref().map_or(Encoding::Opaque, |told| told.encoding())
    }

    /// A unit uses a statement that its client has prepared under this name.
    fn needs(&self, id: ClientId, name: &[u8], unit: &mut Unit) -> Option<()> {
        let client = &self.clients[id];
        let Meaning::Known(statement, told) = client.names.meaning(name, client.coming_slot())
        else {
            Mark::UnsharedForName.hit();
            return None;
        };
        let hear = |text: &[u8]| pgweir_sql::hear(text, unit.encoding, &unit.loud);
        let heard = statement.heard(&unit.loud, hear);
        let settings = self.reading_of(id, heard.folds);
        if statement.is_private() || !statement.is_read_under(&settings, heard.folds) {
            Mark::UnsharedForSettings.hit();
            return None;
        }
        unit.add(&heard)?;
        unit.need(statement, told.filter(|told| told.is_something()))
    }
}

/// Whether a `statement_timeout` may end something before the brake does. What is written in
/// another way than most people write it may.
fn may_be_sooner(value: &[u8]) -> bool {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&value[..digits]).ok().and_then(|text| text.parse::<u32>().ok());
    let unit = match value[digits..].trim_ascii() {
        b"" | b"ms" => Duration::from_millis(1),
        b"s" => Duration::from_secs(1),
        b"min" => Duration::from_secs(60),
        b"h" => Duration::from_secs(3600),
        b"d" => Duration::from_secs(86_400),
        _ => return true,
    };
    if digits > 1 && value.starts_with(b"0") {
        // PostgreSQL reads it as octal.
        return true;
    }
    // 0 is without end.
    number.is_none_or(|number| number > 0 && unit.saturating_mul(number) <= BRAKE)
}

impl Unit {
    fn again(&self) -> Self {
        Self {
            bytes: self.bytes,
            access: self.access,
            print: self.print,
            begun: self.begun,
            ends_unnamed: self.ends_unnamed,
            may_join: self.may_join,
            encoding: self.encoding,
            needs: self.needs.clone(),
            loud: Arc::clone(&self.loud),
        }
    }
}

#[cfg(test)]
mod tests;

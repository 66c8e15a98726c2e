//! What a session knows, and the statements that change it.
//!
//! The language: `BEGIN`, `COMMIT`, `ROLLBACK`, `DEFER` (fails at the commit), `ERROR`, `FATAL`,
//! `SLEEP`, `SELECT SLEEP` (which pgweir takes for harmless), `COPY IN`, `COPY OUT`, `MANY` (three
//! rows), `PARAMETER`, `NOTICE`, `NOTIFY`, `SET x = 1`, `LISTEN c`, `LOAD 'x'`,
//! `PREPARE p AS SELECT 1`, `DISCARD ALL`, the engine's own
//! `SELECT ARRAY[pg_catalog.set_config(…)] IS NULL`, and everything else, which gives a row that
//! holds the statement itself.

use std::collections::BTreeMap;

use pgweir_wire::TransactionStatus;
use pgweir_wire::backend::{self, Column};
use pgweir_wire::frontend::Tag;

use super::{BYSTANDER, BusyKind, MALFORMED, Outcome, Refusal};

pub(super) const FAILED_BLOCK: Refusal =
    "current transaction is aborted, commands ignored until end of transaction block";

const ROWS_OF_MANY: u32 = 3;

/// The `statement_timeout` of servers that are shared, and its value there.
const BRAKE: (&[u8], &[u8]) = (b"statement_timeout", b"50");

/// The state of a session.
pub(super) struct Session {
    status: TransactionStatus,
    /// A transaction block of the bystander's is open.
    bystanders_block: bool,
    statements: BTreeMap<Vec<u8>, Vec<u8>>,
    portals: BTreeMap<Vec<u8>, Portal>,
    /// Settings that were changed.
    settings: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The transaction will fail when it is committed.
    deferred: bool,
    /// Something that DISCARD ALL removes.
    dirty: bool,
    /// Something that nothing removes.
    spoilt: bool,
}

struct Portal {
    text: Vec<u8>,
    rows_sent: u32,
}

impl Session {
    pub(super) fn new() -> Self {
        Self {
            status: TransactionStatus::Idle,
            bystanders_block: false,
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            settings: BTreeMap::new(),
            deferred: false,
            dirty: false,
            spoilt: false,
        }
    }

    pub(super) fn status(&self) -> TransactionStatus {
        self.status
    }

    /// A simple query ends the unnamed statement.
    pub(super) fn forget_unnamed(&mut self) {
        self.statements.remove(&b""[..]);
    }

    /// Outside a block a transaction ends with a simple query or a Sync, and portals with it.
    pub(super) fn sync(&mut self) -> Result<(), Refusal> {
        if self.status != TransactionStatus::Idle {
            return Ok(());
        }
        self.portals.clear();
        match std::mem::take(&mut self.deferred) {
            true => Err("a deferred constraint is violated"),
            false => Ok(()),
        }
    }

    /// An error was sent.
    pub(super) fn fail(&mut self) {
        match self.status {
            TransactionStatus::Idle => {}
            TransactionStatus::Active | TransactionStatus::Failed => {
                self.status = TransactionStatus::Failed;
            }
        }
        self.portals.clear();
        self.deferred = false;
    }

    /// Performs a statement, of which `rows_sent` rows have been sent already.
    pub(super) fn perform(
        &mut self,
        text: &[u8],
        rows_sent: u32,
        described: bool,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if text.windows(BYSTANDER.len()).any(|word| word == BYSTANDER) {
            self.must_be_as_new();
        }
        let ends = matches!(
            text,
            b"COMMIT" | b"ROLLBACK" | b"COMMIT -- BYSTANDER" | b"ROLLBACK -- BYSTANDER"
        );
        if self.status == TransactionStatus::Failed && !ends {
            return Outcome::Error(FAILED_BLOCK);
        }
        match text {
            b"BEGIN" | b"BEGIN -- BYSTANDER" => {
                self.bystanders_block |= text.ends_with(BYSTANDER);
                self.status = TransactionStatus::Active;
                backend::command_complete(out, "BEGIN");
            }
            _ if text.starts_with(b"BEGIN; SELECT CAST('the transaction was lost") => {
                // For whoever has lost its own, which may be the bystander.
                self.bystanders_block = true;
                self.status = TransactionStatus::Active;
                return Outcome::Error("the transaction was lost");
            }
            _ if ends => {
                self.bystanders_block = false;
                self.status = TransactionStatus::Idle;
                if let Err(refusal) = self.sync() {
                    return Outcome::Error(refusal);
                }
                backend::command_complete(out, "COMMIT");
            }
            b"DEFER" => {
                self.deferred = true;
                backend::command_complete(out, "INSERT 0 1");
            }
            b"ERROR" => return Outcome::Error("as you wish"),
            b"FATAL" => return Outcome::Fatal,
            b"SLEEP" | b"SELECT SLEEP" => return Outcome::Busy(BusyKind::Sleep),
            b"COPY IN" => {
                out.extend_from_slice(b"G\0\0\0\x09\0\0\x01\0\0");
                return Outcome::Busy(BusyKind::CopyIn);
            }
            b"COPY OUT" => {
                out.extend_from_slice(b"H\0\0\0\x09\0\0\x01\0\0");
                out.extend_from_slice(b"d\0\0\0\x061\n");
                out.extend_from_slice(b"c\0\0\0\x04");
                backend::command_complete(out, "COPY 1");
            }
            b"PARAMETER" => {
                backend::command_complete(out, "SET");
                backend::parameter_status(out, b"application_name", b"changed");
            }
            b"NOTICE" => {
                out.extend_from_slice(b"N\0\0\0\x1cSNOTICE\0VNOTICE\0C00000\0\0");
                backend::command_complete(out, "DO");
            }
            b"NOTIFY" => {
                out.extend_from_slice(b"A\0\0\0\x0c\0\0\0\x01c\0p\0");
                backend::command_complete(out, "NOTIFY");
            }
            b"SET x = 1" | b"LISTEN c" | b"PREPARE p AS SELECT 1" => {
                self.dirty = true;
                backend::command_complete(out, "SET");
            }
            b"LOAD 'x'" => {
                self.spoilt = true;
                backend::command_complete(out, "LOAD");
            }
            b"DISCARD ALL" => return self.discard_all(out),
            _ => return self.select(text, rows_sent, described, out),
        }
        Outcome::Done
    }

    /// A message of the extended protocol.
    pub(super) fn extended(&mut self, tag: Tag, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        let result = match tag {
            Tag::Parse => self.parse(body).map(|()| out.extend_from_slice(b"1\0\0\0\x04")),
            Tag::Bind => self.bind(body).map(|()| out.extend_from_slice(b"2\0\0\0\x04")),
            Tag::Describe => self.describe(body, out),
            Tag::Close => self.close(body).map(|()| out.extend_from_slice(b"3\0\0\0\x04")),
            Tag::Execute => return self.execute(body, out),
            Tag::Flush if body.is_empty() => Ok(()),
            _ => Err(MALFORMED),
        };
        match result {
            Ok(()) => Outcome::Done,
            Err(refusal) => Outcome::Error(refusal),
        }
    }

    /// A bystander's statement must find the session as a new one is, whoever was here before.
    fn must_be_as_new(&self) {
        let block = self.status != TransactionStatus::Idle;
        assert!(!block || self.bystanders_block, "a bystander got into another's transaction");
        assert!(!self.dirty && !self.spoilt, "a bystander got what another left behind");
        // Outside of a transaction it may have a server that is shared.
        let own = usize::from(!block && self.brakes());
        assert!(self.settings.len() <= own, "a bystander got another's settings");
        let named = self.statements.keys().find(|name| !name.is_empty() && !is_shared(name));
        assert!(named.is_none(), "a bystander got another's prepared statements");
    }

    /// Whether no statement takes longer here than on a server that is shared.
    pub(super) fn brakes(&self) -> bool {
        let (name, value) = BRAKE;
        self.settings.get(name).is_some_and(|its| its == value)
    }

    fn discard_all(&mut self, out: &mut Vec<u8>) -> Outcome {
        if self.status != TransactionStatus::Idle {
            return Outcome::Error("DISCARD ALL cannot run inside a transaction block");
        }
        self.dirty = false;
        self.settings.clear();
        self.statements.clear();
        self.portals.clear();
        backend::command_complete(out, "DISCARD ALL");
        Outcome::Done
    }

    fn select(&mut self, text: &[u8], sent: u32, described: bool, out: &mut Vec<u8>) -> Outcome {
        if let Some(calls) = text
            .strip_prefix(b"SELECT ARRAY[")
            .and_then(|text| text.strip_suffix(b"] IS NULL"))
            .and_then(set_config_calls)
        {
            if calls.iter().any(|(name, _)| name.starts_with(b"bad")) {
                return Outcome::Error("unrecognized configuration parameter");
            }
            for (name, value) in calls {
                match value {
                    Some(value) => drop(self.settings.insert(name, value)),
                    None => drop(self.settings.remove(&name)),
                }
            }
        }
        if text.is_empty() {
            backend::empty_query_response(out);
            return Outcome::Done;
        }
        if described {
            row_description(out);
        }
        let rows = if text == b"MANY" { ROWS_OF_MANY } else { 1 };
        for _ in sent..rows {
            backend::data_row(out, [Some(text)]);
        }
        backend::command_complete(out, "SELECT 1");
        Outcome::Done
    }

    fn parse(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let mut fields = Fields(body);
        let (name, text) = (fields.string()?.to_vec(), fields.string()?);
        let types = fields.int16()?;
        fields.bytes(4 * types)?;
        fields.end()?;
        if name.is_empty() {
            self.forget_unnamed();
        } else if self.statements.contains_key(&name) {
            return Err("prepared statement already exists");
        }
        let mut statements = split(text);
        if statements.len() > 1 {
            return Err("cannot insert multiple commands into a prepared statement");
        }
        let text = statements.pop().unwrap_or_default();
        self.refuse_if_failed(&text)?;
        self.statements.insert(name, text);
        Ok(())
    }

    fn bind(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let mut fields = Fields(body);
        let (portal, statement) = (fields.string()?.to_vec(), fields.string()?);
        let Some(text) = self.statements.get(statement).cloned() else {
            return Err("prepared statement does not exist");
        };
        let formats = fields.int16()?;
        fields.bytes(2 * formats)?;
        for _ in 0..fields.int16()? {
            if let Ok(length) = usize::try_from(fields.int32()?) {
                fields.bytes(length)?;
            }
        }
        let formats = fields.int16()?;
        fields.bytes(2 * formats)?;
        fields.end()?;
        self.refuse_if_failed(&text)?;
        if !portal.is_empty() && self.portals.contains_key(&portal) {
            return Err("cursor already exists");
        }
        self.portals.insert(portal, Portal { text, rows_sent: 0 });
        Ok(())
    }

    fn describe(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let (kind, name) = target(body)?;
        let text = if kind == b'S' {
            self.statements.get(name).ok_or("prepared statement does not exist")?
        } else {
            &self.portals.get(name).ok_or("portal does not exist")?.text
        };
        if kind == b'S' {
            out.extend_from_slice(b"t\0\0\0\x06\0\0");
        }
        let has_rows = !text.is_empty() && !text.iter().all(u8::is_ascii_uppercase);
        if has_rows {
            row_description(out)
        } else {
            out.extend_from_slice(b"n\0\0\0\x04")
        }
        Ok(())
    }

    fn close(&mut self, body: &[u8]) -> Result<(), Refusal> {
        match target(body)? {
            (b'S', name) => drop(self.statements.remove(name)),
            (_, name) => drop(self.portals.remove(name)),
        }
        Ok(())
    }

    fn execute(&mut self, body: &[u8], out: &mut Vec<u8>) -> Outcome {
        let mut fields = Fields(body);
        let read = fields
            .string()
            .and_then(|name| Ok((name, fields.int32()?)))
            .and_then(|read| fields.end().map(|()| read));
        let (name, limit) = match read {
            Ok(read) => read,
            Err(refusal) => return Outcome::Error(refusal),
        };
        let Some(portal) = self.portals.get_mut(name) else {
            return Outcome::Error("portal does not exist");
        };
        let limit = u32::try_from(limit).unwrap_or(0);
        let (text, sent) = (portal.text.clone(), portal.rows_sent);
        let failed = self.status == TransactionStatus::Failed;
        if text == b"MANY" && !failed && limit > 0 && sent + limit <= ROWS_OF_MANY {
            portal.rows_sent += limit;
            for _ in 0..limit {
                backend::data_row(out, [Some(&text[..])]);
            }
            out.extend_from_slice(b"s\0\0\0\x04");
            return Outcome::Done;
        }
        if text == b"MANY" {
            portal.rows_sent = ROWS_OF_MANY;
        }
        self.perform(&text, sent, false, out)
    }

    fn refuse_if_failed(&self, text: &[u8]) -> Result<(), Refusal> {
        let ends = text.starts_with(b"COMMIT") || text.starts_with(b"ROLLBACK");
        if self.status == TransactionStatus::Failed && !ends { Err(FAILED_BLOCK) } else { Ok(()) }
    }
}

/// The text of a Query.
pub(super) fn query_text(body: &[u8]) -> Result<&[u8], Refusal> {
    let mut fields = Fields(body);
    let text = fields.string()?;
    fields.end()?;
    Ok(text)
}

/// The statements of a query string. A text with quotes or comments is one statement, since what
/// they hold is none; so is one that PostgreSQL would refuse as a whole.
pub(super) fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let text = text.trim_ascii();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" =;\n".contains(byte);
    let pieces = if text.iter().all(plain) {
        text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).collect()
    } else {
        vec![text.strip_suffix(b";").unwrap_or(text).trim_ascii()]
    };
    pieces.into_iter().filter(|piece| !piece.is_empty()).map(<[u8]>::to_vec).collect()
}

fn row_description(out: &mut Vec<u8>) {
    backend::row_description(out, &[Column { name: "text", type_oid: 25, type_len: -1 }]);
}

fn target(body: &[u8]) -> Result<(u8, &[u8]), Refusal> {
    match body {
        [kind @ (b'P' | b'S'), name @ .., 0] if !name.contains(&0) => Ok((*kind, name)),
        _ => Err(MALFORMED),
    }
}

type Calls = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// `pg_catalog.set_config('name', 'value' or NULL, false)`, one or more, and nothing else.
fn set_config_calls(mut text: &[u8]) -> Option<Calls> {
    let mut calls = Vec::new();
    loop {
        text = text.strip_prefix(b"pg_catalog.set_config(")?;
        let name = argument(&mut text)?;
        text = text.strip_prefix(b", ")?;
        let value = match text.strip_prefix(b"NULL") {
            Some(rest) => {
                text = rest;
                None
            }
            None => Some(argument(&mut text)?),
        };
        calls.push((name, value));
        text = text.strip_prefix(b", false)")?;
        if text.is_empty() {
            return Some(calls);
        }
        text = text.strip_prefix(b", ")?;
    }
}

/// A text, of which only what is plain ASCII stands there as it is.
fn argument(text: &mut &[u8]) -> Option<Vec<u8>> {
    let Some(rest) = text.strip_prefix(b"pg_catalog.convert_from(pg_catalog.decode(") else {
        return literal(text).filter(|value| value.is_ascii());
    };
    *text = rest;
    let hex = literal(text)?;
    *text = text.strip_prefix(b", 'hex'), pg_catalog.getdatabaseencoding())")?;
    let digits = hex.chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

fn literal(text: &mut &[u8]) -> Option<Vec<u8>> {
    let escapes = text.first() == Some(&b'E');
    let mut rest = text.strip_prefix(b"E").unwrap_or(text).strip_prefix(b"'")?;
    let mut value = Vec::new();
    loop {
        match rest {
            [b'\'', b'\'', behind @ ..] => {
                value.push(b'\'');
                rest = behind;
            }
            [b'\\', byte, behind @ ..] if escapes => {
                value.push(*byte);
                rest = behind;
            }
            [b'\'', behind @ ..] => {
                *text = behind;
                return Some(value);
            }
            [byte, behind @ ..] => {
                value.push(*byte);
                rest = behind;
            }
            [] => return None,
        }
    }
}

/// The fields of a message, as `pqformat.c` reads them.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn string(&mut self) -> Result<&'a [u8], Refusal> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(MALFORMED)?;
        let string = &self.0[..end];
        self.0 = &self.0[end + 1..];
        // It is converted from the client's encoding as it is read.
        let valid = str::from_utf8(string).is_ok();
        if valid { Ok(string) } else { Err("invalid byte sequence for encoding \"UTF8\"") }
    }

    fn int16(&mut self) -> Result<usize, Refusal> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(usize::from(u16::from_be_bytes(*bytes)))
    }

    fn int32(&mut self) -> Result<i32, Refusal> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*bytes))
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Refusal> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn end(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(MALFORMED) }
    }
}

/// Whether a statement has a name of pgweir's, for all of its clients.
fn is_shared(name: &[u8]) -> bool {
    name.strip_prefix(b"pgweir_").is_some_and(|rest| rest.first() != Some(&b'_'))
}

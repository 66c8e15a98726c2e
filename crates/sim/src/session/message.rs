use pgweir_wire::backend::{Column, ErrorFields, Report};
use pgweir_wire::frontend::Parse;
use pgweir_wire::{HEADER_LEN, Header, SqlState, backend};

use crate::language::{self, Line, Tag};
use crate::shapes::Shape;

/// A message with a tag byte, taken out of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) tag: u8,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The message at the front of `bytes`, and its length; `Err` if there can never be one.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, ()> {
        let Some(header) = Header::parse(bytes).map_err(drop)? else { return Ok(None) };
        let length = header.message_len();
        let Some(body) = bytes.get(HEADER_LEN..length) else { return Ok(None) };
        Ok(Some((Self { tag: header.tag, body: body.to_vec() }, length)))
    }

    /// The whole messages at the front of `bytes`.
    pub(crate) fn all(mut bytes: &[u8]) -> impl Iterator<Item = Self> {
        std::iter::from_fn(move || {
            let (message, length) = Self::parse(bytes).ok()??;
            bytes = &bytes[length..];
            Some(message)
        })
    }

    /// Its bytes, on the wire.
    fn len(&self) -> usize {
        HEADER_LEN + self.body.len()
    }

    /// The statements that a frontend's message is about.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        let mut tags = self.tags_of_texts();
        tags.retain(|tag| !tag.is_common());
        tags
    }

    /// The same, with those of texts that are nobody's.
    pub(crate) fn tags_of_texts(&self) -> Vec<Tag> {
        match self.tag {
            b'Q' | b'P' => {
                let words = self.body.split(|byte| b" ;/*\0".contains(byte));
                words.filter_map(Tag::parse).collect()
            }
            b'B' => self.first_parameter().and_then(Tag::parse).into_iter().collect(),
            b'F' => self
                .body
                .get(12..)
                .and_then(|rest| Tag::parse(rest.strip_suffix(&[0, 0])?))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The statements of a Query or a Parse, if they are understood; else none.
    pub(crate) fn lines(&self) -> Option<Vec<Line>> {
        match self.tag {
            b'Q' => language::parse(self.body.strip_suffix(b"\0").unwrap_or(&self.body)),
            b'P' => language::parse(Parse::start(&self.body).ok()?.text),
            _ => None,
        }
    }

    /// Portal and row limit of an Execute.
    pub(crate) fn execute(&self) -> Option<(&[u8], u32)> {
        let (name, limit) = self.body.split_at_checked(self.body.len().checked_sub(4)?)?;
        Some((name.strip_suffix(b"\0")?, u32::from_be_bytes(limit.try_into().ok()?)))
    }

    /// Whether it is part of COPY data sent by a frontend.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self.tag, b'd' | b'c' | b'f')
    }

    /// Whether a walsender refuses it (`forbidden_in_wal_sender`, postgres.c).
    pub(crate) fn no_walsender_takes(&self) -> bool {
        b"PBEFCD".contains(&self.tag)
    }

    /// The fields of a server's error.
    pub(crate) fn error(&self) -> Option<ErrorFields<'_>> {
        if self.tag != b'E' {
            return None;
        }
        ErrorFields::parse(&self.body).ok()
    }

    /// The first parameter of a Bind without parameter formats, as clients here send it.
    fn first_parameter(&self) -> Option<&[u8]> {
        let portal = self.body.iter().position(|byte| *byte == 0)? + 1;
        let statement = self.body[portal..].iter().position(|byte| *byte == 0)? + 1;
        // No formats, and how many values there are.
        let length = self.body.get(portal + statement + 4..)?;
        let (length, values) = length.split_first_chunk()?;
        values.get(..u32::from_be_bytes(*length) as usize)
    }
}

/// What has been sent to a session and not been taken yet.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
}

impl Inbox {
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if it is whole. Bytes that are none are passed over: whoever fills the
    /// inbox must not let them in.
    pub(crate) fn take(&mut self) -> Option<Message> {
        let (message, length) = Message::parse(&self.bytes[self.start..]).ok()??;
        self.start += length;
        Some(message)
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// What was taken since so many bytes were left, if none were put in.
    pub(crate) fn taken_since(&self, left: usize) -> &[u8] {
        &self.bytes[self.start - (left - self.left())..self.start]
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// The statements of all messages.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        self.ahead().flat_map(|message| message.tags()).collect()
    }

    /// Whether nothing but a part of a message is left.
    pub(crate) fn has_no_message(&self) -> bool {
        !matches!(Message::parse(&self.bytes[self.start..]), Ok(Some(_)))
    }

    /// Whether a part of a message with COPY data is left.
    pub(crate) fn is_in_copy_data(&self) -> bool {
        self.bytes.get(self.start) == Some(&b'd')
    }

    /// Whether nothing is left but what comes too late for a COPY.
    pub(crate) fn begins_nothing(&self) -> bool {
        self.ahead().all(|message| message.is_copy() || message.tag == b'H')
    }

    /// Whether a part of COPY data comes next, but for what is passed over while they are read.
    pub(crate) fn has_copy(&self) -> bool {
        let next = self.ahead().find(|message| !matches!(message.tag, b'S' | b'H'));
        next.is_some_and(|message| message.is_copy())
    }

    /// Whether a statement of pgweir's own comes next.
    pub(crate) fn begins_with_own(&self) -> bool {
        let is_own = |line: &Line| line.tag().is_none();
        let lines = self.ahead().next().and_then(|message| message.lines());
        lines.is_some_and(|lines| !lines.is_empty() && lines.iter().all(is_own))
    }

    /// Whether it begins with pgweir's question what there is in the catalogue.
    pub(crate) fn asks_for_catalogue(&self) -> bool {
        let lines = self.ahead().next().and_then(|message| message.lines());
        lines.is_some_and(|lines| lines.iter().any(|line| matches!(line, Line::Catalogue)))
    }

    /// Whether it holds one unit, of pgweir's own, and nothing behind it. What it puts into a batch
    /// of its client's, without an end, is none.
    pub(crate) fn is_own(&self) -> bool {
        let unit: usize = self.unit().map(|message| message.len()).sum();
        let ends = self.unit().any(|message| matches!(message.tag, b'Q' | b'S'));
        self.begins_with_own() && self.left() == unit && ends
    }

    /// The messages up to the end of the first unit: a Query, a function call or a Sync.
    pub(crate) fn unit(&self) -> impl Iterator<Item = Message> {
        let mut ahead = self.clone();
        let mut over = false;
        std::iter::from_fn(move || {
            let message = ahead.take().filter(|_| !over)?;
            over = matches!(message.tag, b'Q' | b'F' | b'S');
            Some(message)
        })
    }

    /// The statements of the first unit.
    pub(crate) fn tags_of_unit(&self) -> Vec<Tag> {
        self.unit().flat_map(|message| message.tags()).collect()
    }

    /// The statements of the messages in front of the next Sync.
    pub(crate) fn tags_up_to_sync(&self) -> Vec<Tag> {
        let in_front = self.ahead().take_while(|message| message.tag != b'S');
        in_front.flat_map(|message| message.tags()).collect()
    }

    /// The whole messages that are left.
    fn ahead(&self) -> impl Iterator<Item = Message> {
        Message::all(&self.bytes[self.start..])
    }
}

impl Clone for Inbox {
    /// Without what was taken.
    fn clone(&self) -> Self {
        Self { bytes: self.bytes[self.start..].to_vec(), start: 0 }
    }
}

/// Appends a message.
pub(crate) fn put(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends the description of every row that there is: execution, statement, value.
pub(crate) fn row_description(out: &mut Vec<u8>) {
    row_description_of(out, None);
}

/// The same of rows that a statement may have changed.
pub(crate) fn row_description_of(out: &mut Vec<u8>, shape: Shape) {
    let column = |name| Column { name, type_oid: 25, type_len: -1 };
    let value = shape.map_or_else(|| VALUE.to_owned(), |tag| tag.to_string());
    backend::row_description(out, &[column("execution"), column("statement"), column(&value)]);
}

/// What the rows are like that this describes, if it does so.
pub(crate) fn shape_of(message: &Message) -> Option<Shape> {
    if message.tag != b'T' {
        return None;
    }
    let columns = backend::parse_row_description(&message.body).ok()?;
    let name = columns.last()?.name;
    if name == VALUE.as_bytes() { Some(None) } else { Tag::parse(name).map(Some) }
}

/// The name of the last column, if no statement has changed it.
const VALUE: &str = "value";

/// Appends an ErrorResponse.
pub(crate) fn write_error(out: &mut Vec<u8>, code: &[u8; 5], text: &str) {
    let code = SqlState::parse(code).unwrap_or(SqlState::INTERNAL_ERROR);
    Report::error(code, text).write(out);
}

/// Appends the ErrorResponse that ends a connection.
pub(crate) fn write_fatal(out: &mut Vec<u8>, code: &[u8; 5], text: &str) {
    put(out, b'E', |out| {
        for (field, value) in [
            (b'S', &b"FATAL"[..]),
            (b'V', b"FATAL"),
            (b'C', code),
            (b'M', text.as_bytes()),
            (b'F', b"postgres.c"),
        ] {
            out.push(field);
            out.extend_from_slice(value);
            out.push(0);
        }
        out.push(0);
    });
}

/// Appends a NoticeResponse.
pub(crate) fn write_notice(out: &mut Vec<u8>, text: &str) {
    write_note(out, "NOTICE", b"00000", text);
}

/// Appends a NoticeResponse that is a warning.
pub(crate) fn write_warning(out: &mut Vec<u8>, code: &[u8; 5], text: &str) {
    write_note(out, "WARNING", code, text);
}

fn write_note(out: &mut Vec<u8>, severity: &str, code: &[u8; 5], text: &str) {
    put(out, b'N', |out| {
        let severity = severity.as_bytes();
        for (field, value) in
            [(b'S', severity), (b'V', severity), (b'C', &code[..]), (b'M', text.as_bytes())]
        {
            out.push(field);
            out.extend_from_slice(value);
            out.push(0);
        }
        out.push(0);
    });
}

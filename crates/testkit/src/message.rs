use std::fmt::{self, Display, Write};

#[cfg(test)]
mod tests;

/// One message from a server, as it came.
///
/// `Display` writes it for a transcript: every field, nothing left out, apart from what can never
/// be the same on two connections (process ids and the secret of BackendKeyData).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The type byte.
    pub tag: u8,
    /// What follows the length.
    pub body: Vec<u8>,
}

impl Message {
    /// A field of an ErrorResponse or NoticeResponse: `C` is the SQLSTATE, `M` the message.
    #[must_use]
    pub fn field(&self, code: u8) -> Option<String> {
        let fields = error_fields(&self.body)?;
        let (_, value) = fields.into_iter().find(|(field, _)| *field == code)?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// The SQLSTATE of an ErrorResponse or NoticeResponse, empty if there is none.
    #[must_use]
    pub fn sqlstate(&self) -> String {
        self.field(b'C').unwrap_or_default()
    }

    /// The values of a DataRow, `None` for NULL.
    ///
    /// # Panics
    /// When it is no DataRow, or a bad one.
    #[must_use]
    pub fn values(&self) -> Vec<Option<Vec<u8>>> {
        let values = (self.tag == b'D').then(|| row_values(&self.body)).flatten();
        let Some(values) = values else { panic!("no DataRow: {self}") };
        values.into_iter().map(|value| value.map(<[u8]>::to_vec)).collect()
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = name(self.tag) else {
            return write!(f, "{:?} {}", char::from(self.tag), Quoted(&self.body));
        };
        f.write_str(name)?;
        match described(self.tag, &self.body) {
            Some(text) => f.write_str(&text),
            None => write!(f, " (malformed) {}", Quoted(&self.body)),
        }
    }
}

fn name(tag: u8) -> Option<&'static str> {
    Some(match tag {
        b'1' => "ParseComplete",
        b'2' => "BindComplete",
        b'3' => "CloseComplete",
        b'A' => "NotificationResponse",
        b'C' => "CommandComplete",
        b'D' => "DataRow",
        b'E' => "ErrorResponse",
        b'G' => "CopyInResponse",
        b'H' => "CopyOutResponse",
        b'I' => "EmptyQueryResponse",
        b'K' => "BackendKeyData",
        b'N' => "NoticeResponse",
        b'R' => "Authentication",
        b'S' => "ParameterStatus",
        b'T' => "RowDescription",
        b'V' => "FunctionCallResponse",
        b'W' => "CopyBothResponse",
        b'Z' => "ReadyForQuery",
        b'c' => "CopyDone",
        b'd' => "CopyData",
        b'n' => "NoData",
        b's' => "PortalSuspended",
        b't' => "ParameterDescription",
        b'v' => "NegotiateProtocolVersion",
        _ => return None,
    })
}

/// What stands behind the name, `None` if the body is not what its type requires.
fn described(tag: u8, body: &[u8]) -> Option<String> {
    let mut rest = Rest(body);
    let mut text = String::new();
    match tag {
        b'T' => describe_columns(&mut rest, &mut text)?,
        b'D' => {
            let values = row_values(rest.take_all())?;
            values.iter().for_each(|value| push(&mut text, Optional(*value)));
        }
        b'E' | b'N' => {
            for (code, value) in error_fields(rest.take_all())? {
                push(&mut text, format_args!("{}={}", char::from(code), Quoted(value)));
            }
        }
        b'A' => {
            rest.take(4)?;
            push(&mut text, "pid=<pid>");
            push(&mut text, Quoted(rest.c_string()?));
            push(&mut text, Quoted(rest.c_string()?));
        }
        b'K' => {
            rest.take(4)?;
            push(&mut text, format_args!("pid=<pid> secret=<{} bytes>", rest.take_all().len()));
        }
        b'G' | b'H' | b'W' => {
            push(&mut text, format_args!("format={}", rest.u8()?));
            for _ in 0..rest.u16()? {
                push(&mut text, rest.u16()?);
            }
        }
        b't' => {
            for _ in 0..rest.u16()? {
                push(&mut text, rest.u32()?);
            }
        }
        b'v' => {
            push(&mut text, format_args!("newest={:#x}", rest.u32()?));
            for _ in 0..rest.u32()? {
                push(&mut text, Quoted(rest.c_string()?));
            }
        }
        b'V' => push(&mut text, Optional(rest.value()?)),
        b'Z' => push(&mut text, char::from(rest.u8()?)),
        b'C' => push(&mut text, Quoted(rest.c_string()?)),
        b'S' => {
            push(&mut text, Quoted(rest.c_string()?));
            push(&mut text, Quoted(rest.c_string()?));
        }
        b'R' => {
            push(&mut text, rest.u32()?);
            push(&mut text, Quoted(rest.take_all()));
        }
        b'd' => push(&mut text, Quoted(rest.take_all())),
        _ => {}
    }
    rest.0.is_empty().then_some(text)
}

fn describe_columns(rest: &mut Rest<'_>, text: &mut String) -> Option<()> {
    for _ in 0..rest.u16()? {
        push(text, Quoted(rest.c_string()?));
        let (table, column) = (rest.u32()?, rest.u16()?);
        let (oid, size, modifier) = (rest.u32()?, rest.u16()?, rest.u32()?);
        let format = rest.u16()?;
        let (size, modifier) = (size.cast_signed(), modifier.cast_signed());
        write!(text, "[{table}.{column} type={oid}/{size}/{modifier} format={format}]").ok()?;
    }
    Some(())
}

fn push(text: &mut String, part: impl Display) {
    // A String takes everything.
    let _written = write!(text, " {part}");
}

fn row_values(body: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut rest = Rest(body);
    let values = (0..rest.u16()?).map(|_| rest.value()).collect::<Option<Vec<_>>>()?;
    rest.0.is_empty().then_some(values)
}

fn error_fields(body: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut rest = Rest(body);
    let mut fields = Vec::new();
    loop {
        match rest.u8()? {
            0 => return rest.0.is_empty().then_some(fields),
            code => fields.push((code, rest.c_string()?)),
        }
    }
}

/// The part of a body that is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn take_all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn c_string(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(length)?;
        self.take(1)?;
        Some(text)
    }

    /// A length, -1 for NULL, and so many bytes.
    fn value(&mut self) -> Option<Option<&'a [u8]>> {
        match self.u32()?.cast_signed() {
            -1 => Some(None),
            length => Some(Some(self.take(usize::try_from(length).ok()?)?)),
        }
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }
}

/// Bytes as a readable string between quotes; nothing is lost.
struct Quoted<'a>(&'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

struct Optional<'a>(Option<&'a [u8]>);

impl Display for Optional<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => Quoted(value).fmt(f),
            None => f.write_str("NULL"),
        }
    }
}

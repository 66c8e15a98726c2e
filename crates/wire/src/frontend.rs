//! Messages that the frontend (the client) sends.

use crate::fields::Fields;
use crate::frame::{message, put_str};
use crate::{Header, Malformed};

/// Body limits of PostgreSQL (`PQ_SMALL_MESSAGE_LIMIT`, `PQ_LARGE_MESSAGE_LIMIT`, libpq.h; and
/// `PG_MAX_AUTH_TOKEN_LENGTH`, auth.c). They count the length field too.
const SMALL_LIMIT: usize = 10_000;
const LARGE_LIMIT: usize = 0x3fff_fffe;
const TOKEN_LIMIT: usize = 65_535;

/// The type of a frontend message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `B`
    Bind,
    /// `C`
    Close,
    /// `d`
    CopyData,
    /// `c`
    CopyDone,
    /// `f`
    CopyFail,
    /// `D`
    Describe,
    /// `E`
    Execute,
    /// `H`
    Flush,
    /// `F`
    FunctionCall,
    /// `P`
    Parse,
    /// `p`: PasswordMessage, SASLInitialResponse, SASLResponse or GSSResponse.
    Password,
    /// `Q`
    Query,
    /// `S`
    Sync,
    /// `X`
    Terminate,
}

impl Tag {
    /// The type of the message with this header, once its length is within the type's limit.
    #[inline]
    pub fn of(header: Header) -> Result<Self, Malformed> {
        let (tag, limit) = match header.tag {
            b'B' => (Self::Bind, LARGE_LIMIT),
            b'C' => (Self::Close, SMALL_LIMIT),
            b'D' => (Self::Describe, SMALL_LIMIT),
            b'E' => (Self::Execute, SMALL_LIMIT),
            b'F' => (Self::FunctionCall, LARGE_LIMIT),
            b'H' => (Self::Flush, SMALL_LIMIT),
            b'P' => (Self::Parse, LARGE_LIMIT),
            b'Q' => (Self::Query, LARGE_LIMIT),
            b'S' => (Self::Sync, SMALL_LIMIT),
            b'X' => (Self::Terminate, SMALL_LIMIT),
            b'c' => (Self::CopyDone, SMALL_LIMIT),
            b'd' => (Self::CopyData, LARGE_LIMIT),
            b'f' => (Self::CopyFail, SMALL_LIMIT),
            b'p' => (Self::Password, TOKEN_LIMIT),
            unknown => return Err(Malformed::UnknownTag(unknown)),
        };
        if header.body_len + 4 > limit { Err(header.bad_length()) } else { Ok(tag) }
    }
}

/// The start of a Parse: its name and its text. Parameter types follow and are left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub name: &'a [u8],
    /// The text from its first byte on. It ends at its NUL, or where the bytes at hand end.
    pub text: &'a [u8],
}

impl<'a> Parse<'a> {
    /// Reads the start of a body of which only a part may have arrived.
    pub fn start(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let name = fields.string()?;
        let rest = fields.rest();
        Ok(Self { name, text: until_nul(rest) })
    }
}

/// The start of a Bind: the two names. Formats and parameters follow and are left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal that is made; empty for the unnamed one.
    pub portal: &'a [u8],
    /// The statement that it is made from.
    pub statement: &'a [u8],
}

impl<'a> Bind<'a> {
    /// Reads the start of a body of which only a part may have arrived.
    pub fn start(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        Ok(Self { portal: fields.string()?, statement: fields.string()? })
    }
}

/// What a Describe or a Close names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// `P` and a portal's name.
    Portal(&'a [u8]),
    /// `S` and a prepared statement's name.
    Statement(&'a [u8]),
}

impl<'a> Target<'a> {
    /// Reads the body of a Describe or a Close.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let kind = fields.byte()?;
        let name = fields.string()?;
        fields.end()?;
        match kind {
            b'P' => Ok(Self::Portal(name)),
            b'S' => Ok(Self::Statement(name)),
            _ => Err(Malformed::InvalidField),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        let (kind, name) = match self {
            Self::Portal(name) => (b'P', name),
            Self::Statement(name) => (b'S', name),
        };
        out.push(kind);
        put_str(out, name);
    }
}

/// A SASLInitialResponse: the first message of the client's mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslInitialResponse<'a> {
    /// The mechanism that the client chose.
    pub mechanism: &'a [u8],
    /// The mechanism's first message, if one was sent.
    pub data: Option<&'a [u8]>,
}

impl<'a> SaslInitialResponse<'a> {
    /// Reads the body of a `p` message that answers AuthenticationSASL.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let mechanism = fields.string()?;
        let length = fields.int32()?;
        let data = fields.rest();
        match usize::try_from(length) {
            Ok(length) if length == data.len() => Ok(Self { mechanism, data: Some(data) }),
            Err(_) if length == -1 && data.is_empty() => Ok(Self { mechanism, data: None }),
            _ => Err(Malformed::InvalidField),
        }
    }

    /// Appends the message.
    pub fn write(out: &mut Vec<u8>, mechanism: &[u8], data: &[u8]) {
        message(out, b'p', |out| {
            put_str(out, mechanism);
            out.extend_from_slice(&(data.len() as i32).to_be_bytes());
            out.extend_from_slice(data);
        });
    }
}

/// The password in a PasswordMessage: everything up to the NUL that ends the body.
pub fn password(body: &[u8]) -> Result<&[u8], Malformed> {
    let mut fields = Fields::new(body);
    let password = fields.string()?;
    fields.end()?;
    Ok(password)
}

/// Appends a PasswordMessage.
pub fn write_password(out: &mut Vec<u8>, password: &[u8]) {
    message(out, b'p', |out| put_str(out, password));
}

/// Appends the start of a message that goes on as another does, but for a name in it: `before` is
/// what stands in front of the name in its body, `name` what stands there now, and `old_len` how
/// long the one in `header`'s message is.
pub fn write_renamed(
    out: &mut Vec<u8>,
    header: Header,
    before: &[u8],
    name: &[u8],
    old_len: usize,
) {
    let length = header.body_len + 4 + name.len() - old_len;
    out.push(header.tag);
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(before);
    out.extend_from_slice(name);
}

/// Appends a SASLResponse.
pub fn write_sasl_response(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'p', |out| out.extend_from_slice(data));
}

/// Appends a Query.
pub fn write_query(out: &mut Vec<u8>, text: &[u8]) {
    message(out, b'Q', |out| put_str(out, text));
}

/// Appends a Parse; `types` are the parameters' type OIDs, 0 for "the server decides".
pub fn write_parse(out: &mut Vec<u8>, name: &[u8], text: &[u8], types: &[u32]) {
    message(out, b'P', |out| {
        put_str(out, name);
        put_str(out, text);
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// Appends a Parse of which all is there that stands behind the name: the text, a NUL, and the
/// types.
pub fn write_parse_of(out: &mut Vec<u8>, name: &[u8], definition: &[u8]) {
    message(out, b'P', |out| {
        put_str(out, name);
        out.extend_from_slice(definition);
    });
}

/// Appends a Bind with every parameter and every result in text format; `None` is NULL.
pub fn write_bind(out: &mut Vec<u8>, portal: &[u8], statement: &[u8], values: &[Option<&[u8]>]) {
    message(out, b'B', |out| {
        put_str(out, portal);
        put_str(out, statement);
        out.extend_from_slice(&0u16.to_be_bytes());
        out.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            match value {
                None => out.extend_from_slice(&(-1i32).to_be_bytes()),
                Some(value) => {
                    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
        out.extend_from_slice(&0u16.to_be_bytes());
    });
}

/// Appends a Describe.
pub fn write_describe(out: &mut Vec<u8>, target: Target<'_>) {
    message(out, b'D', |out| target.write(out));
}

/// Appends a Close.
pub fn write_close(out: &mut Vec<u8>, target: Target<'_>) {
    message(out, b'C', |out| target.write(out));
}

/// Appends an Execute; a limit of 0 rows means all of them.
pub fn write_execute(out: &mut Vec<u8>, portal: &[u8], row_limit: u32) {
    message(out, b'E', |out| {
        put_str(out, portal);
        out.extend_from_slice(&row_limit.to_be_bytes());
    });
}

/// Appends a CopyData.
pub fn write_copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(data));
}

/// Appends a CopyFail with the reason that the server will report.
pub fn write_copy_fail(out: &mut Vec<u8>, reason: &[u8]) {
    message(out, b'f', |out| put_str(out, reason));
}

/// A CopyDone message.
pub const COPY_DONE: [u8; 5] = *b"c\0\0\0\x04";
/// A Flush message.
pub const FLUSH: [u8; 5] = *b"H\0\0\0\x04";
/// A Sync message.
pub const SYNC: [u8; 5] = *b"S\0\0\0\x04";
/// A Terminate message.
pub const TERMINATE: [u8; 5] = *b"X\0\0\0\x04";

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

#[cfg(test)]
mod tests;

//! The messages of a client as bytes, built by hand from "Message Formats" of PostgreSQL's manual.
//!
//! pgweir's own builders are left out on purpose: with the same code on both sides of a
//! connection, a mistake in it would cancel itself out. Nothing is checked either, since tests
//! must be able to send what is wrong. Frames are joined with `[a, b].concat()`.

/// Protocol 3.0 as a startup message names it.
pub const PROTOCOL_3_0: u32 = 3 << 16;

/// Protocol 3.2, of PostgreSQL 18.
pub const PROTOCOL_3_2: u32 = 3 << 16 | 2;

const CANCEL_REQUEST: u32 = 1234 << 16 | 5678;
const SSL_REQUEST: u32 = 1234 << 16 | 5679;
const GSSENC_REQUEST: u32 = 1234 << 16 | 5680;

/// A message of any type with any body.
#[must_use]
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &sized(body)].concat()
}

/// StartupMessage with its parameters in the given order.
#[must_use]
pub fn startup(protocol: u32, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = protocol.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend(c_string(name));
        body.extend(c_string(value));
    }
    body.push(0);
    sized(&body)
}

/// SSLRequest; the answer is a single byte.
#[must_use]
pub fn ssl_request() -> Vec<u8> {
    sized(&SSL_REQUEST.to_be_bytes())
}

/// GSSENCRequest; the answer is a single byte.
#[must_use]
pub fn gssenc_request() -> Vec<u8> {
    sized(&GSSENC_REQUEST.to_be_bytes())
}

/// CancelRequest, on a connection of its own.
#[must_use]
pub fn cancel_request(pid: u32, secret: &[u8]) -> Vec<u8> {
    sized(&[&CANCEL_REQUEST.to_be_bytes(), &pid.to_be_bytes(), secret].concat())
}

/// PasswordMessage; SASL responses have the same tag and no final NUL.
#[must_use]
pub fn password(password: &str) -> Vec<u8> {
    message(b'p', &c_string(password))
}

/// Query.
#[must_use]
pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &c_string(sql))
}

/// Parse, with the types of the first parameters (0 leaves one open).
#[must_use]
pub fn parse(statement: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = [c_string(statement), c_string(sql)].concat();
    body.extend(count(types.len()));
    types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
    message(b'P', &body)
}

/// Bind with values in text, `None` for NULL, and results in text.
#[must_use]
pub fn bind(portal: &str, statement: &str, values: &[Option<&str>]) -> Vec<u8> {
    let values: Vec<_> = values.iter().map(|value| value.map(str::as_bytes)).collect();
    bind_with_formats(portal, statement, &[], &values, &[])
}

/// Bind with format codes: 0 is text, 1 is binary; none stands for text, one for all.
#[must_use]
pub fn bind_with_formats(
    portal: &str,
    statement: &str,
    value_formats: &[i16],
    values: &[Option<&[u8]>],
    result_formats: &[i16],
) -> Vec<u8> {
    let mut body = [c_string(portal), c_string(statement)].concat();
    body.extend(formats(value_formats));
    body.extend(optional_values(values));
    body.extend(formats(result_formats));
    message(b'B', &body)
}

/// Describe of a prepared statement.
#[must_use]
pub fn describe_statement(statement: &str) -> Vec<u8> {
    message(b'D', &[b"S", &*c_string(statement)].concat())
}

/// Describe of a portal.
#[must_use]
pub fn describe_portal(portal: &str) -> Vec<u8> {
    message(b'D', &[b"P", &*c_string(portal)].concat())
}

/// Execute, with 0 for no limit of rows.
#[must_use]
pub fn execute(portal: &str, rows_max: u32) -> Vec<u8> {
    message(b'E', &[c_string(portal), rows_max.to_be_bytes().to_vec()].concat())
}

/// Close of a prepared statement.
#[must_use]
pub fn close_statement(statement: &str) -> Vec<u8> {
    message(b'C', &[b"S", &*c_string(statement)].concat())
}

/// Close of a portal.
#[must_use]
pub fn close_portal(portal: &str) -> Vec<u8> {
    message(b'C', &[b"P", &*c_string(portal)].concat())
}

/// Flush.
#[must_use]
pub fn flush() -> Vec<u8> {
    message(b'H', &[])
}

/// Sync.
#[must_use]
pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// Terminate.
#[must_use]
pub fn terminate() -> Vec<u8> {
    message(b'X', &[])
}

/// CopyData.
#[must_use]
pub fn copy_data(data: &[u8]) -> Vec<u8> {
    message(b'd', data)
}

/// CopyDone.
#[must_use]
pub fn copy_done() -> Vec<u8> {
    message(b'c', &[])
}

/// CopyFail.
#[must_use]
pub fn copy_fail(reason: &str) -> Vec<u8> {
    message(b'f', &c_string(reason))
}

/// FunctionCall with arguments and result in one format: 0 is text, 1 is binary.
#[must_use]
pub fn function_call(function: u32, format: i16, arguments: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = function.to_be_bytes().to_vec();
    body.extend(formats(&[format]));
    body.extend(optional_values(arguments));
    body.extend(format.to_be_bytes());
    message(b'F', &body)
}

/// An unnamed statement from its Parse to its Sync.
#[must_use]
pub fn extended(sql: &str, values: &[Option<&str>]) -> Vec<u8> {
    [parse("", sql, &[]), bind("", "", values), describe_portal(""), execute("", 0), sync()]
        .concat()
}

/// A length, which counts itself, and the body.
fn sized(body: &[u8]) -> Vec<u8> {
    // A test that sends over 4 GB would have other worries.
    let length = body.len() as u32 + 4;
    [&length.to_be_bytes(), body].concat()
}

fn c_string(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

fn formats(codes: &[i16]) -> Vec<u8> {
    let mut bytes = count(codes.len()).to_vec();
    codes.iter().for_each(|code| bytes.extend(code.to_be_bytes()));
    bytes
}

fn optional_values(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut bytes = count(values.len()).to_vec();
    for value in values {
        match value {
            Some(value) => {
                bytes.extend((value.len() as u32).to_be_bytes());
                bytes.extend_from_slice(value);
            }
            None => bytes.extend((-1_i32).to_be_bytes()),
        }
    }
    bytes
}

/// 65,535 is the most that one message can have.
fn count(length: usize) -> [u8; 2] {
    (length as u16).to_be_bytes()
}

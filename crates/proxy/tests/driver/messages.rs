//! Messages, short to write and short to read.

use pgweir_wire::backend::{self, Report};
use pgweir_wire::frontend::{self, Target};
use pgweir_wire::{CancelKey, Header, ProtocolVersion, SqlState, Startup, TransactionStatus};

const COLUMN: backend::Column<'static> =
    backend::Column { name: "column", type_oid: 25, type_len: -1 };

/// Any message.
pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag][..], &length, body].concat()
}

pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    startup_of(ProtocolVersion::V3_0, parameters)
}

pub(crate) fn startup_of(version: ProtocolVersion, parameters: &[(&str, &str)]) -> Vec<u8> {
    let parameters = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    built(|out| Startup::write(out, version, parameters))
}

/// SSLRequest.
pub(crate) fn ssl_request() -> Vec<u8> {
    [8u32, 80_877_103].map(u32::to_be_bytes).concat()
}

pub(crate) fn cancel_request(key: &CancelKey) -> Vec<u8> {
    built(|out| key.write_request(out))
}

pub(crate) fn password(text: &str) -> Vec<u8> {
    built(|out| frontend::write_password(out, text.as_bytes()))
}

pub(crate) fn query(text: &str) -> Vec<u8> {
    built(|out| frontend::write_query(out, text.as_bytes()))
}

/// Parse of the unnamed statement.
pub(crate) fn parse(text: &str) -> Vec<u8> {
    parse_as("", text)
}

pub(crate) fn parse_as(name: &str, text: &str) -> Vec<u8> {
    built(|out| frontend::write_parse(out, name.as_bytes(), text.as_bytes(), &[]))
}

/// Bind of the unnamed portal to the unnamed statement.
pub(crate) fn bind() -> Vec<u8> {
    bind_to("")
}

pub(crate) fn bind_to(statement: &str) -> Vec<u8> {
    built(|out| frontend::write_bind(out, b"", statement.as_bytes(), &[]))
}

/// Bind of the unnamed statement with one parameter.
pub(crate) fn bind_value(value: &[u8]) -> Vec<u8> {
    built(|out| frontend::write_bind(out, b"", b"", &[Some(value)]))
}

pub(crate) fn describe_statement(name: &str) -> Vec<u8> {
    built(|out| frontend::write_describe(out, Target::Statement(name.as_bytes())))
}

pub(crate) fn close_portal() -> Vec<u8> {
    built(|out| frontend::write_close(out, Target::Portal(b"")))
}

pub(crate) fn close_statement(name: &str) -> Vec<u8> {
    built(|out| frontend::write_close(out, Target::Statement(name.as_bytes())))
}

pub(crate) fn execute() -> Vec<u8> {
    built(|out| frontend::write_execute(out, b"", 0))
}

pub(crate) fn sync() -> Vec<u8> {
    frontend::SYNC.to_vec()
}

pub(crate) fn flush() -> Vec<u8> {
    frontend::FLUSH.to_vec()
}

pub(crate) fn terminate() -> Vec<u8> {
    frontend::TERMINATE.to_vec()
}

/// CopyData, the same from both sides.
pub(crate) fn copy_data(data: &[u8]) -> Vec<u8> {
    built(|out| frontend::write_copy_data(out, data))
}

/// CopyDone, the same from both sides.
pub(crate) fn copy_done() -> Vec<u8> {
    frontend::COPY_DONE.to_vec()
}

pub(crate) fn copy_fail() -> Vec<u8> {
    built(|out| frontend::write_copy_fail(out, b"no more"))
}

pub(crate) fn authentication_ok() -> Vec<u8> {
    built(backend::authentication_ok)
}

pub(crate) fn parameter_status(name: &str, value: &str) -> Vec<u8> {
    built(|out| backend::parameter_status(out, name.as_bytes(), value.as_bytes()))
}

pub(crate) fn key_data(key: &CancelKey) -> Vec<u8> {
    built(|out| backend::backend_key_data(out, key))
}

pub(crate) fn parse_complete() -> Vec<u8> {
    message(b'1', b"")
}

pub(crate) fn bind_complete() -> Vec<u8> {
    message(b'2', b"")
}

pub(crate) fn close_complete() -> Vec<u8> {
    message(b'3', b"")
}

pub(crate) fn no_data() -> Vec<u8> {
    message(b'n', b"")
}

/// ParameterDescription of a statement without parameters.
pub(crate) fn no_parameters() -> Vec<u8> {
    message(b't', b"\0\0")
}

/// RowDescription of one column.
pub(crate) fn columns() -> Vec<u8> {
    built(|out| backend::row_description(out, &[COLUMN]))
}

/// DataRow of one column.
pub(crate) fn row(value: &[u8]) -> Vec<u8> {
    built(|out| backend::data_row(out, [Some(value)]))
}

/// RowDescription, and a DataRow with so many bytes in it.
pub(crate) fn long_row(bytes: usize) -> Vec<u8> {
    [columns(), row(&vec![b'x'; bytes])].concat()
}

/// What a server has room for, as it is asked for it.
pub(crate) fn room(connections_max: u32, reserved: u32) -> Vec<u8> {
    let (max, reserved) = (connections_max.to_string(), reserved.to_string());
    built(|out| {
        backend::row_description(out, &[COLUMN; 3]);
        backend::data_row(out, [Some(max.as_bytes()), Some(reserved.as_bytes()), None]);
    })
}

/// Whether this is the one question what a server has room for.
pub(crate) fn is_room_question(bytes: &[u8]) -> bool {
    is_query(bytes) && bytes.windows(30).any(|part| part == b"superuser_reserved_connections")
}

/// Whether this is the one question what there is in a server's catalogue.
pub(crate) fn is_names_question(bytes: &[u8]) -> bool {
    is_query(bytes) && asks_for_names(&bytes[5..])
}

/// Whether this is one whole Query.
fn is_query(bytes: &[u8]) -> bool {
    Header::parse(bytes).is_ok_and(|header| {
        header.is_some_and(|header| header.tag == b'Q' && header.message_len() == bytes.len())
    })
}

/// Whether this text is our question what there is in the catalogue.
fn asks_for_names(text: &[u8]) -> bool {
    text.starts_with(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL")
}

/// Whether this text is our question what a server is set to.
fn is_settings_question(text: &[u8]) -> bool {
    text.starts_with(b"SELECT pg_catalog.encode(")
}

/// Whether this text is our question what is left of what a client has begun.
fn is_state_question(text: &[u8]) -> bool {
    text.starts_with(b"SELECT s.k FROM (")
}

/// What is left of that, a letter for each.
pub(crate) fn left(letters: &str) -> Vec<u8> {
    built(|out| {
        backend::row_description(out, &[COLUMN]);
        for letter in letters.bytes() {
            backend::data_row(out, [Some(&[letter][..])]);
        }
        out.extend([done(), ready()].concat());
    })
}

/// What a server is set to, as it is asked for it.
pub(crate) fn set_to(settings: &[(&str, &str)]) -> Vec<u8> {
    let hex = |text: &str| -> String { text.bytes().map(|byte| format!("{byte:02x}")).collect() };
    built(|out| {
        backend::row_description(out, &[COLUMN; 2]);
        for (name, value) in settings {
            let cells = [hex(name), hex(value)];
            backend::data_row(out, cells.each_ref().map(|cell| Some(cell.as_bytes())));
        }
        out.extend([done(), ready()].concat());
    })
}

/// CommandComplete.
pub(crate) fn done() -> Vec<u8> {
    done_with("SELECT 1")
}

/// CommandComplete with this tag.
pub(crate) fn done_with(tag: &str) -> Vec<u8> {
    built(|out| backend::command_complete(out, tag))
}

/// ReadyForQuery outside a transaction.
pub(crate) fn ready() -> Vec<u8> {
    built(|out| backend::ready_for_query(out, TransactionStatus::Idle))
}

/// ReadyForQuery inside a transaction.
pub(crate) fn in_block() -> Vec<u8> {
    built(|out| backend::ready_for_query(out, TransactionStatus::Active))
}

/// ReadyForQuery inside a transaction that has failed.
pub(crate) fn in_failed_block() -> Vec<u8> {
    built(|out| backend::ready_for_query(out, TransactionStatus::Failed))
}

pub(crate) fn error(code: &str) -> Vec<u8> {
    let code = SqlState::parse(code.as_bytes()).expect("a SQLSTATE");
    built(|out| Report::error(code, "as the server says").write(out))
}

/// One that quotes as much of a value.
pub(crate) fn long_error(bytes: usize) -> Vec<u8> {
    let code = SqlState::parse(b"22P02").expect("a SQLSTATE");
    built(|out| Report::error(code, "x".repeat(bytes)).write(out))
}

/// PostgreSQL's own.
pub(crate) fn fatal(code: &str) -> Vec<u8> {
    let text = "SFATAL\0VFATAL\0C_\0Mas the server says\0Fpostgres.c\0L1\0RProcessInterrupts\0\0";
    message(b'E', text.replace('_', code).as_bytes())
}

/// A pooler's, that stands between.
pub(crate) fn fatal_of_another(code: &str) -> Vec<u8> {
    let code = SqlState::parse(code.as_bytes()).expect("a SQLSTATE");
    built(|out| Report::fatal(code, "as the pooler says").write(out))
}

pub(crate) fn empty_query() -> Vec<u8> {
    message(b'I', b"")
}

pub(crate) fn notice() -> Vec<u8> {
    message(b'N', b"SNOTICE\0VNOTICE\0C00000\0Mby the way\0\0")
}

/// What each process says when another one has crashed, and then ends.
pub(crate) fn crash_warning() -> Vec<u8> {
    message(b'N', b"SWARNING\0VWARNING\0C57P02\0Mterminating connection\0\0")
}

pub(crate) fn notification() -> Vec<u8> {
    message(b'A', b"\0\0\0\x09channel\0payload\0")
}

/// NotificationResponse of this.
pub(crate) fn notified(channel: &str, payload: &str) -> Vec<u8> {
    message(b'A', format!("\0\0\0\x09{channel}\0{payload}\0").as_bytes())
}

/// CopyInResponse in text format.
pub(crate) fn copy_in() -> Vec<u8> {
    message(b'G', &[0, 0, 0])
}

/// CopyOutResponse in text format.
pub(crate) fn copy_out() -> Vec<u8> {
    message(b'H', &[0, 0, 0])
}

/// CopyBothResponse in text format.
pub(crate) fn copy_both() -> Vec<u8> {
    message(b'W', &[0, 0, 0])
}

/// The reply to a simple query of one row.
pub(crate) fn one_row(value: &str) -> Vec<u8> {
    [columns(), row(value.as_bytes()), done(), ready()].concat()
}

/// What a frontend has sent, a word for each message: its letter, and what tells it from others.
pub(crate) fn from_frontend(bytes: &[u8]) -> String {
    words(bytes, |tag, body| match tag {
        b'Q' if is_settings_question(body) => Some("set to?".to_owned()),
        b'Q' if is_state_question(body) => Some("left?".to_owned()),
        b'Q' if asks_for_names(body) => Some("names?".to_owned()),
        b'Q' => Some(text(body)),
        b'P' => {
            let parse = frontend::Parse::start(body).ok()?;
            let name = text(parse.name);
            let name = if name.is_empty() { name } else { format!("{name}=") };
            Some(format!("{name}{}", text(parse.text)))
        }
        b'B' => named(frontend::Bind::start(body).ok()?.statement),
        b'C' | b'D' => match Target::parse(body).ok()? {
            Target::Statement(name) => named(name),
            Target::Portal(_) => None,
        },
        _ => None,
    })
}

/// What a backend has sent, a word for each message: its letter, and what tells it from others.
pub(crate) fn from_backend(bytes: &[u8]) -> String {
    words(bytes, |tag, body| match tag {
        b'E' => {
            let error = backend::ErrorFields::parse(body).ok()?;
            let code = error.code?;
            Some(if error.is_fatal() { format!("FATAL {code}") } else { code.to_string() })
        }
        b'S' => {
            let (name, value) = backend::parse_parameter_status(body).ok()?;
            Some(format!("{}={}", text(name), text(value)))
        }
        b'D' => Some(text(body.get(6..)?)),
        b'Z' if body != b"I" => Some(text(body)),
        _ => None,
    })
}

/// The name of a statement, if it has one.
fn named(name: &[u8]) -> Option<String> {
    (!name.is_empty()).then(|| text(name))
}

fn words(mut bytes: &[u8], detail: impl Fn(u8, &[u8]) -> Option<String>) -> String {
    let mut words = Vec::new();
    while !bytes.is_empty() {
        let whole = Header::parse(bytes).ok().flatten();
        let Some(header) = whole.filter(|header| header.message_len() <= bytes.len()) else {
            words.push("…".to_owned());
            break;
        };
        let (message, rest) = bytes.split_at(header.message_len());
        let tag = char::from(header.tag);
        words.push(match detail(header.tag, &message[5..]) {
            Some(detail) => format!("{tag}({detail})"),
            None => tag.to_string(),
        });
        bytes = rest;
    }
    words.join(" ")
}

/// A field in words; a long one is cut.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

pub(crate) fn built(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    build(&mut out);
    out
}

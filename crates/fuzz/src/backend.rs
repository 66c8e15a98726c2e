//! Messages of a server: headers and every view of a body, and rows that answer our own questions.

use pgweir_engine::readers;
use pgweir_wire::backend::{
    self, Authentication, ErrorFields, Report, Tag, parse_backend_key_data, parse_notification,
    parse_parameter_status, parse_ready_for_query, parse_row_description, sasl_mechanisms,
};
use pgweir_wire::{CancelKey, HEADER_LEN, Severity};

use crate::frontend::{lies_within, message};

/// Messages, one behind the other; the whole input is given to each view too.
pub(crate) fn run(data: &[u8]) {
    views(data);
    let mut rest = data;
    while let Some((header, body)) = message(rest) {
        let known = b"123ACDEGHIKNRSTVWZcdnstv".contains(&header.tag);
        assert_eq!(Tag::of(header).is_ok(), known, "tag {}", header.tag.escape_ascii());
        views(body);
        rest = &rest[HEADER_LEN + body.len()..];
    }
}

fn views(body: &[u8]) {
    if let Ok(asked) = Authentication::parse(body) {
        authentication(asked, body);
    }
    for name in sasl_mechanisms(body) {
        lies_within(body, name);
        assert!(!name.is_empty() && !name.contains(&0));
    }
    if let Ok((name, value)) = parse_parameter_status(body) {
        is_written_as(body, |out| backend::parameter_status(out, name, value));
    }
    if let Ok(key) = parse_backend_key_data(body) {
        let lengths = CancelKey::MIN_SECRET_LEN..=CancelKey::MAX_SECRET_LEN;
        assert!(lengths.contains(&key.secret.len()));
        is_written_as(body, |out| backend::backend_key_data(out, &key));
    }
    if let Ok(status) = parse_ready_for_query(body) {
        is_written_as(body, |out| backend::ready_for_query(out, status));
    }
    if let Ok(columns) = parse_row_description(body) {
        // Each is a name and 19 bytes behind that.
        let bytes = columns.iter().map(|column| {
            lies_within(body, column.name);
            column.name.len() + 19
        });
        assert_eq!(bytes.sum::<usize>() + 2, body.len());
    }
    if let Ok((channel, payload)) = parse_notification(body) {
        lies_within(body, channel);
        lies_within(body, payload);
        assert_eq!(4 + channel.len() + 1 + payload.len() + 1, body.len());
    }
    row(body);
    let start = ErrorFields::start(body);
    lies_within(body, start.severity);
    lies_within(body, start.message);
    if let Ok(fields) = ErrorFields::parse(body) {
        assert_eq!(start, fields);
        error(&fields, body);
    }
}

/// A row that answers a question of ours says what it says, and nothing that is not there.
fn row(body: &[u8]) {
    if let Some((connections, reserved)) = readers::room(body) {
        let cells = [connections, reserved, 0].map(|number| number.to_string());
        let again = data_row(cells.iter().map(String::as_bytes));
        assert_eq!(readers::room(&again), Some((connections, reserved)));
    }
    if let Some((name, value)) = readers::setting(body) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let cells = [&name, &value].map(|bytes| hex(bytes));
        let again = data_row(cells.iter().map(String::as_bytes));
        assert!(again.eq_ignore_ascii_case(&body[..again.len()]));
        assert_eq!(readers::setting(&again), Some((name, value)));
    }
    if let Some(behind) = readers::state(body) {
        lies_within(body, behind);
    }
}

/// The body of a DataRow.
fn data_row<'c>(cells: impl ExactSizeIterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut row = (cells.len() as u16).to_be_bytes().to_vec();
    for cell in cells {
        row.extend_from_slice(&(cell.len() as u32).to_be_bytes());
        row.extend_from_slice(cell);
    }
    row
}

fn authentication(asked: Authentication<'_>, body: &[u8]) {
    match asked {
        Authentication::Ok => is_written_as(body, backend::authentication_ok),
        Authentication::CleartextPassword => {
            is_written_as(body, backend::authentication_cleartext);
        }
        Authentication::Md5Password(salt) => {
            is_written_as(body, |out| backend::authentication_md5(out, salt));
        }
        Authentication::Sasl(list) => lies_within(body, list),
        Authentication::SaslContinue(data) => {
            is_written_as(body, |out| backend::authentication_sasl_continue(out, data));
        }
        Authentication::SaslFinal(data) => {
            is_written_as(body, |out| backend::authentication_sasl_final(out, data));
        }
        Authentication::Unsupported(code) => {
            assert!(![0, 3, 5, 10, 11, 12].contains(&code), "{code} is spoken here");
        }
    }
}

/// An error that we pass on in our own words keeps code and message.
fn error(fields: &ErrorFields<'_>, body: &[u8]) {
    lies_within(body, fields.severity);
    lies_within(body, fields.message);
    assert!(!fields.is_fatal() || fields.severity != b"ERROR");
    let Some(code) = fields.code else { return };
    let text = String::from_utf8_lossy(fields.message);
    for report in [Report::error(code, text.clone()), Report::fatal(code, text.clone())] {
        let mut written = Vec::new();
        report.write(&mut written);
        let read = ErrorFields::parse(&written[HEADER_LEN..]).expect("our own is well-formed");
        assert_eq!((read.code, read.message), (Some(code), text.as_bytes()));
        assert_eq!(read.is_fatal(), report.severity == Severity::Fatal);
    }
}

fn is_written_as(body: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    let mut written = Vec::new();
    write(&mut written);
    assert_eq!(&written[HEADER_LEN..], body);
}

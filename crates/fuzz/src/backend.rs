//! Messages of a server: headers and every view of a body.

use pgweir_wire::backend::{
    self, Authentication, ErrorFields, Report, Tag, parse_backend_key_data, parse_parameter_status,
    parse_ready_for_query, parse_row_description, sasl_mechanisms,
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
        assert!((4..=CancelKey::MAX_SECRET_LEN).contains(&key.secret.len()));
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
    let start = ErrorFields::start(body);
    lies_within(body, start.severity);
    lies_within(body, start.message);
    if let Ok(fields) = ErrorFields::parse(body) {
        assert_eq!(start, fields);
        error(&fields, body);
    }
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

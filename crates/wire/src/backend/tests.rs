//! Each message as the protocol's documentation has it, byte for byte.

use super::*;
use crate::tests::{Write, assert_written};
use crate::{ProtocolVersion, SqlState};

#[test]
fn every_message_is_the_documented_bytes() {
    let messages: [(Write, &[u8]); 17] = [
        (authentication_ok, b"R\0\0\0\x08\0\0\0\0"),
        (authentication_cleartext, b"R\0\0\0\x08\0\0\0\x03"),
        (|out| authentication_md5(out, *b"salt"), b"R\0\0\0\x0c\0\0\0\x05salt"),
        (|out| authentication_sasl(out, &[b"A", b"B-2"]), b"R\0\0\0\x0f\0\0\0\x0aA\0B-2\0\0"),
        (|out| authentication_sasl_continue(out, b"r=x"), b"R\0\0\0\x0b\0\0\0\x0br=x"),
        (|out| authentication_sasl_final(out, b"v=y"), b"R\0\0\0\x0b\0\0\0\x0cv=y"),
        (
            |out| {
                let secret = Box::from(*b"\x01\x02\x03\x04");
                backend_key_data(out, &CancelKey { process_id: 258, secret });
            },
            b"K\0\0\0\x0c\0\0\x01\x02\x01\x02\x03\x04",
        ),
        (
            |out| negotiate_protocol_version(out, ProtocolVersion::V3_2, &[Box::from(*b"_pq_.x")]),
            b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0",
        ),
        (|out| parameter_status(out, b"TimeZone", b"UTC"), b"S\0\0\0\x11TimeZone\0UTC\0"),
        (|out| ready_for_query(out, TransactionStatus::Failed), b"Z\0\0\0\x05E"),
        (
            |out| {
                let column = Column { name: "n", type_oid: 25, type_len: -1 };
                row_description(out, &[column]);
            },
            b"T\0\0\0\x1a\0\x01n\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0",
        ),
        (
            |out| data_row(out, [Some(&b"57"[..]), None]),
            b"D\0\0\0\x10\0\x02\0\0\0\x0257\xff\xff\xff\xff",
        ),
        (|out| command_complete(out, "SELECT 1"), b"C\0\0\0\x0dSELECT 1\0"),
        (empty_query_response, b"I\0\0\0\x04"),
        (
            |out| {
                Report::error(SqlState::QUERY_CANCELED, "m").detail("d").hint("h").write(out);
            },
            b"E\0\0\0\x23SERROR\0VERROR\0C57014\0Mm\0Dd\0Hh\0\0",
        ),
        (
            |out| {
                let report = Report::error(SqlState::QUERY_CANCELED, "m");
                Report { routine: Some("r"), ..report }.write(out);
            },
            b"E\0\0\0\x20SERROR\0VERROR\0C57014\0Mm\0Rr\0\0",
        ),
        (
            |out| Report::error(SqlState::WARNING, "m").write_notice(out),
            b"N\0\0\0\x1fSNOTICE\0VNOTICE\0C01000\0Mm\0\0",
        ),
    ];
    assert_written(&messages);
}

#[test]
fn a_notification_has_a_channel_and_a_payload() {
    assert_eq!(parse_notification(b"\0\0\x01\x02jobs\x007\0"), Ok((&b"jobs"[..], &b"7"[..])));
    assert_eq!(parse_notification(b"\0\0\x01\x02jobs\0\0"), Ok((&b"jobs"[..], &b""[..])));
    assert_eq!(parse_notification(b"\0\0\x01\x02jobs\0"), Err(Malformed::Truncated));
    assert_eq!(parse_notification(b"\0\0\x01"), Err(Malformed::Truncated));
    assert_eq!(parse_notification(b"\0\0\x01\x02a\0b\0c"), Err(Malformed::TrailingBytes));
}

#[test]
fn columns_have_a_name_a_type_and_its_modifier() {
    let body = b"\0\x02id\0\0\0\0\x01\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
        name\0\0\0\0\0\0\0\0\0\x04\x13\xff\xff\0\0\0\x0e\0\x01";
    let column = |name, type_oid, type_modifier| ColumnType { name, type_oid, type_modifier };
    let columns = vec![column(&b"id"[..], 23, -1), column(&b"name"[..], 1043, 14)];
    assert_eq!(parse_row_description(body), Ok(columns));
    assert_eq!(parse_row_description(b"\0\0"), Ok(Vec::new()));
    assert_eq!(parse_row_description(&body[..body.len() - 1]), Err(Malformed::Truncated));
    assert_eq!(parse_row_description(b"\x01"), Err(Malformed::Truncated));
    assert_eq!(parse_row_description(b"\0\0\0"), Err(Malformed::TrailingBytes));
}

#[test]
fn sasl_mechanisms_end_at_the_empty_one() {
    let names: Vec<_> = sasl_mechanisms(b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0junk\0").collect();
    assert_eq!(names, [&b"SCRAM-SHA-256-PLUS"[..], b"SCRAM-SHA-256"]);
    assert_eq!(sasl_mechanisms(b"").count(), 0);
}

#[test]
fn a_ready_for_query_has_one_byte() {
    assert_eq!(parse_ready_for_query(b""), Err(Malformed::Truncated));
    assert_eq!(parse_ready_for_query(b"II"), Err(Malformed::TrailingBytes));
    assert_eq!(parse_ready_for_query(b"X"), Err(Malformed::InvalidField));
}

#[test]
fn authentication_requests_are_read() {
    for (body, request) in [
        (&b"\0\0\0\0"[..], Ok(Authentication::Ok)),
        (b"\0\0\0\x03", Ok(Authentication::CleartextPassword)),
        (b"\0\0\0\x05salt", Ok(Authentication::Md5Password(*b"salt"))),
        (b"\0\0\0\x0aM\0\0", Ok(Authentication::Sasl(b"M\0\0"))),
        (b"\0\0\0\x0br=x", Ok(Authentication::SaslContinue(b"r=x"))),
        (b"\0\0\0\x0cv=y", Ok(Authentication::SaslFinal(b"v=y"))),
        (b"\0\0\0\x07", Ok(Authentication::Unsupported(7))),
        (b"\0\0\0\0x", Err(Malformed::TrailingBytes)),
        (b"\0\0\0\x03x", Err(Malformed::TrailingBytes)),
        (b"\0\0\0\x05sal", Err(Malformed::InvalidField)),
        (b"\0\0\0", Err(Malformed::Truncated)),
    ] {
        assert_eq!(Authentication::parse(body), request, "{body:?}");
    }
}

#[test]
fn the_english_severity_counts_wherever_it_stands() {
    let severity = |body: &'static [u8]| ErrorFields::parse(body).unwrap().severity;
    assert_eq!(severity(b"SFATAL\0VFATAL\0\0"), b"FATAL");
    assert_eq!(severity(b"SFEHLER\0VERROR\0\0"), b"ERROR");
    assert_eq!(severity(b"VERROR\0SFEHLER\0\0"), b"ERROR");
    assert_eq!(severity(b"SFATAL\0\0"), b"FATAL", "before PostgreSQL 9.6");
}

#[test]
fn only_fatal_and_panic_end_the_connection() {
    let is_fatal = |severity: &[u8]| {
        let body = [b"V", severity, b"\0\0"].concat();
        ErrorFields::parse(&body).unwrap().is_fatal()
    };
    assert!(is_fatal(b"FATAL") && is_fatal(b"PANIC"));
    for severity in [&b"ERROR"[..], b"WARNING", b"", b"fatal"] {
        assert!(!is_fatal(severity), "{severity:?}");
    }
}

#[test]
fn the_fields_that_have_come_are_read() {
    let start = |body: &'static [u8]| ErrorFields::start(body);
    let (severity, code) = (&b"FATAL"[..], Some(SqlState::ADMIN_SHUTDOWN));
    let none = ErrorFields { severity, code, message: b"", detail: None, hint: None, file: None };
    let all = ErrorFields { message: b"all", ..none };
    assert_eq!(start(b"SFATAL\0C57P01\0Mcut"), none);
    assert_eq!(start(b"SFATAL\0C57P01\0Mall\0"), all);
    let (detail, hint) = (Some(&b"why"[..]), Some(&b"what"[..]));
    assert_eq!(start(b"SFATAL\0C57P01\0Mall\0Dwhy\0Hcut"), ErrorFields { detail, ..all });
    let whole = ErrorFields::parse(b"SFATAL\0C57P01\0Mall\0Dwhy\0Hwhat\0\0").unwrap();
    assert_eq!(whole, ErrorFields { detail, hint, ..all });
    let file = Some(&b"postgres.c"[..]);
    let told = start(b"SFATAL\0C57P01\0Mall\0Fpostgres.c\0L1");
    assert_eq!(told, ErrorFields { file, ..all });
    assert!(told.is_of_postgres() && !all.is_of_postgres());
}

#[test]
fn what_describes_parameters_is_passed_on() {
    let mut out = Vec::new();
    parameter_description(&mut out, b"\0\x01\0\0\0\x17");
    assert_eq!(out, b"t\0\0\0\x0a\0\x01\0\0\0\x17");
}

#[test]
fn a_cause_has_its_detail_behind_it() {
    let report = Report::error(SqlState::QUERY_CANCELED, "cancelled");
    assert_eq!(report.cause(), "cancelled");
    assert_eq!(report.detail("by its client").cause(), "cancelled: by its client");
}

use crate::backend::{self, ErrorFields, Report};
use crate::frontend::{self, Bind, Parse, SaslInitialResponse, Target};
use crate::{
    CancelKey, HEADER_LEN, Header, Initial, Malformed, ProtocolVersion, SqlState, Startup,
    TransactionStatus,
};

/// Appends a message.
pub(crate) type Write = fn(&mut Vec<u8>);

/// Each message is written as these bytes, behind what is there.
pub(crate) fn assert_written(messages: &[(Write, &[u8])]) {
    for (write, bytes) in messages {
        let mut out = b"before".to_vec();
        write(&mut out);
        let written = out.escape_ascii().to_string();
        assert_eq!(written, format!("before{}", bytes.escape_ascii()));
    }
}

/// One message that was just built: its tag and its body, after a check of its length.
fn only(bytes: &[u8]) -> (u8, &[u8]) {
    let header = Header::parse(bytes).unwrap().unwrap();
    assert_eq!(header.message_len(), bytes.len());
    (header.tag, &bytes[HEADER_LEN..])
}

#[test]
fn header_waits_for_five_bytes_and_refuses_short_lengths() {
    for n in 0..5 {
        assert_eq!(Header::parse(&b"Q\0\0\0\x04"[..n]), Ok(None));
    }
    assert_eq!(Header::parse(b"Q\0\0\0\x04"), Ok(Some(Header { tag: b'Q', body_len: 0 })));
    for length in [3, 0, -1, i32::MIN] {
        let mut bytes = vec![b'Q'];
        bytes.extend(length.to_be_bytes());
        assert_eq!(Header::parse(&bytes), Err(Malformed::Length { tag: b'Q', length }));
    }
}

#[test]
fn frontend_limits_are_those_of_postgresql() {
    let of = |tag, body_len| frontend::Tag::of(Header { tag, body_len });
    assert_eq!(of(b'S', 9_996), Ok(frontend::Tag::Sync));
    assert!(of(b'S', 9_997).is_err());
    assert_eq!(of(b'Q', 0x3fff_fffa), Ok(frontend::Tag::Query));
    assert!(of(b'Q', 0x3fff_fffb).is_err());
    assert_eq!(of(b'z', 0), Err(Malformed::UnknownTag(b'z')));
}

#[test]
fn every_tag_is_the_documented_byte() {
    for tag in b"BCDEFHPQSXcdfp" {
        assert!(frontend::Tag::of(Header { tag: *tag, body_len: 0 }).is_ok(), "{tag}");
    }
    for tag in b"123ACDEGHIKNRSTVWZcdnstv" {
        assert!(backend::Tag::of(Header { tag: *tag, body_len: 0 }).is_ok(), "{tag}");
    }
    let legal = |of: &dyn Fn(u8) -> bool| (0..=255).filter(|&t| of(t)).count();
    assert_eq!(legal(&|tag| frontend::Tag::of(Header { tag, body_len: 0 }).is_ok()), 14);
    assert_eq!(legal(&|tag| backend::Tag::of(Header { tag, body_len: 0 }).is_ok()), 24);
}

#[test]
fn startup_round_trip_and_every_truncation() {
    let mut bytes = Vec::new();
    let pairs: [(&[u8], &[u8]); 2] = [(b"user", b"alice"), (b"database", b"")];
    Startup::write(&mut bytes, ProtocolVersion::V3_2, pairs);
    for n in 0..bytes.len() {
        assert_eq!(Initial::parse(&bytes[..n]), Ok(None), "{n} bytes");
    }
    let Ok(Some((Initial::Startup(startup), length))) = Initial::parse(&bytes) else {
        panic!("not a startup packet")
    };
    assert_eq!(length, bytes.len());
    assert_eq!(startup.version, ProtocolVersion::V3_2);
    assert_eq!(startup.parameters().collect::<Vec<_>>(), pairs);
}

#[test]
fn startup_refuses_what_postgresql_refuses() {
    let packet = |length: i32, rest: &[u8]| {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend(rest);
        bytes
    };
    for length in [-1, 0, 7, 10_005, i32::MAX] {
        assert_eq!(Initial::parse(&packet(length, b"")), Err(Malformed::Length { tag: 0, length }));
    }
    let v3 = ProtocolVersion::V3_0.0.to_be_bytes();
    for (rest, error) in [
        (&b""[..], Malformed::Truncated),
        (b"user", Malformed::Truncated),
        (b"user\0", Malformed::Truncated),
        (b"user\0a\0", Malformed::Truncated),
        (b"user\0a\0\0x", Malformed::TrailingBytes),
    ] {
        let body = [&v3[..], rest].concat();
        let bytes = packet(4 + body.len() as i32, &body);
        assert_eq!(Initial::parse(&bytes), Err(error), "{rest:?}");
    }
    assert_eq!(
        Initial::parse(&packet(8, &[0, 2, 0, 0])),
        Err(Malformed::UnsupportedVersion(2 << 16))
    );
}

#[test]
fn cancel_requests_carry_keys_of_1_to_256_bytes() {
    for len in [0, 1, 4, 32, 256, 257, 9_000] {
        let key = CancelKey { process_id: -7, secret: vec![9; len].into() };
        let mut bytes = Vec::new();
        key.write_request(&mut bytes);
        match Initial::parse(&bytes) {
            Ok(Some((Initial::CancelRequest(parsed), _))) => {
                assert!((1..=256).contains(&len));
                assert_eq!(parsed, key);
            }
            Err(Malformed::CancelRequest) => assert!(!(1..=256).contains(&len)),
            other => panic!("{len}: {other:?}"),
        }
    }
    // Not even a process id is in it.
    let bare = [&11u32.to_be_bytes()[..], &80_877_102u32.to_be_bytes(), b"pid"].concat();
    assert_eq!(Initial::parse(&bare), Err(Malformed::CancelRequest));
}

#[test]
fn the_secret_of_a_cancel_key_is_not_shown() {
    let key = CancelKey { process_id: 1, secret: Box::from(*b"hunter22") };
    assert_eq!(format!("{key:?}"), "CancelKey { process_id: 1, .. }");
}

#[test]
fn requests_for_encryption_have_a_code_and_nothing_behind_it() {
    let packet = |code: u32, rest: &[u8]| {
        let length = 8 + rest.len() as i32;
        [&length.to_be_bytes(), &code.to_be_bytes()[..], rest].concat()
    };
    let (ssl, gss) = (packet(80_877_103, b""), packet(80_877_104, b""));
    assert_eq!(Initial::parse(&ssl), Ok(Some((Initial::SslRequest, 8))));
    assert_eq!(Initial::parse(&gss), Ok(Some((Initial::GssEncRequest, 8))));
    let more = packet(80_877_103, b"x");
    assert_eq!(Initial::parse(&more), Err(Malformed::TrailingBytes));
}

#[test]
fn a_startup_packet_has_10_004_bytes_at_most() {
    let name_and_end = b"user\0\0\0".len();
    let value = vec![b'x'; 10_004 - 8 - name_and_end];
    let mut bytes = Vec::new();
    Startup::write(&mut bytes, ProtocolVersion::V3_0, [(&b"user"[..], &value[..])]);
    assert!(matches!(Initial::parse(&bytes), Ok(Some((Initial::Startup(_), 10_004)))));
    let refusal = Err(Malformed::Length { tag: 0, length: 10_005 });
    assert_eq!(Initial::parse(&10_005i32.to_be_bytes()), refusal);
}

#[test]
fn a_transaction_block_is_open_failed_or_not() {
    let states = [TransactionStatus::Idle, TransactionStatus::Active, TransactionStatus::Failed];
    assert_eq!(states.map(TransactionStatus::in_block), [false, true, true]);
    assert_eq!(states.map(TransactionStatus::as_byte), *b"ITE");
}

#[test]
fn codes_are_five_letters_or_digits() {
    let code = SqlState::parse(b"28P01").unwrap();
    assert_eq!((code, code.class()), (SqlState::INVALID_PASSWORD, &b"28"[..]));
    assert_eq!((code.to_string().as_str(), format!("{code:?}").as_str()), ("28P01", "28P01"));
    for bad in [&b"28P0"[..], b"28P011", b"28P0\0", b"28P0 ", b""] {
        assert_eq!(SqlState::parse(bad), None);
    }
}

#[test]
fn what_is_malformed_is_said_as_postgresql_says_it() {
    for (malformed, text) in [
        (Malformed::Length { tag: 0, length: -1 }, "invalid length of startup packet: -1"),
        (
            Malformed::Length { tag: b'S', length: 10_001 },
            "invalid message length 10001 for type \"S\"",
        ),
        (Malformed::UnknownTag(122), "invalid message type 122"),
        (Malformed::Truncated, "message ends inside a field"),
        (Malformed::TrailingBytes, "message has bytes behind its last field"),
        (Malformed::InvalidField, "message has a field with an unknown value"),
        (Malformed::CancelRequest, "invalid length of cancel request packet"),
        (
            Malformed::UnsupportedVersion(0x0002_0001),
            "unsupported frontend protocol 2.1: server supports 3.0 to 3.2",
        ),
    ] {
        assert_eq!(malformed.to_string(), text);
    }
}

#[test]
fn versions_negotiate_to_one_that_exists() {
    let ask = |minor| ProtocolVersion((3u32 << 16) | minor).negotiated();
    assert_eq!(ask(0), ProtocolVersion::V3_0);
    assert_eq!(ask(1), ProtocolVersion::V3_0);
    assert_eq!(ask(2), ProtocolVersion::V3_2);
    assert_eq!(ask(9999), ProtocolVersion::V3_2);
    assert_eq!(ProtocolVersion::V3_2.0.to_be_bytes(), [0, 3, 0, 2]);
}

#[test]
fn parse_and_bind_are_read_from_their_start() {
    let mut bytes = Vec::new();
    frontend::write_parse(&mut bytes, b"s1", b"SELECT $1", &[23]);
    let (_, body) = only(&bytes);
    assert_eq!(Parse::start(body), Ok(Parse { name: b"s1", text: b"SELECT $1" }));
    assert_eq!(Parse::start(&body[..6]), Ok(Parse { name: b"s1", text: b"SEL" }));
    assert_eq!(Parse::start(&body[..2]), Err(Malformed::Truncated));

    bytes.clear();
    frontend::write_bind(&mut bytes, b"", b"s1", &[Some(b"5"), None]);
    let (_, body) = only(&bytes);
    assert_eq!(Bind::start(body), Ok(Bind { portal: b"", statement: b"s1" }));
    assert_eq!(Bind::start(&body[..3]), Err(Malformed::Truncated));
}

#[test]
fn targets_round_trip() {
    for target in [Target::Portal(b""), Target::Statement(b"s1")] {
        let mut bytes = Vec::new();
        frontend::write_describe(&mut bytes, target);
        assert_eq!(Target::parse(only(&bytes).1), Ok(target));
    }
    assert_eq!(Target::parse(b"X\0"), Err(Malformed::InvalidField));
    assert_eq!(Target::parse(b"Sa"), Err(Malformed::Truncated));
    assert_eq!(Target::parse(b"Sa\0b"), Err(Malformed::TrailingBytes));
}

#[test]
fn sasl_initial_response_checks_its_length() {
    let mut bytes = Vec::new();
    SaslInitialResponse::write(&mut bytes, b"SCRAM-SHA-256", b"n,,n=,r=x");
    let parsed = SaslInitialResponse::parse(only(&bytes).1).unwrap();
    assert_eq!(parsed.data, Some(&b"n,,n=,r=x"[..]));
    assert_eq!(
        SaslInitialResponse::parse(b"M\0\xff\xff\xff\xff"),
        Ok(SaslInitialResponse { mechanism: b"M", data: None })
    );
    for bad in [&b"M\0\0\0\0\x02a"[..], b"M\0\xff\xff\xff\xfea", b"M\0\xff\xff\xff\xffa"] {
        assert_eq!(SaslInitialResponse::parse(bad), Err(Malformed::InvalidField));
    }
}

#[test]
fn reports_are_read_back() {
    let report = Report::fatal(SqlState::TOO_MANY_CONNECTIONS, "full").detail("why").hint("what");
    let mut bytes = Vec::new();
    report.write(&mut bytes);
    let (tag, body) = only(&bytes);
    assert_eq!(tag, b'E');
    let fields = ErrorFields::parse(body).unwrap();
    assert_eq!(fields.code, Some(SqlState::TOO_MANY_CONNECTIONS));
    assert_eq!(fields.message, b"full");
    assert!(fields.is_fatal());
    for n in 0..body.len() {
        assert!(ErrorFields::parse(&body[..n]).is_err());
    }
}

#[test]
fn an_error_without_a_code_is_still_an_error() {
    let fields = ErrorFields::parse(b"SFATAL\0Mgone\0\0").unwrap();
    assert_eq!(fields.code, None);
    assert!(fields.is_fatal());
}

#[test]
fn a_nul_inside_a_string_cannot_shift_the_fields_behind_it() {
    let mut bytes = Vec::new();
    backend::parameter_status(&mut bytes, b"na\0me", b"value");
    let pair = backend::parse_parameter_status(only(&bytes).1);
    assert_eq!(pair, Ok((&b"na"[..], &b"value"[..])));
}

#[test]
fn ready_for_query_knows_three_states() {
    for status in [TransactionStatus::Idle, TransactionStatus::Active, TransactionStatus::Failed] {
        let mut bytes = Vec::new();
        backend::ready_for_query(&mut bytes, status);
        assert_eq!(backend::parse_ready_for_query(only(&bytes).1), Ok(status));
    }
}

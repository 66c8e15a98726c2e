//! Each message as the protocol's documentation has it, byte for byte.

use super::*;
use crate::HEADER_LEN;
use crate::tests::{Write, assert_written};

#[test]
fn every_message_is_the_documented_bytes() {
    let messages: [(Write, &[u8]); 14] = [
        (|out| write_password(out, b"pw"), b"p\0\0\0\x07pw\0"),
        (|out| write_sasl_response(out, b"c=biws"), b"p\0\0\0\x0ac=biws"),
        (
            |out| SaslInitialResponse::write(out, b"SCRAM-SHA-256", b"n,,"),
            b"p\0\0\0\x19SCRAM-SHA-256\0\0\0\0\x03n,,",
        ),
        (|out| write_query(out, b"SELECT 1"), b"Q\0\0\0\x0dSELECT 1\0"),
        (
            |out| write_parse(out, b"s", b"SELECT $1", &[23, 0]),
            b"P\0\0\0\x1as\0SELECT $1\0\0\x02\0\0\0\x17\0\0\0\0",
        ),
        (|out| write_parse_of(out, b"s", b"SELECT 1\0\0\0"), b"P\0\0\0\x11s\0SELECT 1\0\0\0"),
        (
            |out| write_bind(out, b"p", b"s", &[Some(b"57"), None]),
            b"B\0\0\0\x18p\0s\0\0\0\0\x02\0\0\0\x0257\xff\xff\xff\xff\0\0",
        ),
        (|out| write_describe(out, Target::Portal(b"p")), b"D\0\0\0\x07Pp\0"),
        (|out| write_describe(out, Target::Statement(b"")), b"D\0\0\0\x06S\0"),
        (|out| write_close(out, Target::Statement(b"s")), b"C\0\0\0\x07Ss\0"),
        (|out| write_close(out, Target::Portal(b"")), b"C\0\0\0\x06P\0"),
        (|out| write_execute(out, b"p", 258), b"E\0\0\0\x0ap\0\0\0\x01\x02"),
        (|out| write_copy_data(out, b"1\t2\n"), b"d\0\0\0\x081\t2\n"),
        (|out| write_copy_fail(out, b"no"), b"f\0\0\0\x07no\0"),
    ];
    assert_written(&messages);
    for (bytes, tag) in [
        (COPY_DONE, Tag::CopyDone),
        (FLUSH, Tag::Flush),
        (SYNC, Tag::Sync),
        (TERMINATE, Tag::Terminate),
    ] {
        let header = Header::parse(&bytes).unwrap().unwrap();
        assert_eq!((Tag::of(header), header.message_len()), (Ok(tag), bytes.len()));
    }
}

/// Its length is that of the whole message, of which the rest is sent as it came.
#[test]
fn a_message_begins_again_with_another_name() {
    for (new, old) in
        [(&b"pgweir_1"[..], &b"s"[..]), (b"s", b"pgweir_1"), (b"", b"s"), (b"b", b"a")]
    {
        let bind = |name| {
            let mut out = Vec::new();
            write_bind(&mut out, b"p", name, &[Some(b"57")]);
            out
        };
        let whole = bind(old);
        let header = Header::parse(&whole).unwrap().unwrap();
        let (before, rest) = whole[HEADER_LEN..].split_at(b"p\0".len());
        let mut renamed = Vec::new();
        write_renamed(&mut renamed, header, before, new, old.len());
        renamed.extend_from_slice(&rest[old.len()..]);
        assert_eq!(renamed, bind(new));
    }
}

#[test]
fn a_password_is_all_up_to_its_nul() {
    assert_eq!(password(b"pa ss\0"), Ok(&b"pa ss"[..]));
    assert_eq!(password(b"\0"), Ok(&b""[..]));
    assert_eq!(password(b"pass"), Err(Malformed::Truncated));
    assert_eq!(password(b""), Err(Malformed::Truncated));
    assert_eq!(password(b"pass\0word\0"), Err(Malformed::TrailingBytes));
}

#[test]
fn a_message_too_long_for_its_type_is_named_with_the_length_that_was_sent() {
    let header = Header::parse(b"S\0\0\x27\x11").unwrap().unwrap();
    assert_eq!(Tag::of(header), Err(Malformed::Length { tag: b'S', length: 10_001 }));
}

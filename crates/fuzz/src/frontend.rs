//! Messages of a client: headers, limits, and every view of a body.

use pgweir_wire::frontend::{
    Bind, Parse, SaslInitialResponse, Tag, Target, password, write_bind, write_close,
    write_describe, write_parse, write_password,
};
use pgweir_wire::{HEADER_LEN, Header, Malformed};

/// Messages, one behind the other; the whole input is given to each view too.
pub(crate) fn run(data: &[u8]) {
    views(data);
    let mut rest = data;
    while let Some((header, body)) = message(rest) {
        if let Ok(tag) = Tag::of(header) {
            assert!(header.body_len + 4 <= limit(tag), "{tag:?} over its limit");
        }
        views(body);
        rest = &rest[HEADER_LEN + body.len()..];
    }
}

/// The header at the front, and what is there of its body.
pub(crate) fn message(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let found = Header::parse(bytes);
    let length = bytes.get(1..HEADER_LEN).map(|length| {
        let length = length.try_into().expect("the range has four bytes");
        i32::from_be_bytes(length)
    });
    match (found, length) {
        (Ok(None), None) => None,
        (Err(Malformed::Length { tag, length }), Some(sent)) => {
            assert_eq!((tag, length), (bytes[0], sent));
            assert!(length < 4, "a length of {length} is refused");
            None
        }
        (Ok(Some(header)), Some(length)) => {
            assert_eq!(header.tag, bytes[0]);
            assert_eq!(header.body_len + 4, length as usize);
            assert_eq!(header.message_len(), header.body_len + HEADER_LEN);
            let end = header.message_len().min(bytes.len());
            Some((header, &bytes[HEADER_LEN..end]))
        }
        (found, length) => panic!("{found:?} of a header with length {length:?}"),
    }
}

/// PostgreSQL's limits (libpq.h, auth.c), said here once more.
fn limit(tag: Tag) -> usize {
    match tag {
        Tag::Bind | Tag::CopyData | Tag::FunctionCall | Tag::Parse | Tag::Query => 0x3fff_fffe,
        Tag::Password => 65_535,
        Tag::Close
        | Tag::CopyDone
        | Tag::CopyFail
        | Tag::Describe
        | Tag::Execute
        | Tag::Flush
        | Tag::Sync
        | Tag::Terminate => 10_000,
    }
}

fn views(body: &[u8]) {
    starts(body);
    if let Ok(target) = Target::parse(body) {
        let mut written = Vec::new();
        write_describe(&mut written, target);
        write_close(&mut written, target);
        let (describe, close) = written.split_at(HEADER_LEN + body.len());
        assert_eq!(&describe[HEADER_LEN..], body);
        assert_eq!(&close[HEADER_LEN..], body);
    }
    if let Ok(SaslInitialResponse { mechanism, data }) = SaslInitialResponse::parse(body) {
        lies_within(body, mechanism);
        lies_within(body, data.unwrap_or_default());
        if let Some(data) = data {
            let mut written = Vec::new();
            SaslInitialResponse::write(&mut written, mechanism, data);
            assert_eq!(&written[HEADER_LEN..], body);
        }
    }
    if let Ok(password) = password(body) {
        let mut written = Vec::new();
        write_password(&mut written, password);
        assert_eq!(&written[HEADER_LEN..], body);
    }
}

/// The views that read a body of which only a part has come: more of it changes no name.
fn starts(body: &[u8]) {
    let parse = Parse::start(body);
    let bind = Bind::start(body);
    for end in 0..=body.len().min(64) {
        let part = &body[..end];
        match Parse::start(part) {
            Ok(Parse { name, text }) => {
                let whole = parse.expect("a part was enough");
                assert_eq!(name, whole.name);
                assert!(whole.text.starts_with(text), "a part has another text");
            }
            Err(malformed) => assert_eq!(malformed, Malformed::Truncated),
        }
        match Bind::start(part) {
            Ok(part) => assert_eq!(Ok(part), bind),
            Err(malformed) => assert_eq!(malformed, Malformed::Truncated),
        }
    }
    let mut written = Vec::new();
    if let Ok(parse) = parse {
        lies_within(body, parse.name);
        lies_within(body, parse.text);
        write_parse(&mut written, parse.name, parse.text, &[23]);
        assert_eq!(Parse::start(&written[HEADER_LEN..]), Ok(parse));
    }
    written.clear();
    if let Ok(bind) = bind {
        lies_within(body, bind.portal);
        lies_within(body, bind.statement);
        write_bind(&mut written, bind.portal, bind.statement, &[None, Some(b"1")]);
        assert_eq!(Bind::start(&written[HEADER_LEN..]), Ok(bind));
    }
}

/// A view borrows from the body that it was given.
pub(crate) fn lies_within(body: &[u8], view: &[u8]) {
    let (body, view) = (body.as_ptr_range(), view.as_ptr_range());
    let empty = view.start == view.end;
    assert!(empty || body.start <= view.start && view.end <= body.end, "a view of other bytes");
}

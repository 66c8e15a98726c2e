use std::collections::BTreeMap;

use pgweir_wire::frontend;

use super::{Advance, Home, Inbox, Message, Session};
use crate::language::Tag;
use crate::ledger::Ledger;

/// What a session says to these messages: the types, with the status behind each ReadyForQuery.
fn says(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut sent = Vec::new();
    write(&mut sent);
    let mut inbox = Inbox::default();
    inbox.put(&sent);
    let mut ledger = Ledger::new();
    let home = Home { database: "db".to_owned(), user: "app".to_owned() };
    ledger.enrol(BTreeMap::new(), home);
    let mut session = Session::new(BTreeMap::new());
    while session.state.unreported().is_some() {}
    while !matches!(session.advance(&mut inbox, &mut ledger), Advance::Starved | Advance::Over) {}
    assert_eq!(ledger.failure(), None);
    let mut said = String::new();
    let mut rest = &session.out[..];
    while let Ok(Some((message, length))) = Message::parse(rest) {
        said.push(char::from(message.tag));
        if message.tag == b'Z' {
            said.push(char::from(message.body[0]));
        }
        rest = &rest[length..];
    }
    said
}

/// Parse, Bind and Execute of one statement.
fn batch(out: &mut Vec<u8>, text: &str, number: u32) {
    frontend::write_parse(out, b"", text.as_bytes(), &[]);
    bind(out, number);
    frontend::write_execute(out, b"", 0);
}

fn bind(out: &mut Vec<u8>, number: u32) {
    let tag = Tag { client: 0, number }.to_string();
    frontend::write_bind(out, b"", b"", &[Some(tag.as_bytes())]);
}

#[test]
fn a_query_string_is_one_transaction() {
    assert_eq!(says(|out| frontend::write_query(out, b"write c0s1; rows c0s2 2")), "CTDDCZI");
    assert_eq!(
        says(|out| frontend::write_query(out, b"write c0s1; fail c0s2; write c0s3")),
        "CEZI"
    );
    assert_eq!(says(|out| frontend::write_query(out, b"")), "IZI");
    assert_eq!(says(|out| frontend::write_query(out, b"begin c0s1; fail c0s2")), "CEZE");
}

#[test]
fn a_deferred_constraint_fails_where_the_transaction_ends() {
    assert_eq!(says(|out| frontend::write_query(out, b"defer c0s1")), "EZI");
    let at_sync = says(|out| {
        batch(out, "defer c0s1", 2);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(at_sync, "12CEZI");
}

#[test]
fn everything_up_to_the_sync_is_skipped_after_an_error() {
    let said = says(|out| {
        batch(out, "fail c0s1", 2);
        batch(out, "rows c0s3 1", 4);
        frontend::write_query(out, b"rows c0s5 1");
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_query(out, b"rows c0s6 1");
    });
    assert_eq!(said, "12EZITDCZI");
}

#[test]
fn a_row_limit_suspends_the_portal() {
    let said = says(|out| {
        frontend::write_parse(out, b"", b"rows c0s1 2", &[]);
        bind(out, 2);
        frontend::write_execute(out, b"", 2);
        frontend::write_execute(out, b"", 2);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_execute(out, b"", 2);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "12DDsCZIEZI");
}

#[test]
fn a_sync_inside_copy_is_ignored_and_late_data_too() {
    let said = says(|out| {
        batch(out, "copy_in c0s1", 1);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_copy_data(out, b"c0s1");
        out.extend_from_slice(&frontend::COPY_DONE);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "12GCZI");
    let late = says(|out| {
        frontend::write_query(out, b"copy_in c0s1 1");
        frontend::write_copy_data(out, b"c0s1");
        frontend::write_copy_data(out, b"c0s1");
        out.extend_from_slice(&frontend::COPY_DONE);
    });
    assert_eq!(late, "GEZI");
}

#[test]
fn a_query_ends_the_unnamed_statement() {
    let said = says(|out| {
        frontend::write_parse(out, b"", b"rows c0s1 1", &[]);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_query(out, b"");
        bind(out, 2);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "1ZIIZIEZI");
}

#[test]
fn a_setting_is_reported_before_ready_for_query() {
    let said = says(|out| frontend::write_query(out, b"set c0s1 TimeZone UTC"));
    assert_eq!(said, "CSZI");
}

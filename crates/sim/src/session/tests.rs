//! What the fake session says, each time beside what PostgreSQL says to the same script.

mod sql;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pgweir_testkit::{Cluster, Login, WireClient};
use pgweir_wire::frontend::{self, Target};

use super::{Advance, Home, Inbox, Message, Session};
use crate::language::Tag;
use crate::ledger::Ledger;

static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let cluster = Cluster::start();
    cluster.psql(sql::TABLES);
    cluster
});

/// What a session says to these messages: the types, with the code of each error and the status
/// behind each ReadyForQuery. PostgreSQL says the same.
#[track_caller]
fn says(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut sent = Vec::new();
    write(&mut sent);
    let said = fake_says(&sent);
    assert_eq!(said, postgresql_says(&sent), "the fake, and PostgreSQL");
    said
}

fn fake_says(sent: &[u8]) -> String {
    let mut inbox = Inbox::default();
    inbox.put(sent);
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
        in_short(&mut said, message.tag, &message.body);
        rest = &rest[length..];
    }
    said
}

fn postgresql_says(sent: &[u8]) -> String {
    let login = Login::new("postgres").database("postgres");
    let mut client = WireClient::login(CLUSTER.address(), &login).expect("it is let in");
    // What is not flushed by itself is said before the session ends.
    let end = [&sql::translate(sent)[..], &frontend::FLUSH, &frontend::TERMINATE].concat();
    client.send(&end).expect("it reads");
    let mut said = String::new();
    for message in client.read_to_end().expect("it answers") {
        in_short(&mut said, message.tag, &message.body);
    }
    said
}

fn in_short(said: &mut String, tag: u8, body: &[u8]) {
    said.push(char::from(tag));
    if tag == b'Z' {
        said.push(char::from(body[0]));
    }
    if tag == b'E' {
        let message = Message { tag, body: body.to_vec() };
        let code = message.error().and_then(|error| error.code).expect("it has a code");
        said.push_str(&format!("({code})"));
    }
}

/// Parse, Bind and Execute of one statement.
fn batch(out: &mut Vec<u8>, text: &str, number: u32) {
    frontend::write_parse(out, b"", text.as_bytes(), &[25]);
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
        "CE(22012)ZI"
    );
    assert_eq!(says(|out| frontend::write_query(out, b"")), "IZI");
    assert_eq!(says(|out| frontend::write_query(out, b"begin c0s1; fail c0s2")), "CE(22012)ZE");
}

#[test]
fn a_deferred_constraint_fails_where_the_transaction_ends() {
    assert_eq!(says(|out| frontend::write_query(out, b"defer c0s1")), "E(23505)ZI");
    let at_sync = says(|out| {
        batch(out, "defer c0s1", 2);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(at_sync, "12CE(23505)ZI");
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
    assert_eq!(said, "12E(22012)ZITDCZI");
}

#[test]
fn a_row_limit_suspends_the_portal() {
    let said = says(|out| {
        frontend::write_parse(out, b"", b"rows c0s1 2", &[25]);
        bind(out, 2);
        frontend::write_execute(out, b"", 2);
        frontend::write_execute(out, b"", 2);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_execute(out, b"", 2);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "12DDsCZIE(34000)ZI");
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
    assert_eq!(late, "GE(22P04)ZI");
}

#[test]
fn a_query_ends_the_unnamed_statement() {
    let said = says(|out| {
        frontend::write_parse(out, b"", b"rows c0s1 1", &[25]);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_query(out, b"");
        bind(out, 2);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "1ZIIZIE(26000)ZI");
}

#[test]
fn a_setting_is_reported_before_ready_for_query() {
    let said = says(|out| frontend::write_query(out, b"set c0s1 TimeZone Asia/Tokyo"));
    assert_eq!(said, "CSZI");
}

fn query(out: &mut Vec<u8>, text: &str) {
    frontend::write_query(out, text.as_bytes());
}

/// What a session says to these queries, one after the other.
#[track_caller]
fn says_to(queries: &[&str]) -> String {
    says(|out| queries.iter().for_each(|text| query(out, text)))
}

#[test]
fn transactions_end_in_every_way() {
    assert_eq!(says_to(&["begin c0s1", "write c0s2", "commit c0s3"]), "CZTCZTCZI");
    assert_eq!(says_to(&["begin c0s1", "rollback /*c0s2*/"]), "CZTCZI");
    assert_eq!(says_to(&["begin c0s1", "begin c0s2", "commit c0s3"]), "CZTNCZTCZI");
    assert_eq!(says_to(&["commit c0s1", "rollback /*c0s2*/"]), "NCZINCZI");
    let failed = ["begin c0s1", "fail c0s2", "rows c0s3 1", "commit c0s4"];
    assert_eq!(says_to(&failed), "CZTE(22012)ZEE(25P02)ZECZI");
    let deferred = ["begin c0s1", "defer c0s2", "commit c0s3", "rows c0s4 1"];
    assert_eq!(says_to(&deferred), "CZTCZTE(23505)ZITDCZI");
    // Several statements of one string, of which one ends the block.
    assert_eq!(says_to(&["begin c0s1; write c0s2", "fail c0s3; commit c0s4"]), "CCZTE(22012)ZE");
    assert_eq!(says_to(&["begin c0s1; write c0s2; commit c0s3; fail c0s4"]), "CCCE(22012)ZI");
}

#[test]
fn a_chain_begins_another_block() {
    assert_eq!(says_to(&["rollback and chain /*c0s1*/"]), "E(25P01)ZI");
    let chained = ["begin c0s1", "fail c0s2", "rollback and chain /*c0s3*/", "rows c0s4 1"];
    assert_eq!(says_to(&chained), "CZTE(22012)ZECZTTDCZT");
}

#[test]
fn copies_go_out_and_come_in() {
    assert_eq!(says_to(&["copy_out c0s1 2"]), "HddcCZI");
    let failed = says(|out| {
        query(out, "copy_in c0s1");
        frontend::write_copy_data(out, b"c0s1");
        frontend::write_copy_fail(out, b"enough");
        query(out, "rows c0s2 1");
    });
    assert_eq!(failed, "GE(57014)ZITDCZI");
    let refused = says(|out| {
        query(out, "copy_in c0s1 0");
        out.extend_from_slice(&frontend::COPY_DONE);
        query(out, "rows c0s2 1");
    });
    assert_eq!(refused, "GE(P0001)ZITDCZI");
    let in_batch = says(|out| {
        batch(out, "copy_in c0s1 1", 2);
        frontend::write_copy_data(out, b"c0s2");
        batch(out, "rows c0s3 1", 4);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(in_batch, "12GE(22P04)ZI");
}

#[test]
fn statements_and_portals_have_names() {
    let parse = |out: &mut Vec<u8>, name: &[u8]| {
        frontend::write_parse(out, name, b"rows c0s1 2", &[25]);
    };
    let twice = says(|out| {
        parse(out, b"n");
        out.extend_from_slice(&frontend::SYNC);
        parse(out, b"n");
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_close(out, Target::Statement(b"n"));
        parse(out, b"n");
        frontend::write_describe(out, Target::Statement(b"n"));
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(twice, "1ZIE(42P05)ZI31tTZI");
    let portals = says(|out| {
        parse(out, b"");
        frontend::write_bind(out, b"p", b"", &[Some(b"c0s2")]);
        frontend::write_bind(out, b"p", b"", &[Some(b"c0s3")]);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_close(out, Target::Portal(b"p"));
        frontend::write_describe(out, Target::Portal(b"p"));
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(portals, "12E(42P03)ZI3E(34000)ZI");
    let unknown = says(|out| {
        frontend::write_describe(out, Target::Statement(b"nowhere"));
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_parse(out, b"", b"no such words", &[25]);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(unknown, "E(26000)ZIE(42601)ZI");
}

#[test]
fn in_a_failed_block_rows_are_not_described() {
    let said = says(|out| {
        query(out, "begin c0s1");
        frontend::write_parse(out, b"n", b"rows c0s2 1", &[25]);
        frontend::write_parse(out, b"e", b"commit c0s3", &[25]);
        out.extend_from_slice(&frontend::SYNC);
        query(out, "fail c0s4");
        frontend::write_describe(out, Target::Statement(b"n"));
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_describe(out, Target::Statement(b"e"));
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "CZT11ZTE(22012)ZEE(25P02)ZEtnZE");
}

#[test]
fn an_empty_statement_is_one() {
    let said = says(|out| {
        frontend::write_parse(out, b"", b"", &[25]);
        bind(out, 1);
        frontend::write_describe(out, Target::Portal(b""));
        frontend::write_execute(out, b"", 0);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "12nIZI");
}

/// Rows that were asked for in parts, up to none left; a statement without rows has one part.
#[test]
fn a_portal_is_run_again() {
    let rows = says(|out| {
        batch(out, "rows c0s1 1", 2);
        frontend::write_execute(out, b"", 0);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(rows, "12DCCZI");
    let other = says(|out| {
        batch(out, "write c0s1", 2);
        frontend::write_execute(out, b"", 0);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(other, "12CE(55000)ZI");
}

#[test]
fn notices_and_notifications_come_in_their_place() {
    assert_eq!(says_to(&["notice c0s1 2"]), "NNCZI");
    assert_eq!(
        says_to(&["begin c0s1", "set c0s2 TimeZone Asia/Tokyo", "rollback /*c0s3*/"]),
        "CZTCSZTCSZI"
    );
    assert_eq!(says_to(&["fill c0s1", "load c0s2", "create temp c0s3"]), "E(53100)ZICZICZI");
}

//! What the fake session says, each time beside what PostgreSQL says to the same script.

use std::collections::BTreeMap;

use pgweir_testkit::{Login, WireClient};
use pgweir_wire::frontend::{self, Target};

use super::{Advance, Again, Home, Inbox, Message, Session, State, Witness};
use crate::language::Tag;
use crate::language::sql::{CLUSTER, in_short, translate};
use crate::ledger::Ledger;

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
    // The numbers of a script are in any order.
    ledger.divide(0);
    let mut session = Session::new(BTreeMap::new()).of_process(1);
    while session.state.unreported().is_some() {}
    while !matches!(session.advance(&mut inbox, &mut ledger), Advance::Starved | Advance::Over) {
        session.take_announced();
    }
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
    let end = [&translate(sent)[..], &frontend::FLUSH, &frontend::TERMINATE].concat();
    client.send(&end).expect("it reads");
    let mut said = String::new();
    for message in client.read_to_end().expect("it answers") {
        in_short(&mut said, message.tag, &message.body);
    }
    said
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
    assert_eq!(says_to(&["begin c0s1", "begin c0s2", "commit c0s3"]), "CZTN(25001)CZTCZI");
    assert_eq!(says_to(&["commit c0s1", "rollback /*c0s2*/"]), "N(25P01)CZIN(25P01)CZI");
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
    assert_eq!(
        says_to(&["fill c0s1", "load c0s2 library", "create temp c0s3"]),
        "E(53100)ZICZICZI"
    );
}

#[test]
fn a_subtransaction_ends_by_itself() {
    let undone = ["begin c0s1", "savepoint c0s2 a", "fail c0s3", "rows c0s4 1"];
    assert_eq!(says_to(&undone), "CZTCZTE(22012)ZEE(25P02)ZE");
    let block = ["begin c0s1", "savepoint c0s2 a"];
    let after = |more: &[&str]| says_to(&[&block, more].concat());
    assert_eq!(
        after(&["fail c0s3", "rollback to a /*c0s4*/", "commit c0s5"]),
        "CZTCZTE(22012)ZECZTCZI"
    );
    assert_eq!(after(&["release c0s3 a", "rollback to a /*c0s4*/"]), "CZTCZTCZTE(3B001)ZE");
    // The last one of a name counts, and stays when it is gone back to.
    let twice = ["savepoint c0s3 a", "rollback to a /*c0s4*/", "release c0s5 a", "release c0s6 a"];
    assert_eq!(after(&twice), "CZTCZTCZTCZTCZTCZT");
    assert_eq!(
        after(&["savepoint c0s3 b", "release c0s4 a", "release c0s5 b"]),
        "CZTCZTCZTCZTE(3B001)ZE"
    );
    for alone in ["savepoint c0s1 a", "rollback to a /*c0s1*/", "release c0s1 a"] {
        assert_eq!(says_to(&[alone]), "E(25P01)ZI");
    }
    assert_eq!(says_to(&["write c0s1; savepoint c0s2 a"]), "CE(25P01)ZI");
}

#[test]
fn going_back_takes_back_what_was_done() {
    let deferred =
        ["begin c0s1", "savepoint c0s2 a", "defer c0s3", "rollback to a /*c0s4*/", "commit c0s5"];
    assert_eq!(says_to(&deferred), "CZTCZTCZTCZTCZI");
    let zone = "set c0s3 TimeZone Asia/Tokyo";
    let setting = ["begin c0s1", "savepoint c0s2 a", zone, "rollback to a /*c0s4*/", "commit c0s5"];
    assert_eq!(says_to(&setting), "CZTCZTCSZTCSZTCZI");
    let listen = "listen c0s3 sub";
    let channel =
        ["begin c0s1", "savepoint c0s2 a", listen, "rollback to a /*c0s4*/", "commit c0s5"];
    assert_eq!(says_to(&[&channel[..], &["notify c0s6 sub"]].concat()), "CZTCZTCZTCZTCZICZI");
    let cursor = "declare c0s3 k cursor with hold";
    let cursor =
        ["begin c0s1", "savepoint c0s2 a", cursor, "rollback to a /*c0s4*/", "fetch c0s5 k"];
    assert_eq!(says_to(&cursor), "CZTCZTCZTCZTE(34000)ZE");
}

#[test]
fn a_setting_of_the_transaction_ends_with_it() {
    let local = "set local c0s2 TimeZone Asia/Tokyo";
    assert_eq!(says_to(&["begin c0s1", local, "commit c0s3"]), "CZTCSZTCSZI");
    assert_eq!(says_to(&["begin c0s1", local, "rollback /*c0s3*/"]), "CZTCSZTCSZI");
    let lasting = "set c0s3 TimeZone Asia/Tokyo";
    assert_eq!(says_to(&["begin c0s1", local, lasting, "commit c0s4"]), "CZTCSZTCZTCZI");
    assert_eq!(says_to(&["set local c0s1 TimeZone Asia/Tokyo"]), "N(25P01)CZI");
    assert_eq!(says_to(&["set local c0s1 TimeZone Asia/Tokyo; rows c0s2 1"]), "CTDCZI");
}

#[test]
fn settings_are_taken_back() {
    let set = "set c0s1 TimeZone Asia/Tokyo";
    assert_eq!(says_to(&[set, "reset TimeZone /*c0s2*/", "reset all /*c0s3*/"]), "CSZICSZICZI");
    assert_eq!(says_to(&[set, "reset all /*c0s2*/"]), "CSZICSZI");
    assert_eq!(
        says_to(&["begin c0s1", "reset all /*c0s2*/", "discard all /*c0s3*/"]),
        "CZTCZTE(25001)ZE"
    );
    assert_eq!(says_to(&["rows c0s1 1; discard all /*c0s2*/"]), "TDCE(25001)ZI");
    assert_eq!(
        says_to(&["discard plans /*c0s1*/", "begin c0s2", "discard temp /*c0s3*/"]),
        "CZICZTCZT"
    );
    assert_eq!(says_to(&["discard sequences /*c0s1*/", "call c0s2 nextval()"]), "CZICZI");
}

#[test]
fn everything_is_discarded() {
    let state = [
        "set c0s1 TimeZone Asia/Tokyo",
        "prepare c0s2 q 1",
        "declare c0s3 k cursor with hold",
        "listen c0s4 gone",
        "call c0s5 pg_advisory_lock(7)",
        "discard all /*c0s6*/",
    ];
    assert_eq!(says_to(&state), "CSZICZICZICZICZICSZI");
    let looked =
        ["execute c0s7 q", "fetch c0s8 k", "notify c0s9 gone", "call c0s10 pg_advisory_unlock(7)"];
    let gone = "E(26000)ZIE(34000)ZICZIN(01000)CZI";
    assert_eq!(says_to(&[&state[..], &looked].concat()), format!("CSZICZICZICZICZICSZI{gone}"));
}

#[test]
fn statements_are_prepared_by_sql_too() {
    assert_eq!(
        says_to(&["prepare c0s1 q 2", "execute c0s2 q", "execute c0s3 q"]),
        "CZITDDCZITDDCZI"
    );
    assert_eq!(
        says_to(&["prepare c0s1 q write", "execute c0s2 q", "deallocate q /*c0s3*/"]),
        "CZICZICZI"
    );
    assert_eq!(says_to(&["execute c0s1 q", "deallocate q /*c0s2*/"]), "E(26000)ZIE(26000)ZI");
    assert_eq!(says_to(&["prepare c0s1 q 1", "prepare c0s2 q 1"]), "CZIE(42P05)ZI");
    // What it has prepared outlives the transaction, and has the same names as a Parse.
    assert_eq!(
        says_to(&["begin c0s1; prepare c0s2 q 1; rollback /*c0s3*/", "execute c0s4 q"]),
        "CCCZITDCZI"
    );
    let parsed = says(|out| {
        frontend::write_parse(out, b"q", b"rows c0s1 1", &[]);
        out.extend_from_slice(&frontend::SYNC);
        query(out, "prepare c0s2 q 1");
        query(out, "execute c0s3 q");
        query(out, "deallocate q /*c0s4*/");
        frontend::write_bind(out, b"", b"q", &[]);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(parsed, "1ZIE(42P05)ZITDCZICZIE(26000)ZI");
    let empty = says(|out| {
        frontend::write_parse(out, b"q", b"", &[]);
        out.extend_from_slice(&frontend::SYNC);
        query(out, "execute c0s1 q");
    });
    assert_eq!(empty, "1ZICZI");
}

#[test]
fn a_cursor_outlives_its_transaction() {
    let declare = "declare c0s1 k cursor with hold";
    assert_eq!(says_to(&[declare, "fetch c0s2 k", "fetch c0s3 k"]), "CZITDCZITDCZI");
    assert_eq!(says_to(&[declare, "declare c0s2 k cursor with hold"]), "CZIE(42P03)ZI");
    assert_eq!(
        says_to(&["begin c0s2", declare, "rollback /*c0s3*/", "fetch c0s4 k"]),
        "CZTCZTCZIE(34000)ZI"
    );
    assert_eq!(says_to(&["begin c0s2", declare, "commit c0s3", "fetch c0s4 k"]), "CZTCZTCZITDCZI");
}

#[test]
fn channels_are_listened_to_when_the_transaction_is_committed() {
    let listen = "listen c0s1 own";
    let notify = "notify c0s2 own";
    assert_eq!(says_to(&[listen, notify]), "CZICAZI");
    assert_eq!(says_to(&["listen c0s1 own; notify c0s2 own"]), "CCAZI");
    assert_eq!(
        says_to(&[listen, "notify c0s2 other", "unlisten c0s3 own", "notify c0s4 own"]),
        "CZICZICZICZI"
    );
    assert_eq!(says_to(&[listen, "unlisten c0s2 *", "notify c0s3 own"]), "CZICZICZI");
    let block = ["begin c0s3", listen, notify, "commit c0s4"];
    assert_eq!(says_to(&block), "CZTCZTCZTCAZI");
    let undone = ["begin c0s3", listen, "rollback /*c0s4*/", notify];
    assert_eq!(says_to(&undone), "CZTCZTCZICZI");
    assert_eq!(says_to(&[listen, "begin c0s3", notify, "rollback /*c0s4*/"]), "CZICZTCZTCZI");
    // Out of a transaction only.
    let late = [listen, "notify c0s2 own; begin c0s3", "rows c0s4 1", "commit c0s5"];
    assert_eq!(says_to(&late), "CZICCZTTDCZTCAZI");
}

#[test]
fn what_is_not_locked_is_not_unlocked() {
    let unlock = "call c0s8 pg_advisory_unlock(1)";
    let again = "call c0s9 pg_advisory_unlock(1)";
    let taken = ["call c0s1 pg_advisory_lock(1)", unlock, again];
    assert_eq!(says_to(&taken), "CZICZIN(01000)CZI");
    assert_eq!(says_to(&["call c0s1 pg_advisory_xact_lock(1)", unlock]), "CZIN(01000)CZI");
    // A lock of the session is not undone.
    let taken = ["begin c0s1; call c0s2 pg_advisory_lock(1); rollback /*c0s3*/", unlock];
    assert_eq!(says_to(&taken), "CCCZICZI");
}

#[test]
fn what_is_kept_is_no_error() {
    let kept = [
        "call c0s1 setseed()",
        "call c0s2 pg_create_physical_replication_slot()",
        "call c0s3 query_to_xml()",
    ];
    assert_eq!(says_to(&kept), "CZICZICZI");
}

/// The portal without a name is also that of a simple query.
#[test]
fn a_query_ends_the_unnamed_portal() {
    let said = says(|out| {
        query(out, "begin c0s1");
        frontend::write_parse(out, b"", b"rows c0s2 3", &[25]);
        bind(out, 3);
        frontend::write_bind(out, b"p", b"", &[Some(b"c0s4")]);
        frontend::write_execute(out, b"", 1);
        frontend::write_execute(out, b"p", 1);
        out.extend_from_slice(&frontend::SYNC);
        query(out, "rows c0s5 1");
        frontend::write_execute(out, b"p", 1);
        frontend::write_execute(out, b"", 1);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "CZT122DsDsZTTDCZTDsE(34000)ZE");
}

#[test]
fn a_portal_of_a_failed_transaction_keeps_its_name() {
    let said = says(|out| {
        query(out, "begin c0s1");
        frontend::write_parse(out, b"", b"rows c0s2 3", &[25]);
        frontend::write_bind(out, b"p", b"", &[Some(b"c0s3")]);
        frontend::write_execute(out, b"p", 1);
        out.extend_from_slice(&frontend::SYNC);
        query(out, "fail c0s4");
        frontend::write_execute(out, b"p", 1);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_execute(out, b"q", 1);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_describe(out, Target::Portal(b"p"));
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "CZT12DsZTE(22012)ZEE(25P02)ZEE(34000)ZEE(25P02)ZE");
}

#[test]
fn portals_end_with_their_subtransaction() {
    let bind_p = |out: &mut Vec<u8>, number: u32| {
        frontend::write_parse(out, b"", b"rows c0s2 3", &[25]);
        let tag = format!("c0s{number}");
        frontend::write_bind(out, b"p", b"", &[Some(tag.as_bytes())]);
        frontend::write_execute(out, b"p", 1);
        out.extend_from_slice(&frontend::SYNC);
    };
    let goes_on = |out: &mut Vec<u8>| {
        frontend::write_execute(out, b"p", 1);
        out.extend_from_slice(&frontend::SYNC);
    };
    let older = says(|out| {
        query(out, "begin c0s1");
        bind_p(out, 3);
        query(out, "savepoint c0s4 a");
        query(out, "fail c0s5");
        query(out, "rollback to a /*c0s6*/");
        goes_on(out);
    });
    assert_eq!(older, "CZT12DsZTCZTE(22012)ZECZTDsZT");
    let younger = says(|out| {
        query(out, "begin c0s1; savepoint c0s4 a");
        bind_p(out, 3);
        query(out, "rollback to a /*c0s6*/");
        goes_on(out);
    });
    assert_eq!(younger, "CCZT12DsZTCZTE(34000)ZE");
    let released = says(|out| {
        query(out, "begin c0s1; savepoint c0s4 a; savepoint c0s5 b");
        bind_p(out, 3);
        query(out, "release c0s6 b");
        goes_on(out);
        query(out, "rollback to a /*c0s7*/");
        goes_on(out);
    });
    assert_eq!(released, "CCCZT12DsZTCZTDsZTCZTE(34000)ZE");
}

/// With parameters even the end of a transaction is refused in one that has failed.
#[test]
fn a_failed_block_is_left_without_parameters() {
    let said = says(|out| {
        query(out, "begin c0s1; fail c0s2");
        frontend::write_parse(out, b"", b"commit c0s3", &[25]);
        frontend::write_bind(out, b"", b"", &[Some(b"c0s4")]);
        out.extend_from_slice(&frontend::SYNC);
        frontend::write_parse(out, b"", b"commit c0s5", &[]);
        frontend::write_bind(out, b"", b"", &[]);
        frontend::write_execute(out, b"", 0);
        out.extend_from_slice(&frontend::SYNC);
    });
    assert_eq!(said, "CE(22012)ZE1E(25P02)ZE12CZI");
}

/// In one test, because there is one shape of rows for all that run at the same time.
#[test]
fn rows_of_a_prepared_statement_stay_what_they_were() {
    let sync = |out: &mut Vec<u8>| out.extend_from_slice(&frontend::SYNC);
    let parse = |out: &mut Vec<u8>| frontend::write_parse(out, b"n", b"shaped c0s1 1", &[25]);
    let use_it = |out: &mut Vec<u8>, number: u32| {
        let tag = Tag { client: 0, number }.to_string();
        frontend::write_bind(out, b"", b"n", &[Some(tag.as_bytes())]);
        frontend::write_describe(out, Target::Portal(b""));
        frontend::write_execute(out, b"", 0);
    };
    let describe = |out: &mut Vec<u8>| frontend::write_describe(out, Target::Statement(b"n"));
    let refused = says(|out| {
        parse(out);
        use_it(out, 2);
        sync(out);
        query(out, "alter c0s3 shape");
        use_it(out, 4);
        sync(out);
        describe(out);
        sync(out);
        frontend::write_parse(out, b"m", b"shaped c0s5 1", &[]);
        sync(out);
        query(out, "execute c0s7 m; alter c0s8 shape");
        query(out, "execute c0s9 m");
        frontend::write_close(out, Target::Statement(b"n"));
        parse(out);
        describe(out);
        use_it(out, 6);
        sync(out);
    });
    let expected = "12TDCZICZIE(0A000)ZItE(0A000)ZI1ZITDCCZIE(0A000)ZI31tT2TDCZI";
    assert_eq!(refused, expected);
    let taken_back = says(|out| {
        parse(out);
        sync(out);
        query(out, "begin c0s2; alter c0s3 shape");
        use_it(out, 4);
        sync(out);
        query(out, "rollback /*c0s5*/");
        use_it(out, 6);
        sync(out);
        // One of the transaction that is undone.
        query(out, "begin c0s7; alter c0s18 shape");
        frontend::write_parse(out, b"m", b"shaped c0s9 1", &[25]);
        sync(out);
        query(out, "rollback /*c0s10*/");
        frontend::write_bind(out, b"", b"m", &[Some(b"c0s11")]);
        sync(out);
    });
    assert_eq!(taken_back, "1ZICCZTE(0A000)ZECZI2TDCZICCZT1ZTCZIE(0A000)ZI");
    let at_a_savepoint = says(|out| {
        parse(out);
        sync(out);
        query(out, "begin c0s2; savepoint c0s3 s");
        query(out, "alter c0s4 shape; rollback to s /*c0s5*/");
        use_it(out, 6);
        sync(out);
        // A portal keeps what it was made with.
        frontend::write_bind(out, b"p", b"n", &[Some(b"c0s7")]);
        sync(out);
        query(out, "alter c0s8 shape");
        frontend::write_describe(out, Target::Portal(b"p"));
        frontend::write_execute(out, b"p", 0);
        sync(out);
        query(out, "shaped c0s9 1; commit c0s10");
    });
    assert_eq!(at_a_savepoint, "1ZICCZTCCZT2TDCZT2ZTCZTTDCZTTDCCZI");
}

/// A statement that is made anew for its name has the tag of its text, whose first use may have
/// been refused: what a transaction settles is told of its latest message.
#[test]
fn a_transaction_is_as_late_as_its_latest_message() {
    let home = || Home { database: "db".to_owned(), user: "app".to_owned() };
    let tag = |number| Tag { client: 0, number };
    let mut ledger = Ledger::new();
    ledger.enrol(BTreeMap::new(), home());
    ledger.refused(&[tag(1)]);
    ledger.executes(tag(2), Again::MayNot);
    let mut state = State::new(BTreeMap::new());
    state.home = Some(home());
    state.start();
    state.meet(tag(2), &mut ledger);
    state.meet(tag(1), &mut ledger);
    state.set(0, "statement_timeout", "1h", false);
    state.commit(&mut ledger).expect("nothing fails");
    state.meet(tag(3), &mut ledger);
    assert_eq!(ledger.failure(), None);
}

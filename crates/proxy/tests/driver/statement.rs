//! Statement mode: a server for each statement, and no transactions.

use pgweir_engine::ServerActivity;

use crate::messages::{done, in_block, query, ready};
use crate::stage::{Setup, Stage};

/// A transaction block cannot work where each statement may have another server.
#[test]
fn a_transaction_block_ends_its_client() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("statement"));
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert_eq!(alice.heard(), "C Z(T) E(FATAL 0A000)");
    assert!(alice.is_closed());
    assert_eq!(server.heard(), "Q(BEGIN) Q(ROLLBACK)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The COMMIT that stood in the pipeline behind its BEGIN was carried out all the same.
#[test]
fn what_stands_behind_a_begin_is_not_run() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("statement"));
    alice.says([query("BEGIN"), query("INSERT"), query("COMMIT")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
    server.says([done(), in_block()]);
    assert_eq!(server.heard(), "Q(ROLLBACK)");
    assert!(alice.is_closed());
}

/// Without transactions a pipeline works as ever, one statement after the other.
#[test]
fn statements_of_a_pipeline_wait_for_each_other() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("statement"));
    alice.says([query("a"), query("b")]);
    assert_eq!(server.heard(), "Q(a)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(b)");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

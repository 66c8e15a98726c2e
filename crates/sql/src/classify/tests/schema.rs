//! What changes the schema.

use super::{free, kept};
use crate::classify::classify;
use crate::pins::PinReason;

#[test]
fn ddl_changes_the_schema_and_no_more() {
    for text in [
        "create table temp (temp int, hold text default 'set x = 1')",
        "create table t as select * from temp",
        "select 1 as a into t",
        "with x as (select 1 as a) select a into table t from x",
        "(select a into unlogged t from temp)",
        "explain analyze select 1 as a into t",
        "explain (analyze, costs off) create table t as select 1",
        "create unlogged table t (a int)",
        "create or replace view v as select 1",
        "create index on t (a)",
        "create function f() returns int language sql set x = 1 as $$ select set_config('a') $$",
        "alter role r set search_path = a",
        "alter database d set x to 1",
        "alter table t alter c set default 1, set schema s",
        "alter table t drop a",
        "alter system set x = 1",
        "create schema listen",
        "select 1; create function f() execute p",
        "import foreign schema s from server f into public",
    ] {
        assert_eq!(classify(text.as_bytes()), PinReason::Schema.into(), "{text}");
    }
    free(&[
        "select created, altered from t",
        "comment on table t is 'create'",
        "insert into t values (1)",
        "with x as (select 1) insert into t select * from x",
        "merge into t using u on true when matched then delete",
        "explain select a from t",
    ]);
    assert_eq!(kept("prepare p as insert into t values (1)"), "prepared statement");
    assert_eq!(kept("select 1 as a into temp t"), "temp table");
    assert_eq!(kept("explain analyze select 1 as a into pg_temp.t"), "temp table");
    // Of a text that comes in pieces nobody reads the block.
    assert!(classify(b"do 'BEGIN END'").contains(PinReason::Schema));
}

/// What PREPARE TRANSACTION has kept is there from COMMIT PREPARED on.
#[test]
fn commit_prepared_changes_the_schema() {
    assert_eq!(classify(b"COMMIT /* a */ Prepared 'x'").to_string(), "commit, schema change");
    for text in ["commit", "commit work and chain", "commit; select prepared from t"] {
        assert_eq!(classify(text.as_bytes()), PinReason::Commit.into(), "{text}");
    }
    assert!(!classify(b"rollback prepared 'x'").contains(PinReason::Schema));
    assert!(!classify(b"prepare transaction 'x'").contains(PinReason::Schema));
}

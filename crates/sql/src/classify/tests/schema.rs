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
    for text in ["explain analyze select 1 as a into temp t", "create or replace temp view v as a"]
    {
        assert_eq!(kept(text), "temp table", "{text}");
    }
    // Of a text that comes in pieces nobody reads the block.
    assert!(classify(b"do 'BEGIN END'").contains(PinReason::Schema));
}

/// What is made for good may name what is temporary, and it is the statement's own CREATE or INTO
/// that says whether it is.
#[test]
fn what_is_not_temporary_itself_changes_the_schema() {
    for text in [
        "create or replace function f() returns void language sql security definer \
         set search_path = admin, pg_temp as $$ select g() $$",
        "alter function f() set search_path = app, pg_temp",
        "alter role r set search_path = 'a', pg_temp",
        "create trigger t before insert on u execute function pg_temp.g()",
        "create view v as select a from \"pg_temp_3\".t",
        "create table pg_temp.t (a int)",
        "select 1 as a into pg_temp.t",
        "explain analyze select 1 as a into pg_temp.t",
        "create rule r as on insert to t do also insert into temp values (1)",
        "create view v as select t.replace temp from t",
        "alter table t add replace temp",
        "select t.replace temp into u from t",
        "select a into u from (select t.replace temp from t) t",
    ] {
        assert_eq!(kept(text), "schema change, temp table", "{text}");
    }
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

/// The script of an extension is SQL, and may say SET.
#[test]
fn extensions_may_set_something() {
    for text in [
        "create extension a",
        "CREATE EXTENSION IF NOT EXISTS \"uuid-ossp\" WITH SCHEMA b VERSION '1' CASCADE",
        "alter /* a */ extension a update to '2'",
        "Alter Extension a add function f()",
    ] {
        assert_eq!(kept(text), "schema change, setting", "{text}");
    }
    for text in ["create table extension ()", "alter table extension add a int"] {
        assert_eq!(kept(text), "schema change", "{text}");
    }
    free(&["comment on extension a is 'b'", "drop extension a"]);
}

/// What is done to the catalogue by its tables is done to the schema.
#[test]
fn changes_of_the_catalogue_change_the_schema() {
    for text in [
        "update pg_proc set prosrc = 'x'",
        "update only (pg_proc) set prosrc = 'x'",
        "delete from only \"pg_db_role_setting\"",
        "insert into pg_catalog.pg_largeobject values (1, 0, '')",
        "insert into \"Db\" . pg_catalog . pg_cast values (1)",
        "update db.pg_catalog.pg_proc set prosrc = 'x'",
        "merge into pg_attrdef using t on true when matched then delete",
        "with x as (select 1) delete from pg_trigger using x",
        "with x as (delete from pg_trigger returning 1) select 1 from x",
        "copy pg_rewrite from stdin",
        "explain analyze delete from pg_rewrite",
    ] {
        assert_eq!(classify(text.as_bytes()), PinReason::Schema.into(), "{text}");
    }
    free(&[
        "update t set a = pg_column_size(b), pg_c = 1 from pg_class where oid = t.a",
        "delete from t using pg_proc where prosrc = a",
        "insert into t select relname from pg_catalog.pg_class",
        "insert into app.pg_sizes values (1)",
        "update app.pg_sizes set a = pg_catalog.pg_relation_size('t')",
        "insert into t (pg_a) values (1) on conflict (pg_a) do update set pg_a = 1",
        "select a from pg_class for update",
        "select delete, update, pg_a from pg_class",
    ]);
    assert_eq!(kept("insert into pg_temp.pg_a values (1)"), "temp table");
    assert_eq!(kept("update pg_settings set setting = 1"), "setting");
}

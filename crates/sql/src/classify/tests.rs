use proptest::prelude::{Strategy, any, prop, proptest};

use super::{Classifier, classify};
use std::sync::{Arc, LazyLock};

use crate::loud::{Catalogue, Loud};
use crate::pins::{PinReason, Pins};
use crate::rules::{Form, RULES};
use crate::sharing::Sharing;

mod encodings;
mod schema;

/// Checks each text against its pins in words, alone and among others.
#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for &(text, expected) in cases {
        assert_eq!(kept(text), expected, "{text}");
        for among in [
            format!("SELECT 1; {text}; SELECT 2"),
            format!("-- c\n/* c */{text}\n/* c */;"),
            format!("{text}; SELECT '\\'"),
        ] {
            assert_eq!(kept(&among), expected, "{among}");
        }
        if text.contains('\'') {
            continue;
        }
        for changed in [
            text.replace(' ', " /* SET */\n"),
            text.to_uppercase(),
            format!("SELECT '\\'; {text} --'"),
        ] {
            assert_eq!(kept(&changed), expected, "{changed}");
        }
    }
}

/// What is left behind, in words: what may only end something leaves nothing.
fn kept(text: &str) -> String {
    classify(text.as_bytes()).without(PinReason::Ends).to_string()
}

/// Checks that none of these keeps a server.
#[track_caller]
fn free(texts: &[&str]) {
    check(&texts.iter().map(|&text| (text, "")).collect::<Vec<_>>());
}

#[test]
fn what_may_end_state_is_named() {
    for text in [
        "close c",
        "CLOSE ALL",
        "drop table if exists t",
        "select 1; drop view v",
        "select pg_advisory_unlock(1)",
        "select pg_catalog.\"pg_advisory_unlock_shared\" (1)",
        "select * from pg_advisory_unlock_all()",
    ] {
        assert_eq!(classify(text.as_bytes()), PinReason::Ends.into(), "{text}");
    }
    for (text, besides) in [
        ("discard all", PinReason::Reset),
        ("deallocate s", PinReason::Names),
        ("unlisten *", PinReason::Unlisten),
    ] {
        let expected = Pins::from(PinReason::Ends).union(besides.into());
        assert_eq!(classify(text.as_bytes()), expected, "{text}");
    }
    for text in ["select close from t", "select pg_advisory_xact_lock(1)"] {
        assert_eq!(classify(text.as_bytes()), Pins::NONE, "{text}");
    }
}

#[test]
fn ordinary_traffic_is_free() {
    free(&[
        "select abalance from pgbench_accounts where aid = 1",
        "insert into t (a, b) values ($1, $2) returning a",
        "insert into t select * from temp on conflict (a) do update set b = excluded.b",
        "update t set local = 1, session = 2 where set = 3",
        "delete from t using u where t.a = u.a",
        "merge into t using s on t.a = s.a when matched then update set b = s.b",
        "with a as (select 1) select * from a",
        "values (1), (2)",
        "table t",
        "(select 1) union (select 2)",
        "begin",
        "begin isolation level serializable",
        "start transaction read only",
        "savepoint s",
        "release savepoint s",
        "copy t from stdin",
        "copy (select 1) to stdout with (format csv)",
        "explain (analyze, settings) select 1",
        "show search_path",
        "call p(1)",
        "lock table t",
        "vacuum analyze t",
        "fetch 10 from c",
        "close all",
    ]);
}

#[test]
fn statements_are_named() {
    check(&[("execute p(1)", "names"), ("deallocate p", "names"), ("deallocate all", "names")]);
    free(&["select execute, deallocate from t", "grant execute on function f() to p"]);
}

#[test]
fn set_pins_unless_it_is_for_the_transaction() {
    check(&[
        ("set x = 1", "setting"),
        ("set x.y to 'z'", "setting"),
        ("set session x = 1", "setting"),
        ("set session characteristics as transaction read only", "setting"),
        ("set session authorization r", "setting"),
        ("set role r", "setting"),
        ("set time zone 'UTC'", "setting"),
        ("set names 'utf8'", "setting"),
        ("set schema 's'", "setting"),
        ("set xml option document", "setting"),
        ("set \"local\" = 1", "setting"),
        ("set local.x = 1", "setting"),
        ("set transaction.x = 1", "setting"),
        ("set constraints.x = 1", "setting"),
        ("set session.x = 1", "setting"),
        ("reset x", "reset"),
        ("reset all", "reset"),
        ("discard all", "reset"),
        ("discard temp", "reset"),
        ("set local x = 1", "local setting"),
        ("set local \"x\" = 1", "local setting"),
        ("set local role r", "local setting"),
        ("set local search_path to a, 'b'", "local setting"),
        ("set local schema 'a'", "local setting"),
        ("set local local.x = 1", "local setting"),
        ("set transaction isolation level serializable", ""),
        ("set constraints all deferred", ""),
        ("set constraints \"c\" deferred", ""),
    ]);
}

#[test]
fn a_seed_spoils_even_for_the_transaction() {
    check(&[
        ("set seed = 0.5", "random seed, setting"),
        ("set session seed to 0.5", "random seed, setting"),
        ("set \"seed\" = 0.5", "random seed, setting"),
        ("set local seed = 0.5", "local setting, random seed"),
        ("select setseed(0.5)", "random seed"),
        ("select set_config('seed', '0.5', true)", "local setting, random seed"),
        ("select set_config('SEED'::text, '0.5', true)", "local setting, random seed, unclear"),
    ]);
}

#[test]
fn set_config_is_clear_if_its_first_argument_is_there_to_be_read() {
    check(&[
        ("select set_config('a.b', $1, false)", "setting"),
        ("select pg_catalog.set_config('search_path', '', false)", "setting"),
        ("select set_config($1, $2, $3)", "setting, unclear"),
        ("select set_config('se' || 'ed', '1', true)", "local setting, unclear"),
        ("select set_config('se'\n'ed', '1', true)", "local setting, unclear"),
        ("select set_config(E'seed', '1', true)", "local setting, unclear"),
        ("select set_config('\\163eed', '1', true)", "local setting, unclear"),
        ("select set_config($$seed$$, '1', true)", "local setting, unclear"),
        ("select set_config(name, '1', true) from t", "local setting, unclear"),
    ]);
}

/// What a server would not say that it is set to.
#[test]
fn settings_that_are_not_shown_to_everybody() {
    check(&[
        ("set dynamic_library_path = '/tmp'", "setting, unclear"),
        ("set session session_preload_libraries to 'x'", "setting, unclear"),
        ("select set_config('Dynamic_Library_Path', '/tmp', false)", "setting, unclear"),
        ("reset dynamic_library_path", "reset"),
    ]);
}

#[test]
fn set_config_may_be_for_the_transaction() {
    check(&[
        ("select set_config('a.b', f(1, 2), true)", "local setting"),
        ("select set_config('a.b', 'c', TRUE), 1", "local setting"),
        ("select set_config('a.b', 'c', true and false)", "setting"),
        ("select set_config('a.b', 'c', not true)", "setting"),
        ("select set_config('a.b', 'c', 'true')", "setting"),
        ("select set_config('a.b', 'c', (true))", "setting"),
        ("select set_config('a.b', set_config('c.d', 'e', true), false)", "local setting, setting"),
        (
            "select set_config('a.b', 'c', true), set_config('c.d', 'e', false)",
            "local setting, setting",
        ),
        ("select set_config('a.b', 'c', true", "setting"),
        ("select set_config('a.b', 'c', true; select 1)", "setting"),
    ]);
}

#[test]
fn temporary_relations_pin() {
    check(&[
        ("create temp table t (a int)", "temp table"),
        ("create temporary table t as select 1", "temp table"),
        ("create local temp table t (a int)", "temp table"),
        ("create global temporary table t (a int)", "temp table"),
        ("create temp view v as select 1", "temp table"),
        ("create or replace temp view v as select 1", "temp table"),
        ("create temp recursive view v (a) as select 1", "temp table"),
        ("create temp sequence s", "temp table"),
        ("explain analyze create temp table t as select 1", "temp table"),
        ("select 1 into temp t", "temp table"),
        ("select 1 into local temporary table t", "temp table"),
        ("with a as (select 1) select * into temp t from a", "temp table"),
        ("create table pg_temp.t (a int)", "schema change, temp table"),
        ("select * from pg_temp_3.t", "temp table"),
        ("create table \"pg_temp\".t (a int)", "schema change, temp table"),
        ("create temp table t (a int) on commit preserve rows", "temp table"),
        ("create temp table t (a int) on commit delete rows", "temp table"),
        ("create temp table t (a int) on commit drop", "transient table"),
        ("create temp table t on commit drop as select 1", "transient table"),
        ("insert into temp values (1)", ""),
        ("insert into temp select temp from temp", ""),
        ("select temp, temporary from create_temp", ""),
        ("select nspname from pg_namespace where nspname !~ 'pg_temp'", ""),
        ("drop table on commit drop; create temp table t (a int)", "temp table"),
        ("create temp table t (a int); on commit drop", "temp table"),
    ]);
}

#[test]
fn a_search_path_may_make_tables_temporary() {
    check(&[
        ("set local search_path = pg_temp", "local setting, temp table"),
        ("set local search_path = 'pg_temp'", "local setting, temp table"),
        ("set local search_path = a, 'PG_TEMP'", "local setting, temp table"),
        ("set local \"search_path\" = 'pg_temp_3'", "local setting, temp table"),
        ("set local schema 'pg_temp'", "local setting, temp table"),
        ("set local search_path = 'pg_'\n'temp'", "local setting, temp table"),
        ("set local search_path = E'pg\\x5ftemp'", "local setting, temp table"),
        ("set local search_path = U&'pg\\005ftemp'", "local setting, temp table"),
        ("set local search_path = 'a', 'b'", "local setting"),
        ("set local x = 'pg_temp'", "local setting"),
    ]);
}

#[test]
fn a_search_path_set_by_call_may_make_tables_temporary() {
    check(&[
        ("select set_config('search_path', 'pg_temp', true)", "local setting, temp table"),
        ("select set_config('Search_Path', 'a, \"PG_TEMP\"', false)", "setting, temp table"),
        // Where a table is made these are looked at.
        ("select set_config('search_path', $1, true)", "local setting"),
        ("select set_config('search_path', a.b, true) from a", "local setting"),
        ("select set_config('search_path', 'pg_' || 'temp', true)", "local setting"),
        ("select set_config('search_path', E'pg\\x5ftemp', true)", "local setting"),
        ("select set_config('search_path', $$pg_temp$$, true)", "local setting"),
        (
            "select set_config('search_path', set_config('a.b', 'c', true), true)",
            "local setting, setting",
        ),
        ("select pg_catalog.set_config('search_path', '', false)", "setting"),
        ("select set_config('search_path', 'a, b', true)", "local setting"),
        ("select set_config('search_path', 'a', $1)", "setting"),
        ("select set_config('a.b', 'pg_temp', true)", "local setting"),
        ("select set_config('a.b', $1, true), 'pg_temp'", "local setting"),
    ]);
}

/// What may have committed a transaction when its server is lost.
#[test]
fn what_may_commit_is_found() {
    check(&[
        ("commit", "commit"),
        ("COMMIT AND CHAIN", "commit"),
        ("commit prepared 'x'", "commit, schema change"),
        ("end", "commit"),
        ("/* */ End work;", "commit"),
        ("select 1; commit", "commit"),
        ("prepare transaction 'x'", "commit"),
        ("rollback prepared 'x'", "commit"),
        ("rollback; insert into t values (1)", "commit"),
        ("abort", "commit"),
        ("select case when a then b end from commit", ""),
        ("\"commit\"", ""),
        ("create temp table t () on commit drop", "transient table"),
    ]);
}

#[test]
fn statements_that_stay_pin() {
    check(&[
        ("listen c", "listen"),
        ("prepare p as select 1", "prepared statement"),
        ("prepare p (int) as select $1", "prepared statement"),
        ("prepare transaction as select 1", "prepared statement"),
        ("prepare transaction (int) as select 1", "prepared statement"),
        ("prepare transaction 'x'", "commit"),
        ("load 'lib'", "library"),
        ("declare c cursor with hold for select 1", "hold cursor"),
        ("declare cursor no scroll cursor with hold for select 1", "hold cursor"),
        ("declare c cursor without hold for select 1", ""),
        ("declare c cursor for with hold as (select 1) select * from hold", ""),
        ("declare c cursor for select 1", ""),
    ]);
}

#[test]
fn calls_pin_however_they_are_written() {
    check(&[
        ("select pg_advisory_lock(1)", "advisory lock"),
        ("select pg_catalog . pg_try_advisory_lock ( 1 )", "advisory lock"),
        ("select \"pg_advisory_lock_shared\" (1)", "advisory lock"),
        ("select (1::int8).pg_advisory_lock", "advisory lock"),
        ("select a[1] . \"pg_advisory_lock\"", "advisory lock"),
        ("select $1.pg_advisory_lock", "advisory lock"),
        ("select (t).on.pg_advisory_lock", "advisory lock"),
        ("select (t).nextval.pg_advisory_lock from t", "advisory lock, sequence"),
        ("select nextval('s')", "sequence"),
        ("select setval('s', 1)", "sequence"),
        ("select CURRVAL('s'), nextval('s')", "last value, sequence"),
        ("select pg_catalog.lastval ()", "last value"),
        ("select currval(pg_get_serial_sequence('t', 'id'))", "last value"),
        ("select ('s'::regclass).currval", "last value"),
        ("select last_value from s", ""),
        ("select lastval, currval from t", ""),
        ("select pg_sequence_last_value('s')", ""),
        ("insert into t values (nextval('s'))", "sequence"),
        ("select dblink_connect('c', '')", "extension"),
        ("select hll_set_max_sparse(1)", "extension"),
        ("select public.isn_weak(true)", "extension"),
        ("select ST_GeneratePoints(a, 1, 2) from t", "random seed"),
        ("select ST_FromFlatGeobufToTable('pg_temp', 't', a) from u", "temp table"),
        ("select pg_backup_start('b')", "backup"),
        ("select query_to_xml('select 1', true, true, '')", "unclear"),
        ("select * from crosstab('select 1') as t (a int)", "unclear"),
        ("select * from tf.crosstab2($1)", "unclear"),
        ("select pg_advisory_xact_lock(1), pg_advisory_unlock(1), pg_advisory_unlock_all()", ""),
        ("select nextval, setseed from t", ""),
        ("select x.setseed from random() as x", "random seed"),
        ("select s.t . \"setseed\" from s.t", "random seed"),
        ("select t.setseed", "random seed"),
        ("select ordinality.setseed from random() as ordinality", "random seed"),
        ("select t.setseed.a from t", ""),
        ("select t.set_config from t", ""),
        ("select nextval.a (1)", ""),
        ("select 'nextval' (1)", ""),
    ]);
}

/// `TREAT(a AS f)` is the call of a function `f` of `pg_catalog`, whatever is said by its name
/// elsewhere.
#[test]
fn treat_calls_what_stands_behind_its_as() {
    check(&[
        ("select treat(0.5 as setseed)", "unclear"),
        ("select TREAT /**/ ( ('q'::regclass) AS nextval )", "unclear"),
        ("select treat(1::bigint as pg_catalog.\"pg_advisory_lock\")", "advisory lock, unclear"),
        ("select lower(treat((select max(a) from t) as f))", "unclear"),
        ("select treat(treat(1 as f) as g)", "unclear"),
        ("create index on treat (treat(a as f))", "schema change, unclear"),
        ("select treat, t.treat, (t).treat from t as treat", ""),
        ("insert into treat (a, b) values (cast(1 as int), 2)", ""),
        ("with treat (a) as (select 1) select a as b from treat", ""),
        ("select s.treat(1) as a, \"treat\" (2) as b", ""),
    ]);
}

#[test]
fn every_function_of_the_table_counts_as_a_call_only() {
    for rule in RULES.iter().filter(|rule| matches!(rule.form, Form::Call | Form::SettingCall)) {
        let name = rule.name;
        assert_eq!(classify(format!("SELECT {name} FROM {name}").as_bytes()), Pins::NONE);
        let called = classify(format!("SELECT {name}/**/('x', 1)").as_bytes());
        assert_eq!(called, rule.reason.into(), "{name}");
    }
}

#[test]
fn a_name_in_unicode_escapes_is_unclear() {
    check(&[
        (r#"select U&"set\005fconfig"('a', 'b', false)"#, "unclear"),
        (r#"select u&"set!005fconfig" UESCAPE '!' ('a', 'b', false)"#, "unclear"),
        (r#"select 1 as U&"x""#, "unclear"),
    ]);
    free(&[r"select U&'\0061'"]);
}

#[test]
fn an_update_of_pg_settings_is_a_set() {
    check(&[
        ("update pg_settings set setting = '1' where name = 'x'", "setting"),
        ("update only pg_catalog.pg_settings as s set setting = $1", "setting"),
        ("update only (pg_catalog . \"pg_settings\") set setting = $1", "setting"),
        ("update d.pg_catalog.pg_settings * set setting = $1", "setting"),
        ("with w as (select 1) update \"pg_settings\" set setting = $1", "setting"),
        ("explain analyze update pg_settings set setting = $1", "setting"),
        ("update U&\"pg\\005fsettings\" set setting = $1", "unclear"),
        ("update t set a = (select setting from pg_settings limit 1)", "setting"),
        ("select setting from pg_settings where name = 'x'", ""),
        ("select * from pg_catalog.pg_settings for update", ""),
        ("insert into t select setting from pg_settings", ""),
        ("update t set pg_setting = 1", ""),
        ("update t set a = 1; select * from pg_settings", ""),
        ("select \"update\" from pg_settings", ""),
    ]);
}

#[test]
fn both_readings_of_a_backslash_count() {
    for (text, expected) in [
        (r"select '\'; set x = 1; select '", "setting"),
        (r"select '\'; listen c; --'; set x = 1", "listen, setting"),
        (r"select '\' ; listen c", "listen"),
        (r"select '\\'; listen c", "listen"),
        (r"select 'a' like '\' escape '\'", ""),
        (r"select E'\'; set x = 1; select '", ""),
        (r#"select "\"; listen c; select ""#, "listen"),
    ] {
        assert_eq!(classify(text.as_bytes()).to_string(), expected, "{text}");
    }
}

#[test]
fn literals_and_comments_hide_what_is_in_them() {
    for text in [
        "select 'x; set y = 1'",
        "select e'x; set y = 1'",
        "select $a$; listen c $$ ; listen d $a$",
        "select 1 -- ; set y = 1",
        "select 1 /* ; /* set y = 1 */ ; listen c */",
        "select \"; set x = 1\" from t",
    ] {
        assert_eq!(classify(text.as_bytes()), Pins::NONE, "{text}");
    }
}

#[test]
fn a_classifier_is_small() {
    assert!(size_of::<Classifier>() <= 352, "{}", size_of::<Classifier>());
}

/// The catalogue of a database in which there is nothing.
static EMPTY: LazyLock<Arc<Loud>> = LazyLock::new(|| Arc::new(Catalogue::default().loud()));

fn in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Pins, Sharing) {
    let mut classifier = Classifier::new().knowing(&EMPTY);
    pieces.into_iter().for_each(|piece| classifier.feed(piece));
    let heard = classifier.finish_hearing();
    (heard.pins, heard.sharing)
}

/// Texts of what decides: the table's words, their neighbours, and everything that quotes.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let around = [
        "'",
        "''",
        "\"",
        "\\",
        "\\'",
        "E'",
        "U&\"",
        "u&'",
        "$$",
        "$a$",
        "$1",
        "/*",
        "*/",
        "--",
        "\n",
        ";",
        ";",
        "(",
        ")",
        ".",
        ",",
        "LOCAL",
        "SESSION",
        "TRANSACTION",
        "CREATE",
        "OR",
        "REPLACE",
        "INTO",
        "INSERT",
        "CURSOR",
        "WITH",
        "ON",
        "COMMIT",
        "DROP",
        "UPDATE",
        "SCHEMA",
        "search_path",
        "'seed'",
        "'pg_temp'",
        "SELECT",
        "SELECT",
        "VALUES",
        "FOR",
        "SHARE",
        "AS",
        "DISTINCT",
        "OPERATOR",
        "RETURNING",
        "lower",
        "pg_locks",
        "\"lower\"",
        "x",
        "1",
    ];
    let words: Vec<_> = around.into_iter().chain(RULES.iter().map(|rule| rule.name)).collect();
    let gap = prop::sample::select(vec!["", " ", " "]);
    let fragment = (prop::sample::select(words), gap);
    prop::collection::vec(fragment, 0..30).prop_map(|fragments| {
        fragments.into_iter().flat_map(|(word, gap)| [word, gap]).collect::<String>().into_bytes()
    })
}

#[test]
fn a_word_without_its_parenthesis_says_the_same_in_pieces() {
    let text: &[u8] = b"SELECT operator) y(1)";
    assert_eq!(in_pieces(text.chunks(1)), in_pieces([text]));
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        text in soup(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = in_pieces([&text[..]]);
        assert_eq!(whole.0, classify(&text));
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        assert_eq!(in_pieces(cuts.windows(2).map(|cut| &text[cut[0]..cut[1]])), whole);
        assert_eq!(in_pieces(text.chunks(1)), whole);
    }

    #[test]
    fn more_text_takes_no_pin_back(text in soup(), more in soup()) {
        let mut statement = text.clone();
        statement.push(b';');
        // Where the `;` stands in a literal, what is created may turn out to be temporary.
        let pins = classify(&statement).without(PinReason::Schema);
        statement.extend_from_slice(&more);
        assert_eq!(classify(&statement).union(pins), classify(&statement));
    }

    #[test]
    fn every_text_has_an_answer(text in prop::collection::vec(any::<u8>(), 0..300)) {
        assert_eq!(in_pieces(text.chunks(5)), in_pieces([&text[..]]));
    }
}

#[test]
fn statements_are_counted() {
    let count = |text: &[u8]| {
        let mut classifier = Classifier::new();
        classifier.feed(text);
        classifier.finish_hearing().statements
    };
    assert_eq!(count(b""), 0);
    assert_eq!(count(b" ; /* ; */ ; -- ;"), 0);
    assert_eq!(count(b"SELECT ';'"), 1);
    assert_eq!(count(b"SELECT 1;"), 1);
    assert_eq!(count(b"BEGIN; INSERT INTO a VALUES ($a$;$a$);; (SELECT 1);COMMIT;"), 4);
    // Two readings: the longer one counts.
    assert_eq!(count(br"SELECT 'a\'; SELECT 1; SELECT 2 --'"), 3);
}

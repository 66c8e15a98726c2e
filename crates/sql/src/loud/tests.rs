use std::collections::BTreeSet;
use std::sync::Arc;

use super::body::{Body, Language};
use super::{Catalogue, Kind, Loud, Object, ObjectId, Source, Use, When, hear};
use crate::{Alone, Encoding, Sharing};

/// What a body does, as words, and the custom settings that it may change.
fn does(text: &str) -> (String, Vec<String>) {
    let body = Body::read(text.as_bytes(), Language::Plpgsql, Encoding::Exact, false);
    let custom = body.custom.iter().map(|name| String::from_utf8_lossy(name).into_owned());
    (body.pins.to_string(), custom.collect())
}

fn function(oid: u32, name: &str, source: Source) -> Object {
    Object {
        id: (Kind::Function, oid),
        name: name.to_owned(),
        source,
        is_quiet: false,
        is_immutable: false,
    }
}

fn plpgsql(oid: u32, name: &str, body: &str) -> Object {
    function(oid, name, Source::Plpgsql(body.to_owned()))
}

fn sql(oid: u32, name: &str, body: &str) -> Object {
    function(oid, name, Source::Sql(body.to_owned()))
}

fn relation(oid: u32, name: &str) -> Object {
    let id = (Kind::Relation, oid);
    Object { id, name: name.to_owned(), source: Source::None, is_quiet: false, is_immutable: false }
}

fn uses(by: ObjectId, of: ObjectId, when: When) -> Use {
    Use { by, of, when, through: "trigger t".to_owned() }
}

fn loud(objects: Vec<Object>, uses: Vec<Use>) -> Arc<Loud> {
    Arc::new(Catalogue { objects, uses }.loud())
}

/// What a text leaves where these names are loud.
fn leaves(text: &str, loud: &Arc<Loud>) -> String {
    hear(text.as_bytes(), Encoding::Superset, loud).pins.to_string()
}

#[test]
fn bodies_that_change_the_session() {
    for (body, pins) in [
        ("BEGIN PERFORM set_config('app.x', 'y', false); END", "setting"),
        ("BEGIN SET search_path = a; RETURN NEW; END", "setting"),
        ("BEGIN IF x THEN RESET ALL; END IF; END", "reset"),
        ("BEGIN SET work_mem TO DEFAULT; END", "reset, setting"),
        ("BEGIN IF x THEN y := 1; ELSE LISTEN jobs; END IF; END", "listen"),
        ("DECLARE a int; BEGIN LOOP LOAD 'x'; END LOOP; END", "library"),
        ("BEGIN CREATE TEMP TABLE t (a int); END", "temp table"),
        ("BEGIN PERFORM pg_advisory_lock(1); END", "advisory lock"),
        ("BEGIN NEW.id := nextval('s'); RETURN NEW; END", "sequence"),
        ("BEGIN RETURN (SELECT lastval()); END", "last value"),
        ("BEGIN PERFORM setseed(0.5); END", "random seed"),
        ("BEGIN DEALLOCATE ALL; END", "end of state, names"),
        ("BEGIN EXECUTE 'DEALLOCATE s'; END", "end of state, names"),
        ("BEGIN EXECUTE 'EXECUTE s' INTO x; END", "names"),
        ("BEGIN PREPARE s AS SELECT 1; END", "prepared statement"),
        ("BEGIN EXECUTE cmd; END", "unclear"),
        ("BEGIN PERFORM TREAT(1::bigint AS pg_advisory_lock); END", "unclear"),
        ("BEGIN a := TREAT(CASE WHEN b THEN 1 ELSE c END AS setseed); END", "unclear"),
        ("BEGIN EXECUTE 'CREATE TABLE ' || name; END", "unclear"),
        ("BEGIN EXECUTE 'SET work_mem = 1'; END", "setting"),
        (r"BEGIN a := 'b\''; IF c THEN d := X'\'; END IF; LISTEN e; f := '\''; END", "listen"),
        (r"BEGIN EXECUTE $q$SELECT 'a\', ' || f() || ' b'$q$ INTO r; END", "unclear"),
        ("BEGIN RETURN QUERY EXECUTE format('SELECT %s', x); END", "unclear"),
        ("BEGIN PERFORM set_config(name, value, false); END", "setting, unclear"),
        (
            "BEGIN PERFORM set_config('search_path', 'pg_temp', true); END",
            "local setting, temp table",
        ),
        ("BEGIN PERFORM set_config('search_path', a, true); END", "local setting"),
        ("BEGIN SELECT setseed INTO a (0.5); END", "random seed"),
        ("BEGIN SELECT x. INTO a, $1 setseed FROM abs(0.5) AS x; END", "random seed"),
        ("BEGIN SELECT INTO $1 1, set_config('work_mem', '1MB', false); END", "setting"),
        (
            "BEGIN PERFORM x.into > 5, setseed(0.5) FROM (SELECT 6 AS \"into\") x; END",
            "random seed",
        ),
        ("BEGIN RETURN QUERY SELECT x.into a, setseed(b) FROM x; END", "random seed"),
        ("BEGIN IF x.into, y.setseed IS NULL THEN END IF; END", "random seed"),
        ("BEGIN a := x.into + $1, setseed(0.5); END", "random seed"),
        ("BEGIN FOR a IN SELECT x.into b, nextval(c) FROM x LOOP END LOOP; END", "sequence"),
        ("BEGIN SELECT 1 AS insert INTO TEMP a; END", "temp table"),
        ("BEGIN FOR a IN EXPLAIN ANALYZE SELECT 1 INTO TEMP b LOOP END LOOP; END", "temp table"),
    ] {
        assert_eq!(does(body).0, pins, "{body}");
    }
}

#[test]
fn bodies_that_leave_nothing() {
    for body in [
        "BEGIN UPDATE t SET a = 1 WHERE b = 2; RETURN NEW; END",
        "BEGIN PERFORM set_config('app.x', NEW.y, true); RETURN NEW; END",
        "BEGIN SET LOCAL search_path = a; END",
        "BEGIN CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1; END",
        "BEGIN PERFORM pg_advisory_xact_lock(1); COMMIT; END",
        "BEGIN EXECUTE 'SELECT count(*) FROM a_table_whose_name_is_rather_long_as_names_are_here' \
         INTO n USING x; END",
        "BEGIN RAISE NOTICE 'SET %', x; -- SET a = 1\n END",
        "BEGIN CASE WHEN a THEN b := 1; ELSE b := 2; END CASE; END",
        "BEGIN SELECT a, b INTO STRICT temp, lastval FROM t; FETCH c INTO nextval; END",
        "BEGIN INSERT INTO t (a) VALUES (1) RETURNING a, b INTO c, $12; END",
    ] {
        let pins = does(body).0;
        assert!(pins.is_empty() || pins == "local setting", "{pins}: {body}");
    }
}

#[test]
fn custom_settings_of_bodies() {
    let (_, custom) = does(
        "BEGIN SET App.Tenant = 'x'; PERFORM set_config('app.user', 'y', false); \
         EXECUTE 'RESET app.other'; END",
    );
    assert_eq!(custom, ["app.other", "app.tenant", "app.user"]);
}

#[test]
fn what_calls_a_loud_function_is_loud() {
    let list = loud(
        vec![
            plpgsql(1, "inner_f", "BEGIN PERFORM pg_advisory_lock(1); END"),
            sql(2, "outer_f", "SELECT public.inner_f()"),
            sql(3, "quiet_f", "SELECT now()"),
        ],
        vec![],
    );
    let names: Vec<_> = list.iter().map(|(name, _)| name).collect();
    assert_eq!(names, [b"inner_f", b"outer_f"]);
    assert_eq!(leaves("SELECT * FROM outer_f()", &list), "advisory lock");
    assert_eq!(leaves("select OUTER_F()", &list), "advisory lock");
    assert_eq!(leaves("SELECT \"outer_f\"()", &list), "advisory lock");
    assert_eq!(leaves("SELECT 'outer_f', outer_g(), quiet_f()", &list), "");
    let why = list.iter().map(|(_, effect)| effect.why.as_str()).collect::<Vec<_>>();
    assert_eq!(why, ["advisory lock", "inner_f (advisory lock)"]);
}

/// Names are folded in ASCII alone, in quotes and without.
#[test]
fn names_beyond_ascii_are_those_of_the_catalogue() {
    let loud = loud(
        vec![
            sql(1, "\u{c4}ndern", "SELECT set_config('work_mem', '9MB', false)"),
            sql(2, "ruft", "SELECT \"\u{c4}ndern\"()"),
            sql(3, &"\u{e4}".repeat(31), "SELECT set_config('work_mem', '9MB', false)"),
            plpgsql(4, "ruft_lang", &format!("BEGIN PERFORM {}(); END", "\u{e4}".repeat(32))),
        ],
        vec![],
    );
    for text in ["SELECT ruft()", "SELECT ruft_lang()"] {
        assert_eq!(leaves(text, &loud), "setting", "{text}");
    }
}

/// What PostgreSQL makes of a name that goes beyond ASCII is known in UTF-8 alone: it may be that
/// of something loud, or end before the first such character when it is cut off.
#[test]
fn names_beyond_ascii_may_be_loud_in_other_encodings() {
    let set = |name: &str| sql(1, name, "SELECT set_config('work_mem', '9MB', false)");
    let of = |name: &str, encoding, text: &str| {
        hear(text.as_bytes(), encoding, &loud(vec![set(name)], vec![])).pins.to_string()
    };
    let (long, short) = ("\u{e4}".repeat(31), "x".repeat(62));
    for (name, text, exactly, otherwise) in [
        (&*long, format!("SELECT {long}\u{e4}()"), "setting", "unclear"),
        (&*long, format!("SELECT \"{long}\u{e4}\"()"), "setting", "unclear"),
        (&*long, "SELECT \u{f6} FROM t".to_owned(), "", "unclear"),
        (&*long, format!("SELECT {short} FROM t"), "", ""),
        (&*short, format!("SELECT {short}\u{e4}()"), "setting", "unclear"),
        (&*short, format!("SELECT {short}\u{e4}\u{e4}()"), "setting", "unclear"),
        (&*short, format!("DO $$BEGIN PERFORM {short}\u{e4}(); END$$"), "setting", "unclear"),
        (&*short, format!("SELECT {}() AS a", "\u{e4}".repeat(29)), "", ""),
        ("f", "SELECT \u{f6} FROM t".to_owned(), "", ""),
        ("fix", "SELECT f\u{130}x()".to_owned(), "", "unclear"),
        ("fix", "DO $$BEGIN PERFORM F\u{130}X(); END$$".to_owned(), "", "unclear"),
        ("f", format!("SELECT {short}\u{e4}()"), "", ""),
    ] {
        assert_eq!(of(name, Encoding::Exact, &text), exactly, "{text}");
        assert_eq!(of(name, Encoding::Superset, &text), otherwise, "{text}");
    }
}

#[test]
fn functions_may_call_each_other() {
    let list = loud(
        vec![
            plpgsql(1, "even", "BEGIN RETURN odd(n - 1); END"),
            plpgsql(2, "odd", "BEGIN LISTEN x; RETURN even(n - 1); END"),
        ],
        vec![],
    );
    assert_eq!(leaves("SELECT even(2)", &list), "listen");
}

#[test]
fn triggers_count_for_whatever_changes_tables() {
    let table = (Kind::Relation, 10);
    let list = loud(
        vec![plpgsql(1, "audit", "BEGIN SET a.b = 1; RETURN NEW; END"), relation(10, "orders")],
        vec![uses(table, (Kind::Function, 1), When::Written)],
    );
    assert_eq!(leaves("SELECT * FROM orders", &list), "");
    for text in [
        "INSERT INTO orders VALUES (1)",
        "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
        "UPDATE public.orders SET a = 1",
        "COPY orders FROM STDIN",
        "MERGE INTO orders USING x ON true WHEN MATCHED THEN DELETE",
        "TRUNCATE orders",
    ] {
        assert_eq!(leaves(text, &list), "setting", "{text}");
    }
    let heard = hear(b"INSERT INTO orders VALUES (1)", Encoding::Superset, &list);
    let unseen = heard.unseen.unwrap();
    assert_eq!(unseen.name, "orders");
    assert_eq!(unseen.custom, BTreeSet::from([Box::from(&b"a.b"[..])]));
}

/// No default is computed where rows are changed or removed that are there.
#[test]
fn defaults_count_for_whatever_makes_rows() {
    let (orders, lines, notes) = ((Kind::Relation, 10), (Kind::Relation, 11), (Kind::Relation, 12));
    let list = loud(
        vec![
            function(1, "nextval", Source::Builtin),
            relation(10, "orders"),
            relation(11, "lines"),
            relation(12, "notes"),
            relation(13, "seen"),
            plpgsql(2, "touches", "BEGIN UPDATE orders SET a = 1; END"),
            plpgsql(3, "makes", "BEGIN INSERT INTO orders VALUES (1); END"),
        ],
        vec![
            uses(orders, (Kind::Function, 1), When::Filled),
            uses(lines, orders, When::Changed),
            uses(notes, orders, When::Written),
            uses((Kind::Relation, 13), orders, When::Always),
        ],
    );
    for (text, closed) in [
        ("SELECT a FROM orders", true),
        ("SELECT a FROM orders FOR UPDATE", true),
        ("UPDATE orders SET a = 1 WHERE id = 2", true),
        ("DELETE FROM orders", true),
        ("UPDATE seen SET a = 1", true),
        ("DELETE FROM lines", true),
        ("SELECT touches()", true),
        ("INSERT INTO orders VALUES (1)", false),
        ("INSERT INTO seen VALUES (1)", false),
        ("UPDATE orders SET id = DEFAULT", false),
        ("WITH x AS (INSERT INTO orders VALUES (1)) UPDATE t SET a = 1", false),
        ("MERGE INTO orders USING t ON true WHEN NOT MATCHED THEN INSERT VALUES (1)", false),
        ("DELETE FROM notes", false),
        ("SELECT makes()", false),
    ] {
        let heard = hear(text.as_bytes(), Encoding::Superset, &list);
        let is_alone = heard.sharing == Sharing::Alone(Alone::Pin)
            || heard.sharing == Sharing::Alone(Alone::Opaque);
        assert_eq!(is_alone, !closed, "{text}: {:?}", heard.sharing);
        let leaves = heard.pins.contains(crate::PinReason::Sequence);
        assert_eq!(leaves, !closed, "{text}: {}", heard.pins);
    }
}

/// Defaults, checks and expressions of indexes are computed by commands too that change no row.
#[test]
fn commands_for_tables_do_what_a_change_of_their_rows_does() {
    let table = (Kind::Relation, 10);
    let list = loud(
        vec![
            sql(1, "nexts", "SELECT nextval('s')"),
            plpgsql(2, "computes", "BEGIN PERFORM setseed(0.5); RETURN a; END"),
            relation(10, "orders"),
            plpgsql(3, "analyzes", "BEGIN ANALYZE orders; END"),
        ],
        vec![
            uses(table, (Kind::Function, 1), When::Written),
            uses(table, (Kind::Function, 2), When::Written),
        ],
    );
    for text in [
        "ALTER TABLE orders ADD n serial",
        "ALTER TABLE orders VALIDATE CONSTRAINT c",
        "ANALYZE orders",
        "analyse (verbose) orders",
        "CLUSTER orders USING i",
        "REFRESH MATERIALIZED VIEW orders",
        "REINDEX TABLE orders",
        "VACUUM FULL orders",
        "SELECT 1; /* a */ Vacuum (ANALYZE) orders",
        "DO $$ BEGIN ANALYZE orders; END $$",
        "SELECT analyzes()",
    ] {
        let pins = leaves(text, &list);
        let pins = pins.strip_prefix("schema change, ").unwrap_or(&pins);
        assert_eq!(pins.replace(", schema change", ""), "random seed, sequence", "{text}");
    }
    for text in [
        "EXPLAIN ANALYZE SELECT a FROM orders",
        "COMMENT ON TABLE orders IS 'x'",
        "LOCK TABLE orders",
        "SELECT vacuum, cluster FROM orders AS index",
    ] {
        assert_eq!(leaves(text, &list), "", "{text}");
    }
    for text in ["CREATE INDEX ON orders (a)", "CREATE TABLE t AS TABLE orders"] {
        assert_eq!(leaves(text, &list), "schema change", "{text}");
    }
}

#[test]
fn a_function_that_changes_a_table_does_what_its_triggers_do() {
    let table = (Kind::Relation, 10);
    let list = loud(
        vec![
            plpgsql(1, "audit", "BEGIN LOAD 'x'; RETURN NEW; END"),
            relation(10, "orders"),
            plpgsql(2, "place_order", "BEGIN INSERT INTO orders VALUES (1); END"),
            plpgsql(3, "count_orders", "BEGIN RETURN (SELECT count(*) FROM orders); END"),
        ],
        vec![uses(table, (Kind::Function, 1), When::Written)],
    );
    assert_eq!(leaves("SELECT place_order()", &list), "library");
    assert_eq!(leaves("SELECT count_orders()", &list), "");
}

#[test]
fn quiet_functions_are_believed() {
    let mut quiet = plpgsql(1, "partition", "BEGIN EXECUTE cmd; END");
    quiet.is_quiet = true;
    let list = loud(vec![quiet, sql(2, "caller", "SELECT partition()")], vec![]);
    assert!(list.is_empty());
}

#[test]
fn postgresqls_own_functions_count_where_no_text_shows_them() {
    let view = (Kind::Relation, 10);
    let own = |oid, name| function(oid, name, Source::Builtin);
    let list = loud(
        vec![
            own(1, "nextval"),
            own(2, "set_config"),
            own(3, "currval"),
            relation(10, "v"),
            relation(11, "serial"),
            relation(12, "line"),
        ],
        vec![
            uses(view, (Kind::Function, 2), When::Always),
            uses((Kind::Relation, 11), (Kind::Function, 1), When::Written),
            uses((Kind::Relation, 12), (Kind::Function, 3), When::Written),
        ],
    );
    assert_eq!(leaves("SELECT * FROM v", &list), "setting, unclear");
    assert_eq!(leaves("INSERT INTO serial DEFAULT VALUES", &list), "sequence");
    assert!(hear(b"INSERT INTO serial DEFAULT VALUES", Encoding::Superset, &list).unseen.is_none());
    assert_eq!(leaves("SELECT nextval('s')", &list), "sequence");
    assert_eq!(leaves("INSERT INTO line DEFAULT VALUES", &list), "last value");
    assert_eq!(leaves("SELECT * FROM serial, line", &list), "");
    let like = "CREATE TEMP TABLE x (LIKE serial INCLUDING DEFAULTS) ON COMMIT DROP";
    assert_eq!(leaves(like, &list), "sequence, transient table");
    let block = "DO $$ BEGIN INSERT INTO serial DEFAULT VALUES; PERFORM * FROM line; END $$";
    assert_eq!(leaves(block, &list), "last value, sequence");
}

/// An UPDATE of that view calls `set_config`, through whatever view it comes.
#[test]
fn views_of_pg_settings_set() {
    let own = (Kind::Relation, 1);
    let pg_settings = Object { source: Source::Builtin, ..relation(1, "pg_settings") };
    let list = loud(
        vec![
            pg_settings,
            relation(20_000, "theirs"),
            relation(20_001, "ours"),
            sql(20_002, "by_function", "UPDATE ours SET setting = 1"),
            sql(20_003, "reads", "SELECT setting FROM theirs"),
        ],
        vec![
            uses((Kind::Relation, 20_000), own, When::Always),
            uses((Kind::Relation, 20_001), (Kind::Relation, 20_000), When::Always),
        ],
    );
    for text in [
        "UPDATE theirs SET setting = $1 WHERE name = 'work_mem'",
        "WITH x AS (UPDATE ours SET setting = '1' RETURNING 1) TABLE x",
        "SELECT by_function()",
    ] {
        assert_eq!(leaves(text, &list), "setting, unclear", "{text}");
    }
    assert_eq!(leaves("SELECT setting FROM ours WHERE reads() = 1", &list), "");
}

#[test]
fn blocks_are_read() {
    const SCHEMA: &str = "schema change";
    let list = loud(vec![plpgsql(1, "f", "BEGIN PERFORM setseed(1); END")], vec![]);
    for (text, pins) in [
        ("DO $$ BEGIN SET a = 1; END $$", "setting"),
        ("DO LANGUAGE plpgsql $x$ BEGIN PERFORM f(); END $x$", "random seed"),
        ("do 'BEGIN PERFORM pg_advisory_lock(1); END'", "advisory lock"),
        ("do 'BEGIN EXECUTE ''SET a = 1''; END'", "schema change, setting"),
        ("DO $$ BEGIN CREATE VIEW v AS SELECT 1; END $$", SCHEMA),
        ("DO $$ BEGIN IF a THEN Alter TABLE t ADD b int; END IF; END $$", SCHEMA),
        ("DO $$ BEGIN UPDATE pg_proc SET prosrc = 'x'; END $$", SCHEMA),
        ("DO $$ BEGIN SELECT 1 AS insert INTO t; END $$", SCHEMA),
        ("DO $$ BEGIN UPDATE t SET created = 1, a_create = 2; END $$", ""),
        (
            "DO $$ BEGIN PERFORM set_config('search_path', a, true); CREATE TABLE t (); END $$",
            "local setting, schema change, temp table",
        ),
        (
            "DO $$ BEGIN SET LOCAL a = 1; EXECUTE 'SET b = 1'; END $$",
            "local setting, schema change, setting",
        ),
        ("DO E'BEGIN NULL; END'", "schema change, unclear"),
        ("DO LANGUAGE plperl $$ anything $$", "schema change, unclear"),
        ("DO $$ anything $$ LANGUAGE plperl", "schema change, unclear"),
        ("DO LANGUAGE plperl $$ # was plpgsql once $$", "schema change, unclear"),
        ("DO $$ # plpgsql $$ /* plpgsql */ LANGUAGE \"plperl\"", "schema change, unclear"),
        ("DO LANGUAGE 'plperl' $$ $$; SELECT 'plpgsql'", "schema change, unclear"),
        ("DO LANGUAGE \"PLpgSQL\" $$ $$", "schema change, unclear"),
        ("DO LANGUAGE E'plperl' $$ $$", "schema change, unclear"),
        ("DO LANGUAGE U&\"plpgsq\\006c\" $$ $$", "schema change, unclear"),
        ("DO LANGUAGE 'plpgsql'\n'2' $$ $$", "schema change, unclear"),
        ("DO LANGUAGE", ""),
        ("DO $$ BEGIN LISTEN x; END $$ Language PLpgSQL", "listen"),
        ("DO LANGUAGE 'plpgsql' $$ BEGIN LISTEN x; END $$", "listen"),
        ("DO LANGUAGE \"plpgsql\" 'BEGIN LISTEN x; END'; SELECT language FROM plperl", "listen"),
        ("DO 'BEGIN LIS'\n'TEN x; END'", "schema change, unclear"),
        ("DO $$ BEGIN LISTEN x; END $$; DO LANGUAGE c $$ $$", "listen, schema change, unclear"),
        ("DO $$ BEGIN UPDATE t SET a = 1; END $$; SELECT 'SET a = 1'", ""),
        ("SELECT 1; DO $$ BEGIN LISTEN x; END $$", "listen"),
    ] {
        assert_eq!(leaves(text, &list), pins, "{text}");
    }
}

#[test]
fn what_is_new_in_a_list() {
    let before = loud(vec![sql(1, "f", "SELECT nextval('s')")], vec![]);
    let after = loud(
        vec![sql(1, "f", "SELECT pg_advisory_lock(1)"), sql(2, "g", "SELECT nextval('s')")],
        vec![],
    );
    assert_eq!(before.news_since(&before), None);
    let news = after.news_since(&before).unwrap();
    assert_eq!(news.pins.to_string(), "advisory lock, sequence");
}

/// What is not read does whatever it likes, unless its language is one of which it is known how
/// that would be written.
#[test]
fn languages_that_are_not_read() {
    let of = |language: &str, text: &str| {
        let source = Source::Other(language.to_owned(), text.to_owned());
        leaves("SELECT f()", &loud(vec![function(1, "f", source)], vec![]))
    };
    for (language, text) in [
        ("plperl", "return $_[0] + 1;"),
        ("plperlu", "use Digest::MD5; return Digest::MD5::md5_hex($_[0]);"),
        ("plpython3u", "return x.upper()"),
        ("pltcl", "return [expr $1 + 1]"),
        ("plv8", "return x + 1;"),
    ] {
        assert_eq!(of(language, text), "", "{language}");
    }
    for (language, text) in [
        ("plperl", "spi_exec_query('SET a.b = 1');"),
        ("plperl", "$_SHARED{tenant} = $_[0];"),
        ("plpython3u", "plpy.execute(x)"),
        ("plpython3u", "GD['tenant'] = x"),
        ("pltcl", "spi_exec $1"),
        ("pltcl", "set GD(tenant) $1"),
        ("plv8", "plv8.execute(x)"),
        ("java", "com.example.Audit.begin"),
        ("plr", "dbGetQuery(c, sql)"),
        ("plrust", "Spi::run(sql)"),
        ("plsh", "#!/bin/sh"),
    ] {
        assert_eq!(of(language, text), "unclear", "{language}");
    }
}

#[test]
fn other_names_for_postgresqls_own_functions() {
    let of = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let list = loud(vec![function(1, "f", Source::Alias(names))], vec![]);
        leaves("SELECT f(1)", &list)
    };
    assert_eq!(of(&["pg_advisory_lock"]), "advisory lock");
    assert_eq!(of(&["abs"]), "");
    assert_eq!(of(&["nextval", "setseed"]), "random seed, sequence");
}

/// What calls itself immutable is computed with the plan. It matters only where it asks for what
/// clients differ in, by itself or by what it calls.
#[test]
fn plans_that_keep_what_was_computed() {
    let asks = "BEGIN RETURN current_setting('app.tenant'); END";
    let immutable = |object| Object { is_immutable: true, ..object };
    let believed = |object| Object { is_quiet: true, ..object };
    let loud = loud(
        vec![
            plpgsql(1, "stable", asks),
            immutable(plpgsql(2, "tenant", asks)),
            immutable(sql(3, "double", "SELECT $1 * 2")),
            immutable(sql(4, "whose", "SELECT stable()")),
            immutable(believed(plpgsql(5, "trusted", asks))),
            immutable(function(6, "machine", Source::Native("other".to_owned()))),
            sql(7, "through", "SELECT tenant()"),
            relation(8, "docs"),
            relation(9, "filled"),
            relation(10, "plain"),
            believed(plpgsql(11, "quiet", asks)),
            immutable(sql(12, "through_quiet", "SELECT quiet()")),
            immutable(function(13, "alias", Source::Alias(vec!["current_setting".to_owned()]))),
            relation(14, "stamped"),
            immutable(sql(15, "me", "SELECT current_user::text")),
        ],
        vec![
            uses((Kind::Relation, 8), (Kind::Function, 2), When::Always),
            uses((Kind::Relation, 9), (Kind::Function, 2), When::Written),
            uses((Kind::Relation, 14), (Kind::Function, 5), When::Written),
        ],
    );
    let sharing = |text: &str| hear(text.as_bytes(), Encoding::Superset, &loud).sharing;
    assert_eq!(sharing("SELECT a FROM stamped"), Sharing::Read);
    assert_eq!(sharing("DELETE FROM stamped"), Sharing::Alone(Alone::Folds));
    assert_eq!(sharing("DELETE FROM plain"), Sharing::Write);
    assert_eq!(sharing("SELECT me()"), Sharing::Alone(Alone::Folds));
    let folds = |text: &str| hear(text.as_bytes(), Encoding::Superset, &loud).folds;
    for text in ["stable(), double(a), machine() FROM plain", "a FROM plain"] {
        assert!(!folds(&format!("SELECT {text}")), "{text}");
    }
    for text in [
        "tenant()",
        "whose()",
        "trusted()",
        "through()",
        "a FROM docs",
        "b FROM filled",
        "through_quiet()",
        "alias('app.tenant')",
        "me()",
    ] {
        assert!(folds(&format!("SELECT {text}")), "{text}");
    }
    // It may be any name, in another encoding.
    assert!(hear("SELECT é()".as_bytes(), Encoding::Superset, &loud).folds);
    let unnamed = Object { id: (Kind::Unnamed, 0), ..relation(0, "") };
    let of = |when| {
        let uses = vec![uses(unnamed.id, (Kind::Function, 2), when)];
        let objects = vec![immutable(plpgsql(2, "tenant", asks)), unnamed.clone()];
        hear(b"SELECT a < b", Encoding::Superset, &Arc::new(Catalogue { objects, uses }.loud()))
            .folds
    };
    assert!(of(When::Always) && of(When::Written));
    // What calls itself immutable may use an operator that asks.
    let objects = vec![plpgsql(1, "asks", asks), immutable(sql(2, "f", "SELECT a ~~~ b")), unnamed];
    let uses = vec![uses((Kind::Unnamed, 0), (Kind::Function, 1), When::Always)];
    assert!(
        hear(b"SELECT f()", Encoding::Superset, &Arc::new(Catalogue { objects, uses }.loud()))
            .folds
    );
}

/// A function keeps the plans of what it runs: that matters where one of them keeps what was
/// computed for whoever came first.
#[test]
fn functions_that_keep_such_plans() {
    let asks = "BEGIN RETURN current_setting('app.tenant'); END";
    let immutable = |object| Object { is_immutable: true, ..object };
    let both = |others: Vec<Object>, used: Vec<Use>| {
        let own = [
            immutable(plpgsql(1, "tenant", asks)),
            relation(2, "docs"),
            relation(3, "view"),
            plpgsql(4, "other", "BEGIN RETURN current_setting('app.tenant'); END"),
        ];
        let policy = uses((Kind::Relation, 2), (Kind::Function, 1), When::Always);
        let view = uses((Kind::Relation, 3), (Kind::Relation, 2), When::Always);
        let objects = own.into_iter().chain(others).collect();
        let loud = loud(objects, [policy, view].into_iter().chain(used).collect());
        assert!(!loud.keeps_plans() || !loud.keeps_plans_of_sql(), "one or the other here");
        (loud.keeps_plans(), loud.keeps_plans_of_sql())
    };
    let keeps = |others, used| both(others, used).0;
    assert!(!keeps(vec![], vec![]), "prepared statements are another matter");
    for body in ["BEGIN RETURN tenant(); END", "BEGIN RETURN QUERY SELECT * FROM view; END"] {
        assert!(keeps(vec![plpgsql(5, "f", body)], vec![]), "{body}");
        let quiet = Object { is_quiet: true, ..plpgsql(5, "f", body) };
        assert!(keeps(vec![quiet], vec![]), "{body}");
    }
    let in_sql = vec![sql(5, "f", "SELECT count(*) FROM docs")];
    assert_eq!(both(in_sql, vec![]), (false, true), "since 18");
    assert!(!keeps(vec![plpgsql(5, "f", "BEGIN RETURN other(); END")], vec![]));
    let me = immutable(sql(5, "me", "SELECT current_user"));
    assert!(keeps(vec![me, plpgsql(6, "f", "BEGIN RETURN me(); END")], vec![]));
    let filled = || uses((Kind::Relation, 5), (Kind::Function, 1), When::Written);
    let f = |body| vec![relation(5, "filled"), plpgsql(6, "f", body)];
    assert!(!keeps(f("BEGIN PERFORM FROM filled; END"), vec![filled()]));
    assert!(keeps(f("BEGIN INSERT INTO filled DEFAULT VALUES; END"), vec![filled()]));
    let unnamed = Object { id: (Kind::Unnamed, 0), ..relation(0, "") };
    let operator = uses(unnamed.id, (Kind::Function, 1), When::Always);
    assert!(keeps(vec![unnamed], vec![operator]), "an operator may stand in any function");
}

/// To an event trigger SELECT INTO is CREATE TABLE AS.
#[test]
fn event_triggers_behind_select_into() {
    let list = loud(
        vec![
            relation(1, "create"),
            plpgsql(2, "on_event", "BEGIN PERFORM pg_advisory_lock(1); END"),
            sql(3, "makes", "SELECT 1 AS a INTO t"),
            plpgsql(4, "assigns", "BEGIN SELECT 1 INTO x; END"),
        ],
        vec![uses((Kind::Relation, 1), (Kind::Function, 2), When::Always)],
    );
    assert_eq!(leaves("SELECT a INTO t FROM u", &list), "advisory lock, schema change");
    assert_eq!(leaves("SELECT makes()", &list), "advisory lock");
    assert_eq!(leaves("SELECT assigns()", &list), "");
    assert_eq!(leaves("INSERT INTO t VALUES (1)", &list), "");
}

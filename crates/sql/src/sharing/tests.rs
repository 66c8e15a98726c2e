use std::sync::{Arc, LazyLock};

use super::{Alone, Sharing};
use crate::{Catalogue, Encoding, Kind, Loud, Object, Source, Use, When, hear};

/// A database with a function of each sort, and what uses them.
static LOUD: LazyLock<Arc<Loud>> = LazyLock::new(|| {
    let sql = |body: &str| Source::Sql(body.to_owned());
    let plpgsql = |body: &str| Source::Plpgsql(body.to_owned());
    let functions = [
        ("tidy", sql("SELECT lower($1) || (SELECT max(a) FROM t WHERE b IN (1, 2))")),
        ("tidier", plpgsql("BEGIN IF a > 1 THEN RETURN tidy(a); END IF; RETURN b; END")),
        ("Mixed", sql("SELECT 1")),
        ("trig", plpgsql("BEGIN NEW.a := now(); RETURN NEW; END")),
        ("notes", plpgsql("BEGIN INSERT INTO log (a) VALUES (1); RETURN NEW; END")),
        ("calls_notes", sql("SELECT notes()")),
        ("locks", sql("SELECT pg_advisory_lock(1)")),
        ("locks_rows", plpgsql("BEGIN PERFORM 1 FROM t FOR KEY SHARE; RETURN 1; END")),
        ("calls_locks_rows", sql("SELECT locks_rows() FROM quiet_view")),
        ("sleeps", sql("SELECT pg_sleep(1)")),
        ("makes", plpgsql("BEGIN CREATE TABLE x (a int); END")),
        ("catches", plpgsql("BEGIN RETURN 1; EXCEPTION WHEN query_canceled THEN RETURN 2; END")),
        ("catches_code", plpgsql("BEGIN RETURN 1; EXCEPTION WHEN SQLSTATE '57014' THEN END")),
        ("says", plpgsql("BEGIN IF a > 1 THEN RAISE Notice 'a is %', a; END IF; RETURN NEW; END")),
        ("refuses", plpgsql("BEGIN RAISE EXCEPTION 'no notice'; END")),
        ("handles", plpgsql("BEGIN RETURN 1; EXCEPTION WHEN OTHERS THEN RETURN 2; END")),
        ("calls_nobody", sql("SELECT nobody_knows(1)")),
        ("computes", Source::Native("hstore".to_owned())),
        ("machine", Source::Native(String::new())),
        ("python", Source::Other("plpython3u".to_owned(), "return 1".to_owned())),
        ("initcap", Source::Native("overrides".to_owned())),
        ("makes_table", sql("SELECT ST_FromFlatGeobufToTable('s', 't', $1)")),
        ("st_fromflatgeobuftotable", Source::Native("postgis".to_owned())),
        ("st_fromflatgeobuf", Source::Native("postgis".to_owned())),
        ("uses_system_user", sql("SELECT system_user::text")),
        ("treats", sql("SELECT TREAT($1 AS lower)")),
        ("treats_some", plpgsql("BEGIN RETURN TREAT(CASE WHEN a THEN b ELSE c END AS f); END")),
    ];
    let function = |(oid, (name, source)): (u32, (&str, Source))| Object {
        id: (Kind::Function, oid),
        name: name.to_owned(),
        source,
        is_quiet: false,
        is_immutable: false,
    };
    let mut objects: Vec<_> = (1..).zip(functions).map(function).collect();
    let mut uses = Vec::new();
    for (name, of, when) in [
        ("quiet_view", "tidy", When::Always),
        ("noting_view", "notes", When::Always),
        ("locking_view", "locks_rows", When::Always),
        ("locking_trigger", "locks_rows", When::Written),
        ("machine_view", "machine", When::Always),
        ("stamped", "trig", When::Written),
        ("noted", "notes", When::Written),
        ("told", "says", When::Written),
        ("refused", "refuses", When::Written),
        ("by_machine", "machine", When::Written),
        ("guarded", "locks", When::Written),
    ] {
        let id = (Kind::Relation, objects.len() as u32 + 1);
        let of = objects.iter().find(|object| object.name == of).unwrap().id;
        let source = Source::None;
        objects.push(Object {
            id,
            name: name.to_owned(),
            source,
            is_quiet: false,
            is_immutable: false,
        });
        uses.push(Use { by: id, of, when, through: String::new() });
    }
    Arc::new(Catalogue { objects, uses }.loud())
});

fn sharing(text: &str) -> Sharing {
    hear(text.as_bytes(), Encoding::Exact, &LOUD).sharing
}

#[track_caller]
fn all(expected: Sharing, texts: &[&str]) {
    for text in texts {
        assert_eq!(sharing(text), expected, "{text}");
        assert_eq!(sharing(&format!("-- c\n {text} /* c */ ; ")), expected, "{text};");
        assert_eq!(sharing(&text.replace(' ', " /* f( */\n ")), expected, "{text}, spaced");
    }
}

#[track_caller]
fn alone(rule: Alone, texts: &[&str]) {
    all(Sharing::Alone(rule), texts);
}

/// What applications and their frameworks send all day.
#[test]
fn ordinary_reads_are_shared() {
    all(
        Sharing::Read,
        &[
            "SELECT abalance FROM pgbench_accounts WHERE aid = 1",
            "select 1",
            "(select 1) union all (select 2) order by 1",
            "((SELECT 1))",
            "VALUES (1, 'a'), (2, 'b')",
            "TABLE t",
            "SELECT \"t\".\"id\", COUNT(\"u\".\"id\") AS \"n\" FROM \"t\" LEFT OUTER JOIN \"u\" \
             ON (\"t\".\"id\" = \"u\".\"t_id\") WHERE (\"t\".\"a\" IN ($1, $2) AND NOT \
             (\"t\".\"b\" IS NULL)) GROUP BY \"t\".\"id\" ORDER BY \"n\" DESC LIMIT 21",
            r#"SELECT (1) AS "a" FROM "t" WHERE UPPER("t"."n"::text) LIKE UPPER('%a%') LIMIT 1"#,
            r#"SELECT 1 AS one FROM "users" WHERE "users"."email" = $1 LIMIT $2"#,
            "SELECT \"public\".\"User\".\"id\" FROM \"public\".\"User\" WHERE \
             (\"public\".\"User\".\"id\" = $1 AND 1=1) ORDER BY \"public\".\"User\".\"id\" ASC \
             LIMIT $2 OFFSET $3",
            "select u1_0.id,u1_0.name from users u1_0 where u1_0.id=? and exists(select 1)",
            "SELECT count(*) AS count_1 FROM (SELECT t.id AS t_id FROM t) AS anon_1",
            "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c), sum(x) FILTER (WHERE (y)) \
             OVER w FROM t WINDOW w AS (ORDER BY (a))",
            "SELECT CASE WHEN (a) THEN (b) ELSE (c) END, coalesce(a, (b)), CAST(a AS \
             varchar(10)), a::numeric(10,2) FROM t",
            "SELECT data->>'a', data @> '{}', jsonb_build_object('a', jsonb_agg(b)), \
             ARRAY(SELECT 1) FROM t",
            "SELECT * FROM t WHERE a = ANY($1) AND b BETWEEN (1) AND (2) OR (a, b) = ((1), (2))",
            "SELECT * FROM unnest($1::int[], $2::text[]) AS x(a, b)",
            "SELECT * FROM unnest($1) WITH ORDINALITY x (a, n)",
            "SELECT * FROM (VALUES (1)) v(a) JOIN LATERAL (SELECT 1) l ON (true) JOIN u USING (a)",
            "WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 5), s \
             (m) AS MATERIALIZED (SELECT 1) SELECT n FROM r",
            "SELECT DISTINCT ON (a, b) c FROM t ORDER BY a, b",
            "SELECT a FROM t GROUP BY GROUPING SETS ((a), (b)), ROLLUP (a), CUBE (b)",
            "SELECT extract(epoch FROM now()), date_trunc('day', a), current_timestamp(3), a AT \
             TIME ZONE ('UTC') FROM t",
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t TABLESAMPLE system (10)",
            "SELECT string_agg(a, ',' ORDER BY b), pg_catalog.lower_inc(r), \"count\"(*) FROM t \
             FETCH FIRST (5) ROWS ONLY",
            "SELECT substring(a FROM 1 FOR (2)), overlay(a PLACING b FROM 1), trim(BOTH FROM \
             a), position('a' IN b) FROM t",
            "SELECT gen_random_uuid(), random(), version(), current_user, current_schema()",
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, \
             d.adrelid) FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid \
             WHERE a.attrelid = '\"t\"'::regclass",
            "SELECT (information_schema._pg_expandarray(i.indkey)).n FROM pg_catalog.pg_index i",
            "SELECT tidy(a), tidier(b), public.\"Mixed\"(), handles(), computes(1) FROM \
             quiet_view, stamped, noted, by_machine",
            "SELECT machine, machine.a FROM t AS machine(a)",
            "SELECT E'\\'', U&'\\0061', $$ f( ; $$, 'a\\b' LIKE '\\%'",
        ],
    );
}

#[test]
fn ordinary_writes_are_shared() {
    all(
        Sharing::Write,
        &[
            "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1",
            r#"INSERT INTO "table" ("a","b") VALUES ($1,$2)"#,
            "INSERT INTO \"s\".\"t\" AS x (\"a\") SELECT b FROM u ON CONFLICT (\"a\") WHERE (b) \
             DO UPDATE SET (a, b) = (EXCLUDED.a, (1))",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t (SELECT lower_inc(a) FROM u)",
            "DELETE FROM t USING u WHERE (t.a = u.a)",
            "MERGE INTO t x USING s ON (x.a = s.a) WHEN MATCHED THEN UPDATE SET b = s.b WHEN \
             NOT MATCHED THEN INSERT (a, b) VALUES (1, 2)",
            "WITH x (a) AS (SELECT 1), y (b) AS (SELECT 2) INSERT INTO t (a) SELECT a FROM x, y",
            "UPDATE stamped SET a = tidy(1)",
            "INSERT INTO noted (a) VALUES (1)",
            "UPDATE t SET a = notes()",
            "UPDATE t SET a = pg_column_size(b) FROM pg_class WHERE relname = c",
        ],
    );
}

#[test]
fn reads_that_lock_rows_are_shared() {
    all(
        Sharing::Lock,
        &[
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t FOR NO KEY UPDATE OF t SKIP LOCKED",
            "SELECT * FROM t FOR SHARE NOWAIT",
            "SELECT * FROM t FOR KEY SHARE",
            "WITH x AS (SELECT * FROM t FOR UPDATE) SELECT a FROM x",
            "SELECT locks_rows()",
            "SELECT calls_locks_rows()",
            "SELECT * FROM locking_view",
            "SELECT txid_current()",
            "SELECT a, pg_catalog.PG_CURRENT_XACT_ID() FROM t",
        ],
    );
    all(
        Sharing::Read,
        &["SELECT * FROM locking_trigger", "SELECT txid_current FROM t", "SELECT txid_status(a)"],
    );
    all(Sharing::Write, &["UPDATE locking_trigger SET a = 1", "UPDATE t SET a = locks_rows()"]);
    all(
        Sharing::Write,
        &["WITH x AS (SELECT * FROM t FOR UPDATE) UPDATE t SET a = 1 WHERE a IN (TABLE x)"],
    );
}

#[test]
fn one_statement_of_a_few_kinds() {
    alone(
        Alone::Command,
        &[
            "BEGIN",
            "SET x = 1",
            "EXPLAIN SELECT 1",
            "EXPLAIN ANALYZE DELETE FROM t",
            "COPY t TO STDOUT",
            "CALL p()",
            "SHOW x",
            "CREATE TABLE t AS SELECT 1",
            "DECLARE c CURSOR FOR SELECT 1",
            "WITH RECURSIVE s(a) AS (SELECT 1) SEARCH DEPTH FIRST BY a SET ordinality \
             SELECT a, lo_create(0) FROM s",
            "WITH RECURSIVE s(a) AS (SELECT 1) CYCLE a SET update USING b SELECT f() FROM s",
            "FETCH c",
            "DO 'x'",
            "EXECUTE p",
            "\"select\" 1",
            "(UPDATE t SET a = 1)",
            "'SELECT' 1",
            ") SELECT 1",
        ],
    );
    for text in ["", ";", "SELECT 1; SELECT 2", "SELECT 1; ; COMMIT", "-- SELECT 1"] {
        assert_eq!(sharing(text), Sharing::Alone(Alone::Statements), "{text}");
    }
}

#[test]
fn rows_are_not_kept_as_tables_nor_told_of_changes() {
    alone(
        Alone::Into,
        &[
            "SELECT a INTO t FROM u",
            "SELECT 1 INTO TEMP t",
            "SELECT 1.INTO t",
            "TABLE t INTO u",
            "SELECT u.insert INTO TEMP t FROM u",
            "SELECT u.merge INTO t FROM u",
            "SELECT 1 AS insert INTO TEMP t",
            "SELECT 1 merge INTO TEMP t",
            "SELECT insert INTO TEMP t FROM u",
            "SELECT (1) insert INTO TEMP t",
            "SELECT DISTINCT ON (a) insert INTO TEMP t FROM u",
        ],
    );
    alone(
        Alone::Returning,
        &[
            "INSERT INTO t (a) VALUES (1) RETURNING id",
            "UPDATE t SET a = 1 RETURNING *",
            "WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x",
            "WITH x AS (UPDATE t SET a = 1) SELECT * FROM u",
            "WITH update AS (UPDATE t SET a = 1) SELECT * FROM u",
            "WITH x AS (UPDATE t SET a = 1) (SELECT * FROM u)",
        ],
    );
    alone(Alone::Changes, &["SELECT notes()", "SELECT calls_notes()", "SELECT * FROM noting_view"]);
}

#[test]
fn functions_have_to_be_known() {
    alone(
        Alone::Unknown,
        &[
            "SELECT nobody_knows(1)",
            "SELECT s.nobody_knows(1)",
            "SELECT \"select\"(1)",
            "SELECT s.values(1)",
            "SELECT DISTINCT ON (a) nobody_knows(b) FROM t",
            "SELECT \"NOBODY\" (1)",
            "SELECT 1 OPERATOR(pg_catalog.+) nobody_knows(1)",
            "SELECT (a) Operator (pg_catalog.+) \"nobody_knows\"(1)",
            "INSERT INTO t (a) SELECT nobody_knows(1)",
            "WITH x AS (SELECT 1) SELECT nobody_knows(1)",
            "SELECT * FROM t, nobody_knows(1)",
        ],
    );
    alone(
        Alone::Opaque,
        &[
            "SELECT calls_nobody(1)",
            "SELECT machine(1)",
            "SELECT public.\"machine\" (1)",
            "SELECT python(1)",
            "SELECT INITCAP(a) FROM t",
            "SELECT sleeps()",
            "SELECT makes()",
            "SELECT catches()",
            "SELECT catches_code()",
            "SELECT says()",
            "INSERT INTO told VALUES (1)",
            "SELECT * FROM machine_view",
            "UPDATE by_machine SET a = 1",
        ],
    );
    alone(Alone::Pin, &["SELECT locks()", "UPDATE guarded SET a = 1"]);
    alone(Alone::Pin, &["SELECT makes_table(a) FROM t", "SELECT st_fromflatgeobuftotable(a)"]);
    all(Sharing::Read, &["SELECT st_fromflatgeobuf(a) FROM t"]);
}

/// Whether a call of a function is shared that is written so.
fn is_shared(source: Source) -> bool {
    !matches!(sharing_of(source, false), Sharing::Alone(_))
}

/// How such a call is shared. `is_quiet`: the function is named as one that leaves nothing behind.
fn sharing_of(source: Source, is_quiet: bool) -> Sharing {
    sharing_in("SELECT runs()", source, is_quiet)
}

/// How a text is shared that calls a function.
fn sharing_in(text: &str, source: Source, is_quiet: bool) -> Sharing {
    let function = |id, name: &str, source, is_quiet| Object {
        id: (Kind::Function, id),
        name: name.to_owned(),
        source,
        is_quiet,
        is_immutable: false,
    };
    let mut objects = vec![function(1, "runs", source, is_quiet)];
    for (id, name, body) in [
        (2, "inserts", "BEGIN INSERT INTO t VALUES (1); END"),
        (3, "speaks", "BEGIN RAISE NOTICE 'a'; END"),
        (4, "catches", "BEGIN a; EXCEPTION WHEN query_canceled THEN b; END"),
    ] {
        objects.push(function(id, name, Source::Plpgsql(body.to_owned()), false));
    }
    // What is deferred, as the catalogue says it.
    objects.push(function(5, "pg_sleep", Source::Builtin, false));
    let id = (Kind::Relation, 6);
    objects.push(Object {
        id,
        name: "late".to_owned(),
        source: Source::None,
        is_quiet: false,
        is_immutable: false,
    });
    let of = (Kind::Function, 5);
    let uses = vec![Use { by: id, of, when: When::Written, through: "deferred".to_owned() }];
    let loud = Arc::new(Catalogue { objects, uses }.loud());
    hear(text.as_bytes(), Encoding::Exact, &loud).sharing
}

/// What changes rows is not run twice, and what changes anything for its transaction is not there
/// for whoever is under the same Sync. A session has nothing of either.
#[test]
fn who_leaves_nothing_behind_may_do_something_yet() {
    let (changes, opaque) = (Sharing::Alone(Alone::Changes), Sharing::Alone(Alone::Opaque));
    for (body, expected) in [
        ("BEGIN RETURN 1; END", Sharing::Read),
        ("BEGIN PERFORM pg_sleep(0.2); RETURN PG_CATALOG.PG_SLEEP_FOR('1 s'); END", Sharing::Read),
        ("BEGIN PERFORM a FROM t FOR SHARE; END", Sharing::Lock),
        ("BEGIN PERFORM txid_current(); END", Sharing::Lock),
        ("BEGIN EXECUTE cmd; END", changes),
        ("BEGIN EXECUTE format('INSERT INTO %I VALUES (1)', t); END", changes),
        ("BEGIN PERFORM inserts(); END", changes),
        ("BEGIN PERFORM nobody_knows(); END", changes),
        ("BEGIN PERFORM set_config('a.b', 'c', true); END", changes),
        ("BEGIN RETURN current_setting('a.b', true); END", changes),
        ("BEGIN SET LOCAL role = a; END", changes),
        ("BEGIN PERFORM pg_advisory_xact_lock(1); END", changes),
        ("BEGIN PERFORM query_to_xml(a, b, c, d); END", changes),
        ("BEGIN CREATE TEMP TABLE a (b int) ON COMMIT DROP; END", changes),
        ("DECLARE a CURSOR FOR SELECT 1; BEGIN OPEN a; END", changes),
        ("BEGIN PERFORM a FROM late; END", Sharing::Read),
        ("BEGIN RAISE NOTICE 'a'; END", opaque),
        ("BEGIN a; EXCEPTION WHEN query_canceled THEN b; END", opaque),
        ("BEGIN PERFORM speaks(); END", opaque),
        ("BEGIN PERFORM catches(); END", opaque),
        ("BEGIN INSERT INTO late VALUES (1); END", opaque),
    ] {
        let source = Source::Plpgsql(body.to_owned());
        assert_eq!(sharing_of(source.clone(), true), expected, "{body}");
        // What is changed anyway may be so by what is believed.
        let expected = if expected == opaque { opaque } else { Sharing::Write };
        let write = sharing_in("UPDATE t SET a = runs()", source, true);
        assert_eq!(write, expected, "UPDATE: {body}");
    }
    let machine = Source::Native(String::new());
    let python = Source::Other("plpython3u".to_owned(), "plpy.execute(a)".to_owned());
    for source in [machine, python] {
        assert_eq!(sharing_of(source, true), changes);
    }
    for command in COMMANDS {
        let sharing = sharing_of(Source::Plpgsql(format!("BEGIN {command}; END")), true);
        assert!(matches!(sharing, Sharing::Alone(_)), "{command}: {sharing:?}");
    }
}

/// Whatever a body runs that is not shared by itself: neither is a call of it.
#[test]
fn no_call_is_shared_of_what_runs_a_command() {
    let bodies = |command: &str| {
        let plpgsql = [
            format!("BEGIN {command}; END"),
            format!("DECLARE a int := 1; BEGIN IF a > 1 THEN {command}; END IF; END"),
            format!("BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN {command}; END"),
            format!("BEGIN EXECUTE $a${command}$a$; END"),
            format!("<<a>> BEGIN FOR b IN 1..2 LOOP {command}; END LOOP; END"),
            format!("BEGIN CASE b WHEN 1 THEN b := 1; ELSE {command}; END CASE; END"),
        ];
        let sql = [command.to_owned(), format!("SELECT 1; /* a */ {command}")].map(Source::Sql);
        plpgsql.map(Source::Plpgsql).into_iter().chain(sql)
    };
    for command in COMMANDS {
        for body in bodies(command) {
            assert!(!is_shared(body.clone()), "{body:?}");
        }
    }
    for body in bodies("SELECT CASE WHEN a THEN b ELSE c END FROM t") {
        assert!(is_shared(body.clone()), "{body:?}");
    }
    for body in ["BEGIN ATOMIC SELECT 1; SELECT a; END", "RETURN a + 1", "(SELECT 1)"] {
        assert!(is_shared(Source::Sql(body.to_owned())), "{body}");
    }
}

/// A query of PL/pgSQL may be any command that is answered with rows.
#[test]
fn no_call_is_shared_of_what_runs_over_a_command() {
    let bodies = |query: &str| {
        [
            format!("BEGIN FOR a IN {query} LOOP b := 1; END LOOP; END"),
            format!("BEGIN OPEN a FOR {query}; END"),
            format!("BEGIN OPEN a NO SCROLL FOR {query}; END"),
            format!("BEGIN RETURN QUERY {query}; END"),
            format!("DECLARE a CURSOR FOR {query}; BEGIN OPEN a; END"),
            format!("DECLARE a CURSOR (b int) IS {query}; BEGIN NULL; END"),
        ]
        .map(Source::Plpgsql)
    };
    for query in [
        "CALL p",
        "EXECUTE p",
        "EXPLAIN ANALYZE CREATE TABLE u AS TABLE t",
        "EXPLAIN ANALYZE SELECT 1 INTO u",
        "Show work_mem",
        "WAIT FOR LSN '0/0'",
    ] {
        for body in bodies(query) {
            assert!(!is_shared(body.clone()), "{body:?}");
        }
    }
    for query in ["SELECT show, call FROM explain", "TABLE t", "VALUES (1)"] {
        for body in bodies(query) {
            let opens = matches!(&body, Source::Plpgsql(text) if text.contains("OPEN"));
            assert_eq!(is_shared(body.clone()), !opens, "{body:?}");
        }
    }
}

/// A cursor is there until the transaction ends, which may be that of others, too.
#[test]
fn no_call_is_shared_of_what_uses_a_cursor() {
    for text in ["OPEN c FOR TABLE t", "FETCH c INTO a", "MOVE c", "CLOSE c"] {
        let body = format!("DECLARE c refcursor; a int; BEGIN {text}; END");
        assert!(!is_shared(Source::Plpgsql(body)), "{text}");
    }
    let body = "DECLARE c CURSOR FOR TABLE t; BEGIN FOR a IN c LOOP b := a.b; END LOOP; END";
    assert!(is_shared(Source::Plpgsql(body.to_owned())), "a loop closes its own");
}

/// PL/pgSQL takes its INTO out of a statement, and its variables may have names that are reserved
/// in SQL.
#[test]
fn what_stands_around_an_into_of_plpgsql_is_read() {
    let body = |text: &str| Source::Plpgsql(format!("DECLARE a int; BEGIN {text}; END"));
    for text in [
        "SELECT INTO a lo_creat(1)",
        "SELECT INTO ordinality lo_creat(1)",
        "SELECT INTO recursive lo_creat(1)",
        "SELECT INTO STRICT recursive lo_creat(1)",
        "SELECT INTO b.with lo_creat(1)",
        "SELECT INTO a, as lo_creat(1), 2",
        "SELECT INTO a, b.with lo_creat(1), 2",
        "SELECT INTO $1 lo_creat(1)",
        "SELECT lo_creat INTO a (1)",
        "SELECT lo_creat INTO STRICT b.a /* c */ (1)",
        "SELECT \"lo_creat\" INTO $1 (1)",
        "SELECT x. INTO a lo_creat FROM abs(1) AS x",
        "SELECT 1 AS insert INTO b",
        "with := lo_creat(1)",
    ] {
        assert!(!is_shared(body(text)), "{text}");
    }
    for text in [
        "SELECT INTO a, with abs(1), 2",
        "SELECT count(*) INTO STRICT a FROM t WHERE b IN (1, 2)",
        "SELECT b, c INTO $1, a.c FROM t AS x (b, c)",
        "EXECUTE 'SELECT 1' INTO a",
    ] {
        assert!(is_shared(body(text)), "{text}");
    }
}

/// None has a parenthesis behind a name, which would be taken for a call.
const COMMANDS: [&str; 38] = [
    "ALTER SEQUENCE s RESTART",
    "ALTER TABLE t ADD a int",
    "ANALYZE t",
    "CALL p",
    "CHECKPOINT",
    "CLUSTER t",
    "COMMENT ON TABLE t IS NULL",
    "COPY t TO PROGRAM 'a'",
    "CREATE SEQUENCE s",
    "CREATE TABLE u AS TABLE t",
    "CREATE MATERIALIZED VIEW m AS TABLE t",
    "DEALLOCATE ALL",
    "DISCARD PLANS",
    "DO 'BEGIN END'",
    "DROP TABLE t",
    "EXPLAIN ANALYZE CREATE TABLE u AS TABLE t",
    "GRANT SELECT ON t TO a",
    "IMPORT FOREIGN SCHEMA a FROM SERVER b INTO c",
    "LISTEN a",
    "LOAD 'a'",
    "LOCK TABLE t",
    "NOTIFY a",
    "PREPARE a AS SELECT 1",
    "REASSIGN OWNED BY a TO b",
    "REFRESH MATERIALIZED VIEW m",
    "REINDEX TABLE t",
    "RESET a",
    "REVOKE SELECT ON t FROM a",
    "SAVEPOINT a",
    "SECURITY LABEL ON TABLE t IS 'a'",
    "SET CONSTRAINTS ALL DEFERRED",
    "SET LOCAL work_mem = 64",
    "SHOW work_mem",
    "START TRANSACTION",
    "TRUNCATE t",
    "UNLISTEN a",
    "VACUUM t",
    "WAIT FOR LSN '0/0'",
];

#[test]
fn what_tells_of_the_session_is_found_everywhere() {
    alone(
        Alone::Session,
        &[
            "SELECT current_setting('statement_timeout')",
            "SELECT pg_catalog.\"current_setting\"('x')",
            "SELECT ('x'::text).current_setting",
            "SELECT setting FROM pg_settings",
            "SELECT * FROM \"pg_catalog\".\"pg_prepared_statements\"",
            "SELECT pg_backend_pid()",
            "SELECT currval('s')",
            "SELECT lastval()",
            "SELECT DISTINCT ON (a) lastval()",
            "SELECT 'a' OPERATOR(pg_catalog.||) current_setting('statement_timeout')",
            "SELECT (a) operator (pg_catalog.+) pg_sleep(1)",
            "SELECT * FROM (SELECT 1) current_setting(a)",
            "SELECT ('s'::regclass).currval",
            "SELECT table_to_xml('t', true, true, '')",
            "SELECT domain_in('1', 1, 1)",
            "SELECT pg_sleep(1)",
            "SELECT lo_create(1)",
            "SELECT pg_terminate_backend(1)",
            "SELECT pg_advisory_xact_lock(1)",
            "SELECT set_config('a.b', 'c', true)",
            "SELECT nextval('s')",
            "SELECT current_schemas(true)",
            "SELECT x.current_schemas FROM starts_with('a', 'a') AS x",
            "SELECT System_User",
            "SELECT a FROM t WHERE b = SYSTEM_USER AND c",
            "SELECT (16384::oid).pg_stat_get_xact_tuples_newpage_updated",
            "SELECT x.pg_stat_get_backend_io FROM abs(1) AS x",
        ],
    );
    all(Sharing::Read, &["SELECT \"system_user\", system_users FROM t"]);
    assert_eq!(sharing("SELECT uses_system_user()"), Sharing::Alone(Alone::Opaque));
}

#[test]
fn what_is_not_clear_is_alone() {
    alone(Alone::Pin, &[r#"SELECT U&"x" FROM t"#, "SELECT pg_temp.f(1) FROM t"]);
    alone(
        Alone::Pin,
        &["UPDATE pg_proc SET prosrc = 'a'", "INSERT INTO pg_largeobject VALUES (1)"],
    );
    assert!(!is_shared(Source::Sql("DELETE FROM pg_trigger".to_owned())));
    alone(Alone::Pin, &["SELECT TREAT(0.5 AS setseed)", "UPDATE t SET a = treat(b AS s.f)"]);
    alone(Alone::Pin, &["SELECT treats(1)", "SELECT treats_some(1)"]);
    assert_eq!(sharing(r"SELECT '\', 'a'"), Sharing::Read);
    assert_eq!(sharing(r"SELECT '\' , f(1), 'a'"), Sharing::Alone(Alone::Ambiguous));
    let in_sjis = hear(b"SELECT 'a\\b'", Encoding::Overlapping, &LOUD).sharing;
    assert_eq!(in_sjis, Sharing::Alone(Alone::Pin));
}

/// Where there is no such column, it is a function of the row, or of what a function in FROM gives.
#[test]
fn what_is_called_as_a_column_is_called() {
    alone(
        Alone::Session,
        &[
            "SELECT x.current_setting FROM lower('a') AS x",
            "SELECT \"x\" . \"lo_creat\" FROM abs(1) AS \"x\"",
            "SELECT ordinality.current_setting FROM lower('a') AS ordinality",
            "SELECT recursive.current_setting FROM lower('a') AS recursive",
            "SELECT a FROM t WHERE s.t.pg_sleep IS NULL",
            "UPDATE t SET a = x.lo_creat FROM abs(1) AS x",
        ],
    );
    alone(
        Alone::Opaque,
        &[
            "SELECT t.machine FROM t",
            "SELECT public.t.machine FROM t",
            "SELECT (t).machine FROM t",
            "SELECT a FROM t ORDER BY t.python",
        ],
    );
    all(Sharing::Read, &["SELECT t.tidy, t.computes, t.lower FROM t", "SELECT key.a FROM key"]);
    alone(Alone::Session, &["SELECT x.setseed FROM random() AS x"]);
}

/// The catalogue is read in UTF-8.
#[test]
fn names_beyond_ascii_are_known_in_utf8_alone() {
    let text = "SELECT \"größe\" AS ä, 'ä' FROM t";
    assert_eq!(hear(text.as_bytes(), Encoding::Exact, &LOUD).sharing, Sharing::Read);
    let alone = Sharing::Alone(Alone::Catalogue);
    for text in [text, "SELECT ä FROM t", "SELECT 1 AS \"ä\"", "SELECT t.ä FROM t"] {
        for encoding in [Encoding::Superset, Encoding::Overlapping] {
            assert_eq!(hear(text.as_bytes(), encoding, &LOUD).sharing, alone, "{text}");
        }
    }
    for encoding in [Encoding::Exact, Encoding::Superset, Encoding::Overlapping] {
        let text = "SELECT 'ä', 'b' /* ä */ -- ä";
        assert_eq!(hear(text.as_bytes(), encoding, &LOUD).sharing, Sharing::Read, "{encoding:?}");
    }
    let long = format!("SELECT * FROM {}ä", "x".repeat(62));
    assert_eq!(sharing(&long), Sharing::Read);
    assert_eq!(hear(long.as_bytes(), Encoding::Superset, &LOUD).sharing, alone);
    // The name of a function that ends with what is a sign in ASCII.
    let heard = hear(b"SELECT \x83|()", Encoding::Overlapping, &LOUD).sharing;
    assert_eq!(heard, alone);
}

#[test]
fn without_a_catalogue_nothing_is_shared() {
    let none = Arc::new(Loud::default());
    let heard = hear(b"SELECT 1", Encoding::Superset, &none);
    assert_eq!(heard.sharing, Sharing::Alone(Alone::Catalogue));
    let object = |id, name: &str, source| Object {
        id,
        name: name.to_owned(),
        source,
        is_quiet: false,
        is_immutable: false,
    };
    for source in [Source::Native(String::new()), Source::Sql("SELECT setseed(1)".to_owned())] {
        let id = (Kind::Function, 1);
        let unnamed = (Kind::Unnamed, 0);
        let objects = vec![object(id, "f", source), object(unnamed, "", Source::None)];
        let through = "operator +".to_owned();
        let uses = vec![Use { by: unnamed, of: id, when: When::Always, through }];
        let loud = Arc::new(Catalogue { objects, uses }.loud());
        let heard = hear(b"SELECT 1", Encoding::Superset, &loud);
        assert_eq!(heard.sharing, Sharing::Alone(Alone::Unnamed));
        assert!(loud.unnamed().is_some_and(|why| why.starts_with("operator +: f (")));
    }
}

#[test]
fn each_rule_is_told_in_one_sentence() {
    for rule in Alone::ALL {
        let doc = rule.doc();
        assert!(doc.ends_with('.') && !doc.contains(['\n', '|']), "{doc}");
        assert_eq!(Alone::ALL.iter().filter(|one| **one == rule).count(), 1);
    }
}

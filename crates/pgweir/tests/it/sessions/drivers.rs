//! What drivers and frameworks say by themselves: at the start of a session, around transactions
//! and statements, and when a session goes back to their own pool.

use pgweir_testkit::frames::{
    bind, bind_with_formats, close_portal, close_statement, copy_data, copy_done, describe_portal,
    describe_statement, execute, flush, parse, query, sync,
};
use pgweir_testkit::{Login, Script};

use super::{batch, in_turn, login, part, pipeline, same_script};

/// Texts as queries of their own.
fn queries(script: Script, texts: &[&str]) -> Script {
    texts.iter().fold(script, |script, text| script.ask(&query(text)))
}

/// Startup parameters besides user and database.
fn started(parameters: &[(&str, &str)]) -> Script {
    let asked = |login: Login, (name, value): &(&str, &str)| login.parameter(name, value);
    Script::new(parameters.iter().fold(login(), asked))
}

/// An unnamed statement as libpq sends it: PQexecParams.
fn exec_params(text: &str, values: &[Option<&str>]) -> Vec<u8> {
    batch(&[parse("", text, &[]), run("", values)])
}

/// A statement is run: PQexecPrepared without its Sync.
fn run(name: &str, values: &[Option<&str>]) -> Vec<u8> {
    [bind("", name, values), describe_portal(""), execute("", 0)].concat()
}

/// As [`run`], with results in binary.
fn run_binary(name: &str, values: &[Option<&[u8]>]) -> Vec<u8> {
    [bind_with_formats("", name, &[1], values, &[1]), execute("", 0)].concat()
}

#[test]
fn psycopg_2() {
    let script = started(&[("application_name", "app")]);
    same_script(&queries(
        script,
        &[
            "SHOW client_encoding",
            "SHOW default_transaction_isolation",
            "SET datestyle TO 'ISO'",
            "SET client_encoding TO 'LATIN1'",
            "BEGIN",
            "SELECT 'é', current_setting('client_encoding')",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY",
            "COMMIT",
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE DEFERRABLE",
            "SHOW transaction_isolation",
            "DECLARE \"named\" CURSOR WITHOUT HOLD FOR SELECT a FROM kept WHERE a <= 5",
            "FETCH FORWARD 2 FROM \"named\"",
            "FETCH FORWARD ALL FROM \"named\"",
            "CLOSE \"named\"",
            "ROLLBACK",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE",
            "SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnamespace = ns.oid \
             WHERE typname = 'hstore'",
            "ABORT",
            "RESET ALL",
            "SET SESSION AUTHORIZATION DEFAULT",
            "SHOW client_encoding",
        ],
    ));
}

#[test]
fn psycopg_3() {
    let info = "SELECT typname AS name, oid, typarray AS array_oid, oid::regtype::text AS regtype, \
                typdelim AS delimiter FROM pg_type t WHERE t.oid = to_regtype($1) ORDER BY t.oid";
    let select = "SELECT b FROM kept WHERE a = $1::int2";
    let script = started(&[("client_encoding", "UTF8"), ("application_name", "psycopg")])
        .ask(&query("BEGIN"))
        .ask(&exec_params(info, &[Some("int4")]))
        .ask(&query("COMMIT"))
        .ask(&query("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"))
        .ask(&exec_params(select, &[Some("1")]))
        .ask(&query("SAVEPOINT \"_pg3_1\""))
        .ask(&exec_params("SELECT 1/$1::int", &[Some("0")]))
        .ask(&query("ROLLBACK TO \"_pg3_1\"; RELEASE \"_pg3_1\""))
        .ask(&query("COMMIT"))
        // What is run often is prepared, and given up later.
        .ask(&batch(&[parse("_pg3_0", select, &[21])]))
        .ask(&batch(&[run("_pg3_0", &[Some("2")])]))
        .ask(&query("BEGIN"))
        .ask(&batch(&[run("_pg3_0", &[Some("3")])]))
        .ask(&query("ROLLBACK"))
        .ask(&query("DEALLOCATE \"_pg3_0\""))
        .ask(&batch(&[run("_pg3_0", &[Some("2")])]));
    let units = [
        batch(&[part("BEGIN"), parse("_pg3_1", select, &[21]), run("_pg3_1", &[Some("4")])]),
        batch(&[run("_pg3_1", &[Some("5")]), run("_pg3_1", &[Some("x")])]),
        batch(&[part("ROLLBACK")]),
        batch(&[run("_pg3_1", &[Some("5")]), close_statement("_pg3_1")]),
    ];
    same_script(&pipeline(script, &units).ask(&query("DEALLOCATE ALL")));
}

#[test]
fn asyncpg() {
    let prepare = |name: &str, text: &str| {
        [parse(name, text, &[]), describe_statement(name), flush()].concat()
    };
    let jit = "SELECT current_setting('jit') AS cur, set_config('jit', 'off', false) AS new";
    let script = started(&[("client_encoding", "'utf-8'"), ("application_name", "asyncpg")])
        .send(&prepare("__asyncpg_stmt_1__", jit))
        .read(3)
        .ask(&batch(&[run_binary("__asyncpg_stmt_1__", &[])]))
        .ask(&batch(&[
            parse("__asyncpg_stmt_2__", "SELECT set_config('jit', $1, false)", &[]),
            describe_statement("__asyncpg_stmt_2__"),
        ]))
        .ask(&batch(&[run_binary("__asyncpg_stmt_2__", &[Some(b"on")])]))
        .ask(&query("BEGIN;"))
        .send(&prepare("__asyncpg_stmt_3__", "SELECT a FROM kept WHERE a <= 5 ORDER BY a"))
        .read(3)
        .ask(&batch(&[bind_with_formats(
            "__asyncpg_portal_1__",
            "__asyncpg_stmt_3__",
            &[1],
            &[],
            &[1],
        )]))
        .ask(&batch(&[execute("__asyncpg_portal_1__", 2)]))
        .ask(&batch(&[execute("__asyncpg_portal_1__", 2)]))
        .ask(&batch(&[close_portal("__asyncpg_portal_1__")]))
        .ask(&query("SAVEPOINT __asyncpg_savepoint_1__;"))
        .ask(&query("ROLLBACK TO __asyncpg_savepoint_1__;"))
        .ask(&query("COMMIT;"))
        .ask(&query("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;"))
        .ask(&query("ROLLBACK;"))
        .ask(&batch(&[close_statement("__asyncpg_stmt_3__")]))
        .ask(&query("LISTEN \"events\""))
        .ask(&query("NOTIFY events"));
    // executemany
    let many: Vec<_> = [1, 2, 3].map(|n: i32| run_binary("many", &[Some(&n.to_be_bytes())])).into();
    let script = script
        .ask(&batch(&[parse("many", "SELECT $1::int4 + 1", &[]), describe_statement("many")]))
        .ask(&batch(&many));
    let reset = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";
    same_script(&script.ask(&query(reset)).ask(&query("SHOW jit")));
}

#[test]
fn pgjdbc() {
    let parameters = [
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("TimeZone", "Europe/Berlin"),
        ("extra_float_digits", "2"),
    ];
    let once = |text: &str| batch(&[parse("", text, &[]), bind("", "", &[]), execute("", 1)]);
    let select = "SELECT a, b FROM kept WHERE a <= $1 ORDER BY a";
    let select = |name: &str| parse(name, select, &[23]);
    let begin = [parse("S_1", "BEGIN", &[]), bind("", "S_1", &[]), execute("", 0)].concat();
    let again = [bind("", "S_1", &[]), execute("", 0)].concat();
    let units = [
        once("SET extra_float_digits = 3"),
        once("SET application_name = 'PostgreSQL JDBC Driver'"),
        once("SELECT 0.1::float8 + 0.2::float8, now() IS NOT NULL"),
        once("SHOW TRANSACTION ISOLATION LEVEL"),
        once("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
        once("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"),
        once("SET SESSION search_path TO 'plain', public"),
        once("select current_schema()"),
        // BEGIN comes in one batch with the first statement.
        batch(&[begin, select(""), run("", &[Some("2")])]),
        batch(&[parse("S_2", "SAVEPOINT PGJDBC_AUTOSAVE", &[]), run("S_2", &[])]),
        batch(&[part("SELECT 1/0")]),
        batch(&[part("ROLLBACK TO SAVEPOINT PGJDBC_AUTOSAVE")]),
        batch(&[parse("S_3", "COMMIT", &[]), bind("", "S_3", &[]), execute("", 1)]),
        // A fetch size, by a portal.
        batch(&[
            again.clone(),
            select("S_4"),
            bind("C_5", "S_4", &[Some("5")]),
            describe_portal("C_5"),
            execute("C_5", 2),
        ]),
        batch(&[execute("C_5", 2)]),
        batch(&[execute("C_5", 2), close_portal("C_5")]),
        batch(&[bind("", "S_3", &[]), execute("", 1)]),
        // A batch of updates, read only as the session is.
        batch(&[
            again,
            part("UPDATE kept SET b = b WHERE a = 1"),
            part("UPDATE kept SET b = b WHERE a = 2"),
        ]),
        batch(&[parse("S_6", "ROLLBACK", &[]), bind("", "S_6", &[]), execute("", 1)]),
        batch(&[close_statement("S_2"), close_statement("S_4"), part("")]),
        batch(&[run("S_4", &[Some("1")])]),
        query("DISCARD ALL"),
        once("SHOW extra_float_digits"),
        once("SHOW TimeZone"),
    ];
    same_script(&in_turn(started(&parameters), &units));
}

#[test]
fn npgsql() {
    let types = "SELECT version();\n\nSELECT ns.nspname, t.oid, t.typname, t.typtype, t.typelem \
                 FROM pg_type AS t JOIN pg_namespace AS ns ON (ns.oid = typnamespace) \
                 WHERE typname IN ('int4', 'text', '_int4') ORDER BY t.oid;\n\n\
                 SELECT enumlabel FROM pg_enum WHERE false;";
    let reset = "SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;\
                 SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP";
    let command = || batch(&[parse("", "SELECT $1 + 1", &[23]), run("", &[Some("41")])]);
    let prepared =
        batch(&[parse("_p1", "SELECT b FROM kept WHERE a = $1", &[23]), describe_statement("_p1")]);
    let script = started(&[("client_encoding", "UTF8"), ("application_name", "web")]);
    let script = in_turn(script, &[query(types), command(), prepared]);
    // What begins a transaction, and what resets a session, goes with the next command.
    let begin = query("BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    let script = pipeline(script, &[begin, batch(&[run("_p1", &[Some("1")])])])
        .ask(&query("SAVEPOINT point"))
        .ask(&batch(&[part("SELECT 1/0")]))
        .ask(&query("ROLLBACK TO SAVEPOINT point"))
        .ask(&query("COMMIT"))
        .ask(&query("SET work_mem = '77MB'"));
    let script = pipeline(script, &[query(reset), batch(&[run("_p1", &[Some("2")])])]);
    let script = pipeline(script, &[query("DISCARD ALL"), command()]);
    same_script(&script.ask(&batch(&[run("_p1", &[Some("1")])])).ask(&query("SHOW work_mem")));
}

#[test]
fn node_postgres() {
    let open = [
        parse("", "SELECT a FROM kept WHERE a <= 5 ORDER BY a", &[]),
        bind("", "", &[]),
        describe_portal(""),
        flush(),
    ]
    .concat();
    let portion = [execute("", 2), flush()].concat();
    let script = started(&[("client_encoding", "UTF8"), ("application_name", "node")])
        .ask(&query("SET search_path TO plain, public; SET statement_timeout TO 60000"))
        .ask(&exec_params("SELECT $1::text AS message", &[Some("Hello world!")]))
        .ask(&batch(&[parse("by-id", "SELECT b FROM kept WHERE a = $1", &[])]))
        .ask(&batch(&[run("by-id", &[Some("1")])]))
        .ask(&batch(&[run("by-id", &[Some("no number")])]))
        .ask(&batch(&[run("by-id", &[Some("2")])]))
        // pg-cursor, outside a transaction and inside.
        .send(&open)
        .read(3)
        .send(&portion)
        .read(3)
        .send(&portion)
        .read(3)
        .ask(&[close_portal(""), sync()].concat())
        .ask(&query("BEGIN"))
        .send(&open)
        .read(3)
        .send(&portion)
        .read(3)
        .ask(&sync())
        .ask(&query("ROLLBACK"))
        .ask(&query("SHOW statement_timeout"));
    same_script(&script);
}

#[test]
fn rails() {
    let columns = "SELECT a.attname, format_type(a.atttypid, a.atttypmod), \
                   pg_get_expr(d.adbin, d.adrelid), a.attnotnull FROM pg_attribute a \
                   LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum \
                   WHERE a.attrelid = '\"kept\"'::regclass AND a.attnum > 0 \
                   AND NOT a.attisdropped ORDER BY a.attnum";
    let types = "SELECT t.oid, t.typname FROM pg_type as t WHERE t.typname IN \
                 ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool') ORDER BY 1";
    let script = started(&[("client_encoding", "unicode"), ("application_name", "bin/rails")]);
    let script = queries(
        script,
        &[
            "SET client_min_messages TO 'warning'",
            "SET standard_conforming_strings = on",
            "SET intervalstyle = iso_8601",
            "SET SESSION timezone TO 'UTC'",
            "SET SESSION statement_timeout TO '60s'",
            "SET SESSION lock_timeout TO DEFAULT",
            types,
            "SHOW max_identifier_length",
            "SHOW search_path",
            columns,
            "SELECT pg_try_advisory_lock(4242424242)",
            "BEGIN",
            "SET LOCAL client_min_messages TO 'error'",
            "SAVEPOINT active_record_1",
            "INSERT INTO kept VALUES (1) RETURNING \"a\"",
            "ROLLBACK TO SAVEPOINT active_record_1",
            "RELEASE SAVEPOINT active_record_1",
            "COMMIT",
            "SELECT pg_advisory_unlock(4242424242)",
        ],
    );
    let select = "SELECT \"kept\".* FROM \"kept\" WHERE \"kept\".\"a\" = $1 LIMIT $2";
    let script = script
        .ask(&batch(&[parse("a1", select, &[])]))
        .ask(&batch(&[run("a1", &[Some("1"), Some("1")])]))
        .ask(&query("BEGIN"))
        .ask(&batch(&[run("a1", &[Some("2"), Some("1")])]))
        .ask(&query("COMMIT"))
        .ask(&query("DEALLOCATE a1"))
        .ask(&query("SELECT 1"));
    same_script(&queries(
        script,
        &["ROLLBACK", "DISCARD ALL", "SHOW intervalstyle", "SHOW statement_timeout", ";"],
    ));
}

#[test]
fn django() {
    let script = started(&[("client_encoding", "UTF8")])
        .ask(&exec_params("SELECT set_config('TimeZone', $1, false)", &[Some("UTC")]));
    same_script(&queries(
        script,
        &[
            "SET ROLE \"sessions_low\"",
            "SHOW TimeZone; SELECT current_user",
            "RESET ROLE",
            "SELECT 1",
            "BEGIN",
            "SAVEPOINT \"s140_x1\"",
            "SELECT \"kept\".\"a\" FROM \"kept\" WHERE \"kept\".\"a\" = 1 FOR UPDATE",
            "RELEASE SAVEPOINT \"s140_x1\"",
            "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED",
            "DECLARE \"_django_curs_140_sync_1\" NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 1",
            "FETCH FORWARD 2000 FROM \"_django_curs_140_sync_1\"",
            "CLOSE \"_django_curs_140_sync_1\"",
            "COMMIT",
            "DECLARE \"_django_curs_140_sync_2\" NO SCROLL CURSOR WITH HOLD FOR SELECT a FROM \
             kept WHERE a <= 5 ORDER BY a",
            "FETCH FORWARD 2 FROM \"_django_curs_140_sync_2\"",
            "SELECT 1",
            "FETCH FORWARD 2000 FROM \"_django_curs_140_sync_2\"",
            "CLOSE \"_django_curs_140_sync_2\"",
            "SELECT c.relname, CASE WHEN c.relispartition THEN 'p' WHEN c.relkind IN ('m', 'v') \
             THEN 'v' ELSE 't' END FROM pg_catalog.pg_class c WHERE c.relname = 'kept'",
            "SHOW TimeZone",
        ],
    ));
}

#[test]
fn sqlalchemy_and_hibernate() {
    same_script(&queries(
        started(&[("application_name", "app")]),
        &[
            "BEGIN",
            "select pg_catalog.version()",
            "select current_schema()",
            "show standard_conforming_strings",
            "SELECT CAST('test plain returns' AS VARCHAR(60)) AS anon_1",
            "ROLLBACK",
            "BEGIN ISOLATION LEVEL AUTOCOMMIT",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "BEGIN",
            "SHOW transaction_isolation",
            "ROLLBACK",
            "BEGIN; SAVEPOINT sa_savepoint_1; SELECT 1; RELEASE SAVEPOINT sa_savepoint_1",
            "PREPARE TRANSACTION 'no'",
            "ROLLBACK",
            "select sequence_name from information_schema.sequences where false",
            "select set_config('search_path', 'plain', false)",
            "select 1 where pg_is_in_recovery()",
            "SET LOCAL lock_timeout = 1000",
            "begin; set local lock_timeout = 1000; select current_setting('lock_timeout'); commit",
            "select current_setting('lock_timeout'), current_schema()",
        ],
    ));
}

#[test]
fn sqlx() {
    let parameters = [
        ("DateStyle", "ISO, MDY"),
        ("client_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("extra_float_digits", "2"),
    ];
    let prepare =
        |name: &str, text: &str| batch(&[parse(name, text, &[]), describe_statement(name)]);
    let run = |name: &str, value: i32| {
        batch(&[run_binary(name, &[Some(&value.to_be_bytes())]), close_portal("")])
    };
    let script = started(&parameters)
        .ask(&prepare("sqlx_s_1", "SELECT b FROM kept WHERE a = $1"))
        .ask(&run("sqlx_s_1", 1))
        .ask(&prepare("sqlx_s_2", "SELECT nothing"))
        .ask(&query("/* SQLx ping */"));
    // BEGIN, and the ROLLBACK of a transaction that was dropped, wait for the next statement.
    let script = pipeline(script, &[query("BEGIN"), run("sqlx_s_1", 2)]);
    let script = pipeline(script, &[query("ROLLBACK"), query("BEGIN"), run("sqlx_s_1", 3)])
        .ask(&query("SAVEPOINT _sqlx_savepoint_1"))
        .ask(&query("ROLLBACK TO SAVEPOINT _sqlx_savepoint_1"))
        .ask(&query("COMMIT"))
        // Its migrations.
        .ask(&query("SELECT current_database()"))
        .ask(&prepare("sqlx_s_3", "SELECT pg_advisory_lock($1::int4)"))
        .ask(&run("sqlx_s_3", 777_001))
        .ask(&query("SELECT 1"))
        .ask(&prepare("sqlx_s_4", "SELECT pg_advisory_unlock($1::int4)"))
        .ask(&run("sqlx_s_4", 777_001))
        .ask(&batch(&[close_statement("sqlx_s_1")]))
        .ask(&run("sqlx_s_1", 1))
        .ask(&query(""));
    same_script(&script);
}

#[test]
fn pgx() {
    let select = "SELECT b FROM kept WHERE a = $1";
    let prepare = |name: &str| batch(&[parse(name, select, &[]), describe_statement(name)]);
    let script = started(&[("client_encoding", "UTF8"), ("search_path", "plain,public")])
        .ask(&prepare("stmtcache_1"))
        .ask(&batch(&[run("stmtcache_1", &[Some("1")])]))
        .ask(&query("begin isolation level serializable read only deferrable"))
        .ask(&batch(&[run("stmtcache_1", &[Some("2")])]))
        .ask(&query("savepoint sp_1"))
        .ask(&query("release savepoint sp_1"))
        .ask(&query("commit"))
        // SendBatch: many statements and one Sync.
        .ask(&batch(&[1, 2, 3, 4].map(|n| run("stmtcache_1", &[Some(&n.to_string())]))))
        .ask(&batch(&[run("stmtcache_1", &[Some("1")]), run("stmtcache_1", &[Some("x")])]))
        .ask(&query("-- ping"))
        .ask(&query("set session characteristics as transaction read only"))
        .ask(&query("begin"))
        .ask(
            &[query("copy kept ( \"a\" ) from stdin binary;"), copy_data(b""), copy_done()]
                .concat(),
        )
        .ask(&query("rollback"))
        .ask(&query("deallocate all"))
        .ask(&batch(&[run("stmtcache_1", &[Some("1")])]))
        .ask(&prepare("stmtcache_1"))
        .ask(&query("discard all"))
        .ask(&prepare("stmtcache_1"))
        .ask(&query("show search_path; show default_transaction_read_only"));
    same_script(&script);
}

#[test]
fn prisma() {
    let types = "SELECT t.typname, t.typtype, t.typelem, r.rngsubtype, t.typbasetype, n.nspname, \
                 t.typrelid FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_range r ON \
                 r.rngtypid = t.oid INNER JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid \
                 WHERE t.oid = $1";
    let prepare =
        |name: &str, text: &str| batch(&[parse(name, text, &[]), describe_statement(name)]);
    let run = |name: &str, value: i32| batch(&[run_binary(name, &[Some(&value.to_be_bytes())])]);
    let script = started(&[("client_encoding", "UTF8"), ("application_name", "")])
        .ask(&query("SET search_path = \"plain\", \"public\""))
        .ask(&prepare("s0", types))
        .ask(&run("s0", 23))
        .ask(&prepare("s1", "SELECT b FROM kept WHERE a = $1"))
        .ask(&run("s1", 1))
        .ask(&query("BEGIN"))
        .ask(&query("SET TRANSACTION ISOLATION LEVEL Serializable"))
        .ask(&run("s1", 2))
        .ask(&query("COMMIT"))
        .ask(&[close_statement("s1"), sync()].concat())
        // For poolers that know no prepared statements.
        .ask(&query("DEALLOCATE ALL"))
        .ask(&prepare("s2", "SELECT b FROM kept WHERE a = $1"))
        .ask(&run("s2", 3))
        .ask(&run("s0", 23))
        // Its migrations.
        .ask(&query("SELECT pg_advisory_lock(72707369)"))
        .ask(&query("SELECT 1"))
        .ask(&query("SELECT pg_advisory_unlock(72707369)"))
        .ask(&query("SHOW search_path"));
    same_script(&script);
}

#[test]
fn postgrex() {
    let bootstrap = "SELECT t.oid, t.typname, t.typsend, t.typreceive, t.typoutput, t.typinput, \
                     t.typelem FROM pg_type AS t WHERE t.typname IN ('int4', 'text') ORDER BY 1";
    let select = "SELECT b FROM kept WHERE a = $1";
    let prepare = |name: &str| [parse(name, select, &[]), describe_statement(name)].concat();
    let run = |name: &str, value: i32| run_binary(name, &[Some(&value.to_be_bytes())]);
    let script = started(&[("application_name", "ecto")])
        .ask(&query(bootstrap))
        .ask(&batch(&[prepare("ecto_1")]))
        .ask(&batch(&[run("ecto_1", 1)]))
        // One batch in two steps: the answer to Describe is read first.
        .send(&[prepare(""), flush()].concat())
        .read(3)
        .ask(&batch(&[run("", 2), close_statement("")]))
        .ask(&query("begin"))
        .ask(&query("savepoint postgrex_savepoint"))
        .ask(&batch(&[part("savepoint postgrex_query"), run("ecto_1", 3), {
            part("release savepoint postgrex_query")
        }]))
        .ask(&batch(&[part("SELECT 1/0")]))
        .ask(&query("rollback to savepoint postgrex_savepoint; release postgrex_savepoint"))
        // Stream.
        .ask(&batch(&[bind("stream", "ecto_1", &[Some("4")]), execute("stream", 1)]))
        .ask(&batch(&[execute("stream", 1), close_portal("stream")]))
        .ask(&query("commit"))
        .ask(&batch(&[close_statement("ecto_1"), prepare("ecto_2")]))
        .ask(&batch(&[run("ecto_2", 5)]))
        .ask(&query("LISTEN \"ecto\""))
        .ask(&query("UNLISTEN \"ecto\""))
        .ask(&query("SELECT pg_try_advisory_xact_lock(777002)"))
        .ask(&query("DISCARD ALL"));
    same_script(&script);
}

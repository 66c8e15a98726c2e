//! What is done to a session by what a text only names: functions, triggers, views and their like.
//! It is found in the catalogue, and then as well known as if the text had said it.

use pgweir_testkit::frames::{bind, execute, extended, parse, query, sync};
use pgweir_testkit::{WireClient, eventually};

use crate::stage::{self, CLUSTER, Stage};

/// Advisory locks of the session that asks.
const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                     AND pid = pg_backend_pid()";

/// A stage with one server, in a database that is as `schema` makes it.
fn stage(name: &str, schema: &str) -> Stage {
    stage_with(name, schema, &[])
}

fn stage_with(name: &str, schema: &str, settings: &[(&str, &str)]) -> Stage {
    let stage = Stage::with(name, 1, |config| {
        settings.iter().fold(config, |config, (setting, value)| config.pool(setting, value))
    });
    // Nobody has asked for anything yet: what is there now is known from the beginning.
    let mut superuser = stage::superuser(&CLUSTER, name);
    superuser.query(&format!("SET ROLE {name}; {schema}"));
    stage
}

/// What a client does keeps the only server with it until it leaves, or ends that: another one
/// waits, and then finds nothing of it.
#[track_caller]
fn keeps_its_server(stage: &Stage, act: &str, state: &str, ends: Option<&str>) {
    let (mut owner, mut other) = (stage.client(), stage.client());
    let before = other.query(state);
    owner.query(act);
    assert_ne!(owner.query(state), before, "{act}: {state} shows nothing");
    other.send(&query(state)).unwrap();
    stage.wait_for_waiters(1);
    match ends {
        Some(ends) => drop(owner.query(ends)),
        None => drop(owner),
    }
    assert_eq!(rows(&mut other), before, "{act}");
}

/// The first column of the reply that is under way.
#[track_caller]
fn rows(client: &mut WireClient) -> Vec<String> {
    let reply = client.read_until_ready().unwrap();
    let rows = reply.iter().filter(|message| message.tag == b'D');
    let value = |value: Option<Vec<u8>>| String::from_utf8(value.unwrap_or_default()).unwrap();
    rows.map(|row| row.values().into_iter().next().map(value).unwrap_or_default()).collect()
}

/// What a client does goes with it: others have the only server in turn with it, and find nothing.
#[track_caller]
fn goes_with_it(stage: &Stage, act: &str, state: &str) {
    let (mut owner, mut other) = (stage.client(), stage.client());
    let before = other.query(state);
    owner.query(act);
    for _ in 0..2 {
        assert_eq!(other.query(state), before, "{act}");
        assert_ne!(owner.query(state), before, "{act}: {state} shows nothing");
    }
}

const LOCK: &str = "
    CREATE FUNCTION take() RETURNS void LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_lock(1); END $$;
    CREATE FUNCTION give() RETURNS void LANGUAGE sql AS 'SELECT pg_advisory_unlock(1)';
";

#[test]
fn functions() {
    let stage = stage("loud_functions", LOCK);
    keeps_its_server(&stage, "SELECT take()", LOCKS, Some("SELECT pg_advisory_unlock(1)"));
    keeps_its_server(&stage, "SELECT * FROM public.TAKE()", LOCKS, None);
    keeps_its_server(&stage, "SELECT \"take\"()", LOCKS, None);
}

#[test]
fn what_calls_them() {
    let stage = stage(
        "loud_callers",
        &format!(
            "{LOCK}
            CREATE FUNCTION outer_f() RETURNS void LANGUAGE sql BEGIN ATOMIC SELECT take(); END;
            CREATE FUNCTION on_change() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM outer_f(); RETURN NEW; END $$;
            CREATE TABLE watched (a int);
            CREATE TRIGGER watch BEFORE INSERT ON watched
                FOR EACH ROW EXECUTE FUNCTION on_change();
            CREATE TABLE parent (a int PRIMARY KEY);
            INSERT INTO parent VALUES (1), (2);
            CREATE TABLE child (a int REFERENCES parent ON DELETE CASCADE);
            INSERT INTO child VALUES (1);
            CREATE FUNCTION on_delete() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM take(); RETURN OLD; END $$;
            CREATE TRIGGER watch BEFORE DELETE ON child
                FOR EACH ROW EXECUTE FUNCTION on_delete();
            CREATE TABLE emptied (a int PRIMARY KEY);
            CREATE TABLE emptied_too (a int PRIMARY KEY REFERENCES emptied);
            CREATE TABLE emptied_last (a int REFERENCES emptied_too);
            CREATE FUNCTION on_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN PERFORM take(); RETURN NULL; END $$;
            CREATE TRIGGER watch BEFORE TRUNCATE ON emptied_last EXECUTE FUNCTION on_truncate();
            CREATE FUNCTION empties() RETURNS void LANGUAGE sql AS 'TRUNCATE emptied CASCADE';
            CREATE VIEW seen AS SELECT take()::text AS t;
            CREATE VIEW over_it AS SELECT t FROM seen;
            CREATE FUNCTION value() RETURNS int LANGUAGE plpgsql AS $$
                BEGIN PERFORM take(); RETURN 1; END $$;
            CREATE TABLE defaults (a int DEFAULT value(), b int);
            CREATE TABLE checks (a int CHECK (a = value()));
            CREATE DOMAIN checked AS int CHECK (VALUE = value());
            CREATE TABLE of_domain (a checked);
            CREATE TABLE ruled (a int);
            CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT value();
            CREATE TABLE guarded (a int);
            INSERT INTO guarded VALUES (1);
            ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
            ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
            CREATE POLICY p ON guarded USING (a = value());
            CREATE TABLE parts (a int) PARTITION BY LIST (a);
            CREATE TABLE part PARTITION OF parts DEFAULT;
            CREATE TRIGGER watch BEFORE INSERT ON part
                FOR EACH ROW EXECUTE FUNCTION on_change();
            CREATE DOMAIN by_default AS int DEFAULT value();
            CREATE DOMAIN over_domain AS by_default;
            CREATE TABLE domains (a over_domain, b int);
            CREATE FUNCTION keyed(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
                BEGIN PERFORM take(); RETURN a; END $$;
            CREATE TABLE levels (a int, b int) PARTITION BY LIST (keyed(a));
            CREATE TABLE level PARTITION OF levels FOR VALUES IN (1) PARTITION BY LIST (b);
            CREATE TABLE leaf PARTITION OF level FOR VALUES IN (1);
            CREATE TABLE planned (a int);
            CREATE INDEX ON planned ((a + keyed(1)));
            CREATE FUNCTION add(a int, b int) RETURNS int LANGUAGE plpgsql AS $$
                BEGIN PERFORM take(); RETURN a + b; END $$;
            CREATE AGGREGATE total(int) (SFUNC = add, STYPE = int, INITCOND = '0');
            CREATE PROCEDURE proc() LANGUAGE plpgsql AS $$ BEGIN PERFORM take(); COMMIT; END $$;
            CREATE FUNCTION writes() RETURNS void LANGUAGE sql AS
                'INSERT INTO watched VALUES (1)';"
        ),
    );
    for act in [
        "SELECT outer_f()",
        "INSERT INTO watched VALUES (1)",
        "WITH x AS (INSERT INTO watched VALUES (1) RETURNING a) SELECT * FROM x",
        "DELETE FROM parent WHERE a = 1",
        "TRUNCATE emptied_last",
        "TRUNCATE emptied CASCADE",
        "SELECT empties()",
        "SELECT * FROM over_it",
        "INSERT INTO defaults (b) VALUES (1)",
        "INSERT INTO checks VALUES (1)",
        "SELECT 1::checked",
        "INSERT INTO of_domain VALUES (1)",
        "INSERT INTO ruled VALUES (1)",
        "SELECT * FROM guarded",
        "INSERT INTO parts VALUES (1)",
        "INSERT INTO domains (b) VALUES (1)",
        "INSERT INTO leaf VALUES (1, 1)",
        "SELECT a FROM planned",
        "SELECT TREAT(1::bigint AS pg_advisory_lock)",
        "SELECT total(a) FROM (VALUES (1)) AS v(a)",
        "CALL proc()",
        "SELECT writes()",
        "DO $$ BEGIN PERFORM take(); END $$",
        "DO $$ BEGIN EXECUTE 'SELECT take()'; END $$",
        "DO $$ BEGIN PERFORM pg_advisory_lock(2); END $$",
    ] {
        keeps_its_server(&stage, act, LOCKS, None);
    }
    // What is only read calls no trigger: nobody keeps the server.
    let (mut one, mut two) = (stage.client(), stage.client());
    for _ in 0..2 {
        one.query("SELECT * FROM watched");
        two.query("SELECT * FROM defaults");
        // Nor does a change that empties nothing.
        one.query("DELETE FROM emptied");
        two.query("DELETE FROM emptied_too");
    }
}

#[test]
fn what_they_set_goes_with_their_client() {
    let stage = stage(
        "loud_settings",
        "CREATE FUNCTION for_tenant(name text) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN PERFORM set_config('app.tenant', name, false); END $$;
         CREATE FUNCTION slowly() RETURNS void LANGUAGE sql AS
            'SELECT set_config(''statement_timeout'', ''5min'', false)';
         CREATE FUNCTION for_now(name text) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN PERFORM set_config('app.tenant', name, true); END $$;
         CREATE VIEW theirs AS SELECT * FROM pg_settings;
         CREATE VIEW own AS SELECT name, setting FROM theirs;
         CREATE FUNCTION by_view() RETURNS void LANGUAGE sql AS
            'UPDATE theirs SET setting = ''2MB'' WHERE name = ''work_mem''';",
    );
    goes_with_it(&stage, "SELECT for_tenant('a')", "SELECT current_setting('app.tenant', true)");
    goes_with_it(&stage, "SELECT slowly()", "SHOW statement_timeout");
    // Which setting that is need not be there to be read.
    let update = "UPDATE own SET setting = '1MB' WHERE name = 'work_mem'";
    for act in [update, "SELECT by_view()"] {
        keeps_its_server(&stage, act, "SHOW work_mem", None);
    }
    goes_with_it(&stage, "DO $$ BEGIN SET work_mem = '1MB'; END $$", "SHOW work_mem");
    let (mut one, mut two) = (stage.client(), stage.client());
    one.query("SELECT for_now('a')");
    assert_eq!(two.query("SELECT coalesce(current_setting('app.tenant', true), '')"), [""]);
}

#[test]
fn statements_that_were_prepared() {
    let stage = stage("loud_prepared", LOCK);
    let (mut owner, mut other) = (stage.client(), stage.client());
    owner.send(&[parse("s", "SELECT take()", &[]), sync()].concat()).unwrap();
    owner.read_until_ready().unwrap();
    assert_eq!(other.query(LOCKS), ["0"]);
    owner.send(&[bind("", "s", &[]), execute("", 0), sync()].concat()).unwrap();
    owner.read_until_ready().unwrap();
    other.send(&query(LOCKS)).unwrap();
    stage.wait_for_waiters(1);
    assert_eq!(owner.query(LOCKS), ["1"]);
    drop(owner);
    assert_eq!(rows(&mut other), ["0"]);
}

/// A function that a client makes is known for what it is as soon as it can be called.
#[test]
fn functions_that_are_made_meanwhile() {
    let stage = stage("loud_made", "");
    let make = |name: &str| {
        format!(
            "CREATE FUNCTION {name}() RETURNS void LANGUAGE sql AS 'SELECT pg_advisory_lock(1)'"
        )
    };
    stage.client().query("SELECT 1");
    // In one string, in one transaction, and in one after the other.
    let block = format!("BEGIN; {}; SELECT b(); COMMIT", make("b"));
    keeps_its_server(&stage, &format!("{}; SELECT a()", make("a")), LOCKS, None);
    keeps_its_server(&stage, &block, LOCKS, None);
    let mut owner = stage.client();
    owner.query(&make("c"));
    owner.query("SELECT c()");
    let mut other = stage.client();
    other.send(&query(LOCKS)).unwrap();
    stage.wait_for_waiters(1);
    assert_eq!(owner.query(LOCKS), ["1"]);
    drop(owner);
    assert_eq!(rows(&mut other), ["0"]);
    // Somebody else calls it by now.
    eventually("its name to be known", || {
        stage.console("SHOW LOUD").iter().any(|row| row.contains("|c|"))
    });
    keeps_its_server(&stage, "SELECT c()", LOCKS, None);
}

/// A migration makes a function, runs it, and removes it, or all is rolled back: it is in no list,
/// and what it has set goes with its client all the same. What is no setting goes with the server.
#[test]
fn functions_that_are_made_and_gone_meanwhile() {
    let stage = stage("loud_gone", "");
    let make = "CREATE FUNCTION mig() RETURNS void LANGUAGE sql AS $$SELECT \
                set_config('search_path', 'mig', false), pg_advisory_lock(1)$$";
    let removed = ["BEGIN", make, "SELECT mig()", "DROP FUNCTION public.mig()", "COMMIT"];
    let undone = ["BEGIN", make, "SELECT mig()", "ROLLBACK"];
    let path = "\"$user\", public";
    for (texts, set) in [
        (&removed[..], "mig"),
        (&[&removed.join("; ")], "mig"),
        (&undone, path),
        (&[&undone.join("; ")], path),
    ] {
        let (mut owner, mut other) = (stage.client(), stage.client());
        assert_eq!(other.query("SHOW search_path"), [path]);
        texts.iter().for_each(|text| drop(owner.query(text)));
        assert_eq!(other.query("SHOW search_path"), [path]);
        assert_eq!(other.query(LOCKS), ["0"], "{texts:?}");
        let elsewhere = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = \
                         (SELECT oid FROM pg_database WHERE datname = current_database())";
        // Its server ends, and may take its time.
        eventually("its lock to be gone", || other.query(elsewhere) == ["0"]);
        assert_eq!(owner.query("SHOW search_path"), [set], "{texts:?}");
    }
}

/// What is created under a `search_path` that no text shows may be temporary, also where a function
/// or a block sets it.
#[test]
fn blocks_that_create_under_a_path_of_their_own() {
    let stage = stage("loud_path", "");
    let body = "PERFORM set_config('search_path', p, true); CREATE TABLE made (a int)";
    stage.ask(&format!(
        "CREATE FUNCTION mk(p text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN {body}; END $$; \
         CREATE FUNCTION goes(p text, l bool) RETURNS void LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM set_config('search_path', p, l); END $$"
    ));
    let block = format!("DO $$ DECLARE p text := 'pg_temp'; BEGIN {body}; END $$");
    for text in [
        &*block,
        "SELECT mk('pg_temp')",
        "SELECT goes('pg_temp', true); CREATE TABLE made ()",
        "DO $$ BEGIN PERFORM goes('pg_temp', true); CREATE TABLE made (); END $$",
        "SELECT goes('pg_temp', false); CREATE TABLE made (); SELECT public.goes('public', false)",
    ] {
        let (mut owner, mut other) = (stage.client(), stage.client());
        owner.query(text);
        other.send(&query("SELECT to_regclass('pg_temp.made') IS NULL")).unwrap();
        eventually("the schema to be read", || {
            !stage.console("SHOW CLIENTS").concat().contains("schema change")
        });
        drop(owner);
        assert_eq!(rows(&mut other), ["t"], "{text}");
    }
}

/// What a temporary view does no catalogue tells, nor what is left of that when it is gone.
#[test]
fn temporary_views_hide_nothing() {
    for setting in ["pin", "reset"] {
        let name = format!("loud_temporary_{setting}");
        let setting = format!("\"{setting}\"");
        hides_nothing(&stage_with(&name, "", &[("loud_functions", &setting)]));
    }
}

fn hides_nothing(stage: &Stage) {
    let (mut owner, mut other) = (stage.client(), stage.client());
    owner.query("CREATE TEMP VIEW v AS SELECT pg_try_advisory_lock(42)");
    owner.query("SELECT 1");
    owner.query("SELECT * FROM v");
    owner.query("DROP VIEW v");
    other.send(&query(LOCKS)).unwrap();
    stage.wait_for_waiters(1);
    assert_eq!(owner.query(LOCKS), ["1"]);
    owner.query("SELECT pg_advisory_unlock(42)");
    assert_eq!(rows(&mut other), ["0"]);
}

#[test]
fn quiet_functions_are_believed() {
    let stage = stage_with("loud_quiet", LOCK, &[("quiet_functions", "\"x, public.take\"")]);
    let (mut owner, mut other) = (stage.client(), stage.client());
    owner.query("SELECT take()");
    assert_eq!(other.query(LOCKS), ["1"], "the operator has said so");
}

#[test]
fn servers_may_be_reset_instead() {
    let stage = stage_with(
        "loud_reset",
        &format!(
            "{LOCK} CREATE FUNCTION set_it() RETURNS void LANGUAGE sql AS
                'SELECT set_config(''app.tenant'', ''a'', false)';"
        ),
        &[("loud_functions", "\"reset\"")],
    );
    let (mut owner, mut other) = (stage.client(), stage.client());
    for act in ["SELECT take()", "SELECT set_it()", "BEGIN; SELECT take(), set_it(); COMMIT"] {
        owner.query(act);
        let state = "SELECT count(*) || coalesce(current_setting('app.tenant', true), '') \
                     FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
        assert_eq!(other.query(state), ["0"], "{act}");
        assert_eq!(owner.query(state), ["0"], "{act}");
    }
    // So it is behind what removes what others have prepared.
    prepare(&mut other, "its", "its");
    owner.query("DO $$ BEGIN DEALLOCATE ALL; END $$");
    assert_eq!(run(&mut other, "its"), "its");
}

#[test]
fn or_nobody_looks_for_them() {
    let stage = stage_with("loud_ignore", LOCK, &[("loud_functions", "\"ignore\"")]);
    let (mut owner, mut other) = (stage.client(), stage.client());
    owner.query("SELECT take()");
    assert_eq!(other.query(LOCKS), ["1"]);
    assert!(stage.console("SHOW LOUD").is_empty());
}

#[test]
fn the_console_says_what_was_found_and_who_is_kept_by_it() {
    let stage = stage(
        "loud_shown",
        &format!("{LOCK} CREATE TABLE t (id serial); CREATE VIEW v AS SELECT take()::text AS t;"),
    );
    let mut owner = stage.client();
    owner.query("SELECT t FROM v");
    let shown = stage.console("SHOW LOUD");
    let (host, port) = ("127.0.0.1", CLUSTER.port());
    let row = |rest: &str| format!("{host}|{port}|loud_shown|{rest}");
    assert_eq!(
        shown,
        [
            row("give|end of state||||end of state"),
            row("t|||sequence||default: nextval (sequence)"),
            row("take|advisory lock||||advisory lock"),
            row("v|advisory lock||||view: take (advisory lock)"),
        ]
    );
    let clients = stage.console("SHOW CLIENTS");
    assert!(clients.iter().any(|row| row.ends_with("|advisory lock (by v)")), "{clients:?}");
}

/// What is prepared by the protocol, and what a Bind of it is answered: a value, or SQLSTATE.
fn prepare(client: &mut WireClient, name: &str, value: &str) {
    client.send(&[parse(name, &format!("SELECT '{value}'"), &[]), sync()].concat()).unwrap();
    let reply = client.read_until_ready().unwrap();
    assert!(reply.iter().all(|message| message.tag != b'E'), "{}", reply[0]);
}

fn run(client: &mut WireClient, name: &str) -> String {
    client.send(&[bind("", name, &[]), execute("", 0), sync()].concat()).unwrap();
    answer(client)
}

/// The first value of the reply that is under way, or its SQLSTATE.
fn answer(client: &mut WireClient) -> String {
    let reply = client.read_until_ready().unwrap();
    let value = |message: &pgweir_testkit::Message| match message.tag {
        b'D' => message.values().swap_remove(0).map(|value| String::from_utf8(value).unwrap()),
        b'E' => Some(message.sqlstate()),
        _ => None,
    };
    reply.iter().find_map(value).unwrap_or_default()
}

/// A block, or a function, that removes what was prepared: that of its client is gone, as it would
/// be directly, and what others have prepared, the same among it, is there.
#[test]
fn what_removes_prepared_statements() {
    let stage = stage(
        "loud_deallocate",
        "CREATE FUNCTION remove() RETURNS text LANGUAGE plpgsql AS $$
            BEGIN DEALLOCATE ALL; RETURN 'x'; END $$;
         CREATE FUNCTION remove_in_sql() RETURNS void LANGUAGE sql AS 'DEALLOCATE ALL';
         CREATE FUNCTION remove_by_text() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN EXECUTE 'DEALLOCATE ALL'; END $$;
         CREATE FUNCTION remove_and_fail() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN DEALLOCATE ALL; RAISE 'x'; END $$;
         CREATE FUNCTION somehow(what text) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN EXECUTE what || ' ALL'; END $$;
         CREATE TABLE watched (a int);
         CREATE FUNCTION on_change() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN DEALLOCATE ALL; RETURN NEW; END $$;
         CREATE TRIGGER watch BEFORE INSERT ON watched
            FOR EACH ROW EXECUTE FUNCTION on_change();",
    );
    for act in [
        query("DO $$ BEGIN DEALLOCATE ALL; END $$"),
        query("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"),
        query("DO $$ BEGIN DEALLOCATE ALL; RAISE 'x'; END $$"),
        query("DO $$ BEGIN DEALLOCATE mine; END $$"),
        query("SELECT remove()"),
        query("SELECT remove_in_sql()"),
        query("SELECT remove_by_text()"),
        query("SELECT remove_and_fail()"),
        query("SELECT somehow('DEALLOCATE')"),
        query("INSERT INTO watched VALUES (1)"),
        extended("SELECT remove()", &[]),
        [parse("f", "SELECT remove()", &[]), bind("", "f", &[]), execute("", 0), sync()].concat(),
        query("BEGIN; SELECT remove(); COMMIT"),
    ] {
        let text = String::from_utf8_lossy(&act).into_owned();
        let direct = WireClient::login(CLUSTER.address(), &stage.login()).unwrap();
        let said = [stage.client(), direct].map(|mut owner| {
            let mut other = stage.client();
            prepare(&mut owner, "mine", "mine");
            prepare(&mut owner, "common", "common");
            prepare(&mut other, "its", "common");
            prepare(&mut other, "too", "too");
            owner.send(&act).unwrap();
            let mut said = vec![answer(&mut owner)];
            // It may keep the server for what is left.
            said.extend(["mine", "common", "mine"].map(|name| run(&mut owner, name)));
            prepare(&mut owner, "new", "new");
            said.push(run(&mut owner, "new"));
            drop(owner);
            for (name, value) in [("its", "common"), ("too", "too"), ("its", "common")] {
                assert_eq!(run(&mut other, name), value, "{text}");
            }
            said
        });
        assert_eq!(said[0], said[1], "{text}");
    }
}

/// Others need not wait for the client to leave that has removed what was prepared.
#[test]
fn whoever_removes_prepared_statements_keeps_no_server() {
    let stage = stage("loud_removed", "");
    let (mut owner, mut other) = (stage.client(), stage.client());
    for has_own in [false, true] {
        prepare(&mut other, "its", "its");
        if has_own {
            prepare(&mut owner, "mine", "mine");
        }
        owner.query("DO $$ BEGIN DEALLOCATE ALL; END $$");
        assert_eq!(run(&mut other, "its"), "its");
        // Within a transaction too, whatever its own are.
        owner.query("BEGIN; DO $$ BEGIN DEALLOCATE ALL; END $$");
        prepare(&mut owner, "new", "its");
        assert_eq!(run(&mut owner, "new"), "its");
        owner.query("COMMIT; DEALLOCATE ALL");
        assert_eq!(run(&mut other, "its"), "its");
        other.query("DEALLOCATE ALL");
    }
}

/// Each kind of state, made by a function: nobody else meets with it, and its client has it.
#[test]
fn every_kind_of_state() {
    let stage = stage(
        "loud_kinds",
        "CREATE FUNCTION does(what int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            IF what = 0 THEN CREATE TEMP TABLE t (a int); END IF; END $$;
         CREATE FUNCTION prepares() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN PREPARE p AS SELECT 1; END $$;
         CREATE FUNCTION holds() RETURNS void LANGUAGE sql AS
            'DECLARE c CURSOR WITH HOLD FOR SELECT 1';
         CREATE FUNCTION locks() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_try_advisory_lock_shared(7); END $$;
         CREATE FUNCTION seeds() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN PERFORM setseed(0.5); CREATE TEMP TABLE seeded (a int); END $$;
         CREATE FUNCTION loads() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN LOAD '$libdir/plugins/none'; END $$;
         CREATE FUNCTION sets() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN SET work_mem = '1MB'; END $$;
         CREATE FUNCTION resets() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN RESET work_mem; END $$;",
    );
    let temp = "SELECT coalesce(to_regclass('pg_temp.t')::text, 'none')";
    let statements = "SELECT count(*) FROM pg_prepared_statements WHERE name = 'p'";
    let cursors = "SELECT count(*) FROM pg_cursors WHERE is_holdable";
    let seeded = "SELECT coalesce(to_regclass('pg_temp.seeded')::text, 'none')";
    let pid = "SELECT pg_backend_pid()";
    keeps_its_server(&stage, "SELECT does(0)", temp, Some("DROP TABLE t"));
    keeps_its_server(&stage, "SELECT does(0)", temp, None);
    keeps_its_server(&stage, "SELECT prepares()", statements, Some("DEALLOCATE p"));
    keeps_its_server(&stage, "SELECT prepares()", statements, None);
    keeps_its_server(&stage, "SELECT holds()", cursors, Some("CLOSE c"));
    keeps_its_server(&stage, "SELECT locks()", LOCKS, Some("SELECT pg_advisory_unlock_all()"));
    goes_with_it(&stage, "SELECT sets()", "SHOW work_mem");
    let before = stage.client().query(pid);
    keeps_its_server(&stage, "SELECT seeds()", seeded, None);
    assert_ne!(stage.client().query(pid), before, "nothing takes a seed back");
    // What could not be loaded may have been: the server is this client's, and then nobody's.
    let (mut owner, mut other) = (stage.client(), stage.client());
    let before = owner.query(pid);
    owner.try_query("SELECT loads()").unwrap_err();
    other.send(&query(pid)).unwrap();
    stage.wait_for_waiters(1);
    drop(owner);
    assert_ne!(rows(&mut other), before);
    let mut owner = stage.client();
    owner.query("SET work_mem = '2MB'");
    owner.query("SELECT resets()");
    assert_eq!([owner.query("SHOW work_mem"), other.query("SHOW work_mem")], [["4MB"], ["4MB"]]);
}

/// Who listens by a function, or a block, is told by the pool's listener, and no longer when it has
/// ended that in one.
#[test]
fn listening_within_a_function() {
    let stage = stage(
        "loud_listen",
        "CREATE FUNCTION hears() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LISTEN a; END $$;
         CREATE FUNCTION ends() RETURNS void LANGUAGE sql AS 'UNLISTEN *';",
    );
    let (mut owner, mut other) = (stage.client(), stage.client());
    for (begins, ends) in [
        ("SELECT hears()", "SELECT ends()"),
        ("DO $$ BEGIN LISTEN a; END $$", "DO $$ BEGIN UNLISTEN *; END $$"),
        ("DO $$ BEGIN EXECUTE 'LISTEN a'; END $$", "DO $$ BEGIN UNLISTEN a; END $$"),
        ("LISTEN a", "DO $$ BEGIN EXECUTE 'UNLISTEN *'; END $$"),
    ] {
        owner.query(begins);
        other.query("NOTIFY a, 'to it'");
        let told = owner.read().unwrap().unwrap();
        assert_eq!(told.tag, b'A', "{begins}: {told}");
        owner.query(ends);
        other.query("NOTIFY a, 'to nobody'");
        owner.send(&query("SELECT 'it'")).unwrap();
        let reply = owner.read_until_ready().unwrap();
        assert!(reply.iter().all(|message| message.tag != b'A'), "{ends}: {}", reply[0]);
    }
    // The server that has listened within the function listens no more.
    assert_eq!(other.query("SELECT count(*) FROM pg_listening_channels()"), ["0"]);
}

/// A function of PostgreSQL's own under another name is what it is.
#[test]
fn other_names_for_functions_of_postgresql() {
    let stage = Stage::new("loud_internal", 1);
    let mut superuser = stage::superuser(&CLUSTER, "loud_internal");
    superuser.query(
        "CREATE FUNCTION mine(bigint) RETURNS void LANGUAGE internal AS 'pg_advisory_lock_int8';
         CREATE FUNCTION sets(text, text, bool) RETURNS text LANGUAGE internal
            AS 'set_config_by_name';
         CREATE FUNCTION computes(int) RETURNS int LANGUAGE internal STRICT AS 'int4abs';",
    );
    keeps_its_server(&stage, "SELECT mine(1)", LOCKS, Some("SELECT pg_advisory_unlock(1)"));
    keeps_its_server(&stage, "SELECT mine(1)", LOCKS, None);
    keeps_its_server(&stage, "SELECT sets('work_mem', '1MB', false)", "SHOW work_mem", None);
    let shown = stage.console("SHOW LOUD");
    let names: Vec<_> = shown.iter().map(|row| row.split('|').nth(3).unwrap()).collect();
    assert_eq!(names, ["mine", "sets"], "{shown:?}");
}

/// Event triggers stand behind whole commands.
#[test]
fn event_triggers() {
    let stage = Stage::new("loud_events", 1);
    let mut superuser = stage::superuser(&CLUSTER, "loud_events");
    superuser.query(
        "CREATE TABLE t (a int); ALTER TABLE t OWNER TO loud_events;
         CREATE MATERIALIZED VIEW m AS SELECT 1 AS a; ALTER TABLE m OWNER TO loud_events;
         CREATE FUNCTION take() RETURNS event_trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_lock(1); END $$;
         CREATE FUNCTION makes() RETURNS void LANGUAGE sql AS 'SELECT 1 AS a INTO made_by';
         CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION take();",
    );
    for act in [
        "COMMENT ON TABLE t IS 'x'",
        "GRANT SELECT ON t TO public",
        "REVOKE SELECT ON t FROM public",
        "ALTER TABLE t ADD b int",
        "REFRESH MATERIALIZED VIEW m",
        "CREATE TABLE made AS SELECT 1 AS a",
        "SELECT 1 AS a INTO selected",
        "WITH w AS (SELECT 1 AS a) SELECT * INTO with_selected FROM w",
        "DO $$ BEGIN COMMENT ON TABLE t IS 'y'; END $$",
        "SELECT makes()",
        "DROP TABLE t",
    ] {
        keeps_its_server(&stage, act, LOCKS, None);
    }
    // It stands behind those commands that it is made for, and rows are no objects.
    superuser.query(
        "DROP EVENT TRIGGER e; CREATE TABLE t (comment int); ALTER TABLE t OWNER TO loud_events;
         CREATE EVENT TRIGGER e ON ddl_command_end WHEN TAG IN ('DROP TABLE', 'CREATE TABLE')
            EXECUTE FUNCTION take();",
    );
    // That was done elsewhere, and is read when somebody changes the schema through pgweir.
    let (mut one, mut two) = (stage.client(), stage.client());
    stage.client().query("CREATE TABLE other (a int)");
    eventually("the trigger to be read anew", || {
        stage.console("SHOW LOUD").iter().all(|row| !row.contains("|comment|"))
    });
    for _ in 0..2 {
        one.query("INSERT INTO t VALUES (1)");
        two.query("SELECT comment FROM t");
        one.query("COMMENT ON TABLE t IS 'x'");
    }
}

/// Casts and indexes call functions that no text names.
#[test]
fn casts_and_indexes() {
    let stage = stage(
        "loud_casts",
        "CREATE TYPE pair AS (a int, b int);
         CREATE FUNCTION as_text(pair) RETURNS text LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_lock(1); RETURN 'x'; END $$;
         CREATE CAST (pair AS text) WITH FUNCTION as_text(pair) AS ASSIGNMENT;
         CREATE TABLE pairs (p pair, t text);
         CREATE FUNCTION key(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
            BEGIN PERFORM pg_advisory_lock(1); RETURN a; END $$;
         CREATE TABLE keys (a int);
         CREATE INDEX ON keys (key(a));
         CREATE TABLE few (a int, b int[]);
         CREATE INDEX ON few USING gin (b) WHERE key(a) > 1 OR a > 0;
         INSERT INTO pairs VALUES (ROW(1, 2));",
    );
    for act in [
        "SELECT ROW(1, 2)::pair::text",
        "SELECT CAST(p AS text) FROM pairs",
        "INSERT INTO pairs (t) VALUES (ROW(1, 2)::pair)",
        "UPDATE pairs SET t = p",
        "INSERT INTO keys VALUES (1)",
        "INSERT INTO few VALUES (1, '{1}')",
        "SET enable_seqscan = off; SELECT a FROM few WHERE a > 0 AND b <@ '{1}'",
        "ANALYZE keys",
        "REINDEX INDEX keys_key_idx",
        "VACUUM FULL keys",
        "CLUSTER keys USING keys_key_idx",
        "ALTER TABLE keys ADD n serial",
        "CLUSTER",
        "ANALYZE",
    ] {
        keeps_its_server(&stage, act, LOCKS, None);
    }
    // Who asks for a key of the index computes it, too, and says so.
    let (mut one, mut two) = (stage.client(), stage.client());
    for _ in 0..2 {
        one.query("SELECT a FROM keys");
        two.query("EXPLAIN ANALYZE SELECT a FROM keys");
    }
}

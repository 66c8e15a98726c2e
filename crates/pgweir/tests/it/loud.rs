//! What is done to a session by what a text only names: functions, triggers, views and their like.
//! It is found in the catalogue, and then as well known as if the text had said it.

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
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
        "SELECT * FROM over_it",
        "INSERT INTO defaults (b) VALUES (1)",
        "INSERT INTO checks VALUES (1)",
        "SELECT 1::checked",
        "INSERT INTO of_domain VALUES (1)",
        "INSERT INTO ruled VALUES (1)",
        "SELECT * FROM guarded",
        "INSERT INTO parts VALUES (1)",
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
            BEGIN PERFORM set_config('app.tenant', name, true); END $$;",
    );
    goes_with_it(&stage, "SELECT for_tenant('a')", "SELECT current_setting('app.tenant', true)");
    goes_with_it(&stage, "SELECT slowly()", "SHOW statement_timeout");
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
            row("give|end of state|||end of state"),
            row("t||sequence||default: nextval (sequence)"),
            row("take|advisory lock|||advisory lock"),
            row("v|advisory lock|||view: take (advisory lock)"),
        ]
    );
    let clients = stage.console("SHOW CLIENTS");
    assert!(clients.iter().any(|row| row.ends_with("|advisory lock (by v)")), "{clients:?}");
}

//! What the console says of servers that are shared, and of who works on which backend.

use std::collections::BTreeSet;

use pgweir_sql::Alone;
use pgweir_testkit::frames::query;
use pgweir_testkit::{WireClient, eventually};

use crate::console::{Row, cell, psql, show};
use crate::stage::{self, CLUSTER, Stage};
use crate::stopped::Stopped;

/// A stage whose clients share servers.
fn shared(name: &str) -> Stage {
    Stage::with(name, 2, |config| config.general("pipelining", "\"2x8\""))
}

#[test]
fn whose_statement_a_backend_runs() {
    let stage = shared("console_client_of");
    let (mut alice, mut bob) = (stage.client(), stage.client());
    bob.query("SELECT 1");
    alice.send(&query("SELECT pg_sleep(600)")).unwrap();
    let sleeper = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'";
    eventually("alice to be served", || stage.ask(sleeper).len() == 1);
    let found = show(&stage, &format!("CLIENT OF {}", stage.value(sleeper)));
    assert_eq!(found.len(), 1);
    let own = alice.cancel_key().unwrap().pid.to_string();
    assert_eq!(cell(&found[0], "id"), own, "what a cancel names");

    let watcher = stage.value("SELECT pg_backend_pid()");
    let none = psql(&stage, "pgweir", "admin", &format!("SHOW CLIENT OF {watcher}"));
    assert!(String::from_utf8_lossy(&none.stderr).contains("has the process id"), "{none:?}");
}

/// The one server of a stage, as SHOW SERVERS has it.
fn the_server(stage: &Stage) -> Row {
    let mut servers = show(stage, "SERVERS");
    assert_eq!(servers.len(), 1, "{servers:?}");
    servers.remove(0)
}

/// By the number that it was told at its login: how the console calls a client.
fn name_of(stage: &Stage, client: &WireClient) -> String {
    let id = client.cancel_key().unwrap().pid.to_string();
    let clients = show(stage, "CLIENTS");
    let its = clients.iter().find(|row| cell(row, "id") == id).unwrap();
    cell(its, "ptr").to_owned()
}

/// The clients for which a backend works.
fn clients_of(stage: &Stage, backend: &str) -> Vec<String> {
    let clients = show(stage, &format!("CLIENT OF {backend}"));
    clients.iter().map(|row| cell(row, "ptr").to_owned()).collect()
}

/// The backend is stopped, for what stands on its server would be over before anybody looks.
#[test]
fn whose_statements_stand_on_a_shared_server() {
    let stage = Stage::with("console_queue", 1, |config| config.general("pipelining", "\"1x8\""));
    stage.ask(
        "CREATE TABLE t (id int, n int);
         INSERT INTO t SELECT id, 0 FROM generate_series(0, 3) AS id;
         ALTER TABLE t OWNER TO console_queue",
    );
    let update = |id: usize| query(&format!("UPDATE t SET n = n + 1 WHERE id = {id}"));
    let mut clients = [stage.client(), stage.client(), stage.client()];
    // None stands in front of others before it is known to be short.
    for client in &mut clients {
        client.send(&update(3)).unwrap();
        client.read_until_ready().unwrap();
    }
    let names = clients.each_ref().map(|client| name_of(&stage, client));
    let [mut alice, mut bob, mut carol] = clients;
    let backend = cell(&the_server(&stage), "remote_pid").to_owned();
    assert_eq!(clients_of(&stage, &backend), [""; 0]);
    assert_eq!(cell(&the_server(&stage), "queue"), "");

    let mut locker = stage::superuser(&CLUSTER, &stage.name);
    locker.query("BEGIN; UPDATE t SET n = 7 WHERE id = 2");
    let stopped = Stopped::process(&backend);
    for (id, client) in [&mut alice, &mut bob, &mut carol].into_iter().enumerate() {
        client.send(&update(id)).unwrap();
        let queue = names[..=id].join(", ");
        eventually("it to stand there", || cell(&the_server(&stage), "queue") == queue);
        assert_eq!(clients_of(&stage, &backend), names[..1]);
    }
    let server = the_server(&stage);
    assert_eq!([cell(&server, "state"), cell(&server, "link")], ["active", names[0].as_str()]);
    bob.reset().unwrap();
    let queue = [names[0].as_str(), "gone", names[2].as_str()].join(", ");
    eventually("bob to be gone", || cell(&the_server(&stage), "queue") == queue);

    drop(stopped);
    assert_eq!(alice.read_until_ready().unwrap()[0].tag, b'C');
    stage.wait_for_backends(1, &format!("pid = {backend} AND wait_event_type = 'Lock'"));
    // At first among others, and alone when the brake has ended it.
    assert_eq!(clients_of(&stage, &backend), names[2..]);
    eventually("carol to be alone", || cell(&the_server(&stage), "queue").is_empty());
    assert_eq!(clients_of(&stage, &backend), names[2..]);
    locker.query("ROLLBACK");
    assert_eq!(carol.read_until_ready().unwrap()[0].tag, b'C');
    assert_eq!(clients_of(&stage, &backend), [""; 0]);
}

/// What EXPLAIN ROUTE says of a statement in the stage's one pool, NULL as nothing: whether it is
/// shared, by which rule not, what it leaves, what becomes of that, and by which name.
fn route(stage: &Stage, statement: &str) -> [String; 5] {
    let rows = stage.console(&format!("EXPLAIN ROUTE {statement}"));
    assert_eq!(rows.len(), 1, "{rows:?}");
    let cells: Vec<_> = rows[0].split('|').map(str::to_owned).collect();
    cells[2..].to_vec().try_into().unwrap()
}

/// So many statements have been sent to shared servers.
fn shared_so_far(stage: &Stage) -> u64 {
    let rows = stage.console("SHOW PIPELINING");
    rows.last().unwrap().rsplit('|').next().unwrap().parse().unwrap()
}

/// For each statement, and there is one for each rule: what becomes of it, seen by the counts and
/// by SHOW CLIENTS, is what EXPLAIN ROUTE has said.
#[test]
fn what_is_said_of_statements_is_what_becomes_of_them() {
    let stage = shared("console_route");
    let mut superuser = stage::superuser(&CLUSTER, &stage.name);
    superuser.query(&format!(
        "SET ROLE {};
         CREATE TABLE t (a int PRIMARY KEY);
         CREATE TABLE numbered (a int, b serial);
         CREATE TABLE plain (a int);
         CREATE FUNCTION take() RETURNS int LANGUAGE plpgsql AS $$
             BEGIN PERFORM pg_advisory_lock(1); RETURN 1; END $$;
         CREATE FUNCTION tidy(n int) RETURNS int LANGUAGE sql AS 'SELECT n + 1';
         CREATE FUNCTION counts() RETURNS int LANGUAGE sql AS
             'UPDATE plain SET a = a + 1; SELECT 1';
         CREATE FUNCTION fixed() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
             BEGIN IF false THEN UPDATE plain SET a = 1; END IF; RETURN 1; END $$;
         CREATE FUNCTION tells() RETURNS text LANGUAGE plpgsql AS $$
             BEGIN RETURN pg_backend_pid()::text; END $$;
         CREATE FUNCTION on_change() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN PERFORM take(); RETURN NEW; END $$;
         CREATE TABLE watched (a int);
         CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION on_change();
         CREATE TABLE late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED);
         CREATE VIEW seen AS SELECT take() AS a;
         CREATE VIEW quiet AS SELECT tidy(a) AS a FROM plain;
         CREATE VIEW locking AS SELECT a FROM t WHERE a IN (SELECT a FROM plain FOR UPDATE);
         CREATE VIEW over_locking AS SELECT a FROM locking;
         CREATE VIEW numbering AS SELECT txid_current() AS a;
         CREATE TABLE number_by_default (a bigint DEFAULT txid_current(), b int)",
        stage.name
    ));
    let [shared, rule, ..] = route(&stage, "SELECT 1");
    assert!(shared == "no" && rule.contains("not read yet"), "{shared} {rule}");
    stage.client().query("SELECT 1");

    // There is none, so that nothing is known of it.
    let [shared, rule, ..] = route(&stage, "SELECT missing()");
    assert_eq!((&*shared, &*rule), ("no", Alone::Unknown.doc()));
    // What no text brings about: it is read whole, in a database that can be told.
    let mut broken =
        BTreeSet::from([Alone::Unknown, Alone::Catalogue, Alone::Unnamed, Alone::Unread]);

    let (none, lock, temp) = (None, Some("advisory lock"), Some("temp table"));
    for (statement, shared, pins, because) in [
        ("SELECT 1", Ok("read"), none, ""),
        ("  select a /* ; */ from t -- ;", Ok("read"), none, ""),
        ("VALUES (1), (2);", Ok("read"), none, ""),
        ("TABLE quiet", Ok("read"), none, ""),
        ("SELECT tidy(1)", Ok("read"), none, ""),
        ("SELECT 'it''s;', \"a\" FROM t", Ok("read"), none, ""),
        ("WITH x AS (SELECT 1 AS a) SELECT a FROM x", Ok("read"), none, ""),
        ("INSERT INTO t (a) VALUES (1)", Ok("write"), none, ""),
        ("UPDATE t SET a = a + 1", Ok("write"), none, ""),
        ("SELECT a FROM t FOR UPDATE", Ok("lock"), none, ""),
        ("SELECT a FROM over_locking", Ok("lock"), none, ""),
        ("SELECT a FROM numbering", Ok("lock"), none, ""),
        ("SELECT pg_current_xact_id()", Ok("lock"), none, ""),
        ("INSERT INTO number_by_default (b) VALUES (1)", Ok("write"), none, ""),
        ("DELETE FROM plain", Ok("write"), none, ""),
        (";", Err(Alone::Statements), none, ""),
        ("SELECT 1; SELECT 2", Err(Alone::Statements), none, ""),
        ("BEGIN; SELECT 1; COMMIT", Err(Alone::Statements), none, ""),
        ("ANALYZE plain", Err(Alone::Command), none, ""),
        ("SHOW work_mem", Err(Alone::Command), none, ""),
        ("SET work_mem = '1MB'", Err(Alone::Command), none, ""),
        ("SELECT set_config('app.a', 'x', false)", Err(Alone::Session), none, ""),
        ("SELECT pg_backend_pid()", Err(Alone::Session), none, ""),
        ("SELECT current_setting('work_mem')", Err(Alone::Session), none, ""),
        ("SELECT '\\', pg_backend_pid(), 'a'", Err(Alone::Ambiguous), none, ""),
        ("SELECT counts()", Err(Alone::Changes), none, ""),
        ("SELECT tells()", Err(Alone::Opaque), none, ""),
        ("DELETE FROM plain WHERE a = fixed()", Err(Alone::Folds), none, ""),
        ("INSERT INTO plain VALUES (1) RETURNING a", Err(Alone::Returning), none, ""),
        ("SELECT 1 AS a INTO made", Err(Alone::Into), none, ""),
        ("INSERT INTO late VALUES (1)", Err(Alone::Opaque), none, ""),
        ("SELECT a FROM late", Ok("read"), none, ""),
        ("INSERT INTO numbered (a) VALUES (1)", Err(Alone::Pin), none, "sequence"),
        ("SELECT nextval('numbered_b_seq')", Err(Alone::Session), none, ""),
        ("CREATE TEMP TABLE own (a int)", Err(Alone::Command), temp, ""),
        ("SELECT pg_advisory_lock(7)", Err(Alone::Session), lock, ""),
        ("SELECT take()", Err(Alone::Pin), lock, "take"),
        ("SELECT a FROM seen", Err(Alone::Pin), lock, "seen"),
        ("INSERT INTO watched VALUES (1)", Err(Alone::Pin), lock, "watched"),
        ("DO $$ BEGIN PERFORM take(); END $$", Err(Alone::Command), lock, "do"),
        ("PREPARE p AS SELECT 1", Err(Alone::Command), Some("prepared statement"), ""),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", Err(Alone::Command), Some("hold cursor"), ""),
    ] {
        let [said, rule, leaves, policy, name] = route(&stage, statement);
        let pins = pins.unwrap_or_default();
        let wanted = match shared {
            Ok(access) => (access, ""),
            Err(rule) => ("no", rule.doc()),
        };
        assert_eq!((&*said, &*rule), wanted, "{statement}");
        broken.extend(shared.err());
        assert_eq!((&*leaves, policy.is_empty()), (pins, pins.is_empty()), "{statement}");
        let first = name.split(':').next().unwrap().to_lowercase();
        assert_eq!(first, because, "{statement}: {name}");

        let before = shared_so_far(&stage);
        let mut client = stage.client();
        client.query(statement);
        let was_shared = shared_so_far(&stage) - before;
        assert_eq!(was_shared, u64::from(shared.is_ok()), "{statement}");
        let own = format!("|{}|", client.cancel_key().unwrap().pid);
        let clients = stage.console("SHOW CLIENTS");
        let kept = clients.iter().find_map(|row| Some(row.rsplit_once(&own)?.1)).unwrap();
        let kept = kept.split(" (by ").next();
        if let Err(Alone::Into) = shared {
            // What is read anew for that is awaited by its client, and by this test.
            assert!(matches!(kept, Some("" | "schema change")), "{statement}: {kept:?}");
            eventually("names", || route(&stage, "SELECT 1")[0] == "read");
        } else {
            assert_eq!(kept, Some(pins), "{statement}");
        }
    }
    assert_eq!(broken, BTreeSet::from(Alone::ALL), "there is a statement for each rule");
}

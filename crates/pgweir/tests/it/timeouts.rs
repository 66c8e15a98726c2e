//! What ends because it takes too long, in front of real PostgreSQL.

use pgweir_testkit::frames::{bind, execute, flush, parse, query};
use pgweir_testkit::{Cluster, Message, PoolerConfig, WireClient, eventually};

use crate::reload::change;
use crate::stage::{Stage, patient};
use crate::stopped::Stopped;

fn codes(messages: &[Message]) -> Vec<String> {
    messages.iter().filter(|message| message.tag == b'E').map(Message::sqlstate).collect()
}

fn last_words(client: &mut WireClient) -> Vec<String> {
    codes(&client.read_to_end().unwrap())
}

/// PostgreSQL itself ends the statement, and a client that wants another limit can have it.
#[test]
fn a_statement_that_takes_too_long() {
    let stage =
        Stage::with("slow_statement", 1, |config| config.general("statement_timeout", "300"));
    let mut client = stage.client();
    assert_eq!(client.query("SHOW statement_timeout"), ["300ms"]);
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    assert_eq!(codes(&client.read_until_ready().unwrap()), ["57014"]);
    assert_eq!(client.query("SELECT 'goes on'"), ["goes on"]);
    let own = stage.login().parameter("statement_timeout", "250");
    assert_eq!(stage.client_as(&own).query("SHOW statement_timeout"), ["250ms"]);
}

/// PostgreSQL does not end a COMMIT that waits. It looks like a server that hangs.
#[test]
fn a_commit_that_waits_for_longer_than_a_statement_may_take() {
    let name = "long_commit";
    let stage = Stage::with(name, 1, |config| config.general("statement_timeout", "300"));
    stage.ask(&format!(
        "CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name};
         CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION slow();
         SELECT pg_advisory_lock(1)"
    ));
    let mut client = stage.client();
    client.query("BEGIN; INSERT INTO t VALUES (1)");
    client.send(&query("COMMIT")).unwrap();
    assert_eq!(codes(&client.read_until_ready().unwrap()), ["08007"]);
    assert_eq!(client.query("SELECT 'goes on'"), ["goes on"]);
    assert_eq!(stage.value("SELECT count(*) FROM t"), "0");
    stage.ask("SELECT pg_advisory_unlock(1)");
    eventually("the commit", || stage.value("SELECT count(*) FROM t") == "1");
}

/// The most that the configuration takes is what PostgreSQL takes.
#[test]
fn the_longest_statement_timeout() {
    let longest = |config: PoolerConfig| config.general("statement_timeout", "2147483647");
    let stage = Stage::with("longest_statement", 1, longest);
    assert_eq!(stage.client().query("SHOW statement_timeout"), ["2147483647ms"]);
    let sql = "SET statement_timeout = 2147483648";
    let mut client = stage.client();
    client.send(&query(sql)).unwrap();
    let refused = client.read_until_ready().unwrap();
    assert_eq!(codes(&refused), ["22023"]);
}

#[test]
fn a_transaction_that_takes_too_long() {
    let stage =
        Stage::with("slow_transaction", 1, |config| config.general("transaction_timeout", "500"));
    let mut client = stage.client();
    client.query("BEGIN");
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    assert_eq!(last_words(&mut client), ["25P04"]);
    // What ran was cancelled, so that the one server is free.
    assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
    stage.wait_for_backends(0, "query LIKE '%sleep%' AND state = 'active'");
}

/// The cancel comes too late, or is caught as it is here: the client was told of a rollback, and
/// the transaction was committed.
#[test]
fn a_commit_that_takes_too_long_may_have_been_carried_out() {
    let name = "slow_commit";
    let stage = Stage::with(name, 1, timed);
    stage.ask(&format!(
        "CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name};
         CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN PERFORM pg_sleep(600); RETURN NULL;
         EXCEPTION WHEN query_canceled THEN RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION slow()"
    ));
    let mut client = stage.client();
    client.query("BEGIN; INSERT INTO t VALUES (1)");
    client.send(&query("COMMIT")).unwrap();
    let last_words = client.read_to_end().unwrap();
    assert_eq!(codes(&last_words), ["25P04"]);
    let detail = last_words.iter().find_map(|message| message.field(b'D')).unwrap();
    assert!(detail.ends_with("may or may not have been committed."), "{detail}");
    assert_eq!(stage.client().query("SELECT count(*) FROM t"), ["1"]);
}

/// Without its Sync a batch is rolled back when its backend sees its client vanish, and that is not
/// before its statement has ended.
#[test]
fn an_open_batch_that_takes_too_long() {
    let stage = Stage::with("slow_batch", 1, |config| config.general("transaction_timeout", "500"));
    let mut client = stage.client();
    let slow = [parse("", "SELECT pg_sleep(600)", &[]), bind("", "", &[]), execute("", 0), flush()];
    client.send(&slow.concat()).unwrap();
    assert_eq!(last_words(&mut client), ["25P04"]);
    assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
    stage.wait_for_backends(0, "query LIKE '%sleep%' AND state = 'active'");
}

#[test]
fn a_client_that_is_silent_inside_a_transaction() {
    let stage = Stage::with("silent_inside", 1, |config| {
        config.general("idle_client_in_transaction_timeout", "500")
    });
    let mut client = stage.client();
    client.query("BEGIN");
    client.query("CREATE TABLE t ()");
    assert_eq!(last_words(&mut client), ["25P03"]);
    assert_eq!(stage.client().query("SELECT to_regclass('t') IS NULL"), ["t"]);
}

#[test]
fn a_client_that_is_silent_outside_a_transaction() {
    let stage =
        Stage::with("silent_outside", 1, |config| config.general("client_idle_timeout", "500"));
    let mut client = stage.client();
    client.query("SELECT 1");
    assert_eq!(last_words(&mut client), ["57P05"]);
}

/// A server that hangs answers nothing, and its statement_timeout strikes in vain.
#[test]
fn a_server_that_hangs_inside_a_statement() {
    let stage = Stage::with("hangs_inside", 1, |config| {
        config.general("statement_timeout", "500").general("pipelining", "\"off\"")
    });
    let mut client = stage.client();
    let pid = client.query("SELECT pg_backend_pid()").concat();
    let stopped = Stopped::process(&pid);
    client.send(&query("SELECT 'too late'")).unwrap();
    assert_eq!(codes(&client.read_until_ready().unwrap()), ["08007"]);
    assert_eq!(client.query("SELECT 'another server'"), ["another server"]);
    drop(stopped);
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

/// A driver that gives up closes its connection. The pool has one place, and gets it back.
#[test]
fn a_server_that_hangs_and_whose_client_leaves() {
    let stage = Stage::with("hangs_alone", 1, |config| {
        config.general("statement_timeout", "500").pool("query_wait_timeout", "60000")
    });
    let mut client = stage.client();
    let pid = client.query("SELECT pg_backend_pid()").concat();
    let stopped = Stopped::process(&pid);
    client.send(&query("SELECT 'nobody hears it'")).unwrap();
    stage.wait_for_servers_in_use(1);
    client.reset().unwrap();
    assert_eq!(stage.client().query("SELECT 'another server'"), ["another server"]);
    drop(stopped);
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

/// It looks like one that has a long statement: the one place is taken until it goes on.
#[test]
fn a_server_that_hangs_without_a_limit_and_whose_client_leaves() {
    let stage = Stage::with("hangs_unlimited", 1, patient);
    let (mut client, mut next) = (stage.client(), stage.client());
    stage.limit_waits(1_000);
    let pid = client.query("SELECT pg_backend_pid()").concat();
    let stopped = Stopped::process(&pid);
    client.send(&query("SELECT 'nobody hears it'")).unwrap();
    stage.wait_for_servers_in_use(1);
    client.reset().unwrap();
    assert_eq!(next.try_query("SELECT 1").unwrap_err().sqlstate(), "53300");
    drop(stopped);
    eventually("the server to go on", || next.try_query("SELECT 1").is_ok());
    assert_eq!(next.query("SELECT pg_backend_pid()"), [pid]);
}

/// A transaction that may take so long.
fn timed(config: PoolerConfig) -> PoolerConfig {
    let config = config.general("transaction_timeout", "500");
    config.pool("connect_timeout", "1000").pool("query_wait_timeout", "60000")
}

/// Nobody is told, and what runs is cancelled all the same.
#[test]
fn a_transaction_that_takes_too_long_and_whose_client_leaves() {
    let name = "slow_alone";
    let stage = Stage::with(name, 1, timed);
    stage.ask(&format!("CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name}"));
    let mut client = stage.client();
    let pid = client.query("SELECT pg_backend_pid()").concat();
    client.query("BEGIN; INSERT INTO t VALUES (1)");
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_servers_in_use(1);
    client.reset().unwrap();
    let next = stage.client().query("SELECT count(*), pg_backend_pid() FROM t");
    assert_eq!(next, [format!("0|{pid}")]);
}

/// It does not hear the cancel, and nobody waits for it but the pool.
#[test]
fn a_server_that_hangs_inside_a_transaction_and_whose_client_leaves() {
    let stage = Stage::with("hangs_alone_inside", 1, timed);
    let mut client = stage.client();
    client.query("BEGIN");
    let pid = client.query("SELECT pg_backend_pid()").concat();
    let stopped = Stopped::process(&pid);
    client.send(&query("SELECT 'nobody hears it'")).unwrap();
    client.reset().unwrap();
    assert_eq!(stage.client().query("SELECT 'another server'"), ["another server"]);
    drop(stopped);
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

/// It does not hear the cancel either.
#[test]
fn a_server_that_hangs_inside_a_transaction() {
    let stage = Stage::with("hangs_transaction", 1, timed);
    let mut client = stage.client();
    client.query("BEGIN");
    let pid = client.query("SELECT pg_backend_pid()").concat();
    let stopped = Stopped::process(&pid);
    client.send(&query("SELECT 'too late'")).unwrap();
    assert_eq!(last_words(&mut client), ["25P04"]);
    assert_eq!(stage.client().query("SELECT 'another server'"), ["another server"]);
    drop(stopped);
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

/// A server that takes connections and says nothing: who is logged in stays so.
#[test]
fn a_server_that_hangs_before_a_login() {
    let cluster = Cluster::start();
    let stage = Stage::on(&cluster, "hangs_before", 1, |config| {
        patient(config).pool("connect_timeout", "30000")
    });
    let mut client = stage.client();
    client.query("SELECT 1");
    stage.limit_waits(900);
    change(&stage, "connect_timeout = 30000", "connect_timeout = 300");
    let own = "FROM pg_stat_activity WHERE usename = 'hangs_before'";
    stage.ask(&format!("SELECT pg_terminate_backend(pid) {own}"));
    stage.wait_for_idle_servers(0);
    let stopped = Stopped::postmaster(&cluster);
    let error = client.try_query("SELECT 1").unwrap_err();
    let [severity, code, detail] = [b'S', b'C', b'D'].map(|field| error.field(field).unwrap());
    assert_eq!((severity.as_str(), code.as_str()), ("ERROR", "53300"));
    assert!(detail.contains("no answer within 0.3 s"), "{detail}");
    // What servers are set to for this one is not known, so its login takes one.
    let login = stage.login().parameter("application_name", "new");
    let refused = WireClient::login(stage.address(), &login).map(drop).unwrap_err().to_string();
    assert!(refused.contains("57P03") && refused.contains("no answer within 0.3 s"), "{refused}");
    drop(stopped);
    assert_eq!(client.query("SELECT 'same session'"), ["same session"]);
}
